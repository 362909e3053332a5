//! The index of a shard: tags of keys to blocks, in the upper words of its memory.
//!
//! Open addressing with Robin Hood displacement (Celis 1986) and backward shift: a slot's home is its tag scaled to the number of
//! slots, so slots lie in the order of their tags, a miss ends as early as a hit, and the index can be stretched by any
//! factor. A slot is 8 bytes: offset of the block (28 bits) and uses (4 bits); tag (27 bits), whether the item expires (1 bit), and a class of
//! its size (4 bits). The evictor `density` finds its victim among slots that lie side by side and reads no item for it.

use crate::memory::{Memory, NOBODY};

/// Bits of a tag.
pub(crate) const TAG_BITS: u32 = 27;
/// The number of slots is a multiple of this.
pub(crate) const SLOTS_STEP: u32 = 16;
/// The highest load, in percent, and what it is after growing or shrinking.
const LOAD_MAX: u64 = 88;
const LOAD_MIN: u64 = 55;
const LOAD_NEW: u64 = 82;

/// One slot, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) block: u32,
    pub(crate) uses: u32,
    pub(crate) tag: u32,
    pub(crate) expires: bool,
    pub(crate) class: u32,
}

impl Slot {
    #[inline]
    fn decode(low: u32, high: u32) -> Slot {
        Slot { block: low >> 4, uses: low & 15, tag: high >> 5, expires: high & 16 != 0, class: high & 15 }
    }

    #[inline]
    fn encode(self) -> (u32, u32) {
        (self.block << 4 | self.uses, self.tag << 5 | u32::from(self.expires) << 4 | self.class)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// First word of the slots.
    start: u32,
    slots: u32,
    items: u32,
    extra_per_two: u32,
}

impl Index {
    /// Words that an index of so many slots takes, with `extra_per_two` words of policy state a pair.
    pub(crate) fn words(slots: u32, extra_per_two: u32) -> u32 {
        2 * slots + slots / 2 * extra_per_two
    }

    /// An empty index in the uppermost words of a memory, all of which are 0.
    pub(crate) fn new(memory_words: u32, slots: u32, extra_per_two: u32) -> Index {
        Index { start: memory_words - Index::words(slots, extra_per_two), slots, items: 0, extra_per_two }
    }

    pub(crate) fn clear(&mut self, memory: &mut Memory) {
        memory.words[self.start as usize..].fill(0);
        self.items = 0;
    }

    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    pub(crate) fn items(&self) -> u32 {
        self.items
    }

    /// First word of the policy state.
    pub(crate) fn extra(&self) -> u32 {
        self.start + 2 * self.slots
    }

    /// Whether one more item makes it too full.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        (u64::from(self.items) + 1) * 100 > u64::from(self.slots) * LOAD_MAX
    }

    /// The number of slots to grow to.
    pub(crate) fn grown(&self) -> u32 {
        let wanted = (u64::from(self.items) + 1) * 100 / LOAD_NEW + 1;
        (wanted as u32).next_multiple_of(SLOTS_STEP).max(self.slots + SLOTS_STEP)
    }

    /// The number of slots to shrink to, where that is worth it.
    pub(crate) fn shrunk(&self) -> Option<u32> {
        if u64::from(self.items) * 100 >= u64::from(self.slots) * LOAD_MIN {
            return None;
        }
        let wanted = (u64::from(self.items) + 1) * 100 / LOAD_NEW + 1;
        let wanted = (wanted as u32).next_multiple_of(SLOTS_STEP).max(4 * SLOTS_STEP);
        (wanted < self.slots).then_some(wanted)
    }

    /// The place of a tag among `of`.
    #[inline]
    pub(crate) fn scale(tag: u32, of: u32) -> u32 {
        ((u64::from(tag) * u64::from(of)) >> TAG_BITS) as u32
    }

    #[inline]
    pub(crate) fn slot(&self, memory: &Memory, at: u32) -> Slot {
        let word = (self.start + 2 * at) as usize;
        let pair = &memory.words[word..word + 2];
        Slot::decode(pair[0], pair[1])
    }

    #[inline]
    pub(crate) fn set_slot(&self, memory: &mut Memory, at: u32, slot: Slot) {
        let word = (self.start + 2 * at) as usize;
        let pair = &mut memory.words[word..word + 2];
        (pair[0], pair[1]) = slot.encode();
    }

    #[inline]
    fn after(&self, at: u32) -> u32 {
        if at + 1 == self.slots { 0 } else { at + 1 }
    }

    /// How far a tag that lies at `at` is from its home.
    #[inline]
    fn distance(&self, tag: u32, at: u32) -> u32 {
        let home = Index::scale(tag, self.slots);
        if at >= home { at - home } else { at + self.slots - home }
    }

