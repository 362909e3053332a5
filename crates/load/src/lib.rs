//! The load engine: a [`study::LoadSpec`] to a [`study::Measurement`].
//!
//! ```text
//! load::run(&spec, &mut |progress| ..., &abort)?
//! ```
//!
//! Each worker is a thread with its own driver, connections and histograms ([`worker`]); nothing is shared while
//! requests fly but a few numbers: when measuring begins, when it ends. The [`coordinator`] sets them, and each worker
//! has an [`observer`] of them. Histograms are merged once, at the end. A protocol is one implementation of
//! [`protocol::Protocol`]; arrivals and stop rule are values. Journeys, loads of several operations that follow from
//! each other, have an engine of their own ([`journey`]).

mod arrivals;
mod censored;
mod check;
mod coordinator;
mod journey;
mod limit;
mod merge;
mod observer;
mod protocol;
mod recorder;
mod run;
mod seen;
#[cfg(test)]
mod simulated;
mod tls;
mod trace;
mod transient;
mod watch;
mod worker;
pub mod workload;

pub use check::check;
pub use run::{run, run_telling};
pub use study::seam::{Phase, Progress};
pub use trace::ReplayError;
pub use watch::{Event, Gate, LoadError};
