//! The epoll driver: one `recv` per ready socket. A ping-pong costs one `recv`, one `send` and its share of an
//! `epoll_pwait2`. `epoll_ctl` is called only when a connection starts or ends, a `recv` leaves bytes, or a peer reads
//! too slowly. Each `recv` runs when its event is taken, into one shared buffer that stays in the CPU cache.
//!
//! Sockets that wait only for data are edge-triggered, so that the kernel polls a socket once per event, not twice.

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

use crate::address::Address;
use crate::connection_slots::Slots;
use crate::driver::{
    Close, CloseReason, Config, Conn, Data, Driver, Event, KernelDriver, Listener, Nanos, SendError, Waker,
};
use crate::outgoing::Outgoing;
use crate::precise_waits;
use crate::socket::{self, Bound};
use crate::thread_and_process::monotonic_ns;

const READY_MAX: usize = 1024;
/// The upper half of a listener's notification data. Slot numbers are always smaller.
const LISTENER: u32 = u32::MAX;
const WAKER: u32 = u32::MAX - 1;
const ALARM: u32 = u32::MAX - 2;
/// Longer waits end by the alarm.
const ALARM_MIN_NS: Nanos = 1_000_000;
/// Conditions that a single `recv` may leave: the end of the stream, an error, or data after an urgent byte.
const LEFT: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR).union(EventFlags::PRI);
/// Waits for data or the end of the stream.
const RECEIVE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::PRI).union(EventFlags::ET);

/// The epoll driver. It stays on the thread that created it, and sets its timer slack to 1 ns.
pub struct Epoll {
    epoll: OwnedFd,
    config: Config,
    connections: Slots<Connection>,
    listeners: Vec<Option<Listening>>,
    waker: Waker,
    /// A timer that waits share. Most waits end early, and setting a timer for each takes 3 to 8 % of a load's CPU time.
    alarm: OwnedFd,
    /// When the alarm goes off; [`Nanos::MAX`] if it is not set.
    alarm_at: Nanos,
    ready: Vec<epoll::Event>,
    next: usize,
    ended: VecDeque<(Conn, CloseReason)>,
    received: Box<[u8]>,
    /// Error for the next turn to return if no connection can be accepted and none is open; otherwise `None`.
    out_of_room: Option<Errno>,
    _stays_on_its_thread: PhantomData<*const ()>,
}

#[derive(Debug, Default)]
struct Connection {
    /// The socket; `None` once closed. The slot stays in use until [`Event::Closed`] is delivered.
    socket: Option<OwnedFd>,
    phase: Phase,
    watched: EventFlags,
    outgoing: Outgoing,
    end_received: bool,
    end_sent: bool,
    notify_when_sent: bool,
    paused: bool,
    /// Why a send failed; `None` if no send failed. Data received earlier is still delivered.
    broken: Option<CloseReason>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Connecting,
    Open,
    Closing,
}

struct Listening {
    bound: Bound,
    paused: bool,
}

