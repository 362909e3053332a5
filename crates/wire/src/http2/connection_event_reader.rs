//! Reads frames, which can arrive in pieces, and checks their order.

use std::ops::Range;

use super::Limits;
use super::error::{ConnectionError, ErrorCode};
use super::frame_head::{FRAME_HEAD_BYTES, FrameHead, FrameKind, PREFACE, flags};
use super::settings::Settings;

/// The role of the endpoint that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads a server's frames.
    Client,
    /// Reads the preface and a client's frames.
    Server,
}

/// A frame, or a part of one, that concerns the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The peer's settings after a SETTINGS frame, which the caller must acknowledge.
    Settings(Settings),
    /// The peer acknowledged a SETTINGS frame.
    SettingsAck,
    /// A PING, which the caller must acknowledge with the same payload.
    Ping([u8; 8]),
    /// The peer acknowledged a PING with this payload.
    PingAck([u8; 8]),
    /// A complete field block, which must be decoded even if the stream has ended.
    Headers {
        /// Identifier of the stream that carries the message.
        stream: u32,
        /// Whether the block opens the stream; always false for a client, which opens all streams itself.
        opens: bool,
        /// The encoded fields, for the decoder of the connection.
        block: &'a [u8],
        /// Whether the message ends with this block.
        ends: bool,
    },
    /// A piece of a body.
    Data {
        /// Identifier of the stream that carries the body.
        stream: u32,
        /// The piece, without padding.
        data: &'a [u8],
        /// Number of bytes, with padding, that count against the flow-control windows.
        flow_bytes: u32,
        /// Whether the message ends with this piece.
        ends: bool,
    },
    /// The peer ended a stream early.
    Reset {
        /// Identifier of the ended stream.
        stream: u32,
        /// The peer's reason for the reset.
        code: ErrorCode,
    },
    /// The peer accepts no new streams.
    GoAway {
        /// The last stream that may have been processed. Requests on higher streams can be sent again.
        last: u32,
        /// The peer's reason for closing the connection.
        code: ErrorCode,
        /// Debug data for human readers, possibly empty.
        debug: &'a [u8],
    },
    /// The peer allows more data.
    WindowUpdate {
        /// Identifier of the stream; 0 for the connection.
        stream: u32,
        /// The credit in bytes, above 0.
        bytes: u32,
    },
}

/// Reads one connection's frames, which can arrive in pieces. Buffers incomplete frames and blocks, but no bodies.
#[derive(Debug, Clone)]
pub struct Reader {
    role: Role,
    limits: Limits,
    state: State,
    partial: Vec<u8>,
    /// The received part of a field block that spans several frames.
    block: Vec<u8>,
    open_block: Option<OpenBlock>,
    /// The peer's settings so far; the default values before its first SETTINGS frame.
    pub peer_settings: Settings,
    has_settings: bool,
    /// The highest stream that the client has opened; 0 for none. A client sets it before it opens a stream.
    pub highest_stream: u32,
    idle_frames: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The preface is incomplete. Contains the number of matching bytes so far.
    Preface(usize),
    Frame,
    /// The last call returned the frame in `partial` or the block in `block`.
    Returned,
    PadLength(FrameHead),
    Data {
        head: FrameHead,
        /// Number of payload bytes left, without padding.
        left: u32,
        padding: u32,
        /// Number of bytes of the Pad Length field that still count toward `flow_bytes`: 1 or 0.
        extra: u32,
    },
    Skip(u32),
    Failed(ConnectionError),
}

#[derive(Debug, Clone, Copy)]
struct OpenBlock {
    stream: u32,
    opens: bool,
    ends: bool,
    continuations: u32,
}

/// The payload of a frame in the input, where it starts at this position, the payload in `partial`, or `block`.
#[derive(Debug, Clone, Copy)]
enum Place {
    Input(usize),
    Partial,
    Block,
}

