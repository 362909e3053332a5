//! What stands in the sections of the page: findings in words and tables.

use study::record::{BuildOutcome, FailureKind, FindingState, IdlePolicy};

use super::table::{Cell, Head, table};
use crate::terminal::{cpus_cell, has_fewer_cpus};
use crate::{markdown, sections::effects as of_factors, table as wanted, terminal};
use analysis::findings::{Estimate, Factor, Findings, MetricFinding, Row, RowState, UslFit};
use analysis::number;
use analysis::words::{idle_word, limit_word};
use analysis::{row, silence};

/// Metrics of the first table; the others are one click away.
const FIRST: [&str; 4] = ["throughput", "latency_mean", "latency_p50", "latency_p99"];

/// The facts below the answer.
pub(super) fn head(f: &Findings) -> Vec<(String, String)> {
    let trials: usize = f.all_rows().map(|row| row.n).sum();
    let failed: usize = f.all_rows().flat_map(|row| &row.failures).map(|failure| failure.count).sum();
    let measured = f.rows.iter().filter(|row| row.n > 0).count();
    let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
    let machine =
        [Some(&f.machine.cpu_model), f.machine.hypervisor.as_ref()].into_iter().flatten().filter(|s| !s.is_empty());
    let machine = machine.cloned().collect::<Vec<_>>().join(", ");
    vec![
        fact(
            "Measured",
            format!(
                "{measured} of {}, {}{failed}, profile {}",
                number::count(f.rows.len() as u64, "design point"),
                number::count(trials as u64, "trial"),
                f.profile
            ),
        ),
        fact(
            "Intervals",
            if f.quick {
                "of a quick look: no level is claimed".to_owned()
            } else {
                format!(
                    "{} %, Student t over trials, each with a subject started fresh",
                    crate::figure::percent(f.level)
                )
            },
        ),
        fact("Load", if f.load.is_empty() { "none".to_owned() } else { f.load.clone() }),
        fact("Idle processors", idle(f)),
        fact(
            "Machine",
            format!("{}: {machine}, {}", f.machine.name, number::count(f.machine.cpus.len() as u64, "processor")),
        ),
    ]
}

/// A value in its unit; a dash for what is no number.
fn shown(value: f64, unit: &str) -> String {
    if value.is_finite() { number::quantity(value, unit) } else { "–".to_owned() }
}

fn shown_estimate(estimate: &Estimate, unit: &str) -> String {
    let finite =
        [estimate.point, estimate.low, estimate.high, estimate.half_width()].iter().all(|value| value.is_finite());
    if finite { number::estimate(estimate, unit) } else { "–".to_owned() }
}

