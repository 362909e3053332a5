//! RESP2 and RESP3 commands of cache clients and benchmarks. Replies follow Redis 7.0.15.

use std::sync::atomic::Ordering;

use cache::{Meta, Mode, Refusal};
use wire::decimal;
use wire::resp::{
    Name, Read, Request, Version, compose_array, compose_bulk, compose_error, compose_integer, compose_map,
    compose_null, expires_ms, parse_set,
};

use super::connection_state::{CloseState, Connection, MultiGetKind, ProtocolState};
use super::executor::{Executor, REDIS_OUT_OF_MEMORY};

/// The emulated version of Redis.
const REDIS_VERSION: &str = "7.0.15";
const SYNTAX: Reply = Reply::Line(b"-ERR syntax error\r\n");
const NOT_AN_INTEGER: Reply = Reply::Line(b"-ERR value is not an integer or out of range\r\n");
const OVERFLOW: Reply = Reply::Line(b"-ERR increment or decrement would overflow\r\n");
const OK: Reply = Reply::Line(b"+OK\r\n");

enum Reply {
    /// The reply is already in the output.
    Written,
    Line(&'static [u8]),
    Integer(i64),
    /// The text of an error, without its mark.
    Error(String),
}

/// The reply of a command that succeeds or fails.
type Replied = Result<Reply, Reply>;

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Reply {
        match refusal {
            Refusal::Full { .. } => Reply::Line(REDIS_OUT_OF_MEMORY),
            other => Reply::Error(format!("ERR {other}")),
        }
    }
}

impl Executor {
    /// Executes a request. Returns the number of bytes used.
    pub(super) fn take_redis(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let ProtocolState::Redis(redis) = &mut connection.state.protocol else { return 0 };
        let (reader, version) = &mut **redis;
        match reader.read(bytes) {
            Read::Request { used, request } => {
                let (mut rest, kind) = (None, MultiGetKind::Redis(*version));
                match request.command() {
                    Ok(Name::Get) => rest = self.push_values(kind, std::iter::once(request.argument(1))),
                    Ok(Name::Mget) => {
                        compose_array(&mut self.out, request.count() - 1);
                        rest = self.push_values(kind, request.arguments().skip(1));
                    }
                    Ok(Name::Quit) => {
                        self.push_reply(OK);
                        connection.over = CloseState::Answered { linger: false };
                    }
                    Ok(command) => {
                        let id = connection.conn.map_or(0, |conn| conn.index() as i64 + 1);
                        let replied = self.redis_command(command, &request, version, id);
                        self.push_reply(replied.unwrap_or_else(|failure| failure));
                    }
                    Err(wire::resp::Refusal::UnknownCommand) => self.push_reply(unknown_command(&request)),
                    Err(refusal) => refusal.compose(&mut self.out),
                }
                (connection.blocked, connection.state.rest) = (rest.is_some(), rest);
                used
            }
            Read::Need { used, more } => {
                connection.state.lacks = more;
                if !self.reserve(connection, bytes.len() - used + more) {
                    self.out_of_memory(connection);
                }
                used
            }
            Read::Refused { used, refusal } => {
                refusal.compose(&mut self.out);
                if refusal.closes() {
                    connection.over = CloseState::Answered { linger: true };
                }
                used
            }
        }
    }

    pub(super) fn redis_value(&mut self, key: &[u8], version: Version) {
        let Self { shared, out, now_ms, .. } = self;
        let found = shared.cache.hold(key).get(*now_ms).map(|item| {
            out.reserve(item.value.len() + 32);
            compose_bulk(out, item.value);
        });
        if found.is_none() {
            compose_null(out, version);
        }
    }

    fn push_reply(&mut self, reply: Reply) {
        match reply {
            Reply::Written => {}
            Reply::Line(line) => self.out.extend_from_slice(line),
            Reply::Integer(value) => compose_integer(&mut self.out, value),
            Reply::Error(text) => compose_error(&mut self.out, &text),
        }
    }

