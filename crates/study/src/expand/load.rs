use super::http;
use super::journey;
use super::search;
use super::stop::{stop, warmup};
use super::subject;
use super::workload;
use crate::keys::words::{BACKENDS, LOOPS};
use crate::load_rules;
use crate::plan::{LoadPlan, SearchPlan};
use crate::section::Section;
use crate::spec::{Arrivals, Connection, Protocol, Stop, Warmup};
use crate::workload::Gaps;

pub(super) fn check_keys(load: &Section) {
    load.check_keys();
    subject::check_variants_keys(load);
    http::check_keys(load);
    if !load.has("journey") {
        load.required("protocol");
    }
    load.required("clients");
    load.required("stop");
}

pub(super) fn read(load: &Section) -> (LoadPlan, Option<SearchPlan>) {
    let is_journey = load.has("journey") || load.is_word("protocol", "journey");
    let journey = is_journey.then(|| journey::read(load));
    let protocol = match is_journey {
        true => Some(Protocol::Journey),
        false => {
            journey::check_absent(load);
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
    let workload = if is_journey { None } else { workload::read(load) };
    if is_cache && !load.has("workload") {
        let hint = "add `workload = { preset = \"etc-2012\" }`".to_owned();
        load.report.missing(load.place_of("protocol"), "a cache needs `load.workload`", hint);
    }
    if let (Some(name), Some(entry), false) = (protocol, load.table.get("workload"), is_cache || is_journey) {
        let hint = "workloads are for caches; `quintain workload show` works without one".to_owned();
        let message = format!("`load.workload` does not apply to protocol `{name}`");
        load.report.mistake(entry.key_place, message, hint);
    }
    let (clients, stop) = (load.small("clients"), stop(load));
    let trace = workload.as_ref().and_then(|workload| workload.trace.as_ref());
    let arrivals = match trace {
        Some(trace) if trace.gaps == Gaps::Recorded => {
            let (foreign, hint) = (["loop", "rate", "arrivals", "think", "search"], "drop it, or the trace's `gaps`");
            load.refuse(foreign, "cannot be combined with the recorded gaps of a trace", hint);
            Arrivals::Recorded
        }
        _ => arrivals(load),
    };
    let warmup = match load.has("warmup") {
        // A journey with few calls could end within the default second; a trace is measured from its first operation.
        false if is_journey || trace.is_some() => Some(Warmup::DurationNs(0)),
        _ => warmup(load, is_cache, stop),
    };
    let (window_ns, timeout_ns) = (load.duration_ns("window"), load.duration_ns("timeout"));
    if let (Some(Stop::Duration { duration_ns }), Some(window_ns), false) = (stop, window_ns, is_journey)
        && duration_ns < window_ns
    {
        let hint = "measure longer, or set a shorter `window`".to_owned();
        load.mistake("stop", "`load.stop` is shorter than one window", hint);
    }
    let find = |key| if is_journey { None } else { search::read(load, key, stop) };
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
        search: find("search"),
        share: search::share(load),
        warmup: warmup.unwrap_or(Warmup::DurationNs(0)),
        stop: stop.unwrap_or(Stop::Duration { duration_ns: 0 }),
        window_ns: window_ns.unwrap_or_default(),
        timeout_ns: timeout_ns.unwrap_or_default(),
    };
    let capacity = find("capacity");
    let LoadPlan { protocol, clients, pipeline, connection, arrivals, warmup, stop, .. } = plan;
    for problem in load_rules::problems(protocol, clients, pipeline, connection, arrivals, warmup, stop) {
        load.mistake(problem.key, problem.message, problem.hint.map(str::to_owned));
    }
    (plan, capacity)
}

fn arrivals(load: &Section) -> Arrivals {
    if load.has("search") {
        return search::arrivals(load);
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
        return Arrivals::Closed { think_ns: load.duration_ns("think").unwrap_or_default() };
    }
    if !load.has("rate") {
        load.report.missing(load.place_of("loop"), "an open loop needs `load.rate`", "add `rate = \"10k\"`".to_owned());
    }
    let is_share = search::share(load).is_some();
    let rate_per_s = if is_share { None } else { load.rate_per_s("rate") };
    search::at_rate(load, rate_per_s.unwrap_or(search::LATER_PER_S))
}
