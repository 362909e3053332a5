//! Servers in containers and companions: what each used, and where a server spent its time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MedianRange;

/// A server or a companion over the trials of a row; values that no trial has are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Where the server of a design point spent its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileFinding {
    /// The design point.
    pub label: String,
    /// What was sampled; empty: nothing.
    pub event: String,
    /// Number of samples.
    pub samples: u64,
    /// Functions with the largest part of all samples in themselves, with that part, a fraction.
    pub hottest: Vec<(String, f64)>,
    /// File of the flame graph, beside the page; `None`: there is none.
    pub file: Option<String>,
    /// Why there is no profile, or not a whole one.
    pub refused: Option<String>,
}
