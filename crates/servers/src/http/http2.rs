//! HTTP/2 by prior knowledge: a connection that begins with the preface. Source: RFC 9113, section 3.3.

pub(super) mod response_frames;
pub(super) mod session;
mod stream;

use net::{Conn, Driver};
use wire::http2::{ConnectionError, ErrorCode, Limits, PREFACE, Settings, push_go_away, push_settings};

use self::session::{Context, Exchanges, Session};
use super::connection_state::Phase;
use super::{Http, HttpLimits, LEFT_OVER_MAX};
use crate::delay_queue::Due;

/// Limits of the codec, about twice the server's own. A head between the two gets an error response.
pub(super) fn codec_limits(limits: &HttpLimits) -> Limits {
    let bytes = 2 * limits.head_bytes + Limits::DEFAULT.frame_bytes as usize;
    Limits {
        block_bytes: bytes,
        continuations: bytes as u32 / Limits::DEFAULT.frame_bytes + 16,
        fields: 2 * limits.headers + 16,
        list_bytes: bytes,
        ..Limits::DEFAULT
    }
}

/// Whether the first bytes of a connection are the preface or a part of it.
pub(super) fn is_preface(bytes: &[u8]) -> bool {
    bytes.starts_with(PREFACE) || PREFACE.starts_with(bytes)
}

impl Http {
    /// Ends a connection over the limit with an error in the client's protocol.
    #[cold]
    pub(super) fn refuse_connection(&mut self, slot: usize, is_http2: bool) {
        if !is_http2 {
            return self.fail_with(slot, 503, "connection limit reached");
        }
        push_settings(&mut self.out, &Settings::DEFAULT);
        push_go_away(&mut self.out, 0, ErrorCode::ENHANCE_YOUR_CALM);
        self.connections.slots[slot].state.phase = Phase::Answered { linger: true };
    }

    /// Returns whether `bytes` are the preface or a part of it. Starts the session once the preface is complete.
    #[cold]
    pub(super) fn starts_http2(&mut self, slot: usize, bytes: &[u8]) -> bool {
        let state = &mut self.connections.slots[slot].state;
        if state.requests > 0 || !is_preface(bytes) {
            return false;
        }
        if bytes.len() >= PREFACE.len() {
            state.head_begun = false;
            state.phase = Phase::Http2(Box::new(Session::new(&self.limits, &self.codec_limits, &mut self.out)));
        }
        true
    }

    fn with_session<R>(&mut self, slot: usize, run: impl FnOnce(&mut Session, &mut Context<'_>) -> R) -> Option<R> {
        let (now, is_ending) = (self.connections.now, self.connections.is_ending());
        let Phase::Http2(session) = &mut self.connections.slots[slot].state.phase else { return None };
        let mut context = Context {
            out: &mut self.out,
            answers: &self.answers,
            limits: &self.limits,
            codec_limits: &self.codec_limits,
            head: &mut self.request_head,
            undrawn: &mut self.undrawn,
            now,
            is_ending,
        };
        Some(run(session, &mut context))
    }

    pub(super) fn take_frames(&mut self, slot: usize, bytes: &[u8]) -> usize {
        let taken = self.with_session(slot, |session, context| {
            let used = session.read(bytes, context);
            used.map(|used| (used, session.exchanges.send_bodies(context.out, context.now)))
        });
        match taken {
            Some(Ok((used, has_more))) => {
                self.connections.slots[slot].blocked |= has_more;
                used
            }
            Some(Err(error)) => {
                self.leave(slot, Some(error));
                bytes.len()
            }
            None => 0,
        }
    }

    /// Ends the connection with GOAWAY and the code of `error`, or with NO_ERROR if there is none.
    #[cold]
    fn leave(&mut self, slot: usize, error: Option<ConnectionError>) {
        let code = error.map_or(ErrorCode::NO_ERROR, |error| error.code());
        self.with_session(slot, |session, context| session.exchanges.leave(code, context.out));
        self.undrawn.clear();
        self.connections.slots[slot].state.phase = Phase::Answered { linger: true };
    }

    /// Sends bodies and sets the deadline. Returns whether there is more to do.
    pub(super) fn advance_http2(&mut self, slot: usize) -> bool {
        let has_more =
            self.with_session(slot, |session, context| session.exchanges.send_bodies(context.out, context.now));
        let connection = &mut self.connections.slots[slot];
        connection.blocked |= has_more.unwrap_or(false);
        if connection.input.is_empty() {
            connection.state.read_at = None;
        }
        if !self.out.is_empty() {
            return true;
        }
        let Phase::Http2(session) = &mut connection.state.phase else { return true };
        if connection.end_received {
            session.exchanges.end_input();
        }
        if !session.exchanges.is_empty() {
            connection.state.head_begun = false;
            connection.deadline = session.exchanges.deadline(&self.limits);
        } else if connection.end_received || session.exchanges.is_leaving() {
            connection.state.phase = Phase::Answered { linger: !connection.end_received };
            return true;
        } else if session.is_between() {
            connection.state.head_begun = false;
            connection.deadline = self.connections.now.saturating_add(self.limits.idle_ns);
        } else if !connection.state.head_begun {
            connection.state.head_begun = true;
            connection.deadline = self.connections.now.saturating_add(self.limits.head_ns);
        }
        false
    }
    #[cold]
    pub(super) fn draw<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let now = driver.now();
        let received = self.connections.slots[conn.index()].state.read_at.unwrap_or(now);
        let mut undrawn = std::mem::take(&mut self.undrawn);
        for (stream, law) in undrawn.drain(..) {
            let at = received.saturating_add(self.delays.draw(&law));
            if at > now {
                self.queue.push(at, conn, received, stream);
            } else {
                let is_open = self
                    .with_session(conn.index(), |session, context| session.exchanges.answer_delayed(stream, context));
                if is_open == Some(true) {
                    self.queue.service.record(driver.now().saturating_sub(received));
                }
            }
        }
        self.undrawn = undrawn;
        self.remove_ended_delays();
    }

