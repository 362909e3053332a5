//! Threads with one event loop each, and the distribution of connections among them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use net::{Address, Close, Config, Conn, Data, Driver, Event, KernelDriver, Listener, Nanos, Waker};

/// Default maximum number of connections per thread; further ones wait in the accept queue.
const CONNECTIONS: usize = 16_384;
/// Maximum number of connections over the limit that are accepted to receive an error; further ones wait.
const REFUSED: usize = 256;
const RECEIVE_BYTES: usize = 16_384;
/// Number of unsent bytes above which a connection is not read from.
const PAUSE_READS_ABOVE_BYTES: usize = 65_536;
/// Maximum length of the accept queue; the kernel caps it at `net.core.somaxconn`.
const BACKLOG: u32 = 65_535;

/// Address, threads and limits of a server.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Address to listen on; for port 0 the kernel chooses a port.
    pub address: Address,
    /// Number of threads, each with one event loop.
    pub threads: u32,
    /// Choice of the kernel interface that all threads use.
    pub backend: net::Choice,
    /// Maximum number of open connections in all threads together; [`Handler::refused`] handles further ones. `None`
    /// allows 16,384 per thread; further ones wait to be accepted.
    pub connections: Option<usize>,
    /// Maximum duration of the drain after a shutdown request, in ns, for handlers with [`Handler::DRAINS`].
    pub drain_ns: Nanos,
}

/// Why a server could not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is in use, not local, or not permitted.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address to listen on.
        address: Address,
        /// Error of the system call.
        source: io::Error,
    },
    /// A system call failed for a reason unrelated to the address.
    #[error("{what}: {source}")]
    Kernel {
        /// The failed operation, in words.
        what: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
}

/// Shuts down all threads of a server, from any thread.
#[derive(Debug, Default)]
pub struct Shutdown {
    /// Requested level of the shutdown: 0, [`Shutdown::ASKED`] or [`Shutdown::FORCED`].
    level: AtomicU8,
    wakers: Mutex<Vec<Waker>>,
}

impl Shutdown {
    const ASKED: u8 = 1;
    const FORCED: u8 = 2;

    /// Requests a shutdown: the server accepts no new connections, and open ones finish their requests. Idempotent.
    pub fn ask(&self) {
        self.raise(Self::ASKED);
    }

    /// Shuts down immediately, without waiting for open connections.
    pub fn force(&self) {
        self.raise(Self::FORCED);
    }

    fn raise(&self, level: u8) {
        self.level.fetch_max(level, Ordering::AcqRel);
        self.wakers().iter().for_each(Waker::wake);
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a shutdown was requested.
    pub fn is_asked(&self) -> bool {
        self.level.load(Ordering::Acquire) >= Self::ASKED
    }

    /// Whether the shutdown must not wait for connections.
    pub fn is_forced(&self) -> bool {
        self.level.load(Ordering::Acquire) >= Self::FORCED
    }
}

/// The behavior of a server on its connections. Each thread has its own instance.
pub trait Handler {
    /// Whether connections finish their requests on shutdown; otherwise the server stops at once.
    const DRAINS: bool = false;

    /// Handles a new connection, before any of its data.
    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn);

    /// Handles received bytes.
    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data);

    /// Whether a client has requested termination of the server.
    fn is_terminated(&self) -> bool {
        false
    }

    /// Handles the end of a connection, whose slot is already free.
    fn closed(&mut self, _conn: Conn) {}

    /// Handles the end of the peer's stream. By default, sends the remaining bytes and closes the connection.
    fn end_of_stream<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        driver.end_stream(conn);
    }

    /// Handles a connection over the limit, which counts like any other until it is closed. By default, closes it.
    fn refused<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.accepted(driver, conn);
        driver.close(conn, Close::Reset);
    }

    /// Handles the completion of writes on `conn`, after [`Driver::notify_when_sent`].
    fn sent<D: Driver>(&mut self, _driver: &mut D, _conn: Conn) {}

    /// Runs at the start of each turn, before its events.
    fn turning<D: Driver>(&mut self, _driver: &mut D) {}

    /// Runs at the end of each turn. Returns the latest time of the next turn; `None` for no limit.
    fn turned<D: Driver>(&mut self, _driver: &mut D) -> Option<Nanos> {
        None
    }

    /// Starts the drain; called once if [`Handler::DRAINS`]. A few connections accepted earlier may still arrive.
    fn end<D: Driver>(&mut self, _driver: &mut D) {}

    /// Whether the drain is complete.
    fn is_done(&self) -> bool {
        true
    }
}

