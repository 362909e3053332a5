//! The client side of an HTTP/2 connection: settings, flow control, requests in flight in any order, and GOAWAY.

use net::Nanos;
use study::spec::Http2Settings;
use wire::http1::RequestMethod;
use wire::http2::hpack::HpackError;
use wire::http2::{
    self, ConnectionError, ErrorCode, Event, Incoming, Limits, PREFACE, Reader, ReceiveWindow, ResponseDecoder,
    ResponseHead, Role, STREAM_MAX, SendWindow, Settings, TableUse, read_trailers,
};

use super::{Arrival, Parsed, StreamFacts};
use crate::recorder::Fault;

/// Maximum number of bytes of the server's debug data that a message shows.
const DEBUG_MAX_BYTES: usize = 200;

/// Receives the parts of responses for a load.
pub(crate) trait Replies {
    /// Facts that the load keeps for a request in flight.
    type Request;

    fn method(&self, request: &Self::Request) -> RequestMethod;

    /// Whether [`Replies::field`] takes the fields of a head. `ends` says whether it ends the response.
    fn reads_head(&self, ends: bool) -> bool;

    fn field(&mut self, request: &mut Self::Request, name: &[u8], value: &[u8], is_trailer: bool);

    /// Takes the end of an interim head.
    fn interim(&mut self, _: &mut Self::Request) {}

    /// Takes a piece of the body. Returns whether it moved a part of the request's body to [`Open::unsent`].
    fn data(&mut self, open: &mut Open<Self::Request>, piece: &[u8], at: Nanos) -> bool;
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Open<R> {
    pub(crate) request: R,
    pub(crate) incoming: Incoming,
    pub(crate) status: u16,
    first_at: Nanos,
    /// Value of [`Connection::received`] when the request was sent.
    received_before: u64,
    pub(crate) facts: StreamFacts,
    window: SendWindow,
    receive: ReceiveWindow,
    /// Part of the request body that still waits for credit.
    pub(crate) unsent: Vec<u8>,
    /// Part of the request body that waits for the response.
    pub(crate) held: Vec<u8>,
}

impl<R> Open<R> {
    pub(crate) fn arrival(&self) -> Arrival {
        Arrival { first_at: self.first_at, body_bytes: self.incoming.body_bytes }
    }
}

/// Result of reading a connection.
pub(crate) enum Progress<R> {
    /// Something that concerns only the worker.
    Parsed(Parsed),
    /// The response to the request at this place has ended, possibly with a fault.
    Ended { used: usize, place: u32, open: Open<R>, fault: Option<(Fault, String)> },
    /// The connection cannot be used any further.
    Broken(Fault, String),
}

/// State of a connection. `R` are the facts that the load keeps for a request in flight.
#[derive(Debug)]
pub(crate) struct Connection<R> {
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
    open: Vec<Open<R>>,
    window: SendWindow,
    receive: ReceiveWindow,
    /// Number of bytes of all responses so far on this connection.
    received: u64,
    own: Http2Settings,
    pub(crate) table: TableUse,
    /// Size of the server's table as of the last block, bytes.
    table_bytes: u32,
    /// Unsent frames other than requests.
    owed: Vec<u8>,
    /// Error code to send in GOAWAY, the last frame of the connection.
    end: ErrorCode,
}

impl<R> Connection<R> {
    pub(crate) fn new(own: Http2Settings) -> Self {
        Self {
            reader: Reader::new(Role::Client, Limits::DEFAULT),
            decoder: ResponseDecoder::new(own.header_table_bytes),
            peer: None,
            last_id: None,
            next_id: 1,
            reset_id: 0,
            ids: Vec::new(),
            open: Vec::new(),
            window: SendWindow::new(Settings::DEFAULT.initial_window_size),
            receive: ReceiveWindow::new(own.connection_window_bytes),
            own,
            received: 0,
            table: TableUse::Fill,
            table_bytes: Settings::DEFAULT.header_table_size,
            owed: Vec::new(),
            end: ErrorCode::NO_ERROR,
        }
    }

    /// Appends the bytes that begin a connection.
    pub(crate) fn begin(own: &Http2Settings, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        let settings = Settings {
            enable_push: false,
            initial_window_size: own.stream_window_bytes,
            header_table_size: own.header_table_bytes,
            ..Settings::DEFAULT
        };
        http2::push_settings(out, &settings);
        let credit = own.connection_window_bytes - Http2Settings::CONNECTION_WINDOW_BYTES_MIN;
        if credit > 0 {
            http2::push_window_update(out, 0, credit);
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.peer.is_some()
    }

    /// Whether the input is between responses.
    pub(crate) fn is_between(&self) -> bool {
        self.reader.is_between() && self.open.iter().all(|open| open.first_at == 0)
    }

    /// Number of further requests that the server accepts now, if at most `depth` may be in flight.
    pub(crate) fn room(&self, depth: u32) -> u32 {
        let allowed = self.peer.map_or(0, |peer| peer.max_concurrent_streams.min(depth));
        if self.is_leaving() { 0 } else { allowed.saturating_sub(self.ids.len() as u32) }
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.last_id.is_some() || self.next_id > STREAM_MAX
    }

    pub(crate) fn server_limit(&self) -> u32 {
        self.peer.map_or(u32::MAX, |peer| peer.max_concurrent_streams)
    }

    /// Removes a request that a leaving server will not process, and returns its place; `None` if there is none.
    pub(crate) fn take_unprocessed(&mut self) -> Option<u32> {
        let last = self.last_id?;
        let place = self.ids.iter().position(|id| *id > last)?;
        self.remove(place);
        Some(place as u32)
    }

    /// Appends the frames that responses have caused.
    pub(crate) fn owed(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.owed);
    }

