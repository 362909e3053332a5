//! Specification of a load: one JSON object from the lab to the generator process.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::journey::Journey;
pub use crate::load_shape::Stage;
pub use crate::protocol::{Dialect, Protocol};
use crate::workload::Workload;

/// The version of [`LoadSpec`] and [`crate::record::Measurement`] that this build supports.
pub const SPEC_VERSION: u32 = 1;

/// One load: target, clients, rate, duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Format version, [`SPEC_VERSION`].
    pub version: u32,
    /// Server and requests.
    pub target: Target,
    /// Connections, over all threads.
    pub clients: u32,
    /// Maximum requests in flight per connection; more than one if the protocol supports pipelining or streams.
    #[serde(default = "one")]
    pub pipeline: u32,
    /// How long a connection is used.
    #[serde(default)]
    pub connection: Connection,
    /// Workers, each a thread with its own event loop.
    pub threads: u32,
    /// Worker `i` is pinned to `cpus[i % cpus.len()]`; not pinned if empty.
    pub cpus: Vec<u32>,
    /// I/O backend.
    pub backend: Backend,
    /// Arrival process of the requests.
    pub arrivals: Arrivals,
    /// Warm-up before measuring.
    pub warmup: Warmup,
    /// Rule that ends measuring.
    pub stop: Stop,
    /// Length of a window, ns.
    pub window_ns: u64,
    /// Timeout of a response, ns. The latency of a later response is kept if it still arrives.
    pub timeout_ns: u64,
    /// Open loop: time before a send in which a worker polls instead of sleeping, ns; 0 spares the server's CPU.
    pub spin_ns: u64,
    /// Random seed of challenges and arrivals.
    pub seed: u64,
    /// The workers of a larger load that this process runs, if not all. [`LoadSpec::clients`] and the rate of
    /// [`LoadSpec::arrivals`] are the whole load's. Together, processes request what one with all workers would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Whether to wait for [`Heard::Go`](crate::generator_messages::Heard::Go) once connected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gate: bool,
    /// Logs one in this many requests on average; none if 0.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub log_one_in: u32,
    /// The load over the measured time, if it changes: in an open loop the rate, whose mean is in
    /// [`LoadSpec::arrivals`]; in a closed loop the number of clients, at most [`LoadSpec::clients`].
    /// The warm-up has the first value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<Stage>,
}

impl LoadSpec {
    /// Workers of this process, at most one per client.
    pub fn workers(&self) -> u32 {
        match self.part {
            Some(_) => self.threads,
            None => self.threads.min(self.clients),
        }
    }

    /// Workers of the whole load.
    pub fn workers_of_all(&self) -> u32 {
        self.part.map_or(self.workers(), |part| part.of)
    }

    /// The index in the whole load of this process's `nth` worker.
    pub fn worker(&self, nth: u32) -> u32 {
        self.part.map_or(0, |part| part.first) + nth
    }

    /// Clients of this process's `nth` worker: the load's clients, divided as evenly as possible.
    pub fn clients_of(&self, nth: u32) -> u32 {
        even_share(self.clients.into(), self.worker(nth).into(), self.workers_of_all().into()) as u32
    }

    /// Clients of this process.
    pub fn own_clients(&self) -> u32 {
        (0..self.workers()).map(|nth| self.clients_of(nth)).sum()
    }
}

/// The part of `all` for one of `workers`, which differs by at most 1 between them.
pub fn even_share(all: u64, index: u64, workers: u64) -> u64 {
    all / workers + u64::from(index < all % workers)
}

/// Workers `first..first + threads` of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The first worker, from 0.
    pub first: u32,
    /// Workers of the whole load.
    pub of: u32,
}

