//! Tables for Apache Otava, which detects changes over runs. Each has one row per run.

use analysis::Findings;
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::Row;
use serde_json::{Map, json};

use super::File;
use super::row_names::{file, measured, name};
use crate::csv;

const TIME: &str = "time";
const ATTRIBUTES: [&str; 4] = ["run", "revision", "quintain", "limited_by"];

/// Creates a table per design point of `latest`, with a row per run of `history`, and `otava.yaml`, which names the
/// tables. Otava cannot read empty numbers, so `otava.yaml` lists only metrics that all rows have.
pub(super) fn otava(latest: &Findings, history: &[Findings]) -> Vec<File> {
    let (mut files, mut tests) = (Vec::new(), Map::new());
    for (key, newest) in measured(latest) {
        let same = |run: &'_ Findings| run.rows.iter().find(|row| row.n > 0 && name(run, row) == key).cloned();
        let runs = history.iter().filter_map(|run| Some((run, same(run)?))).collect::<Vec<_>>();
        let heads = [TIME].iter().chain(&ATTRIBUTES).map(|&head| head.to_owned());
        let heads = heads.chain(latest.metrics.iter().map(|metric| metric.name.to_owned()));
        let value = |row: &Row, metric: &str| row.metrics.get(metric)?.mean.filter(|mean| mean.is_finite());
        let mut text = csv::line(heads);
        for (run, row) in &runs {
            let limit = row.limited_by.as_ref().map_or(String::new(), |found| serde_name(found.limit));
            let mut cells = vec![run.started.clone(), run.run.clone(), run.revision.clone().unwrap_or_default()];
            cells.extend([run.quintain.clone(), limit]);
            cells.extend(latest.metrics.iter().map(|metric| csv::number(value(row, metric.name))));
            text += &csv::line(cells);
        }
        let complete = latest.metrics.iter().filter(|metric| {
            let is_there = |(_, row): &(&Findings, Row)| value(row, metric.name).is_some();
            !runs.is_empty() && runs.iter().all(is_there)
        });
        let metrics = complete.map(|metric| {
            let direction = if metric.higher_is_better { 1 } else { -1 };
            (metric.name.to_owned(), json!({ "column": metric.name, "direction": direction, "scale": 1 }))
        });
        let (file, metrics) = (file(&key, newest, "csv"), metrics.collect::<Map<_, _>>());
        let test = json!({
            "type": "csv", "file": file, "time_column": TIME, "attributes": ATTRIBUTES, "metrics": metrics,
        });
        files.push(File { name: file, text });
        tests.insert(key, test);
    }
    if !files.is_empty() {
        // JSON is valid YAML and quotes all content.
        let text = format!("{:#}", json!({ "tests": tests }));
        files.push(File { name: "otava.yaml".to_owned(), text });
    }
    files
}
