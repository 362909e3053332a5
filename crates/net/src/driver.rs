//! The interface that every backend implements, and its types.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::EventfdFlags;

use crate::address::Address;

/// Nanoseconds of `CLOCK_MONOTONIC`, or of virtual time in the simulated backend.
pub type Nanos = u64;

/// Identifies a connection. Its generation distinguishes it from later connections in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conn {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Conn {
    /// The slot, in `0..Config::connections`, as an index for the caller's tables.
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

/// Identifies a listening socket of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Listener(pub(crate) u32);

/// Refers to received bytes, which [`Driver::bytes`] returns until the next call of [`Driver::next_event`].
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub(crate) buffer: u32,
    pub(crate) len: u32,
}

/// An event of a connection, a listener or the waker.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A requested connection is established.
    Connected(Conn),
    /// A peer connected to a listener.
    Accepted(Listener, Conn),
    /// Bytes arrived; [`Driver::bytes`] returns them.
    Data(Conn, Data),
    /// The peer sends no more bytes, but may still read (half-close).
    EndOfStream(Conn),
    /// The connection is closed and its slot is free. This is its last event, even after a failed connect. After
    /// [`Driver::close`], the event follows once the kernel has no operation left for the connection.
    Closed(Conn, CloseReason),
    /// All bytes of the connection have been sent. Reported once per call of [`Driver::notify_when_sent`].
    Sent(Conn),
    /// Another thread called the waker.
    Woken,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The caller closed the connection, or both sides ended their streams.
    Local,
    /// The peer reset the connection (`ECONNRESET`, `EPIPE`).
    Reset,
    /// Nothing listens at the address (`ECONNREFUSED`).
    Refused,
    /// The path of the Unix socket does not exist (`ENOENT`).
    NoSuchFile,
    /// The kernel gave up (`ETIMEDOUT`).
    TimedOut,
    /// The accept queue of the Unix socket's listener is full (`EAGAIN`).
    QueueFull,
    /// A different error, with its `errno`.
    Os(i32),
}

/// How to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Sends the remaining bytes, then closes. The kernel resets the connection if received bytes were not read. A peer
    /// that never reads keeps the connection open until a second close with [`Close::Reset`].
    Graceful,
    /// Closes like [`Close::Graceful`], but then sends a reset, which the peer sees after the end of the stream. The
    /// reset frees the port, which Linux otherwise keeps in `TIME_WAIT` for a minute at the side that closes TCP first.
    /// Suits only a few last bytes, because the kernel drops any that it cannot send at once.
    GracefulThenReset,
    /// Drops the remaining bytes and sends a reset (`SO_LINGER` 0), which leaves no `TIME_WAIT`. A Unix socket reports
    /// a reset only if bytes are lost; otherwise it reports an orderly close.
    Reset,
}

/// Why a send was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is closed; its [`Event::Closed`] has been or will be delivered.
    #[error("the connection is closed")]
    Closed,
    /// The peer reads too slowly: more than `Config::send_bytes_max` bytes would wait to be sent. Nothing was queued.
    /// The limit includes the new bytes, so it also bounds a single send. Contains the limit, in bytes.
    #[error("more than {0} bytes would be waiting to be sent")]
    Full(usize),
}

/// Size limits of a driver, fixed at its creation.
#[derive(Clone, Debug)]
pub struct Config {
    /// Maximum number of open connections; slots are `0..connections`.
    pub connections: usize,
    /// Maximum number of bytes per receive.
    pub receive_bytes: usize,
    /// Maximum number of bytes that wait to be sent on one connection.
    pub send_bytes_max: usize,
    /// Number of unsent bytes above which a connection is not read (back-pressure); `usize::MAX` for no limit.
    pub pause_reads_above_bytes: usize,
}

/// An event loop on one thread, with its connections and its clock.
pub trait Driver {
    /// Returns the clock's time in ns. Takes about 20 ns on real hardware.
    fn now(&self) -> Nanos;

