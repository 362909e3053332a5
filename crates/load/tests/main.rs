//! Workloads, and loads on real sockets. All tests share one binary, because linking takes longer than most tests.

mod open_sockets_at_end_event;
mod workload_distributions;
