//! Rules on the fields of a message. Source: RFC 9113, sections 8.2 and 8.3.

use super::Limits;
use super::error::ConnectionError;
use super::hpack::Decoder;
use crate::decimal::unsigned_of_any_length;
use crate::http1::fields::{is_control, is_token_byte};

/// A malformed message: a stream error of type PROTOCOL_ERROR. Source: RFC 9113, section 8.1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldError(&'static str);

impl FieldError {
    /// A name that is not a lower-case token. Source: RFC 9113, section 8.2.1.
    pub const NAME: FieldError = FieldError("a field name that is not a lower-case token");
    /// A value with a control character, or with white space at either end. Source: RFC 9113, section 8.2.1.
    pub const VALUE: FieldError =
        FieldError("a field value with a control character, or with white space at its start or end");
    /// A field that belongs to HTTP/1.1 connections. Source: RFC 9113, section 8.2.2.
    pub const CONNECTION: FieldError =
        FieldError("a field of HTTP/1.1 connections, such as `connection` or `transfer-encoding`");
    /// A pseudo-header field that is unknown, in trailers, or for the other direction. Source: RFC 9113, section 8.3.
    pub const UNKNOWN_PSEUDO: FieldError = FieldError("a pseudo-header field that this message cannot have");
    /// A pseudo-header field after a regular field. Source: RFC 9113, section 8.3.
    pub const LATE_PSEUDO: FieldError = FieldError("a pseudo-header field after a regular field");
    /// A pseudo-header field that appears twice. Source: RFC 9113, section 8.3.
    pub const REPEATED_PSEUDO: FieldError = FieldError("a pseudo-header field that appears twice");
    /// A message without a required pseudo-header field. Source: RFC 9113, sections 8.3.1, 8.3.2 and 8.5.
    pub const MISSING_PSEUDO: FieldError = FieldError("a pseudo-header field is missing");
    /// A `:path` that is not a path, or that is `*` without OPTIONS. Source: RFC 9113, section 8.3.1.
    pub const PATH: FieldError = FieldError("a `:path` that is not a path");
    /// A `host` that differs from `:authority`. Source: RFC 9113, section 8.3.1.
    pub const HOST: FieldError = FieldError("a `host` other than `:authority`");
    /// A `:status` that is not three digits, or that is 101. Source: RFC 9113, sections 8.3.2 and 8.6.
    pub const STATUS: FieldError = FieldError("a `:status` that is not three digits, or 101");
    /// A length that is not a number below 2^64, or several lengths. Source: RFC 9113, section 8.1.1.
    pub const LENGTH: FieldError = FieldError("a `content-length` that is not one number below 2^64");
    /// A body that is longer or shorter than announced. Source: RFC 9113, section 8.1.1.
    pub const BODY_LENGTH: FieldError = FieldError("a body that is longer or shorter than its `content-length`");
    /// An interim response that ends the stream, or trailers that do not end it. Source: RFC 9113, section 8.1.
    pub const ENDING: FieldError = FieldError("interim response with END_STREAM, or trailers without it");
    /// A body that starts before the final response. Source: RFC 9113, section 8.1.
    pub const EARLY_DATA: FieldError = FieldError("DATA before the final response");
}

/// State of the checks that apply to each field, and the declared length of the body.
#[derive(Debug, Default)]
pub(super) struct FieldRules {
    has_regular: bool,
    content_length: Option<u64>,
    error: Option<FieldError>,
}

impl FieldRules {
    /// Checks the next field. Returns whether it is a pseudo-header field.
    pub(super) fn is_pseudo(&mut self, name: &[u8], value: &[u8]) -> bool {
        let has_control = value.iter().any(|&byte| is_control(byte));
        if has_control || value.trim_ascii().len() != value.len() {
            self.fail(FieldError::VALUE);
        }
        if name.first() == Some(&b':') {
            if self.has_regular {
                self.fail(FieldError::LATE_PSEUDO);
            }
            return true;
        }
        self.has_regular = true;
        if name.is_empty() || !name.iter().all(|&byte| is_token_byte(byte) && !byte.is_ascii_uppercase()) {
            self.fail(FieldError::NAME);
        }
        match name {
            b"content-length" => match (self.content_length, unsigned_of_any_length(value)) {
                (None, Some(bytes)) => self.content_length = Some(bytes),
                (Some(before), Some(bytes)) if before == bytes => {}
                _ => self.fail(FieldError::LENGTH),
            },
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                self.fail(FieldError::CONNECTION);
            }
            b"te" if value != b"trailers" => self.fail(FieldError::CONNECTION),
            _ => {}
        }
        false
    }

    pub(super) fn fail(&mut self, error: FieldError) {
        self.error.get_or_insert(error);
    }

    /// Returns the declared length of the body in bytes; `None` if undeclared. Fails with the first field error.
    pub(super) fn finish(self) -> Result<Option<u64>, FieldError> {
        self.error.map_or(Ok(self.content_length), Err)
    }
}

/// Decodes trailers and passes each field to `field`. An inner [`FieldError`] ends only the stream.
pub fn read_trailers(
    decoder: &mut Decoder,
    block: &[u8],
    limits: &Limits,
    mut field: impl FnMut(&[u8], &[u8]),
) -> Result<Result<(), FieldError>, ConnectionError> {
    let mut rules = FieldRules::default();
    decoder.decode(block, limits, |name, value| {
        if rules.is_pseudo(name, value) {
            return rules.fail(FieldError::UNKNOWN_PSEUDO);
        }
        field(name, value);
    })?;
    Ok(rules.finish().map(|_| ()))
}
