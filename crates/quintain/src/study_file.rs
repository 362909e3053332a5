//! Turns the name of a study into a plan, and renders errors in a study.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use lab::cluster::Cluster;
use study::{Diagnostic, ExpandOptions, Plan, Profile};

use crate::built_in::{self, STUDIES};
use crate::cli::StudyArgs;
use crate::message::{Exit, Problem, cannot};
use crate::{limits, mistakes};

const STDIN: &str = "stdin";

/// The environment variable with the number of operations in Whip's benchmarks, and the factor that
/// it sets.
const NUM_OPS: &str = "NUM_OPS";
const OPS: &str = "ops";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    BuiltIn(&'static str),
    Stdin,
    /// Flags of a command, with the name of the resulting study.
    Flags(String),
}

#[derive(Debug)]
pub(crate) struct Opened {
    source: Source,
    pub(crate) plan: Plan,
    pub(crate) profile: Profile,
    /// The directory that commands and file names of the study are relative to.
    pub(crate) directory: PathBuf,
}

impl Opened {
    pub(crate) fn shown(&self) -> String {
        self.source.shown()
    }

    pub(crate) fn is_built_in(&self) -> bool {
        matches!(self.source, Source::BuiltIn(_))
    }

    /// The study's revision; `None` for standard input or without a repository.
    pub(crate) fn revision(&self) -> Option<String> {
        match &self.source {
            Source::File(path) => lab::revision::of(folder_of(path)),
            Source::BuiltIn(_) => Some(format!("built-in-{}", built_in::HASH)),
            Source::Stdin => None,
            Source::Flags(_) => lab::revision::of(Path::new(".")),
        }
    }
}

impl Source {
    fn shown(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::BuiltIn(name) => format!("{name} (built in)"),
            Source::Stdin => STDIN.to_owned(),
            Source::Flags(_) => "the study of these flags".to_owned(),
        }
    }

    fn name(&self) -> String {
        match self {
            Source::File(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            Source::BuiltIn(name) => (*name).to_owned(),
            Source::Stdin => STDIN.to_owned(),
            Source::Flags(name) => name.clone(),
        }
    }

    fn directory(&self) -> Result<PathBuf, Problem> {
        let path = match self {
            Source::File(path) => path,
            Source::BuiltIn(_) => return built_in::unpack(),
            Source::Stdin | Source::Flags(_) => return Ok(PathBuf::from(".")),
        };
        Ok(directory_of(path))
    }

    fn text(&self) -> Result<String, Problem> {
        let text = match self {
            Source::BuiltIn(name) => return Ok(built_in::study(name).unwrap_or_default().to_owned()),
            Source::Flags(_) => return Ok(String::new()),
            Source::File(path) => std::fs::read_to_string(path),
            Source::Stdin => {
                let mut text = String::new();
                std::io::stdin().lock().take(study::TEXT_MAX_BYTES as u64 + 1).read_to_string(&mut text).map(|_| text)
            }
        };
        text.map_err(cannot(Exit::Usage, "read", Path::new(&self.shown())))
    }
}

/// Reads, checks and expands the study of `args` for a number of CPUs: this machine's, or the
/// server machine's in a cluster.
pub(crate) fn open(args: &StudyArgs, machine_cpus: u32, cluster: Option<&Cluster>) -> Result<Opened, Problem> {
    let source = find(&args.study)?;
    let text = source.text()?;
    expanded(source, &text, args, machine_cpus, cluster)
}

/// Does the same for a study made from flags.
pub(crate) fn of_flags(
    name: &str,
    text: &str,
    args: &StudyArgs,
    machine_cpus: u32,
    cluster: Option<&Cluster>,
) -> Result<Opened, Problem> {
    expanded(Source::Flags(name.to_owned()), text, args, machine_cpus, cluster)
}

