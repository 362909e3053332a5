//! What the load engine is told: one JSON object, from the lab to the generator's process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of [`LoadSpec`] and of [`crate::record::Measurement`] that this build speaks.
pub const SPEC_VERSION: u32 = 1;

/// One load: who is asked, by how many, how fast, how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// [`SPEC_VERSION`].
    pub version: u32,
    /// Whom to ask.
    pub target: Target,
    /// Connections, over all threads.
    pub clients: u32,
    /// Workers, each a thread with its own event loop.
    pub threads: u32,
    /// Worker `i` is pinned to `cpus[i % cpus.len()]`; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Which door to the kernel.
    pub backend: Backend,
    /// When requests are meant to be sent.
    pub arrivals: Arrivals,
    /// What is done before measuring starts.
    pub warmup: Warmup,
    /// When measuring ends.
    pub stop: Stop,
    /// Length of a window, ns.
    pub window_ns: u64,
    /// An answer later than this is counted as a timeout; its latency is kept when it still comes, ns.
    pub timeout_ns: u64,
    /// Open loop: so long before an intended send a worker polls instead of sleeping, ns; 0 where it would take the
    /// processor from the subject.
    pub spin_ns: u64,
    /// Seed of everything random: challenges, arrivals.
    pub seed: u64,
}

/// Whom to ask: a protocol and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "protocol", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// Volley's ping-pong of 32-bit words.
    Pingpong {
        /// `host:port`, resolved by the generator's process.
        address: String,
    },
}

impl Target {
    /// The protocol's name, the scheme of its URL.
    pub fn protocol(&self) -> &'static str {
        match self {
            Target::Pingpong { .. } => "pingpong",
        }
    }
}

/// Which backend of `net` the generator uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The best one that this kernel has, as measured; the record names it.
    #[default]
    Auto,
    /// Readiness.
    Epoll,
    /// Completions.
    IoUring,
}

/// When requests are meant to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "loop", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// Closed loop: each client sends when it has its answer and has thought for so long.
    Closed {
        /// Think time, ns.
        think_ns: u64,
    },
    /// Open loop, exponential gaps: requests over all clients, a second.
    Poisson {
        /// Offered rate, per second.
        rate_per_s: f64,
    },
    /// Open loop, equal gaps.
    Constant {
        /// Offered rate, per second.
        rate_per_s: f64,
    },
}

impl Arrivals {
    /// The rate that is offered, per second; `None` in a closed loop.
    pub fn offered_per_s(&self) -> Option<f64> {
        match *self {
            Arrivals::Closed { .. } => None,
            Arrivals::Poisson { rate_per_s } | Arrivals::Constant { rate_per_s } => Some(rate_per_s),
        }
    }
}

/// What is done before measuring starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// So long, ns.
    DurationNs(u64),
    /// So many requests, over all clients.
    Requests(u64),
}

/// When measuring ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Stop {
    /// After so long.
    Duration {
        /// Nanoseconds.
        duration_ns: u64,
    },
    /// After so many valid answers.
    Requests {
        /// Over all clients.
        requests: u64,
        /// At the latest then, ns.
        max_ns: u64,
    },
    /// When the batch-means interval of the mean latency is this narrow.
    Interval {
        /// Half-width over mean.
        relative: f64,
        /// Level of confidence, a fraction.
        level: f64,
        /// At the latest then, ns.
        max_ns: u64,
    },
    /// Volley's own rule. It counts its priming round, so there is no warm-up.
    Volley {
        /// Iterations of a round, over all clients, at most (volley: 1,000,000).
        round_requests: u64,
        /// Half-width that is good enough, ns (volley: 5,000).
        half_width_ns: u64,
        /// At the latest then, ns (volley: 3 minutes).
        max_ns: u64,
    },
}
