//! A search without a study (`quintain load --find`): the same rules on a server that runs already.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::search::{self, Outcome, Trial};
use study::plan::SearchPlan;
use study::record::{Measurement, Purpose, Step};

use super::judge::{Judged, judge};
use super::{alone, asked, found, pilot, rate, recorded, rules, values};
use crate::findings::{SearchFinding, SearchStep};
use crate::table::purpose;
use crate::terminal::{Paint, Style};
use crate::verdict;

/// The version of [`FindReport`].
pub const FIND_VERSION: u32 = 1;

/// What `quintain load --find --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindReport {
    /// [`FIND_VERSION`].
    pub version: u32,
    /// What was loaded, as it was named.
    pub target: String,
    /// The range, and the steps to it.
    pub search: SearchFinding,
    /// What the reader should know, one sentence each.
    pub warnings: Vec<String>,
}

/// A search in progress, and what its trials said so far.
#[derive(Clone, Debug)]
pub struct Search {
    plan: SearchPlan,
    trials: Vec<Trial>,
    steps: Vec<SearchStep>,
}

impl Search {
    /// A search that has not begun.
    pub fn new(plan: SearchPlan) -> Self {
        Self { plan, trials: Vec::new(), steps: Vec::new() }
    }

    /// Trials so far.
    pub fn len(&self) -> usize {
        self.trials.len()
    }

    /// Whether nothing was measured yet.
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    /// What to measure next; `None`: the search has come to its end.
    pub fn next(&self, time_is_over: bool) -> Option<Step> {
        match search::next(&rules(&self.plan), &self.trials, time_is_over) {
            search::Next::Pilot => Some(Step { purpose: Purpose::Pilot, rate_per_s: None }),
            search::Next::Trial { rate_per_s, purpose } => {
                Some(Step { purpose: recorded(purpose), rate_per_s: Some(rate_per_s) })
            }
            search::Next::Done(_) => None,
        }
    }

    /// What a step has measured; in a line what that says.
    pub fn measured(&mut self, step: Step, measurement: &Measurement) -> String {
        // Nobody watches the subject here: the generator is the limit, or it is not.
        let limit = verdict::judge_load(measurement).limited_by;
        let judged = judge(&self.plan.objective, measurement, Some(limit), None);
        self.add(step, judged, Some(measurement.rate_per_s()))
    }

    /// The subject broke down under a step.
    pub fn broke(&mut self, step: Step, why: &str) -> String {
        self.add(step, Judged { outcome: Outcome::Broke, why: why.to_owned(), values: Vec::new() }, None)
    }

    fn add(&mut self, step: Step, judged: Judged, reached_per_s: Option<f64>) -> String {
        let mut told = SearchStep {
            order: u32::try_from(self.steps.len()).unwrap_or(u32::MAX),
            purpose: step.purpose,
            rate_per_s: step.rate_per_s,
            verdict: alone(&judged.outcome),
            why: judged.why.clone(),
            values: values(&self.plan.objective, &judged),
            trial: None,
        };
        self.trials.push(match step.rate_per_s {
            Some(rate_per_s) => Trial::Step { rate_per_s, purpose: asked(step.purpose), outcome: judged.outcome },
            None => {
                pilot(&mut told, reached_per_s);
                Trial::Pilot(reached_per_s)
            }
        });
        let line = words(&told);
        self.steps.push(told);
        line
    }

    /// What was found so far.
    pub fn finding(&self, time_is_over: bool) -> SearchFinding {
        found(&self.plan.objective, &rules(&self.plan), &self.trials, self.steps.clone(), time_is_over)
    }
}

/// A step in a line: `bisect 120 k/s: holds (p99 2.10 ms)`.
pub(super) fn words(step: &SearchStep) -> String {
    let for_what = purpose(step.purpose);
    match step.rate_per_s {
        None => format!("{for_what}: {}", step.why),
        Some(rate_per_s) => format!("{for_what} {}: {} ({})", rate(rate_per_s), step.verdict.text(), step.why),
    }
}

/// The report of a search. `warnings`: what its caller knows besides.
pub fn find(search: SearchFinding, target: &str, warnings: Vec<String>) -> FindReport {
    FindReport { version: FIND_VERSION, target: target.to_owned(), search, warnings }
}

/// The same as one JSON object, ready to be printed.
///
/// # Errors
/// When a number in it is not finite, which only a damaged measurement makes.
pub fn find_json(report: &FindReport) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(report)
}

