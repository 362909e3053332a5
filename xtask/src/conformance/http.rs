//! What servers of HTTP promise: subjects/REQUIREMENTS.md, "HTTP".

use std::io::{ErrorKind, Write};
use std::thread;
use std::time::Duration;

use super::cases::{self, Case, Miss};
use super::response::Response;
use super::server::{Client, PATIENCE, Server, reason};

/// A resource that every server has.
pub(super) struct Page {
    path: &'static str,
    body: &'static str,
}

pub(super) const TEST: Page = Page { path: "/", body: "test" };
const HELLO: Page = Page { path: "/plaintext", body: "Hello, World!" };

pub(super) const CASES: [Case; 20] = [
    Case {
        name: "answers",
        promise: "/ is answered by `test`, /plaintext by `Hello, World!`, each with 200 and its length",
        ends: false,
        check: answers,
    },
    Case { name: "bytes", promise: "/bytes/N is answered by N bytes, where it is there", ends: false, check: bytes },
    Case {
        name: "keep-alive",
        promise: "1,000 requests on one connection are answered",
        ends: false,
        check: keep_alive,
    },
    Case {
        name: "pipelined",
        promise: "16 requests in one write are all answered, in order, again and again",
        ends: false,
        check: pipelined,
    },
    Case {
        name: "head",
        promise: "HEAD has the head of GET and no body, and the connection goes on",
        ends: false,
        check: head,
    },
    Case {
        name: "unknown",
        promise: "404 to a path that is not there, and the connection goes on",
        ends: false,
        check: unknown,
    },
    Case { name: "body", promise: "the body of a request is never read as the next request", ends: false, check: body },
    Case {
        name: "partial",
        promise: "a request may arrive in two pieces, cut anywhere, or byte by byte",
        ends: false,
        check: partial,
    },
    Case {
        name: "close",
        promise: "after `Connection: close` the answer comes, then the end",
        ends: false,
        check: close,
    },
    Case {
        name: "http-1.0",
        promise: "the same after a request of HTTP/1.0 that does not ask to go on",
        ends: false,
        check: http_1_0,
    },
    Case {
        name: "garbage",
        promise: "what is no HTTP gets 400, or nothing but the end; others do not notice",
        ends: false,
        check: garbage,
    },
    Case {
        name: "slow-reader",
        promise: "a slow reader neither blocks other clients nor loses data",
        ends: false,
        check: slow_reader,
    },
    Case {
        name: "two-clients",
        promise: "two clients whose requests arrive in alternate pieces are both answered",
        ends: false,
        check: two_clients,
    },
    cases::CONNECTIONS,
    cases::RESET,
    cases::CHURN,
    cases::NODELAY,
    cases::SIGTERM,
    cases::SIGTERM_IDLE,
    cases::RESTART,
];

impl Page {
    /// A request as browsers and load generators send it, in short.
    pub(super) fn request(&self) -> Vec<u8> {
        self.request_with("GET", "")
    }

    fn request_with(&self, method: &str, headers: &str) -> Vec<u8> {
        request(method, self.path, headers)
    }
}

fn request(method: &str, path: &str, headers: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n{headers}\r\n").into_bytes()
}

impl Client {
    /// Reads a response, to HEAD if `head`; the end instead of one is an error.
    fn response(&mut self, head: bool) -> Result<Response, String> {
        let ended = || "no answer: the connection was closed".to_owned();
        self.receive(head).map_err(|why| format!("no valid response: {why}"))?.ok_or_else(ended)
    }

    /// Reads the answer that has this page.
    pub(super) fn expect_page(&mut self, page: &Page) -> Result<(), String> {
        let response = self.response(false)?;
        check_page(&response, page)
    }

    /// The server must close the connection, and send nothing more before it does.
    fn expect_close(&mut self) -> Result<(), String> {
        match self.receive(false) {
            Ok(None) => Ok(()),
            Ok(Some(response)) => Err(format!("an answer to nothing, with status {}", response.status)),
            Err(why) => Err(format!("the connection was not closed: {why}")),
        }
    }
}

