//! Searches for the highest sustained rate: converts trials for `stats::search`, and describes the results. [`Search`]
//! is a search without a study (`quintain load --find`), for a server that is already running.

mod judge;

use schemars::JsonSchema;
use serde::Serialize;
use stats::search::{self, Ended, Found, Missing, Outcome, Rules, Trial};
use study::plan::{Plan, SearchPlan};
use study::record::{self, Failure, FailureKind, Limit, Measurement, Purpose, Record, Step, Verdict};
use study::{Next, Objective};

use crate::enum_words_and_lists::serde_name;
use crate::findings::{Mark, SearchFinding, SearchStep, SearchVerdict};
use crate::group_by_key::distinct;
use crate::number::{count, quantity};
use crate::stop_rule::has_enough;
use crate::verdict;

use judge::{Judged, judge};

/// Version of [`FindReport`] that this build writes.
pub const FIND_VERSION: u32 = 1;

/// Highest rate that a search tries, per second; far above the reach of any generator.
const HIGHEST_PER_S: f64 = 1e9;

/// Returns the next trial at a design point, if one is needed: a search step, a share of a capacity, or a plain trial.
pub fn next(plan: &Plan, point: usize, records: &[Record]) -> Next {
    let load = &plan.points[point].load;
    let mine = records.iter().filter(|record| record.point == point).collect::<Vec<_>>();
    if let Some(search) = &load.search {
        return next_step(search, &mine).map_or(Next::Enough, |step| Next::Trial(Some(step)));
    }
    if has_enough(plan, point, records) {
        return Next::Enough;
    }
    let Some(share) = load.share else { return Next::Trial(None) };
    match capacity(plan, share.point, records) {
        Some(found) => Next::Trial(Some(Step { purpose: Purpose::Share, rate_per_s: Some(found * share.share) })),
        None => Next::Enough,
    }
}

/// Describes a search step, such as `bisect 120 k/s: holds (p99 2.10 ms)`; `None` for other trials.
pub fn step(plan: &Plan, record: &Record) -> Option<String> {
    let search = plan.points.get(record.point)?.load.search.as_ref()?;
    Some(step_text(&step_and_trial(&search.objective, record).0))
}

/// Returns the capacity that the search at this point found, per second; `None` if the search has no lower end.
fn capacity(plan: &Plan, point: usize, records: &[Record]) -> Option<f64> {
    let search = plan.points.get(point)?.load.search.as_ref()?;
    let mine = records.iter().filter(|record| record.point == point).collect::<Vec<_>>();
    finding(search, &mine).low.map(|end| end.rate_per_s)
}

/// Returns the next step of a search; `None` if it is complete.
fn next_step(search: &SearchPlan, records: &[&Record]) -> Option<Step> {
    let (_, trials) = steps_and_trials(&search.objective, records);
    let next = search::next(&rules(search), &trials, time_is_over(search, records));
    if let search::Next::Trial(step) = next { Some(step) } else { None }
}

fn steps_and_trials(objective: &Objective, records: &[&Record]) -> (Vec<SearchStep>, Vec<Trial>) {
    records.iter().map(|record| step_and_trial(objective, record)).unzip()
}

/// Converts a record into its step and its result. A pilot runs a closed loop, so it does not test the objective.
fn step_and_trial(objective: &Objective, record: &Record) -> (SearchStep, Trial) {
    // A record without a step does not belong to a search, so it counts as a failed pilot.
    let Step { purpose, rate_per_s } = record.step.unwrap_or(Step { purpose: Purpose::Bracket, rate_per_s: None });
    let is_pilot = purpose == Purpose::Pilot;
    let reached_per_s = record.measurement().map(Measurement::rate_per_s).filter(|_| is_pilot);
    let Judged { outcome, why, values } = judged(objective, record);
    let trial = match rate_per_s {
        Some(rate_per_s) if !is_pilot => Trial::Step { rate_per_s, purpose, outcome },
        _ => Trial::Pilot(reached_per_s),
    };
    let verdict = if is_pilot { SearchVerdict::Unknown } else { verdict_of_one(&outcome) };
    let values = if is_pilot { Vec::new() } else { values };
    let why = reached_per_s.map_or(why, |reached| format!("a closed loop reached {}", rate(reached)));
    (SearchStep { order: record.order, purpose, rate_per_s, verdict, why, values, trial: None }, trial)
}

