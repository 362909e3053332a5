//! Journeys to one server, in the workers' event loop: a client is a session's step and values, not a thread.
//!
//! A session's first call waits for its turn as any request does. Each response causes the next call, which the budget
//! does not limit and which counts as a request. An error ends the session; the client then begins another one.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::Arc;

use codecs::value::Value;
use net::Nanos;
use stats::Rng;
use study::record::{Histogram, JourneyMeasurement, Measurement, OperationMeasurement};
use study::spec::{self, Identities, LoadSpec, Stop, Target, Tls};
use study::url::{self, Url};
use wire::http1::{Limits, Memo, Response, ResponseError, ResponseReader};

use super::cookies::Jar;
use super::program::{Answer, Program, Step};
use super::resolver;
use super::values::Values;
use crate::measurement::merged;
use crate::protocol::{CacheOutcome, Last, Parsed, Protocol, http_fault};
use crate::recorder::{Fault, OrFault};
use crate::worker::Done;

/// Maximum length of a request, and of the body of a response.
pub(crate) const MESSAGE_BYTES_MAX: usize = study::limits::BODY_MAX_BYTES as usize;
/// Maximum length of interim and final heads together.
const HEADS_BYTES_MAX: usize = 64 * 1024;
/// Longest head or body that a transcript shows in full.
const SHOWN_BYTES_MAX: usize = 2000;
const TRANSCRIPT_BYTES_MAX: usize = 1 << 20;
/// Sequence number of Thrift calls: each response belongs to the only call in flight.
const SEQUENCE: i32 = 1;

/// The journey of a load and its only server.
#[derive(Debug)]
pub(crate) struct Plan {
    program: Program,
    server: Url,
    host: String,
    /// Scheme, host and port as the journey writes them.
    origin: String,
    seed: u64,
    identities: Identities,
    is_traced: bool,
}

#[derive(Debug)]
pub(crate) struct Sessions {
    plan: Arc<Plan>,
    /// Number of the next session in the whole load, and the number of workers that take turns.
    number: u64,
    workers: u64,
    /// Number of the next client.
    client: Cell<u64>,
    memo: Memo,
    problem: Option<String>,
    last: Last,
    /// Time of the session, if the last response completed one.
    completed: Option<Nanos>,
    transcript: String,
}

/// A call, by the index of its step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call(u32);

/// Not sent.
impl Default for Call {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

#[derive(Debug)]
pub(crate) struct Stream {
    reader: ResponseReader,
    body: Vec<u8>,
    /// The start of a response that arrives in several parts.
    head: Vec<u8>,
    /// When the first part of the current response arrived, 0 before, and the latest.
    first_at: Nanos,
    last_at: Nanos,
    client: u64,
    /// When the next session is due.
    due: Nanos,
    session: Option<Box<Session>>,
    /// Values and cookies of the `once` steps.
    kept: Option<(Vec<Value>, Jar)>,
    /// The call in flight, or the next one.
    request: Vec<u8>,
    is_in_flight: bool,
}

#[derive(Debug)]
struct Session {
    step: usize,
    values: Values,
    cookies: Jar,
    due: Nanos,
    /// When the next call is due after the think time.
    thinks_until: Nanos,
}

impl Plan {
    /// `None` if the blocking engine must run the journey: it has several servers, or learns of some on the way.
    pub(crate) fn of(target: &Target, seed: u64) -> Result<Option<Plan>, Vec<String>> {
        let Target::Journey { journey, targets, resolve, keep_calls, identities, is_threaded, is_traced, .. } = target
        else {
            return Ok(None);
        };
        let program = Program::new(journey, targets)?;
        let server = program.only_server().filter(|_| resolve.is_none() && !keep_calls && !is_threaded);
        let Some(server) = server else { return Ok(None) };
        let (identities, is_traced) = (*identities, *is_traced);
        let authority = server.find("://").map_or(0, |at| at + 3);
        let end = server[authority..].find('/').map_or(server.len(), |at| authority + at);
        let origin = server[..end].to_owned();
        let server = url::parse(server).map_err(|error| vec![error.to_string()])?;
        let plan = Plan { host: server.host_field(), origin, program, server, seed, identities, is_traced };
        // Later sessions differ only in numbers and letters.
        plan.compose(0, &mut plan.values(0), &Jar::default(), &mut Vec::new()).map_err(|(_, why)| vec![why])?;
        Ok(Some(plan))
    }

