//! Patterns of endpoints, as used in `allow`.

use std::net::IpAddr;

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
