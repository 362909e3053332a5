//! Declared types: a mismatch blames the sender, and `enforce` rejects it. Compressed bodies are decoded for the check.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use super::raw_http_peers::{self, Message, contract_file, request};
use super::world::{self, Adapter, file};

#[derive(Clone, Default)]
struct Says(Arc<Mutex<Said>>);

type Said = (u16, Vec<(String, String)>, Vec<u8>);

impl Says {
    fn serve() -> (Self, u16) {
        let says = Self::default();
        let told = says.clone();
        let port = raw_http_peers::serve(None, move |_| {
            let (status, fields, body) = told.0.lock().unwrap().clone();
            let mut head = format!("HTTP/1.1 {status} X\r\n");
            for (name, value) in fields {
                head += &format!("{name}: {value}\r\n");
            }
            let length = if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
            ([format!("{head}{length}\r\n").as_bytes(), &body].concat(), false)
        });
        (says, port)
    }

    fn next(&self, status: u16, fields: &[(&str, &str)], body: &[u8]) {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        *self.0.lock().unwrap() = (status, fields, body.to_vec());
    }
}

struct Rest {
    says: Says,
    adapter: Adapter,
    at: String,
    _folder: tempfile::TempDir,
}

const USERS: &str = r#"contract 1

service Users {
    GET "/users"() -> {users: list<{id: int}>};
    GET "/loose"() -> {users: list<{id: int}>} { untyped }
    POST "/users"(body: {name: text, age?: int}) { ensures fine: result.code == 200 }
    POST "/loose"(body: {name: text, age?: int}) { untyped  ensures fine: result.code == 200 }
}
"#;

fn rest(more: &str) -> Rest {
    let (says, port) = Says::serve();
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), USERS);
    let endpoint = format!("http://127.0.0.1:{port}");
    let adapter = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\n[[consuming]]\nservice = 'Users'\nendpoint = '{endpoint}'\nlabels = ['server']\n\
         [protocols.Users]\nkind = 'rest'\n{more}"
    ));
    let at = adapter.at(&format!("consuming {endpoint}"));
    Rest { says, adapter, at, _folder: folder }
}

impl Rest {
    fn get(&self, target: &str, status: u16, fields: &[(&str, &str)], body: &[u8]) -> Message {
        self.says.next(status, fields, body);
        raw_http_peers::ask(&self.at, &request("GET", target, &[], b""))
    }

    fn post(&self, target: &str, fields: &[(&str, &str)], body: &[u8]) -> Message {
        self.says.next(200, &[], b"");
        raw_http_peers::ask(&self.at, &request("POST", target, fields, body))
    }

    fn failed(&self) -> u64 {
        counter(&self.adapter, "verdicts_total{verdict=\"fails\"}")
    }
}

fn counter(adapter: &Adapter, name: &str) -> u64 {
    let metrics = adapter.running.as_ref().unwrap().metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("quintain_adapter_{name} ")));
    line.unwrap_or_else(|| panic!("{name}: {metrics}")).parse().unwrap()
}

