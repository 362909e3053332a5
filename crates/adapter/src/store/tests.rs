use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contract::monitor::{Key, Store};
use proptest::prelude::*;

use super::*;

/// A store in memory that panics from the moment at which `fails` is true.
#[derive(Debug)]
pub(crate) struct Failing {
    pub(crate) inner: MemoryStore,
    pub(crate) fails: Arc<AtomicBool>,
}

impl Store for Failing {
    fn get(&mut self, key: &Key, now_s: u64) -> Option<Cow<'_, [u8]>> {
        assert!(!self.fails.load(Ordering::Relaxed), "it was told to fail");
        self.inner.get(key, now_s)
    }

    fn put(&mut self, key: &Key, entry: &[u8], now_s: u64) {
        self.inner.put(key, entry, now_s);
    }

    fn put_name(&mut self, number: u32, name: &str) {
        self.inner.put_name(number, name);
    }

    fn names(&mut self) -> Vec<String> {
        self.inner.names()
    }

    fn each(&mut self, now_s: u64, show: &mut dyn FnMut(&Key, &[u8])) {
        self.inner.each(now_s, show);
    }
}

fn settings(path: &Path) -> StoreSettings {
    StoreSettings {
        path: Some(path.to_path_buf()),
        memory_bytes: Some(4096),
        expire_after: None,
        flush: Duration::from_millis(10),
        on_mismatch: OnMismatch::Rotate,
    }
}

fn key(number: u16) -> Key {
    let mut key = [0; 12];
    key[..2].copy_from_slice(&number.to_be_bytes());
    key
}

fn open(settings: &StoreSettings) -> (AnyStore, Vec<String>) {
    AnyStore::open(settings, "client", 7, &Arc::default())
}

#[test]
fn entries_survive_and_those_that_left_memory_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("state.redb"));
    for round in 0..2 {
        let (mut store, notes) = open(&settings);
        assert_eq!(notes, Vec::<String>::new());
        if round == 0 {
            store.put_name(0, "adder");
            for number in 0..500 {
                store.put(&key(number), &number.to_be_bytes(), 1);
            }
        }
        assert_eq!(store.names(), ["adder"]);
        for number in 0..500 {
            assert_eq!(
                store.get(&key(number), 1).as_deref(),
                Some(&number.to_be_bytes()[..]),
                "{number} in round {round}"
            );
        }
        assert!(store.get(&key(500), 1).is_none());
        let mut seen = 0;
        store.each(1, &mut |_, _| seen += 1);
        assert_eq!(seen, 500);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Where an entry is, in memory, on its way to the file or in it, is nobody's concern: the store is a map, and memory has its bound.
    #[test]
    fn a_bounded_store_is_a_map_without_bound(
        steps in prop::collection::vec((0..600_u16, 0..90_usize, 0..4_u8), 1..1_500),
        flush_ms in prop::sample::select(vec![1, 1_000_000]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings { flush: Duration::from_millis(flush_ms), ..settings(&folder.path().join("s")) };
        let (mut store, _) = open(&settings);
        let mut map = std::collections::BTreeMap::new();
        for (at, (number, length, what)) in steps.iter().enumerate() {
            match what {
                0 => prop_assert_eq!(store.get(&key(*number), 1).map(Cow::into_owned), map.get(number).cloned()),
                1 if at % 100 == 0 => store.flush(),
                _ => {
                    let value = vec![at as u8; *length];
                    store.put(&key(*number), &value, 1);
                    map.insert(*number, value);
                }
            }
            let AnyStore::File(file) = &store else { unreachable!() };
            prop_assert!(file.cache.bytes() <= 4096, "{:?}", file.cache);
        }
        for (number, value) in map {
            prop_assert_eq!(store.get(&key(number), 1).map(Cow::into_owned), Some(value));
        }
    }
}

#[test]
fn a_burst_does_not_wait_for_its_time_to_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings { flush: Duration::from_secs(3_600), ..settings(&folder.path().join("s")) };
    let metrics = Arc::<Metrics>::default();
    let (mut store, _) = AnyStore::open(&settings, "client", 7, &metrics);
    for number in 0..4_000 {
        store.put(&key(number), &[1; 60], 1);
    }
    let written = || metrics.store_written.load(Ordering::Relaxed);
    let until = crate::clock::now() + Duration::from_secs(60);
    while written() == 0 {
        assert!(crate::clock::now() < until, "nothing was written");
        std::thread::sleep(Duration::from_millis(5));
    }
    let all = (0..4_000).filter(|number| store.get(&key(*number), 1).is_some()).count();
    assert_eq!((all, metrics.store_dropped.load(Ordering::Relaxed)), (4_000, 0));
    store.flush();
    assert_eq!(written(), 4_000, "whoever asks for a flush has one");
}

