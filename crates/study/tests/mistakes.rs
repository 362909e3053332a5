//! Tests of invalid studies: all errors, with their places.

use study::spec::{Arrivals, Stop, ThinkTime};
use study::{Diagnostic, ExpandOptions, Profile, expand, parse};

fn shown(text: &str, diagnostics: &[Diagnostic]) -> String {
    let line = |diagnostic: &Diagnostic| {
        let source = diagnostic.set.as_deref().unwrap_or(text);
        let hint = diagnostic.hint.as_ref().map(|hint| format!("\n    hint: {hint}")).unwrap_or_default();
        format!("{diagnostic}\n    here: {:?}{hint}", &source[diagnostic.span.clone()])
    };
    diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn mistakes(text: &str) -> String {
    shown(text, &parse(text).expect_err("the study has errors"))
}

const GOOD: &str = r#"
question = "Which?"
[subject]
command = "{server} -p {port}"
cpus = "{cores}"
[load]
protocol = "pingpong"
clients = 40
stop = "1s"
[factors]
server = ["a", "b"]
cores = [1, 2]
"#;

fn with(line: &str, replacement: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    GOOD.replace(line, replacement)
}

fn plus(lines: &str) -> String {
    format!("{GOOD}{lines}")
}

#[test]
fn reports_ten_errors_at_once() {
    let text = r#"question = "Where does it end?"
[subject]
comand = "subjects/x -p {port}"
command = "subjects/{sever}/{server} -p {port}"
cpus = "{cores}"
[load]
protocol = "pingpon"
clients = "40s"
warmup = 300
stop = { relative = 3 }
[factors]
server = ["go", "rust", "go"]
cores = []
colour = ["red", "blue"]
[trials]
stop = { relative = 0.03, min = 30, max = 8 }
[[figure]]
kind = "pie"
x = "cores"
y = "throughputs"
"#;
    insta::assert_snapshot!(mistakes(text), @r#"
    3:1: unknown key `comand` in `subject`
        here: "comand"
        hint: did you mean `command`?
    3:25: `{port}` only works in `subject.command`, `subject.environment` and the targets of a journey
        here: "{port}"
    4:21: `{sever}` does not name a factor
        here: "{sever}"
        hint: did you mean `server`?
    7:12: unknown protocol `pingpon`
        here: "\"pingpon\""
        hint: did you mean `pingpong`?
    8:11: `load.clients`: `s` in `40s` is not a unit of a count: k, M, G
        here: "\"40s\""
    9:10: `load.warmup` needs a unit
        here: "300"
        hint: for seconds, write `"300s"`
    10:21: `load.stop.relative` must be 0.01 % to 50 %, not 3
        here: "3"
    12:25: duplicate level `go` in factor `server`
        here: "\"go\""
    13:9: factor `cores` has no levels
        here: "[]"
        hint: add a level, or drop the factor
    14:1: factor `colour` is never used
        here: "colour"
        hint: write `{colour}` in `[subject]` or `[load]`, or drop the factor
    16:33: `trials.stop.min` is 30, more than `max`, 8
        here: "30"
    18:8: unknown figure kind `pie`
        here: "\"pie\""
        hint: available: `line`, `scatter`, `interaction`, `ecdf`, `quantiles`, `timeline`, `miss-ratio`, `added`, `memorychart`, `throughputchart`, `networkchart`
    20:5: unknown metric `throughputs`
        here: "\"throughputs\""
        hint: did you mean `throughput`?
    "#);
}

#[test]
fn syntax_errors_do_not_hide_the_rest() {
    insta::assert_snapshot!(mistakes(&plus("x = [1, 2\n[trials]\nstop = { min = \"many\" }\n[lod]\n")), @r#"
    14:1: missing comma between array elements, expected `,`
        here: ""
    14:2: invalid boolean, expected `true`
        here: "trials"
    15:1: missing comma between array elements, expected `,`
        here: ""
    15:1: string values must be quoted, expected literal string
        here: "stop"
    15:6: unexpected `=` in array, expected value, `]`
        here: "="
    15:8: missing comma between array elements, expected `,`
        here: ""
    16:1: missing comma between array elements, expected `,`
        here: ""
    16:2: string values must be quoted, expected literal string
        here: "lod"
    16:6: unclosed array, expected `]`
        here: ""
    "#);
    insta::assert_snapshot!(mistakes(&with("command = \"{server} -p {port}\"", "command = \"{server} -p {port}")), @r#"
    4:30: invalid basic string, expected `"`
        here: ""
    "#);
    insta::assert_snapshot!(mistakes(&with("server = [\"a\", \"b\"]", "server = [\"a\" \"b\"]")), @r#"
    11:15: missing comma between array elements, expected `,`
        here: ""
    "#);
    insta::assert_snapshot!(mistakes("="), @r#"
    1:1: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`
        here: ""
    1:2: string values must be quoted, expected literal string
        here: ""
    "#);
    insta::assert_snapshot!(mistakes(&with("clients = 40", "clients = 40\nclients = 50")), @r#"
    9:1: duplicate key
        here: "clients"
    "#);
}

#[test]
fn missing_table_does_not_hide_another() {
    insta::assert_snapshot!(mistakes("question = \"?\"\n[load]\nprotocol = 5\nclints = 1\n"), @r#"
    1:1: the study has no `[subject]`
        here: ""
        hint: add `[subject]`
    2:2: `load` has no `clients`
        here: "load"
        hint: add `clients = 40`
    2:2: `load` has no `stop`
        here: "load"
        hint: add `stop = "5s"`
    3:12: unknown protocol `5`
        here: "5"
        hint: available: `http`, `https`, `pingpong`, `memcached`, `redis`, `http-cache`
    4:1: unknown key `clints` in `load`
        here: "clints"
        hint: did you mean `clients`?
    "#);
    insta::assert_snapshot!(mistakes("question = \"?\"\n[subject]\ncommand = \"x {n}\"\n[load\n[factors]\nn = [1\n"), @r#"
    3:11: `subject.command` has no `{port}`
        here: "\"x {n}\""
        hint: pass `{port}` to the server here or in `environment`, or set `port` to the one it always uses
    4:6: unclosed table, expected `]`
        here: ""
    6:7: unclosed array, expected `]`
        here: ""
    "#);
}

#[test]
fn reports_missing_keys_and_tables() {
    insta::assert_snapshot!(mistakes(""), @r#"
    1:1: the study has no `[load]`
        here: ""
        hint: add `[load]`
    1:1: the study has no `[subject]`
        here: ""
        hint: add `[subject]`
    1:1: the study has no `question`
        here: ""
        hint: add `question = "Which server is fastest?"`
    "#);
    insta::assert_snapshot!(mistakes("question = \" \"\n[subject]\n[load]\n[trials]\n[[figure]]\n"), @r#"
    1:12: `question` is empty
        here: "\" \""
    2:2: `subject` has no `command`
        here: "subject"
        hint: add `command = "my-server -p {port}"`
    3:2: `load` has no `clients`
        here: "load"
        hint: add `clients = 40`
    3:2: `load` has no `protocol`
        here: "load"
        hint: add `protocol = "pingpong"`
    3:2: `load` has no `stop`
        here: "load"
        hint: add `stop = "5s"`
    4:2: `trials` has no `stop`
        here: "trials"
        hint: add `stop = { comparison = 0.03, min = 12, max = 30 }`
    5:1: `figure` has no `kind`
        here: "[[figure]]"
        hint: add `kind = "line"`
    "#);
}

#[test]
fn checks_types_and_units() {
    insta::assert_snapshot!(mistakes("question = 1\nsubject = 2\nload = 3\nfactors = 4\ntrials = 5\nfigure = 6\nquick = 7\nfull = 2026-11-21\n"), @r#"
    1:12: `question` must be a string, not an integer
        here: "1"
    2:11: `subject` must be a table, not an integer
        here: "2"
        hint: begin it with `[subject]`
    3:8: `load` must be a table, not an integer
        here: "3"
        hint: begin it with `[load]`
    4:11: `factors` must be a table, not an integer
        here: "4"
        hint: begin it with `[factors]`
    5:10: `trials` must be a table, not an integer
        here: "5"
        hint: begin it with `[trials]`
    6:10: `figure` must be a list of tables, not an integer
        here: "6"
        hint: begin each figure with `[[figure]]`
    7:9: `quick` must be a table, not an integer
        here: "7"
        hint: begin it with `[quick.trials]`
    8:8: `full` must be a table, not a date
        here: "2026-11-21"
        hint: begin it with `[full.trials]`
    "#);
    insta::assert_snapshot!(mistakes(&with("clients = 40", "clients = true\nthreads = 0\ncpus = 99999999999999999999\nshare_cpus = 1\nwindow = \"5sec\"\ntimeout = inf\nthink = \"1m30s\"\nbackend = \"uring\"")), @r#"
    8:11: `load.clients` must be a count, such as `40` or `"50k"`, not a boolean
        here: "true"
    9:11: `load.threads` must be 1 to 1,024, not 0
        here: "0"
    10:8: an integer that does not fit 64 bits
        here: "99999999999999999999"
    11:14: `load.share_cpus` must be `true` or `false`, not an integer
        here: "1"
    12:10: `load.window`: `sec` in `5sec` is not a unit of time: ns, us, ms, s, m, h
        here: "\"5sec\""
    13:11: a number that is not finite
        here: "inf"
    14:9: `load.think`: `m30s` in `1m30s` is not a unit of time: ns, us, ms, s, m, h
        here: "\"1m30s\""
    15:11: unknown backend `uring`
        here: "\"uring\""
        hint: available: `auto`, `epoll`, `io_uring`
    "#);
    insta::assert_snapshot!(mistakes(&with("cpus = \"{cores}\"", "cpus = \"{cores}s\"\nport = 70000\nready_timeout = \"1ms\"\nenvironment = { \"A=B\" = \"x\", C = \"{port}\", D = [] }")), @r#"
    5:8: `subject.cpus`: `s` in `1s` is not a unit of a count: k, M, G
        here: "\"{cores}s\""
    6:8: `subject.port` must be 1 to 65,535, not 70000
        here: "70000"
    7:17: `subject.ready_timeout` must be 10ms to 10m, not `1ms`
        here: "\"1ms\""
    8:17: `A=B` is not a valid environment variable name
        here: "\"A=B\""
    8:48: `subject.environment.D` must be a string, not a list
        here: "[]"
    "#);
}

#[test]
fn rejects_contradictory_rules() {
    insta::assert_snapshot!(mistakes(&with("stop = \"1s\"", "stop = { duration = \"1s\", requests = 5, level = 0.9 }\nwarmup = {}")), @r#"
    9:38: `load.stop` has both `duration` and `requests`, only one is allowed
        here: "5"
    10:1: `load.warmup` needs one of `duration`, `requests`, `share`, `steady`
        here: "warmup"
    "#);
    insta::assert_snapshot!(mistakes(&with("stop = \"1s\"", "stop = { rule = \"volly\", level = 0.9 }\nloop = \"closed\"\nrate = \"10k\"\narrivals = \"poisson\"")), @r#"
    9:17: unknown stop rule `volly`
        here: "\"volly\""
        hint: did you mean `volley`?
    9:34: `load.stop.level` cannot be combined with `rule`
        here: "0.9"
        hint: drop it
    11:8: `load.rate` does not apply to a closed loop
        here: "\"10k\""
        hint: it needs an open loop: set `loop = "open"` and `rate`, or drop it
    12:12: `load.arrivals` does not apply to a closed loop
        here: "\"poisson\""
        hint: it needs an open loop: set `loop = "open"` and `rate`, or drop it
    "#);
    insta::assert_snapshot!(mistakes(&with("stop = \"1s\"", "stop = \"50ms\"\nloop = \"open\"\nthink = \"1ms\"")), @r#"
    9:8: `load.stop` is shorter than one window
        here: "\"50ms\""
        hint: measure longer, or set a shorter `window`
    10:8: an open loop needs `load.rate`
        here: "\"open\""
        hint: add `rate = "10k"`
    11:9: `load.think` does not apply to an open loop
        here: "\"1ms\""
        hint: drop it, or `rate`: think time needs a closed loop
    "#);
    insta::assert_snapshot!(mistakes(&plus("[trials]\nstop = { max = 9, min = 3, metric = \"latency_p9\" }")), @r#"
    14:16: without a target each point gets `min` trials, so `max` 9 has no effect
        here: "9"
        hint: add `comparison = 0.03`, or drop `max`
    14:37: unknown metric `latency_p9`
        here: "\"latency_p9\""
        hint: did you mean `latency_p90`?
    "#);
    insta::assert_snapshot!(mistakes(&plus("[trials]\nstop = { relative = \"3%\", min = 1 }")), @r#"
    14:33: an interval needs two trials
        here: "1"
        hint: set `min = 12`, or drop the target
    "#);
}

#[test]
fn factors_levels_and_templates() {
    insta::assert_snapshot!(mistakes(&with("cores = [1, 2]", "cores = [1, 1.0, 2, \"1\", \"\", \"{server}\", [1]]\nport = [1]\n\"a b\" = 5")), @r#"
    4:11: `subject.command` has no `{port}`
        here: "\"{server} -p {port}\""
        hint: pass `{port}` to the server here or in `environment`, or set `port` to the one it always uses
    12:13: duplicate level `1` in factor `cores`
        here: "1.0"
    12:21: duplicate level `1` in factor `cores`
        here: "\"1\""
    12:26: a level of factor `cores` is empty
        here: "\"\""
    12:30: a level of factor `cores` contains a template; levels are not expanded
        here: "\"{server}\""
    12:42: a level of factor `cores` must be a number or a word, not a list
        here: "[1]"
    13:1: `port` is not a valid factor name
        here: "port"
        hint: `{port}` is the server's port
    14:1: `a b` is not a valid factor name
        here: "\"a b\""
        hint: use a letter, then letters, digits, `_` or `-`, so that `{name}` can refer to it
    14:1: factor `a b` is never used
        here: "\"a b\""
        hint: write `{a b}` in `[subject]` or `[load]`, or drop the factor
    14:9: factor `a b` must be a list of levels or "auto", not an integer
        here: "5"
        hint: write `a b = [5]`
    "#);
    insta::assert_snapshot!(mistakes(&with("cores = [1, 2]", "cores = [1, 0, \"many\"]")), @r#"
    12:13: `subject.cpus` from level `0` of `cores` must be 1 to 4,096, or "all", not `0`
        here: "0"
    12:16: `subject.cpus` from level `many` of `cores`: `many` is not a number
        here: "\"many\""
    "#);
    insta::assert_snapshot!(mistakes(&with("clients = 40", "clients = \"{port}\"")), @r#"
    8:11: `load.clients`: `{port}` is not a number
        here: "\"{port}\""
    8:12: `{port}` only works in `subject.command`, `subject.environment` and the targets of a journey
        here: "{port}"
    "#);
    insta::assert_snapshot!(mistakes(&with("command = \"{server} -p {port}\"", "command = \"{server}\"")), @r#"
    4:11: `subject.command` has no `{port}`
        here: "\"{server}\""
        hint: pass `{port}` to the server here or in `environment`, or set `port` to the one it always uses
    "#);
    let levels = (0..101).map(|level| level.to_string()).collect::<Vec<_>>().join(", ");
    let many = format!("clients = \"{{clients}}\"\n[factors]\nclients = [{levels}]\nthreads = [{levels}]");
    insta::assert_snapshot!(mistakes(&with("clients = 40", "threads = \"{threads}\"").replace("[factors]", &many)), @r#"
    12:1: the factors make 101 x 101 x 2 x 2 design points, the maximum is 10,000
        here: "clients"
        hint: use fewer levels, or `--set FACTOR=LEVELS`
    12:12: `load.clients` from level `0` of `clients` must be 1 to 1,000,000, not `0`
        here: "0"
    13:12: `load.threads` from level `0` of `threads` must be 1 to 1,024, not `0`
        here: "0"
    "#);
}

#[test]
fn variants() {
    insta::assert_snapshot!(mistakes(&plus("[subject.variants.c]\ncommand = \"c {port}\"\n[subject.variants.a]\ncomand = \"a\"\nvariants = {}\n")), @r#"
    13:19: variant `c` is not a level of any factor
        here: "c"
        hint: available: `1`, `2`, `a`, `b`
    16:1: unknown key `comand` in `subject.variants.a`
        here: "comand"
        hint: did you mean `command`?
    17:1: unknown key `variants` in `subject.variants.a`
        here: "variants"
        hint: available: `build`, `command`, `image`, `engine`, `publish`, `options`, `cpus`, `directory`, `environment`, `port`, `ready_timeout`, `stop_timeout`, `verify`
    "#);
    insta::assert_snapshot!(mistakes(&plus("other = [\"a\", 3]\n[subject.variants.a]\ncommand = \"{other}\"\n")), @r#"
    14:19: variant `a` is a level of `other` and `server`
        here: "a"
        hint: rename one of the levels
    15:11: `subject.command` has no `{port}`
        here: "\"{other}\""
        hint: pass `{port}` to the server here or in `environment`, or set `port` to the one it always uses
    "#);
}

#[test]
fn figures() {
    let figures = "[[figure]]\nkind = \"line\"\nx = \"server\"\ny = \"throughput\"\nseries = \"core\"\n\
                   [[figure]]\nkind = \"ecdf\"\nx = \"cores\"\ninterval = 1.5\n\
                   [[figure]]\nkind = \"line\"\ntitle = 5\n";
    insta::assert_snapshot!(mistakes(&plus(figures)), @r#"
    15:5: a line needs numbers on `x`, but factor `server` has the level `a`
        here: "\"server\""
        hint: `kind = "scatter"` also takes words
    17:10: unknown factor `core`
        here: "\"core\""
        hint: did you mean `cores`?
    20:5: `figure.x` does not apply to a figure of kind `ecdf`
        here: "\"cores\""
        hint: drop it
    21:12: `figure.interval` must be 50 % to 99.99 %, not 1.5
        here: "1.5"
    22:1: `figure` has no `x`
        here: "[[figure]]"
        hint: add `x = "cores"`
    22:1: `figure` has no `y`
        here: "[[figure]]"
        hint: add `y = "throughput"`
    24:9: `figure.title` must be a string, not an integer
        here: "5"
    "#);
}

const HTTP: &str = r#"
question = "Which?"
[subject]
command = "{server} -p {port}"
[load]
protocol = "http"
clients = 40
stop = "1s"
[factors]
server = ["a", "b"]
"#;

fn http(lines: &str) -> String {
    mistakes(&HTTP.replace("protocol = \"http\"", lines))
}

#[test]
fn checks_http_requests() {
    insta::assert_snapshot!(
        http(
            "protocol = \"http\"\npath = \"index.html\"\nmethod = \"get\"\nheaders = { \"A B\" = \"x\", Accept = \"a\\r\\nb\", accept = \"c\", \
             Connection = \"close\", D = [] }\nbody = \"x\"\nbody_file = \"y\"\nexpect_status = [200, \"20x\", 99, true]\nexpect_body = 5\n\
             pipeline = 0\nconnection = \"keepalive\"\nserver_name = \"h\"\nca_file = \"roots.pem\"\nmethd = \"GET\""
        ),
        @r#"
    7:8: the path `index.html` must begin with `/`
        here: "\"index.html\""
        hint: write `/index.html`
    8:10: `get` is not `GET`: HTTP methods are case-sensitive
        here: "\"get\""
        hint: write `GET`
    9:13: `A B` is not a valid header name
        here: "\"A B\""
        hint: names are letters, digits and `-`, as in `X-Request-Id`
    9:35: '\r' is not allowed in the value of `Accept`
        here: "\"a\\r\\nb\""
    9:72: `Connection: close` would end a keep-alive connection
        here: "\"close\""
        hint: for one connection per request, set `connection = "per-request"`
    9:85: `load.headers.D` must be a string, not a list
        here: "[]"
    11:13: `load` has both `body` and `body_file`, only one is allowed
        here: "\"y\""
    12:23: `20x` is not a valid HTTP status
        here: "\"20x\""
        hint: write statuses, ranges or classes: `200,201`, `200-204`, `2xx`
    12:30: `99` is not a valid HTTP status
        here: "99"
        hint: write statuses, ranges or classes: `200,201`, `200-204`, `2xx`
    12:34: a status must be a number such as `200`, not a boolean
        here: "true"
    13:15: `load.expect_body` must be a string, not an integer
        here: "5"
    14:12: `load.pipeline` must be 1 to 1,024, not 0
        here: "0"
    15:14: unknown connection use `keepalive`
        here: "\"keepalive\""
        hint: did you mean `keep-alive`?
    16:15: `load.server_name` needs `https`
        here: "\"h\""
        hint: set `protocol = "https"`, or drop it
    17:11: `load.ca_file` needs `https`
        here: "\"roots.pem\""
        hint: set `protocol = "https"`, or drop it
    18:1: unknown key `methd` in `load`
        here: "methd"
        hint: did you mean `method`?
    "#
    );
    insta::assert_snapshot!(
        http("protocol = \"http\"\nconnection = \"per-request\"\npipeline = 16\nthink = \"1ms\"\nmethod = \"HEAD\"\nexpect_body = \"x\"\nheaders = { Content-Length = 3, Upgrade = \"h2c\" }\nbody = \"four\"\nexpect_status = []"),
        @r#"
    8:12: `pipeline` must be 1 if a connection ends after a number of requests
        here: "16"
        hint: drop `pipeline`, or keep connections alive
    9:9: `pipeline` must be 1 with think time
        here: "\"1ms\""
        hint: drop `think`, or `pipeline`
    11:15: `load.expect_body` does not apply: the response to `HEAD` has no body
        here: "\"x\""
        hint: drop it, or use `GET`
    12:30: `Content-Length: 3`, but the body has 4 bytes
        here: "3"
        hint: drop it: the correct length is sent
    12:43: `Upgrade: h2c` would end a keep-alive connection
        here: "\"h2c\""
        hint: drop it: a load does not change its protocol
    14:17: `load.expect_status` is empty
        here: "[]"
        hint: drop it to accept 200 to 299
    "#
    );
    insta::assert_snapshot!(
        http("protocol = \"https\"\ninsecure = true\nca_file = \"roots.pem\"\nresume = \"no\"\nbody_file = \" \"\nexpect_status = \"1xx\"\nheaders = { Host = \"a\", host = \"b\", Transfer-Encoding = \"chunked\" }"),
        @r#"
    8:11: `insecure` accepts any certificate, so `ca_file` has no effect
        here: "\"roots.pem\""
        hint: drop one of the two
    9:10: `load.resume` must be `true` or `false`, not a string
        here: "\"no\""
    10:13: `body_file` is empty
        here: "\" \""
    11:17: `1xx`: status codes below 200 are interim, not final
        here: "\"1xx\""
    12:25: duplicate header `host`
        here: "host"
    12:57: `Transfer-Encoding` cannot be set: bodies are sent with `Content-Length`
        here: "\"chunked\""
        hint: drop it: `Content-Length` is sent
    "#
    );
    insta::assert_snapshot!(
        http("protocol = \"http\"\nhttp = 2\npipeline = 4\nstreams = 8\nthink = \"1ms\""),
        @r#"
    8:12: HTTP/2 has no `pipeline`
        here: "4"
        hint: set `streams` instead
    10:9: `streams` must be 1 with think time
        here: "\"1ms\""
        hint: drop `think`, or `streams`
    "#
    );
    insta::assert_snapshot!(
        http("protocol = \"http\"\nstreams = 8\nstream_window = 65536"),
        @r#"
    7:11: `streams` needs HTTP/2
        here: "8"
        hint: set `http = "2"`, or drop it
    8:17: `stream_window` needs HTTP/2
        here: "65536"
        hint: set `http = "2"`, or drop it
    "#
    );
    insta::assert_snapshot!(
        http("protocol = \"pingpong\"\npath = \"/\"\npipeline = 2\nconnection = \"keep-alive\"\ninsecure = true"),
        @r#"
    7:8: `load.path` does not apply to protocol `pingpong`
        here: "\"/\""
        hint: it is for `http` and `https`: change `protocol`, or drop it
    8:12: `load.pipeline` does not apply to protocol `pingpong`
        here: "2"
        hint: it is for `http` and `https`: change `protocol`, or drop it
    9:14: `load.connection` does not apply to protocol `pingpong`
        here: "\"keep-alive\""
        hint: it is for `http` and `https`: change `protocol`, or drop it
    10:12: `load.insecure` does not apply to protocol `pingpong`
        here: "true"
        hint: it is for `http` and `https`: change `protocol`, or drop it
    "#
    );
    insta::assert_snapshot!(http("protocol = \"htp\"\npath = \"/\""), @r#"
    6:12: unknown protocol `htp`
        here: "\"htp\""
        hint: did you mean `http`?
    "#);
    let long = "x".repeat(5000);
    insta::assert_snapshot!(http(&format!("protocol = \"http\"\nbody = \"{long}\"")).replace(&long, "..."), @r#"
    7:8: `load.body` is longer than 4096 bytes
        here: "\"...\""
        hint: put it in a file and set `body_file`
    "#);
}

#[test]
fn checks_mixes_of_requests() {
    insta::assert_snapshot!(
        http(
            "protocol = \"http\"\npath = \"/\"\nbody_file = \"b\"\nrequest = [{ path = \"/a\", weight = 0 }, 5, { pth = \"/b\", method = \"CONNECT\" }, \
             { path = \"{page}\", headers = { Content-Length = \"9\" }, body = \"{server}\" }]"
        ),
        @r#"
    7:8: `load.path` cannot be combined with `[[load.request]]`
        here: "\"/\""
        hint: write it in each request, or drop the requests
    8:13: `load.body_file` cannot be combined with `[[load.request]]`
        here: "\"b\""
        hint: write it in each request, or drop the requests
    9:36: `load.request.weight` must be 1 to 1,000,000, not 0
        here: "0"
    9:41: a request must be a table, not an integer
        here: "5"
    9:46: unknown key `pth` in `load.request`
        here: "pth"
        hint: did you mean `path`?
    9:67: `CONNECT` opens a tunnel and cannot be measured
        here: "\"CONNECT\""
    9:90: `{page}` does not name a factor
        here: "{page}"
        hint: available: `server`
    9:128: `Content-Length: 9`, but the body has 1 bytes
        here: "\"9\""
        hint: drop it: the correct length is sent
    "#
    );
    insta::assert_snapshot!(http("protocol = \"http\"\nrequest = []"), @r#"
    7:11: `load.request` is empty
        here: "[]"
        hint: begin each request with `[[load.request]]`
    "#);
    insta::assert_snapshot!(http("protocol = \"http\"\nrequest = { path = \"/\" }"), @r#"
    7:11: `load.request` must be a list of tables, not a table
        here: "{ path = \"/\" }"
        hint: begin each request with `[[load.request]]`
    "#);
    let levels = HTTP.replace("clients = 40", "clients = 40\npath = \"{page}\"\nexpect_status = \"{status}\"");
    insta::assert_snapshot!(mistakes(&format!("{levels}page = [\"/a\", \"b c\"]\nstatus = [200, \"ok\"]\n")), @r#"
    13:15: the path `b c` must begin with `/`
        here: "\"b c\""
        hint: write `/b c`
    14:16: `ok` is not a valid HTTP status
        here: "\"ok\""
        hint: write statuses, ranges or classes: `200,201`, `200-204`, `2xx`
    "#);
}

#[test]
fn checks_cpus_of_servers() {
    let cpus = |value: &str| {
        mistakes(&GOOD.replace("cpus = \"{cores}\"", &format!("cpus = {value}\ndirectory = \"{{cores}}\"")))
    };
    insta::assert_snapshot!(cpus("{ up_to = 0, least = 2 }"), @r#"
    5:18: `subject.cpus.up_to` must be 1 to 4,096, not 0
        here: "0"
    5:21: unknown key `least` in `subject.cpus`
        here: "least"
        hint: available: `up_to`
    "#);
    insta::assert_snapshot!(cpus("{}"), @r#"
    5:1: `subject.cpus` has no `up_to`
        here: "cpus"
        hint: add `up_to = 8`
    "#);
    insta::assert_snapshot!(cpus("\"al\""), @r#"
    5:8: `subject.cpus`: `al` is not a number
        here: "\"al\""
    "#);
}

#[test]
fn tables_and_several_metrics_in_a_figure() {
    let text = "[[table]]\nmetric = \"throughputs\"\ntitel = \"x\"\n[[table]]\nmetric = \"throughput\"\nmetrics = [\"latency_p50\"]\n\
                [[table]]\nmetrics = [\"latency_p50\", \"latency_p5\", 5, \"latency_p50\"]\n[[table]]\nmetrics = \"latency_p50\"\n[[table]]\nmetrics = []\n\
                [[figure]]\nkind = \"line\"\nx = \"cores\"\ny = [\"latency_p50\", \"throughput\"]\n\
                [[figure]]\nkind = \"line\"\nx = \"cores\"\ny = [\"latency_p50\", \"latency_p99\"]\nseries = \"server\"\n\
                [[figure]]\nkind = \"timeline\"\ny = [\"latency_p50\", \"latency_p99\"]\n";
    insta::assert_snapshot!(mistakes(&plus(text)), @r#"
    14:10: unknown metric `throughputs`
        here: "\"throughputs\""
        hint: did you mean `throughput`?
    15:1: unknown key `titel` in `table`
        here: "titel"
        hint: did you mean `title`?
    18:11: `table` has both `metric` and `metrics`, only one is allowed
        here: "[\"latency_p50\"]"
    20:27: unknown metric `latency_p5`
        here: "\"latency_p5\""
        hint: did you mean `latency_p50`?
    20:41: a metric must be a name, not an integer
        here: "5"
    20:44: duplicate metric `latency_p50`
        here: "\"latency_p50\""
    22:11: `table.metrics` must be a list, not a string
        here: "\"latency_p50\""
        hint: write `metrics = ["throughput", "latency_p99"]`
    24:11: `table.metrics` names no metric
        here: "[]"
    28:5: `latency_p50` and `throughput` have different units
        here: "[\"latency_p50\", \"throughput\"]"
        hint: use two figures
    33:10: several metrics on `y` are the series, so `series` cannot be set
        here: "\"server\""
        hint: use the factor as `facet`: one panel per level
    36:5: a timeline has only one metric
        here: "[\"latency_p50\", \"latency_p99\"]"
        hint: draw one figure per metric
    "#);
    insta::assert_snapshot!(mistakes(&format!("table = 5\n{GOOD}")), @r#"
    1:9: `table` must be a list of tables, not an integer
        here: "5"
        hint: begin each table with `[[table]]`
    "#);
}

#[test]
fn checks_profiles() {
    insta::assert_snapshot!(mistakes(&plus("[quick.factors]\ncores = [0]\n[full.load]\nclints = 80\n[full.full]\n[quick.trials]\nstop = { min = 0 }\n")), @r#"
    14:10: `subject.cpus` from level `0` of `cores` must be 1 to 4,096, or "all", not `0`
        here: "0"
    16:1: unknown key `clints` in `load`
        here: "clints"
        hint: did you mean `clients`?
    17:7: `full` contains another profile, `full`
        here: "full"
    19:16: `trials.stop.min` must be 1 to 10,000, not 0
        here: "0"
    "#);
}

fn options(sets: Vec<(String, String)>) -> ExpandOptions {
    ExpandOptions {
        name: "good".to_owned(),
        seed: 1,
        profile: Profile::Default,
        machine_cpus: 2,
        generators_apart: false,
        sets,
    }
}

fn set(sets: &[(&str, &str)]) -> String {
    let study = parse(GOOD).unwrap();
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let options = options(sets);
    shown(GOOD, &expand(&study, &options).expect_err("the settings have errors"))
}

#[test]
fn errors_in_sets_point_into_the_set() {
    insta::assert_snapshot!(set(&[("core", "1"), ("cores", "1, 0,1"), ("server", "")]), @r#"
    --set core=1: the study has no factor `core`
        here: "core"
        hint: did you mean `cores`?
    --set cores=1, 0,1: `subject.cpus` from level `0` of `cores` must be 1 to 4,096, or "all", not `0`
        here: "0"
    --set cores=1, 0,1: duplicate level `1` in factor `cores`
        here: "1"
    --set server=: factor `server` has no levels
        here: ""
        hint: add a level, or drop the factor
    "#);
    insta::assert_snapshot!(set(&[("load.stop.duratoin", "2s"), ("lod.clients", "2"), ("load.clients", "many"), ("load..x", "1")]), @r#"
    --set load.stop.duratoin=2s: `load.stop` needs one of `duration`, `requests`, `relative`, `rule`
        here: "stop"
    --set load.stop.duratoin=2s: unknown key `duratoin` in `load.stop`
        here: "duratoin"
        hint: did you mean `duration`?
    --set lod.clients=2: the study has no table `lod`
        here: "lod"
        hint: did you mean `load`?
    --set load.clients=many: `load.clients`: `many` is not a number
        here: "many"
    --set load..x=1: `load..x` is not a valid key
        here: "load"
    "#);
    insta::assert_snapshot!(set(&[("load.clients.x.y", "5"), ("subject.command", "x {prt}"), ("trials.stop.min", "31")]), @r#"
    11:1: factor `server` is never used
        here: "server"
        hint: write `{server}` in `[subject]` or `[load]`, or drop the factor
    --set load.clients.x.y=5: `load.clients` must be a count, such as `40` or `"50k"`, not a table
        here: "clients"
    --set subject.command=x {prt}: `{prt}` does not name a factor
        here: "{prt}"
        hint: did you mean `port`?
    "#);
    insta::assert_snapshot!(set(&[("cores", "99999999999999999999"), ("question", "x")]), @r#"
    --set cores=99999999999999999999: an integer that does not fit 64 bits
        here: "99999999999999999999"
    --set question=x: the study has no factor `question`
        here: "question"
        hint: available: `server`, `cores`
    "#);
}

#[test]
fn journeys_have_rates_think_times_and_versions_of_http() {
    let journey = |lines: &str| {
        let load = "[subject]\ncommand = \"x {port}\"\n[load]\njourney = \"chess\"\nclients = 2\nstop = \"1s\"\n";
        format!("question = \"?\"\n{load}{lines}\n")
    };
    let load = |lines: &str| {
        let plan =
            expand(&parse(&journey(lines)).unwrap(), &options(Vec::new())).unwrap_or_else(|found| panic!("{found:#?}"));
        plan.points[0].load.clone()
    };
    let arrivals = |lines: &str| load(lines).arrivals;
    assert_eq!(arrivals(""), Arrivals::closed(0));
    assert_eq!(arrivals("think = \"10ms\""), Arrivals::closed(10_000_000));
    let think = ThinkTime::Random(stats::Distribution::Exponential { mean: 1e7 });
    assert_eq!(arrivals("think = \"exponential:10ms\""), Arrivals::Closed { think });
    assert_eq!(arrivals("rate = 50"), Arrivals::Poisson { rate_per_s: 50.0 });
    let share = mistakes(&journey("rate = \"80%\"\ncapacity = { objective = \"p99 < 5ms\" }"));
    assert!(share.contains("`load.capacity` does not apply to journeys"), "{share}");
    let http2 = |lines: &str| load(lines).journey.unwrap().http2;
    assert_eq!([http2(""), http2("http = \"1.1\""), http2("http = \"2\"")], [false, false, true]);
    let resolved = mistakes(&journey("http = \"2\"\nresolve = \"http://127.0.0.1:{admin_port}\""));
    assert!(resolved.contains("`resolve` needs HTTP/1.1"), "{resolved}");
    let streams = mistakes(&journey("http = \"2\"\nstreams = 2"));
    assert!(streams.contains("`load.streams` does not apply to journeys"), "{streams}");
}

#[test]
fn a_load_that_changes_has_its_own_length() {
    let study = |lines: &str| {
        let load = "[subject]\ncommand = \"x {port}\"\n[load]\nprotocol = \"http\"\n";
        format!("question = \"?\"\n{load}{lines}\n")
    };
    let load = |lines: &str| {
        let plan = expand(&parse(&study(lines)).unwrap(), &options(Vec::new()));
        plan.unwrap_or_else(|found| panic!("{found:#?}")).points.remove(0).load
    };
    let ramp = load("clients = \"1..9 over 2s\"");
    assert_eq!((ramp.clients, ramp.shape.len(), ramp.arrivals), (9, 1, Arrivals::closed(0)));
    assert_eq!(ramp.stop, Stop::Duration { duration_ns: 2_000_000_000 });
    let steps = load("clients = 4\nrate = \"1k, 3k for 500ms each\"");
    assert_eq!((steps.clients, steps.shape.len(), steps.arrivals), (4, 2, Arrivals::Poisson { rate_per_s: 2000.0 }));
    assert_eq!(steps.stop, Stop::Duration { duration_ns: 1_000_000_000 });
    for (lines, expected) in [
        ("clients = \"1..9\"", "`1..9` has no time"),
        ("clients = \"1..9 over 2s\"\nstop = \"1s\"", "`load.stop` cannot be combined with a load that changes"),
        ("clients = \"1..9 over 2s\"\nrate = \"1k..2k over 2s\"", "cannot be combined with a number of clients"),
        ("clients = \"1..9 over 2s\"\nrate = \"1k\"", "cannot be combined with a number of clients that changes"),
        ("clients = 4\nrate = \"1k..2x over 2s\"", "`x`"),
        ("clients = 4\nrate = \"1k\"", "`load` has no `stop`"),
    ] {
        let found = mistakes(&study(lines));
        assert!(found.contains(expected), "{lines}: {found}");
        assert!(!found.contains("has no `stop`") || expected.contains("has no `stop`"), "{lines}: {found}");
    }
}

#[test]
fn grpc_needs_a_method_and_http2() {
    let study = |lines: &str| {
        let load = "[subject]\ncommand = \"x {port}\"\n[load]\nprotocol = \"http\"\nclients = 2\nstop = \"1s\"\n";
        format!("question = \"?\"\n{load}grpc = true\n{lines}\n")
    };
    let plan = expand(&parse(&study("path = \"/a.B/C\"")).unwrap(), &options(Vec::new())).unwrap();
    let http = plan.points[0].load.http.as_ref().unwrap();
    assert_eq!((http.http2, http.expect.grpc, http.requests[0].method.as_str()), (true, true, "POST"));
    for (lines, expected) in [
        ("", "`/` does not name a gRPC method"),
        ("path = \"/a.B/C\"\nhttp = \"1.1\"", "gRPC needs HTTP/2"),
        ("path = \"/a.B/C\"\nmethod = \"PUT\"", "a gRPC call is a `POST`, not a `PUT`"),
        ("path = \"/a.B/C\"\nbody = \"{{seq}}\"", "a gRPC message cannot have values"),
        ("path = \"/a.B/C\"\nproto = \"a.proto\"\nexpect_body = \"x\"", "but `proto` makes them JSON"),
    ] {
        let found = mistakes(&study(lines));
        assert!(found.contains(expected), "{lines}: {found}");
    }
}

#[test]
fn a_load_has_one_journey_or_several_with_weights() {
    let load = |lines: &str| {
        format!("question = \"?\"\n[subject]\ncommand = \"x {{port}}\"\n[load]\nclients = 2\nstop = \"1s\"\n{lines}\n")
    };
    let sources = |lines: &str| {
        let plan = expand(&parse(&load(lines)).unwrap(), &options(Vec::new())).unwrap();
        let plan = plan.points[0].load.journey.clone().unwrap();
        plan.journeys.iter().map(|one| format!("{} {}", one.weight, one.source)).collect::<Vec<_>>()
    };
    assert_eq!(sources("journey = \"shop.toml\""), ["1 shop.toml"]);
    assert_eq!(
        sources("[[load.journey]]\nfile = \"browse.toml\"\nweight = 9\n[[load.journey]]\nfile = \"twitter\""),
        ["9 browse.toml", "1 twitter"]
    );
    insta::assert_snapshot!(
        mistakes(&load("[[load.journey]]\nfile = \"twiter\"\nweight = 0\n[[load.journey]]\nweights = 2")), @r#"
    8:8: unknown journey `twiter`
        here: "\"twiter\""
        hint: did you mean `twitter`?; a file name ends in `.toml`
    9:10: `load.journey.weight` must be 1 to 1,000,000, not 0
        here: "0"
    10:1: `load.journey` has no `file`
        here: "[[load.journey]]"
        hint: add `file = "browse.toml"`
    11:1: unknown key `weights` in `load.journey`
        here: "weights"
        hint: did you mean `weight`?
    "#
    );
    insta::assert_snapshot!(mistakes(&load("journey = []")), @r#"
    7:11: `load.journey` is empty
        here: "[]"
        hint: begin each journey with `[[load.journey]]`
    "#);
}
