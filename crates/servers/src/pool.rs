//! Threads with an event loop each, and the connections shared out among them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use net::{Close, Config, Conn, Data, Driver, Event, KernelDriver, Listener, Nanos, Waker};

/// Connections of one thread at most; more wait in the accept queue.
const CONNECTIONS: usize = 16_384;
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
    pub address: SocketAddr,
    /// Threads.
    pub threads: u32,
    /// Door to the kernel.
    pub backend: net::Choice,
}

/// Why a server could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, not ours, or not allowed.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
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
    asked: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Shutdown {
    /// Asks. Asking twice does nothing more.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.wakers().iter().for_each(Waker::wake);
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
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

    /// Called once a turn; returns when to be called again at the latest.
    fn turned<D: Driver>(&mut self, _driver: &mut D) -> Option<Nanos> {
        None
    }
}

/// Serves until a client or `shutdown` ends it, with one handler a thread, and gives the handlers back. `ready` is
/// called with the address bound, once connections are accepted.
///
/// # Errors
/// [`ServeError`]; what clients do is never one.
pub fn serve<H: Handler + Send>(
    listen: &Listen,
    handler: impl Fn(u32) -> H + Sync,
    shutdown: &Shutdown,
    ready: impl FnOnce(SocketAddr) + Send,
) -> Result<Vec<H>, ServeError> {
    let kernel = |what| move |source| ServeError::Kernel { what, source };
    let (backend, _) = net::choose(listen.backend).map_err(kernel("io_uring"))?;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..listen.threads.max(1)).map(|_| channel::<OwnedFd>()).unzip();
    let wakers = Mutex::new(vec![None::<Waker>; senders.len()]);
    let mut ready = Some(ready);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, receiver) in receivers.into_iter().enumerate() {
            let mut front = (index == 0).then(|| Front {
                address: listen.address,
                senders: senders.clone(),
                wakers: &wakers,
                ready: ready.take(),
                next: 0,
            });
            let handler = &handler;
            let wakers = &wakers;
            let spawned = std::thread::Builder::new().name(format!("server {index}")).spawn_scoped(scope, move || {
                // Whatever ends one thread ends them all.
                let _ending = Ending(shutdown);
                let handler = handler(index as u32);
                let config = Config {
                    connections: CONNECTIONS,
                    receive_bytes: RECEIVE_BYTES,
                    send_bytes_max: PAUSE_READS_ABOVE_BYTES * 4,
                    pause_reads_above_bytes: PAUSE_READS_ABOVE_BYTES,
                };
                let place = |waker: Waker| {
                    wakers.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(waker.clone());
                    shutdown.wakers().push(waker);
                };
                let failed = kernel("event loop");
                match backend {
                    net::Backend::Epoll => {
                        let mut driver = net::Epoll::new(&config).map_err(failed)?;
                        place(driver.waker());
                        work(&mut driver, handler, front.as_mut(), &receiver, shutdown)
                    }
                    net::Backend::Uring => {
                        let mut driver = net::Uring::new(&config).map_err(failed)?;
                        place(driver.waker());
                        work(&mut driver, handler, front.as_mut(), &receiver, shutdown)
                    }
                }
            });
            threads.push(spawned.map_err(kernel("start a thread"))?);
        }
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

struct Ending<'a>(&'a Shutdown);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.ask();
    }
}

/// What the first thread has beyond the others: the listener, and the way to them.
struct Front<'a, R> {
    address: SocketAddr,
    senders: Vec<Sender<OwnedFd>>,
    wakers: &'a Mutex<Vec<Option<Waker>>>,
    ready: Option<R>,
    next: usize,
}

impl<R: FnOnce(SocketAddr)> Front<'_, R> {
    fn begin(&mut self, driver: &mut impl KernelDriver) -> Result<(), ServeError> {
        let listened = driver.listen(&self.address.into(), BACKLOG, false);
        let (_, bound): (Listener, _) =
            listened.map_err(|source| ServeError::Listen { address: self.address, source })?;
        if let Some(ready) = self.ready.take() {
            ready(bound.inet().expect("it was told an internet address"));
        }
        Ok(())
    }

    /// Gives a new connection to the thread whose turn it is; true: to this one.
    fn keep(&mut self, driver: &mut impl KernelDriver, conn: Conn) -> bool {
        let turn = self.next;
        self.next = (turn + 1) % self.senders.len();
        if turn == 0 {
            return true;
        }
        if let Some(socket) = driver.release(conn) {
            let sent = self.senders[turn].send(socket).is_ok();
            let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            if let (true, Some(waker)) = (sent, &wakers[turn]) {
                waker.wake();
            }
        }
        false
    }
}

fn work<D: KernelDriver, H: Handler, R: FnOnce(SocketAddr)>(
    driver: &mut D,
    mut handler: H,
    mut front: Option<&mut Front<'_, R>>,
    given: &Receiver<OwnedFd>,
    shutdown: &Shutdown,
) -> Result<H, ServeError> {
    if let Some(front) = &mut front {
        front.begin(driver)?;
    }
    let mut wake = None;
    // A socket may have been given before this thread's waker stood in its place.
    adopt(driver, &mut handler, given);
    while !shutdown.asked() {
        driver.turn(wake).map_err(|source| ServeError::Kernel { what: "event loop", source })?;
        while let Some(event) = driver.next_event() {
            match event {
                Event::Data(conn, data) => {
                    if handler.data(driver, conn, data) == Next::Terminate {
                        shutdown.ask();
                    }
                }
                Event::Accepted(_, conn) => {
                    if front.as_mut().is_none_or(|front| front.keep(driver, conn)) {
                        handler.accepted(driver, conn);
                    }
                }
                Event::EndOfStream(conn) => handler.end_of_stream(driver, conn),
                Event::Closed(conn, _) => handler.closed(conn),
                Event::Woken => adopt(driver, &mut handler, given),
                Event::Connected(_) | Event::Drained(_) => {}
            }
        }
        wake = handler.turned(driver);
    }
    Ok(handler)
}

fn adopt<D: KernelDriver, H: Handler>(driver: &mut D, handler: &mut H, given: &Receiver<OwnedFd>) {
    while let Ok(socket) = given.try_recv() {
        // Without a free slot the connection is closed, as any server that is full does.
        if let Ok(conn) = driver.adopt(socket) {
            handler.accepted(driver, conn);
        }
    }
}

/// Sends `bytes`, or ends a connection whose peer does not read.
pub(crate) fn send_or_close<D: Driver>(driver: &mut D, conn: Conn, bytes: &[u8]) {
    if let Err(net::SendError::Full { .. }) = driver.send(conn, bytes) {
        driver.close(conn, Close::Reset);
    }
}
