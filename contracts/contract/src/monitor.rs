//! Checks contracts and tracks who vouches for services, as a state and a step function without sockets, files or
//! clocks. Source of the rules: Waye, Chong and Dimoulas, "Whip: Higher-Order Contracts for Modern Services", ICFP
//! 2017. If a request introduces a known entry, the paper's text and pseudo-code differ; the monitor follows the text.

mod contract_versions_and_tallies;
mod entry_store;
mod introduced_entries;
mod judge;
mod log_structured_map;
pub mod report;
mod service_entry;

use std::collections::HashMap;
use std::sync::Arc;

use self::contract_versions_and_tallies::Generations;
pub use self::contract_versions_and_tallies::{OTHER, Tallies, Tally, VERDICTS};
pub use self::entry_store::{Forgotten, Key, MemoryStore, Store};
use self::introduced_entries::{Member, Voucher, Vouching};
use self::report::{Kind, Report, ReportVerdict};
use self::service_entry::{Entry, NameId, Origin};
pub use self::service_entry::{Shown, show_entry};
use crate::clause::ServiceId;
use crate::contract::{Contract, OperationId};
use crate::eval::{Env, Scratch};
use crate::message_values::Value;
use crate::metadata::{Identified, RequestMetadata, UNKNOWN};
use crate::syntax::Direction;

/// The adapters that check a clause of a message. If only one side has an adapter, that adapter checks all clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The adapter of the message's sender.
    Sender,
    /// The adapter of the message's receiver.
    Receiver,
    /// Both adapters.
    Both,
}

/// Settings of a monitor: its label, the sides that check, and limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The label of this adapter.
    pub label: String,
    /// The adapters that check `requires`, on the request.
    pub requires: Side,
    /// The adapters that check `ensures` and `on_error`, on the reply.
    pub ensures: Side,
    /// Maximum number of steps per clause.
    pub steps_max: u64,
    /// Whether reports show values with secret-sounding names.
    pub show_secrets: bool,
}

/// The monitor's knowledge of the service at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointState {
    /// The endpoint is unknown, so its messages pass unchecked.
    Unlisted,
    /// The endpoint belongs to this service.
    Service(ServiceId),
    /// Several services are claimed, and adapters confirm none or more than one of them. Messages pass unchecked.
    Conflict,
}

/// A call of an operation at an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The called endpoint.
    pub endpoint: &'a str,
    /// The called operation, of the service that [`Monitor::standing`] returned. The caller must hold its contract until
    /// the reply, so that [`Monitor::renew`] keeps the contract.
    pub operation: OperationId,
    /// The arguments, in the order of [`crate::Contract::params`].
    pub args: &'a [Value<'a>],
}

/// The outcome of a call: a result, or an exception or fault.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The result of the call, or its exception or fault if `is_error`.
    pub value: Value<'a>,
    /// Whether `value` is a declared exception or a fault, to which `on_error` applies.
    pub is_error: bool,
}

impl Outcome<'_> {
    fn kind(self) -> Kind {
        if self.is_error { Kind::Exception } else { Kind::Postcondition }
    }
}

/// State of a call until its reply, called the request entry in Whip's paper. A ticket may be dropped at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// The invoked entry, or `None` if its index has no value or there is no room for its names.
    pub(crate) entry: Option<Key>,
    pub(crate) index: Option<String>,
    pub(crate) secret: bool,
    /// The labels that vouched for the entry at the time of the request.
    pub(crate) labels: Vec<u32>,
    /// Whether the vouching labels were forgotten or the index is unknown.
    pub(crate) is_orphan: bool,
    /// Whether the other side of the call has an adapter. If not, this side checks all clauses.
    pub enhanced: bool,
    /// The number of the label or address of the other side's adapter; `None` if unknown.
    pub(crate) other: Option<u32>,
    /// Label of the request's sender, or `unknown`. Both ends pass it as [`crate::metadata::CallContext::sender`].
    pub sender: String,
}

impl Ticket {
    fn unvouched(sender: String) -> Self {
        Self { labels: vec![0], is_orphan: true, sender, ..Self::default() }
    }
}

/// The results of processing one message.
#[derive(Clone, Debug, Default)]
pub struct StepOutput {
    /// Endpoints to intercept from now on, and their services.
    pub intercepts: Vec<(String, ServiceId)>,
    /// Reports of failed and undecided clauses, and of conflicts.
    pub reports: Vec<Report>,
    /// State to pass with the reply. `None` after a reply, and for a call that passes unchecked.
    pub ticket: Option<Ticket>,
    /// Metadata to send with the request, if it goes to the adapter at [`Monitor::peer`].
    pub request: Option<RequestMetadata>,
    /// Metadata to send with the reply, if the calling adapter sent some with its request.
    pub reply: Option<Vec<Identified>>,
}

