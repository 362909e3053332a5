//! Sequential tests of a candidate against its baseline while pairs of trials arrive. Both run in the same blocks in
//! shuffled order, so the signed rank test ([`crate::pairs`]) is valid whatever the machine does. Pairs are tested only
//! at a few looks, whose levels add up to the promised error (Bonferroni over looks, valid for any test and
//! dependence). Questions of one look share its level: differences by Holm (1979), limits by Bonferroni. Questions
//! about failed requests share a fixed part of it ([`ERRORS_PART`]).

use crate::interval::Estimate;
pub use crate::pairs::Side;
use crate::pairs::{DifferenceRange, FAR, Pairs, half_width};

/// Numbers of pairs at which a gate is tested.
const LOOKS: [u32; 14] = [10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720, 1_000];

/// Shares of the error at the looks of gates with up to 30 and up to 60 pairs. In simulations, the levels of Wang &
/// Tsiatis (1987) save one pair in twenty but keep the error less reliably.
const SHORT: [f64; 4] = [0.20, 0.20, 0.25, 0.35];
const MIDDLE: [f64; 6] = [0.10, 0.12, 0.15, 0.18, 0.20, 0.25];

/// Number of pairs at the first look. No decision is made earlier.
pub const FIRST_LOOK: u32 = LOOKS[0];

/// Maximum number of pairs of a gate.
pub const PAIRS_MAX: u32 = LOOKS[LOOKS.len() - 1];

/// Returns the looks of a gate of at most `pairs_max` pairs, each with its share of the error. Later looks get more.
pub fn looks(pairs_max: u32) -> Vec<(u32, f64)> {
    let mut pairs = LOOKS.into_iter().filter(|pairs| *pairs < pairs_max).collect::<Vec<_>>();
    pairs.push(pairs_max);
    let shares = match pairs_max {
        ..=30 => SHORT.to_vec(),
        31..=60 => MIDDLE.to_vec(),
        _ => {
            let weights = (0..pairs.len()).map(|look| 8.0 + look as f64).collect::<Vec<_>>();
            let sum = weights.iter().sum::<f64>();
            weights.into_iter().map(|weight| weight / sum).collect()
        }
    };
    let mut looks = pairs.into_iter().zip(shares).collect::<Vec<_>>();
    if let Some(((_, last), before)) = looks.split_last_mut() {
        *last = 1.0 - before.iter().map(|(_, share)| share).sum::<f64>();
    }
    looks
}

/// Share of the error for tests of failed requests. It can be small, because the p-values of n pairs fall as 2^-n.
pub const ERRORS_PART: f64 = 0.2;

/// Largest p-value at which an excess of errors delays a verdict: that of errors in two trials, both of one side.
pub const SUSPICIOUS_P: f64 = 0.25;

/// Number of pairs after which undecided differences, except the first, no longer prolong a comparison.
pub const PATIENCE: usize = 30;

/// Question that a gate asks about one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asked {
    /// Whether candidate and baseline differ.
    Difference,
    /// Whether the ratio candidate/baseline is worse than this number.
    Ratio(f64),
    /// Whether the candidate's value is worse than this limit; both are positive.
    Value(f64),
    /// Whether the candidate's share exceeds this fraction; shares may be zero.
    Share(f64),
    /// Whether the candidate's share differs from the baseline's by more than this fraction, in either direction.
    Excess(f64),
}

/// A question with the values that answer it, in chronological order.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Question that the values answer.
    pub asked: Asked,
    /// Whether larger values are better, as for throughput.
    pub higher_is_better: bool,
    /// Values of the baseline, one per pair.
    pub base: Side,
    /// Values of the candidate, one per pair.
    pub candidate: Side,
}

impl Question {
    /// Whether the question is about errors. A gate may end with this question undecided if no error is suspicious.
    fn is_about_errors(&self) -> bool {
        matches!(self.asked, Asked::Excess(_) | Asked::Share(0.0))
    }
}

