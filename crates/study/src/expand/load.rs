//! `[load]`: who asks, how many, how fast, how long.

use super::http::{self, Http};
use super::journey;
use super::search;
use super::stop::{stop, warmup};
use super::subject;
use super::workload;
use crate::keys::words::{ARRIVALS, BACKENDS, LOOPS};
use crate::limits::IN_FLIGHT_MAX;
use crate::plan::LoadPlan;
use crate::section::Section;
use crate::spec::{Arrivals, Protocol, Stop, Warmup};
use crate::workload::Gaps;

/// Reports unknown keys and those that are missing.
pub(crate) fn check_keys(load: &Section) {
    load.check_keys();
    subject::check_variants_keys(load);
    http::check_keys(load);
    if !load.has("journey") {
        load.required("protocol");
    }
    load.required("clients");
    load.required("stop");
}

/// The load of one design point; `None` only where a mistake was reported.
pub(crate) fn read(load: &Section) -> Option<LoadPlan> {
    if load.has("journey") || load.is_word("protocol", "journey") {
        return journey::load(load);
    }
    for key in journey::OWN.iter().filter(|key| load.has(key)) {
        let hint = "add `journey = \"evernote\"`, or drop it".to_owned();
        load.mistake(key, format!("`load.{key}` needs `load.journey`"), hint);
    }
    let protocols = Protocol::all().filter(|protocol| *protocol != Protocol::Journey);
    let protocol = load.choice("protocol", &protocols.map(|protocol| (protocol.name(), protocol)).collect::<Vec<_>>());
    let http = protocol.map(|protocol| http::read(load, protocol));
    let workload = workload::read(load);
    let dialect = protocol.and_then(Protocol::dialect);
    if let (Some(_), false) = (dialect, load.has("workload")) {
        let hint = "add `workload = { preset = \"etc-2012\" }`".to_owned();
        load.report.missing(load.place_of("protocol"), "a cache needs `load.workload`", hint);
        return None;
    }
    if let (Some(name), true, None) = (protocol, load.has("workload"), dialect) {
        let place = load.table.get("workload").map_or(load.place, |entry| entry.key_place);
        let hint = "workloads are for caches; `quintain workload show` works without one".to_owned();
        load.report.mistake(place, format!("`load.workload` does not apply to protocol `{name}`"), hint);
    }
    let clients = load.small("clients");
    let threads = load.given("threads", load.small("threads"));
    let cpus = load.given("cpus", load.small("cpus"));
    let share_cpus = load.flag("share_cpus");
    let backend = load.choice("backend", BACKENDS);
    let trace = workload.as_ref().and_then(|workload| workload.as_ref()?.trace.as_ref());
    let recorded = trace.is_some_and(|trace| trace.gaps == Gaps::Recorded);
    let (arrivals, stop) = (if recorded { recorded_arrivals(load) } else { arrivals(load) }, stop(load));
    let warmup = match trace {
        // A trace is measured from its first operation on.
        Some(_) if !load.has("warmup") => Some(Warmup::DurationNs(0)),
        _ => warmup(load, dialect.is_some(), stop),
    };
    if let (Some(Stop::Volley { .. }), Some(_)) = (stop, dialect) {
        load.mistake("stop", "volley's rule does not apply to caches", "write `stop = \"5s\"`".to_owned());
    }
    let (search, share) = (search::read(load, "search", stop), search::share(load));
    let window_ns = load.duration_ns("window");
    let timeout_ns = load.duration_ns("timeout");
    if let (Some(Stop::Duration { duration_ns }), Some(window_ns)) = (stop, window_ns)
        && duration_ns < window_ns
    {
        let hint = "measure longer, or set a shorter `window`".to_owned();
        load.mistake("stop", "`load.stop` is shorter than one window", hint);
    }
    let Http { plan: http, pipeline, connection } = http??;
    if let Some(clients) = clients
        && u64::from(clients) * u64::from(pipeline) > IN_FLIGHT_MAX
    {
        let message = format!("{clients} clients with {pipeline} requests in flight each: at most 4,000,000 in total");
        load.mistake("pipeline", message, None);
    }
    if matches!(stop, Some(Stop::Volley { .. })) && pipeline > 1 {
        let hint = "drop `pipeline`, or choose another `stop`".to_owned();
        load.mistake("pipeline", "volley's rule needs one request in flight per connection", hint);
    }
    Some(LoadPlan {
        protocol: protocol?,
        http,
        workload: workload?,
        journey: None,
        clients: clients?,
        pipeline,
        connection,
        threads: threads?,
        cpus: cpus?,
        share_cpus: share_cpus?,
        backend: backend?,
        arrivals: arrivals?,
        search: search?,
        share: share?,
        warmup: warmup?,
        stop: stop?,
        window_ns: window_ns?,
        timeout_ns: timeout_ns?,
    })
}

/// The times of a trace leave nothing to say.
fn recorded_arrivals(load: &Section) -> Option<Arrivals> {
    let foreign = ["loop", "rate", "arrivals", "think", "search"].into_iter().filter(|key| load.has(key));
    let mut fine = true;
    for key in foreign {
        let hint = "drop it, or the trace's `gaps`".to_owned();
        load.mistake(key, format!("`load.{key}` cannot be combined with the recorded gaps of a trace"), hint);
        fine = false;
    }
    fine.then_some(Arrivals::Recorded)
}

pub(super) fn arrivals(load: &Section) -> Option<Arrivals> {
    if load.has("search") {
        return search::arrivals(load);
    }
    let open = load.given("loop", load.choice("loop", LOOPS))?.unwrap_or_else(|| load.has("rate"));
    let foreign: &[&str] = if open { &["think"] } else { &["rate", "arrivals"] };
    for key in foreign.iter().filter(|key| load.has(key)) {
        let (kind, hint) = if open {
            ("an open", "drop it, or `rate`: think time needs a closed loop")
        } else {
            ("a closed", "it needs an open loop: set `loop = \"open\"` and `rate`, or drop it")
        };
        load.mistake(key, format!("`load.{key}` does not apply to {kind} loop"), hint.to_owned());
    }
    if !open {
        return Some(Arrivals::Closed { think_ns: load.duration_ns("think")? });
    }
    if !load.has("rate") {
        load.report.missing(load.place_of("loop"), "an open loop needs `load.rate`", "add `rate = \"10k\"`".to_owned());
    }
    let poisson = load.choice("arrivals", ARRIVALS);
    if search::share(load)?.is_some() {
        return search::later(load);
    }
    let rate_per_s = load.rate_per_s("rate")?;
    Some(if poisson? { Arrivals::Poisson { rate_per_s } } else { Arrivals::Constant { rate_per_s } })
}
