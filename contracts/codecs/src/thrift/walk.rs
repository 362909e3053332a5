//! Checks once that a message is complete and within limits. Views then need no checks.

use super::cursor::{Cursor, Protocol, WireType};
use super::error::{Limits, Stop};

#[derive(Debug, Clone, Copy)]
enum Level {
    Struct { last: i16, is_first: bool },
    Elements { wire: WireType, left: u32 },
    Pairs { key: WireType, value: WireType, left: u32, is_value: bool },
}

/// Walks through one struct as its bytes arrive. Reads only incomplete values twice.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    levels: [Level; Limits::DEPTH_MAX],
    depth: usize,
    at: usize,
    values: u32,
    /// Whether all structs have their fields in ascending order, and so no field twice.
    pub(super) is_ascending: bool,
}

impl Walk {
    pub(super) fn new(at: usize) -> Walk {
        let levels = [Level::Struct { last: 0, is_first: true }; Limits::DEPTH_MAX];
        Walk { levels, depth: 1, at, values: 0, is_ascending: true }
    }

    /// Continues in `bytes`, which extend the previous call's. Returns the offset after the struct.
    pub(super) fn go_on(&mut self, bytes: &[u8], protocol: Protocol, limits: &Limits) -> Result<usize, Stop> {
        let limit = limits.depth.min(Limits::DEPTH_MAX);
        while self.depth > 0 {
            let mut cursor = Cursor { bytes, at: self.at, protocol };
            let start = cursor;
            // The level's new state is stored only once the value, or its header, is complete.
            let mut level = self.levels[self.depth - 1];
            let wire = match &mut level {
                Level::Struct { last, is_first } => match cursor.field(*last)? {
                    None => {
                        self.pop(cursor.at);
                        continue;
                    }
                    Some(field) => {
                        self.is_ascending &= *is_first || field.id > *last;
                        (*last, *is_first) = (field.id, false);
                        if field.bool.is_some() {
                            self.levels[self.depth - 1] = level;
                            self.count(&start, limits)?;
                            self.at = cursor.at;
                            continue;
                        }
                        field.wire
                    }
                },
                Level::Elements { left: 0, .. } | Level::Pairs { left: 0, is_value: false, .. } => {
                    self.pop(cursor.at);
                    continue;
                }
                Level::Elements { wire, left } => {
                    *left -= 1;
                    *wire
                }
                Level::Pairs { value, is_value: is_value @ true, .. } => {
                    *is_value = false;
                    *value
                }
                Level::Pairs { key, left, is_value, .. } => {
                    *left -= 1;
                    *is_value = true;
                    *key
                }
            };
            let deeper = Walk::start_value(&mut cursor, wire, limits)?;
            self.count(&start, limits)?;
            self.levels[self.depth - 1] = level;
            if let Some(deeper) = deeper {
                if self.depth == limit {
                    return start.over(format!("values nested deeper than {limit} levels"));
                }
                self.levels[self.depth] = deeper;
                self.depth += 1;
            }
            self.at = cursor.at;
        }
        Ok(self.at)
    }

    fn pop(&mut self, at: usize) {
        self.depth -= 1;
        self.at = at;
    }

    fn count(&mut self, start: &Cursor<'_>, limits: &Limits) -> Result<(), Stop> {
        if self.values == limits.values {
            return start.over(too_many(u64::from(self.values) + 1, limits.values));
        }
        self.values += 1;
        Ok(())
    }

    /// Reads a scalar, or the header of a value with nested values.
    fn start_value(cursor: &mut Cursor<'_>, wire: WireType, limits: &Limits) -> Result<Option<Level>, Stop> {
        let start = *cursor;
        let check = |count: u32| match count > limits.elements {
            true => start.over(too_many(u64::from(count), limits.elements)),
            false => Ok(()),
        };
        match wire {
            WireType::Bool => drop(cursor.bool()?),
            WireType::Byte | WireType::I16 | WireType::I32 | WireType::I64 => drop(cursor.integer(wire)?),
            WireType::Double => drop(cursor.double()?),
            WireType::Uuid => drop(cursor.take(16)?),
            WireType::Bytes => drop(cursor.string(limits.string_bytes)?),
            WireType::Struct => return Ok(Some(Level::Struct { last: 0, is_first: true })),
            WireType::List | WireType::Set => {
                let (wire, left) = cursor.list()?;
                check(left)?;
                return Ok(Some(Level::Elements { wire, left }));
            }
            WireType::Map => {
                let (key, value, left) = cursor.map()?;
                check(left)?;
                return Ok(Some(Level::Pairs { key, value, left, is_value: false }));
            }
        }
        Ok(None)
    }
}

fn too_many(values: u64, limit: u32) -> String {
    format!("{values} values, over the limit of {limit}")
}

pub(super) fn skip(cursor: &mut Cursor<'_>, wire: WireType) -> Result<(), Stop> {
    const CHECKED: Limits = Limits { string_bytes: usize::MAX, elements: u32::MAX, ..Limits::DEFAULT };
    match Walk::start_value(cursor, wire, &CHECKED)? {
        None => {}
        Some(Level::Struct { mut last, .. }) => {
            while let Some(field) = cursor.field(last)? {
                last = field.id;
                if field.bool.is_none() {
                    skip(cursor, field.wire)?;
                }
            }
        }
        Some(Level::Elements { wire, left }) => (0..left).try_for_each(|_| skip(cursor, wire))?,
        Some(Level::Pairs { key, value, left, .. }) => {
            for _ in 0..left {
                skip(cursor, key)?;
                skip(cursor, value)?;
            }
        }
    }
    Ok(())
}
