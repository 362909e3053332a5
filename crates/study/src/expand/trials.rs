//! `[trials]`: when there are enough.

use config::Report;
use config::node::{Table, Value};

use crate::gate::COMPARED;
use crate::metric::METRICS;
use crate::plan::TrialRule;
use crate::source::Profile;

/// The target where a study names none: as a fraction.
const COMPARISON: f64 = 0.03;
/// With fewer blocks nothing is claimed of any two points.
const MIN: u32 = 12;
const MAX: u32 = 30;
const QUICK: u32 = 3;
/// With a `[gate]`: known to this fraction, from the first look on.
const GATE_COMPARISON: f64 = 0.02;
const GATE_MIN: u32 = 10;
const GATE_MAX: u32 = 60;

/// Whether the study names its metric in `trials.stop`.
pub(crate) fn names_metric(root: &Table) -> bool {
    let inner = |table: &Table, key: &str| match &table.get(key)?.node.value {
        Value::Table(table) => Some(table.clone()),
        _ => None,
    };
    inner(root, "trials").and_then(|trials| inner(&trials, "stop")).is_some_and(|stop| stop.get("metric").is_some())
}

/// The rule; `None` only where a mistake was reported.
pub(crate) fn read(root: &Table, profile: Profile, report: &Report) -> Option<TrialRule> {
    let quick = profile == Profile::Quick;
    let metric = if root.get("gate").is_some() { COMPARED[0] } else { "latency_mean" }.to_owned();
    let (comparison, min, max) = match root.get("gate") {
        _ if quick => (None, QUICK, QUICK),
        Some(_) => (Some(GATE_COMPARISON), GATE_MIN, GATE_MAX),
        None => (Some(COMPARISON), MIN, MAX),
    };
    let default = TrialRule { relative: None, comparison, level: 0.95, metric, min, max, max_ns: None, quick };
    if root.get("trials").is_none() {
        return Some(default);
    }
    let trials = super::section(root, "trials", report)?;
    trials.check_keys();
    if !trials.has("stop") {
        report.missing(
            trials.place,
            "`trials` has no `stop`",
            "add `stop = { comparison = 0.03, min = 12, max = 30 }`".to_owned(),
        );
        return None;
    }
    let stop = &trials.section("stop")?;
    stop.check_keys();
    let given = |key: &str, is_read: bool| !stop.has(key) || is_read;
    let (comparison, relative) = (stop.fraction("comparison"), stop.fraction("relative"));
    let level = stop.fraction("level");
    let metrics = METRICS.iter().map(|metric| (metric.name, metric.name)).collect::<Vec<_>>();
    let metric = stop.choice("metric", &metrics);
    let (min, max) = (stop.small("min"), stop.small("max"));
    let max_ns = stop.duration_ns("max_time");
    let all = [
        given("comparison", comparison.is_some()),
        given("relative", relative.is_some()),
        given("level", level.is_some()),
        given("metric", metric.is_some()),
        given("min", min.is_some()),
        given("max", max.is_some()),
        given("max_time", max_ns.is_some()),
    ];
    if stop.has("comparison") && stop.has("relative") {
        let hint = "use `comparison` to compare contenders, `relative` to measure values".to_owned();
        stop.mistake("relative", "`trials.stop` has two targets, `comparison` and `relative`", hint);
        return None;
    }
    // Who names neither a target nor a number has the default target; who names a number alone has that many blocks.
    let is_open = !["comparison", "relative", "min", "max"].iter().any(|key| stop.has(key));
    let is_gate = root.get("gate").is_some() && !quick;
    let comparison = if is_open || is_gate && !stop.has("comparison") { default.comparison } else { comparison };
    if is_gate && stop.has("relative") {
        let hint = "drop it; `comparison` ends a gate when the ratio is known to within a fraction".to_owned();
        stop.mistake("relative", "`trials.stop.relative` has no effect with `[gate]`", hint);
        return None;
    }
    let has_target = comparison.is_some() || relative.is_some();
    let least = match min {
        Some(min) => min,
        None if has_target => default.min.min(max.unwrap_or(default.min)),
        None => max.unwrap_or(default.min),
    };
    let most = max.unwrap_or(if has_target { default.max.max(least) } else { least });
    if least > most {
        stop.mistake("min", format!("`trials.stop.min` is {least}, more than `max`, {most}"), None);
        return None;
    }
    if has_target && least < 2 {
        stop.mistake("min", "an interval needs two trials", "set `min = 12`, or drop the target".to_owned());
        return None;
    }
    if !has_target && !stop.has("relative") && !stop.has("comparison") && least != most {
        let hint = "add `comparison = 0.03`, or drop `max`".to_owned();
        let message = format!("without a target each point gets `min` trials, so `max` {most} has no effect");
        stop.mistake("max", message, hint);
        return None;
    }
    if all.contains(&false) {
        return None;
    }
    let (level, metric) = (level.unwrap_or(default.level), metric.map_or(default.metric, str::to_owned));
    Some(TrialRule { relative, comparison, level, metric, min: least, max: most, max_ns, quick })
}
