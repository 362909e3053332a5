//! Response bytes. The parts that all responses share are rebuilt once per second.

use std::fmt::Display;
use std::time::{Duration, SystemTime};

use net::Nanos;

use super::http2::response_frames::Frames;
use super::route::Refusal;
use crate::response_head::{KeepAlive, Length, Reply, push_failure, push_head, write};

const DATE_NS: Nanos = 1_000_000_000;

const SERVER: &str = "Server: quintain\r\n";
/// The head of `/` without `Date`, byte for byte like WhaleConnect's benchmark server.
const ROOT: &str = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\nContent-Type: text/html\r\n";
const ROOT_CLOSE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\nContent-Type: text/html\r\n";
pub(super) const ROOT_BODY: &[u8] = b"test";
const PLAINTEXT: &[u8] = b"Hello, World!";
const JSON: &[u8] = br#"{"message":"Hello, World!"}"#;

pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// Placeholder for a chunk size; leading zeros are allowed (RFC 9112, section 7.1).
const CHUNK_HEAD: &[u8] = b"0000\r\n";

pub(super) struct Answers {
    wall_s: fn() -> u64,
    made_until: Nanos,
    pub(super) minimal: bool,
    /// The header fields `Server` and `Date`; empty if the server is minimal.
    stamp: Vec<u8>,
    root: Vec<u8>,
    root_close: Vec<u8>,
    pub(super) plaintext: Prebuilt,
    pub(super) json: Prebuilt,
    pub(super) frames: Frames,
}

pub(super) struct Prebuilt {
    content_type: &'static str,
    body: &'static [u8],
    /// The response to the common case: HTTP/1.1, GET, keep-alive.
    whole: Vec<u8>,
}

impl Answers {
    pub(super) fn new(wall_s: fn() -> u64) -> Self {
        let [stamp, root, root_close] = std::array::from_fn(|_| Vec::new());
        let plaintext = Prebuilt { content_type: "text/plain", body: PLAINTEXT, whole: Vec::new() };
        let json = Prebuilt { content_type: "application/json", body: JSON, whole: Vec::new() };
        let frames = Frames::default();
        Self { wall_s, made_until: 0, minimal: false, stamp, root, root_close, plaintext, json, frames }
    }

    #[inline]
    pub(super) fn refresh(&mut self, now: Nanos) {
        if now >= self.made_until {
            self.make(now);
        }
    }

    fn make(&mut self, now: Nanos) {
        self.made_until = now.saturating_add(DATE_NS);
        // The format of `Date` ends with the year 9999.
        let wall = Duration::from_secs((self.wall_s)().min(253_402_300_799));
        let date = httpdate::HttpDate::from(SystemTime::UNIX_EPOCH + wall);
        let bodies = [ROOT_BODY, PLAINTEXT, JSON];
        self.frames.make((!self.minimal).then(|| date.to_string()).as_deref(), bodies);
        self.stamp.clear();
        if !self.minimal {
            write(&mut self.stamp, format_args!("{SERVER}Date: {date}\r\n"));
        }
        let date = self.stamp.get(SERVER.len()..).unwrap_or_default();
        for (answer, head) in [(&mut self.root, ROOT), (&mut self.root_close, ROOT_CLOSE)] {
            answer.clear();
            for part in [head.as_bytes(), date, b"\r\n", ROOT_BODY] {
                answer.extend_from_slice(part);
            }
        }
        for Prebuilt { content_type, body, whole } in [&mut self.plaintext, &mut self.json] {
            let length = Length::Known(body.len() as u64);
            whole.clear();
            push_head(whole, &self.stamp, "200 OK", KeepAlive::Implicit, content_type, length, "");
            whole.extend_from_slice(body);
        }
    }

    #[inline]
    pub(super) fn root(&self, out: &mut Vec<u8>, reply: Reply) {
        let whole = if reply.keep_alive == KeepAlive::Close { &self.root_close } else { &self.root };
        out.extend_from_slice(if reply.head_only { &whole[..whole.len() - ROOT_BODY.len()] } else { whole });
    }

    #[inline]
    pub(super) fn prebuilt(&self, out: &mut Vec<u8>, reply: Reply, answer: &Prebuilt) {
        if reply.keep_alive == KeepAlive::Implicit && !reply.head_only {
            out.extend_from_slice(&answer.whole);
        } else {
            self.whole(out, reply, answer.content_type, answer.body);
        }
    }

