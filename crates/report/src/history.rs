//! Runs of a study over time, for a terminal and as a page. Steps are marked but not judged.

use analysis::enum_words_and_lists::capitalised;
use analysis::findings::{Estimate, History, HistoryPoint, HistoryRun, MachineHistory, PointValue, Step};
use analysis::history::speed_words;
use analysis::number::{count, estimate, quantity};
use study::record::RunState;

use crate::document::{Block, Cell, Document, Head, Room, Section, Table, Tone};
use crate::render::html::{HtmlError, page};
use crate::terminal_style_and_wrap::Style;
use crate::{figures, render};

const POINTS: usize = 6;

const STEPS: usize = 8;

const BAR: usize = 25;

/// Renders the history for a terminal: a table per design point, a bar per interval, and commands to judge the steps.
pub fn history_terminal(history: &History, style: &Style) -> String {
    render::terminal::terminal(&document(history, true), style)
}

/// Renders a page with lines over the runs. Fails with [`HtmlError`] if the template fails.
pub fn history_html(history: &History) -> Result<String, HtmlError> {
    page(&document(history, false), |detail| figures::history(history, POINTS, detail))
}

fn document(history: &History, bars: bool) -> Document {
    let runs = history.machines.iter().flat_map(|machine| &machine.runs).collect::<Vec<_>>();
    let number = count(runs.len() as u64, "run");
    let steps = history.machines.iter().map(|machine| machine.steps.len()).sum::<usize>();
    let on = count(history.machines.len() as u64, "machine");
    let points = history.machines.iter().map(|machine| machine.points.len()).max().unwrap_or(0);
    let times = || runs.iter().map(|run| day(&run.head.started));
    let found = match steps {
        0 => "no interval is separate from the one before when the revision changes".to_owned(),
        steps => format!("{} to check: separate intervals at a change of revision", count(steps as u64, "step")),
    };
    let mut answer = vec![format!("{number} on {on}; {found}.")];
    if points > POINTS {
        answer.push(format!(
            "{POINTS} of {points} design points are shown; `--point FACTOR=LEVEL` selects others, `--json` has all."
        ));
    }
    let mut sections = Vec::new();
    if !bars && history.machines.iter().any(|machine| machine.runs.len() > 1) {
        sections.push(Section::of_figures("figures", "Over runs", false));
    }
    sections
        .extend(history.machines.iter().zip(ANCHORS).map(|(machine, anchor)| section(history, machine, anchor, bars)));
    if let Some(last) = sections.last_mut() {
        last.all(Block::Note(
            "A step is not a verdict: separate runs of one server differ by more than their intervals in 16 to 64 % of cases (simulated, one design point), because a machine \
             changes its speed between them. The command beside it compares both revisions in one run."
                .to_owned(),
        ));
        if let Some(more @ 1..) = history.machines.len().checked_sub(ANCHORS.len()) {
            last.all(Block::Note(format!("{more} more machines are not shown; `--host` selects them.")));
        }
    }
    let over_runs = format!("{} over runs", history.metric.noun);
    Document {
        study: history.study.clone(),
        what: number,
        started: format!("{} to {}", times().min().unwrap_or_default(), times().max().unwrap_or_default()),
        // A page already shows the study's name above its heading and in its title.
        question: if bars { format!("{}: {over_runs}", history.study) } else { capitalised(&over_runs) },
        answer: answer.into_iter().map(|sentence| (sentence, "")).collect(),
        sections,
        ..Document::default()
    }
}

const ANCHORS: [&str; 8] =
    ["machine-1", "machine-2", "machine-3", "machine-4", "machine-5", "machine-6", "machine-7", "machine-8"];

fn day(started: &str) -> &str {
    started.get(..10).unwrap_or(started)
}

fn section(history: &History, machine: &MachineHistory, anchor: &'static str, bars: bool) -> Section {
    let mut section = Section::new(anchor, &machine.machine.to_string());
    let probe =
        machine.probe_ns_median.map_or("no probes".to_owned(), |ns| format!("median probe {}", quantity(ns, "ns")));
    section.all(Block::Text(format!("{}, {probe}.", count(machine.runs.len() as u64, "run"))));
    for (index, point) in machine.points.iter().enumerate().take(POINTS) {
        section.all(Block::Table(table(history, machine, index, point, bars)));
    }
    for step in machine.steps.iter().take(STEPS) {
        section.all(Block::Text(format!("A step: {}.", step.sentence)));
        if let Some(command) = &step.command {
            section.all(Block::Code(command.clone()));
        }
        if !step.note.is_empty() {
            section.all(Block::Text(format!("{}.", capitalised(&step.note))));
        }
    }
    if machine.steps.len() > STEPS {
        section.all(Block::Text(format!("And {} further steps; `--json` has all.", machine.steps.len() - STEPS)));
    }
    section
}

