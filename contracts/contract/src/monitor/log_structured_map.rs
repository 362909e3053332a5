//! A log of entries in segments, with an index by key. It takes less memory per entry than a map of boxes.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// A hash of endpoint, service and index. Different entries may share a key, so compare the entry as well.
pub type Key = [u8; 12];

/// Number of bits in a place (a record's address) that hold the offset within the segment.
const OFFSET_BITS: u32 = 14;
/// Maximum size of a segment in bytes. A longer record has its own segment.
const SEGMENT_BYTES_MAX: usize = 1 << OFFSET_BITS;
/// Maximum size of the log in bytes. It is half of the address range, because partly filled segments also take address
/// space. Each of them is followed by a full segment or a long record.
pub(super) const BYTES_MAX: usize = 1 << 31;

/// Size of a record's header in bytes: the key, the time of last use in seconds, and the value's length with two flags.
const HEADER_BYTES: usize = size_of::<Key>() + 4 + 4;
/// Flag of a record that has been used since it was last considered for eviction.
const AGAIN: u32 = 1;
/// Flag of a record that a later one has replaced.
const DEAD: u32 = 2;
const FLAG_BITS: u32 = 2;

pub(super) struct Record<'a> {
    pub(super) key: Key,
    pub(super) used_s: u32,
    pub(super) again: bool,
    pub(super) value: &'a [u8],
    is_dead: bool,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    segment_bytes: usize,
    /// Segments, oldest first.
    pub(super) segments: VecDeque<Vec<u8>>,
    /// Number of the oldest segment. Numbers are consecutive and wrap around; a place has their lower bits.
    first: u32,
    places: HashTable<u32>,
    hasher: RandomState,
    capacity_bytes: usize,
    dead_bytes: usize,
}

impl Log {
    /// Creates an empty log. Each segment has 1/16 of `bytes_max`, but at least 256 B and at most 16 KiB.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { segment_bytes: (bytes_max / 16).clamp(256, SEGMENT_BYTES_MAX), ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.capacity_bytes + self.places.allocation_size() + self.segments.capacity() * size_of::<Vec<u8>>()
    }

    pub(super) fn find(&self, key: &Key) -> Option<u32> {
        let same = |place: &u32| self.at(*place).is_some_and(|record| record.key == *key);
        self.places.find(self.hasher.hash_one(key), same).copied()
    }

    pub(super) fn at(&self, place: u32) -> Option<Record<'_>> {
        record_at(&self.segments, self.first, place)
    }

    pub(super) fn touch(&mut self, place: u32, now_s: u32) {
        let Some(record) = self.at(place) else { return };
        let (used_s, length) = (record.used_s.max(now_s), record.value.len());
        self.write_head(place, used_s, length, AGAIN);
    }

    /// Adds or replaces a record. Its value must be shorter than 1 GiB.
    pub(super) fn put(&mut self, key: &Key, value: &[u8], used_s: u32) {
        assert!(value.len() < 1 << (32 - FLAG_BITS), "an entry takes much less than 1 GiB");
        let Some(before) = self.find(key) else {
            let place = self.append(key, used_s, 0, value);
            let Self { places, segments, first, hasher, .. } = self;
            let hash =
                |place: &u32| record_at(segments, *first, *place).map_or(0, |record| hasher.hash_one(record.key));
            places.insert_unique(hasher.hash_one(key), place, hash);
            return;
        };
        let length = self.at(before).map_or(0, |record| record.value.len());
        if length == value.len() {
            self.write_head(before, used_s, length, AGAIN);
            let (segment, offset) = split(self.first, before);
            self.segments[segment][offset + HEADER_BYTES..][..length].copy_from_slice(value);
            return;
        }
        self.write_head(before, used_s, length, DEAD);
        self.dead_bytes += HEADER_BYTES + length;
        let place = self.append(key, used_s, AGAIN, value);
        self.moved(key, before, place);
        // Waiting until most bytes are garbage keeps the average cost of recycling low.
        if self.dead_bytes > self.capacity_bytes / 2 && self.segments.len() > 4 {
            for _ in 0..self.segments.len() {
                self.recycle(&mut |record| Some(record.again));
            }
        }
    }

    /// Removes the oldest segment. For each live record, `stays` returns `None` to drop the record, or `Some` to move
    /// it to the newest segment, where it counts as used if the value is true.
    pub(super) fn recycle(&mut self, stays: &mut dyn FnMut(&Record<'_>) -> Option<bool>) {
        let Some(bytes) = self.segments.pop_front() else { return };
        let number = self.first;
        self.first = number.wrapping_add(1);
        self.capacity_bytes -= bytes.capacity();
        let mut offset = 0;
        while let Some(record) = read(&bytes, offset) {
            let place = number << OFFSET_BITS | offset as u32;
            let length = HEADER_BYTES + record.value.len();
            offset += length;
            if record.is_dead {
                self.dead_bytes -= length;
                continue;
            }
            let Some(again) = stays(&record) else {
                let hash = self.hasher.hash_one(record.key);
                if let Ok(entry) = self.places.find_entry(hash, |known| *known == place) {
                    entry.remove();
                }
                continue;
            };
            let moved = self.append(&record.key, record.used_s, if again { AGAIN } else { 0 }, record.value);
            self.moved(&record.key, place, moved);
        }
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let records = self.segments.iter().flat_map(|segment| {
            let mut offset = 0;
            std::iter::from_fn(move || {
                let record = read(segment, offset)?;
                offset += HEADER_BYTES + record.value.len();
                Some(record)
            })
        });
        records.filter(|record| !record.is_dead)
    }

    fn moved(&mut self, key: &Key, from: u32, to: u32) {
        let hash = self.hasher.hash_one(key);
        *self.places.find_mut(hash, |known| *known == from).expect("each record that lives is in the table") = to;
    }

    fn append(&mut self, key: &Key, used_s: u32, flags: u32, value: &[u8]) -> u32 {
        let length = HEADER_BYTES + value.len();
        let fits = |segment: &Vec<u8>| segment.capacity() - segment.len() >= length;
        if !self.segments.back().is_some_and(fits) {
            let segment = Vec::with_capacity(self.segment_bytes.max(length));
            self.capacity_bytes += segment.capacity();
            self.segments.push_back(segment);
        }
        let number = self.first.wrapping_add(self.segments.len() as u32 - 1);
        let segment = self.segments.back_mut().expect("one with room was added");
        let place = number << OFFSET_BITS | segment.len() as u32;
        segment.extend_from_slice(key);
        segment.extend_from_slice(&used_s.to_le_bytes());
        segment.extend_from_slice(&word(value.len(), flags));
        segment.extend_from_slice(value);
        place
    }

    fn write_head(&mut self, place: u32, used_s: u32, length: usize, flags: u32) {
        let (segment, offset) = split(self.first, place);
        let head = &mut self.segments[segment][offset + size_of::<Key>()..][..8];
        head[..4].copy_from_slice(&used_s.to_le_bytes());
        head[4..].copy_from_slice(&word(length, flags));
    }
}

