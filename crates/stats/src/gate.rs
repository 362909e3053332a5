//! Is a candidate worse than its baseline by more than a margin? Asked again and again while pairs of trials come in.
//!
//! Both are measured in the same blocks, in shuffled order, so that the signed rank test ([`crate::pairs`]) holds whatever the machine does. The
//! pairs are looked at a few times only, each look at a level of its own, and the levels add up to the error that is promised (Bonferroni over
//! looks: it holds with any test and any dependence between looks).

use crate::claims::{self, Between};
use crate::interval::Estimate;
use crate::pairs::{Pairs, half_width};

/// Numbers of pairs at which a gate is looked at, until it ends.
const LOOKS: [u32; 14] = [10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720, 1_000];

/// Shares of the error at the first looks of a gate that ends within 30 pairs, and of one that ends within 60. Simulated against Wang & Tsiatis (1987):
/// their levels save one pair of twenty and keep the error less surely.
const SHORT: [f64; 4] = [0.20, 0.20, 0.25, 0.35];
const MIDDLE: [f64; 6] = [0.10, 0.12, 0.15, 0.18, 0.20, 0.25];

/// Pairs at the first look: nothing is decided before.
pub const FIRST_LOOK: u32 = LOOKS[0];

/// Most pairs that a gate may take.
pub const PAIRS_MAX: u32 = LOOKS[LOOKS.len() - 1];

/// The looks of a gate of at most so many pairs, each with its share of the error. The later a gate may end, the less is spent at each look; a look costs
/// more the later it comes, as by then more depends on it. What is not spent before is spent at the last.
pub fn looks(pairs_max: u32) -> Vec<(u32, f64)> {
    let mut pairs = LOOKS.into_iter().filter(|pairs| *pairs < pairs_max).collect::<Vec<_>>();
    pairs.push(pairs_max);
    let steadily = || {
        let weights = (0..pairs.len()).map(|look| 8.0 + look as f64).collect::<Vec<_>>();
        let sum = weights.iter().sum::<f64>();
        weights.into_iter().map(|weight| weight / sum).collect::<Vec<_>>()
    };
    let shares = match pairs_max {
        ..=30 => SHORT.to_vec(),
        31..=60 => MIDDLE.to_vec(),
        _ => steadily(),
    };
    let mut looks = pairs.into_iter().zip(shares).collect::<Vec<_>>();
    if let Some(((_, last), before)) = looks.split_last_mut() {
        *last = 1.0 - before.iter().map(|(_, share)| share).sum::<f64>();
    }
    looks
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Whether more is better, as for throughput, or less, as for latency.
    pub higher_is_better: bool,
    /// The ratio candidate/baseline beyond which the candidate is worse: 1.05 where less is better, 0.97 where more is; 1 where any difference counts.
    pub bound: f64,
    /// Chance of a false verdict, each way; several gates that must all be right share it.
    pub error: f64,
    /// At most so many pairs.
    pub pairs_max: u32,
    /// Ends also when the ratio is known within this fraction; `None`: only when it is decided. Stopping by a width raises no error
    /// ([`crate::looks`]).
    pub within: Option<f64>,
}

/// What the pairs say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The candidate is worse than the bound.
    Worse,
    /// It is not: better than the bound.
    NotWorse,
    /// Neither was shown.
    Undecided,
}

/// Why no further pair is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There is a verdict.
    Decided,
    /// The ratio is known as well as was asked.
    Narrow,
    /// There were to be no more pairs.
    Pairs,
}

/// What was found, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decided {
    /// What the pairs say.
    pub verdict: Verdict,
    /// Why no further pair is needed; `None`: more may come.
    pub ended: Option<Ended>,
    /// Pairs that were looked at.
    pub pairs: usize,
    /// The p-value of the verdict, one-sided; of the smaller one where undecided.
    pub p: f64,
    /// The level that it was held against.
    pub level: f64,
    /// The typical ratio candidate/baseline with its interval of confidence level `1 - 2·level` (Jennison & Turnbull 1989); `None`: too few pairs for one.
    pub ratio: Option<Estimate>,
    /// The ratio of geometric means with its t interval of the same level; `None`: too few pairs, or values that are bounds.
    pub mean: Option<Estimate>,
}

