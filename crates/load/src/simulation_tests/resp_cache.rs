//! A cache over RESP2 on the simulated network, with hits and misses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use net::Nanos;
use net::sim::{Actions, Network, Peer};
use study::Measurement;
use study::spec::{Arrivals, Dialect, LoadSpec, Stop, Target, Warmup};
use study::workload::{Operations, preset};
use wire::resp::{Limits, Read, RequestReader};

use super::cache::of;
use super::{MS, S, errors, outcome_with};
use crate::check_spec::tests::spec;
use crate::protocol::{Cache, Redis, Shared};

type Values = Rc<RefCell<BTreeMap<Vec<u8>, Vec<u8>>>>;

struct Server {
    values: Values,
    reader: RequestReader,
    bytes: Vec<u8>,
}

impl Server {
    fn answer(&self, arguments: &[Vec<u8>]) -> Vec<u8> {
        let mut values = self.values.borrow_mut();
        match arguments[0].as_slice() {
            b"GET" => match values.get(&arguments[1]) {
                Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
                None => b"$-1\r\n".to_vec(),
            },
            b"SET" => {
                values.insert(arguments[1].clone(), arguments[2].clone());
                b"+OK\r\n".to_vec()
            }
            b"DEL" => format!(":{}\r\n", u8::from(values.remove(&arguments[1]).is_some())).into_bytes(),
            other => panic!("{}", other.escape_ascii()),
        }
    }
}

impl Peer for Server {
    fn on_data(&mut self, bytes: &[u8], _: Nanos, to: &mut Actions) {
        self.bytes.extend_from_slice(bytes);
        let mut requests = Vec::new();
        let mut at = 0;
        loop {
            match self.reader.read(&self.bytes[at..]) {
                Read::Request { used, request } => {
                    at += used;
                    requests.push(request.arguments().map(<[u8]>::to_vec).collect::<Vec<_>>());
                }
                Read::Need { used, .. } => {
                    at += used;
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        self.bytes.drain(..at);
        let mut out = Vec::new();
        for request in requests {
            out.extend_from_slice(&self.answer(&request));
        }
        to.send(MS, out);
    }
}

fn measure(network: Network, arrivals: Arrivals) -> Measurement {
    let mut workload = preset("ycsb-c").unwrap();
    workload.operations = Operations { get: 0.8, set: 0.1, delete: 0.1, read_modify_write: 0.0 };
    workload.keys.count = 100;
    workload.values.size = stats::Distribution::Constant { value: 40.0 }.into();
    let dialect = Dialect::Redis;
    let target = Target::Cache { address: "a:1".to_owned(), dialect, workload: Box::new(workload.clone()) };
    let stop = Stop::Requests { requests: 2_000, max_ns: 60 * S };
    let spec = LoadSpec { target, warmup: Warmup::DurationNs(0), stop, arrivals, ..spec() };
    let shared = Arc::new(Shared::new(&workload, spec.seed, 0).unwrap());
    let protocol = Cache::new(Redis::new(1000), &workload, shared.clone(), (spec.seed, 0, 1), None).unwrap();
    let values = Values::default();
    let serve = move |_| {
        let (values, reader) = (values.clone(), RequestReader::new(Limits::DEFAULT));
        Server { values, reader, bytes: Vec::new() }.into()
    };
    outcome_with(&spec, protocol, network, serve, Some(&shared)).unwrap()
}

#[test]
fn counts_hits_and_misses_for_any_fragmentation() {
    let pieces = Network { segment_bytes: 1..=7, read_bytes: 1..=7, ..Network::PERFECT };
    for network in [Network::PERFECT, pieces] {
        for think_ns in [0, 3 * MS] {
            let measurement = measure(network.clone(), Arrivals::closed(think_ns));
            assert_eq!((errors(&measurement), measurement.requests, measurement.reconnects), (vec![], 2_000, 0));
            let counts = of(&measurement).counts;
            assert!(counts.hits > 1_000 && counts.misses > 100, "{counts:?}");
        }
    }
}
