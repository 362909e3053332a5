//! Limits that fail a candidate, such as `p99 > 1.05 or throughput < 0.97 or p99 > 5ms or errors > 0.1%`.
//! docs/reference/metrics.md describes the notation. Bounds on `errors`, the share of failed requests, are always
//! absolute, since baselines usually have no errors, and a ratio to 0 is undefined.

use std::fmt;
use std::ops::RangeInclusive;

use config::{Invalid, suggestion, units, word_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::level::Level;
use crate::metric::{Metric, share_text};

const TEXT_MAX_BYTES: usize = 256;

/// Metrics that a gate without conditions compares after the share of failed requests. The first one decides when the
/// comparison ends. The mean is missing because a few extreme requests move it more than a change to the server does.
pub const COMPARED: [&str; 5] = ["latency_p50", "throughput", "subject_cpu_per_request", "latency_p99", "subject_rss"];

const FACTORS: RangeInclusive<f64> = 0.01..=100.0;

/// A baseline, and limits for candidates. The study runs until each candidate is decided or all pairs are used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// Name of the factor whose levels are compared.
    pub of: String,
    /// The level that is the baseline; all others are candidates.
    pub base: Level,
    /// Conditions that fail a candidate; `None` reports differences in [`Gate::metrics`] instead.
    pub fail_if: Option<FailIf>,
    /// Metrics compared if there are no conditions. If empty, as in older stores, [`crate::plan::TrialRule`] names one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
    /// Share of requests, from 0 to 1, that may fail at a candidate in addition to the baseline's share.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub allow_errors: f64,
    /// Outcome of a candidate that remains undecided.
    pub undecided: Undecided,
    /// A level equal to the baseline, which shows how much results differ without a change; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null: Option<Level>,
}

/// Outcome of a candidate without evidence that it fails or passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// The candidate passes: exit code 0.
    #[default]
    Pass,
    /// The candidate fails: exit code 1.
    Fail,
    /// The candidate neither passes nor fails: exit code 125, for which `git bisect run` skips the commit.
    Skip,
}

/// Values of [`Undecided`] with their words in a study.
pub const UNDECIDED: &[(&str, Undecided)] =
    &[("pass", Undecided::Pass), ("fail", Undecided::Fail), ("125", Undecided::Skip)];

impl Undecided {
    /// The word in a study: `pass`, `fail` or `125`.
    pub fn word(self) -> &'static str {
        word_of(UNDECIDED, &self)
    }
}

/// Conditions, any of which fails a candidate. Serialized as a string in the notation of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct FailIf {
    /// The conditions in the order of the string, at least one.
    pub conditions: Vec<Condition>,
}

/// A limit on one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Metric that the limit applies to.
    pub metric: &'static Metric,
    /// Limit beyond which the metric fails a candidate, on the metric's worse side.
    pub bound: Bound,
}

/// The limit of a candidate's metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// This multiple of the baseline's value.
    Factor(f64),
    /// This value, in the unit of the metric.
    Absolute(f64),
    /// The baseline's share of failed requests plus this share.
    Excess(f64),
}

const EXAMPLE: &str = "write `p99 > 1.05 or throughput < 0.97`, or with a unit `p99 > 5ms`";

