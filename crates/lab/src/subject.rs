//! The server's side of a trial: starts, watches, samples and stops the processes on the server's
//! machine. The lab and a remote node drive a [`Subject`] in the same way.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use study::WarningKind;
use study::node::{Serve, Standing, Stopped};
use study::record::{Failure, FailureKind, ProxyUse};
use study::seam::{Announced, Span};

use crate::companion::{self, Companion};
use crate::end::{End, failed};
use crate::process::Child;
use crate::proxy::{Proxy, ProxyContext};
use crate::sample::{CpuTime, Reading, Sampler};
use crate::server::{self, Server, Started};
use crate::server::{Ground, Kept};
use crate::{clock, network, ready, wire};

/// Interval between reads of the proxies' connection tables while measuring. With very many
/// connections one read takes milliseconds.
const LOOK_AT_WIRE: Duration = Duration::from_millis(200);
/// Time before a reading in which all other work stops, so that the reading is not late.
const NEAR: Duration = Duration::from_millis(20);
/// Time for a server to exit after a failed load, so that its exit is reported.
const EXITING: Duration = Duration::from_millis(200);

pub(crate) trait Side {
    fn standing(&self) -> Standing;

    /// Handles that become readable when [`look`](Side::look) has something to do.
    fn handles(&self) -> Vec<BorrowedFd<'_>>;

    /// Prepares for waiting; returns the latest time of the next [`look`](Side::look).
    fn prepare(&mut self) -> Option<Instant>;

    /// Handles events; `readable` has one flag per handle.
    fn look(&mut self, readable: &[bool]) -> Result<Seen, End>;

    /// Announces when measuring begins and ends, on the lab's clock.
    fn announce(&mut self, moments: Announced) -> Result<(), End>;

    fn measured(&mut self, span: Span) -> Result<(), End>;

    /// Stops everything. `has_failed`: the load failed, so the server may be about to exit.
    fn stop(self: Box<Self>, has_failed: bool) -> Result<Stopped, End>;
}

/// Why a server's side could not be started, and what is known about it.
pub(crate) type NotStarted = (End, Box<Stopped>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The reading at the start of measuring has been taken.
    pub(crate) began: bool,
    /// The reading at the end of measuring has been taken.
    pub(crate) ended: bool,
    pub(crate) exited: bool,
    /// The server's CPU time, if it is sampled on this machine.
    pub(crate) used: Option<CpuTime>,
}

pub(crate) struct Subject<'a> {
    order: &'a Serve,
    child: Child,
    pid: u32,
    sampler: Sampler,
    proxies: Vec<Proxy<'a>>,
    /// Declared after the server so that they are dropped later: the server needs them.
    companions: Vec<Companion<'a>>,
    kept: &'a Kept,
    readings: Readings,
    before: Option<study::record::NetworkCounters>,
    standing: Standing,
    known: Stopped,
}

impl<'a> Subject<'a> {
    pub(crate) fn start(order: &'a Serve, ground: Ground<'a>) -> Result<Self, NotStarted> {
        let mut known = Stopped::default();
        match Self::start_all(order, ground, &mut known) {
            Ok(subject) => Ok(Self { known, ..subject }),
            Err(end) => Err((end, Box::new(known))),
        }
    }

    /// Starts companions, server and proxies; fills `known` even on failure.
    fn start_all(order: &'a Serve, ground: Ground<'a>, known: &mut Stopped) -> Result<Self, End> {
        known.subject.cpus.clone_from(&order.cpus);
        // Unlike the main port, it is not retried, as few servers have a second one.
        let second_port =
            ready::free_port().map_err(|error| failed(FailureKind::Start, format!("no second free port: {error}")))?;
        let plans = &order.point.companions;
        let companions =
            companion::start(plans, &order.companion_cpus, ground, &mut known.companions, &mut known.warnings)?;
        let beside = plans.iter().zip(&companions).map(|(plan, companion)| (plan.name.as_str(), companion.port));
        let beside = beside.collect::<Vec<_>>();
        let Started { child, pid, at: started, .. } = start_server(order, ground, second_port, &beside, known)?;
        let mut sampler = Sampler::new(Path::new("/proc"), pid, started, &order.cpus);
        if known.subject.container.is_some() && !sampler.reads_cgroup() {
            let text = "cannot read the control group of the container: its processes were counted one by one";
            known.warnings.push(WarningKind::NotRead.says(text));
        }
        let subject_port = known.subject.port.unwrap_or(0);
        let proxies = start_proxies(order, ground, (subject_port, second_port), &mut known.proxies)?;
        let before = network::read(Path::new(&format!("/proc/{pid}/net")));
        let standing = Standing {
            port: proxies.first().map_or(subject_port, |proxy| proxy.port),
            subject_port,
            admin_port: proxies.first().and_then(|proxy| proxy.admin_port),
        };
        let (kept, readings, known) = (ground.kept, Readings::default(), Stopped::default());
        Ok(Self { order, child, pid, sampler, proxies, companions, kept, readings, before, standing, known })
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        self.child.servers()
    }

