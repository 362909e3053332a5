//! The tables of keys in studies and journeys.

use config::keys::{key, words};
use serde_json::json;

use super::Kind::{
    Bytes, Count, Duration, Either, Flag, Fraction, List, Name, Named, Number, Other, Rate, Table, Tables, Text,
    Variants, Word,
};
use super::Missing::{Is, Means, Mistake};
use super::allowed_words::{
    ARRIVALS, BACKENDS, CONNECTIONS, DESIGNS, FIGURES, GAPS, GRPC_MESSAGES, HTTP_VERSIONS, IDENTITIES, LAWS, LENGTHS,
    LOOPS, NEW_KEYS, QUESTIONS,
};
use super::{Keys, Kind, Missing};
use crate::gate::UNDECIDED;
use crate::load_limits_and_defaults::{CLIENTS_MAX, CPUS_MAX, PIPELINE_MAX, STREAMS_MAX, THREADS_MAX, TIMEOUT_MIN_NS};
use crate::metric::{METRICS, OVER_REQUESTS};
use crate::plan::POLICIES;
use crate::process_plan::ENGINES;
use crate::spec::{Http2Settings, Protocol};
use crate::workload::trace::{FORMATS, KEY_LEAST_BYTES, TTL_MAX_S};
use crate::workload::{KEY_MAX_BYTES, KEYS_MAX, VALUE_MAX_BYTES};

const NONE: Missing = Means("none");
const OF_PRESET: Missing = Means("the preset's");
const OF_PRESET_OR_REQUIRED: Missing = Means("the preset's, otherwise required");
const OF_PRESET_OR_UNIFORM: Missing = Means("the preset's, otherwise `uniform`");
const OF_TRACE_OR_REQUIRED: Missing = Means("the preset's or the trace's, otherwise required");
const OF_SHOWN_METRICS: Missing = Means("those on the metric of `trials.stop` and the metrics of the figures");
const NO_METRIC: Missing = Means("nothing; for a timeline, the metric of `trials.stop`");
const ONE_IN_LOAD: Missing = Means("the one in `[load]`");
const REQUIRED_WITHOUT_SHAPE: Missing = Means("required, except with a shape, which ends the trial");
const UNTIL_KNOWN: Missing = Means("until ratios between contenders are known to ±3 %, 12 to 30 blocks");
const WARMUP_BY_LOAD: Missing = Means("1s; `\"steady\"` for caches; none with a trace, a journey or volley's rule");

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * S;

/// A connection's window in bytes.
const CONNECTION_WINDOW: Kind =
    Bytes(Http2Settings::CONNECTION_WINDOW_BYTES_MIN as u64, Http2Settings::WINDOW_BYTES_MAX as u64);
const CPUS: Kind = Count(1, CPUS_MAX as u64);
const PORT: Kind = Count(1, 65_535);
const TO_START: Kind = Duration(10 * MS, 600 * S);
const MEASURED: Kind = Duration(10 * MS, 24 * HOUR);
const STUDY_TIME: Kind = Duration(S, 168 * HOUR);
const REQUESTS: Kind = Count(1, 1_000_000_000_000);
const RELATIVE: Kind = Fraction(0.0001, 0.5);
const LEVEL: Kind = Fraction(0.5, 0.9999);
const SHARE: Kind = Number(0.0, 1.0);
const PARAMETER: Kind = Number(-1e12, 1e12);
const STATUS: Kind = Count(100, 599);
const STATUSES: Kind = Kind::other("a string such as `\"2xx\"`");
const STEADY: Kind = Word("warm-up", || vec!["steady"]);
const OF_CAPACITY: Kind = Kind::other("a fraction of the capacity, such as `\"80%\"`");
const SHAPE: Kind = Kind::other("a shape, such as `\"1k..10k over 60s\"`");
/// Kind of a key that holds a fixed number of clients.
pub const CLIENT_COUNT: Kind = Count(1, CLIENTS_MAX as u64);
const CLIENTS_SHAPE: Kind = Kind::other("a shape, such as `\"1..400 over 60s\"`");
const WEIGHTED_LENGTHS: Kind = Kind::other("lengths and ranges with weights, `[[2, 0.3], [10, 20, 0.7]]`");
const JSON: Kind = Kind::other("a string, a number, a list, a table");
const COMPANIONS: Kind = Named(&Table(&COMPANION));
const LAW_OF_TAIL: Kind =
    Word("length distribution", || words(LAWS).into_iter().filter(|law| *law != "empirical").collect());
const PROTOCOL: Kind = Word("protocol", || Protocol::all().map(Protocol::name).collect());
const POLICY: Kind = Word("policy", || words(&POLICIES));
const NEW_KEY: Kind = Word("operation on a new key", || NEW_KEYS.to_vec());
const VALUE_LENGTH: Kind = Word("value length", || LENGTHS.to_vec());
const POPULARITY: Kind = Word("popularity distribution", || vec!["uniform", "zipf", "recency", "hot-set", "loop"]);
const SERIES: Kind = Word("series", || OVER_REQUESTS.iter().map(|series| series.0).collect());
const METRIC: Kind = Word("metric", || METRICS.iter().map(|metric| metric.name).collect());
const FACTOR: Kind = Name("factor");
const LEVELS: Kind =
    Other("a list of numbers and words, or `\"auto\"`: powers of two up to the CPUs that the generator leaves", || {
        json!({ "anyOf": [
            { "const": "auto" },
            { "type": "array", "minItems": 1, "items": { "type": ["string", "number", "boolean"] } },
        ] })
    });
