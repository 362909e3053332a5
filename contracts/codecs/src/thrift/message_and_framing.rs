//! Messages and their headers, the end of each message in a stream, and detection of protocol and framing.

use super::check_structure::Walk;
use super::cursor::{Cursor, Limits, NEGATIVE, Protocol, Stop};
use super::schema::{Method, Schema, StructId};
use super::value_view::View;
use crate::mistake::DecodeError;

/// Whether a message's length precedes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// A length of 4 bytes, big endian, precedes each message.
    Framed,
    /// No length precedes a message, so only a walk through its structure finds the end. Also used in HTTP bodies.
    Unframed,
}

/// The kind of a message, as numbered on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// A call that expects a reply.
    Call = 1,
    /// A method's result, or an exception that it declares.
    Reply,
    /// A `TApplicationException`: the server failed.
    Exception,
    /// A call that gets no reply.
    Oneway,
}

impl MessageKind {
    fn from_code(code: u8) -> Option<MessageKind> {
        use MessageKind::{Call, Exception, Oneway, Reply};
        [Call, Reply, Exception, Oneway].into_iter().find(|kind| *kind as u8 == code)
    }
}

/// The header of a message, without its frame length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'m> {
    /// Name of the method, after `service:` if several services share a connection (`TMultiplexedProtocol`).
    pub name: &'m str,
    /// Whether this is a call, a reply, an exception or a one-way call.
    pub kind: MessageKind,
    /// Number chosen by the caller, which matches replies to calls.
    pub sequence: i32,
    /// Whether the message has a version, which is always the case in the compact protocol.
    pub is_strict: bool,
}

impl<'m> Header<'m> {
    /// Name of the method, without the service.
    pub fn method(&self) -> &'m str {
        self.name.split_once(':').map_or(self.name, |parts| parts.1)
    }
}

/// A complete message whose structure has been checked. It borrows its input.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    /// Method name, kind and sequence number.
    pub header: Header<'m>,
    /// The message's struct without a schema, so that only numbers identify its fields.
    pub body: View<'m>,
}

/// The outcome of a call, as stated by its reply.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'m> {
    /// The method returned a result; `None` if the method is `void`.
    Returned(Option<View<'m>>),
    /// The method threw an exception that it declares. The fields are the exception's name and value.
    Threw(&'m str, View<'m>),
    /// The server failed and sent a `TApplicationException`.
    Failed {
        /// A human-readable reason; empty if the exception has none.
        message: &'m [u8],
        /// Code: 1 unknown method, 2 wrong message kind, 5 no result, 6 internal error, 7 protocol error, among others.
        code: i32,
    },
    /// The reply has neither a result nor a known exception, which violates the schema.
    Missing,
}

