//! Reads the primitives of both protocols: types, headers, lengths and numbers.

use super::error::{DecodeError, Fault, Stop};

/// How values are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Full-width, big-endian numbers. Source: thrift-binary-protocol.md of Apache Thrift.
    Binary,
    /// Variable-length numbers, field numbers as deltas. Source: thrift-compact-protocol.md of
    /// Apache Thrift.
    Compact,
}

/// The type of a value on the wire, independent of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireType {
    /// True or false.
    Bool,
    /// 8 bits, signed.
    Byte,
    /// 16 bits, signed.
    I16,
    /// 32 bits, signed; also enums.
    I32,
    /// 64 bits, signed.
    I64,
    /// IEEE 754, 64 bits.
    Double,
    /// Strings and binaries.
    Bytes,
    /// Structs, unions, exceptions.
    Struct,
    /// Key-value pairs.
    Map,
    /// Unique elements.
    Set,
    /// Elements.
    List,
    /// 16 bytes.
    Uuid,
}

impl WireType {
    pub(super) fn from_binary(code: u8) -> Option<WireType> {
        Some(match code {
            2 => WireType::Bool,
            3 => WireType::Byte,
            4 => WireType::Double,
            6 => WireType::I16,
            8 => WireType::I32,
            10 => WireType::I64,
            11 => WireType::Bytes,
            12 => WireType::Struct,
            13 => WireType::Map,
            14 => WireType::Set,
            15 => WireType::List,
            16 => WireType::Uuid,
            _ => return None,
        })
    }

    pub(super) fn binary(self) -> u8 {
        (2..=16).find(|code| Self::from_binary(*code) == Some(self)).expect("every type has a number")
    }

    pub(super) fn from_compact(code: u8) -> Option<WireType> {
        Some(match code {
            1 | 2 => WireType::Bool,
            3 => WireType::Byte,
            4 => WireType::I16,
            5 => WireType::I32,
            6 => WireType::I64,
            7 => WireType::Double,
            8 => WireType::Bytes,
            9 => WireType::List,
            10 => WireType::Set,
            11 => WireType::Map,
            12 => WireType::Struct,
            13 => WireType::Uuid,
            _ => return None,
        })
    }

    /// The number of the type in the compact protocol; for bools, the one in container headers.
    pub(super) fn compact(self) -> u8 {
        (1..=13).find(|code| Self::from_compact(*code) == Some(self)).expect("every type has a number")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldHeader {
    pub(super) id: i16,
    pub(super) wire: WireType,
    /// The value of a bool field, which the compact protocol stores in the header.
    pub(super) bool: Option<bool>,
}

/// The header of a map. Empty maps have no types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MapHeader {
    pub(super) types: Option<(WireType, WireType)>,
    pub(super) count: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'b> {
    pub(super) bytes: &'b [u8],
    pub(super) at: usize,
    pub(super) protocol: Protocol,
}

impl<'b> Cursor<'b> {
    pub(super) fn wrong<T>(&self, fault: Fault) -> Result<T, Stop> {
        Err(Stop::Wrong(DecodeError { at: self.at, fault }))
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'b [u8], Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match rest.get(..count) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(Stop::Need(count - rest.len())),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        self.take(N).map(|taken| std::array::from_fn(|index| taken[index]))
    }

    pub(super) fn byte(&mut self) -> Result<u8, Stop> {
        self.array::<1>().map(|byte| byte[0])
    }

    pub(super) fn fixed_i16(&mut self) -> Result<i16, Stop> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn fixed_i32(&mut self) -> Result<i32, Stop> {
        self.array().map(i32::from_be_bytes)
    }

