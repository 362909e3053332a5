//! Records to Findings to terminal, Markdown, CSV, JSON, HTML, SVG.

mod analyze;
mod answer;
#[doc(hidden)]
pub mod example;
pub mod findings;
mod enough;
mod histogram;
mod method;
mod number;
mod outlier;
mod row;
mod scalability;
mod value;
mod verdict;
mod svg;
mod html;
mod figure;
mod chart;

pub use analyze::analyze;
pub use enough::enough;
pub use findings::Findings;
pub use html::{HtmlError, PAGE_LIMIT, figure_svgs, html};
pub use verdict::{generator_busy, judge, judge_load, subject_busy};
