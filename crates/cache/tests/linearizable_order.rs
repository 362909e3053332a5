//! Tests that four threads on an evicting cache have a linearizable history. Incorrect caches test the checker itself.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::linearizability::{self, Ask, Clock, Seen, What, check};
use cache::{Cache, Config, Evictor, Meta, Mode};

const THREADS: u64 = 4;

fn play<A: Ask + Send>(steps: u64, cache: impl Fn() -> A) -> Result<Vec<Seen>, String> {
    let clock = Clock::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (mut cache, clock) = (cache(), &clock);
                scope.spawn(move || linearizability::ask(&mut cache, clock, thread, 300, steps))
            })
            .collect();
        let seen: Result<Vec<_>, _> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        Ok(seen?.concat())
    })
}

struct Real<'a>(&'a Cache);

impl Ask for Real<'_> {
    fn set(&mut self, key: u64, value: &[u8]) -> bool {
        let key = key.to_le_bytes();
        self.0.hold(&key).store(Mode::Set, value, Meta::default(), 0).is_ok()
    }

    fn get(&mut self, key: u64) -> Option<Vec<u8>> {
        let key = key.to_le_bytes();
        self.0.hold(&key).get(0).map(|item| item.value.to_vec())
    }

    fn delete(&mut self, key: u64) {
        let key = key.to_le_bytes();
        self.0.hold(&key).delete(0);
    }
}

#[test]
fn four_threads_see_one_order_under_every_evictor() {
    for evictor in Evictor::ALL {
        let cache = Cache::with_shards(Config { evictor, ..Config::new(32 << 10) }, 2).unwrap();
        let seen = play(40_000, || Real(&cache)).unwrap();
        check(&seen).unwrap_or_else(|why| panic!("{evictor}: {why}"));
        cache.audit();
        let stats = cache.stats();
        let left = if evictor == Evictor::None { stats.refused } else { stats.evictions };
        assert!(left > 1_000 && stats.hits > 1_000 && stats.deletes > 1_000, "{evictor}: {stats:?}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    /// A deleted value is sometimes found again.
    Resurrects,
    GoesBack,
    Tears,
    Mixes,
}

#[derive(Default)]
struct Kept {
    now: HashMap<u64, Vec<u8>>,
    before: HashMap<u64, Vec<u8>>,
    gets: u64,
}

struct Wrong<'a>(&'a Mutex<Kept>, Defect);

impl Ask for Wrong<'_> {
    fn set(&mut self, key: u64, value: &[u8]) -> bool {
        let mut kept = self.0.lock().unwrap();
        if let Some(old) = kept.now.insert(key, value.to_vec()) {
            kept.before.insert(key, old);
        }
        true
    }

    fn get(&mut self, key: u64) -> Option<Vec<u8>> {
        let mut kept = self.0.lock().unwrap();
        kept.gets += 1;
        let found = kept.now.get(&key).cloned();
        if !kept.gets.is_multiple_of(500) {
            return found;
        }
        match self.1 {
            Defect::None => found,
            Defect::Resurrects => found.or_else(|| kept.before.get(&key).cloned()),
            Defect::GoesBack => kept.before.get(&key).cloned().or(found),
            Defect::Tears => found.map(|mut value| {
                value[..3].copy_from_slice(b"999");
                value
            }),
            Defect::Mixes => kept.now.values().next().cloned(),
        }
    }

    fn delete(&mut self, key: u64) {
        let mut kept = self.0.lock().unwrap();
        if let Some(old) = kept.now.remove(&key) {
            kept.before.insert(key, old);
        }
    }
}

#[test]
fn incorrect_caches_are_detected() {
    for defect in [Defect::None, Defect::Resurrects, Defect::GoesBack, Defect::Tears, Defect::Mixes] {
        let kept = Mutex::default();
        let said = play(20_000, || Wrong(&kept, defect)).and_then(|seen| check(&seen));
        let says = match defect {
            Defect::None => {
                said.unwrap();
                continue;
            }
            Defect::Resurrects => "came back",
            Defect::GoesBack => "",
            // The message depends on the torn value, so any error is accepted.
            Defect::Tears => "",
            Defect::Mixes => "never written",
        };
        let why = said.expect_err(&format!("{defect:?} was not found out"));
        assert!(why.contains(says), "{defect:?}: {why}");
    }
}

/// Histories of one key as `from-to event`: `7` writes 7, `7?` finds 7, and `-` finds nothing.
#[test]
fn checks_hand_written_histories() {
    let rows = [
        ("0-1 7, 2-3 7?", true),
        ("0-1 7, 2-3 8, 4-5 7?", false),
        ("0-1 7, 2-6 8, 3-4 7?, 5-7 8?", true),
        ("0-1 7, 2-9 8, 3-4 8?, 5-6 7?", false),
        ("0-1 7, 2-3 -, 4-5 7?", false),
        ("0-1 7, 2-5 -, 3-4 7?", true),
        ("0-3 7, 1-2 -, 4-5 7?", true),
        ("0-1 7, 2-3 -, 4-5 -", true),
        ("0-1 7?, 2-3 7", false),
        ("0-1 7?", false),
        ("0-9 7, 1-8 8, 2-3 7?, 4-5 8?, 6-7 7?", false),
        ("0-9 7, 1-8 8, 2-3 8?, 4-5 7?, 10-11 7?", true),
        ("0-9 7, 1-8 8, 2-3 8?, 4-5 7?, 10-11 8?", false),
    ];
    for (row, is_right) in rows {
        let seen: Vec<Seen> = row
            .split(", ")
            .map(|word| {
                let (times, what) = word.split_once(' ').unwrap();
                let (start, end) = times.split_once('-').unwrap();
                let what = match what.strip_suffix('?') {
                    Some(found) => What::Found(found.parse().unwrap()),
                    None => what.parse().map_or(What::Emptied, What::Wrote),
                };
                Seen { key: 1, start: start.parse().unwrap(), end: end.parse().unwrap(), what }
            })
            .collect();
        assert_eq!(check(&seen).is_ok(), is_right, "{row}: {:?}", check(&seen));
    }
}

#[test]
fn detects_torn_values() {
    assert_eq!(linearizability::read(&linearizability::compose(1 << 33, 3)), Ok(1 << 33));
    let torn = [linearizability::compose(1, 2), linearizability::compose(2, 1)].concat();
    assert!(linearizability::read(&torn).unwrap_err().contains("torn"));
    assert!(linearizability::read(&torn[..17]).unwrap_err().contains("torn"));
    assert!(linearizability::read(b"").is_err() && linearizability::read(&[b'x'; 16]).is_err());
}
