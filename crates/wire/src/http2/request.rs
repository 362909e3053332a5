//! The head of a request: read by a server, composed by a client. Source: RFC 9113, section 8.3.1.

use std::ops::Range;

use super::Limits;
use super::error::ConnectionError;
use super::field_rules::{FieldError, FieldRules};
use super::hpack::{self, Decoder, Indexing};
use crate::http1;
use crate::http1::fields::{is_token, trim};
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
    /// Decodes a field block and passes each regular field to `field`. The inner error ends only the stream.
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
                            rules.fail(FieldError::Host);
                        }
                    }
                    b"expect" => self.expect_continue |= value.eq_ignore_ascii_case(b"100-continue"),
                    _ => {}
                }
                return field(name, value);
            }
            let (slot, is_valid, error) = match name {
                b":method" => (&mut self.method, is_token(value), FieldError::UnknownPseudo),
                b":scheme" => (&mut self.scheme, !value.is_empty(), FieldError::UnknownPseudo),
                b":authority" => (&mut self.authority, is_host(value), FieldError::Host),
                b":path" => (&mut self.path, value.iter().all(u8::is_ascii_graphic), FieldError::Path),
                _ => return rules.fail(FieldError::UnknownPseudo),
            };
            match str::from_utf8(value) {
                Ok(value) if is_valid => {
                    let start = self.text.len();
                    self.text.push_str(value);
                    if slot.replace(start..self.text.len()).is_some() {
                        rules.fail(FieldError::RepeatedPseudo);
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
            "CONNECT" if self.scheme.is_some() || self.path.is_some() => return Err(FieldError::UnknownPseudo),
            "CONNECT" => self.authority.is_some(),
            _ => self.scheme.is_some() && self.path.is_some() && has_authority,
        };
        if !is_complete {
            return Err(FieldError::MissingPseudo);
        }
        let is_asterisk = self.path() == "*" && self.method() == "OPTIONS";
        if self.path.is_some() && !self.path().starts_with('/') && !is_asterisk {
            return Err(FieldError::Path);
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

/// The fields of a request, pseudo-header fields first. `headers` includes `Host`. Adds `content-length` as
/// [`http1::compose_request`] does. Fails for the reasons given there, for CONNECT, and for headers of HTTP/1.1
/// connections.
pub fn request_fields(
    scheme: &str,
    method: &str,
    target: &str,
    headers: &[(impl AsRef<str>, impl AsRef<str>)],
    body: &[u8],
) -> Result<Vec<(String, String)>, String> {
    http1::compose_request(&mut Vec::new(), method, target, headers, body, false)?;
    if method == "CONNECT" || !(target.starts_with('/') || target == "*") {
        return Err(format!(
            "`{method} {target}` cannot be sent over HTTP/2: only paths and methods other than CONNECT"
        ));
    }
    let mut fields = [(":method", method), (":scheme", scheme), (":authority", ""), (":path", target)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    let mut has_length = false;
    for (name, value) in headers {
        let name = name.as_ref().to_ascii_lowercase();
        let value = String::from_utf8_lossy(trim(value.as_ref().as_bytes())).into_owned();
        match name.as_str() {
            "host" => fields[2].1 = value,
            "connection" | "keep-alive" | "proxy-connection" | "upgrade" => {
                return Err(format!("`{name}` is a header of HTTP/1.1 connections: drop it, HTTP/2 forbids it"));
            }
            "te" if value != "trailers" => return Err("`te` must be `trailers` over HTTP/2".to_owned()),
            _ => {
                has_length |= name == "content-length";
                fields.push((name, value));
            }
        }
    }
    if !has_length && (!body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH")) {
        fields.push(("content-length".to_owned(), body.len().to_string()));
    }
    Ok(fields)
}

/// How a block uses the server's dynamic table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableUse {
    /// Fills the empty table with the shared fields, in the first block of a connection.
    Fill,
    /// Refers to the shared fields in the table, one byte each.
    Refer,
    /// Neither fills nor uses the table, for a server whose table is too small.
    Avoid,
}

/// Fields that all requests of a mix have in common. A client puts them into the server's table once per connection.
#[derive(Debug, Clone, Default)]
pub struct SharedFields(Vec<(String, String)>);

/// Fields that clients do not put into the table, because their values rarely repeat.
const UNSHARED: [&str; 2] = [":path", "content-length"];

impl SharedFields {
    /// The fields that the first request shares with all others and that fit into a table of
    /// `table_bytes`. `is_fixed` returns whether a value stays the same.
    pub fn new(
        requests: &[Vec<(String, String)>],
        table_bytes: usize,
        is_fixed: impl Fn(&str) -> bool,
    ) -> SharedFields {
        let mut shared = SharedFields::default();
        for field in requests.first().into_iter().flatten() {
            let is_common = requests.iter().all(|fields| fields.iter().filter(|other| *other == field).count() == 1);
            let fits = shared.table_bytes() + size(field) <= table_bytes;
            if is_common && fits && is_fixed(&field.1) && !UNSHARED.contains(&field.0.as_str()) && !is_static(field) {
                shared.0.push(field.clone());
            }
        }
        shared
    }

    /// Size of the fields in the server's table, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.0.iter().map(size).sum()
    }

    /// Puts the fields of a request into the order in which [`TableUse::Fill`] must write them.
    pub fn sort(&self, fields: &mut [(String, String)]) {
        fields.sort_by_key(|field| (!field.0.starts_with(':'), self.position(field).unwrap_or(usize::MAX)));
    }

    /// Appends a field of a request, in the form that `table` requires.
    pub fn push(&self, out: &mut Vec<u8>, field: &(String, String), table: TableUse) {
        let position = self.position(field);
        let indexing = match (position, table) {
            (Some(position), TableUse::Refer) => {
                return hpack::push_indexed(out, hpack::DYNAMIC_FIRST + self.0.len() - 1 - position);
            }
            (Some(_), TableUse::Fill) => Indexing::Insert,
            _ => Indexing::Skip,
        };
        hpack::push_field(out, field.0.as_bytes(), field.1.as_bytes(), indexing);
    }

    fn position(&self, field: &(String, String)) -> Option<usize> {
        self.0.iter().position(|shared| shared == field)
    }
}

fn size((name, value): &(String, String)) -> usize {
    name.len() + value.len() + hpack::FIELD_OVERHEAD_BYTES
}

fn is_static(field: &(String, String)) -> bool {
    let mut block = Vec::new();
    hpack::push_field(&mut block, field.0.as_bytes(), field.1.as_bytes(), Indexing::Skip);
    block.len() == 1
}
