//! Random interleavings of all operations of a caller, checked against the contract of `Driver`.

use std::collections::HashMap;

use crate::harness::{OnUnix, OpenEpoll, OpenOldestUring, OpenSim, OpenUring, Opener, has_uring};
use net::sim::Network;
use net::{Close, CloseReason, Config, Conn, Driver, Event, SendError};
use proptest::prelude::*;

/// One operation of a caller. `who` selects an open connection.
#[derive(Clone, Debug)]
enum Op {
    Connect,
    Send { who: usize, len: usize },
    EndStream { who: usize },
    TellSent { who: usize },
    PauseReads { who: usize, paused: bool },
    Close { who: usize, how: Close },
    Turn { ns: u64 },
    Take { count: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let who = 0..8usize;
    prop_oneof![
        2 => Just(Op::Connect),
        6 => (who.clone(), 1..3_000usize).prop_map(|(who, len)| Op::Send { who, len }),
        1 => (who.clone(), 60_000..200_000usize).prop_map(|(who, len)| Op::Send { who, len }),
        1 => who.clone().prop_map(|who| Op::EndStream { who }),
        2 => who.clone().prop_map(|who| Op::TellSent { who }),
        2 => (who.clone(), any::<bool>()).prop_map(|(who, paused)| Op::PauseReads { who, paused }),
        1 => (who, any::<bool>()).prop_map(|(who, reset)| {
            Op::Close { who, how: if reset { Close::Reset } else { Close::Graceful } }
        }),
        4 => (0..100_000u64).prop_map(|ns| Op::Turn { ns }),
        6 => (1..20usize).prop_map(|count| Op::Take { count }),
    ]
}

#[derive(Debug, Default)]
struct End {
    is_client: bool,
    name: Option<u32>,
    sent: usize,
    received: usize,
    head: Vec<u8>,
    stands: bool,
    end_received: bool,
    notify_when_sent: bool,
    closed: bool,
}

/// The byte of a side's pattern at `position`. A client sends its name before its pattern.
fn pattern(is_client: bool, position: usize) -> u8 {
    (if is_client { position * 7 } else { position * 11 } % 251) as u8
}

const LIMIT: usize = 300_000;
const SLOTS: usize = 6;

struct Model<D> {
    driver: D,
    at: net::Address,
    /// Whether a reset is distinguishable from an orderly end; false for Unix sockets.
    has_resets: bool,
    ends: HashMap<Conn, End>,
    /// Number of pattern bytes sent, by client name and whether the client sent them.
    sent: HashMap<(u32, bool), usize>,
    ended: Vec<(Option<u32>, Conn, bool, usize)>,
    servers: HashMap<Conn, u32>,
    clients: u32,
    log: Vec<String>,
}

impl<D: Driver> Model<D> {
    fn new<O: Opener<Driver = D>>(open: &O, pause_reads_above_bytes: usize) -> Self {
        let config =
            Config { connections: SLOTS, send_bytes_max: LIMIT, receive_bytes: 1_000, pause_reads_above_bytes };
        let mut driver = open.open(&config);
        let (_, at) = driver.listen(&open.address(), 8).unwrap();
        Self {
            driver,
            has_resets: at.inet().is_some(),
            at,
            ends: HashMap::new(),
            sent: HashMap::new(),
            ended: Vec::new(),
            servers: HashMap::new(),
            clients: 0,
            log: Vec::new(),
        }
    }

    fn pick(&self, who: usize) -> Option<Conn> {
        let all = self.standing();
        all.get(who % all.len().max(1)).copied()
    }

    fn standing(&self) -> Vec<Conn> {
        let mut all: Vec<Conn> = self.ends.keys().copied().collect();
        all.sort_by_key(|conn| conn.index());
        all
    }

