//! HTTP studies on real processes: requests reach the server, and their responses reach the report.

use crate::common::Folder;
use serde_json::Value;

const STUDY: &str = r#"
question = "What does it answer?"
[subject]
command = "quintain serve http --threads {threads} -p {port}"
cpus = { up_to = "{threads}" }
[load]
protocol = "http"
clients = 4
share_cpus = true
pipeline = 2
warmup = "20ms"
stop = "150ms"
window = "10ms"
headers = { X-Test = "{threads}" }
expect_status = [200, 404]
[[load.request]]
path = "/bytes/100"
weight = 3
[[load.request]]
path = "/nowhere"
[[load.request]]
method = "POST"
path = "/echo"
body_file = "body.bin"
[factors]
threads = [1, 2000]
[trials]
stop = { metric = "throughput", min = 2 }
[[table]]
metric = "throughput"
title = "The seed's table"
[[figure]]
kind = "scatter"
x = "threads"
y = "throughput"
"#;

fn study(folder: &Folder, text: &str) {
    folder.write("asked.toml", text);
    folder.write("body.bin", "\0\u{1}four");
}

fn findings(folder: &Folder) -> Value {
    folder.quintain(&["report", "-f", "json"]).expect(0).json()
}

#[test]
fn mix_of_requests_is_sent_and_reported() {
    let folder = Folder::new();
    study(&folder, &STUDY.replace("threads = [1, 2000]", "threads = [1, 2]"));
    let ran = folder.quintain(&["run", "asked.toml"]).expect(0);
    for words in [
        "The seed's table",
        "sample standard deviation",
        "a mix of 60 % GET /bytes/100; 20 % GET /nowhere; 20 % POST /echo",
    ] {
        assert!(ran.out.contains(words), "{words}\n{}", ran.out);
    }
    let findings = findings(&folder);
    for row in findings["rows"].as_array().unwrap() {
        assert_eq!((row["n"].as_u64(), &row["errors"]), (Some(2), &serde_json::json!({})), "{row}");
        let statuses = row["statuses"].as_object().unwrap();
        let (found, missing) = (statuses["200"].as_u64().unwrap(), statuses["404"].as_u64().unwrap());
        assert_eq!(statuses.len(), 2);
        assert!(found > missing && missing > 0, "{statuses:?}");
        let metrics = &row["metrics"];
        assert!(metrics["transfer"]["mean"].as_f64() > metrics["throughput"]["mean"].as_f64(), "{metrics}");
        assert!(metrics["subject_cpu_per_request"]["mean"].as_f64() > Some(0.0), "{metrics}");
    }
    let records = folder.quintain(&["report", "-f", "records"]).expect(0).json()["records"].clone();
    let measurement = &records[0]["outcome"]["measured"];
    assert_eq!((&measurement["protocol"], &measurement["pipeline"]), (&"http".into(), &2.into()));
}

#[test]
fn invalid_responses_are_reported_with_an_example() {
    let folder = Folder::new();
    let one = STUDY
        .split("[[load.request]]")
        .next()
        .unwrap()
        .replace("pipeline = 2", "path = \"/bytes/4\"\nexpect_body = \"test\"");
    let rest = &STUDY[STUDY.find("[factors]").unwrap()..];
    study(&folder, &format!("{one}{}", rest.replace("threads = [1, 2000]", "threads = [1]")));
    let ran = folder.quintain(&["run", "asked.toml"]).expect(3);
    assert!(ran.err.contains("no valid response during the measurement: "), "{}", ran.err);
    assert!(ran.err.contains("; first: status"), "{}", ran.err);
}

#[test]
fn more_threads_than_cpus_is_noted_but_allowed() {
    let folder = Folder::new();
    study(&folder, STUDY);
    let checked = folder.quintain(&["check", "asked.toml"]).expect(0).out;
    assert!(checked.contains("of 2000 CPUs for the server"), "{checked}");
    assert!(checked.contains("load           http, a mix of 60 % GET /bytes/100"), "{checked}");
    let plan = folder.quintain(&["check", "asked.toml", "--json"]).expect(0).json();
    assert_eq!(plan["points"][1]["subject"]["cpus_wanted"], 2000);
    assert!(plan["points"][1]["unrunnable"].is_null());
}

#[test]
fn reports_a_missing_body_file_before_starting() {
    let folder = Folder::new();
    study(&folder, &STUDY.replace("body.bin", "gone.bin"));
    for verb in ["check", "run"] {
        let ran = folder.quintain(&[verb, "asked.toml"]).expect(2);
        assert!(ran.err.contains("`asked.toml`: cannot read the body `./gone.bin`: No such file"), "{}", ran.err);
    }
    assert!(!folder.path().join("quintain.db").exists(), "nothing was begun");
}

#[test]
fn escapes_characters_that_reorder_text() {
    let folder = Folder::new();
    folder.write(
        "evil.toml",
        "question = \"Which?\"\n[subject]\ncommand = \"quintain serve http -p {port} --seed {n}\"\n[load]\nprotocol = \"http\"\n\
         clients = 1\nstop = \"1s\"\n[factors]\nn = [\"1\", \"\\u202e2\"]\n[trials]\nstop = { max = 1 }\n",
    );
    let ran = folder.quintain(&["check", "evil.toml"]).expect(0);
    assert!(ran.out.contains("\\u202e2"), "{}", ran.out);
    assert!(!ran.out.contains('\u{202e}'), "{}", ran.out);
}
