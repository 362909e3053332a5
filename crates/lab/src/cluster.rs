//! A lab with several machines: one runs the server, the others run generators. The lab sends orders to one node per
//! machine, through a pipe to a child process, an ssh session or an encrypted connection.

pub mod doctor;
pub mod file;
pub mod join;
mod launch_by_mpirun;
mod launch_nodes;
mod measure_network_paths;
mod node_channel;
pub mod order_execution;
mod remote_sides;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use study::generator_messages::{self, Heard, Told};
use study::node_messages::{BEAT, Order, Said, Serve, Stopped};
use study::plan::LoadPlan;
use study::record::{Agent, BuildOutcome, Cpu, Failure, FailureKind, Finding, Measurement, Node, Probe, Role};
use study::spec::{LoadSpec, Part, Protocol, Stop, Warmup};

use crate::load_side::{Engine, Load};
pub use crate::process_start_and_stop::TICKET;
use crate::process_start_and_stop::{Supervisor, wait_readable};
use crate::trial_end_reason::{End, failed};
use crate::{generator_process, lab_clocks};
use file::{Hosts, Launcher};
pub use launch_by_mpirun::rank;
use node_channel::Link;
use remote_sides::{RemoteGenerator, RemoteServer};

const MARGIN: Duration = Duration::from_secs(30);

const DRIFT: Duration = Duration::from_secs(2);

/// Nodes on the machines of the server and the generators, ready for orders. Dropping the cluster ends them.
pub struct Cluster {
    /// The node on the server's machine.
    pub subject: Member,
    /// Nodes on the machines of the generators.
    pub generators: Generators,
}

/// Nodes on the machines of the generators. Dropping this value ends them.
pub struct Generators {
    members: Vec<Member>,
    /// Launcher of the nodes that do not set their own; never [`Launcher::Auto`].
    pub launcher: Launcher,
    /// Command that started several nodes at once, if any. It ends by itself after the nodes have ended.
    _gang: Option<launch_by_mpirun::Gang>,
    interrupted: fn() -> bool,
    /// Owner of the processes that run the nodes. It is the last field, so that it is dropped last.
    _supervisor: Supervisor,
}

/// A node and the machine that it runs on. Dropping the member ends the node.
pub struct Member {
    node: Node,
    boot_id: String,
    pub(crate) address: IpAddr,
    /// CPUs that the node may use, with their topology.
    pub cpus: Vec<Cpu>,
    link: Link,
}

impl Member {
    /// Name and CPU count of the machine, for the user.
    pub fn words(&self) -> String {
        format!("{} ({} CPUs)", self.node.name, self.cpus.len())
    }

    fn cpu_numbers(&self) -> Vec<u32> {
        self.cpus.iter().map(|cpu| cpu.index).collect()
    }
}

/// Settings and callbacks for starting nodes.
pub struct Reach<'a> {
    /// Path of the quintain binary.
    pub exe: PathBuf,
    /// Base of relative paths in commands, for machines without a directory of their own.
    pub directory: PathBuf,
    /// SHA-256 of the binary, in hexadecimal. Nodes must run the same build.
    pub build: String,
    /// Returns whether the user has asked to abandon the start, or later any other work of the nodes.
    pub interrupted: fn() -> bool,
    /// Returns the value of an environment variable; `None` if it is not set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Receives messages for the user.
    pub note: &'a dyn Fn(&str),
}

/// Why a cluster could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// One line per machine that is missing or unsuitable, or why nothing can be started on this one.
    #[error("{}", .0.join("\n"))]
    Machines(Vec<String>),
    /// [`Reach::interrupted`] returned true.
    #[error("interrupted")]
    Interrupted,
}

fn start(hosts: &Hosts, reach: &Reach<'_>) -> Result<(Option<Member>, Generators), ClusterError> {
    let no_watchdog = |error| ClusterError::Machines(vec![format!("cannot run the watchdog: {error}")]);
    let supervisor = Supervisor::start(&reach.exe).map_err(no_watchdog)?;
    let mut hosts = hosts.clone();
    launch_nodes::resolve(&mut hosts, reach);
    if hosts.deploy {
        launch_nodes::deploy(&hosts, reach, &supervisor)?;
    }
    let (mut members, gang) = launch_nodes::all(&hosts, reach, &supervisor)?;
    let at = members.iter().position(|member| member.node.role == Role::Subject);
    let subject = at.map(|at| members.remove(at));
    let (launcher, interrupted) = (hosts.launcher, reach.interrupted);
    Ok((subject, Generators { members, launcher, _gang: gang, interrupted, _supervisor: supervisor }))
}

impl Cluster {
    /// Starts all nodes and measures network paths. The calling thread must outlive the cluster. Fails with all errors.
    pub fn start(hosts: &Hosts, reach: &Reach<'_>) -> Result<Self, ClusterError> {
        let (subject, generators) = start(hosts, reach)?;
        let subject = subject.expect("`file::STUDY` needs a machine with the role `subject`");
        let mut cluster = Self { subject, generators };
        let paths = measure_network_paths::measure(&cluster).map_err(|end| match end {
            End::Interrupted => ClusterError::Interrupted,
            End::Lost(text) => ClusterError::Machines(vec![cluster.explain_loss(&text)]),
            end => ClusterError::Machines(vec![end.to_string()]),
        })?;
        cluster.generators.members.iter_mut().zip(paths).for_each(|(member, path)| member.node.link = Some(path));
        Ok(cluster)
    }

