//! Where service entries are kept.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// What an entry is found by: a hash of endpoint, service and index. The entry itself tells whether it is the right one.
pub type Key = [u8; 12];

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
    entries: HashMap<Key, Slot>,
    /// Every key of `entries` once, in the order in which they are looked at.
    queue: VecDeque<Key>,
    names: Vec<String>,
    bytes: usize,
    bytes_max: usize,
    expire_after_s: Option<u64>,
    evicted: u64,
}

#[derive(Debug)]
struct Slot {
    entry: Box<[u8]>,
    used_s: u64,
    again: bool,
}

/// What an entry takes beside its own bytes: the key twice, and what map and queue need for it. An estimate.
const SLOT_BYTES: usize = 96;

impl MemoryStore {
    /// A store of at most `bytes_max` bytes, names not counted, that forgets what was not used for `expire_after_s` seconds.
    pub fn new(bytes_max: usize, expire_after_s: Option<u64>) -> Self {
        Self {
            entries: HashMap::new(),
            queue: VecDeque::new(),
            names: Vec::new(),
            bytes: 0,
            bytes_max,
            expire_after_s,
            evicted: 0,
        }
    }

    /// How many entries there are, expired ones that were not swept included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of entries with what keeping them takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many entries had to leave for want of room.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Drops what has expired.
    pub fn sweep(&mut self, now_s: u64) {
        let after = self.expire_after_s;
        let mut freed = 0;
        self.entries.retain(|_, slot| {
            let stays = !expired(slot.used_s, now_s, after);
            freed += if stays { 0 } else { cost(&slot.entry) };
            stays
        });
        self.bytes -= freed;
        self.queue.retain(|key| self.entries.contains_key(key));
    }

    fn shrink(&mut self, keep: &Key) {
        while self.bytes > self.bytes_max && self.entries.len() > 1 {
            let Some(key) = self.queue.pop_front() else { return };
            let slot = self.entries.get_mut(&key).expect("the queue has the keys of the map");
            if slot.again || key == *keep {
                slot.again = false;
                self.queue.push_back(key);
            } else {
                let slot = self.entries.remove(&key).expect("it was there");
                self.bytes -= cost(&slot.entry);
                self.evicted += 1;
            }
        }
    }
}

fn cost(entry: &[u8]) -> usize {
    entry.len() + SLOT_BYTES
}

fn expired(used_s: u64, now_s: u64, after_s: Option<u64>) -> bool {
    after_s.is_some_and(|after_s| now_s.saturating_sub(used_s) > after_s)
}

impl Store for MemoryStore {
    fn get(&mut self, key: &Key, now_s: u64) -> Option<Cow<'_, [u8]>> {
        let after = self.expire_after_s;
        let slot = self.entries.get_mut(key).filter(|slot| !expired(slot.used_s, now_s, after))?;
        slot.used_s = slot.used_s.max(now_s);
        slot.again = true;
        Some(Cow::Borrowed(&slot.entry))
    }

    fn put(&mut self, key: &Key, entry: &[u8], now_s: u64) {
        let slot = Slot { entry: entry.into(), used_s: now_s, again: false };
        self.bytes += cost(entry);
        match self.entries.insert(*key, slot) {
            Some(before) => self.bytes -= cost(&before.entry),
            None => self.queue.push_back(*key),
        }
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
        let live = self.entries.iter().filter(|(_, slot)| !expired(slot.used_s, now_s, after));
        live.for_each(|(key, slot)| show(key, &slot.entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Key {
        [number; 12]
    }

    #[test]
    fn the_bound_holds_and_what_is_used_stays() {
        let mut store = MemoryStore::new(10 * (SLOT_BYTES + 4), None);
        for number in 0..200 {
            store.put(&key(number), &[number; 4], 0);
            assert!(store.get(&key(0), 0).is_some(), "used all the time, gone after {number}");
            assert!(store.bytes() <= 10 * (SLOT_BYTES + 4));
        }
        assert_eq!(store.len(), 10);
        assert_eq!(store.evicted(), 190);
        assert_eq!(store.queue.len(), 10);
    }

    #[test]
    fn what_is_put_again_is_counted_once() {
        let mut store = MemoryStore::new(1 << 20, None);
        store.put(&key(1), &[0; 100], 0);
        store.put(&key(1), &[1; 10], 0);
        assert_eq!((store.len(), store.bytes()), (1, SLOT_BYTES + 10));
        assert_eq!(store.get(&key(1), 0).as_deref(), Some(&[1; 10][..]));
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
        assert_eq!((store.len(), store.bytes(), store.queue.len()), (1, SLOT_BYTES + 1, 1));
        store.put(&key(2), b"b", 20);
        assert!(store.get(&key(2), 21).is_some());
    }
}
