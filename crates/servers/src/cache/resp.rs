//! RESP2 and RESP3. Source: the commands of Redis 7.0.15.

use cache::{Meta, Mode, Refusal};
use wire::number;
use wire::resp::{
    Name, Read, Request, Version, compose_array, compose_bulk, compose_error, compose_integer, compose_map,
    compose_null, parse_set,
};

use super::connection::{Connection, Over, Rest, RestKind, Speech};
use super::executor::Executor;
use super::facts::policy;

const SYNTAX: &[u8] = b"-ERR syntax error\r\n";
const NOT_AN_INTEGER: &[u8] = b"-ERR value is not an integer or out of range\r\n";
const OK: &[u8] = b"+OK\r\n";

/// What becomes of the connection after a command.
enum After {
    Next,
    Close,
    Rest(Box<Rest>),
}

/// What a connection keeps between commands.
struct State<'a> {
    version: &'a mut Version,
    name: &'a mut Vec<u8>,
    id: u64,
}

impl Executor {
    /// Takes commands from `bytes`; how many of them were used.
    #[inline]
    pub(super) fn take_redis(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let Speech::Redis(redis) = &mut connection.speech else { return 0 };
        let mut at = 0;
        while at < bytes.len() {
            if self.is_full() {
                connection.blocked = true;
                break;
            }
            match redis.reader.read(&bytes[at..]) {
                Read::Request { used, request } => {
                    at += used;
                    let id = connection.conn.map_or(0, |conn| conn.index() as u64 + 1);
                    let state = State { version: &mut redis.version, name: &mut redis.name, id };
                    match request.command() {
                        Ok(Name::Get) => {
                            let version = *state.version;
                            self.redis_value(request.argument(1), version);
                        }
                        Ok(name) => match self.redis_command(name, &request, state) {
                            After::Next => {}
                            After::Close => {
                                connection.over = Over::Answered { linger: false };
                                break;
                            }
                            After::Rest(rest) => {
                                connection.rest = Some(rest);
                                connection.blocked = true;
                                break;
                            }
                        },
                        Err(wire::resp::Refusal::UnknownCommand) => {
                            let name = request.argument(0);
                            let shown = String::from_utf8_lossy(&name[..name.len().min(128)]).into_owned();
                            compose_error(&mut self.out, &format!("ERR unknown command '{shown}'"));
                        }
                        Err(refusal) => refusal.compose(&mut self.out),
                    }
                }
                Read::Need { used, more } => {
                    at += used;
                    connection.lacks = more;
                    break;
                }
                Read::Refused { used, refusal } => {
                    at += used;
                    refusal.compose(&mut self.out);
                    if refusal.closes() {
                        connection.over = Over::Answered { linger: true };
                        break;
                    }
                }
            }
        }
        at
    }

    /// The value of a key, or that there is none.
    #[inline]
    pub(super) fn redis_value(&mut self, key: &[u8], version: Version) {
        let Self { shared, out, now_s, .. } = self;
        let found = shared.cache.get(key, shared.cache.hash(key), *now_s, |item| {
            out.reserve(item.value.len() + 32);
            compose_bulk(out, item.value);
        });
        if found.is_none() {
            compose_null(out, version);
        }
    }

