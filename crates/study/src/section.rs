//! Reads the values of one table of a study: templates filled, units understood, ranges kept.

use std::borrow::Cow;

use crate::keys::{Key, Keys, Kind, Missing};
use crate::nearest::suggestion;
use crate::node::{self, Entry, Node, Place, Table, Value};
use crate::plan::Level;
use crate::report::Report;
use crate::template;
use crate::units::{self, UnitError};

/// Longest text of a value once its templates are filled, bytes.
const VALUE_MAX_BYTES: usize = 4096;

/// A level at one design point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) factor: &'a str,
    pub(crate) level: &'a Level,
    pub(crate) place: Place,
}

/// A table whose keys are names of the study's own.
static NAMES: Keys = Keys { name: "", text: "", keys: &[] };

/// One table, seen from one design point.
pub(crate) struct Section<'a> {
    /// Its name with those of the tables around it: `load.stop`; empty for the study itself.
    pub(crate) name: String,
    pub(crate) table: Cow<'a, Table>,
    /// What may stand in it.
    pub(crate) keys: &'static Keys,
    /// Where it begins; what is missing is missing here.
    pub(crate) place: Place,
    pub(crate) settings: &'a [Setting<'a>],
    pub(crate) report: &'a Report<'a>,
}

/// A value with its templates filled, where it stands, and what to call it in a message.
struct Found<'a> {
    value: Cow<'a, Value>,
    place: Place,
    name: String,
}

