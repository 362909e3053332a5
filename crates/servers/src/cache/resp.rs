//! RESP2 and RESP3. Source: the commands of Redis 7.0.15.

use cache::{Held, Meta, Mode, Refusal};
use wire::number;
use wire::resp::{
    Name, Read, Request, Version, When, compose_array, compose_bulk, compose_error, compose_integer, compose_map,
    compose_null, parse_getex, parse_set,
};

use super::connection::{CloseState, Connection, PendingMultiGet, Redis, RestKind, Speech};
use super::executor::{Executor, REDIS_OUT_OF_MEMORY};
use super::facts::{REDIS_VERSION, policy};
use super::glob;
use super::transaction::{Transactions, is_queued};

const SYNTAX: &[u8] = b"-ERR syntax error\r\n";
const NOT_AN_INTEGER: &[u8] = b"-ERR value is not an integer or out of range\r\n";
const OVERFLOW: &[u8] = b"-ERR increment or decrement would overflow\r\n";
pub(super) const OK: &[u8] = b"+OK\r\n";
/// Keys that one `SCAN` looks at, whatever `COUNT` says.
const SCAN_MAX: u32 = 1000;

/// What becomes of the connection after a command.
pub(super) enum After {
    Next,
    /// The transaction is to be carried out.
    Exec,
    Close,
    PendingMultiGet(Box<PendingMultiGet>),
}

/// What a connection keeps between commands.
pub(super) struct State<'a> {
    pub(super) version: &'a mut Version,
    pub(super) name: &'a mut Vec<u8>,
    pub(super) transactions: &'a mut Transactions,
    pub(super) id: u64,
}