    fn redis_command(&mut self, name: Name, request: &Request<'_, '_>, state: State<'_>) -> After {
        let key = request.argument(1);
        match name {
            Name::Get => self.redis_value(key, *state.version),
            Name::Set => self.redis_set(request, *state.version),
            Name::Setex => self.redis_setex(request, 1000),
            Name::Psetex => self.redis_setex(request, 1),
            Name::Setnx => match self.redis_store(Mode::Add, key, request.argument(2), Meta::default()) {
                Ok(_) => compose_integer(&mut self.out, 1),
                Err(Refusal::NotStored) => compose_integer(&mut self.out, 0),
                Err(refusal) => self.redis_refuse(&refusal),
            },
            Name::Del | Name::Unlink => {
                let cache = &self.shared.cache;
                let keys = request.arguments().skip(1);
                let count = keys.filter(|key| cache.delete(key, cache.hash(key), self.now_s)).count();
                compose_integer(&mut self.out, count as i64);
            }
            Name::Mget => {
                compose_array(&mut self.out, request.count() - 1);
                let mut keys = request.arguments().skip(1);
                while let Some(key) = keys.next() {
                    self.redis_value(key, *state.version);
                    if self.is_full() {
                        let rest = Rest::of(RestKind::Redis(*state.version), keys);
                        return if rest.keys.is_empty() { After::Next } else { After::Rest(rest) };
                    }
                }
            }
            Name::Mset => self.redis_mset(request),
            Name::Exists => {
                let cache = &self.shared.cache;
                let keys = request.arguments().skip(1);
                let count = keys.filter(|key| cache.peek(key, cache.hash(key), self.now_s, |_| ()).is_some()).count();
                compose_integer(&mut self.out, count as i64);
            }
            Name::Expire => self.redis_expire(request, 1000),
            Name::Pexpire => self.redis_expire(request, 1),
            Name::Ttl | Name::Pttl => {
                let cache = &self.shared.cache;
                let left = match cache.peek(key, cache.hash(key), self.now_s, |item| item.expires_s) {
                    None => -2,
                    Some(0) => -1,
                    // Whole seconds: what an item was given is rounded up when it is stored, so what is left is rounded down.
                    Some(expires_s) if name == Name::Ttl => (self.left_ms(expires_s) / 1000) as i64,
                    Some(expires_s) => self.left_ms(expires_s) as i64,
                };
                compose_integer(&mut self.out, left);
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
                let text = self.info(key);
                compose_bulk(&mut self.out, text.as_bytes());
            }
            Name::Dbsize => {
                let items = self.shared.cache.stats().items;
                compose_integer(&mut self.out, items as i64);
            }
            Name::Config => self.redis_config(request, *state.version),
            Name::Command => self.redis_commands(request, *state.version),
            Name::Hello => self.redis_hello(request, state),
            Name::Client => self.redis_client(request, state),
            Name::Select if key == b"0" => self.out.extend_from_slice(OK),
            Name::Select => self.out.extend_from_slice(b"-ERR DB index is out of range\r\n"),
            Name::Quit => {
                self.out.extend_from_slice(OK);
                return After::Close;
            }
            Name::Reset => {
                *state.version = Version::Two;
                state.name.clear();
                self.out.extend_from_slice(b"+RESET\r\n");
            }
        }
        After::Next
    }

    fn redis_store(&self, mode: Mode, key: &[u8], value: &[u8], meta: Meta) -> Result<u64, Refusal> {
        let cache = &self.shared.cache;
        cache.store(mode, key, cache.hash(key), value, meta, self.now_s)
    }

    #[inline]
    fn redis_set(&mut self, request: &Request<'_, '_>, version: Version) {
        let (key, value) = (request.argument(1), request.argument(2));
        if request.count() == 3 {
            match self.redis_store(Mode::Set, key, value, Meta::default()) {
                Ok(_) => self.out.extend_from_slice(OK),
                Err(refusal) => self.redis_refuse(&refusal),
            }
            return;
        }
        let options = match parse_set(request) {
            Ok(options) => options,
            Err(error) => return compose_error(&mut self.out, &format!("ERR {error}")),
        };
        let expires_s = match (options.ttl_ms, options.ends_unix_ms) {
            (Some(ms), _) => self.second_in(ms),
            (None, Some(ms)) => self.second_of(ms),
            (None, None) => 0,
        };
        let mode = match (options.if_absent, options.if_present) {
            (true, _) => Mode::Add,
            (_, true) => Mode::Replace,
            _ => Mode::Set,
        };
        let Self { shared, out, now_s, .. } = self;
        let mut held = shared.cache.hold(key, shared.cache.hash(key));
        let start = out.len();
        let mut meta = Meta { flags: 0, expires_s };
        let before = held.peek(*now_s, |item| {
            if options.keep_ttl {
                meta.expires_s = item.expires_s;
            }
            if options.get {
                compose_bulk(out, item.value);
            }
        });
        if options.get && before.is_none() {
            compose_null(out, version);
        }
        let stored = held.store(mode, value, meta, *now_s);
        drop(held);
        match stored {
            // Whether it was stored or not: what was asked for is the value it had.
            Ok(_) | Err(Refusal::NotStored) if options.get => {}
            Ok(_) => out.extend_from_slice(OK),
            Err(Refusal::NotStored) => compose_null(out, version),
            Err(refusal) => {
                out.truncate(start);
                self.redis_refuse(&refusal);
            }
        }
    }

