//! Compares the generators of a cluster, because merged numbers hide a slow one. The trial gets the worst verdict.

use study::WarningKind;
use study::record::{Agent, Limit, Link, Measurement, Node, Outcome, Record, Role, Verdict};

use crate::censored_latency::Latency;
use crate::enum_words_and_lists::all_of;
use crate::findings::{AgentFinding, Estimate, MedianRange, Row, Warning};
use crate::group_by_key::{distinct, grouped};
use crate::label;
use crate::load_bottleneck::{self, BUSY};
use crate::number::{percent, quantity};
use crate::trial_position_and_values::Kept;

/// Ratio of two generators' values up to which the generators are considered equal.
const FACTOR: f64 = 1.25;
/// Share of the time, from 0 to 1. A generator lacks CPU time if the share in which it waited for a CPU is more than
/// `FACTOR` times this share, and more than `FACTOR` times the share of any other generator.
const LACKED_CPU: f64 = 0.2;
/// Half-width of a generator's interval, in standard errors. Generators with overlapping intervals count as equal.
const ERRORS: f64 = 3.0;
/// Confidence level of an interval of `ERRORS` standard errors on each side.
const LEVEL: f64 = 0.997_300_203_936_740;
/// Share of a link's maximum receive rate, from 0 to 1, above which the link counts as full.
const FULL: f64 = 0.8;
/// Multiple of a link's assumed capacity from which a load shows that the link is faster than assumed.
const AS_WIDE: f64 = 1.1;
/// Share of the other links' maximum receive rate, from 0 to 1, below which a link counts as slow.
const SLOW_LINK: f64 = 0.1;
/// Minimum number of retransmitted segments for a link to count as lossy.
const LOST_LEAST: u64 = 10;
/// Minimum ratio of a lossy link's retransmissions to the other links' retransmissions.
const LOST_TIMES: f64 = 10.0;
/// Delay after the first generator's start, as a fraction of a window, above which a generator is late.
const LATE: f64 = 0.1;
const UNTOLD: &str = "another path, or a slow machine";
/// Kinds of errors that either the server or the network path can cause.
const OF_PATH: [&str; 8] =
    ["timeout", "connect-timeout", "reset", "refused", "closed", "closed-between", "truncated", "os"];

/// Sets the verdict of each of [`Record::agents`], unless the trial failed. `nodes` are the run's machines.
pub(crate) fn judge_agents(record: &mut Record, nodes: &[Node]) {
    let judged = judged(record, nodes);
    record.agents.iter_mut().zip(judged).for_each(|(agent, (verdict, _))| agent.verdict = Some(verdict));
}

/// Verdict of a generator, with the difference that causes its first reason, if any.
type Judged = (Verdict, Option<Difference>);

fn judged(record: &Record, nodes: &[Node]) -> Vec<Judged> {
    if record.measurement().is_none() {
        return Vec::new();
    }
    let of = |(agent, found): (&Agent, Option<Difference>)| {
        let mut verdict = load_bottleneck::of_agent(&agent.measurement, record);
        let found = found.filter(|found| found.limit.is_some());
        if let Some(Difference { limit: Some(limit), what, cause, .. }) = &found {
            verdict.limited_by = *limit;
            verdict.reasons.insert(0, format!("{what}: {cause}"));
        }
        (verdict, found)
    };
    record.agents.iter().zip(differences(&record.agents, nodes)).map(of).collect()
}

pub(crate) fn worst(mut of_all: Verdict, record: &Record, nodes: &[Node]) -> Verdict {
    if record.agents.is_empty() {
        return of_all;
    }
    let order = [Limit::Shared, Limit::Network, Limit::Generator];
    let rank = |limit: Limit| order.iter().position(|known| *known == limit);
    let badness = |(_, (verdict, found)): &(&Agent, Judged)| (found.is_some(), rank(verdict.limited_by));
    let is_worse = |found: &(&Agent, Judged)| {
        let (differs, own) = badness(found);
        // At equal rank, the verdict that names a generator is more precise.
        differs || own.is_some() && own >= rank(of_all.limited_by)
    };
    // Of equally bad generators, the first is reported.
    let worst = record.agents.iter().zip(judged(record, nodes)).rev().filter(is_worse).max_by_key(badness);
    if let Some((agent, (mut verdict, found))) = worst {
        let is_named = found.is_none_or(|found| found.is_named);
        if let Some(first) = verdict.reasons.first_mut().filter(|_| is_named) {
            *first = format!("{}: {first}", agent.node);
        }
        return verdict;
    }
    let full = full_link(record, nodes).filter(|_| rank(of_all.limited_by) < rank(Limit::Network));
    if let Some(full) = full {
        of_all.limited_by = Limit::Network;
        of_all.reasons.insert(0, full);
    } else if of_all.limited_by == Limit::Subject && is_path_unknown(record, nodes) {
        of_all.reasons.push("the path to the server was not measured".to_owned());
    }
    of_all
}

/// Returns the verdict on a load of several machines, the results of its generators, and the texts of warnings.
pub(crate) fn of_load(measurement: &Measurement, agents: &[Agent]) -> (Verdict, Vec<AgentFinding>, Vec<String>) {
    let outcome = Outcome::Measured(measurement.clone());
    let mut record = Record { outcome, agents: agents.to_vec(), ..Record::default() };
    judge_agents(&mut record, &[]);
    let verdict = worst(load_bottleneck::judge_load(measurement), &record, &[]);
    let warnings = warnings(&record).into_iter().map(|warning| warning.text);
    (verdict, over_trials(&[&record]), warnings.collect())
}

/// Whether an unmeasured path may be the limit: the server was not busy, and the path can explain half of the errors.
pub(crate) fn is_path_unknown(record: &Record, nodes: &[Node]) -> bool {
    let is_busy = load_bottleneck::subject_busy(&record.subject).is_some_and(|share| share > BUSY);
    let was_wrong = record.measurement().is_some_and(|measurement| {
        let all = measurement.errors_total();
        let of_path = OF_PATH.iter().filter_map(|kind| measurement.errors.get(*kind));
        all > 0 && of_path.fold(0u64, |sum, count| sum.saturating_add(*count)) < all / 2
    });
    let is_measured = record.agents.iter().all(|agent| link(agent, nodes).is_some());
    !record.agents.is_empty() && !is_measured && !is_busy && !was_wrong
}

