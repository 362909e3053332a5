//! The load engine for journeys: one thread per client, measured like every other load.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::time::Duration;

use net::Nanos;
use stats::Histogram;
use study::record::{self, JourneyMeasurement, Measurement, OperationMeasurement};
use study::seam::Told;
use study::spec::{LoadSpec, Protocol, Stop, Target, Warmup};

use super::client::{CALLS_MAX, Client, ClientResults, Common, Ended, Order};
use super::program::Program;
use super::resolver;
use crate::censored::Waits;
use crate::coordinator::{Control, Coordinator, NEVER};
use crate::measurement::build_measurement;
use crate::phase_tracker::PhaseTracker;
use crate::recorder::{Fault, Recorder};
use crate::supervise::{LoadError, cpu_of, pin, run_workers, usage};
use crate::worker::Done;

const START_STEP: Duration = Duration::from_micros(200);
const PUBLISH_NS: Nanos = 10_000_000;

pub(crate) fn run(spec: &LoadSpec, tell: &mut dyn FnMut(Told), abort: &AtomicBool) -> Result<Measurement, LoadError> {
    let Target::Journey { journey, targets, resolve, insecure, ca_file, client, keep_calls, identities, .. } =
        &spec.target
    else {
        unreachable!("the caller has looked");
    };
    let program = Program::new(journey, targets).map_err(LoadError::Spec)?;
    let steps = program.steps.len() as u64;
    let mut spec = spec.clone();
    if spec.warmup == Warmup::Requests(0) {
        spec.warmup = Warmup::DurationNs(0); // Equivalent, and no client starts early.
    }
    let journeys = match &mut spec.stop {
        Stop::Requests { requests, .. } => {
            let journeys = *requests / steps;
            *requests = journeys * steps;
            Some(journeys)
        }
        _ => None,
    };
    let clients = spec.clients;
    let mut common = Common {
        program,
        tls: HashMap::new(),
        insecure: *insecure,
        ca_file: ca_file.as_deref(),
        certificate: client.as_ref(),
        seed: spec.seed,
        identities: *identities,
        timeout_ns: spec.timeout_ns,
        resolve: resolve.as_deref().map(resolver::endpoint).transpose().map_err(|why| LoadError::Spec(vec![why]))?,
        calls_kept: if *keep_calls { CALLS_MAX / clients as usize } else { 0 },
        next: AtomicU64::new(0),
        left: journeys.map(|journeys| AtomicI64::new(i64::try_from(journeys).unwrap_or(i64::MAX))),
    };
    // Trust anchors are read once, before any request.
    for host in hosts(&common.program, spec.seed) {
        let connector = common.connector(&host).map_err(LoadError::Tls)?;
        common.tls.insert(host, connector);
    }
    let control = Control::new(&spec, clients);
    let cpu_before = net::thread::process_cpu_ns();
    let failed = &AtomicBool::new(false);
    let (spec, control, common) = (&spec, &control, &common);
    let jobs = (0..clients).map(|index| move || work(spec, control, common, index));
    let coordinator = Coordinator::new(spec, control, None, net::thread::monotonic_ns());
    let (jobs, address) = (jobs.collect(), spec.target.address());
    let (ended, done) = run_workers(coordinator, control, address, tell, (abort, failed), "client", jobs)?;
    let (done, made): (Vec<Done>, Vec<ClientResults>) = done.into_iter().unzip();
    let cpu_ns = net::thread::process_cpu_ns().saturating_sub(cpu_before);
    let mut measurement = build_measurement(spec, ended, &done, None);
    measurement.backend = "threads".to_owned();
    measurement.process_cpu_ns = cpu_ns;
    measurement.process_rss_max_bytes = net::thread::process_peak_rss().unwrap_or(0);
    measurement.workers = workers(spec, &done);
    measurement.threads = measurement.workers.len() as u32;
    measurement.journey = Some(Box::new(journey_of(&common.program, made)));
    Ok(measurement)
}

fn hosts(program: &Program, seed: u64) -> Vec<String> {
    if !program.is_encrypted() {
        return Vec::new();
    }
    let mut values = program.initial_values(seed, 0);
    let mut hosts = Vec::new();
    for step in &program.steps {
        if let Ok(endpoint) = resolver::endpoint(&values.text(&step.url))
            && endpoint.protocol == Protocol::Https
            && !hosts.contains(&endpoint.host)
        {
            hosts.push(endpoint.host);
        }
    }
    hosts
}

fn groups(spec: &LoadSpec) -> u32 {
    spec.threads.min(spec.clients).max(1)
}

/// Reports threads that share a CPU as one worker, since their sum is the utilization.
fn workers(spec: &LoadSpec, done: &[Done]) -> Vec<record::Worker> {
    let groups = groups(spec);
    let worker = |group: u32| {
        let of = || done.iter().zip(0u32..).filter(|(_, index)| index % groups == group).map(|(done, _)| done);
        let sum = |value: fn(&Done) -> u64| of().map(value).sum::<u64>();
        record::Worker {
            cpu: cpu_of(spec, group),
            requests: sum(|done| done.recorder.requests),
            cpu_ns: sum(|done| done.usage.cpu_ns),
            spin_ns: 0,
            // The kernel also counts the time that threads of a group wait for each other.
            run_queue_ns: if of().count() == 1 { of().find_map(|done| done.usage.run_queue_ns) } else { None },
            wall_ns: of().map(|done| done.wall_ns).max().unwrap_or(0),
            turns: sum(|done| done.turns),
            stalled_ns: of().map(|done| done.waits.stalled_ns()).max().unwrap_or(0),
        }
    };
    (0..groups).map(worker).collect()
}

