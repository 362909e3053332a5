//! Builds the rows of the findings from the trials of design points.

use std::collections::BTreeMap;

use study::WarningKind;
use study::plan::{Plan, SearchPlan, TrialRule};
use study::record::{BuildOutcome, FailureKind, IdlePolicy, Limit, Measurement, Node, Outcome, Record, Run};

use crate::censored_latency::Latency;
use crate::findings::{
    Estimate, FailureCount, LimitFinding, Mark, MetricFinding, Row, RowState, SearchFinding, TrialFinding, Warning,
};
use crate::label::{label, varied};
use crate::number::{count, total};
use crate::{
    cluster_generator_verdicts, hangs, merge_histograms, merge_warnings, printable_record, run_conditions, search,
    value,
};

/// Builds the row of a point from its trials under one idle policy, in execution order. The stop reason is set later.
pub(crate) fn row(run: &Run, point: usize, idle: Option<IdlePolicy>, records: &[&Record]) -> Row {
    let plan = &run.plan;
    let search = plan.points[point].load.search.as_ref().filter(|_| !records.is_empty());
    let search = search.map(|search| found(search, records, value::level(&plan.trials)));
    // Only a search's trials at the highest rate that the server sustains count. The others ran at a higher or a far
    // lower rate.
    let low_per_s = search.as_ref().and_then(|search| search.low).map(|end| end.rate_per_s);
    let is_at_low =
        |record: &Record| low_per_s.is_some() && record.step.is_some_and(|step| step.rate_per_s == low_per_s);
    let records = records.iter().copied().filter(|record| search.is_none() || is_at_low(record)).collect::<Vec<_>>();
    let measured = records.iter().filter(|record| record.measurement().is_some()).copied().collect::<Vec<_>>();
    let measurements = || measured.iter().filter_map(|record| record.measurement());
    let (mut latency, mut unreadable) = (None, Vec::new());
    let trials = records.iter().map(|record| {
        let (trial, answered) = trial(record, value::level(&plan.trials));
        match answered {
            Some(answered) => merge_histograms::merge_into(&mut latency, answered),
            None => unreadable.extend(record.measurement()),
        }
        trial
    });
    let trials = trials.collect::<Vec<_>>();
    let failures = failures(&records);
    let state = match &search {
        Some(search) if search.complete && search.low.is_some() => RowState::Measured,
        Some(search) => RowState::Partial(search.sentence.clone()),
        None => state(run, point, measured.len(), &failures),
    };
    let reason = state.reason().filter(|_| records.is_empty()).unwrap_or_default();
    let stop_reason = search.as_ref().map_or(reason, |search| &search.sentence).to_owned();
    let limited_by = limit(&measured, &run.nodes);
    let mut row = Row {
        point,
        label: label_of(plan, point),
        factors: plan.points[point].factors.clone(),
        cpus: plan.points[point].subject.cpus,
        cpus_wanted: plan.points[point].subject.cpus_wanted,
        idle,
        n: measured.len(),
        stop_reason,
        state,
        failures,
        metrics: metrics(run, &measured, &trials),
        marks: row_marks(limited_by.as_ref(), &trials),
        limited_by,
        agents: cluster_generator_verdicts::over_trials(&measured),
        search,
        clock: measurements().next().map(value::clock),
        latency: latency.map(|all| study::record::Histogram::from(&all)),
        censored: hangs::censored(measurements().filter_map(|measurement| measurement.censored.as_deref())),
        errors: sum(measurements().map(|measurement| &measurement.errors)),
        // Of equal keys, the last one stays, so the first trial comes last.
        error_examples: measurements().rev().flat_map(|measurement| measurement.error_examples.clone()).collect(),
        statuses: sum(measurements().map(|measurement| &measurement.statuses)),
        handshakes: total(measurements().filter_map(|measurement| measurement.handshake.as_ref()).map(|all| all.count)),
        handshakes_resumed: total(measurements().map(|measurement| measurement.resumed)),
        requests: total(measurements().map(|measurement| measurement.requests)),
        trials,
        steady: None,
        more_errors: None,
        warnings: Vec::new(),
    };
    row.warnings = warnings(&row, &records, &run.nodes);
    row.warnings.extend(unreadable_latency(&unreadable, records.len()));
    row
}

