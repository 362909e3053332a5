//! The tables, and their migration from older versions.

use rusqlite::{Connection, TransactionBehavior};

/// Identifies quintain's files (`PRAGMA application_id`): "QNTN".
const APPLICATION_ID: i64 = 0x514e_544e;

/// Step `i` turns layout version `i` into `i + 1`; version 0 is an empty file. Never change a
/// released step.
///
/// The JSON is authoritative. Columns of `runs` are generated from it and are NULL if it is
/// damaged. They have no index: SQLite cannot delete a row whose indexed value can no longer be
/// computed. `trials` has no such columns, because SQLite computes them at each insertion: half of
/// the time of an import. `trial_index` serves lists of runs, and `digests` caches values for
/// histories.
const STEPS: [&str; 4] = [
    "CREATE TABLE runs (id TEXT PRIMARY KEY NOT NULL, run TEXT NOT NULL) STRICT;
     CREATE TABLE trials (run TEXT NOT NULL REFERENCES runs (id), record TEXT NOT NULL) STRICT;",
    "ALTER TABLE runs ADD COLUMN started TEXT AS (json_extract(run, '$.started'));
     ALTER TABLE runs ADD COLUMN study TEXT AS (json_extract(run, '$.plan.study'));
     ALTER TABLE runs ADD COLUMN profile TEXT AS (json_extract(run, '$.profile'));
     ALTER TABLE trials ADD COLUMN point INTEGER AS (json_extract(record, '$.point'));
     ALTER TABLE trials ADD COLUMN block INTEGER AS (json_extract(record, '$.block'));
     ALTER TABLE trials ADD COLUMN place INTEGER AS (json_extract(record, '$.order'));
     ALTER TABLE trials ADD COLUMN failed INTEGER AS (json_extract(record, '$.outcome.failed') IS NOT NULL);
     CREATE INDEX runs_by_start ON runs (started);
     CREATE UNIQUE INDEX trials_once ON trials (run, point, block);
     CREATE TABLE calibrations (host TEXT NOT NULL, calibration TEXT NOT NULL) STRICT;",
    "DROP INDEX trials_once;
     DROP INDEX runs_by_start;
     ALTER TABLE runs DROP COLUMN started;
     ALTER TABLE runs DROP COLUMN study;
     ALTER TABLE runs DROP COLUMN profile;
     ALTER TABLE runs ADD COLUMN started TEXT AS (CASE WHEN json_valid(run) THEN json_extract(run, '$.started') END);
     ALTER TABLE runs ADD COLUMN study TEXT AS (CASE WHEN json_valid(run) THEN json_extract(run, '$.plan.study') END);
     ALTER TABLE runs ADD COLUMN profile TEXT AS (CASE WHEN json_valid(run) THEN json_extract(run, '$.profile') END);
     ALTER TABLE trials DROP COLUMN point;
     ALTER TABLE trials DROP COLUMN block;
     ALTER TABLE trials DROP COLUMN place;
     ALTER TABLE trials DROP COLUMN failed;
     ALTER TABLE trials ADD COLUMN point INTEGER AS (CASE WHEN json_valid(record) THEN json_extract(record, '$.point') END);
     ALTER TABLE trials ADD COLUMN block INTEGER AS (CASE WHEN json_valid(record) THEN json_extract(record, '$.block') END);
     ALTER TABLE trials ADD COLUMN place INTEGER AS (CASE WHEN json_valid(record) THEN json_extract(record, '$.order') END);
     ALTER TABLE trials ADD COLUMN failed INTEGER
         AS (CASE WHEN json_valid(record) THEN json_extract(record, '$.outcome.failed') IS NOT NULL END);
     CREATE INDEX trials_of_run ON trials (run);
     CREATE TABLE trial_index (
         trial INTEGER PRIMARY KEY NOT NULL, run TEXT NOT NULL REFERENCES runs (id),
         point INTEGER, block INTEGER, place INTEGER, failed INTEGER, bytes INTEGER NOT NULL
     ) STRICT;
     INSERT INTO trial_index
         SELECT rowid, run, point, block, place, failed, octet_length(record) FROM trials;
     CREATE UNIQUE INDEX trials_once ON trial_index (run, point, block);
     CREATE TABLE digests (
         run TEXT PRIMARY KEY NOT NULL REFERENCES runs (id), maker TEXT NOT NULL, trials INTEGER NOT NULL,
         digest TEXT NOT NULL
     ) STRICT;",
    "ALTER TABLE trials DROP COLUMN point;
     ALTER TABLE trials DROP COLUMN block;
     ALTER TABLE trials DROP COLUMN place;
     ALTER TABLE trials DROP COLUMN failed;",
];

/// The layout version that this build writes.
pub const LAYOUT_VERSION: i64 = STEPS.len() as i64;

/// The layout of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The current version.
    Current,
    /// A later version; left unchanged.
    Newer(i64),
    /// A file of another program; left unchanged.
    Foreign,
}

/// Migrates the file to the current layout, with all steps or none.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<Layout> {
    migrate_to(connection, LAYOUT_VERSION)
}