fn link<'a>(agent: &Agent, nodes: &'a [Node]) -> Option<&'a Link> {
    nodes.iter().find(|node| node.name == agent.node)?.link.as_ref()
}

fn received_per_s(measurement: &Measurement) -> f64 {
    measurement.received_bytes as f64 * 1e9 / (measurement.duration_ns as f64).max(1.0)
}

/// Bytes on the wire for `payload` bytes: each frame of up to 1,448 B adds 66 B of Ethernet, IP and TCP headers.
fn on_wire(payload: f64, pieces: f64) -> f64 {
    payload + 66.0 * pieces.max(payload / 1_448.0)
}

fn of_rate(part: f64, whole: f64) -> String {
    let (divisor, unit) = crate::number::scale("bytes/s", whole);
    format!("{:.2} of {:.2} {unit}", part / divisor, whole / divisor)
}

/// Explains which link limited the load although no generator differs; `None` if no link did. The path's capacity is
/// the generators' joint rate before the trials, or else the interface's speed, or else the fastest generator's rate.
fn full_link(record: &Record, nodes: &[Node]) -> Option<String> {
    if load_bottleneck::subject_busy(&record.subject).is_some_and(|share| share > BUSY) {
        return None;
    }
    let links = record.agents.iter().map(|agent| link(agent, nodes)).collect::<Option<Vec<_>>>()?;
    let able = links.iter().map(|link| link.receive_bytes_per_s).filter(|able| *able > 0.0).collect::<Vec<_>>();
    let moved = record.agents.iter().map(|agent| received_per_s(&agent.measurement)).sum::<f64>();
    let all = able.iter().sum::<f64>();
    if all > 0.0 && moved > FULL * all {
        return Some(format!("the generators' links were full: {}", of_rate(moved, all)));
    }
    // A nominal speed proves nothing: virtual interfaces report 10 Gbit/s.
    if let Some(together) = links.iter().map(|link| link.receive_together_bytes_per_s).sum::<Option<f64>>() {
        let pieces = |part: &Measurement| part.requests as f64 * 1e9 / (part.duration_ns as f64).max(1.0);
        let pieces = record.agents.iter().map(|agent| pieces(&agent.measurement)).sum::<f64>();
        // One generator may exceed `together`, because many connections need longer to reach full speed.
        let able = able.iter().copied().fold(together, f64::max);
        let (moved, able) = (on_wire(moved, pieces), on_wire(able, 0.0));
        // Clearly more traffic than the probe measured shows that something other than the path limited the probe.
        let is_full = (FULL * able..AS_WIDE * able).contains(&moved);
        let rates = of_rate(moved, able);
        return is_full.then(|| format!("the path to the server was full: {rates} that it carried before the trials"));
    }
    let subject = nodes.iter().find(|node| node.role == Role::Subject)?;
    let speed = subject.interface.as_ref().and_then(|interface| interface.speed_mbit_per_s);
    if let Some(speed) = speed.map(|mbit| mbit as f64 * 125_000.0).filter(|speed| *speed > 0.0) {
        return (moved > FULL * speed).then(|| format!("the server's link was full: {}", of_rate(moved, speed)));
    }
    let widest = able.iter().copied().fold(0.0, f64::max);
    let is_as_wide = record.agents.len() > 1 && (FULL * widest..AS_WIDE * widest).contains(&moved) && widest > 0.0;
    let received = format!("the generators together received {}", of_rate(moved, widest));
    is_as_wide.then(|| format!("{received}, as much as one generator can receive: the server's link was full"))
}

fn quantile(measurement: &Measurement, q: f64) -> Option<Estimate> {
    let latency = Latency::of(measurement)?;
    let point = latency.estimate().quantile(q)?.value;
    let interval = latency.answered.quantile_interval(q, LEVEL, latency.answered.len()).ok()?;
    Some(Estimate { point, ..interval })
}

/// Responses per intended request in an open loop, or per client and second in a closed loop.
fn answered(measurement: &Measurement) -> Option<Estimate> {
    let seconds = measurement.duration_ns as f64 / 1e9;
    let asked = match measurement.offered_per_s {
        Some(offered) => offered * seconds,
        None => seconds * f64::from(measurement.clients) * f64::from(measurement.pipeline),
    };
    let requests = measurement.requests as f64;
    let all = Estimate::around(requests, ERRORS * requests.sqrt(), LEVEL, measurement.requests);
    (asked.is_finite() && asked > 0.0).then(|| all.map(|requests| requests / asked))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    P50,
    P99,
    Answered,
}

impl Measure {
    fn of(self, measurement: &Measurement) -> Option<Estimate> {
        match self {
            Measure::P50 => quantile(measurement, 0.5),
            Measure::P99 => quantile(measurement, 0.99),
            Measure::Answered => answered(measurement),
        }
    }

    fn without(self, value: Estimate, ns: f64, measurement: &Measurement) -> Estimate {
        match (self, measurement.offered_per_s) {
            (Measure::P50 | Measure::P99, _) => value.map(|value| value - ns),
            (Measure::Answered, None) => {
                let faster = 1.0 / (1.0 - (value.point * ns / 1e9).min(0.999));
                value.map(|value| value * faster)
            }
            (Measure::Answered, Some(_)) => value,
        }
    }

    fn is_slower(self, ratio: f64) -> bool {
        (ratio > 1.0) == (self != Measure::Answered)
    }

    /// Returns the start of a sentence, the name and the unit of the measure.
    fn words(self, is_open: bool) -> (&'static str, &'static str, &'static str) {
        match self {
            Measure::P50 => ("its p50 is", "p50", "ns"),
            Measure::P99 => ("its p99 is", "p99", "ns"),
            Measure::Answered if is_open => ("its share of requests with a response is", "answered share", ""),
            Measure::Answered => ("its rate per client is", "rate per client", "1/s"),
        }
    }
}

