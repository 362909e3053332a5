//! Expands the study with a given name into a plan, and renders errors in studies.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use lab::cluster::Cluster;
use study::{Diagnostic, ExpandOptions, Plan, Profile};

use crate::built_in::{self, STUDIES};
use crate::cli::StudyArgs;
use crate::command_result::{Exit, Problem, Result, cannot, usage};
use crate::{collected_mistakes, os_limits, output};

const STDIN: &str = "stdin";

/// Environment variable with the number of operations, as in Whip's benchmarks.
const NUM_OPS: &str = "NUM_OPS";
const OPS: &str = "ops";

#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    pub(crate) shown: String,
    text: String,
    /// Base of relative paths in the study's commands and file names.
    pub(crate) directory: PathBuf,
    /// Directory in the repository of the study; `None` for standard input.
    repository: Option<PathBuf>,
    pub(crate) is_built_in: bool,
}

#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) source: Source,
    pub(crate) plan: Plan,
    pub(crate) profile: Profile,
}

/// The machines of a run: a cluster, if there is one, and the CPUs of the server's machine for which to plan.
pub(crate) struct Machine {
    pub(crate) cluster: Option<Rc<Cluster>>,
    pub(crate) cpus: Vec<u32>,
}

/// Reads, checks and expands the study of `args` for the server's machine. Fails with all errors.
pub(crate) fn open(args: &StudyArgs, machine: &Machine) -> Result<Opened> {
    find(&args.study)?.expand(args, machine)
}

/// Checks and expands the study that the flags of `quintain compare` make.
pub(crate) fn of_compare(text: String, args: &StudyArgs, machine: &Machine) -> Result<Opened> {
    let here = PathBuf::from(".");
    let (name, shown) = ("compare".to_owned(), "the study of these flags".to_owned());
    let source = Source { name, shown, text, directory: here.clone(), repository: Some(here), is_built_in: false };
    source.expand(args, machine)
}

impl Source {
    /// Revision of the study; `None` for standard input or without a repository.
    pub(crate) fn revision(&self) -> Option<String> {
        match self.is_built_in {
            true => Some(format!("built-in-{}", built_in::HASH)),
            false => lab::git_revision::of(self.repository.as_deref()?),
        }
    }

    fn expand(self, args: &StudyArgs, Machine { cluster, cpus }: &Machine) -> Result<Opened> {
        let Source { shown, text, directory, .. } = &self;
        let profile = match (args.quick, args.full) {
            (true, _) => Profile::Quick,
            (_, true) => Profile::Full,
            _ => Profile::Default,
        };
        let (machine_cpus, generators_apart) = (cpus.len() as u32, cluster.is_some());
        let (name, seed, sets) = (self.name.clone(), args.seed, args.sets.clone());
        let mut options = ExpandOptions { name, seed, profile, machine_cpus, generators_apart, sets };
        let plan = study::parse(text).and_then(|study| {
            options.sets.splice(0..0, ops_of_environment(&study, output::variable(NUM_OPS)));
            study::expand(&study, &options)
        });
        let mut plan = plan.map_err(|mistakes| mistaken(Path::new(shown), text, &mistakes))?;
        let missing = lab::missing_files(&plan, directory);
        if !missing.is_empty() {
            let hint = "file names in a study are relative to the directory of its file, or to the one above if that is `studies`";
            return Err(usage(format!("`{shown}`: {}", missing.join("; "))).hint(hint));
        }
        for point in plan.points.iter_mut().filter(|point| point.unrunnable.is_none()) {
            point.unrunnable = match cluster {
                None => os_limits::obstacle(&point.load),
                Some(cluster) => cluster.refuses(&point.load),
            };
        }
        Ok(Opened { source: self, plan, profile })
    }
}

/// Value of the operations factor from the environment, if the study has that factor. `--set` takes precedence.
fn ops_of_environment(study: &study::Study, ops: Option<String>) -> Option<(String, String)> {
    let ops = ops.filter(|ops| !ops.trim().is_empty() && study.factors().any(|factor| factor == OPS))?;
    crate::output::message(&format!("note: the environment variable {NUM_OPS}={ops} sets `{OPS}`"));
    Some((OPS.to_owned(), ops))
}

/// Finds a study: a file, here or in `studies/`; a built-in study; or `-` for standard input. Fails if there is none.
fn find(study: &str) -> Result<Source> {
    if study == "-" {
        let (mut text, most) = (String::new(), study::TEXT_MAX_BYTES as u64 + 1);
        let read = std::io::stdin().lock().take(most).read_to_string(&mut text);
        read.map_err(cannot(Exit::Usage, "read", Path::new(STDIN)))?;
        let (name, directory) = (STDIN.to_owned(), PathBuf::from("."));
        return Ok(Source { shown: name.clone(), name, text, directory, repository: None, is_built_in: false });
    }
    let given = Path::new(study);
    let beside = PathBuf::from(format!("{study}.toml"));
    let named = Path::new(STUDIES).join(&beside);
    if let Some(file) = [given, &beside, &named].into_iter().find(|path| path.is_file()) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (shown, text) = (file.display().to_string(), output::read(file)?);
        let (directory, repository) = (directory_of(file), Some(folder_of(file).to_owned()));
        return Ok(Source { name, shown, text, directory, repository, is_built_in: false });
    }
    if let Some(text) = built_in::study(study) {
        let (name, shown, text) = (study.to_owned(), format!("{study} (built in)"), text.to_owned());
        return Ok(Source { name, shown, text, directory: built_in::unpack()?, repository: None, is_built_in: true });
    }
    let looks_like_a_path = given.components().count() > 1 || given.extension().is_some();
    if looks_like_a_path {
        let name = given.strip_prefix(STUDIES).ok().and_then(|rest| rest.to_str()?.strip_suffix(".toml"));
        let hint = name
            .filter(|name| built_in::study(name).is_some())
            .map(|name| format!("`{name}` is built in: name it without a path, or `quintain studies copy {name}`"));
        return Err(usage(format!("no study file `{study}`")).hint_if(hint));
    }
    let local = std::fs::read_dir(STUDIES).into_iter().flatten().flatten().filter_map(name_of);
    let names = local.chain(built_in::names().map(str::to_owned)).collect::<BTreeSet<_>>();
    let (beside, named) = (beside.display(), named.display());
    let text = format!("unknown study `{study}`: neither a file, nor `{beside}` or `{named}`, nor built in");
    Err(usage(text).hint(config::nearest::suggestion(study, names.iter().map(String::as_str))))
}

/// Directory in which commands of a study start: the directory of its file. For a file in a directory `studies`, it is
/// the parent, because such studies name files beside `studies`.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    let folder = folder_of(path);
    let is_of_studies = folder.canonicalize().is_ok_and(|folder| folder.ends_with(built_in::STUDIES));
    match folder.components().next_back() {
        _ if !is_of_studies => folder.to_path_buf(),
        Some(Component::Normal(_)) => folder_of(folder).to_path_buf(),
        _ => folder.join(".."),
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn name_of(entry: std::fs::DirEntry) -> Option<String> {
    let path = entry.path();
    (path.extension()? == "toml").then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))?
}

pub(crate) fn mistaken(path: &Path, text: &str, found: &[Diagnostic]) -> Problem {
    let all = format!("{} in `{}`", analysis::number::count(found.len() as u64, "error"), path.display());
    Problem::rendered(Exit::Usage, collected_mistakes::rendered(path, text, found) + &all)
}
