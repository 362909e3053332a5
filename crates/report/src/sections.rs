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
mod requested_and_detail_tables;
mod results;
mod scalability;
mod warnings;

use analysis::{Findings, number};
use study::shell_words::join;

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
    reproduce,
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
    let sentences = analysis::request_trends::sentences(f);
    section.all(sentences.filter(|_| !f.over_requests.is_empty()).map(Block::Text));
    section.unless_empty()
}

fn machine_states(f: &Findings) -> Option<Section> {
    let mut section = Section::new("states", "States of the machine");
    let states = f.states.as_ref().map(|states| format!("Over all trials in run order: {}.", states.sentence));
    section.long([Block::Text(states.unwrap_or_else(|| "Not tested: too few trials.".to_owned()))]);
    Some(section)
}

fn method(f: &Findings) -> Option<Section> {
    let mut section = Section::new("method", "Method");
    section.long(f.method.iter().cloned().map(Block::Text));
    section.unless_empty()
}

fn reproduce(f: &Findings) -> Option<Section> {
    let mut section = Section::new("reproduce", "Reproduce");
    section.long([Block::Text(format!(
        "Command of this run. Seed {} reproduces the order of trials, the requests and their arrival times.",
        f.seed
    ))]);
    section.long([Block::Code(join(&f.command))]);
    let revision =
        f.revision.as_ref().map_or("outside a checkout".to_owned(), |revision| format!("revision {revision}"));
    let commit = f.commit.as_ref().map_or(String::new(), |commit| format!(", working directory at {commit}"));
    let versions = format!("Measured by quintain {}, study {revision}{commit}.", f.quintain);
    section.long([Block::Text(versions)]);
    section.all((!f.load.is_empty()).then(|| Block::Note(format!("load {}", f.load))));
    let (machine, cpus) = (&f.machine, number::count(f.machine.cpus.len() as u64, "CPU"));
    let imported = if f.imported.is_empty() { String::new() } else { format!(", imported {}", f.imported) };
    let (run, name, model, kernel) = (&f.run, &machine.name, &machine.cpu_model, &machine.kernel);
    section.all([Block::Note(format!("run {run} on {name} ({model}, {cpus}, {kernel}){imported}"))]);
    section.long([Block::Fold("The study file".to_owned(), vec![Block::Code(f.study_text.clone())])]);
    Some(section)
}
