//! A parsed request head, remembered in case the next one has the same bytes.

use wire::http1::{Body, Limits, MessageError, parse_request};

use super::route::{Refusal, Route, route};
use crate::response_head::{KeepAlive, Reply};

const MEMO_BYTES_MAX: usize = 2 << 10;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ParsedRequest {
    pub(super) route: Result<Route, Refusal>,
    pub(super) head_only: bool,
    pub(super) minor_version: u8,
    pub(super) keep_alive: bool,
    pub(super) expect_continue: bool,
    pub(super) body: Body,
}

impl ParsedRequest {
    pub(super) fn reply(&self, is_ending: bool) -> Reply {
        let keep_alive = KeepAlive::new(self.keep_alive && !is_ending, self.minor_version);
        Reply { keep_alive, head_only: self.head_only }
    }
}

/// A request and the size of its head in bytes; `None` if the head is incomplete.
type ParsedHead = Result<Option<(ParsedRequest, usize)>, MessageError>;

/// The latest head and its meaning, kept because a load generator repeats identical heads.
pub(super) struct Memo<T> {
    pub(super) head: Vec<u8>,
    pub(super) meaning: Option<T>,
}

impl<T> Memo<T> {
    /// Replaces the head, unless the new one is too large.
    pub(super) fn keep(&mut self, head: &[u8], meaning: T) {
        self.meaning = None;
        if head.len() <= MEMO_BYTES_MAX {
            self.head.clear();
            self.head.extend_from_slice(head);
            self.meaning = Some(meaning);
        }
    }
}

impl Memo<ParsedRequest> {
    pub(super) fn parse_head(&mut self, bytes: &[u8], limits: &Limits) -> ParsedHead {
        // Heads end in an empty line, so no head is a proper prefix of another one.
        match self.meaning {
            Some(asked) if bytes.starts_with(&self.head) => Ok(Some((asked, self.head.len()))),
            _ => self.parse_and_keep(bytes, limits),
        }
    }

    fn parse_and_keep(&mut self, bytes: &[u8], limits: &Limits) -> ParsedHead {
        let Some((request, head_bytes)) = parse_request(bytes, limits)? else { return Ok(None) };
        let asked = ParsedRequest {
            route: route(request.method, request.target),
            head_only: request.method == "HEAD",
            minor_version: request.minor_version,
            keep_alive: request.keep_alive,
            expect_continue: request.expect_continue,
            body: request.body,
        };
        self.keep(&bytes[..head_bytes], asked);
        Ok(Some((asked, head_bytes)))
    }
}