const PROFILE: Kind = Other("tables by name", || json!({ "type": "object" }));

/// Keys of a study.
pub static STUDY: Keys =
    Keys::new("", "A study: the question, the server, the load, the factors, and the number of trials").keys(&[
        key("question", Text, "\"Which server is fastest?\"", Mistake).text("the question the study answers"),
        key("answer", Table(&ANSWER), "{ asks = \"values\" }", Means("inferred from factors and figures"))
            .text("the kind of answer wanted"),
        key("design", Word("design", || DESIGNS.to_vec()), "\"full\"", Is("\"full\""))
            .text("which combinations of levels are measured: all, or one change at a time from the first level of each factor, which is blind to interactions"),
        key("subject", Table(&SUBJECT), "{ command = \"my-server -p {port}\" }", Mistake).text("the server"),
        key("proxy", Named(&Table(&PROXY)), "{ haproxy = { command = \"haproxy -db -f {folder}/haproxy.cfg\" } }", NONE)
            .text("proxies between generator and server, by name"),
        key("companion", COMPANIONS, "{ db = { image = \"docker.io/library/redis:7\", publish = 6379 } }", NONE)
        .text("services the server needs, such as a database or a cache, by name"),
        key("load", Table(&LOAD), "{ protocol = \"pingpong\", clients = 40, stop = \"5s\" }", Mistake)
            .text("the load: protocol, clients, rate, duration"),
        key("factors", Named(&LEVELS), "{ clients = [40, 80] }", Means("one design point"))
            .text("the conditions to vary, by name; `{name}` in `[subject]`, `[proxy.NAME]` and `[load]` is replaced by its level; the levels of `through` choose the proxies: `direct`, a name, `a + b`"),
        key("trials", Table(&TRIALS), "{ stop = { comparison = 0.03 } }", UNTIL_KNOWN)
        .text("the number of trials"),
        key("gate", Table(&GATE), "{ of = \"server\", base = \"old\", fail_if = \"latency_p99 > 1.05\" }", NONE)
            .text("a baseline and the limits that fail a candidate: the study runs in pairs until each candidate is decided, and `quintain run` exits with 1 if one fails"),
        key("effects", Table(&EFFECTS), "{ metrics = [\"throughput\"] }", OF_SHOWN_METRICS)
        .text("effects of the factors"),
        key("slopes", Table(&SLOPES), "{ over_requests = [\"latency\"] }", NONE)
            .text("trends over the requests of a trial"),
        key("figure", Tables(&FIGURE), "[{ kind = \"timeline\" }]", NONE).text("figures"),
        key("table", Tables(&TABLE), "[{ metric = \"throughput\" }]", NONE)
            .text("tables in addition to the standard one"),
        key("quick", PROFILE, "{ factors = { clients = [40] } }", Means("three blocks of everything"))
            .text("overrides for `--quick`"),
        key("full", PROFILE, "{ factors = { clients = [40, 80] } }", NONE).text("overrides for `--full`"),
    ]);

static ANSWER: Keys = Keys {
    name: "answer",
    text: "The kind of answer wanted; `quintain check` prints the question a study will answer",
    keys: &[
        key("asks", Word("question", || QUESTIONS.to_vec()), "\"best\"", Mistake)
            .text("which level is best; what a proxy adds to `direct`; growth with a numeric factor; the highest rate that meets an objective; which factors matter; only the values"),
        key("of", FACTOR, "\"server\"", Means("the one that fits")).text("the factor in question"),
    ],
};

static SUBJECT: Keys = Keys::new("subject", "How the server is built and started").keys(&[
    key("build", Text, "\"make server\"", Means("nothing is built")).text("run once before the first trial"),
    key("command", Text, "\"my-server -p {port}\"", Means("required without an `image`"))
        .text("starts the server; `{port}` is its port, a leading `quintain` is this binary; with an `image`, arguments in the container"),
    key("image", Text, "\"localhost/mine:latest\"", Means("a process, not a container")).text(IMAGE_TEXT),
    key("engine", ENGINE, "\"podman\"", Is("\"auto\"")).text(ENGINE_TEXT),
    key("publish", PORT, "6379", Means("the network of the host")).text(PUBLISH_TEXT),
    key("options", Text, "\"--memory 1g\"", NONE).text(OPTIONS_TEXT),
    key("cpus", Either(&[CPUS, Word("number of CPUs", || vec!["all"]), Table(&UP_TO)]), "2", Is("1"))
        .text("CPUs of the server: a number; `{ up_to = 8 }`, fewer if the generator leaves fewer; `\"all\"` that the generator leaves"),
    key("directory", Text, "\"subjects/mine\"", Means("the study's"))
        .text("working directory, relative to the study's"),
    key("environment", Named(&Text), "{ WORKERS = \"2\" }", Means("quintain's own"))
        .text("environment variables to add; `{port}` is the server's port"),
    key("port", PORT, "8080", Means("a free port")).text("a fixed port"),
    key("ready_timeout", TO_START, "\"5s\"", Is("\"10s\"")).text("time limit to listen on its port"),
    key("stop_timeout", TO_START, "\"1s\"", Is("\"2s\"")).text("time limit to exit after SIGTERM"),
    key("verify", Either(&[Flag, Text]), "true", Is("false"))
        .text("checks before the trials that the server keeps the contract of its protocol, as `quintain verify` does; or a case file, for its cases in addition; a server that fails has no trials, and its row names the case"),
    key("variants", Variants, "{ }", NONE).text("keys of this section that differ at a level of a factor"),
]);

