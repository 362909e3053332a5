//! `quintain load --metrics`: serves the state of a running load to Prometheus and other scrapers.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use load::{Phase, Progress};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use study::generator_messages::LATENCY_BOUNDS_NS;

use crate::command_result::{Exit, Problem, Result, machine};

/// Time limit for one scraper's request and response, during which other scrapers wait.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause after each scrape, so that endless requests take little CPU time.
const PAUSE: Duration = Duration::from_millis(10);
const HEAD_MAX: usize = 8 << 10;
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

#[derive(Clone, Debug)]
struct Snapshot {
    clients: u32,
    progress: Progress,
}

/// Endpoint for scrapers. Its own thread serves it until the process ends.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) address: SocketAddr,
    snapshot: Arc<Mutex<Snapshot>>,
}

impl Metrics {
    /// Listens on `address`; fails if it cannot. The thread avoids the CPUs in `measuring` if there are others.
    pub(crate) fn start(address: SocketAddr, clients: u32, measuring: &[u32]) -> Result<Self> {
        let listener = TcpListener::bind(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = listener.map_err(|error| {
            let problem = Problem::text(Exit::Machine, format!("cannot serve metrics on {address}: {error}"));
            match error.kind() {
                ErrorKind::AddrInUse => problem.hint("choose another port for `--metrics`, or 0 for a free one"),
                ErrorKind::AddrNotAvailable => problem.hint("use an address of this machine, such as 127.0.0.1"),
                ErrorKind::PermissionDenied => problem.hint("use a port above 1023"),
                _ => problem,
            }
        })?;
        let snapshot = Arc::new(Mutex::new(Snapshot { clients, progress: Progress::default() }));
        let (shared, measuring) = (Arc::clone(&snapshot), measuring.to_vec());
        let serve = move || {
            let others = net::thread_and_process::affinity().unwrap_or_default();
            let others = others.into_iter().filter(|cpu| !measuring.contains(cpu)).collect::<Vec<_>>();
            if !measuring.is_empty() && !others.is_empty() {
                // If this fails, the thread may run on any CPU.
                let _ = net::thread_and_process::set_affinity(&others);
            }
            for stream in listener.incoming() {
                // Errors of a scraper must not affect the load.
                let _ = stream.and_then(|stream| answer(stream, &shared));
                std::thread::sleep(PAUSE);
            }
        };
        std::thread::Builder::new().name("metrics".to_owned()).spawn(serve).map_err(machine)?;
        Ok(Self { address, snapshot })
    }

    pub(crate) fn show(&self, progress: &Progress) {
        lock(&self.snapshot).progress = progress.clone();
    }
}

fn lock(snapshot: &Mutex<Snapshot>) -> std::sync::MutexGuard<'_, Snapshot> {
    snapshot.lock().unwrap_or_else(PoisonError::into_inner) // Values are replaced as a whole, so each is valid.
}

fn answer(mut stream: TcpStream, snapshot: &Mutex<Snapshot>) -> std::io::Result<()> {
    let deadline = lab::lab_clocks::now() + PATIENCE;
    let mut head = Vec::new();
    let answer = loop {
        if let Some(answer) = answer_to(&head, snapshot) {
            break answer;
        }
        // Fails after the deadline, because a timeout of zero is an error.
        stream.set_read_timeout(Some(deadline.saturating_duration_since(lab::lab_clocks::now())))?;
        let mut piece = [0; 1024];
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            count => head.extend_from_slice(&piece[..count]),
        }
    };
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(answer.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)
}

fn answer_to(head: &[u8], snapshot: &Mutex<Snapshot>) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let (status, kind, body) = match request.parse(head) {
        Ok(httparse::Status::Partial) if head.len() < HEAD_MAX => return None,
        Ok(httparse::Status::Partial) => ("431 Request Header Fields Too Large", PLAIN, "too long\n".to_owned()),
        Err(error) => ("400 Bad Request", PLAIN, format!("{error}\n")),
        Ok(httparse::Status::Complete(_)) => {
            let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
            match request.method {
                Some("GET" | "HEAD") if path == "/metrics" => ("200 OK", OPEN_METRICS, lock(snapshot).clone().text()),
                Some("GET" | "HEAD") => ("404 Not Found", PLAIN, "only /metrics is here\n".to_owned()),
                _ => ("405 Method Not Allowed\r\nAllow: GET, HEAD", PLAIN, "only GET is supported here\n".to_owned()),
            }
        }
    };
    let fields = format!("Content-Type: {kind}\r\nContent-Length: {}\r\nConnection: close", body.len());
    let body = if request.method == Some("HEAD") { "" } else { &body };
    Some(format!("HTTP/1.1 {status}\r\n{fields}\r\n\r\n{body}"))
}

