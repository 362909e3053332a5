//! Several operations on one key as one atomic step.

use std::sync::MutexGuard;

use crate::cache::Cache;
use crate::config::{Item, Meta, Mode, Refusal};
use crate::shard::{Key, Shard};

/// A key whose shard stays locked, so that operations on it are atomic. Keep it short. The thread
/// that holds it must not use the cache otherwise: it would deadlock.
pub struct LockedKey<'c, 'k> {
    cache: &'c Cache,
    shard: MutexGuard<'c, Shard>,
    key: Key<'k>,
}

impl Cache {
    /// Locks a key for conditions beyond a single operation: a swap, a store that keeps the expiry,
    /// or a delete of one version.
    ///
    /// ```
    /// let cache = cache::Cache::new(cache::Config::new(1 << 20)).unwrap();
    /// let (key, now_ms) = (b"seat", 0);
    /// let mut held = cache.hold(key, cache.hash(key));
    /// let before = held.peek(now_ms, |item| item.value.to_vec());
    /// held.store(cache::Mode::Set, b"taken", cache::Meta::default(), now_ms).unwrap();
    /// assert_eq!(before, None);
    /// ```
    #[inline]
    pub fn hold<'c, 'k>(&'c self, key: &'k [u8], hash: u64) -> LockedKey<'c, 'k> {
        LockedKey { cache: self, shard: self.shard(hash), key: Key::new(key, hash) }
    }
}

impl LockedKey<'_, '_> {
    /// Like [`Cache::get`].
    #[inline]
    pub fn get<R>(&mut self, now_ms: u64, use_it: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        self.shard.get(self.key, now_ms, use_it)
    }

    /// Like [`Cache::peek`].
    pub fn peek<R>(&self, now_ms: u64, use_it: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        self.shard.peek(self.key, now_ms, use_it)
    }

    /// Like [`Cache::store`], with its errors.
    pub fn store(&mut self, mode: Mode, value: &[u8], meta: Meta, now_ms: u64) -> Result<u64, Refusal> {
        let checked = self.cache.check(self.key.bytes, value.len());
        if let (Mode::Set, Err(Refusal::ValueTooLong { .. })) = (mode, &checked) {
            self.shard.outdate(self.key, now_ms);
        }
        let limit = self.cache.value_bytes_max();
        let stored = checked.and_then(|()| self.shard.store(mode, self.key, value, meta, now_ms, limit));
        self.count_refusal(stored)
    }

    /// Like [`Cache::outdate`].
    pub fn outdate(&mut self, now_ms: u64) {
        self.shard.outdate(self.key, now_ms);
        self.shard.stats.refused += 1;
    }

    /// Like [`Cache::delete`].
    pub fn delete(&mut self, now_ms: u64) -> bool {
        self.shard.delete(self.key, now_ms)
    }

    /// Like [`Cache::update`], with its errors.
    pub fn update<R>(
        &mut self,
        now_ms: u64,
        change: impl FnOnce(Item<'_>) -> (Option<Vec<u8>>, R),
    ) -> Result<Option<R>, Refusal> {
        let updated = self.shard.update(self.key, now_ms, self.cache.value_bytes_max(), change);
        self.count_refusal(updated)
    }

    /// Like [`Cache::touch`], with its errors, but not a use of the item.
    pub fn expire(&mut self, expires_ms: u64, now_ms: u64) -> Result<bool, Refusal> {
        let expired = self.shard.expire(self.key, expires_ms, now_ms, false);
        self.count_refusal(expired)
    }

    /// Like [`Cache::touch`], with its errors.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn held_keys_behave_like_the_cache() {
        let cache = Cache::new(Config { versions: true, ..Config::new(1 << 20) }).unwrap();
        let key = b"key".as_slice();
        let hash = cache.hash(key);
        let mut held = cache.hold(key, hash);
        assert_eq!(held.store(Mode::Replace, b"a", Meta::default(), 1), Err(Refusal::NotStored));
        let version = held.store(Mode::Set, b"a", Meta { flags: 7, expires_ms: 9 }, 1).unwrap();
        assert_eq!(held.peek(1, |item| (item.version, item.flags)), Some((version, 7)));
        assert_eq!(held.touch(5, 1), Ok(true));
        assert_eq!(held.get(4, |item| item.expires_ms), Some(5));
        assert_eq!(held.get(5, |_| ()), None);
        held.store(Mode::Set, b"b", Meta::default(), 1).unwrap();
        drop(held);
        assert_eq!(cache.get(key, hash, 1, |item| item.value.to_vec()), Some(b"b".to_vec()));
        assert!(cache.delete(key, hash, 1));
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.stores, stats.deletes), (2, 1, 3, 1));
        let long = vec![0; cache.value_bytes_max() + 1];
        assert!(cache.hold(key, hash).store(Mode::Set, &long, Meta::default(), 1).is_err());
        assert_eq!(cache.stats().refused, 1);
        cache.audit();
    }
}
