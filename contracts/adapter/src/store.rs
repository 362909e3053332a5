//! Service entries in a file that outlives the process. Reads use a cache; a thread writes in the
//! background.

mod file;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::monitor::{Forgotten, Key, MemoryStore, Store};

use self::file::{Opened, StoreOwner, name_bytes, row_bytes};
pub use self::file::{StoreContents, StoreError, look, purge};
use self::writer::{Batch, Writer};
use crate::config::{OnMismatch, StoreSettings};
use crate::metrics::{Metrics, count};

/// Maximum size of entries waiting for a slow disk. Later entries stay only in memory and are
/// counted.
const WAITING_MAX_BYTES: usize = 8 << 20;
/// From this size on the writer writes at once, so that a burst is not in memory twice.
const WRITE_FROM_BYTES: usize = 128 << 10;

/// Default size of entries in memory with a file, which holds all of them.
pub(crate) const BESIDE_FILE_BYTES: usize = 512 << 10;
/// Default size without a file. Evicted entries are forgotten.
pub(crate) const ALONE_BYTES: usize = 16 << 20;

/// Size of the filter of keys missing from both memory and file.
const FORGOTTEN_BYTES: usize = 128 << 10;

#[derive(Debug)]
pub(crate) enum AnyStore {
    Memory(MemoryStore),
    File(FileStore),
    /// Panics on request.
    #[cfg(test)]
    Failing(tests::Failing),
}

#[derive(Debug)]
pub(crate) struct FileStore {
    /// Entries as in the file, each after the time of its last use, in seconds since 1970.
    cache: MemoryStore,
    names: Vec<String>,
    shared: Arc<Shared>,
    writer: Writer,
    metrics: Arc<Metrics>,
    expire_after_s: Option<u64>,
    cache_bytes: usize,
    /// The bound of `cache` while the file cannot be written.
    alone_bytes: usize,
}

/// An empty store. [`WAITING_MAX_BYTES`] bounds it.
fn nothing() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(usize::MAX, None))
}

/// State shared by calls and the writer.
#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    batch: Batch,
    /// The contract hash to write to the file.
    contract_hash: Option<u64>,
    /// Entries being written. Reads need them, since the cache may have evicted them.
    going: Arc<MemoryStore>,
    /// Keys of entries that the file may lack: dropped, expired, or lost in a crash.
    lost: Forgotten,
    /// Number of entries dropped or expired.
    forgotten: u64,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            batch: Batch::default(),
            contract_hash: None,
            going: nothing(),
            lost: Forgotten::new(FORGOTTEN_BYTES),
            forgotten: 0,
        }
    }
}

impl Waiting {
    fn peek(&self, key: &Key) -> Option<&[u8]> {
        self.batch.entries.peek(key).or_else(|| self.going.peek(key))
    }

    /// Adds an entry to the next batch, unless too many bytes are waiting.
    fn put(&mut self, key: &Key, value: &[u8], now_s: u64, metrics: &Metrics) -> bool {
        if self.batch.entries.bytes() + value.len() > WAITING_MAX_BYTES {
            count(&metrics.store_dropped);
            self.lost.insert(key);
            self.forgotten += 1;
            return false;
        }
        self.batch.entries.put(key, value, now_s);
        true
    }

    /// Counts a change of the store's size, including unwritten entries.
    fn grow(&mut self, change_bytes: i64, metrics: &Metrics) {
        self.batch.change_bytes += change_bytes;
        // Two's complement sums wrap as intended.
        metrics.store_bytes.fetch_add(change_bytes.cast_unsigned(), Ordering::Relaxed);
    }
}

