//! Executes requests without a network: the part that all protocols share.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use net::Nanos;
use wire::detect_cache_protocol::{Detected, detect};

use super::connection_state::{CloseState, Connection, MultiGetKind, PendingMultiGet, ProtocolState, Rest};
use super::{CacheProtocol, CacheShared, INPUT_BYTES_MAX, OUT_BYTES_MAX, PIECE_BYTES};

pub(super) struct Executor {
    pub(super) shared: Arc<CacheShared>,
    /// Response bytes for the current connection; empty between events.
    pub(super) out: Vec<u8>,
    pub(super) now_ms: u64,
    pub(super) now_s: u32,
    pub(super) date: Vec<u8>,
    pub(super) is_ending: bool,
}

pub(super) const REDIS_OUT_OF_MEMORY: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

impl Executor {
    pub(super) fn new(shared: Arc<CacheShared>) -> Self {
        Self { shared, out: Vec::new(), now_ms: 0, now_s: 0, date: Vec::new(), is_ending: false }
    }

    pub(super) fn turn(&mut self, now: Nanos) {
        let shared = &self.shared;
        let epoch_ns = shared.epoch_ns.get_or_init(|| (shared.wall_ns)().wrapping_sub(now));
        let unix_ns = epoch_ns.wrapping_add(now);
        self.now_ms = unix_ns / MS;
        // The number of seconds fits 32 bits until the year 2106.
        let now_s = (unix_ns / S) as u32;
        if now_s != self.now_s {
            self.now_s = now_s;
            self.second();
        }
        if self.out.capacity() > PIECE_BYTES {
            self.out = Vec::new();
        }
    }

