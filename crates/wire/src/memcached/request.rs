//! Reads requests on the server side. Requests can arrive in pieces.

use super::Limits;
use crate::decimal;

/// Maximum relative exptime, 30 days in seconds; a larger exptime is an absolute time.
const RELATIVE_MAX_S: i32 = 60 * 60 * 24 * 30;

/// Returns the Unix time of expiration in ms; 0 means never. A negative exptime has already expired. Rounds a relative
/// exptime up to a whole second, as memcached counts, so that no item expires early. Source: protocol.txt, "Expiration
/// times".
pub fn expires_ms(exptime: i32, now_ms: u64) -> u64 {
    match exptime {
        0 => 0,
        ..0 => 1,
        1..=RELATIVE_MAX_S => (now_ms.div_ceil(1000) + exptime as u64) * 1000,
        _ => exptime as u64 * 1000,
    }
}

/// The keys of a request in order: at least one, each within the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys<'a> {
    /// The next key; `None` if no keys remain.
    next: Option<&'a [u8]>,
    rest: &'a [u8],
}

impl<'a> Keys<'a> {
    fn new(words: &'a [u8]) -> Keys<'a> {
        let (next, rest) = next_word(words).unzip();
        Keys { next, rest: rest.unwrap_or_default() }
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let next = self.next?;
        *self = Keys::new(self.rest);
        Some(next)
    }
}

/// The arguments of `get`, `gets`, `gat` and `gats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Get<'a> {
    /// The requested keys, in order.
    pub keys: Keys<'a>,
    /// Whether to return the cas unique of each item (`gets`, `gats`).
    pub with_cas: bool,
    /// The new exptime of each item (`gat`, `gats`); `None` keeps the old one.
    pub touch: Option<i32>,
}

/// The kind of a storage command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Stores unconditionally (`set`).
    Set,
    /// Stores if the key is absent (`add`).
    Add,
    /// Stores if the key is present (`replace`).
    Replace,
    /// Appends to the existing value and ignores flags and exptime (`append`).
    Append,
    /// Prepends to the existing value and ignores flags and exptime (`prepend`).
    Prepend,
    /// Stores if the item has not changed since it was read (`cas`).
    Cas,
}

/// The arguments of a storage command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Store<'a> {
    /// Kind of the storage command.
    pub verb: Verb,
    /// Key under which the value is stored.
    pub key: &'a [u8],
    /// 32 bits for the client's use, returned with the value.
    pub client_flags: u32,
    /// Exptime of the item, for [`expires_ms`].
    pub exptime: i32,
    /// The cas unique from an earlier read; `None` for commands other than `cas`.
    pub cas: Option<u64>,
    /// The value, without its CRLF.
    pub data: &'a [u8],
}

