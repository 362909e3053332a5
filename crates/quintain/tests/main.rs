//! The program as its users run it: real processes, what they print, how they end.
//!
//! One binary: each more would be linked, and run, on its own.

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
