//! Runs made of nothing, for the tests of analysis and renderers and for looking at pages: closed loops simulated client
//! by client, with latencies drawn from stated laws. Not a measurement of anything.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use stats::{Distribution, Rng};
use study::Next;
use study::plan::{
    CapacityShare, EffectsPlan, Figure, FigureKind, HttpPlan, HttpRequestPlan, Level, LoadPlan, Plan, Point,
    SearchPlan, SubjectPlan, Table, TableKind, TrialRule,
};
use study::record::{
    Agent, Build, BuildOutcome, CacheCounts, CacheMeasurement, Calibration, Censored, Cpu, Failure, FailureKind,
    Finding, FindingState, Histogram, Host, IdlePolicy, Interface, Link, Measurement, NetworkCounters, Node, NodeClock,
    Outcome, Probe, Probes, Purpose, RECORD_VERSION, Record, Reference, Role, Run, Sample, Step, SubjectUse, Window,
    Worker,
};
use study::spec::{Arrivals, Backend, Connection, Expect, Protocol, SPEC_VERSION, Stop, Warmup};

use crate::{search, verdict};

const TRIALS: u32 = 8;
const WINDOW_NS: u64 = 5_000_000;
const WINDOWS: usize = 50;
const DURATION_NS: u64 = WINDOW_NS * WINDOWS as u64;

/// What one design point is like.
struct Behaviour {
    /// Throughput of the subject, per second, and the share of its processors that it takes for it.
    rate_per_s: f64,
    subject_busy: f64,
    generator_busy: f64,
    /// Spread of a trial's own mean (logarithmic).
    spread: f64,
}

/// The small run: 3 servers, 2 numbers of cores, 2 of clients, 8 trials. One point is generator-bound, one always fails, one
/// cannot be run, one lost a trial.
pub fn volley() -> (Run, Vec<Record>) {
    static ONCE: LazyLock<(Run, Vec<Record>)> = LazyLock::new(|| make_volley(TRIALS));
    ONCE.clone()
}

/// The same with blocks enough for claims, until contenders were told apart: 18.
pub fn compared() -> (Run, Vec<Record>) {
    static ONCE: LazyLock<(Run, Vec<Record>)> = LazyLock::new(|| {
        let (mut run, records) = make_volley(18);
        (run.plan.trials.comparison, run.plan.trials.relative, run.plan.trials.min) = (Some(0.03), None, 12);
        (run, records)
    });
    ONCE.clone()
}

fn make_volley(blocks: u32) -> (Run, Vec<Record>) {
    let mut run = run(&["c-epoll", "go", "rust-tokio"], &[1, 2], &[40, 80]);
    run.plan.points[11].unrunnable = Some("needs 4096 open files, may have 1024".to_owned());
    let mut records = Vec::new();
    for block in 0..blocks {
        let mut order = (0..run.plan.points.len()).collect::<Vec<_>>();
        Rng::stream(run.plan.seed, u64::from(block)).shuffle(&mut order);
        for point in order.into_iter().filter(|&point| run.plan.points[point].unrunnable.is_none()) {
            let trial = Trial { run: &run, point, block, order: records.len() as u32 };
            records.push(match (point, block) {
                (7, _) => trial.failed(FailureKind::Exited, "the subject ended while it was measured: signal 11"),
                (4, 3) => trial.failed(FailureKind::NotReady, "the subject did not listen within 5 s"),
                _ => trial.measured(&small_behaviour(point)),
            });
        }
    }
    (run, records)
}

/// A run whose requests pass nothing, or an adapter that adds 20 µs to each; it tells its calls. 8 blocks.
pub fn through() -> (Run, Vec<Record>) {
    through_in(TRIALS)
}

/// The same with so many blocks.
pub fn through_in(blocks: u32) -> (Run, Vec<Record>) {
    let mut run = run(&["c-epoll", "go"], &[1], &[40]);
    run.plan.factors = vec![study::proxy::THROUGH.to_owned()];
    for (point, level) in run.plan.points.iter_mut().zip([study::proxy::DIRECT, "adapter"]) {
        point.factors.insert(study::proxy::THROUGH.to_owned(), Level::Text(level.to_owned()));
        point.factors.retain(|name, _| ["server", study::proxy::THROUGH].contains(&name.as_str()));
    }
    run.plan.points[1].proxies = vec![study::plan::ProxyPlan { name: "adapter".to_owned(), ..Default::default() }];
    run.plan.slopes = ["latency", "proxy_time", "proxy_rss", "proxy_store"].map(str::to_owned).to_vec();
    run.plan.figures = vec![
        figure(FigureKind::Added, None, Some("latency_p50")),
        figure(FigureKind::MemoryChart, None, None),
        figure(FigureKind::ThroughputChart, None, None),
        figure(FigureKind::NetworkChart, None, None),
    ];
    for figure in &mut run.plan.figures {
        (figure.series, figure.facet) = (Some(study::proxy::THROUGH.to_owned()), None);
    }
    let mut records = Vec::new();
    for block in 0..blocks {
        // What a block does to both cancels in the difference.
        let luck = 1.0 + 0.1 * f64::from(block % 3);
        for point in 0..2 {
            let mean_ns = 500_000.0 * luck + if point == 1 { 20_000.0 } else { 0.0 };
            let trial = Trial { run: &run, point, block, order: records.len() as u32 };
            let behaviour =
                Behaviour { rate_per_s: 80e9 / mean_ns, subject_busy: 0.5, generator_busy: 0.4, spread: 0.0005 };
            let mut record = trial.measured(&behaviour);
            if point == 1 {
                record.proxies = vec![adapter(&record)];
                (record.verdict, record.warnings) = verdict::judge(&record, None, &[]);
            }
            records.push(record);
        }
    }
    // The server made the processes; what is varied is what stands before it.
    run.plan.points.iter_mut().for_each(|point| drop(point.factors.remove("server")));
    records.iter_mut().for_each(|record| drop(record.factors.remove("server")));
    (run, records)
}

