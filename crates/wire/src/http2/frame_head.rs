//! The head of a frame. Source: RFC 9113, section 4.1.

/// The first bytes of a client's connection. Source: RFC 9113, section 3.4.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Size of a frame's head, in bytes.
pub const FRAME_HEAD_BYTES: usize = 9;

/// The highest identifier that a stream can have.
pub const STREAM_MAX: u32 = u32::MAX >> 1;

/// The type of a frame. Source: RFC 9113, section 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameKind(pub u8);

impl FrameKind {
    /// A part of a body.
    pub const DATA: FrameKind = FrameKind(0);
    /// A field block, or its first part.
    pub const HEADERS: FrameKind = FrameKind(1);
    /// The priority of a stream, which is deprecated.
    pub const PRIORITY: FrameKind = FrameKind(2);
    /// The early end of a stream.
    pub const RST_STREAM: FrameKind = FrameKind(3);
    /// Settings, or their acknowledgement.
    pub const SETTINGS: FrameKind = FrameKind(4);
    /// The announcement of a pushed response.
    pub const PUSH_PROMISE: FrameKind = FrameKind(5);
    /// A check of the connection.
    pub const PING: FrameKind = FrameKind(6);
    /// The announcement that no new streams are accepted.
    pub const GOAWAY: FrameKind = FrameKind(7);
    /// Flow-control credit for more DATA.
    pub const WINDOW_UPDATE: FrameKind = FrameKind(8);
    /// A further part of a field block.
    pub const CONTINUATION: FrameKind = FrameKind(9);
}

impl std::fmt::Display for FrameKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: &str = "DATA HEADERS PRIORITY RST_STREAM SETTINGS PUSH_PROMISE PING GOAWAY WINDOW_UPDATE \
                             CONTINUATION";
        match NAMES.split(' ').nth(usize::from(self.0)) {
            Some(name) => out.write_str(name),
            None => write!(out, "type 0x{:02x}", self.0),
        }
    }
}

/// Flags of frames. Source: RFC 9113, section 6.
pub mod flags {
    /// Marks an acknowledgement, in SETTINGS and PING.
    pub const ACK: u8 = 0x01;
    /// Marks the last frame of a message, in DATA and HEADERS.
    pub const END_STREAM: u8 = 0x01;
    /// Marks the last frame of a field block, in HEADERS and CONTINUATION.
    pub const END_HEADERS: u8 = 0x04;
    /// Marks padding after the payload, in DATA and HEADERS.
    pub const PADDED: u8 = 0x08;
    /// Marks a priority before the field block, in HEADERS.
    pub const PRIORITY: u8 = 0x20;
}

#[derive(Debug, Clone, Copy)]
pub(super) struct FrameHead {
    pub(super) length: u32,
    pub(super) kind: FrameKind,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    pub(super) fn parse(bytes: &[u8]) -> Option<FrameHead> {
        let [a, b, c, kind, flags, rest @ ..] = bytes.first_chunk::<FRAME_HEAD_BYTES>()?;
        Some(FrameHead {
            length: u32::from_be_bytes([0, *a, *b, *c]),
            kind: FrameKind(*kind),
            flags: *flags,
            stream: u32::from_be_bytes(*rest) & STREAM_MAX,
        })
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
