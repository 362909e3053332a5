//! The state of an HTTP/2 connection, which takes frames of requests and appends frames of responses.

use std::fmt::Display;

use net::Nanos;
use wire::http1::MessageError;
use wire::http2::hpack::{Decoder, FIELD_OVERHEAD_BYTES};
use wire::http2::{
    self, ConnectionError, ErrorCode, Event, FrameKind, Incoming, Reader, ReceiveWindow, Role, STREAM_MAX, SendWindow,
    Settings, read_trailers,
};

use super::super::parsed_request::Memo;
use super::super::prebuilt_responses::{self, Answers, Body, DELAYED, Prebuilt, ROOT_BODY};
use super::super::route::{Route, route};
use super::super::{Core, HttpLimits, OUT_BYTES_MAX, PIECE_BYTES};
use super::stream::{FRAME_BYTES, Request, Stream};
use crate::connections::NEVER;
use crate::response_head::{Head, Length, push_head_frame};

/// Maximum number of bytes of request bodies that wait to be echoed on one connection.
const RECEIVE_BYTES: u32 = 1 << 20;
/// Number by which resets may exceed completed responses before the connection ends.
const RESETS_MAX: u32 = 1_000;

type Taken = Result<(), ConnectionError>;

pub(in super::super) struct Session {
    pub(super) reader: Reader,
    pub(super) exchanges: Exchanges,
}

/// The part of a connection that the reader's events change.
pub(super) struct Exchanges {
    decoder: Decoder,
    /// The latest request, with the number of table changes before it. It is valid only until the next change.
    memo: Memo<(Request, u64)>,
    peer: Settings,
    /// Whether the next block must resize the client's table, because its setting is below the table's initial size.
    shrinks_table: bool,
    window: SendWindow,
    receive: ReceiveWindow,
    /// Streams whose request or response is incomplete, in ascending order.
    pub(super) streams: Vec<Stream>,
    /// Streams that the server reset before their requests were complete. More of their frames may arrive.
    rejected: Vec<u32>,
    highest: u32,
    /// Number of requests so far, without refused ones.
    requests: u32,
    /// Whether the client skipped a stream identifier.
    has_gaps: bool,
    /// The last stream to process; later streams are refused.
    last: u32,
    /// Whether either side sent GOAWAY, so that the connection ends with its streams.
    pub(super) is_leaving: bool,
    /// The stream that sent the latest body frame. The next stream in order continues.
    last_sender: u32,
    resets: u32,
    /// Start of the wait for the client's credit, or time of the latest progress since; [`NEVER`] if no body waits.
    stalled_since: Nanos,
    progress_bytes: u64,
}

impl Session {
    /// Starts a connection with the server's SETTINGS.
    pub(super) fn new(core: &mut Core) -> Session {
        let settings = Settings {
            max_concurrent_streams: core.limits.streams,
            max_header_list_size: core.limits.head_bytes as u32,
            ..Settings::DEFAULT
        };
        http2::push_settings(&mut core.out, &settings);
        let first_window = Settings::DEFAULT.initial_window_size;
        http2::push_window_update(&mut core.out, 0, RECEIVE_BYTES - first_window);
        Session {
            reader: Reader::new(Role::Server, core.codec_limits),
            exchanges: Exchanges {
                decoder: Decoder::default(),
                memo: Memo { head: Vec::new(), meaning: None },
                peer: Settings::DEFAULT,
                shrinks_table: false,
                window: SendWindow::new(first_window),
                receive: ReceiveWindow::new(RECEIVE_BYTES),
                streams: Vec::new(),
                rejected: Vec::new(),
                highest: 0,
                requests: 0,
                has_gaps: false,
                last: STREAM_MAX,
                is_leaving: false,
                last_sender: 0,
                resets: 0,
                stalled_since: NEVER,
                progress_bytes: 0,
            },
        }
    }

    /// Takes frames until the input ends or many responses wait to be sent. Returns the number of bytes used.
    pub(super) fn read(&mut self, bytes: &[u8], core: &mut Core) -> Result<usize, ConnectionError> {
        let mut used = 0;
        while used < bytes.len() && core.out.len() < OUT_BYTES_MAX {
            let (count, event) = self.reader.read(&bytes[used..])?;
            used += count;
            if let Some(event) = event {
                self.exchanges.take(event, core)?;
            }
        }
        Ok(used)
    }
}

