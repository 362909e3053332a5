//! Renders declarations as Markdown, JSON Schema and terminal help.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::keys::{Key, Keys, Kind, Missing};
use crate::units;

impl Kind {
    /// Describes the type and range, such as `a time, 10ms to 24h`.
    pub fn words(&self) -> String {
        match self {
            Kind::Text => "a string".to_owned(),
            Kind::Flag => "`true` or `false`".to_owned(),
            Kind::Count(..) => format!("a count, {}", self.range()),
            Kind::Bytes(..) => format!("bytes, {}", self.range()),
            Kind::Duration(..) | Kind::LongDuration(..) => format!("a time, {}", self.range()),
            Kind::Rate => "a rate".to_owned(),
            Kind::Fraction(..) => format!("a fraction, {}", self.range()),
            Kind::Number(..) => format!("a number, {}", self.range()),
            Kind::Word(_, words) => match words().as_slice() {
                // A list of more than 12 words would be too long here and is documented elsewhere.
                words if words.len() > 12 => format!("one of {} words", words.len()),
                words => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            },
            Kind::Name(what) => format!("the name of a {what}"),
            Kind::List(inner) => format!("a list: {}", inner.words()),
            Kind::Named(inner) if inner.table().is_some() => "tables by name".to_owned(),
            Kind::Named(inner) => format!("by name: {}", inner.words()),
            Kind::Table(_) => "a table".to_owned(),
            Kind::Tables(_) => "a list of tables".to_owned(),
            Kind::Variants => "tables by level".to_owned(),
            Kind::Form(words, _) | Kind::Other(words, _) => (*words).to_owned(),
            Kind::Either(kinds) => kinds.iter().map(Kind::words).collect::<Vec<_>>().join("; or "),
        }
    }

    /// Describes the range and the words that are also allowed; empty if the kind has neither a range nor such words.
    pub fn range(&self) -> String {
        match self {
            Kind::Count(low, high) => format!("{} to {}", grouped(*low), grouped(*high)),
            Kind::Bytes(0, high) => format!("at most {}", units::bytes_text(*high)),
            Kind::Bytes(low, high) => format!("{} to {}", units::bytes_text(*low), units::bytes_text(*high)),
            Kind::Duration(low, high) => format!("{} to {}", units::duration_text(*low), units::duration_text(*high)),
            Kind::LongDuration(low, high) => {
                format!("{} to {}", units::duration_text(*low), units::long_duration_text(*high))
            }
            Kind::Fraction(low, high) if *high <= 1.0 => format!("{} % to {} %", percent(*low), percent(*high)),
            Kind::Fraction(low, high) | Kind::Number(low, high) => format!("{} to {}", number(*low), number(*high)),
            Kind::Either(kinds) => {
                let range = kinds.iter().map(Kind::range).find(|range| !range.is_empty()).unwrap_or_default();
                let words =
                    kinds.iter().filter_map(|kind| if let Kind::Word(_, words) = kind { Some(words()) } else { None });
                let words = words.flatten().map(|word| format!(", or \"{word}\"")).collect::<String>();
                range + &words
            }
            _ => String::new(),
        }
    }
}

/// Formats a count with commas, such as `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

fn percent(fraction: f64) -> String {
    // Rounding is necessary because 0.9999 * 100 is not exactly 99.99.
    number((fraction * 1e8).round() / 1e6)
}

fn number(value: f64) -> String {
    match value {
        whole if whole.fract() == 0.0 && (1e3..1e9).contains(&whole) => grouped(whole as u64),
        large if large.abs() >= 1e9 => format!("{large:e}"),
        other => other.to_string(),
    }
}

fn missing(key: &Key) -> String {
    match key.missing {
        Missing::Mistake => "required".to_owned(),
        Missing::Is(value) => format!("`{value}`"),
        Missing::Means(words) => words.to_owned(),
    }
}

