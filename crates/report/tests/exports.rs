//! Reads exports back with HdrHistogram's library and with strict types. `.ci/exports.py` runs the actual tools.

use std::collections::BTreeMap;

use analysis::{Findings, analyze};
use fixtures as example;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use report::ReportError;
use report::exports::{EXPORTS, File, LatencyFile, Source, latency_file};
use serde::Deserialize;
use serde_json::Value;
use study::plan::Level;
use study::record::{Record, Run};

const HOSTILE: &str = "a, \"b\"\n'c';\\ d=/../%41\u{1b}[2J\u{202e} <script> ä #[";

fn files(name: &str, findings: &Findings, records: &[Record]) -> Result<Vec<File>, ReportError> {
    let export = EXPORTS.iter().find(|export| export.name == name).unwrap();
    let history = [findings.clone(), findings.clone()];
    export.files(&Source { findings, records, history: &history, trial: None })
}

fn hostile() -> (Run, Vec<Record>) {
    let (run, records) = example::volley();
    let text = serde_json::to_string(&serde_json::json!({ "run": run, "records": records })).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    fn rename(value: &mut Value) {
        match value {
            Value::String(text) if text == "c-epoll" => *text = HOSTILE.to_owned(),
            Value::Array(items) => items.iter_mut().for_each(rename),
            Value::Object(items) => items.values_mut().for_each(rename),
            _ => {}
        }
    }
    rename(&mut value);
    let run: Run = serde_json::from_value(value["run"].take()).unwrap();
    assert_eq!(run.plan.points[0].factors["server"], Level::Text(HOSTILE.to_owned()));
    (run, serde_json::from_value(value["records"].take()).unwrap())
}

fn runs() -> [(Run, Vec<Record>); 5] {
    [example::volley(), example::capacity(), example::cluster(), example::through_in(18), hostile()]
}

#[test]
fn documentation_has_the_table_of_exports() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/exports.md");
    let table = report::exports::table();
    assert!(
        std::fs::read_to_string(page).unwrap().contains(&table),
        "docs/reference/exports.md should have this table:\n{table}"
    );
}

#[test]
fn every_export_has_files_with_unique_names() {
    for (run, records) in runs() {
        let findings = analyze(&run, &records);
        for export in &EXPORTS {
            let files = files(export.name, &findings, &records).unwrap();
            for (index, file) in files.iter().enumerate() {
                assert!(!file.text.is_empty() && !file.name.starts_with('.'), "{file:?}");
                assert!(
                    !file.name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/'),
                    "{}",
                    file.name
                );
                assert!(files[..index].iter().all(|other| other.name != file.name), "{}", file.name);
            }
        }
        let nothing = analyze(&run, &[]);
        for export in &EXPORTS {
            let error = files(export.name, &nothing, &[]).unwrap_err();
            let text = format!("run `{}` has no trial with a measurement", run.id);
            assert_eq!(error.to_string(), text, "{}", export.name);
        }
    }
}

/// A metric according to <https://bencher.dev/docs/reference/bencher-metric-format>.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metric {
    value: f64,
    lower_value: Option<f64>,
    upper_value: Option<f64>,
}

#[test]
fn bencher() {
    for (run, records) in runs() {
        let findings = analyze(&run, &records);
        let files = files("bencher", &findings, &records).unwrap();
        let read: BTreeMap<String, BTreeMap<String, Metric>> = serde_json::from_str(&files[0].text).unwrap();
        let rows = findings.rows.iter().filter(|row| row.n > 0).collect::<Vec<_>>();
        assert_eq!(read.len(), rows.len());
        for (name, metrics) in &read {
            assert!(name.chars().count() <= 1024 && metrics.keys().all(|name| name.chars().count() <= 64));
            for metric in metrics.values() {
                assert!(metric.lower_value.is_none_or(|low| low <= metric.value));
                assert!(metric.upper_value.is_none_or(|high| metric.value <= high));
            }
        }
        let ignored = read.keys().filter(|name| name.ends_with("-bencher-ignore")).count();
        assert_eq!(ignored, rows.iter().filter(|row| row.is_about_others()).count());
    }
    let (run, records) = example::volley();
    let findings = analyze(&run, &records);
    let read: Value = serde_json::from_str(&files("bencher", &findings, &records).unwrap()[0].text).unwrap();
    let estimate = findings.rows[0].estimate("throughput").unwrap();
    assert_eq!(
        read["volley/server=c-epoll/cores=1/clients=40"]["throughput"],
        serde_json::json!({ "value": 69_834.0, "lower_value": estimate.low, "upper_value": estimate.high })
    );
}

/// A custom benchmark according to github-action-benchmark.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Benchmark {
    name: String,
    unit: String,
    value: f64,
    range: Option<String>,
    extra: Option<String>,
}

