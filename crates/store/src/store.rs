//! The store: runs, records and calibrations in SQLite.

use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Serialize;
use serde_json::Value;
use study::Json;
use study::record::{Calibration, IdlePolicy, RECORD_VERSION, Record, Run, RunState};
use study::spec::Protocol;

use crate::error::{BUSY_S, StoreError};
use crate::run_file::{self, Content, Entry};
use crate::run_lock::{self, Owner};
use crate::table_layout::{self, Layout};

type Result<T> = std::result::Result<T, StoreError>;

/// Runs and their trials in one file. No added trial is lost if the process is killed. Methods fail with errors of
/// the file, for a run that is unknown, and with [`StoreError::Unreadable`]. Parameters named `run` take a full name.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// Path of the SQLite file, as given to [`Store::open`].
    pub path: PathBuf,
}

/// Summary of a run: a row in the list of runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    /// Full name of the run.
    pub id: String,
    /// Start time in UTC, in the format of RFC 3339.
    pub started: String,
    /// Name of the study.
    pub study: String,
    /// Profile of the run: `default`, `quick` or `full`.
    pub profile: String,
    /// Number of design points in the plan.
    pub points: u32,
    /// Number of trials in the store.
    pub trials: u32,
    /// Number of failed trials in the store.
    pub failed: u32,
    /// Minimum and maximum number of trials in the plan; `None` if this build cannot read the plan.
    pub planned: Option<[u64; 2]>,
    /// Progress of the run; `None` if unknown.
    pub state: Option<RunState>,
    /// Size of the run and its trials in the store, in bytes.
    pub bytes: u64,
    /// Host name of the machine, or of the lab if the run used a cluster.
    pub host: String,
    /// Time of the import in UTC, in the format of RFC 3339; empty if the run was not imported.
    pub imported: String,
}

/// Disk space freed by a removal or a rewrite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Freed {
    /// Size of the store and its log before the change, in bytes.
    pub before_bytes: u64,
    /// Size of the store and its log after the change, in bytes.
    pub after_bytes: u64,
    /// Why the file keeps unused space for later trials; `None` if the space was returned to the disk.
    pub not_rewritten: Option<String>,
}

