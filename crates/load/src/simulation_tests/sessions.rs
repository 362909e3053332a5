//! Sessions on the simulated network: order of calls, values of replies, lost connections, arrivals and times.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use net::Nanos;
use net::sim::{Actions, Answer, Network};
use study::Measurement;
use study::pool_measurements::pool;
use study::spec::{Arrivals, Connection, Identities, LoadSpec, Part, Stop, Target, Warmup, WeightedJourney};
use wire::http2::hpack::{self, Indexing};
use wire::http2::{push_data, push_headers};

use super::http::server;
use super::http2::{Request, made};
use super::{MS, ROUND_TRIP, S, errors, follow, near, outcome_of};
use crate::check_spec::tests::spec;
use crate::journey::{Plan, Sessions};

pub(super) const SHOP: &str = r#"
name = "shop"
targets = { shop = "http://10.0.0.1:7" }

[[step]]
name = "login"
url = "{shop}/login"
method = "POST"
body = '{"user": "{number}"}'
take = { token = "body.token" }

[[step]]
name = "list"
url = "{shop}/list"
headers = { Authorization = "Bearer {token}" }
expect = { "count(body.items)" = 2 }

[[step]]
name = "order"
url = "{shop}/order/{number}"
method = "POST"
headers = { Authorization = "Bearer {token}" }
"#;

pub(super) fn shop() -> LoadSpec {
    let target = Target::Journey {
        journeys: vec![WeightedJourney { weight: 1, journey: study::parse_journey(SHOP).unwrap() }],
        targets: BTreeMap::new(),
        resolve: None,
        insecure: false,
        ca_file: None,
        client: None,
        http2: false,
        is_traced: false,
        identities: Identities::Fresh,
    };
    LoadSpec { target, clients: 4, warmup: Warmup::DurationNs(0), ..spec() }
}

pub(super) fn reply(text: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
}

pub(super) fn measure(spec: &LoadSpec, network: Network, answer: impl FnMut(u64) -> Answer + 'static) -> Measurement {
    let plan = Arc::new(Plan::of(&spec.target, spec.seed).unwrap().unwrap());
    let (servers, worker, workers) = (plan.servers().unwrap(), spec.worker(0), spec.workers_of_all());
    let counted = plan.in_sessions(spec);
    match spec.target {
        Target::Journey { http2: true, .. } => {
            outcome_of(&counted, Sessions::<true>::new(plan, servers, worker, workers), network, answer).unwrap()
        }
        _ => outcome_of(&counted, Sessions::<false>::new(plan, servers, worker, workers), network, answer).unwrap(),
    }
}

pub(super) fn over_http2(spec: &LoadSpec) -> LoadSpec {
    let mut spec = spec.clone();
    let Target::Journey { http2, .. } = &mut spec.target else { unreachable!() };
    *http2 = true;
    spec
}

/// Converts an HTTP/1.1 response to frames.
pub(super) fn frames(stream: u32, reply: &[u8]) -> Vec<u8> {
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let (head, body) = (std::str::from_utf8(&reply[..end]).unwrap(), &reply[end + 4..]);
    let mut lines = head.split("\r\n");
    let mut block = Vec::new();
    let mut push = |name: &str, value: &str| {
        hpack::push_field(&mut block, name.as_bytes(), value.as_bytes(), Indexing::Insert);
    };
    push(":status", lines.next().unwrap().split(' ').nth(1).unwrap());
    for (name, value) in lines.map(|line| line.split_once(": ").unwrap()) {
        push(&name.to_ascii_lowercase(), value);
    }
    made(|out| {
        push_headers(out, stream, &block, body.is_empty(), 16_384);
        if !body.is_empty() {
            push_data(out, stream, body, true);
        }
    })
}

/// Answers each request with the delay and the reply that `script` returns for its head; resets for an empty reply.
fn serve(http2: bool, mut script: impl FnMut(&str) -> (Nanos, Vec<u8>) + 'static) -> Answer {
    if http2 {
        return super::http2::server(move |request: Request, to: &mut Actions| match script(&request.head) {
            (delay, reply) if reply.is_empty() => to.reset(delay),
            (delay, reply) => to.send(delay, frames(request.stream, &reply)),
        });
    }
    let mut skip = 0;
    server(move |_, head: &str, to: &mut Actions| {
        // The body of a request comes before the next head.
        let head = &head[std::mem::take(&mut skip)..];
        skip =
            head.split("Content-Length: ").nth(1).map_or(0, |rest| rest.split('\r').next().unwrap().parse().unwrap());
        match script(head) {
            (delay, reply) if reply.is_empty() => to.reset(delay),
            (delay, reply) => to.send(delay, reply),
        }
    })
}

