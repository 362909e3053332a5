//! The writer thread: writes batches, removes expired entries, and replaces a removed file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use contract::monitor::Key;
use redb::{Database, ReadableDatabase};

use super::database::{self, ABOUT, ENTRIES, NAMES, Opened, Row, StoreOwner, name_bytes, row_bytes};
use super::{Batch, Shared, WAITING_MAX_BYTES, Waiting};
use crate::config::StoreSettings;
use crate::message_queue_thread::Worker;
use crate::metrics::Metrics;
use crate::reports::Note;

/// Time from a failed write to the next attempt. Each failure reopens the file, and reopening reads all of it.
const RETRY_AFTER: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 10 });
/// Maximum size of a file to compact on closing, in bytes. Compacting reads and writes the whole file.
const COMPACTED_MAX_BYTES: u64 = 32 << 20;
/// Maximum time that a read waits for the file to be reopened after a failed write, in ms.
const REOPENED_WITHIN_MS: u32 = 1_000;
/// Number of batches between two searches for expired entries.
const SWEEP_EVERY: u64 = 120;

type FlushRequest = Option<SyncSender<()>>;

pub(super) struct EntryFile {
    pub(super) shared: Arc<Shared>,
    /// The writer thread; `None` once the file is closed, so that later entries stay in memory.
    pub(super) worker: Option<Worker<FlushRequest>>,
}

struct Work {
    shared: Arc<Shared>,
    path: PathBuf,
    owner: StoreOwner,
    names_written: usize,
    retry_at: Option<Instant>,
    content_bytes: u64,
}

impl EntryFile {
    pub(super) fn start(opened: Opened, settings: &StoreSettings, metrics: Arc<Metrics>, note: Note) -> Self {
        let (every, expire_after_s) = (settings.flush, settings.expire_after.map(|after| after.as_secs()));
        let Opened { db, path, owner, names, content_bytes, lost, .. } = opened;
        let (names_written, db) = (names.len(), RwLock::new(Some(db)));
        let waiting = Mutex::new(Waiting { names, lost, ..Waiting::default() });
        let is_failing = AtomicBool::new(false);
        let shared = Arc::new(Shared { db, waiting, note, is_failing, expire_after_s, metrics });
        let mut work = Work { shared: shared.clone(), path, owner, names_written, retry_at: None, content_bytes };
        let worker = Worker::start("store", 4, move |requests| work.run(every, requests));
        if let Err(error) = &worker {
            shared.is_failing.store(true, Ordering::Relaxed);
            (shared.note)(format!("the store is not written because no thread could be started: {error}"));
        }
        Self { shared, worker: worker.ok() }
    }

    /// Waits until all entries have been written, but at most 5 s.
    pub(super) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.worker.as_ref().is_some_and(|worker| worker.messages.try_send(Some(done)).is_ok()) {
            let _ = wait.recv_timeout(Duration::from_secs(5));
        }
    }
}

impl Shared {
    pub(super) fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, Box<redb::Error>> {
        self.reading(|db| {
            let table = db.begin_read()?.open_table(ENTRIES)?;
            Ok(table.get(key)?.map(|value| value.value().to_vec()))
        })
    }

    /// Returns all entries of the file. If the file cannot be read, adds a note and returns no entries.
    pub(super) fn all(&self) -> Vec<Row> {
        self.reading(database::all).unwrap_or_else(|error| {
            (self.note)(format!("cannot read the entries of the store: {error}. Only those in memory are shown"));
            Vec::new()
        })
    }

