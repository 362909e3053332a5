//! Series that grow over the requests of a trial.

use analysis::{Findings, request_trends};

use crate::document::{Block, Section};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("over-requests", "Over requests");
    if !f.over_requests.is_empty() {
        request_trends::sentences(f).for_each(|sentence| section.all(Block::Text(sentence)));
    }
    section.unless_empty()
}
