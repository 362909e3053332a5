//! Response frames. Shared parts are rebuilt each second. No field enters the client's table, so heads are independent.

use wire::decimal;
use wire::http2::hpack::{self, Indexing};
use wire::http2::{FRAME_HEAD_BYTES, FrameKind, flags, push_data, push_frame_head};

/// Index of `:status: 200` in the static table.
const STATUS_200: usize = 8;
/// Start of a literal field without indexing, whose name is in the static table. Source: RFC 7541, section 6.2.2.
const CONTENT_TYPE: [u8; 2] = [0x0f, 31 - 0x0f];
const CONTENT_LENGTH: [u8; 2] = [0x0f, 28 - 0x0f];
/// Update of the dynamic table's size to 0. Source: RFC 7541, section 6.3.
const NO_TABLE: u8 = 0x20;
/// Position of the stream identifier in the head of a frame, in bytes.
const STREAM_AT: usize = 5;

#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) length: Option<u64>,
    /// Methods that the target allows; possibly empty.
    pub(super) allow: &'static str,
}

/// HEADERS and DATA frames of a frequent response, without a stream identifier.
#[derive(Debug, Default)]
pub(in super::super) struct Prebuilt {
    pub(super) content_type: &'static str,
    pub(super) body: &'static [u8],
    bytes: Vec<u8>,
    data_at: usize,
}

impl Prebuilt {
    #[inline]
    pub(super) fn push(&self, out: &mut Vec<u8>, stream: u32) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for frame in [start, start + self.data_at] {
            out[frame + STREAM_AT..][..4].copy_from_slice(&stream.to_be_bytes());
        }
    }
}

#[derive(Debug, Default)]
pub(in super::super) struct Frames {
    /// The encoded fields `server` and `date`; empty if the server is minimal.
    stamp: Vec<u8>,
    pub(super) root: Prebuilt,
    pub(super) plaintext: Prebuilt,
    pub(super) json: Prebuilt,
}

impl Frames {
    pub(in super::super) fn make(&mut self, date: Option<&str>, [root, plaintext, json]: [&'static [u8]; 3]) {
        self.stamp.clear();
        if let Some(date) = date {
            hpack::push_field(&mut self.stamp, b"server", b"quintain", Indexing::Skip);
            hpack::push_field(&mut self.stamp, b"date", date.as_bytes(), Indexing::Skip);
        }
        let prebuilt = |content_type, body: &'static [u8]| {
            let mut bytes = Vec::new();
            self.push_head(&mut bytes, 0, &Head::ok(content_type, Some(body.len() as u64)), false, false);
            let data_at = bytes.len();
            push_data(&mut bytes, 0, body, true);
            Prebuilt { content_type, body, bytes, data_at }
        };
        let root = prebuilt("text/html", root);
        let plaintext = prebuilt("text/plain", plaintext);
        let json = prebuilt("application/json", json);
        (self.root, self.plaintext, self.json) = (root, plaintext, json);
    }

    /// Appends a HEADERS frame. If `shrinks_table`, the block first sets the client's table to size 0.
    pub(super) fn push_head(&self, out: &mut Vec<u8>, stream: u32, head: &Head, ends: bool, shrinks_table: bool) {
        let flag = if ends { flags::END_STREAM } else { 0 };
        push_frame_head(out, 0, FrameKind::HEADERS, flag | flags::END_HEADERS, stream);
        let start = out.len();
        if shrinks_table {
            out.push(NO_TABLE);
        }
        push_status(out, head.status);
        out.extend_from_slice(&self.stamp);
        if !head.content_type.is_empty() {
            out.extend_from_slice(&CONTENT_TYPE);
            hpack::push_text(out, head.content_type.as_bytes());
        }
        if let Some(bytes) = head.length {
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
}

impl Head {
    pub(super) fn ok(content_type: &'static str, length: Option<u64>) -> Head {
        Head { status: 200, content_type, length, allow: "" }
    }
}

fn push_status(out: &mut Vec<u8>, status: u16) {
    if status == 200 {
        return hpack::push_indexed(out, STATUS_200);
    }
    hpack::push_field(out, b":status", status.to_string().as_bytes(), Indexing::Skip);
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
