//! Live view of a load: its status line, rate and latencies over time, and CPU use of server and generator.

use std::collections::VecDeque;

use analysis::number::{count, quantity};
use console::{Color, Style};
use indicatif::ProgressBar;
use study::generator_messages::{LATENCY_BOUNDS_NS, Phase, Progress};
use study::record::Sample;
use study::spec::Stop;

use crate::output;

/// Maximum number of reports kept. Each is one column, so this is enough for a wide terminal.
const COLUMNS_MAX: usize = 200;
const HEAT_ROWS: usize = 5;
const LABEL: usize = 10;
const HEIGHTS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const DENSITIES: [&str; 5] = ["·", "░", "▒", "▓", "█"];

/// Numbers of responses by latency class. [`LATENCY_BOUNDS_NS`] has the bounds between classes.
type Counts = [u64; LATENCY_BOUNDS_NS.len() + 1];

#[derive(Clone, Debug, Default)]
pub(crate) struct Strip {
    columns: VecDeque<(f64, Counts)>,
    before: Counts,
    /// Number of CPUs in use in the last interval: by the generator, and by the server if known.
    cpus: Option<(f64, Option<f64>)>,
    used_before: Option<(Progress, Option<Sample>)>,
}

impl Strip {
    /// Adds a report. Clears the view first if the load is new or the phase is not measuring.
    pub(crate) fn add(&mut self, progress: &Progress, server: Option<Sample>) {
        let now = progress.latencies.counts;
        let is_other = now.iter().zip(&self.before).any(|(now, before)| now < before);
        if progress.phase != Phase::Measure || is_other {
            *self = Self::default();
        }
        if progress.phase != Phase::Measure {
            return;
        }
        self.see_cpus(progress, server);
        let counts = std::array::from_fn(|class| now[class] - self.before[class]);
        if now != self.before {
            self.columns.push_back((progress.rate_per_s, counts));
            self.before = now;
        }
        if self.columns.len() > COLUMNS_MAX {
            self.columns.pop_front();
        }
    }

    fn see_cpus(&mut self, progress: &Progress, server: Option<Sample>) {
        let share = |used_ns: u64, ns: u64| (ns > 0).then(|| used_ns as f64 / ns as f64);
        let Some((before, server_before)) = self.used_before.replace((progress.clone(), server)) else { return };
        let of_generator =
            share(progress.cpu_ns.saturating_sub(before.cpu_ns), progress.elapsed_ns.saturating_sub(before.elapsed_ns));
        let of_server = server.zip(server_before).and_then(|(now, before)| {
            share(now.cpu_ns.saturating_sub(before.cpu_ns), now.at_ns.saturating_sub(before.at_ns))
        });
        // The generator reports more often than the server's CPU time is read, so the last known value is kept.
        let of_server = of_server.or(self.cpus.and_then(|(_, before)| before));
        self.cpus = of_generator.map(|generator| (generator, of_server)).or(self.cpus);
    }

    /// Groups the observed latency classes into ranges, one per row, longest latencies first.
    fn rows(&self) -> Vec<(usize, usize)> {
        let seen = |class: &usize| self.columns.iter().any(|(_, counts)| counts[*class] > 0);
        let mut classes = 0..=LATENCY_BOUNDS_NS.len();
        let Some(first) = classes.find(seen) else { return Vec::new() };
        let last = classes.rfind(seen).unwrap_or(first);
        let step = (last + 1 - first).div_ceil(HEAT_ROWS);
        let mut rows = (first..=last).step_by(step).map(|from| (from, (from + step - 1).min(last))).collect::<Vec<_>>();
        rows.reverse();
        rows
    }

    /// Fits lines of text and the view below them to the terminal, of which other output takes `rows_used` rows.
    pub(crate) fn below(&self, texts: impl IntoIterator<Item = String>, rows_used: usize) -> String {
        let (columns, rows) = output::room_on_stderr();
        let mut lines = texts.into_iter().map(|text| clipped(&text, columns)).collect::<Vec<_>>();
        lines.extend(self.lines(columns, output::is_coloured(&std::io::stderr())));
        lines.truncate(rows.saturating_sub(rows_used));
        lines.join("\n")
    }

