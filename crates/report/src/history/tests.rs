//! Tests of histories on terminals and pages.

use super::*;
use analysis::findings::History;
use analysis::history::{Digest, Entry};
use analysis::side_by_side;
use fixtures as example;
use study::record::{Outcome, Record, Run};

/// Five runs on two machines: a slower commit, a slower machine, a quick, an imported and an interrupted run.
fn example() -> History {
    let run = |id: &str, day: u32, commit: &str, edit: fn(&mut Run, &mut Vec<Record>)| {
        let (mut run, mut records) = example::volley();
        run.plan.points.truncate(2);
        records.retain(|record| record.point < 2);
        (run.id, run.started, run.commit) =
            (id.to_owned(), format!("2026-11-{day}T09:00:00Z"), Some(commit.to_owned()));
        edit(&mut run, &mut records);
        let digest = Digest::new(&analysis::analyze(&run, &records));
        (run, digest)
    };
    let runs = [
        run("volley-a", 18, "aaaaaaaaaaaa", |_, _| ()),
        run("volley-b", 19, "bbbbbbbbbbbb-dirty", |_, records| {
            records
                .iter_mut()
                .flat_map(|record| record.probes.before.iter_mut().chain(&mut record.probes.after))
                .for_each(|probe| probe.cpu_ns = probe.cpu_ns * 11 / 10);
        }),
        run("volley-c", 20, "cccccccccccc", |run, _| run.plan.trials.quick = true),
        run("volley-d", 21, "dddddddddddd", |run, _| {
            run.host.name = "other".to_owned();
            run.imported = "2026-11-22T09:00:00Z".to_owned();
            run.state = Some(RunState::Interrupted);
        }),
        run("volley-e", 22, "eeeeeeeeeeee", |_, records| {
            for record in records {
                let Outcome::Measured(measurement) = &mut record.outcome else { continue };
                measurement.service.sum *= 1.3;
            }
        }),
    ];
    let entries = runs.iter().map(|(run, digest)| Entry { run, digest: digest.clone() }).collect();
    analysis::history("volley", study::Metric::named("latency_mean").unwrap(), entries, &[])
}