fn others(agents: &[Agent], at: usize) -> impl Iterator<Item = &Agent> {
    agents.iter().enumerate().filter(move |(other, _)| *other != at).map(|(_, agent)| agent)
}

fn median(values: &[Estimate]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.point.total_cmp(&b.point));
    let (low, high) = (sorted.get((sorted.len().checked_sub(1)?) / 2)?, sorted.get(sorted.len() / 2)?);
    let point = low.point.midpoint(high.point);
    Some(Estimate { point, low: low.low.min(high.low), high: low.high.max(high.high), ..*low })
}

/// Returns the ratio of the value at `at` to the median of the others. `None` unless the value differs from the median
/// of all values, or from the only other value, by more than `FACTOR` and beyond chance.
fn outlying_ratio(values: &[Option<Estimate>], at: usize) -> Option<f64> {
    let own = values[at]?;
    let others = values.iter().enumerate().filter(|(other, _)| *other != at).filter_map(|(_, value)| *value);
    let others = others.collect::<Vec<_>>();
    let of_others = median(&others)?;
    let all = others.iter().copied().chain([own]).collect::<Vec<_>>();
    let of_all = if all.len() == 2 { of_others } else { median(&all)? };
    let is_alike = (1.0 / FACTOR..=FACTOR).contains(&(own.point / of_all.point));
    let is_chance = own.low <= of_all.high && of_all.low <= own.high;
    (!is_alike && !is_chance).then_some(own.point / of_others.point)
}

#[derive(Clone)]
struct Difference {
    measure: Measure,
    ratio: f64,
    what: String,
    cause: String,
    /// Limit that the difference indicates; `None` if the generator is not slower or is only farther away.
    limit: Option<Limit>,
    /// Whether reports name this generator. Neither of two generators is named unless the cause is known.
    is_named: bool,
}

fn differences(agents: &[Agent], nodes: &[Node]) -> Vec<Option<Difference>> {
    let round_trips = agents.iter().map(|agent| Some(link(agent, nodes)?.round_trip_ns_p50)).collect::<Vec<_>>();
    let shortest = round_trips.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    // A round trip longer than the shortest one can explain a slow generator, but does not mark a generator as slow.
    let further = round_trips.iter().map(|ns| ns.map_or(0.0, |ns| (ns - shortest).max(0.0))).collect::<Vec<_>>();
    let found = [Measure::P50, Measure::Answered, Measure::P99].map(|measure| {
        let values = agents.iter().map(|agent| measure.of(&agent.measurement)).collect::<Vec<_>>();
        let nearer = |at: usize| Some(measure.without(values[at]?, further[at], &agents[at].measurement));
        let nearer = (0..agents.len()).map(nearer).collect::<Vec<_>>();
        let both = |at| Some((measure, outlying_ratio(&values, at)?, outlying_ratio(&nearer, at)));
        (0..agents.len()).map(both).collect::<Vec<_>>()
    });
    let trip = |at: usize| {
        let own = quantity(round_trips[at].unwrap_or(0.0), "ns");
        format!("round trip {own}, the shortest {}", quantity(shortest, "ns"))
    };
    // Distance is the main cause if it explains more than half of the difference between the medians.
    let p50 = |agent: &Agent| Some(quantile(&agent.measurement, 0.5)?.point);
    let is_mostly_further = |at: usize| {
        let usual = MedianRange::of(others(agents, at).filter_map(p50));
        p50(&agents[at]).zip(usual).is_some_and(|(own, usual)| further[at] > (own - usual.median).max(0.0) / 2.0)
    };
    let of_agent = |at: usize| {
        let lossy = lossy(agents, at);
        // A few lost segments may slow p99 but not the median, so p99 counts only if segments were lost.
        let measures = found.iter().map(|of_measure| of_measure[at]);
        let seen = measures.flatten().filter(|(measure, ..)| *measure != Measure::P99 || lossy.is_some());
        let seen = seen.collect::<Vec<_>>();
        let is_slower = |(measure, ratio, nearer): &(Measure, f64, Option<f64>)| {
            measure.is_slower(*ratio) && nearer.is_some_and(|nearer| measure.is_slower(nearer))
        };
        let slower = seen.iter().copied().find(is_slower);
        let (measure, ratio, nearer) = slower.or_else(|| seen.first().copied())?;
        let (cause, limit) = match slower {
            Some(_) => cause(agents, at, nodes, lossy, Some(trip(at)).filter(|_| is_mostly_further(at))),
            None if nearer.is_none() => (trip(at), None),
            None => (UNTOLD.to_owned(), None),
        };
        let is_named = agents.len() > 2 || cause != UNTOLD;
        let what = if is_named { difference_text(agents, at, measure, ratio) } else { pair(agents, measure)? };
        Some(Difference { measure, ratio, what, cause, limit, is_named })
    };
    let differences = (0..agents.len()).map(of_agent).collect::<Vec<_>>();
    // If a generator is slow, those that look fast next to it are not reported.
    let is_slow = |found: &Difference| found.measure.is_slower(found.ratio);
    let is_any_slow = differences.iter().flatten().any(is_slow);
    differences.into_iter().map(|found| found.filter(|found| is_slow(found) || !is_any_slow)).collect()
}

type Cause = (String, Option<Limit>);

