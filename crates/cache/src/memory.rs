//! One piece of memory, allocated once: blocks of items from below, the index of slots from above.
//!
//! The lower part is an arena of blocks, told apart by two-level segregated fits with coalescing (TLSF; Masmano et al. 2004, An
//! implementation of a new dynamic memory allocator). The upper part is the index (see the file `index.rs`). Where one needs
//! room and the other has it, the border between them moves. All offsets count words of 4 bytes; offset 0 is nobody's.
//!
//! A block begins with one word. Of a used block: bit 0 is set, bits 1 to 3 say what lies below it (nothing free, a
//! free block of 1, 2 or 3 words, or a larger one whose last word is its size), the rest is its owner's. Of a free one: its size in bits
//! 4 and up, and, from 4 words on, the next and the previous block of its class and, in its last word, its size. Shorter free
//! blocks are in no class and wait for a neighbour.

/// What lies at offset 0: nobody.
pub(crate) const NOBODY: u32 = 0;

const USED: u32 = 1;
const BELOW_SHIFT: u32 = 1;
const BELOW_MASK: u32 = 7 << BELOW_SHIFT;
/// `below` of a free block that has its size in its last word.
const BELOW_LARGE: u32 = 4;
/// The shortest free block that is in a class, in words.
const LISTED_MIN: u32 = 4;
/// First of the bits of a used block's first word that belong to its owner.
pub(crate) const OWNER_SHIFT: u32 = 4;

const CLASSES: usize = 416;

/// The class of blocks of this size: exact below 16 words, then 16 classes to each doubling.
fn class_of(words: u32) -> usize {
    if words < 16 {
        return words as usize;
    }
    let log = 31 - words.leading_zeros();
    let within = (words >> (log - 4)) & 15;
    (16 * (log - 3) + within) as usize
}

/// The first class all of whose blocks have at least this size.
fn class_above(words: u32) -> usize {
    if words < 16 {
        return words as usize;
    }
    let log = 31 - words.leading_zeros();
    class_of(words + (1 << (log - 4)) - 1)
}

pub(crate) struct Memory {
    pub(crate) words: Box<[u32]>,
    /// The word after the arena: a used block of no owner, so that nothing coalesces past it.
    end: u32,
    free_words: u32,
    bits: [u64; CLASSES.div_ceil(64)],
    heads: [u32; CLASSES],
}

impl Memory {
    /// Memory of so many words, the upper `above` of which are not the arena's. The allocator hands it over lazily: it
    /// becomes resident as it is used.
    pub(crate) fn new(words: u32, above: u32) -> Memory {
        let mut memory = Memory {
            words: vec![0; words as usize].into_boxed_slice(),
            end: words - above - 1,
            free_words: 0,
            bits: [0; CLASSES.div_ceil(64)],
            heads: [NOBODY; CLASSES],
        };
        memory.clear();
        memory
    }

    /// Makes the whole arena one free block.
    pub(crate) fn clear(&mut self) {
        self.bits.fill(0);
        self.heads.fill(NOBODY);
        self.free_words = 0;
        self.words[self.end as usize] = USED;
        self.put(1, self.end - 1);
    }

    /// Words of free blocks, listed or not.
    pub(crate) fn free_words(&self) -> u32 {
        self.free_words
    }

    /// Words between the first block and the end of the arena.
    pub(crate) fn arena_words(&self) -> u32 {
        self.end - 1
    }

    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    #[inline]
    pub(crate) fn at(&self, word: u32) -> u32 {
        self.words[word as usize]
    }

    #[inline]
    pub(crate) fn set(&mut self, word: u32, to: u32) {
        self.words[word as usize] = to;
    }

    pub(crate) fn is_used(&self, block: u32) -> bool {
        self.at(block) & USED != 0
    }

    /// Size of a free block, in words.
    pub(crate) fn free_size(&self, block: u32) -> u32 {
        self.at(block) >> OWNER_SHIFT
    }

