//! Findings for a person at a terminal: plain text that fits the width.

use std::fmt::Write as _;

use study::record::FindingState;

use crate::sections::added;
use crate::table;
use analysis::findings::{Findings, Row};
use analysis::words::{idle_word, limit_word};
use analysis::{number, over_requests, row, silence};

/// How a text is to look; the caller knows whether it goes to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour.
    pub colour: bool,
    /// Columns to fit in; 0: no limit.
    pub width: usize,
}

impl Style {
    /// For files and pipes: no colour, no limit.
    pub const PLAIN: Style = Style { colour: false, width: 0 };
}

/// Colours, where they are wanted.
pub(crate) struct Paint<'a>(pub(crate) &'a Style);

impl Paint<'_> {
    fn wrapped(&self, code: &str, text: &str) -> String {
        if self.0.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.wrapped("1", text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.wrapped("2", text)
    }

    pub(crate) fn warn(&self, text: &str) -> String {
        self.wrapped("33", text)
    }

    pub(crate) fn bad(&self, text: &str) -> String {
        self.wrapped("31", text)
    }
}

/// Metrics with a column of their own.
const COLUMNS: [(&str, &str); 4] =
    [("throughput", "throughput"), ("latency_mean", "mean latency"), ("latency_p50", "p50"), ("latency_p99", "p99")];

/// The question, the answer, the table, what to beware of, the machine. Where the width is too small for all metrics, the table
/// says which it leaves out; it always has the factors, one metric and the verdict.
pub fn terminal(findings: &Findings, style: &Style) -> String {
    let paint = Paint(style);
    let mut out = String::new();
    let _ = writeln!(out, "{}", wrap(&paint.bold(&findings.question), style.width, 0));
    if findings.quick {
        let banner = "QUICK LOOK: few short trials; the intervals do not claim their level.";
        let _ = writeln!(out, "{}", wrap(&paint.warn(banner), style.width, 0));
    }
    if let Some(unfinished) = &findings.unfinished {
        // The word at its beginning catches the eye, also without colour.
        let (first, rest) = unfinished.sentence.split_at(unfinished.state.word().len());
        let banner = format!("{}{rest}: this is what there is.", first.to_uppercase());
        let _ = writeln!(out, "{}", wrap(&paint.warn(&banner), style.width, 2));
        if !unfinished.resume.is_empty() {
            // Whole, however narrow the terminal is: it is for pasting.
            let _ = writeln!(out, "Go on with: {}", unfinished.resume);
        }
    }
    for sentence in &findings.answer {
        out += &wrap(&format!("{sentence}\n"), style.width, 2);
    }
    out.push('\n');
    out += &table(findings, style);
    for sheet in table::sheets(findings) {
        let _ = writeln!(out, "\n{}", wrap(&paint.bold(&sheet.title), style.width, 0));
        out += &laid_out(&sheet, style);
    }
    for sheet in added::sheets(findings) {
        let _ = writeln!(out, "\n{}", wrap(&paint.bold(&sheet.title), style.width, 0));
        out += &laid_out(&sheet, style);
    }
    if !findings.over_requests.is_empty() {
        let _ = writeln!(out, "\n{}", paint.bold("Over requests"));
        for sentence in over_requests::words(findings) {
            out += &wrap(&format!("  {sentence}\n"), style.width, 4);
        }
    }
    if !findings.miss_ratios.is_empty() {
        let _ = writeln!(out, "\n{}", paint.bold("Miss ratio"));
        for sentence in analysis::miss_ratio::words(findings) {
            out += &wrap(&format!("  {sentence}\n"), style.width, 4);
        }
    }
    // A study that never was a factorial on this machine is not told so each time; the page is where that stands.
    let analysed = findings.effects.iter().filter(|effects| !effects.analyses.is_empty()).collect::<Vec<_>>();
    if !analysed.is_empty() {
        let _ = writeln!(out, "\n{}", paint.bold("Effects"));
        for sentence in analysed.iter().flat_map(|effects| &effects.sentences) {
            out += &wrap(&format!("  {sentence}\n"), style.width, 4);
        }
    }
    out.push('\n');
    out += &wrap(&format!("{}\n", paint.dim(&legend(findings))), style.width, 2);
    if let Some(unanswered) = silence::over_all(findings) {
        out += &wrap(&format!("{}\n", paint.dim(&unanswered)), style.width, 2);
    }
    out += &wrap(&format!("{}\n", paint.dim(&stopped(findings))), style.width, 2);
    let bad = findings.doctor.iter().filter(|found| matches!(found.state, FindingState::Bad | FindingState::Warning));
    let doctor = bad.map(|found| format!("doctor: {}: {}", found.check, found.text)).collect::<Vec<_>>();
    if !findings.warnings.is_empty() || !doctor.is_empty() {
        let _ = writeln!(out, "\n{}", paint.bold("Warnings"));
        for warning in findings.warnings.iter().map(|warning| &warning.text).chain(&doctor) {
            out += &wrap(&format!("  {}\n", paint.warn(warning)), style.width, 4);
        }
    }
    let machine = &findings.machine;
    let cpus = number::count(machine.cpus.len() as u64, "processor");
    let place = format!("run {} on {} ({}, {cpus}, {})", findings.run, machine.name, machine.cpu_model, machine.kernel);
    out.push('\n');
    if !findings.load.is_empty() {
        out += &wrap(&format!("{}\n", paint.dim(&format!("load {}", findings.load))), style.width, 2);
    }
    out += &wrap(&format!("{}\n", paint.dim(&place)), style.width, 2);
    out
}

