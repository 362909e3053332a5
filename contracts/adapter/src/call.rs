//! One call on its way through the adapter: its events for the monitor, its metadata and its cost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use contract::metadata::{self, ReplyMetadata, RequestMetadata};
use contract::monitor::{Call, Event, Ticket};

use crate::app::App;
use crate::call_log::Line;
use crate::decode::{Op, Reply, Request, Service};
use crate::dial::Whom;
use crate::metrics::{Skip, count};
use crate::refusal::Refusal;
use crate::shared_monitor::{Block, Step, call_context};

/// The party whose messages pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The adapter's own party calls.
    Client,
    /// Others call the adapter's own party.
    Server {
        /// Whether callers may be adapters.
        peers: bool,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Caller {
    /// No caller: the client side.
    #[default]
    Nobody,
    /// The owner of a certificate, by its first DNS name.
    Certified(String),
    /// A caller without a certificate, by its address.
    Unproved(SocketAddr),
}

/// One side of an adapter: the caller, the endpoint and its address.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) side: Side,
    /// The endpoint's name in contracts.
    pub(crate) endpoint: Arc<str>,
    /// The address to connect to.
    pub(crate) forward: String,
    pub(crate) is_tls: bool,
    pub(crate) caller: Caller,
}

impl Hop {
    /// How to connect to the service itself.
    pub(crate) fn whom(&self) -> Whom {
        if self.is_tls { Whom::Tls } else { Whom::Plain }
    }
}

/// The fate of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Forwards the message, with metadata if the other side has an adapter.
    Pass(Option<Vec<u8>>),
    Refuse(Refusal),
    /// The adapter failed and is configured to let nothing pass in that case.
    Broken,
}

#[derive(Debug)]
pub(crate) struct InFlightCall<'a> {
    app: &'a App,
    hop: &'a Hop,
    service: &'a Service,
    op: Arc<Op>,
    pub(crate) number: u64,
    ticket: Option<Ticket>,
    sent: Option<RequestMetadata>,
    got: ReplyMetadata,
    own_ns: u64,
    waited_ns: u64,
    since: Instant,
    pub(crate) metadata_bytes: usize,
    verdict: &'static str,
}

/// A call without its borrows, resumed when its reply arrives.
#[derive(Debug)]
pub(crate) struct ParkedCall {
    op: Arc<Op>,
    number: u64,
    ticket: Option<Ticket>,
    sent: Option<RequestMetadata>,
    own_ns: u64,
    waited_ns: u64,
    since: Instant,
    metadata_bytes: usize,
}

impl ParkedCall {
    pub(crate) fn resume<'a>(self, app: &'a App, hop: &'a Hop, service: &'a Service) -> InFlightCall<'a> {
        let Self { op, number, ticket, sent, own_ns, waited_ns, since, metadata_bytes } = self;
        let call = InFlightCall::new(app, hop, service, op, number, since);
        let mut call = InFlightCall { ticket, sent, own_ns, waited_ns, metadata_bytes, ..call };
        call.resume();
        call
    }
}

impl<'a> InFlightCall<'a> {
    /// Parks a call while its reply is pending.
    pub(crate) fn park(mut self) -> ParkedCall {
        self.pause();
        let Self { op, number, ticket, sent, own_ns, waited_ns, since, metadata_bytes, .. } = self;
        ParkedCall { op, number, ticket, sent, own_ns, waited_ns, since, metadata_bytes }
    }

    /// `since`: when the request had arrived.
    pub(crate) fn new(
        app: &'a App,
        hop: &'a Hop,
        service: &'a Service,
        op: Arc<Op>,
        number: u64,
        since: Instant,
    ) -> Self {
        Self {
            app,
            hop,
            service,
            op,
            number,
            ticket: None,
            sent: None,
            got: ReplyMetadata::default(),
            own_ns: 0,
            waited_ns: 0,
            since,
            metadata_bytes: 0,
            verdict: "checked",
        }
    }

