//! Load shapes: a rate or a number of clients that changes over time.
//!
//! ```text
//! shape = part { "," part } [ "for" time "each" ]
//! part  = value [ ".." value ] [ ("for" | "over") time ]
//! ```

use config::{Invalid, units};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load_limits_and_defaults::{CLIENTS_MAX, WINDOW_NS};

/// Maximum number of stages.
pub const STAGES_MAX: usize = 100;
/// Maximum length of a shape, ns: one hour.
pub const SHAPE_MAX_NS: u64 = 3_600_000_000_000;
const TEXT_MAX_BYTES: usize = 4096;
const EXAMPLE: &str = "write `1k..10k over 60s`, or `1k, 2k, 5k for 20s each`";
const CLIENTS_EXAMPLE: &str = "write `1..400 over 60s`, or `10, 20, 50 for 20s each`";

/// A part of a shape, in which the value changes linearly: the rate of an open loop, in requests per second, or the
/// number of clients of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Value at the start of the stage.
    pub from: f64,
    /// Value that the stage reaches at its end.
    pub to: f64,
    /// Length of the stage, ns, a multiple of [`WINDOW_NS`].
    pub duration_ns: u64,
}

impl Stage {
    /// Number of requests that the stage schedules if its value is a rate.
    pub fn requests(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.duration_ns as f64 / 1e9
    }

    /// The part of the stage between two fractions of its length.
    pub fn between(&self, from: f64, to: f64) -> Self {
        let value_at = |share: f64| self.from + (self.to - self.from) * share;
        let duration_ns = (self.duration_ns as f64 * (to - from)).round() as u64;
        Self { from: value_at(from), to: value_at(to), duration_ns }
    }
}

/// Total length of the stages, ns.
pub fn duration_ns(stages: &[Stage]) -> u64 {
    stages.iter().map(|stage| stage.duration_ns).fold(0, u64::saturating_add)
}

/// Mean rate over the stages, requests per second; 0 for no stages.
pub fn mean_per_s(stages: &[Stage]) -> f64 {
    stages.iter().map(Stage::requests).sum::<f64>() / (duration_ns(stages) as f64 / 1e9).max(1e-9)
}

/// Largest number of clients in any stage.
pub fn clients_max(stages: &[Stage]) -> u32 {
    stages.iter().map(|stage| stage.from.max(stage.to)).fold(0.0, f64::max).ceil() as u32
}

/// First time at or after `since_ns` at which the value is at least `level`, ns from the start; `None` if it never is.
pub fn time_of_level(stages: &[Stage], level: f64, since_ns: u64) -> Option<u64> {
    let mut end_ns = 0u64;
    for stage in stages {
        let start_ns = end_ns;
        end_ns = end_ns.saturating_add(stage.duration_ns);
        if end_ns <= since_ns {
            continue;
        }
        let begin_ns = since_ns.max(start_ns);
        let slope = (stage.to - stage.from) / stage.duration_ns as f64;
        if stage.from + slope * (begin_ns - start_ns) as f64 >= level {
            return Some(begin_ns);
        }
        if stage.to > level {
            return Some(start_ns + ((level - stage.from) / slope).ceil() as u64);
        }
    }
    None
}

/// Whether a string describes a shape instead of one value.
pub fn is_shape(text: &str) -> bool {
    text.contains("..") || text.contains(',') || text.contains(' ')
}

/// Parses a changing rate into stages in requests per second. Fails at the first syntax error, or as [`check`] does.
pub fn parse(text: &str) -> Result<Vec<Stage>, Invalid> {
    parse_with(text, units::rate_per_s, EXAMPLE)
}

/// Parses a changing number of clients into stages. Fails at the first syntax error, or as [`check`] does.
pub fn parse_clients(text: &str) -> Result<Vec<Stage>, Invalid> {
    let count = |text: &str| {
        let count = text.parse::<u32>().ok().filter(|count| *count <= CLIENTS_MAX);
        let wrong =
            || Invalid::new(format!("`{}` is not a number of clients up to {CLIENTS_MAX}", text.escape_debug()));
        count.map(f64::from).ok_or_else(wrong)
    };
    parse_with(text, count, CLIENTS_EXAMPLE)
}

type ParseValue = fn(&str) -> Result<f64, Invalid>;

fn parse_with(text: &str, value: ParseValue, example: &'static str) -> Result<Vec<Stage>, Invalid> {
    if text.len() > TEXT_MAX_BYTES {
        return Err(Invalid::new(format!("{} bytes, at most {TEXT_MAX_BYTES} allowed", text.len())));
    }
    let text = text.trim();
    let (parts, each_ns) = match text.strip_suffix("each").and_then(|rest| rest.rsplit_once(" for ")) {
        Some((parts, time)) => (parts, Some(time_ns(time)?)),
        None => (text, None),
    };
    let stages = parts.split(',').map(|part| stage(part.trim(), each_ns, value, example));
    let stages = stages.collect::<Result<Vec<_>, _>>()?;
    check(&stages)?;
    Ok(stages)
}

