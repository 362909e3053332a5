//! Stored results: a [`Run`], and a [`Record`] per trial. Names end with their unit; `None` means unavailable, not 0.

use std::collections::BTreeMap;

use config::word_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::buckets_as_text::Buckets;
use crate::cpu_profile::CpuProfile;
use crate::plan::{Level, Plan};
use crate::proxy_call_log::Calls;
use crate::spec::{Connection, Protocol, Stage};
use crate::warning::Warning;
pub use stats::search::{Purpose, Step};

/// Version of [`Record`] and [`Run`] that this build writes.
pub const RECORD_VERSION: u32 = 3;

/// One run of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Format version, [`RECORD_VERSION`].
    pub version: u32,
    /// Name of the run, unique in its store, such as `volley-20261120-210500`.
    pub id: String,
    /// Start of the run, UTC, RFC 3339.
    pub started: String,
    /// The expanded study, with its text and seed.
    pub plan: Plan,
    /// Name of the run's profile: `default`, `quick` or `full`.
    pub profile: String,
    /// Command line that started the run.
    pub command: Vec<String>,
    /// Version of quintain that started the run.
    pub quintain: String,
    /// Git revision of the study (`-dirty` if files changed); `built-in-HASH` if it is built in; `None` if unknown.
    pub revision: Option<String>,
    /// Git commit of the working directory, in which servers are built, with `-dirty` if changed; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Facts about the machine that ran the lab.
    pub host: Host,
    /// Findings of `quintain doctor` at the start of the run.
    pub doctor: Vec<Finding>,
    /// Limit of the generator on this machine against a null server; `None` if not measured.
    pub calibration: Option<Calibration>,
    /// Builds of the servers and their outcomes.
    pub builds: Vec<Build>,
    /// Policies simulated after the run on the operations of its trials, and stored so that the report never changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// State of the run; `None` in older stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RunState>,
    /// Shell command that resumes the run; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resume: String,
    /// Machines of the cluster; empty if everything ran on [`Run::host`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Time at which the run was imported from a file, UTC, RFC 3339; empty if it was not imported.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub imported: String,
    /// CPU profiles of the servers, one per design point; empty unless requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_profiles: Vec<CpuProfile>,
}

/// A machine of a cluster, in its state when the run started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Name of the machine in the cluster.
    pub name: String,
    /// Whether the machine runs the server or a generator.
    pub role: Role,
    /// Address of the machine in the network that carries the load.
    pub address: String,
    /// Hardware and system settings of the machine.
    pub host: Host,
    /// Findings of `quintain doctor` on this machine.
    pub doctor: Vec<Finding>,
    /// SHA-256 of the machine's quintain binary, hexadecimal.
    pub build: String,
    /// Network interface with [`Node::address`]; `None` if not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<Interface>,
    /// Network path to the server's machine before the first trial. `None` for the server's machine or if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// Role of a machine of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The machine that runs the server and the proxies in front of it.
    Subject,
    /// A machine that runs a generator.
    Load,
}

/// Roles with their words in a cluster file and in `--hosts`.
pub const ROLES: &[(&str, Role)] = &[("subject", Role::Subject), ("load", Role::Load)];

impl Role {
    /// Word for the role in a cluster file and in `--hosts`.
    pub fn word(self) -> &'static str {
        word_of(ROLES, &self)
    }
}

/// A network interface, as `/sys/class/net` describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Name of the interface, such as `eth0`.
    pub name: String,
    /// Link speed, megabits per second; `None` if the driver reports none, which is usual for virtual interfaces.
    pub speed_mbit_per_s: Option<u64>,
    /// Maximum transmission unit, bytes; `None` if unknown.
    pub mtu_bytes: Option<u64>,
    /// Kernel driver, such as `virtio_net`; `None` if unknown.
    pub driver: Option<String>,
    /// Number of receive queues; `None` if unknown.
    pub receive_queues: Option<u32>,
}

/// A path between a generator's machine and the server's, measured with bulk transfers and single requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Payload received from the server's machine, bytes per second.
    pub receive_bytes_per_s: f64,
    /// Median round-trip time of a small request on the idle path, ns.
    pub round_trip_ns_p50: f64,
    /// Payload received while all generators received at once, bytes per second. `None` if a CPU may have been
    /// the limit instead of the paths, and in older stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_together_bytes_per_s: Option<f64>,
}

/// State of a run, such as running or complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// The run has started but not ended. If no process owns the run, it was killed.
    Running,
    /// Every design point has enough trials, or the maximum number.
    Complete,
    /// The study's time limit was reached.
    OutOfTime,
    /// The run was ended early by Ctrl-C or a signal.
    Interrupted,
}

impl RunState {
    /// Word for the state in reports: the word in JSON with spaces instead of hyphens.
    pub fn word(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Complete => "complete",
            RunState::OutOfTime => "out of time",
            RunState::Interrupted => "interrupted",
        }
    }
}

/// A policy simulated on the operations of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// Name of the policy, from [`crate::plan::POLICIES`].
    pub policy: String,
    /// Index of the trial's design point in the plan.
    pub point: usize,
    /// Block that the trial belongs to.
    pub block: u32,
    /// Simulated memory limit, bytes. Eviction policies count all memory, clairvoyant policies only keys and values.
    pub capacity_bytes: u64,
    /// Number of GETs after the warm-up.
    pub gets: u64,
    /// Number of GETs after the warm-up that missed in the simulation.
    pub misses: u64,
    /// Why the policy was not simulated, in which case the counts are 0; `None` if it was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Reference {
    /// Misses divided by GETs; `None` if there were no GETs.
    pub fn miss_ratio(&self) -> Option<f64> {
        ratio(self.misses, self.gets)
    }
}

