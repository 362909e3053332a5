//! `quintain load`: one load on a server that runs already; also the generator's process of the lab (`--spec`).

use std::io::Read;
use std::time::Duration;

use load::{LoadError, Phase, Progress};
use study::Measurement;
use study::spec::{Arrivals, LoadSpec, SPEC_VERSION, Stop, Target, Warmup};

use crate::cli::{Gaps, LoadArgs};
use crate::message::{Done, Exit, Problem};
use crate::{output, signals};

/// The open loop polls for so long before each intended send, ns.
const SPIN_NS: u64 = 100_000;
/// `--until` gives up after so many times `--duration`.
const UNTIL_DURATIONS: u64 = 10;
/// Volley's own constants: iterations of a round, half-width, patience.
const VOLLEY: Stop = Stop::Volley { round_requests: 1_000_000, half_width_ns: 5_000, max_ns: 180_000_000_000 };

pub(crate) fn load(args: LoadArgs) -> Done {
    if let Some(path) = &args.spec {
        return generator(path);
    }
    let url = args.url.as_deref().unwrap_or_default();
    let spec = spec_of(&args, url)?;
    let interrupted = signals::interrupted()?;
    let show = output::stderr_is_terminal() && !args.quiet;
    let mut line = Live { shown: false };
    let mut progress = |progress: Progress| {
        if show {
            line.show(&progress);
        }
    };
    let result = load::run(&spec, &mut progress, &interrupted);
    line.clear();
    let measurement = result.map_err(|error| problem(&error))?;
    if args.json {
        output::data(&report::load_json(&measurement, url).map_err(|error| Problem::new(Exit::Machine, error))?)?;
    } else {
        output::data(&report::load_terminal(&measurement, url, &crate::report::style(false)))?;
    }
    Ok(if signals::is_set(&interrupted) {
        Exit::Interrupted
    } else if measurement.requests == 0 {
        Exit::Subject
    } else {
        Exit::Fine
    })
}

fn spec_of(args: &LoadArgs, url: &str) -> Result<LoadSpec, Problem> {
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let duration_ns = nanos(args.duration);
    let stop = if args.volley {
        VOLLEY
    } else if let Some(relative) = args.until {
        Stop::Interval { relative, level: 0.95, max_ns: duration_ns.saturating_mul(UNTIL_DURATIONS) }
    } else if let Some(requests) = args.requests {
        Stop::Requests { requests, max_ns: 600_000_000_000 }
    } else {
        Stop::Duration { duration_ns }
    };
    let arrivals = match (args.rate, args.arrivals) {
        (None, _) => Arrivals::Closed { think_ns: nanos(args.think) },
        (Some(rate_per_s), Gaps::Poisson) => Arrivals::Poisson { rate_per_s },
        (Some(rate_per_s), Gaps::Constant) => Arrivals::Constant { rate_per_s },
    };
    Ok(LoadSpec {
        version: SPEC_VERSION,
        target: target(url)?,
        clients: args.clients,
        pipeline: 1,
        connection: study::spec::Connection::KeepAlive,
        threads: args.threads,
        cpus: args.cpus.as_ref().map(|cpus| cpus.0.clone()).unwrap_or_default(),
        backend: args.backend.into(),
        arrivals,
        warmup: Warmup::DurationNs(nanos(args.warmup)),
        stop,
        window_ns: 100_000_000,
        timeout_ns: nanos(args.timeout),
        spin_ns: SPIN_NS,
        seed: args.seed,
    })
}

/// Whom a URL names.
fn target(url: &str) -> Result<Target, Problem> {
    let wrong = |text: String| Problem::text(Exit::Usage, text).hint("a URL looks like `pingpong://127.0.0.1:7000`");
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong(format!("`{url}` is no URL")))?;
    if scheme != "pingpong" {
        return Err(wrong(format!("unknown protocol `{scheme}` in `{url}`; this build speaks `pingpong`")));
    }
    let address = rest.strip_suffix('/').unwrap_or(rest);
    let port = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match port {
        Some((host, 1..)) if !host.is_empty() && !address.contains('/') => {
            Ok(Target::Pingpong { address: address.to_owned() })
        }
        _ => Err(wrong(format!("`{url}` does not end in a host and a port from 1 to 65535"))),
    }
}

