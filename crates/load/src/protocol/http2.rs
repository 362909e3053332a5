//! HTTP/2 with precomposed field blocks, streams in any order, and flow control.

use std::sync::Arc;

use net::Nanos;
use percent_encoding::percent_decode;
use stats::Rng;
use study::request_values::has_values;
use study::spec::{Expect, HttpRequest};
use wire::http2::hpack::{self, HpackError, Indexing};
use wire::http2::{
    self, ConnectionError, ErrorCode, Event, FieldError, Incoming, Limits, PREFACE, Reader, ReceiveWindow,
    ResponseDecoder, ResponseHead, Role, STREAM_MAX, SendWindow, Settings, SharedFields, TableUse, WINDOW_MAX,
    read_trailers,
};

use super::grpc_messages::Messages;
use super::http_expectation::{Body, Expectation, GrpcStatus};
use super::request_mix::{Mix, Sent};
use super::varied_requests::{Values, Varied};
use super::{Last, Parsed, Protocol, StreamFacts};
use crate::recorder::Fault;
use crate::template_escaping::Syntax;

/// Settings of the client: no push, and windows so large that they never throttle.
const OWN: Settings = Settings { enable_push: false, initial_window_size: WINDOW_MAX, ..Settings::DEFAULT };

/// Maximum overhead of one field in a block, bytes.
const FIELD_FRAME_BYTES: usize = 11;
/// Maximum number of bytes of the server's debug data that a message shows.
const DEBUG_MAX_BYTES: usize = 200;

#[derive(Clone, Debug)]
enum Part {
    Fixed(Vec<u8>),
    /// A value, by its index in [`Composed::values`].
    Value(usize),
    /// The length of the body.
    Length,
}

#[derive(Debug)]
struct Composed {
    /// Parts of the field block, by [`TableUse`]. A request without values has one part per block.
    blocks: [Vec<Part>; 3],
    values: Vec<Varied>,
    body: Vec<u8>,
    /// Body with values, which is written in place of `body`; `None` for a fixed body.
    varied_body: Option<Varied>,
    bytes_max: usize,
    name: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Http2 {
    requests: Arc<[Composed]>,
    /// Size that the shared fields need in the server's table, bytes.
    table_bytes: usize,
    mix: Mix,
    expectation: Expectation,
    block: Vec<u8>,
    body: Vec<u8>,
    value: Vec<u8>,
    last: Last,
    facts: StreamFacts,
    message_gaps_ns: Vec<Nanos>,
    /// Whether each further gRPC message waits for a message of the response.
    in_turn: bool,
}

/// A request in flight.
#[derive(Debug)]
struct Open {
    sent: Sent,
    incoming: Incoming,
    status: u16,
    grpc: Option<GrpcStatus>,
    first_at: Nanos,
    /// Value of [`Stream::received`] when the request was sent.
    received_before: u64,
    facts: StreamFacts,
    messages: Messages,
    body: Body,
    window: SendWindow,
    receive: ReceiveWindow,
    /// Part of the request body that still waits for credit.
    unsent: Vec<u8>,
    /// gRPC messages that wait for messages of the response.
    held: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Stream {
    reader: Reader,
    decoder: ResponseDecoder,
    /// Settings of the server; `None` until received.
    peer: Option<Settings>,
    /// Last stream that the server will process; `None` before a GOAWAY.
    last_id: Option<u32>,
    next_id: u32,
    /// Highest stream that this client has reset; 0 for none. The server may have sent frames before the reset arrived.
    reset_id: u32,
    /// Stream identifiers of the requests in flight, by place.
    ids: Vec<u32>,
    open: Vec<Open>,
    window: SendWindow,
    receive: ReceiveWindow,
    /// Number of bytes of all responses so far on this connection.
    received: u64,
    table: TableUse,
    /// Size of the server's table as of the last block, bytes.
    table_bytes: u32,
    /// Unsent frames other than requests.
    owed: Vec<u8>,
    /// Error code to send in GOAWAY, the last frame of the connection.
    end: ErrorCode,
}

impl Stream {
    fn place(&self, id: u32) -> Option<usize> {
        self.ids.iter().position(|other| *other == id)
    }

