//! HTTP/1.1: precomposed requests, exact framing of responses, and checks of status and body.

use std::sync::Arc;

use net::Nanos;
use stats::Rng;
use study::spec::{Connection, Expect, HttpRequest, even_share};
use wire::http1::{self, Limits, Memo, MessageError, RequestMethod, ResponseReader};

use super::checks::{self, Checks};
use super::variation::{Values, Varied};
use super::{CacheOutcome, Difference, Last, Parsed, Protocol};
use crate::recorder::Fault;

#[derive(Debug)]
struct Composed {
    bytes: Vec<u8>,
    /// Written in place of `bytes`.
    varied: Option<Varied>,
    asked: RequestMethod,
    /// Sum of the weights up to and including this request.
    weight_until: u64,
    operation: Option<u32>,
}

/// Maximum number of request kinds with separate results.
const OPERATIONS_MAX: usize = 64;

/// The kinds of requests in a mix, by method and target as written; empty for a single kind, or too
/// many.
pub(crate) fn operations(requests: &[HttpRequest]) -> Vec<String> {
    let mut names = Vec::<String>::new();
    for name in requests.iter().map(HttpRequest::kind) {
        if names.len() > OPERATIONS_MAX {
            break;
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if (2..=OPERATIONS_MAX).contains(&names.len()) { names } else { Vec::new() }
}

#[derive(Clone, Debug)]
pub(crate) struct Http {
    requests: Arc<[Composed]>,
    /// The next request's number in the whole load, and the number of workers that take turns.
    number: u64,
    workers: u64,
    /// Requests of this worker until a file of values ends; `None` if none ends.
    left: Option<u64>,
    scratch: Vec<u8>,
    statuses: Option<Vec<u16>>,
    body: Option<Vec<u8>>,
    memo: Memo,
    problem: Option<Problem>,
    last: Last,
    checks: Option<Arc<Checks>>,
}

#[derive(Clone, Debug)]
enum Problem {
    Check(String),
    Framing(MessageError),
    Status(u16),
    Body { status: u16, bytes: u64, difference: Difference },
}

/// A sent request: its index, and its number in the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    index: u32,
    number: u64,
}

/// Not sent.
impl Default for Sent {
    fn default() -> Self {
        Self { index: u32::MAX, number: 0 }
    }
}

#[derive(Debug)]
pub(crate) struct Stream {
    reader: ResponseReader,
    /// Bytes of the body that are as expected so far.
    as_expected: usize,
    difference: Option<Box<Difference>>,
    /// When the first part of the current response arrived; 0: it has not.
    first_at: Nanos,
    /// The body so far, for checks of the whole.
    body: Vec<u8>,
}

impl Http {
    pub(crate) fn new(
        requests: &[HttpRequest],
        expect: &Expect,
        connection: Connection,
        mut values: Values<'_>,
    ) -> Result<Self, Vec<String>> {
        let mut composed = Vec::new();
        let mut mistakes = Vec::new();
        let mut weight_until = 0;
        let operations = operations(requests);
        for request in requests {
            weight_until += u64::from(request.weight);
            let mut bytes = Vec::new();
            let close = connection == Connection::PerRequest;
            let HttpRequest { method, target, headers, body, .. } = request;
            let media_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
            let media_type = media_type.map(|(_, value)| value.as_str());
            let varied = http1::compose_request(&mut bytes, method, target, headers, body, close)
                .and_then(|()| Varied::compile(&bytes, body.len(), media_type, &mut values));
            match varied {
                Ok(varied) => {
                    let kind = request.kind();
                    let operation = operations.iter().position(|known| *known == kind).map(|index| index as u32);
                    let asked = RequestMethod::parse(method);
                    composed.push(Composed { bytes, varied, asked, weight_until, operation });
                }
                Err(error) => mistakes.push(format!("request `{method} {target}`: {error}")),
            }
        }
        let checks = Checks::new(expect, values.seed(), &mut values);
        let checks = checks.map_err(|found| mistakes.extend(found)).ok().flatten();
        if weight_until == 0 {
            mistakes.push("no request has a weight above 0".to_owned());
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(Self {
            requests: composed.into(),
            number: 0,
            workers: 1,
            left: values.requests_max(),
            scratch: Vec::new(),
            statuses: expect.status.clone(),
            // A body with values is compared as a whole.
            body: expect.body.clone().filter(|_| checks.as_ref().is_none_or(|checks| !checks.has_body())),
            checks: checks.map(Arc::new),
            memo: Memo::default(),
            problem: None,
            last: Last::default(),
        })
    }

    pub(crate) fn of_worker(&self, worker: u32, workers: u32) -> Self {
        let left = self.left.map(|all| even_share(all, worker.into(), workers.into()));
        Self { number: u64::from(worker), workers: u64::from(workers), left, ..self.clone() }
    }

    pub(crate) fn request_bytes_max(&self) -> usize {
        let bytes = |request: &Composed| request.varied.as_ref().map_or(request.bytes.len(), Varied::bytes_max);
        self.requests.iter().map(bytes).max().unwrap_or(0)
    }

    #[inline]
    fn push(&mut self, sent: Sent, now: Nanos, out: &mut Vec<u8>) {
        let request = &self.requests[sent.index as usize];
        match &request.varied {
            None => out.extend_from_slice(&request.bytes),
            Some(varied) => varied.push(sent.number, now, &mut self.scratch, out),
        }
    }

    fn judge(&mut self, stream: &mut Stream, response: http1::Response, sent: Sent) -> Option<Fault> {
        let asked = self.requests[sent.index as usize].asked;
        let as_expected = std::mem::take(&mut stream.as_expected);
        let difference = stream.difference.take();
        let whole = std::mem::take(&mut stream.body);
        let good_status = match &self.statuses {
            None => (200..=299).contains(&response.status),
            Some(statuses) => statuses.contains(&response.status),
        };
        if !good_status {
            self.problem = Some(Problem::Status(response.status));
            return Some(Fault::Status);
        }
        if let Some(body) = &self.body
            && asked != RequestMethod::Head
            && (difference.is_some() || as_expected != body.len())
        {
            let difference = difference.map_or(Difference::end(as_expected as u64), |difference| *difference);
            self.problem = Some(Problem::Body { status: response.status, bytes: response.body_bytes, difference });
            return Some(Fault::Body);
        }
        if self.is_checked(sent)
            && let Some(checks) = &self.checks
        {
            let problem = checks.problem(sent.number, response.body_bytes, &whole);
            self.problem = problem.map(Problem::Check);
            return self.problem.as_ref().map(|_| Fault::Body);
        }
        None
    }

    #[cold]
    fn broken(&mut self, error: MessageError) -> Parsed {
        self.problem = Some(Problem::Framing(error));
        Parsed::Broken(super::http_fault(&error))
    }
}

impl Protocol for Http {
    type Stream = Stream;
    type Expected = Sent;
    const UNREADABLE: Fault = Fault::Framing;

    fn stream(&self) -> Stream {
        Stream {
            reader: ResponseReader::new(Limits::DEFAULT),
            as_expected: 0,
            difference: None,
            first_at: 0,
            body: Vec::new(),
        }
    }

    #[inline]
    fn available(&mut self, wanted: u32) -> u32 {
        let Some(left) = &mut self.left else { return wanted };
        // Taken at once: a request of a new connection is written once the connection is open.
        let granted = u64::from(wanted).min(*left);
        *left -= granted;
        granted as u32
    }

    #[inline]
    fn request(&mut self, _: &mut Stream, now: Nanos, rng: &mut Rng, out: &mut Vec<u8>) -> Sent {
        let index = match &*self.requests {
            [_] => 0,
            all => {
                let total = all[all.len() - 1].weight_until;
                let at = rng.below(total);
                all.partition_point(|request| request.weight_until <= at)
            }
        };
        let sent = Sent { index: index as u32, number: self.number };
        self.number += self.workers;
        self.push(sent, now, out);
        sent
    }

    #[inline]
    fn is_checked(&self, sent: Sent) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.applies_to(sent.number))
    }

    #[inline]
    fn last(&self) -> Option<Last> {
        Some(self.last)
    }

    fn index(&self, sent: Sent) -> u32 {
        sent.index
    }

    #[inline]
    fn operation(&self, sent: Sent) -> Option<u32> {
        self.requests.get(sent.index as usize)?.operation
    }

    fn again(&mut self, _: &mut Stream, sent: Sent, now: Nanos, out: &mut Vec<u8>) -> Sent {
        self.push(sent, now, out);
        sent
    }

    #[inline]
    fn read(&mut self, stream: &mut Stream, sent: Sent, bytes: &[u8], at: Nanos) -> Parsed {
        let asked = self.requests[sent.index as usize].asked;
        let Stream { reader, as_expected, difference, first_at, body: whole } = stream;
        if *first_at == 0 {
            *first_at = at;
        }
        let body = self.body.as_deref();
        let is_checked = self.is_checked(sent);
        let compare = |piece: &[u8]| {
            if is_checked && whole.len() <= checks::BODY_MAX_BYTES {
                whole.extend_from_slice(piece);
            }
            let Some(body) = body else { return };
            let at = *as_expected;
            if difference.is_none() && body.get(at..at + piece.len()) == Some(piece) {
                *as_expected += piece.len();
            } else {
                differs(difference, body, at, piece);
            }
        };
        match reader.read(&mut self.memo, asked, bytes, compare) {
            Ok(None) => Parsed::More,
            Ok(Some((used, response))) => {
                self.last = Last { first_at: std::mem::take(first_at), bytes: response.body_bytes };
                let fault = self.judge(stream, response, sent);
                Parsed::Answer {
                    used,
                    fault,
                    status: response.status,
                    last: !response.keep_alive,
                    seen: CacheOutcome::NOTHING,
                }
            }
            Err(error) => self.broken(error),
        }
    }

    fn end(&mut self, stream: &mut Stream, sent: Sent) -> Parsed {
        match stream.reader.end() {
            Ok(Some(response)) => {
                self.last = Last { first_at: std::mem::take(&mut stream.first_at), bytes: response.body_bytes };
                let fault = self.judge(stream, response, sent);
                Parsed::Answer { used: 0, fault, status: response.status, last: true, seen: CacheOutcome::NOTHING }
            }
            Ok(None) => {
                self.problem = None;
                Parsed::Broken(Fault::Closed)
            }
            Err(error) => self.broken(error),
        }
    }

    fn explain(&self) -> Option<String> {
        Some(match self.problem.clone()? {
            Problem::Check(text) => text,
            Problem::Framing(error) => error.to_string(),
            Problem::Status(status) => {
                study::validate_http::unexpected_status(status, self.statuses.as_deref().unwrap_or_default())
            }
            Problem::Body { status, bytes, difference } => {
                let expected = self.body.as_deref().unwrap_or_default();
                let words = difference.describe(&expected[difference.at() as usize..]);
                let all = expected.len();
                format!("status {status} with an unexpected body ({bytes} bytes, expected {all}): {words}")
            }
        })
    }
}

#[cold]
fn differs(difference: &mut Option<Box<Difference>>, body: &[u8], at: usize, piece: &[u8]) {
    match difference {
        Some(difference) => difference.add(piece),
        None => {
            let is_same = |at: u64, byte| usize::try_from(at).is_ok_and(|at| body.get(at) == Some(&byte));
            *difference = Difference::find(at as u64, piece, is_same).map(Box::new);
        }
    }
}
