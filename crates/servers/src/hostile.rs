//! Servers that misbehave, to show that a generator bears it.

use std::collections::VecDeque;

use net::{Close, Conn, Data, Driver, Nanos};
use wire::pingpong;

use crate::pingpong::Words;
use crate::pool::{Handler, Next, send_or_close};

/// How a server misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every answer is one too high.
    WrongWords,
    /// Sends without end, asked or not.
    EndlessData,
    /// Right answers, each byte by itself, a millisecond apart.
    OneByteAtATime,
    /// Reads, and never answers.
    NeverAnswer,
    /// Closes every connection as soon as it stands.
    CloseAtOnce,
    /// Right answers until so many were given; from then on none, on any connection.
    Freeze(u64),
    /// Right answers, but on the first connection of which so many were given there; from then on none on it.
    FreezeOne(u64),
}

/// Between two bytes of [`Kind::OneByteAtATime`], and between two floods of [`Kind::EndlessData`], ns.
const STEP_NS: Nanos = 1_000_000;
/// Bytes of one flood.
const FLOOD: [u8; 16_384] = [0x55; 16_384];

/// A hostile server, one thread's part.
#[derive(Debug)]
pub struct Hostile {
    kind: Kind,
    words: Words,
    /// Connections and the bytes they are still to be sent.
    open: Vec<(Conn, VecDeque<u8>)>,
    step_at: Nanos,
    /// Right answers of kinds that freeze: of all connections, and of the one that is to freeze or has.
    answered: u64,
    frozen: Option<Conn>,
}

impl Hostile {
    /// A server that misbehaves in this way.
    pub fn new(kind: Kind) -> Self {
        Self { kind, words: Words::default(), open: Vec::new(), step_at: 0, answered: 0, frozen: None }
    }
}

impl Handler for Hostile {
    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.words.forget(conn);
        match self.kind {
            Kind::CloseAtOnce => driver.close(conn, Close::Graceful),
            Kind::EndlessData | Kind::OneByteAtATime => self.open.push((conn, VecDeque::new())),
            Kind::FreezeOne(_) => {
                self.frozen.get_or_insert(conn);
            }
            Kind::WrongWords | Kind::NeverAnswer | Kind::Freeze(_) => {}
        }
    }

    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) -> Next {
        let mut next = Next::Serve;
        let mut answers = Vec::new();
        let error = u32::from(self.kind == Kind::WrongWords);
        self.words.feed(conn, driver.bytes(data), |word| {
            if word == pingpong::TERMINATE {
                next = Next::Terminate;
            }
            answers.extend_from_slice(&pingpong::compose(pingpong::answer(word).wrapping_add(error)));
        });
        match self.kind {
            Kind::WrongWords => send_or_close(driver, conn, &answers),
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
            Kind::EndlessData | Kind::NeverAnswer | Kind::CloseAtOnce => {}
        }
        next
    }

    fn closed(&mut self, conn: Conn) {
        self.open.retain(|(other, _)| *other != conn);
        // Whoever only looked whether somebody listens was not the first.
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
                    // What does not fit waits for the next step.
                    Kind::EndlessData => drop(driver.send(*conn, &FLOOD)),
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