    /// Prefixes an error with the machine that fell silent first, because mpirun ends all other nodes after a loss.
    pub(crate) fn explain_loss(&self, text: &str) -> String {
        let nodes = self.members().map(|member| (member.link.name.as_str(), member.link.silent()));
        silent_first(nodes, text)
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        std::iter::once(&self.subject).chain(&self.generators.members)
    }

    /// The machines in the form stored in records, the server's machine first.
    pub fn nodes(&self) -> Vec<Node> {
        self.members().map(|member| member.node.clone()).collect()
    }

    /// Compares the machines' clocks, paths and settings. Fails with one line if interrupted or a machine is lost.
    pub fn examine(&self) -> Result<Vec<Finding>, String> {
        let look = || {
            let one = |member: &Member| Ok((lab_clocks::monotonic_ns(), member.link.offset()?));
            self.members().map(one).collect::<Result<Vec<_>, End>>().map_err(|end| end.to_string())
        };
        let first = look()?;
        std::thread::sleep(DRIFT);
        let second = look()?;
        let looked = self.members().zip(first.into_iter().zip(second));
        let looked = looked.map(|(member, ((at_ns, before), (later_ns, after)))| {
            let ns = later_ns.saturating_sub(at_ns) as f64;
            let ppm = |ns_apart: f64| ns_apart / ns * 1e6;
            doctor::ExaminedNode {
                node: member.node.clone(),
                boot_id: member.boot_id.clone(),
                clock_error_ns: before.error_ns.min(after.error_ns),
                drift_ppm: (ppm((after.ns - before.ns) as f64), ppm((before.error_ns + after.error_ns) as f64)),
            }
        });
        Ok(doctor::examine(&looked.collect::<Vec<_>>()))
    }

    /// Explains why this cluster cannot run the load; `None` if it can.
    pub fn refuses(&self, load: &LoadPlan) -> Option<String> {
        refuses(load.protocol, load.stop, load.warmup, self.generators.members.len())
    }

    pub(crate) fn probe(&self, cpus: &[u32]) -> Result<Vec<Probe>, End> {
        let pick = |said| if let Said::Probed(probes) = said { Some(probes) } else { None };
        self.subject.link.ask(&Order::Probe { cpus: cpus.to_vec() }, pick)
    }

    pub(crate) fn build(&self, command: &str, directory: Option<&str>) -> Option<BuildOutcome> {
        let (directory, cpus) = (directory.map(str::to_owned), self.subject.cpu_numbers());
        let order = Order::Build { command: command.to_owned(), directory, cpus };
        let pick = |said| if let Said::Built(outcome) = said { Some(outcome) } else { None };
        match self.subject.link.ask(&order, pick) {
            Ok(outcome) => Some(outcome),
            Err(End::Interrupted) => None,
            Err(end) => Some(BuildOutcome::Failed { output_tail: end.to_string() }),
        }
    }

    /// Starts spinners on the CPUs in `subject` and on all generator machines, or checks that they are still running.
    pub(crate) fn spin(&self, subject: &[u32]) -> Result<(), String> {
        for member in self.members() {
            let cpus = match member.node.role {
                Role::Subject => subject.to_vec(),
                Role::Load => member.cpu_numbers(),
            };
            let pick = |said| if let Said::Spinning(why) = said { Some(why) } else { None };
            match member.link.ask(&Order::Spin { cpus }, pick) {
                Ok(Some(why)) => return Err(format!("{}: {why}", member.node.name)),
                // The caller notices an interruption before the next trial.
                Ok(None) | Err(End::Interrupted) => {}
                Err(end) => return Err(end.to_string()),
            }
        }
        Ok(())
    }

    pub(crate) fn serve(&self, order: &Serve, known: &mut Stopped) -> Result<RemoteServer<'_>, End> {
        RemoteServer::start(&self.subject.link, order, known)
    }
}

impl Generators {
    /// Starts nodes on all `load` machines. The calling thread must outlive them. Fails with all errors.
    pub fn start(hosts: &Hosts, reach: &Reach<'_>) -> Result<Self, ClusterError> {
        let load = hosts.hosts.iter().filter(|host| host.role == Role::Load).cloned().collect();
        start(&Hosts { hosts: load, ..hosts.clone() }, reach).map(|(_, generators)| generators)
    }

    /// Names and CPU counts of the machines, as a list for the user.
    pub fn words(&self) -> String {
        self.members.iter().map(Member::words).collect::<Vec<_>>().join(", ")
    }

