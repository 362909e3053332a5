//! Fuzz target for REST paths and queries.

#![no_main]

#[path = "../codecs.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::rest(bytes));
