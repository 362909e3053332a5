//! Decodes field blocks with the dynamic table of a connection.

use std::collections::VecDeque;

use super::static_table::FIELDS;
use super::{FIELD_OVERHEAD_BYTES, HpackError, huffman};
use crate::http2::Limits;

const TABLE_BYTES_DEFAULT: usize = 4096;
const INTEGER_MAX: u32 = u32::MAX >> 1;

/// Decoder of one direction of a connection, whose table is 4,096 bytes at first. Needs at most the memory of the largest
/// field and two dynamic tables.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    table: Table,
    /// Whether the next block must start with a smaller table size.
    must_shrink: bool,
    /// Number of changes of the dynamic table. Equal blocks have equal fields while this number stays the same.
    pub changes: u64,
    /// Size of the fields that the last block inserted into the table, in bytes.
    pub(in crate::http2) inserted_bytes: usize,
    /// Whether the last block referred to fields in the table, or resized the table.
    pub(in crate::http2) depends_on_table: bool,
    scratch: Vec<u8>,
}

impl Decoder {
    /// Applies this endpoint's SETTINGS_HEADER_TABLE_SIZE. Call this function when the peer has acknowledged the
    /// setting. For a larger table, call it when the setting is sent, because the peer may use the table at once.
    pub fn allow_table(&mut self, bytes: u32) {
        self.table.allowed = bytes as usize;
        self.must_shrink = self.table.max > self.table.allowed;
    }

    pub(in crate::http2) fn table_bytes_max(&self) -> usize {
        self.table.max
    }

    /// Decodes a complete field block and passes each name and value to `field`. An error makes the connection
    /// unusable, because later blocks depend on this one.
    pub fn decode(
        &mut self,
        block: &[u8],
        limits: &Limits,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), HpackError> {
        let mut rest = block;
        let (mut fields, mut list_bytes) = (0, 0);
        (self.inserted_bytes, self.depends_on_table) = (0, false);
        while let Some(&first) = rest.first() {
            if first & 0xe0 == 0x20 {
                let bytes = integer(&mut rest, 5)? as usize;
                if fields > 0 {
                    return Err(HpackError::TableSizePlace);
                }
                if bytes > self.table.allowed {
                    return Err(HpackError::TableSize(bytes));
                }
                self.must_shrink = false;
                self.depends_on_table = true;
                self.changes += 1;
                self.table.max = bytes;
                self.table.evict(bytes);
                continue;
            }
            if self.must_shrink {
                return Err(HpackError::TableSizePlace);
            }
            fields += 1;
            if fields > limits.fields {
                return Err(HpackError::TooManyFields(limits.fields));
            }
            let mut deliver = |name: &[u8], value: &[u8]| {
                list_bytes += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
                if list_bytes > limits.list_bytes {
                    return Err(HpackError::FieldsTooLarge(limits.list_bytes));
                }
                field(name, value);
                Ok(())
            };
            if first & 0x80 != 0 {
                let index = integer(&mut rest, 7)? as usize;
                self.depends_on_table |= index > FIELDS.len();
                let (name, value) = self.table.get(index)?;
                deliver(name, value)?;
                continue;
            }
            let is_inserted = first & 0x40 != 0;
            let index = integer(&mut rest, if is_inserted { 6 } else { 4 })? as usize;
            self.scratch.clear();
            if index == 0 {
                string(&mut rest, &mut self.scratch)?;
            } else {
                self.depends_on_table |= index > FIELDS.len();
                self.scratch.extend_from_slice(self.table.get(index)?.0);
            }
            let name_bytes = self.scratch.len();
            string(&mut rest, &mut self.scratch)?;
            let (name, value) = self.scratch.split_at(name_bytes);
            deliver(name, value)?;
            if is_inserted {
                self.changes += 1;
                self.inserted_bytes += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
                self.table.insert(name, value);
            }
        }
        Ok(())
    }
}

/// Reads an integer whose first byte has a prefix of `bits` bits. Source: RFC 7541, section 5.1.
fn integer(rest: &mut &[u8], bits: u32) -> Result<u32, HpackError> {
    let (&first, mut after) = rest.split_first().ok_or(HpackError::Truncated)?;
    let max = (1u32 << bits) - 1;
    let mut value = u32::from(first) & max;
    if value == max {
        for shift in [0, 7, 14, 21, 28, 35] {
            let (&byte, next) = after.split_first().ok_or(HpackError::Truncated)?;
            after = next;
            let sum = u64::from(value) + (u64::from(byte & 0x7f) << shift);
            value =
                u32::try_from(sum).ok().filter(|sum| shift < 35 && *sum <= INTEGER_MAX).ok_or(HpackError::Integer)?;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = after;
    Ok(value)
}

/// Reads a string and appends it to `out`. Source: RFC 7541, section 5.2.
fn string(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = rest.first().is_some_and(|first| first & 0x80 != 0);
    let bytes = integer(rest, 7)? as usize;
    let (text, after) = rest.split_at_checked(bytes).ok_or(HpackError::Truncated)?;
    *rest = after;
    if is_huffman {
        return huffman::decode(text, out);
    }
    out.extend_from_slice(text);
    Ok(())
}

/// The dynamic table. Source: RFC 7541, section 2.3.2.
#[derive(Debug, Clone)]
struct Table {
    /// Names and values, oldest first. Bytes before the oldest field are free.
    bytes: Vec<u8>,
    entries: VecDeque<Entry>,
    size: usize,
    max: usize,
    /// Maximum size of the table that the peer's encoder may use, in bytes.
    allowed: usize,
}

impl Default for Table {
    fn default() -> Self {
        let (max, allowed) = (TABLE_BYTES_DEFAULT, TABLE_BYTES_DEFAULT);
        Table { bytes: Vec::new(), entries: VecDeque::new(), size: 0, max, allowed }
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: usize,
    name_bytes: usize,
    bytes: usize,
}

impl Table {
    /// The field with this index in the static or dynamic table. Source: RFC 7541, section 2.3.3.
    fn get(&self, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
        if let Some((name, value)) = FIELDS.get(index.wrapping_sub(1)) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let nth_newest = index.checked_sub(FIELDS.len() + 1);
        let at = nth_newest.and_then(|nth| self.entries.len().checked_sub(nth + 1));
        let Some(&Entry { start, name_bytes, bytes }) = at.and_then(|at| self.entries.get(at)) else {
            return Err(HpackError::Index(index));
        };
        Ok(self.bytes[start..start + bytes].split_at(name_bytes))
    }

    fn insert(&mut self, name: &[u8], value: &[u8]) {
        let bytes = name.len() + value.len();
        let size = bytes + FIELD_OVERHEAD_BYTES;
        // A field larger than the table empties the table (RFC 7541, section 4.4).
        self.evict(self.max.saturating_sub(size));
        if size > self.max {
            return;
        }
        if self.bytes.len() + bytes > 2 * self.max {
            let start = self.entries.front().map_or(self.bytes.len(), |oldest| oldest.start);
            self.bytes.drain(..start);
            self.entries.iter_mut().for_each(|entry| entry.start -= start);
        }
        self.entries.push_back(Entry { start: self.bytes.len(), name_bytes: name.len(), bytes });
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += size;
    }

    fn evict(&mut self, size_max: usize) {
        while self.size > size_max
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= oldest.bytes + FIELD_OVERHEAD_BYTES;
        }
    }
}
