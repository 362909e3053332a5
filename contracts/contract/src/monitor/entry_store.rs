//! The interface of a store of service entries, and an implementation in memory.

use std::borrow::Cow;

pub use super::log_structured_map::Key;
use super::log_structured_map::{BYTES_MAX, Log};

/// A key-value store of service entries. Losing an entry makes blame less precise but never fails a call. Names are
/// endpoints, services, labels and addresses; entries refer to them by number.
pub trait Store {
    /// Returns the entry of a key and marks the entry as used. `None` if the entry is missing or expired.
    fn get(&mut self, key: &Key, now_s: u64) -> Option<Cow<'_, [u8]>>;

    /// Adds or replaces an entry.
    fn put(&mut self, key: &Key, entry: &[u8], now_s: u64);

    /// Adds a name, whose number is the number of earlier names.
    fn put_name(&mut self, name: &str);

    /// Returns all names, in the order of their numbers.
    fn names(&mut self) -> Vec<String>;

    /// Passes all entries that have not expired to `show`.
    fn each(&mut self, now_s: u64, show: &mut dyn FnMut(&Key, &[u8]));

    /// Whether the store may have forgotten an entry with this key. `false` is certain.
    fn may_have_forgotten(&self, key: &Key) -> bool;

    /// Number of entries forgotten so far.
    fn forgotten(&self) -> u64;
}

/// A store in memory with a maximum size. Evicts by second chance: an entry stays if it has been used since eviction
/// last considered it. Source: Corbató, "A Paging Experiment with the Multics System", 1968.
#[derive(Debug)]
pub struct MemoryStore {
    log: Log,
    names: Vec<String>,
    bytes_max: usize,
    expire_after_s: Option<u64>,
    evicted: u64,
    forgotten: Forgotten,
}

impl MemoryStore {
    /// Creates a store of at most `bytes_max` bytes, up to 2 GiB, not counting names. Entries expire if unused for more
    /// than `expire_after_s` seconds, or never if that is `None`.
    pub fn new(bytes_max: usize, expire_after_s: Option<u64>) -> Self {
        let bytes_max = bytes_max.min(BYTES_MAX);
        let forgotten = Forgotten::new(bytes_max / 32);
        Self { log: Log::new(bytes_max), names: Vec::new(), bytes_max, expire_after_s, evicted: 0, forgotten }
    }

    /// Memory for entries, in bytes, including the index and spare room.
    pub fn bytes(&self) -> usize {
        self.log.bytes() + self.forgotten.bits.len()
    }

    /// Treats every missing key as forgotten, for a store whose earlier entries are lost.
    pub fn forget_everything(&mut self) {
        self.forgotten.insert_everything();
    }

    /// Changes the maximum memory, in bytes, up to 2 GiB. A lower maximum takes effect with the next `put`.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max.min(BYTES_MAX);
    }

    /// Returns the entry of a key, even if expired, without marking it as used. `None` if there is none.
    pub fn peek(&self, key: &Key) -> Option<&[u8]> {
        Some(self.log.at(self.log.find(key)?)?.value)
    }

    /// Returns all entries with their keys, including expired ones.
    pub fn entries(&self) -> impl Iterator<Item = (Key, &[u8])> {
        self.log.records().map(|record| (record.key, record.value))
    }

    /// Like [`Store::put`], but evicted keys do not count as forgotten, because a file may have them.
    pub fn put_evicting(&mut self, key: &Key, entry: &[u8], now_s: u64) {
        self.put_within(self.bytes_max, key, entry, now_s, false);
    }

    fn put_within(&mut self, bytes_max: usize, key: &Key, entry: &[u8], now_s: u64, forgets: bool) {
        let Self { log, evicted, forgotten, .. } = self;
        log.put(key, entry, short(now_s));
        // Kept records are marked as unused, so the loop ends in the second round at the latest.
        while log.bytes() > bytes_max && log.segments.len() > 1 {
            log.recycle(&mut |record| {
                let stays = record.again || record.key == *key;
                if !stays {
                    *evicted += 1;
                    if forgets {
                        forgotten.insert(&record.key);
                    }
                }
                stays.then_some(false)
            });
        }
    }
}