fn legend(findings: &Findings) -> String {
    let level = number::percent(findings.level);
    let mut legend = format!("Mean over trials ± half of its {level} interval; n: trials with fresh subjects");
    for words in marks_legend(findings) {
        legend += &format!("; {words}");
    }
    let scope = findings.scope.as_ref().map_or(String::new(), |scope| format!(" {}.", scope.sentence));
    legend + "." + &row::throughout(&findings.factors) + &scope
}

/// What the usual mark means.
pub(crate) const ABOUT_OTHERS: &str = "* not about the subject";

/// What marks in the tables mean, of those that occur.
pub(crate) fn marks_legend(findings: &Findings) -> Vec<&'static str> {
    let rows = || findings.rows.iter();
    let others = rows().any(Row::is_about_others).then_some(ABOUT_OTHERS);
    let hung = rows().any(|row| row.hung() > 0).then_some("* the subject hung");
    let bound = rows().any(|row| row.metrics.values().any(|found| found.at_least));
    let bound = bound.then_some("≥ at least, as requests still waited at the end");
    [others, hung, bound].into_iter().flatten().collect()
}

/// Why there were no further trials: a study ends at all points together, but for those that were searches or were given up.
fn stopped(findings: &Findings) -> String {
    let mut reasons = Vec::<(&str, Vec<&Row>)>::new();
    for row in findings.rows.iter().filter(|row| row.n > 0) {
        match reasons.iter_mut().find(|(known, _)| *known == row.stop_reason) {
            Some((_, rows)) => rows.push(row),
            None => reasons.push((&row.stop_reason, vec![row])),
        }
    }
    let alone = reasons.len() == 1;
    let text = |(reason, rows): &(&str, Vec<&Row>)| match rows.as_slice() {
        [row] if !alone => row::about(row, reason),
        _ => (*reason).to_owned(),
    };
    match reasons.as_slice() {
        [] => "No trials.".to_owned(),
        reasons => format!("Trials: {}.", reasons.iter().map(text).collect::<Vec<_>>().join("; ")),
    }
}

/// A cell of the table, and whether it is aligned to the right.
struct Column {
    heading: String,
    cells: Vec<String>,
    right: bool,
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().chain([&self.heading]).map(|cell| columns(cell)).max().unwrap_or(0)
    }
}

