//! Findings as Markdown, for a pull request or a lab book.

use std::fmt::Write as _;

use study::record::FindingState;

use crate::terminal::{cell, cpus_cell, has_fewer_cpus};
use crate::{
    sections::{added, effects, miss_ratio},
    table, terminal,
};
use analysis::findings::{Findings, Row};
use analysis::words::{idle_word, limit_word};
use analysis::{number, over_requests, row, silence};

/// The question, the answer, the table, warnings, machine, method, how to do it again.
pub fn markdown(findings: &Findings) -> String {
    let mut out = format!("# {}\n\n", plain(&findings.question));
    if findings.quick {
        out += "**Quick look**: few short trials; the intervals do not claim their level.\n\n";
    }
    if let Some(unfinished) = &findings.unfinished {
        let _ = writeln!(out, "**Unfinished**: {}; this is what there is.\n", plain(&unfinished.sentence));
        if !unfinished.resume.is_empty() {
            let _ = writeln!(out, "Go on with:\n\n    {}\n", unfinished.resume.replace(['\n', '\r'], " "));
        }
    }
    for sentence in &findings.answer {
        let _ = writeln!(out, "- {}", plain(&sentence.text));
    }
    out.push('\n');
    out += &table(findings);
    let level = number::percent(findings.level);
    let bounds = terminal::marks_legend(findings).into_iter().filter(|words| *words != terminal::ABOUT_OTHERS);
    let bounds = bounds.map(|words| format!("; {}", plain(words))).collect::<String>();
    let _ = writeln!(
        out,
        "\nMean over trials ± half of its {level} interval; n: trials with fresh subjects; \\*: not about the subject{bounds}.{}",
        plain(&row::throughout(&findings.factors))
    );
    if let Some(scope) = &findings.scope {
        let _ = writeln!(out, "\n{}.", plain(&scope.sentence));
    }
    if let Some(unanswered) = silence::over_all(findings) {
        let _ = writeln!(out, "\n{}", plain(&unanswered));
    }
    for sheet in table::sheets(findings).into_iter().chain(table::steps(findings)) {
        out += &laid_out(&sheet);
    }
    if !findings.load.is_empty() {
        let _ = writeln!(out, "\nLoad: {}.", plain(&findings.load));
    }
    section(&mut out, "What a middle adds", analysis::added::words(findings));
    for sheet in added::sheets(findings) {
        out += &laid_out(&sheet);
    }
    section(&mut out, "Over requests", over_requests::words(findings));
    section(&mut out, "Miss ratio", analysis::miss_ratio::words(findings));
    for sheet in miss_ratio::sheets(findings) {
        out += &laid_out(&sheet);
    }
    section(&mut out, "Scalability", findings.scalability.iter().map(|found| found.sentence.clone()));
    section(&mut out, "Effects", findings.effects.iter().flat_map(|effects| effects.sentences.iter().cloned()));
    for sheet in effects::sheets(findings) {
        out += &laid_out(&sheet);
    }
    section(&mut out, "Trials", findings.all_rows().filter(|row| row.n > 0).map(|row| trials(findings, row)));
    section(&mut out, "What went wrong", findings.all_rows().flat_map(wrong));
    section(&mut out, "Warnings", findings.warnings.iter().map(|warning| warning.text.clone()));
    section(&mut out, "Machine", machine(findings).into_iter());
    let doctor = findings.doctor.iter().map(|found| {
        let state = match found.state {
            FindingState::Good => "good",
            FindingState::Warning => "warning",
            FindingState::Bad => "bad",
            FindingState::NotChecked => "not checked",
        };
        let hint = found.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
        format!("{}: {state}: {}{hint}", found.check, found.text)
    });
    section(&mut out, "Doctor", doctor);
    section(&mut out, "Method", findings.method.iter().cloned());
    let _ = write!(out, "\n## Again\n\n    {}\n\n", findings.command.join(" ").replace(['\n', '\r'], " "));
    let revision =
        findings.revision.as_ref().map_or(String::new(), |revision| format!(", revision {}", plain(revision)));
    let _ = writeln!(
        out,
        "Run {}, started {}, seed {}, quintain {}{revision}.",
        plain(&findings.run),
        plain(&findings.started),
        findings.seed,
        plain(&findings.quintain)
    );
    out
}

