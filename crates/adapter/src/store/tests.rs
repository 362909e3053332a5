use std::time::Duration;

use contract::monitor::{Key, Store};

use super::*;

fn settings(path: &Path) -> StoreSettings {
    StoreSettings {
        path: Some(path.to_path_buf()),
        memory_bytes: 4096,
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