fn table(findings: &Findings, style: &Style) -> String {
    let mut columns_ = Vec::new();
    for factor in &findings.factors {
        let cells =
            findings.rows.iter().map(|row| row.factors.get(&factor.name).map_or(String::new(), ToString::to_string));
        columns_.push(Column { heading: factor.name.clone(), cells: cells.collect(), right: factor.numeric });
    }
    if findings.rows.windows(2).any(|two| two[0].point == two[1].point) {
        let idle = |row: &Row| row.idle.map_or("", idle_word).to_owned();
        columns_.push(Column {
            heading: "idle".to_owned(),
            cells: findings.rows.iter().map(idle).collect(),
            right: false,
        });
    }
    if has_fewer_cpus(findings) {
        let cells = findings.rows.iter().map(cpus_cell).collect();
        columns_.push(Column { heading: "cpus".to_owned(), cells, right: true });
    }
    let fixed = columns_.len();
    for (name, heading) in columns_wanted(findings) {
        let cells = findings.rows.iter().map(|row| cell(findings, row, name)).collect();
        columns_.push(Column { heading: heading.to_owned(), cells, right: true });
    }
    let errors = |row: &Row| if row.n == 0 { String::new() } else { row.errors_total().to_string() };
    columns_.push(Column {
        heading: "errors".to_owned(),
        cells: findings.rows.iter().map(errors).collect(),
        right: true,
    });
    let n = |row: &Row| row.n.to_string();
    columns_.push(Column { heading: "n".to_owned(), cells: findings.rows.iter().map(n).collect(), right: true });
    columns_.push(Column {
        heading: "limited by".to_owned(),
        cells: findings.rows.iter().map(limited_by).collect(),
        right: false,
    });
    let width = |columns_: &[Column]| columns_.iter().map(|column| column.width() + 2).sum::<usize>();
    // Too wide: metrics go, the last first, but not the first of them.
    let mut dropped = Vec::new();
    while style.width > 0 && width(&columns_) > style.width && columns_.len() > fixed + 4 {
        dropped.push(columns_.remove(columns_.len() - 4).heading);
    }
    let mut out = line(columns_.iter().map(|column| (column.heading.as_str(), column)), &Paint(style), true);
    for (index, row) in findings.rows.iter().enumerate() {
        out += &line(columns_.iter().map(|column| (column.cells[index].as_str(), column)), &Paint(style), false);
        if row.n == 0 {
            let reason = row.state.reason().unwrap_or_default();
            out += &wrap(&format!("    {}: {reason}\n", row.state.word()), style.width, 6);
        }
    }
    if !dropped.is_empty() {
        dropped.reverse();
        out += &wrap(&format!("No room for: {}.\n", dropped.join(", ")), style.width, 2);
    }
    out
}

/// A table that the study asks for. Where it is too wide, its last columns of numbers go, and it says which.
fn laid_out(sheet: &table::Sheet, style: &Style) -> String {
    let column = |(index, (heading, right)): (usize, &(String, bool))| Column {
        heading: heading.clone(),
        cells: sheet.rows.iter().map(|row| row[index].clone()).collect(),
        right: *right,
    };
    let mut columns_ = sheet.heads.iter().enumerate().map(column).collect::<Vec<_>>();
    let width = |columns_: &[Column]| columns_.iter().map(|column| column.width() + 2).sum::<usize>();
    let mut dropped = Vec::new();
    // The verdict stays, and so does whatever tells the rows apart, with one number.
    while style.width > 0 && width(&columns_) > style.width && columns_.len() > 4 {
        dropped.push(columns_.remove(columns_.len() - 2).heading);
    }
    let mut out = line(columns_.iter().map(|column| (column.heading.as_str(), column)), &Paint(style), true);
    for index in 0..sheet.rows.len() {
        out += &line(columns_.iter().map(|column| (column.cells[index].as_str(), column)), &Paint(style), false);
    }
    if !dropped.is_empty() {
        dropped.reverse();
        out += &wrap(&format!("No room for: {}.\n", dropped.join("; ")), style.width, 2);
    }
    out
}

/// Whether some subject has fewer processors than the study would give it.
pub(crate) fn has_fewer_cpus(findings: &Findings) -> bool {
    findings.rows.iter().any(|row| row.cpus_wanted.is_some())
}

/// The processors of a subject: `4`, or `1 of 4` where it would have used more.
pub(crate) fn cpus_cell(row: &Row) -> String {
    match row.cpus_wanted {
        Some(wanted) => format!("{} of {wanted}", row.cpus),
        None => row.cpus.to_string(),
    }
}

