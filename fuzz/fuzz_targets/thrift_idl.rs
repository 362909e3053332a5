//! Fuzz target for Thrift IDL files.

#![no_main]

#[path = "../codecs.rs"]
mod assertions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assertions::thrift_idl(bytes));
