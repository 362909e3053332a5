//! The thread that writes: a batch now and then, expired entries out, and what to do when the file is gone.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::monitor::{Key, MemoryStore};
use redb::{Database, ReadableDatabase};

use super::file::{self, ABOUT, ENTRIES, NAMES, Opened, Row, StoreOwner, name_bytes, row_bytes};
use super::{Shared, nothing};
use crate::metrics::Metrics;

/// What waits to be written.
#[derive(Debug)]
pub(super) struct Batch {
    /// As the file will have them.
    pub(super) entries: MemoryStore,
    pub(super) names: Vec<String>,
    /// By how much the content is to grow by this, as far as could be told without a look at the file.
    pub(super) change_bytes: i64,
    /// The writer was told that it is time.
    pub(super) is_urgent: bool,
}

impl Default for Batch {
    fn default() -> Self {
        Self { entries: MemoryStore::new(usize::MAX, None), names: Vec::new(), change_bytes: 0, is_urgent: false }
    }
}

/// Every so many batches expired entries are looked for.
const SWEEP_EVERY: u64 = 120;

/// Whom to tell that what waits has been written; `None`: nobody waits for that.
type Asked = Option<SyncSender<()>>;

#[derive(Debug)]
pub(super) struct Writer {
    db: Arc<RwLock<Option<Database>>>,
    /// Gone when the store is dropped, which ends the thread.
    flush: Option<SyncSender<Asked>>,
    notes: Arc<Mutex<Vec<String>>>,
    is_broken: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Work {
    db: Arc<RwLock<Option<Database>>>,
    shared: Arc<Shared>,
    notes: Arc<Mutex<Vec<String>>>,
    is_broken: Arc<AtomicBool>,
    path: PathBuf,
    about: StoreOwner,
    /// Every name that was ever written, to begin a new file with.
    names: Vec<String>,
    /// As [`Opened`] has it.
    content_bytes: u64,
    metrics: Arc<Metrics>,
    expire_after_s: Option<u64>,
}

impl Writer {
    pub(super) fn start(
        opened: Opened,
        path: &Path,
        about: StoreOwner,
        every: Duration,
        expire_after_s: Option<u64>,
        shared: &Arc<Shared>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (flush, asked) = sync_channel(4);
        let mut work = Work {
            db: Arc::new(RwLock::new(Some(opened.db))),
            shared: shared.clone(),
            notes: Arc::default(),
            is_broken: Arc::default(),
            path: path.to_path_buf(),
            about,
            names: opened.names,
            content_bytes: opened.content_bytes,
            metrics,
            expire_after_s,
        };
        let (db, notes, is_broken) = (work.db.clone(), work.notes.clone(), work.is_broken.clone());
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || work.run(every, &asked));
        if let Err(error) = &thread {
            is_broken.store(true, Ordering::Relaxed);
            let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
            notes.push(format!("the store is not written because no thread could be started: {error}"));
        }
        Self { db, flush: Some(flush), notes, is_broken, thread: thread.ok() }
    }

    /// Waits until all that is known has been written, but not for ever.
    pub(super) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.flush.as_ref().is_some_and(|flush| flush.try_send(Some(done)).is_ok()) {
            let _ = wait.recv_timeout(Duration::from_secs(5));
        }
    }

    /// That it is time to write.
    pub(super) fn hurry(&self) {
        if let Some(flush) = &self.flush {
            let _ = flush.try_send(None);
        }
    }

    /// Whether the file was given up.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    pub(super) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An entry as the file has it.
    pub(super) fn read(&self, key: &Key) -> Option<Vec<u8>> {
        if self.is_broken() {
            return None;
        }
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        let table = db.as_ref()?.begin_read().ok()?.open_table(ENTRIES).ok()?;
        Some(table.get(key).ok()??.value().to_vec())
    }

    /// All entries of the file; `None`: it cannot be read, of which a note tells, or it was given up, of which one has told.
    pub(super) fn all(&self) -> Option<Vec<Row>> {
        if self.is_broken() {
            return None;
        }
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        let all = file::all(db.as_ref()?);
        let told = |error| {
            let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            notes.push(format!("cannot read the entries of the store: {error}. Only those in memory are shown"));
        };
        all.map_err(told).ok()
    }
}