fn adapter(record: &Record) -> study::record::ProxyUse {
    let calls = 2_000u64;
    let every = |of: &dyn Fn(u64) -> u64| (0..calls).map(of).collect::<Vec<_>>();
    let calls = study::Calls {
        ops: vec!["getNoteStoreUrl".to_owned(), "findNotes".to_owned()],
        op: (0..calls).map(|call| (call % 2) as u16).collect(),
        own_ns: every(&|call| 5_000 + (call * 7 + u64::from(record.block) * 13) % 11),
        waited_ns: every(&|_| 100_000),
        m1a_bytes: every(&|call| if call % 2 == 0 { 118 } else { 17 }),
        m1b_bytes: every(&|call| if call % 2 == 0 { 141 } else { 17 }),
        m2_bytes: every(&|call| if call % 2 == 0 { 30 } else { 6 }),
        m3_bytes: (0..calls).map(|call| if call % 2 == 0 { 74 } else { 50 }).collect(),
        entries: every(&|call| 2 * (call / 2 + 1)),
        store_bytes: every(&|call| 4_096 + 100 * call),
        memory: Vec::new(),
    };
    let mut used = SubjectUse { measured_from_ns: 100_000_000, cpus: vec![1], ..record.subject.clone() };
    used.samples = (0..10)
        .map(|at| Sample { at_ns: at * 30_000_000, rss_bytes: 9_000_000, threads: 1, ..Sample::default() })
        .collect();
    used.rss_max_bytes = Some(9_000_000);
    study::record::ProxyUse {
        name: "adapter".to_owned(),
        used,
        shares_cpus: false,
        ready_ns: Some(2_000_000),
        wire: Some(study::record::WireUse { front_bytes: 1_000, back_bytes: 1_100 }),
        calls: Some(Box::new(calls)),
    }
}

fn small_behaviour(point: usize) -> Behaviour {
    // Points are in the order servers, cores, clients; clients hardly change the rate of a saturated server.
    let base = [71_000.0, 52_000.0, 58_000.0][point / 4];
    let rate_per_s = base * if point / 2 % 2 == 1 { 1.6 } else { 1.0 } * if point % 2 == 1 { 1.03 } else { 1.0 };
    match point {
        3 => Behaviour { rate_per_s, subject_busy: 0.46, generator_busy: 0.99, spread: 0.01 },
        _ => Behaviour { rate_per_s, subject_busy: 0.97, generator_busy: 0.71, spread: 0.02 },
    }
}

/// Three servers on one machine, loaded from three others: all is well with the first, `l3` is slow with the second, and the link of `l2` is full
/// with the third.
pub fn cluster() -> (Run, Vec<Record>) {
    static ONCE: LazyLock<(Run, Vec<Record>)> = LazyLock::new(make_cluster);
    ONCE.clone()
}

/// What a link of the cluster is able to receive, bytes per second.
const LINK_PER_S: f64 = 1.17e9;

fn make_cluster() -> (Run, Vec<Record>) {
    let servers = ["c-epoll", "go", "rust-tokio"];
    let (mut run, mut part) = (self::run(&servers, &[1], &[60]), self::run(&servers, &[1], &[20]));
    run.id = "cluster-20261120-210500".to_owned();
    run.nodes = ["s1", "l1", "l2", "l3"].into_iter().zip(0..).map(|(name, at)| node(name, at)).collect();
    part.calibration = None;
    let mut records = Vec::new();
    for block in 0..TRIALS {
        for point in 0..servers.len() {
            let order = records.len() as u32;
            let behaviour = |agent: u32| {
                let slower = [(1, 2, 1.8), (2, 1, 3.0)].into_iter().find(|of| (of.0, of.1) == (point, agent));
                let rate_per_s = [24_000.0, 18_000.0, 20_000.0][point] / slower.map_or(1.0, |(.., times)| times);
                let subject_busy = if point == 0 { 0.96 } else { 0.5 };
                Behaviour { rate_per_s, subject_busy, generator_busy: 0.4, spread: 0.01 }
            };
            let measure = |agent: u32| {
                let record = Trial { run: &part, point, block, order: 3 * order + agent }.measured(&behaviour(agent));
                let Outcome::Measured(mut measurement) = record.outcome else { unreachable!("it was measured") };
                measurement.address = "10.77.0.1:40123".to_owned();
                if (point, agent) == (2, 1) {
                    measurement.received_bytes = (0.99 * LINK_PER_S * DURATION_NS as f64 / 1e9) as u64;
                }
                measurement
            };
            let parts = (0..3).map(measure).collect::<Vec<_>>();
            let all = study::pool::pool(&parts).expect("parts of one load");
            let trial = Trial { run: &run, point, block, order };
            let mut record = trial.record(Outcome::Measured(all), Some(&behaviour(0)));
            (record.generator_cpus, record.agents) = (Vec::new(), agents(&parts));
            records.push(record);
        }
    }
    verdict::judge_again(&run, &mut records);
    (run, records)
}

