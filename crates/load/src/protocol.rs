//! The engine's interface to protocols, which append requests and parse responses.

mod body_pattern_and_json_checks;
mod byte_difference;
mod cache;
mod grpc_messages;
mod http;
mod http2;
mod http2_connection;
mod http_cache;
mod http_expectation;
mod memcached;
mod miss_causes;
mod pingpong;
mod redis;
mod request_mix;
mod varied_requests;

use net::Nanos;
use stats::Rng;
use study::record::LoggedSession;

pub(crate) use self::byte_difference::Difference;
pub(crate) use self::cache::{Cache, Codec};
pub(crate) use self::http::Http;
pub(crate) use self::http_cache::HttpCache;
use self::http_expectation::Sent;
pub(crate) use self::http2::Http2;
pub(crate) use self::http2_connection::{Connection, Open, Progress, Replies};
pub(crate) use self::memcached::Memcached;
pub(crate) use self::miss_causes::Shared;
pub(crate) use self::pingpong::Pingpong;
pub(crate) use self::redis::Redis;
use self::request_mix::Mix;
pub(crate) use self::request_mix::operations;
pub(crate) use self::varied_requests::Values;
pub(crate) use crate::cache_outcome::{CacheOutcome, Cause, Class};
pub(crate) use crate::http2_response_overhead::StreamFacts;
use crate::recorder::{Completed, Fault};
use crate::server_endpoint::Server;

/// Start of a response, and length of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) first_at: Nanos,
    pub(crate) body_bytes: u64,
}

/// The end of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) used: usize,
    /// Place of the request in an unordered protocol; otherwise 0.
    pub(crate) place: u32,
    /// Fault of an invalid response, if the stream can still be parsed after it.
    pub(crate) fault: Option<Fault>,
    pub(crate) status: u16,
    /// Whether the server announced this as its last response on the connection.
    pub(crate) is_last: bool,
    pub(crate) seen: CacheOutcome,
    /// `None` if the protocol does not keep it.
    pub(crate) arrival: Option<Arrival>,
}

/// Result of parsing the bytes at the front of a connection's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The response is incomplete; all bytes were consumed.
    More,
    Answer(Answer),
    /// The stream cannot be parsed any further, so the connection is lost and its client backs off.
    Broken(Fault),
    /// The server did not process the request at this place of an unordered protocol.
    Refused {
        used: usize,
        place: u32,
    },
    /// A frame of an unordered protocol changed [`Protocol::room`] or [`Protocol::is_leaving`].
    Changed {
        used: usize,
    },
}

/// The client side of a protocol.
pub(crate) trait Protocol {
    /// Parser state of one connection. Its memory is bounded, whatever the server sends.
    type Stream;

    /// Whether responses arrive in the order of requests. If not, a stream numbers its requests in flight by place,
    /// from 0 in the order in which they were sent. When a request ends, the request at the last place takes its place.
    const ORDERED: bool = true;

    /// Facts kept for each request in flight, to validate its response.
    type Expected: Copy + Default;

    /// Facts that an HTTP/2 connection keeps for each request in flight; `()` for other protocols.
    type Exchange;

    /// Fault of a request whose response cannot be distinguished from unexpected bytes.
    const UNREADABLE: Fault = Fault::Framing;

    fn stream(&self) -> Self::Stream;

    /// Replaces the stream for a new connection, and appends the bytes that begin it. Requests wait until
    /// [`Protocol::is_ready`]. Requests that responses have caused remain queued.
    fn renew(&self, stream: &mut Self::Stream, _: &mut Vec<u8>) {
        *stream = self.stream();
    }

