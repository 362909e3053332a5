//! Tests of the public interface. One binary, because each additional one would be linked and run
//! separately.

mod history;
mod items;
mod memory;
mod model;
mod oracle;
mod order;
