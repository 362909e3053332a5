//! Tests of histories and of two runs side by side.

use super::*;
use crate::example;
use study::record::Outcome;

/// The example's run with a different name and commit, latencies multiplied by `times`, and no failed points.
fn run(id: &str, started: &str, commit: &str, times: f64) -> (Run, Vec<Record>) {
    let (mut run, mut records) = example::volley();
    run.plan.points.truncate(3);
    records.retain(|record| record.point < 3);
    for record in &mut records {
        let Outcome::Measured(measurement) = &mut record.outcome else { unreachable!("these points are measured") };
        measurement.service.sum *= times;
        record.probes.before.iter_mut().chain(&mut record.probes.after).for_each(|probe| probe.cpu_ns = 8_000_000);
    }
    run.commit = Some(commit.to_owned());
    (run.id, run.started) = (id.to_owned(), started.to_owned());
    (run, records)
}

fn probed(mut of: (Run, Vec<Record>), cpu_ns: u64) -> (Run, Vec<Record>) {
    for record in &mut of.1 {
        record.probes.before.iter_mut().chain(&mut record.probes.after).for_each(|probe| probe.cpu_ns = cpu_ns);
    }
    of
}

fn of(runs: &[(Run, Vec<Record>)], wanted: &[Levels]) -> History {
    let entries =
        runs.iter().map(|(run, records)| Entry { run, digest: Digest::new(&analyze(run, records)) }).collect();
    history("volley", study::Metric::named("latency_mean").unwrap(), entries, wanted)
}

fn four() -> Vec<(Run, Vec<Record>)> {
    vec![
        run("c", "2026-11-22T09:00:00Z", "ccc", 1.3),
        run("a", "2026-11-20T09:00:00Z", "aaa", 1.0),
        probed(run("d", "2026-11-23T09:00:00Z", "ddd", 1.3), 8_800_000),
        run("b", "2026-11-21T09:00:00Z", "bbb", 1.0),
    ]
}

#[test]
fn runs_are_sorted_by_time_with_machine_speed() {
    let found = of(&four(), &[]);
    let [machine] = found.machines.as_slice() else { panic!("{found:?}") };
    let runs = machine.runs.iter().map(|run| (run.head.run.as_str(), run.speed.map(speed_words).unwrap()));
    assert_eq!(
        runs.collect::<Vec<_>>(),
        [("a", "as fast"), ("b", "as fast"), ("c", "as fast"), ("d", "9.1 % slower")]
            .map(|(run, speed)| (run, speed.to_owned()))
    );
    assert_eq!(machine.probe_ns_median, Some(8_000_000.0));
    assert!(machine.points.iter().all(|point| point.values.iter().all(Option::is_some)) && machine.points.len() == 3);
    let (run, records) = &four()[0];
    let report = analyze(run, records);
    assert_eq!(
        machine.points[0].values[2].as_ref().unwrap().estimate.as_ref(),
        report.rows[0].estimate("latency_mean")
    );
}

#[test]
fn step_needs_disjoint_intervals_and_a_new_revision() {
    let found = of(&four(), &[]);
    let steps = found.machines[0].steps.iter().map(|step| (step.point, step.from, step.to)).collect::<Vec<_>>();
    assert_eq!(steps, [(0, 1, 2), (1, 1, 2), (2, 1, 2)]);
    let step = &found.machines[0].steps[0];
    insta::assert_snapshot!(step.sentence, @"cores 1, clients 40: mean latency 573 ±11 µs at bbb, 745 ±14 µs at ccc; the machine was as fast by the probe");
    insta::assert_snapshot!(step.command.as_deref().unwrap(), @"quintain compare --base-rev bbb --head-rev ccc --build 'make -C subjects/c-epoll c-epoll' --command 'subjects/c-epoll/c-epoll -p {port}' -c 40 -d 250ms --warmup 300ms pingpong://");
    let steps =
        |runs: &[(Run, Vec<Record>)]| of(runs, &[]).machines.iter().map(|machine| machine.steps.len()).sum::<usize>();

    let mut same = four();
    same[0].0.commit = Some("bbb".to_owned());
    assert_eq!(steps(&same), 0);
    (same[0].0.commit, same[0].0.revision) = (None, None);
    assert_eq!(steps(&same[..2]), 0);
    let mut other = four();
    other[0].0.plan.points.iter_mut().for_each(|point| point.load.pipeline = 4);
    other[2].0.plan.trials.quick = true;
    assert_eq!(steps(&other), 0);
    let mut between = four();
    between[3].0.plan.trials.quick = true;
    assert_eq!(
        of(&between, &[]).machines[0].steps.iter().map(|step| (step.from, step.to)).collect::<Vec<_>>(),
        [(0, 2); 3]
    );
}

