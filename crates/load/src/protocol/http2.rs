//! HTTP/2 with precomposed field blocks, and gRPC.

use std::sync::Arc;

use net::Nanos;
use percent_encoding::percent_decode;
use stats::Rng;
use study::request_values::has_values;
use study::spec::{Expect, Http2Settings, HttpRequest};
use wire::http1::RequestMethod;
use wire::http2::hpack::{self, Indexing};
use wire::http2::{self, Settings, SharedFields, TableUse};

use super::grpc_messages::Messages;
use super::http_expectation::{Body, GrpcStatus, Sent};
use super::http2_connection::{Connection, Open, Progress, Replies};
use super::request_mix::Mix;
use super::varied_requests::{Values, Varied};
use super::{Answer, Parsed, Protocol, StreamFacts};
use crate::recorder::Fault;
use crate::template_escaping::Syntax;

/// Maximum overhead of one field in a block, bytes.
const FIELD_FRAME_BYTES: usize = 11;
/// Maximum length of a `grpc-message` that a message shows, bytes.
const GRPC_MESSAGE_MAX_BYTES: usize = 200;

/// A field block without the values that differ between requests.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// Each value, after its offset in `bytes`.
    inserts: Vec<(usize, Insert)>,
}

#[derive(Clone, Copy, Debug)]
enum Insert {
    /// A value, by its index in [`Composed::values`].
    Value(usize),
    /// The length of the body.
    Length,
}

#[derive(Debug)]
struct Composed {
    /// Field blocks, by [`TableUse`].
    blocks: [Block; 3],
    values: Vec<Varied>,
    body: Vec<u8>,
    /// Body with values, which is written in place of `body`; `None` for a fixed body.
    varied_body: Option<Varied>,
    bytes_max: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Http2 {
    requests: Arc<[Composed]>,
    /// Size that the shared fields need in the server's table, bytes.
    table_bytes: usize,
    mix: Mix,
    block: Vec<u8>,
    body: Vec<u8>,
    value: Vec<u8>,
    facts: StreamFacts,
    message_gaps_ns: Vec<Nanos>,
    /// Whether each further gRPC message waits for a message of the response.
    pub(crate) in_turn: bool,
    /// Settings that a connection announces.
    pub(crate) settings: Http2Settings,
}

/// Facts about a request in flight.
#[derive(Debug)]
pub(crate) struct Exchange {
    sent: Sent,
    grpc: Option<GrpcStatus>,
    messages: Messages,
    body: Body,
}

/// Length of the first gRPC message in `body` with its prefix, bytes; all of `body` if it is shorter.
fn message_bytes(body: &[u8]) -> usize {
    let Some([_, length @ ..]) = body.first_chunk::<{ grpc::PREFIX_BYTES }>() else { return body.len() };
    body.len().min(grpc::PREFIX_BYTES + u32::from_be_bytes(*length) as usize)
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
        let mut blocks = <[Block; 3]>::default();
        let mut varied = Vec::new();
        for field in fields {
            let (name, value) = field;
            let field_length;
            let (field, insert) = match &varied_body {
                Some(body) if name == "content-length" => match body.body_bytes() {
                    (bytes, true) => {
                        field_length = (name.clone(), bytes.to_string());
                        (&field_length, None)
                    }
                    (_, false) => (field, Some(Insert::Length)),
                },
                _ if has_values(value) => {
                    let syntax = if name == ":path" { Syntax::Url } else { Syntax::Header };
                    varied.push(Varied::of_text(value, syntax, values)?);
                    (field, Some(Insert::Value(varied.len() - 1)))
                }
                _ => (field, None),
            };
            for (block, table) in blocks.iter_mut().zip([TableUse::Fill, TableUse::Refer, TableUse::Avoid]) {
                if let Some(insert) = insert {
                    hpack::push_literal_name(&mut block.bytes, name.as_bytes(), Indexing::Skip);
                    block.inserts.push((block.bytes.len(), insert));
                } else {
                    shared.push(&mut block.bytes, field, table);
                }
            }
        }
        let body_bytes = varied_body.as_ref().map_or(body.len(), Varied::bytes_max);
        let field_bytes =
            fields.iter().map(|(name, value)| name.len() + value.len() + FIELD_FRAME_BYTES).sum::<usize>();
        let value_bytes = varied.iter().map(Varied::bytes_max).sum::<usize>();
        let frames = 2 + (body_bytes + field_bytes + value_bytes) / Settings::DEFAULT.max_frame_size as usize;
        let bytes_max = body_bytes + field_bytes + value_bytes + frames * http2::FRAME_HEAD_BYTES;
        Ok(Self { blocks, values: varied, body: body.to_vec(), varied_body, bytes_max })
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
        let trace = |request: &Composed| request.values.iter().chain(&request.varied_body).find_map(Varied::trace);
        let mix = Mix::new(requests, composed.iter().map(trace), expect, &mut values, mistakes)?;
        Ok(Self {
            requests: composed.into(),
            table_bytes: shared.table_bytes(),
            mix,
            block: Vec::new(),
            body: Vec::new(),
            value: Vec::new(),
            facts: StreamFacts::default(),
            message_gaps_ns: Vec::new(),
            in_turn: false,
            settings: Http2Settings::default(),
        })
    }

