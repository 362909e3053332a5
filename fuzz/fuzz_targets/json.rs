//! Fuzz target for JSON messages.

#![no_main]

#[path = "../codecs.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::json(bytes));
