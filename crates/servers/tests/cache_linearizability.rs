//! Eight clients of `serve cache` with four threads share keys in two protocols. The history must be linearizable.

#[path = "../../cache/tests/linearizability/mod.rs"]
mod linearizability;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use linearizability::{Ask, Clock, What};
use servers::{CacheLimits, CacheProtocol, CacheServer, CacheShared, Listen, Shutdown};

const CLIENTS: u64 = 8;
const STEPS: u64 = 3_000;

struct Client {
    stream: BufReader<TcpStream>,
    speaks_redis: bool,
}

impl Client {
    fn new(address: SocketAddr, speaks_redis: bool) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream), speaks_redis }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.strip_suffix("\r\n").unwrap_or_else(|| panic!("no whole line: {line:?}")).to_owned()
    }

    fn block(&mut self, bytes: &str) -> Vec<u8> {
        let mut block = vec![0; bytes.parse::<usize>().unwrap() + 2];
        self.stream.read_exact(&mut block).unwrap();
        assert_eq!(block.split_off(block.len() - 2), b"\r\n");
        block
    }
}

impl Ask for Client {
    fn set(&mut self, key: u64, value: &[u8]) -> bool {
        let (key, bytes) = (format!("key-{key}"), value.len());
        let (front, stored) = match self.speaks_redis {
            true => (format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${bytes}\r\n", key.len()), "+OK"),
            false => (format!("set {key} 0 0 {bytes}\r\n"), "STORED"),
        };
        self.send(&[front.as_bytes(), value, b"\r\n"].concat());
        assert_eq!(self.line(), stored);
        true
    }

    fn get(&mut self, key: u64) -> Option<Vec<u8>> {
        if self.speaks_redis {
            self.send(format!("GET key-{key}\r\n").as_bytes());
            let line = self.line();
            return (line != "$-1").then(|| self.block(line.strip_prefix('$').unwrap()));
        }
        self.send(format!("get key-{key}\r\n").as_bytes());
        let line = self.line();
        if line == "END" {
            return None;
        }
        let value = self.block(line.strip_prefix(&format!("VALUE key-{key} 0 ")).unwrap());
        assert_eq!(self.line(), "END");
        Some(value)
    }

    fn delete(&mut self, key: u64) {
        if self.speaks_redis {
            self.send(format!("DEL key-{key}\r\n").as_bytes());
            assert!([":0", ":1"].contains(&self.line().as_str()));
        } else {
            self.send(format!("delete key-{key}\r\n").as_bytes());
            assert!(["DELETED", "NOT_FOUND"].contains(&self.line().as_str()));
        }
    }
}

fn with_server<R>(backend: net::Choice, memory_bytes: u64, client: impl FnOnce(SocketAddr, &CacheShared) -> R) -> R {
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
            servers::serve(&listen, |_| CacheServer::new(Arc::clone(&shared)), &shutdown, ready)
        });
        let result = client(ready.recv_timeout(Duration::from_secs(60)).unwrap(), &shared);
        shutdown.ask();
        assert_eq!(server.join().unwrap().unwrap().len(), 4);
        result
    })
}

fn one_order(backend: net::Choice) {
    with_server(backend, 32 << 10, |address, shared| {
        let clock = Clock::default();
        let seen: Vec<_> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let clock = &clock;
                    scope.spawn(move || {
                        linearizability::ask(&mut Client::new(address, client % 2 == 1), clock, client, 300, STEPS)
                            .unwrap()
                    })
                })
                .collect();
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
        });
        linearizability::check(&seen).unwrap();
        assert!(seen.iter().filter(|seen| matches!(seen.what, What::Found(_))).count() > 1_000);
        let stats = shared.cache.stats();
        assert!(stats.evictions > 500 && stats.deletes > 500, "{stats:?}");
        shared.cache.audit();
    });
}

#[test]
fn eight_clients_observe_one_order_on_epoll() {
    one_order(net::Choice::Epoll);
}

#[test]
fn eight_clients_observe_one_order_on_the_default_backend() {
    one_order(net::Choice::Auto);
}

#[test]
fn connections_are_counted_over_all_threads() {
    with_server(net::Choice::Auto, 1 << 20, |address, _| {
        let mut clients: Vec<Client> = (0..9).map(|_| Client::new(address, false)).collect();
        for client in &mut clients {
            client.send(b"mn\r\n");
            assert_eq!(client.line(), "MN");
        }
        clients[5].send(b"stats\r\n");
        let stats: Vec<_> = std::iter::from_fn(|| Some(clients[5].line()).filter(|line| line != "END")).collect();
        for line in ["STAT curr_connections 9", "STAT threads 4"] {
            assert!(stats.iter().any(|stat| stat == line), "{stats:?}");
        }
    });
}