impl<'a> Section<'a> {
    /// The same table, seen from the design point with these settings.
    pub(crate) fn at<'b>(&'b self, settings: &'b [Setting<'b>]) -> Section<'b> {
        let (name, table) = (self.name.clone(), Cow::Borrowed(&*self.table));
        Section { name, table, keys: self.keys, place: self.place, settings, report: self.report }
    }

    /// Reports the keys that have no meaning in any table of this kind.
    pub(crate) fn check_keys(&self) {
        self.only(&self.keys.names().collect::<Vec<_>>());
    }

    /// Reports the keys that have no meaning here.
    pub(crate) fn only(&self, known: &[&str]) {
        for entry in self.table.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let hint = suggestion(&entry.key, known.iter().copied());
            let place = if self.name.is_empty() { String::new() } else { format!(" in `{}`", self.name) };
            self.report.mistake(entry.key_place, format!("unknown key `{}`{place}", entry.key.escape_debug()), hint);
        }
    }

    /// Whether the value of `key` is this text.
    pub(crate) fn is_word(&self, key: &str, word: &str) -> bool {
        self.find(key).is_some_and(|found| matches!(&*found.value, Value::Text(text) if text == word))
    }

    /// What is declared of a key that the house itself reads.
    fn declared(&self, key: &str) -> &'static Key {
        self.keys.get(key).unwrap_or_else(|| panic!("`{}` is read but not declared", self.called(key)))
    }

    /// The part of what may stand at `key` that `pick` finds.
    fn kind<T>(&self, key: &str, pick: impl Fn(&Kind) -> Option<T>) -> T {
        let kind = self.declared(key).kind;
        kind.find(pick).unwrap_or_else(|| panic!("`{}` is not read as declared: {kind:?}", self.called(key)))
    }

    fn range(&self, key: &str) -> String {
        self.declared(key).kind.range()
    }

    /// Tells a key that is not there and has no value then, `Some(None)`, from one whose value is mistaken, `None`.
    pub(crate) fn given<T>(&self, key: &str, value: Option<T>) -> Option<Option<T>> {
        if self.has(key) { value.map(Some) } else { Some(value) }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    fn called(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{}", self.name, key.escape_debug()) }
    }

    /// Where the value of `key` stands, or the table if it is not there.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.table.get(key).map_or(self.place, |entry| entry.node.place)
    }

    /// Reports a mistake at the value of `key`.
    pub(crate) fn mistake(&self, key: &str, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.report.mistake(self.place_of(key), message, hint);
    }

    /// Reports that `key` is missing, if it is.
    pub(crate) fn required(&self, key: &str) {
        if !self.has(key) {
            let example = self.declared(key).example;
            let owner = if self.name.is_empty() { "the study".to_owned() } else { format!("`{}`", self.name) };
            self.report.missing(self.place, format!("{owner} has no `{key}`"), format!("add `{key} = {example}`"));
        }
    }

    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let found = self.find(key)?;
        match &*found.value {
            Value::Text(text) if text.contains('\0') => self.wrong(&found, "contains a NUL character"),
            Value::Text(text) => Some(text.clone()),
            _ => self.wrong_type(&found, "a string"),
        }
    }

    /// A text as what `read` makes of it; what `read` says instead is the message, and the hint.
    pub(crate) fn text_as<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, (String, Option<String>)>,
    ) -> Option<T> {
        let text = self.text(key)?;
        // What stands in a level is mistaken there.
        let place = self.find(key)?.place;
        read(&text).map_err(|(message, hint)| self.report.mistake(place, message, hint)).ok()
    }

    /// The text of `key` and where it stands, when it is a text: nothing is reported.
    pub(crate) fn filled(&self, key: &str) -> Option<(String, Place)> {
        let found = self.find(key)?;
        match &*found.value {
            Value::Text(text) => Some((text.clone(), found.place)),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        let found = self.find(key)?;
        match &*found.value {
            Value::Flag(flag) => Some(*flag),
            Value::Text(text) if text == "true" => Some(true),
            Value::Text(text) if text == "false" => Some(false),
            _ => self.wrong_type(&found, "`true` or `false`"),
        }
    }

    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        let (low, high) =
            self.kind(key, |kind| if let Kind::Count(low, high) = kind { Some((*low, *high)) } else { None });
        let found = self.find(key)?;
        let count = match &*found.value {
            Value::Integer(count) => u64::try_from(*count).ok(),
            Value::Text(text) => Some(self.unit(&found, units::count(text))?),
            _ => return self.wrong_type(&found, "a count, such as `40` or `\"50k\"`"),
        };
        match count.filter(|count| (low..=high).contains(count)) {
            Some(count) => Some(count),
            None => self.wrong(&found, &format!("must be {}", self.range(key))),
        }
    }

    pub(crate) fn small(&self, key: &str) -> Option<u32> {
        self.count(key).map(|count| u32::try_from(count).expect("its bounds fit 32 bits"))
    }

    pub(crate) fn duration_ns(&self, key: &str) -> Option<u64> {
        let (low, high) =
            self.kind(key, |kind| if let Kind::Duration(low, high) = kind { Some((*low, *high)) } else { None });
        let found = self.find(key)?;
        let ns = match &*found.value {
            Value::Text(text) => self.unit(&found, units::duration_ns(text))?,
            Value::Integer(_) | Value::Number(_) => {
                let source = self.report.source(found.place);
                let (message, hint) =
                    (format!("{} needs a unit", found.name), format!("for seconds, write `\"{source}s\"`"));
                self.report.mistake(found.place, message, hint);
                return None;
            }
            _ => return self.wrong_type(&found, "a time, such as `\"300ms\"` or `\"5s\"`"),
        };
        if (low..=high).contains(&ns) { Some(ns) } else { self.wrong(&found, &format!("must be {}", self.range(key))) }
    }

    pub(crate) fn rate_per_s(&self, key: &str) -> Option<f64> {
        let found = self.find(key)?;
        let text = match &*found.value {
            Value::Text(text) => text.clone(),
            Value::Integer(rate) => rate.to_string(),
            Value::Number(rate) => format!("{rate:.9}"),
            _ => return self.wrong_type(&found, "a rate, such as `50_000` or `\"50k\"`"),
        };
        self.unit(&found, units::rate_per_s(&text))
    }

    pub(crate) fn fraction(&self, key: &str) -> Option<f64> {
        let (low, high) =
            self.kind(key, |kind| if let Kind::Fraction(low, high) = kind { Some((*low, *high)) } else { None });
        let found = self.find(key)?;
        let fraction = match &*found.value {
            Value::Number(fraction) => *fraction,
            Value::Integer(fraction) => *fraction as f64,
            Value::Text(text) => self.unit(&found, units::fraction(text))?,
            _ => return self.wrong_type(&found, "a fraction, such as `0.03` or `\"3%\"`"),
        };
        if (low..=high).contains(&fraction) {
            Some(fraction)
        } else {
            self.wrong(&found, &format!("must be {}", self.range(key)))
        }
    }

    /// A number without a unit.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        let (low, high) =
            self.kind(key, |kind| if let Kind::Number(low, high) = kind { Some((*low, *high)) } else { None });
        let found = self.find(key)?;
        let number = match &*found.value {
            Value::Number(number) => Some(*number),
            Value::Integer(integer) => Some(*integer as f64),
            // A level of a factor comes as text.
            Value::Text(text) => text.trim().parse().ok(),
            _ => return self.wrong_type(&found, "a number"),
        };
        match number.filter(|number| (low..=high).contains(number)) {
            Some(number) => Some(number),
            None => self.wrong(&found, &format!("must be {}", self.range(key))),
        }
    }

    /// A number of bytes.
    pub(crate) fn bytes(&self, key: &str) -> Option<u64> {
        let (low, high) =
            self.kind(key, |kind| if let Kind::Bytes(low, high) = kind { Some((*low, *high)) } else { None });
        let found = self.find(key)?;
        let bytes = match &*found.value {
            Value::Integer(bytes) => u64::try_from(*bytes).ok(),
            Value::Text(text) => Some(self.unit(&found, units::bytes(text))?),
            _ => return self.wrong_type(&found, "a number of bytes, such as `512` or `\"64KiB\"`"),
        };
        match bytes.filter(|bytes| (low..=high).contains(bytes)) {
            Some(bytes) => Some(bytes),
            None => self.wrong(&found, &format!("must be {}", self.range(key))),
        }
    }

    /// One of the words, as what it means.
    pub(crate) fn choice<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let what = self.kind(key, |kind| match kind {
            Kind::Word(what, _) => Some(*what),
            Kind::Other(_) => Some("factor"),
            _ => None,
        });
        let found = self.find(key)?;
        let Value::Text(word) = &*found.value else { return self.wrong_type(&found, &format!("the name of a {what}")) };
        let choice = words.iter().find(|(known, _)| known == word).map(|(_, choice)| *choice);
        if choice.is_none() {
            let hint = suggestion(word, words.iter().map(|(known, _)| *known));
            self.report.mistake(found.place, format!("unknown {what} `{}`", word.escape_debug()), hint);
        }
        choice
    }

    /// Whether a table stands at `key`.
    pub(crate) fn is_table(&self, key: &str) -> bool {
        self.table.table(key).is_some()
    }

    /// The one key of `keys` that is there.
    pub(crate) fn one_of<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        let there = keys.iter().copied().filter(|key| self.has(key)).collect::<Vec<_>>();
        match there.as_slice() {
            [] => {
                let all = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
                self.report.missing(self.place, format!("`{}` needs one of {all}", self.name), None);
                None
            }
            [key] => Some(key),
            [first, rest @ ..] => {
                for key in rest {
                    self.mistake(
                        key,
                        format!("`{}` has both `{first}` and `{key}`, only one is allowed", self.name),
                        None,
                    );
                }
                None
            }
        }
    }

    /// The table of that key as a section of its own.
    pub(crate) fn section(&self, key: &str) -> Option<Section<'_>> {
        let keys = self.kind(key, |kind| match kind {
            Kind::Table(keys) => Some(*keys),
            Kind::Named(_) | Kind::Variants => Some(&NAMES),
            _ => None,
        });
        self.section_of(key, keys)
    }

    /// The table of that key, in which those `keys` may stand.
    pub(crate) fn section_of(&self, key: &str, keys: &'static Keys) -> Option<Section<'_>> {
        let entry = self.table.get(key)?;
        let name = self.called(key);
        match &entry.node.value {
            Value::Table(table) => Some(Section { name, ..self.inner(table, keys, entry.key_place) }),
            other => {
                self.report.mistake(entry.node.place, format!("`{name}` must be a table, not {}", other.kind()), None);
                None
            }
        }
    }

    /// Another table with those keys, as a section of its own, seen from the same design point.
    pub(crate) fn inner<'b>(&'b self, table: &'b Table, keys: &'static Keys, place: Place) -> Section<'b> {
        let (name, table) = (keys.name.to_owned(), Cow::Borrowed(table));
        Section { name, table, keys, place, settings: self.settings, report: self.report }
    }

    /// The value of a key, or the one that it has where it is missing.
    fn find(&self, key: &str) -> Option<Found<'_>> {
        let name = format!("`{}`", self.called(key));
        let Some(Entry { node, .. }) = self.table.get(key) else {
            let Missing::Is(default) = self.keys.get(key)?.missing else { return None };
            let Node { value, place } = node::value(default, self.place, self.report)?;
            return Some(Found { value: Cow::Owned(value), place, name });
        };
        let Value::Text(text) = &node.value else {
            return Some(Found { value: Cow::Borrowed(&node.value), place: node.place, name });
        };
        let setting = |name: &str| self.settings.iter().find(|setting| setting.factor == name);
        let filled = template::fill(text, |name| setting(name).map(|setting| setting.level.to_string()));
        if filled.len() > VALUE_MAX_BYTES {
            let hint = (key == "body").then(|| "put it in a file and set `body_file`".to_owned());
            self.report.mistake(node.place, format!("{name} is longer than {VALUE_MAX_BYTES} bytes"), hint);
            return None;
        }
        // Of `"{clients}"` the level is the value: a mistake in it stands where the level stands. A factor that is not
        // there has been reported with the template.
        let (place, name) = match template::templates(text).first() {
            Some((span, factor)) if *span == (0..text.len()) && !template::is_reserved(factor) => {
                let setting = setting(factor)?;
                (setting.place, format!("{name} from level `{}` of `{factor}`", setting.level))
            }
            Some(_) if self.unfilled(&filled) => return None,
            _ => (node.place, name),
        };
        Some(Found { value: Cow::Owned(Value::Text(filled)), place, name })
    }

    fn unfilled(&self, text: &str) -> bool {
        template::templates(text).iter().any(|(_, name)| !template::is_reserved(name))
    }

    fn unit<T>(&self, found: &Found<'_>, read: Result<T, UnitError>) -> Option<T> {
        read.map_err(|error| self.report.mistake(found.place, format!("{}: {error}", found.name), unit_hint(&error)))
            .ok()
    }

    fn wrong<T>(&self, found: &Found<'_>, problem: &str) -> Option<T> {
        let value = match &*found.value {
            Value::Text(text) if text.len() <= 40 => format!(", not `{}`", text.escape_debug()),
            Value::Integer(integer) => format!(", not {integer}"),
            Value::Number(number) => format!(", not {number}"),
            _ => String::new(),
        };
        self.report.mistake(found.place, format!("{} {problem}{value}", found.name), None);
        None
    }

    fn wrong_type<T>(&self, found: &Found<'_>, wanted: &str) -> Option<T> {
        self.report.mistake(found.place, format!("{} must be {wanted}, not {}", found.name, found.value.kind()), None);
        None
    }
}

fn unit_hint(error: &UnitError) -> Option<String> {
    let UnitError::UnknownUnit { unit, units, .. } = error else { return None };
    let meant = units.split(", ").find(|known| known.eq_ignore_ascii_case(unit))?;
    Some(format!("did you mean `{meant}`?"))
}

/// Every text in `node`, with its place.
pub(crate) fn texts<'a>(node: &'a Node, found: &mut Vec<(&'a str, Place)>) {
    match &node.value {
        Value::Text(text) => found.push((text, node.place)),
        Value::List(list) => list.iter().for_each(|item| texts(item, found)),
        Value::Table(table) => table.iter().for_each(|entry| texts(&entry.node, found)),
        _ => {}
    }
}
