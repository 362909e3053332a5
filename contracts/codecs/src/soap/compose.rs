//! Writes SOAP envelopes: requests, responses and faults.

use std::fmt::{self, Write};

use base64::Engine;

use super::resolved_wsdl::{Builtin, ComplexId, Field, Message, Type, Wsdl};
use super::xml_tree::Escaped;
use crate::value::{ComposeError, Value};

const DEPTH_MAX: usize = 64;

type Composed = Result<(), ComposeError>;

/// Composes an envelope for a request with its arguments or a response with its result. Fields follow the order of
/// their type. [`Value::Null`] is omitted if the field is optional, or written as nil if the type allows it. Fails if a
/// value does not match its type, a required field is missing, or a field is unknown.
pub fn compose_envelope(wsdl: &Wsdl, message: &Message, value: &Value) -> Result<String, ComposeError> {
    let (path, namespaces) = (vec![message.element.clone()], vec![String::new()]);
    let mut writer = Writer { out: ENVELOPE.to_owned(), wsdl, path, namespaces };
    writer.wrapped(&message.element, &message.namespace, |writer| writer.complex(message.content, value))?;
    Ok(writer.out + END)
}

/// Composes an envelope with a fault. `code` is a code such as `Client` or `Server`, and `string` is the reason.
pub fn compose_fault(code: &str, string: &str) -> String {
    let (code, string) = (Escaped(code), Escaped(string));
    let fault = format!("<faultcode>soap:{code}</faultcode><faultstring>{string}</faultstring>");
    format!("{ENVELOPE}<soap:Fault>{fault}</soap:Fault>{END}")
}

const ENVELOPE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><soap:Body>";
const END: &str = "</soap:Body></soap:Envelope>";

struct Writer<'w> {
    out: String,
    wsdl: &'w Wsdl,
    path: Vec<String>,
    /// The default namespace of each open element.
    namespaces: Vec<String>,
}

impl Writer<'_> {
    fn wrong<T>(&self, what: String) -> Result<T, ComposeError> {
        Err(ComposeError { path: self.path.join("."), what })
    }

    fn wrapped(&mut self, name: &str, namespace: &str, inner: impl FnOnce(&mut Self) -> Composed) -> Composed {
        if self.namespaces.len() > DEPTH_MAX {
            return self.wrong(format!("values nested deeper than {DEPTH_MAX} levels"));
        }
        self.write(format_args!("<{name}"));
        if self.namespaces.last().is_none_or(|outer| outer != namespace) {
            self.write(format_args!(" xmlns=\"{}\"", Escaped(namespace)));
        }
        self.namespaces.push(namespace.to_owned());
        inner(self)?;
        self.namespaces.pop();
        self.write(format_args!("</{name}>"));
        Ok(())
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("writing to a string cannot fail");
    }

    fn complex(&mut self, id: ComplexId, value: &Value) -> Composed {
        let wsdl = self.wsdl;
        let complex = wsdl.complex(id);
        if let (Some(field), Value::List(_)) = (complex.array(), value) {
            self.out.push('>');
            return self.field(field, value);
        }
        let Value::Record(given) = value else {
            return self.wrong(format!("expected `{}`, found {}", complex.name, value.kind()));
        };
        if let Some((name, _)) = given.iter().find(|(name, _)| complex.field(name).is_none()) {
            return self.wrong(format!("`{}` has no field `{name}`", complex.name));
        }
        for field in complex.fields.iter().filter(|field| field.is_attribute) {
            match value.get(&field.name).filter(|value| **value != Value::Null) {
                Some(value) => {
                    self.path.push(field.name.clone());
                    let text = self.text(field.ty, value)?;
                    self.path.pop();
                    self.write(format_args!(" {}=\"{}\"", field.name, Escaped(&text)));
                }
                None if field.min > 0 => return self.wrong(format!("the attribute `{}` is missing", field.name)),
                None => {}
            }
        }
        self.out.push('>');
        if complex.is_choice && given.iter().filter(|(_, value)| *value != Value::Null).count() > 1 {
            return self.wrong("a choice takes only one field".to_owned());
        }
        for field in complex.fields.iter().filter(|field| !field.is_attribute) {
            match value.get(&field.name) {
                Some(Value::Null) | None if field.min == 0 => {}
                Some(value) => self.field(field, value)?,
                None if field.is_nillable => self.field(field, &Value::Null)?,
                None => return self.wrong(format!("`{}` is missing", field.name)),
            }
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, value: &Value) -> Composed {
        self.path.push(field.name.clone());
        match (field.is_list(), value) {
            (true, Value::List(elements)) => {
                let count = elements.len() as u64;
                if count < u64::from(field.min) || field.max.is_some_and(|max| count > u64::from(max)) {
                    return self.wrong(format!("{count} elements, which its type does not allow"));
                }
                for (index, value) in elements.iter().enumerate() {
                    self.path.push(format!("[{index}]"));
                    self.element(field, value)?;
                    self.path.pop();
                }
            }
            (true, other) => return self.wrong(format!("expected a list, found {}", other.kind())),
            (false, value) => self.element(field, value)?,
        }
        self.path.pop();
        Ok(())
    }

    fn element(&mut self, field: &Field, value: &Value) -> Composed {
        self.wrapped(&field.name, &field.namespace, |writer| match (value, field.ty) {
            (Value::Null, _) if field.is_nillable => {
                writer.out.push_str(" xsi:nil=\"true\">");
                Ok(())
            }
            (value, Type::Complex(id)) => writer.complex(id, value),
            (value, ty) => {
                let text = writer.text(ty, value)?;
                writer.write(format_args!(">{}", Escaped(&text)));
                Ok(())
            }
        })
    }

    fn text(&self, ty: Type, value: &Value) -> Result<String, ComposeError> {
        let base = ty.builtin().unwrap_or(Builtin::Text);
        let text = match (base, value) {
            (_, Value::Unknown) => return Ok(String::new()),
            (Builtin::Text, Value::Text(text)) => text.clone(),
            (Builtin::Boolean, Value::Bool(bool)) => bool.to_string(),
            (Builtin::Integer(min, max), Value::Integer(integer)) if (min..=max).contains(integer) => {
                integer.to_string()
            }
            (Builtin::Integer(..), Value::Integer(integer)) => {
                return self.wrong(format!("{integer} is out of range for its type"));
            }
            (Builtin::Float, Value::Double(double)) => match double {
                _ if double.is_nan() => "NaN".to_owned(),
                _ if double.is_infinite() => (if *double > 0.0 { "INF" } else { "-INF" }).to_owned(),
                _ => format!("{double:?}"),
            },
            (Builtin::Float, Value::Integer(integer)) => integer.to_string(),
            (Builtin::Base64, Value::Bytes(bytes)) => base64::engine::general_purpose::STANDARD.encode(bytes),
            (Builtin::Hex, Value::Bytes(bytes)) => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
            (base, value) => return self.wrong(format!("expected {}, found {}", name(base), value.kind())),
        };
        if let Type::Simple(_, Some(id)) = ty {
            let enumeration = self.wsdl.enumeration(id);
            if !enumeration.values.contains(&text) {
                return self.wrong(format!("{text:?} is not a valid `{}`", enumeration.name));
            }
        }
        Ok(text)
    }
}

fn name(base: Builtin) -> &'static str {
    match base {
        Builtin::Text => "text",
        Builtin::Boolean => "bool",
        Builtin::Integer(..) => "integer",
        Builtin::Float => "double",
        Builtin::Base64 | Builtin::Hex => "bytes",
    }
}
