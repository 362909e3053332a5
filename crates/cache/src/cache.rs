//! The cache: shards behind locks, and operations on locked keys.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use crate::config_and_errors::{Config, ConfigError, Item, Meta, Mode, Refusal};
use crate::shard::{Key, Leaving, Shard};
use crate::stats::Stats;

/// A shard on its own cache lines, to avoid false sharing.
#[repr(align(128))]
struct Locked(Mutex<Shard>);

/// A key-value cache with a memory limit, shared by threads.
///
/// The upper bits of a key's hash select its shard, and every operation holds the shard's lock. Operations on a key
/// therefore have a total order, and items are read and written whole.
/// ```
/// let cache = cache::Cache::new(cache::Config::new(1 << 20)).unwrap();
/// let (key, now_ms) = (b"answer", 0);
/// cache.hold(key).store(cache::Mode::Set, b"42", cache::Meta::default(), now_ms).unwrap();
/// assert_eq!(cache.hold(key).get(now_ms).map(|item| item.value.to_vec()), Some(b"42".to_vec()));
/// ```
pub struct Cache {
    shards: Box<[Locked]>,
    shift: u32,
    secrets: RapidSecrets,
    /// Maximum size of a key in bytes: [`Config::key_bytes_max`], or an eighth of a shard if that is less.
    pub key_bytes_max: usize,
    /// Maximum size of a value in bytes: [`Config::value_bytes_max`], or a quarter of a shard if that is less.
    pub value_bytes_max: usize,
    capacity_bytes: u64,
    fixed_bytes: u64,
}

impl Cache {
    /// Creates an empty cache, whose memory becomes resident as it is used. Fails if [`Config::check`] fails.
    pub fn new(config: Config) -> Result<Cache, ConfigError> {
        let count = config.shards();
        Cache::with_shards(config, count)
    }

    /// Creates a cache with `count` shards instead of [`Config::shards`], to measure the cost of shards. Fails like
    /// [`Cache::new`]. Panics if `count` is not a power of two or the memory is too small for that many shards.
    pub fn with_shards(config: Config, count: usize) -> Result<Cache, ConfigError> {
        config.check()?;
        assert!(count.is_power_of_two(), "the number of shards must be a power of two, not {count}");
        let own = size_of::<Cache>() as u64;
        let each = (config.memory_bytes() - own) / count as u64;
        let words = (each - size_of::<Locked>() as u64) / 4;
        assert!(words >= 1024, "{each} bytes are too few for a shard");
        let values_bytes_cap = config.values_only.map(|_| config.capacity_bytes / count as u64);
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

    /// Number of shards, a power of two.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Locks the shard of a key for one or more operations, which are atomic together. Dropping the result unlocks the
    /// shard. A `match` on an operation's result holds the lock in all arms, so bind that result to a variable first.
    #[inline]
    pub fn hold<'c, 'k>(&'c self, key: &'k [u8]) -> LockedKey<'c, 'k> {
        let hash = rapidhash_v3_seeded(key, &self.secrets);
        // With one shard the shift is 64, which `>>` does not allow.
        let number = hash.checked_shr(self.shift).unwrap_or(0);
        LockedKey { cache: self, shard: lock(&self.shards[number as usize]), key: Key::new(key, hash) }
    }

    /// Removes all items. Items stored concurrently may remain. Used memory stays resident.
    pub fn clear(&self) {
        self.shards.iter().for_each(|shard| lock(shard).clear());
    }

    /// Sums the statistics of all shards, one by one. The sum is not a consistent snapshot if other threads are active.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats { fixed_bytes: self.fixed_bytes, ..Stats::default() };
        self.shards.iter().for_each(|shard| lock(shard).add_stats(&mut sum));
        sum
    }

    /// Resets the counts of operations to 0. The byte counts remain.
    pub fn reset_stats(&self) {
        self.shards.iter().for_each(|shard| lock(shard).reset_stats());
    }

    /// Checks all shards and panics if an invariant is violated. Slow, for tests only.
    pub fn audit(&self) {
        self.shards.iter().for_each(|shard| lock(shard).audit());
    }
}

/// A key whose shard stays locked until this value is dropped, so that operations on the key are atomic. Until then,
/// its thread must not use the cache in any other way, because that may deadlock.
pub struct LockedKey<'c, 'k> {
    cache: &'c Cache,
    shard: MutexGuard<'c, Shard>,
    key: Key<'k>,
}

