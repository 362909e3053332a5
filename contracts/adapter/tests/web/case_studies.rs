//! Tests the case studies over HTTP and TLS: good calls cause no report, and bad calls blame the right party.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use codecs::soap::{Envelope, Limits as XmlLimits, Response, Wsdl, compose_envelope, wsdl};
use codecs::thrift::{
    Framing, Header, Limits, Message as Thrift, MessageKind, Outcome, Protocol, Schema, compose_message, idl,
};
use codecs::value::Value;

use super::raw_http_peers::{self, Authority, Made, Message, Reader, request, response};
use super::world::{Adapter, file, free_port, get};

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn record<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::record(fields)
}

type Next<T> = Arc<Mutex<VecDeque<T>>>;

fn next<T>(queue: &Next<T>) -> T {
    queue.lock().unwrap().pop_front().expect("a reply for each call")
}

struct Pair {
    client: Adapter,
    server: Adapter,
}

fn study(name: &str) -> String {
    file(&format!("contract/contracts/{name}.contract")).display().to_string()
}

/// Starts a pair of adapters. `services` has names, endpoints, and whether the client's configuration includes them.
fn pair(contract: &str, protocols: &str, services: &[(&str, &str, bool)], tls: &str) -> Pair {
    let ports = services.iter().map(|_| free_port()).collect::<Vec<_>>();
    let head = |name: &str| {
        format!("name = '{name}'\ncontract = '{contract}'\nadmin = '127.0.0.1:0'\nallow = ['127.0.0.1:*']\n")
    };
    let mut providing = String::new();
    let mut consuming = String::new();
    for ((service, endpoint, is_told), port) in services.iter().zip(&ports) {
        let table = format!("service = '{service}'\nendpoint = '{endpoint}'\n");
        providing += &format!("[[providing]]\n{table}adapters = '127.0.0.1:{port}'\n");
        if *is_told {
            consuming += &format!("[[consuming]]\n{table}labels = ['server']\npeer = '127.0.0.1:{port}'\n");
        }
    }
    let server = Adapter::from_text(&format!("{}{providing}{protocols}{tls}", head("server")));
    let client = Adapter::from_text(&format!("{}{consuming}{protocols}{tls}", head("client")));
    Pair { client, server }
}

impl Pair {
    fn is_silent(&self, calls: u64) {
        assert_eq!((self.client.told(), self.server.told()), (String::new(), String::new()));
        for adapter in [&self.client, &self.server] {
            let metrics = adapter.running.as_ref().unwrap().metrics();
            assert!(metrics.contains(&format!("quintain_adapter_calls_total {calls}\n")), "{metrics}");
            assert!(metrics.contains("verdicts_total{verdict=\"unknown\"} 0\n"), "{metrics}");
            assert!(metrics.contains("verdicts_total{verdict=\"error\"} 0\n"), "{metrics}");
            assert!(metrics.contains("metadata_refused_total 0\n"), "{metrics}");
        }
    }
}

fn trust(made: &Made) -> String {
    format!("[tls.upstream]\nca = '{}'\n", made.ca().display())
}

