//! The figures, shown only on the page.

use analysis::Findings;

use crate::document::{Block, Section};

pub(crate) fn section(_: &Findings) -> Option<Section> {
    let mut section = Section::new("figures", "Figures");
    section.long(Block::Figures);
    Some(section)
}
