//! Responses that are due later, and the service times of sent responses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use net::{Conn, Nanos};
use stats::Histogram;

/// A delayed response. The order of the fields determines which response is sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    at: Nanos,
    number: u64,
    pub(crate) conn: Conn,
    pub(crate) received: Nanos,
    /// The word of a ping-pong request, or the stream of an HTTP/2 request.
    pub(crate) word: u32,
}

#[derive(Default)]
pub(crate) struct DelayQueue {
    due: BinaryHeap<Reverse<Due>>,
    number: u64,
    /// Length of the queue after the latest removal.
    kept: usize,
    pub(crate) service: Histogram,
}

impl DelayQueue {
    pub(crate) fn push(&mut self, at: Nanos, conn: Conn, received: Nanos, word: u32) {
        self.number += 1;
        self.due.push(Reverse(Due { at, number: self.number, conn, received, word }));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }

    pub(crate) fn next(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse(due)| due.at)
    }

    /// Removes and returns the first response that is due; `None` if none is. The response's connection may have ended.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<Due> {
        self.next().filter(|at| *at <= now)?;
        self.due.pop().map(|Reverse(due)| due)
    }

    /// Removes responses of ended connections if the queue exceeds `most` and twice its length after the last removal.
    pub(crate) fn remove_ended(&mut self, most: usize, is_open: impl Fn(&Due) -> bool) {
        if self.due.len() > most.max(2 * self.kept) {
            self.due.retain(|Reverse(due)| is_open(due));
            self.kept = self.due.len();
        }
    }
}