fn cause(agents: &[Agent], at: usize, nodes: &[Node], lossy: Option<String>, further: Option<String>) -> Cause {
    let measurement = &agents[at].measurement;
    let is_occupied = load_bottleneck::is_occupied(measurement);
    // A problem that most other generators share explains the difference only if nothing else does.
    let alike = others(agents, at).filter(|agent| load_bottleneck::is_occupied(&agent.measurement));
    // The link of a machine that lacks CPU time looks slow to any probe.
    let waited = |agent: &Agent| load_bottleneck::generator_waiting(&agent.measurement);
    let is_starved = waited(&agents[at]) > others(agents, at).map(waited).fold(LACKED_CPU, f64::max) * FACTOR;
    let is_alone = is_starved || alike.count() * 2 < agents.len() - 1;
    let occupied = || ("it had no CPU time to spare".to_owned(), Some(Limit::Generator));
    if is_occupied && is_alone {
        return occupied();
    }
    let able = |agent: &Agent| link(agent, nodes).map(|link| link.receive_bytes_per_s);
    let usual = MedianRange::of(others(agents, at).filter_map(able)).map_or(0.0, |usual| usual.median);
    let moved = received_per_s(measurement);
    let text = match able(&agents[at]) {
        Some(able) if moved > FULL * able => format!("its link was full, {}", of_rate(moved, able)),
        _ if further.is_some() => further.unwrap_or_default(),
        Some(able) if able < SLOW_LINK * usual => {
            let [able, usual] = [able, usual].map(|rate| quantity(rate, "bytes/s"));
            format!("its link is slow: {able}, while others receive {usual}")
        }
        _ if lossy.is_some() => lossy.unwrap_or_default(),
        _ if is_occupied => return occupied(),
        _ => UNTOLD.to_owned(),
    };
    (text, Some(Limit::Network))
}

fn lossy(agents: &[Agent], at: usize) -> Option<String> {
    let own = agents[at].network.retransmits;
    let usual = MedianRange::of(others(agents, at).map(|agent| agent.network.retransmits as f64))?.median;
    (own >= LOST_LEAST && own as f64 > LOST_TIMES * usual)
        .then(|| format!("its link loses segments, {own} retransmitted, {usual:.0} elsewhere"))
}

fn difference_text(agents: &[Agent], at: usize, measure: Measure, ratio: f64) -> String {
    let others = others(agents, at).map(|agent| agent.node.as_str()).collect::<Vec<_>>();
    let others = if others.len() <= 3 { all_of(&others, "and") } else { "the others".to_owned() };
    let is_open = agents[at].measurement.offered_per_s.is_some();
    format!("{} {} that of {others}", measure.words(is_open).0, times(ratio))
}

fn times(ratio: f64) -> String {
    match ratio {
        ..1.0 => format!("{} of", percent(ratio)),
        ..9.95 => format!("{ratio:.1} times"),
        _ => format!("{ratio:.0} times"),
    }
}

fn pair(agents: &[Agent], measure: Measure) -> Option<String> {
    let names = agents.iter().map(|agent| agent.node.as_str()).collect::<Vec<_>>();
    let (_, what, unit) = measure.words(agents.first()?.measurement.offered_per_s.is_some());
    let shown = |agent: &Agent| {
        let value = measure.of(&agent.measurement)?.point;
        Some(if unit.is_empty() { percent(value) } else { quantity(value, unit) })
    };
    let values = agents.iter().map(shown).collect::<Option<Vec<_>>>()?;
    Some(format!("{} differ, {what} {}", all_of(&names, "and"), all_of(&values, "and")))
}

pub(crate) fn warnings(record: &Record) -> Vec<study::Warning> {
    let mut warnings = Vec::new();
    let began = |agent: &Agent| {
        let ns = agent.measurement.began_ns;
        (ns > 0).then_some((ns as f64, agent.clock.error_ns as f64))
    };
    let first = record.agents.iter().filter_map(began).min_by(|a, b| a.0.total_cmp(&b.0));
    for agent in &record.agents {
        let (clock, name) = (&agent.clock, &agent.node);
        if let (Some(after), Some(error)) = (clock.after_offset_ns, clock.after_error_ns) {
            let moved = (after as f64 - clock.offset_ns as f64).abs();
            let errors = clock.error_ns as f64 + error as f64;
            if moved > errors {
                let [by, errors] = [moved, errors].map(|ns| quantity(ns, "ns"));
                let text = format!("{name}: its clock moved by {by} during the trial, more than the error of {errors}");
                warnings.push(WarningKind::AgentClock.says(text));
            }
        }
        let (Some((own, error)), Some((earliest, its_error))) = (began(agent), first) else { continue };
        let late = own - earliest;
        if late - error - its_error > LATE * agent.measurement.window_ns as f64 {
            let text = format!("{name}: it began measuring {} after the first generator", quantity(late, "ns"));
            warnings.push(WarningKind::AgentClock.says(text));
        }
    }
    warnings
}

pub(crate) fn differ<'a>(trials: impl Iterator<Item = &'a [Agent]>, nodes: &[Node]) -> Vec<Warning> {
    let of_trials = trials.filter(|agents| !agents.is_empty());
    let of_trials = of_trials.map(|agents| (agents, differences(agents, nodes))).collect::<Vec<_>>();
    let Some((first, _)) = of_trials.first() else { return Vec::new() };
    let all = of_trials.len();
    let line = |(at, agent): (usize, &Agent)| {
        let of_agent = |(agents, found): &(&[Agent], Vec<Option<Difference>>)| {
            let at = agents.iter().position(|other| other.node == agent.node)?;
            found[at].clone()
        };
        let found = of_trials.iter().filter_map(of_agent).collect::<Vec<_>>();
        let kind = found.first()?;
        let (count, of) = (found.len(), crate::number::count(all as u64, "trial"));
        let ratios = found.iter().filter(|one| one.measure == kind.measure).map(|one| one.ratio);
        let what = match MedianRange::of(ratios).filter(|_| kind.is_named) {
            Some(ratio) => format!("{}: {}", agent.node, difference_text(first, at, kind.measure, ratio.median)),
            None => kind.what.clone(),
        };
        let text = format!("{what} in {count} of {of}: {}", kind.cause);
        Some(Warning::new(WarningKind::GeneratorsDiffer, text, count))
    };
    distinct(first.iter().enumerate().filter_map(line))
}

