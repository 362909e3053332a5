//! What can go wrong with a store.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::run_file::RunFileError;

/// Why a store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such file.
    #[error("no store at `{}`", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It is there or could be made, but not by us.
    #[error("cannot open `{}` as a store: {why}; choose another file with --store", path.display())]
    Unopenable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A later quintain has written it.
    #[error(
        "`{}` has layout version {found}, this quintain supports versions up to {known}: use a newer quintain, or \
         another file with --store",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The highest version that this build knows.
        known: i64,
    },
    /// It is an SQLite file, but of another program.
    #[error("`{}` is an SQLite file of another program: choose another file with --store", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is not, or no longer, a database.
    #[error(
        "`{}` is damaged or not an SQLite file ({message}): move it away, or recover its data with `sqlite3 {} \
         .recover`",
        path.display(),
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        message: String,
    },
    /// No space left for it.
    #[error("`{}`: no space left on its file system", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another process kept it locked for too long.
    #[error("`{}` is locked by another process, waited {waited_s} s", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// How long was waited, s.
        waited_s: u64,
    },
    /// There is a run of that name.
    #[error("run `{run}` already exists in `{}`", path.display())]
    RunExists {
        /// The file.
        path: PathBuf,
        /// The run.
        run: String,
    },
    /// Another process works on it.
    #[error("run `{run}` is in use{}", by(pid))]
    Owned {
        /// The run.
        run: String,
        /// Who does.
        pid: Option<u32>,
    },
    /// Nothing can be kept to one process.
    #[error("cannot create the lock file `{}` of a run: {source}", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A run cannot be exported or imported.
    #[error(transparent)]
    RunFile(#[from] RunFileError),
    /// That trial is there already.
    #[error("run `{run}` already has a trial of point {point} in block {block}")]
    TrialExists {
        /// The run.
        run: String,
        /// The design point.
        point: usize,
        /// The block.
        block: u32,
    },
    /// No run is named so.
    #[error("no run `{name}` in `{}`{}", path.display(), known_runs(known))]
    UnknownRun {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// Names of the latest runs.
        known: Vec<String>,
    },
    /// Several runs begin so.
    #[error("`{name}` is ambiguous, it matches {} runs: {}", candidates.len(), candidates.join(", "))]
    AmbiguousRun {
        /// What was asked for.
        name: String,
        /// The runs.
        candidates: Vec<String>,
    },
    /// What is stored is not what this build understands.
    #[error("cannot read {what} in `{}` (format version {version}, this quintain supports {known}): {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// `run x`, `trial 3 of run x`.
        what: String,
        /// Its format version, `?` where there is none.
        version: String,
        /// The version that this build knows.
        known: u32,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Something could not be turned into JSON.
    #[error("cannot store {what}: {source}")]
    Unwritable {
        /// What.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// Anything else that SQLite reports.
    #[error("`{}`: {source}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

fn known_runs(known: &[String]) -> String {
    match known {
        [] => ", which has no runs".to_owned(),
        known => format!("; the latest: {}", known.join(", ")),
    }
}

fn by(pid: &Option<u32>) -> String {
    pid.map_or_else(|| " by another process".to_owned(), |pid| format!(" by process {pid}"))
}

/// Why a file cannot be opened; SQLite itself says no more than that it cannot.
fn unopenable(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        _ if path.is_dir() => "it is a directory, but a store is a file".to_owned(),
        Some(folder) if !folder.is_dir() => format!("no directory `{}`", folder.display()),
        _ => "it, or the files SQLite needs next to it, cannot be written".to_owned(),
    }
}

/// How long another process is waited for, s.
pub(crate) const BUSY_S: u64 = 10;

impl StoreError {
    /// The situation behind an SQLite error.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                StoreError::Damaged { path, message: source.to_string() }
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                let why = unopenable(&path);
                StoreError::Unopenable { path, why }
            }
            Some(ErrorCode::DiskFull) => StoreError::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path, waited_s: BUSY_S },
            _ => StoreError::Sqlite { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_told_once() {
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let full = rusqlite::Error::SqliteFailure(full, Some("database or disk is full".to_owned()));
        let error = StoreError::from_sqlite(Path::new("a.db"), full);
        assert_eq!(error.to_string(), "`a.db`: no space left on its file system");
        assert!(std::error::Error::source(&error).is_none());
    }
}