    /// The HTTP/2 connection in use of a stream; `None` for other protocols and before the connection opens.
    fn connection<'s>(&self, _: &'s mut Self::Stream) -> Option<&'s mut Connection<Self::Exchange>> {
        None
    }

    fn is_ready(&self, stream: &mut Self::Stream) -> bool {
        self.connection(stream).map_or(Self::ORDERED, |connection| connection.is_ready())
    }

    /// Number of further requests that the server of an unordered protocol accepts now, if at most `depth` may be in
    /// flight.
    fn room(&self, stream: &mut Self::Stream, depth: u32) -> u32 {
        self.connection(stream).map_or(0, |connection| connection.room(depth))
    }

    /// Maximum number of requests in flight that the server accepts.
    fn server_limit(&self, stream: &mut Self::Stream) -> u32 {
        self.connection(stream).map_or(u32::MAX, |connection| connection.server_limit())
    }

    /// Overhead of the last response, and times between its gRPC messages, ns; `None` for ordered protocols.
    fn stream_facts(&self) -> Option<(StreamFacts, &[Nanos])> {
        None
    }

    /// Whether the server accepts no more requests on this connection but still responds.
    fn is_leaving(&self, stream: &mut Self::Stream) -> bool {
        self.connection(stream).is_some_and(|connection| connection.is_leaving())
    }

    /// Appends frames that responses have caused, except requests.
    fn owed(&self, stream: &mut Self::Stream, out: &mut Vec<u8>) {
        self.connection(stream).into_iter().for_each(|connection| connection.owed(out));
    }

    /// Appends the bytes that end a connection, even after [`Parsed::Broken`].
    fn close(&self, stream: &mut Self::Stream, out: &mut Vec<u8>) {
        self.connection(stream).into_iter().for_each(|connection| connection.close(out));
    }

    /// Number of unsent requests that responses have caused, which are sent before all others.
    fn caused(&self, _: &Self::Stream) -> u32 {
        0
    }

    /// The mix of a request, with the request's place in it; `None` for protocols without a mix.
    fn mix(&self, _: Self::Expected) -> Option<(&Mix, Sent)> {
        None
    }

    /// Whether the whole body of the response to this request is checked.
    fn is_checked(&self, expected: Self::Expected) -> bool {
        self.mix(expected).is_some_and(|(mix, sent)| mix.expectation.checks_whole(sent))
    }

    /// Index of the server of the stream's next request, chosen without waiting for responses.
    fn next_server(&mut self, _: &mut Self::Stream) -> u32 {
        0
    }

    /// Makes the connection to this server, of which a stream has one per server, the subject of the other functions.
    fn switch(&self, _: &mut Self::Stream, _: u32) {}

    /// The server at an index; `None` if the load has only one server.
    fn server(&self, _: u32) -> Option<&Server> {
        None
    }

    /// Index of a request in the mix or of a step in the journeys, otherwise 0, and the session of the step.
    fn place_in_load(&self, expected: Self::Expected) -> (u32, Option<LoggedSession>) {
        (self.mix(expected).map_or(0, |(_, sent)| sent.index), None)
    }

    /// Index of a request's kind among the kinds that are reported separately; `None` if it is not reported.
    fn operation(&self, expected: Self::Expected) -> Option<u32> {
        self.mix(expected).and_then(|(mix, sent)| mix.operation(sent))
    }

    /// Whether a response caused this request. Caused requests are not counted.
    fn is_caused(&self, _: Self::Expected) -> bool {
        false
    }

    /// Number of available requests, not counting caused ones, at most `wanted`; fewer if the source is exhausted.
    fn available(&mut self, wanted: u32) -> u32 {
        wanted
    }

    /// Time of a trace's next request, ns after its first one; `None` at the trace's end or without recorded times.
    fn next_at(&mut self) -> Option<Nanos> {
        None
    }

    fn skip(&mut self) {}

    /// Receives the due time of a stream's next request before [`Protocol::request`] is called.
    fn due(&mut self, _: &mut Self::Stream, _: Nanos) {}

    /// Earliest send time of the request that a response has caused.
    fn thinks_until(&self, _: &Self::Stream) -> Nanos {
        0
    }

    /// Ends the session of a stream whose latest response came too late.
    fn abandon(&mut self, _: &mut Self::Stream) {}

    /// Transcript of requests and responses so far; empty unless they are traced.
    fn transcript(&mut self) -> String {
        String::new()
    }

    /// The session that the latest response completed; `None` if it completed none.
    fn completed(&self) -> Option<Completed> {
        None
    }

    /// Appends the next request to `out`. With [`Connection::PerRequest`](study::spec::Connection::PerRequest), the
    /// request counts as in flight from the connect, before it is appended.
    fn request(&mut self, stream: &mut Self::Stream, now: Nanos, rng: &mut Rng, out: &mut Vec<u8>) -> Self::Expected;

    /// Appends a request that was already sent on an earlier connection. Its response must match `expected`.
    fn again(
        &mut self,
        stream: &mut Self::Stream,
        expected: Self::Expected,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Self::Expected;

    /// Parses the response to the oldest request in flight or, in an unordered protocol, to any request.
    /// [`Protocol::end`] completes a response at the end of the stream.
    fn read(&mut self, stream: &mut Self::Stream, expected: Self::Expected, bytes: &[u8], now: Nanos) -> Parsed;

    /// Takes the end of the stream, which completes the response to the oldest request in flight or fails it.
    fn end(&mut self, stream: &mut Self::Stream, expected: Self::Expected) -> Result<Answer, Fault>;

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