fn fact(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

/// Which policies were in force.
fn idle(f: &Findings) -> String {
    let has = |policy| f.all_rows().any(|row| row.idle == Some(policy));
    match (has(IdlePolicy::Machine), has(IdlePolicy::Spin)) {
        (true, true) => "both policies occur, as series of their own: the machine's own, and kept awake by a spinner",
        (true, false) => "the machine's own policy",
        (false, true) => "kept awake by a spinner (SCHED_IDLE)",
        (false, false) => "no trial ran",
    }
    .to_owned()
}

/// How to read the tables.
pub(super) fn results_caption(f: &Findings) -> String {
    let fixed = row::throughout(&f.factors);
    let half = if f.quick { "a quick look's half-width, without a level" } else { "half of the interval's width" };
    let legend = terminal::marks_legend(f).into_iter().filter(|words| !f.tables.is_empty() || !words.starts_with('*'));
    let legend = legend.map(|words| format!(" {}.", words.replacen("* ", "*: ", 1))).collect::<String>();
    let unanswered = silence::over_all(f).map_or(String::new(), |words| format!(" {words}"));
    let scope = f.scope.as_ref().map_or(String::new(), |scope| format!(" {}.", scope.sentence));
    format!("Mean over n trials ± {half}.{fixed}{legend}{scope}{unanswered}")
}

fn metric_head(f: &Findings, name: &str) -> Head {
    Head::new(name.replace('_', " ")).hint(f.metric_info(name).map_or("", |info| info.text.as_str()))
}

/// Columns that say which row it is.
fn varying(f: &Findings) -> Vec<&Factor> {
    let factors: Vec<&Factor> = f.factors.iter().filter(|factor| factor.levels.len() > 1).collect();
    if factors.is_empty() { f.factors.iter().take(1).collect() } else { factors }
}

fn both_policies(f: &Findings) -> bool {
    let mut policies = f.rows.iter().filter_map(|row| row.idle);
    let first = policies.next();
    policies.any(|policy| Some(policy) != first)
}

/// The heads of those columns.
fn row_heads(f: &Findings) -> Vec<Head> {
    let mut heads: Vec<Head> = varying(f).iter().map(|factor| Head::new(&*factor.name)).collect();
    if heads.is_empty() {
        heads.push(Head::new("design point"));
    }
    if both_policies(f) {
        heads.push(Head::new("idle").hint("what idle processors do"));
    }
    if has_fewer_cpus(f) {
        heads.push(Head::new("cpus").hint("processors of the subject, of those it would use"));
    }
    heads
}

/// Their cells.
fn row_cells(f: &Findings, row: &Row) -> Vec<Cell> {
    let cell = |factor: &&Factor| {
        let text = row.factors.get(&factor.name).map_or_else(|| "–".to_owned(), |level| level.to_string());
        if factor.numeric { Cell::number(text) } else { Cell::text(text) }
    };
    let mut cells: Vec<Cell> = varying(f).iter().map(cell).collect();
    if cells.is_empty() {
        cells.push(Cell::text(if row.label.is_empty() { "the only one" } else { &row.label }));
    }
    if both_policies(f) {
        cells.push(Cell::text(row.idle.map_or("–", idle_word)));
    }
    if has_fewer_cpus(f) {
        cells.push(Cell::number(cpus_cell(row)));
    }
    cells
}

/// A metric of a row: point and half-width, bounds when pointed at.
fn metric_cell(f: &Findings, row: &Row, name: &str, hints: bool) -> Cell {
    let unit = f.metric_info(name).map_or("1", |info| info.unit.as_str());
    let Some(metric) = row.metrics.get(name) else { return Cell::number("–") };
    let hint = |text: String| if hints { text } else { String::new() };
    match (&metric.estimate, metric.mean) {
        (Some(e), _) => Cell::number(shown_estimate(e, unit)).hint(hint(bounds(e, unit, metric))),
        (None, Some(mean)) if metric.at_least => {
            Cell::number(format!("≥ {}", shown(mean, unit))).hint(hint(metric.note.clone().unwrap_or_default()))
        }
        (None, Some(mean)) => {
            let note = metric.note.clone().unwrap_or_else(|| "no interval".to_owned());
            Cell::number(format!("{}, no interval", shown(mean, unit))).hint(hint(note))
        }
        (None, None) => Cell::number(metric.note.clone().unwrap_or_else(|| "–".to_owned())),
    }
}

fn bounds(e: &Estimate, unit: &str, metric: &MetricFinding) -> String {
    let note = metric.note.as_ref().map_or_else(String::new, |note| format!("; {note}"));
    format!("{} to {}{note}", shown(e.low, unit), shown(e.high, unit))
}

fn limit_cell(row: &Row) -> Cell {
    let mut cell = match &row.limited_by {
        None => Cell::text("–"),
        Some(found) => {
            let of = found.counts.values().sum::<usize>();
            let most = found.counts.get(&found.limit).copied().unwrap_or(0);
            let share = if most < of { format!(" ({most} of {of})") } else { String::new() };
            Cell::text(format!("{}{share}", limit_word(found.limit))).hint(found.reasons.join("; ")).class("v")
        }
    };
    for mark in &row.marks {
        cell = cell.tag(mark.text(), true);
    }
    cell
}

/// The first table: every design point, also those without a number.
pub(super) fn results(f: &Findings, hints: bool) -> String {
    let metrics = first_metrics(f);
    let mut heads = row_heads(f);
    heads.push(Head::new("n").hint("trials with a measurement"));
    heads.extend(metrics.iter().map(|name| metric_head(f, name)));
    heads.extend(["limited by", "stopped because"].map(Head::new));
    let rows: Vec<Vec<Cell>> = f
        .rows
        .iter()
        .map(|row| {
            let mut cells = row_cells(f, row);
            let failed: usize = row.failures.iter().map(|failure| failure.count).sum();
            let n = Cell::number(row.n.to_string());
            cells.push(if failed > 0 { n.tag(format!("{failed} failed"), true) } else { n });
            cells.extend(metrics.iter().map(|name| metric_cell(f, row, name, hints)));
            cells.push(limit_cell(row));
            let stop = match (&row.state, row.state.reason()) {
                (RowState::Measured, _) | (_, None) => Cell::sentence(row.stop_reason.clone()),
                (state, Some(reason)) => {
                    Cell::sentence(reason).tag(state.word(), matches!(state, RowState::Failed { .. }))
                }
            };
            cells.push(stop);
            cells
        })
        .collect();
    table(&heads, &rows)
}

/// The analyses of variance and the changes, each with its title.
pub(super) fn effects(f: &Findings) -> Vec<(String, String)> {
    sheets(of_factors::sheets(f))
}

/// Tables that stand ready, each with its title.
pub(super) fn sheets(sheets: Vec<wanted::Sheet>) -> Vec<(String, String)> {
    let sheet = |sheet: wanted::Sheet| {
        let heads: Vec<Head> = sheet.heads.iter().map(|(head, _)| Head::new(&**head)).collect();
        let cells = |row: Vec<String>| {
            let cell = |(text, (_, right)): (String, &(String, bool))| {
                if *right { Cell::number(text) } else { Cell::text(text) }
            };
            row.into_iter().zip(&sheet.heads).map(cell).collect::<Vec<Cell>>()
        };
        let html = table(&heads, &sheet.rows.into_iter().map(cells).collect::<Vec<_>>());
        (sheet.title, html)
    };
    sheets.into_iter().map(sheet).collect()
}

fn first_metrics(f: &Findings) -> Vec<&str> {
    let first = |name: &&str| FIRST.contains(name) || *name == f.metric;
    f.metrics.iter().map(|metric| metric.name.as_str()).filter(first).collect()
}

/// The rest of the metrics.
pub(super) fn other_metrics(f: &Findings) -> Option<String> {
    let first = first_metrics(f);
    let rest: Vec<&str> =
        f.metrics.iter().map(|metric| metric.name.as_str()).filter(|name| !first.contains(name)).collect();
    if rest.is_empty() {
        return None;
    }
    let mut heads = row_heads(f);
    heads.extend(rest.iter().map(|name| metric_head(f, name)));
    let cells = |row: &Row| {
        let mut cells = row_cells(f, row);
        cells.extend(rest.iter().map(|name| metric_cell(f, row, name, false)));
        cells
    };
    Some(table(&heads, &f.rows.iter().filter(|row| row.n > 0).map(cells).collect::<Vec<_>>()))
}

/// The two deviations of the metric that the stop rule looks at.
pub(super) fn variances(f: &Findings) -> String {
    let unit = f.metric_info(&f.metric).map_or("1", |info| info.unit.as_str());
    let mut heads = row_heads(f);
    heads.extend(["s_B", "s_B over mean", "s_W, of one second", "best length of a trial", "target met"].map(Head::new));
    let known = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| shown(value, unit));
    let cells = |row: &Row| {
        let metric = row.metrics.get(&f.metric)?;
        let mut cells = row_cells(f, row);
        let relative = metric.s_between.zip(metric.mean).filter(|(s, mean)| (s / mean * 100.0).is_finite());
        cells.push(Cell::number(known(metric.s_between)));
        cells.push(Cell::number(relative.map_or_else(|| "–".to_owned(), |(s, mean)| number::percent(s / mean.abs()))));
        cells.push(Cell::number(known(metric.s_within)));
        let best = metric.best_trial_s.map_or_else(|| "–".to_owned(), |s| shown(s * 1e9, "ns"));
        cells.push(Cell::number(best));
        cells.push(match metric.target_met {
            Some(true) => Cell::text("yes"),
            Some(false) => Cell::text("no").class("warning"),
            None => Cell::text("no target"),
        });
        Some(cells)
    };
    table(&heads, &f.rows.iter().filter(|row| row.n > 0).filter_map(cells).collect::<Vec<_>>())
}

