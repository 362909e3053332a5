//! Runs one trial and returns its record.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use study::generator_messages::{Heard, Told};
use study::node_messages::{Said, Serve, Standing, Stopped};
use study::plan::{Plan, Point};
use study::record::{
    Agent, FailureKind, IdlePolicy, Measurement, Outcome, Probe, RECORD_VERSION, Record, Step, SubjectUse,
};

use crate::cluster::Cluster;
use crate::divide_cpus::{self, Share};
use crate::generator_process::{self, Generator};
use crate::load_side::Load;
use crate::options_and_hooks::{LabError, Live, Options, Phase, Progress};
use crate::perf_sampling::Perf;
use crate::process_start_and_stop::{Supervisor, wait_readable};
use crate::server_side::{Side, Subject};
use crate::start_server::{Ground, Kept};
use crate::trial_end_reason::{End, failed};
use crate::{lab_clocks, load_target_and_files};

const GENERATOR_MARGIN: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(50);
/// Share of time above which a stalled generator or a lack of CPU time excuses a server that did not respond.
const EXCUSE: f64 = 0.5;
/// Silence after which a generator counts as not running. A generator reports five times per second.
const PROGRESS: Duration = Duration::from_secs(2);
/// Time for a generator to exit once the lab has its measurement.
const EXIT: Duration = Duration::from_secs(2);

pub(crate) struct Bench<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) options: &'a Options,
    pub(crate) ground: Ground<'a>,
    /// Time that a generator may take in addition to the load, for starting, connecting and writing results.
    pub(crate) margin: Duration,
}

impl<'a> Bench<'a> {
    pub(crate) fn start(
        plan: &'a Plan,
        options: &'a Options,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Result<Self, LabError> {
        let supervisor = start_supervisor(options)?;
        let ground = Ground { supervisor, kept: Kept::default(), directory: &options.directory, interrupted };
        Ok(Self { plan, options, ground, margin: GENERATOR_MARGIN })
    }
}

pub(crate) fn start_supervisor(options: &Options) -> Result<Supervisor, LabError> {
    Supervisor::start(&options.exe).map_err(|error| LabError::Watchdog(options.exe.clone(), error))
}

pub(crate) struct Trial<'a> {
    pub(crate) bench: &'a Bench<'a>,
    pub(crate) point: usize,
    pub(crate) block: u32,
    pub(crate) order: u32,
    pub(crate) step: Option<Step>,
    pub(crate) revision: Option<String>,
    /// Profiler, which disturbs the server; `None` in a measured trial.
    pub(crate) perf: Option<&'a Perf<'a>>,
}

type Say<'a> = &'a mut dyn FnMut(Phase, Option<&Live>);

