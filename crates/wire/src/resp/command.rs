//! The commands that a cache has, by name and number of arguments.

use super::Request;
use crate::number;

macro_rules! names {
    ($($name:ident $text:literal $least:literal ..= $most:expr, $doc:literal;)*) => {
        /// A command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Name {
            $(#[doc = $doc] $name,)*
        }

        impl Name {
            /// All of them.
            pub const ALL: &[Name] = &[$(Name::$name),*];

            /// Its name in small letters, as Redis writes it in errors.
            pub fn text(self) -> &'static str {
                match self { $(Name::$name => $text),* }
            }

            /// Whether it takes so many arguments, its name among them. Source: the arities that `COMMAND INFO` of Redis 7.0.15 gives.
            #[inline]
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
    Getset "getset" 3..=3, "`GETSET key value`.";
    Getdel "getdel" 2..=2, "`GETDEL key`.";
    Getex "getex" 2..=ANY, "`GETEX key …`, whose options [`parse_getex`] reads.";
    Append "append" 3..=3, "`APPEND key value`.";
    Strlen "strlen" 2..=2, "`STRLEN key`.";
    Incr "incr" 2..=2, "`INCR key`.";
    Decr "decr" 2..=2, "`DECR key`.";
    Incrby "incrby" 3..=3, "`INCRBY key number`.";
    Decrby "decrby" 3..=3, "`DECRBY key number`.";
    Type "type" 2..=2, "`TYPE key`.";
    Touch "touch" 2..=ANY, "`TOUCH key …`.";
    Scan "scan" 2..=ANY, "`SCAN cursor [MATCH pattern] [COUNT number] [TYPE type]`.";
    Del "del" 2..=ANY, "`DEL key …`.";
    Unlink "unlink" 2..=ANY, "`UNLINK key …`.";
    Mget "mget" 2..=ANY, "`MGET key …`.";
    Mset "mset" 3..=ANY, "`MSET key value …`; whether values are complete is left to the caller.";
    Exists "exists" 2..=ANY, "`EXISTS key …`.";
    Expire "expire" 3..=ANY, "`EXPIRE key seconds [NX|XX|GT|LT]`.";
    Pexpire "pexpire" 3..=ANY, "`PEXPIRE key milliseconds [NX|XX|GT|LT]`.";
    Expireat "expireat" 3..=ANY, "`EXPIREAT key second [NX|XX|GT|LT]`, counted since 1970.";
    Pexpireat "pexpireat" 3..=ANY, "`PEXPIREAT key millisecond [NX|XX|GT|LT]`, counted since 1970.";
    Expiretime "expiretime" 2..=2, "`EXPIRETIME key`.";
    Pexpiretime "pexpiretime" 2..=2, "`PEXPIRETIME key`.";
    Persist "persist" 2..=2, "`PERSIST key`.";
    Ttl "ttl" 2..=2, "`TTL key`.";
    Pttl "pttl" 2..=2, "`PTTL key`.";
    Ping "ping" 1..=ANY, "`PING [text]`.";
    Echo "echo" 2..=2, "`ECHO text`.";
    Flushall "flushall" 1..=ANY, "`FLUSHALL [ASYNC|SYNC]`.";
    Flushdb "flushdb" 1..=ANY, "`FLUSHDB [ASYNC|SYNC]`.";
    Info "info" 1..=ANY, "`INFO [section …]`.";
    Dbsize "dbsize" 1..=1, "`DBSIZE`.";
    Config "config" 2..=ANY, "`CONFIG GET …` and its like.";
    Command "command" 1..=ANY, "`COMMAND`, `COMMAND COUNT`, `COMMAND DOCS`.";
    Hello "hello" 1..=ANY, "`HELLO [2|3 …]`.";
    Client "client" 2..=ANY, "`CLIENT SETNAME`, `SETINFO`, `ID` and their like.";
    Select "select" 2..=2, "`SELECT 0`.";
    Multi "multi" 1..=1, "`MULTI`: what follows is queued.";
    Exec "exec" 1..=1, "`EXEC`: the queue is run.";
    Discard "discard" 1..=1, "`DISCARD`: the queue is dropped.";
    Watch "watch" 2..=ANY, "`WATCH key …`: `EXEC` does nothing where one of them has changed.";
    Unwatch "unwatch" 1..=1, "`UNWATCH`.";
    Quit "quit" 1..=ANY, "`QUIT`: answered, then closed.";
    Reset "reset" 1..=1, "`RESET`: back to RESP2.";
}

impl Name {
    /// The command of this name, whatever its case.
    #[inline]
    pub fn of(name: &[u8]) -> Option<Name> {
        // What caches are asked nearly always.
        match name {
            b"GET" | b"get" => return Some(Name::Get),
            b"SET" | b"set" => return Some(Name::Set),
            _ => {}
        }
        Name::ALL.iter().copied().find(|other| other.text().as_bytes().eq_ignore_ascii_case(name))
    }
}

/// When an item is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// `EX`, `PX`: so many milliseconds from now; 1 to 2^63 - 1.
    AfterMs(u64),
    /// `EXAT`, `PXAT`: milliseconds since 1970; 1 to 2^63 - 1.
    AtUnixMs(u64),
}