fn problem(error: &LoadError) -> Problem {
    let exit = match error {
        LoadError::Spec(_) | LoadError::Resolve { .. } | LoadError::Tls(_) => Exit::Usage,
        LoadError::Unreachable { .. } => Exit::Subject,
        LoadError::Kernel { .. } | LoadError::Panicked(_) => Exit::Machine,
        LoadError::Interrupted => Exit::Interrupted,
    };
    let problem = Problem::text(exit, error);
    match error {
        LoadError::Unreachable { .. } => problem.hint("is the server running, and listening on this address?"),
        LoadError::Kernel { source, .. } if source.raw_os_error() == Some(EMFILE) => {
            problem.hint("raise the limit of open files: `ulimit -n`")
        }
        LoadError::Kernel { what, .. } if what.contains("io_uring") => {
            problem.hint("`--backend auto` falls back to epoll")
        }
        _ => problem,
    }
}

/// Too many open files.
const EMFILE: i32 = 24;

/// The line that is rewritten while a load runs.
struct Live {
    shown: bool,
}

impl Live {
    fn show(&mut self, progress: &Progress) {
        let text = match progress.phase {
            Phase::Connect => "connecting".to_owned(),
            Phase::Warmup => "warming up".to_owned(),
            Phase::Measure => format!(
                "{:.1} s   {} requests   {}   mean {}   {} errors",
                progress.elapsed_ns as f64 / 1e9,
                progress.requests,
                report::quantity(progress.rate_per_s, "1/s"),
                report::quantity(progress.latency_mean_ns, "ns"),
                progress.errors
            ),
        };
        output::rewrite(&text);
        self.shown = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            output::rewrite("");
        }
    }
}

/// What the lab's generator process prints, one object a line.
#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Progress {
        phase: &'a str,
        requests: u64,
        rate_per_s: f64,
        latency_mean_ns: f64,
        errors: u64,
    },
    Measuring(bool),
    Measurement(&'a Measurement),
    /// The generator's fault.
    Error(String),
    /// The subject's: not one connection could be opened.
    Unreachable(String),
}

/// The generator of the lab: a specification in, lines of JSON out.
fn generator(path: &str) -> Done {
    let mut text = String::new();
    let read = match path {
        "-" => std::io::stdin().lock().read_to_string(&mut text).map(drop),
        path => std::fs::read_to_string(path).map(|read| text = read),
    };
    read.map_err(|error| {
        Problem::new(Exit::Usage, anyhow::Error::new(error).context(format!("cannot read `{path}`")))
    })?;
    let spec = match serde_json::from_str::<LoadSpec>(&text) {
        Ok(spec) => spec,
        Err(error) => {
            output::json_line(&Line::Error(format!("the specification cannot be read: {error}")))?;
            return Ok(Exit::Usage);
        }
    };
    let interrupted = signals::interrupted()?;
    let mut measuring = false;
    let mut progress = |progress: Progress| {
        // A lab that went away needs no progress; this process dies with it.
        if progress.phase == Phase::Measure && !std::mem::replace(&mut measuring, true) {
            let _ = output::json_line(&Line::Measuring(true));
        }
        let phase = match progress.phase {
            Phase::Connect => "connect",
            Phase::Warmup => "warmup",
            Phase::Measure => "measure",
        };
        let _ = output::json_line(&Line::Progress {
            phase,
            requests: progress.requests,
            rate_per_s: progress.rate_per_s,
            latency_mean_ns: progress.latency_mean_ns,
            errors: progress.errors,
        });
    };
    match load::run(&spec, &mut progress, &interrupted) {
        Ok(measurement) => {
            output::json_line(&Line::Measurement(&measurement))?;
            Ok(Exit::Fine)
        }
        Err(error @ LoadError::Unreachable { .. }) => {
            output::json_line(&Line::Unreachable(error.to_string()))?;
            Ok(Exit::Subject)
        }
        Err(error) => {
            output::json_line(&Line::Error(error.to_string()))?;
            Ok(Exit::Machine)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let address = |url| target(url).ok().map(|target| target.address().to_owned());
        assert_eq!(address("pingpong://127.0.0.1:7000").as_deref(), Some("127.0.0.1:7000"));
        assert_eq!(address("pingpong://[::1]:7000/").as_deref(), Some("[::1]:7000"));
        assert_eq!(address("pingpong://localhost:7000").as_deref(), Some("localhost:7000"));
        for wrong in [
            "",
            "127.0.0.1:7000",
            "http://a:1",
            "pingpong://a",
            "pingpong://:1",
            "pingpong://a:0",
            "pingpong://a:99999",
            "pingpong://a:1/b",
        ] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }
}
