//! Proxies Thrift: reads each call of a connection, checks it, forwards it, and checks its reply.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use codecs::thrift::{Message, MessageKind};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::config::ProtocolKind;
use crate::contract_services::Service;
use crate::counted_stream::Stream;
use crate::decode::{Reply, Request, Unread};
use crate::hop_and_caller::{Caller, Hop};
use crate::in_flight_call::InFlightCall;
use crate::metrics::Skip;
use crate::shared_state::{App, Judged};
use crate::thrift_and_metadata_stream::{Messages, Received, ReceivedMessage};
use crate::unchecked_and_refusal_reasons::{Refusal, Unchecked};

/// Serves a connection until either side ends. With `from_adapter`, the client is an adapter.
pub(crate) async fn serve(app: &Arc<App>, client: Stream, hop: Hop, from_adapter: bool) -> io::Result<()> {
    let Ok(service) = app.service_or_refusal(&hop.endpoint) else { return Ok(()) };
    let service = service.filter(|service| service.family == ProtocolKind::Thrift);
    let mut up = upstream(app, &hop, service.is_some()).await?;
    let mut down = Messages::new(client, from_adapter, app.config.limits.body_bytes, &app.budget);
    let Some(service) = service else {
        app.metrics.skip(Skip::Unlisted);
        return tunnel(app, &mut down, &mut up).await;
    };
    let hop = Arc::new(hop);
    Connection { app, hop, service, down, up, seen_bytes: 0, was_called: false }.serve().await
}

/// Connects to the service's adapter if the hop may use one that is known and reachable, and otherwise to the service.
async fn upstream(app: &App, hop: &Hop, may_be_adapter: bool) -> io::Result<Messages> {
    let peer = app.live_peer(&hop.endpoint).filter(|_| hop.caller == Caller::Party && may_be_adapter);
    let greeted = match &peer {
        Some(peer) => app.greet(peer).await.inspect_err(|error| app.peer_failed(peer, error)).ok(),
        None => None,
    };
    let (stream, is_adapter) = match greeted {
        Some(stream) => (stream, true),
        None => (app.connect(&hop.forward, hop.whom()).await?, false),
    };
    Ok(Messages::new(stream, is_adapter, app.config.limits.body_bytes, &app.budget))
}

struct Connection<'a> {
    app: &'a Arc<App>,
    hop: Arc<Hop>,
    service: Arc<Service>,
    down: Messages,
    up: Messages,
    /// Number of bytes on `up` before the current call. Starts at 0, so that the greeting counts for the first call.
    seen_bytes: u64,
    was_called: bool,
}

