//! The monitor behind a lock, with the services and routes to which calls are matched.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use contract::ServiceId;
use contract::monitor::report::{Kind, Report, ReportVerdict};
use contract::monitor::{EndpointState, Monitor, Settings, StepOutput};

use crate::config::{CheckSettings, Config, ProtocolKind};
use crate::contract_services::{Service, Services};
use crate::endpoint::Endpoint;
use crate::metrics::{Metrics, count};
use crate::reports::Reports;
use crate::routes::Routes;
use crate::store::EntryStore;
use crate::unchecked_and_refusal_reasons::{Refusal, Unchecked};

pub(crate) struct Watch {
    monitor: Mutex<Monitor<EntryStore>>,
    services: RwLock<Services>,
    pub(crate) routes: Routes,
    pub(crate) reports: Arc<Reports>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) label: String,
    pub(crate) checks: CheckSettings,
    /// A call is checked if its random 64-bit draw is below this bound.
    sample_below: u64,
    pub(crate) numbers: AtomicU64,
}

/// The metadata to send with a message, if any, or the reason why the message is not forwarded.
pub(crate) type Judged = Result<Option<Vec<u8>>, Refusal>;

impl Watch {
    pub(crate) fn new(config: &Config, services: Services, store: EntryStore, reports: Arc<Reports>) -> Self {
        let CheckSettings { requires, ensures, steps: steps_max, .. } = config.checks;
        let (label, show_secrets) = (config.name.clone(), config.reports.show_secrets);
        let settings = Settings { label, requires, ensures, steps_max, show_secrets };
        let now_s = crate::clock::unix_s();
        let contract = services.contract.clone();
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
        // For a fraction of 1, the product exceeds 64 bits, and the cast saturates.
        let sample_below = (config.checks.sample * 2f64.powi(64)) as u64;
        let (monitor, services) = (Mutex::new(monitor), RwLock::new(services));
        let (routes, numbers, metrics) = (Routes::default(), AtomicU64::new(0), reports.metrics.clone());
        let (label, checks) = (config.name.clone(), config.checks);
        let watch = Self { monitor, services, routes, reports, metrics, label, checks, sample_below, numbers };
        watch.route_promised();
        watch
    }

    fn route_promised(&self) {
        let own = |(endpoint, service): (&str, ServiceId)| (endpoint.to_owned(), service);
        let promised = self.lock().promised().map(own).collect::<Vec<_>>();
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
            count(&self.metrics.routes_over);
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Monitor<EntryStore>> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn services(&self) -> RwLockReadGuard<'_, Services> {
        self.services.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_call(&self) -> (u64, bool) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        // The finalizer of SplitMix64 turns consecutive numbers into unrelated ones.
        let mut draw = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        draw = (draw ^ (draw >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        draw = (draw ^ (draw >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        draw ^= draw >> 31;
        (number, self.sample_below == u64::MAX || draw < self.sample_below)
    }

    /// Returns an endpoint's service, if known. Fails if claims conflict and unchecked calls are rejected.
    pub(crate) fn service_or_refusal(&self, endpoint: &str) -> Result<Option<Arc<Service>>, Refusal> {
        let standing = self.lock().standing(endpoint);
        match standing {
            EndpointState::Service(id) => Ok(self.services().get(id)),
            EndpointState::Unlisted => Ok(None),
            EndpointState::Conflict => self.refuse_unchecked(Unchecked::Conflict).map_or(Ok(None), Err),
        }
    }

    pub(crate) fn service(&self, endpoint: &str) -> Option<Arc<Service>> {
        let EndpointState::Service(id) = self.lock().standing(endpoint) else { return None };
        self.services().get(id)
    }

    pub(crate) fn peer(&self, endpoint: &str) -> Option<String> {
        self.lock().peer(endpoint).map(str::to_owned)
    }

    pub(crate) fn metrics_text(&self) -> String {
        let counts = self.lock().counts();
        let tallies = self.lock().tallies();
        self.metrics.text(counts, &tallies)
    }

    /// Replaces the contract atomically. A call keeps the contract of its service number.
    pub(crate) fn renew(&self, services: Services) {
        let mut monitor = self.lock();
        monitor.store().renew(services.contract.hash);
        monitor.renew(services.contract.clone());
        self.services.write().unwrap_or_else(PoisonError::into_inner).renew(services);
        drop(monitor);
        // HTTP services that only the new contract lists need routes.
        self.route_promised();
    }

    /// Runs code that reads untrusted bytes. `None` after a panic, so that a bug costs the check but never the call.
    pub(crate) fn guarded<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(run)).map_err(|_| count(&self.metrics.panics)).ok()
    }

    /// Processes a message and reports the findings. With `may_be_undecided`, undecided clauses pass.
    pub(crate) fn step(
        &self,
        call: u64,
        may_be_undecided: bool,
        step: impl FnOnce(&mut Monitor<EntryStore>, u64) -> StepOutput,
    ) -> Result<StepOutput, Refusal> {
        let Some(mut output) = self.guarded(|| step(&mut self.lock(), crate::clock::unix_s())) else {
            return if self.checks.fail_open { Ok(StepOutput::default()) } else { Err(Refusal::Broken) };
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
        if let Some(report) = failed.filter(|_| self.checks.enforce) {
            count(&self.metrics.refused_calls);
            return Some(Refusal::Violated(report.clause.clone()));
        }
        let is_clause = |kind| matches!(kind, Kind::Precondition | Kind::Postcondition | Kind::Exception);
        let undecided = reports.iter().find(|report| is_clause(report.kind) && report.found != ReportVerdict::Fails);
        let undecided = undecided.filter(|_| self.checks.refuses_unchecked && !may_be_undecided)?;
        self.metrics.refuse(Unchecked::Undecided);
        Some(Refusal::Undecided(undecided.clause.clone()))
    }

    /// Returns the refusal of a message that cannot be checked, and counts it. `None` if such messages pass.
    pub(crate) fn refuse_unchecked(&self, why: Unchecked) -> Option<Refusal> {
        self.checks.refuses_unchecked.then(|| {
            self.metrics.refuse(why);
            Refusal::Unchecked(why)
        })
    }
}