impl<'m> Message<'m> {
    /// Decodes one message without its frame length. Fails if the message is invalid or over a limit.
    pub fn decode(protocol: Protocol, bytes: &'m [u8], limits: &Limits) -> Result<Message<'m>, DecodeError> {
        if bytes.len() > limits.message_bytes {
            return Err(too_long(bytes.len(), limits));
        }
        let (header, begin) = header(protocol, bytes, limits).map_err(|stop| stop.at_end(bytes.len()))?;
        let mut walk = Walk::new(begin);
        let end = walk.go_on(bytes, protocol, limits).map_err(|stop| stop.at_end(bytes.len()))?;
        if end < bytes.len() {
            let what = format!("{} trailing bytes after the message", bytes.len() - end);
            return Err(DecodeError::malformed(end, what));
        }
        let cursor = Cursor { bytes: &bytes[begin..], at: 0, protocol };
        Ok(Message { header, body: View::of_struct(cursor, walk.is_ascending) })
    }

    /// Returns the message's struct, to be read as the struct `id` of the schema.
    pub fn as_struct(&self, schema: &'m Schema, id: StructId) -> View<'m> {
        self.body.with_struct(schema, schema.structure(id))
    }

    /// Returns the arguments of a call of `method`.
    pub fn arguments(&self, schema: &'m Schema, method: &Method) -> View<'m> {
        self.as_struct(schema, method.arguments)
    }

    /// Returns the outcome that a reply to `method` reports.
    pub fn outcome(&self, schema: &'m Schema, method: &Method) -> Outcome<'m> {
        if self.header.kind == MessageKind::Exception {
            let body = self.body;
            let message = body.get_id(1).and_then(|message| message.as_bytes()).unwrap_or_default();
            let code = body.get_id(2).and_then(|code| code.as_i64()).and_then(|code| i32::try_from(code).ok());
            return Outcome::Failed { message, code: code.unwrap_or(0) };
        }
        let result = self.as_struct(schema, method.result);
        if let Some(success) = result.get_id(0) {
            return Outcome::Returned(Some(success));
        }
        match result.known_fields().find_map(|(field, view)| Some((field, view?))) {
            Some((field, thrown)) => Outcome::Threw(&field.name, thrown),
            None if method.returns.is_none() => Outcome::Returned(None),
            None => Outcome::Missing,
        }
    }
}

fn too_long(bytes: usize, limits: &Limits) -> DecodeError {
    DecodeError::over(0, format!("{bytes} bytes, over the limit of {}", limits.message_bytes))
}

fn header<'m>(protocol: Protocol, bytes: &'m [u8], limits: &Limits) -> Result<(Header<'m>, usize), Stop> {
    let mut cursor = Cursor { bytes, at: 0, protocol };
    let start = cursor;
    let kind_of = |code: u8| {
        MessageKind::from_code(code).map_or_else(|| start.wrong(format!("{code} is not a message type")), Ok)
    };
    let (name, kind, sequence, is_strict) = match protocol {
        Protocol::Compact => {
            if cursor.byte()? != 0x82 {
                return start.wrong("not the start of a message");
            }
            let byte = cursor.byte()?;
            if byte & 0x1f != 1 {
                return start.wrong(format!("unknown protocol version {}", byte & 0x1f));
            }
            let kind = kind_of(byte >> 5)?;
            let sequence = cursor.varint(32)? as u32 as i32;
            (cursor.string(limits.name_bytes)?, kind, sequence, true)
        }
        Protocol::Binary => {
            // If the sign bit is set, the message has a version.
            if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
                let word = cursor.fixed_i32()? as u32;
                if word >> 16 != 0x8001 {
                    return start.wrong(format!("unknown protocol version {}", word >> 16 & 0x7fff));
                }
                // Apache Thrift's libraries also ignore the byte between version and kind.
                let kind = kind_of(word as u8)?;
                (cursor.string(limits.name_bytes)?, kind, cursor.fixed_i32()?, true)
            } else {
                let name = cursor.string(limits.name_bytes)?;
                (name, kind_of(cursor.byte()?)?, cursor.fixed_i32()?, false)
            }
        }
    };
    match std::str::from_utf8(name) {
        Ok(name) => Ok((Header { name, kind, sequence, is_strict }, cursor.at)),
        Err(_) => start.wrong("a method name that is not valid UTF-8"),
    }
}

/// The progress of reading a message from a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The message is incomplete.
    Need {
        /// Minimum number of bytes still missing, never 0.
        more: usize,
    },
    /// The message is complete.
    Message {
        /// Size of the message in bytes, including the frame length.
        used: usize,
        /// Offset of the message after its frame length.
        begin: usize,
    },
}

/// Finds the end of each message of a connection as bytes arrive. Stores no bytes.
#[derive(Debug, Clone)]
pub struct MessageReader {
    protocol: Protocol,
    framing: Framing,
    limits: Limits,
    walk: Option<Box<Walk>>,
}

impl MessageReader {
    /// Creates a reader for a new connection.
    pub fn new(protocol: Protocol, framing: Framing, limits: Limits) -> MessageReader {
        MessageReader { protocol, framing, limits, walk: None }
    }

