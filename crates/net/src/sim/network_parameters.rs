//! Parameters of the simulated network, and its random numbers.

use std::ops::RangeInclusive;

use crate::driver::Nanos;

/// Parameters of a simulated network. Tests add disturbances to [`Network::PERFECT`].
#[derive(Clone, Debug)]
pub struct Network {
    /// One-way delay in ns, uniformly distributed. Segments in one direction never overtake each other.
    pub delay_ns: RangeInclusive<Nanos>,
    /// Maximum segment size in bytes, uniformly distributed. Larger sends are split into several segments.
    pub segment_bytes: RangeInclusive<usize>,
    /// Maximum size of a receive in bytes, uniformly distributed and limited by `Config::receive_bytes`.
    pub read_bytes: RangeInclusive<usize>,
    /// Maximum number of bytes per direction that the receiver has not taken. Further bytes wait at the sender.
    pub window_bytes: usize,
    /// Probability that a segment is lost, which resets the connection on both sides.
    pub reset_share: f64,
    /// Time in ns that an unsuccessful poll takes, at least 1, so that a polling loop makes progress.
    pub poll_ns: Nanos,
}

impl Network {
    /// A network with a one-way delay of 5 us, a window of 64 KiB, no fragmentation and no loss.
    pub const PERFECT: Network = Network {
        delay_ns: 5_000..=5_000,
        segment_bytes: 65_536..=65_536,
        read_bytes: usize::MAX..=usize::MAX,
        window_bytes: 65_536,
        reset_share: 0.0,
        poll_ns: 100,
    };

    /// A network with fragments, delays of 1 to 50 us and a small window, which every protocol must tolerate.
    pub const CHOPPY: Network = Network {
        delay_ns: 1_000..=50_000,
        segment_bytes: 1..=100,
        read_bytes: 1..=100,
        window_bytes: 1_000,
        reset_share: 0.0,
        poll_ns: 100,
    };
}

/// SplitMix64 (Steele, Lea and Flood 2014), which needs no other crate of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn within(&mut self, range: &RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        assert!(low <= high, "the range {low} to {high} is empty");
        let span = u128::from(high - low) + 1;
        low + ((u128::from(self.next()) * span) >> 64) as u64
    }

    pub(super) fn within_usize(&mut self, range: &RangeInclusive<usize>) -> usize {
        self.within(&(*range.start() as u64..=*range.end() as u64)) as usize
    }

    pub(super) fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && ((self.next() >> 11) as f64) < share * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_stay_in_range_and_are_reproducible() {
        let mut dice = Dice(1);
        assert_eq!(Dice(0).next(), 0xe220_a839_7b1d_cdaf);
        let throws: Vec<u64> = (0..1000).map(|_| dice.within(&(3..=5))).collect();
        assert!((3..=5).all(|side| throws.contains(&side)) && throws.iter().all(|side| (3..=5).contains(side)));
        assert_eq!(dice.within(&(7..=7)), 7);
        let mut again = Dice(1);
        assert_eq!(throws, (0..1000).map(|_| again.within(&(3..=5))).collect::<Vec<_>>());
        assert!(!dice.happens(0.0) && dice.happens(1.0));
    }
}
