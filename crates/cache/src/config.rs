//! What a cache is asked to be, and what it refuses to be.

use crate::Evictor;

/// The longest key any cache takes, whatever its configuration says, in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;

/// What counts against the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// Everything: keys, values, headers, index, policy state, free space between items and the bookkeeping of each
    /// shard. The memory of the cache never exceeds `capacity_bytes`.
    Everything,
    /// Values alone, as small teaching caches count. The memory of the cache is then larger: keys and overhead come on
    /// top, and `memory_bytes` bounds the sum. A cache of many tiny values meets that bound first, and evicts there.
    ValuesOnly {
        /// Bound of all memory of the cache, in bytes.
        memory_bytes: u64,
    },
}

/// What a cache is asked to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The cap, in bytes of what `accounting` counts.
    pub capacity_bytes: u64,
    /// What counts against the cap.
    pub accounting: Accounting,
    /// Eviction policy.
    pub evictor: Evictor,
    /// How many threads will use the cache at the same time; decides the number of shards, see [`Config::shards`].
    pub threads: usize,
    /// The longest key accepted, in bytes, at most [`KEY_BYTES_MAX`].
    pub key_bytes_max: usize,
    /// The longest value accepted, in bytes. A shard must hold several such items: a cap of less than four of them makes
    /// the limit smaller, see `Cache::value_bytes_max`.
    pub value_bytes_max: usize,
    /// Whether each item carries a version for compare-and-swap: 8 bytes an item.
    pub versions: bool,
    /// Seed of the hash of keys and of the draws of the evictor: equal seeds and requests give equal caches.
    pub seed: u64,
}

/// Smallest memory of one shard where a cap is split, in bytes: below it, the chance that some shards hold more popular
/// keys than others costs hit ratio. Measured, of H1's 10 MiB in 1, 4, 8 and 32 shards: .8615, .8616, .8613 and .8602.
pub(crate) const SHARD_BYTES_MIN: u64 = 1 << 20;

/// Largest memory of one shard where that can be chosen, in bytes: a shard that grows its index lets its users wait. Measured with values of 20
/// bytes, see `examples/growth.rs`.
pub(crate) const SHARD_BYTES_WANTED: u64 = 8 << 20;

/// Smallest memory of a cache, in bytes.
pub const MEMORY_BYTES_MIN: u64 = 16 << 10;

/// Largest memory of one shard, in bytes: offsets count 4-byte words in 28 bits.
pub(crate) const SHARD_BYTES_MAX: u64 = (1 << 30) - 4096;

impl Config {
    /// A cache of everything counted, quintain's own evictor, one thread, keys up to 250 bytes and values up to 1 MiB
    /// (memcached's limits), no versions.
    pub fn new(capacity_bytes: u64) -> Config {
        Config {
            capacity_bytes,
            accounting: Accounting::Everything,
            evictor: Evictor::Density,
            threads: 1,
            key_bytes_max: 250,
            value_bytes_max: 1 << 20,
            versions: false,
            seed: 0,
        }
    }

    /// Bytes of memory the cache may take.
    pub fn memory_bytes(&self) -> u64 {
        match self.accounting {
            Accounting::Everything => self.capacity_bytes,
            Accounting::ValuesOnly { memory_bytes } => memory_bytes,
        }
    }

    /// How many shards the cache has, a power of two: so many that none is larger than 8 MiB, and up to 16 a thread where there are several
    /// threads, but none smaller than 1 MiB or than four of the largest values.
    pub fn shards(&self) -> usize {
        let least = SHARD_BYTES_MIN.max(4 * self.value_bytes_max as u64);
        let may = (self.memory_bytes().min(self.capacity_bytes) / least).max(1);
        let of_threads = if self.threads <= 1 { 1 } else { 16 * self.threads.next_power_of_two() as u64 };
        let wanted = of_threads.max(self.memory_bytes().div_ceil(SHARD_BYTES_WANTED).next_power_of_two());
        let must = self.memory_bytes().div_ceil(SHARD_BYTES_MAX).next_power_of_two();
        let below = 1 << may.min(wanted).ilog2();
        u64::max(below, must) as usize
    }

