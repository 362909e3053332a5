//! One trial: a fresh subject, a generator, a record. Whatever goes wrong leaves a record too.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use study::plan::{LoadPlan, Plan, Point};
use study::record::{
    Failure, FailureKind, Measurement, NetworkCounters, Outcome, RECORD_VERSION, Record, Step, SubjectUse,
};
use study::spec::{Arrivals, LoadSpec, SPEC_VERSION};

use crate::build;
use crate::generator::{self, Generator};
use crate::hooks::{Live, Options, Phase};
use crate::process::{Child, Launch, Supervisor, wait_readable};
use crate::ready::{self, NotReady};
use crate::sample::{Reading, Sampler};
use crate::topology::{self, Share};
use crate::{clock, network, target, words};

/// The open loop polls for so long before each intended send, where the generator has its processors for itself, ns.
const SPIN_NS: u64 = 100_000;
/// Starts of a subject whose free port was taken by somebody else before it listened.
const PORT_TRIES: u32 = 3;
/// The longest wait before we look whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// Which trial of what.
pub(crate) struct Trial<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) point: usize,
    pub(crate) block: u32,
    pub(crate) order: u32,
    /// What is asked of it beyond the plan.
    pub(crate) step: Option<Step>,
    pub(crate) revision: Option<String>,
    pub(crate) options: &'a Options,
    pub(crate) supervisor: &'a Supervisor,
    pub(crate) interrupted: &'a dyn Fn() -> bool,
    /// How long the generator may take beside the load itself: to start, to connect, to write what it measured.
    pub(crate) margin: Duration,
}

/// Why a trial has no measurement.
enum End {
    /// For the record.
    Failed(Failure),
    /// We were asked to end: no record.
    Interrupted,
}

fn failed(kind: FailureKind, message: impl Into<String>) -> End {
    End::Failed(Failure { kind, message: message.into() })
}

