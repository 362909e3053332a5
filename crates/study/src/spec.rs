//! Specification of a load: one JSON object that the lab sends to the generator's process.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Distribution, Rng};

use crate::journey::Journey;
pub use crate::load_shape::Stage;
pub use crate::protocol::{Dialect, Protocol};
use crate::workload::Workload;

/// The version of [`LoadSpec`] and [`crate::record::Measurement`] that this build supports.
pub const SPEC_VERSION: u32 = 1;

/// One load: its server, requests, clients, arrivals and length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Format version, [`SPEC_VERSION`].
    pub version: u32,
    /// Server to load, and the requests to send.
    pub target: Target,
    /// Number of clients over all threads, each with a connection.
    pub clients: u32,
    /// Maximum number of requests in flight per connection; above 1 only if the protocol has pipelining or streams.
    #[serde(default = "crate::one")]
    pub pipeline: u32,
    /// How long a connection is used.
    #[serde(default)]
    pub connection: Connection,
    /// Number of workers, each a thread with its own event loop.
    pub threads: u32,
    /// CPUs for the workers: worker `i` is pinned to `cpus[i % cpus.len()]`. If empty, workers are not pinned.
    pub cpus: Vec<u32>,
    /// I/O backend to use.
    pub backend: Backend,
    /// Arrival process of the requests.
    pub arrivals: Arrivals,
    /// Warm-up before measuring.
    pub warmup: Warmup,
    /// Rule that ends measuring.
    pub stop: Stop,
    /// Length of a window, ns.
    pub window_ns: u64,
    /// Timeout of a response, ns. If the response still arrives later, its latency is recorded.
    pub timeout_ns: u64,
    /// Time before each intended send during which workers poll instead of sleeping, ns; 0 to always sleep.
    pub spin_ns: u64,
    /// Random seed of requests and arrivals.
    pub seed: u64,
    /// The workers of a larger load that this process runs; `None` for all workers. [`LoadSpec::clients`] and
    /// the rate describe the whole load. Together, the processes send the same requests as one process would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Whether the load, once connected, waits for [`Heard::Go`](crate::generator_messages::Heard::Go).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gate: bool,
    /// Average number of requests per logged request; 0 logs none.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub log_one_in: u32,
    /// The stages of a changing load; empty if constant. They set the rate of an open loop, whose mean is in
    /// `arrivals`, or the number of clients of a closed loop, at most `clients`. The warm-up uses the first value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<Stage>,
}

impl LoadSpec {
    /// Number of workers of this process, at most one per client.
    pub fn workers(&self) -> u32 {
        if self.part.is_some() { self.threads } else { self.threads.min(self.clients) }
    }

    /// Number of workers of the whole load.
    pub fn workers_of_all(&self) -> u32 {
        self.part.map_or(self.workers(), |part| part.of)
    }

    /// Index of this process's `nth` worker in the whole load.
    pub fn worker(&self, nth: u32) -> u32 {
        self.part.map_or(0, |part| part.first) + nth
    }

    /// CPU of this process's `nth` worker; `None` if workers are not pinned.
    pub fn cpu_of(&self, nth: u32) -> Option<u32> {
        let place = (nth as usize).checked_rem(self.cpus.len())?;
        Some(self.cpus[place])
    }

    /// Number of clients of this process's `nth` worker. The load's clients are divided as evenly as possible.
    pub fn clients_of(&self, nth: u32) -> u32 {
        even_share(self.clients.into(), self.worker(nth).into(), self.workers_of_all().into()) as u32
    }

    /// Number of clients of this process.
    pub fn own_clients(&self) -> u32 {
        (0..self.workers()).map(|nth| self.clients_of(nth)).sum()
    }
}

/// The part of `all` that goes to the worker at `index` among `workers`. Parts differ by at most 1.
pub fn even_share(all: u64, index: u64, workers: u64) -> u64 {
    all / workers + u64::from(index < all % workers)
}

/// The workers `first..first + threads` of a load with `of` workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Index of the first worker of this process, from 0.
    pub first: u32,
    /// Number of workers of the whole load.
    pub of: u32,
}