/// A parsed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// Reads items (`get`, `gets`, `gat`, `gats`).
    Get(Get<'a>),
    /// Stores an item (`set`, `add`, `replace`, `append`, `prepend`, `cas`).
    Store(Store<'a>),
    /// Deletes the item of this key (`delete`).
    Delete(&'a [u8]),
    /// Changes a number (`incr`, `decr`).
    Count {
        /// Key of the item that contains the number.
        key: &'a [u8],
        /// The amount of the change. Increments wrap at 2^64, and decrements stop at 0.
        delta: u64,
        /// Whether to decrement instead of increment.
        down: bool,
    },
    /// Sets a new expiration time (`touch`).
    Touch {
        /// Key of the item.
        key: &'a [u8],
        /// The new exptime of the item.
        exptime: i32,
    },
    /// Deletes all items (`flush_all`) after this delay in seconds; 0 means now. A negative delay counts as 0.
    FlushAll(u32),
    /// Requests the server's version (`version`).
    Version,
    /// Requests a log level (`verbosity`); has no effect except the response `OK`.
    Verbosity,
    /// Requests statistics (`stats`). Contains the rest of the line; empty for general statistics.
    Stats(&'a [u8]),
    /// Closes the connection without a response (`quit`).
    Quit,
    /// Marks the end of a pipeline with the response `MN` (`mn`, the only supported meta command).
    Noop,
}

/// Response to an unknown command, or to a wrong number of words.
const UNKNOWN_COMMAND: &[u8] = b"ERROR\r\n";
/// Response to a key over the limit, or to an invalid number.
const BAD_LINE: &[u8] = b"CLIENT_ERROR bad command line format\r\n";
const LINE_TOO_LONG: &[u8] = b"CLIENT_ERROR line too long\r\n";
const TOO_LARGE: &[u8] = b"SERVER_ERROR object too large for cache\r\n";
const OUT_OF_MEMORY: &[u8] = b"SERVER_ERROR out of memory storing object\r\n";
const BAD_CHUNK: &[u8] = b"CLIENT_ERROR bad data chunk\r\n";
const BAD_EXPTIME: &[u8] = b"CLIENT_ERROR invalid exptime argument\r\n";
const BAD_DELTA: &[u8] = b"CLIENT_ERROR invalid numeric delta argument\r\n";
const DELETE_WITH_TIME: &[u8] = b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";

/// The result of a read. `used` bytes can be discarded once the borrowed parts are no longer needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read<'a> {
    /// A complete request.
    Command {
        /// Number of input bytes that can be discarded.
        used: usize,
        /// The request, which borrows from the input.
        command: Command<'a>,
        /// Whether the client wants no response (`noreply`).
        noreply: bool,
    },
    /// The next request is incomplete.
    Need {
        /// Number of input bytes that were skipped and can be discarded.
        used: usize,
        /// Minimum number of additional bytes that the next call of `read` needs.
        more: usize,
    },
    /// A bad request, whose remaining bytes will be skipped.
    Refused {
        /// Number of input bytes that can be discarded.
        used: usize,
        /// The error line to respond with.
        reply: &'static [u8],
        /// Whether to send no response, not even the error.
        noreply: bool,
        /// Whether the connection must be closed, because the next request cannot be found. Later bytes are ignored.
        close: bool,
        /// The key whose old value must be removed because a `set` would have replaced it; otherwise, `None`.
        outdated: Option<&'a [u8]>,
    },
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// No line end has been found yet. Contains the number of bytes searched.
    Line(usize),
    /// A storage command whose line and block take this many bytes.
    Block(usize),
    /// A rejected block is being skipped; this many bytes of it are left.
    Swallow(u64),
    SwallowLine,
    Closed,
}

/// Reads a connection's requests. Keeps no bytes, only a position, so that each byte is scanned only once.
#[derive(Debug, Clone)]
pub struct RequestReader {
    limits: Limits,
    state: State,
}

/// A command, or the error line to respond with.
type Parsed<'a> = Result<Command<'a>, &'static [u8]>;

struct Line<'a> {
    /// The command; for a storage command, still without its value.
    command: Parsed<'a>,
    noreply: bool,
    /// Size in bytes of the block that follows; `None` if the line announces none.
    block_bytes: Option<u64>,
    /// The key whose old value must be removed if the new one is rejected.
    replaced: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    fn new(command: Parsed<'a>, noreply: bool) -> Line<'a> {
        Line { command, noreply, block_bytes: None, replaced: None }
    }
}

impl RequestReader {
    /// Creates a reader for a new connection.
    pub fn new(limits: Limits) -> RequestReader {
        RequestReader { limits, state: State::Line(0) }
    }

    /// Reads the next request from `bytes`, the unused part of the stream. The next call must get the bytes after
    /// `used`, plus new ones if the result is [`Read::Need`]. Results do not depend on how the stream is split.
    #[inline]
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Read<'a> {
        // Fast path for most requests: one key, received whole.
        if let State::Line(0) = self.state
            && let Some(read) = self.read_single_get(bytes)
        {
            return read;
        }
        self.read_any(bytes)
    }

    /// Rejects the incomplete block at the start of `bytes` and skips the rest of the block. Call it after
    /// [`Read::Need`] if the server has no memory for the value. Returns `None` if no block is incomplete.
    pub fn refuse_unfinished<'a>(&mut self, bytes: &'a [u8]) -> Option<Read<'a>> {
        let State::Block(total) = self.state else { return None };
        let line = &bytes[..memchr::memchr(b'\n', bytes)?];
        let Line { noreply, replaced, .. } = parse_line(line.strip_suffix(b"\r").unwrap_or(line), &self.limits);
        self.state = State::Swallow((total - bytes.len()) as u64);
        let reply = OUT_OF_MEMORY;
        Some(Read::Refused { used: bytes.len(), reply, noreply, close: false, outdated: replaced })
    }

    /// Reads `get key\r\n`. Returns `None` for any other request.
    fn read_single_get<'a>(&mut self, bytes: &'a [u8]) -> Option<Read<'a>> {
        let rest = bytes.strip_prefix(b"get ")?;
        let shown = &rest[..rest.len().min(self.limits.key_bytes + 2).min(self.limits.line_bytes.saturating_sub(4))];
        let end = memchr::memchr2(b' ', b'\n', shown)?;
        let key = shown[..end].strip_suffix(b"\r").unwrap_or(&shown[..end]);
        if shown[end] == b' ' || key.is_empty() || key.len() > self.limits.key_bytes {
            return None;
        }
        let get = Get { keys: Keys { next: Some(key), rest: b"" }, with_cas: false, touch: None };
        Some(Read::Command { used: 4 + end + 1, command: Command::Get(get), noreply: false })
    }

    fn read_any<'a>(&mut self, bytes: &'a [u8]) -> Read<'a> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            match self.state {
                State::Line(scanned) => return self.read_line(bytes, at, scanned.min(rest.len())),
                State::Block(total) if rest.len() < total => {
                    return Read::Need { used: at, more: total - rest.len() };
                }
                State::Block(_) => return self.read_line(bytes, at, 0),
                State::Swallow(left) if left > rest.len() as u64 => {
                    let left = left - rest.len() as u64;
                    self.state = State::Swallow(left);
                    return Read::Need { used: bytes.len(), more: 1 };
                }
                State::Swallow(left) => {
                    at += left as usize;
                    self.state = State::Line(0);
                }
                State::SwallowLine => match memchr::memchr(b'\n', rest) {
                    Some(end) => {
                        at += end + 1;
                        self.state = State::Line(0);
                    }
                    None => return Read::Need { used: bytes.len(), more: 1 },
                },
                State::Closed => return Read::Need { used: bytes.len(), more: 1 },
            }
        }
    }

    /// Reads the request whose line starts at `at`. The line's first `scanned` bytes contain no line end.
    fn read_line<'a>(&mut self, bytes: &'a [u8], at: usize, scanned: usize) -> Read<'a> {
        let rest = &bytes[at..];
        let limit = self.line_limit(rest);
        // Ignore bytes beyond the limit, so that results do not depend on how the stream is split.
        let shown = &rest[..rest.len().min(limit)];
        let Some(end) = memchr::memchr(b'\n', &shown[scanned.min(shown.len())..]).map(|end| end + scanned) else {
            if shown.len() == limit {
                let name = next_word(shown).map(|(name, _)| name);
                let close = matches!(name, Some(b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas"));
                self.state = if close { State::Closed } else { State::SwallowLine };
                let reply = LINE_TOO_LONG;
                return Read::Refused { used: at + shown.len(), reply, noreply: false, close, outdated: None };
            }
            self.state = State::Line(rest.len());
            return Read::Need { used: at, more: 1 };
        };
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        let line_bytes = end + 1;
        self.state = State::Line(0);
        let Line { command, noreply, block_bytes, replaced } = parse_line(line, &self.limits);
        match (command, block_bytes) {
            (Ok(Command::Store(mut store)), Some(block_bytes)) => {
                let total = line_bytes.saturating_add(block_bytes as usize).saturating_add(2);
                if rest.len() < total {
                    self.state = State::Block(total);
                    return Read::Need { used: at, more: total - rest.len() };
                }
                if &rest[total - 2..total] != b"\r\n" {
                    return Read::Refused { used: at + total, reply: BAD_CHUNK, noreply, close: false, outdated: None };
                }
                store.data = &rest[line_bytes..total - 2];
                Read::Command { used: at + total, command: Command::Store(store), noreply }
            }
            (Ok(command), _) => Read::Command { used: at + line_bytes, command, noreply },
            (Err(reply), block_bytes) => {
                let close = block_bytes.is_some_and(|bytes| bytes > self.limits.swallow_bytes);
                if let Some(block_bytes) = block_bytes {
                    self.state = if close { State::Closed } else { State::Swallow(block_bytes.saturating_add(2)) };
                }
                let outdated = replaced.filter(|_| reply == TOO_LARGE);
                Read::Refused { used: at + line_bytes, reply, noreply, close, outdated }
            }
        }
    }

    /// Returns the maximum size in bytes of the line that starts `rest`. Examines only bytes within the smaller limit.
    fn line_limit(&self, rest: &[u8]) -> usize {
        let Limits { line_bytes, get_line_bytes, .. } = self.limits;
        if rest.len() < line_bytes || get_line_bytes <= line_bytes {
            return line_bytes;
        }
        match next_word(&rest[..line_bytes]) {
            Some((b"get" | b"gets" | b"gat" | b"gats", after)) if !after.is_empty() => get_line_bytes,
            _ => line_bytes,
        }
    }
}

