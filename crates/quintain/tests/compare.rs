//! `quintain compare` on real processes. Unit tests of `analysis::gate` and `stats::gate` cover its decisions.

use std::path::Path;
use std::process::Stdio;

use crate::common::{Folder, QUINTAIN, Ran, eventually, processes_with};
use serde_json::Value;

const SERVER: &str = "quintain serve pingpong -p {port}";
/// Flags for ten short pairs on any CPUs. The number of requests is fixed, because a timed trial may complete none.
const SHORT: [&str; 8] =
    ["--max-pairs", "10", "--warmup", "5ms", "--set", "load.stop.requests=100", "--set", "load.share_cpus=true"];

fn compare(folder: &Folder, args: &[&str]) -> Ran {
    folder.quintain(&[&["compare"], args].concat())
}

#[expect(clippy::disallowed_methods, reason = "these tests use git as users do")]
fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(words);
    let output = git.output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn repository(folder: &Folder) {
    git(folder.path(), &["init", "--quiet", "--initial-branch", "main"]);
    folder.write(".gitignore", "*.db*\n*.lock\n*.out\n");
    folder.write("server.sh", &format!("#!/bin/sh\nexec '{QUINTAIN}' serve pingpong \"$@\"\n"));
    for word in ["old", "new"] {
        folder.write("build.sh", &format!("echo {word} > built.out\n"));
        git(folder.path(), &["add", "."]);
        git(folder.path(), &["commit", "--quiet", "-m", word]);
    }
}

/// Counts the pairs and checks that each has one trial per side.
fn pairs(ran: &Ran) -> u64 {
    let json = ran.json();
    let records = json["records"].as_array().unwrap();
    let of = |point: u64| {
        records.iter().filter(|record| record["point"] == point && record["outcome"]["measured"].is_object()).count()
    };
    assert_eq!(of(0), of(1));
    of(0) as u64
}

/// Checks that the exit code and the verdict agree. A busy machine may prevent a verdict.
fn agrees(ran: &Ran) {
    let json = ran.json();
    let verdict = json["findings"]["gate"]["verdict"].as_str().unwrap();
    let expected = if verdict == "no-verdict" { 4 } else { 0 };
    assert_eq!(ran.code, Some(expected), "{verdict}: {}", ran.err);
}

#[test]
fn two_commands() {
    let folder = Folder::new();
    let files = ["--markdown", "pr.md", "--junit", "junit.xml", "--html", "page.html", "--json", "--null"];
    let ran = compare(&folder, &[&["--base", SERVER, "--head", SERVER], &SHORT[..], &files, &["pingpong://"]].concat());
    agrees(&ran);
    assert_eq!(pairs(&ran), 10);
    let gate = &ran.json()["findings"]["gate"];
    assert_eq!((gate["base"].as_str(), gate["tests"][0]["pairs"].as_u64()), (Some("base"), Some(10)), "{gate:#}");
    assert_eq!(gate["null"].as_array().unwrap().len(), 5, "the baseline is compared with itself by each metric");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("pr.md").contains("Against the baseline"), "{}", read("pr.md"));
    assert!(read("junit.xml").contains("latency_p50") && read("page.html").contains("<table"));
    let list = folder.quintain(&["runs"]).expect(0).out;
    assert!(list.contains("compare"), "{list}");
}

