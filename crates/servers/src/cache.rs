//! A cache server: one cache shared by all threads, over memcached's text protocol, RESP2, RESP3 and the HTTP of small
//! teaching caches. The first bytes of a connection select the protocol. Only the commands that cache clients and
//! benchmarks send are supported. One write answers all requests from one read, in order. Values are copied into that
//! write under the lock of their shard; a hit allocates nothing. [`CacheLimits`] bounds every wait for a client.
//!
//! # Differences from memcached and Redis
//!
//! - Over RESP, an item expires in the exact millisecond; over memcached's protocol, it expires up to a second late.
//!   memcached may expire it up to a second early.
//! - `MSET`, `MGET`, and `DEL` or `get` with several keys are atomic per key only.
//! - `flush_all` and `FLUSHALL` clear one shard after another; values stored during that time may survive.
//! - `set` refuses a value over the limit and drops the old value of the key, as in memcached 1.6.18. `PUT` does the
//!   same. `SET` keeps the old value, as in Redis.
//! - A store refused because the cache is full (`--evict none`) drops the old value in every protocol. Redis keeps it.

mod connection_state;
mod executor;
mod http;
mod memcached;
mod resp;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use cache::Cache;
use net::{Conn, Data, Driver, Nanos};
use wire::{http1, memcached as text, resp as redis};

use self::connection_state::{CacheState, ProtocolState};
use self::executor::Executor;
use crate::connections::{CloseState, Connections, INPUT_KEPT_BYTES, NEVER};
use crate::event_loops::Handler;

/// Size of pending responses, in bytes, at which further requests of a connection wait until the responses are sent.
const OUT_BYTES_MAX: usize = 32 << 10;
/// Size in bytes of each piece in which a long response is sent, and of the buffer that a thread keeps for responses.
const PIECE_BYTES: usize = 64 << 10;
/// Size of unserved input, in bytes, above which a connection with pending responses is no longer read.
const INPUT_BYTES_MAX: usize = 16 << 10;
/// Number of requests of maximum size that the memory for values in flight can always hold.
const LARGEST_REQUESTS_IN_FLIGHT: usize = 4;
/// Interval at which connections that wait for memory are retried, in ns.
const MEMORY_RETRY_NS: Nanos = 1_000_000;
/// Maximum number of bytes of a request or head in addition to its key and value.
const HEAD_BYTES: usize = 8 << 10;
/// Maximum size of an HTTP head in bytes. A value over a third of this size may be too long once percent-encoded.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// The protocol that a cache server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheProtocol {
    /// Detects the protocol of each connection from its first bytes, as [`wire::detect_cache_protocol`] does.
    Auto,
    /// memcached's text protocol.
    Memcached,
    /// RESP2 and RESP3.
    Redis,
    /// HTTP/1.1 with the targets of [`wire::cache_http`].
    Http,
}

/// Limits on clients. Times are in ns; [`Nanos::MAX`] means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Maximum time without a request before a connection is closed.
    pub idle_ns: Nanos,
    /// Maximum time between two pieces of a request.
    pub request_ns: Nanos,
    /// Maximum time that a client may take to read 64 KiB of responses before the connection is cut off.
    pub send_ns: Nanos,
    /// Maximum time to linger after a response that closes the connection, so that the client receives it.
    pub linger_ns: Nanos,
}

impl CacheLimits {
    /// Default limits: no idle limit, as in other caches; 30 s within a request; 30 s to read; 2 s of lingering.
    pub const DEFAULT: CacheLimits =
        CacheLimits { idle_ns: NEVER, request_ns: 30_000_000_000, send_ns: 30_000_000_000, linger_ns: 2_000_000_000 };
}

