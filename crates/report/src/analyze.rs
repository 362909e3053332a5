//! Records to findings.

use std::collections::BTreeSet;

use study::plan::Level;
use study::record::{IdlePolicy, Record, Run};

use crate::findings::{Drift, FINDINGS_VERSION, Factor, Findings, MetricInfo, Row, RowState};
use crate::{
    added, answer, asked, effects, inside, method, miss_ratio, operations, over_requests, row, scalability, unfinished,
    value, visible,
};

/// Below this adjusted p-value a drift is called one.
const DRIFT_P: f64 = 0.05;

/// What a run has found. `records` are its trials, in any order; those of a point that the plan does not have are left out, with
/// a warning.
///
/// Pure: the same run and records give the same findings, on any machine.
pub fn analyze(run: &Run, records: &[Record]) -> Findings {
    let (run, records) = (&*visible::run(run), records.iter().map(visible::record).collect::<Vec<_>>());
    let plan = &run.plan;
    let mut records = records.iter().map(|record| &**record).collect::<Vec<_>>();
    records.sort_by_key(|record| record.order);
    let strange = records.iter().filter(|record| record.point >= plan.points.len()).count();
    records.retain(|record| record.point < plan.points.len());

    let (capacities, rows) = rows(run, &records).into_iter().partition::<Vec<_>, _>(|row| plan.comes_first(row.point));
    let drift = drift(&plan.trials.metric, &rows);
    let factors = plan.factors.iter().map(|name| factor(run, name)).collect::<Vec<_>>();
    let mut findings = Findings {
        version: FINDINGS_VERSION,
        run: run.id.clone(),
        started: run.started.clone(),
        study: plan.study.clone(),
        question: plan.question.clone(),
        answer: Vec::new(),
        quick: plan.trials.quick,
        profile: run.profile.clone(),
        level: value::level(&plan.trials),
        metric: plan.trials.metric.clone(),
        command: run.command.clone(),
        quintain: run.quintain.clone(),
        revision: run.revision.clone(),
        seed: plan.seed,
        study_text: plan.text.clone(),
        unfinished: unfinished::unfinished(run, records.len()),
        metrics: metrics(capacities.iter().chain(&rows)),
        load: asked::asked(plan),
        figures: plan.figures.clone(),
        tables: plan.tables.clone(),
        scalability: scalability::scalability(run, &factors, &rows),
        effects: Vec::new(),
        miss_ratios: Vec::new(),
        added: Vec::new(),
        over_requests: Vec::new(),
        inside: Vec::new(),
        operations: Vec::new(),
        factors,
        drift,
        network: row::network(records.iter().copied()),
        machine: run.host.clone(),
        calibration: run.calibration.clone(),
        builds: run.builds.clone(),
        doctor: run.doctor.clone(),
        method: method::paragraphs(run, &records),
        warnings: Vec::new(),
        rows,
        capacities,
    };
    findings.effects = effects::effects(&findings, &plan.effects);
    findings.miss_ratios = miss_ratio::miss_ratios(&findings, run, &records);
    findings.added = added::added(&findings);
    findings.over_requests = over_requests::over_requests(&findings, plan, &records);
    findings.inside = inside::inside(&findings, &records);
    findings.operations = operations::operations(&findings, &records);
    findings.warnings = warnings(&findings, strange);
    findings.answer = answer::answer(&findings);
    findings
}

/// One row a point, two where both idle policies were in force: their trials are never mixed.
fn rows(run: &Run, records: &[&Record]) -> Vec<Row> {
    let mut rows = Vec::new();
    for point in 0..run.plan.points.len() {
        let of = |idle| records.iter().filter(move |record| record.point == point && record.idle == idle).copied();
        let policies = [IdlePolicy::Machine, IdlePolicy::Spin];
        let mut present = policies.into_iter().filter(|idle| of(*idle).next().is_some()).peekable();
        if present.peek().is_none() {
            rows.push(row::row(run, point, None, &[]));
        }
        rows.extend(present.map(|idle| row::row(run, point, Some(idle), &of(idle).collect::<Vec<_>>())));
    }
    rows
}

fn factor(run: &Run, name: &str) -> Factor {
    let mut levels = Vec::<Level>::new();
    for level in run.plan.points.iter().filter_map(|point| point.factors.get(name)) {
        if !levels.contains(level) {
            levels.push(level.clone());
        }
    }
    let numbers = levels.iter().map(Level::as_f64).collect::<Option<Vec<_>>>();
    if numbers.is_some() {
        levels.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
    }
    Factor { name: name.to_owned(), numeric: numbers.is_some() && !levels.is_empty(), levels }
}

/// The metrics that some row has, in the order of the tables.
fn metrics<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<MetricInfo> {
    let present = rows.flat_map(|row| row.metrics.keys().map(String::as_str)).collect::<BTreeSet<_>>();
    let info = |metric: &study::Metric| MetricInfo {
        name: metric.name.to_owned(),
        unit: metric.unit.to_owned(),
        higher_is_better: metric.better == study::Better::Higher,
        text: metric.text.to_owned(),
    };
    study::METRICS.iter().filter(|metric| present.contains(metric.name)).map(info).collect()
}

