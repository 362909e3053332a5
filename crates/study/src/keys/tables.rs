//! The declarations.

use super::Kind::{
    Bytes, Count, Duration, Either, Flag, Fraction, Levels, List, Named, Number, Other, Profile, Rate, Table, Tables,
    Text, Variants, Word,
};
use super::Missing::{Is, Means, Mistake};
use super::{Key, Keys, Kind, Missing, words};
use crate::limits::{CLIENTS_MAX, CPUS_MAX, PIPELINE_MAX, THREADS_MAX, TIMEOUT_MIN_NS};
use crate::workload::trace::{KEY_LEAST_BYTES, TTL_MAX_S};
use crate::workload::{KEY_MAX_BYTES, KEYS_MAX, VALUE_MAX_BYTES};

const fn key(name: &'static str, kind: Kind, example: &'static str, missing: Missing, text: &'static str) -> Key {
    Key { name, kind, example, missing, text }
}

const NONE: Missing = Means("none");

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * S;

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
const METRIC: Kind = Word("metric", words::metrics);
const FACTOR: Kind = Other("the name of a factor");

/// A study.
pub static STUDY: Keys = Keys {
    name: "",
    text: "A study: what is asked, what answers, who asks, what is varied, and when there are enough trials",
    keys: &[
        key("question", Text, "\"Which server is fastest?\"", Mistake, "what the study asks"),
        key(
            "answer",
            Table(&ANSWER),
            "{ asks = \"values\" }",
            Means("what factors and figures leave no doubt about"),
            "what kind of answer is wanted",
        ),
        key(
            "design",
            Word("design", words::designs),
            "\"full\"",
            Is("\"full\""),
            "which combinations of levels are measured: all, or from the first level of each factor one change at a time, which is blind to interactions",
        ),
        key("subject", Table(&SUBJECT), "{ command = \"my-server -p {port}\" }", Mistake, "the server"),
        key(
            "proxy",
            Named(&Table(&PROXY)),
            "{ haproxy = { command = \"haproxy -db -f {folder}/haproxy.cfg\" } }",
            NONE,
            "processes that may stand between generator and subject, by name",
        ),
        key(
            "load",
            Table(&LOAD),
            "{ protocol = \"pingpong\", clients = 40, stop = \"5s\" }",
            Mistake,
            "who asks, how many, how fast, how long",
        ),
        key(
            "factors",
            Named(&Levels),
            "{ clients = [40, 80] }",
            Means("one design point"),
            "what is varied, by name; `{name}` in `[subject]`, `[proxy.NAME]` and `[load]` stands for its level, and the levels of `through` say which proxies are passed: `direct`, a name, `a + b`",
        ),
        key(
            "trials",
            Table(&TRIALS),
            "{ stop = { comparison = 0.03 } }",
            Means("until contenders are told apart to 3 %, 12 to 30 blocks"),
            "when there are enough",
        ),
        key(
            "effects",
            Table(&EFFECTS),
            "{ metrics = [\"throughput\"] }",
            Means("in the metric of `trials.stop` and those of the figures"),
            "the effects of the factors",
        ),
        key(
            "slopes",
            Table(&SLOPES),
            "{ over_requests = [\"latency\"] }",
            NONE,
            "what is looked at over the requests of a trial",
        ),
        key("figure", Tables(&FIGURE), "[{ kind = \"timeline\" }]", NONE, "what is drawn"),
        key(
            "table",
            Tables(&TABLE),
            "[{ metric = \"throughput\" }]",
            NONE,
            "tables beside the one that every report has",
        ),
        key(
            "quick",
            Profile,
            "{ factors = { clients = [40] } }",
            Means("three blocks of everything"),
            "what `--quick` has otherwise",
        ),
        key("full", Profile, "{ factors = { clients = [40, 80] } }", Means("nothing"), "what `--full` has otherwise"),
    ],
};

static ANSWER: Keys = Keys {
    name: "answer",
    text: "What kind of answer is wanted; `quintain check` says what a study will answer",
    keys: &[
        key(
            "asks",
            Word("question", words::questions),
            "\"best\"",
            Mistake,
            "which level is best; what is added to `direct`; how something grows with a factor of numbers; how much can be taken; which factors matter; the values alone",
        ),
        key("of", FACTOR, "\"server\"", Means("the one that fits"), "the factor that it is about"),
    ],
};

