//! Runs of one study over time, and two runs side by side. Only a single run of both revisions can confirm a change.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use study::Metric;
use study::plan::Point;
use study::record::{IdlePolicy, Record, Run};

use crate::analyze::{Analysis, analyze};
use crate::findings::{
    Findings, HISTORY_VERSION, History, HistoryPoint, HistoryRun, Machine, MachineHistory, MedianRange, MetricFinding,
    PointValue, Row, RunHead, SideBySide, SidePoint, Step,
};
use crate::gate::MAIN_METRICS;
use crate::number::{count, estimate};
use crate::printable_record::visible;
use crate::suggest_compare::{self, Suggestion};

/// Factors and levels, as strings, of the selected design points; an empty list selects all.
pub type Levels = Vec<(String, String)>;

/// Means and intervals of a run for every metric. A store caches them so that a history need not read any trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Digest {
    probe_ns: Option<f64>,
    rows: Vec<DigestRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct DigestRow {
    point: usize,
    label: String,
    idle: IdlePolicy,
    values: BTreeMap<String, PointValue>,
}

impl Digest {
    /// Creates the digest of the trials that `analysis` has read. Skips comparisons, which are most of the work.
    pub fn of_trials(analysis: Analysis<'_>) -> Self {
        Self::new(&analysis.combine(false))
    }

    /// Extracts the digest of a run from its findings.
    pub fn new(findings: &Findings) -> Self {
        let row = |row: &Row| {
            let values = row.metrics.keys().filter_map(|metric| Some((metric.clone(), value(row, metric, None)?)));
            Some(DigestRow { point: row.point, label: row.label.clone(), idle: row.idle?, values: values.collect() })
        };
        Self { probe_ns: probe_ns(findings), rows: findings.rows.iter().filter_map(row).collect() }
    }
}

/// A run of a history.
pub struct Entry<'a> {
    /// The stored run.
    pub run: &'a Run,
    /// Digest of the run's trials.
    pub digest: Digest,
}

impl Entry<'_> {
    fn points(&self) -> impl Iterator<Item = (&DigestRow, &Point)> {
        self.digest.rows.iter().filter_map(|row| Some((row, self.run.plan.points.get(row.point)?)))
    }

    fn point(&self, of: &HistoryPoint) -> Option<(&DigestRow, &Point)> {
        self.points().find(|(row, point)| row.idle == of.idle && point.factors == of.factors)
    }

    fn value(&self, of: &HistoryPoint, metric: &Metric) -> Option<PointValue> {
        let (row, point) = self.point(of)?;
        let revision = suggest_compare::revision_of(point).map(str::to_owned);
        Some(PointValue { revision, ..row.values.get(metric.name)?.clone() })
    }

    /// Configuration of a point. Only points with equal configurations are compared.
    fn configuration(&self, of: &HistoryPoint) -> Option<Point> {
        // Neither the worktree nor whether this machine can run the point is part of the configuration.
        Some(Point { unrunnable: None, ..suggest_compare::without_worktree(self.point(of)?.1) })
    }
}

