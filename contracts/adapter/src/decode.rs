//! Decompresses bodies for checking, and decodes the REST, SOAP or Thrift messages of a service into the values of its contract.

mod rest;
mod soap;
mod thrift;

pub(crate) use self::thrift::decode as thrift_message;

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use ::codecs::mistake::DecodeError;
use contract::{MessageValue, Value};
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::HeaderMap;
use hyper::header::CONTENT_ENCODING;
use hyper::http::response;

use crate::config::ProtocolKind;
use crate::contract_services::{Op, Schema, Service};

/// The arguments of a request.
pub(crate) struct Request<'m>(Vec<MessageValue<'m>>);

impl Request<'_> {
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        self.0.iter().map(MessageValue::value).collect()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.iter().map(|value| size_of_val(value) + value.memory_bytes()).sum()
    }
}

pub(crate) struct Reply<'m> {
    pub(crate) value: MessageValue<'m>,
    pub(crate) is_error: bool,
    /// Whether the HTTP status is not 2xx. A proxy may have replied, so undecided clauses do not reject the reply.
    pub(crate) may_be_undecided: bool,
}

impl Reply<'_> {
    pub(crate) fn opaque() -> Self {
        Self::unread(Unread::Over)
    }

    /// Creates a reply that does not fit its operation, or that cannot be read.
    pub(crate) fn unread(why: Unread) -> Self {
        Self { value: why.into(), is_error: false, may_be_undecided: false }
    }
}

pub(crate) enum RequestKind<'m> {
    Known(Arc<Op>, Request<'m>),
    Unlisted(String),
    Unreadable,
}

/// A copy of the head of an HTTP request, for clauses. The head itself is forwarded.
pub(crate) struct RequestHead {
    pub(crate) method: hyper::Method,
    /// The path after the endpoint's own path.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
}

impl Service {
    pub(crate) fn thrift_request<'m>(&'m self, message: &::codecs::thrift::Message<'m>) -> RequestKind<'m> {
        let Schema::Thrift { schema, service } = &self.schema else { return RequestKind::Unlisted(String::new()) };
        thrift::request(schema, &schema.services[*service], &self.ops, message)
    }

    pub(crate) fn thrift_reply<'m>(&'m self, op: &Op, message: &::codecs::thrift::Message<'m>) -> Reply<'m> {
        let Schema::Thrift { schema, service } = &self.schema else { return Reply::opaque() };
        thrift::reply(schema, &schema.services[*service], op, message)
    }

    /// Whether a clause may refer to the body of an HTTP request. `None` if the contract does not list the request.
    pub(crate) fn reads_body(&self, method: &str, path: &str) -> Option<bool> {
        match self.family {
            ProtocolKind::Rest => self.route(method, path).map(|(op, _)| op.params.iter().any(|name| name == "body")),
            _ => (method == "POST").then_some(true),
        }
    }

    #[allow(clippy::type_complexity, reason = "the parameters of a path are pairs")]
    fn route<'p>(&self, method: &str, path: &'p str) -> Option<(&Arc<Op>, Vec<(&str, Cow<'p, str>)>)> {
        let of_method = self.routes.iter().filter(|route| route.0 == method);
        of_method.filter_map(|(_, template, op)| Some((op, template.matches(path)?))).next()
    }

    /// Finds the called operation. If `is_strict`, a request whose operation is ambiguous counts as unreadable.
    pub(crate) fn http_request<'m>(
        &'m self,
        head: &'m RequestHead,
        body: &'m Content<'m>,
        is_strict: bool,
    ) -> RequestKind<'m> {
        match (&self.schema, body) {
            (Schema::Thrift { .. }, Ok(body)) => {
                thrift::whole(body).map_or(RequestKind::Unreadable, |message| self.thrift_request(&message))
            }
            (Schema::Soap(wsdl), Ok(body)) => soap::request(wsdl, &self.ops, &head.headers, body, is_strict),
            (Schema::Thrift { .. } | Schema::Soap(_), _) => RequestKind::Unreadable,
            (Schema::Rest, _) => match self.route(head.method.as_str(), &head.path) {
                Some((op, path)) => RequestKind::Known(op.clone(), rest::request(op, &path, head, body)),
                None => RequestKind::Unlisted(format!("{} {}", head.method, head.path)),
            },
        }
    }

    pub(crate) fn http_reply<'m>(&'m self, op: &Op, head: &'m response::Parts, body: &'m Content<'m>) -> Reply<'m> {
        // A reply with an error status may be from a proxy, so its clauses may remain undecided.
        let is_done = head.status.is_success();
        let read = match (&self.schema, body) {
            (Schema::Rest, _) => Ok(rest::reply(head, body)),
            (_, Err(why)) => Err(why.clone()),
            (Schema::Thrift { .. }, Ok(body)) => thrift::whole(body).map(|message| self.thrift_reply(op, &message)),
            (Schema::Soap(wsdl), Ok(body)) => soap::reply(wsdl, op, &head.headers, body),
        };
        let reply = read.unwrap_or_else(|why| Reply::unread(if is_done { why } else { Unread::Over }));
        Reply { may_be_undecided: !is_done, ..reply }
    }
}