/// Number of calls that the shop has served, by name, and number of orders without a login.
#[derive(Debug, Default)]
struct Served {
    calls: BTreeMap<&'static str, u64>,
    strangers: u64,
}

/// Runs a load on the shop over HTTP/1.1 and HTTP/2, which must have the same results. `spoil` gets the number of each
/// call and may change its delay and reply. Numbers differ after a reset, because HTTP/2 takes longer to reconnect.
fn load(
    spec: &LoadSpec,
    spoil: impl Fn(u64, &str, &mut Nanos, &mut Vec<u8>) + Clone + 'static,
) -> (Measurement, Served) {
    let (measurement, served) = load_over(false, spec, spoil.clone());
    let (other, served_other) = load_over(true, &over_http2(spec), spoil);
    assert_eq!(measurement.error_examples, other.error_examples);
    if matches!(spec.stop, Stop::Requests { .. }) && !measurement.errors.contains_key("reset") {
        let counts = |measurement: &Measurement| {
            let of_journey = |journey: &study::record::JourneyMeasurement| {
                let operations = journey.operations.iter().map(|one| (one.requests, one.errors)).collect::<Vec<_>>();
                (journey.completed, journey.abandoned, operations)
            };
            let journeys = measurement.journeys.iter().map(of_journey).collect::<Vec<_>>();
            let errors = measurement.errors.clone();
            let reason = measurement.stop_reason.clone();
            (journeys, errors, measurement.sent, measurement.reconnects, measurement.unfinished, reason)
        };
        assert_eq!(counts(&measurement), counts(&other));
        assert_eq!((&served.calls, served.strangers), (&served_other.calls, served_other.strangers));
    }
    (measurement, served)
}

fn load_over(
    http2: bool,
    spec: &LoadSpec,
    spoil: impl Fn(u64, &str, &mut Nanos, &mut Vec<u8>) + Clone + 'static,
) -> (Measurement, Served) {
    let served = Rc::new(RefCell::new(Served::default()));
    let all = served.clone();
    let answer = move |_| -> Answer {
        let (all, spoil) = (all.clone(), spoil.clone());
        let mut token = String::new();
        serve(http2, move |head| {
            let mut all = all.borrow_mut();
            let call = ["login", "list", "order"].into_iter().find(|call| head.contains(&format!(" /{call}"))).unwrap();
            let number = all.calls.values().sum::<u64>();
            *all.calls.entry(call).or_default() += 1;
            let text = match call {
                "login" => {
                    token = format!("t{number}");
                    format!("{{\"token\": \"{token}\"}}")
                }
                "list" => "{\"items\": [1, 2]}".to_owned(),
                _ => "{}".to_owned(),
            };
            all.strangers += u64::from(call != "login" && !head.contains(&format!("Bearer {token}\r\n")));
            let (mut delay, mut reply) = (MS, reply(&text));
            spoil(number, call, &mut delay, &mut reply);
            (delay, reply)
        })
    };
    let measurement = measure(spec, Network::PERFECT, answer);
    let served = Rc::try_unwrap(served).unwrap_or_else(|shared| panic!("{shared:?} is in use")).into_inner();
    (measurement, served)
}

#[test]
fn sessions_call_in_order_with_values_of_replies() {
    let spec = LoadSpec { stop: Stop::Requests { requests: 3_000, max_ns: 60 * S }, ..shop() };
    let (measurement, served) = load(&spec, |_, _, _, _| {});
    assert_eq!(served.calls, [("list", 1_000), ("login", 1_000), ("order", 1_000)].into());
    assert_eq!((served.strangers, measurement.requests, errors(&measurement)), (0, 3_000, vec![]));
    let journey = &measurement.journeys[0];
    assert_eq!((journey.completed, journey.abandoned), (1_000, 0));
    let counts = journey.operations.iter().map(|one| (one.name.as_str(), one.requests)).collect::<Vec<_>>();
    assert_eq!(counts, [("login", 1_000), ("list", 1_000), ("order", 1_000)]);
    let session = journey.session.as_ref().unwrap();
    assert_eq!((session.min, session.max), (Some(3 * (MS + ROUND_TRIP)), Some(3 * (MS + ROUND_TRIP))));
}

