//! `cargo xtask subjects`: whether servers keep `subjects/REQUIREMENTS.md`.
//!
//! The cases are those of `quintain verify`, with those of `subjects/http.toml` for HTTP; this builds and chooses servers, and says what came of them.

mod caches;
pub(crate) mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::verify::{NotStarted, Order, Target};
use study::cases::Case;
use study::plan::SubjectPlan;
use study::verification::{CaseOutcome, CaseResult, SUITES, Suite};

use process::Process;
pub(crate) use process::{BOUND, become_bound};

/// A build that takes longer is stuck: the slowest compiles a few crates.
const BUILD: Duration = Duration::from_secs(600);
/// Open files of the cases with many connections, here and in the servers, which inherit the limit.
const FILES: u64 = 4_000;
/// The pages of the subjects of HTTP.
const PAGES: &str = "subjects/http.toml";

/// What the command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Request {
    names: Vec<String>,
    command: Option<String>,
    kind: Option<Suite>,
    cases: Vec<String>,
    help: bool,
}

/// What came of one server.
enum Outcome {
    /// It was checked.
    Checked(Vec<CaseResult>),
    /// It cannot be built or run here.
    Skipped(String),
    /// It does not build, or does not start.
    Broken(String),
}

/// Builds and checks the subjects named, or all; the error says how many do not conform.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let request = parse(arguments)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository");
    let pages = pages(root)?;
    if request.help {
        println!("{}", help(&pages));
        return Ok(());
    }
    check_known(&request.cases, &pages)?;
    raise_open_files()?;

    let mut outcomes = Vec::new();
    if let Some(command) = &request.command {
        let directory = std::env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
        let kind = request.kind.unwrap_or(Suite::Pingpong);
        outcomes.push(check(kind, command, &directory, &request.cases, &pages));
        print(command, &outcomes[0]);
    }
    let all_caches = request.kind == Some(Suite::Cache) && request.command.is_none() && request.names.is_empty();
    for server in if all_caches { caches::standard()? } else { Vec::new() } {
        outcomes.push(server.check(&request.cases, root));
        print(server.name, &outcomes[outcomes.len() - 1]);
    }
    let names = if request.command.is_some() || all_caches { Vec::new() } else { present(root, &request.names)? };
    for name in names {
        let kind = kind_of_folder(&name);
        if chosen(kind, &request.cases, &pages).is_empty() || request.kind.is_some_and(|wanted| wanted != kind) {
            continue;
        }
        let outcome = match build(&name, root)? {
            Some(unbuilt) => unbuilt,
            None => check(kind, &format!("subjects/{name}/{name} -p {{port}}"), root, &request.cases, &pages),
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
            Outcome::Checked(cases) => cases.iter().any(|case| matches!(case.outcome, CaseOutcome::Failed(_))),
            Outcome::Skipped(_) => false,
            Outcome::Broken(_) => true,
        }
    }
}

