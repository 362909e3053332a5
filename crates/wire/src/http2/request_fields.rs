//! The fields of a client's requests, and the HPACK table entries that they share. Source: RFC 9113, section 8.3.1.

use super::hpack::{self, Indexing};
use crate::http1;

/// Returns a request's fields, pseudo-header fields first. `headers` must have `Host`. Adds `content-length` and fails
/// like [`http1::compose_request`]. Also fails for CONNECT and for fields that belong to HTTP/1.1 connections.
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
        let value = value.as_ref().trim_ascii().to_owned();
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
    /// Refers to the shared fields in the table, with one byte for each.
    Refer,
    /// Neither fills nor uses the table, for a server whose table is too small.
    Avoid,
}

/// Fields that all requests of a mix have in common. A client puts them into the server's table once per connection.
#[derive(Debug, Clone, Default)]
pub struct SharedFields(Vec<(String, String)>);

/// Names of fields that clients do not put into the table, because their values rarely repeat.
const UNSHARED: [&str; 2] = [":path", "content-length"];

impl SharedFields {
    /// Selects fields that are in all requests, have a fixed value and together fit into a table of `table_bytes`.
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