/// The shape in the notation that [`parse`] reads, with values rounded to three decimals.
pub fn text(stages: &[Stage]) -> String {
    let part = |stage: &Stage| {
        let [from, to] = [stage.from, stage.to].map(|value| (value * 1e3).round() / 1e3);
        let seconds = stage.duration_ns as f64 / 1e9;
        if from == to { format!("{from} for {seconds}s") } else { format!("{from}..{to} over {seconds}s") }
    };
    stages.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn stage(part: &str, each_ns: Option<u64>, value: ParseValue, example: &'static str) -> Result<Stage, Invalid> {
    let timed = part.split_once(" for ").or_else(|| part.split_once(" over "));
    let (values, duration_ns) = match (timed, each_ns) {
        (Some((values, time)), None) => (values, time_ns(time)?),
        (None, Some(ns)) => (part, ns),
        (Some(_), Some(_)) => {
            let message = format!("`{}` has a time of its own besides `each`", part.escape_debug());
            return Err(Invalid::new(message).hint(example));
        }
        (None, None) => return Err(Invalid::new(format!("`{}` has no time", part.escape_debug())).hint(example)),
    };
    let value = |text: &str| if text.trim() == "0" { Ok(0.0) } else { value(text.trim()) };
    let (from, to) = values.split_once("..").unwrap_or((values, values));
    Ok(Stage { from: value(from)?, to: value(to)?, duration_ns })
}

fn time_ns(text: &str) -> Result<u64, Invalid> {
    units::duration_ns(text.trim())
}

/// Checks the number of stages, their values and their lengths. Fails at the first error.
pub fn check(stages: &[Stage]) -> Result<(), Invalid> {
    if stages.is_empty() || stages.len() > STAGES_MAX {
        return Err(Invalid::new(format!("{} stages, expected 1 to {STAGES_MAX}", stages.len())));
    }
    for Stage { from, to, duration_ns } in stages {
        if *duration_ns == 0 || duration_ns % WINDOW_NS != 0 {
            let message = format!("a stage of {} s is not a multiple of 0.1 s", *duration_ns as f64 / 1e9);
            return Err(Invalid::new(message));
        }
        if ![from, to].iter().all(|rate| (0.0..=1e9).contains(*rate)) || from + to == 0.0 {
            let message = format!("a stage from {from} to {to}");
            return Err(Invalid::new(message).hint("a stage needs values from 0 to 1G, and one above 0"));
        }
    }
    match duration_ns(stages) {
        0..=SHAPE_MAX_NS => Ok(()),
        ns => Err(Invalid::new(format!("a shape of {} s, at most 1 hour allowed", ns as f64 / 1e9))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_ramps_steps_and_spikes() {
        let short = |text: &str| {
            let stages = parse(text).unwrap().into_iter();
            stages.map(|stage| (stage.from, stage.to, stage.duration_ns / 1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(short("1k..10k over 60s"), [(1e3, 1e4, 60_000)]);
        assert_eq!(short("1k,2k, 5k for 20s each"), [(1e3, 1e3, 20_000), (2e3, 2e3, 20_000), (5e3, 5e3, 20_000)]);
        assert_eq!(short("0..1k over 1s, 10k for 500ms"), [(0.0, 1e3, 1_000), (1e4, 1e4, 500)]);
        let spike = "0..1000 over 1s, 10000 for 0.5s";
        assert_eq!(text(&parse(spike).unwrap()), spike);
        assert_eq!(mean_per_s(&parse("0..1k over 1s, 1k for 1s").unwrap()), 750.0);
        assert!(is_shape("1..2") && is_shape("1k for 2s") && !is_shape("1k") && !is_shape("2.5k/s"));
    }

    #[test]
    fn wrong_shapes_are_explained() {
        for (text, said) in [
            ("1k..2k", "`1k..2k` has no time"),
            ("1k for 1s for 2s each", "`1k for 1s` has a time of its own besides `each`"),
            ("1k for 50ms", "a stage of 0.05 s is not a multiple of 0.1 s"),
            ("0 for 1s", "a stage from 0 to 0"),
            ("1k for 2h", "a shape of 7200 s, at most 1 hour allowed"),
            ("1x for 2s", "`x`"),
            ("1k for 5", "`5`"),
            ("", "`` has no time"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains(said), "{text}: {}", error.message);
        }
        let many = vec!["1k"; STAGES_MAX + 1].join(",") + " for 1s each";
        assert_eq!(parse(&many).unwrap_err().message, "101 stages, expected 1 to 100");
    }
    #[test]
    fn clients_reach_their_number_in_time() {
        let ramp = parse_clients("1..5 over 4s, 2 for 1s, 5 for 1s").unwrap();
        assert_eq!(clients_max(&ramp), 5);
        let at = |level, since_s: f64| time_of_level(&ramp, level, (since_s * 1e9) as u64).map(|ns| ns as f64 / 1e9);
        assert_eq!(
            (at(1.0, 0.0), at(2.0, 0.0), at(4.0, 0.5), at(4.0, 3.5)),
            (Some(0.0), Some(1.0), Some(3.0), Some(3.5))
        );
        assert_eq!(
            (at(5.0, 0.0), at(2.0, 4.5), at(3.0, 4.5)),
            (Some(5.0), Some(4.5), Some(5.0)),
            "`to` is not reached"
        );
        assert_eq!((at(6.0, 0.0), at(1.0, 6.0)), (None, None));
        let down = parse_clients("3..0 over 3s").unwrap();
        assert_eq!(
            (time_of_level(&down, 2.0, 999_999_999), time_of_level(&down, 2.0, 1_000_000_001)),
            (Some(999_999_999), None)
        );
        for (text, said) in [("1..2x over 1s", "`2x` is not a number of clients"), ("1..9", "`1..9` has no time")] {
            let error = parse_clients(text).unwrap_err();
            assert!(
                error.message.contains(said) && error.hint.as_deref().is_none_or(|hint| hint == CLIENTS_EXAMPLE),
                "{error:?}"
            );
        }
    }
}
