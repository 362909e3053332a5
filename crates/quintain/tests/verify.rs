//! `quintain verify`: a correct server passes, and a server with one flaw fails the case for that flaw.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::common::{Folder, QUINTAIN};

/// Starts a server of `/sum?a=1&b=2`, `/echo` and `/` with one flaw. It has a blocking thread per connection.
fn server(flaw: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, flaw));
        }
    });
    address
}

fn serve(mut stream: TcpStream, flaw: &str) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let (mut bytes, mut answers, mut answered) = (Vec::new(), Vec::<Vec<u8>>::new(), 0);
    loop {
        let mut room = [0; 16 * 1024];
        let Ok(got @ 1..) = stream.read(&mut room) else { return };
        bytes.extend_from_slice(&room[..got]);
        if flaw == "answers early" && !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
            return;
        }
        while let Some((method, path, close, body, used)) = request(&bytes) {
            bytes.drain(..used);
            answers.push(answer(flaw, &method, &path, &body));
            answered += 1;
            if flaw.starts_with("keep-alive of") && flaw.ends_with(&format!(" {answered}")) {
                let last = answers.pop().unwrap_or_default();
                let last = String::from_utf8_lossy(&last).replacen("\r\n", "\r\nConnection: close\r\n", 1);
                answers.push(last.into_bytes());
                let _ = stream.write_all(&answers.concat());
                // The server lingers, as nginx does, so that a reset does not discard the responses.
                let _ = stream.shutdown(std::net::Shutdown::Write);
                while stream.read(&mut room).is_ok_and(|got| got > 0) {}
                return;
            }
            if flaw == "no keep-alive" || close {
                let _ = stream.write_all(&answers.concat());
                return;
            }
        }
        if flaw == "backwards" {
            answers.reverse();
        }
        if stream.write_all(&answers.concat()).is_err() {
            return;
        }
        answers.clear();
    }
}

/// Parses a complete request into method, path, whether to close, body, and length in bytes. `None` if incomplete.
fn request(bytes: &[u8]) -> Option<(String, String, bool, Vec<u8>, usize)> {
    let end = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<usize>().ok());
    let length = field("content-length:").unwrap_or(0);
    let body = bytes.get(end..end + length)?.to_vec();
    let line = String::from_utf8_lossy(&bytes[..end]).lines().next()?.to_owned();
    let mut words = line.split(' ');
    let close = head.contains("connection: close") || head.contains("http/1.0");
    Some((words.next()?.to_owned(), words.next()?.to_owned(), close, body, end + length))
}

fn answer(flaw: &str, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let number = |name: &str| {
        let at = path.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        at.and_then(|digits| digits.parse::<i64>().ok()).unwrap_or(0)
    };
    let sum = if flaw == "canned" { 42 } else { number("a") + number("b") };
    let (status, kind, text) = match path.split('?').next() {
        Some("/sum") => (200, "application/json", format!("{{\"sum\": {sum}}}")),
        Some("/echo") => (200, "text/plain", String::from_utf8_lossy(body).into_owned()),
        Some("/") => (200, "text/plain", "home".to_owned()),
        Some(path) if path.starts_with("/bytes/") => {
            let length = path["/bytes/".len()..].parse::<usize>().unwrap_or(0);
            (200, "text/plain", "x".repeat(if flaw == "truncates" { length.min(65_536) } else { length }))
        }
        _ => (404, "text/plain", "not there".to_owned()),
    };
    let status = if flaw == "status" && status == 404 { 200 } else { status };
    let kind = if flaw == "type" && path.starts_with("/sum") { "text/html" } else { kind };
    let length = match flaw {
        "length" => format!("Content-Length: {}\r\n", text.len() - 1),
        "no length" => String::new(),
        "chunked" => "Transfer-Encoding: chunked\r\n".to_owned(),
        _ => format!("Content-Length: {}\r\n", text.len()),
    };
    let shown = match flaw {
        "chunked" => format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len() - 1),
        "extra" => format!("{text}\r\n"),
        "head with body" => text,
        _ if method == "HEAD" => String::new(),
        _ => text,
    };
    format!("HTTP/1.1 {status} Whatever\r\nContent-Type: {kind}\r\n{length}\r\n{shown}").into_bytes()
}

const CASES: &str = include_str!("../../../examples/verify.toml");

const CASES_OF_ALL: [&str; 11] =
    ["keep-alive", "slow-reader", "head", "unknown", "partial", "pipelined", "sum", "echo", "order", "missing", "raw"];

