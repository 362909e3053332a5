//! Follows one call from its request to its reply: passes its messages to the monitor and its metadata to adapters.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use contract::metadata::{self, CallContext, Identified, RequestMetadata};
use contract::monitor::{Call, Outcome, Ticket};

use crate::call_log_csv::Line;
use crate::contract_services::{Op, Service};
use crate::decode::{Reply, Request};
use crate::hop_and_caller::{Caller, Hop};
use crate::metrics::Skip;
use crate::shared_state::{App, Judged};
use crate::unchecked_and_refusal_reasons::Refusal;

pub(crate) struct InFlightCall {
    pub(crate) app: Arc<App>,
    hop: Arc<Hop>,
    pub(crate) service: Arc<Service>,
    pub(crate) op: Arc<Op>,
    ticket: Option<Ticket>,
    sent: Option<RequestMetadata>,
    got: Vec<Identified>,
    since: Instant,
    pub(crate) line: Line,
}

impl InFlightCall {
    pub(crate) fn new(
        app: &Arc<App>,
        hop: &Arc<Hop>,
        service: &Arc<Service>,
        op: Arc<Op>,
        number: u64,
        since: Instant,
    ) -> Self {
        let side = if hop.caller == Caller::Party { "client" } else { "server" };
        let line = Line { call: number, side, operation: op.name.clone(), ..Line::default() };
        let (app, hop, service) = (app.clone(), hop.clone(), service.clone());
        Self { app, hop, service, op, ticket: None, sent: None, got: Vec::new(), since, line }
    }

