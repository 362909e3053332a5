//! The program as its users run it: real processes, what they print, how they end.
//!
//! One binary: each more would be linked, and run, on its own.

mod adapter;
mod calculator;
mod chess;
mod cluster;
mod common;
mod curves;
mod face;
mod http;
mod load;
mod run;
mod seam;
mod serve;
mod serve_cache;
mod studies;
mod verify;
mod workload;
