//! Ghosts: keys recently evicted from S3-FIFO's small queue, stored as tags and eviction numbers in a table with
//! buckets of eight. Only the latest evictions count, and a full bucket forgets its oldest entry.

use crate::index::Index;

const BUCKET: u32 = 8;

fn bucket(table: &mut [u32], slots: u32, tag: u32) -> &mut [u32] {
    let start = (Index::scale(tag, slots / BUCKET) * BUCKET * 2) as usize;
    &mut table[start..start + 2 * BUCKET as usize]
}

/// An empty entry of the bucket, or else the bucket's oldest entry.
fn oldest(bucket: &mut [u32], last: u32) -> &mut [u32] {
    let age_or_max = |entry: &&mut [u32]| if entry[0] == 0 { u32::MAX } else { age(entry[1], last) };
    bucket.chunks_exact_mut(2).max_by_key(age_or_max).expect("a bucket has entries")
}

fn age(number: u32, last: u32) -> u32 {
    last.wrapping_sub(number)
}

/// Remembers a tag as the latest eviction, which has this `number`. Only the last `live` evictions count.
pub(crate) fn insert(table: &mut [u32], slots: u32, tag: u32, number: u32, live: u32) {
    remove(table, slots, tag, number, live);
    oldest(bucket(table, slots, tag), number).copy_from_slice(&[tag + 1, number]);
}

/// Forgets a tag and returns whether it was among the last `live` evictions.
pub(crate) fn remove(table: &mut [u32], slots: u32, tag: u32, last: u32, live: u32) -> bool {
    let mut entries = bucket(table, slots, tag).chunks_exact_mut(2);
    entries.find(|entry| entry[0] == tag + 1).is_some_and(|entry| {
        entry[0] = 0;
        age(entry[1], last) < live
    })
}

pub(crate) fn stretch(old: &[u32], old_slots: u32, new: &mut [u32], slots: u32, last: u32, live: u32) {
    for entry in old[..2 * old_slots as usize].chunks_exact(2) {
        if entry[0] != 0 && age(entry[1], last) < live {
            let oldest = oldest(bucket(new, slots, entry[0] - 1), last);
            if oldest[0] == 0 || age(oldest[1], last) > age(entry[1], last) {
                oldest.copy_from_slice(entry);
            }
        }
    }
}
