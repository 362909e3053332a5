//! The sections of a report, in order.

mod cells;
mod comparisons;
mod containers;
mod cpu_profiles;
mod effects;
mod failures_and_warnings;
mod gate;
mod head;
mod machine;
mod miss_ratio;
mod proxy_overhead;
mod requested_and_detail_tables;
mod results;
mod scalability;

use analysis::{Findings, number};
use study::shell_words::join;

use crate::document::{Block, Document, Section};

/// Sections in order, by anchor and heading, with the function that adds the blocks. A section without blocks is omitted.
const SECTIONS: [Entry; 18] = [
    ("gate", "Against the baseline", gate::write),
    ("results", "Results", results::write),
    ("added", "Proxy overhead", proxy_overhead::write),
    ("figures", "Figures", |_, section| section.long([Block::Figures { supporting: false }])),
    ("failures", "Failures and errors", failures_and_warnings::failures),
    ("warnings", "Warnings", failures_and_warnings::warnings),
    ("comparisons", "Comparisons", comparisons::write),
    ("more-figures", "Distributions and trials", |_, section| section.long([Block::Figures { supporting: true }])),
    ("containers", "Containers and companions", containers::write),
    ("cpu-profiles", "CPU profiles", cpu_profiles::write),
    ("over-requests", "Over requests", request_trends),
    ("miss-ratio", "Miss ratio", miss_ratio::write),
    ("scalability", "Scalability", scalability::write),
    ("effects", "Effects of the factors", effects::write),
    ("states", "States of the machine", machine_states),
    ("machine", "Machine", machine::write),
    ("method", "Method", |f, section| section.long(f.method.iter().cloned().map(Block::Text))),
    ("reproduce", "Reproduce", reproduce),
];

type Entry = (&'static str, &'static str, fn(&Findings, &mut Section));

/// Number of sections with results, including figures. Forms that can fold show only these at first.
const RESULTS: usize = 4;

/// Anchors of the sections in a short report, in order.
const SHORT: [&str; 3] = ["gate", "cpu-profiles", "warnings"];

pub(crate) fn short(findings: &Findings) -> Document {
    let mut document = document(findings);
    let place = |section: &Section| SHORT.iter().position(|anchor| *anchor == section.anchor);
    document.sections.retain(|section| place(section).is_some());
    document.sections.sort_by_key(place);
    document
}

pub(crate) fn document(findings: &Findings) -> Document {
    let section = |(at, (anchor, heading, write)): (usize, Entry)| {
        let mut section = Section { folded: at >= RESULTS, ..Section::new(anchor, heading) };
        write(findings, &mut section);
        (!section.blocks.is_empty()).then_some(section)
    };
    Document { sections: SECTIONS.into_iter().enumerate().filter_map(section).collect(), ..head::head(findings) }
}

fn request_trends(f: &Findings, section: &mut Section) {
    section.all(f.over_requests.iter().map(|found| Block::Text(format!("{}.", found.sentence))));
}

fn machine_states(f: &Findings, section: &mut Section) {
    let states = f.states.as_ref().map(|states| format!("Over all trials in run order: {}.", states.sentence));
    section.long([Block::Text(states.unwrap_or_else(|| "Not tested: too few trials.".to_owned()))]);
}

fn reproduce(f: &Findings, section: &mut Section) {
    section.long([Block::Text(format!(
        "Command of this run. Seed {} reproduces the order of trials, the requests and their arrival times.",
        f.seed
    ))]);
    section.long([Block::Code(join(&f.command))]);
    let revision =
        f.revision.as_ref().map_or("outside a checkout".to_owned(), |revision| format!("revision {revision}"));
    let commit = f.commit.as_ref().map_or(String::new(), |commit| format!(", working directory at {commit}"));
    section.long([Block::Text(format!("Measured by quintain {}, study {revision}{commit}.", f.quintain))]);
    section.all((!f.load.is_empty()).then(|| Block::Note(format!("load {}", f.load))));
    let (machine, cpus) = (&f.machine, number::count(f.machine.cpus.len() as u64, "CPU"));
    let imported = if f.imported.is_empty() { String::new() } else { format!(", imported {}", f.imported) };
    let (run, name, model, kernel) = (&f.run, &machine.name, &machine.cpu_model, &machine.kernel);
    section.all([Block::Note(format!("run {run} on {name} ({model}, {cpus}, {kernel}){imported}"))]);
    section.long([Block::Fold("The study file".to_owned(), vec![Block::Code(f.study_text.clone())])]);
}
