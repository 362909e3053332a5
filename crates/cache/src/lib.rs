//! An in-memory cache with an exact memory limit and a choice of eviction policies.

mod cache;
mod config;
mod evicted_key_uses;
mod evictor;
mod ghosts;
mod index;
mod memory;
mod queue;
pub mod replay;
mod shard;
mod stats;
mod uses;

pub use cache::{Cache, LockedKey};
pub use config::{Accounting, Config, ConfigError, Item, KEY_BYTES_MAX, MEMORY_BYTES_MIN, Meta, Mode, Refusal};
pub use evictor::Evictor;
pub use stats::Stats;
