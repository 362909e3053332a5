//! Writes the parts of field blocks. A caller that inserts fields into the peer's table must track their positions.

use super::huffman;
use super::static_table::FIELDS;

/// Whether a field enters the peer's dynamic table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexing {
    /// The field becomes the newest in the table. Source: RFC 7541, section 6.2.1.
    Insert,
    /// The field does not enter the table. Source: RFC 7541, section 6.2.2.
    Skip,
}

/// Appends a field by its index in the tables. Source: RFC 7541, section 6.1.
pub fn push_indexed(out: &mut Vec<u8>, index: usize) {
    push_integer(out, 0x80, 7, index);
}

/// Appends a field: by index if the static table has it, otherwise by name and value. `name` must be in lower case.
pub fn push_field(out: &mut Vec<u8>, name: &[u8], value: &[u8], indexing: Indexing) {
    let is_it = |field: &(&str, &str)| field.0.as_bytes() == name && field.1.as_bytes() == value;
    if let Some(at) = FIELDS.iter().position(is_it) {
        return push_indexed(out, at + 1);
    }
    push_literal_name(out, name, indexing);
    push_string(out, value);
}

/// Appends the name of a field. Its value must follow.
pub fn push_literal_name(out: &mut Vec<u8>, name: &[u8], indexing: Indexing) {
    let (pattern, bits) = match indexing {
        Indexing::Insert => (0x40, 6),
        Indexing::Skip => (0x00, 4),
    };
    let index = FIELDS.iter().position(|field| field.0.as_bytes() == name).map_or(0, |at| at + 1);
    push_integer(out, pattern, bits, index);
    if index == 0 {
        push_string(out, name);
    }
}

/// Appends a string, in the Huffman code if that is shorter.
pub fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    let bytes = huffman::encoded_bytes(text);
    if bytes < text.len() {
        push_integer(out, 0x80, 7, bytes);
        huffman::encode(text, out);
    } else {
        push_text(out, text);
    }
}

/// Appends a string without the Huffman code, which is faster.
pub fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    push_integer(out, 0x00, 7, text.len());
    out.extend_from_slice(text);
}

/// Appends a new size of the dynamic table, in bytes, at the start of a block. Source: RFC 7541, section 6.3.
pub fn push_table_size(out: &mut Vec<u8>, bytes: usize) {
    push_integer(out, 0x20, 5, bytes);
}

/// Appends an integer after `pattern`, with a prefix of `bits` bits. Source: RFC 7541, section 5.1.
fn push_integer(out: &mut Vec<u8>, pattern: u8, bits: u32, value: usize) {
    let max = (1 << bits) - 1;
    if value < max {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | max as u8);
    let mut rest = value - max;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}
