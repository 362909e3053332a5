//! Reads `[load]`: protocol, arrivals, search, warm-up and stop rule.

use config::node::Table;

use super::http;
use super::journey;
use super::subject;
use super::workload;
use crate::keys::allowed_words::{ARRIVALS, BACKENDS, LOOPS, STOP_RULES, WARMUP_RULES};
use crate::keys::load_keys;
use crate::load_limits_and_defaults::WARMUP_NS;
use crate::load_rules;
use crate::load_shape::{self, Stage};
use crate::objective::{Mistake, Objective};
use crate::plan::{CapacityShare, LoadPlan, Point, SearchPlan};
use crate::section_at_design_point::Section;
use crate::spec::{Arrivals, Connection, Protocol, Stop, ThinkTime, Warmup};
use crate::time_law;
use crate::workload::Gaps;

pub(super) fn check_keys(load: &Section) {
    load.check_keys();
    subject::check_variants_keys(load);
    load.tables("request", "a request").iter().flatten().for_each(Section::check_keys);
    load.required_if(!load.has("journey"), "protocol");
    load.required("clients");
}

pub(super) fn read(load: &Section) -> (LoadPlan, Option<SearchPlan>) {
    let is_journey = load.has("journey") || load.is_word("protocol", "journey");
    let journey = is_journey.then(|| journey::read(load));
    let protocol = match is_journey {
        true => Some(Protocol::Journey),
        false => {
            load.refuse(load_keys("journeys:"), "needs `load.journey`", "add `journey = \"evernote\"`, or drop it");
            let protocols = Protocol::all().filter(|protocol| *protocol != Protocol::Journey);
            let protocols = protocols.map(|protocol| (protocol.name(), protocol)).collect::<Vec<_>>();
            load.choice("protocol", &protocols)
        }
    };
    let (http, pipeline, connection) = match protocol {
        Some(protocol) if !is_journey => http::read(load, protocol),
        _ => (None, 1, Connection::KeepAlive),
    };
    let is_cache = protocol.and_then(Protocol::dialect).is_some();
    let workload = if is_journey { None } else { load.section("workload").as_ref().map(workload::read) };
    if is_cache && !load.has("workload") {
        let hint = "add `workload = { preset = \"etc-2012\" }`".to_owned();
        load.report.missing(load.place_of("protocol"), "a cache needs `load.workload`", hint);
    }
    if let (Some(name), Some(entry), false) = (protocol, load.table.get("workload"), is_cache || is_journey) {
        let hint = "workloads are for caches; `quintain workload show` works without one".to_owned();
        let message = format!("`load.workload` does not apply to protocol `{name}`");
        load.report.mistake(entry.key_place, message, hint);
    }
    let shape = shape(load);
    let clients_max = (!shape.is_empty() && !load.has("rate")).then(|| load_shape::clients_max(&shape));
    let clients = clients_max.or_else(|| load.small("clients"));
    let stop = stop(load, &shape);
    let trace = workload.as_ref().and_then(|workload| workload.trace.as_ref());
    let arrivals = match trace {
        Some(trace) if trace.gaps == Gaps::Recorded => {
            let (foreign, hint) = (["loop", "rate", "arrivals", "think", "search"], "drop it, or the trace's `gaps`");
            load.refuse(foreign, "cannot be combined with the recorded gaps of a trace", hint);
            Arrivals::Recorded
        }
        _ => arrivals(load, &shape),
    };
    let warmup = match load.has("warmup") {
        // A journey with few calls could end within the default warm-up of 1 s. A trace has no warm-up.
        false if is_journey || trace.is_some() => Some(Warmup::DurationNs(0)),
        _ => warmup(load, is_cache, stop),
    };
    let (window_ns, timeout_ns) = (load.duration_ns("window"), load.duration_ns("timeout"));
    let is_short = matches!(stop, Some(Stop::Duration { duration_ns }) if window_ns.is_some_and(|ns| duration_ns < ns));
    let hint = "measure longer, or set a shorter `window`";
    load.rule(is_short && !is_journey, "stop", "`load.stop` is shorter than one window", hint);
    let find = |key| if is_journey { None } else { search(load, key, stop) };
    let plan = LoadPlan {
        protocol: protocol.unwrap_or(Protocol::Pingpong),
        http,
        workload,
        journey,
        clients: clients.unwrap_or_default(),
        pipeline,
        connection,
        threads: load.small("threads"),
        cpus: load.small("cpus"),
        share_cpus: load.flag("share_cpus").unwrap_or_default(),
        backend: load.choice("backend", BACKENDS).unwrap_or_default(),
        arrivals,
        shape,
        search: find("search"),
        share: share(load),
        warmup: warmup.unwrap_or(Warmup::DurationNs(0)),
        stop: stop.unwrap_or(Stop::Duration { duration_ns: 0 }),
        window_ns: window_ns.unwrap_or_default(),
        timeout_ns: timeout_ns.unwrap_or_default(),
    };
    let capacity = find("capacity");
    let LoadPlan { protocol, clients, pipeline, connection, arrivals, warmup, stop, .. } = plan;
    for problem in load_rules::problems(protocol, clients, pipeline, connection, arrivals, warmup, stop) {
        let is_http2 = plan.http.as_ref().is_some_and(|http| http.http2);
        let key = if is_http2 && problem.key == "pipeline" { "streams" } else { problem.key };
        let named = |text: &str| if is_http2 { text.replace("`pipeline`", "`streams`") } else { text.to_owned() };
        load.mistake(key, named(&problem.message), problem.hint.map(named));
    }
    (plan, capacity)
}