    fn reading<T>(&self, read: impl Fn(&Database) -> Result<T, redb::Error>) -> Result<T, Box<redb::Error>> {
        let try_read = || {
            let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
            read(db.as_ref().ok_or(redb::Error::DatabaseClosed)?)
        };
        let mut result = try_read();
        // This error means that a write has just failed. Retry, because the file will be reopened shortly.
        for _ in 0..REOPENED_WITHIN_MS {
            if !matches!(result, Err(redb::Error::PreviousIo)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
            result = try_read();
        }
        result.map_err(Box::new)
    }
}

impl Work {
    fn run(&mut self, every: Duration, requests: &Receiver<FlushRequest>) {
        for round in 1_u64.. {
            let done = match requests.recv_timeout(every) {
                Ok(done) => done,
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    self.retry_at = self.retry_at.map(|_| crate::clock::now());
                    self.write();
                    return self.close();
                }
            };
            self.write();
            if round % SWEEP_EVERY == 0 && self.shared.expire_after_s.is_some() {
                self.sweep();
            }
            if let Some(done) = done {
                let _ = done.send(());
            }
        }
    }

    fn write(&mut self) {
        if self.retry_at.is_some_and(|at| crate::clock::now() < at) {
            return;
        }
        let (entries, change_bytes, contract_hash) = {
            let mut waiting = self.shared.waiting();
            (waiting.is_urgent, waiting.entries_bytes) = (false, 0);
            waiting.going = Arc::new(std::mem::take(&mut waiting.entries));
            (waiting.going.clone(), std::mem::take(&mut waiting.change_bytes), waiting.contract_hash.take())
        };
        self.owner.contract_hash = contract_hash.unwrap_or(self.owner.contract_hash);
        match self.try_write(&entries, contract_hash) {
            Ok(()) => _ = self.shared.metrics.store_written.inc_by(entries.len() as u64),
            Err(error) => {
                self.failed(&error);
                // The next batch includes these entries, unless they have changed by then.
                let mut waiting = self.shared.waiting();
                waiting.contract_hash = waiting.contract_hash.or(contract_hash);
                waiting.change_bytes += change_bytes;
                for (key, value) in entries.iter() {
                    if !waiting.entries.contains_key(key) {
                        waiting.put(key, value.clone(), &self.shared.metrics);
                    }
                }
            }
        }
        let mut waiting = self.shared.waiting();
        waiting.going = Arc::default();
        // The sum equals the size that calls have counted, unless something else changed the file.
        let content_bytes = self.content_bytes.saturating_add_signed(waiting.change_bytes);
        self.shared.metrics.store_bytes.set(content_bytes as i64);
        drop(waiting);
        self.shared.metrics.store_file_bytes.set(self.file_bytes() as i64);
    }

    /// Writes a batch to the file, or to a new file if the old one was removed.
    fn try_write(&mut self, entries: &Batch, contract_hash: Option<u64>) -> Result<(), String> {
        if !self.path.exists() {
            self.begin_anew()?;
        }
        let names = self.shared.waiting().names[self.names_written..].to_vec();
        if !entries.is_empty() || !names.is_empty() || contract_hash.is_some() {
            let change_bytes = self.commit(entries, &names, contract_hash).map_err(|error| error.to_string())?;
            self.content_bytes = self.content_bytes.saturating_add_signed(change_bytes);
            self.names_written += names.len();
            if self.retry_at.take().is_some() {
                self.shared.is_failing.store(false, Ordering::Relaxed);
                (self.shared.note)(format!("the store {} is written again", self.path.display()));
            }
        }
        Ok(())
    }

    /// Reports a failed write and reopens the file, because redb also refuses reads after an I/O error.
    fn failed(&mut self, error: &str) {
        if self.retry_at.is_none() {
            (self.shared.note)(format!(
                "cannot write the store {}: {error}. Calls pass and are checked; new entries are kept in memory, {} MiB of \
                 them, until it can be written",
                self.path.display(),
                WAITING_MAX_BYTES >> 20,
            ));
        }
        self.retry_at = Some(crate::clock::now() + RETRY_AFTER);
        self.shared.is_failing.store(true, Ordering::Relaxed);
        let mut db = self.shared.db.write().unwrap_or_else(PoisonError::into_inner);
        *db = None;
        *db = database::reopen(&self.path).ok();
    }

