//! A channel of lines over TCP for nodes that join by the network, as they do under mpirun: TLS 1.3 always.
//!
//! The lab makes a certificate and a ticket for each run ([`Listener`]). The certificate's fingerprint is no secret and goes with the node's arguments; the node
//! ([`join`]) accepts that certificate and no other, so that nobody else can give it orders. The ticket is the secret by which the lab
//! knows its nodes. Once a node has joined, both sides have [`Pipes`], and nothing behind them needs to know of TLS.

mod certificate;
mod first;
mod join;
mod listener;
mod opening;
mod pump;
#[cfg(test)]
mod tests;

use std::fs::File;

pub use first::{Answer, Asked, Join};
pub use join::{JoinError, join};
pub use listener::{Event, Joining, Listener, REFUSALS_TOLD, Refusal, Why};

/// Two plain pipes in place of a connection. When both are closed here, or `input` is, the other side's ends too, after all that was written has been
/// sent; when the other side has ended or cannot be reached for 5 s, `input` is at its end and writing to `output` fails.
#[derive(Debug)]
pub struct Pipes {
    /// What the other side writes.
    pub input: File,
    /// What the other side reads. Closed alone, it is the end of what the other side reads, and no more.
    pub output: File,
}