impl Trial<'_> {
    /// Carries it out; `None`: interrupted, and nothing is left of it. `say` is told of phases and what the generator says.
    pub(crate) fn run(&self, say: &mut dyn FnMut(Phase, Option<&Live>)) -> Option<Record> {
        let begun = clock::now();
        let mut record = Record {
            version: RECORD_VERSION,
            point: self.point,
            factors: self.point().factors.clone(),
            block: self.block,
            order: self.order,
            seed: self.plan.trial_seed(self.block),
            step: self.step,
            started: clock::rfc3339(),
            elapsed_ns: 0,
            ready_ns: None,
            idle: self.options.idle,
            outcome: Outcome::Failed(Failure { kind: FailureKind::Start, message: String::new() }),
            subject: SubjectUse { revision: self.revision.clone(), ..SubjectUse::default() },
            generator_cpus: Vec::new(),
            cpus_shared: false,
            network: NetworkCounters::default(),
            verdict: None,
            warnings: Vec::new(),
        };
        record.outcome = match self.measure(&mut record, say) {
            Ok(measurement) => Outcome::Measured(measurement),
            Err(End::Failed(failure)) => Outcome::Failed(failure),
            Err(End::Interrupted) => return None,
        };
        record.elapsed_ns = clock::nanos(clock::now() - begun);
        Some(record)
    }

    fn point(&self) -> &Point {
        &self.plan.points[self.point]
    }

    fn measure(&self, record: &mut Record, say: &mut dyn FnMut(Phase, Option<&Live>)) -> Result<Measurement, End> {
        say(Phase::Start, None);
        let share = share(self.point(), self.options).map_err(|text| failed(FailureKind::Start, text))?;
        record.subject.cpus.clone_from(&share.subject);
        record.generator_cpus.clone_from(&share.generator);
        record.cpus_shared = share.shared;

        let (mut subject, started) = self.start(&share, record)?;
        let mut sampler = Sampler::new(Path::new("/proc"), subject.pid(), started);
        let own_net = Path::new("/proc/self/net");
        let subject_net = format!("/proc/{}/net", subject.pid());
        let before = network::read(Path::new(&subject_net));

        let mut readings = Readings::default();
        let result = self.load(record, &share, &mut subject, &mut sampler, &mut readings, say);

        // A subject that has ended has no folder left; ours has the same counters, unless it had a network of its own.
        let after = network::read(Path::new(&subject_net)).or_else(|| network::read(own_net));
        match before.zip(after) {
            Some((before, after)) => record.network = network::between(before, after),
            None => record.warnings.push("the counters of the network stack could not be read".to_owned()),
        }
        if matches!(result, Err(End::Interrupted)) {
            return result;
        }
        say(Phase::Stop, None);
        let exit = subject.stop(Duration::from_nanos(self.point().subject.stop_timeout_ns));
        record.subject.exit = Some(exit);
        record.subject.stderr_tail = subject.last_words();
        sampler.finish(readings.begin.zip(readings.end), &mut record.subject);
        result
    }

    /// A subject whose port answers, and when it was started.
    fn start(&self, share: &Share, record: &mut Record) -> Result<(Child, Instant), End> {
        let plan = &self.point().subject;
        let start_failed = |text: String| failed(FailureKind::Start, text);
        let words = words::split(&plan.command).map_err(start_failed)?;
        let directory = self.options.directory.join(plan.directory.as_deref().unwrap_or(""));
        let mut tries = 1;
        loop {
            let port = match plan.port {
                Some(port) if !ready::is_free(port) => {
                    return Err(start_failed(format!("port {port} is in use by another process")));
                }
                Some(port) => port,
                None => ready::free_port().map_err(|error| start_failed(format!("there is no free port: {error}")))?,
            };
            let words: Vec<String> = words.iter().map(|word| word.replace("{port}", &port.to_string())).collect();
            record.subject.command.clone_from(&words);
            record.subject.port = Some(port);
            let launch = Launch {
                cpus: &share.subject,
                words: &words,
                directory: &directory,
                environment: &plan.environment,
                talk: false,
            };
            let started = clock::now();
            let mut subject = self
                .supervisor
                .spawn(&launch)
                .map_err(|error| start_failed(format!("`{}` cannot be started: {error}", plan.command)))?;
            let timeout = Duration::from_nanos(plan.ready_timeout_ns);
            let reason = match ready::wait(&mut subject, port, timeout, self.interrupted) {
                Ok(()) => {
                    record.ready_ns = Some(clock::nanos(clock::now() - started));
                    return Ok((subject, started));
                }
                Err(reason) => reason,
            };
            let end = match reason {
                NotReady::Interrupted => return Err(End::Interrupted),
                NotReady::Exited(exit) => {
                    let last_words = subject.last_words();
                    let taken = last_words.contains("in use") || last_words.contains("EADDRINUSE");
                    if plan.port.is_none() && taken && tries < PORT_TRIES {
                        tries += 1;
                        continue;
                    }
                    match build::unrunnable(&last_words) {
                        Some(reason) => failed(FailureKind::Unrunnable, reason),
                        None => start_failed(format!(
                            "it ended ({exit}) before port {port} answered{}",
                            saying(&last_words)
                        )),
                    }
                }
                NotReady::Foreign => {
                    let text = format!(
                        "{} answers, but it is another process that listens there: the subject did not within {timeout:?}",
                        ready::address(port)
                    );
                    failed(FailureKind::NotReady, text)
                }
                NotReady::TimedOut => {
                    let text = format!("nothing listened on {} within {timeout:?}", ready::address(port));
                    failed(FailureKind::NotReady, text)
                }
            };
            record.subject.exit = Some(subject.stop(Duration::from_nanos(plan.stop_timeout_ns)));
            record.subject.stderr_tail = subject.last_words();
            return Err(end);
        }
    }

    /// Loads `subject` until the generator has its measurement, or something has gone wrong.
    fn load(
        &self,
        record: &Record,
        share: &Share,
        subject: &mut Child,
        sampler: &mut Sampler,
        readings: &mut Readings,
        say: &mut dyn FnMut(Phase, Option<&Live>),
    ) -> Result<Measurement, End> {
        let spec = load_spec(
            &self.point().load.at(self.step),
            share,
            record.subject.port.unwrap_or(0),
            record.seed,
            &self.options.directory,
        )
        .map_err(|text| failed(FailureKind::Generator, text))?;
        let mut generator = Generator::start(self.supervisor, &spec, &share.generator, &self.options.directory)
            .map_err(|error| failed(FailureKind::Generator, format!("the generator cannot be started: {error}")))?;
        say(Phase::Warmup, None);
        let patience = generator::patience(&spec, self.margin);
        let deadline = clock::now() + patience;
        let mut watch = Watch::new(Duration::from_nanos(spec.timeout_ns));
        let result = loop {
            if (self.interrupted)() {
                return Err(End::Interrupted);
            }
            sampler.tick();
            let now = clock::now();
            if now >= deadline {
                break Err(watch.overdue(patience));
            }
            let timeout = sampler.due().saturating_duration_since(now).min(LOOK);
            let readable = wait_readable(&[generator.output(), subject.pidfd()], timeout);
            if readable[0]
                && let Some(result) = hear(&mut generator, &mut watch, sampler, readings, say)
            {
                break result;
            }
            if readable[1] {
                break Err(failed(FailureKind::Exited, ""));
            }
        };
        // Killed with it is whoever still loads; and a subject that crashed is seen as such, whoever noticed first.
        let patience = if result.is_ok() { Duration::from_secs(2) } else { Duration::ZERO };
        generator.child.wait(patience);
        generator.child.kill();
        let patience = if result.is_ok() { Duration::ZERO } else { Duration::from_millis(200) };
        if let Some(exit) = subject.wait(patience) {
            let last_words = subject.last_words();
            return Err(failed(
                FailureKind::Exited,
                format!("it ended ({exit}) while it was loaded{}", saying(&last_words)),
            ));
        }
        answered(result?)
    }
}

/// CPU time and more at both ends of measuring.
#[derive(Default)]
struct Readings {
    begin: Option<Reading>,
    end: Option<Reading>,
}

