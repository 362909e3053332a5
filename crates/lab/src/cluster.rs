//! Several machines: the server on one, a generator on each of the others, one lab that tells them what to do.
//!
//! A [`Cluster`] is a [node] on each machine, reached through a pipe: that of a child process, of an ssh session, or of an encrypted connection.
//! The lab sees nodes and nothing of how they came to be.

pub mod doctor;
pub mod file;
mod gang;
pub mod interface;
mod launch;
mod link;
pub mod node;
mod paths;
mod sides;
pub mod tls;

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use study::node::{BEAT, Hello, Order, Said, Serve};
use study::plan::LoadPlan;
use study::record::{Agent, BuildOutcome, Cpu, Failure, FailureKind, Finding, Measurement, Node, Probe, Role};
use study::seam::{self, Heard};
use study::spec::{Arrivals, LoadSpec, Part, Stop, Target, Warmup};

use crate::end::{End, failed};
use crate::lines::Writer;
use crate::load::{Engine, Event, Load, broken};
pub use crate::process::TICKET;
use crate::process::{Supervisor, wait_readable};
use crate::{clock, generator};
use file::{Hosts, Launcher};
pub use gang::rank;
use link::Link;

/// The open loop polls for so long before each intended send, where workers have their processors for themselves, ns.
const SPIN_NS: u64 = 100_000;

/// What a load of `Generators::run` may take beside the load.
const MARGIN: Duration = Duration::from_secs(30);

/// The drift of clocks is looked at over so long.
const DRIFT: Duration = Duration::from_secs(2);

/// A node on the server's machine and on those of generators, each ready for orders. They end when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    subject: Member,
    generators: Generators,
}

/// Nodes on machines that load. They end when this is dropped.
#[derive(Debug)]
pub struct Generators {
    members: Vec<Member>,
    /// What started the nodes.
    launcher: Launcher,
    /// Ends the beats before the nodes.
    _beats: mpsc::Sender<()>,
    /// Ends by itself when the nodes have.
    _gang: Option<gang::Gang>,
    /// Outlives what it has started.
    _supervisor: Supervisor,
}

/// A machine with its node.
#[derive(Debug)]
struct Member {
    name: String,
    address: IpAddr,
    /// The processors that may be used.
    cpus: Vec<Cpu>,
    hello: Hello,
    link: Link,
    /// The path to the server's machine.
    path: Option<study::record::Link>,
}

/// What a lab needs to reach its machines.
pub struct Reach<'a> {
    /// The quintain binary.
    pub exe: PathBuf,
    /// What paths in commands are relative to, on machines that are not told otherwise.
    pub directory: PathBuf,
    /// SHA-256 of the binary, hexadecimal: nodes must have the same.
    pub build: String,
    /// Whether to give up.
    pub interrupted: &'a dyn Fn() -> bool,
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Is told what the user should know meanwhile.
    pub note: &'a dyn Fn(&str),
}

/// Why there is no cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Nothing may be started without a watchdog.
    #[error("cannot run the watchdog: {0}")]
    Watchdog(std::io::Error),
    /// One line for each machine that is not there, or not as it must be.
    #[error("{}", .0.join("\n"))]
    Machines(Vec<String>),
    /// [`Reach::interrupted`] said so.
    #[error("interrupted")]
    Interrupted,
}

/// Starts the nodes.
fn start(hosts: &Hosts, reach: &Reach<'_>) -> Result<(Option<Member>, Generators), ClusterError> {
    let supervisor = Supervisor::start(&reach.exe).map_err(ClusterError::Watchdog)?;
    let mut hosts = hosts.clone();
    launch::resolve(&mut hosts, reach);
    if hosts.deploy {
        launch::deploy(&hosts, reach, &supervisor)?;
    }
    let (mut members, gang) = launch::all(&hosts, reach, &supervisor)?;
    let beats = beats(members.iter().map(|(_, member)| member.link.writer()).collect());
    let at = members.iter().position(|(role, _)| *role == Role::Subject);
    let subject = at.map(|at| members.remove(at).1);
    let members = members.into_iter().map(|(_, member)| member).collect();
    let launcher = hosts.launcher;
    Ok((subject, Generators { members, launcher, _beats: beats, _gang: gang, _supervisor: supervisor }))
}

