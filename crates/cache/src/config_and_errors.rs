//! The configuration of a cache, its errors, and the types of its operations.

use crate::Evictor;

/// Maximum size of a key in any cache, in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Configuration of a cache. [`Config::new`] returns the defaults, and [`Config::check`] rejects invalid values.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Memory limit in bytes. Counts all memory, including the index, policy state and free space, and is never
    /// exceeded, unless `values_only` is set.
    pub capacity_bytes: u64,
    /// If set, only values count against `capacity_bytes`, as in small teaching caches. Keys and overhead take
    /// additional memory; this number limits the total, in bytes. A cache of many tiny values reaches it first and evicts.
    pub values_only: Option<u64>,
    /// Policy that chooses the items to evict when the cache is full.
    pub evictor: Evictor,
    /// Number of threads that use the cache concurrently; affects [`Config::shards`].
    pub threads: usize,
    /// Maximum size of a key in bytes, up to [`KEY_BYTES_MAX`].
    pub key_bytes_max: usize,
    /// Maximum size of a value in bytes. Small shards lower this limit; see `Cache::value_bytes_max`.
    pub value_bytes_max: usize,
    /// Whether items have versions for compare-and-swap, which take 8 bytes per item.
    pub versions: bool,
    /// Seed of key hashes and eviction draws. The same seed and requests give the same cache contents.
    pub seed: u64,
}

/// Minimum shard memory in bytes if there are several shards. Small shards lower the hit ratio, because some hold more
/// popular keys than others. Hit ratios of workload H1 (10 MiB; 1, 4, 8 and 32 shards): .8615, .8616, .8613, .8602.
pub(crate) const SHARD_BYTES_MIN: u64 = 1 << 20;

/// Preferred maximum memory of a shard in bytes, because growing the index blocks users (`examples/index_growth.rs`).
pub(crate) const SHARD_BYTES_WANTED: u64 = 8 << 20;

/// Minimum memory of a cache in bytes. [`Config::check`] rejects less.
pub const MEMORY_BYTES_MIN: u64 = 16 << 10;

/// Maximum memory of a shard in bytes, because offsets of 28 bits count 4-byte words.
pub(crate) const SHARD_BYTES_MAX: u64 = (1 << 30) - 4096;

impl Config {
    /// A configuration that counts all memory, with `density` eviction, one thread and no versions. Keys have up to
    /// 250 bytes and values up to 1 MiB, as in memcached.
    pub fn new(capacity_bytes: u64) -> Config {
        Config {
            capacity_bytes,
            values_only: None,
            evictor: Evictor::Density,
            threads: 1,
            key_bytes_max: 250,
            value_bytes_max: 1 << 20,
            versions: false,
            seed: 0,
        }
    }

    /// Maximum total memory in bytes, including memory that does not count against `capacity_bytes`.
    pub fn memory_bytes(&self) -> u64 {
        self.values_only.unwrap_or(self.capacity_bytes)
    }

    /// Number of shards, a power of two: at least one per 8 MiB, and at least 16 per thread if there are several
    /// threads. There are fewer if shards would otherwise have under 1 MiB or no room for four of the largest values.
    pub fn shards(&self) -> usize {
        let least = SHARD_BYTES_MIN.max(4 * self.value_bytes_max as u64);
        let may = (self.memory_bytes().min(self.capacity_bytes) / least).max(1);
        let of_threads = if self.threads <= 1 { 1 } else { 16 * self.threads.next_power_of_two() as u64 };
        let wanted = of_threads.max(self.memory_bytes().div_ceil(SHARD_BYTES_WANTED).next_power_of_two());
        let must = self.memory_bytes().div_ceil(SHARD_BYTES_MAX).next_power_of_two();
        let below = 1 << may.min(wanted).ilog2();
        u64::max(below, must) as usize
    }

