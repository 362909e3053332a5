//! Limits and defaults shared by studies, flags and the engine.

/// Maximum number of clients of a load, summed over workers.
pub const CLIENTS_MAX: u32 = 1_000_000;
/// Maximum number of workers of a load.
pub const THREADS_MAX: u32 = 1024;
/// Maximum number of CPUs of any process.
pub const CPUS_MAX: u32 = 4096;
/// Maximum number of requests in flight per connection.
pub const PIPELINE_MAX: u32 = 1024;
/// Maximum of `streams`, the number of requests in flight per HTTP/2 connection.
pub const STREAMS_MAX: u32 = 1024;
/// Maximum number of requests in flight of a load, summed over clients.
pub const IN_FLIGHT_MAX: u64 = 4_000_000;
/// Maximum size of a request body or an expected body, bytes.
pub const BODY_MAX_BYTES: u64 = 16 << 20;
/// Minimum timeout of a request, ns.
pub const TIMEOUT_MIN_NS: u64 = 1_000_000;
/// Default length of the warm-up, ns.
pub const WARMUP_NS: u64 = 1_000_000_000;
/// Default length of a window, ns.
pub const WINDOW_NS: u64 = 100_000_000;
