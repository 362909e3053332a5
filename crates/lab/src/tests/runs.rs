//! Tests of whole runs with servers and generators that fail.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use study::plan::{CapacityShare, Plan, Point, SearchPlan};
use study::record::{BuildOutcome, FailureKind, IdlePolicy, Limit, Outcome, Purpose, Record, Step, Verdict};
use study::spec::{Arrivals, Protocol};
use study::{Next, WarningKind};

use super::{alive, eventually, here, number_in, options, plan, point, stand_in};
use crate::process_start_and_stop::command;
use crate::trial::{Bench, Trial};
use crate::{Cause, Hooks, LabError, Options, Phase, Progress, build_all};

#[derive(Default)]
struct Told {
    records: Vec<Record>,
    progress: Vec<Progress>,
}

fn run_with(
    plan: &Plan,
    done: &[Record],
    options: &Options,
    next: &mut dyn FnMut(usize, &[Record]) -> Next,
    interrupted: &dyn Fn(&Told) -> bool,
) -> (Result<Cause, LabError>, Told) {
    let told = RefCell::new(Told::default());
    let mut hooks = Hooks {
        store: &mut |record| {
            let verdict = Verdict { limited_by: Limit::Neither, reasons: Vec::new() };
            record.verdict = record.measurement().map(|_| verdict);
            record.warnings.push(WarningKind::Other.says("judged"));
            told.borrow_mut().records.push(record.clone());
            Ok(())
        },
        next,
        progress: &mut |progress| told.borrow_mut().progress.push(progress.clone()),
        interrupted: &|| interrupted(&told.borrow()),
    };
    let ended = crate::run(plan, &[], done, options, &mut hooks);
    (ended, told.into_inner())
}

fn run(plan: &Plan, options: &Options) -> (Cause, Told) {
    let (ended, told) = run_with(plan, &[], options, &mut |_, _| Next::Trial(None), &|_| false);
    (ended.unwrap(), told)
}

fn one(name: &str, point: Point) -> Record {
    let folder = tempfile::tempdir().unwrap();
    let (ended, mut told) = run(&plan(vec![point], 1), &options(stand_in(folder.path(), name)));
    assert_eq!(ended, Cause::Complete);
    assert_eq!(told.records.len(), 1);
    told.records.remove(0)
}

fn check_failure(name: &str, point: Point, kind: FailureKind, message: &str) -> Record {
    let record = one(name, point);
    let Outcome::Failed(failure) = &record.outcome else { panic!("{:?}", record.outcome) };
    assert_eq!(failure.kind, kind, "{failure:?}");
    assert!(failure.message.contains(message), "{failure:?}");
    assert_eq!((record.verdict.as_ref(), record.warnings.as_slice()), (None, &[WarningKind::Other.says("judged")][..]));
    record
}

#[test]
fn successful_trial_leaves_a_complete_record() {
    let record = one("quintain", point("quintain serve well {port}"));
    let measurement = record.measurement().unwrap();
    assert_eq!((measurement.requests, measurement.errors_total()), (20, 0));
    assert_eq!(record.seed, plan(vec![point("x")], 1).trial_seed(0));
    assert!(record.ready_ns.is_some_and(|ready| ready > 0 && ready < record.elapsed_ns), "{record:?}");
    assert_eq!(record.verdict.as_ref().map(|verdict| verdict.limited_by), Some(Limit::Neither));
    let subject = &record.subject;
    assert_eq!(subject.command, ["quintain", "serve", "well", &subject.port.unwrap().to_string()]);
    assert_eq!(subject.exit.as_deref(), Some("signal 15"));
    assert!(subject.measured_ns >= 100_000_000 && subject.measured_ns < record.elapsed_ns, "{subject:?}");
    assert!(subject.measured_share.is_some_and(|share| share > 0.0 && share <= 1.0), "{subject:?}");
    assert!(subject.run_queue_ns.is_some(), "{subject:?}");
    assert_eq!(record.cpus_shared, subject.others_ns.is_none(), "{subject:?}");
    assert!(subject.switches_voluntary >= 1, "it waited for its requests: {subject:?}");
    assert!(subject.threads_max >= 2 && subject.sockets_max >= 2, "{subject:?}");
    assert!(subject.rss_max_bytes.is_some_and(|bytes| bytes > 100_000), "{subject:?}");
    assert!(subject.pss_max_bytes <= subject.rss_max_bytes, "{subject:?}");
    assert!(!subject.samples.is_empty() && subject.samples.is_sorted_by_key(|sample| sample.at_ns), "{subject:?}");
    assert!(!alive_on(subject.port.unwrap()));
}

