//! Two runs side by side, for a terminal.

use analysis::enum_words_and_lists::capitalised;
use analysis::findings::SideBySide;
use analysis::number::quantity;

use crate::document::{Block, Cell, Document, Head, Section, Table};
use crate::history::shown;
use crate::render;
use crate::terminal_style_and_wrap::Style;

/// Renders the headline, the runs, a table per metric, and the reasons why there is no verdict.
pub fn side_by_side_terminal(found: &SideBySide, style: &Style) -> String {
    render::terminal::terminal(&document(found), style)
}

fn document(found: &SideBySide) -> Document {
    let mut runs = Section::new("runs", "Runs");
    runs.all(Block::Table(heads(found)));
    let mut values = Section::new("values", "Values");
    for metric in &found.metrics {
        let rows = found.points.iter().filter_map(|point| {
            let both = point.values.get(metric.name)?;
            let cell = |value: &Option<_>| {
                Cell::new(value.as_ref().map_or_else(|| "–".to_owned(), |value| shown(value, metric.unit)))
            };
            let [first, second] = both.each_ref().map(cell);
            both.iter().any(Option::is_some).then(|| vec![Cell::new(&*point.label), first, second])
        });
        let heads = [Head::text("design point"), Head::number(&*found.runs[0].run), Head::number(&*found.runs[1].run)];
        let (title, heads) = (metric.text.to_owned(), heads.to_vec());
        let table = Table { title, heads, rows: rows.collect(), ..Table::default() };
        table.unless_empty().into_iter().for_each(|table| values.all(Block::Table(table)));
    }
    let mut verdict = Section::new("verdict", "Verdict");
    found.reasons.iter().for_each(|reason| verdict.all(Block::Text(reason.clone())));
    if let Some(command) = &found.command {
        verdict.all(Block::Text("This compares them in one run, block by block:".to_owned()));
        verdict.all(Block::Code(command.clone()));
    }
    if !found.note.is_empty() {
        verdict.all(Block::Text(format!("{}.", capitalised(&found.note))));
    }
    Document {
        study: found.runs[0].study.clone(),
        what: format!("{} and {}", found.runs[0].run, found.runs[1].run),
        started: found.runs[0].started.clone(),
        question: found.headline.clone(),
        sections: vec![runs, values, verdict],
        ..Document::default()
    }
}

fn heads(found: &SideBySide) -> Table {
    let heads = ["run", "started", "revision", "profile", "probe", "machine"].map(Head::text).to_vec();
    let rows = found.runs.iter().zip(&found.machines).map(|(run, machine)| {
        let probe = run.probe_ns.map_or_else(|| "none".to_owned(), |ns| quantity(ns, "ns"));
        let revision = run.revision.clone().unwrap_or_else(|| "unknown".to_owned());
        [run.run.clone(), run.started.clone(), revision, run.profile.clone(), probe, machine.to_string()]
            .map(Cell::new)
            .to_vec()
    });
    Table { heads, rows: rows.collect(), ..Table::default() }
}

#[cfg(test)]
mod tests;
