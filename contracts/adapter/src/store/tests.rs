//! Tests of the store: restarts, bounded memory, expiry, full disks, and damaged or missing files.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use contract::monitor::{Key, Store};
use proptest::prelude::*;

use super::*;

/// Simulated disks, by path. A full disk accepts only writes within the file's current length.
pub(crate) mod disk {
    use std::collections::HashMap;
    use std::fs::OpenOptions;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, PoisonError};

    use redb::backends::FileBackend;
    use redb::{Builder, Database, DatabaseError, StorageBackend};

    #[derive(Clone, Copy, Default)]
    struct State {
        is_full: bool,
        written_bytes: u64,
    }

    static DISKS: Mutex<Option<HashMap<PathBuf, State>>> = Mutex::new(None);

    fn with<T>(path: &Path, change: impl FnOnce(&mut State) -> T) -> T {
        let mut disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
        change(disks.get_or_insert_default().entry(path.to_owned()).or_default())
    }

    pub(crate) fn fill(path: &Path, is_full: bool) {
        with(path, |state| state.is_full = is_full);
    }

    #[derive(Debug)]
    struct Disk {
        file: FileBackend,
        path: PathBuf,
    }

    pub(crate) fn open(builder: &Builder, path: &Path, create: bool) -> Result<Database, DatabaseError> {
        let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)?;
        builder.create_with_backend(Disk { file: FileBackend::new(file)?, path: path.to_owned() })
    }

    impl StorageBackend for Disk {
        fn len(&self) -> io::Result<u64> {
            self.file.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.file.read(offset, out)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.file.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.file.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            let end = offset + data.len() as u64;
            with(&self.path, |state| {
                if state.is_full && end > state.written_bytes {
                    return Err(io::Error::from(io::ErrorKind::StorageFull));
                }
                state.written_bytes = state.written_bytes.max(end);
                Ok(())
            })?;
            self.file.write(offset, data)
        }

        fn close(&self) -> io::Result<()> {
            self.file.close()
        }
    }
}

fn settings(path: &Path) -> StoreSettings {
    StoreSettings {
        path: Some(path.to_path_buf()),
        memory_bytes: Some(4096),
        expire_after: None,
        flush: Duration::from_millis(10),
        is_rotated: true,
    }
}

fn key(number: u16) -> Key {
    let mut key = [0; 12];
    key[..2].copy_from_slice(&number.to_be_bytes());
    key
}

struct Noted {
    store: EntryStore,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Noted {
    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap())
    }
}

impl Deref for Noted {
    type Target = EntryStore;

    fn deref(&self) -> &EntryStore {
        &self.store
    }
}

impl DerefMut for Noted {
    fn deref_mut(&mut self) -> &mut EntryStore {
        &mut self.store
    }
}

fn open_as(settings: &StoreSettings, name: &str, contract_hash: u64, metrics: &Arc<Metrics>) -> (Noted, Vec<String>) {
    let notes = Arc::<Mutex<Vec<String>>>::default();
    let to = notes.clone();
    let note = Arc::new(move |text| to.lock().unwrap().push(text));
    let owner = StoreOwner { name: name.to_owned(), contract_hash };
    let store = Noted { store: EntryStore::open(settings, owner, metrics, note), notes };
    let notes = store.take_notes();
    (store, notes)
}

fn open(settings: &StoreSettings) -> (Noted, Vec<String>) {
    open_as(settings, "client", 7, &Arc::default())
}

#[test]
fn evicted_entries_are_found_after_restart() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("state.redb"));
    for round in 0..2 {
        let (mut store, notes) = open(&settings);
        assert_eq!(notes, Vec::<String>::new());
        if round == 0 {
            store.put_name("adder");
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

    /// The location of an entry (cache, batch or file) makes no difference to reads.
    #[test]
    fn store_with_bounded_memory_behaves_like_a_map(
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
            prop_assert!(store.memory.bytes() <= 4096, "{:?}", store.memory);
        }
        for (number, value) in map {
            prop_assert_eq!(store.get(&key(number), 1).map(Cow::into_owned), Some(value));
        }
    }
}

