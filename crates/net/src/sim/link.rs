//! A simulated connection: its two ends and the data between them.

use std::collections::VecDeque;

use super::peer::Peer;
use crate::driver::{Conn, Nanos};

/// Both ends: 0 is the connecting side, 1 the accepting side.
pub(super) struct Link {
    pub(super) ends: [End; 2],
}

pub(super) enum Who {
    Driver(Conn),
    /// Not accepted by a listener of the driver yet, or not assigned yet.
    Waiting,
    Peer(Box<dyn Peer>),
    /// Closed. Arriving data is answered with a reset.
    Gone,
}

pub(super) struct End {
    pub(super) who: Who,
    pub(super) outgoing: VecDeque<u8>,
    pub(super) stands: bool,
    /// Bytes from this end that are in transit, or arrived but not taken.
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
    pub(super) fn new(who: Who) -> Self {
        Self {
            who,
            outgoing: VecDeque::new(),
            stands: false,
            in_flight: 0,
            arrives: 0,
            end_wanted: false,
            end_sent: false,
            inbox: VecDeque::new(),
            end_arrived: false,
            end_told: false,
            reset_arrived: false,
            stalled_until: 0,
            noted: false,
        }
    }
}
