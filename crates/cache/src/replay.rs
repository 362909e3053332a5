//! Replays requests against a [`Cache`], and computes the hit ratio of a clairvoyant policy.

use std::collections::{BTreeSet, HashMap};

use crate::{Cache, Meta, Mode};

/// Kind of an operation on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads the item; a miss stores it if [`Rules::fill`] is set.
    Get,
    /// Stores the item.
    Set,
    /// Deletes the item.
    Delete,
    /// Reads the item, then stores it whether it was found or not.
    ReadModifyWrite,
}

impl Action {
    fn reads(self) -> bool {
        matches!(self, Action::Get | Action::ReadModifyWrite)
    }
}

/// One operation of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What the operation does with the item.
    pub action: Action,
    /// Number that identifies the item's key.
    pub id: u64,
    /// Size of the key in bytes. [`replay`] uses at least 8, so that keys differ.
    pub key_bytes: u32,
    /// Size of the value that a store writes, in bytes.
    pub value_bytes: u32,
}

impl Operation {
    fn bytes(&self) -> u64 {
        u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }
}

/// Rules for [`replay`] and [`clairvoyant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether a missed [`Action::Get`] stores the item.
    pub fill: bool,
    /// Number of operations before counting starts.
    pub warm_up: u64,
    /// Number of clients that take turns, one operation each. A client stores a missed item in its next turn, after all
    /// other clients have had a turn. [`clairvoyant`] ignores the number and stores immediately.
    pub clients: usize,
    /// Flags of every stored item. Nonzero flags take 4 bytes per item.
    pub flags: u32,
}

impl Rules {
    /// Rules for one client that stores missed items.
    pub fn fill(warm_up: u64) -> Rules {
        Rules { fill: true, warm_up, clients: 1, flags: 0 }
    }
}

/// Counts of hits and misses, from which the hit ratios by requests and by bytes follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitRatio {
    /// Reads after the warm-up.
    pub requests: u64,
    /// Reads after the warm-up that found the item.
    pub hits: u64,
    /// Bytes of keys and values of all counted reads.
    pub bytes: u64,
    /// Bytes of keys and values of the hits.
    pub hit_bytes: u64,
}

impl HitRatio {
    /// Hits per request; NaN without requests.
    pub fn objects(&self) -> f64 {
        self.hits as f64 / self.requests as f64
    }

    /// Bytes of hits per byte requested; NaN without requests.
    pub fn bytes(&self) -> f64 {
        self.hit_bytes as f64 / self.bytes as f64
    }

    fn count(&mut self, operation: &Operation, is_hit: bool) {
        self.requests += 1;
        self.hits += u64::from(is_hit);
        self.bytes += operation.bytes();
        self.hit_bytes += if is_hit { operation.bytes() } else { 0 };
    }
}

/// Replays operations against `cache` and counts reads. As in a measured load, stores caused by the warm-up finish
/// before counting starts. Each key starts with its number, and values are zeros: contents do not affect memory use.
pub fn replay(cache: &Cache, operations: impl IntoIterator<Item = Operation>, rules: Rules) -> HitRatio {
    let mut replay = Replay::new(cache, rules.flags);
    let mut ratio = HitRatio::default();
    let mut caused: Vec<Option<Operation>> = vec![None; rules.clients.max(1)];
    let mut turn = 0;
    for (number, operation) in operations.into_iter().enumerate() {
        if number as u64 == rules.warm_up {
            caused.iter_mut().filter_map(Option::take).for_each(|operation| replay.store(&operation));
        }
        // A client with a pending store performs it and waits for its next turn.
        let client = loop {
            let client = turn % caused.len();
            turn += 1;
            let Some(operation) = caused[client].take() else { break client };
            replay.store(&operation);
        };
        match operation.action {
            Action::Set => replay.store(&operation),
            Action::Delete => {
                let key = write_key(&mut replay.text, &operation);
                cache.hold(key).delete(0);
            }
            Action::Get | Action::ReadModifyWrite => {
                let key = write_key(&mut replay.text, &operation);
                let is_hit = cache.hold(key).get(0).is_some();
                if number as u64 >= rules.warm_up {
                    ratio.count(&operation, is_hit);
                }
                let causes = operation.action == Action::ReadModifyWrite || !is_hit && rules.fill;
                if causes && caused.len() == 1 {
                    replay.store(&operation);
                } else if causes {
                    caused[client] = Some(operation);
                }
            }
        }
    }
    ratio
}

