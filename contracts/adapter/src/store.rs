//! Keeps service entries in a file that outlives the process. Reads use an in-memory cache; a thread writes the file.

mod database;
#[cfg(test)]
mod tests;
mod writer;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use contract::monitor::{Forgotten, Key, MemoryStore, Store};

use redb::Database;

pub(crate) use self::database::StoreOwner;
pub use self::database::{StoreContents, StoreError, look, purge};
use self::database::{name_bytes, row_bytes};
use self::writer::EntryFile;
use crate::config::StoreSettings;
use crate::metrics::Metrics;
use crate::reports::Note;

/// Maximum size in bytes of entries waiting for a slow disk. Further entries stay only in memory and are counted.
const WAITING_MAX_BYTES: usize = 8 << 20;
/// Estimated memory for the key and the structures of a waiting entry, in bytes.
const WAITING_ENTRY_BYTES: usize = 64;
/// Size of a batch in bytes above which it is written at once, so that a burst is not in memory twice.
const WRITE_FROM_BYTES: usize = 128 << 10;

/// Default maximum size of entries in memory, in bytes, if a file holds all of them.
pub(crate) const BESIDE_FILE_BYTES: usize = 512 << 10;
/// Default maximum size of entries in memory, in bytes, without a file. Evicted entries are forgotten.
pub(crate) const ALONE_BYTES: usize = 16 << 20;

/// Size in bytes of the filter of keys that both memory and file lack.
const FORGOTTEN_BYTES: usize = 128 << 10;

pub(crate) struct EntryStore {
    /// All entries, or a cache of those in the file, each after the time of its last change (in seconds since 1970).
    memory: MemoryStore,
    file: Option<EntryFile>,
    /// Maximum size of `memory` in bytes; `None` for the defaults.
    memory_bytes: Option<usize>,
    #[cfg(test)]
    pub(crate) fails: bool,
}

/// Entries to write, in the order of the file's pages. Each is after the time of its last change.
type Batch = BTreeMap<Key, Vec<u8>>;

struct Shared {
    /// The open file; `None` once it is closed.
    db: RwLock<Option<Database>>,
    waiting: Mutex<Waiting>,
    note: Note,
    is_failing: AtomicBool,
    expire_after_s: Option<u64>,
    metrics: Arc<Metrics>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    fn is_live(&self, used_s: u64, now_s: u64) -> bool {
        self.expire_after_s.is_none_or(|after| now_s.saturating_sub(used_s) <= after)
    }
}

#[derive(Default)]
struct Waiting {
    entries: Batch,
    /// Memory for `entries`, in bytes.
    entries_bytes: usize,
    /// Expected growth of the file's content by the next batch, in bytes.
    change_bytes: i64,
    is_urgent: bool,
    names: Vec<String>,
    contract_hash: Option<u64>,
    /// Entries that are being written. Reads need them, since the cache may have evicted them.
    going: Arc<Batch>,
    /// Keys of entries that the file may lack, because they were dropped, expired, or lost in a crash.
    lost: Forgotten,
    forgotten: u64,
}

impl Waiting {
    fn peek(&self, key: &Key) -> Option<&[u8]> {
        self.entries.get(key).or_else(|| self.going.get(key)).map(Vec::as_slice)
    }

    /// Adds an entry to the next batch. Returns false, and counts the entry as dropped, if too many bytes are waiting.
    fn put(&mut self, key: &Key, value: Vec<u8>, metrics: &Metrics) -> bool {
        if self.entries_bytes + value.len() > WAITING_MAX_BYTES {
            metrics.store_dropped.inc();
            self.lost.insert(key);
            self.forgotten += 1;
            return false;
        }
        self.entries_bytes += WAITING_ENTRY_BYTES + value.len();
        let replaced = self.entries.insert(*key, value);
        self.entries_bytes -= replaced.map_or(0, |replaced| WAITING_ENTRY_BYTES + replaced.len());
        true
    }

    /// Counts a change of the store's size, which includes entries that are not yet written.
    fn grow(&mut self, change_bytes: i64, metrics: &Metrics) {
        self.change_bytes += change_bytes;
        metrics.store_bytes.inc_by(change_bytes);
    }
}

impl EntryStore {
    /// Opens the configured store. If its file is unusable, tells `note` why and starts a new file or uses only memory.
    pub(crate) fn open(settings: &StoreSettings, owner: StoreOwner, metrics: &Arc<Metrics>, note: Note) -> Self {
        let expire_after_s = settings.expire_after.map(|after| after.as_secs());
        let memory_bytes = settings.memory_bytes;
        let mut store = Self {
            memory: MemoryStore::new(memory_bytes.unwrap_or(ALONE_BYTES), expire_after_s),
            file: None,
            memory_bytes,
            #[cfg(test)]
            fails: false,
        };
        let Some(path) = &settings.path else { return store };
        let shown = path.display();
        let opened = match database::open(path, owner.clone()) {
            Err(error) if settings.is_rotated && !matches!(error, StoreError::Busy) => database::put_aside(path)
                .and_then(|aside| {
                    note(format!(
                        "the store {shown} was moved aside to {}: {error}. A new one is created; vouching parties are \
                         learned again",
                        aside.display()
                    ));
                    let mut opened = database::open(path, owner)?;
                    opened.lost.insert_everything();
                    Ok(opened)
                }),
            opened => opened,
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                note(format!(
                    "the store {shown} is not used: {error}. Calls pass and are checked; entries are only kept in memory"
                ));
                store.memory.forget_everything();
                return store;
            }
        };
        if opened.is_unclean {
            note(format!(
                "the store {shown} was not closed: entries of its last {} ms may be missing. Members that nobody is known \
                 to have introduced are vouched for by `unknown`",
                settings.flush.as_millis()
            ));
        }
        store.memory = MemoryStore::new(memory_bytes.unwrap_or(BESIDE_FILE_BYTES), expire_after_s);
        store.file = Some(EntryFile::start(opened, settings, metrics.clone(), note));
        store
    }

    pub(crate) fn flush(&self) {
        if let Some(file) = &self.file {
            file.flush();
        }
    }

    pub(crate) fn close(&mut self) {
        if let Some(file) = &mut self.file {
            file.worker = None;
        }
    }

    pub(crate) fn renew(&self, contract_hash: u64) {
        if let Some(file) = &self.file {
            file.shared.waiting().contract_hash = Some(contract_hash);
        }
    }
}

