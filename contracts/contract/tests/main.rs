//! The contract language and its monitor, from text to verdict.
//!
//! One binary: each more would be linked, and run, on its own. Those apart watch or change what is a whole process's.

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