    /// Appends the last frames of the connection.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.owed);
        http2::push_go_away(out, 0, self.end);
    }

    /// Shrinks the table if the server's new limit is smaller. The next block must begin with the returned sizes.
    pub(crate) fn shrink_table(&mut self, shared_bytes: usize) -> Option<[usize; 2]> {
        let bytes = self.peer.map_or(self.table_bytes, |peer| peer.header_table_size);
        if bytes >= self.table_bytes {
            return None;
        }
        self.table_bytes = bytes;
        self.table = if shared_bytes <= bytes as usize { TableUse::Fill } else { TableUse::Avoid };
        Some([0, bytes as usize])
    }

    /// Appends a request: its field block, and as much of `body` as the windows allow. [`Replies::data`] releases
    /// `held`, the rest of the body. If `has_data`, the stream ends with a DATA frame even without a body.
    pub(crate) fn push(
        &mut self,
        request: R,
        block: &[u8],
        (body, held): (&[u8], &[u8]),
        has_data: bool,
        out: &mut Vec<u8>,
    ) {
        let peer = self.peer.unwrap_or(Settings::DEFAULT);
        let id = self.next_id;
        self.next_id += 2;
        self.reader.highest_stream = id;
        http2::push_headers(out, id, block, body.is_empty() && !has_data, peer.max_frame_size);
        if body.is_empty() && has_data {
            http2::push_data(out, id, &[], true);
        }
        let mut open = Open {
            request,
            incoming: Incoming::default(),
            status: 0,
            first_at: 0,
            received_before: self.received,
            facts: StreamFacts::default(),
            window: SendWindow::new(peer.initial_window_size),
            receive: ReceiveWindow::new(self.own.stream_window_bytes),
            unsent: Vec::new(),
            held: Vec::new(),
        };
        if !body.is_empty() {
            open.held.extend_from_slice(held);
            let used = push_body(out, id, body, held.is_empty(), &mut self.window, &mut open.window, &peer);
            open.unsent.extend_from_slice(&body[used..]);
            open.facts.has_stalled = used < body.len();
        }
        self.ids.push(id);
        self.open.push(open);
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.ids.iter().position(|other| *other == id)
    }

