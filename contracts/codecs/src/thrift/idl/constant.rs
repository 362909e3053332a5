//! Converts constants and default values to their types.

use config::nearest::did_you_mean;

use super::parse::{Body, Const, ConstKind};
use super::resolve::Resolver;
use crate::thrift::schema::Type;
use crate::value::Value;

impl Resolver<'_> {
    /// Converts a constant to a type. `None` after an error, which is reported.
    pub(super) fn value(&mut self, file: usize, constant: &Const, ty: &Type) -> Option<Value> {
        let at = constant.at;
        let Some(left) = self.values_left.checked_sub(1) else {
            return self.fail(file, at, "too many values in constants and defaults");
        };
        self.values_left = left;
        Some(match (&constant.kind, ty) {
            (ConstKind::Name(name), _) => return self.named(file, at, name, ty),
            (ConstKind::Integer(value), Type::Bool) if (0..=1).contains(value) => Value::Bool(*value == 1),
            (ConstKind::Integer(value), Type::Enum(id)) if ty.holds(*value) => {
                let enumeration = self.schema.enumeration(*id);
                if enumeration.members.iter().all(|member| i64::from(member.1) != *value) {
                    return self.fail(file, at, format!("{value} is not a member of `{}`", enumeration.name));
                }
                Value::Integer(*value)
            }
            (ConstKind::Integer(value), _) if ty.holds(*value) => Value::Integer(*value),
            (ConstKind::Integer(value), Type::Double) => Value::Double(*value as f64),
            (ConstKind::Double(value), Type::Double) => Value::Double(*value),
            (ConstKind::Text(text), Type::String) => Value::Text(text.clone()),
            (ConstKind::Text(text), Type::Binary) => Value::Bytes(text.clone().into_bytes()),
            (ConstKind::Text(text), Type::Uuid) => match uuid(text) {
                Some(bytes) => Value::Bytes(bytes.to_vec()),
                None => return self.fail(file, at, format!("{text:?} is not a valid uuid")),
            },
            (ConstKind::List(elements), Type::List(element) | Type::Set(element)) => {
                let elements = elements.iter().map(|value| self.value(file, value, element)).collect::<Vec<_>>();
                Value::List(elements.into_iter().collect::<Option<_>>()?)
            }
            // The compiler accepts an empty map for an empty list and vice versa.
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
                        return self.fail(file, key.at, "expected a quoted field name");
                    };
                    let structure = self.schema.structure(*id);
                    let Some(field) = structure.field(name) else {
                        let hint = did_you_mean(name, structure.fields.iter().map(|field| field.name.as_str()));
                        let text = format!("`{}` has no field `{name}`", structure.name);
                        return self.fail_hint(file, key.at, text, hint);
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
                return self.fail(file, at, format!("{shown} is not a valid `{}`", self.schema.type_name(ty)));
            }
        })
    }

    /// Resolves `true`, `false`, a constant, or an enum member: `[file.]Enum.MEMBER`, or `MEMBER` if `ty` is its enum.
    fn named(&mut self, file: usize, at: usize, name: &str, ty: &Type) -> Option<Value> {
        if let (Type::Bool, Ok(value)) = (ty, name.parse()) {
            return Some(Value::Bool(value));
        }
        if let Some(key) = self.look_up(file, name)
            && let Body::Constant { .. } = self.definition(key).body
        {
            return self.constant(key, ty);
        }
        let member = match (name.rsplit_once('.'), ty) {
            (Some((owner, member)), _) => {
                self.look_up(file, owner).and_then(|key| self.enums.get(&key)).map(|id| (*id, member))
            }
            (None, Type::Enum(id)) => Some((*id, name)),
            (None, _) => None,
        };
        let Some((id, member)) = member else {
            return self.fail(file, at, format!("unknown constant `{name}`"));
        };
        let enumeration = self.schema.enumeration(id);
        let Some(number) = enumeration.number_of(member) else {
            let hint = did_you_mean(member, enumeration.members.iter().map(|member| member.0.as_str()));
            return self.fail_hint(file, at, format!("`{}` has no member `{member}`", enumeration.name), hint);
        };
        let is_other_enum = matches!(ty, Type::Enum(wanted) if *wanted != id);
        if is_other_enum || !ty.holds(i64::from(number)) {
            return self.fail(file, at, format!("`{name}` is not a `{}`", self.schema.type_name(ty)));
        }
        Some(Value::Integer(i64::from(number)))
    }
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let is_uuid = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    let digits = is_uuid.then(|| text.replace('-', ""))?;
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}
