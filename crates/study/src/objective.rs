//! Objectives of a server, such as `p99 < 5ms and errors < 0.1%`, in which all conditions must hold.
//! docs/method/search.md lists the metrics. Throughput is rejected, because the offered rate must be achieved anyway,
//! and so is CPU time per request, because it need not rise with the rate.

use std::fmt;
use std::ops::Range;

use config::place::span_of;
use config::{Invalid, did_you_mean, suggestion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// Maximum length of an objective, bytes.
pub const OBJECTIVE_MAX_BYTES: usize = 256;

const NAMED: [&str; 8] = ["mean", "p50", "p90", "p95", "p99", "p99.9", "errors", "rss"];

const REFUSED: [(&str, &str); 3] = [
    ("throughput", "it rises with the offered rate; achieving the offered rate is always required"),
    ("subject_cpu_per_request", "it may not rise with the offered rate, so no highest rate meets it"),
    ("generator_cpu_per_request", "it describes the generator, not the server"),
];

/// Maximum time in a bound, ns, which is the upper end of the range of histograms.
const TIME_MAX_NS: u64 = 3_600_000_000_000;

/// An objective: one or more conditions, all of which must hold. Serialized as a string.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Objective {
    /// The conditions in the order of the string, at least one.
    pub conditions: Vec<Condition>,
}

/// A bound that a metric of a trial must meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Metric that the bound applies to.
    pub metric: &'static Metric,
    /// Whether a value equal to the bound meets the condition.
    pub or_equal: bool,
    /// The bound, in ns or bytes; for `errors`, a fraction from 0 to 1.
    pub bound: f64,
}

/// The byte range of an error in the string of an objective, and the error.
pub type Mistake = (Range<usize>, Invalid);

impl Condition {
    /// Whether `value`, in the unit of the bound, meets the condition.
    pub fn holds(&self, value: f64) -> bool {
        value < self.bound || (self.or_equal && value == self.bound)
    }

    /// Short name of the metric, such as `p99`.
    pub fn name(&self) -> &'static str {
        self.metric.short_name()
    }
}

impl Objective {
    /// Parses an objective. Fails with all errors, in the order of the string.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        if text.len() > OBJECTIVE_MAX_BYTES {
            let message =
                format!("an objective is limited to {OBJECTIVE_MAX_BYTES} bytes, this one has {}", text.len());
            return Err(vec![(0..text.len(), Invalid::new(message))]);
        }
        let (mut conditions, mut errors) = (Vec::<Condition>::new(), Vec::new());
        for part in parts(text) {
            match condition(part) {
                Ok(condition) if conditions.iter().any(|known| known.metric == condition.metric) => {
                    let message = format!("`{}` has two bounds", condition.name());
                    errors.push((part, Invalid::new(message).hint("keep the smaller one")));
                }
                Ok(condition) => conditions.push(condition),
                Err(error) => errors.push(error),
            }
        }
        let place = |(part, error): (&str, _)| (span_of(part, text), error);
        if errors.is_empty() { Ok(Self { conditions }) } else { Err(errors.into_iter().map(place).collect()) }
    }
}

fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    for word in text.split_whitespace().filter(|word| word.eq_ignore_ascii_case("and")) {
        let span = span_of(word, text);
        parts.push(text[begin..span.start].trim());
        begin = span.end;
    }
    parts.push(text[begin..].trim());
    parts
}

/// Parses a condition. Fails with the part that is invalid, and the error.
fn condition(part: &str) -> Result<Condition, (&str, Invalid)> {
    const EXAMPLE: &str = "an objective looks like `p99 < 5ms and errors < 0.1%`";
    if part.is_empty() {
        return Err((part, Invalid::new("missing condition").hint(EXAMPLE)));
    }
    if let Some(at) = part.find([',', '&', ';', '|']) {
        let wrong = &part[at..=at];
        let error = Invalid::new(format!("`{wrong}` cannot join conditions"));
        return Err((wrong, error.hint("write `and` between them")));
    }
    let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '!' | '≤' | '≥' | '≠');
    let Some(start) = part.find(is_sign) else {
        return Err((part, Invalid::new(format!("`{part}` has no bound")).hint(EXAMPLE)));
    };
    let (name, rest) = part.split_at(start);
    let written = rest.trim_start_matches(is_sign);
    let (name, sign, written) = (name.trim_end(), &rest[..rest.len() - written.len()], written.trim());
    let metric = metric(name).map_err(|error| (name, error))?;
    let (example, range, most) = bounds(metric);
    let or_equal = match sign {
        "<" => false,
        "<=" | "≤" => true,
        ">" | ">=" | "≥" => {
            let error = Invalid::new(format!("`{name}` is better when lower, so it takes no lower bound"));
            return Err((sign, error.hint("write `<`")));
        }
        _ => return Err((sign, Invalid::new(format!("`{sign}` is not a comparison")).hint("write `<` or `<=`"))),
    };
    if written.is_empty() {
        return Err((sign, Invalid::new(format!("`{name}` has no bound")).hint(example)));
    }
    let bound = metric.read_value(written).unwrap_or(Ok(0.0)).map_err(|wrong| {
        let needs_unit = metric.unit == "ns" && written.parse::<f64>().is_ok_and(|bound| bound >= 0.0);
        let hint = wrong.hint.clone().or(needs_unit.then(|| example.to_owned()));
        (written, Invalid { hint, ..wrong.of(&format!("the bound of `{name}`")) })
    })?;
    if bound > most {
        return Err((written, Invalid::new(format!("the bound of `{name}` is out of range: {range}"))));
    }
    if bound <= 0.0 && !(or_equal && metric.is_share) {
        let hint = metric.is_share.then(|| "use `errors <= 0` to allow none".to_owned());
        return Err((written, Invalid { hint, ..Invalid::new("the bound must be above 0") }));
    }
    Ok(Condition { metric, or_equal, bound })
}

