//! `quintain run` on real processes: small complete studies, and the effects of killed processes.

use std::collections::BTreeMap;
use std::process::Stdio;

use crate::common::{Folder, Ran, eventually, processes_with, signal_process};
use serde_json::Value;

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
        assert!(measurement["requests"].as_u64() > Some(0), "{record}");
        assert!(record["subject"]["rss_max_bytes"].as_u64() > Some(0), "{record}");
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
    for (format, words) in [("bencher", "\"throughput\""), ("hdr", "#[StartTime: "), ("trace", "\"traceEvents\"")] {
        let out = folder.quintain(&["report", "-f", format]).expect(0).out;
        assert!(out.contains(words), "{format}: {out}");
    }
    let ran = folder.quintain(&["report", "-f", "github-benchmark"]).expect(2);
    let told = "error: `--format github-benchmark` has 2 files here, and stdout takes one\n  = help: `-o DIR` writes them to a directory\n";
    assert_eq!(ran.err, told);
    let ran = folder.quintain(&["report", "-f", "github-benchmark", "-o", "github"]).expect(0);
    assert!(folder.path().join("github/customSmallerIsBetter.json").exists(), "{}", ran.err);
    let ran = folder.quintain(&["report", "-f", "trace", "--trial", "99"]).expect(2);
    assert!(ran.err.contains("has no trial 99: it has 0 to "), "{}", ran.err);
    let ran = folder.quintain(&["report", "--trial", "1"]).expect(2);
    assert!(ran.err.starts_with("error: `--trial` is only valid with `--format trace`"), "{}", ran.err);
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
#[ignore = "slow: five runs"]
fn the_same_seed_gives_the_same_plan_and_the_same_order() {
    let order_with = |seed: &str| {
        let folder = Folder::new();
        folder.write("mini.toml", &study());
        folder
            .quintain(&["run", "mini.toml", "--seed", seed, "--set", "clients=1,2,3,4", "--set", "load.stop=20ms"])
            .expect(0);
        let plan = folder.quintain(&["check", "mini.toml", "--seed", seed, "--json"]).expect(0).json();
        (order(&folder), plan)
    };
    let first = order_with("5");
    assert_eq!(first, order_with("5"));
    assert_ne!(first.0, order_with("6").0);
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

/// Starts a run with trials long enough to be killed. Waits until one trial is stored and the next is being measured.
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

fn child_with(run: u32, word: &str) -> u32 {
    eventually(word, || {
        let children = processes_with(word).into_iter().map(|(pid, _)| pid);
        children.filter(|pid| parent(*pid) == Some(run)).max()
    })
}

/// Process IDs of the server and the generator of a trial whose load has just begun.
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
fn killing_the_server_fails_that_trial_with_its_output() {
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
#[ignore = "slow: waits until the generator counts as lost"]
fn killing_the_generator_does_not_blame_the_server() {
    let folder = Folder::new();
    let run = begin(&folder);
    signal_process(fresh_trial(run.id()).1, "KILL");
    let ran = Ran::from(run.wait_with_output().unwrap());
    let failed = records(&folder).iter().filter(|record| record["outcome"]["failed"]["kind"] == "generator").count();
    assert_eq!(failed, 1, "{}", ran.err);
    assert!(order(&folder).len() >= 6);
}

#[test]
fn killing_the_lab_leaves_no_orphans_and_keeps_trials() {
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
    assert!(ran.err.contains("resuming mini-"), "{}", ran.err);
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
fn interrupt_shuts_down_cleanly() {
    let folder = Folder::new();
    let run = begin(&folder);
    let (subject, _) = fresh_trial(run.id());
    signal_process(run.id(), "INT");
    let ran = Ran::from(run.wait_with_output().unwrap()).expect(130);
    assert!(!alive(subject));
    assert!(ran.out.contains("Does it run?"), "completed trials are reported: {}", ran.out);
    assert!(!order(&folder).is_empty());
}

#[test]
#[ignore = "slow: interrupts a run"]
fn every_format_shows_that_a_run_was_interrupted() {
    let folder = Folder::new();
    let run = begin(&folder);
    fresh_trial(run.id());
    signal_process(run.id(), "INT");
    let ran = Ran::from(run.wait_with_output().unwrap()).expect(130);
    let done = order(&folder).len();
    let name = folder.quintain(&["runs", "--json"]).expect(0).json()[0]["id"].as_str().unwrap().to_owned();
    let said = format!("interrupted after {done} of 6 trials");
    let line = format!("run mini.toml --resume {name}");
    assert!(ran.out.to_lowercase().contains(&said) && ran.out.contains(&line), "{}", ran.out);
    let page = std::fs::read_to_string(folder.path().join("mini.html")).unwrap();
    assert!(page.to_lowercase().contains(&said) && page.contains(&line));
    for form in ["terminal", "md", "html", "json"] {
        let out = folder.quintain(&["report", "-f", form]).expect(0).out;
        assert!(out.to_lowercase().contains(&said) && out.contains(&line), "{form}: {out}");
    }
    for form in ["csv", "csv-trials"] {
        let out = folder.quintain(&["report", "-f", form]).expect(0).out;
        assert!(out.lines().skip(1).all(|line| line.ends_with(",interrupted")), "{form}: {out}");
    }
    let runs = folder.quintain(&["runs"]).expect(0).out;
    assert!(runs.contains(&format!("  {done} of 6  ")) && runs.contains("interrupted"), "{runs}");

    folder.quintain(&["run", "mini.toml", "--resume", &name]).expect(0);
    assert_eq!(order(&folder).len(), 6);
    let runs = folder.quintain(&["runs"]).expect(0).out;
    assert!(runs.contains("complete") && !runs.contains(" of "), "{runs}");
    let out = folder.quintain(&["report"]).expect(0).out;
    assert!(!out.to_lowercase().contains("interrupted"), "{out}");
}

#[test]
#[ignore = "slow: waits for the end of a run"]
fn run_is_locked_until_its_process_ends() {
    let folder = Folder::new();
    let mut run = begin(&folder);
    let refused = folder.quintain(&["run", "mini.toml", "--resume"]).expect(2);
    assert!(refused.err.contains(&format!("is in use by process {}", run.id())), "{}", refused.err);
    assert!(folder.quintain(&["report"]).expect(0).out.contains("RUNNING, "));
    assert!(folder.quintain(&["runs"]).expect(0).out.contains("running"));
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(folder.quintain(&["report"]).expect(0).out.contains("INTERRUPTED after"));
    folder.quintain(&["run", "mini.toml", "--resume"]).expect(0);
    assert_eq!(order(&folder).len(), 6);
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with(".lock")));
}

#[test]
fn warns_about_another_lab_on_the_machine() {
    let (first, second) = (Folder::new(), Folder::new());
    let mut running = begin(&first);
    let found = first.quintain(&["doctor", "--json"]).json();
    let labs = found["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == "labs").unwrap();
    assert_eq!(labs["state"], "warning");
    assert!(labs["text"].as_str().unwrap().contains(&format!("process {} (mini-", running.id())), "{labs}");

    let mut beside = begin(&second);
    let warned = |folder: &Folder, other: u32| {
        let warnings = records(folder).into_iter().flat_map(|record| record["warnings"].as_array().unwrap().clone());
        warnings
            .into_iter()
            .any(|warning| warning["text"].as_str().unwrap().contains(&format!("process {other} (mini-")))
    };
    eventually("the first run is warned of the second", || warned(&first, beside.id()).then_some(()));
    assert!(warned(&second, running.id()));
    for run in [&mut running, &mut beside] {
        run.kill().unwrap();
        run.wait().unwrap();
    }
}

#[test]
fn reports_from_a_read_only_store() {
    let folder = Folder::new();
    folder.write("mini.toml", &study());
    folder.quintain(&["run", "mini.toml", "--set", "clients=1"]).expect(0);
    let mode = |path: &std::path::Path, mode| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&folder.path().join("quintain.db"), 0o444);
    mode(folder.path(), 0o555);
    // Permissions do not restrict root, so root switches to a different user.
    let as_anybody = |args: &[&str]| {
        let mut command = folder.command(args);
        if rustix::process::geteuid().is_root() {
            use std::os::unix::process::CommandExt;
            command.uid(65_534);
        }
        Ran::from(command.output().unwrap())
    };
    let out = as_anybody(&["report"]).expect(0).out;
    assert!(out.contains("Does it run?"), "{out}");
    assert!(as_anybody(&["runs"]).expect(0).out.contains("mini-"));
    let refused = as_anybody(&["calibrate", "--force"]).expect(2);
    assert!(refused.err.contains("` as a store: "), "{}", refused.err);
    mode(folder.path(), 0o755);
}

#[test]
fn unwritable_page_is_detected_before_measuring() {
    let folder = Folder::new();
    folder.write("mini.toml", &study());
    std::fs::create_dir(folder.path().join("taken")).unwrap();
    for (page, says, hint) in [
        ("no/such/page.html", "no directory `no/such` for the report `no/such/page.html`", "mkdir -p no/such"),
        ("taken", "`taken` is a directory, but the report is a file", "--html FILE"),
    ] {
        let ran = folder.quintain(&["run", "mini.toml", "--html", page]).expect(2);
        assert!(ran.err.contains(says) && ran.err.contains(hint), "{}", ran.err);
    }
    assert!(!folder.path().join("quintain.db").exists(), "nothing has begun");
}

#[test]
fn failure_to_write_the_page_keeps_the_results() {
    let folder = Folder::new();
    let build = "[subject]\nbuild = \"mkdir mini.html\"";
    folder.write("mini.toml", &study().replace("[subject]", build));
    let ran = folder.quintain(&["run", "mini.toml"]).expect(0);
    assert!(ran.out.contains("limited by"), "{}", ran.out);
    assert!(ran.err.contains("warning: cannot write `mini.html`: Is a directory"), "{}", ran.err);
    assert!(ran.err.contains("--format html --out FILE` writes it elsewhere"), "{}", ran.err);
    assert_eq!(order(&folder).len(), 6);
}

#[test]
fn flags_that_resuming_would_ignore_are_refused() {
    let folder = Folder::new();
    folder.write("mini.toml", &study());
    for flags in [&["--quick"][..], &["--full"], &["--seed", "1"], &["--set", "clients=1"], &["--backend", "epoll"]] {
        let args = [&["run", "mini.toml", "--resume"], flags].concat();
        let ran = folder.quintain(&args).expect(2);
        assert!(
            ran.err.contains("'--resume [<RUN>]' cannot be used with") && ran.err.contains(flags[0]),
            "{}",
            ran.err
        );
    }
}

#[test]
fn server_output_is_escaped_on_terminals() {
    let folder = Folder::new();
    folder.write("evil.sh", r"printf '\033]0;owned\007 no \302\233such\r\n' >&2; exit 3");
    let text = study().replace("quintain serve pingpong -p {port}", "/bin/sh evil.sh {port}");
    folder.write("evil.toml", &text);
    let ran = folder.quintain(&["run", "evil.toml"]).expect(3);
    let page = std::fs::read_to_string(folder.path().join("evil.html")).unwrap();
    let markdown = folder.quintain(&["report", "-f", "md"]).expect(0).out;
    for text in [&ran.out, &ran.err, &page, &markdown] {
        assert!(text.contains("owned"), "{text}");
        assert_eq!(text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')), None, "{text:?}");
    }
    assert!(ran.err.contains(r"\x1b]0;owned\x07 no \u009bsuch"), "{}", ran.err);
}

#[test]
fn a_failure_without_factors_reads_well() {
    let folder = Folder::new();
    let text = study().replace("quintain serve pingpong -p {port}", "/bin/sh -c 'exit 3' {port}");
    let text = text.replace("\"{clients}\"", "1").replace("[factors]\nclients = [1, 4]\n", "");
    folder.write("alone.toml", &text[..text.find("[[figure]]").unwrap()]);
    let ran = folder.quintain(&["run", "alone.toml"]).expect(3);
    assert!(ran.err.contains("failed: exited (exit 3) before port "), "{}", ran.err);
    assert!(ran.out.contains("\n  failed: all 3 trials failed: exited (exit 3)"), "{}", ran.out);
    assert!(!ran.err.contains(": :") && !ran.out.contains(": :"), "{}\n{}", ran.err, ran.out);
}

#[test]
fn unrunnable_point_is_a_row_with_its_reason() {
    let folder = Folder::new();
    let text = study()
        .replace("share_cpus = true\n", "")
        .replace("[load]", "cpus = \"{cores}\"\n[load]")
        .replace("[factors]", "[factors]\ncores = [4000]");
    folder.write("big.toml", &text);
    let checked = folder.quintain(&["check", "big.toml"]).expect(0).out;
    assert!(checked.contains("needs 4001 CPUs"), "{checked}");
    let ran = folder.quintain(&["run", "big.toml"]).expect(4);
    assert!(ran.err.contains("needs 4001 CPUs"), "{}", ran.err);
}

#[test]
fn errors_are_shown_all_at_once_with_locations() {
    let folder = Folder::new();
    folder.write("wrong.toml", include_str!("wrong.toml"));
    let ran = folder.quintain(&["check", "wrong.toml"]).expect(2);
    insta::assert_snapshot!(ran.err);
}

#[test]
fn help_is_worth_reading() {
    let folder = Folder::new();
    for verb in ["", "run", "load", "check", "report", "calibrate", "serve", "adapter", "contract"] {
        let args = [verb, "--help"].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
        let name = if verb.is_empty() { "help".to_owned() } else { format!("help_{verb}") };
        insta::assert_snapshot!(name, folder.quintain(&args).expect(0).out);
    }
}