fn expanded(
    source: Source,
    text: &str,
    args: &StudyArgs,
    machine_cpus: u32,
    cluster: Option<&Cluster>,
) -> Result<Opened, Problem> {
    let directory = source.directory()?;
    let (name, shown) = (source.name(), source.shown());
    let profile = match (args.quick, args.full) {
        (true, _) => Profile::Quick,
        (_, true) => Profile::Full,
        _ => Profile::Default,
    };
    let generators_apart = cluster.is_some();
    let (seed, sets) = (args.seed, args.sets.clone());
    let mut options = ExpandOptions { name, seed, profile, machine_cpus, generators_apart, sets };
    let mut plan = study::parse(text)
        .and_then(|study| {
            #[expect(clippy::disallowed_methods, reason = "the binary reads the environment for all crates")]
            let ops = std::env::var(NUM_OPS).ok();
            options.sets.splice(0..0, ops_of_environment(&study, ops));
            study::expand(&study, &options)
        })
        .map_err(|mistakes| mistaken(Path::new(&shown), text, &mistakes))?;
    let missing = lab::missing_files(&plan, &directory);
    if !missing.is_empty() {
        return Err(Problem::text(Exit::Usage, format!("`{shown}`: {}", missing.join("; "))).hint(
            "file names in a study are relative to the directory of its file, or to the one above if that is `studies`",
        ));
    }
    for point in plan.points.iter_mut().filter(|point| point.unrunnable.is_none()) {
        point.unrunnable = match cluster {
            None => limits::obstacle(&point.load),
            Some(cluster) => cluster.refuses(&point.load),
        };
    }
    Ok(Opened { source, plan, profile, directory })
}

/// The override of the operations factor from the environment, if the study has that factor. It
/// precedes `--set`, which therefore wins.
fn ops_of_environment(study: &study::Study, ops: Option<String>) -> Option<(String, String)> {
    let ops = ops.filter(|ops| !ops.trim().is_empty() && study.factors().any(|factor| factor == OPS))?;
    crate::output::message(&format!("note: the environment variable {NUM_OPS}={ops} sets `{OPS}`"));
    Some((OPS.to_owned(), ops))
}

/// Finds a study: a file, here or in `studies/`; a built-in study; or `-` for standard input.
fn find(study: &str) -> Result<Source, Problem> {
    if study == "-" {
        return Ok(Source::Stdin);
    }
    let given = Path::new(study);
    let beside = PathBuf::from(format!("{study}.toml"));
    let named = Path::new(STUDIES).join(&beside);
    if let Some(file) = [given, &beside, &named].into_iter().find(|path| path.is_file()) {
        return Ok(Source::File(file.to_path_buf()));
    }
    if let Some(name) = built_in::names().find(|name| *name == study) {
        return Ok(Source::BuiltIn(name));
    }
    let looks_like_a_path = given.components().count() > 1 || given.extension().is_some();
    if looks_like_a_path {
        let problem = Problem::text(Exit::Usage, format!("no study file `{study}`"));
        let name = given.strip_prefix(STUDIES).ok().and_then(|rest| rest.to_str()?.strip_suffix(".toml"));
        return Err(match name.filter(|name| built_in::study(name).is_some()) {
            Some(name) => {
                problem.hint(format!("`{name}` is built in: name it without a path, or `quintain studies copy {name}`"))
            }
            None => problem,
        });
    }
    let local = std::fs::read_dir(STUDIES).into_iter().flatten().flatten().filter_map(name_of);
    let names = local.chain(built_in::names().map(str::to_owned)).collect::<BTreeSet<_>>();
    let text = format!(
        "unknown study `{study}`: neither a file, nor `{}` or `{}`, nor built in",
        beside.display(),
        named.display()
    );
    Err(Problem::text(Exit::Usage, text).hint(config::nearest::suggestion(study, names.iter().map(String::as_str))))
}

/// The directory where commands of a study start: the directory of its file. For a file in a
/// directory `studies` it is the parent, because such studies name files next to `studies`.
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
    let count = found.len();
    let all = format!("{count} error{} in `{}`", if count == 1 { "" } else { "s" }, path.display());
    Problem::rendered(Exit::Usage, mistakes::rendered(path, text, found) + &all)
}
