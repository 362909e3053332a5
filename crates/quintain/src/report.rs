//! `quintain report`: a run of the store, rendered again. The machine is not asked anything.

use std::path::Path;

use report::Findings;
use store::Store;

use crate::cli::{Format, Raw, ReportArgs};
use crate::message::{Done, Exit, Problem};
use crate::{output, references};

pub(crate) fn report(args: ReportArgs) -> Done {
    let store = Store::open_existing(&args.store.store)?;
    let mut run = store.run(&args.run)?;
    let records = store.records(&run.id)?;
    if references::complete(&mut run, &records) {
        // Kept, so that it need not be worked out again; a store that only may be read is read all the same.
        let _ = store.update_run(&run);
    }
    let findings = report::analyze(&run, &records);
    if let Some(folder) = &args.figures {
        figures(&findings, folder)?;
    }
    let format = if args.store.json { Format::Json } else { args.format };
    let text = match (args.raw, format) {
        (Some(Raw::Volley), _) => report::volley(&run, &records),
        (None, Format::Terminal) => report::terminal(&findings, &style(args.out.is_some())),
        (None, Format::Html) => report::html(&findings).map_err(|error| Problem::new(Exit::Machine, error))?,
        (None, Format::Md) => report::markdown(&findings),
        (None, Format::Csv) => report::csv(&findings),
        (None, Format::CsvTrials) => report::csv_trials(&findings),
        (None, Format::CsvEffects) => report::csv_effects(&findings),
        (None, Format::CsvMissRatio) => report::csv_miss_ratios(&findings),
        (None, Format::Json) => json(&findings)?,
        (None, Format::Records) => json(&serde_json::json!({ "run": run, "records": records }))?,
    };
    // With figures alone, nothing else was asked for.
    match (&args.out, &args.figures) {
        (Some(path), _) => output::file(path, &text)?,
        (None, Some(_)) => {}
        (None, None) => output::data(&text)?,
    }
    Ok(Exit::Fine)
}

/// How a terminal wants its text.
pub(crate) fn style(into_file: bool) -> report::Style {
    let columns = output::stdout_columns().filter(|_| !into_file);
    columns.map_or(report::Style::PLAIN, |width| report::Style { colour: true, width })
}

fn figures(findings: &Findings, folder: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(folder).map_err(|error| {
        Problem::new(Exit::Usage, anyhow::Error::new(error).context(format!("cannot make `{}`", folder.display())))
    })?;
    for (name, svg) in report::figure_svgs(findings) {
        let path = folder.join(name);
        output::file(&path, &svg)?;
        output::message(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn json(value: &impl serde::Serialize) -> Result<String, Problem> {
    serde_json::to_string_pretty(value).map_err(|error| Problem::new(Exit::Machine, error))
}
