//! The eviction policies and their names. `shard.rs` implements them.

use std::fmt;
use std::str::FromStr;

/// An eviction policy, which chooses the items to evict when a new one needs room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Evictor {
    /// Evicts nothing; a full cache refuses new items.
    #[default]
    None,
    /// Evicts the item stored first.
    Fifo,
    /// Evicts the least recently used item.
    Lru,
    /// Evicts like FIFO but reinserts an item used since its insertion, with one bit per item (FIFO-Reinsertion).
    Clock,
    /// Evicts the first item unused since the last pass of a hand from old to new items (Zhang et al., NSDI 2024).
    Sieve,
    /// Keeps new items in a small queue (10 % of the bytes), others in a main queue with 2-bit frequencies, and ghosts
    /// of evicted keys, 90 % as many as the cache holds items. Two hits move a new item to the main queue. Source: Yang
    /// et al., SOSP 2023, with the parameters of libCacheSim's S3FIFO.
    S3Fifo,
    /// Evicts the item with the fewest uses per byte among 64 sampled items (quintain's own policy). Uses fade over
    /// time. Fingerprints remember the uses of about as many evicted keys as there are items.
    Density,
}

impl Evictor {
    /// All policies, in the order of their declaration.
    pub const ALL: [Evictor; 7] =
        [Evictor::None, Evictor::Fifo, Evictor::Lru, Evictor::Clock, Evictor::Sieve, Evictor::S3Fifo, Evictor::Density];

    const NAMES: [&str; 7] = ["none", "fifo", "lru", "clock", "sieve", "s3-fifo", "density"];

    /// Name of the policy in flags and studies, such as `s3-fifo`.
    pub fn name(self) -> &'static str {
        Evictor::NAMES[self as usize]
    }

    /// Whether the policy links items in queues, which takes 8 bytes per item.
    pub(crate) fn queues(self) -> bool {
        !matches!(self, Evictor::None | Evictor::Density)
    }

    /// Number of 4-byte words of policy state per two slots of the index.
    pub(crate) fn words_per_two_slots(self) -> u32 {
        match self {
            Evictor::Density => 1,
            Evictor::S3Fifo => 4,
            _ => 0,
        }
    }
}

impl fmt::Display for Evictor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Evictor {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Evictor::ALL.into_iter().find(|evictor| evictor.name() == name);
        let expected = Evictor::NAMES.join(", ");
        found.ok_or_else(|| format!("unknown eviction policy `{name}`: expected one of {expected}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for evictor in Evictor::ALL {
            assert_eq!(evictor.to_string().parse(), Ok(evictor));
            assert_eq!(format!("{evictor:?}").to_lowercase(), evictor.name().replace('-', ""));
        }
        let error = "lfu".parse::<Evictor>().unwrap_err();
        assert_eq!(
            error,
            "unknown eviction policy `lfu`: expected one of none, fifo, lru, clock, sieve, s3-fifo, \
                           density"
        );
    }
}
