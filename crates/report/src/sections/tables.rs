use analysis::display_names::{capitalised, limit_word};
use analysis::failed_requests::count_and_share;
use analysis::findings::{AgentFinding, Findings, MedianRange, OperationFinding, OverTrials, Row};
use analysis::number;
use study::plan::{self, TableKind};

use super::cells::{cell, limited_by, point_cells, point_heads};
use crate::document::{Cell, Head, Room, Table};
use crate::figure::metric_of;

pub(crate) fn table(findings: &Findings, table: &plan::Table) -> Table {
    let mut columns = vec![column(Head::number("n"), findings, |row| row.n.to_string())];
    match table.kind {
        TableKind::Statistics => {
            table.metrics.iter().for_each(|metric| columns.extend(statistics(findings, metric)));
        }
        TableKind::Metrics => columns.extend(table.metrics.iter().map(|metric| {
            column(Head::number(study::Metric::heading_of(metric)), findings, |row| cell(findings, row, metric))
        })),
    }
    columns.push(column(Head::text("limited by"), findings, |row| match row.n {
        0 => row.state.word().to_owned(),
        _ => limited_by(row),
    }));
    let cells = |row: usize| {
        let cells = columns.iter().map(|(_, cells): &Column| Cell::new(cells[row].as_str()));
        point_cells(findings, &findings.rows[row]).into_iter().chain(cells).collect()
    };
    let rows = (0..findings.rows.len()).map(cells).collect();
    let mut heads = point_heads(findings);
    let points = heads.len();
    heads.extend(columns.iter().map(|(head, _)| head.clone()));
    // On narrow terminals, numbers go from the end, except the number of trials, the first metric and the limit.
    let last = heads.len() - 1;
    heads.iter_mut().take(last).skip(points + 2).for_each(|head| head.room = Room::Drop);
    Table { title: title(findings, table), heads, rows, below: Vec::new() }
}

type Column = (Head, Vec<String>);

fn column(head: Head, findings: &Findings, cell: impl Fn(&Row) -> String) -> Column {
    (head, findings.rows.iter().map(cell).collect())
}

fn title(findings: &Findings, table: &plan::Table) -> String {
    let texts = || table.metrics.iter().map(|metric| metric_of(findings, metric).1).collect::<Vec<_>>();
    table.title.clone().unwrap_or_else(|| capitalised(&texts().join(", ")))
}

/// Sample mean, standard deviation and interval of a metric, in one unit named in the heads.
fn statistics(findings: &Findings, metric: &str) -> Vec<Column> {
    let unit = findings.unit(metric);
    let found = |row: &Row| row.metrics.get(metric).cloned().unwrap_or_default();
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    let means = findings.rows.iter().filter_map(|row| finite(found(row).mean));
    let largest = means.fold(0.0, |most: f64, mean| most.max(mean.abs()));
    let (divisor, unit) = number::scale(unit, largest);
    let spreads = findings.rows.iter().filter_map(|row| finite(found(row).stddev)).filter(|spread| *spread > 0.0);
    let least = spreads.fold(f64::INFINITY, f64::min) / divisor;
    // Two digits of the smallest deviation, within limits.
    let decimals = if least.is_finite() { (1.0 - least.log10().floor()).clamp(0.0, 4.0) as usize } else { 2 };
    let shown = |value: Option<f64>| finite(value).map(|value| format!("{:.decimals$}", value / divisor));
    let head = |text: &str| Head::number(if unit.is_empty() { text.to_owned() } else { format!("{text}, {unit}") });
    let mean = |row: &Row| match shown(found(row).mean) {
        Some(mean) => {
            let least = if row.is_at_least(metric) { "≥ " } else { "" };
            format!("{least}{mean}{}", if row.is_marked() { "*" } else { "" })
        }
        None if row.metrics.contains_key(metric) => "too few samples".to_owned(),
        None => String::new(),
    };
    let interval = |row: &Row| {
        let estimate = found(row).estimate;
        let (low, high) = (shown(estimate.map(|found| found.low)), shown(estimate.map(|found| found.high)));
        low.zip(high).map_or(String::new(), |(low, high)| format!("{low} to {high}"))
    };
    // A quick run's interval has no level.
    let level = if findings.quick { "quick run's".to_owned() } else { number::percent(findings.level) };
    vec![
        column(head("sample mean"), findings, mean),
        column(head("sample standard deviation"), findings, |row| shown(found(row).stddev).unwrap_or_default()),
        column(head(&format!("{level} interval")), findings, interval),
    ]
}

