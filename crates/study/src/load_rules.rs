//! Rules on combinations of a load's settings, which apply to studies and to specifications of generators.

use crate::load_limits_and_defaults::IN_FLIGHT_MAX;
use crate::spec::{Arrivals, Connection, Protocol, Stop, ThinkTime, Warmup};
use crate::workload::Problem;

const ANOTHER: &str = "end after a time, or a number of requests";

/// Finds every violated rule. Returns each with the key of `[load]` to change.
pub fn problems(
    protocol: Protocol,
    clients: u32,
    pipeline: u32,
    connection: Connection,
    arrivals: Arrivals,
    warmup: Warmup,
    stop: Stop,
) -> Vec<Problem> {
    let is_cache = protocol.dialect().is_some();
    let is_volley = matches!(stop, Stop::Volley { .. });
    let mut found = Vec::new();
    let mut rule = |broken: bool, key, message: &str, hint| {
        if broken {
            found.push(Problem { key, message: message.to_owned(), hint: Some(hint) });
        }
    };
    let message = "`pipeline` must be 1 if a connection ends after a number of requests";
    let ends = connection != Connection::KeepAlive;
    rule(pipeline > 1 && ends, "pipeline", message, "drop `pipeline`, or keep connections alive");
    let has_think = arrivals.think() != ThinkTime::NONE;
    rule(pipeline > 1 && has_think, "think", "`pipeline` must be 1 with think time", "drop `think`, or `pipeline`");
    let message = format!("{clients} clients with {pipeline} requests in flight each: at most 4,000,000 in total");
    let is_too_much = u64::from(clients) * u64::from(pipeline) > IN_FLIGHT_MAX;
    rule(is_too_much, "pipeline", &message, "use fewer clients, or a lower `pipeline`");
    rule(is_volley && is_cache, "stop", "volley's rule does not apply to caches", ANOTHER);
    rule(is_volley && protocol == Protocol::Journey, "stop", "volley's rule does not apply to journeys", ANOTHER);
    let message = "volley's rule needs one request in flight per connection";
    rule(is_volley && pipeline > 1, "pipeline", message, "drop `pipeline`, or the rule");
    let message = "volley's rule needs a closed loop without think time";
    rule(is_volley && (has_think || arrivals.is_open()), "stop", message, ANOTHER);
    let is_steady = matches!(warmup, Warmup::Steady { .. });
    rule(is_steady && !is_cache, "warmup", "`steady` needs a cache: it watches the hit ratio", "give a time");
    found
}
