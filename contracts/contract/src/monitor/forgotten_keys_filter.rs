//! A Bloom filter of the keys of forgotten entries.

use super::log_structured_map::Key;

const BYTES_MAX: usize = 1 << 20;

/// A filter of the keys of forgotten entries, without false negatives. With 512 KiB and 600,000 keys, 6 % of other keys
/// are false positives. Source: Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Bits of the filter, allocated with the first key.
    bits: Vec<u8>,
    bytes: usize,
    is_everything: bool,
}

impl Forgotten {
    /// Creates an empty filter of `bytes` bytes, but at least 64 B and at most 1 MiB, rounded up to a power of two.
    pub fn new(bytes: usize) -> Self {
        Self { bits: Vec::new(), bytes: bytes.clamp(64, BYTES_MAX).next_power_of_two(), is_everything: false }
    }

    /// Adds the key of a forgotten entry.
    pub fn insert(&mut self, key: &Key) {
        if !self.is_everything {
            self.bits.resize(self.bytes, 0);
            for at in self.places(key) {
                self.bits[at / 8] |= 1 << (at % 8);
            }
        }
    }

    /// Adds all keys, for a store that does not know which entries it lost.
    pub fn insert_everything(&mut self) {
        self.bits = Vec::new();
        self.is_everything = true;
    }

    /// Whether the entry of a key may have been forgotten. `false` is certain.
    pub fn may_have(&self, key: &Key) -> bool {
        self.is_everything
            || !self.bits.is_empty() && self.places(key).iter().all(|at| self.bits[at / 8] & 1 << (at % 8) != 0)
    }

    /// Memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.bits.len()
    }

    /// Memory in use once the filter has a key, in bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes
    }

    /// Encodes the filter: nothing if it is empty, one byte if it has all keys, otherwise its bits.
    pub fn encode(&self) -> &[u8] {
        if self.is_everything { &[1] } else { &self.bits }
    }

    /// Decodes the output of [`Forgotten::encode`] for a filter of this size. Any other input means all keys.
    pub fn decode(&self, bytes: &[u8]) -> Self {
        match bytes {
            [] => self.clone(),
            bits if bits.len() == self.bytes => Self { bits: bits.to_vec(), ..*self },
            _ => Self { bits: Vec::new(), is_everything: true, ..*self },
        }
    }

    fn places(&self, key: &Key) -> [usize; 2] {
        let half = |at: usize| u32::from_le_bytes([key[at], key[at + 1], key[at + 2], key[at + 3]]) as usize;
        [0, 8].map(|at| half(at) % (self.bytes * 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key from SplitMix64, so that it looks like a hash.
    fn key(number: u64) -> Key {
        let mix = |number: u64| {
            let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)).to_le_bytes()
        };
        let (first, second) = (mix(number), mix(number ^ 0xffff_0000));
        std::array::from_fn(|at| if at < 8 { first[at] } else { second[at - 8] })
    }

    #[test]
    fn has_no_false_negatives_and_few_false_positives() {
        let mut filter = Forgotten::new(512 << 10);
        assert!((0..100).all(|number| !filter.may_have(&key(number))) && filter.bytes() == 0);
        (0..600_000).for_each(|number| filter.insert(&key(number)));
        assert!((0..600_000).all(|number| filter.may_have(&key(number))));
        let mistaken = (600_000..700_000).filter(|number| filter.may_have(&key(*number))).count();
        assert!((4_000..8_000).contains(&mistaken), "{mistaken} of 100,000");
    }

    #[test]
    fn survives_encoding() {
        let empty = Forgotten::new(1024);
        let mut some = empty.clone();
        some.insert(&key(1));
        let mut everything = empty.clone();
        everything.insert_everything();
        for filter in [&empty, &some, &everything] {
            assert_eq!(empty.decode(filter.encode()), *filter);
        }
        assert!(empty.decode(&[0; 17]).may_have(&key(2)), "a damaged filter counts as everything");
    }
}
