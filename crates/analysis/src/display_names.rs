//! Names of enum values for people.

use study::record::{IdlePolicy, Limit};

/// Returns the name of a limit for people.
pub fn limit_word(limit: Limit) -> &'static str {
    match limit {
        Limit::Subject => "server",
        other => other.name(),
    }
}

/// The name of [`Limit::Subject`] if the path to the server was not measured.
pub const SERVER_OR_PATH: &str = "server or the path to it";

/// Returns the name of an idle policy.
pub fn idle_word(idle: IdlePolicy) -> &'static str {
    match idle {
        IdlePolicy::Machine => "machine",
        IdlePolicy::Spin => "spin",
    }
}

/// Capitalizes the first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub(crate) fn all_of(items: &[impl AsRef<str>], last: &str) -> String {
    let items = items.iter().map(AsRef::as_ref).collect::<Vec<_>>();
    match items.as_slice() {
        [first @ .., end] if !first.is_empty() => format!("{} {last} {end}", first.join(", ")),
        _ => items.concat(),
    }
}