fn expired(used_s: u32, now_s: u64, after_s: Option<u64>) -> bool {
    after_s.is_some_and(|after_s| now_s.saturating_sub(u64::from(used_s)) > after_s)
}

/// Seconds in 32 bits, enough until 2106.
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
        let before = self.log.find(key).and_then(|place| self.log.at(place));
        let is_reborn = before.is_some_and(|record| expired(record.used_s, now_s, self.expire_after_s));
        self.evicted += u64::from(is_reborn);
        self.put_within(self.bytes_max.saturating_sub(self.forgotten.bytes), key, entry, now_s, true);
    }

    fn put_name(&mut self, name: &str) {
        self.names.push(name.to_owned());
    }

    fn names(&mut self) -> Vec<String> {
        self.names.clone()
    }

    fn each(&mut self, now_s: u64, show: &mut dyn FnMut(&Key, &[u8])) {
        let live = self.log.records().filter(|record| !expired(record.used_s, now_s, self.expire_after_s));
        live.for_each(|record| show(&record.key, record.value));
    }

    fn may_have_forgotten(&self, key: &Key) -> bool {
        self.log.find(key).is_some() || self.forgotten.may_have(key)
    }

    fn forgotten(&self) -> u64 {
        self.evicted
    }
}

/// Maximum size of a [`Forgotten`] filter, in bytes.
const FILTER_BYTES_MAX: usize = 1 << 20;

/// A filter of the keys of forgotten entries, without false negatives. With 512 KiB and 600,000 keys, 6 % of other keys
/// are false positives. Source: Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Bits of the filter, allocated with the first key.
    bits: Vec<u8>,
    /// Memory in use once the filter has a key, in bytes.
    bytes: usize,
    is_everything: bool,
}

impl Forgotten {
    /// Creates an empty filter of `bytes` bytes, but at least 64 B and at most 1 MiB, rounded up to a power of two.
    pub fn new(bytes: usize) -> Self {
        Self { bits: Vec::new(), bytes: bytes.clamp(64, FILTER_BYTES_MAX).next_power_of_two(), is_everything: false }
    }

    /// Adds the key of a forgotten entry.
    pub fn insert(&mut self, key: &Key) {
        if !self.is_everything {
            self.bits.resize(self.bytes, 0);
            for at in self.places(key) {
                self.bits[at / 8] |= 1 << (at % 8);
            }
        }
    }

    /// Adds all keys, for a store that does not know which entries it lost.
    pub fn insert_everything(&mut self) {
        self.bits = Vec::new();
        self.is_everything = true;
    }

    /// Whether the entry of a key may have been forgotten. `false` is certain.
    pub fn may_have(&self, key: &Key) -> bool {
        self.is_everything
            || !self.bits.is_empty() && self.places(key).iter().all(|at| self.bits[at / 8] & 1 << (at % 8) != 0)
    }

    /// Encodes the filter: nothing if it is empty, one byte if it has all keys, otherwise its bits.
    pub fn encode(&self) -> &[u8] {
        if self.is_everything { &[1] } else { &self.bits }
    }

    /// Decodes the output of [`Forgotten::encode`] for a filter of this size. Any other input means all keys.
    pub fn decode(&self, bytes: &[u8]) -> Self {
        match bytes {
            [] => self.clone(),
            bits if bits.len() == self.bytes => Self { bits: bits.to_vec(), ..*self },
            _ => Self { bits: Vec::new(), is_everything: true, ..*self },
        }
    }

