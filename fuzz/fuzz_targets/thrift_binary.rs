//! Fuzz target for Thrift messages in the binary protocol.

#![no_main]

#[path = "../codecs.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::thrift_binary(bytes));
