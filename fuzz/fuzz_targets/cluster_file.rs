//! Fuzz target for cluster files and lists of machines.

#![no_main]

#[path = "../cluster.rs"]
mod cluster;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cluster::cluster_file(bytes));