    fn remove(&mut self, place: usize) -> (u32, Open<R>) {
        (self.ids.swap_remove(place), self.open.swap_remove(place))
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

    /// Ends the request at `place`. Resets its stream unless both sides have ended it.
    fn ended(&mut self, place: usize, used: usize, result: Result<(), http2::FieldError>) -> Progress<R> {
        let (id, open) = self.remove(place);
        if !open.unsent.is_empty() || !open.held.is_empty() || !open.incoming.is_complete() {
            let code = if result.is_ok() { ErrorCode::NO_ERROR } else { ErrorCode::PROTOCOL_ERROR };
            self.push_reset(id, code);
        }
        let fault = result.err().map(|error| (Fault::Framing, error.to_string()));
        Progress::Ended { used, place: place as u32, open, fault }
    }

    /// Fails a request whose response will not be complete.
    #[cold]
    fn fail(&mut self, place: usize, used: usize, fault: (Fault, String)) -> Progress<R> {
        let (_, mut open) = self.remove(place);
        open.status = 0;
        Progress::Ended { used, place: place as u32, open, fault: Some(fault) }
    }

    fn push_reset(&mut self, id: u32, code: ErrorCode) {
        http2::push_reset(&mut self.owed, id, code);
        self.reset_id = self.reset_id.max(id);
    }

    #[cold]
    fn broken(&mut self, error: ConnectionError) -> Progress<R> {
        self.end = error.code();
        let fault = match error {
            ConnectionError::BlockTooLarge(_)
            | ConnectionError::TooManyContinuations(_)
            | ConnectionError::Hpack(HpackError::TooManyFields(_) | HpackError::FieldsTooLarge(_)) => {
                Fault::HeadTooLarge
            }
            _ => Fault::Framing,
        };
        Progress::Broken(fault, error.to_string())
    }

    /// Reads up to the next event that concerns the load or the worker.
    pub(crate) fn read(&mut self, replies: &mut impl Replies<Request = R>, bytes: &[u8], at: Nanos) -> Progress<R> {
        self.read_events(replies, bytes, at).unwrap_or_else(|error| self.broken(error))
    }

    fn read_events(
        &mut self,
        replies: &mut impl Replies<Request = R>,
        bytes: &[u8],
        at: Nanos,
    ) -> Result<Progress<R>, ConnectionError> {
        let mut used = 0;
        loop {
            let (count, event) = self.reader.read(&bytes[used..])?;
            used += count;
            let Some(event) = event else { return Ok(Progress::Parsed(Parsed::More)) };
            match event {
                Event::Headers { stream: id, block, ends, .. } => {
                    let received = self.received;
                    self.received += block.len() as u64;
                    let Some(place) = self.ids.iter().position(|other| *other == id) else {
                        check_late(id, self.reset_id)?;
                        self.decoder.decoder(&Limits::DEFAULT)?.decode(block, &Limits::DEFAULT, |_, _| {})?;
                        continue;
                    };
                    let open = &mut self.open[place];
                    open.facts.header_bytes += block.len() as u64;
                    let request = &mut open.request;
                    let result = if open.incoming.awaits_head() {
                        if open.first_at == 0 {
                            open.first_at = at;
                            open.facts.bytes_ahead = received - open.received_before;
                        }
                        let head = if replies.reads_head(ends) {
                            let decoder = self.decoder.decoder(&Limits::DEFAULT)?;
                            ResponseHead::read(decoder, block, &Limits::DEFAULT, |name, value| {
                                replies.field(request, name, value, false);
                            })?
                        } else {
                            self.decoder.read(block, &Limits::DEFAULT)?
                        };
                        head.and_then(|head| {
                            if head.is_interim() {
                                replies.interim(request);
                            }
                            open.status = head.status;
                            open.incoming.response(head, replies.method(request), ends)
                        })
                    } else {
                        let decoder = self.decoder.decoder(&Limits::DEFAULT)?;
                        let read = read_trailers(decoder, block, &Limits::DEFAULT, |name, value| {
                            replies.field(request, name, value, true);
                        })?;
                        read.and_then(|()| open.incoming.trailers(ends))
                    };
                    if result.is_err() || open.incoming.is_complete() {
                        return Ok(self.ended(place, used, result));
                    }
                }
                Event::Data { stream: id, data, flow_bytes, ends } => {
                    self.received += u64::from(flow_bytes);
                    let credit = self.receive.receive(flow_bytes)?;
                    if credit > 0 {
                        http2::push_window_update(&mut self.owed, 0, credit);
                    }
                    let Some(place) = self.ids.iter().position(|other| *other == id) else {
                        check_late(id, self.reset_id)?;
                        continue;
                    };
                    let open = &mut self.open[place];
                    let credit = open.receive.receive(flow_bytes)?;
                    let is_due = replies.data(open, data, at);
                    let result = open.incoming.data(data.len(), ends);
                    if result.is_err() || open.incoming.is_complete() {
                        return Ok(self.ended(place, used, result));
                    }
                    if credit > 0 {
                        http2::push_window_update(&mut self.owed, id, credit);
                    }
                    if is_due {
                        self.send_bodies();
                    }
                }
                Event::Settings(settings) => {
                    self.apply(settings)?;
                    return Ok(Progress::Parsed(Parsed::Changed { used }));
                }
                Event::WindowUpdate { stream: id, bytes } => match (self.credit(id, bytes), self.place(id)) {
                    // The server made the window of the stream too large. Source: RFC 9113, section 6.9.1.
                    (Err(error), Some(place)) => {
                        self.push_reset(id, error.code());
                        return Ok(self.fail(place, used, (Fault::Framing, error.to_string())));
                    }
                    (result, _) => result?,
                },
                Event::Ping(payload) => http2::push_ping(&mut self.owed, payload, true),
                Event::Reset { stream: id, code } => {
                    let Some(place) = self.place(id) else { continue };
                    if code == ErrorCode::REFUSED_STREAM {
                        self.remove(place);
                        return Ok(Progress::Parsed(Parsed::Refused { used, place: place as u32 }));
                    }
                    let fault = (Fault::StreamReset, format!("the server reset the stream with {code}"));
                    return Ok(self.fail(place, used, fault));
                }
                Event::GoAway { last, code, debug } => {
                    if code != ErrorCode::NO_ERROR {
                        let text = String::from_utf8_lossy(&debug[..debug.len().min(DEBUG_MAX_BYTES)]);
                        let text = format!("the server ended the connection with {code}: {}", text.escape_debug());
                        return Ok(Progress::Broken(Fault::Closed, text.trim_end_matches(": ").to_owned()));
                    }
                    self.last_id = Some(last.min(self.last_id.unwrap_or(last)));
                    return Ok(Progress::Parsed(Parsed::Changed { used }));
                }
                Event::SettingsAck => {
                    self.decoder.decoder(&Limits::DEFAULT)?.allow_table(self.own.header_table_bytes);
                }
                Event::PingAck(_) => {}
            }
        }
    }
}

/// Checks a frame on stream `id`, which has no request in flight. Source: RFC 9113, section 5.1 (`closed`).
#[cold]
fn check_late(id: u32, reset_id: u32) -> Result<(), ConnectionError> {
    if id > reset_id { Err(ConnectionError::StreamClosed(id)) } else { Ok(()) }
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
