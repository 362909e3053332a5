//! `--profile` with a real `perf`, or the message if `perf` is not installed.

use serde_json::Value;

use crate::common::Folder;

const STUDY: &str = r#"
question = "Where does its time go?"
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
"#;

fn run_json(folder: &Folder) -> Value {
    folder.quintain(&["report", "-f", "records"]).expect(0).json()
}

#[test]
#[ignore = "slow: profiles two servers"]
fn profile_is_stored_and_is_not_a_trial() {
    let folder = Folder::new();
    folder.write("mini.toml", STUDY);
    let ran = folder.quintain(&["run", "mini.toml", "--profile"]).expect(0);
    let kept = run_json(&folder);
    assert_eq!(kept["records"].as_array().unwrap().len(), 6, "the measured trials alone");
    let profiles = kept["run"]["cpu_profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 2);
    if let Some(problem) = profiles[0]["problem"].as_str().filter(|_| profiles[0]["samples"] == 0) {
        let known = ["is not installed", "is not permitted", "CONFIG_PERF_EVENTS"];
        assert!(known.iter().any(|text| problem.contains(text)), "{problem}");
        assert!(ran.out.contains(problem), "{}", ran.out);
        eprintln!("skipped: {problem}");
        return;
    }
    for profile in profiles {
        assert!(profile["samples"].as_u64().unwrap() > 0 && profile["rate_per_s"].as_f64().unwrap() > 0.0, "{profile}");
        assert!(profile["duration_ns"].as_u64().unwrap() >= 2_000_000_000, "trials of 150 ms have few samples");
        let stacks = profile["stacks"].as_array().unwrap();
        assert!(!stacks.is_empty() && stacks.len() <= 400);
    }
    for format in ["terminal", "md", "html"] {
        let out = folder.quintain(&["report", "-f", format]).expect(0).out;
        assert!(out.contains("CPU profiles") && out.contains("samples (c"), "{format}: {out}");
        assert!(out.contains("throughput while profiled"), "{format}: {out}");
    }
    let page = folder.quintain(&["report", "-f", "html"]).expect(0).out;
    assert!(page.contains("CPU profile: clients 1") && page.contains("class=\"k fb\""));
    folder.quintain(&["report", "--figures", "figures"]).expect(0);
    let names = std::fs::read_dir(folder.path().join("figures")).unwrap().map(|file| file.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().contains("flame-clients-")).count(), 4, "SVG and PNG each");
}

#[test]
fn missing_perf_is_reported_and_changes_no_results() {
    let folder = Folder::new();
    folder.write("mini.toml", STUDY);
    let output = folder.command(&["run", "mini.toml", "--profile"]).env("PATH", folder.path()).output().unwrap();
    let ran = crate::common::Ran::from(output).expect(0);
    let why = "`perf` is not installed";
    assert!(ran.err.contains(&format!("warning: no CPU profile: {why}")), "{}", ran.err);
    assert!(ran.out.contains(&format!("all design points: no profile: {why}")), "{}", ran.out);
    assert_eq!(run_json(&folder)["records"].as_array().unwrap().len(), 6);
}
