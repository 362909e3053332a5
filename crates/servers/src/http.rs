//! An HTTP/1.1 and HTTP/2 server with fixed responses, so that a benchmark measures only the cost of serving them.
//!
//! | Target | Response |
//! |---|---|
//! | `/` | `test`; without `Date` (`--minimal`) byte for byte like WhaleConnect's benchmark server |
//! | `/plaintext`, `/json` | `Hello, World!` as in TechEmpower's benchmarks, with `Server` and `Date` (the JSON is not serialized per request) |
//! | `/bytes/N` | N bytes with `Content-Length`; up to 1 TiB |
//! | `/chunked/N?chunk=B` | the bytes of `/bytes/N` in chunks of B bytes |
//! | `/echo` | the body of a POST or PUT, streamed back |
//! | `/delay?mean=1ms&dist=exponential` | `test`, after a delay from this distribution |
//! | `/health` | `ok`, or 503 during shutdown |
//!
//! Requests from one read are answered in one write, in order. A delayed or long response holds back later ones on its
//! connection; further requests wait in a bounded buffer, then in the kernel. [`HttpLimits`] bounds every wait.
//!
//! A connection that begins with the preface of HTTP/2 uses HTTP/2, without TLS. Its streams have the same responses,
//! in the order in which they are due. `chunk` is then the maximum size of a DATA frame.

mod connection_state;
mod delay_distributions;
mod http1_exchange;
mod http2;
mod parsed_request;
mod prebuilt_responses;
mod route;

#[cfg(test)]
mod tests;

use net::{Conn, Data, Driver, Nanos};
use stats::Histogram;
use wire::http1::Limits;
use wire::http2::RequestHead;

use self::connection_state::{HttpState, Phase, Stream};
use self::delay_distributions::{Delays, Law};
use self::parsed_request::{Memo, ParsedRequest};
use self::prebuilt_responses::{Answers, DELAYED, Pattern, ROOT_BODY};
use crate::connections::{CloseState, Connections, NEVER};
use crate::delay_queue::DelayQueue;
use crate::event_loops::Handler;

/// Size of pending responses, in bytes, at which further requests of a connection wait until the responses are sent.
const OUT_BYTES_MAX: usize = 32 << 10;
/// Size in bytes of each piece in which a long body is sent. A driver keeps send buffers of up to 64 KiB. A piece with
/// a head is less than half of that, so the buffer is reused no matter how it has grown.
const PIECE_BYTES: u64 = 31 << 10;
/// Number of delayed responses allowed beyond two per open connection before those of closed connections are removed.
const LEFT_OVER_MAX: usize = 1024;

const ENDING: &str = "the server is shutting down";

/// Limits on clients. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Maximum size of a request head in bytes. A larger head gets 431, or 414 if the target itself exceeds the limit.
    pub head_bytes: usize,
    /// Maximum number of fields in a head, at most 256. A head with more gets 431.
    pub headers: usize,
    /// Maximum size of a request body in bytes. A larger body gets 413, or a reset if its echo has begun.
    pub body_bytes: u64,
    /// Maximum time without a request before a connection is closed.
    pub idle_ns: Nanos,
    /// Maximum time from the first to the last byte of a head. A slower head gets 408.
    pub head_ns: Nanos,
    /// Time that any body may take in addition to the time that its bytes need at `body_bytes_per_s`.
    pub body_ns: Nanos,
    /// Minimum average rate of a body after `body_ns`, in bytes per second; 0 for no limit. A slower body gets 408.
    pub body_bytes_per_s: u64,
    /// Maximum time that a client may take to read 31 KiB of a response before the connection is cut off.
    pub send_ns: Nanos,
    /// Maximum time to linger after the last response, so that the client receives it. Source: RFC 9112, section 9.6.
    pub linger_ns: Nanos,
    /// Maximum number of open streams of an HTTP/2 connection. The server refuses further ones.
    pub streams: u32,
    /// Number of requests after which the server ends a connection, over HTTP/2 with GOAWAY; `u32::MAX` for no limit.
    pub requests: u32,
}

