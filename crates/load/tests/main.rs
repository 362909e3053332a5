//! Workloads, and loads on real sockets. All tests share one binary, because linking takes longer than most tests.

mod connection_end_events;
mod workload_distributions;
