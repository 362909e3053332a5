//! Detects the protocol of a connection from its first bytes, so that one port serves all cache protocols.
//!
//! | first bytes | protocol |
//! |---|---|
//! | `*` | RESP, arrays |
//! | `GET /`, `GET http://`, `GET https://` | HTTP |
//! | `PUT`, `HEAD`, `POST`, `DELETE`, `OPTIONS`, `PATCH`, `TRACE`, `CONNECT`, `PRI` and a space | HTTP |
//! | a lower-case memcached command, then a space or the end of the line: `get `, `mn\r\n` | memcached |
//! | any other word of letters, digits and `_`, then a space, a tab or a line end: `PING\r\n`, `GET k` | RESP, inline |
//! | a quote, or a word followed by a quote | RESP, inline |
//! | 0x80, 0x81 | memcached's binary protocol (not supported) |
//! | 0x16 0x03 | TLS (not supported here) |
//! | anything else, and words over 32 bytes | unknown |
//!
//! Up to 8 empty lines at the start are skipped, because RESP and HTTP allow them. Ambiguous input has one fixed
//! meaning. `get k` and `quit` in lower case are memcached commands, so they do not work as inline commands of RESP.
//! `GET /k` is HTTP, so a RESP client must use an array to get the key `/k`. More bytes never change a decision.

/// The result of protocol detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// More bytes are needed to decide.
    Need,
    /// memcached's text protocol, including meta commands.
    Memcached,
    /// RESP, with arrays of strings or inline commands.
    Resp,
    /// HTTP/1, which [`crate::http1`] parses.
    Http,
    /// memcached's binary protocol, which is not supported.
    MemcachedBinary,
    /// TLS, which is not supported here.
    Tls,
    /// No known protocol.
    Unknown,
}

/// Number of bytes after which the protocol is always known: empty lines, the longest word, and the byte after it.
pub const DETECT_MAX_BYTES: usize = 2 * EMPTY_LINES_MAX + WORD_MAX_BYTES + 1;

const EMPTY_LINES_MAX: usize = 8;
const WORD_MAX_BYTES: usize = 32;

/// Detects the protocol from a connection's first bytes. [`DETECT_MAX_BYTES`] bytes always suffice.
pub fn detect(bytes: &[u8]) -> Detected {
    let mut rest = bytes;
    for _ in 0..EMPTY_LINES_MAX {
        match rest {
            [b'\r', b'\n', behind @ ..] | [b'\n', behind @ ..] => rest = behind,
            [b'\r'] => return Detected::Need,
            _ => break,
        }
    }
    match rest {
        [] => return Detected::Need,
        [b'*' | b'"' | b'\'', ..] => return Detected::Resp,
        [0x80 | 0x81, ..] => return Detected::MemcachedBinary,
        [0x16] => return Detected::Need,
        [0x16, 0x03, ..] => return Detected::Tls,
        [first, ..] if !first.is_ascii_alphabetic() => return Detected::Unknown,
        _ => {}
    }
    let shown = &rest[..rest.len().min(WORD_MAX_BYTES + 1)];
    let Some(end) = shown.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_') else {
        return if shown.len() > WORD_MAX_BYTES { Detected::Unknown } else { Detected::Need };
    };
    let (word, behind) = (&rest[..end], &rest[end..]);
    match behind[0] {
        b' ' | b'\r' | b'\n' => {}
        b'\t' | b'"' | b'\'' => return Detected::Resp,
        _ => return Detected::Unknown,
    }
    let is_spaced = behind[0] == b' ';
    match word {
        b"GET" if is_spaced => get(&behind[1..]),
        b"PUT" | b"HEAD" | b"POST" | b"DELETE" | b"OPTIONS" | b"PATCH" | b"TRACE" | b"CONNECT" | b"PRI"
            if is_spaced =>
        {
            Detected::Http
        }
        b"get" | b"gets" | b"gat" | b"gats" | b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas"
        | b"delete" | b"incr" | b"decr" | b"touch" | b"flush_all" | b"version" | b"verbosity" | b"stats" | b"quit"
        | b"mg" | b"ms" | b"md" | b"ma" | b"mn" | b"me" => Detected::Memcached,
        _ => Detected::Resp,
    }
}

