//! Describes the load of a plan in words.

use study::plan::{BodyPlan, HttpPlan, HttpRequestPlan, JourneyPlan, LoadPlan, Plan};
use study::spec::{Arrivals, Connection, Expect, ThinkTime};
use study::{load_shape, time_law};

use crate::enum_words_and_lists::all_of;
use crate::number::{count, percent, quantity};

const NAMED: usize = 4;

/// Describes the load of a plan. Omits defaults and joins alternatives, as in `40, 80 or 200 clients`.
pub fn describe_load(plan: &Plan) -> String {
    let parts = plan.points.iter().map(|point| parts(&point.load)).collect::<Vec<_>>();
    let Some(first) = parts.first() else { return String::new() };
    let texts = (0..first.len()).filter_map(|part| joined(&parts.iter().map(|parts| &parts[part]).collect::<Vec<_>>()));
    texts.collect::<Vec<_>>().join(", ")
}

/// Text on a property of the load, after whether the property is usual.
type Part = (bool, String);

fn told(text: String) -> Part {
    (text.is_empty(), text)
}

fn parts(load: &LoadPlan) -> [Part; 9] {
    let http = load.http.as_ref();
    let connection = match load.connection {
        Connection::KeepAlive => "persistent connections".to_owned(),
        Connection::PerRequest => "one connection per request".to_owned(),
        Connection::Requests(requests) => format!("a new connection after {}", count(u64::from(requests), "request")),
    };
    let journey = load.journey.as_ref().map(journeys);
    [
        told(journey.unwrap_or_else(|| load.protocol.to_string())),
        match (http, &load.journey) {
            (Some(http), _) => version(http.expect.grpc, http.http2),
            (_, Some(journey)) => version(false, journey.http2),
            _ => told(String::new()),
        },
        told(http.map_or_else(String::new, requests)),
        told(arrivals(load)),
        told(count(u64::from(load.clients), "client")),
        (load.pipeline <= 1, format!("{} in flight on each connection", count(u64::from(load.pipeline), "request"))),
        (load.connection == Connection::KeepAlive, connection),
        told(http.map_or_else(String::new, encryption)),
        http.map_or_else(|| told(String::new()), expectations),
    ]
}

fn version(grpc: bool, http2: bool) -> Part {
    let text = match (grpc, http2) {
        (true, _) => "gRPC",
        (_, true) => "HTTP/2",
        _ => "HTTP/1.1",
    };
    (!http2, text.to_owned())
}

fn journeys(plan: &JourneyPlan) -> String {
    if let [one] = plan.journeys.as_slice() {
        return format!("journey {}", one.source);
    }
    let all = plan.journeys.iter().map(|one| format!("{} (weight {})", one.source, one.weight));
    format!("journeys {}", all_of(&all.collect::<Vec<_>>(), "and"))
}

/// Joins the distinct texts of the points. Texts that differ only in the first number become one text with all numbers.
fn joined(all: &[&Part]) -> Option<String> {
    if all.iter().all(|(usual, _)| *usual) {
        return None;
    }
    let texts = all.iter().map(|(_, text)| text.as_str()).filter(|text| !text.is_empty());
    let distinct = crate::group_by_key::distinct(texts);
    // `40 clients` and `1 client` differ only in their number.
    let parted = |text: &'_ str| -> Option<(String, String, String)> {
        let (number, noun) = text.split_once(' ')?;
        number.parse::<u64>().ok()?;
        let (word, rest) = noun.split_once(' ').unwrap_or((noun, ""));
        Some((number.to_owned(), format!("{} {rest}", word.trim_end_matches('s')), noun.to_owned()))
    };
    let numbers = distinct.iter().map(|text| parted(text)).collect::<Option<Vec<_>>>();
    match numbers.as_deref() {
        Some([(_, first, _), .., (_, _, noun)]) if numbers.iter().flatten().all(|(_, kind, _)| kind == first) => {
            let all = numbers.iter().flatten().map(|(number, ..)| number.as_str()).collect::<Vec<_>>();
            Some(format!("{} {noun}", all_of(&all, "or")))
        }
        _ => Some(all_of(&distinct, "or")),
    }
}

fn requests(http: &HttpPlan) -> String {
    let one = |request: &HttpRequestPlan| {
        let body = match &request.body {
            None => String::new(),
            Some(BodyPlan::Text(text)) => format!(" with {}", count(text.len() as u64, "byte")),
            Some(BodyPlan::File(file)) => format!(" with `{file}`"),
        };
        format!("{} {}{body}", request.method, request.path)
    };
    if let [request] = http.requests.as_slice() {
        return one(request);
    }
    let all = http.requests.iter().map(|request| f64::from(request.weight)).sum::<f64>().max(1.0);
    let shares = http.requests.iter().take(NAMED);
    let shares = shares.map(|request| format!("{} {}", percent(f64::from(request.weight) / all), one(request)));
    let more = http.requests.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("a mix of {}{more}", shares.collect::<Vec<_>>().join("; "))
}