    fn take_due(&mut self) {
        if self.readings.due().is_none_or(|due| clock::now() < due) {
            return;
        }
        if self.readings.begin.is_none() {
            self.readings.begin = Some(self.moment());
        } else {
            self.take_end();
        }
    }

    fn take_end(&mut self) {
        if self.readings.end.is_none() {
            let mut end = self.moment();
            self.sampler.add_waits(&mut end.subject);
            self.proxies.iter().zip(&mut end.proxies).for_each(|(proxy, reading)| proxy.sampler.add_waits(reading));
            self.readings.end = Some(end);
            self.samplers(Sampler::tick_in_full);
        }
    }

    fn moment(&mut self) -> UsageSnapshot {
        let subject = self.sampler.reading();
        let proxies = self.proxies.iter_mut().map(|proxy| proxy.sampler.reading()).collect::<Vec<_>>();
        let wire = if proxies.is_empty() { None } else { wire::read() };
        let companions = self.companions.iter_mut().map(|companion| companion.sampler.reading()).collect();
        UsageSnapshot { subject, proxies, companions, wire }
    }

    fn samplers(&mut self, look: fn(&mut Sampler)) {
        look(&mut self.sampler);
        self.proxies.iter_mut().for_each(|proxy| look(&mut proxy.sampler));
        self.companions.iter_mut().for_each(|companion| look(&mut companion.sampler));
    }

    fn failure(&mut self, patience: Duration) -> Option<Failure> {
        if let Some(exit) = self.child.wait(patience) {
            return Some(Failure { kind: FailureKind::Exited, message: self.child.exited(exit, "under load") });
        }
        let (proxies, companions) = (&mut self.proxies, &mut self.companions);
        proxies.iter_mut().find_map(Proxy::ended).or_else(|| companions.iter_mut().find_map(|one| one.ended(self.kept)))
    }
}

impl Side for Subject<'_> {
    fn standing(&self) -> Standing {
        self.standing
    }

    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        let proxies = self.proxies.iter().map(|proxy| proxy.started.child.pidfd());
        let companions = self.companions.iter().filter_map(Companion::child).map(Child::pidfd);
        std::iter::once(self.child.pidfd()).chain(proxies).chain(companions).collect()
    }

    fn prepare(&mut self) -> Option<Instant> {
        let is_near = |due: Instant| due.saturating_duration_since(clock::now()) < NEAR;
        let due = if self.readings.due().is_some_and(is_near) {
            self.samplers(Sampler::prepare);
            None
        } else {
            self.readings.look_between(clock::now());
            self.samplers(Sampler::tick);
            let proxies = self.proxies.iter().map(|proxy| proxy.sampler.due());
            let companions = self.companions.iter().map(|companion| companion.sampler.due());
            Some(proxies.chain(companions).fold(self.sampler.due(), Instant::min))
        };
        due.into_iter().chain(self.readings.due()).min()
    }

    fn look(&mut self, readable: &[bool]) -> Result<Seen, End> {
        self.take_due();
        let Readings { begin, end, .. } = &self.readings;
        let (began, ended) = (begin.is_some(), end.is_some());
        Ok(Seen { began, ended, exited: readable.contains(&true), used: self.sampler.used() })
    }

    fn announce(&mut self, moments: Announced) -> Result<(), End> {
        self.readings.begins = Some(clock::at_monotonic(moments.from_ns));
        self.readings.ends = moments.until_ns.map(clock::at_monotonic);
        // An announced moment may already have passed.
        self.take_due();
        Ok(())
    }

    fn measured(&mut self, span: Span) -> Result<(), End> {
        self.readings.span = Some((clock::at_monotonic(span.from_ns), clock::at_monotonic(span.until_ns)));
        self.take_due();
        self.take_end();
        Ok(())
    }

    /// Stops the proxies, then the server, then the companions.
    fn stop(mut self: Box<Self>, has_failed: bool) -> Result<Stopped, End> {
        let failure = self.failure(if has_failed { EXITING } else { Duration::ZERO });
        let Self { order, mut child, pid, sampler, proxies, companions, readings, before, mut known, .. } = *self;
        known.failure = failure;
        // The `/proc` directory of an ended server is gone. Ours has the same counters, unless the
        // server had its own network namespace.
        let after = network::read(Path::new(&format!("/proc/{pid}/net")));
        match before.zip(after.or_else(|| network::read(Path::new("/proc/self/net")))) {
            Some((before, after)) => known.network = network::between(before, after),
            None => known.warnings.push(WarningKind::NotRead.says("cannot read the counters of the network stack")),
        }
        let tables = readings.tables();
        for (index, proxy) in proxies.into_iter().enumerate() {
            let ends = readings.both(|moment| moment.proxies.get(index));
            known.warnings.extend(proxy.finish(ends, readings.span, &tables, &mut known.proxies[index]));
        }
        let timeout_ns = order.point.subject.stop_timeout_ns;
        known.warnings.extend(server::stop(&mut child, timeout_ns, "", &mut known.subject));
        for (index, companion) in companions.into_iter().enumerate() {
            let ends = readings.both(|moment| moment.companions.get(index));
            known.warnings.extend(companion.finish(ends, readings.span, &mut known.companions[index]));
        }
        let ends = readings.both(|moment| Some(&moment.subject));
        sampler.finish(ends, readings.span, &mut known.subject);
        Ok(known)
    }
}

