//! Subjects that fall silent: whether a trial hung, which connections did, and pauses.

use study::WarningKind;
use study::record::{Censored, Measurement, Record};

use crate::cpu_waits::Waits;
use crate::findings::{Findings, Row};
use crate::histogram;
use crate::number::{count, quantity};
use crate::value::whole_windows;

/// Nothing shorter than this is called a silence, ns: a scheduler, a collector of garbage or a host may take as long.
const SHORTEST_NS: f64 = 100e6;
/// A connection is silent where it has waited so many times as long as the longest request that was answered.
const FAR_BEYOND: f64 = 5.0;
/// A trial is hung where all were silent for at least this share of it at its end.
const HUNG_SHARE: f64 = 0.1;
/// The generator, or waits of the server over the whole trial, may be the cause of a silence if they waited for a CPU for this share of it.
const CAUSE_SHARE: f64 = 0.8;
/// A server that waited for a CPU when measuring ended, and had done so for this share of a silence, is its cause by no fault of its own.
const CAUSE_SHARE_AT_END: f64 = 0.5;
/// A pause is no pause of the subject's where answers come as seldom as this many times as often.
const SELDOM: f64 = 20.0;

/// How long no answer had come when the trial ended, where it hung: ns.
///
/// All connections that were asked were silent, for far longer than any answer had taken and for a tenth of the trial or more. If generator or server
/// waited for a CPU for most of that, nobody can tell. `waits`: how long the server did.
pub(crate) fn hung(measurement: &Measurement, waits: Waits) -> Option<u64> {
    let censored = measurement.censored.as_deref()?;
    let silent_ns = Some(censored.silent_ns).filter(|ns| *ns as f64 > hung_from_ns(measurement))?;
    let generator_ns = measurement.workers.iter().filter_map(|worker| worker.run_queue_ns).max().unwrap_or(0);
    let has_cause = generator_ns.max(waits.whole_ns) as f64 > CAUSE_SHARE * silent_ns as f64
        || waits.at_end_ns as f64 > CAUSE_SHARE_AT_END * silent_ns as f64;
    let is_long = silent_ns as f64 >= HUNG_SHARE * measurement.duration_ns as f64;
    (is_long && !has_cause).then_some(silent_ns)
}

/// The same of a trial.
pub(crate) fn hung_trial(record: &Record) -> Option<u64> {
    hung(record.measurement()?, Waits::of(record))
}

/// Shortest silence of a hung trial, ns: it is longer than a slow answer.
fn hung_from_ns(measurement: &Measurement) -> f64 {
    (FAR_BEYOND * measurement.service.max.unwrap_or(0) as f64).max(SHORTEST_NS)
}

/// Shortest wait that is called a silence of one connection, ns. One slow answer must not hide it, so the usual ones decide.
fn silent_from_ns(measurement: &Measurement) -> f64 {
    let p95 = histogram::from_record(&measurement.service).and_then(|service| service.quantile(0.95));
    (FAR_BEYOND * p95.unwrap_or(0.0)).max(SHORTEST_NS)
}

/// Shortest time without any answer that is called a pause, ns.
fn pause_from_ns(measurement: &Measurement) -> f64 {
    let gap_ns = measurement.duration_ns as f64 / measurement.requests.max(1) as f64;
    silent_from_ns(measurement).max(SELDOM * gap_ns)
}

/// How long all connections had been silent at the end, where that is a pause.
fn silent_at_end(measurement: &Measurement) -> Option<u64> {
    let silent_ns = Some(measurement.censored.as_deref()?.silent_ns).filter(|ns| *ns as f64 > SHORTEST_NS)?;
    let from_ns = hung_from_ns(measurement).min(pause_from_ns(measurement));
    (silent_ns as f64 > from_ns).then_some(silent_ns)
}

/// What was silent, in words.
pub fn hang_text(measurement: &Measurement, silent_ns: u64) -> String {
    let waiting = measurement.censored.as_deref().map_or(0, |censored| censored.connections.count);
    let all = count(u64::from(measurement.clients), "connection");
    format!("no response for the last {}, while {waiting} of {all} waited", quantity(silent_ns as f64, "ns"))
}

