//! The experiment runner: host facts, subject lifecycle, pinning, sampling, trials to Records.

mod build;
pub mod clock;
pub mod cpus;
pub mod exec;
mod generator;
mod hooks;
pub mod host;
mod network;
mod process;
mod ready;
pub mod revision;
mod run;
mod sample;
mod tail;
pub mod topology;
mod trial;
pub mod watchdog;
mod words;

pub use build::build_all;
pub use hooks::{Cause, Ended, Enough, Hooks, Judge, LabError, Live, Options, Phase, Progress, Store};
pub use run::run;