#[test]
fn github_benchmark() {
    for (run, records) in runs() {
        let findings = analyze(&run, &records);
        let files = files("github-benchmark", &findings, &records).unwrap();
        assert_eq!(
            files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(),
            ["customSmallerIsBetter.json", "customBiggerIsBetter.json"]
        );
        let mut names = std::collections::BTreeSet::new();
        for (file, higher) in files.iter().zip([false, true]) {
            let read: Vec<Benchmark> = serde_json::from_str(&file.text).unwrap();
            for one in &read {
                assert!(names.insert(one.name.clone()), "{} twice", one.name);
                let info = findings.metric_info(one.name.rsplit_once('/').unwrap().1).unwrap();
                assert_eq!((info.higher_is_better, info.unit), (higher, one.unit.as_str()));
                assert!(one.value.is_finite() && one.range.as_ref().is_none_or(|range| range.starts_with("± ")));
                assert!(one.extra.as_ref().is_some_and(|extra| extra.contains("trial")));
            }
        }
    }
    let (run, records) = example::volley();
    let text = &files("github-benchmark", &analyze(&run, &records), &records).unwrap()[1].text;
    let read: Vec<Benchmark> = serde_json::from_str(text).unwrap();
    assert!(read[6].extra.as_ref().unwrap().contains("\n8 trials\n95 % interval: "), "{:?}", read[6].extra);
    assert!(read.iter().any(|one| one.extra.as_ref().unwrap().ends_with("\ngenerator-bound")));
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    assert!(!quoted, "{line}");
    fields
}

#[test]
fn otava() {
    for (run, records) in runs() {
        let findings = analyze(&run, &records);
        let files = files("otava", &findings, &records).unwrap();
        let config: Value = serde_json::from_str(&files.last().unwrap().text).unwrap();
        let tests = config["tests"].as_object().unwrap();
        assert_eq!(tests.len(), files.len() - 1);
        for test in tests.values() {
            let table = files.iter().find(|file| test["file"] == file.name).unwrap();
            let lines = table.text.lines().map(fields).collect::<Vec<_>>();
            assert_eq!(lines.len(), 3, "two runs and the names of columns");
            let place = |name: &str| lines[0].iter().position(|head| head == name).unwrap();
            assert_eq!(lines[1][place("time")], findings.started);
            assert_eq!(lines[1][place("run")], findings.run);
            let metrics = test["metrics"].as_object().unwrap();
            assert!(metrics.contains_key("throughput"));
            for metric in metrics.values() {
                let place = place(metric["column"].as_str().unwrap());
                assert!(lines[1..].iter().all(|line| line[place].parse::<f64>().is_ok()), "{metric}");
            }
        }
    }
}

#[test]
fn runs_without_a_design_point_have_no_row() {
    let (run, records) = example::volley();
    let findings = analyze(&run, &records);
    let mut older = findings.clone();
    older.rows[0].n = 0;
    older.rows[1].metrics.remove("latency_p99");
    let export = EXPORTS.iter().find(|export| export.name == "otava").unwrap();
    let history = [older, findings.clone()];
    let files =
        export.files(&Source { findings: &findings, records: &records, history: &history, trial: None }).unwrap();
    assert_eq!([0, 1].map(|index| files[index].text.lines().count()), [2, 3]);
    let config: Value = serde_json::from_str(&files.last().unwrap().text).unwrap();
    let of = |clients: &str| &config["tests"][format!("volley/server=c-epoll/cores=1/clients={clients}")]["metrics"];
    assert!(!of("40")["latency_p99"].is_null() && of("80")["latency_p99"].is_null(), "an empty field is not a number");
    assert_eq!(
        (&of("80")["latency_mean"]["direction"], &of("80")["throughput"]["direction"]),
        (&(-1).into(), &1.into())
    );
}

#[test]
fn hlog() {
    for (run, mut records) in runs() {
        let findings = analyze(&run, &records);
        let text = &files("hdr", &findings, &records).unwrap()[0].text;
        records.sort_by_key(|record| record.order);
        let measured = records.iter().filter(|record| !run.plan.comes_first(record.point));
        let mut measured = measured.filter_map(|record| Some((record, record.measurement()?)));
        let (mut tags, mut last) = (std::collections::BTreeSet::new(), 0.0);
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            let LogEntry::Interval(interval) = entry.unwrap() else { continue };
            let (record, measurement) = measured.next().unwrap();
            let bytes = base64(interval.encoded_histogram());
            let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            let latency = measurement.latency();
            assert_eq!(read.len(), latency.count);
            let [min, max] = [latency.min, latency.max].map(Option::unwrap);
            assert!(read.equivalent(read.max(), max) && read.equivalent(read.min(), min), "{}", record.order);
            assert!(interval.start_timestamp().as_secs_f64() >= last);
            last = interval.start_timestamp().as_secs_f64();
            assert!((interval.duration().as_secs_f64() - measurement.duration_ns as f64 / 1e9).abs() < 0.001);
            tags.insert(interval.tag().unwrap().as_str().to_owned());
        }
        assert!(measured.next().is_none(), "every trial is present");
        assert_eq!(tags.len(), findings.rows.iter().filter(|row| row.n > 0).count());
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| {
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".iter().position(|&known| known == c)
    };
    let bits = text.bytes().filter(|&c| c != b'=').map(|c| value(c).unwrap()).collect::<Vec<_>>();
    let group = |group: &[usize]| {
        let word = group.iter().fold(0, |word, bits| word << 6 | bits) << (6 * (4 - group.len()));
        (0..group.len() - 1).map(move |byte| (word >> (16 - 8 * byte)) as u8).collect::<Vec<_>>()
    };
    bits.chunks(4).flat_map(group).collect()
}