fn get(target: &[u8]) -> Detected {
    if target.starts_with(b"/") {
        return Detected::Http;
    }
    let schemes: [&[u8]; 2] = [b"http://", b"https://"];
    if schemes.iter().any(|scheme| target.starts_with(scheme)) {
        Detected::Http
    } else if schemes.iter().any(|scheme| scheme.starts_with(target)) {
        Detected::Need
    } else {
        Detected::Resp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs with their protocols and the number of bytes needed to decide.
    #[rustfmt::skip]
    const CASES: &[(&[u8], Detected, usize)] = &[
        (b"*1\r\n$4\r\nPING\r\n", Detected::Resp, 1),
        (b"\r\n*1\r\n", Detected::Resp, 3),
        (b"\n\r\n*1\r\n", Detected::Resp, 4),
        (b"PING\r\n", Detected::Resp, 5),
        (b"PING\n", Detected::Resp, 5),
        (b"ping\r\n", Detected::Resp, 5),
        (b"GET k\r\n", Detected::Resp, 5),
        (b"GET\r\n", Detected::Resp, 4),
        (b"GET h\r\n", Detected::Resp, 6),
        (b"GET http\r\n", Detected::Resp, 9),
        (b"GET https:/\r\n", Detected::Resp, 12),
        (b"Get k\r\n", Detected::Resp, 4),
        (b"SET k v\r\n", Detected::Resp, 4),
        (b"CONFIG GET save\r\n", Detected::Resp, 7),
        (b"PUT\r\n", Detected::Resp, 4),
        (b"PUBLISH a b\r\n", Detected::Resp, 8),
        (b"\"GET\" k\r\n", Detected::Resp, 1),
        (b"GE\"T\" k\r\n", Detected::Resp, 3),
        (b"GET\tk\r\n", Detected::Resp, 4),
        (b"GET / HTTP/1.1\r\n", Detected::Http, 5),
        (b"GET /k HTTP/1.1\r\n", Detected::Http, 5),
        (b"\r\nGET /k HTTP/1.1\r\n", Detected::Http, 7),
        (b"GET http://a/k HTTP/1.1\r\n", Detected::Http, 11),
        (b"GET https://a/k HTTP/1.1\r\n", Detected::Http, 12),
        (b"PUT /k/v HTTP/1.1\r\n", Detected::Http, 4),
        (b"HEAD / HTTP/1.1\r\n", Detected::Http, 5),
        (b"POST /reset HTTP/1.1\r\n", Detected::Http, 5),
        (b"DELETE /k HTTP/1.1\r\n", Detected::Http, 7),
        (b"OPTIONS * HTTP/1.1\r\n", Detected::Http, 8),
        (b"PRI * HTTP/2.0\r\n", Detected::Http, 4),
        (b"get k\r\n", Detected::Memcached, 4),
        (b"gets k\r\n", Detected::Memcached, 5),
        (b"gat 1 k\r\n", Detected::Memcached, 4),
        (b"set k 0 0 1\r\na\r\n", Detected::Memcached, 4),
        (b"cas k 0 0 1 1\r\n", Detected::Memcached, 4),
        (b"delete k\r\n", Detected::Memcached, 7),
        (b"version\r\n", Detected::Memcached, 8),
        (b"stats\n", Detected::Memcached, 6),
        (b"quit\r\n", Detected::Memcached, 5),
        (b"flush_all\r\n", Detected::Memcached, 10),
        (b"mg k v\r\n", Detected::Memcached, 3),
        (b"mn\r\n", Detected::Memcached, 3),
        (b"ms k 1\r\na\r\n", Detected::Memcached, 3),
        (b"mget k\r\n", Detected::Resp, 5),
        (b"getx k\r\n", Detected::Resp, 5),
        (b"\x80\x00\x00\x01", Detected::MemcachedBinary, 1),
        (b"\x16\x03\x01", Detected::Tls, 2),
        (b"\x16\x04", Detected::Unknown, 2),
        (b"$3\r\nabc\r\n", Detected::Unknown, 1),
        (b"\0", Detected::Unknown, 1),
        (b" get k", Detected::Unknown, 1),
        (b"get=k", Detected::Unknown, 4),
        (b"\rGET", Detected::Unknown, 2),
        (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Detected::Unknown, 33),
        (b"\n\n\n\n\n\n\n\nPING\n", Detected::Resp, 13),
        (b"\n\n\n\n\n\n\n\n\nPING\n", Detected::Unknown, 9),
        (b"", Detected::Need, 0),
        (b"ge", Detected::Need, 2),
    ];

    #[test]
    fn decides_at_the_first_sufficient_prefix() {
        for (bytes, expect, needed) in CASES {
            for end in 0..=bytes.len() {
                let expect = if end >= *needed { *expect } else { Detected::Need };
                assert_eq!(detect(&bytes[..end]), expect, "{:?}", bytes[..end].escape_ascii().to_string());
            }
        }
    }

    #[test]
    fn decides_within_the_maximum_number_of_bytes() {
        let worst = [b"\r\n".repeat(EMPTY_LINES_MAX), b"a".repeat(WORD_MAX_BYTES)].concat();
        assert_eq!(detect(&worst), Detected::Need);
        for byte in 0..=255u8 {
            let bytes = [worst.as_slice(), &[byte]].concat();
            assert_eq!(bytes.len(), DETECT_MAX_BYTES);
            assert_ne!(detect(&bytes), Detected::Need);
        }
    }
}