    /// Reads a variable-length number, lowest 7 bits first. Fails if it exceeds `bits`.
    pub(super) fn varint(&mut self, bits: u32) -> Result<u64, Stop> {
        let start = *self;
        let mut value = 0_u64;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            let is_last = bits - shift <= 7;
            if is_last && (byte & 0x80 != 0 || group >> (bits - shift) != 0) {
                return start.wrong(Fault::TooWide);
            }
            value |= group << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    fn zigzag(&mut self, bits: u32) -> Result<i64, Stop> {
        self.varint(bits).map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn integer(&mut self, wire: WireType) -> Result<i64, Stop> {
        match (wire, self.protocol) {
            (WireType::Byte, _) => self.byte().map(|byte| i64::from(byte as i8)),
            (WireType::I16, Protocol::Binary) => self.fixed_i16().map(i64::from),
            (WireType::I32, Protocol::Binary) => self.fixed_i32().map(i64::from),
            (_, Protocol::Binary) => self.array().map(i64::from_be_bytes),
            (WireType::I16, Protocol::Compact) => self.zigzag(16),
            (WireType::I32, Protocol::Compact) => self.zigzag(32),
            (_, Protocol::Compact) => self.zigzag(64),
        }
    }

    pub(super) fn double(&mut self) -> Result<f64, Stop> {
        let bytes = self.array()?;
        Ok(match self.protocol {
            Protocol::Binary => f64::from_be_bytes(bytes),
            Protocol::Compact => f64::from_le_bytes(bytes),
        })
    }

    /// Reads a bool element, or a bool field of the binary protocol.
    pub(super) fn bool(&mut self) -> Result<bool, Stop> {
        let start = *self;
        match (self.byte()?, self.protocol) {
            (1, _) => Ok(true),
            (0, _) | (2, Protocol::Compact) => Ok(false),
            (byte, _) => start.wrong(Fault::BadBool { byte }),
        }
    }

    pub(super) fn length(&mut self, limit: usize) -> Result<usize, Stop> {
        let start = *self;
        let bytes = match self.protocol {
            Protocol::Compact => self.varint(32)?,
            Protocol::Binary => match u64::try_from(self.fixed_i32()?) {
                Ok(bytes) => bytes,
                Err(_) => return start.wrong(Fault::Negative),
            },
        };
        if bytes > limit as u64 {
            return start.wrong(Fault::TooLong { bytes, limit: limit as u64 });
        }
        Ok(bytes as usize)
    }

    /// Reads bytes with their length. Consumes nothing until complete, so `Need` counts all.
    pub(super) fn string(&mut self, limit: usize) -> Result<&'b [u8], Stop> {
        let length = self.length(limit)?;
        self.take(length)
    }

    /// Reads a struct's next field header, after field `last`; `None` at the end.
    pub(super) fn field(&mut self, last: i16) -> Result<Option<FieldHeader>, Stop> {
        let start = *self;
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        let code = match self.protocol {
            Protocol::Binary => byte,
            Protocol::Compact => byte & 0x0f,
        };
        let wire = match self.protocol {
            Protocol::Binary => WireType::from_binary(code),
            Protocol::Compact => WireType::from_compact(code),
        };
        let Some(wire) = wire else { return start.wrong(Fault::BadType { code }) };
        let id = match (self.protocol, byte >> 4) {
            (Protocol::Binary, _) => self.fixed_i16()?,
            (Protocol::Compact, 0) => self.zigzag(16)? as i16,
            (Protocol::Compact, difference) => match last.checked_add(i16::from(difference)) {
                Some(id) => id,
                None => return start.wrong(Fault::TooWide),
            },
        };
        let bool = (self.protocol == Protocol::Compact && wire == WireType::Bool).then_some(code == 1);
        Ok(Some(FieldHeader { id, wire, bool }))
    }

    pub(super) fn list(&mut self) -> Result<(WireType, u32), Stop> {
        let start = *self;
        let byte = self.byte()?;
        match self.protocol {
            Protocol::Binary => {
                let Ok(count) = u32::try_from(self.fixed_i32()?) else { return start.wrong(Fault::Negative) };
                match WireType::from_binary(byte) {
                    Some(wire) => Ok((wire, count)),
                    // Some libraries write no valid type for an empty list.
                    None if count == 0 => Ok((WireType::Byte, 0)),
                    None => start.wrong(Fault::BadType { code: byte }),
                }
            }
            Protocol::Compact => {
                let count = match byte >> 4 {
                    15 => self.varint(32)? as u32,
                    short => u32::from(short),
                };
                match WireType::from_compact(byte & 0x0f) {
                    Some(wire) => Ok((wire, count)),
                    None if count == 0 => Ok((WireType::Byte, 0)),
                    None => start.wrong(Fault::BadType { code: byte & 0x0f }),
                }
            }
        }
    }

    pub(super) fn map(&mut self) -> Result<MapHeader, Stop> {
        let start = *self;
        let (key, value, codes, count) = match self.protocol {
            Protocol::Binary => {
                let (key, value) = (self.byte()?, self.byte()?);
                let Ok(count) = u32::try_from(self.fixed_i32()?) else { return start.wrong(Fault::Negative) };
                (WireType::from_binary(key), WireType::from_binary(value), (key, value), count)
            }
            Protocol::Compact => {
                let count = self.varint(32)? as u32;
                if count == 0 {
                    return Ok(MapHeader { types: None, count });
                }
                let codes = self.byte()?;
                let (key, value) = (codes >> 4, codes & 0x0f);
                (WireType::from_compact(key), WireType::from_compact(value), (key, value), count)
            }
        };
        match (key, value) {
            _ if count == 0 => Ok(MapHeader { types: None, count }),
            (Some(key), Some(value)) => Ok(MapHeader { types: Some((key, value)), count }),
            (None, _) => start.wrong(Fault::BadType { code: codes.0 }),
            (_, None) => start.wrong(Fault::BadType { code: codes.1 }),
        }
    }
}