    fn places(&self, key: &Key) -> [usize; 2] {
        let half = |at: usize| u32::from_le_bytes([key[at], key[at + 1], key[at + 2], key[at + 3]]) as usize;
        [0, 8].map(|at| half(at) % (self.bytes * 8))
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
    fn evicts_unused_entries_at_the_bound() {
        let mut store = MemoryStore::new(4096, None);
        for number in 0..200 {
            store.put(&key(number), &[number; 60], 0);
            assert!(store.get(&key(0), 0).is_some(), "used all the time, gone after {number}");
            assert_eq!(store.peek(&key(number)), Some(&[number; 60][..]));
            assert!(store.bytes() <= 4096, "{store:?}");
        }
        assert_eq!(store.forgotten(), 200 - store.log.len() as u64);
        assert!(store.log.len() > 4096 / 150, "{store:?}");
        store.set_bytes_max(2048);
        store.put(&key(200), b"", 0);
        assert!(store.bytes() <= 2048, "{store:?}");
    }

    #[test]
    fn put_replaces_an_entry() {
        let mut store = MemoryStore::new(1 << 20, None);
        store.put(&key(1), &[0; 100], 0);
        for length in [10, 10, 40_000, 5] {
            store.put(&key(1), &vec![length as u8; length], 0);
            assert_eq!(store.get(&key(1), 0).as_deref(), Some(&vec![length as u8; length][..]));
            assert_eq!((store.log.len(), store.entries().count()), (1, 1));
        }
    }

    #[test]
    fn garbage_is_collected() {
        let mut store = MemoryStore::new(usize::MAX, None);
        for round in 0..20_000_usize {
            store.put(&key((round % 10) as u8), &vec![1; 50 + round / 10 % 2], 0);
        }
        assert!(store.log.len() == 10 && store.bytes() < 1 << 18, "{store:?}");
    }

    #[test]
    fn unused_entries_expire() {
        let mut store = MemoryStore::new(1 << 20, Some(10));
        store.put(&key(1), b"a", 0);
        store.put(&key(2), b"b", 0);
        assert!(store.get(&key(1), 10).is_some());
        assert!(store.get(&key(2), 11).is_none());
        assert!(store.get(&key(1), 20).is_some(), "used at 10");
        assert!(store.may_have_forgotten(&key(2)) && !store.may_have_forgotten(&key(3)));
        store.put(&key(2), b"b", 20);
        assert!(store.get(&key(2), 21).is_some());
        assert_eq!(store.forgotten(), 1);
    }

    #[test]
    fn remembers_which_keys_it_forgot() {
        let mut store = MemoryStore::new(4096, None);
        (0..100).for_each(|number| store.put(&key(number), &[number; 60], 0));
        let gone = (0..100).filter(|number| store.peek(&key(*number)).is_none()).collect::<Vec<_>>();
        assert!(gone.len() > 50 && store.forgotten() == gone.len() as u64);
        assert!(gone.iter().all(|number| store.may_have_forgotten(&key(*number))));
        assert!((100..=255).any(|number| !store.may_have_forgotten(&key(number))));
    }

    proptest! {
        #[test]
        fn store_behaves_like_a_map(
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
                    prop_assert!(store.forgotten() > 0 || found.as_ref() == map.get(&other));
                }
            }
            prop_assert!(store.entries().all(|(key, value)| map[&key[0]] == value));
            prop_assert_eq!(store.entries().count(), store.log.len());
        }
    }
}

#[cfg(test)]
mod filter_tests {
    use super::*;

    /// A key from SplitMix64, so that it looks like a hash.
    fn key(number: u64) -> Key {
        let mix = |number: u64| {
            let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)).to_le_bytes()
        };
        let (first, second) = (mix(number), mix(number ^ 0xffff_0000));
        std::array::from_fn(|at| if at < 8 { first[at] } else { second[at - 8] })
    }

    #[test]
    fn has_no_false_negatives_and_few_false_positives() {
        let mut filter = Forgotten::new(512 << 10);
        assert!((0..100).all(|number| !filter.may_have(&key(number))) && filter.bits.is_empty());
        (0..600_000).for_each(|number| filter.insert(&key(number)));
        assert!((0..600_000).all(|number| filter.may_have(&key(number))));
        let mistaken = (600_000..700_000).filter(|number| filter.may_have(&key(*number))).count();
        assert!((4_000..8_000).contains(&mistaken), "{mistaken} of 100,000");
    }

    #[test]
    fn survives_encoding() {
        let empty = Forgotten::new(1024);
        let mut some = empty.clone();
        some.insert(&key(1));
        let mut everything = empty.clone();
        everything.insert_everything();
        for filter in [&empty, &some, &everything] {
            assert_eq!(empty.decode(filter.encode()), *filter);
        }
        assert!(empty.decode(&[0; 17]).may_have(&key(2)), "a damaged filter counts as everything");
    }
}
