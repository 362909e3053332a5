//! Fuzz target for HTTP/1.1 requests.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::http1_request(bytes));