impl AnyStore {
    /// Opens the configured store. If the file is unusable, falls back and returns notes for the
    /// user.
    pub(crate) fn open(
        settings: &StoreSettings,
        name: &str,
        contract_hash: u64,
        metrics: &Arc<Metrics>,
    ) -> (Self, Vec<String>) {
        let expire_after_s = settings.expire_after.map(|after| after.as_secs());
        let memory = || MemoryStore::new(settings.memory_bytes.unwrap_or(ALONE_BYTES), expire_after_s);
        let Some(path) = &settings.path else { return (Self::Memory(memory()), Vec::new()) };
        let about = StoreOwner { name: name.to_owned(), contract_hash };
        let (mut notes, mut is_rotated) = (Vec::new(), false);
        let opened = match file::open(path, &about) {
            Err(error) if settings.on_mismatch == OnMismatch::Rotate && !matches!(error, StoreError::Busy) => {
                file::put_aside(path).and_then(|aside| {
                    notes.push(format!(
                        "the store {} was moved aside to {}: {error}. A new one is created; vouching parties are \
                         learned again",
                        path.display(),
                        aside.display()
                    ));
                    is_rotated = true;
                    file::open(path, &about)
                })
            }
            opened => opened,
        };
        match opened {
            Ok(mut opened) => {
                if is_rotated {
                    opened.lost.insert_everything();
                }
                if opened.is_unclean {
                    notes.push(format!(
                        "the store {} was not closed: entries of its last {} ms may be missing. Members that nobody is \
                         known to have introduced are vouched for by `unknown`",
                        path.display(),
                        settings.flush.as_millis()
                    ));
                }
                (Self::File(FileStore::new(opened, path, about, settings, metrics.clone())), notes)
            }
            Err(error) => {
                notes.push(format!(
                    "the store {} is not used: {error}. Calls pass and are checked; entries are only kept in memory",
                    path.display()
                ));
                let mut memory = memory();
                memory.forget_everything();
                (Self::Memory(memory), notes)
            }
        }
    }

    pub(crate) fn flush(&mut self) {
        if let Self::File(store) = self {
            store.writer.flush();
        }
    }

    /// Writes all entries, compacts the file and closes it.
    pub(crate) fn close(&mut self) {
        if let Self::File(store) = self {
            store.writer.close();
        }
    }

    pub(crate) fn renew(&mut self, contract_hash: u64) {
        if let Self::File(store) = self {
            let mut waiting = store.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.contract_hash = Some(contract_hash);
        }
    }

    /// Takes the notes about file errors since the last call.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        match self {
            Self::File(store) => store.writer.take_notes(),
            _ => Vec::new(),
        }
    }
}

impl FileStore {
    fn new(opened: Opened, path: &Path, about: StoreOwner, settings: &StoreSettings, metrics: Arc<Metrics>) -> Self {
        let expire_after_s = settings.expire_after.map(|after| after.as_secs());
        let shared = Arc::new(Shared::default());
        shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).lost = opened.lost.clone();
        let names = opened.names.clone();
        let writer = Writer::start(opened, path, about, settings.flush, expire_after_s, &shared, metrics.clone());
        let cache_bytes = settings.memory_bytes.unwrap_or(BESIDE_FILE_BYTES);
        let cache = MemoryStore::new(cache_bytes, expire_after_s);
        let alone_bytes = settings.memory_bytes.unwrap_or(ALONE_BYTES);
        Self { cache, names, shared, writer, metrics, expire_after_s, cache_bytes, alone_bytes }
    }

    /// A cached entry in use that would expire soon according to the file. Updating the file at
    /// each use would cost a write per call.
    fn aged(&mut self, key: &Key, now_s: u64) -> Option<Vec<u8>> {
        let after = self.expire_after_s?;
        let value = self.cache.get(key, now_s)?;
        let (used_s, entry) = file::split(&value)?;
        (now_s.saturating_sub(used_s) > after / 4).then(|| entry.to_vec())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_live(&self, used_s: u64, now_s: u64) -> bool {
        self.expire_after_s.is_none_or(|after| now_s.saturating_sub(used_s) <= after)
    }
}

