//! The state that all connections of an adapter share.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};

use crate::call_log_csv::Line;
use crate::config::Limits;
use crate::connection_pool::Pool;
use crate::decode::{Content, Unread};
use crate::dial_allowed_endpoint::Dial;
use crate::endpoint::Scheme;
use crate::memory_budget::Budget;
use crate::message_queue_thread::Worker;
use crate::metrics::{Skip, count, is_notable, value_of};
use crate::shared_monitor::Watch;

/// Time for which an adapter is bypassed after a timeout. Otherwise, each call would wait for the timeout.
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// Maximum number of reported content codings, whose names come from peers.
const CODINGS_MAX: usize = 16;
const CODING_MAX_BYTES: usize = 64;

/// Maximum number of reported unlisted operations, whose names come from peers.
const UNLISTED_MAX: usize = 64;
const UNLISTED_MAX_BYTES: usize = 200;

pub(crate) struct App {
    pub(crate) watch: Watch,
    pub(crate) dial: Dial,
    pub(crate) limits: Limits,
    pub(crate) budget: Arc<Budget>,
    pub(crate) calls: Option<Worker<Line>>,
    pub(crate) pool: Pool,
    pub(crate) ends: watch::Sender<bool>,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) listeners: tokio::sync::Mutex<HashMap<(Scheme, String), std::net::SocketAddr>>,
    pub(crate) learned_max: usize,
    pub(crate) local: std::net::IpAddr,
    pub(crate) unread_codings: Mutex<HashSet<String>>,
    pub(crate) unlisted: Mutex<HashSet<(String, String)>>,
    /// Adapters that timed out, each with the time of the last timeout.
    pub(crate) silent_peers: Mutex<HashMap<String, Instant>>,
}

impl App {
    /// Counts an unreachable adapter, and bypasses it for 10 s after a timeout. Reports counts that are powers of two.
    pub(crate) fn peer_failed(&self, peer: &str, error: &io::Error) {
        if is_notable(&self.watch.metrics.peers_failed) {
            let what = match error.kind() {
                io::ErrorKind::TimedOut => format!("The adapter at {peer} did not respond in time"),
                _ => format!("Cannot reach the adapter at {peer}: {error}"),
            };
            self.watch.reports.note(format!("{what}. Its service is called without metadata"));
        }
        if error.kind() == io::ErrorKind::TimedOut {
            let now = crate::clock::now();
            let mut silent = self.silent_peers.lock().unwrap_or_else(PoisonError::into_inner);
            silent.retain(|_, since| now.duration_since(*since) < LEFT_ALONE);
            silent.insert(peer.to_owned(), now);
        }
    }

    /// Counts a response timeout. If `peer` is given, it counts as unreachable: a live adapter reports slow services.
    pub(crate) fn late(&self, peer: Option<&str>) {
        count(&self.watch.metrics.timeouts);
        if let Some(peer) = peer {
            self.peer_failed(peer, &io::Error::new(io::ErrorKind::TimedOut, "no response in time"));
        }
    }

    /// Address of the adapter of an endpoint's service. `None` if unknown, or if the adapter has timed out recently.
    pub(crate) fn peer(&self, endpoint: &str) -> Option<String> {
        let peer = self.watch.peer(endpoint)?;
        let silent = self.silent_peers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_silent = silent.get(&peer).is_some_and(|since| since.elapsed() < LEFT_ALONE);
        (!is_silent).then_some(peer)
    }

    /// Counts an endpoint left without a listener by `limits.listeners`. Reports counts that are powers of two.
    pub(crate) fn listeners_over(&self, endpoint: &str) {
        if is_notable(&self.watch.metrics.listeners_over) {
            self.watch.reports.note(format!(
                "`limits.listeners` is reached: {endpoint} is resolved to itself, and its calls are not checked. Set \
                 `limits.listeners` above {}, or route the party through `proxy`",
                self.limits.listeners
            ));
        }
    }

    /// Counts a call that the contract does not list, and reports the first call of each operation.
    pub(crate) fn unlisted(&self, service: &str, operation: &str) {
        self.watch.metrics.skip(Skip::Unlisted);
        if operation.len() > UNLISTED_MAX_BYTES {
            return;
        }
        let mut known = self.unlisted.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < UNLISTED_MAX && known.insert((service.to_owned(), operation.to_owned())) {
            let operation = operation.escape_debug();
            self.watch.reports.note(format!("`{service}` has no operation `{operation}`: its calls pass unchecked"));
        }
    }

    /// Decodes a body. Reports each unsupported coding once, and bodies over the limit if [`is_notable`] allows it.
    pub(crate) fn decoded<'b>(&self, headers: &hyper::HeaderMap, body: &'b [u8]) -> Content<'b> {
        let content = crate::decode::decompressed(headers, body, self.limits.body_bytes);
        match &content {
            Ok(_) | Err(Unread::Malformed(_)) => {}
            Err(Unread::Over) => {
                if is_notable(&self.watch.metrics.decoded_over) {
                    self.watch.reports.note(format!(
                        "A body of {} bytes exceeds `limits.body`, {} bytes, when decoded, and passed unchecked",
                        body.len(),
                        self.limits.body_bytes
                    ));
                }
            }
            Err(Unread::Coding(coding)) => {
                let mut known = self.unread_codings.lock().unwrap_or_else(PoisonError::into_inner);
                if known.len() < CODINGS_MAX && coding.len() <= CODING_MAX_BYTES && known.insert(coding.clone()) {
                    self.watch.reports.note(format!(
                        "Bodies are encoded with `{}`, which is not supported: clauses about them are unknown. \
                         Supported: `gzip`, `deflate` and `identity`",
                        coding.escape_debug()
                    ));
                }
            }
        }
        content
    }

    pub(crate) fn with_totals(&self, line: Line) -> Line {
        let metrics = &self.watch.metrics;
        let [store_bytes, store_file_bytes] = [&metrics.store_bytes, &metrics.store_file_bytes].map(value_of);
        Line { entries: self.watch.lock().counts().entries, store_bytes, store_file_bytes, ..line }
    }

    /// Waits for a handshake. Fails with `TimedOut` after `limits.connect`.
    pub(crate) async fn shaken<T>(&self, shaking: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::time::timeout(self.limits.connect, shaking).await.unwrap_or_else(|_| {
            count(&self.watch.metrics.timeouts);
            Err(io::ErrorKind::TimedOut.into())
        })
    }

    pub(crate) async fn ending(&self) {
        // The sender lives as long as `self`, so waiting never fails.
        let _ = self.ends.subscribe().wait_for(|ends| *ends).await;
    }
}
