//! A ping-pong server whose delays are known: the truth that a generator's histogram is held against.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use net::{Conn, Data, Driver, Nanos};
use stats::{Distribution, Histogram, Rng};
use wire::pingpong;

use crate::pingpong::Words;
use crate::pool::{Handler, Next, send_or_close};

/// Times at which nothing is answered: for `length_ns`, once in every `every_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// From the beginning of one pause to that of the next, ns.
    pub every_ns: Nanos,
    /// Length of a pause, ns.
    pub length_ns: Nanos,
}

impl Pauses {
    /// The moment, not before `at`, at which no pause is on. Pauses end whenever a whole number of `every_ns` has gone
    /// by since `start`.
    fn end(&self, start: Nanos, at: Nanos) -> Nanos {
        let phase = at.saturating_sub(start) % self.every_ns.max(1);
        let paused = phase >= self.every_ns.saturating_sub(self.length_ns);
        if paused { at + (self.every_ns - phase) } else { at }
    }
}

/// What a calibration server knows of its own doing.
#[derive(Clone, Debug)]
pub struct Log {
    /// From the moment a request was read to the moment its answer was handed to the kernel, ns.
    pub service: Histogram,
    /// Requests answered.
    pub requests: u64,
}

/// An answer that is due later; the order of the fields is the order in which they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanos,
    /// Requests so far when it came: whether it is of the connection that has its slot now.
    count: u64,
    slot: usize,
    received: Nanos,
    word: u32,
}

/// The calibration server, one thread's part.
#[derive(Debug)]
pub struct Calibrate {
    delay_ns: Option<Distribution>,
    pauses: Option<Pauses>,
    rng: Rng,
    start: Option<Nanos>,
    words: Words,
    read: Vec<u32>,
    /// Answers that are due later.
    due: BinaryHeap<Reverse<Due>>,
    count: u64,
    /// By slot, the connection that has it now; an answer to an earlier one is dropped.
    conns: Vec<Option<(Conn, u64)>>,
    log: Log,
}

impl Calibrate {
    /// A server that answers after a delay drawn from `delay_ns` (`None`: at once), but not during a pause.
    pub fn new(delay_ns: Option<Distribution>, pauses: Option<Pauses>, seed: u64, thread: u32) -> Self {
        Self {
            delay_ns,
            pauses,
            rng: Rng::stream(seed, u64::from(thread)),
            start: None,
            words: Words::default(),
            read: Vec::new(),
            due: BinaryHeap::new(),
            count: 0,
            conns: Vec::new(),
            log: Log { service: Histogram::new(), requests: 0 },
        }
    }

    /// What it knows of its own doing.
    pub fn log(&self) -> &Log {
        &self.log
    }

    fn answer<D: Driver>(&mut self, driver: &mut D, conn: Conn, received: Nanos, word: u32) {
        send_or_close(driver, conn, &pingpong::compose(pingpong::answer(word)));
        self.log.service.record(driver.now().saturating_sub(received));
        self.log.requests += 1;
    }
}

impl Handler for Calibrate {
    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.start.get_or_insert_with(|| driver.now());
        self.words.forget(conn);
        if self.conns.len() <= conn.index() {
            self.conns.resize(conn.index() + 1, None);
        }
        self.conns[conn.index()] = Some((conn, self.count));
    }

    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) -> Next {
        let received = driver.now();
        let mut read = std::mem::take(&mut self.read);
        read.clear();
        self.words.feed(conn, driver.bytes(data), |word| read.push(word));
        let start = self.start.unwrap_or(received);
        let mut next = Next::Serve;
        for &word in &read {
            if word == pingpong::TERMINATE {
                next = Next::Terminate;
                continue;
            }
            let delay_ns = self.delay_ns.map_or(0.0, |law| law.sample(&mut self.rng));
            let mut at = received.saturating_add(delay_ns as Nanos);
            if let Some(pauses) = self.pauses {
                at = pauses.end(start, at);
            }
            if at <= received {
                self.answer(driver, conn, received, word);
            } else {
                self.count += 1;
                self.due.push(Reverse(Due { at, count: self.count, slot: conn.index(), received, word }));
            }
        }
        self.read = read;
        next
    }

    fn closed(&mut self, conn: Conn) {
        self.conns[conn.index()] = None;
    }

    fn turned<D: Driver>(&mut self, driver: &mut D) -> Option<Nanos> {
        while let Some(&Reverse(Due { at, count, slot, received, word })) = self.due.peek() {
            if at > driver.now() {
                return Some(at);
            }
            self.due.pop();
            if let Some((conn, since)) = self.conns[slot]
                && count > since
            {
                self.answer(driver, conn, received, word);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_on_its_beat() {
        let pauses = Pauses { every_ns: 2_000, length_ns: 200 };
        for (at, end) in [(0, 0), (1_799, 1_799), (1_800, 2_000), (1_999, 2_000), (2_000, 2_000), (5_900, 6_000)] {
            assert_eq!(pauses.end(100, 100 + at), 100 + end, "{at}");
        }
    }
}
