//! A shard's memory, allocated once: an arena for item blocks at the bottom and the index (`index.rs`) at the top. The
//! border moves if one of them needs space that is free in the other. Offsets count 4-byte words; offset 0 means no
//! block. The arena uses two-level segregated fits with coalescing (TLSF; Masmano et al. 2004).
//!
//! Each block starts with a header word. In a used block, bit 0 is set. Bits 1 to 3 describe the words below the block:
//! not free, a free block of 1, 2 or 3 words, or a larger one with its size in its last word. The other bits belong to
//! the owner. In a free block, bits 4 and up hold its size. If it has at least 4 words, it also contains the next and
//! previous block of its class, and its size in the last word. Shorter ones are in no class until they join a neighbor.

pub(crate) const NO_BLOCK: u32 = 0;

const USED: u32 = 1;
const BELOW_SHIFT: u32 = 1;
const BELOW_MASK: u32 = 7 << BELOW_SHIFT;
/// Value of bits 1 to 3 if the free block below is longer than 3 words; its last word then contains its size.
const BELOW_LARGE: u32 = 4;
/// Minimum size in words of a free block that is listed in a class.
const LISTED_MIN: u32 = 4;
/// Position of the lowest owner bit in the first word of a used block.
pub(crate) const OWNER_SHIFT: u32 = 4;

const CLASSES: usize = 416;

/// The class of a size in words: one class per size below 16 words, then 16 classes per power of two.
fn class_of(words: u32) -> usize {
    if words < 16 {
        return words as usize;
    }
    let log = words.ilog2();
    let within = (words >> (log - 4)) & 15;
    (16 * (log - 3) + within) as usize
}

/// The first class in which every block has at least `words` words.
fn class_above(words: u32) -> usize {
    class_of(if words < 16 { words } else { words + (1 << (words.ilog2() - 4)) - 1 })
}

pub(crate) struct Memory {
    pub(crate) words: Box<[u32]>,
    /// Offset of the word after the arena, marked as a used block without an owner to stop coalescing.
    pub(crate) end: u32,
    /// Total size of all free blocks in words, including blocks too short for a class.
    pub(crate) free_words: u32,
    bits: [u64; CLASSES.div_ceil(64)],
    heads: [u32; CLASSES],
}

impl Memory {
    /// Reserves `words` words, which become resident as they are used. The top `above` words are for the index.
    pub(crate) fn new(words: u32, above: u32) -> Memory {
        let mut memory = Memory {
            words: vec![0; words as usize].into_boxed_slice(),
            end: words - above - 1,
            free_words: 0,
            bits: [0; CLASSES.div_ceil(64)],
            heads: [NO_BLOCK; CLASSES],
        };
        memory.clear();
        memory
    }

    pub(crate) fn clear(&mut self) {
        self.bits.fill(0);
        self.heads.fill(NO_BLOCK);
        self.free_words = 0;
        self.words[self.end as usize] = USED;
        self.put(1, self.end - 1);
    }

    pub(crate) fn arena_words(&self) -> u32 {
        self.end - 1
    }

    pub(crate) fn at(&self, word: u32) -> u32 {
        self.words[word as usize]
    }

    pub(crate) fn set(&mut self, word: u32, to: u32) {
        self.words[word as usize] = to;
    }

    pub(crate) fn is_used(&self, block: u32) -> bool {
        self.at(block) & USED != 0
    }

    pub(crate) fn free_size(&self, block: u32) -> u32 {
        self.at(block) >> OWNER_SHIFT
    }

    pub(crate) fn owner_bits(&self, block: u32) -> u32 {
        self.at(block) >> OWNER_SHIFT
    }

    pub(crate) fn set_owner_bits(&mut self, block: u32, bits: u32) {
        let word = self.at(block);
        self.set(block, (word & ((1 << OWNER_SHIFT) - 1)) | bits << OWNER_SHIFT);
    }

    fn tell_below(&mut self, block: u32, free_words: u32) {
        let word = self.at(block);
        self.set(block, (word & !BELOW_MASK) | free_words.min(BELOW_LARGE) << BELOW_SHIFT);
    }

