//! Tests a store on disk: reading back, locking, damage and older versions.

use std::path::{Path, PathBuf};

use fixtures as example;
use store::{LAYOUT_VERSION, Store, StoreError};
use study::record::{Calibration, IdlePolicy, Record, Run, RunState};
use study::spec::Protocol;
use tempfile::TempDir;

struct Place {
    _folder: TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quintain.db");
    Place { _folder: folder, path }
}

fn sample() -> (Run, Vec<Record>) {
    let (run, mut records) = example::volley();
    records.truncate(12);
    assert!(records.iter().any(|record| record.measurement().is_none()), "the failed point is among them");
    (run, records)
}

fn named(id: &str, started: &str) -> Run {
    Run { id: id.to_owned(), started: started.to_owned(), ..sample().0 }
}

fn filled(path: &Path) -> (Store, Run, Vec<Record>) {
    let (run, records) = sample();
    let store = Store::open(path).unwrap();
    store.begin_run(&run).unwrap();
    records.iter().for_each(|record| store.add_record(&run.id, record).unwrap());
    (store, run, records)
}

fn error<T: std::fmt::Debug>(result: Result<T, StoreError>, path: &Path) -> String {
    result.unwrap_err().to_string().replace(&path.display().to_string(), "FILE")
}

#[test]
fn runs_and_trials_are_read_back_unchanged() {
    let place = place();
    let (store, run, records) = filled(&place.path);
    drop(store);
    let store = Store::open_existing(&place.path).unwrap();
    assert_eq!(store.run(&run.id).unwrap(), run);
    assert_eq!(store.records(&run.id).unwrap(), records);
    let [listed] = store.runs().unwrap().try_into().unwrap();
    assert_eq!((listed.study.as_str(), listed.points, listed.trials, listed.failed), ("volley", 12, 12, 1));
}

#[test]
fn trials_are_read_in_the_order_they_ran() {
    let place = place();
    let (run, records) = sample();
    let store = Store::open(&place.path).unwrap();
    store.begin_run(&run).unwrap();
    records.iter().rev().for_each(|record| store.add_record(&run.id, record).unwrap());
    assert_eq!(store.records(&run.id).unwrap(), records);
}

#[test]
fn sql_can_query_runs_and_trials() {
    let place = place();
    let (_store, _, records) = filled(&place.path);
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let sql = "SELECT sum(json_extract(record, '$.outcome.measured.requests'))
               FROM trials JOIN trial_index ON trial = trials.rowid WHERE failed = 0 AND point < 6";
    let sum: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    let measured = records.iter().filter(|record| record.point < 6).filter_map(|record| record.measurement());
    assert_eq!(sum as u64, measured.map(|measurement| measurement.requests).sum::<u64>());
}

#[test]
fn runs_are_found_by_name_prefix_and_age() {
    let place = place();
    let store = Store::open(&place.path).unwrap();
    assert_eq!(error(store.run("latest"), &place.path), "no run `latest` in `FILE`, which has no runs");
    for (id, started) in [
        ("volley-20261120-210500", "2026-11-20T21:05:00Z"),
        ("volley-20261121-080000", "2026-11-21T08:00:00Z"),
        ("open_%-20261119-120000", "2026-11-19T12:00:00Z"),
        ("volley", "2026-11-01T00:00:00Z"),
    ] {
        store.begin_run(&named(id, started)).unwrap();
    }
    let check = |name: &str, id: &str| assert_eq!(store.run(name).unwrap().id, id, "{name}");
    check("latest", "volley-20261121-080000");
    check("volley-20261120-210500", "volley-20261120-210500");
    check("volley-20261120", "volley-20261120-210500");
    check("open_%", "open_%-20261119-120000");
    check("volley", "volley");
    assert!(store.run("o%").unwrap_err().to_string().starts_with("no run `o%` in `"), "no wild cards");
    assert_eq!(
        error(store.run("volley-2026112"), &place.path),
        "`volley-2026112` is ambiguous, it matches 2 runs: volley-20261121-080000, volley-20261120-210500"
    );
    assert_eq!(
        error(store.run("nothing"), &place.path),
        "no run `nothing` in `FILE`; the latest: volley-20261121-080000, volley-20261120-210500, open_%-20261119-120000, volley"
    );
    assert_eq!(store.latest_of("volley").unwrap().unwrap().id, "volley-20261121-080000");
    assert_eq!(store.latest_of("http").unwrap(), None);
    let listed = store.runs().unwrap().into_iter().map(|run| run.started).collect::<Vec<_>>();
    assert!(listed.windows(2).all(|two| two[0] >= two[1]), "the latest first: {listed:?}");
}

