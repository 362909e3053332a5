//! Stored results: one [`Run`], a [`Record`] per trial. Names end with their unit; `None` is unavailable, never zero.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::buckets_as_text::Buckets;
use crate::call_log_csv::Calls;
use crate::cpu_profile::CpuProfile;
use crate::plan::{Level, Plan};
use crate::spec::{Connection, Protocol, Stage};
use crate::warning::Warning;
pub use stats::search::{Purpose, Step};

/// The version of [`Record`] and [`Run`] that this build writes.
pub const RECORD_VERSION: u32 = 3;

/// One run of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Format version, [`RECORD_VERSION`].
    pub version: u32,
    /// Name of the run, unique in its store: `volley-20261120-210500`.
    pub id: String,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// The plan, with the text of the study and the seed.
    pub plan: Plan,
    /// `default`, `quick` or `full`.
    pub profile: String,
    /// The command line that started it.
    pub command: Vec<String>,
    /// quintain's version and the revision of the study, if any.
    pub quintain: String,
    /// Git revision of the study's directory, `-dirty` if changed, or `built-in-HASH`; if known.
    pub revision: Option<String>,
    /// Git commit of the working directory, which builds servers, `-dirty` if changed; if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The machine.
    pub host: Host,
    /// Findings of `quintain doctor` at the start of the run.
    pub doctor: Vec<Finding>,
    /// The generator's limit here against a null server, if measured.
    pub calibration: Option<Calibration>,
    /// Builds of the servers, or why they failed.
    pub builds: Vec<Build>,
    /// Policies simulated on the operations of trials at the end of the run, stored so that its report stays the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// State of the run; `None` if stored by an older quintain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RunState>,
    /// The shell command that resumes it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resume: String,
    /// The machines of its cluster; empty if all ran on [`Run::host`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Time of the import from a file, UTC, RFC 3339; empty if it ran with this store.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub imported: String,
    /// CPU profiles of the servers, one per design point, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_profiles: Vec<CpuProfile>,
}

/// A machine of a cluster, as it was when the run started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Its name in the cluster.
    pub name: String,
    /// Whether it runs the server or a generator.
    pub role: Role,
    /// Its address in the network of the load.
    pub address: String,
    /// The machine.
    pub host: Host,
    /// Findings of `quintain doctor` on it.
    pub doctor: Vec<Finding>,
    /// SHA-256 of the quintain binary there, hexadecimal.
    pub build: String,
    /// The network interface that has [`Node::address`]; `None` if not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<Interface>,
    /// The path to the server's machine, measured before the first trial; `None` on it, or if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// Role of a machine of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The server, and the proxies in front of it.
    Subject,
    /// A generator.
    Load,
}

impl Role {
    /// The word in a cluster file and in `--hosts`.
    pub fn word(self) -> &'static str {
        match self {
            Role::Subject => "subject",
            Role::Load => "load",
        }
    }
}

/// A network interface, as `/sys/class/net` describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Name, such as `eth0`.
    pub name: String,
    /// Its speed, megabits per second; `None` if the driver does not report it, as virtual ones do not.
    pub speed_mbit_per_s: Option<u64>,
    /// Maximum transmission unit, bytes.
    pub mtu_bytes: Option<u64>,
    /// Kernel driver, such as `virtio_net`.
    pub driver: Option<String>,
    /// Number of receive queues.
    pub receive_queues: Option<u32>,
}

/// A path between a generator's machine and the server's, measured with bulk transfers and single requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Payload received from the server's machine, bytes per second.
    pub receive_bytes_per_s: f64,
    /// Median time of a small request with nothing else on the path, ns.
    pub round_trip_ns_p50: f64,
    /// Payload that this machine received while all generators received, bytes per second. `None` if a CPU may have
    /// been the limit instead of the paths, and in older stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_together_bytes_per_s: Option<f64>,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Started and not ended; if no process owns it, it was killed.
    Running,
    /// Every design point has enough trials, or the maximum.
    Complete,
    /// The study's time limit was reached.
    OutOfTime,
    /// Ended early by Ctrl-C or a signal.
    Interrupted,
}

impl RunState {
    /// The word in reports: as in JSON, with spaces.
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
    /// The policy, one of [`crate::plan::POLICIES`].
    pub policy: String,
    /// Index of the design point whose trial it is.
    pub point: usize,
    /// Block of the trial.
    pub block: u32,
    /// Its memory limit, bytes. Eviction policies count all memory, clairvoyant policies only keys and values.
    pub capacity_bytes: u64,
    /// GETs after the warm-up.
    pub gets: u64,
    /// GETs that missed.
    pub misses: u64,
    /// Why it was not simulated; the counts are then 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Reference {
    /// Misses over GETs; `None` if there were no GETs.
    pub fn miss_ratio(&self) -> Option<f64> {
        ratio(self.misses, self.gets)
    }
}

