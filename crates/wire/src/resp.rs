//! The protocol of Redis and Valkey: RESP2 and RESP3 on the server side, RESP2 without arrays on the client side.
//! Source: the Redis protocol specification and, where it is silent, the behavior of Redis 7.0.15.
//!
//! ```
//! use wire::resp::{Limits, Name, Read, RequestReader};
//!
//! let mut reader = RequestReader::new(Limits::DEFAULT);
//! let bytes = b"*2\r\n$3\r\nGET\r\n$5\r\nhello\r\nPING\r\n";
//! let Read::Request { used, request } = reader.read(bytes) else { panic!("it is complete") };
//! assert_eq!((used, request.command(), request.argument(1)), (24, Ok(Name::Get), b"hello".as_slice()));
//! ```
//!
//! # Bad requests
//!
//! | error | response | skipped |
//! |---|---|---|
//! | unknown command, wrong number of arguments | `-ERR …` | the request |
//! | an argument, or all arguments together, over the limit | `-ERR …` | the request, argument by argument |
//! | unclosed quotes in an inline request | `-ERR Protocol error: …` | the line |
//! | an invalid length, a line over its limit, too many arguments, a missing `$` | `-ERR Protocol error: …` | everything |
//!
//! An error in the last row closes the connection, as in Redis, because the start of the next request is unknown. Redis
//! also closes connections after unclosed quotes and lengths over `proto-max-bulk-len` (512 MB), its only length limit.
//!
//! # Choices that the protocol leaves open
//!
//! - **Empty requests** (`*0`, `*-1`, an empty line) are skipped without a response, as in Redis.
//! - **A null argument** (`$-1`) is an invalid length, as in Redis; `$0` is an **empty argument**.
//! - **Lines** of arrays end in CRLF; inline requests may end in LF. **Command names** ignore case.

mod command;
mod compose;
mod reply;
mod request;

pub use command::{Name, SetOptions, expires_ms, parse_set};
pub use compose::{
    Version, compose_array, compose_bulk, compose_error, compose_integer, compose_map, compose_null, compose_request,
};
pub use reply::{Reply, ReplyReader};
pub use request::{Read, Refusal, Request, RequestReader};

pub use crate::line_and_block_reader::{Event, StreamError};

/// Limits on requests and replies, checked before any allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of an argument, or of a string in a reply, in bytes.
    pub bulk_bytes: usize,
    /// Maximum total size of a request's arguments, in bytes; capped at 512 MiB.
    pub request_bytes: usize,
    /// Maximum number of arguments of a request, including the command's name; capped at 2^24.
    pub arguments: usize,
    /// Maximum size in bytes of an inline request (capped at 512 MiB), a length or an error, including its line end.
    pub line_bytes: usize,
}

impl Limits {
    /// Default limits: 1 MiB per argument, 8 MiB and 65,536 arguments per request and, as in Redis, lines of 64 KiB.
    pub const DEFAULT: Limits =
        Limits { bulk_bytes: 1 << 20, request_bytes: 8 << 20, arguments: 1 << 16, line_bytes: 64 << 10 };
}
