//! The index of a shard maps tags of keys to blocks. It is in the upper words of the shard's memory and uses open
//! addressing with Robin Hood displacement (Celis 1986) and backward-shift deletion. A slot's home is its tag scaled to
//! the number of slots. So slots are sorted by tag, misses end as early as hits, and the index can grow by any factor.
//!
//! A slot has 8 bytes: block offset (28 bits), uses (4), tag (27), whether the item expires (1) and size class (4).
//! `density` finds a victim among adjacent slots without reading items.

use crate::arena_allocator::{Memory, NO_BLOCK};

pub(crate) const TAG_BITS: u32 = 27;
/// The number of slots of every index is a multiple of this number.
pub(crate) const SLOTS_STEP: u32 = 16;
/// Load in percent above which the index grows. It shrinks below `LOAD_MIN`. A resized index has the load `LOAD_NEW`.
const LOAD_MAX: u64 = 88;
const LOAD_MIN: u64 = 55;
const LOAD_NEW: u64 = 82;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) block: u32,
    pub(crate) uses: u32,
    pub(crate) tag: u32,
    pub(crate) expires: bool,
    pub(crate) class: u32,
}

impl Slot {
    fn decode(low: u32, high: u32) -> Slot {
        Slot { block: low >> 4, uses: low & 15, tag: high >> 5, expires: high & 16 != 0, class: high & 15 }
    }