    /// Removes delayed responses whose connection or stream has ended, once there are many.
    pub(super) fn remove_ended_delays(&mut self) {
        let slots = &self.connections.slots;
        self.queue.remove_ended(2 * self.connections.open + LEFT_OVER_MAX, |due| {
            let connection = &slots[due.conn.index()];
            connection.conn == Some(due.conn)
                && match &connection.state.phase {
                    Phase::Http2(session) => session.exchanges.is_delayed(due.word),
                    _ => true,
                }
        });
    }

    /// Sends a delayed response, unless its stream has ended.
    pub(super) fn answer_due_stream<D: Driver>(&mut self, driver: &mut D, due: &Due) {
        let slot = due.conn.index();
        let is_open = self.with_session(slot, |session, context| session.exchanges.answer_delayed(due.word, context));
        if is_open == Some(true) {
            self.queue.service.record(driver.now().saturating_sub(due.received));
            self.settle(driver, due.conn);
        }
    }

    /// Ends streams with slow bodies, and the connection if it is idle or its client makes no progress.
    pub(super) fn expire_http2<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let slot = conn.index();
        let expired = self.with_session(slot, |session, context| match session.exchanges.is_empty() {
            false => session.exchanges.expire(context).map(|()| false),
            true if session.is_between() => Ok(true),
            true => Err(ConnectionError::Stalled),
        });
        match expired {
            Some(Err(error)) => self.leave(slot, Some(error)),
            Some(Ok(true)) => self.leave(slot, None),
            _ => {}
        }
        self.settle(driver, conn);
    }

    /// Announces the shutdown or, if `refuses`, ends all connections after their open streams. Streams that clients
    /// open before they read the announcement are still processed. Source: RFC 9113, section 6.8.
    pub(super) fn end_sessions<D: Driver>(&mut self, driver: &mut D, refuses: bool) {
        for slot in 0..self.connections.slots.len() {
            let Some(conn) = self.connections.slots[slot].conn else { continue };
            let is_sent = self.with_session(slot, |session, context| {
                let exchanges = &mut session.exchanges;
                match (exchanges.is_leaving(), refuses) {
                    (true, _) => return false,
                    (false, true) => exchanges.leave(ErrorCode::NO_ERROR, context.out),
                    (false, false) => Exchanges::announce_end(context.out),
                }
                true
            });
            if is_sent == Some(true) {
                self.settle(driver, conn);
            }
        }
    }
}