/// An event without its bytes, and the range that they have in a place.
type Found = (Event<'static>, Place, Range<usize>);

/// Maximum size of a buffer that is kept for partial frames, in bytes.
const KEPT_BYTES: usize = 4096;

impl Reader {
    /// Creates a reader for a new connection. The reader allocates only if a frame or a field block is split.
    pub fn new(role: Role, limits: Limits) -> Reader {
        Reader {
            role,
            limits,
            state: if role == Role::Server { State::Preface(0) } else { State::Frame },
            partial: Vec::new(),
            block: Vec::new(),
            open_block: None,
            peer_settings: Settings::DEFAULT,
            has_settings: false,
            highest_stream: 0,
            idle_frames: 0,
        }
    }

    /// Reads up to the next event. Returns the number of bytes used and the event, or `None` if it is incomplete. The
    /// next call must start with the first unused byte. Events do not depend on how the stream is split, except that
    /// DATA arrives in pieces. Fails, also on all later calls, if the bytes violate RFC 9113.
    pub fn read<'a>(&'a mut self, bytes: &'a [u8]) -> Result<(usize, Option<Event<'a>>), ConnectionError> {
        let (used, found) = self.find(bytes).inspect_err(|error| self.state = State::Failed(*error))?;
        let event = found.map(|(event, place, range)| {
            let mut event: Event<'a> = event;
            let (Event::Headers { block: part, .. }
            | Event::Data { data: part, .. }
            | Event::GoAway { debug: part, .. }) = &mut event
            else {
                return event;
            };
            *part = match place {
                Place::Input(start) => &bytes[start..][range],
                Place::Partial => &self.partial[FRAME_HEAD_BYTES..][range],
                Place::Block => &self.block[range],
            };
            event
        });
        Ok((used, event))
    }

    /// Whether the stream may end here: between frames and outside a field block.
    pub fn is_between(&self) -> bool {
        match self.state {
            State::Frame => self.partial.is_empty() && self.open_block.is_none(),
            State::Returned => true,
            _ => false,
        }
    }

    fn find(&mut self, bytes: &[u8]) -> Result<(usize, Option<Found>), ConnectionError> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match &mut self.state {
                State::Failed(error) => return Err(*error),
                State::Preface(at) => {
                    let count = rest.len().min(PREFACE.len() - *at);
                    if rest[..count] != PREFACE[*at..*at + count] {
                        return Err(ConnectionError::BadPreface);
                    }
                    used += count;
                    *at += count;
                    if *at < PREFACE.len() {
                        return Ok((used, None));
                    }
                    self.state = State::Frame;
                }
                State::Returned => {
                    for buffer in [&mut self.partial, &mut self.block] {
                        buffer.clear();
                        buffer.shrink_to(KEPT_BYTES);
                    }
                    self.state = State::Frame;
                }
                State::Skip(left) => {
                    let count = rest.len().min(*left as usize);
                    used += count;
                    *left -= count as u32;
                    if *left > 0 {
                        return Ok((used, None));
                    }
                    self.state = State::Frame;
                }
                State::PadLength(head) => {
                    let Some(&padding) = rest.first() else { return Ok((used, None)) };
                    used += 1;
                    let padding = u32::from(padding);
                    let left = (head.length - 1).checked_sub(padding);
                    let left = left.ok_or(ConnectionError::Padding(FrameKind::DATA))?;
                    self.state = State::Data { head: *head, left, padding, extra: 1 };
                }
                State::Data { head, left, padding, extra } => {
                    if rest.is_empty() && *left + *padding > 0 {
                        return Ok((used, None));
                    }
                    let data = (*left).min(rest.len() as u32);
                    let skipped = (*padding).min(rest.len() as u32 - data);
                    *left -= data;
                    *padding -= skipped;
                    let flow_bytes = data + skipped + std::mem::take(extra);
                    let is_last = *left == 0 && *padding == 0;
                    let (stream, ends) = (head.stream, is_last && head.has(flags::END_STREAM));
                    if is_last {
                        self.state = State::Frame;
                    }
                    let event = Event::Data { stream, data: &[], flow_bytes, ends };
                    let found = (event, Place::Input(used), 0..data as usize);
                    return Ok((used + (data + skipped) as usize, Some(found)));
                }
                State::Frame => {
                    let whole_head = if self.partial.is_empty() { FrameHead::parse(rest) } else { None };
                    let head = whole_head.or_else(|| {
                        used += fill(&mut self.partial, rest, FRAME_HEAD_BYTES);
                        FrameHead::parse(&self.partial)
                    });
                    let Some(head) = head else { return Ok((used, None)) };
                    self.check(&head)?;
                    if self.streams(&head)? {
                        used += if whole_head.is_some() { FRAME_HEAD_BYTES } else { 0 };
                        self.partial.clear();
                        continue;
                    }
                    let end = FRAME_HEAD_BYTES + head.length as usize;
                    let found = if whole_head.is_some() && rest.len() >= end {
                        let start = used + FRAME_HEAD_BYTES;
                        used += end;
                        self.frame(&head, &bytes[start..used], Place::Input(start))?
                    } else {
                        used += fill(&mut self.partial, &bytes[used..], end);
                        if self.partial.len() < end {
                            return Ok((used, None));
                        }
                        let partial = std::mem::take(&mut self.partial);
                        let found = self.frame(&head, &partial[FRAME_HEAD_BYTES..], Place::Partial);
                        self.partial = partial;
                        found?
                    };
                    if let Some(found) = found {
                        if !matches!(found.1, Place::Input(_)) {
                            self.state = State::Returned;
                        }
                        return Ok((used, Some(found)));
                    }
                    self.partial.clear();
                }
            }
        }
    }

    /// Checks the head of a frame. The head of a split frame may be checked more than once.
    fn check(&self, head: &FrameHead) -> Result<(), ConnectionError> {
        let &FrameHead { length: bytes, kind, stream, .. } = head;
        if !self.has_settings && (kind != FrameKind::SETTINGS || head.has(flags::ACK)) {
            // These are the first bytes of "HTTP/1.1 400 Bad Request".
            let is_http1 = self.role == Role::Client && bytes == 0x48_54_54 && kind.0 == b'P' && head.flags == b'/';
            return Err(if is_http1 { ConnectionError::Http1 } else { ConnectionError::NoSettings(kind) });
        }
        if bytes > self.limits.frame_bytes {
            return Err(ConnectionError::FrameTooLarge { kind, bytes, limit: self.limits.frame_bytes });
        }
        match self.open_block {
            Some(open) if kind != FrameKind::CONTINUATION || stream != open.stream => {
                return Err(ConnectionError::Interrupted(kind));
            }
            None if kind == FrameKind::CONTINUATION => return Err(ConnectionError::NoBlock),
            _ => {}
        }
        let (is_on_stream, has_size) = match kind {
            FrameKind::DATA | FrameKind::HEADERS => {
                let extra = |flag, bytes| if head.has(flag) { bytes } else { 0 };
                let priority = if kind == FrameKind::HEADERS { extra(flags::PRIORITY, 5) } else { 0 };
                (true, bytes >= extra(flags::PADDED, 1) + priority)
            }
            FrameKind::PRIORITY => (true, bytes == 5),
            FrameKind::RST_STREAM => (true, bytes == 4),
            FrameKind::SETTINGS if head.has(flags::ACK) => (false, bytes == 0),
            FrameKind::SETTINGS => (false, bytes.is_multiple_of(6)),
            FrameKind::PUSH_PROMISE => return Err(ConnectionError::Push),
            FrameKind::PING => (false, bytes == 8),
            FrameKind::GOAWAY => (false, bytes >= 8),
            FrameKind::WINDOW_UPDATE => (stream > 0, bytes == 4),
            _ => return Ok(()),
        };
        if (stream > 0) != is_on_stream {
            return Err(ConnectionError::BadStream { kind, stream });
        }
        if !has_size {
            return Err(ConnectionError::FrameSize { kind, bytes });
        }
        // Only clients open streams, with odd numbers. PRIORITY may arrive before its stream is open.
        let may_open = kind == FrameKind::PRIORITY || (kind == FrameKind::HEADERS && self.role == Role::Server);
        let is_even = is_on_stream && stream % 2 == 0 && kind != FrameKind::PRIORITY;
        if is_even || (stream > self.highest_stream && !may_open) {
            return Err(ConnectionError::IdleStream { kind, stream });
        }
        Ok(())
    }

    /// Starts to process the payload in pieces if the frame's type allows this. Returns whether it does.
    fn streams(&mut self, head: &FrameHead) -> Result<bool, ConnectionError> {
        self.state = match head.kind {
            FrameKind::DATA if head.has(flags::PADDED) => State::PadLength(*head),
            FrameKind::DATA => State::Data { head: *head, left: head.length, padding: 0, extra: 0 },
            kind if kind.0 > FrameKind::CONTINUATION.0 || kind == FrameKind::PRIORITY => State::Skip(head.length),
            _ => return Ok(false),
        };
        if head.kind == FrameKind::DATA && (head.length > 0 || head.has(flags::END_STREAM)) {
            self.idle_frames = 0;
        } else {
            self.count_idle()?;
        }
        Ok(true)
    }

    fn count_idle(&mut self) -> Result<(), ConnectionError> {
        self.idle_frames += 1;
        if self.idle_frames > self.limits.idle_frames {
            return Err(ConnectionError::Flood(self.limits.idle_frames));
        }
        Ok(())
    }

    fn extend_block(&mut self, part: &[u8], head: &FrameHead) -> Result<Option<Found>, ConnectionError> {
        let Some(open) = &mut self.open_block else { return Err(ConnectionError::NoBlock) };
        open.continuations += u32::from(head.kind == FrameKind::CONTINUATION);
        if open.continuations > self.limits.continuations {
            return Err(ConnectionError::TooManyContinuations(self.limits.continuations));
        }
        if self.block.len() + part.len() > self.limits.block_bytes {
            return Err(ConnectionError::BlockTooLarge(self.limits.block_bytes));
        }
        self.block.extend_from_slice(part);
        if !head.has(flags::END_HEADERS) {
            return Ok(None);
        }
        let OpenBlock { stream, opens, ends, .. } = *open;
        self.open_block = None;
        Ok(Some((Event::Headers { stream, opens, block: &[], ends }, Place::Block, 0..self.block.len())))
    }

    /// Processes a complete frame.
    fn frame(&mut self, head: &FrameHead, payload: &[u8], place: Place) -> Result<Option<Found>, ConnectionError> {
        let stream = head.stream;
        let number = |at: usize| payload[at..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let event = match head.kind {
            FrameKind::HEADERS => {
                self.idle_frames = 0;
                let padding = if head.has(flags::PADDED) { usize::from(payload[0]) } else { 0 };
                let skipped = usize::from(head.has(flags::PADDED)) + if head.has(flags::PRIORITY) { 5 } else { 0 };
                let end = payload.len().checked_sub(padding).filter(|end| *end >= skipped);
                let end = end.ok_or(ConnectionError::Padding(FrameKind::HEADERS))?;
                let opens = self.role == Role::Server && stream > self.highest_stream;
                self.highest_stream = self.highest_stream.max(stream);
                let ends = head.has(flags::END_STREAM);
                if head.has(flags::END_HEADERS) && end - skipped <= self.limits.block_bytes {
                    return Ok(Some((Event::Headers { stream, opens, block: &[], ends }, place, skipped..end)));
                }
                self.open_block = Some(OpenBlock { stream, opens, ends, continuations: 0 });
                return self.extend_block(&payload[skipped..end], head);
            }
            FrameKind::CONTINUATION => return self.extend_block(payload, head),
            FrameKind::SETTINGS if head.has(flags::ACK) => Event::SettingsAck,
            FrameKind::SETTINGS => {
                self.has_settings = true;
                self.peer_settings.apply(payload)?;
                Event::Settings(self.peer_settings)
            }
            FrameKind::PING => {
                let payload = *payload.first_chunk().unwrap_or(&[0; 8]);
                if head.has(flags::ACK) { Event::PingAck(payload) } else { Event::Ping(payload) }
            }
            FrameKind::RST_STREAM => Event::Reset { stream, code: ErrorCode(number(0)) },
            FrameKind::GOAWAY => {
                let (last, code) = (number(0) & super::STREAM_MAX, ErrorCode(number(4)));
                return Ok(Some((Event::GoAway { last, code, debug: &[] }, place, 8..payload.len())));
            }
            // Only WINDOW_UPDATE is left, because frames of the types not listed above are processed in pieces.
            _ => {
                let bytes = number(0) & super::WINDOW_MAX;
                if bytes == 0 {
                    return Err(ConnectionError::NoCredit(stream));
                }
                Event::WindowUpdate { stream, bytes }
            }
        };
        if matches!(head.kind, FrameKind::SETTINGS | FrameKind::PING) {
            self.count_idle()?;
        }
        Ok(Some((event, place, 0..0)))
    }
}

/// Appends `bytes` to `buffer`, up to a total length of `size`. Returns the number of bytes used.
fn fill(buffer: &mut Vec<u8>, bytes: &[u8], size: usize) -> usize {
    let count = bytes.len().min(size.saturating_sub(buffer.len()));
    buffer.extend_from_slice(&bytes[..count]);
    count
}
