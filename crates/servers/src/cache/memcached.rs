//! memcached's text protocol. Source: protocol.txt and the behavior of memcached 1.6.18.

use std::io::Write;
use std::sync::atomic::Ordering;

use cache::{Meta, Mode, Refusal};
use wire::decimal;
use wire::memcached::{Command, Get, Read, Store, Verb, compose_number, compose_value, expires_ms};

use super::connection_state::{CloseState, Connection, MultiGetKind, ProtocolState};
use super::executor::Executor;

/// The emulated version of memcached, which tells clients what they can send, followed by quintain's own version.
const MEMCACHED_VERSION: &str = concat!("1.6.18 (quintain ", env!("CARGO_PKG_VERSION"), ")");
const NON_NUMERIC: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";

impl Executor {
    /// Executes a request. Returns the number of bytes used.
    pub(super) fn take_memcached(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let ProtocolState::Memcached(reader) = &mut connection.state.protocol else { return 0 };
        let mut read = reader.read(bytes);
        let mut skipped = 0;
        if let Read::Need { used, more } = read
            && !self.reserve(connection, bytes.len() - used + more)
            && let ProtocolState::Memcached(reader) = &mut connection.state.protocol
        {
            let Some(refused) = reader.refuse_unfinished(&bytes[used..]) else {
                self.out_of_memory(connection);
                return bytes.len();
            };
            (read, skipped) = (refused, used);
            connection.state.unfinished = 0;
        }
        match read {
            Read::Command { used, command, noreply } => {
                match command {
                    Command::Get(Get { keys, with_cas, touch }) => {
                        let kind = MultiGetKind::Memcached { with_cas, touch };
                        let rest = self.push_values(kind, keys);
                        if rest.is_none() {
                            self.out.extend_from_slice(b"END\r\n");
                        }
                        (connection.blocked, connection.state.rest) = (rest.is_some(), rest);
                    }
                    Command::Store(store) => self.text_store(&store, noreply),
                    Command::Quit => connection.over = CloseState::Answered { linger: false },
                    other => self.text_other(other, noreply),
                }
                used
            }
            Read::Need { used, more } => {
                connection.state.lacks = more;
                used
            }
            Read::Refused { used, reply, noreply, close, outdated } => {
                if let Some(key) = outdated {
                    self.shared.cache.hold(key).outdate(self.now_ms);
                }
                if !noreply {
                    self.out.extend_from_slice(reply);
                }
                if close {
                    connection.over = CloseState::Answered { linger: true };
                }
                skipped + used
            }
        }
    }

    pub(super) fn text_value(&mut self, key: &[u8], with_cas: bool, touch: Option<i32>) {
        let Self { shared, out, now_ms, .. } = self;
        let mut held = shared.cache.hold(key);
        if let Some(item) = held.get(*now_ms) {
            out.reserve(key.len() + item.value.len() + 64);
            compose_value(out, key, item.meta.flags, item.value, with_cas.then_some(item.version));
        }
        if let Some(exptime) = touch {
            // Like memcached, return an item that this touch expires. Without memory for the expiry, drop the item.
            let _ = held.expire(expires_ms(exptime, *now_ms), *now_ms);
        }
    }

    fn text_store(&mut self, store: &Store<'_>, noreply: bool) {
        let meta = Meta { flags: store.client_flags, expires_ms: expires_ms(store.exptime, self.now_ms) };
        let mode = mode(store.verb, store.cas);
        let stored = self.shared.cache.hold(store.key).store(mode, store.data, meta, self.now_ms);
        if noreply {
            return;
        }
        self.out.extend_from_slice(match &stored {
            Ok(_) => b"STORED\r\n",
            Err(refusal) => error(refusal),
        });
    }

