//! Decodes compressed bodies for checking. Bodies are forwarded as they arrived.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::HeaderMap;
use hyper::header::CONTENT_ENCODING;

/// The reason why a body or a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Bytes that may be a message, but exceed a limit of this reader before or after decoding.
    Over,
    /// A body with this unsupported content coding.
    Coding(String),
    /// Bytes that are not a message, with a description such as `not a Thrift message: ...`.
    Malformed(String),
}

pub(crate) type Content<'b> = Result<Cow<'b, [u8]>, Unread>;

/// Decodes `gzip`, and `deflate` with or without a zlib header, up to `limit` bytes. Source: RFC 9110, section 8.4.1.
pub(crate) fn decode<'b>(headers: &HeaderMap, body: &'b [u8], limit: usize) -> Content<'b> {
    let mut codings = headers.get_all(CONTENT_ENCODING).into_iter().peekable();
    if body.is_empty() || codings.peek().is_none() {
        return Ok(Cow::Borrowed(body));
    }
    let codings = codings.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    let codings = codings.collect::<Vec<_>>().join(",");
    let codings = codings.split(',').map(str::trim).filter(|coding| !["", "identity"].contains(coding));
    let codings = codings.collect::<Vec<_>>();
    match codings[..] {
        [] => Ok(Cow::Borrowed(body)),
        ["gzip" | "x-gzip"] => decompress("gzip", MultiGzDecoder::new(body), limit),
        ["deflate"] if is_zlib(body) => decompress("deflate", ZlibDecoder::new(body), limit),
        ["deflate"] => decompress("deflate", DeflateDecoder::new(body), limit),
        _ => Err(Unread::Coding(codings.join(", "))),
    }
}

/// Whether a body begins with a zlib header. Source: RFC 1950, section 2.2.
fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [first, second, ..] if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0)
}

fn decompress(coding: &str, from: impl Read, limit: usize) -> Content<'static> {
    let mut out = Vec::new();
    match from.take(limit as u64 + 1).read_to_end(&mut out) {
        Ok(_) if out.len() > limit => Err(Unread::Over),
        Ok(_) => Ok(Cow::Owned(out)),
        Err(error) => Err(Unread::Malformed(format!("invalid {coding}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use hyper::header::HeaderValue;

    use super::*;

    const LIMIT: usize = 1000;

    fn check(coding: &str, body: &[u8], expect: &Content<'_>) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_str(coding).unwrap());
        assert_eq!(decode(&headers, body, LIMIT), *expect, "{coding}");
    }

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        out.write_all(body).unwrap();
        out.finish().unwrap()
    }

    fn zlib(body: &[u8]) -> Vec<u8> {
        let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
        out.write_all(body).unwrap();
        out.finish().unwrap()
    }

    fn raw(body: &[u8]) -> Vec<u8> {
        let mut out = DeflateEncoder::new(Vec::new(), Compression::default());
        out.write_all(body).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn decodes_supported_encodings() {
        let plain = |text: &str| Ok(Cow::Owned(text.as_bytes().to_vec()));
        check("gzip", &gzip(b"one"), &plain("one"));
        check("X-GZIP", &gzip(b"one"), &plain("one"));
        check("gzip", &[gzip(b"one"), gzip(b"two")].concat(), &plain("onetwo"));
        check("identity, gzip", &gzip(b"one"), &plain("one"));
        check("deflate", &zlib(b"one"), &plain("one"));
        check("deflate", &raw(b"one"), &plain("one"));
        check("identity", b"one", &plain("one"));
        check("br", b"one", &Err(Unread::Coding("br".to_owned())));
        check("zstd", b"one", &Err(Unread::Coding("zstd".to_owned())));
        check("gzip, br", b"one", &Err(Unread::Coding("gzip, br".to_owned())));
        // A response to HEAD has `Content-Encoding` but no body.
        check("gzip", b"", &plain(""));
        assert_eq!(decode(&HeaderMap::new(), b"one", LIMIT), plain("one"));
    }

    #[test]
    fn decodes_at_most_the_limit() {
        check("gzip", &gzip(&[b'x'; LIMIT]), &Ok(Cow::Owned(vec![b'x'; LIMIT])));
        for (coding, bomb) in
            [("gzip", gzip(&[0; LIMIT + 1])), ("deflate", zlib(&[0; 1 << 20])), ("deflate", raw(&[0; 1 << 24]))]
        {
            check(coding, &bomb, &Err(Unread::Over));
        }
    }

    #[test]
    fn rejects_bytes_of_another_encoding() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let cut = &gzip(b"a text that is cut")[..20];
        for body in [&b"{}"[..], cut] {
            let decoded = decode(&headers, body, LIMIT);
            assert!(
                matches!(&decoded, Err(Unread::Malformed(why)) if why.starts_with("invalid gzip: ")),
                "{decoded:?}"
            );
        }
    }
}
