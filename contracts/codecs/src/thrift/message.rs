//! Messages as a connection carries them: where one ends, what kind it is, what it calls.

use super::cursor::{Cursor, Protocol};
use super::error::{DecodeError, Fault, Limits, Stop};
use super::schema::{Method, Schema, StructId};
use super::view::View;
use super::walk::Walk;

/// Whether a message has its length in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// 4 bytes of length, big endian, before each message.
    Framed,
    /// Nothing: where a message ends is known when its structure has been walked through. Also the body of an HTTP message.
    Unframed,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// A call, which is replied to.
    Call,
    /// What a method returned, or an exception that it declared.
    Reply,
    /// The server could not do it: an [`ApplicationException`].
    Exception,
    /// A call that is not replied to.
    Oneway,
}

impl MessageKind {
    pub(super) fn from_code(code: u8) -> Option<MessageKind> {
        [MessageKind::Call, MessageKind::Reply, MessageKind::Exception, MessageKind::Oneway]
            .get(usize::from(code).checked_sub(1)?)
            .copied()
    }

    pub(super) fn code(self) -> u8 {
        match self {
            MessageKind::Call => 1,
            MessageKind::Reply => 2,
            MessageKind::Exception => 3,
            MessageKind::Oneway => 4,
        }
    }
}

/// What stands before a message's struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'m> {
    /// The method's name, with a service before it and a colon between where several share a connection (`TMultiplexedProtocol`).
    pub name: &'m str,
    /// What it is.
    pub kind: MessageKind,
    /// Tells which reply is whose; of the caller's choice.
    pub sequence: i32,
    /// The binary protocol's form with a version; the compact protocol has but one form, which is strict.
    pub is_strict: bool,
}

impl<'m> Header<'m> {
    /// The service's name, where it is given.
    pub fn service(&self) -> Option<&'m str> {
        self.name.split_once(':').map(|parts| parts.0)
    }

    /// The method's name without the service's.
    pub fn method(&self) -> &'m str {
        self.name.split_once(':').map_or(self.name, |parts| parts.1)
    }
}

/// A complete message, its structure checked. It borrows what it was decoded from.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    /// What stands before its struct.
    pub header: Header<'m>,
    protocol: Protocol,
    body: &'m [u8],
    is_ascending: bool,
}

/// What a reply says.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'m> {
    /// The method returned; `None` where it is `void`.
    Returned(Option<View<'m>>),
    /// It threw what it had declared: the name of the field, and the exception.
    Threw(&'m str, View<'m>),
    /// The server could not do it.
    Failed(ApplicationException<'m>),
    /// Neither a result nor an exception that is known: a reply that breaks the schema.
    Missing,
}

/// What a server says that could not do what was called: `TApplicationException`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplicationException<'m> {
    /// Why, in words.
    pub message: &'m [u8],
    /// Why, as a number: 1 unknown method, 2 wrong kind of message, 5 no result, 6 internal error, 7 protocol error and so on.
    pub code: i32,
}