/// `[subject]`.
pub(crate) static SUBJECT: Keys = Keys {
    name: "subject",
    text: "How the server is built and started",
    keys: &[
        key("build", Text, "\"make server\"", Means("nothing is built"), "run once before the first trial"),
        key(
            "command",
            Text,
            "\"my-server -p {port}\"",
            Mistake,
            "starts the server; `{port}` is its port, a leading `quintain` this binary",
        ),
        key(
            "cpus",
            Either(&[CPUS, Word("number of processors", words::all_cpus), Table(&UP_TO)]),
            "2",
            Is("1"),
            "processors of the server: so many; `{ up_to = 8 }`, fewer where the generator leaves fewer; `\"all\"` that it leaves",
        ),
        key("directory", Text, "\"subjects/mine\"", Means("where quintain was started"), "where it is started"),
        key(
            "environment",
            Named(&Text),
            "{ WORKERS = \"2\" }",
            Means("quintain's own"),
            "environment variables to add",
        ),
        key("port", PORT, "8080", Means("a free one"), "the port that it always uses"),
        key("ready_timeout", TO_START, "\"5s\"", Is("\"10s\""), "how long it may take to answer on its port"),
        key("stop_timeout", TO_START, "\"1s\"", Is("\"2s\""), "how long it may take to end when asked"),
        key(
            "variants",
            Variants,
            "{ }",
            NONE,
            "keys of this section that hold otherwise where a factor has this level",
        ),
    ],
};

static UP_TO: Keys = Keys {
    name: "subject.cpus",
    text: "Processors where the machine may have fewer",
    keys: &[key("up_to", CPUS, "8", Mistake, "so many at most")],
};

/// `[proxy.NAME]`.
pub(crate) static PROXY: Keys = Keys {
    name: "proxy.NAME",
    text: "A process that may stand between generator and subject; in its texts `{port}`, `{folder}`, `{subject_port}`, `{next_port}` and `{admin_port}` are filled in",
    keys: &[
        key("build", Text, "\"make proxy\"", Means("nothing is built"), "run once before the first trial"),
        key("command", Text, "\"haproxy -db -f {folder}/haproxy.cfg\"", Mistake, "starts it"),
        key("directory", Text, "\"proxies\"", Means("where quintain was started"), "where it is started"),
        key(
            "environment",
            Named(&Text),
            "{ THREADS = \"1\" }",
            Means("quintain's own"),
            "environment variables to add",
        ),
        key(
            "files",
            Named(&Text),
            "{ \"haproxy.cfg\" = \"studies/haproxy.cfg\" }",
            NONE,
            "files that it finds in `{folder}`: their names, and the files they are made of, templates filled in",
        ),
        key("calls", Text, "\"calls.csv\"", NONE, "the file in `{folder}` that it writes its calls into"),
        key(
            "cpus",
            Either(&[CPUS, Word("place", words::cpus_of_subject)]),
            "1",
            Is("\"subject\""),
            "processors of its own, kept free at every design point, or those of the subject",
        ),
        key("port", PORT, "8443", Means("a free one"), "the port that it always uses"),
        key("ready_timeout", TO_START, "\"5s\"", Is("\"10s\""), "how long it may take to answer on its port"),
        key("stop_timeout", TO_START, "\"1s\"", Is("\"2s\""), "how long it may take to end when asked"),
    ],
};

