//! Results of a search without a study (`quintain load --find`), as text for a terminal.

use analysis::findings::SearchEnd;
use analysis::number::count;
use analysis::search::{FindReport, rate};

use crate::terminal_style_and_wrap::{Lines, Style};

/// Renders the report for a terminal: the range, its trials and each rate.
pub fn find_terminal(report: &FindReport, style: &Style) -> String {
    let search = &report.search;
    let mut lines = Lines::new(style);
    let end = |end: Option<SearchEnd>, missing: &Option<String>| match end {
        Some(end) => {
            let trials = count(end.trials as u64, "trial");
            let sure = if end.confirmed { "" } else { ", not confirmed" };
            format!("{}  {}", style.bold(&rate(end.rate_per_s)), style.dim(&format!("{trials}{sure}")))
        }
        None => missing.clone().unwrap_or_else(|| "unknown".to_owned()),
    };
    lines.add("load", [format!("{}, open loop", report.target)]);
    lines.add("objective", [search.objective.clone()]);
    lines.add("holds", [end(search.low, &search.no_low)]);
    lines.add("fails at", [end(search.high, &search.no_high)]);
    lines.add("ended", [format!("{}; {}", search.ended, count(search.trials as u64, "trial"))]);
    let rates = search.rates.iter().map(|tried| {
        let (offered, verdict) = (rate(tried.rate_per_s), tried.verdict.text());
        let kept = format!("{} of {} met it", tried.kept, tried.trials);
        let kept = if tried.trials == 0 { "" } else { kept.as_str() };
        format!("{offered:>10}  {verdict:<18}{}", style.dim(kept)).trim_end().to_owned()
    });
    lines.add("rates", rates);
    for warning in &report.warnings {
        lines.add("warning", [style.warn(warning)]);
    }
    lines.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{FIND_VERSION, Search};
    use fixtures as example;

    /// Replays the first steps of the example's search as a search without a study.
    fn example(steps: usize) -> Search {
        let (run, records) = example::capacity();
        let plan = run.plan.points.last().and_then(|point| point.load.search.clone()).unwrap();
        let mut search = Search::new(plan);
        for record in records.iter().filter(|record| record.point + 1 == run.plan.points.len()).take(steps) {
            assert_eq!(search.next(false), record.step, "the same decisions as in a study");
            search.measured(record.step.unwrap(), record.measurement().unwrap());
        }
        search
    }

    #[test]
    fn decides_like_a_study_and_reports_the_range() {
        let search = example(usize::MAX);
        assert_eq!(search.next(false), None);
        let report = FindReport {
            version: FIND_VERSION,
            target: "http://localhost:8080/".to_owned(),
            search: search.finding(false),
            warnings: vec!["one server for all trials".to_owned()],
        };
        insta::assert_snapshot!(find_terminal(&report, &Style::PLAIN), @"
        load         http://localhost:8080/, open loop
        objective    p99 < 5ms and errors < 0.1%
        holds        64.1 k/s  5 trials
        fails at     69.9 k/s  3 trials
        ended        both ends confirmed; 12 trials
        rates          34.9 k/s  holds             1 of 1 met it
                       49.4 k/s  holds             1 of 1 met it
                       58.8 k/s  holds             1 of 1 met it
                       64.1 k/s  holds             5 of 5 met it
                       69.9 k/s  fails             0 of 3 met it
        warning      one server for all trials
        ");
    }

    #[test]
    fn interrupted_searches_report_partial_results() {
        let search = example(4);
        let report = FindReport {
            version: FIND_VERSION,
            target: "http://localhost:8080/".to_owned(),
            search: search.finding(false),
            warnings: Vec::new(),
        };
        insta::assert_snapshot!(find_terminal(&report, &Style::PLAIN), @"
        load         http://localhost:8080/, open loop
        objective    p99 < 5ms and errors < 0.1%
        holds        49.4 k/s  1 trial, not confirmed
        fails at     69.9 k/s  1 trial, not confirmed
        ended        stopped early; 4 trials
        rates          34.9 k/s  holds             1 of 1 met it
                       49.4 k/s  holds             1 of 1 met it
                       69.9 k/s  fails             0 of 1 met it
        ");
    }
}
