//! Server addresses: an internet address with a port, or the path of a Unix socket.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// The address of a stream socket.
///
/// ```
/// let unix = &net::Address::resolve("unix:/run/server.sock")?[0];
/// assert_eq!(unix.to_string(), "unix:/run/server.sock");
/// assert_eq!(net::Address::resolve("[::1]:8080")?[0].inet().unwrap().port(), 8080);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Inet(SocketAddr),
    /// A Unix stream socket with its path, which has at most [`Address::UNIX_BYTES_MAX`] bytes.
    Unix(PathBuf),
}

impl Address {
    /// Maximum path length in bytes: `sun_path` without its terminating zero. Source: `unix(7)`.
    pub const UNIX_BYTES_MAX: usize = 107;

    /// Parses `unix:/path` or `host:port`, with brackets around an IPv6 host. Returns at least one address, in the
    /// resolver's order. Fails with `InvalidInput` for an invalid path or a missing port, or with the resolver's error.
    pub fn resolve(text: &str) -> io::Result<Vec<Self>> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = Path::new(path);
            check_path(path)?;
            return Ok(vec![Self::Unix(path.to_owned())]);
        }
        let found: Vec<Self> = text.to_socket_addrs()?.map(Self::Inet).collect();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(found)
    }

    /// The internet address; `None` for a Unix socket.
    pub fn inet(&self) -> Option<SocketAddr> {
        if let Self::Inet(address) = self { Some(*address) } else { None }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Inet(address)
    }
}

/// Writes the format that [`Address::resolve`] parses. In a path, bytes that are not UTF-8 are replaced.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Checks the path of a Unix socket. Fails with `InvalidInput` and the reason.
pub(crate) fn check_path(path: &Path) -> io::Result<()> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let wrong = if bytes.is_empty() {
        "the path of a Unix socket is empty".to_owned()
    } else if bytes.contains(&0) {
        format!("the path of a Unix socket cannot contain a zero byte: `{}`", path.display())
    } else if bytes.len() > Address::UNIX_BYTES_MAX {
        let (most, have, shown) = (Address::UNIX_BYTES_MAX, bytes.len(), path.display());
        format!("the path of a Unix socket is limited to {most} bytes, this one has {have}: `{shown}`")
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = match Address::resolve(text) {
            Ok(found) => found.iter().map(Address::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => format!("{:?}: {error}", error.kind()),
        };
        let found = found.replace(&"x".repeat(200), "x*200");
        assert_eq!(found, expected, "`{text}`");
    }

    #[test]
    fn parses_displayed_addresses() {
        check("127.0.0.1:80", "127.0.0.1:80");
        check("[::1]:80", "[::1]:80");
        check("unix:/run/x.sock", "unix:/run/x.sock");
        check("unix:relative.sock", "unix:relative.sock");
        check("unix:/run/with space:80", "unix:/run/with space:80");
    }

    #[test]
    fn rejects_invalid_addresses() {
        check("unix:", "InvalidInput: the path of a Unix socket is empty");
        check("unix:/a\0b", "InvalidInput: the path of a Unix socket cannot contain a zero byte: `/a\0b`");
        let long = "the path of a Unix socket is limited to 107 bytes, this one has 201: `/x*200`";
        check(&format!("unix:/{}", "x".repeat(200)), &format!("InvalidInput: {long}"));
        check(&format!("unix:/{}", "x".repeat(106)), &format!("unix:/{}", "x".repeat(106)));
        assert_eq!(Address::resolve("127.0.0.1").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(Address::resolve("127.0.0.1:70000").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
