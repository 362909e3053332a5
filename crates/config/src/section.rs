//! Reads the values of one table, replaces names in strings with values, parses units and checks ranges.

use std::borrow::Cow;

use crate::diagnostic::Invalid;
use crate::error_collector::Report;
use crate::keys::{Key, Keys, Kind, Missing};
use crate::nearest::suggestion;
use crate::node::{self, Entry, Node, Table, Value};
use crate::place::Place;
use crate::units;

/// Replaces names in strings with their values, such as levels of factors in a study. `()` leaves strings unchanged.
pub trait Fill: Copy {
    /// Replaces the names in `text`, the value of `key`. Fails with a message that callers put after the value's name,
    /// or with `None` if the error is already reported.
    fn fill(&self, key: &str, text: &str) -> Result<Filled, Option<Invalid>>;
}

/// A filled string and its source.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The string with all names replaced.
    pub text: String,
    /// Place and name of the string's source, such as `` level `a` of `b` ``; `None` for the file itself.
    pub from: Option<(Place, String)>,
}

impl Fill for () {
    fn fill(&self, _: &str, text: &str) -> Result<Filled, Option<Invalid>> {
        Ok(Filled { text: text.to_owned(), from: None })
    }
}

/// A string of a table whose keys are names that the file chooses.
#[derive(Clone, Debug)]
pub struct NamedText {
    /// Key of the string.
    pub name: String,
    /// Place of the key.
    pub name_place: Place,
    /// The filled string.
    pub text: String,
    /// Place of the string in the file.
    pub place: Place,
}

static NAMES: Keys = Keys { name: "", text: "", keys: &[] };

/// A table whose strings are filled by `F`.
#[derive(Clone, Debug)]
pub struct Section<'a, F = ()> {
    /// Path of the table, such as `load.stop`; empty for the whole file.
    pub name: String,
    /// Entries of the table, in the order of the file.
    pub table: Cow<'a, Table>,
    /// Declared keys of the table, with their types and defaults.
    pub keys: &'static Keys,
    /// Place of the table, used for errors about missing keys.
    pub place: Place,
    /// Source of the values that replace names in the table's strings.
    pub fill: F,
    /// Collects the errors of the table.
    pub report: &'a Report<'a>,
}

struct Found<'a> {
    value: Cow<'a, Value>,
    place: Place,
    name: String,
}

impl<'a, F: Fill> Section<'a, F> {
    /// Creates the section for the whole file.
    pub fn whole(table: &'a Table, keys: &'static Keys, fill: F, report: &'a Report<'a>) -> Self {
        Section { name: String::new(), table: Cow::Borrowed(table), keys, place: Place::default(), fill, report }
    }

