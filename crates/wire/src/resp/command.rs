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
    Del "del" 2..=ANY, "`DEL key …`.";
    Unlink "unlink" 2..=ANY, "`UNLINK key …`.";
    Mget "mget" 2..=ANY, "`MGET key …`.";
    Mset "mset" 3..=ANY, "`MSET key value …`; whether values are complete is left to who carries it out.";
    Exists "exists" 2..=ANY, "`EXISTS key …`.";
    Expire "expire" 3..=ANY, "`EXPIRE key seconds`.";
    Pexpire "pexpire" 3..=ANY, "`PEXPIRE key milliseconds`.";
    Ttl "ttl" 2..=2, "`TTL key`.";
    Pttl "pttl" 2..=2, "`PTTL key`.";
    Ping "ping" 1..=2, "`PING [text]`.";
    Echo "echo" 2..=2, "`ECHO text`.";
    Flushall "flushall" 1..=2, "`FLUSHALL [ASYNC|SYNC]`.";
    Flushdb "flushdb" 1..=2, "`FLUSHDB [ASYNC|SYNC]`.";
    Info "info" 1..=ANY, "`INFO [section …]`.";
    Dbsize "dbsize" 1..=1, "`DBSIZE`.";
    Config "config" 2..=ANY, "`CONFIG GET …` and its like.";
    Command "command" 1..=ANY, "`COMMAND`, `COMMAND COUNT`, `COMMAND DOCS`.";
    Hello "hello" 1..=ANY, "`HELLO [2|3 …]`.";
    Client "client" 2..=ANY, "`CLIENT SETNAME`, `SETINFO`, `ID` and their like.";
    Select "select" 2..=2, "`SELECT 0`.";
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

/// What stands behind key and value of `SET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetOptions {
    /// `EX`, `PX`: milliseconds from now; above 0.
    pub ttl_ms: Option<u64>,
    /// `EXAT`, `PXAT`: milliseconds since 1970; above 0.
    pub ends_unix_ms: Option<u64>,
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
    #[error("invalid expire time in 'set' command")]
    InvalidExpire,
}

/// The options of `SET key value …`. Source: Redis 7.0.15, `parseExtendedStringArgumentsOrReply`.
///
/// # Errors
///
/// Answered by `-ERR` and the error's words.
pub fn parse_set(request: &Request<'_, '_>) -> Result<SetOptions, SetError> {
    let mut options = SetOptions::default();
    let mut has_time = false;
    let mut at = 3;
    let mut time = None;
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
        } else if is("keepttl") && !has_time {
            options.keep_ttl = true;
        } else if (is("ex") || is("px") || is("exat") || is("pxat"))
            && !has_time
            && !options.keep_ttl
            && at < request.count()
        {
            has_time = true;
            let factor = if word[0].eq_ignore_ascii_case(&b'e') { 1000 } else { 1 };
            time = Some((request.argument(at), factor, word.len() == 4));
            at += 1;
        } else {
            return Err(SetError::Syntax);
        }
    }
    if let Some((text, factor, is_date)) = time {
        let value = number::signed(text).ok_or(SetError::NotAnInteger)?;
        let ms = u64::try_from(value).ok().filter(|value| *value > 0).and_then(|value| value.checked_mul(factor));
        let ms = ms.filter(|ms| i64::try_from(*ms).is_ok()).ok_or(SetError::InvalidExpire)?;
        *(if is_date { &mut options.ends_unix_ms } else { &mut options.ttl_ms }) = Some(ms);
    }
    Ok(options)
}