/// Error probability and length of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Probability of a false claim over all questions and looks; for limits, in each direction.
    pub error: f64,
    /// Maximum number of pairs of trials.
    pub pairs_max: u32,
    /// Relative precision of the differences at which the gate ends early, as a fraction; with `None`, it never does.
    /// Ending early does not raise the error (see [`crate::stop_rule`]).
    pub within: Option<f64>,
}

/// Result of a gate for one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The candidate is worse than the baseline or its limit.
    Worse,
    /// The candidate is better than the baseline or its limit.
    NotWorse,
    /// The pairs so far show neither result.
    Undecided,
}

/// Reason why a gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A verdict was reached.
    Decided,
    /// The ratios are known with the requested precision.
    Narrow,
    /// The maximum number of pairs or the time limit was reached.
    Pairs,
}

/// Result for one question with its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decided {
    /// Result at the level of this look.
    pub verdict: Verdict,
    /// Number of pairs in which both trials have the metric.
    pub pairs: usize,
    /// One-sided p-value of the claim that the candidate is worse.
    pub p_worse: f64,
    /// One-sided p-value of the claim that the candidate is better.
    pub p_better: f64,
    /// Significance level of both p-values.
    pub level: f64,
    /// A ratio, a value, or a difference of shares, with confidence `1 - 2·level`; `None` if there are too few pairs.
    pub estimate: Option<Estimate>,
    /// Typical values of baseline and candidate, in the metric's unit. Their ratio is exactly the typical ratio.
    pub typical: [f64; 2],
}

impl Decided {
    /// Returns the smaller p-value, which belongs to the verdict if there is one.
    pub fn p(&self) -> f64 {
        self.p_worse.min(self.p_better)
    }
}

/// Results of all questions at one look.
#[derive(Clone, Debug, PartialEq)]
pub struct Examined {
    /// One result per question; `None` if no pair has the metric.
    pub found: Vec<Option<Decided>>,
    /// Number of pairs that were tested.
    pub pairs: usize,
    /// Share of the error that the look spends.
    pub share: f64,
    /// Why the gate ended; `None` if more pairs may follow.
    pub ended: Option<Ended>,
}

/// Answers all questions at the first look that ends the comparison. If no look does, all verdicts are undecided,
/// unless `is_over` is set because no pair will follow, for a reason independent of the values, such as the time limit.
/// All pairs then form the last look, with the unspent error. All sides have one value per pair. `None` without pairs.
pub fn examine(questions: &[Question], rule: &Rule, is_over: bool) -> Option<Examined> {
    let pairs = questions.first()?.base.least.len();
    if pairs == 0 {
        return None;
    }
    let mut spent = 0.0;
    for (look, share) in looks(rule.pairs_max) {
        if look as usize > pairs {
            // No claim is made between looks.
            let share = if is_over { 1.0 - spent } else { share };
            let mut found = look_at(questions, pairs, rule.error * share);
            if !is_over || pairs < FIRST_LOOK as usize {
                found.iter_mut().flatten().for_each(|found| found.verdict = Verdict::Undecided);
            }
            let ended = is_over.then(|| has_ended(questions, &found, pairs, rule).unwrap_or(Ended::Pairs));
            return Some(Examined { found, pairs, share, ended });
        }
        spent += share;
        let found = look_at(questions, look as usize, rule.error * share);
        let is_last = look >= rule.pairs_max || is_over && look as usize == pairs;
        let ended = has_ended(questions, &found, look as usize, rule).or(is_last.then_some(Ended::Pairs));
        if ended.is_some() {
            return Some(Examined { found, pairs: look as usize, share, ended });
        }
    }
    None
}

/// Tests an extra metric over the first `pairs` pairs, with its own `error`. `None` if no pair has the metric.
pub fn also(question: &Question, pairs: usize, error: f64) -> Option<Decided> {
    look_at(std::slice::from_ref(question), pairs, error).pop()?
}

