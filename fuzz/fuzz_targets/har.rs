//! Fuzz target for recordings of a browser (HAR).

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::har(bytes));
