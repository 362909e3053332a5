//! Exports of a run for other tools: result trackers, latency plotters and timeline viewers.

mod hdr;
mod result_trackers;
mod row_names;
mod trace_events;

use analysis::Findings;
use study::record::Record;

use crate::ReportError;

pub use hdr::{LatencyFile, latency_file};

/// An export format and its description for help and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// Name of the format on the command line.
    pub name: &'static str,
    /// Purpose of the format in one line, for help.
    pub text: &'static str,
    /// Program that reads the format in tests.
    pub read_by: &'static str,
    /// Whether the export needs all runs of the study in [`Source::history`].
    pub needs_history: bool,
    /// Whether the export covers only the trial of [`Source::trial`].
    pub is_of_a_trial: bool,
    make: Make,
}

/// All export formats, in the order of help.
pub const EXPORTS: [Export; 6] = [
    Export::new(
        "bencher",
        "Bencher Metric Format: mean and interval of each metric",
        "the JSON Schema that bencher.dev publishes",
        |source| Ok(result_trackers::bencher(source.findings)),
    ),
    Export::new(
        "github-benchmark",
        "github-action-benchmark: one file per tool, for its two tools",
        "a schema after its documentation",
        |source| Ok(result_trackers::github_benchmark(source.findings)),
    ),
    Export {
        needs_history: true,
        ..Export::new(
            "otava",
            "Apache Otava: one CSV file per design point, one row per run, and the configuration",
            "apache-otava (PyPI)",
            |source| Ok(result_trackers::otava(source.findings, source.history)),
        )
    },
    Export::new(
        "hgrm",
        "HdrHistogram percentile text, milliseconds: a file for each design point",
        "hdrhistogram (PyPI)",
        |source| Ok(hdr::hgrm(source.findings)),
    ),
    Export::new(
        "hdr",
        "HdrHistogram log, nanoseconds: an interval for each trial, tagged with its design point",
        "hdrhistogram (PyPI and crates.io)",
        |source| Ok(hdr::hlog(source.findings, source.records)),
    ),
    Export {
        is_of_a_trial: true,
        ..Export::new(
            "trace",
            "Trace Event JSON of one trial, for Perfetto and chrome://tracing",
            "a schema after the Trace Event Format",
            trace_events::trace,
        )
    },
];

/// Input of an export: a run and, for some formats, its history or one of its trials.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Findings of the exported run.
    pub findings: &'a Findings,
    /// Trials of the exported run.
    pub records: &'a [Record],
    /// Comparable runs, including the exported one, oldest first.
    pub history: &'a [Findings],
    /// Index of the trial in the order of the run; `None` exports the first trial with a measurement.
    pub trial: Option<u32>,
}

/// One file that an export creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// File name without a directory. Used only if the export has several files.
    pub name: String,
    /// Complete content of the file.
    pub text: String,
}

type Make = fn(&Source<'_>) -> Result<Vec<File>, ReportError>;

impl Export {
    const fn new(name: &'static str, text: &'static str, read_by: &'static str, make: Make) -> Export {
        Export { name, text, read_by, needs_history: false, is_of_a_trial: false, make }
    }

    /// Creates the files of the export, at least one. Fails if there is nothing to export.
    pub fn files(&self, source: &Source<'_>) -> Result<Vec<File>, ReportError> {
        let files = Some((self.make)(source)?).filter(|files| !files.is_empty());
        let nothing = || format!("run `{}` has no trial with a measurement", source.findings.run);
        files.ok_or_else(|| ReportError(nothing(), None))
    }
}

/// Returns the table of formats for docs/reference/exports.md, in Markdown.
pub fn table() -> String {
    let rows = EXPORTS.iter().map(|export| format!("| `{}` | {} | {} |\n", export.name, export.text, export.read_by));
    format!("| `--format` | What it is | Tested with |\n|---|---|---|\n{}", rows.collect::<String>())
}
