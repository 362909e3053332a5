//! Tests the simulated network: exact times and each ready-made peer.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use crate::harness::{CONFIG, settle, until};
use net::sim::ready_made_peers::{self, Seen};
use net::sim::{Answer, CONNECT_TIMEOUT_NS, Network, Peer, Sim};
use net::{Address, Close, CloseReason, Config, Conn, Driver, Event, Nanos, SendError};

fn at() -> SocketAddr {
    "10.0.0.1:7".parse().unwrap()
}

fn connected(peer: impl Peer + 'static, config: &Config) -> (Sim, Conn) {
    let mut driver = Sim::new(1, config, Network::PERFECT);
    let mut peer = Some(peer);
    driver.serve(at(), move |_| peer.take().map_or(Answer::Refuse, Into::into));
    let conn = driver.connect(&at().into()).unwrap();
    until(&mut driver, |_, event| matches!(event, Event::Connected(c) if c == conn));
    assert_eq!(driver.now(), 10_000);
    (driver, conn)
}

/// Sends the words 1 to `count`, each after the previous response.
fn play(peer: impl Peer + 'static, count: u32) -> Vec<String> {
    let (mut driver, conn) = connected(peer, &CONFIG);
    let mut said = Vec::new();
    let (mut word, mut begun) = (1u32, Vec::new());
    driver.send(conn, &word.to_be_bytes()).unwrap();
    let mut told_at = driver.now();
    while driver.turn(Some(told_at + 1_000_000)).is_ok() && driver.now() < told_at + 1_000_000 {
        while let Some(event) = driver.next_event() {
            told_at = driver.now();
            match event {
                Event::Data(_, data) => {
                    begun.extend(driver.bytes(data));
                    if let Some(answer) = begun.first_chunk::<4>().copied() {
                        begun.clear();
                        said.push(format!("{} {}", u32::from_be_bytes(answer), driver.now()));
                        word += 1;
                        if word <= count {
                            driver.send(conn, &word.to_be_bytes()).unwrap();
                        }
                    }
                }
                Event::EndOfStream(_) => {
                    said.push(format!("end {}", driver.now()));
                    driver.close(conn, Close::Graceful);
                }
                Event::Closed(_, reason) => said.push(format!("{reason:?} {}", driver.now())),
                other => panic!("{other:?}"),
            }
        }
    }
    said
}

#[test]
fn round_trip_is_two_delays_plus_service_time() {
    assert_eq!(
        play(ready_made_peers::ping_pong(|request| request.number * 1_000), 3),
        ["2 20000", "3 31000", "4 43000"]
    );
}

#[test]
fn pauses_delay_requests_that_arrive_in_them() {
    let mut law = ready_made_peers::pauses(2_000, 200, 3);
    let mut delay = |at| law(ready_made_peers::Request { number: 0, word: 1, at });
    assert_eq!([delay(0), delay(100), delay(1_999)], [3, 3, 3], "no pause before the first period is over");
    assert_eq!([delay(2_000), delay(2_150), delay(2_200), delay(4_199)], [203, 53, 3, 4]);
}

#[test]
fn faulty_peers_behave_as_documented() {
    assert_eq!(play(ready_made_peers::wrong_every(2), 4), ["2 20000", "4 30000", "4 40000", "6 50000"]);
    assert_eq!(play(ready_made_peers::reset_after(1), 2), ["2 20000", "Reset 30000"]);
    assert_eq!(play(ready_made_peers::end_after(1), 2), ["2 20000", "end 30000", "Local 30000"]);
    assert_eq!(play(ready_made_peers::drip(1_000), 2), ["2 24000", "3 38000"]);
    assert_eq!(play(ready_made_peers::silent(), 2), [""; 0]);
}

#[test]
fn endless_data_stops_at_close() {
    let (mut driver, conn) = connected(ready_made_peers::endless(100, 1_000), &CONFIG);
    let mut count = 0;
    until(&mut driver, |driver, event| {
        let Event::Data(_, data) = event else { panic!("{event:?}") };
        count += driver.bytes(data).len();
        count >= 10_000
    });
    // The first chunk left at 5 us, when the connection was established at the peer's end.
    assert_eq!(driver.now(), 10_000 + 99 * 1_000);
    driver.close(conn, Close::Reset);
    let mut told = Vec::new();
    settle(&mut driver, |_, event| told.push(format!("{event:?}")));
    assert_eq!(told, [format!("{:?}", Event::Closed(conn, CloseReason::Local))]);
    assert_eq!(driver.turn(None).unwrap_err().to_string(), "deadlock: no events left");
}

