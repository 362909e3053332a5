//! Violations of RFC 9113 by a client. The server must respond to each with an error.

use std::time::Duration;

use wire::http1::RequestMethod;
use wire::http2::hpack::{self, Indexing};
use wire::http2::{ErrorCode, FrameKind, Settings, WINDOW_MAX, flags};

use super::check_definition::{Check, code};
use super::http2_session::{Frame, GENEROUS, block, field, frame};
use super::server_under_test::Server;
use super::unsuccessful_check_reason::Trouble;

/// Whether an error must end the connection, or at least the stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Connection,
    Stream,
    /// As `Stream`, or a response with a status of 400 to 499 (RFC 9113, section 8.1.1).
    Message,
}
use Scope::{Connection, Message, Stream};

/// Composes the frames of a violation, given the server's settings. Stream 1 has ended, and [`NEXT`] is the next.
type Frames = fn(&Settings) -> Vec<u8>;

struct Violation(&'static str, Scope, ErrorCode, Frames);

/// Maximum time of an error after the acknowledgement of the next PING.
const LATE: Duration = Duration::from_millis(200);
const NEXT: u32 = 3;
const AFTER_NEXT: u32 = 5;
const IDLE: u32 = 7;
const END: u8 = flags::END_STREAM | flags::END_HEADERS;

const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
const FLOW: ErrorCode = ErrorCode::FLOW_CONTROL_ERROR;
const SIZE: ErrorCode = ErrorCode::FRAME_SIZE_ERROR;
const COMPRESSION: ErrorCode = ErrorCode::COMPRESSION_ERROR;

const FRAME_SIZES: &[Violation] = &[
    Violation("DATA above SETTINGS_MAX_FRAME_SIZE", Stream, SIZE, |peer| {
        [post(&[]), frame(FrameKind::DATA, 0, NEXT, &vec![0; peer.max_frame_size as usize + 1])].concat()
    }),
    Violation("HEADERS above SETTINGS_MAX_FRAME_SIZE", Connection, SIZE, |peer| {
        headers(&vec![0x82; peer.max_frame_size as usize + 1])
    }),
    Violation("PING of 7 bytes", Connection, SIZE, |_| frame(FrameKind::PING, 0, 0, &[0; 7])),
    Violation("SETTINGS of 5 bytes", Connection, SIZE, |_| frame(FrameKind::SETTINGS, 0, 0, &[0; 5])),
    Violation("an acknowledgement of SETTINGS of 6 bytes", Connection, SIZE, |_| {
        frame(FrameKind::SETTINGS, flags::ACK, 0, &[0; 6])
    }),
    Violation("WINDOW_UPDATE of 3 bytes", Connection, SIZE, |_| frame(FrameKind::WINDOW_UPDATE, 0, 0, &[1; 3])),
    Violation("RST_STREAM of 3 bytes", Connection, SIZE, |_| {
        [post(&[]), frame(FrameKind::RST_STREAM, 0, NEXT, &[0; 3])].concat()
    }),
];

const STREAM_STATES: &[Violation] = &[
    Violation("DATA on an idle stream", Connection, PROTOCOL, |_| frame(FrameKind::DATA, 0, IDLE, b"test")),
    Violation("RST_STREAM on an idle stream", Connection, PROTOCOL, |_| frame(FrameKind::RST_STREAM, 0, IDLE, &[0; 4])),
    Violation("WINDOW_UPDATE on an idle stream", Connection, PROTOCOL, |_| credit(IDLE, 1)),
    Violation("HEADERS on an even stream", Connection, PROTOCOL, |_| {
        frame(FrameKind::HEADERS, END, 2, &block("GET", "/", &[]))
    }),
    Violation("HEADERS on a lower stream than before", Connection, PROTOCOL, |_| {
        let head = block("GET", "/", &[]);
        [AFTER_NEXT, NEXT].map(|stream| frame(FrameKind::HEADERS, END, stream, &head)).concat()
    }),
    Violation("DATA on a stream that has ended", Stream, ErrorCode::STREAM_CLOSED, |_| {
        frame(FrameKind::DATA, 0, 1, b"test")
    }),
    Violation("DATA on stream 0", Connection, PROTOCOL, |_| frame(FrameKind::DATA, 0, 0, b"test")),
    Violation("SETTINGS on a stream", Connection, PROTOCOL, |_| frame(FrameKind::SETTINGS, 0, NEXT, &[])),
    Violation("PING on a stream", Connection, PROTOCOL, |_| frame(FrameKind::PING, 0, NEXT, &[0; 8])),
    Violation("PUSH_PROMISE from a client", Connection, PROTOCOL, |_| {
        [post(&[]), frame(FrameKind::PUSH_PROMISE, flags::END_HEADERS, NEXT, &[0, 0, 0, 2])].concat()
    }),
];

const BAD_SETTINGS: &[Violation] = &[
    Violation("SETTINGS_ENABLE_PUSH of 2", Connection, PROTOCOL, |_| setting(2, 2)),
    Violation("SETTINGS_INITIAL_WINDOW_SIZE of 2^31", Connection, FLOW, |_| setting(4, 1 << 31)),
    Violation("SETTINGS_MAX_FRAME_SIZE of 16,383", Connection, PROTOCOL, |_| setting(5, 16_383)),
    Violation("SETTINGS_MAX_FRAME_SIZE of 2^24", Connection, PROTOCOL, |_| setting(5, 1 << 24)),
];

const CREDITS: &[Violation] = &[
    Violation("WINDOW_UPDATE of 0 bytes", Connection, PROTOCOL, |_| credit(0, 0)),
    Violation("WINDOW_UPDATE of 0 bytes on a stream", Stream, PROTOCOL, |_| [post(&[]), credit(NEXT, 0)].concat()),
    Violation("a window above 2^31 - 1 bytes", Connection, FLOW, |_| credit(0, WINDOW_MAX).repeat(2)),
    Violation("a window of a stream above 2^31 - 1 bytes", Stream, FLOW, |_| {
        [post(&[]), credit(NEXT, WINDOW_MAX).repeat(2)].concat()
    }),
];

const FIELD_BLOCKS: &[Violation] = &[
    Violation("an index of 0", Connection, COMPRESSION, |_| headers(&[0x80])),
    Violation("an index that is in neither table", Connection, COMPRESSION, |_| {
        let mut out = Vec::new();
        hpack::push_indexed(&mut out, hpack::DYNAMIC_FIRST + 100);
        headers(&out)
    }),
    Violation("a block that ends inside a field", Connection, COMPRESSION, |_| headers(&[0x82, 0x40, 0x05, b'a'])),
    Violation("a dynamic table above the setting", Connection, COMPRESSION, |peer| {
        let mut out = Vec::new();
        hpack::push_table_size(&mut out, peer.header_table_size.saturating_add(1) as usize);
        headers(&[out, block("GET", "/", &[])].concat())
    }),
    Violation("CONTINUATION outside a field block", Connection, PROTOCOL, |_| {
        [post(&[]), frame(FrameKind::CONTINUATION, flags::END_HEADERS, NEXT, &[0x82])].concat()
    }),
    Violation("PING inside a field block", Connection, PROTOCOL, |_| {
        let head = frame(FrameKind::HEADERS, flags::END_STREAM, NEXT, &block("GET", "/", &[]));
        [head, frame(FrameKind::PING, 0, 0, &[0; 8])].concat()
    }),
    Violation("padding longer than the frame", Stream, PROTOCOL, |_| {
        frame(FrameKind::HEADERS, END | flags::PADDED, NEXT, &[9, 0x82])
    }),
];

const MALFORMED: &[Violation] = &[
    Violation("a field name with an upper-case letter", Message, PROTOCOL, |_| get(&[("X-Quintain", "1")])),
    Violation("a `connection` field", Message, PROTOCOL, |_| get(&[("connection", "keep-alive")])),
    Violation("`te` other than `trailers`", Message, PROTOCOL, |_| get(&[("te", "gzip")])),
    Violation("a pseudo-header field after a regular one", Message, PROTOCOL, |_| {
        get(&[("x-quintain", "1"), (":path", "/")])
    }),
    Violation("an unknown pseudo-header field", Message, PROTOCOL, |_| get(&[(":x", "1")])),
    Violation("a request without `:path`", Message, PROTOCOL, |_| {
        let mut out = Vec::new();
        [(":method", "GET"), (":scheme", "http")].iter().for_each(|(name, value)| field(&mut out, name, value));
        headers(&out)
    }),
    Violation("a body longer than its `content-length`", Message, PROTOCOL, |_| {
        [post(&[("content-length", "1")]), frame(FrameKind::DATA, flags::END_STREAM, NEXT, b"test")].concat()
    }),
];

fn headers(block: &[u8]) -> Vec<u8> {
    frame(FrameKind::HEADERS, END, NEXT, block)
}

fn get(more: &[(&str, &str)]) -> Vec<u8> {
    let mut head = block("GET", "/", &[]);
    for (name, value) in more {
        hpack::push_literal_name(&mut head, name.as_bytes(), Indexing::Skip);
        hpack::push_text(&mut head, value.as_bytes());
    }
    headers(&head)
}

/// The head of a request whose body must follow.
fn post(more: &[(&str, &str)]) -> Vec<u8> {
    frame(FrameKind::HEADERS, flags::END_HEADERS, NEXT, &block("POST", "/", more))
}

fn setting(id: u8, value: u32) -> Vec<u8> {
    frame(FrameKind::SETTINGS, 0, 0, &[&[0, id][..], &value.to_be_bytes()].concat())
}

fn credit(stream: u32, bytes: u32) -> Vec<u8> {
    frame(FrameKind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

pub(super) fn checks() -> Vec<Check> {
    let check = |(name, promise, violations): (&str, &str, &'static [Violation])| {
        code(name, promise, move |server| violations.iter().try_for_each(|one| one.check(server)))
    };
    [
        ("frame-size", "frames of a wrong size are errors (4.2, 6)", FRAME_SIZES),
        ("stream-states", "frames that a stream's state does not allow are errors (5.1, 6)", STREAM_STATES),
        ("bad-settings", "settings outside their range are errors (6.5.2)", BAD_SETTINGS),
        ("credit", "a credit of 0 bytes, and one above 2^31 - 1 bytes, are errors (6.9)", CREDITS),
        (
            "field-blocks",
            "field blocks that are interrupted, or cannot be decoded, are errors (4.3, 6.10)",
            FIELD_BLOCKS,
        ),
        ("malformed", "malformed requests are refused (8.1.1, 8.2, 8.3)", MALFORMED),
    ]
    .map(check)
    .into()
}

impl Violation {
    fn check(&self, server: &Server<'_>) -> Result<(), Trouble> {
        let Violation(name, scope, expected, frames) = self;
        let failed = |why: String| Trouble::from(format!("{name}: {why}"));
        let mut client = server.http2(&GENEROUS)?;
        client.get_response(&server.path)?;
        let peer = client.session.peer();
        let is_long = peer.max_frame_size > 1 << 20 && name.contains("MAX_FRAME_SIZE");
        if is_long || (peer.header_table_size == u32::MAX && name.contains("dynamic table")) {
            return Ok(()); // The setting allows anything.
        }
        for _ in [NEXT, AFTER_NEXT] {
            client.session.open(RequestMethod::Get);
        }
        // Large frames: the server may close the connection before it has read them.
        let _ = client.send(&frames(&peer)).and_then(|()| client.ping());
        // A generic code may replace a specific one (RFC 9113, section 5.4).
        let is_right = |code| code == *expected || [PROTOCOL, ErrorCode::INTERNAL_ERROR].contains(&code);
        let mut missing = format!("no error, expected {expected}");
        let mut is_late = false;
        loop {
            let frame = match client.next_frame() {
                Err(_) if is_late && *scope == Stream && client.session.status(NEXT) > 0 => return Ok(()), // It had ended.
                Err(_) if is_late => return Err(failed(missing)),
                frame => frame.map_err(failed)?,
            };
            match frame {
                Frame::End => return Ok(()),
                Frame::GoAway(_, code) if is_right(code) => return Ok(()),
                Frame::GoAway(_, code) => return Err(failed(format!("GOAWAY with {code}, expected {expected}"))),
                Frame::Reset(_, code) if is_right(code) && *scope != Connection => return Ok(()),
                Frame::Reset(_, code) => missing = format!("RST_STREAM with {code}, expected {expected}"),
                Frame::Headers(NEXT) if *scope == Message && (400..500).contains(&client.session.status(NEXT)) => {
                    return Ok(());
                }
                // Some servers send an error only later.
                Frame::PingAck => {
                    is_late = true;
                    let set = client.stream.set_read_timeout(Some(LATE));
                    set.map_err(|error| format!("cannot set a timeout: {error}"))?;
                }
                _ => {}
            }
        }
    }
}