pub(crate) fn operations(findings: &Findings) -> Option<Table> {
    let numbers = ["calls", "errors", "mean", "p50", "p99"].map(Head::number);
    let heads = ["design point", "operation"].map(Head::text).into_iter().chain(numbers);
    let label = |row: usize| findings.rows.get(row).map_or_else(String::new, |row| row.label.clone());
    let line = |(row, operation): (usize, &OperationFinding)| {
        let latencies = [&operation.latency_mean, &operation.latency_p50, &operation.latency_p99];
        let counts = [operation.requests.to_string(), count_and_share(operation.errors, operation.requests)];
        [label(row), operation.name.clone()].into_iter().chain(counts).chain(latencies.map(over_trials)).collect()
    };
    let all = findings.operations.iter().flat_map(|found| found.operations.iter().map(|one| (found.row, one)));
    Table::plain("Latency by operation", heads, all.map(line)).unless_empty()
}

fn over_trials(found: &OverTrials) -> String {
    let mean = || found.mean.map(|mean| number::quantity(mean, "ns"));
    let estimate = found.estimate.as_ref().map(|estimate| number::estimate(estimate, "ns"));
    estimate.or_else(mean).unwrap_or_else(|| "not enough".to_owned())
}

/// A line per generator, with its row; `None` if every load came from one machine.
pub(crate) fn generators(f: &Findings) -> Option<Table> {
    let numbers = ["p50", "p99", "rate", "share of requests", "busy"].map(Head::number);
    let heads = ["design point", "generator"].map(Head::text).into_iter().chain(numbers);
    let line = |(row, agent): (&Row, &AgentFinding)| {
        vec![
            row.label.clone(),
            agent.node.clone(),
            range(&agent.latency_p50_ns, "ns"),
            range(&agent.latency_p99_ns, "ns"),
            range(&agent.rate_per_s, "1/s"),
            range(&agent.share, "%"),
            range(&agent.busy, "%"),
            limited_agent(agent),
        ]
    };
    let rows = f.all_rows().flat_map(|row| row.agents.iter().map(move |agent| (row, agent))).map(line);
    let heads = heads.chain([Head::text("limited by")]);
    Table::plain("Generators, median over trials [least, largest]", heads, rows).unless_empty()
}

/// `1.27 [1.20, 1.31] ms`.
fn range(found: &Option<MedianRange>, unit: &str) -> String {
    let Some(MedianRange { median, min, max }) = found else { return "–".to_owned() };
    let (divisor, name) = if unit == "%" { (0.01, unit) } else { number::scale(unit, *median) };
    let decimals = usize::from(median / divisor < 10.0) + usize::from(unit != "%");
    let [median, min, max] = [median, min, max].map(|value| format!("{:.decimals$}", value / divisor));
    format!("{median} [{min}, {max}] {name}")
}