#[test]
fn rejects_duplicates_and_trials_without_a_run() {
    let place = place();
    let (store, run, records) = filled(&place.path);
    assert_eq!(error(store.begin_run(&run), &place.path), "run `volley-20261120-210500` already exists in `FILE`");
    let first = &records[0];
    assert_eq!(
        error(store.add_record(&run.id, first), &place.path),
        format!("run `{}` already has a trial of point {} in block {}", run.id, first.point, first.block)
    );
    let stray = "no run `other` in `FILE`; the latest: volley-20261120-210500";
    assert_eq!(error(store.add_record("other", first), &place.path), stray);
    assert_eq!(error(store.records("other"), &place.path), stray);
    assert_eq!(error(store.update_run(&named("other", "")), &place.path), stray);
    assert_eq!(store.records(&run.id).unwrap(), records, "and all is as before");
}

#[test]
fn builds_are_added_to_a_run() {
    let place = place();
    let (store, mut run, records) = filled(&place.path);
    run.builds.clear();
    store.update_run(&run).unwrap();
    assert_eq!(store.run(&run.id).unwrap(), run);
    assert_eq!(store.records(&run.id).unwrap(), records);
}

#[test]
fn calibrations_are_separate_per_host_protocol_and_idle_policy() {
    let place = place();
    let store = Store::open(&place.path).unwrap();
    let first = sample().0.calibration.unwrap();
    let later = Calibration { measured: "2026-11-21T00:00:00Z".to_owned(), rate_max_per_s: 1.0, ..first.clone() };
    let spin = Calibration { idle: IdlePolicy::Spin, ..later.clone() };
    for calibration in [&later, &first, &spin] {
        store.add_calibration("here", calibration).unwrap();
    }
    let found = |host, protocol, idle| store.calibration(host, protocol, idle).unwrap();
    assert_eq!(found("here", Protocol::Pingpong, IdlePolicy::Machine), Some(later));
    assert_eq!(found("here", Protocol::Pingpong, IdlePolicy::Spin), Some(spin));
    assert_eq!(found("here", Protocol::Http, IdlePolicy::Machine), None);
    assert_eq!(found("there", Protocol::Pingpong, IdlePolicy::Machine), None);
    assert_eq!(store.calibrations("here").unwrap().len(), 3);
}

#[test]
fn runs_started_in_one_second_get_distinct_names() {
    let place = place();
    let store = Store::open(&place.path).unwrap();
    let mut runs = [(); 3].map(|()| named("volley-20261120-210500", "2026-11-20T21:05:00Z"));
    let owners = runs.each_mut().map(|run| store.begin_new(run).unwrap());
    let names = runs.each_ref().map(|run| run.id.as_str());
    assert_eq!(names, ["volley-20261120-210500", "volley-20261120-210500-2", "volley-20261120-210500-3"]);
    assert_eq!(store.run("latest").unwrap().id, names[2]);
    assert_eq!(store.run(names[0]).unwrap().id, names[0], "the whole name of one, the beginning of others");
    drop(owners);
    assert_eq!(std::fs::read_dir(place.path.parent().unwrap()).unwrap().count(), 3, "no lock is left");
}

#[test]
fn only_one_process_works_on_a_run() {
    let place = place();
    let (store, run, _) = filled(&place.path);
    let owner = store.own(&run.id).unwrap();
    let other = Store::open(&place.path).unwrap();
    let refused = error(other.own(&run.id), &place.path);
    assert_eq!(refused, format!("run `{}` is in use by process {}", run.id, std::process::id()));
    assert!(other.is_owned(&run.id));
    other.own("another").unwrap();
    drop(owner);
    other.own(&run.id).unwrap();
}

#[test]
fn running_runs_without_an_owner_are_interrupted() {
    let place = place();
    let store = Store::open(&place.path).unwrap();
    let mut run = Run { state: Some(RunState::Running), ..sample().0 };
    let owner = store.begin_new(&mut run).unwrap();
    let state = || (store.run(&run.id).unwrap().state.unwrap(), store.runs().unwrap()[0].state.unwrap());
    assert_eq!(state(), (RunState::Running, RunState::Running));
    drop(owner);
    assert_eq!(state(), (RunState::Interrupted, RunState::Interrupted));
    let complete = Run { state: Some(RunState::Complete), ..run.clone() };
    store.update_run(&complete).unwrap();
    assert_eq!(store.runs().unwrap()[0].state, Some(RunState::Complete));
    assert_eq!(store.runs().unwrap()[0].planned, Some([88, 330]));
}