impl Trial<'_> {
    /// Runs the trial and returns its record, possibly of a failure. Fails if interrupted or if a machine is lost.
    pub(crate) fn run(&self, progress: &mut dyn FnMut(&Progress)) -> Result<Record, End> {
        let (point, block, order, step) = (self.point, self.block, self.order, self.step);
        let mut say =
            |phase, live: Option<&Live>| progress(&Progress { phase, point, block, order, live: live.cloned() });
        let begun = lab_clocks::now();
        let (version, factors, started) = (RECORD_VERSION, self.point().factors.clone(), lab_clocks::rfc3339());
        let (seed, idle) = (self.bench.plan.trial_seed(block), self.bench.options.idle);
        let mut record =
            Record { version, point, factors, block, order, seed, step, started, idle, ..Record::default() };
        record.subject.revision.clone_from(&self.revision);
        record.outcome = match self.measure(&mut record, &mut say) {
            Ok(measurement) => Outcome::Measured(measurement),
            Err(End::Failed(failure)) => Outcome::Failed(failure),
            Err(End::Lost(why)) => {
                return Err(End::Lost(self.cluster().map(|cluster| cluster.explain_loss(&why)).unwrap_or(why)));
            }
            Err(End::Interrupted) => return Err(End::Interrupted),
        };
        record.probes.after = self.probe(&record)?;
        record.elapsed_ns = lab_clocks::nanos(lab_clocks::now() - begun);
        Ok(record)
    }

    fn cluster(&self) -> Option<&Cluster> {
        self.bench.options.cluster.as_deref()
    }

    fn point(&self) -> &Point {
        &self.bench.plan.points[self.point]
    }

    fn probe(&self, record: &Record) -> Result<Vec<Probe>, End> {
        match self.cluster() {
            None => Ok((self.bench.options.probe)(&record.subject.cpus, &record.generator_cpus)),
            Some(cluster) => cluster.probe(&record.subject.cpus),
        }
    }

    fn measure(&self, record: &mut Record, say: Say<'_>) -> Result<Measurement, End> {
        say(Phase::Start, None);
        let mut share = share(self.point(), self.bench.options).map_err(|text| failed(FailureKind::Start, text))?;
        let mut proxy_cpus = share.subject.split_off((self.point().subject.cpus as usize).min(share.subject.len()));
        let companion_cpus = proxy_cpus.split_off((self.point().proxy_cpus as usize).min(proxy_cpus.len()));
        record.subject.cpus.clone_from(&share.subject);
        record.generator_cpus.clone_from(&share.generator);
        record.cpus_shared = share.shared;
        record.probes.before = self.probe(record)?;

        let address = self.cluster().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |cluster| cluster.subject.address);
        let serve =
            Serve { point: self.point().clone(), address, cpus: share.subject.clone(), proxy_cpus, companion_cpus };
        let mut known = Stopped::default();
        let started: Result<(Standing, Box<dyn Side + '_>), End> = match self.cluster() {
            None => Subject::start(&serve, &self.bench.ground, &mut known).map(|subject| {
                self.perf.iter().for_each(|perf| perf.begin(&subject.server.child.servers()));
                (subject.standing, Box::new(subject) as _)
            }),
            Some(cluster) => cluster.serve(&serve, &mut known).map(|server| (server.standing, Box::new(server) as _)),
        };
        let (result, side) = match started {
            Ok((ports, mut side)) => (self.load(record, &share, address, ports, &mut *side, say), Some(side)),
            Err(end) => (Err(end), None),
        };
        if matches!(result, Err(End::Interrupted | End::Lost(_))) {
            return result.map(|(measurement, _)| measurement);
        }
        say(Phase::Stop, None);
        // `perf` stops before the server, because the server's shutdown is not measured.
        self.perf.iter().for_each(|perf| perf.end());
        let stopped = match side {
            Some(side) => side.stop(result.is_err(), known)?,
            None => known,
        };
        let revision = record.subject.revision.take();
        record.subject = SubjectUse { revision, ..stopped.subject };
        (record.ready_ns, record.proxies, record.network) = (stopped.ready_ns, stopped.proxies, stopped.network);
        record.companions = stopped.companions;
        record.warnings.extend(stopped.warnings);
        settle_others(record);
        // A crash of the server takes precedence, whichever side noticed a failure first.
        if let Some(failure) = stopped.failure {
            return Err(End::Failed(failure));
        }
        let (measurement, agents) = result?;
        record.agents = agents;
        answered(measurement, &record.subject)
    }

    fn load(
        &self,
        record: &Record,
        share: &Share,
        host: IpAddr,
        ports: Standing,
        side: &mut dyn Side,
        say: Say<'_>,
    ) -> Result<(Measurement, Vec<Agent>), End> {
        let Ground { supervisor, directory, interrupted, .. } = &self.bench.ground;
        let plan = self.point().load.at(self.step);
        let target = load_target_and_files::target(&plan, host, ports, directory);
        let target = target.map_err(|text| failed(FailureKind::Generator, text))?;
        let spec = generator_process::load_spec(&plan, target, share, record.seed);
        let mut load = match self.cluster() {
            None => {
                let generator = Generator::start(supervisor, &spec, &share.generator, directory);
                let cannot_start = |error| format!("cannot start the generator: {error}");
                let generator = generator.map_err(|error| failed(FailureKind::Generator, cannot_start(error)))?;
                Load::new(vec![Box::new(generator)], Duration::ZERO)
            }
            Some(cluster) => cluster.generators.load(plan.threads, &spec)?,
        };
        say(Phase::Warmup, None);
        let patience = generator_process::patience(&spec, self.bench.margin);
        let (begun, timeout) = (lab_clocks::now(), Duration::from_nanos(spec.timeout_ns));
        let mut watch = Watch { requests: None, heard: begun, changed: begun, timeout };
        let deadline = begun + patience;
        let mut phase = Phase::Warmup;
        // A failure drops the load, which kills generators that still run.
        while !load.is_done() {
            if interrupted() {
                return Err(End::Interrupted);
            }
            let due = side.prepare();
            let now = lab_clocks::now();
            if now >= deadline {
                return Err(watch.overdue(patience));
            }
            let timeout = due.map_or(LOOK, |due| due.saturating_duration_since(now).min(LOOK));
            let mut handles = load.handles();
            let count = handles.len();
            handles.extend(side.handles());
            let readable = wait_readable(&handles, timeout);
            let (of_load, of_side) = readable.split_at(count);
            handle_server_events(side, of_side, &mut phase, &mut load, say)?;
            for event in load.hear(of_load)? {
                match event {
                    Told::Progress(live) => {
                        watch.see(live.requests);
                        say(phase, Some(&Live { load: live, server: side.sample() }));
                    }
                    Told::Announced(moments) => side.announce(moments)?,
                    Told::Measured(span) => {
                        side.measured(span)?;
                        self.perf.iter().for_each(|perf| perf.span.set(Some(span)));
                    }
                    _ => {}
                }
                // The start or end of measuring may already have passed when it is announced.
                handle_server_events(side, &[], &mut phase, &mut load, say)?;
            }
        }
        load.end(EXIT)
    }
}

