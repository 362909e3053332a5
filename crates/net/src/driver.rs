//! The interface that every backend implements, and its types.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::EventfdFlags;

use crate::address::Address;

/// A time or duration of the driver's monotonic clock, in nanoseconds: `CLOCK_MONOTONIC` for real
/// backends, virtual time for the simulated one.
pub type Nanos = u64;

/// Identifies a connection. The generation invalidates the identifier of a closed connection, so
/// its events never reach a later connection in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// Identifies received bytes. [`Driver::bytes`] returns them until the next call of
/// [`Driver::next_event`].
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub(crate) buffer: u32,
    pub(crate) start: u32,
    pub(crate) len: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A requested connection is established.
    Connected(Conn),
    /// A peer connected to a listener.
    Accepted(Listener, Conn),
    /// Bytes arrived.
    Data(Conn, Data),
    /// The peer sends no more, but may still read (half-close).
    EndOfStream(Conn),
    /// The connection is closed and its slot is free. This is its last event. It also reports a
    /// failed connect. After the caller's own [`Driver::close`], it follows once the kernel has no
    /// operation left for the connection.
    Closed(Conn, CloseReason),
    /// All bytes are sent. Reported once per [`Driver::notify_when_sent`].
    Sent(Conn),
    /// Another thread called the waker.
    Woken,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The caller closed it, or both sides ended their streams.
    Local,
    /// The peer reset it (`ECONNRESET`, `EPIPE`).
    Reset,
    /// There is no listener (`ECONNREFUSED`).
    Refused,
    /// The path of the Unix socket does not exist (`ENOENT`).
    NoSuchFile,
    /// The kernel gave up (`ETIMEDOUT`).
    TimedOut,
    /// The accept queue of the Unix socket's listener is full (`EAGAIN`).
    QueueFull,
    /// Any other error number.
    Os(i32),
}

/// How to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Sends the remaining bytes, then closes. The kernel sends a reset if received bytes were not
    /// read. A peer that never reads keeps the connection open; a second close with
    /// [`Close::Reset`] ends it.
    Graceful,
    /// Like [`Close::Graceful`], but sends a reset after the end of the stream. Linux keeps the
    /// port of the side that closes a TCP connection first in `TIME_WAIT` for a minute. The reset
    /// frees it, so a client can open one connection after another. The peer reads the end of the
    /// stream before the reset. Use it only for a few last bytes: it loses bytes that the kernel
    /// cannot send at once.
    GracefulThenReset,
    /// Drops the remaining bytes and sends a reset (`SO_LINGER` 0), which leaves no `TIME_WAIT`. A
    /// Unix socket reports a reset only if bytes are lost, otherwise an orderly close.
    Reset,
}