impl<'m> Message<'m> {
    /// Decodes `bytes`, which are one message without its frame's length.
    ///
    /// # Errors
    ///
    /// What is no message, and what is over a limit.
    pub fn decode(protocol: Protocol, bytes: &'m [u8], limits: &Limits) -> Result<Message<'m>, DecodeError> {
        if bytes.len() > limits.message_bytes {
            let fault = Fault::TooLong { bytes: bytes.len() as u64, limit: limits.message_bytes as u64 };
            return Err(DecodeError { at: 0, fault });
        }
        let (header, begin) = header(protocol, bytes, limits).map_err(|stop| stop.at_end(bytes.len()))?;
        let mut walk = Walk::new(begin);
        let end = walk.go_on(bytes, protocol, limits).map_err(|stop| stop.at_end(bytes.len()))?;
        if end < bytes.len() {
            return Err(DecodeError { at: end, fault: Fault::Trailing { bytes: bytes.len() - end } });
        }
        Ok(Message { header, protocol, body: &bytes[begin..], is_ascending: walk.is_ascending })
    }

    /// How it was encoded.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Its struct as a schema has it.
    pub fn as_struct(&self, schema: &'m Schema, id: StructId) -> View<'m> {
        View::of_struct(self.protocol, self.body, self.is_ascending, Some((schema, id)))
    }

    /// Its struct without a schema: fields are known by number alone.
    pub fn as_unknown(&self) -> View<'m> {
        View::of_struct(self.protocol, self.body, self.is_ascending, None)
    }

    /// The arguments of a call.
    pub fn arguments(&self, schema: &'m Schema, method: &Method) -> View<'m> {
        self.as_struct(schema, method.arguments)
    }

    /// What a reply says.
    pub fn outcome(&self, schema: &'m Schema, method: &Method) -> Outcome<'m> {
        if self.header.kind == MessageKind::Exception {
            let body = self.as_unknown();
            let message = body.get_id(1).and_then(|message| message.as_bytes()).unwrap_or_default();
            let code = body.get_id(2).and_then(|code| code.as_i64()).and_then(|code| i32::try_from(code).ok());
            return Outcome::Failed(ApplicationException { message, code: code.unwrap_or(0) });
        }
        let result = self.as_struct(schema, method.result);
        if let Some(success) = result.get_id(0) {
            return Outcome::Returned(Some(success));
        }
        if let Some((field, thrown)) = result.fields().find_map(|(field, view)| field.zip(Some(view))) {
            return Outcome::Threw(&field.name, thrown);
        }
        match method.returns {
            None => Outcome::Returned(None),
            Some(_) => Outcome::Missing,
        }
    }
}

/// A message's header, and where its struct begins.
fn header<'m>(protocol: Protocol, bytes: &'m [u8], limits: &Limits) -> Result<(Header<'m>, usize), Stop> {
    let mut cursor = Cursor { bytes, at: 0, protocol };
    let start = cursor;
    let kind_of = |code: u8| match MessageKind::from_code(code) {
        Some(kind) => Ok(kind),
        None => start.wrong(Fault::BadKind { code }),
    };
    let (name, kind, sequence, is_strict) = match protocol {
        Protocol::Compact => {
            if cursor.byte()? != 0x82 {
                return start.wrong(Fault::BadBegin);
            }
            let byte = cursor.byte()?;
            if byte & 0x1f != 1 {
                return start.wrong(Fault::BadVersion { version: u16::from(byte & 0x1f) });
            }
            let kind = kind_of(byte >> 5)?;
            let sequence = cursor.varint(32)? as u32 as i32;
            (cursor.string(limits.name_bytes)?, kind, sequence, true)
        }
        Protocol::Binary => {
            // A sign at the front says that there is a version.
            if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
                let word = cursor.fixed_i32()? as u32;
                if word >> 16 != 0x8001 {
                    return start.wrong(Fault::BadVersion { version: (word >> 16) as u16 & 0x7fff });
                }
                // The byte between version and kind has no meaning and is not looked at by the libraries, either.
                let kind = kind_of(word as u8)?;
                (cursor.string(limits.name_bytes)?, kind, cursor.fixed_i32()?, true)
            } else {
                let name = cursor.string(limits.name_bytes)?;
                let kind = kind_of(cursor.byte()?)?;
                (name, kind, cursor.fixed_i32()?, false)
            }
        }
    };
    match std::str::from_utf8(name) {
        Ok(name) => Ok((Header { name, kind, sequence, is_strict }, cursor.at)),
        Err(_) => start.wrong(Fault::BadName),
    }
}

/// How far a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// At least so many bytes more are needed, never 0.
    Need {
        /// How many.
        more: usize,
    },
    /// A message has come as a whole.
    Message {
        /// How many of the bytes are its own.
        used: usize,
        /// Where in them the message begins: behind its frame's length.
        begin: usize,
    },
}

/// Finds where the messages of one connection end, as its bytes come. Keeps no bytes.
#[derive(Debug, Clone)]
pub struct MessageReader {
    protocol: Protocol,
    framing: Framing,
    limits: Limits,
    /// How far an unframed message has been walked through.
    walk: Option<Box<Walk>>,
}

impl MessageReader {
    /// For a connection that has just been opened.
    pub fn new(protocol: Protocol, framing: Framing, limits: Limits) -> MessageReader {
        MessageReader { protocol, framing, limits, walk: None }
    }

