//! From the name of a study to its plan, and from its mistakes to what the user is shown.

use std::path::{Path, PathBuf};

use lab::cluster::Cluster;
use study::{Diagnostic, ExpandOptions, Plan, Profile};

use crate::cli::StudyArgs;
use crate::message::{Exit, Problem};
use crate::{limits, mistakes};

/// Where studies are that are named without a path.
const FOLDER: &str = "studies";

/// The environment variable of Whip's benchmarks that says how many operations there are, and the factor that it sets.
const NUM_OPS: &str = "NUM_OPS";
const OPS: &str = "ops";

/// A study that was read and expanded.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) plan: Plan,
    pub(crate) profile: Profile,
}

/// Reads, checks and expands the study that `args` name, for so many processors: those of this machine, or of the server's in a cluster.
pub(crate) fn open(args: &StudyArgs, machine_cpus: u32, cluster: Option<&Cluster>) -> Result<Opened, Problem> {
    let path = find(&args.study)?;
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Problem::new(Exit::Usage, anyhow::Error::new(error).context(format!("cannot read `{}`", path.display())))
    })?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    expanded(path, &text, name, args, machine_cpus, cluster)
}

/// Checks and expands the text of a study that is said to lie at `path`.
pub(crate) fn expanded(
    path: PathBuf,
    text: &str,
    name: String,
    args: &StudyArgs,
    machine_cpus: u32,
    cluster: Option<&Cluster>,
) -> Result<Opened, Problem> {
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
        .map_err(|mistakes| mistaken(&path, text, &mistakes))?;
    let missing = lab::missing_files(&plan, Path::new("."));
    if !missing.is_empty() {
        return Err(Problem::text(Exit::Usage, format!("`{}`: {}", path.display(), missing.join("; ")))
            .hint("file names in a study are relative to the working directory"));
    }
    for point in plan.points.iter_mut().filter(|point| point.unrunnable.is_none()) {
        point.unrunnable = match cluster {
            None => limits::obstacle(&point.load),
            Some(cluster) => cluster.refuses(&point.load),
        };
    }
    Ok(Opened { path, plan, profile })
}

/// What the environment sets: operations, of a study that has a factor for them. It comes first, so that `--set` has the last word.
fn ops_of_environment(study: &study::Study, ops: Option<String>) -> Option<(String, String)> {
    let ops = ops.filter(|ops| !ops.trim().is_empty() && study.factors().any(|factor| factor == OPS))?;
    crate::output::message(&format!("note: the environment variable {NUM_OPS}={ops} sets `{OPS}`"));
    Some((OPS.to_owned(), ops))
}

/// A path as it is, or the study of that name.
fn find(study: &str) -> Result<PathBuf, Problem> {
    let given = Path::new(study);
    let named = Path::new(FOLDER).join(format!("{study}.toml"));
    if given.is_file() {
        return Ok(given.to_path_buf());
    }
    if named.is_file() {
        return Ok(named);
    }
    let looks_like_a_path = given.components().count() > 1 || given.extension().is_some();
    if looks_like_a_path {
        return Err(Problem::text(Exit::Usage, format!("no study file `{study}`")));
    }
    let mut names = std::fs::read_dir(FOLDER).into_iter().flatten().flatten().filter_map(name_of).collect::<Vec<_>>();
    names.sort();
    let problem =
        Problem::text(Exit::Usage, format!("unknown study `{study}`: neither a file nor `{}`", named.display()));
    let near = config::nearest::nearest(study, names.iter().map(String::as_str));
    Err(match names.as_slice() {
        _ if let Some(near) = near => problem.hint(format!("did you mean `{near}`?")),
        [] => problem.hint(format!(
            "studies are looked up in `{FOLDER}/` of the working directory; change directory, or give a path"
        )),
        names => problem.hint(format!("available in `{FOLDER}/`: {}", names.join(", "))),
    })
}

fn name_of(entry: std::fs::DirEntry) -> Option<String> {
    let path = entry.path();
    (path.extension()? == "toml").then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))?
}

/// Every mistake with its place.
pub(crate) fn mistaken(path: &Path, text: &str, found: &[Diagnostic]) -> Problem {
    let count = found.len();
    let all = format!("{count} error{} in `{}`", if count == 1 { "" } else { "s" }, path.display());
    Problem::rendered(Exit::Usage, mistakes::rendered(path, text, found) + &all)
}
