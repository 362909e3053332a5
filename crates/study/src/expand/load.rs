//! `[load]`: who asks, how many, how fast, how long.

use super::http::{self, Http};
use super::journey;
use super::search;
use crate::node::Value;
use crate::plan::LoadPlan;
use crate::section::{Bounds, Section};
use crate::spec::{Arrivals, Backend, Dialect, Stop, Warmup};
use crate::workload::{Gaps, read as workload};

const KEYS: [&str; 14] = [
    "protocol",
    "clients",
    "threads",
    "cpus",
    "share_cpus",
    "backend",
    "loop",
    "rate",
    "arrivals",
    "think",
    "warmup",
    "stop",
    "window",
    "timeout",
];

/// The keys that choose a rule in `load.stop`, each with those that may stand beside it.
const STOP_RULES: [(&str, &[&str]); 4] = [
    ("duration", &[]),
    ("requests", &["max_time"]),
    ("relative", &["level", "max_time"]),
    ("rule", &["round", "half_width", "max_time"]),
];
const WARMUP_RULES: [&str; 4] = ["duration", "requests", "share", "steady"];

pub(super) const CLIENTS: Bounds<u64> = Bounds { low: 1, high: 1_000_000, text: "1 to 1,000,000" };
pub(super) const THREADS: Bounds<u64> = Bounds { low: 1, high: 1024, text: "1 to 1,024" };
pub(super) const CPUS: Bounds<u64> = Bounds { low: 1, high: 4096, text: "1 to 4,096" };
const REQUESTS: Bounds<u64> = Bounds { low: 1, high: 1_000_000_000_000, text: "1 to 1,000,000,000,000" };
const WARMUP_REQUESTS: Bounds<u64> = Bounds { low: 0, high: 1_000_000_000_000, text: "0 to 1,000,000,000,000" };
const MEASURE_NS: Bounds<u64> = Bounds { low: 10_000_000, high: 86_400_000_000_000, text: "10ms to 24h" };
const WARMUP_NS: Bounds<u64> = Bounds { low: 0, high: 3_600_000_000_000, text: "0s to 1h" };
const WARMUP_SHARE: Bounds<f64> = Bounds { low: 0.0, high: 10.0, text: "0 to 10" };
const STEADY_NS: Bounds<u64> = Bounds { low: 1_000_000_000, high: 3_600_000_000_000, text: "1s to 1h" };
pub(super) const WINDOW_NS: Bounds<u64> = Bounds { low: 1_000_000, high: 60_000_000_000, text: "1ms to 1m" };
pub(super) const TIMEOUT_NS: Bounds<u64> = Bounds { low: 1_000_000, high: 3_600_000_000_000, text: "1ms to 1h" };
const THINK_NS: Bounds<u64> = Bounds { low: 0, high: 3_600_000_000_000, text: "0s to 1h" };
const HALF_WIDTH_NS: Bounds<u64> = Bounds { low: 1, high: 1_000_000_000, text: "1ns to 1s" };
const RELATIVE: Bounds<f64> = Bounds { low: 0.0001, high: 0.5, text: "0.01 % to 50 %" };
const LEVEL: Bounds<f64> = Bounds { low: 0.5, high: 0.9999, text: "50 % to 99.99 %" };

/// Requests in flight of all clients together, as the engine has it.
const IN_FLIGHT_MAX: u64 = 4_000_000;

/// A cache warms up so long at most where nothing is said.
const STEADY_MAX_NS: u64 = 60_000_000_000;
const DEFAULT_WARMUP_NS: u64 = 1_000_000_000;
pub(super) const DEFAULT_WINDOW_NS: u64 = 100_000_000;
pub(super) const DEFAULT_TIMEOUT_NS: u64 = 5_000_000_000;
const DEFAULT_LEVEL: f64 = 0.95;
const DEFAULT_MAX_NS: u64 = 60_000_000_000;
// Volley's own constants, from its client.
const VOLLEY_ROUND: u64 = 1_000_000;
const VOLLEY_HALF_WIDTH_NS: u64 = 5_000;
const VOLLEY_MAX_NS: u64 = 180_000_000_000;

/// Whether `key` of `load.stop` or `load.warmup` chooses a rule, so that setting it unsets the others.
pub(crate) fn chooses(table: &str, key: &str) -> bool {
    match table {
        "stop" => STOP_RULES.iter().any(|(rule, _)| *rule == key),
        "warmup" => WARMUP_RULES.contains(&key),
        _ => false,
    }
}