const IMAGE_TEXT: &str = "image of a container to run it in; never pulled";
const ENGINE: Kind = Word("container engine", || words(ENGINES));
const ENGINE_TEXT: &str = "program that starts containers; `auto`: the first of podman and docker that can";
const PUBLISH_TEXT: &str =
    "port that it listens on in a container with a network of its own, published on the host: measured with it";
const OPTIONS_TEXT: &str = "further options of `podman run` or `docker run`";

static UP_TO: Keys = Keys {
    name: "subject.cpus",
    text: "CPUs on a machine that may have fewer",
    keys: &[key("up_to", CPUS, "8", Mistake).text("maximum number of CPUs")],
};

static PROXY: Keys = Keys {
    name: "proxy.NAME",
    text: "A proxy between generator and server; `{port}`, `{folder}`, `{subject_port}`, `{next_port}` and `{admin_port}` are replaced in its strings",
    keys: &[
        key("build", Text, "\"make proxy\"", Means("nothing is built")).text("run once before the first trial"),
        key("command", Text, "\"haproxy -db -f {folder}/haproxy.cfg\"", Mistake).text("starts the proxy"),
        key("directory", Text, "\"proxies\"", Means("the study's")).text("working directory, relative to the study's"),
        key("environment", Named(&Text), "{ THREADS = \"1\" }", Means("quintain's own"))
            .text("environment variables to add"),
        key("files", Named(&Text), "{ \"haproxy.cfg\" = \"studies/haproxy.cfg\" }", NONE)
            .text("files created in `{folder}`: name and source file, with templates expanded"),
        key("calls", Text, "\"calls.csv\"", NONE).text("file in `{folder}` to which it logs its calls"),
        key("cpus", Either(&[CPUS, Word("place", || vec!["subject"])]), "1", Is("\"subject\""))
            .text("its own CPUs, reserved at every design point, or the server's"),
        key("port", PORT, "8443", Means("a free port")).text("a fixed port"),
        key("ready_timeout", TO_START, "\"5s\"", Is("\"10s\"")).text("time limit to listen on its port"),
        key("stop_timeout", TO_START, "\"1s\"", Is("\"2s\"")).text("time limit to exit after SIGTERM"),
    ],
};

static COMPANION: Keys = Keys {
    name: "companion.NAME",
    text: "A service the server needs, started before it; `{NAME_port}` in the command and environment of `[subject]` is its port",
    keys: &[
        key("build", Text, "\"make db\"", Means("nothing is built")).text("run once before the first trial"),
        key("command", Text, "\"memcached -l 127.0.0.1 -p {port}\"", Means("required without an `image`"))
            .text("starts it; `{port}` is its port; with an `image`, arguments in the container"),
        key("image", Text, "\"docker.io/library/redis:7\"", Means("a process, not a container")).text(IMAGE_TEXT),
        key("engine", ENGINE, "\"podman\"", Is("\"auto\"")).text(ENGINE_TEXT),
        key("publish", PORT, "6379", Means("the network of the host")).text(PUBLISH_TEXT),
        key("options", Text, "\"--memory 1g\"", NONE).text(OPTIONS_TEXT),
        key("cpus", CPUS, "1", Is("1")).text("CPUs of its own, reserved at every design point"),
        key("fresh", Flag, "false", Is("true"))
            .text("whether every trial starts a new one, or one is kept over all trials"),
        key("directory", Text, "\"db\"", Means("quintain's own")).text("working directory"),
        key("environment", Named(&Text), "{ THREADS = \"1\" }", Means("quintain's own"))
            .text("environment variables to add"),
        key("port", PORT, "6379", Means("a free port")).text("a fixed port"),
        key("ready_timeout", TO_START, "\"5s\"", Is("\"10s\"")).text("time limit to listen on its port"),
        key("stop_timeout", TO_START, "\"1s\"", Is("\"2s\"")).text("time limit to exit after SIGTERM"),
    ],
};

