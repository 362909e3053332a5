//! Compares the cache with a plain map: a lookup returns the latest value under every policy.

use std::collections::HashMap;

use cache::{Cache, Config, Evictor, Meta, Mode, Refusal};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Get,
    Store(Mode, usize, Meta),
    Delete,
    Touch(u64),
    Double,
    Wait(u64),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![6 => 0usize..60, 6 => 60usize..400, 2 => 400usize..3_000, 1 => 3_000usize..9_000];
    let meta = (
        prop_oneof![Just(0u32), any::<u32>()],
        prop_oneof![3 => Just(0u64), 1 => 1u64..60, 1 => (1u64..60).prop_map(|s| 1000 * s), 1 => Just(u64::MAX / 2)],
    );
    let mode = prop_oneof![
        8 => Just(Mode::Set),
        2 => Just(Mode::Add),
        1 => Just(Mode::Replace),
        1 => Just(Mode::Append),
        1 => Just(Mode::Prepend),
        2 => (0u64..40).prop_map(Mode::Cas),
    ];
    prop_oneof![
        12 => Just(Step::Get),
        12 => (mode, bytes, meta).prop_map(|(mode, bytes, (flags, expires_ms))| Step::Store(mode, bytes, Meta { flags, expires_ms })),
        3 => Just(Step::Delete),
        1 => prop_oneof![0u64..60, (0u64..60).prop_map(|s| 1000 * s)].prop_map(Step::Touch),
        1 => Just(Step::Double),
        1 => prop_oneof![0u64..5, Just(1000)].prop_map(Step::Wait),
        1 => prop_oneof![20 => Just(Step::Wait(0)), 1 => Just(Step::Clear)],
    ]
}

fn value(key: u32, store: u64, bytes: usize) -> Vec<u8> {
    let stamp = (u64::from(key) << 40 | store).to_le_bytes();
    (0..bytes).map(|at| stamp[at % 8].wrapping_add((at / 8) as u8)).collect()
}

#[derive(Clone, Debug, PartialEq)]
struct Stored {
    value: Vec<u8>,
    meta: Meta,
    version: u64,
}

