//! Limits on the results of one load (`quintain load --fail-if`).

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use study::gate::{Bound, Condition, FailIf};
use study::metric::Metric;
use study::record::{Measurement, Outcome, Record};

use crate::number;
use crate::value::{LOAD_LEVEL, values_and_bounds};

/// A condition of `--fail-if` with its outcome in one load. `quintain compare` repeats loads to limit false verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadLimit {
    /// The condition as written, such as `p99 > 5ms`.
    pub condition: String,
    /// Name of the metric in the condition.
    pub metric: String,
    /// Value in the metric's unit; `null` if it was not measured or there were too few responses.
    pub value: Option<f64>,
    /// Whether the value is a lower bound because requests were still waiting at the end.
    pub at_least: bool,
    /// Whether the value is within the limit, beyond it or unknown.
    pub outcome: LoadLimitOutcome,
}

/// Outcome of a condition in one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadLimitOutcome {
    /// The value is within the limit.
    Passes,
    /// The value is beyond the limit.
    Fails,
    /// The value is missing, or is a lower bound within the limit.
    Unknown,
}

/// Judges conditions by the values of one load. A relative condition has no baseline, so its outcome is unknown.
pub fn load_limits(measurement: &Measurement, fail_if: &FailIf) -> Vec<LoadLimit> {
    let record = Record { outcome: Outcome::Measured(measurement.clone()), ..Record::default() };
    let (values, bounds) = values_and_bounds(&record, LOAD_LEVEL);
    let judged = |Condition { metric, bound }: &Condition| {
        let value = values.get(metric.name);
        let at_least = bounds.contains(metric.name);
        let is_beyond = |value, limit| if metric.higher_is_better { value < limit } else { value > limit };
        let outcome = match (value, bound) {
            (Some(value), Bound::Absolute(limit)) if is_beyond(value, *limit) => LoadLimitOutcome::Fails,
            (Some(_), Bound::Absolute(_)) if !at_least => LoadLimitOutcome::Passes,
            _ => LoadLimitOutcome::Unknown,
        };
        let condition = Condition { metric, bound: *bound }.to_string();
        LoadLimit { condition, metric: metric.name.to_owned(), value, at_least, outcome }
    };
    fail_if.conditions.iter().map(judged).collect()
}

impl fmt::Display for LoadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metric = Metric::named(&self.metric);
        let noun = metric.map_or(self.metric.as_str(), |metric| metric.noun);
        let value = self.value.map(|value| match metric {
            Some(metric) if metric.is_share => number::percent(value),
            metric => number::quantity(value, metric.map_or("", |metric| metric.unit)),
        });
        let is = if self.at_least { "is at least" } else { "is" };
        let unknown = || "was not measured, or from too few responses".to_owned();
        let value = value.map_or_else(unknown, |value| format!("{is} {value}"));
        let verb = match self.outcome {
            LoadLimitOutcome::Passes => "passes",
            LoadLimitOutcome::Fails => "fails",
            LoadLimitOutcome::Unknown => "does not decide",
        };
        write!(f, "one load {verb} `{}`: {noun} {value}", self.condition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Vec<(LoadLimitOutcome, String)> {
        let (_, records) = fixtures::volley();
        let measurement = records.iter().find_map(Record::measurement).unwrap();
        let limits = load_limits(measurement, &FailIf::parse_absolute(text).unwrap());
        limits.into_iter().map(|limit| (limit.outcome, limit.to_string())).collect()
    }

    #[test]
    fn each_condition_has_an_outcome() {
        use LoadLimitOutcome::{Fails, Passes, Unknown};
        let found = judged("p99 > 1us or p50 > 1s or throughput < 1M/s or errors > 0 or handshake_mean > 1ms");
        let outcomes = found.iter().map(|(outcome, _)| *outcome).collect::<Vec<_>>();
        assert_eq!(outcomes, [Fails, Passes, Fails, Passes, Unknown]);
        assert!(found[0].1.starts_with("one load fails `p99 > 1us`: p99 latency is "), "{}", found[0].1);
        assert_eq!(found[3].1, "one load passes `errors > 0%`: fraction of failed requests is 0 %");
        assert_eq!(
            found[4].1,
            "one load does not decide `handshake_mean > 1ms`: mean TLS handshake time was not measured, or from too few \
             responses"
        );
    }

    #[test]
    fn lower_bound_within_the_limit_is_unknown() {
        let record = |bound| LoadLimit {
            condition: "p99 > 5ms".to_owned(),
            metric: "latency_p99".to_owned(),
            value: Some(3e6),
            at_least: bound,
            outcome: LoadLimitOutcome::Unknown,
        };
        assert_eq!(record(true).to_string(), "one load does not decide `p99 > 5ms`: p99 latency is at least 3.00 ms");
    }
}