impl Epoll {
    /// Creates a driver. Fails if the kernel lacks `epoll_pwait2`, which Linux has had since 5.11.
    pub fn new(config: &Config) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        if config.connections >= ALARM as usize {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many connections"));
        }
        let mut ready = Vec::with_capacity(READY_MAX.min(config.connections + 3));
        epoll::wait(&epoll, spare_capacity(&mut ready), Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        let waker = Waker::new()?;
        epoll::add(&epoll, &waker.0, note(WAKER, 0), EventFlags::IN)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let alarm = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, &alarm, note(ALARM, 0), EventFlags::IN | EventFlags::ET)?;
        precise_waits::precise_timers();
        Ok(Self {
            epoll,
            alarm,
            alarm_at: Nanos::MAX,
            connections: Slots::new(config.connections),
            listeners: Vec::new(),
            waker,
            ready,
            next: 0,
            ended: VecDeque::with_capacity(config.connections),
            received: vec![0; config.receive_bytes.max(1)].into_boxed_slice(),
            out_of_room: None,
            config: config.clone(),
            _stays_on_its_thread: PhantomData,
        })
    }

    fn insert_connection(&mut self, socket: OwnedFd, phase: Phase) -> io::Result<Conn> {
        let watched = if phase == Phase::Connecting { EventFlags::OUT } else { RECEIVE };
        let connection = Connection { phase, watched, ..Connection::default() };
        let conn = self.connections.insert(connection).map_err(|_| socket::no_slot(self.config.connections))?;
        if let Err(error) = epoll::add(&self.epoll, &socket, note(conn.slot, conn.generation), watched) {
            self.connections.remove(conn);
            return Err(error.into());
        }
        self.connections.get_mut(conn).expect("just inserted").socket = Some(socket);
        Ok(conn)
    }

    /// Returns the time left until `until` and the length of the next wait; `None` if an event, or the alarm, ends it.
    fn next_wait(&mut self, until: Option<Nanos>) -> io::Result<Option<(Nanos, Nanos)>> {
        let Some(until) = until.filter(|&until| until < self.alarm_at) else { return Ok(None) };
        let left = until.saturating_sub(monotonic_ns());
        let wait = precise_waits::approach(left);
        if wait < ALARM_MIN_NS {
            return Ok(Some((left, wait)));
        }
        let at = until - (left - wait);
        let once = Itimerspec { it_interval: timespec(0), it_value: timespec(at) };
        rustix::time::timerfd_settime(&self.alarm, TimerfdTimerFlags::ABSTIME, &once)?;
        self.alarm_at = at;
        Ok(None)
    }

    fn end(&mut self, conn: Conn, reason: CloseReason) -> Event {
        self.connections.remove(conn);
        self.accept_again();
        Event::Closed(conn, reason)
    }

    fn accept_again(&mut self) {
        for (index, listening) in self.listeners.iter_mut().enumerate() {
            if let Some(listening) = listening
                && listening.paused
            {
                let data = note(LISTENER, index as u32);
                listening.paused = epoll::modify(&self.epoll, &listening.bound.socket, data, EventFlags::IN).is_err();
            }
        }
    }

    fn accept(&mut self, index: u32) -> Option<Event> {
        loop {
            let listening = self.listeners.get_mut(index as usize)?.as_mut()?;
            if listening.paused {
                return None;
            }
            let full = self.connections.is_full();
            let accepted = if full {
                Err(Errno::MFILE)
            } else {
                rustix::net::accept_with(&listening.bound.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
            };
            match accepted {
                Ok(socket) => match self.insert_connection(socket, Phase::Open) {
                    Ok(conn) => return Some(Event::Accepted(Listener(index), conn)),
                    Err(_) => continue, // The socket was closed, because the kernel had no memory to watch it.
                },
                Err(Errno::AGAIN) => return None,
                Err(error) if socket::is_out_of_room(error) => {
                    let none = EventFlags::empty();
                    listening.paused =
                        epoll::modify(&self.epoll, &listening.bound.socket, note(LISTENER, index), none).is_ok();
                    if self.connections.is_empty() && !full {
                        self.out_of_room = Some(error); // There is no connection whose end could make room.
                    }
                    return None;
                }
                Err(_) => continue, // The connection ended before it was accepted.
            }
        }
    }

    /// Returns at most one event for a ready connection. Unhandled conditions make the socket ready again.
    fn attend(&mut self, conn: Conn, flags: EventFlags) -> Option<Event> {
        let connection = self.connections.get_mut(conn)?;
        let socket = connection.socket.as_ref()?;
        let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        if connection.phase == Phase::Connecting {
            return match socket::pending_error(socket) {
                None => {
                    connection.phase = Phase::Open;
                    connection.flush(&self.epoll, conn, &self.config); // Sends bytes queued while connecting.
                    Some(Event::Connected(conn))
                }
                Some(reason) => Some(self.end(conn, reason)),
            };
        }
        if connection.phase == Phase::Closing {
            if !failed {
                connection.flush(&self.epoll, conn, &self.config);
            }
            let done = failed || connection.outgoing.is_empty() || connection.broken.is_some();
            return done.then(|| self.end(conn, CloseReason::Local));
        }
        if flags.contains(EventFlags::OUT) {
            connection.flush(&self.epoll, conn, &self.config);
            if connection.notify_when_sent && connection.outgoing.is_empty() && connection.broken.is_none() {
                // Keep watching, because most callers send more. For others, the next readiness ends the watch.
                connection.notify_when_sent = false;
                return Some(Event::Sent(conn));
            }
        }
        let socket = connection.socket.as_ref()?;
        if connection.watched.contains(EventFlags::IN) {
            if !flags.contains(EventFlags::IN) && !failed {
                return None;
            }
            let reason = match rustix::net::recv(socket, &mut *self.received, RecvFlags::DONTWAIT) {
                Ok((0, _)) => match connection.broken {
                    None => {
                        connection.end_received = true;
                        connection.watch(&self.epoll, conn, &self.config);
                        return Some(Event::EndOfStream(conn));
                    }
                    Some(reason) => reason,
                },
                Ok((count, _)) => {
                    if flags.intersects(LEFT) || count == self.received.len() {
                        connection.rearm(&self.epoll, conn, connection.watched);
                    }
                    return Some(Event::Data(conn, Data { buffer: 0, len: count as u32 }));
                }
                Err(Errno::AGAIN) => return None,
                Err(error) => socket::reason(error),
            };
            return Some(self.end(conn, reason));
        }
        if !failed {
            return None;
        }
        // Reads are off, and the connection is over because of a reset or because both streams have ended.
        let reason = socket::pending_error(socket).or(connection.broken);
        let in_order = connection.end_received && connection.end_sent;
        let reason = reason.unwrap_or(if in_order { CloseReason::Local } else { CloseReason::Reset });
        Some(self.end(conn, reason))
    }
}

