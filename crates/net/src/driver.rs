//! What every backend does, and the words it uses.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::EventfdFlags;

use crate::address::Address;

/// A point on the driver's monotonic clock, or a span, in nanoseconds. `CLOCK_MONOTONIC` for the real backends,
/// virtual time for the simulated one.
pub type Nanos = u64;

/// A connection, as the driver names it. The generation makes a name of a closed connection worthless: events of an
/// earlier owner of the same slot never reach the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conn {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Conn {
    /// The slot, `0..Config::connections`: an index for the caller's own tables.
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

/// A listening socket of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Listener(pub(crate) u32);

/// Bytes that arrived, as a name; [`Driver::bytes`] shows them until the next call of [`Driver::next_event`].
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub(crate) buffer: u32,
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A connection that was asked for stands.
    Connected(Conn),
    /// A peer connected to a listener.
    Accepted(Listener, Conn),
    /// Bytes arrived.
    Data(Conn, Data),
    /// The peer sends no more, but may still read (half-close).
    EndOfStream(Conn),
    /// The connection is gone and, from this event on, its slot is free; the last event of its name. Also the answer
    /// to a failed connect, and to the caller's own [`Driver::close`] once no operation of it is left in the kernel.
    Closed(Conn, CloseReason),
    /// Nothing waits to be sent any more; told once for each [`Driver::notify_when_sent`].
    Sent(Conn),
    /// Another thread called the waker.
    Woken,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The caller closed it, or both sides ended their streams in order.
    Local,
    /// The peer reset it (`ECONNRESET`, `EPIPE`).
    Reset,
    /// Nobody listens there (`ECONNREFUSED`).
    Refused,
    /// There is no Unix socket of that path (`ENOENT`).
    NoSuchFile,
    /// The kernel gave up (`ETIMEDOUT`).
    TimedOut,
    /// The listener of a Unix socket has as many connections to accept as its queue holds (`EAGAIN`).
    QueueFull,
    /// Any other error, by its number.
    Os(i32),
}

/// How to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Send what is left, then close. The kernel answers with a reset where the peer has sent bytes that nobody took.
    /// A peer that never reads holds the connection; a second close with [`Close::Reset`] ends that.
    Graceful,
    /// As [`Close::Graceful`], and a reset follows the end of the stream. Linux keeps the port of whoever closes a TCP
    /// connection first in `TIME_WAIT` for a minute; the reset frees it, so a client can open connection after
    /// connection. The peer reads the end of the stream before the reset. For a few last bytes only: what the kernel
    /// cannot send at once is lost.
    GracefulThenReset,
    /// Drop what is left and send a reset (`SO_LINGER` 0): no `TIME_WAIT` is left behind. A Unix socket knows resets only
    /// where bytes are lost, and looks closed in order otherwise.
    Reset,
}

/// Why bytes were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is no longer there; its [`Event::Closed`] is on the way or was delivered.
    #[error("the connection is closed")]
    Closed,
    /// The peer reads too slowly: more than `Config::send_bytes_max` would wait to be sent. Nothing was taken. (The
    /// limit is on what waits plus what is handed over, so one send never takes more than the limit at once.)
    #[error("more than {limit} bytes would be waiting to be sent")]
    Full {
        /// The limit, bytes.
        limit: usize,
    },
}

/// Sizes, all fixed at start.
#[derive(Clone, Debug)]
pub struct Config {
    /// Connections open at the same time at most; slots are `0..connections`.
    pub connections: usize,
    /// Bytes taken from a connection in one receive at most.
    pub receive_bytes: usize,
    /// Bytes that may wait to be sent on one connection.
    pub send_bytes_max: usize,
    /// A connection with more unsent bytes than this is not read from until they are fewer: back-pressure for
    /// servers. `usize::MAX` for clients, who must read on to let the peer drain.
    pub pause_reads_above_bytes: usize,
}

/// One event loop: one thread, its connections, its clock.
pub trait Driver {
    /// The name of the backend, as records give it: `sim`, `epoll`, `io_uring`.
    fn backend(&self) -> &'static str;

    /// The clock, read now (about 20 ns on real hardware).
    fn now(&self) -> Nanos;

