//! `quintain history`: shows the runs of a study by revision and time and marks steps between them. Gives no verdict.

use std::collections::BTreeSet;
use std::path::Path;

use analysis::findings::History;
use analysis::history::{Digest, Entry, Levels};
use analysis::{Analysis, Findings};
use store::{Store, StoreError};
use study::record::{Run, RunState};

use crate::cli::{self, HistoryArgs};
use crate::command_result::{Result, machine, usage};
use crate::parallel_work::in_parallel;
use crate::{output, runs};

pub(crate) fn history(args: HistoryArgs) -> Result<()> {
    let wanted = args.points.iter().map(|text| levels(text)).collect::<Result<Vec<_>, _>>()?;
    let since = args.since.as_deref().map(runs::since).transpose()?;
    let metric = args.metric.as_deref().map(cli::metric).transpose()?;
    let store = Store::open_existing(&args.store.store)?;
    let study = study_name(&store, &args.study)?;
    let mut of_study = Vec::new();
    for id in store.runs_of(&study)? {
        of_study.extend(readable(store.run(&id))?);
    }
    let is_meant = |run: &&Run| {
        since.as_ref().is_none_or(|since| run.started >= *since)
            && args.host.as_ref().is_none_or(|host| run.host.name == *host)
    };
    let meant = of_study.iter().filter(is_meant).collect::<Vec<_>>();
    let Some(latest) = meant.last() else {
        let hosts = of_study.iter().map(|run| run.host.name.as_str()).collect::<BTreeSet<_>>();
        let hosts = hosts.into_iter().collect::<Vec<_>>();
        let runs = analysis::number::count(of_study.len() as u64, "run");
        let text = format!("none of the {runs} of `{study}` is recent enough and on that machine");
        let last = of_study.last().map_or("", |run| run.started.as_str());
        return Err(usage(text).hint(format!("the latest started {last}; machines: {}", hosts.join(", "))));
    };
    let metric = metric.as_ref().unwrap_or(&latest.plan.trials.metric);
    let metric = study::Metric::named(metric).ok_or_else(|| usage(format!("unknown metric `{metric}`")))?;
    let cached = |run: &&Run| {
        let text = store.digest(&run.id, MAKER)?;
        Ok::<Option<Digest>, StoreError>(text.and_then(|text| serde_json::from_str(&text).ok()))
    };
    let mut digests = meant.iter().map(cached).collect::<Result<Vec<_>, _>>()?;
    let missing = (0..meant.len()).filter(|&index| digests[index].is_none()).collect::<Vec<_>>();
    if missing.len() > 1 {
        let runs = analysis::number::count(missing.len() as u64, "run");
        output::message(&format!("note: reading the trials of {runs}, once for this version of quintain"));
    }
    let (path, threads) = (&store.path, readers().min(missing.len()));
    let read = |index: &usize| {
        let (analysis, trials) = read_trials(path, meant[*index], readers() / threads)?;
        let digest = Digest::of_trials(analysis);
        // Digests are kept one by one, so that an interruption loses few of them.
        keep(&Store::open_existing(path)?, meant[*index], &digest, trials);
        Ok(digest)
    };
    for (index, digest) in missing.iter().zip(in_parallel(threads, &missing, read)) {
        digests[*index] = readable(digest)?;
    }
    let entries = meant.iter().zip(digests).filter_map(|(run, digest)| Some(Entry { run, digest: digest? })).collect();
    let history = analysis::history(&study, metric, entries, &wanted);
    refuse_nothing(&history, &meant, &wanted)?;
    if let Some(page) = &args.html {
        output::saved(page, report::history_html(&history).map_err(machine)?, "")?;
    }
    output::json_or(args.store.json, &history, || report::history_terminal(&history, &output::style()))
}

/// Hash of the build that made a digest. A different build may analyze the same trials differently.
const MAKER: &str = env!("ANALYSIS_HASH");

/// Stores a run's digest and number of trials for `quintain history`. Does nothing while the run is in progress.
pub(crate) fn keep(store: &Store, run: &Run, digest: &Digest, trials: u64) {
    if let (false, Ok(text)) = (run.state == Some(RunState::Running), serde_json::to_string(digest)) {
        // A failure to store is ignored, because the store may be read-only.
        let _ = store.put_digest(&run.id, MAKER, trials, &text);
    }
}