impl Cluster {
    /// Starts a node on every machine and waits until all are there. Call it from a thread that lives as long as the cluster.
    ///
    /// # Errors
    /// [`ClusterError`]: all that is wrong with any of them.
    pub fn start(hosts: &Hosts, reach: &Reach<'_>) -> Result<Self, ClusterError> {
        let (subject, generators) = start(hosts, reach)?;
        let Some(subject) = subject else {
            return Err(ClusterError::Machines(vec!["no machine has the role `subject`".to_owned()]));
        };
        let mut cluster = Self { subject, generators };
        cluster.measure_links(reach)?;
        Ok(cluster)
    }

    /// Measures the path of each generator's machine to the server's, one after the other: first how fast it is, then how far.
    fn measure_links(&mut self, reach: &Reach<'_>) -> Result<(), ClusterError> {
        let measured = paths::measure(self, reach.interrupted);
        let paths = measured.map_err(|end| match self.explain(end) {
            End::Interrupted => ClusterError::Interrupted,
            End::Lost(text) => ClusterError::Machines(vec![text]),
            End::Failed(failure) => ClusterError::Machines(vec![failure.message]),
        })?;
        for (member, path) in self.generators.members.iter_mut().zip(paths) {
            member.path = Some(path);
        }
        Ok(())
    }

    /// Names the machine that fell silent first. mpirun ends all nodes when it has lost one, and then a healthy one is missed first.
    pub(crate) fn explain(&self, end: End) -> End {
        let End::Lost(text) = end else { return end };
        let nodes = self.members().map(|(_, member)| (member.link.name.as_str(), member.link.silent()));
        End::Lost(silent_first(nodes, text))
    }

    fn members(&self) -> impl Iterator<Item = (Role, &Member)> {
        let load = self.generators.members.iter().map(|member| (Role::Load, member));
        std::iter::once((Role::Subject, &self.subject)).chain(load)
    }

    /// Its machines, the server's first, as a run keeps them.
    pub fn nodes(&self) -> Vec<Node> {
        let node = |(role, member): (Role, &Member)| {
            let address = member.address.to_string();
            let mine = member.hello.interfaces.iter().find(|(_, addresses)| addresses.contains(&address));
            Node {
                name: member.name.clone(),
                role,
                host: member.hello.host.clone(),
                doctor: member.hello.doctor.clone(),
                build: member.hello.build.clone(),
                interface: mine.map(|(interface, _)| interface.clone()),
                link: member.path,
                address,
            }
        };
        self.members().map(node).collect()
    }

    /// Looks at the machines together: their clocks over a while, their paths, what differs.
    ///
    /// # Errors
    /// One line: a machine was lost meanwhile, or [`Reach::interrupted`] said so.
    pub fn examine(&self, interrupted: &dyn Fn() -> bool) -> Result<Vec<Finding>, String> {
        let words = |end| match end {
            End::Lost(why) => why,
            End::Interrupted => "interrupted".to_owned(),
            End::Failed(failure) => failure.message,
        };
        let look = || {
            let one = |(_, member): (Role, &Member)| Ok((clock::monotonic_ns(), member.link.offset(interrupted)?));
            self.members().map(one).collect::<Result<Vec<_>, End>>().map_err(words)
        };
        let first = look()?;
        std::thread::sleep(DRIFT);
        let second = look()?;
        let looked = self.members().zip(self.nodes()).zip(first.into_iter().zip(second));
        let looked = looked.map(|(((_, member), node), ((at_ns, before), (later_ns, after)))| {
            let ns = later_ns.saturating_sub(at_ns) as f64;
            let ppm = |ns_apart: f64| ns_apart / ns * 1e6;
            doctor::Looked {
                node,
                boot_id: member.hello.boot_id.clone(),
                clock_error_ns: before.error_ns.min(after.error_ns),
                drift_ppm: (ppm((after.ns - before.ns) as f64), ppm((before.error_ns + after.error_ns) as f64)),
            }
        });
        Ok(doctor::examine(&looked.collect::<Vec<_>>()))
    }

