//! Composes messages from values, driven by a schema: for mocks, clients and tests.

use super::cursor::{Protocol, WireType};
use super::error::Limits;
use super::message::{Framing, Header, MessageKind};
use super::schema::{Requirement, Schema, StructId, StructKind, Type};
use super::view::wire_type;
use crate::value::Value;

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct ComposeError {
    /// Path to the value from the message's struct: field names and element indexes.
    pub path: String,
    /// The thing, its value and the limit.
    pub what: String,
}

/// Appends a message: a call with its arguments, or a reply with its result.
///
/// Fields are written in the order of their numbers. A missing field or [`Value::Null`] is written
/// as its default if it has one and is not optional, and is omitted otherwise.
///
/// Fails if a value does not match its type, a required field is missing, or the schema lacks a
/// given field. `out` is unchanged then.
pub fn compose_message(
    out: &mut Vec<u8>,
    protocol: Protocol,
    framing: Framing,
    header: &Header<'_>,
    schema: &Schema,
    id: StructId,
    value: &Value,
) -> Result<(), ComposeError> {
    framed(out, protocol, framing, header, |writer| {
        let mut path = vec![schema.structure(id).name.clone()];
        writer.structure(schema, id, value, &mut path)
    })
}

/// Appends a `TApplicationException`; the codes are those of [`super::ApplicationException::code`].
pub fn compose_application_exception(
    out: &mut Vec<u8>,
    protocol: Protocol,
    framing: Framing,
    header: &Header<'_>,
    message: &str,
    code: i32,
) {
    let header = Header { kind: MessageKind::Exception, ..*header };
    let composed = framed(out, protocol, framing, &header, |writer| {
        let mut last = 0;
        writer.field(&mut last, 1, WireType::Bytes, None);
        writer.bytes(message.as_bytes());
        writer.field(&mut last, 2, WireType::I32, None);
        writer.integer(WireType::I32, i64::from(code));
        writer.out.push(0);
        Ok(())
    });
    debug_assert!(composed.is_ok(), "nothing in it depends on a schema");
}

fn framed(
    out: &mut Vec<u8>,
    protocol: Protocol,
    framing: Framing,
    header: &Header<'_>,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), ComposeError>,
) -> Result<(), ComposeError> {
    let before = out.len();
    if framing == Framing::Framed {
        out.extend_from_slice(&[0; 4]);
    }
    let mut writer = Writer { out, protocol };
    writer.header(header);
    let result = body(&mut writer);
    let length = out.len() - before;
    let result = result.and_then(|()| match i32::try_from(length) {
        Ok(_) => Ok(()),
        Err(_) => Err(ComposeError { path: header.name.to_owned(), what: format!("a message of {length} bytes") }),
    });
    match result {
        Ok(()) if framing == Framing::Framed => {
            out[before..before + 4].copy_from_slice(&(length as u32 - 4).to_be_bytes());
        }
        Ok(()) => {}
        Err(_) => out.truncate(before),
    }
    result
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    protocol: Protocol,
}