#[test]
fn a_terminal() {
    insta::assert_snapshot!(history_terminal(&example(), &Style { colour: false, width: 140 }), @r#"
    volley: mean latency over runs
    5 runs on 2 machines; 2 steps to check: separate intervals at a change of revision.

    example (Example CPU @ 2.50GHz, 4 CPUs, Linux 6.12.0)
      4 runs, median probe 8.25 ms.

    clients 40
    started, UTC      revision            mean latency                             n  machine       run       notes
    2026-11-18 09:00  aaaaaaaaaaaa          573 ±11 µs  ─●──                       8  as fast       volley-a
    2026-11-19 09:00  bbbbbbbbbbbb-dirty    573 ±11 µs  ─●──                       8  9.1 % slower  volley-b
    2026-11-20 09:00  cccccccccccc          573 ±11 µs  ─●──                       8  as fast       volley-c  quick
    2026-11-22 09:00  eeeeeeeeeeee          745 ±14 µs                       ─●──  8  as fast       volley-e  step

    clients 80
    started, UTC      revision               mean latency                             n  machine       run       notes
    2026-11-18 09:00  aaaaaaaaaaaa        1.100 ±0.018 ms  ─●─                        8  as fast       volley-a
    2026-11-19 09:00  bbbbbbbbbbbb-dirty  1.100 ±0.018 ms  ─●─                        8  9.1 % slower  volley-b
    2026-11-20 09:00  cccccccccccc        1.100 ±0.018 ms  ─●─                        8  as fast       volley-c  quick
    2026-11-22 09:00  eeeeeeeeeeee        1.431 ±0.023 ms                       ─●──  8  as fast       volley-e  step
      A step: clients 40: mean latency 573 ±11 µs at bbbbbbbbbbbb-dirty, 745 ±14 µs at eeeeeeeeeeee; the machine was 10.0 % faster by the probe.
        quintain compare --base-rev bbbbbbbbbbbb --head-rev eeeeeeeeeeee --build 'make -C subjects/c-epoll c-epoll' --command 'subjects/c-epoll/c-epoll -p {port}' -c 40 -d 250ms --warmup 300ms pingpong://
      Uncommitted changes at bbbbbbbbbbbb are in no commit.
      A step: clients 80: mean latency 1.100 ±0.018 ms at bbbbbbbbbbbb-dirty, 1.431 ±0.023 ms at eeeeeeeeeeee; the machine was 10.0 % faster by
        the probe.
        quintain compare --base-rev bbbbbbbbbbbb --head-rev eeeeeeeeeeee --build 'make -C subjects/c-epoll c-epoll' --command 'subjects/c-epoll/c-epoll -p {port}' -c 80 -d 250ms --warmup 300ms pingpong://
      Uncommitted changes at bbbbbbbbbbbb are in no commit.

    other (Example CPU @ 2.50GHz, 4 CPUs, Linux 6.12.0)
      1 run, median probe 8.25 ms.

    clients 40
    started, UTC      revision      mean latency                             n  machine  run       notes
    2026-11-21 09:00  dddddddddddd    573 ±11 µs  ────────────●────────────  8  as fast  volley-d  imported, interrupted

    clients 80
    started, UTC      revision         mean latency                             n  machine  run       notes
    2026-11-21 09:00  dddddddddddd  1.100 ±0.018 ms  ────────────●────────────  8  as fast  volley-d  imported, interrupted

    A step is not a verdict: separate runs of one server differ by more than their intervals in 16 to 64 % of cases (simulated, one design
      point), because a machine changes its speed between them. The command beside it compares both revisions in one run.
    "#);
}

#[test]
fn narrow_terminals_omit_bars_and_keep_commands_whole() {
    let text = history_terminal(&example(), &Style { colour: false, width: 80 });
    assert!(text.contains("Columns hidden (terminal too narrow): ") && !text.contains('●'), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("    quintain compare --base-rev ") && line.ends_with("pingpong://")),
        "{text}"
    );
}

#[test]
fn pages_have_a_line_per_point_and_all_terminal_text() {
    let history = example();
    let page = history_html(&history).unwrap();
    assert!(page.contains("<svg") && page.contains("Mean latency over runs on example"), "{page}");
    assert!(
        page.contains("<p class=\"kick\">Study <b>volley</b> · 5 runs · <span>2026-11-18 to 2026-11-22</span></p>")
    );
    for words in [
        "bbbbbbb*",
        "clients 40, quick",
        "machine by the probe",
        "interrupted",
        "quintain compare --base-rev bbbbbbbbbbbb --head-rev eeeeeeeeeeee",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains('●'), "bars are for terminals");
    assert_eq!(figures::history(&history, POINTS, figures::Detail::FULL).len(), 1);
    let drawing = &figures::history(&history, 1, figures::Detail::FULL)[0];
    assert_eq!(
        drawing.keys.iter().map(|key| key.label.as_str()).collect::<Vec<_>>(),
        ["clients 40", "clients 40, quick"]
    );
    assert_eq!(drawing.notes, ["1 of 2 design points; --point selects others."]);
}

#[test]
fn impossible_numbers_do_not_panic() {
    let mut history = example();
    for value in history
        .machines
        .iter_mut()
        .flat_map(|machine| &mut machine.points)
        .flat_map(|point| point.values.iter_mut().flatten())
    {
        value.mean = f64::NAN;
        value.estimate = value.estimate.map(|estimate| analysis::findings::Estimate {
            point: f64::NAN,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            ..estimate
        });
    }
    history.machines[0].runs.iter_mut().for_each(|run| run.speed = Some(f64::INFINITY));
    assert!(history_terminal(&history, &Style::PLAIN).contains("NaN"));
    assert!(history_html(&history).unwrap().contains("<svg"));
    let nothing = History { machines: Vec::new(), ..history };
    assert!(history_terminal(&nothing, &Style::PLAIN).contains("0 runs on 0 machines"));
    assert!(history_html(&nothing).is_ok());
}

