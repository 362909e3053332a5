//! Documents to terminal, Markdown and HTML: renderers know blocks, and neither sections nor each other.

pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod terminal;