/// What the reader should know of silences, one sentence each.
pub(crate) fn warnings(measurement: &Measurement, waits: Waits) -> Vec<(WarningKind, String)> {
    let silent = silent_at_end(measurement).map(|silent_ns| {
        let hung = if hung(measurement, waits).is_some() { "hung: " } else { "" };
        format!("{hung}{}", hang_text(measurement, silent_ns))
    });
    let alone = if silent.is_none() { connections(measurement) } else { None };
    let all = [
        (WarningKind::Silent, silent),
        (WarningKind::SilentConnections, alone),
        (WarningKind::Pause, pause(measurement)),
    ];
    all.into_iter().filter_map(|(kind, text)| Some((kind, text?))).collect()
}

/// Connections that were silent at the end while others were answered.
fn connections(measurement: &Measurement) -> Option<String> {
    let waiting = &measurement.censored.as_deref()?.connections;
    let waiting = Some(waiting).filter(|waiting| waiting.max.is_some_and(|max| max as f64 > SHORTEST_NS))?;
    // Longer than any answer took, too.
    let from_ns = silent_from_ns(measurement).max(measurement.service.max.unwrap_or(0) as f64);
    let waiting = histogram::from_record(waiting)?;
    let mut silent = waiting.iter_buckets().filter(|(low, ..)| *low as f64 > from_ns).peekable();
    let shortest_ns = silent.peek()?.0;
    let number = silent.map(|(.., count)| count).sum::<u64>();
    let (shown, least) = match number {
        1 => (waiting.max().unwrap_or(shortest_ns), ""),
        _ => (shortest_ns, "at least "),
    };
    let all = count(u64::from(measurement.clients), "connection");
    Some(format!("{number} of {all} got no response for {least}the last {}", quantity(shown as f64, "ns")))
}

/// The longest time in which no answer came though some were awaited, as far as windows tell, where answers came before and after.
fn pause(measurement: &Measurement) -> Option<String> {
    let windows = whole_windows(measurement);
    let window_ns = measurement.window_ns;
    let is_empty = |index: &usize| windows[*index].requests == 0 && windows[*index].errors == 0;
    let (mut longest, mut run) = ((0u64, 0usize), 0u64);
    for index in 0..windows.len() {
        if is_empty(&index) {
            run += 1;
        } else {
            longest = longest.max((run, index));
            run = 0;
        }
    }
    let (run, end) = longest;
    let paused_ns = run.saturating_mul(window_ns) as f64;
    // Whoever waited for the end of it waited as long: else nobody was waiting, as between the requests of a slow timetable.
    let was_awaited = paused_ns > 0.0 && measurement.service.max? as f64 >= paused_ns;
    (was_awaited && paused_ns >= pause_from_ns(measurement)).then(|| {
        let from_ns = (end as u64 - run) * window_ns;
        format!(
            "no response for at least {}, starting {} into the measurement",
            quantity(paused_ns, "ns"),
            quantity(from_ns as f64, "ns")
        )
    })
}

/// What had no answer when trials ended, over all rows; `None`: nothing, or no store of today tells.
pub fn over_all(findings: &Findings) -> Option<String> {
    let mut all = Censored::default();
    for censored in findings.all_rows().filter_map(|row| row.censored.as_deref()) {
        for (all, one) in [(&mut all.in_flight, &censored.in_flight), (&mut all.unsent, &censored.unsent)] {
            all.count = all.count.saturating_add(one.count);
            all.max = all.max.max(one.max);
        }
    }
    counted(&all).map(|counted| format!("Without a response when a trial ended: {counted}."))
}

/// The same of one row, where it matters: something was not sent, or a number is only known to be at least something.
pub fn of_row(row: &Row) -> Option<String> {
    let matters = row.hung() > 0 || row.trials.iter().any(|trial| trial.unsent > 0 || !trial.at_least.is_empty());
    row.censored
        .as_deref()
        .filter(|_| matters)
        .and_then(counted)
        .map(|counted| format!("without a response when a trial ended: {counted}"))
}