pub(crate) fn differ_in_report(rows: &[&Row], trials: &[Kept], nodes: &[Node]) -> Vec<Warning> {
    let told = || rows.iter().flat_map(|row| row.warnings.iter().map(move |warning| (*row, warning)));
    let told = || told().filter(|(_, warning)| warning.kind == WarningKind::GeneratorsDiffer);
    let about = |line: Warning| {
        let who = line.text.split_inclusive(' ').next().unwrap_or_default();
        let of_rows = told().filter(|(_, warning)| warning.text.starts_with(who));
        let details = of_rows.map(|(row, warning)| label::about(row, &warning.text)).collect::<Vec<_>>();
        if rows.len() < 2 { line } else { Warning { details, ..line } }
    };
    let measured = trials.iter().filter(|trial| trial.clock.is_some()).map(|trial| trial.agents.as_slice());
    differ(measured, nodes).into_iter().map(about).collect()
}

pub(crate) fn over_trials(records: &[&Record]) -> Vec<AgentFinding> {
    let measured = records.iter().filter(|record| record.measurement().is_some()).collect::<Vec<_>>();
    let Some(first) = measured.first() else { return Vec::new() };
    let of_node = |node: &String| {
        let of_trial = |record: &&&Record| {
            let all = crate::number::total(record.agents.iter().map(|agent| agent.measurement.requests));
            Some((record.agents.iter().find(|agent| agent.node == *node)?.clone(), all))
        };
        let trials = measured.iter().filter_map(of_trial).collect::<Vec<_>>();
        let over = |value: &dyn Fn(&Measurement, u64) -> Option<f64>| {
            MedianRange::of(trials.iter().filter_map(|(agent, all)| value(&agent.measurement, *all)))
        };
        let at = |q: f64| {
            move |measurement: &Measurement, _: u64| {
                let latency = Latency::of(measurement)?;
                Some(latency.quantile(&latency.estimate(), q, 0.95)?.value)
            }
        };
        let mut limits = std::collections::BTreeMap::new();
        for verdict in trials.iter().filter_map(|(agent, _)| agent.verdict.as_ref()) {
            *limits.entry(verdict.limited_by).or_insert(0) += 1;
        }
        let [latency_p50_ns, latency_p99_ns] = [0.5, 0.99].map(|q| over(&at(q)));
        let rate_per_s = over(&|measurement, _| Some(measurement.rate_per_s()));
        let share = over(&|measurement, all| (all > 0).then(|| measurement.requests as f64 / all as f64));
        let busy = over(&|measurement, _| load_bottleneck::generator_busy(measurement));
        let (node, trials) = (node.clone(), trials.len());
        AgentFinding { node, trials, latency_p50_ns, latency_p99_ns, rate_per_s, share, busy, limits }
    };
    first.agents.iter().map(|agent| of_node(&agent.node)).collect()
}

pub(crate) fn cluster(nodes: &[Node], trials: &[Kept]) -> String {
    let groups = grouped(nodes.iter().map(|node| ((node.role, node.host.cpus.len()), node.name.as_str())));
    let group = |(at, ((role, cpus), names)): (usize, &((Role, usize), Vec<&str>))| {
        let unit = if at == 0 { if *cpus == 1 { " CPU" } else { " CPUs" } } else { "" };
        let each = if names.len() > 1 { " each" } else { "" };
        format!("{} {} ({cpus}{unit}{each})", names.join(" "), role.word())
    };
    let mut parts = vec![groups.iter().enumerate().map(group).collect::<Vec<_>>().join(", ")];
    let links = nodes.iter().filter_map(|node| node.link.as_ref());
    if let Some(trips) = MedianRange::of(links.map(|link| link.round_trip_ns_p50)) {
        let (divisor, unit) = crate::number::scale("ns", trips.max);
        let [shortest, longest] = [trips.min, trips.max].map(|ns| format!("{:.1}", ns / divisor));
        parts.push(format!("round trips {shortest} to {longest} {unit}"));
    }
    let clocks = trials.iter().flat_map(|trial| &trial.agents).map(|agent| &agent.clock);
    let error = clocks.flat_map(|clock| [Some(clock.error_ns), clock.after_error_ns]).flatten().max();
    parts.extend(
        error.filter(|error| *error > 0).map(|error| format!("clocks within {}", quantity(error as f64, "ns"))),
    );
    if nodes.is_empty() { String::new() } else { parts.join("; ") }
}

#[cfg(test)]
mod tests {
    use stats::{Distribution, Rng};
    use study::record::{Histogram, Interface, Outcome};

    use super::*;
    use crate::example;
    use crate::verdict;

    const SECONDS: u64 = 3;

    /// A measurement of 3 s with latencies from `law`, in ns, and idle CPUs.
    fn part(requests: u64, law: &Distribution, seed: u64) -> Measurement {
        let records = example::volley().1;
        let Outcome::Measured(mut part) = records.into_iter().next().unwrap().outcome else { unreachable!() };
        let (mut rng, mut latency) = (Rng::stream(seed, 0), stats::Histogram::with_precision(6));
        (0..requests).for_each(|_| latency.record(law.sample(&mut rng) as u64));
        (part.service, part.requests) = (Histogram::from(&latency), requests);
        (part.clients, part.duration_ns, part.windows) = (8, SECONDS * 1_000_000_000, Vec::new());
        let worker = &mut part.workers[0];
        (worker.wall_ns, worker.cpu_ns, worker.run_queue_ns) = (part.duration_ns, part.duration_ns / 5, None);
        (part.received_bytes, part.unfinished) = (requests * 10_000, 0);
        part
    }

    /// An open loop of three generators, each with 500 requests per second. Requests wait `waited_ns` for a connection.
    fn open(requests: u64, law: &Distribution, waited_ns: u64, seed: u64) -> Measurement {
        let mut part = part(requests, law, seed);
        part.offered_per_s = Some(1_500.0);
        part.response = Some(part.service.clone());
        part.lag_thread = Some(example::waited(&vec![1_000; requests as usize]));
        part.lag_connection = Some(example::waited(&vec![waited_ns; requests as usize]));
        part
    }

