//! The section with the values of all design points.

use analysis::findings::{Findings, Mark, Row, RowState};
use analysis::{FailedRequests, hangs, label, number};

use crate::document::{Block, Cell, Head, Room, Section, Table, Tone};
use crate::sections::cells::{FIRST, limit_cell, metric_cell, metric_head, point_cells, point_heads, shown};
use crate::sections::requested_and_detail_tables;

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("results", "Results");
    if !f.cluster.is_empty() {
        section.all(Block::Note(format!("cluster: {}", f.cluster)));
    }
    section.all(Block::Table(results(f)));
    section.all(Block::Note(legend(f)));
    if let Some(unanswered) = hangs::over_all(f) {
        section.all(Block::Note(unanswered));
    }
    section.all(Block::Note(stopped(f)));
    let asked = requested_and_detail_tables::searches(f)
        .into_iter()
        .chain(f.tables.iter().map(|table| requested_and_detail_tables::table(f, table)));
    for table in asked
        .chain(requested_and_detail_tables::miss_causes(f))
        .chain(requested_and_detail_tables::operations(f))
        .chain(requested_and_detail_tables::generators(f))
    {
        section.all(Block::Table(table));
    }
    let others = other_metrics(f).map(|table| ("Other metrics".to_owned(), table));
    for (title, table) in requested_and_detail_tables::search_steps(f).into_iter().chain(others) {
        section.long(Block::Fold(title, vec![Block::Table(table)]));
    }
    if let Some(table) = variances(f) {
        let text = format!(
            "Variation between trials (s_B) and within a trial (s_W) of {} determines the best trial length.",
            study::Metric::noun_of(&f.metric)
        );
        let blocks = vec![Block::Text(text), Block::Table(table)];
        section.long(Block::Fold("More trials or longer trials?".to_owned(), blocks));
    }
    Some(section)
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
    let metrics = first_metrics(f);
    let mut heads = point_heads(f);
    // Narrow terminals first omit columns with one value for all rows, and p99 last.
    let room = |name: &str| match name {
        _ if name == f.metric => Room::Keep,
        "latency_p50" => Room::Ranked(2),
        "throughput" => Room::Ranked(3),
        "latency_p99" => Room::Ranked(5),
        _ => Room::Ranked(4),
    };
    heads.extend(metrics.iter().map(|name| metric_head(f, name).room(room(name))));
    let have_errors = f.rows.iter().any(|row| FailedRequests::from(row).cell() != "0");
    let are_equal = f.rows.windows(2).all(|rows| rows[0].n == rows[1].n);
    let unless = |keep: bool, rank: u8| if keep { Room::Keep } else { Room::Ranked(rank) };
    heads.extend([
        Head::number("errors").room(unless(have_errors, 0)),
        Head::number("n").hint("trials with a measurement").room(unless(!are_equal, 1)),
    ]);
    heads.push(Head::text("limited by"));
    // If all rows have the same reason, the note below the table gives it.
    let with_ends = f.rows.iter().any(|row| row.n == 0 || row.stop_reason != f.rows[0].stop_reason);
    heads.extend(with_ends.then(|| Head::text("trials ended").room(Room::Long)));
    let cells = |row: &Row| {
        let mut cells = point_cells(f, row);
        if row.n == 0 {
            cells[0].tags.push(row.state.word().to_owned());
        }
        cells.extend(metrics.iter().map(|name| metric_cell(f, row, name)));
        cells.push(Cell::new(if row.n == 0 { String::new() } else { FailedRequests::from(row).cell() }));
        let failed: usize = row.failures.iter().map(|failure| failure.count).sum();
        let tags = if failed > 0 { vec![format!("{failed} failed")] } else { Vec::new() };
        cells.push(Cell { tags, ..Cell::new(row.n.to_string()) });
        cells.push(limit_cell(row));
        cells.extend(with_ends.then(|| match (&row.state, row.state.reason()) {
            (RowState::Measured, _) | (_, None) => Cell::sentence(&*row.stop_reason),
            (RowState::Failed(_), _) => Cell::sentence(state_words(row)).tone(Tone::Bad),
            _ => Cell::sentence(state_words(row)).tone(Tone::Warning),
        }));
        cells
    };
    let below = f.rows.iter().enumerate().filter(|(_, row)| row.n == 0).map(|(at, row)| (at, state_words(row)));
    Table { title: String::new(), heads, rows: f.rows.iter().map(cells).collect(), below: below.collect() }
}

fn state_words(row: &Row) -> String {
    format!("{}: {}", row.state.word(), row.state.reason().unwrap_or_default())
}

fn legend(f: &Findings) -> String {
    let of_level = format!("half-width of the {} confidence interval", number::percent(f.level));
    let half = if f.quick { "half-width of a quick run (no stated confidence)" } else { &of_level };
    let mut legend = match f.gate {
        Some(_) => "Each of the n trials has a fresh server".to_owned(),
        None => format!("Mean over n trials ± {half}, each trial with a fresh server"),
    };
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
    let rest = f.metrics.iter().map(|metric| metric.name).filter(|name| !first.contains(name));
    let rest = rest.collect::<Vec<_>>();
    let mut heads = point_heads(f);
    heads.extend(rest.iter().map(|name| metric_head(f, name)));
    let cells = |row: &Row| {
        // There are thirty columns per row, so tooltips would make up most of the page.
        let rest = rest.iter().map(|name| Cell { hint: String::new(), ..metric_cell(f, row, name) });
        point_cells(f, row).into_iter().chain(rest).collect::<Vec<_>>()
    };
    let rows = f.rows.iter().filter(|row| row.n > 0).map(cells).collect();
    (!rest.is_empty()).then(|| Table { heads, rows, ..Table::default() })
}

fn variances(f: &Findings) -> Option<Table> {
    let unit = f.metric_info(&f.metric).map_or("1", |info| info.unit);
    let mut heads = point_heads(f);
    heads.extend(["s_B", "s_B over mean", "s_W, of one second", "optimal trial length"].map(Head::number));
    heads.push(Head::text("target met"));
    let known = |value: Option<f64>| Cell::new(value.map_or_else(|| "–".to_owned(), |value| shown(value, unit)));
    let cells = |row: &Row| {
        let metric = row.metrics.get(&f.metric).filter(|metric| metric.s_between.is_some())?;
        let mut cells = point_cells(f, row);
        let relative = metric.s_between.zip(metric.mean).filter(|(s, mean)| (s / mean * 100.0).is_finite());
        let relative = relative.map_or_else(|| "–".to_owned(), |(s, mean)| number::percent(s / mean.abs()));
        let best = metric.best_trial_s.map_or_else(|| "–".to_owned(), |s| shown(s * 1e9, "ns"));
        cells.extend([known(metric.s_between), Cell::new(relative), known(metric.s_within), Cell::new(best)]);
        cells.push(match metric.target_met {
            Some(true) => Cell::new("yes"),
            Some(false) => Cell::new("no").tone(Tone::Warning),
            None => Cell::new("no target"),
        });
        Some(cells)
    };
    let rows = f.rows.iter().filter(|row| row.n > 0).filter_map(cells).collect();
    Table { heads, rows, ..Table::default() }.unless_empty()
}
