//! Random numbers from a seed, equal on every machine and in every version of this crate.

/// Generator xoshiro256++, seeded by SplitMix64 (Blackman & Vigna 2021, <https://prng.di.unimi.it>). Not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

/// Mixes 64 bits with SplitMix64, bijectively, for reproducible numbers per item, such as a value's length.
pub fn mix(bits: u64) -> u64 {
    let mut state = bits;
    split_mix(&mut state)
}

/// Advances `state` by one step of SplitMix64 and returns a mixed copy (Steele, Lea & Flood 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Rng {
    /// Creates the generator for a seed.
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        Rng { state: std::array::from_fn(|_| split_mix(&mut mixer)) }
    }

    /// Creates one of many practically independent generators for a seed, for example one per worker, client or trial.
    pub fn stream(seed: u64, stream: u64) -> Self {
        // Seed and stream are mixed first, so that neither swapped pairs, (1, 2) and (2, 1), nor neighbors coincide.
        Rng::new(mix(seed) ^ mix(stream).rotate_left(32))
    }

    /// Returns 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Returns 32 random bits, the upper half of [`Rng::next_u64`].
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Draws a uniform number in [0, 1), a multiple of 2^-53.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws a uniform number strictly between 0 and 1, for quantile functions that are infinite at an end.
    pub fn open_f64(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// Draws a uniform integer below `n`. Panics if `n` is 0. Source: Lemire 2019, Fast Random Integer Generation in an
    /// Interval.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no integer is below 0");
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            // The lowest `2^64 mod n` fractions would bias the result.
            if product as u64 >= n || product as u64 >= n.wrapping_neg() % n {
                return (product >> 64) as u64;
            }
        }
    }

    /// Draws an exponentially distributed number with this mean, in the unit of the mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u is in (0, 1], so its logarithm is finite.
        -mean * (1.0 - self.unit_f64()).ln()
    }

    /// Draws a standard normal number by the polar method (Marsaglia & Bray 1964). Ignores the method's second number.
    pub fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.unit_f64() - 1.0;
            let y = 2.0 * self.unit_f64() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Shuffles `items`, so that all orders are equally likely (Fisher & Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Takes `steps` steps of xorshift (Marsaglia 2003). A step is six register operations, each dependent on the one
/// before, so that its time shows the speed of a CPU. Not for random numbers.
pub fn xorshift(mut state: u64, steps: u32) -> u64 {
    for _ in 0..steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    // python3: s = 1
    // for _ in range(n): s ^= s << 13 & (1 << 64) - 1; s ^= s >> 7; s ^= s << 17 & (1 << 64) - 1
    #[test]
    fn xorshift_is_fixed() {
        assert_eq!(
            [0, 1, 2, 1000].map(|steps| xorshift(1, steps)),
            [1, 1_082_269_761, 1_152_992_998_833_853_505, 11_424_263_524_947_540_013]
        );
    }

    // Computed from the definition with Python 3 integers. The first five outputs of state 1, 2, 3, 4 and the four of
    // seed 1477776061723855037 are also in the tests of the crate rand_xoshiro, from the authors' C code.
    #[test]
    fn outputs_match_published_values() {
        let mut plain = Rng { state: [1, 2, 3, 4] };
        let first = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205];
        assert_eq!(first.map(|_| plain.next_u64()), first);
        let mut mixer = 1_477_776_061_723_855_037;
        let mixed = [
            1_985_237_415_132_408_290,
            2_979_275_885_539_914_483,
            13_511_426_838_097_143_398,
            8_488_337_342_461_049_707,
        ];
        assert_eq!(mixed.map(|_| split_mix(&mut mixer)), mixed);
        let mut seeded = Rng::new(42);
        let first = [15_021_278_609_987_233_951, 5_881_210_131_331_364_753, 18_149_643_915_985_481_100];
        assert_eq!(first.map(|_| seeded.next_u64()), first);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let mut firsts = Vec::new();
        for seed in 0..30 {
            for stream in 0..30 {
                let mut rng = Rng::stream(seed, stream);
                firsts.push(rng.next_u64());
                assert_eq!(Rng::stream(seed, stream).next_u64(), *firsts.last().unwrap());
            }
        }
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 900, "two streams began alike");
    }

    #[test]
    fn below_is_even_and_in_range() {
        let mut rng = Rng::new(1);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi_square < 22.46, "{chi_square} is beyond 99.9 % of chi-square with 6 degrees of freedom");
        // `n` is two thirds of the range: without rejection, half of the numbers would be twice as likely.
        let n = u64::MAX / 3 * 2;
        let low = (0..10_000).filter(|_| rng.below(n) < n / 2).count();
        assert!((4_800..5_200).contains(&low), "{low} of 10,000 in the lower half");
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn moments_match_the_distribution() {
        let mut rng = Rng::new(2);
        let n = 200_000;
        let moments = |draw: &mut dyn FnMut() -> f64| {
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let value = draw();
                sum += value;
                squares += value * value;
            }
            let mean = sum / f64::from(n);
            (mean, squares / f64::from(n) - mean * mean)
        };
        // Bounds are 4 standard errors on either side of the true value.
        let (mean, variance) = moments(&mut || rng.normal());
        assert!(mean.abs() < 0.009 && (variance - 1.0).abs() < 0.013, "normal: {mean} {variance}");
        let (mean, variance) = moments(&mut || rng.exponential(3.0));
        assert!((mean - 3.0).abs() < 0.027 && (variance - 9.0).abs() < 0.23, "exponential: {mean} {variance}");
        let (mean, variance) = moments(&mut || rng.unit_f64());
        assert!((mean - 0.5).abs() < 0.003 && (variance - 1.0 / 12.0).abs() < 0.001, "uniform: {mean} {variance}");
    }

    #[test]
    fn all_orders_are_equally_likely() {
        let mut rng = Rng::new(3);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = ['a', 'b', 'c'];
            rng.shuffle(&mut items);
            *seen.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| (880..1_120).contains(count)), "{seen:?}");
        rng.shuffle(&mut [0u8; 0]);
    }
}
