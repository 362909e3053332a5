//! Goodness-of-fit test of samples against a distribution.

use crate::special_functions;

/// Result of a goodness-of-fit test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Pearson's χ² of the sample.
    pub statistic: f64,
    /// Degrees of freedom: number of merged cells minus one.
    pub degrees: u64,
    /// Probability that a sample from the distribution deviates at least this much.
    pub p: f64,
}

/// Minimum expected count of a cell. Smaller cells are merged with the next cell. Source: Cochran 1954.
const CELL_MIN: f64 = 5.0;

/// Tests counts against shares of a discrete distribution, which add up to 1, by Pearson's χ². Merges neighboring cells
/// with an expected count below 5. `None` if fewer than two cells remain, or if counts and shares differ in number.
pub fn chi_square(counts: &[u64], shares: &[f64]) -> Option<Fit> {
    let n = counts.iter().sum::<u64>();
    if n == 0 || counts.len() != shares.len() {
        return None;
    }
    let mut cells: Vec<(f64, f64)> = Vec::new();
    let mut open = (0.0, 0.0);
    for (count, share) in counts.iter().zip(shares) {
        open = (open.0 + *count as f64, open.1 + share * n as f64);
        if open.1 >= CELL_MIN {
            cells.push(std::mem::take(&mut open));
        }
    }
    match cells.last_mut() {
        Some(last) => *last = (last.0 + open.0, last.1 + open.1),
        None => cells.push(open),
    }
    if cells.len() < 2 {
        return None;
    }
    let statistic = cells.iter().map(|(found, expected)| (found - expected).powi(2) / expected).sum::<f64>();
    let degrees = cells.len() as u64 - 1;
    // The statistic is infinite if an impossible value occurred.
    let p = if statistic.is_finite() { special_functions::chi_square_upper(statistic, degrees as f64) } else { 0.0 };
    Some(Fit { statistic, degrees, p })
}

