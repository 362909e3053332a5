//! Decides after each block whether a run has enough trials, and says why it ended or how far it is.

use std::collections::BTreeSet;

use stats::ranking;
use stats::stop_rule::{self, Decision, Rule};
use study::plan::Plan;
use study::record::{FailureKind, Outcome, Record, Run, RunState};

use crate::comparison_groups::{contender_groups, is_repeated};
use crate::findings::Unfinished;
use crate::number::{count, percent};
use crate::trial_position_and_values::Trial;
use crate::{gate, value};

/// Whether the design point needs no further trial, given all records so far. All points end together, after a block.
/// Points without a trial in the last block were abandoned and do not count.
pub(crate) fn has_enough(plan: &Plan, point: usize, records: &[Record]) -> bool {
    // A side of a comparison whose first trial failed for good gets no second one.
    if plan.gate.is_some() && records.iter().find(|record| record.point == point).is_some_and(has_failed_for_good) {
        return true;
    }
    let trials = records.iter().map(Trial::from).collect::<Vec<_>>();
    let blocks = trials_by_point(plan, &trials);
    let mine = blocks[point];
    blocks.iter().all(|&others| others <= mine) && reason(plan, &trials, mine).is_some()
}

fn has_failed_for_good(record: &Record) -> bool {
    let Outcome::Failed(failure) = &record.outcome else { return false };
    // A server without CPU time may look hung. The other two kinds do not concern the server.
    !matches!(failure.kind, FailureKind::Hung | FailureKind::Generator | FailureKind::Node)
}