/// State that all threads of a cache server share.
pub struct CacheShared {
    /// The cache, whose items all connections share.
    pub cache: Cache,
    in_flight: InFlight,
    config: cache::Config,
    protocol: CacheProtocol,
    limits: CacheLimits,
    wall_ns: fn() -> u64,
    /// Offset in ns from a driver's clock to Unix time. It is determined once, so that time never goes backwards.
    epoch_ns: OnceLock<u64>,
    /// Unix time in seconds at which all keys are deleted; 0 if none is set.
    flush_at_s: AtomicU32,
    open: AtomicUsize,
    text: text::Limits,
    redis: redis::Limits,
    heads: http1::Limits,
    targets: wire::cache_http::Limits,
}

impl CacheShared {
    /// Creates a cache for `config.threads` threads. `wall_ns` returns Unix time in ns. Fails if `config` is invalid.
    pub fn new(
        config: cache::Config,
        protocol: CacheProtocol,
        limits: CacheLimits,
        wall_ns: fn() -> u64,
    ) -> Result<Self, cache::ConfigError> {
        let cache = Cache::new(config.clone())?;
        let (key_bytes, value_bytes) = (cache.key_bytes_max, cache.value_bytes_max);
        let in_flight_bytes = (config.capacity_bytes / 8) as usize;
        Ok(Self {
            protocol,
            limits,
            wall_ns,
            epoch_ns: OnceLock::new(),
            flush_at_s: AtomicU32::new(0),
            open: AtomicUsize::new(0),
            text: text::Limits {
                key_bytes: key_bytes.min(text::Limits::DEFAULT.key_bytes),
                value_bytes,
                ..text::Limits::DEFAULT
            },
            redis: redis::Limits {
                bulk_bytes: value_bytes.max(key_bytes),
                request_bytes: (value_bytes + key_bytes).max(1 << 20) + HEAD_BYTES,
                ..redis::Limits::DEFAULT
            },
            heads: http1::Limits {
                head_bytes: (3 * (key_bytes + value_bytes) + HEAD_BYTES).min(HEAD_BYTES_MAX),
                headers: 100,
            },
            targets: wire::cache_http::Limits { key_bytes, value_bytes },
            in_flight: InFlight::new(in_flight_bytes.max(LARGEST_REQUESTS_IN_FLIGHT * (key_bytes + value_bytes))),
            cache,
            config,
        })
    }
}

/// Memory for incomplete requests and unsent responses of all threads. A request reserves its announced size first, so
/// a value is received whole or refused at its first bytes.
struct InFlight {
    bytes: AtomicUsize,
    max: usize,
}

impl InFlight {
    fn new(max: usize) -> InFlight {
        InFlight { bytes: AtomicUsize::new(0), max }
    }

    fn is_exhausted(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.max
    }

    /// Changes a reservation to `bytes`, even beyond the bound, because a finished response must be kept.
    fn set(&self, reserved: &mut usize, bytes: usize) {
        if bytes > *reserved {
            self.bytes.fetch_add(bytes - *reserved, Ordering::Relaxed);
        } else if bytes < *reserved {
            self.bytes.fetch_sub(*reserved - bytes, Ordering::Relaxed);
        }
        *reserved = bytes;
    }

    /// Changes a reservation to `bytes` if the bound allows it. Returns whether it does.
    fn try_set(&self, reserved: &mut usize, bytes: usize) -> bool {
        let before = *reserved;
        self.set(reserved, bytes);
        let fits = bytes <= before || self.bytes.load(Ordering::Relaxed) <= self.max;
        if !fits {
            self.set(reserved, before);
        }
        fits
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    fn max(&self) -> usize {
        self.max
    }
}

/// Handler of one thread of the cache server.
pub struct CacheServer {
    core: Executor,
    connections: Connections<CacheState>,
    /// Connections whose next response is waiting for memory.
    waiting: Vec<Conn>,
}

impl CacheServer {
    /// Creates the handler of one thread.
    pub fn new(shared: Arc<CacheShared>) -> Self {
        let CacheLimits { idle_ns, send_ns, linger_ns, .. } = shared.limits;
        let connections = Connections::new(idle_ns, send_ns, linger_ns);
        Self { core: Executor::new(shared), connections, waiting: Vec::new() }
    }

