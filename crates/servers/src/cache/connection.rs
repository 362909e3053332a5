//! What is kept of a connection.

use net::{Conn, Nanos};
use wire::http1::BodyReader;
use wire::resp::Version;
use wire::{memcached as text, resp as redis};

use super::{CacheProtocol, CacheShared};
use crate::timers::NEVER;

/// A connection, or the slot of one that is gone.
#[derive(Debug)]
pub(super) struct Connection {
    /// `None`: the slot is free.
    pub(super) conn: Option<Conn>,
    pub(super) protocol: ProtocolState,
    /// When what it is waiting for is too late.
    pub(super) deadline: Nanos,
    /// Read, and not taken yet: a request that is not complete, or requests behind answers that have not left.
    pub(super) input: Vec<u8>,
    /// How many more bytes of input are needed at least before it is worth reading again.
    pub(super) lacks: usize,
    /// Bytes of the request that `input` begins, as far as it says how long it is; 0 if it is short.
    pub(super) unfinished: usize,
    /// A long answer, of which the bytes from `unsent_from` on were not handed over.
    pub(super) unsent: Vec<u8>,
    pub(super) unsent_from: usize,
    /// What `input` and `unsent` hold of the memory for values in flight, see `InFlight`.
    pub(super) input_reserved: usize,
    pub(super) unsent_reserved: usize,
    /// Keys of a request that were not looked up yet.
    pub(super) rest: Option<Box<PendingMultiGet>>,
    pub(super) over: CloseState,
    /// Nothing is taken until what was sent has left.
    pub(super) blocked: bool,
    /// With `blocked`: what it waits for is memory for the next answer.
    pub(super) lacks_memory: bool,
    /// Nothing is read, as `input` is full.
    pub(super) paused: bool,
    /// The client sends no more.
    pub(super) end_received: bool,
}

/// The protocol of a connection and how far its requests are read.
#[derive(Debug)]
pub(super) enum ProtocolState {
    /// It has not said enough.
    Unknown,
    Memcached(text::RequestReader),
    Redis(Box<Redis>),
    Http(Box<Http>),
}

#[derive(Debug)]
pub(super) struct Redis {
    pub(super) reader: redis::RequestReader,
    pub(super) version: Version,
}

#[derive(Debug, Default)]
pub(super) struct Http {
    /// Bytes of a head that is not complete at which it is read again, though no end of it is in sight: one that comes byte by byte is
    /// read a few times only.
    pub(super) parse_at: usize,
    /// Bytes of it that were searched for its end.
    pub(super) seen: usize,
    /// A body, which is read over, and what its request is answered.
    pub(super) body: Option<(BodyReader, wire::cache_http::Refusal, bool)>,
}

/// How far the end of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseState {
    No,
    /// The last answer is written. With `linger` the client may be sending still.
    Answered {
        linger: bool,
    },
    /// It was sent and so was the end; what comes is thrown away until the client ends, too.
    Lingering,
    /// Closed; what is left is being sent.
    Closing,
}

/// What is left of a request for many values, whose answers do not fit at once.
#[derive(Debug)]
pub(super) struct PendingMultiGet {
    pub(super) kind: MultiGetKind,
    /// Keys, each behind its length in 4 bytes.
    pub(super) keys: Vec<u8>,
    pub(super) from: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum MultiGetKind {
    /// Of `get` and its like.
    Memcached { with_cas: bool, touch: Option<text::Expiry> },
    /// Of `MGET`.
    Redis(Version),
}

impl PendingMultiGet {
    pub(super) fn new<'a>(kind: MultiGetKind, keys: impl Iterator<Item = &'a [u8]>) -> Box<PendingMultiGet> {
        let mut rest = PendingMultiGet { kind, keys: Vec::new(), from: 0 };
        for key in keys {
            rest.keys.extend_from_slice(&(key.len() as u32).to_le_bytes());
            rest.keys.extend_from_slice(key);
        }
        Box::new(rest)
    }

    /// The next key.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        let (length, behind) = self.keys[self.from..].split_first_chunk::<4>()?;
        let key = &behind[..u32::from_le_bytes(*length) as usize];
        self.from += 4 + key.len();
        Some(key)
    }
}

impl ProtocolState {
    pub(super) fn initial(shared: &CacheShared) -> ProtocolState {
        match shared.protocol {
            CacheProtocol::Auto => ProtocolState::Unknown,
            CacheProtocol::Memcached => ProtocolState::memcached(shared),
            CacheProtocol::Redis => ProtocolState::redis(shared),
            CacheProtocol::Http => ProtocolState::http(),
        }
    }

    pub(super) fn memcached(shared: &CacheShared) -> ProtocolState {
        ProtocolState::Memcached(text::RequestReader::new(shared.text))
    }

    pub(super) fn redis(shared: &CacheShared) -> ProtocolState {
        ProtocolState::Redis(Box::new(Redis { reader: redis::RequestReader::new(shared.redis), version: Version::Two }))
    }

    pub(super) fn http() -> ProtocolState {
        ProtocolState::Http(Box::default())
    }
}

impl Connection {
    pub(super) fn new() -> Self {
        Self {
            conn: None,
            protocol: ProtocolState::Unknown,
            deadline: NEVER,
            input: Vec::new(),
            lacks: 0,
            unfinished: 0,
            unsent: Vec::new(),
            unsent_from: 0,
            input_reserved: 0,
            unsent_reserved: 0,
            rest: None,
            over: CloseState::No,
            blocked: false,
            lacks_memory: false,
            paused: false,
            end_received: false,
        }
    }

    /// Whether input can be taken.
    #[inline]
    pub(super) fn takes(&self) -> bool {
        self.over == CloseState::No && !self.blocked
    }

    /// Whether nothing that comes will be taken any more.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.over != CloseState::No
    }

    /// Keeps what was read and cannot be taken yet. A large value is given memory as it comes, never all that was announced.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let room = self.input.capacity() - self.input.len();
        if room < bytes.len() {
            let wanted = self.lacks.max(bytes.len()).min(self.input.len().max(2048).max(bytes.len()));
            self.input.reserve_exact(wanted);
        }
        self.input.extend_from_slice(bytes);
    }
}