/// `[load]`.
pub static LOAD: Keys = Keys {
    name: "load",
    text: "Who asks, how many, how fast, how long",
    keys: &[
        key("protocol", Word("protocol", words::protocols), "\"pingpong\"", Mistake, "what is spoken"),
        key("clients", Count(1, CLIENTS_MAX as u64), "40", Mistake, "connections"),
        key("threads", Count(1, THREADS_MAX as u64), "2", Means("one a processor"), "workers of the generator"),
        key("cpus", CPUS, "1", Means("all that the subject leaves"), "processors of the generator"),
        key("share_cpus", Flag, "true", Is("false"), "whether it may use the subject's processors"),
        key("backend", Word("backend", words::backends), "\"epoll\"", Is("\"auto\""), "how it waits for sockets"),
        key(
            "loop",
            Word("loop", words::loops),
            "\"open\"",
            Means("open where there is a `rate`, else closed"),
            "closed: the next request goes when the answer is there; open: when it is due",
        ),
        key(
            "rate",
            Either(&[Rate, Other("a share of the capacity, such as `\"80%\"`")]),
            "\"10k\"",
            Means("a mistake in an open loop"),
            "requests a second of all clients together",
        ),
        key(
            "arrivals",
            Word("law of arrivals", words::arrivals),
            "\"constant\"",
            Is("\"poisson\""),
            "how the requests of an open loop are spread",
        ),
        key("think", Duration(0, HOUR), "\"1ms\"", Is("\"0s\""), "from an answer to the next request of a closed loop"),
        key(
            "search",
            Table(&SEARCH),
            "{ objective = \"p99 < 5ms\" }",
            NONE,
            "instead of a rate: the highest that keeps an objective is searched for",
        ),
        key(
            "capacity",
            Table(&SEARCH),
            "{ objective = \"p99 < 5ms\" }",
            NONE,
            "the same, run first for all points that differ in nothing but their share of it",
        ),
        key(
            "warmup",
            Either(&[Duration(0, HOUR), Word("warm-up", words::steady), Table(&WARMUP)]),
            "\"500ms\"",
            Means("1s; `\"steady\"` of a cache; nothing with a trace, a journey or volley's rule"),
            "asked before anything is counted",
        ),
        key("stop", Either(&[MEASURED, Table(&STOP)]), "\"5s\"", Mistake, "when a trial is long enough"),
        key("window", Duration(MS, 60 * S), "\"50ms\"", Is("\"100ms\""), "a slice of the measured time"),
        key(
            "timeout",
            Duration(TIMEOUT_MIN_NS, HOUR),
            "\"5s\"",
            Is("\"2s\""),
            "an answer that comes later is an error",
        ),
        key("path", Text, "\"/index.html\"", Is("\"/\""), "HTTP: what is asked for"),
        key("method", Text, "\"POST\"", Is("\"GET\""), "HTTP: how"),
        key("headers", Named(&Text), "{ Accept = \"text/plain\" }", NONE, "HTTP: header fields; `Host` is added"),
        key("body", Text, "\"name=value\"", NONE, "HTTP: what is sent"),
        key(
            "body_file",
            Text,
            "\"body.json\"",
            NONE,
            "HTTP: the file that is sent, relative to where quintain was started",
        ),
        key(
            "request",
            Tables(&REQUEST),
            "[{ path = \"/a\" }, { path = \"/b\", weight = 3 }]",
            Means("the one that `[load]` describes"),
            "HTTP: a mix of requests",
        ),
        key(
            "expect_status",
            Either(&[Count(100, 599), List(&Count(100, 599)), Other("a text such as `\"2xx\"`")]),
            "200",
            Means("200 to 299"),
            "HTTP: right statuses",
        ),
        key("expect_body", Text, "\"ok\"", Means("any, of the right length"), "HTTP: the right body, exactly"),
        key(
            "pipeline",
            Count(1, PIPELINE_MAX as u64),
            "16",
            Is("1"),
            "HTTP and caches: requests in flight on a connection",
        ),
        key(
            "connection",
            Word("use of connections", words::connections),
            "\"per-request\"",
            Is("\"keep-alive\""),
            "HTTP: whether a connection is used again",
        ),
        key("insecure", Flag, "true", Is("false"), "https: any certificate is right"),
        key("ca_file", Text, "\"roots.pem\"", Means("the public ones"), "https: the roots to trust, PEM"),
        key("server_name", Text, "\"example.org\"", Is("\"localhost\""), "https: the name in the certificate"),
        key("resume", Flag, "false", Is("true"), "https: whether sessions are resumed"),
        key(
            "workload",
            Table(&WORKLOAD),
            "{ preset = \"etc-2012\" }",
            Means("a mistake with a cache"),
            "caches: what is asked for",
        ),
        key("journey", Text, "\"evernote\"", NONE, "several calls after each other: one of quintain's own, or a file"),
        key(
            "targets",
            Named(&Text),
            "{ user = \"http://127.0.0.1:{port}\" }",
            Means("as the journey has them"),
            "journeys: where the calls go, by name",
        ),
        key("resolve", Text, "\"http://127.0.0.1:{admin_port}\"", NONE, "journeys: who is asked where the calls go"),
        key("keep_calls", Flag, "true", Is("false"), "journeys: whether each call is kept"),
        key(
            "identities",
            Word("identities of a journey", words::identities),
            "\"reused\"",
            Is("\"fresh\""),
            "journeys: whether each round is a new user",
        ),
        key(
            "variants",
            Variants,
            "{ }",
            NONE,
            "keys of this section that hold otherwise where a factor has this level",
        ),
    ],
};

