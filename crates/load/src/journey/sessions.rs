//! Journeys in the workers' event loop. A client is not a thread but only the step and the values of its session. A
//! session's first call waits for its turn like any request. Each response causes the next call, which counts as a
//! request but needs no budget. An error ends the session, and the client begins a new one. Before it calls a URL that
//! a resolver may list, the client queries the resolver; these queries are not counted.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use net::Nanos;
use stats::Rng;
use stats::random::mix;
use study::record::{Histogram, JourneyMeasurement, LoggedSession, Measurement};
use study::spec::{self, Http2Settings, Identities, LoadSpec, Stop, Target, Tls, WeightedJourney};
use study::url::{self, Url};
use wire::http1::{Memo, RequestMethod, Response, ResponseReader};
use wire::http2::hpack;

use super::cookies::Jar;
use super::http2_calls::{self, MESSAGE_BYTES_MAX, Reply};
use super::known_servers::{self, Servers};
use super::program::{self, Program, ReplyParts, Step};
use super::values_and_templates::Values;
use crate::measurement::{merged, operation};
use crate::protocol::{Answer, Arrival, Connection, Parsed, Progress, Protocol, StreamFacts, http_fault};
use crate::recorder::{Completed, Fault, OrFault};
use crate::server_endpoint::Server;
use crate::tls::Alpn;
use crate::worker::Done;
use crate::worker_threads::LoadError;

/// Maximum total length of the interim and final heads of a response, bytes.
const HEADS_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of a head or body that a transcript shows in full, bytes.
const SHOWN_BYTES_MAX: usize = 2000;
const TRANSCRIPT_BYTES_MAX: usize = 1 << 20;
/// Maximum number of open connections per client, if URLs come from responses or a resolver.
const CONNECTIONS_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct Plan {
    journeys: Vec<Program>,
    resolver: Option<Url>,
    /// Whether calls may go to servers that are not targets.
    learns: bool,
    tls: Tls,
    seed: u64,
    identities: Identities,
    pub(crate) http2: bool,
    is_traced: bool,
}

/// Sessions over HTTP/1.1 or HTTP/2.
#[derive(Debug)]
pub(crate) struct Sessions<const HTTP2: bool> {
    plan: Arc<Plan>,
    servers: Servers,
    /// Number of the next session in the whole load, and number of workers that take turns.
    number: u64,
    workers: u64,
    client: Cell<u64>,
    memo: Memo,
    /// Field block of the latest request.
    block: Vec<u8>,
    facts: StreamFacts,
    problem: Option<String>,
    completed: Option<Completed>,
    transcript: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Index of the call's step, counted over all journeys.
    step: u32,
    /// Whether the call is only a query to the resolver for the URL of the step.
    resolves: bool,
    session: LoggedSession,
}

