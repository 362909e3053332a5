//! Chooses each request in a mix of HTTP requests.

use std::sync::Arc;

use stats::Rng;
use study::spec::{Expect, HttpRequest, even_share};
use wire::http1::RequestMethod;

use super::http_expectation::{Expectation, Sent};
use super::varied_requests::{Value, Values};

/// Maximum number of request kinds with separate results.
const OPERATIONS_MAX: usize = 64;

/// Names of the request kinds in a mix. Empty for a single kind or for more than [`OPERATIONS_MAX`].
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

#[derive(Debug)]
struct Kind {
    asked: RequestMethod,
    /// Sum of the weights of all requests up to and including this one.
    weight_until: u64,
    name: String,
    operation: Option<u32>,
    /// The value with the trace id of each request; `None` without trace ids.
    trace: Option<Arc<Value>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Mix {
    kinds: Arc<[Kind]>,
    /// Number of the next request in the whole load, and number of workers that take turns.
    number: u64,
    workers: u64,
    /// Number of requests left for this worker until a file of values ends; `None` if no file ends.
    left: Option<u64>,
    pub(super) expectation: Expectation,
}

impl Mix {
    /// Prepares a mix, whose requests have these `traces` and `mistakes`, and the checks of its responses. Fails with all
    /// mistakes.
    pub(super) fn new(
        requests: &[HttpRequest],
        traces: impl Iterator<Item = Option<Arc<Value>>>,
        expect: &Expect,
        values: &mut Values<'_>,
        mut mistakes: Vec<String>,
    ) -> Result<Self, Vec<String>> {
        let operations = operations(requests);
        let mut weight_until = 0;
        let kinds = requests.iter().zip(traces).map(|(request, trace)| {
            weight_until += u64::from(request.weight);
            let name = request.kind();
            let operation = operations.iter().position(|known| *known == name).map(|index| index as u32);
            Kind { asked: RequestMethod::parse(&request.method), weight_until, name, operation, trace }
        });
        let kinds = kinds.collect();
        let expectation = Expectation::new(expect, requests, values).map_err(|found| mistakes.extend(found));
        if requests.iter().all(|request| request.weight == 0) {
            mistakes.push("no request has a weight above 0".to_owned());
        }
        match expectation {
            Ok(expectation) if mistakes.is_empty() => {
                Ok(Self { kinds, number: 0, workers: 1, left: values.requests_max, expectation })
            }
            _ => Err(mistakes),
        }
    }

    pub(super) fn of_worker(&self, worker: u32, workers: u32) -> Self {
        let left = self.left.map(|all| even_share(all, worker.into(), workers.into()));
        Self { number: u64::from(worker), workers: u64::from(workers), left, ..self.clone() }
    }

    pub(super) fn available(&mut self, wanted: u32) -> u32 {
        let Some(left) = &mut self.left else { return wanted };
        // Take the requests now, because a request on a new connection is written only once that connection is open.
        let granted = u64::from(wanted).min(*left);
        *left -= granted;
        granted as u32
    }

    pub(super) fn next(&mut self, rng: &mut Rng) -> Sent {
        let index = match &*self.kinds {
            [_] => 0,
            all => {
                let at = rng.below(all[all.len() - 1].weight_until);
                all.partition_point(|kind| kind.weight_until <= at)
            }
        };
        let sent = Sent { index: index as u32, number: self.number };
        self.number += self.workers;
        sent
    }

    pub(super) fn asked(&self, sent: Sent) -> RequestMethod {
        self.kinds[sent.index as usize].asked
    }

    pub(crate) fn has_traces(&self) -> bool {
        self.kinds.iter().any(|kind| kind.trace.is_some())
    }

    /// The trace id and the name of a request; `None` if it has no trace id.
    pub(crate) fn trace(&self, sent: Sent) -> Option<(String, String)> {
        let kind = self.kinds.get(sent.index as usize)?;
        Some((kind.trace.as_ref()?.trace_id(sent.number), kind.name.clone()))
    }

    pub(super) fn operation(&self, sent: Sent) -> Option<u32> {
        self.kinds.get(sent.index as usize)?.operation
    }
}
