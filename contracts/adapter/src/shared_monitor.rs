//! The monitor behind a lock: events go in as messages pass, reports and endpoints to intercept come out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::ServiceId;
use contract::metadata::{CallContext, ReplyMetadata, RequestMetadata};
use contract::monitor::report::{Kind, ReportVerdict};
use contract::monitor::{Action, Call, Counts, EndpointState, Event, Monitor, Placement, Settings, StepOutput, Ticket};

use crate::config::{Config, ProtocolKind, Unchecked as OnUnchecked};
use crate::decode::{Current, Services};
use crate::endpoint::Endpoint;
use crate::metrics::{Metrics, count};
use crate::refusal::{Refusal, Unchecked};
use crate::reports::Reports;
use crate::routes::Routes;
use crate::store::AnyStore;

/// The monitor, and all that it needs to be asked from many tasks.
#[derive(Debug)]
pub(crate) struct Watch {
    monitor: Mutex<Monitor<AnyStore>>,
    pub(crate) services: Current,
    /// Endpoints over HTTP of which something is promised, by their URLs.
    pub(crate) routes: Routes,
    pub(crate) reports: Reports,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) label: String,
    pub(crate) enforce: bool,
    /// Whether messages that cannot be checked are refused.
    pub(crate) refuses_unchecked: bool,
    pub(crate) fail_open: bool,
    /// A call is looked at where its draw is below this.
    sample_below: u64,
    numbers: AtomicU64,
}

/// What is to become of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It passes. For the other adapter, a block of metadata.
    Pass { ticket: Option<Ticket>, block: Option<Block> },
    /// It is refused.
    Refuse(Refusal),
    /// The adapter itself failed, and is told to let nothing pass then.
    Broken,
}

/// Metadata to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Request(RequestMetadata),
    Reply(ReplyMetadata),
}

impl Watch {
    pub(crate) fn new(
        config: &Config,
        services: Services,
        store: AnyStore,
        reports: Reports,
        metrics: Arc<Metrics>,
    ) -> Self {
        let mut settings = Settings::new(&config.name);
        settings.placement = Placement { requires: config.checks.requires, ensures: config.checks.ensures };
        settings.steps_max = config.checks.steps;
        settings.show_secrets = config.reports.show_secrets;
        let now_s = crate::clock::unix_s();
        let contract = services.contract.clone();
        let mut monitor = Monitor::new(contract.clone(), settings, store, now_s);
        for providing in &config.providing {
            if let Some(service) = contract.service(&providing.service) {
                let peer = providing.adapters_at.as_deref().or(providing.adapters.as_deref());
                // A port that the kernel chooses is known too late to be told.
                let peer = peer.filter(|peer| !peer.ends_with(":0"));
                monitor.configure(&providing.endpoint, service, &[&config.name], peer, now_s);
            }
        }
        for consuming in &config.consuming {
            if let Some(service) = contract.service(&consuming.service) {
                let labels = consuming.labels.iter().map(String::as_str).collect::<Vec<_>>();
                let labels = if labels.is_empty() { vec![contract::metadata::UNKNOWN] } else { labels };
                monitor.configure(&consuming.endpoint, service, &labels, consuming.peer.as_deref(), now_s);
            }
        }
        // All of them where the share is 1: the product is then beyond what 64 bits hold, and the cast saturates.
        let sample_below = (config.checks.sample * 2f64.powi(64)) as u64;
        let promised = monitor.promised().map(|(endpoint, service)| (endpoint.to_owned(), service)).collect::<Vec<_>>();
        let watch = Self {
            monitor: Mutex::new(monitor),
            services: Current::new(services),
            routes: Routes::default(),
            reports,
            metrics,
            label: config.name.clone(),
            enforce: config.checks.enforce,
            refuses_unchecked: config.checks.unchecked == OnUnchecked::Refuse,
            fail_open: config.checks.fail_open,
            sample_below,
            numbers: AtomicU64::new(0),
        };
        // What is configured, and what the store knows of an earlier life.
        promised.iter().for_each(|(endpoint, service)| watch.route(endpoint, *service));
        watch
    }

