//! Middles: processes that stand between generator and subject, as planned and as they were.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::plan::Point;
use crate::record::{Record, SubjectUse};

/// The factor whose level says which middles the requests of a design point pass.
pub const THROUGH: &str = "through";
/// Its level where they pass none.
pub const DIRECT: &str = "direct";

/// How to build and start a middle.
///
/// In `command`, `environment` and the files these templates are left, which the lab fills in: `{port}` where it listens, `{next_port}`
/// where what stands behind it listens (the next middle, or the subject), `{subject_port}` and `{second_port}` where the subject does,
/// `{admin_port}` and `{peer_port}` two more free ports of its own, `{folder}` a folder that it has for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MiddlePlan {
    /// Its name, which the levels of the factor `through` use.
    pub name: String,
    /// Build command, run once before the first trial.
    pub build: Option<String>,
    /// Command.
    pub command: String,
    /// Working directory, relative to the folder that `run` was started in.
    pub directory: Option<String>,
    /// Environment.
    pub environment: BTreeMap<String, String>,
    /// Files that it finds in its folder: name, and the file that it is made of, relative to the folder that `run` was started in.
    /// Templates in it are filled in, those of factors too.
    pub files: BTreeMap<String, String>,
    /// The file in its folder that it writes a line for each call into ([`Calls`]).
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

/// What a middle used, and what passed through it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MiddleUse {
    /// Its name.
    pub name: String,
    /// The same as is known of a subject.
    pub used: SubjectUse,
    /// Whether its processors are the subject's.
    pub shares_cpus: bool,
    /// Wall time from its start to its first answer on the port, ns; `None` if never ready.
    pub ready_ns: Option<u64>,
    /// Bytes that passed its sockets while measured, or from its beginning to a moment within; `None`: they could not be read in full.
    pub wire: Option<WireUse>,
    /// What it wrote of its calls, where the study asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Box<Calls>>,
}

/// TCP payload of a middle, both ways, while measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireUse {
    /// Of the connections that it accepted, bytes.
    pub front_bytes: u64,
    /// Of its connections to what stands behind it, bytes.
    pub back_bytes: u64,
}

impl Point {
    /// The levels of every factor but `through`: what a point through middles has in common with the point at `direct` that it is held
    /// against.
    pub fn besides_through(&self) -> BTreeMap<&str, &crate::plan::Level> {
        let rest = self.factors.iter().filter(|(name, _)| *name != THROUGH);
        rest.map(|(name, level)| (name.as_str(), level)).collect()
    }
}

impl Record {
    /// CPU time of all middles while measured, ns; `None` without one.
    pub fn middle_cpu_ns(&self) -> Option<u64> {
        let used = |middle: &MiddleUse| middle.used.user_ns.saturating_add(middle.used.system_ns);
        (!self.middles.is_empty()).then(|| self.middles.iter().map(used).fold(0, u64::saturating_add))
    }

    /// What the first middle that writes its calls wrote: the one next to the generator.
    pub fn calls(&self) -> Option<&Calls> {
        self.middles.iter().find_map(|middle| middle.calls.as_deref())
    }
}
