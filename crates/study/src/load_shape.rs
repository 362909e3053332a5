//! Load shapes: an open loop whose rate changes over time.
//!
//! ```text
//! shape = part { "," part } [ "for" time "each" ]
//! part  = rate [ ".." rate ] [ ("for" | "over") time ]
//! ```
//!
//! | Written | Means |
//! |---|---|
//! | `1k..10k over 60s` | a ramp from 1,000 to 10,000 requests per second |
//! | `1k, 2k, 5k for 20s each` | three steps |
//! | `1k for 30s, 10k for 5s, 1k for 30s` | a spike |

use config::{Invalid, units};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::WINDOW_NS;

/// Maximum number of stages.
pub const STAGES_MAX: usize = 100;
/// Maximum length of a shape, ns.
pub const SHAPE_MAX_NS: u64 = 3_600_000_000_000;
const TEXT_MAX_BYTES: usize = 4096;
const EXAMPLE: &str = "write `1k..10k over 60s`, or `1k, 2k, 5k for 20s each`";

/// A part of a shape, in which the rate changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Rate at its start, requests per second.
    pub from_per_s: f64,
    /// Rate at its end, requests per second; not reached before the end.
    pub to_per_s: f64,
    /// Its length, ns: a multiple of [`WINDOW_NS`].
    pub duration_ns: u64,
}

impl Stage {
    /// Number of requests it schedules.
    pub fn requests(&self) -> f64 {
        (self.from_per_s + self.to_per_s) / 2.0 * self.duration_ns as f64 / 1e9
    }

    /// Its part between two fractions of its length.
    pub fn between(&self, from: f64, to: f64) -> Self {
        let rate_at = |share: f64| self.from_per_s + (self.to_per_s - self.from_per_s) * share;
        let duration_ns = (self.duration_ns as f64 * (to - from)).round() as u64;
        Self { from_per_s: rate_at(from), to_per_s: rate_at(to), duration_ns }
    }
}

/// Length of all stages, ns.
pub fn duration_ns(stages: &[Stage]) -> u64 {
    stages.iter().map(|stage| stage.duration_ns).fold(0, u64::saturating_add)
}

/// Mean rate of all stages, requests per second.
pub fn mean_per_s(stages: &[Stage]) -> f64 {
    stages.iter().map(Stage::requests).sum::<f64>() / (duration_ns(stages) as f64 / 1e9).max(1e-9)
}

/// Whether a text describes a shape and not one rate.
pub fn is_shape(text: &str) -> bool {
    text.contains("..") || text.contains(',') || text.contains(' ')
}

/// Parses a shape.
pub fn parse(text: &str) -> Result<Vec<Stage>, Invalid> {
    if text.len() > TEXT_MAX_BYTES {
        return Err(Invalid::new(format!("{} bytes, at most {TEXT_MAX_BYTES} allowed", text.len())));
    }
    let text = text.trim();
    let (parts, each_ns) = match text.strip_suffix("each").and_then(|rest| rest.rsplit_once(" for ")) {
        Some((parts, time)) => (parts, Some(time_ns(time)?)),
        None => (text, None),
    };
    let stages = parts.split(',').map(|part| stage(part.trim(), each_ns)).collect::<Result<Vec<_>, _>>()?;
    check(&stages)?;
    Ok(stages)
}

/// The text of a shape, which [`parse`] reads.
pub fn text(stages: &[Stage]) -> String {
    let part = |stage: &Stage| {
        let Stage { from_per_s, to_per_s, duration_ns } = stage;
        let seconds = *duration_ns as f64 / 1e9;
        match from_per_s == to_per_s {
            true => format!("{from_per_s} for {seconds}s"),
            false => format!("{from_per_s}..{to_per_s} over {seconds}s"),
        }
    };
    stages.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn stage(part: &str, each_ns: Option<u64>) -> Result<Stage, Invalid> {
    let timed = part.split_once(" for ").or_else(|| part.split_once(" over "));
    let (rates, duration_ns) = match (timed, each_ns) {
        (Some((rates, time)), None) => (rates, time_ns(time)?),
        (None, Some(ns)) => (part, ns),
        (Some(_), Some(_)) => {
            let message = format!("`{}` has a time of its own besides `each`", part.escape_debug());
            return Err(Invalid::new(message).hint(EXAMPLE));
        }
        (None, None) => return Err(Invalid::new(format!("`{}` has no time", part.escape_debug())).hint(EXAMPLE)),
    };
    let rate = |text: &str| match text.trim() {
        "0" => Ok(0.0),
        text => units::rate_per_s(text),
    };
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    Ok(Stage { from_per_s: rate(from)?, to_per_s: rate(to)?, duration_ns })
}

fn time_ns(text: &str) -> Result<u64, Invalid> {
    units::duration_ns(text.trim())
}

/// Checks the number of stages, their rates, and their lengths.
pub fn check(stages: &[Stage]) -> Result<(), Invalid> {
    if stages.is_empty() || stages.len() > STAGES_MAX {
        return Err(Invalid::new(format!("{} stages, expected 1 to {STAGES_MAX}", stages.len())));
    }
    for Stage { from_per_s, to_per_s, duration_ns } in stages {
        if *duration_ns == 0 || duration_ns % WINDOW_NS != 0 {
            let message = format!("a stage of {} s is not a multiple of 0.1 s", *duration_ns as f64 / 1e9);
            return Err(Invalid::new(message));
        }
        if ![from_per_s, to_per_s].iter().all(|rate| (0.0..=1e9).contains(*rate)) || from_per_s + to_per_s == 0.0 {
            let message = format!("a stage from {from_per_s} to {to_per_s} requests per second");
            return Err(Invalid::new(message).hint("a stage needs rates from 0 to 1G, and one above 0"));
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
            stages.map(|stage| (stage.from_per_s, stage.to_per_s, stage.duration_ns / 1_000_000)).collect::<Vec<_>>()
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
            ("0 for 1s", "a stage from 0 to 0 requests per second"),
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
}
