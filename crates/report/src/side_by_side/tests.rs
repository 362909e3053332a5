//! Tests of two runs side by side.

use super::*;
use analysis::side_by_side;
use fixtures as example;

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
