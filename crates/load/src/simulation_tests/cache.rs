//! Caches on the simulated network: fills, causes of misses, exact counts, invalid responses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use net::Nanos;
use net::sim::{Actions, Answer, Network, Peer};
use study::record::{CacheCounts, CacheMeasurement};
use study::spec::{Arrivals, Dialect, LoadSpec, Stop, Target, Warmup};
use study::workload::{Operations, preset};
use study::{Measurement, Workload};
use wire::memcached::{Command, Limits, Read, RequestReader};

use super::{MS, ROUND_TRIP, S, errors, near, outcome_with};
use crate::check_spec::tests::spec;
use crate::protocol::{Cache, Memcached, Shared};

/// A cache with memcached's text protocol, shared by all connections, that counts the requests it receives.
#[derive(Default)]
pub(super) struct Store {
    pub(super) values: BTreeMap<Vec<u8>, Vec<u8>>,
    flags: BTreeMap<Vec<u8>, u32>,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) sets: u64,
    pub(super) deletes: u64,
    /// Maximum number of values; 0 for no limit.
    room: usize,
    /// Clears the cache after this many SETs; 0 for never.
    forgets_every: u64,
    /// Corrupts every n-th value returned; 0 for none.
    tears_every: u64,
    /// Returns flags of 0 with every n-th hit; 0 for never.
    forgets_flags_every: u64,
    pub(super) seen: Vec<String>,
    pub(super) seen_at: Vec<Nanos>,
}

struct Server {
    store: Rc<RefCell<Store>>,
    reader: RequestReader,
    bytes: Vec<u8>,
}

pub(super) fn serve(store: &Rc<RefCell<Store>>) -> impl FnMut(u64) -> Answer + 'static {
    let store = store.clone();
    move |_| Server { store: store.clone(), reader: RequestReader::new(Limits::DEFAULT), bytes: Vec::new() }.into()
}

