//! Cells of tables that several sections share.

use analysis::enum_words_and_lists::{SERVER_OR_PATH, limit_word, serde_name};
use analysis::findings::{Estimate, Findings, Mark, Row};
use analysis::number;
use study::Metric;

use crate::document::{Cell, Head, Room, Tone};

pub(crate) const FIRST: [&str; 4] = ["throughput", "latency_mean", "latency_p50", "latency_p99"];

pub(crate) fn metric_head(f: &Findings, name: &str) -> Head {
    let hint = f.metric_info(name).map_or("", |info| info.text);
    Head::number(Metric::heading_of(name)).hint(hint).room(Room::Drop)
}

pub(crate) fn point_heads(f: &Findings) -> Vec<Head> {
    let varying = f.factors.iter().filter(|factor| factor.varies());
    let mut heads = varying
        .map(|factor| if factor.numeric { Head::number(&*factor.name) } else { Head::text(&*factor.name) })
        .collect::<Vec<_>>();
    heads.extend(heads.is_empty().then(|| Head::text("design point")));
    heads.extend(has_both_policies(f).then(|| Head::text("idle").hint("idle-CPU policy")));
    if has_fewer_cpus(f) {
        heads.push(Head::number("cpus").hint("CPUs given to the server, of the number it wants"));
    }
    heads
}

pub(crate) fn point_cells(f: &Findings, row: &Row) -> Vec<Cell> {
    let varying = f.factors.iter().filter(|factor| factor.varies());
    let level = |name: &String| row.factors.get(name).map_or_else(|| "–".to_owned(), ToString::to_string);
    let mut cells = varying.map(|factor| Cell::new(level(&factor.name))).collect::<Vec<_>>();
    if cells.is_empty() {
        cells.push(Cell::new(if row.label.is_empty() { "(single design point)" } else { &row.label }));
    }
    cells.extend(has_both_policies(f).then(|| Cell::new(row.idle.map_or("–".to_owned(), serde_name))));
    if has_fewer_cpus(f) {
        let of_wanted = row.cpus_wanted.map_or(String::new(), |wanted| format!(" of {wanted}"));
        cells.push(Cell::new(format!("{}{of_wanted}", row.cpus)));
    }
    cells
}

fn has_both_policies(f: &Findings) -> bool {
    f.rows.windows(2).any(|two| two[0].point == two[1].point)
}

fn has_fewer_cpus(f: &Findings) -> bool {
    f.rows.iter().any(|row| row.cpus_wanted.is_some())
}

pub(crate) fn metric_cell(f: &Findings, row: &Row, name: &str) -> Cell {
    let unit = f.unit(name);
    let Some(metric) = row.metrics.get(name) else { return Cell::default() };
    let bounds = metric.estimate.as_ref().map(|e| format!("{} to {}", shown(e.low, unit), shown(e.high, unit)));
    let hint = bounds.into_iter().chain(metric.note.clone()).collect::<Vec<_>>().join("; ");
    Cell::new(cell(f, row, name)).hint(hint)
}

pub(crate) fn shown(value: f64, unit: &str) -> String {
    if value.is_finite() { number::quantity(value, unit) } else { "–".to_owned() }
}

pub(crate) fn shown_estimate(e: &Estimate, unit: &str) -> String {
    let finite = [e.point, e.low, e.high, e.half_width()].iter().all(|value| value.is_finite());
    if finite { number::estimate(e, unit) } else { "–".to_owned() }
}

pub(crate) fn cell(f: &Findings, row: &Row, metric: &str) -> String {
    let unit = f.unit(metric);
    let mark = if row.is_marked() { "*" } else { "" };
    let Some(found) = row.metrics.get(metric) else { return String::new() };
    match (&found.estimate, found.mean) {
        (Some(estimate), _) => format!("{}{mark}", shown_estimate(estimate, unit)),
        (None, Some(mean)) if found.at_least => format!("{}{mark}", number::at_least(mean, unit)),
        (None, Some(mean)) => format!("{} ±?{mark}", shown(mean, unit)),
        (None, None) => "too few samples".to_owned(),
    }
}

/// Cell with the limit and the marks that it does not imply. The cell is red if the row does not measure the server.
pub(crate) fn limit_cell(row: &Row) -> Cell {
    let hint = row.limited_by.as_ref().map_or_else(String::new, |found| found.reasons.join("; "));
    let implied = row.limited_by.as_ref().and_then(|found| Mark::of(found.limit));
    let tags = row.marks.iter().filter(|mark| Some(**mark) != implied).map(|mark| mark.text().to_owned()).collect();
    let tone = if row.marks.is_empty() { Tone::Plain } else { Tone::Bad };
    Cell { tags, ..Cell::new(limited_by(row)).hint(hint).tone(tone) }
}

pub(crate) fn limited_by(row: &Row) -> String {
    let Some(found) = &row.limited_by else { return String::new() };
    let (most, all) = (found.counts.get(&found.limit).copied().unwrap_or(0), found.counts.values().sum::<usize>());
    let word = if found.path_unknown { SERVER_OR_PATH.to_owned() } else { limit_word(found.limit) };
    if most == all { word } else { format!("{word} ({most}/{all})") }
}
