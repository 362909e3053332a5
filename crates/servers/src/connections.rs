//! The connections of a thread: their slots and deadlines, and how they end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use net::{Close, Conn, Driver, Nanos};

pub(crate) const NEVER: Nanos = Nanos::MAX;

/// Maximum capacity of an empty input buffer that is kept, in bytes.
pub(crate) const INPUT_KEPT_BYTES: usize = 4 << 10;
/// Time for which a server that shuts down waits for requests in transit, in ns.
const GRACE_NS: Nanos = 100_000_000;
const ENDING_LINGER_NS: Nanos = 500_000_000;

#[derive(Default)]
pub(crate) struct Connection<S> {
    /// The connection; `None` if the slot is free.
    pub(crate) conn: Option<Conn>,
    /// Time at which the current wait of the connection times out.
    pub(crate) deadline: Nanos,
    /// Input not processed yet: an incomplete request, or requests that wait for earlier responses.
    pub(crate) input: Vec<u8>,
    /// Whether requests wait until the kernel has taken the sent bytes.
    pub(crate) blocked: bool,
    pub(crate) paused: bool,
    pub(crate) end_received: bool,
    pub(crate) over: CloseState,
    pub(crate) state: S,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CloseState {
    #[default]
    No,
    /// The last response has been written. With `linger`, the client may still be sending.
    Answered { linger: bool },
    /// Everything has been sent. Input is discarded until the client ends its stream.
    Lingering,
    /// The connection is closed, and its remaining bytes are being sent.
    Closing,
}

impl<S> Connection<S> {
    pub(crate) fn is_over(&self) -> bool {
        self.over != CloseState::No
    }
}

#[derive(Default)]
pub(crate) struct Connections<S> {
    pub(crate) slots: Vec<Connection<S>>,
    pub(crate) open: usize,
    /// Time at which the current turn started.
    pub(crate) now: Nanos,
    idle_ns: Nanos,
    send_ns: Nanos,
    linger_ns: Nanos,
    timers: Timers,
    /// Time at which connections without a complete request are closed; `None` before a shutdown.
    ending: Option<Nanos>,
}

/// The entry of a connection's slot in a table that grows as needed.
pub(crate) fn entry<T: Default>(table: &mut Vec<T>, conn: Conn) -> &mut T {
    if table.len() <= conn.index() {
        table.resize_with(conn.index() + 1, T::default);
    }
    &mut table[conn.index()]
}

impl<S: Default> Connections<S> {
    pub(crate) fn new(idle_ns: Nanos, send_ns: Nanos, linger_ns: Nanos) -> Self {
        Self { idle_ns, send_ns, linger_ns, ..Self::default() }
    }

    pub(crate) fn add(&mut self, conn: Conn, now: Nanos, state: S) {
        let deadline = now.saturating_add(self.idle_ns);
        let connection = entry(&mut self.slots, conn);
        let input = std::mem::take(&mut connection.input);
        *connection = Connection { conn: Some(conn), deadline, input, state, ..Connection::default() };
        self.open += 1;
        self.timers.schedule(conn.index(), deadline);
    }

    /// Frees the slot of a closed connection, but keeps a small input buffer for the next one.
    pub(crate) fn remove(&mut self, conn: Conn) {
        let connection = &mut self.slots[conn.index()];
        let mut input = std::mem::take(&mut connection.input);
        input.clear();
        if input.capacity() > INPUT_KEPT_BYTES {
            input = Vec::new();
        }
        *connection = Connection { input, ..Connection::default() };
        self.open -= 1;
    }

    pub(crate) fn schedule(&mut self, conn: Conn) {
        self.timers.schedule(conn.index(), self.slots[conn.index()].deadline);
    }

    /// Returns a connection that timed out while it waited for a request. Ends connections that timed out otherwise.
    pub(crate) fn pop_expired<D: Driver>(&mut self, driver: &mut D) -> Option<Conn> {
        while let Some(slot) = self.timers.pop(self.now) {
            let connection = &self.slots[slot];
            let Some(conn) = connection.conn else { continue };
            match connection.over {
                _ if connection.deadline > self.now => self.timers.schedule(slot, connection.deadline),
                CloseState::No if !connection.blocked => return Some(conn),
                CloseState::Lingering => self.close(driver, conn),
                _ => self.cut_off(driver, conn),
            }
        }
        None
    }

    /// The earliest of the next time to check deadlines, the end of the grace period and `other`.
    pub(crate) fn wake(&self, other: Option<Nanos>) -> Option<Nanos> {
        let ending = self.ending.filter(|at| *at > self.now);
        [self.timers.next(), ending, other].into_iter().flatten().min()
    }

    pub(crate) fn pace<D: Driver>(&mut self, driver: &mut D, conn: Conn, is_full: bool) {
        let connection = &mut self.slots[conn.index()];
        if connection.paused != is_full {
            connection.paused = is_full;
            driver.pause_reads(conn, is_full);
        }
    }

