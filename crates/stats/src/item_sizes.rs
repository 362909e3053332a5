//! Sizes in bytes from a distribution, each computed from 64 random bits, fast enough for every operation.

use crate::mixture_distribution::Empirical;
use crate::random::mix;

/// Number of sizes in the table. Larger sizes come from the distribution's quantile function.
const TABLE: u64 = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// Share of the cell for its own index, in units of 2^-64.
    pub(crate) own: u64,
    /// Index that has the rest of the cell.
    pub(crate) other: u32,
}

/// A distribution of sizes, rounded to bytes and clamped to two bounds. Shares are exact. Each of the lowest 4,096
/// sizes has a table cell (Walker 1977, The alias method; Vose 1991); the quantile function covers larger sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    law: Empirical,
    min: u64,
    max: u64,
    cells: Vec<Cell>,
    /// Index of the cell of all sizes above the table; `None` if there are none.
    beyond: Option<u32>,
}

impl Sizes {
    /// Creates sizes from `law` between `min` and `max` bytes, both inclusive. Panics if `min` is above `max`.
    pub fn new(law: impl Into<Empirical>, min: u64, max: u64) -> Sizes {
        let law = law.into();
        assert!(min <= max, "sizes from {min} to {max}");
        let sizes = Sizes { law, min, max, cells: Vec::new(), beyond: None };
        let last = max.min(min.saturating_add(TABLE - 1));
        let mut shares = Vec::with_capacity((last - min) as usize + 2);
        let mut below = 0.0;
        for size in min..=last {
            let up_to = sizes.cdf(size);
            shares.push((up_to - below).max(0.0));
            below = up_to;
        }
        let upper = Some(sizes.upper(last)).filter(|upper| *upper > 0.0);
        let beyond = upper.map(|_| shares.len() as u32);
        shares.extend(upper);
        Sizes { cells: alias(&shares), beyond, ..sizes }
    }

    /// Returns the size in bytes for 64 random bits.
    pub fn at(&self, bits: u64) -> u64 {
        let product = u128::from(bits) * self.cells.len() as u128;
        let index = (product >> 64) as u32;
        let cell = self.cells[index as usize];
        let index = if (product as u64) < cell.own { index } else { cell.other };
        if Some(index) == self.beyond { self.far(bits) } else { self.min + u64::from(index) }
    }