fn check_page(response: &Response, page: &Page) -> Result<(), String> {
    let path = page.path;
    if response.status != 200 {
        return Err(format!("the status of {path} is {} instead of 200", response.status));
    }
    if response.body != page.body.as_bytes() {
        let is = response.body[..response.body.len().min(60)].escape_ascii();
        return Err(format!("the body of {path} is `{is}` instead of `{}`", page.body));
    }
    match response.header("content-length")[..] {
        [_] => Ok(()), // the right one, or the body would be another
        _ => Err(format!("{path} comes without Content-Length")),
    }
}

fn answers(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    for page in [TEST, HELLO, TEST] {
        client.send(&page.request())?;
        client.expect_page(&page)?;
    }
    Ok(())
}

fn bytes(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    let mut missing = Vec::new();
    let sizes = [1, 0, 1_000, 65_536, 1 << 20];
    for size in sizes {
        client.send(&request("GET", &format!("/bytes/{size}"), ""))?;
        let response = client.response(false).map_err(|why| format!("/bytes/{size}: {why}"))?;
        match response.status {
            200 if response.body.len() == size => {}
            200 => return Err(format!("/bytes/{size} has {} bytes", response.body.len()).into()),
            404 => missing.push(size),
            status => return Err(format!("the status of /bytes/{size} is {status} instead of 200").into()),
        }
    }
    match missing[..] {
        [] => Ok(()),
        [size, ..] if missing.len() < sizes.len() => Err(format!("/bytes/{size} is not there").into()),
        _ => Err(Miss::NotChecked("this server has no /bytes/N".to_owned())),
    }
}

fn keep_alive(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    for index in 0..1000 {
        client.ask(1).map_err(|why| format!("request {} on one connection: {why}", index + 1))?;
    }
    Ok(())
}

fn pipelined(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    // Not the same from behind, so that an answer in the wrong place is seen.
    let pages: Vec<Page> =
        (0..16).map(|index| if 0b0010_0111_0100_1101 >> index & 1 == 0 { TEST } else { HELLO }).collect();
    let requests: Vec<u8> = pages.iter().flat_map(Page::request).collect();
    for round in 0..100 {
        client.send(&requests)?;
        for (index, page) in pages.iter().enumerate() {
            client
                .expect_page(page)
                .map_err(|why| format!("round {}, request {} of 16: {why}", round + 1, index + 1))?;
        }
    }
    Ok(())
}

fn head(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    for page in [TEST, HELLO] {
        client.send(&page.request_with("HEAD", ""))?;
        let response = client.response(true)?;
        let path = page.path;
        if response.status != 200 {
            return Err(format!("the status of HEAD {path} is {} instead of 200", response.status).into());
        }
        // A server may leave the length out here, but may not lie: RFC 9110 section 8.6.
        let length = page.body.len().to_string();
        if response.header("content-length").iter().any(|is| *is != length) {
            return Err(format!("the length in the answer to HEAD {path} is not that of GET, {length}").into());
        }
        client.send(&page.request())?;
        client.expect_page(&page).map_err(|why| format!("after HEAD {path}: {why}"))?;
    }
    Ok(())
}

fn unknown(server: &mut Server) -> Result<(), Miss> {
    let mut client = server.connect()?;
    for _ in 0..2 {
        client.send(&request("GET", "/there/is/no-such-thing", ""))?;
        let status = client.response(false)?.status;
        if status != 404 {
            return Err(format!("the status of a path that is not there is {status} instead of 404").into());
        }
        client.ask(1).map_err(|why| format!("after 404: {why}"))?;
    }
    Ok(())
}

