//! The lab's interface to its caller: options, callbacks, progress, errors. It judges no numbers and prints nothing.

use std::path::PathBuf;
use std::rc::Rc;

use study::record::{Cpu, Host, IdlePolicy, Probe, Record, Sample, Step};

use crate::cluster::Cluster;

/// Settings for carrying out a plan on this machine.
#[derive(Clone)]
pub struct Options {
    /// The quintain binary: the generator, and the `quintain` of commands.
    pub exe: PathBuf,
    /// The study's directory: the working directory of commands and the base of relative paths.
    pub directory: PathBuf,
    /// CPUs to use, with their topology; from `cpus` of `study::record::Host`.
    pub cpus: Vec<Cpu>,
    /// Idle policy during trials.
    pub idle: IdlePolicy,
    /// Machines that run the trials; `None` for this one.
    pub cluster: Option<Rc<Cluster>>,
    /// Measures the speed of server's and generator's CPUs around each trial: [`crate::cpu_probe::run`] except in tests.
    pub probe: fn(&[u32], &[u32]) -> Vec<Probe>,
}

impl Options {
    /// Creates options for the `cpus` that the host has, with the machine's default idle policy.
    pub fn new(exe: PathBuf, directory: PathBuf, host: &Host, cpus: &[u32]) -> Self {
        let cpus = host.cpus.iter().filter(|cpu| cpus.contains(&cpu.index)).copied().collect();
        Self { exe, directory, cpus, idle: IdlePolicy::Machine, cluster: None, probe: crate::cpu_probe::run }
    }
}

/// Callbacks of the lab, all called from the thread that called the lab.
pub struct Hooks<'a> {
    /// Stores a record before the next trial begins, and may add to it. An error ends the run.
    pub store: &'a mut dyn FnMut(&mut Record) -> Result<(), String>,
    /// Decides what is next at a design point (by index), given all records of the run, before each trial.
    pub next: &'a mut dyn FnMut(usize, &[Record]) -> study::Next,
    /// Called at each change of phase and a few times per second under load.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Whether to stop at once; polled about twenty times per second.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// Position of the lab in its run.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Current phase.
    pub phase: Phase,
    /// Index of the design point.
    pub point: usize,
    /// Number of the block.
    pub block: u32,
    /// Position of the trial in the run, from 0.
    pub order: u32,
    /// Request for this trial beyond the plan.
    pub step: Option<Step>,
    /// Records of this run so far, including earlier sittings.
    pub trials_done: u32,
    /// Latest progress of this trial's load.
    pub live: Option<Live>,
}

/// Progress of a trial under load.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// The generator's progress message.
    pub load: study::generator_messages::Progress,
    /// Latest sample of the server. `None` if not sampled yet or on another machine.
    pub server: Option<Sample>,
}

/// Phase of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Building the server of this point.
    Build,
    /// Verifying the server's contract.
    Verify,
    /// Starting the server, until its port accepts connections.
    Start,
    /// Loading without measuring.
    Warmup,
    /// Measuring.
    Measure,
    /// Stopping the server.
    Stop,
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Why the run ended.
    pub cause: Cause,
    /// Why each design point gets no more trials; `None` if it would have got more.
    pub points: Vec<Option<String>>,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Every point has the trials that it needs or may have.
    Complete,
    /// The plan's time limit was reached.
    OutOfTime,
    /// [`Hooks::interrupted`] returned true; the unfinished trial is dropped.
    Interrupted,
    /// A machine of the cluster was lost, for this reason; the unfinished trial is dropped.
    Lost(String),
}

/// Why a run could not continue. A failed trial does not end a run: it leaves a record.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The watchdog of this binary could not be started or is gone; nothing may run without it.
    #[error("cannot run the watchdog of `{0}`: {1}")]
    Watchdog(PathBuf, std::io::Error),
    /// Spinners of [`IdlePolicy::Spin`] do not run: their CPUs and last output.
    #[error("the idle spinners on CPUs {0} are not running: {1}")]
    Spin(String, String),
    /// The record of the trial at this position of the run could not be stored.
    #[error("cannot store the record of trial {0}: {1}")]
    Store(u32, String),
}
