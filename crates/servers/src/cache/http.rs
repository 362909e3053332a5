//! The HTTP/1.1 interface of small teaching caches. See [`wire::cache_http`].

use std::io::Write;

use cache::{Meta, Mode};
use wire::cache_http::{self, ALLOW, Operation};
use wire::http1::{Body, BodyReader, parse_request};

use super::connection_state::{CloseState, Connection, ProtocolState};
use super::executor::Executor;
use crate::response_head::{Head, KeepAlive, Length, Reply, push_head, push_response, push_status};

/// Maximum size of a body that is skipped, in bytes; no valid request has a body.
const BODY_BYTES_MAX: u64 = 16 << 20;
const NOT_FOUND: Head = Head::new(404, "", Length::Known(0));
const NO_CONTENT: Head = Head::new(204, "", Length::Nothing);

impl Executor {
    /// Executes a request or skips a body. Returns the number of bytes used.
    pub(super) fn take_http(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let ProtocolState::Http(http) = &mut connection.state.protocol else { return 0 };
        let heads = self.shared.heads;
        if let Some((reader, refusal, keep_alive)) = &mut http.body {
            let keep_alive = *keep_alive && !self.is_ending;
            match reader.read(bytes, |_| {}) {
                Ok(None) => return bytes.len(),
                Ok(Some(used)) => {
                    let refusal = refusal.clone();
                    http.body = None;
                    self.http_failure(refusal.status, refusal, keep_alive, false);
                    if keep_alive {
                        return used;
                    }
                }
                Err(error) => self.http_failure(error.status(), error, false, false),
            }
            connection.over = CloseState::Answered { linger: true };
            return bytes.len();
        }
        if bytes.len() < http.parse_at {
            let from = http.seen.saturating_sub(3).min(bytes.len());
            http.seen = bytes.len();
            if !bytes[from..].windows(4).any(|end| end == b"\r\n\r\n") {
                connection.state.lacks = 1;
                return 0;
            }
        }
        let (request, head_bytes) = match parse_request(bytes, &heads) {
            Ok(Some(read)) => read,
            Ok(None) => {
                (http.parse_at, http.seen) = (2 * bytes.len(), bytes.len());
                connection.state.lacks = 1;
                if !self.reserve(connection, bytes.len()) {
                    self.out_of_memory(connection);
                }
                return 0;
            }
            Err(error) => {
                self.http_failure(error.status(), error, false, false);
                connection.over = CloseState::Answered { linger: true };
                return 0;
            }
        };
        (http.parse_at, http.seen) = (0, 0);
        let on = request.keep_alive && !self.is_ending;
        let keep_alive = KeepAlive::new(on, request.minor_version);
        let parsed = cache_http::parse(&request, &self.shared.targets);
        // A value that is too long removes the key's old value.
        let unlimited = cache_http::Limits { value_bytes: usize::MAX, ..self.shared.targets };
        if parsed.as_ref().is_err_and(|refusal| refusal.status == 413)
            && let Ok(Operation::Put { key, .. }) = cache_http::parse(&request, &unlimited)
        {
            self.shared.cache.hold(&key).outdate(self.now_ms);
        }
        let is_head = request.method == "HEAD";
        match parsed {
            Ok(Operation::Get { ref key, head: false }) if self.lacks_memory_for(key) => {
                self.http_failure(503, "out of memory", on, false);
            }
            Ok(operation) => self.http_answer(operation, keep_alive),
            // The final response replaces `100 Continue`. The client may still send the body, so close.
            Err(refusal) if request.expect_continue && head_bytes == bytes.len() => {
                self.http_failure(refusal.status, refusal, false, is_head);
                connection.over = CloseState::Answered { linger: true };
            }
            Err(refusal) if !matches!(request.body, Body::None | Body::Length(0)) => {
                http.body = Some((BodyReader::new(request.body, &heads, BODY_BYTES_MAX), refusal, on));
                return head_bytes;
            }
            Err(refusal) => self.http_failure(refusal.status, refusal, on, is_head),
        }
        if !on && connection.over == CloseState::No {
            connection.over = CloseState::Answered { linger: request.keep_alive };
        }
        head_bytes
    }

    fn http_answer(&mut self, operation: Operation<'_>, keep_alive: KeepAlive) {
        let Self { shared, out, now_ms, date, .. } = self;
        let (cache, now_ms) = (&shared.cache, *now_ms);
        let head = match operation {
            Operation::Get { key, head: is_head } => {
                let mut held = cache.hold(&key);
                let write = |item: cache::Item<'_>| {
                    out.reserve(item.value.len() + 160);
                    push_head(out, date, keep_alive, &Head::new(200, "", Length::Known(item.value.len() as u64)));
                    if !is_head {
                        out.extend_from_slice(item.value);
                    }
                };
                let found = if is_head { held.peek(now_ms).map(write) } else { held.get(now_ms).map(write) };
                if found.is_some() {
                    return;
                }
                NOT_FOUND
            }
            Operation::Put { key, value } => {
                let mut held = cache.hold(&key);
                let was_there = held.peek(now_ms).is_some();
                let stored = held.store(Mode::Set, &value, Meta::default(), now_ms);
                drop(held);
                match stored {
                    Ok(_) if was_there => NO_CONTENT,
                    Ok(_) => Head::new(201, "", Length::Known(0)),
                    // The cache is full, because `cache_http::parse` has applied the limits on keys and values.
                    Err(refusal) => return self.http_failure(507, refusal, keep_alive != KeepAlive::Close, false),
                }
            }
            Operation::Delete(key) if cache.hold(&key).delete(now_ms) => NO_CONTENT,
            Operation::Delete(_) => NOT_FOUND,
            Operation::Status => {
                let stats = cache.stats();
                push_status(out, date, 200, keep_alive);
                let _ = write!(
                    out,
                    "Space-Used: {}\r\nMemory-Used: {}\r\nMaxmem: {}\r\nItems: {}\r\nHits: {}\r\nMisses: {}\r\n\
                     Evictions: {}\r\nRefused: {}\r\nEvictor: {}\r\nContent-Length: 0\r\n\r\n",
                    if shared.config.values_only.is_some() { stats.value_bytes } else { stats.item_bytes() },
                    stats.memory_bytes(),
                    shared.config.capacity_bytes,
                    stats.items,
                    stats.hits,
                    stats.misses,
                    stats.evictions,
                    stats.refused,
                    shared.config.evictor,
                );
                return;
            }
            Operation::Reset => {
                cache.clear();
                cache.reset_stats();
                NO_CONTENT
            }
        };
        push_head(out, date, keep_alive, &head);
    }

    pub(super) fn http_failure(&mut self, status: u16, why: impl std::fmt::Display, on: bool, is_head: bool) {
        let allow = if status == 405 { ALLOW } else { "" };
        let keep_alive = if on { KeepAlive::Implicit } else { KeepAlive::Close };
        let body = format!("{why}\n");
        let length = Length::Known(body.len() as u64);
        let head = Head { allow, ..Head::new(status, "text/plain; charset=utf-8", length) };
        let reply = Reply { keep_alive, head_only: is_head };
        push_response(&mut self.out, &self.date, reply, &head, body.as_bytes());
    }
}
