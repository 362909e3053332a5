//! Limits for reading a message, and reasons why reading stopped.

use crate::mistake::DecodeError;

/// Limits for reading a message, checked before anything is allocated or skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a message including the frame length, in bytes.
    pub message_bytes: usize,
    /// Maximum size of a string or binary, in bytes.
    pub string_bytes: usize,
    /// Maximum number of elements in a list or set, or of pairs in a map.
    pub elements: u32,
    /// Maximum number of values in a message.
    pub values: u32,
    /// Maximum nesting of values, counting the arguments as a level; at most [`Limits::DEPTH_MAX`].
    pub depth: usize,
    /// Maximum size of a method's name, in bytes.
    pub name_bytes: usize,
}

impl Limits {
    /// Default limits: 16 MiB per message and string, 1 KiB names, 4 Mi values, 1 Mi elements per container, 64 levels.
    pub const DEFAULT: Limits = Limits {
        message_bytes: 16 << 20,
        string_bytes: 16 << 20,
        elements: 1 << 20,
        values: 1 << 22,
        depth: Limits::DEPTH_MAX,
        name_bytes: 1 << 10,
    };

    /// Upper bound of [`Limits::depth`]. Apache Thrift's libraries have the same limit.
    pub const DEPTH_MAX: usize = 64;
}

/// The reason why reading stops: an error, or a minimum number of bytes that are still missing.
pub(super) enum Stop {
    Need(usize),
    Wrong(DecodeError),
}

impl Stop {
    pub(super) fn at_end(self, at: usize) -> DecodeError {
        match self {
            Stop::Need(_) => DecodeError::malformed(at, "the message ends too early"),
            Stop::Wrong(error) => error,
        }
    }
}
