//! Searches for the highest sustained rate: converts trials for `stats::search`, and describes the results.

mod find_rate;
mod judge;

use stats::search::{self, Ended, Found, Missing, Outcome, Rules, Trial};
use study::plan::{Plan, SearchPlan};
use study::record::{self, FailureKind, Limit, Purpose, Record, Step};
use study::{Next, Objective};

use crate::findings::{Mark, SearchFinding, SearchStep, SearchValue, SearchVerdict};
use crate::number::{count, quantity};
use crate::stop_rule::reason_to_stop;

pub use find_rate::{FIND_VERSION, FindReport, Search};
use judge::{Judged, judge};

/// Highest rate that a search tries, per second; far above the reach of any generator.
const HIGHEST_PER_S: f64 = 1e9;

/// Returns the next trial at a design point (search step, share of a capacity, or plain), or why none is needed.
pub fn next(plan: &Plan, point: usize, records: &[Record]) -> Next {
    let Some(load) = plan.points.get(point).map(|point| &point.load) else {
        return Next::Enough("the plan has no such design point".to_owned());
    };
    let mine = records.iter().filter(|record| record.point == point).collect::<Vec<_>>();
    if let Some(search) = &load.search {
        let (_, trials) = steps_and_trials(&search.objective, &mine);
        return match search::next(&rules(search), &trials, time_is_over(search, &mine)) {
            search::Next::Trial(step) => Next::Trial(Some(step)),
            search::Next::Done(_) => Next::Enough(finding(search, &mine).sentence),
        };
    }
    if let Some(why) = reason_to_stop(plan, point, records) {
        return Next::Enough(why);
    }
    match load.share {
        None => Next::Trial(None),
        Some(share) => match capacity(plan, share.point, records) {
            Ok(found) => Next::Trial(Some(Step { purpose: Purpose::Share, rate_per_s: Some(found * share.share) })),
            Err(why) => Next::Enough(why),
        },
    }
}

/// Describes a search step, such as `bisect 120 k/s: holds (p99 2.10 ms)`; `None` for other trials.
pub fn step(plan: &Plan, record: &Record) -> Option<String> {
    let search = plan.points.get(record.point)?.load.search.as_ref()?;
    let found = finding(search, &[record]);
    found.steps.first().map(find_rate::step_text)
}

/// Returns the capacity that the search at this point found, per second. Fails if the search has no lower end.
pub(crate) fn capacity(plan: &Plan, point: usize, records: &[Record]) -> Result<f64, String> {
    let search = plan.points.get(point).and_then(|point| point.load.search.as_ref());
    let search = search.ok_or("the design point that should find the capacity is not a search")?;
    let mine = records.iter().filter(|record| record.point == point).collect::<Vec<_>>();
    if mine.is_empty() {
        return Err("no capacity found: no trial of its search was run".to_owned());
    }
    let found = finding(search, &mine);
    found.low.map(|end| end.rate_per_s).ok_or_else(|| format!("no capacity found: {}", found.sentence))
}

pub(crate) fn finding(search: &SearchPlan, records: &[&Record]) -> SearchFinding {
    let (steps, trials) = steps_and_trials(&search.objective, records);
    let limited = |limit| records.iter().any(|record| limit_of(record) == Some(limit));
    let bound = match () {
        () if limited(Limit::Network) => Mark::NetworkBound,
        () if limited(Limit::Shared) && !limited(Limit::Generator) => Mark::Shared,
        () => Mark::GeneratorBound,
    };
    found(search, &trials, steps, time_is_over(search, records), bound)
}

fn steps_and_trials(objective: &Objective, records: &[&Record]) -> (Vec<SearchStep>, Vec<Trial>) {
    let of_record = |record: &&Record| {
        // A record without a step does not belong to a search, so it counts as a failed pilot.
        let step = record.step.unwrap_or(Step { purpose: Purpose::Bracket, rate_per_s: None });
        let reached = record.measurement().map(|measurement| measurement.rate_per_s());
        step_and_trial(objective, record.order, step, judged(objective, record), reached)
    };
    records.iter().map(of_record).unzip()
}

/// Converts a trial into its step and its result. A pilot runs a closed loop, so it does not test the objective.
fn step_and_trial(
    objective: &Objective,
    order: u32,
    step: Step,
    judged: Judged,
    reached_per_s: Option<f64>,
) -> (SearchStep, Trial) {
    let Step { purpose, rate_per_s } = step;
    let is_pilot = purpose == Purpose::Pilot;
    let trial = match rate_per_s {
        Some(rate_per_s) if !is_pilot => Trial::Step { rate_per_s, purpose, outcome: judged.outcome },
        _ => Trial::Pilot(reached_per_s.filter(|_| is_pilot)),
    };
    let verdict = if is_pilot { SearchVerdict::Unknown } else { verdict_of_one(&judged.outcome) };
    let values = if is_pilot { Vec::new() } else { values(objective, &judged) };
    let why = match reached_per_s.filter(|_| is_pilot) {
        Some(reached) => format!("a closed loop reached {}", rate(reached)),
        None => judged.why,
    };
    (SearchStep { order, purpose, rate_per_s, verdict, why, values, trial: None }, trial)
}