    /// The slot of a tag for which `is_it` holds.
    #[inline]
    pub(crate) fn find(&self, memory: &Memory, tag: u32, mut is_it: impl FnMut(&Memory, u32) -> bool) -> Option<u32> {
        let mut at = Index::scale(tag, self.slots);
        let mut distance = 0;
        loop {
            let slot = self.slot(memory, at);
            if slot.block == NOBODY {
                return None;
            }
            if slot.tag == tag {
                if is_it(memory, slot.block) {
                    return Some(at);
                }
            } else if self.distance(slot.tag, at) < distance {
                return None;
            }
            at = self.after(at);
            distance += 1;
        }
    }

    /// Puts a slot in its place; there is an empty one, as the index is never full.
    pub(crate) fn insert(&mut self, memory: &mut Memory, slot: Slot) {
        debug_assert!(self.items < self.slots);
        let mut carried = slot;
        let mut at = Index::scale(carried.tag, self.slots);
        let mut distance = 0;
        loop {
            let here = self.slot(memory, at);
            if here.block == NOBODY {
                self.set_slot(memory, at, carried);
                self.items += 1;
                return;
            }
            let theirs = self.distance(here.tag, at);
            if theirs < distance {
                self.set_slot(memory, at, carried);
                carried = here;
                distance = theirs;
            }
            at = self.after(at);
            distance += 1;
        }
    }

    /// Empties a slot and moves those behind it one nearer to their homes.
    pub(crate) fn remove(&mut self, memory: &mut Memory, at: u32) {
        let mut hole = at;
        loop {
            let next = self.after(hole);
            let slot = self.slot(memory, next);
            if slot.block == NOBODY || self.distance(slot.tag, next) == 0 {
                break;
            }
            self.set_slot(memory, hole, slot);
            hole = next;
        }
        self.set_slot(memory, hole, Slot { block: NOBODY, uses: 0, tag: 0, expires: false, class: 0 });
        self.items -= 1;
    }

    /// Lays the index out anew with so many slots, ending where it ended. The words it grows into must be free for it.
    ///
    /// It copies itself for that: for a moment the cache takes so much more memory, one shard at a time.
    pub(crate) fn resize(
        &mut self,
        memory: &mut Memory,
        slots: u32,
        mut extra: impl FnMut(&[u32], u32, &mut [u32], u32),
    ) {
        let old = memory.words[self.start as usize..].to_vec();
        let old_slots = self.slots;
        let first_after_gap = old.chunks_exact(2).take(old_slots as usize).position(|pair| pair[0] >> 4 == NOBODY);
        let first = first_after_gap.map_or(0, |gap| gap as u32 + 1);
        *self = Index::new(memory.words.len() as u32, slots, self.extra_per_two);
        memory.words[self.start as usize..].fill(0);
        // From a gap on, so that those which wrapped around come last, as they do in the order of homes.
        for step in 0..old_slots {
            let at = ((first + step) % old_slots) as usize;
            let slot = Slot::decode(old[2 * at], old[2 * at + 1]);
            if slot.block != NOBODY {
                self.insert(memory, slot);
            }
        }
        let from = self.extra() as usize;
        extra(&old[2 * old_slots as usize..], old_slots, &mut memory.words[from..], slots);
    }

    /// How far the taken slots are from their homes, on average.
    #[cfg(test)]
    pub(crate) fn mean_distance(&self, memory: &Memory) -> f64 {
        let taken = (0..self.slots).map(|at| (at, self.slot(memory, at))).filter(|(_, slot)| slot.block != NOBODY);
        let sum: u64 = taken.map(|(at, slot)| u64::from(self.distance(slot.tag, at))).sum();
        sum as f64 / f64::from(self.items.max(1))
    }

    /// Says what is not as it must be.
    pub(crate) fn audit(&self, memory: &Memory) -> Result<(), String> {
        let mut items = 0;
        let mut before = None;
        for at in 0..self.slots {
            let slot = self.slot(memory, at);
            let distance = self.distance(slot.tag, at);
            if slot.block != NOBODY {
                items += 1;
                // Nobody lies farther from home than one step more than the slot before.
                let bound = match before {
                    Some(before) => before + 1,
                    None if at == 0 => self.slots,
                    None => 0,
                };
                if distance > bound {
                    return Err(format!("slot {at} lies {distance} from its home, at most {bound} is right"));
                }
            }
            before = (slot.block != NOBODY).then_some(distance);
        }
        if items != self.items {
            return Err(format!("{items} slots are taken, {} are counted", self.items));
        }
        Ok(())
    }
}
