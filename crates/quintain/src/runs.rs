//! `quintain runs`: lists, removes, exports and imports stored runs.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use analysis::number::{count, quantity};
use serde_json::json;
use store::{Freed, RunFileError, RunSummary, Store, StoreError};
use study::record::RunState;

use crate::cli::{RunsArgs, RunsFilter, RunsVerb};
use crate::command_result::{Exit, Problem, Result, cannot, machine, usage};
use crate::output;

pub(crate) fn runs(args: RunsArgs) -> Result<()> {
    let (store, json) = (args.store.store.as_path(), args.store.json);
    let Some(verb) = args.verb else { return list(store, &args.filter, json) };
    if args.filter != RunsFilter::default() {
        let text = "`--study`, `--state`, `--since` and `--host` filter the list of `quintain runs` and do not apply to its subcommands";
        return Err(usage(text).hint("name the runs"));
    }
    match verb {
        RunsVerb::Rm { runs, rewrite, dry_run } => remove(store, &runs, rewrite, dry_run, json),
        RunsVerb::Export { run, out } => export(store, &run, out, json),
        RunsVerb::Import { file, name } => import(store, &file, name.as_deref(), json),
    }
}

fn list(path: &Path, filter: &RunsFilter, json: bool) -> Result<()> {
    let since = filter.since.as_deref().map(since).transpose()?;
    let store = Store::open_existing(path)?;
    let mut runs = store.runs()?;
    let all = runs.len();
    runs.retain(|run| {
        filter.study.as_ref().is_none_or(|study| run.study == *study)
            && filter.state.as_ref().is_none_or(|state| state_word(run) == state.replace('-', " "))
            && since.as_ref().is_none_or(|since| run.started >= *since)
            && filter.host.as_ref().is_none_or(|host| run.host == *host)
    });
    if json {
        return output::json(&runs);
    }
    if all == 0 {
        output::message(&format!("no runs in `{}` yet; start one with `quintain run volley`", path.display()));
        return Ok(());
    }
    if !runs.is_empty() {
        output::text(&output::columns(&table(&runs)))?;
    }
    let bytes = analysis::number::total(runs.iter().map(|run| run.bytes));
    let of = if runs.len() < all { format!(" of {all}") } else { String::new() };
    let (number, [bytes, file]) = (count(runs.len() as u64, "run"), [bytes, store.file_bytes()].map(size));
    output::message(&format!("{number}{of}, {bytes}; `{}` takes {file}", path.display()));
    Ok(())
}

fn table(runs: &[RunSummary]) -> Vec<Vec<String>> {
    let heads = ["RUN", "STARTED", "PROFILE", "TRIALS", "FAILED", "SIZE", "STATE", "STUDY"];
    let hosts = runs.iter().any(|run| run.host != runs[0].host || !run.imported.is_empty());
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows[0].extend(hosts.then(|| "HOST".to_owned()));
    rows.extend(runs.iter().map(|run| {
        let imported = if run.imported.is_empty() { "" } else { " (imported)" };
        let host = hosts.then(|| format!("{}{imported}", run.host));
        let cells = [
            run.id.clone(),
            run.started.clone(),
            run.profile.clone(),
            trials(run),
            run.failed.to_string(),
            size(run.bytes),
            state_word(run).to_owned(),
            run.study.clone(),
        ];
        // Text from imported runs must not control the terminal.
        cells.into_iter().chain(host).map(|cell| analysis::visible(&cell).replace(['\n', '\t'], " ")).collect()
    }));
    rows
}

fn has_ended(run: &RunSummary) -> bool {
    matches!(run.state, Some(RunState::Complete | RunState::OutOfTime))
}

/// State under which a run is listed. A finished run without any measured trial is listed as failed.
fn state_word(run: &RunSummary) -> &'static str {
    let has_failed = has_ended(run) && run.trials > 0 && run.failed == run.trials;
    if has_failed { "failed" } else { run.state.map_or("", RunState::word) }
}

/// Formats the number of trials, such as `15`, or `5 of 15` if an unfinished run has too few.
fn trials(run: &RunSummary) -> String {
    let [least, _] = run.planned.unwrap_or_default();
    let is_short = u64::from(run.trials) < least && !has_ended(run);
    if is_short { format!("{} of {least}", run.trials) } else { run.trials.to_string() }
}

fn size(bytes: u64) -> String {
    quantity(bytes as f64, "bytes")
}

