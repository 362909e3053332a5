//! How often were keys asked for that are not there? A count-min sketch of 4-bit counters with conservative update (Cormode &
//! Muthukrishnan 2005; Estan & Varghese 2002), two to a key and four to a slot of the index. The place of a counter is its tag scaled, so that the
//! sketch stretches with the index.

use crate::index::{Index, TAG_BITS};

/// Counters beside each slot.
const COUNTERS: u32 = 4;

/// The two counters of a tag.
#[inline]
fn places(slots: u32, tag: u32) -> [u32; 2] {
    let other = tag.wrapping_mul(0x9e37_79b1) >> (32 - TAG_BITS);
    [Index::scale(tag, COUNTERS * slots), Index::scale(other, COUNTERS * slots)]
}

#[inline]
fn read(table: &[u32], place: u32) -> u32 {
    table[(place / 8) as usize] >> (4 * (place % 8)) & 15
}

#[inline]
fn write(table: &mut [u32], place: u32, count: u32) {
    let word = &mut table[(place / 8) as usize];
    *word = (*word & !(15 << (4 * (place % 8)))) | count << (4 * (place % 8));
}

/// How often the key of a tag was asked for, or more; at most 15.
pub(crate) fn estimate(table: &[u32], slots: u32, tag: u32) -> u32 {
    let [one, two] = places(slots, tag);
    read(table, one).min(read(table, two))
}

/// Counts one more.
#[inline]
pub(crate) fn add(table: &mut [u32], slots: u32, tag: u32) {
    let count = estimate(table, slots, tag);
    raise(table, slots, tag, (count + 1).min(15));
}

/// Makes it at least so many.
pub(crate) fn raise(table: &mut [u32], slots: u32, tag: u32, count: u32) {
    for place in places(slots, tag) {
        if read(table, place) < count {
            write(table, place, count);
        }
    }
}

/// Halves the counters beside a slot.
#[inline]
pub(crate) fn halve(table: &mut [u32], slot: u32) {
    let word = &mut table[(slot / 2) as usize];
    let half = 0xffff << (16 * (slot % 2));
    *word = (*word & !half) | ((*word >> 1) & 0x7777_7777 & half);
}

/// Lays the sketch out anew beside another number of slots: each counter is the largest of those whose tags it takes over, so that it
/// never counts too few.
pub(crate) fn stretch(old: &[u32], old_slots: u32, new: &mut [u32], slots: u32) {
    let (from, to) = (u64::from(COUNTERS * old_slots), u64::from(COUNTERS * slots));
    for place in 0..to {
        let first = place * from / to;
        let last = ((place + 1) * from - 1) / to;
        let count = (first..=last).map(|place| read(old, place as u32)).max().unwrap_or(0);
        write(new, place as u32, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_raised_and_halved() {
        let slots = 64;
        let mut table = vec![0; slots as usize / 2];
        let tag = 123_456_789 % (1 << TAG_BITS);
        assert_eq!(estimate(&table, slots, tag), 0);
        for _ in 0..20 {
            add(&mut table, slots, tag);
        }
        assert_eq!(estimate(&table, slots, tag), 15);
        for slot in 0..slots {
            halve(&mut table, slot);
        }
        assert_eq!(estimate(&table, slots, tag), 7);
        raise(&mut table, slots, tag, 9);
        assert_eq!(estimate(&table, slots, tag), 9);
    }

    #[test]
    fn a_sketch_that_is_stretched_never_counts_less() {
        for slots in [16, 48, 80, 112, 1_008] {
            let mut table = vec![0; 80 / 2];
            let tags = (1u32..200).map(|n| n.wrapping_mul(0x85eb_ca6b) >> (32 - TAG_BITS)).collect::<Vec<_>>();
            for (count, &tag) in tags.iter().enumerate() {
                raise(&mut table, 80, tag, count as u32 % 16);
            }
            let mut new = vec![0; slots as usize / 2];
            stretch(&table, 80, &mut new, slots);
            for (count, &tag) in tags.iter().enumerate() {
                assert!(estimate(&new, slots, tag) >= count as u32 % 16);
            }
        }
    }
}