    fn run(&mut self, op: &Op) {
        match *op {
            Op::Connect => match self.driver.connect(&self.at) {
                Ok(conn) => {
                    self.begin(conn, true);
                    let name = self.clients;
                    self.clients += 1;
                    self.ends.get_mut(&conn).unwrap().name = Some(name);
                    self.sent.insert((name, true), 0);
                    self.driver.send(conn, &name.to_be_bytes()).unwrap();
                }
                Err(_) => assert_eq!(self.ends.len(), SLOTS, "a connect fails only without a slot"),
            },
            Op::Send { who, len } => self.send(who, len),
            Op::EndStream { who } => {
                if let Some(conn) = self.pick(who) {
                    self.driver.end_stream(conn);
                    assert_eq!(self.driver.send(conn, b"x"), Err(SendError::Closed));
                }
            }
            Op::TellSent { who } => {
                if let Some(conn) = self.pick(who) {
                    self.driver.notify_when_sent(conn);
                    self.ends.get_mut(&conn).unwrap().notify_when_sent = true;
                }
            }
            Op::PauseReads { who, paused } => {
                if let Some(conn) = self.pick(who) {
                    self.driver.pause_reads(conn, paused);
                }
            }
            Op::Close { who, how } => {
                if let Some(conn) = self.pick(who) {
                    self.driver.close(conn, how);
                    let end = self.ends.get_mut(&conn).unwrap();
                    end.closed = true;
                    if let (Some(name), Close::Reset, false) = (end.name, how, self.has_resets) {
                        self.sent.remove(&(name, end.is_client)); // Lost bytes look like unsent ones.
                    }
                    assert_eq!(self.driver.send(conn, b"x"), Err(SendError::Closed));
                }
            }
            Op::Turn { ns } => {
                let until = self.driver.now() + ns;
                self.driver.turn(Some(until)).unwrap();
            }
            Op::Take { count } => {
                for _ in 0..count {
                    let Some(event) = self.driver.next_event() else { break };
                    self.see(event);
                }
            }
        }
    }

    fn begin(&mut self, conn: Conn, is_client: bool) {
        assert!(conn.index() < SLOTS);
        assert!(self.ends.keys().all(|other| other.index() != conn.index()), "two connections in one slot");
        self.ends.insert(conn, End { is_client, ..End::default() });
    }

    fn send(&mut self, who: usize, len: usize) {
        let Some(conn) = self.pick(who) else { return };
        let end = self.ends.get_mut(&conn).unwrap();
        let bytes: Vec<u8> = (end.sent..end.sent + len).map(|position| pattern(end.is_client, position)).collect();
        match self.driver.send(conn, &bytes) {
            Ok(()) => {
                assert!(!end.closed, "sent after a close");
                end.sent += len;
                if let Some(name) = end.name {
                    self.sent.insert((name, end.is_client), end.sent);
                }
            }
            Err(SendError::Full(limit)) => assert_eq!(limit, LIMIT),
            Err(SendError::Closed) => {}
        }
    }

    fn see(&mut self, event: Event) {
        let line = match event {
            Event::Data(conn, data) => format!("{conn:?} {} bytes", self.driver.bytes(data).len()),
            other => format!("{other:?}"),
        };
        self.log.push(line);
        match event {
            Event::Accepted(_, conn) => {
                self.begin(conn, false);
                self.ends.get_mut(&conn).unwrap().stands = true;
            }
            Event::Connected(conn) => {
                let end = self.ends.get_mut(&conn).expect("of a connection that stands");
                assert!(end.is_client && !end.stands && !end.closed, "{conn:?} {end:?}");
                end.stands = true;
            }
            Event::Data(conn, data) => {
                let end = self.ends.get_mut(&conn).expect("of a connection that stands");
                assert!(end.stands && !end.end_received && !end.closed, "{conn:?} {end:?}");
                let bytes = self.driver.bytes(data);
                assert!(!bytes.is_empty() && bytes.len() <= 1_000);
                for &byte in bytes {
                    if !end.is_client && end.head.len() < 4 {
                        end.head.push(byte);
                        if let Some(name) = end.head.first_chunk::<4>() {
                            let name = u32::from_be_bytes(*name);
                            assert!(self.servers.insert(conn, name).is_none());
                            end.name = Some(name);
                            self.sent.insert((name, false), end.sent);
                        }
                    } else {
                        assert_eq!(byte, pattern(!end.is_client, end.received), "byte {}", end.received);
                        end.received += 1;
                    }
                }
            }
            Event::EndOfStream(conn) => {
                let end = self.ends.get_mut(&conn).expect("of a connection that stands");
                assert!(end.stands && !end.end_received && !end.closed, "{conn:?} {end:?}");
                end.end_received = true;
                self.ended.push((end.name, conn, end.is_client, end.received));
            }
            Event::Closed(conn, reason) => {
                let end = self.ends.remove(&conn).expect("closed once");
                let can_be_local = end.closed || end.end_received;
                assert!(can_be_local || reason != CloseReason::Local, "{conn:?} {end:?}");
                assert_eq!(self.driver.send(conn, b"x"), Err(SendError::Closed));
            }
            Event::Sent(conn) => {
                let end = self.ends.get_mut(&conn).expect("of a connection that stands");
                assert!(end.stands && end.notify_when_sent && !end.closed, "{conn:?} {end:?}");
                end.notify_when_sent = false;
            }
            Event::Woken => panic!("no client has a waker"),
        }
    }

