//! `quintain verify` with servers that have one known defect each, and with the servers in C.
#![expect(clippy::disallowed_methods, reason = "these tests start servers as their users do")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{LazyLock, Mutex};

use crate::common::QUINTAIN;

/// Server from `broken.c`, built once. Building it requires a C compiler, as the servers in C do.
static BROKEN: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("broken");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken.c");
    let flags = ["-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", "-pthread", "-o"];
    let status = Command::new("cc").args(flags).arg(&program).arg(source).status().expect("a C compiler");
    assert!(status.success(), "broken.c does not build");
    (folder, program)
});

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("quintain is in crates/")
}

fn verify(protocol: &str, command: &str, cases: &[&str]) -> (Output, String) {
    let mut verify = Command::new(QUINTAIN);
    verify.args(["verify", "--protocol", protocol, "--command", command]).current_dir(root());
    if protocol == "http" {
        verify.args(["--cases", "subjects/http.toml"]);
    }
    let output = verify.args(cases.iter().flat_map(|case| ["--case", case])).output().expect("quintain");
    let text = String::from_utf8(output.stdout.clone()).expect("its output is text");
    (output, text)
}

/// Runs `cases`, or all if empty. Returns whether the server passed, the failed and skipped cases, and the output.
fn misses_of(protocol: &str, command: &str, cases: &[&str]) -> (bool, Vec<String>, String) {
    let (output, text) = verify(protocol, command, cases);
    let missed = |line: &str| {
        line.strip_prefix("  failed ")
            .or(line.strip_prefix("  skipped "))?
            .split(' ')
            .find(|word| !word.is_empty())
            .map(str::to_owned)
    };
    (output.status.success(), text.lines().filter_map(missed).collect(), text.clone())
}

fn misses(defect: &str, cases: &[&str]) -> (bool, Vec<String>, String) {
    misses_of("pingpong", &format!("'{}' {defect} -p {{port}}", BROKEN.1.display()), cases)
}

/// Runs cases like [`misses_of`] on `examples/broken_http.rs`. `around` is a shell command with `{}` for the server.
fn http_misses(around: &str, defect: &str, cases: &[&str]) -> (bool, Vec<String>, String) {
    misses_of("http", &around.replace("{}", &format!("{} {defect} -p {{port}}", example("broken_http"))), cases)
}

fn cache_misses(defect: &str, cases: &[&str]) -> (bool, Vec<String>, String) {
    misses_of("cache", &format!("{} {defect} -p {{port}}", example("broken_cache")), cases)
}

fn example(name: &str) -> String {
    let program = Path::new(QUINTAIN).with_file_name("examples").join(name);
    assert!(program.exists(), "{} is built by `cargo test -p quintain` without `--test`", program.display());
    program.display().to_string()
}

/// Checks four rows at a time, because they mostly wait for timeouts.
fn for_each_row<T: Sync>(rows: &[T], look: impl Fn(&T) + Sync) {
    let rows = Mutex::new(rows.iter());
    let next = || rows.lock().expect("nothing panics while it holds the lock").next();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| std::iter::from_fn(next).for_each(&look));
        }
    });
}

#[test]
#[ignore = "slow: all cases of eleven servers, many until a timeout"]
fn each_defect_fails_only_its_cases() {
    let rows: [(&str, &[&str]); 11] = [
        ("none", &[]),
        ("does-not-wrap", &["wrap"]),
        ("ends-at-a-wrapped-answer", &["wrap"]),
        ("sends-under-one-lock", &["slow-reader"]),
        ("dies-at-a-reset", &["reset"]),
        ("ignores-sigterm", &["sigterm", "sigterm-idle", "restart"]),
        ("waits-for-a-client", &["sigterm-idle"]),
        ("leaves-a-child", &["sigterm", "sigterm-idle", "zero", "restart"]),
        ("leaves-a-session", &["sigterm", "sigterm-idle", "zero", "restart"]),
        ("ignores-zero", &["zero"]),
        ("no-reuseaddr", &["restart"]),
    ];
    for_each_row(&rows, |(defect, expected)| {
        let (success, failed, text) = misses(defect, &[]);
        assert_eq!(failed, *expected, "{defect}: {text}");
        assert_eq!(success, expected.is_empty(), "{defect}: {text}");
    });
}

