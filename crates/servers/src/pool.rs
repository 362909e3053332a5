//! Threads with an event loop each, and the connections shared out among them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use net::{Address, Close, Config, Conn, Data, Driver, Event, KernelDriver, Listener, Nanos, Waker};

/// Connections of one thread at most where nothing else is said; more wait in the accept queue.
const CONNECTIONS: usize = 16_384;
/// Connections beyond the limit that are told so at the same time; more wait in the accept queue.
const REFUSED: usize = 256;
/// Bytes taken in one receive at most.
const RECEIVE_BYTES: usize = 16_384;
/// A connection with more unsent bytes than this is not read from.
const PAUSE_READS_ABOVE_BYTES: usize = 65_536;
/// Longest queue of connections that wait to be accepted; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: u32 = 65_535;

/// Where to listen, and with what.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Address; port 0 lets the kernel choose.
    pub address: Address,
    /// Threads.
    pub threads: u32,
    /// Door to the kernel.
    pub backend: net::Choice,
    /// Connections open at the same time, over all threads; what becomes of one more is [`Handler::refused`]. `None`: as
    /// many as there are slots, 16,384 a thread, and more wait to be accepted.
    pub connections: Option<usize>,
    /// How long connections may go on after the server was asked to end, ns; for handlers that let them
    /// ([`Handler::DRAINS`]).
    pub drain_ns: Nanos,
}

/// Why a server could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, not ours, or not allowed.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: Address,
        /// Why not.
        source: io::Error,
    },
    /// The kernel refused something else.
    #[error("{what}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// Asks all threads of a server to end, from any thread.
#[derive(Debug, Default)]
pub struct Shutdown {
    /// 0, [`Shutdown::ASKED`] or [`Shutdown::FORCED`].
    level: AtomicU8,
    wakers: Mutex<Vec<Waker>>,
}

impl Shutdown {
    const ASKED: u8 = 1;
    const FORCED: u8 = 2;

    /// Asks: no more connections are accepted, and those that stand may finish what they are about. Asking twice does
    /// nothing more.
    pub fn ask(&self) {
        self.raise(Self::ASKED);
    }

    /// Ends it at once, whatever connections are about.
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

    /// Whether the server should end.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.level.load(Ordering::Acquire) >= Self::ASKED
    }

    /// Whether it should end without waiting for its connections.
    pub fn is_forced(&self) -> bool {
        self.level.load(Ordering::Acquire) >= Self::FORCED
    }
}

/// What becomes of the server after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It goes on.
    Serve,
    /// A client asked it to terminate.
    Terminate,
}

/// What one thread does with its connections.
pub trait Handler {
    /// Whether connections may finish what they are about when the server is asked to end. Otherwise it ends at once.
    const DRAINS: bool = false;

    /// A connection is there.
    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn);

    /// Bytes arrived.
    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) -> Next;

    /// A connection is gone.
    fn closed(&mut self, conn: Conn);

    /// The peer of `conn` sends no more; by default what is left is sent and the connection ends.
    fn end_of_stream<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        driver.end_stream(conn);
    }

    /// A connection is there that is one too many. It counts as any other until it is closed, which by default is now.
    fn refused<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.accepted(driver, conn);
        driver.close(conn, Close::Reset);
    }

    /// What was sent on `conn` has left, as [`Driver::notify_when_sent`] asked.
    fn sent<D: Driver>(&mut self, _driver: &mut D, _conn: Conn) {}

    /// Called once a turn, before its events.
    fn turning<D: Driver>(&mut self, _driver: &mut D) {}

    /// Called once a turn, after its events; returns when to be called again at the latest.
    fn turned<D: Driver>(&mut self, _driver: &mut D) -> Option<Nanos> {
        None
    }

    /// The server is ending: no more connections are accepted, though some may be on their way to this thread. Called
    /// once, where [`Handler::DRAINS`].
    fn end<D: Driver>(&mut self, _driver: &mut D) {}

    /// Whether nothing is left to be done since [`Handler::end`].
    fn is_done(&self) -> bool {
        true
    }
}

