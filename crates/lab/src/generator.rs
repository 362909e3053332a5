//! The generator as a process, which the lab talks with as [`study::seam`] says.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use study::seam::Heard;
use study::spec::{LoadSpec, Stop, Warmup};

use crate::end::saying;
use crate::lines::{Lines, Writer};
use crate::process::{Child, Launch, Supervisor};

/// How long a warm-up may take that is given in requests.
const WARMUP_MAX: Duration = Duration::from_secs(120);
/// How long a generator may leave what it is told unread.
const UNREAD_MAX: Duration = Duration::from_secs(15);

/// A generator that runs.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) child: Child,
    input: Option<Writer>,
    output: Lines,
}

impl Generator {
    /// Starts it on `cpus` and tells it what to do.
    pub(crate) fn start(supervisor: &Supervisor, spec: &LoadSpec, cpus: &[u32], directory: &Path) -> io::Result<Self> {
        let words = ["quintain", "load", "--spec", "-"].map(str::to_owned);
        let launch = Launch { cpus, words: &words, directory, environment: &Default::default(), talk: true };
        let mut child = supervisor.spawn(&launch)?;
        let lacks = |what| io::Error::other(format!("the generator has no {what}"));
        let input = Writer::new(child.input.take().ok_or_else(|| lacks("stdin"))?, UNREAD_MAX)?;
        let output = Lines::of(child.output.take().ok_or_else(|| lacks("stdout"))?);
        // It reads before it does anything else, so this waits for no more than its start, and only where bodies are long; and one that
        // ended before it read says why elsewhere.
        let _ = input.say(spec);
        Ok(Self { child, input: Some(input), output })
    }

    /// One that has ended meanwhile needs no word.
    pub(crate) fn tell(&mut self, heard: Heard) {
        if let Some(input) = &self.input {
            let _ = input.say(&heard);
        }
        // It hears nothing after this.
        if heard == (Heard::Read {}) {
            self.input = None;
        }
    }

    /// Readable when it has said something.
    pub(crate) fn output(&self) -> BorrowedFd<'_> {
        self.output.handle()
    }

    /// The lines that it has said, as they are; the error says how it ended.
    pub(crate) fn lines(&mut self) -> Result<Vec<Vec<u8>>, String> {
        if let Some(lines) = self.output.read()? {
            return Ok(lines);
        }
        let exit = self.child.wait(Duration::from_secs(1));
        let exit = exit.map_or("it closed its output".to_owned(), |exit| exit.to_string());
        Err(format!("{exit} without a measurement{}", saying(&self.child.last_words())))
    }

    /// Ends it: at once, or where it has done, after so long.
    pub(crate) fn end(&mut self, patience: Duration) {
        self.child.wait(patience);
        self.child.kill();
    }
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
