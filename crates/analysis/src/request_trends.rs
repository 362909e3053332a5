//! Trends over the requests of a trial, such as growth of latency, memory or a proxy's store. Each trial has one value,
//! the slope of its least-squares line, so intervals cover different processes ([`stats::growth_in_trials`]).

use stats::growth_in_trials::{self, Growth, Series, Shown};
use study::metric::OVER_REQUESTS;
use study::plan::{FigureKind, Plan};
use study::proxy_call_log::MemoryAt;
use study::record::{Measurement, ProxyUse, Record, SubjectUse};

use crate::findings::{Estimate, Findings, OverRequests, RequestPoint, RequestTrend as Trend};
use crate::{proxy_overhead, value};

/// Number of requests averaged per point. Waye 2017: "each point is the average of the 250 requests around it".
const CALLS_A_MEAN: usize = 250;
const POINTS: usize = 40;
/// Largest difference between the slopes of the two halves of a straight line, relative to its slope.
const BEND_SHARE: f64 = 0.5;
/// Maximum number of points of a series of calls. For a longer series, the calls per point double until it fits.
const POINTS_MAX: usize = 400;

/// Name and unit of each series that `[slopes]` or a figure requests.
fn wanted(plan: &Plan) -> impl Iterator<Item = (&'static str, &'static str)> {
    let drawn = |what: &str| {
        plan.figures.iter().any(|figure| match figure.kind {
            FigureKind::MemoryChart => ["proxy_rss", "proxy_store", "subject_rss"].contains(&what),
            FigureKind::ThroughputChart => ["proxy_time", "latency"].contains(&what),
            _ => false,
        })
    };
    let is_wanted = move |name: &str| plan.slopes.iter().any(|asked| asked == name) || drawn(name);
    OVER_REQUESTS.iter().filter(move |(name, ..)| is_wanted(name)).map(|&(what, unit, _)| (what, unit))
}

/// Computes the trends of one row. The row index is set once all rows are known.
pub(crate) fn of_row(plan: &Plan, records: &[&Record]) -> Vec<(OverRequests, Trials)> {
    wanted(plan).filter_map(|(what, unit)| one(what, unit, records, value::level(&plan.trials))).collect()
}

/// Judges the trends of all rows together and sorts them by series.
pub(crate) fn over_requests(findings: &Findings, mut all: Vec<(OverRequests, Trials)>) -> Vec<OverRequests> {
    let place = |what: &str| OVER_REQUESTS.iter().position(|(name, ..)| *name == what);
    all.sort_by_key(|(found, _)| (place(&found.what), found.row));
    let error = 1.0 - findings.level;
    let changes = all.iter().map(|(_, trials)| trials.changes.clone()).collect::<Vec<_>>();
    let growths = growth_in_trials::growth(&changes, error);
    let grows = |growth: &Growth| matches!(growth.shown, Shown::Grows | Shown::Shrinks);
    let bend = |trials: &Trials| {
        let changes = trials.halves.iter().map(|(first, second)| second - first).collect::<Vec<_>>();
        Some((growth_in_trials::p_value(&changes)?, stats::interval::average(&changes)?))
    };
    let bends = growths.iter().zip(&all).map(|(growth, (_, trials))| grows(growth).then(|| bend(trials)).flatten());
    let bends = bends.collect::<Vec<_>>();
    let adjusted = stats::adjust_p_values::holm_of_some(bends.iter().map(|bend| bend.map(|(p, _)| p)));
    let series = all.len();
    for ((((found, trials), growth), bend), p) in all.iter_mut().zip(&growths).zip(&bends).zip(adjusted) {
        let least = BEND_SHARE * found.slope_per_1000_mean.abs();
        let is_bent = bend.zip(p).is_some_and(|((_, change), p)| p <= error && change.abs() > least);
        found.p_adjusted = growth.change.map(|_| growth.p_change);
        found.shown = grows(growth);
        found.small = growth.is_small;
        found.trend = match growth.shown {
            Shown::Grows | Shown::Shrinks if is_bent => Trend::Bent,
            Shown::Grows | Shown::Shrinks => Trend::Line,
            Shown::Flat => Trend::Flat,
            Shown::Nothing => Trend::Unclear,
        };
        let (first, second) = trials.halves.iter().copied().unzip::<_, _, Vec<_>, Vec<_>>();
        let halves = stats::interval::average(&first).zip(stats::interval::average(&second));
        found.halves_per_1000 = halves.filter(|_| is_bent);
        found.sentence = sentence(findings, found, trials, series);
    }
    all.into_iter().map(|(found, _)| found).collect()
}

pub(crate) struct Trials {
    changes: Series,
    halves: Vec<(f64, f64)>,
    requests: f64,
    of: usize,
}

