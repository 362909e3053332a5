//! Fuzz target for field blocks of HTTP/2.

#![no_main]

#[path = "../http2.rs"]
#[allow(dead_code, reason = "each target uses a part")]
mod http2;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http2::blocks(bytes));
