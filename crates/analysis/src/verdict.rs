//! Determines the bottleneck of a trial and its warnings. docs/method/bottleneck.md gives the rules in order of
//! precedence.

use std::collections::BTreeSet;

use study::record::{Calibration, Limit, Measurement, Node, ProxyUse, Record, Run, Verdict};
use study::{Warning, WarningKind};

use crate::cluster_generator_verdicts;
use crate::failed_requests::FailedRequests;
use crate::hangs::{self, Waits};
pub use crate::load_bottleneck::{BUSY, generator_busy, judge_load, subject_busy};
use crate::load_bottleneck::{RUN_QUEUE_SHARE, backing_off, generator_waiting, limit, stalled, verdict, waiting};
use crate::number::{count, percent, quantity};

/// Utilization, from 0 to 1, above which a generator has no CPU time left.
const EXHAUSTED: f64 = 0.95;
const LITTLE_TOLERANCE: f64 = 0.01;
/// Share of a server's or generator's time spent waiting for its CPU, above which a trial counts as disturbed.
const DISTURBED: f64 = 0.1;

/// Judges stored trials again, by the current rules.
pub fn judge_again(run: &Run, records: &mut [Record]) {
    for record in records {
        cluster_generator_verdicts::judge_agents(record, &run.nodes);
        record.verdict = judge(record, run.calibration.as_ref(), &run.nodes).0;
    }
}

/// Returns the limit of the trial, `None` if it failed, and its warnings. `nodes` are the machines of a cluster.
/// Ignores a calibration for a different protocol, backend, idle policy, number of threads or generator machine.
pub fn judge(record: &Record, calibration: Option<&Calibration>, nodes: &[Node]) -> (Option<Verdict>, Vec<Warning>) {
    let Some(measurement) = record.measurement() else { return (None, Vec::new()) };
    let subject = subject_busy(&record.subject);
    let setup = (measurement.protocol, &measurement.backend, record.idle, measurement.threads);
    let is_alike = |of: &&Calibration| (of.protocol, &of.backend, of.idle, of.threads) == setup;
    let calibration = calibration.filter(is_alike).filter(|_| record.agents.is_empty());
    let waits = Waits::of(record);
    let mut warnings = measurement_warnings(measurement, waits);
    warnings.extend(network_warnings(record));
    warnings.extend(waiting_warnings(record));
    warnings.extend(cluster_generator_verdicts::warnings(record));
    let both = subject.zip(generator_busy(measurement));
    let is_close = |(subject, generator): &(f64, f64)| *generator > EXHAUSTED && (BUSY..EXHAUSTED).contains(subject);
    if let Some((subject, generator)) = both.filter(is_close) {
        let [generator, subject] = [generator, subject].map(percent);
        let text = format!("the generator was {generator} busy and the server {subject}: the result may reflect both");
        warnings.push(WarningKind::BothBusy.says(text));
    }
    let starved = starved(record).filter(|_| hangs::hung(measurement, waits).is_none()).map(percent);
    let verdict = match starved {
        _ if record.cpus_shared => verdict(Limit::Shared, "server and generator shared CPUs".to_owned()),
        Some(share) => verdict(Limit::Shared, format!("another process had the server's CPU {share} of the time")),
        None => without_own_cpu(limit(measurement, Some(subject), calibration, waits), measurement),
    };
    (Some(cluster_generator_verdicts::worst(with_proxies(verdict, record), record, nodes)), warnings)
}

/// Share of the time that the server waited for its CPU; `None` up to 10 %, which does not count as starved.
pub fn starved(record: &Record) -> Option<f64> {
    record.subject.waiting_share().filter(|share| *share > DISTURBED)
}

fn without_own_cpu(mut found: Verdict, measurement: &Measurement) -> Verdict {
    let share = generator_waiting(measurement);
    let is_busy = generator_busy(measurement).is_some_and(|busy| busy > BUSY);
    let cpus = measurement.workers.iter().filter_map(|worker| worker.cpu).collect::<BTreeSet<_>>();
    let has_own_cpus = cpus.len() == measurement.workers.len();
    if found.limited_by == Limit::Generator && share > DISTURBED && !is_busy && has_own_cpus {
        found.limited_by = Limit::Shared;
        found.reasons.insert(0, format!("another process had the generator's CPU {} of the time", percent(share)));
    }
    found
}

fn waiting_warnings(record: &Record) -> Vec<Warning> {
    let subject = ("the server".to_owned(), &record.subject);
    let proxies = record.proxies.iter().map(|proxy| (format!("the proxy {}", proxy.name), &proxy.used));
    let waiting = std::iter::once(subject).chain(proxies).filter_map(|(name, used)| {
        let share = used.waiting_share().filter(|share| *share > RUN_QUEUE_SHARE)?;
        let text = format!("{name} waited for its CPU {} of the time: another process had it", percent(share));
        Some(WarningKind::SubjectWaited.says(text))
    });
    waiting.collect()
}

