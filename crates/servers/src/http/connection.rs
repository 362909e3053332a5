//! One connection: what it is about.

use net::{Conn, Nanos};
use wire::http1::BodyReader;

use super::answers;
use super::delay::Law;
use super::request::ParsedRequest;
use crate::response_head::KeepAlive;
use crate::timers::NEVER;

/// A slot for connections, and the one that has it.
#[derive(Debug)]
pub(super) struct Connection {
    /// `None`: the slot is free.
    pub(super) conn: Option<Conn>,
    /// Tells connections of one slot apart.
    pub(super) life: u64,
    /// How far it is.
    pub(super) phase: Phase,
    /// When what it is waiting for is too late.
    pub(super) deadline: Nanos,
    /// Read, and not taken yet: a head that is not complete, or requests behind an answer that is late or long.
    pub(super) input: Vec<u8>,
    /// When the first of `input` was read, where it waits behind an answer.
    pub(super) read_at: Option<Nanos>,
    /// The deadline is that of a head that has begun.
    pub(super) head_begun: bool,
    /// Nothing is taken until what was sent has left.
    pub(super) blocked: bool,
    /// Nothing is read, as `input` is full.
    pub(super) paused: bool,
    /// The client sends no more.
    pub(super) end_received: bool,
}

/// How far the request of a connection is.
#[derive(Debug)]
pub(super) enum Phase {
    /// A request may come, or has come in part.
    Ready,
    /// Its body comes.
    Body(Incoming),
    /// Its answer is to be late; by how much is to be drawn.
    Undrawn(ParsedRequest, Law),
    /// Its answer is due later.
    Delayed(ParsedRequest),
    /// Its answer is being sent.
    Streaming(Stream),
    /// All is answered. With `linger` the client may be sending still.
    Answered { linger: bool },
    /// The answer was sent and so was the end; what comes is thrown away until the client ends, too.
    Lingering,
    /// Closed; what is left is being sent.
    Closing,
}

/// A body that comes.
#[derive(Debug)]
pub(super) struct Incoming {
    /// The request.
    pub(super) asked: ParsedRequest,
    /// Finds its end.
    pub(super) reader: BodyReader,
    /// When its head was complete.
    pub(super) since: Nanos,
    /// The head of the echo is sent.
    pub(super) begun: bool,
}

/// A body that leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Bytes that were handed over.
    pub(super) position: u64,
    /// Bytes that were not.
    pub(super) left: u64,
    /// Bytes of a chunk; 0: none.
    pub(super) chunk: u32,
    /// What becomes of the connection then.
    pub(super) keep_alive: KeepAlive,
    /// If it closes: the client did not ask for that, and may have sent more.
    pub(super) linger: bool,
}

impl Connection {
    pub(super) fn new() -> Self {
        Self {
            conn: None,
            life: 0,
            phase: Phase::Ready,
            deadline: NEVER,
            input: Vec::new(),
            read_at: None,
            head_begun: false,
            blocked: false,
            paused: false,
            end_received: false,
        }
    }

    /// Whether input can be taken.
    #[inline]
    pub(super) fn takes(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Body(_)) && !self.blocked
    }

    /// Whether nothing that comes will be taken any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Answered { .. } | Phase::Lingering | Phase::Closing)
    }
}

impl Stream {
    /// Writes what comes next, up to `budget` bytes of it or one chunk, and the end of the body if that is it.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, budget: u64) {
        let full = out.len() + budget as usize;
        let size = if self.chunk == 0 { budget } else { u64::from(self.chunk) };
        let begin = out.len();
        while self.left > 0 && (out.len() == begin || out.len() + size as usize <= full) {
            let piece = answers::piece(self.position, self.left.min(size));
            if self.chunk > 0 {
                answers::chunk(out, piece);
            } else {
                out.extend_from_slice(piece);
            }
            self.position += piece.len() as u64;
            self.left -= piece.len() as u64;
        }
        if self.left == 0 && self.chunk > 0 {
            out.extend_from_slice(answers::LAST_CHUNK);
        }
    }
}
