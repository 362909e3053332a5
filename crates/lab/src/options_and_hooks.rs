//! The lab's interface to its caller: options, callbacks, progress and errors. The lab does not judge or print numbers.

use std::path::PathBuf;
use std::rc::Rc;

use study::record::{Cpu, Host, IdlePolicy, Probe, Record, Sample};

use crate::cluster::Cluster;

/// Settings for carrying out a plan on this machine.
#[derive(Clone)]
pub struct Options {
    /// The quintain binary, used for the generator and for `quintain` in commands.
    pub exe: PathBuf,
    /// Directory of the study: the working directory of commands and the base of relative paths.
    pub directory: PathBuf,
    /// CPUs to use and their topology, from `cpus` of `study::record::Host`.
    pub cpus: Vec<Cpu>,
    /// Policy for idle CPUs during trials.
    pub idle: IdlePolicy,
    /// Machines that run the trials; `None` for this machine.
    pub cluster: Option<Rc<Cluster>>,
    /// Probes the CPUs of the server and the generator around each trial: [`crate::cpu_probe::run`] except in tests.
    pub probe: fn(&[u32], &[u32]) -> Vec<Probe>,
}

impl Options {
    /// Creates options with the machine's idle policy and with those CPUs of `host` that are in `cpus`.
    pub fn new(exe: PathBuf, directory: PathBuf, host: &Host, cpus: &[u32]) -> Self {
        let cpus = host.cpus.iter().filter(|cpu| cpus.contains(&cpu.index)).copied().collect();
        Self { exe, directory, cpus, idle: IdlePolicy::Machine, cluster: None, probe: crate::cpu_probe::run }
    }
}

/// Callbacks of the lab, which calls them from the thread of its caller.
pub struct Hooks<'a> {
    /// Stores a record before the next trial begins; may add facts to it. An error ends the run.
    pub store: &'a mut dyn FnMut(&mut Record) -> Result<(), String>,
    /// Decides what to do next at the design point with this index, before each trial. Receives all records of the run.
    pub next: &'a mut dyn FnMut(usize, &[Record]) -> study::Next,
    /// Receives the progress at each change of phase and a few times per second under load.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Whether to stop at once; called about twenty times per second.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// Position of the lab in its run.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Phase that the lab is in.
    pub phase: Phase,
    /// Index of the design point in the plan.
    pub point: usize,
    /// Number of the trial's block, from 0.
    pub block: u32,
    /// Position of the trial in the run, from 0.
    pub order: u32,
    /// Latest progress of this trial's load; `None` without a load.
    pub live: Option<Live>,
}

/// Progress of a trial under load.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Latest progress message of the generator.
    pub load: study::generator_messages::Progress,
    /// Latest sample of the server; `None` if there is none yet or the server runs on another machine.
    pub server: Option<Sample>,
}

/// Phase of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Building the server of this point.
    Build,
    /// Verifying that the server keeps its contract.
    Verify,
    /// Starting the server, until its port accepts connections.
    Start,
    /// Loading the server before measuring.
    Warmup,
    /// Loading the server and counting its responses.
    Measure,
    /// Stopping the server.
    Stop,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Every point has all trials that it needs or is allowed.
    Complete,
    /// The plan's time limit was reached.
    OutOfTime,
    /// [`Hooks::interrupted`] returned true. The unfinished trial has no record.
    Interrupted,
    /// A machine of the cluster was lost, for this reason. The unfinished trial has no record.
    Lost(String),
}

/// Why a run could not continue. A failed trial is not such an error: it leaves a record.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The watchdog of this binary could not be started or is gone, and nothing may run without one.
    #[error("cannot run the watchdog of `{0}`: {1}")]
    Watchdog(PathBuf, std::io::Error),
    /// Spinners of [`IdlePolicy::Spin`] are not running on these CPUs. The second value is their last output.
    #[error("the idle spinners on CPUs {0} are not running: {1}")]
    Spin(String, String),
    /// The record of the trial at this position in the run could not be stored, for this reason.
    #[error("cannot store the record of trial {0}: {1}")]
    Store(u32, String),
}