impl Default for Call {
    fn default() -> Self {
        Self { step: u32::MAX, resolves: false, session: LoggedSession::default() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Stream {
    reader: ResponseReader,
    /// Connections over HTTP/2, by the index of their server, and the server whose connection is in use.
    connections: BTreeMap<u32, Box<Connection<()>>>,
    server: u32,
    body: Vec<u8>,
    /// First bytes of a response that arrives in several parts; over HTTP/2, the fields of its head.
    head: Vec<u8>,
    /// Arrival of the first part of the current response (0 before it arrives), and arrival of the latest part.
    first_at: Nanos,
    last_at: Nanos,
    client: u64,
    /// Time at which the next session is due.
    due: Nanos,
    session: Option<Box<Session>>,
    /// Sessions as they were after the `once` steps, of which later sessions take over the results.
    kept: Vec<Session>,
    /// Bytes of the call in flight, or of the next call.
    request: Vec<u8>,
    is_in_flight: bool,
}

#[derive(Clone, Debug)]
struct Session {
    journey: usize,
    /// Number of the session in the whole load.
    number: u64,
    step: usize,
    /// Number of calls of this step so far.
    round: u32,
    /// Number of skipped calls that would have counted.
    skipped: u32,
    /// Index of the server of the next call.
    server: u32,
    /// URL that the next call only looks up in the resolver; `None` for a regular call.
    asked: Option<String>,
    values: Values,
    cookies: Jar,
    /// Time at which the session was due; `None` before its first call is sent.
    due: Option<Nanos>,
    thinks_until: Nanos,
}

impl Plan {
    /// Prepares the journeys of a target; `None` for a target without journeys. Fails with all problems.
    pub(crate) fn of(target: &Target, seed: u64) -> Result<Option<Plan>, Vec<String>> {
        let Target::Journey { journeys, targets, resolve, insecure, ca_file, client, http2, identities, is_traced } =
            target
        else {
            return Ok(None);
        };
        let mut mistakes = mistakes_of_all(journeys, targets);
        if *http2 && resolve.is_some() {
            mistakes.push("`resolve` needs HTTP/1.1, not `http2`".to_owned());
        }
        let (mut planned, mut weight_until, mut steps_before) = (Vec::new(), 0, 0);
        for WeightedJourney { weight, journey } in journeys {
            weight_until += u64::from(*weight);
            match Program::new(journey, targets, *http2, (weight_until, steps_before)) {
                Ok(journey) => planned.push(journey),
                Err(found) if journeys.len() == 1 => mistakes.extend(found),
                Err(found) => {
                    mistakes.extend(found.into_iter().map(|mistake| format!("journey `{}`: {mistake}", journey.name)));
                }
            }
            steps_before += journey.steps.len();
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let resolver = |text: &str| match url::parse(text) {
            Ok(url) if url.protocol == spec::Protocol::Http => Ok(url),
            _ => Err(vec![format!("`resolve` is `{text}`, expected `http://host:port`")]),
        };
        let resolver = resolve.as_deref().map(resolver).transpose()?;
        let (ca_file, client) = (ca_file.clone(), client.clone());
        let plan = Plan {
            learns: resolver.is_some()
                || planned.iter().any(|journey| journey.steps.iter().any(|step| journey.target(step).is_none())),
            journeys: planned,
            resolver,
            tls: Tls { server_name: String::new(), insecure: *insecure, ca_file, client, resume: true },
            seed,
            identities: *identities,
            http2: *http2,
            is_traced: *is_traced,
        };
        for (index, journey) in plan.journeys.iter().enumerate() {
            // First calls of later sessions differ only in numbers and random characters.
            let mut session = plan.session(index, 0);
            let first = plan.first_url(&mut session);
            plan.compose(&mut session, ("", "", "/"), &mut Vec::new()).map_err(|(_, why)| vec![why])?;
            let first = first.map_err(|(_, why)| vec![why])?;
            if !journey.has_fixed_server(0) || !plan.learns && !journey.calls_origin_of(&first) {
                return Err(vec![format!(
                    "`{first}`: the first call must be to a target, or a URL whose server is fixed"
                )]);
            }
            let repeated = journey.first_repeated();
            if repeated < journey.steps.len() && !journey.has_fixed_server(repeated) {
                return Err(vec![
                    "the server of the first call after `once` must be the same in each journey".to_owned(),
                ]);
            }
        }
        Ok(Some(plan))
    }

    /// The specification with numbers of requests converted to numbers of sessions.
    pub(crate) fn in_sessions(&self, spec: &LoadSpec) -> LoadSpec {
        let mut spec = spec.clone();
        if let Stop::Requests { requests, .. } = &mut spec.stop {
            let sessions = *requests as f64 / spec.target.requests_per_session();
            *requests = if self.is_traced { self.journeys.len() as u64 } else { sessions as u64 };
        }
        spec
    }

    /// Resolves the addresses of all targets and first calls or, if the journeys use a resolver, only the resolver's.
    pub(crate) fn servers(&self) -> Result<Servers, LoadError> {
        let alpn = if self.http2 { Alpn::HTTP2 } else { Alpn::HTTP1 };
        let mut servers = Servers::new(alpn, self.tls.clone());
        if let Some(resolver) = &self.resolver {
            servers.of_url(resolver)?;
        } else {
            for (index, journey) in self.journeys.iter().enumerate() {
                let first = self.first_url(&mut self.session(index, 0)).expect("it was composed before");
                servers.of_url(&first)?;
                let server = |(index, target): (usize, &program::Target)| {
                    journey.is_called(index).then(|| servers.of_url(&target.url)).transpose()
                };
                let of_targets = journey.targets.iter().enumerate().map(server).collect::<Result<_, _>>()?;
                servers.of_targets.push(of_targets);
            }
        }
        Ok(servers)
    }

    pub(crate) fn connections_per_client(&self, servers: &Servers) -> usize {
        if self.learns { CONNECTIONS_MAX } else { servers.all.len() }
    }

    fn step(&self, call: Call) -> Option<&Step> {
        let index = call.step as usize;
        let after = self.journeys.partition_point(|journey| journey.steps_before <= index);
        let journey = &self.journeys[after.checked_sub(1)?];
        journey.steps.get(index - journey.steps_before)
    }

    /// Index of the journey for the session with this number. A traced load has one session of each journey.
    fn draw(&self, number: u64) -> usize {
        if self.is_traced {
            return (number % self.journeys.len() as u64) as usize;
        }
        let [_, .., last] = self.journeys.as_slice() else { return 0 };
        let drawn = Rng::stream(mix(self.seed), number).below(last.weight_until);
        self.journeys.partition_point(|journey| journey.weight_until <= drawn)
    }

    fn program(&self, session: &Session) -> &Program {
        &self.journeys[session.journey]
    }

    fn session(&self, journey: usize, number: u64) -> Session {
        let values = self.journeys[journey].initial_values(self.seed, number);
        Session {
            journey,
            number,
            step: 0,
            round: 0,
            skipped: 0,
            server: 0,
            asked: None,
            values,
            cookies: Jar::default(),
            due: None,
            thinks_until: 0,
        }
    }

    fn first_url(&self, session: &mut Session) -> OrFault<Url> {
        known_servers::endpoint(&session.values.text(&self.program(session).steps[0].url)).map_err(wrong)
    }

    /// Composes the request of a session to the host `name`, whose field `Host` is `host`.
    fn compose(&self, session: &mut Session, (name, host, path): (&str, &str, &str), out: &mut Vec<u8>) -> OrFault<()> {
        out.clear();
        let cookies = session.cookies.header(name, path);
        let step = &self.program(session).steps[session.step];
        step.compose(&mut session.values, (host, path), cookies, out).map_err(wrong)?;
        let is_short = out.len() <= MESSAGE_BYTES_MAX;
        if is_short { Ok(()) } else { Err(wrong(format!("a request above {MESSAGE_BYTES_MAX} bytes"))) }
    }

    /// Adds the results of the journeys to `measurement`, and converts its offered rates from sessions to calls.
    pub(crate) fn add_results(&self, measurement: &mut Measurement, spec: &LoadSpec, done: &[Done]) {
        measurement.journeys = (0..self.journeys.len()).map(|nth| self.measured(nth, done)).collect();
        measurement.journeys[0].transcript = done.iter().map(|worker| worker.recorder.transcript.as_str()).collect();
        let calls = self.calls_per_session(measurement, done).unwrap_or_else(|| spec.target.requests_per_session());
        if let Stop::Requests { requests, .. } = spec.stop
            && measurement.stop_reason == format!("{requests} requests")
        {
            measurement.stop_reason = format!("{requests} journeys");
        }
        let stages = measurement.shape.iter_mut().flat_map(|stage| [&mut stage.from, &mut stage.to]);
        stages.chain(&mut measurement.offered_per_s).for_each(|rate_per_s| *rate_per_s *= calls);
    }

    /// Mean number of calls that the ended sessions would have had without errors; `None` if none ended.
    fn calls_per_session(&self, measurement: &Measurement, done: &[Done]) -> Option<f64> {
        let calls = |(nth, measured): (usize, &JourneyMeasurement)| {
            let sessions = (measured.completed + measured.abandoned) as f64;
            let of_workers = done.iter().filter_map(|worker| worker.recorder.sessions.get(nth));
            let skipped = of_workers.map(|sessions| sessions.skipped).sum::<u64>() as f64;
            sessions * (self.journeys[nth].calls as f64 - skipped / measured.completed.max(1) as f64)
        };
        let calls = measurement.journeys.iter().enumerate().map(calls).sum::<f64>();
        let sessions = measurement.sessions();
        (sessions > 0).then(|| calls / sessions as f64)
    }

    fn measured(&self, nth: usize, done: &[Done]) -> JourneyMeasurement {
        let Program { name, steps, operations, steps_before, .. } = &self.journeys[nth];
        let of_step =
            |step: usize| done.iter().filter_map(move |worker| worker.recorder.operations.get(steps_before + step));
        let named = |(index, name): (usize, &String)| {
            let own = || (0..steps.len()).filter(move |step| steps[*step].operation == index).flat_map(of_step);
            operation(name.clone(), own)
        };
        let operations = operations.iter().enumerate().map(named).collect::<Vec<_>>();
        let session =
            merged(done.iter().filter_map(|worker| worker.recorder.sessions.get(nth).map(|all| &*all.elapsed)));
        let session = session.filter(|session| session.count > 0);
        JourneyMeasurement {
            name: name.clone(),
            completed: session.as_ref().map_or(0, |session: &Histogram| session.count),
            abandoned: operations.iter().map(|operation| operation.errors).sum(),
            operations,
            session,
            transcript: String::new(),
        }
    }
}

impl<const HTTP2: bool> Sessions<HTTP2> {
    /// Creates the sessions of one worker. `servers` must come from [`Plan::servers`].
    pub(crate) fn new(plan: Arc<Plan>, servers: Servers, worker: u32, workers: u32) -> Self {
        Self {
            plan,
            servers,
            number: u64::from(worker),
            workers: u64::from(workers),
            client: Cell::new(u64::from(worker)),
            memo: Memo::default(),
            block: Vec::new(),
            facts: StreamFacts::default(),
            problem: None,
            completed: None,
            transcript: String::new(),
        }
    }

    /// Adds lines to the transcript of a traced session, with `mark` before each.
    fn say(&mut self, mark: char, text: &[u8]) {
        if !self.plan.is_traced || self.transcript.len() > TRANSCRIPT_BYTES_MAX {
            return;
        }
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES_MAX)]);
        let shown =
            if HTTP2 { shown.replacen(" HTTP/1.1", " HTTP/2", usize::from(mark == '>')) } else { shown.into_owned() };
        for line in shown.lines() {
            let _ = writeln!(self.transcript, "{mark} {line}");
        }
        if text.len() > SHOWN_BYTES_MAX {
            let _ = writeln!(self.transcript, "{mark} ... {} bytes more", text.len() - SHOWN_BYTES_MAX);
        }
    }

    /// Handles a complete response, of which `bytes` is the last part.
    fn answered(&mut self, stream: &mut Stream, response: Response, bytes: &[u8], used: usize, at: Nanos) -> Answer {
        let Response { status, body_bytes, keep_alive, .. } = response;
        let arrival = Some(Arrival { first_at: std::mem::take(&mut stream.first_at), body_bytes });
        let mut part = std::mem::take(&mut stream.head);
        let head = if part.is_empty() { bytes } else { &part };
        let head = head.get(..response.head_bytes as usize).unwrap_or_default();
        let fault = self.concluded(stream, status, head, at);
        part.clear();
        stream.head = part;
        Answer { used, fault, status, is_last: !keep_alive, arrival, ..Answer::default() }
    }

    /// Checks a complete response, and ends or continues its session.
    fn concluded(&mut self, stream: &mut Stream, status: u16, head: &[u8], at: Nanos) -> Option<Fault> {
        self.completed = None;
        stream.is_in_flight = false;
        let (journey, step) = stream.session.as_ref().map_or((0, 0), |session| (session.journey, session.step));
        self.say('<', head);
        self.say('<', &stream.body);
        let judged = self.judge(stream, status, head, at);
        if let (true, Ok(()), Some(session)) = (self.plan.is_traced, &judged, &stream.session) {
            let program = &self.plan.journeys[journey];
            self.transcript += &program.taken(&program.steps[step], &session.values);
        }
        stream.body.clear();
        judged.err().map(|(fault, why)| self.failed(stream, fault, why))
    }

    fn failed(&mut self, stream: &mut Stream, fault: Fault, why: String) -> Fault {
        self.completed = None;
        stream.is_in_flight = false;
        stream.end_session();
        self.broken(fault, why)
    }

    fn read_frames(&mut self, stream: &mut Stream, call: Call, bytes: &[u8], at: Nanos) -> Parsed {
        let step = self.plan.step(call);
        let reads_body = self.plan.is_traced || step.is_some_and(Step::reads_body);
        let mut reply = Reply {
            method: step.map_or(RequestMethod::Get, |step| step.asked),
            head: &mut stream.head,
            body: reads_body.then_some(&mut stream.body),
        };
        let Some(connection) = stream.connections.get_mut(&stream.server) else { return Parsed::More };
        match connection.read(&mut reply, bytes, at) {
            Progress::Parsed(parsed) => parsed,
            Progress::Ended { used, place, open, fault } => {
                self.facts = open.facts;
                let (status, arrival) = (open.status, Some(open.arrival()));
                let mut head = std::mem::take(&mut stream.head);
                if self.plan.is_traced {
                    head.splice(..0, format!("HTTP/2 {status}\r\n").into_bytes());
                }
                let fault = match fault {
                    None => self.concluded(stream, status, &head, at),
                    Some((fault, why)) => {
                        stream.body.clear();
                        Some(self.failed(stream, fault, why))
                    }
                };
                head.clear();
                stream.head = head;
                Parsed::Answer(Answer { used, place, fault, status, arrival, ..Answer::default() })
            }
            Progress::Broken(fault, why) => Parsed::Broken(self.broken(fault, why)),
        }
    }

    /// Appends the request of a stream, as text or as frames.
    fn push(&mut self, stream: &mut Stream, out: &mut Vec<u8>) {
        if !HTTP2 {
            return out.extend_from_slice(&stream.request);
        }
        let scheme = if self.servers.get(stream.server).tls.is_some() { "https" } else { "http" };
        let Some(connection) = stream.connections.get_mut(&stream.server) else { return };
        connection.owed(out);
        self.block.clear();
        let resized = connection.shrink_table(0).into_iter().flatten();
        resized.for_each(|bytes| hpack::push_table_size(&mut self.block, bytes));
        let body = http2_calls::push_fields(&mut self.block, scheme, &stream.request);
        connection.push((), &self.block, (body, &[]), false, out);
    }

    /// Checks a response, and prepares the next call if there is one.
    fn judge(&mut self, stream: &mut Stream, status: u16, head: &[u8], at: Nanos) -> OrFault<()> {
        let Some(session) = &mut stream.session else { return Ok(()) };
        let journey = session.journey;
        let operation = self.plan.program(session).steps[session.step].operation;
        let next = if stream.body.len() > MESSAGE_BYTES_MAX {
            Err((Fault::Body, format!("a body above {MESSAGE_BYTES_MAX} bytes")))
        } else if let Some(url) = session.asked.take() {
            self.resolved(session, &url, status, &stream.body, &mut stream.request)
        } else {
            self.judge_call(session, status, head, &stream.body, &stream.request).and_then(|()| {
                let Some(step) = next_step(&self.plan.program(session).steps, session)? else {
                    let elapsed_ns = at.saturating_sub(session.due.unwrap_or(at));
                    self.completed = Some(Completed { journey, elapsed_ns, skipped: session.skipped });
                    return Ok(());
                };
                session.thinks_until =
                    step.think.as_ref().map_or(0, |law| at.saturating_add(session.values.time_ns(law)));
                self.prepare(session, &mut stream.request)
            })
        };
        let program = &self.plan.journeys[journey];
        next.map_err(|(fault, why)| (fault, format!("`{}`: {why}", program.operations[operation])))?;
        if self.completed.is_some() {
            stream.session = None;
        } else if (session.step, session.round) == (program.first_repeated(), 0) && session.step > 0 {
            stream.kept.retain(|kept| kept.journey != journey);
            stream.kept.push(Session::clone(session));
        }
        Ok(())
    }

    fn judge_call(&self, session: &mut Session, status: u16, head: &[u8], body: &[u8], request: &[u8]) -> OrFault<()> {
        let program = self.plan.program(session);
        session.cookies.store(head, &self.servers.get(session.server).host, target_of(request));
        let reply = ReplyParts { status, head, body, cookies: &session.cookies };
        program.steps[session.step].judge(&mut session.values, &reply)
    }

    /// Composes the next call of a session, or the resolver query that must precede it.
    fn prepare(&mut self, session: &mut Session, out: &mut Vec<u8>) -> OrFault<()> {
        let plan = &*self.plan;
        let journey = &plan.journeys[session.journey];
        let step = &journey.steps[session.step];
        let url = session.values.text(&step.url);
        // Most URLs begin with a target and need no parsing.
        if let Some(target) = journey.target(step)
            && let Some(Some(server)) = self.servers.of_targets.get(session.journey).map(|targets| targets[target])
        {
            let program::Target { origin, host, url: own, .. } = &journey.targets[target];
            let is_plain = |target: &&str| {
                target.starts_with('/') && target.bytes().all(|byte| (b'!'..=b'~').contains(&byte) && byte != b'#')
            };
            if let Some(target) = url.strip_prefix(&**origin).filter(is_plain) {
                session.server = server;
                return plan.compose(session, (&own.host, host, target), out);
            }
        }
        let endpoint = known_servers::endpoint(&url).map_err(wrong)?;
        let Some(resolver) = &plan.resolver else {
            if !plan.learns && !journey.calls_origin_of(&endpoint) {
                return Err(wrong(format!("`{endpoint}` is on another server than the targets")));
            }
            session.server = self.servers.of_url(&endpoint).map_err(known_servers::fault)?;
            return self.compose(session, &endpoint, out);
        };
        if let Some(server) = self.servers.resolved.get(without_query(&url)) {
            session.server = *server;
            return self.compose(session, &endpoint, out);
        }
        out.clear();
        let question = known_servers::question(without_query(&url));
        (session.server, session.asked) = (0, Some(url.into_owned()));
        let host = [("Host", resolver.host_field())];
        wire::http1::compose_request(out, "GET", &question, &host, b"", false).map_err(wrong)
    }

    fn compose(&self, session: &mut Session, endpoint: &Url, out: &mut Vec<u8>) -> OrFault<()> {
        self.plan.compose(session, (&endpoint.host, &endpoint.host_field(), &endpoint.target), out)
    }

    /// Takes the server of the next call from the resolver's response and composes the call.
    fn resolved(
        &mut self,
        session: &mut Session,
        url: &str,
        status: u16,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> OrFault<()> {
        let endpoint = known_servers::endpoint(url).map_err(wrong)?;
        let bare = without_query(url);
        let server = self.servers.add_resolved(bare, &endpoint, status, body);
        session.server = server.map_err(|(fault, why)| (fault, format!("resolving `{bare}`: {why}")))?;
        self.compose(session, &endpoint, out)
    }

    fn begin(&mut self, stream: &mut Stream) {
        let number = match self.plan.identities {
            Identities::Fresh => self.number,
            Identities::Reused => stream.client,
        };
        let journey = self.plan.draw(self.number);
        self.number += self.workers;
        let mut session = self.plan.session(journey, number);
        if let Some(kept) = stream.kept.iter().find(|kept| kept.journey == journey) {
            session.step = kept.step;
            session.cookies.clone_from(&kept.cookies);
            for slot in self.plan.program(kept).kept_slots() {
                session.values.slots[slot].clone_from(&kept.values.slots[slot]);
            }
        }
        let prepared = self.prepare(&mut session, &mut stream.request);
        debug_assert!(prepared.is_ok(), "{prepared:?}: it was composed before, with another number");
        stream.session = Some(Box::new(session));
    }

    fn end_lost(stream: &mut Stream) {
        if std::mem::take(&mut stream.is_in_flight) {
            stream.end_session();
        }
    }

    #[cold]
    fn broken(&mut self, fault: Fault, why: String) -> Fault {
        self.say('!', why.as_bytes());
        self.problem = Some(why);
        fault
    }
}

impl Stream {
    /// Ends the session after an error. The client's next session repeats the `once` steps.
    fn end_session(&mut self) {
        self.session = None;
        self.kept.clear();
    }

    fn keep_head(&mut self, bytes: &[u8]) {
        let room = HEADS_BYTES_MAX.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Moves a session to the next step whose condition holds. `None` after the last step.
fn next_step<'s>(steps: &'s [Step], session: &mut Session) -> OrFault<Option<&'s Step>> {
    session.round += 1;
    while let Some(step) = steps.get(session.step) {
        if session.round < step.repeat && step.is_due(&mut session.values)? {
            return Ok(Some(step));
        }
        session.skipped += if step.once { 0 } else { step.repeat - session.round };
        session.step += 1;
        session.round = 0;
    }
    Ok(None)
}

/// Finds errors that only a combination of journeys can have.
fn mistakes_of_all(journeys: &[WeightedJourney], targets: &BTreeMap<String, String>) -> Vec<String> {
    let names = journeys.iter().map(|one| one.journey.name.as_str()).collect::<Vec<_>>();
    let known = || journeys.iter().flat_map(|one| one.journey.targets.iter().map(|target| target.0.as_str()));
    let mut mistakes = Vec::new();
    if names.is_empty() {
        mistakes.push("`journeys` is empty".to_owned());
    }
    for name in targets.keys().filter(|name| !known().any(|known| known == **name)) {
        let which = match names.as_slice() {
            [one] => format!("the journey `{one}` has no target"),
            _ => "no journey has a target".to_owned(),
        };
        let known = known().collect::<BTreeSet<_>>().into_iter().map(|name| format!("`{name}`"));
        mistakes.push(format!("{which} `{name}`, only {}", known.collect::<Vec<_>>().join(", ")));
    }
    for (at, name) in names.iter().enumerate().filter(|(at, name)| names[..*at].contains(name)) {
        mistakes.push(format!("journey {}: the name `{name}` is taken; give each file its own `name`", at + 1));
    }
    if journeys.iter().any(|one| one.weight == 0) {
        mistakes.push("a journey has the weight 0, expected at least 1".to_owned());
    }
    mistakes
}

fn wrong(why: String) -> (Fault, String) {
    (Fault::Value, format!("cannot compose the request: {why}"))
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

fn target_of(request: &[u8]) -> &str {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    std::str::from_utf8(line).unwrap_or_default().split(' ').nth(1).unwrap_or("/")
}

impl<const HTTP2: bool> Protocol for Sessions<HTTP2> {
    type Stream = Stream;
    type Expected = Call;
    type Exchange = ();
    const ORDERED: bool = !HTTP2;

    fn stream(&self) -> Stream {
        let client = self.client.get();
        self.client.set(client + self.workers);
        Stream { client, ..Stream::default() }
    }

    fn renew(&self, stream: &mut Stream, out: &mut Vec<u8>) {
        stream.reader = ResponseReader::default();
        stream.body.clear();
        stream.head.clear();
        stream.first_at = 0;
        if HTTP2 {
            stream.connections.insert(stream.server, Box::new(Connection::new(Http2Settings::default())));
            Connection::<()>::begin(&Http2Settings::default(), out);
        }
    }

    fn connection<'s>(&self, stream: &'s mut Stream) -> Option<&'s mut Connection<()>> {
        stream.connections.get_mut(&stream.server).map(Box::as_mut)
    }

    fn stream_facts(&self) -> Option<(StreamFacts, &[Nanos])> {
        HTTP2.then_some((self.facts, &[]))
    }

    fn close(&self, stream: &mut Stream, out: &mut Vec<u8>) {
        if let Some(mut connection) = stream.connections.remove(&stream.server) {
            connection.close(out);
        }
    }

    fn switch(&self, stream: &mut Stream, server: u32) {
        stream.server = server;
    }

    fn caused(&self, stream: &Stream) -> u32 {
        u32::from(stream.session.as_ref().is_some_and(|session| session.due.is_some()) && !stream.is_in_flight)
    }

    fn next_server(&mut self, stream: &mut Stream) -> u32 {
        Self::end_lost(stream);
        // The first call may be to any server if there are several journeys or a resolver, so the session begins early.
        if (self.plan.resolver.is_some() || self.plan.journeys.len() > 1) && stream.session.is_none() {
            self.begin(stream);
        }
        let kept = || stream.kept.first().map_or(0, |kept| kept.server);
        stream.session.as_ref().map_or_else(kept, |session| session.server)
    }

    fn server(&self, index: u32) -> Option<&Server> {
        Some(self.servers.get(index))
    }

    fn thinks_until(&self, stream: &Stream) -> Nanos {
        stream.session.as_ref().map_or(0, |session| session.thinks_until)
    }

    fn due(&mut self, stream: &mut Stream, intended: Nanos) {
        stream.due = intended;
    }

    fn abandon(&mut self, stream: &mut Stream) {
        stream.end_session();
        self.completed = None;
    }

    fn completed(&self) -> Option<Completed> {
        self.completed
    }

    fn is_caused(&self, call: Call) -> bool {
        call.resolves || self.plan.step(call).is_some_and(|step| step.once)
    }

    fn place_in_load(&self, call: Call) -> (u32, Option<LoggedSession>) {
        (call.step, Some(call.session))
    }

    fn operation(&self, call: Call) -> Option<u32> {
        self.plan.step(call).map(|_| call.step)
    }

    fn request(&mut self, stream: &mut Stream, _: Nanos, _: &mut Rng, out: &mut Vec<u8>) -> Call {
        Self::end_lost(stream);
        if stream.session.is_none() {
            self.begin(stream);
        }
        stream.is_in_flight = true;
        self.push(stream, out);
        let Some(session) = &mut stream.session else { return Call::default() };
        if session.due.is_none() {
            session.due = Some(stream.due);
            if let (true, [_, _, ..]) = (self.plan.is_traced, self.plan.journeys.as_slice()) {
                let plan = self.plan.clone();
                self.say('#', plan.program(session).name.as_bytes());
            }
        }
        self.say('>', &stream.request);
        let logged = LoggedSession { client: stream.client, journey: session.number };
        let step = self.plan.journeys[session.journey].steps_before + session.step;
        Call { step: step as u32, resolves: session.asked.is_some(), session: logged }
    }

    fn again(&mut self, stream: &mut Stream, call: Call, _: Nanos, out: &mut Vec<u8>) -> Call {
        self.push(stream, out);
        call
    }

    fn read(&mut self, stream: &mut Stream, call: Call, bytes: &[u8], at: Nanos) -> Parsed {
        if HTTP2 {
            return self.read_frames(stream, call, bytes, at);
        }
        let Some(step) = self.plan.step(call) else { return Parsed::Broken(Fault::Framing) };
        let Stream { reader, body, first_at, last_at, .. } = stream;
        *last_at = at;
        if *first_at == 0 {
            *first_at = at;
        }
        let reads_body = call.resolves || step.reads_body() || self.plan.is_traced;
        let asked = if call.resolves { RequestMethod::Get } else { step.asked };
        let keep = |piece: &[u8]| {
            if reads_body && body.len() <= MESSAGE_BYTES_MAX {
                body.extend_from_slice(piece);
            }
        };
        match reader.read(&mut self.memo, asked, bytes, keep) {
            Ok(None) => {
                stream.keep_head(bytes);
                Parsed::More
            }
            Ok(Some((used, response))) => {
                if !stream.head.is_empty() {
                    stream.keep_head(&bytes[..used]);
                }
                Parsed::Answer(self.answered(stream, response, bytes, used, at))
            }
            Err(error) => Parsed::Broken(self.broken(http_fault(&error), error.to_string())),
        }
    }

    fn end(&mut self, stream: &mut Stream, _: Call) -> Result<Answer, Fault> {
        if HTTP2 {
            self.problem = None;
            let is_between = self.connection(stream).is_none_or(|connection| connection.is_between());
            return Err(if is_between { Fault::Closed } else { Fault::Truncated });
        }
        match stream.reader.end() {
            // The time at which the stream ended is unknown, so use the arrival of the last part.
            Ok(Some(response)) => Ok(self.answered(stream, response, &[], 0, stream.last_at)),
            Ok(None) => {
                self.problem = None;
                Err(Fault::Closed)
            }
            Err(error) => Err(self.broken(http_fault(&error), error.to_string())),
        }
    }

    fn transcript(&mut self) -> String {
        std::mem::take(&mut self.transcript)
    }

    fn explain(&self) -> Option<String> {
        self.problem.clone()
    }
}