/// The machine of the server, and three of generators.
fn node(name: &str, at: u32) -> Node {
    let round_trip_ns_p50 = 36_000.0 + 4_000.0 * f64::from(at);
    Node {
        name: name.to_owned(),
        role: if at == 0 { Role::Subject } else { Role::Load },
        address: format!("10.77.0.{}", at + 1),
        host: Host { name: name.to_owned(), ..host(if at == 0 { 32 } else { 8 }) },
        doctor: doctor(),
        build: "5a11".to_owned(),
        interface: Some(Interface { name: "eth0".to_owned(), mtu_bytes: Some(1_500), ..Interface::default() }),
        link: (at > 0).then_some(Link {
            receive_bytes_per_s: LINK_PER_S,
            round_trip_ns_p50,
            receive_together_bytes_per_s: None,
        }),
    }
}

/// What is kept of the parts of a load, of as many machines.
pub(crate) fn agents(parts: &[Measurement]) -> Vec<Agent> {
    let of = parts.len() as u32;
    let agent = |(part, nth): (&Measurement, u32)| Agent {
        node: format!("l{nth}"),
        cpus: vec![0],
        measurement: Box::new(study::pool::outline(part, nth as usize, 1, of).expect("histograms that were made")),
        network: NetworkCounters::default(),
        clock: NodeClock {
            offset_ns: 1_000_000 * i64::from(nth),
            error_ns: 20_000 + 1_000 * u64::from(nth),
            after_offset_ns: Some(1_000_000 * i64::from(nth) + 2_000),
            after_error_ns: Some(22_000),
        },
        verdict: None,
    };
    parts.iter().zip(1..).map(agent).collect()
}

/// The long run: 2 servers over 8 numbers of cores up to 40, whose throughput falls beyond some of them.
pub fn sweep() -> (Run, Vec<Record>) {
    static ONCE: LazyLock<(Run, Vec<Record>)> = LazyLock::new(make_sweep);
    ONCE.clone()
}

fn make_sweep() -> (Run, Vec<Record>) {
    let run = run(&["c-epoll", "go"], &[1, 2, 4, 8, 16, 24, 32, 40], &[80]);
    let mut records = Vec::new();
    for block in 0..TRIALS {
        for (point, plan) in run.plan.points.iter().enumerate() {
            let n = plan.factors["cores"].as_f64().expect("cores are numbers");
            let (rate, contention, coherency) =
                if point < 8 { (20_000.0, 0.05, 0.003) } else { (14_000.0, 0.12, 0.0004) };
            let rate_per_s = rate * n / (1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0));
            let behaviour = Behaviour { rate_per_s, subject_busy: 0.9, generator_busy: 0.6, spread: 0.015 };
            let trial = Trial { run: &run, point, block, order: records.len() as u32 };
            records.push(trial.measured(&behaviour));
        }
    }
    (run, records)
}

/// A server of HTTP over its number of threads, as the study `http-threads` has it: the machine has too few processors for the largest
/// numbers, the generator is the limit at one of them, and one trial met errors.
pub fn threads() -> (Run, Vec<Record>) {
    let (mut run, mut records) = sweep();
    let request =
        HttpRequestPlan { weight: 1, method: "GET".to_owned(), path: "/".to_owned(), headers: Vec::new(), body: None };
    run.id = "http-threads-20261121-090000".to_owned();
    let plan = &mut run.plan;
    plan.study = "http-threads".to_owned();
    plan.question = "How does the throughput of an HTTP server scale with its threads?".to_owned();
    plan.factors = vec!["threads".to_owned()];
    plan.points.truncate(8);
    plan.trials.metric = "throughput".to_owned();
    plan.tables = vec![Table { kind: TableKind::Statistics, metrics: vec!["throughput".to_owned()], title: None }];
    let scatter = plan.figures.iter().find(|figure| figure.kind == FigureKind::Scatter).cloned();
    plan.figures = scatter.into_iter().collect();
    for figure in &mut plan.figures {
        (figure.x, figure.series, figure.facet) = (Some("threads".to_owned()), None, None);
    }
    run.builds.truncate(1);
    let threads = |cores: &Level| BTreeMap::from([("threads".to_owned(), cores.clone())]);
    for point in &mut plan.points {
        point.factors = threads(&point.factors["cores"]);
        point.subject.command = "quintain serve http --threads {threads} -p {port}".to_owned();
        if point.subject.cpus > 24 {
            (point.subject.cpus, point.subject.cpus_wanted) = (24, Some(point.subject.cpus));
        }
        point.load.protocol = Protocol::Http;
        point.load.http = Some(HttpPlan { requests: vec![request.clone()], tls: None, expect: Expect::default() });
    }
    records.retain(|record| record.point < 8);
    for record in &mut records {
        record.factors = threads(&record.factors["cores"]);
        let Outcome::Measured(measurement) = &mut record.outcome else { continue };
        measurement.protocol = Protocol::Http;
        measurement.statuses = BTreeMap::from([(200, measurement.requests)]);
        measurement.received_bytes = measurement.requests * 111;
        measurement.sent_bytes = measurement.requests * 43;
        if (record.point, record.block) == (2, 3) {
            measurement.errors = BTreeMap::from([("status".to_owned(), 12), ("truncated".to_owned(), 1)]);
            measurement.error_examples = BTreeMap::from([("status".to_owned(), "503 to GET /".to_owned())]);
            measurement.statuses.insert(503, 12);
        }
        if record.point == 7 {
            for worker in &mut measurement.workers {
                worker.cpu_ns = DURATION_NS * 99 / 100;
            }
            record.subject.user_ns /= 3;
            record.subject.system_ns /= 3;
        }
        (record.verdict, record.warnings) = verdict::judge(record, None, &[]);
    }
    (run, records)
}