#[test]
#[ignore = "slow: two comparisons of builds"]
fn two_revisions() {
    let folder = Folder::new();
    repository(&folder);
    let revisions = ["--base-rev", "HEAD~1", "--head-rev", "main", "--build", "sh build.sh", "--command", SERVER];
    let ran = compare(&folder, &[&revisions[..], &SHORT, &["--rebuild-every", "4", "--json", "pingpong://"]].concat());
    agrees(&ran);
    assert_eq!(pairs(&ran), 10);
    let question = ran.json()["run"]["plan"]["question"].as_str().unwrap().to_owned();
    assert!(question.starts_with("Is head (main, ") && question.contains("base (HEAD~1, "), "{question}");
    assert_eq!(git(folder.path(), &["worktree", "list"]).lines().count(), 1, "no worktree is left");
    let history = folder.quintain(&["history", "compare", "--json"]).expect(0).json();
    let points = history["machines"][0]["points"].as_array().unwrap();
    for (point, revision) in points.iter().zip(["HEAD~1", "main"]) {
        let commit = git(folder.path(), &["rev-parse", "--short=12", revision]);
        assert_eq!(point["values"][0]["revision"].as_str(), Some(commit.trim()), "{point:#}");
    }
    let is_said = "is the same in both revisions, byte for byte";
    assert!(!ran.err.contains(is_said), "{}", ran.err);

    let script = ["--build", "chmod +x server.sh", "--command", "./server.sh -p {port}", "pingpong://"];
    let ran = compare(&folder, &[&revisions[..4], &script, &SHORT].concat());
    assert!(ran.err.contains(&format!("warning: `./server.sh` {is_said}")), "{}", ran.err);
}

#[test]
fn a_revision_that_does_not_build_or_a_server_that_crashes() {
    let folder = Folder::new();
    repository(&folder);
    let revisions = ["--base-rev", "HEAD~1", "--head-rev", "main", "--command", SERVER, "pingpong://"];
    let broken = [&revisions[..], &SHORT, &["--build", "sh -c 'exit 7'"]].concat();
    let ran = compare(&folder, &broken).expect(3);
    assert!(ran.err.contains("build failed") && ran.out.contains("build failed: exit 7"), "{}\n{}", ran.out, ran.err);
    let ran = compare(&folder, &[&broken[..], &["--undecided", "125"]].concat());
    assert_eq!(ran.code, Some(125), "git bisect skips it: {}", ran.err);
    let sides = ["--base", SERVER, "--head", "sh -c 'echo no luck {port} >&2; exit 1'", "pingpong://"];
    let ran = compare(&folder, &[&sides[..], &SHORT].concat()).expect(3);
    assert!(ran.out.contains("No verdict on head: head:") && ran.out.contains("no luck"), "{}", ran.out);
    assert_eq!(ran.err.matches("failed: head").count(), 1, "{}", ran.err);
}

#[test]
#[ignore = "slow: a comparison of builds, twice"]
fn killed_comparison_leaves_nothing_and_resumes() {
    let folder = Folder::new();
    repository(&folder);
    let revisions = ["--base-rev", "HEAD~1", "--head-rev", "main", "--build", "sh build.sh", "--command", SERVER];
    let flags = [&["compare"], &revisions[..], &SHORT, &["--max-time", "2m", "--json", "pingpong://"]].concat();
    let mut child = folder.command(&flags).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let finished = || {
        let ran = folder.quintain(&["report", "-f", "records"]);
        if ran.code == Some(0) { ran.json()["records"].as_array().map_or(0, Vec::len) } else { 0 }
    };
    let worktrees = || git(folder.path(), &["worktree", "list"]).lines().count();
    eventually("some trials", || (finished() >= 3).then_some(()));
    // Another process must neither resume the run nor touch its worktrees.
    let refused = folder.quintain(&[&flags[..], &["--resume"]].concat()).expect(2);
    assert!(refused.err.contains(&format!("process {}", child.id())), "{}", refused.err);
    assert_eq!(worktrees(), 3);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("no worktree", || (worktrees() == 1).then_some(()));
    eventually("no process", || processes_with(&folder.path().display().to_string()).is_empty().then_some(()));
    let kept = finished();
    let with = |from: &str, to: &str| {
        let flags = flags.iter().map(|flag| if *flag == from { to } else { flag }).collect::<Vec<_>>();
        folder.quintain(&[&flags[..], &["--resume"]].concat()).expect(2).err
    };
    let other = git(folder.path(), &["commit-tree", "HEAD^{tree}", "-m", "another"]);
    let other = with("main", other.trim());
    assert!(other.contains("has head") && other.contains("`--head-rev` is"), "{other}");
    assert!(with("2m", "1m").contains("other flags"));
    // `--resume` must not take the URL after it as the ID of a run.
    let (url, before) = flags.split_last().unwrap();
    let ran = folder.quintain(&[before, &["--resume", url]].concat());
    agrees(&ran);
    assert!(pairs(&ran) == 10 && ran.err.contains(&format!("{kept} trials done")), "{}", ran.err);
    assert_eq!(git(folder.path(), &["worktree", "list"]).lines().count(), 1);
}

