//! Companions: what a server needs beside it, a database or a cache, as planned.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::container::ContainerPlan;

/// How to build and start a companion.
///
/// In `command` and `environment` the lab fills in `{port}`, where it listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompanionPlan {
    /// Its name; `{NAME_port}` in the command and environment of the server is its port.
    pub name: String,
    /// Build command, run once before the first trial.
    pub build: Option<String>,
    /// Command, of a container the arguments.
    pub command: String,
    /// The container that it runs in; `None`: it is a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerPlan>,
    /// Working directory, relative to that of `run`.
    pub directory: Option<String>,
    /// Environment.
    pub environment: BTreeMap<String, String>,
    /// CPUs of its own.
    pub cpus: u32,
    /// The port; `None`: a free one.
    pub port: Option<u16>,
    /// Whether it is started for each trial, or once and kept for all that need the same.
    pub fresh: bool,
    /// Time limit to listen on its port, ns.
    pub ready_timeout_ns: u64,
    /// Time limit to exit after SIGTERM, ns.
    pub stop_timeout_ns: u64,
}
