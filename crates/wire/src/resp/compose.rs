//! Writes requests and replies.

use crate::decimal;

/// The protocol version of a connection, which `HELLO` changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// RESP2, the initial version.
    #[default]
    Two,
    /// RESP3, which a client requests with `HELLO 3`.
    Three,
}

fn push_count(out: &mut Vec<u8>, mark: u8, count: u64) {
    out.push(mark);
    decimal::push(out, count);
    out.extend_from_slice(b"\r\n");
}

/// Appends a request as an array of its arguments, the name first.
pub fn compose_request(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    push_count(out, b'*', arguments.len() as u64);
    arguments.iter().for_each(|argument| compose_bulk(out, argument));
}

/// Appends a bulk string that contains `data`.
pub fn compose_bulk(out: &mut Vec<u8>, data: &[u8]) {
    push_count(out, b'$', data.len() as u64);
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Appends an error: `-` and `text`, which must start with a code in capitals. Line breaks in `text` become spaces.
pub fn compose_error(out: &mut Vec<u8>, text: &str) {
    out.push(b'-');
    out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

/// Appends an integer reply.
pub fn compose_integer(out: &mut Vec<u8>, value: i64) {
    out.push(b':');
    decimal::push_signed(out, value);
    out.extend_from_slice(b"\r\n");
}

/// Appends null: `$-1`, or `_` in RESP3.
pub fn compose_null(out: &mut Vec<u8>, version: Version) {
    out.extend_from_slice(match version {
        Version::Two => b"$-1\r\n",
        Version::Three => b"_\r\n",
    });
}

/// Appends the head of an array. `count` replies must follow.
pub fn compose_array(out: &mut Vec<u8>, count: usize) {
    push_count(out, b'*', count as u64);
}

/// Appends the head of a map with `pairs` pairs, or in RESP2 the head of an array with twice as many elements.
pub fn compose_map(out: &mut Vec<u8>, version: Version, pairs: usize) {
    match version {
        Version::Two => push_count(out, b'*', 2 * pairs as u64),
        Version::Three => push_count(out, b'%', pairs as u64),
    }
}
