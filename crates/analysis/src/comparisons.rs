//! Comparisons of contenders, and trends from the first to the last level of a numeric factor. Points are compared on
//! their common blocks ([`stats::ranking`]), because trials at different times cannot show a difference between points.

use std::collections::{BTreeMap, BTreeSet};

use stats::pairs::{COULD_SHOW, Pairs, Side};
use stats::ranking::{self, Claims, Pair, Rule};
use study::Metric;
use study::plan::{AskedKind, FigureKind, Plan};
use study::process_plan::THROUGH;
use study::record::IdlePolicy;

use crate::comparison_groups::contender_groups;
use crate::failed_requests::FailedRequests;
use crate::findings::{ComparedPlace, Comparison, Difference, Findings, Row, Trend, TrialFinding};
use crate::group_by_key::distinct;
use crate::number::percent;
use crate::value;

/// Compares contenders. Skips proxy overhead, effects and gates, whose own tests a second test could contradict.
pub(crate) fn comparisons(findings: &Findings, plan: &Plan) -> (Vec<Comparison>, Vec<Trend>) {
    let (mut comparisons, mut trends) = (Vec::new(), Vec::new());
    for idle in idle_policies(findings).into_iter().filter(|_| is_ranked(plan)) {
        for (index, metric) in metrics(findings).into_iter().enumerate() {
            let headline = index == 0 && metric.name == findings.metric;
            let (comparison, found) = MetricComparison { findings, plan, metric, idle }.compare(headline);
            comparisons.extend(comparison);
            trends.extend(found);
        }
    }
    comparisons.sort_by_key(|comparison| !comparison.headline);
    (comparisons, trends)
}

fn is_ranked(plan: &Plan) -> bool {
    !matches!(plan.asked().kind, AskedKind::Added | AskedKind::Effects | AskedKind::Gate)
}

/// Maximum number of comparisons by one metric, and the number of blocks needed to show a difference.
pub fn blocks_needed(plan: &Plan) -> (usize, u32) {
    let pairs = |points: usize| points * points.saturating_sub(1) / 2;
    let runnable = |points: &[usize]| points.iter().filter(|&&at| plan.points[at].unrunnable.is_none()).count();
    let of = |factor: &str| {
        contender_groups(plan, factor).into_iter().map(|place| runnable(&place.points)).collect::<Vec<_>>()
    };
    let tests = match plan.asked().kind {
        // Three latencies of each point behind a proxy are compared with the point without one.
        AskedKind::Added => of(THROUGH).into_iter().map(|points| 3 * points.saturating_sub(1)).sum(),
        AskedKind::Effects => plan.factors.iter().filter(|name| plan.levels(name).len() > 1).count(),
        _ => {
            let contenders = plan.contender().map_or_else(Vec::new, of).into_iter().map(pairs).sum::<usize>();
            let is_numeric = |name: &&String| plan.levels(name).iter().all(|level| level.as_f64().is_some());
            let trends = plan.factors.iter().filter(is_numeric).flat_map(|name| of(name));
            contenders + trends.filter(|points| *points > 1).count()
        }
    };
    if let Some(gate) = &plan.gate {
        return crate::gate::needed(plan, gate);
    }
    let needed = stats::pairs::blocks_needed(tests, 1.0 - value::level(&plan.trials));
    (tests, needed.max(ranking::BLOCKS_MIN as u32))
}

pub(crate) fn idle_policies(findings: &Findings) -> Vec<IdlePolicy> {
    distinct(findings.rows.iter().filter_map(|row| row.idle))
}

pub(crate) fn metrics(findings: &Findings) -> Vec<&'static Metric> {
    let over = |kind| matches!(kind, FigureKind::Line | FigureKind::Scatter | FigureKind::Interaction);
    let figures = findings.figures.iter().filter(|figure| over(figure.kind));
    let shown = figures.flat_map(|figure| figure.y.iter().chain(&figure.y_more));
    distinct(std::iter::once(&findings.metric).chain(shown).filter_map(|name| findings.metric_info(name)))
}

const BOUNDS_MAX: f64 = 0.1;

