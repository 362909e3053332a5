//! The io_uring driver: one system call per turn submits all sends, fetches all completions and waits. A multishot
//! receive per connection stays active and uses buffers of a shared pool. With back-pressure
//! (`Config::pause_reads_above_bytes`), it ends after `Config::receive_bytes`, so that little arrives while reads are
//! paused. Before Linux 6.17, which added this limit, each receive is submitted separately instead. Neither costs
//! additional system calls. Sends wait until the next turn. The kernel completes each send during submission, so
//! afterwards it uses only memory of the pool. If a socket accepts no more, the remaining bytes wait in the connection
//! until a poll reports room.
//!
//! Sockets are not registered with the ring: an experiment gained 0.1 % per ping-pong at 40 connections and 0.3 % at
//! 400, less than the noise. A slot becomes free only when the kernel has no operation left for its connection.

mod connection;
mod listening;
mod receive_buffers;
mod ring;
mod tag;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::Shutdown;

use self::connection::{Connection, Phase, operation};
use self::listening::Listening;
use self::receive_buffers::Buffers;
use self::ring::{Completion, Receives, Ring};
use self::tag::Kind;
use crate::address::Address;
use crate::connection_slots::Slots;
use crate::driver::{
    Close, CloseReason, Config, Conn, Data, Driver, Event, KernelDriver, Listener, Nanos, SendError, Waker,
};
use crate::outgoing::Outgoing;
use crate::precise_waits;
use crate::socket;
use crate::thread_and_process::monotonic_ns;

/// Maximum total size of the receive buffers in bytes, unless 8 buffers are larger. The kernel cycles through them, so
/// all are resident, and together they exceed the L1 cache.
const RECEIVE_BYTES_MAX: usize = 2 << 20;
/// Maximum size of a send in bytes. The kernel sends at most just under 2 GiB at once and does not report short sends.
const SEND_BYTES_MAX: usize = 1 << 30;
/// Stands for [`Uring::lent_bytes`] in [`Data`].
const HELD_BACK: u32 = u32::MAX;
/// Maximum capacity of an outgoing buffer that is kept for reuse, in bytes.
const OUTGOING_KEPT_BYTES: usize = 64 << 10;

/// The io_uring driver. It stays on the thread that created it, and sets its timer slack to 1 ns.
pub struct Uring {
    ring: Ring,
    config: Config,
    connections: Slots<Connection>,
    listeners: Vec<Listening>,
    waker: Waker,
    waker_armed: bool,
    changed: Vec<Conn>,
    sending: Vec<Conn>,
    ending: bool,
    /// Completions to handle. A vector reuses the same memory from the start; a queue would cycle through all of it.
    inbox: Vec<Completion>,
    read: usize,
    pending_events: VecDeque<Event>,
    waiting_for_slot: VecDeque<(Listener, OwnedFd)>,
    /// Unused outgoing buffers. A connection has a buffer only while it sends, so there is one per sender in a turn.
    spare: Vec<Outgoing>,
    lent_buffer: Option<u16>,
    /// Bytes of connections with too many unsent bytes, received before the kernel stopped: for each connection less
    /// than twice `Config::receive_bytes`.
    held_back: HashMap<Conn, Vec<u8>>,
    /// The held bytes of the latest event with [`HELD_BACK`].
    lent_bytes: Vec<u8>,
    /// Error for the next turn to return if no connection can be accepted and none is open; otherwise `None`.
    out_of_room: Option<Errno>,
    /// Whether a turn failed, so that the queue may contain entries that the kernel has not taken.
    failed: bool,
    _stays_on_its_thread: PhantomData<*const ()>,
}

impl Uring {
    /// Creates a driver. Fails if the kernel lacks or forbids required features, all of which Linux 6.1 has.
    pub fn new(config: &Config) -> io::Result<Self> {
        Self::with_features(config, true)
    }

    /// Creates a driver like [`Self::new`] that uses only features of Linux 6.1.
    pub fn with_oldest_features(config: &Config) -> io::Result<Self> {
        Self::with_features(config, false)
    }

