//! Popularity of keys: distributions of ranks, and a permutation of ranks to keys.

use crate::random::{Rng, mix};

/// Zipf's law over ranks 1 to n: rank k has a share proportional to k^-exponent. Sampled by [`crate::ZipfRanks`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipf {
    /// Number of ranks, 1 to [`KEYS_MAX`].
    pub n: u64,
    /// Exponent, 0 or more; 0 makes all ranks equally popular.
    pub exponent: f64,
}

/// Maximum number of keys, up to which a float distinguishes the halves between neighboring integers.
pub const KEYS_MAX: u64 = 1 << 48;

/// Returns (e^x - 1) / x, without cancellation near 0.
fn expm1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0) }
}

impl Zipf {
    /// Creates the law over `n` ranks. Panics unless `n` is 1 to [`KEYS_MAX`] and `exponent` is finite and at least 0.
    pub fn new(n: u64, exponent: f64) -> Zipf {
        assert!((1..=KEYS_MAX).contains(&n), "a population of {n}");
        assert!(exponent.is_finite() && exponent >= 0.0, "an exponent of {exponent}");
        Zipf { n, exponent }
    }

    /// Exact total share of the most popular `ranks` ranks, from 0 to 1.
    pub fn head_mass(&self, ranks: u64) -> f64 {
        harmonic(ranks.min(self.n), self.exponent) / harmonic(self.n, self.exponent)
    }
}

/// Sum of k^-exponent for k = 1 to n: 1,000 terms, then Euler-Maclaurin (DLMF 2.10.1) to a precision of 1e-17.
pub fn harmonic(n: u64, exponent: f64) -> f64 {
    const DIRECT: u64 = 1000;
    let term = |k: f64| (-exponent * k.ln()).exp();
    // Adding the smallest terms first keeps precision.
    let direct = (1..=n.min(DIRECT)).rev().map(|k| term(k as f64)).sum::<f64>();
    if n <= DIRECT {
        return direct;
    }
    let (a, b) = (DIRECT as f64, n as f64);
    let integral = |x: f64| expm1_ratio((1.0 - exponent) * x.ln()) * x.ln();
    let slope = |x: f64| -exponent * term(x) / x;
    let third = |x: f64| -exponent * (exponent + 1.0) * (exponent + 2.0) * term(x) / (x * x * x);
    direct + integral(b) - integral(a) + (term(b) - term(a)) / 2.0 + (slope(b) - slope(a)) / 12.0
        - (third(b) - third(a)) / 720.0
}

/// Draws an age a from 1 to `most` with probability ln((a + 1) / a) / ln(most + 1). Panics if `most` is 0.
pub fn log_uniform_age(most: u64, rng: &mut Rng) -> u64 {
    assert!(most > 0, "no age is below 1");
    ((rng.unit_f64() * (most as f64 + 1.0).ln()).exp() as u64).clamp(1, most)
}

/// A bijection of the integers below n, selected by a key. It maps ranks to keys, so that popular keys are not
/// neighbors. A Feistel network on as many bits as n needs is repeated until the result is below n (Black & Rogaway
/// 2002, Ciphers with Arbitrary Finite Domains). Unlike a hash modulo n, it uses every key exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    right_bits: u32,
    left_mask: u64,
    right_mask: u64,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 4;

impl Permutation {
    /// Creates the bijection of the integers below `n` for a key. Panics if `n` is 0.
    pub fn new(n: u64, key: u64) -> Permutation {
        assert!(n > 0, "no integer is below 0");
        let bits = (64 - (n - 1).leading_zeros()).max(2);
        let (left, right) = (bits / 2, bits - bits / 2);
        let mask = |bits: u32| (1u64 << bits) - 1;
        let keys = std::array::from_fn(|round| mix(key.wrapping_add(mix(round as u64 + 1))));
        Permutation { n, right_bits: right, left_mask: mask(left), right_mask: mask(right), keys }
    }