    /// The load with its requests counted as sessions.
    pub(crate) fn in_sessions(&self, spec: &LoadSpec) -> LoadSpec {
        let stop = match spec.stop {
            Stop::Requests { requests, max_ns } => {
                Stop::Requests { requests: requests / spec.target.requests_per_session(), max_ns }
            }
            stop => stop,
        };
        LoadSpec { stop, ..spec.clone() }
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> String {
        self.server.address()
    }

    pub(crate) fn tls(&self, target: &Target) -> Option<Tls> {
        let Target::Journey { insecure, ca_file, client, .. } = target else { return None };
        (self.server.protocol == spec::Protocol::Https).then(|| Tls {
            server_name: self.server.host.clone(),
            insecure: *insecure,
            ca_file: ca_file.clone(),
            client: client.clone(),
            resume: true,
        })
    }

    fn step(&self, call: Call) -> Option<&Step> {
        self.program.steps.get(call.0 as usize)
    }

    fn values(&self, number: u64) -> Values {
        self.program.initial_values(self.seed, number)
    }

    fn compose(&self, step: usize, values: &mut Values, cookies: &Jar, out: &mut Vec<u8>) -> OrFault<()> {
        let step = &self.program.steps[step];
        let wrong = |why: String| (Fault::Value, format!("cannot compose the request: {why}"));
        let url = values.text(&step.url);
        // Most URLs need no parsing.
        let is_plain = |target: &&str| {
            target.starts_with('/') && target.bytes().all(|byte| (b'!'..=b'~').contains(&byte) && byte != b'#')
        };
        let parsed;
        let target = match url.strip_prefix(&*self.origin).filter(is_plain) {
            Some(target) => target,
            None => {
                let endpoint = resolver::endpoint(&url).map_err(wrong)?;
                if !endpoint.same_origin(&self.server) {
                    return Err(wrong(format!("`{endpoint}` is on another server than {}", self.server.origin())));
                }
                parsed = endpoint.target;
                &parsed
            }
        };
        out.clear();
        self.program.compose(step, values, (&self.host, target), cookies, SEQUENCE, out).map_err(wrong)?;
        let is_short = out.len() <= MESSAGE_BYTES_MAX;
        if is_short { Ok(()) } else { Err(wrong(format!("a request above {MESSAGE_BYTES_MAX} bytes"))) }
    }

    /// Adds the results by operation. The recorders' operations are the steps. Rates and requests are those of calls.
    pub(crate) fn add_results(&self, measurement: &mut Measurement, spec: &LoadSpec, done: &[Done]) {
        let calls = spec.target.requests_per_session();
        if let Stop::Requests { requests, .. } = spec.stop
            && measurement.stop_reason == format!("{requests} requests")
        {
            measurement.stop_reason = format!("{requests} journeys");
        }
        let stages = measurement.shape.iter_mut().flat_map(|stage| [&mut stage.from_per_s, &mut stage.to_per_s]);
        stages.chain(&mut measurement.offered_per_s).for_each(|rate_per_s| *rate_per_s *= calls as f64);
        measurement.journey = Some(Box::new(self.measured(done)));
    }

    fn measured(&self, done: &[Done]) -> JourneyMeasurement {
        let Program { name, steps, operations, .. } = &self.program;
        let of_step = |step: usize| done.iter().filter_map(move |worker| worker.recorder.operations.get(step));
        let operation = |(index, name): (usize, &String)| {
            let own = || (0..steps.len()).filter(move |step| steps[*step].operation == index).flat_map(of_step);
            OperationMeasurement {
                name: name.clone(),
                requests: own().map(|operation| operation.requests).sum(),
                errors: own().map(|operation| operation.errors).sum(),
                service: merged(own().map(|operation| &operation.latency)).unwrap_or_default(),
            }
        };
        let operations = operations.iter().enumerate().map(operation).collect::<Vec<_>>();
        let session = merged(done.iter().filter_map(|worker| worker.recorder.sessions.as_deref()));
        JourneyMeasurement {
            name: name.clone(),
            completed: session.as_ref().map_or(0, |session: &Histogram| session.count),
            abandoned: operations.iter().map(|operation| operation.errors).sum(),
            operations,
            session,
            transcript: done.iter().map(|worker| worker.recorder.transcript.as_str()).collect(),
            ..JourneyMeasurement::default()
        }
    }
}

impl Sessions {
    pub(crate) fn new(plan: Arc<Plan>, worker: u32, workers: u32) -> Self {
        Self {
            plan,
            number: u64::from(worker),
            workers: u64::from(workers),
            client: Cell::new(u64::from(worker)),
            memo: Memo::new(),
            problem: None,
            last: Last::default(),
            completed: None,
            transcript: String::new(),
        }
    }

