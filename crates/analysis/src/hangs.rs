//! Detection of servers that stop responding: hung trials, silent connections and pauses.

use study::WarningKind;
use study::record::{Censored, Histogram, Measurement, Record, SubjectUse, Window};

use crate::findings::{Findings, Row};
use crate::merge_histograms;
use crate::number::{count, quantity, total};
use crate::value::whole_windows;

/// Waits of server and proxies for a CPU that another process had, ns. An unknown wait counts as zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Longest wait of one process over the whole trial, ns.
    pub(crate) whole_ns: u64,
    /// Longest wait, ns, that was still in progress when measuring ended.
    pub(crate) at_end_ns: u64,
}

impl Waits {
    pub(crate) fn of(record: &Record) -> Self {
        let used = || std::iter::once(&record.subject).chain(record.proxies.iter().map(|proxy| &proxy.used));
        let whole_ns = |used: &SubjectUse| (used.waiting_share().unwrap_or(0.0) * used.measured_ns as f64) as u64;
        let whole_ns = used().map(whole_ns).max().unwrap_or(0);
        Self { whole_ns, at_end_ns: used().filter_map(|used| used.waited_at_end_ns).max().unwrap_or(0) }
    }
}

/// Shortest silence that counts, ns. A scheduler, garbage collector or host can pause a process for almost as long.
const SHORTEST_NS: f64 = 100e6;
/// Multiple of the longest or 95th-percentile response time above which a waiting connection counts as silent.
const FAR_BEYOND: f64 = 5.0;
/// Minimum share of a hung trial, at its end, during which all connections were silent.
const HUNG_SHARE: f64 = 0.1;
/// Share of a silence above which the generator's or server's wait for a CPU, in the whole trial, excuses the silence.
const CAUSE_SHARE: f64 = 0.8;
/// Share of a silence above which a server's wait for a CPU, if it lasts until measuring ends, excuses the silence.
const CAUSE_SHARE_AT_END: f64 = 0.5;
/// Minimum ratio of a pause to the mean time between responses.
const SELDOM: f64 = 20.0;

/// Returns how long the server had been silent at the end of a hung trial, ns; `None` if it did not hang. Waiting for a
/// CPU (`waits`) can excuse a silence.
pub(crate) fn hung(measurement: &Measurement, waits: Waits) -> Option<u64> {
    let censored = measurement.censored.as_deref()?;
    let silent_ns = Some(censored.silent_ns).filter(|ns| *ns as f64 > hung_from_ns(measurement))?;
    let generator_ns = measurement.workers.iter().filter_map(|worker| worker.run_queue_ns).max().unwrap_or(0);
    let has_cause = generator_ns.max(waits.whole_ns) as f64 > CAUSE_SHARE * silent_ns as f64
        || waits.at_end_ns as f64 > CAUSE_SHARE_AT_END * silent_ns as f64;
    let is_long = silent_ns as f64 >= HUNG_SHARE * measurement.duration_ns as f64;
    (is_long && !has_cause).then_some(silent_ns)
}

pub(crate) fn hung_trial(record: &Record) -> Option<u64> {
    hung(record.measurement()?, Waits::of(record))
}

/// Silence, ns, above which a trial can count as hung: longer than any slow response.
fn hung_from_ns(measurement: &Measurement) -> f64 {
    (FAR_BEYOND * measurement.service.max.unwrap_or(0) as f64).max(SHORTEST_NS)
}

/// Silence of a single connection, ns, above which it is reported. Uses p95, so that one slow response cannot hide it.
fn silent_from_ns(measurement: &Measurement) -> f64 {
    let p95 = merge_histograms::from_record(&measurement.service).and_then(|service| service.quantile(0.95));
    (FAR_BEYOND * p95.unwrap_or(0.0)).max(SHORTEST_NS)
}

fn pause_from_ns(measurement: &Measurement) -> f64 {
    let gap_ns = measurement.duration_ns as f64 / measurement.requests.max(1) as f64;
    silent_from_ns(measurement).max(SELDOM * gap_ns)
}

fn silent_at_end(measurement: &Measurement) -> Option<u64> {
    let silent_ns = Some(measurement.censored.as_deref()?.silent_ns).filter(|ns| *ns as f64 > SHORTEST_NS)?;
    let from_ns = hung_from_ns(measurement).min(pause_from_ns(measurement));
    (silent_ns as f64 > from_ns).then_some(silent_ns)
}

/// Describes a silence of all connections that has lasted `silent_ns`.
pub fn hang_text(measurement: &Measurement, silent_ns: u64) -> String {
    let waiting = measurement.censored.as_deref().map_or(0, |censored| censored.connections.count);
    let all = count(u64::from(measurement.clients), "connection");
    format!("no response for the last {}, while {waiting} of {all} waited", quantity(silent_ns as f64, "ns"))
}

