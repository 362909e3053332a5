//! The experiment runner: host facts, subject lifecycle, pinning, sampling, trials to Records.

pub mod clock;
pub mod cpus;
pub mod exec;
mod hooks;
mod process;
mod tail;
pub mod topology;
pub mod watchdog;
mod words;

pub use hooks::{Cause, Ended, Hooks, LabError, Live, Options, Phase, Progress};
