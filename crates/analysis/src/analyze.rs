//! Analyzes a run: builds the findings from its records.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use stats::growth_in_trials::Series;
use study::WarningKind;
use study::plan::Level;
use study::record::{IdlePolicy, NetworkCounters, Record, Run, RunState};

use crate::findings::{
    FINDINGS_VERSION, Factor, Findings, HostedFinding, InsideTrial, OverRequests, Row, RowOperations, Warning,
};
use crate::group_by_key::distinct;
use crate::trial_position_and_values::Kept;
use crate::{
    answer, cluster_generator_verdicts, comparisons, containers, cpu_profile, effects, gate, load_description,
    merge_warnings, method_text, miss_ratio, number, operations, printable_record, proxy_overhead, request_trends, row,
    run_conditions, scalability, steadiness_and_outliers, stop_rule, trial_timeline, value,
};

/// Analyzes a run. `records` may be in any order; records of points outside the plan cause only a warning.
pub fn analyze(run: &Run, records: &[Record]) -> Findings {
    let mut points = BTreeMap::<usize, Vec<&Record>>::new();
    records.iter().for_each(|record| points.entry(record.point).or_default().push(record));
    let mut analysis = Analysis::new(run);
    points.values().for_each(|records| analysis.add(records));
    analysis.finish()
}

/// Analysis of a run that receives one design point at a time, for runs that do not fit into memory.
pub struct Analysis<'a> {
    run: &'a Run,
    parts: BTreeMap<(usize, Option<bool>), (Row, Part)>,
    trials: Vec<Kept>,
    strange: usize,
}

struct Part {
    halves: Series,
    hosted: Vec<HostedFinding>,
    operations: Vec<RowOperations>,
    inside: Option<InsideTrial>,
    over_requests: Vec<(OverRequests, request_trends::Trials)>,
}

impl<'a> Analysis<'a> {
    /// Starts the analysis of a run without trials.
    pub fn new(run: &'a Run) -> Self {
        Self { run, parts: BTreeMap::new(), trials: Vec::new(), strange: 0 }
    }

    /// Adds all trials of one design point, in any order.
    pub fn add<R: Borrow<Record>>(&mut self, records: &[R]) {
        let records = records.iter().map(|record| printable_record::record(record.borrow())).collect::<Vec<_>>();
        let mut records = records.iter().map(|record| &**record).collect::<Vec<_>>();
        records.sort_by_key(|record| record.order);
        let Some(point) = records.first().map(|record| record.point) else { return };
        debug_assert!(records.iter().all(|record| record.point == point), "trials of one design point");
        if point >= self.run.plan.points.len() {
            self.strange += records.len();
            return;
        }
        let mut known = BTreeMap::new();
        // A point measured under both idle policies has two rows; their trials are never mixed.
        for idle in [IdlePolicy::Machine, IdlePolicy::Spin] {
            let of_row = records.iter().copied().filter(|record| record.idle == idle).collect::<Vec<_>>();
            if !of_row.is_empty() {
                let (row, part) = row_and_part(self.run, point, Some(idle), &of_row);
                let trials = row.trials.iter();
                known.extend(trials.map(|trial| (trial.block, (trial.values.clone(), trial.at_least.clone()))));
                self.parts.insert((point, Some(idle == IdlePolicy::Spin)), (row, part));
            }
        }
        let level = value::level(&self.run.plan.trials);
        let kept = records.into_iter().map(|record| {
            let values = known.remove(&record.block);
            Kept::new(record, values.unwrap_or_else(|| value::values_and_bounds(record, level)))
        });
        self.trials.extend(kept);
    }

    /// Adds the design points of another analysis of this run, so that threads can share the work.
    pub fn merge(&mut self, other: Self) {
        self.parts.extend(other.parts);
        self.trials.extend(other.trials);
        self.strange += other.strange;
    }

    /// Combines all trials into findings.
    pub fn finish(self) -> Findings {
        self.combine(true)
    }