/// The outcome of building one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// The build command.
    pub command: String,
    /// The design points that need it.
    pub points: Vec<usize>,
    /// `Ok`, or why the build is missing.
    pub outcome: BuildOutcome,
    /// Wall time, ns.
    pub elapsed_ns: u64,
}

/// How a build ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "build", rename_all = "kebab-case")]
pub enum BuildOutcome {
    /// Built, or nothing to do.
    Ready,
    /// A toolchain is missing: a row in the report, not a failure.
    Skipped {
        /// One line.
        reason: String,
    },
    /// The build found that this machine cannot run it: a row in the report, not a failure.
    Unrunnable {
        /// Why, in one line.
        reason: String,
    },
    /// The build command failed.
    Failed {
        /// The last lines of its output.
        output_tail: String,
    },
    /// The server runs but breaks its contract.
    Unverified {
        /// The first case that failed.
        case: String,
        /// How, in one line.
        reason: String,
    },
}

/// Facts about the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Kernel release and version.
    pub kernel: String,
    /// Distribution.
    pub system: Option<String>,
    /// CPU model.
    pub cpu_model: String,
    /// Hypervisor, if detected.
    pub hypervisor: Option<String>,
    /// CPUs available to this process, in ascending order.
    pub cpus: Vec<Cpu>,
    /// `L1d 48 KiB`, `L2 1 MiB`, `L3 32 MiB`, as the kernel reports them for CPU 0.
    pub caches: Vec<String>,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Swap in use, bytes.
    pub swap_used_bytes: u64,
    /// Frequency governor; `None` if the kernel has none (virtual machines).
    pub governor: Option<String>,
    /// Whether turbo is on; `None` if unknown.
    pub turbo: Option<bool>,
    /// Whether simultaneous multithreading is on; `None` if unknown.
    pub smt: Option<bool>,
    /// Clock source.
    pub clocksource: Option<String>,
    /// Idle driver and governor, `haltpoll/menu`; `None` if the kernel has none.
    pub idle: Option<String>,
    /// Mitigations by vulnerability, such as `spectre_v2`.
    pub mitigations: BTreeMap<String, String>,
    /// Relevant settings, by sysctl name.
    pub sysctls: BTreeMap<String, String>,
    /// Versions of compilers and runtimes; empty if the run started only servers of quintain.
    pub versions: BTreeMap<String, String>,
    /// Load average over the last minute.
    pub load_average: Option<f64>,
    /// Facts that could not be read, and why.
    pub unknown: Vec<String>,
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Number of the CPU in Linux.
    pub index: u32,
    /// Physical core, unique in its package.
    pub core: u32,
    /// Package (socket).
    pub package: u32,
    /// NUMA node.
    pub node: u32,
}

/// One finding of the doctor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Name of the check: `governor`, `swap`.
    pub check: String,
    /// Result.
    pub state: FindingState,
    /// The observation.
    pub text: String,
    /// A suggestion.
    pub hint: Option<String>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    /// The observation is as it should be.
    Good,
    /// Will disturb measurements.
    Warning,
    /// Makes measurements here impossible or worthless.
    Bad,
    /// Could not be checked.
    NotChecked,
}

/// The generator's limit here against a null server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Time of the calibration, UTC, RFC 3339.
    pub measured: String,
    /// Protocol of the null server.
    pub protocol: Protocol,
    /// The null server in words; empty if stored by a quintain that had only one, for ping-pong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// Backend of the generator.
    pub backend: String,
    /// Idle policy in force.
    pub idle: IdlePolicy,
    /// Generator threads.
    pub threads: u32,
    /// Highest rate over the numbers of clients tried, per second.
    pub rate_max_per_s: f64,
    /// Number of clients at that rate.
    pub rate_max_clients: u32,
    /// Fraction of time the busiest worker was busy at that rate: with time to spare, the null server is the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_busy: Option<f64>,
    /// CPU time of the generator per request at that rate, ns.
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
    /// The machine's default.
    #[default]
    Machine,
    /// A `SCHED_IDLE` spinner on each CPU in use keeps it awake.
    Spin,
}

/// The record of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Format version, [`RECORD_VERSION`].
    pub version: u32,
    /// Index of the design point in the plan.
    pub point: usize,
    /// Levels of the factors.
    pub factors: BTreeMap<String, Level>,
    /// Block it belongs to.
    pub block: u32,
    /// Place in the order of the whole run, from 0.
    pub order: u32,
    /// Seed of this trial.
    pub seed: u64,
    /// The step of this trial, if the rate is found during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// Wall time of the whole trial, ns.
    pub elapsed_ns: u64,
    /// Wall time from starting the server until it listened on its port, ns; `None` if never ready.
    pub ready_ns: Option<u64>,
    /// Idle policy in force.
    pub idle: IdlePolicy,
    /// How it ended.
    pub outcome: Outcome,
    /// Resource use of the server.
    pub subject: SubjectUse,
    /// Proxies between generator and server, the one next to the generator first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<ProxyUse>,
    /// Companions of the server; bytes through them are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<ProxyUse>,
    /// The CPUs of the generator.
    pub generator_cpus: Vec<u32>,
    /// Whether server and generator shared a CPU.
    pub cpus_shared: bool,
    /// Counters of the network stack during this trial.
    pub network: NetworkCounters,
    /// The bottleneck; `None` for a failed trial.
    pub verdict: Option<Verdict>,
    /// Speed of the CPUs in use, before and after.
    #[serde(default, skip_serializing_if = "Probes::is_empty")]
    pub probes: Probes,
    /// Warnings about this trial.
    pub warnings: Vec<Warning>,
    /// The generators of a load from several machines; the measurement is of all together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
}