    fn around(median: f64) -> Distribution {
        Distribution::Lognormal { median, sigma: 0.3 }
    }

    fn trial(parts: &[Measurement]) -> Record {
        let mut record = example::volley().1.swap_remove(0);
        (record.subject.user_ns, record.subject.system_ns) = (0, record.subject.measured_ns / 20);
        (record.outcome, record.agents) =
            (Outcome::Measured(study::pool_measurements::pool(parts).unwrap()), example::agents(parts));
        record
    }

    fn nodes(links: &[(f64, f64)]) -> Vec<Node> {
        let mut nodes = example::cluster().0.nodes;
        nodes.truncate(1 + links.len());
        for (node, &(receive_bytes_per_s, round_trip_ns_p50)) in nodes[1..].iter_mut().zip(links) {
            node.link = Some(Link { receive_bytes_per_s, round_trip_ns_p50, receive_together_bytes_per_s: None });
        }
        nodes
    }

    fn judge(record: &Record, nodes: &[Node]) -> (Limit, String) {
        let verdict = verdict::judge(record, None, nodes).0.unwrap();
        (verdict.limited_by, verdict.reasons[0].clone())
    }

    fn merged(record: &Record) -> (Limit, String) {
        judge(&Record { agents: Vec::new(), ..record.clone() }, &[])
    }

    fn says(limit: Limit, reason: &str) -> (Limit, String) {
        (limit, reason.to_owned())
    }

    /// Measurements of the faults in this test and the next three are in docs/method/bottleneck.md.
    #[test]
    fn longer_path_of_one_generator_is_the_limit() {
        let far = Distribution::Lognormal { median: 2_125_000.0, sigma: 0.01 };
        let parts =
            [open(1_500, &around(28_000.0), 0, 1), open(1_500, &far, 0, 2), open(1_500, &around(29_000.0), 0, 3)];
        let record = trial(&parts);
        assert_eq!(merged(&record), says(Limit::Neither, "100 % of the offered load was answered"));
        let (limit, reason) = judge(&record, &[]);
        assert_eq!(limit, Limit::Network);
        assert!(
            reason.starts_with("l2: its p50 is 7")
                && reason.ends_with("times that of l1 and l3: another path, or a slow machine"),
            "{reason}"
        );
        let known = nodes(&[(1.2e8, 41_000.0), (1.2e8, 2_121_000.0), (1.2e8, 43_000.0)]);
        assert_eq!(judge(&record, &known).0, Limit::Neither, "it is only further away");
        let [line] = differ([&record.agents[..]; 2].into_iter(), &known).try_into().unwrap();
        assert!(line.text.ends_with(" in 2 of 2 trials: round trip 2.12 ms, the shortest 41.0 µs"), "{line:?}");
        assert_eq!(line.trials, 2);
    }

    /// The probe's round trip explains most, but not all, of the difference, because the path slows down under load.
    #[test]
    fn probe_that_underestimates_distance_is_still_the_cause() {
        let lag = |mut part: Measurement| {
            part.lag_thread = Some(example::waited(&vec![90_000; part.requests as usize]));
            part
        };
        let (near, far) = (around(70_000.0), Distribution::Lognormal { median: 4_820_000.0, sigma: 0.05 });
        let parts = [lag(open(1_500, &near, 0, 1)), open(1_500, &far, 0, 2), lag(open(1_500, &near, 0, 3))];
        let known = nodes(&[(1.9e9, 20_700.0), (1.2e8, 4_100_000.0), (1.9e9, 21_000.0)]);
        let record = trial(&parts);
        let expected = [Limit::Generator, Limit::Network, Limit::Generator];
        assert_eq!(limits(&record, &known), expected, "all generators send late");
        let (limit, reason) = judge(&record, &known);
        assert_eq!(limit, Limit::Network, "{reason}");
        let mut late = record.clone();
        *late.agents[1].measurement = lag(*late.agents[1].measurement.clone());
        assert_eq!(judge(&late, &known), (limit, reason.clone()));
        assert!(
            reason.starts_with("l2: its p50 is ") && reason.ends_with(": round trip 4.10 ms, the shortest 20.7 µs"),
            "{reason}"
        );
        let [line] = differ([&record.agents[..]].into_iter(), &known).try_into().unwrap();
        assert!(line.text.starts_with("l2: "), "the others are not fast: {line:?}");
    }

    #[test]
    fn slow_link_limits_an_open_loop() {
        let slow = open(703, &around(68_300_000.0), 900_000_000, 2);
        let record = trial(&[open(1_491, &around(53_000.0), 0, 1), slow, open(1_493, &around(52_000.0), 0, 3)]);
        let server = "only 82 % of the offered load was answered, no connection was free: it was slow to respond";
        assert_eq!(merged(&record), says(Limit::Subject, server));
        let known = nodes(&[(1.2e8, 41_000.0), (2.38e6, 43_000.0), (1.2e8, 42_000.0)]);
        let (limit, reason) = judge(&record, &known);
        assert_eq!(limit, Limit::Network);
        assert!(
            reason.starts_with("l2: its p50 is 1") && reason.ends_with(": its link was full, 2.23 of 2.27 MiB/s"),
            "{reason}"
        );
        assert_eq!(limits(&record, &known), [Limit::Neither, Limit::Network, Limit::Neither]);
        assert_eq!(judge(&record, &[]).0, Limit::Network);
    }

