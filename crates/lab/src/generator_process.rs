//! Starts a generator as a child process, and builds the load specification of a trial.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use study::generator_messages::{Heard, Told};
use study::plan::LoadPlan;
use study::spec::{Arrivals, LoadSpec, SPEC_VERSION, Stop, Target, Warmup};

use crate::divide_cpus::Share;
use crate::json_lines::{Lines, Writer, parse};
use crate::load_side::{Engine, RemoteFacts, broken};
use crate::process_start_and_stop::{Child, Launch, Supervisor};
use crate::trial_end_reason::{End, saying};

const WARMUP_MAX: Duration = Duration::from_secs(120);
/// Maximum time for which a generator may leave messages unread.
const UNREAD_MAX: Duration = Duration::from_secs(15);

pub(crate) struct Generator {
    child: Child,
    input: Writer,
    output: Lines,
}

impl Generator {
    pub(crate) fn start(supervisor: &Supervisor, spec: &LoadSpec, cpus: &[u32], directory: &Path) -> io::Result<Self> {
        let words = ["quintain", "load", "--spec", "-"].map(str::to_owned);
        let mut child = supervisor.spawn(Launch { cpus, talk: true, ..Launch::new(&words, directory) })?;
        let lacks = |what| io::Error::other(format!("the generator has no {what}"));
        let input = Writer::new(child.input.take().ok_or_else(|| lacks("stdin"))?, UNREAD_MAX)?;
        let output = Lines::of(child.output.take().ok_or_else(|| lacks("stdout"))?);
        // Unless bodies are large, the write blocks only briefly, because a generator starts by reading.
        // Its error is ignored: if the generator ended early, its exit status says why.
        let _ = input.say(spec);
        Ok(Self { child, input, output })
    }

    pub(crate) fn lines(&mut self) -> Result<Vec<Vec<u8>>, String> {
        if let Some(lines) = self.output.read()? {
            return Ok(lines);
        }
        let exit = self.child.wait(Duration::from_secs(1));
        let exit = exit.map_or("it closed its output".to_owned(), |exit| exit.to_string());
        Err(format!("{exit} without a measurement{}", saying(&self.child.last_words())))
    }
}

impl Engine for Generator {
    fn handle(&self) -> BorrowedFd<'_> {
        self.output.handle()
    }

    fn hear(&mut self, readable: bool) -> Result<Vec<Told>, End> {
        let lines = if readable { self.lines() } else { Ok(Vec::new()) };
        lines.and_then(|lines| lines.iter().map(|line| parse(line)).collect()).map_err(broken)
    }

    /// Sends a message to the generator. Failures are ignored, because a generator that has ended needs no message.
    fn tell(&mut self, heard: Heard) -> Result<(), End> {
        let _ = self.input.say(&heard);
        Ok(())
    }

    fn end(&mut self, patience: Duration) -> Result<Option<RemoteFacts>, End> {
        self.child.wait(patience);
        self.child.kill();
        Ok(None)
    }
}

/// Time for which the generator polls before each intended send, ns; 0 in a closed loop or with shared CPUs.
pub(crate) fn spin_ns(has_own_cpus: bool, arrivals: Arrivals) -> u64 {
    if has_own_cpus && !matches!(arrivals, Arrivals::Closed { .. }) { 100_000 } else { 0 }
}

pub(crate) fn load_spec(load: &LoadPlan, target: Target, share: &Share, seed: u64) -> LoadSpec {
    let cpus = u32::try_from(share.generator.len()).unwrap_or(u32::MAX);
    // A worker without a client would only spin.
    let threads = load.threads.unwrap_or(cpus.min(load.clients)).max(1);
    LoadSpec {
        version: SPEC_VERSION,
        target,
        clients: load.clients,
        pipeline: load.pipeline,
        connection: load.connection,
        threads,
        cpus: share.generator.clone(),
        backend: load.backend,
        arrivals: load.arrivals,
        warmup: load.warmup,
        stop: load.stop,
        window_ns: load.window_ns,
        timeout_ns: load.timeout_ns,
        spin_ns: spin_ns(!share.shared && threads <= cpus, load.arrivals),
        seed,
        part: None,
        gate: false,
        shape: load.shape.clone(),
        log_one_in: u32::from(load.journey.as_ref().is_some_and(|plan| plan.keep_calls)),
    }
}

/// Maximum time that a generator may take: the time of the load plus `margin`.
pub(crate) fn patience(spec: &LoadSpec, margin: Duration) -> Duration {
    let warmup = match (spec.stop, spec.warmup) {
        // The priming round replaces the warm-up and has as many requests as any other round.
        (Stop::Volley { .. }, _) | (_, Warmup::Requests(_)) => WARMUP_MAX,
        (_, Warmup::DurationNs(ns) | Warmup::Steady { max_ns: ns }) => Duration::from_nanos(ns),
    };
    let stop = Duration::from_nanos(spec.stop.longest_ns()).saturating_add(Duration::from_nanos(spec.timeout_ns));
    warmup.saturating_add(stop).saturating_add(margin)
}
