//! The generator's knowledge of each key, two bytes per key, which explains why a GET missed. Requests on other
//! connections may overtake a response. A miss that a deletion may explain counts as an invalidation, and a miss before
//! any SET completed counts as compulsory. Only unexplained misses count as capacity misses.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use net::Nanos;
use study::Workload;

use super::Cause;
use crate::operation_stream::{ONCE_FROM, Texts};
use crate::trace_distributor::{self, KEYS_MAX, TraceOp};

// A word holds the state, the number of deletions in flight, and a wrapping count of deletion events.
const STATE: u16 = 0b111;
const DELETIONS_IN_FLIGHT: u16 = 0b1_1111_1000;
const ONE_DELETION: u16 = 0b1000;
const DELETION_EVENTS: u16 = 0xfe00;
const ONE_EVENT: u16 = 0x0200;

const NEVER: u16 = 0;
const REQUESTED: u16 = 1;
const STORED: u16 = 2;
/// Deleted, or set while a deletion was in flight, so that the order is unknown.
const DELETED: u16 = 3;
const REFUSED: u16 = 4;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) texts: Texts,
    words: Chunks<AtomicU16>,
    /// Time at which each key with a time to live expires, in seconds since the start of the load.
    ends: Chunks<AtomicU32>,
    start: Nanos,
    /// Counts of a trace; `None` for other workloads.
    pub(crate) replayed: Option<Arc<trace_distributor::ReplayCounts>>,
    footprint_keys: AtomicU64,
    footprint_bytes: AtomicU64,
}

/// State of keys, in chunks allocated on first access, because a trace does not say how many keys it has.
type Chunks<T> = Box<[OnceLock<Box<[T]>>]>;

const CHUNK: usize = 1 << 16;

fn chunks<T>(keys: u64) -> Chunks<T> {
    (0..(keys as usize).div_ceil(CHUNK)).map(|_| OnceLock::new()).collect()
}

fn in_chunk<T>(chunks: &[OnceLock<Box<[T]>>], index: usize, new: impl Fn() -> T) -> &T {
    &chunks[index / CHUNK].get_or_init(|| (0..CHUNK).map(|_| new()).collect())[index % CHUNK]
}

impl Shared {
    pub(crate) fn new(workload: &Workload, seed: u64, start: Nanos) -> Result<Shared, String> {
        let is_traced = workload.trace.is_some();
        let keys = if is_traced { KEYS_MAX } else { workload.keys.count };
        let timed = if is_traced || !workload.ttl.is_empty() { keys } else { 0 };
        let shared = Shared {
            texts: Texts::new(workload, seed)?,
            words: chunks(keys),
            ends: chunks(timed),
            start,
            replayed: is_traced.then(Arc::default),
            footprint_keys: AtomicU64::new(0),
            footprint_bytes: AtomicU64::new(0),
        };
        // Requests of a known population must not wait for an allocation.
        for key in (0..keys as usize).step_by(CHUNK).filter(|_| !is_traced) {
            shared.word(key);
            if timed > 0 {
                shared.end(key);
            }
        }
        Ok(shared)
    }

    fn word(&self, index: usize) -> &AtomicU16 {
        in_chunk(&self.words, index, || AtomicU16::new(NEVER))
    }

    fn end(&self, index: usize) -> &AtomicU32 {
        in_chunk(&self.ends, index, || AtomicU32::new(u32::MAX))
    }

    pub(crate) fn sent(&self, sent: &TraceOp) {
        if let Some(counts) = &self.replayed {
            let key_bytes = match sent.key_bytes {
                0 => self.texts.key_bytes(sent.operation.key),
                told => Texts::least_key_bytes(sent.operation.key).max(u32::from(told)),
            };
            counts.sent(sent, key_bytes);
        }
    }

    pub(crate) fn seconds_at(&self, at: Nanos) -> u32 {
        (at.saturating_sub(self.start) / 1_000_000_000).min(u64::from(u32::MAX)) as u32
    }

    /// Number of distinct keys requested, and total length of these keys and their values in bytes.
    pub(crate) fn footprint(&self) -> (u64, u64) {
        (self.footprint_keys.load(Relaxed), self.footprint_bytes.load(Relaxed))
    }
}

#[derive(Debug)]
pub(crate) struct Keys {
    population: u64,
    partition: u64,
    partitions: u64,
    timed: bool,
    words: Vec<u16>,
    ends: Vec<u32>,
}

enum WordPlace {
    Shared(usize),
    Own(usize),
    /// No place, because the key is used only once.
    Nowhere,
}

