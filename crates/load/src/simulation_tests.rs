//! The whole engine (worker, coordinator and merge) on a simulated network, exact to the nanosecond.

mod cache;
mod censored;
mod divided_load;
mod http;
mod http2;
mod http2_sessions;
mod http_tunnels;
mod request_limits_and_backoff;
mod resp_cache;
mod sent_and_received_counts;
mod sessions;
mod think_time;
mod trace_replay;
mod unsolicited_bytes;

use std::cell::RefCell;
use std::rc::Rc;

use net::sim::{Answer, Network, Sim, ready_made_peers};
use net::{Address, Config};
use stats::Histogram;
use study::Measurement;
use study::spec::{Arrivals, LoadSpec, Stop, Target, Warmup};

use crate::check_spec::tests::spec;
use crate::coordinator::{Control, Coordinator, Outcome};
use crate::coordinator_exchange::Usage;
use crate::journey::Plan;
use crate::measurement::build_measurement;
use crate::protocol::{Pingpong, Protocol, Shared};
use crate::recorder::Fault;
use crate::server_endpoint::Server;
use crate::worker::{self, Task};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const ROUND_TRIP: u64 = 10_000;

fn outcome(
    spec: &LoadSpec,
    network: Network,
    serve: impl FnMut(u64) -> Answer + 'static,
) -> Result<Measurement, Outcome> {
    outcome_of(spec, Pingpong::default(), network, serve)
}

fn outcome_of(
    spec: &LoadSpec,
    protocol: impl Protocol,
    network: Network,
    serve: impl FnMut(u64) -> Answer + 'static,
) -> Result<Measurement, Outcome> {
    outcome_with(spec, protocol, network, serve, None)
}

const SERVERS: [&str; 2] = ["10.0.0.1:7", "10.0.0.2:7"];

fn task<'a>(spec: &'a LoadSpec, control: &'a Control) -> Task<'a> {
    let plan = Plan::of(&spec.target, spec.seed).unwrap();
    let tunnel_to = if let Target::Http { tunnel_to, .. } = &spec.target { tunnel_to.clone() } else { None };
    let address = Address::Inet(SERVERS[0].parse().unwrap());
    Task {
        spec,
        server: Server { address, tunnel_to, tls: None, host: String::new() },
        index: spec.worker(0),
        workers: spec.workers_of_all(),
        place: 0,
        clients: spec.own_clients(),
        control,
        connections_per_client: plan.map_or(1, |plan| plan.connections_per_client(&plan.servers().unwrap())),
    }
}

fn outcome_with(
    spec: &LoadSpec,
    protocol: impl Protocol,
    network: Network,
    serve: impl FnMut(u64) -> Answer + 'static,
    shared: Option<&Shared>,
) -> Result<Measurement, Outcome> {
    assert_eq!(crate::check(spec), Vec::<String>::new());
    let control = Control::new(spec, 1);
    let task = task(spec, &control);
    let config = Config {
        connections: spec.clients as usize * task.connections_per_client,
        receive_bytes: 4096,
        send_bytes_max: 65_536,
        pause_reads_above_bytes: usize::MAX,
    };
    let mut driver = Sim::new(spec.seed, &config, network);
    let serve = Rc::new(RefCell::new(serve));
    for address in SERVERS {
        let serve = serve.clone();
        driver.serve(address.parse().unwrap(), move |number| (serve.borrow_mut())(number));
    }
    let tell = &mut |_| {};
    let mut coordinator = Coordinator::new(spec, &control, None, tell, 0);
    let mut outcome = None;
    let done = worker::run(task, &mut driver, protocol, Usage::default, |now| {
        outcome = outcome.take().or_else(|| coordinator.step(now, false));
    });
    match outcome.expect("the worker ends when the coordinator says so") {
        Outcome::Measured(ended) => {
            let done = [done.unwrap()];
            let mut measurement = build_measurement(spec, ended, &done, shared);
            if let Some(plan) = Plan::of(&spec.target, spec.seed).unwrap() {
                plan.add_results(&mut measurement, spec, &done);
            }
            Ok(measurement)
        }
        other => Err(other),
    }
}