    fn redis_command(&mut self, name: Name, request: &Request<'_, '_>, version: &mut Version, id: i64) -> Replied {
        let (cache, now_ms) = (&self.shared.cache, self.now_ms);
        let key = request.argument(1);
        match name {
            Name::Get | Name::Mget | Name::Quit => Ok(Reply::Written), // Handled in `take_redis`.
            Name::Set => self.redis_set(request, *version),
            Name::Setex | Name::Psetex => self.redis_setex(name, request),
            Name::Setnx => match self.redis_store(Mode::Add, key, request.argument(2), Meta::default()) {
                Err(Refusal::NotStored) => Ok(Reply::Integer(0)),
                stored => Ok(stored.map(|_| Reply::Integer(1))?),
            },
            Name::Incr => self.redis_increment(key, 1),
            Name::Decr => self.redis_increment(key, -1),
            Name::Incrby => self.redis_increment(key, integer(request)?),
            Name::Decrby => {
                let delta = integer(request)?.checked_neg();
                self.redis_increment(key, delta.ok_or(Reply::Line(b"-ERR decrement would overflow\r\n"))?)
            }
            Name::Del | Name::Unlink => {
                let keys = request.arguments().skip(1);
                Ok(Reply::Integer(keys.filter(|key| cache.hold(key).delete(now_ms)).count() as i64))
            }
            Name::Mset => self.redis_mset(request),
            Name::Exists => {
                let keys = request.arguments().skip(1);
                let count = keys.filter(|key| cache.hold(key).peek(now_ms).is_some()).count();
                Ok(Reply::Integer(count as i64))
            }
            Name::Expire | Name::Pexpire => self.redis_expire(name, request),
            Name::Ttl | Name::Pttl => {
                Ok(Reply::Integer(match cache.hold(key).peek(now_ms).map(|item| item.meta.expires_ms) {
                    None => -2,
                    Some(0) => -1,
                    Some(expires_ms) if name == Name::Pttl => expires_ms.saturating_sub(now_ms) as i64,
                    // Redis rounds to the nearest second.
                    Some(expires_ms) => ((expires_ms.saturating_sub(now_ms) + 500) / 1000) as i64,
                }))
            }
            Name::Persist => {
                let mut held = cache.hold(key);
                let has_expiry = held.peek(now_ms).is_some_and(|item| item.meta.expires_ms != 0);
                Ok(Reply::Integer((has_expiry && held.touch(0, now_ms)?).into()))
            }
            Name::Ping if request.count() == 1 => Ok(Reply::Line(b"+PONG\r\n")),
            Name::Ping | Name::Echo => self.redis_bulk(key),
            Name::Flushall | Name::Flushdb => {
                if !["", "async", "sync"].iter().any(|word| key.eq_ignore_ascii_case(word.as_bytes())) {
                    return Err(SYNTAX);
                }
                self.flush(0);
                Ok(OK)
            }
            Name::Info => {
                let text = self.redis_info();
                self.redis_bulk(text.as_bytes())
            }
            Name::Dbsize => Ok(Reply::Integer(cache.stats().items as i64)),
            Name::Config => self.redis_config(request, *version),
            // Clients take an empty reply to mean that no documentation is available.
            Name::Command => Ok(Reply::Line(b"*0\r\n")),
            Name::Hello => self.redis_hello(request, version, id),
            // Clients send their name and library on connecting. Both are ignored.
            Name::Client if [&b"setname"[..], b"setinfo"].iter().any(|word| key.eq_ignore_ascii_case(word)) => Ok(OK),
            Name::Client => Err(unknown_subcommand(name, key)),
            Name::Select if key == b"0" => Ok(OK),
            Name::Select => Err(Reply::Line(b"-ERR DB index is out of range\r\n")),
        }
    }

    fn redis_bulk(&mut self, data: &[u8]) -> Replied {
        compose_bulk(&mut self.out, data);
        Ok(Reply::Written)
    }

    fn redis_store(&self, mode: Mode, key: &[u8], value: &[u8], meta: Meta) -> Result<u64, Refusal> {
        self.shared.cache.hold(key).store(mode, value, meta, self.now_ms)
    }

