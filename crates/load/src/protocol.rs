//! The protocol interface of the engine: appends requests and parses responses.

mod byte_difference;
mod cache;
mod http;
mod http2;
mod http_cache;
mod http_expectation;
mod memcached;
mod miss_causes;
mod pingpong;
mod redis;
mod request_mix;
mod varied_requests;
mod whole_body_checks;

use net::Nanos;
use stats::Rng;
use study::record::LoggedSession;

pub(crate) use self::byte_difference::Difference;
pub(crate) use self::cache::{Cache, Codec};
pub(crate) use self::http::Http;
pub(crate) use self::http_cache::HttpCache;
pub(crate) use self::http2::Http2;
pub(crate) use self::memcached::Memcached;
pub(crate) use self::miss_causes::Shared;
pub(crate) use self::pingpong::Pingpong;
pub(crate) use self::redis::Redis;
pub(crate) use self::request_mix::operations;
pub(crate) use self::varied_requests::Values;
pub(crate) use crate::cache_outcome::{CacheOutcome, Cause, Class};
use crate::recorder::{Completed, Fault};
use crate::server_endpoint::Server;
pub(crate) use crate::stream_overhead::StreamFacts;

/// A response that was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    /// Arrival of its first part.
    pub(crate) first_at: Nanos,
    /// Length of its body.
    pub(crate) bytes: u64,
}

/// The result of parsing the bytes at the front of a connection's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The response is incomplete; all bytes were consumed.
    More,
    Answer {
        used: usize,
        /// Fault of an invalid response, after which the stream can still be parsed.
        fault: Option<Fault>,
        status: u16,
        /// Whether the server announced that this is its last response on the connection.
        last: bool,
        seen: CacheOutcome,
    },
    /// The stream is out of step: the connection is lost and its client backs off.
    Broken(Fault),
    /// Unordered: the response to the request at this place has ended.
    AnswerAt { used: usize, place: u32, fault: Option<Fault>, status: u16 },
    /// Unordered: the server did not process the request at this place.
    Refused { used: usize, place: u32 },
    /// Unordered: [`Protocol::room`] or [`Protocol::is_leaving`] changed.
    Changed { used: usize },
}

/// The client side of a protocol.
pub(crate) trait Protocol {
    /// Parser state of one connection. Its memory is bounded regardless of the server's output.
    type Stream;

    /// Whether responses arrive in request order. Otherwise a stream numbers its requests in flight by place, from 0 in
    /// the order of their requests; when one ends, the last one takes its place.
    const ORDERED: bool = true;

    /// Kept per request in flight to validate its response.
    type Expected: Copy + Default;

    /// The fault of a request whose response cannot be distinguished from unexpected bytes.
    const UNREADABLE: Fault;

    fn stream(&self) -> Self::Stream;

    /// Replaces the stream on reconnect. Caused requests remain queued.
    fn renew(&self, stream: &mut Self::Stream) {
        *stream = self.stream();
    }

    /// Appends the bytes that begin a connection. Requests wait until [`Protocol::is_ready`].
    fn open(&self, _: &mut Vec<u8>) {}

    fn is_ready(&self, _: &Self::Stream) -> bool {
        true
    }

    /// Number of requests that the server accepts now, if at most `depth` may be in flight.
    #[inline]
    fn room(&self, _: &Self::Stream, depth: u32) -> u32 {
        depth
    }

    /// Number of requests in flight that the server accepts.
    fn server_limit(&self, _: &Self::Stream) -> u32 {
        u32::MAX
    }

    /// Overhead of the last response; `None` for ordered protocols.
    #[inline]
    fn stream_facts(&self) -> Option<StreamFacts> {
        None
    }

    /// Whether the server accepts no more requests on this connection, but still responds.
    #[inline]
    fn is_leaving(&self, _: &Self::Stream) -> bool {
        false
    }

    /// Removes a request that a leaving server will not process, and returns its place.
    fn take_unprocessed(&self, _: &mut Self::Stream) -> Option<u32> {
        None
    }

    /// Appends frames that responses have caused, other than requests.
    #[inline]
    fn owed(&self, _: &mut Self::Stream, _: &mut Vec<u8>) {}

