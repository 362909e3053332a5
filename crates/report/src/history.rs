//! Runs of a study over time, for a terminal and as a page, and two runs side by side. Steps are marked but not judged.

use analysis::enum_words_and_lists::capitalised;
use analysis::findings::{Estimate, History, HistoryPoint, HistoryRun, MachineHistory, PointValue, SideBySide, Step};
use analysis::history::speed_words;
use analysis::number::{at_least, count, estimate, quantity};
use study::record::RunState;

use crate::document::{Block, Cell, Columns, Document, Head, Room, Section, Table, Tone};
use crate::render::html::page;
use crate::terminal_style_and_wrap::Style;
use crate::{ReportError, figures, render};

const POINTS: usize = 6;

const STEPS: usize = 8;

const BAR: usize = 25;

/// Renders the history for a terminal: a table per design point, a bar per interval, and commands to judge the steps.
pub fn history_terminal(history: &History, style: &Style) -> String {
    render::terminal::terminal(&document(history, true), style)
}

/// Renders a page with lines over the runs. Fails if the template fails.
pub fn history_html(history: &History) -> Result<String, ReportError> {
    page(&document(history, false), |detail| figures::history(history, POINTS, detail))
}

fn document(history: &History, bars: bool) -> Document {
    let runs = history.machines.iter().flat_map(|machine| &machine.runs).collect::<Vec<_>>();
    let number = count(runs.len() as u64, "run");
    let steps = history.machines.iter().map(|machine| machine.steps.len()).sum::<usize>();
    let on = count(history.machines.len() as u64, "machine");
    let points = history.machines.iter().map(|machine| machine.points.len()).max().unwrap_or(0);
    let times = || runs.iter().map(|run| run.head.started.get(..10).unwrap_or(&run.head.started));
    let found = match steps {
        0 => "no interval is separate from the one before when the revision changes".to_owned(),
        steps => format!("{} to check: separate intervals at a change of revision", count(steps as u64, "step")),
    };
    let others = format!(
        "{POINTS} of {points} design points are shown; `--point FACTOR=LEVEL` selects others, `--json` has all."
    );
    let answer = [format!("{number} on {on}; {found}.")].into_iter().chain((points > POINTS).then_some(others));
    let has_figures = !bars && history.machines.iter().any(|machine| machine.runs.len() > 1);
    let mut figures = Section::new("figures", "Over runs");
    figures.long(has_figures.then_some(Block::Figures { supporting: false }));
    let machines = history.machines.iter().zip(ANCHORS);
    let machines = machines.map(|(machine, anchor)| section(history, machine, anchor, bars));
    let mut sections = has_figures.then_some(figures).into_iter().chain(machines).collect::<Vec<_>>();
    if let Some(last) = sections.last_mut() {
        last.all([Block::Note(
            "A step is not a verdict: separate runs of one server differ by more than their intervals in 16 to 64 % of cases (simulated, one design point), because a machine \
             changes its speed between them. The command beside it compares both revisions in one run."
                .to_owned(),
        )]);
        let more = history.machines.len().checked_sub(ANCHORS.len()).filter(|more| *more > 0);
        let words = |more| format!("{more} more machines are not shown; `--host` selects them.");
        last.all(more.map(words).map(Block::Note));
    }
    let over_runs = format!("{} over runs", history.metric.noun);
    Document {
        study: history.study.clone(),
        what: number,
        started: format!("{} to {}", times().min().unwrap_or_default(), times().max().unwrap_or_default()),
        // A page already shows the study's name above its heading and in its title.
        question: if bars { format!("{}: {over_runs}", history.study) } else { capitalised(&over_runs) },
        answer: answer.map(|sentence| (sentence, "")).collect(),
        sections,
        ..Document::default()
    }
}

const ANCHORS: [&str; 8] =
    ["machine-1", "machine-2", "machine-3", "machine-4", "machine-5", "machine-6", "machine-7", "machine-8"];

fn section(history: &History, machine: &MachineHistory, anchor: &'static str, bars: bool) -> Section {
    let mut section = Section::new(anchor, &machine.machine.to_string());
    let probe =
        machine.probe_ns_median.map_or("no probes".to_owned(), |ns| format!("median probe {}", quantity(ns, "ns")));
    section.all([Block::Text(format!("{}, {probe}.", count(machine.runs.len() as u64, "run")))]);
    let points = machine.points.iter().enumerate().take(POINTS);
    section.all(points.map(|(index, point)| Block::Table(table(history, machine, index, point, bars))));
    for step in machine.steps.iter().take(STEPS) {
        section.all([Block::Text(format!("A step: {}.", step.sentence))]);
        section.all(step.command.clone().map(Block::Code));
        section.all((!step.note.is_empty()).then(|| Block::Text(format!("{}.", capitalised(&step.note)))));
    }
    let further = machine.steps.len().checked_sub(STEPS).filter(|further| *further > 0);
    section.all(further.map(|further| Block::Text(format!("And {further} further steps; `--json` has all."))));
    section
}