fn unreadable_latency(measurements: &[&Measurement], all: usize) -> Option<Warning> {
    let first = measurements.first()?;
    let why = stats::Histogram::try_from(first.latency()).err();
    let why = why.unwrap_or_else(|| "the waiting requests contradict each other".to_owned());
    let text = format!("no latency: the store is damaged: {why}{}", merge_warnings::of_trials(measurements.len(), all));
    Some(Warning::new(WarningKind::NotRead, text, measurements.len()))
}

fn found(search: &SearchPlan, records: &[&Record], level: f64) -> SearchFinding {
    let mut found = search::finding(search, records);
    found.steps.iter_mut().zip(records).for_each(|(step, record)| step.trial = Some(trial(record, level).0));
    found
}

fn label_of(plan: &Plan, point: usize) -> String {
    let levels = &plan.points[point].factors;
    let varied = varied(plan);
    let own = varied.iter().any(|name| levels.contains_key(name));
    match plan.comes_first(point) {
        true if own => format!("capacity of {}", label(&varied, levels)),
        true => "capacity".to_owned(),
        false => label(if own { &varied } else { &plan.factors }, levels),
    }
}

fn sum<'a, K: Ord + Clone + 'a>(counts: impl Iterator<Item = &'a BTreeMap<K, u64>>) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    for (kind, count) in counts.flatten().filter(|(_, count)| **count > 0) {
        let sum = sums.entry(kind.clone()).or_insert(0u64);
        *sum = sum.saturating_add(*count);
    }
    sums
}

fn trial(record: &Record, level: f64) -> (TrialFinding, Option<stats::Histogram>) {
    let limited_by = record.verdict.as_ref().map(|verdict| verdict.limited_by);
    let measured = record.measurement();
    let latency = measured.and_then(Latency::of);
    let (values, at_least) = value::values_of(record, latency.as_ref(), level);
    let hung = hangs::hung_trial(record).map(|_| Mark::Hung);
    let finding = TrialFinding {
        order: record.order,
        block: record.block,
        started: record.started.clone(),
        offered_per_s: measured.map_or_else(|| record.step?.rate_per_s, |measured| measured.offered_per_s),
        values,
        at_least,
        in_flight: measured.map_or(0, |measured| measured.unfinished),
        unsent: measured.map_or(0, |measured| measured.unsent),
        limited_by,
        marks: limited_by.and_then(Mark::of).into_iter().chain(hung).collect(),
        outlier_in: Vec::new(),
        contended: run_conditions::contended(record),
        failed: if let Outcome::Failed(failure) = &record.outcome { Some(failure.message.clone()) } else { None },
    };
    (finding, latency.map(|latency| latency.answered))
}

fn failures(records: &[&Record]) -> Vec<FailureCount> {
    let mut kinds = BTreeMap::<_, FailureCount>::new();
    for record in records {
        let Outcome::Failed(failure) = &record.outcome else { continue };
        let first = || FailureCount { kind: failure.kind, count: 0, message: failure.message.clone() };
        kinds.entry(failure.kind).or_insert_with(first).count += 1;
    }
    kinds.into_values().collect()
}