    fn call<'c>(&self, args: &'c [contract::Value<'c>]) -> Call<'c>
    where
        'a: 'c,
    {
        Call { endpoint: &self.hop.endpoint, operation: self.op.id, args }
    }

    /// Handles the arrival of the request. `block`: its metadata. `to_adapter`: whether the next
    /// hop is an adapter.
    pub(crate) fn request(&mut self, request: &Request<'_>, block: Option<&[u8]>, to_adapter: bool) -> Decision {
        let watch = &self.app.watch;
        let args = request.values();
        let step = match &self.hop.side {
            Side::Client => watch.step(Event::RequestSent(self.call(&args)), self.number, false),
            Side::Server { peers } => {
                let metadata = block.filter(|_| *peers).and_then(|block| self.metadata(block));
                self.metadata_bytes += block.map_or(0, <[u8]>::len);
                watch.step(Event::RequestReceived(self.call(&args), metadata.as_ref()), self.number, false)
            }
        };
        match step {
            Step::Pass { ticket, block } => {
                self.ticket = ticket;
                let Some(Block::Request(metadata)) = block else { return Decision::Pass(None) };
                if !to_adapter {
                    // The other side's adapter could not be reached, so this adapter does its part.
                    return self.alone(&args);
                }
                let known = call_context(&self.hop.endpoint, &self.service.name, &watch.label);
                let bytes = metadata::encode_request(&metadata, known);
                self.metadata_bytes += bytes.len();
                self.sent = Some(metadata);
                Decision::Pass(Some(bytes))
            }
            Step::Refuse(refusal) => Decision::Refuse(refusal),
            Step::Broken => Decision::Broken,
        }
    }

    fn alone(&mut self, args: &[contract::Value<'_>]) -> Decision {
        let Some(mut ticket) = self.ticket.take() else { return Decision::Pass(None) };
        let step = self.app.watch.alone(self.call(args), &mut ticket, self.number);
        self.ticket = Some(ticket);
        match step {
            Step::Refuse(refusal) => Decision::Refuse(refusal),
            _ => Decision::Pass(None),
        }
    }

    /// Handles a request whose adapter ended before it had read it: the request went to the service
    /// itself.
    pub(crate) fn lost(&mut self, request: &Request<'_>) -> Decision {
        self.sent = None;
        self.metadata_bytes = 0;
        self.alone(&request.values())
    }

    /// The metadata that another adapter sent with its request, or `None` if the sender is not
    /// trusted.
    fn metadata(&self, block: &[u8]) -> Option<RequestMetadata> {
        let known = call_context(&self.hop.endpoint, &self.service.name, "");
        let metadata = metadata::decode_request(block, known).ok();
        let believed = metadata.filter(|metadata| self.is_believed(metadata)).map(|metadata| match &self.hop.caller {
            Caller::Certified(name) => bound(metadata, name),
            Caller::Nobody | Caller::Unproved(_) => metadata,
        });
        if believed.is_none() {
            count(&self.app.watch.metrics.metadata_refused);
        }
        believed
    }

    /// Whether the caller may be the sender that its metadata names, and all labels are valid.
    fn is_believed(&self, metadata: &RequestMetadata) -> bool {
        let sender = &metadata.sender;
        let may_be = match &self.hop.caller {
            Caller::Certified(name) => name == sender,
            // The adapter of a party that calls itself connects from one of its own sockets.
            Caller::Unproved(from) if *sender == self.app.watch.label => self.app.dial.is_own(from),
            Caller::Nobody | Caller::Unproved(_) => sender != metadata::UNKNOWN && metadata::is_label(sender),
        };
        let entries = metadata.entries.iter().flat_map(|entry| &entry.labels);
        may_be && metadata.invoked.iter().chain(entries).all(|label| metadata::is_label(label))
    }

    /// Whether the reply must be read because a clause refers to it.
    pub(crate) fn reads_reply(&self) -> bool {
        self.ticket.is_some() && self.op.reads_reply
    }

    /// Handles the arrival of the reply. `block`: its metadata.
    pub(crate) fn reply(&mut self, request: &Request<'_>, reply: &Reply<'_>, block: Option<&[u8]>) -> Decision {
        let watch = &self.app.watch;
        let Some(ticket) = self.ticket.take() else { return Decision::Pass(None) };
        let args = request.values();
        let call = self.call(&args);
        let step = match &self.hop.side {
            Side::Client => {
                let known = call_context(&self.hop.endpoint, &self.service.name, &watch.label);
                // A reply from an adapter without metadata introduces nothing.
                let metadata = self.sent.is_some().then(|| block.unwrap_or_default()).and_then(|block| {
                    self.metadata_bytes += block.len();
                    let decoded = metadata::decode_reply(block, known).ok().filter(|metadata| {
                        let labels = metadata.entries.iter().flat_map(|entry| &entry.labels);
                        labels.into_iter().all(|label| metadata::is_label(label))
                    });
                    if decoded.is_none() {
                        count(&watch.metrics.metadata_refused);
                    }
                    decoded
                });
                let event = Event::ReplyReceived(call, &ticket, reply.outcome(), metadata.as_ref());
                let step = watch.step(event, self.number, reply.may_be_undecided);
                self.got = metadata.unwrap_or_default();
                step
            }
            Side::Server { .. } => {
                let event = Event::ReplySent(call, &ticket, reply.outcome());
                watch.step(event, self.number, reply.may_be_undecided)
            }
        };
        match step {
            Step::Pass { block: Some(Block::Reply(metadata)), .. } => {
                let known = call_context(&self.hop.endpoint, &self.service.name, ticket.sender());
                let bytes = metadata::encode_reply(&metadata, known);
                self.metadata_bytes += bytes.len();
                Decision::Pass(Some(bytes))
            }
            Step::Pass { .. } => Decision::Pass(None),
            Step::Refuse(refusal) => Decision::Refuse(refusal),
            Step::Broken => Decision::Broken,
        }
    }

    /// Handles a reply that an adapter on the other side will not treat as one.
    pub(crate) fn reply_alone(&mut self, request: &Request<'_>, reply: &Reply<'_>) -> Decision {
        self.ticket = self.ticket.take().map(Ticket::alone);
        self.sent = None;
        self.reply(request, reply, None)
    }

    pub(crate) fn op(&self) -> &Op {
        &self.op
    }

    pub(crate) fn is_enhanced(&self) -> bool {
        self.ticket.as_ref().is_some_and(Ticket::enhanced)
    }

    /// Starts a wait for another party.
    pub(crate) fn pause(&mut self) {
        self.own_ns += self.lap_ns();
    }

    /// Ends a wait.
    pub(crate) fn resume(&mut self) {
        self.waited_ns += self.lap_ns();
    }

    /// Time since the last call. Restarts the clock.
    fn lap_ns(&mut self) -> u64 {
        let now = crate::clock::now();
        now.duration_since(std::mem::replace(&mut self.since, now)).as_nanos() as u64
    }

    pub(crate) fn skipped(&mut self, skip: Skip) {
        self.verdict = skip.name();
        self.app.watch.metrics.skip(skip);
    }

    /// Ends the call. `extra_bytes`: bytes between the adapters beyond the messages themselves.
    pub(crate) fn end(mut self, extra_bytes: i64) {
        self.pause();
        let metrics = &self.app.watch.metrics;
        metrics.call(self.own_ns);
        metrics.metadata_bytes.fetch_add(self.metadata_bytes as u64, std::sync::atomic::Ordering::Relaxed);
        let Some(calls) = &self.app.calls else { return };
        let whip = |peers| self.sent.as_ref().map_or(0, |sent| metadata::whip_bytes(sent, &self.got, peers));
        calls.write(Line {
            call: self.number,
            side: if self.hop.side == Side::Client { "client" } else { "server" },
            operation: self.op.name.clone(),
            own_ns: self.own_ns,
            waited_ns: self.waited_ns,
            whip_bytes: whip(false),
            whip_bytes_with_peers: whip(true),
            metadata_bytes: self.metadata_bytes,
            extra_bytes,
            entries: self.app.watch.counts().entries,
            store_bytes: metrics.store_bytes.load(std::sync::atomic::Ordering::Relaxed),
            store_file_bytes: metrics.store_file_bytes.load(std::sync::atomic::Ordering::Relaxed),
            verdict: self.verdict,
        });
    }
}

/// Restricts metadata to what its sender may vouch for: itself, by the `name` that its certificate
/// proves.
fn bound(mut metadata: RequestMetadata, name: &str) -> RequestMetadata {
    metadata.invoked.retain(|label| label == name);
    // An entry without labels means that the sender has forgotten who vouched.
    for entry in metadata.entries.iter_mut().filter(|entry| !entry.labels.is_empty()) {
        entry.labels = vec![name.to_owned()];
    }
    metadata
}