impl HttpLimits {
    /// Default limits: a head of 32 KiB and 100 fields in 10 s, a body of 16 MiB in 10 s plus 1 s per KiB, one idle
    /// minute, and 100 streams.
    pub const DEFAULT: HttpLimits = HttpLimits {
        head_bytes: 32 << 10,
        headers: 100,
        body_bytes: 16 << 20,
        idle_ns: 60_000_000_000,
        head_ns: 10_000_000_000,
        body_ns: 10_000_000_000,
        body_bytes_per_s: 1024,
        send_ns: 30_000_000_000,
        linger_ns: 2_000_000_000,
        streams: 100,
        requests: u32::MAX,
    };

    /// Time by which a body that began at `since` must end if only `bytes` bytes of it arrive.
    fn body_until(&self, since: Nanos, bytes: u64) -> Nanos {
        let earned = u128::from(bytes) * 1_000_000_000;
        let earned_ns = match self.body_bytes_per_s {
            0 => NEVER,
            rate => Nanos::try_from(earned / u128::from(rate)).unwrap_or(NEVER),
        };
        since.saturating_add(self.body_ns).saturating_add(earned_ns)
    }

    fn slow_body(&self) -> String {
        let (seconds, rate) = (self.body_ns as f64 / 1e9, self.body_bytes_per_s);
        format!("the request body took longer than {seconds} s at {rate} bytes/s")
    }
}

/// Handler of one thread of the HTTP server.
pub struct Http {
    core: Core,
    head_limits: Limits,
    delays: Delays,
    queue: DelayQueue,
    memo: Memo<ParsedRequest>,
    connections: Connections<HttpState>,
}

/// The parts of the server that sessions of HTTP/2 use.
struct Core {
    limits: HttpLimits,
    codec_limits: wire::http2::Limits,
    answers: Answers,
    /// Response bytes for the current connection; empty between events.
    out: Vec<u8>,
    head: RequestHead,
    /// Streams of the current connection whose delays must still be drawn; empty between events.
    undrawn: Vec<(u32, Law)>,
    /// Time at which the current turn started.
    now: Nanos,
    is_ending: bool,
}

impl Http {
    /// Creates the handler of one thread. `seed` and `thread` seed the delays. `wall_s` returns Unix time in seconds.
    pub fn new(limits: &HttpLimits, seed: u64, thread: u32, wall_s: fn() -> u64) -> Self {
        let HttpLimits { idle_ns, send_ns, linger_ns, .. } = *limits;
        Self {
            core: Core {
                limits: *limits,
                codec_limits: http2::codec_limits(limits),
                answers: Answers::new(wall_s),
                out: Vec::new(),
                head: RequestHead::default(),
                undrawn: Vec::new(),
                now: 0,
                is_ending: false,
            },
            head_limits: Limits { head_bytes: limits.head_bytes, headers: limits.headers },
            delays: Delays::new(seed, thread),
            queue: DelayQueue::default(),
            memo: Memo { head: Vec::new(), meaning: None },
            connections: Connections::new(idle_ns, send_ns, linger_ns),
        }
    }

    /// Omits `Server` and `Date` if `minimal`, so that `/` matches WhaleConnect's benchmark server.
    #[must_use]
    pub fn minimal(mut self, minimal: bool) -> Self {
        self.core.answers.minimal = minimal;
        self
    }

    /// The true service times of `/delay`, in ns.
    pub fn service_ns(&self) -> &Histogram {
        &self.queue.service
    }

