//! Starts a listening process, a server or proxy, and waits until its port accepts connections.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use study::plan::{CompanionPlan, ContainerPlan};
use study::record::{FailureKind, SubjectUse};
use study::{Warning, WarningKind, words};

use crate::container::{Images, Order};
use crate::end::{End, failed, unrunnable};
use crate::process::{Child, Launch, Supervisor};
use crate::ready::{self, NotReady};
use crate::{clock, listener};

const PORT_TRIES: u32 = 3;

pub(crate) type Fill<'a> = &'a dyn Fn(&str) -> String;

#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) supervisor: &'a Supervisor,
    pub(crate) kept: &'a Kept,
    pub(crate) directory: &'a Path,
    pub(crate) interrupted: &'a dyn Fn() -> bool,
}

#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) images: Images,
    /// Companions that keep running between trials, by name.
    pub(crate) companions: RefCell<BTreeMap<String, Running>>,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) plan: CompanionPlan,
    pub(crate) started: Started,
    pub(crate) used: SubjectUse,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.started.child.stop(Duration::from_nanos(self.plan.stop_timeout_ns));
    }
}

pub(crate) struct Server<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) command: &'a str,
    pub(crate) container: Option<&'a ContainerPlan>,
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// Values of placeholders in its command and environment, other than its port and address.
    pub(crate) names: &'a dyn Fn(&str) -> Option<String>,
    /// Called before each start, with a function that fills the placeholders.
    pub(crate) prepare: &'a dyn Fn(Fill<'_>) -> Result<(), String>,
    /// Relative to the directory of `ground`; `None`: that directory.
    pub(crate) directory: Option<&'a str>,
    pub(crate) cpus: &'a [u32],
    pub(crate) address: IpAddr,
    pub(crate) port: Option<u16>,
    pub(crate) ready_timeout_ns: u64,
    pub(crate) stop_timeout_ns: u64,
    pub(crate) kind: FailureKind,
    /// Prefix of messages, such as `proxy haproxy: `.
    pub(crate) who: &'a str,
}

#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) pid: u32,
    pub(crate) at: Instant,
    pub(crate) ready_ns: u64,
}

impl Server<'_> {
    /// Starts it and waits for its port; fills `used` even on failure.
    pub(crate) fn start(&self, used: &mut SubjectUse) -> Result<Started, End> {
        let Ground { supervisor, kept, interrupted, .. } = self.ground;
        let directory = self.ground.directory.join(self.directory.unwrap_or(""));
        let start_failed = |text: String| failed(self.kind, format!("{}{text}", self.who));
        let cannot_run = |text: String| failed(FailureKind::Unrunnable, format!("{}{text}", self.who));
        let image = kept.images.of(self.container, supervisor, used).map_err(cannot_run)?;
        let templates = words::arguments(self.command).map_err(|mistake| start_failed(mistake.to_string()))?;
        let mut tries = 1;
        loop {
            let port = match self.port {
                Some(port) if !ready::is_free(port) => {
                    return Err(start_failed(format!("port {port} is in use by another process")));
                }
                Some(port) => port,
                None => ready::free_port().map_err(|error| start_failed(format!("no free port: {error}")))?,
            };
            let address = SocketAddr::new(self.address, port);
            let fill = |text: &str| self.fill(text, port);
            (self.prepare)(&fill).map_err(start_failed)?;
            let mut words = templates.iter().map(|word| fill(word)).collect::<Vec<_>>();
            let environment = self.environment.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
            let name = supervisor.container_name();
            let contained = image.as_ref().map(|(plan, image)| (*plan, &**image, name.as_str()));
            if let Some((plan, image, name)) = contained {
                let variables = self.environment.keys().map(String::as_str).collect::<Vec<_>>();
                let (cpus, arguments) = (self.cpus, words.as_slice());
                let order = Order { plan, name, cpus, variables: &variables, address, arguments };
                words = image.words(&order).map_err(start_failed)?;
            }
            used.command.clone_from(&words);
            used.port = Some(port);
            let container = contained.map(|(_, image, name)| image.job(name));
            let launch = Launch::new(&words, &directory);
            let at = clock::now();
            let child = supervisor.spawn(Launch { cpus: self.cpus, environment: &environment, container, ..launch });
            let what = self.container.map_or(self.command, |container| &container.image);
            let mut child = child.map_err(|error| start_failed(format!("cannot start `{what}`: {error}")))?;
            let timeout = Duration::from_nanos(self.ready_timeout_ns);
            let contained = contained.map(|(plan, image, name)| ready::Contained {
                port: plan.publish.unwrap_or(port),
                pid: Box::new(|| image.pid(name)),
            });
            let reason = match ready::wait(&mut child, address, contained.as_ref(), timeout, interrupted) {
                Ok(()) => {
                    let ready_ns = clock::nanos(clock::now() - at);
                    child.contained = contained.and_then(|contained| (contained.pid)());
                    let pid = child.contained.unwrap_or(child.pid());
                    return Ok(Started { child, pid, at, ready_ns });
                }
                Err(reason) => reason,
            };
            let not_ready = |text: String| match self.kind {
                FailureKind::Start => failed(FailureKind::NotReady, text),
                _ => start_failed(text),
            };
            let elsewhere = || elsewhere(&listener::addresses(Path::new("/proc"), &child.family()), address);
            let mut end = match reason {
                NotReady::Interrupted => return Err(End::Interrupted),
                NotReady::Exited(exit) => {
                    let last_words = child.last_words();
                    let taken = last_words.contains("in use") || last_words.contains("EADDRINUSE");
                    if self.port.is_none() && taken && tries < PORT_TRIES {
                        tries += 1;
                        continue;
                    }
                    match unrunnable(&last_words) {
                        Some(reason) => cannot_run(reason),
                        None => start_failed(child.exited(exit, &format!("before port {port} accepted connections"))),
                    }
                }
                NotReady::Foreign => not_ready(format!(
                    "{address} is held by another process; the server did not listen within {timeout:?}{}",
                    elsewhere()
                )),
                NotReady::TimedOut => {
                    not_ready(format!("nothing listened on {address} within {timeout:?}{}", elsewhere()))
                }
            };
            // A container's first process ignores SIGTERM without a handler: not its fault.
            child.contained = contained.and_then(|contained| (contained.pid)());
            let stopped = child.stop(Duration::from_nanos(self.stop_timeout_ns));
            if let (End::Failed(failure), Some(text)) = (&mut end, stopped.ignored_sigterm()) {
                failure.message += &format!("; {text}");
            }
            used.exit = Some(stopped.to_string());
            used.stderr_tail = child.last_words();
            return Err(end);
        }
    }

    fn fill(&self, text: &str, port: u16) -> String {
        let inside = self.container.and_then(|container| container.publish);
        study::fill(text, |name| match name {
            // With its own network, a server is reached from outside it.
            "address" if inside.is_some() => Some(Ipv4Addr::UNSPECIFIED.to_string()),
            "address" => Some(self.address.to_string()),
            "port" => Some(inside.unwrap_or(port).to_string()),
            name => (self.names)(name),
        })
    }
}

pub(crate) fn stop(child: &mut Child, stop_timeout_ns: u64, who: &str, used: &mut SubjectUse) -> Option<Warning> {
    let exit = child.stop(Duration::from_nanos(stop_timeout_ns));
    used.exit = Some(exit.to_string());
    used.stderr_tail = child.last_words();
    exit.ignored_sigterm().map(|text| WarningKind::IgnoredSigterm.says(format!("{who}{text}")))
}

/// Hint for a process that listens on other addresses than the expected one.
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
