//! Studies as users write them, their plans and errors. One test binary for all, since each takes time to link.

mod containers;
mod effects;
mod fuzz_targets;
mod miss_ratio_curves;
mod mistakes;
mod plans;
mod proxies;
mod schemas;
mod searches;
mod shipped_studies;
mod workloads;