/// Reports unknown keys and those that the point does not matter for.
pub(crate) fn check_keys(load: &Section) {
    let keys = KEYS
        .into_iter()
        .chain(["workload"])
        .chain(journey::KEYS)
        .chain(http::keys())
        .chain(search::KEYS)
        .collect::<Vec<_>>();
    load.only(&[keys.as_slice(), &["variants"]].concat());
    if let Some(variants) = load.has("variants").then(|| load.section("variants")).flatten() {
        for entry in variants.table.iter() {
            variants.section(&entry.key).iter().for_each(|variant| variant.only(&keys));
        }
    }
    http::check_keys(load);
    if !load.has("journey") {
        load.required("protocol", "\"pingpong\"");
    }
    load.required("clients", "40");
    load.required("stop", "\"5s\"");
}

/// The load of one design point; `None` only where a mistake was reported.
pub(crate) fn read(load: &Section) -> Option<LoadPlan> {
    if load.has("journey") || load.is_word("protocol", "journey") {
        return journey::load(load);
    }
    for key in journey::OWN.iter().filter(|key| load.has(key)) {
        let hint = "add `journey = \"evernote\"`, or drop it".to_owned();
        load.mistake(key, format!("`load.{key}` has no meaning without `load.journey`"), hint);
    }
    let protocols = ["pingpong", "http", "https"].into_iter().chain(Dialect::ALL.map(Dialect::name));
    let protocol = load.choice("protocol", "protocol", &protocols.map(|name| (name, name)).collect::<Vec<_>>());
    let http = protocol.map(|protocol| http::read(load, protocol));
    let workload = workload::read(load);
    let dialect = protocol.and_then(Dialect::named);
    if let (Some(_), false) = (dialect, load.has("workload")) {
        let hint = "add `workload = { preset = \"etc-2012\" }`".to_owned();
        load.report.missing(load.place_of("protocol"), "a cache is asked by `load.workload`", hint);
        return None;
    }
    if let (Some(name), true, None) = (protocol, load.has("workload"), dialect) {
        let place = load.table.get("workload").map_or(load.place, |entry| entry.key_place);
        let hint = "a workload is for a cache; `quintain workload show` draws it all the same".to_owned();
        load.report.mistake(place, format!("`load.workload` has no meaning with protocol `{name}`"), hint);
    }
    let clients = load.small("clients", &CLIENTS);
    let threads = load.small("threads", &THREADS);
    let cpus = load.small("cpus", &CPUS);
    let share_cpus = load.flag("share_cpus");
    let backend = load.choice(
        "backend",
        "backend",
        &[("auto", Backend::Auto), ("epoll", Backend::Epoll), ("io_uring", Backend::IoUring)],
    );
    let trace = workload.as_ref().and_then(|workload| workload.as_ref()?.trace.as_ref());
    let recorded = trace.is_some_and(|trace| trace.gaps == Gaps::Recorded);
    let (arrivals, stop) = (if recorded { recorded_arrivals(load) } else { arrivals(load) }, stop(load));
    let warmup = match trace {
        // A trace is measured from its first operation on.
        Some(_) if !load.has("warmup") => Some(Warmup::DurationNs(0)),
        _ => warmup(load, dialect.is_some(), stop),
    };
    if let (Some(Stop::Volley { .. }), Some(_)) = (stop, dialect) {
        load.mistake("stop", "volley's rule is none of caches", "write `stop = \"5s\"`".to_owned());
    }
    let (search, share) = (search::read(load, "search", stop), search::share(load));
    let window_ns = load.duration_ns("window", &WINDOW_NS);
    let timeout_ns = load.duration_ns("timeout", &TIMEOUT_NS);
    if let (Some(Stop::Duration { duration_ns }), Some(window)) = (stop, given(load, "window", window_ns))
        && duration_ns < window.unwrap_or(DEFAULT_WINDOW_NS)
    {
        let hint = "measure longer, or set a shorter `window`".to_owned();
        load.mistake("stop", "`load.stop` is shorter than one window", hint);
    }
    let Http { plan: http, pipeline, connection } = http??;
    if let Some(clients) = clients
        && u64::from(clients) * u64::from(pipeline) > IN_FLIGHT_MAX
    {
        let message = format!("{clients} clients with {pipeline} requests in flight each, at most 4,000,000 in all");
        load.mistake("pipeline", message, None);
    }
    if matches!(stop, Some(Stop::Volley { .. })) && pipeline > 1 {
        let hint = "drop `pipeline`, or choose another `stop`".to_owned();
        load.mistake("pipeline", "volley's rule has one request in flight on a connection", hint);
    }
    Some(LoadPlan {
        protocol: protocol?.to_owned(),
        http,
        workload: workload?,
        journey: None,
        clients: clients?,
        pipeline,
        connection,
        threads: given(load, "threads", threads)?,
        cpus: given(load, "cpus", cpus)?,
        share_cpus: given(load, "share_cpus", share_cpus)?.unwrap_or(false),
        backend: given(load, "backend", backend)?.unwrap_or(Backend::Auto),
        arrivals: arrivals?,
        search: search?,
        share: share?,
        warmup: warmup?,
        stop: stop?,
        window_ns: given(load, "window", window_ns)?.unwrap_or(DEFAULT_WINDOW_NS),
        timeout_ns: given(load, "timeout", timeout_ns)?.unwrap_or(DEFAULT_TIMEOUT_NS),
    })
}