    /// What started its nodes, those that have a launcher of their own aside; never [`Launcher::Auto`].
    pub fn launcher(&self) -> Launcher {
        self.generators.launcher
    }

    /// Processors of the server's machine.
    pub fn subject_cpus(&self) -> &[Cpu] {
        &self.subject.cpus
    }

    /// Why a load cannot be had of this cluster.
    pub fn refuses(&self, load: &LoadPlan) -> Option<String> {
        let is_stateless = load.workload.is_none() && load.journey.is_none();
        refuse(is_stateless && end_by_time(load.stop, load.warmup), self.generators.members.len())
    }

    /// Where the server listens.
    pub(crate) fn address(&self) -> IpAddr {
        self.subject.address
    }

    pub(crate) fn probe(&self, cpus: &[u32], interrupted: &dyn Fn() -> bool) -> Result<Vec<Probe>, End> {
        let link = &self.subject.link;
        link.say(&Order::Probe { cpus: cpus.to_vec() })?;
        link.wait(None, interrupted, |said| if let Said::Probed(probes) = said { Some(probes) } else { None })
    }

    /// Builds on the server's machine; `None`: interrupted.
    pub(crate) fn build(
        &self,
        command: &str,
        directory: Option<&str>,
        interrupted: &dyn Fn() -> bool,
    ) -> Option<BuildOutcome> {
        let cpus = self.subject.cpus.iter().map(|cpu| cpu.index).collect();
        let order = Order::Build { command: command.to_owned(), directory: directory.map(str::to_owned), cpus };
        let link = &self.subject.link;
        let built = link.say(&order).and_then(|()| {
            link.wait(None, interrupted, |said| if let Said::Built(outcome) = said { Some(outcome) } else { None })
        });
        match built {
            Ok(outcome) => Some(outcome),
            Err(End::Interrupted) => None,
            Err(End::Lost(text)) => Some(BuildOutcome::Failed { output_tail: text }),
            Err(End::Failed(failure)) => Some(BuildOutcome::Failed { output_tail: failure.message }),
        }
    }

    /// Keeps these processors of the server's machine awake, and all of the generators', or sees that they are; the error is one line.
    pub(crate) fn spin(&self, subject: &[u32]) -> Result<(), String> {
        for (role, member) in self.members() {
            let cpus = match role {
                Role::Subject => subject.to_vec(),
                Role::Load => member.cpus.iter().map(|cpu| cpu.index).collect(),
            };
            let why = member.link.say(&Order::Spin { cpus }).and_then(|()| {
                let pick = |said| if let Said::Spinning(why) = said { Some(why) } else { None };
                member.link.wait(None, &|| false, pick)
            });
            match why {
                Ok(None) => {}
                Ok(Some(why)) => return Err(format!("{}: {why}", member.name)),
                Err(End::Lost(why)) => return Err(why),
                Err(End::Interrupted | End::Failed(_)) => return Err("interrupted".to_owned()),
            }
        }
        Ok(())
    }

    pub(crate) fn subject<'a>(&'a self, order: &'a Serve, interrupted: &'a dyn Fn() -> bool) -> sides::Server<'a> {
        sides::Server::new(&self.subject.link, order, interrupted)
    }

    /// Starts the generators of a load of which `whole` is the specification for one without processors of its own.
    pub(crate) fn load<'a>(
        &'a self,
        plan: &LoadPlan,
        whole: &LoadSpec,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Result<Load<'a>, End> {
        self.generators.load(plan.threads, whole, interrupted)
    }
}

