//! RESP2 and RESP3 commands of cache clients and benchmarks. Replies follow Redis 7.0.15.

use std::sync::atomic::Ordering;

use cache::{Meta, Mode, Refusal};
use wire::decimal;
use wire::resp::{
    Name, Read, Request, Version, When, compose_array, compose_bulk, compose_error, compose_integer, compose_map,
    compose_null, parse_set,
};

use super::connection_state::{CloseState, Connection, MultiGetKind, ProtocolState, Redis, Rest};
use super::executor::{Executor, REDIS_OUT_OF_MEMORY};

/// The emulated version of Redis.
const REDIS_VERSION: &str = "7.0.15";
const SYNTAX: &[u8] = b"-ERR syntax error\r\n";
const NOT_AN_INTEGER: &[u8] = b"-ERR value is not an integer or out of range\r\n";
const OVERFLOW: &[u8] = b"-ERR increment or decrement would overflow\r\n";
const OK: &[u8] = b"+OK\r\n";

impl Executor {
    /// Executes a request. Returns the number of bytes used.
    #[inline]
    pub(super) fn take_redis(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let ProtocolState::Redis(redis) = &mut connection.state.protocol else { return 0 };
        let Redis { reader, version } = &mut **redis;
        match reader.read(bytes) {
            Read::Request { used, request } => {
                let mut rest = None;
                match request.command() {
                    Ok(Name::Get) => rest = self.redis_values(*version, std::iter::once(request.argument(1))),
                    Ok(Name::Mget) => {
                        compose_array(&mut self.out, request.count() - 1);
                        rest = self.redis_values(*version, request.arguments().skip(1));
                    }
                    Ok(Name::Quit) => {
                        self.out.extend_from_slice(OK);
                        connection.state.over = CloseState::Answered { linger: false };
                    }
                    Ok(command) => {
                        let id = connection.conn.map_or(0, |conn| conn.index() as i64 + 1);
                        self.redis_command(command, &request, version, id);
                    }
                    Err(wire::resp::Refusal::UnknownCommand) => unknown_command(&mut self.out, &request),
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
                    connection.state.over = CloseState::Answered { linger: true };
                }
                used
            }
        }
    }

    #[inline]
    pub(super) fn redis_value(&mut self, key: &[u8], version: Version) {
        let Self { shared, out, now_ms, .. } = self;
        let found = shared.cache.hold(key).get(*now_ms, |item| {
            out.reserve(item.value.len() + 32);
            compose_bulk(out, item.value);
        });
        if found.is_none() {
            compose_null(out, version);
        }
    }

