//! Chooses each request in a mix of HTTP requests.

use std::sync::Arc;

use stats::Rng;
use study::spec::{HttpRequest, even_share};
use wire::http1::RequestMethod;

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
    operation: Option<u32>,
}

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
pub(crate) struct Mix {
    kinds: Arc<[Kind]>,
    /// Number of the next request in the whole load, and number of workers that take turns.
    number: u64,
    workers: u64,
    /// Number of requests left for this worker until a file of values ends; `None` if no file ends.
    left: Option<u64>,
}

impl Mix {
    /// Prepares a mix. Fails if no request has a weight.
    pub(super) fn new(requests: &[HttpRequest], left: Option<u64>) -> Result<Self, String> {
        let operations = operations(requests);
        let mut weight_until = 0;
        let kinds = requests.iter().map(|request| {
            weight_until += u64::from(request.weight);
            let kind = request.kind();
            let operation = operations.iter().position(|known| *known == kind).map(|index| index as u32);
            Kind { asked: RequestMethod::parse(&request.method), weight_until, operation }
        });
        let kinds = kinds.collect();
        if weight_until == 0 {
            return Err("no request has a weight above 0".to_owned());
        }
        Ok(Self { kinds, number: 0, workers: 1, left })
    }

    pub(super) fn of_worker(&self, worker: u32, workers: u32) -> Self {
        let left = self.left.map(|all| even_share(all, worker.into(), workers.into()));
        Self { number: u64::from(worker), workers: u64::from(workers), left, kinds: self.kinds.clone() }
    }

    #[inline]
    pub(super) fn available(&mut self, wanted: u32) -> u32 {
        let Some(left) = &mut self.left else { return wanted };
        // Take the requests now, because a request on a new connection is written only once that connection is open.
        let granted = u64::from(wanted).min(*left);
        *left -= granted;
        granted as u32
    }

    #[inline]
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

    #[inline]
    pub(super) fn asked(&self, sent: Sent) -> RequestMethod {
        self.kinds[sent.index as usize].asked
    }

    #[inline]
    pub(super) fn operation(&self, sent: Sent) -> Option<u32> {
        self.kinds.get(sent.index as usize)?.operation
    }
}
