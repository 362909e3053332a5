//! The functions that clauses may call: names, parameters and results.

use crate::types::Type;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Contains,
    EndsWith,
    Float,
    Get,
    Has,
    Int,
    IsInt,
    IsList,
    IsMap,
    IsText,
    Len,
    Lower,
    Matches,
    Max,
    MimeValid,
    Min,
    PgnValid,
    QueryParam,
    Rfc3339,
    Rfc822Date,
    Split,
    StartsWith,
    Text,
    TimeMs,
    UrlHost,
    Uuid4,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgKind {
    Any,
    Text,
    /// A literal text, since patterns are compiled before any message arrives.
    Pattern,
    /// `int` or `float`.
    Number,
    /// A number, or a text that contains one.
    Numeral,
    /// A value with a length: text, bytes, list, map.
    Sized,
    Map,
}

/// The type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

#[derive(Clone, Copy, Debug)]
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

pub(crate) const TABLE: [Row; 26] = {
    use ArgKind::{Any, Map, Number, Numeral, Pattern, Sized, Text};
    [
        row("contains", Function::Contains, &[Text, Text], ReturnKind::Bool),
        row("ends_with", Function::EndsWith, &[Text, Text], ReturnKind::Bool),
        row("float", Function::Float, &[Numeral], ReturnKind::Float),
        row("get", Function::Get, &[Map, Any, Any], ReturnKind::Last),
        row("has", Function::Has, &[Any], ReturnKind::Bool),
        row("int", Function::Int, &[Numeral], ReturnKind::Int),
        row("is_int", Function::IsInt, &[Any], ReturnKind::Bool),
        row("is_list", Function::IsList, &[Any], ReturnKind::Bool),
        row("is_map", Function::IsMap, &[Any], ReturnKind::Bool),
        row("is_text", Function::IsText, &[Any], ReturnKind::Bool),
        row("len", Function::Len, &[Sized], ReturnKind::Int),
        row("lower", Function::Lower, &[Text], ReturnKind::Text),
        row("matches", Function::Matches, &[Text, Pattern], ReturnKind::Bool),
        Row { name: "max", function: Function::Max, takes: &[Number, Number], more: true, gives: ReturnKind::Number },
        row("mime_valid", Function::MimeValid, &[Text], ReturnKind::Bool),
        Row { name: "min", function: Function::Min, takes: &[Number, Number], more: true, gives: ReturnKind::Number },
        row("pgn_valid", Function::PgnValid, &[Text], ReturnKind::Bool),
        row("query_param", Function::QueryParam, &[Text, Text], ReturnKind::Text),
        row("rfc3339", Function::Rfc3339, &[Text], ReturnKind::Bool),
        row("rfc822_date", Function::Rfc822Date, &[Text], ReturnKind::Bool),
        row("split", Function::Split, &[Text, Pattern], ReturnKind::Texts),
        row("starts_with", Function::StartsWith, &[Text, Text], ReturnKind::Bool),
        row("text", Function::Text, &[Any], ReturnKind::Text),
        row("time_ms", Function::TimeMs, &[Text], ReturnKind::Int),
        row("url_host", Function::UrlHost, &[Text], ReturnKind::Text),
        row("uuid4", Function::Uuid4, &[Text], ReturnKind::Bool),
    ]
};

pub(crate) fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

impl ArgKind {
    pub(crate) fn accepts(self, of: &Type) -> bool {
        match self {
            _ if *of == Type::Any => true,
            Self::Any => true,
            Self::Text | Self::Pattern => matches!(of, Type::Text | Type::Choice(_)),
            Self::Number => matches!(of, Type::Int | Type::Float),
            Self::Numeral => matches!(of, Type::Int | Type::Float | Type::Text | Type::Choice(_)),
            Self::Sized => {
                matches!(
                    of,
                    Type::Text | Type::Choice(_) | Type::Bytes | Type::List(_) | Type::Map(..) | Type::Tuple(_)
                )
            }
            Self::Map => matches!(of, Type::Map(..) | Type::Record(_) | Type::Named(_)),
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
