//! Fuzz target for run files.

#![no_main]

#[path = "../run_file.rs"]
mod run_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| run_file::run_file(bytes));