/// Makes a proxy with busy CPUs the limit, unless the generator or the network is the limit or CPUs were shared.
fn with_proxies(mut found: Verdict, record: &Record) -> Verdict {
    let subject = subject_busy(&record.subject).unwrap_or(0.0);
    let busy = |proxy: &ProxyUse| subject_busy(&proxy.used).unwrap_or(0.0);
    // Proxies that use the server's CPUs saturate them together with the server.
    let together = subject + record.proxies.iter().filter(|proxy| proxy.shares_cpus).map(busy).sum::<f64>();
    let busiest = record.proxies.iter().max_by(|a, b| busy(a).total_cmp(&busy(b)));
    if let Some(proxy) = busiest {
        let share = busy(proxy);
        let saturated = share > BUSY || (proxy.shares_cpus && together > BUSY && share > subject);
        if saturated && matches!(found.limited_by, Limit::Subject | Limit::Latency | Limit::Neither) {
            found.limited_by = Limit::Proxy;
            let whose = if proxy.shares_cpus { "the CPUs it shares with the server" } else { "its CPUs" };
            found.reasons.insert(0, format!("{whose} were busy"));
        } else if proxy.shares_cpus && together > BUSY && found.limited_by == Limit::Latency {
            found.limited_by = Limit::Subject;
            found.reasons.insert(0, "the CPUs it shares with a proxy were busy".to_owned());
        }
    }
    let each = record.proxies.iter().map(|proxy| format!("the proxy {} was {} busy", proxy.name, percent(busy(proxy))));
    found.reasons.extend(each);
    found
}

/// Returns the warning if no request got a response, else `None`. Errors other than timeouts have their own warning.
pub fn silence_warning(measurement: &Measurement) -> Option<String> {
    let late = |kind: &String| matches!(kind.as_str(), "timeout" | "connect-timeout");
    let answered = measurement.requests > 0 || measurement.late_answers > 0;
    let silent = !answered && measurement.unfinished > 0 && measurement.errors.keys().all(late);
    let seconds = measurement.duration_ns as f64 / 1e9;
    let asked = count(measurement.unfinished, "request");
    silent.then(|| format!("no response in the {seconds:.3} s measured: {asked} still waiting at the end"))
}

pub(crate) fn measurement_warnings(measurement: &Measurement, waits: Waits) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |kind: WarningKind, text: Option<String>| warnings.extend(text.map(|text| kind.says(text)));
    warn(WarningKind::Backend, measurement.backend_note.clone());
    match silence_warning(measurement) {
        None => hangs::warnings(measurement, waits).into_iter().for_each(|(kind, text)| warn(kind, Some(text))),
        silence => warn(WarningKind::Silent, silence),
    }
    warn(WarningKind::Errors, FailedRequests::from(measurement).sentence());
    let has_failed = measurement.warmup_errors.values().any(|&count| count > 0);
    let kinds = measurement.warmup_errors.iter().map(|(kind, count)| format!("{count} {kind}"));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    warn(WarningKind::WarmupErrors, has_failed.then(|| format!("requests failed during warm-up: {kinds}")));
    let late = "arrived after the timeout (included in the quantiles)";
    warn(WarningKind::LateAnswers, counted(measurement.late_answers, "response", late));
    let longest = measurement.censored.as_deref().and_then(|censored| censored.unsent.max);
    let longest = longest.map_or(String::new(), |ns| format!(", for up to {}", quantity(ns as f64, "ns")));
    let unsent = format!("could not be sent before the end: no connection was free{longest}");
    warn(WarningKind::Unsent, counted(measurement.unsent, "intended request", &unsent));
    warn(WarningKind::Reconnects, counted(measurement.reconnects, "connection", "had to be reopened"));
    warn(WarningKind::BackOff, backing_off(measurement));
    let again = match &measurement.streams {
        None => "had to be resent: the connection closed after a response to an earlier one",
        Some(_) => "had to be resent: the server left without a response, or refused to process it",
    };
    let allowed = measurement.streams.as_deref().and_then(|streams| streams.allowed);
    let allowed = allowed.filter(|allowed| *allowed < measurement.pipeline);
    let depth = measurement.pipeline;
    let limit = |allowed| format!("the server allowed {allowed} requests in flight per connection, the load {depth}");
    warn(WarningKind::StreamLimit, allowed.map(limit));
    warn(WarningKind::AskedAgain, counted(measurement.asked_again, "request", again));
    let saturated = measurement.latency().saturated;
    warn(WarningKind::Saturated, counted(saturated, "latency", "above 1 h: counted in the highest bucket"));
    warn(WarningKind::Little, little_warning(measurement));
    for (index, worker) in measurement.workers.iter().enumerate() {
        let share = Some(waiting(worker)).filter(|share| *share > RUN_QUEUE_SHARE).map(percent);
        let text = |share| format!("worker {index} of the generator was ready but not running {share} of the time");
        warn(WarningKind::GeneratorWaited, share.map(text));
    }
    warn(WarningKind::GeneratorWaited, stalled(measurement));
    warnings
}