/// The same for a person: the range, what it rests on, each rate that was tried.
pub fn find_terminal(report: &FindReport, style: &Style) -> String {
    let paint = Paint(style);
    let search = &report.search;
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {}  {text}", paint.dim(&format!("{name:<11}")));
    };
    line("load", format!("{}, open loop", report.target));
    line("objective", search.objective.clone());
    let end = |end: Option<crate::findings::SearchEnd>, missing: &Option<String>| match end {
        Some(end) => {
            let trials = crate::number::count(end.trials as u64, "trial");
            let sure = if end.confirmed { "" } else { ", not confirmed" };
            format!("{}  {}", paint.bold(&rate(end.rate_per_s)), paint.dim(&format!("{trials}{sure}")))
        }
        None => missing.clone().unwrap_or_else(|| "not known".to_owned()),
    };
    line("holds", end(search.low, &search.no_low));
    line("fails at", end(search.high, &search.no_high));
    line("ended", format!("{}; {}", search.ended, crate::number::count(search.trials as u64, "trial")));
    let rates = search.rates.iter().map(|tried| {
        let kept = format!("{} of {} kept it", tried.kept, tried.trials);
        (rate(tried.rate_per_s), tried.verdict.text(), if tried.trials == 0 { String::new() } else { kept })
    });
    for (index, (offered, verdict, kept)) in rates.enumerate() {
        let name = if index == 0 { "rates" } else { "" };
        line(name, format!("{offered:>10}  {verdict:<18}{}", paint.dim(&kept)).trim_end().to_owned());
    }
    for warning in &report.warnings {
        line("warning", paint.warn(warning));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    /// The steps of the example's search, as if they had been measured without a study.
    fn example() -> Search {
        let (run, records) = example::capacity();
        let plan = run.plan.points.last().and_then(|point| point.load.search.clone()).unwrap();
        let mut search = Search::new(plan);
        for record in records.iter().filter(|record| record.point + 1 == run.plan.points.len()) {
            assert_eq!(search.next(false), record.step, "the same decisions as in a study");
            search.measured(record.step.unwrap(), record.measurement().unwrap());
        }
        search
    }

    #[test]
    fn decides_as_a_study_does_and_tells_the_range() {
        let search = example();
        assert_eq!(search.next(false), None);
        let report =
            find(search.finding(false), "http://localhost:8080/", vec!["one server for all trials".to_owned()]);
        insta::assert_snapshot!(find_terminal(&report, &Style::PLAIN), @r"
        load         http://localhost:8080/, open loop
        objective    p99 < 5ms and errors < 0.1%
        holds        64.1 k/s  5 trials
        fails at     69.9 k/s  3 trials
        ended        both ends confirmed; 12 trials
        rates          34.9 k/s  holds             1 of 1 kept it
                       49.4 k/s  holds             1 of 1 kept it
                       58.8 k/s  holds             1 of 1 kept it
                       64.1 k/s  holds             5 of 5 kept it
                       69.9 k/s  fails             0 of 3 kept it
        warning      one server for all trials
        ");
    }

    #[test]
    fn a_search_that_was_interrupted_tells_what_it_has() {
        let mut search = example();
        search.trials.truncate(4);
        search.steps.truncate(4);
        let report = find(search.finding(false), "http://localhost:8080/", Vec::new());
        insta::assert_snapshot!(find_terminal(&report, &Style::PLAIN), @r"
        load         http://localhost:8080/, open loop
        objective    p99 < 5ms and errors < 0.1%
        holds        49.4 k/s  1 trial, not confirmed
        fails at     69.9 k/s  1 trial, not confirmed
        ended        interrupted; 4 trials
        rates          34.9 k/s  holds             1 of 1 kept it
                       49.4 k/s  holds             1 of 1 kept it
                       69.9 k/s  fails             0 of 1 kept it
        ");
    }

    #[test]
    fn a_subject_that_breaks_fails_the_rate() {
        let (run, _) = example::capacity();
        let plan = run.plan.points.last().and_then(|point| point.load.search.clone()).unwrap();
        let mut search = Search::new(SearchPlan { from_per_s: Some(1000.0), ..plan });
        let step = search.next(false).unwrap();
        assert_eq!(search.broke(step, "connection refused"), "bracket 1.000 k/s: fails (connection refused)");
    }
}
