//! The methods behind the numbers.

use analysis::Findings;

use crate::document::{Block, Section};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("method", "Method");
    f.method.iter().for_each(|paragraph| section.long(Block::Text(paragraph.clone())));
    section.unless_empty()
}
