//! The state that all connections of an adapter share: the monitor, and the services and routes to which calls are matched.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use contract::monitor::report::{Kind, Report, ReportVerdict};
use contract::monitor::{EndpointState, Monitor, Settings, StepOutput};
use contract::{Contract, ServiceId};
use tokio::sync::{Semaphore, watch};

use crate::call_log_csv::Line;
use crate::config::{CheckSettings, Config, ProtocolKind};
use crate::connection_pool::Pool;
use crate::contract_services::{Op, Service, Services};
use crate::counted_stream::OwnSockets;
use crate::decode::{Content, Request, RequestKind, Unread};
use crate::endpoint::{Endpoint, Scheme};
use crate::memory_budget::Budget;
use crate::message_queue_thread::Worker;
use crate::metrics::{Metrics, Skip, is_notable};
use crate::reports::Reports;
use crate::routes::Routes;
use crate::store::EntryStore;
use crate::tls::Tls;
use crate::unchecked_and_refusal_reasons::{Refusal, Unchecked};

/// Time for which an adapter is bypassed after a timeout. Otherwise, each call would wait for the timeout.
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// Maximum number of reported content codings, whose names come from peers.
const CODINGS_MAX: usize = 16;
const CODING_MAX_BYTES: usize = 64;

/// Maximum number of reported unlisted operations, whose names come from peers.
const UNLISTED_MAX: usize = 64;
const UNLISTED_MAX_BYTES: usize = 200;

pub(crate) struct App {
    pub(crate) config: Config,
    monitor: Mutex<Monitor<EntryStore>>,
    services: RwLock<Services>,
    pub(crate) routes: Routes,
    pub(crate) reports: Arc<Reports>,
    pub(crate) metrics: Arc<Metrics>,
    /// A call is checked if its random 64-bit draw is below this bound.
    sample_below: u64,
    pub(crate) numbers: AtomicU64,
    pub(crate) tls: Tls,
    /// The admin address, to which the adapter's own proxy must not connect.
    pub(crate) admin: OnceLock<SocketAddr>,
    /// Local addresses of connections to other adapters, possibly to this adapter itself.
    pub(crate) own_sockets: OwnSockets,
    pub(crate) budget: Arc<Budget>,
    pub(crate) calls: Option<Worker<Line>>,
    pub(crate) pool: Pool,
    pub(crate) ends: watch::Sender<bool>,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) listeners: tokio::sync::Mutex<HashMap<(Scheme, String), SocketAddr>>,
    unread_codings: Mutex<HashSet<String>>,
    unlisted: Mutex<HashSet<(String, String)>>,
    /// Adapters that timed out, each with the time of the last timeout.
    silent_peers: Mutex<HashMap<String, Instant>>,
}

/// The metadata to send with a message, if any, or the reason why the message is not forwarded.
pub(crate) type Judged = Result<Option<Vec<u8>>, Refusal>;

impl App {
    pub(crate) fn new(
        config: Config,
        services: Services,
        store: EntryStore,
        reports: Arc<Reports>,
        tls: Tls,
        calls: Option<Worker<Line>>,
    ) -> Arc<Self> {
        let limits = config.limits;
        let app = Self {
            monitor: Mutex::new(monitor(&config, &services.contract, store)),
            services: RwLock::new(services),
            routes: Routes::default(),
            metrics: reports.metrics.clone(),
            reports,
            // For a fraction of 1, the product exceeds 64 bits, and the cast saturates.
            sample_below: (config.checks.sample * 2f64.powi(64)) as u64,
            numbers: AtomicU64::new(0),
            tls,
            admin: OnceLock::new(),
            own_sockets: OwnSockets::default(),
            budget: Budget::new(limits.bodies_bytes),
            calls,
            pool: Pool::new(limits.idle),
            ends: watch::Sender::new(false),
            slots: Arc::new(Semaphore::new(limits.connections)),
            listeners: tokio::sync::Mutex::default(),
            unread_codings: Mutex::default(),
            unlisted: Mutex::default(),
            silent_peers: Mutex::default(),
            config,
        };
        app.route_promised();
        Arc::new(app)
    }