#[test]
fn bursts_are_written_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings { flush: Duration::from_secs(3_600), ..settings(&folder.path().join("s")) };
    let metrics = Arc::<Metrics>::default();
    let (mut store, _) = open_as(&settings, "client", 7, &metrics);
    for number in 0..4_000 {
        store.put(&key(number), &[1; 60], 1);
    }
    let written = || metrics.store_written.get();
    let until = crate::clock::now() + Duration::from_secs(60);
    while written() == 0 {
        assert!(crate::clock::now() < until, "nothing was written");
        std::thread::sleep(Duration::from_millis(5));
    }
    let all = (0..4_000).filter(|number| store.get(&key(*number), 1).is_some()).count();
    assert_eq!((all, metrics.store_dropped.get()), (4_000, 0));
    store.flush();
    assert_eq!(written(), 4_000, "every requested flush happens");
}

#[test]
fn unwritten_entries_count_like_written_ones() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings { flush: Duration::from_secs(3_600), ..settings(&folder.path().join("s")) };
    let metrics = Arc::<Metrics>::default();
    let counted = || metrics.store_bytes.get();
    let (mut store, _) = open_as(&settings, "client", 7, &metrics);
    store.put_name("adder");
    store.flush();
    let mut before = counted();
    for (number, entry, more) in [(1, "one", 23), (2, "two", 23), (1, "longer", 3), (2, "2", -2)] {
        store.put(&key(number), entry.as_bytes(), 1);
        let now = counted();
        assert_eq!(now - before, more, "{entry}");
        before = now;
        if number == 2 {
            store.flush();
            assert_eq!(counted(), now, "{entry}, written");
        }
    }
}

#[test]
fn store_that_lost_its_file_keeps_entries_in_memory() {
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
    let is_failing = store.file.as_ref().unwrap().shared.is_failing();
    assert!(is_failing && store.memory.bytes() > BESIDE_FILE_BYTES, "{:?}", store.memory);
    assert!((0..20_000).all(|number| store.get(&key(number), 1).is_some()));
}

#[test]
fn unused_entries_expire() {
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
fn content_bytes_follow_changes_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let settings = StoreSettings { expire_after: Some(Duration::from_secs(1_000_000_000)), ..settings(&path) };
    let now_s = crate::clock::unix_s();
    let counted = |metrics: &Arc<Metrics>| metrics.store_bytes.get();
    let in_file = || {
        let kept = look(&path).unwrap();
        let entries = kept.entries.iter().map(|(_, _, entry)| 12 + 8 + entry.len()).sum::<usize>();
        (entries + kept.names.iter().map(|name| 4 + name.len()).sum::<usize>()) as u64
    };
    let metrics = Arc::default();
    let (mut store, _) = open_as(&settings, "client", 7, &metrics);
    store.put_name("adder");
    store.put(&key(1), b"one", now_s);
    store.put(&key(2), b"to expire", 1);
    store.flush();
    assert_eq!(counted(&metrics), 9 + 23 + 29);
    store.put(&key(1), b"longer", now_s);
    store.flush();
    assert_eq!(counted(&metrics), 9 + 26 + 29);
    // A sweep runs after the batch of its flush, so only the next flush shows the result.
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
    let (store, _) = open_as(&settings, "client", 7, &again);
    store.flush();
    assert_eq!(counted(&again), 9 + 25);
}