fn failure_word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Start => "could not start",
        FailureKind::Unrunnable => "cannot run here",
        FailureKind::NotReady => "never ready",
        FailureKind::Exited => "ended while measured",
        FailureKind::Answers => "no right answer",
        FailureKind::Hung => "hung",
        FailureKind::Generator => "generator failed",
        FailureKind::Middle => "middle failed",
    }
}

/// Trials that failed and requests that went wrong.
pub(super) fn failures(f: &Findings) -> Option<String> {
    let mut rows = Vec::new();
    for row in f.all_rows() {
        for failure in &row.failures {
            let mut cells = row_cells(f, row);
            cells.push(Cell::text(format!(
                "{}: {}",
                number::count(failure.count as u64, "trial"),
                failure_word(failure.kind)
            )));
            cells.push(Cell::sentence(&*failure.message));
            rows.push(cells);
        }
        let told = [
            ("errors of requests", markdown::errors(row)),
            ("answers by status", markdown::statuses(row)),
            ("requests at the end", silence::of_row(row)),
        ];
        for (what, how) in told {
            let Some(how) = how else { continue };
            let mut cells = row_cells(f, row);
            cells.push(Cell::text(what));
            cells.push(Cell::sentence(how));
            rows.push(cells);
        }
    }
    let mut heads = row_heads(f);
    heads.extend(["what", "how"].map(Head::new));
    (!rows.is_empty()).then(|| table(&heads, &rows))
}

