//! What a candidate must not be against its baseline: `latency_p99 > 1.05 or throughput < 0.97`.
//!
//! ```text
//! fail-if   = condition { "or" condition }
//! condition = metric (">" | "<") bound
//! bound     = ratio | ("+" | "-") percentage
//! ```
//!
//! The bound is a ratio candidate/baseline: `> 1.05` is the same as `> +5%`. The sign points to where the metric is worse, so that a condition that could
//! only punish an improvement is refused.

use std::fmt;
use std::ops::RangeInclusive;

use config::nearest::{did_you_mean, suggestion};
use config::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::level::Level;
use crate::metric::{Better, METRICS, Metric};
use crate::objective::full_name;

/// Longest text of conditions, bytes.
const TEXT_MAX_BYTES: usize = 256;

/// Ratios that a bound may be.
const BOUNDS: RangeInclusive<f64> = 0.01..=100.0;

/// A baseline, and what its candidates must not be: the study is run until that is known, or its pairs are over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The factor whose levels are compared.
    pub of: String,
    /// Its level that is the baseline; each other one is a candidate.
    pub base: Level,
    /// What fails a candidate; `None`: nothing does, and the question is whether they differ in the metric of [`crate::plan::TrialRule`].
    pub fail_if: Option<FailIf>,
    /// What is made of a candidate of which nothing was shown.
    pub undecided: Undecided,
    /// A level that is the baseline once more, to see what this machine shows of a difference that is not there; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null: Option<Level>,
}

/// What is made of a candidate of which neither was shown: that it fails, or that it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// It passes: exit code 0.
    #[default]
    Pass,
    /// It fails: exit code 1.
    Fail,
    /// Neither: exit code 125, of which `git bisect run` makes a commit that cannot be tested.
    Skip,
}

/// What may be made of it, by its word.
pub const UNDECIDED: [(&str, Undecided); 3] =
    [("pass", Undecided::Pass), ("fail", Undecided::Fail), ("125", Undecided::Skip)];

impl Undecided {
    /// Its word: `pass`, `fail`, `125`.
    pub fn word(self) -> &'static str {
        UNDECIDED.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// Conditions of which each alone fails a candidate. Serialised as its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct FailIf {
    conditions: Vec<Condition>,
}

/// A ratio candidate/baseline beyond which a metric is worse than is allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// The metric.
    pub metric: &'static Metric,
    /// The ratio.
    pub bound: f64,
}

/// A mistake in the text of conditions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FailIfError {
    /// What is wrong, without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl FailIfError {
    fn new(message: impl Into<String>, hint: impl Into<Option<String>>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

const EXAMPLE: &str = "write `latency_p99 > 1.05 or throughput < 0.97`";

impl FailIf {
    /// The conditions, in the order they were written; one at least.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Reads conditions.
    ///
    /// # Errors
    /// Every mistake in them, in the order of the text.
    pub fn parse(text: &str) -> Result<Self, Vec<FailIfError>> {
        if text.len() > TEXT_MAX_BYTES {
            let message = format!("conditions are limited to {TEXT_MAX_BYTES} bytes, these have {}", text.len());
            return Err(vec![FailIfError::new(message, None)]);
        }
        let words = text.split_whitespace().collect::<Vec<_>>();
        let (mut conditions, mut errors) = (Vec::<Condition>::new(), Vec::new());
        for part in words.split(|word| word.eq_ignore_ascii_case("or")) {
            match condition(&part.join(" ")) {
                Ok(condition) if conditions.iter().any(|known| known.metric == condition.metric) => {
                    let message = format!("`{}` has two bounds", condition.metric.name);
                    errors.push(FailIfError::new(message, "keep the stricter one".to_owned()));
                }
                Ok(condition) => conditions.push(condition),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(Self { conditions }) } else { Err(errors) }
    }
}

fn condition(text: &str) -> Result<Condition, FailIfError> {
    let hint = || EXAMPLE.to_owned();
    if text.is_empty() {
        return Err(FailIfError::new("missing condition", hint()));
    }
    if text.split_whitespace().any(|word| word.eq_ignore_ascii_case("and")) {
        let hint = "join conditions with `or`: each alone fails the candidate".to_owned();
        return Err(FailIfError::new(format!("`and` in `{}`", shown(text)), hint));
    }
    let Some(at) = text.find(['<', '>']) else {
        return Err(FailIfError::new(format!("`{}` has no bound", shown(text)), hint()));
    };
    let (name, rest) = text.split_at(at);
    let (name, sign, bound) = (name.trim(), &rest[..1], rest[1..].trim());
    let metric = Metric::named(full_name(name).unwrap_or(name)).ok_or_else(|| {
        let names = || METRICS.iter().map(|metric| metric.name);
        let hint = did_you_mean(name, names()).unwrap_or_else(|| suggestion(name, names()));
        FailIfError::new(format!("unknown metric `{}`", shown(name)), hint)
    })?;
    let (worse, better, direction, example) = match metric.better {
        Better::Lower => (">", "<", "lower", "1.05"),
        Better::Higher => ("<", ">", "higher", "0.95"),
    };
    let written = || format!("write `{} {worse} {example}`", metric.name);
    if sign == better {
        let message =
            format!("`{}` is better when {direction}: `{}` would fail an improvement", metric.name, shown(text));
        return Err(FailIfError::new(message, written()));
    }
    let wrong = || FailIfError::new(format!("`{}` is not a ratio", shown(bound)), written());
    let bound = match bound.strip_prefix(['+', '-']) {
        Some(share) if bound.ends_with('%') => {
            let share = units::fraction(share).map_err(|_| wrong())?;
            if bound.starts_with('-') { 1.0 - share } else { 1.0 + share }
        }
        _ => bound.parse::<f64>().map_err(|_| wrong())?,
    };
    if !BOUNDS.contains(&bound) {
        let message =
            format!("the bound of `{}` is {bound}, expected {} to {}", metric.name, BOUNDS.start(), BOUNDS.end());
        return Err(FailIfError::new(message, written()));
    }
    let is_improvement = if metric.better == Better::Lower { bound < 1.0 } else { bound > 1.0 };
    if is_improvement {
        let message = format!("`{}` would fail a candidate that is as good as its baseline", shown(text));
        return Err(FailIfError::new(message, written()));
    }
    Ok(Condition { metric, bound })
}

fn shown(text: &str) -> String {
    text.escape_debug().to_string()
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.metric.better == Better::Lower { '>' } else { '<' };
        write!(f, "{} {sign} {}", self.metric.name, self.bound)
    }
}

impl fmt::Display for FailIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions = self.conditions.iter().map(Condition::to_string).collect::<Vec<_>>();
        f.write_str(&conditions.join(" or "))
    }
}