/// Lists `root` and all tables below it, each once, in depth-first order.
pub fn tables(root: &'static Keys) -> Vec<&'static Keys> {
    fn add(keys: &'static Keys, all: &mut Vec<&'static Keys>) {
        if !all.iter().any(|known| std::ptr::eq(*known, keys)) {
            all.push(keys);
            keys.keys.iter().flat_map(|key| key.kind.tables()).for_each(|keys| add(keys, all));
        }
    }
    let mut all = Vec::new();
    add(root, &mut all);
    all
}

/// Lists the names of all tables below `root`.
pub fn names(root: &'static Keys) -> Vec<&'static str> {
    tables(root).into_iter().map(|keys| keys.name).filter(|name| !name.is_empty()).collect()
}

/// Renders a table's description, then its keys as a Markdown table.
pub fn table(keys: &Keys) -> String {
    let mut text =
        format!("{}.\n\n| Key | Description | Value | Default | Example |\n|---|---|---|---|---|\n", keys.text);
    for key in keys.keys {
        let cells = [key.text, &key.kind.words(), &missing(key), key.example].map(|text| text.replace('|', "\\|"));
        let [description, value, default, example] = cells;
        let _ = writeln!(text, "| `{}` | {description} | {value} | {default} | `{example}` |", key.name);
    }
    text
}

/// Renders the keys of one table (or all) for a terminal, below a `heading`. `None` if no table has this name.
pub fn help(root: &'static Keys, name: Option<&str>, heading: fn(&Keys) -> String) -> Option<String> {
    let is_chosen = |keys: &&Keys| name.is_none_or(|name| keys.name == name);
    let chosen = tables(root).into_iter().filter(is_chosen).collect::<Vec<_>>();
    let mut text = String::new();
    for keys in &chosen {
        let heading = heading(keys).replace('`', "");
        let _ = writeln!(text, "{}{heading}: {}", if text.is_empty() { "" } else { "\n" }, keys.text);
        for key in keys.keys {
            let _ = writeln!(text, "  {} = {}", key.name, key.example);
            let _ = writeln!(text, "      {}", key.text);
            text += &format!("      {}; default: {}\n", key.kind.words(), missing(key)).replace('`', "");
        }
    }
    (!chosen.is_empty()).then_some(text)
}

/// Renders the JSON Schema of a JSON or TOML file. `is_needed` decides which keys without a default are required.
pub fn schema(root: &'static Keys, title: &str, is_needed: fn(&Keys, &Key) -> bool) -> Value {
    let definitions = tables(root).into_iter().skip(1).map(|keys| (reference(keys), object(keys, is_needed)));
    let mut schema = object(root, is_needed);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema["$defs"] = Value::Object(definitions.collect());
    schema
}

fn reference(keys: &Keys) -> String {
    keys.name.replace('.', "-")
}

fn object(keys: &'static Keys, is_needed: fn(&Keys, &Key) -> bool) -> Value {
    let property = |key: &Key| {
        let mut schema = of_kind(&key.kind, keys);
        schema["description"] = json!(key.text);
        (key.name.to_owned(), schema)
    };
    let required = keys.keys.iter().filter(|key| key.missing == Missing::Mistake && is_needed(keys, key));
    json!({
        "type": "object",
        "description": keys.text,
        "properties": keys.keys.iter().map(property).collect::<Map<_, _>>(),
        "required": required.map(|key| key.name).collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

fn of_kind(kind: &Kind, keys: &'static Keys) -> Value {
    // A string may be a quantity with a unit, or contain names that are replaced with values.
    let or_text = |schema: Value| json!({ "anyOf": [schema, { "type": "string" }] });
    let to = |keys: &Keys| json!({ "$ref": format!("#/$defs/{}", reference(keys)) });
    match kind {
        Kind::Text | Kind::Form(..) | Kind::Duration(..) | Kind::LongDuration(..) => json!({ "type": "string" }),
        Kind::Flag => or_text(json!({ "type": "boolean" })),
        Kind::Count(low, high) | Kind::Bytes(low, high) => {
            or_text(json!({ "type": "integer", "minimum": low, "maximum": high }))
        }
        Kind::Rate => or_text(json!({ "type": "number", "exclusiveMinimum": 0 })),
        Kind::Fraction(low, high) | Kind::Number(low, high) => {
            or_text(json!({ "type": "number", "minimum": low, "maximum": high }))
        }
        Kind::Word(_, words) => json!({ "anyOf": [{ "enum": words() }, { "type": "string", "pattern": "\\{" }] }),
        Kind::List(inner) => json!({ "type": "array", "items": of_kind(inner, keys) }),
        Kind::Named(inner) => json!({ "type": "object", "additionalProperties": of_kind(inner, keys) }),
        Kind::Table(inner) => to(inner),
        Kind::Tables(inner) => json!({ "type": "array", "items": to(inner) }),
        Kind::Variants => json!({ "type": "object", "additionalProperties": to(keys) }),
        Kind::Name(_) => json!({}),
        Kind::Other(_, schema) => schema(),
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(|kind| of_kind(kind, keys)).collect::<Vec<_>>() }),
    }
}