    #[test]
    fn slow_link_limits_a_closed_loop() {
        let (one, two, three) = (around(174_000.0), around(34_100_000.0), around(164_000.0));
        let record = trial(&[part(77_675, &one, 1), part(703, &two, 2), part(81_435, &three, 3)]);
        assert_eq!(merged(&record).0, Limit::Latency);
        let p50 = Latency::of(record.measurement().unwrap()).unwrap().estimate().quantile(0.5).unwrap().value;
        assert!(p50 < 175_000.0, "a third of the clients is hidden: {p50}");
        let known = nodes(&[(1.2e9, 41_000.0), (2.38e6, 43_000.0), (1.2e9, 42_000.0)]);
        let (limit, reason) = judge(&record, &known);
        assert_eq!(limit, Limit::Network);
        assert!(reason.ends_with(": its link was full, 2.23 of 2.27 MiB/s"), "{reason}");
        let slow = nodes(&[(1.2e9, 41_000.0), (1e7, 43_000.0), (1.2e9, 42_000.0)]);
        let reason = judge(&record, &slow).1;
        assert!(reason.ends_with(": its link is slow: 9.54 MiB/s, while others receive 1.118 GiB/s"), "{reason}");
        let mut lossy = record.clone();
        (lossy.agents[1].network.retransmits, lossy.agents[2].network.retransmits) = (812, 3);
        let reason = judge(&lossy, &[]).1;
        assert!(reason.ends_with(": its link loses segments, 812 retransmitted, 2 elsewhere"), "{reason}");
    }

    fn limits(record: &Record, nodes: &[Node]) -> Vec<Limit> {
        judged(record, nodes).iter().map(|(verdict, _)| verdict.limited_by).collect()
    }

    fn healthy() -> [Measurement; 3] {
        [1, 2, 3].map(|seed| part(20_000, &around(1_000_000.0), seed))
    }

