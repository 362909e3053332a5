//! End-to-end tests on real processes: their output and exit codes.
//!
//! All of them are in one binary, because each further one would be linked and run separately.

mod adapter;
mod built_in;
mod calculator;
mod chess;
mod cluster;
mod common;
mod compare;
mod conformance;
mod curves;
mod face;
mod guides;
mod history;
mod http;
mod init;
mod live;
mod load;
mod metrics;
mod profile;
mod run;
mod seam;
mod serve;
mod serve_cache;
mod studies;
mod verify;
mod workload;
