//! The cookies of a session (RFC 6265), and the header fields of a response.

/// Maximum number of cookies of a session. RFC 6265, section 6.1, requires at least 50 per domain.
const COOKIES_MAX: usize = 50;
/// Maximum length of a cookie's name and value together, in bytes: the minimum that RFC 6265, section 6.1, requires.
const COOKIE_BYTES_MAX: usize = 4096;

#[derive(Clone, Debug, Default)]
pub(crate) struct Jar(Vec<Cookie>);

#[derive(Clone, Debug)]
struct Cookie {
    host: String,
    name: String,
    value: String,
    path: String,
}

/// The header fields of the final head in `head`, which may begin with heads of interim responses.
pub(crate) fn fields(head: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let head = head.trim_ascii_end();
    let last = head.windows(4).rposition(|four| four == b"\r\n\r\n").map_or(head, |at| &head[at + 4..]);
    // Skip lines that are not UTF-8; no field that matters here has such bytes.
    let lines = last.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim()))
}

impl Jar {
    /// Stores the cookies of the response to a request for `target`. Reads only the attributes `Path` and `Max-Age=0`,
    /// because cookies are sent only to the host that set them, and a session ends before they expire.
    pub(crate) fn store(&mut self, head: &[u8], host: &str, target: &str) {
        for (_, text) in fields(head).filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let mut parts = text.split(';').map(|part| part.split_once('=').unwrap_or((part, "")));
            let Some((name, value)) = parts.next().map(|(name, value)| (name.trim(), value.trim())) else { continue };
            if name.is_empty() || name.len() + value.len() > COOKIE_BYTES_MAX {
                continue;
            }
            let (mut path, mut is_removed) = (default_path(target), false);
            for (attribute, value) in parts {
                match attribute.trim().to_ascii_lowercase().as_str() {
                    "path" if value.trim().starts_with('/') => path = value.trim(),
                    "max-age" => is_removed = value.trim().parse::<i64>().is_ok_and(|age_s| age_s <= 0),
                    _ => {}
                }
            }
            self.0.retain(|cookie| cookie.name != name || cookie.path != path || cookie.host != host);
            if !is_removed && self.0.len() < COOKIES_MAX {
                let (host, name, value) = (host.to_owned(), name.to_owned(), value.to_owned());
                self.0.push(Cookie { host, name, value, path: path.to_owned() });
            }
        }
    }

    /// The value of the `Cookie` field for a request; `None` if no cookie matches its host and path.
    pub(crate) fn header(&self, host: &str, target: &str) -> Option<String> {
        let path = target.split('?').next().unwrap_or(target);
        let mut own =
            self.0.iter().filter(|cookie| cookie.host == host && matches(path, &cookie.path)).collect::<Vec<_>>();
        // Longer paths come first (RFC 6265, section 5.4).
        own.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs = own.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect::<Vec<_>>();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|cookie| cookie.name == name).map(|cookie| cookie.value.as_str())
    }
}

/// Path of a cookie without a `Path` attribute. Source: RFC 6265, section 5.1.4.
fn default_path(target: &str) -> &str {
    let path = target.split('?').next().unwrap_or(target);
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(end) => &path[..end],
    }
}

fn matches(path: &str, cookie_path: &str) -> bool {
    path.strip_prefix(cookie_path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || cookie_path.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cookies_follow_paths_and_removals() {
        let mut jar = Jar::default();
        let head =
            |fields: &str| format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n{fields}\r\n\r\n").into_bytes();
        jar.store(&head("Set-Cookie: sid=1; HttpOnly; Path=/\r\nset-cookie: cart=a=b; Secure"), "a", "/shop/cart?x=/y");
        assert_eq!((jar.get("sid"), jar.get("cart"), jar.get("other")), (Some("1"), Some("a=b"), None));
        assert_eq!(jar.header("a", "/shop/list").as_deref(), Some("cart=a=b; sid=1"));
        assert_eq!(jar.header("a", "/shopping").as_deref(), Some("sid=1"));
        jar.store(&head("Set-Cookie: sid=2; Path=/"), "a", "/login");
        assert_eq!(jar.header("a", "/").as_deref(), Some("sid=2"));
        jar.store(&head("Set-Cookie: sid=; Path=/; Max-Age=0\r\nSet-Cookie: =x\r\nSet-Cookie: flag"), "a", "/login");
        assert_eq!(jar.header("a", "/").as_deref(), Some("flag="));
        assert_eq!(jar.header("other", "/"), None);
    }

    proptest! {
        #[test]
        fn any_head_is_read(head in "(Set-Cookie: ?[ -~]{0,30}\\r\\n|[^a]{0,9}){0,5}", target in "[/a?]{0,6}") {
            let mut jar = Jar::default();
            jar.store(head.as_bytes(), "a", &target);
            prop_assert!(jar.header("a", "/a").is_none_or(|cookies| !cookies.contains(['\r', '\n'])));
        }
    }

    #[test]
    fn a_field_that_is_not_utf_8_hides_no_other() {
        let mut jar = Jar::default();
        jar.store(b"HTTP/1.1 200 OK\r\nX: \xff\r\nSet-Cookie: a=1\r\n\r\n", "a", "/");
        assert_eq!(jar.get("a"), Some("1"));
    }

    #[test]
    fn limits_stored_cookies() {
        let mut jar = Jar::default();
        let many = (0..100).map(|n| format!("Set-Cookie: c{n}=x\r\n")).collect::<String>();
        jar.store(
            format!("HTTP/1.1 200 OK\r\n{many}Set-Cookie: big={}\r\n\r\n", "x".repeat(5000)).as_bytes(),
            "a",
            "/",
        );
        assert_eq!((jar.0.len(), jar.get("big")), (COOKIES_MAX, None));
    }
}