    pub(crate) fn of_worker(&self, worker: u32, workers: u32) -> Self {
        Self { mix: self.mix.of_worker(worker, workers), ..self.clone() }
    }

    pub(crate) fn request_bytes_max(&self) -> usize {
        self.requests.iter().map(|request| request.bytes_max).max().unwrap_or(0)
    }

    fn push(&mut self, stream: &mut Connection<Exchange>, sent: Sent, now: Nanos, out: &mut Vec<u8>) {
        stream.owed(out);
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
        let Block { bytes, inserts } = &request.blocks[stream.table as usize];
        let block = if inserts.is_empty() && resized.is_none() {
            bytes
        } else {
            self.block.clear();
            resized.into_iter().flatten().for_each(|bytes| hpack::push_table_size(&mut self.block, bytes));
            let mut start = 0;
            for &(end, insert) in inserts {
                self.block.extend_from_slice(&bytes[start..end]);
                start = end;
                self.value.clear();
                match insert {
                    Insert::Value(nth) => {
                        request.values[nth].push(sent.number, now, &mut Vec::new(), &mut self.value);
                    }
                    Insert::Length => wire::decimal::push(&mut self.value, body.len() as u64),
                }
                hpack::push_text(&mut self.block, &self.value);
            }
            self.block.extend_from_slice(&bytes[start..]);
            &self.block
        };
        if stream.table == TableUse::Fill {
            stream.table = TableUse::Refer;
        }
        let (is_grpc, in_turn) = (self.mix.expectation.is_grpc, self.in_turn);
        let body = body.split_at(if in_turn { message_bytes(body) } else { body.len() });
        let exchange = Exchange { sent, grpc: None, messages: Messages::default(), body: Body::default() };
        // gRPC over HTTP2: a request without messages ends with an empty DATA frame.
        stream.push(exchange, block, body, is_grpc, out);
    }

    fn ended(&mut self, open: Open<Exchange>, fault: Option<(Fault, String)>) -> Option<Fault> {
        let Open { incoming, status, facts, .. } = open;
        let Exchange { sent, grpc, messages, mut body } = open.request;
        let messages_are_complete = messages.is_complete();
        self.facts = StreamFacts { messages: messages.count, ..facts };
        self.message_gaps_ns = messages.gaps_ns;
        if let Some((fault, text)) = fault {
            self.mix.expectation.note(Some(text));
            return Some(fault);
        }
        let fault = self.mix.expectation.judge_grpc(status, grpc, messages_are_complete);
        let asked = self.mix.asked(sent);
        fault.or_else(|| self.mix.expectation.judge(&mut body, asked, sent, status, incoming.body_bytes))
    }
}

impl Replies for Http2 {
    type Request = Exchange;

    fn method(&self, request: &Exchange) -> RequestMethod {
        self.mix.asked(request.sent)
    }

