//! An in-memory cache with an exact memory limit and a choice of eviction policies.

mod arena_allocator;
mod cache;
mod config_and_errors;
mod evicted_key_use_table;
mod eviction_policy_names;
mod index;
mod item_queue;
pub mod replay;
mod s3_fifo_ghosts;
mod shard;
mod stats;
mod use_counter;

pub use cache::{Cache, LockedKey};
pub use config_and_errors::{Config, ConfigError, Item, KEY_BYTES_MAX, MEMORY_BYTES_MIN, Meta, Mode, Refusal};
pub use eviction_policy_names::Evictor;
pub use stats::Stats;