pub(crate) fn streamed(store: &Store, run: &Run) -> Result<(Findings, u64), StoreError> {
    let (analysis, trials) = read_trials(&store.path, run, readers())?;
    Ok((analysis.finish(), trials))
}

/// Returns the analysis of a stored run and its number of trials. Each thread holds one point's trials in memory.
fn read_trials<'r>(path: &Path, run: &'r Run, threads: usize) -> Result<(Analysis<'r>, u64), StoreError> {
    let points = Store::open_existing(path)?.points(&run.id)?;
    let read = |point: &usize| {
        // SQLite's connections cannot be shared by threads. Opening one is quick compared with reading a point.
        let store = Store::open_existing(path)?;
        let mut records = store.records_of(&run.id, *point)?;
        analysis::judge_again(run, &mut records);
        let mut analysis = Analysis::new(run);
        analysis.add(&records);
        Ok::<_, StoreError>((analysis, records.len() as u64))
    };
    let (mut analysis, mut trials) = (Analysis::new(run), 0);
    for part in in_parallel(threads, &points, read) {
        let (part, of_part) = part?;
        analysis.merge(part);
        trials += of_part;
    }
    Ok((analysis, trials))
}

/// Number of threads that read trials: at most four, because each holds the trials of one design point.
fn readers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

/// Prints a note and returns `None` for a run that a newer quintain has stored, so that other runs are still shown.
fn readable<T>(read: Result<T, StoreError>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error @ StoreError::Unreadable(_)) => {
            output::message(&format!("note: left out: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn study_name(store: &Store, given: &str) -> Result<String> {
    let stem =
        Path::new(given).file_stem().map_or_else(|| given.to_owned(), |stem| stem.to_string_lossy().into_owned());
    let known = store.runs()?.into_iter().map(|run| run.study).collect::<BTreeSet<_>>();
    if let Some(name) = [given, &stem].into_iter().find(|name| known.contains(*name)) {
        return Ok(name.to_owned());
    }
    let hint = match known.is_empty() {
        true => format!("it has no runs; start one with `quintain run {given}`"),
        false => config::nearest::suggestion(&stem, known.iter().map(String::as_str)),
    };
    Err(usage(format!("no run of study `{given}` in `{}`", &store.path.display())).hint(hint))
}

fn levels(text: &str) -> Result<Levels> {
    crate::level_selection::parse(text).map_err(|part| {
        let problem = usage(format!("invalid `--point {text}`: expected FACTOR=LEVEL, found `{part}`"));
        problem.hint("`--point server=go,clients=40`")
    })
}

fn refuse_nothing(history: &History, runs: &[&Run], wanted: &[Levels]) -> Result<()> {
    if history.machines.iter().any(|machine| !machine.points.is_empty()) {
        return Ok(());
    }
    let levels = |name: &str| {
        let levels = runs.iter().flat_map(|run| run.plan.levels(name));
        levels.map(ToString::to_string).collect::<BTreeSet<_>>()
    };
    if let Some((name, level)) = wanted.iter().flatten().find(|(name, level)| !levels(name).contains(level)) {
        let join = |words: BTreeSet<String>| words.into_iter().collect::<Vec<_>>().join(", ");
        let factors = || runs.iter().flat_map(|run| run.plan.factors.clone()).collect();
        let hint = match levels(name) {
            none if none.is_empty() => format!("the factors of `{}` are {}", history.study, join(factors())),
            levels => format!("levels of `{name}`: {}", join(levels)),
        };
        return Err(usage(format!("no design point has `{name}={level}`")).hint(hint));
    }
    let metric = history.metric.name;
    let text = if wanted.is_empty() {
        format!("no run of `{}` has a value of `{metric}`", history.study)
    } else {
        format!("no run has a value of `{metric}` at such a design point")
    };
    let run = runs.last().map_or("", |run| run.id.as_str());
    Err(usage(text).hint(format!("`quintain report {run}` shows the measured metrics")))
}
