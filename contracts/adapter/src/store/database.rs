//! The file of the store: a header with its owner, names by number, and entries by key.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use contract::monitor::{Forgotten, Key};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use super::FORGOTTEN_BYTES;

const LAYOUT: u64 = 1;

pub(super) const ABOUT: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("about");
pub(super) const NAMES: TableDefinition<'_, u32, &str> = TableDefinition::new("names");
/// Key in [`ABOUT`] that exists only while no adapter has the file open. Its value is made by [`Forgotten::encode`].
const CLOSED: &str = "closed";
/// Entries by key. A value is the time of the last change (seconds since 1970, 8 bytes, little endian), then the entry.
pub(super) const ENTRIES: TableDefinition<'_, &[u8; 12], &[u8]> = TableDefinition::new("entries");

/// Maximum memory for redb's page cache, in bytes. Entries have their own cache, and the kernel caches the file.
const PAGES_MAX_BYTES: usize = 256 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreOwner {
    pub(crate) name: String,
    pub(crate) contract_hash: u64,
}

/// The reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the file open.
    #[error("another process has it open")]
    Busy,
    /// The file belongs to a different adapter or contract, has an unknown version, is damaged or is not a store.
    #[error("{0}")]
    Unusable(String),
}

fn broken(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable(format!("it cannot be read: {error}"))
}

fn other_layout(layout: u64) -> StoreError {
    StoreError::Unusable(format!("unsupported layout {layout}, expected {LAYOUT}"))
}

pub(super) struct Opened {
    pub(super) db: Database,
    pub(super) path: PathBuf,
    pub(super) owner: StoreOwner,
    pub(super) names: Vec<String>,
    /// Size of keys, entries and names in bytes. The file is longer, because pages have gaps and files grow in steps.
    pub(super) content_bytes: u64,
    pub(super) lost: Forgotten,
    /// Whether the last adapter ended without closing the file.
    pub(super) is_unclean: bool,
}

/// Key of an entry, time of its last change in seconds since 1970, and the entry.
pub(super) type Row = (Key, u64, Vec<u8>);

/// The contents of a store's file, for people to inspect.
#[derive(Debug)]
pub struct StoreContents {
    /// Name of the adapter that owns the store.
    pub name: String,
    /// Names to which entries refer by index.
    pub names: Vec<String>,
    /// Key, time of the last change in seconds since 1970, and encoding of each entry.
    pub entries: Vec<(Key, u64, Vec<u8>)>,
}

thread_local! {
    /// Whether a panic of this thread becomes an error.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs code that opens a file. Turns redb's panic on a truncated file into an error without printing the panic.
fn guarded<T>(run: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            if !IS_GUARDED.get() {
                told(about);
            }
        }));
    });
    IS_GUARDED.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    IS_GUARDED.set(false);
    result.unwrap_or_else(|_| Err(broken("it is damaged or truncated")))
}

fn database(path: &Path, create: bool) -> Result<Database, StoreError> {
    let mut builder = Database::builder();
    builder.set_cache_size(PAGES_MAX_BYTES);
    #[cfg(test)]
    let opened = super::tests::disk::open(&builder, path, create);
    #[cfg(not(test))]
    let opened = if create { builder.create(path) } else { builder.open(path) };
    opened.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::Busy,
        other => broken(other),
    })
}

/// Reopens a file after a failed write. Only redb's repair then writes, and it needs no new space.
pub(super) fn reopen(path: &Path) -> Result<Database, StoreError> {
    guarded(|| database(path, false))
}

/// Marks a file as closed, so that it counts as complete except for the keys in `lost`.
pub(super) fn close(db: &Database, lost: &Forgotten) -> Result<(), redb::Error> {
    let write = db.begin_write()?;
    write.open_table(ABOUT)?.insert(CLOSED, lost.encode())?;
    write.commit()?;
    Ok(())
}

pub(super) fn open(path: &Path, owner: StoreOwner) -> Result<Opened, StoreError> {
    guarded(|| {
        let db = database(path, true)?;
        let write = db.begin_write().map_err(broken)?;
        let (mut lost, mut is_unclean) = (Forgotten::new(FORGOTTEN_BYTES), false);
        let (names, content_bytes) = {
            let mut table = write.open_table(ABOUT).map_err(broken)?;
            match owner_in(&table)? {
                None => {
                    table.insert("layout", &LAYOUT.to_le_bytes()[..]).map_err(broken)?;
                    table.insert("contract", &owner.contract_hash.to_le_bytes()[..]).map_err(broken)?;
                    table.insert("name", owner.name.as_bytes()).map_err(broken)?;
                }
                Some(other) if other.name != owner.name => {
                    return Err(StoreError::Unusable(format!("it belongs to the adapter `{}`", other.name)));
                }
                Some(other) if other.contract_hash != owner.contract_hash => {
                    let (found, expected) = (other.contract_hash, owner.contract_hash);
                    let what = format!("it was written for another contract, {found:016x} instead of {expected:016x}");
                    return Err(StoreError::Unusable(what));
                }
                Some(_) => match table.remove(CLOSED).map_err(broken)? {
                    Some(closed) => lost = lost.decode(closed.value()),
                    None => {
                        is_unclean = true;
                        lost.insert_everything();
                    }
                },
            }
            let mut bytes = 0;
            for row in write.open_table(ENTRIES).map_err(broken)?.iter().map_err(broken)? {
                bytes += row_bytes(row.map_err(broken)?.1.value().len());
            }
            let names = names(&write.open_table(NAMES).map_err(broken)?)?;
            bytes += names.iter().map(|name| name_bytes(name)).sum::<u64>();
            (names, bytes)
        };
        write.commit().map_err(broken)?;
        Ok(Opened { db, path: path.to_owned(), owner, names, content_bytes, lost, is_unclean })
    })
}

