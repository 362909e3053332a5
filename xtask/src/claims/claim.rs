//! A statement of a source, and what is looked at to test it.

use std::collections::BTreeMap;
use std::fmt;

/// One statement.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name on the page, unique.
    pub id: String,
    pub source: Source,
    /// Heading of the source under which it stands.
    pub section: &'static str,
    /// The statement, in our words.
    pub statement: String,
    pub command: Command,
    pub look: Look,
    /// The only machine on which an absolute number can be compared: its CPU model as Linux names it, or a description
    /// that no machine matches.
    pub only_on: Option<&'static str>,
}

/// The four documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Volley,
    WhaleConnect,
    Whip,
    Cache,
}

impl Source {
    pub const ALL: [Source; 4] = [Source::Volley, Source::WhaleConnect, Source::Whip, Source::Cache];

    /// The document's file, and what it is about.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Source::Volley => ("volley.md", "Volley: ping-pong servers"),
            Source::WhaleConnect => ("whaleconnect-benchmarks.md", "WhaleConnect: an HTTP server"),
            Source::Whip => ("whip-benchmarks.md", "Whip: contracts between services"),
            Source::Cache => ("cache-benchmarks.md", "A course's cache server"),
        }
    }
}

/// What tests a statement again.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `quintain run STUDY --set ...`; the answer comes from the store.
    Run {
        study: &'static str,
        sets: Vec<String>,
    },
    /// A command that stores no run.
    Other(&'static str),
    None,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Run { study, sets } => {
                write!(f, "quintain run {study}")?;
                sets.iter().try_for_each(|set| match set.contains(' ') {
                    true => write!(f, " --set '{set}'"),
                    false => write!(f, " --set {set}"),
                })
            }
            Command::Other(text) => f.write_str(text),
            Command::None => f.write_str("none"),
        }
    }
}

/// Levels of factors, by name: the rows that have them all.
pub type At = BTreeMap<String, String>;

/// An open range; an interval inside agrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

/// How a metric changes from one level of a factor to another, block by block; on average over the levels of the
/// factors that `at` leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    pub metric: String,
    pub factor: String,
    pub from: String,
    pub to: String,
    pub at: At,
}

/// `cores 5, server go`.
pub fn levels(at: &At) -> String {
    at.iter().map(|(factor, level)| format!("{factor} {level}")).collect::<Vec<_>>().join(", ")
}

/// What is looked at.
#[derive(Clone, Debug)]
pub enum Look {
    /// A metric of one design point.
    Value { metric: &'static str, at: At, range: Range },
    /// Ratios that all lie in a range: a direction, an order, no effect.
    Ratios { ratios: Vec<Ratio>, range: Range },
    /// A change that is larger than each of others, whichever way they go.
    Larger { ratio: Ratio, than: Vec<Ratio> },
    /// A parameter of the Universal Scalability Law.
    Law { factor: &'static str, series: At, parameter: Parameter, range: Range },
    /// Whether a series grows over the requests of a trial.
    OverRequests { what: &'static str, at: At, trend: Trend },
    /// The mean size that the workload `course` samples.
    Drawn { size: Size, range: Range },
    /// No command tests it.
    Untested { why: &'static str, needs: &'static str },
}

/// What a series does over requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    Flat,
    /// It rises in a line.
    Line,
}

/// A parameter of the Universal Scalability Law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    Peak,
    Coherency,
}

/// Of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Key,
    Value,
}

impl Look {
    /// The design points that it needs, each as levels.
    pub fn places(&self) -> Vec<At> {
        let ends = |ratio: &Ratio| {
            [&ratio.from, &ratio.to].map(|level| {
                let mut at = ratio.at.clone();
                at.insert(ratio.factor.clone(), level.clone());
                at
            })
        };
        match self {
            Look::Value { at, .. } | Look::OverRequests { at, .. } | Look::Law { series: at, .. } => vec![at.clone()],
            Look::Ratios { ratios, .. } => ratios.iter().flat_map(ends).collect(),
            Look::Larger { ratio, than } => [ratio].into_iter().chain(than).flat_map(ends).collect(),
            Look::Drawn { .. } | Look::Untested { .. } => Vec::new(),
        }
    }