fn has_shape(load: &Section, key: &str) -> bool {
    load.filled(key).is_some_and(|(text, _)| load_shape::is_shape(&text))
}

/// Reads a rate or a number of clients that changes over time; empty if both are constant.
fn shape(load: &Section) -> Vec<Stage> {
    let shape = match (has_shape(load, "rate"), has_shape(load, "clients")) {
        (true, true) => {
            let hint = "a shape of clients needs a closed loop: drop `rate`".to_owned();
            load.mistake("rate", "cannot be combined with a number of clients that changes", hint);
            None
        }
        (true, false) => load.text_as("rate", load_shape::parse),
        (false, true) => {
            load.refuse(["rate", "search"], "cannot be combined with a number of clients that changes", "drop it");
            load.text_as("clients", load_shape::parse_clients)
        }
        (false, false) => None,
    };
    shape.unwrap_or_default()
}

fn arrivals(load: &Section, shape: &[Stage]) -> Arrivals {
    if load.has("search") {
        let hint = "drop it: the search chooses the rates";
        load.refuse(["rate", "think"], "cannot be combined with `load.search`", hint);
        load.rule(load.is_word("loop", "closed"), "loop", "a search needs an open loop", "drop `loop`");
        return at_rate(load, LATER_PER_S);
    }
    let open = load.choice("loop", LOOPS).unwrap_or_else(|| load.has("rate"));
    let (foreign, kind, hint): (&[&str], _, _) = match open {
        true => (&["think"], "an open", "drop it, or `rate`: think time needs a closed loop"),
        false => {
            (&["rate", "arrivals"], "a closed", "it needs an open loop: set `loop = \"open\"` and `rate`, or drop it")
        }
    };
    load.refuse(foreign.iter().copied(), &format!("does not apply to {kind} loop"), hint);
    if !open {
        let think = load.text_as("think", |text| time_law::think(text).map_err(|error| error.of("`load.think`")));
        return Arrivals::Closed { think: think.unwrap_or(ThinkTime::NONE) };
    }
    if !load.has("rate") {
        load.report.missing(load.place_of("loop"), "an open loop needs `load.rate`", "add `rate = \"10k\"`".to_owned());
    }
    let rate_per_s = match () {
        () if share(load).is_some() => None,
        () if shape.is_empty() => load.rate_per_s("rate"),
        () => Some(load_shape::mean_per_s(shape)),
    };
    at_rate(load, rate_per_s.unwrap_or(LATER_PER_S))
}

