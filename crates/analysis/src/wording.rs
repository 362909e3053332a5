//! Names of enum values for people.

use serde::Serialize;
use study::record::Limit;

/// Returns the name of a limit for people.
pub fn limit_word(limit: Limit) -> String {
    if limit == Limit::Subject { "server".to_owned() } else { serde_name(limit) }
}

/// The name of [`Limit::Subject`] if the path to the server was not measured.
pub const SERVER_OR_PATH: &str = "server or the path to it";

/// The name of a variant in JSON.
pub fn serde_name(variant: impl Serialize) -> String {
    serde_json::to_value(variant).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Capitalizes the first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Maximum number of items that a sentence lists.
pub(crate) const NAMED: usize = 3;

/// Joins the first items and counts the rest, unless only one more is left.
pub(crate) fn first_of(items: &[String], separator: &str) -> String {
    match items.len().saturating_sub(NAMED) {
        // `and 1 more` is as long as the item itself.
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
