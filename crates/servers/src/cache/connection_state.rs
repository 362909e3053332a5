//! The state of a cache connection, per protocol.

use wire::http1::BodyReader;
use wire::resp::Version;
use wire::{memcached as text, resp as redis};

use super::{CacheProtocol, CacheShared};
pub(super) use crate::connections::CloseState;

pub(super) type Connection = crate::connections::Connection<CacheState>;

#[derive(Default)]
pub(super) struct CacheState {
    pub(super) protocol: ProtocolState,
    /// Minimum number of additional bytes that must arrive before the input is parsed again.
    pub(super) lacks: usize,
    /// Known size in bytes of a long request at the start of the input; 0 if the request is short.
    pub(super) unfinished: usize,
    /// A long response, whose bytes from `unsent_from` on have not been sent.
    pub(super) unsent: Vec<u8>,
    pub(super) unsent_from: usize,
    pub(super) input_reserved: usize,
    pub(super) unsent_reserved: usize,
    /// Keys of a request that still need a lookup; `None` if no keys remain.
    pub(super) rest: Rest,
    /// Whether the next response waits for memory. Implies `blocked`.
    pub(super) lacks_memory: bool,
}

#[derive(Default)]
pub(super) enum ProtocolState {
    #[default]
    Unknown,
    Memcached(text::RequestReader),
    /// The reader, and the version that the client has chosen.
    Redis(Box<(redis::RequestReader, Version)>),
    Http(Box<Http>),
}

#[derive(Default)]
pub(super) struct Http {
    /// Size of the input in bytes at which an incomplete head is parsed again, to limit the number of parses.
    pub(super) parse_at: usize,
    /// Number of bytes already searched for the end of the head.
    pub(super) seen: usize,
    /// While a body is skipped: its reader, the refusal to send afterwards, and whether the connection then stays open.
    pub(super) body: Option<(BodyReader, wire::cache_http::Refusal, bool)>,
}

/// The rest of a request; `None` if the request is complete.
pub(super) type Rest = Option<Box<PendingMultiGet>>;

/// The rest of a request for many values whose responses exceed the output limit.
pub(super) struct PendingMultiGet {
    pub(super) kind: MultiGetKind,
    /// Keys, each preceded by its length in 4 bytes.
    pub(super) keys: Vec<u8>,
    pub(super) from: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum MultiGetKind {
    Memcached { with_cas: bool, touch: Option<i32> },
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

    pub(super) fn next(&mut self) -> Option<&[u8]> {
        let (length, behind) = self.keys[self.from..].split_first_chunk::<4>()?;
        let key = &behind[..u32::from_le_bytes(*length) as usize];
        self.from += 4 + key.len();
        Some(key)
    }
}

impl ProtocolState {
    pub(super) fn new(protocol: CacheProtocol, shared: &CacheShared) -> ProtocolState {
        match protocol {
            CacheProtocol::Auto => ProtocolState::Unknown,
            CacheProtocol::Memcached => ProtocolState::Memcached(text::RequestReader::new(shared.text)),
            CacheProtocol::Redis => {
                ProtocolState::Redis(Box::new((redis::RequestReader::new(shared.redis), Version::Two)))
            }
            CacheProtocol::Http => ProtocolState::Http(Box::default()),
        }
    }
}

impl Connection {
    pub(super) fn takes(&self) -> bool {
        !self.is_over() && !self.blocked
    }

    /// Buffers input without allocating an announced size at once.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let room = self.input.capacity() - self.input.len();
        if room < bytes.len() {
            let wanted = self.state.lacks.max(bytes.len()).min(self.input.len().max(2048).max(bytes.len()));
            self.input.reserve_exact(wanted);
        }
        self.input.extend_from_slice(bytes);
    }
}