pub(crate) fn warnings(measurement: &Measurement, waits: Waits) -> Vec<(WarningKind, String)> {
    let silent = silent_at_end(measurement).map(|silent_ns| {
        let hung = if hung(measurement, waits).is_some() { "hung: " } else { "" };
        (WarningKind::Silent, format!("{hung}{}", hang_text(measurement, silent_ns)))
    });
    let alone = || Some((WarningKind::SilentConnections, connections(measurement)?));
    let pause = pause(measurement).map(|text| (WarningKind::Pause, text));
    silent.or_else(alone).into_iter().chain(pause).collect()
}

fn connections(measurement: &Measurement) -> Option<String> {
    let waiting = &measurement.censored.as_deref()?.connections;
    let waiting = Some(waiting).filter(|waiting| waiting.max.is_some_and(|max| max as f64 > SHORTEST_NS))?;
    let from_ns = silent_from_ns(measurement).max(measurement.service.max.unwrap_or(0) as f64);
    let waiting = merge_histograms::from_record(waiting)?;
    let mut silent = waiting.iter_buckets().filter(|(low, ..)| *low as f64 > from_ns).peekable();
    let shortest_ns = silent.peek()?.0;
    let number = silent.map(|(.., count)| count).sum::<u64>();
    let longest_ns = waiting.max().unwrap_or(shortest_ns);
    let (shown, least) = if number == 1 { (longest_ns, "") } else { (shortest_ns, "at least ") };
    let all = count(u64::from(measurement.clients), "connection");
    Some(format!("{number} of {all} got no response for {least}the last {}", quantity(shown as f64, "ns")))
}

fn pause(measurement: &Measurement) -> Option<String> {
    let windows = whole_windows(measurement);
    let window_ns = measurement.window_ns;
    let is_empty = |window: &Window| window.requests == 0 && window.errors == 0;
    let mut end = 0;
    let runs = windows.chunk_by(|a, b| is_empty(a) == is_empty(b)).filter_map(|run| {
        end += run.len();
        (is_empty(&run[0]) && end < windows.len()).then_some((run.len() as u64, end))
    });
    let (run, end) = runs.max()?;
    let paused_ns = run.saturating_mul(window_ns) as f64;
    // A request that waited through a pause took at least as long as the pause. A sparse load may have no such request.
    let was_awaited = paused_ns > 0.0 && measurement.service.max? as f64 >= paused_ns;
    (was_awaited && paused_ns >= pause_from_ns(measurement)).then(|| {
        let [paused, from] = [paused_ns, ((end as u64 - run) * window_ns) as f64].map(|ns| quantity(ns, "ns"));
        format!("no response for at least {paused}, starting {from} into the measurement")
    })
}

pub(crate) fn censored<'a>(parts: impl Iterator<Item = &'a Censored> + Clone) -> Option<Box<Censored>> {
    parts.clone().next()?;
    let all = |part: fn(&Censored) -> &Histogram| {
        merge_histograms::merge(parts.clone().map(part)).as_ref().map(Histogram::from).unwrap_or_default()
    };
    Some(Box::new(Censored {
        in_flight: all(|part| &part.in_flight),
        unsent: all(|part| &part.unsent),
        connections: all(|part| &part.connections),
        unsent_overdue: total(parts.clone().map(|part| part.unsent_overdue)),
        silent_ns: parts.map(|part| part.silent_ns).max().unwrap_or(0),
    }))
}

/// Describes the requests without a response in all rows; `None` if there are none or if they are unknown.
pub fn over_all(findings: &Findings) -> Option<String> {
    let all = censored(findings.all_rows().filter_map(|row| row.censored.as_deref()))?;
    counted(&all).map(|counted| format!("Unanswered at the end of trials: {counted}."))
}

/// Describes the requests without a response of a row; `None` unless it hung or has unsent requests or lower bounds.
pub fn of_row(row: &Row) -> Option<String> {
    let matters = row.hung() > 0 || row.trials.iter().any(|trial| trial.unsent > 0 || !trial.at_least.is_empty());
    let counted = row.censored.as_deref().filter(|_| matters).and_then(counted)?;
    Some(format!("unanswered at the end of trials: {counted}"))
}

