//! Tests the whole server on a simulated network.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use net::sim::{Actions, Network, Peer, Sim};
use net::{Config, Driver, Nanos};

use super::connection_state::Connection;
use super::*;
use crate::event_loops;

const S: Nanos = 1_000_000_000;
const MS: Nanos = 1_000_000;

#[derive(Debug, Default)]
struct Seen {
    bytes: Vec<u8>,
    ended: Option<Nanos>,
    closed: Option<(Nanos, bool)>,
}

type Shared = Rc<RefCell<Seen>>;

/// A client's action and its time after the connect, in ns.
#[derive(Clone, Debug)]
enum Step {
    Send(Nanos, Vec<u8>),
    /// Stops reading at a time and for a duration, both in ns.
    Stall(Nanos, Nanos),
}

struct Client {
    steps: Vec<Step>,
    seen: Shared,
}

impl Peer for Client {
    fn on_connect(&mut self, _: Nanos, to: &mut Actions) {
        for step in self.steps.drain(..) {
            match step {
                Step::Send(after, bytes) => to.send(after, bytes),
                Step::Stall(after, span) => to.stall(after, span),
            }
        }
    }

    fn on_wake(&mut self, _: Nanos, _: &mut Actions) {}

    fn on_data(&mut self, bytes: &[u8], _: Nanos, _: &mut Actions) {
        self.seen.borrow_mut().bytes.extend_from_slice(bytes);
    }

    fn on_end_of_stream(&mut self, now: Nanos, to: &mut Actions) {
        self.seen.borrow_mut().ended = Some(now);
        to.end_of_stream(0);
    }

    fn on_closed(&mut self, reset: bool, now: Nanos) {
        self.seen.borrow_mut().closed = Some((now, reset));
    }
}

struct World {
    driver: Sim,
    server: CacheServer,
    listener: net::Listener,
    address: SocketAddr,
    wake: Option<Nanos>,
    connections: usize,
    largest_input: usize,
    largest_out: usize,
}

fn config() -> cache::Config {
    cache::Config { versions: true, ..cache::Config::new(8 << 20) }
}

impl World {
    fn new() -> World {
        World::with(config(), CacheProtocol::Auto, CacheLimits::DEFAULT)
    }

    fn with(config: cache::Config, protocol: CacheProtocol, limits: CacheLimits) -> World {
        let sizes =
            Config { connections: 64, receive_bytes: 16_384, send_bytes_max: 262_144, pause_reads_above_bytes: 65_536 };
        let mut driver = Sim::new(7, &sizes, Network::PERFECT);
        let (listener, address) = driver.listen(&"10.0.0.1:11211".parse::<SocketAddr>().unwrap().into(), 64).unwrap();
        // The clock starts at Sun, 06 Nov 1994 08:49:37 GMT.
        let shared = CacheShared::new(config, protocol, limits, || 784_111_777_000_000_000).unwrap();
        // The clock starts between two seconds, so that no request falls on a boundary.
        shared.epoch_ns.set(784_111_777_300_000_000).unwrap();
        let server = CacheServer::new(Arc::new(shared));
        let address = address.inet().unwrap();
        World { driver, server, listener, address, wake: None, connections: 60, largest_input: 0, largest_out: 0 }
    }

    fn client(&mut self, steps: Vec<Step>) -> Shared {
        let seen = Shared::default();
        self.driver.client(self.address, 0, Client { steps, seen: Rc::clone(&seen) });
        seen
    }

    fn turn(&mut self, until: Nanos) {
        let wake = self.wake.map_or(until, |wake| wake.min(until));
        let connections = self.connections;
        let accept = |driver: &mut Sim, server: &mut CacheServer, conn| {
            if server.connections.open < connections {
                server.accepted(driver, conn)
            } else {
                server.refused(driver, conn)
            }
        };
        let turned = event_loops::turn(&mut self.driver, &mut self.server, Some(wake), accept, || {}, |_, _| {});
        self.wake = turned.unwrap();
        assert!(self.server.core.out.is_empty(), "responses are left over");
        let of =
            |bytes: &dyn Fn(&Connection) -> usize| self.server.connections.slots.iter().map(bytes).max().unwrap_or(0);
        self.largest_input = self.largest_input.max(of(&|connection| connection.input.capacity()));
        self.largest_out = self.largest_out.max(of(&|connection| connection.state.unsent.capacity()));
    }

    fn run(&mut self, until: Nanos) {
        while self.driver.now() < until {
            self.turn(until);
        }
    }

    fn say(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.say_pieces(&[bytes])
    }

