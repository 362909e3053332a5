//! memcached's text protocol. Source: protocol.txt of version 1.6 and, where it is silent, the behavior of 1.6.18.
//!
//! ```
//! use wire::memcached::{Command, Limits, Read, RequestReader};
//!
//! let mut reader = RequestReader::new(Limits::DEFAULT);
//! let bytes = b"set greeting 0 0 5\r\nhello\r\nget gre";
//! let Read::Command { used, command: Command::Store(store), noreply: false } = reader.read(bytes) else { panic!() };
//! assert_eq!((used, store.key, store.data), (27, b"greeting".as_slice(), b"hello".as_slice()));
//! assert_eq!(reader.read(&bytes[used..]), Read::Need { used: 0, more: 1 });
//! ```
//!
//! # Bad requests
//!
//! A bad request gets an error response. The reader skips the bytes that belong to it and parses the next request:
//!
//! | error | response | skipped |
//! |---|---|---|
//! | unknown command, too few words, an empty line | `ERROR` | the line |
//! | a key over the limit, an invalid number | `CLIENT_ERROR …` | the line and, for a storage command, the announced block |
//! | too many words in a storage command | `ERROR` | the line and the announced block |
//! | a storage command with a missing, negative or invalid length | `ERROR`, `CLIENT_ERROR …` | the line: no block was announced |
//! | a value over the limit | `SERVER_ERROR object too large for cache` | the line and the announced block |
//! | a block without CRLF at the announced end | `CLIENT_ERROR bad data chunk` | the announced block and two bytes |
//! | a line over the limit | `CLIENT_ERROR line too long` | the line; for a storage command everything, see below |
//!
//! A value over the limit invalidates the stored one: as in memcached 1.6.18, the rejection of a `set` names the key to
//! remove. Two kinds of storage command end the connection after the error response: one whose line is over the limit,
//! because the block's length is unknown, and one that announces more than [`Limits::swallow_bytes`].
//!
//! memcached 1.6.18 differs: in the second and third rows, it skips only the line and parses the block as commands. In
//! the last row, it closes the connection without a response. If over 2 GiB are announced, it skips only the line.
//!
//! # Choices that the protocol leaves open, all as in memcached
//!
//! - A line ends in LF or CRLF. Words are separated only by spaces, one or more. Command names are case-sensitive.
//! - A key can contain any bytes except space and LF, including control characters (unlike in protocol.txt).
//! - Any command that supports `noreply` can end in it, and then gets no response even if its line is invalid.
//! - Numbers are parsed as in C, with an optional sign; a length has only digits. Exptimes and flags wrap at 32 bits.

mod compose;
mod request;
mod response;

pub use compose::{compose_delete, compose_get, compose_number, compose_set, compose_value};
pub use request::{Command, Get, Keys, Read, RequestReader, Store, Verb, expires_ms};
pub use response::{Expected, Outcome, ResponseReader};

pub use crate::line_and_block_reader::{Event, StreamError};

/// Limits on requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a key, in bytes.
    pub key_bytes: usize,
    /// Maximum size of a value, in bytes.
    pub value_bytes: usize,
    /// Maximum length of a line in bytes, including its end. Also bounds a client's buffer for an incomplete line.
    pub line_bytes: usize,
    /// Maximum length of a `get`, `gets`, `gat` or `gats` line in bytes. Such a line may have many keys.
    pub get_line_bytes: usize,
    /// Maximum size in bytes of a block that is skipped to reach the next request. A larger one closes the connection.
    pub swallow_bytes: u64,
}

impl Limits {
    /// Default limits: keys of 250 B, values of 1 MiB, lines of 2 KiB (`get`: 64 KiB), and skipped blocks of 2 GiB.
    pub const DEFAULT: Limits = Limits {
        key_bytes: 250,
        value_bytes: 1 << 20,
        line_bytes: 2048,
        get_line_bytes: 64 << 10,
        swallow_bytes: 1 << 31,
    };
}