/// Outcome of one build command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// The command that builds the server.
    pub command: String,
    /// Indices of the design points that need the build.
    pub points: Vec<usize>,
    /// Outcome of building and verifying the server.
    pub outcome: BuildOutcome,
    /// Wall time of the build, ns.
    pub elapsed_ns: u64,
}

/// Outcome of building and verifying a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "build", rename_all = "kebab-case")]
pub enum BuildOutcome {
    /// The build succeeded, or there was nothing to do.
    Ready,
    /// A toolchain is missing. The report shows the server as skipped, not as failed.
    Skipped {
        /// Which toolchain is missing, in one line.
        reason: String,
    },
    /// The build found that this machine cannot run the server. The report does not show the server as failed.
    Unrunnable {
        /// Why the server cannot run here, in one line.
        reason: String,
    },
    /// The build command failed.
    Failed {
        /// Last lines of the command's output.
        output_tail: String,
    },
    /// The server runs but breaks its contract.
    Unverified {
        /// Name of the first case that failed.
        case: String,
        /// How the case failed, in one line.
        reason: String,
    },
}

/// Hardware and system settings of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Release and version of the kernel.
    pub kernel: String,
    /// Name and version of the distribution; `None` if unknown.
    pub system: Option<String>,
    /// Model name of the CPUs.
    pub cpu_model: String,
    /// Name of the hypervisor; `None` if none was detected.
    pub hypervisor: Option<String>,
    /// CPUs available to quintain, in ascending order.
    pub cpus: Vec<Cpu>,
    /// Caches of CPU 0 as the kernel reports them, such as `L1d 48 KiB`, `L2 1 MiB`, `L3 32 MiB`.
    pub caches: Vec<String>,
    /// Size of the memory, bytes.
    pub memory_bytes: u64,
    /// Size of the swap in use, bytes.
    pub swap_used_bytes: u64,
    /// CPU frequency governor; `None` if the kernel has none, as in most virtual machines.
    pub governor: Option<String>,
    /// Whether turbo is on; `None` if unknown.
    pub turbo: Option<bool>,
    /// Whether simultaneous multithreading is on; `None` if unknown.
    pub smt: Option<bool>,
    /// Clock source of the kernel, such as `tsc`; `None` if unknown.
    pub clocksource: Option<String>,
    /// Driver and governor of the kernel's CPU idle subsystem, such as `haltpoll/menu`; `None` if the kernel has none.
    pub idle: Option<String>,
    /// State of the mitigation of each vulnerability, such as `spectre_v2`.
    pub mitigations: BTreeMap<String, String>,
    /// Values of the relevant kernel settings, by sysctl name.
    pub sysctls: BTreeMap<String, String>,
    /// Versions of compilers and runtimes; empty if the run started only quintain's own servers.
    pub versions: BTreeMap<String, String>,
    /// Load average over the last minute; `None` if unknown.
    pub load_average: Option<f64>,
    /// Facts that could not be read, each with the reason.
    pub unknown: Vec<String>,
}

/// A logical CPU and its place in the topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Number of the CPU in Linux.
    pub index: u32,
    /// Number of the physical core, unique in its package.
    pub core: u32,
    /// Number of the package (socket).
    pub package: u32,
    /// Number of the NUMA node.
    pub node: u32,
}

/// Result of one check of `quintain doctor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Name of the check, such as `governor` or `swap`.
    pub check: String,
    /// Severity of the finding.
    pub state: FindingState,
    /// What the check observed.
    pub text: String,
    /// Suggestion for the user; `None` if there is none.
    pub hint: Option<String>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    /// The observation will not disturb measurements.
    Good,
    /// The observation will disturb measurements.
    Warning,
    /// The observation makes measurements here impossible or worthless.
    Bad,
    /// The check could not be performed.
    NotChecked,
}

/// The limit of the generator on this machine against a null server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Time at which the limit was measured, UTC, RFC 3339.
    pub measured: String,
    /// Protocol of the null server.
    pub protocol: Protocol,
    /// Description of the null server; empty in older stores, which had only a null server for ping-pong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// I/O backend of the generator.
    pub backend: String,
    /// Idle policy in force during the calibration.
    pub idle: IdlePolicy,
    /// Number of generator threads.
    pub threads: u32,
    /// Highest rate over all numbers of clients tried, per second.
    pub rate_max_per_s: f64,
    /// Number of clients at the highest rate.
    pub rate_max_clients: u32,
    /// Busy fraction of the busiest worker at `rate_max_per_s`, low if the null server is the limit; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_busy: Option<f64>,
    /// CPU time of the generator per request at the highest rate, ns.
    pub cpu_per_request_ns: f64,
    /// Median latency with one client, ns.
    pub floor_latency_ns_p50: f64,
    /// 99th percentile of latency with one client, ns.
    pub floor_latency_ns_p99: f64,
}

/// Behavior of idle CPUs during a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdlePolicy {
    /// CPUs become idle as configured on the machine.
    #[default]
    Machine,
    /// A `SCHED_IDLE` spinner on each CPU in use keeps the CPU awake.
    Spin,
}