    fn route_promised(&self) {
        let own = |(endpoint, service): (&str, ServiceId)| (endpoint.to_owned(), service);
        let promised = self.monitor().promised().map(own).collect::<Vec<_>>();
        promised.iter().for_each(|(endpoint, service)| self.route(endpoint, *service));
    }

    /// Registers an endpoint's URL, so that calls through the forward proxy or to longer paths match it.
    fn route(&self, endpoint: &str, service: ServiceId) {
        let Some(service) = self.services().get(service).filter(|service| service.family != ProtocolKind::Thrift)
        else {
            return;
        };
        let parsed = Endpoint::parse(endpoint).map(|parsed| parsed.over(service.bare));
        if parsed.is_some_and(|parsed| !self.routes.add(endpoint, &parsed)) {
            self.metrics.routes_over.inc();
        }
    }

    pub(crate) fn monitor(&self) -> MutexGuard<'_, Monitor<EntryStore>> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn services(&self) -> RwLockReadGuard<'_, Services> {
        self.services.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_call(&self) -> (u64, bool) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        // Hashes of consecutive numbers are unrelated.
        let draw = || BuildHasherDefault::<DefaultHasher>::default().hash_one(number);
        (number, self.sample_below == u64::MAX || draw() < self.sample_below)
    }

    /// Returns an endpoint's service, if known. Fails if claims conflict and unchecked calls are rejected.
    pub(crate) fn service_or_refusal(&self, endpoint: &str) -> Result<Option<Arc<Service>>, Refusal> {
        let standing = self.monitor().standing(endpoint);
        match standing {
            EndpointState::Service(id) => Ok(self.services().get(id)),
            EndpointState::Unlisted => Ok(None),
            EndpointState::Conflict => self.refuse_unchecked(Unchecked::Conflict).map(|()| None),
        }
    }

    pub(crate) fn service(&self, endpoint: &str) -> Option<Arc<Service>> {
        let EndpointState::Service(id) = self.monitor().standing(endpoint) else { return None };
        self.services().get(id)
    }

    pub(crate) fn peer(&self, endpoint: &str) -> Option<String> {
        self.monitor().peer(endpoint).map(str::to_owned)
    }

    pub(crate) fn metrics_text(&self) -> String {
        let counts = self.monitor().counts();
        let tallies = self.monitor().tallies();
        self.metrics.text(counts, &tallies)
    }

    /// Replaces the contract atomically. A call keeps the contract of its service number.
    pub(crate) fn renew(&self, services: Services) {
        let mut monitor = self.monitor();
        monitor.store().renew(services.contract.hash);
        monitor.renew(services.contract.clone());
        self.services.write().unwrap_or_else(PoisonError::into_inner).renew(services);
        drop(monitor);
        // HTTP services that only the new contract lists need routes.
        self.route_promised();
    }