    /// Sends the pieces 1 ms apart and returns the responses.
    fn say_pieces(&mut self, pieces: &[&[u8]]) -> Vec<u8> {
        let send = |(index, piece): (usize, &&[u8])| Step::Send(index as Nanos * MS, piece.to_vec());
        let seen = self.client(pieces.iter().enumerate().map(send).collect());
        let until = self.driver.now() + (pieces.len() as Nanos + 10) * MS;
        self.run(until);
        std::mem::take(&mut seen.borrow_mut().bytes)
    }
}

fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Checks that a new server gives the same responses no matter how the requests are split.
#[track_caller]
fn check(asked: &[u8], answered: &[u8]) {
    // The clock begins in mid-second. At the start of a second, a remaining time of 10 s would soon read as 9.
    let world = || {
        let mut world = World::new();
        world.run(1);
        world.run(100 * MS);
        world
    };
    let whole = world().say(asked);
    assert_eq!(show(&whole), show(answered), "at once");
    for at in 1..asked.len() {
        let cut = world().say_pieces(&[&asked[..at], &asked[at..]]);
        assert_eq!(show(&cut), show(answered), "cut at {at}");
    }
    let bytes: Vec<&[u8]> = asked.chunks(1).collect();
    assert_eq!(show(&world().say_pieces(&bytes)), show(answered), "byte by byte");
}

#[test]
fn memcached_storage() {
    check(
        b"set a 7 0 3\r\nabc\r\nget a b a\r\nadd a 0 0 1\r\nx\r\nadd b 0 0 0\r\n\r\nget b\r\nreplace c 0 0 1\r\nx\r\n\
          append a 0 0 2\r\nde\r\nprepend a 0 0 1\r\n_\r\nget a\r\nset q 0 0 1 noreply\r\nz\r\nget q\r\ndelete q\r\ndelete q\r\n\
          touch a 0\r\ntouch q 0\r\nset n 0 0 2\r\n10\r\ndecr n 1\r\nincr n 1\r\nincr a 1\r\nincr q 1\r\nget n\r\n",
        b"STORED\r\nVALUE a 7 3\r\nabc\r\nVALUE a 7 3\r\nabc\r\nEND\r\nNOT_STORED\r\nSTORED\r\nVALUE b 0 0\r\n\r\nEND\r\n\
          NOT_STORED\r\nSTORED\r\nSTORED\r\nVALUE a 7 6\r\n_abcde\r\nEND\r\nVALUE q 0 1\r\nz\r\nEND\r\nDELETED\r\nNOT_FOUND\r\n\
          TOUCHED\r\nNOT_FOUND\r\nSTORED\r\n9\r\n10\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n\
          NOT_FOUND\r\nVALUE n 0 2\r\n10\r\nEND\r\n",
    );
}

#[test]
fn memcached_versions() {
    check(
        b"set a 0 0 1\r\n1\r\ngets a\r\ncas a 0 0 1 1\r\n2\r\ncas a 0 0 1 1\r\n3\r\ncas b 0 0 1 1\r\n3\r\ngets a\r\ngats 100 a\r\n",
        b"STORED\r\nVALUE a 0 1 1\r\n1\r\nEND\r\nSTORED\r\nEXISTS\r\nNOT_FOUND\r\nVALUE a 0 1 2\r\n2\r\nEND\r\n\
          VALUE a 0 1 2\r\n2\r\nEND\r\n",
    );
}

#[test]
fn memcached_errors_keep_the_connection_in_step() {
    let long = "k".repeat(251);
    let asked = format!(
        "nonsense\r\nget\r\nget {long}\r\nset {long} 0 0 5\r\nget a\r\nset a 0 0 x\r\nset a 0 0 2\r\nabcd\r\n\
         set a 0 0 1\r\n1\r\nget a\r\n"
    );
    // The overlong block is `ab` with `cd` in place of CRLF; its real CRLF is read as an empty line.
    let answered = "ERROR\r\nERROR\r\nCLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad command line format\r\n\
         CLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad data chunk\r\nERROR\r\nSTORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n";
    let whole = World::new().say(format!("version\r\n{asked}").as_bytes());
    let version = concat!("VERSION 1.6.18 (quintain ", env!("CARGO_PKG_VERSION"), ")\r\n");
    assert_eq!(show(&whole), show(format!("{version}{answered}").as_bytes()));
    let bytes = format!("mn\r\n{asked}");
    let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
    assert_eq!(show(&World::new().say_pieces(&pieces)), show(format!("MN\r\n{answered}").as_bytes()));
}