static STOP: Keys = Keys {
    name: "load.stop",
    text: "When a trial is long enough: one of `duration`, `requests`, `relative` and `rule`",
    keys: &[
        key("duration", MEASURED, "\"5s\"", NONE, "after a time"),
        key("requests", REQUESTS, "1_000_000", NONE, "after so many requests"),
        key("relative", RELATIVE, "0.01", NONE, "when the mean latency of this trial is known within a fraction"),
        key("level", LEVEL, "0.99", Is("0.95"), "with `relative`: the level of the interval"),
        key("rule", Word("stop rule", words::rules), "\"volley\"", NONE, "volley's own rule"),
        key("round", REQUESTS, "100_000", Is("1_000_000"), "with `rule`: requests of a round"),
        key(
            "half_width",
            Duration(1, S),
            "\"2us\"",
            Is("\"5us\""),
            "with `rule`: half of the interval that is narrow enough",
        ),
        key(
            "max_time",
            MEASURED,
            "\"1m\"",
            Means("60s; 180s with `rule`"),
            "with `requests`, `relative` and `rule`: the longest that a trial takes",
        ),
    ],
};

static WARMUP: Keys = Keys {
    name: "load.warmup",
    text: "What is asked before anything is counted: one of these",
    keys: &[
        key("duration", Duration(0, HOUR), "\"1s\"", NONE, "for a time"),
        key("requests", Count(0, 1_000_000_000_000), "10_000", NONE, "so many requests"),
        key("share", Fraction(0.0, 10.0), "0.5", NONE, "so many requests, as a share of those that are counted"),
        key("steady", Duration(S, HOUR), "\"30s\"", NONE, "caches: until the hit ratio is steady, for so long at most"),
    ],
};

static SEARCH: Keys = Keys {
    name: "load.search",
    text: "The highest rate that keeps an objective",
    keys: &[
        key("objective", Text, "\"p99 < 5ms\"", Mistake, "what must be kept: `p99 < 5ms and errors < 0.1%`"),
        key("from", Rate, "\"1k\"", Means("what a pilot finds"), "where the search begins"),
        key("to", Rate, "\"100k\"", Means("no limit"), "the highest rate that is tried"),
        key(
            "resolution",
            Fraction(0.005, 0.5),
            "0.02",
            Is("0.05"),
            "how far apart the rates may be that hold and fail",
        ),
        key("confirm", Count(1, 20), "5", Is("3"), "trials that must agree at both ends"),
        key("max_steps", Count(5, 1_000), "100", Is("60"), "trials at most"),
        key("max_time", STUDY_TIME, "\"10m\"", Means("no limit"), "the longest that it takes"),
    ],
};

/// `[[load.request]]`.
pub(crate) static REQUEST: Keys = Keys {
    name: "load.request",
    text: "HTTP: one request of a mix",
    keys: &[
        key("path", Text, "\"/index.html\"", Is("\"/\""), "what is asked for"),
        key("method", Text, "\"POST\"", Is("\"GET\""), "how"),
        key(
            "headers",
            Named(&Text),
            "{ Accept = \"text/plain\" }",
            Means("those of `[load]`"),
            "header fields, over those of `[load]`",
        ),
        key("body", Text, "\"name=value\"", NONE, "what is sent"),
        key("body_file", Text, "\"body.json\"", NONE, "the file that is sent"),
        key("weight", Count(1, 1_000_000), "3", Is("1"), "how often, against the others"),
    ],
};