pub(super) fn two_servers() -> LoadSpec {
    let mut spec = shop();
    let text = SHOP.replace("targets = { ", "targets = { accounts = \"http://10.0.0.2:7\", ");
    let text = text.replace("{shop}/login", "{accounts}/login");
    if let Target::Journey { journeys, .. } = &mut spec.target {
        journeys[0].journey = study::parse_journey(&text).unwrap();
    }
    spec
}

#[test]
fn clients_keep_a_connection_to_each_server() {
    let requests = Stop::Requests { requests: 3_000, max_ns: 60 * S };
    let second = Stop::Duration { duration_ns: S };
    let arrivals = Arrivals::Constant { rate_per_s: 300.0 };
    let think = Arrivals::closed(10 * MS);
    for spec in [
        LoadSpec { stop: requests, ..two_servers() },
        LoadSpec { stop: second, arrivals, ..two_servers() },
        LoadSpec { stop: second, arrivals: think, ..two_servers() },
    ] {
        let (measurement, served) = load(&spec, |_, _, _, _| {});
        let (login, order) = (served.calls["login"], served.calls["order"]);
        assert!(login >= 280 && login - order <= 4, "{served:?}");
        // The token belongs to the connection to the other server, so both connections stay open.
        assert_eq!((errors(&measurement), measurement.connect.count, measurement.reconnects), (vec![], 8, 0));
    }
}

#[test]
fn connections_to_several_servers_end_as_asked() {
    let stop = Stop::Requests { requests: 3_000, max_ns: 60 * S };
    for (connection, connects) in [(Connection::PerRequest, 3_004), (Connection::Requests(2), 1_500)] {
        let spec = LoadSpec { stop, connection, ..two_servers() };
        let (measurement, served) = load(&spec, |_, _, _, _| {});
        assert_eq!(served.calls, [("list", 1_000), ("login", 1_000), ("order", 1_000)].into());
        assert_eq!((measurement.requests, errors(&measurement), measurement.reconnects), (3_000, vec![], 0));
        let difference = measurement.connect.count.abs_diff(connects);
        assert!(difference <= 8, "{connection:?}: {}", measurement.connect.count);
    }
}

#[test]
fn connections_that_a_server_ends_while_another_is_called_are_reopened() {
    let text = "name = \"two\"\ntargets = { a = \"http://10.0.0.1:7\", b = \"http://10.0.0.2:7\" }\n\
                [[step]]\nurl = \"{a}/\"\n[[step]]\nurl = \"{b}/\"\n";
    let mut spec = LoadSpec { stop: Stop::Requests { requests: 2_000, max_ns: 60 * S }, ..shop() };
    if let Target::Journey { journeys, .. } = &mut spec.target {
        journeys[0].journey = study::parse_journey(text).unwrap();
    }
    for junk in [&b""[..], b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"] {
        let answer = move |_| -> Answer {
            server(move |_, _: &str, to: &mut Actions| {
                to.send(MS, reply("{}"));
                if !junk.is_empty() {
                    to.send(MS + MS / 2, junk.to_vec());
                }
                to.end_of_stream(MS + MS / 2);
            })
        };
        let measurement = measure(&spec, Network::PERFECT, answer);
        assert_eq!((measurement.requests, errors(&measurement)), (2_000, vec![]));
        near(measurement.reconnects as f64, 2_000.0, 0.01);
    }
}

#[test]
fn with_several_servers_a_lost_connection_ends_only_its_session() {
    let stop = Stop::Requests { requests: 3_000, max_ns: 60 * S };
    let spoil = |number: u64, call: &str, _: &mut Nanos, reply: &mut Vec<u8>| {
        if call != "list" && number % 40 == 1 {
            reply.clear();
        }
    };
    let (measurement, served) = load(&LoadSpec { stop, ..two_servers() }, spoil);
    let lost = measurement.errors["reset"];
    assert_eq!((errors(&measurement).len(), measurement.reconnects), (1, lost));
    let journey = &measurement.journeys[0];
    assert!(lost > 20 && journey.abandoned == lost, "{lost} {journey:?}");
    assert_eq!(journey.completed + journey.abandoned, served.calls["login"]);
}

