//! Tables that a study requests, and tables of searches, misses, operations and generators.

use analysis::enum_words_and_lists::{capitalised, limit_word, serde_name};
use analysis::failed_requests::count_and_share;
use analysis::findings::{
    AgentFinding, Findings, MedianRange, OperationFinding, OverTrials, Row, RowOperations, SearchEnd, SearchFinding,
    SearchStep,
};
use analysis::number::{self, drawable};
use study::plan::{self, TableKind};
use study::record::Purpose;

use super::cells::{cell, limited_by, point_cells, point_heads};
use crate::document::{Cell, Head, Room, Table};
use crate::figures::metric_of;

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
    // Narrow terminals omit numbers from the end, except the number of trials, the first metric and the limit.
    let last = heads.len() - 1;
    heads.iter_mut().take(last).skip(points + 2).for_each(|head| head.room = Room::Drop);
    Table { title: title(table), heads, rows, below: Vec::new() }
}

type Column = (Head, Vec<String>);

fn column(head: Head, findings: &Findings, cell: impl Fn(&Row) -> String) -> Column {
    (head, findings.rows.iter().map(cell).collect())
}

fn title(table: &plan::Table) -> String {
    let texts = || table.metrics.iter().map(|metric| metric_of(metric).1).collect::<Vec<_>>();
    table.title.clone().unwrap_or_else(|| capitalised(&texts().join(", ")))
}

/// Columns with the sample mean, standard deviation and interval of a metric, in one unit that the heads name.
fn statistics(findings: &Findings, metric: &str) -> Vec<Column> {
    let unit = findings.unit(metric);
    let found = |row: &Row| row.metrics.get(metric).cloned().unwrap_or_default();
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    let means = findings.rows.iter().filter_map(|row| finite(found(row).mean));
    let largest = means.fold(0.0, |most: f64, mean| most.max(mean.abs()));
    let (divisor, unit) = number::scale(unit, largest);
    let spreads = findings.rows.iter().filter_map(|row| finite(found(row).stddev)).filter(|spread| *spread > 0.0);
    let least = spreads.fold(f64::INFINITY, f64::min) / divisor;
    // Decimals show two digits of the smallest deviation, within limits.
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
    let level = if findings.quick { "quick run's".to_owned() } else { number::percent(findings.level) };
    vec![
        column(head("sample mean"), findings, mean),
        column(head("sample standard deviation"), findings, |row| shown(found(row).stddev).unwrap_or_default()),
        column(head(&format!("{level} interval")), findings, interval),
    ]
}

pub(crate) fn searches(findings: &Findings) -> Option<Table> {
    let found = findings.searches().collect::<Vec<_>>();
    let (_, first) = found.first()?;
    let same = found.iter().all(|(_, search)| search.objective == first.objective);
    let end = |end: Option<SearchEnd>, missing: &Option<String>| match (end, missing) {
        (Some(end), _) if end.confirmed => number::quantity(end.rate_per_s, "1/s"),
        (Some(end), _) => format!("{} (not confirmed)", number::quantity(end.rate_per_s, "1/s")),
        (None, Some(why)) => why.clone(),
        (None, None) => "unknown".to_owned(),
    };
    let rows = found.iter().map(|(row, search)| {
        let mut cells = vec![row.label.clone(), end(search.low, &search.no_low), end(search.high, &search.no_high)];
        cells.extend((!same).then(|| search.objective.clone()));
        cells.extend([search.trials.to_string(), search.ended.clone()]);
        cells
    });
    let mut heads = vec![Head::text("design point"), Head::number("holds"), Head::number("fails at")];
    heads.extend((!same).then(|| Head::text("objective")));
    heads.extend([Head::number("trials"), Head::text("stop reason")]);
    let title =
        if same { format!("The highest rate at which {}", first.objective) } else { "The highest rate".to_owned() };
    Some(Table::plain(title, heads, rows))
}

pub(crate) fn search_steps(findings: &Findings) -> Vec<(String, Table)> {
    let table = |(row, search): (&Row, &SearchFinding)| {
        let line = |step: &SearchStep| {
            let offered = step.rate_per_s.map_or("a closed loop".to_owned(), |rate| number::quantity(rate, "1/s"));
            vec![
                step.order.to_string(),
                serde_name(step.purpose),
                offered,
                if step.purpose == Purpose::Pilot { String::new() } else { step.verdict.text().to_owned() },
                step.why.clone(),
            ]
        };
        let heads = [Head::number("trial"), Head::text("for"), Head::number("offered")];
        let heads = heads.into_iter().chain(["verdict", "because"].map(Head::text));
        (format!("Steps of the search: {}", row.label), Table::plain("", heads, search.steps.iter().map(line)))
    };
    findings.searches().map(table).collect()
}

