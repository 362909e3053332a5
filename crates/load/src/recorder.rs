//! The counters and histograms of one worker, merged once at the end.

use std::ops::{Deref, DerefMut};

use net::Nanos;
use stats::Histogram;
use stats::random::mix;
use study::record::{CacheCounts, LoggedRequest, SLOWEST_MAX, SlowResponse, StreamsMeasurement, keep_slowest};

use crate::cache_outcome::{CacheOutcome, Class};
use crate::http2_response_overhead::StreamFacts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    WrongAnswer,
    Reset,
    Closed,
    ClosedBetween,
    Timeout,
    Refused,
    ConnectTimeout,
    Os,
    Status,
    Body,
    Framing,
    HeadTooLarge,
    Truncated,
    Tls,
    Value,
    ErrorAnswer,
    StreamReset,
    GrpcStatus,
    Proxy,
}

impl Fault {
    pub(crate) const COUNT: usize = 19;
    pub(crate) const NAMES: [&str; Fault::COUNT] = [
        "wrong-answer",
        "reset",
        "closed",
        "closed-between",
        "timeout",
        "refused",
        "connect-timeout",
        "os",
        "status",
        "body",
        "framing",
        "head-too-large",
        "truncated",
        "tls",
        "value",
        "error-answer",
        "stream-reset",
        "grpc-status",
        "proxy",
    ];
}

pub(crate) type Faults = [u64; Fault::COUNT];

pub(crate) type OrFault<T> = Result<T, (Fault, String)>;

/// A session that ended without an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    pub(crate) journey: usize,
    pub(crate) elapsed_ns: Nanos,
    pub(crate) skipped: u32,
}

/// A histogram with the precision of windows, for which the default of [`Histogram`] would take too much memory.
#[derive(Clone, Debug)]
pub(crate) struct Coarse(Histogram);

impl Default for Coarse {
    fn default() -> Self {
        Self(Histogram::with_precision(Histogram::WINDOW_PRECISION))
    }
}

impl Deref for Coarse {
    type Target = Histogram;

    fn deref(&self) -> &Histogram {
        &self.0
    }
}

impl DerefMut for Coarse {
    fn deref_mut(&mut self) -> &mut Histogram {
        &mut self.0
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CompletedSessions {
    pub(crate) elapsed: Coarse,
    pub(crate) skipped: u64,
}

/// Results of one window. Sparse histograms take about 2 KiB, a tenth of full ones, and a minute has 600 windows.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) errors: u64,
    /// Number of valid responses.
    pub(crate) valid: u64,
    pub(crate) latency: Histogram,
}

/// A request in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flight<E> {
    pub(crate) expected: E,
    /// Intended send time; in a closed loop, the actual one.
    pub(crate) intended: Nanos,
    pub(crate) free_since: Nanos,
    /// Time of the write; with a connection per request, time at which the connection was requested.
    pub(crate) sent_at: Nanos,
    pub(crate) is_measured: bool,
    pub(crate) timed_out: bool,
    pub(crate) refusals: u8,
    pub(crate) wait: Wait,
}

/// Lags decide only what limited the load, so coarse buckets suffice.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenLoop {
    pub(crate) response: Histogram,
    pub(crate) lag_thread: Coarse,
    pub(crate) lag_connection: Coarse,
}

/// Why a request of an unordered protocol had to wait for a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The load's own limit of requests in flight.
    #[default]
    Own,
    /// The server's limit of requests in flight.
    Server,
    /// A connection that was not open, or a server that did not process the request.
    Connection,
}

/// Counters and histograms of HTTP/2 events while measuring.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamsRecorder {
    /// The counts, without histograms. `allowed` is `u32::MAX` if the server sent settings without a limit.
    pub(crate) counts: StreamsMeasurement,
    /// Time between consecutive messages of a response, ns; `None` until a response has several.
    pub(crate) message_gap: Option<Coarse>,
    /// Time in ns from a request's due time until a place was free, by reason; open loop only.
    pub(crate) slot_wait: [Coarse; 3],
}