/// The server of a load, with its protocol, address and requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "protocol", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// A server for volley's ping-pong of 32-bit words.
    Pingpong {
        /// Address `host:port`, resolved by the generator's process.
        address: String,
    },
    /// An HTTP server and a mix of requests.
    Http {
        /// Address `host:port`, resolved by the generator's process, or `unix:` and the path of a socket.
        address: String,
        /// Server as `host:port`, to which the HTTP proxy at `address` opens a tunnel for each connection (CONNECT, RFC
        /// 9110, section 9.3.6); `None` without a proxy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tunnel_to: Option<Box<str>>,
        /// Requests to choose from by weight, at least one.
        requests: Vec<HttpRequest>,
        /// TLS settings; `None` if the connection is not encrypted.
        tls: Option<Tls>,
        /// Whether to use HTTP/2: by ALPN over TLS, otherwise by prior knowledge (RFC 9113, section 3.3).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        http2: bool,
        /// Windows and table of HTTP/2 connections.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        http2_settings: Http2Settings,
        /// Whether a gRPC call sends each further message only after a message of the response.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_turn: bool,
        /// Conditions of a valid response.
        #[serde(default)]
        expect: Box<Expect>,
        /// Directory of the CSV files that request values name; empty for the working directory.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        directory: String,
    },
    /// A cache and its workload. Every value received is verified.
    Cache {
        /// Address `host:port`, resolved by the generator's process, or `unix:` and the path of a socket.
        address: String,
        /// Protocol of the cache.
        dialect: Dialect,
        /// Workload, of which each worker samples a partition. Seed and number of threads determine the operations.
        workload: Box<Workload>,
    },
    /// Journeys of several operations. Requests can use values from earlier replies. Every reply is verified, and
    /// each client has a connection per endpoint. Limits on requests count calls, but never cut a journey short.
    Journey {
        /// The journeys, at least one. Clients choose each next journey by weight.
        journeys: Vec<WeightedJourney>,
        /// URLs of the targets by name, which override the URLs in the journeys.
        #[serde(default)]
        targets: BTreeMap<String, String>,
        /// The endpoint resolver, `http://host:port`; `None` without one. It answers `GET /resolve?endpoint=URL` with
        /// the address to connect to, `{"address": "ip:port"}`, or with 404 to use the address in the URL.
        resolve: Option<String>,
        /// Whether https connections accept any certificate.
        #[serde(default)]
        insecure: bool,
        /// PEM file with the trusted root certificates for https; `None` trusts the public ones.
        ca_file: Option<String>,
        /// Certificate for https servers that request one; `None` sends none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<ClientCertificate>,
        /// Whether to use HTTP/2: by ALPN over TLS, otherwise by prior knowledge (RFC 9113, section 3.3).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        http2: bool,
        /// Whether the measurement includes a transcript of requests and responses; allowed only with one client.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_traced: bool,
        /// Whether each journey has a new user or each client keeps one.
        #[serde(default)]
        identities: Identities,
    },
}

/// HTTP/2 settings that a client announces. Source: RFC 9113, sections 6.5.2 and 6.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Http2Settings {
    /// Flow-control window of each stream, bytes.
    pub stream_window_bytes: u32,
    /// Flow-control window of each connection, bytes; at least [`Http2Settings::CONNECTION_WINDOW_BYTES_MIN`].
    pub connection_window_bytes: u32,
    /// Maximum size of the table from which servers repeat response fields, bytes.
    pub header_table_bytes: u32,
}

impl Http2Settings {
    /// Maximum flow-control window, bytes.
    pub const WINDOW_BYTES_MAX: u32 = u32::MAX >> 1;
    /// Minimum flow-control window of a connection, bytes: its initial size, which can only grow.
    pub const CONNECTION_WINDOW_BYTES_MIN: u32 = 65_535;
    /// Maximum size of the table, bytes.
    pub const HEADER_TABLE_BYTES_MAX: u32 = 1 << 20;
}

impl Default for Http2Settings {
    /// Windows that never throttle, and the initial table size of each connection.
    fn default() -> Http2Settings {
        Http2Settings {
            stream_window_bytes: Http2Settings::WINDOW_BYTES_MAX,
            connection_window_bytes: Http2Settings::WINDOW_BYTES_MAX,
            header_table_bytes: 4096,
        }
    }
}

/// A journey of a load and how often it is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedJourney {
    /// Relative frequency among the journeys of the load.
    #[serde(default = "crate::one")]
    pub weight: u32,
    /// Steps and values of the journey.
    pub journey: Journey,
}

/// How users of journeys get their identities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Identities {
    /// A new user per journey: `{number}` is the number of the journey.
    #[default]
    Fresh,
    /// One user per client: `{number}` is the number of the client in all its journeys.
    Reused,
}

