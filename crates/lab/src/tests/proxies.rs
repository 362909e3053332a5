//! Tests of trials through proxies.

use std::collections::BTreeMap;
use std::path::Path;

use study::plan::{Level, Plan, ProxyPlan};
use study::record::{BuildOutcome, FailureKind, Outcome, Record};

use super::{alive, eventually, here, number_in, options, plan, point, process, stand_in};
use crate::{Cause, Hooks};

const WELL: &str = "quintain serve well {port}";

fn proxy(name: &str, command: &str) -> ProxyPlan {
    ProxyPlan { name: name.to_owned(), process: process(command), ..ProxyPlan::default() }
}

fn through(proxies: Vec<ProxyPlan>) -> Plan {
    let mut point = point(WELL);
    point.factors = BTreeMap::from([("through".to_owned(), Level::Text("it".to_owned()))]);
    point.proxies = proxies;
    plan(vec![point], 1)
}

fn run(plan: &Plan) -> Record {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Vec::new();
    let mut hooks = Hooks {
        store: &mut |record| {
            records.push(record.clone());
            Ok(())
        },
        next: &mut |_, _| study::Next::Trial(None),
        progress: &mut |_| {},
        interrupted: &|| false,
    };
    let ended = crate::run(plan, &[], &[], &options(stand_in(folder.path(), "quintain")), &mut hooks).unwrap();
    assert_eq!(ended, Cause::Complete);
    records.remove(0)
}

#[test]
fn measures_usage_and_bytes_of_a_proxy() {
    let record = run(&through(vec![proxy("m", "quintain serve forward {port} {next_port}")]));
    let measurement = record.measurement().unwrap();
    assert_eq!(measurement.requests, 20);
    let [proxy] = record.proxies.as_slice() else { panic!("{:?}", record.proxies) };
    assert_eq!((proxy.name.as_str(), proxy.shares_cpus, proxy.used.exit.as_deref()), ("m", true, Some("signal 15")));
    assert_eq!(proxy.used.cpus, record.subject.cpus);
    let [own, next] = [proxy.used.port.unwrap(), record.subject.port.unwrap()];
    assert_eq!(proxy.used.command, ["quintain", "serve", "forward", &own.to_string(), &next.to_string()]);
    assert!(proxy.ready_ns.is_some() && !proxy.used.samples.is_empty() && proxy.used.threads_max >= 2, "{proxy:?}");
    assert!(proxy.used.measured_ns >= 100_000_000 && proxy.used.measured_from_ns > 0, "{proxy:?}");
    assert!(proxy.used.rss_max_bytes.is_some_and(|bytes| bytes > 100_000));
    // Each request has four bytes per direction. The proxy sends it twice, and the last acknowledgment may be late.
    let wire = proxy.wire.unwrap();
    assert!((120..=160).contains(&wire.front_bytes) && (280..=320).contains(&wire.back_bytes), "{wire:?}");
    assert!(!crate::ports_and_readiness::answers(here(own), std::time::Duration::from_secs(1)));
}

#[test]
fn starts_a_chain_of_proxies_from_the_server() {
    let chain = ["a", "b"].map(|name| proxy(name, "quintain serve forward {port} {next_port}"));
    let record = run(&through(chain.to_vec()));
    assert_eq!(record.measurement().map(|measured| measured.requests), Some(20));
    let [a, b] = record.proxies.as_slice() else { panic!("{:?}", record.proxies) };
    let port = |words: &[String], at: usize| words[at].parse::<u16>().unwrap();
    assert_eq!((a.name.as_str(), port(&a.used.command, 4)), ("a", b.used.port.unwrap()));
    assert_eq!((b.name.as_str(), port(&b.used.command, 4)), ("b", record.subject.port.unwrap()));
    let between = [a.wire.unwrap().back_bytes, b.wire.unwrap().front_bytes];
    assert!(between.iter().all(|bytes| (280..=320).contains(bytes)), "{between:?}");
}