/// `[load.workload]`.
pub(crate) static WORKLOAD: Keys = Keys {
    name: "load.workload",
    text: "What is asked of a cache: operations, keys and values, or a trace, or a preset and what differs from it",
    keys: &[
        key(
            "preset",
            Text,
            "\"etc-2012\"",
            NONE,
            "a named workload that the keys below change one by one; `quintain workload list` has them",
        ),
        key(
            "operations",
            Table(&OPERATIONS),
            "{ get = 0.9, set = 0.1 }",
            Means("the preset's, or a trace's; else a mistake"),
            "weights of the operations",
        ),
        key(
            "fill",
            Flag,
            "false",
            Means("the preset's, else `true`"),
            "whether a GET that misses is followed by a SET of its key",
        ),
        key(
            "ttl",
            Either(&[TTL_TIME, Tables(&TTL)]),
            "\"1h\"",
            Means("the preset's, else values live for ever"),
            "how long what is set lives: a time, or times with shares, the rest for ever",
        ),
        key(
            "keys",
            Table(&WORKLOAD_KEYS),
            "{ count = 10_000 }",
            Means("the preset's"),
            "which keys there are, how often each is asked for, how long they are",
        ),
        key("values", Table(&VALUES), "{ max = \"1MiB\" }", Means("the preset's"), "how long values are"),
        key(
            "trace",
            Table(&TRACE),
            "{ file = \"cluster52.zst\", format = \"twitter\" }",
            NONE,
            "a recorded workload instead",
        ),
    ],
};

const TTL_TIME: Kind = Duration(S, TTL_MAX_S as u64 * S);

static OPERATIONS: Keys = Keys {
    name: "load.workload.operations",
    text: "Weights of the operations; those not named have none",
    keys: &[
        key("get", WEIGHT, "0.9", Means("the preset's"), "GETs"),
        key("set", WEIGHT, "0.1", Means("the preset's"), "SETs"),
        key("delete", WEIGHT, "0.01", Means("the preset's"), "deletions"),
        key(
            "read_modify_write",
            WEIGHT,
            "0.05",
            Means("the preset's"),
            "GETs that are followed by a SET of the same key",
        ),
    ],
};

const WEIGHT: Kind = Number(0.0, 1e9);

/// An item of `load.workload.ttl`.
pub(crate) static TTL: Keys = Keys {
    name: "load.workload.ttl",
    text: "A time to live of a share of the values",
    keys: &[
        key("time", TTL_TIME, "\"24h\"", Mistake, "how long they live, whole seconds"),
        key("share", SHARE, "0.65", Mistake, "the share of values that it holds for"),
    ],
};

