//! Fuzz target for journey files.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::journey_parse(bytes));