fn table(history: &History, machine: &MachineHistory, index: usize, point: &HistoryPoint, bars: bool) -> Table {
    let ends = ends(point);
    let rows = machine.runs.iter().zip(&point.values).enumerate().map(|(at, (run, value))| {
        let step = machine.steps.iter().find(|step| (step.point, step.to) == (index, at));
        let value = value.as_ref();
        let mut cells = vec![
            run.head.started.get(..16).unwrap_or(&run.head.started).replace('T', " "),
            revision(run, value).unwrap_or("unknown").to_owned(),
            value.map_or_else(|| "–".to_owned(), |value| shown(value, history.metric.unit)),
        ];
        cells.extend(bars.then(|| value.map_or_else(String::new, |value| bar(value, ends))));
        cells.extend([
            value.map_or_else(String::new, |value| value.n.to_string()),
            run.speed.map_or_else(|| "not probed".to_owned(), speed_words),
            run.head.run.clone(),
        ]);
        let tone = if step.is_some() { Tone::Warning } else { Tone::Muted };
        cells.into_iter().map(Cell::new).chain([Cell::new(notes(run, value, step)).tone(tone)]).collect()
    });
    let mut heads = vec![Head::text("started, UTC"), Head::text("revision"), Head::number(history.metric.noun)];
    heads.extend(bars.then(|| Head::text("").room(Room::Drop)));
    let machine = Head::text("machine").hint("CPU speed by the probe, relative to the median of these runs");
    heads.extend([Head::number("n"), machine, Head::text("run")].map(|head| head.room(Room::Drop)));
    heads.push(Head::text("notes"));
    Table { title: point.label.clone(), heads, rows: rows.collect(), below: Vec::new() }
}

/// Revision of the measured server, or of the run if the point has no value; `None` if unknown.
fn revision<'a>(run: &'a HistoryRun, value: Option<&'a PointValue>) -> Option<&'a str> {
    value.map_or(run.head.revision.as_deref(), |value| value.revision_in(&run.head))
}

/// Formats a value with its interval, and with a star if marks show that the trials do not measure the server.
pub(crate) fn shown(value: &PointValue, unit: &str) -> String {
    let text = match &value.estimate {
        Some(found) => estimate(found, unit),
        None if value.at_least => format!("≥ {}", quantity(value.mean, unit)),
        None => format!("{} ±?", quantity(value.mean, unit)),
    };
    if value.marks.is_empty() { text } else { format!("{text}*") }
}

fn notes(run: &HistoryRun, value: Option<&PointValue>, step: Option<&Step>) -> String {
    let words = [
        step.map(|_| "step"),
        run.head.quick.then_some("quick"),
        (run.head.profile == "full").then_some("full"),
        run.head.imported.then_some("imported"),
        run.head.state.filter(|state| matches!(state, RunState::Running | RunState::Interrupted)).map(RunState::word),
    ];
    let marks = value.into_iter().flat_map(|value| &value.marks).map(|mark| mark.text());
    words.into_iter().flatten().chain(marks).collect::<Vec<_>>().join(", ")
}

fn ends(point: &HistoryPoint) -> (f64, f64) {
    let ends = point.values.iter().flatten().flat_map(|value| {
        let of = |end: fn(&Estimate) -> f64| value.estimate.as_ref().map_or(value.mean, end);
        [of(|estimate| estimate.low), of(|estimate| estimate.high)]
    });
    ends.filter(|end| end.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end), high.max(end)))
}

/// Draws the interval of a value on the scale of all values: `  ──●──     `.
fn bar(value: &PointValue, (low, high): (f64, f64)) -> String {
    let place = |at: f64| {
        let share = if high > low { (at - low) / (high - low) } else { 0.5 };
        (share.clamp(0.0, 1.0) * (BAR - 1) as f64).round() as usize
    };
    let from_to = value.estimate.map_or((value.mean, value.mean), |estimate| (estimate.low, estimate.high));
    let (from, to, point) = (place(from_to.0), place(from_to.1), place(value.mean));
    let cell = |at: usize| match at {
        at if at == point => '●',
        at if (from..=to).contains(&at) => '─',
        _ => ' ',
    };
    (0..BAR).map(cell).collect()
}

#[cfg(test)]
mod tests;
