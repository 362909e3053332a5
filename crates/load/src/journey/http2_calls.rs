//! Calls of a journey over HTTP/2. A client has a connection per server, with one stream at a time.

use net::Nanos;
use wire::http1::RequestMethod;
use wire::http2::hpack::{self, Indexing};

use crate::protocol::{Open, Replies};

/// Maximum length of a request and of the body of a response, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = study::load_limits_and_defaults::BODY_MAX_BYTES as usize;

/// The parts of a response that a journey keeps.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    pub(super) method: RequestMethod,
    /// Fields of the head as in HTTP/1.1: one per line.
    pub(super) head: &'a mut Vec<u8>,
    /// The body; `None` if the journey does not need it.
    pub(super) body: Option<&'a mut Vec<u8>>,
}

impl Replies for Reply<'_> {
    type Request = ();

    fn method(&self, (): &()) -> RequestMethod {
        self.method
    }

    fn reads_head(&self, _: bool) -> bool {
        true
    }

    fn field(&mut self, (): &mut (), name: &[u8], value: &[u8], is_trailer: bool) {
        if !is_trailer {
            [name, b": ", value, b"\r\n"].into_iter().for_each(|part| self.head.extend_from_slice(part));
        }
    }

    fn interim(&mut self, (): &mut ()) {
        self.head.clear();
    }

    fn data(&mut self, _: &mut Open<()>, piece: &[u8], _: Nanos) -> bool {
        if let Some(body) = &mut self.body
            && body.len() <= MESSAGE_BYTES_MAX
        {
            body.extend_from_slice(piece);
        }
        false
    }
}

/// Appends the fields of a composed HTTP/1.1 request to a block and returns its body. No field enters the server's
/// table, so that a request can be sent again on any connection.
pub(super) fn push_fields<'r>(block: &mut Vec<u8>, scheme: &str, request: &'r [u8]) -> &'r [u8] {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(request.len());
    let head = std::str::from_utf8(&request[..end]).unwrap_or_default();
    let (line, rest) = head.split_once("\r\n").unwrap_or((head, ""));
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let fields = || rest.split("\r\n").filter_map(|line| line.split_once(':'));
    let host = fields().find(|(name, _)| name.eq_ignore_ascii_case("host")).map_or("", |(_, value)| value.trim());
    let mut push = |name: &str, value: &str| {
        hpack::push_field(block, name.as_bytes(), value.as_bytes(), Indexing::Skip);
    };
    [(":method", method), (":scheme", scheme), (":authority", host), (":path", target)]
        .into_iter()
        .for_each(|(name, value)| push(name, value));
    for (name, value) in fields().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        push(&name.to_ascii_lowercase(), value.trim());
    }
    request.get(end + 4..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use wire::http2::hpack::Decoder;
    use wire::http2::{Limits, RequestHead};

    use super::*;

    #[test]
    fn a_request_becomes_fields() {
        let headers = [("X-Id", " a: b "), ("Host", "h:81"), ("Cookie", "sid=1; cart=2")];
        let mut request = Vec::new();
        wire::http1::compose_request(&mut request, "POST", "/a?b=c", &headers, b"{}\r\n\r\n", false).unwrap();
        let mut block = Vec::new();
        assert_eq!(push_fields(&mut block, "https", &request), b"{}\r\n\r\n");
        let (mut head, mut fields) = (RequestHead::default(), Vec::new());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let read = head.read(&mut Decoder::default(), &block, &Limits::DEFAULT, |name, value| {
            fields.push(format!("{}={}", text(name), text(value)));
        });
        read.unwrap().unwrap();
        assert_eq!((head.method(), head.path(), head.content_length), ("POST", "/a?b=c", Some(6)));
        assert_eq!(fields, ["x-id=a: b", "cookie=sid=1; cart=2", "content-length=6"]);
    }
}