/// One generator of a cluster in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Name of its machine.
    pub node: String,
    /// CPUs of the generator.
    pub cpus: Vec<u32>,
    /// Measurement of this one generator: without windows, with coarse histograms
    /// ([`crate::pool_measurements::outline`]) and with its part of the rate.
    pub measurement: Box<Measurement>,
    /// Counters of its machine's network stack from the start of the load to its end.
    pub network: NetworkCounters,
    /// Clock of the generator's machine.
    pub clock: NodeClock,
    /// The bottleneck of its part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// A machine's monotonic clock minus the lab's, with error bounds, from ping-pongs around a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClock {
    /// The machine's clock minus the lab's before the trial, ns.
    pub offset_ns: i64,
    /// Half of the shortest round trip, ns.
    pub error_ns: u64,
    /// The offset after the trial, ns; `None` if the trial failed first.
    pub after_offset_ns: Option<i64>,
    /// The error of the offset after the trial, ns.
    pub after_error_ns: Option<u64>,
}

/// A short fixed piece of work on all CPUs of server and generator at once, while neither runs. Empty in older records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probes {
    /// Measured before the server was started, one per CPU.
    pub before: Vec<Probe>,
    /// Measured after all processes of the trial had exited, one per CPU.
    pub after: Vec<Probe>,
}

impl Probes {
    /// Whether no probe was stored.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// All probes, those before the trial first.
    pub fn all(&self) -> impl Iterator<Item = &Probe> {
        self.before.iter().chain(&self.after)
    }
}

/// A few million dependent operations in registers, about 10 ms, on one CPU; always the same. Its times are compared
/// with those of trials and runs on the same CPU model, and with each other. They never correct a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// CPU number.
    pub cpu: u32,
    /// Wall time from its start to its end, ns.
    pub wall_ns: u64,
    /// CPU time of its thread, ns: the CPU's speed. For the rest of `wall_ns` other processes had the CPU.
    pub cpu_ns: u64,
}

impl Probe {
    /// Fraction of its time in which something else had the CPU; 0 if the time is 0.
    pub fn lost(&self) -> f64 {
        ratio(self.wall_ns.saturating_sub(self.cpu_ns), self.wall_ns).unwrap_or(0.0)
    }

    /// Whether interruptions exceed those of a quiet machine: wall time above 1.1 times CPU time.
    pub fn is_contended(&self) -> bool {
        self.wall_ns as f64 > 1.1 * self.cpu_ns as f64
    }
}

impl Record {
    /// The measurement; `None` if the trial failed.
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.outcome {
            Outcome::Measured(measurement) => Some(measurement),
            Outcome::Failed(_) => None,
        }
    }
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "nearly every record is measured")]
pub enum Outcome {
    /// The trial has a measurement.
    Measured(Measurement),
    /// The trial has none, for this reason.
    Failed(Failure),
}

/// A failure to start, until the trial has run.
impl Default for Outcome {
    fn default() -> Self {
        Outcome::Failed(Failure { kind: FailureKind::Start, message: String::new() })
    }
}

/// Why a trial has no measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What failed.
    pub kind: FailureKind,
    /// Description, one sentence.
    pub message: String,
}

/// Kinds of failure.
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
    /// No response was valid.
    Answers,
    /// The server did not respond in time, or at all.
    Hung,
    /// No response came because other processes had the server's CPUs.
    Starved,
    /// The generator failed, or was killed.
    Generator,
    /// A proxy could not be started, or exited under load.
    Proxy,
    /// A companion could not be started, or exited under load.
    Companion,
    /// A machine of the cluster, or its clock, failed.
    Node,
}

/// Resource use and traffic of a proxy or a companion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyUse {
    /// Name in the study.
    pub name: String,
    /// Resource use, as for a server.
    pub used: SubjectUse,
    /// Whether it runs on the server's CPUs.
    pub shares_cpus: bool,
    /// Wall time from its start until it listened on its port, ns; `None` if never ready.
    pub ready_ns: Option<u64>,
    /// Bytes through its sockets while measured or since its start; `None` if not fully readable.
    pub wire: Option<WireUse>,
    /// Its log of calls, if the study requests it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Box<Calls>>,
}

/// TCP payload of a proxy, both ways, while measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireUse {
    /// Bytes on the connections that it accepted.
    pub front_bytes: u64,
    /// Bytes on its upstream connections.
    pub back_bytes: u64,
}