/// Describes requests without a response, such as `2756 not sent, for up to 2 s`; `None` if there are none.
pub fn counted(censored: &Censored) -> Option<String> {
    let part = |stored: &Histogram, what: &str| {
        let longest = quantity(stored.max? as f64, "ns");
        Some(format!("{} {what}, for up to {longest}", stored.count))
    };
    let parts = [part(&censored.in_flight, "still in flight"), part(&censored.unsent, "not sent")];
    let parts = parts.into_iter().flatten().collect::<Vec<_>>();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use study::record::{Histogram, Limit, Outcome, Window};

    use super::*;
    use crate::example::{MS, leave, waited};
    use crate::{example, value, verdict};

    /// A trial of 250 ms in which 40 clients got 18,000 responses, each within 3.18 ms.
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
    fn healthy_trial_has_no_warnings() {
        check("in flight", &record(|m| leave(m, &[MS; 40], &[], 2 * MS)), false, &[]);
        check("an old store", &record(|_| ()), false, &[]);
        check("a collector of garbage at the end", &record(|m| leave(m, &[90 * MS; 40], &[], 90 * MS)), false, &[]);
        let slow = |m: &mut Measurement| {
            m.service = waited(&[30 * MS; 1_000]);
            leave(m, &[140 * MS; 40], &[], 140 * MS);
        };
        check("not far beyond the usual response", &record(slow), false, &[]);
    }

    #[test]
    fn silence_of_all_connections_is_a_hang() {
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
        check("by a generator without a CPU", &record(starved), false, &[words]);
        let with = |whole_ns: u64, at_end_ns: u64| hung(all.measurement().unwrap(), Waits { whole_ns, at_end_ns });
        assert_eq!(with(170 * MS, 0), None, "a server that had waited for a CPU for as long");
        assert_eq!(with(0, 110 * MS), None, "a server that waited for a CPU at the end");
        assert_eq!(with(90 * MS, 40 * MS), Some(200 * MS), "waits that explain less than half of it");
    }

    #[test]
    fn slow_response_does_not_hide_a_silence() {
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
    fn reports_silent_connections() {
        let waits = |silent: &[u64]| silent.iter().copied().chain([MS; 37]).collect::<Vec<_>>();
        let one = record(|m| leave(m, &waits(&[812 * MS]), &[], MS));
        check("one", &one, false, &["1 of 40 connections got no response for the last 812 ms"]);
        let three = record(|m| leave(m, &waits(&[812 * MS, 900 * MS, 850 * MS]), &[], MS));
        let [(_, found)] = warnings(three.measurement().unwrap(), Waits::default()).try_into().unwrap();
        assert!(found.starts_with("3 of 40 connections got no response for at least the last 81"), "{found}");
    }

    #[test]
    fn reports_a_pause_only_if_requests_waited() {
        let pause = |m: &mut Measurement, longest: u64| {
            let empty = Window { requests: 0, errors: 0, latency: waited(&[]) };
            m.windows[10..35].fill(empty);
            m.service.max = Some(longest);
        };
        // The maximum is in its own bucket, as in a real trial.
        let stopped = record(|m| {
            let mut service = merge_histograms::from_record(&m.service).unwrap();
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
    fn open_loop_without_responses_is_limited_by_the_server() {
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
        // Without the waiting requests, the verdict would wrongly name the generator.
        let slow = judged(|m| leave(m, &[60 * MS; 40], &[50 * MS; 7_000], 60 * MS));
        assert_eq!(slow.0, Limit::Subject, "{slow:?}");
        assert!(slow.1.ends_with("every connection was waiting for a response at the end"), "{slow:?}");
        let idle = judged(|m| leave(m, &[MS; 3], &[50 * MS; 7_000], MS));
        assert_eq!(idle.0, Limit::Generator, "connections were free: {idle:?}");
    }

    #[test]
    fn waiting_requests_make_values_lower_bounds() {
        let read = |record: &Record| value::values_and_bounds(record, 0.95);
        let (before, none) = read(&record(|_| ()));
        let (healthy, bounds) = read(&record(|m| leave(m, &[MS / 10; 40], &[], MS / 10)));
        assert!(none.is_empty() && bounds.is_empty());
        for name in ["latency_mean", "latency_p50", "latency_p99"] {
            assert!((healthy.get(name).unwrap() / before.get(name).unwrap() - 1.0).abs() < 0.002, "{name}");
        }
        let (frozen, bounds) = read(&record(|m| leave(m, &[4_000 * MS], &[], MS)));
        assert_eq!(bounds.into_iter().collect::<Vec<_>>(), ["latency_mean"], "one of 18,000 is beyond p99.9");
        assert!(frozen.get("latency_mean").unwrap() > before.get("latency_mean").unwrap());
        let (hung, bounds) = read(&record(|m| leave(m, &[200 * MS; 40], &[100 * MS; 20_000], 200 * MS)));
        assert_eq!(hung.get("latency_p99").unwrap(), 200e6);
        let known = ["latency_mean", "latency_p50", "latency_p90", "latency_p95", "latency_p99", "latency_p999"];
        assert_eq!(bounds.into_iter().collect::<Vec<_>>(), known);
        let overdue = record(|m| {
            leave(m, &[200 * MS; 40], &[100 * MS; 20_000], 200 * MS);
            m.censored.as_mut().unwrap().unsent_overdue = 2_000;
        });
        let (values, requests) = (read(&overdue).0, overdue.measurement().unwrap().requests as f64);
        assert_eq!(values.get("error_share").unwrap(), 2_000.0 / (requests + 2_000.0));
    }
}
