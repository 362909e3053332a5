//! `quintain report`: renders a stored run again, using only the store.

use std::path::Path;

use analysis::Findings;
use analysis::history::Digest;
use report::Background;
use report::exports::{Export, Source};
use store::Store;
use study::record::{Record, Run, RunState};

use crate::cli::{Format, Raw, ReportArgs};
use crate::command_result::{Done, Exit, Problem, Result, machine, usage};
use crate::run::Stored;
use crate::{history, miss_ratio_replays, output};

pub(crate) fn report(mut args: ReportArgs) -> Done {
    if args.store.json {
        args.format = Format::Json;
    }
    let store = Store::open_existing(&args.store.store)?;
    let mut run = store.run(&args.run)?;
    if args.trial.is_some() && !matches!(args.format, Format::Export(export) if export.is_of_a_trial) {
        let problem = usage("`--trial` is only valid with `--format trace`");
        return Err(problem.hint("drop it, or add `--format trace`"));
    }
    // The histograms and windows of all trials must fit in memory if the report needs them.
    let is_of_records = matches!(args.format, Format::Export(_) | Format::Records) || args.raw.is_some();
    if !is_of_records && !miss_ratio_replays::may_have(&run) {
        let (findings, trials) = history::streamed(&store, &run)?;
        history::keep(&store, &run, &Digest::new(&findings), trials);
        let exit = drawn(&args, &findings)?;
        return written(&args, &findings).map(|()| exit);
    }
    let mut records = store.records(&run.id)?;
    analysis::judge_again(&run, &mut records);
    // A run in progress is completed by its own process.
    if run.state != Some(RunState::Running) && miss_ratio_replays::complete(&mut run, &records) {
        // Storing saves the computation next time. It may fail, because the store may be read-only.
        let _ = store.update_run(&run);
    }
    let findings = analysis::analyze(&run, &records);
    let exit = drawn(&args, &findings)?;
    let written = match (args.raw, args.format) {
        (Some(Raw::Whip), _) => raw_whip(&run, &records, args.folder.as_deref()),
        (Some(_), _) => shown(&args, &analysis::volley(&run, &records)),
        (None, Format::Export(format)) => {
            let history = if format.needs_history { runs_up_to(&store, &run, &findings)? } else { Vec::new() };
            let source = Source { findings: &findings, records: &records, history: &history, trial: args.trial };
            write_export(format, &args, &source)
        }
        (None, Format::Records) => {
            shown(&args, &output::pretty(&Stored { run: &run, records: &records, findings: None })?)
        }
        _ => written(&args, &findings),
    };
    written.map(|()| exit)
}

fn drawn(args: &ReportArgs, findings: &Findings) -> Done {
    match &args.figures {
        Some(folder) => figures(findings, folder, if args.dark { Background::Dark } else { Background::Light }),
        None => Ok(Exit::Fine),
    }
}

fn written(args: &ReportArgs, findings: &Findings) -> Result<()> {
    let is_on_stdout = args.out.is_none() && args.figures.is_none();
    let text = match args.format {
        Format::Terminal if is_on_stdout => return output::text(&report::terminal(findings, &output::style())),
        Format::Terminal => analysis::visible(&report::terminal(findings, &report::Style::PLAIN)).into_owned(),
        Format::Html => report::html(findings).map_err(machine)?,
        Format::Text(of) => of(findings),
        _ if is_on_stdout => return output::json(findings),
        _ => output::pretty(findings)?,
    };
    shown(args, &text)
}

fn shown(args: &ReportArgs, text: &str) -> Result<()> {
    match (&args.out, &args.figures) {
        (Some(path), _) => output::file(path, text),
        (None, Some(_)) => Ok(()),
        (None, None) => output::data(text),
    }
}

fn raw_whip(run: &Run, records: &[Record], folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else {
        return Err(usage("`--raw whip` needs an output directory").hint("`quintain report RUN --raw whip DIR`"));
    };
    let files = analysis::raw_whip(run, records);
    if files.is_empty() {
        let text = format!("no proxy of run `{}` recorded its calls", run.id);
        return Err(usage(text).hint("set `calls = \"calls.csv\"` for the proxy"));
    }
    files.into_iter().try_for_each(|(place, text)| output::saved(&folder.join(place), text, ""))
}

/// Writes an SVG and a PNG file for each figure. Reports a PNG that cannot be made and writes the other files.
fn figures(findings: &Findings, folder: &Path, background: Background) -> Done {
    let mut exit = Exit::Fine;
    for (name, svg) in report::figure_svgs(findings, background) {
        let path = folder.join(format!("{name}.svg"));
        output::saved(&path, &svg, "")?;
        let path = path.with_extension("png");
        match report::figure_png(&name, &svg) {
            Ok(png) => {
                let boxes = match png.lacking.as_str() {
                    "" => String::new(),
                    letters => format!(", with boxes for characters missing from its font: {letters}"),
                };
                output::saved(&path, png.bytes, &boxes)?;
            }
            Err(error) => {
                output::message(&format!("error: {:#}", anyhow::Error::new(error)));
                exit = Exit::Machine;
            }
        }
    }
    Ok(exit)
}

/// Writes an export: a single file to `--out` or stdout, several files to the directory `--out`.
fn write_export(export: &Export, args: &ReportArgs, source: &Source<'_>) -> Result<()> {
    let files = export.files(source).map_err(|error| Problem::new(Exit::Usage, error))?;
    match (files.as_slice(), args.out.as_deref()) {
        ([file], None) => output::data(&file.text),
        ([file], Some(path)) if !path.is_dir() => output::file(path, &file.text),
        (files, Some(folder)) => {
            files.iter().try_for_each(|file| output::saved(&folder.join(&file.name), &file.text, ""))
        }
        (files, None) => {
            let text = format!("`--format {}` has {} files here, and stdout takes one", export.name, files.len());
            Err(usage(text).hint("`-o DIR` writes them to a directory"))
        }
    }
}

/// Findings of the runs with the study, profile and machine of `newest`, up to `newest`, oldest first.
fn runs_up_to(store: &Store, newest: &Run, findings: &Findings) -> Result<Vec<Findings>> {
    let mut history = Vec::new();
    for summary in store.runs()?.iter().rev() {
        let is_of = summary.study == newest.plan.study && summary.profile == newest.profile;
        if summary.id == newest.id {
            history.push(findings.clone());
        } else if is_of && summary.started <= newest.started {
            let run = store.run(&summary.id)?;
            if run.host.name == newest.host.name && run.host.cpu_model == newest.host.cpu_model {
                history.push(history::streamed(store, &run)?.0);
            }
        }
    }
    Ok(history)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_too_large_for_a_png_loses_nothing_else() {
        let (run, records) = fixtures::capacity();
        let mut findings = analysis::analyze(&run, &records);
        findings.figures[0].title = Some("a title of very many lines ".repeat(4_000));
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(figures(&findings, folder.path(), Background::Light).unwrap(), Exit::Machine);
        let written = report::figure_svgs(&findings, Background::Light)
            .into_iter()
            .map(|(name, _)| ["svg", "png"].map(|end| folder.path().join(format!("{name}.{end}")).exists()));
        let written = written.collect::<Vec<_>>();
        assert!(written.len() > 1, "there is something else to lose");
        assert!(written[0] == [true, false] && written[1..].iter().all(|pair| *pair == [true, true]), "{written:?}");
    }
}
