//! Runs experiments: carries out a [`study::Plan`] on this machine and produces [`study::Record`]s.
//! ```text
//! let host = lab::host::facts(&directory);
//! let builds = lab::build_all(&plan, &options, &mut progress, &interrupted)?;
//! let ended = lab::run(&plan, &builds, &done, &options, &mut hooks)?;
//! ```
//! A trial starts a fresh server through `quintain exec`, which pins it, and waits for its port. A generator process
//! then loads it while the lab samples its usage. The lab stops it and passes the record to [`Hooks`], which decide
//! when there are enough. No process outlives the lab, however either ends: see [`exec`] and [`watchdog`].

mod build;
mod builds;
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
mod files;
pub mod fold;
mod generator;
mod hooks;
pub mod host;
mod lines;
mod load;
mod network;
mod perf;
pub mod presence;
pub mod probe;
mod process;
mod procfs;
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
pub use hooks::{Cause, Ended, Hooks, LabError, Live, Options, Phase, Progress};
pub use profile::{no_profile, profile};
pub use run::run;
pub use target::missing_files;
