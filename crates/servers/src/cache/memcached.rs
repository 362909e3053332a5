//! memcached's text and meta protocol. Source: protocol.txt of memcached 1.6, and what 1.6.18 answers where that is silent.

use cache::{Item, Meta, Mode, Refusal};
use wire::memcached::{
    Command, Expiry, Flags, Get, Outdated, Read, Store, Verb, compose_number, compose_value, compose_value_end,
    decode_key,
};
use wire::number;

use super::connection::{Connection, Over, Rest, RestKind, Speech};
use super::executor::Executor;

/// Flags of meta commands that ask for what this cache does not keep.
const NOT_KEPT: &[u8] = b"CLIENT_ERROR flag asks for what this server does not keep\r\n";
const NON_NUMERIC: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
/// The version of memcached whose protocol this is, by which clients decide what they may send; and our own.
pub(super) const VERSION: &str = concat!("1.6.18 (quintain ", env!("CARGO_PKG_VERSION"), ")");
/// Room for a key of 250 letters in base64, decoded.
const KEY_ROOM: usize = 192;

/// What became of an increment.
enum Counted {
    Value(u64),
    NotFound,
    NonNumeric,
    Refused(Refusal),
}

impl Executor {
    /// Takes commands from `bytes`; how many of them were used.
    #[inline]
    pub(super) fn take_memcached(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let Speech::Memcached(reader) = &mut connection.speech else { return 0 };
        let mut at = 0;
        while at < bytes.len() {
            if self.is_full() {
                connection.blocked = true;
                break;
            }
            match reader.read(&bytes[at..]) {
                Read::Command { used, command } => {
                    at += used;
                    match command {
                        Command::Get(get) => {
                            if let Some(rest) = self.text_get(get) {
                                connection.rest = Some(rest);
                                connection.blocked = true;
                                break;
                            }
                        }
                        Command::Store(store) => self.text_store(&store),
                        Command::Quit => {
                            connection.over = Over::Answered { linger: false };
                            break;
                        }
                        other => self.text_other(other),
                    }
                }
                Read::Need { used, more } => {
                    at += used;
                    connection.lacks = more;
                    break;
                }
                Read::Refused { used, refusal, noreply, close, outdated } => {
                    at += used;
                    if let Some(outdated) = outdated {
                        self.text_outdate(outdated);
                    }
                    if !noreply {
                        self.out.extend_from_slice(refusal.reply());
                    }
                    if close {
                        connection.over = Over::Answered { linger: true };
                        break;
                    }
                }
                // Values are read whole: the limit of a value is that of a whole one.
                Read::Begin { used, .. } | Read::Data { used, .. } | Read::End { used, .. } => at += used,
            }
        }
        at
    }

    /// Answers `get` and its like; the keys that are left when answers have to leave first.
    #[inline]
    fn text_get(&mut self, get: Get<'_>) -> Option<Box<Rest>> {
        let mut keys = get.keys;
        while let Some(key) = keys.next() {
            self.text_value(key, get.with_cas, get.touch);
            if self.is_full() {
                let kind = RestKind::Memcached { with_cas: get.with_cas, touch: get.touch };
                let rest = Rest::of(kind, keys);
                if rest.keys.is_empty() {
                    break;
                }
                return Some(rest);
            }
        }
        self.out.extend_from_slice(b"END\r\n");
        None
    }

