//! The experiment runner: how does a [`study::Plan`] become [`study::Record`]s on this machine?
//!
//! ```text
//! let host = lab::host::facts(&directory);
//! let builds = lab::build_all(&plan, &options, &mut progress, &interrupted)?;
//! let ended = lab::run(&plan, &builds, &done, &options, &mut hooks)?;
//! ```
//!
//! A trial starts a fresh subject ([`Options::exe`]` exec`, so that it pins itself), waits for its port, lets a generator process
//! load it, samples what it uses meanwhile, stops it, and hands the record to [`Hooks::store`]. Nothing that is started outlives
//! the lab, however either ends: see [`exec`] and [`watchdog`]. When there are trials enough, and who was the limit, are
//! questions that [`Hooks`] answer.

mod build;
pub mod busy;
mod cgroup;
pub mod clock;
pub mod cluster;
mod companion;
mod container;
pub mod cpus;
pub mod doctor;
mod end;
pub mod exec;
pub mod fold;
mod generator;
mod hooks;
pub mod host;
mod lines;
mod listener;
mod load;
mod network;
pub mod noise;
mod perf;
pub mod presence;
pub mod probe;
mod process;
mod profile;
mod proxy;
mod ready;
pub mod revision;
mod run;
mod sample;
mod server;
mod spinner;
mod subject;
mod tail;
mod target;
#[cfg(test)]
mod tests;
mod threads;
pub mod topology;
mod trial;
pub mod verify;
pub mod watchdog;
mod wire;
pub mod worktree;

pub use build::build_all;
pub use hooks::{Cause, Ended, Hooks, Judge, LabError, Live, Next, Options, Phase, Progress, Store};
pub use profile::{no_profile, profile};
pub use run::run;
pub use sample::CpuTime;
pub use target::missing_files;