fn measure(spec: &LoadSpec, serve: impl FnMut(u64) -> Answer + 'static) -> Measurement {
    outcome(spec, Network::PERFECT, serve).unwrap()
}

fn latency(measurement: &Measurement, q: f64) -> f64 {
    Histogram::try_from(measurement.latency()).unwrap().quantile(q).unwrap()
}

fn near(value: f64, expected: f64, share: f64) {
    assert!((value / expected - 1.0).abs() <= share, "{value} is not within {share} of {expected}");
}

fn errors(measurement: &Measurement) -> Vec<(&str, u64)> {
    measurement.errors.iter().map(|(kind, &count)| (kind.as_str(), count)).collect()
}

#[test]
fn closed_loop_timing_is_exact() {
    let measurement = measure(&spec(), |_| ready_made_peers::ping_pong(|_| MS).into());
    let trip = MS + ROUND_TRIP;
    near(measurement.requests as f64, (4 * S / trip) as f64, 0.002);
    assert_eq!((measurement.service.min, measurement.service.max), (Some(trip), Some(trip)));
    assert_eq!((measurement.duration_ns, measurement.warmup_ns), (S, 100 * MS));
    assert_eq!(errors(&measurement), []);
    assert_eq!(measurement.windows.len(), 10);
    assert_eq!(measurement.windows.iter().map(|window| window.requests).sum::<u64>(), measurement.requests);
    assert_eq!(measurement.unfinished, 4);
    assert!(measurement.response.is_none());
}

#[test]
fn little_s_law_holds() {
    let lognormal = stats::Distribution::Lognormal { median: 1e6, sigma: 1.0 };
    for clients in [1, 8, 100] {
        let spec = LoadSpec { clients, stop: Stop::Duration { duration_ns: 5 * S }, ..spec() };
        let mut rng = stats::Rng::new(u64::from(clients));
        let measurement = measure(&spec, move |_| {
            let mut rng = stats::Rng::new(rng.next_u64());
            ready_made_peers::ping_pong(move |_| lognormal.sample(&mut rng) as u64).into()
        });
        let mean_s = measurement.service.sum / measurement.service.count as f64 / 1e9;
        near(measurement.in_flight_mean, measurement.rate_per_s() * mean_s, 0.01);
        near(measurement.in_flight_mean, f64::from(clients), 0.001);
    }
}

#[test]
fn delayed_share_appears_at_its_quantile() {
    let spec = LoadSpec { clients: 10, stop: Stop::Duration { duration_ns: 5 * S }, ..spec() };
    let serve = |_| ready_made_peers::ping_pong(|request| if request.number % 10 == 9 { 6 * MS } else { MS }).into();
    let measurement = measure(&spec, serve);
    for (q, expected) in [(0.5, MS), (0.89, MS), (0.91, 6 * MS), (0.99, 6 * MS)] {
        near(latency(&measurement, q), (expected + ROUND_TRIP) as f64, 0.002);
    }
}