    /// Listens on `address` and returns the bound address; the kernel replaces port 0. Connections without a free slot
    /// wait in the kernel's queue. Accepted TCP connections have `TCP_NODELAY`. The path of a Unix socket is created,
    /// and removed with the listener or driver if it is still the same file. If the path exists, the error
    /// (`AddrInUse`) says whether a server listens there. The simulated network has no Unix sockets (`Unsupported`).
    fn listen(&mut self, address: &Address, backlog: u32) -> io::Result<(Listener, Address)>;

    /// Stops listening. Accepted connections remain open.
    fn stop_listening(&mut self, listener: Listener);

    /// Starts a connection, with `TCP_NODELAY` on TCP; [`Event::Connected`] or [`Event::Closed`] follows. Fails at once
    /// only without a free slot or file descriptor, or for an invalid path (`InvalidInput`). Without a listener on an
    /// ephemeral port, the kernel can connect a TCP socket to itself, which counts as refused. A Unix socket with a
    /// full queue fails with [`CloseReason::QueueFull`], whereas the kernel retries a TCP connect.
    fn connect(&mut self, address: &Address) -> io::Result<Conn>;

    /// Sends `bytes` in order, at once or at the end of the turn. The driver copies them.
    fn send(&mut self, conn: Conn, bytes: &[u8]) -> Result<(), SendError>;

    /// Requests one [`Event::Sent`] once the kernel has taken all bytes and accepts more, for streams sent in pieces.
    fn notify_when_sent(&mut self, conn: Conn);

    /// Stops or resumes receiving. Data that the kernel has handed over may still arrive (with back-pressure, less than
    /// twice `Config::receive_bytes`). Pausing can delay the end of the stream, but not [`Event::Closed`].
    fn pause_reads(&mut self, conn: Conn, paused: bool);

    /// Sends the remaining bytes, then ends the stream (half-close). Receiving continues. Once the peer's stream has
    /// also ended, [`Event::Closed`] follows with [`CloseReason::Local`].
    fn end_stream(&mut self, conn: Conn);

    /// Closes an open connection. Only [`Event::Closed`] with [`CloseReason::Local`] follows.
    fn close(&mut self, conn: Conn, how: Close);

    /// Submits pending operations, then waits for an event until `until` (`None`: without limit; a past time polls).
    /// Does not wait if earlier events remain. May return early after a signal. Fails if the backend cannot continue.
    fn turn(&mut self, until: Option<Nanos>) -> io::Result<()>;

    /// Returns the next event; `None` at the end of the turn. Invalidates the bytes of the previous event.
    fn next_event(&mut self) -> Option<Event>;

    /// Returns data that has arrived on a connection since its last event; `None` if there is none, or if the driver
    /// reports it only by events. Invalidates the bytes of the previous event.
    fn receive_more(&mut self, _: Conn) -> Option<Data> {
        None
    }

    /// Returns the bytes of the latest [`Event::Data`].
    fn bytes(&self, data: Data) -> &[u8];
}

/// Additional operations of drivers with real sockets.
pub trait KernelDriver: Driver {
    /// Returns a handle that ends the wait in [`Driver::turn`] from any thread, with [`Event::Woken`].
    fn waker(&self) -> Waker;

    /// Releases an accepted connection for another driver to [`adopt`](Self::adopt). Its [`Event::Accepted`] must be
    /// the latest event. Its slot becomes free and no event follows. `None` if `conn` is closed.
    fn release(&mut self, conn: Conn) -> Option<OwnedFd>;

    /// Takes over a connected socket, blocking or not, without an event. Closes it and fails if no slot is free.
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Conn>;
}

/// Ends a driver's wait from any thread. An early wake is not lost; all wakes before a turn cause one [`Event::Woken`].
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) Arc<OwnedFd>);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Self(Arc::new(rustix::event::eventfd(0, flags)?)))
    }

    /// Ends the driver's current wait or, if the driver is not waiting, its next wait.
    pub fn wake(&self) {
        // The only possible error is a counter at its maximum, which also wakes the driver.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Clears all wakes and returns whether there were any.
    pub(crate) fn clear(&self) -> bool {
        rustix::io::read(&self.0, &mut [0u8; 8]).is_ok()
    }
}
