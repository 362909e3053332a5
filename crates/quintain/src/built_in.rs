//! Unpacks the studies embedded in the binary, and the files that they name (see `build.rs`), to a cache directory.

use std::collections::BTreeMap;
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Context;

use crate::command_result::{Exit, Result, cannot, machine};
use crate::output;

pub(crate) const STUDIES: &str = "studies";

/// Placeholder for the directory of the unpacked files in commands of nodes, each of which has its own cache directory.
pub(crate) const DIRECTORY: &str = "@built-in";

/// Hash of the packed files. Each hash has its own directory in the cache.
pub(crate) const HASH: &str = env!("BUILT_IN_HASH");

const LOCK: &str = ".lock";

pub(crate) static FILES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let packed: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/built_in.json.gz"));
    serde_json::from_reader(flate2::read::GzDecoder::new(packed)).expect("the build has packed it")
});

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES
        .keys()
        .filter_map(|path| path.strip_prefix("studies/")?.strip_suffix(".toml"))
        .filter(|name| !name.contains('/'))
}

pub(crate) fn study(name: &str) -> Option<&'static str> {
    let name = names().find(|known| *known == name)?;
    Some(FILES.get(&format!("{STUDIES}/{name}.toml"))?)
}

/// Unpacks the files to the cache directory, which also keeps build results. Returns its path. Fails without `HOME`.
pub(crate) fn unpack() -> Result<PathBuf> {
    let variable = |name| output::variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let unset = || anyhow::anyhow!("no cache directory for the built-in studies: `HOME` is not set");
    let unpacked = caches.ok_or_else(unset).and_then(|caches| unpack_in(&caches.join("quintain")));
    let hint = "set `XDG_CACHE_HOME=/DIR`, or `quintain studies copy NAME` and run it here";
    unpacked.map_err(|error| machine(error).hint(hint))
}

fn unpack_in(caches: &Path) -> anyhow::Result<PathBuf> {
    let root = caches.join(HASH);
    let cannot = || format!("cannot unpack the built-in studies to `{}`", root.display());
    // Cached files may have been deleted or edited, and several processes may unpack at once. So each file that differs
    // from the archive is replaced as a whole.
    for (path, file) in FILES.iter() {
        let place = root.join(path);
        if !is_whole(&place, file) {
            let replace = || {
                let folder = place.parent().unwrap_or(&root);
                std::fs::create_dir_all(folder)?;
                let readable = Permissions::from_mode(0o644);
                let beside = tempfile::Builder::new().permissions(readable).tempfile_in(folder)?;
                std::fs::write(beside.path(), file)?;
                beside.persist(&place).map_err(|error| error.error)
            };
            replace().with_context(cannot)?;
        }
    }
    Ok(root)
}

pub(crate) fn is_whole(place: &Path, packed: &str) -> bool {
    let mut text = String::new();
    let read = File::open(place).and_then(|found| found.take(packed.len() as u64 + 1).read_to_string(&mut text));
    read.is_ok() && text == packed
}

pub(crate) fn write(place: &Path, packed: &str) -> io::Result<()> {
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(place, packed)
}

/// Locks the unpacked files until the returned file is dropped, so that no two runs build there. `None` if interrupted.
pub(crate) fn lock(root: &Path, interrupted: &dyn Fn() -> bool) -> Result<Option<File>> {
    let path = root.join(LOCK);
    let failed = cannot(Exit::Machine, "lock", &path);
    let file = File::create(&path).map_err(&failed)?;
    let mut is_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if interrupted() => return Ok(None),
            Err(TryLockError::WouldBlock) => {
                if !std::mem::replace(&mut is_told, true) {
                    output::message("waiting for another run to build the servers of the built-in studies");
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_files_match_git() {
        let names = names().collect::<Vec<_>>();
        assert!(names.contains(&"volley") && names.contains(&"whip"), "{names:?}");
        for path in
            ["subjects/c-epoll/main.c", "contracts/contract/contracts/chess.contract", "studies/proxies/haproxy.cfg"]
        {
            assert!(FILES.contains_key(path), "{path}");
        }
        for built in ["subjects/target/", "/classes/", "/venv/", "/lib/", "subjects/c-epoll/c-epoll"] {
            assert_eq!(FILES.keys().find(|path| path.contains(built)), None);
        }
    }

    #[test]
    fn concurrent_unpacking_restores_damaged_files() {
        let caches = tempfile::tempdir().unwrap();
        let root = std::thread::scope(|scope| {
            let all = [(); 4].map(|()| scope.spawn(|| unpack_in(caches.path()).unwrap()));
            all.map(|one| one.join().unwrap())[0].clone()
        });
        let entries = std::fs::read_dir(caches.path()).unwrap().flatten().map(|entry| entry.path());
        assert_eq!(entries.collect::<Vec<_>>(), std::slice::from_ref(&root), "nothing else is left");
        let (edited, gone) = (root.join("studies/volley.toml"), root.join("subjects/c-epoll/main.c"));
        std::fs::write(&edited, "x").unwrap();
        std::fs::remove_file(&gone).unwrap();
        unpack_in(caches.path()).unwrap();
        for path in [edited, gone] {
            let packed = &FILES[path.strip_prefix(&root).unwrap().to_str().unwrap()];
            assert!(is_whole(&path, packed), "{}", path.display());
        }
    }

    #[test]
    fn only_one_process_builds_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let first = lock(root.path(), &|| false).unwrap();
        assert!(first.is_some() && lock(root.path(), &|| true).unwrap().is_none());
        drop(first);
        assert!(lock(root.path(), &|| true).unwrap().is_some());
    }
}
