//! What the lab is told from outside, and what it tells: it has no opinion about numbers and prints nothing.

use std::path::PathBuf;
use std::rc::Rc;

use study::Warning;
use study::record::{Cpu, Host, IdlePolicy, Probe, Record, Step, Verdict};

use crate::cluster::Cluster;
use crate::sample::CpuTime;

/// How to carry a plan out on this machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The quintain binary: it is the generator, and what a command means that begins with the word `quintain`.
    pub exe: PathBuf,
    /// The study's directory: commands start in it, and file names are relative to it.
    pub directory: PathBuf,
    /// The processors to use, with their places; from `study::record::Host`'s `cpus`.
    pub cpus: Vec<Cpu>,
    /// What idle processors do while trials run.
    pub idle: IdlePolicy,
    /// The machines that trials are carried out on; `None`: this one.
    pub cluster: Option<Rc<Cluster>>,
    /// What tells how fast processors are before and after each trial, given those of the subject and of the generator: [`crate::probe::run`],
    /// or what a test makes up.
    pub probe: fn(&[u32], &[u32]) -> Vec<Probe>,
}

impl Options {
    /// A lab on those of `cpus` that the host has, which leaves idle processors to the machine.
    pub fn new(exe: PathBuf, directory: PathBuf, host: &Host, cpus: &[u32]) -> Self {
        let cpus = host.cpus.iter().filter(|cpu| cpus.contains(&cpu.index)).copied().collect();
        Self { exe, directory, cpus, idle: IdlePolicy::Machine, cluster: None, probe: crate::probe::run }
    }
}

/// What the lab asks and tells while it works, all from the thread that called it.
pub struct Hooks<'a> {
    /// Who was the limit of a trial (`None` for a failed one), and what a reader should be warned of.
    pub judge: Judge<'a>,
    /// Keeps a record, before the next trial begins; an error ends the run.
    pub store: Store<'a>,
    /// What is to be done next at a design point (by index), given all records of the run so far. Asked before each of its trials,
    /// also before the first.
    pub next: Next<'a>,
    /// Told at each change of phase and as often as the generator tells (a few times a second).
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Whether to end at once; asked about twenty times a second.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// See [`Hooks::judge`].
pub type Judge<'a> = &'a mut dyn FnMut(&Record) -> (Option<Verdict>, Vec<Warning>);
/// See [`Hooks::store`].
pub type Store<'a> = &'a mut dyn FnMut(&Record) -> Result<(), String>;
/// See [`Hooks::next`].
pub type Next<'a> = &'a mut dyn FnMut(usize, &[Record]) -> study::Next;

/// Where the lab is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What it does.
    pub phase: Phase,
    /// The design point.
    pub point: usize,
    /// The block.
    pub block: u32,
    /// Place of the trial in the order of the whole run, from 0.
    pub order: u32,
    /// What is asked of this trial beyond the plan.
    pub step: Option<Step>,
    /// Records of this run so far, those of an earlier sitting too.
    pub trials_done: u32,
    /// What was last seen of this trial's load.
    pub live: Option<Live>,
}

/// A trial while it is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// As the generator tells it.
    pub load: study::seam::Progress,
    /// What the server has used, as of the last look; `None`: not looked at yet, or on another machine.
    pub server: Option<CpuTime>,
}

/// What the lab does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Building the subject of this point.
    Build,
    /// The contract of the subject is verified.
    Verify,
    /// Starting the subject, until its port answers.
    Start,
    /// Loading it, not measuring yet.
    Warmup,
    /// Measuring.
    Measure,
    /// Ending the subject.
    Stop,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What ended it.
    pub cause: Cause,
    /// Why each design point got no further trials; `None`: it would have got more.
    pub points: Vec<Option<String>>,
}

/// What ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Every point has what it needs, or all that it may have.
    Complete,
    /// The time of the plan was over.
    OutOfTime,
    /// [`Hooks::interrupted`] said so; the unfinished trial is dropped.
    Interrupted,
    /// A machine of the cluster was lost, with the reason; the unfinished trial is dropped.
    Lost(String),
}

/// Why a run could not go on. A trial that fails is no such reason: it leaves a record.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Nothing may be started without a watchdog, and it could not be started or is gone.
    #[error("cannot run the watchdog of `{exe}`: {error}")]
    Watchdog {
        /// The quintain binary.
        exe: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The spinners of [`IdlePolicy::Spin`] are not running, so the records would name a policy that is not in force.
    #[error("the idle spinners on CPUs {cpus} are not running: {why}")]
    Spin {
        /// Their processors.
        cpus: String,
        /// How they ended, with their last words.
        why: String,
    },
    /// A finished trial could not be kept.
    #[error("cannot store the record of trial {order}: {error}")]
    Store {
        /// Place of the trial in the run.
        order: u32,
        /// Why.
        error: String,
    },
}
