//! The tables that a study asks for, as cells of text: every renderer shows the same.

use study::plan::{Table, TableKind};
use study::record::Purpose;

use crate::terminal::{cell, cpus_cell, has_fewer_cpus, limited_by};
use crate::{miss_causes, sections::operations};
use analysis::findings::{Findings, Row, SearchEnd, SearchFinding, SearchStep};
use analysis::number;
use analysis::words::{idle_word, purpose};

/// A table, ready to be laid out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    /// Headings, and whether their column is one of numbers.
    pub(crate) heads: Vec<(String, bool)>,
    /// A row for each design point, also for those without a number.
    pub(crate) rows: Vec<Vec<String>>,
}

/// Every table of the findings: what searches found, then those of the study in its order, then why the GETs of caches missed, then what operations of journeys took.
pub(crate) fn sheets(findings: &Findings) -> Vec<Sheet> {
    let asked = findings.tables.iter().map(|table| sheet(findings, table));
    searches(findings)
        .into_iter()
        .chain(asked)
        .chain(miss_causes::sheet(findings))
        .chain(operations::sheet(findings))
        .collect()
}

/// The range that each search found.
fn searches(findings: &Findings) -> Option<Sheet> {
    let found = findings.searches().collect::<Vec<_>>();
    let (_, first) = found.first()?;
    let same = found.iter().all(|(_, search)| search.objective == first.objective);
    let end = |end: Option<SearchEnd>, missing: &Option<String>| match (end, missing) {
        (Some(end), _) if end.confirmed => number::quantity(end.rate_per_s, "1/s"),
        (Some(end), _) => format!("{} (not confirmed)", number::quantity(end.rate_per_s, "1/s")),
        (None, Some(why)) => why.clone(),
        (None, None) => "not known".to_owned(),
    };
    let rows = found.iter().map(|(row, search)| {
        let mut cells = vec![row.label.clone(), end(search.low, &search.no_low), end(search.high, &search.no_high)];
        cells.extend((!same).then(|| search.objective.clone()));
        cells.extend([search.trials.to_string(), search.ended.clone()]);
        cells
    });
    let mut heads = vec![("design point", false), ("holds", true), ("fails at", true)];
    heads.extend((!same).then_some(("objective", false)));
    heads.extend([("trials", true), ("ended because", false)]);
    let title =
        if same { format!("The highest rate at which {}", first.objective) } else { "The highest rate".to_owned() };
    let heads = heads.into_iter().map(|(head, right)| (head.to_owned(), right)).collect();
    Some(Sheet { title, heads, rows: rows.collect() })
}

/// The steps of each search, in the order they ran.
pub(crate) fn steps(findings: &Findings) -> Vec<Sheet> {
    let sheet = |(row, search): (&Row, &SearchFinding)| {
        let line = |step: &SearchStep| {
            let offered = step.rate_per_s.map_or("a closed loop".to_owned(), |rate| number::quantity(rate, "1/s"));
            vec![
                step.order.to_string(),
                purpose(step.purpose).to_owned(),
                offered,
                if step.purpose == Purpose::Pilot { String::new() } else { step.verdict.text().to_owned() },
                step.why.clone(),
            ]
        };
        let heads = [("trial", true), ("for", false), ("offered", true), ("verdict", false), ("because", false)];
        Sheet {
            title: format!("Steps of the search: {}", row.label),
            heads: heads.map(|(head, right)| (head.to_owned(), right)).to_vec(),
            rows: search.steps.iter().map(line).collect(),
        }
    };
    findings.searches().map(sheet).collect()
}

fn sheet(findings: &Findings, table: &Table) -> Sheet {
    let mut columns = points(findings);
    columns.push(column("n", true, findings, |row| row.n.to_string()));
    match table.kind {
        TableKind::Statistics => {
            table.metrics.iter().for_each(|metric| columns.extend(statistics(findings, metric)));
        }
        TableKind::Metrics => columns.extend(table.metrics.iter().map(|metric| {
            let heading = metric.replace('_', " ");
            column(&heading, true, findings, |row| cell(findings, row, metric))
        })),
    }
    columns.push(column("limited by", false, findings, |row| match row.n {
        0 => row.state.word().to_owned(),
        _ => limited_by(row),
    }));
    let rows = (0..findings.rows.len()).map(|row| columns.iter().map(|(_, cells)| cells[row].clone()).collect());
    let rows = rows.collect();
    let heads = columns.into_iter().map(|(head, _)| head).collect();
    Sheet { title: title(findings, table), heads, rows }
}

/// A heading with its cells.
type Column = ((String, bool), Vec<String>);

fn column(heading: &str, right: bool, findings: &Findings, cell: impl Fn(&Row) -> String) -> Column {
    ((heading.to_owned(), right), findings.rows.iter().map(cell).collect())
}