/// Decides at the first look that rejects. `baseline` and `candidate` have their values by block, in the order of time; a block in which one has none is no
/// pair. Values that are only known to be at least something stand in the second places with what they are at most: each test takes those that speak most
/// against it.
///
/// `is_over`: no pair will come, for a reason that has nothing to do with what the pairs say (the time is over): all of them are then the last look.
/// `None`: no pair.
pub fn decide(
    baseline: [&[Option<f64>]; 2],
    candidate: [&[Option<f64>]; 2],
    rule: &Rule,
    is_over: bool,
) -> Option<Decided> {
    let blocks = |upto: usize| {
        let side = |which: usize| vec![baseline[which][..upto].to_vec(), candidate[which][..upto].to_vec()];
        Between { least: side(0), most: side(1) }
    };
    let is_pair = |at: &usize| baseline[0][*at].is_some() && candidate[0][*at].is_some();
    let ends = (0..baseline[0].len().min(candidate[0].len())).filter(is_pair).map(|at| at + 1).collect::<Vec<_>>();
    let mut spent = 0.0;
    for (pairs, share) in looks(rule.pairs_max) {
        let Some(&end) = ends.get(pairs as usize - 1) else {
            // Between looks nothing is decided; at the end, with all the error that was not spent.
            let level = rule.error * if is_over { 1.0 - spent } else { share };
            let found = seen(&claims::bounds(&blocks(*ends.last()?), 0, 1)?, rule, level);
            return Some(match is_over && ends.len() >= FIRST_LOOK as usize {
                true => Decided { ended: found.ended.or(Some(Ended::Pairs)), ..found },
                false => Decided { verdict: Verdict::Undecided, ended: is_over.then_some(Ended::Pairs), ..found },
            });
        };
        spent += share;
        let found = seen(&claims::bounds(&blocks(end), 0, 1)?, rule, rule.error * share);
        let is_last = pairs >= rule.pairs_max || is_over && end == *ends.last()?;
        let ended = found.ended.or(is_last.then_some(Ended::Pairs));
        if ended.is_some() {
            return Some(Decided { ended, ..found });
        }
    }
    None
}

/// One look at all pairs, at this level: for what is looked at beside a gate when that has ended. `None`: no pair.
pub fn look(baseline: [&[Option<f64>]; 2], candidate: [&[Option<f64>]; 2], rule: &Rule, level: f64) -> Option<Decided> {
    let side = |which: usize| vec![baseline[which].to_vec(), candidate[which].to_vec()];
    let found = seen(&claims::bounds(&Between { least: side(0), most: side(1) }, 0, 1)?, rule, level);
    Some(Decided { ended: found.ended.or(Some(Ended::Pairs)), ..found })
}