#[test]
fn readers_see_trials_during_a_run() {
    let place = place();
    let (run, records) = sample();
    let writer = Store::open(&place.path).unwrap();
    writer.begin_run(&run).unwrap();
    let reader = Store::open_existing(&place.path).unwrap();
    for (count, record) in records.iter().enumerate() {
        assert_eq!(reader.records(&run.id).unwrap().len(), count);
        writer.add_record(&run.id, record).unwrap();
    }
}

/// A copy of a store's files, as if the writer had been killed now. Truncates the log to `cut_log_at` bytes, if given.
fn copied(path: &Path, cut_log_at: Option<u64>) -> Place {
    let copy = place();
    std::fs::copy(path, &copy.path).unwrap();
    let log = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    if log(path).exists() {
        std::fs::copy(log(path), log(&copy.path)).unwrap();
        if let Some(length) = cut_log_at {
            std::fs::OpenOptions::new().write(true).open(log(&copy.path)).unwrap().set_len(length).unwrap();
        }
    }
    copy
}

#[test]
fn a_killed_writer_leaves_all_finished_trials() {
    let place = place();
    let (store, run, records) = filled(&place.path);
    // Opens a transaction with a page cache so small that changed pages reach the log before a commit.
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    connection.execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE").unwrap();
    let before = std::fs::metadata(format!("{}-wal", place.path.display())).unwrap().len();
    for block in 100..140 {
        let json = serde_json::to_string(&Record { block, ..records[0].clone() }).unwrap();
        connection.execute("INSERT INTO trials (run, record) VALUES (?1, ?2)", [&run.id, &json]).unwrap();
    }
    let after = std::fs::metadata(format!("{}-wal", place.path.display())).unwrap().len();
    assert!(after > before, "the unfinished transaction has reached the disk");
    let killed = copied(&place.path, None);
    let found = Store::open_existing(&killed.path).unwrap();
    assert_eq!(found.records(&run.id).unwrap(), records);
    found.add_record(&run.id, &Record { block: 100, ..records[0].clone() }).unwrap();
    drop(store);
}

#[test]
fn a_truncated_log_keeps_all_earlier_trials() {
    let place = place();
    let (_store, run, records) = filled(&place.path);
    let length = std::fs::metadata(format!("{}-wal", place.path.display())).unwrap().len();
    let mut most = 0;
    for step in 0..=60 {
        let cut = copied(&place.path, Some(length * step / 60));
        let found = Store::open(&cut.path).unwrap();
        // If the log is cut before its entry for the run, the store does not contain the run.
        let Ok(read) = found.records(&run.id) else { continue };
        assert_eq!(read, records[..read.len()], "a prefix of the written records");
        assert!(read.len() >= most, "a longer log has no fewer");
        most = read.len();
    }
    assert_eq!(most, records.len());
}

#[test]
fn other_files_are_reported_and_left_unchanged() {
    let place = place();
    assert_eq!(error(Store::open_existing(&place.path), &place.path), "no store at `FILE`");
    assert!(!place.path.exists(), "a reader makes no file");

    let words = "These are words and no database, but long enough for a header of one hundred bytes, one would think.";
    std::fs::write(&place.path, words).unwrap();
    assert_eq!(
        error(Store::open(&place.path), &place.path),
        "`FILE` is damaged or not an SQLite file (file is not a database): move it away, or recover its data with \
         `sqlite3 FILE .recover`"
    );
    assert_eq!(std::fs::read_to_string(&place.path).unwrap(), words);

    std::fs::remove_file(&place.path).unwrap();
    rusqlite::Connection::open(&place.path).unwrap().execute_batch("CREATE TABLE recipes (x)").unwrap();
    assert_eq!(
        error(Store::open(&place.path), &place.path),
        "`FILE` is an SQLite file of another program: choose another file with --store"
    );
}

#[test]
fn newer_stores_are_rejected_and_left_unchanged() {
    let place = place();
    drop(filled(&place.path));
    let set_version = |version: i64| {
        let connection = rusqlite::Connection::open(&place.path).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
    };
    set_version(LAYOUT_VERSION + 3);
    assert_eq!(
        error(Store::open(&place.path), &place.path),
        format!(
            "`FILE` has layout version {}, this quintain supports versions up to {LAYOUT_VERSION}: use a newer \
             quintain, or another file with --store",
            LAYOUT_VERSION + 3
        )
    );
    set_version(LAYOUT_VERSION);
    assert_eq!(Store::open(&place.path).unwrap().runs().unwrap().len(), 1);
}