fn title(findings: &Findings, table: &Table) -> String {
    let text = |metric: &String| {
        let known = findings.metric_info(metric).map(|info| info.text.clone());
        known.or_else(|| study::Metric::named(metric).map(|metric| metric.text.to_owned())).unwrap_or(metric.clone())
    };
    table.title.clone().unwrap_or_else(|| {
        let mut made = table.metrics.iter().map(text).collect::<Vec<_>>().join(", ");
        if let Some(first) = made.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        made
    })
}

/// The columns that say which design point a row is.
fn points(findings: &Findings) -> Vec<Column> {
    let varying = findings.factors.iter().filter(|factor| factor.levels.len() > 1);
    let mut columns = varying
        .map(|factor| {
            let level = |row: &Row| row.factors.get(&factor.name).map_or(String::new(), ToString::to_string);
            column(&factor.name, factor.numeric, findings, level)
        })
        .collect::<Vec<_>>();
    if columns.is_empty() {
        columns.push(column("design point", false, findings, |row| row.label.clone()));
    }
    if findings.rows.windows(2).any(|two| two[0].point == two[1].point) {
        columns.push(column("idle", false, findings, |row| row.idle.map_or("", idle_word).to_owned()));
    }
    if has_fewer_cpus(findings) {
        columns.push(column("cpus", true, findings, cpus_cell));
    }
    columns
}