    #[cold]
    fn far(&self, bits: u64) -> u64 {
        let last = self.min + TABLE - 1;
        let upper = self.upper(last);
        // `u` is independent of the bits that chose the cell, and strictly between 0 and 1.
        let u = ((mix(bits) >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
        let size = self.law.quantile((1.0 - upper * u).clamp(0.0, 1.0)).round();
        // The cast saturates for floats above 2^64.
        (size as u64).clamp(last + 1, self.max)
    }

    /// Smallest and largest size in bytes.
    pub fn bounds(&self) -> (u64, u64) {
        (self.min, self.max)
    }

    /// Exact fraction of sizes up to and including `size` bytes.
    pub fn cdf(&self, size: u64) -> f64 {
        match size {
            size if size < self.min => 0.0,
            size if size >= self.max => 1.0,
            size => self.law.cdf(size as f64 + 0.5),
        }
    }

    /// Exact fraction of sizes above `size` bytes.
    pub fn upper(&self, size: u64) -> f64 {
        match size {
            size if size < self.min => 1.0,
            size if size >= self.max => 0.0,
            size => self.law.upper(size as f64 + 0.5),
        }
    }

    /// Smallest size in bytes that at least a fraction `p` of all sizes does not exceed.
    pub fn quantile(&self, p: f64) -> u64 {
        // The cast saturates at both ends.
        ((self.law.quantile(p) - 0.5).ceil() as u64).clamp(self.min, self.max)
    }

    /// Mean in bytes after rounding and clamping: exact in the table, then by the midpoint rule in steps of size/1000.
    pub fn mean(&self) -> f64 {
        let last = self.max.min(self.min.saturating_add(TABLE - 1));
        let mut sum = self.min as f64 + (self.min..last).map(|size| self.upper(size)).sum::<f64>();
        let mut size = last;
        while size < self.max {
            let step = (size / 1000).clamp(1, self.max - size);
            let share = self.law.upper(size as f64 + 0.5 * step as f64);
            sum += step as f64 * share;
            if share * ((self.max - size) as f64) < 1e-9 * sum {
                break;
            }
            size += step;
        }
        sum
    }
}

/// Creates Walker's alias table; `shares` need not add up to 1.
pub(crate) fn alias(shares: &[f64]) -> Vec<Cell> {
    let total = shares.iter().sum::<f64>();
    let n = shares.len();
    let mut scaled = shares.iter().map(|share| share / total * n as f64).collect::<Vec<_>>();
    let mut cells = (0..n).map(|index| Cell { own: u64::MAX, other: index as u32 }).collect::<Vec<_>>();
    let (mut small, mut large) = (0..n).partition::<Vec<usize>, _>(|&index| scaled[index] < 1.0);
    while let (Some(&giver), Some(taker)) = (large.last(), small.pop()) {
        // The cast saturates if rounding exceeds 1.
        cells[taker] = Cell { own: (scaled[taker] * 18_446_744_073_709_551_616.0) as u64, other: giver as u32 };
        scaled[giver] -= 1.0 - scaled[taker];
        if scaled[giver] < 1.0 {
            large.pop();
            small.push(giver);
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::distribution::Distribution;
    use crate::mixture_distribution::tests::{ETC_HEAD, etc_values};

    #[test]
    fn shares_match_the_distribution() {
        let law = Distribution::Gamma { shape: 4.0, scale: 7.0 };
        let sizes = Sizes::new(law, 1, 250);
        let mut shares = vec![0.0; 251];
        let each = 1.0 / sizes.cells.len() as f64;
        for (index, cell) in sizes.cells.iter().enumerate() {
            let own = cell.own as f64 / 18_446_744_073_709_551_616.0;
            shares[index + 1] += each * own;
            shares[cell.other as usize + 1] += each * (1.0 - own);
        }
        for size in 1..=250 {
            let expected = sizes.cdf(size) - sizes.cdf(size - 1);
            assert!(
                (shares[size as usize] - expected).abs() < 1e-15,
                "{size}: {} of {expected}",
                shares[size as usize]
            );
        }
    }

    #[test]
    fn means_by_hand() {
        let constant = |value| Sizes::new(Distribution::Constant { value }, 0, 1 << 20);
        assert_eq!(constant(100.0).mean(), 100.0);
        assert!((constant(50_000.0).mean() / 50_000.0 - 1.0).abs() < 1e-3);
        assert_eq!(
            [constant(50_000.0).at(0), constant(50_000.0).at(u64::MAX), constant(0.2).at(7)],
            [50_000, 50_000, 0]
        );
        // A rounded exponential variable is geometric. Its mean is e^(-h/2) / (1 - e^(-h)) with h = 1/200.
        let h = 1.0_f64 / 200.0;
        let exponential = Sizes::new(Distribution::Exponential { mean: 200.0 }, 0, 1 << 20);
        assert!((exponential.mean() - (-h / 2.0).exp() / (1.0 - (-h).exp())).abs() < 1e-6, "{}", exponential.mean());
        let heavy = Sizes::new(etc_values(15.0), 0, 1 << 20);
        let head = ETC_HEAD.iter().zip(0_u32..).map(|(share, size)| share * f64::from(size)).sum::<f64>();
        let expected = head + (1.0 - ETC_HEAD.iter().sum::<f64>()) * (15.0 + 214.476 / (1.0 - 0.348238));
        assert!((heavy.mean() - expected).abs() < 0.05, "{}", heavy.mean());
    }

    #[test]
    fn clamps_sizes_to_the_bounds() {
        let sizes = Sizes::new(Distribution::Gev { location: 2.0, scale: 5.0, shape: 0.1 }, 1, 12);
        let mut rng = Rng::new(3);
        let mut counts = [0_u32; 13];
        (0..100_000).for_each(|_| counts[sizes.at(rng.next_u64()) as usize] += 1);
        for size in 1..=12 {
            let expected = (sizes.cdf(size) - if size == 1 { 0.0 } else { sizes.cdf(size - 1) }) * 1e5;
            let found = f64::from(counts[size as usize]);
            assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{size}: {found} of {expected}");
        }
        assert_eq!((sizes.quantile(0.0), sizes.quantile(1.0)), (1, 12));
    }

    #[test]
    fn tail_beyond_the_table_matches_the_distribution() {
        let law = Distribution::Pareto { location: 15.0, scale: 2_000.0, shape: 0.35 };
        let sizes = Sizes::new(law, 0, 1 << 40);
        let (mut rng, n) = (Rng::new(5), 400_000);
        let drawn = (0..n).map(|_| sizes.at(rng.next_u64())).collect::<Vec<_>>();
        for p in [0.9, 0.99, 0.999] {
            let x = sizes.quantile(p);
            assert!(x > TABLE);
            let above = drawn.iter().filter(|&&size| size > x).count() as f64 / f64::from(n);
            assert!((above - (1.0 - p)).abs() < 4.0 * (p * (1.0 - p) / f64::from(n)).sqrt() + 1e-5, "{p}: {above}");
        }
    }
}