pub(crate) fn stop_reason(plan: &Plan, trials: &[Trial<'_>]) -> String {
    let blocks = trials_by_point(plan, trials).into_iter().max().unwrap_or(0);
    reason(plan, trials, blocks).unwrap_or_else(|| {
        let so_far = count(u64::from(blocks), "block");
        if plan.gate.is_some() {
            return format!("ended by time or by hand after {so_far}");
        }
        match width(plan, trials, blocks).filter(|_| rule(plan).target.is_some()) {
            Some(width) => format!("stopped early: ±{} after {so_far}", percent(width)),
            None => format!("ended after {so_far}"),
        }
    })
}

/// Returns why the study ends, based on its gate or its widest interval; `None` if the study goes on.
fn reason(plan: &Plan, trials: &[Trial<'_>], blocks: u32) -> Option<String> {
    if let Some(gate) = &plan.gate {
        return gate::reason(plan, gate, trials, blocks);
    }
    let rule = rule(plan);
    let is_looked_at = stop_rule::is_look(blocks) || blocks >= rule.max;
    let width = || width(plan, trials, blocks);
    let decision = stop_rule::decide(if is_looked_at { width() } else { None }, blocks, &rule);
    match decision {
        Decision::Continue => None,
        Decision::Budget { width: Some(width), .. } => {
            let level = value::level(&plan.trials);
            let needed = |goal| Some((stop_rule::trials_needed(width, blocks, goal, level)?, goal));
            Some(match rule.target.and_then(needed).filter(|(needed, _)| *needed > blocks) {
                Some((needed, goal)) => format!("{decision}; ±{} likely needs about {needed} blocks", percent(goal)),
                None => decision.to_string(),
            })
        }
        _ => Some(decision.to_string()),
    }
}

fn trials_by_point(plan: &Plan, trials: &[Trial<'_>]) -> Vec<u32> {
    let mut counts = vec![0; plan.points.len()];
    trials.iter().filter(|trial| is_repeated(plan, trial.point)).for_each(|trial| counts[trial.point] += 1);
    counts
}

fn rule(plan: &Plan) -> Rule {
    let trials = &plan.trials;
    Rule { target: trials.comparison.or(trials.relative), min: trials.min, max: trials.max.max(trials.min) }
}

/// Widest relative half-width of values, or of typical ratios to the best contender; `None` if an interval is missing.
fn width(plan: &Plan, trials: &[Trial<'_>], blocks: u32) -> Option<f64> {
    let level = value::level(&plan.trials);
    let metric = plan.trials.metric.as_str();
    let counts = trials_by_point(plan, trials);
    let there = |point: usize| blocks > 0 && counts[point] == blocks;
    let trials = || trials.iter().filter(|trial| is_repeated(plan, trial.point) && there(trial.point));
    let blocks = trials().map(|trial| trial.block).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    let mut values = vec![Vec::<Option<f64>>::new(); plan.points.len()];
    for trial in trials() {
        let (of_trial, at_least) = (trial.values)(level);
        let known = of_trial.get(metric).filter(|_| !at_least.contains(metric));
        let of_point = &mut values[trial.point];
        of_point.resize(blocks.len(), None);
        of_point[blocks.partition_point(|block| *block < trial.block)] = known;
    }
    if let Some(width) = plan.trials.comparison.and_then(|_| comparison_width(plan, &values, 1.0 - level)) {
        return width;
    }
    // A point without any value so far will not get one, so it does not delay the other points.
    let points = values.iter().filter(|values| values.iter().any(Option::is_some));
    let points = points.map(|values| values.iter().copied().flatten().collect::<Vec<_>>()).collect::<Vec<_>>();
    let fewest = points.iter().map(Vec::len).min()?;
    let pooled = stop_rule::pooled_relative_sd(points.iter().map(Vec::as_slice))?;
    stop_rule::pooled_half_width(pooled, u32::try_from(fewest).ok()?, level)
}

/// Largest relative half-width of the comparisons; `None` without comparisons, `Some(None)` without an interval.
fn comparison_width(plan: &Plan, values: &[Vec<Option<f64>>], error: f64) -> Option<Option<f64>> {
    let metric = study::Metric::named(&plan.trials.metric)?;
    let contenders = contender_groups(plan, plan.contender()?);
    let of_place = |place: crate::comparison_groups::ContenderGroup| -> ranking::Place {
        place.points.into_iter().map(|point| values[point].clone()).filter(|values| !values.is_empty()).collect()
    };
    let compared = contenders.into_iter().map(of_place).filter(|place| place.len() > 1).collect::<Vec<_>>();
    let rule = ranking::Rule { higher_is_better: metric.higher_is_better, error };
    (!compared.is_empty()).then(|| ranking::comparison_width(&ranking::claims(&compared, &rule)))
}

pub(crate) fn unfinished(run: &Run, trials: usize) -> Option<Unfinished> {
    let effort = run.plan.estimate();
    let trials = trials as u64;
    let done = progress(trials, effort.trials_min, effort.trials_max);
    let (sentence, resume) = match run.state? {
        RunState::Complete | RunState::OutOfTime => return None,
        RunState::Running => (format!("running, {done} so far"), String::new()),
        // The command of an imported run is untrusted and meant for a different machine, so it is omitted.
        RunState::Interrupted if !run.imported.is_empty() => (format!("interrupted after {done}"), String::new()),
        RunState::Interrupted => (format!("interrupted after {done}"), run.resume.clone()),
    };
    Some(Unfinished { state: run.state?, trials, trials_min: effort.trials_min, sentence, resume })
}

/// Formats progress: `5 of 15 trials`, `5 of at least 15 trials`, or only the number once it exceeds the minimum.
pub fn progress(trials: u64, least: u64, most: u64) -> String {
    match (trials < least, least == most) {
        (true, true) => format!("{trials} of {}", count(least, "trial")),
        (true, false) => format!("{trials} of at least {}", count(least, "trial")),
        (false, _) => count(trials, "trial"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn check(edit: impl FnOnce(&mut Plan), point: usize, keep: impl Fn(&Record) -> bool, expected: Option<&str>) {
        let (mut run, mut records) = example::compared();
        edit(&mut run.plan);
        records.retain(keep);
        assert_eq!(has_enough(&run.plan, point, &records), expected.is_some());
        if let Some(reason) = expected {
            assert_eq!(ended(&run.plan, &records), reason);
        }
    }

    fn ended(plan: &Plan, records: &[Record]) -> String {
        stop_reason(plan, &records.iter().map(Trial::from).collect::<Vec<_>>())
    }

    fn blocks(blocks: u32) -> impl Fn(&Record) -> bool {
        move |record| record.block < blocks
    }

    fn relative(target: f64) -> impl FnOnce(&mut Plan) {
        move |plan| (plan.trials.comparison, plan.trials.relative) = (None, Some(target))
    }

    #[test]
    fn all_points_end_together() {
        check(|_| (), 0, blocks(0), None);
        check(|_| (), 0, blocks(11), None);
        // A trial of point 4 failed, and eleven common blocks are not enough for a claim.
        check(|_| (), 0, blocks(12), None);
        check(|_| (), 0, blocks(17), None);
        for point in [0, 1, 4, 10] {
            check(|_| (), point, blocks(18), Some("target met: ±1.5 % after 18 blocks"));
        }
        check(|_| (), 0, |record| record.block < 17 || record.point == 1, None);
        let given_up = |record: &Record| record.point != 7 || record.block < 3;
        check(|_| (), 0, given_up, Some("target met: ±1.5 % after 18 blocks"));
    }

    #[test]
    fn targets() {
        check(relative(0.05), 0, blocks(12), Some("target met: ±2.0 % after 12 blocks"));
        check(relative(0.0001), 0, blocks(12), None);
        let tight = |plan: &mut Plan| (plan.trials.comparison, plan.trials.max) = (Some(0.005), 18);
        check(tight, 0, blocks(18), Some("budget: ±1.5 % after 18 blocks; ±0.50 % likely needs about 142 blocks"));
        let alone = |plan: &mut Plan| plan.points.truncate(1);
        let of_first = |record: &Record| record.block < 12 && record.point == 0;
        check(alone, 0, of_first, Some("target met: ±1.4 % after 12 blocks"));
    }

    #[test]
    fn stops_after_a_fixed_number() {
        let fixed = |plan: &mut Plan| (plan.trials.comparison, plan.trials.min, plan.trials.max) = (None, 8, 8);
        check(fixed, 0, blocks(7), None);
        check(fixed, 0, blocks(8), Some("as requested: 8 blocks"));
        check(fixed, 7, blocks(8), Some("as requested: 8 blocks"));
    }

    #[test]
    fn missing_metric_ends_at_the_budget() {
        let missing = |max: u32| {
            move |plan: &mut Plan| (plan.trials.metric, plan.trials.min, plan.trials.max) = ("hit_ratio".into(), 2, max)
        };
        check(missing(30), 0, blocks(12), None);
        check(missing(12), 0, blocks(12), Some("budget: no interval after 12 blocks"));
    }

    #[test]
    fn describes_the_end_in_the_report() {
        let (run, mut records) = example::compared();
        assert_eq!(ended(&run.plan, &records), "target met: ±1.5 % after 18 blocks");
        records.retain(|record| record.block < 7);
        assert_eq!(ended(&run.plan, &records), "ended after 7 blocks");
        records.clear();
        assert_eq!(ended(&run.plan, &records), "ended after 0 blocks");
    }

    #[test]
    fn side_that_fails_first_is_not_repeated() {
        let (mut run, mut records) = example::compared();
        records.retain(|record| record.block == 0);
        let failed = |records: &mut Vec<Record>, kind| {
            let first = records.iter_mut().find(|record| record.point == 0).unwrap();
            first.outcome = Outcome::Failed(study::record::Failure { kind, message: "exit 1".to_owned() });
        };
        failed(&mut records, FailureKind::Exited);
        assert!(!has_enough(&run.plan, 0, &records), "a study continues");
        let [of, base] = ["server", "c-epoll"].map(str::to_owned);
        let base = study::Level::Text(base);
        run.plan.gate = Some(study::gate::Gate {
            of,
            base,
            fail_if: None,
            metrics: Vec::new(),
            allow_errors: 0.0,
            undecided: Default::default(),
            null: None,
        });
        assert!(has_enough(&run.plan, 0, &records));
        assert!(!has_enough(&run.plan, 1, &records));
        failed(&mut records, FailureKind::Hung);
        assert!(!has_enough(&run.plan, 0, &records), "a busy machine may do that");
    }

    #[test]
    fn formats_progress() {
        assert_eq!(progress(5, 15, 15), "5 of 15 trials");
        assert_eq!(progress(0, 1, 9), "0 of at least 1 trial");
        assert_eq!(progress(16, 15, 20), "16 trials");
    }

    #[test]
    fn ended_runs_are_not_unfinished() {
        let (mut run, _) = example::volley();
        for state in [None, Some(RunState::Complete), Some(RunState::OutOfTime)] {
            run.state = state;
            assert_eq!(unfinished(&run, 3), None, "{state:?}");
        }
    }
}
