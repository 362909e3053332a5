//! Reads values in place in an envelope.

use base64::Engine;

use super::resolved_wsdl::{Builtin, Complex, Field, Type, Wsdl};
use super::xml_tree::Node;
use crate::value::Value;

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A value in an envelope. Repeatable fields are lists, as are types that only wrap a list ([`Complex::array`]).
#[derive(Clone, Copy)]
pub struct View<'e> {
    wsdl: &'e Wsdl,
    at: At<'e>,
}

#[derive(Clone, Copy)]
enum At<'e> {
    Element(Node<'e>, Type),
    /// The children of an element that belong to this field.
    List(Node<'e>, &'e Field),
    Attribute(&'e str, Type),
}

impl<'e> View<'e> {
    pub(super) fn new(element: Node<'e>, wsdl: &'e Wsdl, ty: Type) -> View<'e> {
        View { wsdl, at: At::Element(element, ty) }
    }

    /// Type of the value; for a list, the type of its elements.
    pub fn ty(&self) -> Type {
        match self.at {
            At::Element(_, ty) | At::Attribute(_, ty) => ty,
            At::List(_, field) => field.ty,
        }
    }

    fn complex(&self) -> Option<&'e Complex> {
        let At::Element(_, Type::Complex(id)) = self.at else { return None };
        Some(self.wsdl.complex(id))
    }

    /// Whether the value is `xsi:nil`.
    pub fn is_nil(&self) -> bool {
        let At::Element(element, _) = self.at else { return false };
        matches!(element.attribute_in(XSI, "nil").map(str::trim), Some("true" | "1"))
    }

    /// Whether the value is a list: a repeatable field, or a type whose only field is repeatable.
    pub fn is_list(&self) -> bool {
        matches!(self.at, At::List(..))
            || (self.complex().is_some_and(|complex| complex.array().is_some()) && !self.is_nil())
    }

    /// The raw text; `None` for nil and for values with child elements.
    pub fn text(&self) -> Option<&'e str> {
        match self.at {
            At::Attribute(text, _) => Some(text),
            At::Element(_, Type::Complex(_)) | At::List(..) => None,
            At::Element(..) if self.is_nil() => None,
            At::Element(node, Type::Any) if node.element().first_child.is_some() => None,
            At::Element(node, _) => Some(&node.element().text),
        }
    }

    /// The text of a value whose type is textual or unknown; otherwise `None`.
    pub fn as_str(&self) -> Option<&'e str> {
        if matches!(self.ty().builtin(), Some(Builtin::Text) | None) { self.text() } else { None }
    }

    /// The built-in type, and the text without surrounding whitespace.
    fn scalar(&self) -> Option<(Builtin, &'e str)> {
        Some((self.ty().builtin()?, self.text()?.trim_matches(BLANKS)))
    }

    /// The value as a boolean; `None` for other types and invalid text.
    pub fn as_bool(&self) -> Option<bool> {
        match self.scalar()? {
            (Builtin::Boolean, "true" | "1") => Some(true),
            (Builtin::Boolean, "false" | "0") => Some(false),
            _ => None,
        }
    }

    /// The value as an integer; `None` for other types and for text outside the type's bounds.
    pub fn as_i64(&self) -> Option<i64> {
        let (Builtin::Integer(min, max), text) = self.scalar()? else { return None };
        text.parse::<i64>().ok().filter(|value| (min..=max).contains(value))
    }

    /// The value of a `float` or `double` as a number; `None` for other types and invalid text.
    pub fn as_f64(&self) -> Option<f64> {
        match self.scalar()? {
            (Builtin::Float, "INF") => Some(f64::INFINITY),
            (Builtin::Float, "-INF") => Some(f64::NEG_INFINITY),
            (Builtin::Float, "NaN") => Some(f64::NAN),
            // Rust also parses `inf` and `nan`, which XML Schema does not allow.
            (Builtin::Float, text)
                if !text.contains(|letter: char| letter.is_alphabetic() && !"eE".contains(letter)) =>
            {
                text.parse().ok()
            }
            _ => None,
        }
    }

    /// Decodes `base64Binary` or `hexBinary`; `None` for other types and invalid text.
    pub fn as_bytes(&self) -> Option<Vec<u8>> {
        let (base, text) = self.scalar()?;
        let bare = text.chars().filter(|letter| !BLANKS.contains(letter)).collect::<String>();
        match base {
            Builtin::Base64 => base64::engine::general_purpose::STANDARD.decode(bare).ok(),
            Builtin::Hex if bare.len() % 2 == 0 => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16).map(|digit| digit as u8);
                bare.as_bytes().chunks(2).map(|pair| Some(digit(&pair[0])? * 16 + digit(&pair[1])?)).collect()
            }
            _ => None,
        }
    }

    fn field(&self, field: &'e Field) -> Option<View<'e>> {
        let At::Element(element, _) = self.at else { return None };
        let at = if field.is_attribute {
            let value = match field.namespace.as_str() {
                "" => element.attribute(&field.name),
                namespace => element.attribute_in(namespace, &field.name),
            };
            At::Attribute(value?, field.ty)
        } else if field.is_list() {
            At::List(element, field)
        } else {
            At::Element(element.child_named(&field.namespace, &field.name)?, field.ty)
        };
        Some(View { at, ..*self })
    }

    /// Whether a field that may occur only once is repeated. [`View::get`] then returns the first occurrence.
    pub fn is_repeated(&self, field: &Field) -> bool {
        let At::Element(element, _) = self.at else { return false };
        let mut same = element.children_named(&field.namespace, &field.name);
        !field.is_attribute && !field.is_list() && same.nth(1).is_some()
    }

    /// The field or, if the type is unknown, the first child with this name. `None` if absent, but never for a list.
    pub fn get(&self, name: &str) -> Option<View<'e>> {
        match self.at {
            At::Element(element, Type::Any) => {
                let child = element.children().find(|child| child.name() == name)?;
                Some(View { at: At::Element(child, Type::Any), ..*self })
            }
            _ => self.field(self.complex()?.field(name)?),
        }
    }

    /// The field at this position of the type, such as an argument. `None` if absent, but never for a list.
    pub fn at(&self, index: usize) -> Option<View<'e>> {
        self.field(self.complex()?.fields.get(index)?)
    }

    /// The fields that are present, in the order of the type.
    pub fn fields(&self) -> impl Iterator<Item = (&'e Field, View<'e>)> + use<'e> {
        let view = *self;
        let fields = self.complex().map(|complex| complex.fields.as_slice()).unwrap_or_default();
        fields.iter().filter_map(move |field| Some((field, view.field(field)?)))
    }

    /// The elements of a list; empty for other values.
    pub fn elements(&self) -> impl Iterator<Item = View<'e>> + use<'e> {
        let view = *self;
        let list = match self.at {
            At::List(element, field) => Some((element, field)),
            At::Element(element, Type::Complex(id)) => self.wsdl.complex(id).array().map(|field| (element, field)),
            _ => None,
        };
        list.into_iter().flat_map(move |(element, field)| {
            let children = element.children_named(&field.namespace, &field.name);
            children.map(move |child| View { at: At::Element(child, field.ty), ..view })
        })
    }

    /// Copies the whole value. Mistyped text remains text; a value of unknown type becomes text or a record.
    pub fn to_value(&self) -> Value {
        if self.is_nil() {
            return Value::Null;
        }
        if self.is_list() {
            return Value::List(self.elements().map(|element| element.to_value()).collect());
        }
        match self.at {
            At::Element(node, Type::Any) if node.element().first_child.is_some() => {
                let value = |child| View { at: At::Element(child, Type::Any), ..*self }.to_value();
                return Value::Record(node.children().map(|child| (child.name().to_owned(), value(child))).collect());
            }
            At::Element(_, Type::Complex(_)) => {
                let there = self
                    .fields()
                    .filter(|(_, view)| !matches!(view.at, At::List(..)) || view.elements().next().is_some());
                return Value::Record(there.map(|(field, view)| (field.name.clone(), view.to_value())).collect());
            }
            _ => {}
        }
        let text = || Value::Text(self.text().unwrap_or_default().to_owned());
        match self.ty().builtin() {
            Some(Builtin::Boolean) => self.as_bool().map_or_else(text, Value::Bool),
            Some(Builtin::Integer(..)) => self.as_i64().map_or_else(text, Value::Integer),
            Some(Builtin::Float) => self.as_f64().map_or_else(text, Value::Double),
            Some(Builtin::Base64 | Builtin::Hex) => self.as_bytes().map_or_else(text, Value::Bytes),
            Some(Builtin::Text) | None => text(),
        }
    }
}

/// XML whitespace, which is insignificant around numbers and within binary data.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