    /// Whether it looks at times, which depend on who else has the processors.
    pub fn is_of_times(&self) -> bool {
        let is = |name: &str| study::Metric::named(name).is_none_or(|metric| ["ns", "1/s"].contains(&metric.unit));
        match self {
            Look::Value { metric, .. } => is(metric),
            Look::Ratios { ratios, .. } => ratios.iter().any(|ratio| is(&ratio.metric)),
            Look::Larger { ratio, than } => [ratio].into_iter().chain(than).any(|ratio| is(&ratio.metric)),
            Look::OverRequests { what, .. } => ["latency", "proxy_time"].contains(what),
            // The law leaves such rows out by itself.
            Look::Law { .. } | Look::Drawn { .. } | Look::Untested { .. } => false,
        }
    }

    /// When it agrees, in words; `None`: nothing is tested.
    pub fn criterion(&self) -> Option<String> {
        Some(match self {
            Look::Value { metric, at, range } => {
                let unit = match study::Metric::named(metric).map(|metric| metric.unit) {
                    Some("1/s") => " per second".to_owned(),
                    None | Some("1") => String::new(),
                    Some(unit) => format!(" {unit}"),
                };
                format!("`{metric}` at {} {}{unit}", levels(at), range.words(number))
            }
            Look::Ratios { ratios, range } => {
                let which = if ratios.len() == 1 { "ratio of" } else { "each ratio of" };
                format!("{which} {}: {}", all(ratios), range.words(number))
            }
            Look::Larger { ratio, than } => {
                format!(
                    "size of the change of {}, over that of {}: above 1",
                    all(std::slice::from_ref(ratio)),
                    all(than)
                )
            }
            Look::Law { factor, series, parameter, range } => {
                let name = match parameter {
                    Parameter::Peak => "peak",
                    Parameter::Coherency => "coherency",
                };
                format!(
                    "{name} of the fitted scalability law over {factor} at {} {}",
                    levels(series),
                    range.words(number)
                )
            }
            Look::OverRequests { what, at, trend } => {
                let word = if *trend == Trend::Flat { "flat" } else { "a rising line" };
                format!("trend of `{what}` over requests at {}: {word}", levels(at))
            }
            Look::Drawn { size, range } => {
                let of = if *size == Size::Key { "keys" } else { "values" };
                format!("mean size of {of} {} bytes", range.words(number))
            }
            Look::Untested { .. } => return None,
        })
    }
}

/// Ratios in words, steps of one factor together: `throughput` from threads 1 to 2, 2 to 4.
fn all(ratios: &[Ratio]) -> String {
    let mut groups = Vec::<(&Ratio, Vec<String>)>::new();
    for ratio in ratios {
        let step = format!("{} to {}", ratio.from, ratio.to);
        let is = |other: &Ratio| (&other.metric, &other.factor, &other.at) == (&ratio.metric, &ratio.factor, &ratio.at);
        match groups.iter_mut().find(|(first, _)| is(first)) {
            Some((_, steps)) => steps.push(step),
            None => groups.push((ratio, vec![step])),
        }
    }
    let words = groups.into_iter().map(|(first, steps)| {
        let place = if first.at.is_empty() { String::new() } else { format!(" at {}", levels(&first.at)) };
        format!("`{}` from {} {}{place}", first.metric, first.factor, steps.join(", "))
    });
    words.collect::<Vec<_>>().join("; ")
}

impl Range {
    fn words(&self, number: impl Fn(f64) -> String) -> String {
        match (self.low, self.high) {
            (low, f64::INFINITY) => format!("above {}", number(low)),
            (0.0, high) => format!("below {}", number(high)),
            (low, high) => format!("between {} and {}", number(low), number(high)),
        }
    }
}

/// Four significant digits; more where they are before the point.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let decimals = (3 - value.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