pub(crate) fn columns_wanted(findings: &Findings) -> Vec<(&str, &str)> {
    let mut wanted = COLUMNS.to_vec();
    // What the stop rule looks at is always shown, right after throughput.
    if !COLUMNS.iter().any(|(name, _)| *name == findings.metric) && findings.metric_info(&findings.metric).is_some() {
        wanted.insert(1, (&findings.metric, &findings.metric));
    }
    wanted.retain(|(name, _)| findings.metric_info(name).is_some());
    wanted
}

fn line<'a>(cells: impl Iterator<Item = (&'a str, &'a Column)>, paint: &Paint<'_>, heading: bool) -> String {
    let mut text = String::new();
    for (cell, column) in cells {
        let pad = " ".repeat(column.width() - columns(cell));
        let shown = if heading { paint.bold(cell) } else { cell.to_owned() };
        match column.right {
            true => text += &format!("{pad}{shown}  "),
            false => text += &format!("{shown}{pad}  "),
        }
    }
    format!("{}\n", text.trim_end())
}

/// An estimate, a mean that has none, or why there is neither.
pub(crate) fn cell(findings: &Findings, row: &Row, metric: &str) -> String {
    let unit = findings.metric_info(metric).map_or("", |info| info.unit.as_str());
    let mark = if row.is_marked() { "*" } else { "" };
    match row.metrics.get(metric) {
        Some(found) => match (&found.estimate, found.mean) {
            (Some(estimate), _) => format!("{}{mark}", number::estimate(estimate, unit)),
            (None, Some(mean)) if found.at_least => format!("{}{mark}", number::at_least(mean, unit)),
            (None, Some(mean)) => format!("{} ±?{mark}", number::quantity(mean, unit)),
            (None, None) => "too few samples".to_owned(),
        },
        None => String::new(),
    }
}

pub(crate) fn limited_by(row: &Row) -> String {
    let Some(found) = &row.limited_by else { return String::new() };
    let (most, all) = (found.counts.get(&found.limit).copied().unwrap_or(0), found.counts.values().sum::<usize>());
    match most == all {
        true => limit_word(found.limit).to_owned(),
        false => format!("{} ({most}/{all})", limit_word(found.limit)),
    }
}

/// Columns that a text takes, without the codes of colours.
fn columns(text: &str) -> usize {
    let mut shown = 0;
    let mut code = false;
    for c in text.chars() {
        match c {
            '\x1b' => code = true,
            'm' if code => code = false,
            _ if code => {}
            _ => shown += 1,
        }
    }
    shown
}