impl Store {
    /// Opens or creates the file. Fails if it has a newer layout, is foreign, damaged or locked, or cannot be created.
    pub fn open(path: impl AsRef<Path>) -> Result<Store> {
        Self::open_with(path.as_ref(), OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens an existing file, read-only if it cannot be written. Also fails with [`StoreError::Missing`].
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Store> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(StoreError::Missing(path.to_path_buf()));
        }
        match Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
            Err(StoreError::Unopenable(_, why)) if path.is_file() => Self::open_read_only(path, why),
            opened => opened,
        }
    }

    /// Opens a read-only file; `why` is the error from opening it for writing.
    fn open_read_only(path: &Path, why: String) -> Result<Store> {
        let sqlite = |error| StoreError::from_sqlite(path, error);
        let log = PathBuf::from(format!("{}-wal", path.display()));
        // A log shows that a process runs or was killed. Without one, `immutable` keeps SQLite from creating files.
        let logged = std::fs::metadata(&log).is_ok_and(|log| log.len() > 0);
        let uri = uri(path, if logged { "mode=ro" } else { "immutable=1" });
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri, flags).map_err(sqlite)?;
        connection.busy_timeout(Duration::from_secs(BUSY_S)).map_err(sqlite)?;
        match table_layout::look(&connection) {
            Err(_) if logged => {
                let why = format!("{why}, and `{}` contains trials; copy both elsewhere", log.display());
                Err(StoreError::Unopenable(path.to_path_buf(), why))
            }
            layout => Store::new(connection, path, layout.map_err(sqlite)?),
        }
    }

    fn new(connection: Connection, path: &Path, layout: Layout) -> Result<Store> {
        let path = path.to_path_buf();
        match layout {
            Layout::Current => Ok(Store { connection, path }),
            Layout::Empty => Err(StoreError::Unopenable(path, "it is empty".to_owned())),
            Layout::Unreadable(why) => Err(StoreError::Other(format!("`{}` {why}", path.display()))),
        }
    }

    fn open_with(path: &Path, flags: OpenFlags) -> Result<Store> {
        let sqlite = |error| StoreError::from_sqlite(path, error);
        let mut connection =
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(sqlite)?;
        connection.busy_timeout(Duration::from_secs(BUSY_S)).map_err(sqlite)?;
        // These settings apply to new files and to older files once they are rewritten. They make the time of a
        // removal proportional to the size of the removed data. A trial takes about 20 kB.
        let settings = "PRAGMA page_size = 16384; PRAGMA auto_vacuum = incremental";
        connection.execute_batch(settings).map_err(sqlite)?;
        let layout = table_layout::create(&mut connection).map_err(sqlite)?;
        let store = Store::new(connection, path, layout)?;
        // A write-ahead log lets `report` read while `run` writes. Commits are synced, as a lost trial costs seconds.
        let settings = "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA foreign_keys = on";
        store.connection.execute_batch(settings).map_err(sqlite)?;
        Ok(store)
    }

    /// Inserts a run, which must precede its first trial. Fails with [`StoreError::RunExists`].
    pub fn begin_run(&self, run: &Run) -> Result<()> {
        let json = to_json(run, || format!("run `{}`", run.id))?;
        let sql = "INSERT INTO runs (id, run) VALUES (?1, ?2)";
        self.inserted(&run.id, self.connection.execute(sql, params![run.id, json]))
    }

    fn inserted(&self, run: &str, result: rusqlite::Result<usize>) -> Result<()> {
        match result {
            Err(error) if is_conflict(&error) => Err(StoreError::RunExists(self.path.clone(), run.to_owned())),
            result => result.map(drop).map_err(|error| self.sqlite(error)),
        }
    }

    /// Inserts and locks a new run. Adds a suffix such as `-2` if the name is taken.
    pub fn begin_new(&self, run: &mut Run) -> Result<Owner> {
        let name = run.id.clone();
        for number in 2.. {
            let entered = self.own(&run.id).and_then(|owner| self.begin_run(run).map(|()| owner));
            match entered {
                Err(StoreError::RunExists { .. } | StoreError::Owned { .. }) => run.id = format!("{name}-{number}"),
                entered => return entered,
            }
        }
        unreachable!("there are more numbers than runs")
    }

    /// Locks a run until the returned owner is dropped. Fails with [`StoreError::Owned`].
    pub fn own(&self, run: &str) -> Result<Owner> {
        run_lock::take(run, &self.lock_of(run))
    }

    /// Whether a process has locked a run, for example to add trials.
    pub fn is_owned(&self, run: &str) -> bool {
        run_lock::is_taken(&self.lock_of(run))
    }

    fn lock_of(&self, run: &str) -> PathBuf {
        // Only names inserted by hand contain these characters.
        let name = run.replace(['/', '\0'], "_");
        // The path is canonical, so that all paths to the store lead to the same lock.
        let mut path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone()).into_os_string();
        path.push(format!("-run-{name}.lock"));
        path.into()
    }

    /// Replaces the stored run, to add data learned after its start, such as builds.
    pub fn update_run(&self, run: &Run) -> Result<()> {
        let json = to_json(run, || format!("run `{}`", run.id))?;
        let transaction = self.write()?;
        let update = || transaction.execute("UPDATE runs SET run = ?2 WHERE id = ?1", params![run.id, json]);
        let changed = transaction.execute("DELETE FROM digests WHERE run = ?1", [&run.id]).and_then(|_| update());
        match changed.map_err(|error| self.sqlite(error))? {
            0 => Err(self.unknown(&run.id)?),
            _ => transaction.commit().map_err(|error| self.sqlite(error)),
        }
    }

    /// Adds a trial in its own transaction, which is on disk when this returns. Fails if there is one in the block.
    pub fn add_record(&self, run: &str, record: &Record) -> Result<()> {
        let (point, block) = (record.point, record.block);
        let json = to_json(record, || format!("the trial of point {point} in block {block}"))?;
        let transaction = self.write()?;
        match insert_trial(&transaction, run, &json, record) {
            Err(error) if is_missing_parent(&error) => Err(self.unknown(run)?),
            Err(error) if is_conflict(&error) => {
                Err(StoreError::Other(format!("run `{run}` already has a trial of point {point} in block {block}")))
            }
            result => result.and_then(|()| transaction.commit()).map_err(|error| self.sqlite(error)),
        }
    }

    fn write(&self) -> Result<Transaction<'_>> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).map_err(|error| self.sqlite(error))
    }

    /// Summaries of all runs, latest first.
    pub fn runs(&self) -> Result<Vec<RunSummary>> {
        let sql = "SELECT id, coalesce(started, ''), coalesce(study, ''), coalesce(profile, ''), run,
                          octet_length(run) + coalesce(bytes, 0), coalesce(trials, 0), coalesce(failed, 0)
                   FROM runs LEFT JOIN (
                       SELECT run AS of, count(*) AS trials, sum(failed) AS failed, sum(bytes) AS bytes
                       FROM trial_index GROUP BY run
                   ) ON of = id
                   ORDER BY started DESC, runs.rowid DESC";
        let read = |row: &rusqlite::Row<'_>| {
            let id: String = row.get(0)?;
            // Runs of later versions of quintain are listed without these fields.
            let run = Run::from_json(&row.get::<_, String>(4)?).ok();
            let effort = run.as_ref().map(|run| run.plan.estimate());
            let (host, imported) =
                run.as_ref().map(|run| (run.host.name.clone(), run.imported.clone())).unwrap_or_default();
            Ok(RunSummary {
                host,
                imported,
                points: run.as_ref().map_or(0, |run| run.plan.points.len() as u32),
                bytes: row.get::<_, i64>(5)?.unsigned_abs(),
                state: run.and_then(|run| self.state_of(&run)),
                planned: effort.map(|effort| [effort.trials_min, effort.trials_max]),
                id,
                started: row.get(1)?,
                study: row.get(2)?,
                profile: row.get(3)?,
                trials: row.get(6)?,
                failed: row.get(7)?,
            })
        };
        self.query(sql, [], read)
    }

    /// Run with this name or unique prefix; `latest` selects the latest. Also fails if several runs have it.
    pub fn run(&self, name: &str) -> Result<Run> {
        self.read_run(&self.resolve(name)?)
    }

    /// Full name of the run that [`Store::run`] would read.
    pub fn resolve(&self, name: &str) -> Result<String> {
        // The full name is looked up first, because a prefix search reads all runs.
        let mut ids: Vec<String> = match name {
            "latest" => self.latest(1)?,
            name => self.query("SELECT id FROM runs WHERE id = ?1", [name], |row| row.get(0))?,
        };
        if ids.is_empty() {
            // LIKE would treat some characters of names as wildcards.
            let sql = "SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY started DESC";
            ids = self.query(sql, [name], |row| row.get(0))?;
        }
        match ids.as_slice() {
            [id] => Ok(id.clone()),
            [] => Err(self.unknown(name)?),
            all => {
                let (count, names) = (all.len(), all.join(", "));
                Err(StoreError::Other(format!("`{name}` is ambiguous, it matches {count} runs: {names}")))
            }
        }
    }

    /// The latest run of a study; `None` if the study has no runs.
    pub fn latest_of(&self, study: &str) -> Result<Option<Run>> {
        let sql = "SELECT id FROM runs WHERE study = ?1 ORDER BY started DESC, rowid DESC LIMIT 1";
        self.query_one::<String>(sql, [study])?.map(|id| self.read_run(&id)).transpose()
    }

    fn read_run(&self, id: &str) -> Result<Run> {
        let sql = "SELECT run FROM runs WHERE id = ?1";
        let json: String =
            self.connection.query_row(sql, [id], |row| row.get(0)).map_err(|error| self.sqlite(error))?;
        let run: Run = self.parse(&json, || format!("run `{id}`"))?;
        Ok(Run { state: self.state_of(&run), ..run })
    }

    /// Progress of a run; `None` if unknown. A killed process leaves `Running` in the store, but its lock is free.
    fn state_of(&self, run: &Run) -> Option<RunState> {
        match run.state {
            Some(RunState::Running) if !self.is_owned(&run.id) => Some(RunState::Interrupted),
            state => state,
        }
    }

    /// Trials of a run, in execution order.
    pub fn records(&self, run: &str) -> Result<Vec<Record>> {
        if self.query_one::<i64>("SELECT 1 FROM runs WHERE id = ?1", [run])?.is_none() {
            return Err(self.unknown(run)?);
        }
        self.read_trials(TRIALS_OF_RUN, run, [run])
    }

    /// Trials of one design point in execution order. A caller can read runs larger than memory by iterating over
    /// [`Store::points`].
    pub fn records_of(&self, run: &str, point: usize) -> Result<Vec<Record>> {
        let sql = "SELECT trial FROM trial_index WHERE run = ?1 AND point = ?2 ORDER BY place, trial";
        self.read_trials(sql, run, params![run, point as i64])
    }

    /// Design points with trials in a run, sorted.
    pub fn points(&self, run: &str) -> Result<Vec<usize>> {
        let sql = "SELECT DISTINCT point FROM trial_index WHERE run = ?1 ORDER BY point";
        self.query(sql, [run], |row| Ok(row.get::<_, i64>(0)? as usize))
    }

    fn read_trials(&self, sql: &str, run: &str, params: impl rusqlite::Params) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        self.for_each_trial(sql, params, |index, json| {
            records.push(self.parse(json, || format!("trial {index} of run `{run}`"))?);
            Ok(())
        })?;
        Ok(records)
    }

    /// Calls `each` with the position and the JSON of each trial whose ID `sql` selects.
    fn for_each_trial(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        mut each: impl FnMut(usize, &str) -> Result<()>,
    ) -> Result<()> {
        // Sorts only the row IDs; sorting the records would copy them.
        let trials: Vec<i64> = self.query(sql, params, |row| row.get(0))?;
        let sqlite = |error| self.sqlite(error);
        let mut statement =
            self.connection.prepare_cached("SELECT record FROM trials WHERE rowid = ?1").map_err(sqlite)?;
        for (index, trial) in trials.into_iter().enumerate() {
            let mut rows = statement.query([trial]).map_err(sqlite)?;
            // The trial was removed after the list was read.
            let Some(row) = rows.next().map_err(sqlite)? else { continue };
            each(index, row.get_ref(0).and_then(|value| Ok(value.as_str()?)).map_err(sqlite)?)?;
        }
        Ok(())
    }

    /// The digest that `maker` stored for a run; `None` if there is none or the run has changed since.
    pub fn digest(&self, run: &str, maker: &str) -> Result<Option<String>> {
        let sql = "SELECT digest FROM digests WHERE run = ?1 AND maker = ?2
                   AND trials = (SELECT count(*) FROM trial_index WHERE trial_index.run = ?1)";
        self.query_one(sql, [run, maker])
    }

    /// Stores a digest of the first `trials` trials of a run. [`Store::digest`] returns it until the run changes.
    pub fn put_digest(&self, run: &str, maker: &str, trials: u64, digest: &str) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO digests (run, maker, trials, digest) VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, params![run, maker, trials as i64, digest])
    }

    /// Names of the runs of a study, earliest start first.
    pub fn runs_of(&self, study: &str) -> Result<Vec<String>> {
        self.query("SELECT id FROM runs WHERE study = ?1 ORDER BY started, rowid", [study], |row| row.get(0))
    }

    /// Removes runs and their trials, all or none, and returns their space to the disk. This takes time proportional to
    /// the removed or the remaining data, whichever is smaller. The file keeps the space while a run is in progress, or
    /// if it has an older layout and over 512 MiB of other data. `rewrite` always writes the file again without unused
    /// space (SQLite's VACUUM), which takes as long as copying it twice. Fails with [`StoreError::Owned`].
    pub fn remove(&self, runs: &[String], rewrite: bool) -> Result<Freed> {
        // Keeps other processes from resuming one of the runs.
        let _owners = runs.iter().map(|run| self.own(run)).collect::<Result<Vec<_>>>()?;
        let before_bytes = self.file_bytes();
        let transaction = self.write()?;
        for run in runs {
            let removed = ["digests WHERE run", "trial_index WHERE run", "trials WHERE run", "runs WHERE id"]
                .into_iter()
                .try_fold(0, |_, rows| transaction.execute(&format!("DELETE FROM {rows} = ?1"), [run]));
            if removed.map_err(|error| self.sqlite(error))? == 0 {
                return Err(self.unknown(run)?);
            }
        }
        transaction.commit().map_err(|error| self.sqlite(error))?;
        let not_rewritten = self.give_back(rewrite)?;
        Ok(Freed { before_bytes, after_bytes: self.file_bytes(), not_rewritten })
    }

    /// Returns unused space to the disk, or the reason why the file keeps it. `whole` always rewrites the file.
    fn give_back(&self, whole: bool) -> Result<Option<String>> {
        let runs = self.query("SELECT id FROM runs", [], |row| row.get::<_, String>(0))?;
        if let Some(run) = runs.iter().find(|run| self.is_owned(run)) {
            return Ok(Some(format!("run `{run}` is in progress")));
        }
        let pragma =
            |name: &str| self.query_one(&format!("PRAGMA {name}"), []).map(|found| found.map_or(0, i64::unsigned_abs));
        let (unused, pages) = (pragma("freelist_count")?, pragma("page_count")?);
        let is_incremental = pragma("auto_vacuum")? == 2;
        let rest_bytes = pages.saturating_sub(unused).saturating_mul(pragma("page_size")?);
        let is_quick = if is_incremental { unused * 2 > pages } else { rest_bytes <= REWRITE_MAX };
        let batch = |sql| self.connection.execute_batch(sql).map_err(|error| self.sqlite(error));
        let done = if whole || is_quick {
            batch("VACUUM")
        } else if is_incremental {
            // The statement moves one page per row, so all rows are read.
            self.query("PRAGMA incremental_vacuum", [], |_| Ok(())).map(drop)
        } else {
            let rest_mib = rest_bytes >> 20;
            let why = format!("rewriting its other {rest_mib} MiB takes long, `quintain runs rm --rewrite` does it");
            return Ok(Some(why));
        };
        // The checkpoint shrinks the file. If it fails, the runs stay removed, but the file does not shrink.
        Ok(done.and_then(|()| batch("PRAGMA wal_checkpoint(TRUNCATE)")).err().map(|error| error.to_string()))
    }

    /// Size of the file and its log, in bytes.
    pub fn file_bytes(&self) -> u64 {
        let log = PathBuf::from(format!("{}-wal", self.path.display()));
        [self.path.clone(), log].iter().filter_map(|path| Some(std::fs::metadata(path).ok()?.len())).sum()
    }

    /// Writes a run as a [`run_file`], without the time of its import; `quintain` is the version of this program.
    /// Fails with [`StoreError::RunFile`], or with [`StoreError::Owned`] while the run is in progress.
    pub fn export<W: Write>(&self, run: &str, out: W, quintain: &str) -> Result<(W, Content)> {
        if self.is_owned(run) {
            return Err(StoreError::Owned(run.to_owned(), None));
        }
        let _snapshot = self.connection.unchecked_transaction().map_err(|error| self.sqlite(error))?;
        let sql = "SELECT CASE WHEN json_extract(run, '$.imported') IS NULL THEN run
                               ELSE json_remove(run, '$.imported') END
                   FROM runs WHERE id = ?1";
        let Some(json) = self.query_one::<String>(sql, [run])? else { return Err(self.unknown(run)?) };
        let mut writer = run_file::Writer::new(out, quintain)?;
        writer.run(&json)?;
        self.for_each_trial(TRIALS_OF_RUN, [run], |_, json| Ok(writer.trial(json)?))?;
        Ok(writer.end()?)
    }

    /// Inserts the run of a [`run_file`] and all its trials, or nothing, and returns its full name. Changes only the
    /// name to `name`, if given, and the time of the import to `now` (UTC, RFC 3339). Blocks other writers.
    /// Fails with [`StoreError::RunFile`] or [`StoreError::RunExists`].
    pub fn import(&self, file: impl Read + Send, name: Option<&str>, now: &str) -> Result<String> {
        let transaction = self.write()?;
        let mut id = String::new();
        std::thread::scope(|scope| {
            let (sender, entries) = sync_channel(LINES_AHEAD);
            let reading = scope.spawn(move || {
                run_file::read(file, |entry, json| {
                    // If this fails, inserting has failed, and its error is returned.
                    let sent = sender.send((entry, json.to_owned()));
                    sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe).into())
                })
            });
            for (entry, json) in entries {
                match entry {
                    Entry::Run(run) => {
                        id = name.unwrap_or(&run.id).to_owned();
                        // `json_set` leaves the rest of the JSON unchanged.
                        let name = if id == run.id { "" } else { ", '$.id', ?1" };
                        let sql =
                            format!("INSERT INTO runs (id, run) VALUES (?1, json_set(?2, '$.imported', ?3{name}))");
                        self.inserted(&id, transaction.execute(&sql, [&id, &json, now]))?;
                    }
                    Entry::Trial(record) => {
                        insert_trial(&transaction, &id, &json, &record).map_err(|error| self.sqlite(error))?;
                    }
                }
            }
            reading.join().unwrap_or_else(|panic| resume_unwind(panic)).map_err(StoreError::from)
        })?;
        transaction.commit().map_err(|error| self.sqlite(error))?;
        Ok(id)
    }

    /// Stores a calibration of the generator on `host`.
    pub fn add_calibration(&self, host: &str, calibration: &Calibration) -> Result<()> {
        let json = to_json(calibration, || "a calibration".to_owned())?;
        let sql = "INSERT INTO calibrations (host, calibration) VALUES (?1, ?2)";
        self.execute(sql, [host, &json])
    }

    /// All calibrations of a host, latest first.
    pub fn calibrations(&self, host: &str) -> Result<Vec<Calibration>> {
        let sql = "SELECT calibration FROM calibrations WHERE host = ?1
                   ORDER BY json_extract(calibration, '$.measured') DESC, rowid DESC";
        let rows: Vec<String> = self.query(sql, [host], |row| row.get(0))?;
        rows.iter().map(|json| self.parse(json, || format!("a calibration of `{host}`"))).collect()
    }

    /// The latest calibration of a host with this protocol and idle policy (others are not comparable), or `None`.
    pub fn calibration(&self, host: &str, protocol: Protocol, idle: IdlePolicy) -> Result<Option<Calibration>> {
        let mut all = self.calibrations(host)?.into_iter();
        Ok(all.find(|calibration| calibration.protocol == protocol && calibration.idle == idle))
    }

    fn query<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let rows = || self.connection.prepare(sql)?.query_map(params, read)?.collect::<rusqlite::Result<Vec<T>>>();
        rows().map_err(|error| self.sqlite(error))
    }

    fn query_one<T: rusqlite::types::FromSql>(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<T>> {
        self.connection.query_row(sql, params, |row| row.get(0)).optional().map_err(|error| self.sqlite(error))
    }

    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<()> {
        self.connection.execute(sql, params).map(drop).map_err(|error| self.sqlite(error))
    }

    fn sqlite(&self, error: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, error)
    }

    fn unknown(&self, name: &str) -> Result<StoreError> {
        let known = match self.latest(5)?.join(", ") {
            none if none.is_empty() => ", which has no runs".to_owned(),
            names => format!("; the latest: {names}"),
        };
        Ok(StoreError::Other(format!("no run `{name}` in `{}`{known}", self.path.display())))
    }

    fn latest(&self, count: u32) -> Result<Vec<String>> {
        self.query("SELECT id FROM runs ORDER BY started DESC, rowid DESC LIMIT ?1", [count], |row| row.get(0))
    }

    fn parse<T: Json>(&self, json: &str, what: impl FnOnce() -> String) -> Result<T> {
        T::from_json(json).map_err(|error| {
            let version =
                serde_json::from_str::<Value>(json).ok().and_then(|value| Some(value.get("version")?.to_string()));
            let version = version.unwrap_or_else(|| "?".to_owned());
            StoreError::Unreadable(format!(
                "cannot read {} in `{}` (format version {version}, this quintain supports {RECORD_VERSION}): {error}",
                what(),
                self.path.display()
            ))
        })
    }
}

