//! The first line of each side.

use serde::{Deserialize, Serialize};

/// The longest first line, bytes, with its end.
pub(super) const LINE_MAX: usize = 1024;

/// The first line of a node.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Asked {
    /// It wants to be the node of a rank.
    Join(Join),
}

/// Which node this is, and that it is one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Its number in the cluster, from 0.
    pub rank: u32,
    /// [`super::Listener::ticket`].
    pub ticket: String,
}

/// The first line of the lab.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The channel is open.
    Joined {},
    /// It is not, for this reason.
    Refused(String),
}