fn drift(metric: &str, rows: &[Row]) -> Vec<Drift> {
    let trend = |row: &Row| {
        let values = row.trials.iter().filter_map(|trial| trial.values.get(metric).copied()).collect::<Vec<_>>();
        stats::drift::mann_kendall(&values)
    };
    let trends = rows.iter().enumerate().filter_map(|(index, row)| Some((index, trend(row)?))).collect::<Vec<_>>();
    let adjusted = stats::compare::holm(&trends.iter().map(|(_, trend)| trend.p_value).collect::<Vec<_>>());
    let sentence = |row: &Row, tau: f64, p: f64| {
        if p >= DRIFT_P {
            return format!("{}: no drift of {metric} shown (p = {p:.2})", row.label);
        }
        let way = if tau > 0.0 { "rises" } else { "falls" };
        format!(
            "{}: {metric} {way} from trial to trial (tau {tau:.2}, p = {p:.3}): the machine may have drifted",
            row.label
        )
    };
    let drifts = trends.iter().zip(adjusted).map(|(&(index, trend), p_adjusted)| Drift {
        row: index,
        metric: metric.to_owned(),
        tau: trend.tau,
        p: trend.p_value,
        p_adjusted,
        sentence: sentence(&rows[index], trend.tau, p_adjusted),
    });
    drifts.collect()
}

/// Where a study would have given its subject more processors than this machine has to give.
fn fewer_processors(findings: &Findings) -> Option<String> {
    let fewer = findings.rows.iter().filter_map(|row| Some((row, row.cpus_wanted?))).collect::<Vec<_>>();
    let (_, most) = fewer.iter().max_by_key(|(_, wanted)| *wanted)?;
    let given = fewer.iter().map(|(row, _)| row.cpus).max().unwrap_or(0);
    let points = crate::number::count(fewer.len() as u64, "design point");
    let processors = crate::number::count(u64::from(given), "processor");
    Some(format!("this machine leaves the subject {processors}, fewer than {points} would use (up to {most})"))
}

fn warnings(findings: &Findings, strange: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    let policies = findings.all_rows().filter_map(|row| row.idle).collect::<Vec<_>>();
    if policies.windows(2).any(|two| two[0] != two[1]) {
        warnings.push("trials ran under two idle policies: each has rows of its own, not to be compared".to_owned());
    }
    if strange > 0 {
        let trials = crate::number::count(strange as u64, "trial");
        warnings.push(format!("{trials} of points that the plan does not have: left out"));
    }
    warnings.extend(fewer_processors(findings));
    for row in findings.all_rows() {
        if !matches!(row.state, RowState::Measured | RowState::Partial { .. }) {
            let reason = row.state.reason().unwrap_or_default();
            warnings.push(row::about(row, &format!("{}: {reason}", row.state.word())));
        }
        warnings.extend(row.warnings.iter().map(|warning| row::about(row, warning)));
    }
    let drifts = findings.drift.iter().filter(|drift| drift.p_adjusted < DRIFT_P);
    warnings.extend(drifts.map(|drift| drift.sentence.clone()));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn one_row_a_point_in_the_order_of_the_plan() {
        let (run, mut records) = example::volley();
        let findings = analyze(&run, &records);
        assert_eq!(findings.rows.iter().map(|row| row.point).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
        records.reverse();
        assert_eq!(analyze(&run, &records), findings, "the order of the records does not matter");
    }

    #[test]
    fn factors_and_metrics_are_those_that_occur() {
        let (run, records) = example::volley();
        let findings = analyze(&run, &records);
        let factors = findings.factors.iter().map(|factor| (factor.name.as_str(), factor.numeric, factor.levels.len()));
        assert_eq!(factors.collect::<Vec<_>>(), [("server", false, 3), ("cores", true, 2), ("clients", true, 2)]);
        assert_eq!(
            findings.metrics.len(),
            study::METRICS.len() - 24,
            "all but TLS handshakes, and those of caches and middles"
        );
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
        assert!(findings.warnings[0].starts_with("trials ran under two idle policies"));
    }

    #[test]
    fn a_trial_of_an_unknown_point_is_left_out_and_said() {
        let (run, mut records) = example::volley();
        records[0].point = 99;
        assert_eq!(analyze(&run, &records).warnings[0], "1 trial of points that the plan does not have: left out");
    }

    #[test]
    fn a_drift_is_found_and_an_even_run_has_none() {
        let (run, mut records) = example::volley();
        assert!(analyze(&run, &records).drift.iter().all(|drift| drift.p_adjusted >= DRIFT_P));
        let mut factor = 1.0;
        for record in records.iter_mut().filter(|record| record.point == 2) {
            let study::record::Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
            measurement.service.sum *= factor;
            factor *= 1.2;
        }
        let findings = analyze(&run, &records);
        let found = findings.drift.iter().find(|drift| drift.row == 2).unwrap();
        assert!(found.p_adjusted < DRIFT_P && found.tau == 1.0, "{found:?}");
        assert!(findings.warnings.contains(&found.sentence));
    }

    #[test]
    fn counters_are_summed() {
        let (run, mut records) = example::volley();
        records.iter_mut().take(3).for_each(|record| record.network.retransmits = 5);
        assert_eq!(analyze(&run, &records).network.retransmits, 15);
    }
}
