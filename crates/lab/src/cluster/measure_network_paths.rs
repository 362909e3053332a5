//! Measures the network paths of a cluster before the first trial, with the server and generators of quintain.

use std::net::SocketAddr;
use std::time::Duration;

use study::node_messages::{Serve, Standing, Stopped};
use study::record::{FailureKind, Link, Measurement};
use study::{ExpandOptions, LoadSpec, Point};

use crate::cluster::{Cluster, remote_sides};
use crate::divide_cpus::Share;
use crate::load_side::Load;
use crate::load_target_and_files::target;
use crate::server_side::Side;
use crate::trial_end_reason::{End, failed};

/// Duration of each of the two measurements of a path, ms.
const DURATION_MS: u64 = 200;
/// Duration of the retry if no response arrived within [`DURATION_MS`], as on very long paths or busy machines, ms.
const LONG_MS: u64 = 3_000;
/// Duration of the transfer to all generators at once, ms.
const TOGETHER_MS: u64 = 400;
const BODY_BYTES: u32 = 1 << 20;
/// Number of connections that carry bodies, large enough not to limit the throughput.
const STREAMS: u32 = 4;
/// CPU usage (0 to 1) of the server or a generator at or above which a transfer does not show the limit of the paths.
const BUSY: f64 = 0.7;
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn measure(cluster: &Cluster) -> Result<Vec<Link>, End> {
    let (point, address) = (point("/", 1, DURATION_MS), cluster.subject.address);
    let (cpus, proxy_cpus, companion_cpus) = (cluster.subject.cpu_numbers(), Vec::new(), Vec::new());
    let serve = Serve { point, address, cpus, proxy_cpus, companion_cpus };
    let side = cluster.serve(&serve, &mut Stopped::default())?;
    let address = SocketAddr::new(cluster.subject.address, side.standing.port);
    let bulk = format!("/bytes/{BODY_BYTES}");
    let finish = |load: Load<'_>| cluster.generators.finish(load, PATIENCE, &mut |_| {});
    let members = &cluster.generators.members;
    let paths = members.iter().map(|member| {
        let load = |path: &str, clients| {
            let load = |duration_ms| {
                let spec = spec(address, path, clients, duration_ms)?;
                let generator = remote_sides::RemoteGenerator::start(member, spec)?;
                finish(Load::new(vec![Box::new(generator)], Duration::ZERO)).map(|(measurement, _)| measurement)
            };
            let measured = load(DURATION_MS)?;
            if measured.requests > 0 { Ok(measured) } else { load(LONG_MS) }
        };
        let near = load("/bytes/0", 1)?;
        let bulk = load(&bulk, STREAMS)?;
        let round_trip = stats::Histogram::try_from(&near.service).ok().and_then(|histogram| histogram.quantile(0.5));
        let no_response = || failed(FailureKind::Answers, format!("{}: no response from {address}", member.node.name));
        let (receive_bytes_per_s, round_trip_ns_p50) = (received_per_s(&bulk), round_trip.ok_or_else(no_response)?);
        Ok(Link { receive_bytes_per_s, round_trip_ns_p50, receive_together_bytes_per_s: None })
    });
    let measured = paths.collect::<Result<Vec<_>, End>>().and_then(|paths| {
        let clients = STREAMS * u32::try_from(members.len()).unwrap_or(u32::MAX);
        let whole = spec(address, &bulk, clients, TOGETHER_MS)?;
        let load = cluster.generators.load(Some(1), &whole)?;
        let (_, together) = finish(load)?;
        Ok((paths, together))
    });
    let measured = measured.map_err(|end| match end {
        End::Failed(failure) => failed(failure.kind, question(failure.kind, failure.message, address)),
        end => end,
    });
    if matches!(measured, Err(End::Interrupted | End::Lost(_))) {
        return measured.map(|(paths, _)| paths);
    }
    let stopped = Box::new(side).stop(measured.is_err(), Stopped::default())?;
    let (mut paths, together) = measured?;
    let samples = stopped.subject.samples.iter().map(|sample| (sample.at_ns, sample.cpu_ns)).collect::<Vec<_>>();
    if busiest(&samples) < BUSY && together.iter().all(|agent| worker_busy(&agent.measurement) < BUSY) {
        for (path, agent) in paths.iter_mut().zip(&together) {
            path.receive_together_bytes_per_s = Some(received_per_s(&agent.measurement));
        }
    }
    Ok(paths)
}

fn received_per_s(measurement: &Measurement) -> f64 {
    measurement.received_bytes as f64 * 1e9 / (measurement.duration_ns as f64).max(1.0)
}

/// Explains why a path could not be measured. If there was no response, the message asks about a firewall.
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

/// Highest CPU share of the server during the last transfer, from samples of time and CPU time, both in ns.
fn busiest(samples: &[(u64, u64)]) -> f64 {
    let Some(&(until, _)) = samples.last() else { return f64::INFINITY };
    let from = until.saturating_sub(TOGETHER_MS * 1_000_000);
    let share = |pair: &[(u64, u64)]| {
        (pair[1].1.saturating_sub(pair[0].1)) as f64 / (pair[1].0.saturating_sub(pair[0].0) as f64).max(1.0)
    };
    samples.windows(2).filter(|pair| pair[1].0 > from).map(share).fold(0.0, f64::max)
}

fn point(path: &str, clients: u32, duration_ms: u64) -> Point {
    let warmup_ms = duration_ms / 4;
    let text = format!(
        "question = \"How fast is the path?\"\n[subject]\n\
         command = \"quintain serve http --host {{address}} -p {{port}}\"\n[load]\n\
         protocol = \"http\"\npath = \"{path}\"\nclients = {clients}\nthreads = 1\nshare_cpus = true\n\
         warmup = \"{warmup_ms}ms\"\nstop = \"{duration_ms}ms\"\nwindow = \"{duration_ms}ms\"\ntimeout = \"5s\"\n"
    );
    let options = ExpandOptions { generators_apart: true, ..ExpandOptions::default() };
    let plan = study::parse(&text).and_then(|study| study::expand(&study, &options));
    plan.expect("the study is valid").points.swap_remove(0)
}

fn spec(address: SocketAddr, path: &str, clients: u32, duration_ms: u64) -> Result<LoadSpec, End> {
    let load = point(path, clients, duration_ms).load;
    let ports = Standing { port: address.port(), subject_port: address.port(), admin_port: None };
    let target =
        target(&load, address.ip(), ports, "".as_ref()).map_err(|text| failed(FailureKind::Generator, text))?;
    Ok(crate::generator_process::load_spec(&load, target, &Share::default(), 1))
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