pub(super) fn row_bytes(value: usize) -> u64 {
    (size_of::<Key>() + value) as u64
}

pub(super) fn name_bytes(name: &str) -> u64 {
    (size_of::<u32>() + name.len()) as u64
}

/// Returns the owner of a file, or `None` if the file is new. Fails for a different layout.
fn owner_in(about: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Option<StoreOwner>, StoreError> {
    let number = |key: &str| {
        let Some(value) = about.get(key).map_err(broken)? else { return Ok(None) };
        let bytes = value.value().try_into().map_err(|_| broken(format_args!("`{key}` is not a number")))?;
        Ok(Some(u64::from_le_bytes(bytes)))
    };
    match number("layout")? {
        None => return Ok(None),
        Some(LAYOUT) => {}
        Some(layout) => return Err(other_layout(layout)),
    }
    let name = about.get("name").map_err(broken)?;
    let name = name.map(|name| String::from_utf8_lossy(name.value()).into_owned()).unwrap_or_default();
    Ok(Some(StoreOwner { name, contract_hash: number("contract")?.unwrap_or(0) }))
}

fn names(table: &impl ReadableTable<u32, &'static str>) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    for row in table.iter().map_err(broken)? {
        let (number, name) = row.map_err(broken)?;
        if number.value() as usize != names.len() {
            return Err(broken(format_args!("name {} is missing", names.len())));
        }
        names.push(name.value().to_owned());
    }
    Ok(names)
}

/// Splits a value of [`ENTRIES`] into the time of the last change and the entry. `None` if the value is too short.
pub(super) fn split(value: &[u8]) -> Option<(u64, &[u8])> {
    let (used_s, entry) = value.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*used_s), entry))
}

pub(super) fn joined(used_s: u64, entry: &[u8]) -> Vec<u8> {
    [&used_s.to_le_bytes()[..], entry].concat()
}

pub(super) fn all(db: &Database) -> Result<Vec<Row>, redb::Error> {
    let table = db.begin_read()?.open_table(ENTRIES)?;
    let mut all = Vec::new();
    for row in table.iter()? {
        let (key, value) = row?;
        if let Some((used_s, entry)) = split(value.value()) {
            all.push((*key.value(), used_s, entry.to_vec()));
        }
    }
    Ok(all)
}

/// Reads a file that no adapter has open. Fails if the file is in use, damaged or of a different version.
pub fn look(path: &Path) -> Result<StoreContents, StoreError> {
    guarded(|| {
        let db = database(path, false)?;
        let read = db.begin_read().map_err(broken)?;
        let about = read.open_table(ABOUT).map_err(broken)?;
        let name = owner_in(&about)?.ok_or_else(|| other_layout(0))?.name;
        let names = names(&read.open_table(NAMES).map_err(broken)?)?;
        Ok(StoreContents { name, names, entries: all(&db).map_err(broken)? })
    })
}

/// Removes the entries for which `goes` returns true from a file that no adapter has open, and returns their number.
pub fn purge(path: &Path, goes: &mut dyn FnMut(u64, &[u8]) -> bool) -> Result<u64, StoreError> {
    guarded(|| {
        let db = database(path, false)?;
        let write = db.begin_write().map_err(broken)?;
        let mut gone = 0;
        {
            let mut table = write.open_table(ENTRIES).map_err(broken)?;
            let stays = |_: &[u8; 12], value: &[u8]| {
                let goes = split(value).is_none_or(|(used_s, entry)| goes(used_s, entry));
                gone += u64::from(goes);
                !goes
            };
            table.retain(stays).map_err(broken)?;
            let mut table = write.open_table(ABOUT).map_err(broken)?;
            if gone > 0 && table.remove(CLOSED).map_err(broken)?.is_some() {
                let mut lost = Forgotten::default();
                lost.insert_everything();
                table.insert(CLOSED, lost.encode()).map_err(broken)?;
            }
        }
        write.commit().map_err(broken)?;
        Ok(gone)
    })
}

pub(super) fn put_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let name = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".old-{number}"));
        PathBuf::from(name)
    };
    let free = (1..10_000).map(name).find(|name| !name.exists());
    let aside = free.ok_or_else(|| broken("it cannot be moved aside: too many old ones exist"))?;
    std::fs::rename(path, &aside).map_err(|error| broken(format_args!("it cannot be moved aside: {error}")))?;
    Ok(aside)
}