    /// Size in words of the free block just below the used `block`; 0 if the block below is used.
    fn free_below(&self, block: u32) -> u32 {
        match (self.at(block) & BELOW_MASK) >> BELOW_SHIFT {
            BELOW_LARGE => self.at(block - 1),
            words => words,
        }
    }

    /// Marks `words` words from `block` on as a free block. Its neighbors must not be free.
    fn put(&mut self, block: u32, words: u32) {
        self.free_words += words;
        self.set(block, words << OWNER_SHIFT);
        self.tell_below(block + words, words);
        if words < LISTED_MIN {
            return;
        }
        let class = class_of(words);
        let next = self.heads[class];
        self.set(block + 1, next);
        self.set(block + 2, NO_BLOCK);
        self.set(block + words - 1, words);
        if next != NO_BLOCK {
            self.set(next + 2, block);
        }
        self.heads[class] = block;
        self.bits[class / 64] |= 1 << (class % 64);
    }

    pub(crate) fn take(&mut self, block: u32) -> u32 {
        let words = self.free_size(block);
        self.free_words -= words;
        if words < LISTED_MIN {
            return words;
        }
        let (next, previous) = (self.at(block + 1), self.at(block + 2));
        if next != NO_BLOCK {
            self.set(next + 2, previous);
        }
        if previous != NO_BLOCK {
            self.set(previous + 1, next);
        } else {
            let class = class_of(words);
            self.heads[class] = next;
            if next == NO_BLOCK {
                self.bits[class / 64] &= !(1 << (class % 64));
            }
        }
        words
    }

    /// Frees a block, joins it with free neighbors and returns the joined block. Bits 1 to 3 of `block` must be valid.
    pub(crate) fn release(&mut self, block: u32, words: u32) -> u32 {
        let below = self.free_below(block);
        let (mut block, mut words, above) = (block, words, block + words);
        if !self.is_used(above) {
            words += self.take(above);
        }
        if below > 0 {
            block -= below;
            words += self.take(block);
        }
        self.put(block, words);
        block
    }

    fn first_class_from(&self, class: usize) -> Option<usize> {
        let mut word = class / 64;
        let mut bits = self.bits.get(word)? & (u64::MAX << (class % 64));
        while bits == 0 {
            word += 1;
            bits = *self.bits.get(word)?;
        }
        Some(64 * word + bits.trailing_zeros() as usize)
    }

    /// Allocates a used block whose owner bits are 0. Returns `None` if it finds no free block that is large enough.
    pub(crate) fn allocate(&mut self, words: u32) -> Option<u32> {
        let class = class_of(words.max(LISTED_MIN));
        // Tries a few blocks of the size's class, which may be too small, before a class in which every block fits.
        let mut near = self.heads[class];
        for _ in 0..4 {
            if near == NO_BLOCK || self.free_size(near) >= words {
                break;
            }
            near = self.at(near + 1);
        }
        if near == NO_BLOCK || self.free_size(near) < words {
            near = self.heads[self.first_class_from(class_above(words.max(LISTED_MIN)))?];
        }
        let free = self.take(near);
        self.carve(near, free, words);
        Some(near)
    }

    /// Marks the first `words` words of a block taken from its class as used, and frees the rest.
    pub(crate) fn carve(&mut self, block: u32, taken: u32, words: u32) {
        // The block below a free block is used, because free neighbors are always joined.
        self.set(block, USED);
        if taken > words {
            self.put(block + words, taken - words);
        } else {
            self.tell_below(block + words, 0);
        }
    }

    /// The first four free blocks from the largest class down, padded with `NO_BLOCK`.
    pub(crate) fn largest(&self) -> [u32; 4] {
        let mut found = [NO_BLOCK; 4];
        let mut count = 0;
        for word in (0..self.bits.len()).rev() {
            let mut bits = self.bits[word];
            while bits != 0 {
                let bit = 63 - bits.leading_zeros() as usize;
                let mut block = self.heads[64 * word + bit];
                while block != NO_BLOCK {
                    found[count] = block;
                    count += 1;
                    if count == found.len() {
                        return found;
                    }
                    block = self.at(block + 1);
                }
                bits &= !(1 << bit);
            }
        }
        found
    }