/// Parses a date, or an age such as `7d`, into the earliest start to list, in the format of stored runs.
pub(crate) fn since(text: &str) -> Result<String> {
    let shape = text.replace(|letter: char| letter.is_ascii_digit(), "0");
    if ["0000-00-00", "0000-00-00T00:00:00Z"].contains(&shape.as_str()) {
        // Dates in this format sort as strings.
        return Ok(text.to_owned());
    }
    let hint = "a time like `7d` or `12h`, or a date like `2026-11-20`";
    let invalid = |_| usage(format!("invalid time `{text}` for `--since`")).hint(hint);
    let ns = config::units::long_duration_ns(text).map_err(invalid)?;
    Ok(lab::lab_clocks::format_rfc3339(lab::lab_clocks::unix_seconds().saturating_sub(ns / 1_000_000_000)))
}

fn remove(path: &Path, names: &[String], rewrite: bool, dry_run: bool, json: bool) -> Result<()> {
    let store = Store::open_existing(path)?;
    let (mut ids, mut wrong) = (Vec::<String>::new(), Vec::new());
    for name in names {
        match store.resolve(name) {
            Ok(id) if store.is_owned(&id) => wrong.push(StoreError::Owned(id, None)),
            Ok(id) if ids.contains(&id) => {}
            Ok(id) => ids.push(id),
            Err(error) => wrong.push(error),
        }
    }
    if let Some(first) = wrong.first() {
        let is_owned = wrong.iter().any(|error| matches!(error, StoreError::Owned(..)));
        let hint = if is_owned { "end the run first, or wait for it" } else { "`quintain runs` lists them" };
        let text = wrong.iter().skip(1).fold(first.to_string(), |text, error| format!("{text}\nerror: {error}"));
        return Err(usage(text).hint(format!("{hint}; nothing was removed")));
    }
    let listed = store.runs()?;
    let bytes = analysis::number::total(listed.iter().filter(|run| ids.contains(&run.id)).map(|run| run.bytes));
    let freed = if dry_run { None } else { Some(store.remove(&ids, rewrite)?) };
    if json {
        return output::json(&json!({ "runs": ids, "bytes": bytes, "dry_run": dry_run, "store": freed }));
    }
    let verb = if dry_run { "would remove" } else { "removed" };
    let lines = listed.iter().filter(|run| ids.contains(&run.id));
    let lines =
        lines.map(|run| format!("{verb} {}  {}, {}\n", run.id, count(u64::from(run.trials), "trial"), size(run.bytes)));
    if !ids.is_empty() {
        output::text(&lines.collect::<String>())?;
    }
    if let Some(Freed { before_bytes, after_bytes, not_rewritten }) = freed {
        let (path, [before, after]) = (path.display(), [before_bytes, after_bytes].map(size));
        output::message(&match not_rewritten {
            None => format!("`{path}` took {before}, now {after}"),
            Some(why) => format!("`{path}` keeps its size: {why}; until then, later trials use the unused space"),
        });
    }
    Ok(())
}

fn export(path: &Path, name: &str, out: Option<PathBuf>, json: bool) -> Result<()> {
    let store = Store::open_existing(path)?;
    let run = store.resolve(name)?;
    let file = out.unwrap_or_else(|| PathBuf::from(format!("{}.jsonl.gz", run.replace('/', "_"))));
    // Writing to a temporary name first leaves the file either unchanged or complete.
    let part = PathBuf::from(format!("{}.part", file.display()));
    let problem = cannot(Exit::Usage, "write", &file);
    let out = BufWriter::new(File::create(&part).map_err(&problem)?);
    let written = match store.export(&run, out, env!("CARGO_PKG_VERSION")) {
        Ok((out, content)) => {
            let synced = out.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|out| out.sync_all());
            synced.and_then(|()| std::fs::rename(&part, &file)).map_err(&problem).map(|()| content)
        }
        Err(error @ StoreError::Owned(..)) => Err(Problem::from(error).hint("export it when it has ended")),
        Err(error) => Err(error.into()),
    };
    let content = written.inspect_err(|_| drop(std::fs::remove_file(&part)))?;
    let file_bytes = std::fs::metadata(&file).map_err(&problem)?.len();
    if json {
        return output::json(&json!({
            "run": run, "file": file, "trials": content.trials, "file_bytes": file_bytes,
            "content_bytes": content.bytes, "sha256": content.sha256,
        }));
    }
    output::data(&file.display().to_string())?;
    let (trials, [file, content]) = (count(content.trials, "trial"), [file_bytes, content.bytes].map(size));
    output::message(&format!("run {run}, {trials}: {file} ({content} without compression)"));
    Ok(())
}

