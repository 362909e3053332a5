//! What the engine must know of a protocol: how a request is made, and what the bytes that come back are.

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

/// What the bytes at the front of a connection's stream come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// Not the whole answer yet; all the bytes were taken.
    More,
    /// The answer ends after so many of the bytes.
    Answer {
        /// Bytes taken.
        used: usize,
        /// Why it is not the right one, where it is not; what follows it can be read all the same.
        fault: Option<Fault>,
        /// Its status, where the protocol has such numbers; 0 elsewhere.
        status: u16,
        /// The subject answers no more on this connection, and has said so.
        last: bool,
        /// What an operation on a cache came to.
        seen: CacheOutcome,
    },
    /// No answer: nothing that follows can be trusted either, so the connection is given up as lost, and its client backs off. A wrong answer on a sound
    /// connection is an [`Parsed::Answer`] with a fault.
    Broken(Fault),
}

/// The client's side of a protocol in which answers come in the order of the requests.
pub(crate) trait Protocol {
    /// How far the answers of one connection have been read. Its memory is bounded, whatever the subject sends.
    type Stream;

    /// What is remembered of a request to know its answer.
    type Expected: Copy + Default;

    /// What becomes of a request whose answer cannot be told from unexpected bytes.
    const UNREADABLE: Fault;

    /// The stream of a new connection.
    fn stream(&self) -> Self::Stream;

    /// The same for a client that had a connection before: what answers on that one have caused is still to be sent.
    fn renew(&self, stream: &mut Self::Stream) {
        *stream = self.stream();
    }

    /// Requests that answers on this connection have caused, and that are not sent yet; they come before all others.
    fn caused(&self, _: &Self::Stream) -> u32 {
        0
    }

    /// Whether an answer caused this request: it is none of those that are counted.
    fn is_caused(&self, _: Self::Expected) -> bool {
        false
    }

    /// Up to `wanted` requests that answers have not caused can be had now; fewer: there will be no more of them.
    #[inline]
    fn available(&mut self, wanted: u32) -> u32 {
        wanted
    }

    /// Where a trace says when requests are sent: when the next one is, ns since the first; `None`: there is no more.
    fn next_at(&mut self) -> Option<Nanos> {
        None
    }

    /// Leaves the next one out.
    fn skip(&mut self) {}

    /// Appends the next request of a connection to `out`, and tells what its answer must be. With
    /// [`Connection::PerRequest`](study::spec::Connection::PerRequest) a request begins with its connect: it is in flight, and its time runs, before it is appended.
    fn request(&mut self, stream: &mut Self::Stream, now: Nanos, rng: &mut Rng, out: &mut Vec<u8>) -> Self::Expected;

    /// Appends a request again that was sent on a connection before, for the first of a new one; its answer must be the same.
    fn again(
        &mut self,
        stream: &mut Self::Stream,
        expected: Self::Expected,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Self::Expected;

    /// Reads on in the answer to the oldest request in flight: [`Parsed::More`] until it is whole. Where its end is that of the stream, [`Protocol::end`] has the
    /// answer.
    fn read(&mut self, stream: &mut Self::Stream, expected: Self::Expected, bytes: &[u8], now: Nanos) -> Parsed;

    /// The subject's stream has ended while this answer was awaited: that may be its end.
    fn end(&mut self, stream: &mut Self::Stream, expected: Self::Expected) -> Parsed;

    /// In words, what was wrong with the answer that was read last; asked only after a fault.
    fn explain(&self) -> Option<String>;
}

/// The fault of a response that cannot be read.
pub(crate) fn http_fault(error: &wire::http1::ResponseError) -> Fault {
    use wire::http1::ResponseError;
    match error {
        ResponseError::HeadTooLarge { .. } | ResponseError::TooManyHeaders { .. } => Fault::HeadTooLarge,
        ResponseError::Truncated { .. } => Fault::Truncated,
        _ => Fault::Framing,
    }
}