#[test]
fn damage_is_an_error_not_a_panic() {
    let place = place();
    let (store, run, _) = filled(&place.path);
    drop(store);
    let mut bytes = std::fs::read(&place.path).unwrap();
    let third = bytes.len() / 3;
    bytes[third..].fill(0xa5);
    std::fs::write(&place.path, bytes).unwrap();
    let found = Store::open_existing(&place.path).and_then(|store| store.records(&run.id));
    assert!(found.as_ref().unwrap_err().to_string().contains("is damaged or not an SQLite file"), "{found:?}");
}

#[test]
fn damaged_json_does_not_hide_other_runs() {
    let place = place();
    let (store, run, records) = filled(&place.path);
    let other = named("other", "2026-11-22T00:00:00Z");
    store.begin_run(&other).unwrap();
    store.add_record("other", &records[0]).unwrap();
    store.begin_run(&named("third", "2026-11-23T00:00:00Z")).unwrap();
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let damage = "UPDATE trials SET record = substr(record, 2)
                  WHERE rowid IN (SELECT trial FROM trial_index WHERE place = 3);
                  UPDATE runs SET run = substr(run, 2) WHERE id = 'third'";
    connection.execute_batch(damage).unwrap();

    let listed = store.runs().unwrap();
    let found = |id: &str| listed.iter().find(|listed| listed.id == id).unwrap().clone();
    assert_eq!((found(&run.id).trials, found(&run.id).failed, found("other").trials), (12, 1, 1));
    assert_eq!((found("third").started.as_str(), found("third").state), ("", None));
    assert_eq!(store.runs_of("volley").unwrap(), [run.id.as_str(), "other"]);
    assert_eq!(store.records("other").unwrap(), records[..1]);
    let text = error(store.records(&run.id), &place.path);
    assert!(text.starts_with(&format!("cannot read trial 3 of run `{}` in `FILE`", run.id)), "{text}");
    store.remove(&["third".to_owned()], false).unwrap();
    store.remove(std::slice::from_ref(&run.id), false).unwrap();
    assert_eq!(store.runs().unwrap().iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["other"]);
}

#[test]
fn digests_depend_on_version_and_trials() {
    let place = place();
    let (store, run, records) = filled(&place.path);
    let found = |maker: &str| store.digest(&run.id, maker).unwrap();
    assert_eq!(found("1"), None);
    store.put_digest(&run.id, "1", records.len() as u64, "{}").unwrap();
    assert_eq!((found("1").as_deref(), found("2")), (Some("{}"), None));
    store.add_record(&run.id, &Record { block: 100, ..records[0].clone() }).unwrap();
    assert_eq!(found("1"), None, "a resumed run");
    store.put_digest(&run.id, "1", records.len() as u64 + 1, "{}").unwrap();
    store.update_run(&run).unwrap();
    assert_eq!(found("1"), None, "a changed run");
}

#[test]
fn trials_by_point_are_the_trials_of_the_run() {
    let place = place();
    let (store, run, records) = filled(&place.path);
    let points = store.points(&run.id).unwrap();
    assert!(points.windows(2).all(|two| two[0] < two[1]), "{points:?}");
    let mut read = points.iter().flat_map(|point| store.records_of(&run.id, *point).unwrap()).collect::<Vec<_>>();
    read.sort_by_key(|record| record.order);
    assert_eq!(read, records);
}

#[test]
fn trials_of_later_versions_are_reported() {
    let place = place();
    let (store, run, _) = filled(&place.path);
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let sql = "UPDATE trials SET record = json_set(record, '$.version', 7, '$.idle', 'hibernate')
               WHERE rowid IN (SELECT trial FROM trial_index WHERE place = 3)";
    assert_eq!(connection.execute(sql, []).unwrap(), 1);
    let text = error(store.records(&run.id), &place.path);
    let expected =
        format!("cannot read trial 3 of run `{}` in `FILE` (format version 7, this quintain supports 3): ", run.id);
    assert!(text.starts_with(&expected) && text.contains("hibernate"), "{text}");
}

#[test]
fn unopenable_files_are_reported_with_the_reason() {
    let place = place();
    let folder = place.path.parent().unwrap();
    let missing = folder.join("nowhere/quintain.db");
    for (path, says) in [(folder, "it is a directory, but a store is a file"), (&missing, "no directory `")] {
        let text = error(Store::open(path), path);
        assert!(text.starts_with("cannot open `FILE` as a store: ") && text.contains(says), "{text}");
        assert!(text.ends_with("; choose another file with --store"), "{text}");
    }
}