fn has_ended(questions: &[Question], found: &[Option<Decided>], pairs: usize, rule: &Rule) -> Option<Ended> {
    let all = || questions.iter().zip(found).enumerate();
    let is_worse = |found: &Option<Decided>| found.is_some_and(|found| found.verdict == Verdict::Worse);
    let of_errors = || all().filter(|(_, (question, _))| question.is_about_errors());
    if of_errors().any(|(_, (_, found))| is_worse(found)) {
        return Some(Ended::Decided);
    }
    // If a side shows signs of errors, even insignificant ones, any claim in its favor is delayed.
    let is_suspicious = |found: Decided| found.verdict == Verdict::Undecided && found.p() <= SUSPICIOUS_P;
    if of_errors().any(|(_, (_, found))| found.is_some_and(is_suspicious)) {
        return None;
    }
    if all().any(|(_, (question, found))| question.asked != Asked::Difference && is_worse(found)) {
        return Some(Ended::Decided);
    }
    let mut narrow = false;
    for (at, (question, found)) in all() {
        let Some(found) = found.filter(|found| found.verdict == Verdict::Undecided) else { continue };
        let is_settled = match question.asked {
            Asked::Excess(_) | Asked::Share(0.0) => true,
            Asked::Ratio(_) | Asked::Value(_) | Asked::Share(_) => false,
            Asked::Difference => {
                narrow = true;
                let is_within = |ratio: Estimate| rule.within.is_some_and(|within| half_width(&ratio) <= within);
                at > 0 && pairs >= PATIENCE || found.estimate.is_some_and(is_within)
            }
        };
        if !is_settled {
            return None;
        }
    }
    Some(if narrow { Ended::Narrow } else { Ended::Decided })
}

fn look_at(questions: &[Question], pairs: usize, error: f64) -> Vec<Option<Decided>> {
    let seen = questions.iter().map(|question| Seen::new(question, pairs)).collect::<Vec<_>>();
    let count = |is: fn(&Asked) -> bool| {
        questions.iter().zip(&seen).filter(|(question, seen)| seen.is_some() && is(&question.asked)).count()
    };
    let is_excess = |asked: &Asked| matches!(asked, Asked::Excess(_));
    let excesses = count(is_excess);
    let differences = count(|asked| *asked == Asked::Difference);
    let limits = count(|asked| matches!(asked, Asked::Ratio(_) | Asked::Value(_) | Asked::Share(_)));
    let only_excess = questions.iter().all(|question| is_excess(&question.asked));
    let of_errors = match (excesses > 0, only_excess) {
        (false, _) => 0.0,
        (true, false) => ERRORS_PART,
        (true, true) => 1.0,
    };
    let rest = error * (1.0 - of_errors);
    // Holm (1979): the smallest p-value has the strictest level. The first p-value above its level ends the claims.
    let seen_differences = seen.iter().enumerate().filter(|(at, _)| questions[*at].asked == Asked::Difference);
    let p_values = seen_differences.filter_map(|(at, seen)| Some((seen.as_ref()?.p_two_sided(), at)));
    let mut p_values = p_values.collect::<Vec<_>>();
    p_values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut levels = vec![0.0; questions.len()];
    let mut left = differences;
    let mut is_failed = false;
    for (p, at) in p_values {
        levels[at] = rest / (2 * left) as f64;
        is_failed |= p > 2.0 * levels[at];
        left -= usize::from(!is_failed);
    }
    // A claim about a difference can be false in either direction.
    let ways = if differences > 0 || only_excess { 2.0 } else { 1.0 };
    for (level, question) in levels.iter_mut().zip(questions) {
        match question.asked {
            Asked::Difference => {}
            Asked::Excess(_) => *level = error * of_errors / (ways * excesses.max(1) as f64),
            Asked::Ratio(_) | Asked::Value(_) | Asked::Share(_) => *level = rest / limits.max(1) as f64,
        }
    }
    let all = questions.iter().zip(seen).zip(levels);
    all.map(|((question, seen), level)| Some(seen?.decide(question, level))).collect()
}

