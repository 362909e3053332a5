//! Writes the paragraphs that explain how a report's numbers were obtained.

use study::Plan;
use study::plan::Point;
use study::record::{IdlePolicy, Run};
use study::spec::{Connection, ThinkTime};

use crate::findings::{Clock, Scope};
use crate::number::{count, percent};
use crate::trial_position_and_values::Kept;
use crate::{load_description, value};

const COMPARED: &str = "Two points are compared on the blocks they share, by exact signed-rank tests adjusted for all \
                        comparisons (Holm): the state of the machine in a block affects both. The ratio shown \
                        compares typical starts (Hodges & Lehmann). With fewer than 12 common blocks the report \
                        claims nothing.";

const CLOSED_LOOP: &str = "Closed loop: a client waits for its response before it sends again; latency is service time, \
                           from write to response. ";

const OPEN_LOOP: &str =
    "Open loop: requests follow a schedule; latency is response time, from intended send time to response. ";

const QUANTILES: &str = "Quantiles come from the histogram of a whole trial (three significant digits) and are then \
                         averaged over trials like any other value; within a trial they are never averaged. A \
                         quantile is given only if every trial has enough responses.";

const VERDICTS: &str = "Each trial has a verdict on its bottleneck, from the CPU time of generator and server, the \
                        generator's send lag and the offered load. A row is marked if the generator was the \
                        bottleneck, or shared the server's CPUs, in half of the trials: its numbers do not measure \
                        the server, and it is not ranked.";

const CLUSTER: &str = "The load came from several machines. Quantiles cover the requests of all of them. Each generator \
                       has its own verdict and is compared with the others of its trial; the trial takes the worst \
                       verdict. A row is also marked if the network between generators and server was the bottleneck \
                       in half of the trials.";

const PROBES: &str = " A short fixed piece of work on the CPUs in use, before and after each trial, flags a trial if \
                      another process used one of them; no value is adjusted.";

const THINK_TIME: &str = "Clients pause (think time) between response and next request; latency excludes think time.";

pub(crate) fn paragraphs(run: &Run, kept: &[Kept], has_probes: bool, scope: Option<&Scope>) -> Vec<String> {
    let plan = &run.plan;
    let load = load_description::describe_load(plan);
    let has_clock = |clock| kept.iter().any(|trial| trial.clock == Some(clock));
    let has_idle = |idle| kept.iter().any(|trial| trial.idle == idle);
    let is_per_request = plan.points.iter().any(|point| point.load.connection == Connection::PerRequest);
    let thinks = |point: &Point| point.load.arrivals.think() != ThinkTime::NONE;

    let trials = format!(
        "Each trial starts a fresh server process; replication is by trial, not by request. Trials ran in blocks: each \
         block has every design point once, in an order shuffled from the seed {}, so machine drift affects all \
         design points equally.",
        plan.seed
    );
    let latency = [
        (has_clock(Clock::Service), CLOSED_LOOP),
        (is_per_request && has_clock(Clock::Service), "With one connection per request, it starts at connect. "),
        (has_clock(Clock::Response), OPEN_LOOP),
        (true, QUANTILES),
    ];
    let idle = match (has_idle(IdlePolicy::Machine), has_idle(IdlePolicy::Spin)) {
        (true, false) => "Idle CPUs followed the machine's power management (idle policy `machine`).",
        (false, true) => "Idle CPUs were kept awake by lowest-priority spinners (idle policy `spin`).",
        (true, true) => "Both idle policies were used, each in its own rows.",
        (false, false) => "",
    };
    let paragraphs = [
        if load.is_empty() { load } else { format!("Load: {load}.") },
        trials,
        intervals(plan),
        COMPARED.to_owned(),
        scope.map_or(String::new(), |scope| states(scope, has_probes)),
        latency.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect(),
        VERDICTS.to_owned(),
        if run.nodes.is_empty() { "" } else { CLUSTER }.to_owned(),
        if plan.points.iter().any(thinks) { THINK_TIME } else { "" }.to_owned(),
        idle.to_owned(),
    ];
    paragraphs.into_iter().filter(|paragraph| !paragraph.is_empty()).collect()
}

fn intervals(plan: &Plan) -> String {
    let rule = &plan.trials;
    let level = match rule.quick {
        true => "; this was a quick run; the intervals have no stated confidence".to_owned(),
        false => format!(", at confidence level {}", percent(value::level(rule))),
    };
    let until = |what: &str, target: f64| {
        let (metric, to, min, max) = (&rule.metric, percent(target), rule.min, rule.max);
        format!("Whole blocks were added until {what} {metric} was known to ±{to}, at least {min} and at most {max}")
    };
    let blocks = match (rule.comparison, rule.relative) {
        (Some(target), _) if plan.contender().is_some() => until("the ratio of each contender to the best in", target),
        (Some(target), _) | (None, Some(target)) => until("each", target),
        (None, None) => format!("{} were requested", count(u64::from(rule.min), "block")),
    };
    format!(
        "An estimate is the mean over trials with a Student's t interval, no narrower than the scatter pooled over all \
         design points implies{level}. {blocks}. Outliers are flagged and never removed."
    )
}

fn states(scope: &Scope, has_probes: bool) -> String {
    let probes = if has_probes { PROBES } else { "" };
    format!(
        "Every absolute interval covers only the states this machine was in during this run, {}: another day it may be \
         faster or slower, and a run says nothing about states it did not see. A test over all trials in run order \
         checks whether neighbouring trials are alike; the absence of an alarm proves nothing. Ratios compare trials \
         of the same blocks.{probes}",
        scope.times
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn describes_the_run() {
        let (mut run, records) = example::volley();
        let records = records
            .iter()
            .map(|record| Kept::new(record, crate::value::values_and_bounds(record, 0.95)))
            .collect::<Vec<_>>();
        let text = paragraphs(&run, &records, true, None).join("\n");
        assert!(
            text.contains("at confidence level 95 %")
                && text.contains("was known to ±3.0 %, at least 8 and at most 30"),
            "{text}"
        );
        assert!(text.contains("Closed loop") && !text.contains("Open loop") && text.contains("`machine`"), "{text}");
        run.plan.trials.quick = true;
        run.plan.trials.relative = None;
        let text = paragraphs(&run, &records, true, None).join("\n");
        assert!(text.contains("have no stated confidence") && text.contains("8 blocks were requested"), "{text}");
    }
}
