use crate::formats;
use crate::tape::Value;
use crate::types::Type;

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
    /// A test of a text, in linear time.
    TextIs(fn(&str) -> bool),
    /// A test of two texts, in linear time.
    TextsAre(fn(&str, &str) -> bool),
    ValueIs(fn(Value<'_>) -> bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgKind {
    Any,
    Text,
    /// A literal text, since patterns are compiled before any message arrives.
    Pattern,
    Number,
    /// A number, or a text that contains one.
    Numeral,
    Sized,
    Map,
}

pub(crate) enum ReturnKind {
    Bool,
    Int,
    Float,
    Text,
    Texts,
    /// The type of the last argument.
    Last,
    /// `float` if an argument is one, otherwise `int`.
    Number,
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    pub(crate) takes: &'static [ArgKind],
    /// Whether the last argument may be repeated.
    pub(crate) more: bool,
    pub(crate) gives: ReturnKind,
}

const fn row(name: &'static str, function: Function, takes: &'static [ArgKind], gives: ReturnKind) -> Row {
    Row { name, function, takes, more: false, gives }
}

pub(crate) static TABLE: [Row; 26] = {
    use ArgKind::{Any, Map, Number, Numeral, Pattern, Sized, Text};
    [
        row("contains", Function::TextsAre(|text, part| text.contains(part)), &[Text, Text], ReturnKind::Bool),
        row("ends_with", Function::TextsAre(|text, part| text.ends_with(part)), &[Text, Text], ReturnKind::Bool),
        row("float", Function::Float, &[Numeral], ReturnKind::Float),
        row("get", Function::Get, &[Map, Any, Any], ReturnKind::Last),
        row("has", Function::Has, &[Any], ReturnKind::Bool),
        row("int", Function::Int, &[Numeral], ReturnKind::Int),
        row("is_int", Function::ValueIs(|value| matches!(value, Value::Int(_))), &[Any], ReturnKind::Bool),
        row("is_list", Function::ValueIs(|value| value.kind() == "a list"), &[Any], ReturnKind::Bool),
        row("is_map", Function::ValueIs(|value| value.kind() == "a map or record"), &[Any], ReturnKind::Bool),
        row("is_text", Function::ValueIs(|value| matches!(value, Value::Text(_))), &[Any], ReturnKind::Bool),
        row("len", Function::Len, &[Sized], ReturnKind::Int),
        row("lower", Function::Lower, &[Text], ReturnKind::Text),
        row("matches", Function::Matches, &[Text, Pattern], ReturnKind::Bool),
        Row { name: "max", function: Function::Max, takes: &[Number, Number], more: true, gives: ReturnKind::Number },
        row("mime_valid", Function::TextIs(formats::mime_valid), &[Text], ReturnKind::Bool),
        Row { name: "min", function: Function::Min, takes: &[Number, Number], more: true, gives: ReturnKind::Number },
        row("pgn_valid", Function::TextIs(formats::pgn_valid), &[Text], ReturnKind::Bool),
        row("query_param", Function::QueryParam, &[Text, Text], ReturnKind::Text),
        row("rfc3339", Function::TextIs(|text| formats::time_ms(text, true).is_some()), &[Text], ReturnKind::Bool),
        row("rfc822_date", Function::TextIs(formats::rfc822_date), &[Text], ReturnKind::Bool),
        row("split", Function::Split, &[Text, Pattern], ReturnKind::Texts),
        row("starts_with", Function::TextsAre(|text, part| text.starts_with(part)), &[Text, Text], ReturnKind::Bool),
        row("text", Function::Text, &[Any], ReturnKind::Text),
        row("time_ms", Function::TimeMs, &[Text], ReturnKind::Int),
        row("url_host", Function::UrlHost, &[Text], ReturnKind::Text),
        row("uuid4", Function::TextIs(formats::uuid4), &[Text], ReturnKind::Bool),
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