struct Seen {
    range: DifferenceRange,
    p_worse: f64,
    p_better: f64,
    typical: [f64; 2],
}

impl Seen {
    fn new(question: &Question, pairs: usize) -> Option<Self> {
        let first = |values: &[Option<f64>]| values[..pairs.min(values.len())].to_vec();
        let side = |side: &Side| Side { least: first(&side.least), most: first(&side.most) };
        let (base, candidate) = (side(&question.base), side(&question.candidate));
        let range = DifferenceRange::new(&base, &candidate, |base, candidate| match question.asked {
            Asked::Difference | Asked::Ratio(_) => log(candidate, base),
            Asked::Value(limit) => log(candidate, limit),
            Asked::Share(limit) => candidate - limit,
            Asked::Excess(_) => candidate - base,
        })?;
        let (above, below) = match question.asked {
            Asked::Ratio(bound) => (bound.ln(), bound.ln()),
            Asked::Excess(allowed) => (allowed, -allowed),
            Asked::Difference | Asked::Value(_) | Asked::Share(_) => (0.0, 0.0),
        };
        let (p_larger, p_smaller) = (range.least.against(above).p_larger, range.most.against(below).p_smaller);
        let (p_worse, p_better) = if question.higher_is_better { (p_smaller, p_larger) } else { (p_larger, p_smaller) };
        let known = base.least.iter().zip(&candidate.least);
        let known = known.filter_map(|(base, candidate)| Some(((*base)?, (*candidate)?))).collect::<Vec<_>>();
        let typical = match question.asked {
            Asked::Difference | Asked::Ratio(_) | Asked::Value(_) => typical(&known),
            Asked::Share(_) | Asked::Excess(_) => {
                let mean = |of: fn(&(f64, f64)) -> f64| known.iter().map(of).sum::<f64>() / known.len() as f64;
                [mean(|pair| pair.0), mean(|pair| pair.1)]
            }
        };
        Some(Self { range, p_worse, p_better, typical })
    }

    fn p_two_sided(&self) -> f64 {
        (2.0 * self.p_worse.min(self.p_better)).min(1.0)
    }

    fn decide(self, question: &Question, level: f64) -> Decided {
        let verdict = if self.p_worse <= level {
            Verdict::Worse
        } else if self.p_better <= level || question.asked == Asked::Share(0.0) && self.p_worse > SUSPICIOUS_P {
            Verdict::NotWorse
        } else {
            Verdict::Undecided
        };
        let estimate = self.range.shift(1.0 - 2.0 * level).map(|shift| match question.asked {
            Asked::Difference | Asked::Ratio(_) => shift.exp(),
            Asked::Value(limit) => shift.exp().map(|ratio| limit * ratio),
            Asked::Share(limit) => shift.map(|excess| excess + limit),
            Asked::Excess(_) => shift,
        });
        let Self { range, p_worse, p_better, typical } = self;
        Decided { verdict, pairs: range.known.len(), p_worse, p_better, level, estimate, typical }
    }
}

fn log(a: f64, b: f64) -> f64 {
    match (a > 0.0, b > 0.0) {
        (true, true) => a.ln() - b.ln(),
        (true, false) => FAR,
        (false, true) => -FAR,
        (false, false) => 0.0,
    }
}

