//! Tests of the public interface, in one binary to link and run only once.

mod history;
mod items;
mod memory;
mod model;
mod oracle;
mod order;
