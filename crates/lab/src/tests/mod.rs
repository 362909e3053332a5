//! Tests of the lab with real processes; `examples/stand_in_quintain.rs` replaces the quintain binary.

mod companions;
mod processes;
mod proxies;
mod runs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use study::plan::{LoadPlan, Plan, Point, ProcessPlan, SubjectPlan, TrialRule};
use study::record::IdlePolicy;
use study::spec::{Arrivals, Backend, Connection, Protocol, Stop, Warmup};

use crate::Options;

pub(crate) fn stand_in(folder: &Path, name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let exe = tests.ancestors().nth(2).unwrap().join("examples/stand_in_quintain");
    assert!(exe.exists(), "{} is built by `cargo test` without `--lib`", exe.display());
    let link = folder.join(name);
    std::os::unix::fs::symlink(exe, &link).unwrap();
    link
}

fn options(exe: PathBuf) -> Options {
    let cpus = crate::host_facts::read(Path::new("/")).cpus;
    Options {
        exe,
        directory: PathBuf::from("/"),
        cpus,
        idle: IdlePolicy::Machine,
        cluster: None,
        probe: |_, _| Vec::new(),
    }
}

fn process(command: &str) -> ProcessPlan {
    let (command, ready_timeout_ns, stop_timeout_ns) = (command.to_owned(), 10_000_000_000, 10_000_000_000);
    ProcessPlan { command, ready_timeout_ns, stop_timeout_ns, ..ProcessPlan::default() }
}

fn point(command: &str) -> Point {
    Point {
        factors: BTreeMap::new(),
        subject: SubjectPlan { process: process(command), cpus: 1, ..SubjectPlan::default() },
        proxies: Vec::new(),
        proxy_cpus: 0,
        companions: Vec::new(),
        companion_cpus: 0,
        load: LoadPlan {
            shape: Vec::new(),
            protocol: Protocol::Pingpong,
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
            arrivals: Arrivals::closed(0),
            search: None,
            share: None,
            warmup: Warmup::DurationNs(0),
            stop: Stop::Duration { duration_ns: 100_000_000 },
            window_ns: 100_000_000,
            timeout_ns: 100_000_000,
        },
        unrunnable: None,
    }
}

fn plan(points: Vec<Point>, max: u32) -> Plan {
    let trials = TrialRule {
        relative: None,
        comparison: None,
        level: 0.95,
        metric: "throughput".to_owned(),
        min: 1,
        max,
        max_ns: None,
        quick: true,
    };
    Plan {
        study: "test".to_owned(),
        question: "does it work?".to_owned(),
        text: String::new(),
        seed: 7,
        factors: Vec::new(),
        points,
        trials,
        figures: Vec::new(),
        tables: Vec::new(),
        effects: study::plan::EffectsPlan::default(),
        slopes: Vec::new(),
        answer: None,
        gate: None,
    }
}

fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..1000 {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

fn here(port: u16) -> std::net::SocketAddr {
    (std::net::Ipv4Addr::LOCALHOST, port).into()
}

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

fn number_in(file: &Path) -> u32 {
    std::fs::read_to_string(file).unwrap().parse().unwrap()
}