/// Resource use of the server, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectUse {
    /// Command line of the server.
    pub command: Vec<String>,
    /// Git revision of its directory, if known.
    pub revision: Option<String>,
    /// CPUs of the server.
    pub cpus: Vec<u32>,
    /// Port of the server.
    pub port: Option<u16>,
    /// CPU time in user mode while measured, ns.
    pub user_ns: u64,
    /// CPU time in the kernel while measured, ns.
    pub system_ns: u64,
    /// Wall time between the two readings of the CPU times, ns.
    pub measured_ns: u64,
    /// Time from its start to the start of measuring, ns.
    #[serde(default)]
    pub measured_from_ns: u64,
    /// Fraction of the measured time between the two readings, under 1 if one was late. `None` in older stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_share: Option<f64>,
    /// Time that its threads were ready but did not run, between the two readings, summed over threads
    /// (`/proc/PID/task/TID/schedstat`), ns; `None` if not exposed by the kernel, and in older stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_queue_ns: Option<u64>,
    /// Time that its CPUs worked for other processes, or were taken by the host of this virtual machine, between the
    /// two readings, summed over CPUs (`/proc/stat`, in ticks), ns. Proxies on the same CPUs do not count. `None` in
    /// older stores, and if the generator shares these CPUs or spinners keep them awake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_ns: Option<u64>,
    /// Longest time that one of its threads had been ready without running when measuring ended, ns: an ongoing wait,
    /// or waits that ended within the last 100 ms. `None` if the kernel does not report it, and in older stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_at_end_ns: Option<u64>,
    /// Peak RSS (`VmHWM`), bytes.
    pub rss_max_bytes: Option<u64>,
    /// Largest sample of the proportional set size, bytes.
    pub pss_max_bytes: Option<u64>,
    /// Voluntary context switches while measured.
    pub switches_voluntary: u64,
    /// Involuntary context switches while measured.
    pub switches_involuntary: u64,
    /// Largest sample of the number of threads.
    pub threads_max: u32,
    /// Largest sample of the number of sockets.
    pub sockets_max: u32,
    /// The samples, ten per second.
    pub samples: Vec<Sample>,
    /// How it ended: `exit 0`, `signal 9`, `forced after 2 s`.
    pub exit: Option<String>,
    /// The end of its stderr.
    pub stderr_tail: String,
    /// The container that it ran in; `None` for a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<ContainerUse>>,
}

impl SubjectUse {
    /// Share of the measured time that it waited for a CPU because other processes had it: the smaller of its threads'
    /// waits, which may be for each other, and the time others had its CPUs. `None` if either is unknown.
    pub fn waiting_share(&self) -> Option<f64> {
        // Ticks, usually of 10 ms, are truncated at both ends of measuring.
        const OTHERS_DOUBT_NS: u64 = 20_000_000;
        let doubt_ns = OTHERS_DOUBT_NS * self.cpus.len() as u64;
        let others_ns = self.others_ns.map(|ns| if ns > doubt_ns { ns } else { 0 })?;
        let waited_ns = self.run_queue_ns?.min(others_ns);
        (self.measured_ns > 0).then(|| (waited_ns as f64 / self.measured_ns as f64).min(1.0))
    }

    /// CPU time for the counted requests, ns: the use between the two readings, scaled up for the part they missed.
    pub fn cpu_ns(&self) -> f64 {
        let share = self.measured_share.filter(|share| *share > 0.0 && *share <= 1.0).unwrap_or(1.0);
        self.user_ns.saturating_add(self.system_ns) as f64 / share
    }
}

/// A container that a server ran in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerUse {
    /// The engine that started it, with its version: `podman 4.3.1`.
    pub engine: String,
    /// Its image, as the study names it.
    pub image: String,
    /// Identifier of the image, a digest of its content and configuration.
    pub image_id: String,
    /// The port inside that its port on the host is forwarded to; `None` if it uses the network of the host.
    pub published: Option<u16>,
    /// Counters of its control group; if `None`, it was not readable, and its processes were
    /// counted as for any server.
    pub cgroup: Option<CgroupUse>,
}

/// Counters of a control group, each with its file. CPU times, threads and resident memory of the server include it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupUse {
    /// Version of the control group interface, 1 or 2.
    pub version: u32,
    /// Path of the group in its hierarchy.
    pub path: String,
    /// File of the CPU times: `cpuacct.usage` or `cpu.stat`; `None` for the sum over its processes.
    pub cpu_source: Option<String>,
    /// Peak memory charged to processes, page cache and kernel, including the start of the container, bytes.
    pub memory_max_bytes: Option<u64>,
    /// Memory at the end of measuring, bytes.
    pub memory_end_bytes: Option<u64>,
    /// File of the peak: `memory.max_usage_in_bytes` or `memory.peak`.
    pub memory_source: Option<String>,
    /// Bytes read from block devices while measured.
    pub read_bytes: Option<u64>,
    /// Bytes written to block devices while measured.
    pub written_bytes: Option<u64>,
    /// File of both byte counts: `blkio.throttle.io_service_bytes` or `io.stat`.
    pub io_source: Option<String>,
}