/// One look: pairs as they are, and with the least and the greatest ratios.
fn seen([both, least, most]: &[Pairs; 3], rule: &Rule, level: f64) -> Decided {
    let margin = rule.bound - 1.0;
    let (p_larger, p_smaller) = (least.test(margin).p_larger, most.test(margin).p_smaller);
    let (p_worse, p_better) = if rule.higher_is_better { (p_smaller, p_larger) } else { (p_larger, p_smaller) };
    let verdict = if p_worse <= level {
        Verdict::Worse
    } else if p_better <= level {
        Verdict::NotWorse
    } else {
        Verdict::Undecided
    };
    let confidence = 1.0 - 2.0 * level;
    let of = |pairs: &Pairs| pairs.typical(confidence);
    let ratio = match least == most {
        true => of(both),
        false => of(both).zip(of(least)).zip(of(most)).map(|((both, least), most)| Estimate {
            low: least.low,
            high: most.high,
            ..both
        }),
    };
    let is_narrow = ratio.zip(rule.within).is_some_and(|(ratio, within)| half_width(&ratio) <= within);
    let ended = match verdict {
        Verdict::Undecided => is_narrow.then_some(Ended::Narrow),
        _ => Some(Ended::Decided),
    };
    let mean = both.mean(confidence).filter(|_| least == most);
    Decided { verdict, ended, pairs: both.len(), p: p_worse.min(p_better), level, ratio, mean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const LATENCY: Rule = Rule { higher_is_better: false, bound: 1.05, error: 0.05, pairs_max: 30, within: None };

    #[test]
    fn shares_of_all_looks_are_the_error() {
        for pairs_max in [1, 10, 11, 15, 20, 30, 31, 45, 60, 100, 180, 250, PAIRS_MAX] {
            let looks = looks(pairs_max);
            assert!((looks.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12, "{looks:?}");
            assert!(looks.is_sorted_by_key(|(pairs, _)| *pairs) && looks.last().unwrap().0 == pairs_max);
            assert!(looks.iter().all(|(_, share)| *share > 0.0), "{looks:?}");
        }
        // inference.md, R5: .0100 .0100 .0125 .0175, and .005 .006 .0075 .009 .010 .0125.
        let levels = |max| looks(max).iter().map(|(_, share)| (share * 5e4).round() / 1e6).collect::<Vec<_>>();
        assert_eq!(levels(30), [0.01, 0.01, 0.0125, 0.0175]);
        assert_eq!(levels(60), [0.005, 0.006, 0.0075, 0.009, 0.01, 0.0125]);
    }

    type Values = Vec<Option<f64>>;

    fn decide_known(baseline: &Values, candidate: &Values, rule: &Rule) -> Option<Decided> {
        decide([baseline, baseline], [candidate, candidate], rule, false)
    }

    /// Trials of both in blocks that share what the machine does, with lognormal starts of this spread.
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
    fn what_is_clear_is_decided_at_the_first_look() {
        let mut rng = Rng::new(1);
        let table = [
            (1.2, LATENCY, Verdict::Worse),
            (1.0, LATENCY, Verdict::NotWorse),
            (1.2, Rule { higher_is_better: true, bound: 0.97, ..LATENCY }, Verdict::NotWorse),
            (0.8, Rule { higher_is_better: true, bound: 0.97, ..LATENCY }, Verdict::Worse),
        ];
        for (ratio, rule, verdict) in table {
            let (baseline, candidate) = world(&mut rng, ratio, 0.005, 30);
            let found = decide_known(&baseline, &candidate, &rule).unwrap();
            assert_eq!((found.verdict, found.pairs, found.ended), (verdict, 10, Some(Ended::Decided)), "{found:?}");
            let seen = found.ratio.unwrap();
            assert!(seen.low <= ratio && ratio <= seen.high, "{seen:?}");
        }
    }

    #[test]
    fn between_looks_nothing_is_decided() {
        let (baseline, candidate) = world(&mut Rng::new(2), 1.5, 0.01, 30);
        let at = |pairs: usize| decide_known(&baseline[..pairs].to_vec(), &candidate[..pairs].to_vec(), &LATENCY);
        assert_eq!(at(0), None);
        for pairs in 1..10 {
            let found = at(pairs).unwrap();
            assert!(found.verdict == Verdict::Undecided && found.ended.is_none() && found.pairs == pairs, "{found:?}");
        }
        assert_eq!(at(10).unwrap().verdict, Verdict::Worse);
        // The verdict of the look stays, whatever comes later.
        assert_eq!(at(14), at(10));
    }

    #[test]
    fn when_the_time_is_over_all_that_is_left_is_spent() {
        let (baseline, candidate) = world(&mut Rng::new(6), 1.10, 0.05, 27);
        let rule = Rule { pairs_max: 60, ..LATENCY };
        let at = |pairs: usize, is_over: bool| {
            let of = |values: &Values| values[..pairs].to_vec();
            let (baseline, candidate) = (of(&baseline), of(&candidate));
            decide([&baseline, &baseline], [&candidate, &candidate], &rule, is_over).unwrap()
        };
        assert_eq!((at(14, false).verdict, at(14, false).ended), (Verdict::Undecided, None));
        let over = at(14, true);
        assert_eq!((over.verdict, over.pairs), (Verdict::Worse, 14), "{over:?}");
        assert!((over.level - 0.05 * 0.9).abs() < 1e-12);
        let short = at(9, true);
        assert_eq!((short.verdict, short.ended), (Verdict::Undecided, Some(Ended::Pairs)), "fewer than the first look");
    }

    #[test]
    fn what_is_known_well_enough_ends() {
        let (baseline, candidate) = world(&mut Rng::new(7), 1.0, 0.02, 60);
        let any = Rule { bound: 1.0, error: 0.025, pairs_max: 60, within: Some(0.02), ..LATENCY };
        let found = decide_known(&baseline, &candidate, &any).unwrap();
        assert_eq!((found.verdict, found.ended), (Verdict::Undecided, Some(Ended::Narrow)), "{found:?}");
        assert!(found.pairs < 60 && half_width(&found.ratio.unwrap()) <= 0.02, "{found:?}");
    }

    #[test]
    fn blocks_without_one_of_both_are_no_pairs() {
        let (mut baseline, mut candidate) = world(&mut Rng::new(3), 1.5, 0.01, 14);
        (baseline[2], candidate[5]) = (None, None);
        let found = |upto: usize| decide_known(&baseline[..upto].to_vec(), &candidate[..upto].to_vec(), &LATENCY);
        assert_eq!(found(11).unwrap().pairs, 9);
        assert_eq!(found(12).unwrap().verdict, Verdict::Worse);
    }

    #[test]
    fn a_value_without_a_bound_speaks_against_each_claim() {
        let (baseline, candidate) = world(&mut Rng::new(4), 1.0, 0.005, 30);
        let most = |hung: usize| {
            let mut most = candidate.clone();
            most.iter_mut().take(hung).for_each(|value| *value = Some(f64::INFINITY));
            decide([&baseline, &baseline], [&candidate, &most], &LATENCY, false).unwrap()
        };
        assert_eq!(most(0).verdict, Verdict::NotWorse);
        assert_eq!(most(20).verdict, Verdict::Undecided, "nobody knows how late those would have been");
        assert!(most(20).ended == Some(Ended::Pairs) && most(20).pairs == 30);
    }

    /// R5: errors at the margin, and at no difference, of the very code that reports use.
    #[test]
    fn errors_at_the_margin_are_bounded() {
        const ROUNDS: usize = 400;
        for (sigma, pairs_max) in [(0.02, 30), (0.1, 30), (0.05, 60), (0.05, 180)] {
            let mut rng = Rng::new(5);
            let rule = Rule { pairs_max, ..LATENCY };
            let (mut worse, mut not_worse) = (0, 0);
            for _ in 0..ROUNDS {
                let (baseline, candidate) = world(&mut rng, 1.05, sigma, pairs_max as usize);
                match decide_known(&baseline, &candidate, &rule).unwrap().verdict {
                    Verdict::Worse => worse += 1,
                    Verdict::NotWorse => not_worse += 1,
                    Verdict::Undecided => {}
                }
            }
            // Four standard errors of 5 % in 400.
            assert!(worse.max(not_worse) <= 20 + 17, "sigma {sigma}, {pairs_max} pairs: {worse} and {not_worse}");
        }
    }
}