impl StreamsRecorder {
    pub(crate) fn answer(&mut self, facts: StreamFacts, message_gaps_ns: &[Nanos]) {
        self.counts.responses += 1;
        self.counts.header_bytes += facts.header_bytes;
        self.counts.bytes_ahead += facts.bytes_ahead;
        self.counts.stalled_uploads += u64::from(facts.has_stalled);
        self.counts.messages += facts.messages;
        if !message_gaps_ns.is_empty() {
            let gaps = self.message_gap.get_or_insert_default();
            message_gaps_ns.iter().for_each(|gap| gaps.record(*gap));
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CacheRecorder {
    pub(crate) counts: CacheCounts,
    pub(crate) warmup: CacheCounts,
    /// Service times by [`Class`], ns; [`Class::Plain`] has none.
    pub(crate) classes: [Coarse; 6],
    pub(crate) transient: Vec<(u64, u64)>,
    window: (u64, u64),
    window_ns: Nanos,
    pub(crate) window_end: Nanos,
}

impl CacheRecorder {
    fn new(window_ns: Nanos) -> Self {
        Self { window_ns, window_end: Nanos::MAX, ..Self::default() }
    }

    pub(crate) fn answer(&mut self, seen: CacheOutcome, service_ns: u64, at: Nanos, measured: bool) {
        let counts = if measured { &mut self.counts } else { &mut self.warmup };
        let bytes = u64::from(seen.bytes);
        match seen.class {
            Class::GetHit => {
                counts.hits += 1;
                counts.hit_bytes += bytes;
                counts.requested_bytes += bytes;
            }
            Class::GetMiss => {
                counts.misses += 1;
                counts.requested_bytes += bytes;
                *seen.cause.count_in(&mut counts.causes) += 1;
            }
            Class::Set | Class::Fill | Class::Rewrite if seen.refused => counts.refused_sets += 1,
            Class::Set => counts.sets += 1,
            Class::Fill => counts.fills += 1,
            Class::Rewrite => counts.rewrites += 1,
            Class::Delete => counts.deletes += 1,
            Class::Plain => return,
        }
        if measured {
            self.classes[seen.class as usize].record(service_ns);
        } else if matches!(seen.class, Class::GetHit | Class::GetMiss) {
            self.roll(at);
            self.window.0 += u64::from(seen.class == Class::GetHit);
            self.window.1 += 1;
        }
    }

    pub(crate) fn roll(&mut self, at: Nanos) {
        while at >= self.window_end {
            self.transient.push(std::mem::take(&mut self.window));
            self.window_end += self.window_ns;
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    window_ns: Nanos,
    pub(crate) from: Nanos,
    window_end: Nanos,
    window: Coarse,
    window_errors: u64,
    /// Number of late responses in the window, which are errors with a latency.
    window_late: u64,
    pub(crate) slices: Vec<Slice>,
    pub(crate) requests: u64,
    pub(crate) warmup_requests: u64,
    pub(crate) faults: Faults,
    pub(crate) warmup_faults: Faults,
    pub(crate) examples: [Option<String>; Fault::COUNT],
    /// Counts by status, in a vector because few statuses occur and the first covers nearly all responses.
    pub(crate) statuses: Vec<(u16, u64)>,
    pub(crate) late_answers: u64,
    pub(crate) reconnects: u64,
    /// Number of requests written since the start, not counting caused ones.
    pub(crate) sent: u64,
    /// Number of requests sent again because their connection closed before their turn.
    pub(crate) asked_again: u64,
    /// Number of requests in flight at the end that are not counted elsewhere.
    pub(crate) left_in_flight: u64,
    pub(crate) last_failed: Nanos,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) last_answer: Nanos,
    /// Time of the server's last sign of life other than a valid response, while measuring.
    last_error: Nanos,
    pub(crate) connect: Coarse,
    pub(crate) handshake: Option<Coarse>,
    pub(crate) transcript: String,
    pub(crate) sessions: Vec<CompletedSessions>,
    pub(crate) resumed: u64,
    pub(crate) service: Histogram,
    pub(crate) open_loop: Option<Box<OpenLoop>>,
    pub(crate) cache: Option<Box<CacheRecorder>>,
    pub(crate) streams: Option<Box<StreamsRecorder>>,
    /// Number of responses whose whole body was checked.
    pub(crate) checked: u64,
    pub(crate) log: Option<Box<Log>>,
    /// Time to the first part of responses that arrived in several parts, ns.
    pub(crate) first_byte: Coarse,
    /// Counts by kind of request; empty without a mix.
    pub(crate) operations: Vec<Operation>,
    /// The slowest responses; `None` unless requests have trace ids.
    pub(crate) slowest: Option<Slowest>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Slowest {
    /// Latency that a response must exceed to be kept, ns.
    pub(crate) above_ns: Nanos,
    pub(crate) responses: Vec<SlowResponse>,
}

impl Slowest {
    #[cold]
    pub(crate) fn add(&mut self, response: SlowResponse) {
        self.responses.push(response);
        keep_slowest(&mut self.responses);
        if let [.., last] = &self.responses[..]
            && self.responses.len() == SLOWEST_MAX
        {
            self.above_ns = last.latency_ns;
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) one_in: u32,
    pub(crate) entries_max: usize,
    pub(crate) ended: u64,
    pub(crate) entries: Vec<LoggedRequest>,
    pub(crate) left_out: u64,
}

impl Log {
    /// Logs one in `one_in` requests on average.
    pub(crate) fn add(&mut self, entry: impl FnOnce() -> LoggedRequest) {
        self.ended += 1;
        if self.one_in > 1 && !mix(self.ended).is_multiple_of(self.one_in.into()) {
            return;
        }
        if self.entries.len() < self.entries_max {
            self.entries.push(entry());
        } else {
            self.left_out += 1;
        }
    }
}

/// Counts and latencies of one kind of request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operation {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) latency: Coarse,
    pub(crate) first_byte: Option<Coarse>,
}

impl Recorder {
    pub(crate) fn new(window_ns: Nanos, open_loop: bool, cache: bool) -> Self {
        Self {
            window_ns,
            from: Nanos::MAX,
            window_end: Nanos::MAX,
            open_loop: open_loop.then(Box::default),
            cache: cache.then(|| Box::new(CacheRecorder::new(window_ns))),
            ..Self::default()
        }
    }

    /// Starts measuring at [`Recorder::from`].
    pub(crate) fn begin_measuring(&mut self) {
        self.window_end = self.from + self.window_ns;
        if let Some(cache) = &mut self.cache {
            cache.roll(self.from);
            if cache.window.1 > 0 {
                cache.transient.push(std::mem::take(&mut cache.window));
            }
            cache.window_end = Nanos::MAX;
        }
    }

    pub(crate) fn operation(&mut self, nth: u32) -> &mut Operation {
        let nth = nth as usize;
        if nth >= self.operations.len() {
            self.operations.resize_with(nth + 1, Operation::default);
        }
        &mut self.operations[nth]
    }

    pub(crate) fn failed_operation(&mut self, nth: Option<u32>) {
        if let Some(nth) = nth {
            self.operation(nth).errors += 1;
        }
    }

    /// Records a response and its latency, and returns the latency in ns. A late response is not counted as a request.
    pub(crate) fn answer<E>(&mut self, flight: &Flight<E>, at: Nanos, is_late: bool) -> Nanos {
        let Flight { intended, free_since, sent_at, wait, .. } = *flight;
        if at >= self.window_end {
            self.roll(at);
        }
        let service_ns = at.saturating_sub(sent_at);
        let mut latency_ns = service_ns;
        if let Some(open) = &mut self.open_loop {
            latency_ns = at.saturating_sub(intended);
            let lag_ns = sent_at.saturating_sub(intended);
            // The server causes the lag up to the moment a connection is free; this thread causes the rest.
            let no_connection_ns = free_since.saturating_sub(intended).min(lag_ns);
            open.response.record(latency_ns);
            open.lag_connection.record(no_connection_ns);
            open.lag_thread.record(lag_ns - no_connection_ns);
            if let Some(streams) = &mut self.streams {
                streams.slot_wait[wait as usize].record(no_connection_ns);
            }
        }
        self.service.record(service_ns);
        self.window.record(latency_ns);
        self.requests += u64::from(!is_late);
        self.late_answers += u64::from(is_late);
        self.window_late += u64::from(is_late);
        self.last_answer = at;
        latency_ns
    }

    /// Counts an error. Errors before [`Recorder::from`] are counted separately, as errors of the warm-up.
    pub(crate) fn fault(&mut self, fault: Fault, at: Nanos) {
        if at < self.from {
            self.warmup_faults[fault as usize] += 1;
            return;
        }
        self.roll(at);
        // Silence is not a sign of life, and errors on this side say nothing about the server.
        if !matches!(fault, Fault::Timeout | Fault::ConnectTimeout | Fault::Os) {
            self.last_error = at;
        }
        self.faults[fault as usize] += 1;
        self.window_errors += 1;
    }

    /// Notes that a timed-out request has ended without a valid response.
    pub(crate) fn timed_out_request_ended(&mut self, at: Nanos) {
        self.last_error = at;
        self.last_failed = at;
    }

    /// Keeps the message of the first error of each kind, without counting it.
    pub(crate) fn example(&mut self, fault: Fault, why: impl FnOnce() -> Option<String>) {
        let example = &mut self.examples[fault as usize];
        if example.is_none() {
            *example = why();
        }
    }

    pub(crate) fn last_end(&self) -> Nanos {
        self.last_answer.max(self.last_failed)
    }

    pub(crate) fn status(&mut self, status: u16) {
        match self.statuses.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += 1,
            None => self.statuses.push((status, 1)),
        }
    }

    pub(crate) fn session(&mut self, completed: Completed) {
        let Completed { journey, elapsed_ns, skipped } = completed;
        if journey >= self.sessions.len() {
            self.sessions.resize_with(journey + 1, CompletedSessions::default);
        }
        let sessions = &mut self.sessions[journey];
        sessions.elapsed.record(elapsed_ns);
        sessions.skipped += u64::from(skipped);
    }

    pub(crate) fn handshake(&mut self, elapsed_ns: Nanos, resumed: bool) {
        self.handshake.get_or_insert_default().record(elapsed_ns);
        self.resumed += u64::from(resumed);
    }

    pub(crate) fn last_sign_of_life(&self) -> Option<Nanos> {
        Some(self.last_answer.max(self.last_error)).filter(|at| *at > 0)
    }

    #[cold]
    pub(crate) fn roll(&mut self, at: Nanos) {
        while at >= self.window_end {
            self.push_window();
            self.window_end += self.window_ns;
        }
    }

    pub(crate) fn finish(&mut self, until: Nanos) {
        if self.window_end == Nanos::MAX {
            return;
        }
        self.roll(until);
        if until > self.window_end - self.window_ns {
            self.push_window();
        }
    }

    fn push_window(&mut self) {
        let latency = self.window.listed();
        let errors = std::mem::take(&mut self.window_errors);
        let late = std::mem::take(&mut self.window_late);
        self.slices.push(Slice { errors, valid: self.window.len() - late, latency });
        self.window.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(recorder: &mut Recorder, sent_at: Nanos, at: Nanos) {
        recorder.answer(&Flight::<()> { intended: sent_at, sent_at, ..Flight::default() }, at, false);
    }

    #[test]
    fn windows_are_contiguous_and_last_is_cut() {
        let mut recorder = Recorder { from: 1_000, ..Recorder::new(100, false, false) };
        recorder.begin_measuring();
        answer(&mut recorder, 1_000, 1_099);
        answer(&mut recorder, 1_050, 1_100);
        answer(&mut recorder, 1_100, 1_350);
        recorder.fault(Fault::Reset, 1_360);
        recorder.finish(1_420);
        let seen = recorder.slices.iter().map(|slice| (slice.valid, slice.errors)).collect::<Vec<_>>();
        assert_eq!(seen, [(1, 0), (1, 0), (0, 0), (1, 1), (0, 0)]);
        assert_eq!((recorder.requests, recorder.faults[Fault::Reset as usize]), (3, 1));
    }

    #[test]
    fn end_on_boundary_leaves_no_empty_window() {
        let mut recorder = Recorder { from: 0, ..Recorder::new(100, false, false) };
        recorder.begin_measuring();
        recorder.finish(300);
        assert_eq!(recorder.slices.len(), 3);
    }

    #[test]
    fn separates_warmup_errors() {
        let mut recorder = Recorder::new(100, false, false);
        recorder.fault(Fault::Refused, 5);
        recorder.from = 10;
        recorder.begin_measuring();
        recorder.fault(Fault::Refused, 9);
        recorder.fault(Fault::Refused, 10);
        let refused = Fault::Refused as usize;
        assert_eq!((recorder.warmup_faults[refused], recorder.faults[refused]), (2, 1));
    }

    #[test]
    fn send_lag_is_split_by_cause() {
        // Columns: (intended, free since, sent, response at), then (response time, lag by connection, lag by thread).
        let table = [
            ((100, 0, 100, 150), (50, 0, 0)),
            ((100, 50, 130, 150), (50, 0, 30)),
            ((100, 120, 130, 150), (50, 20, 10)),
            ((100, 130, 130, 150), (50, 30, 0)),
        ];
        for ((intended, free_since, sent_at, at), (response, connection, thread)) in table {
            let mut recorder = Recorder { from: 0, ..Recorder::new(1_000, true, false) };
            recorder.begin_measuring();
            recorder.answer(&Flight::<()> { intended, free_since, sent_at, ..Flight::default() }, at, false);
            let open = recorder.open_loop.unwrap();
            let seen =
                [&open.response, &open.lag_connection, &open.lag_thread].map(|histogram| histogram.max().unwrap());
            assert_eq!(seen, [response, connection, thread]);
            assert_eq!(recorder.service.max(), Some(at - sent_at));
        }
    }

    #[test]
    fn every_fault_has_unique_index_and_name() {
        use Fault::*;
        let all = [
            [WrongAnswer, Reset, Closed, ClosedBetween, Timeout, Refused, ConnectTimeout, Os],
            [Status, Body, Framing, HeadTooLarge, Truncated, Tls, Value, ErrorAnswer],
        ];
        for (index, fault) in all.concat().into_iter().chain([StreamReset]).enumerate() {
            let name = Fault::NAMES[fault as usize];
            assert_eq!((fault as usize, name.replace('-', "")), (index, format!("{fault:?}").to_lowercase()));
        }
    }
}