    fn call<'c>(&'c self, args: &'c [contract::Value<'c>]) -> Call<'c> {
        Call { endpoint: &self.hop.endpoint, operation: self.op.id, args }
    }

    /// Returns the facts about the call that both ends know. `sender` is the label of the caller's adapter.
    fn context<'c>(&'c self, sender: &'c str) -> CallContext<'c> {
        CallContext { receiver: &self.hop.endpoint, service: &self.service.name, sender }
    }

    /// Handles a request with the metadata `block`. Returns metadata to forward if the next hop is an adapter.
    pub(crate) fn request(&mut self, request: &Request<'_>, block: Option<&[u8]>, to_adapter: bool) -> Judged {
        let (app, args) = (&self.app, request.values());
        // Only the adapters of other parties send blocks with their requests.
        let metadata = block.filter(|_| self.hop.accepts_adapters()).and_then(|block| self.request_metadata(block));
        self.line.metadata_bytes += block.map_or(0, <[u8]>::len);
        let output = app.step(self.line.call, false, |monitor, now_s| match self.hop.caller {
            Caller::Party => monitor.request_sent(self.call(&args), now_s),
            _ => monitor.request_received(self.call(&args), metadata.as_ref(), now_s),
        })?;
        self.ticket = output.ticket;
        let Some(metadata) = output.request else { return Ok(None) };
        if !to_adapter {
            // The other side's adapter is unreachable, so this adapter also checks the other side's clauses.
            return self.alone(&args).map(|()| None);
        }
        let bytes = metadata::encode_request(&metadata, self.context(&app.config.name));
        self.line.metadata_bytes += bytes.len();
        self.sent = Some(metadata);
        Ok(Some(bytes))
    }

    fn alone(&mut self, args: &[contract::Value<'_>]) -> Result<(), Refusal> {
        let Some(mut ticket) = self.ticket.take() else { return Ok(()) };
        let checked = self
            .app
            .step(self.line.call, false, |monitor, now_s| monitor.go_alone(self.call(args), &mut ticket, now_s));
        self.ticket = Some(ticket);
        checked.map(drop)
    }

    /// Handles a request that went directly to the service, because the service's adapter had stopped.
    pub(crate) fn lost(&mut self, request: &Request<'_>) -> Result<(), Refusal> {
        self.sent = None;
        self.line.metadata_bytes = 0;
        self.alone(&request.values())
    }

    /// The metadata that an adapter sent with its request; `None` if it is invalid or the sender is not trusted.
    fn request_metadata(&self, block: &[u8]) -> Option<RequestMetadata> {
        let metadata = metadata::decode_request(block, self.context(""));
        let believed = metadata.filter(|metadata| self.is_believed(metadata)).map(|metadata| match &self.hop.caller {
            Caller::Certified(name) => bound(metadata, name),
            _ => metadata,
        });
        self.count_refused(believed)
    }

    fn reply_metadata(&self, block: &[u8]) -> Option<Vec<Identified>> {
        let entries = metadata::decode_reply(block, self.context(&self.app.config.name));
        self.count_refused(entries.filter(|entries| has_labels(entries)))
    }

    fn count_refused<T>(&self, metadata: Option<T>) -> Option<T> {
        if metadata.is_none() {
            self.app.metrics.metadata_refused.inc();
        }
        metadata
    }

    /// Whether the caller may be the sender that its metadata names, and all labels are valid.
    fn is_believed(&self, metadata: &RequestMetadata) -> bool {
        let sender = &metadata.sender;
        let may_be = match &self.hop.caller {
            Caller::Certified(name) => name == sender,
            // If a party calls itself, the caller is this adapter, at one of its own sockets.
            Caller::Unproved(from) if *sender == self.app.config.name => {
                self.app.own_sockets.lock().unwrap_or_else(PoisonError::into_inner).contains(from)
            }
            _ => sender != metadata::UNKNOWN && metadata::is_label(sender),
        };
        may_be && metadata.invoked.iter().all(|label| metadata::is_label(label)) && has_labels(&metadata.entries)
    }

    pub(crate) fn reads_reply(&self) -> bool {
        self.ticket.is_some() && self.service.contract.reads_reply(self.op.id)
    }

    pub(crate) fn reply(&mut self, request: &Request<'_>, reply: &Reply<'_>, block: Option<&[u8]>) -> Judged {
        let Some(ticket) = self.ticket.take() else { return Ok(None) };
        let (app, args, sender) = (&self.app, request.values(), ticket.sender.clone());
        let outcome = Outcome { value: reply.value.value(), is_error: reply.is_error };
        // If an adapter sends a reply without metadata, the reply introduces nothing.
        let block = self.sent.as_ref().map(|_| block.unwrap_or_default());
        self.line.metadata_bytes += block.map_or(0, <[u8]>::len);
        let metadata = block.and_then(|block| self.reply_metadata(block));
        let output = app.step(self.line.call, reply.may_be_undecided, |monitor, now_s| match self.hop.caller {
            Caller::Party => monitor.reply_received(self.call(&args), ticket, outcome, metadata.as_deref(), now_s),
            _ => monitor.reply_sent(self.call(&args), ticket, outcome, now_s),
        });
        self.got = metadata.unwrap_or_default();
        let Some(entries) = output?.reply else { return Ok(None) };
        let bytes = metadata::encode_reply(&entries, self.context(&sender));
        self.line.metadata_bytes += bytes.len();
        Ok(Some(bytes))
    }

    /// Handles a reply that the other side's adapter does not recognize as a reply. Checks all clauses of the reply.
    pub(crate) fn reply_alone(&mut self, request: &Request<'_>, reply: &Reply<'_>) -> Result<(), Refusal> {
        if let Some(ticket) = &mut self.ticket {
            ticket.enhanced = false;
        }
        self.sent = None;
        self.reply(request, reply, None).map(drop)
    }

    pub(crate) fn is_enhanced(&self) -> bool {
        self.ticket.as_ref().is_some_and(|ticket| ticket.enhanced)
    }

    pub(crate) fn pause(&mut self) {
        self.line.own_ns += self.lap_ns();
    }

    pub(crate) fn resume(&mut self) {
        self.line.waited_ns += self.lap_ns();
    }

    pub(crate) async fn wait_for<T>(&mut self, other: impl Future<Output = T>) -> T {
        self.pause();
        let output = other.await;
        self.resume();
        output
    }

    fn lap_ns(&mut self) -> u64 {
        let now = crate::clock::now();
        now.duration_since(std::mem::replace(&mut self.since, now)).as_nanos() as u64
    }

    pub(crate) fn skipped(&mut self, skip: Skip) {
        self.line.skip = Some(skip);
        self.app.metrics.skip(skip);
    }

    /// Ends the call. `extra_bytes` counts bytes between the adapters in addition to the messages.
    pub(crate) fn end(mut self, extra_bytes: i64) {
        self.pause();
        let metrics = &self.app.metrics;
        metrics.call(self.line.own_ns);
        metrics.metadata_bytes.inc_by(self.line.metadata_bytes as u64);
        let Some(calls) = &self.app.calls else { return };
        let whip = |peers| self.sent.as_ref().map_or(0, |sent| metadata::whip_bytes(sent, &self.got, peers));
        let (whip_bytes, whip_bytes_with_peers) = (whip(false), whip(true));
        let line = Line { whip_bytes, whip_bytes_with_peers, extra_bytes, ..self.line };
        let _ = calls.messages.send(self.app.with_totals(line));
    }
}

fn has_labels(entries: &[Identified]) -> bool {
    entries.iter().flat_map(|entry| &entry.labels).all(|label| metadata::is_label(label))
}

/// Restricts metadata to the only label that its sender may use: `name`, from the sender's certificate.
fn bound(mut metadata: RequestMetadata, name: &str) -> RequestMetadata {
    metadata.invoked.retain(|label| label == name);
    // An entry without labels states that the sender has forgotten who vouched, so no label is added.
    for entry in metadata.entries.iter_mut().filter(|entry| !entry.labels.is_empty()) {
        entry.labels = vec![name.to_owned()];
    }
    metadata
}
