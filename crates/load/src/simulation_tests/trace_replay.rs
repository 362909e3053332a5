//! Traces on the simulated network: order, times, keys, and the end of the trace.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use net::Nanos;
use net::sim::Network;
use study::record::TraceReplay;
use study::spec::{Arrivals, Dialect, LoadSpec, Stop, Target, Warmup};
use study::workload::Gaps;
use study::{Measurement, Workload};

use super::cache::{Store, agrees, of, serve};
use super::{MS, S, errors, outcome_with};
use crate::check_spec::tests::spec;
use crate::coordinator::Outcome;
use crate::protocol::{Cache, Memcached, Shared};
use crate::trace_distributor::TraceDistributor;

fn workload(trace: &str) -> Workload {
    study::parse_workload(&format!("[load.workload]\n{trace}")).unwrap()
}

fn replaying(workload: Workload) -> LoadSpec {
    let recorded = workload.trace.as_ref().is_some_and(|trace| trace.gaps == Gaps::Recorded);
    let arrivals = if recorded { Arrivals::Recorded } else { Arrivals::closed(0) };
    let target = Target::Cache { address: "a:1".to_owned(), dialect: Dialect::Memcached, workload: Box::new(workload) };
    let stop = Stop::Duration { duration_ns: 60 * S };
    LoadSpec { target, clients: 1, arrivals, warmup: Warmup::DurationNs(0), stop, ..spec() }
}

type Replayed = (Result<Measurement, Outcome>, Store, Result<(), String>);

fn replay(spec: &LoadSpec, bytes: &[u8]) -> Replayed {
    let Target::Cache { workload, .. } = &spec.target else { unreachable!("all specs here load caches") };
    let shared = Arc::new(Shared::new(workload, spec.seed, 0).unwrap());
    let store = Rc::new(RefCell::new(Store::default()));
    let seen = shared.replayed.as_ref().unwrap();
    let (dealer, mut tapes) = TraceDistributor::new(workload, &shared.texts, spec.seed, 1, seen).unwrap();
    let (outcome, dealt) = std::thread::scope(|scope| {
        let dealing = scope.spawn(|| dealer.deal(bytes));
        let codec = Memcached::new(workload.values.max_bytes);
        let protocol = Cache::new(codec, workload, shared.clone(), (spec.seed, 0, 1), tapes.pop()).unwrap();
        let outcome = outcome_with(spec, protocol, Network::PERFECT, serve(&store), Some(&shared));
        (outcome, dealing.join().unwrap())
    });
    let store = std::mem::take(&mut *store.borrow_mut());
    (outcome, store, dealt)
}

fn whole(workload: Workload, text: &str) -> (Measurement, Store) {
    let (measurement, store, dealt) = replay(&replaying(workload), text.as_bytes());
    dealt.unwrap();
    let measurement = measurement.unwrap();
    assert_eq!(errors(&measurement), []);
    agrees(&measurement, &store);
    (measurement, store)
}

fn trace_of(measurement: &Measurement) -> TraceReplay {
    of(measurement).trace.clone().expect("a trace was replayed")
}

fn seen(store: &Store) -> Vec<String> {
    let mut keys = Vec::new();
    let told = store.seen.iter().map(|request| {
        let (verb, key) = request.split_once(' ').unwrap();
        let index = keys.iter().position(|known| known == key).unwrap_or_else(|| {
            keys.push(key.to_owned());
            keys.len() - 1
        });
        format!("{verb} {index}:{}", key.len())
    });
    told.collect()
}

const TWITTER: &str = "trace = { file = \"t\", format = \"twitter\" }";
const TWITTER_TIMED: &str = "trace = { file = \"t\", format = \"twitter\", gaps = \"recorded\" }";

#[test]
fn replays_operations_in_order_with_recorded_lengths() {
    let text = "0,one,21,0,7,get,0\n0,one,21,120,7,set,60\n1,two,9,5,7,add,0\n1,one,21,120,7,gets,0\n2,two,9,0,7,delete,0\n\
                2,two,9,0,7,get,0\n2,one,21,80,7,cas,0\n3,one,21,80,7,get,0\n";
    let (measurement, store) = whole(workload(TWITTER), text);
    let expected = ["get 0:21", "set 0:21", "set 1:9", "get 0:21", "delete 1:9", "get 1:9", "set 0:21", "get 0:21"];
    assert_eq!(seen(&store), expected);
    let lengths = store.values.values().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths, [80]);
    let counts = of(&measurement).counts;
    // The format records writes, so misses are not filled.
    assert_eq!((counts.hits, counts.misses, counts.sets, counts.deletes, counts.fills), (2, 2, 3, 1, 0));
    assert_eq!((counts.causes.compulsory, counts.causes.invalidation), (1, 1));
    assert_eq!(counts.hit_bytes, 200);
    assert_eq!((measurement.stop_reason.as_str(), measurement.requests), ("the end of the trace", 8));
    let trace = trace_of(&measurement);
    assert_eq!((trace.operations, trace.keys, trace.ended, trace.keys_lengthened), (8, 2, true, 0));
    assert_eq!((trace.key_bytes_mean, trace.key_bytes_recorded_mean), (Some(15.0), Some(15.0)));
}