    pub(crate) fn combine(self, is_whole: bool) -> Findings {
        let Self { run, mut parts, mut trials, strange } = self;
        let plan = &run.plan;
        let level = value::level(&plan.trials);
        trials.sort_by_key(|trial| trial.order);
        let of_trials = trials.iter().map(Kept::trial).collect::<Vec<_>>();
        for point in 0..plan.points.len() {
            if parts.range((point, None)..=(point, Some(true))).next().is_none() {
                parts.insert((point, None), row_and_part(run, point, None, &[]));
            }
        }
        let (mut rows, parts): (Vec<_>, Vec<_>) = parts.into_values().unzip();
        let ended = stop_rule::stop_reason(plan, &of_trials);
        for row in rows.iter_mut().filter(|row| row.search.is_none() && row.idle.is_some()) {
            row.stop_reason.clone_from(&ended);
        }
        pool(run, &mut rows);
        if is_whole {
            let halves = parts.iter().map(|part| part.halves.clone()).collect::<Vec<_>>();
            steadiness_and_outliers::steady(&mut rows, &halves, 1.0 - level);
            steadiness_and_outliers::outliers(&mut rows, 1.0 - level);
        }
        let probed = trials.iter().filter_map(|trial| trial.probed.clone()).collect::<Vec<_>>();
        let sum = |of: fn(&NetworkCounters) -> u64| number::total(trials.iter().map(|trial| of(&trial.network)));
        let mut findings = Findings {
            version: FINDINGS_VERSION,
            run: run.id.clone(),
            started: run.started.clone(),
            study: plan.study.clone(),
            question: plan.question.clone(),
            asked: plan.asked().to_string(),
            quick: plan.trials.quick,
            profile: run.profile.clone(),
            level,
            metric: plan.trials.metric.clone(),
            command: run.command.clone(),
            quintain: run.quintain.clone(),
            revision: run.revision.clone(),
            commit: run.commit.clone(),
            imported: run.imported.clone(),
            seed: plan.seed,
            study_text: plan.text.clone(),
            factors: plan.factors.iter().map(|name| factor(run, name)).collect(),
            unfinished: stop_rule::unfinished(run, trials.len()),
            load: load_description::describe_load(plan),
            figures: plan.figures.clone(),
            tables: plan.tables.clone(),
            network: NetworkCounters {
                retransmits: sum(|network| network.retransmits),
                listen_overflows: sum(|network| network.listen_overflows),
                listen_drops: sum(|network| network.listen_drops),
            },
            machine: run.host.clone(),
            cluster: cluster_generator_verdicts::cluster(&run.nodes, &trials),
            nodes: run.nodes.clone(),
            calibration: run.calibration.clone(),
            builds: run.builds.iter().map(printable_record::build).collect(),
            doctor: run.doctor.clone(),
            ..Findings::default()
        };
        let is_hosted = trials.iter().any(|trial| trial.is_hosted);
        let mut series = Vec::new();
        for (row, part) in rows.into_iter().zip(parts) {
            if plan.comes_first(row.point) {
                findings.capacities.push(row);
                continue;
            }
            let index = findings.rows.len();
            findings.hosted.extend(part.hosted.into_iter().filter(|_| is_hosted));
            let operations = part.operations.into_iter().map(|found| RowOperations { row: index, ..found });
            findings.operations.extend(operations);
            findings.inside.extend(part.inside.map(|found| InsideTrial { row: index, ..found }));
            let trends = part.over_requests.into_iter();
            series.extend(trends.map(|(found, trials)| (OverRequests { row: index, ..found }, trials)));
            findings.rows.push(row);
        }
        findings.inside.truncate(trial_timeline::ROWS_MAX);
        let present =
            findings.all_rows().flat_map(|row| row.metrics.keys().map(String::as_str)).collect::<BTreeSet<_>>();
        findings.metrics = study::METRICS.iter().filter(|metric| present.contains(metric.name)).collect();
        let started = trials.iter().map(|trial| trial.started.as_str()).collect::<Vec<_>>();
        findings.scope = run_conditions::scope(&started, &findings.rows, level);
        findings.method = method_text::paragraphs(run, &trials, !probed.is_empty(), findings.scope.as_ref());
        findings.probes = run_conditions::probes(probed);
        (findings.cpu_profiles, findings.profile_differences) = cpu_profile::cpu_profiles(run, &findings.rows);
        for (row, how) in comparisons::failing(&findings, plan) {
            findings.rows[row].more_errors = Some(how);
        }
        if !is_whole {
            return findings;
        }
        findings.scalability = scalability::scalability(run, &findings.factors, &findings.rows);
        findings.states = run_conditions::states(&plan.trials.metric, &findings.rows, plan.seed);
        (findings.comparisons, findings.trends) = comparisons::comparisons(&findings, plan);
        let is_over = matches!(run.state, None | Some(RunState::Complete | RunState::OutOfTime));
        let test = |gate| gate::gate(&findings, plan, gate, &of_trials, is_over);
        findings.gate = plan.gate.as_ref().map(test);
        findings.effects = effects::effects(&findings, &plan.effects);
        findings.miss_ratios = miss_ratio::miss_ratios(&findings, run, &trials);
        findings.added = proxy_overhead::added(&findings);
        findings.over_requests = request_trends::over_requests(&findings, series);
        let all = findings.all_rows().collect::<Vec<_>>();
        let differ = cluster_generator_verdicts::differ_in_report(&all, &trials, &run.nodes);
        findings.warnings = warnings(&findings, strange, differ);
        findings.answer = answer::answer(&findings, plan);
        findings
    }
}

