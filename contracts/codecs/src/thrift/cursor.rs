//! Reads the elements of both Thrift protocols, within limits: numbers, strings, and headers of fields and containers.

use crate::mistake::DecodeError;

/// A protocol of Thrift, which determines the encoding of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Full-width, big-endian numbers. Source: thrift-binary-protocol.md of Apache Thrift.
    Binary,
    /// Variable-length numbers, and field numbers as deltas. Source: thrift-compact-protocol.md of Apache Thrift.
    Compact,
}

/// The type of a value on the wire, independent of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireType {
    /// A boolean: a byte, or a part of a compact field's header.
    Bool,
    /// A signed integer of 8 bits.
    Byte,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits, or an enum.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// An IEEE 754 number of 64 bits.
    Double,
    /// A string or binary data.
    Bytes,
    /// A struct, a union or an exception.
    Struct,
    /// A map, as alternating keys and values.
    Map,
    /// A set, encoded like a list.
    Set,
    /// A list of elements of one type.
    List,
    /// A UUID of 16 bytes.
    Uuid,
}

impl WireType {
    /// Returns the type with this number in a protocol, or `None`. The compact protocol has two numbers for bools.
    pub(super) fn from_code(protocol: Protocol, code: u8) -> Option<WireType> {
        use Protocol::{Binary, Compact};
        Some(match (protocol, code) {
            (Binary, 2) | (Compact, 1 | 2) => WireType::Bool,
            (_, 3) => WireType::Byte,
            (Binary, 6) | (Compact, 4) => WireType::I16,
            (Binary, 8) | (Compact, 5) => WireType::I32,
            (Binary, 10) | (Compact, 6) => WireType::I64,
            (Binary, 4) | (Compact, 7) => WireType::Double,
            (Binary, 11) | (Compact, 8) => WireType::Bytes,
            (_, 12) => WireType::Struct,
            (Binary, 13) | (Compact, 11) => WireType::Map,
            (Binary, 14) | (Compact, 10) => WireType::Set,
            (Binary, 15) | (Compact, 9) => WireType::List,
            (Binary, 16) | (Compact, 13) => WireType::Uuid,
            _ => return None,
        })
    }

    /// Returns the number of the type in a protocol. For bools, it is the number in container headers.
    pub(super) fn code(self, protocol: Protocol) -> u8 {
        (1..=16).find(|code| Self::from_code(protocol, *code) == Some(self)).expect("every type has a number")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldHeader {
    pub(super) id: i16,
    pub(super) wire: WireType,
    /// The value of a bool field of the compact protocol, which stores it in the header.
    pub(super) bool: Option<bool>,
}

/// Limits for reading a message, checked before anything is allocated or skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a message including the frame length, in bytes.
    pub message_bytes: usize,
    /// Maximum size of a string or binary, in bytes.
    pub string_bytes: usize,
    /// Maximum number of elements in a list or set, or of pairs in a map.
    pub elements: u32,
    /// Maximum number of values in a message.
    pub values: u32,
    /// Maximum nesting of values, counting the arguments as a level; at most [`Limits::DEPTH_MAX`].
    pub depth: usize,
    /// Maximum size of a method's name, in bytes.
    pub name_bytes: usize,
}

impl Limits {
    /// Default limits: 16 MiB per message and string, 1 KiB names, 4 Mi values, 1 Mi elements per container, 64 levels.
    pub const DEFAULT: Limits = Limits {
        message_bytes: 16 << 20,
        string_bytes: 16 << 20,
        elements: 1 << 20,
        values: 1 << 22,
        depth: Limits::DEPTH_MAX,
        name_bytes: 1 << 10,
    };

    /// Upper bound of [`Limits::depth`]. Apache Thrift's libraries have the same limit.
    pub const DEPTH_MAX: usize = 64;
}

/// The reason why reading stops: an error, or a minimum number of bytes that are still missing.
pub(super) enum Stop {
    Need(usize),
    Wrong(DecodeError),
}

impl Stop {
    pub(super) fn at_end(self, at: usize) -> DecodeError {
        match self {
            Stop::Need(_) => DecodeError::malformed(at, "the message ends too early"),
            Stop::Wrong(error) => error,
        }
    }
}

const TOO_WIDE: &str = "a number too wide for its type";
pub(super) const NEGATIVE: &str = "a negative length";

fn not_a_type(code: u8) -> String {
    format!("0x{code:02x} is not a type number")
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'b> {
    pub(super) bytes: &'b [u8],
    pub(super) at: usize,
    pub(super) protocol: Protocol,
}

impl<'b> Cursor<'b> {
    pub(super) fn wrong<T>(&self, what: impl Into<String>) -> Result<T, Stop> {
        Err(Stop::Wrong(DecodeError::malformed(self.at, what)))
    }

