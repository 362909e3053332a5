//! Claims about contenders that ran in the same blocks: which one leads, which are slower, which may be the best. A
//! *place* is the set of levels that its contenders share (clients, size, cores ...). Over all places of one metric, at
//! most a share `error` of reports contains a false leader, and at most the same share a false "slower than".

use crate::adjust_p_values::{holm, holm_of_some};
use crate::interval::Estimate;
use crate::pairs::{DifferenceRange, Side};

/// Minimum number of common blocks for a claim.
pub const BLOCKS_MIN: usize = 12;

/// Values of the contenders at one place: `values[contender][block]`. `None` for a block without a valid trial.
pub type Place = Vec<Vec<Option<f64>>>;

/// A pair with the one-sided p-values of the claims that b is larger and that b is smaller.
type Tested = (Pair, (f64, f64));

/// Direction and error of a comparison of contenders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Whether larger values are better, as for throughput.
    pub higher_is_better: bool,
    /// Probability of a false claim of each kind in a report, for example 0.05.
    pub error: f64,
}

/// Claims about the contenders of one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims {
    /// Contender with the best typical ratios; `None` if no pair has a common block.
    pub best: Option<usize>,
    /// Whether `best` is shown to beat every other contender, adjusted for all places (Holm 1979).
    pub leads: bool,
    /// Adjusted p-value of `leads`; 1 if there is nothing to test.
    pub p_lead: f64,
    /// Contenders not shown to be worse than any other. They include the true best in over 95 % of reports (Hsu 1984).
    pub may_be_best: Vec<usize>,
    /// All pairs of contenders with common blocks.
    pub pairs: Vec<Pair>,
}

/// Comparison of two contenders, with `a < b`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Index of the first contender.
    pub a: usize,
    /// Index of the second contender.
    pub b: usize,
    /// Number of blocks in which both contenders have a value.
    pub blocks: usize,
    /// Typical ratio b/a with its interval of level `1 - error`; `None` if there are too few blocks.
    pub typical: Option<Estimate>,
    /// Ratio of geometric means b/a with its t interval; `None` for fewer than two blocks.
    pub mean: Option<Estimate>,
    /// Two-sided p-value of the signed rank test.
    pub p: f64,
    /// `p`, adjusted for all pairs of all places (Holm 1979).
    pub p_adjusted: f64,
    /// Half-width of `typical`'s interval, as a fraction; `None` without one. Power at 1.5 times this: 75 to 84 %.
    pub half_width: Option<f64>,
}

impl Pair {
    /// Returns `Some(true)` if b is shown to be larger than a at this error, `Some(false)` if smaller, else `None`.
    pub fn larger(&self, error: f64) -> Option<bool> {
        let typical = self.typical?;
        (self.blocks >= BLOCKS_MIN && self.p_adjusted <= error).then_some(typical.point > 1.0)
    }

    /// Whether the interval of the typical ratio excludes the mean, and only one of the two intervals excludes 1.
    pub fn disagrees(&self) -> bool {
        let excludes = |ratio: &Estimate| ratio.low > 1.0 || ratio.high < 1.0;
        let (Some(typical), Some(mean)) = (&self.typical, &self.mean) else { return false };
        let outside = mean.point < typical.low || mean.point > typical.high;
        self.blocks >= BLOCKS_MIN && outside && excludes(typical) != excludes(mean)
    }
}

/// Claims about all places of one metric. The p-value of a leader is the largest against the other contenders,
/// unadjusted within a place (Gutmann & Maymin 1987; Stefansson, Kim & Hsu 1988), with Holm over places. "Slower" uses
/// Holm over all pairs of all places, since the data chose the leader. A contender may be the best if no other is
/// better at one-sided `error / (K - 1)`, for K contenders.
pub fn claims(places: &[Place], rule: &Rule) -> Vec<Claims> {
    let known = |place: &Place| place.iter().map(|values| Side::known(values)).collect::<Vec<_>>();
    with_changes(&places.iter().map(known).collect::<Vec<_>>(), &[], rule).0
}

