//! A load divided among several processes.

use study::generator_messages::Told;
use study::pool_measurements::pool;
use study::spec::Part;

use super::*;
use crate::arrivals::Timetable;
use crate::coordinator::Gate;

fn part(first: u32, whole: &LoadSpec) -> LoadSpec {
    LoadSpec { part: Some(Part { first, of: 3 }), ..whole.clone() }
}

#[test]
fn divides_clients_evenly_and_completely() {
    for (clients, workers) in [(1, 1), (10, 3), (7, 7), (1000, 16)] {
        let whole = LoadSpec { clients, threads: workers, ..spec() };
        let of_one = (0..workers).map(|nth| whole.clients_of(nth)).collect::<Vec<_>>();
        assert_eq!((of_one.iter().sum::<u32>(), whole.own_clients()), (clients, clients));
        assert!(of_one.iter().max().unwrap() - of_one.iter().min().unwrap() <= 1);
        let parts = (0..workers).map(|first| {
            let part = Some(Part { first, of: workers });
            LoadSpec { threads: 1, part, ..whole.clone() }.own_clients()
        });
        assert_eq!(parts.collect::<Vec<_>>(), of_one);
    }
}

/// An average of the generators' quantiles would differ from the pooled quantiles.
#[test]
fn pooling_merges_all_latencies() {
    let whole = LoadSpec { clients: 7, warmup: Warmup::DurationNs(0), ..spec() };
    let mut raw = Histogram::new();
    let parts = [200_000.0, 1e6, 30e6].into_iter().zip(0..).map(|(median, first)| {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let law = stats::Distribution::Lognormal { median, sigma: 0.8 };
        let (log, mut next) = (seen.clone(), stats::Rng::new(u64::from(first)));
        let measurement = measure(&part(first, &whole), move |_| {
            let (log, mut rng) = (log.clone(), stats::Rng::new(next.next_u64()));
            log.borrow_mut().push(Vec::new());
            let connection = log.borrow().len() - 1;
            ready_made_peers::ping_pong(move |_| {
                let delay = law.sample(&mut rng) as u64;
                log.borrow_mut()[connection].push(delay + ROUND_TRIP);
                delay
            })
            .into()
        });
        for connection in seen.borrow().iter() {
            let [answered @ .., _in_flight_at_the_end] = connection.as_slice() else { panic!("no request was sent") };
            answered.iter().for_each(|latency| raw.record(*latency));
        }
        measurement
    });
    let parts = parts.collect::<Vec<_>>();
    let all = pool(&parts).unwrap();

    assert_eq!(parts.iter().map(|part| part.clients).collect::<Vec<_>>(), [3, 2, 2]);
    assert_eq!((all.clients, all.threads, all.workers.len()), (7, 3, 3));
    assert_eq!(all.service, study::record::Histogram::from(&raw));
    assert_eq!((all.requests, all.unfinished), (raw.len(), 7));
    assert_eq!(all.windows.iter().map(|window| window.requests).sum::<u64>(), raw.len());
    assert_eq!(all.censored.as_ref().unwrap().in_flight.count, 7);
    near(all.in_flight_mean, 7.0, 0.001);
    let p99 = |part: &Measurement| latency(part, 0.99);
    let mean_of_p99s = parts.iter().map(p99).sum::<f64>() / 3.0;
    assert!(mean_of_p99s > 1.5 * p99(&all), "{mean_of_p99s} and {}: an average would have been wrong", p99(&all));
}

#[test]
fn parts_of_open_loop_send_at_different_times() {
    for arrivals in [Arrivals::Poisson { rate_per_s: 3000.0 }, Arrivals::Constant { rate_per_s: 3000.0 }] {
        let whole = LoadSpec { clients: 60, arrivals, ..spec() };
        let sent = [0, 1, 2].map(|first| {
            let seen = Rc::new(RefCell::new(Vec::new()));
            let log = seen.clone();
            let measurement = measure(&part(first, &whole), move |_| {
                let log = log.clone();
                ready_made_peers::ping_pong(move |request| {
                    log.borrow_mut().push(request.at);
                    MS
                })
                .into()
            });
            assert_eq!(measurement.offered_per_s, Some(3000.0));
            (measurement, seen.take())
        });
        let all = pool(&sent.each_ref().map(|(measurement, _)| measurement.clone())).unwrap();
        near((all.requests + all.unfinished) as f64, 3000.0, 0.06);
        let mut moments = sent.iter().flat_map(|(_, moments)| moments).collect::<Vec<_>>();
        let count = moments.len();
        moments.sort_unstable();
        moments.dedup();
        assert_eq!(moments.len(), count, "{arrivals:?}: two of them sent at one moment");
    }
}

