//! `cargo xtask subjects`: whether servers keep `subjects/CONTRACT.md`.
//!
//! A suite of cases runs against each server as a process; it knows nothing of its language. Every wait is bounded, and no
//! server outlives the suite.

mod cases;
mod process;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cases::{CASES, Case, MANY, Miss};
use process::Process;
pub(crate) use process::{BOUND, become_bound};
use server::LastWords;

/// A build that takes longer is stuck: the slowest compiles a few crates.
const BUILD: Duration = Duration::from_secs(600);

/// What the command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Request {
    names: Vec<String>,
    command: Option<String>,
    cases: Vec<String>,
    help: bool,
}

/// What came of one server.
enum Outcome {
    /// It was checked: the cases that were looked at, and those that did not pass.
    Checked { passed: usize, misses: Vec<(&'static str, Miss)> },
    /// It cannot be built or run here.
    Skipped(String),
    /// It does not build.
    Broken(String),
}

/// Builds and checks the subjects named, or all; the error says how many do not conform.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let request = parse(arguments)?;
    if request.help {
        println!("{}", help());
        return Ok(());
    }
    let cases = chosen(&request.cases)?;
    raise_open_files()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository");

    let mut outcomes = Vec::new();
    if let Some(command) = &request.command {
        let directory = std::env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
        outcomes.push(check(command, &directory, &cases));
        print(command, &outcomes[0]);
    }
    let names = if request.command.is_some() { Vec::new() } else { present(root, &request.names)? };
    for name in names {
        let outcome = match build(&name, root)? {
            Some(unbuilt) => unbuilt,
            None => check(&format!("subjects/{name}/{name} -p {{port}}"), root, &cases),
        };
        print(&name, &outcome);
        outcomes.push(outcome);
    }

    let failed = outcomes.iter().filter(|outcome| outcome.fails()).count();
    let skipped = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Skipped(_))).count();
    println!("{} conform, {failed} do not, {skipped} skipped", outcomes.len() - failed - skipped);
    match (failed, outcomes.len() - skipped) {
        (_, 0) => Err("error: nothing was checked".to_owned()),
        (0, _) => Ok(()),
        (failed, _) => Err(format!("error: servers that break subjects/CONTRACT.md: {failed}")),
    }
}

impl Outcome {
    fn fails(&self) -> bool {
        match self {
            Outcome::Checked { misses, .. } => misses.iter().any(|(_, miss)| matches!(miss, Miss::Failed(_))),
            Outcome::Skipped(_) => false,
            Outcome::Broken(_) => true,
        }
    }
}

fn help() -> String {
    let mut text = "\
Checks that servers keep subjects/CONTRACT.md.

Usage: cargo xtask subjects [NAME...] [--case CASE]...
       cargo xtask subjects --command 'CMD with {port}' [--case CASE]...

Without a name every folder of subjects/ is built and checked. A command is one that a shell could `exec`.

Cases:"
        .to_owned();
    for case in &CASES {
        text += &format!("\n  {:<13} {}", case.name, case.promise);
    }
    text
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let mut request = Request::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().cloned().ok_or(format!("error: `{argument}` needs a value"));
        match argument.as_str() {
            "--help" | "-h" => request.help = true,
            "--command" => request.command = Some(value()?),
            "--case" => request.cases.push(value()?),
            unknown if unknown.starts_with('-') => {
                return Err(format!("error: unknown flag `{unknown}`\n\n{}", help()));
            }
            name => request.names.push(name.to_owned()),
        }
    }
    match &request.command {
        Some(_) if !request.names.is_empty() => Err("error: `--command` and a name exclude each other".to_owned()),
        Some(command) if !command.contains("{port}") => Err(format!("error: no `{{port}}` in the command `{command}`")),
        _ => Ok(request),
    }
}

fn chosen(names: &[String]) -> Result<Vec<&'static Case>, String> {
    if names.is_empty() {
        return Ok(CASES.iter().collect());
    }
    let find =
        |name: &String| CASES.iter().find(|case| case.name == name).ok_or(format!("error: unknown case `{name}`"));
    names.iter().map(find).collect()
}