    pub(super) fn whole(&self, out: &mut Vec<u8>, reply: Reply, content_type: &str, body: &[u8]) {
        push_head(out, &self.stamp, "200 OK", reply.keep_alive, content_type, Length::Known(body.len() as u64), "");
        if !reply.head_only {
            out.extend_from_slice(body);
        }
    }

    pub(super) fn head(&self, out: &mut Vec<u8>, keep_alive: KeepAlive, length: Length) {
        push_head(out, &self.stamp, "200 OK", keep_alive, "application/octet-stream", length, "");
    }

    pub(super) fn options(&self, out: &mut Vec<u8>, keep_alive: KeepAlive, allowed: &str) {
        push_head(out, &self.stamp, "204 No Content", keep_alive, "", Length::Nothing, allowed);
    }

    pub(super) fn refusal(&self, out: &mut Vec<u8>, refusal: Refusal, reply: Reply) {
        let (code, text, allowed) = refusal.parts();
        push_failure(out, &self.stamp, code, text, "text/plain", reply, allowed);
    }

    pub(super) fn failure(&self, out: &mut Vec<u8>, code: u16, text: impl Display, reply: Reply) {
        push_failure(out, &self.stamp, code, text, "text/plain", reply, "");
    }
}

pub(super) fn chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    write(out, format_args!("{:x}\r\n", bytes.len()));
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Starts a chunk of unknown size. Returns the position of its start.
pub(super) fn begin_chunk(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(CHUNK_HEAD);
    out.len()
}

/// Ends the chunk at `start`, which has fewer than 65,536 bytes. Removes it if it is empty, as it would end the body.
pub(super) fn end_chunk(out: &mut Vec<u8>, start: usize) {
    let size = out.len() - start;
    if size == 0 {
        out.truncate(start - CHUNK_HEAD.len());
        return;
    }
    assert!(size <= 0xffff, "a chunk of {size} bytes does not fit in four digits");
    for (index, digit) in out[start - CHUNK_HEAD.len()..][..4].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[size >> (12 - 4 * index) & 0xf];
    }
    out.extend_from_slice(b"\r\n");
}

