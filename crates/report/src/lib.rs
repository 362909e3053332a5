//! Renders findings as documents for terminal, Markdown and HTML, as CSV and JSON, and as figures in SVG and PNG.
//!
//! ```
//! let (run, records) = fixtures::compared();
//! let findings = analysis::analyze(&run, &records);
//! println!("{}", report::terminal(&findings, &report::Style::PLAIN));
//! ```

#[cfg(not(feature = "schema"))]
extern crate no_schema as schemars;

mod csv;
mod document;
pub mod exports;
mod figures;
mod history;
mod junit;
mod load_report;
mod panel;
mod png;
mod render;
#[cfg(feature = "schema")]
pub mod schema;
mod sections;
mod svg;
mod terminal_style_and_wrap;
pub mod workload_samples;

use analysis::Findings;

pub use csv::{csv, csv_added, csv_effects, csv_miss_ratios, csv_over_requests, csv_trials};
pub use history::{history_html, history_terminal, side_by_side_terminal};
pub use junit::junit;
pub use load_report::{find_terminal, load_terminal};
pub use panel::style::Background;
pub use png::{PIXEL_LIMIT, PNG_SCALE, Png, figure_png};
pub use render::html::{PAGE_LIMIT, PAGE_POINTS, figure_svgs, html};
pub use terminal_style_and_wrap::{COLOUR_CODES, Style};

/// Reason why a form of the report could not be made, and its cause if another library failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReportError(String, #[source] Option<Box<dyn std::error::Error + Send + Sync>>);

/// Renders the report for a terminal: the question, answer, tables, warnings and machine.
pub fn terminal(findings: &Findings, style: &Style) -> String {
    render::terminal::terminal(&sections::document(findings), style)
}

/// Renders the comparison of two servers for a pull request: the answer, table and warnings, in Markdown.
pub fn markdown_short(findings: &Findings) -> String {
    render::markdown::markdown(&sections::short(findings))
}

/// Renders the whole page without figures for a pull request or a lab notebook, in Markdown.
pub fn markdown(findings: &Findings) -> String {
    render::markdown::markdown(&sections::document(findings))
}
