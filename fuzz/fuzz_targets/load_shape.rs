//! Fuzz target for load shapes.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::load_shape(bytes));
