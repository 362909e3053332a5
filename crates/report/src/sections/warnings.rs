//! What the reader should know: of the run, and of what the doctor complained.

use analysis::Findings;
use study::record::{Finding, FindingState};

use crate::document::{Block, Item, Section};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let warnings =
        f.warnings.iter().map(|warning| Item { text: warning.text.clone(), details: warning.details.clone() });
    let bad = f.doctor.iter().filter(|found| is_bad(found));
    let doctor = bad.map(|found| Item::new(format!("doctor: {}: {}", found.check, found.text)));
    let items = warnings.chain(doctor).chain(of_nodes(f)).collect::<Vec<_>>();
    let mut section = Section::new("warnings", "Warnings");
    section.count = Some(items.len());
    match items.is_empty() {
        true => section.long(Block::Text("None.".to_owned())),
        false => section.all(Block::List(items)),
    }
    Some(section)
}

fn is_bad(found: &Finding) -> bool {
    matches!(found.state, FindingState::Bad | FindingState::Warning)
}

/// What the doctor found on machines of a cluster: the same on several is one line.
fn of_nodes(f: &Findings) -> impl Iterator<Item = Item> {
    let mut lines = Vec::<(String, Vec<&str>)>::new();
    for node in &f.nodes {
        for found in node.doctor.iter().filter(|found| is_bad(found)) {
            let text = format!("{}: {}", found.check, found.text);
            match lines.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) => names.push(&node.name),
                None => lines.push((text, vec![&node.name])),
            }
        }
    }
    lines.into_iter().map(|(text, names)| Item::new(format!("doctor on {}: {text}", names.join(", "))))
}