fn limited_agent(agent: &AgentFinding) -> String {
    let Some((limit, most)) = agent.limits.iter().max_by_key(|(_, count)| **count) else { return String::new() };
    let all = agent.limits.values().sum::<usize>();
    let word = limit_word(*limit);
    if *most == all { word } else { format!("{word} ({most}/{all})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::analyze;
    use fixtures as example;

    fn first(findings: &Findings) -> Table {
        super::table(findings, &findings.tables[0])
    }

    #[test]
    fn has_sample_mean_and_standard_deviation() {
        let (run, records) = example::threads();
        let findings = analyze(&run, &records);
        insta::assert_snapshot!(first(&findings).text(), @"
        Valid responses per second
        threads | cpus | n | sample mean, k/s | sample standard deviation, k/s | 95 % interval, k/s | limited by
        1 | 1 | 8 | 19.71 | 0.13 | 19.48 to 19.94 | server
        2 | 2 | 8 | 37.31 | 0.56 | 36.84 to 37.78 | server
        4 | 4 | 8 | 66.42 | 1.24 | 65.38 to 67.46 | server
        8 | 8 | 8 | 104.56 | 1.72 | 103.12 to 105.99 | server
        16 | 16 | 8 | 127.38 | 1.53 | 125.88 to 128.88 | server
        24 | 24 | 8 | 125.39 | 1.21 | 123.91 to 126.87 | server
        32 | 24 of 32 | 8 | 114.25 | 1.87 | 112.69 to 115.82 | server
        40 | 24 of 40 | 8 | 102.91* | 1.63 | 101.55 to 104.28 | generator
        ");
        // The same, computed from the values of the trials.
        let values =
            findings.rows[1].trials.iter().map(|trial| trial.values.get("throughput").unwrap()).collect::<Vec<_>>();
        let mean = values.iter().sum::<f64>() / 8.0;
        let stddev = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 7.0).sqrt();
        let row = &first(&findings).rows[1];
        let cells = [&row[3].text, &row[4].text];
        assert_eq!(cells, [&format!("{:.2}", mean / 1e3), &format!("{:.2}", stddev / 1e3)]);
    }

    #[test]
    fn shows_metrics_side_by_side_with_gaps() {
        let (mut run, records) = example::volley();
        let metrics = ["throughput", "latency_p99", "handshake_mean"].map(str::to_owned).to_vec();
        run.plan.tables =
            vec![plan::Table { kind: TableKind::Metrics, metrics, title: Some("Side by side".to_owned()) }];
        insta::assert_snapshot!(first(&analyze(&run, &records)).text(), @"
        Side by side
        server | cores | clients | n | throughput | p99 | TLS handshake | limited by
        c-epoll | 1 | 40 | 8 | 69.8 ±1.8 k/s | 1.280 ±0.042 ms |  | server
        c-epoll | 1 | 80 | 8 | 72.6 ±1.9 k/s | 2.46 ±0.08 ms |  | server
        c-epoll | 2 | 40 | 8 | 111.7 ±3.0 k/s | 797 ±26 µs |  | server
        c-epoll | 2 | 80 | 8 | 114.7 ±1.0 k/s* | 1.548 ±0.016 ms* |  | generator
        go | 1 | 40 | 7 | 51.5 ±1.5 k/s | 1.751 ±0.063 ms |  | server
        go | 1 | 80 | 8 | 53.2 ±1.4 k/s | 3.35 ±0.13 ms |  | server
        go | 2 | 40 | 8 | 82.1 ±2.2 k/s | 1.088 ±0.036 ms |  | server
        go | 2 | 80 | 0 |  |  |  | failed
        rust-tokio | 1 | 40 | 8 | 55.9 ±3.6 k/s | 1.604 ±0.121 ms |  | server
        rust-tokio | 1 | 80 | 8 | 58.6 ±1.5 k/s | 3.05 ±0.10 ms |  | server
        rust-tokio | 2 | 40 | 8 | 91.2 ±2.4 k/s | 981 ±32 µs |  | server
        rust-tokio | 2 | 80 | 0 |  |  |  | unrunnable
        ");
        let statistics =
            plan::Table { kind: TableKind::Statistics, metrics: vec!["handshake_mean".to_owned()], title: None };
        run.plan.tables = vec![statistics];
        run.plan.points.truncate(1);
        insta::assert_snapshot!(first(&analyze(&run, &records[..20])).text(), @"
        Mean TLS handshake time
        design point | n | sample mean | sample standard deviation | 95 % interval | limited by
        c-epoll, cores 1, clients 40 | 1 |  |  |  | server
        ");
    }
}