/// Why a send was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is closed; its [`Event::Closed`] was or will be delivered.
    #[error("the connection is closed")]
    Closed,
    /// The peer reads too slowly: more than `Config::send_bytes_max` would wait to be sent. Nothing
    /// was queued. The limit applies to waiting plus new bytes, so a single send never exceeds it.
    #[error("more than {limit} bytes would be waiting to be sent")]
    Full {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// Sizes, all fixed at creation.
#[derive(Clone, Debug)]
pub struct Config {
    /// Maximum number of open connections; slots are `0..connections`.
    pub connections: usize,
    /// Maximum number of bytes per receive.
    pub receive_bytes: usize,
    /// Maximum number of bytes that wait to be sent on one connection.
    pub send_bytes_max: usize,
    /// A connection with more unsent bytes than this is not read until they are sent: back-pressure
    /// for servers. `usize::MAX` for clients, which must read to let the peer drain.
    pub pause_reads_above_bytes: usize,
}

/// An event loop on one thread, with its connections and its clock.
pub trait Driver {
    /// The backend's name in records: `sim`, `epoll` or `io_uring`.
    fn backend(&self) -> &'static str;

    /// Reads the clock, which takes about 20 ns on real hardware.
    fn now(&self) -> Nanos;

    /// Listens on `address` (port 0: chosen by the kernel) and returns the bound address. With
    /// `shared`, several drivers can listen on one address (`SO_REUSEPORT`; not for Unix sockets).
    /// Connections beyond `Config::connections` wait in the kernel's queue for a free slot.
    /// `TCP_NODELAY` is set on accepted TCP connections.
    ///
    /// The path of a Unix socket is created here. It is removed when the listener or its driver
    /// ends, if it is still the same file. An existing path is an error (`AddrInUse`) that tells
    /// you whether a server listens there; it is not removed. The simulated network has no Unix
    /// sockets (`Unsupported`).
    fn listen(&mut self, address: &Address, backlog: u32, shared: bool) -> io::Result<(Listener, Address)>;

    /// Stops listening. Accepted connections remain open.
    fn stop_listening(&mut self, listener: Listener);

    /// Starts a connection; [`Event::Connected`] or [`Event::Closed`] reports the result.
    /// `TCP_NODELAY` is set on TCP. Fails at once only without a free slot or file descriptor, or
    /// for an invalid Unix socket path (`InvalidInput`).
    ///
    /// A TCP connection from a socket to itself counts as refused. The kernel makes one if a port
    /// in the ephemeral range has no listener. A Unix socket with a full queue fails with
    /// [`CloseReason::QueueFull`], where the kernel would retry a TCP connect.
    fn connect(&mut self, address: &Address) -> io::Result<Conn>;

    /// Sends `bytes` in order, at once or at the end of the turn. The driver copies them.
    fn send(&mut self, conn: Conn, bytes: &[u8]) -> Result<(), SendError>;

    /// Requests one [`Event::Sent`] when the kernel has taken all bytes of `conn` and accepts more.
    /// This sends a stream of any length in pieces, at the peer's pace.
    fn notify_when_sent(&mut self, conn: Conn);

    /// Stops or resumes receiving from `conn`. Data that the kernel has already handed over may
    /// still arrive, at most `Config::receive_bytes` with back-pressure. While paused, the end of
    /// the peer's stream may go unreported, but a closed connection is always reported.
    fn pause_reads(&mut self, conn: Conn, paused: bool);

    /// Sends the remaining bytes, then ends the stream (half-close); receiving continues. Once the
    /// peer's stream has also ended, [`Event::Closed`] follows with [`CloseReason::Local`].
    fn end_stream(&mut self, conn: Conn);

    /// Closes the connection. The only further event is [`Event::Closed`] with
    /// [`CloseReason::Local`]. Has no effect on a closed connection.
    fn close(&mut self, conn: Conn, how: Close);

    /// Submits pending operations, then waits for an event or until the clock reaches `until`.
    /// `None` waits without limit; a past time polls. If events from earlier turns remain, it does
    /// not wait. It may return early without an event (a signal). Fails only if the backend cannot
    /// continue.
    fn turn(&mut self, until: Option<Nanos>) -> io::Result<()>;

    /// Returns the next event, or `None` at the end of this turn. Invalidates the bytes of the
    /// previous event.
    fn next_event(&mut self) -> Option<Event>;

    /// The bytes of the latest [`Event::Data`].
    fn bytes(&self, data: Data) -> &[u8];
}

/// Additional operations of drivers with real sockets.
pub trait KernelDriver: Driver {
    /// Returns a handle with which any thread can end the wait in [`Driver::turn`], reported as
    /// [`Event::Woken`].
    fn waker(&self) -> Waker;

    /// Releases the socket of an accepted connection, so that another driver can
    /// [`adopt`](Self::adopt) it. Allowed while its [`Event::Accepted`] is the latest event. The
    /// slot becomes free and no further event of `conn` follows. `None` if `conn` is closed.
    fn release(&mut self, conn: Conn) -> Option<OwnedFd>;

    /// Takes over a connected socket in any mode. Fails and closes the socket if no slot is free.
    /// The connection is established at once, without an event.
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Conn>;
}

/// Ends a driver's wait from any thread. A wake before the wait is not lost. Several wakes before a
/// turn give one [`Event::Woken`].
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) Arc<OwnedFd>);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Self(Arc::new(rustix::event::eventfd(0, flags)?)))
    }

    pub fn wake(&self) {
        // The only possible error is a counter at its maximum, in which case the driver wakes
        // anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Clears pending wakes and returns whether there were any.
    pub(crate) fn clear(&self) -> bool {
        rustix::io::read(&self.0, &mut [0u8; 8]).is_ok()
    }
}
