//! Resolves constants and defaults, and checks them against their types.

use config::nearest::did_you_mean;

use super::resolve::Resolver;
use super::syntax::{Const, ConstKind};
use crate::thrift::schema::Type;
use crate::value::Value;

impl Resolver<'_> {
    /// Converts a value to its type; `None` after an error.
    pub(super) fn value(&mut self, file: usize, constant: &Const, ty: &Type) -> Option<Value> {
        if self.values_left == 0 {
            self.tell(file, constant.at, "too many values in constants and defaults".to_owned(), None);
            return None;
        }
        self.values_left -= 1;
        if let ConstKind::Name(name) = &constant.kind {
            return self.named(file, constant.at, name, ty);
        }
        let read = match (&constant.kind, ty) {
            (ConstKind::Integer(value), Type::Bool) if (0..=1).contains(value) => Value::Bool(*value == 1),
            (ConstKind::Integer(value), Type::Byte) if i8::try_from(*value).is_ok() => Value::Integer(*value),
            (ConstKind::Integer(value), Type::I16) if i16::try_from(*value).is_ok() => Value::Integer(*value),
            (ConstKind::Integer(value), Type::I32 | Type::Enum(_)) if i32::try_from(*value).is_ok() => {
                if let Type::Enum(id) = ty
                    && self.schema.enumeration(*id).name_of(*value as i32).is_none()
                {
                    let text = format!("{value} is not a member of `{}`", self.schema.enumeration(*id).name);
                    self.tell(file, constant.at, text, None);
                    return None;
                }
                Value::Integer(*value)
            }
            (ConstKind::Integer(value), Type::I64) => Value::Integer(*value),
            (ConstKind::Integer(value), Type::Double) => Value::Double(*value as f64),
            (ConstKind::Double(value), Type::Double) => Value::Double(*value),
            (ConstKind::Text(text), Type::String) => Value::Text(text.clone()),
            (ConstKind::Text(text), Type::Binary) => Value::Bytes(text.clone().into_bytes()),
            (ConstKind::Text(text), Type::Uuid) => match uuid(text) {
                Some(bytes) => Value::Bytes(bytes.to_vec()),
                None => {
                    self.tell(file, constant.at, format!("{text:?} is not a valid uuid"), None);
                    return None;
                }
            },
            (ConstKind::List(elements), Type::List(element) | Type::Set(element)) => {
                let elements = elements.iter().map(|value| self.value(file, value, element)).collect::<Vec<_>>();
                Value::List(elements.into_iter().collect::<Option<_>>()?)
            }
            // The compiler accepts an empty map for an empty list, and the reverse.
            (ConstKind::Map(pairs), Type::List(_) | Type::Set(_)) if pairs.is_empty() => Value::List(Vec::new()),
            (ConstKind::List(elements), Type::Map(..)) if elements.is_empty() => Value::Map(Vec::new()),
            (ConstKind::Map(pairs), Type::Map(key, value)) => {
                let pairs = pairs.iter().map(|pair| (self.value(file, &pair.0, key), self.value(file, &pair.1, value)));
                let pairs = pairs.collect::<Vec<_>>();
                Value::Map(pairs.into_iter().map(|pair| Some((pair.0?, pair.1?))).collect::<Option<_>>()?)
            }
            (ConstKind::Map(pairs), Type::Struct(id)) => {
                let mut fields = Vec::new();
                for (key, value) in pairs {
                    let ConstKind::Text(name) = &key.kind else {
                        self.tell(file, key.at, "expected a quoted field name".to_owned(), None);
                        return None;
                    };
                    let structure = self.schema.structure(*id);
                    let Some(field) = structure.field(name) else {
                        let hint = did_you_mean(name, structure.fields.iter().map(|field| field.name.as_str()));
                        let text = format!("`{}` has no field `{name}`", structure.name);
                        self.tell(file, key.at, text, hint);
                        return None;
                    };
                    let ty = field.ty.clone();
                    fields.push((name.clone(), self.value(file, value, &ty)?));
                }
                Value::Record(fields)
            }
            (kind, ty) => {
                let shown = match kind {
                    ConstKind::Integer(value) => value.to_string(),
                    ConstKind::Double(value) => value.to_string(),
                    ConstKind::Text(text) => format!("{text:?}"),
                    ConstKind::List(_) => "a list".to_owned(),
                    ConstKind::Map(_) => "a map".to_owned(),
                    ConstKind::Name(name) => name.clone(),
                };
                let text = format!("{shown} is not a valid `{}`", self.schema.type_name(ty));
                self.tell(file, constant.at, text, None);
                return None;
            }
        };
        Some(read)
    }

    /// Resolves `true`, `false`, another constant, or an enum member: `Enum.MEMBER`,
    /// `file.Enum.MEMBER`, or just `MEMBER` if the type is that enum.
    fn named(&mut self, file: usize, at: usize, name: &str, ty: &Type) -> Option<Value> {
        match (name, ty) {
            ("true", Type::Bool) => return Some(Value::Bool(true)),
            ("false", Type::Bool) => return Some(Value::Bool(false)),
            _ => {}
        }
        if let Some(key) = self.look_up(file, name)
            && self.is_constant(key)
        {
            return self.constant(key, ty);
        }
        let member = match name.rsplit_once('.') {
            Some((owner, member)) => self.look_up(file, owner).and_then(|key| self.enum_of(key)).map(|id| (id, member)),
            None => match ty {
                Type::Enum(id) => Some((*id, name)),
                _ => None,
            },
        };
        let Some((id, member)) = member else {
            self.tell(file, at, format!("unknown constant `{name}`"), None);
            return None;
        };
        let enumeration = self.schema.enumeration(id);
        let Some(number) = enumeration.number_of(member) else {
            let hint = did_you_mean(member, enumeration.members.iter().map(|member| member.0.as_str()));
            let text = format!("`{}` has no member `{member}`", enumeration.name);
            self.tell(file, at, text, hint);
            return None;
        };
        let fits = match ty {
            Type::Enum(wanted) => *wanted == id,
            Type::Byte => i8::try_from(number).is_ok(),
            Type::I16 => i16::try_from(number).is_ok(),
            Type::I32 | Type::I64 => true,
            _ => false,
        };
        if !fits {
            let text = format!("`{name}` is not a `{}`", self.schema.type_name(ty));
            self.tell(file, at, text, None);
            return None;
        }
        Some(Value::Integer(i64::from(number)))
    }
}

/// Parses `00112233-4455-6677-8899-aabbccddeeff`.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let dashes = [8, 13, 18, 23];
    let is_dashed =
        text.len() == 36 && text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == dashes.contains(&at));
    let digits = text.bytes().filter(|byte| *byte != b'-').collect::<Vec<_>>();
    if !is_dashed || digits.len() != 32 {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}