#[test]
fn an_error_ends_only_its_session() {
    let stop = Stop::Requests { requests: 3_000, max_ns: 60 * S };
    let spoil = |number: u64, call: &str, _: &mut Nanos, reply: &mut Vec<u8>| match call {
        "list" if number.is_multiple_of(50) => *reply = self::reply("{\"items\": [1]}"),
        "order" if number.is_multiple_of(70) => *reply = b"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n".to_vec(),
        _ => {}
    };
    let (measurement, served) = load(&LoadSpec { stop, ..shop() }, spoil);
    let journey = &measurement.journeys[0];
    let [login, list, order] = &journey.operations[..] else { panic!("{journey:?}") };
    assert_eq!((login.requests, login.errors, served.calls["login"]), (1_000, 0, 1_000));
    assert!(list.errors > 5 && order.errors > 5, "{journey:?}");
    assert_eq!((list.requests + list.errors, order.requests + order.errors), (1_000, list.requests));
    assert_eq!((journey.completed, journey.abandoned), (order.requests, list.errors + order.errors));
    assert_eq!(errors(&measurement), [("status", order.errors), ("value", list.errors)]);
    assert_eq!(measurement.error_examples["value"], "`list`: `count(body.items)` is 1, expected 2");
}

#[test]
fn sessions_survive_connections_that_end_between_calls() {
    let stop = Stop::Requests { requests: 3_000, max_ns: 60 * S };
    for connection in [Connection::PerRequest, Connection::Requests(2)] {
        // Tokens must outlive connections here, so this shop accepts them on any connection.
        let (measurement, served) = load(&LoadSpec { stop, connection, ..shop() }, |_, _, _, _| {});
        assert_eq!((served.calls["order"], measurement.requests), (1_000, 3_000), "{connection:?}");
        assert_eq!(errors(&measurement), [], "{connection:?}");
    }
}

#[test]
fn a_lost_connection_ends_the_session_in_flight() {
    let stop = Stop::Requests { requests: 3_000, max_ns: 60 * S };
    let (measurement, served) = load(&LoadSpec { stop, ..shop() }, |number, call, _, reply| {
        if call == "list" && number.is_multiple_of(40) {
            reply.clear();
        }
    });
    let journey = &measurement.journeys[0];
    assert!(journey.abandoned > 5, "{journey:?}");
    assert_eq!((served.calls["login"], journey.completed + journey.abandoned), (1_000, 1_000));
    assert_eq!(errors(&measurement), [("reset", journey.abandoned)]);
}

#[test]
fn sessions_start_at_their_rate_and_count_from_when_they_were_due() {
    let stop = Stop::Duration { duration_ns: 10 * S };
    let arrivals = Arrivals::Constant { rate_per_s: 50.0 };
    let stalled = |number: u64, _: &str, delay: &mut Nanos, _: &mut Vec<u8>| {
        if (600..604).contains(&number) {
            *delay += S;
        }
    };
    let spec = LoadSpec { stop, arrivals, timeout_ns: 5 * S, ..shop() };
    let (measurement, _) = load(&spec, stalled);
    assert_eq!(measurement.offered_per_s, Some(150.0));
    let journey = &measurement.journeys[0];
    assert!((495..=500).contains(&journey.completed), "{journey:?}");
    let session = stats::Histogram::try_from(journey.session.as_ref().unwrap()).unwrap();
    // 50 of 500 sessions were due during that second, and half of these sessions waited for more than 0.5 s.
    let quantile = |q| session.quantile(q).unwrap();
    assert!(quantile(0.93) < 0.5e9 && quantile(0.955) > 0.5e9, "{} {}", quantile(0.93), quantile(0.955));
}

#[test]
fn values_come_from_cookies_headers_and_html() {
    const TEXT: &str = r#"
name = "form"
targets = { shop = "http://10.0.0.1:7/shop" }

[[step]]
url = "{shop}/login"
take = { sid = "cookie.sid", decoded_sid = "decoded(cookie.sid)", csrf = 'match(name="csrf" value="([^"]*)")' }

[[step]]
url = "{shop}/basket?csrf={csrf}"
think = "20ms"
take = { next = "header.location" }
expect = { status = 302 }

[[step]]
url = "{shop}{next}"
take = { item = "body.items[any].id" }

[[step]]
url = "{shop}/item/{item}"
headers = { X-Sid = "{sid} {decoded_sid}" }
"#;
    let mut spec = LoadSpec { stop: Stop::Requests { requests: 400, max_ns: 60 * S }, ..shop() };
    let Target::Journey { journeys, .. } = &mut spec.target else { unreachable!() };
    journeys[0].journey = study::parse_journey(TEXT).unwrap();
    for http2 in [false, true] {
        let spec = if http2 { over_http2(&spec) } else { spec.clone() };
        check_form(&spec, http2);
    }
}