impl Executor {
    /// Takes commands from `bytes`; how many of them were used.
    #[inline]
    pub(super) fn take_redis(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let Speech::Redis(redis) = &mut connection.speech else { return 0 };
        let Redis { reader, version, name, transactions } = &mut **redis;
        let mut at = 0;
        while at < bytes.len() {
            if self.is_full() {
                connection.blocked = true;
                break;
            }
            match reader.read(&bytes[at..]) {
                Read::Request { used, request } => {
                    at += used;
                    let id = connection.conn.map_or(0, |conn| conn.index() as u64 + 1);
                    match request.command() {
                        Ok(Name::Get) if transactions.open.is_none() => {
                            let key = request.argument(1);
                            if self.lacks_memory_for(key) {
                                let keys = std::iter::once(key);
                                connection.rest = Some(PendingMultiGet::of(RestKind::Redis(*version), keys));
                                connection.blocked = true;
                                break;
                            }
                            self.redis_value(key, *version);
                        }
                        Ok(Name::Getdel | Name::Getex | Name::Getset) if self.lacks_memory_for(request.argument(1)) => {
                            transactions.fail();
                            self.out.extend_from_slice(REDIS_OUT_OF_MEMORY);
                        }
                        Ok(name) if let Some(text) = wrong_subcommand(name, &request) => {
                            transactions.fail();
                            compose_error(&mut self.out, &text);
                        }
                        Ok(name) if is_queued(transactions, name, &request, &mut self.out) => {}
                        Ok(command) => {
                            match self.redis_command(command, &request, State { version, name, transactions, id }) {
                                After::Next => {}
                                After::Close => {
                                    connection.over = CloseState::Answered { linger: false };
                                    break;
                                }
                                After::Exec => break,
                                After::PendingMultiGet(rest) => {
                                    connection.rest = Some(rest);
                                    connection.blocked = true;
                                    break;
                                }
                            }
                        }
                        Err(refusal) => {
                            transactions.fail();
                            match refusal {
                                wire::resp::Refusal::UnknownCommand => unknown_command(&mut self.out, &request),
                                wire::resp::Refusal::WrongCount { name: Name::Exec } => {
                                    transactions.forget();
                                    let text = format!("EXECABORT Transaction discarded because of: {refusal}");
                                    compose_error(&mut self.out, &text);
                                }
                                refusal => refusal.compose(&mut self.out),
                            }
                        }
                    }
                }
                Read::Need { used, more } => {
                    at += used;
                    connection.lacks = more;
                    if !self.reserve(connection, bytes.len() - at + more) {
                        self.out_of_memory(connection);
                        return bytes.len();
                    }
                    break;
                }
                Read::Refused { used, refusal } => {
                    at += used;
                    transactions.fail();
                    refusal.compose(&mut self.out);
                    if refusal.closes() {
                        connection.over = CloseState::Answered { linger: true };
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
        let Self { shared, out, now_ms, .. } = self;
        let found = shared.cache.get(key, shared.cache.hash(key), *now_ms, |item| {
            out.reserve(item.value.len() + 32);
            compose_bulk(out, item.value);
        });
        if found.is_none() {
            compose_null(out, version);
        }
    }

    pub(super) fn redis_command(&mut self, name: Name, request: &Request<'_, '_>, state: State<'_>) -> After {
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
            Name::Getset => self.redis_getset(request, *state.version),
            Name::Getdel => {
                let Self { shared, out, now_ms, .. } = self;
                let mut held = shared.cache.hold(key, shared.cache.hash(key));
                if held.get(*now_ms, |item| compose_bulk(out, item.value)).is_none() {
                    compose_null(out, *state.version);
                }
                held.delete(*now_ms);
            }
            Name::Getex => self.redis_getex(request, *state.version),
            Name::Append => self.redis_append(request),
            Name::Strlen => {
                let cache = &self.shared.cache;
                let bytes = cache.get(key, cache.hash(key), self.now_ms, |item| item.value.len());
                compose_integer(&mut self.out, bytes.unwrap_or(0) as i64);
            }
            Name::Incr => self.redis_count(key, 1),
            Name::Decr => self.redis_count(key, -1),
            Name::Incrby | Name::Decrby => match (name, number::canonical(request.argument(2))) {
                (_, None) => self.out.extend_from_slice(NOT_AN_INTEGER),
                (Name::Incrby, Some(delta)) => self.redis_count(key, delta),
                (_, Some(i64::MIN)) => self.out.extend_from_slice(b"-ERR decrement would overflow\r\n"),
                (_, Some(delta)) => self.redis_count(key, -delta),
            },
            Name::Type => {
                let cache = &self.shared.cache;
                let found = cache.peek(key, cache.hash(key), self.now_ms, |_| ()).is_some();
                self.out.extend_from_slice(if found { b"+string\r\n" } else { b"+none\r\n" });
            }
            Name::Touch => {
                let cache = &self.shared.cache;
                let keys = request.arguments().skip(1);
                let count = keys.filter(|key| cache.get(key, cache.hash(key), self.now_ms, |_| ()).is_some()).count();
                compose_integer(&mut self.out, count as i64);
            }
            Name::Scan => self.redis_scan(request),
            Name::Multi | Name::Exec | Name::Discard | Name::Watch | Name::Unwatch => {
                return self.redis_transaction(name, request, state.transactions);
            }
            Name::Del | Name::Unlink => {
                let cache = &self.shared.cache;
                let keys = request.arguments().skip(1);
                let count = keys.filter(|key| cache.delete(key, cache.hash(key), self.now_ms)).count();
                compose_integer(&mut self.out, count as i64);
            }
            Name::Mget => {
                compose_array(&mut self.out, request.count() - 1);
                let mut keys = request.arguments().skip(1);
                while let Some(key) = keys.next() {
                    if self.lacks_memory_for(key) {
                        let keys = std::iter::once(key).chain(keys);
                        return After::PendingMultiGet(PendingMultiGet::of(RestKind::Redis(*state.version), keys));
                    }
                    self.redis_value(key, *state.version);
                    if self.is_full() {
                        let rest = PendingMultiGet::of(RestKind::Redis(*state.version), keys);
                        return if rest.keys.is_empty() { After::Next } else { After::PendingMultiGet(rest) };
                    }
                }
            }
            Name::Mset => self.redis_mset(request),
            Name::Exists => {
                let cache = &self.shared.cache;
                let keys = request.arguments().skip(1);
                let count = keys.filter(|key| cache.peek(key, cache.hash(key), self.now_ms, |_| ()).is_some()).count();
                compose_integer(&mut self.out, count as i64);
            }
            Name::Expire | Name::Pexpire | Name::Expireat | Name::Pexpireat => self.redis_expire(name, request),
            Name::Ttl | Name::Pttl | Name::Expiretime | Name::Pexpiretime => {
                let cache = &self.shared.cache;
                let is_left = matches!(name, Name::Ttl | Name::Pttl);
                let said = match cache.peek(key, cache.hash(key), self.now_ms, |item| item.expires_ms) {
                    None => -2,
                    Some(0) => -1,
                    Some(expires_ms) => {
                        let ms = if is_left { expires_ms.saturating_sub(self.now_ms) } else { expires_ms };
                        let is_ms = matches!(name, Name::Pttl | Name::Pexpiretime);
                        // As Redis rounds: to the nearest second.
                        (if is_ms { ms } else { (ms + 500) / 1000 }) as i64
                    }
                };
                compose_integer(&mut self.out, said);
            }
            Name::Persist => {
                let cache = &self.shared.cache;
                let mut held = cache.hold(key, cache.hash(key));
                let has_time = held.peek(self.now_ms, |item| item.expires_ms != 0) == Some(true);
                let done = if has_time { redis_touch(&mut held, 0, self.now_ms) } else { Ok(false) };
                drop(held);
                self.redis_done(&done);
            }
            Name::Ping if request.count() == 1 => self.out.extend_from_slice(b"+PONG\r\n"),
            Name::Ping if request.count() > 2 => {
                compose_error(&mut self.out, "ERR wrong number of arguments for 'ping' command");
            }
            Name::Ping | Name::Echo => compose_bulk(&mut self.out, key),
            Name::Flushall | Name::Flushdb => {
                let is_known = ["", "async", "sync"].iter().any(|word| key.eq_ignore_ascii_case(word.as_bytes()));
                let is_known = is_known && request.count() <= 2;
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
            Name::Select if number::canonical(key).is_none_or(|index| i32::try_from(index).is_err()) => {
                self.out.extend_from_slice(NOT_AN_INTEGER);
            }
            Name::Select => self.out.extend_from_slice(b"-ERR DB index is out of range\r\n"),
            Name::Quit => {
                self.out.extend_from_slice(OK);
                return After::Close;
            }
            Name::Reset => {
                *state.version = Version::Two;
                state.name.clear();
                state.transactions.forget();
                self.out.extend_from_slice(b"+RESET\r\n");
            }
        }
        After::Next
    }

    fn redis_store(&self, mode: Mode, key: &[u8], value: &[u8], meta: Meta) -> Result<u64, Refusal> {
        let cache = &self.shared.cache;
        cache.store(mode, key, cache.hash(key), value, meta, self.now_ms)
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
        let mut held = shared.cache.hold(key, shared.cache.hash(key));
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

    fn redis_getset(&mut self, request: &Request<'_, '_>, version: Version) {
        let key = request.argument(1);
        let Self { shared, out, now_ms, .. } = self;
        let mut held = shared.cache.hold(key, shared.cache.hash(key));
        let start = out.len();
        if held.get(*now_ms, |item| compose_bulk(out, item.value)).is_none() {
            compose_null(out, version);
        }
        let stored = held.store(Mode::Set, request.argument(2), Meta::default(), *now_ms);
        drop(held);
        if let Err(refusal) = stored {
            out.truncate(start);
            self.redis_refuse(&refusal);
        }
    }

    fn redis_getex(&mut self, request: &Request<'_, '_>, version: Version) {
        let key = request.argument(1);
        let options = match parse_getex(request) {
            Ok(options) => options,
            Err(error) => return compose_error(&mut self.out, &format!("ERR {error}")),
        };
        let Self { shared, out, now_ms, .. } = self;
        let mut held = shared.cache.hold(key, shared.cache.hash(key));
        let start = out.len();
        if held.get(*now_ms, |item| compose_bulk(out, item.value)).is_none() {
            return compose_null(out, version);
        }
        let done = match options.when {
            None if options.persist && held.peek(*now_ms, |item| item.expires_ms != 0) == Some(true) => {
                redis_touch(&mut held, 0, *now_ms)
            }
            None => Ok(true),
            Some(Err(error)) => {
                out.truncate(start);
                return compose_error(out, &format!("ERR {error}"));
            }
            Some(Ok(when)) => match when.ends_unix_ms(*now_ms) {
                Some(ends) if ends <= *now_ms && matches!(when, When::AtUnixMs(_)) => Ok(held.delete(*now_ms)),
                Some(ends) => redis_touch(&mut held, ends, *now_ms),
                None => {
                    drop(held);
                    out.truncate(start);
                    return self.invalid_expire(Name::Getex);
                }
            },
        };
        drop(held);
        if let Err(refusal) = done {
            out.truncate(start);
            self.redis_refuse(&refusal);
        }
    }

    fn redis_append(&mut self, request: &Request<'_, '_>) {
        let (key, value) = (request.argument(1), request.argument(2));
        let cache = &self.shared.cache;
        let mut held = cache.hold(key, cache.hash(key));
        let before = held.peek(self.now_ms, |item| item.value.len()).unwrap_or(0);
        let stored = match held.store(Mode::Append, value, Meta::default(), self.now_ms) {
            Err(Refusal::NotStored) => held.store(Mode::Set, value, Meta::default(), self.now_ms),
            stored => stored,
        };
        drop(held);
        match stored {
            Ok(_) => compose_integer(&mut self.out, (before + value.len()) as i64),
            Err(refusal) => self.redis_refuse(&refusal),
        }
    }

    /// `INCR` and its like: what is not there counts as 0.
    fn redis_count(&mut self, key: &[u8], delta: i64) {
        let cache = &self.shared.cache;
        let mut held = cache.hold(key, cache.hash(key));
        let counted = held.update(self.now_ms, |item| {
            match number::canonical(item.value)
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

    /// `SCAN cursor [MATCH pattern] [COUNT number] [TYPE type]`; all there is are strings.
    fn redis_scan(&mut self, request: &Request<'_, '_>) {
        let Some(cursor) = number::unsigned(request.argument(1)) else {
            return self.out.extend_from_slice(b"-ERR invalid cursor\r\n");
        };
        let pattern_bytes_max = 4 * self.shared.cache.key_bytes_max();
        let (mut pattern, mut count, mut is_of_type) = (b"*".as_slice(), 10, true);
        let mut at = 2;
        while at < request.count() {
            let (word, argument) = (request.argument(at), request.argument(at + 1));
            let is = |text: &str| word.eq_ignore_ascii_case(text.as_bytes()) && at + 1 < request.count();
            if is("count") {
                match number::canonical(argument) {
                    None => return self.out.extend_from_slice(NOT_AN_INTEGER),
                    Some(number) if number < 1 => return self.out.extend_from_slice(SYNTAX),
                    Some(number) => count = u32::try_from(number).unwrap_or(u32::MAX).min(SCAN_MAX),
                }
            } else if is("match") {
                if argument.len() > pattern_bytes_max {
                    let text = format!("ERR a pattern over the limit of {pattern_bytes_max} bytes");
                    return compose_error(&mut self.out, &text);
                }
                pattern = argument;
            } else if is("type") {
                is_of_type = argument.eq_ignore_ascii_case(b"string");
            } else {
                return self.out.extend_from_slice(SYNTAX);
            }
            at += 2;
        }
        let mut keys = Vec::new();
        let next = self.shared.cache.scan(cursor, count, self.now_ms, |key| keys.push(key.to_vec()));
        keys.retain(|key| is_of_type && glob::matches(pattern, key, false));
        compose_array(&mut self.out, 2);
        compose_bulk(&mut self.out, next.to_string().as_bytes());
        compose_array(&mut self.out, keys.len());
        keys.iter().for_each(|key| compose_bulk(&mut self.out, key));
    }

    fn invalid_expire(&mut self, name: Name) {
        compose_error(&mut self.out, &format!("ERR invalid expire time in '{}' command", name.text()));
    }

    /// 1 or 0, or why neither.
    fn redis_done(&mut self, done: &Result<bool, Refusal>) {
        match done {
            Ok(done) => compose_integer(&mut self.out, i64::from(*done)),
            Err(refusal) => self.redis_refuse(refusal),
        }
    }

    /// `SETEX` and `PSETEX`, whose time is in units of so many milliseconds.
    fn redis_setex(&mut self, request: &Request<'_, '_>, unit_ms: u64) {
        let Some(time) = number::canonical(request.argument(2)) else {
            return self.out.extend_from_slice(NOT_AN_INTEGER);
        };
        let ms = u64::try_from(time).ok().filter(|time| *time > 0).and_then(|time| time.checked_mul(unit_ms));
        let Some(expires_ms) = ms.and_then(|ms| When::AfterMs(ms).ends_unix_ms(self.now_ms)) else {
            return self.invalid_expire(if unit_ms == 1 { Name::Psetex } else { Name::Setex });
        };
        let meta = Meta { flags: 0, expires_ms };
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

    /// `EXPIRE` and its like. Source: Redis 7.0.15, `expireGenericCommand`.
    fn redis_expire(&mut self, name: Name, request: &Request<'_, '_>) {
        let key = request.argument(1);
        let (mut absent, mut present, mut later, mut sooner) = (false, false, false, false);
        for word in request.arguments().skip(3) {
            match word.to_ascii_lowercase().as_slice() {
                b"nx" => absent = true,
                b"xx" => present = true,
                b"gt" => later = true,
                b"lt" => sooner = true,
                _ => {
                    let text = format!("ERR Unsupported option {}", String::from_utf8_lossy(word));
                    return compose_error(&mut self.out, &text);
                }
            }
        }
        if later && sooner && !absent {
            let text = b"-ERR GT and LT options at the same time are not compatible\r\n";
            return self.out.extend_from_slice(text);
        }
        if absent && (present || later || sooner) {
            let text = b"-ERR NX and XX, GT or LT options at the same time are not compatible\r\n";
            return self.out.extend_from_slice(text);
        }
        let Some(time) = number::canonical(request.argument(2)) else {
            return self.out.extend_from_slice(NOT_AN_INTEGER);
        };
        let unit_ms = if matches!(name, Name::Expire | Name::Expireat) { 1000 } else { 1 };
        let from_ms = if matches!(name, Name::Expire | Name::Pexpire) { self.now_ms as i64 } else { 0 };
        let Some(ends) = time.checked_mul(unit_ms).and_then(|ms| ms.checked_add(from_ms)) else {
            return self.invalid_expire(name);
        };
        // What has ended is deleted, so that 0 and less need no representation.
        let expires_ms = u64::try_from(ends).unwrap_or(0);
        let cache = &self.shared.cache;
        let mut held = cache.hold(key, cache.hash(key));
        let found = held.peek(self.now_ms, |item| item.expires_ms);
        let may = found.is_some_and(|has| {
            let end = if has == 0 { u64::MAX } else { has };
            !(absent && has != 0 || present && has == 0 || later && expires_ms <= end || sooner && expires_ms >= end)
        });
        let done = match may {
            false => Ok(false),
            true if expires_ms <= self.now_ms => Ok(held.delete(self.now_ms)),
            true => redis_touch(&mut held, expires_ms, self.now_ms),
        };
        drop(held);
        self.redis_done(&done);
    }

    fn redis_config(&mut self, request: &Request<'_, '_>, version: Version) {
        let subcommand = request.argument(1).to_ascii_lowercase();
        match subcommand.as_slice() {
            b"get" => {
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
                let is_asked = |name: &str| {
                    request.arguments().skip(2).any(|pattern| glob::matches(pattern, name.as_bytes(), true))
                };
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
            _ => self.out.extend_from_slice(SYNTAX),
        }
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
            _ => self.out.extend_from_slice(SYNTAX),
        }
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`. There are no passwords here, as in a Redis without one.
    fn redis_hello(&mut self, request: &Request<'_, '_>, state: State<'_>) {
        let wanted = match request.argument(1) {
            b"" => *state.version,
            b"2" => Version::Two,
            b"3" => Version::Three,
            text if number::canonical(text).is_none() => {
                let text = b"-ERR Protocol version is not an integer or out of range\r\n";
                return self.out.extend_from_slice(text);
            }
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
                _ => {
                    let shown = String::from_utf8_lossy(request.argument(at)).into_owned();
                    return compose_error(&mut self.out, &format!("ERR Syntax error in HELLO option '{shown}'"));
                }
            }
        }
        *state.version = wanted;
        let out = &mut self.out;
        compose_map(out, wanted, 7);
        let mut pair = |name: &str, value: &str| {
            compose_bulk(out, name.as_bytes());
            compose_bulk(out, value.as_bytes());
        };
        // Clients go by these two together.
        pair("server", "redis");
        pair("version", REDIS_VERSION);
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
            (b"setname", 3) if request.argument(2).iter().any(|byte| !(b'!'..=b'~').contains(byte)) => {
                let text = b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
                self.out.extend_from_slice(text);
            }
            (b"setname", 3) => {
                *state.name = request.argument(2).to_vec();
                self.out.extend_from_slice(OK);
            }
            (b"getname", 2) if state.name.is_empty() => compose_null(&mut self.out, *state.version),
            (b"getname", 2) => compose_bulk(&mut self.out, state.name),
            (b"id", 2) => compose_integer(&mut self.out, state.id as i64),
            // What a client says of its library is not kept.
            (b"setinfo", 4) => self.out.extend_from_slice(OK),
            // Nothing here is decided by connections.
            (b"no-evict", 3) => self.out.extend_from_slice(OK),
            (b"reply", 3) if request.argument(2).eq_ignore_ascii_case(b"on") => self.out.extend_from_slice(OK),
            _ => self.out.extend_from_slice(SYNTAX),
        }
    }

    #[cold]
    fn redis_refuse(&mut self, refusal: &Refusal) {
        match refusal {
            Refusal::Full { .. } => self.out.extend_from_slice(REDIS_OUT_OF_MEMORY),
            other => compose_error(&mut self.out, &format!("ERR {other}")),
        }
    }
}

/// Gives an item another time, and another version: `WATCH` tells that it was changed.
fn redis_touch(held: &mut Held<'_, '_>, expires_ms: u64, now_ms: u64) -> Result<bool, Refusal> {
    let done = held.touch(expires_ms, now_ms)?;
    held.renew(now_ms);
    Ok(done)
}

/// What is wrong with the subcommand of a command that has such, which Redis says before it queues anything.
fn wrong_subcommand(name: Name, request: &Request<'_, '_>) -> Option<String> {
    const ANY: usize = usize::MAX;
    let known: &[(&str, usize, usize)] = match name {
        Name::Client => &[
            ("setname", 3, 3),
            ("getname", 2, 2),
            ("id", 2, 2),
            ("setinfo", 4, 4),
            ("reply", 3, 3),
            ("no-evict", 3, 3),
        ],
        Name::Config => &[("get", 3, ANY), ("set", 4, ANY), ("resetstat", 2, 2)],
        Name::Command if request.count() > 1 => {
            &[("count", 2, 2), ("docs", 2, ANY), ("list", 2, ANY), ("info", 2, ANY)]
        }
        _ => return None,
    };
    let asked = request.argument(1);
    match known.iter().find(|(name, ..)| asked.eq_ignore_ascii_case(name.as_bytes())) {
        None => {
            let shown = String::from_utf8_lossy(&asked[..asked.len().min(128)]);
            Some(format!("ERR unknown subcommand '{shown}'. Try {} HELP.", name.text().to_uppercase()))
        }
        Some((_, least, most)) if (*least..=*most).contains(&request.count()) => None,
        Some((subcommand, ..)) => {
            Some(format!("ERR wrong number of arguments for '{}|{subcommand}' command", name.text()))
        }
    }
}

/// As Redis words it: the command, and as much of its arguments as fits into 128 bytes.
#[cold]
fn unknown_command(out: &mut Vec<u8>, request: &Request<'_, '_>) {
    let shown = |bytes: &[u8], most: usize| {
        // C's strings end at a 0.
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end.min(most)]).into_owned()
    };
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
