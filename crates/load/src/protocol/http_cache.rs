//! A cache over HTTP/1.1: `GET /key`, `PUT /key/value`, `DELETE /key`. Generated keys and values need no escaping.

use wire::http1::{Memo, RequestMethod, ResponseReader};
use wire::memcached::Event;

use super::cache::{Asked, Codec, Read, Reply, Response, Verb, keep_error};

#[derive(Clone, Debug)]
pub(crate) struct HttpCache {
    rest: Vec<u8>,
    rest_of_put: Vec<u8>,
    memo: Memo,
}

impl HttpCache {
    pub(crate) fn new(host: &str) -> Self {
        Self {
            rest: format!(" HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes(),
            // RFC 9110, section 8.6: a request without a body must state a length of 0 if its method allows a body.
            rest_of_put: format!(" HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n").into_bytes(),
            memo: Memo::default(),
        }
    }
}

impl Codec for HttpCache {
    type Reader = ResponseReader;
    const NAMES_KEY: bool = false;
    const HAS_TTL: bool = false;

    fn reader(&self) -> ResponseReader {
        ResponseReader::default()
    }

    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) {
        [b"GET /", key, &self.rest].iter().for_each(|part| out.extend_from_slice(part));
    }

    fn set(&mut self, key: &[u8], value: &[u8], _: u32, _: u32, out: &mut Vec<u8>) {
        [b"PUT /", key, b"/", value, &self.rest_of_put].iter().for_each(|part| out.extend_from_slice(part));
    }

    fn delete(&mut self, key: &[u8], out: &mut Vec<u8>) {
        [b"DELETE /", key, &self.rest].iter().for_each(|part| out.extend_from_slice(part));
    }

    fn read(&mut self, asked: Asked<'_, ResponseReader>, bytes: &[u8], mut sink: impl FnMut(Event<'_>)) -> Read {
        let Asked { reader, verb, error, .. } = asked;
        let read = reader.read(&mut self.memo, RequestMethod::Get, bytes, |piece| sink(Event::Data(piece)));
        let read = read.map_err(|error| (super::http_fault(&error), error.to_string()))?;
        let Some((used, response)) = read else { return Ok(None) };
        let reply = match (verb, response.status) {
            (Verb::Get, 200) => Reply::Value,
            (Verb::Get | Verb::Delete, 404) => Reply::Nothing,
            (Verb::Set | Verb::Delete, 200..=299) => Reply::Done,
            // The statuses mean: content too large, URI too long (it contains the value), insufficient storage.
            (Verb::Set, 413 | 414 | 507) => Reply::Refused,
            (_, status) => {
                keep_error(error, b"status ");
                wire::decimal::push(error, u64::from(status));
                Reply::Error
            }
        };
        Ok(Some(Response { used, reply, status: response.status, last: !response.keep_alive }))
    }

    fn is_between(&self, reader: &mut ResponseReader) -> bool {
        matches!(reader.end(), Ok(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{cache_http, http1};

    #[test]
    fn server_parser_accepts_requests() {
        let mut codec = HttpCache::new("h:1");
        let mut out = Vec::new();
        codec.get(b"a-_Z", &mut out);
        codec.set(b"a-_Z", b"", 0, 0, &mut out);
        codec.set(b"k", b"v_-9", 0, 0, &mut out);
        codec.delete(b"k", &mut out);
        let mut seen = Vec::new();
        let mut rest = out.as_slice();
        while let Some((request, used)) = http1::parse_request(rest, &http1::Limits::DEFAULT).unwrap() {
            seen.push(match cache_http::parse(&request, &cache_http::Limits::DEFAULT).unwrap() {
                cache_http::Operation::Get { key, .. } => format!("get {:?}", key),
                cache_http::Operation::Put { key, value } => {
                    format!("put {:?} {:?}", key, value)
                }
                cache_http::Operation::Delete(key) => format!("delete {:?}", key),
                other => format!("{other:?}"),
            });
            rest = &rest[used..];
        }
        let text = |bytes: &[u8]| format!("{bytes:?}");
        assert_eq!(
            seen,
            [
                format!("get {}", text(b"a-_Z")),
                format!("put {} []", text(b"a-_Z")),
                format!("put {} {}", text(b"k"), text(b"v_-9")),
                format!("delete {}", text(b"k")),
            ]
        );
    }
}
