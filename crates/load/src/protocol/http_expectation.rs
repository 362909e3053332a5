//! Checks the status and the body of HTTP responses.

use std::sync::Arc;

use study::spec::{Expect, HttpRequest};
use wire::http1::RequestMethod;

use super::Difference;
use super::body_pattern_and_json_checks::{self, Checks};
use super::varied_requests::Values;
use crate::recorder::Fault;

/// A sent request: its index in the mix and its number in the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(super) index: u32,
    pub(super) number: u64,
}

impl Default for Sent {
    fn default() -> Self {
        Self { index: u32::MAX, number: 0 }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    statuses: Option<Vec<u16>>,
    body: Option<Vec<u8>>,
    checks: Option<Arc<Checks>>,
    pub(super) is_grpc: bool,
    /// The method of each request in the mix, to check messages as JSON; empty without a schema.
    methods: Arc<[grpc::Method]>,
    problem: Option<Problem>,
}

/// The `grpc-status` of a response and, for an error, a description with its message.
pub(super) type GrpcStatus = (u32, Option<String>);

#[derive(Clone, Debug)]
enum Problem {
    Text(String),
    Status(u16),
    Body { status: u16, bytes: u64, difference: Difference },
}

/// The part of a response body that has arrived.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// Number of bytes that have matched the expected body so far.
    as_expected: usize,
    difference: Option<Box<Difference>>,
    /// All bytes so far, if the whole body is checked.
    whole: Vec<u8>,
}

impl Expectation {
    pub(super) fn new(expect: &Expect, requests: &[HttpRequest], values: &mut Values<'_>) -> Result<Self, Vec<String>> {
        let checks = Checks::new(expect, values)?;
        let methods = expect.grpc_schema.as_ref().map_or(Ok(Vec::new()), |set| {
            let schema = grpc::Schema::decode(set)?;
            requests.iter().map(|request| schema.method(&request.target)).collect()
        });
        Ok(Self {
            statuses: expect.status.clone(),
            // A body with values is compared as a whole, by `checks`.
            body: expect.body.clone().filter(|_| checks.as_ref().is_none_or(|checks| checks.body.is_none())),
            checks: checks.map(Arc::new),
            is_grpc: expect.grpc,
            methods: methods.map_err(|error: String| vec![error])?.into(),
            problem: None,
        })
    }

    pub(super) fn checks_whole(&self, sent: Sent) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.applies_to(sent.number))
    }

    /// Takes the next piece of a body. `is_checked` must be the result of [`Expectation::checks_whole`].
    pub(super) fn compare(&self, so_far: &mut Body, is_checked: bool, piece: &[u8]) {
        let Body { as_expected, difference, whole } = so_far;
        if is_checked && whole.len() <= body_pattern_and_json_checks::BODY_MAX_BYTES {
            whole.extend_from_slice(piece);
        }
        let Some(body) = self.body.as_deref() else { return };
        let at = *as_expected;
        if difference.is_none() && body.get(at..at + piece.len()) == Some(piece) {
            *as_expected += piece.len();
        } else {
            let is_same = |at: u64, byte| usize::try_from(at).is_ok_and(|at| body.get(at) == Some(&byte));
            Difference::track(difference, at as u64, piece, is_same);
        }
    }

    pub(super) fn judge(
        &mut self,
        so_far: &mut Body,
        asked: RequestMethod,
        sent: Sent,
        status: u16,
        bytes: u64,
    ) -> Option<Fault> {
        let as_expected = std::mem::take(&mut so_far.as_expected);
        let difference = so_far.difference.take();
        let whole = std::mem::take(&mut so_far.whole);
        if !self.accepts(status) {
            self.problem = Some(Problem::Status(status));
            return Some(Fault::Status);
        }
        if let Some(body) = &self.body
            && asked != RequestMethod::Head
            && (difference.is_some() || as_expected != body.len())
        {
            let difference = difference.map_or(Difference::end(as_expected as u64), |difference| *difference);
            self.problem = Some(Problem::Body { status, bytes, difference });
            return Some(Fault::Body);
        }
        if self.checks_whole(sent)
            && let Some(checks) = &self.checks
        {
            let problem = match self.methods.get(sent.index as usize).map(|method| method.decode(&whole)) {
                None => checks.problem(sent.number, bytes, &whole),
                Some(Ok(json)) => checks.problem(sent.number, bytes, json.to_string().as_bytes()),
                Some(Err(error)) => Some(error),
            };
            self.problem = problem.map(Problem::Text);
            return self.problem.as_ref().map(|_| Fault::Body);
        }
        None
    }

    fn accepts(&self, status: u16) -> bool {
        match &self.statuses {
            None => (200..=299).contains(&status),
            Some(statuses) => statuses.contains(&status),
        }
    }

    /// Finds the fault of a gRPC call, given its status and whether its last message `is_complete`. Any response is
    /// valid if the load has no gRPC calls.
    pub(super) fn judge_grpc(&mut self, status: u16, grpc: Option<GrpcStatus>, is_complete: bool) -> Option<Fault> {
        if !self.is_grpc || !self.accepts(status) {
            return None;
        }
        let (fault, problem) = match grpc {
            Some((0, _)) if is_complete => return None,
            Some((0, _)) => (Fault::Truncated, "the last message of the response is truncated".to_owned()),
            Some((status, text)) => (Fault::GrpcStatus, text.unwrap_or_else(|| study::grpc::status_text(status))),
            None => (Fault::GrpcStatus, "a response without `grpc-status`".to_owned()),
        };
        self.note(Some(problem));
        Some(fault)
    }

    /// Stores `problem` for [`Expectation::explain`]. `None` removes an earlier problem.
    #[cold]
    pub(super) fn note(&mut self, problem: Option<String>) {
        self.problem = problem.map(Problem::Text);
    }

    pub(super) fn explain(&self) -> Option<String> {
        Some(match self.problem.clone()? {
            Problem::Text(text) => text,
            Problem::Status(status) => {
                study::validate_http::unexpected_status(status, self.statuses.as_deref().unwrap_or_default())
            }
            Problem::Body { status, bytes, difference } => {
                let expected = self.body.as_deref().unwrap_or_default();
                let words = difference.describe(expected);
                let all = expected.len();
                format!("status {status} with an unexpected body ({bytes} bytes, expected {all}): {words}")
            }
        })
    }
}