/// The subjects to check: those named, or every folder with a Makefile.
fn present(root: &Path, names: &[String]) -> Result<Vec<String>, String> {
    let folder = root.join("subjects");
    let entries = fs::read_dir(&folder).map_err(|error| format!("error: subjects/: {error}"))?;
    let is_subject = |path: &PathBuf| path.join("Makefile").is_file();
    let mut all: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_subject)
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    all.sort();
    match names.iter().find(|name| !all.contains(name)) {
        Some(unknown) => Err(format!("error: no subject `{unknown}`: there are {}", all.join(", "))),
        None if names.is_empty() => Ok(all),
        None => Ok(names.to_vec()),
    }
}

/// Builds a subject; `None`: it is built.
fn build(name: &str, root: &Path) -> Result<Option<Outcome>, String> {
    let mut make = Process::start(&format!("make -C subjects/{name} {name}"), root)?;
    let Some(status) = make.wait(BUILD) else {
        return Ok(Some(Outcome::Broken(format!("did not build within {BUILD:?}"))));
    };
    if status.success() {
        return Ok(None);
    }
    Ok(Some(match make.confession("missing toolchain:") {
        Some(what) => Outcome::Skipped(format!("missing toolchain: {what}")),
        None => Outcome::Broken(format!("does not build ({status}){}", LastWords(&make.last_words()))),
    }))
}

fn check(command: &str, directory: &Path, cases: &[&'static Case]) -> Outcome {
    let (mut passed, mut misses) = (0, Vec::new());
    for case in cases {
        match case.run(command, directory) {
            Ok(()) => passed += 1,
            Err(Miss::Unrunnable(why)) => return Outcome::Skipped(format!("cannot run here: {why}")),
            Err(miss) => misses.push((case.name, miss)),
        }
    }
    Outcome::Checked { passed, misses }
}

/// The row of a server, and a line for each case that it did not pass.
fn print(name: &str, outcome: &Outcome) {
    match outcome {
        Outcome::Checked { passed, misses } => {
            let verdict = if outcome.fails() { "FAILS" } else { "conforms" };
            println!("{name:<16} {passed:>3} of {:<3} {verdict}", passed + misses.len());
            for (case, miss) in misses {
                match miss {
                    Miss::Failed(why) => println!("    {case}: {why}"),
                    Miss::NotChecked(why) | Miss::Unrunnable(why) => println!("    {case}: not checked: {why}"),
                }
            }
        }
        Outcome::Skipped(why) => println!("{name:<16} skipped: {why}"),
        Outcome::Broken(why) => println!("{name:<16} FAILS: {why}"),
    }
}

/// Makes room for the connections of the suite, here and in the servers, which inherit the limit.
fn raise_open_files() -> Result<(), String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = 4 * MANY as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })
        .map_err(|error| format!("error: {wanted} open files are needed, the limit is {:?}: {error}", limit.maximum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_command_line_is_read() {
        let request = parse(&words(&["go", "rust", "--case", "zero"])).unwrap();
        assert_eq!((request.names, request.cases), (words(&["go", "rust"]), words(&["zero"])));
        let request = parse(&words(&["--command", "x -p {port}"])).unwrap();
        assert_eq!(request.command.as_deref(), Some("x -p {port}"));
    }

    #[test]
    fn a_command_line_that_cannot_be_meant_is_an_error() {
        for wrong in [&["--command"][..], &["--command", "x"], &["go", "--command", "x {port}"], &["--caes", "zero"]] {
            assert!(parse(&words(wrong)).is_err(), "{wrong:?}");
        }
        assert!(chosen(&words(&["nought"])).is_err());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(present(root, &words(&["no-such-subject"])).unwrap_err().contains("c-threaded"));
    }

    #[test]
    fn help_names_every_case() {
        assert!(CASES.iter().all(|case| help().contains(case.name) && help().contains(case.promise)));
    }
}
