//! What servers of HTTP promise that no conversation of one client expresses: subjects/REQUIREMENTS.md, "HTTP".

use std::io::{ErrorKind, Write};
use std::thread;
use std::time::Duration;

use study::verification::Miss;

use super::response::Response;
use super::server::{Client, Server, excerpt, reason};
use super::suite::{Check, Trouble};

/// A path that every server answers in the same way, as far as it does.
pub(super) struct Page {
    path: String,
    status: u16,
    /// `None`: it was not the same twice.
    body: Option<Vec<u8>>,
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::code("slow-reader", "a slow reader neither blocks other clients nor loses data", slow_reader),
        Check::code(
            "two-clients",
            "two clients whose requests arrive in alternate pieces are both answered",
            two_clients,
        ),
    ]
}

pub(super) fn request(method: &str, path: &str, headers: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n{headers}\r\n").into_bytes()
}

impl Page {
    /// Asks for it, on two connections.
    pub(super) fn learn(path: &str, connect: impl Fn() -> Result<Client, String>) -> Result<Page, String> {
        let ask = || {
            let mut client = connect()?;
            client.send(&request("GET", path, ""))?;
            client.response(false).map_err(|why| format!("GET {path}: {why}"))
        };
        let (first, second) = (ask()?, ask()?);
        let body = (first.body == second.body).then_some(first.body);
        Ok(Page { path: path.to_owned(), status: first.status, body })
    }

    /// A request as browsers and load generators send it, in short.
    pub(super) fn request(&self) -> Vec<u8> {
        request("GET", &self.path, "")
    }

    /// Whether a response is like it; `head`: one to HEAD.
    pub(super) fn check(&self, response: &Response, head: bool) -> Result<(), Miss> {
        let path = &self.path;
        if response.status != self.status {
            return Err(miss(
                format!("status, unlike that of GET {path} alone"),
                self.status.to_string(),
                response.status.to_string(),
            ));
        }
        let Some(body) = &self.body else { return Ok(()) };
        if head {
            // A server may leave the length out here, but may not lie: RFC 9110 section 8.6.
            let length = body.len().to_string();
            return match response.header("content-length").into_iter().find(|is| *is != length) {
                Some(is) => {
                    Err(miss(format!("`Content-Length` of HEAD {path}, unlike that of GET"), length, is.to_owned()))
                }
                None => Ok(()),
            };
        }
        differ(&format!("body, unlike that of GET {path} alone"), body, &response.body)
    }
}

pub(super) fn miss(message: String, expected: String, received: String) -> Miss {
    Miss { message, expected: Some(expected), received: Some(received), ..Miss::default() }
}

/// The first difference of bytes, if there is one.
pub(super) fn differ(what: &str, expected: &[u8], received: &[u8]) -> Result<(), Miss> {
    if expected == received {
        return Ok(());
    }
    let same = expected.iter().zip(received).take_while(|(one, other)| one == other).count();
    // What is shown begins a little before the difference.
    let from = same.saturating_sub(20);
    let shown =
        |bytes: &[u8]| format!("{}{}", if from > 0 { "..." } else { "" }, excerpt(&bytes[from.min(bytes.len())..]));
    Err(Miss { differs_at: Some(same as u64), ..miss(what.to_owned(), shown(expected), shown(received)) })
}

impl Client {
    /// Reads a response, to HEAD if `head`; the end instead of one is an error.
    pub(super) fn response(&mut self, head: bool) -> Result<Response, String> {
        let ended = || "no response: the connection was closed".to_owned();
        self.receive(head).map_err(|why| format!("no valid response: {why}"))?.ok_or_else(ended)
    }

    /// Reads the answer that has this page.
    pub(super) fn expect_page(&mut self, page: &Page) -> Result<(), String> {
        let response = self.response(false)?;
        page.check(&response, false).map_err(|miss| miss.to_string())
    }
}

fn slow_reader(server: &mut Server<'_>) -> Result<(), Trouble> {
    /// More than the buffers of both sides of a connection hold of answers, bytes.
    const ENOUGH: usize = 12 << 20;
    let mut slow = server.connect()?;
    // Long answers fill them with few requests. A server without such answers may be done before it is stuck: a weaker case.
    let mut request = request("GET", "/bytes/65536", "");
    slow.send(&request)?;
    let mut model = slow.response(false)?;
    if model.status != 200 {
        request = server.page(&server.path)?.request();
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

fn two_clients(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    for _ in 0..20 {
        let (mut one, mut two) = (server.connect()?, server.connect()?);
        let (first, second) = (page.request(), page.request());
        one.send(&first[..7])?;
        two.send(&second[..17])?;
        thread::sleep(Duration::from_millis(1)); // so that the pieces arrive alone
        two.send(&second[17..])?;
        two.expect_page(&page).map_err(|why| format!("beside a client that has only begun: {why}"))?;
        one.send(&first[7..])?;
        one.expect_page(&page)?;
        two.send(&second)?;
        one.send(&first)?;
        one.expect_page(&page)?;
        two.expect_page(&page)?;
    }
    Ok(())
}