#[test]
fn what_is_about_to_be_written_is_counted_as_what_is() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings { flush: Duration::from_secs(3_600), ..settings(&folder.path().join("s")) };
    let metrics = Arc::<Metrics>::default();
    let counted = || metrics.store_bytes.load(Ordering::Relaxed);
    let (mut store, _) = AnyStore::open(&settings, "client", 7, &metrics);
    store.put_name(0, "adder");
    store.flush();
    let mut before = counted();
    for (number, entry, more) in [(1, "one", 23), (2, "two", 23), (1, "longer", 3), (2, "2", -2)] {
        store.put(&key(number), entry.as_bytes(), 1);
        let now = counted();
        assert_eq!(now.cast_signed() - before.cast_signed(), more, "{entry}");
        before = now;
        if number == 2 {
            store.flush();
            assert_eq!(counted(), now, "{entry}, written");
        }
    }
}

#[test]
fn without_its_file_a_store_keeps_what_one_without_a_file_does() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let settings = StoreSettings { memory_bytes: None, ..settings(&inner.join("s")) };
    let (mut store, _) = open(&settings);
    std::fs::remove_dir_all(&inner).unwrap();
    store.put(&key(0), b"a", 1);
    store.flush();
    for number in 0..20_000 {
        store.put(&key(number), &[1; 60], 1);
    }
    let AnyStore::File(file) = &mut store else { unreachable!() };
    assert!(file.writer.is_broken() && file.cache.bytes() > BESIDE_FILE_BYTES, "{file:?}");
    assert!((0..20_000).all(|number| file.get(&key(number), 1).is_some()));
}

#[test]
fn what_was_not_used_expires() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings { expire_after: Some(Duration::from_secs(10)), ..settings(&folder.path().join("s")) };
    let (mut store, _) = open(&settings);
    store.put(&key(1), b"a", 100);
    drop(store);
    let (mut store, _) = open(&settings);
    assert!(store.get(&key(1), 111).is_none());
    assert!(store.get(&key(1), 110).is_some());
}

#[test]
fn the_content_of_a_file_is_counted_whatever_comes_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let settings = StoreSettings { expire_after: Some(Duration::from_secs(1_000_000_000)), ..settings(&path) };
    let now_s = crate::clock::unix_s();
    let counted = |metrics: &Arc<Metrics>| metrics.store_bytes.load(Ordering::Relaxed);
    let in_file = || {
        let kept = look(&path).unwrap();
        let entries = kept.entries.iter().map(|(_, _, entry)| 12 + 8 + entry.len()).sum::<usize>();
        (entries + kept.names.iter().map(|name| 4 + name.len()).sum::<usize>()) as u64
    };
    let metrics = Arc::default();
    let (mut store, _) = AnyStore::open(&settings, "client", 7, &metrics);
    store.put_name(0, "adder");
    store.put(&key(1), b"one", now_s);
    store.put(&key(2), b"to expire", 1);
    store.flush();
    assert_eq!(counted(&metrics), 9 + 23 + 29);
    store.put(&key(1), b"longer", now_s);
    store.flush();
    assert_eq!(counted(&metrics), 9 + 26 + 29);
    // The sweep comes after the batch of its round, so the next one shows it.
    for _ in 0..122 {
        store.flush();
    }
    assert_eq!(counted(&metrics), 9 + 26);
    std::fs::remove_file(&path).unwrap();
    store.put(&key(3), b"three", now_s);
    store.flush();
    assert_eq!(counted(&metrics), 9 + 25);
    drop(store);
    assert_eq!(in_file(), 9 + 25);
    let again = Arc::default();
    let (mut store, _) = AnyStore::open(&settings, "client", 7, &again);
    store.flush();
    assert_eq!(counted(&again), 9 + 25);
}