/// Latency over load, as the study `http-latency` has it: a search for the capacity, then trials at shares of what it found.
pub fn capacity() -> (Run, Vec<Record>) {
    static ONCE: LazyLock<(Run, Vec<Record>)> = LazyLock::new(make_capacity);
    ONCE.clone()
}

fn make_capacity() -> (Run, Vec<Record>) {
    let mut run = run(&["c-epoll"], &[1], &[80]);
    run.id = "http-latency-20261121-093000".to_owned();
    let shares = [20, 50, 80];
    let mut searching = run.plan.points.remove(0);
    let plan = &mut run.plan;
    plan.study = "http-latency".to_owned();
    plan.question = "How does the latency of an HTTP server grow with its load?".to_owned();
    plan.factors = ["server", "load"].map(str::to_owned).to_vec();
    plan.trials.metric = "latency_p99".to_owned();
    plan.tables = vec![Table { kind: TableKind::Metrics, metrics: vec!["latency_p99".to_owned()], title: None }];
    plan.figures.retain(|figure| figure.kind == FigureKind::Line);
    plan.figures.truncate(1);
    for figure in &mut plan.figures {
        figure.y = Some("latency_p99".to_owned());
        (figure.x, figure.series, figure.facet) = (Some("load".to_owned()), None, None);
    }
    searching.factors.retain(|name, _| name == "server");
    for (index, load) in shares.into_iter().enumerate() {
        let mut point = searching.clone();
        point.factors.insert("load".to_owned(), Level::Integer(load));
        point.load.share = Some(CapacityShare { share: load as f64 / 100.0, point: shares.len() });
        plan.points.insert(index, point);
    }
    searching.load.search = Some(SearchPlan {
        objective: "p99 < 5ms and errors < 0.1%".parse().expect("an objective"),
        from_per_s: None,
        to_per_s: None,
        resolution: 0.1,
        confirm: 2,
        pilot_ns: DURATION_NS,
        trials_max: 30,
        max_ns: None,
        first: true,
    });
    plan.points.push(searching);

    let mut records = Vec::<Record>::new();
    let mut blocks = vec![0; run.plan.points.len()];
    for point in [shares.len(), 0, 1, 2] {
        while let Next::Trial(Some(step)) = search::next(&run.plan, point, &records) {
            let trial = Trial { run: &run, point, block: blocks[point], order: records.len() as u32 };
            records.push(trial.open(step));
            blocks[point] += 1;
        }
    }
    (run, records)
}

/// What the subject of [`capacity`] can do, per second.
const CAPACITY_PER_S: f64 = 71_000.0;

/// A full factorial of words and numbers: two builds of one server, two sizes of its memory, two numbers of clients. The build matters most, memory
/// matters in the fast build alone, clients hardly matter, and one trial is lost.
pub fn builds() -> (Run, Vec<Record>) {
    static ONCE: LazyLock<(Run, Vec<Record>)> = LazyLock::new(make_builds);
    ONCE.clone()
}

fn make_builds() -> (Run, Vec<Record>) {
    let mut run = run(&["O0", "O2"], &[1, 10], &[40, 80]);
    let mut records = Vec::new();
    for block in 0..stats::claims::BLOCKS_MIN as u32 {
        let mut order = (0..run.plan.points.len()).collect::<Vec<_>>();
        Rng::stream(run.plan.seed, u64::from(block)).shuffle(&mut order);
        for point in order {
            let trial = Trial { run: &run, point, block, order: records.len() as u32 };
            let rate_per_s =
                [20_000.0, 20_000.0, 40_000.0, 50_000.0][point / 2] * if point % 2 == 1 { 1.002 } else { 1.0 };
            let behaviour = Behaviour { rate_per_s, subject_busy: 0.95, generator_busy: 0.6, spread: 0.02 };
            records.push(match (point, block) {
                (6, 2) => trial.failed(FailureKind::NotReady, "the subject did not listen within 5 s"),
                _ => trial.measured(&behaviour),
            });
        }
    }
    run.id = "builds-20261121-100000".to_owned();
    let plan = &mut run.plan;
    plan.study = "builds".to_owned();
    plan.question = "What changes the throughput of the server?".to_owned();
    plan.trials.metric = "throughput".to_owned();
    plan.factors = ["build", "maxmem", "clients"].map(str::to_owned).to_vec();
    let renamed = |levels: &BTreeMap<String, Level>| {
        let maxmem = Level::Text(format!("{}MB", levels["cores"]));
        BTreeMap::from([
            ("build".to_owned(), levels["server"].clone()),
            ("maxmem".to_owned(), maxmem),
            ("clients".to_owned(), levels["clients"].clone()),
        ])
    };
    plan.points.iter_mut().for_each(|point| point.factors = renamed(&point.factors));
    records.iter_mut().for_each(|record| record.factors = renamed(&record.factors));
    let mut figures = plan.figures.drain(..);
    let figure = figures.next().expect("the example has figures");
    drop(figures);
    let interaction = |x: &str, series: &str| Figure {
        kind: FigureKind::Interaction,
        x: Some(x.to_owned()),
        series: Some(series.to_owned()),
        facet: None,
        ..figure.clone()
    };
    plan.figures = vec![interaction("maxmem", "build"), interaction("clients", "build")];
    (run, records)
}

