//! Header fields of a single hop: requests for upgrades, and removal of hop-by-hop fields.

use hyper::HeaderMap;
use hyper::header::{CONNECTION, HeaderName, UPGRADE};

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
