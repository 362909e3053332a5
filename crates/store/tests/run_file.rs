//! Tests of exported and imported runs, and of invalid run files.

#[path = "../../../fuzz/run_file.rs"]
mod fuzz;

use std::io::Read;
use std::path::Path;

use fixtures as example;
use store::run_file::{LINE_MAX, Writer, read};
use store::{Store, StoreError};
use study::record::{Record, Run, RunState};

const NOW: &str = "2026-11-24T09:00:00Z";

fn store(folder: &Path, name: &str) -> Store {
    Store::open(folder.join(name)).unwrap()
}

fn fill(store: &Store, run: &Run, records: &[Record]) {
    store.begin_run(run).unwrap();
    records.iter().for_each(|record| store.add_record(&run.id, record).unwrap());
}

fn export(store: &Store, run: &str) -> Vec<u8> {
    store.export(run, Vec::new(), "0.1.0").unwrap().0
}

fn import(store: &Store, file: &[u8], name: Option<&str>) -> Result<String, StoreError> {
    store.import(file, name, NOW)
}

fn texts(path: &Path, run: &str) -> Vec<String> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT json_remove(run, '$.imported') FROM runs WHERE id = ?1
               UNION ALL SELECT record FROM (
                   SELECT record FROM trials JOIN trial_index ON trial = trials.rowid
                   WHERE trials.run = ?1 ORDER BY place
               )";
    let mut statement = connection.prepare(sql).unwrap();
    statement.query_map([run], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn an_imported_run_is_identical_to_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (store(folder.path(), "here.db"), store(folder.path(), "there.db"));
    for (mut run, records) in [example::volley(), example::through(), example::cluster(), example::capacity()] {
        run.id = format!("{}-{}", run.plan.study, records.len());
        fill(&here, &run, &records);
        let file = export(&here, &run.id);
        assert_eq!(import(&there, &file, None).unwrap(), run.id);
        assert_eq!(
            there.run(&run.id).unwrap(),
            Run { imported: NOW.to_owned(), ..run.clone() },
            "its host facts are kept"
        );
        assert_eq!(there.records(&run.id).unwrap(), records);
        assert_eq!(texts(&folder.path().join("here.db"), &run.id), texts(&folder.path().join("there.db"), &run.id));
        assert_eq!(export(&there, &run.id), file, "the file exported there is the same");
    }
    let listed = there.runs().unwrap();
    assert!(listed.iter().all(|run| run.imported == NOW && run.host == "example" && run.bytes > 10_000), "{listed:?}");
}

#[test]
fn a_taken_name_is_an_error_unless_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "quintain.db");
    let (run, records) = example::volley();
    fill(&store, &run, &records[..3]);
    let file = export(&store, &run.id);
    let error = import(&store, &file, None).unwrap_err();
    assert!(matches!(&error, StoreError::RunExists(_, taken) if *taken == run.id), "{error}");
    assert_eq!(import(&store, &file, Some("theirs")).unwrap(), "theirs");
    assert_eq!(store.run("theirs").unwrap(), Run { id: "theirs".to_owned(), imported: NOW.to_owned(), ..run });
    assert_eq!(store.records("theirs").unwrap(), records[..3]);
}

#[test]
fn active_runs_are_neither_exported_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "quintain.db");
    let (run, records) = example::volley();
    let run = Run { state: Some(RunState::Running), ..run };
    fill(&store, &run, &records[..1]);
    let owner = store.own(&run.id).unwrap();
    assert!(matches!(store.export(&run.id, Vec::new(), ""), Err(StoreError::Owned(..))));
    assert!(matches!(store.remove(std::slice::from_ref(&run.id), false), Err(StoreError::Owned(..))));
    drop(owner);
    // A killed run has no owner; once imported, its state is `Interrupted`.
    let file = export(&store, &run.id);
    store.remove(std::slice::from_ref(&run.id), false).unwrap();
    import(&store, &file, None).unwrap();
    assert_eq!(store.run(&run.id).unwrap().state, Some(RunState::Interrupted));
}

