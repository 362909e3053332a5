//! Checks the history of a cache for linearizability (Herlihy and Wing 1990), key by key.
//! Each write has a unique value, so zones decide linearizability (Gibbons and Korach 1997, Testing shared memories,
//! theorem 4.2). A value's zone goes from the first end to the last start of its write and reads. In a zone that goes
//! forward in time, the key had the value throughout. Such zones must not overlap or contain a different value's zone.
//!
//! A cache may evict at any moment. A miss therefore shows that the key was emptied at some moment, after which no
//! older value may return. A deletion and a refused store also count as emptying the key.

#![allow(dead_code, reason = "each test that includes this file uses its part of it")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Wrote(u64),
    Found(u64),
    /// The operation was a deletion, a miss or a refused store.
    Emptied,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) key: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) what: What,
}

/// A clock that never returns the same time twice.
#[derive(Debug, Default)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    pub(crate) fn now(&self) -> u64 {
        self.0.fetch_add(1, SeqCst)
    }
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    value: Option<u64>,
    first_end: u64,
    last_start: u64,
}

impl Zone {
    fn of(value: Option<u64>, seen: &Seen) -> Zone {
        Zone { value, first_end: seen.end, last_start: seen.start }
    }

    fn is_forward(&self) -> bool {
        self.first_end < self.last_start
    }
}

pub(crate) fn check(seen: &[Seen]) -> Result<(), String> {
    let mut keys: HashMap<u64, Vec<Seen>> = HashMap::new();
    seen.iter().for_each(|seen| keys.entry(seen.key).or_default().push(*seen));
    keys.iter().try_for_each(|(key, seen)| check_key(seen).map_err(|why| format!("key {key}: {why}")))
}

fn check_key(seen: &[Seen]) -> Result<(), String> {
    let mut zones: HashMap<u64, (Zone, u64)> = HashMap::new();
    let mut empty = Vec::new();
    for seen in seen {
        match seen.what {
            What::Wrote(value) => {
                let known = zones.insert(value, (Zone::of(Some(value), seen), seen.start));
                assert!(known.is_none(), "{value} was written twice: the history says nothing");
            }
            What::Emptied => empty.push(Zone::of(None, seen)),
            What::Found(_) => {}
        }
    }
    for seen in seen {
        let What::Found(value) = seen.what else { continue };
        let Some((zone, written)) = zones.get_mut(&value) else {
            return Err(format!("{value} was found and never written: {seen:?}"));
        };
        if seen.end < *written {
            return Err(format!("{value} was found before it was written: {seen:?}"));
        }
        zone.first_end = zone.first_end.min(seen.end);
        zone.last_start = zone.last_start.max(seen.start);
    }
    let all = zones.into_values().map(|(zone, _)| zone).chain(empty);
    let (mut forward, backward): (Vec<Zone>, Vec<Zone>) = all.partition(Zone::is_forward);
    forward.sort_unstable_by_key(|zone| zone.first_end);
    if let Some(pair) = forward.windows(2).find(|pair| pair[1].first_end < pair[0].last_start) {
        return Err(format!("two values at one time: {pair:?}"));
    }
    for zone in backward {
        // Only the last forward zone that began before this zone can contain it.
        let before = forward.partition_point(|other| other.first_end < zone.last_start);
        if let Some(around) = before.checked_sub(1).map(|at| forward[at])
            && zone.first_end < around.last_start
        {
            return Err(format!("{:?} came back: {around:?} around {zone:?}", around.value));
        }
    }
    Ok(())
}

pub(crate) fn compose(number: u64, pieces: usize) -> Vec<u8> {
    format!("{number:015};").into_bytes().repeat(pieces.max(1))
}

pub(crate) fn read(value: &[u8]) -> Result<u64, String> {
    let shown = || String::from_utf8_lossy(value).into_owned();
    let (pieces, rest) = value.as_chunks::<16>();
    let first = pieces.first().ok_or_else(|| format!("no value: `{}`", shown()))?;
    if !rest.is_empty() || pieces.iter().any(|piece| piece != first) {
        return Err(format!("a torn value: {}", shown()));
    }
    let number = std::str::from_utf8(&first[..15]).ok().and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| format!("a value that was never written: {}", shown()))
}

pub(crate) trait Ask {
    fn set(&mut self, key: u64, value: &[u8]) -> bool;
    fn get(&mut self, key: u64) -> Option<Vec<u8>>;
    fn delete(&mut self, key: u64);
}

pub(crate) fn ask(
    cache: &mut impl Ask,
    clock: &Clock,
    thread: u64,
    keys: u64,
    steps: u64,
) -> Result<Vec<Seen>, String> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread + 1);
    let mut seen = Vec::with_capacity(steps as usize);
    for step in 0..steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Half of the operations use four keys, so that threads collide; the other keys make room scarce.
        let key = if state & 1 == 0 { (state >> 40) % 4 } else { (state >> 40) % keys };
        let number = thread << 32 | step;
        let start = clock.now();
        let what = match state >> 8 & 7 {
            0..=2 => match cache.set(key, &compose(number, 1 + (state >> 16) as usize % 40)) {
                true => What::Wrote(number),
                false => What::Emptied,
            },
            3 => {
                cache.delete(key);
                What::Emptied
            }
            _ => match cache.get(key) {
                Some(value) => What::Found(read(&value)?),
                None => What::Emptied,
            },
        };
        seen.push(Seen { key, start, end: clock.now(), what });
    }
    Ok(seen)
}
