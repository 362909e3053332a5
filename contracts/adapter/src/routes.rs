//! Maps an HTTP request to the endpoint with the longest matching path prefix at the request's origin.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::endpoint::{Endpoint, Scheme};

/// Maximum number of endpoints per origin. Calls to further endpoints pass as unlisted.
const PATHS_MAX: usize = 1024;
/// Maximum number of endpoints in total, since messages may introduce any number of them.
const ENDPOINTS_MAX: usize = 16_384;

/// A scheme, and `host:port` in lower case.
type Origin = (Scheme, String);

/// Paths of an origin and their endpoints, longest path first.
type Paths = Vec<(String, Arc<str>)>;

#[derive(Debug, Default)]
pub(crate) struct Routes(Mutex<HashMap<Origin, Paths>>);

fn origin(scheme: Scheme, authority: &str) -> Origin {
    (scheme, authority.to_ascii_lowercase())
}

impl Routes {
    pub(crate) fn add(&self, endpoint: &str, parsed: &Endpoint) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = known.values().map(Vec::len).sum::<usize>() >= ENDPOINTS_MAX;
        let of = known.entry(origin(parsed.scheme, &parsed.authority())).or_default();
        if of.iter().any(|(_, known)| **known == *endpoint) {
            return true;
        }
        if is_full || of.len() >= PATHS_MAX {
            return false;
        }
        of.push((plain_path(&parsed.path), endpoint.into()));
        of.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        true
    }

    pub(crate) fn has(&self, scheme: Scheme, authority: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&origin(scheme, authority)).is_some_and(|of| !of.is_empty())
    }

    pub(crate) fn find<'p>(&self, scheme: Scheme, authority: &str, path: &'p str) -> Option<(Arc<str>, &'p str)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = known.get(&origin(scheme, authority))?;
        of.iter().find_map(|(prefix, endpoint)| Some((endpoint.clone(), behind(path, prefix)?)))
    }
}

/// Removes doubled and trailing slashes from a path.
fn plain_path(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect()
}

/// The rest of a path after the normalized `prefix`. `None` if the path does not match.
fn behind<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    let mut rest = path;
    for part in prefix.split('/').filter(|part| !part.is_empty()) {
        rest = rest.trim_start_matches('/').strip_prefix(part)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_match_whole_segments() {
        for (path, prefix, expect) in [
            ("/1.1/friends/list.json", "", Some("/1.1/friends/list.json")),
            ("//edam/user", "/edam/user", Some("")),
            ("/edam/user/", "/edam/user", Some("/")),
            ("/edam/users", "/edam/user", None),
            ("/edam", "/edam/user", None),
            ("/a//b/c", "/a/b", Some("/c")),
        ] {
            assert_eq!(behind(path, prefix), expect, "{path} {prefix}");
        }
        assert_eq!(plain_path("//edam//user/"), "/edam/user");
        assert_eq!(plain_path("/"), "");
    }

    fn routes(endpoints: &[&str]) -> Routes {
        let routes = Routes::default();
        for endpoint in endpoints {
            assert!(routes.add(endpoint, &Endpoint::parse(endpoint).unwrap()), "{endpoint}");
        }
        routes
    }

    #[test]
    fn finds_the_longest_path_of_the_origin() {
        let routes =
            routes(&["http://Notes.test", "http://notes.test:80/s1", "https://notes.test/s1", "http://[::1]:8/a"]);
        for (scheme, authority, path, expect) in [
            (Scheme::Http, "notes.test:80", "/x", Some(("http://Notes.test", "/x"))),
            (Scheme::Http, "NOTES.test:80", "/s1/x", Some(("http://notes.test:80/s1", "/x"))),
            (Scheme::Http, "notes.test:80", "/s10", Some(("http://Notes.test", "/s10"))),
            (Scheme::Https, "notes.test:443", "/s1", Some(("https://notes.test/s1", ""))),
            (Scheme::Https, "notes.test:443", "/", None),
            (Scheme::Http, "notes.test:443", "/s1", None),
            (Scheme::Http, "[::1]:8", "/a/b", Some(("http://[::1]:8/a", "/b"))),
        ] {
            let found = routes.find(scheme, authority, path);
            let found = found.as_ref().map(|(endpoint, behind)| (&**endpoint, *behind));
            assert_eq!(found, expect, "{scheme:?} {authority}{path}");
        }
    }

    #[test]
    fn memory_for_made_up_endpoints_is_bounded() {
        let routes = Routes::default();
        let add = |endpoint: String| routes.add(&endpoint, &Endpoint::parse(&endpoint).unwrap());
        let added = (0..PATHS_MAX + 1).filter(|at| add(format!("http://one/{at}"))).count();
        assert_eq!(added, PATHS_MAX);
        assert!(add("http://one/0".to_owned()), "it is known");
        let added = (0..ENDPOINTS_MAX).filter(|at| add(format!("http://h{at}/"))).count();
        assert_eq!(added, ENDPOINTS_MAX - PATHS_MAX);
    }
}
