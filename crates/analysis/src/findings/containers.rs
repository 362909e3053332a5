//! Findings about servers and companions in containers.

use schemars::JsonSchema;
use serde::Serialize;

use super::MedianRange;

/// Resource usage of a server or a companion over the trials of a row. A value that no trial has is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostedFinding {
    /// Label of the design point at which the program ran.
    pub label: String,
    /// Name of the companion; `None` if this is the server.
    pub companion: Option<String>,
    /// How the program runs: `process`, or the engine and the image of the container.
    pub runs_as: String,
    /// Time from start until the program listened, ns; `null` if unknown.
    pub ready_ns: Option<MedianRange>,
    /// CPU time of the program per request of the load, ns; `null` if unknown.
    pub cpu_per_request_ns: Option<MedianRange>,
    /// Peak resident memory of the program's processes, bytes; `null` if unknown.
    pub rss_max_bytes: Option<MedianRange>,
    /// Peak memory charged to the container's control group, bytes; `null` if unknown.
    pub charged_max_bytes: Option<MedianRange>,
    /// Block device reads and writes of the container's control group while measuring, bytes; `null` if unknown.
    pub io_bytes: Option<MedianRange>,
}
