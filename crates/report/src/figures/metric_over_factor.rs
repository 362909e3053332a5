//! Metrics over a factor: lines, dots, scatter and interaction.

use std::collections::{BTreeMap, BTreeSet};

use study::Metric;
use study::plan::{Figure as Wanted, FigureKind};

use super::{
    Detail, Drawing, Facet, Grid, Key, MARKS, bars, hollow, is_drawable, left_out, metric_of, not_shown, percent,
    place_of, tip,
};
use crate::panel::{Axis, Layer, Mark, Panel, Scale, Shape};
use analysis::enum_words_and_lists::{capitalised, serde_name};
use analysis::findings::{CurvePoint, Factor, Findings, Row, Scalability, TrialFinding};
use analysis::number::{self, drawable};
use analysis::value::estimate_at;

/// Metrics of one unit over a factor. If there are several metrics, each one is a series.
struct Over<'a> {
    grid: Grid<'a>,
    wanted: &'a Wanted,
    metrics: Vec<String>,
    unit: String,
    /// Lower limit of bars: zero unless a value is negative, since intervals over few trials can extend below zero.
    floor: f64,
    trials: bool,
    /// Whether there are so many trials that they are drawn as dots.
    dust: bool,
    labels: BTreeMap<usize, String>,
}

/// The axis other than the metric's.
struct Across<'a> {
    axis: Axis,
    /// Factor on the axis; `None` for a single level, with one slot per series.
    factor: Option<&'a Factor>,
    /// Position of each level of the factor by its index or, without a factor, of each series.
    places: BTreeMap<usize, f64>,
    /// Space for the markers of one position side by side, in user units.
    width: f64,
    /// Height of a slot in user units, if the axis is vertical with space for names.
    slot: Option<f64>,
    joined: bool,
}

/// Draws lines over a numeric factor with two or more measured levels. For other factors, lists estimates vertically,
/// with space for names. A scatter has a point per trial; an interaction also joins text levels by lines.
pub(super) fn over(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    let trials = wanted.kind == FigureKind::Scatter;
    let grid = Grid::new(findings, wanted, true, detail);
    let mut metrics = vec![wanted.y.clone().unwrap_or_else(|| findings.metric.clone())];
    metrics.extend(wanted.y_more.iter().cloned());
    let (unit, text) = axis_of(&metrics);
    let (facets, more) = grid.facets();
    let rows = facets.iter().flat_map(|facet| facet.rows.iter().copied()).collect::<Vec<_>>();
    let dust = trials && rows.iter().map(|row| row.n).sum::<usize>() * metrics.len() > MARKS;
    let labels = labels(&grid, &metrics);
    let mut over = Over { grid, wanted, metrics, unit, floor: f64::NEG_INFINITY, trials, dust, labels };
    let across = over.across(&rows);

    // The scale covers the values of all rows, so that all figures of a metric share it.
    let measured = || findings.rows.iter().filter(|row| row.n > 0);
    let all_marks = |over: &Over<'_>| {
        let of_row = |row| (0..over.metrics.len()).flat_map(move |metric| over.marks_of(row, metric, 0.0, 0.0));
        measured().flat_map(of_row).collect::<Vec<_>>()
    };
    if all_marks(&over).iter().all(|mark| mark.y >= 0.0) {
        over.floor = 0.0;
    }
    let values = all_marks(&over).iter().flat_map(Mark::values).collect::<Vec<_>>();
    let most = values.iter().copied().filter(|value| drawable(*value)).fold(0.0, f64::max);
    // Fitted curves may extend the axis beyond the points, but must not compress the points.
    let curves = facets.iter().flat_map(|facet| over.curves(facet, &across));
    let curves = curves.flat_map(|(_, found)| found.curve.iter().flat_map(|at| [at.rate_per_s, at.low, at.high]));
    let curves = curves.filter(|value| *value > 0.0 && *value <= most * 1.3).collect::<Vec<_>>();
    // All panels share a value axis, so that they can be compared.
    let axis = Axis::of_values(values.into_iter().chain(curves), &over.unit, &text);
    let panels: Vec<Panel> = facets.iter().map(|facet| over.panel(facet, &across, &axis)).collect();

    let used = over.used(&rows).into_iter();
    // A trial has its own verdict, even if its row has none.
    let of_trials = rows.iter().filter(|_| trials).flat_map(|row| &row.trials).flat_map(|trial| &trial.marks);
    let marks = rows.iter().flat_map(|row| &row.marks).chain(of_trials);
    let pairs = || rows.iter().flat_map(|row| (0..over.metrics.len()).map(move |metric| (*row, metric)));
    let is_bare = |(row, metric): &(&Row, usize)| {
        row.metrics.get(&over.metrics[*metric]).is_some_and(|found| found.mean.is_some() && found.estimate.is_none())
    };
    let (all, bare) = (pairs().count(), pairs().filter(|_| !trials).filter(is_bare).count());
    let missing = pairs().filter(|(row, metric)| over.marks_of(row, *metric, 0.0, 0.0).is_empty()).count();
    let names = over.metrics.join(", ");
    let notes = [
        (missing > 0).then(|| format!("{missing} of {all} points have no value of {names}.")),
        (bare > 0).then(|| format!("Points without an interval have no bar: {bare} of {all}.")),
        left_out(more, "panels are not drawn; the table has their numbers"),
    ];
    Drawing {
        caption: over.caption(&across),
        keys: used.map(|series| Key::measured(series, &*over.labels[&series])).collect(),
        hollow: hollow(marks),
        panels,
        notes: notes.into_iter().flatten().chain(not_shown(findings)).collect(),
        ..Drawing::new(format!("{}-{}", serde_name(wanted.kind), over.metrics[0]), over.title(&across))
    }
}

