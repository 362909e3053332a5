//! Is a candidate worse than its baseline? Pairs of trials that ran in the same blocks, by the rule of [`stats::gate`].

use std::collections::BTreeMap;

use stats::gate::{self, Decided, Ended, Rule, Verdict};
use study::gate::Gate;
use study::metric::{Better, Metric};
use study::plan::{Level, Plan};
use study::record::Record;

use crate::findings::{Findings, GateFinding, GateTest, GateVerdict, Row};
use crate::number::{count, is_unbounded, percent};
use crate::places::places;
use crate::trial::{Trial, Values};
use crate::value;

/// What is looked at of any two servers, beside what is asked of them.
pub(crate) const MAIN_METRICS: [&str; 6] =
    ["throughput", "latency_mean", "latency_p50", "latency_p99", "subject_cpu_per_request", "subject_rss"];

/// A difference of so many half-widths is shown in about 80 of 100 comparisons (simulated: 75 to 84).
const COULD_SHOW: f64 = 1.5;

/// More pairs than this nobody waits for.
const MORE_MAX: f64 = 100_000.0;

/// The trials of a run as gates see them.
struct Trials {
    /// Of each point the values by block; a failed trial has none.
    by_point: Vec<BTreeMap<u32, Values>>,
    /// How many trials each point had, failed ones too.
    count: Vec<u32>,
    /// Whether no more will come, for a reason that has nothing to do with what they say.
    is_over: bool,
}