#[test]
fn probes_cpus_around_a_trial() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(stand_in(folder.path(), "quintain"));
    options.probe = crate::cpu_probe::run;
    let plan = plan(vec![point("quintain serve well {port}"), point("quintain serve early-exit {port}")], 1);
    let (_, told) = run(&plan, &options);
    assert_eq!(told.records.len(), 2);
    for record in &told.records {
        let mut used = record.subject.cpus.clone();
        used.extend(record.generator_cpus.iter().take(4));
        used.sort_unstable();
        used.dedup();
        for probes in [&record.probes.before, &record.probes.after] {
            assert_eq!(probes.iter().map(|probe| probe.cpu).collect::<Vec<_>>(), used, "{record:?}");
        }
        assert!(record.probes.all().all(|probe| probe.cpu_ns > 0 && probe.wall_ns > 0), "{record:?}");
    }
    assert!(one("quintain", point("quintain serve well {port}")).probes.is_empty());
}

fn alive_on(port: u16) -> bool {
    crate::ports_and_readiness::answers(here(port), Duration::from_secs(1))
}

#[test]
fn reports_servers_that_do_not_start() {
    let start = FailureKind::Start;
    let record = check_failure("quintain", point("quintain serve early-exit {port}"), start, "(exit 7) before port ");
    assert_eq!(record.subject.stderr_tail, "bind: permission denied");
    assert_eq!(record.subject.exit.as_deref(), Some("exit 7"));
    assert_eq!(record.ready_ns, None);
    check_failure("quintain", point("quintain-no-such-program"), start, "No such file");
    check_failure("quintain", point("quintain 'serve"), start, "unclosed `'` in");
    let mut lost = point("quintain serve well {port}");
    lost.subject.process.directory = Some("quintain/no/such/folder".to_owned());
    check_failure("quintain", lost, start, "cannot start");
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut taken = point("quintain serve well {port}");
    taken.subject.process.port = Some(held.local_addr().unwrap().port());
    check_failure("quintain", taken, start, "is in use by another process");
    let mut wide = point("quintain serve well {port}");
    wide.subject.cpus = 1_000_000;
    check_failure("quintain", wide, start, "needs 1000001 CPUs");
}

#[test]
fn reports_a_server_that_daemonizes() {
    let record = check_failure(
        "quintain",
        point("/bin/sh -c 'sleep 1000 & exit 0' {port}"),
        FailureKind::Start,
        "accepted connections, but a process it had started kept running in the background, unsupervised: start it in \
         the foreground (",
    );
    assert_eq!(record.subject.exit.as_deref(), Some("exit 0"));
}

#[test]
fn kills_a_server_that_ignores_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let exe = stand_in(folder.path(), "quintain");
    // Ignored signals stay ignored across exec(2).
    let command = format!("/bin/sh -c 'trap \"\" TERM; exec \"$0\" serve well $1' {} {{port}}", exe.display());
    let mut stubborn = point(&command);
    stubborn.subject.process.stop_timeout_ns = 20_000_000;
    let (_, told) = run(&plan(vec![stubborn], 1), &options(exe));
    let record = &told.records[0];
    assert!(record.measurement().is_some(), "{:?}", record.outcome);
    assert_eq!(record.subject.exit.as_deref(), Some("forced after 20ms"));
    let sentence = "ignored SIGTERM: still running after 20ms, then killed (`stop_timeout`)";
    assert_eq!(record.warnings, [WarningKind::IgnoredSigterm.says(sentence), WarningKind::Other.says("judged")]);
}

#[test]
fn reports_a_server_that_never_listens() {
    let mut deaf = point("quintain serve deaf {port}");
    deaf.subject.process.ready_timeout_ns = 50_000_000;
    let record = check_failure("quintain", deaf, FailureKind::NotReady, "within 50ms");
    assert_eq!(record.subject.exit.as_deref(), Some("signal 15"));
}