    fn remove(&mut self, place: usize) -> (u32, Open) {
        (self.ids.swap_remove(place), self.open.swap_remove(place))
    }

    /// Removes a request whose response has ended or is invalid. Resets its stream unless both sides have ended it.
    fn finish(&mut self, place: usize, code: ErrorCode) -> Open {
        let (id, open) = self.remove(place);
        if !open.unsent.is_empty() || !open.held.is_empty() || !open.incoming.is_complete() {
            http2::push_reset(&mut self.owed, id, code);
            self.reset_id = self.reset_id.max(id);
        }
        open
    }

    /// Shrinks the table if the server's new limit is smaller. The next block must begin with the returned sizes.
    #[inline]
    fn shrink_table(&mut self, shared_bytes: usize) -> Option<[usize; 2]> {
        let bytes = self.peer.map_or(self.table_bytes, |peer| peer.header_table_size);
        if bytes >= self.table_bytes {
            return None;
        }
        self.table_bytes = bytes;
        self.table = if shared_bytes <= bytes as usize { TableUse::Fill } else { TableUse::Avoid };
        Some([0, bytes as usize])
    }

    fn send_bodies(&mut self) {
        let Some(peer) = self.peer else { return };
        for (id, open) in self.ids.iter().zip(&mut self.open).filter(|(_, open)| !open.unsent.is_empty()) {
            let ends = open.held.is_empty();
            let sent = push_body(&mut self.owed, *id, &open.unsent, ends, &mut self.window, &mut open.window, &peer);
            open.unsent.drain(..sent);
        }
    }

    fn apply(&mut self, peer: Settings) -> Result<(), ConnectionError> {
        let before = self.peer.replace(peer).unwrap_or(Settings::DEFAULT);
        let change = i64::from(peer.initial_window_size) - i64::from(before.initial_window_size);
        self.open.iter_mut().try_for_each(|open| open.window.add(change))?;
        http2::push_settings_ack(&mut self.owed);
        self.send_bodies();
        Ok(())
    }

