//! Response bytes. The parts that all responses share are rebuilt once per second.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;
use std::time::{Duration, SystemTime};

use net::Nanos;
use wire::http2::hpack::{self, Indexing};
use wire::http2::push_data;

use super::ENDING;
use super::route::{Refusal, Route};
use crate::response_head::{Head, KeepAlive, Length, Reply, push_head_frame, push_response};

const DATE_NS: Nanos = 1_000_000_000;

const SERVER: &str = "Server: quintain\r\n";
/// The head of `/` without `Date`, byte for byte like WhaleConnect's benchmark server.
const ROOT: &str = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\nContent-Type: text/html\r\n";
const ROOT_CLOSE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\nContent-Type: text/html\r\n";
pub(super) const ROOT_BODY: &[u8] = b"test";
/// The head of a delayed response, whose body is [`ROOT_BODY`].
pub(super) const DELAYED: Head = Head::new(200, "text/plain", Length::Known(ROOT_BODY.len() as u64));

pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// Position of the stream identifier in the head of a frame, in bytes.
const STREAM_AT: usize = 5;

pub(super) struct Answers {
    wall_s: fn() -> u64,
    made_until: Nanos,
    pub(super) minimal: bool,
    /// The header fields `Server` and `Date`; empty if the server is minimal.
    stamp: Vec<u8>,
    /// The same fields, encoded for HTTP/2.
    pub(super) frame_stamp: Vec<u8>,
    pub(super) root: Prebuilt,
    root_close: Vec<u8>,
    pub(super) plaintext: Prebuilt,
    pub(super) json: Prebuilt,
}

/// A frequent response.
pub(super) struct Prebuilt {
    content_type: &'static str,
    pub(super) body: &'static [u8],
    /// The response to the common case: HTTP/1.1, GET, keep-alive.
    whole: Vec<u8>,
    /// The HEADERS and DATA frames, without a stream identifier.
    frames: Vec<u8>,
    data_at: usize,
}

impl Prebuilt {
    fn new(content_type: &'static str, body: &'static [u8]) -> Self {
        Self { content_type, body, whole: Vec::new(), frames: Vec::new(), data_at: 0 }
    }

    pub(super) fn head(&self) -> Head {
        Head::new(200, self.content_type, Length::Known(self.body.len() as u64))
    }

    pub(super) fn push_frames(&self, out: &mut Vec<u8>, stream: u32) {
        let start = out.len();
        out.extend_from_slice(&self.frames);
        for frame in [start, start + self.data_at] {
            out[frame + STREAM_AT..][..4].copy_from_slice(&stream.to_be_bytes());
        }
    }
}

