//! The contract language and its monitor, from text to verdict. Tests share one binary to link and run only once;
//! separate binaries are for tests that observe or change process-wide state.

mod cases;
mod common;
mod docs;
mod fuzz;
mod language;
mod lints;
mod monitor;
mod promise;
mod properties;
mod schema;
