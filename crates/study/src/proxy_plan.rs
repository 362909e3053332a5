//! Planned proxies: processes between the generator and the server.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::process_plan::ProcessPlan;

/// Name of the factor whose level selects the proxies of a design point.
pub const THROUGH: &str = "through";
/// Level of [`THROUGH`] without proxies.
pub const DIRECT: &str = "direct";

/// How a proxy is built and started. In its command, environment and files, the lab fills in `{port}` (the proxy's),
/// `{next_port}` (the next proxy's or the server's), `{subject_port}` and `{second_port}` (the server's),
/// `{admin_port}`, `{peer_port}` and `{second_peer_port}` (further free ports) and `{folder}` (the proxy's directory).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyPlan {
    /// Name of the proxy in the levels of the factor `through`.
    pub name: String,
    /// How the proxy is built, started and stopped.
    #[serde(flatten)]
    pub process: ProcessPlan,
    /// Files of the proxy's directory, each with its template in the study's directory. Templates may name factors.
    pub files: BTreeMap<String, String>,
    /// Name of the call log that the proxy writes to its directory ([`crate::Calls`]); `None` for no log.
    pub calls: Option<String>,
    /// Number of CPUs reserved for the proxy; 0 if it shares the server's.
    pub cpus: u32,
}