/// Target: a protocol and an address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "protocol", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// Volley's ping-pong of 32-bit words.
    Pingpong {
        /// `host:port`, resolved by the generator's process.
        address: String,
    },
    /// HTTP/1.1 or HTTP/2.
    Http {
        /// `host:port`, resolved by the generator's process, or `unix:` and the path of a socket.
        address: String,
        /// Requests, picked by weight; at least one.
        requests: Vec<HttpRequest>,
        /// TLS settings, if the connection is encrypted (https).
        tls: Option<Tls>,
        /// Whether to use HTTP/2: by ALPN over TLS, otherwise by prior knowledge (RFC 9113, 3.3).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        http2: bool,
        /// Which responses are valid.
        #[serde(default)]
        expect: Expect,
        /// Directory of the CSV files that values name; the working directory if empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        directory: String,
    },
    /// A cache, loaded with a workload. Every value received is verified.
    Cache {
        /// `host:port`, resolved by the generator's process, or `unix:` and the path of a socket.
        address: String,
        /// Protocol of the cache.
        dialect: Dialect,
        /// Workload, of which each worker samples a partition. One seed and one number of threads give one stream of
        /// operations, whatever the cache responds.
        workload: Box<Workload>,
    },
    /// Journeys of several operations, with values from replies used in later requests. Every reply is verified. Each
    /// client has a connection per endpoint. Requests are counted by call, in whole journeys.
    Journey {
        /// The journeys, at least one. Clients sample the next one by weight.
        journeys: Vec<WeightedJourney>,
        /// URLs of their targets by name, overriding the journeys' own.
        #[serde(default)]
        targets: BTreeMap<String, String>,
        /// `http://host:port` of the resolver of endpoints, if any. `GET /resolve?endpoint=URL` returns the address to
        /// connect to as `{"address": "ip:port"}`, or 404 to use the address in the URL.
        resolve: Option<String>,
        /// Whether to accept any certificate, for https.
        #[serde(default)]
        insecure: bool,
        /// PEM file with the trusted root certificates instead of the public ones, for https.
        ca_file: Option<String>,
        /// Certificate for servers that request one, for https.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<ClientCertificate>,
        /// Whether to include requests and responses in the measurement; only for one client.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_traced: bool,
        /// Identities of the users of its journeys.
        #[serde(default)]
        identities: Identities,
    },
}

/// One of the journeys of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedJourney {
    /// Relative frequency.
    #[serde(default = "one")]
    pub weight: u32,
    /// Steps and values of the journey.
    pub journey: Journey,
}

/// Identities of the users of journeys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Identities {
    /// A new one in every journey: `{number}` is the journey's own.
    #[default]
    Fresh,
    /// One per client, in all its journeys: `{number}` is the client's.
    Reused,
}

impl Target {
    /// Protocol of the target.
    pub fn protocol(&self) -> Protocol {
        match self {
            Target::Pingpong { .. } => Protocol::Pingpong,
            Target::Http { tls: None, .. } => Protocol::Http,
            Target::Http { tls: Some(_), .. } => Protocol::Https,
            Target::Cache { dialect, .. } => Protocol::Cache(*dialect),
            Target::Journey { .. } => Protocol::Journey,
        }
    }

    /// Mean number of requests of a session, which a rate starts; 1 without a journey.
    pub fn requests_per_session(&self) -> f64 {
        let Target::Journey { journeys, .. } = self else { return 1.0 };
        let weights = journeys.iter().map(|one| u64::from(one.weight)).sum::<u64>();
        let calls = journeys.iter().map(|one| u64::from(one.weight) * one.journey.calls()).sum::<u64>();
        calls.max(1) as f64 / weights.max(1) as f64
    }

    /// Name of a request by its index in the mix, or of a step; otherwise empty.
    pub fn request_name(&self, index: u32) -> String {
        match self {
            Target::Http { requests, .. } => requests.get(index as usize).map_or_else(String::new, HttpRequest::kind),
            Target::Journey { journeys, .. } => {
                let steps = journeys.iter().flat_map(|one| one.journey.steps.iter().map(|step| (&one.journey, step)));
                steps.into_iter().nth(index as usize).map_or_else(String::new, |(journey, step)| match journeys.len() {
                    1 => step.operation.clone(),
                    _ => format!("{}: {}", journey.name, step.operation),
                })
            }
            Target::Pingpong { .. } | Target::Cache { .. } => String::new(),
        }
    }

    /// Address of the server: `host:port`, `unix:` and a path, or the URL of a journey's first target, if any.
    pub fn address(&self) -> &str {
        match self {
            Target::Journey { journeys, targets, .. } => {
                let first = journeys.first().and_then(|one| one.journey.targets.first());
                first.map_or("", |(name, url)| targets.get(name).unwrap_or(url))
            }
            Target::Pingpong { address } | Target::Http { address, .. } | Target::Cache { address, .. } => address,
        }
    }
}

pub(crate) fn one() -> u32 {
    1
}

/// How long a connection is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    /// As many requests as the server allows.
    #[default]
    KeepAlive,
    /// One request. Latency then starts when the connection is requested.
    PerRequest,
    /// This many requests, after which the client closes it. Latency excludes the connect.
    Requests(u32),
}

/// One request of a mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpRequest {
    /// Relative frequency in the mix.
    pub weight: u32,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Request target: path and query (RFC 9112, 3.2.1).
    pub target: String,
    /// Headers, including `Host`, in the order they are sent. `Content-Length` is added if missing with a body, and
    /// `Connection: close` if a connection serves one request.
    pub headers: Vec<(String, String)>,
    /// Body; may be empty.
    #[serde(default)]
    pub body: Vec<u8>,
    /// Name in reports, which requests may share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl HttpRequest {
    /// Its kind in reports: its name, or method and target as written, `GET /items/{{seq}}`.
    pub fn kind(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{} {}", self.method, self.target))
    }
}

