/// Limits for reading a message, checked before anything is allocated or skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a message with its frame's length, in bytes.
    pub message_bytes: usize,
    /// Maximum size of a string or binary, in bytes.
    pub string_bytes: usize,
    /// Maximum number of elements in a list or set, or of pairs in a map.
    pub elements: u32,
    /// Maximum number of values in a message.
    pub values: u32,
    /// Maximum nesting, including the arguments; at most [`Limits::DEPTH_MAX`].
    pub depth: usize,
    /// Maximum size of a method's name, in bytes.
    pub name_bytes: usize,
}

impl Limits {
    /// 16 MiB per message and string, 1 KiB names, 4 Mi values, 1 Mi per container, 64 levels.
    pub const DEFAULT: Limits = Limits {
        message_bytes: 16 << 20,
        string_bytes: 16 << 20,
        elements: 1 << 20,
        values: 1 << 22,
        depth: Limits::DEPTH_MAX,
        name_bytes: 1 << 10,
    };

    /// The limit that Apache Thrift's libraries also use.
    pub const DEPTH_MAX: usize = 64;
}

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An unknown type with this number.
    #[error("0x{0:02x} is not a type number")]
    BadType(u8),
    /// The first byte does not start a message.
    #[error("not the start of a message")]
    BadBegin,
    /// This version is unknown.
    #[error("unknown protocol version {0}")]
    BadVersion(u16),
    /// An unknown kind of message with this number.
    #[error("{0} is not a message type")]
    BadKind(u8),
    /// The method's name is not valid UTF-8.
    #[error("a method name that is not valid UTF-8")]
    BadName,
    /// A bool that is neither true nor false. Readers differ on its meaning.
    #[error("0x{0:02x} is not a bool")]
    BadBool(u8),
    /// A negative number of elements or bytes.
    #[error("a negative length")]
    Negative,
    /// A number with more bytes than its type can have.
    #[error("a number too wide for its type")]
    TooWide,
    /// A string or message of this size, over this limit.
    #[error("{0} bytes, over the limit of {1}")]
    TooLong(u64, u64),
    /// A container or a message with this number of values, over this limit.
    #[error("{0} values, over the limit of {1}")]
    TooMany(u64, u64),
    /// Nesting over this limit.
    #[error("values nested deeper than {0} levels")]
    TooDeep(usize),
    /// The message is incomplete.
    #[error("the message ends too early")]
    Truncated,
    /// This many bytes after the message in its frame.
    #[error("{0} trailing bytes after the message")]
    Trailing(usize),
}

impl Fault {
    /// Whether a limit was exceeded; the message may be well-formed.
    pub fn is_limit(&self) -> bool {
        matches!(self, Fault::TooLong(..) | Fault::TooMany(..) | Fault::TooDeep(_))
    }
}

/// Why bytes are not a message, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct DecodeError {
    /// Offset of the error in bytes, without the frame's length.
    pub at: usize,
    /// The reason.
    pub fault: Fault,
}

/// Why reading stops: at least this many more bytes are needed, or an error.
pub(super) enum Stop {
    Need(usize),
    Wrong(DecodeError),
}

impl Stop {
    pub(super) fn at_end(self, at: usize) -> DecodeError {
        match self {
            Stop::Need(_) => DecodeError { at, fault: Fault::Truncated },
            Stop::Wrong(error) => error,
        }
    }
}