fn journey_of(program: &Program, made: Vec<ClientResults>) -> JourneyMeasurement {
    let operation = |(index, name): (usize, &String)| {
        let mut service = Histogram::with_precision(Histogram::WINDOW_PRECISION);
        made.iter().for_each(|client| service.merge(&client.operations[index].service));
        OperationMeasurement {
            name: name.clone(),
            requests: service.len(),
            errors: made.iter().map(|client| client.operations[index].errors).sum(),
            service: (&service).into(),
        }
    };
    let operations = program.operations.iter().enumerate().map(operation).collect();
    let mut calls = made.iter().flat_map(|client| client.calls.iter().copied()).collect::<Vec<_>>();
    calls.sort_by_key(|call| (call.sent_ns, call.client));
    JourneyMeasurement {
        name: program.name.clone(),
        completed: made.iter().map(|client| client.completed).sum(),
        abandoned: made.iter().map(|client| client.abandoned).sum(),
        operations,
        calls,
        session: None,
        transcript: String::new(),
        calls_left_out: made.iter().map(|client| client.calls_left_out).sum(),
    }
}

fn work(
    spec: &LoadSpec,
    control: &Control,
    common: &Common<'_>,
    index: u32,
) -> Result<(Done, ClientResults), LoadError> {
    pin(cpu_of(spec, index % groups(spec)), &format!("client {index}"))?;
    let mut watch = ClientPhase { phase: PhaseTracker::new(control, index), published: 0 };
    let gauge = watch.phase.gauge;
    let recorder = Recorder::new(spec.window_ns, false, common.program.is_encrypted(), false);
    let mut client = Client::new(common, index, recorder);
    match client.reach() {
        Ok(()) => gauge.reached.store(1, Relaxed),
        Err((fault, why)) => watch.phase.report_problem(fault, why),
    }
    gauge.settled.store(1, Release);
    while net::thread::monotonic_ns() < control.start.load(Acquire) {
        if control.until.load(Relaxed) != NEVER && control.start.load(Acquire) == NEVER {
            break; // The load ended before it started.
        }
        std::thread::sleep(START_STEP);
    }
    let (mut turns, mut paused_ns, mut is_drained) = (0, 0, false);
    loop {
        if watch.is_over(&mut client.recorder) {
            break;
        }
        let now = net::thread::monotonic_ns();
        let is_measured = watch.phase.is_measuring;
        if is_measured && !is_drained {
            is_drained = common.left.as_ref().is_some_and(|left| left.fetch_sub(1, Relaxed) <= 0);
            if is_drained {
                // A client without any response has waited until now.
                let last = Some(client.recorder.last_answer).filter(|last| *last > 0);
                gauge.last_answer.store(last.unwrap_or(now), Relaxed);
                watch.publish(&mut client.recorder, now);
                gauge.drained.store(true, Release);
            }
        }
        if is_drained {
            std::thread::sleep(START_STEP);
            continue;
        }
        turns += u64::from(is_measured);
        let from = if is_measured { watch.phase.from } else { 0 };
        let order = Order { number: common.next.fetch_add(1, Relaxed), is_measured, from };
        match client.make(order, &mut |recorder| watch.is_over(recorder)) {
            Ended::Completed => {}
            Ended::Abandoned => {
                let since = net::thread::monotonic_ns();
                std::thread::sleep(client.pause());
                let until = net::thread::monotonic_ns().min(control.until.load(Relaxed));
                paused_ns += until.saturating_sub(since.max(control.from.load(Acquire)));
            }
            Ended::Cut => break,
        }
    }
    let now = net::thread::monotonic_ns();
    let end = control.until.load(Acquire).min(now);
    client.recorder.finish(end);
    let used = watch.phase.used(usage());
    let mut waits = Waits::new(end, spec.timeout_ns);
    waits.stalled(&client.made.stalls, watch.phase.from);
    if let Some(sent_at) = client.made.unanswered {
        waits.request(sent_at, sent_at);
        waits.connection(sent_at);
    }
    let done = Done {
        recorder: client.recorder,
        usage: used,
        wall_ns: now.saturating_sub(watch.phase.wall_from),
        turns,
        spin_ns: 0,
        flight_integral: client.made.flight_integral,
        backoff_integral: u128::from(paused_ns),
        waits,
        due: 0,
    };
    control.hold(); // The client's drop closes its connections.
    Ok((done, client.made))
}

struct ClientPhase<'a> {
    phase: PhaseTracker<'a>,
    published: Nanos,
}

impl ClientPhase<'_> {
    /// Whether the load is over. Also starts measuring when it is time, and publishes the counts.
    fn is_over(&mut self, recorder: &mut Recorder) -> bool {
        let now = net::thread::monotonic_ns();
        self.phase.begins_measuring(now, recorder, usage);
        let is_over = self.phase.is_over(now);
        if now >= self.published + PUBLISH_NS {
            self.publish(recorder, now);
        }
        is_over
    }

    fn publish(&mut self, recorder: &mut Recorder, now: Nanos) {
        self.published = now;
        let in_vain = recorder.faults[Fault::Timeout as usize] + recorder.warmup_faults[Fault::Timeout as usize];
        self.phase.publish(now, recorder, in_vain);
    }
}