/// One sample of the server, over all its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Time since the server was started, ns.
    pub at_ns: u64,
    /// CPU time so far, ns.
    pub cpu_ns: u64,
    /// Resident set, bytes.
    pub rss_bytes: u64,
    /// Proportional set, bytes; read less often than the other values.
    pub pss_bytes: Option<u64>,
    /// Number of threads.
    pub threads: u32,
    /// Open sockets; read less often than the other values.
    pub sockets: Option<u32>,
}

/// Counters of the network stack over a trial, of the whole network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkCounters {
    /// Segments retransmitted (`Tcp: RetransSegs`).
    pub retransmits: u64,
    /// Accept queues that were full (`TcpExt: ListenOverflows`).
    pub listen_overflows: u64,
    /// Connection requests dropped (`TcpExt: ListenDrops`).
    pub listen_drops: u64,
}

/// The bottleneck of a trial, with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Bottleneck of the trial.
    pub limited_by: Limit,
    /// Why, with the numbers.
    pub reasons: Vec<String>,
}

/// The bottleneck of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The server: its CPUs were busy, or it was slow to respond.
    Subject,
    /// The load generator: the numbers describe it, not the server.
    Generator,
    /// Neither: the offered load was met.
    Neither,
    /// Server and generator competed for CPUs, or another process took the server's.
    Shared,
    /// A proxy: its CPUs were busy.
    Proxy,
    /// Latency: few clients wait for responses, and no CPU is busy.
    Latency,
    /// The network between a generator's machine and the server's: full, lossy, or slower than the other generators'.
    Network,
}

/// Results of the load engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Version of the specification, [`crate::spec::SPEC_VERSION`].
    pub version: u32,
    /// Protocol of the requests.
    pub protocol: Protocol,
    /// Address of the server: `ip:port`, or `unix:` and a path; for a journey its first target. Empty in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Backend of `net` in use.
    pub backend: String,
    /// Why it is not the requested one.
    pub backend_note: Option<String>,
    /// Number of connections.
    pub clients: u32,
    /// Number of worker threads.
    pub threads: u32,
    /// Maximum requests in flight per connection.
    #[serde(default = "crate::spec::one")]
    pub pipeline: u32,
    /// How long a connection was used.
    #[serde(default)]
    pub connection: Connection,
    /// Start of measuring, ns, on the generator's monotonic clock, in a record on the lab's. 0 in older records.
    #[serde(default)]
    pub began_ns: u64,
    /// Length of the measurement, ns.
    pub duration_ns: u64,
    /// Length of the warm-up, ns.
    pub warmup_ns: u64,
    /// Requests of the warm-up.
    pub warmup_requests: u64,
    /// Valid responses within the timeout, while measured.
    pub requests: u64,
    /// Errors while measured, by kind: `wrong-answer`, `reset`, `timeout`, `refused`, `closed`, `closed-between` (the
    /// connection closed after earlier responses, before any of this one), `connect-timeout`, `os`, `truncated`; for
    /// HTTP `status`, `body`, `framing`, `head-too-large`, `tls`, `stream-reset` (HTTP/2); for a cache `value` (not the
    /// value or flags that were set, or another key's) and `error-answer`.
    pub errors: BTreeMap<String, u64>,
    /// The first error of each kind with details, in words.
    #[serde(default)]
    pub error_examples: BTreeMap<String, String>,
    /// HTTP statuses of responses among `requests`, `errors` or `late_answers`, while measured.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// Errors before measuring started, by kind.
    pub warmup_errors: BTreeMap<String, u64>,
    /// Responses after the timeout: errors of kind `timeout`, not requests, but with a latency in the histogram.
    pub late_answers: u64,
    /// Connections reopened after the server closed them.
    pub reconnects: u64,
    /// Clients in the generator's pause before reopening lost connections (back-off, no wait for a response), mean.
    #[serde(default)]
    pub in_backoff_mean: f64,
    /// Think time of a closed loop, ns. 0 in older stores.
    #[serde(default)]
    pub think_ns: u64,
    /// Requests written during the load, without fills of a cache: [`Measurement::warmup_requests`],
    /// [`Measurement::requests`], the errors of written requests in both spans, [`Measurement::asked_again`] and
    /// [`Measurement::left_in_flight`]. 0 in older records.
    #[serde(default)]
    pub sent: u64,
    /// Requests resent because an earlier response was its connection's last or unreadable.
    #[serde(default)]
    pub asked_again: u64,
    /// Requests in flight when the load ended, not counted elsewhere. The server may have seen
    /// them.
    #[serde(default)]
    pub left_in_flight: u64,
    /// Offered rate; `None` in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Intended sends that were never written: no free connection until the end.
    pub unsent: u64,
    /// Written requests whose response would have counted when measuring ended. Overdue ones are also errors.
    pub unfinished: u64,
    /// How long the pending requests had waited when measuring ended; `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Box<Censored>>,
    /// Requests in flight, mean over the measured time, counted by the engine and not derived from latency.
    pub in_flight_mean: f64,
    /// Time from the write to the response.
    pub service: Histogram,
    /// Time from the intended send to the response; `None` in a closed loop, where service time takes its place.
    pub response: Option<Histogram>,
    /// Written minus intended, if the generator's thread was late; open loop only.
    pub lag_thread: Option<Histogram>,
    /// Written minus intended, if no connection was free; open loop only.
    pub lag_connection: Option<Histogram>,
    /// Time from requesting a connection to its establishment, over all connections of the trial.
    pub connect: Histogram,
    /// Time from the established connection to the end of the TLS handshake, over all connections; `None` without TLS.
    pub handshake: Option<Histogram>,
    /// Handshakes that resumed an earlier session.
    #[serde(default)]
    pub resumed: u64,
    /// Length of a window, ns; the last one may be shorter.
    pub window_ns: u64,
    /// Slices of the measured time, in order.
    pub windows: Vec<Window>,
    /// One entry per worker.
    pub workers: Vec<Worker>,
    /// CPU time of the whole process of the generator, start to end, ns.
    pub process_cpu_ns: u64,
    /// Its peak resident set, bytes.
    pub process_rss_max_bytes: u64,
    /// Bytes sent, payload, while measured.
    pub sent_bytes: u64,
    /// Bytes received, payload, while measured.
    pub received_bytes: u64,
    /// Why it ended, one sentence.
    pub stop_reason: String,
    /// Volley's closing line, under its own rule.
    pub volley: Option<Volley>,
    /// Cache results; `None` if the server is not a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Box<CacheMeasurement>>,
    /// Results of the journeys; empty for other loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journeys: Vec<JourneyMeasurement>,
    /// Measured requests in the order they ended, as [`crate::spec::LoadSpec::log_one_in`] requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LoggedRequest>,
    /// Requests left out of the log because of its size.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub log_left_out: u64,
    /// The slowest responses, in descending order of latency; empty for requests without `{{trace}}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowResponse>,
    /// Responses whose whole body was checked, as [`crate::spec::Expect::check_one_in`] requests.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub checked: u64,
    /// Time from the write of a request to the first part of its response, as coarse as windows, ns. Only of responses
    /// that arrived in several parts, since the latency of the others is the same time; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Histogram>,
    /// Requests of a mix by method and target, in the order of the mix; empty for other loads, and
    /// for a mix with more than 64 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<OperationMeasurement>,
    /// The rate, or in a closed loop the number of clients, over the measured time, if it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<Stage>,
    /// HTTP/2 results; `None` for other protocols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Box<StreamsMeasurement>>,
}

