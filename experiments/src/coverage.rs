//! `experiments coverage`: the full simulation behind the coverage tables of `docs/results/coverage.md`.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;

mod false_claims_within_trials;
mod intervals;
mod whole_reports;

use intervals::{Case, Outcome};

const DOCUMENT: &str = "docs/results/coverage.md";
const BEGIN: &str = "<!-- coverage begin -->";
const END: &str = "<!-- coverage end -->";

/// Simulate how often the intervals of the statistics keep the promises in docs/results/coverage.md
#[derive(Args)]
pub(crate) struct CoverageArgs {
    /// Studies per row
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    studies: u32,
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the tables to docs/results/coverage.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(options: &CoverageArgs) -> Result<(), String> {
    let mut results = Vec::new();
    for case in intervals::cases() {
        let outcome = intervals::run(&case, options.studies, options.seed);
        eprintln!("{}: {}", case.name, share(outcome.coverage()));
        results.push((case, outcome));
    }
    let rows = whole_reports::rows(options.studies, options.seed);
    let of_windows = false_claims_within_trials::rows(options.studies, options.seed);
    let table = [
        table(&results, options),
        whole_reports::table(&rows, "In reports on several contenders", |row| {
            !row.what.contains("absolute") && !row.what.contains("the same") && !is_gate(row)
        }),
        whole_reports::table(&rows, "Comparisons and gates", is_gate),
        whole_reports::table(&rows, "Absolute intervals", |row| {
            row.what.contains("absolute") || row.what.contains("the same")
        }),
        whole_reports::table(&of_windows, "Inside of trials, and single trials", |_| true),
        whole_reports::power_table(options.studies.min(1_000), options.seed),
    ]
    .join("\n\n");
    println!("{table}");
    if options.write {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(DOCUMENT);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{DOCUMENT}: {error}"))?;
        std::fs::write(&path, insert(&text, &table)?).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    }
    let broken = results.iter().filter(|(case, outcome)| !outcome.keeps(case.promise, 0.0));
    let broken = broken
        .map(|(case, outcome)| {
            format!("{}: {} where {} is promised", case.name, share(outcome.coverage()), case.promise)
        })
        .chain(rows.iter().chain(&of_windows).filter(|row| !row.kept()).map(|row| {
            format!("{}, {}: {} where {} is promised", row.what, row.world, share(Some(row.share)), row.promise)
        }))
        .collect::<Vec<_>>();
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Promise {
    Between(f64, f64),
    AtLeast(f64),
    AtMost(f64),
    /// [`Promise::Between`] if at least half of the studies get an interval; otherwise, fewer than 5 % get a wrong one.
    BetweenOrDeclined(f64, f64),
    /// No promise, for this reason; the row is shown for comparison.
    Nothing(&'static str),
}

impl std::fmt::Display for Promise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |share: f64| format!("{:.1}", share * 100.0).trim_end_matches(".0").to_owned();
        match *self {
            Promise::Between(low, high) => write!(f, "{} to {} %", percent(low), percent(high)),
            Promise::AtLeast(share) => write!(f, "{} % or more", percent(share)),
            Promise::AtMost(share) => write!(f, "{} % or less", percent(share)),
            Promise::BetweenOrDeclined(low, high) => write!(f, "{} to {} %, or declines", percent(low), percent(high)),
            Promise::Nothing("") => write!(f, "none"),
            Promise::Nothing(why) => write!(f, "none: {why}"),
        }
    }
}

fn is_gate(row: &whole_reports::Row) -> bool {
    row.what.contains("gate") || row.what.contains("compared with itself")
}

fn share(fraction: Option<f64>) -> String {
    fraction.map_or("none".to_owned(), |fraction| format!("{:.1} %", fraction * 100.0))
}

fn table(results: &[(Case, Outcome)], options: &CoverageArgs) -> String {
    let mut text = format!(
        "{} simulated studies a row, seed {}, intervals of 95 %.\n\n\
         | What | Promised | Hold the truth | Declined | Half-width |\n|---|---|---:|---:|---:|\n",
        options.studies, options.seed
    );
    for (case, outcome) in results {
        let declined = if outcome.answered < outcome.studies { share(Some(outcome.declined())) } else { String::new() };
        let width = if outcome.answered > 0 { format!("±{}", share(Some(outcome.width))) } else { String::new() };
        let coverage = share(outcome.coverage());
        let _ = writeln!(text, "| {} | {} | {coverage} | {declined} | {width} |", case.name, case.promise);
    }
    text.pop();
    text
}

fn insert(text: &str, table: &str) -> Result<String, String> {
    let missing = |mark: &str| format!("{DOCUMENT}: no line `{mark}`");
    let (before, rest) = text.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    Ok(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_replaces_the_text_between_the_marks() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(insert(&text, "new").unwrap(), format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert!(insert("no marks", "new").is_err());
        assert!(insert(BEGIN, "new").unwrap_err().contains(END));
    }

    #[test]
    fn formats_a_row_per_case() {
        let case = intervals::cases().remove(0);
        let outcome = Outcome { studies: 100, answered: 80, covered: 76, width: 0.012 };
        let options = CoverageArgs { studies: 100, seed: 1, write: false };
        let text = table(&[(case, outcome)], &options);
        let row = text.lines().last().unwrap();
        assert_eq!(row, "| mean of 5 trials, lognormal latency | 93 to 97 % | 95.0 % | 20.0 % | ±1.2 % |");
    }
}