/// Describes the state of a search. `bound` is the mark of trials that do not measure the server.
fn found(search: &SearchPlan, trials: &[Trial], steps: Vec<SearchStep>, is_over: bool, bound: Mark) -> SearchFinding {
    let (objective, rules) = (&search.objective, rules(search));
    let (found, finished) = match search::next(&rules, trials, is_over) {
        search::Next::Done(found) => (found, true),
        _ => match search::next(&rules, trials, true) {
            search::Next::Done(found) => (found, false),
            _ => unreachable!("a search without time has ended"),
        },
    };
    let last_words = steps.last().map_or("", |step| step.why.as_str());
    let ended = if finished { ended(&found, last_words, bound) } else { "stopped early".to_owned() };
    SearchFinding {
        objective: objective.to_string(),
        low: found.low,
        high: found.high,
        no_low: found.no_low.map(|missing| no_low(missing, bound)),
        no_high: found.no_high.map(|missing| no_high(missing, bound)),
        generator_from_per_s: match found.no_high {
            Some(Missing::Generator(rate_per_s)) => Some(rate_per_s),
            _ => None,
        },
        undecided_per_s: found.undecided_per_s.clone(),
        contradictions_per_s: found.contradictions_per_s.clone(),
        complete: finished && matches!(found.ended, Ended::Found | Ended::Noise),
        sentence: sentence(objective, &found, finished, last_words, bound),
        ended,
        bound: found.bound(),
        resolution: rules.resolution,
        trials: found.trials,
        rates: search::rates(&rules, trials),
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
    let failed = |outcome, why: &str| Judged { outcome, why: why.to_owned(), values: Vec::new() };
    match &record.outcome {
        record::Outcome::Measured(measurement) => {
            judge(objective, measurement, limit_of(record), record.subject.rss_max_bytes)
        }
        record::Outcome::Failed(failure) => match failure.kind {
            // A server that fails under a load does not sustain it.
            FailureKind::Exited | FailureKind::Answers | FailureKind::Hung => failed(Outcome::Broke, &failure.message),
            _ => failed(Outcome::Failed, &failure.message),
        },
    }
}

fn values(objective: &Objective, judged: &Judged) -> Vec<SearchValue> {
    let of = objective.conditions().iter().zip(&judged.values);
    let value = of.filter_map(|(condition, value)| {
        let value = (*value)?;
        Some(SearchValue {
            metric: condition.metric.name.to_owned(),
            condition: condition.to_string(),
            bound: condition.bound,
            value: value.point,
            low: value.interval.map(|ends| ends.0),
            high: value.interval.map(|ends| ends.1),
        })
    });
    value.collect()
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
    let one_missing = found.no_low.or(found.no_high);
    match found.ended {
        Ended::Found => match one_missing {
            None => "both ends confirmed".to_owned(),
            Some(missing) if found.low.is_none() => no_low(missing, bound),
            Some(missing) => no_high(missing, bound),
        },
        Ended::Noise => {
            let rates = found.undecided_per_s.iter().map(|at| rate(*at)).collect::<Vec<_>>().join(", ");
            match rates.as_str() {
                "" => "as narrow as the noise allows".to_owned(),
                rates => format!("as narrow as the noise allows: {rates} could not be decided"),
            }
        }
        Ended::Trials => format!("trial limit reached after {}", count(found.trials as u64, "trial")),
        Ended::Time => "time limit reached".to_owned(),
        Ended::Broken => format!("aborted, trials failed: {last_words}"),
    }
}

fn sentence(objective: &Objective, found: &Found, finished: bool, last_words: &str, bound: Mark) -> String {
    let sure = |end: search::End| if end.confirmed { "" } else { " (not confirmed)" };
    let low = found.low.map(|end| format!("holds {}{}", rate(end.rate_per_s), sure(end)));
    let high = found.high.map(|end| format!("fails at {}{}", rate(end.rate_per_s), sure(end)));
    let complete = finished && matches!(found.ended, Ended::Found | Ended::Noise);
    let missing = [
        found.no_low.filter(|_| complete).map(|missing| no_low(missing, bound)),
        found.no_high.filter(|_| complete).map(|missing| no_high(missing, bound)),
    ];
    let mut parts = [low, high].into_iter().flatten().collect::<Vec<_>>();
    for missing in missing.into_iter().flatten() {
        // Both ends may be missing for the same reason, the generator's limit, which is reported once.
        if !parts.contains(&missing) {
            parts.push(missing);
        }
    }
    if parts.is_empty() {
        parts.push("no rate could be judged".to_owned());
    }
    let mut text = format!("{}: {objective}; {}", parts.join(", "), count(found.trials as u64, "trial"));
    if !finished {
        text += "; stopped early";
    } else if !matches!(found.ended, Ended::Found) {
        text += &format!("; {}", ended(found, last_words, bound));
    }
    text
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
}