impl Unread {
    /// Why a message cannot be read. `expected` is as in `not a Thrift message`.
    fn new(error: &DecodeError, expected: &str) -> Self {
        if error.is_limit { Self::Over } else { Self::Malformed(format!("{expected}: {error}")) }
    }
}

impl From<Unread> for MessageValue<'_> {
    fn from(why: Unread) -> Self {
        match why {
            Unread::Over | Unread::Coding(_) => Value::Opaque.into(),
            Unread::Malformed(what) => MessageValue::malformed(what),
        }
    }
}

fn own_name(op: &Op) -> &str {
    op.name.split_once('.').map_or(&op.name, |parts| parts.1)
}

/// The reason why a body or a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Bytes that may be a message, but exceed a limit of this reader before or after decoding.
    Over,
    /// A body with this unsupported content coding.
    Coding(String),
    /// Bytes that are not a message, with a description such as `not a Thrift message: ...`.
    Malformed(String),
}

pub(crate) type Content<'b> = Result<Cow<'b, [u8]>, Unread>;

/// Decodes `gzip`, and `deflate` with or without a zlib header, up to `limit` bytes. Source: RFC 9110, section 8.4.1.
pub(crate) fn decompressed<'b>(headers: &HeaderMap, body: &'b [u8], limit: usize) -> Content<'b> {
    let mut codings = headers.get_all(CONTENT_ENCODING).into_iter().peekable();
    if body.is_empty() || codings.peek().is_none() {
        return Ok(Cow::Borrowed(body));
    }
    let codings = codings.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    let codings = codings.collect::<Vec<_>>().join(",");
    let codings = codings.split(',').map(str::trim).filter(|coding| !["", "identity"].contains(coding));
    let codings = codings.collect::<Vec<_>>();
    match codings[..] {
        [] => Ok(Cow::Borrowed(body)),
        ["gzip" | "x-gzip"] => decompress("gzip", MultiGzDecoder::new(body), limit),
        ["deflate"] if is_zlib(body) => decompress("deflate", ZlibDecoder::new(body), limit),
        ["deflate"] => decompress("deflate", DeflateDecoder::new(body), limit),
        _ => Err(Unread::Coding(codings.join(", "))),
    }
}

/// Whether a body begins with a zlib header. Source: RFC 1950, section 2.2.
fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [first, second, ..] if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0)
}

fn decompress(coding: &str, from: impl Read, limit: usize) -> Content<'static> {
    let mut out = Vec::new();
    match from.take(limit as u64 + 1).read_to_end(&mut out) {
        Ok(_) if out.len() > limit => Err(Unread::Over),
        Ok(_) => Ok(Cow::Owned(out)),
        Err(error) => Err(Unread::Malformed(format!("invalid {coding}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use hyper::header::HeaderValue;

    use super::*;

    const LIMIT: usize = 1000;

    fn check(coding: &str, body: &[u8], expect: &Content<'_>) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_str(coding).unwrap());
        assert_eq!(decompressed(&headers, body, LIMIT), *expect, "{coding}");
    }

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        out.write_all(body).unwrap();
        out.finish().unwrap()
    }

    fn zlib(body: &[u8]) -> Vec<u8> {
        let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
        out.write_all(body).unwrap();
        out.finish().unwrap()
    }

    fn raw(body: &[u8]) -> Vec<u8> {
        let mut out = DeflateEncoder::new(Vec::new(), Compression::default());
        out.write_all(body).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn decodes_supported_encodings() {
        let plain = |text: &str| Ok(Cow::Owned(text.as_bytes().to_vec()));
        check("gzip", &gzip(b"one"), &plain("one"));
        check("X-GZIP", &gzip(b"one"), &plain("one"));
        check("gzip", &[gzip(b"one"), gzip(b"two")].concat(), &plain("onetwo"));
        check("identity, gzip", &gzip(b"one"), &plain("one"));
        check("deflate", &zlib(b"one"), &plain("one"));
        check("deflate", &raw(b"one"), &plain("one"));
        check("identity", b"one", &plain("one"));
        check("br", b"one", &Err(Unread::Coding("br".to_owned())));
        check("zstd", b"one", &Err(Unread::Coding("zstd".to_owned())));
        check("gzip, br", b"one", &Err(Unread::Coding("gzip, br".to_owned())));
        // A response to HEAD has `Content-Encoding` but no body.
        check("gzip", b"", &plain(""));
        assert_eq!(decompressed(&HeaderMap::new(), b"one", LIMIT), plain("one"));
    }

    #[test]
    fn decodes_at_most_the_limit() {
        check("gzip", &gzip(&[b'x'; LIMIT]), &Ok(Cow::Owned(vec![b'x'; LIMIT])));
        for (coding, bomb) in
            [("gzip", gzip(&[0; LIMIT + 1])), ("deflate", zlib(&[0; 1 << 20])), ("deflate", raw(&[0; 1 << 24]))]
        {
            check(coding, &bomb, &Err(Unread::Over));
        }
    }

    #[test]
    fn rejects_bytes_of_another_encoding() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let cut = &gzip(b"a text that is cut")[..20];
        for body in [&b"{}"[..], cut] {
            let decoded = decompressed(&headers, body, LIMIT);
            assert!(
                matches!(&decoded, Err(Unread::Malformed(why)) if why.starts_with("invalid gzip: ")),
                "{decoded:?}"
            );
        }
    }
}