    /// From now on calls of an endpoint are known by their URLs: whoever comes by the forward proxy, or asks for a longer path, is seen to call it.
    fn route(&self, endpoint: &str, service: ServiceId) {
        let Some(service) = self.services.get(service).filter(|service| service.family != ProtocolKind::Thrift) else {
            return;
        };
        let parsed = Endpoint::parse(endpoint).map(|parsed| parsed.over(service.bare));
        if parsed.is_some_and(|parsed| !self.routes.add(endpoint, &parsed)) {
            count(&self.metrics.routes_over);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Monitor<AnyStore>> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls there were.
    pub(crate) fn calls(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// The number of the next call, and whether it is looked at.
    pub(crate) fn next_call(&self) -> (u64, bool) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        // SplitMix64's finish: neighbours in, unrelated numbers out.
        let mut draw = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        draw = (draw ^ (draw >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        draw = (draw ^ (draw >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        draw ^= draw >> 31;
        (number, self.sample_below == u64::MAX || draw < self.sample_below)
    }

    pub(crate) fn standing(&self, endpoint: &str) -> EndpointState {
        self.lock().standing(endpoint)
    }

    pub(crate) fn peer(&self, endpoint: &str) -> Option<String> {
        self.lock().peer(endpoint).map(str::to_owned)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts()
    }

    /// What was counted, as Prometheus reads it.
    pub(crate) fn metrics_text(&self) -> String {
        let (counts, tallies) = self.with(|monitor| (monitor.counts(), monitor.tallies()));
        self.metrics.text(counts, &tallies)
    }

    /// From now on another contract holds, all at once: whoever is recognised is held to the one that his number is of.
    pub(crate) fn renew(&self, services: Services) {
        let mut monitor = self.lock();
        monitor.store().renew(services.contract.hash());
        monitor.renew(services.contract.clone());
        self.services.renew(services);
        let promised = monitor.promised().map(|(endpoint, service)| (endpoint.to_owned(), service)).collect::<Vec<_>>();
        drop(monitor);
        // Services of the new contract may be asked over HTTP where the old one knew none.
        promised.iter().for_each(|(endpoint, service)| self.route(endpoint, *service));
    }

    /// Does something with the monitor that is no step: looking at its entries, flushing its store.
    pub(crate) fn with<T>(&self, with: impl FnOnce(&mut Monitor<AnyStore>) -> T) -> T {
        with(&mut self.lock())
    }

    /// Takes one event and reports what the monitor found. `may_be_undecided`: clauses without a verdict do not
    /// refuse this message.
    pub(crate) fn step(&self, event: Event<'_>, call: u64, may_be_undecided: bool) -> Step {
        let now_s = crate::clock::unix_s();
        let stepped = catch_unwind(AssertUnwindSafe(|| self.lock().step(event, now_s)));
        match stepped {
            Ok(stepped) => self.stepped(stepped, call, may_be_undecided),
            Err(_) => self.broken(),
        }
    }

    /// The adapter of the other side cannot be reached: what it would have asked is asked here.
    pub(crate) fn alone(&self, call: Call<'_>, ticket: &mut Ticket, number: u64) -> Step {
        let now_s = crate::clock::unix_s();
        match catch_unwind(AssertUnwindSafe(|| self.lock().go_alone(call, ticket, now_s))) {
            Ok(stepped) => self.stepped(stepped, number, false),
            Err(_) => self.broken(),
        }
    }

    /// Runs what reads foreign bytes: a mistake of ours in it costs the check, never the call.
    pub(crate) fn guarded<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(run)).map_err(|_| count(&self.metrics.panics)).ok()
    }

    pub(crate) fn broken(&self) -> Step {
        count(&self.metrics.panics);
        if self.fail_open { Step::Pass { ticket: None, block: None } } else { Step::Broken }
    }

    fn stepped(&self, stepped: StepOutput, call: u64, may_be_undecided: bool) -> Step {
        let refusal = self.refusal(&stepped, may_be_undecided);
        let mut block = None;
        for action in stepped.actions {
            match action {
                Action::Forward => {}
                // Its listener is opened when somebody asks for it: see `crate::listen`.
                Action::Intercept { endpoint, service, .. } => self.route(&endpoint, service),
                Action::ForwardRequest { metadata, .. } => block = Some(Block::Request(metadata)),
                Action::ForwardReply { metadata } => block = Some(Block::Reply(metadata)),
            }
        }
        for report in stepped.reports {
            self.reports.tell(report, call);
        }
        match refusal {
            Some(refusal) => Step::Refuse(refusal),
            None => Step::Pass { ticket: stepped.ticket, block },
        }
    }

    /// Whether `enforce` refuses a message, counted.
    fn refusal(&self, stepped: &StepOutput, may_be_undecided: bool) -> Option<Refusal> {
        let failed = stepped.reports.iter().find(|report| report.found == ReportVerdict::Fails);
        if let Some(report) = failed.filter(|_| self.enforce) {
            count(&self.metrics.refused_calls);
            return Some(Refusal::Violated(report.clause.clone()));
        }
        let is_clause = |kind| matches!(kind, Kind::Precondition | Kind::Postcondition | Kind::Exception);
        let undecided =
            stepped.reports.iter().find(|report| is_clause(report.kind) && report.found != ReportVerdict::Fails);
        let undecided = undecided.filter(|_| self.refuses_unchecked && !may_be_undecided)?;
        self.metrics.refuse(Unchecked::Undecided);
        Some(Refusal::Undecided(undecided.clause.clone()))
    }

    /// Refuses a message that cannot be checked, if the configuration says so.
    pub(crate) fn refuse_unchecked(&self, why: Unchecked) -> Option<Refusal> {
        self.refuses_unchecked.then(|| {
            self.metrics.refuse(why);
            Refusal::Unchecked(why)
        })
    }
}

/// What both ends know of a call.
pub(crate) fn call_context<'k>(receiver: &'k str, service: &'k str, sender: &'k str) -> CallContext<'k> {
    CallContext { receiver, service, sender }
}