#[test]
fn machines_and_layouts_are_never_mixed() {
    let mut runs = four();
    runs[0].0.host.kernel = "Linux 6.18.0".to_owned();
    runs[3].0.nodes = example::cluster().0.nodes;
    let found = of(&runs, &[]);
    let machines =
        found.machines.iter().map(|machine| (machine.machine.to_string(), machine.runs.len())).collect::<Vec<_>>();
    assert_eq!(
        machines.iter().map(|(_, runs)| *runs).collect::<Vec<_>>(),
        [2, 1, 1],
        "the machine of the latest run comes first"
    );
    assert_eq!(machines[1].0, "example (Example CPU @ 2.50GHz, 4 CPUs, Linux 6.18.0)");
    assert!(machines[2].0.contains(", subject s1 (") && machines[2].0.contains("load l3 ("), "{}", machines[2].0);
    let steps = found.machines.iter().map(|machine| machine.steps.len()).collect::<Vec<_>>();
    assert_eq!(steps, [3, 0, 0], "between runs of the same machine");
}

#[test]
fn points_are_selected_by_their_levels() {
    let levels = |text: &[(&str, &str)]| {
        text.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect::<Levels>()
    };
    let labels = |wanted: &[Levels]| {
        let found = of(&four(), wanted);
        found.machines[0].points.iter().map(|point| point.label.clone()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&[levels(&[("clients", "40")])]), ["cores 1, clients 40", "cores 2, clients 40"]);
    assert_eq!(labels(&[levels(&[("clients", "40"), ("cores", "2")])]), ["cores 2, clients 40"]);
    assert_eq!(labels(&[levels(&[("clients", "80")]), levels(&[("cores", "2")])]).len(), 2);
    assert!(labels(&[levels(&[("clients", "41")])]).is_empty());
}

#[test]
fn two_runs_have_a_command_instead_of_a_verdict() {
    let runs = four();
    let pair = |a: usize, b: usize| [runs[a].clone(), runs[b].clone()];
    let found = side_by_side(&pair(1, 3));
    assert_eq!(found.headline, "a and b, side by side; revisions aaa and bbb");
    assert!(found.reasons[0].starts_with("No verdict: separate runs of one and the same server differ"));
    assert_eq!(found.reasons[1], "By the probe, the machine of b was as fast as that of a.");
    assert!(found.command.unwrap().starts_with("quintain compare --base-rev aaa --head-rev bbb --build"));
    assert_eq!((found.points.len(), found.metrics.len()), (3, 6));
    let missing =
        found.points.iter().flat_map(|point| &point.values).filter(|(_, both)| both.iter().any(Option::is_none));
    assert_eq!(missing.collect::<Vec<_>>(), []);
    assert_eq!(side_by_side(&pair(0, 2)).reasons[1], "By the probe, the machine of d was 9.1 % slower than that of c.");
}

