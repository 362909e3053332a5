//! The section on failed requests and trials.

use analysis::findings::{Findings, Row};
use analysis::{FailedRequests, hangs, number};
use study::record::FailureKind;

use super::cells::point_columns;
use crate::document::{Block, Cell, Section};

pub(crate) fn write(f: &Findings, section: &mut Section) {
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