impl Answers {
    pub(super) fn new(wall_s: fn() -> u64) -> Self {
        Self {
            wall_s,
            made_until: 0,
            minimal: false,
            stamp: Vec::new(),
            frame_stamp: Vec::new(),
            root: Prebuilt::new("text/html", ROOT_BODY),
            root_close: Vec::new(),
            plaintext: Prebuilt::new("text/plain", b"Hello, World!"),
            json: Prebuilt::new("application/json", br#"{"message":"Hello, World!"}"#),
        }
    }

    /// Rebuilds the parts that all responses share, once per second.
    pub(super) fn refresh(&mut self, now: Nanos) {
        if now < self.made_until {
            return;
        }
        self.made_until = now.saturating_add(DATE_NS);
        // The format of `Date` ends with the year 9999.
        let wall = Duration::from_secs((self.wall_s)().min(253_402_300_799));
        let date = httpdate::HttpDate::from(SystemTime::UNIX_EPOCH + wall);
        self.stamp.clear();
        self.frame_stamp.clear();
        if !self.minimal {
            let _ = write!(self.stamp, "{SERVER}Date: {date}\r\n");
            hpack::push_field(&mut self.frame_stamp, b"server", b"quintain", Indexing::Skip);
            hpack::push_field(&mut self.frame_stamp, b"date", date.to_string().as_bytes(), Indexing::Skip);
        }
        for prebuilt in [&mut self.root, &mut self.plaintext, &mut self.json] {
            let head = prebuilt.head();
            prebuilt.whole.clear();
            push_response(&mut prebuilt.whole, &self.stamp, Reply::PERSIST, &head, prebuilt.body);
            prebuilt.frames.clear();
            push_head_frame(&mut prebuilt.frames, &self.frame_stamp, 0, &head, false, false);
            prebuilt.data_at = prebuilt.frames.len();
            push_data(&mut prebuilt.frames, 0, prebuilt.body, true);
        }
        let date = self.stamp.get(SERVER.len()..).unwrap_or_default();
        for (answer, head) in [(&mut self.root.whole, ROOT), (&mut self.root_close, ROOT_CLOSE)] {
            answer.clear();
            for part in [head.as_bytes(), date, b"\r\n", ROOT_BODY] {
                answer.extend_from_slice(part);
            }
        }
    }

    pub(super) fn root(&self, out: &mut Vec<u8>, reply: Reply) {
        let whole = if reply.keep_alive == KeepAlive::Close { &self.root_close } else { &self.root.whole };
        out.extend_from_slice(if reply.head_only { &whole[..whole.len() - ROOT_BODY.len()] } else { whole });
    }

    pub(super) fn prebuilt(&self, out: &mut Vec<u8>, reply: Reply, answer: &Prebuilt) {
        if reply.keep_alive == KeepAlive::Implicit && !reply.head_only {
            out.extend_from_slice(&answer.whole);
        } else {
            self.push(out, reply, &answer.head(), answer.body);
        }
    }

    pub(super) fn push(&self, out: &mut Vec<u8>, reply: Reply, head: &Head, body: &[u8]) {
        push_response(out, &self.stamp, reply, head, body);
    }
}

/// The response of a route that is neither prebuilt nor delayed.
pub(super) fn response(route: Result<Route, Refusal>, is_ending: bool) -> (Head, Body) {
    match route {
        Ok(Route::Bytes(left)) => (octets(Length::Known(left)), Body::Pattern(Pattern { position: 0, left })),
        Ok(Route::Chunked { total: left, .. }) => {
            (octets(Length::Chunked), Body::Pattern(Pattern { position: 0, left }))
        }
        Ok(Route::Echo) => (octets(Length::Known(0)), Body::EMPTY),
        Ok(Route::Options(allow)) => (Head { allow, ..Head::new(204, "", Length::Nothing) }, Body::EMPTY),
        Ok(_) if is_ending => text(503, ENDING, ""),
        Ok(_) => (Head::new(200, "text/plain", Length::Known(3)), Body::fixed(b"ok\n")),
        Err(Refusal::Parameter(form)) => text(400, form, ""),
        Err(Refusal::NotFound) => {
            text(404, "not found; try /, /plaintext, /json, /bytes/N, /chunked/N, /echo, /delay, /health", "")
        }
        Err(Refusal::MethodNotAllowed(allow)) => text(405, "method not allowed here; see Allow", allow),
        Err(Refusal::NotImplemented) => text(501, "unknown method", ""),
    }
}

pub(super) fn octets(length: Length) -> Head {
    Head::new(200, "application/octet-stream", length)
}

pub(super) fn text(status: u16, text: impl Display, allow: &'static str) -> (Head, Body) {
    let bytes = format!("{text}\n").into_bytes();
    let length = Length::Known(bytes.len() as u64);
    (Head { allow, ..Head::new(status, "text/plain", length) }, Body::Bytes { bytes: Cow::Owned(bytes), sent: 0 })
}

/// The unsent part of a body of `/bytes` or `/chunked`.
#[derive(Clone, Copy)]
pub(super) struct Pattern {
    position: u64,
    pub(super) left: u64,
}

impl Pattern {
    /// Removes and returns up to `most` bytes, at most 64 KiB.
    pub(super) fn take(&mut self, most: u64) -> &'static [u8] {
        let piece = piece(self.position, self.left.min(most));
        self.position += piece.len() as u64;
        self.left -= piece.len() as u64;
        piece
    }
}

