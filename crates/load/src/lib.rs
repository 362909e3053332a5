//! The load engine: runs a [`study::LoadSpec`] and returns a [`study::Measurement`].
//!
//! ```text
//! load::run(&spec, &mut |progress| ..., &abort)?
//! ```
//!
//! Each worker is a thread with its own driver, connections and histograms ([`worker`]). While requests are in flight,
//! workers share only a few numbers, such as the start and end of measuring. The [`coordinator`] sets them, each worker
//! follows them with a [`phase_tracker`], and histograms are merged once at the end.
//!
//! Each protocol implements [`protocol::Protocol`]; arrivals and stop rules are data. Journeys,
//! loads of several operations that depend on each other, have their own engine ([`journey`]).

mod arrivals;
mod cache_outcome;
mod censored;
mod check;
mod coordinator;
mod escape;
mod journey;
mod measurement;
mod memory_limit;
mod phase_tracker;
mod protocol;
mod recorder;
mod run;
mod server;
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
pub use supervise::{Gate, LoadError};