/// Counters of a monitor, as returned by [`Monitor::counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that passed unchecked, mainly because of a conflict.
    pub bypassed: u64,
    /// Entries that were new to the store.
    pub entries: u64,
    /// Entries of received metadata that were rejected because the message does not introduce them.
    pub refused: u64,
    /// Entries that were evicted, that expired, or that were not stored because there was no room for their names.
    pub forgotten: u64,
}

/// Maximum size of all names in bytes. Names are never forgotten, and a peer can invent any number of them.
const NAMES_MAX_BYTES: usize = 64 << 20;

/// Estimated overhead per name, in bytes: two references from a table and one from a list.
const NAME_BYTES: usize = 96;

struct Promise {
    /// The service's name, which stays the same when contracts change.
    name: NameId,
    /// The service's number in the current contract, or in the last contract that had the name.
    service: ServiceId,
    peer: Option<NameId>,
}

/// The state of an adapter, with one step function for each kind of message.
pub struct Monitor<S> {
    contracts: Generations,
    settings: Settings,
    store: S,
    names: Vec<Arc<str>>,
    names_bytes: usize,
    numbers: HashMap<Arc<str>, NameId>,
    own: NameId,
    endpoints: HashMap<NameId, Vec<Promise>>,
    /// Labels from the configuration, by endpoint and service.
    configured: HashMap<(NameId, NameId), Vec<NameId>>,
    scratch: Scratch,
    counts: Counts,
}

/// A message in progress: the facts known about its call, and its results so far.
struct Step<'a> {
    call: Call<'a>,
    outcome: Value<'a>,
    ticket: Ticket,
    now_s: u64,
    output: StepOutput,
}

impl<'a> Step<'a> {
    fn new(call: Call<'a>, ticket: Ticket, now_s: u64) -> Self {
        Self { call, outcome: Value::Missing, ticket, now_s, output: StepOutput::default() }
    }
}

impl<S: Store> Monitor<S> {
    /// Creates a monitor with the entries of the store. `now_s` is in seconds since an epoch that never changes.
    pub fn new(contract: Arc<Contract>, settings: Settings, mut store: S, now_s: u64) -> Self {
        let names = store.names().into_iter().map(Arc::<str>::from).collect::<Vec<_>>();
        let numbers = names.iter().enumerate().map(|(at, name)| (name.clone(), at as NameId)).collect();
        let names_bytes = names.iter().map(|name| name.len() + NAME_BYTES).sum();
        let label = settings.label.clone();
        let mut monitor = Self {
            contracts: Generations::new(contract),
            settings,
            store,
            names,
            names_bytes,
            numbers,
            own: 0,
            endpoints: HashMap::new(),
            configured: HashMap::new(),
            scratch: Scratch::default(),
            counts: Counts::default(),
        };
        monitor.number(UNKNOWN);
        monitor.own = monitor.number(&label).unwrap_or(0);
        let mut entries = Vec::new();
        monitor.store.each(now_s, &mut |_, bytes| entries.extend(Entry::decode(bytes)));
        for entry in entries {
            let known = monitor.names.get(entry.service as usize);
            let known = known.and_then(|name| monitor.contracts.newest().service(name));
            if let Some(service) = known.filter(|_| (entry.endpoint as usize) < monitor.names.len()) {
                monitor.promise(entry.endpoint, Promise { name: entry.service, service, peer: entry.peer });
            }
        }
        monitor
    }

    /// The counters so far.
    pub fn counts(&self) -> Counts {
        Counts { forgotten: self.counts.forgotten + self.store.forgotten(), ..self.counts }
    }

    /// Replaces the contract with its successor ([`Contract::after`]) for new calls. Service entries stay.
    pub fn renew(&mut self, contract: Arc<Contract>) {
        self.contracts.renew(contract.clone());
        for promise in self.endpoints.values_mut().flatten() {
            let name = self.names.get(promise.name as usize);
            promise.service = name.and_then(|name| contract.service(name)).unwrap_or(promise.service);
        }
    }

    /// Returns the number of verdicts by clause, and of blames by party.
    pub fn tallies(&self) -> Tallies {
        self.contracts.tallies()
    }

    fn service_name(&self, service: ServiceId) -> &str {
        self.contracts.of(service).service_name(service)
    }