impl From<FailIf> for String {
    fn from(conditions: FailIf) -> Self {
        conditions.to_string()
    }
}

impl TryFrom<String> for FailIf {
    type Error = FailIfError;

    fn try_from(text: String) -> Result<Self, FailIfError> {
        Self::parse(&text).map_err(|errors| errors.into_iter().next().unwrap_or_else(|| FailIfError::new(text, None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_read_and_print() {
        for (text, printed) in [
            ("latency_p99 > 1.05 or throughput < 0.97", "latency_p99 > 1.05 or throughput < 0.97"),
            ("p99>+5%", "latency_p99 > 1.05"),
            ("throughput < -3%  OR\tsubject_rss > 2", "throughput < 0.97 or subject_rss > 2"),
            ("subject_cpu_per_request > 1", "subject_cpu_per_request > 1"),
        ] {
            let read = FailIf::parse(text).unwrap();
            assert_eq!(read.to_string(), printed);
            assert_eq!(FailIf::parse(&read.to_string()), Ok(read));
        }
    }

    #[test]
    fn mistakes_are_named_all_at_once() {
        let said = |text: &str| {
            let errors = FailIf::parse(text).unwrap_err().into_iter();
            errors.map(|error| format!("{} ({})", error.message, error.hint.unwrap_or_default())).collect::<Vec<_>>()
        };
        assert_eq!(
            said("latncy_p99 > 1.05 or throughput > 1.1 or p50 > 0.9 or p90 > fast or"),
            [
                "unknown metric `latncy_p99` (did you mean `latency_p99`?)",
                "`throughput` is better when higher: `throughput > 1.1` would fail an improvement (write `throughput < 0.95`)",
                "`p50 > 0.9` would fail a candidate that is as good as its baseline (write `latency_p50 > 1.05`)",
                "`fast` is not a ratio (write `latency_p90 > 1.05`)",
                "missing condition (write `latency_p99 > 1.05 or throughput < 0.97`)",
            ]
        );
        assert_eq!(said("p99 > 1.1 or latency_p99 > 1.2"), ["`latency_p99` has two bounds (keep the stricter one)"]);
        assert_eq!(said("p99 > 1.1 and p50 > 1.1").len(), 1);
        assert!(said("p99 > 1e9")[0].starts_with("the bound of `latency_p99` is 1000000000, expected 0.01 to 100"));
        assert!(said("p99 > NaN")[0].contains("expected 0.01 to 100"));
        assert!(said(&"x".repeat(300))[0].contains("limited to 256 bytes"));
        assert_eq!(said("throughput")[0].split(" (").next(), Some("`throughput` has no bound"));
    }
}
