use std::sync::{Mutex, MutexGuard, PoisonError};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use crate::config::{Accounting, Config, ConfigError, Item, Meta, Mode, Refusal};
use crate::shard::Shard;
use crate::stats::Stats;

/// A shard on cache lines of its own, to avoid false sharing.
#[repr(align(128))]
struct Locked(Mutex<Shard>);

/// A key-value cache with a memory limit, shared by threads.
///
/// The upper bits of a key's hash select its shard, and every operation holds the shard's lock. So
/// operations on a key have one order, and items are read and written whole.
///
/// ```
/// let cache = cache::Cache::new(cache::Config::new(1 << 20)).unwrap();
/// let (key, now_ms) = (b"answer", 0);
/// let hash = cache.hash(key);
/// cache.set(key, hash, b"42", cache::Meta::default(), now_ms).unwrap();
/// assert_eq!(cache.get(key, hash, now_ms, |item| item.value.to_vec()), Some(b"42".to_vec()));
/// ```
pub struct Cache {
    shards: Box<[Locked]>,
    shift: u32,
    secrets: RapidSecrets,
    key_bytes_max: usize,
    value_bytes_max: usize,
    pub(crate) capacity_bytes: u64,
    fixed_bytes: u64,
}

impl Cache {
    /// Creates an empty cache. Reserves its memory at once, which becomes resident as it is used.
    pub fn new(config: Config) -> Result<Cache, ConfigError> {
        let count = config.shards();
        Cache::with_shards(config, count)
    }