fn start_server(
    order: &Serve,
    ground: Ground<'_>,
    second_port: u16,
    beside: &[(&str, u16)],
    known: &mut Stopped,
) -> Result<Started, End> {
    let plan = &order.point.subject;
    // Behind a proxy, the server is only reached from its own machine.
    let address = if order.point.proxies.is_empty() { order.address } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
    let server = Server {
        ground,
        command: &plan.command,
        container: plan.container.as_ref(),
        environment: &plan.environment,
        names: &|name| port_of(name, second_port, beside),
        prepare: &|_| Ok(()),
        directory: plan.directory.as_deref(),
        cpus: &order.cpus,
        address,
        port: plan.port,
        ready_timeout_ns: plan.ready_timeout_ns,
        stop_timeout_ns: plan.stop_timeout_ns,
        kind: FailureKind::Start,
        who: "",
    };
    let started = server.start(&mut known.subject);
    let inside = plan.container.as_ref().and_then(|container| container.publish);
    known.warnings.extend(inside.filter(|_| known.subject.container.is_some()).map(|inside| {
        let text = format!("published port: requests pass through the engine's port forwarding to port {inside} of the container, and the measurement includes it");
        WarningKind::PublishedPort.says(text)
    }));
    let started = started?;
    known.ready_ns = Some(started.ready_ns);
    Ok(started)
}

/// Port for a placeholder `{NAME_port}` in the server's command: its second port or a companion's.
pub(crate) fn port_of(name: &str, second_port: u16, beside: &[(&str, u16)]) -> Option<String> {
    let of = name.strip_suffix("_port")?;
    let port =
        if of == "second" { Some(second_port) } else { beside.iter().find(|(name, _)| *name == of).map(|of| of.1) };
    port.map(|port| port.to_string())
}

/// Starts the proxies and returns them in order, the generator's neighbor first. If one cannot be
/// started, those already running are stopped.
fn start_proxies<'a>(
    order: &'a Serve,
    ground: Ground<'a>,
    (subject_port, second_port): (u16, u16),
    known: &mut Vec<ProxyUse>,
) -> Result<Vec<Proxy<'a>>, End> {
    let plans = &order.point.proxies;
    *known = vec![ProxyUse::default(); plans.len()];
    let mut proxies = Vec::new();
    let mut left = order.proxy_cpus.as_slice();
    let mut next_port = subject_port;
    // The server's neighbor starts first, so that each proxy finds the next one listening.
    for ((nth, plan), used) in plans.iter().enumerate().zip(known).rev() {
        let (own, rest) = left.split_at((plan.cpus as usize).min(left.len()));
        left = rest;
        let place = ProxyContext {
            ground,
            levels: &order.point.factors,
            cpus: if plan.cpus == 0 { &order.cpus } else { own },
            address: if nth == 0 { order.address } else { IpAddr::V4(Ipv4Addr::LOCALHOST) },
            next_port,
            subject_port,
            second_port,
        };
        let proxy = Proxy::start(plan, &place, used)?;
        next_port = proxy.port;
        proxies.push(proxy);
    }
    proxies.reverse();
    Ok(proxies)
}

#[derive(Default)]
struct Readings {
    begin: Option<UsageSnapshot>,
    end: Option<UsageSnapshot>,
    /// Announced begin and end of measuring.
    begins: Option<Instant>,
    ends: Option<Instant>,
    span: Option<(Instant, Instant)>,
    /// Latest table before the end, when ungated generators may have disconnected.
    between: Option<(Instant, Option<wire::Table>)>,
}

impl Readings {
    fn both(&self, of: impl Fn(&UsageSnapshot) -> Option<&Reading>) -> Option<(Reading, Reading)> {
        self.begin.as_ref().and_then(&of).copied().zip(self.end.as_ref().and_then(&of).copied())
    }

    fn due(&self) -> Option<Instant> {
        match (&self.begin, &self.end) {
            (None, _) => self.begins,
            (_, None) => self.ends,
            _ => None,
        }
    }

    fn look_between(&mut self, now: Instant) {
        if self.begin.as_ref().is_some_and(|begin| begin.wire.is_some())
            && self.between.as_ref().is_none_or(|(last, _)| now.duration_since(*last) >= LOOK_AT_WIRE)
        {
            self.between = Some((now, wire::read()));
        }
    }

    fn tables(&self) -> Vec<(&wire::Table, &wire::Table)> {
        let Some(begin) = self.begin.as_ref().and_then(|begin| begin.wire.as_ref()) else { return Vec::new() };
        let end = self.end.as_ref().and_then(|end| end.wire.as_ref());
        let between = self.between.as_ref().and_then(|(_, table)| table.as_ref());
        [end, between].into_iter().flatten().map(|later| (begin, later)).collect()
    }
}

struct UsageSnapshot {
    subject: Reading,
    proxies: Vec<Reading>,
    companions: Vec<Reading>,
    /// Only read if there are proxies.
    wire: Option<wire::Table>,
}