fn check(config: Config, shards: usize, steps: &[(u32, Step)]) -> Result<(), TestCaseError> {
    let memory_bytes = config.memory_bytes();
    let never_evicts = config.evictor == Evictor::None;
    let cache = Cache::with_shards(config, shards).unwrap();
    let mut model: HashMap<u32, Stored> = HashMap::new();
    let mut now_ms = 1;
    for (number, (key, step)) in steps.iter().enumerate() {
        let text = format!("key-{key}-{}", "k".repeat(*key as usize % 23));
        let text = text.as_bytes();
        let live =
            model.get(key).filter(|stored| stored.meta.expires_ms == 0 || stored.meta.expires_ms > now_ms).cloned();
        match step {
            Step::Get => {
                let found = cache.hold(text).get(now_ms).map(|item| Stored {
                    value: item.value.to_vec(),
                    meta: item.meta,
                    version: item.version,
                });
                if never_evicts || found.is_some() {
                    prop_assert_eq!(found, live);
                }
            }
            Step::Store(mode, bytes, meta) => {
                let meta =
                    Meta { expires_ms: if meta.expires_ms == 0 { 0 } else { meta.expires_ms + now_ms - 1 }, ..*meta };
                let new = value(*key, number as u64, *bytes);
                let stored = cache.hold(text).store(*mode, &new, meta, now_ms);
                match (stored, live) {
                    (Ok(version), live) => {
                        let stored = match (mode, live) {
                            (Mode::Append, Some(old)) => {
                                Stored { value: [old.value, new].concat(), meta: old.meta, version }
                            }
                            (Mode::Prepend, Some(old)) => {
                                Stored { value: [new, old.value].concat(), meta: old.meta, version }
                            }
                            (Mode::Append | Mode::Prepend | Mode::Replace, None) => {
                                return Err(TestCaseError::fail("stored beside nothing"));
                            }
                            (Mode::Add, Some(_)) => {
                                prop_assert!(!never_evicts, "added a present key");
                                Stored { value: new, meta, version }
                            }
                            (Mode::Cas(asked), live) => {
                                prop_assert_eq!(live.map(|live| live.version), Some(*asked));
                                Stored { value: new, meta, version }
                            }
                            _ => Stored { value: new, meta, version },
                        };
                        model.insert(*key, stored);
                    }
                    (Err(Refusal::Full { .. }), _) => {
                        prop_assert!(never_evicts);
                        model.remove(key);
                    }
                    (Err(Refusal::ValueTooLong { bytes, limit }), _) => {
                        prop_assert!(bytes > limit && limit == cache.value_bytes_max);
                        if *mode == Mode::Set {
                            prop_assert!(cache.hold(text).peek(now_ms).is_none(), "an outdated value");
                            model.remove(key);
                        }
                    }
                    (Err(Refusal::NotStored), live) => match mode {
                        Mode::Add => prop_assert!(live.is_some()),
                        _ => prop_assert!(!never_evicts || live.is_none()),
                    },
                    (Err(Refusal::Exists { asked, found }), live) => {
                        prop_assert_ne!(asked, found);
                        prop_assert_eq!(live.map(|live| live.version), Some(found));
                    }
                    (Err(Refusal::NotFound), live) => prop_assert!(!never_evicts || live.is_none()),
                    (Err(Refusal::NoVersions), _) => {}
                    (Err(other), _) => return Err(TestCaseError::fail(other.to_string())),
                }
            }
            Step::Delete => {
                let deleted = cache.hold(text).delete(now_ms);
                prop_assert!(live.is_some() || !deleted);
                prop_assert!(deleted || live.is_none() || !never_evicts);
                model.remove(key);
            }
            Step::Touch(ms) => {
                let mut held = cache.hold(text);
                match held.touch(if *ms == 0 { 0 } else { now_ms + ms }, now_ms) {
                    Ok(true) => {
                        prop_assert!(live.is_some());
                        let version = held.peek(now_ms).expect("just touched").version;
                        let stored = model.get_mut(key).unwrap();
                        stored.meta.expires_ms = if *ms == 0 { 0 } else { now_ms + ms };
                        stored.version = version;
                    }
                    Ok(false) => prop_assert!(!never_evicts || live.is_none()),
                    Err(_) => {
                        model.remove(key);
                    }
                }
            }
            Step::Double => {
                let mut held = cache.hold(text);
                let doubled = held.update(now_ms, |item| (Some([item.value, item.value].concat()), item.value.len()));
                match doubled {
                    Ok(Some(bytes)) => {
                        let version = held.peek(now_ms).expect("just updated").version;
                        let stored = model.get_mut(key).unwrap();
                        prop_assert_eq!(bytes, stored.value.len());
                        stored.value = stored.value.repeat(2);
                        stored.version = version;
                    }
                    Ok(None) => prop_assert!(!never_evicts || live.is_none()),
                    Err(Refusal::ValueTooLong { .. }) => {}
                    Err(_) => {
                        model.remove(key);
                    }
                }
            }
            Step::Wait(ms) => now_ms += ms,
            Step::Clear => {
                cache.clear();
                model.clear();
            }
        }
        cache.audit();
        prop_assert_eq!(cache.stats().memory_bytes(), memory_bytes, "the books do not add up");
    }
    for key in model.keys() {
        let text = format!("key-{key}-{}", "k".repeat(*key as usize % 23));
        let found = cache.hold(text.as_bytes()).get(now_ms).map(|item| item.value.to_vec());
        prop_assert!(found.is_none_or(|found| found == model[key].value));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn lookups_return_the_latest_value(
        evictor in 0usize..Evictor::ALL.len(),
        capacity_bytes in 16u64 << 10..96 << 10,
        values_only in any::<bool>(),
        versions in any::<bool>(),
        shards in 0u32..2,
        keys in prop_oneof![Just(20u32), Just(300u32)],
        steps in proptest::collection::vec((any::<u32>(), step()), 1..700),
    ) {
        let steps = steps.into_iter().map(|(key, step)| (key % keys, step)).collect::<Vec<_>>();
        let values_only = values_only.then_some(capacity_bytes * 2);
        let config = Config { values_only, evictor: Evictor::ALL[evictor], versions, ..Config::new(capacity_bytes) };
        check(config, 1 << shards, &steps)?;
    }
}