impl Connection {
    fn watch(&mut self, epoll: &OwnedFd, conn: Conn, config: &Config) {
        let mut wanted = EventFlags::empty();
        let slow = self.outgoing.len() > config.pause_reads_above_bytes;
        if self.phase == Phase::Open && !self.end_received && !slow && !self.paused {
            wanted |= RECEIVE;
        }
        if !self.outgoing.is_empty() || (self.notify_when_sent && self.phase == Phase::Open) {
            // Without a new edge, a socket that is already writable would not be reported.
            wanted = wanted.difference(EventFlags::ET) | EventFlags::OUT;
        }
        // While a connect is pending, the watch must not change.
        if self.phase != Phase::Connecting && wanted != self.watched {
            self.rearm(epoll, conn, wanted);
        }
    }

    /// Sets the conditions to wait for. Those that already hold are reported again.
    fn rearm(&mut self, epoll: &OwnedFd, conn: Conn, wanted: EventFlags) {
        if let Some(socket) = &self.socket
            && epoll::modify(epoll, socket, note(conn.slot, conn.generation), wanted).is_ok()
        {
            self.watched = wanted;
        }
    }

    fn flush(&mut self, epoll: &OwnedFd, conn: Conn, config: &Config) {
        let Some(socket) = self.socket.as_ref() else { return };
        while !self.outgoing.is_empty() && self.broken.is_none() {
            match rustix::net::send(socket, self.outgoing.waiting(), SEND) {
                Ok(count) => self.outgoing.consume(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => {
                    self.outgoing.clear();
                    self.broken = Some(give_up(socket, error));
                }
            }
        }
        if self.outgoing.is_empty() {
            self.outgoing = Outgoing::default(); // Keep memory only while bytes wait.
        }
        if self.outgoing.is_empty() && self.end_sent {
            // This fails only on a lost connection, whose end will be reported.
            let _ = rustix::net::shutdown(socket, Shutdown::Write);
        }
        self.watch(epoll, conn, config);
    }
}

const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// Shuts the socket down but keeps it open, so that received data can be read before the end is reported.
fn give_up(socket: impl AsFd, error: Errno) -> CloseReason {
    let _ = rustix::net::shutdown(socket, Shutdown::Both); // Fails if the socket is already shut down.
    socket::reason(error)
}

fn timespec(ns: Nanos) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

fn note(upper: u32, lower: u32) -> EventData {
    EventData::new_u64(u64::from(upper) << 32 | u64::from(lower))
}

impl Driver for Epoll {
    fn now(&self) -> Nanos {
        monotonic_ns()
    }

    fn listen(&mut self, address: &Address, backlog: u32) -> io::Result<(Listener, Address)> {
        let (bound, at) = socket::listening(address, backlog)?;
        let index = self.listeners.len() as u32;
        epoll::add(&self.epoll, &bound.socket, note(LISTENER, index), EventFlags::IN)?;
        self.listeners.push(Some(Listening { bound, paused: false }));
        Ok((Listener(index), at))
    }

    fn stop_listening(&mut self, listener: Listener) {
        // Listener identifiers are never reused, so a leftover notification finds no listener.
        if let Some(place) = self.listeners.get_mut(listener.0 as usize) {
            *place = None;
        }
    }

    fn connect(&mut self, address: &Address) -> io::Result<Conn> {
        if self.connections.is_full() {
            return Err(socket::no_slot(self.config.connections));
        }
        let (socket, failed) = socket::connecting(address)?;
        let conn = self.insert_connection(socket, Phase::Connecting)?;
        if let Some(reason) = failed {
            self.connections.get_mut(conn).expect("just inserted").socket = None;
            self.ended.push_back((conn, reason));
        }
        Ok(conn)
    }

    fn send(&mut self, conn: Conn, bytes: &[u8]) -> Result<(), SendError> {
        let limit = self.config.send_bytes_max;
        let connection = self.connections.get_mut(conn).ok_or(SendError::Closed)?;
        let Some(socket) = connection.socket.as_ref() else { return Err(SendError::Closed) };
        if connection.phase == Phase::Closing || connection.end_sent || connection.broken.is_some() {
            return Err(SendError::Closed);
        }
        if bytes.len() > limit - connection.outgoing.len() {
            return Err(SendError::Full(limit));
        }
        let sent = if connection.phase == Phase::Connecting || !connection.outgoing.is_empty() {
            0
        } else {
            match rustix::net::send(socket, bytes, SEND) {
                Ok(count) => count,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(error) => {
                    connection.broken = Some(give_up(socket, error));
                    return Err(SendError::Closed);
                }
            }
        };
        if sent < bytes.len() {
            connection.outgoing.push(&bytes[sent..]);
            connection.watch(&self.epoll, conn, &self.config);
        }
        Ok(())
    }

