//! A ping-pong server with known delays, for checks of a load generator's histogram.

use net::{Conn, Data, Driver, Nanos};
use stats::{Distribution, Histogram, Rng};
use wire::pingpong;

use crate::delay_queue::DelayQueue;
use crate::event_loops::{Handler, send_or_close};
use crate::pingpong::Words;

/// Periodic pauses without responses, each at the end of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// Time from the start of one pause to the start of the next, in ns.
    pub every_ns: Nanos,
    /// Length of each pause, in ns.
    pub length_ns: Nanos,
}

impl Pauses {
    /// The earliest time from `at` on that is not in a pause. Each period of `every_ns` from `start` ends in a pause.
    fn end(&self, start: Nanos, at: Nanos) -> Nanos {
        let phase = at.saturating_sub(start) % self.every_ns.max(1);
        let paused = phase >= self.every_ns.saturating_sub(self.length_ns);
        if paused { at + (self.every_ns - phase) } else { at }
    }
}

/// Handler of one thread of the calibration server.
pub struct Calibrate {
    delay_ns: Option<Distribution>,
    pauses: Option<Pauses>,
    rng: Rng,
    start: Option<Nanos>,
    words: Words,
    read: Vec<u32>,
    queue: DelayQueue,
}

impl Calibrate {
    /// Creates a handler that delays responses by `delay_ns`, if any, and sends none during a pause.
    pub fn new(delay_ns: Option<Distribution>, pauses: Option<Pauses>, seed: u64, thread: u32) -> Self {
        Self {
            delay_ns,
            pauses,
            rng: Rng::stream(seed, u64::from(thread)),
            start: None,
            words: Words::default(),
            read: Vec::new(),
            queue: DelayQueue::default(),
        }
    }

    /// Times from reading a request to handing its response to the kernel, in ns.
    pub fn service_ns(&self) -> &Histogram {
        &self.queue.service
    }

    fn answer<D: Driver>(&mut self, driver: &mut D, conn: Conn, received: Nanos, word: u32) {
        // Sending fails if the connection has ended since.
        if send_or_close(driver, conn, &pingpong::compose(pingpong::answer(word))) {
            self.queue.service.record(driver.now().saturating_sub(received));
        }
    }
}

impl Handler for Calibrate {
    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.start.get_or_insert_with(|| driver.now());
        self.words.forget(conn);
    }

    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) {
        let received = driver.now();
        let mut read = std::mem::take(&mut self.read);
        read.clear();
        self.words.feed(conn, driver.bytes(data), |word| read.push(word));
        let start = self.start.unwrap_or(received);
        for &word in &read {
            let delay_ns = self.delay_ns.map_or(0.0, |law| law.sample(&mut self.rng));
            let mut at = received.saturating_add(delay_ns as Nanos);
            if let Some(pauses) = self.pauses {
                at = pauses.end(start, at);
            }
            if at <= received {
                self.answer(driver, conn, received, word);
            } else {
                self.queue.push(at, conn, received, word);
            }
        }
        self.read = read;
    }

    fn is_terminated(&self) -> bool {
        self.words.is_terminated
    }

    fn turned<D: Driver>(&mut self, driver: &mut D) -> Option<Nanos> {
        while let Some(due) = self.queue.pop(driver.now()) {
            self.answer(driver, due.conn, due.received, due.word);
        }
        self.queue.next()
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