const A_REQUEST: &str = "_bytes_per_request";

fn axis_of(metrics: &[String]) -> (String, String) {
    let (unit, text) = metric_of(&metrics[0]);
    match metrics {
        [_] => (unit, text),
        all if all.iter().all(|metric| metric.starts_with("latency_")) => (unit, "latency".to_owned()),
        all if all.iter().all(|metric| metric.ends_with(A_REQUEST)) => (unit, "bytes per request".to_owned()),
        all => (unit, all.iter().map(|metric| metric_of(metric).1).collect::<Vec<_>>().join(", ")),
    }
}

fn labels(grid: &Grid<'_>, metrics: &[String]) -> BTreeMap<usize, String> {
    if metrics.len() == 1 {
        return grid.series_labels();
    }
    let names = metrics.iter().map(|metric| match metric.strip_suffix(A_REQUEST) {
        // The descriptions of these metrics differ only at their ends, which would be cut off.
        Some("m1a") => "M1a, Whip's formula".to_owned(),
        Some("m1b") => "M1b, with peer addresses".to_owned(),
        Some("m2") => "M2, on the wire".to_owned(),
        Some("m3") => "M3, everything beyond the messages".to_owned(),
        _ if metric.starts_with("latency_p") => Metric::heading_of(metric).to_owned(),
        _ => metric_of(metric).1,
    });
    grid.colours.named(grid.colours.others(), names.collect())
}