    /// Creates a cache with `count` shards instead of [`Config::shards`], to measure the cost of
    /// shards.
    ///
    /// Panics if `count` is not a power of two, or if the memory is too small for it.
    pub fn with_shards(config: Config, count: usize) -> Result<Cache, ConfigError> {
        config.check()?;
        assert!(count.is_power_of_two(), "the number of shards must be a power of two, not {count}");
        let own = size_of::<Cache>() as u64;
        let each = (config.memory_bytes() - own) / count as u64;
        let words = (each - size_of::<Locked>() as u64) / 4;
        assert!(words >= 1024, "{each} bytes are too few for a shard");
        let values_bytes_cap = match config.accounting {
            Accounting::Everything => None,
            Accounting::ValuesOnly { .. } => Some(config.capacity_bytes / count as u64),
        };
        let secrets = RapidSecrets::seed(config.seed);
        let shard = |number: usize| {
            let seed = (config.seed ^ (number as u64 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let words = words as u32;
            Locked(Mutex::new(Shard::new(words, &config, secrets, values_bytes_cap, seed)))
        };
        let quarter = words as usize;
        let value_bytes_max = config.value_bytes_max.min(quarter).min(values_bytes_cap.unwrap_or(u64::MAX) as usize);
        Ok(Cache {
            shards: (0..count).map(shard).collect(),
            shift: 64 - count.ilog2(),
            secrets,
            key_bytes_max: config.key_bytes_max.min(quarter / 2),
            value_bytes_max,
            capacity_bytes: config.capacity_bytes,
            fixed_bytes: config.memory_bytes() - words * 4 * count as u64,
        })
    }

    /// The hash of a key, computed once by the caller and passed to all operations. Depends on the
    /// cache's seed. Source: rapidhash version 3.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_seeded(key, &self.secrets)
    }

    /// Maximum size of a key in bytes: the configured one, or an eighth of a shard if less.
    pub fn key_bytes_max(&self) -> usize {
        self.key_bytes_max
    }

    /// Maximum size of a value in bytes: the configured one, or a quarter of a shard if less.
    pub fn value_bytes_max(&self) -> usize {
        self.value_bytes_max
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    #[inline]
    pub(crate) fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // With one shard the shift is 64, which `>>` does not allow.
        let number = hash.checked_shr(self.shift).unwrap_or(0);
        lock(&self.shards[number as usize])
    }

    /// Passes the key's item to `use_it` under its shard's lock. Counts a hit or a miss.
    #[inline]
    pub fn get<R>(&self, key: &[u8], hash: u64, now_ms: u64, use_it: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        self.hold(key, hash).get(now_ms, use_it)
    }

    /// Like [`Cache::get`], but neither counted nor recorded as a use.
    pub fn peek<R>(&self, key: &[u8], hash: u64, now_ms: u64, use_it: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        self.hold(key, hash).peek(now_ms, use_it)
    }

    /// Stores an item unconditionally; see [`Cache::store`].
    pub fn set(&self, key: &[u8], hash: u64, value: &[u8], meta: Meta, now_ms: u64) -> Result<u64, Refusal> {
        self.store(Mode::Set, key, hash, value, meta, now_ms)
    }

    /// Stores an item under a condition and returns its version, 0 if the cache has none. An
    /// expired item is stored but never found.
    ///
    /// If there is no room, the key's older item is removed; likewise if the value of a
    /// [`Mode::Set`] is too long. Readers must not get a value that its owner has replaced. Source:
    /// memcached 1.6.18, `process_update_command`.
    pub fn store(
        &self,
        mode: Mode,
        key: &[u8],
        hash: u64,
        value: &[u8],
        meta: Meta,
        now_ms: u64,
    ) -> Result<u64, Refusal> {
        self.hold(key, hash).store(mode, value, meta, now_ms)
    }

    /// Removes an item whose new value was too long for the caller, and counts a refusal.
    pub fn outdate(&self, key: &[u8], hash: u64, now_ms: u64) {
        self.hold(key, hash).outdate(now_ms);
    }

    /// Deletes a key and returns whether it was present.
    pub fn delete(&self, key: &[u8], hash: u64, now_ms: u64) -> bool {
        self.hold(key, hash).delete(now_ms)
    }

    /// Sets an item's expiry (0 means never) and counts it as a use. Returns whether the key was
    /// present.
    ///
    /// Adding or removing an expiry changes the item's length and may fail like [`Cache::store`].
    pub fn touch(&self, key: &[u8], hash: u64, expires_ms: u64, now_ms: u64) -> Result<bool, Refusal> {
        self.hold(key, hash).touch(expires_ms, now_ms)
    }

    /// Changes a value atomically, for increments. `change` returns the new value, or `None` to
    /// keep the old one, and a result. `None` if the key is absent. The item keeps its [`Meta`].
    pub fn update<R>(
        &self,
        key: &[u8],
        hash: u64,
        now_ms: u64,
        change: impl FnOnce(Item<'_>) -> (Option<Vec<u8>>, R),
    ) -> Result<Option<R>, Refusal> {
        self.hold(key, hash).update(now_ms, change)
    }

    /// Removes all items. Items stored concurrently may remain. Used memory stays resident.
    pub fn clear(&self) {
        for shard in &self.shards {
            lock(shard).clear();
        }
    }

    /// Sums up all shards one by one; not a consistent snapshot if other threads are active.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats { fixed_bytes: self.fixed_bytes, ..Stats::default() };
        for shard in &self.shards {
            sum = sum.plus(&lock(shard).stats());
        }
        sum
    }

    /// Sets all counts of operations to 0.
    pub fn reset_stats(&self) {
        self.shards.iter().for_each(|shard| lock(shard).reset_stats());
    }

    /// Panics if an invariant is violated. Slow, for tests.
    pub fn audit(&self) {
        self.shards.iter().for_each(|shard| lock(shard).audit());
    }

    pub(crate) fn check(&self, key: &[u8], value_bytes: usize) -> Result<(), Refusal> {
        if key.is_empty() {
            return Err(Refusal::KeyEmpty);
        }
        if key.len() > self.key_bytes_max {
            return Err(Refusal::KeyTooLong { bytes: key.len(), limit: self.key_bytes_max });
        }
        if value_bytes > self.value_bytes_max {
            return Err(Refusal::ValueTooLong { bytes: value_bytes, limit: self.value_bytes_max });
        }
        Ok(())
    }
}

/// Ignores poisoning: shards do not panic, and after `use_it` only use marks change.
fn lock(shard: &Locked) -> MutexGuard<'_, Shard> {
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}