fn counted(n: u64, noun: &str, what: &str) -> Option<String> {
    (n > 0).then(|| format!("{} {what}", count(n, noun)))
}

/// Checks Little's law: in flight = rate × latency, from write to response. Requests that cross the start or the end of
/// measuring blur the check by at most one maximum latency per client at each end.
fn little_warning(measurement: &Measurement) -> Option<String> {
    // Failed requests were in flight but have no latency, so the check is not possible.
    if measurement.errors_total() > 0 || measurement.late_answers > 0 || measurement.requests == 0 {
        return None;
    }
    let (caused_ns, caused) = caused(measurement);
    // Requests without a response were in flight too. In an open loop, each connection counts as one from its write on.
    let waited_ns = measurement.censored.as_deref().map_or(0.0, |censored| match measurement.offered_per_s {
        Some(_) => censored.connections.sum,
        None => censored.in_flight.sum,
    });
    let (sum, answers) = (measurement.service.sum + caused_ns + waited_ns, measurement.service.count + caused);
    let rate_per_s = answers as f64 * 1e9 / (measurement.duration_ns as f64).max(1.0);
    let ratio = stats::littles_law::ratio(measurement.in_flight_mean, rate_per_s, sum / answers.max(1) as f64)?;
    let edges = 2.0 * measurement.service.max.unwrap_or(0) as f64 / (measurement.duration_ns as f64).max(1.0);
    ((ratio - 1.0).abs() > LITTLE_TOLERANCE + edges).then(|| {
        let off = percent((ratio - 1.0).abs());
        format!("Little's law is off by {off}: requests in flight, rate and latency are inconsistent")
    })
}

/// Total service time, ns, and number of fills and rewrites, which are in flight but do not count as requests.
pub(crate) fn caused(measurement: &Measurement) -> (f64, u64) {
    let cache = measurement.cache.as_ref();
    cache.map_or((0.0, 0), |cache| (cache.fill.sum + cache.rewrite.sum, cache.fill.count + cache.rewrite.count))
}

fn network_warnings(record: &Record) -> impl Iterator<Item = Warning> {
    let network = &record.network;
    let full = |n: u64| format!("the server's accept queue was full {} (ListenOverflows)", count(n, "time"));
    let dropped = Some(network.listen_drops).filter(|drops| *drops > network.listen_overflows).unwrap_or(0);
    let overflows = Some(network.listen_overflows).filter(|n| *n > 0);
    let texts = [
        (WarningKind::Retransmits, counted(network.retransmits, "TCP segment", "retransmitted")),
        (WarningKind::ListenOverflows, overflows.map(full)),
        (WarningKind::ListenDrops, counted(dropped, "connection request", "dropped (ListenDrops)")),
    ];
    texts.into_iter().filter_map(|(kind, text)| Some(kind.says(text?)))
}

#[cfg(test)]
mod tests {
    use study::record::{SubjectUse, Worker};

    use super::*;
    use crate::example;
    use study::buckets_as_text::Buckets;
    use study::record::{CacheMeasurement, Histogram, IdlePolicy, NetworkCounters, Outcome, StreamsMeasurement};
    use study::spec::Protocol;

    const DURATION_NS: u64 = 250_000_000;

    fn closed(subject: f64, generator: f64) -> Record {
        let records = example::volley().1;
        let mut record = records.into_iter().find(|record| record.point == 0).unwrap();
        record.subject.system_ns = (subject * record.subject.measured_ns as f64) as u64;
        record.subject.user_ns = 0;
        let worker = &mut of(&mut record).workers[0];
        worker.cpu_ns = (generator * worker.wall_ns as f64) as u64;
        record
    }

    /// An open loop with responses to the share `answered` of 50,000 requests/s. Latency and lags are constant, in ns.
    fn open(subject: f64, answered: f64, latency: u64, lag_thread: u64, lag_connection: u64) -> Record {
        let mut record = closed(subject, 0.3);
        let all = |value: u64| {
            let mut histogram = stats::Histogram::new();
            (0..1_000).for_each(|_| histogram.record(value));
            Some(Histogram::from(&histogram))
        };
        let measurement = of(&mut record);
        measurement.offered_per_s = Some(50_000.0);
        measurement.requests = (12_500.0 * answered) as u64;
        measurement.response = all(latency);
        measurement.lag_thread = all(lag_thread);
        measurement.lag_connection = all(lag_connection);
        record
    }