/// Stored result of one trial, with its resource use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Format version, [`RECORD_VERSION`].
    pub version: u32,
    /// Index of the design point in the plan.
    pub point: usize,
    /// Levels of the factors at the design point, by name.
    pub factors: BTreeMap<String, Level>,
    /// Block that the trial belongs to.
    pub block: u32,
    /// Position of the trial in the order of the run, from 0.
    pub order: u32,
    /// Random seed of the trial.
    pub seed: u64,
    /// Step of a search or capacity share that determined the trial's rate; `None` if the plan states the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Start of the trial, UTC, RFC 3339.
    pub started: String,
    /// Wall time of the whole trial, ns.
    pub elapsed_ns: u64,
    /// Wall time from starting the server until it listened on its port, ns; `None` if it never did.
    pub ready_ns: Option<u64>,
    /// Idle policy in force during the trial.
    pub idle: IdlePolicy,
    /// The measurement, or why there is none.
    pub outcome: Outcome,
    /// Resource use of the server.
    pub subject: SubjectUse,
    /// Resource use of the proxies, starting with the proxy next to the generator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<ProxyUse>,
    /// Resource use of the companions, for which traffic is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<ProxyUse>,
    /// Numbers of the CPUs of the generator.
    pub generator_cpus: Vec<u32>,
    /// Whether server and generator shared a CPU.
    pub cpus_shared: bool,
    /// Counters of the network stack over the trial.
    pub network: NetworkCounters,
    /// Bottleneck of the trial; `None` if the trial failed.
    pub verdict: Option<Verdict>,
    /// Speed of the CPUs in use, before and after the trial.
    #[serde(default, skip_serializing_if = "Probes::is_empty")]
    pub probes: Probes,
    /// Warnings about this trial.
    pub warnings: Vec<Warning>,
    /// The generators, whose measurements are pooled in the outcome; empty if only one machine generated the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
}

/// One generator of a cluster in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Name of the generator's machine.
    pub node: String,
    /// Numbers of the CPUs of the generator.
    pub cpus: Vec<u32>,
    /// Measurement of this generator without windows, made coarser by [`crate::pool_measurements::outline`].
    pub measurement: Box<Measurement>,
    /// Counters of the machine's network stack from the start of the load to its end.
    pub network: NetworkCounters,
    /// Clock of the generator's machine relative to the lab's.
    pub clock: NodeClock,
    /// Bottleneck of this generator's part of the load; `None` without a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// Offset of a machine's monotonic clock from the lab's, with error bounds, measured before and after a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClock {
    /// The machine's clock minus the lab's clock before the trial, ns.
    pub offset_ns: i64,
    /// Error bound of the offset before the trial, ns: half the shortest round-trip time.
    pub error_ns: u64,
    /// The machine's clock minus the lab's clock after the trial, ns; `None` if the trial failed first.
    pub after_offset_ns: Option<i64>,
    /// Error bound of the offset after the trial, ns; `None` if the trial failed first.
    pub after_error_ns: Option<u64>,
}

/// Speed of the CPUs of the server and the generator, all probed at once while neither runs; empty in older records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probes {
    /// Probes before the server was started, one per CPU.
    pub before: Vec<Probe>,
    /// Probes after all processes of the trial had exited, one per CPU.
    pub after: Vec<Probe>,
}

impl Probes {
    /// Whether no probe was stored.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// All probes, starting with the probes before the trial.
    pub fn all(&self) -> impl Iterator<Item = &Probe> {
        self.before.iter().chain(&self.after)
    }
}

/// Wall and CPU time of a few million dependent register operations on one CPU, about 10 ms. Every probe does the same
/// work, so times are comparable between trials, and between runs on one CPU model. They never change results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Number of the probed CPU.
    pub cpu: u32,
    /// Wall time from the start of the probe to its end, ns.
    pub wall_ns: u64,
    /// CPU time of the probe, ns, which shows the CPU's speed. Something else used the CPU for the rest of `wall_ns`.
    pub cpu_ns: u64,
}

impl Probe {
    /// Fraction of the wall time in which something else had the CPU; 0 if the wall time is 0.
    pub fn lost(&self) -> f64 {
        ratio(self.wall_ns.saturating_sub(self.cpu_ns), self.wall_ns).unwrap_or(0.0)
    }

    /// Whether the probe was interrupted more than on a quiet machine: wall time above 1.1 times the CPU time.
    pub fn is_contended(&self) -> bool {
        self.wall_ns as f64 > 1.1 * self.cpu_ns as f64
    }
}

impl Record {
    /// The measurement; `None` if the trial failed.
    pub fn measurement(&self) -> Option<&Measurement> {
        if let Outcome::Measured(measurement) = &self.outcome { Some(measurement) } else { None }
    }
}

/// Result of a trial: a measurement or a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "nearly every record is measured")]
pub enum Outcome {
    /// The trial has a measurement.
    Measured(Measurement),
    /// The trial has no measurement, for this reason.
    Failed(Failure),
}

/// A start failure, which is replaced once the trial has run.
impl Default for Outcome {
    fn default() -> Self {
        Outcome::Failed(Failure { kind: FailureKind::Start, message: String::new() })
    }
}

/// Why a trial has no measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Kind of failure, by which reports group trials.
    pub kind: FailureKind,
    /// Description of the failure in one sentence.
    pub message: String,
}

/// Kinds of failure, by which reports group failed trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The server could not be started.
    Start,
    /// The server reported at start that this machine cannot run it.
    Unrunnable,
    /// The server never became ready.
    NotReady,
    /// The server exited while it was measured.
    Exited,
    /// None of the responses was valid.
    Answers,
    /// The server did not respond in time, or at all.
    Hung,
    /// No response came, because other processes had the server's CPUs.
    Starved,
    /// The generator failed or was killed.
    Generator,
    /// A proxy could not be started, or exited under load.
    Proxy,
    /// A companion could not be started, or exited under load.
    Companion,
    /// A machine of the cluster or its clock failed.
    Node,
}

