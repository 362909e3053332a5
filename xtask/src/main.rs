//! Chores of this repository.

mod alone;
mod blame;
mod built;
mod cache_diff;
mod churn;
mod circles;
mod conformance;
mod coverage;
mod dist;
mod generator;
mod hit_ratio;
mod licences;
mod planted;
mod series;
mod tidy;
mod worlds;

use std::process::ExitCode;

const HELP: &str = "\
Chores of this repository.

Usage: cargo xtask <VERB> [ARGUMENTS]

Verbs:
  tidy      check architecture, documents, terms and sources
  blame     plant faults in trials and check who is blamed; `cargo xtask blame --help` says more
  cache-diff compare the cache server with memcached and redis-server; `cargo xtask cache-diff --help` says more
  churn     check that the memory of the cache server stays within its cap; `cargo xtask churn --help` says more
  coverage  simulate how often the intervals of the statistics hold what they promise
  dist      build and pack a release: static binary, manual pages, completions, licences, checksum
  generator compare the CPU time of a request in two load generators; `cargo xtask generator --help` says more
  hit-ratio replay the gates' workloads against every evictor of the cache
  planted   compare builds whose difference is known, with `quintain compare` and as boards do; `cargo xtask planted --help` says more
  subjects  check that servers keep subjects/REQUIREMENTS.md; `cargo xtask subjects --help` says more
  help      print this";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((verb, rest)) = arguments.split_first() else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    let done = match verb.as_str() {
        "tidy" => tidy::run(rest),
        "blame" => blame::run(rest),
        "cache-diff" => cache_diff::run(rest),
        "churn" => churn::run(rest),
        "coverage" => coverage::run(rest),
        "dist" => dist::run(rest),
        "generator" => generator::run(rest),
        "hit-ratio" => hit_ratio::run(rest),
        "planted" => planted::run(rest),
        "subjects" => conformance::run(rest),
        // What the lab starts this program as: the step that becomes a server, and the watchdog.
        "exec" => exec(rest),
        "watchdog" => lab::watchdog::run(std::io::stdin().lock()).map_err(|error| error.to_string()),
        conformance::BOUND => conformance::become_bound(rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        unknown => {
            eprintln!("error: unknown verb `{unknown}`\n\n{HELP}");
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

/// As `quintain exec`: becomes a command that ends with its parent.
fn exec(arguments: &[String]) -> Result<(), String> {
    let [flag, parent, dashes, command @ ..] = arguments else { return Err("error: `exec` is for the lab".to_owned()) };
    let parent = parent.parse().ok().filter(|_| flag == "--parent" && dashes == "--");
    let command: Vec<std::ffi::OsString> = command.iter().map(Into::into).collect();
    Err(lab::exec::become_command(&[], parent, &command).to_string())
}
