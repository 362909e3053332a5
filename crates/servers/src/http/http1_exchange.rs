//! Reads the requests of HTTP/1.1 connections and answers them.

use net::Nanos;
use wire::http1::{Body, BodyReader, MessageError};

use super::connection_state::{Incoming, Phase, Stream};
use super::parsed_request::ParsedRequest;
use super::prebuilt_responses::{self, Body as ResponseBody};
use super::route::{Refusal, Route};
use super::{Core, Http, OUT_BYTES_MAX};
use crate::connections::{CloseState, INPUT_KEPT_BYTES};
use crate::response_head::{Head, KeepAlive, Length, Reply};

/// Maximum size of a body that is sent in one piece with its head, in bytes.
const INLINE_BYTES_MAX: u64 = 16 << 10;
/// Maximum number of bytes of a request body processed at once, and thus the largest chunk of an echo. An echo has as
/// many chunks as the request, or more.
const BODY_PIECE_BYTES: usize = 32 << 10;

impl Http {
    /// Executes requests until one is incomplete or must wait. Returns the number of bytes used.
    pub(super) fn take_requests(&mut self, slot: usize, bytes: &[u8]) -> usize {
        let mut used = 0;
        while used < bytes.len() {
            if self.core.out.len() >= OUT_BYTES_MAX {
                self.connections.slots[slot].blocked = true;
                break;
            }
            let rest = &bytes[used..];
            let connection = &self.connections.slots[slot];
            match connection.state.phase {
                _ if connection.is_over() => break,
                Phase::Ready => {
                    let (asked, head_bytes) = match self.memo.parse_head(rest, &self.head_limits) {
                        Ok(Some(read)) => read,
                        Ok(None) => break,
                        Err(_) if self.starts_http2(slot, rest) => {
                            if matches!(self.connections.slots[slot].state.phase, Phase::Ready) {
                                break;
                            }
                            continue;
                        }
                        Err(error) => {
                            self.fail_with(slot, error.status(), error);
                            break;
                        }
                    };
                    used += head_bytes;
                    let state = &mut self.connections.slots[slot].state;
                    (state.head_begun, state.requests) = (false, state.requests.saturating_add(1));
                    match asked.body {
                        Body::None | Body::Length(0) => self.answer(slot, asked),
                        _ => self.expect_body(slot, asked, used < bytes.len()),
                    }
                }
                Phase::Body(_) => match self.take_body(slot, &rest[..rest.len().min(BODY_PIECE_BYTES)]) {
                    Some(taken) => used += taken,
                    None => break,
                },
                Phase::Http2(_) => used += self.take_frames(slot, rest),
                _ => break,
            }
        }
        used
    }

    /// Whether the connection ends with the response to its current request.
    pub(super) fn ends_connection(&self, slot: usize) -> bool {
        self.core.is_ending || self.connections.slots[slot].state.requests >= self.core.limits.requests
    }

    fn expect_body(&mut self, slot: usize, asked: ParsedRequest, is_coming: bool) {
        let limit = self.core.limits.body_bytes;
        if matches!(asked.body, Body::Length(bytes) if bytes > limit) {
            let error = MessageError::BodyTooLarge(limit);
            return self.fail_with(slot, error.status(), error);
        }
        let waits = asked.expect_continue && !is_coming;
        if let Err(refusal) = asked.route
            && (waits || refusal == Refusal::NotImplemented)
        {
            // The response is final. The client may still send the body, so the connection closes.
            return self.refuse(slot, refusal, asked.head_only);
        }
        if waits {
            self.core.out.extend_from_slice(prebuilt_responses::CONTINUE);
        }
        let reader = BodyReader::new(asked.body, &self.head_limits, limit);
        let connection = &mut self.connections.slots[slot];
        connection.deadline = self.connections.now.saturating_add(self.core.limits.body_ns);
        connection.state.phase = Phase::Body(Incoming { asked, reader, since: self.connections.now, begun: false });
    }

    /// Processes bytes of a body. Returns the number of bytes used; `None` on error.
    fn take_body(&mut self, slot: usize, bytes: &[u8]) -> Option<usize> {
        let is_ending = self.ends_connection(slot);
        let Phase::Body(incoming) = &mut self.connections.slots[slot].state.phase else { return None };
        let asked = incoming.asked;
        let reply = asked.reply(is_ending);
        let Core { out, answers, .. } = &mut self.core;
        let is_echo = asked.route == Ok(Route::Echo);
        let length = if let Body::Length(bytes) = asked.body { Length::Known(bytes) } else { Length::Chunked };
        let before = out.len();
        if is_echo && !incoming.begun {
            answers.push(out, reply, &prebuilt_responses::octets(length), b"");
        }
        let progress = incoming.reader.read(bytes, |piece| match length {
            _ if !is_echo => {}
            Length::Chunked => prebuilt_responses::chunk(out, piece),
            _ => out.extend_from_slice(piece),
        });
        match progress {
            Ok(None) => {
                incoming.begun = is_echo;
                Some(bytes.len())
            }
            Ok(Some(used)) => {
                if is_echo {
                    if length == Length::Chunked {
                        out.extend_from_slice(prebuilt_responses::LAST_CHUNK);
                    }
                    self.answered(slot, reply.keep_alive, asked.keep_alive);
                } else {
                    self.answer(slot, asked);
                }
                Some(used)
            }
            Err(error) => {
                if is_echo && !incoming.begun {
                    out.truncate(before); // None of the echo was sent, so an error response is still possible.
                }
                self.fail_with(slot, error.status(), error);
                None
            }
        }
    }

