//! `quintain load` and `quintain serve` on real sockets.

use crate::common::{Folder, Server};

#[test]
fn load_json_has_the_keys_that_scripts_rely_on() {
    let server = Server::start(&["pingpong"]);
    for backend in ["auto", "epoll"] {
        let ran = Folder::new().quintain(&[
            "load",
            &server.url(),
            "-c",
            "4",
            "-d",
            "300ms",
            "--warmup",
            "100ms",
            "--backend",
            backend,
            "--json",
        ]);
        let json = ran.expect(0).json();
        assert!(json["requests"].as_u64().unwrap() > 0);
        assert!(json["errors"].is_object());
        for key in ["duration_s", "rate_per_s"] {
            assert!(json[key].as_f64().unwrap() > 0.0, "{key} in {json}");
        }
        for key in ["mean", "p50", "p90", "p95", "p99", "max"] {
            assert!(json["latency_ns"][key].as_f64().unwrap() > 0.0, "{key} in {json}");
        }
        assert_eq!(json["latency_ns"]["clock"], "service");
        assert!(json["generator"]["cpu_s"].as_f64().unwrap() > 0.0);
        assert!(json["generator"]["limited_by"].is_string());
    }
}

#[test]
fn open_loop_reports_its_clock_and_rate() {
    let server = Server::start(&["pingpong"]);
    let ran = Folder::new().quintain(&["load", &server.url(), "-c", "8", "-d", "500ms", "--rate", "2k", "--json"]);
    let json = ran.expect(0).json();
    assert_eq!(json["latency_ns"]["clock"], "response");
    let rate = json["rate_per_s"].as_f64().unwrap();
    assert!(rate > 100.0, "{json}");
}

#[test]
fn a_number_of_requests_over_threads() {
    let server = Server::start(&["pingpong", "--threads", "2"]);
    let ran = Folder::new().quintain(&["load", &server.url(), "-c", "9", "-t", "3", "-n", "5000", "--json"]);
    assert_eq!(ran.expect(0).json()["requests"], 5000);
}

#[test]
fn log_has_each_request() {
    let server = Server::start(&["http"]);
    let folder = Folder::new();
    let url = format!("http://127.0.0.1:{}/bytes/100", server.port);
    for file in ["log.csv", "log.jsonl"] {
        folder.quintain(&["load", &url, "-c", "2", "-n", "300", "--warmup", "0s", "--log", file]).expect(0);
    }
    let lines = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let csv = lines("log.csv");
    assert_eq!(csv.lines().count(), 301);
    let fields = csv.lines().nth(1).unwrap().split(',').collect::<Vec<_>>();
    assert_eq!(fields[4..], ["200", "100", "\"GET /bytes/100\"", ""]);
    let time = |at: usize| fields[at].parse::<i64>().unwrap();
    assert!(time(0) == time(1) && time(1) <= time(2) && time(2) <= time(3), "{fields:?}");
    for line in lines("log.jsonl").lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&entry["status"], &entry["request"]), (&200.into(), &"GET /bytes/100".into()));
    }
}

#[test]
fn calls_of_a_journey_to_two_servers() {
    let servers = [(); 2].map(|()| Server::start(&["http"]));
    let folder = Folder::new();
    let [a, b] = [&servers[0], &servers[1]].map(|server| format!("http://127.0.0.1:{}", server.port));
    let journey = format!(
        "name = \"two\"\ntargets = {{ a = \"{a}\", b = \"{b}\" }}\n[[step]]\nname = \"first\"\nurl = \"{{a}}/\"\n\
         [[step]]\nname = \"second\"\nurl = \"{{b}}/\"\n"
    );
    folder.write("two.toml", &journey);
    let load = ["load", "--journey", "two.toml", "-c", "2", "-n", "40", "--calls", "calls.csv", "--log", "log.jsonl"];
    folder.quintain(&load).expect(0);
    let lines = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let calls = lines("calls.csv");
    let calls = calls.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>()).collect::<Vec<_>>();
    assert_eq!(calls.len(), 40);
    let mut by_journey = std::collections::BTreeMap::<&str, Vec<&str>>::new();
    for call in &calls {
        assert_eq!((call.len(), call[7]), (8, "true"), "{call:?}");
        by_journey.entry(call[2]).or_default().push(call[3]);
    }
    assert_eq!(by_journey.len(), 20);
    assert!(by_journey.values().all(|operations| *operations == ["\"first\"", "\"second\""]), "{by_journey:?}");
    let log = lines("log.jsonl");
    let entry: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!((log.lines().count(), &entry["request"]), (40, &"first".into()));
    assert_eq!(entry["session"]["journey"].as_u64().map(|number| number < 20), Some(true), "{entry}");
    for flag in ["--connect-to", "--http-proxy", "--unix-socket"] {
        let ran = folder.quintain(&["load", "--journey", "two.toml", flag, "127.0.0.1:1"]).expect(2);
        assert!(ran.err.contains(&format!("`{flag}` does not apply to journeys")), "{}", ran.err);
    }
    let several = ["load", "--journey", "two.toml", "--calls", "x", "--hosts", "a"];
    assert!(folder.quintain(&several).expect(2).err.contains("cannot be used with"));
}

