//! The steps of a search: offered rates and their verdicts.

use std::collections::BTreeSet;

use super::series_colours::Colours;
use super::{Detail, Drawing, Key};
use crate::panel::{Axis, Layer, Mark, Panel};
use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{Findings, SearchFinding, SearchStep, SearchVerdict};
use analysis::number;

const VERDICTS: [&str; 5] = ["holds", "fails", "undecided", "generator-bound", "says nothing about the objective"];

fn series(step: &SearchStep) -> usize {
    match step.verdict {
        SearchVerdict::Holds => 0,
        SearchVerdict::Fails => 1,
        SearchVerdict::Undecided | SearchVerdict::TooFew => 2,
        SearchVerdict::Generator => 3,
        SearchVerdict::Unknown => 4,
    }
}

pub(super) fn steps(findings: &Findings, detail: Detail) -> Option<Drawing> {
    let searches = findings.searches().filter(|(_, search)| search.steps.iter().any(|step| step.rate_per_s.is_some()));
    let searches = searches.collect::<Vec<_>>();
    let (_, first) = searches.first()?;
    let shown = || searches.iter().take(detail.panels);
    let rates = shown().flat_map(|(_, search)| search.steps.iter().filter_map(|step| step.rate_per_s));
    let y = Axis::of_values(rates, "1/s", "offered rate");
    let last = shown().map(|(_, search)| search.steps.len()).max().unwrap_or(1);
    let x = Axis::linear(0.0, last as f64, "", "step, in run order");
    let first_number = Colours::new(findings).others();
    let alone = searches.len() == 1;
    let panel = |(row, search): &(&analysis::findings::Row, &SearchFinding)| {
        let title = if alone { String::new() } else { row.label.clone() };
        Panel::new(title, x.clone(), y.clone(), layers(search, first_number, detail))
    };
    let tried = shown().flat_map(|(_, search)| search.steps.iter().filter(|step| step.rate_per_s.is_some()));
    let used = tried.map(series).collect::<BTreeSet<_>>();
    let left_out = searches.len().saturating_sub(detail.panels);
    Some(Drawing {
        caption: "One marker per trial, each with a fresh server, by its own verdict. Dashed: the ends of the range \
                  found; between them the verdict is unknown."
            .to_owned(),
        keys: used.into_iter().map(|series| Key::measured(first_number + series, VERDICTS[series])).collect(),
        panels: shown().map(panel).collect(),
        notes: super::left_out(left_out, "panels are not drawn").into_iter().collect(),
        ..Drawing::new("search", format!("Search for the highest rate at which {}", first.objective))
    })
}

fn layers(search: &SearchFinding, first_number: usize, detail: Detail) -> Vec<Layer> {
    let ends = [search.low, search.high].into_iter().flatten();
    let mut layers = ends.map(|end| Layer::Rule(end.rate_per_s)).collect::<Vec<_>>();
    let mut marks = vec![Vec::new(); VERDICTS.len()];
    for (index, step) in search.steps.iter().enumerate() {
        let Some(rate_per_s) = step.rate_per_s else { continue };
        let words = || format!("{}: {}\n{}", serde_name(step.purpose), number::quantity(rate_per_s, "1/s"), step.why);
        marks[series(step)].push(Mark::at((index + 1) as f64, rate_per_s, detail.tip(words)));
    }
    let marks = (first_number..).zip(marks).filter(|(_, marks)| !marks.is_empty());
    layers.extend(marks.map(|(series, marks)| Layer::Marks { series, marks, joined: false, aside: 0.0 }));
    layers
}
