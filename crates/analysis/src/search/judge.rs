//! Judges one trial by an objective. Of several conditions, the one whose value is worst relative to its bound decides.

use stats::search::Outcome;
use stats::{Bound, batch_means};
use study::Objective;
use study::objective::Condition;
use study::record::{Limit, Measurement, Window};

use crate::censored_latency::{self, Latency};
use crate::findings::SearchValue;
use crate::load_bottleneck::allowed_shortfall;
use crate::merge_histograms;
use crate::number::{percent, quantity, total};
use crate::value;

const LEVEL: f64 = 0.95;
const FIFTHS: usize = 5;
const GROWN: f64 = 2.0;
/// Largest reported distance from a bound: ln 1000, or a factor of 1,000.
const FAR: f64 = 6.907_755_278_982_137;

pub(crate) struct Judged {
    pub(crate) outcome: Outcome,
    pub(crate) why: String,
    pub(crate) values: Vec<SearchValue>,
}

/// Ends of an interval, if there is one.
type Ends = Option<(f64, f64)>;

struct Part {
    excess: f64,
    interval: Ends,
    why: String,
}

/// Judges a trial by its objective. An open loop must also achieve the offered rate without failures or a backlog.
pub(crate) fn judge(
    objective: &Objective,
    measurement: &Measurement,
    limit: Option<Limit>,
    rss_bytes: Option<u64>,
) -> Judged {
    let values = objective.conditions.iter().map(|condition| (condition, value(condition, measurement, rss_bytes)));
    let values = values.collect::<Vec<_>>();
    let of_objective = values.iter().filter_map(|(condition, value)| Some(part(condition, value.as_ref()?)));
    let parts = of_objective.chain(achieved(measurement)).chain(backlog(measurement)).collect::<Vec<_>>();
    let worst = parts.iter().max_by(|a, b| a.excess.total_cmp(&b.excess));
    let is_met = worst.is_some_and(|worst| worst.excess < 0.0);
    let missing = values.iter().find(|(_, value)| value.is_none()).filter(|_| is_met);
    // A met objective stays met if the generator was late, because lateness is part of the response time.
    let other = match limit {
        Some(Limit::Generator) if !is_met => Some("the generator was the bottleneck"),
        Some(Limit::Network) if !is_met => Some("the network was the bottleneck"),
        Some(Limit::Shared) if !is_met => Some("another process took CPU time"),
        _ => None,
    };
    let (outcome, why) = match worst {
        None => (Outcome::TooFew, "nothing was measured".to_owned()),
        Some(worst) if let Some(other) = other => (Outcome::Generator, format!("{}, but {other}", worst.why)),
        Some(_) if let Some((condition, _)) = missing => {
            let count = measurement.latency().count;
            (Outcome::TooFew, format!("too few responses for {}: {count}", condition.name()))
        }
        Some(worst) => {
            let ends = |pick: fn(&(f64, f64)) -> f64| {
                let of = |part: &Part| part.interval.as_ref().map_or(part.excess, pick);
                parts.iter().map(of).fold(f64::NEG_INFINITY, f64::max)
            };
            let interval = worst.interval.map(|_| (ends(|ends| ends.0), ends(|ends| ends.1)));
            (Outcome::Judged { excess: worst.excess, interval }, worst.why.clone())
        }
    };
    Judged { outcome, why, values: values.into_iter().filter_map(|(_, value)| value).collect() }
}

fn with_interval(condition: &Condition, value: f64, interval: Ends) -> SearchValue {
    let (metric, bound) = (condition.metric.name.to_owned(), condition.bound);
    let (low, high) = interval.unzip();
    SearchValue { metric, condition: condition.to_string(), bound, value, low, high }
}

/// Returns the value that a condition compares; `None` if there are too few responses or the value was not observed.
fn value(condition: &Condition, measurement: &Measurement, rss_bytes: Option<u64>) -> Option<SearchValue> {
    let windows = measurement.windows.as_slice();
    let found = |found: Result<batch_means::Batches, String>| {
        found.ok().map(|found| (found.estimate.low.max(0.0), found.estimate.high))
    };
    match condition.metric.name {
        "latency_mean" => {
            let sums =
                windows.iter().map(|window| (window.latency.sum, window.latency.count as f64)).collect::<Vec<_>>();
            let mean = censored_latency::mean(measurement).filter(|mean| mean.value.is_finite())?;
            bounded(condition, mean, measurement.latency().mean(), found(batch_means::ratio(&sums, LEVEL)))
        }
        "error_share" => {
            let errors = measurement.errors_total();
            let all = errors.saturating_add(measurement.requests) as f64;
            let point = value::error_share(measurement)?;
            let of = |window: &Window| (window.errors as f64, window.errors.saturating_add(window.requests) as f64);
            let interval = match errors {
                // Without failures in n requests, the 95 % bound on their share is 3/n (Hanley & Lippman-Hand 1983).
                0 if point > 0.0 => None,
                0 => Some((0.0, (3.0 / all).min(1.0))),
                _ => found(batch_means::ratio(&windows.iter().map(of).collect::<Vec<_>>(), LEVEL)),
            };
            Some(with_interval(condition, point, interval))
        }
        "subject_rss" => rss_bytes.map(|bytes| with_interval(condition, bytes as f64, None)),
        metric => {
            let q = value::quantile_of(metric)?;
            let latency = Latency::of(measurement)?;
            let point = latency.quantile(&latency.estimate(), q, LEVEL)?;
            let windows =
                windows.iter().map(|window| merge_histograms::from_record(&window.latency)).collect::<Option<Vec<_>>>();
            let answered = &latency.answered;
            let interval = windows.and_then(|windows| found(batch_means::quantile(&windows, answered, q, LEVEL)));
            bounded(condition, point, answered.quantile(q), interval)
        }
    }
}