    fn of(record: &mut Record) -> &mut Measurement {
        let Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
        measurement
    }

    fn edited(mut record: Record, edit: impl FnOnce(&mut Record)) -> Record {
        edit(&mut record);
        record
    }

    fn check(name: &str, record: &Record, limit: Limit, reason: &str) {
        let verdict = judge(record, None, &[]).0.unwrap();
        assert_eq!((verdict.limited_by, verdict.reasons[0].as_str()), (limit, reason), "{name}");
    }

    #[test]
    fn closed_loops() {
        let busy = "its CPUs were busy";
        let spare = "it was saturated while the server had spare CPU";
        let waited = "nothing was saturated: 40 clients waited for responses";
        check("a saturated subject", &closed(0.98, 0.60), Limit::Subject, busy);
        check("both saturated, on one CPU each", &closed(1.0, 1.0), Limit::Subject, busy);
        check("a generator beside an idle subject", &closed(0.40, 0.97), Limit::Generator, spare);
        check("just below the bounds", &closed(0.79, 0.79), Limit::Latency, waited);
        check(
            "few clients",
            &edited(closed(0.2, 0.2), |r| of(r).clients = 1),
            Limit::Latency,
            "nothing was saturated: 1 client waited for responses",
        );
        check(
            "shared processors",
            &edited(closed(0.4, 0.97), |r| r.cpus_shared = true),
            Limit::Shared,
            "server and generator shared CPUs",
        );
        let one_thread_of_four = |r: &mut Record| {
            r.subject.cpus = vec![0, 1, 2, 3];
            r.subject.threads_max = 1;
        };
        check("one thread on four CPUs", &edited(closed(0.98, 0.6), one_thread_of_four), Limit::Subject, busy);
        let four_threads = |r: &mut Record| (r.subject.cpus, r.subject.threads_max) = (vec![0, 1, 2, 3], 4);
        check("four threads, of which one is busy", &edited(closed(0.98, 0.95), four_threads), Limit::Generator, spare);
        let unknown = |r: &mut Record| r.subject.measured_ns = 0;
        check(
            "a busy generator and unknown other load",
            &edited(closed(0.0, 0.95), unknown),
            Limit::Generator,
            "it was busy, and the server's spare CPU is unknown",
        );
    }

    #[test]
    fn generator_kept_from_its_cpu_is_shared() {
        let kept = edited(closed(0.4, 0.35), |r| of(r).workers[0].run_queue_ns = Some(DURATION_NS * 6 / 10));
        let verdict = judge(&kept, None, &[]).0.unwrap();
        assert_eq!(verdict.limited_by, Limit::Shared);
        assert_eq!(
            verdict.reasons,
            [
                "another process had the generator's CPU 60 % of the time",
                "it had no CPU of its own",
                "the generator's busiest worker was 35 % busy, one worker waited for a CPU 60 % of the time",
                "the server was 40 % busy",
            ]
        );
        assert_eq!(judge_load(kept.measurement().unwrap()).limited_by, Limit::Generator);
        let two_on_one_cpu = edited(kept, |r| of(r).workers = vec![of(r).workers[0].clone(); 2]);
        assert_eq!(judge(&two_on_one_cpu, None, &[]).0.unwrap().limited_by, Limit::Generator);
    }

    #[test]
    fn busiest_worker_decides() {
        let idle_beside = edited(closed(0.3, 0.97), |r| {
            let mut idle = of(r).workers[0].clone();
            idle.cpu_ns = 0;
            of(r).workers.push(idle);
        });
        assert_eq!(judge(&idle_beside, None, &[]).0.unwrap().limited_by, Limit::Generator);
    }

    #[test]
    fn open_loops() {
        let check = |name, record: Record, limit, reason| check(name, &record, limit, reason);
        check("met", open(0.3, 1.0, 100_000, 1_000, 0), Limit::Neither, "100 % of the offered load was answered");
        check(
            "met, by what chance allows",
            open(0.3, 0.98, 100_000, 1_000, 0),
            Limit::Neither,
            "98 % of the offered load was answered",
        );
        check(
            "met, but the generator was late",
            open(0.3, 1.0, 100_000, 20_000, 0),
            Limit::Generator,
            "its own send lag at p99 is 20 % of the p99 latency",
        );
        check(
            "missed by a busy subject",
            open(0.95, 0.8, 100_000, 1_000, 0),
            Limit::Subject,
            "only 80 % of the offered load was answered, its CPUs were busy",
        );
        check(
            "missed, all connections waiting",
            open(0.3, 0.8, 100_000, 1_000, 50_000),
            Limit::Subject,
            "only 80 % of the offered load was answered, no connection was free: it was slow to respond",
        );
        check(
            "missed for no reason of the subject",
            open(0.3, 0.8, 100_000, 1_000, 0),
            Limit::Generator,
            "only 80 % of the offered load was answered, and the server was not saturated",
        );
        let errors = |r: &mut Record| of(r).errors = [("reset".to_owned(), 2_500)].into();
        check(
            "missed by errors",
            edited(open(0.3, 0.8, 100_000, 1_000, 0), errors),
            Limit::Subject,
            "only 80 % of the offered load was answered, the rest failed",
        );
    }

