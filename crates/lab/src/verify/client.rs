//! A client of a server under verification: one connection, with a time limit for every step.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use study::cases::Cut;
use study::verification::Miss;

use super::expected_page::Page;
use super::http2_session::Session;
use super::unsuccessful_check_reason::excerpt;

/// Time limit of every connect, read and write of a client.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit of a whole case, however slowly the server responds.
pub(super) const CASE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) enum Speech {
    None,
    Pingpong,
    Http(Arc<Page>),
    Http2(Arc<Page>),
    Cache,
}

impl Speech {
    pub(super) fn begun(&self) -> &'static [u8] {
        match self {
            Speech::None => b"",
            Speech::Pingpong => &[1, 2],
            Speech::Http(_) => b"GET / HTTP/1.1\r\nHo",
            // A part of the head of a HEADERS frame.
            Speech::Http2(_) => &[0, 0, 16, 1],
            Speech::Cache => b"get nothi",
        }
    }
}

pub(super) struct Client {
    pub(super) stream: TcpStream,
    /// Bytes that arrived ahead of the next request. Unused by ping-pong, which reads whole words.
    pub(super) received: Vec<u8>,
    pub(super) speech: Speech,
    pub(super) until: Instant,
    pub(super) responses: u32,
    pub(super) is_closing: bool,
    /// State of HTTP/2; unused by other protocols.
    pub(super) session: Session,
}

/// Minimum number of responses before `Connection: close` is allowed. Apache's default is 100, nginx's 1,000.
const KEEP_ALIVE_RESPONSES_MIN: u32 = 100;

/// Reads from the socket; fails after the deadline of the case.
impl Read for Client {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if crate::lab_clocks::now() >= self.until { Err(io::Error::other(late())) } else { self.stream.read(bytes) }
    }
}

impl Client {
    pub(super) fn new(stream: TcpStream, until: Instant) -> Client {
        let (received, speech, session) = (Vec::new(), Speech::None, Session::default());
        Client { stream, received, speech, until, responses: 0, is_closing: false, session }
    }

    pub(super) fn second_handle(&self) -> Result<Client, String> {
        let stream = self.stream.try_clone().map_err(|error| format!("cannot clone a socket: {error}"))?;
        Ok(Client::new(stream, self.until))
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).map_err(|error| format!("cannot send: {}", reason(&error)))
    }

    /// Sends bytes in pieces that arrive separately.
    pub(super) fn send_cut(&mut self, bytes: &[u8], cut: &Cut) -> Result<(), String> {
        for (index, piece) in cut.pieces(bytes).enumerate() {
            if index > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.send(piece)?;
        }
        Ok(())
    }

    /// Builds a request that every server of this protocol can answer, distinguished by `number` (from 1) if possible.
    pub(super) fn question(&mut self, number: u32) -> Vec<u8> {
        match self.speech.clone() {
            Speech::None => Vec::new(),
            Speech::Pingpong => number.to_be_bytes().to_vec(),
            Speech::Http(page) => page.request(),
            Speech::Http2(page) => {
                let (stream, request) = self.get_request(&page.path);
                self.session.asked.push_back(stream);
                request
            }
            // This key is never found. memcached and Redis both understand the line.
            Speech::Cache => format!("get nothing-{number}\r\n").into_bytes(),
        }
    }

    pub(super) fn ask(&mut self, number: u32) -> Result<(), String> {
        let question = self.question(number);
        self.send(&question)?;
        self.expect_answer(number)
    }

    /// Whether the server has ended keep-alive as RFC 9112, section 9.6 allows, so that no more responses follow.
    pub(super) fn has_ended_keep_alive(&self) -> bool {
        self.is_closing && self.responses >= KEEP_ALIVE_RESPONSES_MIN
    }

    pub(super) fn expect_answer(&mut self, number: u32) -> Result<(), String> {
        match self.speech.clone() {
            Speech::None => Ok(()),
            Speech::Pingpong => expect_words(self, [number]),
            Speech::Http(page) => self.expect_page(&page),
            Speech::Http2(page) => {
                let stream = self.session.asked.pop_front().unwrap_or_default();
                let response = self.stream_response(stream)?;
                page.check(&response, false).map_err(|miss| miss.to_string())
            }
            Speech::Cache => {
                let answer = self.receive_exactly(5).map_err(|why| format!("no valid response: {why}"))?;
                match &answer[..] {
                    b"END\r\n" | b"$-1\r\n" => Ok(()),
                    _ => Err(format!("the response for an absent key is `{}`", answer.escape_ascii())),
                }
            }
        }
    }

    pub(super) fn half_close(&self) -> Result<(), String> {
        self.stream.shutdown(Shutdown::Write).map_err(|error| format!("cannot shut down: {error}"))
    }

    pub(super) fn expect_end(&mut self) -> Result<(), String> {
        if !self.received.is_empty() {
            return Err(format!("unsolicited bytes: `{}`", excerpt(&self.received)));
        }
        let mut bytes = [0; 64];
        match self.read(&mut bytes) {
            Ok(0) => Ok(()),
            Ok(got) => Err(format!("unsolicited bytes: `{}`", excerpt(&bytes[..got]))),
            Err(error) => Err(format!("the connection was not closed: {}", reason(&error))),
        }
    }

    /// Waits for `moment`. Fails if the connection ends or if data, which is called `unexpected`, arrives at this place.
    pub(super) fn expect_silence(&mut self, moment: Duration, unexpected: &str, place: &str) -> Result<(), Miss> {
        let arrived = |bytes: &[u8]| {
            let received = Some(excerpt(bytes));
            Err(Miss { received, ..Miss::from(format!("{unexpected} {place}")) })
        };
        if !self.received.is_empty() {
            return arrived(&self.received);
        }
        let error = |error| format!("the connection broke {place}: cannot set a timeout: {error}");
        self.stream.set_read_timeout(Some(moment)).map_err(error)?;
        let mut bytes = [0; 64];
        let read = self.read(&mut bytes);
        self.stream.set_read_timeout(Some(PATIENCE)).map_err(error)?;
        match read {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(format!("the connection broke {place}: {error}").into()),
            Ok(0) => Err(format!("the connection was closed {place}").into()),
            Ok(got) => arrived(&bytes[..got]),
        }
    }

    /// Closes the connection with a reset, which discards unread and unsent bytes.
    pub(super) fn reset(self) -> Result<(), String> {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))
            .map_err(|error| format!("cannot set SO_LINGER: {error}"))
    }
}

pub(super) fn expect_words(reader: &mut impl Read, words: impl IntoIterator<Item = u32>) -> Result<(), String> {
    for (index, word) in words.into_iter().enumerate() {
        let mut bytes = [0; 4];
        let of = format_args!("word {} ({word:#x})", index + 1);
        reader.read_exact(&mut bytes).map_err(|error| format!("no response to {of}: {}", reason(&error)))?;
        let (received, right) = (u32::from_be_bytes(bytes), word.wrapping_add(1));
        if received != right {
            return Err(format!("the response to {of} is {received:#x} instead of {right:#x}"));
        }
    }
    Ok(())
}

pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock => format!("nothing happened for {PATIENCE:?}"),
        ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
        _ => error.to_string(),
    }
}

pub(super) fn late() -> String {
    format!("the case is not done after {CASE:?}")
}