/// Describes the state of a search.
pub(crate) fn finding(search: &SearchPlan, records: &[&Record]) -> SearchFinding {
    let (steps, trials) = steps_and_trials(&search.objective, records);
    let limited = |limit| records.iter().any(|record| limit_of(record) == Some(limit));
    // The mark of trials that do not measure the server.
    let bound = match () {
        () if limited(Limit::Network) => Mark::NetworkBound,
        () if limited(Limit::Shared) && !limited(Limit::Generator) => Mark::Shared,
        () => Mark::GeneratorBound,
    };
    let (objective, rules, is_over) = (&search.objective, rules(search), time_is_over(search, records));
    let finished = matches!(search::next(&rules, &trials, is_over), search::Next::Done(_));
    let search::Next::Done(found) = search::next(&rules, &trials, is_over || !finished) else {
        unreachable!("a search without time has ended")
    };
    let last_words = steps.last().map_or("", |step| step.why.as_str());
    let ended = if finished { ended(&found, last_words, bound) } else { "stopped early".to_owned() };
    let complete = finished && matches!(found.ended, Ended::Found | Ended::Noise);
    SearchFinding {
        objective: objective.to_string(),
        low: found.low.ok(),
        high: found.high.ok(),
        no_low: found.low.err().map(|missing| no_low(missing, bound)),
        no_high: found.high.err().map(|missing| no_high(missing, bound)),
        generator_from_per_s: if let Err(Missing::Generator(at)) = found.high { Some(at) } else { None },
        undecided_per_s: found.undecided_per_s.clone(),
        contradictions_per_s: found.contradictions_per_s.clone(),
        complete,
        sentence: sentence(objective, &found, complete, &ended, bound),
        ended,
        bound: found.bound(),
        resolution: rules.resolution,
        trials: found.trials,
        rates: search::rates(&rules, &trials),
        steps,
    }
}

fn rules(search: &SearchPlan) -> Rules {
    let &SearchPlan { from_per_s, to_per_s, resolution, confirm, trials_max, .. } = search;
    Rules { from_per_s, to_per_s: to_per_s.or(Some(HIGHEST_PER_S)), resolution, confirm, trials_max }
}

fn time_is_over(search: &SearchPlan, records: &[&Record]) -> bool {
    let spent_ns = crate::number::total(records.iter().map(|record| record.elapsed_ns));
    search.max_ns.is_some_and(|max_ns| spent_ns >= max_ns)
}

/// Limit of a trial. CPUs that server and generator share by design do not count as a limit.
fn limit_of(record: &Record) -> Option<Limit> {
    let limit = record.verdict.as_ref().map(|verdict| verdict.limited_by);
    limit.filter(|limit| *limit != Limit::Shared || !record.cpus_shared)
}

fn judged(objective: &Objective, record: &Record) -> Judged {
    let rss_bytes = record.subject.rss_max_bytes;
    match &record.outcome {
        record::Outcome::Measured(measurement) => judge(objective, measurement, limit_of(record), rss_bytes),
        record::Outcome::Failed(failure) => {
            // A server that fails under a load does not sustain it.
            let is_broken = matches!(failure.kind, FailureKind::Exited | FailureKind::Answers | FailureKind::Hung);
            let outcome = if is_broken { Outcome::Broke } else { Outcome::Failed };
            Judged { outcome, why: failure.message.clone(), values: Vec::new() }
        }
    }
}

fn verdict_of_one(outcome: &Outcome) -> SearchVerdict {
    match *outcome {
        Outcome::Judged { excess, .. } if excess < 0.0 => SearchVerdict::Holds,
        Outcome::Judged { .. } | Outcome::Broke => SearchVerdict::Fails,
        Outcome::Generator => SearchVerdict::Generator,
        Outcome::TooFew => SearchVerdict::TooFew,
        Outcome::Failed => SearchVerdict::Unknown,
    }
}

/// Formats a rate per second with a unit of suitable size.
pub fn rate(rate_per_s: f64) -> String {
    quantity(rate_per_s, "1/s")
}

fn no_low(missing: Missing, bound: Mark) -> String {
    match missing {
        Missing::Generator(at) => format!("{} from {} up: the server's limit was not reached", bound.text(), rate(at)),
        Missing::Asked(lowest) => format!("objective not met at {}, the lowest rate tried", rate(lowest)),
        Missing::TooFew(at) => format!("too few responses at {} and below; measure longer", rate(at)),
        Missing::Undecided => "no rate below could be decided".to_owned(),
        Missing::Ended => "no rate was found to hold before the search ended".to_owned(),
    }
}

fn no_high(missing: Missing, bound: Mark) -> String {
    match missing {
        Missing::Asked(highest) => format!("no failure up to {}, the highest rate tried", rate(highest)),
        Missing::TooFew(_) | Missing::Undecided => "no rate above could be decided".to_owned(),
        Missing::Ended => "no rate was found to fail before the search ended".to_owned(),
        Missing::Generator(_) => no_low(missing, bound),
    }
}