/// Returns [`claims`] for values that may be lower bounds, and the comparison of each change in the report. A change is
/// a place of two contenders, from first to second, without a leader. "Slower" is adjusted for changes too.
pub fn with_changes(places: &[Vec<Side>], changes: &[Vec<Side>], rule: &Rule) -> (Vec<Claims>, Vec<Option<Pair>>) {
    let mut found = places.iter().map(|place| place_pairs(place, rule)).collect::<Vec<_>>();
    let mut changed = changes.iter().map(|place| place_pairs(place, rule).1).collect::<Vec<_>>();
    let raw = found.iter().map(|(_, pairs)| pairs).chain(&changed).flatten().map(|(pair, _)| pair.p);
    let mut adjusted = holm(&raw.collect::<Vec<_>>()).into_iter();
    for (pair, _) in found.iter_mut().map(|(_, pairs)| pairs).chain(&mut changed).flatten() {
        pair.p_adjusted = adjusted.next().unwrap_or(1.0);
    }
    let leads = found.iter().map(|(best, pairs)| p_lead(*best, pairs, rule)).collect::<Vec<_>>();
    let adjusted = holm_of_some(leads.iter().map(|(_, p)| *p));
    let mut out = Vec::new();
    for ((((best, pairs), (leader, _)), p_lead), place) in found.into_iter().zip(&leads).zip(adjusted).zip(places) {
        let p_lead = p_lead.unwrap_or(1.0);
        let leads = *leader && p_lead <= rule.error;
        let mut may_be_best = may_be_best(place.len(), &pairs, rule);
        let pairs = pairs.into_iter().map(|(pair, _)| pair).collect::<Vec<_>>();
        // A leader is the only possible best, and a contender shown to be slower cannot be the best.
        may_be_best.retain(|&index| if leads { best == Some(index) } else { !is_beaten(index, &pairs, rule) });
        out.push(Claims { best, leads, p_lead, may_be_best, pairs });
    }
    (out, changed.into_iter().map(|pairs| pairs.into_iter().next().map(|(pair, _)| pair)).collect())
}

/// Widest half-width, as a fraction, of the typical ratio of any contender to the best of its place, used by the stop
/// rule. `None` without comparisons, or if a pair has too few blocks.
pub fn comparison_width(claims: &[Claims]) -> Option<f64> {
    let of_best = claims.iter().filter_map(|claims| Some((claims.best?, &claims.pairs)));
    let widths = of_best.flat_map(|(best, pairs)| {
        let of_best = pairs.iter().filter(move |pair| pair.a == best || pair.b == best);
        of_best.map(|pair| pair.half_width.filter(|_| pair.blocks >= BLOCKS_MIN))
    });
    widths.reduce(|widest, width| Some(widest?.max(width?)))?
}

/// Compares all pairs of a place. Returns the contender with the best ratios, and the pairs with one-sided p-values.
fn place_pairs(place: &[Side], rule: &Rule) -> (Option<usize>, Vec<Tested>) {
    let mut pairs = Vec::new();
    let contenders = place.len();
    let ratio = |a: f64, b: f64| if a > 0.0 && b > 0.0 { b.ln() - a.ln() } else { f64::NAN };
    // Sum and number of the logarithms of each contender's typical ratios.
    let mut standing = vec![(0.0, 0u32); contenders];
    for a in 0..contenders {
        for b in a + 1..contenders {
            let Some(range) = DifferenceRange::new(&place[a], &place[b], ratio) else { continue };
            let (p_larger, p_smaller) = (range.least.against(0.0).p_larger, range.most.against(0.0).p_smaller);
            let level = 1.0 - rule.error;
            let typical = range.shift(level).map(Estimate::exp);
            let log = range.known.typical_log();
            standing[a] = (standing[a].0 - log, standing[a].1 + 1);
            standing[b] = (standing[b].0 + log, standing[b].1 + 1);
            let is_known = range.least == range.most;
            let pair = Pair {
                a,
                b,
                blocks: range.known.len(),
                typical,
                mean: range.known.mean(level).filter(|_| is_known),
                p: (2.0 * p_larger.min(p_smaller)).min(1.0),
                p_adjusted: 1.0,
                half_width: typical.as_ref().map(crate::pairs::half_width),
            };
            pairs.push((pair, (p_larger, p_smaller)));
        }
    }
    let sign = if rule.higher_is_better { -1.0 } else { 1.0 };
    let compared = (0..contenders).filter(|&index| standing[index].1 > 0);
    let mean = |index: usize| sign * standing[index].0 / f64::from(standing[index].1);
    (compared.min_by(|&a, &b| mean(a).total_cmp(&mean(b))), pairs)
}

