//! Runs a case that is defined as data: sends its requests in pieces and compares the responses.

use std::time::Duration;

use study::cases::{
    Case, Connection, Cut, Expect, ExpectHttp, Request, Send, Split, Value, Values, bytes_of_hex, cuts,
};
use study::verification::Miss;

use super::client::Client;
use super::expected_page::{differ, miss};
use super::http_response_parser::Response;
use super::server_under_test::Server;
use super::unsuccessful_check_reason::{Trouble, excerpt};

/// Silence required between the pieces of a request. After the last response, the first connection of a case requires
/// [`BEHIND`], and later ones require [`BEHIND_LATER`].
const BETWEEN: Duration = Duration::from_millis(3);
const BETWEEN_BYTES: Duration = Duration::from_millis(1);
const BEHIND: Duration = Duration::from_millis(20);
const BEHIND_LATER: Duration = Duration::from_millis(2);
const AT_ONCE_MAX: usize = 64 << 20;
const LINE_MAX: usize = 64 * 1024;

struct Question<'c> {
    of: &'c Request,
    bytes: Vec<u8>,
    is_head: bool,
    values: Values,
    /// Position such as `request 2 of 3`; empty if there is only one request.
    place: String,
    is_first: bool,
}

pub(super) fn check(server: &mut Server<'_>, case: &Case, seed: u64) -> Result<(), Trouble> {
    let mut behind = BEHIND;
    for repetition in 0..case.repeat {
        let values = case.draw(seed, repetition).with("path", Value::Text(server.path.clone()));
        let questions = case.requests.iter().flat_map(|one| (0..one.times).map(move |index| (one, index)));
        let questions = questions.collect::<Vec<_>>();
        let count = questions.len();
        let question = |number: usize| {
            let (of, index) = questions[number];
            let values = values.clone().with("index", Value::Integer(index.into()));
            let place = if count > 1 { format!("request {} of {count}: ", number + 1) } else { String::new() };
            let (bytes, is_head) = compose(&of.send, &values, server)?;
            Ok(Question { of, bytes, is_head, values, place, is_first: number == 0 })
        };
        // Cutting at every position needs the length of the longest request.
        let mut length = 0;
        for number in (0..count).filter(|_| matches!(case.split, Split::All)) {
            let bytes = question(number)?.bytes.len();
            length = if case.pipelined { length + bytes } else { length.max(bytes) };
        }
        let Some(cuts) = cuts(&case.split, length) else {
            return Err(Trouble::NotChecked(format!("{length} bytes are too many to cut at every position")));
        };
        for cut in cuts {
            server.check_time()?;
            let talk = Talk { server, case, cut: &cut, behind };
            let held = if case.pipelined { talk.at_once(count, &question) } else { talk.in_turn(count, &question) };
            held.map_err(|trouble| placed(trouble, case, repetition, &values, &cut))?;
            behind = BEHIND_LATER;
        }
    }
    Ok(())
}

fn placed(trouble: Trouble, case: &Case, repetition: u32, values: &Values, cut: &Cut) -> Trouble {
    let mut place = String::new();
    if case.repeat > 1 {
        let shown = |(name, _): &(String, _)| match values.get(name) {
            Value::Integer(number) => format!("{name} = {number}"),
            Value::Text(text) => format!("{name} = `{}`", excerpt(text.as_bytes())),
        };
        let drawn = case.random.iter().map(shown).collect::<Vec<_>>().join(", ");
        let drawn = if drawn.is_empty() { drawn } else { format!(" ({drawn})") };
        place += &format!("repetition {}{drawn}: ", repetition + 1);
    }
    if let Some(words) = cut.words() {
        place += &format!("{words}: ");
    }
    trouble.at(&place)
}

struct Talk<'t, 'h> {
    server: &'t Server<'h>,
    case: &'t Case,
    cut: &'t Cut,
    behind: Duration,
}

type Ask<'q, 'c> = &'q dyn Fn(usize) -> Result<Question<'c>, Trouble>;

impl Talk<'_, '_> {
    fn in_turn(&self, count: usize, question: Ask<'_, '_>) -> Result<(), Trouble> {
        let mut client = self.server.dial()?;
        let mut may_be_closed = false;
        for number in 0..count {
            let asked = question(number)?;
            let exchange = |client: &mut Client| {
                let half_close = self.case.half_close && number + 1 == count;
                self.exchange(client, std::slice::from_ref(&asked), half_close)
            };
            let mut done = exchange(&mut client);
            if may_be_closed && done.as_ref().is_err_and(is_end) {
                client = self.server.dial()?;
                done = exchange(&mut client);
            }
            may_be_closed = asked.of.connection == Connection::MayClose;
            match done {
                // A server may reject an incomplete request and close the connection, so that the write fails.
                Err(trouble) if asked.of.connection == Connection::Abandoned && is_end(&trouble) => {}
                done => done.map_err(|trouble| with_request(trouble, &asked))?,
            }
            if asked.of.connection == Connection::Abandoned {
                client = self.server.dial()?;
            } else if asked.of.connection == Connection::Closes
                || client.has_ended_keep_alive() && !self.case.half_close
            {
                client.expect_end().map_err(|why| with_request(why.into(), &asked))?;
                if number + 1 < count {
                    client = self.server.dial()?;
                }
            } else if number + 1 == count {
                self.end(&mut client, may_be_closed).map_err(|trouble| with_request(trouble, &asked))?;
            }
        }
        Ok(())
    }

