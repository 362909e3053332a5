//! Fuzz target for stored histograms.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::histogram_from_parts(bytes));
