//! Parses URLs of loads, such as `http://host:port/path?query` (RFC 3986; RFC 9110, section 4.2).

use std::fmt;
use std::net::Ipv6Addr;

use config::{Invalid, did_you_mean};

use crate::protocol::Protocol;
use crate::validate_http;

/// Maximum length of a host without a final dot, bytes (RFC 1035, section 2.3.4).
const HOST_MAX_BYTES: usize = 253;

/// A parsed URL of a server or a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Protocol that the scheme stands for.
    pub protocol: Protocol,
    /// Lower-case name, IPv4 address, or IPv6 address without brackets.
    pub host: String,
    /// Port in the URL, or else the scheme's default port.
    pub port: u16,
    /// Request target (path and query), at least `/`; empty for `pingpong`.
    pub target: String,
    /// The part after `#`, if any. It is never sent (RFC 9110, section 4.2.5), so callers should warn about it.
    pub fragment: Option<String>,
}

/// Parses a URL. Fails at the first error, with a message that never contains a password.
pub fn parse(text: &str) -> Result<Url, Invalid> {
    validate_http::bounded("a URL", text)?;
    let no_host = |text: &str| {
        Invalid::new(format!("`{text}` has no host")).hint("a URL looks like `http://127.0.0.1:8080/path`")
    };
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        None if text.split_once(":/").is_some_and(|(scheme, _)| is_scheme(scheme)) => {
            return Err(no_host(&without_user_info(text)));
        }
        _ => return Err(no_scheme(&without_user_info(text))),
    };
    let protocol = Protocol::of_scheme(scheme).ok_or_else(|| unknown_scheme(&scheme.to_ascii_lowercase()))?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(match protocol {
            Protocol::Cache(_) => {
                let message =
                    format!("credentials in `{}://` are not supported: cache loads do not log in", protocol.scheme());
                Invalid::new(message).hint("start the server without a password for the measurement")
            }
            _ => Invalid::new("credentials in URLs are not supported")
                .hint("send it as a header: `-H 'Authorization: Basic ...'`"),
        });
    }
    let (host, port) = split_port(authority)?;
    if host.is_empty() {
        return Err(no_host(text));
    }
    let no_port = || {
        Invalid::new(format!("`{text}` does not end in a host and a port from 1 to 65535"))
            .hint("a URL looks like `pingpong://127.0.0.1:7000`")
    };
    let port = match port {
        None | Some("") => protocol.default_port().ok_or_else(no_port)?,
        Some(port) => match port.parse() {
            Ok(number @ 1..) if port.bytes().all(|byte| byte.is_ascii_digit()) => number,
            _ if protocol == Protocol::Pingpong => return Err(no_port()),
            _ => return Err(Invalid::new(format!("`{port}` is not a port (1 to 65535)"))),
        },
    };
    let (path, fragment) = path.split_once('#').map_or((path, None), |(path, fragment)| (path, Some(fragment)));
    let target = match path {
        "" | "/" if !protocol.has_path() => String::new(),
        path if !protocol.has_path() => {
            let scheme = protocol.scheme();
            let hint = match scheme {
                "redis" => "drop it: the database is always 0".to_owned(),
                _ => format!("drop it: `{scheme}://127.0.0.1:7000`"),
            };
            return Err(Invalid::new(format!("`{path}`: {scheme} URLs have no path")).hint(hint));
        }
        path if path.starts_with('/') => validate_http::target(path)?,
        path => validate_http::target(&format!("/{path}"))?,
    };
    Ok(Url { protocol, host, port, target, fragment: fragment.map(str::to_owned) })
}

fn no_scheme(text: &str) -> Invalid {
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host = host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
        && host.chars().all(|c| c.is_ascii_alphanumeric() || ".:-[]_".contains(c));
    let hint = match is_host {
        true => format!("write `http://{text}`"),
        false => "a URL looks like `http://127.0.0.1:8080/path`".to_owned(),
    };
    Invalid::new(format!("`{text}` is not a URL: missing `http://`")).hint(hint)
}

fn unknown_scheme(scheme: &str) -> Invalid {
    let schemes = Protocol::with_scheme().map(Protocol::scheme);
    let hint = match scheme {
        "unix" | "http+unix" => "write `--unix-socket PATH http://localhost/`".to_owned(),
        "grpc" | "grpcs" => "write `--grpc http://host:port/package.Service/Method`".to_owned(),
        "h2" | "h2c" | "http2" => "write `--http2 http://host:port/path`".to_owned(),
        "ws" | "wss" | "h3" | "http3" => "supported: HTTP/1.1 and HTTP/2 over `http` and `https`".to_owned(),
        _ => did_you_mean(scheme, schemes.clone()).unwrap_or_else(|| {
            format!("supported: {}", schemes.map(|scheme| format!("`{scheme}`")).collect::<Vec<_>>().join(", "))
        }),
    };
    Invalid::new(format!("unknown protocol `{scheme}`")).hint(hint)
}

