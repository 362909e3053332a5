//! Starts servers and their companions, and retries if a port was taken. Companions are processes that a server needs.
//! They start before it, and stop after it or run on for later trials.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use study::node_messages::Serve;
use study::plan::{CompanionPlan, ProcessPlan};
use study::record::{ContainerUse, Failure, FailureKind, ProxyUse, SubjectUse};
use study::{Warning, WarningKind, shell_words};

use crate::container::Images;
use crate::ports_and_readiness::{self, NotReady};
use crate::process_start_and_stop::{Child, Launch, Supervisor};
use crate::resource_sampler::Sampler;
use crate::trial_end_reason::{End, failed, unrunnable};
use crate::{lab_clocks, process_sockets};

const PORT_TRIES: u32 = 3;

pub(crate) type Fill<'a> = &'a dyn Fn(&str) -> String;

pub(crate) struct Ground<'a> {
    pub(crate) supervisor: Supervisor,
    pub(crate) kept: Kept,
    pub(crate) directory: &'a Path,
    pub(crate) interrupted: &'a dyn Fn() -> bool,
}

#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) images: Images,
    /// Companions that keep running between trials.
    pub(crate) companions: RefCell<Vec<Companion>>,
}

pub(crate) struct Companion {
    pub(crate) plan: CompanionPlan,
    pub(crate) started: Started,
    pub(crate) used: SubjectUse,
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.started.child.stop(self.started.stop_timeout);
    }
}

/// Companions of a trial, in the plan's order. Dropping this value returns reusable ones to [`Kept`].
pub(crate) struct Companions<'a> {
    pub(crate) running: Vec<Companion>,
    kept: &'a Kept,
}

impl<'a> Companions<'a> {
    /// Ends kept companions that the trial does not need, then starts the missing ones. Fills `known` even on failure.
    pub(crate) fn start(order: &Serve, ground: &'a Ground<'_>, known: &mut Vec<ProxyUse>) -> Result<Self, End> {
        let plans = &order.point.companions;
        *known = vec![ProxyUse::default(); plans.len()];
        let mut left = order.companion_cpus.as_slice();
        for (plan, used) in plans.iter().zip(&mut *known) {
            used.name.clone_from(&plan.name);
            used.used.cpus = left.split_off(..plan.cpus as usize).unwrap_or_default().to_vec();
        }
        let mut running = ground.kept.companions.take();
        running.retain_mut(|kept| {
            let is_same = |(plan, used): (&_, &ProxyUse)| kept.plan == *plan && kept.used.cpus == used.used.cpus;
            plans.iter().zip(&*known).any(is_same) && kept.started.child.wait(Duration::ZERO).is_none()
        });
        let mut companions = Self { running, kept: &ground.kept };
        for (nth, (plan, used)) in plans.iter().zip(known).enumerate() {
            let companion = match companions.running.iter().position(|kept| kept.plan == *plan) {
                Some(at) => companions.running.remove(at),
                None => {
                    let (who, cpus) = (format!("companion `{}`: ", plan.name), used.used.cpus.clone());
                    let (cpus, kind, who) = (&cpus, FailureKind::Companion, &who);
                    let server = Server { cpus, kind, who, ..Server::new(&plan.process, ground) };
                    let started = server.start(&mut used.used)?;
                    used.ready_ns = Some(started.ready_ns);
                    Companion { plan: plan.clone(), started, used: used.used.clone() }
                }
            };
            used.used = companion.used.clone();
            companions.running.insert(nth, companion);
        }
        Ok(companions)
    }
}

impl Drop for Companions<'_> {
    fn drop(&mut self) {
        self.running.retain(|companion| !companion.plan.fresh);
        self.kept.companions.borrow_mut().append(&mut self.running);
    }
}

pub(crate) struct Server<'a> {
    pub(crate) ground: &'a Ground<'a>,
    pub(crate) plan: &'a ProcessPlan,
    /// Returns the value of a placeholder in the command or environment, other than the server's port and address.
    pub(crate) names: &'a dyn Fn(&str) -> Option<String>,
    /// Prepares each start; receives a function that fills in placeholders.
    pub(crate) prepare: &'a dyn Fn(Fill<'_>) -> Result<(), String>,
    pub(crate) cpus: &'a [u32],
    pub(crate) address: IpAddr,
    pub(crate) kind: FailureKind,
    /// Prefix of messages, such as `proxy haproxy: `; empty for the server.
    pub(crate) who: &'a str,
}

pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) pid: u32,
    at: Instant,
    /// Time from the start of the process until its port accepts connections, ns.
    pub(crate) ready_ns: u64,
    pub(crate) port: u16,
    kind: FailureKind,
    who: String,
    stop_timeout: Duration,
}

impl Started {
    pub(crate) fn sampler(&self, used: &SubjectUse, warnings: &mut Vec<Warning>) -> Sampler {
        let mut sampler = Sampler::new(Path::new("/proc"), self.pid, self.at, &used.cpus);
        if used.container.is_some() && !sampler.reads_cgroup() {
            let text = "cannot read the control group of the container: its processes were counted one by one";
            warnings.push(WarningKind::NotRead.says(format!("{}{text}", self.who)));
        }
        sampler
    }

    /// Waits up to `patience` for the process to exit, which is a failure; `None` if it still runs.
    pub(crate) fn failure(&mut self, patience: Duration) -> Option<Failure> {
        let exit = self.child.wait(patience)?;
        let kind = if self.kind == FailureKind::Start { FailureKind::Exited } else { self.kind };
        Some(Failure { kind, message: format!("{}{}", self.who, self.child.exited(exit, "under load")) })
    }

    /// Stops the process and writes to `used` how it ended. Returns a warning if it had to be killed.
    pub(crate) fn stop(&mut self, used: &mut SubjectUse) -> Option<Warning> {
        let exit = self.child.stop(self.stop_timeout);
        used.exit = Some(exit.to_string());
        used.stderr_tail = self.child.last_words();
        exit.ignored_sigterm().map(|text| WarningKind::IgnoredSigterm.says(format!("{}{text}", self.who)))
    }
}

impl<'a> Server<'a> {
    /// Describes a server on any CPU whose only placeholders are its port and address.
    pub(crate) fn new(plan: &'a ProcessPlan, ground: &'a Ground<'a>) -> Self {
        let (address, kind) = (IpAddr::V4(Ipv4Addr::LOCALHOST), FailureKind::Start);
        Self { ground, plan, names: &|_| None, prepare: &|_| Ok(()), cpus: &[], address, kind, who: "" }
    }