fn table(history: &History, machine: &MachineHistory, index: usize, point: &HistoryPoint, bars: bool) -> Table {
    let ends = ends(point);
    let rows = machine.runs.iter().zip(&point.values).enumerate().map(|(at, (run, value))| {
        let step = machine.steps.iter().find(|step| (step.point, step.to) == (index, at));
        (run, value.as_ref(), step)
    });
    let note = |run: &HistoryRun, value: Option<&PointValue>, step: Option<&Step>| {
        Cell::from(notes(run, value, step)).tone(if step.is_some() { Tone::Warning } else { Tone::Muted })
    };
    let dropped = |head: Head| head.room(Room::Drop);
    let speed = Head::text("machine").hint("CPU speed by the probe, relative to the median of these runs");
    let table = Columns::of(rows)
        .text("started, UTC", |(run, ..)| run.head.started.get(..16).unwrap_or(&run.head.started).replace('T', " "))
        .text("revision", |(run, value, _)| revision(run, *value).unwrap_or("unknown"))
        .number(history.metric.noun, |(_, value, _)| shown(*value, history.metric.unit))
        .when(bars, |table| {
            let head = dropped(Head::text(""));
            table.column(head, |(_, value, _)| value.map_or_else(String::new, |value| bar(value, ends)))
        })
        .column(dropped(Head::number("n")), |(_, value, _)| value.map_or(String::new(), |value| value.n.to_string()))
        .column(dropped(speed), |(run, ..)| run.speed.map_or_else(|| "not probed".to_owned(), speed_words))
        .column(dropped(Head::text("run")), |(run, ..)| run.head.run.as_str())
        .text("notes", |(run, value, step)| note(run, *value, *step));
    table.titled(&*point.label)
}

/// Revision of the measured server, or of the run if the point has no value; `None` if unknown.
fn revision<'a>(run: &'a HistoryRun, value: Option<&'a PointValue>) -> Option<&'a str> {
    value.map_or(run.head.revision.as_deref(), |value| value.revision_in(&run.head))
}

/// Formats a value with its interval, and with a star if marks show that the trials do not measure the server.
pub(crate) fn shown(value: Option<&PointValue>, unit: &str) -> String {
    let Some(value) = value else { return "–".to_owned() };
    let text = match &value.estimate {
        Some(found) => estimate(found, unit),
        None if value.at_least => at_least(value.mean, unit),
        None => format!("{} ±?", quantity(value.mean, unit)),
    };
    if value.marks.is_empty() { text } else { text + "*" }
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

/// Renders the headline, the runs, a table per metric, and the reasons why there is no verdict.
pub fn side_by_side_terminal(found: &SideBySide, style: &Style) -> String {
    render::terminal::terminal(&side_by_side(found), style)
}

fn side_by_side(found: &SideBySide) -> Document {
    let mut runs = Section::new("runs", "Runs");
    runs.all([Block::Table(self::runs(found))]);
    let mut values = Section::new("values", "Values");
    for metric in &found.metrics {
        let rows = found.points.iter().filter_map(|point| Some((&point.label, point.values.get(metric.name)?)));
        let table = Columns::of(rows.filter(|(_, values)| values.iter().any(Option::is_some)))
            .text("design point", |(label, _)| label.as_str())
            .number(&found.runs[0].run, |(_, values)| shown(values[0].as_ref(), metric.unit))
            .number(&found.runs[1].run, |(_, values)| shown(values[1].as_ref(), metric.unit));
        values.all(table.titled(metric.text).unless_empty().map(Block::Table));
    }
    let mut verdict = Section::new("verdict", "Verdict");
    verdict.all(found.reasons.iter().cloned().map(Block::Text));
    let comparing = "This compares them in one run, block by block:";
    let command = found.command.iter().cloned();
    verdict.all(command.flat_map(|command| [Block::Text(comparing.to_owned()), Block::Code(command)]));
    verdict.all((!found.note.is_empty()).then(|| Block::Text(format!("{}.", capitalised(&found.note)))));
    Document {
        study: found.runs[0].study.clone(),
        what: format!("{} and {}", found.runs[0].run, found.runs[1].run),
        started: found.runs[0].started.clone(),
        question: found.headline.clone(),
        sections: vec![runs, values, verdict],
        ..Document::default()
    }
}

fn runs(found: &SideBySide) -> Table {
    let table = Columns::of(found.runs.iter().zip(&found.machines))
        .text("run", |(run, _)| run.run.as_str())
        .text("started", |(run, _)| run.started.as_str())
        .text("revision", |(run, _)| run.revision.as_deref().unwrap_or("unknown"))
        .text("profile", |(run, _)| run.profile.as_str())
        .text("probe", |(run, _)| run.probe_ns.map_or_else(|| "none".to_owned(), |ns| quantity(ns, "ns")))
        .text("machine", |(_, machine)| machine.to_string());
    table.titled("")
}

#[cfg(test)]
mod tests;