fn check_form(spec: &LoadSpec, http2: bool) {
    let items = Rc::new(RefCell::new(BTreeMap::<String, u32>::new()));
    let seen = items.clone();
    let answer = move |_| -> Answer {
        let seen = seen.clone();
        let mut logins = 0;
        serve(http2, move |head: &str| {
            let head = head.to_ascii_lowercase();
            let path = head.split(' ').nth(1).unwrap();
            let sid = format!("s%3a{logins}");
            let has_cookie = head.contains(&format!("\r\ncookie: sid={sid}\r\n"));
            let reply = match path {
                "/shop/login" => {
                    assert!(!head.contains("cookie:"), "each session has its own cookies: {head}");
                    logins += 1;
                    let html = format!("<input name=\"csrf\" value=\"a&{logins}\">");
                    let length = html.len();
                    format!(
                        "HTTP/1.1 200 OK\r\nSet-Cookie: sid=s%3A{logins}; Path=/shop\r\nContent-Length: {length}\r\n\r\n{html}"
                    )
                }
                "/shop/list" if has_cookie => {
                    let list = r#"{"items": [{"id": 1}, {"id": 2}, {"id": 3}]}"#;
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{list}", list.len())
                }
                path if path == format!("/shop/basket?csrf=a%26{logins}") && has_cookie => {
                    "HTTP/1.1 302 Found\r\nLocation: /list\r\nContent-Length: 0\r\n\r\n".to_owned()
                }
                path if path.starts_with("/shop/item/") && head.contains(&format!("x-sid: {sid} s:{logins}\r\n")) => {
                    *seen.borrow_mut().entry(path["/shop/item/".len()..].to_owned()).or_default() += 1;
                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()
                }
                _ => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_owned(),
            };
            (MS, reply.into_bytes())
        })
    };
    let pieces = Network { segment_bytes: 1..=9, read_bytes: 1..=9, ..Network::PERFECT };
    let measurement = measure(spec, pieces, answer);
    assert_eq!((errors(&measurement), measurement.requests), (vec![], 400), "{:?}", measurement.error_examples);
    let items = items.borrow();
    assert!(items.len() == 3 && items.values().all(|count| *count > 15), "{items:?}");
    let session = measurement.journeys[0].session.as_ref().unwrap();
    let least = 4 * (MS + ROUND_TRIP) + 20 * MS;
    assert!((least..least + 5 * MS).contains(&session.min.unwrap()), "{session:?}");
}

#[test]
fn thinking_outlasts_the_idle_timeout_of_a_server() {
    let mut spec = LoadSpec { stop: Stop::Requests { requests: 300, max_ns: 60 * S }, ..shop() };
    let Target::Journey { journeys, .. } = &mut spec.target else { unreachable!() };
    journeys[0].journey =
        study::parse_journey(&SHOP.replacen("name = \"order\"", "name = \"order\"\nthink = \"50ms\"", 1)).unwrap();
    let seen = Rc::new(RefCell::new((0, 0)));
    let counts = seen.clone();
    let answer = move |_| -> Answer {
        let counts = counts.clone();
        counts.borrow_mut().0 += 1;
        server(move |_, head: &str, to: &mut Actions| {
            let is_list = head.contains(" /list");
            counts.borrow_mut().1 += u64::from(head.contains(" /order"));
            let text = if is_list { "{\"items\": [1, 2]}" } else { "{\"token\": \"t\"}" };
            to.send(MS, reply(text));
            if is_list {
                to.end_of_stream(10 * MS);
            }
        })
    };
    let measurement = measure(&spec, Network::PERFECT, answer);
    let (connections, orders) = *seen.borrow();
    assert_eq!((measurement.requests, errors(&measurement), orders), (300, vec![], 100));
    assert!(connections >= 100, "{connections}");
    let session = measurement.journeys[0].session.as_ref().unwrap();
    let least = 3 * (MS + ROUND_TRIP) + 50 * MS;
    assert!((least..least + 5 * MS).contains(&session.max.unwrap()), "{session:?}");
}

