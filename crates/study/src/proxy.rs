//! Proxies: processes that stand between generator and subject, as planned.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The factor whose level says which proxies the requests of a design point pass.
pub const THROUGH: &str = "through";
/// Its level where they pass none.
pub const DIRECT: &str = "direct";

/// How to build and start a proxy.
///
/// In `command`, `environment` and the files these templates are left, which the lab fills in: `{port}` where it listens, `{next_port}`
/// where what stands behind it listens (the next proxy, or the subject), `{subject_port}` and `{second_port}` where the subject does,
/// `{admin_port}`, `{peer_port}` and `{second_peer_port}` more free ports of its own, `{folder}` a folder that it has for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyPlan {
    /// Its name, which the levels of the factor `through` use.
    pub name: String,
    /// Build command, run once before the first trial.
    pub build: Option<String>,
    /// Command.
    pub command: String,
    /// Working directory, relative to the study's directory.
    pub directory: Option<String>,
    /// Environment.
    pub environment: BTreeMap<String, String>,
    /// Files that it finds in its folder: name, and the file that it is made of, relative to the study's directory.
    /// Templates in it are filled in, those of factors too.
    pub files: BTreeMap<String, String>,
    /// The file in its folder that it writes a line for each call into ([`crate::Calls`]).
    pub calls: Option<String>,
    /// Processors of its own; 0: it shares those of the subject.
    pub cpus: u32,
    /// The port; `None`: a free one.
    pub port: Option<u16>,
    /// It must answer on its port within this, ns.
    pub ready_timeout_ns: u64,
    /// It must end within this after SIGTERM, ns.
    pub stop_timeout_ns: u64,
}