    fn with_features(config: &Config, newer: bool) -> io::Result<Self> {
        let connections = config.connections;
        if connections > tag::SLOTS_MAX || u32::try_from(config.receive_bytes).is_err() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many connections or bytes for one receive"));
        }
        let receive_bytes = config.receive_bytes.max(1);
        let most = (RECEIVE_BYTES_MAX / receive_bytes).clamp(8, 4096);
        let count = connections.clamp(8, most).next_power_of_two().min(usize::from(Buffers::COUNT_MAX));
        let submissions = connections.clamp(16, 1024).next_power_of_two() as u32;
        // Room for one completion per buffer and two per connection.
        let completions = (count + 2 * connections + 16).min(1 << 15).next_power_of_two() as u32;
        let mut ring = Ring::new(submissions, completions, Buffers::new(count as u16, receive_bytes)?)?;
        if config.pause_reads_above_bytes == usize::MAX {
            ring.receives = Receives::Multishot { limit_bytes: 0 };
            ring.buffers.hand_over(count);
        } else if newer && ring.can_limit_receives()? {
            ring.receives = Receives::Multishot { limit_bytes: receive_bytes as u32 };
        }
        precise_waits::precise_timers();
        Ok(Self {
            ring,
            connections: Slots::new(connections),
            listeners: Vec::new(),
            waker: Waker::new()?,
            waker_armed: false,
            changed: Vec::with_capacity(connections),
            sending: Vec::with_capacity(connections),
            ending: false,
            inbox: Vec::with_capacity(completions as usize),
            read: 0,
            pending_events: VecDeque::with_capacity(connections),
            waiting_for_slot: VecDeque::new(),
            spare: Vec::with_capacity(connections),
            lent_buffer: None,
            held_back: HashMap::new(),
            lent_bytes: Vec::new(),
            out_of_room: None,
            failed: false,
            config: Config { receive_bytes, ..config.clone() },
            _stays_on_its_thread: PhantomData,
        })
    }

    fn insert_connection(&mut self, socket: OwnedFd, phase: Phase) -> io::Result<Conn> {
        let connection = Connection { socket: Some(socket), phase, ..Connection::default() };
        let conn = self.connections.insert(connection).map_err(|_| socket::no_slot(self.config.connections))?;
        // One buffer per connection suffices: a receive without a buffer is submitted again in the next turn.
        self.ring.buffers.hand_over(self.connections.len());
        self.change(conn);
        Ok(conn)
    }

    fn change(&mut self, conn: Conn) {
        if let Some(connection) = self.connections.get_mut(conn)
            && !std::mem::replace(&mut connection.queued, true)
        {
            self.changed.push(conn);
        }
    }

    fn finish(&mut self, conn: Conn, reason: CloseReason) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if matches!(connection.phase, Phase::Finished(_)) {
            return;
        }
        connection.phase = Phase::Finished(reason);
        connection.outgoing.clear();
        connection.blocked = false;
        if connection.armed > 0 {
            return self.change(conn);
        }
        connection.socket = None;
        self.pending_events.push_back(Event::Closed(conn, reason));
    }

    fn remove(&mut self, conn: Conn) -> Option<OwnedFd> {
        let mut connection = self.connections.remove(conn)?;
        self.held_back.remove(&conn);
        assert!(connection.armed == 0, "the kernel still has operations on this connection");
        // After a failure, the buffer is kept, because the kernel may use it until the ring is dropped.
        let capacity = connection.outgoing.capacity();
        if capacity > 0 && (capacity <= OUTGOING_KEPT_BYTES || self.failed) {
            connection.outgoing.clear();
            self.spare.push(connection.outgoing);
        }
        for listening in &mut self.listeners {
            listening.paused = false;
        }
        connection.socket
    }

    /// Ends the stream once all bytes are sent, and closes the connection if the peer's stream has also ended.
    fn end_stream_if_due(&mut self, conn: Conn) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if connection.phase != Phase::Open || !connection.end_sent || !connection.outgoing.is_empty() {
            return;
        }
        connection.shut_if_due();
        if connection.end_received {
            self.finish(conn, CloseReason::Local);
        }
    }

    fn prepare(&mut self) -> io::Result<()> {
        if !self.waker_armed {
            self.ring.poll(self.waker.0.as_fd(), PollFlags::IN, false, tag::WAKE)?;
            self.waker_armed = true;
        }
        self.prepare_listeners()?;
        for index in 0..self.changed.len() {
            self.prepare_connection(self.changed[index])?;
        }
        self.changed.clear();
        Ok(())
    }

    fn prepare_connection(&mut self, conn: Conn) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(conn) else { return Ok(()) };
        connection.queued = false;
        let Some(socket) = &connection.socket else { return Ok(()) };
        let may_send = !connection.blocked && matches!(connection.phase, Phase::Open | Phase::Closing);
        if may_send && !connection.outgoing.is_empty() {
            let bytes = connection.outgoing.waiting();
            let bytes = &bytes[..bytes.len().min(SEND_BYTES_MAX)]; // The rest goes in the next turn.
            connection.sending = bytes.len();
            self.sending.push(conn);
            self.ending |= connection.end_sent || connection.phase == Phase::Closing;
            let (is_slow, tag) = (connection.is_slow(&self.config), tag::connection_tag(Kind::Send, conn));
            // SAFETY: from here until `enter` returns in `submit`, only this function runs, for other connections, so
            // this outgoing buffer does not change. If `enter` or an earlier call fails, `failed` keeps `send` from
            // adding to the buffer and `remove` from freeing it until the ring is dropped, which happens first.
            unsafe { self.ring.send(socket.as_fd(), bytes, is_slow, tag) }?;
        }
        let wanted = connection.wanted(&self.config);
        if wanted == connection.armed {
            return Ok(());
        }
        for kind in [Kind::Receive, Kind::Writable, Kind::HangUp] {
            let (op, tag) = (operation(kind), tag::connection_tag(kind, conn));
            if wanted & !connection.armed & op != 0 {
                match kind {
                    Kind::Receive => self.ring.receive(socket.as_fd(), tag)?,
                    Kind::Writable => self.ring.poll(socket.as_fd(), PollFlags::OUT, false, tag)?,
                    _ => self.ring.poll(socket.as_fd(), PollFlags::empty(), true, tag)?,
                }
                connection.armed |= op;
            } else if connection.armed & !wanted & !connection.cancelling & op != 0 {
                self.ring.cancel(tag)?;
                connection.cancelling |= op;
            }
        }
        Ok(())
    }

    fn has_events(&self) -> bool {
        let can_accept = !self.waiting_for_slot.is_empty() && !self.connections.is_full();
        can_accept || self.read < self.inbox.len() || !self.pending_events.is_empty()
    }

    fn wait(&mut self, until: Option<Nanos>) -> io::Result<()> {
        let Some(until) = until else { return self.submit(None) };
        loop {
            let left = until.saturating_sub(monotonic_ns());
            let wait = precise_waits::approach(left);
            self.submit(Some(wait))?;
            let goes_on = wait != left && !self.has_events() && monotonic_ns() >= until - (left - wait);
            if !goes_on {
                return Ok(()); // An event or a signal ended the wait.
            }
        }
    }

    fn submit(&mut self, wait: Option<Nanos>) -> io::Result<()> {
        self.prepare()?;
        // A successful send produces no completion, so a turn that ends a stream must not wait for one.
        let wait = if std::mem::take(&mut self.ending) { Some(0) } else { wait };
        self.ring.enter(wait)?;
        let Self { ring, inbox, connections, .. } = self;
        ring.reap(inbox, |failed| {
            let (_, conn) = tag::split(failed.tag);
            if let Some(connection) = connections.get_mut(conn) {
                connection.sending = 0;
                match failed.error() {
                    None => {
                        connection.outgoing.consume(failed.result as usize);
                        connection.blocked = !connection.outgoing.is_empty();
                    }
                    Some(Errno::AGAIN) => connection.blocked = true,
                    Some(Errno::INTR) => {}
                    Some(error) => connection.broken = Some(socket::reason(error)),
                }
            }
        })?;
        for index in 0..self.sending.len() {
            self.after_send(self.sending[index]);
        }
        self.sending.clear();
        Ok(())
    }

    /// Removes the bytes that the kernel has sent: all of them, unless a completion reported otherwise.
    fn after_send(&mut self, conn: Conn) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        connection.outgoing.consume(std::mem::take(&mut connection.sending));
        if connection.broken.is_some() {
            connection.outgoing.clear();
        }
        if !self.held_back.is_empty() && !connection.is_slow(&self.config) && self.held_back.contains_key(&conn) {
            self.pending_events.push_back(Event::Data(conn, Data { buffer: HELD_BACK, len: 0 }));
        }
        if let Some(reason) = connection.broken {
            if connection.phase == Phase::Open && connection.armed & operation(Kind::Receive) != 0 {
                if let Some(socket) = &connection.socket {
                    let _ = rustix::net::shutdown(socket, Shutdown::Both); // Fails if the socket is already shut down.
                }
            } else {
                let local = connection.phase == Phase::Closing;
                self.finish(conn, if local { CloseReason::Local } else { reason });
            }
            return;
        }
        if connection.outgoing.is_empty() {
            let sent = std::mem::take(&mut connection.outgoing);
            if sent.capacity() <= OUTGOING_KEPT_BYTES {
                self.spare.push(sent);
            }
        }
        if !connection.outgoing.is_empty() || connection.wanted(&self.config) != connection.armed {
            self.change(conn);
        }
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if connection.phase == Phase::Closing && connection.outgoing.is_empty() {
            connection.shut_if_due();
            self.finish(conn, CloseReason::Local);
        } else if connection.end_sent {
            self.end_stream_if_due(conn);
        }
    }

    fn interpret(&mut self, done: Completion) -> Option<Event> {
        let (kind, conn) = tag::split(done.tag);
        match kind {
            Kind::Receive | Kind::Writable | Kind::HangUp => {}
            Kind::Accept => return self.accepted(conn.slot, done),
            Kind::Wake => {
                self.waker_armed = false;
                return self.waker.clear().then_some(Event::Woken);
            }
            Kind::Send => unreachable!("sends are handled when they are reaped"),
        }
        let connection = self.connections.get_mut(conn).expect("a slot is kept while the kernel has operations on it");
        if !done.has_more() {
            connection.armed &= !operation(kind);
            connection.cancelling &= !operation(kind);
            match connection.phase {
                Phase::Finished(reason) if connection.armed == 0 => {
                    connection.socket = None;
                    self.pending_events.push_back(Event::Closed(conn, reason));
                }
                Phase::Finished(_) => {}
                _ => self.change(conn),
            }
        }
        match kind {
            Kind::Receive => self.received(conn, done),
            Kind::Writable => self.writable(conn, done),
            _ => self.hung_up(conn, done),
        }
    }

    fn received(&mut self, conn: Conn, done: Completion) -> Option<Event> {
        let connection = self.connections.get_mut(conn)?;
        let is_open = connection.phase == Phase::Open;
        let is_slow = connection.is_slow(&self.config);
        if let Some(buffer) = done.buffer() {
            if is_open && done.result > 0 {
                if !is_slow {
                    self.lent_buffer = Some(buffer);
                    return Some(Event::Data(conn, Data { buffer: buffer.into(), len: done.result as u32 }));
                }
                let bytes = self.ring.buffers.get(buffer, done.result as usize);
                self.held_back.entry(conn).or_default().extend_from_slice(bytes);
            }
            self.ring.buffers.give_back(buffer);
        }
        // The end of the stream waits with the bytes before it; a later receive reports it again.
        if !is_open || (is_slow && done.result >= 0) {
            return None;
        }
        let reason = match (done.error(), connection.broken) {
            (None, None) => {
                connection.end_received = true;
                self.end_stream_if_due(conn);
                return Some(Event::EndOfStream(conn));
            }
            // No buffer was free (all are free now), or the receive was canceled. The next turn restarts the receive.
            (Some(Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN), _) => return None,
            (None, Some(reason)) => reason,
            (Some(error), _) => socket::reason(error),
        };
        self.finish(conn, reason);
        None
    }

    /// Returns the held bytes as an event, unless the connection was closed in the meantime.
    fn lend_held_back(&mut self, conn: Conn) -> Option<Event> {
        self.connections.get_mut(conn).filter(|connection| connection.phase == Phase::Open)?;
        self.lent_bytes = self.held_back.remove(&conn)?;
        Some(Event::Data(conn, Data { buffer: HELD_BACK, len: self.lent_bytes.len() as u32 }))
    }

    fn writable(&mut self, conn: Conn, done: Completion) -> Option<Event> {
        let connection = self.connections.get_mut(conn)?;
        if done.error().is_some() {
            return None; // The poll was canceled.
        }
        connection.blocked = false;
        if connection.phase == Phase::Open && connection.notify_when_sent && connection.outgoing.is_empty() {
            connection.notify_when_sent = false;
            return Some(Event::Sent(conn));
        }
        if connection.phase != Phase::Connecting {
            return None;
        }
        if let Some(reason) = connection.socket.as_ref().and_then(socket::pending_error) {
            self.finish(conn, reason);
            return None;
        }
        connection.phase = Phase::Open;
        self.end_stream_if_due(conn);
        Some(Event::Connected(conn))
    }

    fn hung_up(&mut self, conn: Conn, done: Completion) -> Option<Event> {
        let connection = self.connections.get_mut(conn)?;
        let flags = PollFlags::from_bits_truncate(done.result as u16);
        if done.error().is_some() || !flags.intersects(PollFlags::HUP | PollFlags::ERR) {
            return None; // The poll was canceled, or the peer's stream ended, which is already known.
        }
        let reason = connection.socket.as_ref().and_then(socket::pending_error).or(connection.broken);
        let in_order = connection.end_received && connection.shut;
        self.finish(conn, reason.unwrap_or(if in_order { CloseReason::Local } else { CloseReason::Reset }));
        None
    }
}