/// The server pauses for 200 ms every 2 s. A tenth of all intended sends falls into a pause and waits 0 to 200 ms,
/// evenly distributed. So the quantile 1 - p of all requests is the quantile 1 - 10 p of the waiting ones.
#[test]
fn open_loop_measures_server_pauses_exactly() {
    for (clients, arrivals) in [
        (400, Arrivals::Poisson { rate_per_s: 1000.0 }),
        (400, Arrivals::Constant { rate_per_s: 1000.0 }),
        // With only 8 connections, requests wait just as long, but mostly for a connection.
        (8, Arrivals::Constant { rate_per_s: 1000.0 }),
    ] {
        let spec = LoadSpec {
            clients,
            arrivals,
            warmup: Warmup::DurationNs(0),
            stop: Stop::Duration { duration_ns: 40 * S },
            ..spec()
        };
        let serve = |_| ready_made_peers::ping_pong(ready_made_peers::pauses(2 * S, 200 * MS, 20_000)).into();
        let measurement = measure(&spec, serve);
        near(measurement.requests as f64, 40_000.0, 0.02);
        near(latency(&measurement, 0.99), 180e6, 0.05);
        near(latency(&measurement, 0.95), 100e6, 0.08);
        assert!(latency(&measurement, 0.5) < 1e6);
        let lag = Histogram::try_from(measurement.lag_connection.as_ref().unwrap()).unwrap();
        let thread = Histogram::try_from(measurement.lag_thread.as_ref().unwrap()).unwrap();
        if clients == 8 {
            near(lag.quantile(0.99).unwrap(), 180e6, 0.1);
        } else {
            assert_eq!(lag.max(), Some(0));
        }
        assert_eq!(thread.quantile(0.99), Some(0.0), "the thread itself is never late in virtual time");
    }
}

#[test]
fn closed_loop_hides_server_pauses() {
    let spec = LoadSpec { stop: Stop::Duration { duration_ns: 20 * S }, ..spec() };
    let measurement =
        measure(&spec, |_| ready_made_peers::ping_pong(ready_made_peers::pauses(2 * S, 200 * MS, MS)).into());
    near(latency(&measurement, 0.99), (MS + ROUND_TRIP) as f64, 0.002);
}

#[test]
fn excessive_offered_rate_shows_in_response_time_and_unsent() {
    // At 1 ms per request, one client can send 990 requests per second; 2,000 are offered.
    let spec = LoadSpec {
        clients: 1,
        arrivals: Arrivals::Constant { rate_per_s: 2000.0 },
        warmup: Warmup::DurationNs(0),
        ..spec()
    };
    let measurement = measure(&spec, |_| ready_made_peers::ping_pong(|_| MS).into());
    near(measurement.requests as f64, 990.0, 0.01);
    near(measurement.unsent as f64, 1010.0, 0.02);
    near(latency(&measurement, 1.0), 505e6, 0.05);
    assert_eq!(measurement.service.max, Some(MS + ROUND_TRIP));
    assert_eq!(measurement.offered_per_s, Some(2000.0));
}

/// Tests that 5,000 pauses, in ns, follow their law.
fn follow(law: &str, mut pauses: Vec<u64>) {
    pauses.sort_unstable();
    let count = pauses.len() as f64;
    assert_eq!(count, 5_000.0);
    let expected = study::time_law::parse(law).unwrap();
    // The Kolmogorov-Smirnov statistic: the largest distance between the two distribution functions.
    let distance = |(at, pause): (usize, &u64)| {
        let below = expected.cdf(*pause as f64);
        (below - at as f64 / count).abs().max((below - (at + 1) as f64 / count).abs())
    };
    let largest = pauses.iter().enumerate().map(distance).fold(0.0, f64::max);
    assert!(largest < 1.63 / count.sqrt(), "{law}: {largest}, which 1 % of samples of the law exceed");
}

#[test]
fn closed_loop_keeps_think_time() {
    let spec = LoadSpec { arrivals: Arrivals::closed(9 * MS), ..spec() };
    let measurement = measure(&spec, |_| ready_made_peers::ping_pong(|_| MS).into());
    near(measurement.requests as f64, 4.0 * 1e9 / (10.0 * MS as f64 + ROUND_TRIP as f64), 0.02);
    near(measurement.in_flight_mean, 4.0 * 0.101, 0.02);
}

