//! Reads the head of a request. Source: RFC 9113, section 8.3.1.

use std::ops::Range;

use super::Limits;
use super::error::ConnectionError;
use super::field_rules::{FieldError, FieldRules};
use super::hpack::Decoder;
use crate::http1::fields::is_token;
use crate::http1::request::is_host;

/// The head of a request. [`RequestHead::read`] replaces it and reuses its memory.
#[derive(Debug, Clone, Default)]
pub struct RequestHead {
    text: String,
    method: Option<Range<usize>>,
    scheme: Option<Range<usize>>,
    authority: Option<Range<usize>>,
    path: Option<Range<usize>>,
    /// The declared length of the body in bytes; `None` if undeclared.
    pub content_length: Option<u64>,
    /// Whether the client waits for an interim response 100. Source: RFC 9110, section 10.1.1.
    pub expect_continue: bool,
}

impl RequestHead {
    /// Decodes a field block and passes each regular field to `field`. An inner [`FieldError`] ends only the stream.
    pub fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        limits: &Limits,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<Result<(), FieldError>, ConnectionError> {
        self.text.clear();
        let text = std::mem::take(&mut self.text);
        *self = RequestHead { text, ..RequestHead::default() };
        let mut rules = FieldRules::default();
        let mut has_host = false;
        decoder.decode(block, limits, |name, value| {
            if !rules.is_pseudo(name, value) {
                match name {
                    b"host" => {
                        has_host = true;
                        let authority = self.part(&self.authority).unwrap_or_default().as_bytes();
                        if !is_host(value) || (!authority.is_empty() && !authority.eq_ignore_ascii_case(value)) {
                            rules.fail(FieldError::HOST);
                        }
                    }
                    b"expect" => self.expect_continue |= value.eq_ignore_ascii_case(b"100-continue"),
                    _ => {}
                }
                return field(name, value);
            }
            let (slot, is_valid, error) = match name {
                b":method" => (&mut self.method, is_token(value), FieldError::UNKNOWN_PSEUDO),
                b":scheme" => (&mut self.scheme, !value.is_empty(), FieldError::UNKNOWN_PSEUDO),
                b":authority" => (&mut self.authority, is_host(value), FieldError::HOST),
                b":path" => (&mut self.path, value.iter().all(u8::is_ascii_graphic), FieldError::PATH),
                _ => return rules.fail(FieldError::UNKNOWN_PSEUDO),
            };
            match str::from_utf8(value) {
                Ok(value) if is_valid => {
                    let start = self.text.len();
                    self.text.push_str(value);
                    if slot.replace(start..self.text.len()).is_some() {
                        rules.fail(FieldError::REPEATED_PSEUDO);
                    }
                }
                _ => rules.fail(error),
            }
        })?;
        Ok(rules.finish().and_then(|content_length| {
            self.content_length = content_length;
            self.check_pseudo(has_host)
        }))
    }

    fn check_pseudo(&self, has_host: bool) -> Result<(), FieldError> {
        let has_authority = self.authority.is_some() || has_host;
        let is_complete = match self.method() {
            "" => false,
            // CONNECT has neither `:scheme` nor `:path` (RFC 9113, section 8.5).
            "CONNECT" if self.scheme.is_some() || self.path.is_some() => return Err(FieldError::UNKNOWN_PSEUDO),
            "CONNECT" => self.authority.is_some(),
            _ => self.scheme.is_some() && self.path.is_some() && has_authority,
        };
        if !is_complete {
            return Err(FieldError::MISSING_PSEUDO);
        }
        let is_asterisk = self.path() == "*" && self.method() == "OPTIONS";
        if self.path.is_some() && !self.path().starts_with('/') && !is_asterisk {
            return Err(FieldError::PATH);
        }
        Ok(())
    }

    fn part(&self, range: &Option<Range<usize>>) -> Option<&str> {
        range.clone().map(|range| &self.text[range])
    }

    /// The method, a case-sensitive token.
    pub fn method(&self) -> &str {
        self.part(&self.method).unwrap_or_default()
    }

    /// The path with its query, or `*`; empty for CONNECT.
    pub fn path(&self) -> &str {
        self.part(&self.path).unwrap_or_default()
    }
}
