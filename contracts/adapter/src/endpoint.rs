//! Endpoints, written as `host:port` or as a URL, and their schemes.

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
            host.parse::<std::net::Ipv6Addr>().ok()?;
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
