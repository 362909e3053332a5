//! Fuzz target for case files of `quintain verify`.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::cases_parse(bytes));
