//! `quintain check`: validates a study and prints its plan and duration.

use std::fmt::Write;

use study::{Plan, Point};

use crate::cli::StudyArgs;
use crate::command_result::Result;
use crate::output;
use crate::study_file::{self, Opened};

pub(crate) fn check(study: &StudyArgs, cpus: Option<&[u32]>, wants_json: bool) -> Result<()> {
    let cpus = crate::run::cpus(cpus)?;
    let opened = study_file::open(study, cpus.len() as u32, None)?;
    let Opened { plan, source, profile } = &opened;
    output::json_or(wants_json, plan, || text(plan, &source.shown, profile.name()))
}

fn text(plan: &Plan, path: &str, profile: &str) -> String {
    let mut text = String::new();
    let estimate = plan.estimate();
    let runnable = plan.points.iter().filter(|point| point.unrunnable.is_none()).count();
    let _ = writeln!(text, "{path}: no errors\n\n{}\n", plan.question);
    let _ = writeln!(text, "profile        {profile}");
    let _ = writeln!(text, "seed           {}", plan.seed);
    let _ = writeln!(text, "design points  {} ({} can run here)", plan.points.len(), runnable);
    let _ = writeln!(text, "trials         {} to {}", estimate.trials_min, estimate.trials_max);
    let [least, most] = [estimate.seconds_min, estimate.seconds_max].map(output::time_words);
    let _ = writeln!(text, "time           {least} to {most}, after the builds");
    let _ = writeln!(text, "load           {}", analysis::describe_load(plan));
    let _ = writeln!(text, "answers        {}", plan.asked());
    let _ = writeln!(text, "stop           {}", stop_text(plan));
    let _ = writeln!(text, "comparisons    {}", claims_text(plan));
    if let Some(page) = page_text(plan) {
        let _ = writeln!(text, "page           {page}");
    }
    text.push('\n');
    let mut rows = vec![plan.factors.clone()];
    rows.extend(plan.points.iter().map(|point| {
        let level = |factor| point.factors.get(factor).map(ToString::to_string).unwrap_or_default();
        plan.factors.iter().map(level).chain(remark(point)).collect()
    }));
    text + &output::columns(&rows)
}

fn remark(point: &Point) -> Option<String> {
    let fewer = || {
        let wanted = point.subject.cpus_wanted?;
        Some(format!("{} of {wanted} CPUs for the server", point.subject.cpus))
    };
    point.unrunnable.clone().or_else(fewer)
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