/// Resource use and traffic of a proxy or a companion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyUse {
    /// Name of the proxy or companion in the study.
    pub name: String,
    /// Resource use, measured as for a server.
    pub used: SubjectUse,
    /// Whether the process runs on the server's CPUs.
    pub shares_cpus: bool,
    /// Wall time from starting the process until it listened on its port, ns; `None` if it never did.
    pub ready_ns: Option<u64>,
    /// Bytes on the proxy's connections during measuring; `None` for companions, or if a counter could not be read.
    pub wire: Option<WireUse>,
    /// The process's log of calls; `None` unless the study requests one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Box<Calls>>,
}

/// TCP payload that a proxy sent and received while it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireUse {
    /// Bytes on the connections that the proxy accepted.
    pub front_bytes: u64,
    /// Bytes on the proxy's upstream connections.
    pub back_bytes: u64,
}

/// Resource use of the server, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectUse {
    /// Command line of the server, split into words.
    pub command: Vec<String>,
    /// Git revision of the server's directory; `None` if unknown.
    pub revision: Option<String>,
    /// Numbers of the CPUs of the server.
    pub cpus: Vec<u32>,
    /// Port of the server; `None` if unknown.
    pub port: Option<u16>,
    /// CPU time in user mode while measured, ns.
    pub user_ns: u64,
    /// CPU time in the kernel while measured, ns.
    pub system_ns: u64,
    /// Wall time between the two readings of the CPU times, ns.
    pub measured_ns: u64,
    /// Time from starting the server to the start of measuring, ns.
    #[serde(default)]
    pub measured_from_ns: u64,
    /// Fraction of the measured time that lies between the two readings of the CPU times; `None` in older stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_share: Option<f64>,
    /// Time that the server's threads were ready but did not run between the two readings, summed over threads, ns
    /// (`/proc/PID/task/TID/schedstat`). `None` if the kernel does not report it, and in older stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_queue_ns: Option<u64>,
    /// CPU time of the server's CPUs between the two readings that went to processes other than the server and proxies,
    /// or to the host of this virtual machine, ns, summed over CPUs (`/proc/stat`, in ticks). `None` in older stores,
    /// and if the generator shares these CPUs or spinners keep them awake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_ns: Option<u64>,
    /// Longest time that a thread of the server had been ready without running when measuring ended, ns: an ongoing
    /// wait, or waits that ended within the last 100 ms. `None` if the kernel does not report it, and in older stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_at_end_ns: Option<u64>,
    /// Peak RSS (`VmHWM`), bytes; `None` if unknown.
    pub rss_max_bytes: Option<u64>,
    /// Largest sample of the proportional set size, bytes; `None` if unknown.
    pub pss_max_bytes: Option<u64>,
    /// Voluntary context switches while measured.
    pub switches_voluntary: u64,
    /// Involuntary context switches while measured.
    pub switches_involuntary: u64,
    /// Largest sample of the number of threads.
    pub threads_max: u32,
    /// Largest sample of the number of sockets.
    pub sockets_max: u32,
    /// Samples of the server, ten per second.
    pub samples: Vec<Sample>,
    /// How the server ended, such as `exit 0`, `signal 9` or `forced after 2 s`; `None` if unknown.
    pub exit: Option<String>,
    /// Last part of the server's stderr.
    pub stderr_tail: String,
    /// Container that the server ran in; `None` for a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<ContainerUse>>,
}

impl SubjectUse {
    /// Share of the measured time that the server waited for a CPU because other processes had it: the smaller of its
    /// threads' waits and the time that other processes used its CPUs. `None` if either is unknown.
    pub fn waiting_share(&self) -> Option<f64> {
        // `/proc/stat` counts ticks, usually of 10 ms, which are truncated at both ends of measuring.
        const OTHERS_DOUBT_NS: u64 = 20_000_000;
        let doubt_ns = OTHERS_DOUBT_NS * self.cpus.len() as u64;
        let others_ns = self.others_ns.map(|ns| if ns > doubt_ns { ns } else { 0 })?;
        let waited_ns = self.run_queue_ns?.min(others_ns);
        (self.measured_ns > 0).then(|| (waited_ns as f64 / self.measured_ns as f64).min(1.0))
    }

    /// CPU time for the counted requests, ns: the use between the two readings, scaled up to the whole measured time.
    pub fn cpu_ns(&self) -> f64 {
        let share = self.measured_share.filter(|share| *share > 0.0 && *share <= 1.0).unwrap_or(1.0);
        self.user_ns.saturating_add(self.system_ns) as f64 / share
    }
}

/// The container that a server ran in, and its resource use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerUse {
    /// Engine that started the container, with its version, such as `podman 4.3.1`.
    pub engine: String,
    /// Image of the container, as the study names it.
    pub image: String,
    /// Identifier of the image: a digest of its content and configuration.
    pub image_id: String,
    /// Port in the container that the server's port on the host is forwarded to; `None` in the host's network.
    pub published: Option<u16>,
    /// Counters of the container's control group; `None` if unreadable, in which case its processes were counted.
    pub cgroup: Option<CgroupUse>,
}

/// Counters of a control group and their sources. The server's CPU times, threads and memory cover the whole group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupUse {
    /// Version of the control group interface, 1 or 2.
    pub version: u32,
    /// Path of the control group in its hierarchy.
    pub path: String,
    /// File with the CPU times, `cpuacct.usage` or `cpu.stat`; `None` if they are the sum over processes.
    pub cpu_source: Option<String>,
    /// Peak memory of processes, page cache and kernel, including the container's start, bytes; `None` if unknown.
    pub memory_max_bytes: Option<u64>,
    /// Memory charged at the end of measuring, bytes; `None` if unknown.
    pub memory_end_bytes: Option<u64>,
    /// File with the peak memory: `memory.max_usage_in_bytes` or `memory.peak`; `None` if unknown.
    pub memory_source: Option<String>,
    /// Number of bytes read from block devices while the server was measured; `None` if unknown.
    pub read_bytes: Option<u64>,
    /// Number of bytes written to block devices while the server was measured; `None` if unknown.
    pub written_bytes: Option<u64>,
    /// File with both byte counts: `blkio.throttle.io_service_bytes` or `io.stat`; `None` if unknown.
    pub io_source: Option<String>,
}