fn next_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = line.iter().position(|&byte| byte != b' ')?;
    let line = &line[start..];
    let end = memchr::memchr(b' ', line).unwrap_or(line.len());
    Some((&line[..end], &line[end..]))
}

/// Number of words that are kept. Only `get` and its variants can have more.
const WORDS_MAX: usize = 7;

/// Splits a line into words. Returns the first of them, the number of all, and whether the last one is `noreply` and
/// follows at least `wanted` words.
fn split_words(mut line: &[u8], wanted: usize) -> ([&[u8]; WORDS_MAX], usize, bool) {
    let (mut words, mut count, mut last) = ([b"".as_slice(); WORDS_MAX], 0, b"".as_slice());
    while let Some((word, rest)) = next_word(line) {
        if let Some(place) = words.get_mut(count) {
            *place = word;
        }
        (last, line) = (word, rest);
        count += 1;
    }
    (words, count, last == b"noreply" && count > wanted)
}

fn parse_line<'a>(line: &'a [u8], limits: &Limits) -> Line<'a> {
    let (name, rest) = next_word(line).unwrap_or_default();
    let command = match name {
        b"get" => get(rest, false, false, limits),
        b"gets" => get(rest, true, false, limits),
        b"gat" => get(rest, false, true, limits),
        b"gats" => get(rest, true, true, limits),
        b"set" => return store(Verb::Set, rest, limits),
        b"add" => return store(Verb::Add, rest, limits),
        b"replace" => return store(Verb::Replace, rest, limits),
        b"append" => return store(Verb::Append, rest, limits),
        b"prepend" => return store(Verb::Prepend, rest, limits),
        b"cas" => return store(Verb::Cas, rest, limits),
        b"delete" | b"incr" | b"decr" | b"touch" => return on_a_key(name, rest, limits),
        b"flush_all" | b"verbosity" => return on_the_server(name, rest),
        b"version" => Ok(Command::Version),
        b"quit" => Ok(Command::Quit),
        b"stats" => Ok(Command::Stats(rest.trim_ascii())),
        b"mn" => Ok(Command::Noop),
        _ => Err(UNKNOWN_COMMAND),
    };
    Line::new(command, false)
}

