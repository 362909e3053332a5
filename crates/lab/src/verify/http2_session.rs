//! The state of an HTTP/2 connection of a client. Frames and fields are decoded by `wire`, whose tests have independent
//! readers and the examples of RFC 7541.

use std::collections::{BTreeMap, VecDeque};

use wire::http1::RequestMethod;
use wire::http2::hpack::{self, Decoder, Indexing};
use wire::http2::{
    ErrorCode, Event, FrameKind, Incoming, Limits, Reader, ResponseHead, Role, SendWindow, Settings, WINDOW_MAX,
    push_frame_head, push_ping, push_settings_ack, read_trailers,
};

use super::http_response_parser::{BODY_MAX, Response};

/// Why a connection broke the protocol.
type Fault = Box<dyn std::error::Error>;

/// An event of a connection. Frames on streams have the stream first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    SettingsAck,
    PingAck,
    Headers(u32),
    Data(u32),
    Reset(u32, ErrorCode),
    GoAway(u32, ErrorCode),
    /// SETTINGS, PING and WINDOW_UPDATE, whose effects the client has applied.
    Other,
    End,
}

pub(super) struct Reply {
    method: RequestMethod,
    pub(super) incoming: Incoming,
    pub(super) response: Response,
    /// Number of body bytes that the server may still send.
    pub(super) window: i64,
    credit: SendWindow,
    pub(super) end: Option<ErrorCode>,
}

impl Reply {
    fn is_open(&self) -> bool {
        !self.incoming.is_complete() && self.end.is_none()
    }
}

/// The state of a connection, from its first bytes on.
pub(super) struct Session {
    reader: Reader,
    decoder: Decoder,
    next_stream: u32,
    pub(super) replies: BTreeMap<u32, Reply>,
    /// Streams of `Client::question` whose responses have not been read.
    pub(super) asked: VecDeque<u32>,
    pub(super) own: Settings,
    pub(super) window: i64,
    credit: SendWindow,
}

impl Default for Session {
    fn default() -> Session {
        let (reader, decoder) = (Reader::new(Role::Client, Limits::DEFAULT), Decoder::default());
        let (own, replies, asked) = (Settings::DEFAULT, BTreeMap::new(), VecDeque::new());
        let (window, credit) = (own.initial_window_size.into(), SendWindow::new(own.initial_window_size));
        Session { reader, decoder, next_stream: 1, replies, asked, own, window, credit }
    }
}

/// Settings without push and with the largest windows.
pub(super) const GENEROUS: Settings =
    Settings { enable_push: false, initial_window_size: WINDOW_MAX, ..Settings::DEFAULT };

pub(super) fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    hpack::push_field(out, name.as_bytes(), value.as_bytes(), Indexing::Skip);
}

/// The field block of a request.
pub(super) fn block(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let pseudo = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
    pseudo.iter().chain(more).for_each(|(name, value)| field(&mut out, name, value));
    out
}