#[test]
fn redis_commands() {
    check(
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\nabc\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\nPING\r\nSET b 1 NX GET\r\n\
          SET b 2 NX\r\nSET b 3 XX GET\r\nMGET a x b\r\nMSET c 1 d 2\r\nMSET c\r\nEXISTS a c x a\r\nDEL c d x\r\nTTL a\r\nTTL x\r\n\
          EXPIRE a 10\r\nTTL a\r\nSET a z KEEPTTL\r\nTTL a\r\nSET a z EX 0\r\nSETNX a 1\r\nDBSIZE\r\nSELECT 0\r\nSELECT 1\r\nMULTI\r\nSCAN 0\r\n\
          GET\r\nEXPIRE a 0\r\nGET a\r\nHELLO 4\r\nECHO hi\r\nCONFIG GET save\r\nFLUSHALL\r\nDBSIZE\r\n",
        b"+OK\r\n$3\r\nabc\r\n$-1\r\n+PONG\r\n$-1\r\n$-1\r\n$1\r\n1\r\n*3\r\n$3\r\nabc\r\n$-1\r\n$1\r\n3\r\n+OK\r\n\
          -ERR wrong number of arguments for 'mset' command\r\n:3\r\n:2\r\n:-1\r\n:-2\r\n:1\r\n:10\r\n+OK\r\n:10\r\n\
          -ERR invalid expire time in 'set' command\r\n:0\r\n:2\r\n+OK\r\n-ERR DB index is out of range\r\n-ERR unknown command 'MULTI', with args beginning with: \r\n\
          -ERR unknown command 'SCAN', with args beginning with: '0' \r\n\
          -ERR wrong number of arguments for 'get' command\r\n:1\r\n$-1\r\n-NOPROTO unsupported protocol version\r\n$2\r\nhi\r\n\
          *2\r\n$4\r\nsave\r\n$0\r\n\r\n+OK\r\n:0\r\n",
    );
}

/// Regression test: `PX 5` once lasted a second.
#[test]
fn resp_times_are_exact_to_the_millisecond() {
    let mut world = World::new();
    // Commands arrive 1 ms apart, and each is answered immediately.
    let mut ask = |line: &str| String::from_utf8(world.say(format!("{line}\r\n").as_bytes())).unwrap();
    assert_eq!(ask("SET k v PX 5"), "+OK\r\n");
    // `say` ends 11 ms later, when the key has expired.
    assert_eq!(ask("GET k"), "$-1\r\n");
    assert_eq!(ask("PSETEX k 1234 v"), "+OK\r\n");
    let left = |said: &str| said.trim_start_matches(':').trim().parse::<i64>().unwrap();
    let first = left(&ask("PTTL k"));
    assert!((1200..1234).contains(&first), "{first}");
    assert_eq!(ask("TTL k"), ":1\r\n", "the nearest second, as Redis says it");
    assert_eq!(ask("PEXPIRE k 784"), ":1\r\n");
    assert!((700..784).contains(&left(&ask("PTTL k"))));
    assert_eq!(ask("SET k v PXAT 784111778000"), "+OK\r\n");
    assert!(left(&ask("PTTL k")) < 700);
    assert_eq!(ask("SET k v EXAT 9223372036854775"), "+OK\r\n", "as far as Redis goes");
    assert_eq!(ask("EXPIRE k 9223372036854775"), "-ERR invalid expire time in 'expire' command\r\n");
    assert_eq!(ask("PERSIST k"), ":1\r\n");
    assert_eq!(ask("PTTL k"), ":-1\r\n");
}

#[test]
fn redis_increments_and_connection_setup() {
    check(
        b"INCR n\r\nINCRBY n 9\r\nDECR n\r\nDECRBY n 19\r\nGET n\r\nSET n 9223372036854775807\r\nINCR n\r\n\
          DECRBY n -9223372036854775808\r\nINCRBY n 01\r\nSET s 007\r\nINCR s\r\nPERSIST s\r\nSELECT x\r\nCLIENT SETNAME a\r\n\
          CLIENT SETINFO LIB-NAME x\r\nCLIENT NOPE\r\nCONFIG SET save x\r\nCOMMAND DOCS\r\nFLUSHALL a b\r\nFLUSHALL a\r\nFLUSHDB ASYNC\r\n",
        b":1\r\n:10\r\n:9\r\n:-10\r\n$3\r\n-10\r\n+OK\r\n-ERR increment or decrement would overflow\r\n\
          -ERR decrement would overflow\r\n-ERR value is not an integer or out of range\r\n+OK\r\n\
          -ERR value is not an integer or out of range\r\n:0\r\n-ERR DB index is out of range\r\n+OK\r\n+OK\r\n\
          -ERR unknown subcommand 'NOPE'. Try CLIENT HELP.\r\n-ERR unknown subcommand 'SET'. Try CONFIG HELP.\r\n*0\r\n\
          -ERR wrong number of arguments for 'flushall' command\r\n-ERR syntax error\r\n+OK\r\n",
    );
}