    /// `VALUE …` of one key, if it is there.
    #[inline]
    pub(super) fn text_value(&mut self, key: &[u8], with_cas: bool, touch: Option<Expiry>) {
        let expires_s = touch.map(|expiry| self.expires_s(expiry));
        let Self { shared, out, now_s, .. } = self;
        let hash = shared.cache.hash(key);
        let write = |item: Item<'_>| {
            out.reserve(key.len() + item.value.len() + 64);
            compose_value(out, key, item.flags, item.value.len(), with_cas.then_some(item.version));
            out.extend_from_slice(item.value);
            compose_value_end(out);
        };
        if let Some(expires_s) = expires_s {
            let mut held = shared.cache.hold(key, hash);
            // Where there is no room for the time, the item is gone, and is missed here.
            let _ = held.touch(expires_s, *now_s);
            held.get(*now_s, write);
        } else {
            shared.cache.get(key, hash, *now_s, write);
        }
    }

    /// The second from which on an item is gone; 0: never.
    pub(super) fn expires_s(&self, expiry: Expiry) -> u32 {
        match expiry {
            Expiry::Never => 0,
            // Long ago.
            Expiry::Past => 1,
            Expiry::AfterS(seconds) => self.second_in(u64::from(seconds) * 1000),
            Expiry::AtUnixS(seconds) => seconds.max(1),
        }
    }

    #[inline]
    fn text_store(&mut self, store: &Store<'_>) {
        if let Some(flags) = store.meta {
            return self.meta_set(store, flags);
        }
        let meta = Meta { flags: store.client_flags, expires_s: self.expires_s(store.expiry) };
        let cache = &self.shared.cache;
        let stored =
            cache.store(mode(store.verb, store.cas), store.key, cache.hash(store.key), store.data, meta, self.now_s);
        if store.noreply {
            return;
        }
        self.out.extend_from_slice(match &stored {
            Ok(_) => b"STORED\r\n",
            Err(Refusal::NotStored) => b"NOT_STORED\r\n",
            Err(Refusal::NotFound) => b"NOT_FOUND\r\n",
            Err(Refusal::Exists { .. }) => b"EXISTS\r\n",
            Err(refusal) => error(refusal),
        });
    }

    fn text_other(&mut self, command: Command<'_>) {
        let cache = &self.shared.cache;
        match command {
            Command::Delete { key, noreply } => {
                let found = cache.delete(key, cache.hash(key), self.now_s);
                self.say(noreply, if found { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" });
            }
            Command::Count { key, delta, down, noreply } => match self.count(key, delta, down) {
                Counted::Value(value) if !noreply => compose_number(&mut self.out, value),
                Counted::Value(_) => {}
                Counted::NotFound => self.say(noreply, b"NOT_FOUND\r\n"),
                Counted::NonNumeric => self.say(noreply, NON_NUMERIC),
                Counted::Refused(refusal) => self.say(noreply, error(&refusal)),
            },
            Command::Touch { key, expiry, noreply } => {
                let touched = cache.touch(key, cache.hash(key), self.expires_s(expiry), self.now_s);
                self.say(
                    noreply,
                    match &touched {
                        Ok(true) => b"TOUCHED\r\n",
                        Ok(false) => b"NOT_FOUND\r\n",
                        Err(refusal) => error(refusal),
                    },
                );
            }
            Command::FlushAll { delay_s, noreply } => {
                self.flush(delay_s);
                self.say(noreply, b"OK\r\n");
            }
            Command::Verbosity { noreply } => self.say(noreply, b"OK\r\n"),
            Command::Version => {
                self.out.extend_from_slice(b"VERSION ");
                self.out.extend_from_slice(VERSION.as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
            Command::Stats { argument } => self.text_stats(argument),
            Command::MetaGet { key, flags } => self.meta_get(key, flags),
            Command::MetaDelete { key, flags } => self.meta_delete(key, flags),
            Command::MetaCount { key, flags, down } => self.meta_count(key, flags, down),
            Command::MetaNoop => self.out.extend_from_slice(b"MN\r\n"),
            Command::MetaDebug { key, flags } => self.meta_debug(key, flags),
            // These are dealt with where they were read.
            Command::Get(_) | Command::Store(_) | Command::Quit => {}
        }
    }

    /// The value of a key is too long to be stored, and the one before it is not what its owner wants to be read.
    #[cold]
    fn text_outdate(&mut self, outdated: Outdated<'_>) {
        let mut room = [0; KEY_ROOM];
        let key = match outdated.is_base64 {
            true => decode_key(outdated.key, &mut room).unwrap_or(outdated.key),
            false => outdated.key,
        };
        let cache = &self.shared.cache;
        cache.outdate(key, cache.hash(key), self.now_s);
    }

    fn say(&mut self, noreply: bool, line: &[u8]) {
        if !noreply {
            self.out.extend_from_slice(line);
        }
    }

    fn count(&self, key: &[u8], delta: u64, down: bool) -> Counted {
        let cache = &self.shared.cache;
        let counted = cache.update(key, cache.hash(key), self.now_s, |item| match counted(item.value, delta, down) {
            Some(value) => (Some(value.to_string().into_bytes()), Some(value)),
            None => (None, None),
        });
        match counted {
            Ok(Some(Some(value))) => Counted::Value(value),
            Ok(Some(None)) => Counted::NonNumeric,
            Ok(None) => Counted::NotFound,
            Err(refusal) => Counted::Refused(refusal),
        }
    }

    // The meta commands.

    fn meta_get(&mut self, key: &[u8], flags: Flags<'_>) {
        if has_any(&flags, b"hlNRE") {
            return self.out.extend_from_slice(NOT_KEPT);
        }
        let expires_s = self.meta_time(&flags, b'T');
        let unix_ms = self.unix_ns / 1_000_000;
        let Self { shared, out, now_s, .. } = self;
        let mut room = [0; KEY_ROOM];
        let name = decoded(key, &flags, &mut room);
        let mut held = shared.cache.hold(name, shared.cache.hash(name));
        if let Some(expires_s) = expires_s {
            // Where there is no room for the time, the item is gone, and is missed here.
            let _ = held.touch(expires_s, *now_s);
        }
        let with_value = flags.has(b'v');
        let write = |item: Item<'_>| {
            out.reserve(key.len() + item.value.len() + 64);
            if with_value {
                out.extend_from_slice(b"VA ");
                number::push(out, item.value.len() as u64);
            } else {
                out.extend_from_slice(b"HD");
            }
            push_flags(out, &flags, key, Some(&item), unix_ms);
            if with_value {
                out.extend_from_slice(item.value);
                out.extend_from_slice(b"\r\n");
            }
        };
        let found = held.get(*now_s, write).is_some();
        if !found && !flags.has(b'q') {
            out.extend_from_slice(b"EN");
            push_flags(out, &flags, key, None, 0);
        }
    }

    fn meta_set(&mut self, store: &Store<'_>, flags: Flags<'_>) {
        if has_any(&flags, b"IE") {
            return self.out.extend_from_slice(NOT_KEPT);
        }
        let meta = Meta { flags: store.client_flags, expires_s: self.expires_s(store.expiry) };
        let vivified = self.meta_time(&flags, b'N');
        let unix_ms = self.unix_ns / 1_000_000;
        let mut room = [0; KEY_ROOM];
        let name = decoded(store.key, &flags, &mut room);
        let cache = &self.shared.cache;
        let mut held = cache.hold(name, cache.hash(name));
        let stored = match (store.cas, held.peek(self.now_s, |item| item.version)) {
            (Some(_), None) => Err(Refusal::NotFound),
            (Some(_), Some(0)) => Err(Refusal::NoVersions),
            (Some(asked), Some(found)) if asked != found => Err(Refusal::Exists { asked, found }),
            (_, None) if matches!(store.verb, Verb::Append | Verb::Prepend) && vivified.is_some() => {
                let meta = Meta { expires_s: vivified.unwrap_or(0), ..meta };
                held.store(Mode::Set, store.data, meta, self.now_s)
            }
            _ => held.store(mode(store.verb, None), store.data, meta, self.now_s),
        };
        drop(held);
        let version = *stored.as_ref().unwrap_or(&0);
        let word: &[u8] = match &stored {
            Ok(_) if flags.has(b'q') => return,
            Ok(_) => b"HD",
            Err(Refusal::NotStored) => b"NS",
            Err(Refusal::NotFound) => b"NF",
            Err(Refusal::Exists { .. }) => b"EX",
            Err(refusal) => return self.out.extend_from_slice(error(refusal)),
        };
        self.out.extend_from_slice(word);
        let item = Item { value: store.data, flags: meta.flags, expires_s: meta.expires_s, version };
        push_flags(&mut self.out, &flags, store.key, Some(&item), unix_ms);
    }

    fn meta_delete(&mut self, key: &[u8], flags: Flags<'_>) {
        if has_any(&flags, b"IEx") {
            return self.out.extend_from_slice(NOT_KEPT);
        }
        let mut room = [0; KEY_ROOM];
        let name = decoded(key, &flags, &mut room);
        let cache = &self.shared.cache;
        let mut held = cache.hold(name, cache.hash(name));
        let asked = flags.number(b'C').map(i64::cast_unsigned);
        let word: &[u8] = match (asked, held.peek(self.now_s, |item| item.version)) {
            (_, None) => b"NF",
            (Some(_), Some(0)) => return self.out.extend_from_slice(error(&Refusal::NoVersions)),
            (Some(asked), Some(found)) if asked != found => b"EX",
            _ => {
                held.delete(self.now_s);
                b"HD"
            }
        };
        drop(held);
        if flags.has(b'q') && word == b"HD" {
            return;
        }
        self.out.extend_from_slice(word);
        push_flags(&mut self.out, &flags, key, None, 0);
    }

    fn meta_count(&mut self, key: &[u8], flags: Flags<'_>, down: bool) {
        if has_any(&flags, b"E") {
            return self.out.extend_from_slice(NOT_KEPT);
        }
        let delta = flags.number(b'D').map_or(1, i64::cast_unsigned);
        let (time, vivified) = (self.meta_time(&flags, b'T'), self.meta_time(&flags, b'N'));
        let unix_ms = self.unix_ns / 1_000_000;
        let Self { shared, out, now_s, .. } = self;
        let now_s = *now_s;
        let mut room = [0; KEY_ROOM];
        let name = decoded(key, &flags, &mut room);
        let mut held = shared.cache.hold(name, shared.cache.hash(name));
        let asked = flags.number(b'C').map(i64::cast_unsigned);
        let found = held.peek(now_s, |item| {
            let meta = Meta { flags: item.flags, expires_s: item.expires_s };
            (item.version, counted(item.value, delta, down), meta)
        });
        let (value, meta) = match (found, vivified) {
            (None, None) => {
                drop(held);
                out.extend_from_slice(b"NF");
                return push_flags(out, &flags, key, None, 0);
            }
            (None, Some(expires_s)) => {
                let start = flags.number(b'J').map_or(0, i64::cast_unsigned);
                (start, Meta { flags: 0, expires_s })
            }
            (Some((found, ..)), _) if asked.is_some_and(|asked| asked != found) => {
                drop(held);
                out.extend_from_slice(b"EX");
                return push_flags(out, &flags, key, None, 0);
            }
            (Some((_, None, _)), _) => return out.extend_from_slice(NON_NUMERIC),
            (Some((_, Some(value), meta)), _) => (value, Meta { expires_s: time.unwrap_or(meta.expires_s), ..meta }),
        };
        let text = value.to_string();
        let stored = held.store(Mode::Set, text.as_bytes(), meta, now_s);
        drop(held);
        let version = match stored {
            Ok(version) => version,
            Err(refusal) => return out.extend_from_slice(error(&refusal)),
        };
        if flags.has(b'q') {
            return;
        }
        let item = Item { value: text.as_bytes(), flags: meta.flags, expires_s: meta.expires_s, version };
        if flags.has(b'v') {
            out.extend_from_slice(b"VA ");
            number::push(out, text.len() as u64);
            push_flags(out, &flags, key, Some(&item), unix_ms);
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        } else {
            out.extend_from_slice(b"HD");
            push_flags(out, &flags, key, Some(&item), unix_ms);
        }
    }

    fn meta_debug(&mut self, key: &[u8], flags: Flags<'_>) {
        let unix_ms = self.unix_ns / 1_000_000;
        let Self { shared, out, now_s, .. } = self;
        let mut room = [0; KEY_ROOM];
        let name = decoded(key, &flags, &mut room);
        let found = shared.cache.peek(name, shared.cache.hash(name), *now_s, |item| {
            out.extend_from_slice(b"ME ");
            out.extend_from_slice(key);
            out.extend_from_slice(b" exp=");
            push_left(out, item.expires_s, unix_ms);
            out.extend_from_slice(b" cas=");
            number::push(out, item.version);
            out.extend_from_slice(b" size=");
            number::push(out, (name.len() + item.value.len()) as u64);
            out.extend_from_slice(b"\r\n");
        });
        if found.is_none() {
            out.extend_from_slice(b"EN\r\n");
        }
    }

    /// What the flag `letter` says of an item's time.
    fn meta_time(&self, flags: &Flags<'_>, letter: u8) -> Option<u32> {
        let seconds = flags.number(letter)?;
        i32::try_from(seconds).ok().map(|seconds| self.expires_s(Expiry::of(seconds)))
    }
}

/// The key that is meant.
fn decoded<'a>(key: &'a [u8], flags: &Flags<'_>, room: &'a mut [u8; KEY_ROOM]) -> &'a [u8] {
    // The reader has found it to be base64.
    if flags.has(b'b') { decode_key(key, room).unwrap_or(key) } else { key }
}