static WORKLOAD_KEYS: Keys = Keys {
    name: "load.workload.keys",
    text: "Which keys are asked for, how often, and how long they are",
    keys: &[
        key(
            "count",
            Count(0, KEYS_MAX),
            "100_000",
            Means("the preset's, else 100,000, or none with `reuse`"),
            "keys of the population; with `reuse` those that are there before",
        ),
        key(
            "popularity",
            Word("law of popularity", words::popularities),
            "\"zipf\"",
            Means("the preset's, else `uniform`"),
            "which are asked for how often; with `reuse` ranks are ages, the newest first",
        ),
        key("exponent", Number(0.0, 20.0), "0.99", Means("the preset's, else a mistake"), "of `zipf`"),
        key(
            "hot_keys",
            Count(0, KEYS_MAX),
            "1000",
            Means("the preset's, else a mistake"),
            "of `hot-set`: how many keys have that share",
        ),
        key(
            "hot_share",
            SHARE,
            "0.9",
            Means("the preset's, else a mistake"),
            "of `hot-set`: the share of operations that they have",
        ),
        key(
            "shift_every",
            REQUESTS,
            "1_000_000",
            Means("the preset's, else never"),
            "after so many operations other keys are the popular ones",
        ),
        key(
            "reuse",
            SHARE,
            "0.96",
            Means("the preset's, else a fixed population"),
            "the probability that an operation takes an earlier key, else a new one",
        ),
        key(
            "new",
            Word("operation of a new key", words::new_keys),
            "\"set\"",
            Means("the preset's, else `any`"),
            "with `reuse`: what a new key comes with",
        ),
        key(
            "one_hit",
            SHARE,
            "0.1",
            Means("the preset's, else 0"),
            "the share of operations on a key that is used once and never again",
        ),
        key(
            "invalidation",
            SHARE,
            "0.05",
            Means("the preset's, else 0"),
            "the probability that an operation on a key that is there deletes it instead",
        ),
        key(
            "neighbours_hot",
            Flag,
            "true",
            Means("the preset's, else `false`"),
            "whether popular keys are neighbours, as in YCSB's plain Zipf, instead of scattered",
        ),
        key(
            "size",
            Table(&LAW),
            "{ law = \"constant\", bytes = 20 }",
            Means("the preset's, else a mistake"),
            "how long keys are",
        ),
        key(
            "max",
            Count(KEY_LEAST_BYTES, KEY_MAX_BYTES),
            "250",
            Means("the preset's, else 250"),
            "longer ones are cut to it, bytes",
        ),
    ],
};

static VALUES: Keys = Keys {
    name: "load.workload.values",
    text: "How long values are",
    keys: &[
        key(
            "size",
            Table(&LAW),
            "{ law = \"gamma\", shape = 4, scale = 7 }",
            Means("the preset's, else a mistake"),
            "the law of their lengths",
        ),
        key(
            "max",
            Bytes(0, VALUE_MAX_BYTES),
            "\"64KiB\"",
            Means("the preset's, else 1 MiB"),
            "longer ones are cut to it",
        ),
        key(
            "length",
            Word("length of values", words::lengths),
            "\"per-set\"",
            Means("the preset's, else `per-key`"),
            "whether a key's value has one length, or another at each SET",
        ),
    ],
};

/// A law of lengths.
static LAW: Keys = Keys {
    name: "size",
    text: "A law of lengths, bytes: `law`, and the parameters that it has",
    keys: &[
        key("law", Word("law of lengths", words::laws), "\"gamma\"", Mistake, "which law"),
        key("bytes", PARAMETER, "100", NONE, "with `constant`"),
        key("low", PARAMETER, "10", NONE, "with `uniform` and `bimodal`: the lower length"),
        key("high", PARAMETER, "1000", NONE, "with `uniform` and `bimodal`: the higher length"),
        key("high_share", PARAMETER, "0.1", NONE, "with `bimodal`: the share of the higher"),
        key("mean", PARAMETER, "200", NONE, "with `exponential`"),
        key("median", PARAMETER, "200", NONE, "with `lognormal`"),
        key("sigma", PARAMETER, "1", NONE, "with `lognormal`: of the logarithm"),
        key("location", PARAMETER, "30", NONE, "with `gev` and `pareto`"),
        key("shape", PARAMETER, "4", NONE, "with `gamma`, `gev` and `pareto`"),
        key("scale", PARAMETER, "7", NONE, "with `gamma`, `gev` and `pareto`"),
        key(
            "values",
            Other("lengths and ranges with weights, `[[2, 0.3], [10, 20, 0.7]]`"),
            "[[2, 0.3], [10, 20, 0.7]]",
            NONE,
            "with `empirical`",
        ),
        key(
            "tail",
            Table(&TAIL),
            "{ law = \"pareto\", location = 500, scale = 300, shape = 0.3, weight = 0.5 }",
            NONE,
            "with `empirical`: the law of what is not among `values`",
        ),
    ],
};

