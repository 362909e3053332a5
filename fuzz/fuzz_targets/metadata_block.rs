//! Fuzz target for blocks of metadata between adapters.

#![no_main]

#[path = "../contract.rs"]
mod contracts;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contracts::metadata_block(bytes));
