//! What does a cache keep when memory is short? Keys to values under an exact cap in bytes, with evictors to choose from.

mod config;
mod evictor;

pub use config::{Accounting, Config, ConfigError, Item, KEY_BYTES_MAX, MEMORY_BYTES_MIN, Meta, Mode, Refusal};
pub use evictor::{Evictor, UnknownEvictor};
