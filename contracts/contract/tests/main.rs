//! Tests of the language and the monitor in one binary, which links once. Tests that need their own process are
//! separate.

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
