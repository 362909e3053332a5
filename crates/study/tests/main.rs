//! Studies as users write them, their plans and errors.
//!
//! A single binary, because linking and running each further one takes time.

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
