//! `quintain load`: puts one load on a running server. With `--find`, it repeats the load at rates of a search.

use std::path::Path;
use std::time::Duration;

use analysis::{FIND_VERSION, FindReport, LoadLimitOutcome, Search, SearchBound};
use lab::lab_clocks::nanos;
use load::{LoadError, Progress};
use study::Objective;
use study::gate::FailIf;
use study::load_limits_and_defaults::WINDOW_NS;
use study::load_rules;
use study::load_shape;
use study::plan::SearchPlan;
use study::record::{Failure, FailureKind, LoggedSession, Measurement};
use study::spec::{Arrivals, LoadSpec, SPEC_VERSION, Stop, Target, Warmup};

use crate::cli::{LoadArgs, WarmupRule};
use crate::collected_mistakes::Mistakes;
use crate::command_result::{Done, Exit, Problem, Result, machine, usage};
use crate::live_chart::{Live, live};
use crate::load_target::Asked;
use crate::metrics_endpoint::Metrics;
use crate::{hidden_commands, load_target, os_limits, output, signals, start_cluster};

/// Time for which the open loop polls before each intended send, in ns.
const SPIN_NS: u64 = 100_000;
/// Multiple of `--duration` after which `--until` gives up.
const UNTIL_DURATIONS: u64 = 10;
/// Default measurement time, in ns.
const DURATION_NS: u64 = 5_000_000_000;
/// Time in ns after which a load with `-n`, or a trace without `-d`, gives up.
const REQUESTS_MAX_NS: u64 = 600_000_000_000;
/// Constants of volley: requests per round, half-width of the interval, and maximum time.
const VOLLEY: Stop = Stop::Volley { round_requests: 1_000_000, half_width_ns: 5_000, max_ns: 180_000_000_000 };
/// Maximum number of windows. Longer loads have longer windows.
const WINDOWS_MAX: u64 = 36_000;

/// Default warm-up for servers that are not caches.
const WARMUP: Duration = Duration::from_nanos(study::load_limits_and_defaults::WARMUP_NS);
/// Maximum warm-up of a cache, in ns.
const STEADY_MAX_NS: u64 = 60_000_000_000;

struct Prepared {
    spec: LoadSpec,
    name: String,
    search: Option<SearchPlan>,
    fail_if: Option<FailIf>,
    notes: Vec<String>,
}