    fn notify_when_sent(&mut self, conn: Conn) {
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.notify_when_sent = true;
            connection.watch(&self.epoll, conn, &self.config);
        }
    }

    fn pause_reads(&mut self, conn: Conn, paused: bool) {
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.paused = paused;
            connection.watch(&self.epoll, conn, &self.config);
        }
    }

    fn end_stream(&mut self, conn: Conn) {
        if let Some(connection) = self.connections.get_mut(conn)
            && !connection.end_sent
        {
            connection.end_sent = true;
            if connection.phase == Phase::Open {
                connection.flush(&self.epoll, conn, &self.config);
            }
        }
    }

    fn close(&mut self, conn: Conn, how: Close) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        let Some(socket) = connection.socket.as_ref() else { return };
        if how != Close::Graceful {
            socket::reset_on_close(socket.as_fd());
        }
        if how != Close::Reset {
            if connection.phase == Phase::Closing {
                return;
            }
            connection.end_sent |= how == Close::GracefulThenReset;
            if !connection.outgoing.is_empty() {
                connection.phase = Phase::Closing; // A pending connect completes first.
                connection.watch(&self.epoll, conn, &self.config);
                return;
            }
            if how == Close::GracefulThenReset {
                let _ = rustix::net::shutdown(socket, Shutdown::Write); // Fails on a lost connection.
            }
        }
        connection.socket = None;
        self.ended.push_back((conn, CloseReason::Local));
    }

    fn turn(&mut self, until: Option<Nanos>) -> io::Result<()> {
        if self.next < self.ready.len() || !self.ended.is_empty() {
            return Ok(());
        }
        if let Some(error) = self.out_of_room.take() {
            self.accept_again();
            return Err(error.into());
        }
        self.ready.clear();
        self.next = 0;
        loop {
            let wait = self.next_wait(until)?;
            let timeout = wait.map(|(_, wait)| timespec(wait));
            match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), timeout.as_ref()) {
                Ok(0) if wait.is_some_and(|(left, wait)| wait < left) => {} // The short final wait remains.
                Ok(_) | Err(Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn next_event(&mut self) -> Option<Event> {
        if let Some((conn, reason)) = self.ended.pop_front() {
            return Some(self.end(conn, reason));
        }
        while let Some(ready) = self.ready.get(self.next) {
            let data = ready.data.u64();
            let flags = ready.flags;
            let (upper, lower) = ((data >> 32) as u32, data as u32);
            if upper == LISTENER {
                // Go to the next socket only once the accept queue is empty, so that one turn accepts all connections.
                if let Some(event) = self.accept(lower) {
                    return Some(event);
                }
                self.next += 1;
                continue;
            }
            self.next += 1;
            if upper == ALARM {
                self.alarm_at = Nanos::MAX;
                continue;
            }
            if upper == WAKER {
                if self.waker.clear() {
                    return Some(Event::Woken);
                }
                continue;
            }
            if let Some(event) = self.attend(Conn { slot: upper, generation: lower }, flags) {
                return Some(event);
            }
        }
        None
    }

    fn receive_more(&mut self, conn: Conn) -> Option<Data> {
        let connection = self.connections.get_mut(conn)?;
        if !connection.watched.contains(EventFlags::IN) {
            return None;
        }
        match rustix::net::recv(connection.socket.as_ref()?, &mut *self.received, RecvFlags::DONTWAIT) {
            Ok((count, _)) if count > 0 => Some(Data { buffer: 0, len: count as u32 }),
            Err(Errno::AGAIN) => None,
            // The end of the stream or an error: the next turn reports it.
            _ => {
                connection.rearm(&self.epoll, conn, connection.watched);
                None
            }
        }
    }

    fn bytes(&self, data: Data) -> &[u8] {
        &self.received[..data.len as usize]
    }
}

impl KernelDriver for Epoll {
    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn release(&mut self, conn: Conn) -> Option<OwnedFd> {
        let socket = self.connections.get_mut(conn)?.socket.take()?;
        self.connections.remove(conn);
        let _ = epoll::delete(&self.epoll, &socket); // Cannot fail, since the socket is watched.
        self.accept_again();
        Some(socket)
    }

    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Conn> {
        socket::prepare(&socket)?;
        self.insert_connection(socket, Phase::Open)
    }
}
