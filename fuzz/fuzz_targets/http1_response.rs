//! Fuzz target for HTTP/1.1 responses.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::http1_response(bytes));