/// Waits until `wake` at most and passes events to `handler`. Returns the next `wake`.
pub(crate) fn turn<D: Driver, H: Handler>(
    driver: &mut D,
    handler: &mut H,
    wake: Option<Nanos>,
    mut accept: impl FnMut(&mut D, &mut H, Conn),
    mut closed: impl FnMut(),
    mut woken: impl FnMut(&mut D, &mut H),
) -> io::Result<Option<Nanos>> {
    driver.turn(wake)?;
    handler.turning(driver);
    while let Some(event) = driver.next_event() {
        match event {
            Event::Data(conn, data) => handler.data(driver, conn, data),
            Event::Accepted(_, conn) => accept(driver, handler, conn),
            Event::EndOfStream(conn) => handler.end_of_stream(driver, conn),
            Event::Sent(conn) => handler.sent(driver, conn),
            Event::Closed(conn, _) => {
                closed();
                handler.closed(conn);
            }
            Event::Woken => woken(driver, handler),
            Event::Connected(_) => {}
        }
    }
    Ok(handler.turned(driver))
}

/// Serves until a client or `shutdown` ends the server, with one handler per thread, and returns the handlers. Calls
/// `ready` with the bound address once connections are accepted. The first thread accepts. Each connection goes to the
/// thread with the fewest connections and stays there. Only the system causes a [`ServeError`], never a client.
pub fn serve<H: Handler + Send>(
    listen: &Listen,
    handler: impl Fn(u32) -> H + Sync,
    shutdown: &Shutdown,
    ready: impl FnOnce(&Address) + Send,
) -> Result<Vec<H>, ServeError> {
    let kernel = |what| move |source| ServeError::Kernel { what, source };
    let (backend, _) = net::choose(listen.backend).map_err(kernel("io_uring"))?;
    let count = listen.threads.max(1) as usize;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| channel::<OwnedFd>()).unzip();
    let threads: Vec<Thread> = (0..count).map(|_| Thread::default()).collect();
    let mut front =
        Some(Front { listen, senders, threads: &threads, ready: Some(ready), listener: None, latest: count - 1 });
    // One extra slot, for a connection to be handed over or refused.
    let slots = listen.connections.map_or(CONNECTIONS, |all| all.div_ceil(count) + 1);
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for (index, given) in receivers.into_iter().enumerate() {
            let front = front.take();
            let refused = if front.is_some() && listen.connections.is_some() { REFUSED } else { 0 };
            let config = Config {
                connections: slots + refused,
                receive_bytes: RECEIVE_BYTES,
                send_bytes_max: PAUSE_READS_ABOVE_BYTES * 4,
                pause_reads_above_bytes: PAUSE_READS_ABOVE_BYTES,
            };
            let (handler, thread) = (&handler, &threads[index]);
            let spawned = std::thread::Builder::new().name(format!("server {index}")).spawn_scoped(scope, move || {
                let _ending = Ending(shutdown);
                let handler = handler(index as u32);
                let worker = Worker { front, thread, given, shutdown, drain_ns: listen.drain_ns };
                match backend {
                    net::Backend::Epoll => worker.work(net::Epoll::new(&config), handler),
                    net::Backend::Uring => worker.work(net::Uring::new(&config), handler),
                }
            });
            running.push(spawned.map_err(kernel("start a thread"))?);
        }
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().map(join).collect()
    })
}

macro_rules! entry_points {
    ($($name:ident $handler:ty),*) => {
        $(
            /// Calls [`serve`] for one kind of handler. Compiled in this crate, where loops are optimized.
            pub fn $name(
                listen: &Listen,
                handler: &(dyn Fn(u32) -> $handler + Sync),
                shutdown: &Shutdown,
                ready: fn(&Address),
            ) -> Result<Vec<$handler>, ServeError> {
                serve(listen, handler, shutdown, ready)
            }
        )*
    };
}

entry_points! {
    serve_cache crate::CacheServer,
    serve_calibrate crate::Calibrate,
    serve_hostile crate::Hostile,
    serve_http crate::Http,
    serve_https crate::Tls<crate::Http>,
    serve_pingpong crate::Pingpong
}

struct Ending<'a>(&'a Shutdown);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.ask();
    }
}

#[derive(Debug, Default)]
struct Thread {
    connections: AtomicUsize,
    waker: OnceLock<Waker>,
}

impl Thread {
    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }
}

/// The additional state of the first thread, which accepts connections.
struct Front<'a, R> {
    listen: &'a Listen,
    /// Senders of new connections, one per thread; empty once the listener is closed.
    senders: Vec<Sender<OwnedFd>>,
    threads: &'a [Thread],
    ready: Option<R>,
    listener: Option<Listener>,
    /// Index of the thread that got the latest connection.
    latest: usize,
}

