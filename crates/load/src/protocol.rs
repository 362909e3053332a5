//! The protocol interface of the engine: appends requests and parses responses.

mod cache;
mod difference;
mod http;
mod http_cache;
mod keys;
mod memcached;
mod pingpong;
mod redis;

use net::Nanos;
use stats::Rng;

pub(crate) use self::cache::{Cache, Codec};
pub(crate) use self::difference::Difference;
pub(crate) use self::http::Http;
pub(crate) use self::http_cache::HttpCache;
pub(crate) use self::keys::Shared;
pub(crate) use self::memcached::Memcached;
pub(crate) use self::pingpong::Pingpong;
pub(crate) use self::redis::Redis;
pub(crate) use crate::cache_outcome::{CacheOutcome, Cause, Class};
use crate::recorder::Fault;

/// The result of parsing the bytes at the front of a connection's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The response is incomplete; all bytes were consumed.
    More,
    /// A complete response.
    Answer {
        /// Bytes consumed.
        used: usize,
        /// Why the response is invalid, if it is. The bytes after it can still be parsed.
        fault: Option<Fault>,
        /// Status code, or 0 if the protocol has none.
        status: u16,
        /// Whether the server announced that this is its last response on the connection.
        last: bool,
        /// The outcome of a cache operation.
        seen: CacheOutcome,
    },
    /// The stream is out of step and later bytes cannot be trusted. The connection counts as lost
    /// and its client backs off. An invalid response in an intact stream is an [`Parsed::Answer`]
    /// with a fault.
    Broken(Fault),
}

/// The client side of a protocol whose responses arrive in request order.
pub(crate) trait Protocol {
    /// Parser state of one connection. Its memory is bounded regardless of the server's output.
    type Stream;

    /// State kept per request in flight to validate its response.
    type Expected: Copy + Default;

    /// The fault of a request whose response cannot be distinguished from unexpected bytes.
    const UNREADABLE: Fault;

    fn stream(&self) -> Self::Stream;

    /// Replaces the stream when a client reconnects. Requests caused by responses on the old
    /// connection remain queued.
    fn renew(&self, stream: &mut Self::Stream) {
        *stream = self.stream();
    }

    /// Number of unsent requests that responses on this connection have caused. They are sent
    /// first.
    fn caused(&self, _: &Self::Stream) -> u32 {
        0
    }

    /// Whether a response caused this request. Caused requests are not counted.
    fn is_caused(&self, _: Self::Expected) -> bool {
        false
    }

    /// How many of `wanted` requests are available now, not counting caused ones. Fewer than
    /// `wanted` means that the source is exhausted.
    #[inline]
    fn available(&mut self, wanted: u32) -> u32 {
        wanted
    }

    /// For a trace with timestamps: the send time of the next request, in ns since the first.
    /// `None` at its end.
    fn next_at(&mut self) -> Option<Nanos> {
        None
    }

    /// Skips the next request of a trace.
    fn skip(&mut self) {}

    /// Appends the next request of a connection to `out` and returns the state to validate its
    /// response. With [`Connection::PerRequest`](study::spec::Connection::PerRequest) a request
    /// starts with its connect: it is in flight, and its time runs, before it is appended.
    fn request(&mut self, stream: &mut Self::Stream, now: Nanos, rng: &mut Rng, out: &mut Vec<u8>) -> Self::Expected;

    /// Appends a request that was already sent on an earlier connection. It goes first on the new
    /// one and expects the same response.
    fn again(
        &mut self,
        stream: &mut Self::Stream,
        expected: Self::Expected,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Self::Expected;

    /// Parses more of the response to the oldest request in flight. Returns [`Parsed::More`] until
    /// the response is complete; if end of stream delimits it, [`Protocol::end`] returns the
    /// result.
    fn read(&mut self, stream: &mut Self::Stream, expected: Self::Expected, bytes: &[u8], now: Nanos) -> Parsed;

    /// Handles end of stream while this response was pending. The end may complete the response.
    fn end(&mut self, stream: &mut Self::Stream, expected: Self::Expected) -> Parsed;

    /// Describes what was wrong with the last parsed response. Called only after a fault.
    fn explain(&self) -> Option<String>;
}

/// Maps an unreadable HTTP response to its fault.
pub(crate) fn http_fault(error: &wire::http1::ResponseError) -> Fault {
    use wire::http1::ResponseError;
    match error {
        ResponseError::HeadTooLarge { .. } | ResponseError::TooManyHeaders { .. } => Fault::HeadTooLarge,
        ResponseError::Truncated { .. } => Fault::Truncated,
        _ => Fault::Framing,
    }
}