    /// A server, 40 % busy, that waited for its CPU for a share `waited` of the time. Others used a share `others`.
    fn beside(waited: f64, others: f64) -> Record {
        edited(closed(0.4, 0.3), |record| {
            let ns = |share: f64| Some((share * record.subject.measured_ns as f64) as u64);
            (record.subject.run_queue_ns, record.subject.others_ns) = (ns(waited), ns(others));
        })
    }

    #[test]
    fn server_kept_from_its_cpu_is_not_slow() {
        for (name, waited, others, share) in [
            ("alone", 0.0, 0.0, 0.0),
            ("its own threads waited for each other", 3.0, 0.0, 0.0),
            ("others worked when it had nothing to do", 0.01, 0.5, 0.01),
            ("others held the resource it waited for", 0.34, 0.5, 0.34),
            ("many threads waited for one taken CPU", 7.0, 0.5, 0.5),
            ("a tick or two", 0.5, 0.04, 0.0),
        ] {
            let record = beside(waited, others);
            let found = record.subject.waiting_share().unwrap();
            assert!((found - share).abs() < 1e-6, "{name}: {found}");
            let (verdict, warnings) = judge(&record, None, &[]);
            let limit = if share > DISTURBED { Limit::Shared } else { Limit::Latency };
            assert_eq!(
                (verdict.unwrap().limited_by, warnings.len()),
                (limit, usize::from(share > RUN_QUEUE_SHARE)),
                "{name}"
            );
        }
        let (verdict, warnings) = judge(&beside(0.34, 0.5), None, &[]);
        assert_eq!(verdict.unwrap().reasons, ["another process had the server's CPU 34 % of the time"]);
        let text = "the server waited for its CPU 34 % of the time: another process had it";
        assert_eq!(warnings, [WarningKind::SubjectWaited.says(text)]);
        let unknown = edited(beside(0.34, 0.5), |record| record.subject.others_ns = None);
        assert_eq!((unknown.subject.waiting_share(), starved(&unknown)), (None, None));
        assert_eq!(judge(&unknown, None, &[]).0.unwrap().limited_by, Limit::Latency);
        let proxy = edited(closed(0.4, 0.3), |record| {
            let used = beside(0.34, 0.5).subject;
            record.proxies = vec![ProxyUse { name: "m".to_owned(), used, ..ProxyUse::default() }];
        });
        let text = "the proxy m waited for its CPU 34 % of the time: another process had it";
        assert_eq!(judge(&proxy, None, &[]).1, [WarningKind::SubjectWaited.says(text)]);
    }

    #[test]
    fn clients_in_back_off_do_not_wait() {
        let resting = |mean: f64| edited(closed(0.2, 0.2), |record| of(record).in_backoff_mean = mean);
        check("few", &resting(0.3), Limit::Latency, "nothing was saturated: 40 clients waited for responses");
        check(
            "some",
            &resting(12.0),
            Limit::Latency,
            "nothing was saturated: on average 28 of 40 clients waited for responses",
        );
        let most = "on average 25 of 40 clients were in the generator's back-off after lost connections";
        check("most", &resting(25.0), Limit::Subject, &format!("it lost connections: {most}"));
        assert_eq!(judge(&resting(25.0), None, &[]).1, [WarningKind::BackOff.says(most)]);
        assert_eq!(judge(&resting(0.3), None, &[]).1, []);
        let one = "on average 1.5 of 40 clients were in the generator's back-off after lost connections";
        assert_eq!(judge(&resting(1.5), None, &[]).1, [WarningKind::BackOff.says(one)]);
        let open = edited(open(0.3, 0.8, 100_000, 1_000, 50_000), |record| of(record).in_backoff_mean = 25.0);
        let reason = format!("only 80 % of the offered load was answered, it lost connections: {most}");
        check("open loop", &open, Limit::Subject, &reason);
    }

