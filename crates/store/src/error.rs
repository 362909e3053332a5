//! Errors of the store.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::run_file::RunFileError;

/// Why a store cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store's file does not exist.
    #[error("no store at `{}`", .0.display())]
    Missing(PathBuf),
    /// The file cannot be opened or created; contains the reason.
    #[error("cannot open `{path}` as a store: {1}; choose another file with --store", path = .0.display())]
    Unopenable(PathBuf, String),
    /// The file system has no space left.
    #[error("`{}`: no space left on its file system", .0.display())]
    Full(PathBuf),
    /// The store already has a run with this name.
    #[error("run `{1}` already exists in `{path}`", path = .0.display())]
    RunExists(PathBuf, String),
    /// Another process, whose ID may be unknown, is working on the run with this full name.
    #[error("run `{0}` is in use{by}", by = by(*.1))]
    Owned(String, Option<u32>),
    /// A run cannot be exported or imported.
    #[error(transparent)]
    RunFile(#[from] RunFileError),
    /// This build cannot parse the stored JSON. Contains the message.
    #[error("{0}")]
    Unreadable(String),
    /// Any other reason, as a message.
    #[error("{0}")]
    Other(String),
    /// Any other SQLite error.
    #[error("`{path}`: {1}", path = .0.display())]
    Sqlite(PathBuf, #[source] rusqlite::Error),
}

fn by(pid: Option<u32>) -> String {
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
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                let path = path.display();
                StoreError::Other(format!(
                    "`{path}` is damaged or not an SQLite file ({source}): move it away, or recover its data with \
                     `sqlite3 {path} .recover`"
                ))
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                StoreError::Unopenable(path.clone(), unopenable(&path))
            }
            Some(ErrorCode::DiskFull) => StoreError::Full(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Other(format!("`{}` is locked by another process, waited {BUSY_S} s", path.display()))
            }
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