/// Sample mean, sample standard deviation and interval of a metric, all in one unit, which the headings name.
fn statistics(findings: &Findings, metric: &str) -> Vec<Column> {
    let unit = findings.metric_info(metric).map_or("", |info| info.unit.as_str());
    let found = |row: &Row| row.metrics.get(metric).cloned().unwrap_or_default();
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    let largest = findings
        .rows
        .iter()
        .filter_map(|row| finite(found(row).mean))
        .fold(0.0, |most: f64, mean| most.max(mean.abs()));
    let (divisor, unit) = number::scale(unit, largest);
    let spreads = findings.rows.iter().filter_map(|row| finite(found(row).stddev)).filter(|spread| *spread > 0.0);
    let least = spreads.fold(f64::INFINITY, f64::min) / divisor;
    // Two digits of the smallest deviation, within reason.
    let decimals = if least.is_finite() { (1.0 - least.log10().floor()).clamp(0.0, 4.0) as usize } else { 2 };
    let shown = |value: Option<f64>| finite(value).map(|value| format!("{:.decimals$}", value / divisor));
    let head = |text: &str| if unit.is_empty() { text.to_owned() } else { format!("{text}, {unit}") };
    let mean = |row: &Row| match shown(found(row).mean)
        .map(|mean| if row.is_at_least(metric) { format!("≥ {mean}") } else { mean })
    {
        Some(mean) if row.is_marked() => format!("{mean}*"),
        Some(mean) => mean,
        None if row.metrics.contains_key(metric) => "too few samples".to_owned(),
        None => String::new(),
    };
    let interval = |row: &Row| {
        let estimate = found(row).estimate;
        let (low, high) = (shown(estimate.map(|found| found.low)), shown(estimate.map(|found| found.high)));
        low.zip(high).map_or(String::new(), |(low, high)| format!("{low} to {high}"))
    };
    // What a quick look shows is no interval of any level.
    let level = if findings.quick { "quick look's".to_owned() } else { number::percent(findings.level) };
    vec![
        column(&head("sample mean"), true, findings, mean),
        column(&head("sample standard deviation"), true, findings, |row| shown(found(row).stddev).unwrap_or_default()),
        column(&head(&format!("{level} interval")), true, findings, interval),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{analyze, example};

    fn text(sheet: &Sheet) -> String {
        let heads = sheet.heads.iter().map(|(head, _)| head.as_str()).collect::<Vec<_>>().join(" | ");
        let rows = sheet.rows.iter().map(|row| row.join(" | "));
        std::iter::once(format!("{}\n{heads}", sheet.title)).chain(rows).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn sample_mean_and_standard_deviation_as_the_seed_has_them() {
        let (run, records) = example::threads();
        let findings = analyze(&run, &records);
        insta::assert_snapshot!(text(&sheets(&findings)[0]), @"
        Valid answers a second
        threads | cpus | n | sample mean, k/s | sample standard deviation, k/s | 95 % interval, k/s | limited by
        1 | 1 | 8 | 19.71 | 0.13 | 19.48 to 19.94 | subject
        2 | 2 | 8 | 37.31 | 0.56 | 36.84 to 37.78 | subject
        4 | 4 | 8 | 66.42 | 1.24 | 65.38 to 67.46 | subject
        8 | 8 | 8 | 104.56 | 1.72 | 103.12 to 105.99 | subject
        16 | 16 | 8 | 127.38 | 1.53 | 125.88 to 128.88 | subject
        24 | 24 | 8 | 125.39 | 1.21 | 123.91 to 126.87 | subject
        32 | 24 of 32 | 8 | 114.25 | 1.87 | 112.69 to 115.82 | subject
        40 | 24 of 40 | 8 | 102.91* | 1.63 | 101.55 to 104.28 | generator
        ");
        // The same from the values of the trials.
        let values = findings.rows[1].trials.iter().map(|trial| trial.values["throughput"]).collect::<Vec<_>>();
        let mean = values.iter().sum::<f64>() / 8.0;
        let stddev = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 7.0).sqrt();
        let row = &sheets(&findings)[0].rows[1];
        assert_eq!(row[3..5], [format!("{:.2}", mean / 1e3), format!("{:.2}", stddev / 1e3)]);
    }

    #[test]
    fn metrics_side_by_side_also_where_there_are_none() {
        let (mut run, records) = example::volley();
        let metrics = ["throughput", "latency_p99", "handshake_mean"].map(str::to_owned).to_vec();
        run.plan.tables = vec![Table { kind: TableKind::Metrics, metrics, title: Some("Side by side".to_owned()) }];
        insta::assert_snapshot!(text(&sheets(&analyze(&run, &records))[0]), @"
        Side by side
        server | cores | clients | n | throughput | latency p99 | handshake mean | limited by
        c-epoll | 1 | 40 | 8 | 69.8 ±1.8 k/s | 1.280 ±0.042 ms |  | subject
        c-epoll | 1 | 80 | 8 | 72.6 ±1.9 k/s | 2.46 ±0.08 ms |  | subject
        c-epoll | 2 | 40 | 8 | 111.7 ±3.0 k/s | 797 ±26 µs |  | subject
        c-epoll | 2 | 80 | 8 | 114.7 ±1.0 k/s* | 1.548 ±0.016 ms* |  | generator
        go | 1 | 40 | 7 | 51.5 ±1.5 k/s | 1.751 ±0.063 ms |  | subject
        go | 1 | 80 | 8 | 53.2 ±1.4 k/s | 3.35 ±0.13 ms |  | subject
        go | 2 | 40 | 8 | 82.1 ±2.2 k/s | 1.088 ±0.036 ms |  | subject
        go | 2 | 80 | 0 |  |  |  | failed
        rust-tokio | 1 | 40 | 8 | 55.9 ±3.6 k/s | 1.604 ±0.121 ms |  | subject
        rust-tokio | 1 | 80 | 8 | 58.6 ±1.5 k/s | 3.05 ±0.10 ms |  | subject
        rust-tokio | 2 | 40 | 8 | 91.2 ±2.4 k/s | 981 ±32 µs |  | subject
        rust-tokio | 2 | 80 | 0 |  |  |  | unrunnable
        ");
        let statistics = Table { kind: TableKind::Statistics, metrics: vec!["handshake_mean".to_owned()], title: None };
        run.plan.tables = vec![statistics];
        run.plan.points.truncate(1);
        insta::assert_snapshot!(text(&sheets(&analyze(&run, &records[..20]))[0]), @r"
        Mean time of a TLS handshake
        design point | n | sample mean | sample standard deviation | 95 % interval | limited by
        c-epoll, cores 1, clients 40 | 1 |  |  |  | subject
        ");
    }

    #[test]
    fn a_search_has_its_range_and_its_steps() {
        let (run, records) = example::capacity();
        let findings = analyze(&run, &records);
        insta::assert_snapshot!(text(&sheets(&findings)[0]), @r"
        The highest rate at which p99 < 5ms and errors < 0.1%
        design point | holds | fails at | trials | ended because
        capacity | 64.1 k/s | 69.9 k/s | 12 | both ends confirmed
        ");
        insta::assert_snapshot!(text(&steps(&findings)[0]), @r"
        Steps of the search: capacity
        trial | for | offered | verdict | because
        0 | pilot | a closed loop |  | a closed loop reached 69.9 k/s
        1 | bracket | 34.9 k/s | holds | 99 % of the offered rate achieved
        2 | bracket | 69.9 k/s | fails | p99 17.06 ms
        3 | bisect | 49.4 k/s | holds | p99 908 µs
        4 | bisect | 58.8 k/s | holds | p99 1.545 ms
        5 | bisect | 64.1 k/s | holds | p99 2.91 ms
        6 | repeat | 64.1 k/s | holds | p99 2.81 ms
        7 | repeat | 64.1 k/s | holds | p99 2.89 ms
        8 | repeat | 69.9 k/s | fails | p99 17.03 ms
        9 | repeat | 69.9 k/s | fails | p99 17.36 ms
        10 | confirm | 64.1 k/s | holds | p99 2.87 ms
        11 | confirm | 64.1 k/s | holds | p99 2.82 ms
        ");
        // The capacity is no design point: the study's own tables are without it.
        insta::assert_snapshot!(text(&sheets(&findings)[1]), @"
        P99 of the latency
        load | n | latency p99 | limited by
        20 | 12 | 338 ±7 µs | neither
        50 | 12 | 508 ±9 µs | neither (11/12)
        80 | 12 | 987 ±17 µs | neither
        ");
    }
}
