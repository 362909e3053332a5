//! memcached's text and meta protocol. Source: protocol.txt of memcached 1.6, and what 1.6.18 answers where that is silent.

use cache::{Item, Marks, Meta, Mode, Refusal};
use wire::memcached::{
    Command, Expiry, Flags, Get, Outdated, Read, Store, Verb, compose_number, compose_value, compose_value_end,
    decode_key,
};
use wire::number;

use super::Done;
use super::connection::{CloseState, Connection, PendingMultiGet, RestKind, Speech};
use super::executor::Executor;
use super::facts::MEMCACHED_VERSION;

/// The flag `l` of a cache that does not know.
const NOT_KEPT: &[u8] = b"CLIENT_ERROR flag l needs times of use, which --access-times on keeps\r\n";
const NON_NUMERIC: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
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
        let mut at = 0;
        while at < bytes.len() {
            if self.is_full() {
                connection.blocked = true;
                break;
            }
            let Speech::Memcached(reader) = &mut connection.speech else { break };
            let mut read = reader.read(&bytes[at..]);
            if let Read::Need { used, more } = read
                && !self.reserve(connection, bytes.len() - at - used + more)
                && let Speech::Memcached(reader) = &mut connection.speech
            {
                at += used;
                let Some(refused) = reader.refuse_unfinished(&bytes[at..]) else {
                    self.out_of_memory(connection);
                    return bytes.len();
                };
                read = refused;
                connection.unfinished = 0;
            }
            match read {
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
                            connection.over = CloseState::Answered { linger: false };
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
                        connection.over = CloseState::Answered { linger: true };
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
    fn text_get(&mut self, get: Get<'_>) -> Option<Box<PendingMultiGet>> {
        let kind = RestKind::Memcached { with_cas: get.with_cas, touch: get.touch };
        let mut keys = get.keys;
        while let Some(key) = keys.next() {
            if self.lacks_memory_for(key) {
                return Some(PendingMultiGet::of(kind, std::iter::once(key).chain(keys)));
            }
            self.text_value(key, get.with_cas, get.touch);
            if self.is_full() {
                let rest = PendingMultiGet::of(kind, keys);
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
        let expires_ms = touch.map(|expiry| self.expires_ms(expiry));
        let Self { shared, out, now_ms, .. } = self;
        let hash = shared.cache.hash(key);
        let write = |item: Item<'_>| {
            out.reserve(key.len() + item.value.len() + 64);
            compose_value(out, key, item.flags, item.value.len(), with_cas.then_some(item.version));
            out.extend_from_slice(item.value);
            compose_value_end(out);
        };
        if let Some(expires_ms) = expires_ms {
            let mut held = shared.cache.hold(key, hash);
            let found = held.get(*now_ms, write).is_some();
            // As memcached has it, what ends by this is given out once more. Where there is no room for the time, the item is gone.
            let _ = held.expire(expires_ms, *now_ms);
            drop(held);
            self.done(if found { Done::TouchHits } else { Done::TouchMisses });
        } else {
            shared.cache.get(key, hash, *now_ms, write);
        }
    }

    /// The millisecond from which on an item is gone; 0: never.
    pub(super) fn expires_ms(&self, expiry: Expiry) -> u64 {
        match expiry {
            Expiry::Never => 0,
            // Long ago.
            Expiry::Past => 1,
            // Whole seconds, as memcached counts them, and not before its time.
            Expiry::AfterS(seconds) => (self.now_ms.div_ceil(1000) + u64::from(seconds)) * 1000,
            Expiry::AtUnixS(seconds) => u64::from(seconds) * 1000,
        }
    }

    #[inline]
    fn text_store(&mut self, store: &Store<'_>) {
        if let Some(flags) = store.meta {
            return self.meta_set(store, flags);
        }
        let meta = Meta { flags: store.client_flags, expires_ms: self.expires_ms(store.expiry) };
        let cache = &self.shared.cache;
        let stored =
            cache.store(mode(store.verb, store.cas), store.key, cache.hash(store.key), store.data, meta, self.now_ms);
        if store.verb == Verb::Cas {
            self.cas_done(&stored);
        }
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
                let found = cache.delete(key, cache.hash(key), self.now_ms);
                if !found {
                    self.done(Done::DeleteMisses);
                }
                self.say(noreply, if found { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" });
            }
            Command::Count { key, delta, down, noreply } => {
                let counted = self.count(key, delta, down);
                self.done(match (&counted, down) {
                    (Counted::NotFound, true) => Done::DecrMisses,
                    (Counted::NotFound, false) => Done::IncrMisses,
                    (_, true) => Done::DecrHits,
                    (_, false) => Done::IncrHits,
                });
                match counted {
                    Counted::Value(value) if !noreply => compose_number(&mut self.out, value),
                    Counted::Value(_) => {}
                    Counted::NotFound => self.say(noreply, b"NOT_FOUND\r\n"),
                    Counted::NonNumeric => self.say(noreply, NON_NUMERIC),
                    Counted::Refused(refusal) => self.say(noreply, error(&refusal)),
                }
            }
            Command::Touch { key, expiry, noreply } => {
                let touched = cache.touch(key, cache.hash(key), self.expires_ms(expiry), self.now_ms);
                self.done(if touched == Ok(true) { Done::TouchHits } else { Done::TouchMisses });
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
                self.done(Done::Flush);
                self.flush(delay_s);
                self.say(noreply, b"OK\r\n");
            }
            Command::Verbosity { noreply } => self.say(noreply, b"OK\r\n"),
            Command::Version => {
                self.out.extend_from_slice(b"VERSION ");
                self.out.extend_from_slice(MEMCACHED_VERSION.as_bytes());
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
        cache.outdate(key, cache.hash(key), self.now_ms);
    }

    fn say(&mut self, noreply: bool, line: &[u8]) {
        if !noreply {
            self.out.extend_from_slice(line);
        }
    }

    fn count(&self, key: &[u8], delta: u64, down: bool) -> Counted {
        let cache = &self.shared.cache;
        let counted = cache.update(key, cache.hash(key), self.now_ms, |item| match counted(item.value, delta, down) {
            Some(value) => (Some(written_over(item.value, value)), Some(value)),
            None => (None, None),
        });
        match counted {
            Ok(Some(Some(value))) => Counted::Value(value),
            Ok(Some(None)) => Counted::NonNumeric,
            Ok(None) => Counted::NotFound,
            Err(refusal) => Counted::Refused(refusal),
        }
    }

    // The meta commands. Source: memcached 1.6.18, `proto_text.c`.

    fn meta_get(&mut self, key: &[u8], flags: Flags<'_>) {
        self.done(Done::Meta);
        if flags.has(b'l') && !self.shared.config.access_times {
            return self.out.extend_from_slice(NOT_KEPT);
        }
        let mut room = [0; KEY_ROOM];
        let name = decoded(key, &flags, &mut room);
        if flags.has(b'v') && self.lacks_memory_for(name) {
            return self.out.extend_from_slice(b"SERVER_ERROR out of memory writing get response\r\n");
        }
        let times = Times { of: self, may_expire: flags.has(b'T') || flags.has(b'N') };
        let recache_ms = flags.expiry(b'R').map_or(0, |expiry| times.of.expires_ms(expiry));
        let (touched, vivified) = times.of_flags(&flags);
        let is_peek = flags.has(b'u');
        let Self { shared, out, now_ms, .. } = self;
        let now_ms = *now_ms;
        let mut held = shared.cache.hold(name, shared.cache.hash(name));
        let mut is_new = false;
        if vivified.is_some() && held.peek(now_ms, |_| ()).is_none() {
            if let Err(refusal) = held.store(Mode::Set, b"", Meta::default(), now_ms) {
                return out.extend_from_slice(error(&refusal));
            }
            is_new = true;
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
            let vivified = vivified.filter(|_| is_new);
            let said = Said { letters: b"cfhlst", expires_ms: item.expires_ms, touched, vivified, recache_ms, now_ms };
            let said = said.push(out, &flags, key, &item);
            let Marks { claimed, stale, .. } = item.marks;
            let wins = !claimed && (said.wins || stale);
            [(claimed, b" Z"), (stale, b" X"), (wins, b" W")]
                .iter()
                .filter(|(is_so, _)| *is_so)
                .for_each(|(_, text)| out.extend_from_slice(*text));
            out.extend_from_slice(b"\r\n");
            if with_value {
                out.extend_from_slice(item.value);
                out.extend_from_slice(b"\r\n");
            }
            (said.expires_ms != item.expires_ms)
                .then_some(said.expires_ms)
                .map_or((None, wins), |expires_ms| (Some(expires_ms), wins))
        };
        let found = if is_peek { held.peek(now_ms, write) } else { held.get(now_ms, write) };
        match found {
            Some((expires_ms, wins)) => {
                if wins {
                    held.mark(now_ms, |marks| Marks { claimed: true, ..marks });
                }
                if let Some(expires_ms) = expires_ms {
                    // Where there is no room for the time, the item is gone, and is missed from now on.
                    let _ = held.expire(expires_ms, now_ms);
                }
                if flags.has(b'T') {
                    drop(held);
                    self.done(Done::TouchHits);
                }
            }
            None if flags.has(b'q') => {}
            None => push_miss(out, b"EN", &flags, key),
        }
    }

    fn meta_set(&mut self, store: &Store<'_>, flags: Flags<'_>) {
        self.done(Done::Meta);
        let mut meta = Meta { flags: store.client_flags, expires_ms: self.expires_ms(store.expiry) };
        let vivified = flags.expiry(b'N').map(|expiry| self.expires_ms(expiry));
        let mut room = [0; KEY_ROOM];
        let name = decoded(store.key, &flags, &mut room);
        let cache = &self.shared.cache;
        let mut held = cache.hold(name, cache.hash(name));
        let before = held.peek(self.now_ms, |item| (item.version, item.expires_ms, item.marks));
        let stored = match (store.cas, before) {
            (Some(_), None) => Err(Refusal::NotFound),
            (Some(_), Some((0, ..))) => Err(Refusal::NoVersions),
            // Older than what is there, and welcome as that.
            (Some(asked), Some((found, expires_ms, marks))) if asked < found && flags.has(b'I') => {
                meta.expires_ms = expires_ms;
                let stored = held.store(mode(store.verb, None), store.data, meta, self.now_ms);
                if stored.is_ok() {
                    held.mark(self.now_ms, |_| Marks { stale: true, claimed: marks.claimed, fetched: false });
                }
                stored
            }
            (Some(asked), Some((found, ..))) if asked != found => Err(Refusal::Exists { asked, found }),
            (_, None) if matches!(store.verb, Verb::Append | Verb::Prepend) && vivified.is_some() => {
                let meta = Meta { expires_ms: vivified.unwrap_or(0), ..meta };
                held.store(Mode::Set, store.data, meta, self.now_ms)
            }
            _ => held.store(mode(store.verb, None), store.data, meta, self.now_ms),
        };
        drop(held);
        if store.cas.is_some() {
            self.cas_done(&stored);
        }
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
        let (marks, used_s) = Default::default();
        let item = Item { value: b"", flags: 0, expires_ms: 0, version, marks, used_s };
        Said { letters: b"c", ..Said::default() }.push(&mut self.out, &flags, store.key, &item);
        self.out.extend_from_slice(b"\r\n");
    }

    fn meta_delete(&mut self, key: &[u8], flags: Flags<'_>) {
        self.done(Done::Meta);
        let expires_ms = flags.expiry(b'T').map(|expiry| self.expires_ms(expiry));
        let mut room = [0; KEY_ROOM];
        let name = decoded(key, &flags, &mut room);
        let cache = &self.shared.cache;
        let mut held = cache.hold(name, cache.hash(name));
        let asked = flags.number(b'C').map(i64::cast_unsigned);
        let word: &[u8] = match (asked, held.peek(self.now_ms, |item| item.version)) {
            (_, None) => b"NF",
            (Some(_), Some(0)) => return self.out.extend_from_slice(error(&Refusal::NoVersions)),
            (Some(asked), Some(found)) if asked != found => b"EX",
            _ if flags.has(b'I') => {
                held.mark(self.now_ms, |marks| Marks { stale: true, claimed: false, ..marks });
                held.renew(self.now_ms);
                if let Some(expires_ms) = expires_ms {
                    let _ = held.expire(expires_ms, self.now_ms);
                }
                b"HD"
            }
            _ => {
                held.delete(self.now_ms);
                b"HD"
            }
        };
        drop(held);
        if word == b"NF" {
            self.done(Done::DeleteMisses);
        }
        if flags.has(b'q') && word == b"HD" {
            return;
        }
        push_miss(&mut self.out, word, &flags, key);
    }

    fn meta_count(&mut self, key: &[u8], flags: Flags<'_>, down: bool) {
        self.done(Done::Meta);
        let delta = flags.number(b'D').map_or(1, i64::cast_unsigned);
        let (touched, vivified) = Times { of: self, may_expire: true }.of_flags(&flags);
        let (hits, misses) = if down { (Done::DecrHits, Done::DecrMisses) } else { (Done::IncrHits, Done::IncrMisses) };
        let Self { shared, out, now_ms, thread, .. } = self;
        let now_ms = *now_ms;
        let counters = &shared.threads[*thread];
        let mut room = [0; KEY_ROOM];
        let name = decoded(key, &flags, &mut room);
        let mut held = shared.cache.hold(name, shared.cache.hash(name));
        let asked = flags.number(b'C').map(i64::cast_unsigned);
        let found = held.peek(now_ms, |item| (item.version, counted(item.value, delta, down)));
        counters.done(if found.is_some() { hits } else { misses });
        let mut text = Vec::new();
        let done = match (found, vivified) {
            (None, None) => return push_miss(out, b"NF", &flags, key),
            (None, Some(_)) => {
                number::push(&mut text, flags.number(b'J').map_or(0, i64::cast_unsigned));
                held.store(Mode::Set, &text, Meta::default(), now_ms).map(drop)
            }
            (Some((found, _)), _) if asked.is_some_and(|asked| asked != found) => {
                return push_miss(out, b"EX", &flags, key);
            }
            (Some((_, None)), _) => return out.extend_from_slice(NON_NUMERIC),
            (Some((_, Some(value))), _) => {
                number::push(&mut text, value);
                held.update(now_ms, |item| (Some(written_over(item.value, value)), ())).map(drop)
            }
        };
        if let Err(refusal) = done {
            return out.extend_from_slice(error(&refusal));
        }
        let vivified = vivified.filter(|_| found.is_none());
        let said = held.peek(now_ms, |item| {
            let start = out.len();
            if flags.has(b'v') {
                out.extend_from_slice(b"VA ");
                number::push(out, text.len() as u64);
            } else {
                out.extend_from_slice(b"HD");
            }
            let said = Said { letters: b"ct", expires_ms: item.expires_ms, touched, vivified, recache_ms: 0, now_ms };
            let expires_ms = said.push(out, &flags, key, &item).expires_ms;
            out.extend_from_slice(b"\r\n");
            if flags.has(b'v') {
                out.extend_from_slice(&text);
                out.extend_from_slice(b"\r\n");
            }
            // As memcached: what was begun anew is told.
            if flags.has(b'q') && found.is_some() {
                out.truncate(start);
            }
            (expires_ms != item.expires_ms).then_some(expires_ms)
        });
        if let Some(Some(expires_ms)) = said {
            let _ = held.expire(expires_ms, now_ms);
        }
    }

    fn meta_debug(&mut self, key: &[u8], flags: Flags<'_>) {
        self.done(Done::Meta);
        let Self { shared, out, now_ms, .. } = self;
        let now_ms = *now_ms;
        let mut room = [0; KEY_ROOM];
        let name = decoded(key, &flags, &mut room);
        let found = shared.cache.peek(name, shared.cache.hash(name), now_ms, |item| {
            out.extend_from_slice(b"ME ");
            out.extend_from_slice(key);
            // As memcached has it: what is left, with a minus sign.
            out.extend_from_slice(b" exp=-");
            number::push(out, if item.expires_ms == 0 { 1 } else { left_s(item.expires_ms, now_ms) });
            if let Some(used_s) = item.used_s {
                out.extend_from_slice(b" la=");
                number::push(out, (now_ms / 1000).saturating_sub(u64::from(used_s)));
            }
            out.extend_from_slice(b" cas=");
            number::push(out, item.version);
            out.extend_from_slice(if item.marks.fetched { b" fetch=yes".as_slice() } else { b" fetch=no" });
            out.extend_from_slice(b" cls=1 size=");
            number::push(out, (name.len() + item.value.len()) as u64);
            out.extend_from_slice(b"\r\n");
        });
        if found.is_none() {
            out.extend_from_slice(b"EN\r\n");
        }
    }

    fn done(&self, what: Done) {
        self.shared.threads[self.thread].done(what);
    }

    /// What became of a compare-and-swap.
    fn cas_done(&self, stored: &Result<u64, Refusal>) {
        match stored {
            Ok(_) => self.done(Done::CasHits),
            Err(Refusal::NotFound) => self.done(Done::CasMisses),
            Err(Refusal::Exists { .. }) => self.done(Done::CasBadval),
            Err(_) => {}
        }
    }
}

/// What flags say of times.
struct Times<'a> {
    of: &'a Executor,
    /// Whether they say anything.
    may_expire: bool,
}

impl Times<'_> {
    /// Of `T` and of `N`.
    fn of_flags(&self, flags: &Flags<'_>) -> (Option<u64>, Option<u64>) {
        if !self.may_expire {
            return (None, None);
        }
        let of = |letter| flags.expiry(letter).map(|expiry| self.of.expires_ms(expiry));
        (of(b'T'), of(b'N'))
    }
}

/// What the flags of a request ask of its answer, and how far that was said.
#[derive(Clone, Copy, Default)]
struct Said {
    /// The flags that the command answers.
    letters: &'static [u8],
    /// When the item ends: flags that change it come among those that ask for it.
    expires_ms: u64,
    touched: Option<u64>,
    vivified: Option<u64>,
    recache_ms: u64,
    now_ms: u64,
}

/// What came of it.
struct Came {
    expires_ms: u64,
    /// Whoever asked is to renew the item.
    wins: bool,
}

impl Said {
    /// Appends what is asked for, in the order of the flags.
    #[inline]
    fn push(self, out: &mut Vec<u8>, flags: &Flags<'_>, key: &[u8], item: &Item<'_>) -> Came {
        let mut came = Came { expires_ms: self.expires_ms, wins: false };
        for (letter, argument) in flags.iter() {
            match letter {
                b'O' => push_word(out, b'O', argument),
                // As memcached: that a key is in base64 is said behind the key.
                b'k' => {
                    push_word(out, b'k', key);
                    if flags.has(b'b') {
                        push_word(out, b'b', b"");
                    }
                }
                b'T' => came.expires_ms = self.touched.unwrap_or(came.expires_ms),
                b'N' => {
                    came.expires_ms = self.vivified.unwrap_or(came.expires_ms);
                    came.wins |= self.vivified.is_some();
                }
                b'R' => {
                    let ends = came.expires_ms;
                    came.wins |= self.vivified.is_none() && ends != 0 && ends < self.recache_ms;
                }
                _ if !self.letters.contains(&letter) => {}
                b'c' => push_number(out, b'c', item.version),
                b'f' => push_number(out, b'f', u64::from(item.flags)),
                b'h' => push_number(out, b'h', u64::from(item.marks.fetched)),
                b'l' => {
                    let used_s = item.used_s.map_or(0, u64::from);
                    push_number(out, b'l', (self.now_ms / 1000).saturating_sub(used_s));
                }
                b's' => push_number(out, b's', item.value.len() as u64),
                b't' if came.expires_ms == 0 => out.extend_from_slice(b" t-1"),
                b't' => push_number(out, b't', left_s(came.expires_ms, self.now_ms)),
                _ => {}
            }
        }
        came
    }
}

/// Appends an answer of an item that is not there, or of which nothing is said.
fn push_miss(out: &mut Vec<u8>, word: &[u8], flags: &Flags<'_>, key: &[u8]) {
    out.extend_from_slice(word);
    let (marks, used_s) = Default::default();
    let item = Item { value: b"", flags: 0, expires_ms: 0, version: 0, marks, used_s };
    Said::default().push(out, flags, key, &item);
    out.extend_from_slice(b"\r\n");
}

/// The key that is meant.
fn decoded<'a>(key: &'a [u8], flags: &Flags<'_>, room: &'a mut [u8; KEY_ROOM]) -> &'a [u8] {
    // The reader has found it to be base64.
    if flags.has(b'b') { decode_key(key, room).unwrap_or(key) } else { key }
}

fn push_word(out: &mut Vec<u8>, letter: u8, text: &[u8]) {
    out.extend_from_slice(&[b' ', letter]);
    out.extend_from_slice(text);
}

fn push_number(out: &mut Vec<u8>, letter: u8, value: u64) {
    out.extend_from_slice(&[b' ', letter]);
    number::push(out, value);
}

/// The whole seconds that are left.
fn left_s(expires_ms: u64, now_ms: u64) -> u64 {
    expires_ms.saturating_sub(now_ms) / 1000
}

/// The text that `value` becomes in the place of `before`: as long, with spaces behind it, where it fits. Source: memcached 1.6.18,
/// `do_add_delta`.
fn written_over(before: &[u8], value: u64) -> Vec<u8> {
    let mut text = Vec::with_capacity(before.len().max(20));
    number::push(&mut text, value);
    if text.len() < before.len() {
        text.resize(before.len(), b' ');
    }
    text
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
    let value = number::unsigned_of_c(value)?;
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
