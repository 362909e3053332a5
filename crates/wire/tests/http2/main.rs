//! Tests of HTTP/2: examples of the RFCs, tables of frames and heads, limits, and random bytes.

mod frames;
mod fuzz_targets;
mod heads;
mod hpack_blocks;

fn hex(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<_>>();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