impl When {
    /// The millisecond since 1970 from which on the item is gone, where it is now `now_unix_ms`; `None` from 2^63 on, which Redis refuses.
    pub fn ends_unix_ms(self, now_unix_ms: u64) -> Option<u64> {
        let ends = match self {
            When::AfterMs(ms) => now_unix_ms.checked_add(ms)?,
            When::AtUnixMs(ms) => ms,
        };
        i64::try_from(ends).is_ok().then_some(ends)
    }
}

/// What stands behind the key of `GETEX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GetexOptions {
    /// `EX`, `PX`, `EXAT`, `PXAT`: when it ends. A bad time is an error only where there is an item.
    pub when: Option<Result<When, SetError>>,
    /// `PERSIST`: never.
    pub persist: bool,
}

/// What stands behind key and value of `SET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetOptions {
    /// `EX`, `PX`, `EXAT`, `PXAT`: when it ends.
    pub when: Option<When>,
    /// `NX`: only where there is none.
    pub if_absent: bool,
    /// `XX`: only where there is one.
    pub if_present: bool,
    /// `KEEPTTL`: the time it had.
    pub keep_ttl: bool,
    /// `GET`: the value it had is the answer.
    pub get: bool,
}

/// Why the options of `SET` are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// An option that is none, that lacks its number, or that excludes another.
    #[error("syntax error")]
    Syntax,
    /// A time that is no number.
    #[error("value is not an integer or out of range")]
    NotAnInteger,
    /// A time that is 0, negative, or too large for milliseconds.
    #[error("invalid expire time in '{}' command", name.text())]
    InvalidExpire {
        /// The command.
        name: Name,
    },
}

/// The options of `SET key value …`. Source: Redis 7.0.15, `parseExtendedStringArgumentsOrReply`.
///
/// # Errors
///
/// Answered by `-ERR` and the error's words.
pub fn parse_set(request: &Request<'_, '_>) -> Result<SetOptions, SetError> {
    let found = Words::of(request, 3, Name::Set)?;
    let when = found.time.map(|time| time.when(Name::Set)).transpose()?;
    Ok(SetOptions { when, ..found.options })
}

/// The options of `GETEX key …`. Source as above.
///
/// # Errors
///
/// [`SetError::Syntax`].
pub fn parse_getex(request: &Request<'_, '_>) -> Result<GetexOptions, SetError> {
    let found = Words::of(request, 2, Name::Getex)?;
    Ok(GetexOptions { when: found.time.map(|time| time.when(Name::Getex)), persist: found.persist })
}

/// A time as it stands there.
struct Time<'r> {
    /// `EX` and so on: what excludes the others, and may be there twice.
    option: &'static str,
    text: &'r [u8],
}

impl Time<'_> {
    fn when(&self, name: Name) -> Result<When, SetError> {
        let value = number::canonical(self.text).ok_or(SetError::NotAnInteger)?;
        let factor = if self.option.starts_with('e') { 1000 } else { 1 };
        let ms = u64::try_from(value).ok().filter(|value| *value > 0).and_then(|value| value.checked_mul(factor));
        let ms = ms.filter(|ms| i64::try_from(*ms).is_ok()).ok_or(SetError::InvalidExpire { name })?;
        Ok(if self.option.len() == 4 { When::AtUnixMs(ms) } else { When::AfterMs(ms) })
    }
}

/// The options of both commands.
#[derive(Default)]
struct Words<'r> {
    options: SetOptions,
    persist: bool,
    time: Option<Time<'r>>,
}

impl<'r> Words<'r> {
    fn of<'b: 'r>(request: &Request<'b, 'r>, from: usize, name: Name) -> Result<Words<'r>, SetError> {
        let mut found = Words::default();
        let is_set = name == Name::Set;
        let mut at = from;
        while at < request.count() {
            let word = request.argument(at);
            let is = |text: &str| word.eq_ignore_ascii_case(text.as_bytes());
            at += 1;
            let Words { options, persist, time } = &mut found;
            let keeps = options.keep_ttl || *persist;
            if is("nx") && is_set && !options.if_present {
                options.if_absent = true;
            } else if is("xx") && is_set && !options.if_absent {
                options.if_present = true;
            } else if is("get") && is_set {
                options.get = true;
            } else if is("keepttl") && is_set && time.is_none() {
                options.keep_ttl = true;
            } else if is("persist") && !is_set && time.is_none() {
                *persist = true;
            } else if let Some(option) = ["ex", "px", "exat", "pxat"].into_iter().find(|option| is(option))
                && !keeps
                && time.as_ref().is_none_or(|time| time.option == option)
                && at < request.count()
            {
                *time = Some(Time { option, text: request.argument(at) });
                at += 1;
            } else {
                return Err(SetError::Syntax);
            }
        }
        Ok(found)
    }
}
