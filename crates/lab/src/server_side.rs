//! The server's side of a trial, driven by the lab or a node: starts, watches, samples and stops processes.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use study::WarningKind;
use study::generator_messages::{Announced, Span};
use study::node_messages::{Said, Serve, Standing, Stopped};
use study::record::{Failure, FailureKind, Sample, SubjectUse};

use crate::proxy::{self, Proxy};
use crate::proxy_tcp_byte_counts::{self, Table};
use crate::resource_sampler::Sampler;
use crate::start_server::{Companion, Companions, Ground, Server, Started};
use crate::trial_end_reason::{End, failed};
use crate::{lab_clocks, network_counters, ports_and_readiness};

/// Interval between readings of the connection tables. A reading takes milliseconds with very many connections.
const LOOK_AT_WIRE: Duration = Duration::from_millis(200);
/// Time before a reading in which all other work stops, so that the reading is not late.
const NEAR: Duration = Duration::from_millis(20);
/// Time for a server to exit after a failed load, so that its exit can be reported.
const EXITING: Duration = Duration::from_millis(200);

pub(crate) trait Side {
    /// Handles that become readable when [`look`](Side::look) has something to do.
    fn handles(&self) -> Vec<BorrowedFd<'_>>;

    /// Prepares for waiting. Returns the deadline for the next [`look`](Side::look); `None` without one.
    fn prepare(&mut self) -> Option<Instant>;

    /// Handles events. `readable` has one flag for each of [`handles`](Side::handles). Returns [`Said::Taken`] for each
    /// reading and [`Said::Ended`] when the server or a proxy exits.
    fn look(&mut self, readable: &[bool]) -> Result<Vec<Said>, End>;

    /// Latest sample of the server; `None` if there is none yet or the server runs on another machine.
    fn sample(&self) -> Option<Sample> {
        None
    }

    /// Tells this side when measuring will begin and end, on the lab's clock.
    fn announce(&mut self, moments: Announced) -> Result<(), End>;

    fn measured(&mut self, span: Span) -> Result<(), End>;

    /// Stops all processes and adds their usage to what is known since the start. With `has_failed`, the server may be
    /// about to exit by itself.
    fn stop(self: Box<Self>, has_failed: bool, known: Stopped) -> Result<Stopped, End>;
}

pub(crate) struct Subject<'a> {
    pub(crate) server: Started,
    proxies: Vec<Proxy<'a>>,
    /// Processes that the server needs. They are declared after the server, so that they are dropped later.
    companions: Companions<'a>,
    /// Samplers, one per process, in the order of [`uses`].
    samplers: Vec<Sampler>,
    readings: Readings,
    has_exited: bool,
    /// Events since the latest [`look`](Side::look).
    events: Vec<Said>,
    before: Option<study::record::NetworkCounters>,
    pub(crate) standing: Standing,
}

fn uses(known: &mut Stopped) -> impl Iterator<Item = &mut SubjectUse> {
    let others = known.proxies.iter_mut().chain(&mut known.companions).map(|other| &mut other.used);
    std::iter::once(&mut known.subject).chain(others)
}

