use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use net::Nanos;
use stats::Histogram;
use study::record::CallTime;
use study::spec::{ClientCertificate, Identities, Tls};
use study::url::Url;

use super::connection::{Connection, Piece, SLICE};
use super::cookies::Jar;
use super::program::{Answer, Program, Step};
use super::resolver::{self, Destination, Resolver};
use super::values::Values;
use crate::censored::Stalls;
use crate::recorder::{Answered, Fault, OrFault, Recorder};
use crate::tls::Connector;
use crate::worker::BACKOFF_NS;

/// Maximum number of open connections per client. At the limit it closes all and starts over.
const CONNECTIONS_MAX: usize = 64;
const BODY_BYTES_MAX: usize = study::limits::BODY_MAX_BYTES as usize;
/// Maximum number of recorded call times, over all clients.
pub(crate) const CALLS_MAX: usize = 1_000_000;

#[derive(Clone, Debug)]
pub(crate) struct OperationCount {
    pub(crate) errors: u64,
    pub(crate) service: Histogram,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ClientResults {
    pub(crate) operations: Vec<OperationCount>,
    pub(crate) completed: u64,
    pub(crate) abandoned: u64,
    pub(crate) calls: Vec<CallTime>,
    pub(crate) calls_left_out: u64,
    /// Requests in flight, integrated over time, ns.
    pub(crate) flight_integral: u128,
    pub(crate) unanswered: Option<Nanos>,
    pub(crate) stalls: Stalls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Completed,
    Abandoned,
    Cut,
}

/// Whether the load is over.
type IsOver<'a> = dyn FnMut(&mut Recorder) -> bool + 'a;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) number: u64,
    pub(crate) is_measured: bool,
    /// Start of measuring, or 0 before.
    pub(crate) from: Nanos,
}

pub(crate) struct Client<'a> {
    pub(crate) recorder: Recorder,
    pub(crate) made: ClientResults,
    common: &'a Common<'a>,
    index: u32,
    resolver: Resolver,
    connections: HashMap<(Destination, String), Connection>,
    connectors: HashMap<String, Connector>,
    opened: HashSet<(Destination, String)>,
    sequence: i32,
    request: Vec<u8>,
    body: Vec<u8>,
    backoff_ns: Nanos,
    /// Always empty.
    cookies: Jar,
}

pub(crate) struct Common<'a> {
    pub(crate) program: Program,
    pub(crate) tls: HashMap<String, Connector>,
    pub(crate) insecure: bool,
    pub(crate) ca_file: Option<&'a str>,
    pub(crate) certificate: Option<&'a ClientCertificate>,
    pub(crate) seed: u64,
    pub(crate) identities: Identities,
    pub(crate) timeout_ns: Nanos,
    pub(crate) resolve: Option<Url>,
    pub(crate) calls_kept: usize,
    /// Number of the next journey, and how many may still start.
    pub(crate) next: AtomicU64,
    pub(crate) left: Option<AtomicI64>,
}

impl Common<'_> {
    pub(crate) fn connector(&self, host: &str) -> Result<Connector, String> {
        let ca_file = self.ca_file.map(str::to_owned);
        let client = self.certificate.cloned();
        Connector::new(&Tls { server_name: host.to_owned(), insecure: self.insecure, ca_file, client, resume: true })
    }
}