/// Whether a row can be compared by a metric: no mark forbids it and at most 10 % of the values are lower bounds.
pub(crate) fn is_compared(row: &Row, metric: &str) -> bool {
    let trials = row.trials.iter().filter(|trial| trial.values.get(metric).is_some());
    let bounds = trials.clone().filter(|trial| trial.at_least.contains(metric)).count();
    let known = row.metrics.get(metric).is_some_and(|found| found.mean.is_some());
    let metric = study::Metric::named(metric);
    let is_about_server = metric.map_or(!row.is_marked(), |metric| row.forbidding(metric, false).is_none());
    let has_values = known && bounds as f64 <= BOUNDS_MAX * trials.count() as f64;
    is_about_server && has_values && row.more_errors.is_none() && row.search.is_none()
}

/// Finds rows that fail a larger share of requests than another contender at their place (one-sided signed rank test).
/// They are not ranked, since failing may cost less than responding. At most a share `1 - level` of reports is wrong.
pub(crate) fn failing(findings: &Findings, plan: &Plan) -> Vec<(usize, String)> {
    let Some(factor) = plan.contender().filter(|_| is_ranked(plan)) else { return Vec::new() };
    let places = contender_groups(plan, factor);
    let share = |row: &Row, block: u32| row.trials.iter().find(|trial| trial.block == block)?.values.get("error_share");
    let has_more = |row: &Row, other: &Row, error: f64| {
        let difference = |trial: &TrialFinding| Some(share(row, trial.block)? - share(other, trial.block)?);
        let differences = row.trials.iter().filter_map(difference).collect::<Vec<_>>();
        let has_any = differences.iter().any(|difference| *difference > 0.0);
        has_any && Pairs::from_logs(differences).against(0.0).p_larger <= error
    };
    let mut found = Vec::new();
    let groups = places.iter().flat_map(|place| idle_policies(findings).into_iter().map(move |idle| (place, idle)));
    for (place, idle) in groups {
        let rows = || {
            let rows = findings.rows.iter().enumerate();
            rows.filter(|(_, row)| place.points.contains(&row.point) && row.idle == Some(idle) && row.n > 0)
        };
        let error = (1.0 - findings.level) / (rows().count().max(2) - 1) as f64 / places.len() as f64;
        for (index, row) in rows().filter(|(_, row)| row.errors_total() > 0) {
            if rows().any(|(other, best)| other != index && has_more(row, best, error)) {
                let shares = row.trials.iter().filter_map(|trial| trial.values.get("error_share"));
                let mean = stats::interval::average(&shares.collect::<Vec<_>>()).unwrap_or(0.0);
                let how = FailedRequests::from(row).most_frequent().unwrap_or_default();
                found.push((index, format!("{} failed, {how}", percent(mean))));
            }
        }
    }
    found
}

struct MetricComparison<'a> {
    findings: &'a Findings,
    plan: &'a Plan,
    metric: &'static Metric,
    idle: IdlePolicy,
}