fn body(server: &mut Server) -> Result<(), Miss> {
    // A body that is a request itself: who reads it as one answers once too often.
    let inner = String::from_utf8(HELLO.request()).expect("a request is text");
    let bodies = [
        request("POST", "/", &format!("Content-Length: {}\r\n", inner.len())),
        request("GET", "/", &format!("Content-Length: {}\r\n", inner.len())),
        request("POST", "/", "Transfer-Encoding: chunked\r\n"),
    ];
    for (index, mut bytes) in bodies.into_iter().enumerate() {
        match index {
            2 => bytes.extend(format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len()).bytes()),
            _ => bytes.extend(inner.bytes()),
        }
        let name = ["POST with a length", "GET with a length", "POST in chunks"][index];
        let mut client = server.connect()?;
        client.send(&bytes)?;
        client.response(false).map_err(|why| format!("{name}: {why}"))?;
        // The server may close instead of reading a body that nobody wants; the next write then fails, or the read.
        if client.send(&TEST.request()).is_err() {
            continue;
        }
        match client.receive(false) {
            Ok(Some(response)) => check_page(&response, &TEST).map_err(|why| format!("after {name}: {why}"))?,
            Ok(None) => continue,
            Err(why) if why.contains("reset") => continue,
            Err(why) => return Err(format!("after {name}: {why}").into()),
        }
        client.expect_silence(Duration::from_millis(20)).map_err(|why| format!("after {name}: {why}"))?;
    }
    Ok(())
}

fn partial(server: &mut Server) -> Result<(), Miss> {
    let bytes = TEST.request();
    for cut in 1..bytes.len() {
        let mut client = server.connect()?;
        client.send(&bytes[..cut])?;
        client.expect_silence(Duration::from_millis(3)).map_err(|why| format!("cut after {cut} bytes: {why}"))?;
        client.send(&bytes[cut..])?;
        client.expect_page(&TEST).map_err(|why| format!("cut after {cut} bytes: {why}"))?;
    }
    let mut client = server.connect()?;
    for byte in &bytes[..bytes.len() - 1] {
        client.send(&[*byte])?;
        client.expect_silence(Duration::from_millis(1)).map_err(|why| format!("byte by byte: {why}"))?;
    }
    client.send(&bytes[bytes.len() - 1..])?;
    client.expect_page(&TEST).map_err(|why| format!("byte by byte: {why}"))?;
    // The rest of one together with a piece of the next, at each place.
    for cut in 1..bytes.len() {
        client.send(&[&bytes[..], &bytes[..cut]].concat())?;
        client.expect_page(&TEST).map_err(|why| format!("with {cut} bytes of the next: {why}"))?;
        client.send(&bytes[cut..])?;
        client.expect_page(&TEST).map_err(|why| format!("after {cut} bytes came early: {why}"))?;
    }
    Ok(())
}

fn close(server: &mut Server) -> Result<(), Miss> {
    for (header, before) in [("Connection: close\r\n", 0), ("connection: CLOSE\r\n", 3)] {
        let mut client = server.connect()?;
        for _ in 0..before {
            client.ask(1)?;
        }
        client.send(&TEST.request_with("GET", header))?;
        client.expect_page(&TEST)?;
        client.expect_close()?;
    }
    Ok(())
}

fn http_1_0(server: &mut Server) -> Result<(), Miss> {
    for bytes in [&b"GET / HTTP/1.0\r\n\r\n"[..], b"GET / HTTP/1.0\r\nHost: localhost\r\nUser-Agent: ab\r\n\r\n"] {
        let mut client = server.connect()?;
        client.send(bytes)?;
        client.expect_page(&TEST)?;
        client.expect_close()?;
    }
    Ok(())
}

