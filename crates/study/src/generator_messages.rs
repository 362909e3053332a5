//! Messages between lab and generator. The lab starts `quintain load --spec -`, writes a [`LoadSpec`](crate::LoadSpec)
//! as JSON to its stdin and keeps stdin open. The generator writes one [`Told`] per line to its stdout, in order:
//!
//! 1. [`Told::Progress`], a few times per second, until the end.
//! 2. [`Told::Connected`], if the specification has a [`gate`](crate::LoadSpec::gate); the lab responds with
//!    [`Heard::Go`]. The generator gives up if its stdin ends before that.
//! 3. [`Told::Announced`], as soon as the start of measuring is known, which is before measuring starts.
//! 4. [`Told::Measured`], after measuring. No more requests are sent. Connections stay open, so that the lab can read
//!    the server's resource use, until it responds with [`Heard::Read`], stdin ends or [`HOLD_MAX`] passes.
//! 5. [`Told::Measurement`], unless [`Told::Error`] or [`Told::Unreachable`] replaces it and all messages still due.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{Measurement, SlowResponse};

/// Maximum time that a generator waits for [`Heard::Read`] before it closes its connections.
pub const HOLD_MAX: Duration = Duration::from_secs(1);

/// Messages from a generator: one object per line, with one of these keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// Counts of requests and errors, and the latencies so far.
    Progress(Progress),
    /// The connections are open; the load waits for [`Heard::Go`].
    Connected(Connected),
    /// The start of measuring, and its end if known.
    Announced(Announced),
    /// Measuring has ended. The measurement has not been written yet, and connections are still open.
    Measured(Span),
    /// The result, as the last message.
    Measurement(Box<Measurement>),
    /// The error that ended the generator, in place of a result.
    Error(String),
    /// The reason why no connection to the server could be opened, in place of a result.
    Unreachable(String),
}

/// Messages from the lab after the specification: an object with one of these keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Heard {
    /// The server's resource use has been read, so connections may close.
    Read {},
    /// Starts a load that waits at its gate: at `at_ns`, or at once if that time has passed.
    Go {
        /// Start of the warm-up on the generator's monotonic clock, ns.
        at_ns: u64,
    },
}

/// Numbers of connected clients and of all clients before a load starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connected {
    /// Number of clients that have a connection.
    pub reached: u32,
    /// Number of clients of this process.
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

/// Latencies of all completed windows, in coarse classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latencies {
    /// Valid responses per class: one class up to each of [`LATENCY_BOUNDS_NS`] (exact to 0.1 %) and one above them.
    pub counts: [u64; LATENCY_BOUNDS_NS.len() + 1],
    /// Sum of the latencies, ns.
    pub sum_ns: f64,
}

impl Latencies {
    /// Adds the latencies of a second generator to these.
    pub fn add(&mut self, other: &Latencies) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
        self.sum_ns += other.sum_ns;
    }
}

/// Progress of a running load, sent a few times per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Current phase. The first report of [`Phase::Measure`] comes when measuring begins.
    pub phase: Phase,
    /// Time since measuring began, ns.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// Valid responses since measuring began.
    pub requests: u64,
    /// Valid responses per second over the most recent windows.
    pub rate_per_s: f64,
    /// Mean latency over the windows of `rate_per_s`, ns; `None` without a response.
    pub latency_mean_ns: Option<f64>,
    /// Errors since measuring began.
    pub errors: u64,
    /// CPU time of the generator's process since its start, ns.
    #[serde(default)]
    pub cpu_ns: u64,
    /// Errors since measuring began, by kind; kinds that did not occur are left out.
    #[serde(default)]
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Latencies since measuring began, up to the end of the last complete window.
    #[serde(default)]
    pub latencies: Box<Latencies>,
    /// The slowest responses so far, as in [`Measurement::slowest`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowResponse>,
}

/// Phase of a load, from connecting to measuring.
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

/// The planned span of measuring, on the monotonic clock of the generator's host (`CLOCK_MONOTONIC`), ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Announced {
    /// First moment of the measured time, ns.
    pub from_ns: u64,
    /// End of measuring, ns; `None` if a rule decides later. A load may end earlier.
    pub until_ns: Option<u64>,
}

/// The measured time, on the clock of [`Announced`], ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// First moment of the measured time, ns.
    pub from_ns: u64,
    /// First moment after the measured time, ns.
    pub until_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripts and other generators rely on these lines.
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
            slowest: Vec::new(),
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
    fn rejects_unknown_messages() {
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