/// Keys of `[load]`.
pub static LOAD: Keys = Keys::new("load", "The load: protocol, clients, rate, duration").keys(&[
    key("protocol", PROTOCOL, "\"pingpong\"", Mistake).text("protocol of the load"),
    key("clients", Either(&[CLIENT_COUNT, CLIENTS_SHAPE]), "40", Mistake)
        .text("number of connections; if it changes, the maximum is open from the start"),
    key("threads", Count(1, THREADS_MAX as u64), "2", Means("one per CPU")).text("worker threads of the generator"),
    key("cpus", CPUS, "1", Means("all that the server leaves")).text("CPUs of the generator"),
    key("share_cpus", Flag, "true", Is("false")).text("whether the generator may use the server's CPUs"),
    key("backend", Word("backend", || words(BACKENDS)), "\"epoll\"", Is("\"auto\""))
        .text("I/O backend of the generator"),
    key("loop", Word("loop", || words(LOOPS)), "\"open\"", Means("open with a `rate`, otherwise closed"))
        .text("closed: the next request is sent after the response; open: when it is due"),
    key("rate", Either(&[Rate, OF_CAPACITY, SHAPE]), "\"10k\"", Means("required in an open loop"))
        .text("requests per second over all clients; of a journey, journeys per second"),
    key("arrivals", Word("arrival process", || words(ARRIVALS)), "\"constant\"", Is("\"poisson\""))
        .text("arrival process of an open loop"),
    key("think", Text, "\"exponential:2s\"", Is("\"0s\""))
        .text("closed loop: think time between a response and the next request, or between journeys, as in `[[step]]`"),
    key("search", Table(&SEARCH), "{ objective = \"p99 < 5ms\" }", NONE)
        .text("instead of a rate: find the highest that meets an objective"),
    key("capacity", Table(&SEARCH), "{ objective = \"p99 < 5ms\" }", NONE)
        .text("the same, run first, once for all points that differ only in their fraction of it"),
    key("warmup", Either(&[Duration(0, HOUR), STEADY, Table(&WARMUP)]), "\"500ms\"", WARMUP_BY_LOAD)
        .text("load before measuring"),
    key("stop", Either(&[MEASURED, Table(&STOP)]), "\"5s\"", REQUIRED_WITHOUT_SHAPE).text("when a trial ends"),
    key("window", Duration(MS, 60 * S), "\"50ms\"", Is("\"100ms\"")).text("length of a time window of the measurement"),
    key("timeout", Duration(TIMEOUT_MIN_NS, HOUR), "\"5s\"", Is("\"2s\""))
        .text("response timeout; a late response is an error"),
    key("path", Text, "\"/items/{{seq}}\"", Is("\"/\""))
        .text("HTTP: path and query; it, headers and body may have values in `{{…}}`"),
    key("method", Text, "\"POST\"", Is("\"GET\"")).text("HTTP: method"),
    key("headers", Named(&Text), "{ Accept = \"text/plain\" }", NONE).text("HTTP: headers; `Host` is added"),
    key("body", Text, "\"name=value\"", NONE).text("HTTP: request body"),
    key("body_file", Text, "\"body.json\"", NONE)
        .text("HTTP: file with the request body, relative to the study's directory"),
    key("request", Tables(&REQUEST), "[{ path = \"/a\" }, { path = \"/b\", weight = 3 }]", ONE_IN_LOAD)
        .text("HTTP: a mix of requests"),
    key("expect_status", Either(&[STATUS, List(&STATUS), STATUSES]), "200", Means("200 to 299"))
        .text("HTTP: valid status codes"),
    key("expect_body", Text, "\"ok\"", Means("any of the right length")).text("HTTP: exact body of a valid response"),
    key("expect_json", Named(&Text), "{ \"$.id\" = \"{{seq}}\" }", Means("not checked"))
        .text("HTTP: values in JSON bodies, by path (RFC 9535)"),
    key("expect_matches", Text, "\"^ok\"", Means("not checked")).text("HTTP: regular expression that matches bodies"),
    key("expect_length", Text, "\"100..2000\"", Means("not checked"))
        .text("HTTP: least and greatest length of bodies, bytes"),
    key("check", Fraction(0.0, 1.0), "\"1%\"", Is("1"))
        .text("HTTP: fraction of the responses whose JSON, length and regular expression are checked"),
    key("pipeline", Count(1, PIPELINE_MAX as u64), "16", Is("1"))
        .text("HTTP and caches: requests in flight per connection"),
    key("http", Word("HTTP version", || words(HTTP_VERSIONS)), "\"2\"", Is("\"1.1\""))
        .text("HTTP: its version; also for journeys"),
    key("grpc", Flag, "true", Is("false"))
        .text("HTTP: gRPC calls over HTTP/2; `path` is `/package.Service/Method`, the body is the encoded message"),
    key("proto", Text, "\"shop.proto\"", NONE)
        .text("HTTP: the `.proto` file or descriptor set of gRPC messages; bodies and checks are then JSON"),
    key("messages", Word("order", || words(GRPC_MESSAGES)), "\"in-turn\"", Is("\"at-once\""))
        .text("HTTP: when a gRPC call sends several messages; in turn, each after a message of the response"),
    key("streams", Count(1, STREAMS_MAX as u64), "10", Is("1")).text("HTTP: requests in flight per HTTP/2 connection"),
    key("stream_window", Bytes(1, Http2Settings::WINDOW_BYTES_MAX as u64), "\"64KiB\"", Means("the largest"))
        .text("HTTP: flow-control window of each HTTP/2 stream, bytes"),
    key("connection_window", CONNECTION_WINDOW, "\"1MiB\"", Means("the largest"))
        .text("HTTP: flow-control window of each HTTP/2 connection, bytes"),
    key("header_table", Bytes(0, Http2Settings::HEADER_TABLE_BYTES_MAX as u64), "\"64KiB\"", Is("\"4KiB\""))
        .text("HTTP: maximum size of the HPACK table for responses, bytes"),
    key("connection", Word("connection use", || words(CONNECTIONS)), "\"per-request\"", Is("\"keep-alive\""))
        .text("HTTP: whether connections are reused"),
    key("values", Named(&Text), "{ user = \"csv:users.csv:email\", order = \"seq:1000\" }", NONE)
        .text("HTTP: names for values, `{{user}}`"),
    key("requests_per_connection", Count(1, u32::MAX as u64), "100", Means("no limit"))
        .text("HTTP: the client closes a connection after this many requests"),
    key("insecure", Flag, "true", Is("false")).text("https: accept any certificate"),
    key("ca_file", Text, "\"roots.pem\"", Means("the public roots")).text("https: trusted root certificates (PEM)"),
    key("cert_file", Text, "\"client.pem\"", Means("no client certificate"))
        .text("https: certificate of the generator (PEM)"),
    key("key_file", Text, "\"client.key\"", Means("`cert_file`")).text("https: its private key (PEM)"),
    key("server_name", Text, "\"example.org\"", Is("\"localhost\"")).text("https: expected name in the certificate"),
    key("resume", Flag, "false", Is("true")).text("https: whether sessions are resumed"),
    key("workload", Table(&WORKLOAD), "{ preset = \"etc-2012\" }", Means("required for caches"))
        .text("caches: the workload"),
    key("journey", Either(&[Text, Tables(&JOURNEY_OF_LOAD)]), "\"evernote\"", NONE)
        .text("a sequence of calls: a built-in journey, or a file; or several with weights"),
    key("targets", Named(&Text), "{ user = \"http://127.0.0.1:{port}\" }", Means("the journey's own"))
        .text("journeys: URLs of the services, by name"),
    key("resolve", Text, "\"http://127.0.0.1:{admin_port}\"", NONE).text("journeys: URL of the resolver"),
    key("keep_calls", Flag, "true", Is("false")).text("journeys: whether every call is recorded"),
    key("identities", Word("identities of a journey", || words(IDENTITIES)), "\"reused\"", Is("\"fresh\""))
        .text("journeys: whether each journey has a new user"),
    key("variants", Variants, "{ }", NONE).text("keys of this section that differ at a level of a factor"),
]);