/// Verifies a server with a flaw. Returns the exit code, failed cases with their messages, and all output.
fn verify(flaw: &'static str, names: &[&str]) -> (Option<i32>, Vec<(String, String)>, String) {
    let folder = Folder::new();
    folder.write("cases.toml", CASES);
    let url = format!("http://{}/", server(flaw));
    let mut args = vec!["verify", &url, "--cases", "cases.toml", "--json", "--seed", "5"];
    args.extend(names.iter().flat_map(|name| ["--case", name]));
    let ran = folder.quintain(&args);
    let text = format!("{}{}", ran.out, ran.err);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_default();
    let cases = found[0]["cases"].as_array().cloned().unwrap_or_default();
    let failed = cases.iter().filter(|case| case["outcome"] == "failed");
    let word = |case: &serde_json::Value, key: &str| case[key].as_str().unwrap_or_default().to_owned();
    (ran.code, failed.map(|case| (word(case, "name"), word(case, "message"))).collect(), text)
}

#[test]
fn correct_server_passes() {
    let (code, failed, text) = verify("none", &CASES_OF_ALL);
    assert_eq!((code, failed), (Some(0), Vec::new()), "{text}");
}

#[test]
fn server_that_ends_keep_alive_after_100_responses_passes() {
    for flaw in ["keep-alive of 100", "keep-alive of 1000"] {
        let (code, failed, text) = verify(flaw, &["keep-alive"]);
        assert_eq!((code, failed), (Some(0), Vec::new()), "{flaw}: {text}");
    }
    let (_, failed, text) = verify("keep-alive of 99", &["keep-alive"]);
    assert!(failed.iter().any(|(case, _)| case == "keep-alive"), "{text}");
}

#[test]
fn truncated_bytes_break_the_contract_although_each_response_is_the_same() {
    for (flaw, code) in [("none", 0), ("truncates", 1)] {
        let url = format!("http://{}/bytes/100000", server(flaw));
        let ran = Folder::new().quintain(&["verify", &url, "--case", "head"]).expect(code);
        let said = ran.out.contains("bytes in the body of GET /bytes/100000: expected `100000`, received `65536`");
        assert_eq!(said, flaw == "truncates", "{}", ran.out);
    }
}

#[test]
fn list_needs_no_server() {
    let ran = Folder::new().quintain(&["verify", "--protocol", "http", "--list"]).expect(0);
    assert!(ran.out.contains("slow-reader") && ran.out.contains("keep-alive"), "{}", ran.out);
    let ran = Folder::new().quintain(&["verify", "--list"]).expect(2);
    assert!(ran.err.contains("--protocol http"), "{}", ran.err);
}

#[test]
#[ignore = "slow: some cases wait until a timeout"]
fn each_flaw_fails_the_case_made_for_it() {
    let rows = [
        ("canned", "sum", "`$.sum`"),
        ("length", "keep-alive", "no valid response"),
        ("no keep-alive", "keep-alive", "request 2 of 1000"),
        ("backwards", "order", "`$.sum`"),
        ("type", "sum", "header `Content-Type`"),
        ("answers early", "partial", "response before the request was complete"),
        ("no length", "keep-alive", "nothing happened for 5s"),
        ("status", "unknown", "status"),
        ("extra", "missing", "bytes behind the last response"),
        ("chunked", "keep-alive", "a chunk does not end with its last byte"),
        ("head with body", "head", "not a status line"),
    ];
    std::thread::scope(|scope| {
        for (flaw, case, says) in rows {
            scope.spawn(move || {
                let (code, failed, text) = verify(flaw, &[case]);
                assert_eq!(code, Some(1), "{flaw}: {text}");
                let found = failed.iter().any(|(name, message)| name == case && message.contains(says));
                assert!(found, "{flaw}: {failed:?}");
            });
        }
    });
}

/// Verifies a server that quintain runs over HTTP/2. Returns the exit code, and the failed cases with their messages.
fn verify_http2(server: &str, names: &[&str]) -> (Option<i32>, Vec<(String, String)>) {
    let command = format!("{QUINTAIN} serve {server} -p {{port}}");
    let mut args = vec!["verify", "--protocol", "http2", "--command", &command, "--json"];
    args.extend(names.iter().flat_map(|name| ["--case", name]));
    let ran = Folder::new().quintain(&args);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_default();
    let cases = found[0]["cases"].as_array().unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    let word = |case: &serde_json::Value, key: &str| case[key].as_str().unwrap_or_default().to_owned();
    let failed = cases.iter().filter(|case| case["outcome"] != "ok");
    (ran.code, failed.map(|case| (word(case, "name"), word(case, "message"))).collect())
}

