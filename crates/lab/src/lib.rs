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
mod cgroup;
pub mod clock;
pub mod cluster;
mod companion;
mod container;
pub mod cpu_list;
pub mod cpu_probe;
mod cpu_profile;
pub mod divide_cpus;
pub mod doctor;
pub mod exec;
mod files;
pub mod fold_stacks;
mod generator;
mod hooks;
pub mod host;
mod json_lines;
mod load_side;
mod network_counters;
pub mod other_labs;
pub mod other_processes;
mod output_tail;
mod perf;
mod process;
mod procfs;
mod proxy;
mod ready;
pub mod revision;
mod run;
mod sample;
mod server_side;
mod shared_builds;
mod spinner;
mod start_server;
mod target;
mod tcp_byte_counts;
#[cfg(test)]
mod tests;
mod thread_counters;
mod trial;
mod trial_end;
pub mod verify;
pub mod watchdog;
pub mod worktree;

pub use build::build_all;
pub use cpu_profile::{no_profile, profile};
pub use hooks::{Cause, Ended, Hooks, LabError, Live, Options, Phase, Progress};
pub use run::run;
pub use target::missing_files;
