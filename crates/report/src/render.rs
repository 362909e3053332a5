//! Renders documents for terminal, Markdown and HTML. Renderers depend only on blocks.

pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod terminal;