fn arrivals(load: &LoadPlan) -> String {
    let shape = if load.shape.is_empty() { String::new() } else { format!(" at {}", load_shape::text(&load.shape)) };
    let thinking = |time: String| format!("closed loop{shape} with {time} think time");
    match load.arrivals {
        _ if load.search.is_some() => "open loop at the rates of a search".to_owned(),
        _ if load.share.is_some() => "open loop at fractions of the capacity found".to_owned(),
        Arrivals::Closed { think: ThinkTime::NONE } => format!("closed loop{shape}"),
        Arrivals::Closed { think: ThinkTime::Constant(ns) } => thinking(quantity(ns as f64, "ns")),
        Arrivals::Closed { think: ThinkTime::Random(law) } => thinking(time_law::text(&law)),
        Arrivals::Poisson { .. } => format!("open loop{shape}, Poisson arrivals"),
        Arrivals::Constant { .. } => format!("open loop{shape}, constant arrivals"),
        Arrivals::Recorded => "open loop at trace timestamps".to_owned(),
    }
}

fn encryption(http: &HttpPlan) -> String {
    let Some(tls) = &http.tls else { return String::new() };
    let resumed = if tls.resume { "sessions resumed" } else { "full handshakes" };
    if tls.insecure { format!("{resumed}, any certificate accepted") } else { resumed.to_owned() }
}

fn expectations(http: &HttpPlan) -> Part {
    let statuses = match &http.expect.status {
        None => "valid with status 200 to 299".to_owned(),
        Some(statuses) => {
            let shown = statuses.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(" or ");
            let more = if statuses.len() > NAMED { " and others" } else { "" };
            format!("valid with status {shown}{more}")
        }
    };
    let body = if http.expect.body.is_some() { " and the expected body" } else { "" };
    (http.expect == Expect::default(), statuses + body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(lines: &str, factors: &str) -> Plan {
        let text = format!(
            "question = \"?\"\n[subject]\ncommand = \"x -p {{port}}\"\n[load]\nstop = \"1s\"\n{lines}\n[factors]\n{factors}\n"
        );
        let study = study::parse(&text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        let options = study::ExpandOptions {
            name: "test".to_owned(),
            seed: 1,
            profile: study::Profile::Default,
            machine_cpus: 2,
            generators_apart: false,
            sets: Vec::new(),
        };
        study::expand(&study, &options).unwrap()
    }

    #[test]
    fn describes_loads() {
        let check =
            |lines: &str, factors: &str, expected: &str| assert_eq!(describe_load(&plan(lines, factors)), expected);
        check("protocol = \"pingpong\"\nclients = 40", "", "pingpong, closed loop, 40 clients");
        check(
            "protocol = \"pingpong\"\nclients = \"{c}\"\nthink = \"2ms\"",
            "c = [1, 40, 80]",
            "pingpong, closed loop with 2.00 ms think time, 1, 40 or 80 clients",
        );
        check(
            "protocol = \"http\"\nclients = 400\npipeline = \"{d}\"\nrate = \"{r}\"",
            "d = [1, 16]\nr = [1000, 2000]",
            "http, GET /, open loop, Poisson arrivals, 400 clients, 1 or 16 requests in flight on each connection",
        );
        check(
            "protocol = \"https\"\nclients = 1\nconnection = \"per-request\"\nresume = false\ninsecure = true\nmethod = \"POST\"\n\
             path = \"/{p}\"\nbody = \"four\"\nexpect_status = [200, 201]\nexpect_body = \"x\"",
            "p = [\"a\", \"b\"]",
            "https, POST /a with 4 bytes or POST /b with 4 bytes, closed loop, 1 client, one connection per request, \
             full handshakes, any certificate accepted, valid with status 200 or 201 and the expected body",
        );
        check(
            "protocol = \"http\"\nclients = 8\nrequest = [{ weight = 3 }, { path = \"/b\" }, { path = \"/c\", body_file = \"f\" }, \
             { path = \"/d\" }, { path = \"/e\" }]",
            "",
            "http, a mix of 43 % GET /; 14 % GET /b; 14 % GET /c with `f`; 14 % GET /d; and 1 more, closed loop, 8 clients",
        );
    }

    #[test]
    fn names_both_versions_of_http() {
        let text = describe_load(&plan("protocol = \"http\"\nclients = 4\nhttp = \"{v}\"", "v = [\"1.1\", \"2\"]"));
        assert!(text.starts_with("http, HTTP/1.1 or HTTP/2, GET /, "), "{text}");
    }

    #[test]
    fn plan_without_points_has_no_description() {
        let mut empty = plan("protocol = \"pingpong\"\nclients = 1", "");
        empty.points.clear();
        assert_eq!(describe_load(&empty), "");
    }
}
