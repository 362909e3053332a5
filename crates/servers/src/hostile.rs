//! Misbehaving servers for tests of load generators.

use std::collections::VecDeque;

use net::{Close, Conn, Data, Driver, Nanos};
use wire::pingpong;

use crate::connections::entry;
use crate::event_loops::{Handler, send_or_close};
use crate::hostile_http2::{After, Http2Connection, Http2Fault};
use crate::pingpong::Words;

/// The misbehavior of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Responds with a word that is one too high.
    WrongWords,
    /// Sends endless data without any request.
    EndlessData,
    /// Sends correct responses one byte per millisecond.
    OneByteAtATime,
    /// Reads but never responds.
    NeverAnswer,
    /// Closes every connection immediately.
    CloseAtOnce,
    /// Responds correctly this many times, then never again on any connection.
    Freeze(u64),
    /// Freezes the first connection that has had this many correct responses; other connections continue.
    FreezeOne(u64),
    /// Misbehaves over HTTP/2 after each run of this many correct responses on a connection.
    Http2(Http2Fault, u64),
}

/// Interval of [`Kind::OneByteAtATime`] bytes and [`Kind::EndlessData`] floods, in ns.
const STEP_NS: Nanos = 1_000_000;
const FLOOD: [u8; 16_384] = [0x55; 16_384];

/// Handler of one thread of a hostile server.
pub struct Hostile {
    kind: Kind,
    words: Words,
    http2: Vec<Option<Box<Http2Connection>>>,
    /// Connections with bytes to send at each step: the first byte, or in a flood all bytes, repeatedly.
    open: Vec<(Conn, VecDeque<u8>)>,
    step_at: Nanos,
    /// Number of correct responses so far, for the freezing kinds: on all connections, or on the one that freezes.
    answered: u64,
    frozen: Option<Conn>,
}

impl Hostile {
    /// Creates a handler with this misbehavior.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            words: Words::default(),
            http2: Vec::new(),
            open: Vec::new(),
            step_at: 0,
            answered: 0,
            frozen: None,
        }
    }
}

impl Handler for Hostile {
    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.words.forget(conn);
        match self.kind {
            Kind::CloseAtOnce => driver.close(conn, Close::Graceful),
            Kind::EndlessData => self.open.push((conn, VecDeque::from(FLOOD))),
            Kind::OneByteAtATime => self.open.push((conn, VecDeque::new())),
            Kind::Http2(fault, after) => {
                *entry(&mut self.http2, conn) = Some(Box::new(Http2Connection::new(fault, after)));
            }
            Kind::FreezeOne(_) => {
                self.frozen.get_or_insert(conn);
            }
            Kind::WrongWords | Kind::NeverAnswer | Kind::Freeze(_) => {}
        }
    }

    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) {
        if let Kind::Http2(fault, _) = self.kind {
            let Some(connection) = &mut self.http2[conn.index()] else { return };
            let mut out = Vec::new();
            let after = connection.read(driver.bytes(data), &mut out);
            send_or_close(driver, conn, &out);
            match after {
                After::Open => return,
                After::Flooding(stream) => self.open.push((conn, fault.flood(stream).into())),
                After::Closed => driver.close(conn, Close::Graceful),
            }
            self.http2[conn.index()] = None;
            return;
        }
        let mut answers = Vec::new();
        let error = u32::from(self.kind == Kind::WrongWords);
        self.words.feed(conn, driver.bytes(data), |word| {
            answers.extend_from_slice(&pingpong::compose(pingpong::answer(word).wrapping_add(error)));
        });
        match self.kind {
            Kind::WrongWords => _ = send_or_close(driver, conn, &answers),
            Kind::OneByteAtATime => {
                if let Some((_, waiting)) = self.open.iter_mut().find(|(other, _)| *other == conn) {
                    waiting.extend(answers);
                }
            }
            Kind::Freeze(after) | Kind::FreezeOne(after) => {
                let counts = matches!(self.kind, Kind::Freeze(_)) || self.frozen == Some(conn);
                let room = if counts { after.saturating_sub(self.answered) } else { u64::MAX };
                let words = (answers.len() / pingpong::WORD_BYTES) as u64;
                answers.truncate(room.min(words) as usize * pingpong::WORD_BYTES);
                self.answered += if counts { room.min(words) } else { 0 };
                send_or_close(driver, conn, &answers);
            }
            Kind::EndlessData | Kind::NeverAnswer | Kind::CloseAtOnce | Kind::Http2(..) => {}
        }
    }

    fn is_terminated(&self) -> bool {
        self.words.is_terminated
    }

    fn closed(&mut self, conn: Conn) {
        self.open.retain(|(other, _)| *other != conn);
        // A connection that closes, such as a probe of the port, no longer counts as the first.
        if self.frozen == Some(conn) {
            (self.frozen, self.answered) = (None, 0);
        }
    }

    fn turned<D: Driver>(&mut self, driver: &mut D) -> Option<Nanos> {
        if self.open.is_empty() {
            return None;
        }
        let now = driver.now();
        if now >= self.step_at {
            self.step_at = now + STEP_NS;
            for (conn, waiting) in &mut self.open {
                match self.kind {
                    // If the bytes do not fit, the next step tries again.
                    Kind::EndlessData | Kind::Http2(..) => drop(driver.send(*conn, waiting.make_contiguous())),
                    _ => {
                        if let Some(byte) = waiting.pop_front() {
                            send_or_close(driver, *conn, &[byte]);
                        }
                    }
                }
            }
        }
        Some(self.step_at)
    }
}