static JOURNEY_OF_LOAD: Keys =
    Keys::new("load.journey", "Journeys: one entry per journey; clients draw the next one by weight").keys(&[
        key("file", Text, "\"browse.toml\"", Mistake).text("a built-in journey, or a file"),
        key("weight", Count(1, 1_000_000), "3", Is("1")).text("relative frequency"),
    ]);

static STOP: Keys = Keys::new("load.stop", "When a trial ends: one of `duration`, `requests`, `relative` and `rule`")
    .keys(&[
        key("duration", MEASURED, "\"5s\"", NONE).text("after this time"),
        key("requests", REQUESTS, "1_000_000", NONE).text("after this many requests"),
        key("relative", RELATIVE, "0.01", NONE)
            .text("when the mean latency of this trial is known to within this fraction"),
        key("level", LEVEL, "0.99", Is("0.95")).text("with `relative`: confidence level of the interval"),
        key("rule", Word("stop rule", || vec!["volley"]), "\"volley\"", NONE).text("volley's stop rule"),
        key("round", REQUESTS, "100_000", Is("1_000_000")).text("with `rule`: requests per round"),
        key("half_width", Duration(1, S), "\"2us\"", Is("\"5us\""))
            .text("with `rule`: target half-width of the interval"),
        key("max_time", MEASURED, "\"1m\"", Means("60s; 180s with `rule`"))
            .text("with `requests`, `relative` and `rule`: maximum length of a trial"),
    ]);

static WARMUP: Keys = Keys::new("load.warmup", "Load before measuring: one of these keys").keys(&[
    key("duration", Duration(0, HOUR), "\"1s\"", NONE).text("for this time"),
    key("requests", Count(0, 1_000_000_000_000), "10_000", NONE).text("for this many requests"),
    key("share", Fraction(0.0, 10.0), "0.5", NONE).text("requests, as a fraction of those measured"),
    key("steady", Duration(S, HOUR), "\"30s\"", NONE).text("caches: until the hit ratio is steady, at most this long"),
]);

static SEARCH: Keys = Keys::new("load.search", "The highest rate that meets an objective").keys(&[
    key("objective", Text, "\"p99 < 5ms\"", Mistake).text("the objective: `p99 < 5ms and errors < 0.1%`"),
    key("from", Rate, "\"1k\"", Means("found by a pilot")).text("where the search starts"),
    key("to", Rate, "\"100k\"", Means("no limit")).text("highest rate to try"),
    key("resolution", Fraction(0.005, 0.5), "0.02", Is("0.05"))
        .text("maximum gap between the rates that meet and miss the objective"),
    key("confirm", Count(1, 20), "5", Is("3")).text("trials that must agree at both ends"),
    key("max_steps", Count(5, 1_000), "100", Is("60")).text("maximum number of trials"),
    key("max_time", STUDY_TIME, "\"10m\"", Means("no limit")).text("time limit of the search"),
]);

static REQUEST: Keys = Keys::new("load.request", "HTTP: one request of a mix").keys(&[
    key("path", Text, "\"/index.html\"", Is("\"/\"")).text("path and query"),
    key("method", Text, "\"POST\"", Is("\"GET\"")).text("method"),
    key("headers", Named(&Text), "{ Accept = \"text/plain\" }", Means("those of `[load]`"))
        .text("headers, on top of those of `[load]`"),
    key("body", Text, "\"name=value\"", NONE).text("request body"),
    key("body_file", Text, "\"body.json\"", NONE).text("file with the request body"),
    key("weight", Count(1, 1_000_000), "3", Is("1")).text("relative frequency"),
    key("name", Text, "\"list\"", Means("method and path")).text("name in reports, which requests may share"),
]);

