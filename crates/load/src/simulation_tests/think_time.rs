//! Clients with think time against servers that close idle connections.

use net::Nanos;
use net::sim::{Actions, Answer, Network, Peer};
use study::Measurement;
use study::spec::{Arrivals, Connection, LoadSpec, Stop, Warmup};

use super::http::{GOOD, LAST, http, measure_on};
use super::{MS, S, errors, follow, near};

const THINK: Nanos = 200 * MS;

struct Idle {
    answer: &'static [u8],
    idle_ns: Nanos,
    asked: u64,
    wakes: u64,
}

impl Peer for Idle {
    fn on_connect(&mut self, _: Nanos, to: &mut Actions) {
        to.wake(self.idle_ns);
    }

    fn on_data(&mut self, _: &[u8], _: Nanos, to: &mut Actions) {
        self.asked += 1;
        to.send(0, self.answer);
        to.wake(self.idle_ns);
    }

    fn on_wake(&mut self, _: Nanos, to: &mut Actions) {
        self.wakes += 1;
        if self.wakes > self.asked {
            to.end_of_stream(0);
        }
    }
}

fn measure(spec: &LoadSpec, answer: &'static [u8], idle_ns: Nanos) -> Measurement {
    let serve = move |_| -> Answer { Idle { answer, idle_ns, asked: 0, wakes: 0 }.into() };
    measure_on(Network::PERFECT, spec, serve)
}

fn thinking() -> LoadSpec {
    let stop = Stop::Duration { duration_ns: 10 * S };
    LoadSpec { arrivals: Arrivals::closed(THINK), stop, warmup: Warmup::DurationNs(S), ..http() }
}

#[test]
fn think_time_continues_while_disconnected() {
    // The server closes early in the think time, halfway through it, or never.
    for idle_ns in [MS, THINK / 2, 100 * S] {
        let measurement = measure(&thinking(), GOOD, idle_ns);
        assert_eq!(errors(&measurement), [], "{idle_ns}");
        near(measurement.requests as f64, 4.0 * 10.0 * S as f64 / THINK as f64, 0.03);
        assert_eq!(measurement.in_backoff_mean, 0.0);
        if idle_ns < THINK {
            // The connection is reopened only when the request is due.
            near(measurement.reconnects as f64, measurement.requests as f64, 0.03);
        }
    }
}

#[test]
fn think_time_starts_at_response_regardless_of_close() {
    for connection in [Connection::KeepAlive, Connection::PerRequest] {
        let spec = LoadSpec { connection, ..thinking() };
        let measurement = measure(&spec, LAST, 100 * S);
        assert_eq!(errors(&measurement), []);
        near(measurement.requests as f64, 4.0 * 10.0 * S as f64 / THINK as f64, 0.03);
    }
}

#[test]
fn think_times_follow_their_law() {
    for (law, mean_ns) in [("exponential:20ms", 20e6), ("uniform:5ms,80ms", 42.5e6)] {
        let arrivals = Arrivals::Closed { think: study::time_law::think(law).unwrap() };
        let stop = Stop::Requests { requests: 5_001, max_ns: 900 * S };
        let spec = LoadSpec { arrivals, stop, clients: 1, log_one_in: 1, warmup: Warmup::DurationNs(0), ..http() };
        let mut measurement = measure(&spec, GOOD, 900 * S);
        assert_eq!((errors(&measurement), measurement.think_ns as f64), (vec![], mean_ns));
        measurement.log.sort_by_key(|request| request.sent_ns);
        let pauses = measurement.log.windows(2).map(|both| (both[1].sent_ns - both[0].ended_ns) as u64).collect();
        follow(law, pauses);
    }
}
