//! Tests of the public interface, in one binary to link and run only once.

mod item_expiry;
mod libcachesim_oracle;
mod linearizability;
mod linearizable_order;
mod map_model;
mod memory_overhead;
