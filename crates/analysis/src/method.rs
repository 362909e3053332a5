//! How the numbers were made, in words: what a reader needs in order to doubt them well.

use study::record::{IdlePolicy, Record, Run};
use study::spec::{Arrivals, Connection};

use crate::findings::{Clock, Scope};
use crate::number::{count, percent};
use crate::{asked, value};

/// A paragraph each.
pub(crate) fn paragraphs(run: &Run, records: &[&Record], scope: Option<&Scope>) -> Vec<String> {
    let plan = &run.plan;
    let rule = &plan.trials;
    let level = percent(value::level(rule));
    let mut paragraphs = Vec::new();

    let load = asked::asked(plan);
    if !load.is_empty() {
        paragraphs.push(format!("Load: {load}."));
    }
    let mut trials =
        "Each trial starts the subject as a fresh process; the trial, not the request, is what is repeated.".to_owned();
    trials += " Trials ran in blocks: each block has every design point once, in an order shuffled from the seed";
    trials += &format!(" {}, so that a drift of the machine hits all points alike.", plan.seed);
    paragraphs.push(trials);

    let mut intervals =
        "An estimate is the mean over the trials with Student's t interval, no narrower than what all design points \
                         together say of how trials scatter"
            .to_owned();
    intervals += &match rule.quick {
        true => "; this was a quick look, and the intervals do not claim their level.".to_owned(),
        false => format!(" at level {level}."),
    };
    let until = |what: &str, target: f64| {
        let (metric, target, min, max) = (&rule.metric, percent(target), rule.min, rule.max);
        format!(
            " Whole blocks were added until {what} {metric} was known to ±{target}, at least {min} and at most {max}."
        )
    };
    intervals += &match (rule.comparison, rule.relative) {
        (Some(target), _) if plan.contender().is_some() => until("the ratio of each contender to the best in", target),
        (Some(target), _) | (None, Some(target)) => until("each", target),
        (None, None) => format!(" {} were asked for.", count(u64::from(rule.min), "block")),
    };
    intervals += " Outliers are flagged and never removed.";
    paragraphs.push(intervals);
    let compared = "Two points are compared on the blocks that both have, by exact signed rank tests adjusted for all that is compared (Holm): what the \
                    machine does in a block it does to both. The ratio shown is that of typical starts (Hodges & Lehmann). Below 12 common blocks nothing is claimed.";
    paragraphs.push(compared.to_owned());

    if let Some(scope) = scope {
        let mut states = format!(
            "Every absolute interval is of the states in which this machine was in this run, {}: ",
            scope.times
        );
        states += "another day it may be faster or slower, and nothing in a run tells of states that it did not meet.";
        states += " A test over all trials in the order they ran tells whether neighbours are alike; that it gives no alarm proves nothing.";
        states += " Ratios are of trials of the same blocks.";
        if records.iter().any(|record| !record.probes.is_empty()) {
            states += " A short fixed piece of work on the processors in use, before and after each trial, flags trials beside which another \
                       process had a processor; no value is adjusted by it.";
        }
        paragraphs.push(states);
    }

    let clocks = records.iter().filter_map(|record| record.measurement()).map(value::clock).collect::<Vec<_>>();
    let mut latency = String::new();
    let per_request = plan.points.iter().any(|point| point.load.connection == Connection::PerRequest);
    if clocks.contains(&Clock::Service) {
        latency += "Closed loop: a client sends when it has its answer, and latency is service time, from the write to the answer. ";
    }
    if per_request && clocks.contains(&Clock::Service) {
        latency += "Where each request has a connection of its own, it begins when the connection is asked for. ";
    }
    if clocks.contains(&Clock::Response) {
        latency += "Open loop: requests are sent by a timetable, and latency is response time, from the intended send time to the answer. ";
    }
    latency += "Quantiles come from the histogram of a whole trial (three significant digits) and are then averaged over trials like \
                any other value; within a trial they are never averaged. A quantile is given only where every trial has enough answers.";
    paragraphs.push(latency);

    paragraphs.push(
        "Each trial has a verdict on what limited it, from the CPU time of generator and subject, the generator's own send lag and the \
         offered load. A row is marked where the generator was the limit, or shared the subject's processors, in half of the trials: its \
         numbers are not about the subject, and it takes no part in a ranking."
            .to_owned(),
    );

    let think = plan.points.iter().filter_map(|point| match point.load.arrivals {
        Arrivals::Closed { think_ns } => Some(think_ns),
        Arrivals::Poisson { .. } | Arrivals::Constant { .. } | Arrivals::Recorded => None,
    });
    if think.max().is_some_and(|longest| longest > 0) {
        paragraphs
            .push("Clients think between an answer and the next request; the thinking is in no latency.".to_owned());
    }
    let policy = |idle| records.iter().any(|record| record.idle == idle);
    match (policy(IdlePolicy::Machine), policy(IdlePolicy::Spin)) {
        (true, false) => {
            paragraphs.push("Idle processors did what this machine lets them do (idle policy `machine`).".to_owned())
        }
        (false, true) => {
            paragraphs.push(
                "Idle processors were kept awake by spinners of the lowest priority (idle policy `spin`).".to_owned(),
            );
        }
        (true, true) => paragraphs.push("Both idle policies were in force, each in rows of its own.".to_owned()),
        (false, false) => {}
    }
    paragraphs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn says_what_was_done() {
        let (mut run, records) = example::volley();
        let records = records.iter().collect::<Vec<_>>();
        let text = paragraphs(&run, &records, None).join("\n");
        assert!(
            text.contains("at level 95 %") && text.contains("was known to ±3.0 %, at least 8 and at most 30"),
            "{text}"
        );
        assert!(text.contains("Closed loop") && !text.contains("Open loop") && text.contains("`machine`"), "{text}");
        run.plan.trials.quick = true;
        run.plan.trials.relative = None;
        let text = paragraphs(&run, &records, None).join("\n");
        assert!(text.contains("do not claim their level") && text.contains("8 blocks were asked for"), "{text}");
    }
}
