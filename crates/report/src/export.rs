//! A run for other tools: who tracks results, plots latencies or shows timelines reads one of these.

mod hdr;
mod names;
mod otava;
mod trace;
mod tracked;

use analysis::Findings;
use study::record::Record;

pub use hdr::{LatencyFile, latency_file};

/// One format: what help, documentation and code know of it.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// Its name in `--format`.
    pub name: &'static str,
    /// What it is for, a line of help.
    pub text: &'static str,
    /// What its test reads it with.
    pub read_by: &'static str,
    /// Whether it needs all runs of the study, [`Source::history`].
    pub needs_history: bool,
    /// Whether it is of one trial, [`Source::trial`].
    pub is_of_a_trial: bool,
    make: fn(&Source<'_>) -> Result<Vec<File>, ExportError>,
}

/// Every format that another tool reads.
pub const EXPORTS: [Export; 6] = [
    Export {
        name: "bencher",
        text: "Bencher Metric Format: mean and interval of each metric",
        read_by: "the JSON Schema that bencher.dev publishes",
        needs_history: false,
        is_of_a_trial: false,
        make: |source| Ok(tracked::bencher(source.findings)),
    },
    Export {
        name: "github-benchmark",
        text: "github-action-benchmark: a file for each of its two tools",
        read_by: "a schema after its documentation",
        needs_history: false,
        is_of_a_trial: false,
        make: |source| Ok(tracked::github_benchmark(source.findings)),
    },
    Export {
        name: "otava",
        text: "Apache Otava: a CSV file for each design point, a row for each run, and the configuration",
        read_by: "apache-otava (PyPI)",
        needs_history: true,
        is_of_a_trial: false,
        make: |source| Ok(otava::otava(source.findings, source.history)),
    },
    Export {
        name: "hgrm",
        text: "HdrHistogram percentile text, milliseconds: a file for each design point",
        read_by: "hdrhistogram (PyPI)",
        needs_history: false,
        is_of_a_trial: false,
        make: |source| Ok(hdr::hgrm(source.findings)),
    },
    Export {
        name: "hdr",
        text: "HdrHistogram log, nanoseconds: an interval for each trial, tagged with its design point",
        read_by: "hdrhistogram (PyPI and crates.io)",
        needs_history: false,
        is_of_a_trial: false,
        make: |source| Ok(hdr::hlog(source.findings, source.records)),
    },
    Export {
        name: "trace",
        text: "Trace Event JSON of one trial, for Perfetto and chrome://tracing",
        read_by: "a schema after the Trace Event Format",
        needs_history: false,
        is_of_a_trial: true,
        make: |source| trace::trace(source),
    },
];

/// What exports are made of.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The run.
    pub findings: &'a Findings,
    /// Its trials.
    pub records: &'a [Record],
    /// Runs that can be put in a row with it, the oldest first, itself among them.
    pub history: &'a [Findings],
    /// The trial, by its place in the order of the run; `None`: the first that has a measurement.
    pub trial: Option<u32>,
}

/// A file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, where it is one of several: no directory in it.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// Why there is no export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// There is nothing to be exported.
    #[error("run `{0}` has no trial with a measurement")]
    NothingMeasured(String),
    /// The trial that was asked for is not there.
    #[error("run `{run}` has no trial {trial}: it has {known}")]
    NoTrial {
        /// The run.
        run: String,
        /// What was asked for.
        trial: u32,
        /// Those that it has, in words.
        known: String,
    },
    /// The trial that was asked for has no measurement.
    #[error("trial {trial} of run `{run}` failed: {why}")]
    FailedTrial {
        /// The run.
        run: String,
        /// What was asked for.
        trial: u32,
        /// Why it has none.
        why: String,
    },
}

impl Export {
    /// Its files, one at least.
    ///
    /// # Errors
    /// [`ExportError`].
    pub fn files(&self, source: &Source<'_>) -> Result<Vec<File>, ExportError> {
        let files = (self.make)(source)?;
        if files.is_empty() {
            return Err(ExportError::NothingMeasured(source.findings.run.clone()));
        }
        Ok(files)
    }
}

/// The table of formats in docs/EXPORTS.md.
pub fn table() -> String {
    let rows = EXPORTS.iter().map(|export| format!("| `{}` | {} | {} |\n", export.name, export.text, export.read_by));
    format!("| `--format` | What it is | Tested with |\n|---|---|---|\n{}", rows.collect::<String>())
}