/// One sample of the server, summed over its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Time since the server was started, ns.
    pub at_ns: u64,
    /// CPU time since the server was started, ns.
    pub cpu_ns: u64,
    /// Resident set size, bytes.
    pub rss_bytes: u64,
    /// Proportional set size, bytes; `None` in most samples, because it is read less often.
    pub pss_bytes: Option<u64>,
    /// Number of threads of all processes of the server.
    pub threads: u32,
    /// Number of open sockets; `None` in most samples, because it is read less often.
    pub sockets: Option<u32>,
}

/// Changes of the kernel's network counters during a trial, for the whole network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkCounters {
    /// Number of retransmitted TCP segments (`Tcp: RetransSegs`).
    pub retransmits: u64,
    /// Number of times that an accept queue was full (`TcpExt: ListenOverflows`).
    pub listen_overflows: u64,
    /// Number of dropped connection requests (`TcpExt: ListenDrops`).
    pub listen_drops: u64,
}

/// The bottleneck of a trial, with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The bottleneck; [`Limit::Neither`] if there is none.
    pub limited_by: Limit,
    /// Reasons for the verdict, with the numbers behind them.
    pub reasons: Vec<String>,
}

/// The bottleneck of a trial; [`Limit::Neither`] if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The server, whose CPUs were busy or which was slow to respond.
    Subject,
    /// The load generator, so the numbers do not describe the server.
    Generator,
    /// Neither server nor generator, since the offered load was met.
    Neither,
    /// Competition for CPUs between server and generator, or with another process that used the server's CPUs.
    Shared,
    /// A proxy, whose CPUs were busy.
    Proxy,
    /// Latency, because few clients wait for responses and no CPU is busy.
    Latency,
    /// The network between a generator and the server, which was full, lossy, or slower than for other generators.
    Network,
}

/// Result of one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Version of the load's specification, [`crate::spec::SPEC_VERSION`].
    pub version: u32,
    /// Protocol of the requests.
    pub protocol: Protocol,
    /// Address of the server, `ip:port` or `unix:` and a path; for a journey, its first target. Empty in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// I/O backend that was used.
    pub backend: String,
    /// Why the backend is not the requested one; `None` if it is.
    pub backend_note: Option<String>,
    /// Number of connections.
    pub clients: u32,
    /// Number of worker threads.
    pub threads: u32,
    /// Maximum number of requests in flight per connection.
    #[serde(default = "crate::one")]
    pub pipeline: u32,
    /// How long a connection was used.
    #[serde(default)]
    pub connection: Connection,
    /// Start of measuring, ns, on the generator's monotonic clock; in a record, on the lab's clock. 0 in older records.
    #[serde(default)]
    pub began_ns: u64,
    /// Length of the measurement, ns.
    pub duration_ns: u64,
    /// Length of the warm-up, ns.
    pub warmup_ns: u64,
    /// Number of requests during the warm-up.
    pub warmup_requests: u64,
    /// Number of valid responses in the measured time that arrived within the timeout.
    pub requests: u64,
    /// Number of errors in the measured time, by kind: `wrong-answer`, `reset`, `timeout`, `refused`, `closed`,
    /// `closed-between` (closed after earlier responses and before any byte of this one), `connect-timeout`, `os`,
    /// `truncated`; for HTTP, also `status`, `body`, `framing`, `head-too-large`, `tls`, `proxy` (no tunnel),
    /// `stream-reset` (HTTP/2) and `grpc-status` (gRPC); for a cache, also `value` (a value or flags that were not set
    /// for the key) and `error-answer`.
    pub errors: BTreeMap<String, u64>,
    /// Description of the first error of each kind that has details.
    #[serde(default)]
    pub error_examples: BTreeMap<String, String>,
    /// Responses in the measured time by HTTP status, each also counted in `requests`, `errors` or `late_answers`.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// Number of errors before measuring started, by kind.
    pub warmup_errors: BTreeMap<String, u64>,
    /// Number of responses after the timeout. They are errors of kind `timeout`, but their latencies are recorded.
    pub late_answers: u64,
    /// Number of connections reopened after the server closed them.
    pub reconnects: u64,
    /// Mean number of clients in back-off, the generator's pause before it reopens a lost connection.
    #[serde(default)]
    pub in_backoff_mean: f64,
    /// Mean think time of a closed loop, ns; 0 in older stores.
    #[serde(default)]
    pub think_ns: u64,
    /// Requests written during the load, without fills of a cache: the sum of `warmup_requests`, `requests`, errors of
    /// written requests in both phases, `asked_again` and `left_in_flight`. 0 in older records.
    #[serde(default)]
    pub sent: u64,
    /// Requests sent again because an earlier response was the last one on its connection, or unreadable.
    #[serde(default)]
    pub asked_again: u64,
    /// Requests pending when the load ended, if not counted elsewhere. The server may have received them.
    #[serde(default)]
    pub left_in_flight: u64,
    /// Offered rate, requests per second; `None` in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Number of intended sends that were never written, because no connection became free before the end.
    pub unsent: u64,
    /// Requests pending when measuring ended, if their responses would have counted. Overdue requests are also errors.
    pub unfinished: u64,
    /// How long pending requests had waited when measuring ended; `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Box<Censored>>,
    /// Mean number of requests in flight over the measured time, counted by the engine instead of derived from latency.
    pub in_flight_mean: f64,
    /// Time from the write of a request to its response, ns.
    pub service: Histogram,
    /// Time from the intended send to the response, ns; `None` in a closed loop, for which `service` is the latency.
    pub response: Option<Histogram>,
    /// Delay of writes after their intended time because the generator's thread was late, ns; `None` in a closed loop.
    pub lag_thread: Option<Histogram>,
    /// Delay of writes after their intended time because no connection was free, ns; `None` in a closed loop.
    pub lag_connection: Option<Histogram>,
    /// Time from requesting a connection to its establishment, ns, over all connections of the trial.
    pub connect: Histogram,
    /// Time from the establishment of a connection to the end of its TLS handshake, ns; `None` without TLS.
    pub handshake: Option<Histogram>,
    /// Number of TLS handshakes that resumed an earlier session.
    #[serde(default)]
    pub resumed: u64,
    /// Length of a window, ns; the last one may be shorter.
    pub window_ns: u64,
    /// Slices of the measured time, in order.
    pub windows: Vec<Window>,
    /// Resource use of each worker.
    pub workers: Vec<Worker>,
    /// CPU time of the whole generator process from start to end, ns.
    pub process_cpu_ns: u64,
    /// Peak resident set size of the generator process, bytes.
    pub process_rss_max_bytes: u64,
    /// Payload sent in the measured time, bytes.
    pub sent_bytes: u64,
    /// Payload received in the measured time, bytes.
    pub received_bytes: u64,
    /// Why measuring ended, in one sentence.
    pub stop_reason: String,
    /// Line that volley would print; `None` unless the load had volley's stop rule.
    pub volley: Option<Volley>,
    /// Cache results; `None` if the server is not a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Box<CacheMeasurement>>,
    /// Results by journey; empty for other loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journeys: Vec<JourneyMeasurement>,
    /// Sample of the measured requests ([`crate::spec::LoadSpec::log_one_in`]), in the order they ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LoggedRequest>,
    /// Number of requests left out of the log because of its size.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub log_left_out: u64,
    /// The slowest responses, in descending order of latency; empty for requests without `{{trace}}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowResponse>,
    /// Number of responses whose whole body was checked ([`crate::spec::Expect::check_one_in`]).
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub checked: u64,
    /// Time from the write of a request to the first part of its response, in coarse buckets, ns. Covers only responses
    /// that arrived in several parts, since for all others the time equals the latency. `None` without such responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Histogram>,
    /// Results by kind of request, in the order of the mix; empty for other loads and for more than 64 kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<OperationMeasurement>,
    /// Planned rate of an open loop, or planned clients of a closed loop, over the measured time; empty if constant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<Stage>,
    /// HTTP/2 results; `None` for other protocols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Box<StreamsMeasurement>>,
}