    fn second(&mut self) {
        let date = httpdate::HttpDate::from(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(self.now_s)));
        self.date.clear();
        let _ = write!(self.date, "Date: {date}\r\n");
        let shared = &self.shared;
        let at = shared.flush_at_s.load(Ordering::Relaxed);
        if at != 0
            && at <= self.now_s
            && shared.flush_at_s.compare_exchange(at, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            shared.cache.clear();
        }
    }

    pub(super) fn flush(&self, delay_s: u32) {
        let at = if delay_s == 0 { 0 } else { self.now_s.saturating_add(delay_s) };
        self.shared.flush_at_s.store(at, Ordering::Relaxed);
        if delay_s == 0 {
            self.shared.cache.clear();
        }
    }

    /// Executes requests until one is incomplete or responses must be sent. Returns the number of bytes used.
    pub(super) fn take_requests(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        (connection.state.lacks, connection.state.unfinished) = (0, 0);
        if connection.state.rest.is_some() {
            self.take_rest(connection);
        }
        let mut at = 0;
        while at < bytes.len() && connection.takes() && connection.state.lacks == 0 {
            if self.is_full() {
                connection.blocked = true;
                break;
            }
            at += match connection.state.protocol {
                ProtocolState::Memcached(_) => self.take_memcached(connection, &bytes[at..]),
                ProtocolState::Redis(_) => self.take_redis(connection, &bytes[at..]),
                ProtocolState::Http(_) => self.take_http(connection, &bytes[at..]),
                ProtocolState::Unknown => self.take_first(connection, &bytes[at..]),
            };
        }
        if connection.state.input_reserved != 0 && connection.state.unfinished == 0 {
            self.shared.in_flight.set(&mut connection.state.input_reserved, 0);
        }
        at
    }

    /// Reserves memory for a partly received request. Returns whether there was enough memory.
    pub(super) fn reserve(&self, connection: &mut Connection, bytes: usize) -> bool {
        if bytes <= INPUT_BYTES_MAX {
            return true;
        }
        connection.state.unfinished = bytes;
        self.shared.in_flight.try_set(&mut connection.state.input_reserved, bytes)
    }

    /// Whether the value of `key` must wait because it is large and too much memory is in flight.
    pub(super) fn lacks_memory_for(&self, key: &[u8]) -> bool {
        self.shared.in_flight.is_exhausted() && self.is_large(key)
    }

    #[cold]
    fn is_large(&self, key: &[u8]) -> bool {
        self.shared.cache.hold(key).peek(self.now_ms).is_some_and(|item| item.value.len() > PIECE_BYTES)
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= OUT_BYTES_MAX
    }

    #[cold]
    fn take_first(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let (protocol, refusal) = match detect(bytes) {
            Detected::Need => {
                connection.state.lacks = 1;
                return 0;
            }
            Detected::Memcached => (Some(CacheProtocol::Memcached), ""),
            Detected::Resp => (Some(CacheProtocol::Redis), ""),
            Detected::Http => (Some(CacheProtocol::Http), ""),
            // No error is sent, because over TLS it would have to be an alert.
            Detected::Tls => (None, ""),
            Detected::MemcachedBinary => {
                (None, "ERROR memcached's binary protocol is not spoken here, its text is\r\n")
            }
            Detected::Unknown => (None, "ERROR not memcached's text, RESP or HTTP/1.1\r\n"),
        };
        let Some(protocol) = protocol else {
            self.out.extend_from_slice(refusal.as_bytes());
            connection.over = CloseState::Answered { linger: !refusal.is_empty() };
            return bytes.len();
        };
        connection.state.protocol = ProtocolState::new(protocol, &self.shared);
        // memcached answers an empty line with an error, except before the first request.
        let is_skipped = |byte: &u8| protocol == CacheProtocol::Memcached && byte.is_ascii_whitespace();
        bytes.iter().position(|byte| !is_skipped(byte)).unwrap_or(0)
    }

    /// Appends values while memory and output have room. Returns the remaining keys, or `None` if none remain.
    pub(super) fn push_values<'k>(&mut self, kind: MultiGetKind, mut keys: impl Iterator<Item = &'k [u8]>) -> Rest {
        while let Some(key) = keys.next() {
            if self.is_full() || self.lacks_memory_for(key) {
                return Some(PendingMultiGet::new(kind, std::iter::once(key).chain(keys)));
            }
            self.push_value(kind, key);
        }
        None
    }

    fn push_value(&mut self, kind: MultiGetKind, key: &[u8]) {
        match kind {
            MultiGetKind::Memcached { with_cas, touch } => self.text_value(key, with_cas, touch),
            MultiGetKind::Redis(version) => self.redis_value(key, version),
        }
    }

    /// Continues a request for many values.
    fn take_rest(&mut self, connection: &mut Connection) {
        let Some(mut rest) = connection.state.rest.take() else { return };
        let kind = rest.kind;
        loop {
            let from = rest.from;
            let is_full = self.is_full();
            let Some(key) = rest.next() else { break };
            if is_full || self.lacks_memory_for(key) {
                rest.from = from;
                (connection.blocked, connection.state.lacks_memory) = (true, !is_full);
                connection.state.rest = Some(rest);
                return;
            }
            self.push_value(kind, key);
        }
        if let MultiGetKind::Memcached { .. } = kind {
            self.out.extend_from_slice(b"END\r\n");
        }
    }

    pub(super) fn too_slow(&mut self, connection: &mut Connection) {
        let memcached = b"SERVER_ERROR the rest of the request did not come\r\n";
        let redis = b"-ERR the rest of the request did not come\r\n";
        self.fail(connection, memcached, redis, 408, "the rest of the request did not come");
    }

    /// Reports that memory is exhausted and closes the connection, since the rest of the request will still arrive.
    pub(super) fn out_of_memory(&mut self, connection: &mut Connection) {
        let memcached = b"SERVER_ERROR out of memory reading request\r\n";
        self.fail(connection, memcached, REDIS_OUT_OF_MEMORY, 503, "out of memory");
    }

    pub(super) fn too_many(&mut self, connection: &mut Connection) {
        if let ProtocolState::Unknown = connection.state.protocol {
            connection.state.protocol = ProtocolState::new(CacheProtocol::Memcached, &self.shared);
        }
        let redis = b"-ERR max number of clients reached\r\n";
        self.fail(connection, b"ERROR Too many open connections\r\n", redis, 503, "connection limit reached");
    }

    /// Sends an error in the connection's protocol, as the last response.
    fn fail(&mut self, connection: &mut Connection, memcached: &[u8], redis: &[u8], status: u16, http: &str) {
        match &connection.state.protocol {
            ProtocolState::Memcached(_) => self.out.extend_from_slice(memcached),
            ProtocolState::Redis(_) => self.out.extend_from_slice(redis),
            ProtocolState::Http(_) => self.http_failure(status, http, false, false),
            ProtocolState::Unknown => {}
        }
        connection.over = CloseState::Answered { linger: true };
    }
}