    #[inline]
    fn redis_values<'k>(&mut self, version: Version, keys: impl Iterator<Item = &'k [u8]>) -> Rest {
        self.push_values(MultiGetKind::Redis(version), keys, |core, key| core.redis_value(key, version))
    }

    fn redis_command(&mut self, name: Name, request: &Request<'_, '_>, version: &mut Version, id: i64) {
        let key = request.argument(1);
        match name {
            Name::Get | Name::Mget | Name::Quit => {} // Handled in `take_redis`.
            Name::Set => self.redis_set(request, *version),
            Name::Setex => self.redis_setex(request, 1000),
            Name::Psetex => self.redis_setex(request, 1),
            Name::Setnx => match self.redis_store(Mode::Add, key, request.argument(2), Meta::default()) {
                Err(Refusal::NotStored) => self.redis_done(&Ok(false)),
                stored => self.redis_done(&stored.map(|_| true)),
            },
            Name::Incr => self.redis_increment(key, 1),
            Name::Decr => self.redis_increment(key, -1),
            Name::Incrby | Name::Decrby => match (name, decimal::canonical(request.argument(2))) {
                (_, None) => self.out.extend_from_slice(NOT_AN_INTEGER),
                (Name::Incrby, Some(delta)) => self.redis_increment(key, delta),
                (_, Some(i64::MIN)) => self.out.extend_from_slice(b"-ERR decrement would overflow\r\n"),
                (_, Some(delta)) => self.redis_increment(key, -delta),
            },
            Name::Del | Name::Unlink => {
                let cache = &self.shared.cache;
                let keys = request.arguments().skip(1);
                let count = keys.filter(|key| cache.hold(key).delete(self.now_ms)).count();
                compose_integer(&mut self.out, count as i64);
            }
            Name::Mset => self.redis_mset(request),
            Name::Exists => {
                let cache = &self.shared.cache;
                let keys = request.arguments().skip(1);
                let count = keys.filter(|key| cache.hold(key).peek(self.now_ms, |_| ()).is_some()).count();
                compose_integer(&mut self.out, count as i64);
            }
            Name::Expire => self.redis_expire(request, 1000),
            Name::Pexpire => self.redis_expire(request, 1),
            Name::Ttl | Name::Pttl => {
                let expires_ms = self.shared.cache.hold(key).peek(self.now_ms, |item| item.expires_ms);
                let left = match expires_ms {
                    None => -2,
                    Some(0) => -1,
                    Some(expires_ms) => {
                        let ms = expires_ms.saturating_sub(self.now_ms);
                        // Redis rounds to the nearest second.
                        (if name == Name::Pttl { ms } else { (ms + 500) / 1000 }) as i64
                    }
                };
                compose_integer(&mut self.out, left);
            }
            Name::Persist => {
                let mut held = self.shared.cache.hold(key);
                let has_expiry = held.peek(self.now_ms, |item| item.expires_ms != 0) == Some(true);
                let done = if has_expiry { held.touch(0, self.now_ms) } else { Ok(false) };
                drop(held);
                self.redis_done(&done);
            }
            Name::Ping if request.count() == 1 => self.out.extend_from_slice(b"+PONG\r\n"),
            Name::Ping | Name::Echo => compose_bulk(&mut self.out, key),
            Name::Flushall | Name::Flushdb => {
                let is_known = ["", "async", "sync"].iter().any(|word| key.eq_ignore_ascii_case(word.as_bytes()));
                if is_known {
                    self.flush(0);
                }
                self.out.extend_from_slice(if is_known { OK } else { SYNTAX });
            }
            Name::Info => {
                let text = self.redis_info();
                compose_bulk(&mut self.out, text.as_bytes());
            }
            Name::Dbsize => {
                let items = self.shared.cache.stats().items;
                compose_integer(&mut self.out, items as i64);
            }
            Name::Config => self.redis_config(request, *version),
            // Clients take an empty reply to mean that no documentation is available.
            Name::Command => compose_array(&mut self.out, 0),
            Name::Hello => self.redis_hello(request, version, id),
            // Clients send their name and library on connecting. Both are ignored.
            Name::Client if [&b"setname"[..], b"setinfo"].iter().any(|word| key.eq_ignore_ascii_case(word)) => {
                self.out.extend_from_slice(OK);
            }
            Name::Client => self.unknown_subcommand(name, key),
            Name::Select if key == b"0" => self.out.extend_from_slice(OK),
            Name::Select => self.out.extend_from_slice(b"-ERR DB index is out of range\r\n"),
        }
    }

    fn redis_store(&self, mode: Mode, key: &[u8], value: &[u8], meta: Meta) -> Result<u64, Refusal> {
        self.shared.cache.hold(key).store(mode, value, meta, self.now_ms)
    }

    #[inline]
    fn redis_stored(&mut self, stored: &Result<u64, Refusal>) {
        match stored {
            Ok(_) => self.out.extend_from_slice(OK),
            Err(refusal) => self.redis_refuse(refusal),
        }
    }

    #[inline]
    fn redis_set(&mut self, request: &Request<'_, '_>, version: Version) {
        let (key, value) = (request.argument(1), request.argument(2));
        if request.count() == 3 {
            let stored = self.redis_store(Mode::Set, key, value, Meta::default());
            return self.redis_stored(&stored);
        }
        let options = match parse_set(request) {
            Ok(options) => options,
            Err(error) => return compose_error(&mut self.out, &format!("ERR {error}")),
        };
        let expires_ms = match options.when.map(|when| when.ends_unix_ms(self.now_ms)) {
            None => 0,
            Some(Some(ends)) => ends,
            Some(None) => return self.invalid_expire(Name::Set),
        };
        let mode = match (options.if_absent, options.if_present) {
            (true, _) => Mode::Add,
            (_, true) => Mode::Replace,
            _ => Mode::Set,
        };
        let Self { shared, out, now_ms, .. } = self;
        let mut held = shared.cache.hold(key);
        let start = out.len();
        let mut meta = Meta { flags: 0, expires_ms };
        let before = held.peek(*now_ms, |item| {
            if options.keep_ttl {
                meta.expires_ms = item.expires_ms;
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
            Ok(_) | Err(Refusal::NotStored) if options.get => {}
            Ok(_) => out.extend_from_slice(OK),
            Err(Refusal::NotStored) => compose_null(out, version),
            Err(refusal) => {
                out.truncate(start);
                self.redis_refuse(&refusal);
            }
        }
    }

    /// Handles `INCR` and its variants. A missing key counts as 0.
    fn redis_increment(&mut self, key: &[u8], delta: i64) {
        let mut held = self.shared.cache.hold(key);
        let counted = held.update(self.now_ms, |item| {
            match decimal::canonical(item.value)
                .ok_or(NOT_AN_INTEGER)
                .and_then(|is| is.checked_add(delta).ok_or(OVERFLOW))
            {
                Ok(value) => (Some(value.to_string().into_bytes()), Ok(value)),
                Err(line) => (None, Err(line)),
            }
        });
        let counted = match counted {
            Ok(Some(counted)) => Ok(counted),
            Ok(None) => {
                let text = delta.to_string();
                held.store(Mode::Set, text.as_bytes(), Meta::default(), self.now_ms).map(|_| Ok(delta))
            }
            Err(refusal) => Err(refusal),
        };
        drop(held);
        match counted {
            Ok(Ok(value)) => compose_integer(&mut self.out, value),
            Ok(Err(line)) => self.out.extend_from_slice(line),
            Err(refusal) => self.redis_refuse(&refusal),
        }
    }

    fn invalid_expire(&mut self, name: Name) {
        compose_error(&mut self.out, &format!("ERR invalid expire time in '{}' command", name.text()));
    }

    fn redis_done(&mut self, done: &Result<bool, Refusal>) {
        match done {
            Ok(done) => compose_integer(&mut self.out, i64::from(*done)),
            Err(refusal) => self.redis_refuse(refusal),
        }
    }

    /// Handles `SETEX` and `PSETEX`, whose time is in units of `unit_ms` milliseconds.
    fn redis_setex(&mut self, request: &Request<'_, '_>, unit_ms: u64) {
        let Some(time) = decimal::canonical(request.argument(2)) else {
            return self.out.extend_from_slice(NOT_AN_INTEGER);
        };
        let ms = u64::try_from(time).ok().filter(|time| *time > 0).and_then(|time| time.checked_mul(unit_ms));
        let Some(expires_ms) = ms.and_then(|ms| When::AfterMs(ms).ends_unix_ms(self.now_ms)) else {
            return self.invalid_expire(if unit_ms == 1 { Name::Psetex } else { Name::Setex });
        };
        let meta = Meta { flags: 0, expires_ms };
        let stored = self.redis_store(Mode::Set, request.argument(1), request.argument(3), meta);
        self.redis_stored(&stored);
    }

    fn redis_mset(&mut self, request: &Request<'_, '_>) {
        if request.count().is_multiple_of(2) {
            return self.out.extend_from_slice(b"-ERR wrong number of arguments for 'mset' command\r\n");
        }
        for pair in 0..request.count() / 2 {
            let (key, value) = (request.argument(2 * pair + 1), request.argument(2 * pair + 2));
            if let Err(refusal) = self.redis_store(Mode::Set, key, value, Meta::default()) {
                return self.redis_refuse(&refusal);
            }
        }
        self.out.extend_from_slice(OK);
    }

    /// Handles `EXPIRE` and `PEXPIRE`, whose time is in units of `unit_ms` milliseconds.
    fn redis_expire(&mut self, request: &Request<'_, '_>, unit_ms: i64) {
        let key = request.argument(1);
        let Some(time) = decimal::canonical(request.argument(2)) else {
            return self.out.extend_from_slice(NOT_AN_INTEGER);
        };
        let Some(ends) = time.checked_mul(unit_ms).and_then(|ms| ms.checked_add(self.now_ms as i64)) else {
            return self.invalid_expire(if unit_ms == 1 { Name::Pexpire } else { Name::Expire });
        };
        // An item whose expiry has already passed is deleted, so expiry times of 0 or less need no representation.
        let expires_ms = u64::try_from(ends).unwrap_or(0);
        let mut held = self.shared.cache.hold(key);
        let done = match expires_ms <= self.now_ms {
            true => Ok(held.delete(self.now_ms)),
            false => held.touch(expires_ms, self.now_ms),
        };
        drop(held);
        self.redis_done(&done);
    }

    /// Handles `CONFIG GET name...` for the names that redis-benchmark and quintain request.
    fn redis_config(&mut self, request: &Request<'_, '_>, version: Version) {
        if !request.argument(1).eq_ignore_ascii_case(b"get") {
            return self.unknown_subcommand(Name::Config, request.argument(1));
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
    fn redis_hello(&mut self, request: &Request<'_, '_>, version: &mut Version, id: i64) {
        let wanted = match request.argument(1) {
            b"" => *version,
            b"2" => Version::Two,
            b"3" => Version::Three,
            _ => return self.out.extend_from_slice(b"-NOPROTO unsupported protocol version\r\n"),
        };
        if request.count() > 2 && !(request.count() == 4 && request.argument(2).eq_ignore_ascii_case(b"setname")) {
            let shown = String::from_utf8_lossy(request.argument(2));
            return compose_error(&mut self.out, &format!("ERR Syntax error in HELLO option '{shown}'"));
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
    }

    #[cold]
    fn unknown_subcommand(&mut self, name: Name, subcommand: &[u8]) {
        let shown = String::from_utf8_lossy(&subcommand[..subcommand.len().min(128)]);
        let text = format!("ERR unknown subcommand '{shown}'. Try {} HELP.", name.text().to_uppercase());
        compose_error(&mut self.out, &text);
    }

    #[cold]
    fn redis_refuse(&mut self, refusal: &Refusal) {
        match refusal {
            Refusal::Full { .. } => self.out.extend_from_slice(REDIS_OUT_OF_MEMORY),
            other => compose_error(&mut self.out, &format!("ERR {other}")),
        }
    }
}

/// Appends Redis' error for an unknown command: the command, and the arguments that fit into 128 bytes.
#[cold]
fn unknown_command(out: &mut Vec<u8>, request: &Request<'_, '_>) {
    let shown = |bytes: &[u8], most: usize| String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
    let mut arguments = String::new();
    for argument in request.arguments().skip(1) {
        if arguments.len() >= 128 {
            break;
        }
        arguments += &format!("'{}' ", shown(argument, 128 - arguments.len()));
    }
    let name = shown(request.argument(0), 128);
    compose_error(out, &format!("ERR unknown command '{name}', with args beginning with: {arguments}"));
}

fn redis_policy(evictor: cache::Evictor) -> &'static str {
    match evictor {
        cache::Evictor::None => "noeviction",
        cache::Evictor::Lru => "allkeys-lru",
        other => other.name(),
    }
}