pub(crate) fn load(args: LoadArgs, mistakes: Mistakes) -> Done {
    if let Some(path) = &args.spec {
        return hidden_commands::generator(path);
    }
    signals::watch_interrupts()?;
    let Prepared { spec, name, search, fail_if, notes } = read(&args, mistakes)?;
    let (generators, warnings) = if args.cluster.is_given() {
        (start_cluster::generators(&args.cluster, &spec)?, Vec::new())
    } else {
        if !spec.cpus.is_empty() {
            crate::run::cpus(Some(&spec.cpus))?;
        }
        (None, os_limits::make_room(&spec)?)
    };
    if !args.quiet {
        notes.iter().for_each(|note| output::message(&format!("note: {note}")));
    }
    warnings.iter().for_each(|warning| output::message(&format!("warning: {warning}")));
    if let Some(search) = search {
        return find(&args, search, &spec, &name);
    }
    let has_free_port = args.metrics.is_some_and(|address| address.port() == 0);
    let metrics = args.metrics.map(|address| Metrics::start(address, spec.clients, &spec.cpus)).transpose()?;
    // With `--quiet`, the address is printed only if the kernel chose the port.
    if let Some(metrics) = metrics.as_ref().filter(|_| !args.quiet || has_free_port) {
        output::message(&format!("metrics: http://{}/metrics", metrics.address));
    }
    let mut line = Live::new(!args.quiet);
    let mut progress = |progress: Progress| {
        if let Some(metrics) = &metrics {
            metrics.show(&progress);
        }
        line.show(&live(&progress, &spec.stop), Some(&progress));
    };
    let result = match &generators {
        None => {
            let measured = load::run(&spec, &mut progress, &signals::INTERRUPTED);
            measured.map(|measurement| (measurement, Vec::new())).map_err(|error| problem(&error, &spec.target))
        }
        Some(generators) => generators.run(&spec, &mut progress).map_err(|failure| match failure {
            None => Problem::text(Exit::Interrupted, "interrupted"),
            Some(Failure { kind: FailureKind::Node, message }) => Problem::text(Exit::Machine, message),
            Some(Failure { message, .. }) => Problem::text(Exit::Subject, message),
        }),
    };
    line.clear();
    let (measurement, agents) = result?;
    if let Some(path) = &args.calls {
        write_calls(path, &measurement, &spec.target)?;
    }
    if let Some(path) = &args.log {
        write_log(path, &measurement, &spec.target)?;
    }
    if let Some((path, kind)) = &args.hdr {
        // The measurement has just ended, so its duration gives the time at which it began.
        let start_s = lab::lab_clocks::unix_seconds().saturating_sub(measurement.duration_ns / 1_000_000_000);
        let start = Duration::from_secs(start_s);
        match report::exports::latency_file(&measurement, *kind, &name, start) {
            Some(text) => output::file(path, text)?,
            None => output::message(&format!("no latency to write to `{}`", path.display())),
        }
    }
    let limits = fail_if.map_or_else(Vec::new, |fail_if| analysis::load_limits(&measurement, &fail_if));
    let has = |outcome| limits.iter().any(|limit| limit.outcome == outcome);
    let exit = match () {
        () if signals::is_interrupted() => Exit::Interrupted,
        () if measurement.requests == 0 => Exit::Subject,
        () if has(LoadLimitOutcome::Fails) => Exit::Findings,
        () if has(LoadLimitOutcome::Unknown) => Exit::Machine,
        () => Exit::Fine,
    };
    if let (true, [first, ..]) = (args.trace_session, measurement.journeys.as_slice()) {
        // The output of a server must not control the terminal.
        let lines = first.transcript.lines().map(|line| analysis::visible(line) + "\n");
        output::text(&lines.collect::<String>())?;
        if let Some(journey) = measurement.journeys.iter().find(|journey| journey.completed == 0) {
            let why = measurement.error_examples.values().chain(measurement.errors.keys()).next();
            let why = why.map_or_else(|| "no response".to_owned(), |why| analysis::visible(why).into_owned());
            return Err(Problem::text(Exit::Subject, format!("the journey `{}` did not end: {why}", journey.name)));
        }
        return Ok(exit);
    }
    let report = analysis::LoadReport { limits, ..analysis::load(&measurement, &agents, &name) };
    output::json_or(args.json, &report, || report::load_terminal(&report, &output::style()))?;
    Ok(exit)
}

