//! Finds the responses from which the values of later requests came.

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;

use super::archive::Response;
use crate::journey::{placeholders, reply_path};
use crate::validate_http::percent_decoded;

/// Maximum number of values to search per JSON body, and of occurrences per other body.
const VALUES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 30;
const VALUE_MAX_BYTES: usize = 4096;
/// Shortest and longest context that identifies a value in a body other than JSON, bytes.
const CONTEXT_BYTES: std::ops::RangeInclusive<usize> = 16..=120;

/// A value of a JSON body or a header.
#[derive(Debug)]
struct Leaf {
    step: usize,
    /// Source of the value, in the syntax of `take`.
    path: String,
    /// Key of the value; empty for a header.
    key: String,
    /// The key of the enclosing object, or the last segment of the URL path.
    parent: String,
}

#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) step: usize,
    pub(super) name: String,
    /// Source of the value, in the syntax of `take`.
    pub(super) source: String,
    value: String,
}

#[derive(Debug, Default)]
pub(super) struct Tokens {
    by_value: HashMap<String, Vec<Leaf>>,
    /// Response bodies other than JSON, each with the index of its step.
    texts: Vec<(usize, String)>,
    taken: Vec<Taken>,
    reserved: Vec<String>,
}

/// A value of a request, to be found in earlier responses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'w> {
    pub(super) value: &'w str,
    /// Name of the parameter, or the segment before a path segment.
    pub(super) hint: &'w str,
}

impl Tokens {
    pub(super) fn new(reserved: Vec<String>) -> Tokens {
        Tokens { reserved, ..Tokens::default() }
    }

    pub(super) fn add(&mut self, step: usize, url_path: &str, response: &Response) {
        let body = response.text();
        match serde_json::from_str::<Value>(&body) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => {
                let parent = url_path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
                let body = Leaf { step, path: "body".to_owned(), key: String::new(), parent: parent.to_owned() };
                self.add_leaves(body, &json, 0, &mut { VALUES_MAX });
            }
            _ if body.is_empty() => {}
            _ => self.texts.push((step, body.into_owned())),
        }
        let of_header = |path: String| Leaf { step, path, key: String::new(), parent: String::new() };
        for header in &response.headers {
            let name = header.name.to_ascii_lowercase();
            if name == "set-cookie" {
                for line in header.value.lines() {
                    if let Some((name, value)) = line.split(';').next().unwrap_or_default().split_once('=') {
                        let (name, value) = (name.trim(), value.trim());
                        // Scripts usually decode cookies before they send their values, so this source comes first and wins.
                        self.add_leaf(of_header(format!("decoded(cookie.{name})")), percent_decoded(value, false));
                        self.add_leaf(of_header(format!("cookie.{name}")), value.to_owned());
                    }
                }
            } else if name.starts_with("x-") || name.contains("token") || name.ends_with("id") {
                self.add_leaf(of_header(format!("header.{name}")), header.value.clone());
            }
        }
    }

    fn add_leaves(&mut self, leaf: Leaf, json: &Value, depth: usize, left: &mut usize) {
        let Some(fewer) = left.checked_sub(1).filter(|_| depth < DEPTH_MAX) else { return };
        *left = fewer;
        let child = |path: String, key: &str, parent: &str| {
            let (key, parent) = (key.to_owned(), parent.to_owned());
            Leaf { step: leaf.step, path, key, parent }
        };
        let text = match json {
            Value::Object(fields) => {
                let parent = if leaf.key.is_empty() { &leaf.parent } else { &leaf.key };
                for (name, value) in fields {
                    self.add_leaves(child(format!("{}.{name}", leaf.path), name, parent), value, depth + 1, left);
                }
                return;
            }
            Value::Array(items) => {
                for (at, value) in items.iter().enumerate() {
                    let item = child(format!("{}[{at}]", leaf.path), &leaf.key, &leaf.parent);
                    self.add_leaves(item, value, depth + 1, left);
                }
                return;
            }
            Value::String(text) => text.clone(),
            Value::Number(number) if !number.is_f64() => number.to_string(),
            Value::Number(_) | Value::Bool(_) | Value::Null => return,
        };
        self.add_leaf(leaf, text);
    }

    fn add_leaf(&mut self, leaf: Leaf, value: String) {
        if reply_path::source(&leaf.path, "body").is_ok() && value.len() <= VALUE_MAX_BYTES {
            self.by_value.entry(value).or_default().push(leaf);
        }
    }

    /// Takes a request's value from the latest response that contains it. Returns its name; `None` if no response does.
    pub(super) fn name(&mut self, wanted: Wanted<'_>) -> Option<String> {
        if wanted.value.is_empty() || wanted.value.len() > VALUE_MAX_BYTES {
            return None;
        }
        let is_known = |taken: &&Taken| taken.value == wanted.value && is_distinctive(wanted.value);
        if let Some(known) = self.taken.iter().find(is_known) {
            return Some(known.name.clone());
        }
        // Within one response, JSON wins over headers, and headers win over other bodies.
        let found = [self.in_text(wanted), self.in_json_or_header(wanted)];
        let (step, source, name) = found.into_iter().flatten().max_by_key(|found| found.0)?;
        Some(self.take(step, source, &name, wanted.value))
    }

    pub(super) fn take(&mut self, step: usize, source: String, name: &str, value: &str) -> String {
        if let Some(known) = self.taken.iter().find(|taken| taken.step == step && taken.source == source) {
            return known.name.clone();
        }
        let name = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
        let name = name.collect::<String>().trim_matches('_').to_ascii_lowercase();
        let name = if placeholders::is_name(&name) { name } else { format!("value_{name}") };
        let is_free =
            |name: &String| !self.reserved.contains(name) && !self.taken.iter().any(|taken| taken.name == *name);
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or_default();
        self.taken.push(Taken { step, name: name.clone(), source, value: value.to_owned() });
        name
    }

    pub(super) fn taken(&self, step: usize) -> impl Iterator<Item = &Taken> {
        self.taken.iter().filter(move |taken| taken.step == step)
    }

    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    fn in_json_or_header(&self, wanted: Wanted<'_>) -> Option<(usize, String, String)> {
        let is_source = |leaf: &&Leaf| is_distinctive(wanted.value) || leaf.is_about(wanted.hint);
        let leaf = self.by_value.get(wanted.value)?.iter().rev().find(is_source)?;
        let leaves = || self.by_value[wanted.value].iter().filter(|other| other.step == leaf.step);
        let leaf = leaves().find(is_source).unwrap_or(leaf);
        let name = match (leaf.key.as_str(), singular(&leaf.parent)) {
            ("id", parent) if !parent.is_empty() => format!("{parent}_id"),
            ("", _) => leaf.path.split_once('.').map_or("", |parts| parts.1).to_owned(),
            (key, _) => key.to_owned(),
        };
        Some((leaf.step, leaf.path.clone(), name))
    }

    fn in_text(&self, wanted: Wanted<'_>) -> Option<(usize, String, String)> {
        self.texts.iter().rev().find_map(|(step, text)| {
            let places = text.match_indices(wanted.value).take(VALUES_MAX);
            let pattern = places.into_iter().find_map(|(at, _)| pattern(text, at, wanted))?;
            Some((*step, format!("match({pattern})"), wanted.hint.to_owned()))
        })
    }
}

