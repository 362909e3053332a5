//! What is wrong with a specification, all of it at once.

use study::spec::{Arrivals, LoadSpec, SPEC_VERSION, Stop, Target, Warmup};

/// Windows of one measurement at most: at 100 ms, nearly three hours.
const WINDOWS_MAX: u64 = 100_000;
/// Workers at most.
const THREADS_MAX: u32 = 4096;
/// Connections at most, over all workers.
const CLIENTS_MAX: u32 = 1_000_000;

/// Every mistake in `spec`, one sentence each; empty: none.
pub fn check(spec: &LoadSpec) -> Vec<String> {
    let mut mistakes = Vec::new();
    let mut unless = |good: bool, text: String| {
        if !good {
            mistakes.push(text);
        }
    };
    unless(spec.version == SPEC_VERSION, format!("`version` is {}, this build speaks {SPEC_VERSION}", spec.version));
    unless(
        (1..=CLIENTS_MAX).contains(&spec.clients),
        format!("`clients` is {}, allowed are 1 to {CLIENTS_MAX}", spec.clients),
    );
    unless(
        (1..=THREADS_MAX).contains(&spec.threads),
        format!("`threads` is {}, allowed are 1 to {THREADS_MAX}", spec.threads),
    );
    unless(spec.window_ns >= 1_000_000, format!("`window_ns` is {}, at least 1 ms", spec.window_ns));
    unless(spec.timeout_ns >= 1_000_000, format!("`timeout_ns` is {}, at least 1 ms", spec.timeout_ns));
    match &spec.target {
        Target::Pingpong { address } => unless(!address.is_empty(), "`address` is empty".to_owned()),
        Target::Http { address, .. } => unless(!address.is_empty(), "`address` is empty".to_owned()),
    }
    if let Some(rate) = spec.arrivals.offered_per_s() {
        unless(
            rate.is_finite() && rate > 0.0 && rate <= 1e9,
            format!("`rate_per_s` is {rate}, more than 0 and at most 1e9"),
        );
    }
    let (longest_ns, rule) = match spec.stop {
        Stop::Duration { duration_ns } => (duration_ns, "duration_ns"),
        Stop::Requests { requests, max_ns } => {
            unless(requests > 0, "`requests` is 0".to_owned());
            (max_ns, "max_ns")
        }
        Stop::Interval { relative, level, max_ns } => {
            unless(relative > 0.0 && relative < 1.0, format!("`relative` is {relative}, a fraction between 0 and 1"));
            unless(level > 0.0 && level < 1.0, format!("`level` is {level}, a fraction between 0 and 1"));
            (max_ns, "max_ns")
        }
        Stop::Volley { round_requests, half_width_ns, max_ns } => {
            unless(round_requests > 0, "`round_requests` is 0".to_owned());
            unless(half_width_ns > 0, "`half_width_ns` is 0".to_owned());
            unless(
                matches!(spec.arrivals, Arrivals::Closed { think_ns: 0 }),
                "the stop rule `volley` is of a closed loop without think time".to_owned(),
            );
            (max_ns, "max_ns")
        }
    };
    unless(longest_ns > 0, format!("`{rule}` is 0"));
    let windows = longest_ns / spec.window_ns.max(1);
    unless(
        windows <= WINDOWS_MAX,
        format!("{windows} windows, at most {WINDOWS_MAX}: make `window_ns` longer or `{rule}` shorter"),
    );
    if let Warmup::DurationNs(warmup_ns) = spec.warmup {
        unless(warmup_ns < 86_400_000_000_000, format!("a warm-up of {warmup_ns} ns is longer than a day"));
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
        }
    }

    #[test]
    fn a_good_specification_has_no_mistakes() {
        assert_eq!(check(&spec()), Vec::<String>::new());
    }

    #[test]
    fn every_mistake_is_named() {
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
