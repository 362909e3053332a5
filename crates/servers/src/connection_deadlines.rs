//! Tracks connection deadlines at the cost of one store per request, which moves the deadline in the connection. A heap
//! entry says when to check a slot, at its deadline or earlier. An early check is repeated at the deadline, so a busy
//! connection costs one entry per timeout. Entries outlive connections, but a slot has at most one per kind of timeout.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use net::Nanos;

pub(crate) const NEVER: Nanos = Nanos::MAX;

#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Earliest entry of each slot in `heap`; later entries are stale.
    earliest: Vec<Nanos>,
}

impl Timers {
    #[inline]
    pub(crate) fn schedule(&mut self, slot: usize, deadline: Nanos) {
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

    #[inline]
    pub(crate) fn next(&self) -> Option<Nanos> {
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