    /// Sends the responses and advances the phase of `conn` until it has to wait.
    fn settle<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let slot = conn.index();
        if !self.core.undrawn.is_empty() {
            self.draw(driver, conn);
        }
        loop {
            if !self.core.out.is_empty() {
                let sent = driver.send(conn, &self.core.out);
                self.core.out.clear();
                if sent.is_err() {
                    return self.connections.cut_off(driver, conn);
                }
            }
            let connection = &mut self.connections.slots[slot];
            if connection.is_over() {
                connection.input = Vec::new();
                self.connections.end_answered(driver, conn);
                break;
            }
            if connection.blocked {
                self.connections.await_sent(driver, conn);
                break;
            }
            match connection.state.phase {
                Phase::Ready if connection.end_received && connection.input.is_empty() => {
                    self.connections.close(driver, conn);
                }
                Phase::Ready if connection.end_received => {
                    self.fail_with(slot, 400, "connection closed within the request head");
                    continue;
                }
                Phase::Ready => {
                    connection.state.read_at = None;
                    if connection.input.is_empty() {
                        connection.deadline = self.connections.now.saturating_add(self.core.limits.idle_ns);
                    } else if !connection.state.head_begun {
                        connection.state.head_begun = true;
                        connection.deadline = self.connections.now.saturating_add(self.core.limits.head_ns);
                    }
                }
                Phase::Body(_) if connection.end_received => {
                    self.fail_with(slot, 400, "connection closed within the request body");
                    continue;
                }
                Phase::Body(_) => connection.state.read_at = None,
                Phase::Delayed(_) => connection.deadline = NEVER,
                Phase::Http2(_) => {
                    if self.advance_http2(slot) {
                        continue;
                    }
                }
                Phase::Streaming(_) => self.send_piece(driver, conn),
                Phase::Refused => {}
            }
            break;
        }
        self.connections.schedule(conn);
        self.pace(driver, conn);
    }

    fn pace<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let is_full = self.connections.slots[conn.index()].input.len() > self.core.limits.head_bytes;
        self.connections.pace(driver, conn, is_full);
    }

    fn send_piece<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let connection = &mut self.connections.slots[conn.index()];
        let Phase::Streaming(stream) = &mut connection.state.phase else { return };
        let sent = if stream.chunk == 0 {
            driver.send(conn, stream.body.take(PIECE_BYTES))
        } else {
            stream.write(&mut self.core.out, PIECE_BYTES);
            let sent = driver.send(conn, &self.core.out);
            self.core.out.clear();
            sent
        };
        match sent {
            Ok(()) => self.connections.await_sent(driver, conn),
            Err(_) => self.connections.cut_off(driver, conn),
        }
    }

    /// Sends the delayed response to a request received at `received`, then continues with buffered input.
    fn answer_due<D: Driver>(&mut self, driver: &mut D, conn: Conn, asked: ParsedRequest, received: Nanos) {
        let slot = conn.index();
        let reply = asked.reply(self.ends_connection(slot));
        self.core.answers.push(&mut self.core.out, reply, &DELAYED, ROOT_BODY);
        self.answered(slot, reply.keep_alive, asked.keep_alive);
        let sent = driver.send(conn, &self.core.out);
        self.core.out.clear();
        match sent {
            Ok(()) => {
                self.queue.service.record(driver.now().saturating_sub(received));
                self.resume_input(slot, driver.now());
            }
            Err(_) => self.connections.cut_off(driver, conn),
        }
    }

    fn resume_input(&mut self, slot: usize, now: Nanos) {
        let connection = &self.connections.slots[slot];
        if connection.takes() && !connection.input.is_empty() {
            self.take_input(slot, now);
        }
    }

    fn expire<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let slot = conn.index();
        let connection = &mut self.connections.slots[slot];
        match &connection.state.phase {
            Phase::Ready if connection.input.is_empty() => self.connections.close(driver, conn),
            Phase::Ready => {
                let head_s = self.core.limits.head_ns as f64 / 1e9;
                self.fail_with(slot, 408, format_args!("the request head took longer than {head_s} s"));
            }
            Phase::Body(incoming) => {
                let until = self.core.limits.body_until(incoming.since, incoming.reader.read_bytes);
                if until > self.connections.now {
                    connection.deadline = until;
                } else if incoming.begun {
                    return self.connections.cut_off(driver, conn);
                } else {
                    self.fail_with(slot, 408, self.core.limits.slow_body());
                }
            }
            Phase::Refused => self.refuse_connection(slot, false),
            Phase::Http2(_) => return self.expire_http2(driver, conn),
            Phase::Streaming(_) => self.connections.cut_off(driver, conn),
            Phase::Delayed(_) => {}
        }
        if matches!(self.connections.slots[slot].over, CloseState::Answered { .. }) {
            self.settle(driver, conn);
        } else {
            self.connections.schedule(conn);
        }
    }

    fn close_idle<D: Driver>(&mut self, driver: &mut D) {
        self.end_sessions(driver, true);
        for slot in 0..self.connections.slots.len() {
            let connection = &self.connections.slots[slot];
            let is_idle = !connection.is_over() && !connection.blocked;
            let (Some(conn), true, Phase::Ready | Phase::Refused) = (connection.conn, is_idle, &connection.state.phase)
            else {
                continue;
            };
            if connection.input.is_empty() {
                self.connections.close(driver, conn);
            } else {
                self.fail_with(slot, 503, ENDING);
                self.settle(driver, conn);
            }
        }
    }
}

