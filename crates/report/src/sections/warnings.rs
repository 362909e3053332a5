//! The section with warnings of the run and of the machines.

use analysis::Findings;
use study::record::{Finding, FindingState, Node};

use crate::document::{Block, Item, Section};

pub(crate) fn write(f: &Findings, section: &mut Section) {
    let warnings =
        f.warnings.iter().map(|warning| Item { text: warning.text.clone(), details: warning.details.clone() });
    let items = warnings.chain(doctor(f)).chain(of_nodes(f)).collect::<Vec<_>>();
    section.count = Some(items.len());
    match items.as_slice() {
        [] => section.long([Block::Text("None.".to_owned())]),
        _ => section.all([Block::List(items)]),
    }
}

/// Summarizes the warnings of `quintain doctor` in one line, since the section about the machine lists all checks.
fn doctor(f: &Findings) -> Option<Item> {
    let bad = f.doctor.iter().filter(|found| is_bad(found)).collect::<Vec<_>>();
    match bad.as_slice() {
        [] => None,
        [found] => Some(Item::new(format!("doctor: {}: {}", found.check, found.text))),
        all => {
            let checks = all.iter().map(|found| found.check.as_str()).collect::<Vec<_>>().join(", ");
            Some(Item::new(format!("doctor: {} warnings ({checks}); `quintain doctor` explains them", all.len())))
        }
    }
}

fn is_bad(found: &Finding) -> bool {
    matches!(found.state, FindingState::Bad | FindingState::Warning)
}

/// Lists the doctor findings of a cluster. Machines with equal findings share a line.
fn of_nodes(f: &Findings) -> impl Iterator<Item = Item> {
    let of_node = |node: &'_ Node| {
        let bad = node.doctor.iter().filter(|found| is_bad(found));
        bad.map(|found| (format!("{}: {}", found.check, found.text), node.name.clone())).collect::<Vec<_>>()
    };
    let lines = analysis::group_by_key::grouped(f.nodes.iter().flat_map(of_node));
    lines.into_iter().map(|(text, names)| Item::new(format!("doctor on {}: {text}", names.join(", "))))
}