impl MetricComparison<'_> {
    fn compare(&self, headline: bool) -> (Option<Comparison>, Vec<Trend>) {
        let factor = self.plan.contender();
        let places = factor.into_iter().flat_map(|factor| contender_groups(self.plan, factor));
        let places = places.map(|place| (self.rows(&place.points), place.label)).filter(|(rows, _)| rows.len() > 1);
        let places = places.collect::<Vec<_>>();
        let trends = if headline { self.ends() } else { Vec::new() };
        let rule = Rule { higher_is_better: self.metric.higher_is_better, error: 1.0 - self.findings.level };
        let (found, changes) = ranking::with_changes(
            &places.iter().map(|(rows, _)| self.values(rows)).collect::<Vec<_>>(),
            &trends.iter().map(|(rows, ..)| self.values(rows)).collect::<Vec<_>>(),
            &rule,
        );
        let place = |((rows, label), found): ((Vec<usize>, String), Claims)| {
            let Claims { best, leads, p_lead, may_be_best, pairs } = found;
            let pairs = pairs.iter().map(|pair| difference(&rows, pair, rule.error)).collect::<Vec<_>>();
            let blocks = pairs.iter().map(|pair| pair.blocks).min().unwrap_or(0);
            let best = best.map(|best| rows[best]);
            let may_be_best = may_be_best.iter().map(|&index| rows[index]).collect();
            ComparedPlace { label, rows, best, leads, p_lead, may_be_best, blocks, pairs }
        };
        let places = places.into_iter().zip(found).map(place).collect::<Vec<_>>();
        let metric = || self.metric.name.to_owned();
        let trend = |((rows, factor, label), pair): ((Vec<usize>, &str, String), Option<Pair>)| {
            let level = |row: usize| self.findings.rows[row].factors.get(factor).cloned();
            let (from, to) = (level(rows[0])?, level(rows[1])?);
            let change = difference(&rows, &pair?, rule.error);
            Some(Trend { metric: metric(), factor: factor.to_owned(), label, from, to, change })
        };
        let trends = trends.into_iter().zip(changes).filter_map(trend).collect();
        let factor = factor.filter(|_| !places.is_empty()).map(str::to_owned);
        let of = |factor| Comparison { metric: metric(), headline, factor, idle: self.idle, places };
        (factor.map(of), trends)
    }

    fn rows(&self, points: &[usize]) -> Vec<usize> {
        let row = |&point: &usize| {
            let is_same = |row: &Row| row.point == point && row.idle == Some(self.idle);
            self.findings.rows.iter().position(|row| is_same(row) && is_compared(row, self.metric.name))
        };
        points.iter().filter_map(row).collect()
    }

    /// First and last comparable level of each numeric factor, at each combination of the other factors.
    fn ends(&self) -> Vec<(Vec<usize>, &str, String)> {
        let numeric = self.findings.factors.iter().filter(|factor| factor.numeric && factor.levels.len() > 1);
        let of = |factor: &'_ crate::findings::Factor| {
            let name = factor.name.clone();
            contender_groups(self.plan, &name).into_iter().filter_map(move |place| {
                let mut rows = self.rows(&place.points);
                let level = |row: &usize| self.findings.rows[*row].factors.get(&name).and_then(study::Level::as_f64);
                rows.sort_by(|a, b| level(a).unwrap_or(0.0).total_cmp(&level(b).unwrap_or(0.0)));
                let ends = vec![*rows.first()?, *rows.last()?];
                (ends[0] != ends[1]).then_some((ends, place.label))
            })
        };
        numeric.flat_map(|factor| of(factor).map(|(rows, label)| (rows, factor.name.as_str(), label))).collect()
    }

    fn values(&self, rows: &[usize]) -> Vec<Side> {
        let trials = |row: usize| &self.findings.rows[row].trials;
        let blocks = rows.iter().flat_map(|&row| trials(row)).map(|trial| trial.block).collect::<BTreeSet<_>>();
        let of_row = |&row: &usize| {
            let bounds = trials(row).iter().filter_map(|trial| Some((trial.block, trial.bound(self.metric.name)?)));
            let bounds = bounds.collect::<BTreeMap<_, _>>();
            blocks.iter().map(|block| bounds.get(block).copied()).collect()
        };
        rows.iter().map(of_row).collect()
    }
}

