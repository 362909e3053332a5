//! Validates a load specification and reports all problems at once.

use std::collections::BTreeMap;

use study::limits::{CLIENTS_MAX, IN_FLIGHT_MAX, PIPELINE_MAX, THREADS_MAX, TIMEOUT_MIN_NS};
use study::spec::{Arrivals, Connection, Dialect, LoadSpec, Protocol, SPEC_VERSION, Stop, Target, Warmup};
use study::url;
use study::{Journey, Workload};

use crate::journey::Program;
use crate::protocol::Http;

/// Maximum number of windows per measurement: nearly three hours at 100 ms.
const WINDOWS_MAX: u64 = 100_000;
const JOURNEY_CLIENTS_MAX: u32 = 1024;
const REQUEST_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of keys for which causes of misses are tracked: 2 GiB of state.
const KEYS_MAX: u64 = 1 << 30;

/// Returns every problem of `spec` in one sentence each, or nothing if it is valid.
pub fn check(spec: &LoadSpec) -> Vec<String> {
    let mut mistakes = Vec::new();
    let mut unless = |good: bool, text: String| {
        if !good {
            mistakes.push(text);
        }
    };
    unless(spec.version == SPEC_VERSION, format!("`version` is {}, this build supports {SPEC_VERSION}", spec.version));
    unless(
        (1..=CLIENTS_MAX).contains(&spec.clients),
        format!("`clients` is {}, expected 1 to {CLIENTS_MAX}", spec.clients),
    );
    unless(
        (1..=THREADS_MAX).contains(&spec.threads),
        format!("`threads` is {}, expected 1 to {THREADS_MAX}", spec.threads),
    );
    if let Some(part) = spec.part {
        unless(
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
    if spec.part.is_some() || spec.gate {
        // Other rules would end, or leave the warm-up, at a different moment in each process.
        unless(
            matches!((spec.stop, spec.warmup), (Stop::Duration { .. }, Warmup::DurationNs(_))),
            "several generators need `stop` and `warmup` as durations".to_owned(),
        );
        unless(
            matches!(spec.target, Target::Pingpong { .. } | Target::Http { .. }),
            format!("several generators are not supported for `{}`", spec.target.protocol()),
        );
    }
    unless(spec.window_ns >= 1_000_000, format!("`window_ns` is {}, expected at least 1 ms", spec.window_ns));
    unless(spec.timeout_ns >= TIMEOUT_MIN_NS, format!("`timeout_ns` is {}, expected at least 1 ms", spec.timeout_ns));
    match &spec.target {
        Target::Cache { .. } | Target::Journey { .. } => {} // Checked below.
        Target::Pingpong { address } => unless(!address.is_empty(), "`address` is empty".to_owned()),
        Target::Http { address, requests, expect, .. } => {
            unless(!address.is_empty(), "`address` is empty".to_owned());
            let bytes = requests.iter().map(|request| request.body.len() as u64).max().unwrap_or(0);
            unless(
                bytes * u64::from(spec.pipeline) <= REQUEST_BYTES_MAX,
                format!(
                    "a body of {bytes} bytes in a pipeline of {}: at most 1 GiB may be in flight per connection",
                    spec.pipeline
                ),
            );
            if let Err(wrong) = Http::new(requests, expect, spec.connection) {
                wrong.into_iter().for_each(|text| unless(false, text));
            }
        }
    }
    if let Target::Cache { address, dialect, workload } = &spec.target {
        unless(!address.is_empty(), "`address` is empty".to_owned());
        cache(*dialect, workload, spec.pipeline).into_iter().for_each(|text| unless(false, text));
        unless(
            spec.connection == Connection::KeepAlive,
            "`connection` is `per-request`, not supported by cache loads".to_owned(),
        );
        unless(
            !matches!(spec.stop, Stop::Volley { .. }),
            "the stop rule `volley` does not apply to caches: fills after misses belong to no round".to_owned(),
        );
    } else if let Warmup::Steady { .. } = spec.warmup {
        unless(false, "the warm-up rule `steady` needs a cache: it watches the hit ratio".to_owned());
    }
    if let Target::Journey { journey, targets, resolve, .. } = &spec.target {
        self::journey(spec, journey, targets, resolve.as_deref()).into_iter().for_each(|text| unless(false, text));
    }
    unless(
        (1..=PIPELINE_MAX).contains(&spec.pipeline),
        format!("`pipeline` is {}, expected 1 to {PIPELINE_MAX}", spec.pipeline),
    );
    let in_flight = u64::from(spec.clients) * u64::from(spec.pipeline);
    unless(in_flight <= IN_FLIGHT_MAX, format!("{in_flight} requests in flight, at most {IN_FLIGHT_MAX}"));
    if spec.connection == Connection::PerRequest {
        unless(spec.pipeline <= 1, "`pipeline` must be 1 with one connection per request".to_owned());
        unless(
            !matches!(spec.target, Target::Pingpong { .. }),
            "`connection` is `per-request`, not supported by ping-pong".to_owned(),
        );
    }
    if spec.pipeline > 1 {
        let thinks = matches!(spec.arrivals, Arrivals::Closed { think_ns: 1.. });
        unless(!thinks, "`pipeline` must be 1 with `think_ns`".to_owned());
        unless(
            !matches!(spec.stop, Stop::Volley { .. }),
            "`pipeline` must be 1 with the stop rule `volley`".to_owned(),
        );
    }
    let recorded = match &spec.target {
        Target::Cache { workload, .. } => {
            workload.trace.as_ref().is_some_and(|trace| trace.gaps == study::workload::Gaps::Recorded)
        }
        _ => false,
    };
    unless(
        recorded == matches!(spec.arrivals, Arrivals::Recorded),
        "`arrivals` must be `recorded` if the workload replays a trace with its gaps, and only then".to_owned(),
    );
    if let Some(rate) = spec.arrivals.offered_per_s() {
        unless(
            rate.is_finite() && rate > 0.0 && rate <= 1e9,
            format!("`rate_per_s` is {rate}, expected more than 0 and at most 1e9"),
        );
    }
    let (longest_ns, rule) = match spec.stop {
        Stop::Duration { duration_ns } => (duration_ns, "duration_ns"),
        Stop::Requests { requests, max_ns } => {
            unless(requests > 0, "`requests` is 0".to_owned());
            (max_ns, "max_ns")
        }
        Stop::Interval { relative, level, max_ns } => {
            unless(
                relative > 0.0 && relative < 1.0,
                format!(
                    "`relative` is {relative}, expected a fraction between 0 \
                                                              and 1"
                ),
            );
            unless(level > 0.0 && level < 1.0, format!("`level` is {level}, expected a fraction between 0 and 1"));
            (max_ns, "max_ns")
        }
        Stop::Volley { round_requests, half_width_ns, max_ns } => {
            unless(round_requests > 0, "`round_requests` is 0".to_owned());
            unless(half_width_ns > 0, "`half_width_ns` is 0".to_owned());
            unless(
                matches!(spec.arrivals, Arrivals::Closed { think_ns: 0 }),
                "the stop rule `volley` needs a closed loop without think time".to_owned(),
            );
            (max_ns, "max_ns")
        }
    };
    unless(longest_ns > 0, format!("`{rule}` is 0"));
    let windows = longest_ns / spec.window_ns.max(1);
    unless(
        windows <= WINDOWS_MAX,
        format!("{windows} windows, at most {WINDOWS_MAX}: increase `window_ns` or reduce `{rule}`"),
    );
    if let Warmup::DurationNs(warmup_ns) | Warmup::Steady { max_ns: warmup_ns } = spec.warmup {
        unless(warmup_ns < 86_400_000_000_000, format!("a warm-up of {warmup_ns} ns exceeds one day"));
    }
    mistakes
}

fn journey(
    spec: &LoadSpec,
    journey: &Journey,
    targets: &BTreeMap<String, String>,
    resolve: Option<&str>,
) -> Vec<String> {
    let mut mistakes = Program::new(journey, targets).err().unwrap_or_default();
    let mut unless = |good: bool, text: String| {
        if !good {
            mistakes.push(text);
        }
    };
    unless(
        spec.clients <= JOURNEY_CLIENTS_MAX,
        format!("`clients` is {}, journeys allow at most {JOURNEY_CLIENTS_MAX}: each is a thread", spec.clients),
    );
    unless(
        matches!(spec.arrivals, Arrivals::Closed { think_ns: 0 }),
        "journeys need a closed loop without think time".to_owned(),
    );
    unless(spec.pipeline == 1, format!("`pipeline` is {}, not supported by journeys", spec.pipeline));
    unless(
        spec.connection == Connection::KeepAlive,
        "`connection` is `per-request`, not supported by journeys".to_owned(),
    );
    unless(!matches!(spec.stop, Stop::Volley { .. }), "the stop rule `volley` does not apply to journeys".to_owned());
    if let Stop::Requests { requests, .. } = spec.stop {
        let calls = journey.steps.len() as u64;
        unless(requests >= calls, format!("`requests` is {requests}, fewer than the {calls} calls of one journey"));
    }
    let good = resolve.is_none_or(|text| url::parse(text).is_ok_and(|url| url.protocol == Protocol::Http));
    unless(good, format!("`resolve` is `{}`, expected `http://host:port`", resolve.unwrap_or_default()));
    mistakes
}

fn cache(dialect: Dialect, workload: &Workload, pipeline: u32) -> Vec<String> {
    let mut mistakes = Vec::new();
    let problems = workload.problems();
    mistakes.extend(problems.iter().map(|problem| format!("workload: `{}`: {}", problem.key, problem.message)));
    if workload.trace.is_none() && workload.keys.count > KEYS_MAX {
        mistakes.push(format!(
            "workload: `keys.count` is {}, expected at most {KEYS_MAX} (two bytes per key record why it was missed)",
            workload.keys.count
        ));
    }
    if dialect == Dialect::HttpCache && workload.trace.is_none() && !workload.ttl.is_empty() {
        mistakes.push("workload: `ttl` is not supported by caches over HTTP; drop it".to_owned());
    }
    if workload.values.max_bytes.saturating_mul(u64::from(pipeline)) > REQUEST_BYTES_MAX {
        mistakes.push(format!(
            "values of {} bytes in a pipeline of {pipeline}: at most 1 GiB may be in flight per connection; lower \
             `values.max`",
            workload.values.max_bytes
        ));
    }
    mistakes
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
            arrivals: Arrivals::Closed { think_ns: 0 },
            warmup: Warmup::DurationNs(100_000_000),
            stop: Stop::Duration { duration_ns: 1_000_000_000 },
            window_ns: 100_000_000,
            timeout_ns: 1_000_000_000,
            spin_ns: 0,
            seed: 1,
            part: None,
            gate: false,
        }
    }

    #[test]
    fn accepts_valid_specification() {
        assert_eq!(check(&spec()), Vec::<String>::new());
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