/// Valid shares of a capacity, percent.
const SHARES: std::ops::RangeInclusive<f64> = 0.1..=200.0;

/// Placeholder in a plan for a rate that the run finds later, requests per second.
const LATER_PER_S: f64 = 1.0;

fn search(load: &Section, key: &str, stop: Option<Stop>) -> Option<SearchPlan> {
    let message = "`load.search` already finds the capacity";
    load.rule(key == "capacity" && load.has(key) && load.has("search"), key, message, "drop one of the two");
    let table = &load.section(key)?;
    table.check();
    let objective = objective(table).unwrap_or(Objective { conditions: Vec::new() });
    let (from, to) = (table.rate_per_s("from"), table.rate_per_s("to"));
    let message = format!("`{}.to` is below `from`", table.name);
    table.rule(from.zip(to).is_some_and(|(from, to)| from > to), "to", message, None);
    let is_open_ended = stop.is_some_and(|stop| !matches!(stop, Stop::Duration { .. }));
    let hint = "write `stop = \"5s\"`: above its capacity a server never catches up";
    load.rule(is_open_ended, "stop", format!("trials of `load.{key}` must end after a time"), hint);
    let plain = SearchPlan::new(objective, stop.map_or(0, |stop| stop.longest_ns()));
    Some(SearchPlan {
        from_per_s: from,
        to_per_s: to,
        resolution: table.fraction("resolution").unwrap_or(plain.resolution),
        confirm: table.small("confirm").unwrap_or(plain.confirm),
        trials_max: table.small("max_steps").unwrap_or(plain.trials_max),
        max_ns: table.duration_ns("max_time"),
        first: key == "capacity",
        ..plain
    })
}

fn objective(table: &Section) -> Option<Objective> {
    let text = table.text("objective")?;
    let place = table.filled("objective").map_or(table.place, |(_, place)| place);
    // A level of a factor may stand for the text.
    let start = table.report.source(place).find(&text);
    let report = |(span, error): Mistake| {
        let part = |at: usize| if span.is_empty() { place } else { place.part(at + span.start..at + span.end) };
        table.report.invalid(start.map_or(place, part), error.of(&format!("`{}.objective`", table.name)));
    };
    Objective::parse(&text).map_err(|errors| errors.into_iter().for_each(report)).ok()
}

fn at_rate(load: &Section, rate_per_s: f64) -> Arrivals {
    let is_constant = load.choice("arrivals", ARRIVALS) == Some(false);
    if is_constant { Arrivals::Constant { rate_per_s } } else { Arrivals::Poisson { rate_per_s } }
}

fn share(load: &Section) -> Option<CapacityShare> {
    let (text, place) = load.filled("rate")?;
    let number = text.trim().strip_suffix('%')?;
    let share = number.trim().parse::<f64>().ok().filter(|percent| SHARES.contains(percent));
    let message = format!("`load.rate` must be 0.1 % to 200 % of the capacity, not `{}`", text.escape_debug());
    load.report.rule(share.is_none(), place, message, None);
    let hint = "add `capacity = { objective = \"p99 < 5ms\" }`, or give a rate";
    let message = "`load.rate` is a fraction of a capacity, but `load.capacity` is missing";
    load.report.rule(!load.has("capacity"), place, message, hint);
    Some(CapacityShare { share: share.unwrap_or_default() / 100.0, point: usize::MAX })
}

/// For each capacity in `capacities` (indexed by point), adds a point that searches for it. Equal searches share one.
pub(super) fn link_capacities(points: &mut Vec<Point>, capacities: Vec<Option<SearchPlan>>) {
    let own = points.len();
    for (index, search) in capacities.into_iter().enumerate() {
        let point = &points[index];
        let Some((share, search)) = point.load.share.zip(search) else { continue };
        let mut load = point.load.clone();
        (load.share, load.search) = (None, Some(search));
        let point = Point { load, ..point.clone() };
        let same = |known: &Point| {
            (&known.subject, &known.proxies, &known.load) == (&point.subject, &point.proxies, &point.load)
        };
        let at = points[own..].iter().position(same).map_or(points.len(), |known| own + known);
        match points.get_mut(at) {
            Some(known) => known.factors.retain(|name, level| point.factors.get(name) == Some(level)),
            None => points.push(point),
        }
        points[index].load.share = Some(CapacityShare { point: at, ..share });
    }
}