impl Writer<'_> {
    fn header(&mut self, header: &Header<'_>) {
        match (self.protocol, header.is_strict) {
            (Protocol::Compact, _) => {
                self.out.extend_from_slice(&[0x82, 1 | (header.kind.code() << 5)]);
                self.varint(u64::from(header.sequence as u32));
                self.bytes(header.name.as_bytes());
            }
            (Protocol::Binary, true) => {
                self.out.extend_from_slice(&[0x80, 1, 0, header.kind.code()]);
                self.bytes(header.name.as_bytes());
                self.out.extend_from_slice(&header.sequence.to_be_bytes());
            }
            (Protocol::Binary, false) => {
                self.bytes(header.name.as_bytes());
                self.out.push(header.kind.code());
                self.out.extend_from_slice(&header.sequence.to_be_bytes());
            }
        }
    }

    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    fn integer(&mut self, wire: WireType, value: i64) {
        match (wire, self.protocol) {
            (WireType::Byte, _) => self.out.push(value as u8),
            (_, Protocol::Compact) => self.varint((value << 1) as u64 ^ (value >> 63) as u64),
            (WireType::I16, Protocol::Binary) => self.out.extend_from_slice(&(value as i16).to_be_bytes()),
            (WireType::I32, Protocol::Binary) => self.out.extend_from_slice(&(value as i32).to_be_bytes()),
            (_, Protocol::Binary) => self.out.extend_from_slice(&value.to_be_bytes()),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match self.protocol {
            Protocol::Binary => self.out.extend_from_slice(&(bytes.len() as u32).to_be_bytes()),
            Protocol::Compact => self.varint(bytes.len() as u64),
        }
        self.out.extend_from_slice(bytes);
    }

    /// Writes a field's header. In the compact protocol it contains the value of a bool.
    fn field(&mut self, last: &mut i16, id: i16, wire: WireType, bool: Option<bool>) {
        match self.protocol {
            Protocol::Binary => {
                self.out.push(wire.binary());
                self.out.extend_from_slice(&id.to_be_bytes());
            }
            Protocol::Compact => {
                let code = wire.compact() + u8::from(bool == Some(false));
                match i32::from(id) - i32::from(*last) {
                    difference @ 1..=15 => self.out.push((difference as u8) << 4 | code),
                    _ => {
                        self.out.push(code);
                        self.integer(WireType::I16, i64::from(id));
                    }
                }
            }
        }
        *last = id;
    }

    fn list(&mut self, wire: WireType, count: usize) {
        match self.protocol {
            Protocol::Binary => {
                self.out.push(wire.binary());
                self.out.extend_from_slice(&(count as u32).to_be_bytes());
            }
            Protocol::Compact if count < 15 => self.out.push((count as u8) << 4 | wire.compact()),
            Protocol::Compact => {
                self.out.push(0xf0 | wire.compact());
                self.varint(count as u64);
            }
        }
    }

    fn map(&mut self, key: WireType, value: WireType, count: usize) {
        match self.protocol {
            Protocol::Binary => {
                self.out.extend_from_slice(&[key.binary(), value.binary()]);
                self.out.extend_from_slice(&(count as u32).to_be_bytes());
            }
            Protocol::Compact => {
                self.varint(count as u64);
                if count > 0 {
                    self.out.push(key.compact() << 4 | value.compact());
                }
            }
        }
    }

    fn structure(
        &mut self,
        schema: &Schema,
        id: StructId,
        value: &Value,
        path: &mut Vec<String>,
    ) -> Result<(), ComposeError> {
        let structure = schema.structure(id);
        if path.len() > Limits::DEPTH_MAX {
            return Err(wrong(path, format!("values nested deeper than {} levels", Limits::DEPTH_MAX)));
        }
        let Value::Record(given) = value else {
            return Err(wrong(path, format!("expected `{}`, found {}", structure.name, value.kind())));
        };
        if let Some((name, _)) = given.iter().find(|(name, _)| structure.field(name).is_none()) {
            return Err(wrong(path, format!("`{}` has no field `{name}`", structure.name)));
        }
        let there = given.iter().filter(|(_, value)| *value != Value::Null).count();
        if structure.kind == StructKind::Union && there != 1 {
            return Err(wrong(path, format!("a union takes one field, found {there}")));
        }
        let mut last = 0;
        for field in &structure.fields {
            let own = value.get(&field.name).filter(|value| **value != Value::Null);
            let default = field.default.as_ref().filter(|_| field.requirement != Requirement::Optional);
            let Some(value) = own.or(default) else {
                if field.requirement == Requirement::Required {
                    return Err(wrong(path, format!("the required field `{}` is missing", field.name)));
                }
                continue;
            };
            path.push(field.name.clone());
            let wire = wire_type(&field.ty);
            match (self.protocol, value) {
                (Protocol::Compact, Value::Bool(bool)) if field.ty == Type::Bool => {
                    self.field(&mut last, field.id, wire, Some(*bool));
                }
                _ => {
                    self.field(&mut last, field.id, wire, None);
                    self.value(schema, &field.ty, value, path)?;
                }
            }
            path.pop();
        }
        self.out.push(0);
        Ok(())
    }

    fn value(&mut self, schema: &Schema, ty: &Type, value: &Value, path: &mut Vec<String>) -> Result<(), ComposeError> {
        let wire = wire_type(ty);
        let fits = |integer: i64| match ty {
            Type::Byte => i8::try_from(integer).is_ok(),
            Type::I16 => i16::try_from(integer).is_ok(),
            Type::I32 | Type::Enum(_) => i32::try_from(integer).is_ok(),
            _ => true,
        };
        match (ty, value) {
            // A bool element; a bool field is in its header.
            (Type::Bool, Value::Bool(bool)) => self.out.push(match (self.protocol, bool) {
                (_, true) => 1,
                (Protocol::Binary, false) => 0,
                (Protocol::Compact, false) => 2,
            }),
            (Type::Byte | Type::I16 | Type::I32 | Type::I64 | Type::Enum(_), Value::Integer(integer)) => {
                if !fits(*integer) {
                    return Err(wrong(path, format!("{integer} is not a valid `{}`", schema.type_name(ty))));
                }
                self.integer(wire, *integer);
            }
            (Type::Enum(id), Value::Text(name)) => match schema.enumeration(*id).number_of(name) {
                Some(number) => self.integer(wire, i64::from(number)),
                None => {
                    let text = format!("`{}` has no member `{name}`", schema.enumeration(*id).name);
                    return Err(wrong(path, text));
                }
            },
            (Type::Double, Value::Double(_) | Value::Integer(_)) => {
                let double = match value {
                    Value::Double(double) => *double,
                    Value::Integer(integer) => *integer as f64,
                    _ => unreachable!("the arm says so"),
                };
                self.out.extend_from_slice(&match self.protocol {
                    Protocol::Binary => double.to_be_bytes(),
                    Protocol::Compact => double.to_le_bytes(),
                });
            }
            (Type::String | Type::Binary, Value::Text(text)) => self.bytes(text.as_bytes()),
            (Type::String | Type::Binary, Value::Bytes(bytes)) => self.bytes(bytes),
            (Type::Uuid, Value::Bytes(bytes)) if bytes.len() == 16 => self.out.extend_from_slice(bytes),
            (Type::Struct(id), _) => return self.structure(schema, *id, value, path),
            (Type::List(element) | Type::Set(element), Value::List(elements)) => {
                self.list(wire_type(element), elements.len());
                for (index, value) in elements.iter().enumerate() {
                    self.part(schema, element, value, path, || format!("[{index}]"))?;
                }
            }
            (Type::Map(key, value_type), Value::Map(pairs)) => {
                self.map(wire_type(key), wire_type(value_type), pairs.len());
                for (index, (first, second)) in pairs.iter().enumerate() {
                    self.part(schema, key, first, path, || format!("key {index}"))?;
                    self.part(schema, value_type, second, path, || format!("value {index}"))?;
                }
            }
            _ => return Err(wrong(path, format!("expected `{}`, found {}", schema.type_name(ty), value.kind()))),
        }
        Ok(())
    }

    fn part(
        &mut self,
        schema: &Schema,
        ty: &Type,
        value: &Value,
        path: &mut Vec<String>,
        name: impl Fn() -> String,
    ) -> Result<(), ComposeError> {
        path.push(name());
        self.value(schema, ty, value, path)?;
        path.pop();
        Ok(())
    }
}

fn wrong(path: &[String], what: String) -> ComposeError {
    ComposeError { path: path.join("."), what }
}