impl Keys {
    pub(crate) fn new(workload: &Workload, index: u32, workers: u32) -> Keys {
        Keys {
            // All workers share the keys of a trace, so none has a population of its own.
            population: if workload.trace.is_some() { KEYS_MAX } else { workload.keys.count },
            partition: u64::from(index),
            partitions: u64::from(workers),
            timed: workload.trace.as_ref().map_or(!workload.ttl.is_empty(), |trace| trace.format.has_writes()),
            words: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn place(&self, key: u64) -> WordPlace {
        if key < self.population {
            WordPlace::Shared(key as usize)
        } else if key >= ONCE_FROM {
            WordPlace::Nowhere
        } else if self.partitions == 1 {
            WordPlace::Own((key - self.population) as usize)
        } else {
            WordPlace::Own(((key - self.population - self.partition) / self.partitions) as usize)
        }
    }

    fn change(&mut self, shared: &Shared, key: u64, change: impl Fn(u16) -> u16) -> (u16, u16) {
        match self.place(key) {
            WordPlace::Shared(index) => {
                let changed = |was| Some(change(was)).filter(|new| *new != was);
                let (Ok(was) | Err(was)) = shared.word(index).fetch_update(Relaxed, Relaxed, changed);
                (was, change(was))
            }
            WordPlace::Own(index) => {
                if index >= self.words.len() {
                    self.words.resize(index + 1, NEVER);
                    if self.timed {
                        self.ends.resize(index + 1, u32::MAX);
                    }
                }
                let was = self.words[index];
                self.words[index] = change(was);
                (was, self.words[index])
            }
            WordPlace::Nowhere => (REQUESTED, REQUESTED),
        }
    }

    pub(crate) fn request_sent(&mut self, shared: &Shared, key: u64, bytes: u32) -> u16 {
        let first = |word: u16| if word & STATE == NEVER { word | REQUESTED } else { word };
        let once = key >= ONCE_FROM && key >= self.population;
        let (was, is) = self.change(shared, key, first);
        if once || was & STATE == NEVER {
            shared.footprint_keys.fetch_add(1, Relaxed);
            shared.footprint_bytes.fetch_add(u64::from(bytes), Relaxed);
        }
        is
    }

    /// Records that a deletion was sent; must be called after [`Keys::request_sent`].
    pub(crate) fn delete_sent(&mut self, shared: &Shared, key: u64) -> u16 {
        self.change(shared, key, |word| {
            let in_flight = if word & DELETIONS_IN_FLIGHT == DELETIONS_IN_FLIGHT { word } else { word + ONE_DELETION };
            deleted(in_flight.wrapping_add(ONE_EVENT))
        })
        .1
    }

    pub(crate) fn delete_answered(&mut self, shared: &Shared, key: u64) {
        self.change(shared, key, |word| {
            // Never decrement a saturated count, because the true number is unknown.
            let in_flight =
                if matches!(word & DELETIONS_IN_FLIGHT, 0 | DELETIONS_IN_FLIGHT) { word } else { word - ONE_DELETION };
            deleted(in_flight.wrapping_add(ONE_EVENT))
        });
    }

    /// Records the response to a SET that was sent when the word was `was`.
    pub(crate) fn set_answered(&mut self, shared: &Shared, key: u64, was: u16, refused: bool, sent_s: u32, ttl_s: u32) {
        self.change(shared, key, |word| {
            let crossed = word & DELETIONS_IN_FLIGHT != 0 || (word ^ was) & DELETION_EVENTS != 0;
            let state = match (refused, crossed) {
                (true, _) => REFUSED,
                (false, true) => DELETED,
                (false, false) => STORED,
            };
            word & !STATE | state
        });
        if self.timed {
            // memcached counts whole seconds, so a value may expire one second early.
            let end = if ttl_s == 0 { u32::MAX } else { sent_s.saturating_add(ttl_s).saturating_sub(1) };
            match self.place(key) {
                WordPlace::Shared(index) => shared.end(index).store(end, Relaxed),
                WordPlace::Own(index) => self.ends[index] = end,
                WordPlace::Nowhere => {}
            }
        }
    }

    pub(crate) fn cause(&mut self, shared: &Shared, key: u64, then: u16, now_s: u32) -> Cause {
        let (word, _) = self.change(shared, key, |word| word);
        let either = |state: u16| then & STATE == state || word & STATE == state;
        let crossed = (word | then) & DELETIONS_IN_FLIGHT != 0 || (word ^ then) & DELETION_EVENTS != 0;
        if then & STATE <= REQUESTED && !either(DELETED) || word & STATE <= REQUESTED {
            Cause::Compulsory
        } else if either(DELETED) || crossed {
            Cause::Invalidation
        } else if either(REFUSED) {
            Cause::Refused
        } else if self.timed && self.end(shared, key) <= now_s {
            Cause::Expiry
        } else {
            Cause::Capacity
        }
    }

    fn end(&self, shared: &Shared, key: u64) -> u32 {
        match self.place(key) {
            WordPlace::Shared(index) => shared.end(index).load(Relaxed),
            WordPlace::Own(index) => self.ends.get(index).copied().unwrap_or(u32::MAX),
            WordPlace::Nowhere => u32::MAX,
        }
    }
}

fn deleted(word: u16) -> u16 {
    if word & STATE <= REQUESTED { word } else { word & !STATE | DELETED }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cause of the miss after these steps: `g` GET, `m` miss, `s`/`S` SET sent/done, `R` refused, `d`/`D` DELETE.
    fn cause_after(steps: &str) -> Cause {
        let mut workload = study::workload::preset("ycsb-c").unwrap();
        workload.keys.count = 1;
        let shared = Shared::new(&workload, 1, 0).unwrap();
        let mut keys = Keys::new(&workload, 0, 1);
        let (mut got, mut set) = (0, 0);
        let mut cause = None;
        let now = 5;
        for step in steps.chars() {
            match step {
                'g' => got = keys.request_sent(&shared, 0, 10),
                'm' => cause = Some(keys.cause(&shared, 0, got, now)),
                's' => set = keys.request_sent(&shared, 0, 10),
                'S' => keys.set_answered(&shared, 0, set, false, now, 0),
                'R' => keys.set_answered(&shared, 0, set, true, now, 0),
                'd' => {
                    keys.request_sent(&shared, 0, 10);
                    keys.delete_sent(&shared, 0);
                }
                'D' => keys.delete_answered(&shared, 0),
                other => panic!("{other}"),
            }
        }
        assert_eq!(shared.footprint(), (1, 10));
        cause.unwrap()
    }

    #[test]
    fn classifies_cause_of_each_miss() {
        for (steps, expected) in [
            ("gm", Cause::Compulsory),
            ("gmgm", Cause::Compulsory),
            // The GET is sent while the first SET is in flight.
            ("sgSm", Cause::Compulsory),
            ("sSgm", Cause::Capacity),
            ("dDgm", Cause::Compulsory),
            ("sSdDgm", Cause::Invalidation),
            ("sSdDsSgm", Cause::Capacity),
            // The deletion overtakes the GET, even if the key is set again in between.
            ("sSgdm", Cause::Invalidation),
            ("sSgdDsSm", Cause::Invalidation),
            // The key is set during a deletion, so the order is unknown.
            ("sSdsSDgm", Cause::Invalidation),
            ("sSsdDSgm", Cause::Invalidation),
            ("sSdsSDsSgm", Cause::Capacity),
            ("sSdDsdDSgm", Cause::Invalidation),
            ("sRgm", Cause::Refused),
            ("sRsSgm", Cause::Capacity),
        ] {
            assert_eq!(cause_after(steps), expected, "{steps}");
        }
    }

    #[test]
    fn saturated_deletion_count_still_explains_misses() {
        let steps = format!("sS{}{}sSgm", "d".repeat(100), "D".repeat(100));
        assert_eq!(cause_after(&steps), Cause::Invalidation);
        let steps = format!("sS{}{}sSgm", "d".repeat(60), "D".repeat(60));
        assert_eq!(cause_after(&steps), Cause::Capacity);
    }

    #[test]
    fn keys_expire_after_ttl_minus_one_second() {
        let mut workload = study::workload::preset("twitter-c12").unwrap();
        workload.keys.count = 2;
        let shared = Shared::new(&workload, 1, 1_000_000_000).unwrap();
        let mut keys = Keys::new(&workload, 1, 2);
        // One key of the population, and the second key this worker created.
        for key in [1, 2 + 2 + 1] {
            let then = keys.request_sent(&shared, key, 1);
            keys.set_answered(&shared, key, then, false, shared.seconds_at(11_000_000_000), 30);
            let then = keys.request_sent(&shared, key, 1);
            assert_eq!(keys.cause(&shared, key, then, shared.seconds_at(39_000_000_000)), Cause::Capacity);
            assert_eq!(keys.cause(&shared, key, then, shared.seconds_at(40_000_000_000)), Cause::Expiry);
            keys.set_answered(&shared, key, then, false, shared.seconds_at(11_000_000_000), 0);
            assert_eq!(keys.cause(&shared, key, then, shared.seconds_at(1_000_000_000_000_000_000)), Cause::Capacity);
        }
        assert_eq!(keys.words.len(), 2);
    }
}