fn migrate_to(connection: &mut Connection, target: i64) -> rusqlite::Result<Layout> {
    if let Some(layout) = settled(connection, target)? {
        return Ok(layout);
    }
    // Another process may have migrated it: check again under the lock.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(layout) = settled(&transaction, target)? {
        return Ok(layout);
    }
    let version = pragma(&transaction, "user_version")?;
    for step in &STEPS[version as usize..target as usize] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", target)?;
    transaction.commit()?;
    Ok(Layout::Current)
}

/// The layout of a read-only file; `None` if older.
pub(crate) fn look(connection: &Connection) -> rusqlite::Result<Option<Layout>> {
    settled(connection, LAYOUT_VERSION)
}

/// The layout, unless the file must be migrated to `target`.
fn settled(connection: &Connection, target: i64) -> rusqlite::Result<Option<Layout>> {
    let version = pragma(connection, "user_version")?;
    let application = pragma(connection, "application_id")?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, version) {
        (APPLICATION_ID, version) if version == target => Some(Layout::Current),
        (APPLICATION_ID, version) if version > target => Some(Layout::Newer(version)),
        (APPLICATION_ID, 0..) => None,
        (0, 0) if tables == 0 => None,
        _ => Some(Layout::Foreign),
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
        assert_eq!(migrate(&mut connection), Ok(Layout::Current));
        assert_eq!(columns(&connection, "trials"), ["run", "record"]);
        assert_eq!(columns(&connection, "runs"), ["id", "run", "started", "study", "profile"]);
        assert_eq!(migrate(&mut connection), Ok(Layout::Current), "and a second time nothing happens");
    }

    #[test]
    fn migration_keeps_rows_and_adds_columns() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(migrate_to(&mut connection, 1), Ok(Layout::Current));
        connection
            .execute_batch(
                r#"INSERT INTO runs VALUES ('a', '{"started": "2026-11-20T21:05:00Z", "plan": {"study": "volley"}}');
                   INSERT INTO trials VALUES ('a', '{"point": 3, "block": 1, "order": 7, "outcome": {"failed": {}}}');"#,
            )
            .unwrap();
        assert_eq!(columns(&connection, "trials"), ["run", "record"]);

        assert_eq!(migrate(&mut connection), Ok(Layout::Current));
        assert_eq!(pragma(&connection, "user_version"), Ok(LAYOUT_VERSION));
        let study: String = connection.query_row("SELECT study FROM runs", [], |row| row.get(0)).unwrap();
        assert_eq!(study, "volley");
        let trial = connection
            .query_row("SELECT point, block, place, failed FROM trial_index", [], |row| {
                Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
            })
            .unwrap();
        assert_eq!(trial, [3, 1, 7, 1]);
    }

    #[test]
    fn migration_indexes_damaged_trials() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quintain.db");
        let good = r#"{"point": 3, "block": 1, "order": 7, "outcome": {"failed": {}}}"#;
        let damaged = r#"{"point": 3, "block": 2, "order": 8, "outcome": {"measured": {}}}"#;
        let mut connection = Connection::open(&path).unwrap();
        migrate_to(&mut connection, 2).unwrap();
        connection.execute("INSERT INTO runs VALUES ('a', '{}')", []).unwrap();
        for record in [good, damaged] {
            connection.execute("INSERT INTO trials VALUES ('a', ?1)", [record]).unwrap();
        }
        drop(connection);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(damaged.len()).position(|text| text == damaged.as_bytes()).unwrap();
        bytes[at] = b'[';
        std::fs::write(&path, bytes).unwrap();
        let mut connection = Connection::open(&path).unwrap();
        migrate(&mut connection).unwrap();
        let mut rows = connection.prepare("SELECT trial, point, block, place, failed, bytes FROM trial_index").unwrap();
        let read =
            |row: &rusqlite::Row<'_>| (0..6).map(|at| row.get(at)).collect::<rusqlite::Result<Vec<Option<i64>>>>();
        let rows = rows.query_map([], read).unwrap().map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(rows[0], [Some(1), Some(3), Some(1), Some(7), Some(1), Some(good.len() as i64)]);
        assert_eq!(rows[1], [Some(2), None, None, None, None, Some(damaged.len() as i64)]);
    }

    #[test]
    fn a_failed_step_keeps_the_older_layout() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate_to(&mut connection, 1).unwrap();
        connection.execute_batch("CREATE TABLE calibrations (in_the_way TEXT)").unwrap();
        assert!(migrate(&mut connection).is_err());
        assert_eq!(pragma(&connection, "user_version"), Ok(1));
        assert_eq!(columns(&connection, "trials"), ["run", "record"]);
    }

    #[test]
    fn files_of_other_programs_are_left_unchanged() {
        for (set_up, expected) in [
            ("CREATE TABLE recipes (x)", Layout::Foreign),
            ("PRAGMA application_id = 7", Layout::Foreign),
            ("PRAGMA application_id = 0x514e544e; PRAGMA user_version = 99", Layout::Newer(99)),
        ] {
            let mut connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(set_up).unwrap();
            let before: i64 = pragma(&connection, "user_version").unwrap();
            assert_eq!(migrate(&mut connection), Ok(expected), "{set_up}");
            assert_eq!(pragma(&connection, "user_version"), Ok(before), "{set_up}");
        }
    }
}
