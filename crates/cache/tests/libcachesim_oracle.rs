//! Compares the misses of published policies with libCacheSim, for items of one size. The expected numbers come from
//! `oracle.py`, which runs libcachesim 0.3.5 (PyPI) with its defaults: `Clock` has one bit; `S3FIFO` has a small queue
//! of 10 % and ghosts of 90 %, and moves an item to the main queue after two hits.

use cache::replay::{Action, Operation, Rules, clairvoyant, replay};
use cache::{Cache, Config, Evictor};

const ITEMS: [u64; 3] = [100, 300, 1_000];
const FIFO: [u64; 3] = [35_006, 28_509, 21_809];
const LRU: [u64; 3] = [31_585, 26_077, 19_648];
const CLOCK: [u64; 3] = [30_956, 25_484, 19_037];
const SIEVE: [u64; 3] = [26_610, 21_714, 16_785];
const S3_FIFO: [u64; 3] = [26_208, 21_377, 16_377];
const BELADY: [u64; 3] = [22_759, 17_763, 13_103];

/// The keys of `oracle.py`, drawn with integer arithmetic so that both languages agree.
fn requests() -> Vec<Operation> {
    let mut state = 7u64;
    let key = |number: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut draw = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        draw = (draw ^ (draw >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        draw ^= draw >> 31;
        let octave = (draw >> 60) % 12;
        let within = (draw & 0xffff_ffff) >> (32 - octave);
        if (draw >> 32).is_multiple_of(8) { 10_000_000 + number } else { (1 << octave) + within }
    };
    (0..60_000).map(key).map(|id| Operation { action: Action::Get, id, key_bytes: 8, value_bytes: 1 }).collect()
}

fn misses(evictor: Evictor, items: u64) -> u64 {
    let values_only = Some(1 << 20);
    let cache = Cache::with_shards(Config { values_only, evictor, ..Config::new(items) }, 1).unwrap();
    let ratio = replay(&cache, requests(), Rules::fill(0));
    assert_eq!(cache.stats().items, items);
    ratio.requests - ratio.hits
}

#[test]
fn fifo_lru_clock_and_sieve_match_libcachesim() {
    for (at, items) in ITEMS.into_iter().enumerate() {
        for (evictor, expected) in
            [(Evictor::Fifo, FIFO), (Evictor::Lru, LRU), (Evictor::Clock, CLOCK), (Evictor::Sieve, SIEVE)]
        {
            assert_eq!(misses(evictor, items), expected[at], "{evictor} of {items} items");
        }
    }
}

/// Ghosts are 27-bit tags here and, unlike libCacheSim's, expire by eviction count. Misses differ by at most 0.15 %.
#[test]
fn s3_fifo_matches_libcachesim_except_for_ghosts() {
    for (at, items) in ITEMS.into_iter().enumerate() {
        let (ours, theirs) = (misses(Evictor::S3Fifo, items), S3_FIFO[at]);
        assert!(ours.abs_diff(theirs) * 1_000 <= theirs * 2, "{items} items: {ours}, libCacheSim {theirs}");
    }
}

/// Quintain's Belady policy can also bypass items, so it has 0.17 % (100 items) and 0.02 % (1,000) fewer misses.
#[test]
fn belady_matches_libcachesim_except_for_bypassed_items() {
    let requests = requests();
    for (at, items) in ITEMS.into_iter().enumerate() {
        let ratio = clairvoyant(requests.clone(), 9 * items, 0, false, Rules::fill(0));
        let (ours, theirs) = (ratio.requests - ratio.hits, BELADY[at]);
        assert!(ours <= theirs && (theirs - ours) * 1_000 <= theirs * 2, "{items}: {ours}, libCacheSim {theirs}");
        // With equal sizes, both rules choose the same item.
        assert_eq!(clairvoyant(requests.clone(), 9 * items, 0, true, Rules::fill(0)), ratio);
        for evictor in Evictor::ALL {
            let misses = misses(evictor, items);
            assert!(ours <= misses, "{evictor} of {items} items: {misses} misses, the clairvoyant's {ours}");
        }
    }
}

/// Replays the keys a b c a d b a c with room for two items of 1 byte.
#[test]
fn clairvoyant_matches_hand_computed_hits() {
    let get = |id, value_bytes| Operation { action: Action::Get, id, key_bytes: 0, value_bytes };
    let of = |ids: &[u64]| ids.iter().map(|&id| get(id, 1)).collect::<Vec<_>>();
    // a and b miss. c misses and is bypassed, since its next use is last. a hits, d is bypassed, b and a hit, c misses.
    let ratio = clairvoyant(of(&[1, 2, 3, 1, 4, 2, 1, 3]), 2, 0, false, Rules::fill(0));
    assert_eq!((ratio.requests, ratio.hits), (8, 3));
    for (capacity_bytes, warm_up, requests, hits) in [(0, 0, 8, 0), (4, 0, 8, 4), (1, 0, 8, 2), (2, 4, 4, 2)] {
        let ratio = clairvoyant(of(&[1, 2, 3, 1, 4, 2, 1, 3]), capacity_bytes, 0, false, Rules::fill(warm_up));
        assert_eq!((ratio.requests, ratio.hits), (requests, hits), "{capacity_bytes} bytes from {warm_up} on");
    }
    // If a large item is needed soon and small items are needed later, the size-blind rule keeps the large item.
    let sized = [(1, 3), (2, 1), (3, 1), (4, 1), (1, 3), (2, 1), (3, 1), (4, 1)];
    let sized = sized.map(|(id, value_bytes)| get(id, value_bytes));
    assert_eq!(clairvoyant(sized, 3, 0, false, Rules::fill(0)).hits, 1);
    assert_eq!(clairvoyant(sized, 3, 0, true, Rules::fill(0)).hits, 3);
}

/// Parses `g`et, `s`et, `d`elete or read-`m`odify-write, each followed by a one-letter key. Items have 9 bytes.
fn operations(text: &str) -> Vec<Operation> {
    let one = |word: &str| {
        let (action, key) = word.split_at(1);
        let action = match action {
            "g" => Action::Get,
            "s" => Action::Set,
            "d" => Action::Delete,
            _ => Action::ReadModifyWrite,
        };
        let id = u64::from(key.as_bytes()[0]);
        Operation { action, id, key_bytes: 8, value_bytes: 1 }
    };
    text.split_whitespace().map(one).collect()
}

#[test]
fn replay_matches_hand_computed_hits() {
    let values_only = Some(1 << 20);
    let hits = |text: &str, items: u64, fill: bool, clients: usize| {
        let cache = Cache::with_shards(Config { values_only, evictor: Evictor::Lru, ..Config::new(items) }, 1).unwrap();
        let ratio = replay(&cache, operations(text), Rules { fill, warm_up: 0, clients, flags: 0 });
        (ratio.requests, ratio.hits)
    };
    for (text, items, fill, clients, found) in [
        ("ga ga sb gb db gb", 9, true, 1, (4, 2)),
        ("ga ga sb gb db gb", 9, false, 1, (4, 1)),
        ("ma ga mb gb", 9, false, 1, (4, 2)),
        // An LRU cache with room for two items: c evicts a.
        ("sa sb sc ga gb", 2, false, 1, (2, 1)),
        // The second client requests the item before the first has stored it, and again afterwards.
        ("ga ga ga ga", 9, true, 2, (4, 2)),
        ("ga ga ga ga", 9, true, 1, (4, 3)),
    ] {
        assert_eq!(hits(text, items, fill, clients), found, "{text} {items} {fill} {clients}");
    }
    let cache = Cache::with_shards(Config { values_only, evictor: Evictor::Lru, ..Config::new(9) }, 1).unwrap();
    let ratio = replay(&cache, operations("ga ga"), Rules { fill: true, warm_up: 1, clients: 2, flags: 0 });
    assert_eq!((ratio.requests, ratio.hits), (1, 1));
}

#[test]
fn clairvoyant_operations_match_hand_computed_hits() {
    let of = |text: &str, items: u64, fill: bool| {
        let rules = Rules { fill, warm_up: 0, clients: 1, flags: 0 };
        let ratio = clairvoyant(operations(text), items * 9, 0, false, rules);
        (ratio.requests, ratio.hits)
    };
    for (text, items, fill, found) in [
        ("ga ga sb gb db gb", 9, true, (4, 2)),
        ("ga ga sb gb db gb", 9, false, (4, 1)),
        // Room for one item: a is set again before it is read, so b is kept.
        ("sa sb sa gb ga", 1, false, (2, 1)),
        ("sa sb gb ga", 1, false, (2, 1)),
        // a is deleted before it is read, so it is not kept.
        ("sa sb da gb ga", 1, false, (2, 1)),
        ("ma ma ga", 1, false, (3, 2)),
    ] {
        assert_eq!(of(text, items, fill), found, "{text} {items} {fill}");
    }
}
