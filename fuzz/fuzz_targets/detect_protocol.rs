//! Fuzz target for the detection of a cache protocol.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::detect_protocol(bytes));
