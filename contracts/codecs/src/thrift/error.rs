//! What a message may cost, and why one is refused.

/// How much of a message is read before it is refused. All are checked before anything is allocated or skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a message, with its frame's length.
    pub message_bytes: usize,
    /// Bytes of a string or binary.
    pub string_bytes: usize,
    /// Elements of one list, set or map; of a map pairs.
    pub elements: u32,
    /// Values of a whole message.
    pub values: u32,
    /// Structs and containers within one another, the arguments themselves among them; at most [`Limits::DEPTH_MAX`], whatever is said here.
    pub depth: usize,
    /// Bytes of a method's name.
    pub name_bytes: usize,
}

impl Limits {
    /// Messages of 16 MiB with 4 million values, a million elements a container, 64 deep, names of 1 KiB.
    pub const DEFAULT: Limits = Limits {
        message_bytes: 16 << 20,
        string_bytes: 16 << 20,
        elements: 1 << 20,
        values: 1 << 22,
        depth: Limits::DEPTH_MAX,
        name_bytes: 1 << 10,
    };

    /// Levels that a reader has room for; what the libraries of Apache Thrift allow, too.
    pub const DEPTH_MAX: usize = 64;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No type has this number.
    #[error("0x{code:02x} is not a type number")]
    BadType {
        /// The number.
        code: u8,
    },
    /// The message begins as none does.
    #[error("not the start of a message")]
    BadBegin,
    /// A version that is not known.
    #[error("unknown protocol version {version}")]
    BadVersion {
        /// The version.
        version: u16,
    },
    /// A kind of message that is not known.
    #[error("{code} is not a message type")]
    BadKind {
        /// The number.
        code: u8,
    },
    /// The method's name is no UTF-8.
    #[error("a method name that is not valid UTF-8")]
    BadName,
    /// A bool that is neither true nor false: readers differ in what they make of it.
    #[error("0x{byte:02x} is not a bool")]
    BadBool {
        /// The byte.
        byte: u8,
    },
    /// A number of elements or of bytes below zero.
    #[error("a negative length")]
    Negative,
    /// A number with more bytes than its type can have.
    #[error("a number too wide for its type")]
    TooWide,
    /// A string over the limit.
    #[error("{bytes} bytes, over the limit of {limit}")]
    TooLong {
        /// What was announced.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A container, or a message, with too many values.
    #[error("{count} values, over the limit of {limit}")]
    TooMany {
        /// What was announced.
        count: u64,
        /// The limit.
        limit: u64,
    },
    /// Too many values within one another.
    #[error("values nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The message ends before it is complete.
    #[error("the message ends too early")]
    Truncated,
    /// Bytes behind the message in its frame.
    #[error("{bytes} trailing bytes after the message")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}

impl Fault {
    /// Whether it may well be a message, and goes beyond a limit.
    pub fn is_limit(&self) -> bool {
        matches!(self, Fault::TooLong { .. } | Fault::TooMany { .. } | Fault::TooDeep { .. })
    }
}

/// Why bytes are no message, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct DecodeError {
    /// The byte of the message, its frame's length not counted, where that which is wrong begins.
    pub at: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// Why reading stops: more bytes are needed, at least so many, or something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Need(usize),
    Wrong(DecodeError),
}

impl Stop {
    /// For bytes that are all there are.
    pub(super) fn at_end(self, at: usize) -> DecodeError {
        match self {
            Stop::Need(_) => DecodeError { at, fault: Fault::Truncated },
            Stop::Wrong(error) => error,
        }
    }
}
