//! Origin of the run, and how to repeat it.

use analysis::Findings;
use analysis::number;

use crate::document::{Block, Section};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    let mut section = Section::new("reproduce", "Reproduce");
    section.long(Block::Text(format!(
        "The command that started the run; seed {} reproduces the order of trials, challenges and arrivals.",
        f.seed
    )));
    section.long(Block::Code(command(f)));
    section.long(Block::Text(versions(f)));
    if !f.load.is_empty() {
        section.all(Block::Note(format!("load {}", f.load)));
    }
    let (machine, cpus) = (&f.machine, number::count(f.machine.cpus.len() as u64, "CPU"));
    let imported = if f.imported.is_empty() { String::new() } else { format!(", imported {}", f.imported) };
    section.all(Block::Note(format!(
        "run {} on {} ({}, {cpus}, {}){imported}",
        f.run, machine.name, machine.cpu_model, machine.kernel
    )));
    section.long(Block::Fold("The study file".to_owned(), vec![Block::Code(f.study_text.clone())]));
    Some(section)
}

fn command(f: &Findings) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(safe) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    f.command.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn versions(f: &Findings) -> String {
    let revision =
        f.revision.as_ref().map_or_else(|| "outside a checkout".to_owned(), |revision| format!("revision {revision}"));
    let commit = f.commit.as_ref().map_or_else(String::new, |commit| format!(", working directory at {commit}"));
    format!("Measured by quintain {}, study {revision}{commit}.", f.quintain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted() {
        let mut f = crate::render::html::tests::nothing();
        f.command = ["quintain", "run", "a b", "it's", "", "--set", "server=go"].map(str::to_owned).to_vec();
        assert_eq!(command(&f), "quintain run 'a b' 'it'\\''s' '' --set server=go");
    }
}