impl FailIf {
    /// Parses conditions. Fails with all errors, in the order of the string.
    pub fn parse(text: &str) -> Result<Self, Vec<Invalid>> {
        if text.len() > TEXT_MAX_BYTES {
            let message = format!("conditions are limited to {TEXT_MAX_BYTES} bytes, these have {}", text.len());
            return Err(vec![Invalid::new(message)]);
        }
        let words = text.split_whitespace().collect::<Vec<_>>();
        let (mut conditions, mut errors) = (Vec::<Condition>::new(), Vec::new());
        for part in words.split(|word| word.eq_ignore_ascii_case("or")) {
            match condition(&part.join(" ")) {
                Ok(condition) if conditions.iter().any(|known| known.is_same_kind(&condition)) => {
                    let message = format!("`{}` has two bounds of one kind", condition.metric.short_name());
                    errors.push(Invalid::new(message).hint("keep the stricter one"));
                }
                Ok(condition) => conditions.push(condition),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(Self { conditions }) } else { Err(errors) }
    }

    /// Parses conditions on a single load. Fails with all errors, including conditions that need a baseline or a run.
    pub fn parse_absolute(text: &str) -> Result<Self, Vec<Invalid>> {
        let read = Self::parse(text)?;
        let errors = read.conditions.iter().filter_map(|condition| {
            let metric = condition.metric;
            if metric.needs_run() {
                let message = format!("`{}` is not measured by a load of a running server", metric.short_name());
                let hint = "use `quintain run` or `quintain compare`, which start the server";
                return Some(Invalid::new(message).hint(hint));
            }
            let Bound::Factor(_) = condition.bound else { return None };
            let message = format!("`{condition}` is relative, and one load has no baseline");
            let hint = "write a value with its unit, such as `p99 > 5ms`; `quintain compare` compares two servers";
            Some(Invalid::new(message).hint(hint))
        });
        let errors = errors.collect::<Vec<_>>();
        if errors.is_empty() { Ok(read) } else { Err(errors) }
    }
}

fn condition(text: &str) -> Result<Condition, Invalid> {
    if text.is_empty() {
        return Err(Invalid::new("missing condition").hint(EXAMPLE));
    }
    if text.split_whitespace().any(|word| word.eq_ignore_ascii_case("and")) {
        let hint = "join conditions with `or`: each alone fails the candidate";
        return Err(Invalid::new(format!("`and` in `{}`", text.escape_debug())).hint(hint));
    }
    let Some(at) = text.find(['<', '>']) else {
        return Err(Invalid::new(format!("`{}` has no bound", text.escape_debug())).hint(EXAMPLE));
    };
    let (name, rest) = text.split_at(at);
    let (name, sign, bound) = (name.trim(), &rest[..1], rest[1..].trim());
    let metric = Metric::find(name).ok_or_else(|| {
        Invalid::new(format!("unknown metric `{}`", name.escape_debug())).hint(suggestion(name, Metric::names()))
    })?;
    let (worse, better, direction) = if metric.higher_is_better { ("<", ">", "higher") } else { (">", "<", "lower") };
    let written = || format!("write `{} {worse} {}`", metric.short_name(), examples(metric));
    if sign == better {
        let (name, text) = (metric.short_name(), text.escape_debug());
        let message = format!("`{name}` is better when {direction}: `{text}` would fail an improvement");
        return Err(Invalid::new(message).hint(written()));
    }
    let bound = read_bound(metric, bound).map_err(|message| Invalid::new(message).hint(written()))?;
    let is_better = |factor: f64| factor != 1.0 && (factor > 1.0) == metric.higher_is_better;
    if matches!(bound, Bound::Factor(factor) if is_better(factor)) {
        let message = format!("`{}` would fail a candidate that is as good as its baseline", text.escape_debug());
        return Err(Invalid::new(message).hint(written()));
    }
    Ok(Condition { metric, bound })
}

fn examples(metric: &Metric) -> String {
    let factor = if metric.higher_is_better { "0.95" } else { "1.05" };
    let percent = if metric.higher_is_better { "-5%" } else { "+5%" };
    let value = match metric.unit {
        _ if metric.is_error_share() => return "0.1%` (a share of all requests) or `errors > 0".to_owned(),
        "ns" => "5ms",
        "bytes" => "64MiB",
        "bytes/s" => "10MiB/s",
        "1/s" => "10k/s",
        _ if metric.is_share => "90%",
        _ => return format!("{factor}` or `{percent}` (relative to the baseline"),
    };
    format!("{factor}` or `{percent}` (relative to the baseline), or a value such as `{value}")
}

fn read_bound(metric: &Metric, text: &str) -> Result<Bound, String> {
    let name = metric.short_name();
    if metric.is_error_share() {
        let share = units::fraction(text).map_err(|wrong| format!("the bound of `{name}`: {wrong}"))?;
        return if share < 1.0 { Ok(Bound::Absolute(share)) } else { Err(format!("the bound of `{name}` is 100 %")) };
    }
    let relative = match text.strip_prefix(['+', '-']) {
        Some(share) if text.ends_with('%') => {
            let share = units::fraction(share).map_err(|wrong| format!("the bound of `{name}`: {wrong}"))?;
            Some(if text.starts_with('-') { 1.0 - share } else { 1.0 + share })
        }
        _ => text.strip_prefix(['x', '×']).unwrap_or(text).trim_start().parse::<f64>().ok(),
    };
    if let Some(factor) = relative {
        let (least, most) = FACTORS.into_inner();
        let wrong = || format!("the bound of `{name}` is {factor} times the baseline, expected {least} to {most}");
        return FACTORS.contains(&factor).then_some(Bound::Factor(factor)).ok_or_else(wrong);
    }
    if text.ends_with('%') && !metric.is_share {
        return Err(format!("`{}` may be relative or absolute", text.escape_debug()));
    }
    let Some(value) = metric.read_value(text) else {
        return Err(format!("the bound of `{name}` is `{}`, expected a factor", text.escape_debug()));
    };
    match value.map_err(|wrong| format!("the bound of `{name}`: {wrong}"))? {
        value if value > 0.0 => Ok(Bound::Absolute(value)),
        _ => Err(format!("the bound of `{name}` must be above 0")),
    }
}

impl Condition {
    fn is_same_kind(&self, other: &Self) -> bool {
        self.metric == other.metric && std::mem::discriminant(&self.bound) == std::mem::discriminant(&other.bound)
    }
}

impl Bound {
    /// The bound in the notation of a condition, such as `1.05`, `5ms` or `0.1%`.
    pub fn text(self, metric: &Metric) -> String {
        match self {
            Bound::Factor(factor) => factor.to_string(),
            Bound::Absolute(value) => metric.value_text(value),
            Bound::Excess(share) => format!("+{}", share_text(share)),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.metric.higher_is_better { '<' } else { '>' };
        write!(f, "{} {sign} {}", self.metric.short_name(), self.bound.text(self.metric))
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
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::parse(&text).map_err(|mut errors| errors.swap_remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_survive_printing_and_parsing() {
        for (text, printed) in [
            ("latency_p99 > 1.05 or throughput < 0.97", "p99 > 1.05 or throughput < 0.97"),
            ("p99>+5%", "p99 > 1.05"),
            ("p99 > x1.05", "p99 > 1.05"),
            ("throughput < -3%  OR\tsubject_rss > 2", "throughput < 0.97 or rss > 2"),
            ("subject_cpu_per_request > 1", "cpu > 1"),
            ("latency_p99 > 5ms or p99 > 1.05", "p99 > 5ms or p99 > 1.05"),
            ("errors > 0", "errors > 0%"),
            ("error_share > 0.1%", "errors > 0.1%"),
            ("error_share > 0.01", "errors > 1%"),
            ("hit_ratio < 90%", "hit_ratio < 90%"),
            ("hit_ratio < 0.97", "hit_ratio < 0.97"),
            (
                "rss > 64 MiB or throughput < 10k/s or transfer < 10MiB/s",
                "rss > 64MiB or throughput < 10000/s or transfer < 10MiB/s",
            ),
        ] {
            let read = FailIf::parse(text).unwrap();
            assert_eq!(read.to_string(), printed);
            assert_eq!(FailIf::parse(&read.to_string()), Ok(read));
        }
    }

    #[test]
    fn limits_of_one_load_are_absolute() {
        let texts = |text: &str| match FailIf::parse_absolute(text) {
            Ok(read) => vec![read.to_string()],
            Err(errors) => errors.into_iter().map(|error| error.message).collect(),
        };
        assert_eq!(texts("p99 > 5ms or errors > 0.1%"), ["p99 > 5ms or errors > 0.1%"]);
        assert_eq!(
            texts("p99 > 1.05 or rss > 64MiB or p50 > 1ms"),
            [
                "`p99 > 1.05` is relative, and one load has no baseline",
                "`rss` is not measured by a load of a running server"
            ]
        );
        assert_eq!(texts("p99"), ["`p99` has no bound"]);
    }

    #[test]
    fn bound_may_equal_the_baseline() {
        let one = FailIf::parse("p99 > 1").unwrap();
        assert_eq!(one.conditions[0].bound, Bound::Factor(1.0));
        assert_eq!(FailIf::parse("errors > 0").unwrap().conditions[0].bound, Bound::Absolute(0.0));
    }

    #[test]
    fn reports_all_errors_at_once() {
        let said = |text: &str| {
            let errors = FailIf::parse(text).unwrap_err().into_iter();
            errors.map(|error| format!("{} ({})", error.message, error.hint.unwrap_or_default())).collect::<Vec<_>>()
        };
        let latency = "1.05` or `+5%` (relative to the baseline), or a value such as `5ms`";
        assert_eq!(
            said("latncy_p99 > 1.05 or throughput > 1.1 or p50 > 0.9 or p90 > fast or"),
            [
                "unknown metric `latncy_p99` (did you mean `latency_p99`?)".to_owned(),
                "`throughput` is better when higher: `throughput > 1.1` would fail an improvement (write `throughput < 0.95` or `-5%` (relative to the baseline), or a value such as `10k/s`)"
                    .to_owned(),
                format!("`p50 > 0.9` would fail a candidate that is as good as its baseline (write `p50 > {latency})"),
                format!("the bound of `p90`: `fast` is not a number (write `p90 > {latency})"),
                format!("missing condition ({EXAMPLE})"),
            ]
        );
        assert_eq!(
            said("p99 > 1.1 or latency_p99 > 1.2"),
            ["`p99` has two bounds of one kind (keep the stricter one)"]
        );
        assert_eq!(said("p99 > 1.1 and p50 > 1.1").len(), 1);
        assert!(said("p99 > 1e9")[0].starts_with("the bound of `p99` is 1000000000 times the baseline, expected 0.01"));
        assert!(said("p99 > NaN")[0].contains("expected 0.01 to 100"));
        assert!(said("p99 > 5%")[0].starts_with("`5%` may be relative or absolute (write `p99 > 1.05` or `+5%`"));
        assert!(said("errors > x2")[0].contains("write `errors > 0.1%` (a share of all requests) or `errors > 0`"));
        assert!(said("p99 > 0ms")[0].starts_with("the bound of `p99` must be above 0"));
        assert!(said(&"x".repeat(300))[0].contains("limited to 256 bytes"));
        assert_eq!(said("throughput")[0].split(" (").next(), Some("`throughput` has no bound"));
    }
}