struct Replay<'a> {
    cache: &'a Cache,
    meta: Meta,
    text: Vec<u8>,
    zeros: Vec<u8>,
}

impl Replay<'_> {
    fn new(cache: &Cache, flags: u32) -> Replay<'_> {
        let (text, zeros) = (vec![b'.'; cache.key_bytes_max.max(8)], vec![0; cache.value_bytes_max]);
        Replay { cache, meta: Meta { flags, ..Meta::default() }, text, zeros }
    }

    fn store(&mut self, operation: &Operation) {
        let key = write_key(&mut self.text, operation);
        let value = &self.zeros[..(operation.value_bytes as usize).min(self.zeros.len())];
        // If the store is refused, the next get of the item is a miss, which counts against the cache.
        let _ = self.cache.hold(key).store(Mode::Set, value, self.meta, 0);
    }
}

fn write_key<'t>(text: &'t mut [u8], operation: &Operation) -> &'t [u8] {
    text[..8].copy_from_slice(&operation.id.to_le_bytes());
    &text[..(operation.key_bytes as usize).clamp(8, text.len())]
}

/// Computes the hit ratio of a clairvoyant policy. If there is no room, the policy evicts the item whose next request
/// is farthest in the future, possibly the new one (Belady 1966). An item takes its key, its value and
/// `overhead_bytes`. Items that are overwritten or deleted before their next read are not kept.
/// With `by_size`, the policy evicts the item with the largest product of bytes and time until its next use. If sizes
/// differ, neither rule gives an upper bound on hits, but `by_size` comes far closer.
pub fn clairvoyant(
    operations: impl IntoIterator<Item = Operation>,
    capacity_bytes: u64,
    overhead_bytes: u64,
    by_size: bool,
    rules: Rules,
) -> HitRatio {
    let operations = operations.into_iter().collect::<Vec<_>>();
    let mut next = vec![u64::MAX; operations.len()];
    let mut last: HashMap<u64, usize> = HashMap::new();
    for (number, operation) in operations.iter().enumerate().rev() {
        if let Some(later) = last.insert(operation.id, number)
            && operations[later].action.reads()
        {
            next[number] = later as u64;
        }
    }
    let mut ratio = HitRatio::default();
    // Items by next use; with `by_size`, one set per size class.
    let mut held: Vec<BTreeSet<(u64, u64)>> = vec![BTreeSet::new(); if by_size { 128 } else { 1 }];
    let mut sizes: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut used = 0;
    let class = |bytes: u64| if by_size { (4.0 * (bytes as f64).log2()) as usize % 128 } else { 0 };
    for (number, operation) in operations.iter().enumerate() {
        let &Operation { action, id, .. } = operation;
        let mut bytes = operation.bytes() + overhead_bytes;
        let found = sizes.remove(&id);
        if let Some((there, _)) = found {
            held[class(there)].remove(&(number as u64, id));
            used -= there;
            if action == Action::Get {
                bytes = there;
            }
        }
        if action.reads() && number as u64 >= rules.warm_up {
            ratio.count(operation, found.is_some());
        }
        let is_stored = match action {
            Action::Get => found.is_some() || rules.fill,
            Action::Set | Action::ReadModifyWrite => true,
            Action::Delete => false,
        };
        if !is_stored || next[number] == u64::MAX || bytes > capacity_bytes {
            continue;
        }
        held[class(bytes)].insert((next[number], id));
        sizes.insert(id, (bytes, next[number]));
        used += bytes;
        while used > capacity_bytes {
            let worst = held.iter().filter_map(|set| set.last().copied()).max_by(|one, other| {
                let cost = |held: &(u64, u64)| {
                    (held.0 - number as u64) as f64 * if by_size { sizes[&held.1].0 as f64 } else { 1.0 }
                };
                cost(one).total_cmp(&cost(other))
            });
            let (at, id) = worst.expect("used bytes belong to a held item");
            let (bytes, _) = sizes.remove(&id).expect("every held item has a size");
            held[class(bytes)].remove(&(at, id));
            used -= bytes;
        }
    }
    ratio
}