/// Returns whether the best contender is ahead of all others, and the largest p-value against them, if there are any.
fn p_lead(best: Option<usize>, pairs: &[Tested], rule: &Rule) -> (bool, Option<f64>) {
    let Some(best) = best else { return (false, None) };
    let of_best = || pairs.iter().map(|(pair, _)| pair).filter(|pair| pair.a == best || pair.b == best);
    let wins = |pair: &Pair| {
        let is_larger = |ratio: Estimate| if pair.b == best { ratio.point > 1.0 } else { ratio.point < 1.0 };
        pair.blocks >= BLOCKS_MIN && pair.typical.is_some_and(is_larger) == rule.higher_is_better
    };
    let p = of_best().map(|pair| pair.p).fold(0.0, f64::max);
    (of_best().all(wins), Some(p))
}

fn is_beaten(index: usize, pairs: &[Pair], rule: &Rule) -> bool {
    pairs.iter().any(|pair| {
        let loser = |larger| if larger == rule.higher_is_better { pair.a } else { pair.b };
        pair.larger(rule.error).map(loser) == Some(index)
    })
}

fn may_be_best(contenders: usize, pairs: &[Tested], rule: &Rule) -> Vec<usize> {
    let error = rule.error / contenders.saturating_sub(1).max(1) as f64;
    let beaten = |index: usize| {
        pairs.iter().any(|(pair, (larger, smaller))| {
            let p = if (pair.a == index) == rule.higher_is_better { larger } else { smaller };
            [pair.a, pair.b].contains(&index) && pair.blocks >= BLOCKS_MIN && *p <= error
        })
    };
    (0..contenders).filter(|&index| !beaten(index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const LOWER: Rule = Rule { higher_is_better: false, error: 0.05 };

    /// Contenders with values scaled by `factors`; trials share a block effect and otherwise scatter by `spread`.
    fn place(rng: &mut Rng, factors: &[f64], blocks: usize, spread: f64) -> Place {
        let common = (0..blocks).map(|_| 0.2 * rng.normal()).collect::<Vec<_>>();
        let mut value = |factor: f64, block: f64| Some(factor * (block + spread * rng.normal()).exp());
        factors.iter().map(|&factor| common.iter().map(|&block| value(factor, block)).collect()).collect()
    }

    fn sides(place: &[Vec<Option<f64>>]) -> Vec<Side> {
        place.iter().map(|values| Side::known(values)).collect()
    }

    fn words(claims: &Claims) -> String {
        let slower = claims
            .pairs
            .iter()
            .filter_map(|pair| Some(if pair.larger(0.05)? { (pair.b, pair.a) } else { (pair.a, pair.b) }));
        let slower = slower.map(|(larger, smaller)| format!(" {larger}>{smaller}")).collect::<String>();
        let lead = if claims.leads { "leads" } else { "is first" };
        format!("{:?} {lead}, may be best {:?},{slower}", claims.best.unwrap(), claims.may_be_best)
    }

    #[test]
    fn claims_clear_differences() {
        let place = place(&mut Rng::new(1), &[1.1, 1.0, 1.3], 15, 0.02);
        assert_eq!(words(&claims(std::slice::from_ref(&place), &LOWER)[0]), "1 leads, may be best [1], 0>1 2>0 2>1");
        let higher = Rule { higher_is_better: true, ..LOWER };
        assert_eq!(words(&claims(&[place], &higher)[0]), "2 leads, may be best [2], 0>1 2>0 2>1");
    }

    #[test]
    fn similar_contenders_share_the_best_place() {
        let place = place(&mut Rng::new(2), &[1.0, 1.0, 1.3], 15, 0.02);
        let found = claims(&[place], &LOWER);
        assert!(!found[0].leads && found[0].may_be_best == [0, 1], "{}", words(&found[0]));
    }

    #[test]
    fn claims_do_not_contradict_each_other() {
        let mut rng = Rng::new(7);
        for round in 0..400 {
            let factors = (0..2 + round % 4).map(|_| 1.0 + 0.06 * rng.unit_f64()).collect::<Vec<_>>();
            let places =
                (0..1 + round % 3).map(|_| place(&mut rng, &factors, 12 + round % 7, 0.04)).collect::<Vec<_>>();
            for claims in claims(&places, &LOWER) {
                let best = claims.best.unwrap();
                assert!(!claims.leads || claims.may_be_best == [best], "{claims:?}");
                for pair in &claims.pairs {
                    let Some(larger) = pair.larger(0.05) else { continue };
                    let slower = if larger { pair.b } else { pair.a };
                    assert!(!claims.may_be_best.contains(&slower), "{claims:?}");
                    assert!(!claims.leads || slower != best, "{claims:?}");
                }
            }
        }
    }

    #[test]
    fn tests_bounds_with_least_favorable_values() {
        let mut rng = Rng::new(4);
        let known = place(&mut rng, &[1.0, 1.1], 20, 0.02);
        let bounded = |contender: usize, trials: usize| {
            let mut bounded = sides(&known);
            bounded[contender].most.iter_mut().take(trials).for_each(|value| *value = Some(f64::INFINITY));
            with_changes(&[bounded], &[], &LOWER).0.remove(0)
        };
        let all = claims(std::slice::from_ref(&known), &LOWER).remove(0);
        assert!(all.leads && all.best == Some(0) && all.pairs[0].mean.is_some());
        // Larger values of the slower contender only raise the upper end of the interval.
        let slower = bounded(1, 2);
        let (before, after) = (all.pairs[0].typical.unwrap(), slower.pairs[0].typical.unwrap());
        assert!(slower.leads && after.low == before.low && after.high > before.high && after.point == before.point);
        assert_eq!(slower.pairs[0].mean, None);
        // Larger values of the faster contender weaken the claim: one such trial a little, 15 of them completely.
        assert!(bounded(0, 1).leads && bounded(0, 1).p_lead > all.p_lead);
        assert!(!bounded(0, 15).leads && bounded(0, 15).may_be_best.contains(&0));
        assert!(!bounded(1, 20).leads || bounded(1, 20).best == Some(0));
    }

    #[test]
    fn changes_share_the_adjustment() {
        let place = place(&mut Rng::new(2), &[1.0, 1.01], 15, 0.02);
        let alone = claims(std::slice::from_ref(&place), &LOWER)[0].pairs[0].clone();
        let (found, changes) = with_changes(&[sides(&place)], &vec![sides(&place); 9], &LOWER);
        assert!((found[0].pairs[0].p_adjusted - (10.0 * alone.p).min(1.0)).abs() < 1e-12, "{alone:?}");
        let nine = changes.iter().flatten().filter(|pair| (pair.a, pair.b, pair.p) == (0, 1, alone.p)).count();
        assert_eq!((nine, found[0].best), (9, claims(&[place], &LOWER)[0].best));
        assert_eq!(with_changes(&[], &[sides(&[vec![None], vec![Some(1.0)]])], &LOWER).1, [None], "no common block");
    }

    #[test]
    fn claims_nothing_from_too_few_blocks() {
        let place = place(&mut Rng::new(3), &[1.0, 2.0], BLOCKS_MIN - 1, 0.01);
        let found = claims(&[place], &LOWER);
        assert_eq!(words(&found[0]), "0 is first, may be best [0, 1],");
    }

    #[test]
    fn only_common_blocks_count() {
        // The second contender also ran in slow blocks, in which the first one did not run.
        let (mut first, mut second) = (vec![Some(1.0); 12], vec![Some(1.0); 12]);
        first.extend([None; 18]);
        second.extend([Some(2.0); 18]);
        let found = claims(&[vec![first, second]], &LOWER);
        assert_eq!((found[0].leads, found[0].pairs[0].blocks, found[0].pairs[0].p), (false, 12, 1.0));
    }

    #[test]
    fn claims_nothing_about_a_single_contender() {
        let found = claims(&[vec![vec![Some(1.0); 20]], vec![]], &LOWER);
        assert_eq!((found[0].best, found[0].leads, found[0].may_be_best.as_slice()), (None, false, [0].as_slice()));
        assert_eq!(found[1].may_be_best, [0; 0]);
    }

    #[test]
    fn typical_start_and_mean_may_disagree() {
        // B is a little faster, except that every eighth trial takes three times as long.
        let a = vec![Some(1.0); 24];
        let b = (0..24).map(|i| Some(if i % 8 == 0 { 3.0 } else { 0.97 - 1e-4 * f64::from(i) })).collect();
        let found = claims(&[vec![a, b]], &LOWER);
        assert!(found[0].pairs[0].disagrees(), "{:?}", found[0].pairs[0]);
    }

    /// Simulates a small version of the table of `experiments coverage`.
    #[test]
    fn false_claims_are_rare() {
        let (mut rng, reports) = (Rng::new(5), 400);
        let (mut leads, mut slower) = (0, 0);
        for _ in 0..reports {
            let places = (0..4).map(|_| place(&mut rng, &[1.0, 1.0, 1.0], 12, 0.05)).collect::<Vec<_>>();
            let found = claims(&places, &LOWER);
            leads += usize::from(found.iter().any(|claims| claims.leads));
            slower +=
                usize::from(found.iter().flat_map(|claims| &claims.pairs).any(|pair| pair.larger(0.05).is_some()));
        }
        assert!(leads <= reports / 25 && slower <= reports / 14, "{leads} false leads, {slower} false `slower`");
    }
}