fn split_port(authority: &str) -> Result<(String, Option<&str>), Invalid> {
    let not_ipv6 = || {
        Invalid::new(format!("`{authority}` is not an IPv6 address in brackets"))
            .hint("write IPv6 addresses in brackets: `http://[::1]:8080/`")
    };
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or_else(not_ipv6)?;
        if host.contains('%') {
            return Err(Invalid::new(format!("`{host}`: IPv6 zones are not supported")));
        }
        let address = host.parse::<Ipv6Addr>().map_err(|_| not_ipv6())?;
        let port = after.strip_prefix(':');
        return if port.is_some() || after.is_empty() { Ok((address.to_string(), port)) } else { Err(not_ipv6()) };
    }
    let (host, port) = match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => return Err(not_ipv6()),
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    if !host.is_ascii() {
        let message = format!("the host `{host}` is not ASCII; international names are not converted");
        return Err(Invalid::new(message).hint("write its ASCII form, `xn--...`"));
    }
    if let Some(character) = host.chars().find(|&c| !(c.is_ascii_alphanumeric() || "-._~".contains(c))) {
        return Err(Invalid::new(format!("{character:?} is not allowed in host `{host}`")));
    }
    if host.len() > HOST_MAX_BYTES {
        return Err(Invalid::new(format!("a host of {} bytes, at most {HOST_MAX_BYTES} allowed", host.len())));
    }
    Ok((host.to_ascii_lowercase(), port))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Removes anything that may be a password, so that the URL can be shown in messages.
fn without_user_info(text: &str) -> String {
    text.rfind('@').map_or_else(|| text.to_owned(), |at| format!("...{}", &text[at..]))
}

impl Url {
    /// Address `host:port` to resolve and connect to; an IPv6 address is in brackets.
    pub fn address(&self) -> String {
        format!("{}:{}", self.bracketed(), self.port)
    }

    /// Value of the `Host` field, without the scheme's default port (RFC 9110, section 7.2).
    pub fn host_field(&self) -> String {
        if self.protocol.default_port() == Some(self.port) { self.bracketed() } else { self.address() }
    }

    /// Whether one connection can serve both URLs (RFC 9110, section 4.3.1).
    pub fn same_origin(&self, other: &Url) -> bool {
        (self.protocol, self.port) == (other.protocol, other.port) && self.host == other.host
    }

