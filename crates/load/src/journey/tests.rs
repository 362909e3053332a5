//! Complete journeys against the mocks in this process, on ports chosen by the kernel.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mocks::{Chess, Evernote, Identities, MockAnswer, MockListen, MockRequest, Profile, Service, Twitter, serve_mock};
use servers::Shutdown;
use study::Journey;
use study::record::{LoggedSession, Measurement};
use study::spec::{LoadSpec, Stop, Target, Warmup, WeightedJourney};

use crate::check_spec::tests::spec;

/// Method, target and host of each request that a service received.
type Log = Arc<Mutex<Vec<String>>>;

struct Logged<S> {
    inner: S,
    log: Log,
}

impl<S: Service> Service for Logged<S> {
    fn answer(&self, request: &MockRequest) -> MockAnswer {
        let host = request.headers()["host"].to_str().unwrap();
        let line = format!("{} {host} {}", request.method(), request.uri());
        self.log.lock().unwrap().push(line);
        self.inner.answer(request)
    }
}

struct Answers<F>(F);

impl<F: Fn(&MockRequest) -> (u16, String) + Send + Sync + 'static> Service for Answers<F> {
    fn answer(&self, request: &MockRequest) -> MockAnswer {
        let (status, text) = (self.0)(request);
        let mut answer = MockAnswer::new(text.into());
        *answer.status_mut() = status.try_into().unwrap();
        answer.headers_mut().insert("content-type", "application/json".parse().unwrap());
        answer
    }
}

fn served<T>(
    count: usize,
    names: &[&str],
    cert_out: Option<std::path::PathBuf>,
    services: impl FnOnce(&[SocketAddr]) -> Vec<Arc<dyn Service>> + Send,
    then: impl FnOnce(&[SocketAddr]) -> T,
) -> T {
    struct Ask<'s>(&'s Shutdown);
    impl Drop for Ask<'_> {
        fn drop(&mut self) {
            self.0.force(); // Also runs after a failed test.
        }
    }
    let listen = MockListen {
        threads: 1,
        connections: 100,
        body_bytes: 1 << 20,
        idle: Duration::from_secs(60),
        patience: Duration::from_secs(10),
        drain: Duration::from_secs(5),
        delay: None,
        seed: 1,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        cert_out,
    };
    let shutdown = Shutdown::default();
    let any = vec![SocketAddr::from(([127, 0, 0, 1], 0)); count];
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let _ask = Ask(&shutdown);
        let (shutdown, listen, any) = (&shutdown, &listen, &any);
        scope.spawn(move || {
            serve_mock(listen, any, services, shutdown, |bound| tell.send(bound.to_vec()).unwrap()).unwrap();
        });
        let bound = told.recv_timeout(Duration::from_secs(60)).expect("the mock listens");
        then(&bound)
    })
}

fn target(journey: Journey, targets: &[(&str, String)]) -> Target {
    let targets = targets.iter().map(|(name, url)| ((*name).to_owned(), url.clone())).collect::<BTreeMap<_, _>>();
    Target::Journey {
        journeys: vec![WeightedJourney { weight: 1, journey }],
        targets,
        resolve: None,
        insecure: true,
        ca_file: None,
        client: None,
        http2: false,
        is_traced: false,
        identities: study::spec::Identities::Fresh,
    }
}