/// Capacity of the channel between the threads of an import, in lines.
const LINES_AHEAD: usize = 4;

/// Maximum remaining data in bytes for which a removal rewrites a store of an older layout. The rewrite takes seconds.
const REWRITE_MAX: u64 = 512 << 20;

/// SQL query for the row IDs of the trials of a run, in execution order.
const TRIALS_OF_RUN: &str = "SELECT trial FROM trial_index WHERE run = ?1 ORDER BY place, trial";

fn insert_trial(transaction: &Transaction<'_>, run: &str, json: &str, record: &Record) -> rusqlite::Result<()> {
    transaction.prepare_cached("INSERT INTO trials (run, record) VALUES (?1, ?2)")?.execute([run, json])?;
    let trial = transaction.last_insert_rowid();
    let (failed, bytes) = (record.measurement().is_none(), json.len() as i64);
    let mut index = transaction.prepare_cached("INSERT INTO trial_index VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    index.execute(params![trial, run, record.point as i64, record.block, record.order, failed, bytes]).map(drop)
}

/// Builds an SQLite URI from a path and a parameter (sqlite.org/uri.html).
fn uri(path: &Path, parameter: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');
    format!("file:{}?{parameter}", percent_encode(path.as_os_str().as_bytes(), ESCAPED))
}

fn to_json(value: &impl Json, what: impl FnOnce() -> String) -> Result<String> {
    value.to_json().map_err(|error| StoreError::Other(format!("cannot store {}: {error}", what())))
}

fn is_conflict(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

fn is_missing_parent(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_the_pragmas_for_waiting_and_durability() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("quintain.db")).unwrap();
        let pragma = |name: &str| -> String {
            let read = |row: &rusqlite::Row<'_>| {
                Ok(row.get_ref(0)?.as_str().map_or_else(|_| row.get::<_, i64>(0).unwrap().to_string(), str::to_owned))
            };
            store.connection.pragma_query_value(None, name, read).unwrap()
        };
        assert_eq!(pragma("busy_timeout"), "10000");
        assert_eq!(pragma("journal_mode"), "wal");
        assert_eq!(pragma("synchronous"), "2", "full");
        assert_eq!(pragma("foreign_keys"), "1");
    }

    #[test]
    fn reads_a_read_only_store_without_changing_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a store % of?.db");
        let (run, records) = fixtures::volley();
        let store = Store::open(&path).unwrap();
        store.begin_run(&run).unwrap();
        store.add_record(&run.id, &records[0]).unwrap();
        // The last connection removes the log on close.
        drop(store);
        let before = std::fs::read(&path).unwrap();
        let read_only = Store::open_read_only(&path, String::new()).unwrap();
        assert_eq!(read_only.run("latest").unwrap(), run);
        assert_eq!(read_only.records(&run.id).unwrap(), records[..1]);
        assert!(matches!(read_only.update_run(&run), Err(StoreError::Unopenable { .. })));
        drop(read_only);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no file of SQLite's beside it");

        Connection::open(&path).unwrap().pragma_update(None, "user_version", 1).unwrap();
        let error = |path: &Path| Store::open_read_only(path, String::new()).unwrap_err().to_string();
        assert!(error(&path).contains("is an SQLite file of another program"), "{}", error(&path));
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        assert!(error(&path).contains("has layout version 99"), "{}", error(&path));
    }

    #[test]
    fn reads_a_read_only_store_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quintain.db");
        let (run, _) = fixtures::volley();
        let writer = Store::open(&path).unwrap();
        writer.begin_run(&run).unwrap();
        let read_only = Store::open_read_only(&path, String::new()).unwrap();
        assert_eq!(read_only.runs().unwrap().len(), 1, "runs only in the log");
        drop(writer);
    }

    #[test]
    fn a_lock_timeout_names_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quintain.db");
        let (holder, store) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
        holder.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        store.connection.busy_timeout(Duration::ZERO).unwrap();
        let sql = "INSERT INTO calibrations (host, calibration) VALUES ('here', '{}')";
        let error = store.sqlite(store.connection.execute(sql, []).unwrap_err());
        assert_eq!(error.to_string(), format!("`{}` is locked by another process, waited 10 s", path.display()));
        holder.connection.execute_batch("ROLLBACK").unwrap();
        assert_eq!(store.connection.execute(sql, []).unwrap(), 1);
    }
}