impl<'a> Client<'a> {
    pub(crate) fn new(common: &'a Common<'a>, index: u32, recorder: Recorder) -> Client<'a> {
        let none = OperationCount { errors: 0, service: Histogram::with_precision(Histogram::WINDOW_PRECISION) };
        let operations = vec![none; common.program.operations.len()];
        Client {
            recorder,
            made: ClientResults { operations, ..ClientResults::default() },
            common,
            index,
            resolver: Resolver::new(common.resolve.clone(), common.timeout_ns),
            connections: HashMap::new(),
            connectors: HashMap::new(),
            opened: HashSet::new(),
            sequence: 0,
            request: Vec::new(),
            body: Vec::new(),
            backoff_ns: BACKOFF_NS.0,
            cookies: Jar::default(),
        }
    }

    /// Opens the connection for the first step, if its URL is known.
    pub(crate) fn reach(&mut self) -> OrFault<()> {
        let program = &self.common.program;
        let mut values = program.initial_values(self.common.seed, 0);
        let url = values.text(&program.steps[0].url);
        let endpoint = resolver::endpoint(&url).map_err(|why| (Fault::Value, why))?;
        self.connected(&url, &endpoint).map(drop)
    }

    /// Runs one journey. While waiting for a reply, polls `is_over`.
    pub(crate) fn make(&mut self, order: Order, is_over: &mut IsOver<'_>) -> Ended {
        let Common { program, seed, identities, .. } = self.common;
        let number = match identities {
            Identities::Fresh => order.number,
            Identities::Reused => u64::from(self.index),
        };
        let mut values = program.initial_values(*seed, number);
        for step in &program.steps {
            let until = net::thread::monotonic_ns() + step.think_ns;
            while net::thread::monotonic_ns() < until {
                if is_over(&mut self.recorder) {
                    return Ended::Cut;
                }
                let left_ns = until.saturating_sub(net::thread::monotonic_ns());
                std::thread::sleep(SLICE.min(Duration::from_nanos(left_ns)));
            }
            match self.call(step, &mut values, order, is_over) {
                Ok(true) => {}
                Ok(false) => return Ended::Cut,
                Err((fault, why)) => {
                    self.wrong(step, fault, why, order);
                    return Ended::Abandoned;
                }
            }
        }
        self.backoff_ns = BACKOFF_NS.0;
        self.made.completed += u64::from(order.is_measured);
        Ended::Completed
    }

    pub(crate) fn pause(&mut self) -> Duration {
        let pause_ns = self.backoff_ns;
        self.backoff_ns = (pause_ns * 2).min(BACKOFF_NS.1);
        Duration::from_nanos(pause_ns)
    }

    fn wrong(&mut self, step: &Step, fault: Fault, why: String, order: Order) {
        let name = &self.common.program.operations[step.operation];
        self.recorder.example(fault, || Some(format!("`{name}`: {why}")));
        if order.is_measured {
            self.made.operations[step.operation].errors += 1;
            self.made.abandoned += 1;
            self.recorder.fault(fault, net::thread::monotonic_ns());
        } else {
            self.recorder.warmup_faults[fault as usize] += 1;
        }
    }

    /// `Ok(false)`: the load ended before the reply.
    fn call(&mut self, step: &Step, values: &mut Values, order: Order, is_over: &mut IsOver<'_>) -> OrFault<bool> {
        let url = values.text(&step.url);
        let endpoint = resolver::endpoint(&url).map_err(|why| (Fault::Value, format!("invalid URL to call: {why}")))?;
        self.sequence = self.sequence.wrapping_add(1) & i32::MAX;
        let sequence = self.sequence;
        self.request.clear();
        let (program, host) = (&self.common.program, endpoint.host_field());
        let place = (host.as_str(), endpoint.target.as_str());
        let composed = program.compose(step, values, place, &self.cookies, sequence, &mut self.request);
        composed.map_err(|why| (Fault::Value, format!("cannot compose the request: {why}")))?;
        let key = self.connected(&url, &endpoint)?;
        let mut connection = self.connections.remove(&key).expect("just opened or kept open");
        let (sent_before, received_before) = (connection.sent_bytes, connection.received_bytes);
        let sent_at = net::thread::monotonic_ns();
        self.recorder.sent += 1;
        let outcome = self.exchange(&mut connection, step, sent_at, is_over);
        let at = net::thread::monotonic_ns();
        let service_ns = at.saturating_sub(sent_at);
        if order.is_measured {
            self.recorder.sent_bytes += connection.sent_bytes - sent_before;
            self.recorder.received_bytes += connection.received_bytes - received_before;
            self.made.flight_integral += u128::from(service_ns);
            if !matches!(outcome, Ok(None)) {
                // Any response or close, valid or not, shows that the load lasted until now.
                self.recorder.last_answer = at;
            }
        }
        let outcome = match outcome {
            Ok(Some(response)) if !is_over(&mut self.recorder) => {
                if order.is_measured {
                    self.recorder.status(response.status);
                }
                let answer = Answer { status: response.status, head: &[], body: &self.body, cookies: &self.cookies };
                let judged = self.common.program.judge(step, values, &answer, sequence);
                if response.keep_alive && !connection.has_more() {
                    self.connections.insert(key, connection);
                } else if connection.has_more() {
                    // Unexpected bytes after a response make the next one unreliable.
                    return Err((Fault::Framing, "unexpected bytes after the response".to_owned()));
                }
                judged
            }
            // The load has ended, so a reply no longer counts, but the connection must stay open.
            Ok(_) => {
                self.recorder.left_in_flight += 1;
                self.made.unanswered = order.is_measured.then_some(sent_at);
                self.connections.insert(key, connection);
                return Ok(false);
            }
            Err(error) => Err(error),
        };
        if order.is_measured {
            let times = CallTime {
                operation: step.operation as u32,
                client: self.index,
                journey: order.number,
                sent_ns: sent_at.saturating_sub(order.from),
                latency_ns: service_ns,
                is_right: outcome.is_ok(),
            };
            if self.made.calls.len() < self.common.calls_kept {
                self.made.calls.push(times);
            } else if self.common.calls_kept > 0 {
                self.made.calls_left_out += 1;
            }
        }
        outcome?;
        if order.is_measured {
            self.made.operations[step.operation].service.record(service_ns);
            self.recorder.answer(Answered { intended: sent_at, free_since: sent_at, sent_at, at }, false);
        } else {
            self.recorder.warmup_requests += 1;
        }
        Ok(true)
    }

    /// `None`: the load ended before the whole reply arrived.
    fn exchange(
        &mut self,
        connection: &mut Connection,
        step: &Step,
        sent_at: Nanos,
        is_over: &mut IsOver<'_>,
    ) -> OrFault<Option<wire::http1::Response>> {
        self.body.clear();
        connection.send(&self.request)?;
        loop {
            let wake = net::thread::monotonic_ns() + SLICE.as_nanos() as u64;
            let piece = connection.receive(step.asked, &mut self.body, BODY_BYTES_MAX);
            self.made.stalls.record_wake(wake, net::thread::monotonic_ns());
            match piece? {
                Piece::Done(response) => return Ok(Some(response)),
                Piece::More => {
                    let now = net::thread::monotonic_ns();
                    if now.saturating_sub(sent_at) >= self.common.timeout_ns {
                        let waited = self.common.timeout_ns as f64 / 1e9;
                        return Err((Fault::Timeout, format!("no response within {waited} s")));
                    }
                    if is_over(&mut self.recorder) {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn connected(&mut self, url: &str, endpoint: &Url) -> OrFault<(Destination, String)> {
        let place = self.resolver.destination(url, endpoint)?;
        // Two names at one address are two servers, since their certificates differ.
        let key = (place, endpoint.host.clone());
        if self.connections.contains_key(&key) {
            return Ok(key);
        }
        if self.connections.len() >= CONNECTIONS_MAX {
            self.connections.clear();
            self.opened.clear();
        }
        let tls = if place.is_encrypted { Some(self.connector(&endpoint.host)?) } else { None };
        let patience = Duration::from_nanos(self.common.timeout_ns);
        let connection =
            Connection::open(place.address, tls.as_ref(), patience).inspect_err(|_| self.resolver.forget())?;
        self.recorder.connect.record(connection.connect_ns);
        if let Some((elapsed_ns, resumed)) = connection.handshake {
            self.recorder.handshake(elapsed_ns, resumed);
        }
        self.recorder.reconnects += u64::from(!self.opened.insert(key.clone()));
        self.connections.insert(key.clone(), connection);
        Ok(key)
    }

    fn connector(&mut self, host: &str) -> OrFault<Connector> {
        if let Some(connector) = self.common.tls.get(host).or_else(|| self.connectors.get(host)) {
            return Ok(connector.clone());
        }
        let connector = self.common.connector(host).map_err(|why| (Fault::Tls, why))?;
        self.connectors.insert(host.to_owned(), connector.clone());
        Ok(connector)
    }
}
