//! HTTP/2 by prior knowledge: a connection that begins with the preface. Source: RFC 9113, section 3.3.

pub(super) mod session;
mod stream;

use net::{Conn, Driver, Nanos};
use wire::http2::{ConnectionError, ErrorCode, Limits, PREFACE, STREAM_MAX, Settings, push_go_away, push_settings};

use self::session::Session;
use super::connection_state::Phase;
use super::{Core, Http, HttpLimits, LEFT_OVER_MAX};
use crate::connections::CloseState;

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
    pub(super) fn refuse_connection(&mut self, slot: usize, is_http2: bool) {
        if !is_http2 {
            return self.fail_with(slot, 503, "connection limit reached");
        }
        push_settings(&mut self.core.out, &Settings::DEFAULT);
        push_go_away(&mut self.core.out, 0, ErrorCode::ENHANCE_YOUR_CALM);
        self.connections.slots[slot].end(true);
    }

    /// Returns whether `bytes` are the preface or a part of it. Starts the session once the preface is complete.
    pub(super) fn starts_http2(&mut self, slot: usize, bytes: &[u8]) -> bool {
        let state = &mut self.connections.slots[slot].state;
        if state.requests > 0 || !is_preface(bytes) {
            return false;
        }
        if bytes.len() >= PREFACE.len() {
            state.head_begun = false;
            state.phase = Phase::Http2(Box::new(Session::new(&mut self.core)));
        }
        true
    }

    fn session(&mut self, slot: usize) -> Option<(&mut Session, &mut Core)> {
        let connection = &mut self.connections.slots[slot];
        match &mut connection.state.phase {
            Phase::Http2(session) if connection.over == CloseState::No => Some((session, &mut self.core)),
            _ => None,
        }
    }

    pub(super) fn take_frames(&mut self, slot: usize, bytes: &[u8]) -> usize {
        let Some((session, core)) = self.session(slot) else { return 0 };
        match session.read(bytes, core) {
            Ok(used) => {
                let has_more = session.exchanges.send_bodies(&mut core.out, core.now);
                self.connections.slots[slot].blocked |= has_more;
                used
            }
            Err(error) => {
                self.leave(slot, error.code());
                bytes.len()
            }
        }
    }

    /// Ends the connection with GOAWAY.
    fn leave(&mut self, slot: usize, code: ErrorCode) {
        if let Some((session, core)) = self.session(slot) {
            session.exchanges.leave(code, &mut core.out);
        }
        self.core.undrawn.clear();
        self.connections.slots[slot].end(true);
    }

    /// Sends bodies and sets the deadline. Returns whether there is more to do.
    pub(super) fn advance_http2(&mut self, slot: usize) -> bool {
        let connection = &mut self.connections.slots[slot];
        let Phase::Http2(session) = &mut connection.state.phase else { return true };
        let Core { out, limits, now, .. } = &mut self.core;
        connection.blocked |= session.exchanges.send_bodies(out, *now);
        if connection.input.is_empty() {
            connection.state.read_at = None;
        }
        if !out.is_empty() {
            return true;
        }
        if connection.end_received {
            // Requests that are incomplete stay so.
            session.exchanges.streams.retain(|stream| !stream.is_receiving());
        }
        if !session.exchanges.streams.is_empty() {
            connection.state.head_begun = false;
            connection.deadline = session.exchanges.deadline(limits);
        } else if connection.end_received || session.exchanges.is_leaving {
            connection.end(!connection.end_received);
            return true;
        } else if session.reader.is_between() {
            connection.state.head_begun = false;
            connection.deadline = now.saturating_add(limits.idle_ns);
        } else if !connection.state.head_begun {
            connection.state.head_begun = true;
            connection.deadline = now.saturating_add(limits.head_ns);
        }
        false
    }

    /// Draws the delays of requests, and responds to those without a delay. Over HTTP/1.1, their stream is 0.
    pub(super) fn draw<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let mut index = 0;
        while let Some(&(stream, law)) = self.core.undrawn.get(index) {
            index += 1;
            let now = driver.now();
            let connection = &mut self.connections.slots[conn.index()];
            let received = connection.state.read_at.unwrap_or(now);
            if stream == 0 && connection.input.is_empty() {
                connection.state.read_at = None;
            }
            let at = received.saturating_add(self.delays.draw(&law));
            if at > now {
                self.queue.push(at, conn, received, stream);
            } else {
                self.answer_delayed(driver, conn, stream, received);
            }
        }
        self.core.undrawn.clear();
        // Once there are many delayed responses, remove those whose connection or stream has ended.
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

    /// Responds to a request received at `since`, unless its stream has ended. Returns whether it has not.
    pub(super) fn answer_delayed(&mut self, driver: &mut impl Driver, conn: Conn, stream: u32, since: Nanos) -> bool {
        if let Phase::Delayed(asked) = self.connections.slots[conn.index()].state.phase {
            self.answer_due(driver, conn, asked, since);
            return true;
        }
        let session = self.session(conn.index());
        let is_open = session.is_some_and(|(session, core)| session.exchanges.answer_delayed(stream, core));
        if is_open {
            self.queue.service.record(driver.now().saturating_sub(since));
        }
        is_open
    }

    /// Ends streams with slow bodies, and the connection if it is idle or its client makes no progress.
    pub(super) fn expire_http2<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let slot = conn.index();
        let Some((session, core)) = self.session(slot) else { return };
        let code = match session.exchanges.streams.is_empty() {
            false => session.exchanges.expire(core).err().map(|error| error.code()),
            true if session.reader.is_between() => Some(ErrorCode::NO_ERROR),
            true => Some(ConnectionError::Stalled.code()),
        };
        if let Some(code) = code {
            self.leave(slot, code);
        }
        self.settle(driver, conn);
    }

    /// Announces the shutdown or, if `refuses`, ends all connections after their open streams. Streams that clients
    /// open before they read the announcement are still processed. Source: RFC 9113, section 6.8.
    pub(super) fn end_sessions<D: Driver>(&mut self, driver: &mut D, refuses: bool) {
        for slot in 0..self.connections.slots.len() {
            let Some(conn) = self.connections.slots[slot].conn else { continue };
            let Some((session, core)) = self.session(slot) else { continue };
            match (session.exchanges.is_leaving, refuses) {
                (true, _) => continue,
                (false, true) => session.exchanges.leave(ErrorCode::NO_ERROR, &mut core.out),
                (false, false) => push_go_away(&mut core.out, STREAM_MAX, ErrorCode::NO_ERROR),
            }
            self.settle(driver, conn);
        }
    }
}