fn one(what: &str, unit: &str, records: &[&Record], level: f64) -> Option<(OverRequests, Trials)> {
    let measured = records.iter().filter(|record| record.measurement().is_some()).collect::<Vec<_>>();
    let trials = measured.iter().filter_map(|record| series(record, what)).filter(|series| series.len() > 1);
    let trials = trials.collect::<Vec<_>>();
    let per_1000 = |series: &[(f64, f64)]| stats::growth_in_trials::least_squares(series).map(|slope| slope * 1000.0);
    let slopes = trials.iter().filter_map(|series| per_1000(series)).collect::<Vec<_>>();
    let slope_per_1000_mean = stats::interval::average(&slopes)?;
    let ends = trials.iter().filter_map(|series| series.last()).map(|(requests, _)| *requests);
    let shortest = ends.fold(f64::INFINITY, f64::min);
    let requests_a_point = match what {
        "proxy_time" => {
            let mut calls = CALLS_A_MEAN;
            while shortest / calls as f64 > POINTS_MAX as f64 {
                calls *= 2;
            }
            calls as f64
        }
        // A bin that is empty in one trial has no point, so bins are at least as wide as the largest gap.
        "latency" => (shortest / POINTS as f64).max(largest_gap(&trials)),
        _ => shortest / POINTS as f64,
    };
    let halves = trials.iter().filter_map(|series| {
        let (first, second) = series.split_at(series.partition_point(|(requests, _)| *requests < shortest / 2.0));
        Some((per_1000(first)?, per_1000(second)?))
    });
    let is_state = matches!(what, "proxy_rss" | "subject_rss" | "proxy_store");
    let changes = Series::from_lines(&trials, growth_in_trials::FLAT_SHARE)?;
    let of_trials = Trials { changes, halves: halves.collect(), requests: shortest, of: measured.len() };
    let points = points(&trials, shortest, requests_a_point, level, is_state);
    let slope_per_1000 = stats::interval::mean(&slopes, level);
    let (what, unit) = (what.to_owned(), unit.to_owned());
    let unjudged = OverRequests::default();
    let found = OverRequests { what, unit, slope_per_1000, slope_per_1000_mean, requests_a_point, points, ..unjudged };
    Some((found, of_trials))
}

fn largest_gap(trials: &[Vec<(f64, f64)>]) -> f64 {
    let gaps = trials.iter().flat_map(|series| series.windows(2).map(|pair| pair[1].0 - pair[0].0));
    gaps.fold(0.0, f64::max)
}

/// Interpolates a series linearly at a number of requests. Beyond the ends, returns the first or last value.
fn value_at(series: &[(f64, f64)], requests: f64) -> Option<f64> {
    let behind = series.partition_point(|(at, _)| *at < requests);
    let (before, after) = (behind.checked_sub(1).and_then(|at| series.get(at)), series.get(behind));
    match (before, after) {
        (Some(before), Some(after)) if after.0 > before.0 => {
            Some(before.1 + (after.1 - before.1) * (requests - before.0) / (after.0 - before.0))
        }
        (before, after) => after.or(before).map(|(_, value)| *value),
    }
}

/// Means of bins in which every trial has a value. If `is_state`, interpolates empty bins, because a state persists.
fn points(trials: &[Vec<(f64, f64)>], shortest: f64, width: f64, level: f64, is_state: bool) -> Vec<RequestPoint> {
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
        for (place, (mean, (sum, of))) in means.iter_mut().zip(sums).enumerate() {
            let between = || value_at(series, (place as f64 + 0.5) * width).filter(|_| is_state);
            mean.extend(if of > 0 { Some(sum / f64::from(of)) } else { between() });
        }
    }
    let point = |(place, values): (usize, &Vec<f64>)| {
        let estimate = stats::interval::mean(values, level);
        let mean = stats::interval::average(values).filter(|_| values.len() == trials.len())?;
        let (low, high) = estimate.map(|estimate| (estimate.low, estimate.high)).unzip();
        Some(RequestPoint { requests: (place as f64 + 0.5) * width, mean, low, high })
    };
    means.iter().enumerate().filter_map(point).collect()
}

fn series(record: &Record, what: &str) -> Option<Vec<(f64, f64)>> {
    let measurement = record.measurement()?;
    match what {
        "latency" => Some(latency(measurement)),
        "proxy_time" => of_calls(record, |proxy| proxy.calls.as_deref().map(|calls| calls.own_ns.as_slice())),
        "proxy_store" => of_calls(record, |proxy| proxy.calls.as_deref().map(|calls| calls.store_bytes.as_slice())),
        "proxy_rss" => resident_by_calls(record)
            .or_else(|| resident(measurement, record.proxies.iter().map(|proxy| &proxy.used).collect())),
        "subject_rss" => resident(measurement, vec![&record.subject]),
        _ => None,
    }
}

fn latency(measurement: &Measurement) -> Vec<(f64, f64)> {
    let mut before = 0.0;
    let window = |window: &study::record::Window| {
        let midpoint = before + window.requests as f64 / 2.0;
        before += window.requests as f64;
        Some((midpoint, window.latency.mean()?))
    };
    value::whole_windows(measurement).iter().filter_map(window).collect()
}