/// Requests without an answer in words: `20 in flight, waiting for up to 1.45 s; 2756 not sent, waiting for up to 1.40 s`.
pub fn counted(censored: &Censored) -> Option<String> {
    let part = |stored: &study::record::Histogram, what: &str| {
        let longest = quantity(stored.max? as f64, "ns");
        Some(format!("{} {what}, waiting for up to {longest}", stored.count))
    };
    let parts = [part(&censored.in_flight, "in flight"), part(&censored.unsent, "not sent")];
    let parts = parts.into_iter().flatten().collect::<Vec<_>>();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use study::record::{Histogram, Limit, Outcome, Window};

    use super::*;
    use crate::example::{MS, leave, waited};
    use crate::{example, value, verdict};

    /// 18,000 answers within 3.18 ms to 40 clients in 250 ms.
    fn record(edit: impl FnOnce(&mut Measurement)) -> Record {
        let mut record = example::volley().1.into_iter().find(|record| record.point == 0).unwrap();
        let Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
        measurement.unfinished = 0;
        edit(measurement);
        record
    }

    fn check(name: &str, record: &Record, is_hung: bool, expected: &[&str]) {
        let measurement = record.measurement().unwrap();
        assert_eq!(hung(measurement, Waits::default()).is_some(), is_hung, "{name}");
        let texts = warnings(measurement, Waits::default()).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts, expected, "{name}");
    }

    #[test]
    fn a_healthy_trial_says_nothing() {
        check("in flight", &record(|m| leave(m, &[MS; 40], &[], 2 * MS)), false, &[]);
        check("an old store", &record(|_| ()), false, &[]);
        check("a collector of garbage at the end", &record(|m| leave(m, &[90 * MS; 40], &[], 90 * MS)), false, &[]);
        let slow = |m: &mut Measurement| {
            m.service = waited(&[30 * MS; 1_000]);
            leave(m, &[140 * MS; 40], &[], 140 * MS);
        };
        check("not far beyond the usual answer", &record(slow), false, &[]);
    }

    #[test]
    fn all_connections_silent_until_the_end_is_hung() {
        let all = record(|m| leave(m, &[200 * MS; 40], &[], 200 * MS));
        check("all", &all, true, &["hung: no response for the last 200 ms, while 40 of 40 connections waited"]);
        let short = |m: &mut Measurement| {
            m.duration_ns = 20_000 * MS;
            leave(m, &[200 * MS; 40], &[], 200 * MS);
        };
        let words = "no response for the last 200 ms, while 40 of 40 connections waited";
        check("a hundredth of the trial", &record(short), false, &[words]);
        let starved = |m: &mut Measurement| {
            m.workers[0].run_queue_ns = Some(170 * MS);
            leave(m, &[200 * MS; 40], &[], 200 * MS);
        };
        check("by a generator without a processor", &record(starved), false, &[words]);
        let with = |whole_ns: u64, at_end_ns: u64| hung(all.measurement().unwrap(), Waits { whole_ns, at_end_ns });
        assert_eq!(with(170 * MS, 0), None, "a server that had waited for a CPU for as long");
        assert_eq!(with(0, 110 * MS), None, "a server that waited for a CPU at the end");
        assert_eq!(with(90 * MS, 40 * MS), Some(200 * MS), "waits that explain less than half of it");
    }

    #[test]
    fn one_slow_answer_hides_no_silence() {
        // 500 ms of 10 s, after an answer that took 120 ms, or 300.
        for slowest in [120 * MS, 300 * MS] {
            let mut service = stats::Histogram::new();
            (0..10_000).for_each(|_| service.record(MS));
            service.record(slowest);
            let answered = |m: &mut Measurement| {
                (m.service, m.requests, m.duration_ns) = (Histogram::from(&service), 10_001, 10_000 * MS);
            };
            let all = record(|m| {
                answered(m);
                leave(m, &[500 * MS; 40], &[], 500 * MS);
            });
            check("all", &all, false, &["no response for the last 500 ms, while 40 of 40 connections waited"]);
            let one = record(|m| {
                answered(m);
                leave(m, &[vec![500 * MS], vec![MS; 39]].concat(), &[], MS);
            });
            check("one", &one, false, &["1 of 40 connections got no response for the last 500 ms"]);
        }
    }

    #[test]
    fn some_connections_silent_are_named() {
        let waits = |silent: &[u64]| silent.iter().copied().chain([MS; 37]).collect::<Vec<_>>();
        let one = record(|m| leave(m, &waits(&[812 * MS]), &[], MS));
        check("one", &one, false, &["1 of 40 connections got no response for the last 812 ms"]);
        let three = record(|m| leave(m, &waits(&[812 * MS, 900 * MS, 850 * MS]), &[], MS));
        let [(_, found)] = warnings(three.measurement().unwrap(), Waits::default()).try_into().unwrap();
        assert!(found.starts_with("3 of 40 connections got no response for at least the last 81"), "{found}");
    }

    #[test]
    fn a_pause_is_told_where_somebody_waited_for_its_end() {
        // 25 windows of 5 ms of nothing, from 50 ms on.
        let pause = |m: &mut Measurement, longest: u64| {
            let empty = Window { requests: 0, errors: 0, latency: waited(&[]) };
            m.windows[10..35].fill(empty);
            m.service.max = Some(longest);
        };
        // The largest lies in a bucket of its own, as it did in the trial.
        let stopped = record(|m| {
            let mut service = histogram::from_record(&m.service).unwrap();
            (0..40).for_each(|_| service.record(126 * MS));
            m.service = Histogram::from(&service);
            pause(m, service.max().unwrap());
        });
        check(
            "stopped",
            &stopped,
            false,
            &["no response for at least 125.0 ms, starting 50.0 ms into the measurement"],
        );
        let max = record(|_| ()).measurement().unwrap().service.max.unwrap();
        check("nobody waited", &record(|m| pause(m, max)), false, &[]);
    }

    #[test]
    fn an_open_loop_without_answers_is_limited_by_its_subject() {
        let judged = |edit: fn(&mut Measurement)| {
            let mut record = record(|m| {
                m.offered_per_s = Some(100_000.0);
                m.response = Some(m.service.clone());
                let none = Some(waited(&[0; 1_000]));
                (m.lag_thread, m.lag_connection) = (none.clone(), none);
                edit(m);
            });
            (record.subject.user_ns, record.subject.system_ns) = (0, 0);
            let verdict = verdict::judge(&record, None, &[]).0.unwrap();
            (verdict.limited_by, verdict.reasons[0].clone())
        };
        let hung = judged(|m| leave(m, &[200 * MS; 40], &[100 * MS; 7_000], 200 * MS));
        let words = "no response for the last 200 ms, while 40 of 40 connections waited";
        assert_eq!(hung, (Limit::Subject, words.to_owned()));
        // It answers now and then; the requests of today's answers alone would say that the generator did not send.
        let slow = judged(|m| leave(m, &[60 * MS; 40], &[50 * MS; 7_000], 60 * MS));
        assert_eq!(slow.0, Limit::Subject, "{slow:?}");
        assert!(slow.1.ends_with("every connection was waiting for a response at the end"), "{slow:?}");
        let idle = judged(|m| leave(m, &[MS; 3], &[50 * MS; 7_000], MS));
        assert_eq!(idle.0, Limit::Generator, "connections were free: {idle:?}");
    }

    #[test]
    fn values_are_lower_bounds_where_they_are() {
        let read = |record: &Record| value::values_and_bounds(record, 0.95);
        let (before, none) = read(&record(|_| ()));
        let (healthy, bounds) = read(&record(|m| leave(m, &[MS / 10; 40], &[], MS / 10)));
        assert_eq!((none.len(), bounds.len()), (0, 0));
        for name in ["latency_mean", "latency_p50", "latency_p99"] {
            assert!((healthy[name] / before[name] - 1.0).abs() < 0.002, "{name}");
        }
        let (frozen, bounds) = read(&record(|m| leave(m, &[4_000 * MS], &[], MS)));
        assert_eq!(bounds.into_iter().collect::<Vec<_>>(), ["latency_mean"], "one of 18,000 is beyond p99.9");
        assert!(frozen["latency_mean"] > before["latency_mean"]);
        let (hung, bounds) = read(&record(|m| leave(m, &[200 * MS; 40], &[100 * MS; 20_000], 200 * MS)));
        assert_eq!(hung["latency_p99"], 200e6);
        let known = ["latency_mean", "latency_p50", "latency_p90", "latency_p95", "latency_p99", "latency_p999"];
        assert_eq!(bounds.into_iter().collect::<Vec<_>>(), known);
        let overdue = record(|m| {
            leave(m, &[200 * MS; 40], &[100 * MS; 20_000], 200 * MS);
            m.censored.as_mut().unwrap().unsent_overdue = 2_000;
        });
        let (values, requests) = (read(&overdue).0, overdue.measurement().unwrap().requests as f64);
        assert_eq!(values["error_share"], 2_000.0 / (requests + 2_000.0));
    }
}
