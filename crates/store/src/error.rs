//! What can go wrong with a store.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

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
    #[error("`{}` cannot be opened as a store: {why}; name another file with --store", path.display())]
    Unopenable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A later quintain has written it.
    #[error(
        "`{}` has layout version {found}, this quintain knows versions up to {known}: \
         use a newer quintain, or another file with --store",
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
    #[error("`{}` is an SQLite file of another program: name another file with --store", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is not, or no longer, a database.
    #[error(
        "`{}` is damaged or no SQLite file ({message}): move it away, or save what can be read with \
         `sqlite3 {} .recover`",
        path.display(),
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        message: String,
    },
    /// Another process kept it locked for too long.
    #[error("`{}` has been locked by another process for {waited_s} s", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// How long was waited, s.
        waited_s: u64,
    },
    /// There is a run of that name.
    #[error("run `{run}` is in `{}` already", path.display())]
    RunExists {
        /// The file.
        path: PathBuf,
        /// The run.
        run: String,
    },
    /// Another process works on it.
    #[error("run `{run}` is being worked on{}", by(pid))]
    Owned {
        /// The run.
        run: String,
        /// Who does.
        pid: Option<u32>,
    },
    /// Nothing can be kept to one process.
    #[error("`{}` cannot be made, which keeps a run to one process: {source}", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// That trial is there already.
    #[error("run `{run}` has a trial of point {point} in block {block} already")]
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
    #[error("`{name}` is the beginning of {} runs: {}", candidates.len(), candidates.join(", "))]
    AmbiguousRun {
        /// What was asked for.
        name: String,
        /// The runs.
        candidates: Vec<String>,
    },
    /// What is stored is not what this build understands.
    #[error("{what} in `{}` cannot be read (format version {version}, this quintain knows {known}): {source}", path.display())]
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
    #[error("{what} cannot be stored: {source}")]
    Unwritable {
        /// What.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// Anything else that SQLite reports: no permission, disk full.
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
        [] => ", which has none".to_owned(),
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
        _ if path.is_dir() => "it is a folder, and a store is a file".to_owned(),
        Some(folder) if !folder.is_dir() => format!("there is no folder `{}`", folder.display()),
        _ => "it, or the files that SQLite needs beside it, cannot be written".to_owned(),
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
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path, waited_s: BUSY_S },
            _ => StoreError::Sqlite { path, source },
        }
    }
}