fn percentiles(text: &str) -> Vec<[f64; 3]> {
    let lines = text.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let numbers =
        lines.map(|line| line.split_whitespace().map(|word| word.parse::<f64>().unwrap()).collect::<Vec<_>>());
    numbers.map(|numbers| [numbers[0], numbers[1], numbers[2]]).collect()
}

#[test]
fn hgrm() {
    for (run, records) in runs() {
        let findings = analyze(&run, &records);
        let files = files("hgrm", &findings, &records).unwrap();
        let rows = findings.rows.iter().filter(|row| row.n > 0).collect::<Vec<_>>();
        assert_eq!(files.len(), rows.len());
        for (file, row) in files.iter().zip(rows) {
            let latency = stats::Histogram::try_from(row.latency.as_ref().unwrap()).unwrap();
            let steps = percentiles(&file.text);
            assert_eq!(steps.last().unwrap()[1..], [1.0, latency.len() as f64]);
            assert!(steps.windows(2).all(|two| two[0] <= two[1]), "ascending in every column");
            let at = |q: f64| steps.iter().find(|step| step[1] >= q).unwrap()[0] * 1e6;
            assert!((at(0.5) / latency.quantile(0.5).unwrap() - 1.0).abs() < 0.002);
        }
    }
}

#[test]
fn a_load_has_both_forms() {
    let (_, records) = example::volley();
    let measurement = records.iter().find_map(Record::measurement).unwrap();
    let start = std::time::Duration::from_secs(1_795_208_700);
    let text = latency_file(measurement, LatencyFile::Log, HOSTILE, start).unwrap();
    let intervals =
        IntervalLogIterator::new(text.as_bytes()).filter(|entry| matches!(entry, Ok(LogEntry::Interval(_))));
    assert_eq!(intervals.count(), 1);
    assert!(text.contains("#[StartTime: 1795208700.000 (seconds since epoch)]\n"), "{text}");
    let text = latency_file(measurement, LatencyFile::Percentiles, HOSTILE, start).unwrap();
    assert_eq!(percentiles(&text).last().unwrap()[2], measurement.requests as f64);
    let nothing = study::record::Measurement { service: Default::default(), response: None, ..measurement.clone() };
    assert_eq!(latency_file(&nothing, LatencyFile::Log, "x", start), None);
}

/// The four kinds of events that the export writes, according to the Trace Event Format.
#[derive(Deserialize)]
#[serde(tag = "ph", deny_unknown_fields)]
enum Event {
    M { name: String, pid: u64, tid: u64, ts: f64, args: BTreeMap<String, Value> },
    X { name: String, pid: u64, tid: u64, ts: f64, dur: f64 },
    C { name: String, pid: u64, tid: u64, ts: f64, args: BTreeMap<String, f64> },
    I { name: String, pid: u64, tid: u64, ts: f64, s: String, args: BTreeMap<String, String> },
}

#[test]
fn trace() {
    for (run, records) in runs() {
        let findings = analyze(&run, &records);
        let file = &files("trace", &findings, &records).unwrap()[0];
        // The format marks an instant with a lowercase letter, but the variants of `Event` are uppercase.
        let read: Value = serde_json::from_str(&file.text.replace("\"ph\":\"i\"", "\"ph\":\"I\"")).unwrap();
        let events: Vec<Event> = serde_json::from_value(read["traceEvents"].clone()).unwrap();
        let (mut phases, mut processes, mut counters) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for event in events {
            match event {
                Event::M { name, pid, tid, ts, args } => {
                    assert_eq!((tid, ts), (0, 0.0));
                    if name == "process_name" {
                        processes.insert(pid, args["name"].clone());
                    }
                }
                Event::X { name, pid, tid, ts, dur } => {
                    assert!(pid == 1 && tid == 0 && ts >= 0.0 && dur > 0.0);
                    phases.push((name, ts, ts + dur));
                }
                Event::C { name, pid, tid, ts, args } => {
                    assert!(processes.contains_key(&pid) && tid == 0 && args["value"].is_finite());
                    let last = counters.insert((pid, name), ts);
                    assert!(last.is_none_or(|last| last <= ts), "counters ascend");
                }
                Event::I { name, pid, tid, ts, s, args } => {
                    assert!(processes.contains_key(&pid) && tid == 0 && ts > 0.0 && s == "p" && !name.is_empty());
                    assert!(!args["text"].contains('\u{1b}'));
                }
            }
        }
        let names = phases.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>();
        assert!(names.contains(&"measure") && names.contains(&"start"), "{names:?}");
        assert!(phases.windows(2).all(|two| two[0].2 <= two[1].1 + 1e-3), "one phase after the other: {phases:?}");
        assert!(counters.keys().any(|(_, name)| name == "requests per second"));
    }
}