fn ended(found: &Found, last_words: &str, bound: Mark) -> String {
    match found.ended {
        Ended::Found => match (found.low, found.high) {
            (Ok(_), Ok(_)) => "both ends confirmed".to_owned(),
            (Err(missing), _) => no_low(missing, bound),
            (Ok(_), Err(missing)) => no_high(missing, bound),
        },
        Ended::Noise => {
            let rates = found.undecided_per_s.iter().map(|at| rate(*at)).collect::<Vec<_>>().join(", ");
            let undecided = if rates.is_empty() { rates } else { format!(": {rates} could not be decided") };
            format!("as narrow as the noise allows{undecided}")
        }
        Ended::Trials => format!("trial limit reached after {}", count(found.trials as u64, "trial")),
        Ended::Time => "time limit reached".to_owned(),
        Ended::Broken => format!("aborted, trials failed: {last_words}"),
    }
}

fn sentence(objective: &Objective, found: &Found, complete: bool, ended: &str, bound: Mark) -> String {
    let sure = |end: search::End| if end.confirmed { "" } else { " (not confirmed)" };
    let low = found.low.ok().map(|end| format!("holds {}{}", rate(end.rate_per_s), sure(end)));
    let high = found.high.ok().map(|end| format!("fails at {}{}", rate(end.rate_per_s), sure(end)));
    let no_low = found.low.err().filter(|_| complete).map(|missing| no_low(missing, bound));
    let no_high = found.high.err().filter(|_| complete).map(|missing| no_high(missing, bound));
    // Both ends may be missing for the same reason, the generator's limit, which is reported once.
    let parts = distinct([low, high, no_low, no_high].into_iter().flatten());
    let parts = if parts.is_empty() { "no rate could be judged".to_owned() } else { parts.join(", ") };
    let is_found = complete && found.ended == Ended::Found;
    let ended = if is_found { String::new() } else { format!("; {ended}") };
    format!("{parts}: {objective}; {}{ended}", count(found.trials as u64, "trial"))
}

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

/// A search in progress with its trials so far, as records of a study with one point.
pub struct Search {
    plan: SearchPlan,
    records: Vec<Record>,
}

impl Search {
    /// Starts a search without trials.
    pub fn new(plan: SearchPlan) -> Self {
        Self { plan, records: Vec::new() }
    }

    /// Number of trials so far, including failed ones.
    pub fn trials(&self) -> usize {
        self.records.len()
    }

    /// Returns the next step; `None` if the search is complete.
    pub fn next(&self) -> Option<Step> {
        next_step(&self.plan, &self.records.iter().collect::<Vec<_>>())
    }

    /// Adds the measurement of a step and describes the result in one line.
    pub fn measured(&mut self, step: Step, measurement: Measurement) -> String {
        // The server's CPUs are not observed, so only the generator can be recognized as a limit.
        let verdict = Some(verdict::judge_load(&measurement));
        self.add(step, verdict, record::Outcome::Measured(measurement))
    }

    /// Adds a step in which the server failed, and describes it in one line. `why` describes the failure.
    pub fn broke(&mut self, step: Step, why: String) -> String {
        self.add(step, None, record::Outcome::Failed(Failure { kind: FailureKind::Answers, message: why }))
    }

    fn add(&mut self, step: Step, verdict: Option<Verdict>, outcome: record::Outcome) -> String {
        let order = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        let record = Record { order, step: Some(step), verdict, outcome, ..Record::default() };
        let line = step_text(&step_and_trial(&self.plan.objective, &record).0);
        self.records.push(record);
        line
    }

    /// Returns the result so far.
    pub fn finding(&self) -> SearchFinding {
        finding(&self.plan, &self.records.iter().collect::<Vec<_>>())
    }
}

fn step_text(step: &SearchStep) -> String {
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
    fn disturbed_trial_does_not_fail_the_rate() {
        let (run, mut records) = example::capacity();
        let told = |record: &Record| step(&run.plan, record).unwrap_or_default();
        let failed = records.iter_mut().find(|record| told(record).contains(": fails")).expect("a rate that fails");
        failed.verdict.as_mut().expect("a verdict").limited_by = Limit::Shared;
        assert!(told(failed).contains("another process took CPU time"), "{}", told(failed));
        failed.cpus_shared = true;
        assert!(told(failed).contains(": fails"), "{}", told(failed));
    }

    #[test]
    fn server_that_breaks_fails_the_rate() {
        let (run, _) = example::capacity();
        let plan = run.plan.points.last().and_then(|point| point.load.search.clone()).unwrap();
        let mut search = Search::new(SearchPlan { from_per_s: Some(1000.0), ..plan });
        let step = search.next().unwrap();
        assert_eq!(
            search.broke(step, "connection refused".to_owned()),
            "bracket 1.000 k/s: fails (connection refused)"
        );
    }
}
