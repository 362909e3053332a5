//! What is kept of an item beside its value: its time to the millisecond, its marks; and how all of them are found.

use std::collections::BTreeMap;

use cache::{Cache, Config, Evictor, Marks, Meta, Mode};

fn at(expires_ms: u64) -> Meta {
    Meta { flags: 0, expires_ms }
}

#[test]
fn a_time_is_kept_to_the_millisecond() {
    for evictor in Evictor::ALL {
        let cache = Cache::new(Config { evictor, versions: true, access_times: true, ..Config::new(1 << 20) }).unwrap();
        let (key, now_ms) = (b"key".as_slice(), 1_700_000_000_123);
        let hash = cache.hash(key);
        for expires_ms in [now_ms + 1, now_ms + 5, 1_700_000_001_000, u64::from(u32::MAX) * 1000 + 1000, u64::MAX] {
            cache.set(key, hash, b"value", Meta { flags: 7, expires_ms }, now_ms).unwrap();
            let found =
                |now_ms| cache.peek(key, hash, now_ms, |item| (item.expires_ms, item.flags, item.value.to_vec()));
            assert_eq!(found(expires_ms - 1), Some((expires_ms, 7, b"value".to_vec())));
            assert_eq!(found(expires_ms), None);
            for other_ms in [now_ms + 7, 0, 1_700_000_002_000, now_ms + 9] {
                assert_eq!(cache.touch(key, hash, other_ms, now_ms), Ok(true));
                assert_eq!(found(now_ms), Some((other_ms, 7, b"value".to_vec())));
                assert_eq!(cache.stats().expiring, u64::from(other_ms != 0));
                cache.audit().unwrap();
            }
        }
    }
}

/// The time of a whole second takes 4 bytes, any other 8, and none nothing.
#[test]
fn a_time_takes_what_it_needs() {
    let header_bytes = |expires_ms| {
        let cache = Cache::new(Config::new(1 << 20)).unwrap();
        cache.set(b"keys", cache.hash(b"keys"), b"1234", at(expires_ms), 0).unwrap();
        cache.stats().header_bytes
    };
    assert_eq!([0, 5_000, 5_001].map(header_bytes), [8, 12, 16]);
}

#[test]
fn marks_last_until_the_next_store() {
    let cache = Cache::new(Config { versions: true, access_times: true, ..Config::new(1 << 20) }).unwrap();
    let key = b"key".as_slice();
    let hash = cache.hash(key);
    let marks = |now_ms| cache.peek(key, hash, now_ms, |item| (item.marks, item.used_s)).unwrap();
    cache.set(key, hash, b"10", at(0), 1_000).unwrap();
    assert_eq!(marks(3_000), (Marks::default(), Some(1)));
    // Who asks is told how it was before.
    assert_eq!(cache.get(key, hash, 3_000, |item| (item.marks.fetched, item.used_s)), Some((false, Some(1))));
    assert_eq!(cache.get(key, hash, 4_000, |item| (item.marks.fetched, item.used_s)), Some((true, Some(3))));
    let before = cache.peek(key, hash, 4_000, |item| item.version).unwrap();
    let mut held = cache.hold(key, hash);
    assert!(held.mark(4_000, |marks| Marks { stale: true, claimed: true, ..marks }));
    assert!(held.renew(4_000) > Some(before));
    // Another time, and a number of the same length, leave them.
    assert_eq!(held.touch(9_999, 5_000), Ok(true));
    assert_eq!(held.update(5_000, |_| (Some(b"9 ".to_vec()), ())), Ok(Some(())));
    drop(held);
    assert_eq!(marks(5_000), (Marks { fetched: true, stale: true, claimed: true }, Some(5)));
    cache.update(key, hash, 6_000, |_| (Some(b"100".to_vec()), ())).unwrap();
    assert_eq!(marks(6_000), (Marks::default(), Some(6)));
    cache.get(key, hash, 6_000, |_| ());
    cache.store(Mode::Append, key, hash, b"1", at(0), 7_000).unwrap();
    assert_eq!(marks(7_000), (Marks::default(), Some(7)));
    assert!(!cache.hold(b"none", cache.hash(b"none")).mark(0, |marks| marks));
    cache.audit().unwrap();
}

/// All that is there all the time is found exactly once, while others come, go and are moved, and the index grows and shrinks.
#[test]
fn a_scan_finds_all_that_stays_once() {
    for (evictor, shards) in [(Evictor::None, 1), (Evictor::None, 4), (Evictor::Lru, 2)] {
        let cache = Cache::with_shards(Config { evictor, ..Config::new(4 << 20) }, shards).unwrap();
        let store = |key: &str, expires_ms| {
            cache.set(key.as_bytes(), cache.hash(key.as_bytes()), b"v", at(expires_ms), 1).unwrap()
        };
        let delete = |key: &str| cache.delete(key.as_bytes(), cache.hash(key.as_bytes()), 1);
        for number in 0..3_000 {
            store(&format!("stays-{number}"), 0);
        }
        for number in 0..100 {
            store(&format!("expired-{number}"), 1);
        }
        for want in [1, 10, 100_000] {
            let mut seen: BTreeMap<String, u32> = BTreeMap::new();
            let (mut cursor, mut calls) = (0, 0);
            loop {
                let mut found = 0;
                cursor = cache.scan(cursor, want, 1, |key| {
                    *seen.entry(String::from_utf8(key.to_vec()).unwrap()).or_default() += 1;
                    found += 1;
                });
                assert!(found <= want + 60, "{found} of {want}");
                calls += 1;
                if cursor == 0 {
                    break;
                }
                // The index is stretched by what comes, and slots move back by what goes.
                let name = |step: u32| format!("other-{want}-{step}");
                for step in 0..3 {
                    store(&name(3 * calls + step), 0);
                }
                for step in 0..calls % 5 {
                    delete(&name(2 * calls + step));
                }
                // A store of the same key, which another block may hold.
                cache.set(b"stays-7", cache.hash(b"stays-7"), &vec![b'v'; calls as usize % 300], at(0), 1).unwrap();
            }
            assert!(calls < 10_000, "{calls}");
            let stays = seen.iter().filter(|(key, _)| key.starts_with("stays-"));
            assert_eq!(stays.clone().count(), 3_000, "{evictor}, {shards} shards, {want} at a time");
            assert!(stays.clone().all(|(_, times)| *times == 1));
            assert!(!seen.keys().any(|key| key.starts_with("expired-")));
        }
        cache.audit().unwrap();
        // Cursors of nobody's making.
        for cursor in [1, 12_345, u64::MAX, u64::from(u32::MAX), 1 << 63] {
            cache.scan(cursor, u32::MAX, 1, |_| ());
        }
    }
}