    fn round(half: u64, key: u64) -> u64 {
        let product = (half ^ key).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (product ^ (product >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
    }

    /// Maps an index to its image. Panics if `index` is not below n.
    pub fn apply(&self, index: u64) -> u64 {
        assert!(index < self.n, "{index} is not below {}", self.n);
        let mut x = index;
        loop {
            let (mut left, mut right) = (x >> self.right_bits, x & self.right_mask);
            for pair in self.keys.chunks_exact(2) {
                left ^= Self::round(right, pair[0]) & self.left_mask;
                right ^= Self::round(left, pair[1]) & self.right_mask;
            }
            x = left << self.right_bits | right;
            if x < self.n {
                return x;
            }
        }
    }

    /// Maps an image back to its index. Panics if `image` is not below n.
    pub fn invert(&self, image: u64) -> u64 {
        assert!(image < self.n, "{image} is not below {}", self.n);
        let mut x = image;
        loop {
            let (mut left, mut right) = (x >> self.right_bits, x & self.right_mask);
            for pair in self.keys.chunks_exact(2).rev() {
                right ^= Self::round(left, pair[1]) & self.right_mask;
                left ^= Self::round(right, pair[0]) & self.left_mask;
            }
            x = left << self.right_bits | right;
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{KEYS_MAX, Permutation, Zipf, harmonic, log_uniform_age};
    use crate::goodness_of_fit;
    use crate::random::Rng;
    use crate::zipf_ranks::ZipfRanks;

    #[test]
    fn sums_match_term_by_term() {
        for (n, exponent) in
            [(1_u32, 0.99), (999, 0.0), (1_001, 1.0), (200_000, 0.99), (300_000, 0.0), (250_000, 2.5), (100_000, 0.3)]
        {
            let direct = (1..=n).rev().map(|k| f64::from(k).powf(-exponent)).sum::<f64>();
            let found = harmonic(u64::from(n), exponent);
            assert!((found / direct - 1.0).abs() < 1e-12, "{n} {exponent}: {found} of {direct}");
        }
    }

    #[test]
    fn head_of_exponent_099_is_exact() {
        // The top key of 10^4, 10^5 or 10^6 has a share of 9.8, 7.8 or 6.5 %; a constant zeta would give 3.8 %.
        let heads = [4, 5, 6].map(|power| format!("{:.3}", Zipf::new(10_u64.pow(power), 0.99).head_mass(1)));
        assert_eq!(heads, ["0.098", "0.078", "0.065"]);
    }

    #[test]
    fn ages_are_log_uniform() {
        let (mut rng, most) = (Rng::new(2), 50);
        let mut counts = vec![0_u64; 50];
        (0..200_000).for_each(|_| counts[log_uniform_age(most, &mut rng) as usize - 1] += 1);
        let share = |age| ((age as f64 + 1.0) / age as f64).ln() / (most as f64 + 1.0).ln();
        let test = goodness_of_fit::chi_square(&counts, &(1..=most).map(share).collect::<Vec<_>>()).unwrap();
        assert!(test.p > 1e-3, "{test:?}");
        assert_eq!(log_uniform_age(1, &mut rng), 1);
    }

    #[test]
    fn permutes_every_small_population() {
        for n in 1..=300 {
            for key in 0..3 {
                let permutation = Permutation::new(n, key);
                let mut seen = vec![false; n as usize];
                for index in 0..n {
                    let image = permutation.apply(index);
                    assert!(!std::mem::replace(&mut seen[image as usize], true), "{n}: {image} twice");
                    assert_eq!(permutation.invert(image), index);
                }
            }
        }
    }

    #[test]
    fn separates_neighboring_ranks() {
        let permutation = Permutation::new(1_000_000, 9);
        let images = (0..1000).map(|index| permutation.apply(index) / 1_000).collect::<std::collections::BTreeSet<_>>();
        // 1,000 balls thrown at random into 1,000 boxes leave about 368 boxes empty.
        assert!((580..690).contains(&images.len()), "{}", images.len());
    }

    proptest! {
        #[test]
        fn permutations_are_invertible(n in 1_u64..KEYS_MAX, key: u64, at: u64) {
            let permutation = Permutation::new(n, key);
            let image = permutation.apply(at % n);
            prop_assert!(image < n);
            prop_assert_eq!(permutation.invert(image), at % n);
        }

        #[test]
        fn ranks_are_below_n(n in 1_u64..KEYS_MAX, exponent in 0.0..8.0, seed: u64) {
            let zipf = ZipfRanks::new(Zipf::new(n, exponent));
            let mut rng = Rng::new(seed);
            for _ in 0..20 {
                prop_assert!(zipf.sample(&mut rng) < n);
            }
        }
    }
}
