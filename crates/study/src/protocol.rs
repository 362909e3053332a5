//! The table of protocols: names, URL schemes and default ports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Protocol of the server under test, by its name in studies, records and calibrations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Volley's ping-pong of 32-bit words.
    #[default]
    Pingpong,
    /// HTTP without encryption: HTTP/1.1 or, if the load selects it, HTTP/2.
    Http,
    /// HTTP over TLS: HTTP/1.1 or, if the load selects it, HTTP/2.
    Https,
    /// Journeys, whose operations may be REST, Thrift or SOAP calls.
    Journey,
    /// A cache protocol, given by its dialect.
    #[serde(untagged)]
    Cache(Dialect),
}

/// The protocols of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// memcached's text protocol: `get`, `set`, `delete`.
    Memcached,
    /// RESP2, the protocol of Redis and Valkey: `GET`, `SET`, `DEL`.
    Redis,
    /// HTTP/1.1: `GET /key`, `PUT /key/value`, `DELETE /key`.
    HttpCache,
}

/// Each protocol with its name, URL scheme and default port. A protocol with an empty scheme has no URLs.
const TABLE: [(Protocol, &str, &str, Option<u16>); 7] = [
    (Protocol::Http, "http", "http", Some(80)),
    (Protocol::Https, "https", "https", Some(443)),
    (Protocol::Pingpong, "pingpong", "pingpong", None),
    (Protocol::Cache(Dialect::Memcached), "memcached", "memcached", Some(11_211)),
    (Protocol::Cache(Dialect::Redis), "redis", "redis", Some(6379)),
    (Protocol::Cache(Dialect::HttpCache), "http-cache", "http-cache", Some(80)),
    (Protocol::Journey, "journey", "", None),
];

impl Protocol {
    /// All protocols, including each cache dialect.
    pub fn all() -> impl Iterator<Item = Protocol> + Clone {
        TABLE.iter().map(|(protocol, ..)| *protocol)
    }

    /// Protocols that have a URL scheme.
    pub fn with_scheme() -> impl Iterator<Item = Protocol> + Clone {
        Protocol::all().filter(|protocol| !protocol.scheme().is_empty())
    }

    /// The protocol of a URL scheme, ignoring case; `None` if unknown.
    pub fn of_scheme(scheme: &str) -> Option<Protocol> {
        Protocol::with_scheme().find(|protocol| protocol.scheme().eq_ignore_ascii_case(scheme))
    }

    fn row(self) -> (&'static str, &'static str, Option<u16>) {
        let (_, name, scheme, port) = TABLE.iter().find(|(protocol, ..)| *protocol == self).expect("each has a row");
        (name, scheme, *port)
    }

    /// Name of the protocol in studies and records.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// URL scheme of the protocol; empty if there is none.
    pub fn scheme(self) -> &'static str {
        self.row().1
    }

    /// Default port of the protocol's URLs; `None` if a URL must state its port.
    pub fn default_port(self) -> Option<u16> {
        self.row().2
    }

    /// Whether URLs of the protocol have a path, which is then requested. Other URLs end with the port.
    pub fn has_path(self) -> bool {
        // No wildcard: each new protocol needs a decision here.
        matches!(self, Protocol::Http | Protocol::Https)
    }

    /// The dialect of a cache protocol; `None` for other protocols.
    pub fn dialect(self) -> Option<Dialect> {
        if let Protocol::Cache(dialect) = self { Some(dialect) } else { None }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_stored_form() {
        for protocol in Protocol::all() {
            let json = serde_json::to_value(protocol).unwrap();
            assert_eq!(json, protocol.name());
            assert_eq!(serde_json::from_value::<Protocol>(json).unwrap(), protocol);
        }
        assert!(serde_json::from_str::<Protocol>("\"gopher\"").is_err());
    }

    #[test]
    fn schemes_are_unique() {
        for protocol in Protocol::with_scheme() {
            assert_eq!(Protocol::of_scheme(&protocol.scheme().to_uppercase()), Some(protocol));
        }
        assert_eq!((Protocol::of_scheme(""), Protocol::of_scheme("journey")), (None, None));
    }
}
