//! Helpers for tests of the binary: temporary directories, commands, and servers that end with the test.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::new_without_default)]
#![expect(clippy::disallowed_methods, reason = "these tests start the binary as its users do")]

pub mod adapter_process;
pub mod scripted_http_servers;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const QUINTAIN: &str = env!("CARGO_BIN_EXE_quintain");

#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(QUINTAIN);
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        // quintain unpacks the built-in studies here.
        command.env("XDG_CACHE_HOME", self.path().join("cache"));
        command
    }

    /// Builds a command for a shell script. Its arguments are `$0`, `$1` and so on.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    pub fn quintain(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }
}

#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}:\n{}", self.out))
    }
}

pub struct Server {
    pub child: Child,
    pub port: u16,
    out: BufReader<std::process::ChildStdout>,
}

impl Server {
    pub fn start(args: &[&str]) -> Self {
        Self::spawn(Command::new(QUINTAIN).arg("serve").args(args))
    }

    /// Starts a server that prints `ready PORT`.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("ready ").unwrap_or_else(|| panic!("not ready: {line}")).parse().unwrap();
        Self { child, port, out }
    }

    pub fn url(&self) -> String {
        format!("pingpong://127.0.0.1:{}", self.port)
    }

    pub fn signal(&self, signal: &str) {
        signal_process(self.child.id(), signal);
    }

    pub fn end(mut self) -> String {
        self.signal("TERM");
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.out, &mut rest).unwrap();
        self.child.wait().unwrap();
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal_process(pid: u32, signal: &str) {
    let _ = Command::new("/bin/sh").args(["-c", &format!("kill -{signal} {pid}")]).stderr(Stdio::null()).status();
}

/// Retries until `holds` returns a value. Panics after a generous time limit.
#[track_caller]
pub fn eventually<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = holds() {
            return value;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "did not happen: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn processes_with(mark: &str) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
        line.contains(mark).then_some((pid, line))
    })
    .collect()
}
