//! The servers of a journey: the servers of its targets, and servers that responses or a resolver name.

use std::collections::HashMap;
use std::net::SocketAddr;

use codecs::value::Value;
use percent_encoding::utf8_percent_encode;
use study::spec::{Protocol, Tls};
use study::url::{self, Url};

use crate::recorder::{Fault, OrFault};
use crate::run::resolve;
use crate::server_endpoint::Server;
use crate::template_escaping::RESERVED;
use crate::tls::{Alpn, Connector};
use crate::worker_threads::LoadError;

/// Maximum number of servers of a worker, bounded because responses can name any server.
const SERVERS_MAX: usize = 1024;
/// Maximum number of URLs whose resolved addresses are kept. At the maximum, all are discarded.
const RESOLVED_MAX: usize = 1024;

/// Servers by index, including those named in responses. Each name of an address is a server with its own certificate.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    /// Application protocol, and TLS settings, whose server name is ignored.
    tls: (Alpn, Tls),
    pub(crate) all: Vec<Server>,
    /// Indices by `host:port` of the address, server name, and encryption.
    known: HashMap<(String, String, bool), u32>,
    /// Index of the server that the resolver gave for a URL without its query.
    pub(crate) resolved: HashMap<String, u32>,
    /// Indices by journey and target; `None` if a target is never called. Empty if a resolver finds all targets.
    pub(crate) of_targets: Vec<Vec<Option<u32>>>,
}

impl Servers {
    pub(crate) fn new(alpn: Alpn, tls: Tls) -> Self {
        Self {
            tls: (alpn, tls),
            all: Vec::new(),
            known: HashMap::new(),
            resolved: HashMap::new(),
            of_targets: Vec::new(),
        }
    }

    pub(crate) fn get(&self, index: u32) -> &Server {
        &self.all[index as usize]
    }

    /// Index of the server that a URL names. Resolves the host if the server is new, which blocks the calling thread.
    pub(crate) fn of_url(&mut self, endpoint: &Url) -> Result<u32, LoadError> {
        self.at(&endpoint.address(), &endpoint.host, endpoint.protocol == Protocol::Https)
    }

    fn at(&mut self, address: &str, host: &str, is_encrypted: bool) -> Result<u32, LoadError> {
        let key = (address.to_owned(), host.to_owned(), is_encrypted);
        if let Some(index) = self.known.get(&key) {
            return Ok(*index);
        }
        if self.all.len() == SERVERS_MAX {
            return Err(LoadError::Spec(vec![format!("the responses name more than {SERVERS_MAX} servers")]));
        }
        let alike = self.all.iter().find(|server| server.host == host).and_then(|server| server.tls.clone());
        let (alpn, tls) = &self.tls;
        let connector = || Connector::over(*alpn, &Tls { server_name: host.to_owned(), ..tls.clone() });
        let tls = is_encrypted.then(|| alike.map_or_else(connector, Ok)).transpose().map_err(LoadError::Tls)?;
        self.all.push(Server { address: resolve(address)?, tunnel_to: None, tls, host: host.to_owned() });
        let index = self.all.len() as u32 - 1;
        self.known.insert(key, index);
        Ok(index)
    }

    /// Adds the server that the resolver's response names, or else the server of `endpoint`, and returns its index.
    pub(crate) fn add_resolved(&mut self, url: &str, endpoint: &Url, status: u16, body: &[u8]) -> OrFault<u32> {
        let answer = read_answer(status, body, endpoint).map_err(|why| (Fault::WrongAnswer, why))?;
        let Some((address, is_encrypted)) = answer else { return self.of_url(endpoint).map_err(fault) };
        let index = self.at(&address, &endpoint.host, is_encrypted).map_err(fault)?;
        if self.resolved.len() == RESOLVED_MAX {
            self.resolved.clear();
        }
        self.resolved.insert(url.to_owned(), index);
        Ok(index)
    }
}

pub(crate) fn fault(error: LoadError) -> (Fault, String) {
    (if matches!(error, LoadError::Tls(_)) { Fault::Tls } else { Fault::Os }, error.to_string())
}

pub(crate) fn endpoint(text: &str) -> Result<Url, String> {
    let found = url::parse(text).map_err(|error| error.to_string())?;
    match found.protocol {
        Protocol::Http | Protocol::Https => Ok(found),
        _ => Err(format!("`{}` is not an HTTP URL", text.escape_debug())),
    }
}

/// Path and query of the request to a resolver about `url`.
pub(crate) fn question(url: &str) -> String {
    format!("/resolve?endpoint={}", utf8_percent_encode(url, RESERVED))
}

/// Parses `{"address": "ip:port"}`, with `"tls"` if it differs from the URL, into the address and whether it uses TLS.
/// `None` for status 404 or `"intercepted": false`, which mean that the resolver does not know the endpoint.
fn read_answer(status: u16, body: &[u8], endpoint: &Url) -> Result<Option<(String, bool)>, String> {
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
    let address: SocketAddr = address.ok_or("no `address` of the form `ip:port`")?;
    let is_encrypted = match answer.get("tls") {
        None => endpoint.protocol == Protocol::Https,
        Some(Value::Bool(tls)) => *tls,
        Some(_) => return Err("`tls` is neither true nor false".to_owned()),
    };
    Ok(Some((address.to_string(), is_encrypted)))
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
        let place = |is_encrypted| Some(("127.0.0.1:9441".to_owned(), is_encrypted));
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
        assert_eq!(question("https://a:1/b?c=ü"), "/resolve?endpoint=https%3A%2F%2Fa%3A1%2Fb%3Fc%3D%C3%BC");
    }
}
