//! One trial: a fresh subject, a generator, a record. Whatever goes wrong leaves a record too.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use study::plan::{LoadPlan, Plan, Point};
use study::record::{
    Failure, FailureKind, IdlePolicy, Measurement, NetworkCounters, Outcome, Probe, Probes, ProxyUse, RECORD_VERSION,
    Record, Step, SubjectUse,
};
use study::seam::Told;
use study::spec::{Arrivals, LoadSpec, SPEC_VERSION};
use study::{WarningKind, words};

use crate::end::{End, failed, saying};
use crate::generator::{self, Generator};
use crate::hooks::{Live, Options, Phase};
use crate::process::{Child, Supervisor, wait_readable};
use crate::proxy::{Place, Proxy};
use crate::sample::{Reading, Sampler};
use crate::server::{Server, Started};
use crate::target::Ports;
use crate::topology::{self, Share};
use crate::{clock, network, ready, target, wire};

/// The open loop polls for so long before each intended send, where the generator has its processors for itself, ns.
const SPIN_NS: u64 = 100_000;
/// The longest wait before we look whether to end.
const LOOK: Duration = Duration::from_millis(50);
/// The time between looks at the connections of proxies while measuring: with very many connections one takes milliseconds.
const LOOK_AT_WIRE: Duration = Duration::from_millis(200);
/// So long before a reading is due nothing else is looked at, so that it is not late.
const NEAR: Duration = Duration::from_millis(20);

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
            proxies: Vec::new(),
            network: NetworkCounters::default(),
            verdict: None,
            probes: Probes::default(),
            warnings: Vec::new(),
            agents: Vec::new(),
        };
        record.outcome = match self.measure(&mut record, say) {
            Ok(measurement) => Outcome::Measured(measurement),
            Err(End::Failed(failure)) => Outcome::Failed(failure),
            Err(End::Interrupted) => return None,
        };
        record.probes.after = self.probe(&record);
        record.elapsed_ns = clock::nanos(clock::now() - begun);
        Some(record)
    }

    fn point(&self) -> &Point {
        &self.plan.points[self.point]
    }

    fn probe(&self, record: &Record) -> Vec<Probe> {
        (self.options.probe)(&record.subject.cpus, &record.generator_cpus)
    }

    fn measure(&self, record: &mut Record, say: &mut dyn FnMut(Phase, Option<&Live>)) -> Result<Measurement, End> {
        say(Phase::Start, None);
        let mut share = share(self.point(), self.options).map_err(|text| failed(FailureKind::Start, text))?;
        let proxy_cpus = share.subject.split_off((self.point().subject.cpus as usize).min(share.subject.len()));
        record.subject.cpus.clone_from(&share.subject);
        record.generator_cpus.clone_from(&share.generator);
        record.cpus_shared = share.shared;
        record.probes.before = self.probe(record);

        // Not its main port, which is tried again where it was taken meanwhile: few subjects have a second one.
        let second_port =
            ready::free_port().map_err(|error| failed(FailureKind::Start, format!("no second free port: {error}")))?;
        let Started { child: mut subject, at: started, .. } = self.start(&share, second_port, record)?;
        let mut sampler = Sampler::new(Path::new("/proc"), subject.pid(), started, &share.subject);
        let mut proxies = self.start_proxies(&proxy_cpus, second_port, record)?;
        let own_net = Path::new("/proc/self/net");
        let subject_net = format!("/proc/{}/net", subject.pid());
        let before = network::read(Path::new(&subject_net));

        let mut readings = Readings::default();
        let result = {
            let subject = Subject { child: &mut subject, sampler: &mut sampler };
            self.load(record, &share, subject, &mut proxies, &mut readings, say)
        };

        // A subject that has ended has no folder left; ours has the same counters, unless it had a network of its own.
        let after = network::read(Path::new(&subject_net)).or_else(|| network::read(own_net));
        match before.zip(after) {
            Some((before, after)) => record.network = network::between(before, after),
            None => record.warnings.push(WarningKind::NotRead.says("cannot read the counters of the network stack")),
        }
        if matches!(result, Err(End::Interrupted)) {
            return result;
        }
        say(Phase::Stop, None);
        let tables = readings.tables();
        for (index, proxy) in proxies.into_iter().enumerate() {
            let of_it =
                |moment: &Option<UsageSnapshot>| moment.as_ref().and_then(|moment| moment.proxies.get(index).copied());
            let ends = of_it(&readings.begin).zip(of_it(&readings.end));
            record.warnings.extend(proxy.finish(ends, readings.span, &tables, &mut record.proxies[index]));
        }
        let exit = subject.stop(Duration::from_nanos(self.point().subject.stop_timeout_ns));
        record.warnings.extend(exit.ignored_sigterm().map(|text| WarningKind::IgnoredSigterm.says(text)));
        record.subject.exit = Some(exit.to_string());
        record.subject.stderr_tail = subject.last_words();
        let ends = readings.begin.zip(readings.end).map(|(begin, end)| (begin.subject, end.subject));
        sampler.finish(ends, readings.span, &mut record.subject);
        settle_others(record);
        result
    }

    /// A subject whose port answers.
    fn start(&self, share: &Share, second_port: u16, record: &mut Record) -> Result<Started, End> {
        let plan = &self.point().subject;
        let words = words::split(&plan.command).map_err(|mistake| failed(FailureKind::Start, mistake.to_string()))?;
        let fill = |word: &str, port: u16| {
            study::fill(word, |name| match name {
                "port" => Some(port.to_string()),
                "second_port" => Some(second_port.to_string()),
                _ => None,
            })
        };
        let server = Server {
            command: &plan.command,
            words: &|port| Ok(words.iter().map(|word| fill(word, port)).collect()),
            environment: &|_| plan.environment.clone(),
            directory: self.options.directory.join(plan.directory.as_deref().unwrap_or("")),
            cpus: &share.subject,
            port: plan.port,
            ready_timeout_ns: plan.ready_timeout_ns,
            stop_timeout_ns: plan.stop_timeout_ns,
            kind: FailureKind::Start,
            who: "",
        };
        let started = server.start(self.supervisor, self.interrupted, &mut record.subject)?;
        record.ready_ns = Some(started.ready_ns);
        Ok(started)
    }

    /// What stands between generator and subject, the generator's neighbour first. What of it had been started when one could not be is
    /// stopped.
    fn start_proxies(&self, proxy_cpus: &[u32], second_port: u16, record: &mut Record) -> Result<Vec<Proxy<'_>>, End> {
        let plans = &self.point().proxies;
        let subject_port = record.subject.port.unwrap_or(0);
        record.proxies = vec![ProxyUse::default(); plans.len()];
        let mut proxies = Vec::new();
        let mut left = proxy_cpus;
        let mut next_port = subject_port;
        // The neighbour of the subject first, so that each finds who stands behind it.
        for (plan, used) in plans.iter().zip(&mut record.proxies).rev() {
            let (own, rest) = left.split_at((plan.cpus as usize).min(left.len()));
            left = rest;
            let place = Place {
                supervisor: self.supervisor,
                directory: &self.options.directory,
                levels: &self.point().factors,
                interrupted: self.interrupted,
                cpus: if plan.cpus == 0 { &record.subject.cpus } else { own },
                next_port,
                subject_port,
                second_port,
            };
            let proxy = Proxy::start(plan, &place, used)?;
            next_port = proxy.port();
            proxies.push(proxy);
        }
        proxies.reverse();
        Ok(proxies)
    }

    /// Loads `subject` until the generator has its measurement, or something has gone wrong.
    fn load(
        &self,
        record: &Record,
        share: &Share,
        subject: Subject<'_>,
        proxies: &mut [Proxy<'_>],
        readings: &mut Readings,
        say: &mut dyn FnMut(Phase, Option<&Live>),
    ) -> Result<Measurement, End> {
        let Subject { child: subject, sampler } = subject;
        let subject_port = record.subject.port.unwrap_or(0);
        let ports = proxies.first().map_or(Ports::direct(subject_port), |proxy| Ports {
            port: proxy.port(),
            subject_port,
            admin_port: proxy.admin_port(),
        });
        let spec = load_spec(&self.point().load.at(self.step), share, ports, record.seed, &self.options.directory)
            .map_err(|text| failed(FailureKind::Generator, text))?;
        let mut generator = Generator::start(self.supervisor, &spec, &share.generator, &self.options.directory)
            .map_err(|error| failed(FailureKind::Generator, format!("cannot start the generator: {error}")))?;
        say(Phase::Warmup, None);
        let patience = generator::patience(&spec, self.margin);
        let deadline = clock::now() + patience;
        let mut watch = Watch::new(Duration::from_nanos(spec.timeout_ns));
        let result = loop {
            if (self.interrupted)() {
                return Err(End::Interrupted);
            }
            let mut looks = Observed { sampler: &mut *sampler, proxies: &mut *proxies };
            let due = if readings.is_near(clock::now()) {
                looks.prepare();
                None
            } else {
                readings.look_between(clock::now());
                looks.tick();
                Some(looks.due())
            };
            let now = clock::now();
            if now >= deadline {
                break Err(watch.overdue(patience));
            }
            let due = due.into_iter().chain(readings.due()).min();
            let timeout = due.map_or(LOOK, |due| due.saturating_duration_since(now).min(LOOK));
            let ends = proxies.iter().map(|proxy| proxy.started.child.pidfd());
            let handles = [generator.output(), subject.pidfd()].into_iter().chain(ends).collect::<Vec<_>>();
            let readable = wait_readable(&handles, timeout);
            let mut looks = Observed { sampler: &mut *sampler, proxies: &mut *proxies };
            readings.take_due(&mut generator, &mut looks, say);
            if readable[0]
                && let Some(result) = hear(&mut generator, &mut watch, &mut looks, readings, say)
            {
                break result;
            }
            if readable[1..].contains(&true) {
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
                format!("exited ({exit}) under load{}{}", subject.left_behind(), saying(&last_words)),
            ));
        }
        if let Some(end) = proxies.iter_mut().find_map(Proxy::ended) {
            return Err(end);
        }
        answered(result?)
    }
}

