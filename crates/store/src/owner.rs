//! One process at a time works on a run.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A look at who works on a run takes its lock for a moment: so often it is tried again.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// The right to add to a run, until it is dropped or the process ends, however it ends: the lock is the kernel's (flock(2)), the file
/// beside the store only gives it a name.
#[derive(Debug)]
pub struct Owner {
    /// Kept locked.
    _file: File,
    path: PathBuf,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // While it is still locked, so that nobody else's is removed. One that stays is no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Why a run could not be had.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A process has it: its number, where it is known.
    Owned(Option<u32>),
    /// The file cannot be made.
    Io(io::Error),
}

/// Takes the run whose lock is the file `path`.
pub(crate) fn take(path: &Path) -> Result<Owner, Refused> {
    for attempt in 1.. {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(Refused::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if attempt < TRIES => {
                std::thread::sleep(PAUSE);
                continue;
            }
            Err(TryLockError::WouldBlock) => return Err(Refused::Owned(pid(&mut file))),
            Err(TryLockError::Error(error)) => return Err(Refused::Io(error)),
        }
        // The owner before us may have removed the file between our opening and locking it.
        if !is_at(&file, path) {
            continue;
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        return match written {
            Ok(()) => Ok(Owner { _file: file, path: path.to_owned() }),
            Err(error) => Err(Refused::Io(error)),
        };
    }
    unreachable!("every attempt returns or is counted")
}

/// Whether a process has the run whose lock is the file `path`.
pub(crate) fn is_taken(path: &Path) -> bool {
    // Whoever may not even read the file cannot see it; then nobody is known to have it.
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
    fn one_at_a_time_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!is_taken(&path));
        let owner = take(&path).unwrap();
        assert!(is_taken(&path));
        match take(&path) {
            Err(Refused::Owned(pid)) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(owner);
        assert!(!is_taken(&path) && !path.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "4711\n").unwrap();
        assert!(!is_taken(&path));
        let owner = take(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        drop(owner);
    }

    #[test]
    fn a_look_at_the_owner_refuses_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "").unwrap();
        let look = File::open(&path).unwrap();
        look.try_lock_shared().unwrap();
        let taker = std::thread::spawn({
            let path = path.clone();
            move || take(&path).is_ok()
        });
        drop(look);
        assert!(taker.join().unwrap());
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(take(&folder.path().join("no/lock")), Err(Refused::Io(_))));
    }
}