/// Entries of the three case studies take 49 to 94 bytes.
#[test]
fn closed_file_is_compact() {
    for row in [49_i64, 58, 94] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let metrics = Arc::<Metrics>::default();
        let (mut store, _) = open_as(&settings(&path), "client", 7, &metrics);
        let value = vec![7; row as usize - 12 - 8];
        for number in 0..10_000_u16 {
            // Keys are hashes, so batches are unordered.
            store.put(&key(number.wrapping_mul(40_503)), &value, 1);
            if number % 400 == 0 {
                store.flush();
            }
        }
        store.flush();
        let open_bytes = metrics.store_file_bytes.get();
        store.close();
        let closed_bytes = metrics.store_file_bytes.get();
        println!(
            "{row} bytes per entry: {} in the open file, {} in the closed one",
            open_bytes / 10_000,
            closed_bytes / 10_000
        );
        assert_eq!(closed_bytes as u64, std::fs::metadata(&path).unwrap().len());
        assert!(closed_bytes < open_bytes && closed_bytes < 10_000 * row * 4, "{row}: {closed_bytes}, {open_bytes}");
        drop(store);
        assert_eq!(look(&path).unwrap().entries.len(), 10_000);
    }
}

#[test]
fn used_entries_do_not_expire_in_the_file() {
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
fn unreadable_file_shows_entries_from_memory() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let metrics = Arc::default();
    let (mut store, _) = open_as(&settings(&inner.join("state.redb")), "client", 7, &metrics);
    store.put(&key(1), b"a", 1);
    store.flush();
    std::fs::remove_dir_all(&inner).unwrap();
    store.put(&key(2), b"b", 1);
    let mut seen = Vec::new();
    store.each(1, &mut |key, entry| seen.push((*key, entry.to_vec())));
    seen.sort_unstable();
    assert_eq!(seen, [(key(1), b"a".to_vec()), (key(2), b"b".to_vec())]);
    assert_eq!(metrics.store_written.get(), 1, "the second was not written");
    let notes = store.take_notes();
    assert!(notes.iter().any(|note| note.contains("cannot create it")), "{notes:?}");
}

#[test]
fn unusable_files_are_renamed_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.redb");
    let settings = settings(&path);
    drop(open(&settings));
    let check = |says: &str, hash: u64| {
        let (mut store, notes) = open_as(&settings, "other", hash, &Arc::default());
        assert!(notes.len() == 1 && notes[0].contains(says) && notes[0].contains(".old-"), "{notes:?}");
        assert!(store.file.is_some());
        store.put(&key(1), b"a", 1);
        assert!(store.get(&key(1), 1).is_some());
    };
    check("belongs to the adapter `client`", 7);
    check("another contract", 8);
    let bytes = std::fs::read(&path).unwrap();
    for cut in [100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let (store, notes) = open_as(&settings, "other", 8, &Arc::default());
        assert_eq!(notes.len(), 1, "cut to {cut}");
        assert!(store.file.is_some(), "cut to {cut}: {notes:?}");
    }
    let refusing = StoreSettings { is_rotated: false, ..settings.clone() };
    let before = std::fs::read(&path).unwrap();
    let (store, notes) = open_as(&refusing, "third", 8, &Arc::default());
    assert!(store.file.is_none() && notes[0].contains("is not used"), "{notes:?}");
    drop(store);
    assert!(std::fs::read(&path).unwrap() == before || look(&path).unwrap().name == "other");
}

#[test]
fn removed_file_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.redb");
    let settings = settings(&path);
    let (mut store, _) = open(&settings);
    store.put_name("adder");
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

#[track_caller]
fn told(store: &Noted, text: &str) {
    let mut notes = Vec::new();
    let until = crate::clock::now() + Duration::from_secs(60);
    while !notes.iter().any(|note: &String| note.contains(text)) {
        assert!(crate::clock::now() < until, "nothing about `{text}` in {notes:?}");
        std::thread::sleep(Duration::from_millis(2));
        notes.extend(store.take_notes());
    }
}