#[test]
fn what_is_used_lives_on_in_the_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings { expire_after: Some(Duration::from_secs(10)), ..settings(&folder.path().join("s")) };
    let (mut store, _) = open(&settings);
    store.put(&key(1), b"a", 100);
    for now_s in 101..130 {
        assert_eq!(store.get(&key(1), now_s).as_deref(), Some(&b"a"[..]), "{now_s}");
    }
    drop(store);
    let (mut store, _) = open(&settings);
    assert!(store.get(&key(1), 130).is_some());
}

#[test]
fn entries_of_a_file_that_cannot_be_read_are_shown_from_memory() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let metrics = Arc::default();
    let (mut store, _) = AnyStore::open(&settings(&inner.join("state.redb")), "client", 7, &metrics);
    store.put(&key(1), b"a", 1);
    store.flush();
    // No file can be begun where there is no folder.
    std::fs::remove_dir_all(&inner).unwrap();
    store.put(&key(2), b"b", 1);
    let mut seen = Vec::new();
    store.each(1, &mut |key, entry| seen.push((*key, entry.to_vec())));
    seen.sort_unstable();
    assert_eq!(seen, [(key(1), b"a".to_vec()), (key(2), b"b".to_vec())]);
    assert_eq!(metrics.store_written.load(Ordering::Relaxed), 1, "the second was not written");
    let notes = store.take_notes();
    assert!(notes.iter().any(|note| note.contains("cannot create the store")), "{notes:?}");
}

#[test]
fn another_name_contract_or_damage_is_put_aside_with_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.redb");
    let settings = settings(&path);
    drop(open(&settings));
    let check = |says: &str, hash: u64| {
        let (mut store, notes) = AnyStore::open(&settings, "other", hash, &Arc::default());
        assert!(notes.len() == 1 && notes[0].contains(says) && notes[0].contains(".old-"), "{notes:?}");
        assert!(matches!(store, AnyStore::File(_)));
        store.put(&key(1), b"a", 1);
        assert!(store.get(&key(1), 1).is_some());
    };
    check("belongs to the adapter `client`", 7);
    check("another contract", 8);
    let bytes = std::fs::read(&path).unwrap();
    for cut in [100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let (store, notes) = AnyStore::open(&settings, "other", 8, &Arc::default());
        assert_eq!(notes.len(), 1, "cut to {cut}");
        assert!(matches!(store, AnyStore::File(_)), "cut to {cut}: {notes:?}");
    }
    let refusing = StoreSettings { on_mismatch: OnMismatch::Refuse, ..settings.clone() };
    let before = std::fs::read(&path).unwrap();
    let (store, notes) = AnyStore::open(&refusing, "third", 8, &Arc::default());
    assert!(matches!(store, AnyStore::Memory(_)) && notes[0].contains("is not used"), "{notes:?}");
    drop(store);
    assert!(std::fs::read(&path).unwrap() == before || look(&path).unwrap().name == "other");
}

#[test]
fn a_file_that_goes_away_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.redb");
    let settings = settings(&path);
    let (mut store, _) = open(&settings);
    store.put_name(0, "adder");
    store.put(&key(1), b"a", 1);
    store.flush();
    std::fs::remove_file(&path).unwrap();
    store.put(&key(2), b"b", 1);
    store.flush();
    let notes = store.take_notes();
    assert!(notes.len() == 1 && notes[0].contains("is gone"), "{notes:?}");
    drop(store);
    let kept = look(&path).unwrap();
    assert_eq!((kept.names, kept.entries.len()), (vec!["adder".to_owned()], 1));
    let purged = purge(&path, &mut |_, entry| entry == b"b").unwrap();
    assert_eq!((purged, look(&path).unwrap().entries.len()), (1, 0));
}