/// TLS settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The name the certificate must have, sent as SNI unless it is an IP address.
    pub server_name: String,
    /// Whether to accept any certificate.
    #[serde(default)]
    pub insecure: bool,
    /// PEM file with the trusted root certificates, instead of the public ones.
    pub ca_file: Option<String>,
    /// Certificate for servers that request one, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCertificate>,
    /// Whether to resume sessions on later connections.
    pub resume: bool,
}

/// The certificate of the generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificate {
    /// PEM file with the certificate, then those between it and its root.
    pub cert_file: String,
    /// PEM file with its private key; often the same file.
    pub key_file: String,
}

/// Which responses are valid. Their length is always checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Valid statuses; 200 to 299 if `None`.
    pub status: Option<Vec<u16>>,
    /// Expected body, which may have values; any if `None`.
    pub body: Option<Vec<u8>>,
    /// Values in a JSON body: a path (RFC 9535) that selects one value, and its text, which may have values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json: Vec<(String, String)>,
    /// A regular expression that matches the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// The least and the greatest length of the body, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<(u64, u64)>,
    /// Checks of the whole body (JSON, regular expression, length, and a body with values) apply to
    /// one of this many requests on average; to all if 0 or 1.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub check_one_in: u32,
    /// Whether a response also needs `grpc-status: 0`, in its trailers or in a head without a body.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grpc: bool,
}

/// I/O backend of the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The faster one: epoll for HTTP, io_uring for ping-pong if this kernel has it. The record names it.
    #[default]
    Auto,
    /// Readiness.
    Epoll,
    /// Completions.
    IoUring,
}

/// Arrival process of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "loop", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// Closed loop: each client sends after its response and the think time.
    Closed {
        /// Think time, ns.
        think_ns: u64,
    },
    /// Open loop, exponential gaps.
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
    /// Offered rate, per second; `None` in a closed loop, or if a trace sets the times.
    pub fn offered_per_s(&self) -> Option<f64> {
        match *self {
            Arrivals::Closed { .. } | Arrivals::Recorded => None,
            Arrivals::Poisson { rate_per_s } | Arrivals::Constant { rate_per_s } => Some(rate_per_s),
        }
    }

    /// The same law at another rate, at least one request per hour; unchanged without a rate.
    #[must_use]
    pub fn at(self, rate_per_s: f64) -> Self {
        let rate_per_s = rate_per_s.max(1.0 / 3600.0);
        match self {
            Arrivals::Poisson { .. } => Arrivals::Poisson { rate_per_s },
            Arrivals::Constant { .. } => Arrivals::Constant { rate_per_s },
            Arrivals::Closed { .. } | Arrivals::Recorded => self,
        }
    }

    /// Whether requests are sent on a schedule.
    pub fn is_open(&self) -> bool {
        !matches!(self, Arrivals::Closed { .. })
    }
}

/// Warm-up before measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// A time, ns.
    DurationNs(u64),
    /// A number of requests over all clients. Caches: exactly this many; the clients then wait for all responses.
    Requests(u64),
    /// Caches: until the hit ratio shows no trend over the second half of the windows so far.
    Steady {
        /// Time limit, ns; the measurement reports if it was reached.
        max_ns: u64,
    },
}

/// Rule that ends measuring.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Stop {
    /// Ends after a time.
    Duration {
        /// Length of the measurement, ns.
        duration_ns: u64,
    },
    /// Ends once this many requests sent after the warm-up have ended. Late responses and requests
    /// caused by cache misses do not count. The load is abandoned if for twice the timeout requests
    /// only time out or fail to connect.
    Requests {
        /// Number of requests over all clients.
        requests: u64,
        /// Time limit, ns.
        max_ns: u64,
    },
    /// Ends once the batch-means interval of the mean latency is this narrow.
    Interval {
        /// Half-width over mean.
        relative: f64,
        /// Confidence level, a fraction.
        level: f64,
        /// Time limit, ns.
        max_ns: u64,
    },
    /// Volley's stop rule. It counts its priming round, so there is no warm-up.
    Volley {
        /// Maximum iterations of a round, over all clients (volley: 1,000,000).
        round_requests: u64,
        /// Target half-width, ns (volley: 5,000).
        half_width_ns: u64,
        /// Time limit, ns (volley: 3 minutes).
        max_ns: u64,
    },
}

impl Stop {
    /// The longest time that is measured, ns.
    pub fn longest_ns(&self) -> u64 {
        match *self {
            Stop::Duration { duration_ns } => duration_ns,
            Stop::Requests { max_ns, .. } | Stop::Interval { max_ns, .. } | Stop::Volley { max_ns, .. } => max_ns,
        }
    }
}
