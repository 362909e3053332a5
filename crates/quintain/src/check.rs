//! `quintain check`: validates a study and prints its plan and duration.

use study::{Plan, Point};

use crate::cli::StudyArgs;
use crate::command_result::Result;
use crate::output;
use crate::run::this_machine;
use crate::study_file::{self, Opened};

pub(crate) fn check(study: &StudyArgs, cpus: Option<&[u32]>, wants_json: bool) -> Result<()> {
    let opened = study_file::open(study, &this_machine(cpus)?)?;
    let Opened { plan, source, profile } = &opened;
    output::json_or(wants_json, plan, || text(plan, &source.shown, profile.name()))
}

fn text(plan: &Plan, path: &str, profile: &str) -> String {
    let estimate = plan.estimate();
    let runnable = plan.points.iter().filter(|point| point.unrunnable.is_none()).count();
    let [least, most] = [estimate.seconds_min, estimate.seconds_max].map(output::time_words);
    let facts = [
        ("profile", profile.to_owned()),
        ("seed", plan.seed.to_string()),
        ("design points", format!("{} ({runnable} can run here)", plan.points.len())),
        ("trials", format!("{} to {}", estimate.trials_min, estimate.trials_max)),
        ("time", format!("{least} to {most}, after the builds")),
        ("load", analysis::describe_load(plan)),
        ("answers", plan.asked().to_string()),
        ("stop", stop_text(plan)),
        ("comparisons", claims_text(plan)),
    ];
    let facts = facts.into_iter().chain(page_text(plan).map(|page| ("page", page)));
    let facts = facts.map(|(name, value)| format!("{name:<15}{value}\n")).collect::<String>();
    let mut rows = vec![plan.factors.clone()];
    rows.extend(plan.points.iter().map(|point| {
        let level = |factor| point.factors.get(factor).map(ToString::to_string).unwrap_or_default();
        plan.factors.iter().map(level).chain(remark(point)).collect()
    }));
    format!("{path}: no errors\n\n{}\n\n{facts}\n{}", plan.question, output::columns(&rows))
}

fn remark(point: &Point) -> Option<String> {
    let fewer = |wanted| format!("{} of {wanted} CPUs for the server", point.subject.cpus);
    point.unrunnable.clone().or_else(|| point.subject.cpus_wanted.map(fewer))
}

fn stop_text(plan: &Plan) -> String {
    let rule = &plan.trials;
    let within = |what: &str, target: f64| {
        let (metric, level) = (&rule.metric, rule.level * 100.0);
        format!("{what}{metric} within ±{} % at {level} %, {} to {} blocks", target * 100.0, rule.min, rule.max)
    };
    match (rule.comparison, rule.relative) {
        (Some(target), _) if plan.contender().is_some() => within("ratios of ", target),
        (Some(target), _) | (None, Some(target)) => within("", target),
        (None, None) => format!("{} blocks", rule.min),
    }
}

/// Says that the report omits figures or rows, because the plan is large; `None` if it omits nothing.
fn page_text(plan: &Plan) -> Option<String> {
    let (points, limit) = (plan.points.len(), report::PAGE_LIMIT / 1_000_000);
    (points > report::PAGE_POINTS).then(|| {
        format!(
            "of {points} design points: figures or rows beyond {limit} MB will be left out, and named; \
             `quintain report RUN --figures DIR` and `--format csv` have everything"
        )
    })
}

/// Describes how many blocks it takes to detect differences, which depends on the number of comparisons.
fn claims_text(plan: &Plan) -> String {
    let (tests, needed) = analysis::blocks_needed(plan);
    let most = plan.trials.max.max(plan.trials.min);
    match tests {
        0 => "none: nothing to compare".to_owned(),
        _ if needed > most => format!("none: {tests} comparisons need {needed} blocks, the maximum is {most}"),
        1 => format!("a difference can be detected from {needed} blocks"),
        _ => format!("differences can be detected from {needed} blocks, in {tests} comparisons"),
    }
}