fn help(pages: &[Case]) -> String {
    let mut text = "\
Checks that servers keep subjects/REQUIREMENTS.md.

Usage: cargo xtask subjects [NAME...] [--kind KIND] [--case CASE]...
       cargo xtask subjects --command 'CMD with {port}' [--kind KIND] [--case CASE]...

Without a name every folder of subjects/ is built and checked, or those of a kind; `--kind cache` checks the release build of
`quintain serve cache` on both backends, and memcached and redis-server where they are installed. A command is one that a shell could `exec`;
its kind is pingpong unless another is said."
        .to_owned();
    for (kind, suite) in SUITES {
        text += &format!("\n\nCases of {kind}:");
        for (name, promise) in lab::verify::names(&order(suite, &[], pages)) {
            text += &format!("\n  {name:<13} {promise}");
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
                let kind = SUITES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
                let names = SUITES.map(|(name, _)| name).join(", ");
                request.kind = Some(kind.ok_or(format!("error: unknown kind `{name}`: there are {names}"))?);
            }
            "--case" => request.cases.push(value()?),
            unknown if unknown.starts_with('-') => {
                return Err(format!("error: unknown flag `{unknown}`\n\nhint: `cargo xtask subjects --help`"));
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

/// The cases of the pages that subjects of HTTP have.
fn pages(root: &Path) -> Result<Vec<Case>, String> {
    let text = fs::read_to_string(root.join(PAGES)).map_err(|error| format!("error: {PAGES}: {error}"))?;
    study::cases::parse(&text).map_err(|all| all.iter().map(|one| one.in_file(PAGES) + "\n").collect())
}

/// What the subject in this folder speaks.
fn kind_of_folder(name: &str) -> Suite {
    if name.starts_with("http-") { Suite::Http } else { Suite::Pingpong }
}

/// What is checked of a kind of server.
fn order(kind: Suite, names: &[String], pages: &[Case]) -> Order {
    Order {
        suite: Some(kind),
        cases: if kind == Suite::Http { pages.to_vec() } else { Vec::new() },
        names: names.to_vec(),
        path: "/".to_owned(),
        seed: 1,
        seen_by_clients: false,
    }
}

/// Whether each name is that of a case, of whatever kind.
fn check_known(names: &[String], pages: &[Case]) -> Result<(), String> {
    let all: Vec<String> = SUITES.iter().flat_map(|(_, kind)| chosen(*kind, &[], pages)).collect();
    let unknown = names.iter().find(|name| !all.contains(name));
    unknown.map_or(Ok(()), |name| Err(format!("error: unknown case `{name}`")))
}

/// The cases of a kind, or those named.
fn chosen(kind: Suite, names: &[String], pages: &[Case]) -> Vec<String> {
    let all = lab::verify::names(&order(kind, &[], pages)).into_iter().map(|(name, _)| name);
    all.filter(|name| names.is_empty() || names.contains(name)).collect()
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
        None => Outcome::Broken(format!("does not build ({status}); its last words: {}", make.last_words())),
    }))
}

fn check(kind: Suite, command: &str, directory: &Path, names: &[String], pages: &[Case]) -> Outcome {
    let plan = match SubjectPlan::of_command(command) {
        Ok(plan) => SubjectPlan { stop_timeout_ns: 1_000_000_000, ..plan },
        Err(why) => return Outcome::Broken(why),
    };
    let exe = match std::env::current_exe() {
        Ok(exe) => exe,
        Err(error) => return Outcome::Broken(format!("the path of this program: {error}")),
    };
    let target = Target::Command { exe: &exe, plan: &plan, directory };
    match lab::verify::verify(&order(kind, names, pages), target, &|| false, &mut |_| {}) {
        Ok(verification) => Outcome::Checked(verification.cases),
        Err(why @ NotStarted::Unrunnable(_)) => Outcome::Skipped(why.to_string()),
        Err(why) => Outcome::Broken(why.to_string()),
    }
}

/// The row of a server, and a line for each case that it did not pass.
fn print(name: &str, outcome: &Outcome) {
    match outcome {
        Outcome::Checked(cases) => {
            let verdict = if outcome.fails() { "FAILS" } else { "conforms" };
            let passed = cases.iter().filter(|case| case.outcome == CaseOutcome::Ok).count();
            println!("{name:<19} {passed:>3} of {:<3} {verdict}", cases.len());
            for case in cases {
                match &case.outcome {
                    CaseOutcome::Ok => {}
                    CaseOutcome::Failed(miss) => println!("    {}: {miss}", case.name),
                    CaseOutcome::Skipped { reason } => println!("    {}: not checked: {reason}", case.name),
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
    let wanted = FILES;
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
        assert!(parse(&words(&["--kind", "htpp"])).unwrap_err().ends_with("there are pingpong, http, cache"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(present(root, &words(&["no-such-subject"])).unwrap_err().contains("c-threaded"));
    }

    #[test]
    fn cases_are_those_of_the_kind() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let pages = pages(root).unwrap();
        let names = |kind, wanted: &[&str]| chosen(kind, &words(wanted), &pages);
        assert_eq!(names(Suite::Http, &["zero", "reset", "head", "answers"]), ["head", "answers", "reset"]);
        assert_eq!(names(Suite::Pingpong, &["head"]), Vec::<String>::new());
        assert_eq!(names(Suite::Pingpong, &[]).len(), 15);
        assert_eq!((kind_of_folder("http-go"), kind_of_folder("go")), (Suite::Http, Suite::Pingpong));
        let text = help(&pages);
        assert!(names(Suite::Http, &[]).iter().all(|name| text.contains(name)));
        assert!(check_known(&words(&["zero", "bytes"]), &pages).is_ok());
        assert!(check_known(&words(&["zero", "nought"]), &pages).is_err());
    }
}