impl LockedKey<'_, '_> {
    /// Returns the item and counts a hit. If the key is absent or expired, counts a miss and returns `None`.
    #[inline]
    pub fn get(&mut self, now_ms: u64) -> Option<Item<'_>> {
        self.shard.get(self.key, now_ms)
    }

    /// Returns the key's item like [`Self::get`], but counts no hit, miss or use.
    pub fn peek(&self, now_ms: u64) -> Option<Item<'_>> {
        self.shard.peek(self.key, now_ms)
    }

    /// Stores an item if `mode` allows it, and returns its version, or 0 if the cache has no versions. An expired item
    /// is stored but never found. If there is no room, or the value of a [`Mode::Set`] is too long, the key's old item
    /// is removed so that readers do not get an outdated value. Source: memcached 1.6.18, `process_update_command`.
    pub fn store(&mut self, mode: Mode, value: &[u8], meta: Meta, now_ms: u64) -> Result<u64, Refusal> {
        let limit = self.cache.value_bytes_max;
        let stored = match self.key.bytes.len() {
            0 => Err(Refusal::KeyEmpty),
            bytes if bytes > self.cache.key_bytes_max => {
                Err(Refusal::KeyTooLong { bytes, limit: self.cache.key_bytes_max })
            }
            _ if value.len() > limit => {
                if mode == Mode::Set {
                    self.shard.remove(self.key, now_ms, Leaving::Replaced);
                }
                Err(Refusal::ValueTooLong { bytes: value.len(), limit })
            }
            _ => self.shard.store(mode, self.key, value, meta, now_ms, limit),
        };
        self.count_refusal(stored)
    }

    /// Removes the key's item and counts a refused store, for callers that rejected the key's new value as too long.
    pub fn outdate(&mut self, now_ms: u64) {
        self.shard.remove(self.key, now_ms, Leaving::Replaced);
        self.shard.stats.refused += 1;
    }

    /// Deletes the key's item and returns whether the key was present. An expired item counts as absent.
    pub fn delete(&mut self, now_ms: u64) -> bool {
        self.shard.remove(self.key, now_ms, Leaving::Deleted)
    }

    /// Replaces the value, for increments. `change` returns the new value (`None` keeps the old one) and a result
    /// for the caller. Returns `None` if the key is absent. The item keeps its [`Meta`].
    pub fn update<R>(
        &mut self,
        now_ms: u64,
        change: impl FnOnce(Item<'_>) -> (Option<Vec<u8>>, R),
    ) -> Result<Option<R>, Refusal> {
        let updated = self.shard.update(self.key, now_ms, self.cache.value_bytes_max, change);
        self.count_refusal(updated)
    }

    /// Sets the item's expiry like [`Self::touch`], but does not count a use.
    pub fn expire(&mut self, expires_ms: u64, now_ms: u64) -> Result<bool, Refusal> {
        let expired = self.shard.expire(self.key, expires_ms, now_ms, false);
        self.count_refusal(expired)
    }

    /// Sets the item's expiry (0 means never) and counts it as a use. Returns whether the key was present. Adding or
    /// removing an expiry changes the item's length and may fail like [`Self::store`].
    pub fn touch(&mut self, expires_ms: u64, now_ms: u64) -> Result<bool, Refusal> {
        let touched = self.shard.expire(self.key, expires_ms, now_ms, true);
        self.count_refusal(touched)
    }

    fn count_refusal<T>(&mut self, mut result: Result<T, Refusal>) -> Result<T, Refusal> {
        match &mut result {
            Err(Refusal::Full(capacity_bytes)) => *capacity_bytes = self.cache.capacity_bytes,
            Err(Refusal::KeyEmpty | Refusal::KeyTooLong { .. } | Refusal::ValueTooLong { .. }) => {}
            _ => return result,
        }
        self.shard.stats.refused += 1;
        result
    }
}

/// Locks a shard. Ignores poisoning: shards do not panic, and callbacks run while the shard is in a valid state.
fn lock(shard: &Locked) -> MutexGuard<'_, Shard> {
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn held_keys_behave_like_the_cache() {
        let cache = Cache::new(Config { versions: true, ..Config::new(1 << 20) }).unwrap();
        let key = b"key".as_slice();
        let mut held = cache.hold(key);
        assert_eq!(held.store(Mode::Replace, b"a", Meta::default(), 1), Err(Refusal::NotStored));
        let version = held.store(Mode::Set, b"a", Meta { flags: 7, expires_ms: 9 }, 1).unwrap();
        assert_eq!(held.peek(1).map(|item| (item.version, item.meta.flags)), Some((version, 7)));
        assert_eq!(held.touch(5, 1), Ok(true));
        assert_eq!(held.get(4).map(|item| item.meta.expires_ms), Some(5));
        assert_eq!(held.get(5), None);
        held.store(Mode::Set, b"b", Meta::default(), 1).unwrap();
        drop(held);
        assert_eq!(cache.hold(key).get(1).map(|item| item.value.to_vec()), Some(b"b".to_vec()));
        assert!(cache.hold(key).delete(1));
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.stores, stats.deletes), (2, 1, 3, 1));
        let long = vec![0; cache.value_bytes_max + 1];
        assert!(cache.hold(key).store(Mode::Set, &long, Meta::default(), 1).is_err());
        assert_eq!(cache.stats().refused, 1);
        cache.audit();
    }
}