struct Trial<'a> {
    run: &'a Run,
    point: usize,
    block: u32,
    order: u32,
}

impl Trial<'_> {
    /// A numeric level; what is no factor of the run is 1, and clients are 80.
    fn level(&self, factor: &str) -> u32 {
        let level = self.run.plan.points[self.point].factors.get(factor).and_then(Level::as_f64);
        level.map_or(if factor == "clients" { 80 } else { 1 }, |level| level as u32)
    }

    /// A step of a search or of a share: an open loop, whose queue grows as that of M/M/1 until it has no end.
    fn open(&self, step: Step) -> Record {
        let offered = step.rate_per_s.unwrap_or(CAPACITY_PER_S);
        let load = offered / CAPACITY_PER_S;
        let rate_per_s = offered.min(CAPACITY_PER_S);
        let behaviour = Behaviour { rate_per_s, subject_busy: load.min(1.0), generator_busy: 0.5, spread: 0.01 };
        let mut record = self.measured(&behaviour);
        record.step = Some(step);
        let Outcome::Measured(measurement) = &mut record.outcome else { unreachable!("it was measured") };
        if step.purpose != Purpose::Pilot {
            let mean_ns = if load < 1.0 { (60_000.0 / (1.0 - load)).min(40e6) } else { 40e6 };
            let law = Distribution::Exponential { mean: mean_ns };
            let mut rng = Rng::stream(self.run.plan.seed, 2_000 + u64::from(self.order));
            let mut response = stats::Histogram::new();
            (0..measurement.requests).for_each(|_| response.record(law.sample(&mut rng) as u64));
            measurement.response = Some(Histogram::from(&response));
            measurement.offered_per_s = Some(offered);
            measurement.in_flight_mean = rate_per_s * mean_ns / 1e9;
        }
        (record.verdict, record.warnings) = verdict::judge(&record, None, &[]);
        record
    }

    fn record(&self, outcome: Outcome, behaviour: Option<&Behaviour>) -> Record {
        let cores = self.level("cores");
        let server = self.run.plan.points[self.point].factors["server"].to_string();
        let cpu_ns = behaviour.map_or(0.0, |behaviour| behaviour.subject_busy * DURATION_NS as f64 * f64::from(cores));
        let seconds = self.order * 2;
        let sample = |i: u64| Sample {
            at_ns: i * 25_000_000,
            cpu_ns: (cpu_ns / 10.0 * (i as f64 + 0.1 * (i as f64).sin())) as u64,
            rss_bytes: 2_600_000 + 10_000 * i,
            threads: cores,
            ..Sample::default()
        };
        let mut record = Record {
            version: RECORD_VERSION,
            point: self.point,
            factors: self.run.plan.points[self.point].factors.clone(),
            block: self.block,
            order: self.order,
            seed: u64::from(self.order) + 1,
            step: None,
            started: format!("2026-11-20T21:{:02}:{:02}Z", 5 + seconds / 60, seconds % 60),
            elapsed_ns: 900_000_000,
            ready_ns: behaviour.map(|_| 3_100_000),
            idle: IdlePolicy::Machine,
            outcome,
            subject: SubjectUse {
                command: vec![format!("subjects/{server}/{server}"), "-p".to_owned(), "40123".to_owned()],
                cpus: (0..cores).collect(),
                port: Some(40_123),
                user_ns: (cpu_ns * 0.2) as u64,
                system_ns: (cpu_ns * 0.8) as u64,
                measured_ns: DURATION_NS,
                measured_from_ns: 400_000_000,
                rss_max_bytes: behaviour.map(|_| 2_800_000 + 4_096 * u64::from(self.order % 7)),
                threads_max: cores,
                samples: behaviour.map_or_else(Vec::new, |_| (0..28).map(sample).collect()),
                exit: Some(if behaviour.is_some() { "exit 0" } else { "signal 11" }.to_owned()),
                ..SubjectUse::default()
            },
            proxies: Vec::new(),
            companions: Vec::new(),
            generator_cpus: vec![cores],
            cpus_shared: false,
            network: NetworkCounters::default(),
            verdict: None,
            probes: Probes { before: self.probes(0), after: self.probes(1) },
            agents: Vec::new(),
            warnings: Vec::new(),
        };
        (record.verdict, record.warnings) = verdict::judge(&record, self.run.calibration.as_ref(), &self.run.nodes);
        record
    }

    /// On two processors of which the second is a little slower, and had another process on it once.
    fn probes(&self, after: u64) -> Vec<Probe> {
        let mut rng = Rng::stream(self.run.plan.seed, 3_000 + 2 * u64::from(self.order) + after);
        let mut probe = |cpu: u32| {
            let cpu_ns = (8.2e6 * (1.0 + 0.01 * f64::from(cpu) + 0.004 * rng.normal())) as u64;
            let is_beside = (self.order, cpu, after) == (41, 1, 1);
            Probe { cpu, wall_ns: cpu_ns + if is_beside { 6_600_000 } else { 4_000 }, cpu_ns }
        };
        vec![probe(0), probe(1)]
    }

    fn failed(&self, kind: FailureKind, message: &str) -> Record {
        self.record(Outcome::Failed(Failure { kind, message: message.to_owned() }), None)
    }

    /// A closed loop: each client waits for its answer, then sends the next request.
    fn measured(&self, behaviour: &Behaviour) -> Record {
        let clients = self.level("clients");
        let mut rng = Rng::stream(self.run.plan.seed, 1_000 + u64::from(self.order));
        // One trial of the whole run is off, as happens.
        let off = if (self.point, self.block) == (8, 5) { 1.3 } else { 1.0 };
        let own = Distribution::Lognormal { median: off, sigma: behaviour.spread }.sample(&mut rng);
        let mean_ns = f64::from(clients) / behaviour.rate_per_s * 1e9 * own;
        let sigma = 0.35f64;
        let body = Distribution::Lognormal { median: mean_ns * (-sigma * sigma / 2.0).exp(), sigma };
        let tail = Distribution::Bimodal { low: 0.0, high: 3.0 * mean_ns, high_share: 0.004 };

        let mut service = stats::Histogram::new();
        let coarse = || stats::Histogram::with_precision(stats::Histogram::WINDOW_PRECISION);
        let mut windows = vec![coarse(); WINDOWS];
        for _ in 0..clients {
            // The first answer began before the measuring: every client is somewhere in its wait.
            let mut now = -rng.unit_f64() * mean_ns;
            loop {
                let latency = body.sample(&mut rng) + tail.sample(&mut rng);
                now += latency;
                if now >= DURATION_NS as f64 {
                    break;
                }
                if now >= 0.0 {
                    service.record(latency as u64);
                    windows[(now / WINDOW_NS as f64) as usize].record(latency as u64);
                }
            }
        }
        let mut connect = coarse();
        (0..clients).for_each(|_| connect.record(Distribution::Exponential { mean: 60_000.0 }.sample(&mut rng) as u64));
        let worker = Worker {
            cpu: Some(self.level("cores")),
            requests: service.len(),
            cpu_ns: (behaviour.generator_busy * DURATION_NS as f64) as u64,
            run_queue_ns: Some(400_000),
            wall_ns: DURATION_NS,
            turns: service.len() / 6,
            ..Worker::default()
        };
        let window = |latency: &stats::Histogram| Window {
            requests: latency.len(),
            errors: 0,
            latency: Histogram::from(latency),
        };
        let measurement = Measurement {
            version: SPEC_VERSION,
            protocol: Protocol::Pingpong,
            address: "127.0.0.1:40123".to_owned(),
            backend: "io_uring".to_owned(),
            backend_note: None,
            clients,
            threads: 1,
            pipeline: 1,
            connection: Connection::KeepAlive,
            began_ns: 0,
            duration_ns: DURATION_NS,
            warmup_ns: 300_000_000,
            warmup_requests: service.len(),
            requests: service.len(),
            errors: BTreeMap::new(),
            error_examples: BTreeMap::new(),
            statuses: BTreeMap::new(),
            warmup_errors: BTreeMap::new(),
            late_answers: 0,
            reconnects: 0,
            in_backoff_mean: 0.0,
            think_ns: 0,
            sent: 0,
            asked_again: 0,
            left_in_flight: 0,
            offered_per_s: None,
            unsent: 0,
            unfinished: u64::from(clients),
            censored: None,
            in_flight_mean: f64::from(clients),
            process_cpu_ns: worker.cpu_ns + 40_000_000,
            process_rss_max_bytes: 6_000_000,
            sent_bytes: service.len() * 4,
            received_bytes: service.len() * 4,
            service: Histogram::from(&service),
            response: None,
            lag_thread: None,
            lag_connection: None,
            connect: Histogram::from(&connect),
            handshake: None,
            resumed: 0,
            window_ns: WINDOW_NS,
            windows: windows.iter().map(window).collect(),
            workers: vec![worker],
            stop_reason: "250 ms measured".to_owned(),
            volley: None,
            cache: None,
            journey: None,
        };
        self.record(Outcome::Measured(measurement), Some(behaviour))
    }
}

