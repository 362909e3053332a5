//! The seam between the lab and a generator's process: every line that either writes to the other.
//!
//! The lab starts `quintain load --spec -` and writes a [`LoadSpec`](crate::LoadSpec), one JSON value, to its stdin, which it keeps
//! open. The generator writes one [`Told`] a line to its stdout, in this order:
//!
//! 1. [`Told::Progress`], a few times a second, until the end.
//! 2. [`Told::Connected`], once, where the specification has a [`gate`](crate::LoadSpec::gate): the lab answers [`Heard::Go`]. A generator whose stdin ends before that
//!    gives up.
//! 3. [`Told::Announced`], once, as soon as it is known when measuring will begin, which is before it begins.
//! 4. [`Told::Measured`], when measuring has ended. From that moment on no request is sent, and every connection stays open until the lab
//!    answers [`Heard::Read`], its stdin ends, or [`HOLD_MAX`] is over. So what the subject has used can be read before connections close.
//! 5. [`Told::Measurement`], the last line.
//!
//! In place of 5, and of all that is still to come, stands [`Told::Error`] or [`Told::Unreachable`].

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::Measurement;

/// A generator waits no longer than this for [`Heard::Read`] before it closes its connections.
pub const HOLD_MAX: Duration = Duration::from_secs(1);

/// What a generator writes: one object per line, with one of these keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// Progress.
    Progress(Progress),
    /// The connections are open, and the load waits for [`Heard::Go`].
    Connected(Connected),
    /// When measuring starts, and when it ends, if known.
    Announced(Announced),
    /// Measuring has ended; the measurement is not written yet, and connections are still open.
    Measured(Span),
    /// The result.
    Measurement(Box<Measurement>),
    /// Why there is no result: an error of the generator.
    Error(String),
    /// Why there is no result: no connection to the server could be opened.
    Unreachable(String),
}

/// What the lab writes to a generator after the specification: an object with one of these keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Heard {
    /// The server's resource use has been read: connections may close.
    Read {},
    /// Where the load waits at its gate: it starts at this moment of the generator's monotonic clock, or at once if that has passed.
    Go {
        /// Start of the warm-up, ns.
        at_ns: u64,
    },
}

/// Connections before a load starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connected {
    /// Clients with a connection.
    pub reached: u32,
    /// Clients of this process.
    pub clients: u32,
}

/// Upper bounds of the classes of [`Latencies`], ns: 1, 2 and 5 of each decade, from 1 µs to 10 s.
pub const LATENCY_BOUNDS_NS: [u64; 22] = {
    let (mut bounds, mut step, mut decade) = ([0; 22], 0, 1_000);
    while step < bounds.len() {
        bounds[step] = decade * [1, 2, 5][step % 3];
        step += 1;
        decade *= if step % 3 == 0 { 10 } else { 1 };
    }
    bounds
};

/// Latencies of all windows that have ended, coarsely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latencies {
    /// Valid responses by latency: those up to each of [`LATENCY_BOUNDS_NS`] and above the one before, good to 0.1 % of the bound; last those above all.
    pub counts: [u64; LATENCY_BOUNDS_NS.len() + 1],
    /// Sum of the latencies, ns.
    pub sum_ns: f64,
}

impl Latencies {
    /// Adds those of another generator.
    pub fn add(&mut self, other: &Latencies) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
        self.sum_ns += other.sum_ns;
    }
}

/// Progress of a running load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Phase. The first report of [`Phase::Measure`] comes when measuring begins.
    pub phase: Phase,
    /// Since measuring began, ns.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// Valid responses so far, while measured.
    pub requests: u64,
    /// Valid responses per second, over the last windows.
    pub rate_per_s: f64,
    /// Mean latency over the same, ns; `None` without a response.
    pub latency_mean_ns: Option<f64>,
    /// Errors so far, while measured.
    pub errors: u64,
    /// CPU time of the generator's process so far, ns.
    #[serde(default)]
    pub cpu_ns: u64,
    /// The same by kind, without kinds that did not occur.
    #[serde(default)]
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Latencies so far, while measured, up to the window before this one.
    #[serde(default)]
    pub latencies: Box<Latencies>,
}

/// Phase of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Connections are being opened.
    #[default]
    Connect,
    /// Requests are sent but not counted.
    Warmup,
    /// Requests are counted.
    Measure,
}

/// When measuring will start and end, on the monotonic clock of the generator's host (`CLOCK_MONOTONIC`), ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Announced {
    /// The first moment that counts.
    pub from_ns: u64,
    /// The first that no longer does; `None` where the rule decides that later. A load may end before.
    pub until_ns: Option<u64>,
}

/// The time that was measured, on the same clock, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first moment that counts.
    pub from_ns: u64,
    /// The first that no longer does.
    pub until_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line as it stands on the pipe: scripts and other generators rely on it.
    #[test]
    fn lines() {
        let progress = Progress {
            phase: Phase::Warmup,
            elapsed_ns: 0,
            requests: 1,
            rate_per_s: 10.0,
            latency_mean_ns: None,
            errors: 2,
            cpu_ns: 3,
            errors_by_kind: BTreeMap::from([("reset".to_owned(), 2)]),
            latencies: Box::new(Latencies { sum_ns: 1e6, ..Latencies::default() }),
        };
        for (told, line) in [
            (
                Told::Progress(progress),
                concat!(
                    r#"{"progress":{"phase":"warmup","elapsed_ns":0,"requests":1,"rate_per_s":10.0,"latency_mean_ns":null,"errors":2,"cpu_ns":3,"#,
                    r#""errors_by_kind":{"reset":2},"latencies":{"counts":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"sum_ns":1000000.0}}}"#,
                ),
            ),
            (Told::Connected(Connected { reached: 3, clients: 4 }), r#"{"connected":{"reached":3,"clients":4}}"#),
            (
                Told::Announced(Announced { from_ns: 5, until_ns: None }),
                r#"{"announced":{"from_ns":5,"until_ns":null}}"#,
            ),
            (Told::Measured(Span { from_ns: 5, until_ns: 9 }), r#"{"measured":{"from_ns":5,"until_ns":9}}"#),
            (Told::Error("x".to_owned()), r#"{"error":"x"}"#),
            (Told::Unreachable("y".to_owned()), r#"{"unreachable":"y"}"#),
        ] {
            assert_eq!(serde_json::to_string(&told).unwrap(), line);
            assert_eq!(serde_json::from_str::<Told>(line).unwrap(), told);
        }
        assert_eq!(serde_json::to_string(&Heard::Read {}).unwrap(), r#"{"read":{}}"#);
        assert_eq!(serde_json::to_string(&Heard::Go { at_ns: 7 }).unwrap(), r#"{"go":{"at_ns":7}}"#);
    }

    #[test]
    fn bounds_of_latencies() {
        assert_eq!(LATENCY_BOUNDS_NS[..5], [1_000, 2_000, 5_000, 10_000, 20_000]);
        assert_eq!(LATENCY_BOUNDS_NS[21], 10_000_000_000);
    }

    #[test]
    fn what_nobody_agreed_on_is_refused() {
        for line in [
            r#"{"measured":true}"#,
            r#"{"measuring":true}"#,
            r#"{"measured":{"from_ns":5,"until_ns":9,"more":1}}"#,
            r#"{"error":"x","progress":null}"#,
            "{}",
            r#""hello""#,
        ] {
            assert!(serde_json::from_str::<Told>(line).is_err(), "{line}");
        }
        assert!(serde_json::from_str::<Heard>(r#"{"read":{"x":1}}"#).is_err());
        assert!(serde_json::from_str::<Heard>("{}").is_err());
    }
}
