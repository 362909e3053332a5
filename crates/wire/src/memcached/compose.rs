//! Requests and answers as bytes.

use super::{Limits, Verb};
use crate::number;

/// Why a request cannot be written: what a server would take for something else. Nothing was appended then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// A key that is empty or too long: servers differ in what they make of the block behind it.
    #[error("a key of {bytes} bytes: must be 1 to {limit}")]
    KeyBytes {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A byte that would end the key.
    #[error("byte 0x{byte:02x} in a key, at {at}: white space and control characters cannot be sent")]
    KeyByte {
        /// The byte.
        byte: u8,
        /// Its place, counted from 0.
        at: usize,
    },
    /// No key at all.
    #[error("a get without a key")]
    NoKey,
    /// A `cas` without its number, or a number without `cas`.
    #[error("only `cas` takes a cas unique, and requires one")]
    Cas,
    /// A flag that is no letter, or whose argument would end it.
    #[error("flag `{}` is not a letter, or its argument has white space or control characters", *.letter as char)]
    Flag {
        /// The flag.
        letter: u8,
    },
}

/// Whether `key` can be sent. Source: protocol.txt, "Keys".
///
/// # Errors
///
/// [`ComposeError::KeyBytes`], [`ComposeError::KeyByte`].
#[inline]
fn check_key(key: &[u8]) -> Result<(), ComposeError> {
    let limit = Limits::DEFAULT.key_bytes;
    if key.is_empty() || key.len() > limit {
        return Err(ComposeError::KeyBytes { bytes: key.len(), limit });
    }
    match key.iter().position(|&byte| byte <= b' ' || byte == 0x7f) {
        Some(at) => Err(ComposeError::KeyByte { byte: key[at], at }),
        None => Ok(()),
    }
}

fn push_words(out: &mut Vec<u8>, words: &[&[u8]]) {
    words.iter().for_each(|word| out.extend_from_slice(word));
}

