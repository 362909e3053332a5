//! What the reader should know: of the run, and of what the doctor complained.

use analysis::Findings;
use study::record::FindingState;

use crate::document::{Block, Item, Section};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let warnings =
        f.warnings.iter().map(|warning| Item { text: warning.text.clone(), details: warning.details.clone() });
    let bad = f.doctor.iter().filter(|found| matches!(found.state, FindingState::Bad | FindingState::Warning));
    let doctor = bad.map(|found| Item::new(format!("doctor: {}: {}", found.check, found.text)));
    let items = warnings.chain(doctor).collect::<Vec<_>>();
    let mut section = Section::new("warnings", "Warnings");
    section.count = Some(items.len());
    match items.is_empty() {
        true => section.long(Block::Text("None.".to_owned())),
        false => section.all(Block::List(items)),
    }
    Some(section)
}