    fn text_other(&mut self, command: Command<'_>, noreply: bool) {
        let cache = &self.shared.cache;
        let reply: &[u8] = match command {
            Command::Delete(key) => {
                let found = cache.hold(key).delete(self.now_ms);
                if found { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" }
            }
            Command::Count { key, delta, down } => {
                let counted = cache.hold(key).update(self.now_ms, |item| match counted(item.value, delta, down) {
                    Some(value) => (Some(written_over(item.value, value)), Some(value)),
                    None => (None, None),
                });
                match &counted {
                    Ok(Some(Some(_))) if noreply => return,
                    Ok(Some(Some(value))) => return compose_number(&mut self.out, *value),
                    Ok(Some(None)) => NON_NUMERIC,
                    Ok(None) => b"NOT_FOUND\r\n",
                    Err(refusal) => error(refusal),
                }
            }
            Command::Touch { key, exptime } => {
                let touched = cache.hold(key).touch(expires_ms(exptime, self.now_ms), self.now_ms);
                match touched {
                    Ok(true) => b"TOUCHED\r\n",
                    Ok(false) => b"NOT_FOUND\r\n",
                    Err(refusal) => error(&refusal),
                }
            }
            Command::FlushAll(delay_s) => {
                self.flush(delay_s);
                b"OK\r\n"
            }
            Command::Verbosity => b"OK\r\n",
            Command::Version => {
                let line = format!("VERSION {MEMCACHED_VERSION}\r\n");
                return self.out.extend_from_slice(line.as_bytes());
            }
            Command::Stats(b"") => return self.memcached_stats(),
            Command::Stats(_) => b"ERROR\r\n",
            Command::Noop => b"MN\r\n",
            Command::Get(_) | Command::Store(_) | Command::Quit => return, // Handled in `take_memcached`.
        };
        if !noreply {
            self.out.extend_from_slice(reply);
        }
    }

    fn memcached_stats(&mut self) {
        let shared = &self.shared;
        let (stats, config) = (shared.cache.stats(), &shared.config);
        for (name, value) in [
            ("pid", u64::from(std::process::id())),
            ("time", u64::from(self.now_s)),
            ("curr_connections", shared.open.load(Ordering::Relaxed) as u64),
            ("threads", config.threads as u64),
            ("limit_maxbytes", config.capacity_bytes),
            ("cmd_get", stats.hits + stats.misses),
            ("cmd_set", stats.stores),
            ("get_hits", stats.hits),
            ("get_misses", stats.misses),
            ("delete_hits", stats.deletes),
            ("bytes", stats.item_bytes()),
            ("curr_items", stats.items),
            ("total_items", stats.stored),
            ("evictions", stats.evictions),
            ("expired", stats.expired),
            ("refused", stats.refused),
            ("key_bytes", stats.key_bytes),
            ("value_bytes", stats.value_bytes),
            ("memory_bytes", stats.memory_bytes()),
        ] {
            let _ = write!(self.out, "STAT {name} {value}\r\n");
        }
        let _ = write!(self.out, "STAT version {MEMCACHED_VERSION}\r\nEND\r\n");
    }
}

/// The digits of `value`, padded with spaces to the length of `before`, as in memcached 1.6.18's `do_add_delta`.
fn written_over(before: &[u8], value: u64) -> Vec<u8> {
    let mut text = Vec::with_capacity(before.len().max(20));
    decimal::push(&mut text, value);
    text.resize(text.len().max(before.len()), b' ');
    text
}

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

/// Returns the result of `incr`, which wraps at 2^64, or `decr`, which stops at 0. `None` if `value` is not a number.
fn counted(value: &[u8], delta: u64, down: bool) -> Option<u64> {
    let value = decimal::unsigned_of_c(value)?;
    Some(if down { value.saturating_sub(delta) } else { value.wrapping_add(delta) })
}

fn error(refusal: &Refusal) -> &'static [u8] {
    match refusal {
        Refusal::Full { .. } => b"SERVER_ERROR out of memory storing object\r\n",
        Refusal::ValueTooLong { .. } => b"SERVER_ERROR object too large for cache\r\n",
        Refusal::NoVersions => b"SERVER_ERROR this cache keeps no cas\r\n",
        Refusal::KeyEmpty | Refusal::KeyTooLong { .. } => b"CLIENT_ERROR bad command line format\r\n",
        Refusal::NotStored => b"NOT_STORED\r\n",
        Refusal::NotFound => b"NOT_FOUND\r\n",
        Refusal::Exists { .. } => b"EXISTS\r\n",
    }
}
