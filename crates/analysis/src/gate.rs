//! Compares candidates with a baseline by pairs of trials from the same blocks ([`stats::gate`]).

use std::collections::BTreeMap;

use stats::gate::{self, Asked, Decided, Ended, Examined, Question, Rule, SUSPICIOUS_P, Side, Verdict};
use stats::pairs::{COULD_SHOW, half_width};
use study::gate::{Bound, COMPARED, Condition, Gate};
use study::metric::Metric;
use study::plan::{Level, Plan};
use study::record::Record;

use crate::comparison_groups::contender_groups;
use crate::enum_words_and_lists::all_of;
use crate::failed_requests::FailedRequests;
use crate::findings::{Findings, GateFinding, GateTest, GateVerdict, MedianRange, Row, Values};
use crate::group_by_key::{distinct, grouped};
use crate::number::{count, is_unbounded, percent, quantity};
use crate::trial_position_and_values::Trial;
use crate::{number, value};

pub(crate) const MAIN_METRICS: [&str; 6] =
    ["throughput", "latency_mean", "latency_p50", "latency_p99", "subject_cpu_per_request", "subject_rss"];

const MORE_MAX: f64 = 100_000.0;

struct Trials {
    by_point: Vec<BTreeMap<u32, Values>>,
    /// Number of trials per point, including failed ones.
    count: Vec<u32>,
    /// Whether no more trials follow, for a reason that does not depend on their values.
    is_over: bool,
}