fn garbage(server: &mut Server) -> Result<(), Miss> {
    let rows: [(&str, &[u8]); 6] = [
        ("the first bytes of TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\x5a\xa5\r\n\r\n"),
        ("zeros", &[0; 300]),
        ("a word", b"GARBAGE\r\n\r\n"),
        ("a length that is no number", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n"),
        ("a negative length", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
        ("two lengths", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    ];
    let mut witness = server.connect()?;
    witness.ask(1)?;
    for (name, bytes) in rows {
        let mut client = server.connect()?;
        client.send(bytes)?;
        // A server that reads whole lines sees no end of one yet, and may wait for it.
        let _ = client.send(b"\r\n\r\n");
        let _ = client.half_close();
        match client.receive(false) {
            Ok(Some(response)) if response.status != 400 => {
                return Err(format!("{name}: the status is {} instead of 400", response.status).into());
            }
            Ok(Some(_)) => match client.receive(false) {
                Ok(None) => {}
                Ok(Some(again)) if again.status == 400 => {} // to what was sent after
                Ok(Some(again)) => return Err(format!("{name}: after 400 came {}", again.status).into()),
                Err(why) if why.contains("reset") => {}
                Err(why) => return Err(format!("{name}: after 400: {why}").into()),
            },
            Ok(None) => {}
            Err(why) if why.contains("reset") => {}
            Err(why) => return Err(format!("{name}: neither 400 nor the end within {PATIENCE:?}: {why}").into()),
        }
        witness.ask(1).map_err(|why| format!("beside {name}: {why}"))?;
    }
    Ok(())
}

fn slow_reader(server: &mut Server) -> Result<(), Miss> {
    /// More than the buffers of both sides of a connection hold of answers, bytes.
    const ENOUGH: usize = 12 << 20;
    let mut slow = server.connect()?;
    // Long answers fill them with few requests. A server without such answers may be done before it is stuck: a weaker case.
    let mut request = request("GET", "/bytes/65536", "");
    slow.send(&request)?;
    let mut model = slow.response(false)?;
    if model.status != 200 {
        request = TEST.request();
        slow.send(&request)?;
        model = slow.response(false)?;
    }
    let count = ENOUGH / (model.head_bytes + model.body.len());
    // The server takes no more when nothing goes for this long.
    let io_error = |error: std::io::Error| format!("cannot send: {}", reason(&error));
    slow.stream.set_write_timeout(Some(Duration::from_millis(150))).map_err(io_error)?;
    let bytes = request.repeat(count);
    let mut sent = 0;
    while sent < bytes.len() {
        match slow.stream.write(&bytes[sent..]) {
            Ok(taken) => sent += taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(io_error(error).into()),
        }
    }
    // Enough others that some of them share a thread with the slow one; and more than once, since it may not be stuck yet.
    let mut others = (0..16).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..4 {
        for (index, other) in others.iter_mut().enumerate() {
            other.ask(1).map_err(|why| format!("beside a client that does not read, client {}: {why}", index + 1))?;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let whole = sent / request.len();
    for index in 0..whole {
        let place = || format!("request {} of {whole} that were sent at once", index + 1);
        let response = slow.response(false).map_err(|why| format!("{}: {why}", place()))?;
        if (response.status, &response.body) != (model.status, &model.body) {
            return Err(format!("{}: the answer is another than to the first", place()).into());
        }
    }
    Ok(())
}

fn two_clients(server: &mut Server) -> Result<(), Miss> {
    for _ in 0..20 {
        let (mut one, mut two) = (server.connect()?, server.connect()?);
        let (first, second) = (TEST.request(), HELLO.request());
        one.send(&first[..7])?;
        two.send(&second[..30])?;
        thread::sleep(Duration::from_millis(1)); // so that the pieces arrive alone
        two.send(&second[30..])?;
        two.expect_page(&HELLO).map_err(|why| format!("beside a client that has only begun: {why}"))?;
        one.send(&first[7..])?;
        one.expect_page(&TEST)?;
        two.send(&second)?;
        one.send(&first)?;
        one.expect_page(&TEST)?;
        two.expect_page(&HELLO)?;
    }
    Ok(())
}
