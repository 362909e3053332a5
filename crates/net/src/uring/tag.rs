//! Tags of operations: the kind and the connection or listener.

use crate::driver::Conn;

/// Kind of an operation. Zero is reserved for the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Receive = 1,
    Writable = 2,
    HangUp = 3,
    Send = 4,
    Accept = 5,
    Wake = 6,
}

/// Maximum number of slots: the upper 4 bits of a tag hold the kind.
pub(super) const SLOTS_MAX: usize = 1 << 28;

pub(super) fn connection_tag(kind: Kind, conn: Conn) -> u64 {
    (kind as u64) << 60 | u64::from(conn.slot) << 32 | u64::from(conn.generation)
}

pub(super) fn listener_tag(index: u32) -> u64 {
    connection_tag(Kind::Accept, Conn { slot: index, generation: 0 })
}

pub(super) const WAKE: u64 = (Kind::Wake as u64) << 60;

pub(super) fn is_send(tag: u64) -> bool {
    tag >> 60 == Kind::Send as u64
}

/// Splits a tag into its kind and connection. For a listener, the slot is its index.
pub(super) fn split(tag: u64) -> (Kind, Conn) {
    const KINDS: [Kind; 6] = [Kind::Receive, Kind::Writable, Kind::HangUp, Kind::Send, Kind::Accept, Kind::Wake];
    let kind = KINDS[(tag >> 60) as usize - 1];
    (kind, Conn { slot: (tag >> 32) as u32 & (SLOTS_MAX as u32 - 1), generation: tag as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_round_trips() {
        let conn = Conn { slot: SLOTS_MAX as u32 - 1, generation: u32::MAX };
        for kind in [Kind::Receive, Kind::Writable, Kind::HangUp, Kind::Send, Kind::Accept, Kind::Wake] {
            assert_eq!(split(connection_tag(kind, conn)), (kind, conn));
            assert_eq!(is_send(connection_tag(kind, conn)), kind == Kind::Send);
        }
        assert_eq!(split(listener_tag(7)), (Kind::Accept, Conn { slot: 7, generation: 0 }));
    }
}