#[test]
fn retries_when_a_free_port_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("started");
    let record = one("quintain", point(&format!("quintain serve taken-once {{port}} {}", file.display())));
    assert!(record.measurement().is_some(), "{:?}", record.outcome);
}

#[test]
fn reports_a_server_that_crashes_under_load() {
    let mut crash = point("quintain serve crash {port}");
    crash.load.stop = study::spec::Stop::Duration { duration_ns: 20_000_000_000 };
    let record = check_failure("quintain", crash, FailureKind::Exited, "exited (signal 9) under load");
    assert_eq!(record.subject.stderr_tail, "something is rotten");
    assert_eq!(record.subject.exit.as_deref(), Some("signal 9"));
}

#[test]
fn reports_failing_generators() {
    let well = || point("quintain serve well {port}");
    let generator = FailureKind::Generator;
    let record = check_failure(
        "load-crashes",
        well(),
        generator,
        "exit 7 without a measurement; last output: out of \
                                                                   luck",
    );
    assert_eq!(record.subject.exit.as_deref(), Some("signal 15"), "the subject is ended as ever");
    check_failure("load-aborts", well(), generator, "signal 6 without a measurement");
    check_failure("load-babbles", well(), generator, "unexpected line in its output: `\"hello\"`");
    check_failure("load-complains", well(), generator, "cannot open any of 4 connections");
    check_failure(
        "load-hears-nothing",
        well(),
        FailureKind::Answers,
        "no valid response during the measurement: 5 wrong-answer",
    );
    let mut other = well();
    other.load.protocol = Protocol::Http;
    check_failure("quintain", other, generator, "has no requests for `http`");
}

#[test]
fn abandons_a_hung_load() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(stand_in(folder.path(), "load-hangs"));
    let plan = plan(vec![point("quintain serve well {port}")], 1);
    let bench = Bench::start(&plan, &options, &|| false).unwrap();
    let bench = &Bench { margin: Duration::from_millis(400), ..bench };
    let trial = Trial { bench, point: 0, block: 0, order: 0, step: None, revision: None, perf: None };
    let record = trial.run(&mut |_| {}).unwrap();
    let Outcome::Failed(failure) = &record.outcome else { panic!("{:?}", record.outcome) };
    // The generator reported zero responses and then fell silent, so the server is at fault.
    assert_eq!(failure.kind, FailureKind::Hung, "{failure:?}");
    assert!(failure.message.contains("after 0 requests"), "{failure:?}");
}

#[test]
fn failures_end_the_point_but_not_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut away = point("never started");
    away.unrunnable = Some("needs 41 CPUs, has 2".to_owned());
    let plan = plan(vec![point("quintain serve early-exit {port}"), point("quintain serve well {port}"), away], 4);
    let (ended, told) = run(&plan, &options(stand_in(folder.path(), "quintain")));
    assert_eq!(ended, Cause::Complete);
    let trials = |point| told.records.iter().filter(|record| record.point == point).count();
    assert_eq!((trials(0), trials(1), trials(2)), (3, 4, 0));
    assert_eq!(told.records.iter().map(|record| record.order).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    let order: Vec<usize> = told.records[..2].iter().map(|record| record.point).collect();
    let expected: Vec<usize> = plan.order_of_block(0).into_iter().filter(|point| *point != 2).collect();
    assert_eq!(order, expected);
    for phase in [Phase::Start, Phase::Warmup, Phase::Measure, Phase::Stop] {
        assert!(told.progress.iter().any(|progress| progress.phase == phase), "{phase:?}");
    }
    let loads = told.progress.iter().filter_map(|progress| progress.live.as_ref()).collect::<Vec<_>>();
    assert!(loads.iter().any(|live| live.load.requests > 1 && live.server.is_some_and(|used| used.at_ns > 0)));
}

/// A missing interpreter or kernel feature, for example, would fail every trial in the same way.
#[test]
fn unrunnable_server_is_started_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let unable = "/bin/sh -c 'echo cannot run here: nginx is not installed >&2; exit 69' {port}";
    let (ended, told) = run(&plan(vec![point(unable)], 4), &options(stand_in(folder.path(), "quintain")));
    assert_eq!(ended, Cause::Complete);
    let [record] = &told.records[..] else { panic!("{:?}", told.records) };
    let Outcome::Failed(failure) = &record.outcome else { panic!("{:?}", record.outcome) };
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Unrunnable, "nginx is not installed"));
}

