//! What all tasks of an adapter share.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};

use crate::calls::Calls;
use crate::config::Limits;
use crate::dial::Dial;
use crate::endpoint::{Endpoint, Scheme};
use crate::metrics::count;
use crate::pool::Pool;
use crate::watch::Watch;

/// Most endpoints at one authority that are told apart by their paths. Calls of others pass as unlisted.
const PATHS_MAX: usize = 1024;
/// An adapter that did not answer in time is not dialled for so long: otherwise each call would wait for it again.
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// A path, and the endpoint that it is the path of.
type Placed = (String, Arc<str>);

/// What all tasks of an adapter share.
pub(crate) struct App {
    pub(crate) watch: Watch,
    pub(crate) dial: Dial,
    pub(crate) limits: Limits,
    pub(crate) calls: Option<Calls>,
    pub(crate) pool: Pool,
    /// Becomes true when the adapter is to end.
    pub(crate) drain: watch::Receiver<bool>,
    /// One permit for each connection that may be open.
    pub(crate) slots: Arc<Semaphore>,
    /// Local listeners by what they listen for: an authority, with `https` told apart.
    pub(crate) listeners: tokio::sync::Mutex<HashMap<(Scheme, String), std::net::SocketAddr>>,
    pub(crate) learned_max: usize,
    pub(crate) local: std::net::IpAddr,
    /// Endpoints over HTTP by scheme and authority, the longest path first.
    pub(crate) paths: Mutex<HashMap<(Scheme, String), Vec<Placed>>>,
    /// Adapters that did not answer in time, and since when.
    pub(crate) silent_peers: Mutex<HashMap<String, Instant>>,
}

impl App {
    /// Tells once in a while of an adapter that cannot be reached.
    pub(crate) fn peer_failed(&self, peer: &str, error: &io::Error) {
        let failed = &self.watch.metrics.peers_failed;
        // The first time, and then at powers of two: enough to be seen, too few to flood.
        if failed.load(std::sync::atomic::Ordering::Relaxed).is_power_of_two()
            || failed.load(std::sync::atomic::Ordering::Relaxed) == 0
        {
            self.watch
                .reports
                .note(format!("The adapter at {peer} cannot be reached: {error}. Its service is called plainly"));
        }
        count(failed);
        if error.kind() == io::ErrorKind::TimedOut {
            let now = crate::clock::now();
            let mut silent = self.silent_peers.lock().unwrap_or_else(PoisonError::into_inner);
            silent.retain(|_, since| now.duration_since(*since) < LEFT_ALONE);
            silent.insert(peer.to_owned(), now);
        }
    }

    /// No answer came in time. `peer`: the adapter that was asked. It may be the service behind it that is slow; the next calls ask that alone,
    /// which does no harm then either.
    pub(crate) fn late(&self, peer: Option<&str>) {
        count(&self.watch.metrics.timeouts);
        if let Some(peer) = peer {
            self.peer_failed(peer, &io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time"));
        }
    }

    /// Where the adapter of an endpoint's service is to be dialled, if there is one to be dialled now.
    pub(crate) fn peer(&self, endpoint: &str) -> Option<String> {
        let peer = self.watch.peer(endpoint)?;
        let silent = self.silent_peers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_silent = silent.get(&peer).is_some_and(|since| since.elapsed() < LEFT_ALONE);
        (!is_silent).then_some(peer)
    }

    /// Comes to its end when the adapter is to end.
    pub(crate) async fn ending(&self) {
        let mut drain = self.drain.clone();
        // An error says that the adapter is gone, which is an end as well.
        let _ = drain.wait_for(|ends| *ends).await;
    }

    /// Remembers that an endpoint over HTTP has this authority and path.
    pub(crate) fn add_path(&self, endpoint: &str, parsed: &Endpoint) {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let of = paths.entry((parsed.scheme, parsed.authority())).or_default();
        if of.len() < PATHS_MAX && of.iter().all(|(_, known)| **known != *endpoint) {
            of.push((plain_path(&parsed.path), endpoint.into()));
            of.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        }
    }

    /// The endpoint of a request: of those at its authority the one whose path is the longest that its own begins with. And what of its
    /// path is behind that.
    pub(crate) fn endpoint_of<'p>(
        &self,
        scheme: Scheme,
        authority: &str,
        path: &'p str,
    ) -> Option<(Arc<str>, &'p str)> {
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let of = paths.get(&(scheme, authority.to_owned()))?;
        of.iter().find_map(|(prefix, endpoint)| Some((endpoint.clone(), behind(path, prefix)?)))
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "adapter `{}`", self.watch.label)
    }
}

/// A path without doubled slashes and without one at its end.
fn plain_path(path: &str) -> String {
    let mut plain = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        plain.push('/');
        plain.push_str(part);
    }
    plain
}

/// What is behind the parts of `prefix`, which is plain; `None`: the path does not begin with them.
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
    fn paths_begin_with_others_by_their_parts() {
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
}
