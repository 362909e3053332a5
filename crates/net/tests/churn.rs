//! Checks that many short and long connections leave no slot, buffer or descriptor of this process in use.

mod harness;

use harness::{CONFIG, OnUnix, OpenEpoll, OpenUring, Opener, has_uring, until};
use net::{Address, Close, Config, Conn, Driver, Event};

/// Ways to end a connection after the response, used in rotation.
const ENDINGS: [Ending; 4] =
    [Ending::ClientResets, Ending::ServerCloses, Ending::ClientCloses, Ending::ClientEndsItsStream];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    ClientResets,
    /// The server ends the connection after its response, as on `Connection: close`.
    ServerCloses,
    ClientCloses,
    ClientEndsItsStream,
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn churn<D: Driver>(driver: &mut D, at: &Address, total: usize, at_once: usize) -> usize {
    let (mut begun, mut closed, mut answered) = (0, 0, 0);
    // For each slot, the client's number, or `None` for a server.
    let mut number: Vec<Option<usize>> = vec![None; 2 * at_once];
    let mut begin = |driver: &mut D, number: &mut Vec<Option<usize>>| {
        if begun < total {
            let conn = driver.connect(at).unwrap();
            number[conn.index()] = Some(begun);
            begun += 1;
        }
    };
    (0..at_once).for_each(|_| begin(driver, &mut number));
    let mut ends_open = 0usize;
    until(driver, |driver, event| {
        let ending = |number: usize| ENDINGS[number % ENDINGS.len()];
        match event {
            Event::Connected(conn) => {
                ends_open += 1;
                let number = number[conn.index()].unwrap();
                driver.send(conn, &(number as u32).to_be_bytes()).unwrap();
            }
            Event::Accepted(_, conn) => {
                ends_open += 1;
                number[conn.index()] = None;
            }
            Event::Data(conn, data) => {
                let word: [u8; 4] = driver.bytes(data).try_into().expect("four bytes come at once over loopback");
                match number[conn.index()] {
                    None => {
                        driver.send(conn, &word).unwrap();
                        if ending(u32::from_be_bytes(word) as usize) == Ending::ServerCloses {
                            driver.close(conn, Close::Graceful);
                        }
                    }
                    Some(number) => {
                        assert_eq!(u32::from_be_bytes(word) as usize, number);
                        answered += 1;
                        match ending(number) {
                            Ending::ClientResets => driver.close(conn, Close::Reset),
                            Ending::ClientCloses => driver.close(conn, Close::Graceful),
                            Ending::ClientEndsItsStream => driver.end_stream(conn),
                            Ending::ServerCloses => {}
                        }
                    }
                }
            }
            Event::EndOfStream(conn) => driver.close(conn, Close::Graceful),
            Event::Closed(conn, _) => {
                ends_open -= 1;
                if number[conn.index()].is_some() {
                    closed += 1;
                    begin(driver, &mut number);
                }
            }
            other => panic!("{other:?}"),
        }
        closed == total && ends_open == 0
    });
    answered
}

fn nothing_is_left<O: Opener>(open: &O, total: usize) {
    const AT_ONCE: usize = 64;
    let before = descriptors();
    let mut driver = open.open(&Config { connections: 2 * AT_ONCE, receive_bytes: 256, ..CONFIG });
    let (_, at) = driver.listen(&open.address(), 1024).unwrap();
    let idle = descriptors();
    assert_eq!(churn(&mut driver, &at, total, AT_ONCE), total);
    assert_eq!(descriptors(), idle, "a descriptor was left open");
    // All slots are free and all receive buffers have been returned, so a connection in every slot gets a response.
    let conns: Vec<Conn> = (0..AT_ONCE).map(|_| driver.connect(&at).unwrap()).collect();
    let mut is_client = [false; 2 * AT_ONCE];
    conns.iter().for_each(|conn| is_client[conn.index()] = true);
    let mut told = (0, 0, 0);
    until(&mut driver, |driver, event| {
        match event {
            Event::Connected(conn) => {
                told.0 += 1;
                driver.send(conn, b"last").unwrap();
            }
            Event::Accepted(..) => told.1 += 1,
            Event::Data(conn, _) if is_client[conn.index()] => told.2 += 1,
            Event::Data(conn, _) => driver.send(conn, b"last").unwrap(),
            other => panic!("{other:?}"),
        }
        told == (AT_ONCE, AT_ONCE, AT_ONCE)
    });
    let error = driver.connect(&at).unwrap_err();
    assert_eq!(error.to_string(), format!("all {} connection slots are in use", 2 * AT_ONCE));
    drop(driver);
    assert_eq!(descriptors(), before, "a descriptor outlived its driver");
}

/// Checks that each connection gets a response while all are open, in two rounds.
fn all_are_held<O: Opener>(open: &O, count: usize) {
    let before = descriptors();
    let mut driver = open.open(&Config { connections: 2 * count, receive_bytes: 256, ..CONFIG });
    let (_, at) = driver.listen(&open.address(), 4096).unwrap();
    let mut conns: Vec<Conn> = Vec::new();
    let mut is_client = vec![false; 2 * count];
    let (mut stand, mut accepted) = (0, 0);
    while stand < count || accepted < count {
        while conns.len() < count && conns.len() < stand + 64 {
            let conn = driver.connect(&at).unwrap();
            is_client[conn.index()] = true;
            conns.push(conn);
        }
        driver.turn(None).unwrap();
        while let Some(event) = driver.next_event() {
            match event {
                Event::Connected(_) => stand += 1,
                Event::Accepted(..) => accepted += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    for _ in 0..2 {
        conns.iter().for_each(|&conn| driver.send(conn, b"ping").unwrap());
        let mut answers = 0;
        until(&mut driver, |driver, event| {
            let Event::Data(conn, _) = event else { panic!("{event:?}") };
            if is_client[conn.index()] {
                answers += 1;
            } else {
                driver.send(conn, b"pong").unwrap();
            }
            answers == count
        });
    }
    drop(driver);
    assert_eq!(descriptors(), before);
}

fn each(check: impl Fn(&dyn Check)) {
    check(&OpenEpoll);
    check(&OnUnix::new(OpenEpoll));
    if has_uring() {
        check(&OpenUring);
        check(&OnUnix::new(OpenUring));
    }
}

trait Check {
    fn nothing_is_left(&self, total: usize);
    fn all_are_held(&self, count: usize);
}

impl<O: Opener> Check for O {
    fn nothing_is_left(&self, total: usize) {
        nothing_is_left(self, total);
    }

    fn all_are_held(&self, count: usize) {
        all_are_held(self, count);
    }
}

/// Reads a size from the environment, as in `NET_CHURN=100000 NET_HELD=9900 cargo test -r -p net --test churn`.
#[expect(clippy::disallowed_methods, reason = "a test has no flags")]
fn scale(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn connections_leave_nothing_behind() {
    each(|backend| {
        backend.nothing_is_left(scale("NET_CHURN", 4_000));
        backend.all_are_held(scale("NET_HELD", 400)); // Both ends are in this process.
    });
}