    /// Adds flow-control credit to a stream, or to the connection if `id` is 0.
    fn credit(&mut self, id: u32, bytes: u32) -> Result<(), ConnectionError> {
        match self.place(id) {
            _ if id == 0 => self.window.add(bytes.into())?,
            Some(place) => self.open[place].window.add(bytes.into())?,
            None => return Ok(()),
        }
        self.send_bodies();
        Ok(())
    }
}

/// Checks a frame on stream `id`, which has no request in flight. Source: RFC 9113, section 5.1 (`closed`).
#[cold]
fn check_late(id: u32, reset_id: u32) -> Result<(), ConnectionError> {
    if id > reset_id { Err(ConnectionError::StreamClosed(id)) } else { Ok(()) }
}

/// Length of the first gRPC message in `body` with its prefix, bytes; all of `body` if it is shorter.
fn message_bytes(body: &[u8]) -> usize {
    let Some([_, length @ ..]) = body.first_chunk::<{ grpc::PREFIX_BYTES }>() else { return body.len() };
    body.len().min(grpc::PREFIX_BYTES + u32::from_be_bytes(*length) as usize)
}

/// Appends as much of a body as the windows allow; its end also ends the stream if `ends`. Returns the number of body
/// bytes appended.
fn push_body(
    out: &mut Vec<u8>,
    id: u32,
    body: &[u8],
    ends: bool,
    connection: &mut SendWindow,
    stream: &mut SendWindow,
    peer: &Settings,
) -> usize {
    let mut rest = body;
    while !rest.is_empty() {
        let most = peer.max_frame_size.min(stream.available()).min(u32::try_from(rest.len()).unwrap_or(u32::MAX));
        let bytes = connection.take(most);
        if bytes == 0 {
            break;
        }
        stream.take(bytes);
        let (piece, after) = rest.split_at(bytes as usize);
        http2::push_data(out, id, piece, ends && after.is_empty());
        rest = after;
    }
    body.len() - rest.len()
}

impl Composed {
    fn new(
        shared: &SharedFields,
        fields: &[(String, String)],
        request: &HttpRequest,
        values: &mut Values<'_>,
    ) -> Result<Self, String> {
        let body = &request.body[..];
        let media_type = fields.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.as_str());
        let varied_body = Varied::compile(body, body.len(), media_type, values)?;
        let mut blocks = [const { Vec::new() }; 3];
        let mut varied = Vec::new();
        for field in fields {
            let (name, value) = field;
            let field_length;
            let (field, part) = match &varied_body {
                Some(body) if name == "content-length" => match body.body_bytes() {
                    (bytes, true) => {
                        field_length = (name.clone(), bytes.to_string());
                        (&field_length, None)
                    }
                    (_, false) => (field, Some(Part::Length)),
                },
                _ if has_values(value) => {
                    let syntax = if name == ":path" { Syntax::Url } else { Syntax::Header };
                    varied.push(Varied::of_text(value, syntax, values)?);
                    (field, Some(Part::Value(varied.len() - 1)))
                }
                _ => (field, None),
            };
            for (parts, table) in blocks.iter_mut().zip([TableUse::Fill, TableUse::Refer, TableUse::Avoid]) {
                let mut fixed = match parts.pop() {
                    Some(Part::Fixed(bytes)) => bytes,
                    last => {
                        parts.extend(last);
                        Vec::new()
                    }
                };
                match &part {
                    None => shared.push(&mut fixed, field, table),
                    Some(_) => hpack::push_literal_name(&mut fixed, name.as_bytes(), Indexing::Skip),
                }
                parts.push(Part::Fixed(fixed));
                parts.extend(part.clone());
            }
        }
        let body_bytes = varied_body.as_ref().map_or(body.len(), Varied::bytes_max);
        let field_bytes =
            fields.iter().map(|(name, value)| name.len() + value.len() + FIELD_FRAME_BYTES).sum::<usize>();
        let value_bytes = varied.iter().map(Varied::bytes_max).sum::<usize>();
        let frames = 2 + (body_bytes + field_bytes + value_bytes) / Settings::DEFAULT.max_frame_size as usize;
        let bytes_max = body_bytes + field_bytes + value_bytes + frames * http2::FRAME_HEAD_BYTES;
        Ok(Self { blocks, values: varied, body: body.to_vec(), varied_body, bytes_max, name: request.kind() })
    }

    fn trace_id(&self, number: u64) -> Option<String> {
        self.values.iter().chain(&self.varied_body).find_map(|varied| varied.trace_id(number))
    }
}

impl Http2 {
    pub(crate) fn new(
        is_encrypted: bool,
        requests: &[HttpRequest],
        expect: &Expect,
        mut values: Values<'_>,
    ) -> Result<Self, Vec<String>> {
        let scheme = if is_encrypted { "https" } else { "http" };
        let mut mistakes = Vec::new();
        let mut all = Vec::new();
        for HttpRequest { method, target, headers, body, .. } in requests {
            match http2::request_fields(scheme, method, target, headers, body) {
                Ok(fields) => all.push(fields),
                Err(error) => mistakes.push(format!("request `{method} {target}`: {error}")),
            }
        }
        let shared = SharedFields::new(&all, Settings::DEFAULT.header_table_size as usize, |value| !has_values(value));
        let mut composed = Vec::new();
        for (request, fields) in requests.iter().zip(&mut all) {
            shared.sort(fields);
            match Composed::new(&shared, fields, request, &mut values) {
                Ok(request) => composed.push(request),
                Err(error) => mistakes.push(format!("request `{}`: {error}", request.kind())),
            }
        }
        let expectation = Expectation::new(expect, requests, &mut values).map_err(|found| mistakes.extend(found));
        let mix = Mix::new(requests, values.requests_max()).map_err(|mistake| mistakes.push(mistake));
        let (Ok(expectation), Ok(mix), true) = (expectation, mix, mistakes.is_empty()) else { return Err(mistakes) };
        Ok(Self {
            requests: composed.into(),
            table_bytes: shared.table_bytes(),
            mix,
            expectation,
            block: Vec::new(),
            body: Vec::new(),
            value: Vec::new(),
            last: Last::default(),
            facts: StreamFacts::default(),
            message_gaps_ns: Vec::new(),
            in_turn: false,
        })
    }