    /// Checks that a cache can have this configuration. Fails with the first violated limit.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (memory_bytes, key_bytes, value_bytes) = (self.memory_bytes(), self.key_bytes_max, self.value_bytes_max);
        let checks = [
            (memory_bytes < MEMORY_BYTES_MIN, ConfigError::MemoryTooSmall(memory_bytes)),
            (self.capacity_bytes == 0, ConfigError::NoCapacity),
            (key_bytes == 0 || key_bytes > KEY_BYTES_MAX, ConfigError::KeyLimit(key_bytes)),
            (value_bytes >= 1 << 28, ConfigError::ValueLimit(value_bytes)),
        ];
        checks.into_iter().find(|(is_violated, _)| *is_violated).map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Why a cache cannot have a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The memory, in bytes, is less than [`MEMORY_BYTES_MIN`].
    #[error("a cache of {0} bytes is too small for its bookkeeping: at least {MEMORY_BYTES_MIN} bytes are needed")]
    MemoryTooSmall(u64),
    /// The memory limit is 0 bytes.
    #[error("a memory limit of 0 bytes holds nothing: at least 1 byte is needed")]
    NoCapacity,
    /// The maximum size of a key, in bytes, is 0 or exceeds [`KEY_BYTES_MAX`].
    #[error("keys of up to {0} bytes: the key limit must be 1 to {KEY_BYTES_MAX} bytes")]
    KeyLimit(usize),
    /// The maximum size of a value, in bytes, is 256 MiB or more.
    #[error("values of up to {0} bytes: the value limit must be below 268435456 bytes (256 MiB)")]
    ValueLimit(usize),
}

/// Why an item was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key is empty.
    #[error("empty key: keys have at least 1 byte")]
    KeyEmpty,
    /// The key exceeds the limit.
    #[error("key of {bytes} bytes: the limit is {limit} bytes")]
    KeyTooLong {
        /// Size of the key, in bytes.
        bytes: usize,
        /// Maximum size of a key in this cache, in bytes.
        limit: usize,
    },
    /// The value exceeds the limit. If the mode was [`Mode::Set`], the key's older value has been removed.
    #[error("value of {bytes} bytes: the limit is {limit} bytes")]
    ValueTooLong {
        /// Size of the value, in bytes.
        bytes: usize,
        /// Maximum size of a value in this cache, in bytes.
        limit: usize,
    },
    /// The cache is full at this many bytes, and its policy evicts nothing. The key's older value has been removed.
    #[error("the cache is full at {0} bytes and its eviction policy is `none`")]
    Full(u64),
    /// The condition was not met: `add` found the key, or `replace`, `append` or `prepend` did not.
    #[error("not stored: the command's condition was not met")]
    NotStored,
    /// A compare-and-swap found no item with the key.
    #[error("not found: no item with that key to compare with")]
    NotFound,
    /// A compare-and-swap found a different version of the item.
    #[error("exists: the item has changed since version {asked}, it is now at {found}")]
    Exists {
        /// Version that the request expected.
        asked: u64,
        /// Current version of the item.
        found: u64,
    },
    /// A compare-and-swap was requested, but the cache has no versions.
    #[error("compare-and-swap needs a cache with item versions")]
    NoVersions,
}

/// An item, borrowed while its shard is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The stored value, without key and metadata.
    pub value: &'a [u8],
    /// Metadata that the client stored with the value.
    pub meta: Meta,
    /// Version of the item; 0 if the cache has no versions.
    pub version: u64,
}

/// Metadata that a client stores with an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// 32 bits for the client's use; 0 takes no memory.
    pub flags: u32,
    /// Expiry in milliseconds of the caller's clock; the item is absent from then on. 0 means never and takes no
    /// memory. A whole second below 2^32 s takes 4 bytes; any other time takes 8.
    pub expires_ms: u64,
}

/// How and under which condition a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stores unconditionally.
    Set,
    /// Stores if the key is absent.
    Add,
    /// Stores if the key is present.
    Replace,
    /// Appends to the value if the key is present. The item keeps its [`Meta`].
    Append,
    /// Prepends to the value if the key is present. The item keeps its [`Meta`].
    Prepend,
    /// Stores if the key is present with this version.
    Cas(u64),
}
