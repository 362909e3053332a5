//! Maintenance tasks of this repository.

mod dist;
mod import_cycles;
mod licences;
mod prose_phrases_and_sentences;
mod tidy;
mod verify_subjects;

use std::process::ExitCode;

const HELP: &str = "\
Chores of this repository.

Usage: cargo xtask tidy
       cargo xtask dist [TRIPLE]
       cargo xtask subjects [NAME...]

  tidy      check architecture, documents, terms and sources
  dist      build and pack a release in target/dist: static binary, manual pages, completions, licences, checksum; TRIPLE is
            the target [default: x86_64-unknown-linux-musl]
  subjects  build the servers of subjects/, or those named, and check them with `quintain verify`";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["tidy"] => tidy::run(),
        ["dist"] => dist::run(dist::TARGET),
        ["dist", target] if !target.starts_with('-') => dist::run(target),
        ["subjects", ref names @ ..] if !names.iter().any(|name| name.starts_with('-')) => verify_subjects::run(names),
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