#[test]
fn removed_runs_leave_no_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "quintain.db");
    let (run, records) = example::volley();
    let ids = ["a", "b", "c", "d"].map(str::to_owned);
    for id in &ids {
        fill(&store, &Run { id: id.clone(), ..run.clone() }, &records);
    }
    let each = store.runs().unwrap()[0].bytes;
    let wrong = store.remove(&["a".to_owned(), "nothing".to_owned()], false).unwrap_err();
    assert!(
        wrong.to_string().starts_with("no run `nothing` in `") && store.runs().unwrap().len() == 4,
        "all or none: {wrong}"
    );

    let freed = store.remove(&ids[..2], false).unwrap();
    assert!(
        freed.not_rewritten.is_none() && freed.before_bytes - freed.after_bytes >= 2 * each,
        "{freed:?}, {each} each"
    );
    assert_eq!(store.file_bytes(), freed.after_bytes);
    let left = std::fs::metadata(&store.path).unwrap().len();
    assert!((2 * each..3 * each).contains(&left), "the file itself: {left}, {each} each");

    let owner = store.own("d").unwrap();
    let freed = store.remove(&ids[2..3], false).unwrap();
    assert!(
        freed.not_rewritten.as_deref() == Some("run `d` is in progress")
            && freed.after_bytes + each > freed.before_bytes,
        "others are at work: {freed:?}"
    );
    drop(owner);
    assert_eq!(store.records("d").unwrap(), records);
    let freed = store.remove(&ids[3..], false).unwrap();
    assert!(freed.not_rewritten.is_none() && freed.after_bytes < each / 2, "{freed:?}");
}

fn file(lines: &[&[u8]]) -> Vec<u8> {
    fuzz::packed(&lines.join(&b'\n'))
}

const HEAD: &[u8] = br#"{"format":"quintain-run","version":1,"quintain":"0.1.0"}"#;

fn refused(file: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "quintain.db");
    let error = import(&store, file, None).unwrap_err().to_string();
    assert!(store.runs().unwrap().is_empty(), "nothing of it is kept");
    error
}