    /// Finds the end of the message at the start of `bytes`. Until it is complete, call this again with bytes
    /// appended. After a failure, the stream is unusable. Does not check the content of framed messages.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Progress, DecodeError> {
        let limit = self.limits.message_bytes;
        if self.framing == Framing::Framed {
            let Some(length) = bytes.first_chunk::<4>() else { return Ok(Progress::Need { more: 4 - bytes.len() }) };
            let length = u32::from_be_bytes(*length);
            if length > i32::MAX as u32 {
                return Err(DecodeError::malformed(0, NEGATIVE));
            }
            let used = (length as usize).saturating_add(4);
            return match used.checked_sub(bytes.len()) {
                _ if used > limit => Err(too_long(used, &self.limits)),
                None | Some(0) => Ok(Progress::Message { used, begin: 4 }),
                Some(more) => Ok(Progress::Need { more }),
            };
        }
        // Ignores bytes beyond the limit, because the error must not depend on how the stream is split.
        let shown = &bytes[..bytes.len().min(limit)];
        match self.unframed(shown) {
            Ok(used) => {
                self.walk = None;
                Ok(Progress::Message { used, begin: 0 })
            }
            Err(Stop::Wrong(error)) => Err(error),
            Err(Stop::Need(more)) if shown.len().saturating_add(more) > limit => {
                Err(too_long(shown.len().saturating_add(more), &self.limits))
            }
            Err(Stop::Need(more)) => Ok(Progress::Need { more }),
        }
    }

    fn unframed(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        let walk = match &mut self.walk {
            Some(walk) => walk,
            none => {
                let (_, begin) = header(self.protocol, bytes, &self.limits)?;
                none.insert(Box::new(Walk::new(begin)))
            }
        };
        walk.go_on(bytes, self.protocol, &self.limits)
    }
}

/// The protocol found from a connection's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// More bytes are needed. Never returned for 6 or more bytes.
    Need,
    /// A form of Thrift, with its encoding and framing.
    Thrift(Protocol, Framing),
    /// Not a known form of Thrift; for example JSON or HTTP.
    Unknown,
}

/// Detects protocol and framing from the first bytes of a connection. More bytes never change a decision.
///
/// | first bytes | meaning |
/// |---|---|
/// | `80 01` | binary, strict |
/// | `82`, then 1 in the low five bits | compact |
/// | a length within `limits`, then one of the above | the same, framed |
/// | a length within `limits`, then 0 | binary, not strict, framed: the high byte of the name's length |
/// | a length within the limit of names, then a letter or `_` | binary, not strict: a name |
pub fn detect(bytes: &[u8], limits: &Limits) -> Detected {
    let strict = |bytes: &[u8]| match bytes {
        [0x80, 0x01, ..] => Some(Some(Protocol::Binary)),
        [0x82, second, ..] if second & 0x1f == 1 => Some(Some(Protocol::Compact)),
        [] | [0x80 | 0x82] => Some(None),
        _ => None,
    };
    match strict(bytes) {
        Some(Some(protocol)) => return Detected::Thrift(protocol, Framing::Unframed),
        Some(None) => return Detected::Need,
        None if bytes[0] & 0x80 != 0 => return Detected::Unknown,
        None => {}
    }
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Detected::Need };
    let length = u32::from_be_bytes(*length) as usize;
    match (strict(rest), rest) {
        _ if length == 0 || length.saturating_add(4) > limits.message_bytes => Detected::Unknown,
        (Some(Some(protocol)), _) => Detected::Thrift(protocol, Framing::Framed),
        (Some(None), _) => Detected::Need,
        (None, [0, ..]) => Detected::Thrift(Protocol::Binary, Framing::Framed),
        (None, [first, ..]) if length <= limits.name_bytes && (first.is_ascii_alphabetic() || *first == b'_') => {
            Detected::Thrift(Protocol::Binary, Framing::Unframed)
        }
        (None, _) => Detected::Unknown,
    }
}
