//! Maps a method and a target to a route.

use super::delay_distributions::{self, Law};

/// Maximum size of a body of `/bytes/N` and `/chunked/N` in bytes (1 TiB).
pub(super) const BODY_BYTES_MAX: u64 = 1 << 40;
pub(super) const CHUNK_BYTES_MAX: u32 = 65_536;
const CHUNK_BYTES: u32 = 8192;

/// A route of the server. [`Route::Options`] contains the allowed methods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Route {
    Root,
    Plaintext,
    Json,
    Health,
    Bytes(u64),
    Chunked { total: u64, chunk: u32 },
    Echo,
    Delay(Law),
    Options(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Status 400: an invalid parameter. Contains the valid form.
    Parameter(&'static str),
    NotFound,
    /// Status 405: a method that the target does not allow. Contains the allowed methods.
    MethodNotAllowed(&'static str),
    /// Status 501: an unknown method, or `CONNECT`, which would end HTTP on the connection.
    NotImplemented,
}

const GET: &str = "GET, HEAD, OPTIONS";
const POST: &str = "POST, PUT, OPTIONS";
const ANY: &str = "GET, HEAD, POST, PUT, OPTIONS";

/// Routes a request. Source of the methods: RFC 9110, section 9.1, and RFC 5789.
pub(super) fn route(method: &str, target: &str) -> Result<Route, Refusal> {
    let (path, query) = path_and_query(target);
    if !matches!(method, "GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS" | "TRACE" | "PATCH") {
        return Err(Refusal::NotImplemented);
    }
    let (allowed, route) = match path {
        "/" => (GET, Ok(Route::Root)),
        "/plaintext" => (GET, Ok(Route::Plaintext)),
        "/json" => (GET, Ok(Route::Json)),
        "/health" => (GET, Ok(Route::Health)),
        "/echo" => (POST, Ok(Route::Echo)),
        "/delay" => (GET, delay_distributions::law(query).map(Route::Delay).map_err(Refusal::Parameter)),
        "*" => (ANY, Err(Refusal::NotFound)),
        _ => match (path.strip_prefix("/bytes/"), path.strip_prefix("/chunked/")) {
            (Some(count), _) => (GET, body_bytes(count).map(Route::Bytes)),
            (_, Some(count)) => {
                let chunked = |total| Ok(Route::Chunked { total, chunk: chunk_bytes(query)? });
                (GET, body_bytes(count).and_then(chunked))
            }
            _ => return Err(Refusal::NotFound),
        },
    };
    match method {
        "OPTIONS" => Ok(Route::Options(allowed)),
        _ if path == "*" || allowed.split(", ").any(|one| one == method) => route,
        _ => Err(Refusal::MethodNotAllowed(allowed)),
    }
}

/// Strips the scheme and authority from a target in absolute form, which servers must accept (RFC 9112, section 3.2.2).
fn path_and_query(target: &str) -> (&str, &str) {
    let target = match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") => {
            rest.find(['/', '?']).map_or("/", |at| &rest[at..])
        }
        _ => target,
    };
    match target.split_once('?') {
        Some(("", query)) => ("/", query),
        Some((path, query)) => (path, query),
        None => (target, ""),
    }
}

fn body_bytes(text: &str) -> Result<u64, Refusal> {
    let count = if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
    count.filter(|&count| count <= BODY_BYTES_MAX).ok_or(Refusal::Parameter(
        "N in /bytes/N and /chunked/N must be a number of bytes, up to 1099511627776 (1 TiB)",
    ))
}

fn chunk_bytes(query: &str) -> Result<u32, Refusal> {
    let wrong = Refusal::Parameter("/chunked/N takes `chunk=BYTES`, 1 to 65536");
    match query.split_once('=') {
        None if query.is_empty() => Ok(CHUNK_BYTES),
        Some(("chunk", bytes)) => bytes.parse().ok().filter(|bytes| (1..=CHUNK_BYTES_MAX).contains(bytes)).ok_or(wrong),
        _ => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_targets() {
        let chunked = |total, chunk| Ok(Route::Chunked { total, chunk });
        let parameter = |text: &str| matches!(route("GET", text), Err(Refusal::Parameter(_)));
        for (method, target, expected) in [
            ("GET", "/", Ok(Route::Root)),
            ("HEAD", "/", Ok(Route::Root)),
            ("GET", "/?x=1", Ok(Route::Root)),
            ("GET", "http://example.com/", Ok(Route::Root)),
            ("GET", "http://example.com", Ok(Route::Root)),
            ("GET", "HTTP://example.com?x", Ok(Route::Root)),
            ("GET", "http://example.com/plaintext?x", Ok(Route::Plaintext)),
            ("GET", "/json", Ok(Route::Json)),
            ("GET", "/health", Ok(Route::Health)),
            ("GET", "/bytes/0", Ok(Route::Bytes(0))),
            ("GET", "/bytes/1099511627776", Ok(Route::Bytes(1 << 40))),
            ("GET", "/chunked/5", chunked(5, 8192)),
            ("GET", "/chunked/5?chunk=1", chunked(5, 1)),
            ("POST", "/echo", Ok(Route::Echo)),
            ("PUT", "/echo", Ok(Route::Echo)),
            ("OPTIONS", "*", Ok(Route::Options(ANY))),
            ("OPTIONS", "/echo", Ok(Route::Options(POST))),
            ("OPTIONS", "/nowhere", Err(Refusal::NotFound)),
            ("GET", "*", Err(Refusal::NotFound)),
            ("GET", "/nowhere", Err(Refusal::NotFound)),
            ("GET", "//", Err(Refusal::NotFound)),
            ("GET", "/ftp://x/", Err(Refusal::NotFound)),
            ("GET", "", Err(Refusal::NotFound)),
            ("POST", "/", Err(Refusal::MethodNotAllowed(GET))),
            ("GET", "/echo", Err(Refusal::MethodNotAllowed(POST))),
            ("DELETE", "/bytes/1", Err(Refusal::MethodNotAllowed(GET))),
            ("BREW", "/", Err(Refusal::NotImplemented)),
            ("get", "/", Err(Refusal::NotImplemented)),
            ("CONNECT", "example.com:443", Err(Refusal::NotImplemented)),
        ] {
            assert_eq!(route(method, target), expected, "{method} {target}");
        }
        for wrong in [
            "/bytes/",
            "/bytes/x",
            "/bytes/+1",
            "/bytes/1099511627777",
            "/bytes/99999999999999999999999",
            "/chunked/-1",
            "/chunked/1?chunk=0",
            "/chunked/1?chunk=65537",
            "/chunked/1?size=1",
            "/delay",
            "/delay?mean=1",
        ] {
            assert!(parameter(wrong), "{wrong}: {:?}", route("GET", wrong));
        }
    }
}
