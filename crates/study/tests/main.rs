//! Studies as their users write them: what they mean, and every error.
//!
//! One binary: each more would be linked, and run, on its own.

mod containers;
mod curves;
mod effects;
mod fuzz;
mod mistakes;
mod plans;
mod proxies;
mod schemas;
mod searches;
mod studies;
mod workloads;