/// Caches of 1, 2 and 4 MiB: the factors of a study of volleys with other names. GETs and misses of the replays are those of a cache that
/// halves its misses with each doubling; `measured` says how many more of a hundred thousand a trial misses, by server, place and block.
pub fn curves(measured: impl Fn(&str, usize, u32) -> i64) -> (Run, Vec<Record>) {
    let (mut run, mut records) = volley();
    let servers = run.plan.points.iter().map(|point| point.factors["server"].clone()).collect::<Vec<_>>();
    let names = |level: &Level| match level {
        Level::Text(word) if word == "c-epoll" => "ours-lru",
        Level::Text(word) if word == "go" => "redis-lru",
        _ => "memcached",
    };
    // Two cores and two numbers of clients: three capacities, of which one twice.
    let mut seen: BTreeMap<String, i64> = BTreeMap::new();
    for (point, server) in run.plan.points.iter_mut().zip(&servers) {
        let place = seen.entry(server.to_string()).or_insert(-1);
        *place += 1;
        let factors = [
            ("server".to_owned(), Level::Text(names(server).to_owned())),
            ("cap".to_owned(), Level::Integer(1 << *place)),
        ];
        point.factors = factors.into_iter().collect();
    }
    run.plan.factors = ["server", "cap"].map(str::to_owned).to_vec();
    run.plan.figures = vec![Figure {
        kind: FigureKind::MissRatio,
        x: Some("cap".to_owned()),
        y: None,
        y_more: Vec::new(),
        series: Some("server".to_owned()),
        facet: None,
        interval: 0.95,
        title: None,
        policies: ["lru", "belady"].map(str::to_owned).to_vec(),
        x_unit_bytes: Some(1 << 20),
    }];
    for record in &mut records {
        let factors = &run.plan.points[record.point].factors;
        let Level::Integer(cap) = factors["cap"] else { unreachable!() };
        let server = factors["server"].to_string();
        let Outcome::Measured(measurement) = &mut record.outcome else { continue };
        // The luck of a trial, which both have.
        let luck = u64::from(record.block * 7919 % 13) * 300;
        let simulated = 50_000 / cap as u64 + luck;
        let misses = (simulated as i64 + measured(&server, cap.trailing_zeros() as usize, record.block)) as u64;
        let counts = CacheCounts { hits: 100_000 - misses, misses, ..CacheCounts::default() };
        measurement.cache =
            Some(Box::new(CacheMeasurement { counts, footprint_bytes: 8 << 20, ..CacheMeasurement::default() }));
        let reference = |policy: &str, misses| Reference {
            policy: policy.to_owned(),
            point: record.point,
            block: record.block,
            capacity_bytes: (cap as u64) << 20,
            gets: 100_000,
            misses,
            problem: None,
        };
        run.references.push(reference("lru", simulated));
        run.references.push(reference("belady", simulated / 2));
    }
    (run, records)
}

