//! `quintain run` on real processes: whole studies in miniature, and what becomes of them when something is killed.

mod common;

use std::collections::BTreeMap;
use std::process::Stdio;

use common::{Folder, Ran, eventually, processes_with, signal_process};
use serde_json::Value;

/// Two points, three trials of each, on whatever processors there are.
fn study() -> String {
    r#"
question = "Does it run?"
[subject]
command = "quintain serve pingpong -p {port}"
[load]
protocol = "pingpong"
clients = "{clients}"
share_cpus = true
warmup = "20ms"
stop = "150ms"
window = "10ms"
[factors]
clients = [1, 4]
[trials]
stop = { min = 3 }
[[figure]]
kind = "line"
x = "clients"
y = "throughput"
"#
    .to_owned()
}

fn records(folder: &Folder) -> Vec<Value> {
    let ran = folder.quintain(&["report", "-f", "records"]).expect(0);
    ran.json()["records"].as_array().unwrap().clone()
}

fn order(folder: &Folder) -> Vec<(u64, u64)> {
    let number = |value: &Value| value.as_u64().unwrap();
    records(folder).iter().map(|record| (number(&record["block"]), number(&record["point"]))).collect()
}

#[test]
fn a_study_runs_from_file_to_every_form_of_report() {
    let folder = Folder::new();
    folder.write("mini.toml", &study());
    let ran = folder.quintain(&["run", "mini.toml"]).expect(0);
    assert!(ran.out.contains("Does it run?") && ran.err.contains("mini.html"), "{}\n{}", ran.out, ran.err);
    let page = std::fs::read_to_string(folder.path().join("mini.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("Does it run?") && page.len() < 1_000_000);

    let all = records(&folder);
    assert_eq!(all.len(), 6);
    for record in &all {
        let measurement = &record["outcome"]["measured"];
        assert!(measurement["requests"].as_u64().unwrap() > 0, "{record}");
        assert!(record["subject"]["rss_max_bytes"].as_u64().unwrap() > 0, "{record}");
        assert!(record["verdict"]["limited_by"].is_string(), "{record}");
    }
    for (format, words) in [
        ("md", "| "),
        ("csv", "throughput"),
        ("csv-trials", "throughput"),
        ("html", "<svg"),
        ("json", "\"answer\""),
        ("terminal", "limited by"),
    ] {
        let out = folder.quintain(&["report", "-f", format]).expect(0).out;
        assert!(out.contains(words), "{format}: {out}");
    }
    let raw = folder.quintain(&["report", "--raw", "volley"]).expect(0).out;
    assert_eq!(raw.lines().next().unwrap().split_whitespace().count(), 6, "{raw}");
    folder.quintain(&["report", "--figures", "figures"]).expect(0);
    let figures = std::fs::read_dir(folder.path().join("figures")).unwrap().map(|entry| entry.unwrap().path());
    let (vectors, pixels): (Vec<_>, Vec<_>) =
        figures.partition(|path| path.extension().is_some_and(|end| end == "svg"));
    assert!(!vectors.is_empty() && vectors.len() == pixels.len(), "{vectors:?} {pixels:?}");
    for path in vectors.iter().map(|path| path.with_extension("png")) {
        assert!(std::fs::read(&path).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"), "{}", path.display());
    }
    assert!(folder.quintain(&["runs"]).expect(0).out.contains("mini-"));
    assert_eq!(folder.quintain(&["runs", "--json"]).expect(0).json()[0]["trials"], 6);
}

#[test]
fn the_same_seed_gives_the_same_plan_and_the_same_order() {
    let order_with = |seed: &str| {
        let folder = Folder::new();
        folder.write("mini.toml", &study());
        folder.quintain(&["run", "mini.toml", "--seed", seed, "--set", "clients=1,2,3,4"]).expect(0);
        let plan = folder.quintain(&["check", "mini.toml", "--seed", seed, "--json"]).expect(0).json();
        (order(&folder), plan)
    };
    assert_eq!(order_with("5"), order_with("5"));
    assert_ne!(order_with("5").0, order_with("6").0);
}

#[test]
fn hostile_subjects_fail_their_own_trials_only() {
    let folder = Folder::new();
    let text = r#"
question = "Who behaves?"
[subject]
command = "quintain serve hostile --kind {server} -p {port}"
ready_timeout = "2s"
[subject.variants.good]
command = "quintain serve pingpong -p {port}"
[subject.variants.exits]
command = "/bin/sh -c 'echo last words >&2; exit 3' {port}"
[subject.variants.deaf]
command = "/bin/sh -c 'sleep 60' {port}"
[subject.variants.missing]
command = "./no-such-server -p {port}"
[load]
protocol = "pingpong"
clients = 4
share_cpus = true
warmup = "10ms"
stop = "200ms"
timeout = "100ms"
[factors]
server = ["wrong-words", "endless-data", "never-answer", "close-at-once", "one-byte-at-a-time", "exits", "deaf", "missing", "good"]
[trials]
stop = { min = 1 }
"#;
    folder.write("hostile.toml", text);
    let ran = folder.quintain(&["run", "hostile.toml"]).expect(3);
    let kinds = records(&folder).iter().map(kind_of).collect::<BTreeMap<_, _>>();
    let expected = [
        ("close-at-once", "answers"),
        ("deaf", "not-ready"),
        ("endless-data", "answers"),
        ("exits", "start"),
        ("good", "measured"),
        ("missing", "start"),
        ("never-answer", "hung"),
        ("one-byte-at-a-time", "measured"),
        ("wrong-words", "answers"),
    ];
    assert_eq!(kinds, expected.map(|(server, kind)| (server.to_owned(), kind.to_owned())).into(), "{}", ran.err);
    assert!(ran.err.contains("last words"), "{}", ran.err);
}

fn kind_of(record: &Value) -> (String, String) {
    let server = record["factors"]["server"].as_str().unwrap().to_owned();
    let kind = record["outcome"]["failed"]["kind"].as_str().unwrap_or("measured").to_owned();
    (server, kind)
}

/// Starts a run whose trials are long enough to be killed in; waits until one trial is kept and the next one is measured.
fn begin(folder: &Folder) -> std::process::Child {
    folder.write("mini.toml", &study().replace("stop = \"150ms\"", "stop = \"1200ms\""));
    let child = folder.command(&["run", "mini.toml"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("a first trial is kept", || {
        let ran = folder.quintain(&["runs", "--json"]);
        let trials = serde_json::from_str::<Value>(&ran.out).ok()?[0]["trials"].as_u64()?;
        (trials >= 1).then_some(())
    });
    child
}

/// A child of `run`, by a word of its command line.
fn child_with(run: u32, word: &str) -> u32 {
    eventually(word, || {
        let children = processes_with(word).into_iter().map(|(pid, _)| pid);
        children.filter(|pid| parent(*pid) == Some(run)).max()
    })
}

/// The subject and the generator of a trial that has just begun to be loaded.
fn fresh_trial(run: u32) -> (u32, u32) {
    let before = child_with(run, "load --spec");
    let generator = eventually("a new generator", || {
        let children = processes_with("load --spec").into_iter().map(|(pid, _)| pid);
        children.filter(|pid| *pid != before && parent(*pid) == Some(run)).max()
    });
    (child_with(run, "serve pingpong"), generator)
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[test]
fn killing_the_subject_fails_that_trial_with_its_last_words() {
    let folder = Folder::new();
    let run = begin(&folder);
    signal_process(fresh_trial(run.id()).0, "KILL");
    let ran = Ran::from(run.wait_with_output().unwrap());
    let failed = records(&folder).iter().filter(|record| record["outcome"]["failed"]["kind"] == "exited").count();
    assert_eq!(failed, 1, "{}", ran.err);
    assert!(ran.err.contains("signal 9"), "{}", ran.err);
    assert!(order(&folder).len() >= 6);
}

#[test]
fn killing_the_generator_fails_that_trial_and_is_not_blamed_on_the_subject() {
    let folder = Folder::new();
    let run = begin(&folder);
    signal_process(fresh_trial(run.id()).1, "KILL");
    let ran = Ran::from(run.wait_with_output().unwrap());
    let failed = records(&folder).iter().filter(|record| record["outcome"]["failed"]["kind"] == "generator").count();
    assert_eq!(failed, 1, "{}", ran.err);
    assert!(order(&folder).len() >= 6);
}

#[test]
fn killing_the_lab_leaves_no_orphan_and_no_trial_is_lost() {
    let folder = Folder::new();
    let mut run = begin(&folder);
    let children = <[u32; 2]>::from(fresh_trial(run.id()));
    let kept = order(&folder);
    run.kill().unwrap();
    run.wait().unwrap();
    for pid in children {
        eventually("the children of the lab are gone", || (!alive(pid)).then_some(()));
    }
    assert!(order(&folder).starts_with(&kept));

    let ran = folder.quintain(&["run", "mini.toml", "--resume"]).expect(0);
    assert!(ran.err.contains("going on with"), "{}", ran.err);
    let mut all = order(&folder);
    assert!(all.starts_with(&kept));
    all.sort_unstable();
    assert_eq!(all, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!(folder.quintain(&["runs", "--json"]).expect(0).json().as_array().unwrap().len(), 1);
}

fn alive(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
}

#[test]
fn interrupting_ends_in_order() {
    let folder = Folder::new();
    let run = begin(&folder);
    let (subject, _) = fresh_trial(run.id());
    signal_process(run.id(), "INT");
    let ran = Ran::from(run.wait_with_output().unwrap()).expect(130);
    assert!(!alive(subject));
    assert!(ran.out.contains("Does it run?"), "what is there is reported: {}", ran.out);
    assert!(!order(&folder).is_empty());
}

#[test]
fn what_this_machine_cannot_run_is_a_row_that_says_so() {
    let folder = Folder::new();
    let text = study()
        .replace("share_cpus = true\n", "")
        .replace("[load]", "cpus = \"{cores}\"\n[load]")
        .replace("[factors]", "[factors]\ncores = [4000]");
    folder.write("big.toml", &text);
    let checked = folder.quintain(&["check", "big.toml"]).expect(0).out;
    assert!(checked.contains("needs 4001 processors"), "{checked}");
    let ran = folder.quintain(&["run", "big.toml"]).expect(4);
    assert!(ran.err.contains("needs 4001 processors"), "{}", ran.err);
}

#[test]
fn mistakes_are_shown_all_at_once_with_their_places() {
    let folder = Folder::new();
    folder.write("wrong.toml", include_str!("wrong.toml"));
    let ran = folder.quintain(&["check", "wrong.toml"]).expect(2);
    insta::assert_snapshot!(ran.err);
}

#[test]
fn help_is_worth_reading() {
    let folder = Folder::new();
    for verb in ["", "run", "load", "check", "report", "serve", "adapter", "contract"] {
        let args = [verb, "--help"].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
        let name = if verb.is_empty() { "help".to_owned() } else { format!("help_{verb}") };
        insta::assert_snapshot!(name, folder.quintain(&args).expect(0).out);
    }
}