fn read(args: &LoadArgs, mut mistakes: Mistakes) -> Result<Prepared> {
    let is_journey = !args.journeys.is_empty();
    let asked = if is_journey {
        load_target::of_journeys(args, &mut mistakes)
    } else {
        // Clap's `requires` would ignore flags that conflict with the URL.
        let flags = ["--target", "--resolve", "--calls", "--trace-session", "--identities"];
        mistakes.refuse(&flags, "only applies to journeys", "use `--journey` instead of the URL");
        load_target::asked(args, &mut mistakes)
    };
    let is_cache = asked.as_ref().map(|asked| matches!(asked.target, Target::Cache { .. }));
    if is_cache == Some(false) {
        let hint = "cache URLs are `memcached://`, `redis://` and `http-cache://`";
        mistakes.refuse(&["--workload", "--key-count", "--fill", "--trace"], "only applies to caches", hint);
    }
    let trace = asked.as_ref().and_then(|asked| match &asked.target {
        Target::Cache { workload, .. } => workload.trace.as_ref(),
        _ => None,
    });
    let duration_ns = args.duration.map_or(if trace.is_some() { REQUESTS_MAX_NS } else { DURATION_NS }, nanos);
    let search = search_plan(args, duration_ns, &mut mistakes);
    let fail_if = args.fail_if.as_deref();
    let fail_if = fail_if.and_then(|text| mistakes.all_ok("`--fail-if`", FailIf::parse_absolute(text)));
    let mut shape = args.rate.as_ref().map(|rate| rate.shape.clone()).unwrap_or_default();
    if !args.clients.shape.is_empty() {
        let why = "cannot be combined with a number of clients that changes";
        mistakes.refuse(&["--rate", "--find"], why, "drop it, or give one number of clients");
        shape.clone_from(&args.clients.shape);
    }
    if !shape.is_empty() {
        let flags = ["--duration", "--requests", "--until", "--volley"];
        mistakes.refuse(&flags, "cannot be combined with a shape, which ends the load", "drop it");
    }
    let stop = match (args.volley, args.until, args.requests) {
        _ if !shape.is_empty() => Stop::Duration { duration_ns: load_shape::duration_ns(&shape) },
        (true, ..) => VOLLEY,
        (_, Some(relative), _) => {
            Stop::Interval { relative, level: 0.95, max_ns: duration_ns.saturating_mul(UNTIL_DURATIONS) }
        }
        (.., Some(requests)) => Stop::Requests { requests, max_ns: REQUESTS_MAX_NS },
        _ => Stop::Duration { duration_ns },
    };
    let recorded = trace.is_some_and(|trace| trace.gaps == study::workload::Gaps::Recorded);
    if recorded {
        let why = "cannot be combined with the recorded gaps of a trace";
        mistakes.refuse(&["--rate", "--find", "--think"], why, "drop it, or replay the trace without its gaps");
    }
    let rate = args.rate.as_ref().map(|rate| rate.number);
    let arrivals = match rate.or(args.find.as_ref().map(|_| 1.0)) {
        Some(rate_per_s) if args.are_poisson => Arrivals::Poisson { rate_per_s },
        Some(rate_per_s) => Arrivals::Constant { rate_per_s },
        None if recorded => Arrivals::Recorded,
        None => Arrivals::Closed { think: args.think },
    };
    let warmup = match args.warmup {
        // No warm-up: a trace is measured from its first operation, and journeys and `-n` include every request.
        None if trace.is_some() || is_journey || (args.requests.is_some() && is_cache == Some(false)) => {
            Warmup::DurationNs(0)
        }
        warmup => warmup_of(warmup, is_cache.unwrap_or(true), args.requests, &mut mistakes),
    };
    if let Some(Asked { target, pipeline, connection, .. }) = &asked {
        let protocol = target.protocol();
        let depth = if args.http.http2 { "`--streams`" } else { "`--pipeline`" };
        let flags = |text: &str| text.replace("`pipeline`", depth).replace("`think`", "`--think`");
        for broken in
            load_rules::problems(protocol, args.clients.number, *pipeline, *connection, arrivals, warmup, stop)
        {
            mistakes.add(usage(flags(&broken.message)).hint_if(broken.hint.map(flags)));
        }
    }
    mistakes.end()?;
    let asked = asked.ok_or_else(|| usage("no URL to load"))?;
    // A traced load runs each journey once, whatever the number of requests.
    let one_session = args.trace_session.then(|| asked.target.requests_per_session().ceil() as u64);
    let spec = LoadSpec {
        version: SPEC_VERSION,
        target: asked.target,
        clients: if one_session.is_some() { 1 } else { args.clients.number },
        pipeline: asked.pipeline,
        connection: asked.connection,
        threads: args.threads,
        cpus: args.cpus.clone().unwrap_or_default(),
        backend: args.backend,
        arrivals,
        warmup,
        stop: one_session.map_or(stop, |requests| Stop::Requests { requests, max_ns: REQUESTS_MAX_NS }),
        window_ns: window_ns(stop.longest_ns()),
        timeout_ns: nanos(args.timeout),
        spin_ns: SPIN_NS,
        seed: args.seed,
        part: None,
        gate: false,
        log_one_in: match (&args.calls, &args.log) {
            (None, None) => 0,
            (Some(_), _) => 1,
            (None, Some(_)) => study::validate_http::one_in(args.log_share.unwrap_or(1.0)),
        },
        shape,
    };
    Ok(Prepared { spec, name: asked.name, search, fail_if, notes: asked.notes })
}

/// Reads the search with trials of `duration_ns` from the flags. `None` without `--find`; adds errors to `mistakes`.
fn search_plan(args: &LoadArgs, duration_ns: u64, mistakes: &mut Mistakes) -> Option<SearchPlan> {
    let (from_per_s, to_per_s) = (args.find_from, args.find_to);
    if from_per_s.zip(to_per_s).is_some_and(|(from, to)| from > to) {
        mistakes.add(usage("`--find-to` is below `--find-from`"));
    }
    let objective = Objective::parse(args.find.as_ref()?);
    let objective = objective.map_err(|errors| errors.into_iter().map(|(_, error)| error).collect());
    let objective = mistakes.all_ok("`--find`", objective)?;
    if let Some(condition) = objective.conditions.iter().find(|condition| condition.metric.name == "subject_rss") {
        let problem = usage(format!("`--find`: server memory cannot be observed here (`{condition}`)"));
        mistakes.add(problem.hint("a study with `load.search` starts the server itself and sees its memory"));
    }
    let plain = SearchPlan::new(objective, duration_ns);
    let resolution = args.resolution.unwrap_or(plain.resolution);
    Some(SearchPlan { from_per_s, to_per_s, resolution, ..plain })
}

