//! Service entries in one file that outlives the process: read from memory where they are, written behind the calls.

mod file;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::monitor::{Key, MemoryStore, Store};

use self::file::{Opened, StoreOwner, name_bytes, row_bytes};
pub use self::file::{StoreContents, StoreError, look, purge};
use self::writer::{Batch, Writer};
use crate::config::{OnMismatch, StoreSettings};
use crate::metrics::{Metrics, count};

/// Bytes that may wait to be written, where the disk does not keep up. What is new beyond that is kept in memory alone, and counted.
const WAITING_MAX_BYTES: usize = 8 << 20;
/// With more waiting the writer does not wait for its time, so that a burst is not in memory twice.
const WRITE_FROM_BYTES: usize = 128 << 10;

/// Bytes of entries in memory, if nobody says otherwise, where a file has them all.
pub(crate) const BESIDE_FILE_BYTES: usize = 512 << 10;
/// The same where there is no file, and what leaves memory is forgotten.
pub(crate) const ALONE_BYTES: usize = 16 << 20;

/// A store of either kind.
#[derive(Debug)]
pub(crate) enum AnyStore {
    Memory(MemoryStore),
    File(FileStore),
    /// One that panics once it is told to.
    #[cfg(test)]
    Failing(tests::Failing),
}

/// A file with a cache before it.
#[derive(Debug)]
pub(crate) struct FileStore {
    /// Entries as the file has them: each behind the second since 1970 that the file has for it.
    cache: MemoryStore,
    names: Vec<String>,
    shared: Arc<Shared>,
    writer: Writer,
    metrics: Arc<Metrics>,
    expire_after_s: Option<u64>,
    /// The bound of `cache` once the file is given up.
    alone_bytes: usize,
}

/// Entries without a bound of their own: [`WAITING_MAX_BYTES`] is it.
fn nothing() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(usize::MAX, None))
}

/// What the calls and the writer share.
#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    batch: Batch,
    /// The hash of the contract that the file is to be of from now on.
    contract_hash: Option<u64>,
    /// What is being written: still to be found, as it may have left the cache.
    going: Arc<MemoryStore>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { batch: Batch::default(), contract_hash: None, going: nothing() }
    }
}

impl Waiting {
    /// What is on its way to the file has it, too.
    fn peek(&self, key: &Key) -> Option<&[u8]> {
        self.batch.entries.peek(key).or_else(|| self.going.peek(key))
    }

    /// That what is in the store, written or not, takes so many bytes more.
    fn grow(&mut self, change_bytes: i64, metrics: &Metrics) {
        self.batch.change_bytes += change_bytes;
        // Sums of two's complement wrap as they should.
        metrics.store_bytes.fetch_add(change_bytes.cast_unsigned(), Ordering::Relaxed);
    }
}

impl AnyStore {
    /// Opens what the settings say. Whatever is wrong with a file, there is a store; what is to be told is for people.
    pub(crate) fn open(
        settings: &StoreSettings,
        name: &str,
        contract_hash: u64,
        metrics: &Arc<Metrics>,
    ) -> (Self, Vec<String>) {
        let expire_after_s = settings.expire_after.map(|after| after.as_secs());
        let memory = || Self::Memory(MemoryStore::new(settings.memory_bytes.unwrap_or(ALONE_BYTES), expire_after_s));
        let Some(path) = &settings.path else { return (memory(), Vec::new()) };
        let about = StoreOwner { name: name.to_owned(), contract_hash };
        let mut notes = Vec::new();
        let opened = match file::open(path, &about) {
            Err(error) if settings.on_mismatch == OnMismatch::Rotate && !matches!(error, StoreError::Busy) => {
                file::put_aside(path).and_then(|aside| {
                    notes.push(format!(
                        "the store {} was moved aside to {}: {error}. A new one is created; vouching parties are \
                         learned again",
                        path.display(),
                        aside.display()
                    ));
                    file::open(path, &about)
                })
            }
            opened => opened,
        };
        match opened {
            Ok(opened) => (Self::File(FileStore::new(opened, path, about, settings, metrics.clone())), notes),
            Err(error) => {
                notes.push(format!(
                    "the store {} is not used: {error}. Calls pass and are checked; entries are only kept in memory",
                    path.display()
                ));
                (memory(), notes)
            }
        }
    }

    /// Waits until all that is known has been written.
    pub(crate) fn flush(&mut self) {
        if let Self::File(store) = self {
            store.writer.flush();
        }
    }

    /// From now on the entries are those of another contract.
    pub(crate) fn renew(&mut self, contract_hash: u64) {
        if let Self::File(store) = self {
            let mut waiting = store.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.contract_hash = Some(contract_hash);
        }
    }

    /// What is wrong with the file since this was asked last.
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
        let names = opened.names.clone();
        let writer = Writer::start(opened, path, about, settings.flush, expire_after_s, &shared, metrics.clone());
        let cache = MemoryStore::new(settings.memory_bytes.unwrap_or(BESIDE_FILE_BYTES), expire_after_s);
        let alone_bytes = settings.memory_bytes.unwrap_or(ALONE_BYTES);
        Self { cache, names, shared, writer, metrics, expire_after_s, alone_bytes }
    }

    /// An entry of the cache that is in use, though by its time in the file it would expire before long. Writing that anew at each use would be a write
    /// a call.
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
            let value = unwritten.or_else(|| self.writer.read(key))?;
            if !self.is_live(file::split(&value)?.0, now_s) {
                return None;
            }
            self.cache.put(key, &value, now_s);
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
        if self.writer.is_broken() {
            self.cache.set_bytes_max(self.alone_bytes);
        }
        let before = self.cache.peek(key).map(<[u8]>::len);
        self.cache.put(key, &value, now_s);
        let mut waiting = self.waiting();
        if waiting.batch.entries.bytes() + value.len() > WAITING_MAX_BYTES {
            count(&self.metrics.store_dropped);
            return;
        }
        let before = before.or_else(|| waiting.peek(key).map(<[u8]>::len));
        let change_bytes = row_bytes(value.len()) as i64 - before.map_or(0, |before| row_bytes(before) as i64);
        waiting.batch.entries.put(key, &value, now_s);
        waiting.grow(change_bytes, &self.metrics);
        // Once for each batch, so that there is always room to ask for a flush.
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
        // Asked before the first call and by people alone, so it may take its time.
        self.writer.flush();
        let Some(all) = self.writer.all() else {
            return self.cache.each(now_s, &mut |key, value| {
                if let Some((_, entry)) = file::split(value) {
                    show(key, entry);
                }
            });
        };
        for (key, used_s, entry) in all {
            if self.is_live(used_s, now_s) {
                show(&key, &entry);
            }
        }
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
}