fn row_and_part(run: &Run, point: usize, idle: Option<IdlePolicy>, records: &[&Record]) -> (Row, Part) {
    let row = row::row(run, point, idle, records);
    let halves = steadiness_and_outliers::halves(&row, records);
    let hosted = containers::hosted(&row, records);
    let operations = operations::operations(records, value::level(&run.plan.trials));
    let inside = trial_timeline::inside(&row, &run.plan.trials.metric, records);
    let over_requests = request_trends::of_row(&run.plan, records);
    (row, Part { halves, hosted, operations, inside, over_requests })
}

/// Widens intervals by the pooled scatter of all rows, since an interval can be narrow by luck or miss rare kinds of
/// starts. Excludes counts and shares, whose scatter depends on their size.
fn pool(run: &Run, rows: &mut [Row]) {
    let level = value::level(&run.plan.trials);
    for metric in study::METRICS.iter().filter(|metric| metric.unit != "1") {
        let with_values = rows.iter_mut().filter(|row| !row.is_marked() && row.search.is_none()).map(|row| {
            let values = row.trials.iter().filter_map(|trial| trial.known(metric.name)).collect::<Vec<_>>();
            (row, values)
        });
        let with_values = with_values.collect::<Vec<_>>();
        let all = with_values.iter().map(|(_, values)| values.as_slice());
        let Some(pooled) = stats::stop_rule::pooled_relative_sd(all) else { continue };
        for (row, values) in with_values {
            let shown = stats::stop_rule::shown(&values, pooled, level);
            let found = row.metrics.get_mut(metric.name).filter(|found| found.estimate.is_some());
            if let (Some(shown), Some(found)) = (shown, found) {
                found.estimate = Some(shown);
                found.target_met = row::target_met(&run.plan.trials, metric.name, &shown);
            }
        }
    }
}

fn factor(run: &Run, name: &str) -> Factor {
    let mut levels = distinct(run.plan.points.iter().filter_map(|point| point.factors.get(name)).cloned());
    let numbers = levels.iter().map(Level::as_f64).collect::<Option<Vec<_>>>();
    if numbers.is_some() {
        levels.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
    }
    Factor { name: name.to_owned(), numeric: numbers.is_some() && !levels.is_empty(), levels }
}

fn fewer_processors(findings: &Findings) -> Option<String> {
    let fewer = findings.rows.iter().filter_map(|row| Some((row, row.cpus_wanted?))).collect::<Vec<_>>();
    let (_, most) = fewer.iter().max_by_key(|(_, wanted)| *wanted)?;
    let given = fewer.iter().map(|(row, _)| row.cpus).max().unwrap_or(0);
    let points = number::count(fewer.len() as u64, "design point");
    let cpus = number::count(u64::from(given), "CPU");
    Some(format!("this machine leaves {cpus} for the server, fewer than {points} would use (up to {most})"))
}