/// Results of a load over HTTP/2, while measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamsMeasurement {
    /// Least number of requests in flight that the server allowed per connection, at any time; `None` without a limit.
    pub allowed: Option<u32>,
    /// Connections that the server left with GOAWAY.
    pub goaways: u64,
    /// Requests that the server refused to process; they were resent.
    pub refused: u64,
    /// Number of responses that the following numbers cover.
    pub responses: u64,
    /// Their encoded heads and trailers, bytes.
    pub header_bytes: u64,
    /// Bytes of other responses on the same connection between a request and the first byte of its response.
    pub bytes_ahead: u64,
    /// Requests whose body waited for flow-control credit from the server.
    pub stalled_uploads: u64,
    /// Open loop: time from when a request was due until a connection had room for it, ns, as
    /// coarse as windows, for requests limited by the load's own stream limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_own: Option<Histogram>,
    /// As `wait_own`, for requests limited by the server's stream limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_server: Option<Histogram>,
    /// As `wait_own`, for requests that waited for a connection or were resent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_connection: Option<Histogram>,
}

/// Requests that were due and had no response, valid or not, when measuring ended. A request is due if its response
/// would have counted just before the end. Its latency is known only to exceed its wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Censored {
    /// How long the written ones had waited, by the clock of [`Measurement::latency`].
    pub in_flight: Histogram,
    /// How long the unsent ones had waited; open loop only.
    pub unsent: Histogram,
    /// Number of unsent ones that had waited longer than the timeout. Written ones are among the errors, as `timeout`.
    pub unsent_overdue: u64,
    /// Connections with requests in flight, by the age of the oldest one.
    pub connections: Histogram,
    /// How long the server had been silent on all connections with requests in flight, ns: since the first pending
    /// request written after its last response, valid or not. The end of a connection counts as a response here.
    pub silent_ns: u64,
}

impl Censored {
    /// Number of requests, written and unsent.
    pub fn len(&self) -> u64 {
        self.in_flight.count.saturating_add(self.unsent.count)
    }

