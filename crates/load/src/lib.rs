//! The load engine: a [`study::LoadSpec`] to a [`study::Measurement`].
//!
//! ```text
//! load::run(&spec, &mut |progress| ..., &abort)?
//! ```
//!
//! Each worker is a thread with its own driver, connections and histograms ([`worker`]); nothing is shared while
//! requests fly but a few numbers: when measuring begins, when it ends. The [`coordinator`] sets them, and each worker
//! has a [`phase_tracker`] of them. Histograms are merged once, at the end. A protocol is one implementation of
//! [`protocol::Protocol`]; arrivals and stop rule are values. Journeys, loads of several operations that follow from
//! each other, have an engine of their own ([`journey`]).

mod arrivals;
mod cache_outcome;
mod censored;
mod check;
mod coordinator;
mod journey;
mod measurement;
mod memory_limit;
mod phase_tracker;
mod protocol;
mod recorder;
mod run;
#[cfg(test)]
mod simulated;
mod steadiness;
mod supervise;
mod tls;
mod trace;
mod worker;
pub mod workload;

pub use check::check;
pub use run::{run, run_with_events};
pub use study::seam::{Phase, Progress};
pub use supervise::{Event, Gate, LoadError};
pub use trace::ReplayError;