    /// Adds lines to the transcript of a traced session. `mark` precedes each.
    fn say(&mut self, mark: char, text: &[u8]) {
        if !self.plan.is_traced || self.transcript.len() > TRANSCRIPT_BYTES_MAX {
            return;
        }
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES_MAX)]);
        for line in shown.lines() {
            let _ = writeln!(self.transcript, "{mark} {line}");
        }
        if text.len() > SHOWN_BYTES_MAX {
            let _ = writeln!(self.transcript, "{mark} ... {} bytes more", text.len() - SHOWN_BYTES_MAX);
        }
    }

    /// `bytes`: its last part.
    fn answered(&mut self, stream: &mut Stream, response: Response, bytes: &[u8], used: usize, at: Nanos) -> Parsed {
        self.last = Last { first_at: std::mem::take(&mut stream.first_at), bytes: response.body_bytes };
        self.completed = None;
        stream.is_in_flight = false;
        let part = std::mem::take(&mut stream.head);
        let head = if part.is_empty() { bytes } else { &part };
        let head = head.get(..response.head_bytes as usize).unwrap_or_default();
        let step = stream.session.as_ref().map_or(0, |session| session.step);
        self.say('<', head);
        self.say('<', &stream.body);
        let judged = self.judge(stream, response.status, head, at);
        if let (true, Ok(()), Some(session)) = (self.plan.is_traced, &judged, &stream.session) {
            let Plan { program, .. } = &*self.plan;
            self.transcript += &program.taken(&program.steps[step], &session.values);
        }
        stream.head = part;
        stream.head.clear();
        stream.body.clear();
        let fault = judged.err().map(|(fault, why)| {
            (stream.session, stream.kept) = (None, None);
            self.say('!', why.as_bytes());
            self.problem = Some(why);
            fault
        });
        let (status, last) = (response.status, !response.keep_alive);
        Parsed::Answer { used, fault, status, last, seen: CacheOutcome::NOTHING }
    }

    /// Checks the response, and prepares the next call if one follows.
    fn judge(&mut self, stream: &mut Stream, status: u16, head: &[u8], at: Nanos) -> OrFault<()> {
        let Some(session) = &mut stream.session else { return Ok(()) };
        let Plan { program, .. } = &*self.plan;
        let step = &program.steps[session.step];
        let named = |(fault, why)| (fault, format!("`{}`: {why}", program.operations[step.operation]));
        if stream.body.len() > MESSAGE_BYTES_MAX {
            return Err(named((Fault::Body, format!("a body above {MESSAGE_BYTES_MAX} bytes"))));
        }
        session.cookies.store(head, target_of(&stream.request));
        let answer = Answer { status, head, body: &stream.body, cookies: &session.cookies };
        program.judge(step, &mut session.values, &answer, SEQUENCE).map_err(named)?;
        session.step += 1;
        if session.step < program.steps.len() {
            if session.step == program.first_repeated() && session.step > 0 {
                let values = program.kept_slots().map(|slot| session.values.slots[slot].clone()).collect();
                stream.kept = Some((values, session.cookies.clone()));
            }
            session.thinks_until = at + program.steps[session.step].think_ns;
            let Session { step, values, cookies, .. } = &mut **session;
            return self.plan.compose(*step, values, cookies, &mut stream.request).map_err(named);
        }
        self.completed = Some(at.saturating_sub(session.due));
        stream.session = None;
        Ok(())
    }

    #[cold]
    fn broken(&mut self, error: ResponseError) -> Parsed {
        self.say('!', error.to_string().as_bytes());
        self.problem = Some(error.to_string());
        Parsed::Broken(http_fault(&error))
    }
}