fn load(target: Target, clients: u32, requests: u64) -> Measurement {
    let stop = Stop::Requests { requests, max_ns: 60_000_000_000 };
    let warmup = Warmup::DurationNs(0);
    let spec = LoadSpec { target, clients, stop, warmup, timeout_ns: 20_000_000_000, log_one_in: 1, ..spec() };
    crate::run(&spec, &mut |_| {}, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"))
}

fn counts(measurement: &Measurement) -> Vec<(String, u64, u64)> {
    let journey = &measurement.journeys[0];
    journey.operations.iter().map(|one| (one.name.clone(), one.requests, one.errors)).collect()
}

fn preset(name: &str) -> Journey {
    study::preset_journey(name).unwrap()
}

fn of_text(text: &str) -> Journey {
    study::parse_journey(text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

fn load_answered(
    text: &str,
    requests: u64,
    answer: impl Fn(&MockRequest) -> (u16, String) + Send + Sync + 'static,
) -> Measurement {
    let services = |_: &[SocketAddr]| vec![Arc::new(Answers(answer)) as Arc<dyn Service>];
    served(1, &[], None, services, |bound| {
        load(target(of_text(text), &[("api", format!("http://{}", bound[0]))]), 1, requests)
    })
}

#[track_caller]
fn assert_no_errors(measurement: &Measurement, requests: u64) {
    assert_eq!((measurement.requests, measurement.errors_total()), (requests, 0), "{:?}", measurement.error_examples);
}

const LOCAL: [&str; 2] = ["localhost", "127.0.0.1"];

fn evernote(profile: Profile, logs: &[Log; 2]) -> impl FnOnce(&[SocketAddr]) -> Vec<Arc<dyn Service>> + Send {
    let [first, second] = logs.clone();
    move |bound| {
        let url = format!("https://{}/", bound[1]);
        let user = Arc::new(Logged { inner: Evernote::user(url.clone()), log: first }) as Arc<dyn Service>;
        vec![user, Arc::new(Logged { inner: Evernote::notes(profile, url), log: second })]
    }
}

#[test]
fn evernote_follows_endpoints_in_replies() {
    for profile in [Profile::Shipped, Profile::Paper] {
        let logs = [Log::default(), Log::default()];
        served(2, &LOCAL, None, evernote(profile, &logs), |bound| {
            let measurement = load(target(preset("evernote"), &[("user", format!("https://{}", bound[0]))]), 1, 52);
            assert_eq!((measurement.requests, measurement.errors_total()), (50, 0), "whole journeys of 5 calls");
            let expected =
                preset("evernote").steps.iter().map(|step| (step.operation.clone(), 10, 0)).collect::<Vec<_>>();
            assert_eq!(counts(&measurement), expected);
            let journey = &measurement.journeys[0];
            assert_eq!((journey.completed, journey.abandoned, measurement.log.len()), (10, 0, 50));
            for (call, place) in measurement.log.iter().zip(0u64..) {
                let session = Some(LoggedSession { client: 0, journey: place / 5 });
                assert!(call.session == session && call.error.is_empty(), "{call:?}");
            }
            assert_eq!(measurement.handshake.unwrap().count, 2, "a connection for each endpoint, kept");
            assert_eq!(logs[0].lock().unwrap().len(), 10);
            let host = bound[0].to_string();
            assert!(logs[0].lock().unwrap().iter().all(|line| *line == format!("POST {host} //edam/user")));
            assert_eq!(logs[1].lock().unwrap().len(), 40);
        });
    }
}

#[test]
fn chess_runs_with_several_clients() {
    served(
        1,
        &[],
        None,
        |_| vec![Arc::new(Chess::new(100, Identities::Fresh)) as Arc<dyn Service>],
        |bound| {
            let measurement =
                load(target(preset("chess"), &[("chess", format!("http://{}", bound[0]))]), 4, 7 * 20 + 6);
            assert_no_errors(&measurement, 140);
            let expected = [("MakeGame", 20), ("GetMyGames", 80), ("MakeAMove", 40)];
            assert_eq!(counts(&measurement), expected.map(|(name, count)| (name.to_owned(), count, 0)));
            assert_eq!(measurement.service.count, 140);
            assert_eq!(measurement.statuses, BTreeMap::from([(200, 140)]));
            let windows = measurement.windows.iter().map(|window| window.requests).sum::<u64>();
            assert_eq!(windows, 140);
        },
    );
}

#[test]
fn twitter_passes_ids_from_replies_to_requests() {
    let log = Log::default();
    let twitter = Logged { inner: Twitter::default(), log: Arc::clone(&log) };
    served(
        1,
        &LOCAL,
        None,
        |_| vec![Arc::new(twitter) as Arc<dyn Service>],
        |bound| {
            let host = bound[0].to_string();
            let measurement = load(target(preset("twitter"), &[("twitter", format!("https://{host}"))]), 1, 6);
            assert_no_errors(&measurement, 6);
            let expected = [
                "friends/list.json?user_id=0",
                "statuses/user_timeline.json?user_id=110000000000",
                "statuses/retweet/__id__.json?tweet_id=210000000001",
                "friends/list.json?user_id=3",
                "statuses/user_timeline.json?user_id=110000000003",
                "statuses/retweet/__id__.json?tweet_id=210000000004",
            ];
            assert_eq!(*log.lock().unwrap(), expected.map(|target| format!("GET {host} /1.1/{target}")));
        },
    );
}

#[test]
fn reused_identities_make_each_client_one_user() {
    let log = Log::default();
    let twitter = Logged { inner: Twitter::new(Identities::Reused), log: Arc::clone(&log) };
    let reused = |journey: &str, targets: &[(&str, String)]| {
        let mut target = target(preset(journey), targets);
        if let Target::Journey { identities, .. } = &mut target {
            *identities = study::spec::Identities::Reused;
        }
        target
    };
    let services = |_: &[SocketAddr]| vec![Arc::new(twitter) as Arc<dyn Service>];
    served(1, &LOCAL, None, services, |bound| {
        let measurement = load(reused("twitter", &[("twitter", format!("https://{}", bound[0]))]), 1, 9);
        assert_no_errors(&measurement, 9);
        let log = log.lock().unwrap();
        assert!(log[0].contains("user_id=0") && log[..3] == log[3..6] && log[..3] == log[6..], "{log:?}");
    });
    let chess = |_: &[SocketAddr]| vec![Arc::new(Chess::new(100, Identities::Reused)) as Arc<dyn Service>];
    served(1, &[], None, chess, |bound| {
        let measurement = load(reused("chess", &[("chess", format!("http://{}", bound[0]))]), 3, 7 * 20);
        assert_no_errors(&measurement, 140);
    });
}

#[test]
fn verifies_certificates_against_written_root() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.pem");
    served(
        1,
        &LOCAL,
        Some(path.clone()),
        |_| vec![Arc::new(Twitter::default()) as Arc<dyn Service>],
        |bound| {
            let with = |ca_file: Option<String>, host: &str| {
                let url = format!("https://{host}:{}", bound[0].port());
                let mut target = target(preset("twitter"), &[("twitter", url)]);
                if let Target::Journey { insecure, ca_file: of_target, .. } = &mut target {
                    (*insecure, *of_target) = (false, ca_file);
                }
                target
            };
            let root = path.to_str().map(str::to_owned);
            for host in ["127.0.0.1", "localhost"] {
                assert_eq!(load(with(root.clone(), host), 1, 3).requests, 3, "{host}");
            }
            let spec = LoadSpec { target: with(None, "127.0.0.1"), clients: 1, ..spec() };
            let error = crate::run(&spec, &mut |_| {}, &AtomicBool::new(false)).unwrap_err().to_string();
            assert!(error.contains("cannot open any of"), "{error}");
        },
    );
}

#[test]
fn resolver_supplies_addresses_of_endpoints() {
    // Nothing listens on the URL's port; the resolver returns the service's port.
    let asked = Log::default();
    let log = Arc::clone(&asked);
    let services = |bound: &[SocketAddr]| {
        let real = bound[0];
        let resolver = Logged {
            inner: Answers(move |request: &MockRequest| match request.uri().to_string().contains("%3A1%2F") {
                true => (200, format!("{{\"address\": \"{real}\"}}")),
                false => (404, String::new()),
            }),
            log,
        };
        vec![Arc::new(Chess::new(10, Identities::Fresh)) as Arc<dyn Service>, Arc::new(resolver)]
    };
    served(2, &[], None, services, |bound| {
        let resolved = |url: String| {
            let mut target = target(preset("chess"), &[("chess", url)]);
            if let Target::Journey { resolve, .. } = &mut target {
                *resolve = Some(format!("http://{}", bound[1]));
            }
            let measurement = load(target, 1, 14);
            assert_no_errors(&measurement, 14);
        };
        resolved("http://127.0.0.1:1".to_owned());
        assert_eq!(
            *asked.lock().unwrap(),
            [format!("GET {} /resolve?endpoint=http%3A%2F%2F127.0.0.1%3A1%2F", bound[1])]
        );
        resolved(format!("http://{}", bound[0]));
    });
}

#[test]
fn reply_values_cannot_inject_into_later_requests() {
    let text = r#"
name = "hostile"
targets = { api = "" }
[[step]]
name = "first"
url = "{api}/first"
take = { id = "body.id" }
[[step]]
name = "second"
url = "{api}/items/{id}?q={id}"
method = "POST"
body = '{"id": "{id}", "n": {number}}'
headers = { Content-Type = "application/json", X-Tag = 'a="{id}"' }
expect = { "body.id" = "{id}" }
"#;
    let answer = |request: &MockRequest| {
        if request.uri() == "/first" {
            return (200u16, r#"{"id": "a\", \"admin\": \"/é?&"}"#.to_owned());
        }
        let path =
            "/items/a%22%2C%20%22admin%22%3A%20%22%2F%C3%A9%3F%26?q=a%22%2C%20%22admin%22%3A%20%22%2F%C3%A9%3F%26";
        let status = if request.uri() == path { 200 } else { 404 };
        (status, String::from_utf8_lossy(request.body()).into_owned())
    };
    assert_no_errors(&load_answered(text, 20, answer), 20);
}

#[test]
fn counts_invalid_replies_by_kind() {
    let text = r#"
name = "wrong"
targets = { api = "" }
[[step]]
name = "first"
url = "{api}/first?n={number}"
take = { id = "body.id" }
[[step]]
name = "second"
url = "{api}/{id}"
expect = { "body.ok" = true }
"#;
    let answer = |request: &MockRequest| {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let number = query.trim_start_matches("n=").parse::<u64>().unwrap_or(0);
        match (path, number % 5) {
            ("/first", 0) => (200u16, r#"{"id": "good"}"#.to_owned()),
            ("/first", 1) => (200, r#"{"id": "bad"}"#.to_owned()),
            ("/first", 2) => (200, "{}".to_owned()),
            ("/first", 3) => (503, "{}".to_owned()),
            ("/first", _) => (200, "no json".to_owned()),
            ("/good", _) => (200, r#"{"ok": true}"#.to_owned()),
            _ => (200, r#"{"ok": false}"#.to_owned()),
        }
    };
    let measurement = load_answered(text, 20, answer);
    let errors = measurement.errors.iter().map(|(kind, count)| (kind.as_str(), *count)).collect::<Vec<_>>();
    assert_eq!(errors, [("body", 2), ("status", 2), ("value", 4)]);
    assert_eq!(counts(&measurement), [("first".to_owned(), 4, 6), ("second".to_owned(), 2, 2)]);
    let journey = &measurement.journeys[0];
    assert_eq!((journey.completed, journey.abandoned), (2, 8));
    assert_eq!(measurement.requests, 6);
    let example = &measurement.error_examples["value"];
    assert_eq!(example, "`second`: `body.ok` is false, expected true");
}

#[test]
fn load_without_valid_call_has_duration() {
    let text = r#"
name = "missing"
targets = { api = "" }
[[step]]
name = "first"
url = "{api}/first"
take = { id = "body.id" }
[[step]]
name = "second"
url = "{api}/{id}"
"#;
    let answer = |_: &MockRequest| (200u16, "{}".to_owned());
    let measurement = load_answered(text, 10, answer);
    assert_eq!((measurement.requests, measurement.errors["value"]), (0, 5), "five journeys of two calls each");
    assert!(measurement.received_bytes > 0);
    let last = measurement.log.iter().map(|call| call.ended_ns).max().unwrap();
    assert!(measurement.duration_ns as i64 >= last, "{} ns, and a call ended at {last}", measurement.duration_ns);
}

#[test]
fn reports_unreachable_target() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let target = target(preset("chess"), &[("chess", format!("http://127.0.0.1:{port}"))]);
    let spec = LoadSpec { target, clients: 2, ..spec() };
    let error = crate::run(&spec, &mut |_| {}, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains(&format!("cannot open any of 2 connections to 127.0.0.1:{port}")), "{error}");
}

#[test]
fn reports_all_errors_before_first_request() {
    let text = r#"
name = "mistaken"
targets = { user = "", other = "https://a" }
schemas = { notes = "evernote.thrift", chess = "chess.wsdl", mine = "mine.thrift" }
[[step]]
url = "{user}/"
thrift = "notes NoteStore.findNotes"
arguments = { authenticationToken = "t", offset = "zero", maxNote = 1 }
[[step]]
url = "{user}/"
thrift = "notes UserStore.findNotes"
[[step]]
url = "{user}/"
soap = "chess MakeAMove"
arguments = { gameId = "{user}", resign = 5 }
[[step]]
url = "{user}/"
soap = "chess Resign"
"#;
    let target = target(of_text(text), &[("others", "https://a".to_owned())]);
    let spec = LoadSpec {
        target,
        clients: 2000,
        stop: Stop::Requests { requests: 3, max_ns: 1_000_000_000 },
        pipeline: 2,
        ..spec()
    };
    let told = crate::check(&spec);
    for expected in [
        "has no target `others`",
        "target `user` of the journey has no URL",
        "cannot read the file `mine.thrift`",
        "step `findNotes` (line 6): NoteStore.findNotes.arguments",
        "`evernote.thrift` has no method `UserStore.findNotes`",
        "step `MakeAMove` (line 13)",
        "`chess.wsdl` has no operation `Resign`",
        "`pipeline` is 2",
        "`requests` is 3, fewer than the 4 calls of one journey",
    ] {
        assert!(told.iter().any(|mistake| mistake.contains(expected)), "{expected} in {told:#?}");
    }
}

#[test]
fn a_body_may_exceed_the_send_buffer() {
    let letters = "x".repeat(200_000);
    let text = format!(
        "name = \"one\"\ntargets = {{ s = \"\" }}\n[[step]]\nurl = \"{{s}}/\"\nmethod = \"POST\"\nbody = \"{letters}\""
    );
    let answer = |request: &MockRequest| (if request.body().len() == 200_000 { 200 } else { 400 }, String::new());
    served(
        1,
        &[],
        None,
        |_| vec![Arc::new(Answers(answer))],
        |bound| {
            let target = target(of_text(&text), &[("s", format!("http://{}", bound[0]))]);
            let measurement = load(target, 2, 20);
            assert_eq!((measurement.requests, measurement.backend.as_str()), (20, "epoll"));
        },
    );
}

#[test]
fn the_server_of_the_first_call_is_fixed() {
    let steps = |first: &str, second: &str, once: bool| {
        let once = if once { "once = true\ntake = { list = \"body.list\" }\n" } else { "" };
        let text = format!(
            "name = \"j\"\ntargets = {{ a = \"http://127.0.0.1:80\" }}\n[[step]]\nurl = \"{first}\"\n{once}\
             [[step]]\nurl = \"{second}\"\n"
        );
        let spec = LoadSpec { target: target(of_text(&text), &[]), ..spec() };
        crate::check(&spec)
    };
    for good in ["{a}/{number}", "{a}", "http://127.0.0.1:81/x{number}", "http://127.0.0.1:81"] {
        assert_eq!(steps(good, "{a}/", false), Vec::<String>::new(), "{good}");
    }
    for wrong in ["{a}{number}/", "http://127.0.0.{number}/"] {
        assert!(steps(wrong, "{a}/", false).concat().contains("the first call must be to a target"), "{wrong}");
    }
    assert_eq!(steps("{a}/", "{list}/items?n={number}", true), Vec::<String>::new());
    assert!(steps("{a}/", "{list}{number}", true).concat().contains("must be the same in each journey"));
}

#[test]
fn responses_name_a_limited_number_of_servers() {
    let text = "name = \"one\"\ntargets = { a = \"http://127.0.0.1:9\" }\n[[step]]\nurl = \"{a}/\"\n";
    let plan = crate::journey::Plan::of(&target(of_text(text), &[]), 1).unwrap().unwrap();
    let mut servers = plan.servers().unwrap();
    let url = |port: u64| study::url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
    assert_eq!((servers.of_url(&url(9)).unwrap(), servers.all.len()), (0, 1));
    let failed = (1_000..3_000).find_map(|port| servers.of_url(&url(port)).err());
    assert!(failed.unwrap().to_string().contains("more than 1024 servers"));
}

#[test]
fn call_without_response_counts_as_left_in_flight() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let text = r#"
name = "five"
targets = { api = "" }
[[step]]
name = "only"
url = "{api}/"
expect = { "body.ok" = true }
"#;
    let measurement = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut head, mut answered) = (Vec::new(), 0);
            let mut byte = [0; 1];
            while let Ok(1) = stream.read(&mut byte) {
                head.push(byte[0]);
                if head.ends_with(b"\r\n\r\n") {
                    head.clear();
                    answered += 1;
                    if answered <= 5 {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"ok\":true}";
                        stream.write_all(answer).unwrap();
                    }
                }
            }
        });
        let stop = Stop::Duration { duration_ns: 400_000_000 };
        let target = target(of_text(text), &[("api", format!("http://{address}"))]);
        let (warmup, timeout_ns) = (Warmup::DurationNs(0), 20_000_000_000);
        let spec = LoadSpec { target, clients: 1, stop, warmup, timeout_ns, ..spec() };
        crate::run(&spec, &mut |_| {}, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"))
    });
    let left = measurement.censored.as_deref().unwrap();
    assert_eq!((measurement.requests, measurement.errors.len()), (5, 0));
    assert_eq!((left.in_flight.count, left.unsent.count, left.connections.count), (1, 0, 1));
    assert_eq!(left.silent_ns, left.in_flight.max.unwrap());
}
