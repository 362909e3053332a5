//! Declarations of the keys of a table, from which reading, help, Markdown and JSON Schema derive.

use serde_json::Value;

use crate::diagnostic::Invalid;
use crate::units;

/// A table and its keys, in the order in which help lists them.
#[derive(Debug)]
pub struct Keys {
    /// Path of the table, such as `load.stop`; empty for the whole file.
    pub name: &'static str,
    /// Description of the table for help and Markdown.
    pub text: &'static str,
    /// Declared keys of the table, in the order in which help lists them.
    pub keys: &'static [Key],
}

/// Declaration of a key, with its kind, default and help.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key within its table.
    pub name: &'static str,
    /// Type and range of valid values.
    pub kind: Kind,
    /// Example of a value, as TOML.
    pub example: &'static str,
    /// Effect of a missing key: an error or a default.
    pub missing: Missing,
    /// Description of the key in a few words.
    pub text: &'static str,
}

/// Effect of leaving out a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A missing key is an error.
    Mistake,
    /// The default is this value, as TOML.
    Is(&'static str),
    /// The default is described by these words.
    Means(&'static str),
}

/// Type of a value. If strings are filled ([`crate::Fill`]), every type except tables also allows a string.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any string.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number or a string such as `50k`, from a minimum to a maximum.
    Count(u64, u64),
    /// A number of bytes or a string such as `64KiB`, from a minimum to a maximum.
    Bytes(u64, u64),
    /// A string such as `300ms`, from a minimum to a maximum in ns.
    Duration(u64, u64),
    /// A string such as `300ms` or, in days, `30d`, from a minimum to a maximum in ns.
    LongDuration(u64, u64),
    /// A number per second or a string such as `50k`.
    Rate,
    /// A fraction or a string such as `3%`, from a minimum to a maximum.
    Fraction(f64, f64),
    /// A number without a unit, from a minimum to a maximum.
    Number(f64, f64),
    /// One word of a set. The fields are the noun for such a word, and the set.
    Word(&'static str, fn() -> Vec<&'static str>),
    /// The name of something that the file declares elsewhere. The field is the noun for that thing.
    Name(&'static str),
    /// A string in a special notation. The fields describe the notation and decide whether a string is valid.
    Form(&'static str, fn(&str) -> bool),
    /// A list whose values have this kind.
    List(&'static Kind),
    /// A table whose keys are arbitrary names and whose values have this kind.
    Named(&'static Kind),
    /// A nested table with these keys.
    Table(&'static Keys),
    /// A list of tables with these keys, each written as `[[name]]`.
    Tables(&'static Keys),
    /// A table of levels. Each level's table overrides keys of the enclosing section at that level.
    Variants,
    /// Any other type, with a description and a JSON Schema.
    Other(&'static str, fn() -> Value),
    /// A value of any of these kinds.
    Either(&'static [Kind]),
}

impl Keys {
    /// Declares a table without keys, which [`Keys::keys`] adds.
    pub const fn new(name: &'static str, text: &'static str) -> Keys {
        Keys { name, text, keys: &[] }
    }

    /// Adds the keys of the table.
    pub const fn keys(self, keys: &'static [Key]) -> Keys {
        Keys { keys, ..self }
    }

    /// Finds a key by name; `None` if it is not declared.
    pub fn get(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Finds a key by name. Panics if it is not declared.
    pub fn key(&self, name: &str) -> &'static Key {
        self.get(name).unwrap_or_else(|| panic!("`{}` does not declare `{name}`", self.name))
    }

    /// Finds a key by its path, such as `keys.count`. Panics if it is not declared.
    pub fn at(&self, path: &str) -> &'static Key {
        match path.split_once('.') {
            Some((table, rest)) => self.key(table).kind.table().expect("only tables have keys").at(rest),
            None => self.key(path),
        }
    }

    /// Names of all keys of the table, in declared order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.keys.iter().map(|key| key.name)
    }
}

/// Declares a key without a description, which [`Key::text`] adds.
pub const fn key(name: &'static str, kind: Kind, example: &'static str, missing: Missing) -> Key {
    Key { name, kind, example, missing, text: "" }
}

impl Key {
    /// Adds the description of the key.
    pub const fn text(self, text: &'static str) -> Key {
        Key { text, ..self }
    }

    /// The default as the value of a flag; empty if there is none.
    pub fn default_text(&self) -> &'static str {
        if let Missing::Is(value) = self.missing { value.trim_matches('"') } else { "" }
    }
}

impl Kind {
    /// Creates a kind with a description and a JSON Schema that accepts everything.
    pub const fn other(words: &'static str) -> Kind {
        Kind::Other(words, || Value::Object(serde_json::Map::new()))
    }

    /// Returns the first `Some` that `pick` returns for this kind or for the alternatives of [`Kind::Either`].
    pub fn find<T>(&self, pick: impl Fn(&Kind) -> Option<T>) -> Option<T> {
        if let Kind::Either(kinds) = self { kinds.iter().find_map(pick) } else { pick(self) }
    }

    /// Whether a number, in ns for times, is within the range. Kinds without a range accept all numbers.
    pub(crate) fn contains(&self, value: f64) -> bool {
        match *self {
            Kind::Count(low, high)
            | Kind::Bytes(low, high)
            | Kind::Duration(low, high)
            | Kind::LongDuration(low, high) => (low as f64..=high as f64).contains(&value),
            Kind::Fraction(low, high) | Kind::Number(low, high) => (low..=high).contains(&value),
            Kind::Either(kinds) => kinds.iter().all(|kind| kind.contains(value)),
            _ => true,
        }
    }

    /// Checks that a number is within the range. Fails with a message that states the range.
    pub fn check_range(&self, value: f64) -> Result<(), String> {
        if self.contains(value) { Ok(()) } else { Err(format!("must be {}, not {value}", self.range())) }
    }

    /// Parses a number with its unit. Times are in ns. Fails if the number or its unit is invalid.
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

    /// Parses the value of a flag, a number with its unit. Fails if it is invalid or out of range.
    pub fn parse_flag(&self, text: &str) -> Result<f64, Invalid> {
        let value = self.parse(text)?;
        let error = || Invalid::new(format!("must be {}, not `{text}`", self.range()));
        self.contains(value).then_some(value).ok_or_else(error)
    }

    /// Declaration of the nested table, of the tables in a list, or of the named tables; `None` for other kinds.
    pub fn table(&self) -> Option<&'static Keys> {
        self.tables().first().copied()
    }

    /// Keys of the tables that a value can be or contain.
    pub(crate) fn tables(&self) -> Vec<&'static Keys> {
        match self {
            Kind::Table(keys) | Kind::Tables(keys) => vec![keys],
            Kind::Named(inner) | Kind::List(inner) => inner.tables(),
            Kind::Either(kinds) => kinds.iter().flat_map(Kind::tables).collect(),
            _ => Vec::new(),
        }
    }
}

/// The word for a value of a closed set. Panics if the value has no word.
pub fn word_of<T: PartialEq>(set: &[(&'static str, T)], value: &T) -> &'static str {
    set.iter().find(|(_, known)| known == value).expect("the set is complete").0
}

/// All words of a closed set, in the form that [`Kind::Word`] needs.
pub fn words<T>(set: &[(&'static str, T)]) -> Vec<&'static str> {
    set.iter().map(|(word, _)| *word).collect()
}