fn has_any(flags: &Flags<'_>, letters: &[u8]) -> bool {
    letters.iter().any(|&letter| flags.has(letter))
}

/// What the flags of a request ask of its answer, in their order, and the end of the line. Without `item` there is none.
fn push_flags(out: &mut Vec<u8>, flags: &Flags<'_>, key: &[u8], item: Option<&Item<'_>>, unix_ms: u64) {
    for (letter, argument) in flags.iter() {
        match (letter, item) {
            (b'O', _) => push_word(out, b'O', argument),
            // As memcached: that a key is in base64 is said behind the key.
            (b'k', _) => {
                push_word(out, b'k', key);
                if flags.has(b'b') {
                    push_word(out, b'b', b"");
                }
            }
            (b'c', Some(item)) => {
                out.extend_from_slice(b" c");
                number::push(out, item.version);
            }
            (b'f', Some(item)) => {
                out.extend_from_slice(b" f");
                number::push(out, u64::from(item.flags));
            }
            (b's', Some(item)) => {
                out.extend_from_slice(b" s");
                number::push(out, item.value.len() as u64);
            }
            (b't', Some(item)) => {
                out.extend_from_slice(b" t");
                push_left(out, item.expires_s, unix_ms);
            }
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn push_word(out: &mut Vec<u8>, letter: u8, text: &[u8]) {
    out.extend_from_slice(&[b' ', letter]);
    out.extend_from_slice(text);
}

/// The seconds that are left, -1 for ever.
fn push_left(out: &mut Vec<u8>, expires_s: u32, unix_ms: u64) {
    if expires_s == 0 {
        out.extend_from_slice(b"-1");
    } else {
        number::push(out, (u64::from(expires_s) * 1000).saturating_sub(unix_ms) / 1000);
    }
}

#[inline]
fn mode(verb: Verb, cas: Option<u64>) -> Mode {
    match verb {
        Verb::Set => Mode::Set,
        Verb::Add => Mode::Add,
        Verb::Replace => Mode::Replace,
        Verb::Append => Mode::Append,
        Verb::Prepend => Mode::Prepend,
        Verb::Cas => Mode::Cas(cas.unwrap_or(0)),
    }
}

/// The number that `value` becomes; `None` where it is none. Up wraps at 2^64, down stops at 0.
fn counted(value: &[u8], delta: u64, down: bool) -> Option<u64> {
    let value = number::unsigned(value.trim_ascii_end())?;
    Some(if down { value.saturating_sub(delta) } else { value.wrapping_add(delta) })
}

/// The line that answers a refusal which is no usual outcome.
#[cold]
fn error(refusal: &Refusal) -> &'static [u8] {
    match refusal {
        Refusal::Full { .. } => b"SERVER_ERROR out of memory storing object\r\n",
        Refusal::ValueTooLong { .. } => b"SERVER_ERROR object too large for cache\r\n",
        Refusal::NoVersions => b"SERVER_ERROR this cache keeps no cas\r\n",
        Refusal::KeyEmpty | Refusal::KeyTooLong { .. } => b"CLIENT_ERROR bad command line format\r\n",
        Refusal::NotStored | Refusal::NotFound | Refusal::Exists { .. } => b"NOT_STORED\r\n",
    }
}
