//! Tests the behavior that all backends share. One driver connects to itself, over loopback or the simulated network.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use rustix::net::SendFlags;

use crate::harness::{CONFIG, Opener, Pair, address, settle, until};
use net::sim::{Network, Sim};
use net::{Address, Close, CloseReason, Config, Conn, Driver, Epoll, Event, KernelDriver, SendError, Uring};

/// Runs each test on each backend. If io_uring is unusable, its tests print the reason and pass.
macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod sim { $(#[test] fn $name() { super::$name(&crate::harness::OpenSim(super::Network::PERFECT)) })* }
        mod choppy_sim { $(#[test] fn $name() { super::$name(&crate::harness::OpenSim(super::Network::CHOPPY)) })* }
        mod epoll { $(#[test] fn $name() { super::$name(&crate::harness::OpenEpoll) })* }
        mod uring { $(#[test] fn $name() {
            if crate::harness::has_uring() { super::$name(&crate::harness::OpenUring) }
        })* }
        mod oldest_uring { $(#[test] fn $name() {
            if crate::harness::has_uring() { super::$name(&crate::harness::OpenOldestUring) }
        })* }
        mod epoll_on_unix { $(#[test] fn $name() {
            super::$name(&crate::harness::OnUnix::new(crate::harness::OpenEpoll))
        })* }
        mod uring_on_unix { $(#[test] fn $name() {
            if crate::harness::has_uring() { super::$name(&crate::harness::OnUnix::new(crate::harness::OpenUring)) }
        })* }
    };
}

suite!(
    bytes_arrive_in_order_and_whole,
    data_may_be_received_before_its_event,
    sending_before_the_connection_stands,
    half_close_leaves_the_other_half,
    both_ends_in_order_close_by_themselves,
    a_reset_is_seen_as_one,
    a_reset_after_the_end_of_the_stream_is_seen,
    a_reset_behind_the_end_of_the_stream_hides_neither_bytes_nor_end,
    refused,
    closing_twice_is_told_once,
    closing_while_connecting,
    nothing_comes_after_a_close,
    a_graceful_close_sends_what_is_left,
    a_slow_reader_fills_the_sender,
    a_slow_reader_pauses_reads,
    received_bytes_wait_for_a_slow_reader,
    a_stream_goes_on_when_all_is_sent,
    what_is_sent_is_told_at_once,
    paused_reads_wait,
    a_reset_is_seen_while_reads_are_paused,
    large_transfers_both_ways,
    slots_are_used_again,
    no_slot_is_an_error,
    connections_beyond_the_slots_wait,
    many_connections,
    a_stopped_listener_refuses,
    two_listeners_are_told_apart,
    time_passes_until_the_limit,
    events_are_kept,
    many_connections_one_after_another,
);

/// Size of a large transfer in bytes. `kernel` exceeds the kernel's socket buffers; the simulation has smaller windows.
fn large<O: Opener>(kernel: usize) -> usize {
    if O::IS_SIMULATED { kernel / 16 } else { kernel }
}

fn bytes_arrive_in_order_and_whole<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &CONFIG);
    for round in 0..10u8 {
        let ping: Vec<u8> = (0..100).map(|index| index ^ round).collect();
        pair.driver.send(pair.client, &ping[..50]).unwrap();
        pair.driver.send(pair.client, &ping[50..]).unwrap();
        assert_eq!(pair.receive(pair.server, 100), ping);
        pair.driver.send(pair.server, &ping).unwrap();
        assert_eq!(pair.receive(pair.client, 100), ping);
    }
}

fn data_may_be_received_before_its_event<O: Opener>(open: &O) {
    let Pair { mut driver, client, server, .. } = Pair::new(open, &CONFIG);
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let receive_more = |driver: &mut O::Driver, received: &mut Vec<u8>| {
        while let Some(data) = driver.receive_more(server) {
            received.extend_from_slice(driver.bytes(data));
        }
    };
    for piece in 0..100 {
        driver.send(client, &[piece; 100]).unwrap();
        sent.extend([piece; 100]);
        receive_more(&mut driver, &mut received);
    }
    driver.end_stream(client);
    receive_more(&mut driver, &mut received);
    until(&mut driver, |driver, event| {
        match event {
            Event::Data(conn, data) if conn == server => received.extend(driver.bytes(data)),
            Event::EndOfStream(conn) if conn == server => return true,
            other => panic!("{other:?}"),
        }
        receive_more(driver, &mut received);
        false
    });
    assert_eq!(received, sent);
    assert!(driver.receive_more(server).is_none());
}