/// The subject, while it is loaded.
struct Subject<'a> {
    child: &'a mut Child,
    sampler: &'a mut Sampler,
}

/// What others had of processors is told apart from what the generator and proxies had, or not told.
fn settle_others(record: &mut Record) {
    let cpu_ns = |used: &SubjectUse| used.user_ns.saturating_add(used.system_ns);
    let unknown = record.cpus_shared || record.idle == IdlePolicy::Spin;
    let shared = record.proxies.iter().filter(|proxy| proxy.shares_cpus).map(|proxy| cpu_ns(&proxy.used));
    let shared_ns = shared.fold(0, u64::saturating_add);
    let subject_ns = cpu_ns(&record.subject);
    for proxy in &mut record.proxies {
        let beside_ns = if proxy.shares_cpus {
            shared_ns.saturating_sub(cpu_ns(&proxy.used)).saturating_add(subject_ns)
        } else {
            0
        };
        proxy.used.others_ns = proxy.used.others_ns.filter(|_| !unknown).map(|ns| ns.saturating_sub(beside_ns));
    }
    let others_ns = &mut record.subject.others_ns;
    *others_ns = others_ns.filter(|_| !unknown).map(|ns| ns.saturating_sub(shared_ns));
}

/// CPU time and more at both ends of measuring.
#[derive(Default)]
struct Readings {
    begin: Option<UsageSnapshot>,
    end: Option<UsageSnapshot>,
    /// When the generator has said that measuring begins and ends, as far as it has.
    begins: Option<Instant>,
    ends: Option<Instant>,
    /// When it did.
    span: Option<(Instant, Instant)>,
    /// The connections at a moment between, as those of the generator are closed by the end where nobody holds it up.
    between: Option<(Instant, Option<wire::Table>)>,
}

