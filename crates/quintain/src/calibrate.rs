//! `quintain calibrate`: what the generator can do here against a null server.
//!
//! It is a study like any other, so that the null server is started, pinned and watched as a subject is.

use std::path::PathBuf;

use store::Store;
use study::record::{Calibration, IdlePolicy, Measurement};
use study::{ExpandOptions, Profile, Record};

use crate::cli::CalibrateArgs;
use crate::message::{Done, Exit, Problem};
use crate::run::{cpus, exe, machine};
use crate::{output, signals};

/// The null server gets half of the processors, one client shows the floor of latency, more show the peak of the rate.
const STUDY: &str = r#"
question = "What can the generator do here?"

[subject]
command = "quintain serve calibrate --delay null --threads {cores} -p {port}"
cpus    = "{cores}"

[load]
protocol = "pingpong"
clients  = "{clients}"
warmup   = "300ms"
stop     = { duration = "1s" }

[factors]
cores   = [1]
clients = [1, 8, 40, 100, 400]

[trials]
stop = { min = 1, max = 1 }
"#;

pub(crate) fn calibrate(args: CalibrateArgs) -> Done {
    let machine_cpus = cpus(None)?;
    let store = Store::open(&args.store.store)?;
    let interrupted = signals::interrupted()?;
    let host = lab::host::facts(std::path::Path::new("."));
    let idle = IdlePolicy::from(args.idle);
    let half = (machine_cpus.len() / 2).max(1);
    let options = ExpandOptions {
        name: "calibrate".to_owned(),
        seed: 1,
        profile: Profile::Default,
        machine_cpus: machine_cpus.len() as u32,
        sets: vec![
            ("cores".to_owned(), half.to_string()),
            ("load.stop.duration".to_owned(), format!("{}ns", args.duration.as_nanos())),
        ],
    };
    let mut plan = study::parse(STUDY)
        .and_then(|study| study::expand(&study, &options))
        .map_err(|mistakes| Problem::text(Exit::Usage, &mistakes[0]))?;
    plan.points.iter_mut().for_each(|point| point.load.backend = args.backend.into());
    if let Some(reason) = plan.points.iter().find_map(|point| point.unrunnable.as_ref()) {
        return Err(Problem::text(Exit::Machine, reason)
            .hint("calibrating needs a processor for the null server and one for the generator"));
    }
    let options = lab::Options {
        exe: exe()?,
        directory: PathBuf::from("."),
        cpus: host.cpus.iter().filter(|cpu| machine_cpus.contains(&cpu.index)).copied().collect(),
        idle,
    };
    let mut records = Vec::new();
    let mut hooks = lab::Hooks {
        judge: &mut |record| report::judge(record, None),
        store: &mut |record: &Record| {
            records.push(record.clone());
            Ok(())
        },
        next: &mut |point, records| match records.iter().any(|record| record.point == point) {
            true => study::Next::Enough("measured".to_owned()),
            false => study::Next::Trial(None),
        },
        progress: &mut |progress| {
            if output::stderr_is_terminal() {
                output::rewrite(&format!("{} of {} steps", progress.trials_done, plan.points.len()));
            }
        },
        interrupted: &|| signals::is_set(&interrupted),
    };
    let ended = lab::run(&plan, &[], &[], &options, &mut hooks).map_err(machine)?;
    if output::stderr_is_terminal() {
        output::rewrite("");
    }
    if ended.cause == lab::Cause::Interrupted {
        return Ok(Exit::Interrupted);
    }
    let calibration = calibration(&records, idle)?;
    store.add_calibration(&host.name, &calibration)?;
    if args.store.json {
        output::json(&calibration)?;
    } else {
        output::data(&text(&calibration, &records, &args.store.store.display().to_string()))?;
    }
    Ok(Exit::Fine)
}

/// The floor of latency of the trial with one client, the rate of the best.
fn calibration(records: &[Record], idle: IdlePolicy) -> Result<Calibration, Problem> {
    let failed = |record: &Record| match &record.outcome {
        study::record::Outcome::Failed(failure) => Some(failure.message.clone()),
        study::record::Outcome::Measured(_) => None,
    };
    if let Some(message) = records.iter().find_map(failed) {
        return Err(Problem::text(Exit::Machine, format!("a step of the calibration failed: {message}")));
    }
    let measured = || records.iter().filter_map(Record::measurement);
    let one = measured().find(|measurement| measurement.clients == 1);
    let best = measured().max_by(|a, b| a.rate_per_s().total_cmp(&b.rate_per_s()));
    let (Some(one), Some(best)) = (one, best) else {
        return Err(Problem::text(Exit::Machine, "nothing was measured"));
    };
    let latency = stats::Histogram::try_from(&one.service).map_err(machine)?;
    let quantile = |q| latency.quantile(q).unwrap_or(f64::NAN);
    Ok(Calibration {
        measured: lab::clock::rfc3339(),
        protocol: one.protocol.clone(),
        backend: best.backend.clone(),
        idle,
        threads: best.threads,
        rate_max_per_s: best.rate_per_s(),
        rate_max_clients: best.clients,
        cpu_per_request_ns: cpu_per_request_ns(best),
        floor_latency_ns_p50: quantile(0.5),
        floor_latency_ns_p99: quantile(0.99),
    })
}

fn cpu_per_request_ns(measurement: &Measurement) -> f64 {
    let cpu_ns = measurement.workers.iter().map(|worker| worker.cpu_ns).sum::<u64>();
    cpu_ns as f64 / (measurement.requests as f64).max(1.0)
}

fn text(calibration: &Calibration, records: &[Record], store: &str) -> String {
    let mut text = format!(
        "generator: {}, {} thread(s), idle policy {}\n\n  clients        rate   CPU/request      mean latency\n",
        calibration.backend,
        calibration.threads,
        match calibration.idle {
            IdlePolicy::Machine => "machine",
            IdlePolicy::Spin => "spin",
        }
    );
    let mut measured = records.iter().filter_map(Record::measurement).collect::<Vec<_>>();
    measured.sort_by_key(|measurement| measurement.clients);
    for measurement in measured {
        let mean = measurement.service.sum / (measurement.service.count as f64).max(1.0);
        text.push_str(&format!(
            "  {:7}  {:>10}  {:>12}  {:>16}\n",
            measurement.clients,
            report::quantity(measurement.rate_per_s(), "1/s"),
            report::quantity(cpu_per_request_ns(measurement), "ns"),
            report::quantity(mean, "ns")
        ));
    }
    text.push_str(&format!(
        "\npeak {} at {} clients; one client waits {} (p99 {})\nkept in {store}; runs here are judged against it\n",
        report::quantity(calibration.rate_max_per_s, "1/s"),
        calibration.rate_max_clients,
        report::quantity(calibration.floor_latency_ns_p50, "ns"),
        report::quantity(calibration.floor_latency_ns_p99, "ns"),
    ));
    text
}