    /// Listens on `address` (port 0: the kernel chooses) and returns the address bound. With `shared` several
    /// drivers may listen on one address (`SO_REUSEPORT`; not on a Unix socket). Connections beyond
    /// `Config::connections` wait in the kernel's queue until a slot is free. `TCP_NODELAY` is set on accepted
    /// TCP connections.
    ///
    /// The path of a Unix socket is made here and removed when the listener or its driver ends, if it is still the same
    /// file. A path that is there already is an error (`AddrInUse`) that says whether somebody listens; it is not
    /// removed. The simulated network has no Unix sockets (`Unsupported`).
    fn listen(&mut self, address: &Address, backlog: u32, shared: bool) -> io::Result<(Listener, Address)>;

    /// Stops listening. Connections that were accepted stay.
    fn stop_listening(&mut self, listener: Listener);

    /// Starts a connection; [`Event::Connected`] or [`Event::Closed`] answers. `TCP_NODELAY` is set on TCP. Fails at once
    /// only when no slot or no file descriptor is free, or for a path that no Unix socket can have (`InvalidInput`).
    ///
    /// A TCP connection that the kernel would connect to itself, which happens where nobody listens on a port that is
    /// also one of those given to clients, counts as refused. A Unix socket whose queue is full fails with
    /// [`CloseReason::QueueFull`], where the kernel would have repeated a TCP connect.
    fn connect(&mut self, address: &Address) -> io::Result<Conn>;

    /// Sends `bytes`, now or when the turn ends, in order. The bytes are the driver's from here on.
    fn send(&mut self, conn: Conn, bytes: &[u8]) -> Result<(), SendError>;

    /// Asks for one [`Event::Sent`] when the kernel has taken all that was sent on `conn` and takes more: the way to
    /// send a stream of any length, piece after piece, to a peer that reads at its own pace.
    fn notify_when_sent(&mut self, conn: Conn);

    /// Stops receiving from `conn`, or goes on. What the kernel had handed over before, at most
    /// `Config::receive_bytes` with back-pressure, may still come. Meanwhile the end of the peer's stream need not
    /// be told; that the connection is gone is.
    fn pause_reads(&mut self, conn: Conn, paused: bool);

    /// Sends what is left, then tells the peer that no more follows (half-close); receiving goes on. When the peer's
    /// stream has ended too, [`Event::Closed`] follows by itself, with [`CloseReason::Local`].
    fn end_stream(&mut self, conn: Conn);

    /// Closes. [`Event::Closed`] follows with [`CloseReason::Local`] and nothing else of this connection does. Closing
    /// what is closed does nothing.
    fn close(&mut self, conn: Conn, how: Close);

    /// Submits what waits, then waits until an event is there or the clock reaches `until` (`None`: without limit;
    /// a time that has passed: polls). Events not yet taken are kept, and then nothing is waited for. May return
    /// early without an event (a signal). Fails only when the backend cannot go on.
    fn turn(&mut self, until: Option<Nanos>) -> io::Result<()>;

    /// The next event, or `None` when this turn has no more. Ends the life of the bytes of the event before.
    fn next_event(&mut self) -> Option<Event>;

    /// The bytes of the latest [`Event::Data`].
    fn bytes(&self, data: Data) -> &[u8];
}

/// What a driver on real sockets can do beyond [`Driver`].
pub trait KernelDriver: Driver {
    /// A handle with which any thread ends the wait of [`Driver::turn`]; [`Event::Woken`] answers.
    fn waker(&self) -> Waker;

    /// Gives the socket of an accepted connection away, so that another driver can [`adopt`](Self::adopt) it. Allowed
    /// while its [`Event::Accepted`] is the latest event taken; no further event of `conn` follows, and its slot is
    /// free. `None` when `conn` is closed.
    fn release(&mut self, conn: Conn) -> Option<OwnedFd>;

    /// Takes over a connected socket, whatever its mode. Fails, and closes the socket, when no slot is free. No event
    /// answers: the connection stands.
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<Conn>;
}

/// Ends the wait of one driver, from any thread. A wake before the wait is not lost; several before a turn are one
/// [`Event::Woken`].
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) Arc<OwnedFd>);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Self(Arc::new(rustix::event::eventfd(0, flags)?)))
    }

    /// Wakes the driver.
    pub fn wake(&self) {
        // The one error an eventfd can give here is a counter at its maximum, and that driver is awake.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Takes the wakes so far; whether there were any.
    pub(crate) fn clear(&self) -> bool {
        rustix::io::read(&self.0, &mut [0u8; 8]).is_ok()
    }
}