/// Waits for what happens next, until `wake` at the latest, and has `handler` deal with it. `accept` says what becomes of
/// a new connection. Returns when to come again at the latest, and whether a client asked the server to terminate.
pub(crate) fn turn<D: Driver, H: Handler>(
    driver: &mut D,
    handler: &mut H,
    wake: Option<Nanos>,
    mut accept: impl FnMut(&mut D, &mut H, Conn),
    mut closed: impl FnMut(),
    mut woken: impl FnMut(&mut D, &mut H),
) -> io::Result<(Option<Nanos>, Next)> {
    let mut next = Next::Serve;
    driver.turn(wake)?;
    handler.turning(driver);
    while let Some(event) = driver.next_event() {
        match event {
            Event::Data(conn, data) => {
                if handler.data(driver, conn, data) == Next::Terminate {
                    next = Next::Terminate;
                }
            }
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
    Ok((handler.turned(driver), next))
}

/// Serves until a client or `shutdown` ends it, with one handler a thread, and gives the handlers back. `ready` is
/// called with the address bound, once connections are accepted.
///
/// The first thread accepts, and each connection goes to the thread that has the fewest, where it stays.
///
/// # Errors
/// [`ServeError`]; what clients do is never one.
pub fn serve<H: Handler + Send>(
    listen: &Listen,
    handler: impl Fn(u32) -> H + Sync,
    shutdown: &Shutdown,
    ready: impl FnOnce(&Address) + Send,
) -> Result<Vec<H>, ServeError> {
    let kernel = |what| move |source| ServeError::Kernel { what, source };
    let (backend, _) = net::choose(listen.backend).map_err(kernel("io_uring"))?;
    let count = listen.threads.max(1) as usize;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| channel::<Given>()).unzip();
    let threads: Vec<Thread> = (0..count).map(|_| Thread::default()).collect();
    let mut front =
        Some(Front { listen, senders, threads: &threads, ready: Some(ready), listener: None, latest: count - 1 });
    // One slot more than connections, for that which is to go to another thread or to be refused.
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
                // Whatever ends one thread ends them all.
                let _ending = Ending(shutdown);
                let handler = handler(index as u32);
                let place = |waker: Waker| {
                    thread.waker.lock().unwrap_or_else(PoisonError::into_inner).replace(waker.clone());
                    shutdown.wakers().push(waker);
                };
                let failed = kernel("event loop");
                let worker = Worker { thread, given, shutdown, drain_ns: listen.drain_ns };
                match backend {
                    net::Backend::Epoll => {
                        let mut driver = net::Epoll::new(&config).map_err(failed)?;
                        place(driver.waker());
                        worker.work(&mut driver, handler, front)
                    }
                    net::Backend::Uring => {
                        let mut driver = net::Uring::new(&config).map_err(failed)?;
                        place(driver.waker());
                        worker.work(&mut driver, handler, front)
                    }
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

struct Ending<'a>(&'a Shutdown);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.ask();
    }
}

/// A connection on its way to its thread.
type Given = OwnedFd;

/// What threads know of each other.
#[derive(Debug, Default)]
struct Thread {
    /// Connections that it has or is being given.
    connections: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Thread {
    fn wake(&self) {
        if let Some(waker) = self.waker.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            waker.wake();
        }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// What the first thread has beyond the others: the listener, and the way to them.
struct Front<'a, R> {
    listen: &'a Listen,
    /// One for each thread; none once nothing is accepted any more.
    senders: Vec<Sender<Given>>,
    threads: &'a [Thread],
    ready: Option<R>,
    listener: Option<Listener>,
    /// Who was given the latest connection.
    latest: usize,
}

impl<R: FnOnce(&Address)> Front<'_, R> {
    fn start_listening(&mut self, driver: &mut impl KernelDriver) -> Result<(), ServeError> {
        let address = &self.listen.address;
        let listened = driver.listen(address, BACKLOG, false);
        let (listener, bound) = listened.map_err(|source| ServeError::Listen { address: address.clone(), source })?;
        self.listener = Some(listener);
        if let Some(ready) = self.ready.take() {
            ready(&bound);
        }
        Ok(())
    }

    /// No more connections: threads that have none can end.
    fn end(&mut self, driver: &mut impl KernelDriver) {
        if let Some(listener) = self.listener.take() {
            driver.stop_listening(listener);
        }
        self.senders.clear();
        self.threads.iter().for_each(Thread::wake);
    }

