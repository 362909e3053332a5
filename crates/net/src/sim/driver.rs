//! The driver of the simulated network.

use std::io;

use super::connection_end::{Owner, Phase, pop};
use super::{Listening, Note, Sim};
use crate::address::Address;
use crate::driver::{Close, CloseReason, Conn, Data, Driver, Event, Listener, Nanos, SendError};
use crate::socket;

impl Sim {
    pub(super) fn note(&mut self, conn: Conn) {
        let outgoing_max = self.config.pause_reads_above_bytes;
        let Some((_, _, end)) = self.end_of(conn) else { return };
        let has_arrived = !end.inbox.is_empty() || end.reset_arrived || (end.end_arrived && !end.end_told);
        if end.phase == Phase::Open && has_arrived && !end.is_paused(outgoing_max) && !end.noted {
            end.noted = true;
            self.notes.push_back(Note::Readable(conn));
        }
    }

    pub(super) fn note_sent(&mut self, conn: Conn) {
        if self.end_of(conn).is_some_and(|(_, _, end)| end.is_to_be_told_sent()) {
            self.notes.push_back(Note::Sent(conn));
        }
    }

    fn sent(&mut self, conn: Conn) -> Option<Event> {
        let (_, _, end) = self.end_of(conn).filter(|(_, _, end)| end.is_to_be_told_sent())?;
        end.notify_when_sent = false;
        Some(Event::Sent(conn))
    }

    pub(super) fn close_if_sent(&mut self, conn: Conn) {
        let Some((_, _, end)) = self.end_of(conn) else { return };
        let closing = end.phase == Phase::Closing && end.stands && end.outgoing.is_empty();
        if closing || (end.phase == Phase::Open && end.end_sent && end.end_told) {
            self.leave(conn);
        }
    }

    fn leave(&mut self, conn: Conn) {
        let Some((link, side, end)) = self.end_of(conn) else { return };
        end.end_wanted = true;
        if end.inbox.is_empty() {
            self.pump(link, side);
        } else {
            self.reset(link, side);
        }
        self.finish(conn, CloseReason::Local);
    }

    pub(super) fn finish(&mut self, conn: Conn, reason: CloseReason) {
        let Some((link, _, end)) = self.end_of(conn) else { return };
        let reason = match end.phase {
            Phase::Finished => return,
            Phase::Closing => CloseReason::Local,
            Phase::Connecting | Phase::Open => reason,
        };
        (end.phase, end.who) = (Phase::Finished, Owner::Gone);
        self.drop_if_gone(link);
        self.notes.push_back(Note::Event(Event::Closed(conn, reason)));
    }

    fn read(&mut self, conn: Conn) -> Option<Event> {
        self.end_of(conn)?.2.noted = false;
        if let Some(data) = self.receive_more(conn) {
            return Some(Event::Data(conn, data));
        }
        let outgoing_max = self.config.pause_reads_above_bytes;
        let (_, _, end) = self.end_of(conn)?;
        if end.phase != Phase::Open || end.is_paused(outgoing_max) {
            return None;
        }
        if end.reset_arrived {
            self.finish(conn, CloseReason::Reset);
            return None; // The event follows later in this turn.
        }
        if end.end_arrived && !end.end_told {
            end.end_told = true;
            self.close_if_sent(conn);
            return Some(Event::EndOfStream(conn));
        }
        None
    }

    fn accept(&mut self, index: u32) -> Option<Event> {
        if self.connections.is_full() {
            return None;
        }
        let link = self.listeners[index as usize].as_mut()?.queue.pop_front()?;
        let conn = self.connections.insert((link, 1)).ok()?;
        if let Some(end) = self.end(link, 1) {
            (end.who, end.phase) = (Owner::Driver(conn), Phase::Open);
        }
        self.note(conn);
        Some(Event::Accepted(Listener(index), conn))
    }

    fn accept_again(&mut self) {
        for (index, listening) in self.listeners.iter().enumerate() {
            if listening.as_ref().is_some_and(|listening| !listening.queue.is_empty()) {
                self.notes.push_back(Note::Accept(index as u32));
            }
        }
    }
}

fn no_unix() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the simulated network has no Unix sockets")
}

impl Driver for Sim {
    fn now(&self) -> Nanos {
        self.now
    }

