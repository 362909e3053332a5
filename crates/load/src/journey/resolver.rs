//! Resolves the address for an endpoint: from its URL, or by asking a resolver such as an adapter.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use codecs::value::Value;
use net::{Address, Nanos};
use study::spec::Protocol;
use study::url::{self, Url};
use wire::http1::RequestMethod;

use super::connection::{Connection, Piece};
use crate::escape::{self, Escape};
use crate::recorder::{Fault, OrFault};

/// Maximum number of cached addresses. At the limit the cache is cleared.
const KNOWN_MAX: usize = 1024;
const ANSWER_BYTES_MAX: usize = 4096;

pub(crate) fn endpoint(text: &str) -> Result<Url, String> {
    let found = url::parse(text).map_err(|error| error.to_string())?;
    match found.protocol {
        Protocol::Http | Protocol::Https => Ok(found),
        _ => Err(format!("`{}` is not an HTTP URL", text.escape_debug())),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Destination {
    pub(crate) address: SocketAddr,
    pub(crate) is_encrypted: bool,
}

#[derive(Debug)]
pub(crate) struct Resolver {
    resolve: Option<Url>,
    names: HashMap<(String, u16), SocketAddr>,
    destinations: HashMap<String, Destination>,
    timeout_ns: Nanos,
}

impl Resolver {
    pub(crate) fn new(resolve: Option<Url>, timeout_ns: Nanos) -> Resolver {
        Resolver { resolve, names: HashMap::new(), destinations: HashMap::new(), timeout_ns }
    }

    pub(crate) fn destination(&mut self, url: &str, endpoint: &Url) -> OrFault<Destination> {
        let bare = url.split(['?', '#']).next().unwrap_or(url);
        if let Some(place) = self.destinations.get(bare) {
            return Ok(*place);
        }
        let place = self.resolve.clone().map(|resolver| self.query(&resolver, bare, endpoint)).transpose()?.flatten();
        let is_told = place.is_some();
        let place = match place {
            Some(place) => place,
            None => {
                let address = self.name(&endpoint.host, endpoint.port)?;
                Destination { address, is_encrypted: endpoint.protocol == Protocol::Https }
            }
        };
        // A resolver that does not know an endpoint may learn of it from the next reply.
        if is_told || self.resolve.is_none() {
            if self.destinations.len() == KNOWN_MAX {
                self.destinations.clear();
            }
            self.destinations.insert(bare.to_owned(), place);
        }
        Ok(place)
    }

    pub(crate) fn forget(&mut self) {
        self.destinations.clear();
        self.names.clear();
    }

    fn name(&mut self, host: &str, port: u16) -> OrFault<SocketAddr> {
        let key = (host.to_owned(), port);
        if let Some(address) = self.names.get(&key) {
            return Ok(*address);
        }
        let text = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let found =
            Address::resolve(&text).map_err(|error| (Fault::Os, format!("cannot resolve `{text}`: {error}")))?;
        let found = found.iter().find_map(Address::inet);
        let address = found.ok_or_else(|| (Fault::Os, format!("`{text}` has no address")))?;
        if self.names.len() == KNOWN_MAX {
            self.names.clear();
        }
        self.names.insert(key, address);
        Ok(address)
    }

    fn query(&mut self, resolver: &Url, url: &str, endpoint: &Url) -> OrFault<Option<Destination>> {
        let about =
            |(fault, why): (Fault, String)| (fault, format!("resolving `{url}` with {}: {why}", resolver.host_field()));
        let address = self.name(&resolver.host, resolver.port).map_err(about)?;
        let patience = Duration::from_nanos(self.timeout_ns);
        let mut connection = Connection::open(address, None, patience).map_err(about)?;
        let mut target = "/resolve?endpoint=".to_owned();
        escape::push(&mut target, url, Escape::Percent);
        let mut request = Vec::new();
        let headers = [("Host", resolver.host_field())];
        wire::http1::compose_request(&mut request, "GET", &target, &headers, b"", true)
            .map_err(|why| about((Fault::Os, why)))?;
        connection.send(&request).map_err(about)?;
        let until_ns = net::thread::monotonic_ns() + self.timeout_ns;
        let mut body = Vec::new();
        let response = loop {
            match connection.receive(RequestMethod::Get, &mut body, ANSWER_BYTES_MAX).map_err(about)? {
                Piece::Done(response) => break response,
                Piece::More if net::thread::monotonic_ns() >= until_ns => {
                    return Err(about((Fault::Timeout, "timed out".to_owned())));
                }
                Piece::More => {}
            }
        };
        read_answer(response.status, &body, endpoint).map_err(|why| about((Fault::WrongAnswer, why)))
    }
}

/// Parses `{"address": "ip:port"}`, with `"tls"` if it differs from the URL. 404, `"intercepted": false`: unknown.
fn read_answer(status: u16, body: &[u8], endpoint: &Url) -> Result<Option<Destination>, String> {
    if status == 404 {
        return Ok(None);
    }
    if status != 200 {
        return Err(format!("status {status}, expected 200 or 404"));
    }
    let answer = codecs::json::parse(body).map_err(|error| format!("not valid JSON: {error}"))?;
    if answer.get("intercepted") == Some(&Value::Bool(false)) {
        return Ok(None);
    }
    let address = if let Some(Value::Text(address)) = answer.get("address") { address.parse().ok() } else { None };
    let address = address.ok_or("no `address` of the form `ip:port`")?;
    let is_encrypted = match answer.get("tls") {
        None => endpoint.protocol == Protocol::Https,
        Some(Value::Bool(tls)) => *tls,
        Some(_) => return Err("`tls` is neither true nor false".to_owned()),
    };
    Ok(Some(Destination { address, is_encrypted }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls_into_endpoints() {
        let found = endpoint("https://127.0.0.1:9443//edam/user?x=1").unwrap();
        assert_eq!((found.protocol, found.port, found.target.as_str()), (Protocol::Https, 9443, "//edam/user?x=1"));
        assert_eq!(found.host_field(), "127.0.0.1:9443");
        assert_eq!(endpoint("http://a").unwrap().port, 80);
        for wrong in ["", "a", "redis://a:1", "http://", "http://u:p@a/", "http://a:b/", "http://a/ b"] {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parses_resolver_responses() {
        let endpoint = endpoint("https://a:1/").unwrap();
        let read = |status, body: &str| read_answer(status, body.as_bytes(), &endpoint);
        let place = |is_encrypted| Some(Destination { address: "127.0.0.1:9441".parse().unwrap(), is_encrypted });
        assert_eq!(read(404, "whatever"), Ok(None));
        assert_eq!(read(200, r#"{"address": "127.0.0.1:9441"}"#), Ok(place(true)));
        assert_eq!(read(200, r#"{"address": "127.0.0.1:9441", "tls": false}"#), Ok(place(false)));
        for (status, body) in [
            (500, "{}"),
            (200, ""),
            (200, "{}"),
            (200, r#"{"address": 5}"#),
            (200, r#"{"address": "localhost:5"}"#),
            (200, r#"{"address": "127.0.0.1:5", "tls": 1}"#),
        ] {
            assert!(read(status, body).is_err(), "{status} {body}");
        }
    }

    #[test]
    fn escapes_urls() {
        let mut escaped = String::new();
        escape::push(&mut escaped, "https://a:1/b?c=ü", Escape::Percent);
        assert_eq!(escaped, "https%3A%2F%2Fa%3A1%2Fb%3Fc%3D%C3%BC");
    }
}
