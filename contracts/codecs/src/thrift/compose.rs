//! Writes Thrift messages in both protocols.

use super::cursor::{Limits, Protocol, WireType};
use super::message_and_framing::{Framing, Header, MessageKind};
use super::schema::{Requirement, Schema, StructId, StructKind, Type};
use super::value_view::wire_type;
use crate::value::{ComposeError, Value};

/// Composes a call with its arguments or a reply with its result. Fields are written in the order of their numbers. A
/// missing or null field gets its default if it has one and is not optional; otherwise, it is omitted. Fails if a value
/// does not match its type, a required field is missing, or a field is unknown.
pub fn compose_message(
    protocol: Protocol,
    framing: Framing,
    header: &Header<'_>,
    schema: &Schema,
    id: StructId,
    value: &Value,
) -> Result<Vec<u8>, ComposeError> {
    let path = vec![schema.structure(id).name.clone()];
    let mut composer = Composer { out: Writer::new(protocol, framing, header), schema, path };
    composer.structure(id, value)?;
    composer.out.finish(framing, header)
}

/// Composes a `TApplicationException` with a code of [`super::Outcome::Failed`]. Panics if its size reaches 2 GiB.
pub fn compose_application_exception(
    protocol: Protocol,
    framing: Framing,
    header: &Header<'_>,
    message: &str,
    code: i32,
) -> Vec<u8> {
    let header = Header { kind: MessageKind::Exception, ..*header };
    let mut writer = Writer::new(protocol, framing, &header);
    let mut last = 0;
    writer.field(&mut last, 1, WireType::Bytes, None);
    writer.bytes(message.as_bytes());
    writer.field(&mut last, 2, WireType::I32, None);
    writer.integer(WireType::I32, i64::from(code));
    writer.out.push(0);
    writer.finish(framing, &header).expect("an exception has less than 2 GiB")
}

struct Writer {
    out: Vec<u8>,
    protocol: Protocol,
}

impl Writer {
    fn new(protocol: Protocol, framing: Framing, header: &Header<'_>) -> Self {
        let out = if framing == Framing::Framed { vec![0; 4] } else { Vec::new() };
        let mut writer = Writer { out, protocol };
        match protocol {
            Protocol::Compact => {
                writer.out.extend_from_slice(&[0x82, 1 | (header.kind as u8) << 5]);
                writer.varint(u64::from(header.sequence as u32));
                writer.bytes(header.name.as_bytes());
            }
            Protocol::Binary => {
                if header.is_strict {
                    writer.out.extend_from_slice(&[0x80, 1, 0, header.kind as u8]);
                }
                writer.bytes(header.name.as_bytes());
                if !header.is_strict {
                    writer.out.push(header.kind as u8);
                }
                writer.out.extend_from_slice(&header.sequence.to_be_bytes());
            }
        }
        writer
    }

