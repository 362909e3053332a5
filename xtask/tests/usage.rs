//! Tests the program as a shell starts it. Building this test builds the binary for `.ci/run`.

use std::process::Command;

#[test]
fn an_unknown_command_prints_the_usage() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("tidi").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: cargo xtask tidy"));
}
