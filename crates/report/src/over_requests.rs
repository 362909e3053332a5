//! What happens over the requests of a trial: does the latency, the memory or the store of a middle grow?
//!
//! In each trial a line is fitted through the series by least squares; its slope is one value of the trial, so the interval over trials is
//! an interval over fresh processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use study::metric::OVER_REQUESTS;
use study::plan::{FigureKind, Plan};
use study::record::{Measurement, MiddleUse, Record, SubjectUse};

use crate::findings::{Estimate, Findings, Row};
use crate::{added, value};

/// Calls that the time of a middle is averaged over (Waye 2017: "each point is the average of the 250 requests around it").
const CALLS_A_MEAN: usize = 250;
/// Points of every other series.
const POINTS: usize = 40;
/// Points of a series of calls at most; where there would be more, the means are over twice as many calls, and so on.
const POINTS_MAX: usize = 400;

/// One series of one design point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverRequests {
    /// Index of its row among [`Findings::rows`].
    pub row: usize,
    /// What it is, one of [`study::metric::OVER_REQUESTS`].
    pub what: String,
    /// Unit of its values.
    pub unit: String,
    /// How much it grows in 1,000 requests, mean over the slopes of the trials, with its interval; `None` below two trials.
    pub slope_per_1000: Option<Estimate>,
    /// The same without an interval.
    pub slope_per_1000_mean: f64,
    /// Whether it is shown to grow or to shrink.
    pub shown: bool,
    /// Requests that a point is the mean of.
    pub requests_a_point: f64,
    /// The series, mean over trials; as far as the shortest trial goes.
    pub points: Vec<RequestPoint>,
    /// What it comes to.
    pub sentence: String,
}

/// One point of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestPoint {
    /// Requests before it, from the start of measuring.
    pub requests: f64,
    /// Mean over trials.
    pub mean: f64,
    /// Lower end of its interval; `None` below two trials.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// What the study asks for, by `[slopes]` or a figure, of every row that has it.
pub(crate) fn over_requests(findings: &Findings, plan: &Plan, records: &[&Record]) -> Vec<OverRequests> {
    let drawn = |what: &str| {
        plan.figures.iter().any(|figure| match figure.kind {
            FigureKind::MemoryChart => ["middle_rss", "middle_store", "subject_rss"].contains(&what),
            FigureKind::ThroughputChart => ["middle_time", "latency"].contains(&what),
            _ => false,
        })
    };
    let wanted = OVER_REQUESTS.iter().filter(|(name, ..)| plan.slopes.iter().any(|asked| asked == name) || drawn(name));
    let all = wanted.flat_map(|&(what, unit, _)| {
        findings.rows.iter().enumerate().filter_map(move |(index, row)| one(findings, index, row, what, unit, records))
    });
    all.collect()
}

fn one(
    findings: &Findings,
    index: usize,
    row: &Row,
    what: &str,
    unit: &str,
    records: &[&Record],
) -> Option<OverRequests> {
    let of_row = records.iter().filter(|record| record.point == row.point && Some(record.idle) == row.idle);
    let trials = of_row.filter_map(|record| series(record, what)).filter(|series| series.len() > 1).collect::<Vec<_>>();
    let slopes = trials.iter().filter_map(|series| stats::slope::least_squares(series)).collect::<Vec<_>>();
    let slopes = slopes.into_iter().map(|slope| slope * 1000.0).collect::<Vec<_>>();
    let slope_per_1000_mean = stats::interval::average(&slopes)?;
    let slope_per_1000 = stats::interval::mean(&slopes, findings.level).map(Estimate::from);
    let shown = slope_per_1000.is_some_and(|slope| slope.low > 0.0 || slope.high < 0.0);
    let ends = trials.iter().filter_map(|series| series.last()).map(|(requests, _)| *requests);
    let shortest = ends.fold(f64::INFINITY, f64::min);
    let requests_a_point = match what {
        "middle_time" => {
            let mut calls = CALLS_A_MEAN;
            while shortest / calls as f64 > POINTS_MAX as f64 {
                calls *= 2;
            }
            calls as f64
        }
        _ => shortest / POINTS as f64,
    };
    let mut found = OverRequests {
        row: index,
        what: what.to_owned(),
        unit: unit.to_owned(),
        slope_per_1000,
        slope_per_1000_mean,
        shown,
        requests_a_point,
        points: points(&trials, shortest, requests_a_point, findings.level),
        sentence: String::new(),
    };
    found.sentence = sentence(findings, &found);
    Some(found)
}

/// The means of the bins that every trial has values in.
fn points(trials: &[Vec<(f64, f64)>], shortest: f64, width: f64, level: f64) -> Vec<RequestPoint> {
    if width <= 0.0 || !width.is_finite() {
        return Vec::new();
    }
    let count = (shortest / width).ceil().clamp(0.0, 2.0 * POINTS_MAX as f64) as usize;
    let mut means: Vec<Vec<f64>> = vec![Vec::new(); count];
    for series in trials {
        let mut sums = vec![(0.0, 0u32); count];
        for (requests, value) in series {
            if let Some(sum) = sums.get_mut((requests / width) as usize) {
                *sum = (sum.0 + value, sum.1 + 1);
            }
        }
        for (mean, (sum, of)) in means.iter_mut().zip(sums).filter(|(_, (_, of))| *of > 0) {
            mean.push(sum / f64::from(of));
        }
    }
    let point = |(place, values): (usize, &Vec<f64>)| {
        let estimate = stats::interval::mean(values, level);
        Some(RequestPoint {
            requests: (place as f64 + 0.5) * width,
            mean: stats::interval::average(values).filter(|_| values.len() == trials.len())?,
            low: estimate.map(|estimate| estimate.low),
            high: estimate.map(|estimate| estimate.high),
        })
    };
    means.iter().enumerate().filter_map(point).collect()
}