fn metric(name: &str) -> Result<&'static Metric, Invalid> {
    let wanted = name.to_ascii_lowercase();
    if let Some(metric) = Metric::find(&wanted).filter(|metric| NAMED.contains(&metric.short_name())) {
        return Ok(metric);
    }
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == wanted) {
        return Err(Invalid::new(format!("`{name}` cannot be an objective")).hint(*why));
    }
    let message =
        if name.is_empty() { "missing metric".to_owned() } else { format!("unknown metric `{}`", name.escape_debug()) };
    let full = NAMED.iter().filter_map(|name| Some(Metric::find(name)?.name));
    let hint = did_you_mean(&wanted, NAMED.into_iter().chain(full));
    let hint = hint.unwrap_or_else(|| suggestion(&wanted, NAMED));
    Err(Invalid::new(message).hint(hint))
}

fn bounds(metric: &Metric) -> (&'static str, &'static str, f64) {
    match metric.unit {
        "ns" => ("a time, such as `5ms`", "at most 1h", TIME_MAX_NS as f64),
        // Whole numbers above 2^53, about 9.007e15, are not exact.
        "bytes" => ("memory, such as `64MiB`", "at most 9e15 bytes", 9e15),
        _ => ("a fraction of the requests, such as `0.1%`", "below 100%", 1.0f64.next_down()),
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.or_equal { "<=" } else { "<" };
        write!(f, "{} {sign} {}", self.name(), self.metric.value_text(self.bound))
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions = self.conditions.iter().map(Condition::to_string).collect::<Vec<_>>();
        f.write_str(&conditions.join(" and "))
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> Self {
        objective.to_string()
    }
}

impl TryFrom<String> for Objective {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::parse(&text).map_err(|mut errors| errors.swap_remove(0).1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: &str) {
        let found = match Objective::parse(text) {
            Ok(objective) => objective.to_string(),
            Err(errors) => {
                let line = |(span, error): &Mistake| {
                    let hint = error.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
                    format!("{:?}: {error}{hint}", &text[span.clone()])
                };
                errors.iter().map(line).collect::<Vec<_>>().join("; ")
            }
        };
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn objectives() {
        check("p99 < 5ms", "p99 < 5ms");
        check("p99<5ms", "p99 < 5ms");
        check("  latency_p99<=1500us ", "p99 <= 1.5ms");
        check("p99.9 <= 1ms and errors < 0.1%", "p99.9 <= 1ms and errors < 0.1%");
        check("P999 ≤ 1 ms AND errors <= 0", "p99.9 <= 1ms and errors <= 0%");
        check("mean < 2ms", "mean < 2ms");
        check("errors < 0.00123", "errors < 0.123%");
        check("rss < 64 MiB and p50 < 1s", "rss < 64MiB and p50 < 1s");
        check("subject_rss < 1000000", "rss < 1MB");
        check("p90 < 1.000000001s", "p90 < 1.000000001s");
        check("p95 < 999ns", "p95 < 999ns");
    }

    #[test]
    fn mistakes() {
        check("", "\"\": missing condition (an objective looks like `p99 < 5ms and errors < 0.1%`)");
        check("p99 < 5ms and", "\"\": missing condition (an objective looks like `p99 < 5ms and errors < 0.1%`)");
        check("p99", "\"p99\": `p99` has no bound (an objective looks like `p99 < 5ms and errors < 0.1%`)");
        check("p99 <", "\"<\": `p99` has no bound (a time, such as `5ms`)");
        check("p99 < 5", "\"5\": the bound of `p99`: `5` needs a unit: ns, us, ms, s, m, h (a time, such as `5ms`)");
        check(
            "p99 < 5 msec",
            "\"5 msec\": the bound of `p99`: `msec` in `5 msec` is not a unit of time: ns, us, ms, s, m, h",
        );
        check("p99 < fast", "\"fast\": the bound of `p99`: `fast` is not a number");
        check("p99 < 0ms", "\"0ms\": the bound must be above 0");
        check("p99 <= 0ms", "\"0ms\": the bound must be above 0");
        check("errors < 0%", "\"0%\": the bound must be above 0 (use `errors <= 0` to allow none)");
        check("errors < 5", "\"5\": the bound of `errors`: `5` is out of range: 0 to 1, or 0% to 100%");
        check("errors < 100%", "\"100%\": the bound of `errors` is out of range: below 100%");
        check("p99 < 2h", "\"2h\": the bound of `p99` is out of range: at most 1h");
        check("p99 > 5ms", "\">\": `p99` is better when lower, so it takes no lower bound (write `<`)");
        check("p99 == 5ms", "\"==\": `==` is not a comparison (write `<` or `<=`)");
        check("p98 < 5ms", "\"p98\": unknown metric `p98` (did you mean `p90`?)");
        check("latency_p9 < 5ms", "\"latency_p9\": unknown metric `latency_p9` (did you mean `latency_p90`?)");
        check(
            "speed < 5ms",
            "\"speed\": unknown metric `speed` (available: `mean`, `p50`, `p90`, `p95`, `p99`, `p99.9`, `errors`, `rss`)",
        );
        check(
            "< 5ms",
            "\"\": missing metric (available: `mean`, `p50`, `p90`, `p95`, `p99`, `p99.9`, `errors`, `rss`)",
        );
        check(
            "throughput > 10k",
            "\"throughput\": `throughput` cannot be an objective (it rises with the offered rate; achieving the \
             offered rate is always required)",
        );
        check("p99 < 5ms, errors < 1%", "\",\": `,` cannot join conditions (write `and` between them)");
        check("p99 < 5ms and p99 < 3ms", "\"p99 < 3ms\": `p99` has two bounds (keep the smaller one)");
        let all = "p98 < 5ms and errors < 5 and mean";
        assert_eq!(Objective::parse(all).unwrap_err().len(), 3, "all errors at once");
        assert!(
            Objective::parse(&"p99 < 5ms and ".repeat(30)).unwrap_err()[0].1.message.contains("limited to 256 bytes")
        );
    }

    #[test]
    fn holding() {
        let below = Objective::parse("p99 < 5ms and errors <= 0").unwrap();
        let [p99, errors] = &below.conditions[..] else { panic!("two") };
        assert!(p99.holds(4_999_999.0) && !p99.holds(5e6) && !p99.holds(f64::NAN));
        assert!(errors.holds(0.0) && !errors.holds(1e-9));
    }

    #[test]
    fn objectives_are_stored_as_text() {
        let objective = Objective::parse("p99<5ms").unwrap();
        let stored = serde_json::to_string(&objective).unwrap();
        assert_eq!(stored, "\"p99 < 5ms\"");
        assert_eq!(serde_json::from_str::<Objective>(&stored).unwrap(), objective);
        let error = serde_json::from_str::<Objective>("\"p99 < 5\"").unwrap_err().to_string();
        assert!(error.starts_with("the bound of `p99`: `5` needs a unit"), "{error}");
    }

    proptest! {
        #[test]
        fn objectives_survive_printing_and_parsing(
            metric in 0..NAMED.len(), ns in 1..=TIME_MAX_NS, share in 0.0..1.0f64, whole in 0..1_000_000u64, or_equal: bool
        ) {
            let metric = Metric::find(NAMED[metric]).unwrap();
            let bound = match metric.is_share {
                false => ns as f64,
                true if whole % 2 == 0 => (whole as f64 / 1e6).max(1e-6),
                true => share.max(1e-300),
            };
            let one = Condition { metric, or_equal, bound };
            let objective = Objective { conditions: vec![one] };
            prop_assert_eq!(Objective::parse(&objective.to_string()), Ok(objective));
        }

        #[test]
        fn blanks_are_ignored(a in " {0,3}", b in " {0,3}", c in " {0,3}", d in " {1,3}") {
            let text = format!("{a}p99{b}<={c}5ms{d}and{d}errors{a}<{b}1{c}%{a}");
            prop_assert_eq!(Objective::parse(&text).unwrap().to_string(), "p99 <= 5ms and errors < 1%");
        }

        #[test]
        fn parsing_never_panics_and_spans_are_valid(text in "\\PC{0,40}|([p0-9.<>=≤a-z %]{0,12}( and )?){0,4}") {
            if let Err(errors) = Objective::parse(&text) {
                prop_assert!(!errors.is_empty());
                for (span, error) in errors {
                    prop_assert!(text.get(span).is_some(), "{error:?}");
                }
            }
        }
    }
}
