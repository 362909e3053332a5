//! One end of a simulated connection: its owner, and the bytes in both directions.

use std::collections::VecDeque;

use super::peer::Peer;
use crate::driver::{Conn, Nanos};

#[derive(Default)]
pub(super) enum Owner {
    Driver(Conn),
    /// No listener of the driver has accepted the connection yet, or this end has no owner yet.
    #[default]
    Waiting,
    Peer(Box<dyn Peer>),
    /// Closed; arriving data is answered with a reset.
    Gone,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Connecting,
    Open,
    Closing,
    Finished,
}

#[derive(Default)]
pub(super) struct End {
    pub(super) who: Owner,
    /// The phase of the driver's connection, if the driver owns this end; its settings follow.
    pub(super) phase: Phase,
    pub(super) notify_when_sent: bool,
    pub(super) paused: bool,
    pub(super) outgoing: VecDeque<u8>,
    pub(super) stands: bool,
    /// Number of bytes from this end that are in transit, or have arrived but have not been taken yet.
    pub(super) in_flight: usize,
    pub(super) arrives: Nanos,
    pub(super) end_wanted: bool,
    pub(super) end_sent: bool,
    pub(super) inbox: VecDeque<u8>,
    pub(super) end_arrived: bool,
    pub(super) end_told: bool,
    pub(super) reset_arrived: bool,
    pub(super) stalled_until: Nanos,
    pub(super) noted: bool,
}

impl End {
    /// Whether reading is paused; a reset is reported even then.
    pub(super) fn is_paused(&self, outgoing_max: usize) -> bool {
        (self.paused || self.outgoing.len() > outgoing_max) && !self.reset_arrived
    }

    pub(super) fn is_to_be_told_sent(&self) -> bool {
        let is_sent = self.stands && self.outgoing.is_empty() && !self.reset_arrived;
        is_sent && self.notify_when_sent && self.phase == Phase::Open
    }
}

/// Removes and returns the first `count` bytes. Copies whole slices, because unoptimized tests are slow.
pub(super) fn pop(queue: &mut VecDeque<u8>, count: usize) -> Vec<u8> {
    let bytes = queue.make_contiguous()[..count].to_vec();
    queue.drain(..count);
    bytes
}