impl<R: FnOnce(&Address)> Front<'_, R> {
    fn start_listening(&mut self, driver: &mut impl KernelDriver) -> Result<(), ServeError> {
        let address = &self.listen.address;
        let listened = driver.listen(address, BACKLOG);
        let (listener, bound) = listened.map_err(|source| ServeError::Listen { address: address.clone(), source })?;
        self.listener = Some(listener);
        if let Some(ready) = self.ready.take() {
            ready(&bound);
        }
        Ok(())
    }

    /// Stops accepting, so that idle threads can end.
    fn end(&mut self, driver: &mut impl KernelDriver) {
        if let Some(listener) = self.listener.take() {
            driver.stop_listening(listener);
        }
        self.senders.clear();
        self.threads.iter().for_each(Thread::wake);
    }

    /// Hands `conn` to the thread with the fewest connections (in turn among equals), or refuses it above the limit.
    fn accept<D: KernelDriver, H: Handler>(&mut self, driver: &mut D, handler: &mut H, conn: Conn) {
        let connections = |thread: &Thread| thread.connections.load(Ordering::Relaxed);
        let open: usize = self.threads.iter().map(connections).sum();
        if self.listen.connections.is_some_and(|most| open >= most) {
            self.threads[0].connections.fetch_add(1, Ordering::Relaxed);
            return handler.refused(driver, conn);
        }
        let count = self.threads.len();
        let in_turn = (1..=count).map(|step| (self.latest + step) % count);
        let chosen = in_turn.min_by_key(|&index| connections(&self.threads[index])).unwrap_or(0);
        self.latest = chosen;
        self.threads[chosen].connections.fetch_add(1, Ordering::Relaxed);
        if chosen == 0 {
            return handler.accepted(driver, conn);
        }
        let given = driver.release(conn).is_some_and(|socket| self.senders[chosen].send(socket).is_ok());
        if given {
            self.threads[chosen].wake();
        } else {
            self.threads[chosen].connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

struct Worker<'a, R> {
    /// The state of the first thread; `None` for the others.
    front: Option<Front<'a, R>>,
    thread: &'a Thread,
    /// Connections that the first thread gives to this one.
    given: Receiver<OwnedFd>,
    shutdown: &'a Shutdown,
    drain_ns: Nanos,
}

type Turned = Result<Option<Nanos>, ServeError>;

impl<R: FnOnce(&Address)> Worker<'_, R> {
    fn work<D: KernelDriver, H: Handler>(mut self, driver: io::Result<D>, mut handler: H) -> Result<H, ServeError> {
        let driver = &mut driver.map_err(|source| ServeError::Kernel { what: "event loop", source })?;
        self.thread.waker.get_or_init(|| driver.waker());
        self.shutdown.wakers().push(driver.waker());
        if let Some(front) = &mut self.front {
            front.start_listening(driver)?;
        }
        // A socket may have arrived before this thread registered its waker.
        adopt(self.thread, &self.given, driver, &mut handler);
        let mut wake = None;
        while !self.shutdown.is_asked() && !handler.is_terminated() {
            wake = self.turn(driver, &mut handler, wake)?;
        }
        self.shutdown.ask(); // In case a client has terminated the server.
        if !H::DRAINS || self.shutdown.is_forced() {
            return Ok(handler);
        }
        self.turn(driver, &mut handler, Some(0))?;
        if let Some(front) = &mut self.front {
            front.end(driver);
        }
        handler.end(driver);
        let until = driver.now().saturating_add(self.drain_ns);
        wake = Some(0); // Draining starts without a wait.
        loop {
            let is_last = adopt(self.thread, &self.given, driver, &mut handler);
            if (is_last && handler.is_done()) || self.shutdown.is_forced() || driver.now() >= until {
                return Ok(handler);
            }
            let by = wake.map_or(until, |wake| wake.min(until));
            wake = self.turn(driver, &mut handler, Some(by))?;
        }
    }

    fn turn<D: KernelDriver, H: Handler>(&mut self, driver: &mut D, handler: &mut H, wake: Option<Nanos>) -> Turned {
        let Self { front, thread, given, .. } = self;
        let accept = |driver: &mut D, handler: &mut H, conn| match front {
            Some(front) => front.accept(driver, handler, conn),
            None => handler.accepted(driver, conn),
        };
        let closed = || _ = thread.connections.fetch_sub(1, Ordering::Relaxed);
        let woken = |driver: &mut D, handler: &mut H| _ = adopt(thread, given, driver, handler);
        let turned = turn(driver, handler, wake, accept, closed, woken);
        turned.map_err(|source| ServeError::Kernel { what: "event loop", source })
    }
}

/// Adopts the connections given to `thread`. Returns whether no more connections will follow.
fn adopt<D: KernelDriver, H: Handler>(
    thread: &Thread,
    given: &Receiver<OwnedFd>,
    driver: &mut D,
    handler: &mut H,
) -> bool {
    loop {
        match given.try_recv() {
            Ok(socket) => match driver.adopt(socket) {
                Ok(conn) => handler.accepted(driver, conn),
                // Without a free slot, the driver closes the connection.
                Err(_) => _ = thread.connections.fetch_sub(1, Ordering::Relaxed),
            },
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => return true,
        }
    }
}

/// Sends `bytes`, or resets a connection whose peer does not read. Returns whether the bytes were sent.
pub(crate) fn send_or_close<D: Driver>(driver: &mut D, conn: Conn, bytes: &[u8]) -> bool {
    let sent = driver.send(conn, bytes);
    if let Err(net::SendError::Full(_)) = sent {
        driver.close(conn, Close::Reset);
    }
    sent.is_ok()
}