fn state(run: &Run, point: usize, measured: usize, failures: &[FailureCount]) -> RowState {
    let failed = failures.iter().map(|failure| failure.count).sum::<usize>();
    let why = failures.iter().map(|failure| failure.message.as_str()).collect::<Vec<_>>().join("; ");
    let min = run.plan.trials.min as usize;
    let mut builds = run.builds.iter().filter(|build| build.points.contains(&point));
    let not_built = builds.find(|build| !matches!(build.outcome, BuildOutcome::Ready));
    match (measured, failed) {
        (0, 0) if let Some(reason) = &run.plan.points[point].unrunnable => RowState::Unrunnable(reason.clone()),
        (0, 0) => match not_built.map(|build| printable_record::build(build).outcome) {
            Some(BuildOutcome::Skipped { reason }) => RowState::Skipped(reason),
            Some(BuildOutcome::Unrunnable { reason }) => RowState::Unrunnable(reason),
            Some(BuildOutcome::Failed { output_tail }) => {
                let last = output_tail.trim_end().lines().next_back().unwrap_or("no output");
                RowState::Failed(format!("build failed: {last}"))
            }
            Some(BuildOutcome::Unverified { case, reason }) => {
                RowState::Failed(format!("breaks its contract: {case}: {reason}"))
            }
            _ => RowState::Skipped("no trial finished".to_owned()),
        },
        // A trial has not failed if the server reported that this machine cannot run it.
        (0, _) if failures.iter().all(|one| one.kind == FailureKind::Unrunnable) => RowState::Unrunnable(why),
        (0, 1) => RowState::Failed(format!("the only trial failed: {why}")),
        (0, failed) => RowState::Failed(format!("all {failed} trials failed: {why}")),
        (measured, 0) if measured < min => RowState::Partial(format!("{measured} of {min} trials done")),
        (_, 0) => RowState::Measured,
        (done, failed) => RowState::Partial(format!("{failed} of {} trials failed: {why}", done + failed)),
    }
}

/// Whether a value's interval meets the stop rule's target; `None` if the rule ignores the metric.
pub fn target_met(rule: &TrialRule, metric: &str, shown: &Estimate) -> Option<bool> {
    let target = rule.relative.filter(|_| rule.comparison.is_none() && metric == rule.metric)?;
    let enough = shown.n >= u64::from(rule.min);
    Some(enough && shown.point != 0.0 && shown.relative_half_width() <= target)
}

fn metrics(run: &Run, measured: &[&Record], trials: &[TrialFinding]) -> BTreeMap<String, MetricFinding> {
    let rule = &run.plan.trials;
    let trials = trials.iter().filter(|trial| trial.failed.is_none()).collect::<Vec<_>>();
    let of = |metric: &study::Metric| {
        let values = trials.iter().filter_map(|trial| trial.values.get(metric.name)).collect::<Vec<_>>();
        let mut finding = MetricFinding::default();
        if values.len() < measured.len() {
            // An estimate over only some trials would be biased.
            finding.note = Some(missing(metric.name, measured, values.len(), value::level(rule))?);
        } else if let some @ 1.. = trials.iter().filter(|trial| trial.at_least.contains(metric.name)).count() {
            // An average that includes a lower bound is itself a lower bound without an interval.
            finding.mean = stats::interval::average(&values);
            finding.at_least = true;
            let of = count(measured.len() as u64, "trial");
            finding.note = Some(format!("a lower bound: in {some} of {of}, requests were still waiting at the end"));
        } else {
            finding.mean = stats::interval::average(&values);
            finding.stddev = stats::interval::variance(&values).map(f64::sqrt);
            finding.estimate = stats::interval::mean(&values, value::level(rule));
            finding.note = finding.estimate.is_none().then(|| "no interval from one trial".to_owned());
            split_variance(metric.name, measured, &mut finding);
            finding.target_met = finding.estimate.as_ref().and_then(|shown| target_met(rule, metric.name, shown));
        }
        Some((metric.name.to_owned(), finding))
    };
    study::METRICS.iter().filter(|_| !measured.is_empty()).filter_map(of).collect()
}

