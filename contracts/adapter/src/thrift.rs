//! Thrift over TCP: forwards messages between a client and its service or the next adapter.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use codecs::thrift::{Header, MessageKind, compose_application_exception};
use contract::monitor::EndpointState;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::app::App;
use crate::call::{Decision, Hop, InFlightCall, Side};
use crate::config::ProtocolKind;
use crate::decode::{Reply, RequestKind, Service, Unread};
use crate::metrics::Skip;
use crate::refusal::{Refusal, Unchecked};
use crate::stream::Stream;
use crate::thrift_messages::{Messages, Received};

/// Serves one connection until either side ends. `from_adapter`: whether the client greeted as an
/// adapter.
pub(crate) async fn serve(app: &Arc<App>, client: Stream, hop: &Hop, from_adapter: bool) -> io::Result<()> {
    let is_conflict = app.watch.standing(&hop.endpoint) == EndpointState::Conflict;
    if is_conflict && app.watch.refuse_unchecked(Unchecked::Conflict).is_some() {
        return Ok(());
    }
    let service = service_of(app, hop);
    let upstream = upstream(app, hop, service.is_some()).await?;
    let mut down = Messages::new(client, from_adapter, app.limits.body_bytes, &app.budget);
    let mut up = upstream;
    match service {
        Some(service) => calls(app, hop, &service, &mut down, &mut up).await,
        None => {
            app.watch.metrics.skip(Skip::Unlisted);
            tunnel(app, &mut down, &mut up).await
        }
    }
}

fn service_of(app: &App, hop: &Hop) -> Option<Arc<Service>> {
    match app.watch.standing(&hop.endpoint) {
        EndpointState::Service(id) => {
            app.watch.services.get(id).filter(|service| service.family == ProtocolKind::Thrift)
        }
        EndpointState::Unlisted | EndpointState::Conflict => None,
    }
}

/// Connects to the service's adapter if one is known and responds, otherwise to the service.
async fn upstream(app: &App, hop: &Hop, is_listed: bool) -> io::Result<Messages> {
    let limit = app.limits.body_bytes;
    if let Some(peer) = app.peer(&hop.endpoint).filter(|_| hop.side == Side::Client && is_listed) {
        match app.dial.greet(&peer).await {
            Ok(stream) => return Ok(Messages::new(stream, true, limit, &app.budget)),
            Err(error) => app.peer_failed(&peer, &error),
        }
    }
    let stream = app.dial.connect(&hop.forward, hop.whom()).await?;
    Ok(Messages::new(stream, false, limit, &app.budget))
}