fn sending_before_the_connection_stands<O: Opener>(open: &O) {
    let mut driver = open.open(&CONFIG);
    let (_, at) = driver.listen(&open.address(), 8).unwrap();
    let client = driver.connect(&at).unwrap();
    driver.send(client, b"early").unwrap();
    driver.end_stream(client);
    assert_eq!(driver.send(client, b"late"), Err(SendError::Closed));
    let mut received: Vec<u8> = Vec::new();
    let mut connected = false;
    until(&mut driver, |driver, event| match event {
        Event::Connected(conn) => {
            assert_eq!(conn, client);
            connected = true;
            false
        }
        Event::Accepted(..) => false,
        Event::Data(conn, data) => {
            assert_ne!(conn, client);
            received.extend(driver.bytes(data));
            false
        }
        Event::EndOfStream(_) => true,
        other => panic!("{other:?}"),
    });
    assert!(connected);
    assert_eq!(received, b"early");
}

fn half_close_leaves_the_other_half<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &CONFIG);
    pair.driver.send(pair.client, b"question").unwrap();
    pair.driver.end_stream(pair.client);
    assert_eq!(pair.receive(pair.server, 8), b"question");
    pair.expect(|event, pair| matches!(event, Event::EndOfStream(conn) if conn == pair.server));
    pair.driver.send(pair.server, b"answer").unwrap();
    assert_eq!(pair.receive(pair.client, 6), b"answer");
}

fn both_ends_in_order_close_by_themselves<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &CONFIG);
    pair.driver.end_stream(pair.client);
    pair.expect(|event, pair| matches!(event, Event::EndOfStream(conn) if conn == pair.server));
    pair.driver.send(pair.server, b"bye").unwrap();
    pair.driver.end_stream(pair.server);
    let (mut said, mut events) = (Vec::<u8>::new(), Vec::new());
    until(&mut pair.driver, |driver, event| {
        match event {
            Event::Data(_, data) => said.extend(driver.bytes(data)),
            other => events.push(format!("{other:?}")),
        }
        events.len() == 3
    });
    assert_eq!(said, b"bye");
    let closed = |conn: Conn| format!("{:?}", Event::Closed(conn, CloseReason::Local));
    assert!(events.contains(&closed(pair.client)) && events.contains(&closed(pair.server)), "{events:?}");
    assert!(events.contains(&format!("{:?}", Event::EndOfStream(pair.client))), "{events:?}");
    settle(&mut pair.driver, |_, event| panic!("{event:?}"));
}

fn a_reset_is_seen_as_one<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &CONFIG);
    pair.driver.close(pair.client, Close::Reset);
    let mut ends = pair.ends();
    ends.sort_by_key(|(conn, _)| *conn != pair.client);
    assert_eq!(ends, [(pair.client, CloseReason::Local), (pair.server, CloseReason::Reset)]);
    assert_eq!(pair.driver.send(pair.server, b"x"), Err(SendError::Closed));
}

fn a_reset_behind_the_end_of_the_stream_hides_neither_bytes_nor_end<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &CONFIG);
    pair.driver.send(pair.client, b"bye").unwrap();
    pair.driver.close(pair.client, Close::GracefulThenReset);
    assert_eq!(pair.driver.send(pair.client, b"x"), Err(SendError::Closed));
    let (mut said, mut ended, mut closed) = (Vec::new(), false, false);
    until(&mut pair.driver, |driver, event| {
        match event {
            Event::Data(conn, data) if conn == pair.server => said.extend_from_slice(driver.bytes(data)),
            Event::EndOfStream(conn) if conn == pair.server => ended = true,
            Event::Closed(conn, CloseReason::Local) if conn == pair.client => closed = true,
            Event::Closed(conn, _) if conn == pair.server => {}
            other => panic!("{other:?}"),
        }
        ended && closed
    });
    assert_eq!(said, b"bye");
}

fn a_reset_after_the_end_of_the_stream_is_seen<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &CONFIG);
    pair.driver.end_stream(pair.client);
    pair.expect(|event, pair| matches!(event, Event::EndOfStream(conn) if conn == pair.server));
    settle(&mut pair.driver, |_, event| panic!("{event:?}"));
    pair.driver.close(pair.client, Close::Reset);
    let mut ends = pair.ends();
    ends.sort_by_key(|(conn, _)| *conn != pair.client);
    assert_eq!(ends, [(pair.client, CloseReason::Local), (pair.server, CloseReason::Reset)]);
}