    /// Sends gRPC messages in turn if `in_turn`.
    pub(crate) fn in_turn(self, in_turn: bool) -> Self {
        Self { in_turn, ..self }
    }

    pub(crate) fn of_worker(&self, worker: u32, workers: u32) -> Self {
        Self { mix: self.mix.of_worker(worker, workers), ..self.clone() }
    }

    pub(crate) fn request_bytes_max(&self) -> usize {
        self.requests.iter().map(|request| request.bytes_max).max().unwrap_or(0)
    }

    fn push(&mut self, stream: &mut Stream, sent: Sent, now: Nanos, out: &mut Vec<u8>) {
        out.append(&mut stream.owed);
        let peer = stream.peer.unwrap_or(Settings::DEFAULT);
        let request = &self.requests[sent.index as usize];
        let body = match &request.varied_body {
            None => &request.body,
            Some(varied) => {
                self.body.clear();
                varied.push(sent.number, now, &mut self.value, &mut self.body);
                &self.body
            }
        };
        let resized = stream.shrink_table(self.table_bytes);
        let block = match request.blocks[stream.table as usize].as_slice() {
            [Part::Fixed(block)] if resized.is_none() => block,
            parts => {
                self.block.clear();
                resized.into_iter().flatten().for_each(|bytes| hpack::push_table_size(&mut self.block, bytes));
                for part in parts {
                    self.value.clear();
                    match part {
                        Part::Fixed(bytes) => {
                            self.block.extend_from_slice(bytes);
                            continue;
                        }
                        Part::Value(nth) => {
                            request.values[*nth].push(sent.number, now, &mut Vec::new(), &mut self.value);
                        }
                        Part::Length => wire::decimal::push(&mut self.value, body.len() as u64),
                    }
                    hpack::push_text(&mut self.block, &self.value);
                }
                &self.block
            }
        };
        if stream.table == TableUse::Fill {
            stream.table = TableUse::Refer;
        }
        let id = stream.next_id;
        stream.next_id += 2;
        stream.reader.open_stream(id);
        let is_grpc = self.expectation.is_grpc();
        http2::push_headers(out, id, block, body.is_empty() && !is_grpc, peer.max_frame_size);
        if body.is_empty() && is_grpc {
            // gRPC over HTTP2: a request without messages ends with an empty DATA frame.
            http2::push_data(out, id, &[], true);
        }
        let mut open = Open {
            sent,
            incoming: Incoming::default(),
            status: 0,
            grpc: None,
            first_at: 0,
            received_before: stream.received,
            facts: StreamFacts::default(),
            messages: Messages::default(),
            body: Body::default(),
            window: SendWindow::new(peer.initial_window_size),
            receive: ReceiveWindow::new(OWN.initial_window_size),
            unsent: Vec::new(),
            held: Vec::new(),
        };
        if !body.is_empty() {
            let (body, held) = body.split_at(if self.in_turn { message_bytes(body) } else { body.len() });
            open.held.extend_from_slice(held);
            let used = push_body(out, id, body, held.is_empty(), &mut stream.window, &mut open.window, &peer);
            open.unsent.extend_from_slice(&body[used..]);
            open.facts.has_stalled = used < body.len();
        }
        stream.ids.push(id);
        stream.open.push(open);
    }

    /// Ends the request at `place`, whose response is complete or malformed.
    #[inline]
    fn answer(&mut self, stream: &mut Stream, place: usize, used: usize, result: Result<(), FieldError>) -> Parsed {
        let code = if result.is_ok() { ErrorCode::NO_ERROR } else { ErrorCode::PROTOCOL_ERROR };
        let Open { sent, incoming, status, grpc, first_at, facts, messages, mut body, .. } = stream.finish(place, code);
        let messages_are_complete = messages.is_complete();
        self.facts = StreamFacts { messages: messages.count, ..facts };
        self.message_gaps_ns = messages.gaps_ns;
        self.last = Last { first_at, bytes: incoming.body_bytes };
        let fault = match result {
            Ok(()) => {
                let asked = self.mix.asked(sent);
                let fault = self.expectation.judge_grpc(status, grpc, messages_are_complete);
                fault.or_else(|| self.expectation.judge(&mut body, asked, sent, status, incoming.body_bytes))
            }
            Err(error) => {
                self.expectation.note(Some(error.to_string()));
                Some(Fault::Framing)
            }
        };
        Parsed::AnswerAt { used, place: place as u32, fault, status }
    }

