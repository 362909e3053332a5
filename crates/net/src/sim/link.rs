//! One simulated connection: two ends and what is between them.

use std::collections::VecDeque;

use super::peer::Peer;
use crate::driver::{Conn, Nanos};

/// The two ends: 0 connected, 1 was connected to.
pub(super) struct Link {
    pub(super) ends: [End; 2],
}

/// Who is at an end.
pub(super) enum Who {
    /// A connection of the driver.
    Driver(Conn),
    /// A listener of the driver, which has not accepted yet; or nobody knows yet.
    Waiting,
    Peer(Box<dyn Peer>),
    /// Nobody any more: what arrives is answered by a reset.
    Gone,
}

pub(super) struct End {
    pub(super) who: Who,
    /// Written here, not yet on its way.
    pub(super) outgoing: VecDeque<u8>,
    /// The handshake is over, so bytes may travel.
    pub(super) stands: bool,
    /// Bytes from here that are on their way, or there and not taken.
    pub(super) in_flight: usize,
    /// When the latest thing from here arrives.
    pub(super) arrives: Nanos,
    /// No more is written here; the end is on its way once `outgoing` is empty.
    pub(super) end_wanted: bool,
    pub(super) end_sent: bool,
    /// Arrived here, not yet taken.
    pub(super) inbox: VecDeque<u8>,
    pub(super) end_arrived: bool,
    /// The owner has been told of the other side's end.
    pub(super) end_told: bool,
    pub(super) reset_arrived: bool,
    /// A peer takes nothing before this time.
    pub(super) stalled_until: Nanos,
    /// The driver has a note that there is something to take.
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