/// A millisecond, ns.
pub const MS: u64 = 1_000_000;

/// A histogram of waits, ns.
pub fn waited(waits: &[u64]) -> Histogram {
    let mut histogram = stats::Histogram::new();
    waits.iter().for_each(|ns| histogram.record(*ns));
    Histogram::from(&histogram)
}

/// Leaves requests without an answer: how long those in flight had waited, one on each of as many connections, and those not sent.
pub fn leave(measurement: &mut Measurement, in_flight: &[u64], unsent: &[u64], silent_ns: u64) {
    let (in_flight, unsent) = (waited(in_flight), waited(unsent));
    (measurement.unfinished, measurement.unsent) = (in_flight.count, unsent.count);
    let connections = in_flight.clone();
    let censored = Censored { in_flight, unsent, connections, silent_ns, ..Censored::default() };
    measurement.censored = Some(Box::new(censored));
}

fn run(servers: &[&str], cores: &[i64], clients: &[i64]) -> Run {
    let mut points = Vec::new();
    for server in servers {
        for &cores in cores {
            points.extend(clients.iter().map(|&clients| point(server, cores, clients)));
        }
    }
    let build = |server: &&str| Build {
        command: format!("make -C subjects/{server} {server}"),
        points: (0..points.len())
            .filter(|&i| points[i].factors["server"] == Level::Text((*server).to_owned()))
            .collect(),
        outcome: BuildOutcome::Ready,
        elapsed_ns: 1_400_000_000,
    };
    Run {
        version: RECORD_VERSION,
        id: "volley-20261120-210500".to_owned(),
        started: "2026-11-20T21:05:00Z".to_owned(),
        profile: "default".to_owned(),
        command: ["quintain", "run", "volley", "--seed", "1"].map(str::to_owned).to_vec(),
        quintain: "0.1.0".to_owned(),
        revision: Some("0123abc".to_owned()),
        commit: None,
        host: host(cores.iter().max().map_or(4, |&most| most as u32 + 2)),
        doctor: doctor(),
        calibration: Some(calibration()),
        builds: servers.iter().map(build).collect(),
        references: Vec::new(),
        state: Some(study::record::RunState::Complete),
        resume: String::new(),
        nodes: Vec::new(),
        imported: String::new(),
        cpu_profiles: Vec::new(),
        plan: Plan {
            study: "volley".to_owned(),
            question: "How does ping-pong latency scale with server cores and clients?".to_owned(),
            text: "question = \"How does ping-pong latency scale with server cores and clients?\"\n".to_owned(),
            seed: 1,
            factors: ["server", "cores", "clients"].map(str::to_owned).to_vec(),
            points,
            trials: TrialRule {
                relative: Some(0.03),
                comparison: None,
                level: 0.95,
                metric: "latency_mean".to_owned(),
                min: TRIALS,
                max: 30,
                max_ns: Some(480_000_000_000),
                quick: false,
            },
            figures: vec![
                figure(FigureKind::Line, Some("cores"), Some("throughput")),
                figure(FigureKind::Line, Some("cores"), Some("latency_mean")),
                figure(FigureKind::Scatter, Some("cores"), Some("throughput")),
                figure(FigureKind::Ecdf, None, None),
                figure(FigureKind::Quantiles, None, None),
                figure(FigureKind::Timeline, None, Some("throughput")),
            ],
            tables: Vec::new(),
            effects: EffectsPlan::default(),
            slopes: Vec::new(),
            answer: None,
            gate: None,
        },
    }
}

