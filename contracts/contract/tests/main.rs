//! The contract language and its monitor, from text to verdict. Tests share one binary to link and run only once;
//! separate binaries are for tests that observe or change process-wide state.

mod adapters_in_memory;
mod case_studies;
mod declared_types;
mod docs;
mod fuzz_targets;
mod language;
mod lints;
mod monitor;
mod properties;
mod schema;