impl Store for FileStore {
    fn get(&mut self, key: &Key, now_s: u64) -> Option<Cow<'_, [u8]>> {
        if self.cache.get(key, now_s).is_none() {
            let unwritten = self.waiting().peek(key).map(<[u8]>::to_vec);
            let found = unwritten.map_or_else(|| self.writer.read(key), |value| Ok(Some(value)));
            let is_live = |value: &[u8]| file::split(value).is_some_and(|(used_s, _)| self.is_live(used_s, now_s));
            match found {
                Ok(None) => return None,
                Ok(Some(value)) if is_live(&value) => self.cache.put_evicting(key, &value, now_s, &mut |_| {}),
                // It has expired, or the file cannot be read.
                Ok(Some(_)) | Err(_) => {
                    self.waiting().lost.insert(key);
                    return None;
                }
            }
        }
        if let Some(entry) = self.aged(key, now_s) {
            self.put(key, &entry, now_s);
        }
        match self.cache.get(key, now_s)? {
            Cow::Borrowed(value) => Some(Cow::Borrowed(file::split(value)?.1)),
            Cow::Owned(value) => Some(Cow::Owned(file::split(&value)?.1.to_vec())),
        }
    }

    fn put(&mut self, key: &Key, entry: &[u8], now_s: u64) {
        let value = file::joined(now_s, entry);
        self.cache.set_bytes_max(if self.writer.is_failing() { self.alone_bytes } else { self.cache_bytes });
        let before = self.cache.peek(key).map(<[u8]>::len);
        self.cache.put_evicting(key, &value, now_s, &mut |_| {});
        let mut waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let before = before.or_else(|| waiting.peek(key).map(<[u8]>::len));
        if !waiting.put(key, &value, now_s, &self.metrics) {
            return;
        }
        let change_bytes = row_bytes(value.len()) as i64 - before.map_or(0, |before| row_bytes(before) as i64);
        waiting.grow(change_bytes, &self.metrics);
        // Once per batch, so that a flush request always fits in the queue.
        let is_much = waiting.batch.entries.bytes() > WRITE_FROM_BYTES;
        if is_much && !std::mem::replace(&mut waiting.batch.is_urgent, true) {
            self.writer.hurry();
        }
    }

    fn put_name(&mut self, number: u32, name: &str) {
        assert_eq!(number as usize, self.names.len(), "names are numbered without a gap");
        self.names.push(name.to_owned());
        let mut waiting = self.waiting();
        waiting.batch.names.push(name.to_owned());
        waiting.grow(name_bytes(name) as i64, &self.metrics);
    }

    fn names(&mut self) -> Vec<String> {
        self.names.clone()
    }

    fn each(&mut self, now_s: u64, show: &mut dyn FnMut(&Key, &[u8])) {
        // Only used before the first call and by people, so it may be slow.
        self.writer.flush();
        // While the file cannot be written, memory has later values. They are read first, since
        // they may reach the file in between.
        let mut unwritten = std::collections::BTreeMap::new();
        if self.writer.is_failing() {
            let waiting = self.waiting();
            let waits = waiting.batch.entries.entries().chain(waiting.going.entries());
            for (key, value) in waits.chain(self.cache.entries()) {
                if let Some((used_s, entry)) = file::split(value) {
                    unwritten.entry(key).or_insert_with(|| (used_s, entry.to_vec()));
                }
            }
        }
        let mut rows = self.writer.all();
        rows.retain(|(key, ..)| !unwritten.contains_key(key));
        rows.extend(unwritten.into_iter().map(|(key, (used_s, entry))| (key, used_s, entry)));
        for (key, used_s, entry) in rows {
            if self.is_live(used_s, now_s) {
                show(&key, &entry);
            }
        }
    }

    fn may_have_forgotten(&self, key: &Key) -> bool {
        self.waiting().lost.may_have(key)
    }

    fn forgotten(&self) -> u64 {
        self.waiting().forgotten
    }
}

impl AnyStore {
    fn either(&mut self) -> &mut dyn Store {
        match self {
            Self::Memory(store) => store,
            Self::File(store) => store,
            #[cfg(test)]
            Self::Failing(store) => store,
        }
    }

    fn either_ref(&self) -> &dyn Store {
        match self {
            Self::Memory(store) => store,
            Self::File(store) => store,
            #[cfg(test)]
            Self::Failing(store) => store,
        }
    }
}

impl Store for AnyStore {
    fn get(&mut self, key: &Key, now_s: u64) -> Option<Cow<'_, [u8]>> {
        self.either().get(key, now_s)
    }

    fn put(&mut self, key: &Key, entry: &[u8], now_s: u64) {
        self.either().put(key, entry, now_s);
    }

    fn put_name(&mut self, number: u32, name: &str) {
        self.either().put_name(number, name);
    }

    fn names(&mut self) -> Vec<String> {
        self.either().names()
    }

    fn each(&mut self, now_s: u64, show: &mut dyn FnMut(&Key, &[u8])) {
        self.either().each(now_s, show);
    }
    fn may_have_forgotten(&self, key: &Key) -> bool {
        self.either_ref().may_have_forgotten(key)
    }

    fn forgotten(&self) -> u64 {
        self.either_ref().forgotten()
    }
}