impl Store for EntryStore {
    fn get(&mut self, key: &Key, now_s: u64) -> Option<Cow<'_, [u8]>> {
        #[cfg(test)]
        assert!(!self.fails, "the store is set to fail");
        let Some(file) = &self.file else { return self.memory.get(key, now_s) };
        if self.memory.get(key, now_s).is_none() {
            let unwritten = file.shared.waiting().peek(key).map(<[u8]>::to_vec);
            let found = unwritten.map_or_else(|| file.shared.read(key), |value| Ok(Some(value)));
            let is_live =
                |value: &[u8]| database::split(value).is_some_and(|(used_s, _)| file.shared.is_live(used_s, now_s));
            match found {
                Ok(None) => return None,
                Ok(Some(value)) if is_live(&value) => self.memory.put_evicting(key, &value, now_s),
                Ok(Some(_)) | Err(_) => {
                    file.shared.waiting().lost.insert(key);
                    return None;
                }
            }
        }
        let value = self.memory.get(key, now_s)?;
        let (used_s, entry) = database::split(&value)?;
        // An update per use would cost a write per call, so an entry is updated once per quarter of the expiry time.
        if file.shared.expire_after_s.is_some_and(|after| now_s.saturating_sub(used_s) > after / 4) {
            let entry = entry.to_vec();
            self.put(key, &entry, now_s);
        }
        database::split(self.memory.peek(key)?).map(|(_, entry)| Cow::Borrowed(entry))
    }

    fn put(&mut self, key: &Key, entry: &[u8], now_s: u64) {
        let Some(file) = &self.file else { return self.memory.put(key, entry, now_s) };
        let shared = &file.shared;
        let value = database::joined(now_s, entry);
        let default_bytes = if shared.is_failing() { ALONE_BYTES } else { BESIDE_FILE_BYTES };
        self.memory.set_bytes_max(self.memory_bytes.unwrap_or(default_bytes));
        let before = self.memory.peek(key).map(<[u8]>::len);
        self.memory.put_evicting(key, &value, now_s);
        let mut waiting = shared.waiting();
        let before = before.or_else(|| waiting.peek(key).map(<[u8]>::len));
        let row = row_bytes(value.len());
        if !waiting.put(key, value, &shared.metrics) {
            return;
        }
        let change_bytes = row as i64 - before.map_or(0, |before| row_bytes(before) as i64);
        waiting.grow(change_bytes, &shared.metrics);
        // The writer is woken at most once per batch, so that a flush request always fits in the queue.
        if waiting.entries_bytes > WRITE_FROM_BYTES && !std::mem::replace(&mut waiting.is_urgent, true) {
            let _ = file.worker.as_ref().map(|worker| worker.messages.try_send(None));
        }
    }

    fn put_name(&mut self, name: &str) {
        let Some(file) = &self.file else { return self.memory.put_name(name) };
        let mut waiting = file.shared.waiting();
        waiting.names.push(name.to_owned());
        waiting.grow(name_bytes(name) as i64, &file.shared.metrics);
    }

    fn names(&mut self) -> Vec<String> {
        self.file.as_ref().map_or_else(|| self.memory.names(), |file| file.shared.waiting().names.clone())
    }

    fn each(&mut self, now_s: u64, show: &mut dyn FnMut(&Key, &[u8])) {
        let Some(file) = &self.file else { return self.memory.each(now_s, show) };
        // This runs only before the first call or when a user requests the entries, so it may be slow.
        file.flush();
        // If writes fail, memory has newer values. Read it before the file, as its values may move to the file.
        let mut unwritten = BTreeMap::new();
        if file.shared.is_failing() {
            let waiting = file.shared.waiting();
            let waits = waiting.entries.iter().chain(waiting.going.iter()).map(|(key, value)| (*key, value.as_slice()));
            for (key, value) in waits.chain(self.memory.entries()) {
                if let Some((used_s, entry)) = database::split(value) {
                    unwritten.entry(key).or_insert_with(|| (used_s, entry.to_vec()));
                }
            }
        }
        let mut rows = file.shared.all();
        rows.retain(|(key, ..)| !unwritten.contains_key(key));
        rows.extend(unwritten.into_iter().map(|(key, (used_s, entry))| (key, used_s, entry)));
        for (key, _, entry) in rows.iter().filter(|(_, used_s, _)| file.shared.is_live(*used_s, now_s)) {
            show(key, entry);
        }
    }

    fn may_have_forgotten(&self, key: &Key) -> bool {
        match &self.file {
            Some(file) => file.shared.waiting().lost.may_have(key),
            None => self.memory.may_have_forgotten(key),
        }
    }

    fn forgotten(&self) -> u64 {
        self.file.as_ref().map_or_else(|| self.memory.forgotten(), |file| file.shared.waiting().forgotten)
    }
}
