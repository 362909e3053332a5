//! The tables of the store, and the version of their layout.

use rusqlite::{Connection, TransactionBehavior};

/// Identifies quintain's files (`PRAGMA application_id`): "QNTN".
const APPLICATION_ID: i64 = 0x514e_544e;

/// The layout version that this build reads and writes. Every released version must stay readable.
pub const LAYOUT_VERSION: i64 = 4;

/// SQL of the tables. The JSON is authoritative. Columns of `runs` are generated from it and are NULL if it is
/// damaged. They have no index, because SQLite cannot delete a row whose indexed value can no longer be computed.
/// `trials` has no generated columns, because SQLite computes them at each insertion, which takes half the time of an
/// import. `trial_index` serves lists of runs, and `digests` caches values for histories.
const TABLES: &str = "
     CREATE TABLE runs (
         id TEXT PRIMARY KEY NOT NULL, run TEXT NOT NULL,
         started TEXT AS (CASE WHEN json_valid(run) THEN json_extract(run, '$.started') END),
         study TEXT AS (CASE WHEN json_valid(run) THEN json_extract(run, '$.plan.study') END),
         profile TEXT AS (CASE WHEN json_valid(run) THEN json_extract(run, '$.profile') END)
     ) STRICT;
     CREATE TABLE trials (run TEXT NOT NULL REFERENCES runs (id), record TEXT NOT NULL) STRICT;
     CREATE INDEX trials_of_run ON trials (run);
     CREATE TABLE trial_index (
         trial INTEGER PRIMARY KEY NOT NULL, run TEXT NOT NULL REFERENCES runs (id),
         point INTEGER, block INTEGER, place INTEGER, failed INTEGER, bytes INTEGER NOT NULL
     ) STRICT;
     CREATE UNIQUE INDEX trials_once ON trial_index (run, point, block);
     CREATE TABLE digests (
         run TEXT PRIMARY KEY NOT NULL REFERENCES runs (id), maker TEXT NOT NULL, trials INTEGER NOT NULL,
         digest TEXT NOT NULL
     ) STRICT;
     CREATE TABLE calibrations (host TEXT NOT NULL, calibration TEXT NOT NULL) STRICT;";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Current,
    Empty,
    /// A layout that this build cannot read. The file is left unchanged. Contains the reason, which follows its path.
    Unreadable(String),
}

/// Creates the tables in an empty file.
pub(crate) fn create(connection: &mut Connection) -> rusqlite::Result<Layout> {
    if look(connection)? == Layout::Empty {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have created the tables: check again under the lock.
        if look(&transaction)? == Layout::Empty {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", LAYOUT_VERSION)?;
        }
        transaction.commit()?;
    }
    look(connection)
}

pub(crate) fn look(connection: &Connection) -> rusqlite::Result<Layout> {
    let version = pragma(connection, "user_version")?;
    let application = pragma(connection, "application_id")?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, version) {
        (APPLICATION_ID, LAYOUT_VERSION) => Layout::Current,
        (APPLICATION_ID, LAYOUT_VERSION..) => Layout::Unreadable(format!(
            "has layout version {version}, this quintain supports versions up to {LAYOUT_VERSION}: use a newer \
             quintain, or another file with --store"
        )),
        (0, 0) if tables == 0 => Layout::Empty,
        // Layouts from before the first release of quintain count as foreign.
        _ => Layout::Unreadable("is an SQLite file of another program: choose another file with --store".to_owned()),
    })
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(connection: &Connection, table: &str) -> Vec<String> {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_xinfo(?1)").unwrap();
        statement.query_map([table], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn an_empty_file_gets_the_current_layout() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(create(&mut connection), Ok(Layout::Current));
        assert_eq!(columns(&connection, "trials"), ["run", "record"]);
        assert_eq!(columns(&connection, "runs"), ["id", "run", "started", "study", "profile"]);
        assert_eq!(create(&mut connection), Ok(Layout::Current), "and a second time nothing happens");
    }

    #[test]
    fn files_of_other_programs_are_left_unchanged() {
        for (set_up, expected) in [
            ("CREATE TABLE recipes (x)", "is an SQLite file of another program"),
            ("PRAGMA application_id = 7", "is an SQLite file of another program"),
            ("PRAGMA application_id = 0x514e544e; PRAGMA user_version = 99", "has layout version 99"),
        ] {
            let mut connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(set_up).unwrap();
            let before: i64 = pragma(&connection, "user_version").unwrap();
            let found = create(&mut connection).unwrap();
            assert!(matches!(&found, Layout::Unreadable(why) if why.starts_with(expected)), "{set_up}: {found:?}");
            assert_eq!(pragma(&connection, "user_version"), Ok(before), "{set_up}");
        }
    }
}