/// Tells a key that is not there, `Some(None)`, from one whose value is mistaken, `None`.
pub(super) fn given<T>(section: &Section, key: &str, value: Option<T>) -> Option<Option<T>> {
    if section.has(key) { value.map(Some) } else { Some(None) }
}

/// The times of a trace leave nothing to say.
fn recorded_arrivals(load: &Section) -> Option<Arrivals> {
    let foreign = ["loop", "rate", "arrivals", "think", "search"].into_iter().filter(|key| load.has(key));
    let mut fine = true;
    for key in foreign {
        let hint = "drop it, or the trace's `gaps`".to_owned();
        load.mistake(key, format!("`load.{key}` has no meaning with the recorded gaps of a trace"), hint);
        fine = false;
    }
    fine.then_some(Arrivals::Recorded)
}

pub(super) fn arrivals(load: &Section) -> Option<Arrivals> {
    if load.has("search") {
        return search::arrivals(load);
    }
    let open = load.choice("loop", "loop", &[("closed", false), ("open", true)]);
    let open = given(load, "loop", open)?.unwrap_or_else(|| load.has("rate"));
    let foreign: &[&str] = if open { &["think"] } else { &["rate", "arrivals"] };
    for key in foreign.iter().filter(|key| load.has(key)) {
        let (kind, hint) = if open {
            ("an open", "drop it, or `rate`: clients that think belong to a closed loop")
        } else {
            ("a closed", "a timetable belongs to an open loop: set `loop = \"open\"` and `rate`, or drop it")
        };
        load.mistake(key, format!("`load.{key}` has no meaning in {kind} loop"), hint.to_owned());
    }
    if !open {
        let think_ns = load.duration_ns("think", &THINK_NS);
        return Some(Arrivals::Closed { think_ns: given(load, "think", think_ns)?.unwrap_or(0) });
    }
    if !load.has("rate") {
        load.report.missing(load.place_of("loop"), "an open loop needs `load.rate`", "add `rate = \"10k\"`".to_owned());
    }
    let poisson = load.choice("arrivals", "law of arrivals", &[("poisson", true), ("constant", false)]);
    let poisson = given(load, "arrivals", poisson);
    if search::share(load)?.is_some() {
        return search::later(load);
    }
    let rate_per_s = load.rate_per_s("rate")?;
    Some(if poisson?.unwrap_or(true) { Arrivals::Poisson { rate_per_s } } else { Arrivals::Constant { rate_per_s } })
}

