//! Tests of studies as users write them. All share one test binary, since each binary takes time to link.

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