fn split_variance(metric: &str, measured: &[&Record], finding: &mut MetricFinding) {
    let measurements = || measured.iter().filter_map(|record| record.measurement());
    let Some(window_s) = measurements().next().map(|measurement| measurement.window_ns as f64 / 1e9) else { return };
    let trials = measurements().map(|measured| value::window_values(metric, measured)).collect::<Option<Vec<_>>>();
    let Some(trials) = trials.filter(|_| window_s > 0.0) else { return };
    let Some(components) = stats::variance_components::components(&trials, window_s) else { return };
    finding.s_between = Some(components.between);
    finding.s_within = Some(components.within);
    // Setup, warm-up and teardown take the rest of the time.
    let besides_ns =
        |record: &&Record| Some(record.elapsed_ns.saturating_sub(record.measurement()?.duration_ns) as f64);
    let besides_ns = stats::interval::average(&measured.iter().filter_map(besides_ns).collect::<Vec<_>>());
    finding.best_trial_s = besides_ns.and_then(|ns| components.best_seconds_per_trial(ns / 1e9));
}

/// Explains why a metric has no estimate; `None` if it was never measured and is therefore omitted.
fn missing(metric: &str, measured: &[&Record], having: usize, level: f64) -> Option<String> {
    let fewest = measured.iter().filter_map(|record| Some(record.measurement()?.latency().count)).min()?;
    let needed = value::quantile_of(metric).map(|q| stats::order_statistics::samples_needed(q, level));
    match needed.filter(|needed| fewest < *needed) {
        Some(needed) => Some(format!("not enough samples: a trial has {fewest} of the {needed} needed")),
        None => {
            (having > 0).then(|| format!("only {having} of {} have a value", count(measured.len() as u64, "trial")))
        }
    }
}

fn limit(measured: &[&Record], nodes: &[Node]) -> Option<LimitFinding> {
    let verdicts = measured.iter().filter_map(|record| record.verdict.as_ref()).collect::<Vec<_>>();
    let mut counts = BTreeMap::new();
    for verdict in &verdicts {
        *counts.entry(verdict.limited_by).or_insert(0) += 1;
    }
    // Each limit reveals less about the server than those before it and than `Subject`.
    let order = [Limit::Neither, Limit::Proxy, Limit::Latency, Limit::Network, Limit::Generator, Limit::Shared];
    let caution = |limit: &Limit| order.iter().position(|known| known == limit);
    let (&limit, _) = counts.iter().max_by_key(|(limit, count)| (**count, caution(limit)))?;
    let reasons = verdicts.iter().find(|verdict| verdict.limited_by == limit)?.reasons.clone();
    let blames = |record: &&&Record| record.verdict.as_ref().is_some_and(|verdict| verdict.limited_by == limit);
    let path_unknown = limit == Limit::Subject
        && measured.iter().filter(blames).any(|record| cluster_generator_verdicts::is_path_unknown(record, nodes));
    Some(LimitFinding { limit, counts, reasons, path_unknown })
}

fn row_marks(found: Option<&LimitFinding>, trials: &[TrialFinding]) -> Vec<Mark> {
    let counts = found.into_iter().flat_map(|found| &found.counts);
    let all = counts.clone().map(|(_, count)| count).sum::<usize>();
    let half = counts.filter(|(_, count)| 2 * **count >= all).filter_map(|(limit, _)| Mark::of(*limit));
    let hung = trials.iter().any(|trial| trial.marks.contains(&Mark::Hung)).then_some(Mark::Hung);
    half.chain(hung).collect()
}