pub(crate) fn miss_causes(findings: &Findings) -> Option<Table> {
    let causes = || study::METRICS.iter().filter_map(|metric| Some((metric.name, metric.name.strip_prefix("miss_")?)));
    let mean = |row: &Row, metric: &str| row.mean(metric).filter(|mean| drawable(*mean));
    let rows = findings.rows.iter().filter(|row| mean(row, "hit_ratio").is_some());
    let cells = |row: &Row| {
        let share = |found: f64, half: Option<f64>| match half {
            Some(half) => format!("{:.2} ±{:.2}", found * 100.0, half * 100.0),
            None => format!("{:.2}", found * 100.0),
        };
        let half =
            |metric: &str| row.estimate(metric).map(|estimate| estimate.half_width()).filter(|half| drawable(*half));
        let misses = mean(row, "hit_ratio").map(|ratio| share(1.0 - ratio, half("hit_ratio")));
        let causes = causes().map(|(metric, _)| mean(row, metric).map(|found| share(found, half(metric))));
        let cells = [misses].into_iter().chain(causes).map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        [row.label.clone()].into_iter().chain(cells).collect()
    };
    let numbers = ["misses"].into_iter().chain(causes().map(|(_, cause)| cause)).map(Head::number);
    let heads = [Head::text("design point")].into_iter().chain(numbers);
    Table::plain("Why GETs missed, % of GETs", heads, rows.map(cells)).unless_empty()
}

pub(crate) fn operations(findings: &Findings) -> Option<Table> {
    let all = || findings.operations.iter().flat_map(|found| found.operations.iter().map(move |one| (found, one)));
    let has_first_byte = all().any(|(_, one)| one.first_byte_p50.mean.is_some());
    let first_byte = has_first_byte.then_some("first byte, p50");
    let has_stages = all().any(|(_, one)| one.rate_per_s.is_some());
    let rate = has_stages.then_some("rate");
    let numbers = ["calls", "errors"].into_iter().chain(rate).chain(["mean", "p50", "p99"]).chain(first_byte);
    let numbers = numbers.map(Head::number);
    let name = if all().all(|(_, one)| one.rate_per_s.is_some()) { "stage" } else { "operation" };
    let heads = ["design point", name].map(Head::text).into_iter().chain(numbers);
    let label = |row: usize| findings.rows.get(row).map_or_else(String::new, |row| row.label.clone());
    let is_alone = |row: usize| findings.operations.iter().filter(|found| found.row == row).count() == 1;
    let line = |(found, operation): (&RowOperations, &OperationFinding)| {
        let latencies = [&operation.latency_mean, &operation.latency_p50, &operation.latency_p99];
        let latencies = latencies.into_iter().chain(has_first_byte.then_some(&operation.first_byte_p50));
        let rate = operation.rate_per_s.as_ref().map_or_else(String::new, |rate| over_trials(rate, "1/s"));
        let counts = [operation.requests.to_string(), count_and_share(operation.errors, operation.requests)];
        let name = match &found.journey {
            Some(journey) if !is_alone(found.row) => format!("{journey}: {}", operation.name),
            _ => operation.name.clone(),
        };
        let latencies = latencies.map(|latency| over_trials(latency, "ns"));
        let cells = [label(found.row), name].into_iter().chain(counts);
        cells.chain(has_stages.then_some(rate)).chain(latencies).collect()
    };
    Table::plain(format!("Latency by {name}"), heads, all().map(line)).unless_empty()
}

fn over_trials(found: &OverTrials, unit: &str) -> String {
    let mean = || found.mean.map(|mean| number::quantity(mean, unit));
    let estimate = found.estimate.as_ref().map(|estimate| number::estimate(estimate, unit));
    estimate.or_else(mean).unwrap_or_else(|| "not enough".to_owned())
}

/// Creates a table with a line per generator and row; `None` if every load came from one machine.
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
    use study::record::{CacheCounts, CacheMeasurement, MissCauses, Outcome};

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

    #[test]
    fn a_search_has_its_range_and_its_steps() {
        let (run, records) = example::capacity();
        let findings = analyze(&run, &records);
        insta::assert_snapshot!(searches(&findings).unwrap().text(), @r"
        The highest rate at which p99 < 5ms and errors < 0.1%
        design point | holds | fails at | trials | stop reason
        capacity | 64.1 k/s | 69.9 k/s | 12 | both ends confirmed
        ");
        insta::assert_snapshot!(search_steps(&findings)[0].1.text(), @r"
        
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
        // The study's own tables omit the capacity, which is not a design point.
        insta::assert_snapshot!(table(&findings, &findings.tables[0]).text(), @"
        P99 latency
        load | n | p99 | limited by
        20 | 12 | 338 ±7 µs | neither
        50 | 12 | 508 ±9 µs | neither (11/12)
        80 | 12 | 987 ±17 µs | neither
        ");
    }

    #[test]
    fn causes_add_up_to_the_misses() {
        let (run, mut records) = example::volley();
        assert_eq!(miss_causes(&analyze(&run, &records)), None, "no cache");
        for record in records.iter_mut().filter(|record| record.point == 1) {
            let Outcome::Measured(measurement) = &mut record.outcome else { continue };
            let causes = MissCauses { compulsory: 4, capacity: 6, invalidation: 3, expiry: 2, refused: 5 };
            let counts = CacheCounts { hits: 60, misses: 20, causes, ..CacheCounts::default() };
            measurement.cache = Some(Box::new(CacheMeasurement { counts, ..CacheMeasurement::default() }));
        }
        let table = miss_causes(&analyze(&run, &records)).unwrap();
        assert_eq!(table.rows.len(), 1);
        let cells = ["25.00 ±0.00", "5.00 ±0.00", "7.50 ±0.00", "3.75 ±0.00", "2.50 ±0.00", "6.25 ±0.00"];
        assert_eq!(table.rows[0][1..].iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>(), cells);
        assert_eq!(table.rows[0].len(), table.heads.len());
    }
}