    pub(crate) fn await_sent<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.slots[conn.index()].deadline = self.now.saturating_add(self.send_ns);
        driver.notify_when_sent(conn);
    }

    /// Ends a connection whose last response the driver has.
    pub(crate) fn end_answered<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        match self.slots[conn.index()].over {
            CloseState::Answered { linger: true } => self.linger(driver, conn),
            CloseState::Answered { linger: false } => self.close(driver, conn),
            CloseState::Closing => self.cut_off(driver, conn),
            CloseState::No | CloseState::Lingering => {}
        }
    }

    /// Ends the server's stream and discards input until the client ends its stream.
    fn linger<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let most = if self.ending.is_some() { ENDING_LINGER_NS } else { NEVER };
        let connection = &mut self.slots[conn.index()];
        connection.over = CloseState::Lingering;
        connection.input = Vec::new();
        connection.deadline = self.now.saturating_add(self.linger_ns.min(most));
        driver.end_stream(conn);
    }

    pub(crate) fn close<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let connection = &mut self.slots[conn.index()];
        connection.over = CloseState::Closing;
        connection.deadline = self.now.saturating_add(self.send_ns);
        self.schedule(conn);
        driver.close(conn, Close::Graceful);
    }

    /// Ends a connection at once, also one that has ended already.
    pub(crate) fn cut_off<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let connection = &mut self.slots[conn.index()];
        connection.over = CloseState::Closing;
        connection.deadline = NEVER;
        driver.close(conn, Close::Reset);
    }

    pub(crate) fn end(&mut self, now: Nanos) {
        self.ending = Some(now.saturating_add(GRACE_NS));
    }

    /// Whether connections without a complete request must end.
    pub(crate) fn is_grace_over(&self) -> bool {
        self.ending.is_some_and(|at| at <= self.now)
    }
}

/// Tracks connection deadlines at the cost of one store per request, which moves the deadline in the connection. A heap
/// entry says when to check a slot, at its deadline or earlier. An early check is repeated at the deadline, so a busy
/// connection costs one entry per timeout. Entries outlive connections, but a slot has at most one per kind of timeout.
#[derive(Default)]
struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Earliest entry of each slot in `heap`; later entries are stale.
    earliest: Vec<Nanos>,
}

impl Timers {
    fn schedule(&mut self, slot: usize, deadline: Nanos) {
        if deadline < self.earliest.get(slot).copied().unwrap_or(NEVER) {
            self.enter(slot, deadline);
        }
    }

    fn enter(&mut self, slot: usize, deadline: Nanos) {
        if self.earliest.len() <= slot {
            self.earliest.resize(slot + 1, NEVER);
        }
        self.earliest[slot] = deadline;
        self.heap.push(Reverse((deadline, slot as u32)));
    }

    fn pop(&mut self, now: Nanos) -> Option<usize> {
        loop {
            self.next().filter(|at| *at <= now)?;
            let Reverse((at, slot)) = self.heap.pop()?;
            let earliest = &mut self.earliest[slot as usize];
            if *earliest == at {
                *earliest = NEVER;
                return Some(slot as usize);
            }
        }
    }

    fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|&Reverse((at, _))| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_is_checked_at_its_earliest_deadline() {
        let mut timers = Timers::default();
        timers.schedule(0, 60);
        timers.schedule(0, 10);
        timers.schedule(1, 30);
        assert_eq!((timers.next(), timers.pop(9)), (Some(10), None));
        assert_eq!(timers.pop(10), Some(0));
        assert_eq!(timers.pop(30), Some(1));
        assert_eq!(timers.pop(100), None, "the entry at 60 was left over");
    }

    #[test]
    fn moving_a_deadline_costs_one_entry() {
        let mut timers = Timers::default();
        let (mut deadline, mut entries) = (0, 0);
        for now in 0..1_000_000u64 {
            deadline = now + 60_000;
            timers.schedule(3, deadline);
            entries = entries.max(timers.heap.len());
            while let Some(slot) = timers.pop(now) {
                timers.schedule(slot, deadline);
            }
        }
        assert_eq!(entries, 1);
        assert!(timers.next().is_some_and(|next| next <= deadline));
    }

    #[test]
    fn short_connections_do_not_accumulate_entries() {
        let mut timers = Timers::default();
        for now in 0..100_000u64 {
            timers.schedule(0, now + 60_000); // The connection is accepted.
            timers.schedule(0, now + 10_000); // The head begins.
            timers.schedule(0, now + 2_000); // The connection lingers.
            assert!(timers.heap.len() <= 63, "{} at {now}", timers.heap.len());
            while let Some(slot) = timers.pop(now) {
                timers.schedule(slot, now + 60_000);
            }
        }
    }
}