    /// Returns a section for this table whose strings are filled by `fill`.
    pub fn filled_by<G: Fill>(&self, fill: G) -> Section<'_, G> {
        let (name, table) = (self.name.clone(), Cow::Borrowed(&*self.table));
        Section { name, table, keys: self.keys, place: self.place, fill, report: self.report }
    }

    /// Reports undeclared keys of the table.
    pub fn check_keys(&self) {
        self.only(&self.keys.names().collect::<Vec<_>>());
    }

    /// Reports undeclared keys, and required keys that are missing.
    pub fn check(&self) {
        self.check_keys();
        let required = self.keys.keys.iter().filter(|key| key.missing == Missing::Mistake);
        required.for_each(|key| self.required(key.name));
    }

    /// Reports each of `keys` that the table has. `why` follows the key in the message; `hint` says what to do.
    pub fn refuse<'k>(&self, keys: impl IntoIterator<Item = &'k str>, why: &str, hint: &str) {
        for key in keys.into_iter().filter(|key| self.has(key)) {
            self.mistake(key, format!("`{}` {why}", self.called(key)), hint.to_owned());
        }
    }

    /// Reports keys of the table that are not in `known`.
    pub fn only(&self, known: &[&str]) {
        for entry in self.table.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let hint = suggestion(&entry.key, known.iter().copied());
            let place = if self.name.is_empty() { String::new() } else { format!(" in `{}`", self.name) };
            self.report.mistake(entry.key_place, format!("unknown key `{}`{place}", entry.key.escape_debug()), hint);
        }
    }

    /// Whether the value of `key` is the string `word`.
    pub fn is_word(&self, key: &str, word: &str) -> bool {
        self.find(key).is_some_and(|found| matches!(&*found.value, Value::Text(text) if text == word))
    }

    fn declared(&self, key: &str) -> &'static Key {
        self.keys.get(key).unwrap_or_else(|| panic!("`{}` is read but not declared", self.called(key)))
    }

    /// Returns the first `Some` of `pick` for the declared kind of a key and its alternatives. Panics if there is none.
    fn kind<T>(&self, key: &str, pick: impl Fn(&Kind) -> Option<T>) -> T {
        let kind = self.declared(key).kind;
        kind.find(pick).unwrap_or_else(|| panic!("`{}` is not read as declared: {kind:?}", self.called(key)))
    }

    /// Whether the table itself has `key`, regardless of defaults.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// Path of `key` for messages, such as `load.stop`.
    pub fn called(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{}", self.name, key.escape_debug()) }
    }

    /// Place of the value of `key`, or of the table if the key is missing.
    pub fn place_of(&self, key: &str) -> Place {
        self.table.get(key).map_or(self.place, |entry| entry.node.place)
    }

    /// Reports an error at the value of `key`, or at the table if the key is missing.
    pub fn mistake(&self, key: &str, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.report.mistake(self.place_of(key), message, hint);
    }

    /// Adds an error at `key` if the section breaks a rule.
    pub fn rule(&self, broken: bool, key: &str, message: impl Into<String>, hint: impl Into<Option<&'static str>>) {
        self.report.rule(broken, self.place_of(key), message, hint);
    }

    /// Reports an error if `key` is missing.
    pub fn required(&self, key: &str) {
        if !self.has(key) {
            let example = self.declared(key).example;
            let owner = if self.name.is_empty() { self.report.whole.to_owned() } else { format!("`{}`", self.name) };
            self.report.missing(self.place, format!("{owner} has no `{key}`"), format!("add `{key} = {example}`"));
        }
    }

    /// Reports an error if `key` is missing but needed.
    pub fn required_if(&self, is_needed: bool, key: &str) {
        if is_needed {
            self.required(key);
        }
    }

    /// Reads a string. `None` if there is neither a value nor a default, or after reporting an invalid value.
    pub fn text(&self, key: &str) -> Option<String> {
        // Keys whose names the file chooses are not declared; their values are strings.
        let kind = self.keys.get(key).map_or(&Kind::Text, |key| &key.kind);
        self.text_of(&self.find(key)?, kind)
    }

    /// Reads a list of strings; empty if missing. Reports invalid items and leaves them out.
    pub fn texts(&self, key: &str) -> Vec<String> {
        let kind = self.kind(key, |kind| if let Kind::List(inner) = kind { Some(*inner) } else { None });
        let name = format!("each of `{}`", self.called(key));
        let text = |item| self.text_of(&self.found(key, item, name.clone())?, kind);
        self.list(key).into_iter().flatten().filter_map(text).collect()
    }

    fn list(&self, key: &str) -> Option<&[Node]> {
        let node = &self.table.get(key)?.node;
        if let Value::List(items) = &node.value {
            return Some(items);
        }
        let message = format!("`{}` must be a list, not {}", self.called(key), node.value.kind());
        self.report.mistake(node.place, message, format!("write `{key} = {}`", self.declared(key).example));
        None
    }

    fn text_of(&self, found: &Found<'_>, kind: &Kind) -> Option<String> {
        let Value::Text(text) = &*found.value else { return self.wrong_type(found, "a string") };
        if text.contains('\0') {
            return self.wrong(found, "contains a NUL character");
        }
        let form = kind.find(|kind| if let Kind::Form(words, fits) = kind { Some((*words, *fits)) } else { None });
        let broken = form.filter(|(_, fits)| !fits(text));
        broken.map_or_else(|| Some(text.clone()), |(words, _)| self.wrong(found, &format!("must be {words}")))
    }

    /// Reads and parses a string. `None` if there is neither value nor default, or after reporting an invalid value.
    pub fn text_as<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T, Invalid>) -> Option<T> {
        let text = self.text(key)?;
        let (_, place) = self.filled(key)?;
        self.report.valid(place, parse(&text))
    }

    /// The string at `key` and its place. Returns `None` for any other value, without reporting it.
    pub fn filled(&self, key: &str) -> Option<(String, Place)> {
        let found = self.find(key)?;
        if let Value::Text(text) = &*found.value { Some((text.clone(), found.place)) } else { None }
    }

    /// Reads a boolean. `None` if there is neither a value nor a default, or after reporting an invalid value.
    pub fn flag(&self, key: &str) -> Option<bool> {
        let found = self.find(key)?;
        match &*found.value {
            Value::Flag(flag) => Some(*flag),
            Value::Text(text) if text == "true" => Some(true),
            Value::Text(text) if text == "false" => Some(false),
            _ => self.wrong_type(&found, "`true` or `false`"),
        }
    }

    pub(crate) fn numeric(&self, key: &str, is_meant: fn(&Kind) -> bool, wanted: &str) -> Option<f64> {
        let kind = self.kind(key, |kind| is_meant(kind).then_some(*kind));
        let found = self.find(key)?;
        let value = match &*found.value {
            Value::Text(text) => self.unit(&found, kind.parse(text))?,
            Value::Integer(integer) => *integer as f64,
            Value::Number(number) if matches!(kind, Kind::Fraction(..) | Kind::Number(..)) => *number,
            _ => return self.wrong_type(&found, wanted),
        };
        let wrong = || self.wrong(&found, &format!("must be {}", self.declared(key).kind.range()));
        kind.contains(value).then_some(value).or_else(wrong)
    }

    /// Reads a count. `None` if there is neither a value nor a default, or after reporting an invalid value.
    pub fn count(&self, key: &str) -> Option<u64> {
        let count = self.numeric(key, |kind| matches!(kind, Kind::Count(..)), "a count, such as `40` or `\"50k\"`");
        count.map(|count| count as u64)
    }

    /// Reads a count whose declared range fits in `T`. `None` in the same cases as [`Section::count`].
    pub fn small<T: TryFrom<u64>>(&self, key: &str) -> Option<T> {
        self.count(key).map(|count| T::try_from(count).ok().expect("its bounds fit the type"))
    }

    /// Reads a duration in ns. `None` if there is neither a value nor a default, or after reporting an invalid value.
    pub fn duration_ns(&self, key: &str) -> Option<u64> {
        let found = self.find(key)?;
        if let Value::Integer(_) | Value::Number(_) = *found.value {
            let source = self.report.source(found.place);
            let hint = format!("for seconds, write `\"{source}s\"`");
            self.report.mistake(found.place, format!("{} needs a unit", found.name), hint);
            return None;
        }
        let is_meant = |kind: &Kind| matches!(kind, Kind::Duration(..) | Kind::LongDuration(..));
        self.numeric(key, is_meant, "a time, such as `\"300ms\"` or `\"5s\"`").map(|ns| ns as u64)
    }

    /// Reads a rate per second. `None` if there is neither a value nor a default, or after reporting an invalid value.
    pub fn rate_per_s(&self, key: &str) -> Option<f64> {
        let found = self.find(key)?;
        let text = match &*found.value {
            Value::Text(text) => text.clone(),
            Value::Integer(rate) => rate.to_string(),
            Value::Number(rate) => format!("{rate:.9}"),
            _ => return self.wrong_type(&found, "a rate, such as `50_000` or `\"50k\"`"),
        };
        self.unit(&found, units::rate_per_s(&text))
    }

    /// Reads a fraction. `None` if there is neither a value nor a default, or after reporting an invalid value.
    pub fn fraction(&self, key: &str) -> Option<f64> {
        self.numeric(key, |kind| matches!(kind, Kind::Fraction(..)), "a fraction, such as `0.03` or `\"3%\"`")
    }

    /// Reads a plain number. `None` if there is neither a value nor a default, or after reporting an invalid value.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.numeric(key, |kind| matches!(kind, Kind::Number(..)), "a number")
    }

    /// Reads a number of bytes. `None` if there is neither a value nor a default, or after reporting an invalid value.
    pub fn bytes(&self, key: &str) -> Option<u64> {
        let wanted = "a number of bytes, such as `512` or `\"64KiB\"`";
        self.numeric(key, |kind| matches!(kind, Kind::Bytes(..)), wanted).map(|bytes| bytes as u64)
    }

    /// Reads one of `words` and returns its meaning. The number 2 matches `"2"`. `None` as for [`Section::word`].
    pub fn choice<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let what = self.kind(key, |kind| match kind {
            Kind::Word(what, _) | Kind::Name(what) => Some(*what),
            _ => None,
        });
        let found = self.find(key)?;
        let word = match &*found.value {
            Value::Text(word) => word,
            Value::Integer(number) => &number.to_string(),
            Value::Number(number) => &number.to_string(),
            _ => return self.wrong_type(&found, &format!("the name of a {what}")),
        };
        let choice = words.iter().find(|(known, _)| known == word).map(|(_, choice)| *choice);
        choice.or_else(|| self.unknown(found.place, what, word, &words.iter().map(|word| word.0).collect::<Vec<_>>()))
    }

    /// Reads a declared word. `None` if there is neither a value nor a default, or after reporting an invalid value.
    pub fn word(&self, key: &str) -> Option<&'static str> {
        let words = self.kind(key, |kind| if let Kind::Word(_, words) = kind { Some(words()) } else { None });
        self.choice(key, &words.into_iter().map(|word| (word, word)).collect::<Vec<_>>())
    }

    /// Reads a list of the words declared for `key`; `None` if there is no list. Reports unknown and duplicate words.
    pub fn choices(&self, key: &str) -> Option<Vec<&'static str>> {
        let (what, known) = self.kind(key, |kind| match kind {
            Kind::List(Kind::Word(what, words)) => Some((*what, words())),
            _ => None,
        });
        let mut all = Vec::new();
        for Node { value, place } in self.list(key)? {
            let mistake = |message: String| self.report.mistake(*place, message, None);
            let Value::Text(word) = value else {
                mistake(format!("a {what} must be a name, not {}", value.kind()));
                continue;
            };
            match known.iter().find(|known| *known == word) {
                Some(word) if all.contains(word) => mistake(format!("duplicate {what} `{word}`")),
                found => all.extend(found.or_else(|| self.unknown(*place, what, word, &known))),
            }
        }
        Some(all)
    }

    fn unknown<T>(&self, place: Place, what: &str, word: &str, known: &[&str]) -> Option<T> {
        let hint = suggestion(word, known.iter().copied());
        self.report.mistake(place, format!("unknown {what} `{}`", word.escape_debug()), hint);
        None
    }

    /// Reads the strings of a table by name, in the order of the file; empty if missing. Integers count as strings.
    /// Reports invalid items and leaves them out.
    pub fn named_texts(&self, key: &str) -> Vec<NamedText> {
        let Some(table) = self.section(key) else { return Vec::new() };
        let named = table.table.iter().filter_map(|Entry { key, key_place, node }| {
            let text = if let Value::Integer(number) = node.value { Some(number.to_string()) } else { table.text(key) };
            Some(NamedText { name: key.clone(), name_place: *key_place, text: text?, place: node.place })
        });
        named.collect()
    }

    /// Whether the value of `key` is a list; false if the key is missing.
    pub fn is_list(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(|entry| matches!(entry.node.value, Value::List(_)))
    }

    /// Whether the value of `key` is a table; false if the key is missing.
    pub fn is_table(&self, key: &str) -> bool {
        self.table.table(key).is_some()
    }

    /// Returns the one of `keys` that the table has. If it has none or several, reports an error and returns `None`.
    pub fn one_of<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        let given = keys.iter().copied().filter(|key| self.has(key)).collect::<Vec<_>>();
        let Some((first, rest)) = given.split_first() else {
            let all = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            self.report.missing(self.place, format!("`{}` needs one of {all}", self.name), None);
            return None;
        };
        for key in rest {
            let message = format!("`{}` has both `{first}` and `{key}`, only one is allowed", self.name);
            self.mistake(key, message, None);
        }
        rest.is_empty().then_some(*first)
    }

    /// The table at `key`; `None` if the key is missing, or after reporting a value that is not a table.
    pub fn section(&self, key: &str) -> Option<Section<'_, F>> {
        let keys = self.kind(key, |kind| match kind {
            Kind::Table(keys) => Some(*keys),
            Kind::Named(_) | Kind::Variants => Some(&NAMES),
            _ => None,
        });
        self.section_of(key, keys)
    }

    /// The table at `key`; if there is none, an empty table, in which every key has its default.
    pub fn section_or_empty(&self, key: &str) -> Section<'_, F> {
        self.section(key).unwrap_or_else(|| {
            let (name, table, keys) = (self.called(key), Cow::Owned(Table::default()), self.kind(key, Kind::table));
            Section { name, table, keys, place: self.place, fill: self.fill, report: self.report }
        })
    }

    /// The tables inside the table at `key`, by name. Reports other values and leaves them out.
    pub fn named(&self, key: &str) -> Vec<(String, Section<'_, F>)> {
        let (keys, entry) = (self.kind(key, Kind::table), self.table.get(key));
        let table = entry.and_then(|entry| self.as_table(&entry.node, || format!("`{}`", self.called(key)), None));
        let sections = table.into_iter().flat_map(Table::iter).filter_map(|entry| {
            let name = format!("{}.{}", self.called(key), entry.key.escape_debug());
            let table = self.as_table(&entry.node, || format!("`{name}`"), None)?;
            Some((entry.key.clone(), Section { name, ..self.inner(table, keys, entry.key_place) }))
        });
        sections.collect()
    }

    /// The tables of the list at `key`. Reports other items, which become `None`. `each` names an item in messages.
    pub fn tables(&self, key: &str, each: &str) -> Vec<Option<Section<'_, F>>> {
        let (keys, name) = (self.kind(key, Kind::table), self.called(key));
        let Some(Entry { node, .. }) = self.table.get(key) else { return Vec::new() };
        let Value::List(items) = &node.value else {
            let message = format!("`{name}` must be a list of tables, not {}", node.value.kind());
            self.report.mistake(node.place, message, format!("begin each {key} with `[[{name}]]`"));
            return vec![None];
        };
        let section = |item| {
            let table = self.as_table(item, || each.to_owned(), None)?;
            Some(self.inner(table, keys, item.place))
        };
        items.iter().map(section).collect()
    }

    fn as_table<'n>(&self, node: &'n Node, name: impl FnOnce() -> String, hint: Option<String>) -> Option<&'n Table> {
        if let Value::Table(table) = &node.value {
            return Some(table);
        }
        self.report.mistake(node.place, format!("{} must be a table, not {}", name(), node.value.kind()), hint);
        None
    }

    /// Reads a table like [`Section::section`], but with the keys declared by `keys`.
    pub fn section_of(&self, key: &str, keys: &'static Keys) -> Option<Section<'_, F>> {
        let entry = self.table.get(key)?;
        let name = self.called(key);
        let hint = self.name.is_empty().then(|| format!("begin it with `[{name}]`"));
        let table = self.as_table(&entry.node, || format!("`{name}`"), hint)?;
        Some(Section { name, ..self.inner(table, keys, entry.key_place) })
    }

    /// Creates a section for `table`, with the keys declared by `keys`. Errors about missing keys point at `place`.
    pub fn inner<'b>(&'b self, table: &'b Table, keys: &'static Keys, place: Place) -> Section<'b, F> {
        let (name, table) = (keys.name.to_owned(), Cow::Borrowed(table));
        Section { name, table, keys, place, fill: self.fill, report: self.report }
    }

    fn find(&self, key: &str) -> Option<Found<'_>> {
        let name = format!("`{}`", self.called(key));
        let Some(Entry { node, .. }) = self.table.get(key) else {
            let Missing::Is(default) = self.keys.get(key)?.missing else { return None };
            let Node { value, place } = node::value(default, self.place, self.report)?;
            return Some(Found { value: Cow::Owned(value), place, name });
        };
        self.found(key, node, name)
    }

    fn found<'n>(&self, key: &str, node: &'n Node, name: String) -> Option<Found<'n>> {
        let Value::Text(text) = &node.value else {
            return Some(Found { value: Cow::Borrowed(&node.value), place: node.place, name });
        };
        let filled = self.fill.fill(key, text).map_err(|error| {
            if let Some(Invalid { message, hint, .. }) = error {
                self.report.mistake(node.place, format!("{name} {message}"), hint);
            }
        });
        let Filled { text, from } = filled.ok()?;
        let value = Cow::Owned(Value::Text(text));
        Some(match from {
            Some((place, from)) => Found { value, place, name: format!("{name} from {from}") },
            None => Found { value, place: node.place, name },
        })
    }

    fn unit<T>(&self, found: &Found<'_>, read: Result<T, Invalid>) -> Option<T> {
        self.report.valid(found.place, read.map_err(|error| error.of(&found.name)))
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
