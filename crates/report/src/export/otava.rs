//! Tables for Apache Otava, which detects changes over runs, with one row per run.

use std::collections::BTreeMap;

use analysis::Findings;
use analysis::display_names::serde_name;
use analysis::findings::Row;
use serde::Serialize;

use super::File;
use super::names::{file, measured, name};
use crate::csv;

const TIME: &str = "time";
const ATTRIBUTES: [&str; 4] = ["run", "revision", "quintain", "limited_by"];

#[derive(Serialize)]
struct Config {
    tests: BTreeMap<String, Test>,
}

#[derive(Serialize)]
struct Test {
    r#type: &'static str,
    file: String,
    time_column: &'static str,
    attributes: [&'static str; 4],
    metrics: BTreeMap<String, Column>,
}

#[derive(Serialize)]
struct Column {
    column: String,
    /// 1 if more is better, otherwise -1.
    direction: i8,
    scale: u8,
}

/// A table for each design point of `latest`, and `otava.yaml`, which names them. Rows are the runs of `history` with
/// that point. Otava cannot read empty numbers, so the configuration lists the metrics that all of them have.
pub(super) fn otava(latest: &Findings, history: &[Findings]) -> Vec<File> {
    let (mut files, mut tests) = (Vec::new(), BTreeMap::new());
    for (key, newest) in measured(latest) {
        let same = |run: &'_ Findings| run.rows.iter().find(|row| row.n > 0 && name(run, row) == key).cloned();
        let runs = history.iter().filter_map(|run| Some((run, same(run)?))).collect::<Vec<_>>();
        let heads = [TIME].iter().chain(&ATTRIBUTES).map(|&head| head.to_owned());
        let heads = heads.chain(latest.metrics.iter().map(|metric| metric.name.clone()));
        let value = |row: &Row, metric: &str| row.metrics.get(metric)?.mean.filter(|mean| mean.is_finite());
        let mut text = csv::line(heads);
        for (run, row) in &runs {
            let limit = row.limited_by.as_ref().map_or(String::new(), |found| serde_name(found.limit));
            let mut cells = vec![run.started.clone(), run.run.clone(), run.revision.clone().unwrap_or_default()];
            cells.extend([run.quintain.clone(), limit]);
            cells.extend(latest.metrics.iter().map(|metric| csv::number(value(row, &metric.name))));
            text += &csv::line(cells);
        }
        let complete = latest.metrics.iter().filter(|metric| {
            let is_there = |(_, row): &(&Findings, Row)| value(row, &metric.name).is_some();
            !runs.is_empty() && runs.iter().all(is_there)
        });
        let metrics = complete.map(|metric| {
            let direction = if metric.higher_is_better { 1 } else { -1 };
            (metric.name.clone(), Column { column: metric.name.clone(), direction, scale: 1 })
        });
        let test = Test {
            r#type: "csv",
            file: file(&key, newest, "csv"),
            time_column: TIME,
            attributes: ATTRIBUTES,
            metrics: metrics.collect(),
        };
        files.push(File { name: test.file.clone(), text });
        tests.insert(key, test);
    }
    if !files.is_empty() {
        // JSON is valid YAML and quotes all content.
        let text = serde_json::to_string_pretty(&Config { tests }).expect("names are JSON");
        files.push(File { name: "otava.yaml".to_owned(), text });
    }
    files
}
