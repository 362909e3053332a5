//! Fuzz target for requests of a cache over HTTP.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::cache_http(bytes));
