//! Tests of the contract language and its monitor. Tests that need their own process are in separate binaries.

mod adapters_in_memory;
mod case_study_metadata_sizes;
mod declared_types;
mod docs;
mod fuzz_targets;
mod language;
mod lints;
mod monitor;
mod properties;
mod schema;
