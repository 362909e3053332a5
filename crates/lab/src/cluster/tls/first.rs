//! The first line of each side of a connection.

use serde::{Deserialize, Serialize};

/// Maximum length of a first line including its end, bytes.
pub(super) const LINE_MAX: usize = 1024;

/// First line of a node.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Asked {
    /// Requests to join with a rank.
    Join(Join),
}

/// Identity of a node and proof that it belongs to the run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Its number in the cluster, from 0.
    pub rank: u32,
    /// [`super::Listener::ticket`].
    pub ticket: String,
}

/// First line of the lab.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The channel is open.
    Joined {},
    /// The lab refuses the node, for this reason.
    Refused(String),
}