static TAIL: Keys = Keys {
    name: "size.tail",
    text: "The law of lengths that are not among `values`: as of `size`, but for `empirical`, and a weight",
    keys: &[
        key("law", Word("law of lengths", words::laws_of_tails), "\"pareto\"", Mistake, "which law"),
        key("bytes", PARAMETER, "100", NONE, "as of `size`"),
        key("low", PARAMETER, "10", NONE, "as of `size`"),
        key("high", PARAMETER, "1000", NONE, "as of `size`"),
        key("high_share", PARAMETER, "0.1", NONE, "as of `size`"),
        key("mean", PARAMETER, "200", NONE, "as of `size`"),
        key("median", PARAMETER, "200", NONE, "as of `size`"),
        key("sigma", PARAMETER, "1", NONE, "as of `size`"),
        key("location", PARAMETER, "500", NONE, "as of `size`"),
        key("shape", PARAMETER, "0.3", NONE, "as of `size`"),
        key("scale", PARAMETER, "300", NONE, "as of `size`"),
        key("weight", WEIGHT, "0.5", Mistake, "against those of `values`"),
    ],
};

static TRACE: Keys = Keys {
    name: "load.workload.trace",
    text: "A recorded workload",
    keys: &[
        key("file", Text, "\"cluster52.zst\"", Mistake, "the file, plain or compressed by zstd"),
        key("format", Word("format of traces", words::formats), "\"twitter\"", Mistake, "how it is written"),
        key(
            "gaps",
            Word("rule for gaps", words::gaps),
            "\"recorded\"",
            Is("\"none\""),
            "`recorded`: operations come when they came then; `none`: as the load says",
        ),
        key("speed", Number(1e-6, 1e6), "10", Is("1"), "with `recorded`: how much faster"),
    ],
};

static TRIALS: Keys = Keys {
    name: "trials",
    text: "When there are enough trials",
    keys: &[key("stop", Table(&TRIALS_STOP), "{ comparison = 0.03, min = 12, max = 30 }", Mistake, "the rule")],
};

static TRIALS_STOP: Keys = Keys {
    name: "trials.stop",
    text: "When there are enough trials: all points have as many blocks",
    keys: &[
        key(
            "comparison",
            RELATIVE,
            "0.03",
            Means("0.03 where nothing else is said"),
            "when contenders are told apart within a fraction, or values known where nothing competes",
        ),
        key("relative", RELATIVE, "0.03", NONE, "instead: when values are known within a fraction"),
        key("level", LEVEL, "0.99", Is("0.95"), "the level of all intervals"),
        key("metric", METRIC, "\"throughput\"", Is("\"latency_mean\""), "what the study is about"),
        key("min", Count(1, 10_000), "18", Means("12"), "blocks at least"),
        key("max", Count(1, 10_000), "60", Means("30"), "blocks at most"),
        key("max_time", STUDY_TIME, "\"20m\"", Means("no limit"), "the longest that all of them take"),
    ],
};

static EFFECTS: Keys = Keys {
    name: "effects",
    text: "The effects of the factors",
    keys: &[key(
        "metrics",
        List(&METRIC),
        "[\"throughput\", \"latency_p95\"]",
        Mistake,
        "in which metrics they are looked for; an empty list: in none",
    )],
};

static SLOPES: Keys = Keys {
    name: "slopes",
    text: "What is looked at over the requests of a trial",
    keys: &[key(
        "over_requests",
        List(&Word("series over requests", words::over_requests)),
        "[\"latency\", \"proxy_rss\"]",
        Mistake,
        "which series",
    )],
};

/// `[[figure]]`.
pub(crate) static FIGURE: Keys = Keys {
    name: "figure",
    text: "What is drawn",
    keys: &[
        key("kind", Word("figure kind", words::figures), "\"line\"", Mistake, "how"),
        key("x", FACTOR, "\"cores\"", Means("nothing"), "the factor on the axis; of a miss-ratio curve the capacities"),
        key(
            "y",
            Either(&[METRIC, List(&METRIC)]),
            "\"throughput\"",
            Means("nothing; of a timeline the metric of `trials.stop`"),
            "what is drawn over it, several of one unit as series; of an interaction a figure each",
        ),
        key("series", FACTOR, "\"clients\"", Means("what is left"), "the factor whose levels are series"),
        key("facet", FACTOR, "\"server\"", NONE, "the factor whose levels have a panel each"),
        key("interval", LEVEL, "0.99", Means("that of `trials.stop`"), "the level of the intervals"),
        key("title", Text, "\"Servers by clients\"", Means("one is made"), "what stands above it"),
        key(
            "policies",
            List(&Word("policy", words::policies)),
            "[\"lru\", \"belady\"]",
            Means("`lru`, `belady`, `belady-size`"),
            "of a miss-ratio curve: the policies that are simulated",
        ),
        key(
            "unit",
            Other("a unit of memory"),
            "\"MiB\"",
            Means("bytes"),
            "of a miss-ratio curve: what numbers on `x` count",
        ),
    ],
};

