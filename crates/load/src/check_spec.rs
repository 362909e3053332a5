//! Validates a load specification and reports all problems at once.

use study::Workload;
use study::keys::LOAD;
use study::load_rules;
use study::load_shape;
use study::spec::{Arrivals, Connection, Dialect, LoadSpec, SPEC_VERSION, Stop, Target, ThinkTime, Warmup};
use study::workload::Gaps;

use crate::journey::Plan;
use crate::protocol::{Http, Http2, Values};

/// Maximum number of windows per measurement: nearly three hours at 100 ms.
const WINDOWS_MAX: u64 = 100_000;
const REQUEST_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of keys for which causes of misses are tracked, in 2 GiB of state.
const KEYS_MAX: u64 = 1 << 30;

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn unless(&mut self, good: bool, text: impl Into<String>) {
        if !good {
            self.0.push(text.into());
        }
    }
}

/// Finds every problem of `spec` and describes each in one sentence. The list is empty if `spec` is valid.
pub fn check(spec: &LoadSpec) -> Vec<String> {
    let mut problems = Problems::default();
    problems.unless(
        spec.version == SPEC_VERSION,
        format!("`version` is {}, this build supports {SPEC_VERSION}", spec.version),
    );
    for (name, key, value) in values_with_keys(spec) {
        problems.0.extend(LOAD.at(key).kind.check_range(value).err().map(|text| format!("`{name}` {text}")));
    }
    let LoadSpec { clients, pipeline, connection, arrivals, warmup, stop, .. } = *spec;
    let broken = load_rules::problems(spec.target.protocol(), clients, pipeline, connection, arrivals, warmup, stop);
    problems.0.extend(broken.into_iter().map(|problem| problem.message));
    if let Some(part) = spec.part {
        problems.unless(
            u64::from(part.first) + u64::from(spec.threads) <= u64::from(part.of) && part.of <= spec.clients,
            format!(
                "`part`: workers {} to {} of {} for {} clients: expected workers within the total, each with at least one client",
                part.first,
                u64::from(part.first) + u64::from(spec.threads.max(1)) - 1,
                part.of,
                spec.clients
            ),
        );
    }
    let is_shared = spec.part.is_some() || spec.gate;
    if is_shared {
        // Rules other than a duration would end the load or the warm-up at a different moment in each process.
        problems.unless(
            matches!((spec.stop, spec.warmup), (Stop::Duration { .. }, Warmup::DurationNs(_))),
            "several generators need `stop` and `warmup` as durations",
        );
        problems.unless(
            !matches!(spec.target, Target::Cache { .. }),
            format!("several generators are not supported for `{}`", spec.target.protocol()),
        );
    }
    problems.unless(spec.window_ns >= 1_000_000, format!("`window_ns` is {}, expected at least 1 ms", spec.window_ns));
    let is_journey = matches!(spec.target, Target::Journey { .. });
    problems.unless(is_journey || !spec.target.address().is_empty(), "`address` is empty");
    let (mut keeps_connections, mut is_recorded) = (None, false);
    match &spec.target {
        Target::Pingpong { .. } => keeps_connections = Some("ping-pong"),
        Target::Http { requests, tls, http2, expect, directory, .. } => {
            problems.unless(*http2 || !expect.grpc, "`grpc` needs `http2`");
            let bytes = requests.iter().map(|request| request.body.len() as u64).max().unwrap_or(0);
            problems.unless(
                bytes * u64::from(spec.pipeline) <= REQUEST_BYTES_MAX,
                format!(
                    "a body of {bytes} bytes in a pipeline of {}: at most 1 GiB may be in flight per connection",
                    spec.pipeline
                ),
            );
            let mut values = Values::new(directory, spec.seed);
            values.only_checks = true;
            problems.0.extend(match http2 {
                true => Http2::new(tls.is_some(), requests, expect, values).err().unwrap_or_default(),
                false => Http::new(requests, expect, spec.connection, values).err().unwrap_or_default(),
            });
        }
        Target::Cache { dialect, workload, .. } => {
            keeps_connections = Some("cache loads");
            is_recorded = workload.trace.as_ref().is_some_and(|trace| trace.gaps == Gaps::Recorded);
            cache(*dialect, workload, spec.pipeline, &mut problems);
        }
        Target::Journey { .. } => {
            problems.0.extend(Plan::of(&spec.target, spec.seed).err().unwrap_or_default());
            problems.unless(spec.pipeline == 1, format!("`pipeline` is {}, not supported by journeys", spec.pipeline));
            if let Stop::Requests { requests, .. } = spec.stop {
                let calls = spec.target.requests_per_session();
                problems.unless(
                    requests as f64 >= calls,
                    format!("`requests` is {requests}, fewer than the {calls} calls of one journey"),
                );
            }
        }
    }
    if let Some(kind) = keeps_connections.filter(|_| connection != Connection::KeepAlive) {
        problems.0.push(format!("`connection` is not `keep-alive`, the only use that {kind} supports"));
    }
    problems.unless(
        is_recorded == matches!(spec.arrivals, Arrivals::Recorded),
        "`arrivals` must be `recorded` if the workload replays a trace with its gaps, and only then",
    );
    if !spec.shape.is_empty() {
        match spec.arrivals {
            Arrivals::Closed { .. } => problems.unless(
                load_shape::clients_max(&spec.shape) <= spec.clients,
                "`shape` has more clients than `clients`, its maximum",
            ),
            Arrivals::Poisson { .. } | Arrivals::Constant { .. } => {}
            Arrivals::Recorded => problems.unless(false, "`shape` cannot be combined with recorded `arrivals`"),
        }
        let duration_ns = load_shape::duration_ns(&spec.shape);
        problems.unless(spec.stop == Stop::Duration { duration_ns }, "`stop` is not the duration of the `shape`");
        problems.0.extend(load_shape::check(&spec.shape).err().map(|error| format!("`shape`: {}", error.message)));
    }
    if let Some(rate) = spec.arrivals.offered_per_s() {
        problems.unless(
            rate.is_finite() && rate > 0.0 && rate <= 1e9,
            format!("`rate_per_s` is {rate}, expected more than 0 and at most 1e9"),
        );
    }
    if let ThinkTime::Random(law) = spec.arrivals.think() {
        problems.unless(law.check().is_ok(), format!("`think_ns` is {law:?}, which has invalid parameters"));
    }
    let rule = if matches!(spec.stop, Stop::Duration { .. }) { "duration_ns" } else { "max_ns" };
    let longest_ns = spec.stop.longest_ns();
    problems.unless(longest_ns > 0, format!("`{rule}` is 0"));
    let windows = longest_ns / spec.window_ns.max(1);
    problems.unless(
        windows <= WINDOWS_MAX,
        format!("{windows} windows, at most {WINDOWS_MAX}: increase `window_ns` or reduce `{rule}`"),
    );
    if let Warmup::DurationNs(warmup_ns) | Warmup::Steady { max_ns: warmup_ns } = spec.warmup {
        problems.unless(warmup_ns < 86_400_000_000_000, format!("a warm-up of {warmup_ns} ns exceeds one day"));
    }
    problems.0
}

