//! What does a cache keep when memory is short? Keys to values under an exact cap in bytes, with evictors to choose from.

mod cache;
mod config;
mod evictor;
mod ghosts;
mod held;
mod index;
mod memory;
mod queue;
pub mod replay;
mod shard;
mod sketch;
mod stats;
mod uses;

pub use cache::Cache;
pub use config::{Accounting, Config, ConfigError, Item, KEY_BYTES_MAX, MEMORY_BYTES_MIN, Meta, Mode, Refusal};
pub use evictor::{Evictor, UnknownEvictor};
pub use held::Held;
pub use stats::Stats;
