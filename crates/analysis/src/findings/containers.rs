use schemars::JsonSchema;
use serde::Serialize;

use super::MedianRange;

/// A server or a companion over the trials of a row. Values that no trial has are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostedFinding {
    /// The design point.
    pub label: String,
    /// Name of the companion; `None` for the server.
    pub companion: Option<String>,
    /// `process`, or the engine and the image.
    pub runs_as: String,
    /// Time from start until it listened, ns.
    pub ready_ns: Option<MedianRange>,
    /// CPU time per request, ns.
    pub cpu_per_request_ns: Option<MedianRange>,
    /// Peak resident memory of its processes, bytes.
    pub rss_max_bytes: Option<MedianRange>,
    /// Peak memory charged to its control group, bytes.
    pub charged_max_bytes: Option<MedianRange>,
    /// Block device reads and writes of its control group while measuring, bytes.
    pub io_bytes: Option<MedianRange>,
}