/// Breaks each line at spaces so that it fits; what follows a break is indented. A word that is too long stays whole.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> String {
    if width == 0 {
        return text.to_owned();
    }
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            let bare = columns(word.trim_end());
            if used + bare > width && used > indent {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                used = indent;
            }
            out.push_str(word);
            used += columns(word.trim_end_matches('\n'));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{analyze, example};
    use insta::assert_snapshot;

    fn example_text(width: usize) -> String {
        let (run, records) = example::volley();
        terminal(&analyze(&run, &records), &Style { colour: false, width })
    }

    #[test]
    fn a_wide_terminal() {
        assert_snapshot!(example_text(120), @"
        How does ping-pong latency scale with server cores and clients?
        Too few blocks to name a winner, 8 of the 12 needed; mean latency was: cores 1, clients 40: c-epoll 573 ±17 µs, go 777
          ±25 µs, rust-tokio 719 ±55 µs; cores 1, clients 80: c-epoll 1.100 ±0.033 ms, go 1.505 ±0.045 ms, rust-tokio 1.364
          ±0.040 ms; cores 2, clients 40: c-epoll 358 ±11 µs, go 487 ±14 µs, rust-tokio 439 ±13 µs.
        Not ranked, because the numbers are not about the subject: c-epoll, cores 2, clients 80 (generator-bound).
        Without numbers: go, cores 2, clients 80 (failed); rust-tokio, cores 2, clients 80 (unrunnable).

        server      cores  clients       throughput     mean latency              p50               p99  errors  n  limited by
        c-epoll         1       40    69.8 ±1.8 k/s       573 ±17 µs       533 ±16 µs   1.280 ±0.042 ms       0  8  subject
        c-epoll         1       80    72.6 ±1.9 k/s  1.100 ±0.033 ms  1.026 ±0.031 ms     2.46 ±0.08 ms       0  8  subject
        c-epoll         2       40   111.7 ±3.0 k/s       358 ±11 µs       333 ±10 µs        797 ±26 µs       0  8  subject
        c-epoll         2       80  114.7 ±1.0 k/s*       697 ±6 µs*       650 ±6 µs*  1.548 ±0.016 ms*       0  8  generator
        go              1       40    51.5 ±1.5 k/s       777 ±25 µs       722 ±24 µs   1.751 ±0.063 ms       0  7  subject
        go              1       80    53.2 ±1.4 k/s  1.505 ±0.045 ms  1.399 ±0.042 ms     3.35 ±0.13 ms       0  8  subject
        go              2       40    82.1 ±2.2 k/s       487 ±14 µs       454 ±14 µs   1.088 ±0.036 ms       0  8  subject
        go              2       80                                                                               0
            failed: all 8 trials failed: the subject ended while it was measured: signal 11
        rust-tokio      1       40    55.9 ±3.6 k/s       719 ±55 µs       671 ±53 µs   1.604 ±0.121 ms       0  8  subject
        rust-tokio      1       80    58.6 ±1.5 k/s  1.364 ±0.040 ms  1.271 ±0.038 ms     3.05 ±0.10 ms       0  8  subject
        rust-tokio      2       40    91.2 ±2.4 k/s       439 ±13 µs       409 ±12 µs        981 ±32 µs       0  8  subject
        rust-tokio      2       80                                                                               0
            unrunnable: needs 4096 open files, may have 1024

        Mean over trials ± half of its 95 % interval; n: trials with fresh subjects; * not about the subject. Absolute values
          are of this run, 2026-11-20 21:05 to 21:07 UTC; 7 to 8 starts per row: kinds of starts rarer than 35 % may not have
          been seen.
        Trials: ended early: ±3.1 % after 8 blocks.

        Warnings
          another process had a processor in use before or after 1 of 88 trials, for up to 44 % of a probe: flagged, not removed
          c-epoll, cores 2, clients 80: generator-bound: it was busy while the subject had processors to spare
          go, cores 1, clients 40: 1 of 8 trials failed: the subject did not listen within 5 s
          go, cores 2, clients 80: failed: all 8 trials failed: the subject ended while it was measured: signal 11
          rust-tokio, cores 1, clients 40: the trial in block 5 is an outlier in throughput, latency_mean, latency_p99: flagged,
            not removed
          rust-tokio, cores 2, clients 80: unrunnable: needs 4096 open files, may have 1024
          doctor: virtualisation: this is a virtual machine (KVM)

        load pingpong, closed loop, 40 or 80 clients
        run volley-20261120-210500 on example (Example CPU @ 2.50GHz, 4 processors, Linux 6.12.0)
        ");
    }

    #[test]
    fn a_narrow_terminal() {
        assert_snapshot!(example_text(72), @"
        How does ping-pong latency scale with server cores and clients?
        Too few blocks to name a winner, 8 of the 12 needed; mean latency was:
          cores 1, clients 40: c-epoll 573 ±17 µs, go 777 ±25 µs, rust-tokio 719
          ±55 µs; cores 1, clients 80: c-epoll 1.100 ±0.033 ms, go 1.505 ±0.045
          ms, rust-tokio 1.364 ±0.040 ms; cores 2, clients 40: c-epoll 358 ±11
          µs, go 487 ±14 µs, rust-tokio 439 ±13 µs.
        Not ranked, because the numbers are not about the subject: c-epoll,
          cores 2, clients 80 (generator-bound).
        Without numbers: go, cores 2, clients 80 (failed); rust-tokio, cores 2,
          clients 80 (unrunnable).

        server      cores  clients       throughput  errors  n  limited by
        c-epoll         1       40    69.8 ±1.8 k/s       0  8  subject
        c-epoll         1       80    72.6 ±1.9 k/s       0  8  subject
        c-epoll         2       40   111.7 ±3.0 k/s       0  8  subject
        c-epoll         2       80  114.7 ±1.0 k/s*       0  8  generator
        go              1       40    51.5 ±1.5 k/s       0  7  subject
        go              1       80    53.2 ±1.4 k/s       0  8  subject
        go              2       40    82.1 ±2.2 k/s       0  8  subject
        go              2       80                           0
            failed: all 8 trials failed: the subject ended while it was
              measured: signal 11
        rust-tokio      1       40    55.9 ±3.6 k/s       0  8  subject
        rust-tokio      1       80    58.6 ±1.5 k/s       0  8  subject
        rust-tokio      2       40    91.2 ±2.4 k/s       0  8  subject
        rust-tokio      2       80                           0
            unrunnable: needs 4096 open files, may have 1024
        No room for: mean latency, p50, p99.

        Mean over trials ± half of its 95 % interval; n: trials with fresh
          subjects; * not about the subject. Absolute values are of this run,
          2026-11-20 21:05 to 21:07 UTC; 7 to 8 starts per row: kinds of starts
          rarer than 35 % may not have been seen.
        Trials: ended early: ±3.1 % after 8 blocks.

        Warnings
          another process had a processor in use before or after 1 of 88 trials,
            for up to 44 % of a probe: flagged, not removed
          c-epoll, cores 2, clients 80: generator-bound: it was busy while the
            subject had processors to spare
          go, cores 1, clients 40: 1 of 8 trials failed: the subject did not
            listen within 5 s
          go, cores 2, clients 80: failed: all 8 trials failed: the subject
            ended while it was measured: signal 11
          rust-tokio, cores 1, clients 40: the trial in block 5 is an outlier in
            throughput, latency_mean, latency_p99: flagged, not removed
          rust-tokio, cores 2, clients 80: unrunnable: needs 4096 open files,
            may have 1024
          doctor: virtualisation: this is a virtual machine (KVM)

        load pingpong, closed loop, 40 or 80 clients
        run volley-20261120-210500 on example (Example CPU @ 2.50GHz, 4
          processors, Linux 6.12.0)
        ");
    }

    #[test]
    fn a_study_of_threads_has_the_table_of_the_seed_and_says_what_this_machine_leaves() {
        let (run, records) = example::threads();
        let findings = analyze(&run, &records);
        assert_snapshot!(terminal(&findings, &Style { colour: false, width: 120 }), @"
        How does the throughput of an HTTP server scale with its threads?
        From threads 1 to 32 throughput went from 19.71 k/s to 114.3 k/s: too few blocks for a claim.
        Over threads: throughput falls beyond ~18 threads: coherency cost (σ 0.050 [0.046, 0.052], κ 0.0030 [0.0029, 0.0031], N*
          17.8 [17.4, 18.2]); left out: threads 40 (generator-bound); this machine leaves the subject 24 processors at threads
          32, 40: it cannot scale there.
        Not ranked, because the numbers are not about the subject: threads 40 (generator-bound).

        threads      cpus       throughput     mean latency              p50               p99  errors  n  limited by
              1         1  19.71 ±0.23 k/s    4.05 ±0.05 ms    3.76 ±0.05 ms     9.08 ±0.16 ms       0  8  subject
              2         2    37.3 ±0.5 k/s    2.14 ±0.03 ms  1.992 ±0.026 ms     4.72 ±0.08 ms       0  8  subject
              4         4    66.4 ±1.0 k/s  1.204 ±0.019 ms  1.120 ±0.016 ms     2.71 ±0.06 ms      13  8  subject
              8         8   104.6 ±1.4 k/s       765 ±10 µs        713 ±9 µs   1.706 ±0.028 ms       0  8  subject
             16        16   127.4 ±1.5 k/s        628 ±7 µs        584 ±7 µs   1.407 ±0.023 ms       0  8  subject
             24        24   125.4 ±1.5 k/s        638 ±8 µs        594 ±7 µs   1.428 ±0.023 ms       0  8  subject
             32  24 of 32   114.3 ±1.6 k/s        700 ±9 µs        652 ±9 µs   1.572 ±0.033 ms       0  8  subject
             40  24 of 40  102.9 ±1.4 k/s*      777 ±10 µs*      724 ±10 µs*  1.736 ±0.028 ms*       0  8  generator

        Valid answers a second
        threads      cpus  n  sample mean, k/s  sample standard deviation, k/s  95 % interval, k/s  limited by
              1         1  8             19.71                            0.13      19.48 to 19.94  subject
              2         2  8             37.31                            0.56      36.84 to 37.78  subject
              4         4  8             66.42                            1.24      65.38 to 67.46  subject
              8         8  8            104.56                            1.72    103.12 to 105.99  subject
             16        16  8            127.38                            1.53    125.88 to 128.88  subject
             24        24  8            125.39                            1.21    123.91 to 126.87  subject
             32  24 of 32  8            114.25                            1.87    112.69 to 115.82  subject
             40  24 of 40  8           102.91*                            1.63    101.55 to 104.28  generator

        Mean over trials ± half of its 95 % interval; n: trials with fresh subjects; * not about the subject. Absolute values
          are of this run, 2026-11-20 21:05 to 21:08 UTC; 8 starts per row: kinds of starts rarer than 31 % may not have been
          seen.
        Trials: ended early: ±1.2 % after 8 blocks.

        Warnings
          this machine leaves the subject 24 processors, fewer than 2 design points would use (up to 40)
          threads 4: 13 of 16533 requests went wrong: 12 status, 1 truncated (1 of 8 trials)
          threads 40: generator-bound: it was busy while the subject had processors to spare
          doctor: virtualisation: this is a virtual machine (KVM)

        load http, GET /, closed loop, 80 clients
        run http-threads-20261121-090000 on example (Example CPU @ 2.50GHz, 42 processors, Linux 6.12.0)
        ");
        for width in [60, 80, 100] {
            for line in terminal(&findings, &Style { colour: false, width }).lines() {
                assert!(columns(line) <= width.max(68), "{width}: {line}");
            }
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [68, 80, 100, 140] {
            for line in example_text(width).lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let (run, records) = example::volley();
        let findings = analyze(&run, &records);
        let coloured = terminal(&findings, &Style { colour: true, width: 100 });
        assert!(coloured.contains("\x1b[1m"));
        let mut bare = String::new();
        let mut code = false;
        for c in coloured.chars() {
            match c {
                '\x1b' => code = true,
                'm' if code => code = false,
                _ if code => {}
                c => bare.push(c),
            }
        }
        assert_eq!(bare, terminal(&findings, &Style { colour: false, width: 100 }));
    }

    #[test]
    fn a_quick_look_says_so_and_one_trial_has_no_interval() {
        let (mut run, mut records) = example::volley();
        run.plan.trials.quick = true;
        run.plan.points.truncate(2);
        records.retain(|record| record.point < 2 && record.block == 0);
        assert_snapshot!(terminal(&analyze(&run, &records), &Style::PLAIN), @"
        How does ping-pong latency scale with server cores and clients?
        QUICK LOOK: few short trials; the intervals do not claim their level.
        From clients 40 to 80 mean latency went from 554 µs to 1.103 ms: a quick look.

        server   cores  clients   throughput  mean latency          p50          p99  errors  n  limited by
        c-epoll      1       40  72.2 k/s ±?     554 µs ±?    515 µs ±?  1.259 ms ±?       0  1  subject
        c-epoll      1       80  72.4 k/s ±?   1.103 ms ±?  1.030 ms ±?   2.45 ms ±?       0  1  subject

        Mean over trials ± half of its 95 % interval; n: trials with fresh subjects. Throughout, server is c-epoll, cores is 1. Absolute values are of this run, 2026-11-20 21:05 UTC; 1 start per row: kinds of starts rarer than 95 % may not have been seen.
        Trials: ended after 1 block.

        Warnings
          doctor: virtualisation: this is a virtual machine (KVM)

        load pingpong, closed loop, 40 or 80 clients
        run volley-20261120-210500 on example (Example CPU @ 2.50GHz, 4 processors, Linux 6.12.0)
        ");
    }

    #[test]
    fn lines_break_at_spaces() {
        for (text, width, expected) in [
            ("one two three", 8, "one two\n  three"),
            ("one two three", 0, "one two three"),
            ("\x1b[1mone\x1b[0m two", 7, "\x1b[1mone\x1b[0m two"),
            ("extraordinary word", 5, "extraordinary\n  word"),
        ] {
            assert_eq!(wrap(text, width, 2), expected);
        }
    }
}
