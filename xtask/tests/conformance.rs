//! The suite of `cargo xtask subjects` against servers of which is known what they break, and against the subjects in C.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// The server of `broken.c`, built once. Like the C subjects it needs a C compiler.
static BROKEN: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("broken");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken.c");
    let flags = ["-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", "-pthread", "-o"];
    let status = Command::new("cc").args(flags).arg(&program).arg(source).status().expect("a C compiler");
    assert!(status.success(), "broken.c does not build");
    (folder, program)
});

fn suite(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("subjects").args(arguments).output().expect("xtask");
    let text = String::from_utf8(output.stdout.clone()).expect("its output is text");
    (output, text)
}

/// Runs the suite, or the cases named, against the broken server; the names of the cases that did not pass.
fn misses(defect: &str, cases: &[&str]) -> (bool, Vec<String>, String) {
    let command = format!("'{}' {defect} -p {{port}}", BROKEN.1.display());
    let mut arguments = vec!["--command", &command];
    arguments.extend(cases.iter().flat_map(|case| ["--case", case]));
    let (output, text) = suite(&arguments);
    let rows = text.lines().filter_map(|line| line.strip_prefix("    ")?.split(':').next());
    (output.status.success(), rows.map(str::to_owned).collect(), text.clone())
}

/// Looks at a few rows at a time: most of the time is spent waiting for answers that do not come.
fn for_each_row<T: Sync>(rows: &[T], look: impl Fn(&T) + Sync) {
    for few in rows.chunks(4) {
        std::thread::scope(|scope| few.iter().for_each(|row| drop(scope.spawn(|| look(row)))));
    }
}

#[test]
fn each_defect_fails_its_cases_and_no_other() {
    let rows: [(&str, &[&str]); 10] = [
        ("none", &[]),
        ("does-not-wrap", &["wrap", "partial"]),
        ("ends-at-a-wrapped-answer", &["wrap", "partial"]),
        ("sends-under-one-lock", &["slow-reader"]),
        ("dies-at-a-reset", &["reset"]),
        ("ignores-sigterm", &["sigterm", "sigterm-idle", "restart"]),
        ("waits-for-a-client", &["sigterm-idle"]),
        ("leaves-a-child", &["sigterm", "sigterm-idle", "zero", "restart"]),
        ("ignores-zero", &["zero"]),
        ("no-reuseaddr", &["restart"]),
    ];
    for_each_row(&rows, |(defect, expected)| {
        let (success, failed, text) = misses(defect, &[]);
        assert_eq!(failed, *expected, "{defect}: {text}");
        assert_eq!(success, expected.is_empty(), "{defect}: {text}");
    });
}

/// Defects that break nearly everything: the case that is meant for them must say what is wrong.
#[test]
fn each_case_says_what_is_wrong() {
    let rows = [
        ("adds-two", "answers", "the answer to word 1 (0x1) is 0x3 instead of 0x2"),
        ("host-byte-order", "answers", "the answer to word 1 (0x1) is 0x1000001 instead of 0x2"),
        ("does-not-start", "answers", "its last words: no such thing"),
        ("drops-partial-words", "partial", "no answer to word 1"),
        ("drops-pipelined-words", "pipelined", "no answer to word 2"),
        ("one-client-at-a-time", "connections", "connection 2 of 1000: no answer"),
        ("ends-with-the-client", "half-close", "no answer to word 1"),
        ("leaks-connections", "churn", "300 connections have left sockets open"),
    ];
    for_each_row(&rows, |(defect, case, says)| {
        let (success, failed, text) = misses(defect, &[case]);
        assert_eq!(failed, [*case], "{defect}: {text}");
        assert!(!success && text.contains(says), "{defect}: {text}");
    });
}

#[test]
fn no_nodelay() {
    // Where the kernel keeps the sockets of other processes to itself the case says `not checked`, which is no failure.
    let (success, failed, text) = misses("nagle", &["nodelay"]);
    assert_eq!(failed, ["nodelay"], "{text}");
    assert!(text.contains("TCP_NODELAY is not set") != success, "{text}");
    assert!(!success || text.contains("not checked"), "{text}");
}

#[test]
fn a_server_that_cannot_run_here_is_skipped_and_nothing_was_checked() {
    let (success, failed, text) = misses("says-it-cannot", &[]);
    assert!(!success && failed.is_empty(), "{text}");
    assert!(text.contains("skipped: cannot run here: no such thing"), "{text}");
}

/// The servers that build everywhere. `c-uring` may be skipped where the kernel or a sandbox refuses io_uring.
#[test]
fn the_subjects_in_c_conform() {
    let (output, text) = suite(&["c-threaded", "c-epoll", "c-uring"]);
    assert!(output.status.success(), "{text}");
    for name in ["c-threaded", "c-epoll"] {
        assert!(text.lines().any(|line| line.starts_with(name) && line.ends_with("conforms")), "{text}");
    }
}

#[test]
fn an_unknown_verb_ends_with_2() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("dance").output().expect("xtask");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown verb `dance`"));
}