pub(crate) static WORKLOAD: Keys = Keys {
    name: "load.workload",
    text: "A cache workload: operations, keys and values; or a trace; or a preset and changes to it",
    keys: &[
        key("preset", Text, "\"etc-2012\"", NONE)
            .text("a named workload that the keys below can change; `quintain workload show --help` lists them"),
        key("operations", Table(&OPERATIONS), "{ get = 0.9, set = 0.1 }", OF_TRACE_OR_REQUIRED)
            .text("weights of the operations"),
        key("fill", Flag, "false", Means("the preset's, otherwise `true`"))
            .text("whether a missed GET is followed by a SET of its key"),
        key("ttl", Either(&[TTL_TIME, Tables(&TTL)]), "\"1h\"", Means("the preset's, otherwise no expiry"))
            .text("time to live of values: a time, or times with shares; the rest never expire"),
        key("keys", Table(&WORKLOAD_KEYS), "{ count = 10_000 }", OF_PRESET).text("number, popularity and size of keys"),
        key("values", Table(&VALUES), "{ max = \"1MiB\" }", OF_PRESET).text("size of values"),
        key("trace", Table(&TRACE), "{ file = \"cluster52.zst\", format = \"twitter\" }", NONE)
            .text("a recorded trace instead"),
    ],
};

const TTL_TIME: Kind = Duration(S, TTL_MAX_S as u64 * S);

static OPERATIONS: Keys =
    Keys::new("load.workload.operations", "Weights of the operations; those not listed have weight 0").keys(&[
        key("get", WEIGHT, "0.9", OF_PRESET).text("GETs"),
        key("set", WEIGHT, "0.1", OF_PRESET).text("SETs"),
        key("delete", WEIGHT, "0.01", OF_PRESET).text("DELETEs"),
        key("read_modify_write", WEIGHT, "0.05", OF_PRESET).text("GETs followed by a SET of the same key"),
    ]);

const WEIGHT: Kind = Number(0.0, 1e9);

static TTL: Keys = Keys::new("load.workload.ttl", "A time to live for a share of the values").keys(&[
    key("time", TTL_TIME, "\"24h\"", Mistake).text("time to live, in whole seconds"),
    key("share", SHARE, "0.65", Mistake).text("share of the values"),
]);

static WORKLOAD_KEYS: Keys = Keys::new("load.workload.keys", "Number, popularity and size of keys").keys(&[
    key("count", Count(0, KEYS_MAX), "100_000", Means("the preset's, otherwise 100,000, or 0 with `reuse`"))
        .text("number of keys; with `reuse`, those that exist at the start"),
    key("popularity", POPULARITY, "\"zipf\"", OF_PRESET_OR_UNIFORM)
        .text("popularity of the keys; with `reuse`, ranks are ages, newest first"),
    key("exponent", Number(0.0, 20.0), "0.99", OF_PRESET_OR_REQUIRED).text("`zipf`: exponent"),
    key("hot_keys", Count(0, KEYS_MAX), "1000", OF_PRESET_OR_REQUIRED).text("`hot-set`: number of hot keys"),
    key("hot_share", SHARE, "0.9", OF_PRESET_OR_REQUIRED).text("`hot-set`: share of operations on hot keys"),
    key("shift_every", REQUESTS, "1_000_000", Means("the preset's, otherwise never"))
        .text("operations after which other keys become popular"),
    key("reuse", SHARE, "0.96", Means("the preset's, otherwise a fixed population"))
        .text("probability that an operation uses an earlier key instead of a new one"),
    key("new", NEW_KEY, "\"set\"", Means("the preset's, otherwise `any`"))
        .text("with `reuse`: first operation on a new key"),
    key("one_hit", SHARE, "0.1", Means("the preset's, otherwise 0")).text("share of operations on keys used only once"),
    key("invalidation", SHARE, "0.05", Means("the preset's, otherwise 0"))
        .text("probability that an operation on an existing key deletes it instead"),
    key("neighbours_hot", Flag, "true", Means("the preset's, otherwise `false`"))
        .text("whether popular keys are adjacent, as in YCSB's plain Zipf, instead of scattered"),
    key("size", Table(&LAW), "{ law = \"constant\", bytes = 20 }", OF_PRESET_OR_REQUIRED).text("length distribution"),
    key("max", Count(KEY_LEAST_BYTES, KEY_MAX_BYTES), "250", Means("the preset's, otherwise 250"))
        .text("maximum length in bytes; longer keys are cut"),
]);

static VALUES: Keys = Keys::new("load.workload.values", "Size of values").keys(&[
    key("size", Table(&LAW), "{ law = \"gamma\", shape = 4, scale = 7 }", OF_PRESET_OR_REQUIRED)
        .text("length distribution"),
    key("max", Bytes(0, VALUE_MAX_BYTES), "\"64KiB\"", Means("the preset's, otherwise 1 MiB"))
        .text("maximum length; longer values are cut"),
    key("length", VALUE_LENGTH, "\"per-set\"", Means("the preset's, otherwise `per-key`"))
        .text("whether the length of a value is fixed per key or drawn at each SET"),
]);

