//! Ghosts: keys recently evicted from S3-FIFO's small queue. A table of tags and eviction numbers,
//! eight to a bucket. Only the latest evictions count, and full buckets forget their oldest.

use crate::index::Index;

const BUCKET: u32 = 8;

fn bucket(slots: u32, tag: u32) -> usize {
    (Index::scale(tag, slots / BUCKET) * BUCKET * 2) as usize
}

fn age(number: u32, last: u32) -> u32 {
    last.wrapping_sub(number)
}

/// Remembers a tag as the latest eviction, `number`; the last `live` evictions count.
pub(crate) fn insert(table: &mut [u32], slots: u32, tag: u32, number: u32, live: u32) {
    remove(table, slots, tag, number, live);
    let start = bucket(slots, tag);
    let entries = &mut table[start..start + 2 * BUCKET as usize];
    let oldest = (0..BUCKET as usize).max_by_key(|&at| match entries[2 * at] {
        0 => u32::MAX,
        _ => age(entries[2 * at + 1], number),
    });
    let at = oldest.expect("a bucket has entries");
    entries[2 * at] = tag + 1;
    entries[2 * at + 1] = number;
}

/// Forgets a tag and returns whether it counted.
pub(crate) fn remove(table: &mut [u32], slots: u32, tag: u32, last: u32, live: u32) -> bool {
    let start = bucket(slots, tag);
    for entry in table[start..start + 2 * BUCKET as usize].chunks_exact_mut(2) {
        if entry[0] == tag + 1 {
            entry[0] = 0;
            return age(entry[1], last) < live;
        }
    }
    false
}

pub(crate) fn stretch(old: &[u32], old_slots: u32, new: &mut [u32], slots: u32, last: u32, live: u32) {
    for entry in old[..2 * old_slots as usize].chunks_exact(2) {
        if entry[0] != 0 && age(entry[1], last) < live {
            let start = bucket(slots, entry[0] - 1);
            let entries = &mut new[start..start + 2 * BUCKET as usize];
            let oldest = (0..BUCKET as usize).max_by_key(|&at| match entries[2 * at] {
                0 => u32::MAX,
                _ => age(entries[2 * at + 1], last),
            });
            let at = oldest.expect("a bucket has entries");
            if entries[2 * at] == 0 || age(entries[2 * at + 1], last) > age(entry[1], last) {
                entries[2 * at..2 * at + 2].copy_from_slice(entry);
            }
        }
    }
}