/// The series of one trial: requests from the start of measuring, and the value. `None` where the trial has none.
fn series(record: &Record, what: &str) -> Option<Vec<(f64, f64)>> {
    let measurement = record.measurement()?;
    match what {
        "latency" => Some(latency(measurement)),
        "middle_time" => of_calls(record, |middle| middle.calls.as_deref().map(|calls| calls.own_ns.as_slice())),
        "middle_store" => of_calls(record, |middle| middle.calls.as_deref().map(|calls| calls.store_bytes.as_slice())),
        "middle_rss" => resident(measurement, record.middles.iter().map(|middle| &middle.used).collect()),
        "subject_rss" => resident(measurement, vec![&record.subject]),
        _ => None,
    }
}

fn latency(measurement: &Measurement) -> Vec<(f64, f64)> {
    let mut before = 0.0;
    let window = |window: &study::record::Window| {
        let middle = before + window.requests as f64 / 2.0;
        before += window.requests as f64;
        (window.latency.count > 0).then(|| (middle, window.latency.sum / window.latency.count as f64))
    };
    value::whole_windows(measurement).iter().filter_map(window).collect()
}

/// Of the middles that tell it, summed call by call.
fn of_calls(record: &Record, column: impl Fn(&MiddleUse) -> Option<&[u64]>) -> Option<Vec<(f64, f64)>> {
    let columns = record.middles.iter().filter_map(column).filter(|column| !column.is_empty()).collect::<Vec<_>>();
    let shortest = columns.iter().map(|column| column.len()).min()?;
    let sum = |call: usize| columns.iter().map(|column| column[call] as f64).sum::<f64>();
    Some((0..shortest).map(|call| (call as f64 + 0.5, sum(call))).collect())
}

/// Of all `processes` together, each with the requests that had been answered when it was looked at.
fn resident(measurement: &Measurement, processes: Vec<&SubjectUse>) -> Option<Vec<(f64, f64)>> {
    let (first, others) = processes.split_first()?;
    let since = |used: &SubjectUse, at_ns: u64| at_ns.checked_sub(used.measured_from_ns);
    let points = first.samples.iter().filter_map(|sample| {
        let at_ns = since(first, sample.at_ns).filter(|at_ns| *at_ns <= measurement.duration_ns)?;
        // They are looked at one after another: the latest look at each counts.
        let latest = |used: &&SubjectUse| {
            let until = used.samples.iter().take_while(|other| {
                since(used, other.at_ns).is_none_or(|other_ns| other_ns <= at_ns + measurement.window_ns)
            });
            until.last().map(|other| other.rss_bytes)
        };
        let rest = others.iter().map(latest).sum::<Option<u64>>()?;
        Some((answered(measurement, at_ns), sample.rss_bytes.saturating_add(rest) as f64))
    });
    Some(points.collect())
}

/// Requests answered in the first so many ns of measuring, even within a window.
pub(crate) fn answered(measurement: &Measurement, at_ns: u64) -> f64 {
    let window_ns = measurement.window_ns.max(1);
    let whole = usize::try_from(at_ns / window_ns).unwrap_or(usize::MAX).min(measurement.windows.len());
    let before = measurement.windows[..whole].iter().map(|window| window.requests as f64).sum::<f64>();
    let share = (at_ns % window_ns) as f64 / window_ns as f64;
    before + measurement.windows.get(whole).map_or(0.0, |window| window.requests as f64 * share)
}

fn sentence(findings: &Findings, found: &OverRequests) -> String {
    const PER: &str = " per 1,000 requests";
    let label = &findings.rows[found.row].label;
    let what = match found.what.as_str() {
        "latency" => "latency",
        "middle_time" => "the middle's own time",
        "middle_rss" => "resident set of the middle",
        "middle_store" => "store of the middle",
        _ => "resident set of the subject",
    };
    let Some(slope) = &found.slope_per_1000 else {
        let slope = Estimate { point: found.slope_per_1000_mean, low: 0.0, high: 0.0, level: findings.level, n: 1 };
        return format!("{label}: {what} {}, from one trial", added::change_per(&slope, &found.unit, PER, true));
    };
    let word = match (found.shown, slope.point > 0.0) {
        (false, _) => "flat",
        (true, true) => "grows",
        (true, false) => "shrinks",
    };
    format!("{label}: {what} {word}: {}", added::change_per(slope, &found.unit, PER, findings.quick))
}

/// The sentences of what the study asks for.
pub(crate) fn words(findings: &Findings) -> impl Iterator<Item = String> {
    findings.over_requests.iter().map(|found| format!("{}.", found.sentence))
}

#[cfg(test)]
mod tests;