    fn take_input(&mut self, slot: usize) {
        let connection = &mut self.connections.slots[slot];
        let mut input = std::mem::take(&mut connection.input);
        let used = self.core.take_requests(connection, &input);
        if connection.is_over() {
            input.clear();
        } else {
            input.drain(..used);
        }
        // Free the buffer of a large value, unless the next value would need it again.
        if input.capacity() > INPUT_KEPT_BYTES.max(4 * (input.len() + connection.state.lacks)) {
            input.shrink_to_fit();
        }
        connection.input = input;
    }

    fn unblock<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let connection = &mut self.connections.slots[conn.index()];
        (connection.blocked, connection.state.lacks_memory) = (false, false);
        if connection.takes() && (!connection.input.is_empty() || connection.state.rest.is_some()) {
            self.take_input(conn.index());
        }
        self.settle(driver, conn);
    }

    /// Sends the responses and decides what `conn` waits for next.
    fn settle<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let slot = conn.index();
        let out = &mut self.core.out;
        let connection = &mut self.connections.slots[slot];
        if !out.is_empty() {
            if out.len() <= PIECE_BYTES {
                let sent = driver.send(conn, out);
                out.clear();
                if sent.is_err() {
                    return self.connections.cut_off(driver, conn);
                }
            } else {
                connection.state.unsent = std::mem::take(out);
                connection.state.unsent_from = 0;
                let in_flight = &self.core.shared.in_flight;
                in_flight.set(&mut connection.state.unsent_reserved, connection.state.unsent.len());
            }
        }
        if !connection.state.unsent.is_empty() {
            return self.send_piece(driver, conn);
        }
        match connection.over {
            CloseState::No if connection.blocked && connection.state.lacks_memory => {
                connection.deadline = self.connections.now.saturating_add(self.core.shared.limits.send_ns);
                self.waiting.push(conn);
            }
            CloseState::No if connection.blocked => self.connections.await_sent(driver, conn),
            CloseState::No if connection.end_received => return self.connections.close(driver, conn),
            CloseState::No => {
                let limits = &self.core.shared.limits;
                let patience = if connection.input.is_empty() { limits.idle_ns } else { limits.request_ns };
                connection.deadline = self.connections.now.saturating_add(patience);
                if connection.input.is_empty() && self.connections.is_grace_over() {
                    return self.connections.close(driver, conn);
                }
            }
            _ => self.connections.end_answered(driver, conn),
        }
        self.connections.schedule(conn);
        self.pace(driver, conn);
    }

    fn pace<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let connection = &self.connections.slots[conn.index()];
        let is_full = !connection.takes() && connection.input.len() > INPUT_BYTES_MAX;
        self.connections.pace(driver, conn, is_full);
    }

    fn send_piece<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let connection = &mut self.connections.slots[conn.index()];
        let from = connection.state.unsent_from;
        let to = connection.state.unsent.len().min(from + PIECE_BYTES);
        let sent = driver.send(conn, &connection.state.unsent[from..to]);
        connection.state.unsent_from = to;
        if to == connection.state.unsent.len() {
            connection.state.unsent = Vec::new();
            self.core.shared.in_flight.set(&mut connection.state.unsent_reserved, 0);
        }
        connection.blocked = true;
        match sent {
            Ok(()) => {
                self.connections.await_sent(driver, conn);
                self.connections.schedule(conn);
                self.pace(driver, conn);
            }
            Err(_) => self.connections.cut_off(driver, conn),
        }
    }

    fn expire<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let connection = &mut self.connections.slots[conn.index()];
        if connection.input.is_empty() {
            return self.connections.close(driver, conn);
        }
        connection.input = Vec::new();
        self.core.too_slow(connection);
        self.settle(driver, conn);
    }

    fn add(&mut self, conn: Conn, now: Nanos) {
        let shared = &self.core.shared;
        shared.open.fetch_add(1, Ordering::Relaxed);
        let protocol = ProtocolState::new(shared.protocol, shared);
        self.connections.add(conn, now, CacheState { protocol, ..CacheState::default() });
    }

    fn close_idle<D: Driver>(&mut self, driver: &mut D) {
        for slot in 0..self.connections.slots.len() {
            let connection = &self.connections.slots[slot];
            if let Some(conn) = connection.conn
                && connection.takes()
                && connection.input.is_empty()
            {
                self.connections.close(driver, conn);
            }
        }
    }
}