#[test]
fn full_disk_is_read_and_written_again_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let metrics = Arc::default();
    let (mut store, _) = open_as(&settings(&path), "client", 7, &metrics);
    let value = |number: u16| [&number.to_be_bytes()[..], &[1; 100]].concat();
    (0..3_000).for_each(|number| store.put(&key(number), &value(number), 1));
    store.flush();
    disk::fill(&path, true);
    store.put_name("adder");
    (3_000..9_000).for_each(|number| store.put(&key(number), &value(number), 1));
    told(&store, "cannot write the store");
    let is_there =
        |store: &mut EntryStore, number: u16| store.get(&key(number), 1).as_deref() == Some(&value(number)[..]);
    let missing = (0..9_000).filter(|number| !is_there(&mut store, *number)).count();
    assert_eq!(missing, 0, "entries of the file, of memory, and those that wait");
    let mut seen = 0;
    store.each(1, &mut |_, _| seen += 1);
    assert_eq!(seen, 9_000);
    assert!(store.forgotten() == 0 && !store.may_have_forgotten(&key(9_001)));
    disk::fill(&path, false);
    store.put(&key(9_000), &value(9_000), 1);
    told(&store, "is written again");
    store.flush();
    drop(store);
    let kept = look(&path).unwrap();
    assert_eq!((kept.entries.len(), kept.names), (9_001, vec!["adder".to_owned()]));
}

#[test]
fn entries_dropped_on_a_full_disk_count_as_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let settings = StoreSettings { memory_bytes: Some(1 << 20), ..settings(&path) };
    let metrics = Arc::<Metrics>::default();
    let (mut store, _) = open_as(&settings, "client", 7, &metrics);
    store.put(&key(0), b"a", 1);
    store.flush();
    disk::fill(&path, true);
    let long = vec![1; 1_000];
    for number in 1..12_000 {
        store.put(&key(number), &long, 1);
    }
    told(&store, "cannot write the store");
    let until = crate::clock::now() + Duration::from_secs(60);
    while store.forgotten() < 1_000 {
        assert!(crate::clock::now() < until, "{} forgotten", store.forgotten());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(store.forgotten(), metrics.store_dropped.get());
    let gone = (0..12_000).filter(|number| store.get(&key(*number), 1).is_none()).collect::<Vec<_>>();
    assert!(gone.len() as u64 <= store.forgotten() && gone.len() > 500, "{}", gone.len());
    assert!(gone.iter().all(|number| store.may_have_forgotten(&key(*number))));
    assert!(store.get(&key(0), 1).is_some(), "an entry of the file");
}

#[test]
fn unclosed_file_may_lack_any_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let settings = settings(&path);
    let (mut store, _) = open(&settings);
    store.put(&key(1), b"a", 1);
    store.flush();
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    assert!(!store.may_have_forgotten(&key(2)));
    drop(store);
    let (store, notes) = open(&settings);
    assert!(notes.is_empty() && !store.may_have_forgotten(&key(2)), "it was closed: {notes:?}");
    let (store, notes) = open(&StoreSettings { path: Some(copy), ..settings });
    assert!(notes.len() == 1 && notes[0].contains("was not closed"), "{notes:?}");
    assert!(store.may_have_forgotten(&key(2)));
}

#[test]
fn expired_and_purged_keys_stay_forgotten_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let settings = StoreSettings { expire_after: Some(Duration::from_secs(10)), ..settings(&path) };
    let now_s = crate::clock::unix_s();
    let (mut store, _) = open(&settings);
    store.put(&key(1), b"a", 1);
    store.put(&key(2), b"b", now_s);
    assert!(store.get(&key(1), now_s).is_none() && store.may_have_forgotten(&key(1)));
    for _ in 0..122 {
        store.flush();
    }
    assert_eq!(store.forgotten(), 1);
    drop(store);
    let (store, _) = open(&settings);
    assert!(store.may_have_forgotten(&key(1)) && !store.may_have_forgotten(&key(3)));
    drop(store);
    assert_eq!(purge(&path, &mut |_, entry| entry == b"b").unwrap(), 1);
    let (store, notes) = open(&settings);
    assert!(notes.is_empty() && store.may_have_forgotten(&key(2)), "{notes:?}");
}
