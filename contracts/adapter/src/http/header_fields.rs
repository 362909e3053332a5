//! Header fields of a single hop: upgrades, hop-by-hop fields, and the field with an adapter's metadata or greeting.

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderName, HeaderValue, UPGRADE};
use hyper::{HeaderMap, Method, Request, Response};

use crate::body::Body;
use crate::connection_pool::{GREETING, META};
use crate::hop_and_caller::Hop;

/// Whether a client requests an upgrade to an acceptable protocol. HTTP/2 is refused, because a server may continue
/// with HTTP/1.1 (RFC 9113, section 3.1), which can be checked. Source: RFC 9110, section 7.8.
pub(super) fn asks_upgrade(headers: &HeaderMap) -> bool {
    list(headers, UPGRADE).any(|word| !word.eq_ignore_ascii_case("h2c"))
        && list(headers, CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"))
}

fn list(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

/// Removes hop-by-hop fields. With `keep_upgrade`, keeps `Connection` and `Upgrade`. Source: RFC 9110, section 7.6.1.
pub(super) fn drop_hop_fields(headers: &mut HeaderMap, keep_upgrade: bool) {
    let named = list(headers, CONNECTION).filter_map(|name| name.parse::<HeaderName>().ok()).collect::<Vec<_>>();
    for name in named.iter().filter(|name| !keep_upgrade || **name != UPGRADE) {
        headers.remove(name);
    }
    if !keep_upgrade {
        headers.remove(CONNECTION);
        headers.remove(UPGRADE);
    }
    for name in ["keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"] {
        headers.remove(name);
    }
}

/// Marks an escaped byte. Blocks are sent with the highest bit of each byte inverted, so that text and small counts
/// become `obs-text` (RFC 9110, section 5.5) and UTF-8 never becomes the mark. `ESCAPED` is added to a forbidden byte.
const ESCAPE: u8 = 0x7e;
const ESCAPED: u8 = 0x30;

pub(super) fn greeted(listener: &Hop, request: &Request<Incoming>) -> Option<Response<Body>> {
    let is_greeting = request.method() == Method::OPTIONS && request.headers().get(META)? == GREETING;
    let response = || Response::builder().header(META, GREETING).body(Body::default());
    (listener.accepts_adapters() && is_greeting).then(|| response().expect("a constant is valid"))
}

pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Size of the header field without the block, in bytes.
    pub(super) around_bytes: usize,
}

/// Removes the metadata field and returns its block. `None` if the block is missing or unreadable.
pub(super) fn block_of(headers: &mut HeaderMap) -> Option<Block> {
    let value = headers.remove(&META)?;
    let bytes = unwrapped(value.as_bytes())?;
    Some(Block { around_bytes: field_bytes(&value) - bytes.len(), bytes })
}

pub(super) fn field_of(block: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_bytes(&wrapped(block)).ok()
}

fn wrapped(block: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(block.len() + 4);
    for byte in block.iter().map(|byte| byte ^ 0x80) {
        // Blanks are escaped too, because recipients may trim them at the ends of a value.
        if byte <= b' ' || byte == ESCAPE || byte == 0x7f {
            value.extend([ESCAPE, (byte & 0x3f) + ESCAPED]);
        } else {
            value.push(byte);
        }
    }
    value
}

fn unwrapped(value: &[u8]) -> Option<Vec<u8>> {
    let mut block = Vec::with_capacity(value.len());
    let mut bytes = value.iter();
    while let Some(&byte) = bytes.next() {
        let byte = match byte {
            ESCAPE => {
                let low = bytes.next()?.checked_sub(ESCAPED).filter(|low| *low < 0x40)?;
                if low <= b' ' { low } else { low | 0x40 }
            }
            byte => byte,
        };
        block.push(byte ^ 0x80);
    }
    Some(block)
}

pub(super) fn field_bytes(value: &HeaderValue) -> usize {
    META.as_str().len() + 4 + value.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_byte_survives_a_field() {
        let all = (0..=255).collect::<Vec<u8>>();
        let field = field_of(&all).unwrap();
        assert_eq!(unwrapped(field.as_bytes()), Some(all));
        assert!(field.as_bytes().iter().all(|byte| *byte > b' ' && *byte != 0x7f), "nothing is cut off or refused");
    }

    #[test]
    fn texts_and_small_counts_take_one_byte() {
        let block = b"\x11\x01a\x02\x0e127.0.0.1:8000\x1f~ \x7f";
        assert_eq!(wrapped(block).len(), block.len());
    }

    #[test]
    fn rejects_invalid_escapes() {
        for value in [&b"abc~"[..], b"~!", b"~\xff"] {
            assert_eq!(unwrapped(value), None, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn blocks_round_trip(block in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(unwrapped(&wrapped(&block)), Some(block));
        }
    }
}