#[test]
fn a_journey_over_http2_by_prior_knowledge_and_by_alpn() {
    let folder = Folder::new();
    let root = folder.path().join("root.pem");
    let root = root.to_str().unwrap();
    let plain = Server::start(&["http"]);
    let encrypted = Server::start(&["http", "--tls", "--cert-out", root]);
    let [a, b] = [format!("http://127.0.0.1:{}", plain.port), format!("https://localhost:{}", encrypted.port)];
    // The body exceeds the server's first window.
    let pad = "x".repeat(100_000);
    let journey = format!(
        "name = \"two\"\ntargets = {{ a = \"{a}\", b = \"{b}\" }}\n\
         [[step]]\nname = \"echo\"\nurl = \"{{a}}/echo\"\nmethod = \"POST\"\n\
         body = '{{\"id\": 5, \"pad\": \"{pad}\"}}'\ntake = {{ id = \"body.id\" }}\n\
         [[step]]\nname = \"bytes\"\nurl = \"{{b}}/bytes/{{id}}\"\ntake = {{ letters = \"match(^ABCDE$)\" }}\n"
    );
    folder.write("two.toml", &journey);
    let load = ["load", "--journey", "two.toml", "--cacert", root, "--http2", "-c", "3"];
    for more in [&[][..], &["--requests-per-connection", "3"], &["--no-keepalive"], &["--rate", "500"]] {
        let json = folder.quintain(&[&load[..], &["-n", "240", "--json"], more].concat()).expect(0).json();
        assert_eq!((&json["requests"], &json["errors"]), (&240.into(), &serde_json::json!({})), "{more:?}");
        assert_eq!(json["journeys"][0]["completed"], 120, "{more:?}");
        assert_eq!((&json["streams"]["allowed"], &json["reconnects"]), (&100.into(), &0.into()), "{more:?}");
    }
    let shown = folder.quintain(&[&load[..], &["--trace-session"]].concat()).expect(0).out;
    for line in ["> POST /echo HTTP/2\n", "< HTTP/2 200\n", "= id: 5\n", "> GET /bytes/5 HTTP/2\n", "< ABCDE\n"] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    let text = folder.quintain(&[&load[..], &["-n", "40"]].concat()).expect(0).out;
    assert!(text.contains("journey two over HTTP/2"), "{text}");
    for (flags, words) in [
        (&["--resolve", "http://127.0.0.1:1"][..], "`--resolve` needs HTTP/1.1"),
        (&["-m", "2"], "`--streams` does not apply to journeys"),
        (&["-X", "POST"], "`--method` does not apply to journeys"),
    ] {
        let err = folder.quintain(&[&load[..], flags].concat()).expect(2).err;
        assert!(err.contains(words), "{err}");
    }
}

