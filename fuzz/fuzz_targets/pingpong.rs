//! Fuzz target for ping-pong streams.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::pingpong(bytes));