impl Target {
    /// Protocol of the target, for tables and rules.
    pub fn protocol(&self) -> Protocol {
        match self {
            Target::Pingpong { .. } => Protocol::Pingpong,
            Target::Http { tls: None, .. } => Protocol::Http,
            Target::Http { tls: Some(_), .. } => Protocol::Https,
            Target::Cache { dialect, .. } => Protocol::Cache(*dialect),
            Target::Journey { .. } => Protocol::Journey,
        }
    }

    /// Mean number of counted calls per session if no condition skips a call; 1 without journeys.
    pub fn requests_per_session(&self) -> f64 {
        let Target::Journey { journeys, .. } = self else { return 1.0 };
        let weights = journeys.iter().map(|one| u64::from(one.weight)).sum::<u64>();
        let calls = journeys.iter().map(|one| u64::from(one.weight) * one.journey.calls()).sum::<u64>();
        calls.max(1) as f64 / weights.max(1) as f64
    }

    /// Name of the request at an index in the mix, or of the step at an index over all journeys; empty if unknown.
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

    /// Address of the server: `host:port`, `unix:` and a path, or a journey's first target; empty if there is none.
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

/// How long a connection is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    /// A connection is kept for as many requests as the server allows.
    #[default]
    KeepAlive,
    /// A connection serves one request, whose latency starts when the connection is requested.
    PerRequest,
    /// A connection serves this many requests, after which the client closes it. Latency excludes connecting.
    Requests(u32),
}

/// One request of a mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpRequest {
    /// Relative frequency in the mix.
    pub weight: u32,
    /// HTTP method, such as `GET`.
    pub method: String,
    /// Request target: path and query (RFC 9112, section 3.2.1).
    pub target: String,
    /// Headers in the order they are sent, with `Host`. `Content-Length` and `Connection: close` are added if needed.
    pub headers: Vec<(String, String)>,
    /// Body of the request; empty for none.
    #[serde(default)]
    pub body: Vec<u8>,
    /// Name in reports, which several requests may share; `None` for method and target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl HttpRequest {
    /// The request's kind in reports: its name, or else method and target as written, such as `GET /items/{{seq}}`.
    pub fn kind(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{} {}", self.method, self.target))
    }
}

/// TLS settings of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Name that the certificate must have, sent as SNI unless it is an IP address.
    pub server_name: String,
    /// Whether any certificate is accepted.
    #[serde(default)]
    pub insecure: bool,
    /// PEM file with the trusted root certificates; `None` trusts the public ones.
    pub ca_file: Option<String>,
    /// Certificate for servers that request one; `None` sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCertificate>,
    /// Whether later connections resume TLS sessions.
    pub resume: bool,
}

/// The generator's own certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificate {
    /// PEM file with the certificate, followed by the intermediate ones up to its root.
    pub cert_file: String,
    /// PEM file with the private key of the certificate; may be `cert_file` itself.
    pub key_file: String,
}

/// Conditions of a valid response. The framing of the body is always checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Valid statuses; `None` for 200 to 299.
    pub status: Option<Vec<u16>>,
    /// Expected body, which may contain values; `None` accepts any.
    pub body: Option<Vec<u8>>,
    /// Paths (RFC 9535) into a JSON body, each with the expected value as a string, which may contain fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json: Vec<(String, String)>,
    /// Regular expression that the body must match; `None` accepts any body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// Minimum and maximum length of the body, bytes; `None` accepts any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<(u64, u64)>,
    /// Mean number of responses per check of a whole body (JSON, pattern, length, values); 0 or 1 checks all.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub check_one_in: u32,
    /// Whether a response also needs `grpc-status: 0`, in its trailers or in a head without a body.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grpc: bool,
    /// Descriptor set of the gRPC messages, to check responses as JSON; `None` checks encoded messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc_schema: Option<Vec<u8>>,
}

/// I/O backend of the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The faster backend: epoll for HTTP, io_uring for ping-pong if this kernel has it. The record names the backend.
    #[default]
    Auto,
    /// Linux epoll, which reports readiness.
    Epoll,
    /// Linux io_uring, which reports completions.
    IoUring,
}

/// Arrival process of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "loop", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// A closed loop, in which each client sends after its previous response and the think time.
    Closed {
        /// Time between a response and the client's next request.
        #[serde(rename = "think_ns")]
        think: ThinkTime,
    },
    /// An open loop with exponentially distributed gaps.
    Poisson {
        /// Mean offered rate, per second.
        rate_per_s: f64,
    },
    /// An open loop with equal gaps.
    Constant {
        /// Offered rate, per second.
        rate_per_s: f64,
    },
    /// An open loop at the times of the replayed trace, whose `gaps` are `recorded`.
    Recorded,
}