    #[cold]
    fn reset(&mut self, stream: &mut Stream, id: u32, code: ErrorCode, used: usize) -> Option<Parsed> {
        let place = stream.place(id)?;
        let (_, open) = stream.remove(place);
        let place = place as u32;
        if code == ErrorCode::REFUSED_STREAM {
            return Some(Parsed::Refused { used, place });
        }
        self.last = Last { first_at: open.first_at, bytes: open.incoming.body_bytes };
        self.expectation.note(Some(format!("the server reset the stream with {code}")));
        Some(Parsed::AnswerAt { used, place, fault: Some(Fault::StreamReset), status: 0 })
    }

    /// Fails a request whose flow-control window the server made too large. Source: RFC 9113, section 6.9.1.
    #[cold]
    fn overflow(&mut self, stream: &mut Stream, place: usize, used: usize, error: ConnectionError) -> Parsed {
        let open = stream.finish(place, error.code());
        self.last = Last { first_at: open.first_at, bytes: open.incoming.body_bytes };
        self.expectation.note(Some(error.to_string()));
        Parsed::AnswerAt { used, place: place as u32, fault: Some(Fault::Framing), status: 0 }
    }

    #[cold]
    fn broken(&mut self, stream: &mut Stream, error: ConnectionError) -> Parsed {
        stream.end = error.code();
        self.expectation.note(Some(error.to_string()));
        Parsed::Broken(match error {
            ConnectionError::BlockTooLarge(_)
            | ConnectionError::TooManyContinuations(_)
            | ConnectionError::Hpack(HpackError::TooManyFields(_) | HpackError::FieldsTooLarge(_)) => {
                Fault::HeadTooLarge
            }
            _ => Fault::Framing,
        })
    }

