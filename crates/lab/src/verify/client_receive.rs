//! Reads the responses to a client's requests and compares them with expectations.

use std::io::Read;

use study::verification::Miss;

use super::client::{Client, reason};
use super::expected_page::{Page, differ};
use super::http_response_parser::{BODY_MAX, Framing, HEAD_MAX, Response, parse, quoted};
use super::unsuccessful_check_reason::excerpt;

impl Client {
    /// Reads a response; `head` says whether the request was HEAD. `None` if the connection closed before a first byte.
    pub(super) fn receive(&mut self, head: bool) -> Result<Option<Response>, String> {
        loop {
            let Some(bytes) = self.receive_until(b"\r\n\r\n", HEAD_MAX)? else { return Ok(None) };
            let (mut response, framing) = parse(&bytes, head)?;
            if response.status < 200 {
                continue; // an interim response: RFC 9110, section 15.2
            }
            response.body = match framing {
                Framing::Length(length) => self.receive_exactly(length)?,
                Framing::Chunked => self.receive_chunks()?,
                Framing::UntilEnd => {
                    while self.receive_some()? > 0 {
                        if self.received.len() > BODY_MAX {
                            return Err(format!("a body longer than {BODY_MAX} bytes"));
                        }
                    }
                    std::mem::take(&mut self.received)
                }
            };
            self.responses += 1;
            self.is_closing = response.has_connection_close();
            return Ok(Some(response));
        }
    }

    fn receive_some(&mut self) -> Result<usize, String> {
        let mut bytes = [0; 16 * 1024];
        let got = self.read(&mut bytes).map_err(|error| reason(&error))?;
        self.received.extend_from_slice(&bytes[..got]);
        Ok(got)
    }

    /// Returns the bytes before `mark`; `None` if the connection ended without any. Fails after `limit` bytes.
    fn receive_until(&mut self, mark: &[u8], limit: usize) -> Result<Option<Vec<u8>>, String> {
        let mut looked = 0;
        loop {
            if let Some(found) = self.received[looked..].windows(mark.len()).position(|window| window == mark) {
                let mut bytes: Vec<u8> = self.received.drain(..looked + found + mark.len()).collect();
                bytes.truncate(looked + found);
                return Ok(Some(bytes));
            }
            looked = self.received.len().saturating_sub(mark.len() - 1);
            if self.received.len() > limit {
                return Err(format!("{limit} bytes without the end of a head or a line: {}", quoted(&self.received)));
            }
            if self.receive_some()? == 0 {
                return match self.received.is_empty() {
                    true => Ok(None),
                    false => Err(format!("the connection was closed after {}", quoted(&self.received))),
                };
            }
        }
    }

    pub(super) fn receive_exactly(&mut self, length: usize) -> Result<Vec<u8>, String> {
        while self.received.len() < length {
            if self.receive_some()? == 0 {
                return Err(format!("the connection was closed after {} of {length} bytes", self.received.len()));
            }
        }
        Ok(self.received.drain(..length).collect())
    }

    /// Reads as many bytes as `expected` has. Fails at the first difference.
    pub(super) fn expect_bytes(&mut self, expected: &[u8]) -> Result<(), Miss> {
        let mut equal = 0;
        loop {
            let got = self.received.len().min(expected.len());
            if got == expected.len() || self.received[equal..got] != expected[equal..got] {
                let received: Vec<u8> = self.received.drain(..got).collect();
                return differ("bytes", expected, &received);
            }
            equal = got;
            let why = match self.receive_some() {
                Ok(0) => "the connection was closed".to_owned(),
                Ok(_) => continue,
                Err(why) => why,
            };
            let why = if got == 0 { format!("no response: {why}") } else { format!("{why} after {got} bytes") };
            let received = Some(excerpt(&self.received)).filter(|text| !text.is_empty());
            return Err(Miss { expected: Some(excerpt(expected)), received, ..why.into() });
        }
    }

    /// Reads a chunked body (RFC 9112, section 7.1).
    fn receive_chunks(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        loop {
            let line = self.receive_line()?;
            let digits = line.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t']);
            let is_size = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let size = usize::from_str_radix(digits, 16).ok().filter(|size| is_size && *size <= BODY_MAX);
            match size {
                None => return Err(format!("`{}` is not a chunk size", line.escape_default())),
                Some(0) => break,
                Some(size) => body.extend(self.receive_exactly(size)?),
            }
            if body.len() > BODY_MAX {
                return Err(format!("a body longer than {BODY_MAX} bytes"));
            }
            if self.receive_exactly(2)? != b"\r\n" {
                return Err("a chunk does not end with its last byte".to_owned());
            }
        }
        while !self.receive_line()?.is_empty() {} // trailers
        Ok(body)
    }

    pub(super) fn line(&mut self, limit: usize) -> Result<Vec<u8>, String> {
        let mut line = self.receive_until(b"\n", limit)?.ok_or("no response: the connection was closed")?;
        line.pop_if(|last| *last == b'\r');
        Ok(line)
    }

    fn receive_line(&mut self) -> Result<String, String> {
        let line = self.receive_until(b"\r\n", HEAD_MAX)?.ok_or("the connection was closed in a chunked body")?;
        String::from_utf8(line)
            .map_err(|error| format!("a line that is not text: {}", quoted(&[error.as_bytes(), b"\r\n"].concat())))
    }

    pub(super) fn response(&mut self, head: bool) -> Result<Response, String> {
        let ended = || "no response: the connection was closed".to_owned();
        self.receive(head).map_err(|why| format!("no valid response: {why}"))?.ok_or_else(ended)
    }

    pub(super) fn expect_page(&mut self, page: &Page) -> Result<(), String> {
        let response = self.response(false)?;
        page.check(&response, false).map_err(|miss| miss.to_string())
    }
}
