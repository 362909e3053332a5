//! Checks once that a message is complete and within limits. Views then need no checks.

use super::cursor::{Cursor, Limits, Protocol, Stop, WireType};

#[derive(Debug, Clone, Copy)]
enum Level {
    Struct { last: i16, is_first: bool },
    Values(Values),
}

/// The values of a container: elements of one type, or alternating keys and values.
#[derive(Debug, Clone, Copy)]
struct Values {
    wires: [WireType; 2],
    left: u64,
}

impl Iterator for Values {
    type Item = WireType;

    fn next(&mut self) -> Option<WireType> {
        let wire = self.wires[(self.left % 2) as usize];
        self.left = self.left.checked_sub(1)?;
        Some(wire)
    }
}

/// Walks through one struct as its bytes arrive. Only incomplete values are read twice.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    levels: [Level; Limits::DEPTH_MAX],
    depth: usize,
    at: usize,
    values: u32,
    /// Whether all structs have their fields in ascending order, which excludes repeated fields.
    pub(super) is_ascending: bool,
}

impl Walk {
    pub(super) fn new(at: usize) -> Walk {
        let levels = [Level::Struct { last: 0, is_first: true }; Limits::DEPTH_MAX];
        Walk { levels, depth: 1, at, values: 0, is_ascending: true }
    }

    /// Continues in `bytes`, which must extend the bytes of the last call. Returns the offset after the struct.
    pub(super) fn go_on(&mut self, bytes: &[u8], protocol: Protocol, limits: &Limits) -> Result<usize, Stop> {
        let limit = limits.depth.min(Limits::DEPTH_MAX);
        while self.depth > 0 {
            let mut cursor = Cursor { bytes, at: self.at, protocol };
            let start = cursor;
            // The level's new state is stored only once the value, or its header, is complete.
            let mut level = self.levels[self.depth - 1];
            let next = match &mut level {
                Level::Struct { last, is_first } => cursor.field(*last)?.map(|field| {
                    self.is_ascending &= *is_first || field.id > *last;
                    (*last, *is_first) = (field.id, false);
                    (field.wire, field.bool)
                }),
                Level::Values(values) => values.next().map(|wire| (wire, None)),
            };
            let Some((wire, bool)) = next else {
                self.depth -= 1;
                self.at = cursor.at;
                continue;
            };
            // A bool field of the compact protocol has its value in the header.
            let deeper = if bool.is_some() { None } else { Walk::start_value(&mut cursor, wire, limits)? };
            if self.values == limits.values {
                return start.over(too_many(u64::from(self.values) + 1, limits.values));
            }
            self.values += 1;
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
                let (wire, count) = cursor.list()?;
                check(count)?;
                return Ok(Some(Level::Values(Values { wires: [wire; 2], left: u64::from(count) })));
            }
            WireType::Map => {
                let (key, value, count) = cursor.map()?;
                check(count)?;
                return Ok(Some(Level::Values(Values { wires: [key, value], left: 2 * u64::from(count) })));
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
        Some(Level::Values(mut values)) => values.try_for_each(|wire| skip(cursor, wire))?,
    }
    Ok(())
}