impl Trials {
    fn new(plan: &Plan, records: &[Trial<'_>], is_over: bool) -> Self {
        let points = plan.points.len();
        let mut trials = Self { by_point: vec![BTreeMap::new(); points], count: vec![0; points], is_over };
        records.iter().for_each(|record| trials.add(plan, record));
        trials
    }

    fn add(&mut self, plan: &Plan, record: &Trial<'_>) {
        self.count[record.point] += 1;
        if record.is_measured {
            self.by_point[record.point].insert(record.block, (record.values)(value::level(&plan.trials)));
        }
    }

    fn sides(&self, points: [usize; 2], metric: &str) -> [Side; 2] {
        let [base, candidate] = points.map(|point| &self.by_point[point]);
        let blocks = base.keys().filter(|block| candidate.contains_key(block)).collect::<Vec<_>>();
        points.map(|point| {
            let bound = |block: &&u32| {
                let (values, at_least) = self.by_point[point].get(block)?;
                Some(stats::Bound { value: values.get(metric)?, at_least: at_least.contains(metric) })
            };
            blocks.iter().map(bound).collect()
        })
    }

    fn is_given_up(&self, points: [usize; 2]) -> bool {
        let blocks = self.count.iter().copied().max().unwrap_or(0);
        points.iter().any(|&point| self.count[point] < blocks)
    }

    fn examine(&self, pair: &Pair, asked: &[Asking], rule: &Rule) -> Option<Examined> {
        let questions = asked.iter().map(|asked| self.question(pair, *asked)).collect::<Vec<_>>();
        gate::examine(&questions, rule, self.is_over || self.is_given_up(pair.points))
    }

    fn question(&self, pair: &Pair, asked: Asking) -> Question {
        let [base, candidate] = self.sides(pair.points, asked.metric.name);
        Question { asked: asked.question(), higher_is_better: asked.metric.higher_is_better, base, candidate }
    }
}

pub(crate) struct Pair {
    label: String,
    candidate: Level,
    pub(crate) points: [usize; 2],
}

/// A test of one metric, against `bound` or, without one, for any difference.
#[derive(Clone, Copy)]
struct Asking {
    metric: &'static Metric,
    bound: Option<Bound>,
}

impl Asking {
    fn question(&self) -> Asked {
        match self.bound {
            None => Asked::Difference,
            Some(Bound::Factor(factor)) => Asked::Ratio(factor),
            Some(Bound::Absolute(share)) if self.metric.is_error_share() => Asked::Share(share),
            Some(Bound::Absolute(value)) => Asked::Value(value),
            Some(Bound::Excess(share)) => Asked::Excess(share),
        }
    }
}

pub(crate) fn pairs(plan: &Plan, gate: &Gate) -> (Vec<Pair>, Vec<Pair>) {
    let level = |point: usize| plan.points[point].factors.get(&gate.of);
    let of_place = |place: crate::comparison_groups::ContenderGroup| {
        let base = place.points.iter().copied().find(|&point| level(point) == Some(&gate.base));
        let candidates = place.points.iter().copied().filter(|&point| level(point) != Some(&gate.base));
        let pair = |point: usize| {
            Some(Pair { label: place.label.clone(), candidate: level(point)?.clone(), points: [base?, point] })
        };
        candidates.filter_map(pair).collect::<Vec<_>>()
    };
    let pairs = contender_groups(plan, &gate.of).into_iter().flat_map(of_place);
    pairs.partition(|pair| gate.null.as_ref() == Some(&pair.candidate))
}

/// Lists the tests of a gate. Failed requests are always tested, by a condition or as an excess over the baseline.
fn asked(plan: &Plan, gate: &Gate) -> Vec<Asking> {
    let of_condition = |condition: &Condition| Asking { metric: condition.metric, bound: Some(condition.bound) };
    let own = std::slice::from_ref(&plan.trials.metric);
    let metrics = if gate.metrics.is_empty() { own } else { &gate.metrics };
    let metrics = metrics.iter().filter_map(|name| Metric::named(name));
    let mut asked = match &gate.fail_if {
        Some(fail_if) => fail_if.conditions.iter().map(of_condition).collect::<Vec<_>>(),
        None => metrics.map(|metric| Asking { metric, bound: None }).collect(),
    };
    let has_errors = |asked: &Asking| asked.metric.is_error_share() && asked.bound.is_some();
    asked.retain(|asked| has_errors(asked) || !asked.metric.is_error_share());
    if !asked.iter().any(has_errors) {
        let bound = Some(Bound::Excess(gate.allow_errors));
        asked.extend(Metric::named("error_share").map(|metric| Asking { metric, bound }));
    }
    asked
}

fn rule(plan: &Plan, gate: &Gate, pairs: usize) -> Rule {
    Rule {
        error: (1.0 - value::level(&plan.trials)) / pairs.max(1) as f64,
        pairs_max: plan.trials.max.clamp(1, gate::PAIRS_MAX),
        within: plan.trials.comparison.filter(|_| gate.fail_if.is_none()),
    }
}

/// Returns why no further block is needed; `None` if one is needed. Called between blocks.
pub(crate) fn reason(plan: &Plan, gate: &Gate, records: &[Trial<'_>], blocks: u32) -> Option<String> {
    let is_over = blocks >= plan.trials.max;
    if plan.trials.quick {
        return is_over.then(|| format!("as requested: {}", count(u64::from(blocks), "block")));
    }
    let (_, pairs) = pairs(plan, gate);
    // Values of trials are computed only at looks.
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
    let (asked, rule) = (asked(plan, gate), rule(plan, gate, pairs.len()));
    let examined = pairs.iter().map(|pair| (pair, trials.examine(pair, &asked, &rule))).collect::<Vec<_>>();
    let so_far = count(u64::from(blocks), "block");
    let is_worse = |found: &Option<Decided>| found.is_some_and(|found| found.verdict == Verdict::Worse);
    let is_failed = |(_, found): &(&Pair, Option<Examined>)| {
        found.as_ref().is_some_and(|examined| examined.ended.is_some() && examined.found.iter().any(is_worse))
    };
    let is_open = |(pair, found): &(&Pair, Option<Examined>)| match found {
        Some(found) => found.ended.is_none(),
        None => !trials.is_given_up(pair.points) && !is_over,
    };
    let ends = examined.iter().filter_map(|(_, found)| found.as_ref()?.ended).collect::<Vec<_>>();
    Some(match () {
        () if gate.fail_if.is_some() && examined.iter().any(is_failed) => format!("decided after {so_far}"),
        () if examined.iter().any(is_open) => return None,
        () if ends.is_empty() => format!("no pairs after {so_far}"),
        () if ends.iter().all(|end| *end == Ended::Decided) => format!("decided after {so_far}"),
        () if ends.contains(&Ended::Pairs) => format!("undecided after {so_far}, the maximum"),
        () => format!("precise enough after {so_far}"),
    })
}

pub(crate) fn needed(plan: &Plan, gate: &Gate) -> (usize, u32) {
    let is_runnable = |pair: &Pair| pair.points.iter().all(|&point| plan.points[point].unrunnable.is_none());
    let pairs = pairs(plan, gate).1.iter().filter(|pair| is_runnable(pair)).count();
    (pairs * asked(plan, gate).len(), gate::FIRST_LOOK)
}

/// Tests the candidates of a plan. `is_over` means that the run ended without interruption.
pub(crate) fn gate(findings: &Findings, plan: &Plan, gate: &Gate, records: &[Trial<'_>], is_over: bool) -> GateFinding {
    let trials = Trials::new(plan, records, is_over && !plan.trials.quick);
    let (null, pairs) = pairs(plan, gate);
    let asked = asked(plan, gate);
    let cost_ns = records.iter().map(|record| record.elapsed_ns).fold(0, u64::saturating_add);
    let blocks = trials.count.iter().copied().max().unwrap_or(0);
    let tester = Tester { findings, plan, gate, trials: &trials, block_ns: cost_ns.checked_div(u64::from(blocks)) };
    let of_pair = |pair: &Pair| tester.tests(pair, &asked, &rule(plan, gate, pairs.len()));
    let (tests, also) = pairs.iter().map(of_pair).unzip::<_, _, Vec<_>, Vec<_>>();
    let (tests, also) = (tests.concat(), also.concat());
    let metrics = distinct(asked.iter().map(|asked| asked.metric).filter(|metric| !metric.is_error_share()));
    let differs = metrics.into_iter().map(|metric| Asking { metric, bound: None }).collect::<Vec<_>>();
    let of_null = |pair: &Pair| tester.tests(pair, &differs, &rule(plan, gate, 1)).0;
    let verdict = tests.iter().map(|test| test.verdict).max().unwrap_or(GateVerdict::NoVerdict);
    let null_scatter = null.first().and_then(|pair| scatter(&trials, pair, asked.first()?.metric.name));
    let null = null.iter().flat_map(of_null).collect();
    let (factor, base) = (gate.of.clone(), gate.base.to_string());
    let fail_if = gate.fail_if.as_ref().map(ToString::to_string);
    let &Gate { allow_errors, undecided, .. } = gate;
    GateFinding { factor, base, fail_if, allow_errors, undecided, verdict, tests, also, null, null_scatter, cost_ns }
}

fn scatter(trials: &Trials, pair: &Pair, metric: &str) -> Option<f64> {
    let [base, again] = trials.sides(pair.points, metric).map(|side| side.least);
    let ratios = base.iter().zip(&again).filter_map(|(base, again)| Some(((*again)? / (*base)?).ln().abs()));
    MedianRange::of(ratios).map(|ratios| ratios.median.exp_m1())
}

struct Tester<'a> {
    findings: &'a Findings,
    plan: &'a Plan,
    gate: &'a Gate,
    trials: &'a Trials,
    block_ns: Option<u64>,
}

impl Tester<'_> {
    fn row(&self, point: usize) -> Option<&Row> {
        self.findings.rows.iter().find(|row| row.point == point)
    }

    fn tests(&self, pair: &Pair, asked: &[Asking], rule: &Rule) -> (Vec<GateTest>, Vec<GateTest>) {
        let examined = self.trials.examine(pair, asked, rule);
        let found = |at: usize| examined.as_ref().and_then(|examined| examined.found[at]);
        let is_open = examined.as_ref().is_some_and(|examined| examined.ended.is_none());
        let test = |(at, asked): (usize, &Asking)| self.gate_test(pair, *asked, found(at), is_open);
        let mut tests = asked.iter().enumerate().map(test).collect::<Vec<_>>();
        let is_shown = |metric: &Metric| {
            let has_ratio = |asked: &Asking| !matches!(asked.bound, Some(Bound::Absolute(_)));
            asked.iter().any(|asked| asked.metric == metric && has_ratio(asked))
        };
        let is_beside = |metric: &&Metric| self.findings.metric_info(metric.name).is_some() && !is_shown(metric);
        let also = COMPARED.into_iter().filter_map(Metric::named).filter(|metric| is_beside(metric)).map(|metric| {
            let asked = Asking { metric, bound: None };
            let error = |examined: &Examined| (1.0 - value::level(&self.plan.trials)) * examined.share;
            let look = examined.as_ref().filter(|_| !is_open);
            let look = look.and_then(|of| gate::also(&self.trials.question(pair, asked), of.pairs, error(of)));
            self.gate_test(pair, asked, look, false)
        });
        let mut also = also.collect::<Vec<_>>();
        self.without_failures(&mut tests, &mut also);
        (tests, also)
    }

    /// Withdraws verdicts in favor of the side that fails more requests, since failing may cost less than responding.
    fn without_failures(&self, tests: &mut [GateTest], also: &mut [GateTest]) {
        let Some(errors) = tests.iter().find(|test| test.is_about_errors()) else { return };
        let candidate_fails = errors.verdict == GateVerdict::Worse;
        let base_fails = errors.difference.is_some_and(|difference| difference.high < 0.0);
        let failing = match (candidate_fails, base_fails) {
            (true, _) => errors.candidate.clone(),
            (false, true) => self.gate.base.to_string(),
            (false, false) => return,
        };
        for test in tests.iter_mut().chain(also).filter(|test| !test.is_about_errors()) {
            let is_claim = match (test.verdict, test.bound) {
                (GateVerdict::NotWorse, Some(_)) => candidate_fails,
                // An absolute limit applies whatever the baseline does.
                (GateVerdict::Worse, Some(bound)) => !candidate_fails && !matches!(bound, Bound::Absolute(_)),
                (GateVerdict::Worse | GateVerdict::NotWorse, None) => true,
                (GateVerdict::Undecided | GateVerdict::NoVerdict, _) => false,
            };
            if is_claim {
                test.verdict = GateVerdict::NoVerdict;
                test.reason = Some(format!("{failing} fails more requests"));
            }
        }
    }

    fn gate_test(&self, pair: &Pair, asked: Asking, found: Option<Decided>, open: bool) -> GateTest {
        let reason = self.no_verdict(pair, asked, found.as_ref());
        let is_excess = matches!(asked.bound, Some(Bound::Excess(_)));
        // The candidate passes unless there is some evidence that it fails more requests than the baseline.
        let passes = |found: &Decided| is_excess && self.gate.fail_if.is_some() && found.p_worse > SUSPICIOUS_P;
        let verdict = match found {
            _ if reason.is_some() => GateVerdict::NoVerdict,
            Some(Decided { verdict: Verdict::Worse, .. }) => GateVerdict::Worse,
            Some(found) if found.verdict == Verdict::NotWorse || passes(&found) => GateVerdict::NotWorse,
            _ => GateVerdict::Undecided,
        };
        let more_pairs = found.as_ref().filter(|_| verdict == GateVerdict::Undecided);
        let more_pairs = more_pairs.and_then(|found| more(found, asked.bound));
        let estimate = found.and_then(|found| found.estimate);
        let of = |is: fn(Asked) -> bool| estimate.filter(|_| is(asked.question()));
        let typical = |side: usize| found.map(|found| found.typical[side]);
        let row = |point| self.row(point).filter(|_| asked.metric.is_error_share());
        let failed_by = |point| row(point).and_then(|row| FailedRequests::from(row).most_frequent());
        GateTest {
            label: pair.label.clone(),
            candidate: pair.candidate.to_string(),
            metric: asked.metric.name.to_owned(),
            bound: asked.bound,
            verdict,
            reason,
            open,
            pairs: found.map_or(0, |found| found.pairs as u64),
            p: found.map(|found| found.p()),
            level: found.map(|found| found.level),
            ratio: of(|asked| matches!(asked, Asked::Difference | Asked::Ratio(_))),
            value: of(|asked| matches!(asked, Asked::Value(_) | Asked::Share(_))),
            difference: of(|asked| matches!(asked, Asked::Excess(_))),
            base_value: typical(0),
            candidate_value: typical(1),
            failed_by: pair.points.map(|point| failed_by(point).unwrap_or_default()),
            more_pairs,
            more_ns: more_pairs.zip(self.block_ns).map(|(pairs, ns)| pairs.saturating_mul(ns)),
        }
    }

    fn no_verdict(&self, pair: &Pair, asked: Asking, found: Option<&Decided>) -> Option<String> {
        let names = [&self.gate.base, &pair.candidate];
        let rows = pair.points.into_iter().zip(names).filter_map(|(point, name)| Some((self.row(point)?, name)));
        let rows = rows.collect::<Vec<_>>();
        let why = |row: &Row| row.state.reason().unwrap_or("no trial succeeded").to_owned();
        let unmeasured = rows.iter().find(|(row, _)| row.n == 0).map(|(row, name)| format!("{name}: {}", why(row)));
        // Other work on the machine may be why an absolute limit was exceeded, so a mark for it prevents a verdict.
        let is_broken = matches!(asked.bound, Some(Bound::Absolute(_)))
            && found.is_some_and(|found| found.verdict == Verdict::Worse);
        let forbidding = |row: &Row| row.forbidding(asked.metric, is_broken);
        let marked = rows.iter().find_map(|(row, name)| Some(format!("{name} is {}", forbidding(row)?)));
        let is_over = self.trials.is_over || self.trials.is_given_up(pair.points);
        Some(match found {
            // A missing measurement is a better reason than any mark of the other point.
            _ if let Some(why) = unmeasured.or(marked) => why,
            _ if self.plan.trials.quick => "a quick run gives none".to_owned(),
            None if is_over => "no pair of trials has this metric".to_owned(),
            Some(found) if is_over && found.pairs < gate::FIRST_LOOK as usize => {
                format!("{}, {} needed", count(found.pairs as u64, "pair"), gate::FIRST_LOOK)
            }
            _ => return None,
        })
    }
}

/// Estimates the additional pairs that would probably decide, if the estimate stays the same and intervals shrink with
/// the square root of the number of pairs. `None` if unknown, or if 100,000 pairs or more are needed.
fn more(found: &Decided, bound: Option<Bound>) -> Option<u64> {
    let (Bound::Factor(bound) | Bound::Absolute(bound)) = bound? else { return None };
    let estimate = found.estimate?;
    let half = (estimate.high.ln() - estimate.low.ln()) / 2.0;
    let distance = (estimate.point.ln() - bound.ln()).abs();
    let pairs = found.pairs as f64;
    let needed = pairs * (half / distance).powi(2);
    (needed.is_finite() && needed < MORE_MAX).then(|| (needed - pairs).max(1.0).ceil() as u64)
}

/// Describes the results of a gate, one sentence per entry. The comparison of the baseline with itself comes last.
pub fn sentences(found: &GateFinding) -> Vec<String> {
    let of_pair = if found.fail_if.is_some() { of_conditions } else { of_differences };
    let pairs = found.tests.chunk_by(|a, b| (&a.label, &a.candidate) == (&b.label, &b.candidate));
    pairs.flat_map(|tests| of_pair(found, tests)).chain(null_sentences(found)).collect()
}

fn at(test: &GateTest) -> String {
    if test.label.is_empty() { String::new() } else { format!(" at {}", test.label) }
}

/// Describes one candidate's results. Errors come first if they fail the candidate, and are omitted if there are none.
fn of_conditions(found: &GateFinding, tests: &[GateTest]) -> Vec<String> {
    let is_excess = |test: &&GateTest| matches!(test.bound, Some(Bound::Excess(_)));
    let errors = tests.iter().find(is_excess);
    let is_worse = |test: &&GateTest| test.verdict == GateVerdict::Worse;
    let has_errors = |test: &&GateTest| test.candidate_value.is_some_and(|share| share > 0.0) && test.reason.is_none();
    let first = errors.filter(is_worse).map(|test| test_sentence(found, test));
    let rest = tests.iter().filter(|test| !is_excess(test)).map(|test| test_sentence(found, test));
    let last = errors.filter(|test| !is_worse(test) && has_errors(test)).map(|test| test_sentence(found, test));
    first.into_iter().chain(rest).chain(last).collect()
}

/// Describes the result of one test in a sentence.
pub fn test_sentence(found: &GateFinding, test: &GateTest) -> String {
    let (at, pairs) = (at(test), count(test.pairs, "pair"));
    let (GateTest { candidate, .. }, base) = (test, &found.base);
    let bound = test.bound.filter(|bound| !matches!(bound, Bound::Excess(_)));
    let condition = Metric::named(&test.metric).zip(bound).map(|(metric, bound)| Condition { metric, bound });
    if let Some(reason) = &test.reason {
        let by = match condition {
            Some(condition) => format!(" by `{condition}`"),
            None if tests_several(found) => format!(" by {}", Metric::noun_of(&test.metric)),
            None => String::new(),
        };
        return format!("No verdict on {candidate}{at}{by}: {reason}.");
    }
    let relation = relation(found, test);
    let is_excess = test.bound.is_some() && found.fail_if.is_some();
    let is_decided = matches!(test.verdict, GateVerdict::Worse | GateVerdict::NotWorse);
    let claim = match (test.verdict, condition) {
        (GateVerdict::Worse, Some(condition)) => format!("{candidate} fails `{condition}`"),
        (GateVerdict::NotWorse, Some(condition)) => format!("{candidate} passes `{condition}`"),
        (_, Some(condition)) => format!("Undecided whether {candidate} fails `{condition}`"),
        (GateVerdict::Worse, None) if is_excess => format!("{candidate} fails by its errors"),
        (_, None) if is_excess => format!("{candidate} is not shown to fail more requests than {base}"),
        (GateVerdict::Worse, None) => format!("{candidate} is worse than {base}"),
        (GateVerdict::NotWorse, None) => format!("{candidate} is better than {base}"),
        (_, None) => format!("No difference between {candidate} and {base} shown"),
    };
    let wanting = if is_decided || condition.is_none() && is_excess { String::new() } else { wanting(test) };
    format!("{claim}{at}: {relation} ({pairs}){wanting}.")
}

fn tests_several(found: &GateFinding) -> bool {
    found.tests.iter().any(|test| Some(&test.metric) != found.tests.first().map(|first| &first.metric))
}

fn relation(found: &GateFinding, test: &GateTest) -> String {
    let (noun, base) = (Metric::noun_of(&test.metric), &found.base);
    if test.is_about_errors() {
        let [base_by, by] = &test.failed_by;
        let base_by = if base_by == by { "" } else { base_by };
        let failed = |share: Option<f64>, of: &str, by: &str| match share.filter(|share| *share > 0.0) {
            Some(share) if by.is_empty() => format!("{} of {of}", percent(share)),
            Some(share) => format!("{} of {of} ({by})", percent(share)),
            None => format!("none of {of}"),
        };
        let own = failed(test.candidate_value, "its requests failed", by);
        return format!("{own}, {}", failed(test.base_value, &format!("{base}'s"), base_by));
    }
    let unit = Metric::named(&test.metric).map_or("", |metric| metric.unit);
    match (&test.ratio, &test.value) {
        (Some(ratio), _) => format!("{noun} {} {base}", number::relation(ratio)),
        (_, Some(value)) => {
            let [low, high] = [value.low, value.high].map(|end| quantity(end, unit));
            format!("{noun} {} [{low}, {high}]", quantity(value.point, unit))
        }
        _ => format!("{noun} not compared"),
    }
}

fn of_differences(found: &GateFinding, tests: &[GateTest]) -> Vec<String> {
    let Some(first) = tests.first() else { return Vec::new() };
    let (at, candidate, base) = (at(first), &first.candidate, &found.base);
    let of = |verdict| tests.iter().filter(|test| test.verdict == verdict).collect::<Vec<_>>();
    let (worse, better) = (of(GateVerdict::Worse), of(GateVerdict::NotWorse));
    let open = of(GateVerdict::Undecided).into_iter().filter(|test| test.p.is_some()).collect::<Vec<_>>();
    let relations = |tests: &[&GateTest]| {
        let (errors, others) = tests.iter().partition::<Vec<&GateTest>, _>(|test| test.is_about_errors());
        errors.iter().chain(&others).map(|test| relation(found, test)).collect::<Vec<_>>().join(", ")
    };
    let nouns = |tests: &[&GateTest]| all_of(&tests.iter().map(|test| noun(test)).collect::<Vec<_>>(), "or");
    let pairs = count(tests.iter().map(|test| test.pairs).max().unwrap_or(0), "pair");
    let mut texts = Vec::new();
    if worse.is_empty() && better.is_empty() {
        let Some((first, rest)) = open.split_first() else { return no_verdicts(found, tests) };
        texts.push(test_sentence(found, first));
        texts.extend((!rest.is_empty()).then(|| format!("Nor in {}.", nouns(rest))));
    } else {
        let (word, relations) = match (better.is_empty(), worse.is_empty()) {
            (true, _) => ("worse", relations(&worse)),
            (_, true) => ("better", relations(&better)),
            _ => ("both better and worse", format!("{}, but {}", relations(&better), relations(&worse))),
        };
        texts.push(format!("{candidate} is {word} than {base}{at}: {relations} ({pairs})."));
        if worse.iter().chain(&better).any(|test| test.is_about_errors()) {
            texts.push("No other metric is judged: requests that fail may cost less.".to_owned());
            return texts;
        }
        let open = open.iter().copied().filter(|test| !test.is_about_errors()).collect::<Vec<_>>();
        texts.extend((!open.is_empty()).then(|| format!("No difference shown in {}.", nouns(&open))));
    }
    let errors = open.iter().find(|test| test.is_about_errors());
    let errors = errors.filter(|test| test.candidate_value.is_some_and(|share| share > 0.0));
    texts.extend(errors.map(|test| format!("For {candidate}, {}.", relation(found, test))));
    texts.extend(no_verdicts(found, tests));
    texts
}

fn no_verdicts(found: &GateFinding, tests: &[GateTest]) -> Vec<String> {
    let reasons = grouped(tests.iter().filter_map(|test| Some((test.reason.as_deref()?, test))));
    let sentence = |(reason, of): (&str, Vec<&GateTest>)| {
        let (at, candidate) = (at(of[0]), &of[0].candidate);
        let nouns = all_of(&of.iter().map(|test| noun(test)).collect::<Vec<_>>(), "and");
        let is_all = of.len() == tests.len() || !tests_several(found);
        let of_what = if is_all { String::new() } else { format!("{nouns} of ") };
        format!("No verdict on {of_what}{candidate}{at}: {reason}.")
    };
    reasons.into_iter().map(sentence).collect()
}

fn noun(test: &GateTest) -> &str {
    if test.is_about_errors() { "errors" } else { Metric::noun_of(&test.metric) }
}

fn wanting(test: &GateTest) -> String {
    let mut text = match (&test.ratio, test.bound) {
        (Some(ratio), None) if is_unbounded(half_width(ratio)) => {
            "; requests without a response leave it open how large it is".to_owned()
        }
        (Some(ratio), None) => {
            format!("; a difference of about {} would have been", percent(COULD_SHOW * half_width(ratio)))
        }
        (Some(ratio), Some(Bound::Factor(_))) => {
            let is_higher_better = Metric::named(&test.metric).is_some_and(|metric| metric.higher_is_better);
            let bound = if is_higher_better { (ratio.low * 1e3).floor() } else { (ratio.high * 1e3).ceil() } / 1e3;
            format!("; a limit of {bound} would have passed")
        }
        _ => String::new(),
    };
    if let (Some(pairs), Some(ns)) = (test.more_pairs, test.more_ns) {
        text += &format!("; about {} more ({}) would likely decide", count(pairs, "pair"), duration(ns));
    }
    text
}

/// Result of a gate's first test while the run is in progress, computed as in the report.
pub struct Live {
    pair: Pair,
    asked: Vec<Asking>,
    rule: Rule,
    trials: Trials,
}

impl Live {
    /// Creates the result of the first candidate, without trials; `None` without a gate.
    pub fn new(plan: &Plan) -> Option<Self> {
        let gate = plan.gate.as_ref()?;
        let (_, pairs) = pairs(plan, gate);
        let rule = rule(plan, gate, pairs.len());
        let pair = pairs.into_iter().next()?;
        Some(Self { pair, asked: asked(plan, gate), rule, trials: Trials::new(plan, &[], false) })
    }

