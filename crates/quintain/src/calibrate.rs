//! `quintain calibrate`: measures the limits of the generator on this machine with a null server. The calibration is a
//! study, so that the null server is started, pinned and watched like any other.

use std::path::PathBuf;
use std::time::Duration;

use analysis::number::quantity;
use askama::Template;
use store::Store;
use study::record::{Calibration, Host, IdlePolicy, Measurement, Outcome};
use study::{ExpandOptions, Record};

use crate::cli::{CalibrateArgs, NULL_SERVERS, NullServer, OF_CLUSTERS};
use crate::command_result::{Done, Exit, Problem, Result, exe, usage};
use crate::live_chart::Live;
use crate::run::{machine_of, run_once};
use crate::study_file::Machine;
use crate::{output, signals};

/// Study of one protocol. The null server gets half of the CPUs. One client shows the latency; many show the peak rate.
#[derive(Template)]
#[template(path = "calibration.txt", escape = "none")]
struct NullStudy {
    protocol: &'static str,
    command: &'static str,
}

fn study_of((protocol, command): NullServer) -> String {
    NullStudy { protocol, command }.render().expect("text is written to memory")
}

/// Time for which other processes are observed before measuring.
const WATCHED: Duration = Duration::from_millis(500);

pub(crate) fn calibrate(args: CalibrateArgs) -> Done {
    let window = Duration::from_nanos(study::load_limits_and_defaults::WINDOW_NS);
    if args.duration < window {
        return Err(usage(format!("`--duration {:?}`: at least {window:?}, one window", args.duration)));
    }
    signals::watch_interrupts()?;
    let machine = machine_of(&args.cluster, None, None)?;
    let cluster = machine.cluster.is_some();
    let others = lab::other_labs::others().unwrap_or_default();
    if !args.force
        && !cluster
        && let Some(busy) = busy(&others, &lab::other_processes::users(WATCHED))
    {
        return Err(Problem::text(Exit::Machine, format!("this machine is busy, {busy}"))
            .hint("stop it first, so that the limit is the generator's; `--force` measures anyway"));
    }
    let store = Store::open(&args.store.store)?;
    let _presence = lab::other_labs::announce("calibrate").ok();
    let host = lab::host_facts::read(std::path::Path::new("/"));
    let mut servers = args.protocols.clone();
    if servers.is_empty() {
        let known = if cluster { OF_CLUSTERS } else { NULL_SERVERS.len() };
        servers.extend(NULL_SERVERS[..known].iter().map(|(_, server)| *server));
    }
    let mut calibrations = Vec::new();
    for (index, server) in servers.into_iter().enumerate() {
        let Some((calibration, records)) = measure(&args, server, &host, &machine)? else {
            return Ok(Exit::Interrupted);
        };
        if !cluster {
            store.add_calibration(&host.name, &calibration)?;
        }
        if !args.store.json {
            let between = if index == 0 { "" } else { "\n" };
            output::text(&format!("{between}{}", text(&calibration, &records)))?;
        }
        calibrations.push(calibration);
    }
    if args.store.json {
        output::json(&calibrations)?;
    } else if cluster {
        output::message("\nnot stored: runs on several machines are judged by each machine's own measurements");
    } else {
        output::message(&format!(
            "\nstored in {}; runs here are judged against the calibration of their protocol",
            args.store.store.display()
        ));
    }
    Ok(Exit::Fine)
}

fn busy(labs: &str, users: &[lab::other_processes::User]) -> Option<String> {
    let lab = (!labs.is_empty()).then(|| format!("another lab is running: {labs}"));
    lab.or_else(|| lab::other_processes::words(users))
}

/// Measures one protocol. Returns the calibration and the records of its trials; `None` if interrupted.
fn measure(
    args: &CalibrateArgs,
    server: NullServer,
    host: &Host,
    Machine { cluster, cpus }: &Machine,
) -> Result<Option<(Calibration, Vec<Record>)>> {
    let of_server = if cluster.is_some() { cpus.len() } else { (cpus.len() / 2).max(1) };
    let options = ExpandOptions {
        name: "calibrate".to_owned(),
        machine_cpus: cpus.len() as u32,
        generators_apart: cluster.is_some(),
        sets: vec![
            ("cores".to_owned(), of_server.to_string()),
            ("load.stop.duration".to_owned(), format!("{}ns", args.duration.as_nanos())),
        ],
        ..ExpandOptions::default()
    };
    let mut plan = study::parse(&study_of(server))
        .and_then(|study| study::expand(&study, &options))
        .map_err(|mistakes| usage(&mistakes[0]))?;
    plan.points.iter_mut().for_each(|point| point.load.backend = args.backend);
    if let Some(reason) = plan.points.iter().find_map(|point| point.unrunnable.as_ref()) {
        return Err(Problem::text(Exit::Machine, reason)
            .hint("calibration needs one CPU for the null server and one for the generator"));
    }
    if let Some(reason) = cluster.iter().find_map(|cluster| cluster.refuses(&plan.points[0].load)) {
        return Err(usage(reason));
    }
    let options = lab::Options::new(exe()?, PathBuf::from("."), host, cpus);
    let options = lab::Options { idle: args.idle, cluster: cluster.clone(), ..options };
    let name = plan.points[0].load.protocol;
    let mut line = Live::new(true);
    let mut progress = |progress: &lab::Progress| {
        let text = format!("{name}: {} of {} steps", progress.order, plan.points.len());
        line.show(&text, progress.live.as_ref().map(|live| &live.load));
    };
    let records = run_once(&plan, &options, &mut progress)?;
    line.clear();
    let Some(records) = records else { return Ok(None) };
    let calibration = calibration(&records, args.idle, server)?;
    Ok(Some((calibration, records)))
}