    /// Reads `bytes[used..]` up to the next event that concerns the worker.
    fn read_events(&mut self, stream: &mut Stream, bytes: &[u8], at: Nanos) -> Result<Parsed, ConnectionError> {
        let mut used = 0;
        loop {
            let (count, event) = stream.reader.read(&bytes[used..])?;
            used += count;
            let Some(event) = event else { return Ok(Parsed::More) };
            match event {
                Event::Headers { stream: id, block, ends, .. } => {
                    let received = stream.received;
                    stream.received += block.len() as u64;
                    let Some(place) = stream.ids.iter().position(|other| *other == id) else {
                        check_late(id, stream.reset_id)?;
                        stream.decoder.decoder(&Limits::DEFAULT)?.decode(block, &Limits::DEFAULT, |_, _| {})?;
                        continue;
                    };
                    let open = &mut stream.open[place];
                    open.facts.header_bytes += block.len() as u64;
                    let result = if open.incoming.awaits_head() {
                        if open.first_at == 0 {
                            open.first_at = at;
                            open.facts.bytes_ahead = received - open.received_before;
                        }
                        // A gRPC response without messages has its status in the head.
                        let head = if ends && self.expectation.is_grpc() {
                            let decoder = stream.decoder.decoder(&Limits::DEFAULT)?;
                            ResponseHead::read(decoder, block, &Limits::DEFAULT, |name, value| {
                                read_grpc_trailer(&mut open.grpc, name, value);
                            })?
                        } else {
                            stream.decoder.read(block, &Limits::DEFAULT)?
                        };
                        head.and_then(|head| {
                            open.status = head.status;
                            open.incoming.response(head, self.mix.asked(open.sent), ends)
                        })
                    } else {
                        let decoder = stream.decoder.decoder(&Limits::DEFAULT)?;
                        let is_grpc = self.expectation.is_grpc();
                        let read = read_trailers(decoder, block, &Limits::DEFAULT, |name, value| {
                            if is_grpc {
                                read_grpc_trailer(&mut open.grpc, name, value);
                            }
                        })?;
                        read.and_then(|()| open.incoming.trailers(ends))
                    };
                    if result.is_err() || open.incoming.is_complete() {
                        return Ok(self.answer(stream, place, used, result));
                    }
                }
                Event::Data { stream: id, data, flow_bytes, ends } => {
                    stream.received += u64::from(flow_bytes);
                    let credit = stream.receive.receive(flow_bytes)?;
                    if credit > 0 {
                        http2::push_window_update(&mut stream.owed, 0, credit);
                    }
                    let Some(place) = stream.ids.iter().position(|other| *other == id) else {
                        check_late(id, stream.reset_id)?;
                        continue;
                    };
                    let mut is_due = false;
                    let open = &mut stream.open[place];
                    self.expectation.compare(&mut open.body, self.expectation.checks_whole(open.sent), data);
                    if self.expectation.is_grpc() {
                        let before = open.messages.count;
                        open.messages.take(data, at);
                        if !open.held.is_empty() {
                            for _ in before..open.messages.count {
                                let next = message_bytes(&open.held);
                                open.unsent.extend(open.held.drain(..next));
                                is_due = true;
                            }
                        }
                    }
                    let result = open.incoming.data(data.len(), ends);
                    if result.is_err() || open.incoming.is_complete() {
                        return Ok(self.answer(stream, place, used, result));
                    }
                    let credit = open.receive.receive(flow_bytes)?;
                    if credit > 0 {
                        http2::push_window_update(&mut stream.owed, id, credit);
                    }
                    if is_due {
                        stream.send_bodies();
                    }
                }
                Event::Settings(settings) => {
                    stream.apply(settings)?;
                    return Ok(Parsed::Changed { used });
                }
                Event::WindowUpdate { stream: id, bytes } => match (stream.credit(id, bytes), stream.place(id)) {
                    (Err(error), Some(place)) => return Ok(self.overflow(stream, place, used, error)),
                    (result, _) => result?,
                },
                Event::Ping(payload) => http2::push_ping(&mut stream.owed, payload, true),
                Event::Reset { stream: id, code } => {
                    if let Some(parsed) = self.reset(stream, id, code, used) {
                        return Ok(parsed);
                    }
                }
                Event::GoAway { last, code, debug } => {
                    if code != ErrorCode::NO_ERROR {
                        let text = String::from_utf8_lossy(&debug[..debug.len().min(DEBUG_MAX_BYTES)]);
                        let text = format!("the server ended the connection with {code}: {}", text.escape_debug());
                        self.expectation.note(Some(text.trim_end_matches(": ").to_owned()));
                        return Ok(Parsed::Broken(Fault::Closed));
                    }
                    stream.last_id = Some(last.min(stream.last_id.unwrap_or(last)));
                    return Ok(Parsed::Changed { used });
                }
                Event::SettingsAck | Event::PingAck(_) => {}
            }
        }
    }
}

/// Keeps the status of a gRPC call and, if the call failed, its message.
fn read_grpc_trailer(grpc: &mut Option<GrpcStatus>, name: &[u8], value: &[u8]) {
    match name {
        b"grpc-status" => {
            let status = wire::decimal::unsigned(value).and_then(|status| u32::try_from(status).ok());
            *grpc = status.map(|status| (status, None));
        }
        b"grpc-message" => {
            if let Some((status, message)) = grpc.as_mut().filter(|(status, _)| *status != 0) {
                let text = percent_decode(&value[..value.len().min(DEBUG_MAX_BYTES)]).decode_utf8_lossy();
                *message = Some(format!("{}: {}", study::grpc::status_text(*status), text.escape_debug()));
            }
        }
        _ => {}
    }
}

impl Protocol for Http2 {
    type Stream = Stream;
    type Expected = Sent;
    const UNREADABLE: Fault = Fault::Framing;
    const ORDERED: bool = false;

