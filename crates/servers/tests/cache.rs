//! `serve cache` on real sockets: one cache, several threads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use servers::{CacheLimits, CacheProtocol, CacheServer, CacheShared, Listen, Shutdown};

/// Runs `client` against a server of four threads.
fn with_server(backend: net::Choice, memory_bytes: u64, client: impl FnOnce(SocketAddr, &CacheShared)) {
    let config = cache::Config { threads: 4, ..cache::Config::new(memory_bytes) };
    let shared =
        CacheShared::new(config, CacheProtocol::Auto, CacheLimits::DEFAULT, || 1_000_000_000_000_000_000).unwrap();
    let shared = Arc::new(shared);
    let address = "127.0.0.1:0".parse::<SocketAddr>().unwrap().into();
    let listen = Listen { address, threads: 4, backend, connections: Some(100), drain_ns: 5_000_000_000 };
    let shutdown = Shutdown::default();
    let (bound, ready) = mpsc::channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let ready = |address: &net::Address| bound.send(address.inet().unwrap()).unwrap();
            servers::serve(&listen, |thread| CacheServer::new(Arc::clone(&shared), thread), &shutdown, ready)
        });
        client(ready.recv_timeout(Duration::from_secs(60)).unwrap(), &shared);
        shutdown.ask();
        assert_eq!(server.join().unwrap().unwrap().len(), 4);
    });
}

struct Client {
    stream: TcpStream,
}

impl Client {
    fn new(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream }
    }

    /// What is answered to these lines: all of it, up to the answer of a barrier sent behind them.
    fn ask(&mut self, lines: &str) -> String {
        self.stream.write_all(format!("{lines}mn\r\n").as_bytes()).unwrap();
        let (mut said, mut room) = (Vec::new(), [0; 16_384]);
        while !said.ends_with(b"MN\r\n") {
            let bytes = self.stream.read(&mut room).unwrap();
            assert!(bytes > 0, "closed after {:?}", String::from_utf8_lossy(&said));
            said.extend_from_slice(&room[..bytes]);
        }
        said.truncate(said.len() - 4);
        String::from_utf8(said).unwrap()
    }
}

const WRITERS: usize = 4;
const KEYS: usize = 24;
const ROUNDS: u64 = 400;

/// A value that says who wrote it, when, and is of one piece: its number over and over, as often as the number says.
fn value(writer: usize, round: u64) -> String {
    format!("{writer}-{round};").repeat(1 + (round % 37) as usize)
}

/// The value's writer and round; fails for one that is torn.
fn read(text: &str) -> (usize, u64) {
    let (first, _) = text.split_once(';').unwrap_or_else(|| panic!("torn: {text}"));
    let (writer, round) = first.split_once('-').unwrap();
    let (writer, round) = (writer.parse().unwrap(), round.parse().unwrap());
    assert_eq!(text, value(writer, round), "torn");
    (writer, round)
}

/// Each writer has keys that it alone writes, on a connection of its own; all read all of them, in a cache that evicts. A reader never sees a
/// round before one that it saw, and a writer never sees what it had deleted or overwritten.
fn order_holds(backend: net::Choice) {
    with_server(backend, 64 << 10, |address, shared| {
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || {
                    let mut client = Client::new(address);
                    let mut seen = vec![0u64; WRITERS * KEYS];
                    for round in 1..=ROUNDS {
                        let own = round as usize * 7 % KEYS;
                        let key = format!("key-{writer}-{own}");
                        let text = value(writer, round);
                        let set = format!("set {key} 0 0 {}\r\n{text}\r\nget {key}\r\n", text.len());
                        let said = client.ask(&set);
                        let expect = format!("STORED\r\nVALUE {key} 0 {}\r\n{text}\r\nEND\r\n", text.len());
                        // Others' stores may evict it at once.
                        assert!(said == expect || said == "STORED\r\nEND\r\n", "{said}");
                        if round % 3 == 0 {
                            let said = client.ask(&format!("delete {key}\r\nget {key}\r\n"));
                            assert!(said.ends_with("END\r\n") && !said.contains("VALUE"), "resurrected: {said}");
                        }
                        // Fills the cache, so that it evicts.
                        client.ask(&format!("set fill-{writer}-{round} 0 0 300\r\n{:0300}\r\n", 0));
                        let keys: Vec<usize> =
                            (0..8).map(|step| (round as usize * 5 + step * 11) % seen.len()).collect();
                        let names: Vec<String> =
                            keys.iter().map(|key| format!("key-{}-{}", key / KEYS, key % KEYS)).collect();
                        let said = client.ask(&format!("get {}\r\n", names.join(" ")));
                        let mut lines = said.split("\r\n");
                        while let Some(line) = lines.next().filter(|line| line.starts_with("VALUE ")) {
                            let name = line.split(' ').nth(1).unwrap();
                            let at = keys[names.iter().position(|other| other == name).unwrap()];
                            let (by, round) = read(lines.next().unwrap());
                            assert_eq!(by, at / KEYS, "the value of another key");
                            assert!(round >= seen[at], "{name} was in round {} and is in {round}", seen[at]);
                            seen[at] = round;
                        }
                    }
                });
            }
        });
        let stats = shared.cache().stats();
        assert!(stats.evictions > 0 && stats.hits > 0, "{stats:?}");
        assert!(stats.memory_bytes() <= 64 << 10);
        shared.cache().audit().unwrap();
    });
}

#[test]
fn order_of_a_key_on_epoll() {
    order_holds(net::Choice::Epoll);
}

#[test]
fn order_of_a_key_by_choice() {
    order_holds(net::Choice::Auto);
}

#[test]
fn connections_are_counted_over_all_threads() {
    with_server(net::Choice::Auto, 1 << 20, |address, _| {
        let mut clients: Vec<Client> = (0..9).map(|_| Client::new(address)).collect();
        for client in &mut clients {
            assert_eq!(client.ask(""), "");
        }
        let stats = clients[5].ask("stats\r\n");
        assert!(stats.contains("STAT curr_connections 9\r\n") && stats.contains("STAT threads 4\r\n"), "{stats}");
        let mut http = TcpStream::connect(address).unwrap();
        http.write_all(b"PUT /k/v HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut said = String::new();
        http.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 201 Created\r\n"), "{said}");
        assert_eq!(clients[0].ask("get k\r\n"), "VALUE k 0 1\r\nv\r\nEND\r\n");
    });
}
