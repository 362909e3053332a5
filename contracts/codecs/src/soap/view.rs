//! Values where they lie in an envelope, seen by the types of a WSDL.

use base64::Engine;

use super::types::{Builtin, Complex, ComplexId, Field, Type, Wsdl};
use super::xml::Document;
use crate::value::Value;

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A value in an envelope. Fields are got by name or by place; fields that may be there more than once are lists, and so is a type that has but one such
/// field ([`Complex::array`]).
#[derive(Clone, Copy)]
pub struct View<'e> {
    document: &'e Document<'e>,
    wsdl: &'e Wsdl,
    at: At<'e>,
}

#[derive(Clone, Copy)]
enum At<'e> {
    Element(u32, Type),
    /// Those children of an element that are a field.
    List(u32, &'e Field),
    Attribute(&'e str, Type),
}

impl<'e> View<'e> {
    pub(super) fn of_complex(document: &'e Document<'_>, element: u32, wsdl: &'e Wsdl, id: ComplexId) -> View<'e> {
        View { document, wsdl, at: At::Element(element, Type::Complex(id)) }
    }

    pub(super) fn of_any(document: &'e Document<'_>, element: u32, wsdl: &'e Wsdl) -> View<'e> {
        View { document, wsdl, at: At::Element(element, Type::Any) }
    }

    /// Its type; of a list that of its elements.
    pub fn ty(&self) -> Type {
        match self.at {
            At::Element(_, ty) | At::Attribute(_, ty) => ty,
            At::List(_, field) => field.ty,
        }
    }

    fn complex(&self) -> Option<&'e Complex> {
        match self.at {
            At::Element(_, Type::Complex(id)) => Some(self.wsdl.complex(id)),
            _ => None,
        }
    }

    /// `xsi:nil` stands for its value.
    pub fn is_nil(&self) -> bool {
        let At::Element(element, _) = self.at else { return false };
        matches!(self.document.attribute_in(element, XSI, "nil").map(str::trim), Some("true" | "1"))
    }

    /// It is a list: a field that may be there more than once, or a type that is but that.
    pub fn is_list(&self) -> bool {
        matches!(self.at, At::List(..))
            || (self.complex().is_some_and(|complex| complex.array().is_some()) && !self.is_nil())
    }

    /// Its text as it is there; `None` for what has elements in it, and for nil.
    pub fn text(&self) -> Option<&'e str> {
        match self.at {
            At::Attribute(text, _) => Some(text),
            At::Element(_, Type::Complex(_)) | At::List(..) => None,
            At::Element(..) if self.is_nil() => None,
            At::Element(element, Type::Any) if self.document.element(element).first_child.is_some() => None,
            At::Element(element, _) => Some(&self.document.element(element).text),
        }
    }

    /// Its text, where its type is a text.
    pub fn as_str(&self) -> Option<&'e str> {
        match self.wsdl.base(self.ty()) {
            Some(Builtin::Text) | None => self.text(),
            Some(_) => None,
        }
    }

    /// True or false.
    pub fn as_bool(&self) -> Option<bool> {
        match (self.wsdl.base(self.ty())?, self.text()?.trim_matches(BLANKS)) {
            (Builtin::Boolean, "true" | "1") => Some(true),
            (Builtin::Boolean, "false" | "0") => Some(false),
            _ => None,
        }
    }

    /// An integer within the bounds of its type.
    pub fn as_i64(&self) -> Option<i64> {
        let Builtin::Integer { min, max } = self.wsdl.base(self.ty())? else { return None };
        let text = self.text()?.trim_matches(BLANKS);
        text.parse::<i64>().ok().filter(|value| (min..=max).contains(value))
    }

    /// A number of type `float` or `double`.
    pub fn as_f64(&self) -> Option<f64> {
        let Builtin::Float = self.wsdl.base(self.ty())? else { return None };
        match self.text()?.trim_matches(BLANKS) {
            "INF" => Some(f64::INFINITY),
            "-INF" => Some(f64::NEG_INFINITY),
            "NaN" => Some(f64::NAN),
            // Rust reads `inf` and `nan`, too, which XML Schema does not.
            text if text.contains(|letter: char| letter.is_alphabetic() && !"eE".contains(letter)) => None,
            text => text.parse().ok(),
        }
    }

    /// Bytes of type `base64Binary` or `hexBinary`. They are made, as they do not lie there as such.
    pub fn as_bytes(&self) -> Option<Vec<u8>> {
        let text = self.text()?;
        let bare = text.chars().filter(|letter| !BLANKS.contains(letter)).collect::<String>();
        match self.wsdl.base(self.ty())? {
            Builtin::Base64 => base64::engine::general_purpose::STANDARD.decode(bare).ok(),
            Builtin::Hex if bare.len() % 2 == 0 => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16).map(|digit| digit as u8);
                let pairs = bare.as_bytes().chunks(2);
                pairs.map(|pair| Some(digit(&pair[0])? * 16 + digit(&pair[1])?)).collect()
            }
            _ => None,
        }
    }

    /// Whether its text is one of the values of its type, where that lists them.
    pub fn is_listed(&self) -> bool {
        let Type::Simple(id) = self.ty() else { return true };
        let values = &self.wsdl.simple(id).values;
        let text = self.text().unwrap_or_default().trim_matches(BLANKS);
        values.is_empty() || values.iter().any(|value| value == text)
    }

    fn field(&self, field: &'e Field) -> Option<View<'e>> {
        let At::Element(element, _) = self.at else { return None };
        let at = if field.is_attribute {
            let value = match field.namespace.as_str() {
                "" => self.document.attribute(element, &field.name),
                namespace => self.document.attribute_in(element, namespace, &field.name),
            };
            At::Attribute(value?, field.ty)
        } else if field.is_list() {
            At::List(element, field)
        } else {
            At::Element(self.document.child(element, &field.namespace, &field.name)?, field.ty)
        };
        Some(View { at, ..*self })
    }

    /// Whether a field that may be there once is there more than once. [`View::get`] gives the first of them.
    pub fn is_repeated(&self, field: &Field) -> bool {
        let At::Element(element, _) = self.at else { return false };
        let is_field = |child: &u32| self.document.is(*child, &field.namespace, &field.name);
        !field.is_attribute && !field.is_list() && self.document.children(element).filter(is_field).nth(1).is_some()
    }

    /// A field by its name; of a type that is not known the first child with this name. A list is there even if it is empty.
    pub fn get(&self, name: &str) -> Option<View<'e>> {
        match self.at {
            At::Element(element, Type::Any) => {
                let child = self.document.children(element).find(|child| self.document.element(*child).name == name)?;
                Some(View::of_any(self.document, child, self.wsdl))
            }
            _ => self.field(self.complex()?.field(name)?),
        }
    }

    /// A field by its place in its type: an argument by position.
    pub fn at(&self, index: usize) -> Option<View<'e>> {
        self.field(self.complex()?.fields.get(index)?)
    }

    /// The fields that are there, in the order of the type.
    pub fn fields(&self) -> impl Iterator<Item = (&'e Field, View<'e>)> + use<'e> {
        let view = *self;
        let fields = self.complex().map(|complex| complex.fields.as_slice()).unwrap_or_default();
        fields.iter().filter_map(move |field| Some((field, view.field(field)?)))
    }

    /// The elements of a list. Empty for other values.
    pub fn elements(&self) -> impl Iterator<Item = View<'e>> + use<'e> {
        let view = *self;
        let list = match self.at {
            At::List(element, field) => Some((element, field)),
            At::Element(element, Type::Complex(id)) => self.wsdl.complex(id).array().map(|field| (element, field)),
            _ => None,
        };
        list.into_iter().flat_map(move |(element, field)| {
            let children = view.document.children(element);
            children
                .filter(move |child| view.document.is(*child, &field.namespace, &field.name))
                .map(move |child| View { at: At::Element(child, field.ty), ..view })
        })
    }

    /// How many elements a list has; `None` for other values.
    pub fn count(&self) -> Option<usize> {
        self.is_list().then(|| self.elements().count())
    }

    /// An element of a list by its place.
    pub fn element(&self, index: usize) -> Option<View<'e>> {
        self.elements().nth(index)
    }

    /// A copy with all that is in it. A text that is none of its type stays a text. What has no type is a text or a record by names.
    pub fn to_value(&self) -> Value {
        if self.is_nil() {
            return Value::Null;
        }
        if self.is_list() {
            return Value::List(self.elements().map(|element| element.to_value()).collect());
        }
        match self.at {
            At::Element(element, Type::Any) if self.document.element(element).first_child.is_some() => {
                let children = self.document.children(element).map(|child| {
                    let name = self.document.element(child).name.to_owned();
                    (name, View::of_any(self.document, child, self.wsdl).to_value())
                });
                return Value::Record(children.collect());
            }
            At::Element(_, Type::Complex(_)) => {
                let there =
                    self.fields().filter(|(_, view)| !matches!(view.at, At::List(..)) || view.count() != Some(0));
                return Value::Record(there.map(|(field, view)| (field.name.clone(), view.to_value())).collect());
            }
            _ => {}
        }
        let text = || Value::Text(self.text().unwrap_or_default().to_owned());
        match self.wsdl.base(self.ty()) {
            Some(Builtin::Boolean) => self.as_bool().map_or_else(text, Value::Bool),
            Some(Builtin::Integer { .. }) => self.as_i64().map_or_else(text, Value::Integer),
            Some(Builtin::Float) => self.as_f64().map_or_else(text, Value::Double),
            Some(Builtin::Base64 | Builtin::Hex) => self.as_bytes().map_or_else(text, Value::Bytes),
            Some(Builtin::Text) | None => text(),
        }
    }
}

/// Blanks of XML, which stand around numbers and in binaries without a meaning.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
