//! The section on CPU profiles.

use analysis::findings::{Findings, ProfileDifference, ProfileFinding};
use analysis::number;
use study::cpu_profile::SampledFunction;

use crate::document::{Block, Cell, Columns, Head, Item, Section, Table};

const FUNCTIONS: usize = 8;

pub(crate) fn write(f: &Findings, section: &mut Section) {
    section.all((!f.cpu_profiles.is_empty()).then(|| Block::List(lines(&f.cpu_profiles))));
    let table = Columns::of(f.cpu_profiles.iter().flat_map(functions))
        .text("design point", |(label, ..)| *label)
        .number("self", |(_, share, _)| number::percent(*share))
        .number("samples", |(.., function)| function.self_samples.to_string())
        .text("function", |(.., function)| named(&function.name, function.kernel));
    if let Some(table) = table.titled("Hottest functions, by CPU time of their own").unless_empty() {
        section.all([Block::Table(table)]);
        section.long([Block::Note(
            "One extra trial per design point, not counted as measured, sampled by perf. Self: samples in a function, not in what it calls, over all samples of the server. \
             The flame graphs above have the callers."
                .to_owned(),
        )]);
    }
    for difference in &f.profile_differences {
        section.all([Block::Text(format!("{}.", difference.sentence))]);
        section.all(differences(difference).unless_empty().map(Block::Table));
    }
}

fn lines(profiles: &[ProfileFinding]) -> Vec<Item> {
    let lines = profiles.iter().map(|profile| (profile.sentence.as_str(), profile.label.as_str()));
    let line = |(sentence, labels): (&str, Vec<&str>)| {
        let of_all = labels.len() == profiles.len() && labels.len() > 1;
        let labels = if of_all { "all design points".to_owned() } else { labels.join("; ") };
        Item::new(format!("{labels}: {sentence}"))
    };
    analysis::group_by_key::grouped(lines).into_iter().map(line).collect()
}

fn functions(profile: &ProfileFinding) -> impl Iterator<Item = (&str, f64, &SampledFunction)> {
    profile.functions.iter().take(FUNCTIONS).enumerate().filter_map(|(at, function)| {
        let share = number::ratio(function.self_samples as f64, profile.samples as f64).filter(|share| *share > 0.0)?;
        Some((if at == 0 { profile.label.as_str() } else { "" }, share, function))
    })
}

fn differences(difference: &ProfileDifference) -> Table {
    let ProfileDifference { a, b, functions, .. } = difference;
    let hint = "difference in percent of the CPU time; at least three standard errors of the samples";
    let table = Columns::of(functions)
        .number(a, |function| number::percent(function.a))
        .number(b, |function| number::percent(function.b))
        .column(Head::number("points").hint(hint), |found| format!("{:+.1}", (found.b - found.a) * 100.0))
        .text("function", |function| named(&function.name, function.kernel));
    table.titled(format!("Largest differences: {b} against {a}"))
}

fn named(name: &str, kernel: bool) -> Cell {
    Cell::sentence(if kernel && name != "[kernel]" { format!("{name} [kernel]") } else { name.to_owned() })
}
