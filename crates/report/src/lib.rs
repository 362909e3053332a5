//! Records to Findings to terminal, Markdown, CSV, JSON, HTML, SVG.

pub mod findings;

pub use findings::Findings;