/// Returns a latency, with its interval unless waiting requests changed it; `None` for a lower bound within the limit.
fn bounded(condition: &Condition, bound: Bound, answered: Option<f64>, interval: Ends) -> Option<SearchValue> {
    let is_open = bound.at_least && condition.holds(bound.value);
    let interval = interval.filter(|_| !censored_latency::is_moved(&bound, answered));
    (!is_open).then(|| with_interval(condition, bound.value, interval))
}

fn part(condition: &Condition, found: &SearchValue) -> Part {
    let excess = beyond(found.value, condition.bound);
    // A value equal to an inclusive bound has an excess of 0, which would count as failing.
    let excess = if condition.holds(found.value) { excess.min(-1e-12) } else { excess.max(0.0) };
    let ends =
        found.low.zip(found.high).map(|(low, high)| (beyond(low, condition.bound), beyond(high, condition.bound)));
    let interval = ends.map(|(low, high)| (low.min(excess), high.max(excess)));
    let why = match condition.metric.name {
        "error_share" => format!("errors {}", percent(found.value)),
        _ => format!("{} {}", condition.name(), quantity(found.value, condition.metric.unit)),
    };
    Part { excess, interval, why }
}

/// Natural logarithm of value divided by bound, limited to ±`FAR`.
fn beyond(value: f64, bound: f64) -> f64 {
    match (value > 0.0, bound > 0.0) {
        (false, _) => -FAR,
        (true, false) => FAR,
        (true, true) => (value / bound).ln().clamp(-FAR, FAR),
    }
}

/// Compares the missing share of the offered rate with the allowed share, with a margin for the randomness of a Poisson
/// schedule. The missing share of scheduled requests counts instead, without a margin, if it is smaller.
fn achieved(measurement: &Measurement) -> Option<Part> {
    let offered = measurement.offered_per_s? * measurement.duration_ns as f64 / 1e9;
    let offered = Some(offered).filter(|offered| offered.is_finite() && *offered > 0.0)?;
    let allowed = allowed_shortfall(offered) / offered;
    let answered = measurement.requests as f64;
    let promised = 1.0 - answered / offered;
    let failed = measurement.errors_total() as f64 + measurement.unsent as f64 + measurement.unfinished as f64;
    let wanted = 1.0 - answered / (answered + failed).max(1.0);
    let (missing, chance) = if wanted < promised { (wanted, 0.0) } else { (promised, 1.96 / offered.sqrt()) };
    let interval = Some((beyond(missing - chance, allowed), beyond(missing + chance, allowed)));
    let why = format!("{} of the offered rate achieved", percent((1.0 - missing).max(0.0)));
    Some(Part { excess: beyond(missing, allowed), interval, why })
}

/// Detects a backlog: latency rose from each fifth of the trial to the next (1 in 120 by chance) and at least doubled.
fn backlog(measurement: &Measurement) -> Option<Part> {
    let windows = value::whole_windows(measurement);
    let mean = |fifth: usize| {
        let of = &windows[fifth * windows.len() / FIFTHS..(fifth + 1) * windows.len() / FIFTHS];
        let sum = of.iter().map(|window| window.latency.sum).sum::<f64>();
        let count = total(of.iter().map(|window| window.latency.count));
        (count > 0).then(|| sum / count as f64).filter(|mean| mean.is_finite() && *mean > 0.0)
    };
    let means = (0..FIFTHS).map(mean).collect::<Option<Vec<_>>>()?;
    let rises = means.windows(2).all(|two| two[0] < two[1]);
    let (first, last) = (means[0], means[FIFTHS - 1]);
    let excess = beyond(last / first, GROWN);
    let why = format!("growing backlog: mean latency rose from {} to {}", quantity(first, "ns"), quantity(last, "ns"));
    (rises && excess >= 0.0).then_some(Part { excess, interval: Some((excess, excess)), why })
}