    #[test]
    fn clients_in_think_time_do_not_wait() {
        // 50 clients with 2 s of think time: 24.8 requests per second, 0.4 in flight.
        let thinking = |in_flight_mean: f64, think_ns: u64| {
            edited(closed(0.01, 0.01), |record| {
                let measurement = of(record);
                (measurement.clients, measurement.in_flight_mean, measurement.think_ns) =
                    (50, in_flight_mean, think_ns);
                (measurement.requests, measurement.duration_ns) = (248, 10_000_000_000);
            })
        };
        check(
            "most",
            &thinking(0.4, 2_000_000_000),
            Limit::Neither,
            "on average 50 of 50 clients were in their think time",
        );
        let alone = judge_load(thinking(0.4, 2_000_000_000).measurement().unwrap());
        assert_eq!(alone.limited_by, Limit::Neither, "a load with an unmonitored server");
        check(
            "some",
            &thinking(40.0, 400_000_000),
            Limit::Latency,
            "nothing was saturated: on average 40 of 50 clients waited for responses",
        );
        check("none", &thinking(50.0, 0), Limit::Latency, "nothing was saturated: 50 clients waited for responses");
    }

    #[test]
    fn failed_journeys_are_not_lost_connections() {
        let paused = edited(closed(0.2, 0.2), |record| {
            of(record).in_backoff_mean = 25.0;
            of(record).journeys = vec![study::record::JourneyMeasurement::default()];
        });
        let pause = "on average 25 of 40 clients paused after a journey that failed";
        check("journey", &paused, Limit::Subject, &format!("its responses failed journeys: {pause}"));
        assert_eq!(judge(&paused, None, &[]).1, [WarningKind::BackOff.says(pause)]);
    }

    #[test]
    fn held_up_generator_is_the_limit() {
        let stalled = |ns: u64, duration_ns: u64| {
            edited(closed(0.4, 0.3), |record| {
                of(record).workers[0].stalled_ns = ns;
                of(record).duration_ns = duration_ns;
            })
        };
        let said = "the generator did not run for 300 ms of 1.000 s";
        check("stopped", &stalled(300_000_000, 1_000_000_000), Limit::Generator, said);
        let said_at_end = "the generator did not run for 90.0 ms of 1.000 s";
        check("stopped before the end", &stalled(90_000_000, 1_000_000_000), Limit::Generator, said_at_end);
        let busy = edited(stalled(300_000_000, 1_000_000_000), |record| {
            record.subject.system_ns = record.subject.measured_ns;
        });
        check("beside a busy server", &busy, Limit::Generator, said);
        let warnings = judge(&stalled(300_000_000, 1_000_000_000), None, &[]).1;
        assert!(warnings.contains(&WarningKind::GeneratorWaited.says(said)), "{warnings:?}");
        for (name, ns, duration_ns) in
            [("short", 49_000_000, 1_000_000_000), ("once in a minute", 300_000_000, 60_000_000_000)]
        {
            assert_eq!(judge(&stalled(ns, duration_ns), None, &[]).0.unwrap().limited_by, Limit::Latency, "{name}");
        }
    }

    #[test]
    fn generator_waiting_half_of_the_time_is_shared() {
        let kept = |mut record: Record| {
            of(&mut record).workers[0].run_queue_ns = Some(DURATION_NS * 48 / 100);
            record
        };
        let reason = "another process had the generator's CPU 48 % of the time";
        check("closed", &kept(closed(0.4, 0.2)), Limit::Shared, reason);
        assert_eq!(judge_load(kept(closed(0.4, 0.2)).measurement().unwrap()).limited_by, Limit::Generator);
        check("open", &kept(open(0.3, 0.8, 100_000, 1_000, 50_000)), Limit::Shared, reason);
        check("busy server", &kept(closed(0.98, 0.2)), Limit::Subject, "its CPUs were busy");
    }

    /// All 40 connections are silent for the last 200 ms of 250 ms.
    #[test]
    fn server_waiting_for_its_cpu_is_not_hung() {
        let silent = |edit: fn(&mut Record)| {
            edited(beside(0.05, 0.9), |record| {
                example::leave(of(record), &[200 * example::MS; 40], &[], 200 * example::MS);
                edit(record);
            })
        };
        let limit = |record: &Record| judge(record, None, &[]).0.unwrap().limited_by;
        let waits = silent(|record| {
            record.subject.waited_at_end_ns = Some(180 * example::MS);
            record.subject.run_queue_ns = Some(record.subject.measured_ns * 7 / 10);
        });
        assert_eq!((limit(&waits), hangs::hung_trial(&waits)), (Limit::Shared, None));
        let proxy = silent(|record| {
            let used = SubjectUse { waited_at_end_ns: Some(180 * example::MS), ..SubjectUse::default() };
            record.proxies = vec![ProxyUse { name: "m".to_owned(), used, ..ProxyUse::default() }];
        });
        assert_eq!(hangs::hung_trial(&proxy), None, "the proxy waited");
        let hung = silent(|record| record.subject.waited_at_end_ns = Some(0));
        assert_eq!((limit(&hung), hangs::hung_trial(&hung)), (Limit::Subject, Some(200 * example::MS)));
        let starved_before = silent(|record| {
            record.subject.waited_at_end_ns = Some(0);
            record.subject.run_queue_ns = Some(record.subject.measured_ns * 3 / 10);
        });
        assert_eq!(limit(&starved_before), Limit::Subject, "it hung all the same");
    }