    /// `SETEX` and `PSETEX`, whose time is in units of so many milliseconds.
    fn redis_setex(&mut self, request: &Request<'_, '_>, unit_ms: u64) {
        let Some(time) = number::signed(request.argument(2)) else {
            return self.out.extend_from_slice(NOT_AN_INTEGER);
        };
        let Some(ms) = u64::try_from(time).ok().filter(|time| *time > 0).and_then(|time| time.checked_mul(unit_ms))
        else {
            let name = if unit_ms == 1 { "psetex" } else { "setex" };
            return compose_error(&mut self.out, &format!("ERR invalid expire time in '{name}' command"));
        };
        let meta = Meta { flags: 0, expires_s: self.second_in(ms) };
        match self.redis_store(Mode::Set, request.argument(1), request.argument(3), meta) {
            Ok(_) => self.out.extend_from_slice(OK),
            Err(refusal) => self.redis_refuse(&refusal),
        }
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

    fn redis_expire(&mut self, request: &Request<'_, '_>, unit_ms: i64) {
        let key = request.argument(1);
        let Some(ms) = number::signed(request.argument(2)).and_then(|time| time.checked_mul(unit_ms)) else {
            return self.out.extend_from_slice(NOT_AN_INTEGER);
        };
        let (mut absent, mut present, mut later, mut sooner) = (false, false, false, false);
        for word in request.arguments().skip(3) {
            match word.to_ascii_lowercase().as_slice() {
                b"nx" => absent = true,
                b"xx" => present = true,
                b"gt" => later = true,
                b"lt" => sooner = true,
                other => {
                    let text = format!("ERR Unsupported option {}", String::from_utf8_lossy(other));
                    return compose_error(&mut self.out, &text);
                }
            }
        }
        if absent && (present || later || sooner) || later && sooner {
            let text = b"-ERR NX and XX, GT or LT options at the same time are not compatible\r\n";
            return self.out.extend_from_slice(text);
        }
        let expires_s = self.second_in(u64::try_from(ms).unwrap_or(0));
        let cache = &self.shared.cache;
        let mut held = cache.hold(key, cache.hash(key));
        let found = held.peek(self.now_s, |item| item.expires_s);
        let may = found.is_some_and(|has| {
            let end = if has == 0 { u32::MAX } else { has };
            !(absent && has != 0 || present && has == 0 || later && expires_s <= end || sooner && expires_s >= end)
        });
        let done = may
            && if ms <= 0 { Ok(held.delete(self.now_s)) } else { held.touch(expires_s, self.now_s) }.unwrap_or(false);
        drop(held);
        compose_integer(&mut self.out, i64::from(done));
    }

    fn redis_config(&mut self, request: &Request<'_, '_>, version: Version) {
        let subcommand = request.argument(1).to_ascii_lowercase();
        match subcommand.as_slice() {
            b"get" if request.count() > 2 => {
                let config = &self.shared.config;
                let facts = [
                    ("maxmemory", config.capacity_bytes.to_string()),
                    ("maxmemory-policy", policy(config.evictor).to_owned()),
                    ("save", String::new()),
                    ("appendonly", "no".to_owned()),
                    ("databases", "1".to_owned()),
                    ("io-threads", self.shared.threads.len().to_string()),
                    ("proto-max-bulk-len", self.shared.redis.bulk_bytes.to_string()),
                ];
                let is_asked = |name: &str| request.arguments().skip(2).any(|pattern| matches(pattern, name));
                let asked: Vec<_> = facts.iter().filter(|(name, _)| is_asked(name)).collect();
                compose_map(&mut self.out, version, asked.len());
                for (name, value) in asked {
                    compose_bulk(&mut self.out, name.as_bytes());
                    compose_bulk(&mut self.out, value.as_bytes());
                }
            }
            b"resetstat" => {
                self.shared.forget_counts();
                self.out.extend_from_slice(OK);
            }
            b"set" => {
                self.out.extend_from_slice(b"-ERR CONFIG SET is not done here: flags of the start decide\r\n");
            }
            _ => self.unknown_subcommand("CONFIG", &subcommand),
        }
    }

    fn unknown_subcommand(&mut self, command: &str, subcommand: &[u8]) {
        let shown = String::from_utf8_lossy(&subcommand[..subcommand.len().min(128)]);
        compose_error(&mut self.out, &format!("ERR unknown subcommand '{shown}' of {command}"));
    }

    /// `COMMAND`: names and numbers of arguments are not given out; clients take an empty answer for none.
    fn redis_commands(&mut self, request: &Request<'_, '_>, version: Version) {
        let subcommand = request.argument(1).to_ascii_lowercase();
        match subcommand.as_slice() {
            b"" => compose_array(&mut self.out, 0),
            b"count" => compose_integer(&mut self.out, Name::ALL.len() as i64),
            b"docs" => compose_map(&mut self.out, version, 0),
            b"list" => {
                compose_array(&mut self.out, Name::ALL.len());
                Name::ALL.iter().for_each(|name| compose_bulk(&mut self.out, name.text().as_bytes()));
            }
            b"info" => compose_array(&mut self.out, 0),
            _ => self.unknown_subcommand("COMMAND", &subcommand),
        }
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`. There are no passwords here, as in a Redis without one.
    fn redis_hello(&mut self, request: &Request<'_, '_>, state: State<'_>) {
        let wanted = match request.argument(1) {
            b"" => *state.version,
            b"2" => Version::Two,
            b"3" => Version::Three,
            _ => return self.out.extend_from_slice(b"-NOPROTO unsupported protocol version\r\n"),
        };
        let mut at = 2;
        while at < request.count() {
            let word = request.argument(at).to_ascii_lowercase();
            match word.as_slice() {
                b"auth" if at + 2 < request.count() => {
                    if request.argument(at + 1) != b"default" {
                        let text = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n";
                        return self.out.extend_from_slice(text);
                    }
                    at += 3;
                }
                b"setname" if at + 1 < request.count() => {
                    *state.name = request.argument(at + 1).to_vec();
                    at += 2;
                }
                _ => return self.out.extend_from_slice(SYNTAX),
            }
        }
        *state.version = wanted;
        let out = &mut self.out;
        compose_map(out, wanted, 7);
        let mut pair = |name: &str, value: &str| {
            compose_bulk(out, name.as_bytes());
            compose_bulk(out, value.as_bytes());
        };
        pair("server", "quintain");
        pair("version", env!("CARGO_PKG_VERSION"));
        pair("mode", "standalone");
        pair("role", "master");
        compose_bulk(out, b"proto");
        compose_integer(out, if wanted == Version::Three { 3 } else { 2 });
        compose_bulk(out, b"id");
        compose_integer(out, state.id as i64);
        compose_bulk(out, b"modules");
        compose_array(out, 0);
    }

    fn redis_client(&mut self, request: &Request<'_, '_>, state: State<'_>) {
        let subcommand = request.argument(1).to_ascii_lowercase();
        match (subcommand.as_slice(), request.count()) {
            (b"setname", 3) => {
                *state.name = request.argument(2).to_vec();
                self.out.extend_from_slice(OK);
            }
            (b"getname", 2) if state.name.is_empty() => compose_null(&mut self.out, *state.version),
            (b"getname", 2) => compose_bulk(&mut self.out, state.name),
            (b"id", 2) => compose_integer(&mut self.out, state.id as i64),
            // What a client says of its library is not kept.
            (b"setinfo", 4) => self.out.extend_from_slice(OK),
            (b"reply", 3) if request.argument(2).eq_ignore_ascii_case(b"on") => self.out.extend_from_slice(OK),
            _ => self.unknown_subcommand("CLIENT", &subcommand),
        }
    }

    #[cold]
    fn redis_refuse(&mut self, refusal: &Refusal) {
        match refusal {
            Refusal::Full { .. } => {
                compose_error(&mut self.out, "OOM command not allowed when used memory > 'maxmemory'.")
            }
            other => compose_error(&mut self.out, &format!("ERR {other}")),
        }
    }
}

/// Whether a name is meant by a pattern: itself, or what begins so and ends in `*`.
fn matches(pattern: &[u8], name: &str) -> bool {
    match pattern.strip_suffix(b"*") {
        Some(begin) => name.len() >= begin.len() && name.as_bytes()[..begin.len()].eq_ignore_ascii_case(begin),
        None => pattern.eq_ignore_ascii_case(name.as_bytes()),
    }
}
