//! What would a cache have kept? Requests replayed against a [`Cache`], and what is known of the best possible.

use std::collections::{BTreeSet, HashMap};

use crate::{Cache, Meta};

/// What is done with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is read, and stored where it was not found and [`Rules::fill`] holds.
    Get,
    /// It is stored.
    Set,
    /// It is deleted.
    Delete,
    /// It is read and then stored, found or not.
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
    /// What is done.
    pub action: Action,
    /// With which item; the length of the value is that of a store.
    pub request: Request,
}

/// How operations are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether what a [`Action::Get`] misses is stored.
    pub fill: bool,
    /// So many operations before anything counts.
    pub warm_up: u64,
    /// So many clients take turns, each with one operation at a time: what an answer causes is a client's next operation, and those of
    /// the others come before it. A clairvoyant has no use for it: it stores at once.
    pub clients: usize,
    /// The flags of every item that is stored: a cache keeps some bytes for others than 0.
    pub flags: u32,
}

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
    let operations = requests.into_iter().map(|request| Operation { action: Action::Get, request });
    replay_operations(cache, operations, Rules { fill: true, warm_up, clients: 1, flags: 0 })
}

/// Does every operation to `cache`, and counts what was read. All that the warm-up caused is done before anything counts, as a load does
/// that lets it come to rest.
pub fn replay_operations(cache: &Cache, operations: impl IntoIterator<Item = Operation>, rules: Rules) -> HitRatio {
    let mut replay = Replay::new(cache, rules.flags);
    let mut ratio = HitRatio::default();
    let mut caused: Vec<Option<Request>> = vec![None; rules.clients.max(1)];
    let mut turn = 0;
    for (number, operation) in operations.into_iter().enumerate() {
        if number as u64 == rules.warm_up {
            caused.iter_mut().filter_map(Option::take).for_each(|request| replay.store(&request));
        }
        // Whose answer has caused something does that and waits for its next turn.
        let client = loop {
            let client = turn % caused.len();
            turn += 1;
            match caused[client].take() {
                Some(request) => replay.store(&request),
                None => break client,
            }
        };
        let Operation { action, request } = operation;
        match action {
            Action::Set => replay.store(&request),
            Action::Delete => replay.delete(&request),
            Action::Get | Action::ReadModifyWrite => {
                let is_hit = replay.is_hit(&request);
                if number as u64 >= rules.warm_up {
                    ratio.count(&request, is_hit);
                }
                let causes = action == Action::ReadModifyWrite || !is_hit && rules.fill;
                if causes && caused.len() == 1 {
                    replay.store(&request);
                } else if causes {
                    caused[client] = Some(request);
                }
            }
        }
    }
    ratio
}

/// A cache with the texts of keys and values.
struct Replay<'a> {
    cache: &'a Cache,
    meta: Meta,
    text: Vec<u8>,
    zeros: Vec<u8>,
}

impl Replay<'_> {
    fn new(cache: &Cache, flags: u32) -> Replay<'_> {
        let (text, zeros) = (vec![b'.'; cache.key_bytes_max().max(8)], vec![0; cache.value_bytes_max()]);
        Replay { cache, meta: Meta { flags, ..Meta::default() }, text, zeros }
    }

    /// The key of a request and its hash.
    fn key(&mut self, request: &Request) -> (&[u8], u64) {
        self.text[..8].copy_from_slice(&request.id.to_le_bytes());
        let key = &self.text[..(request.key_bytes as usize).clamp(8, self.text.len())];
        (key, self.cache.hash(key))
    }

    fn is_hit(&mut self, request: &Request) -> bool {
        let cache = self.cache;
        let (key, hash) = self.key(request);
        cache.get(key, hash, 0, |_| ()).is_some()
    }

    fn store(&mut self, request: &Request) {
        let (cache, meta) = (self.cache, self.meta);
        let zeros = std::mem::take(&mut self.zeros);
        let (key, hash) = self.key(request);
        // What is refused is missed again; that is the cache's doing and counted as such.
        let _ = cache.set(key, hash, &zeros[..(request.value_bytes as usize).min(zeros.len())], meta, 0);
        self.zeros = zeros;
    }

    fn delete(&mut self, request: &Request) {
        let cache = self.cache;
        let (key, hash) = self.key(request);
        cache.delete(key, hash, 0);
    }
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
    let operations = requests.iter().map(|&request| Operation { action: Action::Get, request }).collect::<Vec<_>>();
    let rules = Rules { fill: true, warm_up, clients: 1, flags: 0 };
    clairvoyant_operations(&operations, capacity_bytes, overhead_bytes, by_size, rules)
}

/// The same of operations: what is next stored or deleted, and not read, is of no use and not kept.
pub fn clairvoyant_operations(
    operations: &[Operation],
    capacity_bytes: u64,
    overhead_bytes: u64,
    by_size: bool,
    rules: Rules,
) -> HitRatio {
    let mut next = vec![u64::MAX; operations.len()];
    let mut last: HashMap<u64, usize> = HashMap::new();
    for (number, operation) in operations.iter().enumerate().rev() {
        if let Some(later) = last.insert(operation.request.id, number)
            && operations[later].action.reads()
        {
            next[number] = later as u64;
        }
    }
    let mut ratio = HitRatio::default();
    // By what is worst to keep: of an item its next use, of a sized one a class of bytes and then its next use.
    let mut held: Vec<BTreeSet<(u64, u64)>> = vec![BTreeSet::new(); if by_size { 128 } else { 1 }];
    let mut sizes: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut used = 0;
    let class = |bytes: u64| if by_size { (4.0 * (bytes as f64).log2()) as usize % 128 } else { 0 };
    for (number, Operation { action, request }) in operations.iter().enumerate() {
        let mut bytes = request.bytes() + overhead_bytes;
        let found = sizes.remove(&request.id);
        if let Some((there, _)) = found {
            held[class(there)].remove(&(number as u64, request.id));
            used -= there;
            if *action == Action::Get {
                bytes = there;
            }
        }
        if action.reads() && number as u64 >= rules.warm_up {
            ratio.count(request, found.is_some());
        }
        let is_stored = match action {
            Action::Get => found.is_some() || rules.fill,
            Action::Set | Action::ReadModifyWrite => true,
            Action::Delete => false,
        };
        if !is_stored || next[number] == u64::MAX || bytes > capacity_bytes {
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
            let (at, id) = worst.expect("used bytes belong to a held item");
            let (bytes, _) = sizes.remove(&id).expect("every held item has a size");
            held[class(bytes)].remove(&(at, id));
            used -= bytes;
        }
    }
    ratio
}
