//! `quintain load` and `quintain serve` on real sockets.

mod common;

use common::{Folder, Server};

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
fn an_open_loop_names_its_clock_and_its_rate() {
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
fn wrong_input_is_explained() {
    let folder = Folder::new();
    for (args, code, words) in [
        (&["load", "htp://127.0.0.1:1"][..], 2, "unknown protocol `htp`"),
        (&["load", "http://127.0.0.1:1", "--identities", "reused"][..], 2, "`--identities` is a flag of journeys"),
        (&["load", "http://127.0.0.1:1", "--calls", "x", "--resolve", "y"][..], 2, "`--calls` is a flag of journeys"),
        (&["load", "127.0.0.1:1"], 2, "is no URL"),
        (&["load", "pingpong://127.0.0.1"], 2, "host and a port"),
        (&["load", "pingpong://127.0.0.1:1", "-c", "0"], 2, "0 is not in 1 to 1000000"),
        (&["load", "pingpong://127.0.0.1:1", "-d", "5"], 2, "unit"),
        (&["load", "pingpong://no.such.host.invalid:1"], 2, "cannot resolve"),
        (&["load", "pingpong://127.0.0.1:1"], 3, "nobody listens there"),
        (&["load", "pingpong://127.0.0.1:1", "--volley", "--rate", "5"], 2, "closed loop"),
        (&["run", "no-such-study"], 2, "there is no study `no-such-study`"),
        (&["run", "no/such.toml"], 2, "there is no study file"),
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
fn hostile_servers_are_borne() {
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
        assert!(json["latency_ns"]["p50"].is_null(), "{kind}: {json}");
    }
    // The right answers in single bytes are right answers.
    let server = Server::start(&["hostile", "--kind", "one-byte-at-a-time"]);
    let json = folder.quintain(&["load", &server.url(), "-c", "4", "-d", "400ms", "--json"]).expect(0).json();
    assert!(json["requests"].as_u64().unwrap() > 0);
    assert_eq!(json["errors"], serde_json::json!({}));
}

#[test]
fn calibrate_logs_the_truth_and_the_generator_agrees_on_the_count() {
    let server = Server::start(&["calibrate", "--delay", "bimodal:100us,3ms,10%", "--seed", "7"]);
    let args = ["load", &server.url(), "-c", "4", "-n", "2000", "--warmup", "0s", "--json"];
    let seen = Folder::new().quintain(&args).expect(0).json();
    let truth: serde_json::Value = serde_json::from_str(&server.end()).unwrap();
    let answered = truth["requests"].as_u64().unwrap();
    assert!(answered >= 2000, "{answered}");
    // A tenth of the answers takes 3 ms: the median cannot reach it, the p95 cannot miss it. What the machine adds has no bound.
    assert!(truth["service_ns"]["p50"].as_f64().unwrap() >= 1e5);
    for p95 in [&truth["service_ns"]["p95"], &seen["latency_ns"]["p95"]] {
        assert!(p95.as_f64().unwrap() >= 3e6, "{p95}");
    }
}