    /// Adds a record. If this completes a pair, returns a line on the result and whether the gate may end; else `None`.
    pub fn recorded(&mut self, plan: &Plan, record: &Record) -> Option<(String, bool)> {
        self.trials.add(plan, &Trial::from(record));
        let has = |point: usize| self.trials.by_point[point].contains_key(&record.block);
        if !self.pair.points.contains(&record.point) || !self.pair.points.iter().all(|&point| has(point)) {
            return None;
        }
        let gate = plan.gate.as_ref()?;
        let asked = self.asked.first()?;
        let questions = self.asked.iter().map(|asked| self.trials.question(&self.pair, *asked)).collect::<Vec<_>>();
        let examined = gate::examine(&questions, &self.rule, false)?;
        let pairs = examined.pairs as u64;
        let is_look = gate::looks(self.rule.pairs_max).iter().any(|(look, _)| u64::from(*look) == pairs);
        let mut text = count(pairs, "pair");
        if let Some(estimate) = examined.found[0].and_then(|found| found.estimate) {
            let value = match asked.question() {
                Asked::Difference | Asked::Ratio(_) => format!("{} {}", number::relation(&estimate), gate.base),
                _ => quantity(estimate.point, asked.metric.unit),
            };
            text += &format!(": {} {value}", asked.metric.noun);
        }
        let excess = self.asked.iter().zip(&examined.found).find(|(asked, _)| asked.metric.is_error_share());
        let share = excess.and_then(|(_, found)| Some((*found)?.typical[1])).filter(|share| *share > 0.0);
        text += &share.map_or(String::new(), |share| format!("; {} of requests failed", percent(share)));
        Some((text, is_look))
    }
}

/// Formats a duration in ns as seconds, minutes or hours.
pub fn duration(ns: u64) -> String {
    match ns as f64 / 1e9 {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5_400.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

fn null_sentences(found: &GateFinding) -> Vec<String> {
    let base = &found.base;
    let scatter = found.null_scatter.map(percent);
    let scatter =
        scatter.map_or(String::new(), |by| format!("; the two trials of a pair differ by {by} in half of the pairs"));
    let of = |tests: &[GateTest]| {
        let shown = |test: &&GateTest| matches!(test.verdict, GateVerdict::Worse | GateVerdict::NotWorse);
        let told = |test: &GateTest| {
            let ratio = test.ratio.as_ref()?;
            Some(format!("{} {} itself", Metric::noun_of(&test.metric), number::relation(ratio)))
        };
        let first = tests.first()?;
        let (at, pairs) = (at(first), count(first.pairs, "pair"));
        let alarms = tests.iter().filter(shown).filter_map(told).collect::<Vec<_>>().join(", ");
        Some(match told(first).filter(|_| first.reason.is_none()) {
            _ if !alarms.is_empty() => {
                format!("Null test failed: {base} appears to differ from itself{at}, {alarms} ({pairs}){scatter}.")
            }
            Some(first) => {
                format!("Null test passed: no difference between {base} and itself{at}: {first} ({pairs}){scatter}.")
            }
            None => {
                let reason = first.reason.as_deref().unwrap_or("too few pairs");
                format!("No null test of {base}{at}: {reason}.")
            }
        })
    };
    found.null.chunk_by(|a, b| a.label == b.label).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analyze, example};
    use study::gate::{FailIf, Undecided};
    use study::record::{Outcome, Run, RunState};

    /// The example's first server as baseline and the others as candidates, in 18 blocks at 4 places.
    fn gated(fail_if: Option<&str>, edit: impl FnOnce(&mut Run, &mut Vec<Record>)) -> (Run, Vec<Record>) {
        let (mut run, mut records) = example::compared();
        run.plan.gate = Some(Gate {
            of: "server".into(),
            base: Level::Text("c-epoll".into()),
            fail_if: fail_if.map(|text| FailIf::parse(text).unwrap()),
            metrics: vec!["latency_mean".into()],
            allow_errors: 0.0,
            undecided: Undecided::Pass,
            null: None,
        });
        (run.plan.trials.min, run.plan.trials.max) = (10, 18);
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
        let is = |test: &&GateTest| test.label == label && test.candidate == candidate && !test.is_about_errors();
        found.tests.iter().find(is).unwrap_or_else(|| panic!("{label}, {candidate}: {found:#?}"))
    }

    #[test]
    fn factor_of_one_is_one_sided() {
        let [(one, texts), (other, _)] = ["mean > 1", "mean > 1.05"].map(|limit| found(Some(limit), |_, _| {}));
        let levels = |found: &GateFinding| found.tests.iter().map(|test| test.level).collect::<Vec<_>>();
        assert_eq!(levels(&one), levels(&other), "the error of a limit is one-sided");
        assert!(texts[0].starts_with("go fails `mean > 1` at cores 1, clients 40: mean latency "), "{}", texts[0]);
    }

    #[test]
    fn candidates_are_compared_with_the_baseline_per_place() {
        let (found, texts) = found(Some("latency_mean > 1.05"), |_, _| {});
        assert_eq!(
            (found.base.as_str(), found.tests.len()),
            ("c-epoll", 16),
            "two candidates, four places, with errors"
        );
        let go = test(&found, "cores 1, clients 80", "go");
        assert_eq!((go.verdict, go.bound, go.open), (GateVerdict::Worse, Some(Bound::Factor(1.05)), false), "{go:#?}");
        // Errors take 20 % of the level 0.05; the first look spends 20 % of the rest, shared by 8 pairs of points.
        assert!((go.level.unwrap() - 0.8 * 0.05 / 8.0 * 0.2).abs() < 1e-12, "{go:#?}");
        assert!(go.ratio.unwrap().low > 1.05 && go.pairs == 10);
        assert!(
            texts.iter().any(|text| text.starts_with("go fails `mean > 1.05` at cores 1, clients 80: mean latency ")),
            "{texts:#?}"
        );
        assert_eq!(found.verdict, GateVerdict::Worse);
        assert!(
            found.also.iter().all(|test| test.bound.is_none())
                && found.also.iter().any(|test| test.metric == "throughput")
        );
    }

    #[test]
    fn distant_bound_passes_and_near_bound_is_undecided() {
        let pass = found(Some("latency_mean > 3"), |_, _| {}).0;
        assert_eq!(test(&pass, "cores 1, clients 80", "go").verdict, GateVerdict::NotWorse);
        let bound = test(&pass, "cores 1, clients 80", "go").ratio.unwrap().point;
        let (near, texts) = found(Some(&format!("latency_mean > {bound:.4}")), |_, _| {});
        assert_eq!(test(&near, "cores 1, clients 80", "go").verdict, GateVerdict::Undecided);
        let text = texts
            .iter()
            .find(|text| text.starts_with("Undecided whether go fails") && text.contains("clients 80"))
            .unwrap();
        assert!(text.contains("; a limit of "), "{text}");
    }

    #[test]
    fn shows_any_difference_without_a_condition() {
        let (found, texts) = found(None, |_, _| {});
        assert!(found.fail_if.is_none());
        assert!(
            texts.iter().any(|text| text.starts_with("go is worse than c-epoll at cores 1, clients 80: mean latency ")),
            "{texts:#?}"
        );
        let (found, texts) = self::found(None, |run, records| {
            run.plan.gate.as_mut().unwrap().null = Some(Level::Text("go".into()));
            let twins = records.iter().filter(|record| record.point < 4).cloned().collect::<Vec<_>>();
            for record in records.iter_mut().filter(|record| (4..8).contains(&record.point)) {
                let twin = twins.iter().find(|twin| twin.point + 4 == record.point && twin.block == record.block);
                record.outcome = twin.unwrap().outcome.clone();
            }
        });
        assert!(found.tests.iter().all(|test| test.candidate != "go") && found.null.len() == 4, "one per place");
        assert!(
            texts.iter().any(|text| text.starts_with("Null test passed: no difference between c-epoll and itself")),
            "{texts:#?}"
        );
        assert_eq!(found.null_scatter, Some(0.0));
    }

    #[test]
    fn generator_bound_pairs_give_no_verdict() {
        let bound = |_: &mut Run, records: &mut Vec<Record>| {
            for record in records.iter_mut().filter(|record| record.point == 5) {
                let verdict = record.verdict.as_mut().unwrap();
                verdict.limited_by = study::record::Limit::Generator;
                let Outcome::Measured(measured) = &mut record.outcome else { panic!("a trial of point 5 failed") };
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
    fn unfinished_run_decides_only_at_looks() {
        let (run, records) = gated(Some("latency_mean > 1.05"), |run, records| {
            run.state = Some(RunState::Interrupted);
            records.retain(|record| record.block < 9);
        });
        let gate = analyze(&run, &records).gate.unwrap();
        let told = gate.tests.iter().filter(|test| test.verdict != GateVerdict::NoVerdict).collect::<Vec<_>>();
        let told = told.into_iter().filter(|test| !test.is_about_errors()).collect::<Vec<_>>();
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

    fn failing(share: f64) -> impl FnOnce(&mut Run, &mut Vec<Record>) {
        move |run, records| {
            run.plan.gate.as_mut().unwrap().metrics = COMPARED.map(str::to_owned).to_vec();
            let base = records.iter().filter(|record| record.point == 1).cloned().collect::<Vec<_>>();
            for record in records.iter_mut().filter(|record| record.point == 5) {
                let twin = base.iter().find(|base| base.block == record.block).unwrap();
                record.outcome = twin.outcome.clone();
                let Outcome::Measured(measured) = &mut record.outcome else { panic!("a trial of point 1 failed") };
                let failed = (measured.requests as f64 * share) as u64;
                measured.errors.insert("status".into(), failed);
                measured.statuses.insert(503, failed);
                measured.duration_ns = (measured.duration_ns as f64 * 0.8) as u64;
            }
        }
    }

    const PLACE: &str = "cores 1, clients 80";

    fn of_metric<'a>(found: &'a GateFinding, metric: &str) -> &'a GateTest {
        let is = |test: &&GateTest| test.label == PLACE && test.candidate == "go" && test.metric == metric;
        found.tests.iter().chain(&found.also).find(is).unwrap_or_else(|| panic!("{metric}: {found:#?}"))
    }

    #[test]
    fn a_faster_candidate_that_fails_requests_does_not_pass() {
        for share in [0.01, 0.2] {
            let (found, texts) = found(Some("throughput < 0.97"), failing(share));
            let errors = of_metric(&found, "error_share");
            assert_eq!((errors.verdict, found.verdict), (GateVerdict::Worse, GateVerdict::Worse), "{errors:#?}");
            assert_eq!(errors.failed_by, [String::new(), "status 503".to_owned()]);
            let speed = of_metric(&found, "throughput");
            assert_eq!(speed.verdict, GateVerdict::NoVerdict, "{speed:#?}");
            assert_eq!(speed.reason.as_deref(), Some("go fails more requests"));
            let percent = if share > 0.1 { "17 %" } else { "0.99 %" };
            let expected = format!(
                "go fails by its errors at {PLACE}: {percent} of its requests failed (status 503), none of c-epoll's ("
            );
            assert!(texts.iter().any(|text| text.starts_with(&expected)), "{texts:#?}");
        }
        let (allowed, _) = found(Some("throughput < 0.97"), |run, records| {
            failing(0.01)(run, records);
            run.plan.gate.as_mut().unwrap().allow_errors = 0.05;
        });
        assert_eq!(of_metric(&allowed, "error_share").verdict, GateVerdict::NotWorse);
        assert_eq!(of_metric(&allowed, "throughput").verdict, GateVerdict::NotWorse);
    }

    #[test]
    fn a_faster_candidate_that_fails_requests_is_worse() {
        let (found, texts) = found(None, failing(0.2));
        assert_eq!(of_metric(&found, "error_share").verdict, GateVerdict::Worse);
        assert_eq!(of_metric(&found, "throughput").verdict, GateVerdict::NoVerdict);
        let first = format!("go is worse than c-epoll at {PLACE}: 17 % of its requests failed (status 503), none of");
        assert!(texts.iter().any(|text| text.starts_with(&first)), "{texts:#?}");
        assert!(!texts.iter().any(|text| text.contains("go is better")), "{texts:#?}");
    }

    #[test]
    fn baseline_errors_do_not_fail_the_candidate() {
        let swap = |run: &mut Run, records: &mut Vec<Record>| {
            failing(0.2)(run, records);
            run.plan.gate.as_mut().unwrap().base = Level::Text("go".into());
        };
        let (found, texts) = found(Some("throughput < 0.97"), swap);
        let of = |metric: &str| {
            let is = |test: &&GateTest| test.label == PLACE && test.candidate == "c-epoll" && test.metric == metric;
            found.tests.iter().find(is).unwrap()
        };
        assert_eq!(of("error_share").verdict, GateVerdict::NotWorse);
        assert_eq!(of("throughput").verdict, GateVerdict::NoVerdict, "{texts:#?}");
        assert_eq!(of("throughput").reason.as_deref(), Some("go fails more requests"));
    }

    #[test]
    fn absolute_limits_apply_to_the_candidate() {
        let base = found(Some("mean > 1.05"), |_, _| {}).0;
        let ns = test(&base, PLACE, "go").candidate_value.unwrap();
        let limits = |low: f64, high: f64| format!("mean > {}ns or p99 > {}ns", (ns * low) as u64, (ns * high) as u64);
        let (found, texts) = found(Some(&limits(0.5, 1e3)), |_, _| {});
        let (mean, p99) = (of_metric(&found, "latency_mean"), of_metric(&found, "latency_p99"));
        assert_eq!((mean.verdict, p99.verdict), (GateVerdict::Worse, GateVerdict::NotWorse), "{mean:#?}");
        assert!(mean.ratio.is_none() && mean.value.unwrap().low > ns * 0.5);
        let first = texts.iter().find(|text| text.contains(PLACE) && text.starts_with("go fails `mean > ")).unwrap();
        assert!(first.contains(": mean latency ") && !first.contains("c-epoll"), "{first}");
    }

    #[test]
    fn reports_both_sides_of_a_trade_off() {
        let (found, texts) = found(None, |run, records| {
            failing(0.0)(run, records);
            for record in records.iter_mut().filter(|record| record.point == 5) {
                record.subject.rss_max_bytes = record.subject.rss_max_bytes.map(|bytes| bytes * 2);
                let Outcome::Measured(measured) = &mut record.outcome else { panic!("a trial failed") };
                measured.errors.clear();
            }
            let base = records.iter().filter(|record| record.point == 1).cloned().collect::<Vec<_>>();
            for (record, base) in records.iter_mut().filter(|record| record.point == 5).zip(&base) {
                record.subject.rss_max_bytes = Some(3 * base.subject.rss_max_bytes.unwrap_or(1 << 20));
            }
        });
        assert_eq!(of_metric(&found, "throughput").verdict, GateVerdict::NotWorse);
        assert_eq!(of_metric(&found, "subject_rss").verdict, GateVerdict::Worse);
        let text = texts.iter().find(|text| text.starts_with("go is both better and worse")).unwrap();
        assert!(text.contains(": throughput 25.0 % ") && text.contains(", but peak server RSS ×3.0"), "{text}");
    }

    #[test]
    fn progress_line_matches_the_answer() {
        let (mut run, mut records) = gated(None, |run, records| {
            run.plan.gate.as_mut().unwrap().metrics = COMPARED.map(str::to_owned).to_vec();
            records.retain(|record| [0, 4].contains(&record.point) && record.block < 11);
        });
        let mut at = 0..;
        run.plan.points.retain(|_| [0, 4].contains(&at.next().unwrap_or(0)));
        records.iter_mut().for_each(|record| record.point /= 4);
        run.plan.trials.max = 10;
        let mut live = Live::new(&run.plan).unwrap();
        let lines = records.iter().filter_map(|record| live.recorded(&run.plan, record)).collect::<Vec<_>>();
        let findings = analyze(&run, &records);
        let gate = findings.gate.unwrap();
        let first = &gate.tests[0];
        let (line, is_look) = lines.last().unwrap();
        assert!(*is_look && *line == format!("{} pairs: {}", first.pairs, relation(&gate, first)), "{line} {first:#?}");
        let [base, head] = [first.base_value, first.candidate_value].map(Option::unwrap);
        assert!((head / base / first.ratio.unwrap().point - 1.0).abs() < 1e-9);
    }

    #[test]
    fn counts_questions() {
        let (run, _) = gated(Some("latency_mean > 1.05 or throughput < 0.97"), |_, _| {});
        assert_eq!(needed(&run.plan, run.plan.gate.as_ref().unwrap()), (24, 10));
    }
}