static LAW: Keys = Keys::new("size", "A distribution of lengths in bytes: `law` and its parameters").keys(&[
    key("law", Word("length distribution", || words(LAWS)), "\"gamma\"", Mistake).text("distribution"),
    key("bytes", PARAMETER, "100", NONE).text("with `constant`"),
    key("low", PARAMETER, "10", NONE).text("with `uniform` and `bimodal`: the lower length"),
    key("high", PARAMETER, "1000", NONE).text("with `uniform` and `bimodal`: the higher length"),
    key("high_share", PARAMETER, "0.1", NONE).text("with `bimodal`: share of the higher length"),
    key("mean", PARAMETER, "200", NONE).text("with `exponential`"),
    key("median", PARAMETER, "200", NONE).text("with `lognormal`"),
    key("sigma", PARAMETER, "1", NONE).text("with `lognormal`: standard deviation of the logarithm"),
    key("location", PARAMETER, "30", NONE).text("with `gev` and `pareto`"),
    key("shape", PARAMETER, "4", NONE).text("with `gamma`, `gev` and `pareto`"),
    key("scale", PARAMETER, "7", NONE).text("with `gamma`, `gev` and `pareto`"),
    key("values", WEIGHTED_LENGTHS, "[[2, 0.3], [10, 20, 0.7]]", NONE).text("with `empirical`"),
    key("tail", Table(&TAIL), "{ law = \"pareto\", location = 500, scale = 300, shape = 0.3, weight = 0.5 }", NONE)
        .text("with `empirical`: distribution of lengths not in `values`"),
]);

static TAIL: Keys = Keys {
    name: "size.tail",
    text: "The distribution of lengths not in `values`: as `size`, except `empirical`, with a weight",
    keys: &[
        key("law", LAW_OF_TAIL, "\"pareto\"", Mistake).text("distribution"),
        key("bytes", PARAMETER, "100", NONE).text("as in `size`"),
        key("low", PARAMETER, "10", NONE).text("as in `size`"),
        key("high", PARAMETER, "1000", NONE).text("as in `size`"),
        key("high_share", PARAMETER, "0.1", NONE).text("as in `size`"),
        key("mean", PARAMETER, "200", NONE).text("as in `size`"),
        key("median", PARAMETER, "200", NONE).text("as in `size`"),
        key("sigma", PARAMETER, "1", NONE).text("as in `size`"),
        key("location", PARAMETER, "500", NONE).text("as in `size`"),
        key("shape", PARAMETER, "0.3", NONE).text("as in `size`"),
        key("scale", PARAMETER, "300", NONE).text("as in `size`"),
        key("weight", WEIGHT, "0.5", Mistake).text("relative to the weights of `values`"),
    ],
};

static TRACE: Keys = Keys::new("load.workload.trace", "A recorded trace").keys(&[
    key("file", Text, "\"cluster52.zst\"", Mistake).text("trace file, plain or compressed with zstd"),
    key("format", Word("trace format", || words(FORMATS)), "\"twitter\"", Mistake).text("file format"),
    key("gaps", Word("gap rule", || words(GAPS)), "\"recorded\"", Is("\"none\""))
        .text("`recorded`: send operations at their recorded times; `none`: at the rate of the load"),
    key("speed", Number(1e-6, 1e6), "10", Is("1")).text("with `recorded`: speed-up factor"),
]);

static TRIALS: Keys = Keys {
    name: "trials",
    text: "The number of trials",
    keys: &[key("stop", Table(&TRIALS_STOP), "{ comparison = 0.03, min = 12, max = 30 }", Mistake).text("stop rule")],
};

static TRIALS_STOP: Keys = Keys::new("trials.stop", "When to stop; all design points get the same number of blocks")
    .keys(&[
        key("comparison", RELATIVE, "0.03", Means("0.03 if no other rule is given")).text(
            "stop when ratios between contenders are known to within this fraction, or values if nothing competes",
        ),
        key("relative", RELATIVE, "0.03", NONE).text("instead: stop when values are known to within this fraction"),
        key("level", LEVEL, "0.99", Is("0.95")).text("confidence level of all intervals"),
        key("metric", METRIC, "\"throughput\"", Means("`\"latency_mean\"`; with `[gate]`, `\"latency_p50\"`"))
            .text("main metric of the study"),
        key("min", Count(1, 10_000), "18", Means("12")).text("minimum number of blocks"),
        key("max", Count(1, 10_000), "60", Means("30")).text("maximum number of blocks"),
        key("max_time", STUDY_TIME, "\"20m\"", Means("no limit")).text("time limit for all blocks"),
    ]);

static GATE: Keys = Keys {
    name: "gate",
    text: "A baseline and the limits for each candidate: design points that differ only in this factor are compared pair by pair",
    keys: &[
        key("of", FACTOR, "\"server\"", Means("the first factor with words as levels"))
            .text("the factor whose levels are compared"),
        key("base", Name("level"), "\"old\"", Means("its first level"))
            .text("the level that is the baseline; all others are candidates"),
        key(
            "fail_if",
            Text,
            "\"p99 > 1.05 or throughput < 0.97 or p99 > 5ms\"",
            Means("nothing fails: shows whether they differ in median and p99 latency, throughput, CPU time and memory, or in `trials.stop.metric`"),
        )
        .text("limits that fail a candidate; `1.05` and `+5%` are relative to the baseline, `5ms` and, of shares, `0.1%` are values"),
        key("allow_errors", Fraction(0.0, 0.5), "\"0.1%\"", Is("0.0"))
            .text("how much the candidate's share of failed requests may exceed the baseline's; more fails it"),
        key("undecided", Word("outcome", || words(UNDECIDED)), "\"fail\"", Is("\"pass\""))
            .text("result for a candidate shown neither to fail nor to pass: exit code 0, 1, or 125, which makes `git bisect run` skip the commit"),
    ],
};

static EFFECTS: Keys = Keys {
    name: "effects",
    text: "Effects of the factors",
    keys: &[key("metrics", List(&METRIC), "[\"throughput\", \"latency_p95\"]", Mistake)
        .text("metrics to analyze; an empty list means none")],
};

