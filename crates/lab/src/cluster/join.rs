//! Channels over TLS 1.3 for nodes that join over the network, as under mpirun. The lab creates a certificate and a
//! ticket per run ([`Listener`]). The node's arguments have the public fingerprint, and the node ([`join`]) accepts
//! only that certificate, so that no other machine can give it orders. The secret ticket authenticates the node. After
//! joining, both sides have [`Pipes`], whose users do not handle TLS.

mod certificate;
mod handshake_and_first_line;
mod listener;
mod node_side;
#[cfg(test)]
mod tests;
mod tls_pipe_pump;

use std::fs::File;

use serde::{Deserialize, Serialize};

pub(crate) use certificate::fingerprint;
pub use handshake_and_first_line::Why;
pub use listener::{Event, Joining, Listener, REFUSALS_TOLD};
pub use node_side::{JoinError, join};

/// Two pipes in place of a connection. Closing both, or `input`, ends the other side once everything written has been
/// sent. If the other side ends or is unreachable for 5 s, `input` ends and writes to `output` fail.
#[derive(Debug)]
pub struct Pipes {
    /// Data from the other side.
    pub input: File,
    /// Data to the other side. Closing only this ends the input of the other side.
    pub output: File,
}

/// Maximum length of a first line including its end, bytes.
const LINE_MAX: usize = 1024;

/// First line of a node. The lab's is a `Result`: the channel is open, or why the lab refuses the node.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Join {
    /// Its number in the cluster, from 0.
    rank: u32,
    /// [`Listener::ticket`], which proves that the node belongs to the run.
    ticket: String,
}