/// Values that have the range of a key of `[load]`: each with its name and the key.
fn values_with_keys(spec: &LoadSpec) -> Vec<(&'static str, &'static str, f64)> {
    let mut values = vec![
        ("clients", "clients", f64::from(spec.clients)),
        ("threads", "threads", f64::from(spec.threads)),
        ("pipeline", "pipeline", f64::from(spec.pipeline)),
        ("timeout_ns", "timeout", spec.timeout_ns as f64),
    ];
    if let Target::Http { http2_settings: own, .. } = &spec.target {
        values.extend([
            ("stream_window_bytes", "stream_window", f64::from(own.stream_window_bytes)),
            ("connection_window_bytes", "connection_window", f64::from(own.connection_window_bytes)),
            ("header_table_bytes", "header_table", f64::from(own.header_table_bytes)),
        ]);
    }
    match spec.stop {
        Stop::Duration { .. } => {}
        Stop::Requests { requests, .. } => values.push(("requests", "stop.requests", requests as f64)),
        Stop::Interval { relative, level, .. } => {
            values.extend([("relative", "stop.relative", relative), ("level", "stop.level", level)]);
        }
        Stop::Volley { round_requests, half_width_ns, .. } => values.extend([
            ("round_requests", "stop.round", round_requests as f64),
            ("half_width_ns", "stop.half_width", half_width_ns as f64),
        ]),
    }
    values
}

