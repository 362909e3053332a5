//! Reads the values of one table: kinds, ranges, names that have no meaning.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Key;
use super::node::{Found, Node, Place, Value};
use crate::endpoint::{Endpoint, Pattern, is_address};

/// One table of a configuration.
pub(super) struct Section<'n> {
    /// Its name; empty for the whole file.
    name: String,
    entries: &'n [(String, Node)],
    place: Place,
    found: &'n Found<'n>,
    /// What paths are relative to.
    folder: &'n Path,
}

impl<'n> Section<'n> {
    pub(super) fn new(name: &str, node: &'n Node, found: &'n Found<'n>, folder: &'n Path) -> Self {
        let entries = match &node.value {
            Value::Table(entries) => entries.as_slice(),
            other => {
                found.mistake(node.place, format!("`{name}` is {}, a table is needed", other.kind()), None);
                &[]
            }
        };
        Self { name: name.to_owned(), entries, place: node.place, found, folder }
    }

    fn called(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Remembers what a key may be.
    fn key(&self, key: &str, kind: &str, default: impl Into<String>, range: impl Into<String>) {
        let key = Key { name: self.called(key), kind: kind.to_owned(), default: default.into(), range: range.into() };
        self.found.key(key);
    }

    /// What `read` makes of this table; `None`: there are mistakes in it.
    pub(super) fn sound<T>(&self, read: impl FnOnce(&Self) -> T) -> Option<T> {
        let before = self.found.count();
        let value = read(self);
        (self.found.count() == before).then_some(value)
    }

    /// Something is not there that must be. Of a file that is not TOML throughout that cannot be said.
    pub(super) fn missing(&self, key: &str, text: impl Into<String>, hint: Option<String>) {
        if !self.found.is_partial() {
            self.mistake(key, text, hint);
        }
    }

    pub(super) fn mistake(&self, key: &str, text: impl Into<String>, hint: Option<String>) {
        let place = self.get(key).map_or(self.place, |node| node.place);
        self.found.mistake(place, text, hint);
    }

    /// Tells of the keys that have no meaning here.
    pub(super) fn only(&self, known: &[&str]) {
        for (key, node) in self.entries.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let near = known.iter().map(|other| (strsim::jaro_winkler(key, other), *other));
            let near = near.max_by(|left, right| left.0.total_cmp(&right.0)).filter(|near| near.0 > 0.8);
            let hint = near.map(|near| format!("did you mean `{}`?", near.1));
            self.found.mistake(node.place, format!("unknown key `{}`", self.called(key)), hint);
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn wrong(&self, key: &str, node: &Node, needed: &str) {
        let text = format!("`{}` is {}, {needed} is needed", self.called(key), node.value.kind());
        self.found.mistake(node.place, text, None);
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.key(key, "text", "", "");
        self.raw(key)
    }

    fn raw(&self, key: &str) -> Option<String> {
        let node = self.get(key)?;
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => {
                self.wrong(key, node, "a text");
                None
            }
        }
    }

    /// Tells of a key that is not there. Whoever reads it says what it may be.
    pub(super) fn need(&self, key: &str) {
        if !self.has(key) {
            let within = if self.name.is_empty() { String::new() } else { format!(" in `{}`", self.name) };
            self.missing(key, format!("`{key}` is missing{within}"), None);
        }
    }

    pub(super) fn path(&self, key: &str) -> Option<PathBuf> {
        self.key(key, "path", "", "");
        self.raw(key).map(|path| self.folder.join(path))
    }

    pub(super) fn flag(&self, key: &str, otherwise: bool) -> bool {
        self.key(key, "flag", otherwise.to_string(), "");
        let Some(node) = self.get(key) else { return otherwise };
        let Value::Flag(flag) = node.value else {
            self.wrong(key, node, "`true` or `false`");
            return otherwise;
        };
        flag
    }

    pub(super) fn count(&self, key: &str, otherwise: u64, low: u64, high: u64) -> u64 {
        self.key(key, "count", otherwise.to_string(), format!("{low} to {high}"));
        let Some(node) = self.get(key) else { return otherwise };
        let number = match node.value {
            Value::Integer(number) => u64::try_from(number).ok(),
            _ => {
                self.wrong(key, node, "a whole number");
                return otherwise;
            }
        };
        match number.filter(|number| (low..=high).contains(number)) {
            Some(number) => number,
            None => {
                self.mistake(key, format!("`{}` is out of range: {low} to {high}", self.called(key)), None);
                otherwise
            }
        }
    }

    pub(super) fn fraction(&self, key: &str, otherwise: f64) -> f64 {
        self.key(key, "share", otherwise.to_string(), "0 to 1");
        let Some(node) = self.get(key) else { return otherwise };
        let number = match node.value {
            Value::Number(number) => number,
            Value::Integer(number) => number as f64,
            _ => {
                self.wrong(key, node, "a number");
                return otherwise;
            }
        };
        if (0.0..=1.0).contains(&number) {
            return number;
        }
        self.mistake(key, format!("`{}` is {number}, a share is 0 to 1", self.called(key)), None);
        otherwise
    }

    /// `250ms`, `30s`, `10min`, `2h`, `7d`.
    pub(super) fn time(&self, key: &str, otherwise: Duration) -> Duration {
        self.time_if(key, Some(otherwise)).unwrap_or(otherwise)
    }

    /// The same of a key that may be left out.
    pub(super) fn time_if(&self, key: &str, otherwise: Option<Duration>) -> Option<Duration> {
        self.key(key, "time", otherwise.map_or(String::new(), shown_time), "from 1ms");
        let Some(text) = self.raw(key) else { return otherwise };
        let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let unit_ms = match text[digits..].trim() {
            "ms" => Some(1),
            "s" => Some(1_000),
            "min" => Some(60_000),
            "h" => Some(3_600_000),
            "d" => Some(86_400_000),
            _ => None,
        };
        let number = text[..digits].parse::<u64>().ok();
        match number.zip(unit_ms).and_then(|(number, unit)| number.checked_mul(unit)).filter(|ms| *ms > 0) {
            Some(ms) => Some(Duration::from_millis(ms)),
            None => {
                let hint = Some("a whole number with its unit: `250ms`, `30s`, `10min`, `2h`, `7d`".to_owned());
                self.mistake(key, format!("`{}` is `{text}`, which is no time", self.called(key)), hint);
                otherwise
            }
        }
    }

    /// `4096`, `64KiB`, `16MiB`.
    pub(super) fn bytes(&self, key: &str, otherwise: u64, low: u64, high: u64) -> u64 {
        self.key(key, "size", shown_bytes(otherwise), format!("{} to {}", shown_bytes(low), shown_bytes(high)));
        let Some(node) = self.get(key) else { return otherwise };
        let parsed = match &node.value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::Text(text) => {
                let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
                let unit = match text[digits..].trim() {
                    "" | "B" => Some(1),
                    "KiB" => Some(1 << 10),
                    "MiB" => Some(1 << 20),
                    "GiB" => Some(1 << 30),
                    _ => None,
                };
                text[..digits].parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit))
            }
            _ => None,
        };
        let hint = || Some(format!("{} to {}, as `4096`, `64KiB` or `16MiB`", shown_bytes(low), shown_bytes(high)));
        match parsed {
            Some(bytes) if (low..=high).contains(&bytes) => return bytes,
            Some(_) => self.mistake(key, format!("`{}` is out of range", self.called(key)), hint()),
            None => self.mistake(key, format!("`{}` is no size", self.called(key)), hint()),
        }
        otherwise
    }

    /// One of several words.
    pub(super) fn word<T: Copy + PartialEq>(&self, key: &str, words: &[(&str, T)], otherwise: Option<T>) -> Option<T> {
        let all = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let default = words.iter().find(|(_, value)| Some(*value) == otherwise).map_or("", |(word, _)| word);
        self.key(key, "word", default, all);
        let Some(text) = self.raw(key) else { return otherwise };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Some(*value),
            None => {
                let known = words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
                self.mistake(key, format!("`{}` is `{text}`", self.called(key)), Some(format!("one of {known}")));
                otherwise
            }
        }
    }

    /// `host:port`.
    pub(super) fn address(&self, key: &str) -> Option<String> {
        self.key(key, "address", "", "");
        let text = self.raw(key)?;
        if is_address(&text) {
            return Some(text);
        }
        let hint = Some("`host:port`, as `127.0.0.1:8000`; port 0 lets the system choose".to_owned());
        self.mistake(key, format!("`{}` is `{text}`, which is no address", self.called(key)), hint);
        None
    }

    pub(super) fn ip(&self, key: &str, otherwise: IpAddr) -> IpAddr {
        self.key(key, "IP address", otherwise.to_string(), "");
        let Some(text) = self.raw(key) else { return otherwise };
        text.parse().unwrap_or_else(|_| {
            self.mistake(key, format!("`{}` is `{text}`, which is no IP address", self.called(key)), None);
            otherwise
        })
    }

    /// `host:port` or `http://host:port/path`.
    pub(super) fn endpoint(&self, key: &str) -> Option<String> {
        self.key(key, "endpoint", "", "");
        let text = self.raw(key)?;
        if Endpoint::parse(&text).is_some() {
            return Some(text);
        }
        let hint = Some("`host:port`, `http://host:port/path` or `https://host/path`".to_owned());
        self.mistake(key, format!("`{}` is `{text}`, which is no endpoint", self.called(key)), hint);
        None
    }

    pub(super) fn texts(&self, key: &str) -> Vec<(String, Place)> {
        self.key(key, "texts", "[]", "");
        self.texts_of(key)
    }

    fn texts_of(&self, key: &str) -> Vec<(String, Place)> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Value::List(items) = &node.value else {
            self.wrong(key, node, "a list of texts");
            return Vec::new();
        };
        let text = |item: &Node| match &item.value {
            Value::Text(text) => Some((text.clone(), item.place)),
            other => {
                self.found.mistake(item.place, format!("{} in `{key}`, a text is needed", other.kind()), None);
                None
            }
        };
        items.iter().filter_map(text).collect()
    }

    pub(super) fn patterns(&self, key: &str) -> Vec<Pattern> {
        let pattern = |(text, place): (String, Place)| {
            let pattern = Pattern::parse(&text);
            if pattern.is_none() {
                let hint = "`host:port`, `*.example.com:443`, `10.0.0.0/8:*`".to_owned();
                self.found.mistake(place, format!("`{text}` is no pattern of endpoints"), Some(hint));
            }
            pattern
        };
        self.key(key, "patterns", "[]", "");
        self.texts_of(key).into_iter().filter_map(pattern).collect()
    }

    /// A table within; `None` where there is none.
    pub(super) fn section(&self, key: &str) -> Option<Section<'n>> {
        let node = self.get(key)?;
        Some(Section::new(&self.called(key), node, self.found, self.folder))
    }

    /// The tables of a list of tables.
    pub(super) fn sections(&self, key: &str) -> Vec<Section<'n>> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Value::List(items) = &node.value else {
            self.wrong(key, node, "a list of tables, `[[...]]`,");
            return Vec::new();
        };
        items.iter().map(|item| Section::new(key, item, self.found, self.folder)).collect()
    }

    /// The tables of a table by their names.
    pub(super) fn named(&self, key: &str) -> Vec<(String, Section<'n>)> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Value::Table(entries) = &node.value else {
            self.wrong(key, node, "a table of tables");
            return Vec::new();
        };
        let section = |(name, node): &'n (String, Node)| {
            (name.clone(), Section::new(&format!("{key}.{name}"), node, self.found, self.folder))
        };
        entries.iter().map(section).collect()
    }
}

/// A time with the largest unit that it is a multiple of.
fn shown_time(time: Duration) -> String {
    let ms = time.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)];
    // As people write it: 60 s, not 1 min.
    match units.iter().rev().find(|(_, unit)| ms.is_multiple_of(*unit) && ms / unit < 1_000) {
        Some((name, unit)) => format!("{}{name}", ms / unit),
        None => format!("{ms}ms"),
    }
}

/// A size with the largest unit that it is a multiple of.
fn shown_bytes(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}