    /// Gives access to the entry store, for example to flush it.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// Registers a configured endpoint: its service, vouching labels and adapter address.
    pub fn configure(&mut self, endpoint: &str, service: ServiceId, labels: &[&str], peer: Option<&str>, now_s: u64) {
        let labels = labels.iter().filter_map(|label| self.number(label)).collect::<Vec<_>>();
        let peer = peer.and_then(|peer| self.number(peer));
        let service_name = self.service_name(service).to_owned();
        if let (Some(endpoint), Some(service)) = (self.number(endpoint), self.number(&service_name)) {
            self.configured.entry((endpoint, service)).or_default().extend(&labels);
        }
        let member = Member { endpoint: endpoint.into(), service, index: None, secret: false };
        let voucher = Voucher { vouching: Vouching::Named, labels: &labels, peer, origin: Origin::Configured };
        self.keep(&member, &voucher, now_s, &mut StepOutput::default());
    }

    fn promises(&self, endpoint: &str) -> &[Promise] {
        let promises = self.numbers.get(endpoint).and_then(|number| self.endpoints.get(number));
        promises.map_or(&[], Vec::as_slice)
    }

    /// The state of an endpoint, which an adapter needs to decode messages.
    pub fn standing(&self, endpoint: &str) -> EndpointState {
        match self.promises(endpoint) {
            [] => EndpointState::Unlisted,
            [one] => EndpointState::Service(one.service),
            // A service that an adapter confirms wins over the others.
            many => match many.iter().filter(|promise| promise.peer.is_some()).collect::<Vec<_>>()[..] {
                [one] => EndpointState::Service(one.service),
                _ => EndpointState::Conflict,
            },
        }
    }

    /// All pairs of a known endpoint and a service claimed for it, in no particular order.
    pub fn promised(&self) -> impl Iterator<Item = (&str, ServiceId)> {
        let all = self.endpoints.iter();
        all.flat_map(|(endpoint, promises)| promises.iter().map(|promise| (self.name(*endpoint), promise.service)))
    }

    /// The address of an endpoint's adapter. `None` if it is unknown or the endpoint has a conflict.
    pub fn peer(&self, endpoint: &str) -> Option<&str> {
        let EndpointState::Service(service) = self.standing(endpoint) else { return None };
        let promise = self.promises(endpoint).iter().find(|promise| promise.service == service)?;
        promise.peer.map(|peer| &*self.names[peer as usize])
    }

    /// Processes a request that the adapter's party sends.
    pub fn request_sent(&mut self, call: Call<'_>, now_s: u64) -> StepOutput {
        let label = self.settings.label.clone();
        let peer = self.peer(call.endpoint).map(str::to_owned);
        if self.is_bypassed(call) {
            return self.bypass();
        }
        let (own, other) = ([self.own], peer.as_deref().and_then(|peer| self.number(peer)));
        let ticket = Ticket { enhanced: peer.is_some(), other, ..Ticket::unvouched(label.clone()) };
        let mut step = Step::new(call, ticket, now_s);
        let origin = Origin::Request(self.own);
        self.invoke(&Voucher { vouching: Vouching::Used, labels: &own, peer: other, origin }, &mut step);
        let entries = self.keep_sent(Direction::Request, &mut step);
        self.ask_as(Side::Sender, Kind::Precondition, &mut step);
        let Step { ticket, output, .. } = step;
        let request = peer.map(|_| {
            let invoked = self.carried_labels(&ticket.labels, ticket.is_orphan);
            RequestMetadata { sender: label, invoked, entries }
        });
        StepOutput { ticket: Some(ticket), request, ..output }
    }

    /// Processes a request to the adapter's party. `metadata` is `None` if the sender has no adapter.
    pub fn request_received(&mut self, call: Call<'_>, metadata: Option<&RequestMetadata>, now_s: u64) -> StepOutput {
        let sender = metadata.map_or(UNKNOWN, |metadata| &metadata.sender).to_owned();
        if self.is_bypassed(call) {
            return self.bypass();
        }
        let sender_number = self.number(&sender).unwrap_or(0);
        let (enhanced, other) = (metadata.is_some(), Some(sender_number));
        let mut step = Step::new(call, Ticket { enhanced, other, ..Ticket::unvouched(sender) }, now_s);
        let labels = metadata.map_or(&[][..], |metadata| &metadata.invoked);
        let labels = labels.iter().filter_map(|label| self.number(label)).collect::<Vec<_>>();
        let (vouching, labels, origin) = match metadata {
            Some(_) => (Vouching::by(&labels), &labels[..], Origin::Carried(sender_number)),
            None => (Vouching::Used, &[0][..], Origin::Request(0)),
        };
        self.invoke(&Voucher { vouching, labels, peer: None, origin }, &mut step);
        self.keep_received(Direction::Request, metadata.map_or(&[][..], |metadata| &metadata.entries), &mut step);
        self.ask_as(Side::Receiver, Kind::Precondition, &mut step);
        StepOutput { ticket: Some(step.ticket), ..step.output }
    }