/// Think time: the pause of a client between a response and its next request, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ThinkTime {
    /// The same pause each time.
    Constant(u64),
    /// A pause drawn at random each time.
    Random(Distribution),
}

impl Default for ThinkTime {
    fn default() -> Self {
        ThinkTime::NONE
    }
}

impl ThinkTime {
    /// No pause.
    pub const NONE: ThinkTime = ThinkTime::Constant(0);

    /// Mean pause, ns. At most `u64::MAX`.
    pub fn mean_ns(&self) -> u64 {
        match self {
            ThinkTime::Constant(ns) => *ns,
            ThinkTime::Random(law) => law.mean() as u64,
        }
    }

    /// The next pause, ns. Only random pauses draw from `rng`.
    pub fn sample_ns(&self, rng: &mut Rng) -> u64 {
        match self {
            ThinkTime::Constant(ns) => *ns,
            ThinkTime::Random(law) => law.sample(rng) as u64,
        }
    }
}

impl Arrivals {
    /// A closed loop with the same think time for all requests, ns.
    pub const fn closed(think_ns: u64) -> Self {
        Arrivals::Closed { think: ThinkTime::Constant(think_ns) }
    }

    /// Think time of the clients; none in an open loop.
    pub fn think(&self) -> ThinkTime {
        if let Arrivals::Closed { think } = *self { think } else { ThinkTime::NONE }
    }

    /// Offered rate, per second; `None` in a closed loop or if a trace sets the times.
    pub fn offered_per_s(&self) -> Option<f64> {
        match *self {
            Arrivals::Closed { .. } | Arrivals::Recorded => None,
            Arrivals::Poisson { rate_per_s } | Arrivals::Constant { rate_per_s } => Some(rate_per_s),
        }
    }

    /// The same process at a different rate, at least one request per hour. A closed loop and a trace remain unchanged.
    #[must_use]
    pub fn at(self, rate_per_s: f64) -> Self {
        let rate_per_s = rate_per_s.max(1.0 / 3600.0);
        match self {
            Arrivals::Poisson { .. } => Arrivals::Poisson { rate_per_s },
            Arrivals::Constant { .. } => Arrivals::Constant { rate_per_s },
            Arrivals::Closed { .. } | Arrivals::Recorded => self,
        }
    }

    /// Whether requests are sent on a schedule instead of after responses.
    pub fn is_open(&self) -> bool {
        !matches!(self, Arrivals::Closed { .. })
    }
}

/// Warm-up before measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// Ends after this time, ns.
    DurationNs(u64),
    /// Ends after this many requests over all clients; for caches, once exactly this many have been sent and answered.
    Requests(u64),
    /// Ends once the hit ratio of a cache shows no trend over the second half of the windows so far.
    Steady {
        /// Time limit, ns; the measurement reports whether it was reached.
        max_ns: u64,
    },
}

/// Rule that ends measuring.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Stop {
    /// Ends after a fixed time.
    Duration {
        /// Length of the measured time, ns.
        duration_ns: u64,
    },
    /// Ends once this many requests sent after the warm-up have ended. Late responses and requests caused by cache
    /// misses do not count. If requests only time out or fail to connect for twice the timeout, the load is abandoned.
    Requests {
        /// Number of requests over all clients.
        requests: u64,
        /// Maximum measured time, ns.
        max_ns: u64,
    },
    /// Ends once the batch-means interval of the mean latency is narrow enough.
    Interval {
        /// Target half-width of the interval, as a fraction of the mean.
        relative: f64,
        /// Confidence level of the interval, from 0 to 1.
        level: f64,
        /// Maximum measured time, ns.
        max_ns: u64,
    },
    /// Volley's stop rule. Latencies of its priming round count, so there is no warm-up.
    Volley {
        /// Maximum number of requests in a round, over all clients (volley: 1,000,000).
        round_requests: u64,
        /// Target half-width of the interval of the mean, ns (volley: 5,000).
        half_width_ns: u64,
        /// Maximum measured time, ns (volley: 3 minutes).
        max_ns: u64,
    },
}

impl Stop {
    /// Maximum measured time under this rule, ns.
    pub fn longest_ns(&self) -> u64 {
        match *self {
            Stop::Duration { duration_ns } => duration_ns,
            Stop::Requests { max_ns, .. } | Stop::Interval { max_ns, .. } | Stop::Volley { max_ns, .. } => max_ns,
        }
    }
}