#[test]
fn several_generators_share_the_numbers_of_sessions() {
    let stop = Stop::Duration { duration_ns: S };
    let whole = LoadSpec { clients: 6, threads: 1, stop, ..shop() };
    let seen = Rc::new(RefCell::new(BTreeMap::<u64, u32>::new()));
    let parts = (0..3).map(|first| {
        let spec = LoadSpec { part: Some(Part { first, of: 3 }), ..whole.clone() };
        let seen = seen.clone();
        measure(&spec, Network::PERFECT, move |_| {
            let seen = seen.clone();
            server(move |_, head: &str, to: &mut Actions| {
                if let Some((_, rest)) = head.split_once(" /order/") {
                    let number = rest.split(' ').next().unwrap().parse().unwrap();
                    *seen.borrow_mut().entry(number).or_default() += 1;
                }
                to.send(MS, reply("{\"token\": \"t\", \"items\": [1, 2]}"));
            })
        })
    });
    let parts = parts.collect::<Vec<_>>();
    let all = pool(&parts).unwrap();
    let journey = &all.journeys[0];
    let completed = |measurement: &Measurement| measurement.journeys[0].completed;
    assert_eq!((journey.completed, errors(&all)), (parts.iter().map(completed).sum(), vec![]));
    assert_eq!(journey.session.as_ref().unwrap().count, journey.completed);
    assert_eq!(journey.operations.iter().map(|one| one.requests).sum::<u64>(), all.requests);
    assert!(seen.borrow().values().all(|count| *count == 1), "each number once");
    assert!(seen.borrow().len() as u64 >= journey.completed && journey.completed > 500, "{journey:?}");
}

#[test]
fn clients_log_in_once_and_again_after_an_error() {
    let mut spec = LoadSpec { stop: Stop::Requests { requests: 2_000, max_ns: 60 * S }, ..shop() };
    let Target::Journey { journeys, .. } = &mut spec.target else { unreachable!() };
    journeys[0].journey =
        study::parse_journey(&SHOP.replacen("name = \"login\"", "name = \"login\"\nonce = true", 1)).unwrap();
    assert_eq!(spec.target.requests_per_session(), 2.0);
    let (measurement, served) = load(&spec, |_, _, _, _| {});
    assert_eq!(served.calls, [("list", 1_000), ("login", 4), ("order", 1_000)].into());
    assert_eq!((served.strangers, measurement.requests, errors(&measurement)), (0, 2_000, vec![]));
    assert_eq!((measurement.sent, measurement.stop_reason.as_str()), (2_000, "1000 journeys"));
    let journey = &measurement.journeys[0];
    assert_eq!((journey.completed, journey.operations[0].requests), (1_000, 0));

    let (measurement, served) = load(&spec, |number, call, _, reply| {
        if call == "list" && number == 500 {
            *reply = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".to_vec();
        }
    });
    assert_eq!(served.calls, [("list", 1_000), ("login", 5), ("order", 999)].into());
    assert_eq!((served.strangers, errors(&measurement)), (0, vec![("status", 1)]));
}

/// Two journeys: three in four visitors only look around; one in four logs in once and then orders.
fn two_journeys() -> LoadSpec {
    let mut spec = shop();
    let Target::Journey { journeys, .. } = &mut spec.target else { unreachable!() };
    journeys[0].journey =
        study::parse_journey(&SHOP.replacen("name = \"login\"", "name = \"login\"\nonce = true", 1)).unwrap();
    let text = "name = \"visit\"\ntargets = { shop = \"http://10.0.0.1:7\" }\n\
                [[step]]\nname = \"look\"\nurl = \"{shop}/list\"\nexpect = { \"count(body.items)\" = 2 }\n";
    journeys.push(WeightedJourney { weight: 3, journey: study::parse_journey(text).unwrap() });
    spec
}