/// Results of a load over HTTP/2 in the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamsMeasurement {
    /// Lowest limit on requests in flight per connection that the server ever set; `None` without a limit.
    pub allowed: Option<u32>,
    /// Number of connections that the server ended with GOAWAY.
    pub goaways: u64,
    /// Number of requests that the server refused to process, which were sent again.
    pub refused: u64,
    /// Number of responses that `header_bytes` and `bytes_ahead` cover.
    pub responses: u64,
    /// Size of the encoded heads and trailers of all `responses`, bytes.
    pub header_bytes: u64,
    /// Total number of bytes of other responses that arrived between each request and its first response byte.
    pub bytes_ahead: u64,
    /// Number of requests whose body waited for flow-control credit from the server.
    pub stalled_uploads: u64,
    /// Number of gRPC messages in all `responses`.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub messages: u64,
    /// Time between consecutive messages of one gRPC response, ns, as coarse as windows; `None` if no response had two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_gap: Option<Histogram>,
    /// Time from when a request was due until a connection had room for it, in coarse buckets, ns. Covers only requests
    /// that the load's own stream limit held back; `None` in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_own: Option<Histogram>,
    /// Time as in `wait_own`, for requests held back by the server's stream limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_server: Option<Histogram>,
    /// Time as in `wait_own`, for requests that waited for a connection or were sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_connection: Option<Histogram>,
}

impl StreamsMeasurement {
    /// Adds everything but the histograms of another part of the load, which ran at the same time.
    pub fn add_counts(&mut self, part: &StreamsMeasurement) {
        self.allowed = self.allowed.into_iter().chain(part.allowed).min();
        self.goaways += part.goaways;
        self.refused += part.refused;
        self.responses += part.responses;
        self.header_bytes += part.header_bytes;
        self.bytes_ahead += part.bytes_ahead;
        self.stalled_uploads += part.stalled_uploads;
        self.messages += part.messages;
    }
}

/// Requests that were due but had no response, valid or not, when measuring ended. A request is due if its response
/// would have counted just before the end. Its latency is only known to exceed its wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Censored {
    /// Time that each written request had waited, ns, counted from the same start as [`Measurement::latency`].
    pub in_flight: Histogram,
    /// Time that each unsent request had waited, ns; empty in a closed loop.
    pub unsent: Histogram,
    /// Number of unsent requests whose wait exceeded the timeout. Overdue written requests are `timeout` errors.
    pub unsent_overdue: u64,
    /// Age of the oldest request on each connection with requests in flight, ns.
    pub connections: Histogram,
    /// Time that the server had been silent on all connections with requests in flight, ns. It starts at the first
    /// pending request written after the last response, valid or not, or after the end of a connection.
    pub silent_ns: u64,
}