impl Handler for CacheServer {
    const DRAINS: bool = true;

    fn turning<D: Driver>(&mut self, driver: &mut D) {
        self.connections.now = driver.now();
        self.core.turn(self.connections.now);
    }

    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.add(conn, driver.now());
    }

    fn refused<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.add(conn, driver.now());
        let connection = &mut self.connections.slots[conn.index()];
        self.core.too_many(connection);
        self.settle(driver, conn);
    }

    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) {
        let slot = conn.index();
        let bytes = driver.bytes(data);
        let connection = &mut self.connections.slots[slot];
        if connection.is_over() {
            return;
        }
        if !connection.takes() {
            connection.input.extend_from_slice(bytes);
            return self.pace(driver, conn);
        }
        if connection.input.is_empty() {
            let used = self.core.take_requests(connection, bytes);
            if used < bytes.len() && !connection.is_over() {
                connection.keep(&bytes[used..]);
            }
        } else {
            connection.keep(bytes);
            connection.state.lacks = connection.state.lacks.saturating_sub(bytes.len());
            // While bytes are missing, the request is known to be incomplete and is not parsed again.
            if connection.state.lacks == 0 {
                self.take_input(slot);
            }
        }
        self.settle(driver, conn);
    }

    fn sent<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let slot = conn.index();
        let connection = &mut self.connections.slots[slot];
        if !connection.state.unsent.is_empty() {
            return self.send_piece(driver, conn);
        }
        if connection.blocked && !connection.state.lacks_memory {
            self.unblock(driver, conn);
        }
    }

    fn end_of_stream<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let connection = &mut self.connections.slots[conn.index()];
        connection.end_received = true;
        if connection.takes() {
            self.settle(driver, conn);
        }
    }

    fn closed(&mut self, conn: Conn) {
        let state = &mut self.connections.slots[conn.index()].state;
        let in_flight = &self.core.shared.in_flight;
        in_flight.set(&mut state.input_reserved, 0);
        in_flight.set(&mut state.unsent_reserved, 0);
        self.connections.remove(conn);
        self.core.shared.open.fetch_sub(1, Ordering::Relaxed);
    }

    fn turned<D: Driver>(&mut self, driver: &mut D) -> Option<Nanos> {
        while let Some(conn) = self.connections.pop_expired(driver) {
            self.expire(driver, conn);
        }
        if !self.waiting.is_empty() && !self.core.shared.in_flight.is_exhausted() {
            for conn in std::mem::take(&mut self.waiting) {
                let connection = &self.connections.slots[conn.index()];
                if connection.conn == Some(conn) && connection.state.lacks_memory && !connection.is_over() {
                    self.unblock(driver, conn);
                }
            }
        }
        if self.connections.is_grace_over() {
            self.close_idle(driver);
        }
        let retry = self.connections.now.saturating_add(MEMORY_RETRY_NS);
        self.connections.wake((!self.waiting.is_empty()).then_some(retry))
    }

    fn end<D: Driver>(&mut self, driver: &mut D) {
        self.connections.end(driver.now());
        self.core.is_ending = true;
    }

    fn is_done(&self) -> bool {
        self.connections.open == 0
    }
}
