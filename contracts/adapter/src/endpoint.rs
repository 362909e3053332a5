//! Endpoints, written as `host:port` or as a URL, their schemes, and the patterns of `allow`.

use std::net::{IpAddr, Ipv6Addr};

/// A parsed endpoint of a contract or configuration: `host:port`, or a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The endpoint, as written.
    pub text: String,
    /// Scheme of the URL; [`Scheme::Tcp`] for `host:port`.
    pub scheme: Scheme,
    /// Name or IP address, without brackets.
    pub host: String,
    /// Port; by default the scheme's port.
    pub port: u16,
    /// Path from the first slash; empty if there is none.
    pub path: String,
}

/// The scheme of an endpoint, which determines its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// No scheme, for bytes over TCP.
    Tcp,
    /// `http`, with port 80 by default.
    Http,
    /// `https`, with port 443 by default.
    Https,
}

impl Endpoint {
    /// Parses an endpoint. `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest, otherwise) = match text.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest, Some(80)),
            Some(("https", rest)) => (Scheme::Https, rest, Some(443)),
            Some(_) => return None,
            None => (Scheme::Tcp, text, None),
        };
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if scheme == Scheme::Tcp && !path.is_empty() {
            return None;
        }
        let (host, port) = split_authority(authority, otherwise)?;
        let path = path.split(['?', '#']).next().unwrap_or_default();
        Some(Self { text: text.to_owned(), scheme, host: host.to_owned(), port, path: path.to_owned() })
    }

    pub(crate) fn over(self, bare: Scheme) -> Self {
        let scheme = if self.scheme == Scheme::Tcp { bare } else { self.scheme };
        Self { scheme, ..self }
    }

    /// Formats the authority `host:port`, with an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

fn split_authority(authority: &str, otherwise: Option<u16>) -> Option<(&str, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, port.strip_prefix(':').or(port.is_empty().then_some(""))?)
        }
        None => authority.rsplit_once(':').unwrap_or((authority, "")),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if host.is_empty() || !(host.contains(':') && authority.starts_with('[') || host.bytes().all(is_name)) {
        return None;
    }
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = if digits { port.parse().ok()? } else { otherwise.filter(|_| port.is_empty())? };
    Some((host, port))
}

pub(crate) fn is_address(text: &str) -> bool {
    split_authority(text, None).is_some()
}

/// A pattern `host:port`. The host may be `*`, `*.example.com` or a network, and the port `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Name(String),
    /// Every name with this suffix, which is empty or begins with a dot.
    Below(String),
    Net(IpAddr, u8),
}

impl Pattern {
    /// Parses a pattern. `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = match port {
            "*" => None,
            port if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
            _ => return None,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let host = if let Some(below) = host.strip_prefix('*') {
            let is_ending = below.is_empty() || below.starts_with('.') && below.len() > 1;
            Host::Below(is_ending.then(|| below.to_owned())?)
        } else if let Some((net, bits)) = host.split_once('/') {
            let net = net.parse::<IpAddr>().ok()?;
            let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= if net.is_ipv4() { 32 } else { 128 })?;
            Host::Net(net, bits)
        } else if let Ok(address) = host.parse::<IpAddr>() {
            Host::Net(address, if address.is_ipv4() { 32 } else { 128 })
        } else if !host.is_empty() && !host.contains(['*', ':']) {
            Host::Name(host)
        } else {
            return None;
        };
        Some(Self { host, port })
    }

    /// Whether an endpoint matches the pattern. Names are not resolved, so a name never matches a network.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        if self.port.is_some_and(|own| own != port) {
            return false;
        }
        let host = host.to_ascii_lowercase();
        match &self.host {
            Host::Name(name) => *name == host,
            Host::Below(end) => host.len() > end.len() && host.ends_with(end.as_str()),
            Host::Net(net, bits) => {
                let differing = match (net, host.parse::<IpAddr>()) {
                    (IpAddr::V4(net), Ok(IpAddr::V4(address))) => u128::from(net.to_bits() ^ address.to_bits()) << 96,
                    (IpAddr::V6(net), Ok(IpAddr::V6(address))) => net.to_bits() ^ address.to_bits(),
                    _ => return false,
                };
                differing.leading_zeros() >= u32::from(*bits)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        let check = |text: &str, expect: Option<(Scheme, &str, &str)>| {
            let got = Endpoint::parse(text);
            let got = got.as_ref().map(|found| (found.scheme, found.authority(), found.path.clone()));
            assert_eq!(got, expect.map(|(scheme, at, path)| (scheme, at.to_owned(), path.to_owned())), "{text}");
        };
        check("adder:8001", Some((Scheme::Tcp, "adder:8001", "")));
        check("https://127.0.0.1:9443//edam/user", Some((Scheme::Https, "127.0.0.1:9443", "//edam/user")));
        check("http://api.example.com", Some((Scheme::Http, "api.example.com:80", "")));
        check("https://[::1]/a?b#c", Some((Scheme::Https, "[::1]:443", "/a")));
        for wrong in
            ["", "adder", ":80", "adder:", "adder:99999", "ftp://a:1/", "a:1/path", "::1:80", "a b:1", "http://u@h/"]
        {
            check(wrong, None);
        }
    }
}

#[cfg(test)]
mod pattern_tests {
    use super::*;

    #[test]
    fn patterns() {
        let check = |pattern: &str, yes: &[(&str, u16)], no: &[(&str, u16)]| {
            let parsed = Pattern::parse(pattern).unwrap_or_else(|| panic!("{pattern}"));
            for (host, port) in yes {
                assert!(parsed.matches(host, *port), "{pattern} {host}:{port}");
            }
            for (host, port) in no {
                assert!(!parsed.matches(host, *port), "{pattern} {host}:{port}");
            }
        };
        check("adder:8001", &[("adder", 8001), ("ADDER", 8001)], &[("adder", 1), ("xadder", 8001)]);
        check(
            "*.example.com:443",
            &[("a.example.com", 443)],
            &[("example.com", 443), (".example.com", 443), ("a.example.com.evil", 443)],
        );
        check("10.0.0.0/8:*", &[("10.1.2.3", 1)], &[("11.0.0.1", 1), ("10.evil.com", 1)]);
        check("0.0.0.0/0:80", &[("1.2.3.4", 80)], &[("::1", 80), ("localhost", 80)]);
        check("[::1]:*", &[("::1", 5)], &[("::2", 5)]);
        check("*:80", &[("x", 80)], &[("x", 81)]);
        for wrong in ["", "*", "a", "*a:1", "10.0.0.0/33:1", "a*:1", "*.:1", "a:b"] {
            assert_eq!(Pattern::parse(wrong), None, "{wrong}");
        }
    }
}