    pub(super) fn over<T>(&self, what: String) -> Result<T, Stop> {
        Err(Stop::Wrong(DecodeError::over(self.at, what)))
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'b [u8], Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..count).ok_or_else(|| Stop::Need(count - rest.len()))?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        self.take(N).map(|taken| std::array::from_fn(|index| taken[index]))
    }

    pub(super) fn byte(&mut self) -> Result<u8, Stop> {
        self.array::<1>().map(|byte| byte[0])
    }

    pub(super) fn fixed_i32(&mut self) -> Result<i32, Stop> {
        self.array().map(i32::from_be_bytes)
    }

    /// Reads a variable-length number, lowest 7 bits first. Fails if the number is wider than `bits` bits.
    pub(super) fn varint(&mut self, bits: u32) -> Result<u64, Stop> {
        let start = *self;
        let mut value = 0_u64;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            let is_last = bits - shift <= 7;
            if is_last && (byte & 0x80 != 0 || group >> (bits - shift) != 0) {
                return start.wrong(TOO_WIDE);
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
            (WireType::I16, Protocol::Binary) => self.array().map(|bytes| i64::from(i16::from_be_bytes(bytes))),
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
            (byte, _) => start.wrong(format!("0x{byte:02x} is not a bool")),
        }
    }

    /// Reads a length and that many bytes. If bytes are missing, `Need` has the total number of missing bytes.
    pub(super) fn string(&mut self, limit: usize) -> Result<&'b [u8], Stop> {
        let start = *self;
        let bytes = match self.protocol {
            Protocol::Compact => self.varint(32)?,
            Protocol::Binary => u64::from(self.fixed_count(start)?),
        };
        if bytes > limit as u64 {
            return start.over(format!("{bytes} bytes, over the limit of {limit}"));
        }
        self.take(bytes as usize)
    }

    /// Reads the header of the field after field `last`. `None` at the end of the struct.
    pub(super) fn field(&mut self, last: i16) -> Result<Option<FieldHeader>, Stop> {
        let start = *self;
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        let code = if self.protocol == Protocol::Binary { byte } else { byte & 0x0f };
        let Some(wire) = WireType::from_code(self.protocol, code) else { return start.wrong(not_a_type(code)) };
        let id = match (self.protocol, byte >> 4) {
            (Protocol::Binary, _) => self.array().map(i16::from_be_bytes)?,
            (Protocol::Compact, 0) => self.zigzag(16)? as i16,
            (Protocol::Compact, difference) => match last.checked_add(i16::from(difference)) {
                Some(id) => id,
                None => return start.wrong(TOO_WIDE),
            },
        };
        let bool = (self.protocol == Protocol::Compact && wire == WireType::Bool).then_some(code == 1);
        Ok(Some(FieldHeader { id, wire, bool }))
    }

    pub(super) fn list(&mut self) -> Result<(WireType, u32), Stop> {
        let start = *self;
        let byte = self.byte()?;
        let (code, count) = match (self.protocol, byte >> 4) {
            (Protocol::Binary, _) => (byte, self.fixed_count(start)?),
            (Protocol::Compact, 15) => (byte & 0x0f, self.varint(32)? as u32),
            (Protocol::Compact, short) => (byte & 0x0f, u32::from(short)),
        };
        match WireType::from_code(self.protocol, code) {
            Some(wire) => Ok((wire, count)),
            // Some libraries write an invalid type for an empty list.
            None if count == 0 => Ok((WireType::Byte, 0)),
            None => start.wrong(not_a_type(code)),
        }
    }

    /// Reads the key type, value type and count of a map. The types of an empty map are meaningless.
    pub(super) fn map(&mut self) -> Result<(WireType, WireType, u32), Stop> {
        let start = *self;
        let (key, value, count) = match self.protocol {
            Protocol::Binary => (self.byte()?, self.byte()?, self.fixed_count(start)?),
            Protocol::Compact => match self.varint(32)? as u32 {
                0 => (0, 0, 0),
                count => {
                    let codes = self.byte()?;
                    (codes >> 4, codes & 0x0f, count)
                }
            },
        };
        let wire = |code: u8| WireType::from_code(self.protocol, code);
        match (wire(key), wire(value)) {
            _ if count == 0 => Ok((WireType::Byte, WireType::Byte, 0)),
            (Some(key), Some(value)) => Ok((key, value, count)),
            (None, _) => start.wrong(not_a_type(key)),
            (_, None) => start.wrong(not_a_type(value)),
        }
    }

    fn fixed_count(&mut self, start: Self) -> Result<u32, Stop> {
        u32::try_from(self.fixed_i32()?).or_else(|_| start.wrong(NEGATIVE))
    }
}