impl<'a> Over<'a> {
    fn across(&self, rows: &[&Row]) -> Across<'a> {
        let in_order = |keys: Vec<usize>| keys.into_iter().zip((0..).map(f64::from)).collect();
        let levels = |factor: &Factor| rows.iter().filter_map(|row| place_of(factor, row)).collect::<BTreeSet<_>>();
        let varied = self.grid.x.map(|factor| (factor, levels(factor))).filter(|(_, levels)| levels.len() > 1);
        let Some((factor, levels)) = varied else {
            let used = self.used(rows);
            let names = used.iter().map(|series| self.labels[series].clone()).collect::<Vec<_>>();
            let (axis, slot) = (Axis::slots(&names, ""), Some(if self.trials { 32.0 } else { 25.0 }));
            return Across { axis, factor: None, places: in_order(used), width: 0.0, slot, joined: false };
        };
        let levels = levels.into_iter().collect::<Vec<_>>();
        let names = levels.iter().map(|place| factor.levels[*place].to_string()).collect::<Vec<_>>();
        let numbers = levels.iter().map(|place| factor.levels[*place].as_f64().filter(|value| drawable(*value)));
        let numbers = numbers.collect::<Option<Vec<_>>>().filter(|numbers| numbers.is_sorted_by(|a, b| a < b));
        if let Some(numbers) = numbers.filter(|_| factor.numeric) {
            // A few trials side by side need a wider margin than one marker.
            let (margin, most) = if self.trials { (0.11, 44.0) } else { (0.07, 28.0) };
            let named = numbers.iter().copied().zip(names).collect::<Vec<_>>();
            let axis = Axis::levels(&named, &factor.name, margin);
            let width = (Panel::room_aside(&axis) * 0.7).min(most);
            let places = levels.into_iter().zip(numbers).collect();
            return Across { axis, factor: Some(factor), places, width, slot: None, joined: !self.trials };
        }
        let axis = Axis::slots(&names, &factor.name);
        if self.wanted.kind == FigureKind::Interaction {
            let width = (Panel::slot_room(names.len()) * 0.7).min(28.0);
            return Across { axis, factor: Some(factor), places: in_order(levels), width, slot: None, joined: true };
        }
        // If the factor on the axis is also the series, each slot has one series, which needs no offset.
        let is_series = self.grid.series.is_some_and(|series| series.name == factor.name);
        let aside = if is_series && self.metrics.len() == 1 { 1 } else { self.labels.len() };
        let room = if self.trials { 20.0 } else { 10.0 } * aside as f64;
        let (width, slot) = (if aside == 1 { 0.0 } else { room }, Some(room + 14.0));
        Across { axis, factor: Some(factor), places: in_order(levels), width, slot, joined: false }
    }

    fn series_of(&self, row: &Row, metric: usize) -> Option<usize> {
        if self.metrics.len() == 1 {
            return self.grid.series_of(row);
        }
        Some(self.grid.colours.number(self.grid.colours.others(), metric, row))
    }

    fn used(&self, rows: &[&Row]) -> Vec<usize> {
        let of =
            |row: &&Row| (0..self.metrics.len()).filter_map(|metric| self.series_of(row, metric)).collect::<Vec<_>>();
        rows.iter().flat_map(of).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn title(&self, across: &Across<'_>) -> String {
        let over = |factor: &Factor| format!(" over {}", factor.name);
        if let Some(title) = &self.wanted.title {
            // The title may name a factor that the study varies only on larger machines.
            let constant = self.grid.x.filter(|_| across.factor.is_none()).map_or(String::new(), over);
            return title.strip_suffix(constant.as_str()).unwrap_or(title).to_owned();
        }
        let names = self.metrics.iter().map(|name| Metric::noun_of(name)).collect::<Vec<_>>().join(", ");
        let by = self.grid.series.filter(|_| self.wanted.kind == FigureKind::Interaction && across.factor.is_some());
        let by = by.map_or(String::new(), |by| format!(", by {}", by.name));
        let each = if self.trials { ", every trial" } else { "" };
        capitalised(&format!("{names}{}{by}{each}", across.factor.map_or(String::new(), over)))
    }

    fn caption(&self, across: &Across<'_>) -> String {
        let findings = self.grid.findings;
        let bars = bars(findings, self.wanted.interval, ", where wider than the marker");
        let means = format!("Markers: means over trials. Bars: {bars}.");
        let trials = "One marker per trial, each with a fresh server.".to_owned();
        let mut caption = if self.trials { trials } else { means };
        if let Some(factor) = self.grid.x.filter(|_| across.factor.is_none()) {
            let level = findings.rows.iter().find(|row| row.n > 0).and_then(|row| row.factors.get(&factor.name));
            caption.extend(level.map(|level| format!(" At {} {level}.", factor.name)));
        }
        if self.fitted(across).next().is_some() {
            let band = if findings.quick { "its interval, no stated confidence" } else { "its interval" };
            caption += &format!(" Dotted: the fitted Universal Scalability Law; shaded: {band}.");
        }
        if self.wanted.kind == FigureKind::Interaction {
            caption += " Where lines are parallel, the effect of one factor does not depend on the other; multiplicative \
                        effects are parallel on a log axis and fan out on others. For significance, see the effects.";
        }
        caption
    }

    /// Returns the marks of a row at `x`, with the metric on the y axis. Spreads trials over `spread` drawing units.
    fn marks_of(&self, row: &Row, metric: usize, x: f64, spread: f64) -> Vec<Mark> {
        let series = self.series_of(row, metric).map_or("", |series| self.labels[&series].as_str());
        let tip = |words: String| self.grid.detail.tip(|| tip(series, row, &words));
        let metric = self.metrics[metric].as_str();
        if self.trials {
            let value = |trial: &'_ TrialFinding| {
                Some((trial.order, trial.values.get(metric)?, row.is_marked() || !trial.marks.is_empty()))
            };
            let values: Vec<(u32, f64, bool)> = row.trials.iter().filter_map(value).collect();
            let midpoint = (values.len() as f64 - 1.0) / 2.0;
            let drawn = values.iter().enumerate().filter(|(_, (_, value, _))| drawable(*value));
            let mark = |(index, &(order, value, hollow)): (usize, &(u32, f64, bool))| {
                // Trials are side by side in execution order, so that equal values do not overlap.
                let aside = (index as f64 - midpoint) * spread / values.len() as f64;
                let words = format!("{}, trial {order}", number::quantity(value, &self.unit));
                Mark { aside, hollow, ..Mark::at(x, value, tip(words)) }
            };
            return drawn.map(mark).collect();
        }
        let Some(found) = row.metrics.get(metric) else { return Vec::new() };
        let estimate = estimate_at(row, metric, self.wanted.interval).filter(is_drawable);
        let Some(y) = estimate.map(|e| e.point).or(found.mean).filter(|value| drawable(*value)) else {
            return Vec::new();
        };
        let bar = estimate.map(|e| (e.low.max(self.floor), e.high));
        let words = match estimate {
            Some(e) => {
                let (shown, trials) = (number::estimate(&e, &self.unit), number::count(e.n, "trial"));
                format!("{shown} ({trials}, {} %)", percent(e.level))
            }
            None if found.at_least => format!("at least {}", number::quantity(y, &self.unit)),
            None => {
                format!("{}, no interval ({})", number::quantity(y, &self.unit), number::count(row.n as u64, "trial"))
            }
        };
        vec![Mark { bar, hollow: row.is_marked() || found.at_least, ..Mark::at(x, y, tip(words)) }]
    }

    fn panel(&self, facet: &Facet<'_>, across: &Across<'_>, values: &Axis) -> Panel {
        let (title, axis) = (facet.title.clone(), across.axis.clone());
        let layers = self.fits(facet, across, values).chain(self.layers(facet, across)).collect();
        match across.slot {
            Some(slot) => Panel { slot, ..Panel::new(title, values.clone(), axis, layers) },
            None => Panel::new(title, axis, values.clone(), layers),
        }
    }

    /// Fits over the factor on the axis, if it is a numeric axis of throughput.
    fn fitted(&self, across: &Across<'_>) -> impl Iterator<Item = &'a Scalability> {
        let is_numeric = !matches!(across.axis.scale, Scale::Slots { .. });
        let factor = across.factor.filter(|_| is_numeric && self.metrics == ["throughput"]).map(|factor| &factor.name);
        let all = self.grid.findings.scalability.iter();
        all.filter(move |found| factor == Some(&found.factor) && !found.curve.is_empty())
    }

    fn curves(&self, facet: &Facet<'_>, across: &Across<'_>) -> Vec<(usize, &'a Scalability)> {
        let with_series = |found: &'a Scalability| {
            let of_it = |row: &&&Row| found.series.iter().all(|(name, level)| row.factors.get(name) == Some(level));
            Some((facet.rows.iter().filter(of_it).find_map(|row| self.series_of(row, 0))?, found))
        };
        self.fitted(across).filter_map(with_series).collect()
    }

    fn fits(&self, facet: &Facet<'_>, across: &Across<'_>, y: &Axis) -> impl Iterator<Item = Layer> {
        let within =
            |axis: &Axis, value: f64| axis.scale.place(value).is_some_and(|place| (0.0..=1.0).contains(&place));
        let (bottom, top) = y.ends();
        self.curves(facet, across).into_iter().flat_map(move |(series, found)| {
            let points = || found.curve.iter().filter(|at| within(&across.axis, at.n));
            let line = points().filter(|at| within(y, at.rate_per_s)).map(|at| (at.n, at.rate_per_s)).collect();
            let clamped = |value: f64| value.max(bottom).min(top);
            let seen = |at: &&CurvePoint| at.high >= bottom && at.low <= top;
            let band = points().filter(seen).map(|at| (at.n, clamped(at.low), clamped(at.high))).collect();
            [Layer::new(series, Shape::Band(band)), Layer::new(series, Shape::Fit(line))]
        })
    }

    fn layers(&self, facet: &Facet<'_>, across: &Across<'_>) -> Vec<Layer> {
        let Across { factor, places, width, slot, joined, .. } = across;
        let used = self.used(&facet.rows);
        let widest = match (self.trials, slot) {
            (true, None) if used.len() == 1 => 34.0,
            (true, _) => 20.0,
            (false, Some(_)) => 10.0,
            (false, None) => 7.0,
        };
        let gap = if *width > 0.0 { (width / used.len().max(1) as f64).min(widest) } else { 0.0 };
        let spread = if *width > 0.0 { gap * 0.8 } else { 18.0 };
        let midpoint = (used.len() as f64 - 1.0) / 2.0;
        let mut layers = Vec::new();
        for (index, &series) in used.iter().enumerate() {
            let mut rows = Vec::new();
            for row in &facet.rows {
                let metric = (0..self.metrics.len()).find(|metric| self.series_of(row, *metric) == Some(series));
                let key = factor.map_or(Some(series), |factor| place_of(factor, row));
                rows.extend(metric.zip(key.and_then(|key| places.get(&key))).map(|(metric, at)| (*at, *row, metric)));
            }
            rows.sort_by(|a, b| a.0.total_cmp(&b.0));
            let marks = rows.iter().flat_map(|(at, row, metric)| self.marks_of(row, *metric, *at, spread));
            let turn = |mark: Mark| if slot.is_some() { Mark { x: mark.y, y: mark.x, ..mark } } else { mark };
            let marks: Vec<Mark> = marks.map(turn).collect();
            let aside = (index as f64 - midpoint) * gap;
            if self.dust {
                layers.extend(Layer::dust(series, &marks, aside));
            } else {
                layers.push(Layer { aside, ..Layer::new(series, Shape::Marks { marks, joined: *joined }) });
            }
        }
        layers
    }
}