static SLOPES: Keys = Keys {
    name: "slopes",
    text: "Trends over the requests of a trial",
    keys: &[key("over_requests", List(&SERIES), "[\"latency\", \"proxy_rss\"]", Mistake).text("series to analyze")],
};

static FIGURE: Keys = Keys::new("figure", "A figure").keys(&[
    key("kind", Word("figure kind", || FIGURES.to_vec()), "\"line\"", Mistake).text("kind of figure"),
    key("x", FACTOR, "\"cores\"", Means("nothing"))
        .text("factor on the x axis; for a miss-ratio curve, the memory limits"),
    key("y", Either(&[METRIC, List(&METRIC)]), "\"throughput\"", NO_METRIC)
        .text("metric on the y axis; several with one unit become series; an interaction has one figure per metric"),
    key("series", FACTOR, "\"clients\"", Means("the remaining factors")).text("factor whose levels are series"),
    key("facet", FACTOR, "\"server\"", NONE).text("factor with one panel per level"),
    key("interval", LEVEL, "0.99", Means("that of `trials.stop`")).text("confidence level of the intervals"),
    key("title", Text, "\"Servers by clients\"", Means("generated")).text("title"),
    key("policies", List(&POLICY), "[\"lru\", \"belady\"]", Means("`lru`, `belady`, `belady-size`"))
        .text("miss-ratio curve: eviction policies to simulate"),
    key("unit", Kind::other("a unit of memory"), "\"MiB\"", Means("bytes"))
        .text("miss-ratio curve: unit of the numbers on `x`"),
]);

static TABLE: Keys =
    Keys::new("table", "A table in addition to the standard one: either `metric` or `metrics`").keys(&[
        key("metric", METRIC, "\"throughput\"", NONE)
            .text("one metric: sample mean, sample standard deviation, interval and trials"),
        key("metrics", List(&METRIC), "[\"throughput\", \"latency_p99\"]", NONE)
            .text("several metrics, one column each"),
        key("title", Text, "\"Servers\"", Means("generated")).text("title"),
    ]);

/// Keys of a journey file.
pub static JOURNEY: Keys = Keys {
    name: "journey",
    text: "A journey file. Strings are templates: `{name}` is the value of a name, `{number}` the journey's number, `{number*3}` three times that",
    keys: &[
        key("name", Text, "\"evernote\"", Mistake).text("the journey's name"),
        key("targets", Named(&Text), "{ api = \"https://127.0.0.1:8443\" }", NONE)
            .text("URLs of the services, by name; `\"\"` if every run must set it"),
        key("schemas", Named(&Text), "{ notes = \"evernote.thrift\" }", NONE)
            .text("Thrift IDL or WSDL by name: built in, or a file next to this one"),
        key("let", Named(&Text), "{ token = \"{random:8}\" }", NONE)
            .text("strings made once when a journey starts; `{random:8}` is 8 characters of `a-z0-9`"),
        key("step", Tables(&STEP), "[{ url = \"{api}/notes\" }]", Mistake).text("the calls, in order"),
    ],
};

static STEP: Keys =
    Keys::new("step", "One call of a journey: one of `thrift`, `soap` and `method`; REST if none is given").keys(&[
        key("name", Text, "\"list\"", Means("the method, the operation, or method and path"))
            .text("the operation's name in reports; steps may share one"),
        key("url", Text, "\"{api}/notes\"", Mistake)
            .text("URL, a template: `http://host:port/path` or `https:...`; may come from a response"),
        key("thrift", Text, "\"notes UserStore.getUser\"", NONE)
            .text("`schema Service.method`: Thrift in the binary protocol, as the body of a POST"),
        key("soap", Text, "\"chess MakeAMove\"", NONE).text("`schema Operation`: SOAP 1.1"),
        key("method", Text, "\"POST\"", Means("`GET`")).text("REST: the method"),
        key("body", Text, "\"{token}\"", NONE).text("REST: the body, a template"),
        key("arguments", Named(&JSON), "{ authenticationToken = \"{token}\" }", NONE)
            .text("Thrift and SOAP: arguments by name; a string that is a single template has the type of its value"),
        key("headers", Named(&Text), "{ Accept = \"text/plain\" }", NONE).text("headers; values are templates"),
        key("take", Named(&Text), "{ store = \"result[0].noteStoreUrl\" }", NONE)
            .text("names for parts of the response: a path from `body` in REST, `result` elsewhere; for REST also `header.NAME`, `cookie.NAME`, `decoded(cookie.NAME)` and `match(REGEX)`; with `?` at the end, empty if missing"),
        key("once", Flag, "true", Is("false"))
            .text("call it in a client's first journey and after a failed one, without counting it, and keep its values and cookies"),
        key("think", Text, "\"exponential:2s\"", NONE)
            .text("pause between the response before and this call: a time, or one of `exponential:MEAN`, `uniform:LOW,HIGH`, `lognormal:MEDIAN,SIGMA`"),
        key("repeat", Count(1, 10_000), "3", Is("1")).text("number of calls in a row"),
        key("when", Text, "\"{stock} > 0\"", Means("always"))
            .text("call it only if this holds: two templates with `==`, `!=`, `<`, `<=`, `>` or `>=` between them"),
        key("expect", Named(&JSON), "{ \"result.totalNotes\" = 1 }", NONE)
            .text("expected parts of the response, as templates; for REST also `status`, otherwise 200 to 299"),
    ]);
