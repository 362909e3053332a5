//! Planned companions: processes that a server needs, such as a database or a cache.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::container::ContainerPlan;

/// How to build and start a companion.
///
/// The lab fills `{port}`, its port, in `command` and `environment`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompanionPlan {
    /// Its name; `{NAME_port}` in the command and environment of the server is its port.
    pub name: String,
    /// Build command, run once before the first trial.
    pub build: Option<String>,
    /// Command, or the arguments of a container.
    pub command: String,
    /// The container that it runs in; `None` for a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerPlan>,
    /// Working directory, relative to the working directory of `run`.
    pub directory: Option<String>,
    /// Environment.
    pub environment: BTreeMap<String, String>,
    /// CPUs of its own.
    pub cpus: u32,
    /// The port; `None` for a free one.
    pub port: Option<u16>,
    /// Whether it is started for each trial. Otherwise it runs on for all trials that need the
    /// same.
    pub fresh: bool,
    /// Time limit to listen on its port, ns.
    pub ready_timeout_ns: u64,
    /// Time limit to exit after SIGTERM, ns.
    pub stop_timeout_ns: u64,
}