    fn redis_set(&mut self, request: &Request<'_, '_>, version: Version) -> Replied {
        let (key, value) = (request.argument(1), request.argument(2));
        if request.count() == 3 {
            self.redis_store(Mode::Set, key, value, Meta::default())?;
            self.out.extend_from_slice(b"+OK\r\n");
            return Ok(Reply::Written);
        }
        let options = parse_set(request, self.now_ms).map_err(|error| Reply::Error(format!("ERR {error}")))?;
        let mode = match (options.if_absent, options.if_present) {
            (true, _) => Mode::Add,
            (_, true) => Mode::Replace,
            _ => Mode::Set,
        };
        let Self { shared, out, now_ms, .. } = self;
        let mut held = shared.cache.hold(key);
        let start = out.len();
        let mut meta = Meta { flags: 0, expires_ms: options.expires_ms };
        let before = held.peek(*now_ms).map(|item| {
            if options.keep_ttl {
                meta.expires_ms = item.meta.expires_ms;
            }
            if options.get {
                compose_bulk(out, item.value);
            }
        });
        if options.get && before.is_none() {
            compose_null(out, version);
        }
        let stored = held.store(mode, value, meta, *now_ms);
        drop(held);
        match stored {
            // With `GET`, the reply is the old value, whether the new one is stored or not.
            Ok(_) | Err(Refusal::NotStored) if options.get => Ok(Reply::Written),
            Ok(_) => Ok(OK),
            Err(Refusal::NotStored) => {
                compose_null(out, version);
                Ok(Reply::Written)
            }
            Err(refusal) => {
                out.truncate(start);
                Err(refusal.into())
            }
        }
    }

    /// Handles `INCR` and its variants. A missing key counts as 0.
    fn redis_increment(&mut self, key: &[u8], delta: i64) -> Replied {
        let mut held = self.shared.cache.hold(key);
        let counted = held.update(self.now_ms, |item| {
            let before = decimal::canonical(item.value).ok_or(NOT_AN_INTEGER);
            match before.and_then(|before| before.checked_add(delta).ok_or(OVERFLOW)) {
                Ok(value) => (Some(value.to_string().into_bytes()), Ok(value)),
                Err(failure) => (None, Err(failure)),
            }
        })?;
        if counted.is_none() {
            held.store(Mode::Set, delta.to_string().as_bytes(), Meta::default(), self.now_ms)?;
        }
        Ok(Reply::Integer(counted.unwrap_or(Ok(delta))?))
    }

    /// Handles `SETEX` and `PSETEX`.
    fn redis_setex(&mut self, name: Name, request: &Request<'_, '_>) -> Replied {
        let unit_ms = if name == Name::Psetex { 1 } else { 1000 };
        let expires_ms = expires_ms(self.now_ms, integer(request)?, unit_ms);
        let meta = Meta { flags: 0, expires_ms: expires_ms.ok_or_else(|| invalid_expire(name))? };
        self.redis_store(Mode::Set, request.argument(1), request.argument(3), meta)?;
        Ok(OK)
    }

    fn redis_mset(&mut self, request: &Request<'_, '_>) -> Replied {
        if request.count().is_multiple_of(2) {
            return Err(Reply::Line(b"-ERR wrong number of arguments for 'mset' command\r\n"));
        }
        for pair in 0..request.count() / 2 {
            let (key, value) = (request.argument(2 * pair + 1), request.argument(2 * pair + 2));
            self.redis_store(Mode::Set, key, value, Meta::default())?;
        }
        Ok(OK)
    }

    /// Handles `EXPIRE` and `PEXPIRE`.
    fn redis_expire(&mut self, name: Name, request: &Request<'_, '_>) -> Replied {
        let unit_ms = if name == Name::Pexpire { 1 } else { 1000 };
        let ends = integer(request)?.checked_mul(unit_ms).and_then(|ms| ms.checked_add(self.now_ms as i64));
        // An item whose expiry has already passed is deleted, so expiry times of 0 or less need no representation.
        let expires_ms = u64::try_from(ends.ok_or_else(|| invalid_expire(name))?).unwrap_or(0);
        let mut held = self.shared.cache.hold(request.argument(1));
        let is_done = match expires_ms <= self.now_ms {
            true => held.delete(self.now_ms),
            false => held.touch(expires_ms, self.now_ms)?,
        };
        Ok(Reply::Integer(is_done.into()))
    }

    /// Handles `CONFIG GET name...` for the names that redis-benchmark and quintain request.
    fn redis_config(&mut self, request: &Request<'_, '_>, version: Version) -> Replied {
        if !request.argument(1).eq_ignore_ascii_case(b"get") {
            return Err(unknown_subcommand(Name::Config, request.argument(1)));
        }
        let config = &self.shared.config;
        let settings = [
            ("maxmemory", config.capacity_bytes.to_string()),
            ("maxmemory-policy", redis_policy(config.evictor).to_owned()),
            ("save", String::new()),
            ("appendonly", "no".to_owned()),
        ];
        let is_asked = |name: &str| request.arguments().skip(2).any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
        let asked: Vec<_> = settings.iter().filter(|(name, _)| is_asked(name)).collect();
        compose_map(&mut self.out, version, asked.len());
        for (name, value) in asked {
            compose_bulk(&mut self.out, name.as_bytes());
            compose_bulk(&mut self.out, value.as_bytes());
        }
        Ok(Reply::Written)
    }

