//! A flood of connections to the port for nodes. The test counts descriptors and threads, so it has its own binary.

use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use lab::cluster::join::{Event, Listener, REFUSALS_TOLD, join};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const LONG: Duration = Duration::from_secs(120);
const FLOOD: usize = 1000;

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn flood_is_bounded_and_a_node_still_joins() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let deadline = lab::lab_clocks::now() + LONG;
    let mut listener =
        Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), &[Ipv4Addr::LOCALHOST.into(); 2], deadline).unwrap();
    let (address, fingerprint, ticket) = (listener.address, listener.fingerprint.clone(), listener.ticket.clone());
    let (sender, events) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let lab = std::thread::spawn(move || {
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            listener.next(Duration::from_millis(10)).into_iter().for_each(|event| sender.send(event).unwrap());
        }
    });
    let (descriptors, threads) = (count("/proc/self/fd"), count("/proc/self/task"));

    let mut flood = Vec::new();
    let mut worst = (0, 0);
    let mut look = |own: usize| {
        worst.0 = worst.0.max(count("/proc/self/fd").saturating_sub(descriptors + own));
        worst.1 = worst.1.max(count("/proc/self/task").saturating_sub(threads));
    };
    for _ in 0..FLOOD {
        flood.push(TcpStream::connect(address).unwrap());
        look(flood.len());
    }
    let node = std::thread::spawn(move || join(address, &fingerprint, 0, &ticket, LONG));
    while !node.is_finished() {
        look(FLOOD);
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut node = node.join().unwrap().unwrap();
    look(FLOOD);
    // Up to 64 half-open connections, the one being accepted, the directory, the node and the lab use descriptors.
    assert!(worst.0 <= 64 + 16, "{worst:?}");
    // One thread runs the node.
    assert!(worst.1 <= 1, "{worst:?}");

    let (mut told, mut joined) = (0, None);
    while joined.is_none() {
        match events.recv_timeout(LONG).expect("the node has joined") {
            Event::Refused(..) => told += 1,
            Event::Joined(0, channel) => joined = Some(channel),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, REFUSALS_TOLD);
    joined.unwrap().output.line(b"order").unwrap();
    let order = std::iter::from_fn(|| node.input.read().unwrap()).find(|lines| !lines.is_empty());
    assert_eq!(order.unwrap(), [b"order\n"]);
    // Dropping the listener before the second node joins closes the port and all waiting connections.
    drop(stop);
    lab.join().unwrap();
    for mut stream in flood {
        let _ = stream.read(&mut [0]);
    }
}
