//! `quintain report --format` for other tools: writes the files of [`report::export`].

use analysis::Findings;
use report::export::{Export, Source};
use store::Store;
use study::record::{Record, Run};

use crate::cli::ReportArgs;
use crate::message::{Exit, Problem};
use crate::output;

pub(crate) struct Chosen<'a> {
    pub(crate) run: &'a Run,
    pub(crate) records: &'a [Record],
    pub(crate) findings: &'a Findings,
}

/// Writes the files of an export: a single file to `--out` or stdout, several to the directory
/// `--out`.
pub(crate) fn write(export: &Export, args: &ReportArgs, store: &Store, chosen: &Chosen<'_>) -> Result<(), Problem> {
    if args.trial.is_some() && !export.is_of_a_trial {
        return Err(trial_of_no_trace());
    }
    let history = if export.needs_history { history(store, chosen)? } else { Vec::new() };
    let source = Source { findings: chosen.findings, records: chosen.records, history: &history, trial: args.trial };
    let files = export.files(&source).map_err(|error| Problem::new(Exit::Usage, error))?;
    match (files.as_slice(), args.out.as_deref()) {
        ([file], None) => output::data(&file.text),
        ([file], Some(path)) if !path.is_dir() => output::file(path, &file.text),
        (files, Some(folder)) => {
            files.iter().try_for_each(|file| output::saved(&folder.join(&file.name), &file.text, ""))
        }
        (files, None) => {
            let text = format!("`--format {}` has {} files here, and stdout takes one", export.name, files.len());
            Err(Problem::text(Exit::Usage, text).hint("`-o DIR` writes them to a directory"))
        }
    }
}

pub(crate) fn trial_of_no_trace() -> Problem {
    let problem = Problem::text(Exit::Usage, "`--trial` is only valid with `--format trace`");
    problem.hint("drop it, or add `--format trace`")
}

/// Findings of earlier runs of the same study, machine and profile up to the chosen run, oldest
/// first.
fn history(store: &Store, chosen: &Chosen<'_>) -> Result<Vec<Findings>, Problem> {
    let newest = chosen.run;
    let mut history = Vec::new();
    for summary in store.runs()?.iter().rev() {
        let is_of = summary.study == newest.plan.study && summary.profile == newest.profile;
        if summary.id == newest.id {
            history.push(chosen.findings.clone());
        } else if is_of && summary.started <= newest.started {
            let run = store.run(&summary.id)?;
            if run.host.name == newest.host.name && run.host.cpu_model == newest.host.cpu_model {
                history.push(crate::history::streamed(store, &run)?.0);
            }
        }
    }
    Ok(history)
}
