//! Opens backends and runs drivers until an expected event occurs.

// Each test binary uses only a part of this module. Skipped checks are printed.
#![allow(dead_code, clippy::print_stdout)]

use std::cell::Cell;
use std::path::PathBuf;

use net::sim::{Network, Sim};
use net::{Address, Config, Conn, Driver, Epoll, Event, Listener, Nanos, Uring};

pub(crate) const CONFIG: Config =
    Config { connections: 16, receive_bytes: 4096, send_bytes_max: 1 << 20, pause_reads_above_bytes: usize::MAX };

const PATIENCE_NS: Nanos = 20_000_000_000;
/// Length of a quiet period over loopback after which no event is pending, in ns.
const QUIET_NS: Nanos = 30_000_000;

pub(crate) trait Opener {
    type Driver: Driver;
    const IS_SIMULATED: bool = false;
    fn open(&self, config: &Config) -> Self::Driver;

    fn address(&self) -> Address {
        address()
    }

    fn dead_address(&self) -> Address {
        let listener = std::net::TcpListener::bind(address().inet().unwrap()).unwrap();
        listener.local_addr().unwrap().into()
    }
}

pub(crate) struct OpenSim(pub(crate) Network);
pub(crate) struct OpenEpoll;
pub(crate) struct OpenUring;
pub(crate) struct OpenOldestUring;

impl Opener for OpenSim {
    type Driver = Sim;
    const IS_SIMULATED: bool = true;
    fn open(&self, config: &Config) -> Sim {
        Sim::new(42, config, self.0.clone())
    }
}

impl Opener for OpenEpoll {
    type Driver = Epoll;
    fn open(&self, config: &Config) -> Epoll {
        Epoll::new(config).unwrap()
    }
}

impl Opener for OpenUring {
    type Driver = Uring;
    fn open(&self, config: &Config) -> Uring {
        Uring::new(config).unwrap()
    }
}

impl Opener for OpenOldestUring {
    type Driver = Uring;
    fn open(&self, config: &Config) -> Uring {
        Uring::with_oldest_features(config).unwrap()
    }
}

pub(crate) struct OnUnix<O> {
    open: O,
    folder: tempfile::TempDir,
    given: Cell<u32>,
}

impl<O> OnUnix<O> {
    pub(crate) fn new(open: O) -> Self {
        Self { open, folder: tempfile::tempdir().unwrap(), given: Cell::new(0) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.given.set(self.given.get() + 1);
        self.folder.path().join(format!("{}.sock", self.given.get()))
    }
}

impl<O: Opener> Opener for OnUnix<O> {
    type Driver = O::Driver;
    fn open(&self, config: &Config) -> O::Driver {
        self.open.open(config)
    }

    fn address(&self) -> Address {
        Address::Unix(self.path())
    }

    fn dead_address(&self) -> Address {
        let path = self.path();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap()); // Dropping it leaves the path behind.
        Address::Unix(path)
    }
}

/// Whether io_uring works here. Prints the reason if not.
pub(crate) fn has_uring() -> bool {
    match net::probe() {
        Ok(()) => true,
        Err(reason) => {
            println!("not checked: io_uring is not usable here: {reason}");
            false
        }
    }
}

pub(crate) fn address() -> Address {
    Address::Inet("127.0.0.1:0".parse().unwrap())
}

pub(crate) fn until<D: Driver>(driver: &mut D, mut is_done: impl FnMut(&mut D, Event) -> bool) {
    let limit = driver.now() + PATIENCE_NS;
    loop {
        while let Some(event) = driver.next_event() {
            if is_done(driver, event) {
                return;
            }
        }
        assert!(driver.now() < limit, "waited too long");
        driver.turn(Some(limit)).unwrap();
    }
}

pub(crate) fn settle<D: Driver>(driver: &mut D, mut see: impl FnMut(&mut D, Event)) {
    let mut quiet_at = driver.now() + QUIET_NS;
    while driver.now() < quiet_at {
        driver.turn(Some(quiet_at)).unwrap();
        while let Some(event) = driver.next_event() {
            see(driver, event);
            quiet_at = driver.now() + QUIET_NS;
        }
    }
}

pub(crate) struct Pair<D> {
    pub(crate) driver: D,
    pub(crate) listener: Listener,
    pub(crate) client: Conn,
    pub(crate) server: Conn,
}

impl<D: Driver> Pair<D> {
    pub(crate) fn new<O: Opener<Driver = D>>(open: &O, config: &Config) -> Self {
        let mut driver = open.open(config);
        let (_, at) = driver.listen(&open.address(), 8).unwrap();
        Self::connect(driver, &at)
    }

    pub(crate) fn connect(mut driver: D, at: &Address) -> Self {
        let client = driver.connect(at).unwrap();
        let (mut connected, mut accepted) = (false, None);
        until(&mut driver, |_, event| {
            match event {
                Event::Connected(conn) if conn == client => connected = true,
                Event::Accepted(listener, conn) => accepted = Some((listener, conn)),
                other => panic!("{other:?}"),
            }
            connected && accepted.is_some()
        });
        let (listener, server) = accepted.unwrap();
        assert_ne!(client, server);
        Self { driver, listener, client, server }
    }

    pub(crate) fn receive(&mut self, conn: Conn, count: usize) -> Vec<u8> {
        let mut received = Vec::new();
        until(&mut self.driver, |driver, event| {
            let Event::Data(at, data) = event else { panic!("{event:?}") };
            assert_eq!(at, conn);
            received.extend(driver.bytes(data));
            received.len() >= count
        });
        assert_eq!(received.len(), count);
        received
    }

    pub(crate) fn expect(&mut self, is_it: impl Fn(Event, &Self) -> bool) {
        let mut next = None;
        until(&mut self.driver, |_, event| {
            next = Some(event);
            true
        });
        assert!(is_it(next.unwrap(), self), "{next:?}");
    }

    pub(crate) fn ends(&mut self) -> Vec<(Conn, net::CloseReason)> {
        let mut ends = Vec::new();
        until(&mut self.driver, |_, event| {
            if let Event::Closed(conn, reason) = event {
                ends.push((conn, reason));
            }
            ends.len() == 2
        });
        ends
    }
}
