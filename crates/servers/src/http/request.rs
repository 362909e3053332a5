//! What a request asks for.

use wire::http1::{Body, Limits, RequestError, parse_request};

use super::route::{Refusal, Route, route};
use crate::response_head::KeepAlive;

/// A head beyond this is not remembered.
const MEMO_BYTES_MAX: usize = 2 << 10;

/// What a request asks for: all that is kept of its head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ParsedRequest {
    pub(super) route: Result<Route, Refusal>,
    /// HEAD: the answer has no body.
    pub(super) head_only: bool,
    pub(super) minor_version: u8,
    pub(super) keep_alive: bool,
    pub(super) expect_continue: bool,
    pub(super) body: Body,
}

impl ParsedRequest {
    /// Whether the connection stays after the response.
    #[inline]
    pub(super) fn keep_alive(&self, is_ending: bool) -> KeepAlive {
        KeepAlive::new(self.keep_alive && !is_ending, self.minor_version)
    }
}

/// The latest head and what it meant. A generator sends the same head over and over, and a head that is the same byte
/// for byte means the same.
#[derive(Debug, Default)]
pub(super) struct Memo {
    head: Vec<u8>,
    asked: Option<ParsedRequest>,
}

impl Memo {
    /// The request at the front of `bytes` and the bytes of its head; `None` while it is not complete.
    #[inline]
    pub(super) fn parse_head(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Option<(ParsedRequest, usize)>, RequestError> {
        // A head ends in an empty line, so no longer one begins with it.
        match self.asked {
            Some(asked) if bytes.starts_with(&self.head) => Ok(Some((asked, self.head.len()))),
            _ => self.parse_and_keep(bytes, limits),
        }
    }

    fn parse_and_keep(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Option<(ParsedRequest, usize)>, RequestError> {
        let Some((request, head_bytes)) = parse_request(bytes, limits)? else { return Ok(None) };
        let asked = ParsedRequest {
            route: route(request.method, request.target),
            head_only: request.method == "HEAD",
            minor_version: request.minor_version,
            keep_alive: request.keep_alive,
            expect_continue: request.expect_continue,
            body: request.body,
        };
        self.asked = None;
        if head_bytes <= MEMO_BYTES_MAX {
            self.head.clear();
            self.head.extend_from_slice(&bytes[..head_bytes]);
            self.asked = Some(asked);
        }
        Ok(Some((asked, head_bytes)))
    }
}