    /// Marks the file as complete. Compacts files of up to [`COMPACTED_MAX_BYTES`], as redb doubles a file to grow it.
    fn close(&self) {
        let mut db = self.shared.db.write().unwrap_or_else(PoisonError::into_inner);
        let (Some(open), None) = (db.as_mut(), self.retry_at) else { return };
        let mut closed = database::close(open, &self.shared.waiting().lost).map_err(|error| error.to_string());
        if self.file_bytes() <= COMPACTED_MAX_BYTES {
            closed = closed.and_then(|()| open.compact().map(drop).map_err(|error| error.to_string()));
        }
        if let Err(error) = closed {
            (self.shared.note)(format!("cannot close the store {}: {error}", self.path.display()));
        }
        *db = None;
        self.shared.metrics.store_file_bytes.set(self.file_bytes() as i64);
    }

    fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |about| about.len())
    }

    /// Writes a batch and returns the growth of the file's content in bytes.
    fn commit(&self, entries: &Batch, names: &[String], contract_hash: Option<u64>) -> Result<i64, redb::Error> {
        let db = self.shared.db.read().unwrap_or_else(PoisonError::into_inner);
        let Some(db) = db.as_ref() else { return Err(redb::Error::DatabaseClosed) };
        let mut change = 0;
        let write = db.begin_write()?;
        if let Some(hash) = contract_hash {
            write.open_table(ABOUT)?.insert("contract", &hash.to_le_bytes()[..])?;
        }
        {
            let mut table = write.open_table(NAMES)?;
            for (number, name) in (self.names_written as u32..).zip(names) {
                table.insert(number, name.as_str())?;
                change += name_bytes(name) as i64;
            }
            let mut table = write.open_table(ENTRIES)?;
            for (key, value) in entries {
                let before = table.insert(key, value.as_slice())?;
                change += row_bytes(value.len()) as i64;
                change -= before.map_or(0, |before| row_bytes(before.value().len()) as i64);
            }
        }
        write.commit()?;
        Ok(change)
    }

    /// Creates a new file after the old one was removed. The first batch has all names; entries follow as they change.
    fn begin_anew(&mut self) -> Result<(), String> {
        if self.retry_at.is_none() {
            (self.shared.note)(format!(
                "the store {} is gone. A new one is created; vouching parties are learned again",
                self.path.display()
            ));
        }
        let mut db = self.shared.db.write().unwrap_or_else(PoisonError::into_inner);
        *db = None;
        let opened =
            database::open(&self.path, self.owner.clone()).map_err(|error| format!("cannot create it: {error}"))?;
        *db = Some(opened.db);
        (self.content_bytes, self.names_written) = (0, 0);
        drop(db);
        self.shared.waiting().lost.insert_everything();
        Ok(())
    }

    fn sweep(&mut self) {
        let now_s = crate::clock::unix_s();
        let sweep = |db: &Database| -> Result<Vec<(Key, u64)>, redb::Error> {
            let write = db.begin_write()?;
            let is_over = |_: &[u8; 12], value: &[u8]| {
                database::split(value).is_none_or(|(used_s, _)| !self.shared.is_live(used_s, now_s))
            };
            let mut swept = Vec::new();
            for row in write.open_table(ENTRIES)?.extract_if(is_over)? {
                let (key, value) = row?;
                swept.push((*key.value(), row_bytes(value.value().len())));
            }
            write.commit()?;
            Ok(swept)
        };
        let swept = self.shared.db.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(sweep);
        match swept {
            Some(Ok(swept)) => {
                let mut waiting = self.shared.waiting();
                waiting.forgotten += swept.len() as u64;
                for (key, bytes) in swept {
                    self.content_bytes = self.content_bytes.saturating_sub(bytes);
                    waiting.lost.insert(&key);
                }
            }
            Some(Err(error)) => self.failed(&error.to_string()),
            None => {}
        }
    }
}
