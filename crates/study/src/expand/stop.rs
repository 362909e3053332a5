use crate::keys::words::{RULES, STOP_RULES, WARMUP_RULES};
use crate::limits::WARMUP_NS;
use crate::section::Section;
use crate::spec::{Stop, Warmup};

/// Default time limit of a cache's warm-up.
const STEADY_MAX_NS: u64 = 60_000_000_000;
const DEFAULT_MAX_NS: u64 = 60_000_000_000;
// The limit of volley's client.
const VOLLEY_MAX_NS: u64 = 180_000_000_000;

pub(super) fn warmup(load: &Section, is_cache: bool, stop: Option<Stop>) -> Option<Warmup> {
    match load.has("warmup") {
        has if load.is_word("warmup", "steady") || is_cache && !has => {
            return Some(Warmup::Steady { max_ns: STEADY_MAX_NS });
        }
        false => return Some(Warmup::DurationNs(WARMUP_NS)),
        true if !load.is_table("warmup") => return load.duration_ns("warmup").map(Warmup::DurationNs),
        true => {}
    }
    let table = load.section("warmup")?;
    table.check_keys();
    match table.one_of(&WARMUP_RULES)? {
        "duration" => table.duration_ns("duration").map(Warmup::DurationNs),
        "share" => {
            let share = table.fraction("share")?;
            let Some(Stop::Requests { requests, .. }) = stop else {
                let hint = "write `stop = { requests = 1_000_000 }`, or give a time".to_owned();
                table.mistake("share", "a share needs `stop.requests`", hint);
                return None;
            };
            Some(Warmup::Requests((requests as f64 * share).round() as u64))
        }
        "steady" => table.duration_ns("steady").map(|max_ns| Warmup::Steady { max_ns }),
        _ => table.count("requests").map(Warmup::Requests),
    }
}

pub(super) fn stop(load: &Section) -> Option<Stop> {
    if !load.is_table("stop") {
        return load.duration_ns("stop").map(|duration_ns| Stop::Duration { duration_ns });
    }
    let table = &load.section("stop")?;
    table.check_keys();
    let rule = table.one_of(&STOP_RULES.map(|(rule, _)| rule))?;
    let (_, beside) = STOP_RULES.iter().find(|(name, _)| *name == rule)?;
    let others = ["level", "max_time", "round", "half_width"];
    for key in others.iter().filter(|key| table.has(key) && !beside.contains(*key)) {
        table.mistake(key, format!("`{key}` cannot be combined with `{rule}`"), None);
    }
    let max_ns = table.duration_ns("max_time");
    let (level, round, half_width_ns) =
        (table.fraction("level"), table.count("round"), table.duration_ns("half_width"));
    Some(match rule {
        "duration" => Stop::Duration { duration_ns: table.duration_ns("duration")? },
        "requests" => Stop::Requests { requests: table.count("requests")?, max_ns: max_ns.unwrap_or(DEFAULT_MAX_NS) },
        "relative" => {
            let relative = table.fraction("relative")?;
            Stop::Interval { relative, level: level?, max_ns: max_ns.unwrap_or(DEFAULT_MAX_NS) }
        }
        _ => {
            table.choice("rule", RULES)?;
            let max_ns = max_ns.unwrap_or(VOLLEY_MAX_NS);
            Stop::Volley { round_requests: round?, half_width_ns: half_width_ns?, max_ns }
        }
    })
}
