//! What do the trials say, and how sure is it? Records to [`Findings`] to terminal, Markdown, CSV, JSON, HTML, SVG, PNG.
//!
//! ```
//! let (run, records) = report::example::compared();
//! let findings = report::analyze(&run, &records);
//! assert!(findings.answer[0].text.starts_with("c-epoll has the lowest mean latency in all 3 comparisons"));
//! println!("{}", report::terminal(&findings, &report::Style::PLAIN));
//! ```
//!
//! Pure: the machine is asked nothing, so a store that is years old and was written elsewhere reads the same. The two function
//! values that the lab is handed come from here too: [`judge`] (who was the limit) and [`next`] (are there trials enough, and
//! at which rate is the next).

mod added;
mod analyze;
mod answer;
mod asked;
mod cache;
mod chart;
mod comparisons;
mod csv;
mod effects;
mod enough;
#[doc(hidden)]
pub mod example;
mod figure;
pub mod findings;
mod flags;
mod histogram;
mod html;
mod inside;
mod journey;
mod json;
mod latency;
mod load;
mod markdown;
mod method;
mod miss_causes;
mod miss_ratio;
mod number;
mod operations;
mod over_requests;
mod places;
mod png;
mod probes;
mod raw_whip;
mod row;
mod scalability;
pub mod schema;
mod scope;
mod search;
mod silence;
mod states;
mod svg;
mod table;
mod terminal;
mod unfinished;
mod value;
mod verdict;
mod visible;
mod volley;
mod warning;
pub mod workload;

pub use analyze::analyze;
pub use asked::asked;
pub use comparisons::blocks_needed;
pub use csv::{csv, csv_added, csv_effects, csv_miss_ratios, csv_over_requests, csv_trials};
pub use findings::{Findings, SearchBound};
pub use html::{HtmlError, PAGE_LIMIT, figure_svgs, html};
pub use json::json;
pub use load::{LOAD_VERSION, LoadReport, load, load_json, load_terminal};
pub use markdown::markdown;
pub use number::quantity;
pub use png::{PIXEL_LIMIT, PNG_SCALE, Png, PngError, figure_png};
pub use raw_whip::raw_whip;
pub use search::{FIND_VERSION, FindReport, Search, find, find_json, find_terminal, next, step};
pub use terminal::{Style, idle_word, limit_word, terminal};
pub use unfinished::progress;
pub use value::metric_value;
pub use verdict::{BUSY, generator_busy, judge, judge_load, starved, subject_busy, subject_waiting};
pub use visible::visible;
pub use volley::volley;