/// Parameters of the fits.
pub(super) fn usl(f: &Findings) -> Option<String> {
    let cells = |found: &analysis::findings::Scalability| {
        let fit = found.fit.as_ref()?;
        let parameter = |e: &Estimate| {
            Cell::number(format!("{} ({} to {})", shown(e.point, "1"), shown(e.low, "1"), shown(e.high, "1")))
        };
        Some(vec![
            Cell::text(&*found.label),
            Cell::number(shown_estimate(&fit.rate_per_s, "1/s")),
            parameter(&fit.contention),
            parameter(&fit.coherency),
            Cell::number(peak(fit)),
            Cell::number(format!("{:.3}", fit.r_squared)),
        ])
    };
    let rows: Vec<Vec<Cell>> = f.scalability.iter().filter_map(cells).collect();
    let heads = ["series", "λ", "σ", "κ", "peak at", "R²"].map(Head::new);
    (!rows.is_empty()).then(|| table(&heads, &rows))
}

/// N of the highest throughput with its interval, an end of which may be nowhere.
fn peak(fit: &UslFit) -> String {
    let at = |peak: Option<f64>| peak.filter(|peak| peak.is_finite()).map(|peak| format!("{peak:.1}"));
    match (at(fit.peak), at(fit.peak_low), at(fit.peak_high)) {
        (None, None, _) => "none".to_owned(),
        (None, Some(low), _) => format!("none ({low} or more)"),
        (Some(peak), Some(low), None) => format!("{peak} ({low} or more)"),
        (Some(peak), Some(low), Some(high)) => format!("{peak} ({low} to {high})"),
        (Some(peak), None, _) => peak,
    }
}

