//! Exports for tools that track results over commits. Values are means over the trials, with intervals if possible.

use std::collections::BTreeMap;

use analysis::Findings;
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{Estimate, Row};
use serde::Serialize;
use serde_json::{Map, json};
use study::Metric;

use super::{File, file_name, measured, name};
use crate::csv;

/// Maximum length of a benchmark name at Bencher, characters.
const BENCHER_NAME_MAX: usize = 1024;
/// Suffix that makes Bencher store a benchmark without alerts.
const BENCHER_IGNORE: &str = "-bencher-ignore";

struct Tracked<'a> {
    info: &'static Metric,
    mean: f64,
    interval: Option<&'a Estimate>,
    /// Whether the mean of the value is a lower bound.
    at_least: bool,
}

fn tracked<'a>(findings: &'a Findings, row: &'a Row) -> impl Iterator<Item = Tracked<'a>> {
    findings.metrics.iter().filter_map(|info| {
        let found = row.metrics.get(info.name)?;
        let mean = found.mean.filter(|mean| mean.is_finite())?;
        let interval = found.estimate.as_ref().filter(|found| found.low.is_finite() && found.high.is_finite());
        Some(Tracked { info, mean, interval, at_least: found.at_least })
    })
}

#[derive(Serialize)]
struct BencherMetric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// Exports Bencher Metric Format. Source: <https://bencher.dev/docs/reference/bencher-metric-format>.
pub(super) fn bencher(findings: &Findings) -> Vec<File> {
    let mut benchmarks = BTreeMap::new();
    for (name, row) in measured(findings) {
        let metric = |found: Tracked<'_>| {
            let lower_value = found.interval.map(|interval| interval.low).or(found.at_least.then_some(found.mean));
            let upper_value = found.interval.map(|interval| interval.high);
            (found.info.name, BencherMetric { value: found.mean, lower_value, upper_value })
        };
        let metrics = tracked(findings, row).map(metric).collect::<BTreeMap<_, _>>();
        let mut name = bounded(name, row.point, BENCHER_NAME_MAX - BENCHER_IGNORE.len());
        if row.is_about_others() {
            name += BENCHER_IGNORE;
        }
        benchmarks.insert(name, metrics);
    }
    benchmarks.retain(|_, metrics| !metrics.is_empty());
    file("bencher.json", benchmarks.is_empty(), &benchmarks).into_iter().collect()
}

/// Shortens a name to `most` characters. The number of the design point keeps it unique.
fn bounded(name: String, point: usize, most: usize) -> String {
    if name.chars().count() <= most {
        return name;
    }
    let end = format!("~{point}");
    name.chars().take(most - end.len()).chain(end.chars()).collect()
}

#[derive(Serialize)]
struct GithubBenchmark {
    name: String,
    unit: String,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

/// Exports the JSON of github-action-benchmark, with files named after the `tool` that reads them. Source:
/// <https://github.com/benchmark-action/github-action-benchmark>, examples of custom benchmarks.
pub(super) fn github_benchmark(findings: &Findings) -> Vec<File> {
    let (mut smaller, mut bigger) = (Vec::new(), Vec::new());
    for (name, row) in measured(findings) {
        for found in tracked(findings, row) {
            let list = if found.info.higher_is_better { &mut bigger } else { &mut smaller };
            list.push(GithubBenchmark {
                name: format!("{name}/{}", found.info.name),
                unit: found.info.unit.to_owned(),
                value: found.mean,
                range: found.interval.map(|interval| format!("± {}", interval.half_width())),
                extra: extra(row, &found),
            });
        }
    }
    let files = [("customSmallerIsBetter.json", smaller), ("customBiggerIsBetter.json", bigger)];
    files.into_iter().filter_map(|(name, list)| file(name, list.is_empty(), &list)).collect()
}

fn extra(row: &Row, found: &Tracked<'_>) -> String {
    let mut lines = vec![found.info.text.to_owned(), analysis::number::count(row.n as u64, "trial")];
    let interval = |e: &Estimate| format!("{} % interval: {} to {}", e.level * 100.0, e.low, e.high);
    lines.extend(found.interval.map(interval));
    lines.extend(found.at_least.then(|| "at least this: requests still waited at the end".to_owned()));
    lines.extend(row.marks.iter().map(|mark| mark.text().to_owned()));
    lines.join("\n")
}

fn file(name: &str, is_empty: bool, content: &impl Serialize) -> Option<File> {
    let text = || serde_json::to_string_pretty(content).expect("names and finite numbers are JSON");
    (!is_empty).then(|| File { name: name.to_owned(), text: text() })
}

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
        let (file, metrics) = (file_name(&key, newest, "csv"), metrics.collect::<Map<_, _>>());
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
