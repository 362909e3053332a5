//! Findings to a document, and documents to terminal, Markdown, HTML and CSV; figures to SVG and PNG.
//!
//! ```
//! let (run, records) = analysis::example::compared();
//! let findings = analysis::analyze(&run, &records);
//! println!("{}", report::terminal(&findings, &report::Style::PLAIN));
//! ```

mod chart;
mod csv;
mod figure;
mod find;
mod html;
mod json;
mod load;
mod markdown;
mod miss_causes;
mod png;
pub mod schema;
mod sections;
mod svg;
mod table;
mod terminal;
pub mod workload;

pub use csv::{csv, csv_added, csv_effects, csv_miss_ratios, csv_over_requests, csv_trials};
pub use find::{find_json, find_terminal};
pub use html::{HtmlError, PAGE_LIMIT, figure_svgs, html};
pub use json::json;
pub use load::{load_json, load_terminal};
pub use markdown::markdown;
pub use png::{PIXEL_LIMIT, PNG_SCALE, Png, PngError, figure_png};
pub use terminal::{Style, terminal};