pub(super) fn warmup(load: &Section, is_cache: bool, stop: Option<Stop>) -> Option<Warmup> {
    let steady = |max_ns| {
        if is_cache {
            return Some(Warmup::Steady { max_ns });
        }
        load.mistake("warmup", "`steady` watches the hit ratio of a cache", "write `warmup = \"1s\"`".to_owned());
        None
    };
    if !load.has("warmup") && is_cache {
        return steady(STEADY_MAX_NS);
    }
    if load.table.get("warmup").is_some_and(|entry| matches!(&entry.node.value, Value::Text(text) if text == "steady"))
    {
        return steady(STEADY_MAX_NS);
    }
    if !load.has("warmup") {
        return Some(Warmup::DurationNs(DEFAULT_WARMUP_NS));
    }
    if !is_table(load, "warmup") {
        return load.duration_ns("warmup", &WARMUP_NS).map(Warmup::DurationNs);
    }
    let table = load.section("warmup")?;
    table.only(&WARMUP_RULES);
    match one_of(&table, &WARMUP_RULES)? {
        "duration" => table.duration_ns("duration", &WARMUP_NS).map(Warmup::DurationNs),
        "share" => {
            let share = table.fraction("share", &WARMUP_SHARE)?;
            let Some(Stop::Requests { requests, .. }) = stop else {
                let hint = "write `stop = { requests = 1_000_000 }`, or a time".to_owned();
                table.mistake("share", "a share is one of a number of requests", hint);
                return None;
            };
            Some(Warmup::Requests((requests as f64 * share).round() as u64))
        }
        "steady" => steady(table.duration_ns("steady", &STEADY_NS)?),
        _ => table.count("requests", &WARMUP_REQUESTS).map(Warmup::Requests),
    }
}

pub(super) fn stop(load: &Section) -> Option<Stop> {
    if !load.has("stop") {
        return None;
    }
    if !is_table(load, "stop") {
        return load.duration_ns("stop", &MEASURE_NS).map(|duration_ns| Stop::Duration { duration_ns });
    }
    let table = &load.section("stop")?;
    table.only(&["duration", "requests", "relative", "rule", "level", "max_time", "round", "half_width"]);
    let rule = one_of(table, &STOP_RULES.map(|(rule, _)| rule))?;
    let (_, beside) = STOP_RULES.iter().find(|(name, _)| *name == rule).expect("it is one of them");
    for key in
        ["level", "max_time", "round", "half_width"].iter().filter(|key| table.has(key) && !beside.contains(*key))
    {
        table.mistake(key, format!("`{key}` has no meaning beside `{rule}`"), None);
    }
    let max_ns = |default_ns| {
        let max_ns = table.duration_ns("max_time", &MEASURE_NS);
        Some(given(table, "max_time", max_ns)?.unwrap_or(default_ns))
    };
    match rule {
        "duration" => Some(Stop::Duration { duration_ns: table.duration_ns("duration", &MEASURE_NS)? }),
        "requests" => {
            let (requests, max_ns) = (table.count("requests", &REQUESTS), max_ns(DEFAULT_MAX_NS));
            Some(Stop::Requests { requests: requests?, max_ns: max_ns? })
        }
        "relative" => {
            let relative = table.fraction("relative", &RELATIVE);
            let (level, max_ns) = (given(table, "level", table.fraction("level", &LEVEL)), max_ns(DEFAULT_MAX_NS));
            Some(Stop::Interval { relative: relative?, level: level?.unwrap_or(DEFAULT_LEVEL), max_ns: max_ns? })
        }
        _ => {
            let named = table.choice("rule", "stop rule", &[("volley", ())]);
            let round = given(table, "round", table.count("round", &REQUESTS));
            let half_width = given(table, "half_width", table.duration_ns("half_width", &HALF_WIDTH_NS));
            let max_ns = max_ns(VOLLEY_MAX_NS);
            named?;
            Some(Stop::Volley {
                round_requests: round?.unwrap_or(VOLLEY_ROUND),
                half_width_ns: half_width?.unwrap_or(VOLLEY_HALF_WIDTH_NS),
                max_ns: max_ns?,
            })
        }
    }
}

fn is_table(section: &Section, key: &str) -> bool {
    section.table.get(key).is_some_and(|entry| matches!(entry.node.value, Value::Table(_)))
}

/// The one key of `keys` that is there.
pub(super) fn one_of<'k>(table: &Section, keys: &[&'k str]) -> Option<&'k str> {
    let there = keys.iter().copied().filter(|key| table.has(key)).collect::<Vec<_>>();
    match there.as_slice() {
        [] => {
            let all = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            table.report.missing(table.place, format!("`{}` needs one of {all}", table.name), None);
            None
        }
        [key] => Some(key),
        [first, rest @ ..] => {
            for key in rest {
                table.mistake(key, format!("`{}` has `{first}` and `{key}`, of which it takes one", table.name), None);
            }
            None
        }
    }
}