    /// Runs code that reads untrusted bytes. `None` after a panic, so that a bug costs the check but never the call.
    pub(crate) fn guarded<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(run)).map_err(|_| self.metrics.panics.inc()).ok()
    }

    /// Processes a message and reports the findings. With `may_be_undecided`, undecided clauses pass.
    pub(crate) fn step(
        &self,
        call: u64,
        may_be_undecided: bool,
        step: impl FnOnce(&mut Monitor<EntryStore>, u64) -> StepOutput,
    ) -> Result<StepOutput, Refusal> {
        let Some(mut output) = self.guarded(|| step(&mut self.monitor(), crate::clock::unix_s())) else {
            return if self.config.checks.fail_open { Ok(StepOutput::default()) } else { Err(Refusal::Broken) };
        };
        let refusal = self.refusal(&output.reports, may_be_undecided);
        // A listener for the endpoint is opened only on request (see `crate::listen`).
        output.intercepts.drain(..).for_each(|(endpoint, service)| self.route(&endpoint, service));
        output.reports.drain(..).for_each(|report| self.reports.tell(report, call));
        refusal.map_or(Ok(output), Err)
    }

    /// Returns why `enforce` rejects a message with these reports, and counts the rejection. `None` if it passes.
    fn refusal(&self, reports: &[Report], may_be_undecided: bool) -> Option<Refusal> {
        let failed = reports.iter().find(|report| report.found == ReportVerdict::Fails);
        if let Some(report) = failed.filter(|_| self.config.checks.enforce) {
            self.metrics.refused_calls.inc();
            return Some(Refusal::Violated(report.clause.clone()));
        }
        let is_clause = |kind| matches!(kind, Kind::Precondition | Kind::Postcondition | Kind::Exception);
        let undecided = reports.iter().find(|report| is_clause(report.kind) && report.found != ReportVerdict::Fails);
        let undecided = undecided.filter(|_| self.config.checks.refuses_unchecked && !may_be_undecided)?;
        self.metrics.refuse(Unchecked::Undecided);
        Some(Refusal::Undecided(undecided.clause.clone()))
    }

    /// Fails, after counting the refusal, if messages that cannot be checked are rejected.
    pub(crate) fn refuse_unchecked(&self, why: Unchecked) -> Result<(), Refusal> {
        if !self.config.checks.refuses_unchecked {
            return Ok(());
        }
        self.metrics.refuse(why);
        Err(Refusal::Unchecked(why))
    }

    /// Counts an unreachable adapter, and bypasses it for 10 s after a timeout. Reports counts that are powers of two.
    pub(crate) fn peer_failed(&self, peer: &str, error: &io::Error) {
        if is_notable(&self.metrics.peers_failed) {
            let what = match error.kind() {
                io::ErrorKind::TimedOut => format!("The adapter at {peer} did not respond in time"),
                _ => format!("Cannot reach the adapter at {peer}: {error}"),
            };
            self.reports.note(format!("{what}. Its service is called without metadata"));
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
        self.metrics.timeouts.inc();
        if let Some(peer) = peer {
            self.peer_failed(peer, &io::Error::new(io::ErrorKind::TimedOut, "no response in time"));
        }
    }

    /// Address of the adapter of an endpoint's service. `None` if unknown, or if the adapter has timed out recently.
    pub(crate) fn live_peer(&self, endpoint: &str) -> Option<String> {
        let peer = self.peer(endpoint)?;
        let silent = self.silent_peers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_silent = silent.get(&peer).is_some_and(|since| since.elapsed() < LEFT_ALONE);
        (!is_silent).then_some(peer)
    }

    /// Counts an endpoint left without a listener by `limits.listeners`. Reports counts that are powers of two.
    pub(crate) fn listeners_over(&self, endpoint: &str) {
        if is_notable(&self.metrics.listeners_over) {
            self.reports.note(format!(
                "`limits.listeners` is reached: {endpoint} is resolved to itself, and its calls are not checked. Set \
                 `limits.listeners` above {}, or route the party through `proxy`",
                self.config.limits.listeners
            ));
        }
    }

    /// Counts a call that the contract does not list, and reports the first call of each operation.
    pub(crate) fn unlisted(&self, service: &str, operation: &str) {
        self.metrics.skip(Skip::Unlisted);
        if operation.len() > UNLISTED_MAX_BYTES {
            return;
        }
        let mut known = self.unlisted.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < UNLISTED_MAX && known.insert((service.to_owned(), operation.to_owned())) {
            let operation = operation.escape_debug();
            self.reports.note(format!("`{service}` has no operation `{operation}`: its calls pass unchecked"));
        }
    }

    /// Returns the operation and the arguments of a request. `None`, after counting the request, if it passes unchecked
    /// because they are unknown. `called` is `None` after a panic.
    pub(crate) fn known_request<'m>(
        &self,
        service: &Service,
        called: Option<RequestKind<'m>>,
    ) -> Result<Option<(Arc<Op>, Request<'m>)>, Refusal> {
        match called {
            Some(RequestKind::Known(op, request)) => return Ok(Some((op, request))),
            Some(RequestKind::Unlisted(operation)) => self.unlisted(&service.name, &operation),
            Some(RequestKind::Unreadable) => {
                self.refuse_unchecked(Unchecked::Unreadable)?;
                self.metrics.skip(Skip::Unreadable);
            }
            None if !self.config.checks.fail_open => return Err(Refusal::Broken),
            None => self.metrics.skip(Skip::Failed),
        }
        Ok(None)
    }

    /// Decodes a body. Reports each unsupported coding once, and bodies over the limit if [`is_notable`] allows it.
    pub(crate) fn decoded<'b>(&self, headers: &hyper::HeaderMap, body: &'b [u8]) -> Content<'b> {
        let content = crate::decode::decompressed(headers, body, self.config.limits.body_bytes);
        match &content {
            Err(Unread::Over) if is_notable(&self.metrics.decoded_over) => self.reports.note(format!(
                "A body of {} bytes exceeds `limits.body`, {} bytes, when decoded, and passed unchecked",
                body.len(),
                self.config.limits.body_bytes
            )),
            Err(Unread::Coding(coding)) => {
                let mut known = self.unread_codings.lock().unwrap_or_else(PoisonError::into_inner);
                if known.len() < CODINGS_MAX && coding.len() <= CODING_MAX_BYTES && known.insert(coding.clone()) {
                    self.reports.note(format!(
                        "Bodies are encoded with `{}`, which is not supported: clauses about them are unknown. \
                         Supported: `gzip`, `deflate` and `identity`",
                        coding.escape_debug()
                    ));
                }
            }
            _ => {}
        }
        content
    }

    pub(crate) fn with_totals(&self, line: Line) -> Line {
        let metrics = &self.metrics;
        let [store_bytes, store_file_bytes] =
            [&metrics.store_bytes, &metrics.store_file_bytes].map(|bytes| bytes.get() as u64);
        Line { entries: self.monitor().counts().entries, store_bytes, store_file_bytes, ..line }
    }

    /// Waits for a handshake. Fails with `TimedOut` after `limits.connect`.
    pub(crate) async fn shaken<T>(&self, shaking: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::time::timeout(self.config.limits.connect, shaking).await.unwrap_or_else(|_| {
            self.metrics.timeouts.inc();
            Err(io::ErrorKind::TimedOut.into())
        })
    }

    pub(crate) async fn ending(&self) {
        // The sender lives as long as `self`, so waiting never fails.
        let _ = self.ends.subscribe().wait_for(|ends| *ends).await;
    }
}

