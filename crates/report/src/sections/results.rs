//! The section with the values of all design points.

use analysis::failed_requests::count_and_share;
use analysis::findings::{Findings, Mark, MetricFinding, Row, RowState};
use analysis::{hangs, label, number};

use super::cells::{FIRST, limit_cell, metric_cell, metric_head, point_columns, shown};
use super::requested_and_detail_tables as tables;
use crate::document::{Block, Cell, Head, Room, Section, Table, Tone};

pub(crate) fn write(f: &Findings, section: &mut Section) {
    section.all((!f.cluster.is_empty()).then(|| Block::Note(format!("cluster: {}", f.cluster))));
    section.all([Block::Table(results(f))]);
    section.all([Block::Note(legend(f))]);
    section.all(hangs::over_all(f).into_iter().chain([stopped(f)]).map(Block::Note));
    let asked = f.tables.iter().map(|table| tables::table(f, table));
    let others = [tables::miss_causes(f), tables::operations(f), tables::generators(f)].into_iter().flatten();
    section.all(tables::searches(f).into_iter().chain(asked).chain(others).map(Block::Table));
    let folded = tables::search_steps(f).chain(other_metrics(f).map(|table| ("Other metrics".to_owned(), table)));
    section.long(folded.map(|(title, table)| Block::Fold(title, vec![Block::Table(table)])));
    if let Some(table) = variances(f) {
        let text = format!(
            "Variation between trials (s_B) and within a trial (s_W) of {} determines the best trial length.",
            study::Metric::noun_of(&f.metric)
        );
        let blocks = vec![Block::Text(text), Block::Table(table)];
        section.long([Block::Fold("More trials or longer trials?".to_owned(), blocks)]);
    }
}

/// Metrics of the first table, always including the stop rule's metric, right after throughput. Empty for a gate, whose
/// own table shows metrics by pairs, because two estimates of one change would contradict each other.
fn first_metrics(f: &Findings) -> Vec<&str> {
    if f.gate.is_some() {
        return Vec::new();
    }
    let mut metrics = FIRST.to_vec();
    if !metrics.contains(&f.metric.as_str()) {
        metrics.insert(1, &f.metric);
    }
    metrics.retain(|name| f.metric_info(name).is_some());
    metrics
}

fn results(f: &Findings) -> Table {
    // Narrow terminals first omit columns with one value for all rows, and p99 last.
    let room = |name: &str| match name {
        _ if name == f.metric => Room::Keep,
        "latency_p50" => Room::Ranked(2),
        "throughput" => Room::Ranked(3),
        "latency_p99" => Room::Ranked(5),
        _ => Room::Ranked(4),
    };
    let unless = |keep: bool, rank: u8| if keep { Room::Keep } else { Room::Ranked(rank) };
    let have_errors = f.rows.iter().any(|row| row.errors_total() > 0);
    let errors = Head::number("errors").room(unless(have_errors, 0));
    let are_equal = f.rows.windows(2).all(|rows| rows[0].n == rows[1].n);
    let n = Head::number("n").hint("trials with a measurement").room(unless(!are_equal, 1));
    // If all rows have the same reason, the note below the table gives it.
    let with_ends = f.rows.iter().any(|row| row.n == 0 || row.stop_reason != f.rows[0].stop_reason);
    let trials = |row: &Row| {
        let failed: usize = row.failures.iter().map(|failure| failure.count).sum();
        let tags = if failed > 0 { vec![format!("{failed} failed")] } else { Vec::new() };
        Cell { tags, ..Cell::from(row.n.to_string()) }
    };
    let end = |row: &Row| match (&row.state, row.state.reason()) {
        (RowState::Measured, _) | (_, None) => Cell::sentence(&*row.stop_reason),
        (RowState::Failed(_), _) => Cell::sentence(state_words(row)).tone(Tone::Bad),
        _ => Cell::sentence(state_words(row)).tone(Tone::Warning),
    };
    let columns = point_columns(f, &f.rows, |row| row);
    let columns = first_metrics(f).into_iter().fold(columns, |columns, name| {
        columns.column(metric_head(f, name).room(room(name)), |row| metric_cell(f, row, name))
    });
    let mut table = columns
        .column(
            errors,
            |row| if row.n == 0 { String::new() } else { count_and_share(row.errors_total(), row.requests) },
        )
        .column(n, |row| trials(row))
        .text("limited by", |row| limit_cell(row))
        .when(with_ends, |columns| columns.column(Head::text("trials ended").room(Room::Long), |row| end(row)))
        .titled("");
    for (at, row) in f.rows.iter().enumerate().filter(|(_, row)| row.n == 0) {
        table.rows[at][0].tags.push(row.state.word().to_owned());
        table.below.push((at, state_words(row)));
    }
    table
}