fn refused<O: Opener>(open: &O) {
    let mut driver = open.open(&CONFIG);
    let conn = driver.connect(&open.dead_address()).unwrap();
    let _ = driver.send(conn, b"lost");
    until(&mut driver, |_, event| {
        assert!(matches!(event, Event::Closed(c, CloseReason::Refused) if c == conn), "{event:?}");
        true
    });
    assert_eq!(driver.send(conn, b"x"), Err(SendError::Closed));
}

fn closing_twice_is_told_once<O: Opener>(open: &O) {
    for how in [Close::Graceful, Close::GracefulThenReset, Close::Reset] {
        let mut pair = Pair::new(open, &CONFIG);
        pair.driver.close(pair.client, how);
        pair.driver.close(pair.client, how);
        pair.driver.close(pair.client, Close::Reset);
        pair.driver.end_stream(pair.client);
        assert_eq!(pair.driver.send(pair.client, b"x"), Err(SendError::Closed));
        let mut ends = 0;
        settle(&mut pair.driver, |_, event| {
            ends += usize::from(matches!(event, Event::Closed(conn, CloseReason::Local) if conn == pair.client));
        });
        assert_eq!(ends, 1);
    }
}

fn closing_while_connecting<O: Opener>(open: &O) {
    for how in [Close::Graceful, Close::GracefulThenReset, Close::Reset] {
        let mut driver = open.open(&CONFIG);
        let (_, at) = driver.listen(&open.address(), 8).unwrap();
        let conn = driver.connect(&at).unwrap();
        driver.close(conn, how);
        let mut told = Vec::new();
        settle(&mut driver, |_, event| {
            if let Event::Connected(c) | Event::Closed(c, _) = event
                && c == conn
            {
                told.push(format!("{event:?}"));
            }
        });
        assert_eq!(told, [format!("{:?}", Event::Closed(conn, CloseReason::Local))]);
    }
}

fn nothing_comes_after_a_close<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &CONFIG);
    pair.driver.send(pair.server, b"on its way").unwrap();
    pair.driver.turn(Some(0)).unwrap();
    pair.driver.close(pair.client, Close::Reset);
    let mut told = Vec::new();
    settle(&mut pair.driver, |_, event| match event {
        Event::Data(conn, _) | Event::EndOfStream(conn) if conn == pair.client => panic!("{event:?}"),
        Event::Closed(conn, reason) if conn == pair.client => told.push(reason),
        _ => {}
    });
    assert_eq!(told, [CloseReason::Local]);
}

fn a_graceful_close_sends_what_is_left<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &Config { send_bytes_max: 3 << 20, ..CONFIG });
    let len = large::<O>(3 << 20);
    let bytes: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
    pair.driver.send(pair.client, &bytes).unwrap();
    pair.driver.close(pair.client, Close::Graceful);
    assert_eq!(pair.driver.send(pair.client, b"x"), Err(SendError::Closed));
    let (mut received, mut closed, mut ended) = (Vec::<u8>::new(), false, false);
    until(&mut pair.driver, |driver, event| {
        match event {
            Event::Data(conn, data) if conn == pair.server => received.extend(driver.bytes(data)),
            Event::Closed(conn, CloseReason::Local) if conn == pair.client => closed = true,
            Event::EndOfStream(conn) if conn == pair.server => ended = true,
            other => panic!("{other:?}"),
        }
        closed && ended
    });
    assert!(received == bytes, "{} of {len} bytes", received.len());
}

mod the_end_needs_no_further_event {
    use std::io::Read;
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    fn check<O: Opener>(open: &O, end: fn(&mut O::Driver, Conn)) {
        let mut driver = open.open(&CONFIG);
        let (_, address) = driver.listen(&address(), 16).unwrap();
        let mut client = TcpStream::connect(address.inet().unwrap()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            client.read_to_end(&mut read).map(|_| read)
        });
        until(&mut driver, |driver, event| {
            match event {
                Event::Accepted(_, conn) => {
                    driver.send(conn, b"bye").unwrap();
                    end(driver, conn);
                }
                Event::Closed(..) => return true,
                _ => {}
            }
            false
        });
        assert_eq!(reader.join().unwrap().unwrap(), b"bye");
    }

    #[test]
    fn epoll() {
        check(&crate::harness::OpenEpoll, |driver, conn| driver.close(conn, Close::Graceful));
        check(&crate::harness::OpenEpoll, |driver, conn| driver.end_stream(conn));
    }

    #[test]
    fn uring() {
        if crate::harness::has_uring() {
            check(&crate::harness::OpenUring, |driver, conn| driver.close(conn, Close::Graceful));
            check(&crate::harness::OpenUring, |driver, conn| driver.end_stream(conn));
        }
    }
}

