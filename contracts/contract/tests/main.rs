//! The contract language and its monitor, from text to verdict. Most tests share one binary, which is linked and run
//! only once. Tests that observe or change process-wide state have separate binaries.

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
