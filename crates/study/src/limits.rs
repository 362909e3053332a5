//! Limits and defaults that studies, flags and the engine share: each has one value, here.

/// Clients of a load at most, over all workers.
pub const CLIENTS_MAX: u32 = 1_000_000;
/// Workers of a load at most.
pub const THREADS_MAX: u32 = 1024;
/// Processors of anything at most.
pub const CPUS_MAX: u32 = 4096;
/// Requests in flight on one connection at most.
pub const PIPELINE_MAX: u32 = 1024;
/// Requests in flight of all clients together at most.
pub const IN_FLIGHT_MAX: u64 = 4_000_000;
/// Bytes of a body at most, of one that is sent and of one that is expected.
pub const BODY_MAX_BYTES: u64 = 16 << 20;
/// The shortest time after which an answer may count as late, ns.
pub const TIMEOUT_MIN_NS: u64 = 1_000_000;
/// How long is loaded before anything is counted where nothing is said, ns.
pub const WARMUP_NS: u64 = 1_000_000_000;
/// A slice of the measured time where nothing is said, ns.
pub const WINDOW_NS: u64 = 100_000_000;