/// Neither side reads, since each is blocked by its own unsent bytes.
fn a_slow_reader_fills_the_sender<O: Opener>(open: &O) {
    let limit = 100_000;
    let mut pair = Pair::new(open, &Config { send_bytes_max: limit, pause_reads_above_bytes: 0, ..CONFIG });
    let full = |driver: &mut O::Driver, conn| {
        for _ in 0..100_000 {
            match driver.send(conn, &[1; 10_000]) {
                Ok(()) => driver.turn(Some(0)).unwrap(),
                Err(error) => return error,
            }
        }
        panic!("no limit in sight");
    };
    assert_eq!(full(&mut pair.driver, pair.client), SendError::Full(limit));
    assert_eq!(full(&mut pair.driver, pair.server), SendError::Full(limit));
    assert_eq!(pair.driver.send(pair.client, &vec![0; limit + 1]), Err(SendError::Full(limit)));
    // The connection can still be closed. The second close ends the wait for the peer.
    pair.driver.close(pair.client, Close::Graceful);
    pair.driver.close(pair.client, Close::Reset);
    assert!(pair.ends().contains(&(pair.client, CloseReason::Local)));
}

/// The client's unsent bytes stay below the limit that would pause its own reads.
fn a_slow_reader_pauses_reads<O: Opener>(open: &O) {
    let config = Config { send_bytes_max: 1 << 20, receive_bytes: 1_000, pause_reads_above_bytes: 10_000, ..CONFIG };
    let mut pair = Pair::new(open, &config);
    // If reads did not pause, the responses would exceed the limit of unsent bytes on every backend.
    let asked = if O::IS_SIMULATED { 2_500 } else { 10_000 };
    pair.driver.send(pair.client, &vec![7; asked]).unwrap();
    let (mut taken, mut answered) = (0, 0);
    until(&mut pair.driver, |driver, event| {
        match event {
            Event::Data(conn, data) if conn == pair.server => {
                let count = driver.bytes(data).len();
                taken += count;
                driver.send(conn, &vec![9; count * 600]).expect("reads pause before the limit is reached");
            }
            Event::Data(_, data) => answered += driver.bytes(data).len(),
            other => panic!("{other:?}"),
        }
        answered == asked * 600
    });
    assert_eq!(taken, asked);
}

/// The server exceeds the limit of unsent bytes after the client's bytes arrived and before their event.
fn received_bytes_wait_for_a_slow_reader<O: Opener>(open: &O) {
    let config = Config { send_bytes_max: 16 << 20, receive_bytes: 1_000, pause_reads_above_bytes: 10_000, ..CONFIG };
    let mut pair = Pair::new(open, &config);
    let (client, server, large) = (pair.client, pair.server, large::<O>(16 << 20));
    pair.driver.pause_reads(client, true);
    settle(&mut pair.driver, |_, event| panic!("{event:?}"));
    pair.driver.send(client, b"first").unwrap();
    let soon = pair.driver.now() + 1_000_000_000;
    pair.driver.turn(Some(soon)).unwrap();
    pair.driver.send(server, &vec![9; large]).unwrap();
    let (client_received, at_server) = (Cell::new(0), RefCell::new(Vec::new()));
    let see = |driver: &mut O::Driver, event| match event {
        Event::Data(conn, data) if conn == server => at_server.borrow_mut().extend(driver.bytes(data)),
        Event::Data(_, data) => client_received.set(client_received.get() + driver.bytes(data).len()),
        Event::EndOfStream(conn) if conn == server => at_server.borrow_mut().push(b'.'),
        other => panic!("{other:?}"),
    };
    settle(&mut pair.driver, see);
    assert!(at_server.borrow().is_empty());
    pair.driver.send(client, b" second").unwrap();
    pair.driver.end_stream(client);
    settle(&mut pair.driver, see);
    pair.driver.pause_reads(client, false);
    settle(&mut pair.driver, see);
    assert_eq!((str::from_utf8(&at_server.take()), client_received.get()), (Ok("first second."), large));
}

fn large_transfers_both_ways<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &Config { send_bytes_max: 2 << 20, ..CONFIG });
    let len = large::<O>(2 << 20);
    let there: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
    let back: Vec<u8> = there.iter().map(|byte| !byte).collect();
    pair.driver.send(pair.client, &there).unwrap();
    pair.driver.send(pair.server, &back).unwrap();
    let (mut at_server, mut at_client) = (Vec::<u8>::new(), Vec::<u8>::new());
    until(&mut pair.driver, |driver, event| {
        let Event::Data(conn, data) = event else { panic!("{event:?}") };
        let to = if conn == pair.server { &mut at_server } else { &mut at_client };
        to.extend(driver.bytes(data));
        at_server.len() == len && at_client.len() == len
    });
    assert!(at_server == there && at_client == back);
}

