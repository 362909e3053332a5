//! Tables that a study requests, and tables of searches, misses, operations and generators.

use analysis::enum_words_and_lists::{capitalised, limit_word, serde_name};
use analysis::failed_requests::count_and_share;
use analysis::findings::{
    AgentFinding, Findings, MedianRange, OperationFinding, OverTrials, Row, RowOperations, SearchEnd,
};
use analysis::number::{self, drawable};
use study::plan::{self, TableKind};
use study::record::Purpose;

use super::cells::{cell, limited_by, of_trials, point_columns};
use crate::document::{Columns, Head, Room, Table};
use crate::figures::metric_of;

pub(crate) fn table(findings: &Findings, table: &plan::Table) -> Table {
    let columns = point_columns(findings, &findings.rows, |row| row);
    let points = columns.table.heads.len();
    let columns =
        table.metrics.iter().fold(columns.number("n", |row| row.n.to_string()), |columns, metric| match table.kind {
            TableKind::Statistics => statistics(findings, metric, columns),
            TableKind::Metrics => columns.number(study::Metric::heading_of(metric), |row| cell(findings, row, metric)),
        });
    let limit = |row: &Row| if row.n == 0 { row.state.word().to_owned() } else { limited_by(row) };
    let columns = columns.text("limited by", |row| limit(row));
    let texts = || table.metrics.iter().map(|metric| metric_of(metric).1).collect::<Vec<_>>();
    let mut shown = columns.titled(table.title.clone().unwrap_or_else(|| capitalised(&texts().join(", "))));
    // Narrow terminals omit numbers from the end, except the number of trials, the first metric and the limit.
    let last = shown.heads.len() - 1;
    shown.heads.iter_mut().take(last).skip(points + 2).for_each(|head| head.room = Room::Drop);
    shown
}

/// Adds the sample mean, standard deviation and interval of a metric, in one unit that the heads name.
fn statistics<'a>(findings: &Findings, metric: &str, columns: Columns<&'a Row>) -> Columns<&'a Row> {
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
        let estimate = found(row).estimate?;
        Some(format!("{} to {}", shown(Some(estimate.low))?, shown(Some(estimate.high))?))
    };
    let level = if findings.quick { "quick run's".to_owned() } else { number::percent(findings.level) };
    columns
        .column(head("sample mean"), |row| mean(row))
        .column(head("sample standard deviation"), |row| shown(found(row).stddev).unwrap_or_default())
        .column(head(&format!("{level} interval")), |row| interval(row).unwrap_or_default())
}

pub(crate) fn searches(findings: &Findings) -> Option<Table> {
    let objective = &findings.searches().next()?.1.objective;
    let same = findings.searches().all(|(_, search)| search.objective == *objective);
    let end = |end: Option<SearchEnd>, missing: &Option<String>| match (end, missing) {
        (Some(end), _) if end.confirmed => number::quantity(end.rate_per_s, "1/s"),
        (Some(end), _) => format!("{} (not confirmed)", number::quantity(end.rate_per_s, "1/s")),
        (None, Some(why)) => why.clone(),
        (None, None) => "unknown".to_owned(),
    };
    let columns = Columns::of(findings.searches())
        .text("design point", |(row, _)| row.label.as_str())
        .number("holds", |(_, search)| end(search.low, &search.no_low))
        .number("fails at", |(_, search)| end(search.high, &search.no_high))
        .when(!same, |columns| columns.text("objective", |(_, search)| search.objective.as_str()))
        .number("trials", |(_, search)| search.trials.to_string())
        .text("stop reason", |(_, search)| search.ended.as_str());
    let of_all = if same { format!(" at which {objective}") } else { String::new() };
    Some(columns.plain(format!("The highest rate{of_all}")))
}

pub(crate) fn search_steps(findings: &Findings) -> impl Iterator<Item = (String, Table)> {
    let rate = |rate_per_s| number::quantity(rate_per_s, "1/s");
    findings.searches().map(move |(row, search)| {
        let columns = Columns::of(&search.steps)
            .number("trial", |step| step.order.to_string())
            .text("for", |step| serde_name(step.purpose))
            .number("offered", |step| step.rate_per_s.map_or("a closed loop".to_owned(), rate))
            .text("verdict", |step| if step.purpose == Purpose::Pilot { "" } else { step.verdict.text() })
            .text("because", |step| step.why.as_str());
        (format!("Steps of the search: {}", row.label), columns.plain(""))
    })
}