fn handle_server_events(
    side: &mut dyn Side,
    readable: &[bool],
    phase: &mut Phase,
    load: &mut Load<'_>,
    say: Say<'_>,
) -> Result<(), End> {
    for said in side.look(readable)? {
        match said {
            Said::Taken { end: false } => {
                *phase = Phase::Measure;
                say(*phase, None);
            }
            Said::Taken { end: true } => load.tell(Heard::Read {})?,
            Said::Ended {} => return Err(failed(FailureKind::Exited, "")),
            _ => {}
        }
    }
    Ok(())
}

/// Subtracts the CPU time of proxies on the server's CPUs from the time of other processes. The result is unknown
/// if the generator shared the CPUs or spinners ran.
fn settle_others(record: &mut Record) {
    let cpu_ns = |used: &SubjectUse| used.user_ns.saturating_add(used.system_ns);
    let unknown = record.cpus_shared || record.idle == IdlePolicy::Spin;
    let settle = |used: &mut SubjectUse, beside_ns: u64| {
        used.others_ns = used.others_ns.filter(|_| !unknown).map(|ns| ns.saturating_sub(beside_ns));
    };
    let shared = record.proxies.iter().filter(|proxy| proxy.shares_cpus).map(|proxy| cpu_ns(&proxy.used));
    let shared_ns = shared.fold(0, u64::saturating_add);
    let all_ns = shared_ns.saturating_add(cpu_ns(&record.subject));
    for proxy in &mut record.proxies {
        let beside_ns = if proxy.shares_cpus { all_ns.saturating_sub(cpu_ns(&proxy.used)) } else { 0 };
        settle(&mut proxy.used, beside_ns);
    }
    settle(&mut record.subject, shared_ns);
}

/// Watcher for responses, which tells a hanging server from a hanging generator.
struct Watch {
    /// Latest number of responses; `None` before the first progress message.
    requests: Option<u64>,
    /// Time of the last progress message; `changed` is the time of the last message with new responses.
    heard: Instant,
    changed: Instant,
    timeout: Duration,
}

impl Watch {
    fn see(&mut self, requests: u64) {
        self.heard = lab_clocks::now();
        if self.requests != Some(requests) {
            self.changed = self.heard;
        }
        self.requests = Some(requests);
    }

    fn overdue(&self, patience: Duration) -> End {
        let silent = lab_clocks::now() - self.changed;
        if silent > self.timeout
            && lab_clocks::now() - self.heard <= PROGRESS
            && let Some(requests) = self.requests
        {
            let silent_s = silent.as_secs();
            let text = format!("no response for {silent_s} s, after {requests} requests; gave up after {patience:?}");
            return failed(FailureKind::Hung, text);
        }
        failed(FailureKind::Generator, format!("the generator did not exit within {patience:?} and was killed"))
    }
}

