//! Deadlines of connections, for which the hot path pays one store.
//!
//! A deadline moves with every request, so it is kept in the connection and not here. Here is, for each slot, when it is
//! to be looked at next: no later than its deadline. Whoever looks too early looks again at the deadline, so a busy
//! connection costs one entry for each timeout that goes by and not one for each request. An entry belongs to the slot
//! and outlives the connection: a slot has as many entries as there are lengths of timeouts, however many connections
//! come and go.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use net::Nanos;

/// No deadline.
pub(crate) const NEVER: Nanos = Nanos::MAX;

/// When which slot is to be looked at.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// By slot, its earliest entry in `heap`; later ones are left over and found to be so.
    earliest: Vec<Nanos>,
}

impl Timers {
    /// `slot` is looked at by `deadline` at the latest.
    #[inline]
    pub(crate) fn by(&mut self, slot: usize, deadline: Nanos) {
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

    /// A slot whose time to be looked at has come by `now`. Its entry is gone.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<usize> {
        while let Some(&Reverse((at, slot))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let earliest = &mut self.earliest[slot as usize];
            if *earliest == at {
                *earliest = NEVER;
                return Some(slot as usize);
            }
        }
        None
    }

    /// When [`Timers::pop`] may have something.
    #[inline]
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|&Reverse((at, _))| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_looked_at_at_its_earliest() {
        let mut timers = Timers::default();
        timers.by(0, 60);
        timers.by(0, 10);
        timers.by(1, 30);
        assert_eq!((timers.next(), timers.pop(9)), (Some(10), None));
        assert_eq!(timers.pop(10), Some(0));
        assert_eq!(timers.pop(30), Some(1));
        assert_eq!(timers.pop(100), None, "the entry at 60 was left over");
    }

    #[test]
    fn a_deadline_that_moves_on_costs_one_entry() {
        let mut timers = Timers::default();
        let (mut deadline, mut entries) = (0, 0);
        for now in 0..1_000_000u64 {
            deadline = now + 60_000;
            timers.by(3, deadline);
            entries = entries.max(timers.heap.len());
            while let Some(slot) = timers.pop(now) {
                timers.by(slot, deadline);
            }
        }
        assert_eq!(entries, 1);
        assert!(timers.next().is_some_and(|next| next <= deadline));
    }

    #[test]
    fn entries_stay_few_when_connections_come_and_go() {
        let mut timers = Timers::default();
        for now in 0..100_000u64 {
            timers.by(0, now + 60_000); // Accepted.
            timers.by(0, now + 10_000); // The head begins.
            timers.by(0, now + 2_000); // It closes, and lingers.
            assert!(timers.heap.len() <= 63, "{} at {now}", timers.heap.len());
            while let Some(slot) = timers.pop(now) {
                timers.by(slot, now + 60_000);
            }
        }
    }
}
