//! Reads `[trials]`.

use crate::gate::COMPARED;
use crate::plan::TrialRule;
use crate::section_at_design_point::Section;
use crate::study_and_profiles::Profile;

pub(super) fn read(top: &Section, profile: Profile) -> TrialRule {
    let (quick, is_gate) = (profile == Profile::Quick, top.has("gate"));
    let metric = if is_gate { COMPARED[0] } else { "latency_mean" }.to_owned();
    // With fewer than 12 blocks, no difference between two points is ever claimed. The target of a gate, a relative
    // half-width of its interval, applies from the first look on.
    let (comparison, min, max) = match is_gate {
        _ if quick => (None, 3, 3),
        true => (Some(0.02), 10, 60),
        false => (Some(0.03), 12, 30),
    };
    let default = TrialRule { relative: None, comparison, level: 0.95, metric, min, max, max_ns: None, quick };
    let Some(trials) = top.section("trials") else { return default };
    trials.check();
    let Some(stop) = &trials.section("stop") else { return default };
    stop.check_keys();
    let (comparison, relative) = (stop.fraction("comparison"), stop.fraction("relative"));
    let (least, most) = (stop.small("min"), stop.small("max"));
    let is_open = !["comparison", "relative", "min", "max"].iter().any(|key| stop.has(key));
    let takes_default = is_open || is_gate && !quick && !stop.has("comparison");
    let comparison = if takes_default { default.comparison } else { comparison };
    let has_target = comparison.is_some() || stop.has("comparison") || stop.has("relative");
    let min = least.unwrap_or(match (has_target, most) {
        (true, _) => default.min.min(most.unwrap_or(default.min)),
        (false, most) => most.unwrap_or(default.min),
    });
    let max = most.unwrap_or(if has_target { default.max.max(min) } else { min });
    if stop.has("comparison") && stop.has("relative") {
        let hint = "use `comparison` to compare contenders, `relative` to measure values".to_owned();
        stop.mistake("relative", "`trials.stop` has two targets, `comparison` and `relative`", hint);
    } else if is_gate && !quick && stop.has("relative") {
        let hint = "drop it; `comparison` ends a gate when the ratio is known to within a fraction".to_owned();
        stop.mistake("relative", "`trials.stop.relative` has no effect with `[gate]`", hint);
    } else if min > max {
        stop.mistake("min", format!("`trials.stop.min` is {min}, more than `max`, {max}"), None);
    } else if has_target && min < 2 {
        stop.mistake("min", "an interval needs two trials", "set `min = 12`, or drop the target".to_owned());
    } else if !has_target && min != max {
        let hint = "add `comparison = 0.03`, or drop `max`".to_owned();
        let message = format!("without a target each point gets `min` trials, so `max` {max} has no effect");
        stop.mistake("max", message, hint);
    }
    TrialRule {
        relative,
        comparison,
        level: stop.fraction("level").unwrap_or(default.level),
        metric: stop.word("metric").map_or(default.metric, str::to_owned),
        min,
        max,
        max_ns: stop.duration_ns("max_time"),
        quick,
    }
}
