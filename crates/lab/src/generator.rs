//! The generator as a process, which the lab talks with as [`study::seam`] says.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::ChildStdin;
use std::time::Duration;

use study::seam::{Heard, Told};
use study::spec::{LoadSpec, Stop, Warmup};

use crate::process::{Child, Launch, Supervisor};

/// The longest line taken, bytes: a histogram of every window of a long trial fits a hundred times.
const LINE_MAX: usize = 256 * 1024 * 1024;
/// How long a warm-up may take that is given in requests.
const WARMUP_MAX: Duration = Duration::from_secs(120);

/// A generator that runs.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: File,
    unread: Vec<u8>,
    /// How far `unread` was searched for the end of a line.
    searched: usize,
}

impl Generator {
    /// Starts it on `cpus` and tells it what to do.
    pub(crate) fn start(supervisor: &Supervisor, spec: &LoadSpec, cpus: &[u32], directory: &Path) -> io::Result<Self> {
        let words = ["quintain", "load", "--spec", "-"].map(str::to_owned);
        let launch = Launch { cpus, words: &words, directory, environment: &Default::default(), talk: true };
        let mut child = supervisor.spawn(&launch)?;
        let text = serde_json::to_vec(spec)?;
        let mut input = child.input.take();
        if let Some(input) = &mut input {
            // It reads before it does anything else, so this waits for no more than its start, and only where bodies are long; and one that
            // ended before it read says why elsewhere.
            let _ = input.write_all(&text);
        }
        let output = child.output.take().ok_or_else(|| io::Error::other("the generator has no stdout"))?;
        Ok(Self { child, input, output: OwnedFd::from(output).into(), unread: Vec::new(), searched: 0 })
    }

    /// Tells it that what the subject has used is read.
    pub(crate) fn tell_read(&mut self) {
        if let Some(mut input) = self.input.take()
            && let Ok(line) = serde_json::to_vec(&Heard::Read {})
        {
            // One that has ended meanwhile needs no word of it.
            let _ = input.write_all(&line);
        }
    }

    /// Readable when it has said something.
    pub(crate) fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Reads what is there, once; `None`: it will say no more. Waits when nothing is there.
    pub(crate) fn read(&mut self) -> Result<Option<Vec<Told>>, String> {
        let mut buffer = [0; 64 * 1024];
        let count = match self.output.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(format!("cannot read its output: {error}")),
        };
        self.unread.extend_from_slice(&buffer[..count]);
        let mut lines = Vec::new();
        while let Some(length) = self.unread[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..self.searched + length + 1).collect();
            self.searched = 0;
            if !line.trim_ascii().is_empty() {
                lines.push(parse(&line)?);
            }
        }
        self.searched = self.unread.len();
        if self.searched > LINE_MAX { Err("it wrote an overlong line".to_owned()) } else { Ok(Some(lines)) }
    }
}

fn parse(line: &[u8]) -> Result<Told, String> {
    serde_json::from_slice(line).map_err(|error| {
        let text: String = String::from_utf8_lossy(line).trim_end().chars().take(80).collect();
        format!("unexpected line in its output: `{text}` ({error})")
    })
}

/// After so long a generator that obeys `spec` has ended, whatever the subject does; `margin` is what it may take beside the load.
pub(crate) fn patience(spec: &LoadSpec, margin: Duration) -> Duration {
    let warmup = match spec.warmup {
        Warmup::DurationNs(ns) | Warmup::Steady { max_ns: ns } => Duration::from_nanos(ns),
        Warmup::Requests(_) => WARMUP_MAX,
    };
    let (warmup, stop) = match spec.stop {
        Stop::Duration { duration_ns } => (warmup, duration_ns),
        Stop::Requests { max_ns, .. } | Stop::Interval { max_ns, .. } => (warmup, max_ns),
        // The priming round, of as many requests as a round has, replaces the warm-up.
        Stop::Volley { max_ns, .. } => (WARMUP_MAX, max_ns),
    };
    let stop = Duration::from_nanos(stop).saturating_add(Duration::from_nanos(spec.timeout_ns));
    warmup.saturating_add(stop).saturating_add(margin)
}
