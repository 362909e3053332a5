//! `cargo xtask subjects`: whether servers keep `subjects/REQUIREMENTS.md`.
//!
//! A suite of cases runs against each server as a process; it knows nothing of its language. Every wait is bounded, and no
//! server outlives the suite.

mod cache;
mod cases;
mod http;
mod kind;
mod pingpong;
pub(crate) mod process;
mod response;
pub(crate) mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cases::{Case, MANY, Miss};
use kind::Kind;
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
    kind: Option<Kind>,
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
    check_known(&request.cases)?;
    raise_open_files()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository");

    let mut outcomes = Vec::new();
    if let Some(command) = &request.command {
        let directory = std::env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
        let kind = request.kind.unwrap_or_default();
        outcomes.push(check(kind, command, &directory, &chosen(kind, &request.cases)));
        print(command, &outcomes[0]);
    }
    let all_caches = request.kind == Some(Kind::Cache) && request.command.is_none() && request.names.is_empty();
    for server in if all_caches { cache::standard()? } else { Vec::new() } {
        outcomes.push(server.check(&chosen(Kind::Cache, &request.cases), root));
        print(server.name, &outcomes[outcomes.len() - 1]);
    }
    let names = if request.command.is_some() || all_caches { Vec::new() } else { present(root, &request.names)? };
    for name in names {
        let kind = Kind::of_folder(&name);
        let cases = chosen(kind, &request.cases);
        if cases.is_empty() || request.kind.is_some_and(|wanted| wanted != kind) {
            continue;
        }
        let outcome = match build(&name, root)? {
            Some(unbuilt) => unbuilt,
            None => check(kind, &format!("subjects/{name}/{name} -p {{port}}"), root, &cases),
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
        (failed, _) => Err(format!("error: servers that break subjects/REQUIREMENTS.md: {failed}")),
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
Checks that servers keep subjects/REQUIREMENTS.md.

Usage: cargo xtask subjects [NAME...] [--kind KIND] [--case CASE]...
       cargo xtask subjects --command 'CMD with {port}' [--kind KIND] [--case CASE]...

Without a name every folder of subjects/ is built and checked, or those of a kind; `--kind cache` checks the release build of
`quintain serve cache` on both backends, and memcached and redis-server where they are installed. A command is one that a shell could `exec`;
its kind is ping-pong unless another is said."
        .to_owned();
    for kind in Kind::ALL {
        text += &format!("\n\nCases of {}:", kind.name());
        for case in kind.cases() {
            text += &format!("\n  {:<13} {}", case.name, case.promise);
        }
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
            "--kind" => {
                let name = value()?;
                let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
                let names = Kind::ALL.map(Kind::name).join(", ");
                request.kind = Some(kind.ok_or(format!("error: unknown kind `{name}`: there are {names}"))?);
            }
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

/// Whether each name is that of a case, of whatever kind.
fn check_known(names: &[String]) -> Result<(), String> {
    let known = |name: &String| Kind::ALL.iter().flat_map(|kind| kind.cases()).any(|case| case.name == name);
    names.iter().find(|name| !known(name)).map_or(Ok(()), |name| Err(format!("error: unknown case `{name}`")))
}

/// The cases of a kind, or those named.
fn chosen(kind: Kind, names: &[String]) -> Vec<&'static Case> {
    kind.cases().iter().filter(|case| names.is_empty() || names.iter().any(|name| name == case.name)).collect()
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
    let skipped = ["missing toolchain:", "cannot run here:"]
        .into_iter()
        .find_map(|prefix| Some(Outcome::Skipped(format!("{prefix} {}", make.confession(prefix)?))));
    Ok(Some(match skipped {
        Some(skipped) => skipped,
        None => Outcome::Broken(format!("does not build ({status}){}", LastWords(&make.last_words()))),
    }))
}

fn check(kind: Kind, command: &str, directory: &Path, cases: &[&'static Case]) -> Outcome {
    let (mut passed, mut misses) = (0, Vec::new());
    for case in cases {
        match case.run(kind, command, directory) {
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
            println!("{name:<19} {passed:>3} of {:<3} {verdict}", passed + misses.len());
            for (case, miss) in misses {
                match miss {
                    Miss::Failed(why) => println!("    {case}: {why}"),
                    Miss::NotChecked(why) | Miss::Unrunnable(why) => println!("    {case}: not checked: {why}"),
                }
            }
        }
        Outcome::Skipped(why) => println!("{name:<19} skipped: {why}"),
        Outcome::Broken(why) => println!("{name:<19} FAILS: {why}"),
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
        assert!(check_known(&words(&["zero", "nought"])).is_err());
        assert!(parse(&words(&["--kind", "htpp"])).unwrap_err().ends_with("there are ping-pong, http, cache"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(present(root, &words(&["no-such-subject"])).unwrap_err().contains("c-threaded"));
    }

    #[test]
    fn cases_are_those_of_the_kind() {
        let names =
            |kind, wanted: &[&str]| chosen(kind, &words(wanted)).iter().map(|case| case.name).collect::<Vec<_>>();
        assert_eq!(names(Kind::Http, &["zero", "reset", "head"]), ["head", "reset"]);
        assert_eq!(names(Kind::PingPong, &["head"]), Vec::<&str>::new());
        assert_eq!(names(Kind::PingPong, &[]).len(), 14);
        assert_eq!((Kind::of_folder("http-go"), Kind::of_folder("go")), (Kind::Http, Kind::PingPong));
    }

    #[test]
    fn help_names_every_case() {
        let cases = Kind::ALL.iter().flat_map(|kind| kind.cases());
        assert!(cases.into_iter().all(|case| help().contains(case.name) && help().contains(case.promise)));
    }
}