/// Creates the monitor with the configured endpoints.
fn monitor(config: &Config, contract: &Arc<Contract>, store: EntryStore) -> Monitor<EntryStore> {
    let CheckSettings { requires, ensures, steps: steps_max, .. } = config.checks;
    let (label, show_secrets) = (config.name.clone(), config.reports.show_secrets);
    let settings = Settings { label, requires, ensures, steps_max, show_secrets };
    let now_s = crate::clock::unix_s();
    let mut monitor = Monitor::new(contract.clone(), settings, store, now_s);
    for providing in &config.providing {
        if let Some(service) = contract.service(&providing.service) {
            let peer = providing.adapters_at.as_deref().or(providing.adapters.as_deref());
            // If the kernel chooses the port, it is known too late to be announced.
            let peer = peer.filter(|peer| !peer.ends_with(":0"));
            monitor.configure(&providing.endpoint.text, service, &[&config.name], peer, now_s);
        }
    }
    for consuming in &config.consuming {
        if let Some(service) = contract.service(&consuming.service) {
            let labels = consuming.labels.iter().map(String::as_str).collect::<Vec<_>>();
            let labels = if labels.is_empty() { vec![contract::metadata::UNKNOWN] } else { labels };
            monitor.configure(&consuming.endpoint.text, service, &labels, consuming.peer.as_deref(), now_s);
        }
    }
    monitor
}
