//! Tests of the public interface, in one binary because each binary is linked and run separately.

mod item_expiry;
mod libcachesim_oracle;
mod linearizability;
mod linearizable_order;
mod map_model;
mod memory_overhead;