async fn calls(
    app: &Arc<App>,
    hop: &Hop,
    service: &Arc<Service>,
    down: &mut Messages,
    up: &mut Messages,
) -> io::Result<()> {
    // Bytes before the first call are the greeting between adapters, which that call includes.
    let (mut count_up, mut seen) = (up.stream.count(), 0);
    let mut was_called = false;
    let mut service = service.clone();
    loop {
        // An idle connection waits for both sides, since either may end. The service has priority:
        // once closed, it cannot take a request.
        let got = tokio::select! {
            biased;
            filled = up.fill(), if !up.has_bytes() => {
                match filled {
                    // The adapter ended, but its service may still run. The party need not notice.
                    Ok(0) | Err(_) if up.is_adapter && was_called => {
                        *up = upstream(app, hop, true).await?;
                        (count_up, seen, was_called) = (up.stream.count(), 0, false);
                        continue;
                    }
                    Ok(0) => return Ok(()),
                    Err(error) => return Err(error),
                    Ok(_) => {}
                }
                // Unsolicited bytes from a service cannot be split into calls.
                if app.watch.refuse_unchecked(Unchecked::Unreadable).is_some() {
                    return Ok(());
                }
                app.watch.metrics.skip(Skip::Unreadable);
                return tunnel(app, down, up).await;
            }
            got = timeout(app.limits.idle, down.next()) => match got {
                Ok(got) => got?,
                Err(_) => return Ok(()),
            },
            () = app.ending(), if !down.has_bytes() => return Ok(()),
        };
        match got {
            Received::End => return Ok(()),
            Received::Opaque { .. } => {
                if app.watch.refuse_unchecked(Unchecked::Unreadable).is_some() {
                    return Ok(());
                }
                app.watch.metrics.skip(Skip::Unreadable);
                return tunnel(app, down, up).await;
            }
            Received::Large { length, skip } => {
                if app.watch.refuse_unchecked(skip.unread()).is_some() {
                    return Ok(());
                }
                app.watch.metrics.skip(skip);
                down.pass(up, length).await?;
                unchecked_reply(app, hop, down, up).await?;
            }
            Received::Message { block, bytes, begin, protocol, framing } => {
                was_called = true;
                let since = crate::clock::now();
                if !app.watch.services.is_current(&service) {
                    // The contract has changed since the last call of this connection.
                    let Some(renewed) = service_of(app, hop) else {
                        app.watch.metrics.skip(Skip::Unlisted);
                        up.send(None, &bytes).await?;
                        return tunnel(app, down, up).await;
                    };
                    service = renewed;
                }
                let message = app.watch.guarded(|| crate::decode::thrift_message(protocol, &bytes[begin..]));
                let Some(Ok(message)) = message else {
                    if app.watch.refuse_unchecked(Unchecked::Unreadable).is_some() {
                        return Ok(());
                    }
                    app.watch.metrics.skip(Skip::Unreadable);
                    up.send(None, &bytes).await?;
                    return tunnel(app, down, up).await;
                };
                let is_oneway = message.header.kind == MessageKind::Oneway;
                let (number, is_sampled) = app.watch.next_call();
                // An empty block means that the previous adapter did not check the call. Neither
                // does this one, unless that would exempt the call from `enforce`.
                let block = block.filter(|block| !(app.watch.refuses_unchecked && block.is_empty()));
                let is_looked_at = is_sampled && block.as_ref().is_none_or(|block| !block.is_empty());
                let called = if is_looked_at {
                    app.watch.guarded(|| service.thrift_request(&message))
                } else {
                    app.watch.metrics.skip(Skip::Sample);
                    None
                };
                let refuse = |refusal: &Refusal| refused(protocol, framing, &message.header, refusal);
                if is_looked_at && called.is_none() && !app.watch.fail_open {
                    return Err(io::Error::other("the adapter failed"));
                }
                if let Some(RequestKind::Unreadable) = called
                    && let Some(refusal) = app.watch.refuse_unchecked(Unchecked::Unreadable)
                {
                    down.send(None, &refuse(&refusal)).await?;
                    continue;
                }
                let Some(RequestKind::Known(op, request)) = called else {
                    match called {
                        Some(RequestKind::Unlisted(operation)) => app.unlisted(&service.name, &operation),
                        Some(_) => app.watch.metrics.skip(Skip::Unreadable),
                        None if is_looked_at => app.watch.metrics.skip(Skip::Failed),
                        None => {}
                    }
                    up.send(None, &bytes).await?;
                    if !is_oneway {
                        unchecked_reply(app, hop, down, up).await?;
                    }
                    continue;
                };
                let mut share = app.budget.share();
                if !share.resize(request.tape.memory_bytes()) {
                    drop(request);
                    if let Some(refusal) = app.watch.refuse_unchecked(Unchecked::Memory) {
                        down.send(None, &refuse(&refusal)).await?;
                        continue;
                    }
                    app.watch.metrics.skip(Skip::Memory);
                    up.send(None, &bytes).await?;
                    if !is_oneway {
                        unchecked_reply(app, hop, down, up).await?;
                    }
                    continue;
                }
                let mut passing = InFlightCall::new(app, hop, &service, op, number, since);
                match passing.request(&request, block.as_deref(), up.is_adapter) {
                    Decision::Pass(block) => {
                        passing.metadata_bytes +=
                            up.send(block.as_deref(), &bytes).await? - block.map_or(0, |block| block.len())
                    }
                    Decision::Refuse(refusal) => {
                        if !is_oneway {
                            down.send(None, &refuse(&refusal)).await?;
                        }
                        passing.end(0);
                        continue;
                    }
                    Decision::Broken => return Err(io::Error::other("the adapter failed")),
                }
                let mut messages = bytes.len();
                passing.pause();
                if is_oneway {
                    passing.end(extra(&count_up, &mut seen, messages, up.is_adapter));
                    continue;
                }
                let got = timeout(app.limits.answer(up.is_adapter), up.next()).await;
                passing.resume();
                let got = match got {
                    Ok(got) => got?,
                    Err(_) => {
                        late(app, hop, up);
                        return Ok(());
                    }
                };
                match got {
                    Received::Message { block, bytes, begin, protocol, .. } => {
                        messages += bytes.len();
                        match reply(app, &service, &mut passing, &request, block.as_ref(), protocol, &bytes[begin..]) {
                            Decision::Pass(block) => {
                                let length = block.as_ref().map_or(0, Vec::len);
                                passing.metadata_bytes += down.send(block.as_deref(), &bytes).await? - length;
                            }
                            Decision::Refuse(refusal) => drop(down.send(None, &refuse(&refusal)).await?),
                            Decision::Broken => return Err(io::Error::other("the adapter failed")),
                        }
                    }
                    Received::Large { length, skip } => {
                        if let Some(refusal) = app.watch.refuse_unchecked(skip.unread()) {
                            down.send(None, &refuse(&refusal)).await?;
                            passing.end(0);
                            return Ok(());
                        }
                        passing.skipped(skip);
                        messages += length;
                        up.pass(down, length).await?;
                    }
                    Received::End => return Ok(()),
                    Received::Opaque { what } => {
                        passing.skipped(Skip::Unreadable);
                        // The previous adapter, if any, sees plain bytes from now on and no reply.
                        let malformed = what.map(Reply::malformed);
                        match malformed.map(|reply| passing.reply_alone(&request, &reply)) {
                            Some(Decision::Refuse(refusal)) => {
                                down.send(None, &refuse(&refusal)).await?;
                                passing.end(0);
                                return Ok(());
                            }
                            Some(Decision::Broken) => return Err(io::Error::other("the adapter failed")),
                            None | Some(Decision::Pass(_)) => {}
                        }
                        if let Some(refusal) = app.watch.refuse_unchecked(Unchecked::Unreadable) {
                            down.send(None, &refuse(&refusal)).await?;
                            passing.end(0);
                            return Ok(());
                        }
                        passing.end(0);
                        return tunnel(app, down, up).await;
                    }
                }
                passing.end(extra(&count_up, &mut seen, messages, up.is_adapter));
            }
        }
    }
}