    fn finish(mut self) -> Vec<String> {
        for conn in self.standing() {
            self.driver.close(conn, Close::Reset);
            self.ends.get_mut(&conn).unwrap().closed = true;
        }
        let limit = self.driver.now() + 10_000_000_000;
        // As connections close, connections that wait for a slot are accepted and must be closed too.
        while !self.ends.is_empty() {
            assert!(self.driver.now() < limit, "not closed: {:?}", self.ends);
            self.driver.turn(Some(limit)).unwrap();
            while let Some(event) = self.driver.next_event() {
                self.see(event);
                if let Event::Accepted(_, conn) = event {
                    self.driver.close(conn, Close::Reset);
                    self.ends.get_mut(&conn).unwrap().closed = true;
                }
            }
        }
        for (name, conn, is_client, received) in &self.ended {
            if let Some(name) = name
                && let Some(sent) = self.sent.get(&(*name, !is_client))
            {
                assert_eq!(received, sent, "at {conn:?}");
            }
        }
        self.log
    }
}

fn run<O: Opener>(open: &O, pause: usize, ops: &[Op]) -> Vec<String> {
    let mut model = Model::new(open, pause);
    ops.iter().for_each(|op| model.run(op));
    model.finish()
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..120)
}

fn pause() -> impl Strategy<Value = usize> {
    prop_oneof![Just(usize::MAX), Just(0), Just(5_000)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sim(ops in ops(), pause in pause()) {
        run(&OpenSim(Network::CHOPPY), pause, &ops);
    }

    #[test]
    fn sim_that_loses_connections(ops in ops(), pause in pause()) {
        run(&OpenSim(Network { reset_share: 0.02, ..Network::CHOPPY }), pause, &ops);
    }

    #[test]
    fn the_same_seed_gives_the_same_events(ops in ops()) {
        let network = Network { reset_share: 0.01, ..Network::CHOPPY };
        prop_assert_eq!(run(&OpenSim(network.clone()), 5_000, &ops), run(&OpenSim(network), 5_000, &ops));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn epoll(ops in ops(), pause in pause()) {
        run(&OpenEpoll, pause, &ops);
    }

    #[test]
    fn uring(ops in ops(), pause in pause()) {
        if has_uring() {
            run(&OpenUring, pause, &ops);
        }
    }

    #[test]
    fn oldest_uring(ops in ops(), pause in pause()) {
        if has_uring() {
            run(&OpenOldestUring, pause, &ops);
        }
    }

    #[test]
    fn epoll_on_unix(ops in ops(), pause in pause()) {
        run(&OnUnix::new(OpenEpoll), pause, &ops);
    }

    #[test]
    fn uring_on_unix(ops in ops(), pause in pause()) {
        if has_uring() {
            run(&OnUnix::new(OpenUring), pause, &ops);
        }
    }
}