/// The last batch is written before the store is gone.
impl Drop for Writer {
    fn drop(&mut self) {
        self.flush = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Work {
    fn run(&mut self, every: Duration, asked: &Receiver<Asked>) {
        for round in 1_u64.. {
            let done = match asked.recv_timeout(every) {
                Ok(done) => done,
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.write(),
            };
            self.write();
            if round % SWEEP_EVERY == 0 {
                self.sweep();
            }
            if let Some(done) = done {
                let _ = done.send(());
            }
        }
    }

    fn note(&self, text: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    fn write(&mut self) {
        let (entries, names, contract_hash) = {
            let mut waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let batch = std::mem::take(&mut waiting.batch);
            waiting.going = Arc::new(batch.entries);
            (waiting.going.clone(), batch.names, waiting.contract_hash.take())
        };
        self.about.contract_hash = contract_hash.unwrap_or(self.about.contract_hash);
        if !self.is_broken() && !self.path.exists() {
            self.begin_anew();
        }
        let names_from = self.names.len();
        self.names.extend(names);
        let is_new = !entries.is_empty() || names_from < self.names.len() || contract_hash.is_some();
        match is_new.then(|| self.commit(&entries, names_from, contract_hash)) {
            Some(Ok(Some(change_bytes))) => {
                self.content_bytes = self.content_bytes.saturating_add_signed(change_bytes);
                self.metrics.store_written.fetch_add(entries.len() as u64, Ordering::Relaxed);
            }
            Some(Err(error)) => {
                self.is_broken.store(true, Ordering::Relaxed);
                self.note(format!(
                    "cannot write the store {}: {error}. Calls pass and are checked; entries are only kept in memory",
                    self.path.display()
                ));
            }
            Some(Ok(None)) | None => {}
        }
        let mut waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.going = nothing();
        // What calls count comes to the same, unless another thing than they changed the file.
        let content_bytes = self.content_bytes.saturating_add_signed(waiting.batch.change_bytes);
        self.metrics.store_bytes.store(content_bytes, Ordering::Relaxed);
        drop(waiting);
        if let Ok(about) = std::fs::metadata(&self.path) {
            self.metrics.store_file_bytes.store(about.len(), Ordering::Relaxed);
        }
    }

    /// By how much the content has grown; `None`: the file was given up, and nothing was written.
    fn commit(
        &self,
        entries: &MemoryStore,
        names_from: usize,
        contract_hash: Option<u64>,
    ) -> Result<Option<i64>, redb::Error> {
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        let Some(db) = db.as_ref().filter(|_| !self.is_broken()) else { return Ok(None) };
        let mut change = 0;
        let write = db.begin_write()?;
        if let Some(hash) = contract_hash {
            write.open_table(ABOUT)?.insert("contract", &hash.to_le_bytes()[..])?;
        }
        {
            let mut table = write.open_table(NAMES)?;
            for (number, name) in self.names.iter().enumerate().skip(names_from) {
                table.insert(number as u32, name.as_str())?;
                change += name_bytes(name) as i64;
            }
            let mut table = write.open_table(ENTRIES)?;
            // In the file's own order each of its pages is changed once.
            let mut entries = entries.entries().collect::<Vec<_>>();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in entries {
                let before = table.insert(&key, value)?;
                change += row_bytes(value.len()) as i64;
                change -= before.map_or(0, |before| row_bytes(before.value().len()) as i64);
            }
        }
        write.commit()?;
        Ok(Some(change))
    }

    /// The file was removed under the adapter: a new one is begun with the names. Entries come again as they change.
    fn begin_anew(&mut self) {
        self.note(format!(
            "the store {} is gone. A new one is created; vouching parties are learned again",
            self.path.display()
        ));
        let opened = {
            let mut db = self.db.write().unwrap_or_else(PoisonError::into_inner);
            *db = None;
            file::open(&self.path, &self.about).map(|opened| *db = Some(opened.db))
        };
        let begun = opened.map_err(|error| error.to_string());
        match begun.and_then(|()| self.commit(&nothing(), 0, None).map_err(|error| error.to_string())) {
            Ok(change_bytes) => self.content_bytes = change_bytes.unwrap_or(0).unsigned_abs(),
            Err(error) => {
                self.is_broken.store(true, Ordering::Relaxed);
                self.note(format!("cannot create the store {}: {error}", self.path.display()));
            }
        }
    }

    fn sweep(&mut self) {
        let Some(after) = self.expire_after_s else { return };
        let now_s = crate::clock::unix_s();
        let sweep = |db: &Database| -> Result<u64, redb::Error> {
            let mut swept_bytes = 0;
            let write = db.begin_write()?;
            let is_live = |_: &[u8; 12], value: &[u8]| {
                let lives = file::split(value).is_some_and(|(used_s, _)| now_s.saturating_sub(used_s) <= after);
                swept_bytes += if lives { 0 } else { row_bytes(value.len()) };
                lives
            };
            write.open_table(ENTRIES)?.retain(is_live)?;
            write.commit()?;
            Ok(swept_bytes)
        };
        let swept = self.db.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(sweep);
        match swept {
            Some(Ok(swept_bytes)) => self.content_bytes = self.content_bytes.saturating_sub(swept_bytes),
            Some(Err(error)) => {
                self.note(format!("cannot delete expired entries of the store {}: {error}", self.path.display()));
            }
            None => {}
        }
    }
}