fn section(out: &mut String, heading: &str, lines: impl Iterator<Item = String>) {
    let lines = lines.map(|line| format!("- {}\n", plain(&line))).collect::<String>();
    if !lines.is_empty() {
        let _ = write!(out, "\n## {heading}\n\n{lines}");
    }
}

/// A table that the study asks for.
fn laid_out(sheet: &table::Sheet) -> String {
    let heads = sheet.heads.iter().map(|(head, _)| plain(head)).collect::<Vec<_>>().join(" | ");
    let rules = sheet.heads.iter().map(|(_, right)| if *right { "---:" } else { "---" }).collect::<Vec<_>>().join("|");
    let mut out = format!("\n## {}\n\n| {heads} |\n|{rules}|\n", plain(&sheet.title));
    for row in &sheet.rows {
        let _ = writeln!(out, "| {} |", row.iter().map(|cell| plain(cell)).collect::<Vec<_>>().join(" | "));
    }
    out
}

/// Trials of a row that failed, requests that went wrong, answers by status where some are not of the usual kind.
fn wrong(row: &Row) -> Vec<String> {
    let mut lines = Vec::new();
    for failure in &row.failures {
        let trials = number::count(failure.count as u64, "trial");
        lines.push(format!("{}: {trials}: {}", row.label, failure.message));
    }
    lines.extend(
        [errors(row), statuses(row), silence::of_row(row)]
            .into_iter()
            .flatten()
            .map(|text| format!("{}: {text}", row.label)),
    );
    lines
}

/// Requests of a row that went wrong, by kind, each with its first example.
pub(crate) fn errors(row: &Row) -> Option<String> {
    let kinds = row.errors.iter().filter(|(_, count)| **count > 0).map(|(kind, count)| {
        let example = row.error_examples.get(kind);
        let example = example.map_or(String::new(), |example| format!(" (the first: {example})"));
        format!("{count} {kind}{example}")
    });
    let kinds = kinds.collect::<Vec<_>>();
    (!kinds.is_empty()).then(|| format!("{}; beside {} valid answers", kinds.join("; "), row.requests))
}

/// Answers of a row by HTTP status, where some went wrong or are none of 200 to 299.
pub(crate) fn statuses(row: &Row) -> Option<String> {
    let unusual = row.statuses.keys().any(|status| !(200..300).contains(status));
    let told = unusual || (row.errors_total() > 0 && !row.statuses.is_empty());
    let all = row.statuses.iter().map(|(status, count)| format!("{count} of status {status}"));
    told.then(|| format!("answers: {}", all.collect::<Vec<_>>().join(", ")))
}

fn table(findings: &Findings) -> String {
    let metrics = terminal::columns_wanted(findings);
    let mut heads = findings.factors.iter().map(|factor| (plain(&factor.name), factor.numeric)).collect::<Vec<_>>();
    heads.push(("idle".to_owned(), false));
    let cpus = has_fewer_cpus(findings);
    if cpus {
        heads.push(("cpus".to_owned(), true));
    }
    heads.extend(metrics.iter().map(|(_, heading)| (plain(heading), true)));
    heads.extend([("errors", true), ("n", true), ("limited by", false)].map(|(head, right)| (head.to_owned(), right)));
    let mut out = format!("| {} |\n", heads.iter().map(|(head, _)| head.as_str()).collect::<Vec<_>>().join(" | "));
    out += &format!(
        "|{}|\n",
        heads.iter().map(|(_, right)| if *right { "---:" } else { "---" }).collect::<Vec<_>>().join("|")
    );
    for row in &findings.rows {
        let mut cells = findings
            .factors
            .iter()
            .map(|factor| row.factors.get(&factor.name).map_or(String::new(), ToString::to_string))
            .collect::<Vec<_>>();
        cells.push(row.idle.map_or("", idle_word).to_owned());
        if cpus {
            cells.push(cpus_cell(row));
        }
        cells.extend(metrics.iter().map(|(name, _)| cell(findings, row, name)));
        cells.push(if row.n == 0 { String::new() } else { row.errors_total().to_string() });
        cells.push(row.n.to_string());
        cells.push(verdict(row));
        let _ = writeln!(out, "| {} |", cells.iter().map(|cell| plain(cell)).collect::<Vec<_>>().join(" | "));
    }
    out
}