    /// Scheme, host and port as a URL without a path.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.protocol.scheme(), self.host_field())
    }

    fn bracketed(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, said: &str) {
        let found = match parse(text) {
            Ok(url) => {
                let fragment = url.fragment.as_ref().map_or(String::new(), |fragment| format!(" without #{fragment}"));
                format!("{} asks {} Host {}{fragment}", url.address(), url.target, url.host_field())
            }
            Err(error) => format!("{error}; {}", error.hint.as_deref().unwrap_or_default()),
        };
        assert_eq!(found, said, "{text}");
    }

    #[test]
    fn accepts_valid_urls() {
        check("http://127.0.0.1:8080/", "127.0.0.1:8080 asks / Host 127.0.0.1:8080");
        check("http://h", "h:80 asks / Host h");
        check("http://h:", "h:80 asks / Host h");
        check("http://h:80/a", "h:80 asks /a Host h");
        check("http://h:443/", "h:443 asks / Host h:443");
        check("https://h:443/", "h:443 asks / Host h");
        check("HTTPS://EXAMPLE.org/A?b=C", "example.org:443 asks /A?b=C Host example.org");
        check("http://h?q", "h:80 asks /?q Host h");
        check("http://h/a?b=c?d/#frag?x", "h:80 asks /a?b=c?d/ Host h without #frag?x");
        check("http://h#", "h:80 asks / Host h without #");
        check("http://[::1]:8080/x", "[::1]:8080 asks /x Host [::1]:8080");
        check("http://[2001:DB8:0::1]", "[2001:db8::1]:80 asks / Host [2001:db8::1]");
        check("http://[::ffff:1.2.3.4]/", "[::ffff:1.2.3.4]:80 asks / Host [::ffff:1.2.3.4]");
        check("http://a_b.c-d:1//x//", "a_b.c-d:1 asks //x// Host a_b.c-d:1");
        check("http://h/%zz?a[]={b|c}", "h:80 asks /%zz?a[]={b|c} Host h");
        check("http://h/a@b:c", "h:80 asks /a@b:c Host h");
        check("pingpong://127.0.0.1:7000", "127.0.0.1:7000 asks  Host 127.0.0.1:7000");
        check("pingpong://[::1]:7000/", "[::1]:7000 asks  Host [::1]:7000");
    }

    #[test]
    fn explains_invalid_urls() {
        for (text, said) in [
            ("", "`` is not a URL: missing `http://`; a URL looks like `http://127.0.0.1:8080/path`"),
            ("127.0.0.1:1/a", "`127.0.0.1:1/a` is not a URL: missing `http://`; write `http://127.0.0.1:1/a`"),
            ("a:secret@h", "`...@h` is not a URL: missing `http://`; a URL looks like `http://127.0.0.1:8080/path`"),
            ("http:/h", "`http:/h` has no host; a URL looks like `http://127.0.0.1:8080/path`"),
            ("://h", "`://h` is not a URL: missing `http://`; a URL looks like `http://127.0.0.1:8080/path`"),
            ("htp://h", "unknown protocol `htp`; did you mean `http`?"),
            ("httpss://h", "unknown protocol `httpss`; did you mean `https`?"),
            ("ws://h", "unknown protocol `ws`; supported: HTTP/1.1 and HTTP/2 over `http` and `https`"),
            ("grpc://h/a.B/C", "unknown protocol `grpc`; write `--grpc http://host:port/package.Service/Method`"),
            ("h2c://h", "unknown protocol `h2c`; write `--http2 http://host:port/path`"),
            ("unix:///run/s", "unknown protocol `unix`; write `--unix-socket PATH http://localhost/`"),
            (
                "ftp://h",
                "unknown protocol `ftp`; supported: `http`, `https`, `pingpong`, `memcached`, `redis`, `http-cache`",
            ),
            (
                "http://u:p@h/",
                "credentials in URLs are not supported; send it as a header: `-H 'Authorization: Basic ...'`",
            ),
            ("http://", "`http://` has no host; a URL looks like `http://127.0.0.1:8080/path`"),
            ("http://:80/", "`http://:80/` has no host; a URL looks like `http://127.0.0.1:8080/path`"),
            ("http:///x", "`http:///x` has no host; a URL looks like `http://127.0.0.1:8080/path`"),
            (
                "http://bücher.de/",
                "the host `bücher.de` is not ASCII; international names are not converted; write its ASCII form, `xn--...`",
            ),
            ("http://a b/", "' ' is not allowed in host `a b`; "),
            ("http://a%41/", "'%' is not allowed in host `a%41`; "),
            (
                "http://::1:80/",
                "`::1:80` is not an IPv6 address in brackets; write IPv6 addresses in brackets: `http://[::1]:8080/`",
            ),
            (
                "http://[::1/",
                "`[::1` is not an IPv6 address in brackets; write IPv6 addresses in brackets: `http://[::1]:8080/`",
            ),
            (
                "http://[::1]8/",
                "`[::1]8` is not an IPv6 address in brackets; write IPv6 addresses in brackets: `http://[::1]:8080/`",
            ),
            (
                "http://[1.2.3.4]/",
                "`[1.2.3.4]` is not an IPv6 address in brackets; write IPv6 addresses in brackets: \
                 `http://[::1]:8080/`",
            ),
            ("http://[fe80::1%25eth0]/", "`fe80::1%25eth0`: IPv6 zones are not supported; "),
            ("http://h:0/", "`0` is not a port (1 to 65535); "),
            ("http://h:65536/", "`65536` is not a port (1 to 65535); "),
            ("http://h:+80/", "`+80` is not a port (1 to 65535); "),
            ("http://h:x/", "`x` is not a port (1 to 65535); "),
            ("http://h/a b", "' ' is not allowed in the path `/a b`; percent-encode it: `%20`"),
            ("http://h/é", "'é' is not allowed in the path `/é`; percent-encode it: `%C3%A9`"),
            ("http://h/\r\nX: y", "'\\r' is not allowed in the path `/\r\nX: y`; percent-encode it: `%0D`"),
            (
                "pingpong://a",
                "`pingpong://a` does not end in a host and a port from 1 to 65535; a URL looks like `pingpong://127.0.0.1:7000`",
            ),
            (
                "pingpong://a:0",
                "`pingpong://a:0` does not end in a host and a port from 1 to 65535; a URL looks like `pingpong://127.0.0.1:7000`",
            ),
            ("pingpong://a:1/b", "`/b`: pingpong URLs have no path; drop it: `pingpong://127.0.0.1:7000`"),
        ] {
            check(text, said);
        }
        check(&format!("http://{}/", "a".repeat(254)), "a host of 254 bytes, at most 253 allowed; ");
        check(&format!("http://h/{}", "a".repeat(40_000)), "a URL of 40009 bytes, at most 32768 allowed; ");
    }

    #[test]
    fn origins() {
        let same = |a: &str, b: &str| parse(a).unwrap().same_origin(&parse(b).unwrap());
        assert!(same("http://H/a", "http://h:80/b?c"));
        assert!(same("http://[0::1]/", "http://[::1]:80/"));
        assert!(!same("http://h/", "https://h/"));
        assert!(!same("http://h/", "http://h:81/"));
        assert!(!same("http://h/", "http://i/"));
    }

    #[test]
    fn urls_survive_printing_and_parsing() {
        for text in ["http://h/", "https://h:8443/a?b", "http://[::1]:81/x"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }
}