    #[test]
    fn warns_if_no_request_gets_a_response() {
        let silent = |errors: &[(&str, u64)], unfinished| {
            edited(closed(0.0, 0.0), |record| {
                let measurement = of(record);
                (measurement.requests, measurement.unfinished) = (0, unfinished);
                measurement.errors = errors.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
            })
        };
        let said = |record: &Record| silence_warning(record.measurement().unwrap());
        let words = "no response in the 0.250 s measured: 10 requests still waiting at the end";
        assert_eq!(said(&silent(&[], 10)).as_deref(), Some(words));
        assert_eq!(said(&silent(&[("timeout", 10)], 10)).as_deref(), Some(words));
        assert_eq!(said(&silent(&[("wrong-answer", 10)], 10)), None);
        assert_eq!(said(&silent(&[], 0)), None);
        assert_eq!(said(&closed(0.5, 0.5)), None);
    }

    #[test]
    fn polling_does_not_count_as_busy() {
        let polling = edited(open(0.3, 1.0, 100_000, 1_000, 0), |r| {
            let worker = &mut of(r).workers[0];
            worker.cpu_ns = worker.wall_ns;
            worker.spin_ns = worker.wall_ns * 7 / 10;
        });
        assert!((generator_busy(polling.measurement().unwrap()).unwrap() - 0.3).abs() < 1e-6);
    }

    #[test]
    fn matching_calibration_bounds_the_rate() {
        let (run, _) = example::volley();
        let near = Calibration { rate_max_per_s: 75_000.0, ..run.calibration.unwrap() };
        let record = closed(0.5, 0.7);
        let limit = |calibration: &Calibration| judge(&record, Some(calibration), &[]).0.unwrap().limited_by;
        assert_eq!(limit(&near), Limit::Generator, "72 k/s of 75 k/s");
        let reasons = |calibration: &Calibration| judge(&record, Some(calibration), &[]).0.unwrap().reasons;
        assert!(reasons(&near)[0].ends_with(" over pingpong against a null server"), "{:?}", reasons(&near));
        let named = Calibration { server: "`quintain serve calibrate`".to_owned(), ..near.clone() };
        assert!(reasons(&named)[0].ends_with(" over pingpong against `quintain serve calibrate`"));
        let spare = Calibration { generator_busy: Some(0.5), ..near.clone() };
        assert_eq!(limit(&spare), Limit::Latency, "a peak of the null server");
        let http = Calibration { protocol: Protocol::Http, ..near.clone() };
        assert_eq!(limit(&http), Limit::Latency, "of another protocol");
        assert_eq!(limit(&Calibration { rate_max_per_s: 200_000.0, ..near.clone() }), Limit::Latency);
        assert_eq!(
            limit(&Calibration { idle: IdlePolicy::Spin, ..near.clone() }),
            Limit::Latency,
            "of another idle policy"
        );
        assert_eq!(limit(&Calibration { threads: 4, ..near.clone() }), Limit::Latency, "of more threads");
        assert_eq!(
            judge(&closed(0.95, 0.7), Some(&near), &[]).0.unwrap().limited_by,
            Limit::Subject,
            "a saturated subject comes first"
        );
    }

    #[test]
    fn a_failed_trial_has_no_verdict() {
        let records = example::volley().1;
        let failed = records.iter().find(|record| record.measurement().is_none()).unwrap();
        assert_eq!(judge(failed, None, &[]), (None, Vec::new()));
    }

    #[test]
    fn judges_loads_without_server_metrics() {
        let limit = |record: &Record| judge_load(record.measurement().unwrap()).limited_by;
        assert_eq!(limit(&closed(0.9, 0.5)), Limit::Subject, "40 clients wait, the generator does not");
        assert_eq!(limit(&closed(0.9, 0.95)), Limit::Generator);
        assert_eq!(limit(&edited(closed(0.9, 0.5), |r| of(r).clients = 1)), Limit::Latency);
        assert_eq!(limit(&open(0.9, 1.0, 100_000, 1_000, 0)), Limit::Neither);
    }

