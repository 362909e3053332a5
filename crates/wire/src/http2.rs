//! HTTP/2 codec: frames, HPACK and field rules for both roles. Source: RFC 9113 and RFC 7541. [`Reader`] turns a stream
//! of bytes into [`Event`]s, however the stream is split. The [`hpack::Decoder`] of a connection must decode each field
//! block exactly once, in order of arrival.
//!
//! ```
//! use wire::http2::{self, Event, Limits, Reader, ResponseHead, Role, hpack};
//!
//! let mut reader = Reader::new(Role::Client, Limits::DEFAULT);
//! let mut decoder = hpack::Decoder::default();
//! reader.highest_stream = 1;
//! let bytes = b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x05\0\0\0\x01\x88";
//! let (used, event) = reader.read(bytes).unwrap();
//! assert_eq!(event, Some(Event::Settings(http2::Settings::DEFAULT)));
//! let Ok((_, Some(Event::Headers { stream: 1, block, ends: true, .. }))) = reader.read(&bytes[used..]) else { panic!() };
//! let head = ResponseHead::read(&mut decoder, block, &Limits::DEFAULT, |_, _| {}).unwrap().unwrap();
//! assert_eq!((head.status, head.content_length), (200, None));
//! ```
//!
//! # Choices that the RFCs leave open
//!
//! - [`Reader`] treats stream errors as connection errors (RFC 9113, section 5.4.1: MAY).
//! - Server push is an error in both roles: clients of this codec disable it (RFC 9113, section 8.4).
//! - PRIORITY frames are skipped after a check; frames of unknown types are skipped (RFC 9113, sections 5.3.2 and 5.5).
//! - Control characters in field values are errors, except HTAB (RFC 9110, section 5.5), as in [`http1`](crate::http1).

mod compose;
mod connection_event_reader;
mod error;
mod field_rules;
mod flow_control_window;
mod frame_head;
pub mod hpack;
mod message_state;
mod request;
mod request_fields;
mod response;
mod settings;

pub use compose::{
    push_data, push_frame_head, push_go_away, push_headers, push_ping, push_reset, push_settings, push_settings_ack,
    push_window_update,
};
pub use connection_event_reader::{Event, Reader, Role};
pub use error::{ConnectionError, ErrorCode};
pub use field_rules::{FieldError, read_trailers};
pub use flow_control_window::{ReceiveWindow, SendWindow, WINDOW_MAX};
pub use frame_head::{FRAME_HEAD_BYTES, FrameKind, PREFACE, STREAM_MAX, flags};
pub use message_state::Incoming;
pub use request::RequestHead;
pub use request_fields::{SharedFields, TableUse, request_fields};
pub use response::{ResponseDecoder, ResponseHead};
pub use settings::Settings;

/// Limits on the messages of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum payload of a frame in bytes, at least 16,384: SETTINGS_MAX_FRAME_SIZE of this endpoint.
    pub frame_bytes: u32,
    /// Maximum size of an encoded field block, in bytes.
    pub block_bytes: usize,
    /// Maximum number of CONTINUATION frames per field block.
    pub continuations: u32,
    /// Maximum number of fields per block.
    pub fields: usize,
    /// Maximum decoded size of a block in bytes: names, values and 32 bytes per field. Source: RFC 9113, section 6.5.2.
    pub list_bytes: usize,
    /// Maximum number of consecutive frames without message data (SETTINGS, PING, PRIORITY, unknown, empty DATA).
    pub idle_frames: u32,
}

impl Limits {
    /// Default limits: the smallest frame limit, blocks of 64 KiB and 256 fields, and 10,000 frames without data.
    pub const DEFAULT: Limits = Limits {
        frame_bytes: 16_384,
        block_bytes: 64 * 1024,
        continuations: 64,
        fields: 256,
        list_bytes: 64 * 1024,
        idle_frames: 10_000,
    };
}
