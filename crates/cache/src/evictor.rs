//! Eviction policy.

use std::fmt;
use std::str::FromStr;

/// Eviction policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evictor {
    /// Nobody: a full cache refuses.
    None,
    /// The item stored first.
    Fifo,
    /// The item not used for longest.
    Lru,
    /// FIFO in which an item that was used goes round once more (FIFO-reinsertion, one bit).
    Clock,
    /// One queue in which a hand seeks, from old to new, an item not used since it last passed. Source: Zhang et al., NSDI 2024.
    Sieve,
    /// A small queue of newcomers (10 % of the bytes), a main queue with 2-bit frequencies, and ghosts of as many items
    /// as 90 % of what the cache holds; two hits move a newcomer to the main queue. Source: Yang et al., SOSP 2023, with the parameters of
    /// libCacheSim's S3FIFO.
    S3Fifo,
    /// Quintain's own: of 64 items sampled, the one with the fewest uses a byte. Uses fade with time, and are remembered, by
    /// fingerprints, of about as many keys that left as items are there.
    Density,
}

impl Evictor {
    /// All of them.
    pub const ALL: [Evictor; 7] =
        [Evictor::None, Evictor::Fifo, Evictor::Lru, Evictor::Clock, Evictor::Sieve, Evictor::S3Fifo, Evictor::Density];

    /// Its name, as flags and studies have it.
    pub fn name(self) -> &'static str {
        match self {
            Evictor::None => "none",
            Evictor::Fifo => "fifo",
            Evictor::Lru => "lru",
            Evictor::Clock => "clock",
            Evictor::Sieve => "sieve",
            Evictor::S3Fifo => "s3-fifo",
            Evictor::Density => "density",
        }
    }

    /// Whether items hang in queues, which takes 8 bytes an item.
    pub(crate) fn queues(self) -> bool {
        !matches!(self, Evictor::None | Evictor::Density)
    }

    /// 4-byte words of policy state beside each two slots of the index.
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

/// A name that no evictor has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown eviction policy `{name}`: expected one of none, fifo, lru, clock, sieve, s3-fifo, density")]
pub struct UnknownEvictor {
    /// The name.
    pub name: String,
}

impl FromStr for Evictor {
    type Err = UnknownEvictor;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Evictor::ALL.into_iter().find(|evictor| evictor.name() == name);
        found.ok_or_else(|| UnknownEvictor { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for evictor in Evictor::ALL {
            assert_eq!(evictor.to_string().parse(), Ok(evictor));
        }
        let error = "lfu".parse::<Evictor>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown eviction policy `lfu`: expected one of none, fifo, lru, clock, sieve, s3-fifo, \
                           density"
        );
    }
}