fn get<'a>(rest: &'a [u8], with_cas: bool, has_exptime: bool, limits: &Limits) -> Parsed<'a> {
    let (exptime, words) = match next_word(rest) {
        Some((word, behind)) if has_exptime => (Some(word), behind),
        _ => (None, rest),
    };
    let keys = Keys::new(words);
    if { keys }.any(|key| key.len() > limits.key_bytes) {
        return Err(BAD_LINE);
    }
    if { keys }.next().is_none() {
        return Err(UNKNOWN_COMMAND);
    }
    let touch = exptime.map(|exptime| parse_exptime(exptime).ok_or(BAD_EXPTIME)).transpose()?;
    Ok(Command::Get(Get { keys, with_cas, touch }))
}

/// Parses an exptime. Keeps the low 32 bits, like memcached.
fn parse_exptime(word: &[u8]) -> Option<i32> {
    decimal::signed_of_c(word).map(|seconds| seconds as i32)
}

/// Parses the words of a storage command: `set key flags exptime bytes [cas] [noreply]`.
fn store<'a>(verb: Verb, rest: &'a [u8], limits: &Limits) -> Line<'a> {
    let wanted = if verb == Verb::Cas { 5 } else { 4 };
    let ([key, flags, exptime, bytes, cas, ..], count, noreply) = split_words(rest, wanted);
    // The announced block follows even if the line is invalid.
    let block_bytes = if count >= 4 { decimal::unsigned(bytes) } else { None };
    let cas = if verb == Verb::Cas { decimal::unsigned_of_c(cas) } else { None };
    let has_cas = cas.is_some() || verb != Verb::Cas;
    let command = match (decimal::unsigned_of_c(flags), parse_exptime(exptime), block_bytes) {
        _ if count < wanted || count > wanted + 1 => Err(UNKNOWN_COMMAND),
        (Some(flags), Some(exptime), Some(bytes)) if key.len() <= limits.key_bytes && has_cas => {
            let store = Store { verb, key, client_flags: flags as u32, exptime, cas, data: b"" };
            if bytes <= limits.value_bytes as u64 { Ok(Command::Store(store)) } else { Err(TOO_LARGE) }
        }
        _ => Err(BAD_LINE),
    };
    // Only a `set` drops the old value, as in memcached 1.6.18.
    Line { command, noreply, block_bytes, replaced: (verb == Verb::Set).then_some(key) }
}

