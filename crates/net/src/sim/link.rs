//! A simulated connection: its two ends and the data between them.

use std::collections::VecDeque;

use super::peer::Peer;
use crate::driver::{Conn, Nanos};

/// Both ends: 0 is the connecting side, 1 the accepting side.
pub(super) struct Link {
    pub(super) ends: [End; 2],
}

/// The owner of an end.
pub(super) enum Who {
    /// A connection of the driver.
    Driver(Conn),
    /// Not accepted by a listener of the driver yet, or not assigned yet.
    Waiting,
    Peer(Box<dyn Peer>),
    /// Closed. Arriving data is answered with a reset.
    Gone,
}

pub(super) struct End {
    pub(super) who: Who,
    /// Written, but not in transit yet.
    pub(super) outgoing: VecDeque<u8>,
    /// Whether the handshake is complete, so that bytes can travel.
    pub(super) stands: bool,
    /// Bytes from this end that are in transit, or arrived but not taken.
    pub(super) in_flight: usize,
    /// Arrival time of the latest item from this end.
    pub(super) arrives: Nanos,
    /// Whether writing has ended. The end follows once `outgoing` is empty.
    pub(super) end_wanted: bool,
    pub(super) end_sent: bool,
    /// Arrived at this end and not taken yet.
    pub(super) inbox: VecDeque<u8>,
    pub(super) end_arrived: bool,
    /// Whether the owner was notified of the other side's end.
    pub(super) end_told: bool,
    pub(super) reset_arrived: bool,
    /// A stalled peer takes nothing before this time.
    pub(super) stalled_until: Nanos,
    /// Whether the driver has a note that there is something to read.
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