/// memcached 1.6.18 gives the same responses to these lines in order.
#[test]
fn memcached_counts_and_times() {
    check(
        b"set a 0 0 2\r\n10\r\ndecr a 1\r\nget a\r\nincr a 5\r\nset a 0 0 20\r\n18446744073709551615\r\nincr a 1\r\nget a\r\n\
          set a 0 0 5\r\n 12 x\r\nincr a +1\r\nget a\r\nset a 0 -1 1\r\nx\r\nget a\r\nset a 0 4294967296 1\r\nx\r\nget a\r\nset a 0 2147483648 1\r\nx\r\nget a\r\n\
          set a 4294967297 0 1\r\nx\r\nget a\r\nmg a v\r\n",
        b"STORED\r\n9\r\nVALUE a 0 2\r\n9 \r\nEND\r\n14\r\nSTORED\r\n0\r\nVALUE a 0 20\r\n0                   \r\nEND\r\n\
          STORED\r\n13\r\nVALUE a 0 5\r\n13   \r\nEND\r\nSTORED\r\nEND\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nSTORED\r\nEND\r\n\
          STORED\r\nVALUE a 1 1\r\nx\r\nEND\r\nERROR\r\n",
    );
}

#[test]
fn memcached_statistics() {
    let mut world = World::new();
    world.say(b"set n 0 0 1\r\n1\r\nget n\r\nget no\r\ngat 0 n\r\ndelete no\r\n");
    let stats = String::from_utf8(world.say(b"stats\r\n")).unwrap();
    for line in ["cmd_get 3", "cmd_set 1", "get_hits 2", "get_misses 1", "delete_hits 0", "curr_items 1", "threads 1"] {
        assert!(stats.contains(&format!("STAT {line}\r\n")), "{line}: {stats}");
    }
    assert!(stats.contains("STAT version 1.6.18 (") && stats.ends_with("END\r\n"), "{stats}");
    assert_eq!(world.say(b"stats items\r\n"), b"ERROR\r\n");
}