impl Driver for Uring {
    fn now(&self) -> Nanos {
        monotonic_ns()
    }

    fn listen(&mut self, address: &Address, backlog: u32) -> io::Result<(Listener, Address)> {
        let (bound, at) = socket::listening(address, backlog)?;
        let index = self.listeners.len() as u32;
        self.listeners.push(Listening { bound: Some(bound), ..Listening::default() });
        Ok((Listener(index), at))
    }

    fn stop_listening(&mut self, listener: Listener) {
        self.waiting_for_slot.retain(|(of, _)| *of != listener);
        if let Some(bound) = self.listeners.get_mut(listener.0 as usize).and_then(|listening| listening.bound.take()) {
            // A pending accept keeps the socket open, so it is shut down to stop listening immediately.
            let _ = rustix::net::shutdown(&bound.socket, Shutdown::Both);
        }
    }

    fn connect(&mut self, address: &Address) -> io::Result<Conn> {
        if self.connections.is_full() {
            return Err(socket::no_slot(self.config.connections));
        }
        let (socket, failed) = socket::connecting(address)?;
        let conn = self.insert_connection(socket, Phase::Connecting)?;
        if let Some(reason) = failed {
            self.finish(conn, reason);
        }
        Ok(conn)
    }

    fn send(&mut self, conn: Conn, bytes: &[u8]) -> Result<(), SendError> {
        let limit = self.config.send_bytes_max;
        let connection = self.connections.get_mut(conn).ok_or(SendError::Closed)?;
        let may = matches!(connection.phase, Phase::Connecting | Phase::Open);
        if !may || connection.end_sent || connection.broken.is_some() || self.failed {
            return Err(SendError::Closed);
        }
        if bytes.len() > limit - connection.outgoing.len() {
            return Err(SendError::Full(limit));
        }
        if connection.outgoing.capacity() == 0
            && let Some(spare) = self.spare.pop()
        {
            connection.outgoing = spare;
        }
        connection.outgoing.push(bytes);
        if !std::mem::replace(&mut connection.queued, true) {
            self.changed.push(conn);
        }
        Ok(())
    }