fn cache(dialect: Dialect, workload: &Workload, pipeline: u32, problems: &mut Problems) {
    let invalid = workload.problems();
    problems.0.extend(invalid.iter().map(|problem| format!("workload: `{}`: {}", problem.key, problem.message)));
    problems.unless(
        workload.trace.is_some() || workload.keys.count <= KEYS_MAX,
        format!(
            "workload: `keys.count` is {}, expected at most {KEYS_MAX} (two bytes per key record why it was missed)",
            workload.keys.count
        ),
    );
    problems.unless(
        dialect != Dialect::HttpCache || workload.trace.is_some() || workload.ttl.is_empty(),
        "workload: `ttl` is not supported by caches over HTTP; drop it",
    );
    problems.unless(
        workload.values.max_bytes.saturating_mul(u64::from(pipeline)) <= REQUEST_BYTES_MAX,
        format!(
            "values of {} bytes in a pipeline of {pipeline}: at most 1 GiB may be in flight per connection; lower \
             `values.max`",
            workload.values.max_bytes
        ),
    );
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use study::spec::{Backend, Connection};

    pub(crate) fn spec() -> LoadSpec {
        LoadSpec {
            version: SPEC_VERSION,
            target: Target::Pingpong { address: "127.0.0.1:1".to_owned() },
            clients: 4,
            pipeline: 1,
            connection: Connection::KeepAlive,
            threads: 1,
            cpus: Vec::new(),
            backend: Backend::Auto,
            arrivals: Arrivals::closed(0),
            warmup: Warmup::DurationNs(100_000_000),
            stop: Stop::Duration { duration_ns: 1_000_000_000 },
            window_ns: 100_000_000,
            timeout_ns: 1_000_000_000,
            spin_ns: 0,
            seed: 1,
            part: None,
            gate: false,
            shape: Vec::new(),
            log_one_in: 0,
        }
    }

    #[test]
    fn accepts_valid_specification() {
        assert_eq!(check(&spec()), Vec::<String>::new());
    }

    #[test]
    fn checks_think_times() {
        for (law, problems) in [(r#"{"law":"exponential","mean":1e9}"#, 0), (r#"{"law":"exponential","mean":-1}"#, 1)] {
            let arrivals = serde_json::from_str(&format!(r#"{{"loop":"closed","think_ns":{law}}}"#)).unwrap();
            let found = check(&LoadSpec { arrivals, ..spec() });
            assert_eq!(found.iter().filter(|problem| problem.contains("think_ns")).count(), problems, "{found:?}");
        }
    }

    #[test]
    fn reports_every_error() {
        let bad = LoadSpec {
            version: 9,
            clients: 0,
            threads: 0,
            window_ns: 0,
            timeout_ns: 0,
            target: Target::Pingpong { address: String::new() },
            arrivals: Arrivals::Poisson { rate_per_s: f64::NAN },
            stop: Stop::Volley { round_requests: 0, half_width_ns: 0, max_ns: u64::MAX },
            warmup: Warmup::DurationNs(u64::MAX),
            ..spec()
        };
        let mistakes = check(&bad);
        for word in
            ["version", "clients", "threads", "window_ns", "timeout_ns", "address", "rate_per_s", "round_requests"]
        {
            assert!(mistakes.iter().any(|mistake| mistake.contains(word)), "{word} in {mistakes:?}");
        }
        for word in ["half_width_ns", "closed loop", "windows", "day"] {
            assert!(mistakes.iter().any(|mistake| mistake.contains(word)), "{word} in {mistakes:?}");
        }
    }
}
