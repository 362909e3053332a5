//! Channels over TLS 1.3 for nodes that connect to the lab, as under mpirun. The lab creates a certificate and a secret
//! ticket per run ([`Listener`]). A node accepts only the certificate with the fingerprint in its arguments ([`join`]),
//! so that no other machine can give it orders. The ticket authenticates the node. Both sides then use a
//! [`Channel`](crate::Channel).

mod certificate;
mod encrypted_stream;
mod listener;
mod node_side;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub(crate) use certificate::fingerprint;
pub use encrypted_stream::Why;
pub use listener::{Event, Listener, REFUSALS_TOLD};
pub use node_side::{JoinError, join};

/// Maximum length of a connection's first line in bytes, including its end.
const LINE_MAX: usize = 1024;

/// First line that a node sends. The lab replies with a `Result`; its error is the reason for refusing the node.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Join {
    /// Number of the node in the cluster, from 0.
    rank: u32,
    /// Secret from [`Listener::ticket`], which proves that the node belongs to the run.
    ticket: String,
}
