//! Exports of a run for other tools: result trackers, latency plotters and timeline viewers.

mod hdr;
mod result_trackers;
mod trace_events;

use analysis::Findings;
use analysis::findings::Row;
use study::record::{IdlePolicy, Record};

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

/// Maximum length of a file name without its extension, in bytes. File systems allow 255.
const FILE_MAX: usize = 200;

/// Returns a name made of the study and all levels, such as `volley/server=go/cores=2`, stable between runs and unique
/// in a run. It has no blank, comma, quote or control character, so that every format can hold it.
fn name(findings: &Findings, row: &Row) -> String {
    let levels = findings.factors.iter().filter_map(|factor| Some((&factor.name, row.factors.get(&factor.name)?)));
    let levels = levels.map(|(name, level)| format!("/{}={}", word(name), word(&level.to_string())));
    let idle = if row.idle == Some(IdlePolicy::Spin) { "/idle=spin" } else { "" };
    format!("{}{}{idle}", word(&findings.study), levels.collect::<String>())
}

fn measured(findings: &Findings) -> impl Iterator<Item = (String, &Row)> {
    findings.rows.iter().filter(|row| row.n > 0).map(|row| (name(findings, row), row))
}

fn file_name(name: &str, row: &Row, ending: &str) -> String {
    let plain = name.replace('/', ",");
    if plain.len() <= FILE_MAX {
        return format!("{plain}.{ending}");
    }
    let end = (0..=FILE_MAX).rev().find(|&end| plain.is_char_boundary(end)).unwrap_or(0);
    format!("{}~{}.{ending}", &plain[..end], row.point)
}

/// Keeps letters, digits and `-_.+:@`, and percent-encodes all other bytes.
fn word(text: &str) -> String {
    let is_kept = |letter: char| letter.is_alphanumeric() || "-_.+:@".contains(letter);
    let part =
        |letter: char| if is_kept(letter) { letter.to_string() } else { study::validate_http::percent_encoded(letter) };
    text.chars().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;
    use study::plan::Level;

    #[test]
    fn names_have_every_factor() {
        let (run, records) = fixtures::volley();
        let findings = analysis::analyze(&run, &records);
        assert_eq!(name(&findings, &findings.rows[4]), "volley/server=go/cores=1/clients=40");
        assert_eq!(
            file_name("volley/server=go", &findings.rows[4], "hgrm"),
            "volley,server=go.hgrm",
            "no directory, whatever the name"
        );
        assert_eq!(file_name(&"ä".repeat(300), &findings.rows[4], "hgrm"), format!("{}~4.hgrm", "ä".repeat(100)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn distinct_levels_have_distinct_names(first in ".*", second in ".*") {
            let (run, _) = fixtures::volley();
            let mut findings = analysis::analyze(&run, &[]);
            let names = [&first, &second].map(|level| {
                findings.rows[0].factors.insert("server".to_owned(), Level::Text(level.clone()));
                name(&findings, &findings.rows[0])
            });
            prop_assert_eq!(names[0] == names[1], first == second);
            for (name, level) in names.iter().zip([&first, &second]) {
                prop_assert!(!name.contains(|c: char| c.is_whitespace() || c.is_control() || "\",'\\;".contains(c)), "{}", name);
                let back = name.strip_prefix("volley/server=").unwrap().strip_suffix("/cores=1/clients=40").unwrap();
                prop_assert_eq!(&*percent_decode_str(back).decode_utf8().unwrap(), level.as_str());
                prop_assert!(file_name(name, &findings.rows[0], "hgrm").len() <= 255);
                prop_assert!(hdrhistogram::serialization::interval_log::Tag::new(name).is_some());
            }
        }
    }
}
