//! Are there trials enough of a design point?

use study::plan::Plan;
use study::record::Record;

use crate::number::count;
use crate::value;
use stats::stop::{AdaptiveRule, adaptive};

/// Why no further trial of the design point is needed; `None`: one more. `records` are its trials so far.
///
/// Failed trials have no value, so they neither narrow the interval nor count as one of `min`; together with the others
/// they use up `max`.
pub(crate) fn enough(plan: &Plan, point: usize, records: &[&Record]) -> Option<String> {
    let rule = &plan.trials;
    let level = value::level(rule);
    let trials = records.iter().filter(|record| record.point == point);
    let all = trials.clone().count();
    let measured = trials.clone().filter(|record| record.measurement().is_some()).count();
    let Some(relative) = rule.relative else {
        let done = measured >= rule.min as usize || all >= rule.max.max(rule.min) as usize;
        return done.then(|| format!("as asked: {}", count(measured as u64, "trial")));
    };
    let values =
        trials.filter_map(|record| value::values(record, level).get(&rule.metric).copied()).collect::<Vec<_>>();
    let adaptive_rule = AdaptiveRule { relative, level, min: rule.min, max: rule.max };
    let decision = adaptive(&values, &adaptive_rule);
    // Trials without a value would be asked for forever.
    if decision.is_final() || all >= rule.max as usize {
        let decision = adaptive(&values, &AdaptiveRule { max: values.len() as u32, ..adaptive_rule });
        return Some(decision.to_string());
    }
    None
}

/// The state of the rule for a point that got no further trial without being done.
pub(crate) fn unfinished(plan: &Plan, values: &[f64]) -> String {
    let rule = &plan.trials;
    let trials = count(values.len() as u64, "trial");
    let Some(estimate) = stats::interval::mean(values, value::level(rule)).filter(|_| rule.relative.is_some()) else {
        return format!("ended after {trials}");
    };
    let width = estimate.relative_half_width() * 100.0;
    format!("ended early: ±{width:.1} % after {trials}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn check(edit: impl FnOnce(&mut Plan), point: usize, trials: usize, expected: Option<&str>) {
        let (mut run, records) = example::volley();
        edit(&mut run.plan);
        let records = records.iter().filter(|record| record.point == point).take(trials).collect::<Vec<_>>();
        assert_eq!(enough(&run.plan, point, &records).as_deref(), expected);
    }

    #[test]
    fn adaptive_rule() {
        check(|_| (), 0, 0, None);
        check(|_| (), 0, 7, None);
        check(|_| (), 0, 8, Some("target met: ±1.9 % after 8 trials"));
        check(|plan| plan.trials.relative = Some(0.0001), 0, 8, None);
        check(
            |plan| (plan.trials.relative, plan.trials.max) = (Some(0.0001), 8),
            0,
            8,
            Some("budget: ±1.9 % after 8 trials"),
        );
    }

    #[test]
    fn a_fixed_number() {
        check(|plan| plan.trials.relative = None, 0, 7, None);
        check(|plan| plan.trials.relative = None, 0, 8, Some("as asked: 8 trials"));
    }

    #[test]
    fn failed_trials_do_not_count_but_use_up_the_budget() {
        check(|_| (), 4, 8, None);
        check(|plan| plan.trials.max = 8, 7, 8, Some("budget: no interval after 0 trials"));
        check(|plan| plan.trials.relative = None, 4, 8, None);
    }

    #[test]
    fn a_metric_that_no_trial_has_ends_at_the_budget() {
        check(|plan| plan.trials.metric = "hit_ratio".to_owned(), 0, 8, None);
        check(
            |plan| (plan.trials.metric, plan.trials.max) = ("hit_ratio".to_owned(), 8),
            0,
            8,
            Some("budget: no interval after 0 trials"),
        );
    }
}
