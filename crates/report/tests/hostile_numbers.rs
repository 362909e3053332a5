//! Checks that no number in a store, whatever its origin, can cause a panic or invalid JSON.

use serde_json::Value;
use study::buckets_as_text::Buckets;
use study::record::{Record, Run};

fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| numbers(item, &format!("{path}/{index}"), found));
        }
        Value::Object(items) => items.iter().for_each(|(key, item)| numbers(item, &format!("{path}/{key}"), found)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Converts histogram buckets between a list, whose numbers can be changed, and the string that records contain.
fn write_buckets(value: &mut Value, written: fn(&Value) -> Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| write_buckets(item, written)),
        Value::Object(items) => items.iter_mut().for_each(|(key, item)| match key.as_str() {
            "buckets" => *item = written(item),
            _ => write_buckets(item, written),
        }),
        _ => {}
    }
}

fn as_list(buckets: &Value) -> Value {
    serde_json::from_str(&format!("[{}]", buckets.as_str().unwrap())).unwrap()
}

fn as_text(buckets: &Value) -> Value {
    buckets.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>().join(",").into()
}

/// A single design point with few trials and windows, so that more numbers can be tested.
fn small() -> (Run, Vec<Record>) {
    let (mut run, mut records) = fixtures::volley();
    run.plan.points.truncate(1);
    run.builds.truncate(1);
    records.retain(|record| record.point == 0);
    records.truncate(2);
    for record in &mut records {
        let study::record::Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
        measurement.windows.truncate(2);
        for histogram in [&mut measurement.service, &mut measurement.connect, &mut measurement.windows[0].latency] {
            truncate(histogram, 2);
        }
        truncate(&mut measurement.windows[1].latency, 1);
        measurement.offered_per_s = Some(1_000.0);
        measurement.response = Some(measurement.service.clone());
        measurement.lag_thread = Some(measurement.service.clone());
        let measured_from_ns = record.subject.measured_from_ns;
        record.subject.samples.retain(|sample| sample.at_ns >= measured_from_ns);
        record.subject.samples.truncate(2);
    }
    (run, records)
}

fn truncate(histogram: &mut study::record::Histogram, buckets: usize) {
    let counts = histogram.buckets.counts().unwrap();
    histogram.buckets = Buckets::new(&counts[..buckets.min(counts.len())]);
}

fn render_everything(run: &Run, records: &[Record]) {
    let findings = analysis::analyze(run, records);
    let style = report::Style { colour: true, width: 80 };
    report::terminal(&findings, &style);
    report::markdown(&findings);
    report::csv(&findings);
    report::csv_trials(&findings);
    report::csv_effects(&findings);
    analysis::volley(run, records);
    report::figure_svgs(&findings, report::Background::Light);
    report::html(&findings).unwrap();
    serde_json::from_str::<Value>(&serde_json::to_string(&findings).unwrap()).unwrap();
    for export in &report::exports::EXPORTS {
        let history = std::slice::from_ref(&findings);
        let _ = export.files(&report::exports::Source { findings: &findings, records, history, trial: None });
    }
    for record in records {
        analysis::judge(record, run.calibration.as_ref(), &run.nodes);
        load(record);
    }
    for point in 0..run.plan.points.len() {
        analysis::next(&run.plan, point, records);
    }
}

fn load(record: &Record) {
    let Some(measurement) = record.measurement() else { return };
    let found = analysis::load(measurement, &record.agents, "x");
    report::load_terminal(&found, &report::Style::PLAIN);
    serde_json::from_str::<Value>(&serde_json::to_string(&found).unwrap()).unwrap();
}

fn extremes() -> [Value; 7] {
    [0.into(), 1.into(), u64::MAX.into(), u32::MAX.into(), (-1).into(), f64::MAX.into(), (-0.5).into()]
}

#[test]
fn any_number_in_a_record() {
    let (run, records) = small();
    let mut value = serde_json::to_value(&records[0]).unwrap();
    write_buckets(&mut value, as_list);
    let mut paths = Vec::new();
    numbers(&value, "", &mut paths);
    assert!(paths.len() > 100, "{}", paths.len());
    let (mut tried, mut failed) = (0, Vec::new());
    for path in &paths {
        for extreme in extremes() {
            let mut changed = value.clone();
            *changed.pointer_mut(path).unwrap() = extreme.clone();
            write_buckets(&mut changed, as_text);
            // The store rejects invalid records.
            let Ok(record) = serde_json::from_value::<Record>(changed) else { continue };
            tried += 1;
            let result = std::panic::catch_unwind(|| render_everything(&run, &[record, records[1].clone()]));
            failed.extend(result.is_err().then(|| format!("{path} = {extreme}")));
        }
    }
    assert_eq!(failed, Vec::<String>::new());
    assert!(tried > 3 * paths.len(), "{tried}");
}

#[test]
fn any_number_in_a_run() {
    let (run, records) = small();
    let value = serde_json::to_value(&run).unwrap();
    let mut paths = Vec::new();
    numbers(&value, "", &mut paths);
    let mut failed = Vec::new();
    for path in &paths {
        for extreme in extremes() {
            let mut changed = value.clone();
            *changed.pointer_mut(path).unwrap() = extreme.clone();
            let Ok(run) = serde_json::from_value::<Run>(changed) else { continue };
            let result = std::panic::catch_unwind(|| render_everything(&run, &records));
            failed.extend(result.is_err().then(|| format!("{path} = {extreme}")));
        }
    }
    assert_eq!(failed, Vec::<String>::new());
}