    /// Looks at `bytes`, which begin with a message and are those of the call before and more, until that message has come as a whole.
    ///
    /// # Errors
    ///
    /// What is no message: where the next begins is not known. In a frame only its length is looked at; [`Message::decode`] checks the rest.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Progress, DecodeError> {
        let limit = self.limits.message_bytes;
        let over =
            |bytes: usize| DecodeError { at: 0, fault: Fault::TooLong { bytes: bytes as u64, limit: limit as u64 } };
        if self.framing == Framing::Framed {
            let Some(length) = bytes.first_chunk::<4>() else { return Ok(Progress::Need { more: 4 - bytes.len() }) };
            let length = u32::from_be_bytes(*length);
            if length > i32::MAX as u32 {
                return Err(DecodeError { at: 0, fault: Fault::Negative });
            }
            let used = (length as usize).saturating_add(4);
            return match used.checked_sub(bytes.len()) {
                _ if used > limit => Err(over(used)),
                None | Some(0) => Ok(Progress::Message { used, begin: 4 }),
                Some(more) => Ok(Progress::Need { more }),
            };
        }
        // What lies beyond the limit is not looked at, so that the error is the same however the stream is cut.
        let shown = &bytes[..bytes.len().min(limit)];
        match self.unframed(shown) {
            Ok(used) => {
                self.walk = None;
                Ok(Progress::Message { used, begin: 0 })
            }
            Err(Stop::Wrong(error)) => Err(error),
            Err(Stop::Need(more)) if shown.len().saturating_add(more) > limit => {
                Err(over(shown.len().saturating_add(more)))
            }
            Err(Stop::Need(more)) => Ok(Progress::Need { more }),
        }
    }

    fn unframed(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        if self.walk.is_none() {
            let (_, begin) = header(self.protocol, bytes, &self.limits)?;
            self.walk = Some(Box::new(Walk::new(begin)));
        }
        let walk = self.walk.as_mut().expect("it was just made");
        walk.go_on(bytes, self.protocol, &self.limits)
    }
}

/// What the first bytes of a connection say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// More are needed; never said of 6 or more.
    Need,
    /// Thrift.
    Thrift {
        /// The protocol.
        protocol: Protocol,
        /// The framing.
        framing: Framing,
        /// The binary protocol's form with a version.
        is_strict: bool,
    },
    /// No Thrift that is known: JSON, HTTP, another header.
    Unknown,
}

/// Which protocol and framing `bytes`, the first of a connection, begin. A decision never changes when more bytes come.
///
/// | first bytes | meaning |
/// |---|---|
/// | `80 01` | binary, strict |
/// | `82`, then 1 in the low five bits | compact |
/// | a length within `limits`, then one of these | the same, framed |
/// | a length within `limits`, then 0 | binary, not strict, framed: the high byte of the name's length |
/// | a length within that of a name, then a letter or `_` | binary, not strict: a name |
pub fn detect(bytes: &[u8], limits: &Limits) -> Detected {
    let strict = |bytes: &[u8]| match bytes {
        [0x80, 0x01, ..] => Some(Some(Protocol::Binary)),
        [0x82, second, ..] if second & 0x1f == 1 => Some(Some(Protocol::Compact)),
        [] | [0x80 | 0x82] => Some(None),
        _ => None,
    };
    let thrift = |protocol, framing, is_strict| Detected::Thrift { protocol, framing, is_strict };
    match strict(bytes) {
        Some(Some(protocol)) => return thrift(protocol, Framing::Unframed, true),
        Some(None) => return Detected::Need,
        None if bytes[0] & 0x80 != 0 => return Detected::Unknown,
        None => {}
    }
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Detected::Need };
    let length = u32::from_be_bytes(*length) as usize;
    match (strict(rest), rest) {
        _ if length == 0 || length.saturating_add(4) > limits.message_bytes => Detected::Unknown,
        (Some(Some(protocol)), _) => thrift(protocol, Framing::Framed, true),
        (Some(None), _) => Detected::Need,
        (None, [0, ..]) => thrift(Protocol::Binary, Framing::Framed, false),
        (None, [first, ..]) if length <= limits.name_bytes && (first.is_ascii_alphabetic() || *first == b'_') => {
            thrift(Protocol::Binary, Framing::Unframed, false)
        }
        (None, _) => Detected::Unknown,
    }
}
