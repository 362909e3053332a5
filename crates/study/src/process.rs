use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::container::ContainerPlan;

/// How a server, a proxy or a companion is built, started and stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessPlan {
    /// Build command, run once before the first trial.
    pub build: Option<String>,
    /// Command, or the arguments of a container. The lab fills the templates left in it.
    pub command: String,
    /// The container that it runs in; `None` for a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerPlan>,
    /// Working directory, relative to the study's.
    pub directory: Option<String>,
    /// Environment.
    pub environment: BTreeMap<String, String>,
    /// The port; `None`: any free port.
    pub port: Option<u16>,
    /// Time limit to listen on its port, ns.
    pub ready_timeout_ns: u64,
    /// Time limit to exit after SIGTERM, ns.
    pub stop_timeout_ns: u64,
}
