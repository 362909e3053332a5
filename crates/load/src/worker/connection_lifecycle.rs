//! Connections from connect to close, and the fate of their requests.

use std::borrow::Cow;
use std::io;

use net::{Close, CloseReason, Conn, Data, Driver, Nanos};
use wire::http1::{Memo, RequestMethod, Response};

use super::client_states_and_timers::State;
use super::{Source, Worker, send};
use crate::protocol::{Answer, Parsed, Protocol};
use crate::recorder::Fault;

/// Maximum number of times that a request is sent again because the server refused to process it.
const REFUSALS_MAX: u8 = 10;

impl<D: Driver, P: Protocol> Worker<'_, D, P> {
    pub(super) fn connect(&mut self, id: u32, at: Nanos) {
        if self.switches_server(id) {
            return;
        }
        if self.connections.client(id).link.conn.is_some() {
            return self.go_on(id, at, self.connections.depth);
        }
        let server = self.protocol.server(self.connections.client(id).link.server).unwrap_or(&self.task.server);
        match self.driver.connect(&server.address) {
            Ok(conn) => self.connections.connects(id, conn, at, &self.tally),
            Err(error) => self.unconnectable(id, &error, at),
        }
    }

    /// Moves a client to the server of its next request. Returns whether the client must now connect first.
    pub(super) fn switches_server(&mut self, id: u32) -> bool {
        let client = self.connections.client(id);
        if client.in_flight > 0 || client.again > 0 {
            return false;
        }
        let server = self.protocol.next_server(&mut client.stream);
        server != client.link.server && self.switch_server(id, server)
    }

    #[cold]
    fn switch_server(&mut self, id: u32, server: u32) -> bool {
        self.send_owed(id);
        let client = self.connections.client(id);
        // Unsolicited bytes make later responses unreliable.
        let spoilt = client.link.conn.filter(|_| client.unsolicited.take().is_some());
        let too_many = self.connections.switch(id, server);
        self.protocol.switch(&mut self.connections.client(id).stream, server);
        [spoilt, too_many].into_iter().flatten().for_each(|conn| self.end_parked(conn));
        let is_open = self.connections.client(id).state == State::Open;
        if self.connections.per_request || is_open {
            return false;
        }
        let caused = self.protocol.caused(&self.connections.client(id).stream);
        self.connections.owe(id, caused);
        self.connections.queue(id);
        true
    }

    /// Processes data on a parked connection, where only messages of TLS and HTTP/2 that need no request are allowed.
    /// Anything else ends the connection.
    #[cold]
    pub(super) fn parked_data(&mut self, conn: Conn, data: Data) {
        let Some((id, parked)) = self.connections.parked(conn) else { return };
        let server = parked.server;
        self.plain.clear();
        let is_right = if let Some(session) = &mut parked.tls {
            let read = session.read(self.driver.bytes(data), &mut self.plain);
            read.is_ok() && !session.ended()
        } else {
            self.plain.extend_from_slice(self.driver.bytes(data));
            true
        };
        if !is_right || !self.reads_parked(id, server) {
            return self.end_parked(conn);
        }
        if let Some((_, parked)) = self.connections.parked(conn) {
            send(self.driver, conn, parked.tls.as_deref_mut(), &self.out, &mut self.cipher, false);
        }
    }

    /// Reads decrypted data of a parked connection, and puts the frames to send into `out`. Returns whether the
    /// connection can serve further requests.
    fn reads_parked(&mut self, id: u32, server: u32) -> bool {
        self.out.clear();
        if P::ORDERED || self.plain.is_empty() {
            return self.plain.is_empty();
        }
        let client = self.connections.client(id);
        self.protocol.switch(&mut client.stream, server);
        let (mut rest, at) = (&self.plain[..], self.driver.now());
        let is_right = loop {
            match self.protocol.read(&mut client.stream, P::Expected::default(), rest, at) {
                Parsed::More => break true,
                Parsed::Changed { used } if !self.protocol.is_leaving(&mut client.stream) => rest = &rest[used..],
                _ => break false,
            }
        };
        self.protocol.owed(&mut client.stream, &mut self.out);
        self.protocol.switch(&mut client.stream, client.link.server);
        is_right
    }

    #[cold]
    fn end_parked(&mut self, conn: Conn) {
        let Some((id, parked)) = self.connections.parked(conn) else { return };
        let server = parked.server;
        let client = self.connections.client(id);
        self.out.clear();
        self.protocol.switch(&mut client.stream, server);
        self.protocol.close(&mut client.stream, &mut self.out);
        self.protocol.switch(&mut client.stream, client.link.server);
        if let Some((_, parked)) = self.connections.parked(conn) {
            send(self.driver, conn, parked.tls.as_deref_mut(), &self.out, &mut self.cipher, true);
            (parked.conn, parked.tls) = (None, None);
        }
        self.driver.close(conn, Close::GracefulThenReset);
    }

    #[cold]
    fn unconnectable(&mut self, id: u32, error: &io::Error, at: Nanos) {
        self.tally.report(Fault::Os, error.to_string());
        if self.connections.client(id).in_flight == 0 {
            self.tally.failed_connect(Fault::Os, false, at);
        }
        self.lose(id, State::Down, Some(Fault::Os), at);
        self.connections.settle(id);
        self.connections.back_off(id, at, &self.tally);
    }

    pub(super) fn connected(&mut self, conn: Conn) {
        let Some(id) = self.connections.client_of(conn) else { return };
        let at = self.driver.now();
        let client = self.connections.client(id);
        self.tally.recorder.connect.record(at.saturating_sub(client.since));
        client.since = at;
        let server = self.protocol.server(client.link.server).unwrap_or(&self.task.server);
        let Some(to) = &server.tunnel_to else { return self.start_tls(id, at) };
        client.state = State::Tunneling;
        client.tunnel = Some(Box::default());
        self.out.clear();
        self.out.extend_from_slice(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes());
        self.send_out(id);
    }

    /// Reads the proxy's response to CONNECT. After a 2xx, all bytes belong to the server.
    #[cold]
    pub(super) fn tunnel_data(&mut self, id: u32, data: Data, at: Nanos) {
        let client = self.connections.client(id);
        let Some(reader) = &mut client.tunnel else { return };
        let bytes = self.driver.bytes(data);
        match reader.read(&mut Memo::default(), RequestMethod::Connect, bytes, |_| {}) {
            Ok(None) => {}
            Ok(Some((used, Response { status: 200..300, .. }))) => {
                let rest = bytes[used..].to_vec();
                client.tunnel = None;
                client.since = at;
                self.start_tls(id, at);
                if !rest.is_empty() {
                    self.plain = rest;
                    self.read(id, Source::Plain, at);
                }
            }
            Ok(Some((_, response))) => self.no_tunnel(id, &format!("status {}", response.status), at),
            Err(error) => self.no_tunnel(id, &error.to_string(), at),
        }
    }

    #[cold]
    fn no_tunnel(&mut self, id: u32, why: &str, at: Nanos) {
        self.tally.report(Fault::Proxy, format!("the proxy opened no tunnel: {why}"));
        self.refused(id, Fault::Proxy, at);
    }

    fn start_tls(&mut self, id: u32, at: Nanos) {
        let client = self.connections.client(id);
        let server = self.protocol.server(client.link.server).unwrap_or(&self.task.server);
        let Some(connector) = &server.tls else { return self.opened(id, at) };
        client.state = State::Handshaking;
        client.link.tls = Some(Box::new(connector.start()));
        self.out.clear();
        self.send_out(id);
    }

    pub(super) fn decrypt(&mut self, id: u32, data: Data, at: Nanos) {
        let client = self.connections.client(id);
        let (Some(session), Some(conn)) = (&mut client.link.tls, client.link.conn) else { return };
        self.plain.clear();
        let read = session.read(self.driver.bytes(data), &mut self.plain);
        let sent = send(self.driver, conn, Some(session), &[], &mut self.cipher, false);
        self.tally.recorder.sent_bytes += self.tally.measured(sent);
        let is_handshaking = client.state == State::Handshaking;
        if let Err(error) = read {
            self.tally.recorder.example(Fault::Tls, || Some(error.clone()));
            if is_handshaking {
                self.tally.report_problem(Fault::Tls, error);
            }
            return self.refused(id, Fault::Tls, at);
        }
        let ended = session.ended();
        if is_handshaking && !session.is_handshaking() {
            self.tally.recorder.handshake(at.saturating_sub(client.since), session.resumed());
            self.opened(id, at);
        }
        if !self.plain.is_empty() {
            self.read(id, Source::Plain, at);
        }
        if ended {
            self.ended(id, at, true);
        }
    }

    fn opened(&mut self, id: u32, at: Nanos) {
        self.out.clear();
        self.protocol.renew(&mut self.connections.client(id).stream, &mut self.out);
        if self.protocol.is_ready(&mut self.connections.client(id).stream) {
            return self.established(id, at);
        }
        self.connections.client(id).state = State::Opening;
        self.send_out(id);
    }

    pub(super) fn established(&mut self, id: u32, at: Nanos) {
        self.connections.connect_ended();
        let per_request = self.connections.per_request;
        let is_first = self.connections.established(id, at);
        let by_plan = std::mem::take(&mut self.connections.client(id).link.by_plan);
        if !is_first && !per_request && !by_plan {
            self.tally.recorder.reconnects += self.tally.measured(1);
        }
        if !per_request {
            let depth = self.connections.depth;
            if P::ORDERED {
                let again = self.resend(id, at, depth);
                return self.go_on(id, at, depth - again);
            }
            self.connections.owe(id, 0);
            return self.go_on(id, at, depth);
        }
        if self.resend(id, at, 1) > 0 {
            return;
        }
        if self.connections.client(id).in_flight == 0 {
            self.connections.client(id).at_once = true;
            return self.close_in_order(id, None, at); // The connection has shown that the server is reachable.
        }
        self.out.clear();
        let (client, flight) = self.connections.flight(id, 0);
        self.protocol.due(&mut client.stream, flight.intended);
        flight.expected = self.protocol.request(&mut client.stream, at, &mut self.rng, &mut self.out);
        self.tally.recorder.sent += 1;
        self.send_out(id);
    }

    pub(super) fn end_of_stream(&mut self, conn: Conn) {
        let Some(id) = self.connections.client_of(conn) else { return self.end_parked(conn) };
        let at = self.driver.now();
        // Without a closing alert, an attacker may have truncated the stream (RFC 8446, section 6.1).
        let in_order = self.connections.client(id).link.tls.as_ref().is_none_or(|session| session.ended());
        self.ended(id, at, in_order);
    }

    fn ended(&mut self, id: u32, at: Nanos, in_order: bool) {
        let (client, flight) = self.connections.flight(id, 0);
        let expected = flight.expected;
        if client.state == State::Closing {
            return;
        }
        if let Some(mut reader) = client.tunnel.take() {
            // The body of a refusal may end with the connection.
            let status = reader.end().ok().flatten().map(|response| format!("status {}", response.status));
            return self.no_tunnel(id, status.as_deref().unwrap_or("it closed the connection"), at);
        }
        if client.state == State::Open && client.in_flight > 0 {
            match self.protocol.end(&mut client.stream, expected) {
                Ok(answer) if in_order => {
                    self.answered(id, &answer, at);
                    return self.end_after_last(id, at);
                }
                Ok(_) => {
                    let why = || Some("the TLS stream ended without its closing alert".to_owned());
                    self.tally.recorder.example(Fault::Truncated, why);
                    self.lost_request(id, Some(Fault::Truncated), at);
                }
                // The server may have closed an idle connection before it received the request.
                Err(Fault::Closed) if client.link.answers > 0 => {
                    return self.give_up(id, Some(Fault::ClosedBetween), at);
                }
                Err(fault) => {
                    self.tally.recorder.example(fault, || self.protocol.explain());
                    self.lost_request(id, Some(fault), at);
                }
            }
        }
        let client = self.connections.client(id);
        let (fault, before) = match client.state {
            State::Handshaking => (Fault::Tls, "the TLS handshake was done"),
            State::Opening => (Fault::Closed, "the server's first frame"),
            _ if in_order && client.in_flight == 0 => {
                return self.close_in_order(id, Some(Fault::Closed), at);
            }
            _ => return self.give_up(id, Some(Fault::Closed), at),
        };
        self.tally.report_problem(fault, format!("closed before {before}"));
        self.refused(id, Fault::Closed, at);
    }

    /// Keeps the connection only for responses that the server still sends.
    #[cold]
    pub(super) fn leave(&mut self, id: u32, at: Nanos) {
        while let Some(connection) = self.protocol.connection(&mut self.connections.client(id).stream)
            && let Some(place) = connection.take_unprocessed()
        {
            self.connections.defer(id, place, at, &self.tally);
        }
        self.connections.not_idle(id);
    }

    /// Resends a request that the server did not process, up to [`REFUSALS_MAX`] times.
    #[cold]
    pub(super) fn declined(&mut self, id: u32, place: u32, at: Nanos) {
        self.tally.streams(|streams| &mut streams.refused);
        let flight = self.connections.flight(id, place).1;
        flight.refusals = flight.refusals.saturating_add(1);
        if flight.refusals <= REFUSALS_MAX {
            return self.connections.defer(id, place, at, &self.tally);
        }
        self.answered(id, &Answer { place, fault: Some(Fault::StreamReset), ..Answer::default() }, at);
    }

    /// Closes the connection after its last response, because a server may wait for the close (RFC 9112, section 9.6).
    pub(super) fn end_after_last(&mut self, id: u32, at: Nanos) {
        self.move_to_next_connection(id, at);
        let client = self.connections.client(id);
        client.at_once = client.link.answers > 0;
        self.close_in_order(id, None, at);
    }

    #[cold]
    fn move_to_next_connection(&mut self, id: u32, at: Nanos) {
        let caused = self.protocol.caused(&self.connections.client(id).stream);
        self.connections.move_to_next_connection(id, caused, at, &self.tally);
    }

    #[cold]
    pub(super) fn broken(&mut self, id: u32, fault: Fault, at: Nanos) {
        self.tally.recorder.example(fault, || self.protocol.explain());
        if self.connections.client(id).state == State::Opening {
            self.tally.report_problem(fault, self.protocol.explain().unwrap_or_default());
            self.tally.failed_connect(fault, self.connections.client(id).in_flight > 0, at);
            self.connections.settle(id);
        }
        if !P::ORDERED {
            let client = self.connections.client(id);
            if client.state == State::Open && client.in_flight == 0 && fault != Fault::Closed {
                self.tally.failed_connect(fault, false, at);
            }
            return self.close_in_order(id, Some(fault), at);
        }
        self.hang_up(id, fault, at);
    }

    /// Hangs up, because a response cannot be distinguished from the unsolicited bytes before it.
    #[cold]
    pub(super) fn reject_unsolicited(&mut self, id: u32, at: Nanos) {
        let begins = self.connections.client(id).unsolicited.take();
        self.tally.recorder.example(P::UNREADABLE, || Some(format!("unexpected bytes: `{}`", begins?)));
        self.hang_up(id, P::UNREADABLE, at);
    }

    fn hang_up(&mut self, id: u32, fault: Fault, at: Nanos) {
        self.lost_request(id, Some(fault), at);
        self.move_to_next_connection(id, at);
        self.give_up(id, None, at);
    }

    fn refused(&mut self, id: u32, fault: Fault, at: Nanos) {
        let client = self.connections.client(id);
        if client.in_flight == 0 || client.state != State::Open {
            self.tally.failed_connect(fault, client.in_flight > 0, at);
        }
        self.connections.settle(id);
        self.give_up(id, Some(fault), at);
    }

    pub(super) fn give_up(&mut self, id: u32, fault: Option<Fault>, at: Nanos) {
        self.close(id, fault, Close::Reset, at);
    }

    /// Closes the connection in an orderly way, including HTTP/2 and TLS (RFC 8446, section 6.1).
    pub(super) fn close_in_order(&mut self, id: u32, fault: Option<Fault>, at: Nanos) {
        self.out.clear();
        self.protocol.close(&mut self.connections.client(id).stream, &mut self.out);
        self.send_on(id, true);
        self.close(id, fault, Close::GracefulThenReset, at);
    }

    fn close(&mut self, id: u32, fault: Option<Fault>, how: Close, at: Nanos) {
        let client = self.connections.client(id);
        let Some(conn) = client.link.conn else { return };
        let was = std::mem::replace(&mut client.state, State::Closing);
        self.lose(id, was, fault, at);
        self.driver.close(conn, how);
    }

    fn lose(&mut self, id: u32, was: State, fault: Option<Fault>, at: Nanos) {
        if was.is_connecting() {
            self.connections.connect_ended();
        }
        while self.connections.client(id).in_flight > 0 {
            self.lost_request(id, fault, at);
        }
        if was == State::Open {
            self.connections.not_idle(id);
        }
        let caused = self.protocol.caused(&self.connections.client(id).stream);
        self.connections.owe(id, caused);
    }

    fn lost_request(&mut self, id: u32, fault: Option<Fault>, at: Nanos) {
        let flight = self.take_flight(id, 0, at);
        self.budget.give_back(id);
        if let Some(fault) = fault
            && !flight.timed_out
        {
            self.fail(&flight, fault, &Answer::default(), at);
        }
    }

    pub(super) fn closed(&mut self, conn: Conn, reason: CloseReason) {
        let Some(id) = self.connections.client_of(conn) else { return self.end_parked(conn) };
        let at = self.driver.now();
        let (fault, why) = explain_close(reason);
        let client = self.connections.client(id);
        let was = std::mem::replace(&mut client.state, State::Down);
        client.link.conn = None;
        client.tunnel = None;
        client.link.tls = None;
        client.since = at;
        let at_once = std::mem::take(&mut client.at_once);
        if was.is_connecting() {
            self.tally.failed_connect(fault, client.in_flight > 0, at);
            self.tally.report_problem(fault, why.into_owned());
        }
        self.lose(id, was, Some(fault), at);
        self.connections.settle(id);
        let per_request = self.connections.per_request;
        if !per_request && self.connections.waits_for_think_time(id, at) {
            return;
        }
        if !at_once {
            return self.connections.back_off(id, at, &self.tally);
        }
        if per_request {
            return self.go_on(id, at, 1);
        }
        self.connections.queue(id);
    }

    /// Counts requests and connects that exceed the timeout.
    pub(super) fn scan(&mut self, now: Nanos) {
        let timeout_ns = self.task.spec.timeout_ns;
        for id in 0..self.task.clients {
            let client = self.connections.client(id);
            let waited = now.saturating_sub(client.since);
            match client.state {
                State::Open => {
                    for nth in 0..client.in_flight {
                        let (_, flight) = self.connections.flight(id, nth);
                        if now.saturating_sub(flight.sent_at) <= timeout_ns {
                            if P::ORDERED {
                                break; // The remaining requests were sent later still.
                            }
                            continue;
                        }
                        let before = *flight;
                        flight.timed_out = true;
                        if !before.timed_out {
                            self.tally.in_vain += 1;
                            self.fail(&before, Fault::Timeout, &Answer::default(), now);
                        }
                    }
                }
                state if state.is_connecting() && waited > timeout_ns => {
                    self.tally.report_problem(Fault::ConnectTimeout, "timed out".to_owned());
                    self.refused(id, Fault::ConnectTimeout, now);
                }
                _ => {}
            }
        }
    }
}

/// The fault of a connection that the driver closed, and its cause in words.
fn explain_close(reason: CloseReason) -> (Fault, Cow<'static, str>) {
    match reason {
        CloseReason::Local => (Fault::Closed, "closed".into()),
        CloseReason::Reset => (Fault::Reset, "connection reset by peer".into()),
        CloseReason::Refused => (Fault::Refused, "connection refused".into()),
        CloseReason::NoSuchFile => (Fault::Refused, "no such file".into()),
        CloseReason::QueueFull => (Fault::Refused, "accept queue full".into()),
        CloseReason::TimedOut => (Fault::ConnectTimeout, "the kernel gave up waiting".into()),
        CloseReason::Os(number) => (Fault::Os, io::Error::from_raw_os_error(number).to_string().into()),
    }
}
