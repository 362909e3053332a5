//! Reports as wholes: every form, hostile records, schemas.
//!
//! One binary: each more would be linked, and run, on its own.

mod exports;
mod forms;
mod hostile;
mod schemas;