    #[test]
    fn healthy_generators_keep_the_verdict() {
        let record = trial(&healthy());
        let known = nodes(&[(1.2e9, 38_000.0), (1.2e9, 52_000.0), (1.1e9, 41_000.0)]);
        assert_eq!(judge(&record, &known), merged(&record));
        assert_eq!(judge(&record, &[]), merged(&record));
        assert_eq!(limits(&record, &known), [Limit::Latency; 3]);
        assert_eq!((differ([&record.agents[..]].into_iter(), &known), warnings(&record)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn starved_generator_is_the_limit() {
        let mut parts = healthy();
        parts[2] = part(11_000, &around(1_800_000.0), 4);
        parts[2].workers[0].run_queue_ns = Some(parts[2].duration_ns * 7 / 10);
        let record = trial(&parts);
        let reason = "l3: its p50 is 1.8 times that of l1 and l2: it had no CPU time to spare";
        assert_eq!(judge(&record, &[]), says(Limit::Generator, reason));
        let [line] = differ([&record.agents[..]].into_iter(), &[]).try_into().unwrap();
        let text = "l3: its p50 is 1.8 times that of l1 and l2 in 1 of 1 trial: it had no CPU time to spare";
        assert_eq!(line.text, text);
    }

    /// A generator that lacks CPU time appears to have a slow link. The other generators share the server's machine.
    #[test]
    fn most_starved_generator_is_the_limit() {
        let mut parts = healthy();
        parts[2] = part(3_000, &around(740_000_000.0), 4);
        for (part, share) in parts.iter_mut().zip([3, 2, 9]) {
            part.workers[0].run_queue_ns = Some(part.duration_ns * share / 10);
            part.workers[0].cpu_ns = part.duration_ns * (10 - share) / 10;
        }
        let record = trial(&parts);
        let slow = nodes(&[(1.5e9, 40_000.0), (1.5e9, 40_000.0), (1.6e7, 200_000.0)]);
        let (limit, reason) = judge(&record, &slow);
        assert_eq!(limit, Limit::Generator, "{reason}");
        assert!(reason.starts_with("l3: its p50 is ") && reason.ends_with(": it had no CPU time to spare"), "{reason}");
    }

    #[test]
    fn two_differing_generators_are_not_blamed() {
        let record = trial(&[part(20_000, &around(1_000_000.0), 1), part(9_000, &around(2_000_000.0), 2)]);
        let (limit, reason) = judge(&record, &[]);
        assert_eq!(limit, Limit::Network);
        assert!(
            reason.starts_with("l1 and l2 differ, p50 ") && reason.ends_with(": another path, or a slow machine"),
            "{reason}"
        );
        assert_eq!(merged(&record).0, Limit::Latency);
        assert_eq!(differ([&record.agents[..]].into_iter(), &[]).len(), 1, "a pair is reported once");
        let known = nodes(&[(1.2e9, 41_000.0), (3e7, 43_000.0)]);
        assert!(judge(&record, &known).1.starts_with("l2: its p50 is 2.0 times that of l1: its link was full"));
    }

    #[test]
    fn full_links_of_all_generators_are_the_limit() {
        let record = trial(&healthy());
        let moved = 3.0 * 20_000.0 * 10_000.0 / SECONDS as f64;
        let all = |share: f64| nodes(&[(moved / 3.0 / share, 40_000.0); 3]);
        assert_eq!(judge(&record, &all(0.7)).0, Limit::Latency);
        let text = "the generators' links were full: 190.73 of 200.77 MiB/s";
        assert_eq!(judge(&record, &all(0.95)), says(Limit::Network, text));
        let one = nodes(&[(moved / 0.95, 40_000.0); 3]);
        let text = "the generators together received 190.73 of 200.77 MiB/s, as much as one generator can receive: the server's link was full";
        assert_eq!(judge(&record, &one), says(Limit::Network, text));
        let mut wide = one.clone();
        wide[0].interface = Some(Interface { speed_mbit_per_s: Some(10_000), ..Interface::default() });
        assert_eq!(judge(&record, &wide).0, Limit::Latency, "the server's is wider");
        wide[0].interface = Some(Interface { speed_mbit_per_s: Some(1_700), ..Interface::default() });
        assert_eq!(judge(&record, &wide).1, "the server's link was full: 190.73 of 202.66 MiB/s");
        let mut busy = record.clone();
        busy.subject.user_ns = busy.subject.measured_ns;
        assert_eq!(judge(&busy, &one).0, Limit::Subject);
    }

    /// The link carries 50 Mbit/s although its interface reports 10 Gbit/s, and a single generator can fill it.
    #[test]
    fn throttled_server_link_is_the_limit_in_both_loops() {
        let able = 6.0e6;
        let mut known = nodes(&[(able, 40_000.0); 3]);
        known[0].interface = Some(Interface { speed_mbit_per_s: Some(10_000), ..Interface::default() });
        for node in &mut known[1..] {
            node.link.as_mut().unwrap().receive_together_bytes_per_s = Some(able / 3.0);
        }
        // 570 responses of 10 kB from each of 3 generators in 3 s: 5.7 MB/s in total.
        let slow = around(42_000_000.0);
        let closed = trial(&[1, 2, 3].map(|seed| part(570, &slow, seed)));
        let opened = trial(&[1, 2, 3].map(|seed| open(570, &slow, 900_000_000, seed)));
        let text = "the path to the server was full: 5.68 of 5.98 MiB/s that it carried before the trials";
        for (name, record, before) in [("closed", closed, Limit::Latency), ("open", opened, Limit::Subject)] {
            assert_eq!(merged(&record).0, before, "{name}");
            assert_eq!(judge(&record, &known), says(Limit::Network, text), "{name}");
            let mut wide = known.clone();
            for node in &mut wide[1..] {
                node.link.as_mut().unwrap().receive_together_bytes_per_s = Some(1e8);
            }
            assert_eq!(judge(&record, &wide).0, before, "{name}: the path carries far more");
            let mut short = known.clone();
            for node in &mut short[1..] {
                node.link.as_mut().unwrap().receive_together_bytes_per_s = Some(1.6e6);
            }
            assert_eq!(judge(&record, &short).0, Limit::Network, "{name}: one alone received more than all together");
            for node in &mut short[1..] {
                node.link.as_mut().unwrap().receive_bytes_per_s = 2.7e6;
            }
            assert_eq!(judge(&record, &short).0, before, "{name}: the probe was slow for another reason");
        }
        // Headers of small responses fill the link.
        let mut small = trial(&[1, 2, 3].map(|seed| part(80_000, &around(300_000.0), seed)));
        for agent in &mut small.agents {
            agent.measurement.received_bytes = 80_000 * 4;
        }
        assert_eq!(judge(&small, &known).0, Limit::Network, "320 kB/s of payload, 5.3 MB/s of headers");
    }

    #[test]
    fn unmeasured_path_is_reported() {
        let slow = |seed| open(1_000, &around(68_300_000.0), 900_000_000, seed);
        let record = trial(&[slow(1), slow(2), slow(3)]);
        let known = nodes(&[(1.2e9, 41_000.0); 3]);
        let limit = |record: &Record, nodes: &[Node]| {
            let verdict = verdict::judge(record, None, nodes).0.unwrap();
            let is_said = verdict.reasons.iter().any(|reason| reason == "the path to the server was not measured");
            assert_eq!(is_said, is_path_unknown(record, nodes), "{:?}", verdict.reasons);
            (verdict.limited_by, is_said)
        };
        assert_eq!(limit(&record, &[]), (Limit::Subject, true));
        assert_eq!(limit(&record, &known), (Limit::Subject, false));
        let mut busy = record.clone();
        busy.subject.user_ns = busy.subject.measured_ns;
        assert_eq!(limit(&busy, &[]), (Limit::Subject, false));
        let mut wrong = record.clone();
        let Outcome::Measured(all) = &mut wrong.outcome else { unreachable!() };
        all.errors = [("status".to_owned(), 1_500)].into();
        assert_eq!(limit(&wrong, &[]), (Limit::Subject, false), "its responses came over the path");
    }

    #[test]
    fn search_step_limited_by_a_link_is_not_judged() {
        let (run, mut records) = example::capacity();
        let said = |records: &[Record]| {
            let found = crate::analyze(&run, records);
            found.searches().next().map(|(_, search)| search.sentence.clone()).unwrap()
        };
        let before = said(&records);
        assert!(before.contains("fails at"), "{before}");
        for record in &mut records {
            record.verdict.as_mut().unwrap().limited_by = Limit::Network;
        }
        let after = said(&records);
        assert!(after.contains("network-bound from ") && !after.contains("fails at"), "{after}");
    }

    #[test]
    fn warns_of_clock_drift_and_late_generators() {
        let mut record = trial(&healthy());
        for agent in &mut record.agents {
            agent.measurement.began_ns = 50_000_000_000;
            // Machines booted at different times have unrelated clocks.
            let clock = &mut agent.clock;
            clock.offset_ns *= 1000;
            clock.after_offset_ns = Some(clock.offset_ns);
        }
        assert_eq!(warnings(&record), []);
        record.agents[1].measurement.began_ns += 3_000_000;
        let clock = &mut record.agents[2].clock;
        clock.after_offset_ns = Some(clock.offset_ns + 1_000_000);
        let texts = warnings(&record).into_iter().map(|warning| warning.text).collect::<Vec<_>>();
        assert_eq!(
            texts,
            [
                "l2: it began measuring 3.00 ms after the first generator",
                "l3: its clock moved by 1.000 ms during the trial, more than the error of 45.0 µs"
            ]
        );
    }

    #[test]
    fn equal_generators_rarely_differ() {
        for law in [
            Distribution::Exponential { mean: 1e6 },
            Distribution::Lognormal { median: 1e6, sigma: 1.5 },
            Distribution::Bimodal { low: 1e5, high: 1e6, high_share: 0.5 },
        ] {
            let mut record = trial(&healthy());
            let mut rng = Rng::stream(7, 0);
            let mut wrong = 0;
            for _ in 0..1_000 {
                for agent in &mut record.agents {
                    let mut latency = stats::Histogram::with_precision(6);
                    (0..2_000).for_each(|_| latency.record(law.sample(&mut rng) as u64));
                    agent.measurement.service = Histogram::from(&latency);
                    agent.measurement.requests = (2_000.0 + 2_000.0f64.sqrt() * rng.normal()) as u64;
                }
                wrong += usize::from(differences(&record.agents, &[]).iter().any(Option::is_some));
            }
            assert!(wrong <= 10, "{law:?}: {wrong} of 1000");
        }
    }
}
