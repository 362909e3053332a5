//! Writes frames.

use super::error::ErrorCode;
use super::frame_head::{FrameKind, flags};
use super::settings::Settings;

/// Appends the head of a frame. `bytes` is the size of the payload, which must be below 2^24.
pub fn push_frame_head(out: &mut Vec<u8>, bytes: usize, kind: FrameKind, flags: u8, stream: u32) {
    let [_, a, b, c] = (bytes as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind.0, flags, d, e, f, g]);
}

/// Appends a SETTINGS frame with the values that differ from [`Settings::DEFAULT`].
pub fn push_settings(out: &mut Vec<u8>, settings: &Settings) {
    push_frame_head(out, settings.changed().count() * 6, FrameKind::SETTINGS, 0, 0);
    for (id, value) in settings.changed() {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of a SETTINGS frame.
pub fn push_settings_ack(out: &mut Vec<u8>) {
    push_frame_head(out, 0, FrameKind::SETTINGS, flags::ACK, 0);
}

/// Appends a PING frame, or an acknowledgement of a PING if `is_ack` is set.
pub fn push_ping(out: &mut Vec<u8>, payload: [u8; 8], is_ack: bool) {
    push_frame_head(out, payload.len(), FrameKind::PING, if is_ack { flags::ACK } else { 0 }, 0);
    out.extend_from_slice(&payload);
}

/// Appends a WINDOW_UPDATE frame with a credit of `bytes`, which must be above 0. A `stream` of 0 means the connection.
pub fn push_window_update(out: &mut Vec<u8>, stream: u32, bytes: u32) {
    push_frame_head(out, 4, FrameKind::WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&bytes.to_be_bytes());
}

/// Appends an RST_STREAM frame, which ends a stream early.
pub fn push_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    push_frame_head(out, 4, FrameKind::RST_STREAM, 0, stream);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends a GOAWAY frame, after which only streams up to `last` may still be processed.
pub fn push_go_away(out: &mut Vec<u8>, last: u32, code: ErrorCode) {
    push_frame_head(out, 8, FrameKind::GOAWAY, 0, 0);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends a field block in HEADERS and CONTINUATION frames of up to `frame_bytes`, the peer's SETTINGS_MAX_FRAME_SIZE.
pub fn push_headers(out: &mut Vec<u8>, stream: u32, block: &[u8], ends: bool, frame_bytes: u32) {
    let mut flag = if ends { flags::END_STREAM } else { 0 };
    let mut kind = FrameKind::HEADERS;
    let mut rest = block;
    while rest.len() > frame_bytes as usize {
        let (part, after) = rest.split_at(frame_bytes as usize);
        push_frame_head(out, part.len(), kind, flag, stream);
        out.extend_from_slice(part);
        (kind, flag, rest) = (FrameKind::CONTINUATION, 0, after);
    }
    push_frame_head(out, rest.len(), kind, flag | flags::END_HEADERS, stream);
    out.extend_from_slice(rest);
}

/// Appends a DATA frame. `data` must fit the peer's windows and SETTINGS_MAX_FRAME_SIZE.
pub fn push_data(out: &mut Vec<u8>, stream: u32, data: &[u8], ends: bool) {
    push_frame_head(out, data.len(), FrameKind::DATA, if ends { flags::END_STREAM } else { 0 }, stream);
    out.extend_from_slice(data);
}