/// Takes what the generator has said; `Some`: it has done, well or badly.
fn hear(
    generator: &mut Generator,
    watch: &mut Watch,
    sampler: &mut Sampler,
    readings: &mut Readings,
    say: &mut dyn FnMut(Phase, Option<&Live>),
) -> Option<Result<Measurement, End>> {
    let broken = |text: String| Some(Err(failed(FailureKind::Generator, format!("the generator failed: {text}"))));
    let lines = match generator.read() {
        Ok(Some(lines)) => lines,
        Ok(None) => {
            let exit = generator.child.wait(Duration::from_secs(1));
            let exit = exit.map_or("it closed its output".to_owned(), |exit| exit.to_string());
            return broken(format!("{exit} without a measurement{}", saying(&generator.child.last_words())));
        }
        Err(text) => return broken(text),
    };
    for line in lines {
        if let Some(text) = line.error {
            return broken(text);
        }
        if let Some(text) = line.unreachable {
            return Some(Err(failed(FailureKind::Answers, text)));
        }
        let measuring = line.measuring || line.progress.as_ref().is_some_and(|live| live.phase == "measure");
        if measuring && readings.begin.is_none() {
            readings.begin = Some(sampler.reading());
            say(Phase::Measure, None);
        }
        if let Some(live) = line.progress {
            say(if readings.begin.is_some() { Phase::Measure } else { Phase::Warmup }, Some(&live));
            watch.see(live);
        }
        if line.measured || line.measurement.is_some() {
            readings.end.get_or_insert_with(|| sampler.reading());
        }
        if let Some(measurement) = line.measurement {
            return Some(Ok(*measurement));
        }
    }
    None
}

/// Whether answers still come: tells a subject that hangs from a generator that does.
struct Watch {
    live: Option<Live>,
    changed: Instant,
    timeout: Duration,
}

impl Watch {
    fn new(timeout: Duration) -> Self {
        Self { live: None, changed: clock::now(), timeout }
    }

    fn see(&mut self, live: Live) {
        if self.live.as_ref().is_none_or(|before| before.requests != live.requests) {
            self.changed = clock::now();
        }
        self.live = Some(live);
    }

    /// The words for a generator that did not end in time.
    fn overdue(&self, patience: Duration) -> End {
        let silent = clock::now() - self.changed;
        match &self.live {
            Some(live) if silent > self.timeout => failed(
                FailureKind::Hung,
                format!(
                    "no answer came for {} s, after {} requests; given up after {patience:?}",
                    silent.as_secs(),
                    live.requests
                ),
            ),
            _ => {
                failed(FailureKind::Generator, format!("the generator did not end within {patience:?} and was killed"))
            }
        }
    }
}

/// A measurement without a single right answer is none.
fn answered(measurement: Measurement) -> Result<Measurement, End> {
    if measurement.requests > 0 {
        return Ok(measurement);
    }
    let late = |kind: &str| matches!(kind, "timeout" | "connect-timeout");
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, count) in measurement.errors.iter().chain(&measurement.warmup_errors).filter(|(_, count)| **count > 0) {
        *errors.entry(kind).or_default() += count;
    }
    let seen: Vec<String> = errors.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let example = measurement.error_examples.values().next();
    let example = example.map_or_else(String::new, |example| format!(" (the first: {example})"));
    let text = |what: &str| match seen.is_empty() {
        true => what.to_owned(),
        false => format!("{what}: {}{example}", seen.join(", ")),
    };
    if errors.keys().all(|kind| late(kind)) {
        Err(failed(FailureKind::Hung, text("not one answer came while it was measured")))
    } else {
        Err(failed(FailureKind::Answers, text("not one answer was right while it was measured")))
    }
}

/// `, saying: ...` with the last line of `text`, if there is one that says more than that it was ready.
fn saying(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).filter(|line| !line.starts_with("ready "));
    line.map_or_else(String::new, |line| format!(", saying: {}", line.trim()))
}

/// The processors of a point on this machine.
pub(crate) fn share(point: &Point, options: &Options) -> Result<Share, String> {
    topology::share(&options.cpus, point.subject.cpus, point.load.cpus, point.load.share_cpus)
}

fn load_spec(load: &LoadPlan, share: &Share, port: u16, seed: u64, directory: &Path) -> Result<LoadSpec, String> {
    let target = target::target(load, target::Ports::direct(port), directory)?;
    let cpus = u32::try_from(share.generator.len()).unwrap_or(u32::MAX);
    // A worker without a client would only turn.
    let threads = load.threads.unwrap_or(cpus.min(load.clients)).max(1);
    let alone = !share.shared && threads <= cpus;
    Ok(LoadSpec {
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
        spin_ns: if alone && !matches!(load.arrivals, Arrivals::Closed { .. }) { SPIN_NS } else { 0 },
        seed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_that_say_something() {
        assert_eq!(saying("ready 7000\npanic: no memory\n\n"), ", saying: panic: no memory");
        assert_eq!(saying("ready 7000\n"), "");
        assert_eq!(saying(""), "");
    }
}
