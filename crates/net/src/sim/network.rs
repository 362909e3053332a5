//! How the simulated network behaves, and the dice it throws.

use std::ops::RangeInclusive;

use crate::driver::Nanos;

/// The laws of a simulated network. [`Network::PERFECT`] has none of the troubles; tests name those that they want.
#[derive(Clone, Debug)]
pub struct Network {
    /// How long a segment takes one way, evenly spread, ns. Segments of one direction never overtake each other.
    pub delay_ns: RangeInclusive<Nanos>,
    /// How many bytes travel together at most, evenly spread; bytes sent at once arrive in so many segments.
    pub segment_bytes: RangeInclusive<usize>,
    /// How many bytes one receive gives at most, evenly spread (and never more than `Config::receive_bytes`).
    pub read_bytes: RangeInclusive<usize>,
    /// How many bytes one direction holds that the other side has not taken; more wait in the sender.
    pub window_bytes: usize,
    /// The chance that a segment is lost for good and the connection reset at both sides.
    pub reset_share: f64,
    /// What a turn costs that polls in vain, ns, so that a loop that only polls gets on. At least 1.
    pub poll_ns: Nanos,
}

impl Network {
    /// 5 us one way, 64 KiB of window, all in one piece, nothing lost.
    pub const PERFECT: Network = Network {
        delay_ns: 5_000..=5_000,
        segment_bytes: 65_536..=65_536,
        read_bytes: usize::MAX..=usize::MAX,
        window_bytes: 65_536,
        reset_share: 0.0,
        poll_ns: 100,
    };

    /// Everything in small pieces, late by 1 to 50 us, through a window of 1,000 bytes: what no protocol may mind.
    pub const CHOPPY: Network = Network {
        delay_ns: 1_000..=50_000,
        segment_bytes: 1..=100,
        read_bytes: 1..=100,
        window_bytes: 1_000,
        reset_share: 0.0,
        poll_ns: 100,
    };
}

/// Random numbers: SplitMix64 (Steele, Lea and Flood 2014). Enough for chopping up byte streams, and no other crate of
/// this workspace is needed for it.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly spread over `range`, whose ends may be equal.
    pub(super) fn within(&mut self, range: &RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        assert!(low <= high, "the range {low} to {high} is empty");
        let span = u128::from(high - low) + 1;
        low + ((u128::from(self.next()) * span) >> 64) as u64
    }

    pub(super) fn within_usize(&mut self, range: &RangeInclusive<usize>) -> usize {
        self.within(&(*range.start() as u64..=*range.end() as u64)) as usize
    }

    /// True with the chance `share`.
    pub(super) fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && ((self.next() >> 11) as f64) < share * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_stay_in_range_and_repeat() {
        let mut dice = Dice::new(1);
        // The first output for seed 0 of the reference implementation.
        assert_eq!(Dice::new(0).next(), 0xe220_a839_7b1d_cdaf);
        let throws: Vec<u64> = (0..1000).map(|_| dice.within(&(3..=5))).collect();
        assert!((3..=5).all(|side| throws.contains(&side)) && throws.iter().all(|side| (3..=5).contains(side)));
        assert_eq!(dice.within(&(7..=7)), 7);
        let mut again = Dice::new(1);
        assert_eq!(throws, (0..1000).map(|_| again.within(&(3..=5))).collect::<Vec<_>>());
        assert!(!dice.happens(0.0) && dice.happens(1.0));
    }
}
