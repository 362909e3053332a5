//! The load engine: [`run()`] carries out a [`study::LoadSpec`] and returns a [`study::Measurement`]. Each worker is a
//! thread with its own driver, connections and histograms ([`worker`]). While requests are in flight, workers share
//! only a few numbers, such as the start and end of measuring. The [`coordinator`] sets these numbers, and each worker
//! reads them in [`coordinator_exchange`]. Histograms are merged once, at the end. Each protocol implements
//! [`protocol::Protocol`]; arrivals and stop rules are data. Journeys, which are operations that depend on each other,
//! have their own engine ([`journey`]).

mod arrivals;
mod cache_outcome;
mod censored_waits;
mod check_spec;
mod coordinator;
mod coordinator_exchange;
mod hit_ratio_steadiness;
mod http2_response_overhead;
mod journey;
mod measurement;
pub mod operation_stream;
mod protocol;
mod query_memory_limit;
mod recorder;
mod run;
mod server_endpoint;
#[cfg(test)]
mod simulation_tests;
mod template_escaping;
mod tls;
mod trace_distributor;
mod worker;
mod worker_threads;

pub use check_spec::check;
pub use run::{run, run_with_events};
pub use study::generator_messages::{Phase, Progress};
pub use worker_threads::{Gate, LoadError};
