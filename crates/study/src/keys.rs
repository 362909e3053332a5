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
