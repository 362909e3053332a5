//! Contenders held against each other, and what happens from the first to the last level of a number: the one place where two things are compared.
//!
//! Two points are compared on the blocks in which both have a trial, never by their own intervals ([`stats::claims`]). What ran in other stretches
//! of time says nothing of a difference.

use stats::claims::{self, Claims, Pair, Rule};
use study::plan::{AskedKind, FigureKind, Plan};
use study::record::IdlePolicy;

use crate::findings::{ComparedPlace, Comparison, Difference, Findings, MetricInfo, Row, Trend};
use crate::places::places;

/// A difference of so many half-widths is shown in about 80 of 100 studies (simulated: 75 to 84).
const COULD_SHOW: f64 = 1.5;

/// What is compared: by the metric of the stop rule, for which trends share the adjustment, and by those that the figures show.
///
/// Nothing where the study asks what a middle adds or which factors matter: that is told by [`crate::added`] and [`crate::effects`] alone, and what is
/// told twice may be told differently.
pub(crate) fn comparisons(findings: &Findings, plan: &Plan) -> (Vec<Comparison>, Vec<Trend>) {
    let (mut comparisons, mut trends) = (Vec::new(), Vec::new());
    if matches!(plan.asked().kind, AskedKind::Added | AskedKind::Effects) {
        return (comparisons, trends);
    }
    for idle in idle_policies(findings) {
        for (index, metric) in metrics(findings).into_iter().enumerate() {
            let headline = index == 0 && metric.name == findings.metric;
            let of = Of { findings, plan, metric, idle };
            let (comparison, found) = of.compare(headline);
            comparisons.extend(comparison);
            trends.extend(found);
        }
    }
    comparisons.sort_by_key(|comparison| !comparison.headline);
    (comparisons, trends)
}

/// The policies under which something was measured.
fn idle_policies(findings: &Findings) -> Vec<IdlePolicy> {
    let mut policies = Vec::new();
    for idle in findings.rows.iter().filter_map(|row| row.idle) {
        if !policies.contains(&idle) {
            policies.push(idle);
        }
    }
    policies
}

/// That of the stop rule, then those of the figures.
fn metrics(findings: &Findings) -> Vec<&MetricInfo> {
    let over = |kind| matches!(kind, FigureKind::Line | FigureKind::Scatter | FigureKind::Interaction);
    let figures = findings.figures.iter().filter(|figure| over(figure.kind));
    let named = figures.flat_map(|figure| figure.y.iter().chain(&figure.y_more)).map(String::as_str);
    let mut metrics = Vec::<&MetricInfo>::new();
    for info in std::iter::once(findings.metric.as_str()).chain(named).filter_map(|name| findings.metric_info(name)) {
        if !metrics.iter().any(|known| known.name == info.name) {
            metrics.push(info);
        }
    }
    metrics
}

/// Whether a row can be held against others by a metric: its numbers are about a subject that went on answering, are known, and repeat
/// each other.
pub(crate) fn is_compared(row: &Row, metric: &str) -> bool {
    let known = row.metrics.get(metric).is_some_and(|found| found.mean.is_some() && !found.at_least);
    !row.is_marked() && row.search.is_none() && known
}

struct Of<'a> {
    findings: &'a Findings,
    plan: &'a Plan,
    metric: &'a MetricInfo,
    idle: IdlePolicy,
}