    /// Says what is impossible about this configuration.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.memory_bytes() < MEMORY_BYTES_MIN {
            return Err(ConfigError::MemoryTooSmall { bytes: self.memory_bytes() });
        }
        if self.capacity_bytes == 0 {
            return Err(ConfigError::NoCapacity);
        }
        if self.key_bytes_max == 0 || self.key_bytes_max > KEY_BYTES_MAX {
            return Err(ConfigError::KeyLimit { bytes: self.key_bytes_max });
        }
        if self.value_bytes_max >= 1 << 28 {
            return Err(ConfigError::ValueLimit { bytes: self.value_bytes_max });
        }
        Ok(())
    }
}

/// A configuration that no cache can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is no room for the bookkeeping.
    #[error("a cache of {bytes} bytes is too small for its bookkeeping: at least {MEMORY_BYTES_MIN} bytes are needed")]
    MemoryTooSmall {
        /// What was asked.
        bytes: u64,
    },
    /// The cap is 0.
    #[error("a memory limit of 0 bytes holds nothing: at least 1 byte is needed")]
    NoCapacity,
    /// Keys cannot be so long.
    #[error("keys of up to {bytes} bytes: the key limit must be 1 to {KEY_BYTES_MAX} bytes")]
    KeyLimit {
        /// What was asked.
        bytes: usize,
    },
    /// Values cannot be so long.
    #[error("values of up to {bytes} bytes: the value limit must be below 268435456 bytes (256 MiB)")]
    ValueLimit {
        /// What was asked.
        bytes: usize,
    },
}

/// Why an item was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key has no bytes.
    #[error("empty key: keys have at least 1 byte")]
    KeyEmpty,
    /// The key is too long.
    #[error("key of {bytes} bytes: the limit is {limit} bytes")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The value is too long; of a plain store an older value of the key is gone.
    #[error("value of {bytes} bytes: the limit is {limit} bytes")]
    ValueTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// There is no room and the evictor removes nothing; an older value of the key is gone, so that no reader is
    /// answered with it.
    #[error("the cache is full at {capacity_bytes} bytes and its eviction policy is `none`")]
    Full {
        /// The cap.
        capacity_bytes: u64,
    },
    /// The condition of the store did not hold: `add` found the key, `replace`, `append` or `prepend` did not.
    #[error("not stored: the command's condition was not met")]
    NotStored,
    /// Compare-and-swap found no item.
    #[error("not found: no item with that key to compare with")]
    NotFound,
    /// Compare-and-swap found another version.
    #[error("exists: the item has changed since version {asked}, it is now at {found}")]
    Exists {
        /// The version that was asked for.
        asked: u64,
        /// The version found.
        found: u64,
    },
    /// The cache keeps no versions.
    #[error("compare-and-swap needs a cache with item versions")]
    NoVersions,
}

/// An item, lent while its shard is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The value.
    pub value: &'a [u8],
    /// The client's own 32 bits.
    pub flags: u32,
    /// When it expires, in milliseconds of the caller's clock; 0 is never.
    pub expires_ms: u64,
    /// Its version, 0 where the cache keeps none.
    pub version: u64,
}

/// What is stored beside a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The client's own 32 bits; 0 takes no memory.
    pub flags: u32,
    /// When the item expires, in milliseconds of the caller's clock: it is gone from that millisecond on. 0 is never and takes no memory, a
    /// whole second up to 2^32 s takes 4 bytes, any other time 8.
    pub expires_ms: u64,
}

/// The condition under which a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Always.
    Set,
    /// If the key is not there.
    Add,
    /// If the key is there.
    Replace,
    /// If the key is there: its value, followed by this one. The item keeps its [`Meta`].
    Append,
    /// If the key is there: this value, followed by its own. The item keeps its [`Meta`].
    Prepend,
    /// If the key is there and has this version.
    Cas(u64),
}