/// Splits a place into the position of its segment and the offset within it.
fn split(first: u32, place: u32) -> (usize, usize) {
    let segment = (place >> OFFSET_BITS).wrapping_sub(first) & (u32::MAX >> OFFSET_BITS);
    (segment as usize, place as usize & (SEGMENT_BYTES_MAX - 1))
}

fn word(length: usize, flags: u32) -> [u8; 4] {
    ((length as u32) << FLAG_BITS | flags).to_le_bytes()
}

fn record_at(segments: &VecDeque<Vec<u8>>, first: u32, place: u32) -> Option<Record<'_>> {
    let (segment, offset) = split(first, place);
    read(segments.get(segment)?, offset)
}

fn read(segment: &[u8], offset: usize) -> Option<Record<'_>> {
    let (key, rest) = segment.get(offset..)?.split_first_chunk()?;
    let (used_s, rest) = rest.split_first_chunk()?;
    let (word, rest) = rest.split_first_chunk()?;
    let word = u32::from_le_bytes(*word);
    let value = rest.get(..(word >> FLAG_BITS) as usize)?;
    let used_s = u32::from_le_bytes(*used_s);
    Some(Record { key: *key, used_s, again: word & AGAIN != 0, value, is_dead: word & DEAD != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_numbers_wrap_around() {
        for first in [u32::MAX - 2, (u32::MAX >> OFFSET_BITS) - 2] {
            let mut log = Log { first, ..Log::new(0) };
            for round in 0..3 {
                for number in 0..40 {
                    log.put(&[number; 12], &vec![number; 100 + round], 0);
                }
                (0..5).for_each(|_| log.recycle(&mut |_| Some(false)));
                for number in 0..40 {
                    let record = log.at(log.find(&[number; 12]).unwrap()).unwrap();
                    assert_eq!(record.value, vec![number; 100 + round]);
                }
                assert_eq!((log.len(), log.records().count()), (40, 40));
            }
        }
    }
}