#[test]
fn nonreading_peer_fills_window_and_send_buffer() {
    let limit = 10_000;
    let (mut driver, conn) = connected(ready_made_peers::never_reads(), &Config { send_bytes_max: limit, ..CONFIG });
    let mut taken = 0;
    let error = loop {
        match driver.send(conn, &[0; 100]) {
            Ok(()) => taken += 100,
            Err(error) => break error,
        }
    };
    assert_eq!(error, SendError::Full(limit));
    assert!(taken >= 65_536 + limit - 100 && taken <= 65_536 + limit, "{taken}");
    settle(&mut driver, |_, event| panic!("{event:?}"));
    assert_eq!(driver.send(conn, &[0; 100]), Err(SendError::Full(limit)));
}

#[test]
fn reports_failed_connects() {
    let mut driver = Sim::new(1, &CONFIG, Network::PERFECT);
    driver.serve(at(), |number| if number == 0 { Answer::Refuse } else { Answer::Ignore });
    let elsewhere = "10.0.0.2:7".parse().unwrap();
    let conns = [at(), at(), elsewhere].map(|address| driver.connect(&Address::Inet(address)).unwrap());
    let mut ends = Vec::new();
    while ends.len() < 3 {
        driver.turn(None).unwrap();
        while let Some(event) = driver.next_event() {
            let Event::Closed(conn, reason) = event else { panic!("{event:?}") };
            ends.push((conn, reason, driver.now()));
        }
    }
    let timed_out = CONNECT_TIMEOUT_NS + 5_000;
    let expected = [
        (conns[0], CloseReason::Refused, 10_000),
        (conns[2], CloseReason::Refused, 10_000),
        (conns[1], CloseReason::TimedOut, timed_out),
    ];
    assert_eq!(ends, expected);
}

#[test]
fn full_backlog_delays_connect_by_one_second() {
    let mut driver = Sim::new(1, &Config { connections: 1, ..CONFIG }, Network::PERFECT);
    let (_, address) = driver.listen(&Address::Inet("10.0.0.1:0".parse().unwrap()), 0).unwrap();
    let seen: Vec<Rc<RefCell<Seen>>> = (0..3).map(|_| Rc::default()).collect();
    seen.iter().for_each(|seen| driver.client(address.inet().unwrap(), 0, ready_made_peers::client(1, 0, seen)));
    let mut word = None;
    let echo = |driver: &mut Sim, event| match event {
        Event::Data(conn, data) => {
            word = Some(u32::from_be_bytes(driver.bytes(data).try_into().unwrap()));
            driver.send(conn, &2u32.to_be_bytes()).unwrap();
        }
        Event::EndOfStream(conn) => driver.close(conn, Close::Graceful),
        _ => {}
    };
    let mut echo = echo;
    while driver.turn(None).is_ok() {
        while let Some(event) = driver.next_event() {
            echo(&mut driver, event);
        }
    }
    assert_eq!(word, Some(1));
    // One connection has the slot, one is in the queue, and one tries again later.
    let sent: Vec<Nanos> = seen.iter().map(|seen| seen.borrow().sent[0]).collect();
    assert_eq!(sent, [10_000, 10_000, 1_000_010_000]);
}

#[test]
fn scripted_client_tests_server() {
    let mut driver = Sim::new(1, &CONFIG, Network::PERFECT);
    let (_, address) = driver.listen(&Address::Inet("10.0.0.1:0".parse().unwrap()), 8).unwrap();
    let seen: Rc<RefCell<Seen>> = Rc::default();
    driver.client(address.inet().unwrap(), 1_000, ready_made_peers::client(2, 500, &seen));
    while driver.turn(None).is_ok() {
        while let Some(event) = driver.next_event() {
            match event {
                Event::Data(conn, data) => {
                    let word = u32::from_be_bytes(driver.bytes(data).try_into().unwrap());
                    driver.send(conn, &(word + word).to_be_bytes()).unwrap(); // Correct for word 1, wrong for word 2.
                }
                Event::EndOfStream(conn) => driver.end_stream(conn),
                _ => {}
            }
        }
    }
    let expected =
        Seen { sent: vec![11_000, 21_500], answered: vec![21_000, 31_500], wrong: 1, closed: Some((false, 42_000)) };
    assert_eq!(*seen.borrow(), expected);
}

#[test]
fn polling_loop_advances_time() {
    let mut driver = Sim::new(1, &CONFIG, Network::PERFECT);
    let mut polls = 0;
    while driver.now() < 10_000 {
        driver.turn(Some(0)).unwrap();
        polls += 1;
    }
    assert_eq!(polls, 100);
}

#[test]
fn different_seed_gives_different_run() {
    let run = |seed| {
        let mut driver = Sim::new(seed, &CONFIG, Network::CHOPPY);
        driver.serve(at(), |_| ready_made_peers::ping_pong(|_| 0).into());
        let conn = driver.connect(&at().into()).unwrap();
        driver.send(conn, &[1; 400]).unwrap();
        let mut times = Vec::new();
        settle(&mut driver, |driver, event| times.push((driver.now(), format!("{event:?}"))));
        times
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