impl Connection<'_> {
    async fn serve(mut self) -> io::Result<()> {
        let app = self.app;
        loop {
            // Either side may close an idle connection. Check the service's side first, so that no request is lost.
            let received = tokio::select! {
                biased;
                filled = self.up.fill(), if self.up.buffer.is_empty() => match filled {
                    // The service's adapter has ended, but the service may still run, so keep the party's connection.
                    Ok(0) | Err(_) if self.up.is_adapter => {
                        // Even an ending adapter greets, so reconnect to it only if this connection served a call.
                        self.up = upstream(app, &self.hop, self.was_called).await?;
                        (self.seen_bytes, self.was_called) = (0, false);
                        continue;
                    }
                    Ok(0) => return Ok(()),
                    Err(error) => return Err(error),
                    // Unsolicited bytes from a service cannot be split into calls.
                    Ok(_) => return self.tunnel_unreadable(None).await,
                },
                received = timeout(app.config.limits.idle, self.down.next()) => match received {
                    Ok(received) => received?,
                    Err(_) => return Ok(()),
                },
                () = app.ending(), if self.down.buffer.is_empty() => return Ok(()),
            };
            match received {
                Received::End => return Ok(()),
                Received::Opaque { .. } => return self.tunnel_unreadable(None).await,
                Received::Large { length, skip } => {
                    if app.refuse_unchecked(skip.unread()).is_err() {
                        return Ok(());
                    }
                    app.metrics.skip(skip);
                    self.down.pass(&mut self.up, length).await?;
                    self.forward_reply().await?;
                }
                Received::Message(message) => {
                    if !self.call(message).await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Handles one request. Returns whether further requests can follow on this connection.
    async fn call(&mut self, received: ReceivedMessage) -> io::Result<bool> {
        self.was_called = true;
        let since = crate::clock::now();
        let app = self.app;
        if !Arc::ptr_eq(&app.services().contract, &self.service.contract) {
            // The contract has changed since the last call of this connection.
            let renewed = app.service(&self.hop.endpoint);
            let Some(renewed) = renewed.filter(|service| service.family == ProtocolKind::Thrift) else {
                app.metrics.skip(Skip::Unlisted);
                self.up.send(None, &received.bytes).await?;
                return tunnel(app, &mut self.down, &mut self.up).await.map(|()| false);
            };
            self.service = renewed;
        }
        let service = self.service.clone();
        let Some(Ok(message)) = app.guarded(|| received.decode()) else {
            return self.tunnel_unreadable(Some(&received.bytes)).await.map(|()| false);
        };
        let is_oneway = message.header.kind == MessageKind::Oneway;
        let (number, is_sampled) = app.next_call();
        // The sender of an empty block did not check the call. Nor does this adapter, unless `enforce` requires it.
        let block = received.block.as_ref().filter(|block| !(app.config.checks.refuses_unchecked && block.is_empty()));
        if !is_sampled || block.is_some_and(|block| block.is_empty()) {
            app.metrics.skip(Skip::Sample);
            return self.forward(&received, is_oneway).await;
        }
        let (op, request) = match app.known_request(&service, app.guarded(|| service.thrift_request(&message))) {
            Ok(Some(known)) => known,
            Ok(None) => return self.forward(&received, is_oneway).await,
            Err(refusal) => return self.refuse(&received, &message, &refusal).await,
        };
        let mut share = app.budget.share();
        if !share.resize(request.memory_bytes()) {
            drop(request);
            if let Err(refusal) = app.refuse_unchecked(Unchecked::Memory) {
                return self.refuse(&received, &message, &refusal).await;
            }
            app.metrics.skip(Skip::Memory);
            return self.forward(&received, is_oneway).await;
        }
        let mut call = InFlightCall::new(app, &self.hop, &service, op, number, since);
        match call.request(&request, block.map(|block| &block[..]), self.up.is_adapter) {
            Ok(block) => call.line.metadata_bytes += self.up.send(block.as_deref(), &received.bytes).await?,
            Err(refusal) => {
                self.refuse(&received, &message, &refusal).await?;
                call.end(0);
                return Ok(true);
            }
        }
        if is_oneway {
            call.end(self.extra_bytes(received.bytes.len()));
            return Ok(true);
        }
        let reply_bytes = match call.wait_for(self.answer()).await? {
            Received::Message(reply) => {
                match judge(&mut call, &request, &reply) {
                    Ok(block) => call.line.metadata_bytes += self.down.send(block.as_deref(), &reply.bytes).await?,
                    Err(refusal) => drop(self.refuse(&received, &message, &refusal).await?),
                }
                reply.bytes.len()
            }
            Received::Large { length, skip } => {
                if let Err(refusal) = app.refuse_unchecked(skip.unread()) {
                    self.refuse(&received, &message, &refusal).await?;
                    call.end(0);
                    return Ok(false);
                }
                call.skipped(skip);
                self.up.pass(&mut self.down, length).await?;
                length
            }
            Received::End => return Ok(false),
            Received::Opaque { what } => {
                call.skipped(Skip::Unreadable);
                // The previous adapter, if any, gets raw bytes and no reply, so this adapter checks all clauses.
                let judged =
                    what.map_or(Ok(()), |what| call.reply_alone(&request, &Reply::unread(Unread::Malformed(what))));
                let passed = judged.and_then(|()| app.refuse_unchecked(Unchecked::Unreadable));
                call.end(0);
                match passed {
                    Ok(()) => tunnel(app, &mut self.down, &mut self.up).await?,
                    Err(refusal) => drop(self.refuse(&received, &message, &refusal).await?),
                }
                return Ok(false);
            }
        };
        call.end(self.extra_bytes(received.bytes.len() + reply_bytes));
        Ok(true)
    }

    /// Answers a call with the exception for `refusal`, unless the caller expects no reply. Returns whether further
    /// requests can follow on this connection. Fails if the adapter itself has failed.
    async fn refuse(&mut self, call: &ReceivedMessage, message: &Message<'_>, refusal: &Refusal) -> io::Result<bool> {
        if matches!(refusal, Refusal::Broken) {
            return Err(io::ErrorKind::Other.into());
        }
        if message.header.kind != MessageKind::Oneway {
            self.down.send(None, &call.exception(&message.header, refusal)).await?;
        }
        Ok(true)
    }

    async fn forward(&mut self, received: &ReceivedMessage, is_oneway: bool) -> io::Result<bool> {
        self.up.send(None, &received.bytes).await?;
        if !is_oneway {
            self.forward_reply().await?;
        }
        Ok(true)
    }

    async fn forward_reply(&mut self) -> io::Result<()> {
        let received = self.answer().await?;
        let (app, down, up) = (self.app, &mut self.down, &mut self.up);
        match received {
            Received::Message(message) => return down.send(None, &message.bytes).await.map(drop),
            Received::Large { length, .. } => return up.pass(down, length).await,
            Received::Opaque { .. } => tunnel(app, down, up).await?,
            Received::End => {}
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    /// Forwards `request`, if any, and later bytes unchecked. Ends the connection instead if such bytes are rejected.
    async fn tunnel_unreadable(&mut self, request: Option<&[u8]>) -> io::Result<()> {
        if self.app.refuse_unchecked(Unchecked::Unreadable).is_err() {
            return Ok(());
        }
        self.app.metrics.skip(Skip::Unreadable);
        if let Some(request) = request {
            self.up.send(None, request).await?;
        }
        tunnel(self.app, &mut self.down, &mut self.up).await
    }

    /// Waits for a message from the service's side. Fails with `TimedOut` after the time limit.
    async fn answer(&mut self) -> io::Result<Received> {
        let (app, is_adapter) = (self.app, self.up.is_adapter);
        let Ok(received) = timeout(app.config.limits.answer(is_adapter), self.up.next()).await else {
            app.late(app.peer(&self.hop.endpoint).filter(|_| is_adapter).as_deref());
            return Err(io::ErrorKind::TimedOut.into());
        };
        received
    }

    /// Number of bytes between the adapters since the last call, in addition to the messages.
    fn extra_bytes(&mut self, messages: usize) -> i64 {
        let all = self.up.stream.bytes.load(Ordering::Relaxed);
        let passed = all - std::mem::replace(&mut self.seen_bytes, all);
        if self.up.is_adapter { passed as i64 - messages as i64 } else { 0 }
    }
}

fn judge(call: &mut InFlightCall, request: &Request<'_>, received: &ReceivedMessage) -> Judged {
    let service = call.service.clone();
    let decode = || received.decode().map_or_else(Reply::unread, |message| service.thrift_reply(&call.op, &message));
    let reply = call.app.guarded(decode);
    // The block of a reply is empty if the reply introduces nothing.
    call.reply(request, &reply.unwrap_or_else(Reply::opaque), received.block.as_deref())
}

async fn tunnel(app: &App, down: &mut Messages, up: &mut Messages) -> io::Result<()> {
    up.open_up().await?;
    down.open_up().await?;
    up.stream.write_all(&down.buffer.split()).await?;
    down.stream.write_all(&up.buffer.split()).await?;
    up.stream.flush().await?;
    down.stream.flush().await?;
    crate::counted_stream::copy(app.config.limits.idle, &mut down.stream, &mut up.stream).await
}