    /// Whether every request that was due had a response.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Results of a journey's operations. [`Measurement::requests`] are the calls of all journeys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JourneyMeasurement {
    /// The journey's name.
    pub name: String,
    /// Journeys completed while measured.
    pub completed: u64,
    /// Journeys that ended with an error.
    pub abandoned: u64,
    /// Operations in the order of the journey, each once.
    pub operations: Vec<OperationMeasurement>,
    /// Time of the completed journeys, from when each was due; `None` if none was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Histogram>,
    /// Requests, responses and the values taken, if requested; otherwise empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub transcript: String,
}

/// One operation of a journey, or one kind of request in a mix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationMeasurement {
    /// Name of the operation, or method and target of the request.
    pub name: String,
    /// Calls with a valid response.
    pub requests: u64,
    /// Calls without a valid response.
    pub errors: u64,
    /// Latency, as coarse as that of windows. Of a journey from the write of the request; of a mix
    /// on the clock of the load.
    pub service: Histogram,
    /// Time to the first part of the response, as [`Measurement::first_byte`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Histogram>,
}

/// Maximum number of [`Measurement::slowest`].
pub const SLOWEST_MAX: usize = 20;

/// A slow response to a request with a trace id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowResponse {
    /// Latency as [`Measurement::latency`] defines it, ns.
    pub latency_ns: u64,
    /// The `trace-id` of its `traceparent` (W3C Trace Context), 32 hexadecimal digits.
    pub trace_id: String,
    /// Name of its request, or method and target.
    pub request: String,
    /// End of the response since measuring began, ns.
    pub ended_ns: u64,
}

/// Keeps the slowest of `all`, at most [`SLOWEST_MAX`], in descending order of latency.
pub fn keep_slowest(all: &mut Vec<SlowResponse>) {
    all.sort_by_key(|slow| std::cmp::Reverse(slow.latency_ns));
    all.truncate(SLOWEST_MAX);
}

/// A request of the log. Times are in ns since measuring began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoggedRequest {
    /// Intended send time; in a closed loop, the actual one.
    pub intended_ns: i64,
    /// Time of the write.
    pub sent_ns: i64,
    /// Arrival of the first part of its response; `None` if none did, or if it is unknown.
    pub first_byte_ns: Option<i64>,
    /// Time at which its response was complete, or it failed.
    pub ended_ns: i64,
    /// Status of its response; 0 if there is none.
    pub status: u16,
    /// Length of the body of its response.
    pub bytes: u64,
    /// Index of the request in the mix, or of the step in the journey.
    pub request: u32,
    /// Client and journey of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<LoggedSession>,
    /// Kind of error; empty for a valid response.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// The client and journey of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoggedSession {
    /// The client, from 0.
    pub client: u64,
    /// Number of its journey over all clients, from 0, including the warm-up.
    pub journey: u64,
}

/// Cache results. [`Measurement::requests`] are the operations of the workload, without the fills and rewrites caused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheMeasurement {
    /// Responses while measured.
    pub counts: CacheCounts,
    /// Responses before measuring started.
    pub warmup: CacheCounts,
    /// Latency of GETs that hit: service time, from write to response, as coarse as in windows, like all here.
    pub get_hit: Histogram,
    /// Latency of GETs that missed.
    pub get_miss: Histogram,
    /// Latency of SETs of the workload.
    pub set: Histogram,
    /// Latency of DELETEs.
    pub delete: Histogram,
    /// Latency of SETs caused by misses.
    pub fill: Histogram,
    /// Latency of SETs caused by the reads of read-modify-write.
    pub rewrite: Histogram,
    /// Distinct keys requested since the start of the load.
    pub footprint_keys: u64,
    /// Bytes of these keys and their values: a cache without overhead that holds all. If the length varies by SET, the
    /// value of the first operation on the key counts.
    pub footprint_bytes: u64,
    /// Memory limit reported before the load, in the server's own accounting, bytes; `None` if
    /// unknown or unlimited.
    pub limit_bytes: Option<u64>,
    /// The hit ratio that the mix of operations determines for a cache of any size; `None` if it does not.
    pub hit_ratio_of_mix: Option<f64>,
    /// Length of a window of the transient, ns.
    pub transient_window_ns: u64,
    /// GETs that hit and GETs in each window of the warm-up, in order; the last one may be shorter.
    pub transient: Vec<(u64, u64)>,
    /// Seconds until the warm-up was steady, or why it was not, in words; `None` for other warm-up rules.
    pub steadiness: Option<String>,
    /// The replayed trace; `None` if the workload was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceReplay>,
}