#[test]
fn resumed_run_continues_unfinished_points() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(stand_in(folder.path(), "quintain"));
    let plan = plan(vec![point("quintain serve well {port}"), point("quintain serve well {port}")], 3);
    let mut next = |point: usize, records: &[Record]| match point {
        0 if records.iter().any(|record| record.point == 0) => Next::Enough,
        _ => Next::Trial(None),
    };
    let (ended, first) = run_with(&plan, &[], &options, &mut next, &|told| told.records.len() == 3);
    assert_eq!(ended.unwrap(), Cause::Interrupted);
    assert_eq!(first.records.len(), 3);
    let (ended, second) = run_with(&plan, &first.records, &options, &mut next, &|_| false);
    assert_eq!(ended.unwrap(), Cause::Complete);
    assert_eq!(second.records.len(), 1);
    let all: Vec<_> = first.records.iter().chain(&second.records).map(|r| (r.order, r.point, r.block)).collect();
    assert_eq!(all.iter().map(|(order, ..)| *order).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let blocks = |point| all.iter().filter(|(_, p, _)| *p == point).map(|(.., block)| *block).collect::<Vec<_>>();
    assert_eq!((blocks(0), blocks(1)), (vec![0], vec![0, 1, 2]));
}

/// Runs three steps of a search at point 1, then two trials of point 0 at half of the last rate.
fn search_first(point: usize, records: &[Record]) -> Next {
    let of = |point: usize| records.iter().filter(move |record| record.point == point);
    let step = |purpose, rate_per_s| Next::Trial(Some(Step { purpose, rate_per_s }));
    match (point, of(1).count(), of(0).count()) {
        (1, 0, _) => step(Purpose::Pilot, None),
        (1, 1, _) => step(Purpose::Bracket, Some(1_000.0)),
        (1, 2, _) => step(Purpose::Bisect, Some(700.0)),
        (0, _, 0 | 1) => {
            let last = of(1).filter_map(|record| record.step?.rate_per_s).next_back().expect("it was searched before");
            step(Purpose::Share, Some(last / 2.0))
        }
        _ => Next::Enough,
    }
}

fn plan_with_a_search() -> Plan {
    let mut plan = plan(vec![point("quintain serve well {port}"), point("quintain serve well {port}")], 5);
    let open = Arrivals::Constant { rate_per_s: 1.0 };
    plan.points.iter_mut().for_each(|point| point.load.arrivals = open);
    plan.points[0].load.share = Some(CapacityShare { share: 0.5, point: 1 });
    plan.points[1].load.search = Some(SearchPlan {
        objective: study::Objective::parse("p99 < 5ms").unwrap(),
        from_per_s: None,
        to_per_s: None,
        resolution: 0.05,
        confirm: 3,
        pilot_ns: 50_000_000,
        trials_max: 9,
        max_ns: None,
        first: true,
    });
    plan
}

#[test]
fn search_runs_before_points_that_depend_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(stand_in(folder.path(), "quintain"));
    let plan = plan_with_a_search();
    let (ended, told) = run_with(&plan, &[], &options, &mut search_first, &|_| false);
    assert_eq!(ended.unwrap(), Cause::Complete);
    let seen = |record: &Record| {
        let measurement = record.measurement().unwrap();
        (record.point, record.block, record.step.unwrap().purpose, measurement.offered_per_s, measurement.duration_ns)
    };
    let expected = [
        (1, 0, Purpose::Pilot, None, 50_000_000),
        (1, 1, Purpose::Bracket, Some(1_000.0), 100_000_000),
        (1, 2, Purpose::Bisect, Some(700.0), 100_000_000),
        (0, 0, Purpose::Share, Some(350.0), 100_000_000),
        (0, 1, Purpose::Share, Some(350.0), 100_000_000),
    ];
    assert_eq!(told.records.iter().map(seen).collect::<Vec<_>>(), expected);
}

#[test]
fn interrupted_search_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(stand_in(folder.path(), "quintain"));
    let plan = plan_with_a_search();
    let (ended, first) = run_with(&plan, &[], &options, &mut search_first, &|told| told.records.len() == 2);
    assert_eq!(ended.unwrap(), Cause::Interrupted);
    let (ended, second) = run_with(&plan, &first.records, &options, &mut search_first, &|_| false);
    assert_eq!(ended.unwrap(), Cause::Complete);
    let place = |record: &Record| (record.point, record.block, record.order);
    assert_eq!(second.records.iter().map(place).collect::<Vec<_>>(), [(1, 2, 2), (0, 0, 3), (0, 1, 4)]);
}