    fn at_once(&self, count: usize, question: Ask<'_, '_>) -> Result<(), Trouble> {
        let all = (0..count).map(question).collect::<Result<Vec<_>, _>>()?;
        let length: usize = all.iter().map(|one| one.bytes.len()).sum();
        if length > AT_ONCE_MAX {
            return Err(Trouble::NotChecked(format!("{length} bytes are too many to send at once")));
        }
        let mut client = self.server.dial()?;
        self.exchange(&mut client, &all, self.case.half_close)?;
        match all.last().map(|last| last.of.connection) {
            Some(Connection::Closes) => Ok(client.expect_end()?),
            last => self.end(&mut client, last.is_some_and(|last| last != Connection::Stays)),
        }
    }

    /// Sends all requests, then reads. If requests are cut, reads the due responses before the next piece.
    fn exchange(&self, client: &mut Client, all: &[Question<'_>], half_close: bool) -> Result<(), Trouble> {
        let bytes: Vec<u8> = all.iter().flat_map(|one| one.bytes.iter().copied()).collect();
        let first = all.first().map_or(0, |one| one.bytes.len());
        let ends = self.cut.ends(bytes.len());
        // A piece that ends within the first request must not be answered.
        let mut begin = 0;
        for &end in ends.iter().filter(|end| **end < first) {
            client.send(&bytes[begin..end])?;
            let moment = if *self.cut == Cut::Bytes { BETWEEN_BYTES } else { BETWEEN };
            client.expect_silence(moment, "response", "before the request was complete")?;
            begin = end;
        }
        let mut writer = client.second_handle()?;
        let mut answered = 0;
        let request_ends = all.iter().scan(0, |end, one| {
            *end += one.bytes.len();
            Some(*end)
        });
        let request_ends: Vec<usize> = request_ends.collect();
        for end in ends.into_iter().filter(|end| *end >= first) {
            let whole = request_ends.partition_point(|request| *request <= end);
            let half_close = half_close && end == bytes.len();
            // The writer does not wait for responses, so another thread must read them.
            std::thread::scope(|scope| {
                let sent = scope.spawn(|| {
                    writer.send(&bytes[begin..end])?;
                    if half_close { writer.half_close() } else { Ok(()) }
                });
                let read = all[answered..whole]
                    .iter()
                    .try_for_each(|asked| self.answer(client, asked).map_err(|trouble| with_request(trouble, asked)));
                if read.is_err() {
                    let _ = client.stream.shutdown(std::net::Shutdown::Both); // ends the writer as well
                }
                let written = sent.join().expect("the writer does not panic");
                read.and(written.map_err(Trouble::from))
            })?;
            (begin, answered) = (end, whole);
        }
        Ok(())
    }

    /// Checks that no bytes follow the last response, or that the connection ends after a half-close.
    fn end(&self, client: &mut Client, may_close: bool) -> Result<(), Trouble> {
        if self.case.half_close {
            return Ok(client.expect_end()?);
        }
        match client.expect_silence(self.behind, "bytes", "behind the last response") {
            Err(miss) if may_close && miss.received.is_none() => Ok(()),
            silence => Ok(silence?),
        }
    }

    fn answer(&self, client: &mut Client, asked: &Question<'_>) -> Result<(), Trouble> {
        let fill = |template| asked.values.fill(template);
        match &asked.of.expect {
            Expect::Http(expect) => {
                let response = client.response(asked.is_head)?;
                if asked.is_first && self.case.skip_status == Some(response.status) {
                    return Err(Trouble::NotChecked(format!("the first response has the status {}", response.status)));
                }
                Ok(self.compare(expect, asked, &response)?)
            }
            Expect::Text(template) => Ok(client.expect_bytes(fill(template).as_bytes())?),
            Expect::Hex(template) => Ok(client.expect_bytes(&hex(&fill(template))?)?),
            Expect::Line(pattern) => {
                let line = client.line(LINE_MAX)?;
                if pattern.is_match(&line) { Ok(()) } else { Err(miss("line", pattern, excerpt(&line)).into()) }
            }
        }
    }

    fn compare(&self, expect: &ExpectHttp, asked: &Question<'_>, response: &Response) -> Result<(), Miss> {
        let body = &response.body;
        if !expect.status.is_empty() && !expect.status.contains(&response.status) {
            let expected = expect.status.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
            return Err(miss("status", expected, response.status));
        }
        if let Some(path) = &expect.like {
            self.server.page(&asked.values.fill(path)).map_err(Miss::from)?.check(response, asked.is_head)?;
        }
        for (name, template) in &expect.headers {
            let expected = asked.values.fill(template);
            check_header(response, name, &expected, |value| value == expected)?;
        }
        for (name, pattern) in &expect.header_matches {
            check_header(response, name, &pattern.to_string(), |value| pattern.is_match(value.as_bytes()))?;
        }
        for name in &expect.absent {
            if let [value, ..] = response.header(&name.to_ascii_lowercase())[..] {
                let received = Some(value.to_owned());
                return Err(Miss { received, ..Miss::from(format!("unexpected header `{name}`")) });
            }
        }
        if let Some(template) = &expect.body {
            differ("body", asked.values.fill(template).as_bytes(), body)?;
        }
        if let Some(length) = expect.length.filter(|length| *length != body.len() as u64) {
            return Err(miss("bytes of the body", length, body.len()));
        }
        if let Some(pattern) = expect.matches.as_ref().filter(|pattern| !pattern.is_match(body)) {
            return Err(miss("body, by a regular expression", pattern, excerpt(body)));
        }
        if expect.json.is_empty() {
            return Ok(());
        }
        let document: serde_json::Value = serde_json::from_slice(body).map_err(|error| Miss {
            received: Some(excerpt(body)),
            ..Miss::from(format!("the body is not JSON ({error})"))
        })?;
        for (path, value) in &expect.json {
            let (expected, found) = (asked.values.json(value), path.query(&document).all());
            match found[..] {
                [one] if is_same(one, &expected) => {}
                [one] => return Err(miss(format!("`{path}`"), expected, excerpt(one.to_string().as_bytes()))),
                _ => {
                    let message = format!("`{path}` finds {} values instead of one", found.len());
                    return Err(miss(message, expected, excerpt(body)));
                }
            }
        }
        Ok(())
    }
}

fn check_header(response: &Response, name: &str, expected: &str, fits: impl Fn(&str) -> bool) -> Result<(), Miss> {
    let values = response.header(&name.to_ascii_lowercase());
    if values.is_empty() {
        return Err(Miss { expected: Some(expected.to_owned()), ..Miss::from(format!("no header `{name}`")) });
    }
    if values.iter().any(|value| fits(value)) {
        return Ok(());
    }
    Err(miss(format!("header `{name}`"), expected, values.join("`, `")))
}

/// Whether two JSON values are equal. Numbers are compared by value, so 1 equals 1.0.
fn is_same(one: &serde_json::Value, other: &serde_json::Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(left), Some(right)) => one == other || left == right && !(one.is_i64() && other.is_i64()),
        _ => one == other,
    }
}