fn find(args: &LoadArgs, plan: SearchPlan, spec: &LoadSpec, name: &str) -> Done {
    let pilot_ns = plan.pilot_ns;
    let mut search = Search::new(plan);
    let mut line = Live::new(!args.quiet);
    while let Some(step) = search.next().filter(|_| !signals::is_interrupted()) {
        let mut trial = spec.clone();
        // Each trial has its own schedule, which the seed makes reproducible.
        trial.seed = spec.seed.wrapping_add(search.trials() as u64);
        // Rates are requests per second in a search but sessions per second in a load.
        match step.rate_per_s {
            None => {
                trial.arrivals = Arrivals::closed(0);
                trial.stop = Stop::Duration { duration_ns: pilot_ns };
            }
            Some(rate_per_s) => trial.arrivals = trial.arrivals.at(rate_per_s / spec.target.requests_per_session()),
        }
        let what =
            step.rate_per_s.map_or_else(|| "a closed loop".to_owned(), |rate| analysis::number::quantity(rate, "1/s"));
        let mut progress = |progress: Progress| {
            let text = format!("trial {}, {what}: {}", search.trials() + 1, live(&progress, &trial.stop));
            line.show(&text, Some(&progress));
        };
        let result = load::run(&trial, &mut progress, &signals::INTERRUPTED);
        line.clear();
        let told = match result {
            Ok(_) if signals::is_interrupted() => break,
            Ok(measurement) => search.measured(step, measurement),
            Err(LoadError::Interrupted) => break,
            // If an earlier trial reached the server, the server broke under the load.
            Err(error @ LoadError::Unreachable { .. }) if search.trials() > 0 => search.broke(step, error.to_string()),
            Err(error) => return Err(problem(&error, &trial.target)),
        };
        if !args.quiet {
            output::message(&told);
        }
    }
    let warnings = vec!["all trials used the same server process; its state affects the result".to_owned()];
    let report = FindReport { version: FIND_VERSION, target: name.to_owned(), search: search.finding(), warnings };
    output::json_or(args.json, &report, || report::find_terminal(&report, &output::style()))?;
    Ok(match report.search.bound {
        _ if signals::is_interrupted() => Exit::Interrupted,
        SearchBound::Found => Exit::Fine,
        SearchBound::Subject => Exit::Subject,
        SearchBound::Measuring => Exit::Machine,
    })
}

fn problem(error: &LoadError, target: &Target) -> Problem {
    let (exit, hint) = match error {
        LoadError::Unreachable { has_responded: true, .. } => (Exit::Subject, None),
        LoadError::Unreachable { .. } if target.address().starts_with("unix:") => {
            (Exit::Subject, Some("is the server running, and is this the path of its socket?"))
        }
        LoadError::Unreachable { .. } => (Exit::Subject, Some("is the server running, and listening on this address?")),
        LoadError::InputEnded(_) => (Exit::Usage, Some("use a shorter warm-up: `--warmup 0s` measures everything")),
        LoadError::Spec(_) | LoadError::Resolve { .. } | LoadError::Tls(_) | LoadError::Trace(_) => (Exit::Usage, None),
        LoadError::Kernel { source, .. } if source.raw_os_error() == Some(EMFILE) => {
            (Exit::Machine, Some("raise the open-file limit: `ulimit -n`"))
        }
        LoadError::Kernel { source, .. } if source.kind() == std::io::ErrorKind::Unsupported => {
            (Exit::Machine, Some("`--backend auto` falls back to epoll"))
        }
        LoadError::Kernel { .. } | LoadError::Panicked(_) | LoadError::NotStarted => (Exit::Machine, None),
        LoadError::Interrupted => (Exit::Interrupted, None),
    };
    Problem::text(exit, error).hint_if(hint)
}

const EMFILE: i32 = 24;

fn warmup_of(rule: Option<WarmupRule>, is_cache: bool, count: Option<u64>, mistakes: &mut Mistakes) -> Warmup {
    let time = |time: Duration| Warmup::DurationNs(lab::lab_clocks::nanos(time));
    match (rule, count) {
        (None, _) if !is_cache => time(WARMUP),
        (Some(WarmupRule::Time(given)), _) => time(given),
        (Some(WarmupRule::Share(share)), Some(count)) => Warmup::Requests((count as f64 * share).round() as u64),
        (Some(WarmupRule::Share(_)), None) => {
            mistakes.add(usage("`--warmup`: a percentage needs `-n`").hint("add `-n`, or give a time"));
            time(WARMUP)
        }
        (None | Some(WarmupRule::Steady), _) => Warmup::Steady { max_ns: STEADY_MAX_NS },
    }
}

