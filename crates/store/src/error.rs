//! Errors of the store.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use study::record::RECORD_VERSION;

use crate::run_file::RunFileError;
use crate::table_layout::LAYOUT_VERSION;

/// Why a store cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store's file does not exist.
    #[error("no store at `{}`", .0.display())]
    Missing(PathBuf),
    /// The file cannot be opened or created; contains the reason.
    #[error("cannot open `{path}` as a store: {1}; choose another file with --store", path = .0.display())]
    Unopenable(PathBuf, String),
    /// A later version of quintain wrote the file, with this layout version.
    #[error(
        "`{path}` has layout version {1}, this quintain supports versions up to {LAYOUT_VERSION}: use a newer \
         quintain, or another file with --store",
        path = .0.display()
    )]
    Newer(PathBuf, i64),
    /// The file is an SQLite file of a different program.
    #[error("`{}` is an SQLite file of another program: choose another file with --store", .0.display())]
    Foreign(PathBuf),
    /// The file is damaged or not an SQLite file; contains SQLite's message.
    #[error(
        "`{path}` is damaged or not an SQLite file ({1}): move it away, or recover its data with `sqlite3 {path} \
         .recover`",
        path = .0.display()
    )]
    Damaged(PathBuf, String),
    /// The file system has no space left.
    #[error("`{}`: no space left on its file system", .0.display())]
    Full(PathBuf),
    /// Another process has kept the file locked for 10 s.
    #[error("`{}` is locked by another process, waited {BUSY_S} s", .0.display())]
    Busy(PathBuf),
    /// The store already has a run with this name.
    #[error("run `{1}` already exists in `{path}`", path = .0.display())]
    RunExists(PathBuf, String),
    /// Another process is working on the run.
    #[error("run `{run}` is in use{}", by(pid))]
    Owned {
        /// Full name of the run.
        run: String,
        /// Process ID of the owner; `None` if unknown.
        pid: Option<u32>,
    },
    /// The lock file of a run cannot be created.
    #[error("cannot create the lock file `{path}` of a run: {1}", path = .0.display())]
    Lock(PathBuf, #[source] std::io::Error),
    /// A run cannot be exported or imported.
    #[error(transparent)]
    RunFile(#[from] RunFileError),
    /// The run already has a trial of this design point in this block.
    #[error("run `{run}` already has a trial of point {point} in block {block}")]
    TrialExists {
        /// Full name of the run.
        run: String,
        /// Index of the design point in the plan.
        point: usize,
        /// Number of the block in the run.
        block: u32,
    },
    /// No run has this name.
    #[error("no run `{name}` in `{}`{}", path.display(), known_runs(known))]
    UnknownRun {
        /// Path of the store.
        path: PathBuf,
        /// The requested name or prefix of a name.
        name: String,
        /// Names of the latest runs, at most five.
        known: Vec<String>,
    },
    /// Several runs have names with this prefix; contains the prefix and the names.
    #[error("`{0}` is ambiguous, it matches {count} runs: {names}", count = .1.len(), names = .1.join(", "))]
    AmbiguousRun(String, Vec<String>),
    /// This build cannot parse the stored JSON.
    #[error("cannot read {what} in `{}` (format version {version}, this quintain supports {RECORD_VERSION}): {source}", path.display())]
    Unreadable {
        /// Path of the store.
        path: PathBuf,
        /// Description of the JSON, such as `run x` or `trial 3 of run x`.
        what: String,
        /// Format version of the JSON; `?` if missing.
        version: String,
        /// Reason why the JSON cannot be parsed.
        source: serde_json::Error,
    },
    /// JSON cannot represent this value.
    #[error("cannot store {0}: {1}")]
    Unwritable(String, #[source] serde_json::Error),
    /// Any other SQLite error.
    #[error("`{path}`: {1}", path = .0.display())]
    Sqlite(PathBuf, #[source] rusqlite::Error),
}

fn known_runs(known: &[String]) -> String {
    if known.is_empty() { ", which has no runs".to_owned() } else { format!("; the latest: {}", known.join(", ")) }
}

fn by(pid: &Option<u32>) -> String {
    pid.map_or_else(|| " by another process".to_owned(), |pid| format!(" by process {pid}"))
}

/// The likely reason why a store cannot be opened, since SQLite itself gives none.
fn unopenable(path: &Path) -> String {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        _ if path.is_dir() => "it is a directory, but a store is a file".to_owned(),
        Some(folder) if !folder.is_dir() => format!("no directory `{}`", folder.display()),
        _ => "it, or the files SQLite needs next to it, cannot be written".to_owned(),
    }
}

/// Maximum time to wait until the file is unlocked, in seconds.
pub(crate) const BUSY_S: u64 = 10;

impl StoreError {
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged(path, source.to_string()),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                StoreError::Unopenable(path.clone(), unopenable(&path))
            }
            Some(ErrorCode::DiskFull) => StoreError::Full(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(path),
            _ => StoreError::Sqlite(path, source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_full_disk_once() {
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let full = rusqlite::Error::SqliteFailure(full, Some("database or disk is full".to_owned()));
        let error = StoreError::from_sqlite(Path::new("a.db"), full);
        assert_eq!(error.to_string(), "`a.db`: no space left on its file system");
        assert!(std::error::Error::source(&error).is_none());
    }
}