#[test]
fn journeys_of_one_load_are_drawn_by_weight() {
    let stop = Stop::Duration { duration_ns: 20 * S };
    let arrivals = Arrivals::Constant { rate_per_s: 200.0 };
    let (measurement, served) = load(&LoadSpec { stop, arrivals, ..two_journeys() }, |_, _, _, _| {});
    let [shop, visit] = &measurement.journeys[..] else { panic!("{:?}", measurement.journeys) };
    assert_eq!((shop.name.as_str(), visit.name.as_str(), errors(&measurement)), ("shop", "visit", vec![]));
    near(visit.completed as f64, 3_000.0, 0.03);
    near((visit.completed + shop.completed) as f64, 4_000.0, 0.001);
    let counts = |one: &study::record::JourneyMeasurement| {
        one.operations.iter().map(|one| (one.name.clone(), one.requests)).collect::<Vec<_>>()
    };
    assert_eq!(counts(visit), [("look".to_owned(), visit.completed)]);
    assert_eq!(counts(shop)[0], ("login".to_owned(), 0), "it is called once per client, and not counted");
    assert!(counts(shop)[1].1 - shop.completed <= 1 && served.calls["login"] == 4, "{served:?}");
    let time = |one: &study::record::JourneyMeasurement| one.session.as_ref().unwrap().min.unwrap();
    assert_eq!((time(visit), time(shop)), (MS + ROUND_TRIP, 2 * (MS + ROUND_TRIP)));
    // The offered rate reflects the sessions that were drawn, not their expected number.
    near(measurement.requests as f64 / 20.0, measurement.offered_per_s.unwrap(), 0.001);

    let requests = Stop::Requests { requests: 5_000, max_ns: 60 * S };
    let (measurement, served) = load(&LoadSpec { stop: requests, ..two_journeys() }, |_, _, _, _| {});
    assert_eq!((measurement.sessions(), measurement.stop_reason.as_str()), (4_000, "4000 journeys"));
    let list = served.calls["list"] + served.calls["order"];
    assert_eq!((measurement.requests, errors(&measurement)), (list, vec![]));
}

#[test]
fn a_client_logs_in_once_for_each_journey() {
    let mut spec = LoadSpec { stop: Stop::Requests { requests: 2_000, max_ns: 60 * S }, ..two_journeys() };
    let Target::Journey { journeys, .. } = &mut spec.target else { unreachable!() };
    let mut other = journeys[0].journey.clone();
    other.name = "other".to_owned();
    journeys[1] = WeightedJourney { weight: 1, journey: other };
    let (measurement, served) = load(&spec, |_, _, _, _| {});
    assert_eq!((served.calls["login"], measurement.sessions(), errors(&measurement)), (8, 1_000, vec![]));
}

#[test]
fn generators_of_several_journeys_add_up() {
    let stop = Stop::Duration { duration_ns: 4 * S };
    let arrivals = Arrivals::Constant { rate_per_s: 300.0 };
    let whole = LoadSpec { clients: 6, threads: 1, stop, arrivals, ..two_journeys() };
    let parts =
        (0..3).map(|first| load(&LoadSpec { part: Some(Part { first, of: 3 }), ..whole.clone() }, |_, _, _, _| {}).0);
    let parts = parts.collect::<Vec<_>>();
    let all = pool(&parts).unwrap();
    let visits = |measurement: &Measurement| measurement.journeys[1].completed;
    assert_eq!((visits(&all), errors(&all)), (parts.iter().map(visits).sum(), vec![]));
    near(all.sessions() as f64, 1_200.0, 0.005);
    near(all.requests as f64 / 4.0, all.offered_per_s.unwrap(), 0.005);
}

/// Sessions read the pages that replies name, and sessions with an even number order twice.
const PAGES: &str = r#"
name = "pages"
targets = { shop = "http://10.0.0.1:7" }

[[step]]
name = "home"
url = "{shop}/{number}"
take = { next = "body.next?", role = "body.role" }

[[step]]
name = "page"
url = "{shop}/{number}/page/{next}"
repeat = 10
when = '{next} != ""'
take = { next = "body.next?" }

[[step]]
name = "order"
url = "{shop}/{number}/order"
repeat = 2
when = "{role} == even"
"#;

