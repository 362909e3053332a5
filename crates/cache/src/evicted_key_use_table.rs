//! Fingerprints of evicted keys with their uses. Each index slot has a 16-bit entry: 12 bits of the tag and a level of
//! uses in 4 bits, 0 if empty. The scaled tag selects a bucket of eight entries. About one in 500 unknown keys matches.

use crate::index::Index;
use crate::use_counter;

const BUCKET: u32 = 8;

fn bucket(slots: u32, tag: u32) -> u32 {
    Index::scale(tag, slots / BUCKET) * BUCKET
}

fn read(table: &[u32], entry: u32) -> u32 {
    table[(entry / 2) as usize] >> (16 * (entry % 2)) & 0xffff
}

fn write(table: &mut [u32], entry: u32, to: u32) {
    let word = &mut table[(entry / 2) as usize];
    *word = (*word & !(0xffff << (16 * (entry % 2)))) | to << (16 * (entry % 2));
}

fn find(table: &[u32], slots: u32, tag: u32) -> Option<u32> {
    let first = bucket(slots, tag);
    (first..first + BUCKET).find(|&entry| {
        let found = read(table, entry);
        found & 15 != 0 && found >> 4 == tag & 0xfff
    })
}

pub(crate) fn count(table: &mut [u32], slots: u32, tag: u32, random: u64) {
    if let Some(entry) = find(table, slots, tag) {
        let found = read(table, entry);
        write(table, entry, (found & !15) | use_counter::more(found & 15, random));
    }
}

pub(crate) fn recall(table: &mut [u32], slots: u32, tag: u32) -> u32 {
    let Some(entry) = find(table, slots, tag) else { return 0 };
    let level = read(table, entry) & 15;
    write(table, entry, 0);
    level
}

/// Remembers a key in place of the bucket's least used entry, unless all entries have more uses. Ignores level 0.
pub(crate) fn remember(table: &mut [u32], slots: u32, tag: u32, level: u32, random: u64) {
    if level == 0 {
        return;
    }
    recall(table, slots, tag);
    let first = bucket(slots, tag);
    let turn = (random >> 40) as u32;
    let least = (0..BUCKET).map(|step| first + (turn + step) % BUCKET).min_by_key(|&entry| read(table, entry) & 15);
    let entry = least.expect("a bucket has entries");
    if read(table, entry) & 15 <= level {
        write(table, entry, (tag & 0xfff) << 4 | level);
    }
}

/// Halves the uses of a slot's entry, and empties the entry if no uses are left.
pub(crate) fn halve(table: &mut [u32], slot: u32) {
    let found = read(table, slot);
    let level = use_counter::half(found & 15);
    write(table, slot, if level == 0 { 0 } else { (found & !15) | level });
}

/// Copies the table to a different number of slots. An entry has only a fingerprint of the tag, so each new bucket
/// takes the most used entries of all old buckets from which its tags may come.
pub(crate) fn stretch(old: &[u32], old_slots: u32, new: &mut [u32], slots: u32) {
    let (from, to) = (u64::from(old_slots / BUCKET), u64::from(slots / BUCKET));
    for bucket in 0..to {
        let first = (bucket * from / to) as u32 * BUCKET;
        let last = (((bucket + 1) * from - 1) / to) as u32 * BUCKET + BUCKET;
        // This is an array because a vector would be allocated for every bucket of eight slots.
        let mut best = [0; BUCKET as usize];
        for entry in (first..last).map(|entry| read(old, entry)).filter(|entry| entry & 15 != 0) {
            let place = best.iter().position(|other| other & 15 < entry & 15);
            if let Some(place) = place {
                best[place..].rotate_right(1);
                best[place] = entry;
            }
        }
        for (place, entry) in best.into_iter().enumerate() {
            write(new, bucket as u32 * BUCKET + place as u32, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::TAG_BITS;

    fn tags(count: u32) -> Vec<u32> {
        (1..=count).map(|number| number.wrapping_mul(0x85eb_ca6b) >> (32 - TAG_BITS)).collect()
    }

    #[test]
    fn keys_are_remembered_counted_and_forgotten() {
        let (slots, tag) = (64, 123_456_789 % (1 << TAG_BITS));
        let mut table = vec![0; slots as usize / 2];
        assert_eq!(recall(&mut table, slots, tag), 0);
        count(&mut table, slots, tag, 0);
        assert_eq!(recall(&mut table, slots, tag), 0, "an unknown key is not counted");
        remember(&mut table, slots, tag, use_counter::ONE, 0);
        count(&mut table, slots, tag, 0);
        assert_eq!(recall(&mut table, slots, tag), use_counter::ONE + 1);
        assert_eq!(recall(&mut table, slots, tag), 0, "recalled once");
        remember(&mut table, slots, tag, use_counter::ONE, 0);
        for _ in 0..3 {
            (0..slots).for_each(|slot| halve(&mut table, slot));
        }
        assert_eq!(table, vec![0; slots as usize / 2]);
    }

    #[test]
    fn full_buckets_keep_the_most_used_keys() {
        let slots = 8;
        let mut table = vec![0; slots as usize / 2];
        let tags = tags(12);
        for (&tag, level) in tags.iter().zip([9, 9, 9, 9, 2, 2, 2, 2, 5, 5, 5, 1]) {
            remember(&mut table, slots, tag, level, 77);
        }
        let mut kept = tags.iter().map(|&tag| recall(&mut table, slots, tag)).collect::<Vec<_>>();
        kept.sort_unstable();
        assert_eq!(kept, [0, 0, 0, 0, 2, 5, 5, 5, 9, 9, 9, 9]);
    }

    #[test]
    fn growing_the_table_keeps_its_keys() {
        for slots in [80, 96, 128, 176, 1_008] {
            let mut table = vec![0; 80 / 2];
            let tags = tags(30);
            for &tag in &tags {
                remember(&mut table, 80, tag, 6, 0);
            }
            let known = tags.iter().filter(|&&tag| find(&table, 80, tag).is_some()).count();
            let mut new = vec![0; slots as usize / 2];
            stretch(&table, 80, &mut new, slots);
            let still = tags.iter().filter(|&&tag| find(&new, slots, tag).is_some()).count();
            // Growth by less than a factor of two may merge two buckets into one, which may not have room for all keys.
            assert!(known > 25 && still >= known - 1, "{slots} slots: {still} of {known}");
        }
    }
}
