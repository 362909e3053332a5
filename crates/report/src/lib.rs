//! Records to Findings to terminal, Markdown, CSV, JSON, HTML, SVG.

#[doc(hidden)]
pub mod example;
pub mod findings;
mod svg;
pub mod html;
mod figure;
mod chart;
mod enough;
mod histogram;
mod number;
mod value;
mod verdict;

pub use enough::enough;
pub use findings::Findings;
pub use html::figure_svgs;
pub use verdict::{generator_busy, judge, judge_load, subject_busy};