/// What was measured at each N, what the law has there, and how efficient that is.
pub(super) fn usl_points(f: &Findings) -> Option<String> {
    let several = f.scalability.len() > 1;
    let mut rows = Vec::new();
    for found in f.scalability.iter().filter(|found| found.fit.is_some()) {
        for point in &found.points {
            let mut cells = if several { vec![Cell::text(&*found.label)] } else { Vec::new() };
            cells.push(Cell::number(format!("{} {}", found.factor, point.n)));
            cells.push(Cell::number(shown(point.rate_per_s, "1/s")));
            cells.push(Cell::number(point.fitted_per_s.map_or_else(|| "–".to_owned(), |rate| shown(rate, "1/s"))));
            let efficiency = point.efficiency.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
            let efficiency = Cell::number(efficiency);
            cells.push(match &point.left_out {
                Some(reason) => efficiency.tag(format!("left out: {reason}"), true),
                None => efficiency,
            });
            rows.push(cells);
        }
    }
    let mut heads = if several { vec![Head::new("series")] } else { Vec::new() };
    heads.extend(["N", "mean throughput", "fitted", "efficiency"].map(Head::new));
    (!rows.is_empty()).then(|| table(&heads, &rows))
}

/// Whether the machine changed its speed during the run.
pub(super) fn states(f: &Findings) -> String {
    match &f.states {
        Some(states) => format!("Over all trials in the order they ran: {}.", states.sentence),
        None => "Not tested: too few trials.".to_owned(),
    }
}

/// The machine in short.
pub(super) fn machine(f: &Findings) -> Vec<(String, String)> {
    let host = &f.machine;
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let switch = |value: Option<bool>| match value {
        Some(true) => "on".to_owned(),
        Some(false) => "off".to_owned(),
        None => "unknown".to_owned(),
    };
    let distinct = |pick: fn(&study::record::Cpu) -> (u32, u32)| {
        let mut all: Vec<(u32, u32)> = host.cpus.iter().map(pick).collect();
        all.sort_unstable();
        all.dedup();
        all.len() as u64
    };
    let cpus = format!(
        "{}, on {} in {}, {}",
        number::count(host.cpus.len() as u64, "processor"),
        number::count(distinct(|cpu| (cpu.package, cpu.core)), "core"),
        number::count(distinct(|cpu| (cpu.package, 0)), "package"),
        number::count(distinct(|cpu| (cpu.node, 0)), "NUMA node"),
    );
    let memory = format!(
        "{}, {} of swap in use",
        shown(host.memory_bytes as f64, "bytes"),
        shown(host.swap_used_bytes as f64, "bytes")
    );
    let mut facts = vec![
        fact("Name", host.name.clone()),
        fact("Processor", host.cpu_model.clone()),
        fact("Processors used", cpus),
        fact("Caches", if host.caches.is_empty() { "unknown".to_owned() } else { host.caches.join(", ") }),
        fact("Memory", memory),
        fact("Kernel", host.kernel.clone()),
        fact("System", known(&host.system)),
        fact("Hypervisor", host.hypervisor.clone().unwrap_or_else(|| "none seen".to_owned())),
        fact("Frequency governor", known(&host.governor)),
        fact("Turbo, SMT", format!("{}, {}", switch(host.turbo), switch(host.smt))),
        fact("Clock source, idle", format!("{}, {}", known(&host.clocksource), known(&host.idle))),
        fact("Load before", host.load_average.map_or_else(|| "unknown".to_owned(), |load| format!("{load:.2}"))),
        fact(
            "Network, all trials",
            format!(
                "{} segments sent again, {} overflows of accept queues, {} connection requests dropped",
                f.network.retransmits, f.network.listen_overflows, f.network.listen_drops
            ),
        ),
    ];
    if let Some(probed) = &f.probes {
        facts.push(fact("Fixed piece of work", probed.sentence.clone()));
    }
    if !host.unknown.is_empty() {
        facts.push(fact("Could not be read", host.unknown.join("; ")));
    }
    facts
}