    fn notify_when_sent(&mut self, conn: Conn) {
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.notify_when_sent = true;
            self.change(conn);
        }
    }

    fn pause_reads(&mut self, conn: Conn, paused: bool) {
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.paused = paused;
            self.change(conn);
        }
    }

    fn end_stream(&mut self, conn: Conn) {
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.end_sent = true;
            self.end_stream_if_due(conn);
        }
    }

    fn close(&mut self, conn: Conn, how: Close) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if self.failed || matches!(connection.phase, Phase::Finished(_)) {
            return;
        }
        if how != Close::Graceful
            && let Some(socket) = &connection.socket
        {
            socket::reset_on_close(socket.as_fd());
        }
        if how != Close::Reset {
            if connection.phase == Phase::Closing {
                return;
            }
            connection.end_sent |= how == Close::GracefulThenReset;
            if !connection.outgoing.is_empty() {
                // A pending connect must complete before the bytes are sent.
                connection.blocked |= connection.phase == Phase::Connecting;
                connection.phase = Phase::Closing;
                return self.change(conn);
            }
            connection.shut_if_due();
        }
        self.finish(conn, CloseReason::Local);
    }

    fn turn(&mut self, until: Option<Nanos>) -> io::Result<()> {
        if self.has_events() {
            return Ok(());
        }
        if let Some(error) = self.out_of_room.take() {
            self.listeners.iter_mut().for_each(|listening| listening.paused = false);
            return Err(error.into());
        }
        if self.failed {
            return Err(io::Error::other("an earlier turn of this driver failed"));
        }
        if let Some(buffer) = self.lent_buffer.take() {
            self.ring.buffers.give_back(buffer);
        }
        self.inbox.clear();
        self.read = 0;
        let result = self.wait(until);
        self.failed = result.is_err();
        result
    }

    fn next_event(&mut self) -> Option<Event> {
        if let Some(buffer) = self.lent_buffer.take() {
            self.ring.buffers.give_back(buffer);
        }
        loop {
            if let Some(event) = self.pending_events.pop_front() {
                match event {
                    Event::Closed(conn, _) => drop(self.remove(conn)),
                    Event::Data(conn, _) => match self.lend_held_back(conn) {
                        None => continue,
                        event => return event,
                    },
                    _ => {}
                }
                return Some(event);
            }
            if !self.waiting_for_slot.is_empty()
                && !self.connections.is_full()
                && let Some((listener, socket)) = self.waiting_for_slot.pop_front()
                && let Some(event) = self.accept_or_queue(listener, socket)
            {
                return Some(event);
            }
            let done = *self.inbox.get(self.read)?;
            self.read += 1;
            if let Some(event) = self.interpret(done) {
                return Some(event);
            }
        }
    }

    fn bytes(&self, data: Data) -> &[u8] {
        if data.buffer == HELD_BACK {
            return &self.lent_bytes[..data.len as usize];
        }
        assert!(self.lent_buffer.is_some_and(|lent| u32::from(lent) == data.buffer), "the bytes of an earlier event");
        self.ring.buffers.get(data.buffer as u16, data.len as usize)
    }
}

impl KernelDriver for Uring {
    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn release(&mut self, conn: Conn) -> Option<OwnedFd> {
        let connection = self.connections.get_mut(conn)?;
        if connection.phase != Phase::Open {
            return None;
        }
        self.remove(conn)
    }

    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Conn> {
        socket::prepare(&socket)?;
        self.insert_connection(socket, Phase::Open)
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        self.inbox.drain(self.read..).for_each(|done| drop(done.accepted()));
        // The ring is the first field, so its operations end before sockets and buffers are dropped.
    }
}