impl<'a> Subject<'a> {
    /// Starts companions, then the server, then proxies. Fills `known` even on failure.
    pub(crate) fn start(order: &'a Serve, ground: &'a Ground<'a>, known: &mut Stopped) -> Result<Self, End> {
        known.subject.cpus.clone_from(&order.cpus);
        // Unlike the main port, the second port is not retried, because few servers use it.
        let second_port = ports_and_readiness::free_port()
            .map_err(|error| failed(FailureKind::Start, format!("no second free port: {error}")))?;
        let companions = Companions::start(order, ground, &mut known.companions)?;
        let plan = &order.point.subject.process;
        // A server behind a proxy gets connections only from its own machine.
        let address = if order.point.proxies.is_empty() { order.address } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let names = |name: &str| port_of(name, second_port, &companions.running);
        let server = Server { names: &names, cpus: &order.cpus, address, ..Server::new(plan, ground) };
        let server = server.start(&mut known.subject);
        let inside = plan.container.as_ref().and_then(|container| container.publish);
        known.warnings.extend(inside.filter(|_| known.subject.container.is_some()).map(|inside| {
            let text = format!("published port: requests pass through the engine's port forwarding to port {inside} of the container, and the measurement includes it");
            WarningKind::PublishedPort.says(text)
        }));
        let server = server?;
        known.ready_ns = Some(server.ready_ns);
        let proxies = proxy::start(order, ground, (server.port, second_port), &mut known.proxies)?;
        let before = network_counters::read(Path::new(&format!("/proc/{}/net", server.pid)));
        let (first, subject_port) = (proxies.first(), server.port);
        let port = first.map_or(subject_port, |proxy| proxy.started.port);
        let standing = Standing { port, subject_port, admin_port: first.and_then(|proxy| proxy.admin_port) };
        let mut subject = Self {
            server,
            proxies,
            companions,
            samplers: Vec::new(),
            readings: Readings::default(),
            has_exited: false,
            events: Vec::new(),
            before,
            standing,
        };
        let mut warnings = Vec::new();
        let samplers = subject.processes().zip(uses(known)).map(|(process, used)| process.sampler(used, &mut warnings));
        subject.samplers = samplers.collect();
        known.warnings.append(&mut warnings);
        Ok(subject)
    }

    fn processes(&self) -> impl Iterator<Item = &Started> {
        let proxies = self.proxies.iter().map(|proxy| &proxy.started);
        let companions = self.companions.running.iter().map(|companion| &companion.started);
        std::iter::once(&self.server).chain(proxies).chain(companions)
    }

    fn take_due(&mut self) {
        if self.readings.due().is_none_or(|due| lab_clocks::now() < due) {
            return;
        }
        if !self.readings.tables.is_empty() {
            return self.take_end();
        }
        self.take();
        self.events.push(Said::Taken { end: false });
    }

    fn take_end(&mut self) {
        if self.readings.tables.len() < 2 {
            self.take();
            self.samplers.iter_mut().take(1 + self.proxies.len()).for_each(Sampler::add_waits);
            self.samplers.iter_mut().for_each(Sampler::tick_in_full);
            self.events.push(Said::Taken { end: true });
        }
    }

    fn take(&mut self) {
        self.samplers.iter_mut().for_each(Sampler::read);
        self.readings.tables.push(if self.proxies.is_empty() { None } else { proxy_tcp_byte_counts::read() });
    }

    fn failure(&mut self, patience: Duration) -> Option<Failure> {
        let proxies = self.proxies.iter_mut().map(|proxy| &mut proxy.started);
        let mut others = proxies.chain(self.companions.running.iter_mut().map(|companion| &mut companion.started));
        self.server.failure(patience).or_else(|| others.find_map(|process| process.failure(Duration::ZERO)))
    }
}

