//! The sections of a report, one file each, in the order of [`SECTIONS`].

mod agents;
mod cells;
mod comparisons;
mod containers;
mod cpu_profiles;
mod effects;
mod failures;
mod figures;
mod gate;
mod head;
mod machine;
mod machine_states;
mod method;
mod miss_causes;
mod miss_ratio;
mod operations;
mod proxy_overhead;
mod reproduce;
mod request_trends;
mod results;
mod scalability;
mod searches;
mod tables;
mod warnings;

use analysis::Findings;

use crate::document::{Document, Section};

/// All sections; `None` if a section has no content.
const SECTIONS: [fn(&Findings) -> Option<Section>; 17] = [
    gate::section,
    figures::section,
    results::section,
    failures::section,
    comparisons::section,
    proxy_overhead::section,
    containers::section,
    cpu_profiles::section,
    request_trends::section,
    miss_ratio::section,
    scalability::section,
    effects::section,
    machine_states::section,
    warnings::section,
    machine::section,
    method::section,
    reproduce::section,
];

/// The result of a comparison of two, for a pull request.
pub(crate) fn short(findings: &Findings) -> Document {
    let sections = [gate::section, cpu_profiles::section, warnings::section];
    Document { sections: sections.iter().filter_map(|section| section(findings)).collect(), ..head::head(findings) }
}

pub(crate) fn document(findings: &Findings) -> Document {
    Document { sections: SECTIONS.iter().filter_map(|section| section(findings)).collect(), ..head::head(findings) }
}
