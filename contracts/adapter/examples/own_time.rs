//! Measures the adapter's own time per call in the three case studies. Two adapters and the services run in one
//! process, over plain HTTP. Usage: `cargo run --release -p adapter --example own_time -- [TRIALS]`.
//! Own time is the `own_ns` column of the call log: the time from receiving to forwarding the request, plus the same
//! for the reply, without reading and writing HTTP itself. Quantiles exclude the first tenth of the calls.
#![allow(clippy::print_stdout, reason = "it prints its measurements")]
#![allow(clippy::disallowed_methods, reason = "a program of its own, which reads its arguments")]
#![allow(missing_docs, unreachable_pub, reason = "a program")]

#[path = "../tests/web/raw_http_peers.rs"]
mod raw_http_peers;

use std::io::sink;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use adapter::Running;
use codecs::soap::{compose_envelope, wsdl};
use codecs::thrift::{Framing, Header, MessageKind, Protocol, compose_message, idl};
use codecs::value::Value;
use raw_http_peers::{Message, request, response};

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

type Exchange = (usize, Message, Vec<u8>);

fn twitter(trial: usize) -> Vec<Exchange> {
    let signed = [("Authorization", "OAuth oauth_consumer_key=\"c\"")];
    let get = |target: String, body: String| {
        (0, request("GET", &target, &signed, b""), response(200, "application/json", body))
    };
    let (user, tweet) = (format!("11{trial:010}"), format!("21{trial:010}"));
    vec![
        get(format!("/1.1/friends/list.json?user_id={trial}"), format!(r#"{{"users":[{{"id_str":"{user}"}}]}}"#)),
        get(
            format!("/1.1/statuses/user_timeline.json?user_id={user}"),
            format!(r#"[{{"created_at":"Thu Jan 18 00:10:45 +0000 2007","id_str":"{tweet}"}}]"#),
        ),
        get(format!("/1.1/statuses/retweet/__id__.json?tweet_id={tweet}"), "[]".to_owned()),
    ]
}

fn chess(trial: usize) -> Vec<Exchange> {
    let source = std::fs::read_to_string(file("codecs/schemas/chess.wsdl")).expect("it is in the repository");
    let wsdl = wsdl::parse("chess.wsdl", &source, &mut |_| Err("there is none".to_owned())).expect("it is right");
    let call = |operation: &str, arguments: Value, result: Value| {
        let of = wsdl.operation(operation).expect("the WSDL has it");
        let sent = compose_envelope(&wsdl, &of.input, &arguments).expect("it fits");
        let output = of.output.as_ref().expect("it replies");
        let field = wsdl.complex(output.content).fields[0].name.clone();
        let replied = compose_envelope(&wsdl, output, &Value::record([(field.as_str(), result)])).expect("it fits");
        let fields = [("Content-Type", "text/xml; charset=utf-8"), ("SOAPAction", operation)];
        (0, request("POST", "/", &fields, sent.as_bytes()), response(200, "text/xml; charset=utf-8", replied))
    };
    let id = trial as i64 + 1;
    let games = |moves: &str| {
        let game = [("id", Value::Integer(id)), ("moves", moves.into()), ("drawOffered", Value::Bool(false))];
        call(
            "GetMyGames",
            Value::record([("username", "user-abcdefgh".into()), ("password", "password".into())]),
            Value::List(vec![Value::record(game)]),
        )
    };
    let moves = |count: i64, san: &str| {
        let fields = [
            ("username", "user-abcdefgh".into()),
            ("password", "password".into()),
            ("gameId", Value::Integer(id)),
            ("resign", Value::Bool(false)),
            ("acceptDraw", Value::Bool(false)),
            ("movecount", Value::Integer(count)),
            ("myMove", san.into()),
            ("offerDraw", Value::Bool(false)),
            ("claimDraw", Value::Bool(false)),
            ("myMessage", "".into()),
        ];
        call("MakeAMove", Value::record(fields), "Success".into())
    };
    vec![
        call("MakeGame", Value::record([("whiteUser", "a".into()), ("blackUser", "b".into())]), Value::Integer(id)),
        games("*"),
        moves(1, "e4"),
        games("1. e4 *"),
        moves(2, "d5"),
        games("1. e4 d5 *"),
        games("1. e4 d5 *"),
    ]
}

fn evernote(trial: usize, notes_at: &str) -> Vec<Exchange> {
    let source = std::fs::read_to_string(file("codecs/schemas/evernote.thrift")).expect("it is in the repository");
    let schema = idl::parse("evernote.thrift", &source, &mut |_| Err("there is none".to_owned())).expect("it is right");
    let call = |number: usize, target: &str, service: &str, method: &str, arguments: Value, result: Value| {
        let method = schema.service(service).and_then(|service| service.method(method)).expect("the IDL has it");
        let compose = |kind, of, value: &Value| {
            let header = Header { name: &method.name, kind, sequence: 1, is_strict: true };
            compose_message(Protocol::Binary, Framing::Unframed, &header, &schema, of, value).expect("it fits")
        };
        let sent = compose(MessageKind::Call, method.arguments, &arguments);
        let replied = compose(MessageKind::Reply, method.result, &Value::record([("success", result)]));
        let fields = [("Content-Type", "application/x-thrift")];
        (number, request("POST", target, &fields, &sent), response(200, "application/x-thrift", replied))
    };
    let token = format!("{}{trial}", "t".repeat(55));
    let by = |token: &str| Value::record([("authenticationToken", token.into())]);
    let linked =
        Value::record([("guid", "guid00".into()), ("shareKey", "asd".into()), ("noteStoreUrl", notes_at.into())]);
    let authenticated = Value::record([
        ("currentTime", Value::Integer(1)),
        ("authenticationToken", "temp10".into()),
        ("expiration", Value::Integer(2)),
    ]);
    let notebook = Value::record([("notebookGuid", "guid10".into())]);
    let find = Value::record([
        ("authenticationToken", "temp10".into()),
        ("filter", notebook.clone()),
        ("offset", Value::Integer(0)),
        ("maxNotes", Value::Integer(10)),
    ]);
    let note = Value::record([("guid", "guid20".into()), ("title", "test".into())]);
    let found = Value::record([
        ("startIndex", Value::Integer(0)),
        ("totalNotes", Value::Integer(1)),
        ("notes", Value::List(vec![note])),
    ]);
    let both = Value::record([("shareKey", "asd".into()), ("authenticationToken", token.as_str().into())]);
    vec![
        call(0, "//edam/user", "UserStore", "getNoteStoreUrl", by(&token), notes_at.into()),
        call(1, "/", "NoteStore", "listLinkedNotebooks", by(&token), Value::List(vec![linked])),
        call(1, "/", "NoteStore", "authenticateToSharedNotebook", both, authenticated),
        call(1, "/", "NoteStore", "getSharedNotebookByAuth", by("temp10"), notebook),
        call(1, "/", "NoteStore", "findNotes", find, found),
    ]
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("there is a free port").port()
}

fn start(text: &str) -> Running {
    let draft = adapter::config::draft("", text, Path::new("/"));
    let checked = adapter::check(&draft).expect("it is right");
    adapter::start(&draft.config, checked, Box::new(sink())).expect("its ports are free")
}

/// Runs one case study. `services` gives the name of each service and the path of its endpoint.
fn run(
    name: &str,
    protocols: &str,
    services: &[(&str, &str)],
    trials: usize,
    exchanges: impl Fn(usize, &[String]) -> Vec<Exchange>,
) {
    let next = Arc::new(Mutex::new(Vec::new()));
    let folder = tempfile::tempdir().expect("create a temporary directory");
    let mut endpoints = Vec::new();
    let (mut providing, mut consuming) = (String::new(), String::new());
    for (service, path) in services {
        let next = next.clone();
        let port = raw_http_peers::serve(None, move |_| {
            (next.lock().map(|next| Vec::clone(&next)).unwrap_or_default(), false)
        });
        let (endpoint, adapters) = (format!("http://127.0.0.1:{port}{path}"), free_port());
        let table = format!("service = '{service}'\nendpoint = '{endpoint}'\n");
        providing += &format!("[[providing]]\n{table}adapters = '127.0.0.1:{adapters}'\n");
        consuming += &format!("[[consuming]]\n{table}peer = '127.0.0.1:{adapters}'\n");
        endpoints.push(endpoint);
    }
    let contract = file(&format!("contract/contracts/{name}.contract")).display().to_string();
    let calls = |side: &str| folder.path().join(side);
    let head = |side: &str| {
        format!(
            "name = '{side}'\ncontract = '{contract}'\nallow = ['127.0.0.1:*']\ncalls = '{}'\n[store]\npath = '{}'\n{protocols}",
            calls(side).display(),
            folder.path().join(format!("{side}.redb")).display()
        )
    };
    let server = start(&(head("server") + &providing));
    let client = start(&(head("client") + &consuming));
    let mut connections = endpoints
        .iter()
        .map(|endpoint| raw_http_peers::connect(&client.addresses[&format!("consuming {endpoint}")].to_string()))
        .collect::<Vec<_>>();
    for trial in 0..trials {
        for (service, request, reply) in exchanges(trial, &endpoints) {
            *next.lock().expect("no thread panics while holding the lock") = reply;
            let got =
                raw_http_peers::exchange(&mut connections[service], &request.to_bytes(1), false).expect("it answers");
            assert_eq!(got.status(), 200);
        }
    }
    let metrics = client.metrics();
    for line in ["verdicts_total{verdict=\"fails\"} 0", "verdicts_total{verdict=\"unknown\"} 0"] {
        assert!(metrics.contains(line), "{metrics}");
    }
    drop(connections);
    drop(client);
    drop(server);
    let own = |side: &str| {
        let text = std::fs::read_to_string(calls(side)).expect("it was written");
        let column = adapter::CALLS_HEADER.split(',').position(|name| name == "own_ns").expect("the column exists");
        let of = |line: &str| line.split(',').nth(column).and_then(|ns| ns.parse::<u64>().ok()).expect("a number");
        // The last line marks the end and is not a call.
        text.lines().skip(1).filter(|line| line.split(',').nth(1) != Some("end")).map(of).collect::<Vec<_>>()
    };
    let (client, server) = (own("client"), own("server"));
    let skip = client.len() / 10;
    let both = client.iter().zip(&server).map(|(client, server)| client + server).skip(skip).collect::<Vec<_>>();
    for (what, mut sample) in [("client", client), ("server", server), ("both", both)] {
        sample.drain(..if what == "both" { 0 } else { skip });
        sample.sort_unstable();
        let at = |share: f64| sample[(share * (sample.len() - 1) as f64) as usize] as f64 / 1e3;
        println!("{name:9} {what:7} {:6} calls  p50 {:6.1} us  p99 {:6.1} us", sample.len(), at(0.5), at(0.99));
    }
}

fn main() {
    let trials = std::env::args().nth(1).and_then(|trials| trials.parse().ok()).unwrap_or(1000);
    let idl = file("codecs/schemas/evernote.thrift").display().to_string();
    let thrift = |service: &str| format!("[protocols.{service}]\nkind = 'thrift-http'\nidl = '{idl}'\n");
    let users_and_notes = [("UserStore", "//edam/user"), ("NoteStore", "/")];
    run("evernote", &(thrift("UserStore") + &thrift("NoteStore")), &users_and_notes, trials, |trial, at| {
        evernote(trial, &at[1])
    });
    let wsdl = file("codecs/schemas/chess.wsdl").display().to_string();
    let soap = format!("[protocols.Chess]\nkind = 'soap'\nwsdl = '{wsdl}'\n");
    run("chess", &soap, &[("Chess", "/")], trials, |trial, _| chess(trial));
    let rest = "[protocols.TwitterTweets]\nkind = 'rest'\n";
    run("twitter", rest, &[("TwitterTweets", "")], trials, |trial, _| twitter(trial));
}
