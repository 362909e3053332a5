//! A metric over the runs of a study.

use std::collections::BTreeSet;

use super::{Detail, Drawing, Key};
use crate::panel::{Axis, Layer, Mark, Panel, Shape, style};
use analysis::enum_words_and_lists::capitalised;
use analysis::findings::{History, HistoryRun, MachineHistory, PointValue};
use analysis::number::{self, drawable};

/// Minimum half-range of the speed axis in percent, so that a steady machine looks steady.
const SPEED_WIDTH: f64 = 5.0;

/// Distance between markers of different design points at one run, in user units.
const ASIDE: f64 = 4.0;

pub(crate) fn history(history: &History, points: usize, detail: Detail) -> Vec<Drawing> {
    let machines = history.machines.iter().filter(|machine| machine.runs.len() > 1);
    machines.enumerate().map(|(index, machine)| drawing(history, machine, index, points, detail)).collect()
}

fn drawing(history: &History, machine: &MachineHistory, index: usize, points: usize, detail: Detail) -> Drawing {
    let metric = &history.metric;
    let labels = machine.runs.iter().enumerate().map(|(at, run)| (at as f64, short(run))).collect::<Vec<_>>();
    let x = Axis::levels(&labels, "run in order of time, by commit (*: with changes)", 0.06);
    let (mut layers, mut keys, mut values, mut marked) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
    let shown = machine.points.iter().take(points).collect::<Vec<_>>();
    for (place, point) in shown.iter().enumerate() {
        let aside = (place as f64 - (shown.len() as f64 - 1.0) / 2.0) * ASIDE;
        for quick in [false, true] {
            let series = style::dashed(place, usize::from(quick));
            let of_runs = machine.runs.iter().zip(&point.values).enumerate();
            let marks = of_runs.filter(|(_, (run, _))| run.head.quick == quick).filter_map(|(at, (run, value))| {
                let value = value.as_ref().filter(|value| drawable(value.mean))?;
                Some(mark(at, run, value, &point.label, metric.unit, detail))
            });
            let mut marks = marks.collect::<Vec<_>>();
            if marks.is_empty() {
                continue;
            }
            // An interval over few trials can extend below zero even if the quantity cannot.
            if marks.iter().all(|mark| mark.y >= 0.0) {
                marks.iter_mut().filter_map(|mark| mark.bar.as_mut()).for_each(|bar| bar.0 = bar.0.max(0.0));
            }
            values.extend(marks.iter().flat_map(Mark::values));
            marked.extend(point.values.iter().flatten().flat_map(|value| &value.marks).map(|mark| mark.text()));
            let label = if quick { format!("{}, quick", point.label) } else { point.label.clone() };
            keys.push(Key::measured(series, label));
            layers.push(Layer { aside, ..Layer::new(series, Shape::Marks { marks, joined: true }) });
        }
    }
    let y = Axis::of_values(values.into_iter(), metric.unit, metric.text);
    let mut panels = vec![Panel::new(String::new(), x.clone(), y, layers)];
    panels.extend(speed(machine, &x, shown.len()));
    let all = machine.points.len();
    let note = (all > points).then(|| format!("{points} of {all} design points; --point selects others."));
    let quick = machine.runs.iter().any(|run| run.head.quick);
    let title = format!("{} over runs on {}", capitalised(metric.noun), machine.machine.name);
    Drawing {
        caption: format!(
            "Markers: means over the trials of a run. Bars: its interval{}. Separate runs of one server differ by more than their intervals say. Second panel: CPU speed by the probe \
             relative to the median of these runs, in per cent; no value is adjusted for it.",
            if quick { ", of quick runs without a stated confidence" } else { "" }
        ),
        keys,
        hollow: marked.into_iter().collect::<Vec<_>>().join(" or "),
        panels,
        notes: note.into_iter().collect(),
        ..Drawing::new(format!("history-{}-{}", index + 1, metric.name), title)
    }
}

/// Formats the first seven digits of a run's commit, with a star for uncommitted changes and `?` without a commit.
fn short(run: &HistoryRun) -> String {
    let Some(revision) = &run.head.revision else { return "?".to_owned() };
    let star = if revision.ends_with("-dirty") { "*" } else { "" };
    format!("{}{star}", revision.trim_end_matches("-dirty").chars().take(7).collect::<String>())
}

fn mark(at: usize, run: &HistoryRun, value: &PointValue, label: &str, unit: &str, detail: Detail) -> Mark {
    let bar = value.estimate.map(|found| (found.low, found.high)).filter(|bar| drawable(bar.0) && drawable(bar.1));
    let words = value.estimate.map(|found| number::estimate(&found, unit));
    let words = words.unwrap_or_else(|| number::quantity(value.mean, unit));
    let revision = value.revision_in(&run.head).unwrap_or("unknown revision");
    let (trials, started) = (number::count(value.n, "trial"), &run.head.started);
    let tip = detail.tip(|| format!("{label}\n{words} ({trials})\n{}, {revision}, {started}", run.head.run));
    Mark { bar, hollow: !value.marks.is_empty(), ..Mark::at(at as f64, value.mean, tip) }
}

/// Draws the speed of the machine in each run; `None` if fewer than two runs have probes.
fn speed(machine: &MachineHistory, x: &Axis, series: usize) -> Option<Panel> {
    let marks = machine.runs.iter().enumerate().filter_map(|(at, run)| {
        let y = run.speed.filter(|speed| drawable(*speed))? * 100.0;
        Some(Mark::at(at as f64, y, format!("{y:+.1} %")))
    });
    let marks = marks.collect::<Vec<_>>();
    let (low, high) =
        marks.iter().fold((-SPEED_WIDTH, SPEED_WIDTH), |(low, high), mark| (mark.y.min(low), mark.y.max(high)));
    let y = Axis::linear(low, high, "", "machine by the probe: faster (+), slower (-), %");
    (marks.len() > 1).then(|| {
        let layers = [Layer::new(None, Shape::Rule(0.0)), Layer::new(series, Shape::Marks { marks, joined: true })];
        Panel::new(String::new(), x.clone(), y, layers.into())
    })
}