fn slots_are_used_again<O: Opener>(open: &O) {
    let config = Config { connections: 2, ..CONFIG };
    let mut driver = open.open(&config);
    let (_, at) = driver.listen(&open.address(), 8).unwrap();
    let mut earlier: Vec<Conn> = Vec::new();
    for round in 0..20u8 {
        let mut pair = Pair::connect(driver, &at);
        assert!(pair.client.index() < 2 && pair.server.index() < 2);
        for &old in &earlier {
            assert!(old != pair.client && old != pair.server);
            assert_eq!(pair.driver.send(old, b"x"), Err(SendError::Closed));
            pair.driver.close(old, Close::Reset); // Must not affect the slot's next owner.
        }
        pair.driver.send(pair.client, &[round]).unwrap();
        assert_eq!(pair.receive(pair.server, 1), [round]);
        // Bytes in transit when a slot is freed must not reach the slot's next connection.
        pair.driver.send(pair.server, b"stale").unwrap();
        pair.driver.turn(Some(0)).unwrap();
        pair.driver.close(pair.client, Close::Reset);
        assert_eq!(pair.ends().len(), 2);
        earlier.extend([pair.client, pair.server]);
        driver = pair.driver;
    }
}

fn no_slot_is_an_error<O: Opener>(open: &O) {
    let mut driver = open.open(&Config { connections: 1, ..CONFIG });
    let conn = driver.connect(&open.dead_address()).unwrap();
    let error = driver.connect(&open.dead_address()).unwrap_err();
    assert_eq!(error.to_string(), "all 1 connection slots are in use");
    until(&mut driver, |_, event| matches!(event, Event::Closed(c, _) if c == conn));
    driver.connect(&open.dead_address()).unwrap();
}

fn connections_beyond_the_slots_wait<O: Opener>(open: &O) {
    let mut clients = open.open(&CONFIG);
    if O::IS_SIMULATED {
        return waiting_in_the_sim();
    }
    let mut server = open.open(&Config { connections: 3, ..CONFIG });
    let (_, at) = server.listen(&open.address(), 64).unwrap();
    for _ in 0..10 {
        clients.connect(&at).unwrap();
    }
    let mut stand = 0;
    until(&mut clients, |_, event| {
        stand += usize::from(matches!(event, Event::Connected(_)));
        stand == 10
    });
    // At most three connections are open at a time; each close makes room for one.
    let (mut open_now, mut accepted) = (Vec::new(), 0);
    while accepted < 10 || !open_now.is_empty() {
        server.turn(Some(server.now() + 20_000_000)).unwrap();
        let mut event = server.next_event();
        while let Some(told) = event {
            match told {
                Event::Accepted(_, conn) => {
                    accepted += 1;
                    open_now.push(conn);
                    assert!(open_now.len() <= 3);
                }
                Event::Closed(conn, CloseReason::Local) => open_now.retain(|&other| other != conn),
                other => panic!("{other:?}"),
            }
            event = server.next_event();
        }
        if let Some(&conn) = open_now.first() {
            server.close(conn, Close::Graceful);
        }
    }
    assert_eq!(accepted, 10);
}

fn waiting_in_the_sim() {
    use net::sim::ready_made_peers;
    let mut driver = Sim::new(1, &Config { connections: 3, ..CONFIG }, Network::PERFECT);
    let (_, at) = driver.listen(&Address::Inet("10.0.0.1:80".parse().unwrap()), 64).unwrap();
    let seen: Vec<_> = (0..10).map(|_| Default::default()).collect();
    for seen in &seen {
        driver.client(at.inet().unwrap(), 0, ready_made_peers::client(2, 1_000, seen));
    }
    let mut open_now = 0;
    settle(&mut driver, |driver, event| match event {
        Event::Accepted(..) => {
            open_now += 1;
            assert!(open_now <= 3);
        }
        Event::Data(conn, data) => {
            let word = u32::from_be_bytes(driver.bytes(data).try_into().unwrap());
            driver.send(conn, &(word + 1).to_be_bytes()).unwrap();
        }
        Event::EndOfStream(conn) => driver.close(conn, Close::Graceful),
        Event::Closed(..) => open_now -= 1,
        other => panic!("{other:?}"),
    });
    for seen in &seen {
        let seen = seen.borrow();
        assert_eq!((seen.answered.len(), seen.wrong), (2, 0));
        assert!(matches!(seen.closed, Some((false, _))));
    }
}