impl Censored {
    /// Number of requests that were due, written or unsent.
    pub fn len(&self) -> u64 {
        self.in_flight.count.saturating_add(self.unsent.count)
    }

    /// Whether every request that was due had a response.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Results of one journey. [`Measurement::requests`] counts the calls of all journeys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JourneyMeasurement {
    /// Name of the journey, as its file gives it.
    pub name: String,
    /// Number of journeys completed in the measured time.
    pub completed: u64,
    /// Number of journeys that ended with an error.
    pub abandoned: u64,
    /// Results by operation, in the order of the journey, each operation once.
    pub operations: Vec<OperationMeasurement>,
    /// Duration of completed journeys from the time each was due, ns; `None` if none was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Histogram>,
    /// Transcript of requests, responses and taken values; empty unless requested.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub transcript: String,
}

/// Results of one operation of a journey, or of one kind of request in a mix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationMeasurement {
    /// Name of the operation; for a mix, name of the request, or else its method and target.
    pub name: String,
    /// Number of calls with a valid response.
    pub requests: u64,
    /// Number of calls without a valid response.
    pub errors: u64,
    /// Latency in coarse buckets, ns: in a mix, as in [`Measurement::latency`]; in a journey, from the request's write.
    pub service: Histogram,
    /// Time to the first part of the response, as in [`Measurement::first_byte`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Histogram>,
}

/// Maximum length of [`Measurement::slowest`].
pub const SLOWEST_MAX: usize = 20;

/// A slow response to a request with a trace id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowResponse {
    /// Latency as [`Measurement::latency`] defines it, ns.
    pub latency_ns: u64,
    /// The `trace-id` of the request's `traceparent` (W3C Trace Context), 32 hexadecimal digits.
    pub trace_id: String,
    /// Name of the request, or else its method and target.
    pub request: String,
    /// Time from the start of measuring to the end of the response, ns.
    pub ended_ns: u64,
}

/// Keeps the slowest of `all`, at most [`SLOWEST_MAX`], in descending order of latency.
pub fn keep_slowest(all: &mut Vec<SlowResponse>) {
    all.sort_by_key(|slow| std::cmp::Reverse(slow.latency_ns));
    all.truncate(SLOWEST_MAX);
}

/// A request in the log. Times are in ns since measuring began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoggedRequest {
    /// Intended send time, ns; in a closed loop, the actual send time.
    pub intended_ns: i64,
    /// Time at which the request was written, ns.
    pub sent_ns: i64,
    /// Time at which the first part of the response arrived, ns; `None` if none did or the time is unknown.
    pub first_byte_ns: Option<i64>,
    /// Time at which the response was complete or the request failed, ns.
    pub ended_ns: i64,
    /// HTTP status of the response; 0 if there is none.
    pub status: u16,
    /// Length of the response body, bytes.
    pub bytes: u64,
    /// Index of the request in the mix, or of the step in the journey.
    pub request: u32,
    /// Client and journey of the call; `None` without journeys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<LoggedSession>,
    /// Kind of the error; empty for a valid response.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// The client and journey that a call belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoggedSession {
    /// Number of the client, from 0.
    pub client: u64,
    /// Number of the journey over all clients, from 0, including the warm-up.
    pub journey: u64,
}

/// Cache results. [`Measurement::requests`] counts operations of the workload, without fills and rewrites.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheMeasurement {
    /// Counts of operations in the measured time.
    pub counts: CacheCounts,
    /// Counts of operations before measuring started.
    pub warmup: CacheCounts,
    /// Service time of GETs that hit, from write to response, ns. All histograms here have coarse buckets.
    pub get_hit: Histogram,
    /// Service time of GETs that missed, ns.
    pub get_miss: Histogram,
    /// Service time of SETs of the workload, ns.
    pub set: Histogram,
    /// Service time of DELETEs, ns.
    pub delete: Histogram,
    /// Service time of SETs caused by misses, ns.
    pub fill: Histogram,
    /// Service time of SETs caused by the reads of read-modify-write, ns.
    pub rewrite: Histogram,
    /// Number of distinct keys requested since the start of the load.
    pub footprint_keys: u64,
    /// Size of the distinct keys requested and their values, bytes: the capacity of a cache without overhead that holds
    /// all of them. If lengths vary by SET, the value of the first operation on a key counts.
    pub footprint_bytes: u64,
    /// Memory limit that the server reported before the load, by its own count, bytes; `None` if unknown or unlimited.
    pub limit_bytes: Option<u64>,
    /// Hit ratio that the mix of operations determines for a cache of any size; `None` if it determines none.
    pub hit_ratio_of_mix: Option<f64>,
    /// Length of a window of the transient, ns.
    pub transient_window_ns: u64,
    /// Number of hits and number of GETs in each window of the warm-up. The last window may be shorter.
    pub transient: Vec<(u64, u64)>,
    /// Description of when the warm-up became steady, or of why it did not; `None` for other warm-up rules.
    pub steadiness: Option<String>,
    /// The replayed trace; `None` if the workload was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceReplay>,
}

/// Replay of a trace, counted from the start of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceReplay {
    /// Path of the trace file, as the study gives it.
    pub file: String,
    /// Format of the trace file.
    pub format: crate::workload::trace::Format,
    /// Number of operations sent, including repetitions.
    pub operations: u64,
    /// Number of distinct keys sent.
    pub keys: u64,
    /// Mean length of the distinct keys as sent, bytes; `None` if unknown.
    pub key_bytes_mean: Option<f64>,
    /// Mean length of the distinct keys as recorded, bytes, over keys with a recorded length; `None` if no key has one.
    pub key_bytes_recorded_mean: Option<f64>,
    /// Number of keys sent with more bytes than recorded, to make them distinct.
    pub keys_lengthened: u64,
    /// Whether the load reached the end of the trace.
    pub ended: bool,
    /// Time that workers waited for the trace to be read, which delayed their sends, ns, summed over workers.
    pub stalled_ns: u64,
}

