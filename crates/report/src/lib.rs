//! Records to Findings to terminal, Markdown, CSV, JSON, HTML, SVG.

mod analyze;
mod answer;
#[doc(hidden)]
pub mod example;
pub mod findings;
mod csv;
mod enough;
mod histogram;
mod json;
mod load;
mod markdown;
mod method;
mod number;
mod outlier;
mod row;
mod scalability;
pub mod schema;
mod terminal;
mod value;
mod verdict;
mod volley;
mod svg;
mod html;
mod figure;
mod chart;

pub use analyze::analyze;
pub use csv::{csv, csv_trials};
pub use enough::enough;
pub use findings::Findings;
pub use json::json;
pub use load::{LOAD_VERSION, LoadReport, load, load_json, load_terminal};
pub use markdown::markdown;
pub use terminal::{Style, idle_word, limit_word, terminal};
pub use html::{HtmlError, PAGE_LIMIT, figure_svgs, html};
pub use verdict::{generator_busy, judge, judge_load, subject_busy};
pub use number::quantity;
pub use value::metric_value;
pub use volley::volley;
