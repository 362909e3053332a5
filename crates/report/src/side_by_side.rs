//! Two runs side by side, for a terminal.

use analysis::enum_words_and_lists::capitalised;
use analysis::findings::SideBySide;
use analysis::number::quantity;

use crate::document::{Block, Columns, Document, Section, Table};
use crate::history::shown;
use crate::render;
use crate::terminal_style_and_wrap::Style;

/// Renders the headline, the runs, a table per metric, and the reasons why there is no verdict.
pub fn side_by_side_terminal(found: &SideBySide, style: &Style) -> String {
    render::terminal::terminal(&document(found), style)
}

fn document(found: &SideBySide) -> Document {
    let mut runs = Section::new("runs", "Runs");
    runs.all([Block::Table(self::runs(found))]);
    let mut values = Section::new("values", "Values");
    for metric in &found.metrics {
        let rows = found.points.iter().filter_map(|point| Some((&point.label, point.values.get(metric.name)?)));
        let table = Columns::of(rows.filter(|(_, values)| values.iter().any(Option::is_some)))
            .text("design point", |(label, _)| label.as_str())
            .number(&found.runs[0].run, |(_, values)| shown(values[0].as_ref(), metric.unit))
            .number(&found.runs[1].run, |(_, values)| shown(values[1].as_ref(), metric.unit));
        values.all(table.titled(metric.text).unless_empty().map(Block::Table));
    }
    let mut verdict = Section::new("verdict", "Verdict");
    verdict.all(found.reasons.iter().cloned().map(Block::Text));
    let comparing = "This compares them in one run, block by block:";
    let command = found.command.iter().cloned();
    verdict.all(command.flat_map(|command| [Block::Text(comparing.to_owned()), Block::Code(command)]));
    verdict.all((!found.note.is_empty()).then(|| Block::Text(format!("{}.", capitalised(&found.note)))));
    Document {
        study: found.runs[0].study.clone(),
        what: format!("{} and {}", found.runs[0].run, found.runs[1].run),
        started: found.runs[0].started.clone(),
        question: found.headline.clone(),
        sections: vec![runs, values, verdict],
        ..Document::default()
    }
}

fn runs(found: &SideBySide) -> Table {
    let table = Columns::of(found.runs.iter().zip(&found.machines))
        .text("run", |(run, _)| run.run.as_str())
        .text("started", |(run, _)| run.started.as_str())
        .text("revision", |(run, _)| run.revision.as_deref().unwrap_or("unknown"))
        .text("profile", |(run, _)| run.profile.as_str())
        .text("probe", |(run, _)| run.probe_ns.map_or_else(|| "none".to_owned(), |ns| quantity(ns, "ns")))
        .text("machine", |(_, machine)| machine.to_string());
    table.titled("")
}

#[cfg(test)]
mod tests;
