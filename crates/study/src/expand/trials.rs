//! `[trials]`: when there are enough.

use crate::metric::METRICS;
use crate::node::Table;
use crate::parse::Profile;
use crate::plan::TrialRule;
use crate::report::Report;
use crate::section::Bounds;

const COUNT: Bounds<u64> = Bounds { low: 1, high: 10_000, text: "1 to 10,000" };
const MAX_TIME_NS: Bounds<u64> = Bounds { low: 1_000_000_000, high: 604_800_000_000_000, text: "1s to 168h" };
const RELATIVE: Bounds<f64> = Bounds { low: 0.0001, high: 0.5, text: "0.01 % to 50 %" };
const LEVEL: Bounds<f64> = Bounds { low: 0.5, high: 0.9999, text: "50 % to 99.99 %" };

/// Fewer trials make a rule that stops at a narrow interval cover less than it says.
const MIN: u32 = 8;
const MAX: u32 = 30;
const QUICK: u32 = 3;

/// The rule; `None` only where a mistake was reported.
pub(crate) fn read(root: &Table, profile: Profile, report: &Report) -> Option<TrialRule> {
    let quick = profile == Profile::Quick;
    let metric = "latency_mean".to_owned();
    let count = if quick { QUICK } else { MIN };
    let default = TrialRule { relative: None, level: 0.95, metric, min: count, max: count, max_ns: None, quick };
    if root.get("trials").is_none() {
        return Some(default);
    }
    let trials = super::section(root, "trials", report)?;
    trials.only(&["stop"]);
    if !trials.has("stop") {
        report.missing(
            trials.place,
            "`trials` has no `stop`",
            "add `stop = { relative = 0.03, min = 8, max = 30 }`".to_owned(),
        );
        return None;
    }
    let stop = &trials.section("stop")?;
    stop.only(&["relative", "level", "metric", "min", "max", "max_time"]);
    let given = |key: &str, is_read: bool| !stop.has(key) || is_read;
    let relative = stop.fraction("relative", &RELATIVE);
    let level = stop.fraction("level", &LEVEL);
    let metrics = METRICS.iter().map(|metric| (metric.name, metric.name)).collect::<Vec<_>>();
    let metric = stop.choice("metric", "metric", &metrics);
    let (min, max) = (stop.small("min", &COUNT), stop.small("max", &COUNT));
    let max_ns = stop.duration_ns("max_time", &MAX_TIME_NS);
    let all = [
        given("relative", relative.is_some()),
        given("level", level.is_some()),
        given("metric", metric.is_some()),
        given("min", min.is_some()),
        given("max", max.is_some()),
        given("max_time", max_ns.is_some()),
    ];
    // Without a target there is nothing to go on for, so `min` trials are all.
    let least = min.unwrap_or(if relative.is_none() { max.unwrap_or(count) } else { MIN.min(max.unwrap_or(MIN)) });
    let most = max.unwrap_or(if relative.is_none() { least } else { MAX.max(least) });
    if least > most {
        stop.mistake("min", format!("`trials.stop.min` is {least}, above `max`, {most}"), None);
        return None;
    }
    if relative.is_some() && least < 2 {
        stop.mistake("min", "an interval needs two trials", "set `min = 8`, or drop `relative`".to_owned());
        return None;
    }
    if relative.is_none() && !stop.has("relative") && least != most {
        let hint = "add `relative = 0.03`, or drop `max`".to_owned();
        stop.mistake("max", format!("without `relative` there are `min` trials, so `max` {most} has no meaning"), hint);
        return None;
    }
    if all.contains(&false) {
        return None;
    }
    let (level, metric) = (level.unwrap_or(default.level), metric.map_or(default.metric, str::to_owned));
    Some(TrialRule { relative, level, metric, min: least, max: most, max_ns, quick })
}