/// The bodies of `/bytes` and `/chunked`: 64 characters repeated so that 64 KiB follow each of the first 64 positions.
static PATTERN: [[u8; 64]; 1025] = [*b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"; 1025];

/// Up to `count` bytes of the body from `position` on, at most 64 KiB.
pub(super) fn piece(position: u64, count: u64) -> &'static [u8] {
    &PATTERN.as_flattened()[(position % 64) as usize..][..count.min(65_536) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&Answers, &mut Vec<u8>)) -> String {
        text_with(false, write)
    }

    fn text_with(minimal: bool, write: impl FnOnce(&Answers, &mut Vec<u8>)) -> String {
        // The example date of RFC 9110, section 5.6.7.
        let mut answers = Answers::new(|| 784_111_777);
        answers.minimal = minimal;
        answers.refresh(0);
        let mut out = Vec::new();
        write(&answers, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn reply(keep_alive: KeepAlive, head_only: bool) -> Reply {
        Reply { keep_alive, head_only }
    }

    const GET: Reply = Reply { keep_alive: KeepAlive::Implicit, head_only: false };
    const STAMP: &str = "Server: quintain\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

    #[test]
    fn minimal_root_matches_whaleconnect_byte_for_byte() {
        let answer = "HTTP/1.1 200 OK\nConnection: keep-alive\nContent-Length: 4\nContent-Type: text/html\n\ntest";
        let minimal =
            |head_only| text_with(true, |answers, out| answers.root(out, reply(KeepAlive::Implicit, head_only)));
        assert_eq!(minimal(false), answer.replace('\n', "\r\n"));
        assert!(minimal(true).ends_with("text/html\r\n\r\n"));
    }

    /// Source: RFC 9110, section 6.6.1.
    #[test]
    fn every_response_has_a_date_unless_minimal() {
        type Write = fn(&Answers, &mut Vec<u8>);
        let all: [Write; 9] = [
            |answers, out| answers.root(out, GET),
            |answers, out| answers.root(out, reply(KeepAlive::Close, true)),
            |answers, out| answers.prebuilt(out, GET, &answers.plaintext),
            |answers, out| answers.prebuilt(out, reply(KeepAlive::Close, true), &answers.json),
            |answers, out| answers.whole(out, GET, "text/plain", b"ok"),
            |answers, out| answers.head(out, KeepAlive::Implicit, Length::Chunked),
            |answers, out| answers.options(out, KeepAlive::Implicit, "GET"),
            |answers, out| answers.refusal(out, Refusal::NotFound, GET),
            |answers, out| answers.failure(out, 408, "late", Reply::CLOSE),
        ];
        for (at, write) in all.into_iter().enumerate() {
            let dates = [false, true].map(|minimal| text_with(minimal, write).matches("\r\nDate: ").count());
            assert_eq!(dates, [1, 0], "answer {at}");
        }
    }

    #[test]
    fn root_states_whether_the_connection_persists() {
        assert!(text(|answers, out| answers.root(out, GET)).contains("Connection: keep-alive\r\n"));
        assert!(text(|answers, out| answers.root(out, Reply::CLOSE)).contains("Connection: close\r\n"));
    }

    #[test]
    fn prebuilt_responses_match_composed_ones() {
        let whole = text(|answers, out| answers.prebuilt(out, GET, &answers.plaintext));
        let head = format!("HTTP/1.1 200 OK\r\n{STAMP}Content-Type: text/plain\r\nContent-Length: 13\r\n\r\n");
        assert_eq!(whole, format!("{head}Hello, World!"));
        assert_eq!(
            text(|answers, out| answers.prebuilt(out, reply(KeepAlive::Implicit, true), &answers.plaintext)),
            head
        );
        let said = text(|answers, out| answers.prebuilt(out, reply(KeepAlive::Explicit, false), &answers.plaintext));
        assert_eq!(said, whole.replace("Content-Type", "Connection: keep-alive\r\nContent-Type"));
        let json = text(|answers, out| answers.prebuilt(out, Reply::CLOSE, &answers.json));
        let head = "Connection: close\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n";
        assert!(json.ends_with(&format!("{head}{{\"message\":\"Hello, World!\"}}")), "{json}");
    }

    #[test]
    fn refusals_name_the_valid_input() {
        let refused = |refusal| text(|answers, out| answers.refusal(out, refusal, GET));
        assert!(refused(Refusal::NotFound).starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert!(refused(Refusal::MethodNotAllowed("POST")).contains("\r\nAllow: POST\r\n"));
        assert!(refused(Refusal::NotImplemented).starts_with("HTTP/1.1 501 "));
        assert!(refused(Refusal::Parameter("so")).ends_with("\r\n\r\nso\n"));
        let options = text(|answers, out| answers.options(out, KeepAlive::Implicit, "GET"));
        assert_eq!(options, format!("HTTP/1.1 204 No Content\r\n{STAMP}Allow: GET\r\n\r\n"));
    }

    #[test]
    fn date_is_rebuilt_once_per_second() {
        use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
        static ASKED: AtomicU64 = AtomicU64::new(0);
        let mut answers = Answers::new(|| ASKED.fetch_add(1, Relaxed));
        for now in (0..10_000_000_000).step_by(1_000_000) {
            answers.refresh(now);
        }
        assert_eq!(ASKED.load(Relaxed), 10);
    }

    #[test]
    fn distant_dates_do_not_panic() {
        let mut answers = Answers::new(|| u64::MAX);
        answers.refresh(0);
        assert!(String::from_utf8_lossy(&answers.stamp).contains("9999"));
    }

    #[test]
    fn chunks_are_framed() {
        let mut out = Vec::new();
        let start = begin_chunk(&mut out);
        out.extend_from_slice(&[b'x'; 0x1a]);
        end_chunk(&mut out, start);
        assert_eq!(out, [b"001a\r\n", &[b'x'; 26][..], b"\r\n"].concat());
        let before = out.len();
        let start = begin_chunk(&mut out);
        end_chunk(&mut out, start);
        assert_eq!(out.len(), before, "an empty chunk would be the last");
    }

    #[test]
    fn piece_depends_only_on_its_position() {
        let whole: Vec<u8> = (0..200).map(|at| piece(at, 1)[0]).collect();
        assert_eq!(piece(3, 150), &whole[3..153]);
        assert_eq!(piece(64 * 1000 + 5, 10), piece(5, 10));
        assert_eq!(piece(63, u64::MAX).len(), 65_536);
    }
}
