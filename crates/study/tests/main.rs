//! Studies as users write them, their plans and errors. One binary: each further one takes time to link and run.

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