    /// The text of `INFO`, returned in full whichever section is requested.
    fn redis_info(&self) -> String {
        let shared = &self.shared;
        let stats = shared.cache.stats();
        format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nquintain_version:{}\r\nredis_mode:standalone\r\n\r\n\
             # Clients\r\nconnected_clients:{}\r\n\r\n\
             # Memory\r\nused_memory:{}\r\nallocated_memory:{}\r\nmaxmemory:{}\r\nmaxmemory_policy:{}\r\n\r\n\
             # Stats\r\nkeyspace_hits:{}\r\nkeyspace_misses:{}\r\nexpired_keys:{}\r\nevicted_keys:{}\r\n",
            env!("CARGO_PKG_VERSION"),
            shared.open.load(Ordering::Relaxed),
            stats.item_bytes(),
            stats.memory_bytes(),
            shared.config.capacity_bytes,
            redis_policy(shared.config.evictor),
            stats.hits,
            stats.misses,
            stats.expired,
            stats.evictions,
        )
    }

    /// Handles `HELLO [version [SETNAME name]]`. There are no users or passwords.
    fn redis_hello(&mut self, request: &Request<'_, '_>, version: &mut Version, id: i64) -> Replied {
        let wanted = match request.argument(1) {
            b"" => *version,
            b"2" => Version::Two,
            b"3" => Version::Three,
            _ => return Err(Reply::Line(b"-NOPROTO unsupported protocol version\r\n")),
        };
        if request.count() > 2 && !(request.count() == 4 && request.argument(2).eq_ignore_ascii_case(b"setname")) {
            let shown = String::from_utf8_lossy(request.argument(2));
            return Err(Reply::Error(format!("ERR Syntax error in HELLO option '{shown}'")));
        }
        *version = wanted;
        let out = &mut self.out;
        compose_map(out, wanted, 7);
        // Clients use the first two fields to decide what to send.
        let texts = [("server", "redis"), ("version", REDIS_VERSION), ("mode", "standalone"), ("role", "master")];
        for text in texts.into_iter().flat_map(|(name, value)| [name, value]) {
            compose_bulk(out, text.as_bytes());
        }
        compose_bulk(out, b"proto");
        compose_integer(out, if wanted == Version::Three { 3 } else { 2 });
        compose_bulk(out, b"id");
        compose_integer(out, id);
        compose_bulk(out, b"modules");
        compose_array(out, 0);
        Ok(Reply::Written)
    }
}

/// Parses the second argument of a command.
fn integer(request: &Request<'_, '_>) -> Result<i64, Reply> {
    decimal::canonical(request.argument(2)).ok_or(NOT_AN_INTEGER)
}

fn invalid_expire(name: Name) -> Reply {
    Reply::Error(format!("ERR invalid expire time in '{}' command", name.text()))
}

fn unknown_subcommand(name: Name, subcommand: &[u8]) -> Reply {
    let shown = String::from_utf8_lossy(&subcommand[..subcommand.len().min(128)]);
    Reply::Error(format!("ERR unknown subcommand '{shown}'. Try {} HELP.", name.text().to_uppercase()))
}

/// Redis' error for an unknown command: the command, and the arguments that fit into 128 bytes.
fn unknown_command(request: &Request<'_, '_>) -> Reply {
    let shown = |bytes: &[u8], most: usize| String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
    let mut arguments = String::new();
    for argument in request.arguments().skip(1) {
        if arguments.len() >= 128 {
            break;
        }
        arguments += &format!("'{}' ", shown(argument, 128 - arguments.len()));
    }
    let name = shown(request.argument(0), 128);
    Reply::Error(format!("ERR unknown command '{name}', with args beginning with: {arguments}"))
}

fn redis_policy(evictor: cache::Evictor) -> &'static str {
    match evictor {
        cache::Evictor::None => "noeviction",
        cache::Evictor::Lru => "allkeys-lru",
        other => other.name(),
    }
}
