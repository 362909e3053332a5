//! What a middle adds: trials through it beside those at `direct` of the same block.
//!
//! The two trials of a block had the same machine a moment apart, so what the machine does to both cancels: the difference is told far more
//! sharply than the two sides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use study::middle::{DIRECT, THROUGH};
use study::plan::Level;

use crate::findings::{Estimate, Findings, Row};
use crate::number::{quantity, scale};
use crate::table::Sheet;

/// What is compared, in the order of the tables.
const COMPARED: [&str; 10] = [
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
/// What a sentence names.
const NAMED: [(&str, &str); 3] = [("latency_p50", "p50"), ("latency_p99", "p99"), ("latency_mean", "the mean")];

/// What the requests of one design point pay for passing middles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Added {
    /// Index of its row among [`Findings::rows`].
    pub row: usize,
    /// Index of the row at `direct` that it is held against.
    pub direct: usize,
    /// The middles, as the study names them.
    pub through: String,
    /// Levels of the other factors, `clients 50`; empty: there are none that vary.
    pub place: String,
    /// By metric.
    pub metrics: Vec<AddedMetric>,
    /// What it comes to.
    pub sentence: String,
}

/// One metric of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddedMetric {
    /// Its name.
    pub metric: String,
    /// Mean at `direct`, over the blocks that have both.
    pub direct: f64,
    /// Mean through the middles, over the same blocks.
    pub through: f64,
    /// Through less direct, over blocks, with Student's t interval of pairs; `None` below two blocks.
    pub difference: Option<Estimate>,
    /// Through over direct: mean of the logarithms of the ratios of blocks, with its interval; `None` where a value is not above zero.
    pub ratio: Option<Estimate>,
    /// Probability of a difference as large if there were none, adjusted for all points held against `direct` in all metrics (Holm); `None`
    /// below two blocks.
    pub p_adjusted: Option<f64>,
    /// Whether a difference is shown.
    pub shown: bool,
    /// Blocks that have both.
    pub blocks: u64,
}

impl Added {
    /// What is known of a metric.
    pub fn metric(&self, name: &str) -> Option<&AddedMetric> {
        self.metrics.iter().find(|metric| metric.metric == name)
    }
}

/// Every point through middles that has trials in blocks with one at `direct`.
pub(crate) fn added(findings: &Findings) -> Vec<Added> {
    let rest = findings.factors.iter().filter(|factor| factor.levels.len() > 1 && factor.name != THROUGH);
    let rest = rest.map(|factor| factor.name.clone()).collect::<Vec<_>>();
    let pair = |(index, row): (usize, &Row)| {
        let through = through(row).filter(|level| *level != DIRECT)?;
        let direct = findings.rows.iter().position(|other| is_direct_of(other, row))?;
        let against = &findings.rows[direct];
        let metrics = COMPARED.iter().filter_map(|name| metric(name, against, row, findings.level)).collect::<Vec<_>>();
        let place = if rest.is_empty() { String::new() } else { crate::row::label(&rest, &row.factors) };
        let through = through.to_owned();
        (!metrics.is_empty()).then(|| Added { row: index, direct, through, place, metrics, sentence: String::new() })
    };
    let mut all = findings.rows.iter().enumerate().filter_map(pair).collect::<Vec<_>>();
    // A sentence names several quantiles of a point, and there may be many points: one error for all.
    let tested = all.iter_mut().flat_map(|found| &mut found.metrics).filter(|metric| metric.p_adjusted.is_some());
    let mut tested = tested.collect::<Vec<_>>();
    let adjusted = stats::compare::holm(&tested.iter().filter_map(|metric| metric.p_adjusted).collect::<Vec<_>>());
    for (metric, p) in tested.iter_mut().zip(adjusted) {
        metric.p_adjusted = Some(p);
        metric.shown = p < 1.0 - findings.level;
    }
    for found in &mut all {
        found.sentence = sentence(findings, found);
    }
    all
}

fn through(row: &Row) -> Option<&str> {
    match row.factors.get(THROUGH) {
        Some(Level::Text(level)) => Some(level),
        _ => None,
    }
}

/// Whether `direct` is what `row` is held against: nothing differs but that no middle is passed.
fn is_direct_of(direct: &Row, row: &Row) -> bool {
    let rest = |row: &Row| {
        row.factors.iter().filter(|(name, _)| *name != THROUGH).map(|(n, l)| (n.clone(), l.clone())).collect::<Vec<_>>()
    };
    through(direct) == Some(DIRECT) && direct.idle == row.idle && rest(direct) == rest(row)
}

fn metric(name: &str, direct: &Row, row: &Row, level: f64) -> Option<AddedMetric> {
    let value = |row: &Row, block: u32| {
        row.trials.iter().find(|trial| trial.block == block).and_then(|trial| trial.known(name))
    };
    let pair = |block: u32| Some((value(direct, block)?, value(row, block)?));
    let pairs = row.trials.iter().filter_map(|trial| pair(trial.block)).collect::<Vec<_>>();
    let differences = pairs.iter().map(|(direct, through)| through - direct).collect::<Vec<_>>();
    let mean = |side: fn(&(f64, f64)) -> f64| stats::interval::average(&pairs.iter().map(side).collect::<Vec<_>>());
    Some(AddedMetric {
        metric: name.to_owned(),
        direct: mean(|pair| pair.0)?,
        through: mean(|pair| pair.1)?,
        difference: stats::interval::mean(&differences, level).map(Estimate::from),
        ratio: stats::compare::paired(&pairs).map(|ratio| ratio.ratio(level).into()),
        // Adjusted when all are there.
        p_adjusted: stats::growth::p_value(&differences),
        shown: false,
        blocks: pairs.len() as u64,
    })
}