impl Side for Subject<'_> {
    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        // The handle of an exited process stays readable, so waiting for it would return at once.
        self.processes().filter(|_| !self.has_exited).map(|process| process.child.pidfd()).collect()
    }

    fn prepare(&mut self) -> Option<Instant> {
        let is_near = |due: Instant| due.saturating_duration_since(lab_clocks::now()) < NEAR;
        if self.readings.due().is_some_and(is_near) {
            self.samplers.iter_mut().for_each(Sampler::prepare);
            return self.readings.due();
        }
        let (now, Readings { tables, between, .. }) = (lab_clocks::now(), &mut self.readings);
        if tables.first().is_some_and(Option::is_some)
            && between.as_ref().is_none_or(|(last, _)| now.duration_since(*last) >= LOOK_AT_WIRE)
        {
            *between = Some((now, proxy_tcp_byte_counts::read()));
        }
        self.samplers.iter_mut().for_each(Sampler::tick);
        self.samplers.iter().map(|sampler| sampler.next).chain(self.readings.due()).min()
    }

    fn look(&mut self, readable: &[bool]) -> Result<Vec<Said>, End> {
        self.take_due();
        if readable.contains(&true) {
            self.has_exited = true;
            self.events.push(Said::Ended {});
        }
        Ok(std::mem::take(&mut self.events))
    }

    fn sample(&self) -> Option<Sample> {
        self.samplers.first()?.samples.last().copied()
    }

    fn announce(&mut self, moments: Announced) -> Result<(), End> {
        self.readings.begins = Some(lab_clocks::at_monotonic(moments.from_ns));
        self.readings.ends = moments.until_ns.map(lab_clocks::at_monotonic);
        self.take_due();
        Ok(())
    }

    fn measured(&mut self, span: Span) -> Result<(), End> {
        self.readings.span = Some((lab_clocks::at_monotonic(span.from_ns), lab_clocks::at_monotonic(span.until_ns)));
        self.take_due();
        self.take_end();
        Ok(())
    }

    fn stop(mut self: Box<Self>, has_failed: bool, mut known: Stopped) -> Result<Stopped, End> {
        let failure = self.failure(if has_failed { EXITING } else { Duration::ZERO });
        let Self { mut server, proxies, mut companions, samplers, readings, before, .. } = *self;
        known.failure = failure;
        // If the server has ended, this process's counters are read: usually, both share a network namespace.
        let after = network_counters::read(Path::new(&format!("/proc/{}/net", server.pid)));
        match before.zip(after.or_else(|| network_counters::read(Path::new("/proc/self/net")))) {
            Some((before, after)) => known.network = network_counters::between(before, after),
            None => known.warnings.push(WarningKind::NotRead.says("cannot read the counters of the network stack")),
        }
        let tables = readings.pairs();
        for (proxy, used) in proxies.into_iter().zip(&mut known.proxies) {
            known.warnings.extend(proxy.finish(&tables, used));
        }
        known.warnings.extend(server.stop(&mut known.subject));
        let fresh = companions.running.iter_mut().zip(&mut known.companions).filter(|(one, _)| one.plan.fresh);
        known.warnings.extend(fresh.filter_map(|(companion, used)| companion.started.stop(&mut used.used)));
        samplers.into_iter().zip(uses(&mut known)).for_each(|(sampler, used)| sampler.finish(readings.span, used));
        Ok(known)
    }
}

/// Port for a placeholder `{NAME_port}` in a command: the server's second port or a companion's; `None` if unknown.
pub(crate) fn port_of(name: &str, second_port: u16, companions: &[Companion]) -> Option<String> {
    let of = name.strip_suffix("_port")?;
    let companion = || companions.iter().find(|companion| companion.plan.name == of);
    let port = if of == "second" { second_port } else { companion()?.started.port };
    Some(port.to_string())
}

#[derive(Default)]
struct Readings {
    /// Connection table at the start and at the end of measuring, once taken; `None` without proxies.
    tables: Vec<Option<Table>>,
    begins: Option<Instant>,
    ends: Option<Instant>,
    span: Option<(Instant, Instant)>,
    /// Latest connection table before the end, in case a generator disconnects before the final reading.
    between: Option<(Instant, Option<Table>)>,
}

impl Readings {
    fn due(&self) -> Option<Instant> {
        [self.begins, self.ends].get(self.tables.len()).copied().flatten()
    }

    /// Pairs of earlier and later connection tables, best pair first.
    fn pairs(&self) -> Vec<(&Table, &Table)> {
        let [Some(begin), end @ ..] = &self.tables[..] else { return Vec::new() };
        let between = self.between.as_ref().and_then(|(_, table)| table.as_ref());
        end.iter().flatten().chain(between).map(|later| (begin, later)).collect()
    }
}