#[test]
#[ignore = "slow: three comparisons of ten pairs"]
fn two_levels_of_a_study() {
    let folder = Folder::new();
    let study = "question = \"?\"\n[subject]\ncommand = \"quintain serve pingpong --threads {threads} -p {port}\"\n[load]\nprotocol = \"pingpong\"\nclients = \"{clients}\"\n\
                 share_cpus = true\nwarmup = \"5ms\"\nstop = { requests = 100 }\nwindow = \"10ms\"\n[factors]\nthreads = [1, 2, 4]\nclients = [1, 4]\n";
    folder.write("mine.toml", study);
    let ran = compare(&folder, &["mine.toml", "threads=1", "threads=2", "--max-pairs", "10", "--json"]);
    agrees(&ran);
    let gate = &ran.json()["findings"]["gate"];
    let tests = gate["tests"].as_array().unwrap().iter().map(|test| test["label"].as_str().unwrap());
    assert_eq!(tests.collect::<Vec<_>>(), [["clients 1"; 6], ["clients 4"; 6]].concat());
    assert_eq!(ran.json()["run"]["plan"]["study"], Value::from("compare-mine"));

    // These two design points have the form that `history` suggests.
    let both = ["compare", "mine.toml", "clients=1,threads=1", "clients=4,threads=2"];
    let ran = compare(&folder, &[&both[1..], &["--max-pairs", "10", "--json"]].concat());
    agrees(&ran);
    let json = ran.json();
    let question = "Is design point threads=2,clients=4 worse than threads=1,clients=1, in the study `mine`?";
    assert_eq!(json["run"]["plan"]["question"], Value::from(question));
    let loads = json["run"]["plan"]["points"].as_array().unwrap().iter().map(|point| &point["load"]["clients"]);
    assert_eq!(loads.collect::<Vec<_>>(), [1, 4]);
    let gate = &json["findings"]["gate"];
    assert_eq!((gate["base"].as_str(), gate["tests"].as_array().unwrap().len()), (Some("threads=1,clients=1"), 6));
    for (head, expected) in [
        ("clients=4,threads=3", "`3` is not a level of `threads`"),
        ("clients=4,treads=2", "levels of different factors"),
        ("clients=4,threads", "are not FACTOR=LEVEL"),
    ] {
        let ran = compare(&folder, &["mine.toml", "clients=1,threads=1", head]).expect(2);
        assert!(ran.err.contains(expected), "{head}: {}", ran.err);
    }
}

#[test]
fn a_gate_in_a_study() {
    let folder = Folder::new();
    let study = "question = \"Is it worse?\"\n[subject.variants.old]\ncommand = \"quintain serve pingpong -p {port}\"\n\
                 [subject.variants.new]\ncommand = \"quintain serve pingpong -p {port}\"\n[load]\nprotocol = \"pingpong\"\nclients = 2\n\
                 share_cpus = true\nwarmup = \"5ms\"\nstop = { requests = 100 }\nwindow = \"10ms\"\n[factors]\nversion = [\"old\", \"new\"]\n\
                 [gate]\nfail_if = \"latency_mean > 50 or throughput < 0.02\"\nundecided = \"fail\"\n[trials]\nstop = { max = 10 }\n";
    folder.write("gate.toml", study);
    let checked = folder.quintain(&["check", "gate.toml"]).expect(0).out;
    assert!(checked.contains("whether a version is worse than the baseline"), "{checked}");
    let ran = folder.quintain(&["run", "gate.toml", "--json"]);
    let verdict = ran.json()["findings"]["gate"]["verdict"].as_str().unwrap().to_owned();
    let expected = match verdict.as_str() {
        "not-worse" => 0,
        "no-verdict" => 4,
        _ => 1,
    };
    assert_eq!(ran.code, Some(expected), "{verdict}: {}", ran.err);
}

