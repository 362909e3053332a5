//! Fuzz target for the output of `perf script`.

#![no_main]

#[path = "../perf_script.rs"]
mod perf;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| perf::perf_script(bytes));
