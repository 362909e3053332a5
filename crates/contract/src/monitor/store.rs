//! Where service entries are kept.

use std::borrow::Cow;

pub use super::log::Key;
use super::log::{BYTES_MAX, Log};

/// Where service entries are kept: bytes by key. What a store forgets costs precision of blame, never a call.
///
/// Names are endpoints, services, labels and addresses; entries refer to them by number.
pub trait Store {
    /// The entry of a key, and that it was used `now_s`; `None`: there is none, or it has expired.
    fn get(&mut self, key: &Key, now_s: u64) -> Option<Cow<'_, [u8]>>;

    /// Keeps an entry in the place of the one before it.
    fn put(&mut self, key: &Key, entry: &[u8], now_s: u64);

    /// Keeps a name. Numbers are given from 0 without a gap.
    fn put_name(&mut self, number: u32, name: &str);

    /// Every name, by its number.
    fn names(&mut self) -> Vec<String>;

    /// Shows every entry that has not expired.
    fn each(&mut self, now_s: u64, show: &mut dyn FnMut(&Key, &[u8]));
}

/// A store in memory with a bound in bytes. What is to leave is chosen by second chance: what was used since it was last
/// looked at stays once more. Source: Corbató, "A Paging Experiment with the Multics System", 1968.
#[derive(Debug)]
pub struct MemoryStore {
    log: Log,
    names: Vec<String>,
    bytes_max: usize,
    expire_after_s: Option<u64>,
    evicted: u64,
}

impl MemoryStore {
    /// A store of at most `bytes_max` bytes and at most 2 GiB, names not counted, that forgets what was not used for `expire_after_s` seconds.
    pub fn new(bytes_max: usize, expire_after_s: Option<u64>) -> Self {
        let bytes_max = bytes_max.min(BYTES_MAX);
        Self { log: Log::new(bytes_max), names: Vec::new(), bytes_max, expire_after_s, evicted: 0 }
    }

    /// How many entries there are, expired ones that were not swept included.
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes that entries take, with what finding them and room for more of them does.
    pub fn bytes(&self) -> usize {
        self.log.bytes()
    }

    /// How many entries had to leave for want of room.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Has another bound from now on; one that is lower holds when the next entry is put.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max.min(BYTES_MAX);
    }

    /// The entry of a key, which is not used by this, whether it has expired or not.
    pub fn peek(&self, key: &Key) -> Option<&[u8]> {
        Some(self.log.at(self.log.find(key)?)?.value)
    }

    /// Every entry that is here, whether it has expired or not.
    pub fn entries(&self) -> impl Iterator<Item = (Key, &[u8])> {
        self.log.records().map(|record| (record.key, record.value))
    }

    /// Drops what has expired.
    pub fn sweep(&mut self, now_s: u64) {
        let after = self.expire_after_s;
        for _ in 0..self.log.segments() {
            self.log.recycle(&mut |record| (!expired(record.used_s, now_s, after)).then_some(record.again));
        }
    }

    fn shrink(&mut self, keep: &Key) {
        // What stays is not used again by then, so that a second round ends it.
        while self.log.bytes() > self.bytes_max && self.log.segments() > 1 {
            let evicted = &mut self.evicted;
            self.log.recycle(&mut |record| {
                let stays = record.again || record.key == *keep;
                *evicted += u64::from(!stays);
                stays.then_some(false)
            });
        }
    }
}

fn expired(used_s: u32, now_s: u64, after_s: Option<u64>) -> bool {
    after_s.is_some_and(|after_s| now_s.saturating_sub(u64::from(used_s)) > after_s)
}

/// Seconds as they are kept, which is until 2106 where they are since 1970.
fn short(now_s: u64) -> u32 {
    u32::try_from(now_s).unwrap_or(u32::MAX)
}

