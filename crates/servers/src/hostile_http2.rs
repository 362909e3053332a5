//! Misbehaving HTTP/2 servers, for tests of load generators and of the checks in `quintain verify`.

use wire::http2::hpack::{self, Indexing};
use wire::http2::{
    ErrorCode, Event, FrameKind, Limits, Reader, Role, Settings, push_data, push_frame_head, push_go_away,
    push_headers, push_ping, push_reset, push_settings, push_settings_ack, push_window_update,
};

/// A misbehavior over HTTP/2 without TLS. Sections are those of RFC 9113.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Fault {
    /// Sends nothing, not even SETTINGS (section 3.4).
    Silence,
    /// Responds to the preface with an HTTP/1.1 error.
    Http1,
    /// Announces windows of 0 bytes for bodies of requests, and never grants credit (section 6.9).
    NoCredit,
    /// Sends half a response, then GOAWAY, and closes the connection (section 6.8).
    GoAway,
    /// Resets the stream with INTERNAL_ERROR (section 6.4).
    Reset,
    /// Resets the stream with REFUSED_STREAM (section 8.7).
    Refuse,
    /// Sends DATA after END_STREAM (section 5.1).
    ClosedStream,
    /// Sends a small field block that decodes to a list of 300 kB (section 10.5.1).
    HeaderBomb,
    /// Starts a field block and sends endless CONTINUATION frames (section 10.5).
    ContinuationFlood,
    /// Sends endless PING frames (section 10.5).
    PingFlood,
    /// Sends endless SETTINGS frames (section 10.5).
    SettingsFlood,
}

const BODY: &[u8] = b"test";
const FLOOD_BYTES: usize = 16_384;
const FRAME_BYTES: u32 = Settings::DEFAULT.max_frame_size;

impl Http2Fault {
    /// Frames that a flood repeats; `stream` has the open field block.
    pub(crate) fn flood(self, stream: u32) -> Vec<u8> {
        let mut frame = Vec::new();
        match self {
            Http2Fault::ContinuationFlood => push_frame_head(&mut frame, 0, FrameKind::CONTINUATION, 0, stream),
            Http2Fault::SettingsFlood => push_settings(&mut frame, &Settings::DEFAULT),
            _ => push_ping(&mut frame, [0; 8], false),
        }
        frame.repeat(FLOOD_BYTES / frame.len())
    }
}

/// The state of a connection after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Open,
    /// The flood has started on this stream.
    Flooding(u32),
    Closed,
}

/// A connection whose correct responses alternate with a misbehavior.
pub(crate) struct Http2Connection {
    fault: Http2Fault,
    /// Number of correct responses before each misbehavior.
    after: u64,
    answered: u64,
    reader: Reader,
    has_started: bool,
    state: After,
}

impl Http2Connection {
    pub(crate) fn new(fault: Http2Fault, after: u64) -> Self {
        let reader = Reader::new(Role::Server, Limits::DEFAULT);
        Self { fault, after, answered: 0, reader, has_started: false, state: After::Open }
    }

    /// Reads a client's bytes and appends the bytes to send.
    pub(crate) fn read(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> After {
        if self.fault == Http2Fault::Silence {
            return After::Open;
        }
        if self.fault == Http2Fault::Http1 {
            out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            return After::Closed;
        }
        if !std::mem::replace(&mut self.has_started, true) {
            let initial_window_size = if self.fault == Http2Fault::NoCredit { 0 } else { 65_535 };
            push_settings(out, &Settings { initial_window_size, ..Settings::DEFAULT });
        }
        while !bytes.is_empty() && self.state == After::Open {
            let (used, event) = match self.reader.read(bytes) {
                Ok(read) => read,
                Err(error) => {
                    push_go_away(out, self.reader.highest_stream, error.code());
                    return After::Closed;
                }
            };
            bytes = &bytes[used..];
            match event {
                Some(Event::Settings(_)) => push_settings_ack(out),
                Some(Event::Ping(payload)) => push_ping(out, payload, true),
                Some(Event::Headers { stream, ends: true, .. }) => self.respond(stream, out),
                Some(Event::Data { stream, flow_bytes, ends, .. }) => {
                    if flow_bytes > 0 && self.fault != Http2Fault::NoCredit {
                        push_window_update(out, 0, flow_bytes);
                        push_window_update(out, stream, flow_bytes);
                    }
                    if ends {
                        self.respond(stream, out);
                    }
                }
                _ => {}
            }
        }
        self.state
    }

    fn respond(&mut self, stream: u32, out: &mut Vec<u8>) {
        let mut block = Vec::new();
        hpack::push_field(&mut block, b":status", b"200", Indexing::Skip);
        let is_faulty = self.answered == self.after;
        self.answered = if is_faulty { 0 } else { self.answered + 1 };
        match self.fault {
            Http2Fault::GoAway if is_faulty => {
                push_headers(out, stream, &block, false, FRAME_BYTES);
                push_data(out, stream, &BODY[..2], false);
                push_go_away(out, stream, ErrorCode::NO_ERROR);
                self.state = After::Closed;
            }
            Http2Fault::Reset if is_faulty => push_reset(out, stream, ErrorCode::INTERNAL_ERROR),
            Http2Fault::Refuse if is_faulty => push_reset(out, stream, ErrorCode::REFUSED_STREAM),
            Http2Fault::HeaderBomb if is_faulty => {
                hpack::push_literal_name(&mut block, b"bomb", Indexing::Insert);
                hpack::push_text(&mut block, &[b'x'; 3_000]);
                (0..100).for_each(|_| hpack::push_indexed(&mut block, hpack::DYNAMIC_FIRST));
                push_headers(out, stream, &block, true, FRAME_BYTES);
            }
            Http2Fault::ContinuationFlood if is_faulty => {
                push_frame_head(out, block.len(), FrameKind::HEADERS, 0, stream);
                out.extend_from_slice(&block);
                self.state = After::Flooding(stream);
            }
            Http2Fault::PingFlood | Http2Fault::SettingsFlood if is_faulty => self.state = After::Flooding(stream),
            fault => {
                push_headers(out, stream, &block, false, FRAME_BYTES);
                push_data(out, stream, BODY, true);
                if is_faulty && fault == Http2Fault::ClosedStream {
                    push_data(out, stream, BODY, true);
                }
            }
        }
    }
}