#[test]
fn short_keys_are_lengthened_until_distinct() {
    // 2,000 keys with a recorded length of one byte need up to three characters each.
    let text = (0..2_000).map(|key| format!("0,k{key},1,4,7,set,0\n")).collect::<String>();
    let (measurement, store) = whole(workload(TWITTER), &text);
    assert_eq!(store.values.len(), 2_000);
    let trace = trace_of(&measurement);
    let exact = (32 + (1024 - 32) * 2 + (2_000 - 1024) * 3) as f64 / 2_000.0;
    assert_eq!((trace.key_bytes_mean, trace.key_bytes_recorded_mean), (Some(exact), Some(1.0)));
    assert_eq!(trace.keys_lengthened, 2_000 - 32);
    let bytes = store.values.keys().map(Vec::len).sum::<usize>() as f64;
    assert_eq!(bytes / 2_000.0, exact);
}

#[test]
fn recorded_gaps_are_exact() {
    let text = "100,a,5,1,7,set,0\n100,a,5,1,7,get,0\n100,a,5,1,7,get,0\n100,b,5,1,7,set,0\n102,a,5,1,7,get,0\n102,b,5,1,7,get,0\n";
    let times = |speed: &str| {
        let spec = replaying(workload(&format!(
            "trace = {{ file = \"t\", format = \"twitter\", gaps = \"recorded\", speed = {speed} }}"
        )));
        let (measurement, store, dealt) = replay(&LoadSpec { clients: 3, ..spec }, text.as_bytes());
        dealt.unwrap();
        let measurement = measurement.unwrap();
        assert!(measurement.response.is_some() && measurement.requests == 6, "{measurement:?}");
        assert_eq!((errors(&measurement), measurement.unsent), (vec![], 0));
        assert_eq!(measurement.lag_connection.as_ref().unwrap().max, Some(0));
        assert_eq!(measurement.lag_thread.as_ref().unwrap().max, Some(0));
        let first = store.seen_at[0];
        let offered = measurement.offered_per_s.unwrap() * measurement.duration_ns as f64 / 1e9;
        assert!((offered - 6.0).abs() < 1e-9, "{offered}");
        store.seen_at.iter().map(|at| at - first).collect::<Vec<Nanos>>()
    };
    assert_eq!(times("1"), [0, 250 * MS, 500 * MS, 750 * MS, 2 * S, 2 * S + 500 * MS]);
    assert_eq!(times("2.5"), [0, 100 * MS, 200 * MS, 300 * MS, 800 * MS, S]);
}

#[test]
fn recorded_gaps_do_not_wait_for_slow_server() {
    // The trace has 3,000 operations per second for two seconds, and its connection takes 1.01 ms for each.
    let text = (0..6_000).map(|n| format!("{},k,5,1,7,get,0\n", n / 3_000)).collect::<String>();
    let spec = LoadSpec { stop: Stop::Duration { duration_ns: 2 * S }, ..replaying(workload(TWITTER_TIMED)) };
    let (measurement, ..) = replay(&spec, text.as_bytes());
    let measurement = measurement.unwrap();
    assert!((1_950..2_000).contains(&measurement.requests), "{}", measurement.requests);
    assert_eq!(measurement.requests + measurement.unfinished + measurement.unsent, 6_000);
    assert_eq!(measurement.offered_per_s, Some(3_000.0));
    assert!(!trace_of(&measurement).ended || measurement.unsent > 0);
}

#[test]
fn replays_repeats_and_fills() {
    let text =
        "key,op,size,op_count,key_size,ttl\n7,GET,0,1,40,0\n7,SET,99,1,40,0\n7,GET,99,5000,40,0\n7,DELETE,0,2,40,0\n";
    let (measurement, store) = whole(workload("trace = { file = \"t\", format = \"meta-kv\" }"), text);
    let counts = of(&measurement).counts;
    assert_eq!((counts.hits, counts.misses, counts.sets, counts.deletes), (5_000, 1, 1, 2));
    assert_eq!(store.seen.len(), 5_004);

    // The format has only reads, so misses are filled with values of the recorded size.
    let record = |time: u32, id: u64, size: u32| {
        [&time.to_le_bytes()[..], &id.to_le_bytes(), &size.to_le_bytes(), &(-1_i64).to_le_bytes()].concat()
    };
    let bytes = [record(1, 5, 300), record(1, 6, 70), record(1, 5, 300)].concat();
    let spec = replaying(workload(
        "trace = { file = \"t\", format = \"oracle-general\" }\nkeys.size = { law = \"constant\", bytes = 20 }",
    ));
    let (measurement, store, dealt) = replay(&spec, &bytes);
    dealt.unwrap();
    let counts = of(&measurement.unwrap()).counts;
    assert_eq!(seen(&store), ["get 0:20", "set 0:20", "get 1:20", "set 1:20", "get 0:20"]);
    assert_eq!((counts.hits, counts.fills, counts.hit_bytes), (1, 2, 280));

    let plain =
        workload("trace = { file = \"t\", format = \"plain\" }\nvalues.size = { law = \"constant\", bytes = 33 }");
    let (measurement, store) = whole(plain, "x\ny\nx\n");
    assert_eq!(seen(&store), ["get 0:1", "set 0:1", "get 1:1", "set 1:1", "get 0:1"]);
    assert_eq!(of(&measurement).counts.hit_bytes, 33);
}