/// Groups the runs of `study` by machine, earliest first, with the points that match one of `wanted` (all if empty).
pub fn history(study: &str, metric: &'static Metric, entries: Vec<Entry<'_>>, wanted: &[Levels]) -> History {
    let mut machines = crate::group_by_key::grouped(entries.into_iter().map(|entry| (machine(entry.run), entry)));
    for (_, runs) in &mut machines {
        runs.sort_by(|a, b| (&a.run.started, &a.run.id).cmp(&(&b.run.started, &b.run.id)));
    }
    let latest = |(_, runs): &(Machine, Vec<Entry<'_>>)| runs.last().map(|entry| entry.run.started.clone());
    machines.sort_by(|a, b| latest(b).cmp(&latest(a)).then_with(|| a.0.cmp(&b.0)));
    let machines = machines.into_iter().map(|(machine, runs)| of_machine(machine, &runs, metric, wanted)).collect();
    History { version: HISTORY_VERSION, study: study.to_owned(), metric, machines }
}

fn of_machine(machine: Machine, entries: &[Entry<'_>], metric: &Metric, wanted: &[Levels]) -> MachineHistory {
    let probes = MedianRange::of(entries.iter().filter_map(|entry| entry.digest.probe_ns));
    let probe_ns_median = probes.map(|probes| probes.median);
    let speed = |head: &RunHead| Some(probe_ns_median? / head.probe_ns? - 1.0);
    let heads = entries.iter().map(|entry| head(entry.run, entry.digest.probe_ns));
    let runs = heads.map(|head| HistoryRun { speed: speed(&head), head }).collect::<Vec<_>>();
    let mut points = Vec::<HistoryPoint>::new();
    let planned = entries.iter().rev().flat_map(Entry::points);
    for (row, planned) in planned.filter(|(_, point)| is_wanted(point, wanted)) {
        let (label, factors) = (row.label.clone(), planned.factors.clone());
        let mut point = HistoryPoint { label, factors, idle: row.idle, values: Vec::new() };
        if points.iter().all(|known| known.idle != point.idle || known.factors != point.factors) {
            point.values = entries.iter().map(|entry| entry.value(&point, metric)).collect();
            points.push(point);
        }
    }
    points.retain(|point| point.values.iter().any(Option::is_some));
    let steps = points.iter().enumerate().flat_map(|(at, point)| steps(entries, &runs, at, point, metric)).collect();
    MachineHistory { machine, probe_ns_median, runs, points, steps }
}

fn is_wanted(point: &Point, wanted: &[Levels]) -> bool {
    let has = |(name, level): &(String, String)| point.factors.get(name).is_some_and(|own| own.to_string() == *level);
    wanted.is_empty() || wanted.iter().any(|levels| levels.iter().all(has))
}

fn steps(entries: &[Entry<'_>], runs: &[HistoryRun], index: usize, point: &HistoryPoint, metric: &Metric) -> Vec<Step> {
    let sound = |at: usize| {
        let value = point.values[at].as_ref()?;
        Some((value, value.estimate.as_ref()?, entries[at].configuration(point)?))
    };
    let step = |to: usize| {
        let (value, now, planned) = sound(to)?;
        let is_like = |from: &usize| {
            runs[*from].head.quick == runs[to].head.quick && sound(*from).is_some_and(|(.., before)| before == planned)
        };
        let from = (0..to).rev().find(is_like)?;
        let (earlier, before, _) = sound(from)?;
        let (old, new) = (earlier.revision_in(&runs[from].head)?, value.revision_in(&runs[to].head)?);
        if old == new || (now.low <= before.high && before.low <= now.high) {
            return None;
        }
        let quick = if runs[to].head.quick { "; quick runs, whose intervals have no stated confidence" } else { "" };
        let probes = runs[from].head.probe_ns.zip(runs[to].head.probe_ns);
        let speed = probes.map(|(before, now)| speed_words(before / now - 1.0));
        let speed = speed.map_or(String::new(), |speed| format!("; the machine was {speed} by the probe"));
        let values = format!("{} at {old}, {} at {new}", estimate(before, metric.unit), estimate(now, metric.unit));
        let marks = value.marks.iter().chain(&earlier.marks).map(|mark| mark.text()).collect::<BTreeSet<_>>();
        let marks = marks.into_iter().collect::<Vec<_>>().join(", ");
        let marks = if marks.is_empty() { marks } else { format!("; not of the server alone ({marks})") };
        let Suggestion { command, note } = suggest_compare::revisions(&planned, old, new);
        let sentence = format!("{}: {} {values}{speed}{marks}{quick}", point.label, metric.noun);
        Some(Step { point: index, from, to, sentence, command, note })
    };
    (0..runs.len()).filter_map(step).collect()
}

const SAME_SPEED: &str = "as fast";

/// Formats a relative speed to a tenth of a percent, the precision of the median of many probes.
pub fn speed_words(speed: f64) -> String {
    match speed {
        speed if speed.abs() < 0.0005 => SAME_SPEED.to_owned(),
        speed if speed < 0.0 => format!("{:.1} % slower", -speed * 100.0),
        speed => format!("{:.1} % faster", speed * 100.0),
    }
}

fn machine(run: &Run) -> Machine {
    let nodes = run.nodes.iter().map(|node| {
        let (role, host, cpus) = (node.role.word(), &node.host, count(node.host.cpus.len() as u64, "CPU"));
        format!("{role} {} ({}, {cpus}, {})", node.name, host.cpu_model, host.kernel)
    });
    let nodes = nodes.collect::<Vec<_>>().join(", ");
    let [name, cpu_model, kernel, cluster] =
        [&run.host.name, &run.host.cpu_model, &run.host.kernel, &nodes].map(|text| visible(text).into_owned());
    Machine { name, cpu_model, cpus: run.host.cpus.len() as u64, kernel, cluster }
}

fn probe_ns(findings: &Findings) -> Option<f64> {
    findings.probes.as_ref().map(|probed| probed.cpu_ns_median).filter(|ns| *ns > 0.0)
}

fn head(run: &Run, probe_ns: Option<f64>) -> RunHead {
    let [id, study, started, profile] =
        [&run.id, &run.plan.study, &run.started, &run.profile].map(|text| visible(text).into_owned());
    let revision = suggest_compare::revision(run).map(|revision| visible(revision).into_owned());
    let (quick, state, imported) = (run.plan.trials.quick, run.state, !run.imported.is_empty());
    RunHead { run: id, study, started, revision, profile, quick, state, imported, probe_ns }
}

fn value(row: &Row, metric: &str, revision: Option<String>) -> Option<PointValue> {
    let &MetricFinding { mean, estimate, at_least, .. } = row.metrics.get(metric)?;
    Some(PointValue { mean: mean?, estimate, at_least, n: row.n as u64, marks: row.marks.clone(), revision })
}

const NO_VERDICT: &str = "No verdict: separate runs of one and the same server differ by more than their intervals in \
                          16 to 64 % of cases (simulated, one design point), because a machine changes its speed \
                          between them.";

/// Puts two stored runs side by side, without a verdict (see [`SideBySide::reasons`]). Their studies may differ.
pub fn side_by_side(runs: &[(Run, Vec<Record>); 2]) -> SideBySide {
    let findings_of = runs.each_ref().map(|(run, records)| analyze(run, records));
    let machines = [0, 1].map(|at| machine(&runs[at].0));
    let heads = [0, 1].map(|at| head(&runs[at].0, probe_ns(&findings_of[at])));
    let own = findings_of.iter().map(|findings| findings.metric.as_str());
    let names = MAIN_METRICS.into_iter().chain(own).collect::<Vec<_>>();
    let known = |name: &str| names.contains(&name) && findings_of.iter().any(|of| of.metric_info(name).is_some());
    let metrics = study::METRICS.iter().filter(|metric| known(metric.name)).collect::<Vec<_>>();
    let mut points = Vec::new();
    let is_same = |a: &Row, b: &Row| a.factors == b.factors && a.idle.zip(b.idle).is_none_or(|(a, b)| a == b);
    for (at, findings) in findings_of.iter().enumerate() {
        for row in &findings.rows {
            let rows = findings_of.each_ref().map(|of| of.rows.iter().find(|other| is_same(other, row)));
            if at == 1 && rows[0].is_some() {
                continue;
            }
            let value_of = |metric: &&Metric| {
                let values = [0, 1].map(|at| {
                    let revision = suggest_compare::revision_of(&runs[at].0.plan.points[rows[at]?.point]);
                    value(rows[at]?, metric.name, revision.map(str::to_owned))
                });
                (metric.name.to_owned(), values)
            };
            let label = crate::label::label(&runs[at].0.plan.factors, &row.factors);
            points.push(SidePoint { label, values: metrics.iter().map(value_of).collect() });
        }
    }
    let Suggestion { command, note } = decide(runs, &machines, &heads);
    let mut reasons = vec![NO_VERDICT.to_owned()];
    let is_same_model = machines[0].cpu_model == machines[1].cpu_model;
    if let ([Some(first), Some(second)], true) = (heads.each_ref().map(|head| head.probe_ns), is_same_model) {
        let speed = speed_words(first / second - 1.0);
        let than = if speed == SAME_SPEED { "as" } else { "than" };
        let [first, second] = heads.each_ref().map(|head| &head.run);
        reasons.push(format!("By the probe, the machine of {second} was {speed} {than} that of {first}."));
    }
    let is_quick = heads.iter().any(|head| head.quick);
    reasons.extend(is_quick.then(|| "Intervals of quick runs have no stated confidence.".to_owned()));
    let headline = headline(&heads, &machines);
    SideBySide { version: HISTORY_VERSION, headline, runs: heads, machines, metrics, points, reasons, command, note }
}

fn headline(heads: &[RunHead; 2], machines: &[Machine; 2]) -> String {
    let [first, second] = heads;
    let machines =
        (machines[0] != machines[1]).then(|| format!("DIFFERENT MACHINES: {} and {}", machines[0], machines[1]));
    let studies =
        (first.study != second.study).then(|| format!("different studies: {} and {}", first.study, second.study));
    let revision = |head: &RunHead| head.revision.clone().unwrap_or_else(|| "unknown".to_owned());
    let revisions = match (&first.revision, &second.revision) {
        (Some(one), Some(other)) if one == other => format!("one revision, {one}"),
        _ => format!("revisions {} and {}", revision(first), revision(second)),
    };
    let parts = [machines, studies, Some(revisions)].into_iter().flatten().collect::<Vec<_>>().join("; ");
    format!("{} and {}, side by side; {parts}", first.run, second.run)
}

fn decide(runs: &[(Run, Vec<Record>); 2], machines: &[Machine; 2], heads: &[RunHead; 2]) -> Suggestion {
    let [(first, _), (second, _)] = runs;
    if machines[0] != machines[1] {
        return Suggestion::none("only runs on one machine can be compared: run both there");
    }
    let mut pairs = first.plan.points.iter().filter_map(|point| {
        let is_same = |other: &&Point| other.factors == point.factors && other.load == point.load;
        Some((point, second.plan.points.iter().find(is_same)?))
    });
    let is_of_study = first.plan.study == second.plan.study;
    let (Some(base), Some(head)) = (first.plan.points.first(), second.plan.points.first()) else {
        return Suggestion::none("");
    };
    match pairs.next() {
        Some((base, head)) if base.subject.process.command != head.subject.process.command => {
            suggest_compare::commands(base, head)
        }
        Some((base, head)) => match (
            suggest_compare::revision_of(base).or(heads[0].revision.as_deref()),
            suggest_compare::revision_of(head).or(heads[1].revision.as_deref()),
        ) {
            (Some(old), Some(new)) if old == new && !old.ends_with("-dirty") => {
                Suggestion::none("both measure the same revision: any difference is due to the machine or to chance")
            }
            (Some(old), Some(new)) => suggest_compare::revisions(base, old, new),
            _ => Suggestion::none(
                "the revision of one run is unknown: keep both servers and compare them with `quintain compare --base 'OLD -p {port}' --head 'NEW -p {port}'`",
            ),
        },
        None if is_of_study && base.factors.keys().eq(head.factors.keys()) && base.factors != head.factors => {
            suggest_compare::points(&first.plan, base, head)
        }
        None => Suggestion::none("they have no design point and load in common"),
    }
}

#[cfg(test)]
mod tests;