impl Readings {
    /// When the next reading is due.
    fn due(&self) -> Option<Instant> {
        match (&self.begin, &self.end) {
            (None, _) => self.begins,
            (_, None) => self.ends,
            _ => None,
        }
    }

    fn is_near(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due.saturating_duration_since(now) < NEAR)
    }

    /// Takes the reading whose moment has come.
    fn take_due(
        &mut self,
        generator: &mut Generator,
        looks: &mut Observed<'_, '_>,
        say: &mut dyn FnMut(Phase, Option<&Live>),
    ) {
        if self.due().is_none_or(|due| clock::now() < due) {
            return;
        }
        if self.begin.is_none() {
            self.begin = Some(looks.moment());
            say(Phase::Measure, None);
        } else {
            self.take_end(generator, looks);
        }
    }

    /// Takes the last reading, and lets the generator close its connections.
    fn take_end(&mut self, generator: &mut Generator, looks: &mut Observed<'_, '_>) {
        if self.end.is_none() {
            self.end = Some(looks.moment());
            looks.tick_in_full();
            generator.tell_read();
        }
    }

    /// Looks at the connections while measuring goes on, now and then.
    fn look_between(&mut self, now: Instant) {
        if self.begin.as_ref().is_some_and(|begin| begin.wire.is_some())
            && self.between.as_ref().is_none_or(|(last, _)| now.duration_since(*last) >= LOOK_AT_WIRE)
        {
            self.between = Some((now, wire::read()));
        }
    }

    /// The connections when measuring began, each with a later moment: the latest first.
    fn tables(&self) -> Vec<(&wire::Table, &wire::Table)> {
        let Some(begin) = self.begin.as_ref().and_then(|begin| begin.wire.as_ref()) else { return Vec::new() };
        let end = self.end.as_ref().and_then(|end| end.wire.as_ref());
        let between = self.between.as_ref().and_then(|(_, table)| table.as_ref());
        [end, between].into_iter().flatten().map(|later| (begin, later)).collect()
    }
}

