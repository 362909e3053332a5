//! One call on its way through: what the monitor is told of it, what goes beside its messages, what it cost.

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

/// Whose messages pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The own party calls.
    Client,
    /// Others call the own party.
    Server {
        /// They may be adapters.
        peers: bool,
    },
}

/// The adapter at the other end of a connection to this one's server side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Nobody, on the client side.
    #[default]
    Nobody,
    /// The owner of a certificate, by its first DNS name.
    Certified(String),
    /// Whoever connected from this address.
    Unproved(SocketAddr),
}

/// A way through the adapter: who calls, what is called, where that is.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) side: Side,
    /// As contracts name it.
    pub(crate) endpoint: Arc<str>,
    /// What is dialled for it.
    pub(crate) forward: String,
    /// Over TLS.
    pub(crate) is_tls: bool,
    pub(crate) caller: Caller,
}

impl Hop {
    /// As whom the service itself is dialled.
    pub(crate) fn whom(&self) -> Whom {
        if self.is_tls { Whom::Tls } else { Whom::Plain }
    }
}

/// What is to become of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It passes; the block that goes beside it, where the other side has an adapter.
    Pass(Option<Vec<u8>>),
    /// It is refused.
    Refuse(Refusal),
    /// The adapter failed, and is told to let nothing pass then.
    Broken,
}

/// A call.
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

/// A call without what it borrows, to be resumed when its reply has passed.
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
    /// Parks a call whose reply is waited for.
    pub(crate) fn park(mut self) -> ParkedCall {
        self.pause();
        let Self { op, number, ticket, sent, own_ns, waited_ns, since, metadata_bytes, .. } = self;
        ParkedCall { op, number, ticket, sent, own_ns, waited_ns, since, metadata_bytes }
    }

    /// `since`: when the request had come.
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

    /// The request has come. `block`: what stood beside it. `to_adapter`: whether the next one is an adapter.
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
                    // The adapter on the other side could not be reached, so its part is ours.
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

    /// The adapter on the other side ended before it had the request, which went to the service itself.
    pub(crate) fn lost(&mut self, request: &Request<'_>) -> Decision {
        self.sent = None;
        self.metadata_bytes = 0;
        self.alone(&request.values())
    }

    /// What another adapter said beside its request; `None`: nothing that is believed.
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

    /// Whether a caller may be the sender that its metadata names, and all labels are valid.
    fn is_believed(&self, metadata: &RequestMetadata) -> bool {
        let sender = &metadata.sender;
        let may_be = match &self.hop.caller {
            Caller::Certified(name) => name == sender,
            // The adapter of a party that calls itself comes from one of its own sockets.
            Caller::Unproved(from) if *sender == self.app.watch.label => self.app.dial.is_own(from),
            Caller::Nobody | Caller::Unproved(_) => sender != metadata::UNKNOWN && metadata::is_label(sender),
        };
        let entries = metadata.entries.iter().flat_map(|entry| &entry.labels);
        may_be && metadata.invoked.iter().chain(entries).all(|label| metadata::is_label(label))
    }

    /// Whether the reply has to be read: a clause speaks of it.
    pub(crate) fn reads_reply(&self) -> bool {
        self.ticket.is_some() && self.op.reads_reply
    }

    /// The reply has come. `block`: what stood beside it.
    pub(crate) fn reply(&mut self, request: &Request<'_>, reply: &Reply<'_>, block: Option<&[u8]>) -> Decision {
        let watch = &self.app.watch;
        let Some(ticket) = self.ticket.take() else { return Decision::Pass(None) };
        let args = request.values();
        let call = self.call(&args);
        let step = match &self.hop.side {
            Side::Client => {
                let known = call_context(&self.hop.endpoint, &self.service.name, &watch.label);
                // Nothing beside the reply of an adapter says that it introduces nothing.
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

    /// As [`InFlightCall::reply`], of a reply that an adapter on the other side will not see as one.
    pub(crate) fn reply_alone(&mut self, request: &Request<'_>, reply: &Reply<'_>) -> Decision {
        self.ticket = self.ticket.take().map(Ticket::alone);
        self.sent = None;
        self.reply(request, reply, None)
    }

    pub(crate) fn op(&self) -> &Op {
        &self.op
    }

    /// Whether the other side of the call has an adapter.
    pub(crate) fn is_enhanced(&self) -> bool {
        self.ticket.as_ref().is_some_and(Ticket::enhanced)
    }

    /// From now on somebody else is waited for.
    pub(crate) fn pause(&mut self) {
        self.own_ns += self.lap_ns();
    }

    /// The wait is over.
    pub(crate) fn resume(&mut self) {
        self.waited_ns += self.lap_ns();
    }

    /// Time since the last pause or resumption, which begins anew.
    fn lap_ns(&mut self) -> u64 {
        let now = crate::clock::now();
        now.duration_since(std::mem::replace(&mut self.since, now)).as_nanos() as u64
    }

    pub(crate) fn skipped(&mut self, skip: Skip) {
        self.verdict = skip.name();
        self.app.watch.metrics.skip(skip);
    }

    /// The call is over. `extra_bytes`: what passed between the adapters beyond the messages themselves.
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

/// What is left of metadata if its sender vouches for nobody but itself: `name`, which its certificate proves.
fn bound(mut metadata: RequestMetadata, name: &str) -> RequestMetadata {
    metadata.invoked.retain(|label| label == name);
    // Without labels, the sender has forgotten who vouched.
    for entry in metadata.entries.iter_mut().filter(|entry| !entry.labels.is_empty()) {
        entry.labels = vec![name.to_owned()];
    }
    metadata
}
