//! `quintain runs` and `quintain history`: listing, exporting, removing, and comparing by commit.

use crate::common::{Folder, QUINTAIN, Ran};
use serde_json::Value;

/// Study with two trials of one point, enough for an interval.
const STUDY: &str = r#"
question = "How fast?"
[subject]
command = "quintain serve pingpong -p {port}"
[load]
protocol = "pingpong"
clients = "{clients}"
share_cpus = true
warmup = "10ms"
stop = "60ms"
window = "10ms"
[factors]
clients = [1]
[trials]
stop = { min = 2, max = 2 }
"#;

fn git(folder: &Folder, words: &str) {
    let script = format!("git -c user.name=t -c user.email=t@example.org -c commit.gpgsign=false {words}");
    let done = folder.shell(&script).output().unwrap();
    assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Runs a study at two commits, and once with uncommitted changes.
fn three_runs() -> Folder {
    let folder = Folder::new();
    folder.write("mini.toml", STUDY);
    git(&folder, "init -q");
    for change in ["one", "two"] {
        folder.write("server.c", change);
        git(&folder, "add mini.toml server.c");
        git(&folder, &format!("commit -q -m {change}"));
        folder.quintain(&["run", "mini.toml"]).expect(0);
    }
    folder.write("server.c", "three");
    folder.quintain(&["run", "mini.toml", "--quick"]).expect(0);
    folder
}

fn runs(folder: &Folder, args: &[&str]) -> Vec<Value> {
    let ran = folder.quintain(&[&["runs", "--json"], args].concat()).expect(0);
    ran.json().as_array().unwrap().clone()
}

fn refused(folder: &Folder, args: &[&str], expected: &str) {
    let Ran { err, .. } = folder.quintain(args).expect(2);
    assert!(err.contains(expected), "{args:?}: {err}\n  expected {expected}");
}

#[test]
fn runs_are_listed_exported_and_removed() {
    let folder = three_runs();
    let all = runs(&folder, &[]);
    let id = |at: usize| all[at]["id"].as_str().unwrap();
    let count = |args: &[&str]| runs(&folder, args).len();
    assert_eq!((all.len(), count(&["--study", "mini"]), count(&["--study", "other"])), (3, 3, 0));
    assert_eq!((count(&["--state", "complete"]), count(&["--state", "running"])), (3, 0));
    assert_eq!((count(&["--since", "1h"]), count(&["--since", "2999-01-01"])), (3, 0));
    let host = all[0]["host"].as_str().unwrap();
    assert_eq!((count(&["--host", host]), count(&["--host", "elsewhere"])), (3, 0));
    assert!(all.iter().all(|run| run["bytes"].as_u64().unwrap() > 1_000), "{all:?}");
    let listed = folder.quintain(&["runs", "--study", "other"]).expect(0);
    assert!(
        listed.out.is_empty() && listed.err.starts_with("0 runs of 3, 0 B; `quintain.db` takes "),
        "{}",
        listed.err
    );

    let history = folder.quintain(&["history", "mini.toml", "--html", "page.html"]).expect(0);
    assert!(history.out.starts_with("mini: mean latency over runs\n3 runs on 1 machine; "), "{}", history.out);
    assert!(history.out.contains("A step is not a verdict") && history.out.contains("quick"), "{}", history.out);
    assert!(std::fs::read_to_string(folder.path().join("page.html")).unwrap().contains("<svg"));
    let json = folder.quintain(&["history", "mini", "throughput", "--json"]).expect(0).json();
    let machine = &json["machines"][0];
    let revisions = machine["runs"].as_array().unwrap().iter().map(|run| run["revision"].as_str().unwrap());
    let revisions = revisions.collect::<Vec<_>>();
    assert!(revisions[0] != revisions[1] && revisions[2] == format!("{}-dirty", revisions[1]), "{revisions:?}");
    assert_eq!(
        (machine["points"][0]["values"].as_array().unwrap().len(), &json["metric"]["name"]),
        (3, &"throughput".into())
    );
    assert!(machine["runs"][0]["speed"].is_f64(), "{machine}");

    folder.quintain(&["runs", "export", id(0), "--out", "run.gz"]).expect(0);
    let there = ["--store", "there.db"];
    let imported = folder.quintain(&[&["runs", "import", "run.gz"][..], &there].concat()).expect(0);
    assert_eq!(imported.out.trim(), id(0));
    let report = |store: &[&str]| {
        folder.quintain(&[&["report", id(0), "--format", "csv-trials"][..], store].concat()).expect(0).out
    };
    assert_eq!(report(&there), report(&[]), "the same numbers");
    let listed = folder.quintain(&[&["runs"][..], &there].concat()).expect(0).out;
    assert!(listed.contains(&format!("{host} (imported)")), "{listed}");
    let shown = folder.quintain(&[&["report", id(0)][..], &there].concat()).expect(0).out;
    assert!(shown.contains(", imported 2"), "{shown}");
    refused(&folder, &["runs", "import", "run.gz"], "already exists in `quintain.db`");
    // A file of whole pages shrinks only if enough is removed.
    let copies = ["theirs", "copy-1", "copy-2", "copy-3", "copy-4", "copy-5"];
    for copy in copies {
        folder.quintain(&["runs", "import", "run.gz", "--as", copy]).expect(0);
    }
    assert_eq!(runs(&folder, &[]).len(), 9);

    let before = std::fs::metadata(folder.path().join("quintain.db")).unwrap().len();
    let dry = folder.quintain(&["runs", "rm", "theirs", id(1), "--dry-run"]).expect(0);
    assert!(dry.out.contains("would remove theirs  ") && runs(&folder, &[]).len() == 9, "{}", dry.out);
    let removed = folder.quintain(&[&["runs", "rm", "theirs", id(1)][..], &copies].concat()).expect(0);
    assert!(
        removed.out.contains(&format!("removed {}  2 trials, ", id(1))) && removed.err.contains(", now "),
        "{}",
        removed.err
    );
    let after = std::fs::metadata(folder.path().join("quintain.db")).unwrap().len();
    assert!(after < before && runs(&folder, &[]).len() == 2, "{before} {after}");
}

/// Two runs leave a difference undecided. The suggested command must work and use an equal load.
#[test]
#[ignore = "slow: three comparisons"]
fn suggested_comparison_uses_the_same_load() {
    let folder = Folder::new();
    let loads = [
        "protocol = \"pingpong\"\nthink = \"1ms\"\nstop = { requests = 20 }\nwarmup = { requests = 5 }\nbackend = \"epoll\"",
        "protocol = \"http\"\nrate = 500\narrivals = \"constant\"\nstop = \"40ms\"\nwarmup = \"5ms\"\npath = \"/plaintext\"\nexpect_body = \"Hello, World!\"\n\
         method = \"POST\"\nheaders = { X-It = \"is\" }\nbody = \"a b\"\nexpect_status = [200, 405]\npipeline = 2\nthreads = 2",
        "protocol = \"http\"\nstop = \"40ms\"\nwarmup = \"5ms\"\nconnection = \"per-request\"",
    ];
    for load in loads {
        let kind = if load.contains("pingpong") { "pingpong" } else { "http" };
        let run = |threads: u32| {
            let study = format!(
                "question = \"?\"\n[subject]\ncommand = \"quintain serve {kind} --threads {threads} -p {{port}}\"\ncpus = 2\n\
                 [factors]\nclients = [2]\n[trials]\nstop = {{ min = 2, max = 2 }}\n[load]\nclients = \"{{clients}}\"\n\
                 window = \"10ms\"\nshare_cpus = true\n{load}\n"
            );
            folder.write("mine.toml", &study);
            let run = folder.quintain(&["run", "mine.toml", "--json"]).json()["run"].clone();
            (run["id"].as_str().unwrap().to_owned(), run["plan"]["points"][0]["load"].clone())
        };
        let ((one, wanted), (other, _)) = (run(1), run(2));
        let found = folder.quintain(&["compare", &one, &other, "--json"]).expect(0).json();
        let command = found["command"].as_str().unwrap_or_else(|| panic!("{found}"));
        let words = command.strip_prefix("quintain").unwrap();
        let flags = "--max-time 1s --set load.share_cpus=true --json";
        let ran = Ran::from(folder.shell(&format!("'{QUINTAIN}' {words} {flags}")).output().unwrap());
        let made = &ran.json()["run"]["plan"]["points"][0]["load"];
        for key in [
            "protocol",
            "clients",
            "threads",
            "arrivals",
            "stop",
            "warmup",
            "pipeline",
            "connection",
            "backend",
            "http",
        ] {
            assert_eq!(made[key], wanted[key], "{command}: {key}");
        }
        let printed =
            folder.shell(&format!("'{QUINTAIN}' {words} {flags} --print-study > printed.toml")).status().unwrap();
        assert!(printed.success(), "{command}");
        let again = folder.quintain(&["run", "printed.toml", "--json"]);
        assert_eq!(again.json()["run"]["plan"]["points"][0]["load"], *made, "{command}");
    }
}

#[test]
fn wrong_use_is_reported_with_alternatives() {
    let folder = Folder::new();
    refused(&folder, &["history", "mini"], "no store at `quintain.db`");
    refused(&folder, &["runs", "import", "nothing.gz"], "cannot read `nothing.gz`");
    assert!(!folder.path().join("quintain.db").exists(), "no store is created for a missing run");
    folder.write("no.gz", "PK something else");
    refused(&folder, &["runs", "import", "no.gz"], "cannot import `no.gz`: not a run file");
    refused(&folder, &["runs", "import", "no.gz", "--as", "a b"], "invalid name of a run `a b`");
    refused(&folder, &["runs", "import", "."], "`.` is a directory");
    refused(&folder, &["runs", "--since", "soon"], "invalid time `soon` for `--since`");
    refused(&folder, &["runs", "--study", "x", "rm", "y"], "name the runs");
    refused(&folder, &["runs", "rm"], "<RUN>");
    refused(
        &folder,
        &["runs", "rm", "nothing", "neither"],
        "no run `nothing` in `quintain.db`, which has no runs\nerror: no run `neither`",
    );
    refused(&folder, &["runs", "export", "nothing"], "no run `nothing`");
    refused(&folder, &["history", "mini", "latency_p98"], "did you mean `latency_p9");
    refused(&folder, &["history", "mini", "--point", "clients"], "invalid `--point clients`: expected FACTOR=LEVEL");
    refused(&folder, &["history", "mini"], "no run of study `mini` in `quintain.db`\n  = help: it has no runs");
}
