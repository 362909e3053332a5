//! Every key of a study, declared once. What reads a study asks here for types, ranges, defaults and examples; hints, `quintain help study`,
//! docs/STUDY.md and the JSON Schema are made of it.

mod show;
mod tables;
#[cfg(test)]
mod tests;
pub mod words;

pub use config::{Key, Keys, Kind, Missing};
pub use show::{help, names, page, schema};
pub(crate) use tables::WORKLOAD;
pub use tables::{JOURNEY, LOAD, STUDY};