fn many_connections<O: Opener>(open: &O) {
    const COUNT: usize = 500; // Both ends of each connection are in this driver.
    let mut driver = open.open(&Config { connections: 2 * COUNT, receive_bytes: 512, ..CONFIG });
    let (_, at) = driver.listen(&open.address(), 1024).unwrap();
    let clients: Vec<Conn> = (0..COUNT).map(|_| driver.connect(&at).unwrap()).collect();
    for (index, &conn) in clients.iter().enumerate() {
        driver.send(conn, &(index as u32).to_be_bytes()).unwrap();
    }
    let mut is_client = vec![false; 2 * COUNT];
    clients.iter().for_each(|conn| is_client[conn.index()] = true);
    let (mut partial, mut answers) = (vec![Vec::new(); 2 * COUNT], vec![0; COUNT]);
    until(&mut driver, |driver, event| {
        match event {
            Event::Connected(_) | Event::Accepted(..) => {}
            Event::Data(conn, data) => {
                let begun = &mut partial[conn.index()];
                begun.extend(driver.bytes(data));
                if let Some(word) = begun.first_chunk::<4>().copied() {
                    begun.clear();
                    if is_client[conn.index()] {
                        answers[u32::from_be_bytes(word) as usize] += 1;
                    } else {
                        driver.send(conn, &word).unwrap();
                    }
                }
            }
            other => panic!("{other:?}"),
        }
        answers.iter().sum::<i32>() == COUNT as i32
    });
    assert!(answers.iter().all(|&count| count == 1));
    clients.iter().for_each(|&conn| driver.close(conn, Close::Reset));
    let mut closed = 0;
    until(&mut driver, |_, event| {
        closed += usize::from(matches!(event, Event::Closed(..)));
        closed == 2 * COUNT
    });
}

fn a_stopped_listener_refuses<O: Opener>(open: &O) {
    let mut driver = open.open(&CONFIG);
    let (listener, at) = driver.listen(&open.address(), 8).unwrap();
    let mut pair = Pair::connect(driver, &at);
    pair.driver.stop_listening(listener);
    let late = pair.driver.connect(&at).unwrap();
    until(&mut pair.driver, |_, event| {
        assert!(
            matches!(event, Event::Closed(c, CloseReason::Refused | CloseReason::NoSuchFile) if c == late),
            "{event:?}"
        );
        true
    });
    pair.driver.send(pair.client, b"still").unwrap();
    assert_eq!(pair.receive(pair.server, 5), b"still");
}

fn two_listeners_are_told_apart<O: Opener>(open: &O) {
    let mut driver = open.open(&CONFIG);
    let listeners = [(); 2].map(|()| driver.listen(&open.address(), 8).unwrap());
    assert_ne!(listeners[0].1, listeners[1].1);
    for (listener, at) in listeners {
        let pair = Pair::connect(driver, &at);
        assert_eq!(pair.listener, listener);
        driver = pair.driver;
    }
}

fn time_passes_until_the_limit<O: Opener>(open: &O) {
    let mut driver = open.open(&CONFIG);
    let limit = driver.now() + 3_000_000;
    while driver.now() < limit {
        driver.turn(Some(limit)).unwrap();
        assert!(driver.next_event().is_none());
    }
    driver.turn(Some(0)).unwrap(); // If the time has passed, the driver polls without waiting.
    assert!(driver.next_event().is_none());
}

fn events_are_kept<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &CONFIG);
    pair.driver.close(pair.client, Close::Reset);
    let far = pair.driver.now() + 3_600_000_000_000;
    let mut ends = 0;
    while ends < 2 {
        pair.driver.turn(Some(far)).unwrap();
        if let Some(Event::Closed(..)) = pair.driver.next_event() {
            ends += 1; // The turn before the second event must not wait.
        }
    }
    assert!(pair.driver.now() < far);
}