    /// Moves the end of the arena up to `end`, which adds words that the index no longer uses.
    pub(crate) fn extend(&mut self, end: u32) {
        let old = self.end;
        self.end = end;
        self.set(end, USED);
        self.release(old, end - old);
    }

    /// Moves the end of the arena down to `end` if all words from there on are free; returns whether they are.
    pub(crate) fn shorten(&mut self, end: u32) -> bool {
        let free = self.free_below(self.end);
        let start = self.end - free;
        if start > end {
            return false;
        }
        if free > 0 {
            self.take(start);
        }
        self.end = end;
        self.set(end, USED);
        if end > start {
            self.put(start, end - start);
        }
        true
    }

    /// Returns all used blocks. Panics if an invariant is violated. `used_size` returns the size of a block in words.
    pub(crate) fn audit(&self, used_size: impl Fn(u32) -> u32) -> Vec<u32> {
        let (mut used, mut free_words) = (Vec::new(), 0);
        let mut listed = std::collections::BTreeSet::new();
        let mut block = 1;
        let mut below = 0;
        while block < self.end {
            if self.is_used(block) {
                assert_eq!(self.free_below(block), below, "free words below block {block}, as recorded and found");
                below = 0;
                used.push(block);
                block += used_size(block);
            } else {
                assert_eq!(below, 0, "free blocks below and at {block} are not joined");
                below = self.free_size(block);
                assert!(below > 0, "free block {block} of 0 words");
                if below >= LISTED_MIN {
                    listed.insert(block);
                }
                free_words += below;
                block += below;
            }
        }
        assert_eq!((block, self.free_below(block)), (self.end, below), "the end of the blocks and of the arena");
        assert!(self.is_used(block), "the end of the arena is free");
        assert_eq!(free_words, self.free_words, "free words, and their counter");
        for class in 0..CLASSES {
            let bit = self.bits[class / 64] >> (class % 64) & 1 == 1;
            assert_eq!(bit, self.heads[class] != NO_BLOCK, "the bit of class {class}");
            let (mut block, mut previous) = (self.heads[class], NO_BLOCK);
            while block != NO_BLOCK {
                let is_right = class_of(self.free_size(block)) == class && self.at(block + 2) == previous;
                assert!(listed.remove(&block) && is_right, "block {block} does not belong in class {class}");
                previous = block;
                block = self.at(block + 1);
            }
        }
        assert!(listed.is_empty(), "free blocks in no class: {listed:?}");
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn size_classes_are_ordered_and_bounded() {
        for words in 1..100_000 {
            assert!(class_of(words) <= class_above(words));
            assert!(class_of(words) <= class_of(words + 1));
        }
        assert!(class_of((1 << 28) + 5) < CLASSES && class_above(1 << 28) < CLASSES);
    }

    proptest! {
        #[test]
        fn blocks_never_overlap_and_are_reclaimed(steps in proptest::collection::vec((0u8..4, 4u32..90), 1..300)) {
            let mut memory = Memory::new(2_000, 200);
            let mut held: Vec<(u32, u32)> = Vec::new();
            for (kind, words) in steps {
                if kind > 0 {
                    if let Some(block) = memory.allocate(words) {
                        memory.set_owner_bits(block, words);
                        held.push((block, words));
                    } else {
                        prop_assert!(memory.largest()[0] == NO_BLOCK || memory.free_size(memory.largest()[0]) < words + words / 16 + 2);
                    }
                } else if !held.is_empty() {
                    let (block, size) = held.swap_remove(words as usize % held.len());
                    memory.release(block, size);
                }
                let used = memory.audit(|block| memory.owner_bits(block));
                let mut blocks = held.iter().map(|held| held.0).collect::<Vec<_>>();
                blocks.sort_unstable();
                prop_assert_eq!(used, blocks);
                let used_words = held.iter().map(|held| held.1).sum::<u32>();
                prop_assert_eq!(used_words + memory.free_words, memory.arena_words());
            }
            for (block, size) in held {
                memory.release(block, size);
            }
            prop_assert_eq!(memory.free_size(1), memory.arena_words());
        }
    }
}
