#![no_main]

#[path = "../perf.rs"]
mod perf;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| perf::perf_script(bytes));
