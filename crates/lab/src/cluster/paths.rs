//! The paths between the machines of a cluster, measured before the first trial with the server and the generator that are there anyway.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use study::node::Serve;
use study::plan::{LoadPlan, Point, SubjectPlan};
use study::record::Link;
use study::spec::{
    Arrivals, Backend, Connection, Expect, HttpRequest, LoadSpec, Protocol, SPEC_VERSION, Stop, Target, Warmup,
};

use crate::cluster::{Cluster, sides};
use crate::end::{End, failed};
use crate::load::{Load, broken};
use crate::subject::Side;

/// How long each of the two measurements of a path takes, ns.
const DURATION_NS: u64 = 200_000_000;
/// And so long, ns, where nothing came in that time: a path round the world, or a machine that others keep busy.
const LONG_NS: u64 = 3_000_000_000;
/// A transfer is that of bodies of so many bytes.
const BODY_BYTES: u32 = 1 << 20;
/// Connections that carry bodies: enough that their number is not what limits them.
const STREAMS: u32 = 4;
/// A machine that has not measured its path after so long does not.
const PATIENCE: Duration = Duration::from_secs(20);

/// The path of each generator's machine, in their order.
pub(super) fn measure(cluster: &Cluster, interrupted: &dyn Fn() -> bool) -> Result<Vec<Link>, End> {
    let cpus = cluster.subject.cpus.iter().map(|cpu| cpu.index).collect();
    let serve =
        Serve { point: point(), address: cluster.address(), cpus, proxy_cpus: Vec::new(), companion_cpus: Vec::new() };
    let mut side = cluster.subject(&serve, interrupted);
    let standing = side.start()?;
    let address = SocketAddr::new(cluster.address(), standing.port);
    let paths = cluster.generators.members.iter().map(|member| {
        let cpus = member.cpus.iter().map(|cpu| cpu.index).collect::<Vec<_>>();
        let load = |path: &str, clients| {
            let load = |duration_ns| {
                let spec = spec(address, path, clients, &cpus, duration_ns);
                let generator = sides::Generator::start(&member.name, &member.link, &spec, interrupted)?;
                let load = Load::new(vec![(Box::new(generator), None)], Duration::ZERO);
                super::finish(load, PATIENCE, &mut |_| {}, interrupted).map(|(measurement, _)| measurement)
            };
            let measured = load(DURATION_NS)?;
            if measured.requests > 0 { Ok(measured) } else { load(LONG_NS) }
        };
        let near = load("/bytes/0", 1)?;
        let bulk = load(&format!("/bytes/{BODY_BYTES}"), STREAMS)?;
        let round_trip = stats::Histogram::try_from(&near.service).ok().and_then(|histogram| histogram.quantile(0.5));
        let seconds = bulk.duration_ns as f64 / 1e9;
        Ok(Link {
            // Bodies on their way when the time was over have come in part.
            receive_bytes_per_s: bulk.received_bytes as f64 / seconds,
            round_trip_ns_p50: round_trip
                .ok_or_else(|| broken(format!("{}: no answer from {address}", member.name)))?,
        })
    });
    let paths = paths.collect::<Result<Vec<_>, End>>().map_err(|end| match end {
        End::Failed(failure) => {
            failed(failure.kind, format!("{}: is {address} open to it, or is there a firewall?", failure.message))
        }
        end => end,
    });
    if !matches!(paths, Err(End::Interrupted | End::Lost(_))) {
        side.stop(paths.is_err())?;
    }
    paths
}

fn point() -> Point {
    let duration_ns = DURATION_NS;
    Point {
        factors: BTreeMap::new(),
        subject: SubjectPlan {
            build: None,
            command: "quintain serve http --host {address} -p {port}".to_owned(),
            container: None,
            directory: None,
            revision: None,
            environment: BTreeMap::new(),
            cpus: 1,
            cpus_wanted: None,
            port: None,
            ready_timeout_ns: 10_000_000_000,
            stop_timeout_ns: 2_000_000_000,
            verify: None,
        },
        proxies: Vec::new(),
        proxy_cpus: 0,
        companions: Vec::new(),
        companion_cpus: 0,
        load: LoadPlan {
            protocol: Protocol::Http,
            http: None,
            workload: None,
            journey: None,
            clients: 1,
            pipeline: 1,
            connection: Connection::KeepAlive,
            threads: None,
            cpus: None,
            share_cpus: true,
            backend: Backend::Auto,
            arrivals: Arrivals::Closed { think_ns: 0 },
            search: None,
            share: None,
            warmup: Warmup::DurationNs(0),
            stop: Stop::Duration { duration_ns },
            window_ns: duration_ns,
            timeout_ns: duration_ns,
        },
        unrunnable: None,
    }
}

fn spec(address: SocketAddr, path: &str, clients: u32, cpus: &[u32], duration_ns: u64) -> LoadSpec {
    let request = HttpRequest {
        weight: 1,
        method: "GET".to_owned(),
        target: path.to_owned(),
        headers: vec![("Host".to_owned(), address.to_string())],
        body: Vec::new(),
    };
    LoadSpec {
        version: SPEC_VERSION,
        target: Target::Http {
            address: address.to_string(),
            requests: vec![request],
            tls: None,
            expect: Expect::default(),
        },
        clients,
        pipeline: 1,
        connection: Connection::KeepAlive,
        threads: 1,
        cpus: cpus.to_vec(),
        backend: Backend::Auto,
        arrivals: Arrivals::Closed { think_ns: 0 },
        warmup: Warmup::DurationNs(duration_ns / 4),
        stop: Stop::Duration { duration_ns },
        window_ns: duration_ns,
        timeout_ns: 5_000_000_000,
        spin_ns: 0,
        seed: 1,
        part: None,
        gate: false,
    }
}
