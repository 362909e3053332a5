//! What the engine must know of a protocol: how a request is made, and what the bytes that come back are.

mod http;
mod pingpong;

use stats::Rng;

pub(crate) use self::http::Http;
pub(crate) use self::pingpong::Pingpong;
use crate::recorder::Fault;

/// What the bytes at the front of a connection's stream come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
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
    },
    /// No answer: nothing that follows can be trusted either.
    Broken(Fault),
}

/// The client's side of a protocol in which answers come in the order of the requests.
pub(crate) trait Protocol {
    /// How far the answers of one connection have been read. Its memory is bounded, whatever the subject sends.
    type Stream;

    /// What is remembered of a request to know its answer.
    type Expected: Copy + Default;

    /// The stream of a new connection.
    fn stream(&self) -> Self::Stream;

    /// Appends the next request to `out`, and tells what its answer must be.
    fn request(&mut self, rng: &mut Rng, out: &mut Vec<u8>) -> Self::Expected;

    /// Reads on in the answer to the oldest request in flight.
    fn read(&mut self, stream: &mut Self::Stream, expected: Self::Expected, bytes: &[u8]) -> Reading;

    /// The subject's stream has ended while this answer was awaited: that may be its end.
    fn end(&mut self, stream: &mut Self::Stream, expected: Self::Expected) -> Reading;

    /// In words, what was wrong with the answer that was read last; asked only after a fault.
    fn explain(&self) -> Option<String>;
}