impl Generators {
    /// Starts a node on every machine that loads, and waits until all are there; a machine with the role `subject` is left alone. Call it from a thread
    /// that lives as long as they do.
    ///
    /// # Errors
    /// [`ClusterError`]: all that is wrong with any of them.
    pub fn start(hosts: &Hosts, reach: &Reach<'_>) -> Result<Self, ClusterError> {
        let load = hosts.hosts.iter().filter(|host| host.role == Role::Load).cloned().collect();
        start(&Hosts { hosts: load, ..hosts.clone() }, reach).map(|(_, generators)| generators)
    }

    /// Their machines in words: names and processors.
    pub fn words(&self) -> String {
        let each = |member: &Member| format!("{} ({} CPUs)", member.name, member.cpus.len());
        self.members.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    /// What started their nodes, those that have a launcher of their own aside; never [`Launcher::Auto`].
    pub fn launcher(&self) -> Launcher {
        self.launcher
    }

    /// Loads a server that runs already, with so many workers on each machine. Gives what all have measured together, and each.
    ///
    /// # Errors
    /// A failure: a load that cannot be divided, a machine that was lost, a server that is not there; or that `interrupted` said so, as `None`.
    pub fn run(
        &self,
        spec: &LoadSpec,
        progress: &mut dyn FnMut(seam::Progress),
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(Measurement, Vec<Agent>), Option<Failure>> {
        if let Some(message) = refuses(spec, self.members.len()) {
            return Err(Some(Failure { kind: FailureKind::Generator, message }));
        }
        let patience = generator::patience(spec, MARGIN);
        let done = self.load(Some(spec.threads), spec, interrupted);
        done.and_then(|load| finish(load, patience, progress, interrupted)).map_err(|end| match end {
            End::Interrupted => None,
            End::Failed(failure) => Some(failure),
            End::Lost(message) => Some(Failure { kind: FailureKind::Node, message }),
        })
    }

    /// `threads`: workers of each machine; `None`: as many as the machine with the fewest processors has.
    fn load<'a>(
        &'a self,
        threads: Option<u32>,
        whole: &LoadSpec,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Result<Load<'a>, End> {
        // A worker without a client would only turn.
        let count = self.members.len().min(whole.clients.max(1) as usize);
        let members = &self.members[..count];
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let fewest = members.iter().map(|member| member.cpus.len()).min().unwrap_or(1);
        let fewest = u32::try_from(fewest).unwrap_or(u32::MAX);
        let threads = threads.unwrap_or(fewest.min(whole.clients / count)).max(1);
        let mut engines: Vec<(Box<dyn Engine + 'a>, Option<Part>)> = Vec::new();
        let mut error_ns = 0;
        for (nth, member) in (0..).zip(members) {
            // Equal for all: one with more workers would have more load, and could not be compared.
            let part = (count > 1).then_some(Part { first: nth * threads, of: count * threads });
            let is_alone = threads <= fewest && !matches!(whole.arrivals, Arrivals::Closed { .. });
            let spec = LoadSpec {
                threads,
                cpus: member.cpus.iter().map(|cpu| cpu.index).collect(),
                spin_ns: if is_alone { SPIN_NS } else { 0 },
                part,
                gate: part.is_some(),
                ..whole.clone()
            };
            let generator = sides::Generator::start(&member.name, &member.link, &spec, interrupted)?;
            error_ns = error_ns.max(generator.error_ns());
            engines.push((Box::new(generator), part));
        }
        Ok(Load::new(engines, Duration::from_nanos(2 * error_ns)))
    }
}

/// The message of a lost machine; one that has been silent for longer than nodes ever are comes first.
fn silent_first<'a>(nodes: impl Iterator<Item = (&'a str, Duration)>, text: String) -> String {
    match nodes.max_by_key(|(_, silent)| *silent) {
        Some((name, silent)) if silent > BEAT * 2 && !text.starts_with(&format!("lost {name}:")) => {
            format!("lost {name}: no word for {:.1} s; then {text}", silent.as_secs_f64())
        }
        _ => text,
    }
}

