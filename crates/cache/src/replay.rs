//! What would a cache have kept? Requests replayed against a [`Cache`], and what is known of the best possible.

use std::collections::{BTreeSet, HashMap};

use crate::{Cache, Meta};

/// A request for an item, which is stored where it is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which key.
    pub id: u64,
    /// Length of the key's text, in bytes; 8 at least are used, so that keys differ.
    pub key_bytes: u32,
    /// Length of the value, in bytes.
    pub value_bytes: u32,
}

impl Request {
    fn bytes(&self) -> u64 {
        u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }
}

/// How often and for how many bytes the cache had the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitRatio {
    /// Requests counted.
    pub requests: u64,
    /// Those answered by the cache.
    pub hits: u64,
    /// Bytes asked for: keys and values.
    pub bytes: u64,
    /// Those of requests that the cache answered.
    pub hit_bytes: u64,
}

impl HitRatio {
    /// Hits of requests, NaN of none.
    pub fn objects(&self) -> f64 {
        self.hits as f64 / self.requests as f64
    }

    /// Bytes of hits of bytes asked for, NaN of none.
    pub fn bytes(&self) -> f64 {
        self.hit_bytes as f64 / self.bytes as f64
    }

    fn count(&mut self, request: &Request, is_hit: bool) {
        self.requests += 1;
        self.hits += u64::from(is_hit);
        self.bytes += request.bytes();
        self.hit_bytes += if is_hit { request.bytes() } else { 0 };
    }
}

/// Asks `cache` for each request and stores what it does not find; counts from request `warm_up` on.
///
/// The text of a key begins with its number and the value is zeros: a cache keeps no other books for other bytes.
pub fn replay(cache: &Cache, requests: impl IntoIterator<Item = Request>, warm_up: u64) -> HitRatio {
    let mut ratio = HitRatio::default();
    let mut text = vec![b'.'; cache.key_bytes_max().max(8)];
    let zeros = vec![0; cache.value_bytes_max()];
    for (number, request) in requests.into_iter().enumerate() {
        text[..8].copy_from_slice(&request.id.to_le_bytes());
        let key = &text[..(request.key_bytes as usize).clamp(8, cache.key_bytes_max().max(8))];
        let hash = cache.hash(key);
        let is_hit = cache.get(key, hash, 0, |_| ()).is_some();
        if !is_hit {
            let value = &zeros[..(request.value_bytes as usize).min(zeros.len())];
            // What is refused is missed again; that is the cache's doing and counted as such.
            let _ = cache.set(key, hash, value, Meta::default(), 0);
        }
        if number as u64 >= warm_up {
            ratio.count(&request, is_hit);
        }
    }
    ratio
}

/// The hit ratio of a clairvoyant, counted from request `warm_up` on: where there is no room, whatever is asked for
/// latest leaves (Belady 1966), the newcomer included; an item takes key, value and `overhead_bytes`.
///
/// With `by_size`, whoever has the longest way times bytes until its next use leaves instead: no bound either, but far
/// nearer to one where sizes differ.
pub fn clairvoyant(
    requests: &[Request],
    capacity_bytes: u64,
    overhead_bytes: u64,
    by_size: bool,
    warm_up: u64,
) -> HitRatio {
    let mut next = vec![u64::MAX; requests.len()];
    let mut last = HashMap::new();
    for (number, request) in requests.iter().enumerate().rev() {
        if let Some(later) = last.insert(request.id, number as u64) {
            next[number] = later;
        }
    }
    let mut ratio = HitRatio::default();
    // By what is worst to keep: of an item its next use, of a sized one a class of bytes and then its next use.
    let mut held: Vec<BTreeSet<(u64, u64)>> = vec![BTreeSet::new(); if by_size { 128 } else { 1 }];
    let mut sizes: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut used = 0;
    let class = |bytes: u64| if by_size { (4.0 * (bytes as f64).log2()) as usize % 128 } else { 0 };
    for (number, request) in requests.iter().enumerate() {
        let bytes = request.bytes() + overhead_bytes;
        let found = sizes.remove(&request.id);
        if let Some((bytes, _)) = found {
            held[class(bytes)].remove(&(number as u64, request.id));
            used -= bytes;
        }
        if number as u64 >= warm_up {
            ratio.count(request, found.is_some());
        }
        if next[number] == u64::MAX || bytes > capacity_bytes {
            continue;
        }
        held[class(bytes)].insert((next[number], request.id));
        sizes.insert(request.id, (bytes, next[number]));
        used += bytes;
        while used > capacity_bytes {
            let worst = held.iter().filter_map(|set| set.last().copied()).max_by(|one, other| {
                let cost = |held: &(u64, u64)| {
                    (held.0 - number as u64) as f64 * if by_size { sizes[&held.1].0 as f64 } else { 1.0 }
                };
                cost(one).total_cmp(&cost(other))
            });
            let (at, id) = worst.expect("what is used is held");
            let (bytes, _) = sizes.remove(&id).expect("who is held has a size");
            held[class(bytes)].remove(&(at, id));
            used -= bytes;
        }
    }
    ratio
}