impl Trials {
    fn new(plan: &Plan, records: &[Trial<'_>], is_over: bool) -> Self {
        let mut trials =
            Self { by_point: vec![BTreeMap::new(); plan.points.len()], count: vec![0; plan.points.len()], is_over };
        for record in records {
            trials.count[record.point] += 1;
            if record.is_measured {
                let values = record.values(value::level(&plan.trials));
                trials.by_point[record.point].insert(record.block, values);
            }
        }
        trials
    }

    /// Values of a metric in the blocks that either point has, at least and at most.
    fn sides(&self, points: [usize; 2], metric: &str) -> [[Vec<Option<f64>>; 2]; 2] {
        let blocks = points.map(|point| self.by_point[point].keys());
        let blocks = blocks.into_iter().flatten().copied().collect::<std::collections::BTreeSet<_>>();
        points.map(|point| {
            let at = |block: &u32, most: bool| {
                let (values, at_least) = self.by_point[point].get(block)?;
                let value = *values.get(metric)?;
                Some(if most && at_least.contains(metric) { f64::INFINITY } else { value })
            };
            [false, true].map(|most| blocks.iter().map(|block| at(block, most)).collect())
        })
    }

    /// Whether one of them was given up while others went on, so that no pair will come.
    fn is_given_up(&self, points: [usize; 2]) -> bool {
        let blocks = self.count.iter().copied().max().unwrap_or(0);
        points.iter().any(|&point| self.count[point] < blocks)
    }

    fn mean(&self, point: usize, metric: &str) -> Option<f64> {
        let values = self.by_point[point].values().filter_map(|(values, _)| values.get(metric).copied());
        stats::interval::average(&values.collect::<Vec<_>>())
    }
}

/// A baseline and a candidate that differ in nothing else.
struct Pair {
    label: String,
    candidate: Level,
    points: [usize; 2],
}

/// What is asked of a pair.
#[derive(Clone, Copy)]
struct Condition {
    metric: &'static Metric,
    bound: f64,
}

fn pairs(plan: &Plan, gate: &Gate) -> Vec<Pair> {
    let level = |point: usize| plan.points[point].factors.get(&gate.of);
    let of_place = |place: crate::places::Place| {
        let base = place.points.iter().copied().find(|&point| level(point) == Some(&gate.base));
        let candidates = place.points.iter().copied().filter(|&point| level(point) != Some(&gate.base));
        let pair = |point: usize| {
            Some(Pair { label: place.label.clone(), candidate: level(point)?.clone(), points: [base?, point] })
        };
        candidates.filter_map(pair).collect::<Vec<_>>()
    };
    places(plan, &gate.of).into_iter().flat_map(of_place).collect()
}

fn conditions(plan: &Plan, gate: &Gate) -> Vec<Condition> {
    match &gate.fail_if {
        Some(fail_if) => {
            let condition = |asked: &study::gate::Condition| Condition { metric: asked.metric, bound: asked.bound };
            fail_if.conditions().iter().map(condition).collect()
        }
        None => Metric::named(&plan.trials.metric).into_iter().map(|metric| Condition { metric, bound: 1.0 }).collect(),
    }
}

/// Chance of a false verdict each way, of so many questions: a difference may be false both ways, a condition that holds is false one way.
fn error(plan: &Plan, bound: f64, questions: usize) -> f64 {
    let error = 1.0 - value::level(&plan.trials);
    (if bound == 1.0 { error / 2.0 } else { error }) / questions.max(1) as f64
}

fn rule(plan: &Plan, gate: &Gate, condition: Condition, questions: usize) -> Rule {
    Rule {
        higher_is_better: condition.metric.better == Better::Higher,
        bound: condition.bound,
        error: error(plan, condition.bound, questions),
        pairs_max: plan.trials.max.clamp(1, gate::PAIRS_MAX),
        within: plan.trials.comparison.filter(|_| gate.fail_if.is_none()),
    }
}

fn decide(trials: &Trials, pair: &Pair, condition: Condition, rule: &Rule) -> Option<Decided> {
    let [base, candidate] = trials.sides(pair.points, condition.metric.name);
    let is_over = trials.is_over || trials.is_given_up(pair.points);
    let side = |[least, most]: &[Vec<Option<f64>>; 2]| -> [Vec<Option<f64>>; 2] { [least.clone(), most.clone()] };
    let ([base_least, base_most], [least, most]) = (side(&base), side(&candidate));
    gate::decide([&base_least, &base_most], [&least, &most], rule, is_over)
}

fn is_null(gate: &Gate, pair: &Pair) -> bool {
    gate.null.as_ref() == Some(&pair.candidate)
}

/// Whether, and why, no further block is needed; called between blocks.
pub(crate) fn reason(plan: &Plan, gate: &Gate, records: &[Trial<'_>], blocks: u32) -> Option<String> {
    let is_over = blocks >= plan.trials.max;
    if plan.trials.quick {
        return is_over.then(|| format!("as requested: {}", count(u64::from(blocks), "block")));
    }
    let pairs = pairs(plan, gate).into_iter().filter(|pair| !is_null(gate, pair)).collect::<Vec<_>>();
    // Values are worked out at looks alone.
    let measured = |point: usize| records.iter().filter(move |record| record.point == point && record.is_measured);
    let looks = gate::looks(plan.trials.max.clamp(1, gate::PAIRS_MAX));
    let is_look = |pair: &Pair| {
        let [base, candidate] = pair.points.map(|point| measured(point).map(|record| record.block).collect::<Vec<_>>());
        let common = base.iter().filter(|block| candidate.contains(block)).count();
        looks.iter().any(|(pairs, _)| *pairs as usize == common)
    };
    let all_given_up = pairs.iter().all(|pair| {
        let trials = |point: usize| records.iter().filter(|record| record.point == point).count();
        pair.points.iter().any(|&point| (trials(point) as u32) < blocks)
    });
    if !is_over && !all_given_up && !pairs.iter().any(is_look) {
        return None;
    }
    let trials = Trials::new(plan, records, is_over);
    let conditions = conditions(plan, gate);
    let questions = pairs.len() * conditions.len();
    let decided = pairs.iter().flat_map(|pair| {
        let decide = |condition: &Condition| {
            let found = decide(&trials, pair, *condition, &rule(plan, gate, *condition, questions));
            found.ok_or(trials.is_given_up(pair.points))
        };
        conditions.iter().map(decide).collect::<Vec<_>>()
    });
    let decided = decided.collect::<Vec<_>>();
    let is_failed = |found: &Result<Decided, bool>| {
        gate.fail_if.is_some() && found.as_ref().is_ok_and(|found| found.verdict == Verdict::Worse)
    };
    let is_open = |found: &Result<Decided, bool>| match found {
        Ok(found) => found.ended.is_none(),
        Err(is_given_up) => !is_given_up && !is_over,
    };
    let so_far = count(u64::from(blocks), "block");
    if decided.iter().any(is_failed) {
        return Some(format!("decided after {so_far}"));
    }
    if decided.iter().any(is_open) {
        return None;
    }
    let ends = decided.iter().filter_map(|found| found.as_ref().ok()?.ended).collect::<Vec<_>>();
    Some(match () {
        () if ends.is_empty() => format!("no pairs after {so_far}"),
        () if ends.iter().all(|end| *end == Ended::Decided) => format!("decided after {so_far}"),
        () if ends.contains(&Ended::Pairs) => format!("undecided after {so_far}, the maximum"),
        () => format!("known well enough after {so_far}"),
    })
}

/// How many questions a gate has, and the pairs at its first look.
pub(crate) fn needed(plan: &Plan) -> (usize, u32) {
    let Some(gate) = &plan.gate else { return (0, gate::FIRST_LOOK) };
    let is_runnable = |pair: &Pair| pair.points.iter().all(|&point| plan.points[point].unrunnable.is_none());
    let pairs = pairs(plan, gate).into_iter().filter(|pair| !is_null(gate, pair) && is_runnable(pair)).count();
    (pairs * conditions(plan, gate).len(), gate::FIRST_LOOK)
}

/// What was found; `None`: the study has no gate. `is_over`: the run has ended, and not because somebody ended it.
pub(crate) fn gate(findings: &Findings, plan: &Plan, records: &[Trial<'_>], is_over: bool) -> Option<GateFinding> {
    let gate = plan.gate.as_ref()?;
    let trials = Trials::new(plan, records, is_over && !plan.trials.quick);
    let (null, pairs) = pairs(plan, gate).into_iter().partition::<Vec<_>, _>(|pair| is_null(gate, pair));
    let conditions = conditions(plan, gate);
    let questions = pairs.len() * conditions.len();
    let cost_ns = records.iter().map(|record| record.elapsed_ns).fold(0, u64::saturating_add);
    let blocks = trials.count.iter().copied().max().unwrap_or(0);
    let tester = Tester { findings, plan, gate, trials: &trials, block_ns: cost_ns.checked_div(u64::from(blocks)) };
    let test = |pair: &Pair, condition: &Condition, questions| {
        tester.test(pair, *condition, &rule(plan, gate, *condition, questions))
    };
    let of = |pairs: &[Pair], conditions: &[Condition], questions| -> Vec<GateTest> {
        pairs
            .iter()
            .flat_map(|pair| conditions.iter().map(move |condition| (pair, condition)))
            .map(|(pair, condition)| test(pair, condition, questions))
            .collect()
    };
    let tests = of(&pairs, &conditions, questions);
    let differs = conditions.iter().map(|condition| Condition { bound: 1.0, ..*condition }).collect::<Vec<_>>();
    let also = MAIN_METRICS.into_iter().filter_map(Metric::named).filter(|metric| {
        let is_asked = |condition: &Condition| condition.metric.name == metric.name && condition.bound == 1.0;
        findings.metric_info(metric.name).is_some() && !conditions.iter().any(is_asked)
    });
    let also = also.map(|metric| Condition { metric, bound: 1.0 }).collect::<Vec<_>>();
    let also = pairs
        .iter()
        .flat_map(|pair| also.iter().map(|condition| tester.also(pair, *condition, &tests)).collect::<Vec<_>>());
    let verdict = tests.iter().map(|test| test.verdict).max().unwrap_or(GateVerdict::NoVerdict);
    Some(GateFinding {
        factor: gate.of.clone(),
        base: gate.base.to_string(),
        fail_if: gate.fail_if.as_ref().map(ToString::to_string),
        undecided: gate.undecided,
        verdict,
        also: also.collect(),
        tests,
        null: of(&null, &differs, 1),
        null_scatter: null.first().and_then(|pair| scatter(&trials, pair, conditions.first()?.metric.name)),
        cost_ns,
    })
}

/// The median of how far the two values of a pair are apart, as a ratio less one.
fn scatter(trials: &Trials, pair: &Pair, metric: &str) -> Option<f64> {
    let [[base, _], [again, _]] = trials.sides(pair.points, metric);
    let ratios = base.iter().zip(&again).filter_map(|(base, again)| Some(((*again)? / (*base)?).ln().abs()));
    let mut ratios = ratios.filter(|ratio| ratio.is_finite()).collect::<Vec<_>>();
    ratios.sort_unstable_by(f64::total_cmp);
    stats::quantile(&ratios, 0.5).map(f64::exp_m1)
}

struct Tester<'a> {
    findings: &'a Findings,
    plan: &'a Plan,
    gate: &'a Gate,
    trials: &'a Trials,
    /// Time of a block.
    block_ns: Option<u64>,
}

impl Tester<'_> {
    fn row(&self, point: usize) -> Option<&Row> {
        self.findings.rows.iter().find(|row| row.point == point)
    }

    fn test(&self, pair: &Pair, condition: Condition, rule: &Rule) -> GateTest {
        self.told(pair, condition, decide(self.trials, pair, condition, rule))
    }

    /// By all pairs, at the level of the look that what is asked came to.
    fn also(&self, pair: &Pair, condition: Condition, tests: &[GateTest]) -> GateTest {
        let mine = |test: &&GateTest| test.label == pair.label && test.candidate == pair.candidate.to_string();
        let asked = tests.iter().filter(mine).max_by_key(|test| test.pairs);
        let share = asked.and_then(|test| Some(test.level? / error(self.plan, test.bound, tests.len())));
        let rule = Rule { within: None, ..rule(self.plan, self.gate, condition, 1) };
        let [base, candidate] = self.trials.sides(pair.points, condition.metric.name);
        let look = share.filter(|_| asked.is_some_and(|test| !test.open)).and_then(|share| {
            gate::look([&base[0], &base[1]], [&candidate[0], &candidate[1]], &rule, rule.error * share.min(1.0))
        });
        self.told(pair, condition, look)
    }

    fn told(&self, pair: &Pair, condition: Condition, found: Option<Decided>) -> GateTest {
        let reason = self.no_verdict(pair, found.as_ref());
        let verdict = match (&reason, found.map(|found| found.verdict)) {
            (Some(_), _) => GateVerdict::NoVerdict,
            (None, Some(Verdict::Worse)) => GateVerdict::Worse,
            (None, Some(Verdict::NotWorse)) => GateVerdict::NotWorse,
            (None, Some(Verdict::Undecided) | None) => GateVerdict::Undecided,
        };
        let more_pairs =
            found.as_ref().filter(|_| verdict == GateVerdict::Undecided).and_then(|found| more(found, condition.bound));
        GateTest {
            label: pair.label.clone(),
            candidate: pair.candidate.to_string(),
            metric: condition.metric.name.to_owned(),
            bound: condition.bound,
            verdict,
            reason,
            open: found.is_some_and(|found| found.ended.is_none()),
            pairs: found.map_or(0, |found| found.pairs as u64),
            p: found.map(|found| found.p),
            level: found.map(|found| found.level),
            ratio: found.and_then(|found| found.ratio).map(Into::into),
            mean_ratio: found.and_then(|found| found.mean).map(Into::into),
            base_mean: self.trials.mean(pair.points[0], condition.metric.name),
            candidate_mean: self.trials.mean(pair.points[1], condition.metric.name),
            more_pairs,
            more_ns: more_pairs.zip(self.block_ns).map(|(pairs, ns)| pairs.saturating_mul(ns)),
        }
    }

    /// Why pairs say nothing of the candidate.
    fn no_verdict(&self, pair: &Pair, found: Option<&Decided>) -> Option<String> {
        let names = [&self.gate.base, &pair.candidate];
        let rows = pair.points.into_iter().zip(names).filter_map(|(point, name)| Some((self.row(point)?, name)));
        let rows = rows.collect::<Vec<_>>();
        // What was not measured at all says more than how the other was.
        if let Some((row, name)) = rows.iter().find(|(row, _)| row.n == 0) {
            return Some(format!("{name}: {}", row.state.reason().unwrap_or("no trial succeeded")));
        }
        if let Some((row, name)) = rows.iter().find(|(row, _)| row.is_marked()) {
            let marks = row.marks.iter().map(|mark| mark.text()).collect::<Vec<_>>().join(", ");
            return Some(format!("{name} is {marks}"));
        }
        if self.plan.trials.quick {
            return Some("a quick run gives none".to_owned());
        }
        let is_over = self.trials.is_over || self.trials.is_given_up(pair.points);
        match found {
            None if is_over => Some("no pair of trials has this metric".to_owned()),
            Some(found) if is_over && found.pairs < gate::FIRST_LOOK as usize => {
                Some(format!("{}, {} needed", count(found.pairs as u64, "pair"), gate::FIRST_LOOK))
            }
            _ => None,
        }
    }
}

/// So many more pairs would likely decide: widths go with the root of the number of pairs, and the ratio lies as far from the bound as it does now.
fn more(found: &Decided, bound: f64) -> Option<u64> {
    let ratio = found.ratio?;
    let half = (ratio.high.ln() - ratio.low.ln()) / 2.0;
    let distance = (ratio.point.ln() - bound.ln()).abs();
    let pairs = found.pairs as f64;
    let needed = pairs * (half / distance).powi(2);
    (needed.is_finite() && needed < MORE_MAX).then(|| (needed - pairs).max(1.0).ceil() as u64)
}

/// The sentences of an answer.
pub fn sentences(found: &GateFinding) -> Vec<String> {
    let mut texts = found.tests.iter().map(|test| sentence(found, test)).collect::<Vec<_>>();
    texts.extend(found.null.iter().map(|test| null_sentence(found, test)));
    texts
}

fn sentence(found: &GateFinding, test: &GateTest) -> String {
    let at = if test.label.is_empty() { String::new() } else { format!(" at {}", test.label) };
    let GateTest { candidate, .. } = test;
    let base = &found.base;
    let condition = Metric::named(&test.metric).filter(|_| found.fail_if.is_some());
    let condition = condition.map(|metric| study::gate::Condition { metric, bound: test.bound }.to_string());
    if let Some(reason) = &test.reason {
        let on = condition.map_or(String::new(), |condition| format!(" by `{condition}`"));
        return format!("No verdict on {candidate}{at}{on}: {reason}.");
    }
    let noun = Metric::noun_of(&test.metric);
    let pairs = count(test.pairs, "pair");
    let relation = match &test.ratio {
        Some(ratio) => format!("{noun} {} {base}", crate::number::relation(ratio)),
        None => format!("{noun} not compared"),
    };
    match (test.verdict, condition) {
        (GateVerdict::Worse, Some(condition)) => format!("{candidate} fails `{condition}`{at}: {relation} ({pairs})."),
        (GateVerdict::NotWorse, Some(condition)) => {
            format!("{candidate} passes `{condition}`{at}: {relation} ({pairs}).")
        }
        (_, Some(condition)) => {
            format!("Undecided whether {candidate} fails `{condition}`{at}: {relation} ({pairs}){}.", wanting(test))
        }
        (GateVerdict::Worse, None) => format!("{candidate} is worse than {base}{at}: {relation} ({pairs})."),
        (GateVerdict::NotWorse, None) => format!("{candidate} is better than {base}{at}: {relation} ({pairs})."),
        (_, None) => {
            format!("No difference between {candidate} and {base} shown{at}: {relation} ({pairs}){}.", wanting(test))
        }
    }
}

/// What would have been decided, and what it would take.
fn wanting(test: &GateTest) -> String {
    let mut text = String::new();
    if let (Some(ratio), true) = (&test.ratio, test.bound == 1.0) {
        let half_width = ((ratio.high.ln() - ratio.low.ln()) / 2.0).exp_m1();
        if is_unbounded(half_width) {
            return "; requests without a response leave it open how large it is".to_owned();
        }
        return format!("; a difference of about {} would have been", percent(COULD_SHOW * half_width));
    }
    if let (Some(ratio), true) = (&test.ratio, test.bound != 1.0) {
        let is_higher_better = Metric::named(&test.metric).is_some_and(|metric| metric.better == Better::Higher);
        let bound = if is_higher_better { (ratio.low * 1000.0).floor() } else { (ratio.high * 1000.0).ceil() } / 1000.0;
        text += &format!("; a limit of {bound} would have passed");
    }
    if let (Some(pairs), Some(ns)) = (test.more_pairs, test.more_ns) {
        text += &format!("; about {} more, {}, would likely decide", count(pairs, "pair"), duration(ns));
    }
    text
}

/// What pairs say so far, for somebody who watches.
#[derive(Clone, Debug)]
pub struct Live {
    base: usize,
    candidate: usize,
    condition: (&'static Metric, f64),
    values: [BTreeMap<u32, f64>; 2],
}

impl Live {
    /// Of the first candidate and what is asked first; `None`: the plan has no gate.
    pub fn new(plan: &Plan) -> Option<Self> {
        let gate = plan.gate.as_ref()?;
        let pair = pairs(plan, gate).into_iter().find(|pair| !is_null(gate, pair))?;
        let condition = conditions(plan, gate).into_iter().next()?;
        let [base, candidate] = pair.points;
        Some(Self { base, candidate, condition: (condition.metric, condition.bound), values: Default::default() })
    }

