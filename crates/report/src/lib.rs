//! Records to Findings to terminal, Markdown, CSV, JSON, HTML, SVG.
