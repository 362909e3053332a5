//! Tests the program as a shell starts it. Building this test builds the binary for `.ci/run`.

use std::process::Command;

#[test]
fn every_experiment_has_help() {
    for name in ["blame", "cache-diff", "churn", "coverage", "generator", "hit-ratio", "planted"] {
        let output = Command::new(env!("CARGO_BIN_EXE_experiments")).args([name, "--help"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(&format!("Usage: experiments {name}")), "{name}: {text}");
    }
}
