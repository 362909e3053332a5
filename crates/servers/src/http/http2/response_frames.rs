//! Response frames. No field enters the client's table, so heads are independent.

use wire::decimal;
use wire::http2::hpack::{self, Indexing};
use wire::http2::{FRAME_HEAD_BYTES, FrameKind, flags, push_frame_head};

use crate::response_head::{Head, Length};

/// Index of `:status: 200` in the static table.
const STATUS_200: usize = 8;
/// Start of a literal field without indexing, whose name is in the static table. Source: RFC 7541, section 6.2.2.
const CONTENT_TYPE: [u8; 2] = [0x0f, 31 - 0x0f];
const CONTENT_LENGTH: [u8; 2] = [0x0f, 28 - 0x0f];
/// Update of the dynamic table's size to 0. Source: RFC 7541, section 6.3.
const NO_TABLE: u8 = 0x20;

/// Appends a HEADERS frame with the fields of `stamp`. If `shrinks_table`, the block first sets the client's table to
/// size 0.
pub(crate) fn push_head(out: &mut Vec<u8>, stamp: &[u8], stream: u32, head: &Head, ends: bool, shrinks_table: bool) {
    let flag = if ends { flags::END_STREAM } else { 0 };
    push_frame_head(out, 0, FrameKind::HEADERS, flag | flags::END_HEADERS, stream);
    let start = out.len();
    if shrinks_table {
        out.push(NO_TABLE);
    }
    match head.status {
        200 => hpack::push_indexed(out, STATUS_200),
        status => hpack::push_field(out, b":status", status.to_string().as_bytes(), Indexing::Skip),
    }
    out.extend_from_slice(stamp);
    if !head.content_type.is_empty() {
        out.extend_from_slice(&CONTENT_TYPE);
        hpack::push_text(out, head.content_type.as_bytes());
    }
    if let Length::Known(bytes) = head.length {
        out.extend_from_slice(&CONTENT_LENGTH);
        let digits_at = out.len() + 1;
        out.push(0);
        decimal::push(out, bytes);
        out[digits_at - 1] = (out.len() - digits_at) as u8;
    }
    if !head.allow.is_empty() {
        hpack::push_field(out, b"allow", head.allow.as_bytes(), Indexing::Skip);
    }
    // The block fits into one frame that every client accepts.
    let [high, low] = ((out.len() - start) as u16).to_be_bytes();
    out[start - FRAME_HEAD_BYTES..][..3].copy_from_slice(&[0, high, low]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precomposed_names_match_the_encoder() {
        for (name, bytes) in [("content-type", CONTENT_TYPE), ("content-length", CONTENT_LENGTH)] {
            let mut out = Vec::new();
            hpack::push_literal_name(&mut out, name.as_bytes(), Indexing::Skip);
            assert_eq!(out, bytes);
        }
        let mut out = Vec::new();
        hpack::push_field(&mut out, b":status", b"200", Indexing::Skip);
        hpack::push_table_size(&mut out, 0);
        assert_eq!(out, [0x80 | STATUS_200 as u8, NO_TABLE]);
    }
}
