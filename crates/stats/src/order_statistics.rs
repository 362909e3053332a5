//! Order statistics: two ranks of a sample that enclose a quantile, for any distribution.

use crate::special_functions;

/// Quantile `q` of an ascending sample, interpolated (Hyndman & Fan 1996, definition 7); `None` for an empty sample.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    assert!((0.0..=1.0).contains(&q), "`q` is a fraction, not a percentage: {q}");
    debug_assert!(sorted.is_sorted(), "the sample must ascend");
    let rank = q * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    Some(low + (high - low) * rank.fract())
}

/// Smallest sample size for which the probability that all values are below quantile `q` (`q^n`) and the probability
/// that all are above it (`(1-q)^n`) are at most `(1 - level) / 2`. `u64::MAX` if `q` is 0 or 1: no sample encloses it.
pub fn samples_needed(q: f64, level: f64) -> u64 {
    let side = ((1.0 - level) / 2.0).ln();
    let rarer = q.max(1.0 - q);
    if rarer >= 1.0 { u64::MAX } else { (side / rarer.ln()).ceil() as u64 }
}

/// Returns the two ranks, from 1, whose values enclose quantile `q` in at least `level` of all samples of `n`
/// independent values. On each side, at most `(1 - level) / 2` of all samples miss the quantile. The number of values
/// below it is binomial(n, q) (David & Nagaraja, Order Statistics, 3rd ed. 2003, section 7.1). Fails if `n` is too low.
pub fn ranks(n: u64, q: f64, level: f64) -> Result<(u64, u64), String> {
    assert!((0.0..=1.0).contains(&q), "`q` is a fraction, not a percentage: {q}");
    assert!(level > 0.0 && level < 1.0, "`level` is a fraction, not a percentage: {level}");
    let needed = samples_needed(q, level);
    if needed == u64::MAX {
        return Err("not enough samples: no sample size bounds this quantile".to_owned());
    }
    if n < needed {
        return Err(format!("not enough samples: {n} of {needed}"));
    }
    let side = (1.0 - level) / 2.0;
    // The guess is the normal approximation with its correction for skewness (Cornish & Fisher 1937).
    let (mean, z) = (n as f64 * q, -special_functions::normal_quantile(side));
    let (spread, skew) = (z * (mean * (1.0 - q)).sqrt(), (z * z - 1.0) * (1.0 - 2.0 * q) / 6.0);
    // `low` is the largest rank whose value exceeds the quantile with probability at most `side`; `high` mirrors it.
    let low = smallest(n, mean - spread + skew, |rank| special_functions::binomial_cdf(rank, n, q) > side).max(1);
    let high = smallest(n, mean + spread + skew, |rank| special_functions::binomial_upper(rank, n, q) <= side);
    Ok((low, high))
}

/// Smallest number up to `n` for which the monotone `holds` is true. Tries the neighbors of `guess` first, because
/// `holds` is expensive and the guess is seldom off by more than one.
fn smallest(n: u64, guess: f64, holds: impl Fn(u64) -> bool) -> u64 {
    let narrowed = |(low, high), at| if holds(at) { (low, at) } else { (at + 1, high) };
    let guess = guess.max(0.0) as u64;
    let near = [guess.saturating_sub(2), guess.saturating_add(2)].into_iter().filter(|at| *at < n);
    let (mut low, mut high) = near.fold((0, n), narrowed);
    while low < high {
        (low, high) = narrowed((low, high), low.midpoint(high));
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Python 3: math.ceil(math.log(.025)/math.log(max(q, 1 - q)))
    #[test]
    fn fewest_samples_of_each_quantile() {
        let table =
            [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3_688), (0.9999, 36_887), (0.05, 72), (0.01, 368)];
        for (q, needed) in table {
            assert_eq!(samples_needed(q, 0.95), needed, "q = {q}");
            assert_eq!(ranks(needed - 1, q, 0.95), Err(format!("not enough samples: {} of {needed}", needed - 1)));
            let (low, high) = ranks(needed, q, 0.95).unwrap();
            if q >= 0.5 {
                assert_eq!(high, needed, "the maximum is the bound");
            } else {
                assert_eq!(low, 1, "the minimum is the bound");
            }
        }
    }

    // numpy 2: numpy.quantile([15, 20, 35, 40, 50], [0, .05, .25, .4, .5, .9, 1]), whose default is definition 7
    #[test]
    fn quantile_matches_numpy() {
        let sample = [15.0, 20.0, 35.0, 40.0, 50.0];
        let table = [(0.0, 15.0), (0.05, 16.0), (0.25, 20.0), (0.4, 29.0), (0.5, 35.0), (0.9, 46.0), (1.0, 50.0)];
        for (q, expected) in table {
            assert!((quantile(&sample, q).unwrap() - expected).abs() < 1e-12, "q = {q}");
        }
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
    }

    #[test]
    fn extremes_have_no_interval() {
        for q in [0.0, 1.0] {
            let error = ranks(1_000_000, q, 0.95).unwrap_err();
            assert!(error.ends_with("bounds this quantile"));
        }
        assert_eq!(ranks(10, 0.9, 0.95).unwrap_err(), "not enough samples: 10 of 36");
    }

    proptest! {
        #[test]
        fn ranks_are_as_tight_as_the_level_allows(n in 40..20_000u64, q in 0.1..0.9f64, level in 0.5..0.95f64) {
            let (low, high) = ranks(n, q, level).unwrap();
            let side = (1.0 - level) / 2.0;
            prop_assert!(1 <= low && low <= high && high <= n);
            prop_assert!(special_functions::binomial_cdf(low - 1, n, q) <= side);
            prop_assert!(special_functions::binomial_cdf(low, n, q) > side);
            prop_assert!(special_functions::binomial_upper(high, n, q) <= side);
            prop_assert!(special_functions::binomial_upper(high - 1, n, q) > side);
        }
    }
}