fn state_words(row: &Row) -> String {
    format!("{}: {}", row.state.word(), row.state.reason().unwrap_or_default())
}

fn legend(f: &Findings) -> String {
    let of_level = format!("half-width of the {} confidence interval", number::percent(f.level));
    let half = if f.quick { "half-width of a quick run (no stated confidence)" } else { &of_level };
    let means = format!("Mean over n trials ± {half}, each trial with a fresh server");
    let of_gate = "Each of the n trials has a fresh server".to_owned();
    let mut legend = if f.gate.is_some() { of_gate } else { means };
    legend.extend(marks_legend(f).iter().map(|words| format!("; {words}")));
    let scope = f.scope.as_ref().map_or(String::new(), |scope| format!(" {}.", scope.sentence));
    legend + "." + &label::throughout(&f.factors) + &scope
}

fn marks_legend(f: &Findings) -> Vec<&'static str> {
    let rows = || f.rows.iter();
    let others = match rows().any(|row| row.marks.contains(&Mark::NetworkBound)) {
        true => Some("* generator-bound, network-bound or shared CPUs"),
        false => rows().any(Row::is_about_others).then_some("* generator-bound or shared CPUs"),
    };
    let hung = rows().any(|row| row.hung() > 0).then_some("* the server hung");
    let bound = rows().any(|row| row.metrics.values().any(|found| found.at_least));
    let bound = bound.then_some("≥ at least: requests were still waiting at the end");
    [others, hung, bound].into_iter().flatten().collect()
}

/// Describes why no trials followed. All points of a study end together, except searches and abandoned points.
fn stopped(f: &Findings) -> String {
    let measured = f.rows.iter().filter(|row| row.n > 0);
    let reasons = analysis::group_by_key::grouped(measured.map(|row| (row.stop_reason.as_str(), row)));
    let alone = reasons.len() == 1;
    let text = |(reason, rows): &(&str, Vec<&Row>)| match rows.as_slice() {
        [row] if !alone => label::about(row, reason),
        _ => (*reason).to_owned(),
    };
    match reasons.as_slice() {
        [] => "No trials.".to_owned(),
        reasons => format!("Trials: {}.", reasons.iter().map(text).collect::<Vec<_>>().join("; ")),
    }
}

fn other_metrics(f: &Findings) -> Option<Table> {
    let first = first_metrics(f);
    let rest = || f.metrics.iter().map(|metric| metric.name).filter(|name| !first.contains(name));
    let measured = f.rows.iter().filter(|row| row.n > 0);
    let columns = rest().fold(point_columns(f, measured, |row| row), |columns, name| {
        // There are thirty columns per row, so tooltips would make up most of the page.
        columns.column(metric_head(f, name), |row| metric_cell(f, row, name).hint(""))
    });
    rest().next().map(|_| columns.titled(""))
}

fn variances(f: &Findings) -> Option<Table> {
    let unit = f.metric_info(&f.metric).map_or("1", |info| info.unit);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let known = |value: Option<f64>, unit: &str| or_dash(value.map(|value| shown(value, unit)));
    let relative = |metric: &MetricFinding| {
        let (s, mean) = (metric.s_between?, metric.mean?);
        (s / mean * 100.0).is_finite().then(|| number::percent(s / mean.abs()))
    };
    let rows = f.rows.iter().filter(|row| row.n > 0).filter_map(|row| Some((row, row.metrics.get(&f.metric)?)));
    let rows = rows.filter(|(_, metric)| metric.s_between.is_some());
    let columns = point_columns(f, rows, |(row, _)| row)
        .number("s_B", |(_, metric)| known(metric.s_between, unit))
        .number("s_B over mean", |(_, metric)| or_dash(relative(metric)))
        .number("s_W, of one second", |(_, metric)| known(metric.s_within, unit))
        .number("optimal trial length", |(_, metric)| known(metric.best_trial_s.map(|s| s * 1e9), "ns"))
        .text("target met", |(_, metric)| match metric.target_met {
            Some(true) => Cell::from("yes"),
            Some(false) => Cell::from("no").tone(Tone::Warning),
            None => Cell::from("no target"),
        });
    columns.titled("").unless_empty()
}
