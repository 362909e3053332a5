//! Writes a client's requests and a server's values.

use super::Limits;
use crate::decimal;

/// Checks a key. Fails if it is invalid, since servers disagree on the block after a bad key (protocol.txt, "Keys").
fn check_key(key: &[u8]) -> Result<(), String> {
    let limit = Limits::DEFAULT.key_bytes;
    if key.is_empty() || key.len() > limit {
        return Err(format!("a key of {} bytes: must be 1 to {limit}", key.len()));
    }
    match key.iter().position(|&byte| byte <= b' ' || byte == 0x7f) {
        Some(at) => {
            Err(format!("byte 0x{:02x} in a key, at {at}: white space and control characters cannot be sent", key[at]))
        }
        None => Ok(()),
    }
}

fn push_words(out: &mut Vec<u8>, words: &[&[u8]]) {
    words.iter().for_each(|word| out.extend_from_slice(word));
}

/// Appends a `get` request with one key. Fails if the key is invalid.
pub fn compose_get(out: &mut Vec<u8>, key: &[u8]) -> Result<(), String> {
    check_key(key)?;
    push_words(out, &[b"get ", key, b"\r\n"]);
    Ok(())
}

/// Appends a `set` request. `exptime` is 0 (never), up to 30 days in seconds, or Unix time. Fails if `key` is invalid.
pub fn compose_set(out: &mut Vec<u8>, key: &[u8], client_flags: u32, exptime: i32, data: &[u8]) -> Result<(), String> {
    check_key(key)?;
    out.reserve(key.len() + data.len() + 64);
    push_words(out, &[b"set ", key, b" "]);
    decimal::push(out, u64::from(client_flags));
    out.push(b' ');
    decimal::push_signed(out, i64::from(exptime));
    out.push(b' ');
    decimal::push(out, data.len() as u64);
    push_words(out, &[b"\r\n", data, b"\r\n"]);
    Ok(())
}

/// Appends a `delete` request with one key. Fails if the key is invalid.
pub fn compose_delete(out: &mut Vec<u8>, key: &[u8]) -> Result<(), String> {
    check_key(key)?;
    push_words(out, &[b"delete ", key, b"\r\n"]);
    Ok(())
}

/// Appends the response to `incr` or `decr`.
pub fn compose_number(out: &mut Vec<u8>, value: u64) {
    decimal::push(out, value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the line `VALUE key flags bytes [cas]`, the data and its end. `key` must come from a parsed request.
#[inline]
pub fn compose_value(out: &mut Vec<u8>, key: &[u8], client_flags: u32, data: &[u8], cas: Option<u64>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    decimal::push(out, u64::from(client_flags));
    out.push(b' ');
    decimal::push(out, data.len() as u64);
    if let Some(cas) = cas {
        out.push(b' ');
        decimal::push(out, cas);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}