    fn encode(self) -> (u32, u32) {
        (self.block << 4 | self.uses, self.tag << 5 | u32::from(self.expires) << 4 | self.class)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Index {
    start: u32,
    pub(crate) slots: u32,
    pub(crate) items: u32,
    extra_per_two: u32,
}

impl Index {
    /// Size of an index in 4-byte words, including `extra_per_two` words of policy state per two slots.
    pub(crate) fn words(slots: u32, extra_per_two: u32) -> u32 {
        2 * slots + slots / 2 * extra_per_two
    }

    pub(crate) fn new(memory_words: u32, slots: u32, extra_per_two: u32) -> Index {
        Index { start: memory_words - Index::words(slots, extra_per_two), slots, items: 0, extra_per_two }
    }

    pub(crate) fn clear(&mut self, memory: &mut Memory) {
        memory.words[self.start as usize..].fill(0);
        self.items = 0;
    }

    pub(crate) fn extra(&self) -> u32 {
        self.start + 2 * self.slots
    }

    pub(crate) fn is_full(&self) -> bool {
        (u64::from(self.items) + 1) * 100 > u64::from(self.slots) * LOAD_MAX
    }

    pub(crate) fn wanted(&self) -> u32 {
        let wanted = (u64::from(self.items) + 1) * 100 / LOAD_NEW + 1;
        (wanted as u32).next_multiple_of(SLOTS_STEP)
    }

    pub(crate) fn shrunk(&self) -> Option<u32> {
        if u64::from(self.items) * 100 >= u64::from(self.slots) * LOAD_MIN {
            return None;
        }
        Some(self.wanted().max(4 * SLOTS_STEP)).filter(|wanted| *wanted < self.slots)
    }

    pub(crate) fn scale(tag: u32, of: u32) -> u32 {
        ((u64::from(tag) * u64::from(of)) >> TAG_BITS) as u32
    }

    pub(crate) fn slot(&self, memory: &Memory, at: u32) -> Slot {
        let word = (self.start + 2 * at) as usize;
        let pair = &memory.words[word..word + 2];
        Slot::decode(pair[0], pair[1])
    }

    pub(crate) fn set_slot(&self, memory: &mut Memory, at: u32, slot: Slot) {
        let word = (self.start + 2 * at) as usize;
        let pair = &mut memory.words[word..word + 2];
        (pair[0], pair[1]) = slot.encode();
    }

    pub(crate) fn after(&self, at: u32) -> u32 {
        if at + 1 == self.slots { 0 } else { at + 1 }
    }

    fn distance(&self, tag: u32, at: u32) -> u32 {
        let home = Index::scale(tag, self.slots);
        if at >= home { at - home } else { at + self.slots - home }
    }

    pub(crate) fn find(&self, memory: &Memory, tag: u32, mut is_it: impl FnMut(&Memory, u32) -> bool) -> Option<u32> {
        let mut at = Index::scale(tag, self.slots);
        let mut distance = 0;
        loop {
            let slot = self.slot(memory, at);
            if slot.block == NO_BLOCK {
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

    /// Inserts a slot. There is room, because the load never exceeds its maximum.
    pub(crate) fn insert(&mut self, memory: &mut Memory, slot: Slot) {
        debug_assert!(self.items < self.slots);
        let mut carried = slot;
        let mut at = Index::scale(carried.tag, self.slots);
        let mut distance = 0;
        loop {
            let here = self.slot(memory, at);
            if here.block == NO_BLOCK {
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

    /// Empties a slot and shifts the following slots toward their homes.
    pub(crate) fn remove(&mut self, memory: &mut Memory, at: u32) {
        let mut hole = at;
        loop {
            let next = self.after(hole);
            let slot = self.slot(memory, next);
            if slot.block == NO_BLOCK || self.distance(slot.tag, next) == 0 {
                break;
            }
            self.set_slot(memory, hole, slot);
            hole = next;
        }
        self.set_slot(memory, hole, Slot { block: NO_BLOCK, uses: 0, tag: 0, expires: false, class: 0 });
        self.items -= 1;
    }

    /// Resizes the index, whose end stays in place. The words it grows into must be free. Slots stay sorted by home,
    /// so a few passes in place suffice. Taken slots move together to the low end, then to the high end, and from
    /// there to their new slots. Only the policy state and slots that wrap around the end are copied.
    pub(crate) fn resize(&mut self, memory: &mut Memory, slots: u32, extra: impl FnOnce(&[u32], u32, &mut [u32], u32)) {
        let old = self.clone();
        let words = &mut memory.words;
        let old_extra = words[old.extra() as usize..].to_vec();
        let mut new = Index::new(words.len() as u32, slots, old.extra_per_two);
        let (old_start, start) = (old.start as usize, new.start as usize);

        // Slots that wrapped around have the highest tags and go last.
        let is_wrapped =
            |at: usize, pair: &[u32]| pair[0] >> 4 != NO_BLOCK && Index::scale(pair[1] >> 5, old.slots) as usize > at;
        let all = &words[old_start..old_start + 2 * old.slots as usize];
        let wrapped = all.chunks_exact(2).enumerate().take_while(|(at, pair)| is_wrapped(*at, pair)).count();
        let last = all[..2 * wrapped].to_vec();

        // Packs all taken slots, and sorts the slots of each home by tag.
        let low = old_start.min(start);
        let mut end = low;
        let mut append = |words: &mut [u32], pair: [u32; 2]| {
            let mut at = end;
            while at > low && words[at - 1] >> 5 > pair[1] >> 5 {
                words.copy_within(at - 2..at, at);
                at -= 2;
            }
            words[at..at + 2].copy_from_slice(&pair);
            end += 2;
        };
        for at in (old_start + 2 * wrapped..old_start + 2 * old.slots as usize).step_by(2) {
            if words[at] >> 4 != NO_BLOCK {
                append(words, [words[at], words[at + 1]]);
            }
        }
        last.chunks_exact(2).for_each(|pair| append(words, [pair[0], pair[1]]));

        let home = |high: u32| Index::scale(high >> 5, slots) as usize;
        let (mut fit, mut next) = (low, 0);
        while fit < end && home(words[fit + 1]).max(next) < slots as usize {
            next = home(words[fit + 1]).max(next) + 1;
            fit += 2;
        }
        let wrapping = words[fit..end].to_vec();

        let mut from = start + 2 * slots as usize - (fit - low);
        words.copy_within(low..fit, from);
        let mut next = start;
        while from < start + 2 * slots as usize {
            let (low, high) = (words[from], words[from + 1]);
            let at = (start + 2 * home(high)).max(next);
            words[next..at].fill(0);
            (words[at], words[at + 1]) = (low, high);
            next = at + 2;
            from += 2;
        }
        words[next..start + 2 * slots as usize].fill(0);

        let new_extra = &mut words[new.extra() as usize..];
        new_extra.fill(0);
        extra(&old_extra, old.slots, new_extra, slots);
        new.items = ((fit - low) / 2) as u32;
        *self = new;
        for pair in wrapping.chunks_exact(2) {
            self.insert(memory, Slot::decode(pair[0], pair[1]));
        }
    }

    #[cfg(test)]
    pub(crate) fn mean_distance(&self, memory: &Memory) -> f64 {
        let taken = (0..self.slots).map(|at| (at, self.slot(memory, at))).filter(|(_, slot)| slot.block != NO_BLOCK);
        let sum: u64 = taken.map(|(at, slot)| u64::from(self.distance(slot.tag, at))).sum();
        sum as f64 / f64::from(self.items.max(1))
    }

    pub(crate) fn audit(&self, memory: &Memory) {
        let mut items = 0;
        let mut before = None;
        for at in 0..self.slots {
            let slot = self.slot(memory, at);
            let distance = self.distance(slot.tag, at);
            if slot.block != NO_BLOCK {
                items += 1;
                // A slot is at most one step further from its home than the previous slot.
                let bound = match before {
                    Some(before) => before + 1,
                    None if at == 0 => self.slots,
                    None => 0,
                };
                assert!(distance <= bound, "slot {at} is {distance} from its home, expected at most {bound}");
            }
            before = (slot.block != NO_BLOCK).then_some(distance);
        }
        assert_eq!(items, self.items, "taken slots, and their counter");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Draws uniform tags, and clusters at both ends so that slots wrap around.
    fn tag() -> impl Strategy<Value = u32> {
        let all = 1_u32 << TAG_BITS;
        prop_oneof![4 => 0..all, 1 => 0..all / 64, 2 => all - all / 64..all, 1 => Just(all - 1), 1 => Just(0)]
    }

    proptest! {
        #[test]
        fn resizing_preserves_all_slots(
            tags in proptest::collection::vec(tag(), 1..180),
            sizes in proptest::collection::vec(12u32..40, 1..5),
            extra_per_two in 0u32..3,
        ) {
            let mut memory = Memory::new(4_000, 2_000);
            let mut index = Index::new(4_000, 256, extra_per_two);
            // Two slots may have the same tag; their blocks differ.
            for (block, &tag) in tags.iter().enumerate() {
                index.insert(&mut memory, Slot { block: block as u32 + 1, uses: block as u32 % 16, tag, expires: false, class: 3 });
            }
            for size in sizes {
                let slots = size * SLOTS_STEP;
                // Words below the old and the new index belong to the arena, so resizing must not change them.
                let above = Index::words(slots.max(index.slots), extra_per_two) as usize;
                memory.words[..4_000 - above].fill(0xdead_beef);
                let (old_slots, old_extra) = (index.slots, index.extra() as usize);
                memory.words[old_extra..].fill(7);
                index.resize(&mut memory, slots, |old, of, new, to| {
                    assert_eq!((of, to), (old_slots, slots));
                    assert!(old.iter().all(|word| *word == 7) && new.iter().all(|word| *word == 0));
                    assert_eq!(old.len() as u32, of / 2 * extra_per_two);
                    assert_eq!(new.len() as u32, to / 2 * extra_per_two);
                });
                index.audit(&memory);
                prop_assert!(memory.words[..4_000 - above].iter().all(|word| *word == 0xdead_beef));
                for (block, &tag) in tags.iter().enumerate() {
                    let at = index.find(&memory, tag, |_, other| other == block as u32 + 1);
                    let slot = at.map(|at| index.slot(&memory, at)).ok_or(TestCaseError::fail(format!("{tag} is lost")))?;
                    prop_assert_eq!((slot.uses, slot.class), (block as u32 % 16, 3));
                }
            }
        }
    }
}
