//! A ping-pong server with known delays, to check a load generator's histogram against.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use net::{Conn, Data, Driver, Nanos};
use stats::{Distribution, Histogram, Rng};
use wire::pingpong;

use crate::pingpong::Words;
use crate::pool::{Handler, Next, send_or_close};

/// Periodic pauses without responses: `length_ns` in every `every_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// From the start of one pause to the start of the next, ns.
    pub every_ns: Nanos,
    /// Length of a pause, ns.
    pub length_ns: Nanos,
}

impl Pauses {
    /// The earliest time from `at` on outside a pause; pauses end every `every_ns` after `start`.
    fn end(&self, start: Nanos, at: Nanos) -> Nanos {
        let phase = at.saturating_sub(start) % self.every_ns.max(1);
        let paused = phase >= self.every_ns.saturating_sub(self.length_ns);
        if paused { at + (self.every_ns - phase) } else { at }
    }
}

/// The measurements of a calibration server.
#[derive(Clone, Debug)]
pub struct Log {
    /// From reading a request to handing its response to the kernel, ns.
    pub service: Histogram,
    /// Number of responses.
    pub requests: u64,
}

/// A delayed response; the field order is the order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanos,
    /// Number of requests so far, to check whether the slot still has the same connection.
    count: u64,
    slot: usize,
    received: Nanos,
    word: u32,
}

/// One thread of the calibration server.
#[derive(Debug)]
pub struct Calibrate {
    delay_ns: Option<Distribution>,
    pauses: Option<Pauses>,
    rng: Rng,
    start: Option<Nanos>,
    words: Words,
    read: Vec<u32>,
    due: BinaryHeap<Reverse<Due>>,
    count: u64,
    /// Per slot, its current connection; responses to earlier ones are dropped.
    conns: Vec<Option<(Conn, u64)>>,
    log: Log,
}

impl Calibrate {
    /// Delays responses by `delay_ns` (`None`: not at all), and sends none during a pause.
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

    /// The measurements.
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
    fn pause_ends_at_a_multiple_of_its_period() {
        let pauses = Pauses { every_ns: 2_000, length_ns: 200 };
        for (at, end) in [(0, 0), (1_799, 1_799), (1_800, 2_000), (1_999, 2_000), (2_000, 2_000), (5_900, 6_000)] {
            assert_eq!(pauses.end(100, 100 + at), 100 + end, "{at}");
        }
    }
}