#[test]
fn two_runs_at_a_terminal() {
    let run = |id: &str, commit: &str| {
        let (mut run, mut records) = example::volley();
        run.plan.points.truncate(2);
        records.retain(|record| record.point < 2);
        (run.id, run.commit) = (id.to_owned(), Some(commit.to_owned()));
        (run, records)
    };
    let mut runs = [run("volley-a", "aaaaaaaaaaaa"), run("volley-b", "bbbbbbbbbbbb")];
    runs[1].1.retain(|record| record.point == 0);
    insta::assert_snapshot!(side_by_side_terminal(&side_by_side(&runs), &Style { colour: false, width: 120 }), @r#"
    volley-a and volley-b, side by side; revisions aaaaaaaaaaaa and bbbbbbbbbbbb

    run       started               revision      profile  probe    machine
    volley-a  2026-11-20T21:05:00Z  aaaaaaaaaaaa  default  8.25 ms  example (Example CPU @ 2.50GHz, 4 CPUs, Linux 6.12.0)
    volley-b  2026-11-20T21:05:00Z  bbbbbbbbbbbb  default  8.26 ms  example (Example CPU @ 2.50GHz, 4 CPUs, Linux 6.12.0)

    valid responses per second
    design point                       volley-a       volley-b
    c-epoll, cores 1, clients 40  69.8 ±1.3 k/s  69.8 ±1.3 k/s
    c-epoll, cores 1, clients 80  72.6 ±1.2 k/s              –

    mean latency
    design point                         volley-a    volley-b
    c-epoll, cores 1, clients 40       573 ±11 µs  573 ±11 µs
    c-epoll, cores 1, clients 80  1.100 ±0.018 ms           –

    median latency
    design point                         volley-a    volley-b
    c-epoll, cores 1, clients 40       533 ±10 µs  533 ±10 µs
    c-epoll, cores 1, clients 80  1.026 ±0.016 ms           –

    p99 latency
    design point                         volley-a         volley-b
    c-epoll, cores 1, clients 40  1.280 ±0.033 ms  1.280 ±0.033 ms
    c-epoll, cores 1, clients 80    2.46 ±0.05 ms                –

    server CPU time per request
    design point                        volley-a        volley-b
    c-epoll, cores 1, clients 40  13.90 ±0.27 µs  13.90 ±0.27 µs
    c-epoll, cores 1, clients 80  13.36 ±0.22 µs               –

    peak server RSS
    design point                          volley-a          volley-b
    c-epoll, cores 1, clients 40  2.680 ±0.006 MiB  2.680 ±0.006 MiB
    c-epoll, cores 1, clients 80  2.685 ±0.006 MiB                 –

    Verdict
      No verdict: separate runs of one and the same server differ by more than their intervals in 16 to 64 % of cases
        (simulated, one design point), because a machine changes its speed between them.
      By the probe, the machine of volley-b was 0.2 % slower than that of volley-a.
      This compares them in one run, block by block:
        quintain compare --base-rev aaaaaaaaaaaa --head-rev bbbbbbbbbbbb --build 'make -C subjects/c-epoll c-epoll' --command 'subjects/c-epoll/c-epoll -p {port}' -c 40 -d 250ms --warmup 300ms pingpong://
    "#);
    runs[1].0.host.name = "other".to_owned();
    let text = side_by_side_terminal(&side_by_side(&runs), &Style::PLAIN);
    let first = text.lines().next().unwrap();
    assert!(first.contains("DIFFERENT MACHINES: example (Example CPU @ 2.50GHz"), "{first}");
    assert!(text.contains("Only runs on one machine can be compared: run both there."), "{text}");
}
