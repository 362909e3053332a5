//! Measures the network paths of a cluster with its server and generators before the first trial.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use study::node::Serve;
use study::plan::{LoadPlan, Point, SubjectPlan};
use study::record::{FailureKind, Link, Measurement};
use study::spec::{Arrivals, Backend, Connection, Expect, HttpRequest, LoadSpec, Protocol, Stop, Target, Warmup};

use crate::cluster::{Cluster, Member, sides};
use crate::end::{End, failed};
use crate::generator::load_spec;
use crate::load::Load;
use crate::subject::Side;
use crate::topology::Share;

/// Duration of each of the two measurements of a path, ns.
const DURATION_NS: u64 = 200_000_000;
/// Duration of a retry if nothing arrived in that time, for very long paths or busy machines, ns.
const LONG_NS: u64 = 3_000_000_000;
/// Duration of the transfer to all generators at once, ns.
const TOGETHER_NS: u64 = 400_000_000;
const BODY_BYTES: u32 = 1 << 20;
/// Connections that carry bodies: enough not to limit the throughput.
const STREAMS: u32 = 4;
/// CPU share of server or generator above which the paths were not the limit of a transfer.
const BUSY: f64 = 0.7;
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn measure(cluster: &Cluster, interrupted: &dyn Fn() -> bool) -> Result<Vec<Link>, End> {
    let serve = Serve {
        point: point()?,
        address: cluster.address(),
        cpus: cpus(&cluster.subject),
        proxy_cpus: Vec::new(),
        companion_cpus: Vec::new(),
    };
    let side = sides::RemoteServer::start(&cluster.subject.link, &serve, interrupted).map_err(|(end, _)| end)?;
    let address = SocketAddr::new(cluster.address(), side.standing().port);
    let bulk = format!("/bytes/{BODY_BYTES}");
    let finish =
        |load: Load<'_>| super::finish(load, PATIENCE, &mut |_| {}, interrupted).map(|(measurement, _)| measurement);
    let members = &cluster.generators.members;
    let paths = members.iter().map(|member| {
        let load = |path: &str, clients| {
            let load = |duration_ns| {
                let spec = spec(address, path, clients, &cpus(member), duration_ns);
                let generator = sides::RemoteGenerator::start(member, &spec, interrupted)?;
                finish(Load::new(vec![(Box::new(generator), None)], Duration::ZERO))
            };
            let measured = load(DURATION_NS)?;
            if measured.requests > 0 { Ok(measured) } else { load(LONG_NS) }
        };
        let near = load("/bytes/0", 1)?;
        let bulk = load(&bulk, STREAMS)?;
        let round_trip = stats::Histogram::try_from(&near.service).ok().and_then(|histogram| histogram.quantile(0.5));
        Ok(Link {
            receive_bytes_per_s: received_per_s(&bulk),
            round_trip_ns_p50: round_trip
                .ok_or_else(|| failed(FailureKind::Answers, format!("{}: no response from {address}", member.name)))?,
            receive_together_bytes_per_s: None,
        })
    });
    let measured = paths.collect::<Result<Vec<_>, End>>().and_then(|paths| {
        let clients = STREAMS * u32::try_from(members.len()).unwrap_or(u32::MAX);
        let whole = spec(address, &bulk, clients, &[], TOGETHER_NS);
        let load = cluster.generators.load(Some(1), &whole, interrupted)?;
        let (_, together) = super::finish(load, PATIENCE, &mut |_| {}, interrupted)?;
        Ok((paths, together))
    });
    let measured = measured.map_err(|end| match end {
        End::Failed(failure) => failed(failure.kind, question(failure.kind, failure.message, address)),
        end => end,
    });
    if matches!(measured, Err(End::Interrupted | End::Lost(_))) {
        return measured.map(|(paths, _)| paths);
    }
    let stopped = Box::new(side).stop(measured.is_err())?;
    let (mut paths, together) = measured?;
    let samples = stopped.subject.samples.iter().map(|sample| (sample.at_ns, sample.cpu_ns)).collect::<Vec<_>>();
    if busiest(&samples) < BUSY && together.iter().all(|agent| worker_busy(&agent.measurement) < BUSY) {
        for (path, agent) in paths.iter_mut().zip(&together) {
            path.receive_together_bytes_per_s = Some(received_per_s(&agent.measurement));
        }
    }
    Ok(paths)
}