/// Nodes end when they are told to; those that cannot be told end when their channel does.
impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.link.say(&Order::Bye {});
    }
}

/// Hears a load to its end that no server of ours reads along with.
fn finish(
    mut load: Load<'_>,
    patience: Duration,
    progress: &mut dyn FnMut(seam::Progress),
    interrupted: &dyn Fn() -> bool,
) -> Result<(Measurement, Vec<Agent>), End> {
    let deadline = clock::now() + patience;
    while !load.is_done() {
        if interrupted() {
            return Err(End::Interrupted);
        }
        if clock::now() >= deadline {
            return Err(failed(FailureKind::Generator, "the generators did not end in time"));
        }
        let readable = wait_readable(&load.handles(), Duration::from_millis(50));
        for event in load.hear(&readable)? {
            match event {
                Event::Measured(_) => load.tell(Heard::Read {})?,
                Event::Progress(live) => progress(live),
                Event::Announced(_) => {}
            }
        }
    }
    let (measurement, agents) = load.end(Duration::from_secs(1))?;
    Ok((measurement.ok_or_else(|| broken("there is no measurement"))?, agents))
}

/// SHA-256 of a file, hexadecimal.
///
/// # Errors
/// It cannot be read.
pub fn hash(path: &Path) -> std::io::Result<String> {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let (mut file, mut buffer) = (File::open(path)?, vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => context.update(&buffer[..count]),
        }
    }
    Ok(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What is the same in all that runs on this kernel since it was started, and nowhere else; empty where it cannot be read.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Why a load cannot be had of so many generators.
pub fn refuses(spec: &LoadSpec, generators: usize) -> Option<String> {
    let is_stateless = matches!(spec.target, Target::Pingpong { .. } | Target::Http { .. });
    refuse(is_stateless && end_by_time(spec.stop, spec.warmup), generators)
}

fn refuse(is_divisible: bool, generators: usize) -> Option<String> {
    (generators > 1 && !is_divisible).then(|| {
        format!(
            "this load cannot be divided among {generators} generators (needs ping-pong or HTTP, with `stop` and `warmup` as durations): \
             use one `load` machine"
        )
    })
}

/// Whether rules mean the same to several generators without a word between them.
fn end_by_time(stop: Stop, warmup: Warmup) -> bool {
    matches!(stop, Stop::Duration { .. }) && matches!(warmup, Warmup::DurationNs(_))
}

/// Keeps nodes alive, whatever the lab does meanwhile, until the sender is dropped.
fn beats(nodes: Vec<Writer>) -> mpsc::Sender<()> {
    let (sender, stop) = mpsc::channel();
    let beat = move || {
        while stop.recv_timeout(BEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
            for node in &nodes {
                // One that cannot be told is lost, which the lab notices where it listens.
                let _ = node.say(&Order::Alive {});
            }
        }
    };
    // Without the thread nodes end after a while, and say why.
    let _ = std::thread::Builder::new().name("beats".to_owned()).spawn(beat);
    sender
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_machine_is_named_before_those_that_were_ended_with_it() {
        let said = |silent_ms: u64| {
            let nodes = [("l1 (10.0.0.2)", 300), ("l2 (10.0.0.3)", silent_ms), ("l3 (10.0.0.4)", 0)];
            let nodes = nodes.map(|(name, ms)| (name, Duration::from_millis(ms)));
            silent_first(nodes.into_iter(), "lost l1 (10.0.0.2): its connection ended".to_owned())
        };
        assert_eq!(said(4_200), "lost l2 (10.0.0.3): no word for 4.2 s; then lost l1 (10.0.0.2): its connection ended");
        assert_eq!(said(900), "lost l1 (10.0.0.2): its connection ended", "nodes speak once a second");
        let alone = [("l1", Duration::from_secs(5))].into_iter();
        assert_eq!(silent_first(alone, "lost l1: no word for 5.0 s".to_owned()), "lost l1: no word for 5.0 s");
    }
}