fn difference(rows: &[usize], pair: &Pair, error: f64) -> Difference {
    let &Pair { a, b, blocks, typical: ratio, mean: mean_ratio, p, p_adjusted, half_width } = pair;
    let could_show = half_width.map(|half_width| COULD_SHOW * half_width).filter(|width| width.is_finite());
    let (a, b, blocks) = (rows[a], rows[b], blocks as u64);
    let (shown, kinds_of_starts) = (pair.larger(error).is_some(), pair.disagrees());
    Difference { a, b, blocks, ratio, mean_ratio, p, p_adjusted, shown, could_show, kinds_of_starts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Mark;
    use crate::{analyze, example};

    #[test]
    fn pairs_are_compared_on_common_blocks() {
        let (run, records) = example::compared();
        let findings = analyze(&run, &records);
        let [first, ..] = findings.comparisons.as_slice() else { panic!("nothing compared") };
        assert!(first.headline && first.metric == "latency_mean" && first.factor == "server");
        let labels = first.places.iter().map(|place| (place.label.as_str(), place.rows.len(), place.blocks));
        let expected = [("cores 1, clients 40", 3, 17), ("cores 1, clients 80", 3, 18), ("cores 2, clients 40", 3, 18)];
        assert_eq!(labels.collect::<Vec<_>>(), expected, "of three at the last place one failed, one is marked");
        let pair = &first.places[0].pairs[0];
        assert_eq!((pair.a, pair.b, pair.blocks, pair.shown), (0, 4, 17, true), "{pair:?}");
        assert!(findings.comparisons[1..].iter().all(|other| !other.headline && other.metric != "latency_mean"));
        let trends = findings.trends.iter().map(|trend| (trend.factor.as_str(), trend.change.a, trend.change.b));
        assert_eq!(trends.clone().next(), Some(("cores", 0, 2)));
        assert_eq!(trends.count(), 6, "3 servers over cores at clients 40, 3 over clients at cores 1");
    }

    #[test]
    fn marks_forbid_comparisons_by_metric() {
        let (run, records) = example::compared();
        let mut row = analyze(&run, &records).rows[0].clone();
        row.marks = vec![Mark::Shared];
        assert!(is_compared(&row, "latency_mean") && is_compared(&row, "subject_cpu_per_request"));
        row.marks = vec![Mark::GeneratorBound];
        assert!(!is_compared(&row, "latency_mean") && is_compared(&row, "subject_cpu_per_request"));
    }

    #[test]
    fn blocks_of_one_contender_do_not_count() {
        let (run, mut records) = example::compared();
        let twin = records.iter().filter(|record| record.point == 0).cloned().collect::<Vec<_>>();
        for (record, twin) in records.iter_mut().filter(|record| record.point == 8).zip(&twin) {
            record.outcome = twin.outcome.clone();
        }
        for record in records.iter_mut().filter(|record| record.point == 8 && record.block >= 12) {
            let study::record::Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
            measurement.service.sum *= 2.0;
        }
        records.retain(|record| record.point != 0 || record.block < 12);
        let findings = analyze(&run, &records);
        let place = &findings.comparisons[0].places[0];
        let pair = place.pairs.iter().find(|pair| (pair.a, pair.b) == (0, 8)).unwrap();
        assert_eq!((pair.blocks, pair.p, pair.shown, place.leads), (12, 1.0, false, false), "{pair:?}");
    }

    #[test]
    fn contender_that_fails_requests_does_not_lead() {
        for (share, blocks) in [(0.5, 18), (0.01, 18), (0.5, 1)] {
            let (run, mut records) = example::compared();
            for record in records.iter_mut().filter(|record| record.point < 4 && record.block < blocks) {
                let study::record::Outcome::Measured(measured) = &mut record.outcome else { continue };
                let failed = (measured.requests as f64 * share) as u64;
                measured.errors.insert("status".into(), failed);
                measured.statuses.insert(503, failed);
            }
            let findings = analyze(&run, &records);
            let row = &findings.rows[0];
            let first = &findings.comparisons[0].places[0];
            let text = findings.answer.iter().map(|sentence| sentence.text.as_str()).collect::<Vec<_>>().join("\n");
            if blocks == 1 {
                assert!(row.more_errors.is_none() && first.best == Some(0), "one trial with errors decides nothing");
                continue;
            }
            assert!(row.more_errors.is_some() && !first.rows.contains(&0), "{first:?}");
            assert!(!text.contains("c-epoll has the lowest"), "{text}");
            assert!(text.contains("Not ranked because more of its requests failed: c-epoll, "), "{text}");
            assert!(text.contains("failed, status 503)"), "{text}");
        }
    }

    #[test]
    fn counts_comparisons_and_blocks_needed() {
        let (mut run, _) = example::volley();
        // 3 + 3 + 3 + 1 pairs, since one point cannot run; 5 trends over cores and 5 over clients.
        assert_eq!(blocks_needed(&run.plan), (20, 12));
        run.plan.points.truncate(1);
        assert_eq!(blocks_needed(&run.plan), (0, 12));
    }
}