impl Stream {
    fn keep_head(&mut self, bytes: &[u8]) {
        let room = HEADS_BYTES_MAX.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Path and query of a composed request.
fn target_of(request: &[u8]) -> &str {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    std::str::from_utf8(line).unwrap_or_default().split(' ').nth(1).unwrap_or("/")
}

impl Protocol for Sessions {
    type Stream = Stream;
    type Expected = Call;
    const UNREADABLE: Fault = Fault::Framing;

    fn stream(&self) -> Stream {
        let client = self.client.get();
        self.client.set(client + self.workers);
        Stream {
            reader: ResponseReader::new(Limits::DEFAULT),
            body: Vec::new(),
            head: Vec::new(),
            first_at: 0,
            last_at: 0,
            client,
            due: 0,
            session: None,
            kept: None,
            request: Vec::new(),
            is_in_flight: false,
        }
    }

    fn renew(&self, stream: &mut Stream) {
        stream.reader = ResponseReader::new(Limits::DEFAULT);
        stream.body.clear();
        stream.head.clear();
        stream.first_at = 0;
    }

    fn caused(&self, stream: &Stream) -> u32 {
        u32::from(stream.session.is_some() && !stream.is_in_flight)
    }

    fn thinks_until(&self, stream: &Stream) -> Nanos {
        stream.session.as_ref().map_or(0, |session| session.thinks_until)
    }

    fn due(&mut self, stream: &mut Stream, intended: Nanos) {
        stream.due = intended;
    }

    fn abandon(&mut self, stream: &mut Stream) {
        (stream.session, stream.kept) = (None, None);
        self.completed = None;
    }

    fn completed(&self) -> Option<Nanos> {
        self.completed
    }

    fn is_caused(&self, call: Call) -> bool {
        self.plan.step(call).is_some_and(|step| step.once)
    }

    fn last(&self) -> Option<Last> {
        Some(self.last)
    }

    fn index(&self, call: Call) -> u32 {
        call.0
    }

    fn operation(&self, call: Call) -> Option<u32> {
        self.plan.step(call).map(|_| call.0)
    }

    fn request(&mut self, stream: &mut Stream, _: Nanos, _: &mut Rng, out: &mut Vec<u8>) -> Call {
        // A call that was in flight on a lost connection has ended its session.
        if stream.is_in_flight {
            (stream.session, stream.kept) = (None, None);
        }
        if stream.session.is_none() {
            let number = match self.plan.identities {
                Identities::Fresh => self.number,
                Identities::Reused => stream.client,
            };
            self.number += self.workers;
            let mut session = Session {
                step: 0,
                values: self.plan.values(number),
                cookies: Jar::default(),
                due: stream.due,
                thinks_until: 0,
            };
            if let Some((values, cookies)) = &stream.kept {
                let program = &self.plan.program;
                session.step = program.first_repeated();
                session.cookies = cookies.clone();
                program.kept_slots().zip(values).for_each(|(slot, value)| session.values.slots[slot] = value.clone());
            }
            let Session { step, values, cookies, .. } = &mut session;
            let composed = self.plan.compose(*step, values, cookies, &mut stream.request);
            debug_assert!(composed.is_ok(), "{composed:?}: it was composed before, with another number");
            stream.session = Some(Box::new(session));
        }
        stream.is_in_flight = true;
        self.say('>', &stream.request);
        out.extend_from_slice(&stream.request);
        stream.session.as_ref().map_or_else(Call::default, |session| Call(session.step as u32))
    }

    fn again(&mut self, stream: &mut Stream, call: Call, _: Nanos, out: &mut Vec<u8>) -> Call {
        out.extend_from_slice(&stream.request);
        call
    }

    fn read(&mut self, stream: &mut Stream, call: Call, bytes: &[u8], at: Nanos) -> Parsed {
        let Some(step) = self.plan.step(call) else { return Parsed::Broken(Fault::Framing) };
        let Stream { reader, body, first_at, last_at, .. } = stream;
        *last_at = at;
        if *first_at == 0 {
            *first_at = at;
        }
        let reads_body = step.reads_body() || self.plan.is_traced;
        let keep = |piece: &[u8]| {
            if reads_body && body.len() <= MESSAGE_BYTES_MAX {
                body.extend_from_slice(piece);
            }
        };
        match reader.read(&mut self.memo, step.asked, bytes, keep) {
            Ok(None) => {
                stream.keep_head(bytes);
                Parsed::More
            }
            Ok(Some((used, response))) => {
                if !stream.head.is_empty() {
                    stream.keep_head(&bytes[..used]);
                }
                self.answered(stream, response, bytes, used, at)
            }
            Err(error) => self.broken(error),
        }
    }

    fn end(&mut self, stream: &mut Stream, _: Call) -> Parsed {
        match stream.reader.end() {
            // The time of the last part; the end of the stream has none here.
            Ok(Some(response)) => self.answered(stream, response, &[], 0, stream.last_at),
            Ok(None) => {
                self.problem = None;
                Parsed::Broken(Fault::Closed)
            }
            Err(error) => self.broken(error),
        }
    }

    fn transcript(&mut self) -> String {
        std::mem::take(&mut self.transcript)
    }

    fn explain(&self) -> Option<String> {
        self.problem.clone()
    }
}