/// Appends `get`, or `gets` if `with_cas`.
///
/// # Errors
///
/// A key that cannot be sent, and no key.
pub fn compose_get(out: &mut Vec<u8>, keys: &[&[u8]], with_cas: bool) -> Result<(), ComposeError> {
    if keys.is_empty() {
        return Err(ComposeError::NoKey);
    }
    keys.iter().try_for_each(|key| check_key(key))?;
    out.extend_from_slice(if with_cas { b"gets" } else { b"get" });
    for key in keys {
        push_words(out, &[b" ", key]);
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Appends a storage command with its block. `exptime` as in protocol.txt: 0 never, up to 30 days from now, beyond a date.
///
/// # Errors
///
/// A key that cannot be sent, and a `cas` that is not just where [`Verb::Cas`] is.
#[expect(clippy::too_many_arguments, reason = "they are the words of the line")]
pub fn compose_store(
    out: &mut Vec<u8>,
    verb: Verb,
    key: &[u8],
    client_flags: u32,
    exptime: i32,
    cas: Option<u64>,
    data: &[u8],
    noreply: bool,
) -> Result<(), ComposeError> {
    check_key(key)?;
    if (verb == Verb::Cas) != cas.is_some() {
        return Err(ComposeError::Cas);
    }
    let name: &[u8] = match verb {
        Verb::Set => b"set ",
        Verb::Add => b"add ",
        Verb::Replace => b"replace ",
        Verb::Append => b"append ",
        Verb::Prepend => b"prepend ",
        Verb::Cas => b"cas ",
    };
    out.reserve(name.len() + key.len() + data.len() + 64);
    push_words(out, &[name, key, b" "]);
    number::push(out, u64::from(client_flags));
    out.push(b' ');
    number::push_signed(out, i64::from(exptime));
    out.push(b' ');
    number::push(out, data.len() as u64);
    if let Some(cas) = cas {
        out.push(b' ');
        number::push(out, cas);
    }
    end_line(out, noreply);
    push_words(out, &[data, b"\r\n"]);
    Ok(())
}

fn end_line(out: &mut Vec<u8>, noreply: bool) {
    out.extend_from_slice(if noreply { b" noreply\r\n" } else { b"\r\n" });
}

/// Appends `delete`.
///
/// # Errors
///
/// A key that cannot be sent.
pub fn compose_delete(out: &mut Vec<u8>, key: &[u8], noreply: bool) -> Result<(), ComposeError> {
    check_key(key)?;
    push_words(out, &[b"delete ", key]);
    end_line(out, noreply);
    Ok(())
}

/// Appends `touch`.
///
/// # Errors
///
/// A key that cannot be sent.
pub fn compose_touch(out: &mut Vec<u8>, key: &[u8], exptime: i32, noreply: bool) -> Result<(), ComposeError> {
    check_key(key)?;
    push_words(out, &[b"touch ", key, b" "]);
    number::push_signed(out, i64::from(exptime));
    end_line(out, noreply);
    Ok(())
}

/// Appends `incr`, or `decr` if `down`.
///
/// # Errors
///
/// A key that cannot be sent.
pub fn compose_count(out: &mut Vec<u8>, key: &[u8], delta: u64, down: bool, noreply: bool) -> Result<(), ComposeError> {
    check_key(key)?;
    push_words(out, &[if down { b"decr " } else { b"incr " }, key, b" "]);
    number::push(out, delta);
    end_line(out, noreply);
    Ok(())
}

/// Appends a meta command without a block: `g`, `d`, `a` or `e` for `command`, each flag a letter and its argument. `mn` is written by
/// [`compose_line`].
///
/// # Errors
///
/// A key or a flag that cannot be sent.
pub fn compose_meta(out: &mut Vec<u8>, command: u8, key: &[u8], flags: &[(u8, &[u8])]) -> Result<(), ComposeError> {
    check_key(key)?;
    check_flags(flags)?;
    push_words(out, &[b"m", &[command], b" ", key]);
    push_flags(out, flags);
    Ok(())
}

/// Appends `ms` with its block.
///
/// # Errors
///
/// A key or a flag that cannot be sent.
pub fn compose_meta_set(out: &mut Vec<u8>, key: &[u8], data: &[u8], flags: &[(u8, &[u8])]) -> Result<(), ComposeError> {
    check_key(key)?;
    check_flags(flags)?;
    push_words(out, &[b"ms ", key, b" "]);
    number::push(out, data.len() as u64);
    push_flags(out, flags);
    push_words(out, &[data, b"\r\n"]);
    Ok(())
}

fn check_flags(flags: &[(u8, &[u8])]) -> Result<(), ComposeError> {
    let is_good = |argument: &[u8]| argument.iter().all(|&byte| byte > b' ' && byte != 0x7f);
    match flags.iter().find(|(letter, argument)| !letter.is_ascii_alphabetic() || !is_good(argument)) {
        Some(&(letter, _)) => Err(ComposeError::Flag { letter }),
        None => Ok(()),
    }
}

fn push_flags(out: &mut Vec<u8>, flags: &[(u8, &[u8])]) {
    for (letter, argument) in flags {
        push_words(out, &[b" ", &[*letter], argument]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends `line` and its end: `mn`, `version`, `flush_all` of a client, `STORED`, `END`, `MN` of a server.
///
/// # Panics
///
/// If `line` has a line end in it, which would be two.
pub fn compose_line(out: &mut Vec<u8>, line: &[u8]) {
    assert!(!line.iter().any(|byte| matches!(byte, b'\r' | b'\n')), "`line` is one line");
    push_words(out, &[line, b"\r\n"]);
}

/// Appends the number that answers `incr` and `decr`.
pub fn compose_number(out: &mut Vec<u8>, value: u64) {
    number::push(out, value);
    out.extend_from_slice(b"\r\n");
}

/// Appends `VALUE key flags bytes [cas]` and its end. The data follows, then [`compose_value_end`]; so a server can copy it from where it is. The
/// key is one that was read from a request.
#[inline]
pub fn compose_value(out: &mut Vec<u8>, key: &[u8], client_flags: u32, data_bytes: usize, cas: Option<u64>) {
    push_words(out, &[b"VALUE ", key, b" "]);
    number::push(out, u64::from(client_flags));
    out.push(b' ');
    number::push(out, data_bytes as u64);
    if let Some(cas) = cas {
        out.push(b' ');
        number::push(out, cas);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends what ends a value's block.
#[inline]
pub fn compose_value_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}