impl Handler for Http {
    const DRAINS: bool = true;

    fn turning<D: Driver>(&mut self, driver: &mut D) {
        self.connections.now = driver.now();
        self.core.now = self.connections.now;
        self.core.answers.refresh(self.core.now);
    }

    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.connections.add(conn, driver.now(), HttpState::default());
    }

    fn refused<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.connections.add(conn, driver.now(), HttpState { phase: Phase::Refused, ..HttpState::default() });
        self.connections.slots[conn.index()].deadline = self.connections.now.saturating_add(self.core.limits.linger_ns);
        self.connections.schedule(conn);
    }

    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) {
        let slot = conn.index();
        let connection = &mut self.connections.slots[slot];
        if connection.takes() {
            if connection.input.is_empty() {
                let bytes = driver.bytes(data);
                let used = self.take_requests(slot, bytes);
                if used < bytes.len() {
                    self.keep(slot, &bytes[used..], driver.now());
                }
            } else {
                connection.input.extend_from_slice(driver.bytes(data));
                self.take_input(slot, driver.now());
            }
            self.settle(driver, conn);
        } else if matches!(connection.state.phase, Phase::Refused) {
            let is_http2 = http2::is_preface(driver.bytes(data));
            self.refuse_connection(slot, is_http2);
            self.settle(driver, conn);
        } else if !connection.is_over() {
            connection.input.extend_from_slice(driver.bytes(data));
            connection.state.read_at.get_or_insert_with(|| driver.now());
            self.pace(driver, conn);
        }
    }

    fn sent<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let slot = conn.index();
        let connection = &mut self.connections.slots[slot];
        match connection.state.phase {
            _ if connection.blocked => {
                connection.blocked = false;
                if matches!(connection.state.phase, Phase::Body(_)) {
                    connection.deadline = self.connections.now.saturating_add(self.core.limits.body_ns);
                }
                self.resume_input(slot, driver.now());
            }
            Phase::Streaming(Stream { body: Pattern { left: 0, .. }, keep_alive, linger, .. }) => {
                self.answered(slot, keep_alive, linger);
                self.resume_input(slot, driver.now());
            }
            Phase::Streaming(_) => {}
            _ => return,
        }
        self.settle(driver, conn);
    }

    fn end_of_stream<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let connection = &mut self.connections.slots[conn.index()];
        connection.end_received = true;
        let is_refused = matches!(connection.state.phase, Phase::Refused);
        if is_refused {
            self.refuse_connection(conn.index(), false);
        }
        if is_refused || self.connections.slots[conn.index()].takes() {
            self.settle(driver, conn);
        }
    }

    fn closed(&mut self, conn: Conn) {
        self.connections.remove(conn);
    }

    fn turned<D: Driver>(&mut self, driver: &mut D) -> Option<Nanos> {
        while let Some(due) = self.queue.pop(driver.now()) {
            let connection = &self.connections.slots[due.conn.index()];
            let is_open = connection.conn == Some(due.conn) && !connection.is_over();
            if is_open && self.answer_delayed(driver, due.conn, due.word, due.received) {
                self.settle(driver, due.conn);
            }
        }
        while let Some(conn) = self.connections.pop_expired(driver) {
            self.expire(driver, conn);
        }
        if self.connections.is_grace_over() {
            self.close_idle(driver);
        }
        self.connections.wake(self.queue.next())
    }

    fn end<D: Driver>(&mut self, driver: &mut D) {
        self.connections.end(driver.now());
        self.core.is_ending = true;
        self.end_sessions(driver, false);
    }

    fn is_done(&self) -> bool {
        self.connections.open == 0
    }
}