fn cpus(member: &Member) -> Vec<u32> {
    member.cpus.iter().map(|cpu| cpu.index).collect()
}

fn received_per_s(measurement: &Measurement) -> f64 {
    measurement.received_bytes as f64 * 1e9 / (measurement.duration_ns as f64).max(1.0)
}

/// Why a path could not be measured. Without a response, it asks about a firewall.
fn question(kind: FailureKind, message: String, address: SocketAddr) -> String {
    match kind {
        FailureKind::Answers => format!("{message}: is {address} open to it, or is there a firewall?"),
        _ => format!("the path to the server was not measured: {message}"),
    }
}

fn worker_busy(measurement: &Measurement) -> f64 {
    let wanted = |worker: &study::record::Worker| worker.cpu_ns + worker.run_queue_ns.unwrap_or(0);
    let share = |worker: &study::record::Worker| wanted(worker) as f64 / (worker.wall_ns as f64).max(1.0);
    measurement.workers.iter().map(share).fold(0.0, f64::max)
}

/// CPU share of the server during the last transfer, from samples of time and CPU time, both ns.
fn busiest(samples: &[(u64, u64)]) -> f64 {
    let Some(&(until, _)) = samples.last() else { return f64::INFINITY };
    let from = until.saturating_sub(TOGETHER_NS);
    let share = |pair: &[(u64, u64)]| {
        (pair[1].1.saturating_sub(pair[0].1)) as f64 / (pair[1].0.saturating_sub(pair[0].0) as f64).max(1.0)
    };
    samples.windows(2).filter(|pair| pair[1].0 > from).map(share).fold(0.0, f64::max)
}

fn point() -> Result<Point, End> {
    let subject = SubjectPlan::of_command("quintain serve http --host {address} -p {port}");
    let subject = subject.map_err(|text| failed(FailureKind::Start, text))?;
    Ok(Point {
        factors: BTreeMap::new(),
        subject: SubjectPlan { cpus: 1, ..subject },
        proxies: Vec::new(),
        proxy_cpus: 0,
        companions: Vec::new(),
        companion_cpus: 0,
        load: load_plan(1, DURATION_NS),
        unrunnable: None,
    })
}

fn load_plan(clients: u32, duration_ns: u64) -> LoadPlan {
    LoadPlan {
        protocol: Protocol::Http,
        http: None,
        workload: None,
        journey: None,
        clients,
        pipeline: 1,
        connection: Connection::KeepAlive,
        threads: Some(1),
        cpus: None,
        share_cpus: true,
        backend: Backend::Auto,
        arrivals: Arrivals::Closed { think_ns: 0 },
        search: None,
        share: None,
        warmup: Warmup::DurationNs(duration_ns / 4),
        stop: Stop::Duration { duration_ns },
        window_ns: duration_ns,
        timeout_ns: 5_000_000_000,
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
    let requests = vec![request];
    let target = Target::Http { address: address.to_string(), requests, tls: None, expect: Expect::default() };
    let share = Share { generator: cpus.to_vec(), ..Share::default() };
    load_spec(&load_plan(clients, duration_ns), target, &share, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_about_firewalls_only_without_a_response() {
        let address = "10.0.0.1:8080".parse().unwrap();
        let said = |kind| question(kind, "l1: no response".to_owned(), address);
        assert_eq!(said(FailureKind::Answers), "l1: no response: is 10.0.0.1:8080 open to it, or is there a firewall?");
        let killed = question(FailureKind::Generator, "l1: the generator failed: signal 9".to_owned(), address);
        assert_eq!(killed, "the path to the server was not measured: l1: the generator failed: signal 9");
    }

    #[test]
    fn takes_the_busiest_moment_of_the_last_transfer() {
        const MS: u64 = 1_000_000;
        let samples = [(0, 0), (100, 100), (200, 110), (400, 112), (500, 162), (700, 166)];
        let samples = samples.map(|(at, cpu)| (at * MS, cpu * MS));
        assert!((busiest(&samples) - 0.5).abs() < 1e-9);
        assert_eq!(busiest(&[]), f64::INFINITY, "an unknown use proves nothing");
    }
}