fn warnings(row: &Row, records: &[&Record], nodes: &[Node]) -> Vec<Warning> {
    let all = row.trials.len();
    let mut warnings = Vec::new();
    if !matches!(row.state, RowState::Measured | RowState::Partial(_)) {
        let text = format!("{}: {}", row.state.word(), row.state.reason().unwrap_or_default());
        warnings.push(Warning::new(WarningKind::NotMeasured, text, 0));
    }
    warnings.extend(merge_warnings::of_row(records));
    let measured = records.iter().filter(|record| record.measurement().is_some());
    let differ = cluster_generator_verdicts::differ(measured.map(|record| record.agents.as_slice()), nodes);
    if let Some(found) = &row.limited_by {
        for (&limit, &trials) in &found.counts {
            let kind = match limit {
                Limit::Shared => WarningKind::SharedCpus,
                Limit::Network => WarningKind::NetworkBound,
                Limit::Generator => WarningKind::GeneratorBound,
                Limit::Subject | Limit::Proxy | Limit::Neither | Limit::Latency => continue,
            };
            let is_told = limit == Limit::Network && !differ.is_empty();
            let why = found.reasons.first().filter(|_| limit == found.limit && !is_told);
            let why = why.map_or(String::new(), |reason| format!(": {reason}"));
            let text = format!("{}{}{why}", kind.text().unwrap_or_default(), merge_warnings::of_trials(trials, all));
            warnings.push(Warning::new(kind, text, trials));
        }
    }
    warnings.extend(differ);
    if let (RowState::Partial(reason), true) = (&row.state, !row.failures.is_empty()) {
        warnings.push(Warning::new(WarningKind::Failed, reason.clone(), 0));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use study::record::Failure;

    #[test]
    fn names_a_latency_that_contradicts_itself() {
        let damage = |record: &mut Record| {
            let Outcome::Measured(measurement) = &mut record.outcome else { panic!("a failed trial") };
            measurement.service.count += 1;
        };
        let damaged = example_row(0, |_, records| {
            damage(records.iter_mut().find(|record| record.point == 0).unwrap());
        });
        let told = damaged.warnings.iter().find(|warning| warning.kind == WarningKind::NotRead).unwrap();
        assert!(told.text.starts_with("no latency: the store is damaged: histogram count is "), "{}", told.text);
        assert_eq!(told.trials, 1);
        let whole = example_row(0, |_, _| ());
        assert!(whole.warnings.iter().all(|warning| warning.kind != WarningKind::NotRead));
    }

    fn example_row(point: usize, edit: impl FnOnce(&mut Run, &mut Vec<Record>)) -> Row {
        let (mut run, mut records) = example::volley();
        records.retain(|record| record.point == point);
        edit(&mut run, &mut records);
        row(&run, point, Some(IdlePolicy::Machine), &records.iter().collect::<Vec<_>>())
    }

    #[test]
    fn states() {
        let check = |point, edit: fn(&mut Run, &mut Vec<Record>), word: &str, reason: Option<&str>| {
            let row = example_row(point, edit);
            assert_eq!((row.state.word(), row.state.reason()), (word, reason));
        };
        check(0, |_, _| (), "measured", None);
        check(0, |_, records| records.truncate(5), "partial", Some("5 of 8 trials done"));
        check(4, |_, _| (), "partial", Some("1 of 8 trials failed: the subject did not listen within 5 s"));
        check(7, |_, _| (), "failed", Some("all 8 trials failed: the subject ended while it was measured: signal 11"));
        check(11, |_, _| (), "unrunnable", Some("needs 4096 open files, may have 1024"));
        check(0, |_, records| records.clear(), "skipped", Some("no trial finished"));
        let skip = |run: &mut Run, records: &mut Vec<Record>| {
            records.clear();
            run.builds[0].outcome = BuildOutcome::Skipped { reason: "missing toolchain: go".to_owned() };
        };
        check(0, skip, "skipped", Some("missing toolchain: go"));
        let fail = |run: &mut Run, records: &mut Vec<Record>| {
            records.clear();
            run.builds[0].outcome = BuildOutcome::Failed { output_tail: "cc main.c\nmain.c:1: no\n".to_owned() };
        };
        check(0, fail, "failed", Some("build failed: main.c:1: no"));
        let no_build = |run: &mut Run, records: &mut Vec<Record>| {
            records.clear();
            run.builds[0].outcome = BuildOutcome::Unrunnable { reason: "no io_uring".to_owned() };
        };
        check(0, no_build, "unrunnable", Some("no io_uring"));
        let no_start = |_: &mut Run, records: &mut Vec<Record>| {
            records.truncate(1);
            let message = "nginx is not installed".to_owned();
            records[0].outcome = Outcome::Failed(Failure { kind: FailureKind::Unrunnable, message });
        };
        check(0, no_start, "unrunnable", Some("nginx is not installed"));
    }

    #[test]
    fn estimate_is_the_t_interval_over_trials() {
        let row = example_row(0, |_, _| ());
        let values = row.trials.iter().map(|trial| trial.values.get("latency_mean").unwrap()).collect::<Vec<_>>();
        assert_eq!(row.estimate("latency_mean").copied(), stats::interval::mean(&values, 0.95));
        assert_eq!(row.metrics["latency_mean"].target_met, Some(true));
        assert_eq!(row.metrics["throughput"].target_met, None, "the rule does not look at it");
        assert_eq!(row.requests, row.latency.unwrap().count);
        let throughput = &row.metrics["throughput"];
        assert!(throughput.s_between < throughput.stddev && throughput.s_within > Some(0.0), "{throughput:?}");
        assert!(throughput.best_trial_s.is_some_and(|seconds| seconds > 0.0));
        assert_eq!(row.metrics["subject_rss"].s_within, None, "windows know nothing of memory");
    }

    #[test]
    fn one_trial_has_a_mean_without_interval() {
        let row = example_row(0, |_, records| records.truncate(1));
        let finding = &row.metrics["throughput"];
        assert_eq!((finding.estimate, finding.stddev), (None, None));
        assert_eq!(finding.mean, Some(row.trials[0].values.get("throughput").unwrap()));
        assert_eq!(finding.note.as_deref(), Some("no interval from one trial"));
    }

    #[test]
    fn trial_with_few_samples_prevents_a_quantile_estimate() {
        let row = example_row(0, |_, records| {
            let Outcome::Measured(measurement) = &mut records[3].outcome else { unreachable!() };
            let mut latency = stats::Histogram::new();
            (0..400).for_each(|i| latency.record(500_000 + i));
            measurement.service = study::record::Histogram::from(&latency);
        });
        assert!(row.estimate("latency_p99").is_some());
        let finding = &row.metrics["latency_p999"];
        assert_eq!((finding.estimate, finding.mean), (None, None));
        assert_eq!(finding.note.as_deref(), Some("not enough samples: a trial has 400 of the 3688 needed"));
    }

    #[test]
    fn unmeasured_metrics_are_left_out() {
        let row =
            example_row(0, |_, records| records.iter_mut().for_each(|record| record.subject.rss_max_bytes = None));
        assert!(!row.metrics.contains_key("subject_rss"));
        let row = example_row(0, |_, records| records[0].subject.rss_max_bytes = None);
        assert_eq!(row.metrics["subject_rss"].note.as_deref(), Some("only 7 of 8 trials have a value"));
    }

    #[test]
    fn most_frequent_limit_wins_and_ties_are_cautious() {
        let set = |records: &mut [Record], limits: &[Limit]| {
            for (record, limit) in records.iter_mut().zip(limits) {
                record.verdict.as_mut().unwrap().limited_by = *limit;
            }
        };
        use Limit::{Generator, Network, Shared, Subject};
        let check = |limits: [Limit; 8], limit, marks: &[Mark]| {
            let row = example_row(0, |_, records| set(records, &limits));
            assert_eq!((row.limited_by.unwrap().limit, row.marks.as_slice()), (limit, marks), "{limits:?}");
        };
        check([Subject; 8], Subject, &[]);
        check([Generator, Subject, Subject, Subject, Subject, Subject, Subject, Generator], Subject, &[]);
        check(
            [Generator, Generator, Generator, Generator, Subject, Subject, Subject, Subject],
            Generator,
            &[Mark::GeneratorBound],
        );
        check([Shared; 8], Shared, &[Mark::Shared]);
        check([Subject, Subject, Subject, Subject, Network, Network, Network, Network], Network, &[Mark::NetworkBound]);
        let row = example_row(0, |_, records| set(records, &[Generator]));
        let expected = Warning::new(WarningKind::GeneratorBound, "generator-bound (1 of 8 trials)", 1);
        assert_eq!(row.warnings, [expected]);
    }
}