    #[test]
    fn warnings() {
        let check = |name: &str, record: Record, expected: &[&str]| {
            let warnings = judge(&record, None, &[]).1.into_iter().map(|warning| warning.text).collect::<Vec<_>>();
            assert_eq!(warnings, expected, "{name}");
        };
        let edit = |edit: fn(&mut Measurement)| edited(closed(0.98, 0.6), |record| edit(of(record)));
        check("none", closed(0.98, 0.6), &[]);
        check(
            "errors",
            edit(|m| {
                m.errors.insert("timeout".to_owned(), 3);
            }),
            &["3 of 18,044 requests failed (0.017 %): 3 timeout"],
        );
        check(
            "warm-up",
            edit(|m| {
                m.warmup_errors.insert("refused".to_owned(), 3);
            }),
            &["requests failed during warm-up: 3 refused"],
        );
        check(
            "late",
            edit(|m| m.late_answers = 1),
            &["1 response arrived after the timeout (included in the quantiles)"],
        );
        check(
            "unsent",
            edit(|m| m.unsent = 2),
            &["2 intended requests could not be sent before the end: no connection was free"],
        );
        check("reconnects", edit(|m| m.reconnects = 2), &["2 connections had to be reopened"]);
        let again = "15 requests had to be resent: the connection closed after a response to an earlier one";
        check("asked again", edit(|m| m.asked_again = 15), &[again]);
        let http2 = |asked_again, allowed| {
            edited(closed(0.98, 0.6), |record| {
                let measurement = of(record);
                (measurement.asked_again, measurement.pipeline) = (asked_again, 100);
                measurement.streams = Some(Box::new(StreamsMeasurement { allowed, ..StreamsMeasurement::default() }));
            })
        };
        let again = "1 request had to be resent: the server left without a response, or refused to process it";
        check("resent over HTTP/2", http2(1, Some(100)), &[again]);
        let limit = "the server allowed 99 requests in flight per connection, the load 100";
        check("limit of streams", http2(0, Some(99)), &[limit]);
        check(
            "backend",
            edit(|m| m.backend_note = Some("io_uring is not there".to_owned())),
            &["io_uring is not there"],
        );
        check(
            "run queue",
            edit(|m| m.workers[0].run_queue_ns = Some(25_000_000)),
            &["worker 0 of the generator was ready but not running 10 % of the time"],
        );
        check(
            "Little",
            edit(|m| m.in_flight_mean = 42.0),
            &["Little's law is off by 5.0 %: requests in flight, rate and latency are inconsistent"],
        );
        fn with_fills(m: &mut Measurement, in_flight_mean: f64) {
            let fill = Histogram { sum: m.service.sum / 20.0, count: 1_000, ..Histogram::default() };
            m.cache = Some(Box::new(CacheMeasurement { fill, ..CacheMeasurement::default() }));
            m.in_flight_mean = in_flight_mean;
        }
        check("fills in flight", edit(|m| with_fills(m, 42.0)), &[]);
        check(
            "fills, and more in flight than they are",
            edit(|m| with_fills(m, 44.1)),
            &["Little's law is off by 5.0 %: requests in flight, rate and latency are inconsistent"],
        );
        check(
            "both near their end",
            closed(0.9, 0.97),
            &["the generator was 97 % busy and the server 90 %: the result may reflect both"],
        );
        let network = NetworkCounters { retransmits: 1, listen_overflows: 2, listen_drops: 5 };
        check(
            "network",
            edited(closed(0.98, 0.6), |record| record.network = network),
            &[
                "1 TCP segment retransmitted",
                "the server's accept queue was full 2 times (ListenOverflows)",
                "5 connection requests dropped (ListenDrops)",
            ],
        );
    }

    #[test]
    fn nonsense_does_not_panic() {
        let zeros = edited(open(0.0, 0.0, 0, 0, 0), |record| {
            record.subject = SubjectUse::default();
            let measurement = of(record);
            measurement.duration_ns = 0;
            measurement.service = Histogram { buckets: Buckets::new(&[(9, 0)]), count: 3, ..Histogram::default() };
            measurement.workers = vec![Worker::default()];
            measurement.in_flight_mean = f64::NAN;
        });
        assert!(judge(&zeros, None, &[]).0.is_some());
        let closed = edited(zeros, |record| of(record).offered_per_s = None);
        assert_eq!(judge(&closed, None, &[]).0.unwrap().limited_by, Limit::Latency);
    }

    #[test]
    fn stored_verdicts_are_judged_again() {
        let (run, mut records) = example::volley();
        let told = records.iter().map(|record| record.verdict.clone()).collect::<Vec<_>>();
        for record in &mut records {
            record.verdict = Some(verdict(Limit::Proxy, "as rules once were".to_owned()));
        }
        judge_again(&run, &mut records);
        assert_eq!(records.iter().map(|record| record.verdict.clone()).collect::<Vec<_>>(), told);
    }
}