    fn stream(&self) -> Stream {
        Stream {
            reader: Reader::new(Role::Client, Limits::DEFAULT),
            decoder: ResponseDecoder::default(),
            peer: None,
            last_id: None,
            next_id: 1,
            reset_id: 0,
            ids: Vec::new(),
            open: Vec::new(),
            window: SendWindow::new(Settings::DEFAULT.initial_window_size),
            receive: ReceiveWindow::new(WINDOW_MAX),
            received: 0,
            table: TableUse::Fill,
            table_bytes: Settings::DEFAULT.header_table_size,
            owed: Vec::new(),
            end: ErrorCode::NO_ERROR,
        }
    }

    fn open(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        http2::push_settings(out, &OWN);
        http2::push_window_update(out, 0, WINDOW_MAX - Settings::DEFAULT.initial_window_size);
    }

    fn is_ready(&self, stream: &Stream) -> bool {
        stream.peer.is_some()
    }

    #[inline]
    fn room(&self, stream: &Stream, depth: u32) -> u32 {
        let allowed = stream.peer.map_or(0, |peer| peer.max_concurrent_streams.min(depth));
        if self.is_leaving(stream) { 0 } else { allowed.saturating_sub(stream.ids.len() as u32) }
    }

    #[inline]
    fn is_leaving(&self, stream: &Stream) -> bool {
        stream.last_id.is_some() || stream.next_id > STREAM_MAX
    }

    fn server_limit(&self, stream: &Stream) -> u32 {
        stream.peer.map_or(u32::MAX, |peer| peer.max_concurrent_streams)
    }

    #[inline]
    fn stream_facts(&self) -> Option<StreamFacts> {
        Some(self.facts)
    }

    #[inline]
    fn message_gaps_ns(&self) -> &[Nanos] {
        &self.message_gaps_ns
    }

    fn take_unprocessed(&self, stream: &mut Stream) -> Option<u32> {
        let last = stream.last_id?;
        let place = stream.ids.iter().position(|id| *id > last)?;
        stream.remove(place);
        Some(place as u32)
    }

    #[inline]
    fn owed(&self, stream: &mut Stream, out: &mut Vec<u8>) {
        out.append(&mut stream.owed);
    }

    fn close(&self, stream: &mut Stream, out: &mut Vec<u8>) {
        out.append(&mut stream.owed);
        http2::push_go_away(out, 0, stream.end);
    }

    #[inline]
    fn available(&mut self, wanted: u32) -> u32 {
        self.mix.available(wanted)
    }

    #[inline]
    fn request(&mut self, stream: &mut Stream, now: Nanos, rng: &mut Rng, out: &mut Vec<u8>) -> Sent {
        let sent = self.mix.next(rng);
        self.push(stream, sent, now, out);
        sent
    }

    #[inline]
    fn is_checked(&self, sent: Sent) -> bool {
        self.expectation.checks_whole(sent)
    }

    #[inline]
    fn last(&self) -> Option<Last> {
        Some(self.last)
    }

    fn index(&self, sent: Sent) -> u32 {
        sent.index
    }

    fn has_traces(&self) -> bool {
        self.requests.iter().any(|request| request.trace_id(0).is_some())
    }

    fn trace(&self, sent: Sent) -> Option<(String, String)> {
        let request = &self.requests[sent.index as usize];
        Some((request.trace_id(sent.number)?, request.name.clone()))
    }

    #[inline]
    fn operation(&self, sent: Sent) -> Option<u32> {
        self.mix.operation(sent)
    }

    fn again(&mut self, stream: &mut Stream, sent: Sent, now: Nanos, out: &mut Vec<u8>) -> Sent {
        self.push(stream, sent, now, out);
        sent
    }

    #[inline]
    fn read(&mut self, stream: &mut Stream, _: Sent, bytes: &[u8], at: Nanos) -> Parsed {
        match self.read_events(stream, bytes, at) {
            Ok(parsed) => parsed,
            Err(error) => self.broken(stream, error),
        }
    }

    fn end(&mut self, stream: &mut Stream, _: Sent) -> Parsed {
        self.expectation.note(None);
        let has_begun = stream.open.iter().any(|open| open.first_at > 0);
        Parsed::Broken(if stream.reader.is_between() && !has_begun { Fault::Closed } else { Fault::Truncated })
    }

    fn explain(&self) -> Option<String> {
        self.expectation.explain()
    }
}