    fn listen(&mut self, address: &Address, backlog: u32) -> io::Result<(Listener, Address)> {
        let mut address = address.inet().ok_or_else(no_unix)?;
        if address.port() == 0 {
            address.set_port(self.port_next);
            self.port_next = self.port_next.checked_add(1).ok_or(io::ErrorKind::AddrNotAvailable)?;
        }
        if self.listeners.iter().flatten().any(|listening| listening.address == address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let backlog = (backlog as usize).saturating_add(1); // As in Linux, the queue holds one more.
        self.listeners.push(Some(Listening { address, backlog, queue: Default::default() }));
        Ok((Listener(self.listeners.len() as u32 - 1), address.into()))
    }

    fn stop_listening(&mut self, listener: Listener) {
        let place = self.listeners.get_mut(listener.0 as usize).and_then(Option::take);
        for link in place.map(|listening| listening.queue).unwrap_or_default() {
            if let Some(end) = self.end(link, 1) {
                end.who = Owner::Gone;
            }
            self.reset(link, 1);
        }
    }

    fn connect(&mut self, address: &Address) -> io::Result<Conn> {
        let address = address.inet().ok_or_else(no_unix)?;
        let link = self.links.len();
        let conn = self.connections.insert((link, 0)).map_err(|_| socket::no_slot(self.config.connections))?;
        self.link(Owner::Driver(conn));
        self.travel(link, 0, move |sim| sim.connect_arrives(link, address, 0));
        Ok(conn)
    }

    fn send(&mut self, conn: Conn, bytes: &[u8]) -> Result<(), SendError> {
        let limit = self.config.send_bytes_max;
        let (link, side, end) = self.end_of(conn).ok_or(SendError::Closed)?;
        if !matches!(end.phase, Phase::Connecting | Phase::Open) || end.end_wanted || end.reset_arrived {
            return Err(SendError::Closed);
        }
        if bytes.len() > limit - end.outgoing.len() {
            return Err(SendError::Full(limit));
        }
        end.outgoing.extend(bytes);
        self.pump(link, side);
        Ok(())
    }

    fn notify_when_sent(&mut self, conn: Conn) {
        if let Some((_, _, end)) = self.end_of(conn) {
            end.notify_when_sent = true;
            self.note_sent(conn);
        }
    }

    fn pause_reads(&mut self, conn: Conn, paused: bool) {
        if let Some((_, _, end)) = self.end_of(conn) {
            end.paused = paused;
            self.note(conn);
        }
    }

    fn end_stream(&mut self, conn: Conn) {
        if let Some((link, side, end)) = self.end_of(conn)
            && matches!(end.phase, Phase::Connecting | Phase::Open)
        {
            end.end_wanted = true;
            self.pump(link, side);
            self.close_if_sent(conn);
        }
    }

    fn close(&mut self, conn: Conn, how: Close) {
        let Some((link, side, end)) = self.end_of(conn) else { return };
        match end.phase {
            Phase::Finished => {}
            _ if how == Close::Reset => {
                end.outgoing.clear();
                if end.stands {
                    self.reset(link, side);
                }
                self.finish(conn, CloseReason::Local);
            }
            Phase::Closing => {}
            _ if !end.outgoing.is_empty() => end.phase = Phase::Closing,
            Phase::Open => self.leave(conn),
            Phase::Connecting => self.finish(conn, CloseReason::Local),
        }
    }

    /// Advances time to the next simulated event, but at most to `until`. Fails if a real backend would wait forever.
    fn turn(&mut self, until: Option<Nanos>) -> io::Result<()> {
        let limit = until.map(|until| until.max(self.now));
        while self.notes.is_empty() {
            let next = self.agenda.first_entry().filter(|next| limit.is_none_or(|limit| next.key().0 <= limit));
            let Some(next) = next else {
                let until = until.ok_or_else(|| io::Error::other("deadlock: no events left"))?;
                self.now = if until > self.now { until } else { self.now + self.network.poll_ns.max(1) };
                break;
            };
            self.now = self.now.max(next.key().0);
            let change = next.remove();
            change(self);
        }
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        while let Some(note) = self.notes.pop_front() {
            let event = match note {
                Note::Event(event) => Some(event),
                Note::Readable(conn) => self.read(conn),
                Note::Sent(conn) => self.sent(conn),
                Note::Accept(index) => self.accept(index),
            };
            if let Some(Event::Connected(conn)) = event
                && self.end_of(conn).is_none_or(|(_, _, end)| end.phase != Phase::Open)
            {
                continue;
            }
            if let Some(Event::Closed(conn, _)) = event {
                self.connections.remove(conn);
                self.accept_again();
            }
            if event.is_some() {
                return event;
            }
        }
        None
    }

    fn receive_more(&mut self, conn: Conn) -> Option<Data> {
        self.connections.get_mut(conn)?;
        let most = self.dice.within_usize(&self.network.read_bytes).min(self.config.receive_bytes).max(1);
        let outgoing_max = self.config.pause_reads_above_bytes;
        let (link, side, end) = self.end_of(conn)?;
        if end.phase != Phase::Open || end.is_paused(outgoing_max) || end.inbox.is_empty() {
            return None;
        }
        let count = most.min(end.inbox.len());
        self.received = pop(&mut end.inbox, count);
        self.taken(link, side, count);
        self.note(conn);
        Some(Data { buffer: 0, len: count as u32 })
    }

    fn bytes(&self, data: Data) -> &[u8] {
        &self.received[..data.len as usize]
    }
}