fn many_connections_one_after_another<O: Opener>(open: &O) {
    let mut driver = open.open(&CONFIG);
    let (_, at) = driver.listen(&open.address(), 8).unwrap();
    for round in 0..300u32 {
        let mut pair = Pair::connect(driver, &at);
        pair.driver.send(pair.client, &round.to_be_bytes()).unwrap();
        assert_eq!(pair.receive(pair.server, 4), round.to_be_bytes());
        let how = if round % 2 == 0 { Close::Reset } else { Close::Graceful };
        let first = if round % 3 == 0 { pair.server } else { pair.client };
        pair.driver.close(first, how);
        let other = if first == pair.server { pair.client } else { pair.server };
        let mut closed = 0;
        until(&mut pair.driver, |driver, event| {
            match event {
                Event::EndOfStream(conn) if conn == other => driver.close(conn, Close::Graceful),
                Event::Closed(..) => closed += 1,
                other => panic!("{other:?}"),
            }
            closed == 2
        });
        driver = pair.driver;
    }
}

macro_rules! kernel_suite {
    ($($name:ident),* $(,)?) => {
        mod kernel_epoll { $(#[test] fn $name() { super::$name(|| super::Epoll::new(&super::CONFIG).unwrap()) })* }
        mod kernel_uring { $(#[test] fn $name() {
            if crate::harness::has_uring() { super::$name(|| super::Uring::new(&super::CONFIG).unwrap()) }
        })* }
    };
}

kernel_suite!(
    a_waker_wakes,
    a_socket_moves_to_another_driver,
    release_is_for_open_connections,
    a_driver_may_go_at_any_time,
    bytes_behind_an_urgent_byte_arrive
);

/// A `recv` ends before an urgent byte (RFC 6093, section 3.1), although more bytes follow.
fn bytes_behind_an_urgent_byte_arrive<D: KernelDriver>(open: impl Fn() -> D) {
    let mut driver = open();
    let (_, at) = driver.listen(&address(), 8).unwrap();
    let peer = std::net::TcpStream::connect(at.inet().unwrap()).unwrap();
    for (bytes, flags) in
        [(&b"before"[..], SendFlags::empty()), (b"!", SendFlags::OOB), (b"behind", SendFlags::empty())]
    {
        assert_eq!(rustix::net::send(&peer, bytes, flags), Ok(bytes.len()));
    }
    let mut received: Vec<u8> = Vec::new();
    until(&mut driver, |driver, event| {
        if let Event::Data(_, data) = event {
            received.extend(driver.bytes(data));
        }
        received.len() >= 12
    });
    assert_eq!(received, b"beforebehind");
}

fn a_waker_wakes<D: KernelDriver>(open: impl Fn() -> D) {
    let mut driver = open();
    let waker = driver.waker();
    // A wake before the wait is not lost, and several wakes give one event.
    for _ in 0..3 {
        waker.wake();
        waker.wake();
        until(&mut driver, |_, event| matches!(event, Event::Woken));
        driver.turn(Some(0)).unwrap();
        assert!(driver.next_event().is_none());
    }
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        waker.wake();
    });
    driver.turn(None).unwrap();
    until(&mut driver, |_, event| matches!(event, Event::Woken));
    other.join().unwrap();
}

fn a_socket_moves_to_another_driver<D: KernelDriver>(open: impl Fn() -> D) {
    let (mut first, mut second) = (open(), open());
    let (_, at) = first.listen(&address(), 8).unwrap();
    let client = second.connect(&at).unwrap();
    let mut server = None;
    until(&mut first, |driver, event| {
        let Event::Accepted(_, conn) = event else { panic!("{event:?}") };
        let socket = driver.release(conn).unwrap();
        assert!(driver.release(conn).is_none());
        server = Some(second.adopt(socket).unwrap());
        true
    });
    let server = server.unwrap();
    second.send(server, b"hello").unwrap();
    let mut received: Vec<u8> = Vec::new();
    until(&mut second, |driver, event| {
        match event {
            Event::Connected(conn) => assert_eq!(conn, client),
            Event::Data(conn, data) => {
                assert_eq!(conn, client);
                received.extend(driver.bytes(data));
            }
            other => panic!("{other:?}"),
        }
        received.len() == 5
    });
    assert_eq!(received, b"hello");
    settle(&mut first, |_, event| panic!("{event:?}"));
}

fn release_is_for_open_connections<D: KernelDriver>(open: impl Fn() -> D) {
    let mut driver = open();
    let (_, at) = driver.listen(&address(), 8).unwrap();
    driver.connect(&at).unwrap();
    until(&mut driver, |driver, event| {
        let Event::Accepted(_, conn) = event else { return false };
        driver.close(conn, Close::Graceful);
        assert!(driver.release(conn).is_none());
        true
    });
}