/// A frame of any kind.
pub(super) fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_frame_head(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

impl Session {
    /// The next stream, as the server will see it.
    pub(super) fn open(&mut self, method: RequestMethod) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        self.reader.highest_stream = stream;
        let (incoming, response) = (Incoming::default(), Response::default());
        let (window, credit) = (self.own.initial_window_size.into(), SendWindow::new(self.peer().initial_window_size));
        let reply = Reply { method, incoming, response, window, credit, end: None };
        self.replies.insert(stream, reply);
        stream
    }

    pub(super) fn peer(&self) -> Settings {
        self.reader.peer_settings
    }

    pub(super) fn status(&self, stream: u32) -> u16 {
        self.replies.get(&stream).map_or(0, |reply| reply.response.status)
    }

    pub(super) fn is_ended(&self, stream: u32) -> bool {
        !self.replies.get(&stream).is_some_and(Reply::is_open)
    }

    /// Number of the first `wanted` bytes that the server's windows allow on this stream.
    pub(super) fn take_credit(&mut self, stream: u32, wanted: usize) -> usize {
        let most = self.reader.peer_settings.max_frame_size.min(u32::try_from(wanted).unwrap_or(u32::MAX));
        let Some(reply) = self.replies.get_mut(&stream) else { return 0 };
        let granted = self.credit.take(most.min(reply.credit.available()));
        reply.credit.take(granted) as usize
    }

    /// Reads up to the next frame and appends acknowledgements to `out`. Returns the number of bytes used.
    pub(super) fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Option<Frame>), Fault> {
        let before = self.peer();
        let (used, event) = self.reader.read(bytes)?;
        let Some(event) = event else { return Ok((used, None)) };
        let limits = &Limits::DEFAULT;
        let frame = match event {
            Event::Settings(peer) => {
                push_settings_ack(out);
                let change = i64::from(peer.initial_window_size) - i64::from(before.initial_window_size);
                self.replies.values_mut().try_for_each(|reply| reply.credit.add(change))?;
                Frame::Other
            }
            Event::SettingsAck => Frame::SettingsAck,
            Event::Ping(payload) => {
                push_ping(out, payload, true);
                Frame::Other
            }
            Event::PingAck(payload) if payload == PING => Frame::PingAck,
            Event::PingAck(payload) => {
                return Err(format!("a PING was acknowledged with other bytes: {payload:x?}").into());
            }
            Event::Headers { stream, block, ends, .. } => {
                let Some(reply) = self.replies.get_mut(&stream).filter(|reply| reply.is_open()) else {
                    return Err(format!("stream {stream}: HEADERS on a closed stream").into());
                };
                if !reply.incoming.awaits_head() {
                    let read = read_trailers(&mut self.decoder, block, limits, |_, _| {})?;
                    let read = read.and_then(|()| reply.incoming.trailers(ends));
                    read.map_err(|error| format!("stream {stream}: trailers: {error}"))?;
                    return Ok((used, Some(Frame::Headers(stream))));
                }
                let headers = &mut reply.response.headers;
                headers.clear();
                let head = ResponseHead::read(&mut self.decoder, block, limits, |name, value| {
                    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                    headers.push((text(name), text(value)));
                });
                let taken = head?.and_then(|head| {
                    reply.response.status = head.status;
                    reply.incoming.response(head, reply.method, ends)
                });
                taken.map_err(|error| format!("stream {stream}: {error}"))?;
                Frame::Headers(stream)
            }
            Event::Data { stream, data, flow_bytes, ends } => {
                self.window -= i64::from(flow_bytes);
                let Some(reply) = self.replies.get_mut(&stream).filter(|reply| reply.is_open()) else {
                    return Err(format!("stream {stream}: DATA on a closed stream").into());
                };
                reply.window -= i64::from(flow_bytes);
                if self.window < 0 || reply.window < 0 {
                    return Err(format!("stream {stream}: more data than the flow-control window allows").into());
                }
                reply.incoming.data(data.len(), ends).map_err(|error| format!("stream {stream}: {error}"))?;
                reply.response.body.extend_from_slice(data);
                if reply.response.body.len() > BODY_MAX {
                    return Err(format!("a body longer than {BODY_MAX} bytes").into());
                }
                Frame::Data(stream)
            }
            Event::Reset { stream, code } => {
                if let Some(reply) = self.replies.get_mut(&stream) {
                    reply.end = Some(code);
                }
                Frame::Reset(stream, code)
            }
            Event::GoAway { last, code, .. } => Frame::GoAway(last, code),
            Event::WindowUpdate { stream, bytes } => {
                match self.replies.get_mut(&stream) {
                    _ if stream == 0 => self.credit.add(bytes.into())?,
                    Some(reply) => reply.credit.add(bytes.into())?,
                    None => {}
                }
                Frame::Other
            }
        };
        Ok((used, Some(frame)))
    }
}

/// Payload of every PING.
pub(super) const PING: [u8; 8] = *b"quintain";
