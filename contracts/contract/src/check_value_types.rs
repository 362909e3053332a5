//! Checks the values of a message against the types that its operation promises.

use std::fmt;
use std::sync::Arc;

use crate::clause::Clause;
use crate::message_values::{Value, field};
use crate::monitor::report::ReportVerdict;
use crate::types_and_schema::{Field, Schema, Type};

/// Maximum nesting of a checked value, in levels. The codecs allow fewer.
const DEPTH_MAX: u16 = 256;

#[derive(Clone, Debug)]
pub(crate) struct Typed {
    /// The clause named in reports. It has no expression.
    pub(crate) clause: Clause,
    pub(crate) of: PromisedPart,
    pub(crate) schema: Arc<Schema>,
}

#[derive(Clone, Debug)]
pub(crate) enum PromisedPart {
    Arguments(Vec<(usize, Field)>),
    Result(Type),
    /// The type of the body of a successful reply over HTTP.
    Body(Type),
}

impl Type {
    pub(crate) fn is_unchecked(&self) -> bool {
        matches!(self, Self::Any | Self::Tuple(_))
    }
}

struct Misfit {
    path: String,
    why: String,
}

impl Misfit {
    fn new(why: impl Into<String>) -> Self {
        Self { path: String::new(), why: why.into() }
    }

    fn within(self, name: &dyn fmt::Display) -> Self {
        Self { path: format!("{name}{}", self.path), ..self }
    }
}

/// Describes the values of a type for an error message. Omits the names of records.
fn expected(of: &Type) -> String {
    match of {
        Type::Tuple(_) => "anything".to_owned(),
        Type::Choice(texts) => format!("one of {}", texts.join(", ")),
        Type::List(_) => "a list".to_owned(),
        Type::Map(..) => "a map".to_owned(),
        Type::Record(_) | Type::Named(_) => "a record".to_owned(),
        simple => simple.described(),
    }
}

impl Typed {
    /// Checks a message. Returns the verdict and the reason, or `None` if all values have their declared types.
    pub(crate) fn judge(&self, args: &[Value<'_>], outcome: Value<'_>) -> Option<(ReportVerdict, String)> {
        let mut held = TypeChecker { schema: &self.schema, is_unknown: false };
        let judged = match &self.of {
            PromisedPart::Arguments(fields) => fields.iter().try_for_each(|(at, field)| {
                match args.get(*at).copied().unwrap_or(Value::Missing) {
                    Value::Missing if field.required => Err(Misfit::new("missing")),
                    Value::Missing => Ok(()),
                    value => held.fits(&field.of, value, 0),
                }
                .map_err(|misfit| misfit.within(&field.name))
            }),
            PromisedPart::Result(of) => match outcome {
                Value::Missing => Ok(()),
                value => held.fits(of, value, 0).map_err(|misfit| misfit.within(&"result")),
            },
            PromisedPart::Body(of) => match outcome {
                Value::Map(result) => match (field(result, "code"), field(result, "body")) {
                    // Status 206 has a partial body, and 204 and 205 have none. Source: RFC 9110, section 15.3.
                    (Value::Int(200..=203 | 207..=299), body) => match body {
                        Value::Missing => Err(Misfit::new(format!("missing, must be {}", expected(of)))),
                        value => held.fits(of, value, 0),
                    },
                    _ => Ok(()),
                },
                value => held.fits(of, value, 0),
            }
            .map_err(|misfit| misfit.within(&"result.body")),
        };
        match judged {
            Err(Misfit { path, why }) => Some((ReportVerdict::Fails, format!("`{path}` is {why}"))),
            Ok(()) if held.is_unknown => {
                Some((ReportVerdict::Unknown, "something in it could not be decoded".to_owned()))
            }
            Ok(()) => None,
        }
    }
}

struct TypeChecker<'t> {
    schema: &'t Schema,
    is_unknown: bool,
}

impl TypeChecker<'_> {
    fn fits(&mut self, of: &Type, value: Value<'_>, depth: u16) -> Result<(), Misfit> {
        match (of, value) {
            (Type::Any | Type::Tuple(_), _) => Ok(()),
            (Type::Named(name), _) if !self.schema.types.contains_key(name) => Ok(()),
            (_, Value::Malformed(why)) => Err(Misfit::new(why)),
            _ if matches!(value, Value::Opaque) || depth > DEPTH_MAX => {
                self.is_unknown = true;
                Ok(())
            }
            (Type::Bool, Value::Bool(_))
            | (Type::Int, Value::Int(_))
            // JSON has only one kind of number, so an integer is also a valid float.
            | (Type::Float, Value::Float(_) | Value::Int(_))
            | (Type::Text, Value::Text(_))
            // Formats without a type for bytes encode them as text.
            | (Type::Bytes, Value::Bytes(_) | Value::Text(_)) => Ok(()),
            (Type::Int, Value::Float(number)) if number.fract() == 0.0 => Ok(()),
            (Type::Choice(texts), Value::Text(text)) => match texts.iter().any(|known| known == text) {
                true => Ok(()),
                false => Err(Misfit::new(format!("text, must be {}", expected(of)))),
            },
            (Type::List(of), Value::Array(_)) | (Type::Map(_, of), Value::Map(_)) if of.is_unchecked() => Ok(()),
            (Type::List(of), Value::Array(items)) => items.iter().enumerate().try_for_each(|(at, item)| {
                self.fits(of, item.value(), depth + 1).map_err(|misfit| misfit.within(&format_args!("[{at}]")))
            }),
            (Type::Map(_, of), Value::Map(pairs)) => pairs.iter().try_for_each(|(_, item)| {
                self.fits(of, item.value(), depth + 1).map_err(|misfit| misfit.within(&"[...]"))
            }),
            (Type::Record(_) | Type::Named(_), Value::Map(record)) => {
                let fields = self.schema.fields(of).unwrap_or_default();
                let mut there = 0;
                for (key, value) in record {
                    let Value::Text(name) = key.value() else { continue };
                    let Some(field) = fields.iter().find(|field| field.name == name) else { continue };
                    let value = value.value();
                    if !matches!(value, Value::Missing) {
                        there += usize::from(field.required);
                        let fits = self.fits(&field.of, value, depth + 1);
                        fits.map_err(|misfit| misfit.within(&format_args!(".{name}")))?;
                    }
                }
                let needed = || fields.iter().filter(|field| field.required);
                if there == needed().count() {
                    return Ok(());
                }
                // Picks the first missing field by name, so that the message does not depend on the order of fields.
                let missing = needed().filter(|needed| matches!(field(record, &needed.name), Value::Missing));
                let Some(field) = missing.min_by_key(|field| &field.name) else { return Ok(()) };
                let misfit = Misfit::new(format!("missing, must be {}", expected(&field.of)));
                Err(misfit.within(&format_args!(".{}", field.name)))
            }
            (of, other) => Err(Misfit::new(format!("{}, must be {}", other.kind(), expected(of)))),
        }
    }
}
