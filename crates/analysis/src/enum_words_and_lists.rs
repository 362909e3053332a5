//! Words for enum values, and lists of items in sentences.

use serde::Serialize;
use study::record::Limit;

/// Returns the display name of a limit: `server` for [`Limit::Subject`], otherwise its name in JSON.
pub fn limit_word(limit: Limit) -> String {
    if limit == Limit::Subject { "server".to_owned() } else { serde_name(limit) }
}

/// Display name of [`Limit::Subject`] if the path to the server was not measured.
pub const SERVER_OR_PATH: &str = "server or the path to it";

/// Returns the name of a variant in JSON, or an empty string if its JSON is not a string.
pub fn serde_name(variant: impl Serialize) -> String {
    serde_json::to_value(variant).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Returns the text with its first letter in upper case.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Maximum number of items that a sentence names.
pub(crate) const NAMED: usize = 3;

/// Joins the first [`NAMED`] items and counts the rest. If only one item is left, joins it as well.
pub(crate) fn first_of(items: &[String], separator: &str) -> String {
    match items.len().saturating_sub(NAMED) {
        // `and 1 more` would be as long as the item that it replaces.
        0 | 1 => items.join(separator),
        rest => format!("{}{separator}and {rest} more", items[..NAMED].join(separator)),
    }
}

pub(crate) fn all_of(items: &[impl AsRef<str>], last: &str) -> String {
    let items = items.iter().map(AsRef::as_ref).collect::<Vec<_>>();
    match items.as_slice() {
        [first @ .., end] if !first.is_empty() => format!("{} {last} {end}", first.join(", ")),
        _ => items.concat(),
    }
}
