//! The declaration of a table's keys, from which all else is made.

use serde_json::Value;

/// A table: its keys, in the order in which a reader wants them.
#[derive(Debug)]
pub struct Keys {
    /// Its name with those of the tables around it: `load.stop`; empty: the whole file.
    pub name: &'static str,
    /// What it is about.
    pub text: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What may stand there.
    pub kind: Kind,
    /// A value that could stand there, as TOML.
    pub example: &'static str,
    /// What holds where it is missing.
    pub missing: Missing,
    /// What it means, a few words.
    pub text: &'static str,
}

/// What holds where a key is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It must be there.
    Mistake,
    /// This value, as TOML.
    Is(&'static str),
    /// Something else, in words.
    Means(&'static str),
}

/// What may stand at a key. Where texts are filled ([`crate::Fill`]) a text may stand for all but tables.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number, or a text such as `50k`: lowest and highest.
    Count(u64, u64),
    /// A number of bytes, or a text such as `64KiB`: lowest and highest.
    Bytes(u64, u64),
    /// A text such as `300ms`: shortest and longest, ns.
    Duration(u64, u64),
    /// The same, where days may be written too: `30d`.
    LongDuration(u64, u64),
    /// A number a second, or a text such as `50k`.
    Rate,
    /// A fraction, or a text such as `3%`: lowest and highest.
    Fraction(f64, f64),
    /// A number: lowest and highest.
    Number(f64, f64),
    /// One of some words: what they are words for, and which.
    Word(&'static str, fn() -> Vec<&'static str>),
    /// The name of such a thing, which the file declares elsewhere.
    Name(&'static str),
    /// A text of some form: in words, and whether a text has it.
    Form(&'static str, fn(&str) -> bool),
    /// A list of such.
    List(&'static Kind),
    /// A table whose keys are names, each with such a value.
    Named(&'static Kind),
    /// A table.
    Table(&'static Keys),
    /// A list of tables, each written as `[[name]]`.
    Tables(&'static Keys),
    /// A table of levels, each with a table of keys of this section that replace those above at that level.
    Variants,
    /// Something else: in words, and as a JSON Schema.
    Other(&'static str, fn() -> Value),
    /// One of these.
    Either(&'static [Kind]),
}

impl Keys {
    /// The key of that name.
    pub fn get(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The key of that name, which is there.
    pub fn key(&self, name: &str) -> &'static Key {
        self.get(name).unwrap_or_else(|| panic!("`{}` does not declare `{name}`", self.name))
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.keys.iter().map(|key| key.name)
    }
}

impl Key {
    /// The value that it has where it is missing, as a flag would have it; empty: none.
    pub fn default_text(&self) -> &'static str {
        match self.missing {
            Missing::Is(value) => value.trim_matches('"'),
            Missing::Mistake | Missing::Means(_) => "",
        }
    }
}

impl Kind {
    /// Something else, in words, of which a schema says nothing.
    pub const fn other(words: &'static str) -> Kind {
        Kind::Other(words, || Value::Object(serde_json::Map::new()))
    }

    /// This kind, or what may stand there in its place: the first of which `pick` makes something.
    pub fn find<T>(&self, pick: impl Fn(&Kind) -> Option<T>) -> Option<T> {
        match self {
            Kind::Either(kinds) => kinds.iter().find_map(pick),
            kind => pick(kind),
        }
    }

    /// The table that may stand there, be it one of a list or of names.
    pub fn table(&self) -> Option<&'static Keys> {
        self.find(|kind| match kind {
            Kind::Table(keys) | Kind::Tables(keys) => Some(*keys),
            Kind::Named(inner) | Kind::List(inner) => inner.table(),
            _ => None,
        })
    }
}

/// The words of a closed set, as [`Kind::Word`] wants them.
pub fn words<T>(set: &[(&'static str, T)]) -> Vec<&'static str> {
    set.iter().map(|(word, _)| *word).collect()
}