#[test]
fn wrong_use() {
    let folder = Folder::new();
    let sides = ["--base", SERVER, "--head", SERVER];
    let table: [(&[&str], &str); 16] = [
        (&["pingpong://"], "nothing to compare it with"),
        (&["http://127.0.0.1:80/", "--base", "a -p {port}", "--head", "b -p {port}"], "compare starts the servers"),
        (&["gopher:///", "--base", "a -p {port}", "--head", "b -p {port}"], "unknown scheme `gopher`"),
        (&["http:///", "--base", "a", "--head", "b -p {port}"], "has no `{port}`"),
        (&[&sides[..], &["pingpong://", "--metric", "latncy_mean"]].concat(), "did you mean `latency_mean`"),
        (&[&sides[..], &["pingpong://", "--fail-if", "throughput > 1.1"]].concat(), "would fail an improvement"),
        (&[&sides[..], &["pingpong://", "--fail-if", "p99 > 0.9"]].concat(), "as good as its baseline"),
        (&[&sides[..], &["pingpong://", "--max-pairs", "5"]].concat(), "must be 10 to 1,000, not `5`"),
        (&[&sides[..], &["pingpong://", "--allow-errors", "80%"]].concat(), "must be 0 % to 50 %, not `80%`"),
        (&[&sides[..], &["pingpong://", "-c", "0"]].concat(), "clients"),
        (&["pingpong://", "--base-rev", "a", "--head-rev", "b", "--command", SERVER], "not in a git repository"),
        (&["nothing", "server=a", "server=b"], "unknown study `nothing`"),
        (&["nothing", "server=a", "cores=b"], "levels of different factors"),
        (&["nothing", "server=a", "server=b", "-c", "5"], "`--clients` is not supported, as the study defines the run"),
        (
            &["nothing", "server=a", "server=b", "--server-cpus", "2"],
            "`--server-cpus` is not supported, as the study defines the run",
        ),
        (
            &["run-1", "run-2", "--html", "x.html"],
            "`--html` does not apply: two stored runs are shown, and no server is started",
        ),
    ];
    for (args, expected) in table {
        let ran = compare(&folder, args).expect(2);
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
    let ran =
        compare(&folder, &[&sides[..], &["http://a/", "--fail-if", "p99 > x", "--max-time", "0"]].concat()).expect(2);
    assert!(
        ["`x` is not a number", "compare starts", "--max-time"].iter().all(|text| ran.err.contains(text)),
        "{}",
        ran.err
    );

    let ran = compare(&folder, &[&sides[..], &["--fail-if", "p99 > x"]].concat()).expect(2);
    assert!(ran.err.contains("`x` is not a number") && ran.err.contains("0 operands"), "{}", ran.err);

    repository(&folder);
    let revisions = |base, head| ["pingpong://", "--base-rev", base, "--head-rev", head, "--command", SERVER];
    let ran = compare(&folder, &revisions("main", "HEAD")).expect(2);
    assert!(ran.err.contains("the same commit"), "{}", ran.err);
    let ran = compare(&folder, &revisions("mian", "HED")).expect(2);
    assert!(ran.err.contains("`mian` names no commit") && ran.err.contains("`HED`"), "{}", ran.err);
}