#[test]
fn any_two_runs_are_shown() {
    let one = || run("a", "2026-11-20T09:00:00Z", "aaa", 1.0);
    let check = |edit: &dyn Fn(&mut Run), headline: &str, command: Option<&str>, note: &str| {
        let (mut other, records) = run("b", "2026-11-21T09:00:00Z", "aaa", 1.0);
        edit(&mut other);
        let found = side_by_side(&[one(), (other, records)]);
        assert_eq!(found.headline, headline);
        assert_eq!((found.command.as_deref(), found.note.as_str()), (command, note));
    };
    check(
        &|_| (),
        "a and b, side by side; one revision, aaa",
        None,
        "both measure the same revision: any difference is due to the machine or to chance",
    );
    check(
        &|run| run.host.name = "other".to_owned(),
        "a and b, side by side; DIFFERENT MACHINES: example (Example CPU @ 2.50GHz, 4 CPUs, Linux 6.12.0) and other (Example CPU @ 2.50GHz, 4 CPUs, Linux 6.12.0); one revision, aaa",
        None,
        "only runs on one machine can be compared: run both there",
    );
    let other_command = |run: &mut Run| {
        run.plan.points.iter_mut().for_each(|point| point.subject.process.command = "./new -p {port}".to_owned())
    };
    check(
        &other_command,
        "a and b, side by side; one revision, aaa",
        Some(
            "quintain compare --base 'subjects/c-epoll/c-epoll -p {port}' --head './new -p {port}' -c 40 -d 250ms --warmup 300ms pingpong://",
        ),
        "build both first",
    );
    let other_level = |run: &mut Run| {
        for point in &mut run.plan.points {
            point.factors.insert("server".to_owned(), study::Level::Text("go".to_owned()));
        }
    };
    check(
        &other_level,
        "a and b, side by side; one revision, aaa",
        Some("quintain compare volley server=c-epoll server=go --set server=c-epoll,go"),
        "",
    );
    let elsewhere = |run: &mut Run| {
        other_level(run);
        run.plan.study = "http".to_owned();
    };
    check(
        &elsewhere,
        "a and b, side by side; different studies: volley and http; one revision, aaa",
        None,
        "they have no design point and load in common",
    );
    let nothing = |run: &mut Run| run.plan.points.clear();
    check(&nothing, "a and b, side by side; one revision, aaa", None, "");
    let (mut few, mut records) = one();
    few.plan.points.truncate(1);
    records.retain(|record| record.point < 1);
    let found = side_by_side(&[(few, records), one()]);
    assert_eq!(
        found.points.iter().map(|point| point.values["throughput"][0].is_some()).collect::<Vec<_>>(),
        [true, false, false]
    );
}

#[test]
fn rows_have_the_revision_of_their_side() {
    let compared = |mut of: (Run, Vec<Record>), base: &str, head: &str| {
        for (point, commit) in of.0.plan.points.iter_mut().zip([base, head]) {
            let commit = commit.repeat(40);
            point.subject.process.directory = Some(format!("/tmp/quintain-{}/{commit}", of.0.id));
            point.subject.revision = Some(commit);
        }
        of
    };
    let [_, a, _, b] = four().try_into().unwrap();
    let (b, c) = (compared(b, "1", "2"), compared(run("c", "2026-11-22T09:00:00Z", "ccc", 1.3), "1", "3"));
    let found = of(&[a, b, c], &[]);
    let points = &found.machines[0].points;
    let revisions = |point: usize| {
        let runs = found.machines[0].runs.iter().zip(&points[point].values);
        runs.map(|(run, value)| value.as_ref().unwrap().revision_in(&run.head).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(revisions(0), ["aaa", "111111111111", "111111111111"]);
    assert_eq!(revisions(1), ["aaa", "222222222222", "333333333333"]);
    let steps = found.machines[0].steps.iter().map(|step| (step.point, step.from, step.to)).collect::<Vec<_>>();
    assert_eq!(steps, [(1, 1, 2), (2, 1, 2)], "base is one revision in both runs");
    let command = found.machines[0].steps[0].command.as_deref().unwrap();
    assert!(command.contains("--base-rev 222222222222 --head-rev 333333333333"), "{command}");
}

#[test]
fn digest_without_comparisons_is_that_of_the_findings() {
    let (run, records) = crate::example::volley();
    let mut points = std::collections::BTreeMap::<usize, Vec<&Record>>::new();
    records.iter().for_each(|record| points.entry(record.point).or_default().push(record));
    let mut analysis = Analysis::new(&run);
    points.values().for_each(|records| analysis.add(records));
    assert_eq!(Digest::of_trials(analysis), Digest::new(&analyze(&run, &records)));
}