/// The kernel may have pending sends, receives, accepts or connects when the driver is dropped.
fn a_driver_may_go_at_any_time<D: KernelDriver>(open: impl Fn() -> D) {
    for turns in 0..6 {
        let mut driver = open();
        let (_, at) = driver.listen(&address(), 8).unwrap();
        for _ in 0..4 {
            let conn = driver.connect(&at).unwrap();
            driver.send(conn, &[1; 100_000]).unwrap();
        }
        for _ in 0..turns {
            driver.turn(Some(driver.now() + 1_000_000)).unwrap();
            driver.next_event();
        }
    }
}

/// Sends a stream to a slow peer with at most one piece waiting in the driver.
fn a_stream_goes_on_when_all_is_sent<O: Opener>(open: &O) {
    const PIECE: usize = 65_536;
    let mut pair = Pair::new(open, &Config { send_bytes_max: PIECE, ..CONFIG });
    let (client, server) = (pair.client, pair.server);
    let pieces = large::<O>(100 * PIECE) / PIECE;
    let (mut told, mut received) = (0, 0);
    pair.driver.notify_when_sent(server);
    until(&mut pair.driver, |driver, event| {
        match event {
            Event::Sent(conn) => {
                assert_eq!(conn, server);
                told += 1;
                if told <= pieces {
                    driver.send(server, &[told as u8; PIECE]).expect("the one before has left");
                    driver.notify_when_sent(server);
                }
            }
            Event::Data(conn, data) => {
                assert_eq!(conn, client);
                let mut rest = driver.bytes(data);
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(rest.len().min(PIECE - received % PIECE));
                    assert!(now == vec![(received / PIECE + 1) as u8; now.len()]);
                    received += now.len();
                    rest = later;
                }
            }
            other => panic!("{other:?}"),
        }
        received == pieces * PIECE && told > pieces
    });
    assert_eq!(told, pieces + 1);
    let mut more = Vec::new();
    settle(&mut pair.driver, |_, event| more.push(format!("{event:?}")));
    assert_eq!(more, Vec::<String>::new());
}

fn what_is_sent_is_told_at_once<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &CONFIG);
    pair.driver.send(pair.client, b"x").unwrap();
    assert_eq!(pair.receive(pair.server, 1), b"x");
    pair.driver.notify_when_sent(pair.client);
    pair.expect(|event, pair| matches!(event, Event::Sent(conn) if conn == pair.client));
    // A close after the request suppresses the notification.
    pair.driver.notify_when_sent(pair.client);
    pair.driver.close(pair.client, Close::Graceful);
    let (client, mut told) = (pair.client, Vec::new());
    settle(&mut pair.driver, |_, event| match event {
        Event::Closed(conn, _) | Event::Sent(conn) if conn == client => told.push(format!("{event:?}")),
        _ => {}
    });
    assert_eq!(told, [format!("{:?}", Event::Closed(client, CloseReason::Local))]);
}

fn paused_reads_wait<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &Config { receive_bytes: 100, pause_reads_above_bytes: 65_536, ..CONFIG });
    let (client, server) = (pair.client, pair.server);
    for _ in 0..3 {
        pair.driver.pause_reads(server, true);
        pair.driver.send(client, &[7; 1000]).unwrap();
        let mut received = 0;
        settle(&mut pair.driver, |_, event| {
            let Event::Data(conn, data) = event else { panic!("{event:?}") };
            assert_eq!(conn, server);
            received += format!("{data:?}").len().min(1); // A pending receive may still deliver data.
        });
        assert!(received <= 1, "{received} receives");
        let mut bytes = 0;
        pair.driver.pause_reads(server, false);
        settle(&mut pair.driver, |driver, event| {
            if let Event::Data(_, data) = event {
                bytes += driver.bytes(data).len();
            }
        });
        assert!((900..=1000).contains(&bytes), "{bytes} of 1000 bytes, 100 of which may have come before");
    }
    pair.driver.close(client, Close::Graceful);
    pair.expect(|event, pair| matches!(event, Event::Closed(conn, _) if conn == pair.client));
    pair.expect(|event, pair| matches!(event, Event::EndOfStream(conn) if conn == pair.server));
}

fn a_reset_is_seen_while_reads_are_paused<O: Opener>(open: &O) {
    let mut pair = Pair::new(open, &Config { pause_reads_above_bytes: 65_536, ..CONFIG });
    let (client, server) = (pair.client, pair.server);
    pair.driver.pause_reads(server, true);
    settle(&mut pair.driver, |_, event| panic!("{event:?}"));
    pair.driver.close(client, Close::Reset);
    let mut ends = pair.ends();
    ends.sort_by_key(|(conn, _)| *conn != client);
    assert_eq!(ends, [(client, CloseReason::Local), (server, CloseReason::Reset)]);
}
