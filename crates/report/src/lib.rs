//! Records to Findings to terminal, Markdown, CSV, JSON, HTML, SVG.

#[doc(hidden)]
pub mod example;
pub mod findings;
mod histogram;
mod number;
mod verdict;

pub use findings::Findings;
pub use verdict::{generator_busy, judge, judge_load, subject_busy};
