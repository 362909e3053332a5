#![no_main]

#[path = "../codecs.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::thrift_compact(bytes));
