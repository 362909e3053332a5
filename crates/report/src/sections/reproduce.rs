//! The section on how to repeat a run.

use analysis::Findings;
use analysis::number;
use study::shell_words::join;

use crate::document::{Block, Section};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("reproduce", "Reproduce");
    section.long(Block::Text(format!(
        "Command of this run. Seed {} reproduces the order of trials, the requests and their arrival times.",
        f.seed
    )));
    section.long(Block::Code(join(&f.command)));
    section.long(Block::Text(versions(f)));
    if !f.load.is_empty() {
        section.all(Block::Note(format!("load {}", f.load)));
    }
    let (machine, cpus) = (&f.machine, number::count(f.machine.cpus.len() as u64, "CPU"));
    let imported = if f.imported.is_empty() { String::new() } else { format!(", imported {}", f.imported) };
    let (run, name, model, kernel) = (&f.run, &machine.name, &machine.cpu_model, &machine.kernel);
    section.all(Block::Note(format!("run {run} on {name} ({model}, {cpus}, {kernel}){imported}")));
    section.long(Block::Fold("The study file".to_owned(), vec![Block::Code(f.study_text.clone())]));
    Some(section)
}

fn versions(f: &Findings) -> String {
    let revision =
        f.revision.as_ref().map_or_else(|| "outside a checkout".to_owned(), |revision| format!("revision {revision}"));
    let commit = f.commit.as_ref().map_or_else(String::new, |commit| format!(", working directory at {commit}"));
    format!("Measured by quintain {}, study {revision}{commit}.", f.quintain)
}
