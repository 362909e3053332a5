//! One connection of the io_uring driver: what it waits for, and what the kernel does for it.

use std::ops::{BitOr, BitOrAssign};
use std::os::fd::OwnedFd;

use super::tag::Kind;
use crate::driver::{CloseReason, Config};
use crate::outgoing::Outgoing;

/// Operations that stay in the kernel: at most one of each kind for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ops(u8);

impl Ops {
    pub(super) const NONE: Ops = Ops(0);
    /// Receive.
    pub(super) const RECEIVE: Ops = Ops(1);
    /// Tell when the socket takes bytes, or the connection stands.
    pub(super) const WRITABLE: Ops = Ops(2);
    /// Tell when the connection is over: asked when the peer's stream has ended and receiving would say nothing more, and
    /// while nothing is to be received.
    pub(super) const HANG_UP: Ops = Ops(4);

    pub(super) const EACH: [(Ops, Kind); 3] =
        [(Self::RECEIVE, Kind::Receive), (Self::WRITABLE, Kind::Writable), (Self::HANG_UP, Kind::HangUp)];

    #[inline]
    pub(super) fn has(self, op: Ops) -> bool {
        self.0 & op.0 != 0
    }

    pub(super) fn remove(&mut self, op: Ops) {
        self.0 &= !op.0;
    }
}

impl BitOr for Ops {
    type Output = Ops;
    fn bitor(self, other: Ops) -> Ops {
        Ops(self.0 | other.0)
    }
}

impl BitOrAssign for Ops {
    fn bitor_assign(&mut self, other: Ops) {
        self.0 |= other.0;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    Open,
    /// The caller closed; what waits is being sent.
    Closing,
    /// Over; the caller is told when the kernel has let go.
    Finished(CloseReason),
}

#[derive(Debug)]
pub(super) struct Connection {
    /// `None` once closed; the slot is kept until the caller was told.
    pub(super) socket: Option<OwnedFd>,
    pub(super) phase: Phase,
    /// What the kernel does.
    pub(super) armed: Ops,
    /// Of `armed`, what it was asked to end.
    pub(super) cancelling: Ops,
    /// The kernel is to be told of a change in the next turn.
    pub(super) queued: bool,
    pub(super) outgoing: Outgoing,
    /// How many of the bytes in `outgoing` were handed to the kernel in this turn.
    pub(super) sending: usize,
    /// The socket takes no more for now.
    pub(super) blocked: bool,
    /// The peer's stream has ended.
    pub(super) end_received: bool,
    /// The caller's stream ends when `outgoing` is empty.
    pub(super) end_sent: bool,
    /// And now it has.
    pub(super) shut: bool,
    /// The caller is to be told when `outgoing` is empty and the socket takes more.
    pub(super) notify_when_sent: bool,
    /// The caller wants to receive nothing.
    pub(super) paused: bool,
    /// A send failed: what was received before is still delivered, then the connection ends for this reason.
    pub(super) broken: Option<CloseReason>,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, phase: Phase) -> Self {
        Self {
            socket: Some(socket),
            phase,
            armed: Ops::NONE,
            cancelling: Ops::NONE,
            queued: false,
            outgoing: Outgoing::default(),
            sending: 0,
            blocked: false,
            end_received: false,
            end_sent: false,
            shut: false,
            notify_when_sent: false,
            paused: false,
            broken: None,
        }
    }

    /// What the kernel should do now, granted that it takes what it is being handed; but reads that pause for what is to
    /// be sent go on only when it has been sent ([`Connection::is_slow`]).
    #[inline]
    pub(super) fn wanted(&self, config: &Config) -> Ops {
        let notify_when_sent = self.notify_when_sent && self.phase == Phase::Open && self.broken.is_none();
        let writable = if self.blocked || notify_when_sent { Ops::WRITABLE } else { Ops::NONE };
        match self.phase {
            Phase::Connecting => Ops::WRITABLE,
            Phase::Open if self.end_received => writable | Ops::HANG_UP,
            Phase::Open if self.is_slow(config) => writable,
            Phase::Open if self.paused => writable | Ops::HANG_UP,
            Phase::Open => writable | Ops::RECEIVE,
            Phase::Closing => writable,
            Phase::Finished(_) => Ops::NONE,
        }
    }

    /// Ends the stream if the caller wants that and all is sent.
    pub(super) fn shut_if_due(&mut self) {
        if self.end_sent
            && !self.shut
            && let Some(socket) = &self.socket
        {
            // It fails only on a connection that is gone, whose end is on the way.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
            self.shut = true;
        }
    }

    /// Whether so much is to be sent that nothing is read meanwhile.
    #[inline]
    pub(super) fn is_slow(&self, config: &Config) -> bool {
        self.outgoing.len() > config.pause_reads_above_bytes
    }

    /// Whether the next turn should hand bytes to the kernel.
    #[inline]
    pub(super) fn has_to_send(&self) -> bool {
        !self.blocked && !self.outgoing.is_empty() && matches!(self.phase, Phase::Open | Phase::Closing)
    }
}