    /// Loads a running server with `spec.threads` workers per machine. Returns the combined measurement and one per
    /// generator. Requires that [`refuses`] returned `None`. Fails with `None` if interrupted, else with the reason.
    pub fn run(
        &self,
        spec: &LoadSpec,
        progress: &mut dyn FnMut(generator_messages::Progress),
    ) -> Result<(Measurement, Vec<Agent>), Option<Failure>> {
        let patience = generator_process::patience(spec, MARGIN);
        let done = self.load(Some(spec.threads), spec);
        done.and_then(|load| self.finish(load, patience, progress)).map_err(|end| match end {
            End::Interrupted => None,
            End::Failed(failure) => Some(failure),
            End::Lost(message) => Some(Failure { kind: FailureKind::Node, message }),
        })
    }

    /// Divides a load among the generators. `threads` is the number of workers per machine; `None` uses the CPU count
    /// of the smallest machine, but at most one worker per client.
    pub(crate) fn load(&self, threads: Option<u32>, whole: &LoadSpec) -> Result<Load<'_>, End> {
        // A worker without a client would only spin.
        let count = self.members.len().min(whole.clients.max(1) as usize);
        let members = &self.members[..count];
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let fewest = members.iter().map(|member| member.cpus.len()).min().unwrap_or(1);
        let fewest = u32::try_from(fewest).unwrap_or(u32::MAX);
        let threads = threads.unwrap_or(fewest.min(whole.clients / count)).max(1);
        let mut engines: Vec<Box<dyn Engine + '_>> = Vec::new();
        let mut error_ns = 0;
        for (nth, member) in (0..).zip(members) {
            // All generators have the same number of workers: a generator with more workers would carry more load.
            let part = (count > 1).then_some(Part { first: nth * threads, of: count * threads });
            let spin_ns = generator_process::spin_ns(threads <= fewest, whole.arrivals);
            let spec = LoadSpec { threads, spin_ns, part, gate: part.is_some(), ..whole.clone() };
            let generator = RemoteGenerator::start(member, spec)?;
            error_ns = error_ns.max(generator.offset.error_ns);
            engines.push(Box::new(generator));
        }
        Ok(Load::new(engines, Duration::from_nanos(2 * error_ns)))
    }

    fn finish(
        &self,
        mut load: Load<'_>,
        patience: Duration,
        progress: &mut dyn FnMut(generator_messages::Progress),
    ) -> Result<(Measurement, Vec<Agent>), End> {
        let deadline = lab_clocks::now() + patience;
        while !load.is_done() {
            if (self.interrupted)() {
                return Err(End::Interrupted);
            }
            if lab_clocks::now() >= deadline {
                return Err(failed(FailureKind::Generator, "the generators did not end in time"));
            }
            let readable = wait_readable(&load.handles(), Duration::from_millis(50));
            for event in load.hear(&readable)? {
                match event {
                    Told::Measured(_) => load.tell(Heard::Read {})?,
                    Told::Progress(live) => progress(live),
                    _ => {}
                }
            }
        }
        load.end(Duration::from_secs(1))
    }
}

/// Prefixes `text` with the name of the machine that has been silent the longest, if its silence exceeds two beats.
fn silent_first<'a>(nodes: impl Iterator<Item = (&'a str, Duration)>, text: &str) -> String {
    match nodes.max_by_key(|(_, silent)| *silent) {
        Some((name, silent)) if silent > BEAT * 2 && !text.starts_with(&format!("lost {name}:")) => {
            format!("lost {name}: no word for {:.1} s; then {text}", silent.as_secs_f64())
        }
        _ => text.to_owned(),
    }
}

/// SHA-256 of a file, in hexadecimal. Fails if the file cannot be read.
pub fn hash(path: &Path) -> std::io::Result<String> {
    Ok(join::fingerprint(&std::fs::read(path)?))
}

/// The kernel's boot ID, unique to one boot of one machine. Empty if it cannot be read.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Explains why a load cannot be divided among this many generators; `None` if it can.
pub fn refuses(protocol: Protocol, stop: Stop, warmup: Warmup, generators: usize) -> Option<String> {
    let ends_by_time = matches!((stop, warmup), (Stop::Duration { .. }, Warmup::DurationNs(_)));
    let is_divisible = protocol.dialect().is_none() && ends_by_time;
    (generators > 1 && !is_divisible).then(|| {
        format!(
            "this load cannot be divided among {generators} generators (needs ping-pong, HTTP or a journey, with `stop` and `warmup` as durations): \
             use one `load` machine"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_machine_that_fell_silent_first() {
        let said = |silent_ms: u64| {
            let nodes = [("l1 (10.0.0.2)", 300), ("l2 (10.0.0.3)", silent_ms), ("l3 (10.0.0.4)", 0)];
            let nodes = nodes.map(|(name, ms)| (name, Duration::from_millis(ms)));
            silent_first(nodes.into_iter(), "lost l1 (10.0.0.2): its connection ended")
        };
        assert_eq!(said(4_200), "lost l2 (10.0.0.3): no word for 4.2 s; then lost l1 (10.0.0.2): its connection ended");
        assert_eq!(said(900), "lost l1 (10.0.0.2): its connection ended", "nodes speak once a second");
        let alone = [("l1", Duration::from_secs(5))].into_iter();
        assert_eq!(silent_first(alone, "lost l1: no word for 5.0 s"), "lost l1: no word for 5.0 s");
    }
}