impl Peer for Server {
    fn on_data(&mut self, bytes: &[u8], now: Nanos, to: &mut Actions) {
        self.bytes.extend_from_slice(bytes);
        let mut out = Vec::new();
        let mut store = self.store.borrow_mut();
        let mut at = 0;
        loop {
            match self.reader.read(&self.bytes[at..]) {
                Read::Command { used, command, .. } => {
                    at += used;
                    store.answer(command, &mut out);
                    store.seen_at.push(now);
                }
                Read::Need { used, .. } => {
                    at += used;
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        drop(store);
        self.bytes.drain(..at);
        if !out.is_empty() {
            to.send(MS, out);
        }
    }
}

impl Store {
    fn answer(&mut self, command: Command<'_>, out: &mut Vec<u8>) {
        match command {
            Command::Get(get) => {
                for key in get.keys {
                    self.seen.push(format!("get {}", key.escape_ascii()));
                    match self.values.get(key) {
                        None => self.misses += 1,
                        Some(value) => {
                            self.hits += 1;
                            let mut value = value.clone();
                            if self.tears_every > 0 && self.hits.is_multiple_of(self.tears_every) {
                                *value.last_mut().unwrap() ^= 1;
                            }
                            let forgets = self.forgets_flags_every;
                            let forgets = forgets > 0 && self.hits.is_multiple_of(forgets);
                            let flags = if forgets { 0 } else { self.flags[key] };
                            wire::memcached::compose_value(out, key, flags, &value, None);
                        }
                    }
                }
                out.extend_from_slice(b"END\r\n");
            }
            Command::Store(store) => {
                self.seen.push(format!("set {}", store.key.escape_ascii()));
                self.sets += 1;
                let full = self.room > 0 && self.values.len() >= self.room;
                if full && !self.values.contains_key(store.key) {
                    out.extend_from_slice(b"SERVER_ERROR out of memory storing object\r\n");
                    return;
                }
                if self.forgets_every > 0 && self.sets.is_multiple_of(self.forgets_every) {
                    self.values.clear();
                }
                self.values.insert(store.key.to_vec(), store.data.to_vec());
                self.flags.insert(store.key.to_vec(), store.client_flags);
                out.extend_from_slice(b"STORED\r\n");
            }
            Command::Delete(key) => {
                self.seen.push(format!("delete {}", key.escape_ascii()));
                self.deletes += 1;
                let there = self.values.remove(key).is_some();
                out.extend_from_slice(if there { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" });
            }
            other => panic!("{other:?}"),
        }
    }
}

fn workload(get: f64, set: f64, delete: f64, fill: bool) -> Workload {
    let mut workload = preset("ycsb-c").unwrap();
    workload.operations = Operations { get, set, delete, read_modify_write: 0.0 };
    workload.keys.count = 100;
    workload.keys.popularity = study::workload::Popularity::Uniform;
    workload.values.size = stats::Distribution::Constant { value: 40.0 }.into();
    workload.fill = fill;
    workload
}

fn cache(workload: Workload, requests: u64) -> LoadSpec {
    let target = Target::Cache { address: "a:1".to_owned(), dialect: Dialect::Memcached, workload: Box::new(workload) };
    let stop = Stop::Requests { requests, max_ns: 60 * S };
    LoadSpec { target, warmup: Warmup::DurationNs(0), stop, ..spec() }
}

fn measure_on(network: Network, spec: &LoadSpec, store: &Rc<RefCell<Store>>) -> Measurement {
    let Target::Cache { workload, .. } = &spec.target else { unreachable!("all specs here load caches") };
    let shared = Arc::new(Shared::new(workload, spec.seed, 0).unwrap());
    let most = workload.values.max_bytes;
    let protocol = Cache::new(Memcached::new(most), workload, shared.clone(), (spec.seed, 0, 1), None).unwrap();
    outcome_with(spec, protocol, network, serve(store), Some(&shared)).unwrap()
}

fn measure(spec: &LoadSpec, store: Store) -> (Measurement, Rc<RefCell<Store>>) {
    let store = Rc::new(RefCell::new(store));
    (measure_on(Network::PERFECT, spec, &store), store)
}

pub(super) fn of(measurement: &Measurement) -> &CacheMeasurement {
    measurement.cache.as_ref().expect("it is a cache")
}

pub(super) fn agrees(measurement: &Measurement, store: &Store) {
    let CacheMeasurement { counts, warmup, .. } = of(measurement);
    let both = |of: fn(&CacheCounts) -> u64| of(counts) + of(warmup);
    assert_eq!((both(|c| c.hits), both(|c| c.misses)), (store.hits, store.misses));
    assert_eq!(both(|c| c.sets + c.fills + c.rewrites + c.refused_sets), store.sets);
    assert_eq!(both(|c| c.deletes), store.deletes);
    let causes = counts.causes.named().into_iter().map(|(_, count)| count).sum::<u64>();
    assert_eq!(causes, counts.misses);
    let cache = of(measurement);
    assert_eq!((cache.get_hit.count, cache.get_miss.count), (counts.hits, counts.misses));
    assert_eq!(measurement.service.count, measurement.requests);
}

#[test]
fn counts_equal_the_servers_own() {
    for (pipeline, clients) in [(1, 4), (16, 4), (3, 1)] {
        let spec = LoadSpec { pipeline, clients, ..cache(workload(0.8, 0.1, 0.1, true), 20_000) };
        let (measurement, store) = measure(&spec, Store::default());
        assert_eq!((errors(&measurement), measurement.requests, measurement.unfinished), (vec![], 20_000, 0));
        agrees(&measurement, &store.borrow());
        let counts = of(&measurement).counts;
        assert_eq!(counts.fills, counts.misses);
        let causes = counts.causes;
        assert_eq!((causes.capacity, causes.expiry, causes.refused), (0, 0, 0), "{causes:?}");
        assert!(causes.invalidation > 500 && causes.compulsory >= 60, "{causes:?}");
        assert_eq!(of(&measurement).footprint_keys, 100);
        assert_eq!(of(&measurement).footprint_bytes, 100 * (23 + 40));
    }
}

#[test]
fn fill_is_next_request_after_its_miss() {
    let spec = LoadSpec { clients: 1, ..cache(workload(1.0, 0.0, 0.0, true), 500) };
    let (measurement, store) = measure(&spec, Store::default());
    agrees(&measurement, &store.borrow());
    let mut there = std::collections::BTreeSet::new();
    let seen = &store.borrow().seen;
    for (index, request) in seen.iter().enumerate() {
        if let Some(key) = request.strip_prefix("get ")
            && there.insert(key)
        {
            assert_eq!(seen.get(index + 1), Some(&format!("set {key}")));
        }
    }
    let counts = of(&measurement).counts;
    assert_eq!((counts.misses, counts.causes.compulsory), (there.len() as u64, there.len() as u64));
    assert_eq!(of(&measurement).fill.min, Some(MS + ROUND_TRIP));
    let (_, store) = measure(&LoadSpec { clients: 1, ..cache(workload(1.0, 0.0, 0.0, false), 500) }, Store::default());
    assert_eq!((store.borrow().sets, store.borrow().hits), (0, 0));
}

#[test]
fn request_stream_depends_only_on_seed() {
    let asked = |store: Store, fill: bool| {
        let spec = LoadSpec { clients: 1, ..cache(workload(0.8, 0.1, 0.1, fill), 2_000) };
        let (_, store) = measure(&spec, store);
        let seen = store.borrow().seen.clone();
        seen.into_iter().filter(|request| !request.starts_with("set")).collect::<Vec<_>>()
    };
    let good = asked(Store::default(), true);
    assert_eq!(good, asked(Store { forgets_every: 7, ..Store::default() }, true));
    assert_eq!(good, asked(Store::default(), false));
}

#[test]
fn counts_capacity_misses_and_refused_sets() {
    let spec = cache(workload(0.9, 0.1, 0.0, true), 10_000);
    let (measurement, store) = measure(&spec, Store { forgets_every: 200, ..Store::default() });
    agrees(&measurement, &store.borrow());
    let causes = of(&measurement).counts.causes;
    assert!(causes.capacity > 500 && causes.invalidation == 0 && causes.refused == 0, "{causes:?}");

    let (measurement, store) = measure(&spec, Store { room: 30, ..Store::default() });
    agrees(&measurement, &store.borrow());
    let counts = of(&measurement).counts;
    assert_eq!(errors(&measurement), []);
    assert!(counts.refused_sets > 3_000 && counts.causes.refused > 3_000, "{counts:?}");
    assert_eq!((counts.causes.capacity, counts.causes.invalidation), (0, 0));
    near(counts.hit_ratio().unwrap(), 0.3, 0.05);
}

#[test]
fn wrong_value_is_an_error_not_a_hit() {
    let (measurement, store) =
        measure(&cache(workload(1.0, 0.0, 0.0, true), 5_000), Store { tears_every: 10, ..Store::default() });
    let (hits, wrong) = (of(&measurement).counts.hits, measurement.errors["value"]);
    assert_eq!((hits + wrong, wrong), (store.borrow().hits, store.borrow().hits / 10));
    assert_eq!(measurement.requests + wrong, 5_000);
    let words = &measurement.error_examples["value"];
    assert!(words.contains("40 bytes") && words.contains("another seed"), "{words}");
    assert!(words.contains(": at offset 39, found `"), "{words}");
}

#[test]
fn verifies_flags() {
    let store = Store { forgets_flags_every: 10, ..Store::default() };
    let (measurement, store) = measure(&cache(workload(1.0, 0.0, 0.0, true), 5_000), store);
    let (hits, wrong) = (of(&measurement).counts.hits, measurement.errors["value"]);
    assert_eq!((hits + wrong, wrong), (store.borrow().hits, store.borrow().hits / 10));
    let words = &measurement.error_examples["value"];
    assert!(words.starts_with("a value with flags 0, but ") && words.contains(" were set; "), "{words}");
    let distinct = store.borrow().flags.values().copied().collect::<std::collections::BTreeSet<_>>();
    assert!(distinct.len() == 100 && distinct.iter().any(|&flags| flags > 1 << 31), "of all 32 bits");
}

#[test]
fn warm_up_by_operations_is_exact() {
    for arrivals in [Arrivals::closed(0), Arrivals::Poisson { rate_per_s: 2_000.0 }] {
        let spec =
            LoadSpec { warmup: Warmup::Requests(1_000), arrivals, ..cache(workload(0.9, 0.05, 0.05, true), 2_000) };
        let (measurement, store) = measure(&spec, Store::default());
        assert_eq!((measurement.warmup_requests, measurement.requests, measurement.unsent), (1_000, 2_000, 0));
        agrees(&measurement, &store.borrow());
        let warmup = of(&measurement).warmup;
        assert_eq!(warmup.hits + warmup.misses + warmup.sets + warmup.deletes, 1_000);
        assert_eq!(of(&measurement).transient.iter().map(|window| window.1).sum::<u64>(), warmup.hits + warmup.misses);
    }
}

#[test]
fn fills_are_not_scheduled() {
    let arrivals = Arrivals::Constant { rate_per_s: 1_000.0 };
    let stop = Stop::Duration { duration_ns: 2 * S };
    let spec = LoadSpec { arrivals, stop, clients: 20, ..cache(workload(1.0, 0.0, 0.0, true), 1) };
    let (measurement, store) = measure(&spec, Store { forgets_every: 2, ..Store::default() });
    near(measurement.requests as f64, 2_000.0, 0.01);
    assert!(of(&measurement).counts.fills > 1_500, "{:?}", of(&measurement).counts);
    assert!(store.borrow().sets > 1_500);
    assert_eq!(measurement.lag_connection.unwrap().max, Some(0));
}

#[test]
fn read_modify_write_sends_one_set() {
    let mut workload = workload(0.0, 0.0, 0.0, true);
    workload.operations.read_modify_write = 1.0;
    let (measurement, store) = measure(&cache(workload, 1_000), Store::default());
    agrees(&measurement, &store.borrow());
    let counts = of(&measurement).counts;
    assert_eq!((counts.rewrites, counts.fills, counts.hits + counts.misses), (1_000, 0, 1_000));
}

#[test]
fn steady_warm_up_waits_for_steady_state() {
    let mut filling = workload(1.0, 0.0, 0.0, true);
    filling.keys.count = 8_000;
    let stop = Stop::Duration { duration_ns: S };
    let steady = |max_ns| Warmup::Steady { max_ns };
    // With 4,000 GETs per second from 4 clients, nine in ten keys are filled after 5 s.
    let spec = LoadSpec { stop, warmup: steady(100 * S), ..cache(filling, 1) };
    let (measurement, _) = measure(&spec, Store::default());
    let words = of(&measurement).steadiness.clone().unwrap();
    assert!(words.starts_with("steady after") && measurement.warmup_ns > 4 * S, "{words}");
    assert!(of(&measurement).counts.hit_ratio().unwrap() > 0.9);
    assert!(of(&measurement).transient.len() as u64 >= measurement.warmup_ns / spec.window_ns);
    let (cut, _) = measure(&LoadSpec { warmup: steady(3 * S), ..spec.clone() }, Store::default());
    assert!(of(&cut).steadiness.clone().unwrap().starts_with("not steady within 3"), "{:?}", of(&cut).steadiness);
}

#[test]
fn handles_fragments_resets_and_other_seeds() {
    let network = Network { segment_bytes: 1..=7, read_bytes: 1..=7, delay_ns: 1_000..=50_000, ..Network::PERFECT };
    let store = Rc::new(RefCell::new(Store::default()));
    let spec = LoadSpec { pipeline: 4, ..cache(workload(0.8, 0.1, 0.1, true), 2_000) };
    let measurement = measure_on(network, &spec, &store);
    assert_eq!(errors(&measurement), []);
    agrees(&measurement, &store.borrow());
    // The same keys now hold values of a different seed, which must not count as hits.
    let other =
        measure_on(Network::PERFECT, &LoadSpec { seed: 2, ..cache(workload(1.0, 0.0, 0.0, false), 500) }, &store);
    assert_eq!(of(&other).counts.hits, 0);

    let network = Network { reset_share: 0.005, ..Network::PERFECT };
    let store = Rc::new(RefCell::new(Store::default()));
    let measurement = measure_on(network, &cache(workload(0.8, 0.1, 0.1, true), 5_000), &store);
    let lost = measurement.errors["reset"];
    assert!(lost > 0 && measurement.requests < 5_000 && measurement.requests + 2 * lost >= 5_000);
}

#[test]
fn rejects_unsupported_cache_workloads() {
    let mut timed = workload(1.0, 0.0, 0.0, true);
    timed.ttl = vec![study::workload::Ttl { seconds: 5, share: 1.0 }];
    timed.keys.count = 1 << 31;
    timed.operations.get = 0.0;
    let mut spec = LoadSpec { connection: study::spec::Connection::PerRequest, ..cache(timed, 1) };
    spec.stop = Stop::Volley { round_requests: 1, half_width_ns: 1, max_ns: S };
    if let Target::Cache { dialect, .. } = &mut spec.target {
        *dialect = Dialect::HttpCache;
    }
    let mistakes = crate::check(&spec).join("\n");
    for words in ["operations", "keys.count", "ttl", "not `keep-alive`", "volley"] {
        assert!(mistakes.contains(words), "{words}: {mistakes}");
    }
    let steady = LoadSpec { warmup: Warmup::Steady { max_ns: S }, ..crate::check_spec::tests::spec() };
    assert!(crate::check(&steady)[0].contains("steady"));
}