fn import(path: &Path, file: &Path, name: Option<&str>, json: bool) -> Result<()> {
    if let Some(why) = name.and_then(|name| store::run_file::name(name).err()) {
        return Err(usage(why).hint("letters, digits, `-`, `_` and `.` are fine"));
    }
    if file.is_dir() {
        return Err(usage(format!("`{}` is a directory, but a run is a file", file.display())));
    }
    let opened = File::open(file).map_err(cannot(Exit::Usage, "read", file))?;
    let store = Store::open(path)?;
    let run = store.import(opened, name, &lab::lab_clocks::rfc3339()).map_err(|error| match error {
        StoreError::RunFile(error) => {
            use RunFileError::{Checksum, Damaged, Incomplete};
            let is_partial = matches!(error, Incomplete(..) | Damaged(..) | Checksum(..));
            let hint = is_partial.then_some("export or copy it again; nothing was imported");
            usage(format!("cannot import `{}`: {error}", file.display())).hint_if(hint)
        }
        StoreError::RunExists { .. } => {
            let other = format!("`quintain runs import {} --as NAME` stores it under another name", file.display());
            Problem::from(error).hint(other)
        }
        _ => error.into(),
    })?;
    let found = store.runs()?.into_iter().find(|listed| listed.id == run);
    let found = found.ok_or_else(|| machine(anyhow::anyhow!("run `{run}` is gone again")))?;
    if json {
        return output::json(&found);
    }
    output::data(&run)?;
    let (host, trials) = (analysis::visible(&found.host), count(u64::from(found.trials), "trial"));
    let started = &found.started;
    output::message(&format!("imported: {trials} on {host}, started {started}; `quintain report {run}` shows it"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(trials: u32, state: Option<RunState>) -> RunSummary {
        RunSummary {
            id: String::new(),
            started: String::new(),
            study: String::new(),
            profile: String::new(),
            points: 1,
            trials,
            failed: 0,
            planned: Some([15, 30]),
            state,
            bytes: 0,
            host: String::new(),
            imported: String::new(),
        }
    }

    #[test]
    fn missing_trials_are_shown() {
        for (done, state, expected) in [
            (5, Some(RunState::Interrupted), "5 of 15"),
            (5, Some(RunState::Running), "5 of 15"),
            (5, None, "5 of 15"),
            (18, Some(RunState::Interrupted), "18"),
            // Runs that ended by themselves may have fewer trials than planned, for example after abandoning a point.
            (5, Some(RunState::Complete), "5"),
            (5, Some(RunState::OutOfTime), "5"),
        ] {
            assert_eq!(trials(&run(done, state)), expected, "{state:?}");
        }
        assert_eq!(trials(&RunSummary { planned: None, ..run(5, None) }), "5");
    }

    #[test]
    fn a_run_whose_trials_all_failed_is_not_complete() {
        let failed = RunSummary { failed: 5, ..run(5, Some(RunState::Complete)) };
        assert_eq!(table(std::slice::from_ref(&failed))[1][6], "failed");
        let some = RunSummary { failed: 4, ..failed.clone() };
        assert_eq!(table(&[some])[1][6], "complete");
        let stopped = RunSummary { state: Some(RunState::Interrupted), ..failed };
        assert_eq!(state_word(&stopped), "interrupted");
    }

    #[test]
    fn times_are_spans_and_dates() {
        for date in ["2026-11-20", "2026-11-20T21:05:00Z"] {
            assert_eq!(since(date).unwrap(), date);
        }
        let week = since("7d").unwrap();
        assert!(week < lab::lab_clocks::rfc3339() && since("36h").unwrap() > week, "{week}");
        assert!(since("99999d").unwrap().as_str() <= "1971", "before there were clocks");
        for wrong in ["", "yesterday", "7", "2026-1-1", "-1d", "2026-11-20 "] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn table_escapes_text_and_shows_hosts_if_several() {
        let one = RunSummary { id: "a\x1b[2J\nb".to_owned(), host: "vm".to_owned(), ..run(1, None) };
        let alone = table(&[one.clone(), one.clone()]);
        assert_eq!((alone[1][0].as_str(), alone[0].len()), ("a\\x1b[2J b", 8));
        let two = table(&[one.clone(), RunSummary { host: "other".to_owned(), imported: "now".to_owned(), ..one }]);
        assert_eq!((two[1][8].as_str(), two[2][8].as_str()), ("vm", "other (imported)"));
    }
}
