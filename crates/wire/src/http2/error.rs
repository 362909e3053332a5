//! Errors that end a connection.

use super::frame_head::FrameKind;
use super::hpack::HpackError;

/// An error code in an RST_STREAM or GOAWAY frame. Source: RFC 9113, section 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// The stream or the connection ends without an error.
    pub const NO_ERROR: ErrorCode = ErrorCode(0x0);
    /// A violation of the protocol without a code of its own.
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(0x1);
    /// An internal fault of the endpoint that sends the code.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(0x2);
    /// More data than the window allows, or a window that is too large.
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(0x3);
    /// A frame for a stream that has ended.
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(0x5);
    /// A frame of an invalid size.
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(0x6);
    /// The request was not processed and can be sent again.
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(0x7);
    /// The response is no longer needed.
    pub const CANCEL: ErrorCode = ErrorCode(0x8);
    /// An invalid field block.
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(0x9);
    /// The peer causes excessive load.
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(0xb);
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: &str = "NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED \
                             FRAME_SIZE_ERROR REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM \
                             INADEQUATE_SECURITY HTTP_1_1_REQUIRED";
        match NAMES.split(' ').nth(self.0 as usize) {
            Some(name) => out.write_str(name),
            None => write!(out, "0x{:x}", self.0),
        }
    }
}

/// A violation of RFC 9113 that makes the connection unusable. The GOAWAY frame must contain [`ConnectionError::code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The client's first bytes are not [`PREFACE`](super::PREFACE). Source: RFC 9113, section 3.4.
    #[error("the connection does not start with the preface of HTTP/2")]
    BadPreface,
    /// The server's first bytes are HTTP/1. Source: RFC 9113, section 3.4.
    #[error("the server uses HTTP/1, not HTTP/2")]
    Http1,
    /// The first frame is not SETTINGS. Contains its type. Source: RFC 9113, section 3.4.
    #[error("the first frame is {0}, not SETTINGS")]
    NoSettings(FrameKind),
    /// A payload above SETTINGS_MAX_FRAME_SIZE. Source: RFC 9113, section 4.2.
    #[error("{kind} of {bytes} bytes, more than {limit}")]
    FrameTooLarge {
        /// Type of the rejected frame.
        kind: FrameKind,
        /// Size of the payload, in bytes.
        bytes: u32,
        /// Maximum size of a payload, in bytes.
        limit: u32,
    },
    /// A payload of a size that the frame's type does not allow. Source: RFC 9113, section 6.
    #[error("{kind} of {bytes} bytes, which its type does not allow")]
    FrameSize {
        /// Type of the rejected frame.
        kind: FrameKind,
        /// Size of the payload, in bytes.
        bytes: u32,
    },
    /// A connection frame on a stream other than 0, or a stream frame on stream 0. Source: RFC 9113, section 6.
    #[error("{kind} on stream {stream}, which its type does not allow")]
    BadStream {
        /// Type of the rejected frame.
        kind: FrameKind,
        /// Identifier of the stream that the frame names.
        stream: u32,
    },
    /// A frame on a stream that has not been opened. Source: RFC 9113, section 5.1.
    #[error("{kind} on stream {stream}, which is not open yet")]
    IdleStream {
        /// Type of the rejected frame.
        kind: FrameKind,
        /// Identifier of the stream that the frame names.
        stream: u32,
    },
    /// A frame on a stream that the peer has ended. Contains the stream. Source: RFC 9113, section 5.1.
    #[error("a frame on stream {0}, which is closed")]
    StreamClosed(u32),
    /// More streams were reset than the limit allows. Contains the limit. Source: RFC 9113, section 10.5.
    #[error("more than {0} streams reset")]
    TooManyResets(u32),
    /// The peer made no progress for too long. Source: RFC 9113, section 10.5.
    #[error("no progress within the time limit")]
    Stalled,
    /// Padding as long as the payload or longer. Contains the frame's type. Source: RFC 9113, sections 6.1 and 6.2.
    #[error("{0} with more padding than payload")]
    Padding(FrameKind),
    /// A frame other than CONTINUATION inside a field block. Contains its type. Source: RFC 9113, section 6.10.
    #[error("{0} inside a field block")]
    Interrupted(FrameKind),
    /// A CONTINUATION frame outside a field block. Source: RFC 9113, section 6.10.
    #[error("CONTINUATION outside a field block")]
    NoBlock,
    /// A PUSH_PROMISE: clients never send one, and clients of this codec disable push. Source: RFC 9113, section 8.4.
    #[error("PUSH_PROMISE, although push is disabled")]
    Push,
    /// A setting with a value outside its range. Source: RFC 9113, section 6.5.2.
    #[error("setting {id} with the invalid value {value}")]
    Setting {
        /// Identifier of the setting.
        id: u16,
        /// The invalid value.
        value: u32,
    },
    /// A WINDOW_UPDATE frame with a credit of 0 bytes. Contains the stream. Source: RFC 9113, section 6.9.
    #[error("WINDOW_UPDATE of 0 bytes on stream {0}")]
    NoCredit(u32),
    /// A window above 2^31 - 1 bytes. Source: RFC 9113, sections 6.5.2 and 6.9.1.
    #[error("a flow-control window above 2147483647 bytes")]
    WindowTooLarge,
    /// More data than the window allows. Source: RFC 9113, section 6.9.
    #[error("more data than the flow-control window allows")]
    WindowExceeded,
    /// An encoded field block that exceeds the limit. Contains the limit, in bytes. Source: RFC 9113, section 10.5.1.
    #[error("a field block of more than {0} bytes")]
    BlockTooLarge(usize),
    /// More CONTINUATION frames than the limit allows. Contains the limit. Source: RFC 9113, section 10.5.1.
    #[error("a field block of more than {0} CONTINUATION frames")]
    TooManyContinuations(u32),
    /// More consecutive frames without message data than the limit. Contains the limit. Source: RFC 9113, section 10.5.
    #[error("more than {0} frames in a row without a part of a message")]
    Flood(u32),
    /// A field block that cannot be decoded or exceeds a limit. Source: RFC 9113, section 4.3.
    #[error("field block: {0}")]
    Hpack(#[from] HpackError),
}

impl ConnectionError {
    /// The error code to send in the GOAWAY frame.
    pub fn code(&self) -> ErrorCode {
        match self {
            ConnectionError::FrameTooLarge { .. } | ConnectionError::FrameSize { .. } => ErrorCode::FRAME_SIZE_ERROR,
            ConnectionError::WindowTooLarge | ConnectionError::WindowExceeded => ErrorCode::FLOW_CONTROL_ERROR,
            ConnectionError::StreamClosed(_) => ErrorCode::STREAM_CLOSED,
            ConnectionError::TooManyResets(_)
            | ConnectionError::Stalled
            | ConnectionError::BlockTooLarge(_)
            | ConnectionError::TooManyContinuations(_)
            | ConnectionError::Flood(_)
            | ConnectionError::Hpack(HpackError::TooManyFields(_) | HpackError::FieldsTooLarge(_)) => {
                ErrorCode::ENHANCE_YOUR_CALM
            }
            ConnectionError::Hpack(_) => ErrorCode::COMPRESSION_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}
