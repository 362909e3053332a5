//! Header fields between adapters: metadata, the greeting of a new connection, and those of one connection alone.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{CONNECTION, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, UPGRADE};
use hyper::{HeaderMap, Method, Request, Response};

use super::Target;
use crate::body::Body;
use crate::call::Side;

/// The field that carries metadata between adapters: base64url without padding.
pub(super) const META: HeaderName = HeaderName::from_static("whip-meta");

/// What [`META`] says in the first request of a connection between adapters, `OPTIONS *`, and in its answer: no metadata is this.
const GREETING: &str = "whip-1";

/// Asks whether what answers is an adapter that takes this one: before a request goes there that could not be taken back.
///
/// # Errors
/// It is none, it does not, or the connection fails.
pub(crate) async fn greet(to: &mut SendRequest<Body>, authority: &str) -> io::Result<()> {
    let request = Request::builder().method(Method::OPTIONS).uri("*").header(HOST, authority).header(META, GREETING);
    let request = request.body(Body::default()).map_err(io::Error::other)?;
    let answer = to.send_request(request).await.map_err(io::Error::other)?;
    let is_adapter = answer.headers().get(META).is_some_and(|meta| meta == GREETING);
    drop(answer);
    to.ready().await.map_err(io::Error::other)?;
    if is_adapter {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("what answers at `{authority}` is no adapter")))
}

/// The answer to a greeting; `None`: the request is none.
pub(super) fn greeted(target: &Target, request: &Request<Incoming>) -> Option<Response<Body>> {
    let Target::Fixed { side: Side::Server { peers: true }, .. } = target else { return None };
    let is_greeting = request.method() == Method::OPTIONS && request.headers().get(META)? == GREETING;
    is_greeting.then(|| {
        let mut response = Response::new(Body::default());
        response.headers_mut().insert(META, HeaderValue::from_static(GREETING));
        response
    })
}

/// Fields that are of one connection alone. Source: RFC 9110, section 7.6.1.
pub(super) fn drop_hop_fields(headers: &mut HeaderMap, keep_upgrade: bool) {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse::<HeaderName>().ok());
    let named = named.collect::<Vec<_>>();
    for name in named.iter().filter(|name| !keep_upgrade || **name != UPGRADE) {
        headers.remove(name);
    }
    if !keep_upgrade {
        headers.remove(CONNECTION);
        headers.remove(UPGRADE);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
    headers.remove(PROXY_AUTHENTICATE);
    headers.remove(PROXY_AUTHORIZATION);
}

/// A block of metadata as it came in a field.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// What the field took beyond the block.
    pub(super) around_bytes: usize,
}

/// Takes the block out of its field; `None`: there is none, or it is none that could be read.
pub(super) fn block_of(headers: &mut HeaderMap) -> Option<Block> {
    let value = headers.remove(&META)?;
    let bytes = URL_SAFE_NO_PAD.decode(value.as_bytes()).ok()?;
    Some(Block { around_bytes: field_bytes(&value) - bytes.len(), bytes })
}

pub(super) fn field_of(block: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_str(&URL_SAFE_NO_PAD.encode(block)).ok()
}

/// Bytes of the field line of a block: name, colon, blank, value, CR LF.
pub(super) fn field_bytes(value: &HeaderValue) -> usize {
    META.as_str().len() + 4 + value.len()
}