fn of_calls(record: &Record, column: impl Fn(&ProxyUse) -> Option<&[u64]>) -> Option<Vec<(f64, f64)>> {
    let columns = record.proxies.iter().filter_map(column).filter(|column| !column.is_empty()).collect::<Vec<_>>();
    let shortest = columns.iter().map(|column| column.len()).min()?;
    let sum = |call: usize| columns.iter().map(|column| column[call] as f64).sum::<f64>();
    Some((0..shortest).map(|call| (call as f64 + 0.5, sum(call))).collect())
}

/// Sums the resident sets of all proxies by number of calls. All proxies see one client's calls in the same order.
fn resident_by_calls(record: &Record) -> Option<Vec<(f64, f64)>> {
    let looks =
        record.proxies.iter().map(|proxy| Some(&proxy.calls.as_deref()?.memory).filter(|looks| looks.len() > 1));
    let looks = looks.collect::<Option<Vec<_>>>()?;
    let (first, others) = looks.split_first()?;
    let sum = |look: &MemoryAt| {
        let latest = |looks: &&Vec<MemoryAt>| {
            let until = looks.partition_point(|other| other.calls <= look.calls);
            looks[until.saturating_sub(1)].rss_bytes
        };
        let rest = others.iter().map(latest).fold(look.rss_bytes, u64::saturating_add);
        (look.calls as f64, rest as f64)
    };
    Some(first.iter().map(sum).collect())
}

/// Number of responses at the time of each sample, with the total resident set of all processes, bytes.
fn resident(measurement: &Measurement, processes: Vec<&SubjectUse>) -> Option<Vec<(f64, f64)>> {
    let (first, others) = processes.split_first()?;
    let since = |used: &SubjectUse, at_ns: u64| at_ns.checked_sub(used.measured_from_ns);
    let points = first.samples.iter().filter_map(|sample| {
        let at_ns = since(first, sample.at_ns).filter(|at_ns| *at_ns <= measurement.duration_ns)?;
        // Processes are sampled one after another, so the sum uses the latest sample of each.
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

/// Estimates the number of responses in the first `at_ns` of measuring. Interpolates within a window.
pub(crate) fn answered(measurement: &Measurement, at_ns: u64) -> f64 {
    let window_ns = measurement.window_ns.max(1);
    let whole = usize::try_from(at_ns / window_ns).unwrap_or(usize::MAX).min(measurement.windows.len());
    let before = measurement.windows[..whole].iter().map(|window| window.requests as f64).sum::<f64>();
    let share = (at_ns % window_ns) as f64 / window_ns as f64;
    before + measurement.windows.get(whole).map_or(0.0, |window| window.requests as f64 * share)
}

fn sentence(findings: &Findings, found: &OverRequests, trials: &Trials, series: usize) -> String {
    const PER: &str = " per 1,000 requests";
    let label = &findings.rows[found.row].label;
    let what = match found.what.as_str() {
        "latency" => "latency",
        "proxy_time" => "the proxy's self time",
        "proxy_rss" => "the proxy's resident set",
        "proxy_store" => "the content of the proxy's store",
        _ => "the server's resident set",
    };
    let change = |slope: &Estimate, quick| proxy_overhead::change_per(slope, &found.unit, PER, quick);
    let word = |slope: &Estimate| if slope.point > 0.0 { "grows" } else { "shrinks" };
    let mean = Estimate { point: found.slope_per_1000_mean, low: 0.0, high: 0.0, level: findings.level, n: 1 };
    let (margin, requests) = (growth_in_trials::FLAT_SHARE * 100.0, trials.requests);
    let text = match (&found.slope_per_1000, found.trend, found.halves_per_1000) {
        (None, ..) if trials.of > 1 => format!(
            "unclear whether {what} grows: only 1 of {} trials is long enough; use more requests per trial",
            trials.of
        ),
        (None, ..) => format!("{what} {}, from one trial", change(&mean, true)),
        (Some(slope), ..) if findings.quick => format!("{what} {}, in a quick run", change(slope, true)),
        (Some(slope), Trend::Flat, _) => {
            format!("{what} is flat, within ±{margin:.0} % over {requests:.0} requests: {}", change(slope, false))
        }
        (Some(slope), Trend::Unclear, _) => {
            let alone = slope.low > 0.0 || slope.high < 0.0;
            let among = if alone { format!(", not significant among {series} series") } else { String::new() };
            let over = if requests >= 1.0 { format!(" over {requests:.0} requests") } else { String::new() };
            format!("unclear whether {what} grows{over}: {}{among}", change(slope, false))
        }
        (Some(slope), Trend::Bent, Some(halves)) => {
            let [first, second] = [halves.0, halves.1].map(|point| change(&Estimate { point, ..*slope }, true));
            format!(
                "{what} {}, but not linearly: {first} in the first half of {requests:.0} requests and {second} in \
                 the second, so its course beyond them is unclear",
                word(slope)
            )
        }
        (Some(slope), Trend::Line | Trend::Bent, _) => {
            let small = format!(", by less than {margin:.0} % over {requests:.0} requests");
            let small = if found.small { small.as_str() } else { "" };
            format!("{what} {}{small}: {}", word(slope), change(slope, false))
        }
    };
    format!("{label}: {text}")
}

#[cfg(test)]
mod tests;
