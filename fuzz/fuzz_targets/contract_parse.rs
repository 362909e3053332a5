//! Fuzz target for texts of contracts.

#![no_main]

#[path = "../contract.rs"]
mod contracts;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contracts::contract_parse(bytes));
