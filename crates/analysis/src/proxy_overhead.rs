//! Overhead of proxies, from trials with and without them in one block, so that most influences of the machine cancel.

use stats::pairs::Pairs;
use stats::ranking::BLOCKS_MIN;
use study::plan::Level;
use study::process_plan::{DIRECT, THROUGH};

use crate::findings::{Added, AddedMetric, Estimate, Findings, Row};
use crate::number::{count, quantity, scale};

/// Names of the compared metrics, in the order of the tables.
pub const COMPARED: [&str; 10] = [
    "latency_mean",
    "latency_p50",
    "latency_p90",
    "latency_p95",
    "latency_p99",
    "latency_p999",
    "throughput",
    "subject_cpu_per_request",
    "client_bytes_per_request",
    "subject_bytes_per_request",
];
const NAMED: [(&str, &str); 3] = [("latency_p50", "p50"), ("latency_p99", "p99"), ("latency_mean", "the mean")];

/// Computes the overhead at every point that shares blocks with its point at `direct`; empty without proxies.
pub fn added(findings: &Findings) -> Vec<Added> {
    let rest = findings.factors.iter().filter(|factor| factor.levels.len() > 1 && factor.name != THROUGH);
    let rest = rest.map(|factor| factor.name.clone()).collect::<Vec<_>>();
    let pair = |(index, row): (usize, &Row)| {
        let Level::Text(through) = row.factors.get(THROUGH)? else { return None };
        let mut factors = row.factors.clone();
        factors.insert(THROUGH.to_owned(), Level::Text(DIRECT.to_owned()));
        let direct = findings.rows.iter().position(|other| other.idle == row.idle && other.factors == factors);
        let direct = direct.filter(|direct| *direct != index)?;
        let against = &findings.rows[direct];
        let metrics = COMPARED.iter().filter_map(|name| metric(name, against, row, findings.level)).collect::<Vec<_>>();
        let place = if rest.is_empty() { String::new() } else { crate::label::label(&rest, &row.factors) };
        let through = through.clone();
        (!metrics.is_empty()).then(|| Added { row: index, direct, through, place, metrics, sentence: String::new() })
    };
    let mut all = findings.rows.iter().enumerate().filter_map(pair).collect::<Vec<_>>();
    // The metrics that sentences name form one family of tests; each other metric is a family of its own.
    let told = NAMED.map(|(name, _)| name);
    let others = COMPARED.iter().filter(|name| !told.contains(name)).map(std::slice::from_ref);
    for family in std::iter::once(&told[..]).chain(others) {
        let metrics = all.iter_mut().flat_map(|found| &mut found.metrics);
        let tested = metrics.filter(|metric| family.contains(&metric.metric.as_str())).collect::<Vec<_>>();
        let raw = tested.iter().map(|metric| metric.p_adjusted).collect::<Vec<_>>();
        for (metric, p) in tested.into_iter().zip(stats::adjust_p_values::holm_of_some(raw.into_iter())) {
            metric.p_adjusted = p;
            metric.shown = p.is_some_and(|p| p <= 1.0 - findings.level) && metric.blocks >= BLOCKS_MIN as u64;
        }
    }
    let named = all.iter().flat_map(|found| &found.metrics).filter(|metric| told.contains(&metric.metric.as_str()));
    let tests = named.filter(|metric| metric.p_adjusted.is_some()).count();
    all.iter_mut().for_each(|found| found.sentence = sentence(findings, found, tests));
    all
}

fn metric(name: &str, direct: &Row, row: &Row, level: f64) -> Option<AddedMetric> {
    let value = |row: &Row, block: u32| row.trials.iter().find(|trial| trial.block == block)?.known(name);
    let pair = |block: u32| Some((value(direct, block)?, value(row, block)?));
    let pairs = row.trials.iter().filter_map(|trial| pair(trial.block)).collect::<Vec<_>>();
    let differences = pairs.iter().map(|(direct, through)| through - direct).collect::<Vec<_>>();
    let is_finite = !differences.is_empty() && differences.iter().all(|difference| difference.is_finite());
    let differences = is_finite.then(|| Pairs::from_logs(differences));
    let mean = |side: fn(&(f64, f64)) -> f64| stats::interval::average(&pairs.iter().map(side).collect::<Vec<_>>());
    let (direct, through) = (mean(|pair| pair.0)?, mean(|pair| pair.1)?);
    let difference = differences.as_ref().and_then(|pairs| pairs.shift(level));
    let ratio = Pairs::new(pairs.iter().copied()).and_then(|ratios| ratios.typical(level));
    let p_adjusted = differences.map(|pairs| pairs.against(0.0).p_two_sided());
    let (metric, blocks) = (name.to_owned(), pairs.len() as u64);
    Some(AddedMetric { metric, direct, through, difference, ratio, p_adjusted, shown: false, blocks })
}