fn reply(
    app: &App,
    service: &Service,
    passing: &mut InFlightCall<'_>,
    request: &crate::decode::Request<'_>,
    block: Option<&Bytes>,
    protocol: codecs::thrift::Protocol,
    bytes: &[u8],
) -> Decision {
    // The block of a reply is empty if nothing is introduced.
    let read = app.watch.guarded(|| match crate::decode::thrift_message(protocol, bytes) {
        Ok(message) => service.thrift_reply(passing.op(), &message),
        Err(Unread::Over) => Reply::opaque(),
        Err(Unread::Malformed(what)) => Reply::malformed(what),
    });
    let reply = read.unwrap_or_else(Reply::opaque);
    passing.reply(request, &reply, block.map(|block| &block[..]))
}

fn late(app: &App, hop: &Hop, up: &Messages) {
    app.late(app.watch.peer(&hop.endpoint).filter(|_| up.is_adapter).as_deref());
}

/// Forwards the reply to an unchecked call.
async fn unchecked_reply(app: &App, hop: &Hop, down: &mut Messages, up: &mut Messages) -> io::Result<()> {
    match timeout(app.limits.answer(up.is_adapter), up.next()).await {
        Ok(Ok(Received::Message { bytes, .. })) => down.send(None, &bytes).await.map(drop),
        Ok(Ok(Received::Large { length, .. })) => up.pass(down, length).await,
        Ok(Ok(Received::End)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(Ok(Received::Opaque { .. })) => tunnel(app, down, up).await.and(Err(io::ErrorKind::UnexpectedEof.into())),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            late(app, hop, up);
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

/// Bytes between the adapters in addition to the messages.
fn extra(count_up: &std::sync::atomic::AtomicU64, seen: &mut u64, messages: usize, is_adapter: bool) -> i64 {
    let all = count_up.load(Ordering::Relaxed);
    let passed = all - std::mem::replace(seen, all);
    if is_adapter { passed as i64 - messages as i64 } else { 0 }
}

/// The exception sent for a rejected call.
fn refused(
    protocol: codecs::thrift::Protocol,
    framing: codecs::thrift::Framing,
    header: &Header<'_>,
    refusal: &Refusal,
) -> Vec<u8> {
    const INTERNAL_ERROR: i32 = 6;
    let mut out = Vec::new();
    compose_application_exception(&mut out, protocol, framing, header, &refusal.text(), INTERNAL_ERROR);
    out
}

/// Copies bytes in both directions until both have ended or nothing arrives for a while.
pub(crate) async fn tunnel(app: &App, down: &mut Messages, up: &mut Messages) -> io::Result<()> {
    up.open_up().await?;
    down.open_up().await?;
    let (rest, back) = (down.rest(), up.rest());
    up.stream.write_all(&rest).await?;
    down.stream.write_all(&back).await?;
    up.stream.flush().await?;
    down.stream.flush().await?;
    crate::stream::copy(app.limits.idle, &mut down.stream, &mut up.stream).await
}