#[test]
fn schedules_of_parts_add_up_to_one() {
    let arrivals = Arrivals::Poisson { rate_per_s: 900.0 };
    let whole = LoadSpec { clients: 3, threads: 3, arrivals, warmup: Warmup::DurationNs(0), ..spec() };
    let parts = [0, 1, 2].map(|first| {
        let spec = LoadSpec { threads: 1, ..part(first, &whole) };
        measure(&spec, |_| ready_made_peers::ping_pong(|_| MS).into())
    });
    let due = parts.iter().map(|part| part.requests + part.unfinished + part.unsent).sum::<u64>();
    let (from, until) = (parts[0].began_ns, parts[0].began_ns + parts[0].duration_ns);
    let of_worker = |nth| {
        let (index, workers) = (whole.worker(nth), whole.workers_of_all());
        let mut timetable = Timetable::new(arrivals, &[], whole.seed, (index, workers), from).unwrap();
        let mut moments = 0;
        while timetable.due() < until {
            timetable.advance();
            moments += 1;
        }
        moments
    };
    assert_eq!(due, (0..3).map(of_worker).sum::<u64>());
}

#[test]
fn refuses_to_pool_incompatible_measurements() {
    let [one, other] =
        [0, 1].map(|first| measure(&part(first, &spec()), |_| ready_made_peers::ping_pong(|_| MS).into()));
    assert_eq!(pool(&[]), Err("no measurements to pool".to_owned()));
    assert_eq!(pool(std::slice::from_ref(&one)).as_ref(), Ok(&one));
    let differs = Measurement { duration_ns: one.duration_ns + 1, ..other.clone() };
    assert_eq!(
        pool(&[one.clone(), other.clone(), differs]).unwrap_err().to_string(),
        "generators 1 and 3 differ in the measured time: 1000000000 and 1000000001"
    );
    let mut broken = other.clone();
    broken.service.count += 1;
    let why = pool(&[one.clone(), broken]).unwrap_err().to_string();
    assert!(why.starts_with("generator 2, service time: histogram count is "), "{why}");
    let cache = Measurement { cache: Some(Box::default()), ..other };
    assert_eq!(pool(&[one, cache]).unwrap_err(), "a load of several generators has no cache results");
}

#[test]
fn gate_delays_start_of_load() {
    let spec = LoadSpec { gate: true, ..spec() };
    let start = |opened_at: Option<u64>, says: u64| {
        let config =
            Config { connections: 4, receive_bytes: 4096, send_bytes_max: 65_536, pause_reads_above_bytes: usize::MAX };
        let mut driver = Sim::new(1, &config, Network::PERFECT);
        let first = Rc::new(RefCell::new(None));
        let log = first.clone();
        driver.serve("10.0.0.1:7".parse().unwrap(), move |_| {
            let log = log.clone();
            ready_made_peers::ping_pong(move |request| {
                log.borrow_mut().get_or_insert(request.at);
                MS
            })
            .into()
        });
        let (control, gate) = (Control::new(&spec, 1), Gate::default());
        let (mut outcome, mut connected) = (None, None);
        let tell = &mut |told| {
            if let Told::Connected(seen) = told {
                connected = Some(seen);
            }
        };
        let mut coordinator = Coordinator::new(&spec, &control, Some(&gate), tell, 0);
        let task = task(&spec, &control);
        worker::run(task, &mut driver, Pingpong::default(), Usage::default, |now| {
            if opened_at.is_some_and(|at| now >= at) {
                gate.open(says);
                gate.open(says + S);
            }
            outcome = outcome.take().or_else(|| coordinator.step(now, false));
        })
        .unwrap();
        let connected = connected.unwrap();
        assert_eq!((connected.reached, connected.clients), (4, 4));
        (outcome.unwrap(), first.take())
    };
    let (Outcome::Measured(ended), Some(first)) = start(Some(S), 3 * S) else { panic!("it was opened") };
    assert_eq!((ended.from, ended.until), (3 * S + 100 * MS, 4 * S + 100 * MS));
    assert!(first >= 3 * S, "nothing is sent before: {first}");
    // If the opening time has passed, the load starts as soon as every worker can have read the order.
    let (Outcome::Measured(ended), Some(first)) = start(Some(S), 1) else { panic!("it was opened") };
    assert!(first >= S && ended.from - ended.warmup_ns <= S + 20 * MS, "{ended:?}");
    assert_eq!(start(None, 0), (Outcome::NotStarted, None));
}

#[test]
fn rejects_stop_rules_that_differ_between_processes() {
    for (bad, word) in [
        (LoadSpec { stop: Stop::Requests { requests: 5, max_ns: S }, ..part(0, &spec()) }, "`stop` and `warmup`"),
        (LoadSpec { warmup: Warmup::Requests(5), gate: true, ..spec() }, "`stop` and `warmup`"),
        (part(3, &spec()), "workers 3 to 3 of 3 for 4 clients"),
        (part(u32::MAX, &spec()), "`part`"),
        (LoadSpec { clients: 2, ..part(0, &spec()) }, "of 3 for 2 clients"),
    ] {
        let mistakes = crate::check(&bad);
        assert!(mistakes.iter().any(|mistake| mistake.contains(word)), "{word}: {mistakes:?}");
    }
}
