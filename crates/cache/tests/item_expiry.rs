//! Tests the times at which items expire.

use cache::{Cache, Config, Evictor, Meta, Mode};

fn at(expires_ms: u64) -> Meta {
    Meta { flags: 0, expires_ms }
}

#[test]
fn expiry_is_exact_to_the_millisecond() {
    for evictor in Evictor::ALL {
        let cache = Cache::new(Config { evictor, versions: true, ..Config::new(1 << 20) }).unwrap();
        let (key, now_ms) = (b"key".as_slice(), 1_700_000_000_123);
        for expires_ms in [now_ms + 1, now_ms + 5, 1_700_000_001_000, u64::from(u32::MAX) * 1000 + 1000, u64::MAX] {
            cache.hold(key).store(Mode::Set, b"value", Meta { flags: 7, expires_ms }, now_ms).unwrap();
            let found = |now_ms| {
                cache.hold(key).peek(now_ms).map(|item| (item.meta.expires_ms, item.meta.flags, item.value.to_vec()))
            };
            assert_eq!(found(expires_ms - 1), Some((expires_ms, 7, b"value".to_vec())));
            assert_eq!(found(expires_ms), None);
            for other_ms in [now_ms + 7, 0, 1_700_000_002_000, now_ms + 9] {
                assert_eq!(cache.hold(key).touch(other_ms, now_ms), Ok(true));
                assert_eq!(found(now_ms), Some((other_ms, 7, b"value".to_vec())));
                cache.audit();
            }
        }
    }
}

#[test]
fn expiry_takes_as_few_bytes_as_possible() {
    let header_bytes = |expires_ms| {
        let cache = Cache::new(Config::new(1 << 20)).unwrap();
        cache.hold(b"keys").store(Mode::Set, b"1234", at(expires_ms), 0).unwrap();
        cache.stats().header_bytes
    };
    assert_eq!([0, 5_000, 5_001].map(header_bytes), [8, 12, 16]);
}
