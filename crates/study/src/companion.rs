//! Planned companions: processes that a server needs, such as a database or a cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::process::ProcessPlan;

/// How to build and start a companion. The lab fills `{port}`, its port, in `command` and `environment`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompanionPlan {
    /// Its name; `{NAME_port}` in the command and environment of the server is its port.
    pub name: String,
    /// How it is built, started and stopped.
    #[serde(flatten)]
    pub process: ProcessPlan,
    /// CPUs of its own.
    pub cpus: u32,
    /// Whether it is started for each trial. Otherwise it runs on for all trials that need the same.
    pub fresh: bool,
}