impl Store for MemoryStore {
    fn get(&mut self, key: &Key, now_s: u64) -> Option<Cow<'_, [u8]>> {
        let place = self.log.find(key)?;
        if expired(self.log.at(place)?.used_s, now_s, self.expire_after_s) {
            return None;
        }
        self.log.touch(place, short(now_s));
        Some(Cow::Borrowed(self.log.at(place)?.value))
    }

    fn put(&mut self, key: &Key, entry: &[u8], now_s: u64) {
        let is_kept = self.log.put(key, entry, short(now_s));
        self.evicted += u64::from(!is_kept);
        self.shrink(key);
    }

    fn put_name(&mut self, number: u32, name: &str) {
        assert_eq!(number as usize, self.names.len(), "names are numbered without a gap");
        self.names.push(name.to_owned());
    }

    fn names(&mut self) -> Vec<String> {
        self.names.clone()
    }

    fn each(&mut self, now_s: u64, show: &mut dyn FnMut(&Key, &[u8])) {
        let after = self.expire_after_s;
        let live = self.log.records().filter(|record| !expired(record.used_s, now_s, after));
        live.for_each(|record| show(&record.key, record.value));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> Key {
        [number; 12]
    }

    #[test]
    fn the_bound_holds_and_what_is_used_stays() {
        let mut store = MemoryStore::new(4096, None);
        for number in 0..200 {
            store.put(&key(number), &[number; 60], 0);
            assert!(store.get(&key(0), 0).is_some(), "used all the time, gone after {number}");
            assert_eq!(store.peek(&key(number)), Some(&[number; 60][..]));
            assert!(store.bytes() <= 4096, "{store:?}");
        }
        assert_eq!(store.evicted(), 200 - store.len() as u64);
        assert!(store.len() > 4096 / 150, "{store:?}");
        store.set_bytes_max(2048);
        store.put(&key(200), b"", 0);
        assert!(store.bytes() <= 2048, "{store:?}");
    }

    #[test]
    fn what_is_put_again_is_there_once() {
        let mut store = MemoryStore::new(1 << 20, None);
        store.put(&key(1), &[0; 100], 0);
        for length in [10, 10, 40_000, 5] {
            store.put(&key(1), &vec![length as u8; length], 0);
            assert_eq!(store.get(&key(1), 0).as_deref(), Some(&vec![length as u8; length][..]));
            assert_eq!((store.len(), store.entries().count()), (1, 1));
        }
    }

    #[test]
    fn garbage_goes() {
        let mut store = MemoryStore::new(usize::MAX, None);
        for round in 0..20_000_usize {
            store.put(&key((round % 10) as u8), &vec![1; 50 + round / 10 % 2], 0);
        }
        assert!(store.len() == 10 && store.bytes() < 1 << 18, "{store:?}");
    }

    #[test]
    fn what_was_not_used_expires() {
        let mut store = MemoryStore::new(1 << 20, Some(10));
        store.put(&key(1), b"a", 0);
        store.put(&key(2), b"b", 0);
        assert!(store.get(&key(1), 10).is_some());
        assert!(store.get(&key(2), 11).is_none());
        assert!(store.get(&key(1), 20).is_some(), "used at 10");
        store.sweep(20);
        assert_eq!((store.len(), store.peek(&key(1)), store.peek(&key(2))), (1, Some(&b"a"[..]), None));
        store.put(&key(2), b"b", 20);
        assert!(store.get(&key(2), 21).is_some());
    }

    proptest! {
        /// What is found is what was put last, and all of it is found where nothing had to leave.
        #[test]
        fn it_is_a_map(
            puts in prop::collection::vec((0..40_u8, 0..400_usize, any::<bool>()), 1..400),
            bytes_max in prop::sample::select(vec![600, 4096, 20_000, 1 << 20]),
        ) {
            let mut store = MemoryStore::new(bytes_max, None);
            let mut map = HashMap::new();
            for (at, (number, length, looks)) in puts.iter().enumerate() {
                let value = vec![at as u8; *length];
                store.put(&key(*number), &value, 0);
                map.insert(*number, value);
                prop_assert_eq!(store.peek(&key(*number)), Some(&map[number][..]));
                if *looks {
                    let other = (at * 7 % 40) as u8;
                    let found = store.get(&key(other), 0).map(Cow::into_owned);
                    prop_assert!(found.is_none() || found.as_ref() == map.get(&other));
                    prop_assert!(store.evicted() > 0 || found.as_ref() == map.get(&other));
                }
            }
            prop_assert!(store.entries().all(|(key, value)| map[&key[0]] == value));
            prop_assert_eq!(store.entries().count(), store.len());
        }
    }
}