#[test]
fn search_tolerates_more_failures() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(stand_in(folder.path(), "quintain"));
    let mut plan = plan_with_a_search();
    plan.points[1].subject.process.command = "quintain serve early-exit {port}".to_owned();
    let mut next =
        |point: usize, records: &[Record]| match records.iter().filter(|record| record.point == point).count() {
            tried if point == 1 && tried < 5 => {
                Next::Trial(Some(Step { purpose: Purpose::Bracket, rate_per_s: Some(100.0) }))
            }
            _ => Next::Enough,
        };
    let (ended, told) = run_with(&plan, &[], &options, &mut next, &|_| false);
    assert_eq!(ended.unwrap(), Cause::Complete);
    assert_eq!(told.records.len(), 5, "its own rule says when to give up");
    let mut endless =
        |_: usize, _: &[Record]| Next::Trial(Some(Step { purpose: Purpose::Bracket, rate_per_s: Some(100.0) }));
    plan.points.remove(0);
    let (ended, told) = run_with(&plan, &[], &options, &mut endless, &|_| false);
    assert_eq!((ended.unwrap(), told.records.len()), (Cause::Complete, 9));
}

#[test]
fn interruption_drops_the_trial_and_its_processes() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(stand_in(folder.path(), "quintain"));
    let file = folder.path().join("stray");
    let mut slow = point(&format!("quintain serve with-stray {{port}} {}", file.display()));
    slow.load.stop = study::spec::Stop::Duration { duration_ns: 60_000_000_000 };
    let measuring = |told: &Told| told.progress.iter().any(|progress| progress.phase == Phase::Measure);
    let (ended, told) = run_with(&plan(vec![slow], 1), &[], &options, &mut |_, _| Next::Trial(None), &measuring);
    assert_eq!(ended.unwrap(), Cause::Interrupted);
    assert_eq!(told.records.len(), 0);
    assert!(eventually(|| !alive(number_in(&file))));
}

#[test]
fn time_limit_and_store_errors_end_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(stand_in(folder.path(), "quintain"));
    let mut plan = plan(vec![point("quintain serve well {port}")], 3);
    plan.trials.max_ns = Some(1);
    let (ended, told) = run(&plan, &options);
    assert_eq!((ended, told.records.len()), (Cause::OutOfTime, 1), "the block that has begun is ended");
    let mut hooks = Hooks {
        store: &mut |_| Err("disk full".to_owned()),
        next: &mut |_, _| Next::Trial(None),
        progress: &mut |_| {},
        interrupted: &|| false,
    };
    let error = crate::run(&plan, &[], &[], &options, &mut hooks).unwrap_err();
    assert_eq!(error.to_string(), "cannot store the record of trial 0: disk full");
}

#[test]
fn starts_nothing_without_a_watchdog() {
    let (ended, told) = run_with(
        &plan(vec![point("quintain serve well {port}")], 1),
        &[],
        &options("/quintain/no/such/file".into()),
        &mut |_, _| Next::Trial(None),
        &|_| false,
    );
    assert!(matches!(ended, Err(LabError::Watchdog { .. })), "{ended:?}");
    assert_eq!(told.records.len(), 0);
}

#[test]
fn failing_spinners_end_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(vec![point("quintain serve well {port}")], 1);
    let mut spinning = options(stand_in(folder.path(), "quintain"));
    spinning.idle = IdlePolicy::Spin;
    let (_, told) = run(&plan, &spinning);
    assert_eq!(told.records[0].idle, IdlePolicy::Spin);
    assert!(told.records[0].measurement().is_some());
    spinning.exe = stand_in(folder.path(), "spin-dies");
    let (ended, told) = run_with(&plan, &[], &spinning, &mut |_, _| Next::Trial(None), &|_| false);
    let text = ended.unwrap_err().to_string();
    assert!(text.contains("are not running: exit 7 no such policy"), "{text}");
    assert_eq!(told.records.len(), 0);
}