/// Number of cache operations by kind and outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheCounts {
    /// GETs answered with the right value.
    pub hits: u64,
    /// GETs answered without a value.
    pub misses: u64,
    /// Size of the values received, bytes.
    pub hit_bytes: u64,
    /// Size of the values requested, bytes; for a miss, the size of the value that a SET of the key would have had.
    pub requested_bytes: u64,
    /// Misses by cause, which add up to [`CacheCounts::misses`].
    pub causes: MissCauses,
    /// SETs of the workload that were stored.
    pub sets: u64,
    /// DELETEs of the workload, whether or not the key existed.
    pub deletes: u64,
    /// Stored SETs that were caused by misses.
    pub fills: u64,
    /// Stored SETs that were caused by the reads of read-modify-write.
    pub rewrites: u64,
    /// Rejected SETs of all kinds: cache full (`SERVER_ERROR out of memory`, `-OOM`, 507) or value too large.
    pub refused_sets: u64,
}

impl CacheCounts {
    /// Hits divided by GETs; `None` if there were no GETs.
    pub fn hit_ratio(&self) -> Option<f64> {
        ratio(self.hits, self.hits.saturating_add(self.misses))
    }

    /// Bytes received divided by bytes requested; `None` if none were requested.
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        ratio(self.hit_bytes, self.requested_bytes)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Number of missed GETs by cause, derived from the generator's earlier requests and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissCauses {
    /// Misses of keys under which no value was stored before the GET. The first SET may still have been in flight.
    pub compulsory: u64,
    /// Misses of keys that were deleted before or during the GET.
    pub invalidation: u64,
    /// Misses of values whose time to live had elapsed, with a precision of 1 s.
    pub expiry: u64,
    /// Misses of keys whose last SET was rejected.
    pub refused: u64,
    /// Misses without any of these causes: the value was stored, then evicted.
    pub capacity: u64,
}

impl MissCauses {
    /// Each count with the name of its cause.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("compulsory", self.compulsory),
            ("capacity", self.capacity),
            ("invalidation", self.invalidation),
            ("expiry", self.expiry),
            ("refused", self.refused),
        ]
    }
}

impl Measurement {
    /// Number of valid responses per second of the measured time.
    pub fn rate_per_s(&self) -> f64 {
        self.requests as f64 * 1e9 / (self.duration_ns as f64).max(1.0)
    }

    /// Number of errors of all kinds.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().copied().fold(0, u64::saturating_add)
    }

    /// Number of journeys that ended, completed or not.
    pub fn sessions(&self) -> u64 {
        self.journeys.iter().map(|journey| journey.completed.saturating_add(journey.abandoned)).sum()
    }

    /// Latency of the load: response time in an open loop, service time in a closed one.
    pub fn latency(&self) -> &Histogram {
        self.response.as_ref().unwrap_or(&self.service)
    }
}

/// Numbers in the line that volley would print: `<mean>us <stddev>us <samples>`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Volley {
    /// Mean latency, us.
    pub mean_us: f64,
    /// Standard deviation, pooled within clients as in volley, us.
    pub stddev_us: f64,
    /// Number of latencies in the mean.
    pub samples: u64,
    /// Number of rounds, without the priming round.
    pub rounds: u32,
}

/// A histogram as stored: sparse and log-linear. `stats::Histogram` defines the bounds of the buckets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// Number of bits that select a linear sub-bucket within a power of two.
    pub precision_bits: u8,
    /// Counts of the non-empty buckets.
    pub buckets: Buckets,
    /// Number of recorded values, including values above the range.
    pub count: u64,
    /// Number of values above the range, which are in `count` but in no bucket.
    pub saturated: u64,
    /// Smallest value, exact; `None` if there are no values.
    pub min: Option<u64>,
    /// Largest value, exact; `None` if there are no values.
    pub max: Option<u64>,
    /// Sum of the values, rounded to a 64-bit float.
    pub sum: f64,
    /// Sum of the squared values, rounded to a 64-bit float.
    pub sum_of_squares: f64,
}

impl Histogram {
    /// Mean of the values; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Results of one slice of the measured time, over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Number of valid responses in the window.
    pub requests: u64,
    /// Number of errors of all kinds in the window.
    pub errors: u64,
    /// Latency as [`Measurement::latency`] defines it, in coarse buckets, ns.
    pub latency: Histogram,
}

/// Resource use of one worker of the generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    /// Number of the CPU that the worker is pinned to; `None` if not pinned.
    pub cpu: Option<u32>,
    /// Number of valid responses that the worker received.
    pub requests: u64,
    /// CPU time of the worker's thread in the measured time, ns.
    pub cpu_ns: u64,
    /// CPU time spent polling for the next intended send, ns, included in `cpu_ns`; 0 in a closed loop.
    pub spin_ns: u64,
    /// Time that the thread was ready but did not run (`/proc/self/schedstat`), ns; `None` if not reported.
    pub run_queue_ns: Option<u64>,
    /// Wall time of the worker in the measured time, ns.
    pub wall_ns: u64,
    /// Number of turns of the worker's event loop.
    pub turns: u64,
    /// Total delay, in the measured time, of wake-ups that came at least 50 ms late, ns; 0 in older stores.
    #[serde(default)]
    pub stalled_ns: u64,
}