pub(crate) fn miss_causes(findings: &Findings) -> Option<Table> {
    let causes = study::METRICS.iter().filter_map(|metric| Some((metric.name, metric.name.strip_prefix("miss_")?)));
    let mean = |row: &Row, metric: &str| row.mean(metric).filter(|mean| drawable(*mean));
    let share = |row: &Row, metric: &str| {
        let found = mean(row, metric)?;
        let found = if metric == HIT_RATIO { 1.0 - found } else { found };
        let half = row.estimate(metric).map(|estimate| estimate.half_width()).filter(|half| drawable(*half));
        let half = half.map_or(String::new(), |half| format!(" ±{:.2}", half * 100.0));
        Some(format!("{:.2}{half}", found * 100.0))
    };
    let rows = findings.rows.iter().filter(|row| mean(row, HIT_RATIO).is_some());
    let columns = Columns::of(rows).text("design point", |row| row.label.as_str());
    let columns = [(HIT_RATIO, "misses")].into_iter().chain(causes).fold(columns, |columns, (metric, cause)| {
        columns.number(cause, |row| share(row, metric).unwrap_or_else(|| "-".to_owned()))
    });
    columns.plain("Why GETs missed, % of GETs").unless_empty()
}

const HIT_RATIO: &str = "hit_ratio";

pub(crate) fn operations(findings: &Findings) -> Option<Table> {
    let all = || findings.operations.iter().flat_map(|found| found.operations.iter().map(move |one| (found, one)));
    let has_first_byte = all().any(|(_, one)| one.first_byte_p50.mean.is_some());
    let has_stages = all().any(|(_, one)| one.rate_per_s.is_some());
    let noun = if all().all(|(_, one)| one.rate_per_s.is_some()) { "stage" } else { "operation" };
    let label = |row: usize| findings.rows.get(row).map_or_else(String::new, |row| row.label.clone());
    let is_alone = |row: usize| findings.operations.iter().filter(|found| found.row == row).count() == 1;
    let name = |found: &RowOperations, operation: &OperationFinding| match &found.journey {
        Some(journey) if !is_alone(found.row) => format!("{journey}: {}", operation.name),
        _ => operation.name.clone(),
    };
    let rate =
        |one: &OperationFinding| one.rate_per_s.as_ref().map_or_else(String::new, |rate| over_trials(rate, "1/s"));
    let columns = Columns::of(all())
        .text("design point", |(found, _)| label(found.row))
        .text(noun, |(found, one)| name(found, one))
        .number("calls", |(_, one)| one.requests.to_string())
        .number("errors", |(_, one)| count_and_share(one.errors, one.requests))
        .when(has_stages, |columns| columns.number("rate", |(_, one)| rate(one)))
        .number("mean", |(_, one)| over_trials(&one.latency_mean, "ns"))
        .number("p50", |(_, one)| over_trials(&one.latency_p50, "ns"))
        .number("p99", |(_, one)| over_trials(&one.latency_p99, "ns"))
        .when(has_first_byte, |columns| {
            columns.number("first byte, p50", |(_, one)| over_trials(&one.first_byte_p50, "ns"))
        });
    columns.plain(format!("Latency by {noun}")).unless_empty()
}

fn over_trials(found: &OverTrials, unit: &str) -> String {
    let mean = || found.mean.map(|mean| number::quantity(mean, unit));
    let estimate = found.estimate.as_ref().map(|estimate| number::estimate(estimate, unit));
    estimate.or_else(mean).unwrap_or_else(|| "not enough".to_owned())
}

/// Creates a table with a line per generator and row; `None` if every load came from one machine.
pub(crate) fn generators(f: &Findings) -> Option<Table> {
    let limit = |agent: &AgentFinding| {
        let (limit, most) = agent.limits.iter().max_by_key(|(_, count)| **count)?;
        Some(of_trials(limit_word(*limit), *most, &agent.limits))
    };
    let columns = Columns::of(f.all_rows().flat_map(|row| row.agents.iter().map(move |agent| (row, agent))))
        .text("design point", |(row, _)| row.label.as_str())
        .text("generator", |(_, agent)| agent.node.as_str())
        .number("p50", |(_, agent)| range(&agent.latency_p50_ns, "ns"))
        .number("p99", |(_, agent)| range(&agent.latency_p99_ns, "ns"))
        .number("rate", |(_, agent)| range(&agent.rate_per_s, "1/s"))
        .number("share of requests", |(_, agent)| range(&agent.share, "%"))
        .number("busy", |(_, agent)| range(&agent.busy, "%"))
        .text("limited by", |(_, agent)| limit(agent).unwrap_or_default());
    columns.plain("Generators, median over trials [least, largest]").unless_empty()
}

fn range(found: &Option<MedianRange>, unit: &str) -> String {
    let Some(MedianRange { median, min, max }) = found else { return "–".to_owned() };
    let (divisor, name) = if unit == "%" { (0.01, unit) } else { number::scale(unit, *median) };
    let decimals = usize::from(median / divisor < 10.0) + usize::from(unit != "%");
    let [median, min, max] = [median, min, max].map(|value| format!("{:.decimals$}", value / divisor));
    format!("{median} [{min}, {max}] {name}")
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
        insta::assert_snapshot!(search_steps(&findings).next().unwrap().1.text(), @r"
        
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