/// Reports a capacity that no rate uses and, if every trial is a search step, `trials.stop` keys that count trials.
pub(super) fn check_capacity_use(top: &Section, load: &Section, points: &[Point]) {
    if points.is_empty() {
        return;
    }
    let is_unused = !load.has("search") && points.iter().all(|point| point.load.share.is_none());
    let hint = "write `rate = \"80%\"`, or rename it to `search`";
    load.rule(load.has("capacity") && is_unused, "capacity", "`load.capacity` is never used", hint);
    if points.iter().any(|point| point.load.search.is_none()) {
        return;
    }
    let stop = top.table.table("trials").and_then(|trials| trials.table("stop"));
    for entry in stop.into_iter().flat_map(Table::iter) {
        let counts_trials = ["comparison", "relative", "min", "max", "metric"].contains(&entry.key.as_str());
        let message = format!("`trials.stop.{}` does not apply: all trials are steps of a search", entry.key);
        top.report.rule(counts_trials, entry.key_place, message, "use `confirm` and `max_steps` of `load.search`");
    }
}

/// Default time limit of a cache's warm-up and of a trial that ends after a number of requests, ns.
const DEFAULT_MAX_NS: u64 = 60_000_000_000;
// The time limit of volley's own client.
const VOLLEY_MAX_NS: u64 = 180_000_000_000;

fn warmup(load: &Section, is_cache: bool, stop: Option<Stop>) -> Option<Warmup> {
    match load.has("warmup") {
        has if load.is_word("warmup", "steady") || is_cache && !has => {
            return Some(Warmup::Steady { max_ns: DEFAULT_MAX_NS });
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
            let requests = if let Some(Stop::Requests { requests, .. }) = stop { Some(requests) } else { None };
            let hint = "write `stop = { requests = 1_000_000 }`, or give a time";
            table.rule(requests.is_none(), "share", "a share needs `stop.requests`", hint);
            Some(Warmup::Requests((requests? as f64 * share).round() as u64))
        }
        "steady" => table.duration_ns("steady").map(|max_ns| Warmup::Steady { max_ns }),
        _ => table.count("requests").map(Warmup::Requests),
    }
}

fn stop(load: &Section, shape: &[Stage]) -> Option<Stop> {
    if !shape.is_empty() {
        load.refuse(["stop"], "cannot be combined with a load that changes, which ends the trial", "drop it");
        return Some(Stop::Duration { duration_ns: load_shape::duration_ns(shape) });
    }
    if !load.has("stop") {
        // A shape needs no `stop`; an invalid shape is reported elsewhere.
        load.required_if(!has_shape(load, "rate") && !has_shape(load, "clients"), "stop");
        return None;
    }
    if !load.is_table("stop") {
        return load.duration_ns("stop").map(|duration_ns| Stop::Duration { duration_ns });
    }
    let table = &load.section("stop")?;
    table.check_keys();
    let rule = table.one_of(&STOP_RULES.map(|(rule, _)| rule))?;
    let (_, beside) = STOP_RULES.iter().find(|(name, _)| *name == rule)?;
    let others = ["level", "max_time", "round", "half_width"].into_iter().filter(|key| !beside.contains(key));
    table.refuse(others, &format!("cannot be combined with `{rule}`"), "drop it");
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
            table.word("rule")?;
            let max_ns = max_ns.unwrap_or(VOLLEY_MAX_NS);
            Stop::Volley { round_requests: round?, half_width_ns: half_width_ns?, max_ns }
        }
    })
}
