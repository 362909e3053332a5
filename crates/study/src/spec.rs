//! What the load engine is told: one JSON object, from the lab to the generator's process.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::journey::Journey;
pub use crate::protocol::{Dialect, Protocol};
use crate::workload::Workload;

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
    /// Requests in flight on one connection at most; more than one where the protocol knows pipelining.
    #[serde(default = "one")]
    pub pipeline: u32,
    /// How long a connection is used.
    #[serde(default)]
    pub connection: Connection,
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
    /// HTTP/1.1.
    Http {
        /// `host:port`, resolved by the generator's process, or `unix:` and the path of a socket.
        address: String,
        /// What is asked, drawn by weight; one at least.
        requests: Vec<HttpRequest>,
        /// With it, the connection is encrypted (https).
        #[serde(default)]
        tls: Option<Tls>,
        /// Which answers are right.
        #[serde(default)]
        expect: Expect,
    },
    /// A cache, asked by a workload. Every value that comes back is verified.
    Cache {
        /// `host:port`, resolved by the generator's process, or `unix:` and the path of a socket.
        address: String,
        /// How it is spoken to.
        dialect: Dialect,
        /// What it is asked. Each worker draws a partition of it: one seed and one number of threads are one stream of operations,
        /// whatever the cache answers.
        workload: Box<Workload>,
    },
    /// A journey of several operations, what replies say going into later requests. Every reply is verified. Each client is a cursor with a connection for
    /// each endpoint that it comes to; requests are counted by call, and of a number of requests whole journeys are made.
    Journey {
        /// What each client does, again and again.
        journey: Box<Journey>,
        /// URLs of its targets by name, instead of those that the journey has.
        #[serde(default)]
        targets: BTreeMap<String, String>,
        /// `http://host:port` of whom to ask where an endpoint is to be dialled: `GET /resolve?endpoint=URL` gives `{"address": "ip:port"}`, or 404 for dialling
        /// what the URL says. `None`: nobody.
        #[serde(default)]
        resolve: Option<String>,
        /// https: accept any certificate.
        #[serde(default)]
        insecure: bool,
        /// https: PEM file with the roots to trust, instead of the public ones.
        #[serde(default)]
        ca_file: Option<String>,
        /// Keep the times of every call in the measurement.
        #[serde(default)]
        keep_calls: bool,
        /// Who the users of its journeys are.
        #[serde(default)]
        identities: Identities,
    },
}

/// Who the users of journeys are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Identities {
    /// Another one in every journey: `{number}` is the journey's own.
    #[default]
    Fresh,
    /// One for each client, in all its journeys: `{number}` is the client's.
    Reused,
}

impl Target {
    /// What is spoken.
    pub fn protocol(&self) -> Protocol {
        match self {
            Target::Pingpong { .. } => Protocol::Pingpong,
            Target::Http { tls: None, .. } => Protocol::Http,
            Target::Http { tls: Some(_), .. } => Protocol::Https,
            Target::Cache { dialect, .. } => Protocol::Cache(*dialect),
            Target::Journey { .. } => Protocol::Journey,
        }
    }

    /// Where the subject is: `host:port`, or `unix:` and a path; of a journey the URL of its first target, empty where it has none.
    pub fn address(&self) -> &str {
        match self {
            Target::Journey { journey, targets, .. } => {
                let first = journey.targets.first();
                first.map_or("", |(name, url)| targets.get(name).unwrap_or(url))
            }
            Target::Pingpong { address } | Target::Http { address, .. } | Target::Cache { address, .. } => address,
        }
    }
}

fn one() -> u32 {
    1
}

/// How long a connection is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    /// For as many requests as the subject allows.
    #[default]
    KeepAlive,
    /// For one request. Latency then begins when the connection is asked for.
    PerRequest,
}

/// One request of a mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpRequest {
    /// Share of it among all requests of the mix, in proportion.
    pub weight: u32,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Request target: path and query (RFC 9112, 3.2.1).
    pub target: String,
    /// Header fields, `Host` among them, in the order they are sent. `Content-Length` is added where there is a body and it is not
    /// given, `Connection: close` where a connection serves one request.
    pub headers: Vec<(String, String)>,
    /// Body, bytes; empty: none.
    #[serde(default)]
    pub body: Vec<u8>,
}

/// How the connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The name that the certificate must have, sent as SNI where it is no IP address.
    pub server_name: String,
    /// Accept any certificate.
    #[serde(default)]
    pub insecure: bool,
    /// PEM file with the roots to trust, instead of the public ones.
    #[serde(default)]
    pub ca_file: Option<String>,
    /// Resume sessions on later connections.
    pub resume: bool,
}

/// Which answers are right. Their length is checked always.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// These statuses; `None`: 200 to 299.
    #[serde(default)]
    pub status: Option<Vec<u16>>,
    /// Exactly this body; `None`: any.
    #[serde(default)]
    pub body: Option<Vec<u8>>,
}

/// Which backend of `net` the generator uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// As measured: epoll for HTTP, io_uring for ping-pong where this kernel has it. The record names it.
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
    /// Open loop: at the times of the trace that the workload replays, whose `gaps` are `recorded`.
    Recorded,
}

impl Arrivals {
    /// The rate that is offered, per second; `None` in a closed loop, and where a trace decides.
    pub fn offered_per_s(&self) -> Option<f64> {
        match *self {
            Arrivals::Closed { .. } | Arrivals::Recorded => None,
            Arrivals::Poisson { rate_per_s } | Arrivals::Constant { rate_per_s } => Some(rate_per_s),
        }
    }

    /// Whether requests are sent by a timetable.
    pub fn is_open(&self) -> bool {
        !matches!(self, Arrivals::Closed { .. })
    }
}

/// What is done before measuring starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// So long, ns.
    DurationNs(u64),
    /// So many requests, over all clients. Of a cache: exactly so many operations, after which the clients wait until all are answered.
    Requests(u64),
    /// Of a cache: until the hit ratio shows no trend any more over the second half of what was seen.
    Steady {
        /// At the latest then, ns; the measurement says that it was cut short.
        max_ns: u64,
    },
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
    /// When so many requests that were sent after the warm-up have ended, whatever they came to: no more are sent. One whose answer is late has
    /// not ended; where for twice the timeout nothing ends but by timeouts and failed connects, the load is given up. Those that misses of a
    /// cache cause are not among them.
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