    /// Appends the bytes that end a connection, also after [`Parsed::Broken`].
    fn close(&self, _: &mut Self::Stream, _: &mut Vec<u8>) {}

    /// Number of unsent requests that responses have caused. They are sent first.
    fn caused(&self, _: &Self::Stream) -> u32 {
        0
    }

    /// Whether the whole body of the response to this request is checked.
    #[inline]
    fn is_checked(&self, _: Self::Expected) -> bool {
        false
    }

    /// The response that was read last, if the protocol keeps it.
    #[inline]
    fn last(&self) -> Option<Last> {
        None
    }

    /// Index of the server of the stream's next request, which does not wait for responses.
    #[inline]
    fn next_server(&mut self, _: &mut Self::Stream) -> u32 {
        0
    }

    /// The server at an index; `None` for the load's only server.
    #[inline]
    fn server(&self, _: u32) -> Option<&Server> {
        None
    }

    /// Index of a request in the mix.
    fn index(&self, _: Self::Expected) -> u32 {
        0
    }

    /// Whether requests have trace ids.
    fn has_traces(&self) -> bool {
        false
    }

    /// The trace id of a request, if it has one, and its name.
    fn trace(&self, _: Self::Expected) -> Option<(String, String)> {
        None
    }

    /// Index of its kind among those that are reported separately.
    #[inline]
    fn operation(&self, _: Self::Expected) -> Option<u32> {
        None
    }

    /// Whether a response caused this request. Caused requests are not counted.
    fn is_caused(&self, _: Self::Expected) -> bool {
        false
    }

    /// How many of `wanted` requests are available, without caused ones. Fewer mean that the source
    /// is exhausted.
    #[inline]
    fn available(&mut self, wanted: u32) -> u32 {
        wanted
    }

    /// Trace with timestamps: time of the next request, ns since the first. `None` at its end.
    fn next_at(&mut self) -> Option<Nanos> {
        None
    }

    fn skip(&mut self) {}

    /// Receives the due time of a stream's next request, before [`Protocol::request`].
    #[inline]
    fn due(&mut self, _: &mut Self::Stream, _: Nanos) {}

    /// Earliest send time of the request that a response has caused.
    #[inline]
    fn thinks_until(&self, _: &Self::Stream) -> Nanos {
        0
    }

    /// Ends the session of a stream, whose latest response was too late.
    fn abandon(&mut self, _: &mut Self::Stream) {}

    /// The requests and responses so far, if they are traced.
    fn transcript(&mut self) -> String {
        String::new()
    }

    /// The client and session of a request.
    fn session(&self, _: Self::Expected) -> Option<LoggedSession> {
        None
    }

    /// The session that the latest response completed.
    #[inline]
    fn completed(&self) -> Option<Completed> {
        None
    }

    /// Appends the next request to `out`. With [`Connection::PerRequest`](study::spec::Connection::PerRequest), it is
    /// in flight and its time runs from the connect, before it is appended.
    fn request(&mut self, stream: &mut Self::Stream, now: Nanos, rng: &mut Rng, out: &mut Vec<u8>) -> Self::Expected;

    /// Appends a request that was sent on an earlier connection. It expects the same response.
    fn again(
        &mut self,
        stream: &mut Self::Stream,
        expected: Self::Expected,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Self::Expected;

    /// Parses the response to the oldest request in flight, or to any if unordered. At the end of
    /// the stream, [`Protocol::end`] completes it.
    fn read(&mut self, stream: &mut Self::Stream, expected: Self::Expected, bytes: &[u8], now: Nanos) -> Parsed;

    fn end(&mut self, stream: &mut Self::Stream, expected: Self::Expected) -> Parsed;

    fn explain(&self) -> Option<String>;
}

pub(crate) fn http_fault(error: &wire::http1::MessageError) -> Fault {
    use wire::http1::MessageError;
    match error {
        MessageError::HeadTooLarge(_) | MessageError::TooManyHeaders(_) => Fault::HeadTooLarge,
        MessageError::Truncated(_) => Fault::Truncated,
        _ => Fault::Framing,
    }
}
