//! Live display of a running load, and the errors of a load without a measurement.

use analysis::number::{count, quantity};
use indicatif::ProgressBar;
use load::{LoadError, Phase, Progress};
use study::spec::{Stop, Target};

use crate::command_result::{Exit, Problem};
use crate::live_chart::{Strip, clipped};
use crate::output;

pub(crate) fn problem(error: &LoadError, target: &Target) -> Problem {
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

#[derive(Debug)]
pub(crate) struct Live {
    bar: ProgressBar,
    strip: Strip,
}

impl Live {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { bar: output::bar("{msg}", None, wanted), strip: Strip::default() }
    }

    pub(crate) fn show(&mut self, text: &str, progress: Option<&Progress>) {
        if self.bar.is_hidden() {
            return;
        }
        if let Some(progress) = progress {
            self.strip.add(progress, None);
        }
        let (columns, rows) = output::room_on_stderr();
        let mut lines = vec![clipped(text, columns)];
        lines.extend(self.strip.lines(columns, output::stderr_is_coloured()));
        lines.truncate(rows);
        self.bar.set_message(lines.join("\n"));
        self.bar.tick();
    }

    pub(crate) fn clear(&mut self) {
        self.strip = Strip::default();
        self.bar.set_message("");
        self.bar.finish_and_clear();
        self.bar.reset();
    }
}

/// Status line of a load. The most important values come first, because narrow terminals cut off the rest.
pub(crate) fn live(progress: &Progress, stop: &Stop) -> String {
    match progress.phase {
        Phase::Connect => "connecting".to_owned(),
        Phase::Warmup => "warming up".to_owned(),
        Phase::Measure => {
            let mean = progress.latency_mean_ns.map_or_else(|| "none yet".to_owned(), |mean| quantity(mean, "ns"));
            let (rate, errors) = (quantity(progress.rate_per_s, "1/s"), count(progress.errors, "error"));
            let elapsed_s = progress.elapsed_ns as f64 / 1e9;
            format!("{elapsed_s:.1} s   {rate}   mean {mean}   {errors}   {}", left(progress, stop))
        }
    }
}

fn left(progress: &Progress, stop: &Stop) -> String {
    let rest_s = stop.longest_ns().saturating_sub(progress.elapsed_ns) as f64 / 1e9;
    match *stop {
        Stop::Duration { .. } => format!("{} left", output::time_words(rest_s.ceil())),
        Stop::Requests { requests, .. } => {
            let missing = requests.saturating_sub(progress.requests);
            let share = progress.requests as f64 / requests as f64 * 100.0;
            let time_s = (missing as f64 / progress.rate_per_s).min(rest_s);
            format!("{share:.0} % of {requests}, {} left", output::time_words(time_s.ceil()))
        }
        Stop::Interval { .. } | Stop::Volley { .. } => format!("at most {}", output::time_words(rest_s.ceil())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_line_shows_the_remaining_work() {
        let progress = Progress {
            phase: Phase::Measure,
            elapsed_ns: 1_500_000_000,
            requests: 150_000,
            errors: 1,
            rate_per_s: 100_000.0,
            latency_mean_ns: Some(412_000.0),
            ..Progress::default()
        };
        let begin = "1.5 s   100.0 k/s   mean 412 µs   1 error   ";
        for (stop, end) in [
            (Stop::Duration { duration_ns: 5_000_000_000 }, "4 s left"),
            (Stop::Requests { requests: 1_000_000, max_ns: 600_000_000_000 }, "15 % of 1000000, 9 s left"),
            (Stop::Interval { relative: 0.01, level: 0.95, max_ns: 50_000_000_000 }, "at most 49 s"),
            (Stop::Volley { round_requests: 1, half_width_ns: 1, max_ns: 180_000_000_000 }, "at most 3 min"),
        ] {
            assert_eq!(live(&progress, &stop), format!("{begin}{end}"));
        }
        let stuck = Progress { requests: 0, rate_per_s: 0.0, latency_mean_ns: None, errors: 0, ..progress.clone() };
        let stop = Stop::Requests { requests: 10, max_ns: 60_000_000_000 };
        assert_eq!(live(&stuck, &stop), "1.5 s   0 /s   mean none yet   0 errors   0 % of 10, 59 s left");
        assert_eq!(live(&Progress { phase: Phase::Warmup, ..progress }, &stop), "warming up");
    }
}