fn typical(pairs: &[(f64, f64)]) -> [f64; 2] {
    let of = |of: fn(&(f64, f64)) -> f64| Pairs::from_logs(pairs.iter().map(of).collect()).typical_log();
    if pairs.iter().any(|(base, candidate)| *base <= 0.0 || *candidate <= 0.0) {
        return [of(|(base, _)| *base), of(|(_, candidate)| *candidate)];
    }
    let ratio = of(|(base, candidate)| candidate.ln() - base.ln());
    let middle = of(|(base, candidate)| (base.ln() + candidate.ln()) / 2.0);
    [(middle - ratio / 2.0).exp(), (middle + ratio / 2.0).exp()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const RULE: Rule = Rule { error: 0.05, pairs_max: 30, within: None };
    const LATENCY: Asked = Asked::Ratio(1.05);

    #[test]
    fn looks_spend_the_whole_error() {
        for pairs_max in [1, 10, 11, 15, 20, 30, 31, 45, 60, 100, 180, 250, PAIRS_MAX] {
            let looks = looks(pairs_max);
            assert!((looks.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12, "{looks:?}");
            assert!(looks.is_sorted_by_key(|(pairs, _)| *pairs) && looks.last().unwrap().0 == pairs_max);
            assert!(looks.iter().all(|(_, share)| *share > 0.0), "{looks:?}");
        }
        let levels = |max| looks(max).iter().map(|(_, share)| (share * 5e4).round() / 1e6).collect::<Vec<_>>();
        assert_eq!(levels(30), [0.01, 0.01, 0.0125, 0.0175]);
        assert_eq!(levels(60), [0.005, 0.006, 0.0075, 0.009, 0.01, 0.0125]);
    }

    type Values = Vec<Option<f64>>;

    fn question(asked: Asked, base: &[Option<f64>], candidate: &[Option<f64>]) -> Question {
        Question { asked, higher_is_better: false, base: Side::known(base), candidate: Side::known(candidate) }
    }

    fn one(asked: Asked, base: &[Option<f64>], candidate: &[Option<f64>], rule: &Rule) -> (Decided, Option<Ended>) {
        let found = examine(&[question(asked, base, candidate)], rule, false).unwrap();
        (found.found[0].unwrap(), found.ended)
    }

    /// Trials of both sides with shared block effects and with lognormal starts of spread `sigma`.
    fn world(rng: &mut Rng, ratio: f64, sigma: f64, pairs: usize) -> (Values, Values) {
        let mut baseline = Vec::new();
        let mut candidate = Vec::new();
        for _ in 0..pairs {
            let block = 0.1 * rng.normal();
            baseline.push(Some((block + sigma * rng.normal()).exp()));
            candidate.push(Some(ratio * (block + sigma * rng.normal()).exp()));
        }
        (baseline, candidate)
    }

    #[test]
    fn clear_ratios_are_decided_at_the_first_look() {
        let mut rng = Rng::new(1);
        let table = [
            (1.2, LATENCY, false, Verdict::Worse),
            (1.0, LATENCY, false, Verdict::NotWorse),
            (1.2, Asked::Ratio(0.97), true, Verdict::NotWorse),
            (0.8, Asked::Ratio(0.97), true, Verdict::Worse),
        ];
        for (ratio, asked, higher_is_better, verdict) in table {
            let (baseline, candidate) = world(&mut rng, ratio, 0.005, 30);
            let asked = Question { higher_is_better, ..question(asked, &baseline, &candidate) };
            let examined = examine(&[asked], &RULE, false).unwrap();
            let found = examined.found[0].unwrap();
            assert_eq!((found.verdict, found.pairs, examined.ended), (verdict, 10, Some(Ended::Decided)), "{found:?}");
            let seen = found.estimate.unwrap();
            assert!(seen.low <= ratio && ratio <= seen.high, "{seen:?}");
            let [base, head] = found.typical;
            assert!((head / base / seen.point - 1.0).abs() < 1e-12, "the values are apart by the ratio: {found:?}");
        }
    }

    #[test]
    fn decides_only_at_looks() {
        let (baseline, candidate) = world(&mut Rng::new(2), 1.5, 0.01, 30);
        let at = |pairs: usize| examine(&[question(LATENCY, &baseline[..pairs], &candidate[..pairs])], &RULE, false);
        assert_eq!(at(0), None);
        for pairs in 1..10 {
            let found = at(pairs).unwrap();
            let one = found.found[0].unwrap();
            assert!(one.verdict == Verdict::Undecided && found.ended.is_none() && one.pairs == pairs, "{found:?}");
        }
        assert_eq!(at(10).unwrap().found[0].unwrap().verdict, Verdict::Worse);
        assert_eq!(at(14), at(10));
    }

    #[test]
    fn spends_the_remaining_error_at_the_time_limit() {
        let (baseline, candidate) = world(&mut Rng::new(6), 1.10, 0.05, 27);
        let rule = Rule { pairs_max: 60, ..RULE };
        let at = |pairs: usize, is_over: bool| {
            let found = examine(&[question(LATENCY, &baseline[..pairs], &candidate[..pairs])], &rule, is_over).unwrap();
            (found.found[0].unwrap(), found.ended)
        };
        assert_eq!((at(14, false).0.verdict, at(14, false).1), (Verdict::Undecided, None));
        let over = at(14, true).0;
        assert_eq!((over.verdict, over.pairs), (Verdict::Worse, 14), "{over:?}");
        assert!((over.level - 0.05 * 0.9).abs() < 1e-12);
        let (short, ended) = at(9, true);
        assert_eq!(short.verdict, Verdict::Undecided, "fewer than the first look");
        assert!(ended.is_some());
    }

    #[test]
    fn ends_when_the_difference_is_precise_enough() {
        let (baseline, candidate) = world(&mut Rng::new(7), 1.0, 0.02, 60);
        let rule = Rule { pairs_max: 60, within: Some(0.02), ..RULE };
        let (found, ended) = one(Asked::Difference, &baseline, &candidate, &rule);
        assert_eq!((found.verdict, ended), (Verdict::Undecided, Some(Ended::Narrow)), "{found:?}");
        assert!(found.pairs < 60 && half_width(&found.estimate.unwrap()) <= 0.02, "{found:?}");
    }

    #[test]
    fn ignores_trials_without_the_metric() {
        let (mut baseline, mut candidate) = world(&mut Rng::new(3), 1.5, 0.01, 14);
        (baseline[2], candidate[5]) = (None, None);
        let (found, _) = one(LATENCY, &baseline, &candidate, &Rule { pairs_max: 14, ..RULE });
        assert_eq!((found.pairs, found.verdict), (8, Verdict::Worse), "the first look has ten trials of each");
    }

    #[test]
    fn unbounded_values_weaken_every_claim() {
        let (baseline, candidate) = world(&mut Rng::new(4), 1.0, 0.005, 30);
        let most = |hung: usize| {
            let mut asked = question(LATENCY, &baseline, &candidate);
            asked.candidate.most.iter_mut().take(hung).for_each(|value| *value = Some(f64::INFINITY));
            let found = examine(&[asked], &RULE, false).unwrap();
            (found.found[0].unwrap(), found.ended)
        };
        assert_eq!(most(0).0.verdict, Verdict::NotWorse);
        assert_eq!(most(20).0.verdict, Verdict::Undecided, "their delay is unknown");
        assert!(most(20).1 == Some(Ended::Pairs) && most(20).0.pairs == 30);
    }

    fn known(values: &[f64]) -> Values {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn reports_errors_that_the_baseline_lacks() {
        let none = known(&[0.0; 30]);
        let one_percent = known(&(0..30).map(|i| 0.01 + 1e-4 * f64::from(i % 7)).collect::<Vec<_>>());
        let faster = known(&[0.8; 30]);
        let ones = known(&[1.0; 30]);
        for pairs_max in [10, 30, 60, PAIRS_MAX] {
            let rule = Rule { pairs_max, ..RULE };
            let asked = [question(LATENCY, &ones, &faster), question(Asked::Excess(0.0), &none, &one_percent)];
            let found = examine(&asked, &rule, false).unwrap();
            let errors = found.found[1].unwrap();
            assert_eq!((errors.verdict, found.ended), (Verdict::Worse, Some(Ended::Decided)), "{found:?}");
            assert!(found.pairs <= 15 && errors.typical[0] == 0.0, "{found:?}");
            let allowed = [asked[0].clone(), question(Asked::Excess(0.02), &none, &one_percent)];
            let found = examine(&allowed, &rule, false).unwrap();
            assert_eq!(found.found[0].unwrap().verdict, Verdict::NotWorse);
            assert_ne!(found.found[1].unwrap().verdict, Verdict::Worse);
        }
    }

    #[test]
    fn one_trial_with_errors_has_no_effect() {
        let (none, mut hiccup) = (known(&[0.0; 30]), known(&[0.0; 30]));
        hiccup[4] = Some(0.3);
        let speed = || question(LATENCY, &known(&[1.0; 30]), &known(&[0.8; 30]));
        let found = examine(&[speed(), question(Asked::Excess(0.0), &none, &hiccup)], &RULE, false).unwrap();
        let errors = found.found[1].unwrap();
        assert_eq!((errors.verdict, found.pairs, found.ended), (Verdict::Undecided, 10, Some(Ended::Decided)));
        assert_eq!(errors.p_worse, 0.5);
        // If two of the ten trials have errors, the decision is delayed.
        hiccup[7] = Some(0.1);
        let found = examine(&[speed(), question(Asked::Excess(0.0), &none, &hiccup)], &RULE, false).unwrap();
        assert_eq!((found.pairs, found.ended), (30, Some(Ended::Pairs)), "{found:?}");
    }

    #[test]
    fn absolute_limits_ignore_the_baseline() {
        let (base, mut head) =
            (known(&[9.0; 30]), known(&(0..30).map(|i| 4.0 + f64::from(i) / 100.0).collect::<Vec<_>>()));
        let verdict = |asked, head: &Values| one(asked, &base, head, &RULE).0.verdict;
        assert_eq!(verdict(Asked::Value(5.0), &head), Verdict::NotWorse);
        assert_eq!(verdict(Asked::Value(3.9), &head), Verdict::Worse);
        let found = one(Asked::Value(5.0), &base, &head, &RULE).0.estimate.unwrap();
        assert!((4.0..4.1).contains(&found.point), "{found:?}");
        let shares = known(&[0.002; 30]);
        assert_eq!(verdict(Asked::Share(0.001), &shares), Verdict::Worse);
        assert_eq!(verdict(Asked::Share(0.0), &shares), Verdict::Worse);
        assert_eq!(verdict(Asked::Share(0.01), &shares), Verdict::NotWorse);
        let none = known(&[0.0; 30]);
        assert_eq!(verdict(Asked::Share(0.0), &none), Verdict::NotWorse);
        assert_eq!(verdict(Asked::Share(0.001), &none), Verdict::NotWorse);
        head[0] = Some(0.0);
        assert_eq!(verdict(Asked::Value(5.0), &head), Verdict::NotWorse, "a zero is below any limit");
    }

    #[test]
    fn intervals_agree_with_verdicts() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let metric = |rng: &mut Rng, ratio: f64| {
                let (base, candidate) = world(rng, ratio, 0.03, 30);
                question(Asked::Difference, &base, &candidate)
            };
            let asked = [1.0, 1.02, 1.03, 0.97].map(|ratio| metric(&mut rng, ratio));
            let found = examine(&asked, &RULE, false).unwrap();
            for found in found.found.iter().flatten() {
                let ratio = found.estimate.unwrap();
                let verdict = match () {
                    () if ratio.low > 1.0 => Verdict::Worse,
                    () if ratio.high < 1.0 => Verdict::NotWorse,
                    () => Verdict::Undecided,
                };
                assert_eq!(found.verdict, verdict, "{found:?}");
            }
        }
    }

    #[test]
    fn errors_at_the_margin_are_bounded() {
        const ROUNDS: usize = 400;
        for (sigma, pairs_max) in [(0.02, 30), (0.1, 30), (0.05, 60), (0.05, 180)] {
            let mut rng = Rng::new(5);
            let rule = Rule { pairs_max, ..RULE };
            let (mut worse, mut not_worse) = (0, 0);
            for _ in 0..ROUNDS {
                let (baseline, candidate) = world(&mut rng, 1.05, sigma, pairs_max as usize);
                match one(LATENCY, &baseline, &candidate, &rule).0.verdict {
                    Verdict::Worse => worse += 1,
                    Verdict::NotWorse => not_worse += 1,
                    Verdict::Undecided => {}
                }
            }
            // The bound is four standard errors above 5 % of 400.
            assert!(worse.max(not_worse) <= 20 + 17, "sigma {sigma}, {pairs_max} pairs: {worse} and {not_worse}");
        }
    }

    /// Simulates a small version of the table of `experiments coverage`.
    #[test]
    fn self_comparison_by_five_metrics_seldom_differs() {
        const ROUNDS: usize = 300;
        let mut rng = Rng::new(8);
        let rule = Rule { within: Some(0.02), ..RULE };
        let false_claims = (0..ROUNDS).filter(|_| {
            let mut asked = (0..5)
                .map(|_| {
                    let (base, candidate) = world(&mut rng, 1.0, 0.04, 30);
                    question(Asked::Difference, &base, &candidate)
                })
                .collect::<Vec<_>>();
            let mut failing = || (0..30).map(|_| Some((rng.next_u64() % 3) as f64 / 200.0)).collect::<Vec<_>>();
            asked.push(question(Asked::Excess(0.0), &failing(), &failing()));
            let found = examine(&asked, &rule, false).unwrap();
            found.found.iter().flatten().any(|found| found.verdict != Verdict::Undecided)
        });
        let false_claims = false_claims.count();
        assert!(false_claims <= 15 + 15, "{false_claims} of {ROUNDS}");
    }

    /// Simulates another process that takes the CPUs in bursts and slows trials of a random side by a factor of up to
    /// `most`. It disturbs three metrics equally and CPU time, the fourth, 100 times less.
    #[test]
    fn other_work_on_the_cpus_keeps_the_error_rate() {
        const ROUNDS: usize = 100;
        let rule = Rule { within: Some(0.02), ..RULE };
        for (busy, spell, most) in [(0.4, 1.0, 4.0), (0.5, 5.0, 2.0), (0.1, 1.0, 10.0)] {
            let mut rng = Rng::new(9);
            let claims = (0..ROUNDS).filter(|_| {
                let mut factor = 1.0;
                let mut metrics = [const { [Vec::new(), Vec::new()] }; 4];
                for _ in 0..30 {
                    let first = rng.below(2) as usize;
                    for side in [first, 1 - first] {
                        if rng.unit_f64() < 1.0 / spell {
                            let is_busy = rng.unit_f64() < busy;
                            factor = if is_busy { 1.0 + (most - 1.0) * rng.unit_f64() } else { 1.0 };
                        }
                        let disturbed = factor * (0.1 * rng.normal()).exp();
                        for (at, metric) in metrics.iter_mut().enumerate() {
                            let slowness = if at == 3 { 1.0 + (disturbed - 1.0) / 100.0 } else { disturbed };
                            metric[side].push(Some(slowness * (0.02 * rng.normal()).exp()));
                        }
                    }
                }
                let asked = metrics.map(|[base, head]| question(Asked::Difference, &base, &head));
                let found = examine(&asked, &rule, false).unwrap();
                found.found.iter().flatten().any(|found| found.verdict != Verdict::Undecided)
            });
            let claims = claims.count();
            // The bound is four standard errors above 5 % of 100.
            assert!(claims <= 5 + 9, "{busy} {spell} {most}: {claims} of {ROUNDS}");
        }
    }
}