#[test]
fn several_journeys_share_a_load_by_weight() {
    let server = Server::start(&["http"]);
    let folder = Folder::new();
    let journey = |name: &str, steps: &[&str]| {
        let target = format!("targets = {{ site = \"http://127.0.0.1:{}\" }}", server.port);
        let steps = steps.iter().map(|step| format!("[[step]]\nname = \"{step}\"\nurl = \"{{site}}/\"\n"));
        folder.write(&format!("{name}.toml"), &format!("name = \"{name}\"\n{target}\n{}", steps.collect::<String>()));
    };
    journey("visit", &["look"]);
    journey("buy", &["look", "pay"]);
    let both = ["load", "--journey", "visit.toml=3", "--journey", "buy.toml", "-c", "4", "-n", "1000"];
    let json = folder.quintain(&[&both[..], &["--json"]].concat()).expect(0).json();
    let [visit, buy] = json["journeys"].as_array().unwrap().as_slice() else { panic!("{json}") };
    let completed = |journey: &serde_json::Value| journey["completed"].as_u64().unwrap();
    assert_eq!((completed(visit) + completed(buy), json["stop_reason"].as_str()), (800, Some("800 journeys")));
    assert_eq!((&visit["name"], json["requests"].as_u64()), (&"visit".into(), Some(800 + completed(buy))));
    assert!((150..250).contains(&completed(buy)), "{json}");
    let out = folder.quintain(&both).expect(0).out;
    assert!(out.contains("journeys visit (weight 3), buy (weight 1)") && out.contains("buy: "), "{out}");
    for (args, words) in [
        (["visit.toml=0", "buy.toml"], "the weight of `visit.toml` must be a whole number from 1 to 1,000,000"),
        (["visit.toml", "visit.toml"], "journey 2: the name `visit` is taken; give each file its own `name`"),
    ] {
        let ran = folder.quintain(&["load", "--journey", args[0], "--journey", args[1]]).expect(2);
        assert!(ran.err.contains(words), "{}", ran.err);
    }
    let out = folder.quintain(&[&both[..5], &["--trace-session"]].concat()).expect(0).out;
    let starts = |mark: &str| out.lines().filter(|line| line.starts_with(mark)).collect::<Vec<_>>();
    assert_eq!((starts("#"), starts("> GET").len()), (vec!["# visit", "# buy"], 3), "{out}");
    let target = ["--target", "shop=http://127.0.0.1:1"];
    let ran = folder.quintain(&[&both[..], &target].concat()).expect(2);
    assert!(ran.err.contains("no journey has a target `shop`, only `site`"), "{}", ran.err);
}

#[test]
fn a_study_reports_journeys_with_their_steps() {
    let folder = Folder::new();
    for name in ["visit", "buy"] {
        let step = "[[step]]\nname = \"look\"\nurl = \"{site}/\"\n";
        folder
            .write(&format!("{name}.toml"), &format!("name = \"{name}\"\ntargets = {{ site = \"http://a\" }}\n{step}"));
    }
    let study = "question = \"?\"\n[subject]\ncommand = \"quintain serve http -p {port}\"\n[load]\nclients = 2\n\
                 stop = \"200ms\"\n[[load.journey]]\nfile = \"visit.toml\"\nweight = 3\n\
                 [[load.journey]]\nfile = \"buy.toml\"\n";
    folder.write("study.toml", study);
    let out = folder.quintain(&["run", "study.toml", "--quick"]).expect(0).out;
    assert!(out.contains("visit: look") && out.contains("buy: look"), "{out}");
    assert!(out.contains("journeys visit.toml (weight 3) and buy.toml (weight 1)"), "{out}");
}

#[test]
fn limits_decide_the_exit_code() {
    let server = Server::start(&["pingpong"]);
    let folder = Folder::new();
    let load = |condition: &str, code: i32| {
        let url = server.url();
        let args = ["load", &url, "-c", "2", "-n", "2000", "--warmup", "0s", "--json", "--fail-if", condition];
        folder.quintain(&args).expect(code).json()["limits"].clone()
    };
    assert_eq!(load("p50 > 1h or errors > 0", 0)[1]["outcome"], "passes");
    let failed = load("p50 > 1h or mean > 1ns", 1);
    assert_eq!((&failed[0]["outcome"], &failed[1]["outcome"]), (&"passes".into(), &"fails".into()));
    assert_eq!(load("handshake_mean > 1ms", 4)[0]["outcome"], "unknown");
    let ran = folder.quintain(&["load", "pingpong://127.0.0.1:1", "--fail-if", "p99 > 1.05 or rss > 1MiB"]).expect(2);
    for said in ["relative, and one load has no baseline", "not measured by a load of a running server"] {
        assert!(ran.err.contains(said), "{}", ran.err);
    }
}