    /// Renders at most `columns` columns; empty before the first report. `coloured` makes denser cells redder.
    fn lines(&self, columns: usize, coloured: bool) -> Vec<String> {
        let width = columns.saturating_sub(LABEL + 2);
        if self.columns.is_empty() || width == 0 {
            return Vec::new();
        }
        let shown = self.columns.iter().skip(self.columns.len().saturating_sub(width)).collect::<Vec<_>>();
        let paint = |text: &str, style: Style| style.force_styling(coloured).apply_to(text).to_string();
        let row = |label: String, cells: String| {
            format!("{} {cells}", paint(&format!("{label:>LABEL$}"), Style::new().dim()))
        };
        let highest = shown.iter().map(|(rate, _)| *rate).fold(f64::MIN_POSITIVE, f64::max);
        let rates = shown.iter().map(|(rate, _)| HEIGHTS[step(rate / highest, HEIGHTS.len())]).collect::<String>();
        let mut lines = vec![row(quantity(highest, "1/s"), paint(&rates, Style::new().cyan()))];
        for (from, to) in self.rows() {
            let label = match LATENCY_BOUNDS_NS.get(to) {
                Some(bound) => format!("≤ {}", bound_words(*bound)),
                None => format!("> {}", bound_words(LATENCY_BOUNDS_NS[to - 1])),
            };
            let cell = |(_, counts): &&(f64, Counts)| {
                let (count, all) = (counts[from..=to].iter().sum::<u64>(), counts.iter().sum::<u64>());
                if count == 0 {
                    return " ".to_owned();
                }
                // The square root keeps rare latencies visible beside frequent ones.
                let at = step((count as f64 / all as f64).sqrt(), DENSITIES.len());
                let colours = [Color::Blue, Color::Cyan, Color::Green, Color::Yellow, Color::Red];
                paint(DENSITIES[at], Style::new().fg(colours[at]))
            };
            lines.push(row(label, shown.iter().map(cell).collect()));
        }
        if let Some((generator, server)) = self.cpus {
            let words = |share: f64| format!("{:.0} %", share * 100.0);
            let server = server.map(|share| format!("server {}, ", words(share))).unwrap_or_default();
            lines.push(row("CPU".to_owned(), clipped(&format!("{server}generator {}", words(generator)), width)));
        }
        lines
    }
}

/// Truncates a line to `columns`, because a line that the terminal wraps cannot be redrawn in place.
fn clipped(text: &str, columns: usize) -> String {
    console::truncate_str(&analysis::visible(text), columns, "…").into_owned()
}

fn step(fraction: f64, steps: usize) -> usize {
    ((fraction * steps as f64).ceil() as usize).clamp(1, steps) - 1
}

/// Formats a bound between latency classes, such as `200 µs`. Every bound has one significant digit.
fn bound_words(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

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
        self.bar.set_message(self.strip.below([text.to_owned()], 0));
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
    use study::generator_messages::Latencies;

    use super::*;

    fn progress(nth: u64) -> Progress {
        let mut latencies = Latencies::default();
        (latencies.counts[4], latencies.counts[5], latencies.counts[9]) = (900 * nth, 100 * nth, nth / 3);
        Progress {
            phase: Phase::Measure,
            elapsed_ns: nth * 200_000_000,
            cpu_ns: nth * 100_000_000,
            rate_per_s: 1e5 + 2e4 * (nth % 5) as f64,
            latencies: Box::new(latencies),
            ..Progress::default()
        }
    }

    fn strip(columns: u64) -> Strip {
        let mut strip = Strip::default();
        let server = |nth| Some(Sample { at_ns: nth * 200_000_000, cpu_ns: nth * 190_000_000, ..Sample::default() });
        (1..=columns).for_each(|nth| strip.add(&progress(nth), server(nth)));
        strip
    }

    #[test]
    fn a_load_on_terminals_of_several_widths() {
        let shown = [80, 30, 13].map(|width| format!("{width} columns\n{}", strip(59).lines(width, false).join("\n")));
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 0..60 {
            let lines = strip(100).lines(width, true);
            assert!(lines.iter().all(|line| console::measure_text_width(line) <= width), "{width}: {lines:?}");
        }
        assert!(strip(0).lines(80, false).is_empty());
    }

    #[test]
    fn another_load_starts_over() {
        let mut strip = strip(4);
        strip.add(&progress(4), None);
        assert_eq!(strip.columns.len(), 4, "no window has ended since");
        strip.add(&progress(1), None);
        assert_eq!(strip.columns.len(), 1);
        strip.add(&Progress { phase: Phase::Warmup, ..progress(2) }, None);
        assert!(strip.lines(80, false).is_empty());
        (1..1_000).for_each(|nth| strip.add(&progress(nth), None));
        assert_eq!(strip.columns.len(), COLUMNS_MAX);
    }

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