/// A change with its interval, all in one unit: `+18.2 µs [17.1, 19.3]`; of a quick look without the interval.
pub(crate) fn change(estimate: &Estimate, unit: &str, quick: bool) -> String {
    change_per(estimate, unit, "", quick)
}

/// The same of something: `+0.1 µs per 1,000 requests [-0.2, 0.4]`.
pub(crate) fn change_per(estimate: &Estimate, unit: &str, per: &str, quick: bool) -> String {
    let (divisor, name) = scale(unit, estimate.point.abs().max(estimate.half_width()));
    let [point, low, high] = [estimate.point, estimate.low, estimate.high].map(|value| value / divisor);
    let decimals = match point.abs().max(high - low) {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let unit = if name.is_empty() { String::new() } else { format!(" {name}") };
    let ends = if quick { String::new() } else { format!(" [{low:.decimals$}, {high:.decimals$}]") };
    format!("{point:+.decimals$}{unit}{per}{ends}")
}

fn sentence(findings: &Findings, found: &Added) -> String {
    let place = if found.place.is_empty() { String::new() } else { format!("{}: ", found.place) };
    let part = |(name, word): &(&str, &str)| {
        let metric = found.metric(name)?;
        let unit = findings.metric_info(name).map_or("ns", |info| info.unit.as_str());
        Some(match (&metric.difference, metric.shown) {
            (Some(difference), true) => format!("{} at {word}", change(difference, unit, findings.quick)),
            (Some(difference), false) => {
                format!("no difference shown at {word} ({})", change(difference, unit, findings.quick))
            }
            (None, _) => {
                format!(
                    "{} at {word}, from one block, without an interval",
                    signed(metric.through - metric.direct, unit)
                )
            }
        })
    };
    let parts = NAMED.iter().filter_map(part).collect::<Vec<_>>();
    let row = &findings.rows[found.row];
    let mean = |name: &str| row.metrics.get(name).and_then(|metric| metric.mean);
    let cost =
        mean("middle_cpu_per_request").map(|ns| format!("; it costs {} of CPU time a request", quantity(ns, "ns")));
    let held = mean("middle_rss").map(|bytes| format!(" and {} of memory", quantity(bytes, "bytes")));
    format!(
        "{place}through {}: {}{}{}.",
        found.through,
        parts.join(", "),
        cost.clone().unwrap_or_default(),
        held.filter(|_| cost.is_some()).unwrap_or_default()
    )
}

fn signed(value: f64, unit: &str) -> String {
    format!("{}{}", if value < 0.0 { "" } else { "+" }, quantity(value, unit))
}

/// The sentences.
pub(crate) fn words(findings: &Findings) -> impl Iterator<Item = String> {
    findings.added.iter().map(|found| found.sentence.clone())
}

/// One table: what each point through middles adds, and what the middles use.
pub(crate) fn sheets(findings: &Findings) -> Vec<Sheet> {
    if findings.added.is_empty() {
        return Vec::new();
    }
    let compared = COMPARED.iter().filter(|name| {
        let in_all =
            ["latency_mean", "latency_p50", "latency_p99", "client_bytes_per_request", "subject_bytes_per_request"];
        in_all.contains(name) && findings.added.iter().any(|found| found.metric(name).is_some())
    });
    let compared = compared.copied().collect::<Vec<_>>();
    let placed = findings.added.iter().any(|found| !found.place.is_empty());
    let mut heads = vec![("through".to_owned(), false)];
    if placed {
        heads.push(("at".to_owned(), false));
    }
    heads.push(("p50 direct".to_owned(), true));
    heads.extend(
        compared.iter().map(|name| (format!("added {}", name.replace('_', " ").replace("latency ", "")), true)),
    );
    heads.extend(["middle CPU a request", "middle RSS", "blocks"].map(|head| (head.to_owned(), true)));
    let row = |found: &Added| {
        let mut cells = vec![found.through.clone()];
        if placed {
            cells.push(found.place.clone());
        }
        let missing = || "-".to_owned();
        cells.push(found.metric("latency_p50").map_or_else(missing, |metric| quantity(metric.direct, "ns")));
        cells.extend(compared.iter().map(|name| {
            let unit = findings.metric_info(name).map_or("ns", |info| info.unit.as_str());
            found.metric(name).map_or_else(missing, |metric| match (&metric.difference, metric.shown) {
                (Some(difference), true) => change(difference, unit, findings.quick),
                (Some(difference), false) => format!("none shown: {}", change(difference, unit, findings.quick)),
                (None, _) => signed(metric.through - metric.direct, unit),
            })
        }));
        let used = &findings.rows[found.row];
        for (name, unit) in [("middle_cpu_per_request", "ns"), ("middle_rss", "bytes")] {
            let shown = used.estimate(name).map(|estimate| crate::number::estimate(estimate, unit));
            let mean = used.metrics.get(name).and_then(|metric| metric.mean).map(|mean| quantity(mean, unit));
            cells.push(shown.filter(|_| !findings.quick).or(mean).unwrap_or_else(missing));
        }
        cells.push(found.metrics.iter().map(|metric| metric.blocks).max().unwrap_or(0).to_string());
        cells
    };
    let rows = findings.added.iter().map(row).collect();
    vec![Sheet { title: "What passing a middle adds, block by block".to_owned(), heads, rows }]
}

#[cfg(test)]
mod tests;
