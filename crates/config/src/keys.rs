//! Declarations of a table's keys. Reading, help, Markdown and JSON Schema derive from them.

use serde_json::Value;

use crate::diagnostic::Invalid;
use crate::units;

/// A table and its keys, in the order in which help lists them.
#[derive(Debug)]
pub struct Keys {
    /// Path of the table, `load.stop`; empty for the whole file.
    pub name: &'static str,
    /// Description of the table.
    pub text: &'static str,
    /// Declared keys.
    pub keys: &'static [Key],
}

/// Declaration of a key: its kind, default and help.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Type and range of the value.
    pub kind: Kind,
    /// An example value, as TOML.
    pub example: &'static str,
    /// Default, if there is one.
    pub missing: Missing,
    /// Description in a few words.
    pub text: &'static str,
}

/// The meaning of a missing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// An error.
    Mistake,
    /// A default value, as TOML.
    Is(&'static str),
    /// A default in words.
    Means(&'static str),
}

/// Type of a value. If texts are filled ([`crate::Fill`]), all types but tables allow a text.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A string.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number, or a text such as `50k`; minimum and maximum.
    Count(u64, u64),
    /// A number of bytes, or a text such as `64KiB`; minimum and maximum.
    Bytes(u64, u64),
    /// A text such as `300ms`; minimum and maximum, ns.
    Duration(u64, u64),
    /// Like `Duration`, and days are allowed: `30d`.
    LongDuration(u64, u64),
    /// A number per second, or a text such as `50k`.
    Rate,
    /// A fraction, or a text such as `3%`; minimum and maximum.
    Fraction(f64, f64),
    /// A number; minimum and maximum.
    Number(f64, f64),
    /// One word of a set; the noun for it and the set.
    Word(&'static str, fn() -> Vec<&'static str>),
    /// The name of something that the file declares elsewhere; the noun for it.
    Name(&'static str),
    /// A string of some form; a description of the form and a predicate.
    Form(&'static str, fn(&str) -> bool),
    /// A list of values of a kind.
    List(&'static Kind),
    /// A table whose keys are names and whose values have a kind.
    Named(&'static Kind),
    /// A nested table with these keys.
    Table(&'static Keys),
    /// A list of tables, each written as `[[name]]`.
    Tables(&'static Keys),
    /// A table by level. Each level's table replaces keys of the enclosing section at that level.
    Variants,
    /// Another type; a description and a JSON Schema.
    Other(&'static str, fn() -> Value),
    /// Any of these kinds.
    Either(&'static [Kind]),
}

impl Keys {
    /// Finds a key by name.
    pub fn get(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Finds a key by name. Panics if it is not declared.
    pub fn key(&self, name: &str) -> &'static Key {
        self.get(name).unwrap_or_else(|| panic!("`{}` does not declare `{name}`", self.name))
    }

    /// Finds a key by its path, `keys.count`. Panics if it is not declared.
    pub fn at(&self, path: &str) -> &'static Key {
        match path.split_once('.') {
            Some((table, rest)) => self.key(table).kind.table().expect("only tables have keys").at(rest),
            None => self.key(path),
        }
    }

    /// Names of all keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.keys.iter().map(|key| key.name)
    }
}

/// Declares a key; [`Key::text`] adds its description.
pub const fn key(name: &'static str, kind: Kind, example: &'static str, missing: Missing) -> Key {
    Key { name, kind, example, missing, text: "" }
}

impl Key {
    /// The key with a description.
    pub const fn text(self, text: &'static str) -> Key {
        Key { text, ..self }
    }

    /// The default as the value of a flag; empty if there is none.
    pub fn default_text(&self) -> &'static str {
        match self.missing {
            Missing::Is(value) => value.trim_matches('"'),
            Missing::Mistake | Missing::Means(_) => "",
        }
    }
}

impl Kind {
    /// A kind with a description and a JSON Schema that accepts everything.
    pub const fn other(words: &'static str) -> Kind {
        Kind::Other(words, || Value::Object(serde_json::Map::new()))
    }

    /// Returns the first `Some` of `pick` for this kind or the alternatives of [`Kind::Either`].
    pub fn find<T>(&self, pick: impl Fn(&Kind) -> Option<T>) -> Option<T> {
        match self {
            Kind::Either(kinds) => kinds.iter().find_map(pick),
            kind => pick(kind),
        }
    }

    /// Whether a number, in ns for times, is in the range. Kinds without a range accept all numbers.
    pub(crate) fn contains(&self, value: f64) -> bool {
        match *self {
            Kind::Count(low, high)
            | Kind::Bytes(low, high)
            | Kind::Duration(low, high)
            | Kind::LongDuration(low, high) => (low as f64..=high as f64).contains(&value),
            Kind::Fraction(low, high) | Kind::Number(low, high) => (low..=high).contains(&value),
            _ => true,
        }
    }

    /// Checks a number against the range.
    pub fn check_range(&self, value: f64) -> Result<(), String> {
        if self.contains(value) { Ok(()) } else { Err(format!("must be {}, not {value}", self.range())) }
    }

    /// Parses a number with its unit, in ns for times.
    pub(crate) fn parse(&self, text: &str) -> Result<f64, Invalid> {
        let exact = match self {
            Kind::Count(..) => units::count(text),
            Kind::Bytes(..) => units::bytes(text),
            Kind::Duration(..) => units::duration_ns(text),
            Kind::LongDuration(..) => units::long_duration_ns(text),
            Kind::Fraction(..) => return units::fraction(text),
            _ => return Ok(text.trim().parse().unwrap_or(f64::NAN)),
        };
        exact.map(|number| number as f64)
    }

    /// Parses a number with its unit, as the value of a flag. Fails if it is out of range.
    pub fn parse_flag(&self, text: &str) -> Result<f64, Invalid> {
        let value = self.parse(text)?;
        let error = || Invalid::new(format!("must be {}, not `{text}`", self.range()));
        self.contains(value).then_some(value).ok_or_else(error)
    }

    /// The declaration of the table, also of tables in a list or by name.
    pub fn table(&self) -> Option<&'static Keys> {
        self.find(|kind| match kind {
            Kind::Table(keys) | Kind::Tables(keys) => Some(*keys),
            Kind::Named(inner) | Kind::List(inner) => inner.table(),
            _ => None,
        })
    }
}

/// Returns the word for a value of a closed set. Panics if it has none.
pub fn word_of<T: PartialEq>(set: &[(&'static str, T)], value: &T) -> &'static str {
    set.iter().find(|(_, known)| known == value).expect("the set is complete").0
}

/// The words of a closed set, in the form that [`Kind::Word`] takes.
pub fn words<T>(set: &[(&'static str, T)]) -> Vec<&'static str> {
    set.iter().map(|(word, _)| *word).collect()
}