fn on_a_key<'a>(name: &[u8], rest: &'a [u8], limits: &Limits) -> Line<'a> {
    let wanted = if name == b"delete" { 1 } else { 2 };
    let ([key, argument, ..], count, noreply) = split_words(rest, wanted);
    // Old clients send `delete key 0`; memcached still accepts it.
    let is_zero = argument == b"0" && (count < 3 || noreply);
    let command = match name {
        _ if count < wanted || count > 3 => Err(UNKNOWN_COMMAND),
        b"delete" if count - usize::from(noreply) > 1 && !is_zero => Err(DELETE_WITH_TIME),
        _ if key.len() > limits.key_bytes => Err(BAD_LINE),
        b"delete" => Ok(Command::Delete(key)),
        b"touch" => parse_exptime(argument).map(|exptime| Command::Touch { key, exptime }).ok_or(BAD_EXPTIME),
        _ => {
            let delta = decimal::unsigned_of_c(argument).ok_or(BAD_DELTA);
            delta.map(|delta| Command::Count { key, delta, down: name == b"decr" })
        }
    };
    Line::new(command, noreply)
}

fn on_the_server<'a>(name: &[u8], rest: &'a [u8]) -> Line<'a> {
    let ([argument, ..], count, noreply) = split_words(rest, 0);
    let command = match (name, count - usize::from(noreply)) {
        (b"verbosity", _) if count == 0 => Err(UNKNOWN_COMMAND),
        (b"verbosity", _) if decimal::unsigned(argument).is_none() && !noreply => Err(BAD_LINE),
        (b"verbosity", _) => Ok(Command::Verbosity),
        (_, 0) => Ok(Command::FlushAll(0)),
        (_, 1) => {
            let delay_s = decimal::signed_of_c(argument).ok_or(BAD_EXPTIME);
            delay_s.map(|delay_s| Command::FlushAll((delay_s as i32).max(0).unsigned_abs()))
        }
        _ => Err(UNKNOWN_COMMAND),
    };
    Line::new(command, noreply)
}
