//! The state of an HTTP/1.1 connection.

use net::Nanos;
use wire::http1::BodyReader;

use super::http2::session::Session;
use super::parsed_request::ParsedRequest;
use super::prebuilt_responses::{self, Pattern};
use crate::connections::CloseState;
use crate::response_head::KeepAlive;

pub(super) type Connection = crate::connections::Connection<HttpState>;

#[derive(Default)]
pub(super) struct HttpState {
    pub(super) phase: Phase,
    /// Time at which the first byte of `input` was read; `None` if `input` does not wait for an earlier response.
    pub(super) read_at: Option<Nanos>,
    /// Whether the deadline is for a partly received head.
    pub(super) head_begun: bool,
    /// Number of requests over HTTP/1.1 so far.
    pub(super) requests: u32,
}

#[derive(Default)]
pub(super) enum Phase {
    /// There is no request, or only an incomplete head.
    #[default]
    Ready,
    /// The connection is over the limit, and its first bytes will show the protocol of the error.
    Refused,
    /// The body of a request is arriving.
    Body(Incoming),
    /// The response is due later.
    Delayed(ParsedRequest),
    /// The body of the response is being sent.
    Streaming(Stream),
    /// The connection uses HTTP/2 and has not ended.
    Http2(Box<Session>),
}

pub(super) struct Incoming {
    pub(super) asked: ParsedRequest,
    pub(super) reader: BodyReader,
    /// Time at which the head was complete.
    pub(super) since: Nanos,
    /// Whether the head of the echo has been sent.
    pub(super) begun: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub(super) body: Pattern,
    /// Chunk size in bytes; 0 if the body is not chunked.
    pub(super) chunk: u32,
    pub(super) keep_alive: KeepAlive,
    /// Whether to linger on close, because the client did not request the close.
    pub(super) linger: bool,
}

impl Connection {
    pub(super) fn takes(&self) -> bool {
        !self.is_over() && !self.blocked && matches!(self.state.phase, Phase::Ready | Phase::Body(_) | Phase::Http2(_))
    }

    /// Ends the connection once the responses so far are sent. With `linger`, the client may still be sending.
    pub(super) fn end(&mut self, linger: bool) {
        self.state.phase = Phase::Ready;
        self.over = CloseState::Answered { linger };
    }
}

impl Stream {
    /// Writes up to `budget` bytes or one chunk, and the end of the body if it is reached.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, budget: u64) {
        let full = out.len() + budget as usize;
        let size = if self.chunk == 0 { budget } else { u64::from(self.chunk) };
        let begin = out.len();
        while self.body.left > 0 && (out.len() == begin || out.len() + size as usize <= full) {
            let piece = self.body.take(size);
            if self.chunk > 0 {
                prebuilt_responses::chunk(out, piece);
            } else {
                out.extend_from_slice(piece);
            }
        }
        if self.body.left == 0 && self.chunk > 0 {
            out.extend_from_slice(prebuilt_responses::LAST_CHUNK);
        }
    }
}