/// Window length in ns: the default, or its smallest multiple that needs at most [`WINDOWS_MAX`] windows.
fn window_ns(longest_ns: u64) -> u64 {
    longest_ns.div_ceil(WINDOWS_MAX).next_multiple_of(WINDOW_NS).max(WINDOW_NS)
}

/// Writes logged requests as CSV, or as JSON lines if `path` ends in `.jsonl`. Times are in ns since measuring began.
fn write_log(path: &Path, measurement: &Measurement, target: &Target) -> Result<()> {
    let is_json = path.extension().is_some_and(|extension| extension == "jsonl");
    let head = if is_json { "" } else { "intended_ns,sent_ns,first_byte_ns,ended_ns,status,bytes,request,error\n" };
    let mut text = head.to_owned();
    for entry in &measurement.log {
        let name = target.request_name(entry.request);
        if is_json {
            let mut line = serde_json::to_value(entry).map_err(machine)?;
            line["request"] = name.into();
            text.push_str(&format!("{line}\n"));
        } else {
            let first = entry.first_byte_ns.map_or_else(String::new, |ns| ns.to_string());
            let (name, error) = (name.replace('"', "\"\""), &entry.error);
            text.push_str(&format!(
                "{},{},{first},{},{},{},\"{name}\",{error}\n",
                entry.intended_ns, entry.sent_ns, entry.ended_ns, entry.status, entry.bytes
            ));
        }
    }
    write_lines(path, &text, measurement.log_left_out, "requests", "; use --log-share")
}

/// Writes each call's timing as CSV. Times are in ns since measuring began; `right` means that the reply was correct.
fn write_calls(path: &Path, measurement: &Measurement, target: &Target) -> Result<()> {
    let mut text = String::from("number,client,journey,operation,intended_ns,sent_ns,latency_ns,right\n");
    let mut calls = measurement.log.iter().collect::<Vec<_>>();
    calls.sort_by_key(|call| call.sent_ns);
    for (number, call) in calls.into_iter().enumerate() {
        let LoggedSession { client, journey } = call.session.unwrap_or_default();
        let operation = target.request_name(call.request).replace('"', "\"\"");
        let (intended, sent, latency) = (call.intended_ns, call.sent_ns, call.ended_ns - call.sent_ns);
        let is_right = call.error.is_empty();
        text.push_str(&format!("{number},{client},{journey},\"{operation}\",{intended},{sent},{latency},{is_right}\n"));
    }
    write_lines(path, &text, measurement.log_left_out, "calls", "")
}

fn write_lines(path: &Path, text: &str, left_out: u64, what: &str, hint: &str) -> Result<()> {
    output::file(path, text)?;
    if left_out > 0 {
        output::message(&format!("{left_out} {what} are not in `{}`, which is full{hint}", path.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_windows_is_limited() {
        let ns = |s: u64| s * 1_000_000_000;
        for (longest_s, window_s) in [(0, 0.1), (5, 0.1), (3600, 0.1), (3601, 0.2), (86_400, 2.4)] {
            assert_eq!(window_ns(ns(longest_s)) as f64 / 1e9, window_s, "{longest_s} s");
            assert!(ns(longest_s) / window_ns(ns(longest_s)) <= WINDOWS_MAX);
        }
        assert!(u64::MAX / window_ns(u64::MAX) <= WINDOWS_MAX);
    }

    #[test]
    fn warm_ups() {
        let of = |given, is_cache, requests| {
            let mut mistakes = Mistakes::default();
            let rule = warmup_of(given, is_cache, requests, &mut mistakes);
            mistakes.end().ok().map(|()| rule)
        };
        let steady = Warmup::Steady { max_ns: STEADY_MAX_NS };
        for (given, is_cache, requests, rule) in [
            (None, false, None, Some(Warmup::DurationNs(study::load_limits_and_defaults::WARMUP_NS))),
            (None, true, Some(7), Some(steady)),
            (Some(WarmupRule::Share(0.5)), true, Some(1_000_000), Some(Warmup::Requests(500_000))),
            (Some(WarmupRule::Share(0.5)), false, Some(10), Some(Warmup::Requests(5))),
            (Some(WarmupRule::Share(0.5)), true, None, None),
            (Some(WarmupRule::Steady), false, None, Some(steady)),
        ] {
            assert_eq!(of(given, is_cache, requests), rule, "{given:?} {is_cache} {requests:?}");
        }
    }
}