/// Whether a request failed because the connection has ended.
fn is_end(trouble: &Trouble) -> bool {
    let ends = [
        "cannot send",
        "before the request was complete",
        "no response: the connection was closed",
        "Connection reset",
    ];
    matches!(trouble, Trouble::Failed(miss) if ends.iter().any(|end| miss.message.contains(end)))
}

/// Adds the request to a failure, unless it has one.
fn with_request(trouble: Trouble, asked: &Question<'_>) -> Trouble {
    match trouble {
        Trouble::Failed(miss) if miss.sent.is_none() => {
            let message = format!("{}{}", asked.place, miss.message);
            Trouble::Failed(Miss { message, sent: Some(excerpt(&asked.bytes)), ..miss })
        }
        other => other,
    }
}

fn hex(text: &str) -> Result<Vec<u8>, Trouble> {
    bytes_of_hex(text)
        .ok_or_else(|| Trouble::NotChecked(format!("`{text}` is not a sequence of bytes in hexadecimal digits")))
}

/// Composes the bytes of a request. The second value is whether its method is HEAD.
fn compose(send: &Send, values: &Values, server: &Server<'_>) -> Result<(Vec<u8>, bool), Trouble> {
    Ok(match send {
        Send::Text(template) => {
            let text = values.fill(template);
            let is_head = text.starts_with("HEAD ");
            (text.into_bytes(), is_head)
        }
        Send::Hex(template) => (hex(&values.fill(template))?, false),
        Send::Http { method, path, is_old, headers, body, chunked } => {
            let has = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
            let mut head = format!("{method} {} HTTP/1.{}\r\n", values.fill(path), if *is_old { 0 } else { 1 });
            if !is_old && !has("Host") {
                head += &format!("Host: {}\r\n", server.address);
            }
            for (name, value) in headers {
                head += &format!("{name}: {}\r\n", values.fill(value));
            }
            let body = body.as_ref().map(|body| values.fill(body));
            let body = match body {
                None => String::new(),
                Some(body) if *chunked => {
                    head += "Transfer-Encoding: chunked\r\n";
                    let chunk = if body.is_empty() { body } else { format!("{:x}\r\n{body}\r\n", body.len()) };
                    chunk + "0\r\n\r\n"
                }
                Some(body) => {
                    head += &format!("Content-Length: {}\r\n", body.len());
                    body
                }
            };
            ((head + "\r\n" + &body).into_bytes(), method == "HEAD")
        }
    })
}