    /// The owner's bits of a used block.
    #[inline]
    pub(crate) fn owner_bits(&self, block: u32) -> u32 {
        self.at(block) >> OWNER_SHIFT
    }

    #[inline]
    pub(crate) fn set_owner_bits(&mut self, block: u32, bits: u32) {
        let word = self.at(block);
        self.set(block, (word & ((1 << OWNER_SHIFT) - 1)) | bits << OWNER_SHIFT);
    }

    /// Tells the used block at `block` what lies below it.
    fn tell_below(&mut self, block: u32, free_words: u32) {
        let word = self.at(block);
        self.set(block, (word & !BELOW_MASK) | free_words.min(BELOW_LARGE) << BELOW_SHIFT);
    }

    /// Size of the free block just below the used `block`, 0 where what lies there is used.
    fn free_below(&self, block: u32) -> u32 {
        match (self.at(block) & BELOW_MASK) >> BELOW_SHIFT {
            BELOW_LARGE => self.at(block - 1),
            words => words,
        }
    }

    /// Makes `[block, block + words)`, which touches no free block, a free block.
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
        self.set(block + 2, NOBODY);
        self.set(block + words - 1, words);
        if next != NOBODY {
            self.set(next + 2, block);
        }
        self.heads[class] = block;
        self.bits[class / 64] |= 1 << (class % 64);
    }

    /// Takes a free block out of its class; its words belong to the caller.
    pub(crate) fn take(&mut self, block: u32) -> u32 {
        let words = self.free_size(block);
        self.free_words -= words;
        if words < LISTED_MIN {
            return words;
        }
        let (next, previous) = (self.at(block + 1), self.at(block + 2));
        if next != NOBODY {
            self.set(next + 2, previous);
        }
        if previous != NOBODY {
            self.set(previous + 1, next);
        } else {
            let class = class_of(words);
            self.heads[class] = next;
            if next == NOBODY {
                self.bits[class / 64] &= !(1 << (class % 64));
            }
        }
        words
    }

    /// Makes `[block, block + words)` free and joins it with free neighbours. The words may be of used blocks or taken; the first
    /// word must still say what lies below.
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

    /// A used block of exactly so many words, if some free block is large enough; its owner's bits are 0.
    pub(crate) fn allocate(&mut self, words: u32) -> Option<u32> {
        let class = class_of(words.max(LISTED_MIN));
        // A few of the class the size falls into may do, before the next class that surely does.
        let mut near = self.heads[class];
        for _ in 0..4 {
            if near == NOBODY || self.free_size(near) >= words {
                break;
            }
            near = self.at(near + 1);
        }
        if near == NOBODY || self.free_size(near) < words {
            near = self.heads[self.first_class_from(class_above(words.max(LISTED_MIN)))?];
        }
        let free = self.take(near);
        self.carve(near, free, words);
        Some(near)
    }

    /// Makes the first `words` of a taken block used and frees the rest.
    pub(crate) fn carve(&mut self, block: u32, taken: u32, words: u32) {
        // What lies below a free block is used: free neighbours are always joined.
        self.set(block, USED);
        if taken > words {
            self.put(block + words, taken - words);
        } else {
            self.tell_below(block + words, 0);
        }
    }

    /// Up to four of the largest free blocks.
    pub(crate) fn largest(&self) -> [u32; 4] {
        let mut found = [NOBODY; 4];
        let mut count = 0;
        for word in (0..self.bits.len()).rev() {
            let mut bits = self.bits[word];
            while bits != 0 {
                let bit = 63 - bits.leading_zeros() as usize;
                let mut block = self.heads[64 * word + bit];
                while block != NOBODY {
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

    /// Moves the end of the arena up to `end`, into words that the index has left.
    pub(crate) fn extend(&mut self, end: u32) {
        let old = self.end;
        self.end = end;
        self.set(end, USED);
        self.release(old, end - old);
    }

    /// Moves the end of the arena down to `end`, if everything from there on is free.
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

    /// Walks all blocks and lists, with the size of a used block from its owner, and says what is not as it must be.
    pub(crate) fn audit(&self, used_size: impl Fn(u32) -> u32) -> Result<Walk, String> {
        let mut walk = Walk::default();
        let mut listed = std::collections::BTreeSet::new();
        let mut block = 1;
        let mut below = 0;
        while block < self.end {
            if self.is_used(block) {
                if self.free_below(block) != below {
                    return Err(format!(
                        "block {block} records {} free words below, found {below}",
                        self.free_below(block)
                    ));
                }
                below = 0;
                walk.used.push(block);
                walk.used_words += used_size(block);
                block += used_size(block);
            } else {
                if below > 0 {
                    return Err(format!("free blocks below and at {block} are not joined"));
                }
                below = self.free_size(block);
                if below == 0 {
                    return Err(format!("free block {block} of 0 words"));
                }
                if below >= LISTED_MIN {
                    listed.insert(block);
                }
                walk.free_words += below;
                walk.holes += 1;
                block += below;
            }
        }
        if block != self.end || !self.is_used(block) || self.free_below(block) != below {
            return Err(format!("blocks end at {block}, the arena ends at {}", self.end));
        }
        if walk.free_words != self.free_words {
            return Err(format!("{} words are free, the counter says {}", walk.free_words, self.free_words));
        }
        for class in 0..CLASSES {
            let bit = self.bits[class / 64] >> (class % 64) & 1 == 1;
            if bit != (self.heads[class] != NOBODY) {
                return Err(format!("the bit of class {class} is {bit}"));
            }
            let (mut block, mut previous) = (self.heads[class], NOBODY);
            while block != NOBODY {
                if !listed.remove(&block) || class_of(self.free_size(block)) != class || self.at(block + 2) != previous
                {
                    return Err(format!("block {block} does not belong in class {class}"));
                }
                previous = block;
                block = self.at(block + 1);
            }
        }
        if let Some(block) = listed.first() {
            return Err(format!("free block {block} is in no class"));
        }
        Ok(walk)
    }
}

/// What a walk over all blocks found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) used: Vec<u32>,
    pub(crate) used_words: u32,
    pub(crate) free_words: u32,
    pub(crate) holes: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_hold_what_they_say() {
        for words in 1..100_000 {
            assert!(class_of(words) <= class_above(words));
            assert!(class_of(words) <= class_of(words + 1));
        }
        assert!(class_of((1 << 28) + 5) < CLASSES && class_above(1 << 28) < CLASSES);
    }

    proptest! {
        #[test]
        fn blocks_never_overlap_and_come_back(steps in proptest::collection::vec((0u8..4, 4u32..90), 1..300)) {
            let mut memory = Memory::new(2_000, 200);
            let mut held: Vec<(u32, u32)> = Vec::new();
            for (kind, words) in steps {
                if kind > 0 {
                    if let Some(block) = memory.allocate(words) {
                        // The owner's bits keep the size, for the walk.
                        memory.set_owner_bits(block, words);
                        held.push((block, words));
                    } else {
                        prop_assert!(memory.largest()[0] == NOBODY || memory.free_size(memory.largest()[0]) < words + words / 16 + 2);
                    }
                } else if !held.is_empty() {
                    let (block, size) = held.swap_remove(words as usize % held.len());
                    memory.release(block, size);
                }
                let walk = memory.audit(|block| memory.owner_bits(block)).map_err(TestCaseError::fail)?;
                let mut blocks = held.iter().map(|held| held.0).collect::<Vec<_>>();
                blocks.sort_unstable();
                prop_assert_eq!(walk.used, blocks);
                prop_assert_eq!(walk.used_words + walk.free_words, memory.arena_words());
            }
            for (block, size) in held {
                memory.release(block, size);
            }
            prop_assert_eq!(memory.free_size(1), memory.arena_words());
        }
    }
}
