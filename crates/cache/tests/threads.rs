//! Four threads at once: no torn value, no value of another key, none older than one known to be stored or deleted.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use cache::{Cache, Config, Evictor, Meta};

const KEYS: u64 = 400;
const THREADS: u64 = 4;
const STEPS: u64 = 60_000;

fn check(evictor: Evictor) {
    let cache = Cache::with_shards(Config { evictor, ..Config::new(32 << 10) }, 2).unwrap();
    // Whoever begins to read a key after this number was published must not see a smaller one.
    let floors: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let texts: Vec<String> = (0..KEYS).map(|key| format!("key-{key}")).collect();
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, floors, texts, seen) = (&cache, &floors, &texts, &seen);
            scope.spawn(move || {
                let mut state = thread + 1;
                let mut numbers = vec![1u64; KEYS as usize];
                for _ in 0..STEPS {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let key = (state >> 33) % KEYS;
                    let text = texts[key as usize].as_bytes();
                    let hash = cache.hash(text);
                    let number = &mut numbers[key as usize];
                    // Each key has one thread that writes it; all read it.
                    match (key % THREADS == thread, state % 8) {
                        (true, 0..=4) => {
                            *number += 1;
                            let value = (key << 32 | *number).to_le_bytes().repeat(1 + (state >> 20) as usize % 60);
                            if cache.set(text, hash, &value, Meta::default(), 0).is_ok() {
                                floors[key as usize].store(*number, SeqCst);
                            } else {
                                assert_eq!(evictor, Evictor::None);
                                floors[key as usize].store(*number + 1, SeqCst);
                            }
                        }
                        (true, 5) => {
                            cache.delete(text, hash, 0);
                            floors[key as usize].store(*number + 1, SeqCst);
                        }
                        _ => {
                            let floor = floors[key as usize].load(SeqCst);
                            let found = cache.get(text, hash, 0, |item| {
                                let (words, rest) = item.value.as_chunks::<8>();
                                assert!(rest.is_empty() && words.iter().all(|word| *word == words[0]), "a torn value");
                                u64::from_le_bytes(words[0])
                            });
                            if let Some(found) = found {
                                assert_eq!(found >> 32, key, "the value of another key");
                                assert!(
                                    found & 0xffff_ffff >= floor,
                                    "key {key}: {} after {floor}",
                                    found & 0xffff_ffff
                                );
                                seen.fetch_add(1, SeqCst);
                            }
                        }
                    }
                }
            });
        }
    });
    cache.audit().unwrap();
    let stats = cache.stats();
    // However the threads take turns, even one after the other: each reads its own keys too.
    assert!(seen.into_inner() > STEPS / 200, "too few hits to say anything");
    assert!(if evictor == Evictor::None { stats.refused } else { stats.evictions } > 1_000, "{stats:?}");
}

#[test]
fn keys_keep_their_order_under_every_evictor() {
    for evictor in Evictor::ALL {
        check(evictor);
    }
}