impl Fit {
    /// Returns the conclusion in words. A sample does not follow its distribution if `p` is below 0.001.
    pub fn conclusion(&self) -> &'static str {
        match self.p {
            p if p >= 0.05 => "follows its distribution",
            p if p >= 0.001 => "follows its distribution, farther off than most samples",
            _ => "does not follow its distribution",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item_sizes::Sizes;
    use crate::mixture_distribution::Empirical;
    use crate::mixture_distribution::tests::etc_values;
    use crate::{Distribution, Rng};

    // scipy 1.17: scipy.stats.chisquare([16, 18, 16, 14, 12, 12]).pvalue
    #[test]
    fn chi_square_matches_scipy() {
        let found = chi_square(&[16, 18, 16, 14, 12, 12], &[1.0 / 6.0; 6]).unwrap();
        assert!((found.statistic - 2.0).abs() < 1e-12 && (found.p - 0.849_145_036_087_600_4).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn merges_small_cells_and_rejects_empty_input() {
        assert_eq!(chi_square(&[50, 48, 1, 1], &[0.5, 0.48, 0.01, 0.01]).unwrap().degrees, 1);
        assert_eq!(chi_square(&[0, 0], &[0.5, 0.5]), None);
        assert_eq!(chi_square(&[3], &[1.0]), None);
        assert_eq!(chi_square(&[3, 4], &[1.0]), None);
        assert_eq!(
            chi_square(&[50, 50, 50], &[0.5, 0.5, 0.0]).unwrap().conclusion(),
            "does not follow its distribution"
        );
    }

    const DRAWS: usize = 1_000_000;

    fn drawn(law: &Distribution, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..DRAWS).map(|_| law.sample(&mut rng)).collect()
    }

    #[test]
    #[ignore = "slow: a million draws"]
    fn a_million_draws_fit_only_their_distribution() {
        let gev = |shape| Distribution::Gev { location: 30.7984, scale: 8.20449, shape };
        let pareto = |shape| Distribution::Pareto { location: 15.0, scale: 214.476, shape };
        let table = [
            (Distribution::Exponential { mean: 200.0 }, Distribution::Exponential { mean: 202.0 }),
            (Distribution::Lognormal { median: 5.0, sigma: 1.0 }, Distribution::Lognormal { median: 5.0, sigma: 1.01 }),
            (Distribution::Uniform { low: 1.0, high: 9.0 }, Distribution::Uniform { low: 1.0, high: 9.1 }),
            (Distribution::Gamma { shape: 4.0, scale: 7.0 }, Distribution::Gamma { shape: 4.05, scale: 7.0 }),
            (Distribution::Gamma { shape: 1.0, scale: 200.0 }, Distribution::Gamma { shape: 1.0, scale: 202.0 }),
            (Distribution::Gamma { shape: 0.3, scale: 50.0 }, Distribution::Gamma { shape: 0.304, scale: 50.0 }),
            (gev(0.078688), gev(0.09)),
            (gev(-0.1), gev(-0.085)),
            (pareto(0.348238), pareto(0.362)),
            // Forks of mutilate use the shape of the key distribution for values too.
            (pareto(0.348238), pareto(0.078688)),
        ];
        for (law, other) in table {
            let values = drawn(&law, 20);
            // The cumulative distribution function of a distribution maps its values to uniformly distributed values.
            let test = |law: &Distribution| {
                let cells = counted(values.iter().map(|x| (law.cdf(*x) * 100.0) as u64), 99);
                chi_square(&cells, &[0.01; 100])
            };
            let (right, wrong) = (test(&law).unwrap(), test(&other).unwrap());
            assert!(right.p > 1e-3, "{law:?}: {right:?}");
            assert!(wrong.p < 1e-3, "{law:?} as {other:?}: {wrong:?}");
        }
    }

    /// Counts each value from 0 to `cells`; the last cell includes larger values.
    fn counted(values: impl Iterator<Item = u64>, cells: usize) -> Vec<u64> {
        let mut counts = vec![0; cells + 1];
        values.for_each(|size| counts[(size as usize).min(cells)] += 1);
        counts
    }

    fn shares(sizes: &Sizes, cells: usize) -> Vec<f64> {
        let below = |size: u64| if size == 0 { 0.0 } else { sizes.cdf(size - 1) };
        let last = sizes.upper(cells as u64 - 1);
        (0..cells as u64).map(|size| sizes.cdf(size) - below(size)).chain([last]).collect()
    }

    #[test]
    fn a_million_sizes_fit_only_their_distribution() {
        let plain = |law: Distribution| Empirical::from(law);
        let table = [
            (
                plain(Distribution::Gamma { shape: 4.0, scale: 7.0 }),
                plain(Distribution::Gamma { shape: 4.0, scale: 7.05 }),
            ),
            (plain(Distribution::Exponential { mean: 200.0 }), plain(Distribution::Exponential { mean: 204.0 })),
            (
                plain(Distribution::Bimodal { low: 5.0, high: 900.0, high_share: 0.1 }),
                plain(Distribution::Bimodal { low: 5.0, high: 900.0, high_share: 0.102 }),
            ),
            (
                plain(Distribution::Gev { location: 30.7984, scale: 8.20449, shape: 0.078688 }),
                plain(Distribution::Gev { location: 30.7984, scale: 8.3, shape: 0.078688 }),
            ),
            (etc_values(15.0), etc_values(0.0)),
        ];
        for (law, other) in table {
            let (sizes, others) = (Sizes::new(law.clone(), 0, 1 << 20), Sizes::new(other.clone(), 0, 1 << 20));
            let mut rng = Rng::new(4);
            let counts = counted((0..DRAWS).map(|_| sizes.at(rng.next_u64())), 6000);
            let (right, wrong) = (
                chi_square(&counts, &shares(&sizes, 6000)).unwrap(),
                chi_square(&counts, &shares(&others, 6000)).unwrap(),
            );
            assert!(right.p > 1e-3, "{law:?}: {right:?}");
            assert!(wrong.p < 1e-3, "{other:?}: {wrong:?}");
        }
    }

    #[test]
    fn head_of_etc_matches_the_table() {
        let sizes = Sizes::new(etc_values(15.0), 0, 1 << 20);
        let mut rng = Rng::new(1);
        let head = (0..DRAWS).filter(|_| sizes.at(rng.next_u64()) < 15).count() as f64 / DRAWS as f64;
        // Rounding moves no mass of the tail below 15, so the head matches the table.
        assert!((head - 0.44155).abs() < 4.0 * (0.44155 * 0.55845 / DRAWS as f64).sqrt(), "{head}");
    }
}