#[test]
fn proxy_gets_both_ports_of_the_server() {
    let mut plan = through(vec![proxy("m", "quintain serve forward {port} {next_port} {subject_port} {second_port}")]);
    plan.points[0].subject.process.command = format!("{WELL} {{second_port}}");
    let record = run(&plan);
    assert!(record.measurement().is_some(), "{:?}", record.outcome);
    let [.., port, second] = record.subject.command.as_slice() else { panic!("{:?}", record.subject.command) };
    let own = record.subject.port.unwrap().to_string();
    assert!(*port == own && second.parse::<u16>().is_ok_and(|second| second.to_string() != own), "{port} {second}");
    assert_eq!(record.proxies[0].used.command[4..], [port, port, second].map(String::clone));
}

#[test]
fn fills_templates_and_reads_calls() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("template");
    std::fs::write(&template, "{next_port} {subject_port} {through}").unwrap();
    let mut with_file = proxy("f", "quintain serve forward-file {port} {folder}/it.conf");
    with_file.files.insert("it.conf".to_owned(), template.display().to_string());
    let record = run(&through(vec![with_file]));
    assert!(record.measurement().is_some(), "{:?}", record.outcome);
    assert_eq!(record.proxies[0].used.stderr_tail, "level it");
    let place = record.proxies[0].used.command.last().unwrap();
    assert!(!Path::new(place).exists(), "its directory is removed with it");

    let mut telling = proxy("c", "quintain serve forward-calls {port} {next_port} {folder}/calls.csv");
    telling.calls = Some("calls.csv".to_owned());
    let record = run(&through(vec![telling.clone()]));
    let calls = record.proxies[0].calls.as_deref().unwrap();
    assert_eq!((calls.own_ns.as_slice(), calls.m1a_bytes.as_slice()), (&[5000, 7000][..], &[118, 17][..]));
    telling.calls = Some("others.csv".to_owned());
    let record = run(&through(vec![telling]));
    assert!(record.measurement().is_some() && record.proxies[0].calls.is_none());
    let warning = "proxy `c`: calls file `others.csv`: No such file or directory (os error 2)";
    assert_eq!(record.warnings, [study::WarningKind::NotRead.says(warning)]);
}

#[test]
fn failing_proxies_are_named() {
    for (command, message) in [
        ("quintain serve early-exit {port}", "proxy `m`: exited (exit 7) before port "),
        (
            "quintain serve forward-crash {port} {next_port}",
            "proxy `m`: exited (signal 9) under load; last output: the proxy is rotten",
        ),
        ("quintain 'serve", "proxy `m`: "),
    ] {
        let mut plan = through(vec![proxy("m", command)]);
        plan.points[0].load.stop = study::spec::Stop::Duration { duration_ns: 2_000_000_000 };
        let record = run(&plan);
        let Outcome::Failed(failure) = &record.outcome else { panic!("{:?}", record.outcome) };
        assert_eq!(failure.kind, FailureKind::Proxy, "{failure:?}");
        assert!(failure.message.starts_with(message), "{failure:?}");
        assert!(!crate::ports_and_readiness::answers(
            here(record.subject.port.unwrap()),
            std::time::Duration::from_secs(1)
        ));
    }
}

#[test]
fn proxy_processes_end_with_the_trial() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stray");
    let command = format!("quintain serve forward-stray {{port}} {{next_port}} {}", file.display());
    let record = run(&through(vec![proxy("m", &command)]));
    assert!(record.measurement().is_some(), "{:?}", record.outcome);
    let stray = number_in(&file);
    assert!(eventually(|| !alive(stray)));
}

#[test]
fn missing_program_skips_only_its_points() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = through(vec![proxy("gone", "quintain-no-such-program -p {port}")]);
    plan.points.push(point(WELL));
    let options = options(stand_in(folder.path(), "quintain"));
    let builds = crate::build_all(&plan, &options, &mut |_| {}, &|| false).unwrap();
    let [build] = builds.as_slice() else { panic!("{builds:?}") };
    assert_eq!(build.points, [0]);
    let reason = "`quintain-no-such-program` is not installed".to_owned();
    assert_eq!(build.outcome, BuildOutcome::Skipped { reason });
}
