//! Fuzz target for RESP replies.

#![no_main]

#[path = "../assertions.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::resp_reply(bytes));