    /// Starts the process and waits for its port. Fills `used` even on failure.
    pub(crate) fn start(&self, used: &mut SubjectUse) -> Result<Started, End> {
        let Self { plan, ground, .. } = self;
        let supervisor = &ground.supervisor;
        let directory = ground.directory.join(plan.directory.as_deref().unwrap_or(""));
        let start_failed = |text: String| failed(self.kind, format!("{}{text}", self.who));
        let cannot_run = |text: String| failed(FailureKind::Unrunnable, format!("{}{text}", self.who));
        let find = |plan| ground.kept.images.find(plan, supervisor).map(|image| (plan, image));
        let image = plan.container.as_ref().map(find).transpose().map_err(cannot_run)?;
        used.container = image.as_ref().map(|(plan, image)| {
            let (engine, image_id) = (image.engine.clone(), image.id.clone());
            let (image, published) = (plan.image.clone(), plan.publish);
            Box::new(ContainerUse { engine, image, image_id, published, cgroup: None })
        });
        let templates = shell_words::arguments(&plan.command).map_err(|mistake| start_failed(mistake.to_string()))?;
        let stop_timeout = Duration::from_nanos(plan.stop_timeout_ns);
        let mut tries = 1;
        loop {
            let port = match plan.port {
                Some(port) if !ports_and_readiness::is_free(port) => {
                    return Err(start_failed(format!("port {port} is in use by another process")));
                }
                Some(port) => port,
                None => ports_and_readiness::free_port().map_err(|why| start_failed(format!("no free port: {why}")))?,
            };
            let address = SocketAddr::new(self.address, port);
            let fill = |text: &str| self.fill(text, port);
            (self.prepare)(&fill).map_err(start_failed)?;
            let mut words = templates.iter().map(|word| fill(word)).collect::<Vec<_>>();
            let environment = plan.environment.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
            let name = supervisor.container_name();
            if let Some((plan, image)) = &image {
                let started = image.words(plan, &name, self.cpus, &self.plan.environment, address, &words);
                words = started.map_err(start_failed)?;
            }
            used.command.clone_from(&words);
            used.port = Some(port);
            let container = image.as_ref().map(|(_, image)| image.job(&name));
            let launch = Launch::new(&words, &directory);
            let at = lab_clocks::now();
            let child = supervisor.spawn(Launch { cpus: self.cpus, environment: &environment, container, ..launch });
            let what = plan.container.as_ref().map_or(&plan.command, |container| &container.image);
            let mut child = child.map_err(|error| start_failed(format!("cannot start `{what}`: {error}")))?;
            let timeout = Duration::from_nanos(plan.ready_timeout_ns);
            let first_inside = || image.as_ref().and_then(|(_, image)| image.pid(&name));
            let port_inside = image.as_ref().and_then(|(container, _)| container.publish).unwrap_or(port);
            let ready =
                ports_and_readiness::wait(&mut child, address, port_inside, &first_inside, timeout, ground.interrupted);
            let Err(reason) = ready else {
                let ready_ns = lab_clocks::nanos(lab_clocks::now() - at);
                child.contained = first_inside();
                let pid = child.contained.unwrap_or(child.pid());
                let (kind, who) = (self.kind, self.who.to_owned());
                return Ok(Started { child, pid, at, ready_ns, port, kind, who, stop_timeout });
            };
            let kind = if self.kind == FailureKind::Start { FailureKind::NotReady } else { self.kind };
            let not_ready = |text: String| failed(kind, format!("{}{text}", self.who));
            let hint = || elsewhere(&process_sockets::listening_addresses("/proc".as_ref(), &child.family()), address);
            let mut end = match reason {
                NotReady::Interrupted => return Err(End::Interrupted),
                NotReady::Exited(exit) => {
                    let last_words = child.last_words();
                    let taken = last_words.contains("in use") || last_words.contains("EADDRINUSE");
                    if plan.port.is_none() && taken && tries < PORT_TRIES {
                        tries += 1;
                        continue;
                    }
                    let exited = child.exited(exit, &format!("before port {port} accepted connections"));
                    unrunnable(&last_words).map_or_else(|| start_failed(exited), cannot_run)
                }
                NotReady::Foreign => not_ready(format!(
                    "{address} is held by another process; the server did not listen within {timeout:?}{}",
                    hint()
                )),
                NotReady::TimedOut => not_ready(format!("nothing listened on {address} within {timeout:?}{}", hint())),
            };
            // The first process of a container ignores SIGTERM unless it has a handler.
            child.contained = first_inside();
            let stopped = child.stop(stop_timeout);
            if let (End::Failed(failure), Some(text)) = (&mut end, stopped.ignored_sigterm()) {
                failure.message += &format!("; {text}");
            }
            used.exit = Some(stopped.to_string());
            used.stderr_tail = child.last_words();
            return Err(end);
        }
    }

    fn fill(&self, text: &str, port: u16) -> String {
        let inside = self.plan.container.as_ref().and_then(|container| container.publish);
        study::fill(text, |name| match name {
            // A server with its own network is reached from outside that network, so it must listen on all addresses.
            "address" if inside.is_some() => Some(Ipv4Addr::UNSPECIFIED.to_string()),
            "address" => Some(self.address.to_string()),
            "port" => Some(inside.unwrap_or(port).to_string()),
            name => (self.names)(name),
        })
    }
}

/// Hint that names the addresses on which a process listens instead of `wanted`; empty if there are none.
fn elsewhere(addresses: &[SocketAddr], wanted: SocketAddr) -> String {
    if addresses.is_empty() {
        return String::new();
    }
    let template = if addresses.iter().any(|address| address.port() == wanted.port()) { "address" } else { "port" };
    let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!("; it listens on {addresses}: does its command pass `{{{template}}}` on?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_names_the_other_addresses() {
        let [wanted, other, third] =
            ["10.0.0.1:8080", "127.0.0.1:8080", "[::]:8082"].map(|address| address.parse().unwrap());
        assert_eq!(elsewhere(&[], wanted), "");
        assert_eq!(elsewhere(&[third], wanted), "; it listens on [::]:8082: does its command pass `{port}` on?");
        assert_eq!(
            elsewhere(&[other, third], wanted),
            "; it listens on 127.0.0.1:8080, [::]:8082: does its command pass `{address}` on?"
        );
    }
}