pub(super) fn journey_of(text: &str) -> LoadSpec {
    let mut spec = shop();
    let Target::Journey { journeys, .. } = &mut spec.target else { unreachable!() };
    journeys[0].journey = study::parse_journey(text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    spec
}

/// Serves `/NUMBER`, `/NUMBER/page/1` to `/NUMBER/page/3`, and `/NUMBER/order`.
fn pages(_: u64) -> Answer {
    server(|_, head: &str, to: &mut Actions| {
        let path = head.split(' ').nth(1).unwrap().split('/').collect::<Vec<_>>();
        let role = if path[1].parse::<u64>().unwrap().is_multiple_of(2) { "even" } else { "odd" };
        let page = path.get(3).map_or(0, |page| page.parse::<u32>().unwrap());
        let next = if page < 3 { (page + 1).to_string() } else { "null".to_owned() };
        to.send(MS, reply(&format!("{{\"role\": \"{role}\", \"next\": {next}}}")));
    })
}

#[test]
fn steps_are_repeated_and_skipped() {
    let stop = Stop::Duration { duration_ns: 20 * S };
    let arrivals = Arrivals::Constant { rate_per_s: 50.0 };
    let spec = LoadSpec { stop, arrivals, ..journey_of(PAGES) };
    assert_eq!(spec.target.requests_per_session(), 13.0);
    let measurement = measure(&spec, Network::PERFECT, pages);
    assert_eq!(errors(&measurement), [], "{:?}", measurement.error_examples);
    let requests = measurement.journeys[0].operations.iter().map(|one| one.requests as f64);
    for (requests, expected) in requests.zip([1_000.0, 3_000.0, 1_000.0]) {
        near(requests, expected, 0.005);
    }
    near(measurement.journeys[0].completed as f64, 1_000.0, 0.002);
    // The offered rate leaves out skipped calls.
    near(measurement.offered_per_s.unwrap(), 250.0, 0.002);
}

#[test]
fn conditions_that_order_texts_fail_the_journey() {
    let text = PAGES.replace("{role} == even", "{role} > 1");
    let spec = LoadSpec { stop: Stop::Requests { requests: 260, max_ns: 60 * S }, ..journey_of(&text) };
    let measurement = measure(&spec, Network::PERFECT, pages);
    assert_eq!((errors(&measurement), measurement.journeys[0].completed), (vec![("value", 20)], 0));
    assert_eq!(measurement.error_examples["value"], "`page`: `when` of the next step: `even` is not a number");
}

fn pauses(law: &str, sessions: u64) -> Vec<u64> {
    let text = SHOP.replace("name = \"list\"", &format!("name = \"list\"\nthink = \"{law}\""));
    let stop = Stop::Requests { requests: 3 * sessions, max_ns: 9_000 * S };
    let spec = LoadSpec { stop, log_one_in: 1, clients: 50, timeout_ns: 60 * S, ..journey_of(&text) };
    let (measurement, _) = load(&spec, |_, _, _, _| {});
    assert_eq!((errors(&measurement), measurement.log.len() as u64), (vec![], 3 * sessions));
    let mut ended = BTreeMap::new();
    let mut pauses = Vec::new();
    let mut log = measurement.log;
    log.sort_by_key(|call| call.sent_ns);
    for call in log {
        let before = ended.insert(call.session.unwrap().journey, call.ended_ns);
        let pause = before.map(|before| (call.sent_ns - before) as u64);
        if call.request == 1 {
            pauses.extend(pause);
        } else {
            assert_eq!(pause, (call.request == 2).then_some(0), "no other step thinks");
        }
    }
    pauses
}

#[test]
fn constant_think_time_is_exact() {
    assert_eq!(pauses("1234567ns", 300), [1_234_567; 300]);
}

#[test]
fn think_times_follow_their_law() {
    for law in ["exponential:20ms", "uniform:5ms,80ms", "lognormal:10ms,0.8"] {
        follow(law, pauses(law, 5_000));
    }
}

#[test]
fn each_step_has_its_first_byte() {
    let spec = LoadSpec { stop: Stop::Requests { requests: 300, max_ns: 60 * S }, ..journey_of(PAGES) };
    let measurement = measure(&spec, Network::PERFECT, |_| {
        server(|_, head: &str, to: &mut Actions| {
            let whole = reply("{\"role\": \"even\", \"next\": null}");
            if head.contains("/order") {
                let (first, second) = whole.split_at(20);
                to.send(MS, first.to_vec());
                to.send(3 * MS, second.to_vec());
            } else {
                to.send(MS, whole);
            }
        })
    });
    assert_eq!(errors(&measurement), []);
    let [home, _, order] = &measurement.journeys[0].operations[..] else { panic!("{measurement:?}") };
    assert_eq!((home.first_byte.as_ref(), home.service.min), (None, Some(MS + ROUND_TRIP)));
    let first_byte = order.first_byte.as_ref().unwrap();
    assert_eq!(
        (first_byte.count, first_byte.min, first_byte.max),
        (order.requests, Some(MS + ROUND_TRIP), Some(MS + ROUND_TRIP))
    );
    assert_eq!(order.service.min, Some(3 * MS + ROUND_TRIP));
}