impl Snapshot {
    /// Formats all metrics as specified by OpenMetrics 1.0.0.
    fn text(self) -> String {
        let mut registry = Registry::with_prefix("quintain_load");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        let _ = text::encode(&mut text, &registry);
        text
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let progress = &self.progress;
        let help = "Valid responses while measuring.";
        let mut requests = encoder.encode_descriptor("requests", help, None, MetricType::Counter)?;
        count(&mut requests, progress.requests)?;
        let mut errors = encoder.encode_descriptor("errors", "Errors while measuring.", None, MetricType::Counter)?;
        for (kind, errors_of_kind) in &progress.errors_by_kind {
            count(&mut errors.encode_family(&[("kind", kind.as_str())])?, *errors_of_kind)?;
        }
        let help = "Valid responses per second over the last windows, at most five.";
        encoder.encode_descriptor("recent_rate", help, None, MetricType::Gauge)?.encode_gauge(&progress.rate_per_s)?;
        let mut phases = encoder.encode_descriptor("phase", "1 for the current phase.", None, MetricType::Gauge)?;
        for (phase, name) in [(Phase::Connect, "connect"), (Phase::Warmup, "warmup"), (Phase::Measure, "measure")] {
            let is_now = u32::from(progress.phase == phase);
            phases.encode_family(&[("phase", name)])?.encode_gauge(&is_now)?;
        }
        let help = "Connections of the load.";
        encoder.encode_descriptor("clients", help, None, MetricType::Gauge)?.encode_gauge(&self.clients)?;
        if !progress.slowest.is_empty() {
            let (help, seconds) = ("The slowest responses so far, by trace id.", Some(&Unit::Seconds));
            let mut slowest = encoder.encode_descriptor("slowest_response", help, seconds, MetricType::Gauge)?;
            for slow in &progress.slowest {
                let latency_s = slow.latency_ns as f64 / 1e9;
                slowest.encode_family(&[("trace_id", slow.trace_id.as_str())])?.encode_gauge(&latency_s)?;
            }
        }
        let elapsed_s = progress.elapsed_ns as f64 / 1e9;
        let (help, seconds) = ("Time since measuring began.", Some(&Unit::Seconds));
        encoder.encode_descriptor("elapsed", help, seconds, MetricType::Gauge)?.encode_gauge(&elapsed_s)?;
        let help =
            "Latency in all windows that have ended: response time in an open loop, service time in a closed one.";
        let bounds_s = LATENCY_BOUNDS_NS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::INFINITY]);
        let buckets = bounds_s.zip(progress.latencies.counts).collect::<Vec<_>>();
        let (sum_s, all) = (progress.latencies.sum_ns / 1e9, progress.latencies.counts.iter().sum::<u64>());
        let mut latency = encoder.encode_descriptor("latency", help, seconds, MetricType::Histogram)?;
        latency.encode_histogram::<NoLabelSet>(sum_s, all, &buckets, None)
    }
}

fn count(encoder: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use study::generator_messages::Latencies;
    use study::record::SlowResponse;

    use super::*;

    fn snapshot() -> Mutex<Snapshot> {
        let mut latencies = Box::new(Latencies { sum_ns: 2.5e9, ..Latencies::default() });
        (latencies.counts[4], latencies.counts[22]) = (7, 1);
        let slow = |latency_ns, digit: &str| SlowResponse {
            latency_ns,
            trace_id: digit.repeat(32),
            request: "GET /".to_owned(),
            ended_ns: 7,
        };
        let progress = Progress {
            slowest: vec![slow(2_500_000, "b"), slow(1_000_000, "a")],
            phase: Phase::Measure,
            elapsed_ns: 1_500_000_000,
            requests: 8,
            rate_per_s: 5.5,
            latency_mean_ns: None,
            errors: 3,
            cpu_ns: 0,
            errors_by_kind: BTreeMap::from([("reset".to_owned(), 1), ("timeout".to_owned(), 2)]),
            latencies,
        };
        Mutex::new(Snapshot { clients: 3, progress })
    }

    #[test]
    fn metrics_of_a_load() {
        insta::assert_snapshot!(lock(&snapshot()).clone().text());
        let text = Snapshot { clients: 1, progress: Progress::default() }.text();
        assert!(text.contains("quintain_load_phase{phase=\"connect\"} 1\n"), "{text}");
    }

    #[test]
    fn answers() {
        for (request, begin) in [
            (
                "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0;",
            ),
            ("GET /metrics?x HTTP/1.0\r\n\r\n", "HTTP/1.1 200 "),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 "),
            ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
            ("POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n"),
            ("\0\0\0", "HTTP/1.1 400 "),
            (&format!("GET /{} HTTP/1.1\r\n", "x".repeat(HEAD_MAX)), "HTTP/1.1 431 "),
        ] {
            let answer = answer_to(request.as_bytes(), &snapshot()).unwrap_or_default();
            assert!(answer.starts_with(begin), "{request}: {answer}");
            assert_eq!(answer.ends_with("# EOF\n"), begin.contains("200") && !request.starts_with("HEAD"), "{request}");
        }
        for part in ["", "GET /met", "GET /metrics HTTP/1.1\r\n"] {
            assert_eq!(answer_to(part.as_bytes(), &snapshot()), None, "{part}");
        }
    }
}