    /// Takes a record; returns a line after each pair, and whether that is a look, at which something may be decided.
    pub fn recorded(&mut self, plan: &Plan, record: &Record) -> Option<(String, bool)> {
        let side = [self.base, self.candidate].iter().position(|point| *point == record.point)?;
        let (metric, _) = self.condition;
        let value = value::metric_value(record, metric.name, value::level(&plan.trials))?;
        self.values[side].insert(record.block, value);
        let other = self.values[1 - side].get(&record.block);
        other?;
        let [base, candidate] = &self.values;
        let both = base.iter().filter_map(|(block, base)| Some((*base, *candidate.get(block)?)));
        let pairs = stats::pairs::Pairs::new(both)?;
        let so_far = count(pairs.len() as u64, "pair");
        let is_look = gate::looks(plan.trials.max).iter().any(|(look, _)| *look as usize == pairs.len());
        let text = match pairs.typical(value::level(&plan.trials)) {
            Some(ratio) => {
                let gate = plan.gate.as_ref()?;
                format!("{so_far}: {} {} {}", metric.noun, crate::number::relation(&ratio.into()), gate.base)
            }
            None => so_far,
        };
        Some((text, is_look))
    }
}

/// A span of time in words.
pub fn duration(ns: u64) -> String {
    match ns as f64 / 1e9 {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5_400.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

fn null_sentence(found: &GateFinding, test: &GateTest) -> String {
    let base = &found.base;
    let scatter = found.null_scatter.map_or(String::new(), |scatter| {
        format!("; the two trials of a pair differ by {} in half of the pairs", percent(scatter))
    });
    let noun = Metric::noun_of(&test.metric);
    match (&test.ratio, test.verdict) {
        (Some(ratio), GateVerdict::Worse | GateVerdict::NotWorse) => format!(
            "A false alarm: {base} differs from itself, {noun} {} itself ({}){scatter}.",
            crate::number::relation(ratio),
            count(test.pairs, "pair"),
        ),
        (Some(ratio), GateVerdict::Undecided) => format!(
            "As it should be, no difference shown between {base} and itself: {noun} {} itself ({}){scatter}.",
            crate::number::relation(ratio),
            count(test.pairs, "pair"),
        ),
        _ => format!("{base} was not held against itself: {}.", test.reason.as_deref().unwrap_or("too few pairs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analyze, example};
    use study::gate::{FailIf, Undecided};
    use study::record::{Outcome, Run, RunState};

    /// Servers of the example as candidates of the first: 18 blocks at 4 places.
    fn gated(fail_if: Option<&str>, edit: impl FnOnce(&mut Run, &mut Vec<Record>)) -> (Run, Vec<Record>) {
        let (mut run, mut records) = example::compared();
        run.plan.gate = Some(Gate {
            of: "server".into(),
            base: Level::Text("c-epoll".into()),
            fail_if: fail_if.map(|text| FailIf::parse(text).unwrap()),
            undecided: Undecided::Pass,
            null: None,
        });
        (run.plan.trials.min, run.plan.trials.max) = (10, 18);
        // One place is enough.
        run.plan.points.iter_mut().for_each(|point| point.unrunnable = None);
        edit(&mut run, &mut records);
        (run, records)
    }

    fn found(fail_if: Option<&str>, edit: impl FnOnce(&mut Run, &mut Vec<Record>)) -> (GateFinding, Vec<String>) {
        let (run, records) = gated(fail_if, edit);
        let findings = analyze(&run, &records);
        let texts = findings.answer.iter().map(|sentence| sentence.text.clone()).collect();
        (findings.gate.unwrap(), texts)
    }

    fn test<'a>(found: &'a GateFinding, label: &str, candidate: &str) -> &'a GateTest {
        let is = |test: &&GateTest| test.label == label && test.candidate == candidate;
        found.tests.iter().find(is).unwrap_or_else(|| panic!("{label}, {candidate}: {found:#?}"))
    }

    #[test]
    fn candidates_are_held_against_their_baseline_at_each_place() {
        let (found, texts) = found(Some("latency_mean > 1.05"), |_, _| {});
        assert_eq!((found.base.as_str(), found.tests.len()), ("c-epoll", 8), "two candidates, four places");
        let go = test(&found, "cores 1, clients 80", "go");
        assert_eq!((go.verdict, go.bound, go.open), (GateVerdict::Worse, 1.05, false), "{go:#?}");
        // .05 over 8 questions, at the first look of 18 pairs at most.
        assert!((go.level.unwrap() - 0.05 / 8.0 * 0.2).abs() < 1e-12, "{go:#?}");
        assert!(go.ratio.unwrap().low > 1.05 && go.pairs == 10);
        assert!(
            texts
                .iter()
                .any(|text| text.starts_with("go fails `latency_mean > 1.05` at cores 1, clients 80: mean latency ")),
            "{texts:#?}"
        );
        assert_eq!(found.verdict, GateVerdict::Worse);
        assert!(
            found.also.iter().all(|test| test.bound == 1.0)
                && found.also.iter().any(|test| test.metric == "throughput")
        );
    }

    #[test]
    fn a_bound_far_away_is_passed_and_one_near_is_undecided() {
        let pass = found(Some("latency_mean > 3"), |_, _| {}).0;
        assert_eq!(test(&pass, "cores 1, clients 80", "go").verdict, GateVerdict::NotWorse);
        let ratio = pass.also.iter().find(|test| {
            test.metric == "latency_mean" && test.candidate == "go" && test.label == "cores 1, clients 80"
        });
        let bound = ratio.unwrap().ratio.unwrap().point;
        let (near, texts) = found(Some(&format!("latency_mean > {bound:.4}")), |_, _| {});
        assert_eq!(test(&near, "cores 1, clients 80", "go").verdict, GateVerdict::Undecided);
        let text = texts
            .iter()
            .find(|text| text.starts_with("Undecided whether go fails") && text.contains("clients 80"))
            .unwrap();
        assert!(text.contains("; a limit of "), "{text}");
    }

    #[test]
    fn without_a_condition_any_difference_is_shown() {
        let (found, texts) = found(None, |_, _| {});
        assert!(found.fail_if.is_none());
        assert!(
            texts.iter().any(|text| text.starts_with("go is worse than c-epoll at cores 1, clients 80: mean latency ")),
            "{texts:#?}"
        );
        // A base that is compared with itself: the same records under another name.
        let (found, texts) = self::found(None, |run, records| {
            run.plan.gate.as_mut().unwrap().null = Some(Level::Text("go".into()));
            let twins = records.iter().filter(|record| record.point < 4).cloned().collect::<Vec<_>>();
            for record in records.iter_mut().filter(|record| (4..8).contains(&record.point)) {
                let twin = twins.iter().find(|twin| twin.point + 4 == record.point && twin.block == record.block);
                record.outcome = twin.unwrap().outcome.clone();
            }
        });
        assert!(found.tests.iter().all(|test| test.candidate != "go") && found.null.len() == 4);
        assert!(
            texts
                .iter()
                .any(|text| text.starts_with("As it should be, no difference shown between c-epoll and itself")),
            "{texts:#?}"
        );
        assert_eq!(found.null_scatter, Some(0.0));
    }

    #[test]
    fn what_is_not_about_the_candidate_gives_no_verdict() {
        let bound = |_: &mut Run, records: &mut Vec<Record>| {
            for record in records.iter_mut().filter(|record| record.point == 5) {
                let verdict = record.verdict.as_mut().unwrap();
                verdict.limited_by = study::record::Limit::Generator;
                let Outcome::Measured(measured) = &mut record.outcome else { panic!("a trial of point 5 failed") };
                // The generator had no time to spare.
                measured.workers.iter_mut().for_each(|worker| worker.cpu_ns = measured.duration_ns);
            }
        };
        let (run, mut records) = gated(Some("latency_mean > 1.05"), |_, _| {});
        bound(&mut run.clone(), &mut records);
        let findings = analyze(&run, &records);
        let gate = findings.gate.unwrap();
        let go = test(&gate, "cores 1, clients 80", "go");
        assert_eq!(go.verdict, GateVerdict::NoVerdict, "{go:#?}");
        assert!(go.reason.as_deref().unwrap().starts_with("go is "), "{go:#?}");
    }

    #[test]
    fn a_run_that_goes_on_decides_at_looks_alone() {
        let (run, records) = gated(Some("latency_mean > 1.05"), |run, records| {
            run.state = Some(RunState::Interrupted);
            records.retain(|record| record.block < 9);
        });
        let gate = analyze(&run, &records).gate.unwrap();
        // One place is generator-bound.
        let told = gate.tests.iter().filter(|test| test.verdict != GateVerdict::NoVerdict).collect::<Vec<_>>();
        assert!(
            told.len() == 6 && told.iter().all(|test| test.verdict == GateVerdict::Undecided && test.open),
            "{told:#?}"
        );
        let plan = &run.plan;
        let refs = records.iter().map(Trial::from).collect::<Vec<_>>();
        assert_eq!(reason(plan, plan.gate.as_ref().unwrap(), &refs, 9), None);
        let (run, records) =
            gated(Some("latency_mean > 1.05"), |_, records| records.retain(|record| record.block < 10));
        let refs = records.iter().map(Trial::from).collect::<Vec<_>>();
        assert_eq!(
            reason(&run.plan, run.plan.gate.as_ref().unwrap(), &refs, 10).as_deref(),
            Some("decided after 10 blocks")
        );
    }

    #[test]
    fn questions_are_counted_for_check() {
        let (run, _) = gated(Some("latency_mean > 1.05 or throughput < 0.97"), |_, _| {});
        assert_eq!(needed(&run.plan), (16, 10));
    }
}