#[test]
fn invalid_responses_are_counted_but_not_sampled() {
    let measurement = measure(&spec(), |_| ready_made_peers::wrong_every(10).into());
    let wrong = measurement.errors["wrong-answer"];
    near(measurement.requests as f64, 9.0 * wrong as f64, 0.01);
    assert_eq!(measurement.service.count, measurement.requests);
    near(measurement.reconnects as f64, wrong as f64, 0.05);

    let never_right = measure(&spec(), |_| ready_made_peers::wrong_every(1).into());
    assert_eq!((never_right.requests, never_right.service.count), (0, 0));
    assert!(never_right.errors["wrong-answer"] > 0);
    // A client that gets only invalid responses backs off to ten requests per second.
    assert!(never_right.errors["wrong-answer"] <= 4 * 11, "{:?}", never_right.errors);
}

#[test]
fn lost_connections_are_counted_by_kind_and_reopened() {
    let reset = measure(&spec(), |_| ready_made_peers::reset_after(100).into());
    assert_eq!(errors(&reset).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["reset"]);
    near(reset.requests as f64, 100.0 * reset.errors["reset"] as f64, 0.05);
    let closed = measure(&spec(), |_| ready_made_peers::end_after(100).into());
    // The server had responded before, so it may have closed the connection while the request was in transit.
    assert_eq!(errors(&closed).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["closed-between"]);
    assert!(closed.reconnects > 0 && closed.requests > 1000);
}

#[test]
fn end_before_response_is_closed_within_is_truncated() {
    for (bytes, kind) in [(0, "closed"), (3, "truncated")] {
        let measurement = measure(&spec(), move |_| {
            let serve = move |request: ready_made_peers::Request, to: &mut net::sim::Actions| {
                to.send(MS, &request.answer()[..bytes]);
                to.end_of_stream(MS);
            };
            ready_made_peers::word_server(serve).into()
        });
        assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [kind]);
    }
}

#[test]
fn silent_server_causes_one_timeout_per_client() {
    let spec = LoadSpec { timeout_ns: 300 * MS, warmup: Warmup::DurationNs(0), ..spec() };
    let measurement = measure(&spec, |_| ready_made_peers::silent().into());
    assert_eq!(errors(&measurement), [("timeout", 4)]);
    assert_eq!((measurement.requests, measurement.unfinished, measurement.late_answers), (0, 4, 0));
}

#[test]
fn late_response_keeps_its_latency() {
    let spec = LoadSpec { timeout_ns: 50 * MS, warmup: Warmup::DurationNs(0), ..spec() };
    let serve = |_| ready_made_peers::ping_pong(|request| if request.number == 3 { 200 * MS } else { MS }).into();
    let measurement = measure(&spec, serve);
    assert_eq!((errors(&measurement), measurement.late_answers), (vec![("timeout", 4)], 4));
    assert_eq!(measurement.service.max, Some(200 * MS + ROUND_TRIP));
    assert_eq!(measurement.service.count, measurement.requests + 4);
}

#[test]
fn reassembles_responses_from_pieces() {
    let measurement = measure(&spec(), |_| ready_made_peers::drip(1000).into());
    assert_eq!(errors(&measurement), []);
    assert!(measurement.requests > 10_000);
    let network = Network { segment_bytes: 1..=3, read_bytes: 1..=3, delay_ns: 1_000..=50_000, ..Network::PERFECT };
    let measurement = outcome(&spec(), network, |_| ready_made_peers::ping_pong(|_| 0).into()).unwrap();
    assert_eq!(errors(&measurement), []);
    assert!(measurement.requests > 1000);
}

#[test]
fn endless_response_is_an_error_and_not_buffered() {
    let measurement = measure(&spec(), |_| ready_made_peers::endless(4096, 1000).into());
    assert_eq!(measurement.requests, 0);
    assert!(measurement.errors["wrong-answer"] > 0);
}