const WRONG: [(&[u8], &str); 7] = [
    (b"<html>Welcome</html>", "`result.body` is not valid JSON: "),
    (b"[]", "`result.body` is a list, must be a record"),
    (br#"{"users": [{"id": NaN}]}"#, "`result.body` is not valid JSON: "),
    (br#"{"users": [], "users": [{"id": 1}]}"#, "duplicate name `users`"),
    (br#"{"users": [{"id": 1}, {"id": "2"}]}"#, "`result.body.users[1].id` is text, must be an int"),
    (br#"{"people": []}"#, "`result.body.users` is missing, must be a list"),
    (b"", "`result.body` is missing, must be a record"),
];

#[test]
fn mistyped_reply_blames_the_server() {
    for (body, says) in WRONG {
        let users = rest("");
        let got = users.get("/users", 200, &[("Content-Type", "application/json")], body);
        assert!(got.status() == 200 && got.body == body, "messages are forwarded unchanged");
        let told = users.adapter.told();
        assert!(told.contains(says) && told.contains("vouched for by server\n"), "{says}: {told}");
        assert_eq!(
            told.matches("Contract Failure: Failed postcondition -> {users: list<{id: int}>}: ").count(),
            1,
            "{told}"
        );
        assert_eq!(users.failed(), 1);
    }
}

#[test]
fn enforce_rejects_mistyped_replies() {
    let users = rest("[checks]\nenforce = true\n");
    for (body, _) in WRONG {
        let got = users.get("/users", 200, &[], body);
        assert_eq!((got.status(), got.field("content-type")), (502, Some("application/problem+json")), "{got:?}");
        assert!(got.text().contains("Users.GET /users.type.reply"), "{got:?}");
        assert_eq!(users.get("/loose", 200, &[], body).status(), 200);
    }
    let good = br#"{"users": [{"id": 1, "more": [null]}], "next": 1.5}"#;
    assert_eq!(users.get("/users", 200, &[], good).status(), 200);
    // Error responses may have any body, and empty bodies have no type.
    for (status, body) in [(404, &b"<html>"[..]), (503, b""), (204, b"")] {
        assert_eq!(users.get("/users", status, &[], body).status(), status);
    }
    assert_eq!(users.failed(), WRONG.len() as u64);
}

#[test]
fn a_request_of_another_type_blames_the_client() {
    for (enforce, status) in [(false, 200), (true, 403)] {
        let users = rest(&format!("[checks]\nenforce = {enforce}\n"));
        let wrong: [(&[u8], &str); 4] = [
            (b"name=anna", "`body` is not valid JSON: "),
            (br#"{"name": 7}"#, "`body.name` is an int, must be text"),
            (br#"{"name": "a", "age": "old"}"#, "`body.age` is text, must be an int"),
            (b"", "`body` is missing"),
        ];
        for (body, _) in wrong {
            assert_eq!(users.post("/users", &[], body).status(), status, "{body:?}");
            assert_eq!(users.post("/loose", &[], body).status(), 200, "{body:?}");
        }
        assert_eq!(users.post("/users", &[], br#"{"name": "anna"}"#).status(), 200);
        assert_eq!(users.failed(), wrong.len() as u64);
        let told = users.adapter.told();
        assert!(told.contains("Blaming: client (precondition failure)"), "{told}");
        assert!(wrong.iter().any(|(_, says)| told.contains(says)), "{told}");
    }
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(body).unwrap();
    out.finish().unwrap()
}

fn deflate(body: &[u8]) -> Vec<u8> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
    out.write_all(body).unwrap();
    out.finish().unwrap()
}

#[test]
fn compressed_bodies_are_checked_and_pass_unchanged() {
    let users = rest("");
    let (good, bad) = (br#"{"users": [{"id": 1}]}"#, br#"{"users": 1}"#);
    for (coding, encode) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("deflate", deflate)] {
        let before = users.failed();
        for (body, fails) in [(&good[..], 0), (bad, 1)] {
            let body = encode(body);
            let got = users.get("/users", 200, &[("Content-Encoding", coding)], &body);
            assert!(got.body == body && got.field("content-encoding") == Some(coding), "{got:?}");
            assert_eq!(users.failed(), before + fails, "{coding}");
        }
        users.post("/users", &[("Content-Encoding", coding)], &encode(br#"{"name": "anna"}"#));
        assert_eq!(users.failed(), before + 1);
        users.post("/users", &[("Content-Encoding", coding)], &encode(br#"{"name": 1}"#));
        assert_eq!(users.failed(), before + 2);
    }
    assert_eq!(counter(&users.adapter, "unchecked_total{reason=\"unreadable\"}"), 0);
    // A body that is not gzip although its header declares gzip breaks its type.
    let users = rest("");
    users.get("/users", 200, &[("Content-Encoding", "gzip")], good);
    assert!(users.adapter.told().contains("`result.body` is invalid gzip: "), "{}", users.adapter.told());
}

#[test]
fn oversized_decoded_bodies_pass_and_are_reported() {
    let users = rest("[limits]\nbody = '64KiB'\n[checks]\nenforce = true\nunchecked = 'pass'\n");
    let bomb = gzip(&vec![b' '; 8 << 20]);
    assert!(bomb.len() < 64 << 10);
    let got = users.get("/users", 200, &[("Content-Encoding", "gzip")], &bomb);
    assert!(got.status() == 200 && got.body == bomb);
    users.post("/users", &[("Content-Encoding", "gzip")], &bomb);
    let told = users.adapter.told();
    assert!(told.contains(&format!("A body of {} bytes exceeds `limits.body`, 65536 bytes", bomb.len())), "{told}");
    assert_eq!((counter(&users.adapter, "decoded_over_total"), users.failed()), (2, 0));
    assert_eq!(counter(&users.adapter, "unchecked_total{reason=\"size\"}"), 2);
}

#[test]
fn brotli_and_zstd_bodies_are_reported_as_unread() {
    let users = rest("[checks]\nenforce = true\nunchecked = 'pass'\n");
    for coding in ["br", "zstd", "br", "gzip, br"] {
        let got = users.get("/users", 200, &[("Content-Encoding", coding)], b"\x0b\x02\x80\x03");
        assert_eq!(got.status(), 200);
    }
    let told = users.adapter.told();
    for coding in ["br", "zstd", "gzip, br"] {
        assert_eq!(
            told.matches(&format!("Bodies are encoded with `{coding}`, which is not supported")).count(),
            1,
            "{told}"
        );
    }
    assert!(told.contains("Contract Unknown: Unknown postcondition -> {users: list<{id: int}>}"), "{told}");
    assert_eq!((users.failed(), counter(&users.adapter, "unchecked_total{reason=\"unreadable\"}")), (0, 4));
}

fn chess(body: &str) -> String {
    format!("<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>{body}</s:Body></s:Envelope>")
}

#[test]
fn mistyped_soap_blames_the_sender() {
    let (says, port) = Says::serve();
    let endpoint = format!("http://127.0.0.1:{port}/");
    // Repeated reports are suppressed, so each case has an adapter of its own.
    let adapter_with = |checks: &str| {
        Adapter::from_text(&format!(
            "name = 'client'\ncontract = '{}'\n[[consuming]]\nservice = 'Chess'\nendpoint = '{endpoint}'\nlabels = ['server']\n\
             [protocols.Chess]\nkind = 'soap'\nwsdl = '{}'\n[checks]\nenforce = true\n{checks}",
            file("contract/contracts/chess.contract").display(),
            file("codecs/schemas/chess.wsdl").display(),
        ))
    };
    let adapter = || adapter_with("");
    let xmlns = "xmlns=\"http://www.bennedik.com/webservices/XfccBasic\"";
    let good = chess(&format!("<MakeGame {xmlns}><whiteUser>a</whiteUser><blackUser>b</blackUser></MakeGame>"));
    let ask = |adapter: &Adapter, status: u16, reply: &str, body: &str| {
        says.next(status, &[("Content-Type", "text/xml")], reply.as_bytes());
        let action = if body.contains("MakeAMove") { "MakeAMove" } else { "MakeGame" };
        let request = request("POST", "/", &[("SOAPAction", action)], body.as_bytes());
        raw_http_peers::ask(&adapter.at(&format!("consuming {endpoint}")), &request)
    };
    let reply = |id: &str| {
        chess(&format!("<MakeGameResponse {xmlns}><MakeGameResult>{id}</MakeGameResult></MakeGameResponse>"))
    };
    assert_eq!(ask(&adapter(), 200, &reply("17"), &good).text(), reply("17"));
    let other = chess(&format!("<MakeAMoveResponse {xmlns}/>"));
    for (wrong, says) in [
        ("<html>Welcome</html>", "not an envelope of its operation: "),
        ("", "not an envelope of its operation: "),
        (other.as_str(), "not an envelope of its operation: "),
        (&reply("seventeen"), "`result` is not an integer of its type"),
    ] {
        let adapter = adapter();
        let got = ask(&adapter, 200, wrong, &good);
        assert_eq!(got.status(), 500, "{wrong}");
        assert!(got.text().contains("<faultcode>soap:Server</faultcode>"), "{}", got.text());
        assert!(got.text().contains("Chess.MakeGame.type.reply"), "{}", got.text());
        assert!(adapter.told().contains(says), "{says}: {}", adapter.told());
    }
    // A body in an unsupported encoding may hide a valid message.
    let unknown = adapter_with("unchecked = 'pass'\n");
    let latin = format!("<?xml version='1.0' encoding='ISO-8859-1'?>{}", reply("\u{ff}"));
    ask(&unknown, 200, &latin, &good);
    let told = unknown.told();
    assert!(told.contains("Unknown postcondition") && !told.contains("Failed"), "{told}");
    // A gateway's own message is not a reply of the service.
    assert_eq!(ask(&adapter(), 503, "<html>Later</html>", &good).text(), "<html>Later</html>");
    let moves = format!("<MakeAMove {xmlns}><username>a</username><gameId>geheim</gameId></MakeAMove>");
    for (wrong, operation, says) in [
        (chess(&moves), "MakeAMove", "`gameId` is not an integer of its type"),
        (good.replace("<blackUser>", "<whiteUser>c</whiteUser><blackUser>"), "MakeGame", "a duplicate element"),
        ("<html>".to_owned(), "MakeGame", "`whiteUser` is not an envelope of its operation: "),
    ] {
        let adapter = adapter();
        let got = ask(&adapter, 200, &reply("17"), &wrong);
        let clause = format!("Chess.{operation}.type.request");
        assert!(got.text().contains("soap:Client") && got.text().contains(&clause), "{}", got.text());
        let told = adapter.told();
        assert!(told.contains(says) && !told.contains("geheim"), "{told}");
    }
}

fn parrot(reply: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            while world::read_frame(&mut stream).is_ok() && stream.write_all(&reply).is_ok() {}
        }
    });
    port
}

fn frame(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn header(kind: u8) -> Vec<u8> {
    [&[0x80, 1, 0, kind][..], b"\x00\x00\x00\x03add\x00\x00\x00\x07"].concat()
}

#[test]
fn mistyped_thrift_blames_the_sender() {
    let text = [&header(2)[..], b"\x0b\x00\x00\x00\x00\x00\x01x\x00"].concat();
    let nothing = [&header(2)[..], b"\x00"].concat();
    let call = [&header(1)[..], b"\x08\x00\x00\x00\x00\x00\x04\x00"].concat();
    let replies: [(Vec<u8>, &str); 5] = [
        (frame(&text), "not a reply to its method"),
        (frame(&nothing), "not a reply to its method"),
        (frame(&call), "a call, not a reply"),
        (frame(&[&header(2)[..], b"\x77\x00\x01"].concat()), "not a Thrift message: "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec(), "not a Thrift message"),
    ];
    for (bytes, says) in &replies {
        for enforce in [false, true] {
            let at = format!("127.0.0.1:{}", parrot(bytes.clone()));
            let more = format!(
                "[checks]\nenforce = {enforce}\n[[consuming]]\nservice = 'Adder'\nendpoint = '{at}'\nlabels = ['adder']"
            );
            let adapter = Adapter::start("client", &world::contract("plain"), &more);
            let mut stream = std::net::TcpStream::connect(adapter.at(&format!("consuming {at}"))).unwrap();
            stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            stream
                .write_all(&frame(
                    &[&header(1)[..], b"\x08\x00\x01\x00\x00\x00\x02\x08\x00\x02\x00\x00\x00\x02\x00"].concat(),
                ))
                .unwrap();
            if enforce {
                let refused = world::read_frame(&mut stream).unwrap();
                assert!(
                    String::from_utf8_lossy(&refused).contains("refused: contract clause `Adder.add.type.reply`"),
                    "{refused:?}"
                );
            } else {
                let mut got = vec![0; bytes.len()];
                stream.read_exact(&mut got).unwrap();
                assert!(got == *bytes, "messages are forwarded unchanged");
            }
            let told = adapter.told();
            assert!(told.contains(says) && told.contains("vouched for by adder\n"), "{says}: {told}");
            assert!(told.contains("Contract Failure: Failed postcondition -> int: `result` is "), "{told}");
        }
    }
    let at = format!("127.0.0.1:{}", parrot(frame(&nothing)));
    let more =
        format!("[checks]\nenforce = true\n[[consuming]]\nservice = 'Adder'\nendpoint = '{at}'\nlabels = ['adder']");
    let adapter = Adapter::start("client", &world::contract("plain"), &more);
    let mut stream = std::net::TcpStream::connect(adapter.at(&format!("consuming {at}"))).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    stream.write_all(&frame(&[&header(1)[..], b"\x0b\x00\x01\x00\x00\x00\x01x\x00"].concat())).unwrap();
    let refused = world::read_frame(&mut stream).unwrap();
    assert!(
        String::from_utf8_lossy(&refused).contains("refused: contract clause `Adder.add.type.request`"),
        "{refused:?}"
    );
    let told = adapter.told();
    assert!(told.contains("`a` is of a different type on the wire than in the IDL"), "{told}");
    assert!(told.contains("Blaming: client (precondition failure)"), "{told}");
}

#[test]
fn nearest_adapter_blames_for_non_thrift_replies() {
    let world = world::full("plain", 0);
    let at = format!("127.0.0.1:{}", parrot(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec()));
    let adapters_at = format!("127.0.0.1:{}", world::free_port());
    let server = Adapter::start(
        "server",
        &world::contract("plain"),
        &format!("[[providing]]\nservice = 'Adder'\nendpoint = '{at}'\nadapters = '{adapters_at}'"),
    );
    let client = Adapter::start(
        "client",
        &world::contract("plain"),
        &format!("[[consuming]]\nservice = 'Adder'\nendpoint = '{at}'\npeer = '{adapters_at}'\nlabels = ['server']"),
    );
    let mut stream = std::net::TcpStream::connect(client.at(&format!("consuming {at}"))).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    stream
        .write_all(&frame(&[&header(1)[..], b"\x08\x00\x01\x00\x00\x00\x02\x08\x00\x02\x00\x00\x00\x02\x00"].concat()))
        .unwrap();
    let mut got = [0; 8];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"HTTP/1.1");
    let told = server.told();
    assert!(told.contains("`result` is not a Thrift message") && told.contains("vouched for by"), "{told}");
    assert!(!client.told().contains("Failure"), "{}", client.told());
    drop(world);
}