/// What subject and proxies had used at one moment.
struct UsageSnapshot {
    subject: Reading,
    proxies: Vec<Reading>,
    /// Read where there are proxies alone.
    wire: Option<wire::Table>,
}

/// Who is looked at.
struct Observed<'a, 'b> {
    sampler: &'a mut Sampler,
    proxies: &'a mut [Proxy<'b>],
}

impl Observed<'_, '_> {
    fn moment(&mut self) -> UsageSnapshot {
        let subject = self.sampler.reading();
        let proxies = self.proxies.iter_mut().map(|proxy| proxy.sampler.reading()).collect::<Vec<_>>();
        let wire = if proxies.is_empty() { None } else { wire::read() };
        UsageSnapshot { subject, proxies, wire }
    }

    fn prepare(&mut self) {
        self.samplers(Sampler::prepare);
    }

    fn tick(&mut self) {
        self.samplers(Sampler::tick);
    }

    fn tick_in_full(&mut self) {
        self.samplers(Sampler::tick_in_full);
    }

    fn samplers(&mut self, look: fn(&mut Sampler)) {
        look(self.sampler);
        self.proxies.iter_mut().for_each(|proxy| look(&mut proxy.sampler));
    }

    /// When the next sample is due.
    fn due(&self) -> Instant {
        self.proxies.iter().map(|proxy| proxy.sampler.due()).fold(self.sampler.due(), Instant::min)
    }
}

/// Takes what the generator has said; `Some`: it has done, well or badly.
fn hear(
    generator: &mut Generator,
    watch: &mut Watch,
    looks: &mut Observed<'_, '_>,
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
        match line {
            Told::Error(text) => return broken(text),
            Told::Unreachable(text) => return Some(Err(failed(FailureKind::Answers, text))),
            Told::Progress(live) => {
                say(if readings.begin.is_some() { Phase::Measure } else { Phase::Warmup }, Some(&live));
                watch.see(live);
            }
            Told::Connected(_) => {} // The specification has no gate.
            Told::Announced(moments) => {
                readings.begins = Some(clock::at_monotonic(moments.from_ns));
                readings.ends = moments.until_ns.map(clock::at_monotonic);
            }
            Told::Measured(span) => {
                readings.span = Some((clock::at_monotonic(span.from_ns), clock::at_monotonic(span.until_ns)));
                readings.take_end(generator, looks);
            }
            Told::Measurement(measurement) => return Some(Ok(*measurement)),
        }
        // What has been announced may have come already.
        readings.take_due(generator, looks, say);
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
                    "no response for {} s, after {} requests; gave up after {patience:?}",
                    silent.as_secs(),
                    live.requests
                ),
            ),
            _ => {
                failed(FailureKind::Generator, format!("the generator did not exit within {patience:?} and was killed"))
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
        Err(failed(FailureKind::Hung, text("no response during the measurement")))
    } else {
        Err(failed(FailureKind::Answers, text("no valid response during the measurement")))
    }
}

/// The processors of a point on this machine; those of proxies stand behind those of the subject.
pub(crate) fn share(point: &Point, options: &Options) -> Result<Share, String> {
    let behind = point.subject.cpus.saturating_add(point.proxy_cpus);
    topology::share(&options.cpus, behind, point.load.cpus, point.load.share_cpus)
}

fn load_spec(load: &LoadPlan, share: &Share, ports: Ports, seed: u64, directory: &Path) -> Result<LoadSpec, String> {
    let target = target::target(load, ports, directory)?;
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
        part: None,
        gate: false,
    })
}
