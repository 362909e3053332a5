//! The sections on failed requests and trials, and on warnings of the run and of the machines.

use analysis::findings::{Findings, Row};
use analysis::{FailedRequests, hangs, number};
use study::record::{FailureKind, Finding, FindingState, Node};

use super::cells::point_columns;
use crate::document::{Block, Cell, Item, Section};

pub(crate) fn failures(f: &Findings, section: &mut Section) {
    let mut rows = Vec::new();
    for row in f.all_rows() {
        rows.extend(row.failures.iter().map(|failure| {
            let what = format!("{}: {}", number::count(failure.count as u64, "trial"), word(failure.kind));
            (row, what, failure.message.clone())
        }));
        let told = [
            ("request errors", errors(row)),
            ("responses by status", statuses(row)),
            ("requests at the end", hangs::of_row(row)),
        ];
        rows.extend(told.into_iter().filter_map(|(what, how)| Some((row, what.to_owned(), how?))));
    }
    section.count = Some(rows.len());
    let table = point_columns(f, rows, |(row, ..)| row)
        .text("what", |(_, what, _)| what.clone())
        .text("how", |(.., how)| Cell::sentence(how));
    section.long(table.titled("").unless_empty().map(Block::Table));
}

fn errors(row: &Row) -> Option<String> {
    let examples = row.error_examples.iter().filter(|(kind, _)| row.errors.contains_key(*kind));
    let examples = examples.map(|(kind, example)| format!("; first {kind}: {example}")).collect::<String>();
    FailedRequests::from(row).sentence().map(|sentence| sentence + &examples)
}

fn statuses(row: &Row) -> Option<String> {
    let unusual = row.statuses.keys().any(|status| !(200..300).contains(status));
    let told = unusual || (row.errors_total() > 0 && !row.statuses.is_empty());
    let all = row.statuses.iter().map(|(status, count)| format!("{count} with status {status}"));
    told.then(|| format!("responses: {}", all.collect::<Vec<_>>().join(", ")))
}

fn word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Start => "could not start",
        FailureKind::Unrunnable => "cannot run here",
        FailureKind::NotReady => "never ready",
        FailureKind::Exited => "exited under load",
        FailureKind::Answers => "no valid response",
        FailureKind::Hung => "hung",
        FailureKind::Starved => "had no CPU",
        FailureKind::Generator => "generator failed",
        FailureKind::Proxy => "proxy failed",
        FailureKind::Companion => "companion failed",
        FailureKind::Node => "machine lost",
    }
}

pub(crate) fn warnings(f: &Findings, section: &mut Section) {
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
