//! Fields that determine body length and connection reuse. Source: RFC 9112, sections 6 and 9.3.

use super::chunks::{ChunkError, Chunks};
use super::error::MessageError;
use super::fields::is_token;
use super::{Body, Limits};
use crate::decimal::unsigned_of_any_length;

/// `Content-Length`, `Transfer-Encoding` and `Connection` of one head, combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Declared {
    /// The body's length or the error in it; `None` without `Content-Length`.
    length: Option<Result<u64, MessageError>>,
    /// The transfer codings; `None` without `Transfer-Encoding`.
    pub(super) codings: Option<Codings>,
    close: bool,
    keep_alive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Codings {
    /// Number of codings, which is 0 if the field is empty.
    pub(super) count: usize,
    /// Index of `chunked`; `None` without it.
    chunked_at: Option<usize>,
    /// Whether a coding is not a token, or `chunked` appears twice or has parameters.
    pub(super) is_invalid: bool,
}

impl Codings {
    /// Whether the list is valid and `chunked` is the last coding.
    pub(super) fn end_chunked(&self) -> bool {
        !self.is_invalid && self.chunked_at.is_some_and(|at| at + 1 == self.count)
    }
}

impl Declared {
    /// Adds a field, whose `value` must be trimmed.
    pub(super) fn take(&mut self, field: Field, value: &[u8]) {
        match field {
            Field::ContentLength => self.take_length(value),
            Field::TransferEncoding => self.take_coding(value),
            Field::Connection => self.take_connection(value),
        }
    }

    fn take_length(&mut self, value: &[u8]) {
        if self.length.is_none()
            && let Some(bytes) = unsigned_of_any_length(value)
        {
            self.length = Some(Ok(bytes));
            return;
        }
        for element in value.split(|&byte| byte == b',') {
            self.length = Some(match (self.length, unsigned_of_any_length(element.trim_ascii())) {
                (_, None) | (Some(Err(MessageError::BadLength)), _) => Err(MessageError::BadLength),
                (None, Some(bytes)) => Ok(bytes),
                (Some(Ok(before)), Some(bytes)) if before == bytes => Ok(bytes),
                (Some(_), Some(_)) => Err(MessageError::ConflictingLength),
            });
        }
    }

    fn take_coding(&mut self, value: &[u8]) {
        let codings = self.codings.get_or_insert_default();
        // Empty list elements are ignored (RFC 9110, section 5.6.1.2).
        for element in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty()) {
            let end = memchr::memchr(b';', element).unwrap_or(element.len());
            let is_chunked = element[..end].trim_ascii().eq_ignore_ascii_case(b"chunked");
            codings.is_invalid |= !is_token(element[..end].trim_ascii());
            if is_chunked {
                // The chunked coding has no parameters (RFC 9112, section 7.1).
                codings.is_invalid |= end < element.len() || codings.chunked_at.is_some();
                codings.chunked_at = Some(codings.count);
            }
            codings.count += 1;
        }
    }

    fn take_connection(&mut self, value: &[u8]) {
        if value == b"keep-alive" {
            self.keep_alive = true;
            return;
        }
        for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Size of the body in bytes; `None` if not announced. Fails if the framing is invalid or contradictory.
    pub(super) fn length(&self, minor_version: u8) -> Result<Option<u64>, MessageError> {
        match (self.codings, self.length) {
            (None, length) => length.transpose(),
            (_, Some(_)) => Err(MessageError::EncodingWithLength),
            (_, None) if minor_version == 0 => Err(MessageError::EncodingInHttp10),
            (_, None) => Ok(None),
        }
    }

    /// Whether the connection can be reused. Source: RFC 9112, section 9.3.
    pub(super) fn persists(&self, minor_version: u8) -> bool {
        !self.close && (minor_version >= 1 || self.keep_alive)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    ContentLength,
    TransferEncoding,
    Connection,
}

impl Field {
    pub(super) fn from_name(name: &[u8]) -> Option<Field> {
        let (field, expect): (Field, &[u8]) = match name.len() {
            10 => (Field::Connection, b"connection"),
            14 => (Field::ContentLength, b"content-length"),
            17 => (Field::TransferEncoding, b"transfer-encoding"),
            _ => return None,
        };
        is_token_of(name, expect).then_some(field)
    }
}

/// Whether `name` equals `expect`, ignoring case. `expect` must be in lower case and as long as `name`: 8 to 24 bytes.
fn is_token_of(name: &[u8], expect: &[u8]) -> bool {
    // Setting this bit makes upper-case letters lower-case and turns no other byte of a token into a letter or hyphen.
    const SMALL: u64 = 0x2020_2020_2020_2020;
    let word = |bytes: &[u8], at: usize| bytes[at..].first_chunk().map(|word| u64::from_le_bytes(*word) | SMALL);
    let last = expect.len() - 8;
    let is_same = |at| word(name, at) == word(expect, at);
    is_same(0) && is_same(last) && is_same(last / 2)
}

/// The part of a body that has not been read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Remaining {
    Length(u64),
    Chunked(Chunks),
    UntilEnd,
}

impl Remaining {
    /// Starts a body, which ends with the stream if `body` is `None`. `folds` says whether trailers may be folded.
    pub(super) fn new(body: Option<Body>, folds: bool) -> Remaining {
        match body {
            Some(Body::None) => Remaining::Length(0),
            Some(Body::Length(bytes)) => Remaining::Length(bytes),
            Some(Body::Chunked) => Remaining::Chunked(Chunks::new(folds)),
            None => Remaining::UntilEnd,
        }
    }

    /// Reads the next part of the body. Returns the number of bytes used if the body is complete, or `None`.
    pub(super) fn read(
        &mut self,
        limits: &Limits,
        bytes: &[u8],
        mut data: impl FnMut(&[u8]),
    ) -> Result<Option<usize>, ChunkError> {
        let left = match self {
            Remaining::Length(left) => left,
            Remaining::Chunked(chunks) => return chunks.read(limits, bytes, data),
            Remaining::UntilEnd => &mut { u64::MAX }, // No part is that long.
        };
        let taken = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
        *left -= taken as u64;
        if taken > 0 {
            data(&bytes[..taken]);
        }
        Ok((*left == 0).then_some(taken))
    }
}