impl Exchanges {
    fn position(&self, id: u32) -> Option<usize> {
        self.streams.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    /// Whether the response of a stream is still due.
    pub(super) fn is_delayed(&self, id: u32) -> bool {
        self.position(id).is_some_and(|at| !self.streams[at].begun)
    }

    /// Sends GOAWAY with `code` and refuses further streams.
    pub(super) fn leave(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        self.is_leaving = true;
        self.last = self.highest;
        http2::push_go_away(out, self.last, code);
    }

    fn take(&mut self, event: Event<'_>, core: &mut Core) -> Taken {
        match event {
            Event::Headers { stream, opens: true, block, ends } => self.take_request(stream, block, ends, core),
            Event::Headers { stream, block, ends, .. } => self.take_trailers(stream, block, ends, core),
            Event::Data { stream, data, flow_bytes, ends } => self.take_data(stream, data, flow_bytes, ends, core),
            Event::Settings(peer) => {
                let change = i64::from(peer.initial_window_size) - i64::from(self.peer.initial_window_size);
                self.streams.iter_mut().try_for_each(|stream| stream.window.add(change))?;
                // Shrinking once is enough, because the table then stays empty.
                self.shrinks_table |=
                    peer.header_table_size < Settings::DEFAULT.header_table_size.min(self.peer.header_table_size);
                self.peer = peer;
                http2::push_settings_ack(&mut core.out);
                Ok(())
            }
            Event::Ping(payload) => {
                http2::push_ping(&mut core.out, payload, true);
                Ok(())
            }
            Event::Reset { stream, .. } => {
                if let Some(at) = self.rejected.iter().position(|rejected| *rejected == stream) {
                    self.rejected.remove(at);
                    return Ok(());
                }
                if let Some(at) = self.position(stream) {
                    let stream = self.streams.remove(at);
                    self.credit_connection(stream.body_to_echo(), &mut core.out);
                }
                self.count_reset()
            }
            Event::WindowUpdate { stream: 0, bytes } => self.window.add(bytes.into()),
            Event::WindowUpdate { stream, bytes } => match self.position(stream) {
                Some(at) if self.streams[at].window.add(bytes.into()).is_err() => {
                    self.reset(at, ErrorCode::FLOW_CONTROL_ERROR, core)
                }
                _ => Ok(()),
            },
            Event::GoAway { .. } => {
                self.is_leaving = true;
                Ok(())
            }
            Event::SettingsAck | Event::PingAck(_) => Ok(()),
        }
    }

    fn take_request(&mut self, id: u32, block: &[u8], ends: bool, core: &mut Core) -> Taken {
        self.has_gaps |= id > self.highest + 2;
        let is_refused = id > self.last || self.streams.len() >= core.limits.streams as usize;
        let request = match self.memo.meaning {
            Some((request, at)) if at == self.decoder.changes && self.memo.head == block => Some(request),
            _ => self.parse(block, core)?,
        };
        self.highest = id;
        if is_refused {
            return self.reject(id, ends, ErrorCode::REFUSED_STREAM, core);
        }
        self.requests = self.requests.saturating_add(1);
        if self.requests == core.limits.requests {
            self.leave(ErrorCode::NO_ERROR, &mut core.out);
        }
        let Some(request) = request else { return self.reject(id, ends, ErrorCode::PROTOCOL_ERROR, core) };
        let Ok(incoming) = Incoming::request(request.content_length, ends) else {
            return self.reject(id, ends, ErrorCode::PROTOCOL_ERROR, core);
        };
        let mut stream = Stream::new(id, request, incoming, self.peer.initial_window_size);
        if let Some(error) = request.error {
            return self.fail(stream, error.status(), error, core);
        }
        if ends {
            self.answer(stream, core);
            return Ok(());
        }
        if request.expect_continue {
            self.push_head(id, &Head::new(100, "", Length::Nothing), false, core);
        }
        stream.since = core.now;
        self.streams.push(stream);
        Ok(())
    }

    /// Decodes the head of a request; `None` if it is malformed.
    #[cold]
    fn parse(&mut self, block: &[u8], core: &mut Core) -> Result<Option<Request>, ConnectionError> {
        let changes = self.decoder.changes;
        let (mut fields, mut bytes) = (0, 0);
        let read = core.head.read(&mut self.decoder, block, &core.codec_limits, |name, value| {
            fields += 1;
            bytes += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
        })?;
        let (head, limits) = (&core.head, &core.limits);
        let body_bytes = head.content_length.unwrap_or(0);
        let checks = [
            (head.path().len() > limits.head_bytes, MessageError::TargetTooLong(limits.head_bytes)),
            (bytes + head.path().len() > limits.head_bytes, MessageError::HeadTooLarge(limits.head_bytes)),
            (fields > limits.headers, MessageError::TooManyHeaders(limits.headers)),
            (body_bytes > limits.body_bytes, MessageError::BodyTooLarge(limits.body_bytes)),
        ];
        let error = checks.into_iter().find(|(is_over, _)| *is_over).map(|(_, error)| error);
        if read.is_err() {
            return Ok(None);
        }
        let request = Request {
            route: route(head.method(), head.path()),
            error,
            head_only: head.method() == "HEAD",
            expect_continue: head.expect_continue,
            content_length: head.content_length,
        };
        self.memo.meaning = None;
        if self.decoder.changes == changes {
            self.memo.keep(block, (request, changes));
        }
        Ok(Some(request))
    }

    fn take_trailers(&mut self, id: u32, block: &[u8], ends: bool, core: &mut Core) -> Taken {
        let read = read_trailers(&mut self.decoder, block, &core.codec_limits, |_, _| {})?;
        let Some(at) = self.receiving(id) else { return self.ignore(id, ends, FrameKind::HEADERS) };
        if read.and_then(|()| self.streams[at].incoming.trailers(ends)).is_err() {
            return self.reset(at, ErrorCode::PROTOCOL_ERROR, core);
        }
        self.complete(at, core);
        Ok(())
    }

    fn take_data(&mut self, id: u32, data: &[u8], flow_bytes: u32, ends: bool, core: &mut Core) -> Taken {
        self.receive.count_received(flow_bytes)?;
        let Some(at) = self.receiving(id) else {
            self.credit_connection(flow_bytes, &mut core.out);
            return self.ignore(id, ends, FrameKind::DATA);
        };
        let stream = &mut self.streams[at];
        stream.receive.count_received(flow_bytes)?;
        let result = stream.incoming.data(data.len(), ends);
        let is_too_large = stream.incoming.body_bytes > core.limits.body_bytes;
        if result.is_err() || is_too_large {
            self.credit_connection(flow_bytes, &mut core.out);
            let error = MessageError::BodyTooLarge(core.limits.body_bytes);
            return match result {
                Ok(()) => self.fail_open(at, error.status(), error, core),
                Err(_) => self.reset(at, ErrorCode::PROTOCOL_ERROR, core),
            };
        }
        let mut consumed = flow_bytes;
        if stream.is_echo() && !data.is_empty() {
            if !std::mem::replace(&mut stream.begun, true) {
                let length = stream.request.content_length.map_or(Length::Chunked, Length::Known);
                self.push_head(id, &prebuilt_responses::octets(length), false, core);
            }
            let stream = &mut self.streams[at];
            let mut rest = data;
            while stream.body.left() == 0 && !rest.is_empty() {
                let count = stream.grant(rest.len() as u64, &mut self.window) as usize;
                if count == 0 {
                    break;
                }
                let (piece, after) = rest.split_at(count);
                http2::push_data(&mut core.out, id, piece, ends && after.is_empty());
                rest = after;
            }
            if !rest.is_empty() {
                consumed -= rest.len() as u32;
                stream.body.extend(rest);
            }
        }
        self.credit(at, consumed, &mut core.out);
        if self.streams[at].is_done() && !data.is_empty() {
            self.streams.remove(at);
            self.count_response();
        } else if ends {
            self.complete(at, core);
        }
        Ok(())
    }

    fn receiving(&self, id: u32) -> Option<usize> {
        self.position(id).filter(|&at| self.streams[at].is_receiving())
    }

    /// Takes a frame on a closed stream. The frame is an error unless the server had reset the stream.
    fn ignore(&mut self, id: u32, ends: bool, kind: FrameKind) -> Taken {
        match self.rejected.iter().position(|rejected| *rejected == id) {
            Some(at) if ends => _ = self.rejected.remove(at),
            Some(_) => {}
            // RFC 9113, section 5.1.1: streams open in ascending order.
            None if self.has_gaps && kind == FrameKind::HEADERS => {
                return Err(ConnectionError::IdleStream { kind, stream: id });
            }
            None => return Err(ConnectionError::StreamClosed(id)),
        }
        Ok(())
    }

    /// Answers a request whose body has ended, or ends the echo of the body.
    fn complete(&mut self, at: usize, core: &mut Core) {
        let stream = &self.streams[at];
        if !stream.begun {
            let stream = self.streams.remove(at);
            return self.answer(stream, core);
        }
        if stream.body.left() == 0 {
            http2::push_data(&mut core.out, stream.id, b"", true);
            self.streams.remove(at);
            self.count_response();
        }
    }

    fn answer(&mut self, mut stream: Stream, core: &mut Core) {
        match stream.request.route {
            Ok(Route::Root) => self.answer_prebuilt(stream, core, |answers| &answers.root),
            Ok(Route::Plaintext) => self.answer_prebuilt(stream, core, |answers| &answers.plaintext),
            Ok(Route::Json) => self.answer_prebuilt(stream, core, |answers| &answers.json),
            Ok(Route::Delay(law)) => {
                core.undrawn.push((stream.id, law));
                self.insert(stream);
            }
            route => {
                if let Ok(Route::Chunked { chunk, .. }) = route {
                    stream.frame_bytes = chunk.min(FRAME_BYTES);
                }
                self.respond(stream, prebuilt_responses::response(route, core.is_ending), core);
            }
        }
    }

    fn answer_prebuilt(&mut self, stream: Stream, core: &mut Core, choose: impl Fn(&Answers) -> &Prebuilt) {
        let prebuilt = choose(&core.answers);
        let bytes = prebuilt.body.len() as u32;
        let fits = self.window.available().min(stream.window.available()) >= bytes;
        if fits && !stream.request.head_only && !self.shrinks_table {
            self.window.take(bytes);
            self.count_response();
            return prebuilt.push_frames(&mut core.out, stream.id);
        }
        let response = (prebuilt.head(), Body::fixed(prebuilt.body));
        self.respond(stream, response, core);
    }

    /// Responds to a delayed request. Returns whether its stream is still open.
    pub(super) fn answer_delayed(&mut self, id: u32, core: &mut Core) -> bool {
        let Some(at) = self.position(id).filter(|&at| !self.streams[at].begun) else { return false };
        let stream = self.streams.remove(at);
        self.respond(stream, (DELAYED, Body::fixed(ROOT_BODY)), core);
        true
    }

    /// Sends the response of a stream that is not in `streams`, or as much of the response as the windows allow.
    fn respond(&mut self, mut stream: Stream, (head, body): (Head, Body), core: &mut Core) {
        let is_empty = stream.request.head_only || body.left() == 0;
        self.push_head(stream.id, &head, is_empty, core);
        stream.begun = true;
        if !is_empty {
            stream.body = body;
            // Sending the first frame here keeps short responses out of `streams`.
            stream.send_frame(&mut core.out, &mut self.window);
        }
        if stream.body.left() > 0 {
            return self.insert(stream);
        }
        self.count_response();
    }

    fn push_head(&mut self, id: u32, head: &Head, ends: bool, core: &mut Core) {
        let shrinks_table = std::mem::take(&mut self.shrinks_table);
        push_head_frame(&mut core.out, &core.answers.frame_stamp, id, head, ends, shrinks_table);
    }

    fn insert(&mut self, stream: Stream) {
        let at = self.streams.partition_point(|other| other.id < stream.id);
        self.streams.insert(at, stream);
    }

    /// Sends an error before the request ends and asks the client to stop sending. Source: RFC 9113, section 8.1.
    fn fail(&mut self, mut stream: Stream, status: u16, text: impl Display, core: &mut Core) -> Taken {
        let (id, is_receiving) = (stream.id, stream.is_receiving());
        stream.incoming = Incoming::request(None, true).unwrap_or_default();
        self.respond(stream, prebuilt_responses::text(status, text, ""), core);
        if !is_receiving {
            return Ok(());
        }
        let Some(at) = self.position(id) else { return self.reject(id, false, ErrorCode::NO_ERROR, core) };
        // The client's window has no room for the response, so drop the response.
        self.streams.remove(at);
        self.reject(id, false, ErrorCode::CANCEL, core)
    }

    /// Sends an error for an open stream, or resets the stream if its response has begun.
    fn fail_open(&mut self, at: usize, status: u16, text: impl Display, core: &mut Core) -> Taken {
        if self.streams[at].begun {
            return self.reset(at, ErrorCode::CANCEL, core);
        }
        let stream = self.streams.remove(at);
        self.fail(stream, status, text, core)
    }

    fn reset(&mut self, at: usize, code: ErrorCode, core: &mut Core) -> Taken {
        let stream = self.streams.remove(at);
        self.credit_connection(stream.body_to_echo(), &mut core.out);
        self.reject(stream.id, !stream.is_receiving(), code, core)
    }

    /// Sends RST_STREAM for a stream that is not in `streams`. If `has_ended`, the client sends no more frames on it.
    fn reject(&mut self, id: u32, has_ended: bool, code: ErrorCode, core: &mut Core) -> Taken {
        http2::push_reset(&mut core.out, id, code);
        if !has_ended {
            if self.rejected.len() >= core.limits.streams as usize {
                self.rejected.remove(0);
            }
            self.rejected.push(id);
        }
        self.count_reset()
    }

    fn count_reset(&mut self) -> Taken {
        self.resets += 1;
        if self.resets > RESETS_MAX { Err(ConnectionError::TooManyResets(RESETS_MAX)) } else { Ok(()) }
    }

    fn count_response(&mut self) {
        self.resets = self.resets.saturating_sub(1);
    }

    fn credit(&mut self, at: usize, bytes: u32, out: &mut Vec<u8>) {
        let stream = &mut self.streams[at];
        let credit = stream.receive.consume(bytes);
        if credit > 0 && stream.is_receiving() {
            http2::push_window_update(out, stream.id, credit);
        }
        self.credit_connection(bytes, out);
    }

    fn credit_connection(&mut self, bytes: u32, out: &mut Vec<u8>) {
        let credit = self.receive.consume(bytes);
        if credit > 0 {
            http2::push_window_update(out, 0, credit);
        }
    }

    /// Sends as much of the bodies as the windows allow, one frame per stream in turn. Returns whether more fits now.
    pub(super) fn send_bodies(&mut self, out: &mut Vec<u8>, now: Nanos) -> bool {
        if self.streams.is_empty() {
            self.stalled_since = NEVER;
            return false;
        }
        let is_full = 'rounds: loop {
            let before = self.progress_bytes;
            let start = self.streams.partition_point(|stream| stream.id <= self.last_sender);
            let count = self.streams.len();
            for at in (start..count).chain(0..start) {
                if out.len() as u64 >= PIECE_BYTES {
                    break 'rounds true;
                }
                let stream = &mut self.streams[at];
                let sent = stream.send_frame(out, &mut self.window);
                if sent > 0 {
                    self.last_sender = stream.id;
                    self.progress_bytes += u64::from(sent);
                    if stream.is_echo() {
                        self.credit(at, sent, out);
                    }
                }
            }
            if self.progress_bytes == before {
                break false;
            }
        };
        let count = self.streams.len();
        self.streams.retain(|stream| !stream.is_done());
        let done = count - self.streams.len();
        self.resets = self.resets.saturating_sub(done as u32);
        let is_waiting = self.streams.iter().any(|stream| stream.body.left() > 0);
        if !is_waiting {
            self.stalled_since = NEVER;
        } else if self.stalled_since == NEVER || self.progress_bytes >= PIECE_BYTES || done > 0 {
            (self.stalled_since, self.progress_bytes) = (now, 0);
        }
        is_full && is_waiting
    }

    pub(super) fn deadline(&self, limits: &HttpLimits) -> Nanos {
        let bodies = self.streams.iter().filter(|stream| stream.is_receiving());
        let body = bodies.map(|stream| limits.body_until(stream.since, stream.incoming.body_bytes)).min();
        self.stalled_since.saturating_add(limits.send_ns).min(body.unwrap_or(NEVER))
    }

    /// Ends streams whose requests are too slow. Fails if the client has given no credit for too long.
    pub(super) fn expire(&mut self, core: &mut Core) -> Taken {
        if self.stalled_since.saturating_add(core.limits.send_ns) <= core.now {
            return Err(ConnectionError::Stalled);
        }
        let (limits, now) = (core.limits, core.now);
        let is_slow = |stream: &Stream| {
            stream.is_receiving() && limits.body_until(stream.since, stream.incoming.body_bytes) <= now
        };
        while let Some(at) = self.streams.iter().position(is_slow) {
            self.fail_open(at, 408, limits.slow_body(), core)?;
        }
        Ok(())
    }
}