    fn answer(&mut self, slot: usize, asked: ParsedRequest) {
        let mut reply = asked.reply(self.ends_connection(slot));
        let Core { out, answers, is_ending, undrawn, .. } = &mut self.core;
        match asked.route {
            Ok(Route::Root) => answers.root(out, reply),
            Ok(Route::Plaintext) => answers.prebuilt(out, reply, &answers.plaintext),
            Ok(Route::Json) => answers.prebuilt(out, reply, &answers.json),
            Ok(Route::Delay(law)) => {
                undrawn.push((0, law));
                self.connections.slots[slot].state.phase = Phase::Delayed(asked);
                return;
            }
            // After an unimplemented method, the client may switch to a different protocol, so the connection closes.
            Err(Refusal::NotImplemented) => return self.refuse(slot, Refusal::NotImplemented, asked.head_only),
            route => {
                let (mut head, body) = prebuilt_responses::response(route, *is_ending);
                if head.length == Length::Chunked && asked.minor_version == 0 {
                    (head.length, reply.keep_alive) = (Length::UntilClose, KeepAlive::Close);
                }
                answers.push(out, reply, &head, body.unsent());
                if let ResponseBody::Pattern(body) = body {
                    let chunk = match route {
                        Ok(Route::Chunked { chunk, .. }) if head.length == Length::Chunked => chunk,
                        _ => 0,
                    };
                    let (keep_alive, linger) = (reply.keep_alive, asked.keep_alive);
                    let mut stream = Stream { body, chunk, keep_alive, linger };
                    if body.left <= INLINE_BYTES_MAX && !asked.head_only {
                        stream.write(out, INLINE_BYTES_MAX);
                    }
                    if stream.body.left > 0 && !asked.head_only {
                        self.connections.slots[slot].state.phase = Phase::Streaming(stream);
                        return;
                    }
                }
            }
        }
        self.answered(slot, reply.keep_alive, asked.keep_alive);
    }

    /// Completes a response. If the response closes the connection `unasked`, the client may have sent more.
    pub(super) fn answered(&mut self, slot: usize, keep_alive: KeepAlive, unasked: bool) {
        let connection = &mut self.connections.slots[slot];
        if keep_alive == KeepAlive::Close {
            connection.end(unasked);
        } else if !matches!(connection.state.phase, Phase::Ready) {
            connection.state.phase = Phase::Ready;
        }
    }

    fn refuse(&mut self, slot: usize, refusal: Refusal, head_only: bool) {
        self.end_with(slot, prebuilt_responses::response(Err(refusal), false), head_only);
    }

    pub(super) fn fail_with(&mut self, slot: usize, code: u16, text: impl std::fmt::Display) {
        let connection = &mut self.connections.slots[slot];
        if matches!(connection.state.phase, Phase::Body(Incoming { begun: true, .. })) {
            // The head is sent, so only a close can signal the truncated body.
            connection.over = CloseState::Closing;
            return;
        }
        self.end_with(slot, prebuilt_responses::text(code, text, ""), false);
    }

    fn end_with(&mut self, slot: usize, (head, body): (Head, ResponseBody), head_only: bool) {
        self.core.answers.push(&mut self.core.out, Reply { head_only, ..Reply::CLOSE }, &head, body.unsent());
        self.connections.slots[slot].end(true);
    }

    pub(super) fn keep(&mut self, slot: usize, rest: &[u8], now: Nanos) {
        let connection = &mut self.connections.slots[slot];
        if let CloseState::Answered { linger } = &mut connection.over {
            *linger = true;
        } else if !connection.is_over() {
            connection.input.extend_from_slice(rest);
            connection.state.read_at = Some(now);
        }
    }

    pub(super) fn take_input(&mut self, slot: usize, now: Nanos) {
        let mut input = std::mem::take(&mut self.connections.slots[slot].input);
        let used = self.take_requests(slot, &input);
        let connection = &mut self.connections.slots[slot];
        if let CloseState::Answered { linger } = &mut connection.over {
            *linger |= used < input.len();
            input.clear();
        } else {
            input.drain(..used);
            connection.state.read_at.get_or_insert(now);
        }
        if !input.is_empty() || input.capacity() <= INPUT_KEPT_BYTES {
            connection.input = input;
        }
    }
}