/// Takes latencies from the trial with one client and the rate from the fastest trial. Fails if any trial failed.
fn calibration(records: &[Record], idle: IdlePolicy, server: NullServer) -> Result<Calibration> {
    for record in records {
        if let Outcome::Failed(failure) = &record.outcome {
            return Err(Problem::text(Exit::Machine, format!("a calibration step failed: {}", failure.message)));
        }
    }
    let measured = || records.iter().filter_map(Record::measurement);
    let one = measured().find(|measurement| measurement.clients == 1);
    let best = measured().max_by(|a, b| a.rate_per_s().total_cmp(&b.rate_per_s()));
    let (Some(one), Some(best)) = (one, best) else {
        return Err(Problem::text(Exit::Machine, "nothing was measured"));
    };
    let command = server.1.split(" --").next().unwrap_or_default();
    let latency = stats::Histogram::try_from(&one.service).map_err(|error| Problem::text(Exit::Machine, error))?;
    let quantile = |q| latency.quantile(q).unwrap_or(f64::NAN);
    Ok(Calibration {
        measured: lab::lab_clocks::rfc3339(),
        protocol: one.protocol,
        server: format!("`quintain {command}`"),
        backend: best.backend.clone(),
        idle,
        threads: best.threads,
        rate_max_per_s: best.rate_per_s(),
        rate_max_clients: best.clients,
        generator_busy: analysis::generator_busy(best),
        cpu_per_request_ns: cpu_per_request_ns(best),
        floor_latency_ns_p50: quantile(0.5),
        floor_latency_ns_p99: quantile(0.99),
    })
}

fn cpu_per_request_ns(measurement: &Measurement) -> f64 {
    let cpu_ns = measurement.workers.iter().map(|worker| worker.cpu_ns).sum::<u64>();
    cpu_ns as f64 / (measurement.requests as f64).max(1.0)
}

fn text(calibration: &Calibration, records: &[Record]) -> String {
    let Calibration { protocol, server, backend, threads, rate_max_clients, .. } = calibration;
    let idle = analysis::enum_words_and_lists::serde_name(calibration.idle);
    let mut text = format!("{protocol} against {server}: {backend}, {threads} thread(s), idle policy {idle}\n\n");
    text += "  clients        rate   CPU/request      mean latency\n";
    let mut measured = records.iter().filter_map(Record::measurement).collect::<Vec<_>>();
    measured.sort_by_key(|measurement| measurement.clients);
    for measurement in measured {
        let mean = measurement.service.sum / (measurement.service.count as f64).max(1.0);
        let [cpu, mean] = [cpu_per_request_ns(measurement), mean].map(|ns| quantity(ns, "ns"));
        let (clients, rate) = (measurement.clients, quantity(measurement.rate_per_s(), "1/s"));
        text += &format!("  {clients:7}  {rate:>10}  {cpu:>12}  {mean:>16}\n");
    }
    let bound = match calibration.generator_busy {
        Some(share) if share <= analysis::BUSY => ", limited by the null server: not a limit of the generator",
        _ => "",
    };
    let peak = quantity(calibration.rate_max_per_s, "1/s");
    let [p50, p99] = [calibration.floor_latency_ns_p50, calibration.floor_latency_ns_p99].map(|ns| quantity(ns, "ns"));
    text + &format!("\npeak {peak} at {rate_max_clients} clients{bound}; latency with one client {p50} (p99 {p99})\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_a_valid_study() {
        for (protocol, server) in NULL_SERVERS {
            let study = study::parse(&study_of(*server)).unwrap_or_else(|mistakes| panic!("{protocol} {mistakes:?}"));
            let options = ExpandOptions { name: "calibrate".to_owned(), ..ExpandOptions::default() };
            let plan = study::expand(&study, &options).unwrap();
            assert_eq!(plan.points.len(), 5);
            assert!(plan.points.iter().all(|point| point.unrunnable.is_none()));
        }
    }

    #[test]
    fn busy_processes_are_named() {
        let user = lab::other_processes::User { pid: 7, name: "rustc".to_owned(), share: 0.9 };
        let said = "other processes use 90 % of a CPU: process 7 `rustc` 90 %";
        assert_eq!(busy("", std::slice::from_ref(&user)).as_deref(), Some(said));
        let labs = "process 8 (volley-1)";
        assert_eq!(busy(labs, &[user]).as_deref(), Some("another lab is running: process 8 (volley-1)"));
        assert_eq!(busy("", &[]), None);
    }
}
