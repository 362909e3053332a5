//! The supported commands, their arity, and the options of SET.

use super::Request;
use crate::decimal;

macro_rules! names {
    ($($name:ident $text:literal $least:literal ..= $most:expr, $doc:literal;)*) => {
        /// A supported command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Name {
            $(#[doc = $doc] $name,)*
        }

        impl Name {
            /// All supported commands.
            pub const ALL: &[Name] = &[$(Name::$name),*];

            /// The name in lower case, as in Redis errors.
            pub fn text(self) -> &'static str {
                match self { $(Name::$name => $text),* }
            }

            /// Whether the command accepts `count` words, including its name. Source: `COMMAND INFO` of Redis 7.0.15.
            pub fn takes(self, count: usize) -> bool {
                match self { $(Name::$name => ($least..=$most).contains(&count)),* }
            }
        }
    };
}

const ANY: usize = usize::MAX;

names! {
    Get "get" 2..=2, "`GET key`.";
    Set "set" 3..=ANY, "`SET key value …`, whose options [`parse_set`] reads.";
    Setex "setex" 4..=4, "`SETEX key seconds value`.";
    Psetex "psetex" 4..=4, "`PSETEX key milliseconds value`.";
    Setnx "setnx" 3..=3, "`SETNX key value`.";
    Incr "incr" 2..=2, "`INCR key`.";
    Decr "decr" 2..=2, "`DECR key`.";
    Incrby "incrby" 3..=3, "`INCRBY key number`.";
    Decrby "decrby" 3..=3, "`DECRBY key number`.";
    Del "del" 2..=ANY, "`DEL key …`.";
    Unlink "unlink" 2..=ANY, "`UNLINK key …`.";
    Mget "mget" 2..=ANY, "`MGET key …`.";
    Mset "mset" 3..=ANY, "`MSET key value …`; whether values are complete is left to the caller.";
    Exists "exists" 2..=ANY, "`EXISTS key …`.";
    Expire "expire" 3..=3, "`EXPIRE key seconds`.";
    Pexpire "pexpire" 3..=3, "`PEXPIRE key milliseconds`.";
    Persist "persist" 2..=2, "`PERSIST key`.";
    Ttl "ttl" 2..=2, "`TTL key`.";
    Pttl "pttl" 2..=2, "`PTTL key`.";
    Ping "ping" 1..=2, "`PING [text]`.";
    Echo "echo" 2..=2, "`ECHO text`.";
    Flushall "flushall" 1..=2, "`FLUSHALL [ASYNC|SYNC]`.";
    Flushdb "flushdb" 1..=2, "`FLUSHDB [ASYNC|SYNC]`.";
    Info "info" 1..=ANY, "`INFO [section …]`.";
    Dbsize "dbsize" 1..=1, "`DBSIZE`.";
    Config "config" 2..=ANY, "`CONFIG GET name …`.";
    Command "command" 1..=ANY, "`COMMAND …`.";
    Hello "hello" 1..=ANY, "`HELLO [2|3 …]`.";
    Client "client" 2..=ANY, "`CLIENT SETNAME` and `CLIENT SETINFO`.";
    Select "select" 2..=2, "`SELECT 0`.";
    Quit "quit" 1..=ANY, "`QUIT`: answered, then closed.";
}

impl Name {
    /// Parses a command name, ignoring case. `None` if the command is not supported.
    pub fn parse(name: &[u8]) -> Option<Name> {
        // Fast path for the most frequent commands.
        match name {
            b"GET" | b"get" => return Some(Name::Get),
            b"SET" | b"set" => return Some(Name::Set),
            _ => {}
        }
        Name::ALL.iter().copied().find(|other| other.text().as_bytes().eq_ignore_ascii_case(name))
    }
}

/// Returns the Unix time of expiration in ms: `count` units after `from_ms`. `None` if `count` is not positive, or from
/// 2^63 ms on, as in Redis.
pub fn expires_ms(from_ms: u64, count: i64, unit_ms: u64) -> Option<u64> {
    let ms = u64::try_from(count).ok().filter(|count| *count > 0)?.checked_mul(unit_ms)?;
    from_ms.checked_add(ms).filter(|ends| i64::try_from(*ends).is_ok())
}

/// The options of `SET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetOptions {
    /// Unix time of expiration in ms (`EX`, `PX`, `EXAT`, `PXAT`); 0 if the request has none.
    pub expires_ms: u64,
    /// Whether to store only if the key is absent (`NX`).
    pub if_absent: bool,
    /// Whether to store only if the key is present (`XX`).
    pub if_present: bool,
    /// Whether to keep the old expiration time (`KEEPTTL`).
    pub keep_ttl: bool,
    /// Whether to return the old value (`GET`).
    pub get: bool,
}

/// Parses the options of `SET`. Fails with the text of the response after `-ERR`. Source: Redis 7.0.15,
/// `parseExtendedStringArgumentsOrReply`.
pub fn parse_set(request: &Request<'_, '_>, now_ms: u64) -> Result<SetOptions, &'static str> {
    let mut options = SetOptions::default();
    // The time option and its value. A second time option is an error unless it repeats the first.
    let mut time: Option<(&str, &[u8])> = None;
    let mut at = 3;
    while at < request.count() {
        let word = request.argument(at);
        let is = |text: &str| word.eq_ignore_ascii_case(text.as_bytes());
        at += 1;
        if is("nx") && !options.if_present {
            options.if_absent = true;
        } else if is("xx") && !options.if_absent {
            options.if_present = true;
        } else if is("get") {
            options.get = true;
        } else if is("keepttl") && time.is_none() {
            options.keep_ttl = true;
        } else if let Some(option) = ["ex", "px", "exat", "pxat"].into_iter().find(|option| is(option))
            && !options.keep_ttl
            && time.is_none_or(|(other, _)| other == option)
            && at < request.count()
        {
            time = Some((option, request.argument(at)));
            at += 1;
        } else {
            return Err("syntax error");
        }
    }
    options.expires_ms = time.map_or(Ok(0), |(option, text)| parse_time(option, text, now_ms))?;
    Ok(options)
}

fn parse_time(option: &str, text: &[u8], now_ms: u64) -> Result<u64, &'static str> {
    let count = decimal::canonical(text).ok_or("value is not an integer or out of range")?;
    let unit_ms = if option.starts_with('e') { 1000 } else { 1 };
    let from_ms = if option.len() == 4 { 0 } else { now_ms };
    expires_ms(from_ms, count, unit_ms).ok_or("invalid expire time in 'set' command")
}
