//! The state of one connection of the io_uring driver, and its operations in the kernel.

use std::ops::{BitOr, BitOrAssign};
use std::os::fd::OwnedFd;

use super::tag::Kind;
use crate::driver::{CloseReason, Config};
use crate::outgoing::Outgoing;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ops(u8);

impl Ops {
    pub(super) const NONE: Ops = Ops(0);
    pub(super) const RECEIVE: Ops = Ops(1);
    pub(super) const WRITABLE: Ops = Ops(2);
    /// Used while reads are paused, and after the peer's stream has ended, when a receive would
    /// report nothing more.
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
    Closing,
    /// Over. The caller is notified once the kernel has no operations left.
    Finished(CloseReason),
}

#[derive(Debug)]
pub(super) struct Connection {
    /// `None` once closed. The slot stays in use until the event is delivered.
    pub(super) socket: Option<OwnedFd>,
    pub(super) phase: Phase,
    pub(super) armed: Ops,
    pub(super) cancelling: Ops,
    pub(super) queued: bool,
    pub(super) outgoing: Outgoing,
    /// Bytes handed to the kernel in this turn.
    pub(super) sending: usize,
    /// The socket accepts no more bytes for now.
    pub(super) blocked: bool,
    pub(super) end_received: bool,
    pub(super) end_sent: bool,
    pub(super) shut: bool,
    pub(super) notify_when_sent: bool,
    pub(super) paused: bool,
    /// Reason of a failed send. Data received earlier is still delivered.
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

    /// The operations to have, assuming that the kernel takes the bytes handed to it. But reads
    /// paused by unsent bytes resume only once those are sent ([`Connection::is_slow`]).
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

    pub(super) fn shut_if_due(&mut self) {
        if self.end_sent
            && !self.shut
            && let Some(socket) = &self.socket
        {
            // Fails only on a lost connection, whose end will be reported.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
            self.shut = true;
        }
    }

    #[inline]
    pub(super) fn is_slow(&self, config: &Config) -> bool {
        self.outgoing.len() > config.pause_reads_above_bytes
    }

    #[inline]
    pub(super) fn has_to_send(&self) -> bool {
        !self.blocked && !self.outgoing.is_empty() && matches!(self.phase, Phase::Open | Phase::Closing)
    }
}
