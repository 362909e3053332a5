//! Fuzz target for specifications of loads.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::load_spec_json(bytes));