impl Of<'_> {
    fn compare(&self, headline: bool) -> (Option<Comparison>, Vec<Trend>) {
        let factor = self.plan.contender();
        let places = factor.into_iter().flat_map(|factor| places(self.plan, factor));
        let places = places.map(|place| (self.rows(&place.points), place.label)).filter(|(rows, _)| rows.len() > 1);
        let places = places.collect::<Vec<_>>();
        let trends = if headline { self.ends() } else { Vec::new() };
        let rule = Rule { higher_is_better: self.metric.higher_is_better, error: 1.0 - self.findings.level };
        let of_rows = |rows: &[usize]| self.values(rows);
        let (found, changes) = claims::with_changes(
            &places.iter().map(|(rows, _)| of_rows(rows)).collect::<Vec<_>>(),
            &trends.iter().map(|(rows, ..)| of_rows(rows)).collect::<Vec<_>>(),
            &rule,
        );
        let place = |((rows, label), found): ((Vec<usize>, String), Claims)| {
            let pairs = found.pairs.iter().map(|pair| difference(&rows, pair, rule.error)).collect::<Vec<_>>();
            ComparedPlace {
                label,
                best: found.best.map(|best| rows[best]),
                leads: found.leads,
                p_lead: found.p_lead,
                may_be_best: found.may_be_best.iter().map(|&index| rows[index]).collect(),
                blocks: pairs.iter().map(|pair| pair.blocks).min().unwrap_or(0),
                rows,
                pairs,
            }
        };
        let places = places.into_iter().zip(found).map(place).collect::<Vec<_>>();
        let metric = || self.metric.name.clone();
        let trend = |((rows, factor, label), pair): ((Vec<usize>, &str, String), Option<Pair>)| {
            let level = |row: usize| self.findings.rows[row].factors.get(factor).cloned();
            Some(Trend {
                metric: metric(),
                factor: factor.to_owned(),
                label,
                from: level(rows[0])?,
                to: level(rows[1])?,
                change: difference(&rows, &pair?, rule.error),
            })
        };
        let trends = trends.into_iter().zip(changes).filter_map(trend).collect();
        let comparison = factor.filter(|_| !places.is_empty()).map(|factor| Comparison {
            metric: metric(),
            headline,
            factor: factor.to_owned(),
            idle: self.idle,
            places,
        });
        (comparison, trends)
    }

    /// The rows of these points that can be compared.
    fn rows(&self, points: &[usize]) -> Vec<usize> {
        let row = |&point: &usize| {
            let of =
                |row: &Row| row.point == point && row.idle == Some(self.idle) && is_compared(row, &self.metric.name);
            self.findings.rows.iter().position(of)
        };
        points.iter().filter_map(row).collect()
    }

    /// The first and the last level of each factor of numbers that can be compared, at each combination of the others.
    fn ends(&self) -> Vec<(Vec<usize>, &str, String)> {
        let numeric = self.findings.factors.iter().filter(|factor| factor.numeric && factor.levels.len() > 1);
        let of = |factor: &'_ crate::findings::Factor| {
            let name = factor.name.clone();
            places(self.plan, &name).into_iter().filter_map(move |place| {
                let mut rows = self.rows(&place.points);
                let level = |row: &usize| self.findings.rows[*row].factors.get(&name).and_then(study::Level::as_f64);
                rows.sort_by(|a, b| level(a).unwrap_or(0.0).total_cmp(&level(b).unwrap_or(0.0)));
                let ends = vec![*rows.first()?, *rows.last()?];
                (ends[0] != ends[1]).then_some((ends, place.label))
            })
        };
        numeric.flat_map(|factor| of(factor).map(|(rows, label)| (rows, factor.name.as_str(), label))).collect()
    }

    /// Values by block; blocks that no row has are left out.
    fn values(&self, rows: &[usize]) -> claims::Place {
        let trials = |row: usize| &self.findings.rows[row].trials;
        let mut blocks = rows.iter().flat_map(|&row| trials(row)).map(|trial| trial.block).collect::<Vec<_>>();
        blocks.sort_unstable();
        blocks.dedup();
        let of_row = |&row: &usize| {
            let mut values = vec![None; blocks.len()];
            for trial in trials(row) {
                if let Ok(place) = blocks.binary_search(&trial.block) {
                    values[place] = trial.known(&self.metric.name);
                }
            }
            values
        };
        rows.iter().map(of_row).collect()
    }
}

fn difference(rows: &[usize], pair: &Pair, error: f64) -> Difference {
    Difference {
        a: rows[pair.a],
        b: rows[pair.b],
        blocks: pair.blocks as u64,
        ratio: pair.typical.map(Into::into),
        mean_ratio: pair.mean.map(Into::into),
        p: pair.p,
        p_adjusted: pair.p_adjusted,
        shown: pair.larger(error).is_some(),
        could_show: pair.half_width.map(|half_width| COULD_SHOW * half_width).filter(|width| width.is_finite()),
        kinds_of_starts: pair.disagrees(),
    }
}