fn warnings(findings: &Findings, strange: usize, differ: Vec<Warning>) -> Vec<Warning> {
    let policies = findings.all_rows().filter_map(|row| row.idle).collect::<Vec<_>>();
    let both = "trials ran under two idle policies: each policy has its own rows; do not compare them";
    let trials = number::count(strange as u64, "trial");
    let unplanned = format!("{trials} of design points that are not in the plan: excluded");
    let alarm = findings.states.as_ref().filter(|states| states.alarm);
    let found = [
        (WarningKind::IdlePolicies, policies.windows(2).any(|two| two[0] != two[1]).then(|| both.to_owned())),
        (WarningKind::StrangeTrials, Some(unplanned).filter(|_| strange > 0)),
        (WarningKind::States, alarm.map(|states| states.sentence.clone())),
        (WarningKind::Contended, findings.probes.as_ref().and_then(|probed| probed.warning.clone())),
        (WarningKind::FewerCpus, fewer_processors(findings)),
    ];
    let found = found.into_iter().filter_map(|(kind, text)| Some(Warning::new(kind, text?, 0)));
    let of_rows = merge_warnings::of_report(findings.all_rows()).into_iter();
    let of_rows = of_rows.filter(|warning| warning.kind != WarningKind::GeneratorsDiffer);
    found.chain(differ).chain(of_rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn one_row_per_point_in_plan_order() {
        let (run, mut records) = example::volley();
        let findings = analyze(&run, &records);
        assert_eq!(findings.rows.iter().map(|row| row.point).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
        records.reverse();
        assert_eq!(analyze(&run, &records), findings, "the order of the records does not matter");
    }

    #[test]
    fn lists_factors_and_metrics_that_occur() {
        let (run, records) = example::volley();
        let findings = analyze(&run, &records);
        let factors = findings.factors.iter().map(|factor| (factor.name.as_str(), factor.numeric, factor.levels.len()));
        assert_eq!(factors.collect::<Vec<_>>(), [("server", false, 3), ("cores", true, 2), ("clients", true, 2)]);
        let metrics = findings.metrics.iter().map(|metric| metric.name).collect::<Vec<_>>();
        let known = study::METRICS.iter().map(|metric| metric.name).filter(|name| metrics.contains(name));
        assert_eq!(metrics, known.collect::<Vec<_>>(), "in the order of the tables");
        assert!(metrics.contains(&"throughput") && !metrics.contains(&"hit_ratio"), "{metrics:?}");
        assert!(analyze(&run, &[]).metrics.is_empty());
    }

    #[test]
    fn idle_policies_are_not_mixed() {
        let (run, mut records) = example::volley();
        records.retain(|record| record.point == 0);
        records[4..].iter_mut().for_each(|record| record.idle = IdlePolicy::Spin);
        let findings = analyze(&run, &records);
        assert_eq!(findings.rows.len(), 13);
        let first = findings.rows[..2].iter().map(|row| (row.point, row.idle, row.n)).collect::<Vec<_>>();
        assert_eq!(first, [(0, Some(IdlePolicy::Machine), 4), (0, Some(IdlePolicy::Spin), 4)]);
        assert!(findings.warnings[0].text.starts_with("trials ran under two idle policies"));
    }

    #[test]
    fn warns_of_trials_of_unknown_points() {
        let (run, mut records) = example::volley();
        records[0].point = 99;
        assert_eq!(
            analyze(&run, &records).warnings[0].text,
            "1 trial of design points that are not in the plan: excluded"
        );
    }

    #[test]
    fn counters_are_summed() {
        let (run, mut records) = example::volley();
        records.iter_mut().take(3).for_each(|record| record.network.retransmits = 5);
        assert_eq!(analyze(&run, &records).network.retransmits, 15);
    }
}