    fn reads_head(&self, ends: bool) -> bool {
        // A gRPC response without messages has its status in the head.
        ends && self.mix.expectation.is_grpc
    }

    /// Keeps the status of a gRPC call and, if the call failed, its message.
    fn field(&mut self, Exchange { grpc, .. }: &mut Exchange, name: &[u8], value: &[u8], _: bool) {
        match name {
            _ if !self.mix.expectation.is_grpc => {}
            b"grpc-status" => {
                let status = wire::decimal::unsigned(value).and_then(|status| u32::try_from(status).ok());
                *grpc = status.map(|status| (status, None));
            }
            b"grpc-message" => {
                if let Some((status, message)) = grpc.as_mut().filter(|(status, _)| *status != 0) {
                    let text = percent_decode(&value[..value.len().min(GRPC_MESSAGE_MAX_BYTES)]).decode_utf8_lossy();
                    *message = Some(format!("{}: {}", study::grpc::status_text(*status), text.escape_debug()));
                }
            }
            _ => {}
        }
    }

    fn data(&mut self, open: &mut Open<Exchange>, piece: &[u8], at: Nanos) -> bool {
        let Exchange { sent, messages, body, .. } = &mut open.request;
        self.mix.expectation.compare(body, self.mix.expectation.checks_whole(*sent), piece);
        if !self.mix.expectation.is_grpc {
            return false;
        }
        let before = messages.count;
        messages.take(piece, at);
        let is_due = messages.count > before && !open.held.is_empty();
        if is_due {
            for _ in before..messages.count {
                let next = message_bytes(&open.held);
                open.unsent.extend(open.held.drain(..next));
            }
        }
        is_due
    }
}

impl Protocol for Http2 {
    type Stream = Connection<Exchange>;
    type Expected = Sent;
    type Exchange = Exchange;
    const ORDERED: bool = false;

    fn stream(&self) -> Self::Stream {
        Connection::new(self.settings)
    }

    fn renew(&self, stream: &mut Self::Stream, out: &mut Vec<u8>) {
        *stream = self.stream();
        Self::Stream::begin(&self.settings, out);
    }

    fn connection<'s>(&self, stream: &'s mut Self::Stream) -> Option<&'s mut Connection<Exchange>> {
        Some(stream)
    }

    fn stream_facts(&self) -> Option<(StreamFacts, &[Nanos])> {
        Some((self.facts, &self.message_gaps_ns))
    }

    fn available(&mut self, wanted: u32) -> u32 {
        self.mix.available(wanted)
    }

    fn request(&mut self, stream: &mut Connection<Exchange>, now: Nanos, rng: &mut Rng, out: &mut Vec<u8>) -> Sent {
        let sent = self.mix.next(rng);
        self.push(stream, sent, now, out);
        sent
    }

    fn mix(&self, sent: Sent) -> Option<(&Mix, Sent)> {
        Some((&self.mix, sent))
    }

    fn again(&mut self, stream: &mut Connection<Exchange>, sent: Sent, now: Nanos, out: &mut Vec<u8>) -> Sent {
        self.push(stream, sent, now, out);
        sent
    }

    fn read(&mut self, stream: &mut Self::Stream, _: Sent, bytes: &[u8], at: Nanos) -> Parsed {
        match stream.read(self, bytes, at) {
            Progress::Parsed(parsed) => parsed,
            Progress::Ended { used, place, open, fault } => {
                let (status, arrival) = (open.status, Some(open.arrival()));
                let fault = self.ended(open, fault);
                Parsed::Answer(Answer { used, place, fault, status, arrival, ..Answer::default() })
            }
            Progress::Broken(fault, text) => {
                self.mix.expectation.note(Some(text));
                Parsed::Broken(fault)
            }
        }
    }

    fn end(&mut self, stream: &mut Self::Stream, _: Sent) -> Result<Answer, Fault> {
        self.mix.expectation.note(None);
        Err(if stream.is_between() { Fault::Closed } else { Fault::Truncated })
    }

    fn explain(&self) -> Option<String> {
        self.mix.expectation.explain()
    }
}
