//! Searches without a study (`quintain load --find`), for a server that is already running.

use schemars::JsonSchema;
use serde::Serialize;
use stats::search::{self, Outcome, Trial};
use study::plan::SearchPlan;
use study::record::{Measurement, Step};

use super::judge::{Judged, judge};
use super::{found, rate, rules, step_and_trial};
use crate::enum_words_and_lists::serde_name;
use crate::findings::{Mark, SearchFinding, SearchStep};
use crate::verdict;

/// Version of [`FindReport`] that this build writes.
pub const FIND_VERSION: u32 = 1;

/// Output of `quintain load --find --json`. Scripts may rely on its keys; more may be added.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FindReport {
    /// Format version of the report, [`FIND_VERSION`].
    pub version: u32,
    /// Target of the load as the user named it.
    pub target: String,
    /// The range that the search found, and the steps that led to it.
    pub search: SearchFinding,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

/// A search in progress with its trials so far.
#[derive(Clone, Debug)]
pub struct Search {
    plan: SearchPlan,
    trials: Vec<Trial>,
    steps: Vec<SearchStep>,
}

impl Search {
    /// Starts a search without trials.
    pub fn new(plan: SearchPlan) -> Self {
        Self { plan, trials: Vec::new(), steps: Vec::new() }
    }

    /// Number of trials so far, including failed ones.
    pub fn trials(&self) -> usize {
        self.trials.len()
    }

    /// Returns the next step; `None` if the search is complete.
    pub fn next(&self, time_is_over: bool) -> Option<Step> {
        match search::next(&rules(&self.plan), &self.trials, time_is_over) {
            search::Next::Trial(step) => Some(step),
            search::Next::Done(_) => None,
        }
    }

    /// Adds the measurement of a step and describes the result in one line.
    pub fn measured(&mut self, step: Step, measurement: &Measurement) -> String {
        // The server's CPUs are not observed, so only the generator can be recognized as a limit.
        let limit = verdict::judge_load(measurement).limited_by;
        let judged = judge(&self.plan.objective, measurement, Some(limit), None);
        self.add(step, judged, Some(measurement.rate_per_s()))
    }

    /// Adds a step in which the server failed, and describes it in one line. `why` describes the failure.
    pub fn broke(&mut self, step: Step, why: &str) -> String {
        self.add(step, Judged { outcome: Outcome::Broke, why: why.to_owned(), values: Vec::new() }, None)
    }

    fn add(&mut self, step: Step, judged: Judged, reached_per_s: Option<f64>) -> String {
        let order = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let (told, trial) = step_and_trial(&self.plan.objective, order, step, judged, reached_per_s);
        self.trials.push(trial);
        let line = step_text(&told);
        self.steps.push(told);
        line
    }

    /// Returns the result so far. `time_is_over` means that no further step can follow.
    pub fn finding(&self, time_is_over: bool) -> SearchFinding {
        found(&self.plan, &self.trials, self.steps.clone(), time_is_over, Mark::GeneratorBound)
    }
}

pub(super) fn step_text(step: &SearchStep) -> String {
    let for_what = serde_name(step.purpose);
    match step.rate_per_s {
        None => format!("{for_what}: {}", step.why),
        Some(rate_per_s) => format!("{for_what} {}: {} ({})", rate(rate_per_s), step.verdict.text(), step.why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn server_that_breaks_fails_the_rate() {
        let (run, _) = example::capacity();
        let plan = run.plan.points.last().and_then(|point| point.load.search.clone()).unwrap();
        let mut search = Search::new(SearchPlan { from_per_s: Some(1000.0), ..plan });
        let step = search.next(false).unwrap();
        assert_eq!(search.broke(step, "connection refused"), "bracket 1.000 k/s: fails (connection refused)");
    }
}