/// Formats a change with its interval: `+18.2 µs [17.1, 19.3]`. A quick run shows no interval.
pub fn change(estimate: &Estimate, unit: &str, quick: bool) -> String {
    change_per(estimate, unit, "", quick)
}

pub(crate) fn change_per(estimate: &Estimate, unit: &str, per: &str, quick: bool) -> String {
    let (divisor, name) = scale(unit, estimate.point.abs().max(estimate.half_width()));
    let [point, low, high] = [estimate.point, estimate.low, estimate.high].map(|value| value / divisor);
    let size = point.abs().max(high - low);
    let decimals = [100.0, 10.0, 1.0].iter().filter(|step| size < **step).count();
    let unit = if name.is_empty() { String::new() } else { format!(" {name}") };
    let ends = if quick { String::new() } else { format!(" [{low:.decimals$}, {high:.decimals$}]") };
    format!("{point:+.decimals$}{unit}{per}{ends}")
}

fn sentence(findings: &Findings, found: &Added, tests: usize) -> String {
    let place = if found.place.is_empty() { String::new() } else { format!("{}: ", found.place) };
    let blocks = NAMED.iter().filter_map(|(name, _)| found.metric(name)).map(|metric| metric.blocks).min().unwrap_or(0);
    let is_claimed = !findings.quick && blocks >= BLOCKS_MIN as u64;
    let unit = |name: &str| findings.metric_info(name).map_or("ns", |metric| metric.unit);
    let (mut adds, mut takes, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for (metric, word) in NAMED.iter().filter_map(|(name, word)| Some((found.metric(name)?, word))) {
        let unit = unit(&metric.metric);
        match &metric.difference {
            Some(difference) if metric.shown && difference.point >= 0.0 => {
                adds.push(format!("{} at {word}", change(difference, unit, !is_claimed).trim_start_matches('+')));
            }
            Some(difference) if metric.shown => takes.push(format!("{} at {word}", change(difference, unit, false))),
            // With many tests, an interval that excludes zero does not yet show a difference.
            Some(difference) if is_claimed => {
                let alone = difference.low > 0.0 || difference.high < 0.0;
                let among = if alone { format!(", not significant among {tests} tests") } else { String::new() };
                open.push(format!("at {word} ({}{among})", change(difference, unit, false)));
            }
            _ => adds.push(format!("{} at {word}", quantity(metric.through - metric.direct, unit))),
        }
    }
    let through = &found.through;
    let adds = (!adds.is_empty()).then(|| format!("{through} adds {}", adds.join(", ")));
    let takes = (!takes.is_empty()).then(|| format!("{through} changes latency by {}", takes.join(", ")));
    let open = (!open.is_empty()).then(|| format!("no difference shown through {through} {}", open.join(", ")));
    let parts = [adds, takes, open].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let sure = match (is_claimed, findings.quick) {
        (true, _) => count(blocks, "block"),
        (false, true) => format!("a quick run, {}", count(blocks, "block")),
        (false, false) => format!("{}, too few for a claim", count(blocks, "block")),
    };
    let row = &findings.rows[found.row];
    let cost = row.mean("proxy_cpu_per_request").map(|ns| quantity(ns, "ns"));
    let cost = cost.map(|cost| format!("; it uses {cost} of CPU time per request"));
    let held = row.mean("proxy_rss").map(|bytes| format!(" and {} of memory", quantity(bytes, "bytes")));
    let held = held.filter(|_| cost.is_some()).unwrap_or_default();
    format!("{place}{parts} ({sure}){}{held}.", cost.unwrap_or_default())
}

/// Formats a difference with its sign and unit: `+18.2 µs`.
pub fn signed(value: f64, unit: &str) -> String {
    format!("{}{}", if value < 0.0 { "" } else { "+" }, quantity(value, unit))
}

#[cfg(test)]
mod tests;
