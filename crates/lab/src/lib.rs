//! Runs experiments: carries out a [`study::Plan`] on this machine or a cluster and produces [`study::Record`]s.
//! [`build_all`] builds the servers, and [`run()`] runs the trials. For each trial, `quintain exec` pins a fresh server
//! and starts it. Once its port accepts connections, a generator process loads the server while the lab samples its
//! usage. The lab then stops the server and passes the record to [`Hooks`], which decide when there are enough records.
//! No process outlives the lab: see [`exec`] and [`watchdog`].

mod build_servers;
mod builds_shared_by_points;
mod cgroup_usage;
pub mod cluster;
mod container;
pub mod cpu_list;
pub mod cpu_probe;
mod cpu_profile_trial;
pub mod divide_cpus;
pub mod doctor;
pub mod exec;
pub mod fold_stacks;
mod generator_process;
pub mod git_revision;
pub mod git_worktrees;
pub mod host_facts;
mod json_lines;
pub mod lab_clocks;
mod load_side;
mod load_target_and_files;
mod network_counters;
mod options_and_hooks;
pub mod other_labs;
pub mod other_processes;
mod output_tail;
mod perf_sampling;
mod ports_and_readiness;
mod process_sockets;
mod process_start_and_stop;
mod procfs;
mod proxy;
mod proxy_tcp_byte_counts;
mod resource_sampler;
mod run;
mod server_side;
mod size_limited_reads;
mod start_server;
#[cfg(test)]
mod tests;
mod thread_counters;
mod trial;
mod trial_end_reason;
pub mod verify;
pub mod watchdog;

pub use build_servers::build_all;
pub use cpu_profile_trial::{no_profile, profile};
pub use json_lines::Channel;
pub use load_target_and_files::missing_files;
pub use options_and_hooks::{Cause, Hooks, LabError, Live, Options, Phase, Progress};
pub use run::run;