/// The machine at length.
pub(super) fn details(f: &Findings) -> Vec<(String, String)> {
    let all = f.machine.versions.iter().chain(&f.machine.sysctls).chain(&f.machine.mitigations);
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}

pub(super) fn calibration(f: &Findings) -> String {
    match &f.calibration {
        None => "Not measured: `quintain calibrate` would tell what the generator can do here.".to_owned(),
        Some(c) => format!(
            "At most {} with {} on {} ({}, {}), {} of its CPU time a request; with one client, p50 {} and p99 {}. Measured {}.",
            shown(c.rate_max_per_s, "1/s"),
            number::count(u64::from(c.rate_max_clients), "client"),
            number::count(u64::from(c.threads), "thread"),
            c.protocol,
            c.backend,
            shown(c.cpu_per_request_ns, "ns"),
            shown(c.floor_latency_ns_p50, "ns"),
            shown(c.floor_latency_ns_p99, "ns"),
            c.measured,
        ),
    }
}

pub(super) fn doctor(f: &Findings) -> Option<String> {
    let cells = |finding: &study::record::Finding| {
        let (word, class) = match finding.state {
            FindingState::Good => ("good", "good"),
            FindingState::Warning => ("warning", "warning"),
            FindingState::Bad => ("bad", "bad"),
            FindingState::NotChecked => ("not checked", "mu"),
        };
        vec![
            Cell::text(&*finding.check),
            Cell::text(word).class(class),
            Cell::sentence(&*finding.text),
            Cell::sentence(finding.hint.as_deref().unwrap_or("")),
        ]
    };
    let rows: Vec<Vec<Cell>> = f.doctor.iter().map(cells).collect();
    let heads = ["check", "state", "seen", "what to do"].map(Head::new);
    (!rows.is_empty()).then(|| table(&heads, &rows))
}

pub(super) fn builds(f: &Findings) -> Option<String> {
    let cells = |build: &study::record::Build| {
        let (word, class, words) = match &build.outcome {
            BuildOutcome::Ready => ("ready", "good", ""),
            BuildOutcome::Skipped { reason } => ("skipped", "warning", reason.as_str()),
            BuildOutcome::Unrunnable { reason } => ("unrunnable", "warning", reason.as_str()),
            BuildOutcome::Failed { output_tail } => ("failed", "bad", output_tail.as_str()),
        };
        let time = shown(build.elapsed_ns as f64, "ns");
        vec![Cell::text(&*build.command), Cell::text(word).class(class), Cell::number(time), Cell::sentence(words)]
    };
    let rows: Vec<Vec<Cell>> = f.builds.iter().map(cells).collect();
    let heads = ["build", "outcome", "took", "why"].map(Head::new);
    (!rows.is_empty()).then(|| table(&heads, &rows))
}

/// The command line, quoted for a shell.
pub(super) fn command(f: &Findings) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(safe) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    f.command.iter().map(word).collect::<Vec<_>>().join(" ")
}

pub(super) fn versions(f: &Findings) -> String {
    let revision =
        f.revision.as_ref().map_or_else(|| "outside a checkout".to_owned(), |revision| format!("revision {revision}"));
    format!("Measured by quintain {}, study {revision}.", f.quintain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted() {
        let mut f = crate::html::tests::nothing();
        f.command = ["quintain", "run", "a b", "it's", "", "--set", "server=go"].map(str::to_owned).to_vec();
        assert_eq!(command(&f), "quintain run 'a b' 'it'\\''s' '' --set server=go");
    }
}