#[test]
fn stop_rule_may_end_before_or_after_trace() {
    let text = (0..3_000).map(|n| format!("{},k{},5,1,7,set,0\n", n / 100, n % 7)).collect::<String>();
    let reason = |warmup, requests, trace: &str| {
        let stop = Stop::Requests { requests, max_ns: 60 * S };
        let spec = LoadSpec { stop, warmup, ..replaying(workload(trace)) };
        let (outcome, store, dealt) = replay(&spec, text.as_bytes());
        dealt.unwrap();
        outcome.map(|measurement| (measurement.stop_reason, measurement.requests, store.sets))
    };
    for trace in [TWITTER, TWITTER_TIMED] {
        let none = Warmup::DurationNs(0);
        assert_eq!(reason(none, 1_000, trace), Ok(("1000 requests".to_owned(), 1_000, 1_000)), "{trace}");
        assert_eq!(reason(none, 3_000, trace), Ok(("3000 requests".to_owned(), 3_000, 3_000)), "{trace}");
        let early = "the end of the trace, before 5000 requests".to_owned();
        assert_eq!(reason(none, 5_000, trace), Ok((early, 3_000, 3_000)), "{trace}");
        assert_eq!(reason(Warmup::Requests(500), 1_000, trace), Ok(("1000 requests".to_owned(), 1_000, 1_500)));
        assert_eq!(reason(Warmup::Requests(4_000), 1_000, trace), Err(Outcome::InputEnded), "{trace}");
        assert_eq!(reason(Warmup::DurationNs(50 * S), 10, trace), Err(Outcome::InputEnded), "{trace}");
    }
}

#[test]
fn replay_errors_name_their_position() {
    let problem = |trace: &str, bytes: &[u8]| {
        let (_, _, dealt) = replay(&replaying(workload(trace)), bytes);
        dealt.unwrap_err().to_string()
    };
    let bad = b"0,k,5,1,7,get,0\n0,k,5,1,7,peek,0\n";
    assert_eq!(problem(TWITTER, bad), "t:2: unknown operation `peek`");
    assert_eq!(problem(TWITTER, b""), "the trace `t` is empty");
    let back = b"5,k,5,1,7,get,0\n4,k,5,1,7,get,0\n";
    assert_eq!(problem(TWITTER_TIMED, back), "t:2: time 4 after 5: the times of a trace must not decrease");
    let untimed = "trace = { file = \"t\", format = \"meta-kv\", gaps = \"recorded\" }";
    let lines = b"key,op,size\n1,GET,0\n";
    assert_eq!(problem(untimed, lines), "t:2: no time, required by `gaps = \"recorded\"`");
    let cut = "trace = { file = \"t\", format = \"oracle-general\" }";
    assert_eq!(problem(cut, &[0; 30]), "t: record 2: the file ends after 6 of its 24 bytes");
}

#[test]
fn operations_are_dealt_round_robin() {
    let workload = workload(TWITTER);
    let shared = Shared::new(&workload, 1, 0).unwrap();
    let seen = shared.replayed.as_ref().unwrap();
    let (dealer, mut tapes) = TraceDistributor::new(&workload, &shared.texts, 1, 3, seen).unwrap();
    let text = (0..10_000).map(|n| format!("0,k{n},5,1,7,get,0\n")).collect::<String>();
    let keys = std::thread::scope(|scope| {
        scope.spawn(|| dealer.deal(text.as_bytes()).unwrap());
        let mut keys = vec![Vec::new(); 3];
        // Workers take turns, because a worker that reads ahead must wait for the other workers.
        while tapes
            .iter_mut()
            .zip(&mut keys)
            .any(|(tape, keys)| tape.next().map(|op| keys.push(op.operation.key)).is_some())
        {}
        for (tape, keys) in tapes.iter_mut().zip(&mut keys) {
            keys.extend(std::iter::from_fn(|| tape.next()).map(|op| op.operation.key));
        }
        keys
    });
    for (index, keys) in keys.iter().enumerate() {
        assert_eq!(*keys, (0..10_000).filter(|key| key % 3 == index as u64).collect::<Vec<_>>());
    }
}