#[test]
fn runs_each_build_once_and_classifies_failures() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(stand_in(folder.path(), "quintain"));
    options.directory = folder.path().to_owned();
    let with = |build: &str| {
        let mut point = point("quintain serve well {port}");
        point.subject.process.build = Some(build.to_owned());
        point
    };
    let mut away = with("/bin/sh -c 'touch never'");
    away.unrunnable = Some("too big".to_owned());
    let points = vec![
        with("/bin/sh -c 'echo built >> log'"),
        with("/bin/sh -c 'echo missing toolchain: go >&2; exit 2'"),
        with("/bin/sh -c 'echo x.c:1: error; exit 2'"),
        with("/bin/sh -c 'echo cannot run here: no io_uring >&2; echo make: Error 69 >&2; exit 2'"),
        with("/bin/sh -c 'echo built >> log'"),
        with(""),
        away,
    ];
    let plan = plan(points, 1);
    let stop = Cell::new(false);
    let interrupted = || stop.get();
    let mut measured = BTreeSet::new();
    let mut hooks = Hooks {
        store: &mut |record| {
            measured.insert(record.point);
            Ok(())
        },
        next: &mut |_, _| Next::Trial(None),
        progress: &mut |_| {},
        interrupted: &interrupted,
    };
    let builds = build_all(&plan, &options, &mut |_| {}, &interrupted).unwrap();
    let outcomes: Vec<_> = builds.iter().map(|build| (build.points.clone(), build.outcome.clone())).collect();
    let expected = [
        (vec![0, 4], BuildOutcome::Ready),
        (vec![1], BuildOutcome::Skipped { reason: "missing toolchain: go".to_owned() }),
        (vec![2], BuildOutcome::Failed { output_tail: "x.c:1: error\nexit 2".to_owned() }),
        (vec![3], BuildOutcome::Unrunnable { reason: "no io_uring".to_owned() }),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(std::fs::read_to_string(folder.path().join("log")).unwrap(), "built\n");
    assert!(!folder.path().join("never").exists());

    assert_eq!(crate::run(&plan, &builds, &[], &options, &mut hooks).unwrap(), Cause::Complete);
    assert_eq!(measured, BTreeSet::from([0, 4, 5]), "points without a working build are left out");

    stop.set(true);
    let slow = super::plan(vec![with("sleep 1000")], 1);
    assert_eq!(build_all(&slow, &options, &mut |_| {}, &interrupted).unwrap(), [], "interrupted at once");
}

#[test]
fn killed_lab_leaves_records_but_no_processes() {
    let folder = tempfile::tempdir().unwrap();
    let exe = stand_in(folder.path(), "quintain");
    let file = |name: &str| folder.path().join(name);
    let mut slow = point(&format!("quintain serve with-stray {{port}} {}", file("stray").display()));
    slow.load.stop = study::spec::Stop::Duration { duration_ns: 60_000_000_000 };
    let plan = plan(vec![point("quintain serve well {port}"), slow], 2);
    let plan = (0..).map(|seed| Plan { seed, ..plan.clone() }).find(|plan| plan.order_of_block(0) == [0, 1]).unwrap();
    std::fs::write(file("plan"), serde_json::to_string(&plan).unwrap()).unwrap();
    let mut lab = command(&exe).arg("lab").arg(file("plan")).arg(file("records")).spawn().unwrap();
    let begun = eventually(|| file("stray").exists());
    let mark = format!("QUINTAIN_CHILD={}-", lab.id());
    let family = marked(&mark);
    let watchdogs = children_of(lab.id());
    lab.kill().unwrap();
    lab.wait().unwrap();
    assert!(begun && family.contains(&number_in(&file("stray"))), "{family:?}");
    assert!(family.iter().chain(&watchdogs).all(|pid| eventually(|| !alive(*pid))), "{family:?}");
    assert!(marked(&mark).is_empty());
    let records = std::fs::read_to_string(file("records")).unwrap();
    assert_eq!(records.lines().count(), 1, "the finished trial is kept");
    let record: Record = serde_json::from_str(&records).unwrap();
    assert!(record.measurement().is_some());
}

fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn marked(mark: &str) -> Vec<u32> {
    let carries = |pid: &u32| {
        let environment = std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(mark.as_bytes()))
    };
    processes().into_iter().filter(carries).collect()
}

fn children_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok()) == Some(parent)
    };
    processes().into_iter().filter(is_child).collect()
}
