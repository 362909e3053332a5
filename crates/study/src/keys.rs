//! Declares every key of a study once: the parser takes types, ranges and defaults from here; hints, `quintain help
//! study`, docs/reference/study.md and the JSON Schema are generated.

mod show;
mod tables;
#[cfg(test)]
mod tests;
pub mod words;

pub use config::{Key, Keys, Kind, Missing};
pub use show::{heading, page, schema};
pub(crate) use tables::WORKLOAD;
pub use tables::{JOURNEY, LOAD, STUDY};

/// Keys of `[load]` for one kind of load, with which their text begins: `HTTP`, `https:`, `journeys:`.
pub(crate) fn load_keys(kind: &str) -> impl Iterator<Item = &'static str> {
    LOAD.keys.iter().filter(move |key| key.text.starts_with(kind)).map(|key| key.name)
}
