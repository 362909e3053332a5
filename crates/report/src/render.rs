//! Renders documents for terminal, Markdown and HTML. Renderers know blocks, but not sections or
//! each other.

pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod terminal;
