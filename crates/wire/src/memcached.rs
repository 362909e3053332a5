//! memcached's text protocol, on both ends of a connection. Source: protocol.txt of memcached 1.6, and what 1.6.18
//! answers where that is silent.
//!
//! ```
//! use wire::memcached::{Command, Limits, Read, RequestReader};
//!
//! let mut reader = RequestReader::new(Limits::DEFAULT);
//! let bytes = b"set greeting 0 0 5\r\nhello\r\nget gre";
//! let Read::Command { used, command: Command::Store(store) } = reader.read(bytes) else { panic!("it is complete") };
//! assert_eq!((used, store.key, store.data), (27, b"greeting".as_slice(), b"hello".as_slice()));
//! assert_eq!(reader.read(&bytes[used..]), Read::Need { used: 0, more: 1 });
//! ```
//!
//! # What a bad request costs
//!
//! A bad request is answered and ends where it says it ends, so that the next one is understood:
//!
//! | what is wrong | answer | what is skipped |
//! |---|---|---|
//! | no such command, too few words, an empty line | `ERROR` | the line |
//! | a key over the limit, a number that is none | `CLIENT_ERROR …` | the line, and of a storage command the announced block |
//! | too many words in a storage command | `ERROR` | the line and the announced block |
//! | a storage command whose length is missing, negative or no number | `ERROR`, `CLIENT_ERROR …` | the line: nothing was announced |
//! | a value over the limit | `SERVER_ERROR object too large for cache` | the line and the announced block |
//! | a block that does not end in CRLF where its length says | `CLIENT_ERROR bad data chunk` | the announced block and two bytes |
//! | a line over the limit | `CLIENT_ERROR line too long` | the line; of a storage command everything, see below |
//!
//! A value over the limit outdates the one before it: the refusal of a `set` names the key whose older value is to go, as memcached
//! 1.6.18 does.
//!
//! Two have no known extent, and the connection is closed after the answer: a storage command whose line is over the limit, since its length
//! was not read, and one that announces more than [`Limits::swallow_bytes`].
//!
//! memcached 1.6.18 differs in the second and third row (it skips the line alone and takes the block for commands), in the last
//! (it closes the connection without a word), and where more than 2 GiB are announced (it skips the line alone).
//!
//! # Where the protocol leaves a choice
//!
//! - A line ends in LF, with or without CR before it. Words are separated by one or more spaces, and by nothing else; names are
//!   case-sensitive. All as memcached does.
//! - A key is any bytes but space and LF. protocol.txt forbids control characters, and memcached does not look.
//! - `noreply` is the last word of a command that knows it, also where the rest of the line is wrong. Refusals of such a line say so, and are not to
//!   be answered.
//! - Numbers are read as C reads them, but for lengths, which are digits: a sign may precede them. Of exptimes and client flags 32 bits
//!   are kept. All as memcached does.

mod compose;
mod request;
mod response;

pub use compose::{
    KeyError, compose_delete, compose_get, compose_number, compose_set, compose_value, compose_value_end,
};
pub use request::{Command, Expiry, Get, Keys, Read, Refusal, RequestReader, Store, Verb};
pub use response::{Event, Expected, Outcome, Progress, ResponseError, ResponseReader};

/// How much of a request, or of an answer, is read before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Bytes of a line with its end. Also how much a client remembers of a line that comes in pieces.
    pub line_bytes: usize,
    /// Bytes of a line of `get`, `gets`, `gat` and `gats`, which name many keys.
    pub get_line_bytes: usize,
    /// Bytes of a block that are skipped to reach the next request; the connection is closed instead where more are announced.
    pub swallow_bytes: u64,
}

impl Limits {
    /// 250 B keys and 1 MiB values, which are memcached's; 2 KiB lines, 64 KiB of keys; blocks up to 2 GiB are skipped, and memcached refuses
    /// to hear of larger ones.
    pub const DEFAULT: Limits = Limits {
        key_bytes: 250,
        value_bytes: 1 << 20,
        line_bytes: 2048,
        get_line_bytes: 64 << 10,
        swallow_bytes: 1 << 31,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