#[test]
fn redis_replies_in_resp3() {
    let mut world = World::new();
    let said = world.say(b"HELLO 3\r\nGET a\r\nCONFIG GET maxmemory\r\nHELLO 2\r\nGET a\r\nQUIT\r\nGET a\r\n");
    let said = String::from_utf8(said).unwrap();
    assert!(said.starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n"), "{said}");
    let third = "*0\r\n_\r\n%1\r\n$9\r\nmaxmemory\r\n$7\r\n8388608\r\n*14\r\n";
    assert!(said.contains(third) && said.ends_with("*0\r\n$-1\r\n+OK\r\n"), "{said}");
}

#[test]
fn http_targets() {
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let asked = "PUT /k/a%20b/c HTTP/1.1\r\nHost: a\r\n\r\nPUT /k/v HTTP/1.1\r\nHost: a\r\n\r\nGET /k HTTP/1.1\r\nHost: a\r\n\r\n\
        GET /x HTTP/1.1\r\nHost: a\r\n\r\nHEAD /k HTTP/1.1\r\nHost: a\r\n\r\nDELETE /k HTTP/1.1\r\nHost: a\r\n\r\nDELETE /k HTTP/1.1\r\nHost: a\r\n\r\n\
        POST /reset HTTP/1.1\r\nHost: a\r\n\r\nPUT /k HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET /k HTTP/1.0\r\n\r\n";
    let body = "a body: the value of PUT goes in the target, `/key/value`\n";
    let answered = [
        format!("HTTP/1.1 201 Created\r\n{date}Content-Length: 0\r\n\r\n"),
        format!("HTTP/1.1 204 No Content\r\n{date}\r\n"),
        format!("HTTP/1.1 200 OK\r\n{date}Content-Length: 1\r\n\r\nv"),
        format!("HTTP/1.1 404 Not Found\r\n{date}Content-Length: 0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\n{date}Content-Length: 1\r\n\r\n"),
        format!("HTTP/1.1 204 No Content\r\n{date}\r\n"),
        format!("HTTP/1.1 404 Not Found\r\n{date}Content-Length: 0\r\n\r\n"),
        format!("HTTP/1.1 204 No Content\r\n{date}\r\n"),
        format!(
            "HTTP/1.1 400 Bad Request\r\n{date}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
        format!("HTTP/1.1 404 Not Found\r\n{date}Connection: close\r\nContent-Length: 0\r\n\r\n"),
    ];
    check(asked.as_bytes(), answered.concat().as_bytes());
    let status = World::new().say(b"PUT /k/v HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let status = String::from_utf8(status).unwrap();
    assert!(status.contains("\r\nItems: 1\r\n") && status.contains("\r\nMaxmem: 8388608\r\n"), "{status}");
}

#[test]
fn all_protocols_see_one_cache_on_one_port() {
    let mut world = World::new();
    assert_eq!(world.say(b"set k 5 0 3\r\nabc\r\n"), b"STORED\r\n");
    assert_eq!(world.say(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), b"$3\r\nabc\r\n");
    assert!(world.say(b"GET /k HTTP/1.1\r\nHost: a\r\n\r\n").ends_with(b"\r\n\r\nabc"));
    assert_eq!(world.say(b"SET k 12\r\n"), b"+OK\r\n");
    assert_eq!(world.say(b"get k\r\n"), b"VALUE k 0 2\r\n12\r\nEND\r\n");
    for (wrong, answer) in [
        (b"\x80\x00".as_slice(), "ERROR memcached's binary protocol is not spoken here, its text is\r\n"),
        (b"?what\r\n", "ERROR not memcached's text, RESP or HTTP/1.1\r\n"),
        (b"\x16\x03\x01\x02\x00", ""),
    ] {
        assert_eq!(show(&world.say(wrong)), show(answer.as_bytes()));
    }
    let info = String::from_utf8(world.say(b"INFO\r\n")).unwrap();
    assert!(info.contains("keyspace_hits:3\r\n") && info.contains("maxmemory:8388608\r\n"), "{info}");
    let stats = String::from_utf8(world.say(b"stats\r\n")).unwrap();
    assert!(stats.contains("STAT get_hits 3\r\n") && stats.contains("STAT curr_items 1\r\n"), "{stats}");
}

#[test]
fn items_expire_on_time_and_not_early() {
    let mut world = World::new();
    world.say(b"set a 0 2 1\r\n1\r\n");
    world.say(b"SET b 1 PX 1500\r\n");
    world.say(b"flush_all 5\r\nset z 0 0 1\r\n1\r\n");
    world.run(1_400 * MS);
    assert_eq!(world.say(b"get a b\r\n"), b"VALUE a 0 1\r\n1\r\nVALUE b 0 1\r\n1\r\nEND\r\n");
    world.run(1_900 * MS);
    assert_eq!(world.say(b"get a\r\n"), b"VALUE a 0 1\r\n1\r\nEND\r\n");
    world.run(3_010 * MS);
    assert_eq!(world.say(b"get a b z\r\n"), b"VALUE z 0 1\r\n1\r\nEND\r\n");
    world.run(5_100 * MS);
    assert_eq!(world.say(b"get z\r\n"), b"END\r\n");
    assert_eq!(world.say(b"set p 0 -1 1\r\n1\r\nget p\r\n"), b"STORED\r\nEND\r\n");
}

#[test]
fn a_full_cache_evicts_or_refuses() {
    let mut asked = Vec::new();
    for key in 0..2000 {
        asked.extend_from_slice(format!("set key{key} 0 0 100\r\n{:0100}\r\n", key).as_bytes());
    }
    for evictor in cache::Evictor::ALL {
        let config = cache::Config { evictor, ..cache::Config::new(64 << 10) };
        let mut world = World::with(config, CacheProtocol::Memcached, CacheLimits::DEFAULT);
        let said = String::from_utf8(world.say(&asked)).unwrap();
        let stored = said.matches("STORED\r\n").count();
        let refused = said.matches("SERVER_ERROR out of memory storing object\r\n").count();
        assert_eq!(stored + refused, 2000, "{evictor}");
        assert_eq!(refused > 0, evictor == cache::Evictor::None, "{evictor}");
        let cache = &world.server.core.shared.cache;
        let stats = cache.stats();
        assert!(stats.memory_bytes() <= 64 << 10, "{evictor}: {}", stats.memory_bytes());
        assert_eq!(stats.refused as usize, refused);
        assert_eq!(stats.evictions > 0, evictor != cache::Evictor::None);
        cache.audit();
        let mut core = Executor::new(Arc::clone(&world.server.core.shared));
        let mut connection = Connection::default();
        connection.state.protocol = ProtocolState::new(CacheProtocol::Redis, &core.shared);
        core.take_requests(&mut connection, &[b"SET huge ".as_slice(), &[b'x'; 5000], b"\r\n"].concat());
        let full = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n".as_slice();
        let answer = if evictor == cache::Evictor::None { full } else { b"+OK\r\n" };
        assert_eq!(show(&core.out), show(answer), "{evictor}");
    }
}

#[test]
fn values_over_the_limit_are_skipped() {
    let config = cache::Config { value_bytes_max: 1000, ..config() };
    let mut world = World::with(config, CacheProtocol::Auto, CacheLimits::DEFAULT);
    let value = vec![b'x'; 300_000];
    let asked =
        [b"set a 0 0 300000\r\n", value.as_slice(), b"\r\nget a\r\nset a 0 0 1001\r\n", &value[..1001], b"\r\nmn\r\n"]
            .concat();
    let said = world.say(&asked);
    assert_eq!(
        show(&said),
        "SERVER_ERROR object too large for cache\\r\\nEND\\r\\nSERVER_ERROR object too large for cache\\r\\nMN\\r\\n"
    );
    let asked = [b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$300000\r\n", value.as_slice(), b"\r\nPING\r\n"].concat();
    assert_eq!(show(&world.say(&asked)), "-ERR an argument over the limit of 1000 bytes\\r\\n+PONG\\r\\n");
    assert!(world.largest_input < 64 << 10, "{}", world.largest_input);
}

/// memcached 1.6.18 gives the same responses. Afterwards, no client can read the old value.
#[test]
fn value_over_the_limit_drops_the_old_value() {
    let config = cache::Config { value_bytes_max: 1000, ..config() };
    let mut world = World::with(config, CacheProtocol::Auto, CacheLimits::DEFAULT);
    let long = "x".repeat(1001);
    let too_large = "SERVER_ERROR object too large for cache\\r\\n";
    for (verb, is_kept) in [
        ("set a 0 0 1001", false),
        ("set a 0 0 1001 noreply", false),
        ("add a 0 0 1001", true),
        ("replace a 0 0 1001", true),
        ("append a 0 0 1001", true),
        ("cas a 0 0 1001 1", true),
    ] {
        let said = world.say(format!("set a 0 0 1\r\n1\r\n{verb}\r\n{long}\r\nget a\r\n").as_bytes());
        let answer = if verb.ends_with("noreply") { "" } else { too_large };
        let value = if is_kept { "VALUE a 0 1\\r\\n1\\r\\n" } else { "" };
        assert_eq!(show(&said), format!("STORED\\r\\n{answer}{value}END\\r\\n"), "{verb}");
    }
    let put = format!("PUT /a/1 HTTP/1.1\r\nHost: a\r\n\r\nPUT /%61/{long} HTTP/1.1\r\nHost: a\r\n\r\n");
    let said = show(&world.say(format!("{put}GET /a HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()));
    let of = |status: &str| said.find(&format!("HTTP/1.1 {status}")).unwrap_or_else(|| panic!("no {status}: {said}"));
    assert!(of("204") < of("413") && of("413") < of("404"), "{said}");
    let set = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1001\r\n";
    let said = show(&world.say(format!("{set}{long}\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n").as_bytes()));
    assert!(said.ends_with("$1\\r\\n1\\r\\n"), "{said}");
    assert_eq!(world.server.core.shared.cache.stats().refused, 3);
}

/// A cache for values of 800 kB; four of them can be in flight.
fn world_of_large_values() -> (World, Vec<u8>) {
    let config = cache::Config { value_bytes_max: 1 << 20, ..cache::Config::new(16 << 20) };
    (World::with(config, CacheProtocol::Auto, CacheLimits::DEFAULT), vec![b'v'; 800_000])
}

#[test]
fn refuses_values_beyond_the_memory_in_flight() {
    let (mut world, value) = world_of_large_values();
    let begin = |key: usize| [format!("set k{key} 0 0 800000\r\n").as_bytes(), &value[..700_000]].concat();
    let rest = [&value[700_000..], b"\r\nmn\r\n"].concat();
    let clients = (0..40)
        .map(|key| world.client(vec![Step::Send(key as Nanos * MS, begin(key)), Step::Send(S, rest.clone())]))
        .collect::<Vec<_>>();
    world.run(S / 2);
    let shared = Arc::clone(&world.server.core.shared);
    let reserved = shared.in_flight.bytes();
    assert!((4 * 800_000..=shared.in_flight.max()).contains(&reserved), "{reserved}");
    let held: usize = world.server.connections.slots.iter().map(|connection| connection.input.capacity()).sum();
    assert!(held <= shared.in_flight.max() + 40 * INPUT_KEPT_BYTES, "{held}");
    world.run(2 * S);
    let said = clients.iter().map(|client| String::from_utf8(client.borrow().bytes.clone()).unwrap());
    let said = said.collect::<Vec<_>>();
    let stored = said.iter().filter(|said| *said == "STORED\r\nMN\r\n").count();
    let refused = said.iter().filter(|said| *said == "SERVER_ERROR out of memory storing object\r\nMN\r\n").count();
    assert_eq!((stored, refused), (5, 35), "{said:?}");
    assert_eq!(shared.in_flight.bytes(), 0, "all is complete");
    assert_eq!(world.say(b"set k9 0 0 1\r\n1\r\nget k9\r\n"), b"STORED\r\nVALUE k9 0 1\r\n1\r\nEND\r\n");
}

#[test]
fn value_refused_for_memory_drops_the_old_value_and_honors_noreply() {
    let (mut world, value) = world_of_large_values();
    for key in 0..5 {
        world.client(vec![Step::Send(0, format!("set k{key} 0 0 800000\r\nv").into_bytes())]);
    }
    world.run(MS);
    let asked = [b"set a 0 0 1\r\n1\r\nset a 0 0 800000 noreply\r\n", value.as_slice(), b"\r\nget a\r\n"].concat();
    assert_eq!(String::from_utf8(world.say(&asked)).unwrap(), "STORED\r\nEND\r\n");
    let asked = [b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$800000\r\n", value.as_slice(), b"\r\n"].concat();
    assert!(show(&world.say(&asked)).starts_with("-OOM command not allowed"));
    world.run(40 * S);
    let in_flight = world.server.core.shared.in_flight.bytes();
    assert_eq!(in_flight, 0, "requests that stopped have timed out");
}

#[test]
fn large_responses_wait_for_slow_readers() {
    let (mut world, value) = world_of_large_values();
    let set = [b"set k 0 0 800000\r\n", value.as_slice(), b"\r\nset s 0 0 1\r\n1\r\n"].concat();
    assert_eq!(world.say(&set), b"STORED\r\nSTORED\r\n");
    let stalled = (0..30)
        .map(|_| world.client(vec![Step::Stall(0, 10 * S), Step::Send(0, b"get k\r\n".to_vec())]))
        .collect::<Vec<_>>();
    let other = world.client(vec![Step::Send(S, b"get s\r\nget k\r\n".to_vec())]);
    world.run(5 * S);
    let held: usize = world.server.connections.slots.iter().map(|connection| connection.state.unsent.capacity()).sum();
    assert!(held <= world.server.core.shared.in_flight.max() + value.len() + 64, "{held}");
    assert_eq!(show(&other.borrow().bytes), "VALUE s 0 1\\r\\n1\\r\\nEND\\r\\n", "small responses are still sent");
    world.run(20 * S);
    let answer = [b"VALUE k 0 800000\r\n", value.as_slice(), b"\r\nEND\r\n"].concat();
    for client in &stalled {
        assert!(client.borrow().bytes == answer, "{} bytes", client.borrow().bytes.len());
    }
    assert!(other.borrow().bytes.ends_with(&answer));
    assert_eq!(world.server.core.shared.in_flight.bytes(), 0);
}

#[test]
fn large_values_are_stored_and_returned_whole() {
    let config = cache::Config { value_bytes_max: 1 << 20, ..config() };
    let mut world = World::with(config, CacheProtocol::Auto, CacheLimits::DEFAULT);
    let value: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    let set = [b"set a 0 0 1048576\r\n", value.as_slice(), b"\r\n"].concat();
    assert_eq!(world.say(&set), b"STORED\r\n");
    let answer = [b"VALUE a 0 1048576\r\n", value.as_slice(), b"\r\n"].concat();
    let said = world.say(b"get a a b a\r\nget b\r\n");
    assert!(said == [answer.repeat(3), b"END\r\nEND\r\n".to_vec()].concat(), "{} bytes", said.len());
    let said = world.say(b"MGET a b a\r\nPING\r\n");
    let bulk = [b"$1048576\r\n", value.as_slice(), b"\r\n"].concat();
    assert!(said == [b"*3\r\n", bulk.as_slice(), b"$-1\r\n", &bulk, b"+PONG\r\n"].concat(), "{} bytes", said.len());
    assert!(world.largest_input <= 3 << 20, "{}", world.largest_input);
    assert!(world.largest_out <= 3 << 20, "{}", world.largest_out);
}

#[test]
fn a_long_pipeline_is_answered_in_order() {
    let mut world = World::new();
    let mut asked = b"set k 0 0 1\r\n0\r\n".to_vec();
    let mut answer = b"STORED\r\n".to_vec();
    for number in 1..=20_000 {
        asked.extend_from_slice(b"incr k 1\r\n");
        answer.extend_from_slice(format!("{number}\r\n").as_bytes());
    }
    assert!(world.say(&asked) == answer);
}

#[test]
fn client_that_stops_reading_is_paused_then_cut_off() {
    let mut world = World::new();
    world.say(&[b"set k 0 0 10000\r\n", vec![b'v'; 10_000].as_slice(), b"\r\n"].concat());
    let asked = b"get k\r\n".repeat(20_000);
    let seen = world.client(vec![Step::Stall(0, 3600 * S), Step::Send(0, asked)]);
    let other = world.client(vec![Step::Send(20 * S, b"mn\r\n".to_vec())]);
    world.run(25 * S);
    assert_eq!(other.borrow().bytes, b"MN\r\n");
    assert!(seen.borrow().closed.is_none());
    assert!(world.largest_input < 128 << 10, "{}", world.largest_input);
    world.run(60 * S);
    assert_eq!(world.server.connections.open, 2, "it is cut off");
}

#[test]
fn late_reader_gets_everything() {
    let mut world = World::new();
    world.say(&[b"set k 0 0 10000\r\n", vec![b'v'; 10_000].as_slice(), b"\r\n"].concat());
    let seen = world.client(vec![Step::Stall(0, 10 * S), Step::Send(0, b"get k\r\n".repeat(500))]);
    world.run(20 * S);
    let answer = [b"VALUE k 0 10000\r\n", vec![b'v'; 10_000].as_slice(), b"\r\nEND\r\n"].concat();
    assert!(seen.borrow().bytes == answer.repeat(500), "{} bytes", seen.borrow().bytes.len());
}

#[test]
fn slow_and_idle_connections_are_closed() {
    let limits = CacheLimits { idle_ns: 5 * S, ..CacheLimits::DEFAULT };
    let mut world = World::with(config(), CacheProtocol::Auto, limits);
    let idle = world.client(vec![Step::Send(S, b"mn\r\n".to_vec())]);
    let half = world.client(vec![Step::Send(0, b"set a 0 0 5\r\nab".to_vec())]);
    world.run(40 * S);
    assert_eq!(idle.borrow().bytes, b"MN\r\n");
    let at = idle.borrow().ended.or(idle.borrow().closed.map(|(at, _)| at)).unwrap();
    assert!((6 * S..6 * S + 10 * MS).contains(&at), "{at}");
    assert_eq!(half.borrow().bytes, b"SERVER_ERROR the rest of the request did not come\r\n");
    assert_eq!(world.server.connections.open, 0);
}

#[test]
fn connection_over_the_limit_gets_an_error() {
    let mut world = World::new();
    world.connections = 1;
    let first = world.client(vec![Step::Send(MS, b"mn\r\n".to_vec())]);
    let second = world.client(vec![Step::Send(2 * MS, b"mn\r\n".to_vec())]);
    world.run(5 * S);
    assert_eq!(first.borrow().bytes, b"MN\r\n");
    assert_eq!(second.borrow().bytes, b"ERROR Too many open connections\r\n");
    assert_eq!(world.server.connections.open, 1);
}

#[test]
fn shutdown_waits_for_started_requests() {
    let mut world = World::new();
    let idle = world.client(vec![Step::Send(0, b"mn\r\n".to_vec())]);
    let half = world.client(vec![Step::Send(0, b"set a 0 0 5\r\nab".to_vec()), Step::Send(2 * S, b"cde\r\n".to_vec())]);
    world.run(S);
    world.driver.stop_listening(world.listener);
    world.server.end(&mut world.driver);
    world.wake = Some(0);
    world.run(S + 500 * MS);
    assert_eq!((idle.borrow().bytes.as_slice(), world.server.connections.open), (b"MN\r\n".as_slice(), 1));
    world.run(3 * S);
    assert_eq!(half.borrow().bytes, b"STORED\r\n");
    assert!(world.server.is_done());
}

#[test]
fn fixed_protocol_skips_detection() {
    let only = |protocol| World::with(config(), protocol, CacheLimits::DEFAULT);
    assert_eq!(only(CacheProtocol::Redis).say(b"get k\r\n"), b"$-1\r\n");
    assert_eq!(only(CacheProtocol::Memcached).say(b"\r\nmn\r\n"), b"ERROR\r\nMN\r\n");
    assert!(only(CacheProtocol::Http).say(b"get k\r\n\r\n").starts_with(b"HTTP/1.1 400 "));
}
