//! The state of a message that arrives on a stream. Source: RFC 9113, section 8.1.

use super::field_rules::FieldError;
use super::response::ResponseHead;
use crate::http1::RequestMethod;

/// The received part of a message: head, body, and an optional trailer section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incoming {
    phase: Phase,
    /// The body's declared length in bytes; `None` if undeclared.
    declared: Option<u64>,
    /// Number of body bytes received so far.
    pub body_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Head,
    Body,
    Complete,
}

impl Incoming {
    /// Starts a message with the head of a request. `ends` says whether the head has END_STREAM.
    pub fn request(content_length: Option<u64>, ends: bool) -> Result<Incoming, FieldError> {
        let mut message = Incoming { phase: Phase::Body, declared: content_length, body_bytes: 0 };
        message.advance(ends).map(|()| message)
    }

    /// Whether the next HEADERS frame is a head; otherwise it is a trailer section.
    pub fn awaits_head(&self) -> bool {
        self.phase == Phase::Head
    }

    /// Takes a head of the response to `asked`. An interim head has no effect, but must not end the stream.
    pub fn response(&mut self, head: ResponseHead, asked: RequestMethod, ends: bool) -> Result<(), FieldError> {
        if head.is_interim() {
            return if ends { Err(FieldError::ENDING) } else { Ok(()) };
        }
        self.phase = Phase::Body;
        // In these responses, `content-length` is for a body that the server omits (RFC 9110, section 8.6).
        let is_empty = asked == RequestMethod::Head || matches!(head.status, 204 | 304);
        self.declared = if is_empty { Some(0) } else { head.content_length };
        self.advance(ends)
    }

    /// Takes a piece of the body. Fails if no final head has arrived, or if the body is not as long as declared.
    pub fn data(&mut self, bytes: usize, ends: bool) -> Result<(), FieldError> {
        if self.phase == Phase::Head {
            return Err(FieldError::EARLY_DATA);
        }
        self.body_bytes += bytes as u64;
        if self.declared.is_some_and(|declared| self.body_bytes > declared) {
            return Err(FieldError::BODY_LENGTH);
        }
        self.advance(ends)
    }

    /// Takes a trailer section. Fails if it does not end the stream, or if the body is shorter than declared.
    pub fn trailers(&mut self, ends: bool) -> Result<(), FieldError> {
        if ends { self.advance(true) } else { Err(FieldError::ENDING) }
    }

    /// Whether the message has ended, with its body or its trailer section.
    pub fn is_complete(&self) -> bool {
        self.phase == Phase::Complete
    }

    fn advance(&mut self, ends: bool) -> Result<(), FieldError> {
        if ends {
            self.phase = Phase::Complete;
            if self.declared.is_some_and(|declared| self.body_bytes != declared) {
                return Err(FieldError::BODY_LENGTH);
            }
        }
        Ok(())
    }
}