    fn finish(mut self, framing: Framing, header: &Header<'_>) -> Result<Vec<u8>, ComposeError> {
        let length = self.out.len();
        if i32::try_from(length).is_err() {
            return Err(ComposeError { path: header.name.to_owned(), what: format!("a message of {length} bytes") });
        }
        if framing == Framing::Framed {
            self.out[..4].copy_from_slice(&(length as u32 - 4).to_be_bytes());
        }
        Ok(self.out)
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

    fn double(&mut self, value: f64) {
        self.out.extend_from_slice(&match self.protocol {
            Protocol::Binary => value.to_be_bytes(),
            Protocol::Compact => value.to_le_bytes(),
        });
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    fn count(&mut self, count: usize) {
        match self.protocol {
            Protocol::Binary => self.out.extend_from_slice(&(count as u32).to_be_bytes()),
            Protocol::Compact => self.varint(count as u64),
        }
    }

    /// Writes a field's header. In the compact protocol, the header contains the value of a bool.
    fn field(&mut self, last: &mut i16, id: i16, wire: WireType, bool: Option<bool>) {
        match self.protocol {
            Protocol::Binary => {
                self.out.push(wire.code(self.protocol));
                self.out.extend_from_slice(&id.to_be_bytes());
            }
            Protocol::Compact => {
                let code = wire.code(self.protocol) + u8::from(bool == Some(false));
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
        let code = wire.code(self.protocol);
        match self.protocol {
            Protocol::Compact if count < 15 => return self.out.push((count as u8) << 4 | code),
            Protocol::Compact => self.out.push(0xf0 | code),
            Protocol::Binary => self.out.push(code),
        }
        self.count(count);
    }

    fn map(&mut self, key: WireType, value: WireType, count: usize) {
        let (key, value) = (key.code(self.protocol), value.code(self.protocol));
        if self.protocol == Protocol::Binary {
            self.out.extend_from_slice(&[key, value]);
        }
        self.count(count);
        if self.protocol == Protocol::Compact && count > 0 {
            self.out.push(key << 4 | value);
        }
    }
}

struct Composer<'c> {
    out: Writer,
    schema: &'c Schema,
    path: Vec<String>,
}

impl Composer<'_> {
    fn wrong<T>(&self, what: String) -> Result<T, ComposeError> {
        Err(ComposeError { path: self.path.join("."), what })
    }

    fn structure(&mut self, id: StructId, value: &Value) -> Result<(), ComposeError> {
        let structure = self.schema.structure(id);
        if self.path.len() > Limits::DEPTH_MAX {
            return self.wrong(format!("values nested deeper than {} levels", Limits::DEPTH_MAX));
        }
        let Value::Record(given) = value else {
            return self.wrong(format!("expected `{}`, found {}", structure.name, value.kind()));
        };
        if let Some((name, _)) = given.iter().find(|(name, _)| structure.field(name).is_none()) {
            return self.wrong(format!("`{}` has no field `{name}`", structure.name));
        }
        let there = given.iter().filter(|(_, value)| *value != Value::Null).count();
        if structure.kind == StructKind::Union && there != 1 {
            return self.wrong(format!("a union takes one field, found {there}"));
        }
        let mut last = 0;
        for field in &structure.fields {
            let own = value.get(&field.name).filter(|value| **value != Value::Null);
            let default = field.default.as_ref().filter(|_| field.requirement != Requirement::Optional);
            let Some(value) = own.or(default) else {
                if field.requirement == Requirement::Required {
                    return self.wrong(format!("the required field `{}` is missing", field.name));
                }
                continue;
            };
            let wire = wire_type(&field.ty);
            match (self.out.protocol, value) {
                (Protocol::Compact, Value::Bool(bool)) if field.ty == Type::Bool => {
                    self.out.field(&mut last, field.id, wire, Some(*bool));
                }
                _ => {
                    self.out.field(&mut last, field.id, wire, None);
                    self.part(field.name.clone(), &field.ty, value)?;
                }
            }
        }
        self.out.out.push(0);
        Ok(())
    }

    fn value(&mut self, ty: &Type, value: &Value) -> Result<(), ComposeError> {
        match (ty, value) {
            // This is a bool element of a container; a bool field has its value in the header.
            (Type::Bool, Value::Bool(bool)) => self.out.out.push(match (self.out.protocol, bool) {
                (_, true) => 1,
                (Protocol::Binary, false) => 0,
                (Protocol::Compact, false) => 2,
            }),
            (_, Value::Integer(integer)) if ty.holds(*integer) => self.out.integer(wire_type(ty), *integer),
            (Type::Byte | Type::I16 | Type::I32 | Type::Enum(_), Value::Integer(integer)) => {
                return self.wrong(format!("{integer} is not a valid `{}`", self.schema.type_name(ty)));
            }
            (Type::Enum(id), Value::Text(name)) => match self.schema.enumeration(*id).number_of(name) {
                Some(number) => self.out.integer(WireType::I32, i64::from(number)),
                None => {
                    return self.wrong(format!("`{}` has no member `{name}`", self.schema.enumeration(*id).name));
                }
            },
            (Type::Double, Value::Double(double)) => self.out.double(*double),
            (Type::Double, Value::Integer(integer)) => self.out.double(*integer as f64),
            (Type::String | Type::Binary, Value::Text(text)) => self.out.bytes(text.as_bytes()),
            (Type::String | Type::Binary, Value::Bytes(bytes)) => self.out.bytes(bytes),
            (Type::Uuid, Value::Bytes(bytes)) if bytes.len() == 16 => self.out.out.extend_from_slice(bytes),
            (Type::Struct(id), _) => return self.structure(*id, value),
            (ty, Value::Unknown) if !matches!(ty, Type::List(_) | Type::Set(_) | Type::Map(..)) => {}
            (Type::List(element) | Type::Set(element), Value::List(elements)) => {
                self.out.list(wire_type(element), elements.len());
                for (index, value) in elements.iter().enumerate() {
                    self.part(format!("[{index}]"), element, value)?;
                }
            }
            (Type::Map(key, value_type), Value::Map(pairs)) => {
                self.out.map(wire_type(key), wire_type(value_type), pairs.len());
                for (index, (first, second)) in pairs.iter().enumerate() {
                    self.part(format!("key {index}"), key, first)?;
                    self.part(format!("value {index}"), value_type, second)?;
                }
            }
            _ => return self.wrong(format!("expected `{}`, found {}", self.schema.type_name(ty), value.kind())),
        }
        Ok(())
    }

    fn part(&mut self, name: String, ty: &Type, value: &Value) -> Result<(), ComposeError> {
        self.path.push(name);
        self.value(ty, value)?;
        self.path.pop();
        Ok(())
    }
}