/// Fails if there was no response. The server is at fault only if both it and the generator could run.
fn answered(measurement: Measurement, subject: &SubjectUse) -> Result<Measurement, End> {
    if measurement.requests > 0 {
        return Ok(measurement);
    }
    let share = |ns: u64| ns as f64 / (measurement.duration_ns as f64).max(1.0);
    let stalled = share(measurement.workers.iter().map(|worker| worker.stalled_ns).max().unwrap_or(0));
    let at_end = share(subject.waited_at_end_ns.unwrap_or(0)).min(1.0);
    let starved = subject.waiting_share().unwrap_or(0.0).max(at_end);
    let late = |kind: &str| matches!(kind, "timeout" | "connect-timeout");
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, count) in measurement.errors.iter().chain(&measurement.warmup_errors).filter(|(_, count)| **count > 0) {
        *errors.entry(kind).or_default() += count;
    }
    let is_silent = errors.keys().all(|kind| late(kind)) && measurement.late_answers == 0;
    let (kind, mut text) = blame(stalled, starved, is_silent);
    if !errors.is_empty() {
        let counts: Vec<String> = errors.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        text += &format!(": {}", counts.join(", "));
        let example = measurement.error_examples.values().next();
        text.extend(example.map(|example| format!("; first: {example}")));
    }
    Err(failed(kind, text))
}

/// Explains a trial without valid responses. `stalled` is the share of time in which the generator did not run,
/// `starved` the share in which the server waited for a CPU. `is_silent` means that all errors were timeouts.
fn blame(stalled: f64, starved: f64, is_silent: bool) -> (FailureKind, String) {
    let (kind, text, share) = match is_silent {
        _ if stalled > EXCUSE => {
            (FailureKind::Generator, "no valid response, but the generator did not run", Some(stalled))
        }
        true if starved > EXCUSE => {
            (FailureKind::Starved, "no response, but the server waited for its CPU", Some(starved))
        }
        true => (FailureKind::Hung, "no response during the measurement", None),
        false => (FailureKind::Answers, "no valid response during the measurement", None),
    };
    (kind, share.map_or(text.to_owned(), |share| format!("{text} {:.0} % of the time", share * 100.0)))
}

/// Divides the CPUs of a design point; the server's come first, then the proxies'. Nodes have their own CPUs.
pub(crate) fn share(point: &Point, options: &Options) -> Result<Share, String> {
    let behind = point.subject.cpus.saturating_add(point.proxy_cpus).saturating_add(point.companion_cpus);
    if let Some(cluster) = &options.cluster {
        return divide_cpus::alone(&cluster.subject.cpus, behind);
    }
    divide_cpus::share(&options.cpus, behind, point.load.cpus, point.load.share_cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blames_the_party_that_did_not_run() {
        for (stalled, starved, is_silent, kind) in [
            (0.0, 0.0, true, FailureKind::Hung),
            (0.3, 0.3, true, FailureKind::Hung),
            (0.0, 0.0, false, FailureKind::Answers),
            (0.0, 0.9, true, FailureKind::Starved),
            (0.0, 0.9, false, FailureKind::Answers),
            (0.8, 0.0, true, FailureKind::Generator),
            (0.8, 0.9, false, FailureKind::Generator),
        ] {
            let found = blame(stalled, starved, is_silent);
            assert_eq!(found.0, kind, "{stalled} {starved} {is_silent}: {}", found.1);
        }
    }

    #[test]
    fn silent_generator_is_not_a_hung_server() {
        let overdue = |silent: Duration, quiet: Duration| {
            let (begun, timeout) = (lab_clocks::now(), Duration::from_secs(1));
            let mut watch = Watch { requests: None, heard: begun, changed: begun, timeout };
            watch.see(0);
            let before = |time: Duration| lab_clocks::now().checked_sub(time).unwrap();
            (watch.changed, watch.heard) = (before(silent), before(quiet));
            match watch.overdue(Duration::from_secs(9)) {
                End::Failed(failure) => failure.kind,
                end => panic!("{end:?}"),
            }
        };
        let seconds = Duration::from_secs;
        assert_eq!(overdue(seconds(5), seconds(0)), FailureKind::Hung);
        assert_eq!(overdue(seconds(5), seconds(5)), FailureKind::Generator, "it was stopped");
        assert_eq!(overdue(seconds(0), seconds(0)), FailureKind::Generator, "it runs for too long");
    }
}