/// Replay of a trace, from the start of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceReplay {
    /// Path of the trace file.
    pub file: String,
    /// File format.
    pub format: crate::workload::trace::Format,
    /// Operations sent, including repeats.
    pub operations: u64,
    /// Distinct keys sent.
    pub keys: u64,
    /// Mean length of these keys as sent, bytes.
    pub key_bytes_mean: Option<f64>,
    /// Mean length of these keys as recorded, bytes; of those with a recorded length.
    pub key_bytes_recorded_mean: Option<f64>,
    /// Keys sent longer than recorded, to be distinct.
    pub keys_lengthened: u64,
    /// Whether the trace ended.
    pub ended: bool,
    /// Time that workers waited for the trace to be read, summed over workers, ns: the load was late by this much.
    pub stalled_ns: u64,
}

/// Counts of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheCounts {
    /// GETs with the right value.
    pub hits: u64,
    /// GETs without a value.
    pub misses: u64,
    /// Bytes of the values received.
    pub hit_bytes: u64,
    /// Bytes of the values requested: for a miss, those a SET of the key would have had.
    pub requested_bytes: u64,
    /// Misses by cause; they add up to [`CacheCounts::misses`].
    pub causes: MissCauses,
    /// Stored SETs of the workload.
    pub sets: u64,
    /// DELETEs of the workload, whether or not the key existed.
    pub deletes: u64,
    /// Stored SETs caused by misses.
    pub fills: u64,
    /// Stored SETs caused by the reads of read-modify-write.
    pub rewrites: u64,
    /// Rejected SETs of all kinds: cache full (`SERVER_ERROR out of memory`, `-OOM`, 507) or value too large.
    pub refused_sets: u64,
}

impl CacheCounts {
    /// Hits over GETs; `None` if there were no GETs.
    pub fn hit_ratio(&self) -> Option<f64> {
        ratio(self.hits, self.hits.saturating_add(self.misses))
    }

    /// Bytes received over bytes requested; `None` if none were requested.
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        ratio(self.hit_bytes, self.requested_bytes)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Causes of missed GETs, according to earlier requests and responses of the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissCauses {
    /// No value was ever stored under the key: first request, first value still on its way, or no fills.
    pub compulsory: u64,
    /// The key was deleted before or during the GET.
    pub invalidation: u64,
    /// The time to live of the value had elapsed, to the second.
    pub expiry: u64,
    /// The last SET of the key was rejected.
    pub refused: u64,
    /// None of the other causes: it was stored, then evicted.
    pub capacity: u64,
}

impl MissCauses {
    /// Each count with its name.
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
    /// Valid responses per second.
    pub fn rate_per_s(&self) -> f64 {
        self.requests as f64 * 1e9 / (self.duration_ns as f64).max(1.0)
    }

    /// All errors.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().copied().fold(0, u64::saturating_add)
    }

    /// Journeys that ended.
    pub fn sessions(&self) -> u64 {
        self.journeys.iter().map(|journey| journey.completed.saturating_add(journey.abandoned)).sum()
    }

    /// Response time in an open loop, service time in a closed one.
    pub fn latency(&self) -> &Histogram {
        self.response.as_ref().unwrap_or(&self.service)
    }
}

/// The line that volley would print: `<mean>us <stddev>us <samples>`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Volley {
    /// Mean latency, us.
    pub mean_us: f64,
    /// Standard deviation, pooled within clients as volley does it, us.
    pub stddev_us: f64,
    /// Number of latencies.
    pub samples: u64,
    /// Rounds, without the priming one.
    pub rounds: u32,
}

/// A histogram as stored: sparse, log-linear. `stats::Histogram` defines the bucket bounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// Bits of linear sub-buckets in each power of two.
    pub precision_bits: u8,
    /// Counts of the non-empty buckets.
    pub buckets: Buckets,
    /// Values recorded.
    pub count: u64,
    /// Values above the range: in `count`, in no bucket.
    pub saturated: u64,
    /// Smallest value, exact; `None` when empty.
    pub min: Option<u64>,
    /// Largest value, exact; `None` when empty.
    pub max: Option<u64>,
    /// Sum, to the precision of a float.
    pub sum: f64,
    /// Sum of the squared values, to the precision of a float.
    pub sum_of_squares: f64,
}

impl Histogram {
    /// The mean; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// A slice of the measured time, all workers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Valid responses.
    pub requests: u64,
    /// Errors of all kinds.
    pub errors: u64,
    /// The latency that [`Measurement::latency`] names, coarse.
    pub latency: Histogram,
}

/// One worker of the generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    /// CPU of the worker, if pinned.
    pub cpu: Option<u32>,
    /// Valid responses.
    pub requests: u64,
    /// CPU time of its thread while measured, ns.
    pub cpu_ns: u64,
    /// The part of it spent polling for the next intended send, ns; open loop only.
    pub spin_ns: u64,
    /// Time it was ready but did not run (`/proc/self/schedstat`), ns; `None` if not exposed by the kernel.
    pub run_queue_ns: Option<u64>,
    /// Its measured wall time, ns.
    pub wall_ns: u64,
    /// Turns of its loop.
    pub turns: u64,
    /// Time held up while measured, ns: woke 50 ms or more after its timer, stopped or without a CPU. 0 in old stores.
    #[serde(default)]
    pub stalled_ns: u64,
}