#[test]
fn load_survives_connection_resets() {
    let network = Network { reset_share: 0.01, ..Network::PERFECT };
    let measurement = outcome(&spec(), network, |_| ready_made_peers::ping_pong(|_| 10_000).into()).unwrap();
    assert!(measurement.errors["reset"] > 0 && measurement.reconnects > 0);
    assert_eq!(measurement.service.count, measurement.requests);
}

#[test]
fn refused_connects_end_load_immediately() {
    let refused = outcome(&spec(), Network::PERFECT, |_| Answer::Refuse).unwrap_err();
    assert_eq!(refused, Outcome::Unreachable(Some((Fault::Refused, "connection refused".to_owned()))));
}

#[test]
fn a_number_of_requests_is_met_exactly() {
    for requests in [1, 7, 1000, 12_345] {
        let spec = LoadSpec { stop: Stop::Requests { requests, max_ns: 60 * S }, ..spec() };
        let measurement = measure(&spec, |_| ready_made_peers::ping_pong(|_| 100_000).into());
        assert_eq!((measurement.requests, measurement.service.count), (requests, requests));
        let windows = measurement.windows.iter().map(|window| window.requests).sum::<u64>();
        assert_eq!((windows, measurement.stop_reason.as_str()), (requests, format!("{requests} requests").as_str()));
    }
}

#[test]
fn server_receives_exactly_the_request_limit() {
    let open = Arrivals::Poisson { rate_per_s: 3_000.0 };
    for (arrivals, pipeline, wrong_every) in [
        (Arrivals::closed(0), 1, u64::MAX),
        (Arrivals::closed(3 * MS), 1, 10),
        (Arrivals::closed(0), 16, u64::MAX),
        (Arrivals::closed(0), 1, 10),
        (open, 1, u64::MAX),
        (open, 4, 10),
    ] {
        let seen = std::rc::Rc::new(std::cell::Cell::new(0));
        let stop = Stop::Requests { requests: 1_000, max_ns: 60 * S };
        let spec = LoadSpec { stop, arrivals, pipeline, ..spec() };
        let counter = seen.clone();
        let measurement = measure(&spec, move |_| {
            let (seen, mut last) = (counter.clone(), 0);
            ready_made_peers::word_server(move |request, to| {
                seen.set(seen.get() + 1);
                last = (request.at + MS).max(last);
                let wrong = (request.number + 1).is_multiple_of(wrong_every);
                to.send(last - request.at, if wrong { [0; 4] } else { request.answer() });
            })
            .into()
        });
        let sum = |errors: &std::collections::BTreeMap<String, u64>| errors.values().sum::<u64>();
        let (warm, all) = (measurement.warmup_requests + sum(&measurement.warmup_errors), &measurement);
        assert_eq!((all.requests + sum(&all.errors), all.unfinished, all.unsent), (1_000, 0, 0), "{arrivals:?}");
        // A request that was sent again also reached the server the first time.
        let seen = seen.get() - all.asked_again;
        if pipeline == 1 || wrong_every == u64::MAX {
            assert_eq!((seen, all.asked_again), (warm + 1_000, 0), "{arrivals:?} {pipeline} {wrong_every}");
        } else {
            assert!((warm + 1_000..warm + 1_100).contains(&seen), "{seen}: {warm} of the warm-up");
        }
        assert_eq!(all.stop_reason, "1000 requests");
    }
}

#[test]
fn unmet_request_limit_is_reported() {
    let spec = LoadSpec { stop: Stop::Requests { requests: 1_000_000, max_ns: S }, ..spec() };
    let measurement = measure(&spec, |_| ready_made_peers::ping_pong(|_| MS).into());
    assert_eq!(measurement.stop_reason, "requests: not met within 1 s");
    assert_eq!(measurement.duration_ns, S);
}

#[test]
fn warm_up_can_be_a_number_of_requests() {
    let spec = LoadSpec { warmup: Warmup::Requests(1000), ..spec() };
    let measurement = measure(&spec, |_| ready_made_peers::ping_pong(|_| MS).into());
    assert!((1000..1100).contains(&measurement.warmup_requests), "{}", measurement.warmup_requests);
    near(measurement.requests as f64, 3960.0, 0.01);
}