    /// Gives a new connection to the thread that has the fewest, of several the one whose turn it is. This thread's own
    /// go to `handler`, and so does one too many.
    fn accept<D: KernelDriver, H: Handler>(&mut self, driver: &mut D, handler: &mut H, conn: Conn) {
        let open: usize = self.threads.iter().map(Thread::connections).sum();
        if self.listen.connections.is_some_and(|most| open >= most) {
            self.threads[0].connections.fetch_add(1, Ordering::Relaxed);
            return handler.refused(driver, conn);
        }
        let count = self.threads.len();
        let in_turn = (1..=count).map(|step| (self.latest + step) % count);
        let chosen = in_turn.min_by_key(|&index| self.threads[index].connections()).unwrap_or(0);
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

/// One thread.
struct Worker<'a> {
    thread: &'a Thread,
    given: Receiver<Given>,
    shutdown: &'a Shutdown,
    drain_ns: Nanos,
}

impl Worker<'_> {
    fn work<D: KernelDriver, H: Handler, R: FnOnce(&Address)>(
        &self,
        driver: &mut D,
        mut handler: H,
        mut front: Option<Front<'_, R>>,
    ) -> Result<H, ServeError> {
        if let Some(front) = &mut front {
            front.start_listening(driver)?;
        }
        // A socket may have been given before this thread's waker stood in its place.
        self.adopt(driver, &mut handler);
        let mut wake = None;
        while !self.shutdown.is_asked() {
            wake = self.turn(driver, &mut handler, front.as_mut(), wake)?;
        }
        if !H::DRAINS || self.shutdown.is_forced() {
            return Ok(handler);
        }
        // What has come by now is still taken, so that nobody is turned away who was there in time.
        self.turn(driver, &mut handler, front.as_mut(), Some(0))?;
        if let Some(front) = &mut front {
            front.end(driver);
        }
        handler.end(driver);
        let until = driver.now().saturating_add(self.drain_ns);
        wake = Some(0); // The handler sees what it has to end.
        loop {
            let is_last = self.adopt(driver, &mut handler);
            if (is_last && handler.is_done()) || self.shutdown.is_forced() || driver.now() >= until {
                return Ok(handler);
            }
            let by = wake.map_or(until, |wake| wake.min(until));
            wake = self.turn(driver, &mut handler, front.as_mut(), Some(by))?;
        }
    }

    fn turn<D: KernelDriver, H: Handler, R: FnOnce(&Address)>(
        &self,
        driver: &mut D,
        handler: &mut H,
        mut front: Option<&mut Front<'_, R>>,
        wake: Option<Nanos>,
    ) -> Result<Option<Nanos>, ServeError> {
        let accept = |driver: &mut D, handler: &mut H, conn| match &mut front {
            Some(front) => front.accept(driver, handler, conn),
            None => handler.accepted(driver, conn),
        };
        let closed = || _ = self.thread.connections.fetch_sub(1, Ordering::Relaxed);
        let woken = |driver: &mut D, handler: &mut H| _ = self.adopt(driver, handler);
        let turned = turn(driver, handler, wake, accept, closed, woken);
        let (wake, next) = turned.map_err(|source| ServeError::Kernel { what: "event loop", source })?;
        if next == Next::Terminate {
            self.shutdown.ask();
        }
        Ok(wake)
    }

    /// Takes over the connections that were given to this thread; whether there will be no more.
    fn adopt<D: KernelDriver, H: Handler>(&self, driver: &mut D, handler: &mut H) -> bool {
        loop {
            match self.given.try_recv() {
                Ok(socket) => match driver.adopt(socket) {
                    Ok(conn) => handler.accepted(driver, conn),
                    // Without a free slot the connection is closed, as any server that is full does.
                    Err(_) => _ = self.thread.connections.fetch_sub(1, Ordering::Relaxed),
                },
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }
}

/// Sends `bytes`, or ends a connection whose peer does not read.
pub(crate) fn send_or_close<D: Driver>(driver: &mut D, conn: Conn, bytes: &[u8]) {
    if let Err(net::SendError::Full { .. }) = driver.send(conn, bytes) {
        driver.close(conn, Close::Reset);
    }
}
