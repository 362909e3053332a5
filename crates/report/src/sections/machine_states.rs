//! Changes of the machine's speed during the run.

use analysis::Findings;

use crate::document::{Block, Section};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("states", "States of the machine");
    section.long(Block::Text(match &f.states {
        Some(states) => format!("Over all trials in run order: {}.", states.sentence),
        None => "Not tested: too few trials.".to_owned(),
    }));
    Some(section)
}