#[test]
fn finds_and_ends_processes_in_other_sessions() {
    let (_, failed, text) = misses("leaves-a-session", &["sigterm-idle"]);
    assert_eq!(failed, ["sigterm-idle"], "{text}");
    assert!(text.contains("its children did not end within") && text.contains("processes left: 1"), "{text}");
    let left = || {
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        let of_this = format!("{}\0leaves-a-session\0", BROKEN.1.display());
        lines.filter(|line| line.starts_with(of_this.as_bytes())).count()
    };
    // A killed process takes a moment to exit, and other tests may also have killed processes.
    let mut tries = 0;
    while left() > 0 {
        tries += 1;
        assert!(tries < 3_000, "{} are left", left());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Even if a defect fails nearly every case, the case written for it reports the reason.
#[test]
#[ignore = "slow: some cases wait until a timeout"]
fn each_case_reports_its_defect() {
    let rows = [
        ("adds-two", "answers", "bytes: expected `"),
        ("host-byte-order", "answers", "first difference at byte 0"),
        ("drops-partial-words", "partial", "nothing happened for 5s"),
        ("drops-pipelined-words", "pipelined", "no response to word 2"),
        ("one-client-at-a-time", "connections", "connection 2 of 1000: no response"),
        ("ends-with-the-client", "half-close", "request 1 of 1001: no response"),
        ("leaks-connections", "churn", "300 connections have left sockets open"),
    ];
    for_each_row(&rows, |(defect, case, says)| {
        let (success, failed, text) = misses(defect, &[case]);
        assert_eq!(failed, [*case], "{defect}: {text}");
        assert!(!success && text.contains(says), "{defect}: {text}");
    });
    let (success, failed, text) = misses("does-not-start", &["answers"]);
    assert!(!success && failed.is_empty() && text.contains("last output: no such thing"), "{text}");
}

#[test]
#[ignore = "slow: all cases of fourteen servers, many until a timeout"]
fn each_http_defect_fails_only_its_cases() {
    let rows: [(&str, &str, &[&str]); 14] = [
        ("{}", "none", &[]),
        ("{}", "cuts-bytes", &["bytes", "slow-reader"]),
        ("{}", "lies-to-head", &["head"]),
        ("{}", "sends-a-body-to-head", &["head"]),
        ("{}", "knows-everything", &["unknown"]),
        ("{}", "closes-at-404", &["pipelined", "unknown"]),
        ("{}", "reads-bodies-as-requests", &["body"]),
        ("{}", "ignores-close", &["close"]),
        ("{}", "keeps-http-1.0", &["http-1.0"]),
        ("{}", "takes-garbage", &["garbage"]),
        ("{}", "sends-under-one-lock", &["slow-reader"]),
        ("{}", "no-reuseaddr", &["restart"]),
        ("sh -c 'trap \"\" TERM; exec {}'", "none", &["sigterm", "sigterm-idle", "restart"]),
        ("sh -c 'sleep 1000 & exec {}'", "none", &["sigterm", "sigterm-idle", "restart"]),
    ];
    for_each_row(&rows, |(around, defect, expected)| {
        let (success, failed, text) = http_misses(around, defect, &[]);
        assert_eq!(failed, *expected, "{around} {defect}: {text}");
        assert_eq!(success, expected.is_empty(), "{around} {defect}: {text}");
    });
}

#[test]
#[ignore = "slow: some cases wait until a timeout"]
fn each_http_case_reports_its_defect() {
    let rows = [
        ("another-body", "answers", "body: expected `test`, received `tset`"),
        ("another-status", "answers", "status: expected `200`, received `201`"),
        ("sends-chunks", "answers", "no header `Content-Length`"),
        ("sends-too-much", "answers", "a response begins with an empty line"),
        ("cuts-bytes", "bytes", "expected `65536`, received `1000`"),
        ("closes-in-silence", "keep-alive", "request 2 of 1000: no "),
        ("one-answer-a-read", "pipelined", "request 2 of 16: no valid response: nothing happened"),
        ("answers-backwards", "pipelined", "of 16: status, unlike that of"),
        ("sends-a-body-to-head", "head", "`testHTTP/1.1 200 Whatever` is not a status line"),
        ("lies-to-head", "head", "unlike that of GET: expected `4`, received `0`"),
        ("closes-at-404", "unknown", "request 2 of 2: no response: the connection was closed"),
        ("knows-everything", "unknown", "received `200`"),
        ("reads-bodies-as-requests", "body", "request 2 of 6: status, unlike that of GET / alone"),
        ("drops-partial-requests", "partial", "cut after"),
        ("answers-early", "partial", "cut after"),
        ("waits-for-more", "next-piece", "nothing happened"),
        ("ignores-close", "close", "request 1 of 5: the connection was not closed"),
        ("keeps-http-1.0", "http-1.0", "request 1 of 2: the connection was not closed"),
        ("takes-garbage", "garbage", "status: expected `400`, received `200`"),
        ("hangs-at-garbage", "garbage", "request 1 of 7: no valid response: nothing happened"),
        ("dies-of-garbage", "garbage", "cannot connect"),
        (
            "one-client-at-a-time",
            "two-clients",
            "beside a client that has only begun: no valid response: nothing happened",
        ),
        ("one-client-at-a-time", "connections", "connection 2 of 1000: no valid response: nothing happened"),
        ("dies-at-a-reset", "reset", "after a reset: "),
        ("leaks-connections", "churn", "300 connections have left sockets open"),
    ];
    for_each_row(&rows, |(defect, case, says)| {
        let (success, failed, text) = http_misses("{}", defect, &[case]);
        assert_eq!(failed, [*case], "{defect}: {text}");
        assert!(!success && text.contains(says), "{defect}: {text}");
    });
}

/// Covers `answers` and the cases of caches that need more than a table of requests and responses.
#[test]
#[ignore = "slow: some cases wait until a timeout"]
fn each_cache_case_reports_its_defect() {
    let cases = ["answers", "large", "many-keys", "pipelined", "slow-reader"];
    let rows = [
        ("none", "", ""),
        ("deletes-anything", "answers", "DELETED"),
        ("keeps-outdated", "large", "cache\\r\\nVALUE large 0"),
        ("does-not-swallow", "large", "first difference at byte 42"),
        ("cuts-values", "large", "VALUE large 0 65536"),
        ("few-keys", "many-keys", "\\r\\nEND"),
        ("answers-backwards", "pipelined", "first difference at byte"),
        ("one-lock", "slow-reader", "beside a client that does not read, client "),
    ];
    for_each_row(&rows, |(defect, case, says)| {
        let chosen = if case.is_empty() { &cases[..] } else { std::slice::from_ref(case) };
        let (success, failed, text) = cache_misses(defect, chosen);
        let expected: &[&str] = if case.is_empty() { &[] } else { std::slice::from_ref(case) };
        assert_eq!(failed, expected, "{defect}: {text}");
        assert_eq!(success, case.is_empty(), "{defect}: {text}");
        assert!(text.contains(says), "{defect}: {text}");
    });
    let (success, failed, text) = cache_misses("none", &["text", "resp", "split"]);
    assert!(!success && failed == ["text", "resp", "split"], "{text}");
    assert!(text.contains("this server does not speak Resp"), "{text}");
    assert!(text.contains("a key of 251") && text.contains("cut after 1 byte: "), "{text}");
}

#[test]
fn skips_http_cases_that_do_not_apply() {
    let (success, failed, text) = http_misses("{}", "has-no-bytes", &["bytes", "unknown"]);
    assert!(success && failed == ["bytes"] && text.contains("the first response has the status 404"), "{text}");
    let (success, failed, text) = http_misses("{}", "says-it-cannot", &["answers"]);
    assert!(!success && failed.is_empty() && text.contains("cannot run here: no such thing"), "{text}");
    let (success, failed, text) = http_misses("{}", "nagle", &["nodelay"]);
    assert_eq!(failed, ["nodelay"], "{text}");
    assert!(text.contains("TCP_NODELAY is not set") != success, "{text}");
}

#[test]
fn detects_missing_tcp_nodelay() {
    // If the kernel hides the sockets of other processes, the case is skipped, which is not a failure.
    let (success, failed, text) = misses("nagle", &["nodelay"]);
    assert_eq!(failed, ["nodelay"], "{text}");
    assert!(text.contains("TCP_NODELAY is not set") != success, "{text}");
    assert!(!success || text.contains("skipped"), "{text}");
}

#[test]
fn skips_servers_that_cannot_run_here() {
    let (success, failed, text) = misses("says-it-cannot", &[]);
    assert!(!success && failed.is_empty(), "{text}");
    assert!(text.contains("cannot run here: no such thing"), "{text}");
}

#[test]
#[ignore = "slow: all cases of three servers"]
fn c_subjects_conform() {
    for name in ["c-threaded", "c-epoll", "c-uring"] {
        let made = Command::new("make").args(["-C", &format!("subjects/{name}"), name]).current_dir(root()).output();
        assert!(made.expect("make").status.success(), "{name} does not build");
        let (output, text) = verify("pingpong", &format!("subjects/{name}/{name} -p {{port}}"), &[]);
        // The kernel or a sandbox may refuse io_uring.
        let is_refused = name == "c-uring" && text.contains("cannot run here");
        assert!(output.status.success() || is_refused, "{name}: {text}");
    }
}