#[test]
fn rejects_invalid_runs_with_their_location() {
    let (run, records) = example::volley();
    let json = |value: &Run| [b"{\"run\":", &serde_json::to_vec(value).unwrap()[..], b"}"].concat();
    let trial = |value: &Record| [b"{\"trial\":", &serde_json::to_vec(value).unwrap()[..], b"}"].concat();
    let (good, first) = (json(&run), trial(&records[0]));
    let named = |id: &str| json(&Run { id: id.to_owned(), ..run.clone() });
    let check = |lines: &[&[u8]], expected: &str| {
        let error = refused(&file(lines));
        assert!(error.contains(expected), "{error}\n  expected {expected}");
    };
    check(&[b"{}"], "not a run file");
    check(
        &[br#"{"format":"quintain-run","version":2,"quintain":"9.0.0"}"#],
        "the file has version 2, this quintain reads versions up to 1",
    );
    check(&[HEAD, b"{}"], "line 2: expected `{\"run\":`");
    check(&[HEAD, &first], "line 2: expected the run, found a trial");
    check(&[HEAD, &good, &good], "line 3: expected a trial or the end, found a second run");
    check(&[HEAD, b"{\"run\":{\"version\":1}}"], "line 2: missing field `id`");
    check(&[HEAD, b"{\"run\":{\"version\":7}}"], "the run in line 2 has version 7");
    check(&[HEAD, b"{\"run\":\xff}"], "line 2: invalid utf-8");
    check(
        &[HEAD, format!("{{\"run\":{{\"version\":1,\"more\":{}}}}}", "[".repeat(100_000)).as_bytes()],
        "line 2: expected value at line 1 column 1000",
    );
    check(&[HEAD, &json(&Run { started: "soon".to_owned(), ..run.clone() })], "line 2: invalid time `soon`");
    for (id, why) in [
        ("", "it is empty"),
        ("latest", "it means the run that started last"),
        ("--all", "it begins like a flag"),
        ("../../etc/passwd", "it has a `/`"),
        ("a\x1b[2Jb", "a control character, \\u{1b}, in a text"),
        ("a b", "`a b`: it has a `/`, space or control characters"),
        (&"x".repeat(300), "more than 200 bytes"),
    ] {
        check(&[HEAD, &named(id)], why);
    }
    let mut hostile = run.clone();
    hostile.plan.question = "\x1b]0;owned\x07".to_owned();
    check(&[HEAD, &json(&hostile)], "line 2: a control character, \\u{1b}, in a text");
    check(&[HEAD, &good, &first, &first], "line 4: a second trial of point");
    let far = trial(&Record { point: 99, ..records[0].clone() });
    check(&[HEAD, &good, &far], "line 3: a trial of design point 99; the plan has 12");
    check(&[HEAD, &good, &first, b"{\"end\":{}}"], "line 4: missing field `trials`");
    check(&[HEAD, &good, br#"{"end":{"trials":0,"bytes":1,"sha256":"00"}}"#], "the file is damaged or was edited");
}

#[test]
fn rejects_truncated_changed_and_extended_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "quintain.db");
    let (run, records) = example::volley();
    fill(&store, &run, &records[..2]);
    let whole = export(&store, &run.id);
    assert_eq!(refused(&[]), refused(b"PK\x03\x04 something else"));
    for end in (0..whole.len()).step_by(whole.len() / 40) {
        refused(&whole[..end]);
        let mut bent = whole.clone();
        // The first ten bytes are gzip metadata, such as time and system, which no checksum covers.
        bent[end.max(10)] ^= 0x10;
        refused(&bent);
    }
    assert!(refused(&whole[..whole.len() / 2]).contains("the file is incomplete"));
    assert!(refused(&[&whole[..], b"more"].concat()).contains("expected the end of the file"));
    assert!(refused(&[&whole[..], &whole[..]].concat()).contains("expected the end of the file"));
}

#[test]
fn rejects_decompression_bombs_at_the_line_limit() {
    // An endless line, 64 MiB compressed to 64 KiB, is rejected at the limit.
    let mut writer = Writer::bare(Vec::new());
    writer.raw(HEAD).unwrap();
    writer.raw(&vec![b' '; 2 * LINE_MAX]).unwrap();
    let (file, _) = writer.end().unwrap();
    assert!(file.len() < 100_000, "{}", file.len());
    assert_eq!(refused(&file), "line 2 is larger than the limit of 32 MiB");
    let long = format!("\"{}\"", "x".repeat(LINE_MAX));
    let error = Writer::new(Vec::new(), "0.1.0").unwrap().run(&long).unwrap_err();
    assert_eq!(error.to_string(), "line 2 is larger than the limit of 32 MiB");
}

#[test]
fn gzip_and_json_can_read_a_run_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "quintain.db");
    let (run, records) = example::volley();
    fill(&store, &run, &records[..2]);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&export(&store, &run.id)[..]).read_to_string(&mut text).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect::<Vec<_>>();
    assert_eq!(lines[1]["run"]["id"], run.id);
    assert_eq!(lines[3]["trial"]["order"], records[1].order);
    assert_eq!(lines[4]["end"]["trials"], 2);
}

fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/run_file");
    let mut paths = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn seeds_contain_valid_and_invalid_runs() {
    let seeds = seeds();
    let good = seeds.iter().filter(|seed| read(&fuzz::packed(seed)[..], |_, _| Ok(())).is_ok()).count();
    assert!(0 < good && good < seeds.len(), "{good}");
}

#[test]
fn truncated_and_changed_seeds_pass() {
    for seed in seeds() {
        for at in (0..=seed.len()).step_by(seed.len() / 150 + 1) {
            fuzz::run_file(&seed[..at]);
            for byte in [0, b'"', b'\n', b'-', b'}', b'[', b'9', 0xff] {
                let mut bent = seed.clone();
                if let Some(place) = bent.get_mut(at) {
                    *place = byte;
                }
                fuzz::run_file(&bent);
            }
        }
    }
}