/// Why the trials ended, what varies, and what the next minute would be best spent on.
fn trials(findings: &Findings, row: &Row) -> String {
    let mut text = format!("{}: {}", row.label, row.stop_reason);
    let unit = findings.metric_info(&findings.metric).map_or("", |info| info.unit.as_str());
    let Some(found) = row.metrics.get(&findings.metric) else { return text };
    if let (Some(between), Some(within)) = (found.s_between, found.s_within) {
        let shown = |value| number::quantity(value, unit);
        text += &format!("; s_B (between trials) {}, s_W (of a window within) {}", shown(between), shown(within));
    }
    if let Some(best_s) = found.best_trial_s {
        text += &format!("; best length of a trial {}", number::quantity(best_s * 1e9, "ns"));
    }
    text
}

fn verdict(row: &Row) -> String {
    match (&row.limited_by, row.n) {
        (Some(found), _) => limit_word(found.limit).to_owned(),
        (None, 0) => format!("{}: {}", row.state.word(), row.state.reason().unwrap_or_default()),
        (None, _) => String::new(),
    }
}

fn machine(findings: &Findings) -> Vec<String> {
    let host = &findings.machine;
    let mut lines = vec![format!("{}, {}", host.name, host.kernel)];
    lines.push(format!("{}, {}", host.cpu_model, number::count(host.cpus.len() as u64, "processor")));
    lines.push(format!("memory {}", number::quantity(host.memory_bytes as f64, "bytes")));
    let known = [
        ("system", &host.system),
        ("hypervisor", &host.hypervisor),
        ("governor", &host.governor),
        ("clock source", &host.clocksource),
        ("idle driver", &host.idle),
    ];
    lines.extend(known.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?))));
    lines.extend(findings.probes.iter().map(|probed| format!("fixed piece of work: {}", probed.sentence)));
    let versions = host.versions.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>();
    if !versions.is_empty() {
        lines.push(format!("versions: {}", versions.join(", ")));
    }
    if !host.unknown.is_empty() {
        lines.push(format!("not known: {}", host.unknown.join("; ")));
    }
    lines
}