#[test]
fn http2_server_passes_all_cases_of_the_protocol() {
    let listed = Folder::new().quintain(&["verify", "--protocol", "http2", "--list"]).expect(0).out;
    let names = listed.lines().filter_map(|line| line.split(' ').next()).take_while(|name| *name != "connections");
    let names = names.filter(|name| *name != "partial").collect::<Vec<_>>(); // It takes longer than all others.
    assert!(names.len() > 20, "{listed}");
    assert_eq!(verify_http2("http", &names), (Some(0), Vec::new()));
}

#[test]
#[ignore = "slow: some cases wait until a timeout"]
fn each_http2_fault_fails_a_case() {
    assert_eq!(verify_http2("http", &[]), (Some(0), Vec::new()));
    let rows = [
        ("silence", "settings", "SETTINGS were not acknowledged: nothing happened for 5s"),
        ("http1", "settings", "the server uses HTTP/1, not HTTP/2"),
        ("no-credit", "body", "no credit after 0 bytes of a body: nothing happened"),
        ("goaway", "streams", "request 21 of 1000: no response: the connection was closed"),
        ("reset", "streams", "no response: RST_STREAM with INTERNAL_ERROR"),
        ("refuse", "streams", "no response: RST_STREAM with REFUSED_STREAM"),
        ("closed-stream", "concurrent", "DATA on a closed stream"),
        ("header-bomb", "streams", "field block: fields of more than 65536 bytes"),
        ("continuation-flood", "streams", "a field block of more than 64 CONTINUATION frames"),
        ("ping-flood", "streams", "more than 10000 frames in a row without a part of a message"),
        ("settings-flood", "streams", "more than 10000 frames in a row without a part of a message"),
        // This server ignores methods, fields and windows.
        ("reset", "head", "a body that is longer or shorter than its `content-length`"),
        ("reset", "windows", "more data than the flow-control window allows"),
        ("reset", "credit", "a window above 2^31 - 1 bytes: no error, expected FLOW_CONTROL_ERROR"),
        ("reset", "field-blocks", "an index of 0: no error, expected COMPRESSION_ERROR"),
        ("reset", "malformed", "a field name with an upper-case letter: no error, expected PROTOCOL_ERROR"),
    ];
    std::thread::scope(|scope| {
        for (kind, case, says) in rows {
            scope.spawn(move || {
                let (code, failed) = verify_http2(&format!("hostile --kind http2-{kind} --after 20"), &[case]);
                let is_right = matches!(&failed[..], [(name, message)] if name == case && message.contains(says));
                assert!(code == Some(1) && is_right, "{kind}: {failed:?}");
            });
        }
    });
}

#[test]
fn server_that_does_not_start_has_no_results() {
    let rows = [("echo cannot run here: no moon >&2; exit 69", 4, "no moon"), ("echo broken >&2; exit 1", 3, "broken")];
    let folder = Folder::new();
    for (script, code, why) in rows {
        let command = format!("sh -c '{script}' {{port}}");
        let ran = folder.quintain(&["verify", "--command", &command, "--protocol", "http", "--json"]);
        let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_default();
        assert_eq!((ran.code, &found[0]["holds"]), (Some(code), &serde_json::Value::Null), "{}{}", ran.out, ran.err);
        assert!(found[0]["not_started"].as_str().is_some_and(|text| text.contains(why)), "{}", ran.out);
    }
}

#[test]
fn all_errors_of_a_case_file_are_shown() {
    let folder = Folder::new();
    folder.write(
        "bad.toml",
        "[[case]]\nname = \"a\"\nsplit = \"al\"\nrequest = [{ path = \"/{n}\", expect = { matches = '(' } }]\n",
    );
    let ran = folder.quintain(&["verify", "--command", "x {port}", "--cases", "bad.toml"]).expect(2);
    for said in ["bad.toml:3:9", "did you mean `all`?", "`n` is not drawn", "invalid regular expression", "3 errors"] {
        assert!(ran.err.contains(said), "{said}:\n{}", ran.err);
    }
}

#[test]
fn study_row_names_the_failed_case() {
    let folder = Folder::new();
    let study = r#"
        question = "Is it right?"
        [subject]
        command = "quintain serve hostile --kind {kind} -p {port}"
        verify = true
        [load]
        protocol = "pingpong"
        clients = 1
        stop = "200ms"
        share_cpus = true
        [factors]
        kind = ["wrong-words"]
        [trials]
        stop = { max = 1 }
    "#;
    folder.write("right.toml", study);
    let ran = folder.quintain(&["run", "right.toml"]);
    let text = format!("{}{}", ran.out, ran.err);
    assert!(text.contains("breaks its contract: answers:"), "{text}");
}