fn figure(kind: FigureKind, x: Option<&str>, y: Option<&str>) -> Figure {
    Figure {
        kind,
        x: x.map(str::to_owned),
        y: y.map(str::to_owned),
        y_more: Vec::new(),
        series: Some("server".to_owned()),
        facet: Some("clients".to_owned()),
        interval: 0.95,
        title: None,
        policies: Vec::new(),
        x_unit_bytes: None,
    }
}

fn point(server: &str, cores: i64, clients: i64) -> Point {
    Point {
        factors: BTreeMap::from([
            ("server".to_owned(), Level::Text(server.to_owned())),
            ("cores".to_owned(), Level::Integer(cores)),
            ("clients".to_owned(), Level::Integer(clients)),
        ]),
        subject: SubjectPlan {
            build: Some(format!("make -C subjects/{server} {server}")),
            command: format!("subjects/{server}/{server} -p {{port}}"),
            container: None,
            directory: None,
            revision: None,
            environment: BTreeMap::new(),
            cpus: cores as u32,
            cpus_wanted: None,
            port: None,
            ready_timeout_ns: 5_000_000_000,
            stop_timeout_ns: 2_000_000_000,
            verify: None,
        },
        proxies: Vec::new(),
        proxy_cpus: 0,
        companions: Vec::new(),
        companion_cpus: 0,
        load: LoadPlan {
            protocol: Protocol::Pingpong,
            http: None,
            workload: None,
            journey: None,
            clients: clients as u32,
            pipeline: 1,
            connection: Connection::KeepAlive,
            threads: None,
            cpus: Some(1),
            share_cpus: false,
            backend: Backend::Auto,
            arrivals: Arrivals::Closed { think_ns: 0 },
            search: None,
            share: None,
            warmup: Warmup::DurationNs(300_000_000),
            stop: Stop::Duration { duration_ns: DURATION_NS },
            window_ns: WINDOW_NS,
            timeout_ns: 2_000_000_000,
        },
        unrunnable: None,
    }
}

fn host(cpus: u32) -> Host {
    Host {
        name: "example".to_owned(),
        kernel: "Linux 6.12.0".to_owned(),
        system: Some("Debian GNU/Linux 13".to_owned()),
        cpu_model: "Example CPU @ 2.50GHz".to_owned(),
        hypervisor: Some("KVM".to_owned()),
        cpus: (0..cpus).map(|index| Cpu { index, core: index, package: 0, node: 0 }).collect(),
        caches: ["L1d 48 KiB", "L2 2 MiB", "L3 32 MiB"].map(str::to_owned).to_vec(),
        memory_bytes: 8 << 30,
        smt: Some(false),
        clocksource: Some("tsc".to_owned()),
        idle: Some("haltpoll/menu".to_owned()),
        sysctls: BTreeMap::from([("net.core.somaxconn".to_owned(), "4096".to_owned())]),
        versions: BTreeMap::from([("cc".to_owned(), "14.2.0".to_owned()), ("go".to_owned(), "1.24.4".to_owned())]),
        load_average: Some(0.08),
        unknown: vec!["governor: this machine has none".to_owned()],
        ..Host::default()
    }
}

fn doctor() -> Vec<Finding> {
    let finding = |check: &str, state, text: &str, hint: Option<&str>| Finding {
        check: check.to_owned(),
        state,
        text: text.to_owned(),
        hint: hint.map(str::to_owned),
    };
    vec![
        finding("clock", FindingState::Good, "the clock source is tsc", None),
        finding(
            "virtualisation",
            FindingState::Warning,
            "this is a virtual machine (KVM)",
            Some("others may take its time"),
        ),
        finding("governor", FindingState::NotChecked, "the kernel shows no frequency governor", None),
    ]
}

fn calibration() -> Calibration {
    Calibration {
        measured: "2026-11-20T21:00:00Z".to_owned(),
        protocol: Protocol::Pingpong,
        server: String::new(),
        backend: "io_uring".to_owned(),
        idle: IdlePolicy::Machine,
        threads: 1,
        rate_max_per_s: 212_000.0,
        rate_max_clients: 80,
        generator_busy: None,
        cpu_per_request_ns: 4_600.0,
        floor_latency_ns_p50: 54_000.0,
        floor_latency_ns_p99: 81_000.0,
    }
}