/// `[[table]]`.
pub(crate) static TABLE: Keys = Keys {
    name: "table",
    text: "A table beside the one that every report has: one of `metric` and `metrics`",
    keys: &[
        key(
            "metric",
            METRIC,
            "\"throughput\"",
            NONE,
            "sample mean, sample standard deviation, interval and trials of one",
        ),
        key("metrics", List(&METRIC), "[\"throughput\", \"latency_p99\"]", NONE, "a column each"),
        key("title", Text, "\"Servers\"", Means("one is made"), "what stands above it"),
    ],
};

/// A journey file.
pub static JOURNEY: Keys = Keys {
    name: "journey",
    text: "A journey file. Texts are templates: `{name}` is what stands behind a name, `{number}` the journey's number, `{number*3}` so many times that",
    keys: &[
        key("name", Text, "\"evernote\"", Mistake, "the journey's name"),
        key(
            "targets",
            Named(&Text),
            "{ api = \"https://127.0.0.1:8443\" }",
            NONE,
            "names for the services where the journey begins; `\"\"` where whoever runs it must say",
        ),
        key(
            "schemas",
            Named(&Text),
            "{ notes = \"evernote.thrift\" }",
            NONE,
            "Thrift IDL or WSDL by name: quintain's own, or a file beside this one",
        ),
        key(
            "let",
            Named(&Text),
            "{ token = \"{random:8}\" }",
            NONE,
            "texts that a journey makes once when it begins; `{random:8}` is so many of `a-z0-9`",
        ),
        key("step", Tables(&STEP), "[{ url = \"{api}/notes\" }]", Mistake, "the calls, in their order"),
    ],
};

static STEP: Keys = Keys {
    name: "step",
    text: "One call of a journey: one of `thrift`, `soap` and `method`; REST without any",
    keys: &[
        key(
            "name",
            Text,
            "\"list\"",
            Means("the method, the operation, or method and path"),
            "the operation's name in reports; steps may share one",
        ),
        key(
            "url",
            Text,
            "\"{api}/notes\"",
            Mistake,
            "where: a template that comes to `http://host:port/path` or `https:...`, and may be what a reply said",
        ),
        key(
            "thrift",
            Text,
            "\"notes UserStore.getUser\"",
            NONE,
            "`schema Service.method`: Thrift in the binary protocol, as the body of a POST",
        ),
        key("soap", Text, "\"chess MakeAMove\"", NONE, "`schema Operation`: SOAP 1.1"),
        key("method", Text, "\"POST\"", Means("`GET`"), "REST: the method"),
        key("body", Text, "\"{token}\"", NONE, "REST: the body, a template"),
        key(
            "arguments",
            Named(&Other("a text, a number, a list, a table")),
            "{ authenticationToken = \"{token}\" }",
            NONE,
            "Thrift and SOAP: by name. A text that is one template alone has the type of what stands behind the name",
        ),
        key("headers", Named(&Text), "{ Accept = \"text/plain\" }", NONE, "header fields, their values templates"),
        key(
            "take",
            Named(&Text),
            "{ store = \"result[0].noteStoreUrl\" }",
            NONE,
            "names for what the reply says; REST has `body` where the others have `result`",
        ),
        key(
            "expect",
            Named(&Other("a text, a number, a list, a table")),
            "{ \"result.totalNotes\" = 1 }",
            NONE,
            "what the reply must say, values templates; `status` of REST, else 200 to 299",
        ),
    ],
};
