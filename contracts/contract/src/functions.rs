//! The table of the language's functions and their arguments.

use crate::message_values::Value;
use crate::text_formats;
use crate::types_and_schema::Type;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Function {
    Float,
    Get,
    Has,
    Int,
    Len,
    Lower,
    Matches,
    Max,
    Min,
    QueryParam,
    Split,
    Text,
    TimeMs,
    UrlHost,
    /// A test of one string, in linear time.
    TextIs(fn(&str) -> bool),
    /// A test of two strings, in linear time.
    TextsAre(fn(&str, &str) -> bool),
    ValueIs(fn(Value<'_>) -> bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgKind {
    Any,
    Text,
    /// A string literal, because patterns are compiled before any message arrives.
    Pattern,
    Number,
    /// A number, or a string that contains a number.
    Numeral,
    Sized,
    Map,
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    pub(crate) takes: &'static [ArgKind],
    /// Whether the last argument may be repeated.
    pub(crate) more: bool,
    pub(crate) gives: fn(&[Type]) -> Type,
}

const fn row(name: &'static str, function: Function, takes: &'static [ArgKind], gives: fn(&[Type]) -> Type) -> Row {
    Row { name, function, takes, more: false, gives }
}

/// The type of a numeric result: `any` if an argument is `any`, otherwise `float` if one is `float`, otherwise `int`.
fn number(types: &[Type]) -> Type {
    [Type::Any, Type::Float].into_iter().find(|of| types.contains(of)).unwrap_or(Type::Int)
}

pub(crate) static TABLE: [Row; 26] = {
    use ArgKind::{Any, Map, Number, Numeral, Pattern, Sized, Text};
    [
        row("contains", Function::TextsAre(|text, part| text.contains(part)), &[Text, Text], |_| Type::Bool),
        row("ends_with", Function::TextsAre(|text, part| text.ends_with(part)), &[Text, Text], |_| Type::Bool),
        row("float", Function::Float, &[Numeral], |_| Type::Float),
        row("get", Function::Get, &[Map, Any, Any], |types| types.last().cloned().unwrap_or(Type::Any)),
        row("has", Function::Has, &[Any], |_| Type::Bool),
        row("int", Function::Int, &[Numeral], |_| Type::Int),
        row("is_int", Function::ValueIs(|value| matches!(value, Value::Int(_))), &[Any], |_| Type::Bool),
        row("is_list", Function::ValueIs(|value| value.kind() == "a list"), &[Any], |_| Type::Bool),
        row("is_map", Function::ValueIs(|value| matches!(value, Value::Map(_))), &[Any], |_| Type::Bool),
        row("is_text", Function::ValueIs(|value| matches!(value, Value::Text(_))), &[Any], |_| Type::Bool),
        row("len", Function::Len, &[Sized], |_| Type::Int),
        row("lower", Function::Lower, &[Text], |_| Type::Text),
        row("matches", Function::Matches, &[Text, Pattern], |_| Type::Bool),
        Row { name: "max", function: Function::Max, takes: &[Number, Number], more: true, gives: number },
        row("mime_valid", Function::TextIs(text_formats::mime_valid), &[Text], |_| Type::Bool),
        Row { name: "min", function: Function::Min, takes: &[Number, Number], more: true, gives: number },
        row("pgn_valid", Function::TextIs(text_formats::pgn_valid), &[Text], |_| Type::Bool),
        row("query_param", Function::QueryParam, &[Text, Text], |_| Type::Text),
        row("rfc3339", Function::TextIs(|text| text_formats::time_ms(text, true).is_some()), &[Text], |_| Type::Bool),
        row("rfc822_date", Function::TextIs(text_formats::rfc822_date), &[Text], |_| Type::Bool),
        row("split", Function::Split, &[Text, Pattern], |_| Type::List(Box::new(Type::Text))),
        row("starts_with", Function::TextsAre(|text, part| text.starts_with(part)), &[Text, Text], |_| Type::Bool),
        row("text", Function::Text, &[Any], |_| Type::Text),
        row("time_ms", Function::TimeMs, &[Text], |_| Type::Int),
        row("url_host", Function::UrlHost, &[Text], |_| Type::Text),
        row("uuid4", Function::TextIs(text_formats::uuid4), &[Text], |_| Type::Bool),
    ]
};

pub(crate) fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

impl ArgKind {
    pub(crate) fn accepts(self, of: &Type) -> bool {
        match of {
            Type::Any => true,
            Type::Text | Type::Choice(_) => {
                matches!(self, Self::Any | Self::Text | Self::Pattern | Self::Numeral | Self::Sized)
            }
            Type::Int | Type::Float => matches!(self, Self::Any | Self::Number | Self::Numeral),
            Type::Bytes | Type::List(_) | Type::Tuple(_) => matches!(self, Self::Any | Self::Sized),
            Type::Map(..) => matches!(self, Self::Any | Self::Sized | Self::Map),
            Type::Record(_) | Type::Named(_) => matches!(self, Self::Any | Self::Map),
            Type::Bool => self == Self::Any,
        }
    }

    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Text => "text",
            Self::Pattern => "a quoted pattern",
            Self::Number => "a number",
            Self::Numeral => "a number or numeric text",
            Self::Sized => "text, bytes, a list or a map",
            Self::Map => "a map or record",
        }
    }
}
