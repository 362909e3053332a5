//! The lock of a run, held by the process that works on it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::StoreError;

/// Maximum number of attempts to take the lock, because `is_taken` also holds the lock for a moment.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// The right to change a run, until this value is dropped or the process ends. The file serves only as a flock(2) lock.
#[derive(Debug)]
pub struct Owner {
    _file: File,
    path: PathBuf,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // The file is still locked, so no other process owns it. A leftover file is harmless.
        let _ = std::fs::remove_file(&self.path);
    }
}

pub(crate) fn take(run: &str, path: &Path) -> Result<Owner, StoreError> {
    let failed =
        |error| StoreError::Other(format!("cannot create the lock file `{}` of a run: {error}", path.display()));
    for attempt in 1.. {
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = opened.map_err(failed)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => {
                file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
                return Ok(Owner { _file: file, path: path.to_owned() });
            }
            // The previous owner has removed the file after this process opened it.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if attempt < TRIES => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err(StoreError::Owned(run.to_owned(), pid(&mut file))),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    unreachable!("every attempt returns or is counted")
}

pub(crate) fn is_taken(path: &Path) -> bool {
    // If the file is unreadable, its owner is unknown and the run counts as free.
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}

fn pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.take(32).read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_one_owner_and_removes_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!is_taken(&path));
        let owner = take("a", &path).unwrap();
        assert!(is_taken(&path));
        match take("a", &path) {
            Err(StoreError::Owned(_, pid)) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(owner);
        assert!(!is_taken(&path) && !path.exists());
    }

    #[test]
    fn a_leftover_file_is_not_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "4711\n").unwrap();
        assert!(!is_taken(&path));
        let owner = take("a", &path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        drop(owner);
    }

    #[test]
    fn checking_the_owner_blocks_no_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "").unwrap();
        let look = File::open(&path).unwrap();
        look.try_lock_shared().unwrap();
        let taker = std::thread::spawn({
            let path = path.clone();
            move || take("a", &path).is_ok()
        });
        drop(look);
        assert!(taker.join().unwrap());
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = take("a", &folder.path().join("no/lock")).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot create the lock file `") && error.contains("/no/lock` of a run: "),
            "{error}"
        );
    }
}
