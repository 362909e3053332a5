//! Planned proxies: processes between generator and server.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::process_plan::ProcessPlan;

/// The factor whose level selects the proxies of a design point.
pub const THROUGH: &str = "through";
/// Its level without proxies.
pub const DIRECT: &str = "direct";

/// How to build and start a proxy. The lab fills these templates in `command`, `environment` and files: `{port}`, its
/// port; `{next_port}`, the port of the next proxy or the server; `{subject_port}` and `{second_port}`, the server's
/// ports; `{admin_port}`, `{peer_port}` and `{second_peer_port}`, further free ports; `{folder}`, its own
/// directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyPlan {
    /// Its name in the levels of the factor `through`.
    pub name: String,
    /// How it is built, started and stopped.
    #[serde(flatten)]
    pub process: ProcessPlan,
    /// Files in its directory by name: templates relative to the study's directory, which may also name factors.
    pub files: BTreeMap<String, String>,
    /// The log of calls in its directory ([`crate::Calls`]).
    pub calls: Option<String>,
    /// Number of its own CPUs; 0 if it shares the server's.
    pub cpus: u32,
}
