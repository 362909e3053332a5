//! The figures, of which only the page has any.

use analysis::Findings;

use crate::document::{Block, Section};

pub(crate) fn section(_: &Findings) -> Option<Section> {
    let mut section = Section::new("figures", "Figures");
    section.long(Block::Figures);
    Some(section)
}