#[test]
fn interval_rule_stops_once_interval_is_narrow() {
    let law = stats::Distribution::Exponential { mean: 2e6 };
    let serve = move |number| {
        let mut rng = stats::Rng::new(number);
        ready_made_peers::ping_pong(move |_| law.sample(&mut rng) as u64).into()
    };
    let stop = Stop::Interval { relative: 0.02, level: 0.95, max_ns: 100 * S };
    let met = measure(&LoadSpec { clients: 8, stop, ..spec() }, serve);
    assert!(met.stop_reason.starts_with("interval: +-"), "{}", met.stop_reason);
    assert!((2 * S..100 * S).contains(&met.duration_ns), "{}", met.duration_ns);
    near(met.service.sum / met.service.count as f64, 2.01e6, 0.04);

    let stop = Stop::Interval { relative: 0.000_1, level: 0.95, max_ns: 4 * S };
    let missed = measure(&LoadSpec { clients: 8, stop, ..spec() }, serve);
    assert_eq!(missed.stop_reason, "interval: not met within 4 s");
}

#[test]
fn volleys_rule_counts_its_priming_round() {
    let stop = Stop::Volley { round_requests: 4000, half_width_ns: 5000, max_ns: 180 * S };
    let measurement = measure(&LoadSpec { stop, ..spec() }, |_| ready_made_peers::ping_pong(|_| 100_000).into());
    let volley = measurement.volley.unwrap();
    assert_eq!((volley.samples, volley.rounds, measurement.requests), (4000, 0, 4000));
    near(volley.mean_us, 110.0, 1e-9);
    assert_eq!(volley.stddev_us, 0.0);
    near(measurement.duration_ns as f64, 1000.0 * 110_000.0, 0.02);

    // With a standard deviation of 100 us, a half-width of 1 us takes (1.96 * 100 / 1)^2 = 38,416 samples.
    let law = stats::Distribution::Exponential { mean: 1e5 };
    let stop = Stop::Volley { round_requests: 4000, half_width_ns: 1000, max_ns: 180 * S };
    let measurement = measure(&LoadSpec { stop, ..spec() }, move |number| {
        let mut rng = stats::Rng::new(number);
        ready_made_peers::ping_pong(move |_| law.sample(&mut rng) as u64).into()
    });
    let volley = measurement.volley.unwrap();
    assert_eq!(measurement.stop_reason, "volley's rule: target met");
    assert!((35_000..45_000).contains(&volley.samples), "{}", volley.samples);
    assert!(volley.rounds >= 9);
    near(volley.mean_us, 110.0, 0.02);
    near(measurement.service.sum / measurement.service.count as f64, volley.mean_us * 1e3, 0.001);
}

#[test]
fn thousand_clients_connect_in_small_batches() {
    let spec = LoadSpec { clients: 1000, ..spec() };
    let measurement = measure(&spec, |_| ready_made_peers::ping_pong(|_| 10 * MS).into());
    assert_eq!((measurement.connect.count, errors(&measurement)), (1000, vec![]));
    near(measurement.in_flight_mean, 1000.0, 0.001);
}

#[test]
fn same_seed_gives_same_measurement() {
    let spec = LoadSpec { arrivals: Arrivals::Poisson { rate_per_s: 5000.0 }, clients: 16, ..spec() };
    let network = Network { delay_ns: 10_000..=200_000, reset_share: 0.001, ..Network::PERFECT };
    let run =
        |spec: &LoadSpec| outcome(spec, network.clone(), |_| ready_made_peers::ping_pong(|_| 50_000).into()).unwrap();
    assert_eq!(run(&spec), run(&spec));
    assert_ne!(run(&spec), run(&LoadSpec { seed: 2, ..spec.clone() }));
}
