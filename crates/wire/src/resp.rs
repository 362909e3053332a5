//! The protocol of Redis and Valkey: RESP2 and RESP3 on the server's end, and replies of RESP2 without arrays on the client's. Source: the protocol
//! specification of Redis, and the behaviour of 7.0.15 if the specification is silent.
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
//! # What a bad request costs
//!
//! | what is wrong | answer | what is skipped |
//! |---|---|---|
//! | no such command, wrong number of arguments | `-ERR …` | the request |
//! | an argument, or all of them, over the limit | `-ERR …` | the request, argument by argument |
//! | quotes of an inline request that do not close | `-ERR Protocol error: …` | the line |
//! | a length that is none, a line over its limit, too many arguments, no `$` where one must be | `-ERR Protocol error: …` | everything |
//!
//! After the last the connection is closed, as Redis does, since where the next request begins is not known. Redis closes it after quotes, too,
//! and after a length over `proto-max-bulk-len` (512 MB); it has no limit of its own below that.
//!
//! # Where the protocol leaves a choice
//!
//! - **Empty requests** (`*0`, `*-1`, an empty line) are skipped without an answer, as Redis does.
//! - **A null argument** (`$-1`) is a length that is none, as Redis has it; **an empty one** (`$0`) is an argument.
//! - **Lines** of arrays end in CRLF; those of inline requests may end in LF alone.
//! - **Names** of commands are compared without regard to case.

mod command;
mod compose;
mod reply;
mod request;

pub use command::{Name, SetError, SetOptions, When, parse_set};
pub use compose::{
    Version, compose_array, compose_bulk, compose_error, compose_integer, compose_map, compose_null, compose_request,
};
pub use reply::{Event, Progress, Reply, ReplyError, ReplyReader};
pub use request::{Read, Refusal, Request, RequestReader};

/// How much of a request, or of a reply, is read before it is refused. All are checked before anything is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an argument, or of a string in a reply.
    pub bulk_bytes: usize,
    /// Bytes of all arguments of a request; at most 512 MiB, whatever is said here.
    pub request_bytes: usize,
    /// Arguments of a request with its name, at most 2^24.
    pub arguments: usize,
    /// Bytes of a line with its end: an inline request, at most 512 MiB; a length, an error.
    pub line_bytes: usize,
}

impl Limits {
    /// 1 MiB an argument, 8 MiB and 65,536 arguments a request; lines of 64 KiB, as Redis.
    pub const DEFAULT: Limits =
        Limits { bulk_bytes: 1 << 20, request_bytes: 8 << 20, arguments: 1 << 16, line_bytes: 64 << 10 };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
