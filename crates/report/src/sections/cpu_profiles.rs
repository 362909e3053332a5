//! The section on CPU profiles.

use analysis::findings::{Findings, ProfileDifference, ProfileFinding};
use analysis::number;

use crate::document::{Block, Cell, Head, Item, Section, Table};

const FUNCTIONS: usize = 8;

pub(crate) fn section(f: &Findings) -> Option<Section> {
    if f.cpu_profiles.is_empty() {
        return None;
    }
    let mut section = Section::new("cpu-profiles", "CPU profiles");
    section.all(Block::List(lines(&f.cpu_profiles)));
    let rows = f.cpu_profiles.iter().flat_map(functions).collect();
    let title = "Hottest functions, by CPU time of their own".to_owned();
    let heads = vec![Head::text("design point"), Head::number("self"), Head::number("samples"), Head::text("function")];
    if let Some(table) = (Table { title, heads, rows, ..Table::default() }).unless_empty() {
        section.all(Block::Table(table));
        section.long(Block::Note(
            "One extra trial per design point, not counted as measured, sampled by perf. Self: samples in a function, not in what it calls, over all samples of the server. \
             The flame graphs above have the callers."
                .to_owned(),
        ));
    }
    for difference in &f.profile_differences {
        section.all(Block::Text(format!("{}.", difference.sentence)));
        if !difference.functions.is_empty() {
            section.all(Block::Table(differences(difference)));
        }
    }
    Some(section)
}

fn lines(profiles: &[ProfileFinding]) -> Vec<Item> {
    let lines = profiles.iter().map(|profile| (profile.sentence.as_str(), profile.label.as_str()));
    let lines = analysis::group_by_key::grouped(lines);
    let line = |(sentence, labels): (&str, Vec<&str>)| {
        let of_all = labels.len() == profiles.len() && labels.len() > 1;
        let labels = if of_all { "all design points".to_owned() } else { labels.join("; ") };
        Item::new(format!("{labels}: {sentence}"))
    };
    lines.into_iter().map(line).collect()
}

fn functions(profile: &ProfileFinding) -> Vec<Vec<Cell>> {
    let row = |(at, function): (usize, &study::cpu_profile::SampledFunction)| {
        let share = profile.share(function).filter(|share| *share > 0.0)?;
        Some(vec![
            Cell::new(if at == 0 { profile.label.as_str() } else { "" }),
            Cell::new(number::percent(share)),
            Cell::new(function.self_samples.to_string()),
            Cell::sentence(named(&function.name, function.kernel)),
        ])
    };
    profile.functions.iter().take(FUNCTIONS).enumerate().filter_map(row).collect()
}

fn differences(difference: &ProfileDifference) -> Table {
    let ProfileDifference { a, b, functions, .. } = difference;
    let rows = functions.iter().map(|function| {
        vec![
            Cell::new(number::percent(function.a)),
            Cell::new(number::percent(function.b)),
            Cell::new(format!("{:+.1}", (function.b - function.a) * 100.0)),
            Cell::sentence(named(&function.name, function.kernel)),
        ]
    });
    let hint = "difference in percent of the CPU time; at least three standard errors of the samples";
    let points = Head::number("points").hint(hint);
    let heads = vec![Head::number(a.as_str()), Head::number(b.as_str()), points, Head::text("function")];
    Table { title: format!("Largest differences: {b} against {a}"), heads, rows: rows.collect(), below: Vec::new() }
}

fn named(name: &str, kernel: bool) -> String {
    if kernel && name != "[kernel]" { format!("{name} [kernel]") } else { name.to_owned() }
}
