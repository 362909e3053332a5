//! Cells of tables that several sections share.

use std::collections::BTreeMap;

use analysis::enum_words_and_lists::{SERVER_OR_PATH, limit_word, serde_name};
use analysis::findings::{Estimate, Findings, Mark, Row};
use analysis::number;
use study::Metric;
use study::record::Limit;

use crate::document::{Cell, Columns, Head, Room, Tone};

pub(crate) const FIRST: [&str; 4] = ["throughput", "latency_mean", "latency_p50", "latency_p99"];

pub(crate) fn metric_head(f: &Findings, name: &str) -> Head {
    let hint = f.metric_info(name).map_or("", |info| info.text);
    Head::number(Metric::heading_of(name)).hint(hint).room(Room::Drop)
}

/// Starts a table with the columns that tell design points apart. `of` returns the row of the findings.
pub(crate) fn point_columns<T>(f: &Findings, rows: impl IntoIterator<Item = T>, of: impl Fn(&T) -> &Row) -> Columns<T> {
    let varying = || f.factors.iter().filter(|factor| factor.varies());
    let table = varying().fold(Columns::of(rows), |table, factor| {
        let head = Head { right: factor.numeric, ..Head::text(&*factor.name) };
        table.column(head, |row| of(row).factors.get(&factor.name).map_or("–".to_owned(), ToString::to_string))
    });
    let is_alone = varying().next().is_none();
    let has_both_policies = f.rows.windows(2).any(|two| two[0].point == two[1].point);
    let has_fewer_cpus = f.rows.iter().any(|row| row.cpus_wanted.is_some());
    let label = |row: &T| Some(of(row).label.clone()).filter(|label| !label.is_empty());
    let idle = Head::text("idle").hint("idle-CPU policy");
    let cpus = Head::number("cpus").hint("CPUs given to the server, of the number it wants");
    let of_wanted = |row: &Row| row.cpus_wanted.map_or(String::new(), |wanted| format!(" of {wanted}"));
    table
        .when(is_alone, |table| {
            table.text("design point", |row| label(row).unwrap_or_else(|| "(single design point)".to_owned()))
        })
        .when(has_both_policies, |table| table.column(idle, |row| of(row).idle.map_or("–".to_owned(), serde_name)))
        .when(has_fewer_cpus, |table| table.column(cpus, |row| format!("{}{}", of(row).cpus, of_wanted(of(row)))))
}

pub(crate) fn metric_cell(f: &Findings, row: &Row, name: &str) -> Cell {
    let unit = f.unit(name);
    let Some(metric) = row.metrics.get(name) else { return Cell::default() };
    let bounds = metric.estimate.as_ref().map(|e| format!("{} to {}", shown(e.low, unit), shown(e.high, unit)));
    let hint = bounds.into_iter().chain(metric.note.clone()).collect::<Vec<_>>().join("; ");
    Cell::from(cell(f, row, name)).hint(hint)
}

pub(crate) fn shown(value: f64, unit: &str) -> String {
    if value.is_finite() { number::quantity(value, unit) } else { "–".to_owned() }
}

pub(crate) fn shown_estimate(e: &Estimate, unit: &str) -> String {
    let finite = [e.point, e.low, e.high, e.half_width()].iter().all(|value| value.is_finite());
    if finite { number::estimate(e, unit) } else { "–".to_owned() }
}

pub(crate) fn cell(f: &Findings, row: &Row, metric: &str) -> String {
    let Some(found) = row.metrics.get(metric) else { return String::new() };
    let unit = f.unit(metric);
    let text = match (&found.estimate, found.mean) {
        (Some(estimate), _) => shown_estimate(estimate, unit),
        (None, Some(mean)) if found.at_least => number::at_least(mean, unit),
        (None, Some(mean)) => format!("{} ±?", shown(mean, unit)),
        (None, None) => return "too few samples".to_owned(),
    };
    if row.is_marked() { text + "*" } else { text }
}

/// Cell with the limit and the marks that it does not imply. The cell is red if the row does not measure the server.
pub(crate) fn limit_cell(row: &Row) -> Cell {
    let hint = row.limited_by.as_ref().map_or_else(String::new, |found| found.reasons.join("; "));
    let implied = row.limited_by.as_ref().and_then(|found| Mark::of(found.limit));
    let tags = row.marks.iter().filter(|mark| Some(**mark) != implied).map(|mark| mark.text().to_owned()).collect();
    let tone = if row.marks.is_empty() { Tone::Plain } else { Tone::Bad };
    Cell { tags, ..Cell::from(limited_by(row)).hint(hint).tone(tone) }
}

pub(crate) fn limited_by(row: &Row) -> String {
    row.limited_by.as_ref().map_or_else(String::new, |found| {
        let word = if found.path_unknown { SERVER_OR_PATH.to_owned() } else { limit_word(found.limit) };
        of_trials(word, found.counts.get(&found.limit).copied().unwrap_or(0), &found.counts)
    })
}

/// Appends the number of trials with a limit to its name, unless they are all trials.
pub(crate) fn of_trials(word: String, most: usize, counts: &BTreeMap<Limit, usize>) -> String {
    let all = counts.values().sum::<usize>();
    if most == all { word } else { format!("{word} ({most}/{all})") }
}
