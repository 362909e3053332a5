//! The sections of a report, in order.

mod cells;
mod comparisons;
mod containers;
mod cpu_profiles;
mod effects;
mod failures;
mod gate;
mod head;
mod machine;
mod miss_ratio;
mod proxy_overhead;
mod reproduce;
mod requested_and_detail_tables;
mod results;
mod scalability;
mod warnings;

use analysis::Findings;

use crate::document::{Block, Document, Section};

/// Sections with the results. Forms that can fold show only these sections and the figures at first.
const RESULTS: [fn(&Findings) -> Option<Section>; 3] = [gate::section, results::section, proxy_overhead::section];

const DETAILS: [fn(&Findings) -> Option<Section>; 14] = [
    failures::section,
    warnings::section,
    comparisons::section,
    supporting_figures,
    containers::section,
    cpu_profiles::section,
    request_trends,
    miss_ratio::section,
    scalability::section,
    effects::section,
    machine_states,
    machine::section,
    method,
    reproduce::section,
];

pub(crate) fn short(findings: &Findings) -> Document {
    let sections = [gate::section, cpu_profiles::section, warnings::section];
    Document { sections: sections.iter().filter_map(|section| section(findings)).collect(), ..head::head(findings) }
}

pub(crate) fn document(findings: &Findings) -> Document {
    let results = RESULTS
        .iter()
        .filter_map(|section| section(findings))
        .chain([Section::of_figures("figures", "Figures", false)]);
    let details = DETAILS.iter().filter_map(|section| Some(Section { folded: true, ..section(findings)? }));
    Document { sections: results.chain(details).collect(), ..head::head(findings) }
}

fn supporting_figures(_: &Findings) -> Option<Section> {
    Some(Section::of_figures("more-figures", "Distributions and trials", true))
}

fn request_trends(f: &Findings) -> Option<Section> {
    let mut section = Section::new("over-requests", "Over requests");
    if !f.over_requests.is_empty() {
        analysis::request_trends::sentences(f).for_each(|sentence| section.all(Block::Text(sentence)));
    }
    section.unless_empty()
}

fn machine_states(f: &Findings) -> Option<Section> {
    let mut section = Section::new("states", "States of the machine");
    section.long(Block::Text(match &f.states {
        Some(states) => format!("Over all trials in run order: {}.", states.sentence),
        None => "Not tested: too few trials.".to_owned(),
    }));
    Some(section)
}

fn method(f: &Findings) -> Option<Section> {
    let mut section = Section::new("method", "Method");
    f.method.iter().for_each(|paragraph| section.long(Block::Text(paragraph.clone())));
    section.unless_empty()
}
