//! The cache as its callers see it.
//!
//! One binary: each more would be linked, and run, on its own.

mod history;
mod items;
mod memory;
mod model;
mod oracle;
mod order;