#[test]
fn wrong_input_is_explained() {
    let folder = Folder::new();
    for (args, code, words) in [
        (&["load", "htp://127.0.0.1:1"][..], 2, "unknown protocol `htp`"),
        (&["load", "http://127.0.0.1:1", "--identities", "reused"][..], 2, "`--identities` only applies to journeys"),
        (
            &["load", "http://127.0.0.1:1", "--calls", "x", "--resolve", "y"][..],
            2,
            "`--calls` only applies to \
                                                                                    journeys",
        ),
        (&["load", "127.0.0.1:1"], 2, "is not a URL"),
        (&["load", "pingpong://127.0.0.1"], 2, "host and a port"),
        (&["load", "pingpong://127.0.0.1:1", "-c", "0"], 2, "must be 1 to 1,000,000, not `0`"),
        (&["load", "pingpong://127.0.0.1:1", "-d", "5x"], 2, "not a unit of time"),
        (&["load", "pingpong://no.such.host.invalid:1"], 2, "cannot resolve"),
        (&["load", "pingpong://127.0.0.1:1"], 3, "connection refused"),
        (&["load", "pingpong://127.0.0.1:1", "--cpus", "1000"], 4, "CPU 1000 does not exist or is not available"),
        (&["load", "pingpong://127.0.0.1:1", "--volley", "--rate", "5"], 2, "closed loop"),
        (&["run", "no-such-study"], 2, "unknown study `no-such-study`"),
        (&["run", "no/such.toml"], 2, "no study file"),
        (&["report"], 2, "quintain.db"),
        (&["runs"], 2, "quintain.db"),
        (&["serve", "calibrate", "--delay", "gauss:1ms"], 2, "lognormal:MEDIAN,SIGMA"),
        (&["serve", "calibrate", "--pause", "2s", "--pause-every", "1s"], 2, "shorter"),
    ] {
        let ran = folder.quintain(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
        assert!(ran.out.is_empty(), "{args:?}: {}", ran.out);
    }
}

#[test]
#[ignore = "slow: waits for silent servers"]
fn hostile_servers_end_no_load() {
    let folder = Folder::new();
    for (kind, error) in
        [("wrong-words", "wrong-answer"), ("endless-data", "wrong-answer"), ("never-answer", "timeout")]
    {
        let server = Server::start(&["hostile", "--kind", kind]);
        let args =
            ["load", &server.url(), "-c", "4", "-d", "400ms", "--warmup", "10ms", "--timeout", "100ms", "--json"];
        let json = folder.quintain(&args).expect(3).json();
        assert_eq!(json["requests"], 0, "{kind}");
        assert!(json["errors"][error].as_u64().unwrap() > 0, "{kind}: {json}");
        // The waiting requests give only a lower bound for the latencies.
        let latency = &json["latency_ns"];
        let bounds = latency["at_least"].as_array().unwrap();
        assert!(latency["p50"].is_null() || bounds.contains(&"p50".into()), "{kind}: {json}");
    }
    assert_silences(&folder);
    let server = Server::start(&["hostile", "--kind", "one-byte-at-a-time"]);
    let json = folder.quintain(&["load", &server.url(), "-c", "4", "-d", "400ms", "--json"]).expect(0).json();
    assert!(json["requests"].as_u64().unwrap() > 0);
    assert_eq!(json["errors"], serde_json::json!({}));
}

#[test]
#[ignore = "slow: eleven servers in turn"]
fn hostile_http2_servers_cause_errors_by_name() {
    let folder = Folder::new();
    let http = |server: &Server| server.url().replace("pingpong:", "http:");
    for (kind, words) in [("silence", "timed out"), ("http1", "the server uses HTTP/1, not HTTP/2")] {
        let server = Server::start(&["hostile", "--kind", &format!("http2-{kind}")]);
        let ran = folder.quintain(&["load", "--http2", "-n", "5", "--timeout", "200ms", &http(&server)]).expect(3);
        assert!(ran.err.contains(words), "{kind}: {}", ran.err);
    }
    for (kind, after, error, example) in [
        ("no-credit", "7", "timeout", None),
        ("goaway", "7", "truncated", None),
        ("reset", "7", "stream-reset", Some("the server reset the stream with INTERNAL_ERROR")),
        ("refuse", "0", "stream-reset", None),
        ("closed-stream", "7", "framing", Some(", which is closed")),
        ("header-bomb", "7", "head-too-large", Some("field block: fields of more than 65536 bytes")),
        ("continuation-flood", "7", "head-too-large", Some("a field block of more than 64 CONTINUATION frames")),
        ("ping-flood", "7", "framing", Some("more than 10000 frames in a row without a part of a message")),
        ("settings-flood", "7", "framing", Some("more than 10000 frames in a row without a part of a message")),
    ] {
        let server = Server::start(&["hostile", "--kind", &format!("http2-{kind}"), "--after", after]);
        let url = http(&server);
        let args = ["load", "--http2", "-c", "4", "-m", "4", "-d", "400ms", "--warmup", "10ms", "--timeout", "100ms"];
        let ran = folder.quintain(&[&args[..], &["-X", "POST", "--body", "abcde", "--json", &url]].concat());
        let (json, count) = (ran.json(), ran.json()["errors"][error].as_u64());
        assert!(matches!(ran.code, Some(0 | 3)) && count > Some(0), "{kind}: {json}");
        assert_eq!(json["requests"].as_u64() > Some(0), after == "7" && kind != "no-credit", "{kind}: {json}");
        let shown = json["error_examples"][error].as_str().unwrap_or_default();
        assert!(example.is_none_or(|example| shown.contains(example)), "{kind}: {json}");
    }
}

#[test]
fn load_without_valid_responses_ends_with_a_report() {
    let folder = Folder::new();
    let wrong = Server::start(&["hostile", "--kind", "wrong-words"]);
    let json = folder.quintain(&["load", &wrong.url(), "-n", "50", "--warmup", "10ms", "--json"]).expect(3).json();
    assert_eq!((&json["requests"], &json["errors"]["wrong-answer"]), (&0.into(), &50.into()), "{json}");
    assert_eq!(json["stop_reason"], "50 requests");

    let silent = Server::start(&["hostile", "--kind", "never-answer"]);
    let args = ["load", &silent.url(), "-n", "50", "--warmup", "10ms", "--timeout", "100ms", "--json"];
    let json = folder.quintain(&args).expect(3).json();
    assert!(json["stop_reason"].as_str().unwrap().starts_with("requests: gave up, no response for"), "{json}");

    // The load ends before the first timeout, so there are no errors yet.
    let args = ["load", &silent.url(), "-d", "300ms", "--warmup", "10ms"];
    let words = "no response in the 0.300 s measured: 10 requests still waiting at the end";
    let out = folder.quintain(&args).expect(3).out;
    assert!(out.contains("no response in the") && !out.contains("no errors"), "{out}");
    let json = folder.quintain(&[&args[..], &["--json"]].concat()).expect(3).json();
    assert_eq!((&json["errors"], &json["warnings"][0]), (&serde_json::json!({}), &words.into()), "{json}");
}

#[test]
fn calibrate_logs_the_truth_and_the_generator_agrees_on_the_count() {
    let server = Server::start(&["calibrate", "--delay", "bimodal:100us,3ms,10%", "--seed", "7"]);
    let args = ["load", &server.url(), "-c", "4", "-n", "2000", "--warmup", "0s", "--json"];
    let seen = Folder::new().quintain(&args).expect(0).json();
    let truth: serde_json::Value = serde_json::from_str(&server.end()).unwrap();
    let answered = truth["requests"].as_u64().unwrap();
    assert_eq!((answered, &seen["requests"]), (2000, &serde_json::json!(2000)));
    // A tenth of the responses take 3 ms and the others 0.1 ms. Noise may add any delay, so only minima are checked.
    assert!(truth["service_ns"]["p50"].as_f64().unwrap() >= 1e5);
    for p95 in [&truth["service_ns"]["p95"], &seen["latency_ns"]["p95"]] {
        assert!(p95.as_f64().unwrap() >= 3e6, "{p95}");
    }
}

/// Checks that both loops report a server that falls silent on one or all connections, even before a timeout.
fn assert_silences(folder: &Folder) {
    let warned = |json: &serde_json::Value, start: &str| {
        json["warnings"].as_array().unwrap().iter().any(|warning| warning.as_str().unwrap().starts_with(start))
    };
    for rate in [&[][..], &["--rate", "5k"]] {
        let load = |kind: &str, after: &str| {
            let server = Server::start(&["hostile", "--kind", kind, "--after", after]);
            let url = server.url();
            let mut args = vec!["load", &url, "-c", "20", "-d", "2s", "--warmup", "0s", "--timeout", "30s", "--json"];
            args.extend(rate);
            folder.quintain(&args).expect(0).json()
        };
        let hung = load("freeze", "200");
        assert_eq!((hung["requests"].as_u64(), hung["errors"].to_string()), (Some(200), "{}".to_owned()), "{hung}");
        assert_eq!(hung["censored"]["hung"], true, "{hung}");
        assert_eq!(hung["censored"]["in_flight"], 20, "{hung}");
        assert_eq!(hung["generator"]["limited_by"], "subject", "{hung}");
        assert!(warned(&hung, "hung: no response for the last "), "{hung}");
        let bounds = hung["latency_ns"]["at_least"].as_array().unwrap();
        assert!(["mean", "p99", "max"].iter().all(|name| bounds.contains(&(*name).into())), "{hung}");
        assert_eq!(hung["censored"]["unsent"].as_u64().unwrap() > 0, !rate.is_empty(), "{hung}");

        let one = load("freeze-one", "10");
        let told = warned(&one, "1 of 20 connections got no response for the last ");
        assert!(told && one["censored"]["hung"] == false, "{one}");
        assert!(one["latency_ns"]["at_least"].as_array().unwrap().contains(&"max".into()), "{one}");
    }
}