    /// Processes a reply that the adapter's party sends.
    pub fn reply_sent(&mut self, call: Call<'_>, ticket: Ticket, outcome: Outcome<'_>, now_s: u64) -> StepOutput {
        let kind = outcome.kind();
        let mut step = Step { outcome: outcome.value, ..Step::new(call, ticket, now_s) };
        let is_result = kind == Kind::Postcondition;
        let entries = if is_result { self.keep_sent(Direction::Reply, &mut step) } else { Vec::new() };
        self.ask_as(Side::Sender, kind, &mut step);
        StepOutput { reply: step.ticket.enhanced.then_some(entries), ..step.output }
    }

    /// Processes a reply to the adapter's party. `metadata` is `None` if the service has no adapter.
    pub fn reply_received(
        &mut self,
        call: Call<'_>,
        ticket: Ticket,
        outcome: Outcome<'_>,
        metadata: Option<&[Identified]>,
        now_s: u64,
    ) -> StepOutput {
        let kind = outcome.kind();
        let mut step = Step { outcome: outcome.value, ..Step::new(call, ticket, now_s) };
        step.ticket.enhanced = metadata.is_some();
        if kind == Kind::Postcondition {
            self.keep_received(Direction::Reply, metadata.unwrap_or_default(), &mut step);
        }
        self.ask_as(Side::Receiver, kind, &mut step);
        step.output
    }

    /// Handles a request to a service whose adapter, at [`Self::peer`], is unreachable. Checks the clauses of the
    /// request that the other adapter would have checked. The reply will be checked against all clauses.
    pub fn go_alone(&mut self, call: Call<'_>, ticket: &mut Ticket, now_s: u64) -> StepOutput {
        if !std::mem::replace(&mut ticket.enhanced, false) {
            return StepOutput::default();
        }
        ticket.other = None;
        let mut step = Step::new(call, ticket.clone(), now_s);
        if self.settings.requires == Side::Receiver {
            self.ask(Kind::Precondition, &mut step);
        }
        step.output
    }

    /// Checks the clauses of a message for which this side of the call is responsible, or all if the other side has no
    /// adapter.
    fn ask_as(&mut self, side: Side, kind: Kind, step: &mut Step<'_>) {
        let checking = if kind == Kind::Precondition { self.settings.requires } else { self.settings.ensures };
        if !step.ticket.enhanced || checking == side || checking == Side::Both {
            self.ask(kind, step);
        }
    }

    fn env<'a>(&self, step: &Step<'a>) -> Env<'a> {
        let (Call { args, endpoint: receiver, .. }, outcome) = (step.call, step.outcome);
        Env { args, outcome, receiver, steps_max: self.settings.steps_max }
    }

    fn is_bypassed(&self, call: Call<'_>) -> bool {
        let asked = call.operation.service;
        match self.standing(call.endpoint) {
            EndpointState::Service(known) if known.generation == asked.generation => known != asked,
            // The contract has changed since the call was recognized.
            EndpointState::Service(known) => self.service_name(known) != self.service_name(asked),
            EndpointState::Unlisted | EndpointState::Conflict => true,
        }
    }

    fn bypass(&mut self) -> StepOutput {
        self.counts.bypassed += 1;
        StepOutput::default()
    }

    fn number(&mut self, name: &str) -> Option<NameId> {
        if let Some(known) = self.numbers.get(name) {
            return Some(*known);
        }
        let bytes = self.names_bytes + name.len() + NAME_BYTES;
        if bytes > NAMES_MAX_BYTES || name.len() > crate::metadata::TEXT_MAX_BYTES {
            return None;
        }
        self.names_bytes = bytes;
        let number = self.names.len() as NameId;
        let name = Arc::<str>::from(name);
        self.store.put_name(&name);
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        Some(number)
    }

    fn name(&self, number: NameId) -> &str {
        // A store that was tampered with may have numbers without names.
        self.names.get(number as usize).map_or("?", |name| name)
    }

    fn shown_labels(&self, labels: &[NameId]) -> Vec<String> {
        let mut shown = labels.iter().map(|&label| self.name(label).to_owned()).collect::<Vec<_>>();
        shown.sort();
        shown
    }

    fn conflict(&self, endpoint: &str) -> Report {
        let services = self.promises(endpoint).iter();
        let mut services = services.map(|promise| self.name(promise.name)).collect::<Vec<_>>();
        services.sort_unstable();
        let promised = services.join(" and ");
        Report {
            adapter: self.settings.label.clone(),
            kind: Kind::Conflict,
            found: ReportVerdict::Unknown,
            reason: Some(format!("the endpoint is promised to be {promised}, so its calls are not checked")),
            service: services.join(", "),
            endpoint: endpoint.to_owned(),
            ..Report::default()
        }
    }
}
