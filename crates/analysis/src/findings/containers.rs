//! Servers in containers and companions: what each used.

use schemars::JsonSchema;
use serde::Serialize;

use super::MedianRange;

/// A server or a companion over the trials of a row; values that no trial has are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostedFinding {
    /// The design point.
    pub label: String,
    /// Name of the companion; `None`: it is the server.
    pub companion: Option<String>,
    /// `process`, or the engine and the image.
    pub runs_as: String,
    /// Time from its start until it listened, ns.
    pub ready_ns: Option<MedianRange>,
    /// CPU time per request, ns.
    pub cpu_per_request_ns: Option<MedianRange>,
    /// Peak resident memory of its processes, bytes.
    pub rss_max_bytes: Option<MedianRange>,
    /// Peak of what its control group was charged with, bytes.
    pub charged_max_bytes: Option<MedianRange>,
    /// Read from and written to block devices while measured, by its control group, bytes.
    pub io_bytes: Option<MedianRange>,
}
