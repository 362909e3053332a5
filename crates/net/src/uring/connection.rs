//! The state of a connection of the io_uring driver.

use std::os::fd::OwnedFd;

use super::tag::Kind;
use crate::driver::{CloseReason, Config};
use crate::outgoing::Outgoing;

/// A set of operations that stay in the kernel, one bit per kind.
pub(super) type Operations = u8;

pub(super) const fn operation(kind: Kind) -> Operations {
    1 << kind as u8
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Connecting,
    Open,
    Closing,
    /// Closed; the caller is notified once the kernel has no operations left.
    Finished(CloseReason),
}

#[derive(Debug, Default)]
pub(super) struct Connection {
    /// The socket; `None` once closed. The slot stays in use until the last event is delivered.
    pub(super) socket: Option<OwnedFd>,
    pub(super) phase: Phase,
    pub(super) armed: Operations,
    pub(super) cancelling: Operations,
    pub(super) queued: bool,
    pub(super) outgoing: Outgoing,
    /// Number of bytes handed to the kernel in this turn.
    pub(super) sending: usize,
    /// Whether the socket accepts no more bytes for now.
    pub(super) blocked: bool,
    pub(super) end_received: bool,
    pub(super) end_sent: bool,
    pub(super) shut: bool,
    pub(super) notify_when_sent: bool,
    pub(super) paused: bool,
    /// Why a send failed; `None` if no send failed. Data received earlier is still delivered.
    pub(super) broken: Option<CloseReason>,
}

impl Connection {
    /// The operations that the kernel should have, assuming that it takes the bytes handed to it. Reads that were
    /// paused because of unsent bytes resume only once these bytes are sent ([`Connection::is_slow`]).
    pub(super) fn wanted(&self, config: &Config) -> Operations {
        // Used while reads are paused, and after the peer's stream has ended, when a receive would report nothing more.
        const HANG_UP: Operations = operation(Kind::HangUp);
        let notify_when_sent = self.notify_when_sent && self.phase == Phase::Open && self.broken.is_none();
        let writable = if self.blocked || notify_when_sent { operation(Kind::Writable) } else { 0 };
        match self.phase {
            Phase::Connecting => operation(Kind::Writable),
            Phase::Open if self.end_received => writable | HANG_UP,
            Phase::Open if self.is_slow(config) => writable,
            Phase::Open if self.paused => writable | HANG_UP,
            Phase::Open => writable | operation(Kind::Receive),
            Phase::Closing => writable,
            Phase::Finished(_) => 0,
        }
    }

    pub(super) fn shut_if_due(&mut self) {
        if self.end_sent
            && !self.shut
            && let Some(socket) = &self.socket
        {
            // This fails only on a lost connection, whose end will be reported.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
            self.shut = true;
        }
    }

    pub(super) fn is_slow(&self, config: &Config) -> bool {
        self.outgoing.len() > config.pause_reads_above_bytes
    }
}