/// Text that Markdown shows as it is, on one line.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{analyze, example};
    use insta::assert_snapshot;

    #[test]
    fn the_example() {
        let (run, records) = example::volley();
        assert_snapshot!(markdown(&analyze(&run, &records)), @r"
        # How does ping-pong latency scale with server cores and clients?

        - Too few blocks to name a winner, 8 of the 12 needed; mean latency was: cores 1, clients 40: c-epoll 573 ±17 µs, go 777 ±25 µs, rust-tokio 719 ±55 µs; cores 1, clients 80: c-epoll 1.100 ±0.033 ms, go 1.505 ±0.045 ms, rust-tokio 1.364 ±0.040 ms; cores 2, clients 40: c-epoll 358 ±11 µs, go 487 ±14 µs, rust-tokio 439 ±13 µs.
        - Not ranked, because the numbers are not about the subject: c-epoll, cores 2, clients 80 (generator-bound).
        - Without numbers: go, cores 2, clients 80 (failed); rust-tokio, cores 2, clients 80 (unrunnable).

        | server | cores | clients | idle | throughput | mean latency | p50 | p99 | errors | n | limited by |
        |---|---:|---:|---|---:|---:|---:|---:|---:|---:|---|
        | c-epoll | 1 | 40 | machine | 69.8 ±1.8 k/s | 573 ±17 µs | 533 ±16 µs | 1.280 ±0.042 ms | 0 | 8 | subject |
        | c-epoll | 1 | 80 | machine | 72.6 ±1.9 k/s | 1.100 ±0.033 ms | 1.026 ±0.031 ms | 2.46 ±0.08 ms | 0 | 8 | subject |
        | c-epoll | 2 | 40 | machine | 111.7 ±3.0 k/s | 358 ±11 µs | 333 ±10 µs | 797 ±26 µs | 0 | 8 | subject |
        | c-epoll | 2 | 80 | machine | 114.7 ±1.0 k/s\* | 697 ±6 µs\* | 650 ±6 µs\* | 1.548 ±0.016 ms\* | 0 | 8 | generator |
        | go | 1 | 40 | machine | 51.5 ±1.5 k/s | 777 ±25 µs | 722 ±24 µs | 1.751 ±0.063 ms | 0 | 7 | subject |
        | go | 1 | 80 | machine | 53.2 ±1.4 k/s | 1.505 ±0.045 ms | 1.399 ±0.042 ms | 3.35 ±0.13 ms | 0 | 8 | subject |
        | go | 2 | 40 | machine | 82.1 ±2.2 k/s | 487 ±14 µs | 454 ±14 µs | 1.088 ±0.036 ms | 0 | 8 | subject |
        | go | 2 | 80 | machine |  |  |  |  |  | 0 | failed: all 8 trials failed: the subject ended while it was measured: signal 11 |
        | rust-tokio | 1 | 40 | machine | 55.9 ±3.6 k/s | 719 ±55 µs | 671 ±53 µs | 1.604 ±0.121 ms | 0 | 8 | subject |
        | rust-tokio | 1 | 80 | machine | 58.6 ±1.5 k/s | 1.364 ±0.040 ms | 1.271 ±0.038 ms | 3.05 ±0.10 ms | 0 | 8 | subject |
        | rust-tokio | 2 | 40 | machine | 91.2 ±2.4 k/s | 439 ±13 µs | 409 ±12 µs | 981 ±32 µs | 0 | 8 | subject |
        | rust-tokio | 2 | 80 |  |  |  |  |  |  | 0 | unrunnable: needs 4096 open files, may have 1024 |

        Mean over trials ± half of its 95 % interval; n: trials with fresh subjects; \*: not about the subject.

        Absolute values are of this run, 2026-11-20 21:05 to 21:07 UTC; 7 to 8 starts per row: kinds of starts rarer than 35 % may not have been seen.

        Load: pingpong, closed loop, 40 or 80 clients.

        ## Effects

        - Effects on mean latency: none computed, because 2 of 12 design points have no trial: the factors are not fully crossed.
        - Effects on throughput: none computed, because 2 of 12 design points have no trial: the factors are not fully crossed.

        ## Trials

        - c-epoll, cores 1, clients 40: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 13.06 µs, s\_W (of a window within) 12.48 µs; best length of a trial 59.0 ms
        - c-epoll, cores 1, clients 80: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 16.36 µs, s\_W (of a window within) 24.2 µs; best length of a trial 90.0 ms
        - c-epoll, cores 2, clients 40: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 3.34 µs, s\_W (of a window within) 6.15 µs; best length of a trial 114.8 ms
        - c-epoll, cores 2, clients 80: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 6.94 µs, s\_W (of a window within) 12.42 µs; best length of a trial 103.8 ms
        - go, cores 1, clients 40: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 14.73 µs, s\_W (of a window within) 18.75 µs; best length of a trial 81.2 ms
        - go, cores 1, clients 80: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 39.2 µs, s\_W (of a window within) 37.3 µs; best length of a trial 57.9 ms
        - go, cores 2, clients 40: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 8.95 µs, s\_W (of a window within) 9.31 µs; best length of a trial 59.1 ms
        - rust-tokio, cores 1, clients 40: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 65.8 µs, s\_W (of a window within) 17.79 µs; best length of a trial 16.24 ms
        - rust-tokio, cores 1, clients 80: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 10.05 µs, s\_W (of a window within) 32.1 µs; best length of a trial 173.8 ms
        - rust-tokio, cores 2, clients 40: ended early: ±3.1 % after 8 blocks; s\_B (between trials) 10.47 µs, s\_W (of a window within) 8.05 µs; best length of a trial 42.1 ms

        ## What went wrong

        - go, cores 1, clients 40: 1 trial: the subject did not listen within 5 s
        - go, cores 2, clients 80: 8 trials: the subject ended while it was measured: signal 11

        ## Warnings

        - another process had a processor in use before or after 1 of 88 trials, for up to 44 % of a probe: flagged, not removed
        - c-epoll, cores 2, clients 80: generator-bound: it was busy while the subject had processors to spare
        - go, cores 1, clients 40: 1 of 8 trials failed: the subject did not listen within 5 s
        - go, cores 2, clients 80: failed: all 8 trials failed: the subject ended while it was measured: signal 11
        - rust-tokio, cores 1, clients 40: the trial in block 5 is an outlier in throughput, latency\_mean, latency\_p99: flagged, not removed
        - rust-tokio, cores 2, clients 80: unrunnable: needs 4096 open files, may have 1024

        ## Machine

        - example, Linux 6.12.0
        - Example CPU @ 2.50GHz, 4 processors
        - memory 8.00 GiB
        - system Debian GNU/Linux 13
        - hypervisor KVM
        - clock source tsc
        - idle driver haltpoll/menu
        - fixed piece of work: median CPU time 8.24 ms, before and after 88 trials
        - versions: cc 14.2.0, go 1.24.4
        - not known: governor: this machine has none

        ## Doctor

        - clock: good: the clock source is tsc
        - virtualisation: warning: this is a virtual machine (KVM) (others may take its time)
        - governor: not checked: the kernel shows no frequency governor

        ## Method

        - Load: pingpong, closed loop, 40 or 80 clients.
        - Each trial starts the subject as a fresh process; the trial, not the request, is what is repeated. Trials ran in blocks: each block has every design point once, in an order shuffled from the seed 1, so that a drift of the machine hits all points alike.
        - An estimate is the mean over the trials with Student's t interval, no narrower than what all design points together say of how trials scatter at level 95 %. Whole blocks were added until each latency\_mean was known to ±3.0 %, at least 8 and at most 30. Outliers are flagged and never removed.
        - Two points are compared on the blocks that both have, by exact signed rank tests adjusted for all that is compared (Holm): what the machine does in a block it does to both. The ratio shown is that of typical starts (Hodges \& Lehmann). Below 12 common blocks nothing is claimed.
        - Every absolute interval is of the states in which this machine was in this run, 2026-11-20 21:05 to 21:07 UTC: another day it may be faster or slower, and nothing in a run tells of states that it did not meet. A test over all trials in the order they ran tells whether neighbours are alike; that it gives no alarm proves nothing. Ratios are of trials of the same blocks. A short fixed piece of work on the processors in use, before and after each trial, flags trials beside which another process had a processor; no value is adjusted by it.
        - Closed loop: a client sends when it has its answer, and latency is service time, from the write to the answer. Quantiles come from the histogram of a whole trial (three significant digits) and are then averaged over trials like any other value; within a trial they are never averaged. A quantile is given only where every trial has enough answers.
        - Each trial has a verdict on what limited it, from the CPU time of generator and subject, the generator's own send lag and the offered load. A row is marked where the generator was the limit, or shared the subject's processors, in half of the trials: its numbers are not about the subject, and it takes no part in a ranking.
        - Idle processors did what this machine lets them do (idle policy \`machine\`).

        ## Again

            quintain run volley --seed 1

        Run volley-20261120-210500, started 2026-11-20T21:05:00Z, seed 1, quintain 0.1.0, revision 0123abc.
        ");
    }

    #[test]
    fn tables_of_the_study_and_what_went_wrong() {
        let (run, records) = example::threads();
        let text = markdown(&analyze(&run, &records));
        let of =
            |heading: &str| text.split(heading).nth(1).unwrap_or_default().split("\n## ").next().unwrap().to_owned();
        assert_snapshot!(of("## Valid answers a second"), @r"


        | threads | cpus | n | sample mean, k/s | sample standard deviation, k/s | 95 % interval, k/s | limited by |
        |---:|---:|---:|---:|---:|---:|---|
        | 1 | 1 | 8 | 19.71 | 0.13 | 19.48 to 19.94 | subject |
        | 2 | 2 | 8 | 37.31 | 0.56 | 36.84 to 37.78 | subject |
        | 4 | 4 | 8 | 66.42 | 1.24 | 65.38 to 67.46 | subject |
        | 8 | 8 | 8 | 104.56 | 1.72 | 103.12 to 105.99 | subject |
        | 16 | 16 | 8 | 127.38 | 1.53 | 125.88 to 128.88 | subject |
        | 24 | 24 | 8 | 125.39 | 1.21 | 123.91 to 126.87 | subject |
        | 32 | 24 of 32 | 8 | 114.25 | 1.87 | 112.69 to 115.82 | subject |
        | 40 | 24 of 40 | 8 | 102.91\* | 1.63 | 101.55 to 104.28 | generator |

        Load: http, GET /, closed loop, 80 clients.
        ");
        assert_snapshot!(of("## What went wrong"), @r"
        - threads 4: 12 status (the first: 503 to GET /); 1 truncated; beside 132842 valid answers
        - threads 4: answers: 132842 of status 200, 12 of status 503
        ");
    }

    #[test]
    fn hostile_words_stay_words() {
        let (mut run, records) = example::volley();
        run.plan.question = "a | b\n# <script>*".to_owned();
        let text = markdown(&analyze(&run, &records));
        assert!(text.starts_with("# a \\| b \\# \\<script\\>\\*\n"), "{text}");
    }
}