#[test]
fn twitter_by_rest() {
    let made = Authority::new().make("twitter.test");
    let replies: Next<&'static str> = Arc::default();
    let queue = replies.clone();
    let port = raw_http_peers::serve(Some(&made), move |request| {
        assert!(request.field("whip").is_none(), "metadata is between adapters alone");
        (response(200, "application/json", next(&queue)), false)
    });
    let endpoint = format!("https://127.0.0.1:{port}");
    let pair = pair(
        &study("twitter"),
        "[protocols.TwitterTweets]\nkind = 'rest'\n",
        &[("TwitterTweets", &endpoint, true)],
        &trust(&made),
    );
    let mut connection = raw_http_peers::connect(&pair.client.at(&format!("consuming {endpoint}")));
    let mut ask = |target: &str, reply: &'static str| {
        replies.lock().unwrap().push_back(reply);
        let request = request("GET", target, &[("Authorization", "OAuth oauth_consumer_key=\"c\"")], b"");
        let got = raw_http_peers::exchange(&mut connection, &request.to_bytes(1), false).unwrap();
        assert_eq!((got.status(), got.text().as_str()), (200, reply));
    };
    const TIMELINE: &str = "/1.1/statuses/user_timeline.json?user_id=";
    ask("/1.1/friends/list.json?user_id=0", r#"{"users":[{"id_str":"1100"}]}"#);
    ask(&format!("{TIMELINE}1100"), r#"[{"created_at":"Thu Jan 18 00:10:45 +0000 2007","id_str":"2100"}]"#);
    ask("/1.1/statuses/retweet/__id__.json?tweet_id=2100", "[]");
    pair.is_silent(3);
    // The client invented the second user and the friend of the first user, so it vouches for both.
    ask(&format!("{TIMELINE}1100"), r#"[{"created_at":"yesterday","id_str":"2101"}]"#);
    ask(&format!("{TIMELINE}77"), r#"[{"created_at":"today","id_str":"2102"}]"#);
    let told = pair.client.told();
    for index in ["u1100", "u77"] {
        let says = format!("service TwitterTweets with index {index} at {endpoint} vouched for by client\n");
        assert!(told.contains(&says), "{told}");
    }
    assert!(told.contains("rfc822_date(t.created_at)"), "{told}");
    assert!(told.contains("authorization") && !told.contains("oauth_consumer_key"), "{told}");
    assert_eq!(pair.server.told(), "");
    ask("/1.1/friends/list.json", r#"{"users":[]}"#);
    let told = pair.server.told();
    assert!(told.contains("Failed precondition") && told.contains("Blaming: client (precondition failure)"), "{told}");
}

struct Soap {
    wsdl: Wsdl,
    replies: Next<Value>,
    connection: Reader,
}

impl Soap {
    fn ask(&mut self, operation: &str, arguments: Value, result: Value) {
        let got = self.exchange(operation, &arguments, &result);
        let of = self.wsdl.operation(operation).unwrap();
        let envelope = Envelope::parse(&got.body, &XmlLimits::DEFAULT).unwrap();
        let Ok(Response::Returned { result: Some(found), .. }) = envelope.response(&self.wsdl, of) else {
            panic!("{}", got.text())
        };
        assert_eq!(got.status(), 200);
        if !matches!(result, Value::List(_)) {
            assert_eq!(found.to_value(), result);
        }
    }

    fn exchange(&mut self, operation: &str, arguments: &Value, result: &Value) -> Message {
        self.replies.lock().unwrap().push_back(result.clone());
        let of = self.wsdl.operation(operation).unwrap();
        let out = compose_envelope(&self.wsdl, &of.input, arguments).unwrap();
        let fields = [("Content-Type", "text/xml; charset=utf-8"), ("SOAPAction", operation)];
        let request = request("POST", "/", &fields, out.as_bytes());
        raw_http_peers::exchange(&mut self.connection, &request.to_bytes(1), false).unwrap()
    }

    fn make(&mut self, id: i64) {
        let users = record([("whiteUser", text("anna")), ("blackUser", text("ben"))]);
        self.ask("MakeGame", users, Value::Integer(id));
    }

    fn games(&mut self, id: i64, moves: &str, is_offered: bool) {
        let game =
            record([("id", Value::Integer(id)), ("moves", text(moves)), ("drawOffered", Value::Bool(is_offered))]);
        self.ask(
            "GetMyGames",
            record([("username", text("anna")), ("password", text("geheim"))]),
            Value::List(vec![game]),
        );
    }

    fn moves(&mut self, id: i64, count: i64, accept: bool, result: &str) {
        let fields = [
            ("username", text("anna")),
            ("password", text("geheim")),
            ("gameId", Value::Integer(id)),
            ("resign", Value::Bool(false)),
            ("acceptDraw", Value::Bool(accept)),
            ("movecount", Value::Integer(count)),
            ("myMove", text("e4")),
            ("offerDraw", Value::Bool(false)),
            ("claimDraw", Value::Bool(false)),
            ("myMessage", text("")),
        ];
        self.ask("MakeAMove", record(fields), text(result));
    }
}

fn chess() -> Wsdl {
    let text = std::fs::read_to_string(file("codecs/schemas/chess.wsdl")).unwrap();
    wsdl::parse("chess.wsdl", &text, &mut |_| Err("there is none".to_owned())).unwrap()
}

fn correspondence(contract: &str, more: &str) -> (Pair, Soap) {
    let replies: Next<Value> = Arc::default();
    let (queue, wsdl) = (replies.clone(), chess());
    let port = raw_http_peers::serve(None, move |request| {
        let envelope = Envelope::parse(&request.body, &XmlLimits::DEFAULT).unwrap();
        let operation = envelope.request(&wsdl, request.field("soapaction")).unwrap().operation;
        let output = operation.output.as_ref().unwrap();
        let field = wsdl.complex(output.content).fields[0].name.clone();
        let out = compose_envelope(&wsdl, output, &Value::record([(field.as_str(), next(&queue))])).unwrap();
        (response(200, "text/xml; charset=utf-8", out), false)
    });
    let endpoint = format!("http://127.0.0.1:{port}/");
    let protocols =
        format!("[protocols.Chess]\nkind = 'soap'\nwsdl = '{}'\n", file("codecs/schemas/chess.wsdl").display());
    let pair = pair(contract, &protocols, &[("Chess", &endpoint, true)], more);
    let connection = raw_http_peers::connect(&pair.client.at(&format!("consuming {endpoint}")));
    (pair, Soap { wsdl: chess(), replies, connection })
}

#[test]
fn chess_by_soap() {
    let (pair, mut chess) = correspondence(&study("chess"), "");
    chess.make(17);
    chess.games(17, "*", false);
    chess.moves(17, 1, false, "Success");
    chess.games(17, "1. e4 *", false);
    chess.moves(17, 2, false, "Success");
    chess.games(17, "1. e4 d5 *", false);
    for result in ["NotYourTurn", "InvalidMove", "InvalidMoveNumber"] {
        chess.moves(17, 2, false, result);
    }
    chess.games(17, "1. e4 d5 *", true);
    chess.moves(17, 2, true, "Success");
    pair.is_silent(11);
    let told = |adapter: &Adapter, says: &[&str]| {
        let told = adapter.told();
        let last = told.trim_end().rsplit("\n\n").next().unwrap().to_owned() + "\n";
        for part in says {
            assert!(last.contains(part), "{part}: {last}");
        }
        assert!(!told.contains("geheim"), "{told}");
    };
    // Only the client claims that a draw was offered and that game 18 exists.
    chess.moves(17, 1, true, "NoDrawWasOffered");
    told(&pair.client, &["result != \"NoDrawWasOffered\"", "index (17, True, 1)", "vouched for by client\n"]);
    chess.moves(18, 1, false, "InvalidGameID");
    told(&pair.client, &["result != \"InvalidGameID\"", "index (18, False, 1)", "vouched for by client\n"]);
    chess.moves(17, 2, true, "NoDrawWasOffered");
    told(&pair.client, &["index (17, True, 2)", "vouched for by server\n"]);
    chess.games(17, "1. e9 *", false);
    told(&pair.client, &["pgn_valid(g.moves)", "vouched for by server\n"]);
    assert_eq!(pair.server.told(), "");
}

#[test]
fn rejected_soap_calls_return_faults() {
    const TEXT: &str = r#"contract 1
service Chess {
    MakeGame(whiteUser: text, blackUser: text) -> int { requires apart: whiteUser != blackUser  ensures some: result > 0 }
}
"#;
    let folder = tempfile::tempdir().unwrap();
    let (pair, mut chess) =
        correspondence(&raw_http_peers::contract_file(folder.path(), TEXT), "[checks]\nenforce = true\n");
    chess.make(17);
    let mut refused = |white: &str, id: i64, asked: bool, who: &str, clause: &str| {
        let users = record([("whiteUser", text(white)), ("blackUser", text("ben"))]);
        let got = chess.exchange("MakeGame", &users, &Value::Integer(id));
        // Faults have the status 500 (SOAP 1.1, section 6.2).
        assert_eq!((got.status(), got.field("content-type")), (500, Some("text/xml; charset=utf-8")));
        let fault = got.text();
        assert!(fault.contains(&format!("<faultcode>soap:{who}</faultcode>")) && fault.contains(clause), "{fault}");
        assert_eq!(std::mem::take(&mut *chess.replies.lock().unwrap()).is_empty(), asked, "{clause}");
    };
    refused("ben", 18, false, "Client", "Chess.MakeGame.apart");
    refused("anna", 0, true, "Server", "Chess.MakeGame.some");
    chess.make(19);
    assert!(pair.server.told().contains("Blaming: client (precondition failure)"), "{}", pair.server.told());
    let told = pair.client.told();
    assert!(told.contains("Failed postcondition") && told.contains("vouched for by server"), "{told}");
}

struct Evernote {
    schema: Schema,
    replies: Next<Value>,
    connection: Reader,
}

fn evernote() -> Schema {
    let text = std::fs::read_to_string(file("codecs/schemas/evernote.thrift")).unwrap();
    idl::parse("evernote.thrift", &text, &mut |_| unreachable!()).unwrap()
}

fn answer(schema: &Schema, service: &str, queue: &Next<Value>, request: &Message) -> raw_http_peers::Answer {
    let message = Thrift::decode(Protocol::Binary, &request.body, &Limits::DEFAULT).unwrap();
    let method = schema.service(service).unwrap().method(message.header.method()).unwrap();
    let header = Header { kind: MessageKind::Reply, ..message.header };
    let out =
        compose_message(Protocol::Binary, Framing::Unframed, &header, schema, method.result, &next(queue)).unwrap();
    (response(200, "application/x-thrift", out), false)
}

impl Evernote {
    fn ask(&mut self, target: &str, service: &str, method: &str, arguments: Value, reply: Value) -> String {
        self.replies.lock().unwrap().push_back(reply);
        let method = self.schema.service(service).unwrap().method(method).unwrap();
        let header = Header { name: &method.name, kind: MessageKind::Call, sequence: 3, is_strict: true };
        let framing = Framing::Unframed;
        let out =
            compose_message(Protocol::Binary, framing, &header, &self.schema, method.arguments, &arguments).unwrap();
        let request = request("POST", target, &[("Content-Type", "application/x-thrift")], &out);
        let got = raw_http_peers::exchange(&mut self.connection, &request.to_bytes(1), false).unwrap();
        assert_eq!(got.status(), 200, "{}", got.text());
        let message = Thrift::decode(Protocol::Binary, &got.body, &Limits::DEFAULT).unwrap();
        match message.outcome(&self.schema, method) {
            Outcome::Returned(value) => format!("{:?}", value.map(|view| view.to_value())),
            Outcome::Threw(name, view) => format!("{name} {:?}", view.to_value()),
            other => panic!("{other:?}"),
        }
    }
}

fn success(value: Value) -> Value {
    record([("success", value)])
}

fn notes(count: usize, total: i64) -> Value {
    let note = record([("guid", text("guid20")), ("title", text("test"))]);
    success(record([
        ("startIndex", Value::Integer(0)),
        ("totalNotes", Value::Integer(total)),
        ("notes", Value::List(vec![note; count])),
    ]))
}

#[test]
fn evernote_by_thrift_in_https() {
    let made = Authority::new().make("evernote.test");
    let replies: Next<Value> = Arc::default();
    let serve = |service: &'static str| {
        let (queue, schema) = (replies.clone(), evernote());
        raw_http_peers::serve(Some(&made), move |request| answer(&schema, service, &queue, request))
    };
    let users = format!("https://127.0.0.1:{}//edam/user", serve("UserStore"));
    let notes_at = format!("https://127.0.0.1:{}/", serve("NoteStore"));
    let idl = file("codecs/schemas/evernote.thrift").display().to_string();
    let protocol = |service: &str| format!("[protocols.{service}]\nkind = 'thrift-http'\nidl = '{idl}'\n");
    let protocols = protocol("UserStore") + &protocol("NoteStore");
    let services = [("UserStore", users.as_str(), true), ("NoteStore", notes_at.as_str(), false)];
    let listen = format!("[tls.listen]\n{}", made.identity());
    let pair = pair(&study("evernote"), &protocols, &services, &(trust(&made) + &listen));
    let connection = raw_http_peers::connect_tls(&pair.client.at(&format!("consuming {users}")), &made, None);
    let mut evernote = Evernote { schema: evernote(), replies: replies.clone(), connection };
    let token = |token: &str| record([("authenticationToken", text(token))]);
    let url = success(text(&notes_at));
    let got = evernote.ask("//edam/user", "UserStore", "getNoteStoreUrl", token("T0"), url.clone());
    assert!(got.contains(&notes_at), "{got}");
    let resolved = get(&pair.client.at("admin"), &format!("/resolve?endpoint={notes_at}"));
    let resolved = serde_json::from_str::<serde_json::Value>(&resolved).unwrap();
    assert_eq!((&resolved["intercepted"], &resolved["service"]), (&true.into(), &"NoteStore".into()));
    let address = resolved["address"].as_str().unwrap();
    assert_eq!(resolved["url"], format!("https://{address}/"));
    let connection = raw_http_peers::connect_tls(address, &made, None);
    let mut note_store = Evernote { connection, ..evernote };
    let linked = record([("guid", text("guid00")), ("shareKey", text("asd")), ("noteStoreUrl", text(&notes_at))]);
    note_store.ask("/", "NoteStore", "listLinkedNotebooks", token("T0"), success(Value::List(vec![linked])));
    let both = record([("shareKey", text("asd")), ("authenticationToken", text("T0"))]);
    let authenticated = record([
        ("currentTime", Value::Integer(1)),
        ("authenticationToken", text("temp10")),
        ("expiration", Value::Integer(2)),
    ]);
    note_store.ask("/", "NoteStore", "authenticateToSharedNotebook", both, success(authenticated));
    let shared = success(record([("notebookGuid", text("guid10"))]));
    note_store.ask("/", "NoteStore", "getSharedNotebookByAuth", token("temp10"), shared);
    let find = |offset: i64, most: i64| {
        record([
            ("authenticationToken", text("temp10")),
            ("filter", record([("notebookGuid", text("guid10"))])),
            ("offset", Value::Integer(offset)),
            ("maxNotes", Value::Integer(most)),
        ])
    };
    note_store.ask("/", "NoteStore", "findNotes", find(0, 10), notes(1, 1));
    let thrown = record([("userException", record([("errorCode", Value::Integer(8)), ("parameter", text("token"))]))]);
    let got = note_store.ask("/", "NoteStore", "findNotes", find(0, 10), thrown);
    assert!(got.starts_with("userException"), "{got}");
    pair.is_silent(6);
    note_store.ask("/", "NoteStore", "findNotes", find(0, 1), notes(2, 2));
    let told = pair.client.told();
    assert!(told.contains("Failed postcondition len(result.notes) <= maxNotes"), "{told}");
    assert!(told.contains(&format!("service NoteStore with default index at {notes_at}")), "{told}");
    assert!(!told.contains("temp10"), "tokens are secret: {told}");
    note_store.ask("/", "NoteStore", "findNotes", find(-1, 1), notes(0, 0));
    let told = pair.server.told();
    assert!(told.contains("Failed precondition") && told.contains("Blaming: client (precondition failure)"), "{told}");
    // The user store introduced the token's store, which introduced the store of the share key. The configuration
    // vouches for all members of the user store, as no message introduces them.
    let entries = pair.client.running.as_ref().unwrap().entries();
    let learned =
        entries.iter().filter(|entry| entry.endpoint == notes_at && entry.index.is_some()).collect::<Vec<_>>();
    assert_eq!(learned.len(), 2, "{entries:?}");
    for entry in learned {
        assert_eq!((entry.labels.as_slice(), entry.service.as_str()), (&["server".to_owned()][..], "NoteStore"));
        assert!(entry.index.as_ref().is_some_and(|index| index.starts_with("[redacted")), "{entry:?}");
    }
}