impl Leaf {
    /// Whether a parameter named `hint` probably has this value, as `product` has the value of `products[3].id`.
    fn is_about(&self, hint: &str) -> bool {
        let (hint, key, parent) = (plain(hint), plain(&self.key), plain(&self.parent));
        let is_page = |name: &str| ["page", "cursor", "offset", "after"].iter().any(|word| name.contains(word));
        if key.starts_with("next") {
            return is_page(&hint) || hint.starts_with("next");
        }
        let (hint, parent) = (singular(&hint), singular(&parent));
        if hint.len() < 2
            || !key.ends_with("id") && !["slug", "code", "key", "token", "sku", "version"].contains(&key.as_str())
        {
            return false;
        }
        let stem = hint.strip_suffix("id").unwrap_or(&hint);
        let names = if key.len() > 2 { key.strip_suffix("id").unwrap_or(&parent) } else { &parent };
        hint == key || stem.len() > 1 && (names.ends_with(stem) || names.len() > 2 && stem.ends_with(names))
    }
}

/// Whether a value is unlikely to occur by chance: it has no spaces, and at least 20 bytes, or 8 including a digit.
pub(super) fn is_distinctive(value: &str) -> bool {
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    !value.contains(' ') && (value.len() >= 20 || value.len() >= 8 && has_digit)
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

fn singular(name: &str) -> String {
    name.strip_suffix('s').unwrap_or(name).to_ascii_lowercase()
}

/// A regular expression whose first match in `text` has the value at `at` as its group; `None` if none works.
fn pattern(text: &str, at: usize, wanted: Wanted<'_>) -> Option<String> {
    let before = &text[..at];
    let line = before.rfind(['\n', '<']).map_or(0, |start| start + usize::from(text[start..].starts_with('\n')));
    let least = line.max(at.saturating_sub(*CONTEXT_BYTES.end()));
    let begin = (least..=at).find(|start| text.is_char_boundary(*start))?;
    let group = match text[at + wanted.value.len()..].chars().next() {
        Some(quote @ ('"' | '\'')) if before.ends_with(quote) => format!("([^{quote}]+)"),
        _ => "([A-Za-z0-9._~-]+)".to_owned(),
    };
    let tag = &text[begin..text[at..].find('>').map_or(text.len(), |end| at + end)];
    let is_about = !wanted.hint.is_empty() && tag.contains("hidden");
    if !is_distinctive(wanted.value) && !is_about {
        return None;
    }
    let starts = (begin..at).rev().filter(|start| *start == begin || text.as_bytes()[*start - 1] == b' ');
    starts.filter(|start| at - start >= *CONTEXT_BYTES.start()).find_map(|start| {
        let context = &text[start..at];
        if !is_distinctive(wanted.value) && !context.contains(wanted.hint) {
            return None;
        }
        let pattern = format!("{}{group}", regex::escape(context));
        let regex = Regex::new(&pattern).ok()?;
        let is_right = regex.captures(text)?.get(1)?.range() == (at..at + wanted.value.len());
        is_right.then_some(pattern)
    })
}