/// The unsent part of a response's body.
pub(super) enum Body {
    Pattern(Pattern),
    Bytes { bytes: Cow<'static, [u8]>, sent: usize },
}

impl Body {
    pub(super) const EMPTY: Body = Body::fixed(b"");

    pub(super) const fn fixed(bytes: &'static [u8]) -> Body {
        Body::Bytes { bytes: Cow::Borrowed(bytes), sent: 0 }
    }

    pub(super) fn left(&self) -> u64 {
        match self {
            Body::Pattern(pattern) => pattern.left,
            Body::Bytes { .. } => self.unsent().len() as u64,
        }
    }

    /// The rest of a body that is in memory.
    pub(super) fn unsent(&self) -> &[u8] {
        match self {
            Body::Pattern(_) => b"",
            Body::Bytes { bytes, sent } => &bytes[*sent..],
        }
    }

    /// Removes and returns the next `count` bytes; `count` is at most 64 KiB.
    pub(super) fn take(&mut self, count: u32) -> &[u8] {
        match self {
            Body::Pattern(pattern) => pattern.take(count.into()),
            Body::Bytes { bytes, sent } => {
                *sent += count as usize;
                &bytes[*sent - count as usize..*sent]
            }
        }
    }

    /// Appends bytes of an echo. Frees the space of sent bytes, so the buffer stays below twice the receive window.
    pub(super) fn extend(&mut self, more: &[u8]) {
        let Body::Bytes { bytes, sent } = self else { return };
        let bytes = bytes.to_mut();
        if *sent > bytes.len() / 2 {
            bytes.drain(..std::mem::take(sent));
        }
        bytes.extend_from_slice(more);
    }
}

pub(super) fn chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    let _ = write!(out, "{:x}\r\n", bytes.len());
    out.extend_from_slice(bytes);
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

    fn push(answers: &Answers, out: &mut Vec<u8>, (head, body): (Head, Body)) {
        answers.push(out, GET, &head, body.unsent());
    }

    const GET: Reply = Reply::PERSIST;
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
            |answers, out| push(answers, out, response(Ok(Route::Health), false)),
            |answers, out| push(answers, out, response(Ok(Route::Chunked { total: 1, chunk: 1 }), false)),
            |answers, out| push(answers, out, response(Ok(Route::Options("GET")), false)),
            |answers, out| push(answers, out, response(Err(Refusal::NotFound), false)),
            |answers, out| push(answers, out, super::text(408, "late", "")),
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
        let refused = |refusal| text(|answers, out| push(answers, out, response(Err(refusal), false)));
        assert!(refused(Refusal::NotFound).starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert!(refused(Refusal::MethodNotAllowed("POST")).contains("\r\nAllow: POST\r\n"));
        assert!(refused(Refusal::NotImplemented).starts_with("HTTP/1.1 501 "));
        assert!(refused(Refusal::Parameter("so")).ends_with("\r\n\r\nso\n"));
        let options = text(|answers, out| push(answers, out, response(Ok(Route::Options("GET")), false)));
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
        chunk(&mut out, &[b'x'; 0x1a]);
        assert_eq!(out, [b"1a\r\n", &[b'x'; 26][..], b"\r\n"].concat());
    }

    #[test]
    fn piece_depends_only_on_its_position() {
        let whole: Vec<u8> = (0..200).map(|at| piece(at, 1)[0]).collect();
        assert_eq!(piece(3, 150), &whole[3..153]);
        assert_eq!(piece(64 * 1000 + 5, 10), piece(5, 10));
        assert_eq!(piece(63, u64::MAX).len(), 65_536);
    }
}
