//! Metrics over a factor: lines, dots, scatter and interaction.

use std::collections::{BTreeMap, BTreeSet};

use study::Metric;
use study::plan::{Figure as Wanted, FigureKind};

use super::{Detail, Drawing, Facet, Grid, Key, MARKS, bars, hollow, is_drawable, left_out, metric_of, percent, tip};
use crate::panel::{Axis, Layer, Mark, Panel};
use analysis::enum_words_and_lists::capitalised;
use analysis::findings::{CurvePoint, Factor, Findings, Row, Scalability, TrialFinding};
use analysis::number::{self, drawable};
use analysis::value::estimate_at;

/// Metrics of one unit over a factor. If there are several metrics, each one is a series.
struct Over<'a> {
    grid: Grid<'a>,
    metrics: Vec<String>,
    unit: String,
    level: f64,
    /// Lower limit of bars: zero unless a value is negative, since intervals over few trials can extend below zero.
    floor: f64,
    /// Whether lines also join the levels of a text factor.
    interaction: bool,
    trials: bool,
    /// Whether there are so many trials that they are drawn as dots.
    dust: bool,
    labels: BTreeMap<usize, String>,
    across: Across<'a>,
}

enum Across<'a> {
    Levels(&'a Factor, Vec<(f64, String)>),
    /// Levels of a text factor, with one slot each.
    Words(&'a Factor, Vec<usize>),
    /// Levels of a text factor side by side, joined by lines.
    Steps(&'a Factor, Vec<usize>),
    /// A single level, with one slot per series.
    Series(Vec<usize>),
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
    let labels = labels(&grid, &metrics);
    let mut over = Over {
        grid,
        metrics,
        unit,
        level: wanted.interval,
        floor: f64::NEG_INFINITY,
        interaction: wanted.kind == FigureKind::Interaction,
        trials,
        dust: false,
        labels,
        across: Across::Series(Vec::new()),
    };
    over.across = over.across(&facets);
    let points = || facets.iter().flat_map(|facet| facet.rows.iter().copied());
    over.dust = trials && points().map(|row| row.n).sum::<usize>() * over.metrics.len() > MARKS;

    let measured = || findings.rows.iter().filter(|row| row.n > 0);
    if measured().flat_map(|row| over.all_marks(row)).all(|mark| mark.y >= 0.0) {
        over.floor = 0.0;
    }
    // The scale covers the values of all rows, so that all figures of a metric share it.
    let values = measured().flat_map(|row| over.all_marks(row));
    let values = values
        .flat_map(|mark| [mark.y].into_iter().chain(mark.bar.map(|b| [b.0, b.1]).into_iter().flatten()))
        .collect::<Vec<_>>();
    let most = values.iter().copied().filter(|value| drawable(*value)).fold(0.0, f64::max);
    // Fitted curves may extend the axis beyond the points, but must not compress the points.
    let curves = facets.iter().flat_map(|facet| over.curves(facet));
    let curves = curves.flat_map(|(_, found)| found.curve.iter().flat_map(|at| [at.rate_per_s, at.low, at.high]));
    let curves = curves.filter(|value| *value > 0.0 && *value <= most * 1.3).collect::<Vec<_>>();
    // All panels share a value axis, so that they can be compared.
    let axis = Axis::of_values(values.into_iter().chain(curves), &over.unit, &text);
    let panels: Vec<Panel> = facets.iter().map(|facet| over.panel(facet, &axis)).collect();

    let (name, title, caption) = over.words(findings, wanted);
    let used = over.used(points());
    let left_out = left_out(more, "panels are not drawn; the table has their numbers");
    let mut drawing = Drawing { name, title, caption, ..over.grid.drawing(&facets, panels, left_out) };
    if over.metrics.len() > 1 {
        let key = |series: usize| Key::measured(series, &*over.labels[&series]);
        drawing.keys = used.into_iter().map(key).collect();
    }
    if trials {
        // A trial has its own verdict, even if its row has none.
        drawing.hollow =
            hollow(points().flat_map(|row| row.marks.iter().chain(row.trials.iter().flat_map(|trial| &trial.marks))));
    }
    let each = |pick: &dyn Fn(&Row, &str) -> bool| {
        points().map(|row| over.metrics.iter().filter(|metric| pick(row, metric)).count()).sum::<usize>()
    };
    let all = points().count() * over.metrics.len();
    let bare = each(&|row, metric| row.metrics.get(metric).is_some_and(|m| m.mean.is_some() && m.estimate.is_none()));
    if bare > 0 && !trials {
        drawing.notes.insert(0, format!("Points without an interval have no bar: {bare} of {all}."));
    }
    let missing = each(&|row, metric| over.marks_of(row, metric, 0.0, 0.0).is_empty());
    if missing > 0 {
        let names = over.metrics.join(", ");
        drawing.notes.insert(0, format!("{missing} of {all} points have no value of {names}."));
    }
    drawing
}

const A_REQUEST: &str = "_bytes_per_request";

fn axis_of(metrics: &[String]) -> (String, String) {
    let (unit, text) = metric_of(&metrics[0]);
    match metrics {
        [_] => (unit, text),
        all if all.iter().all(|metric| metric.starts_with("latency_")) => (unit, "latency".to_owned()),
        all if all.iter().all(|metric| metric.ends_with(A_REQUEST)) => (unit, "bytes per request".to_owned()),
        all => {
            let texts = all.iter().map(|metric| metric_of(metric).1).collect::<Vec<_>>();
            (unit, texts.join(", "))
        }
    }
}

fn labels(grid: &Grid<'_>, metrics: &[String]) -> BTreeMap<usize, String> {
    if metrics.len() == 1 {
        return grid.series_labels();
    }
    let names = metrics.iter().map(|metric| match (metric.strip_prefix("latency_p"), metric.strip_suffix(A_REQUEST)) {
        // The metric `p999` is p99.9.
        (Some(digits), _) if digits.len() > 2 => format!("p{}.{}", &digits[..2], &digits[2..]),
        (Some(digits), _) => format!("p{digits}"),
        // The descriptions of these metrics differ only at their ends, which would be cut off.
        (_, Some("m1a")) => "M1a, Whip's formula".to_owned(),
        (_, Some("m1b")) => "M1b, with peer addresses".to_owned(),
        (_, Some("m2")) => "M2, on the wire".to_owned(),
        (_, Some("m3")) => "M3, everything beyond the messages".to_owned(),
        _ => metric_of(metric).1,
    });
    grid.colours.named(grid.colours.others(), names.collect())
}

impl<'a> Over<'a> {
    fn across(&self, facets: &[Facet<'a>]) -> Across<'a> {
        let rows = || facets.iter().flat_map(|facet| facet.rows.iter().copied());
        let Some(factor) = self.grid.x else { return Across::Series(self.used(rows())) };
        let used = rows().filter_map(|row| super::place_of(factor, row)).collect::<BTreeSet<_>>();
        let used = used.into_iter().collect::<Vec<_>>();
        if used.len() < 2 {
            return Across::Series(self.used(rows()));
        }
        let level = |place: &usize| {
            let level = &factor.levels[*place];
            Some((level.as_f64().filter(|value| drawable(*value))?, level.to_string()))
        };
        let levels: Vec<(f64, String)> = used.iter().filter_map(level).collect();
        let spread = levels.len() == used.len() && levels.windows(2).all(|pair| pair[0].0 < pair[1].0);
        match (factor.numeric && spread, self.interaction) {
            (true, _) => Across::Levels(factor, levels),
            (false, true) => Across::Steps(factor, used),
            (false, false) => Across::Words(factor, used),
        }
    }
}

type Place<'a> = &'a dyn Fn(&Row, usize) -> Option<f64>;

fn slots(factor: &Factor, places: &[usize]) -> (Axis, impl Fn(&Row, usize) -> Option<f64>) {
    let names = places.iter().map(|place| factor.levels[*place].to_string()).collect::<Vec<_>>();
    let place = move |row: &Row, _| {
        let level = super::place_of(factor, row)?;
        Some(places.iter().position(|known| *known == level)? as f64)
    };
    (Axis::slots(&names, &factor.name), place)
}

impl Over<'_> {
    fn series_of(&self, row: &Row, metric: usize) -> Option<usize> {
        if self.metrics.len() == 1 {
            return self.grid.series_of(row);
        }
        Some(self.grid.colours.number(self.grid.colours.others(), metric, row))
    }

    fn used<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Vec<usize> {
        let of = |row: &'r Row| (0..self.metrics.len()).filter_map(move |metric| self.series_of(row, metric));
        let used = rows.flat_map(of).collect::<BTreeSet<_>>();
        used.into_iter().collect()
    }

    fn all_marks(&self, row: &Row) -> Vec<Mark> {
        self.metrics.iter().flat_map(|metric| self.marks_of(row, metric, 0.0, 0.0)).collect()
    }

    fn words(&self, findings: &Findings, wanted: &Wanted) -> (String, String, String) {
        let kind = match (self.trials, self.interaction) {
            (true, _) => "scatter",
            (_, true) => "interaction",
            _ => "line",
        };
        let name = format!("{kind}-{}", self.metrics[0]);
        let over = match &self.across {
            Across::Levels(factor, _) | Across::Words(factor, _) | Across::Steps(factor, _) => {
                let by = self.grid.series.filter(|_| self.interaction);
                let by = by.map_or(String::new(), |by| format!(", by {}", by.name));
                format!(" over {}{by}", factor.name)
            }
            Across::Series(_) => String::new(),
        };
        let names = self.metrics.iter().map(|name| Metric::noun_of(name)).collect::<Vec<_>>().join(", ");
        let each = if self.trials { ", every trial" } else { "" };
        // The title may name a factor that the study varies only on larger machines.
        let constant = self.grid.x.filter(|_| over.is_empty()).map(|factor| format!(" over {}", factor.name));
        let without = |title: &String| match constant.as_ref().and_then(|over| title.strip_suffix(over.as_str())) {
            Some(title) => title.to_owned(),
            None => title.clone(),
        };
        let title = wanted.title.as_ref().map(without).unwrap_or_else(|| capitalised(&format!("{names}{over}{each}")));
        let fixed = match (&self.across, self.grid.x) {
            (Across::Series(_), Some(factor)) => {
                let rows = findings.rows.iter().find(|row| row.n > 0);
                rows.and_then(|row| row.factors.get(&factor.name)).map(|level| format!(" At {} {level}.", factor.name))
            }
            _ => None,
        };
        let bars = bars(findings, self.level, ", where wider than the marker");
        let what = match self.trials {
            true => "One marker per trial, each with a fresh server.".to_owned(),
            false => format!("Markers: means over trials. Bars: {bars}."),
        };
        let fitted = match &self.across {
            Across::Levels(factor, _) if self.has_curves(factor) => {
                let band = if findings.quick { "its interval, no stated confidence" } else { "its interval" };
                format!(" Dotted: the fitted Universal Scalability Law; shaded: {band}.")
            }
            _ => String::new(),
        };
        let parallel = match self.interaction {
            true => {
                " Where lines are parallel, the effect of one factor does not depend on the other; multiplicative \
                 effects are parallel on a log axis and fan out on others. For significance, see the effects."
            }
            false => "",
        };
        (name, title, what + &fixed.unwrap_or_default() + &fitted + parallel)
    }

    /// Returns the marks of a row at `x`, with the metric on the y axis. Spreads trials over `spread` drawing units.
    fn marks_of(&self, row: &Row, metric: &str, x: f64, spread: f64) -> Vec<Mark> {
        let detail = self.grid.detail;
        let place = self.metrics.iter().position(|known| known == metric).unwrap_or(0);
        let series = || self.series_of(row, place).map_or("", |series| self.labels[&series].as_str());
        if self.trials {
            let value = |trial: &'_ TrialFinding| {
                Some((trial.order, trial.values.get(metric)?, row.is_marked() || !trial.marks.is_empty()))
            };
            let values: Vec<(u32, f64, bool)> = row.trials.iter().filter_map(value).collect();
            let midpoint = (values.len() as f64 - 1.0) / 2.0;
            let marks = values.iter().enumerate().filter(|(_, (_, value, _))| drawable(*value)).map(
                |(index, (order, value, hollow))| {
                    let words = || format!("{}, trial {order}", number::quantity(*value, &self.unit));
                    let tip = detail.tip(|| tip(series(), row, &words()));
                    // Trials are side by side in execution order, so that equal values do not overlap.
                    let aside = (index as f64 - midpoint) * spread / values.len() as f64;
                    Mark { aside, hollow: *hollow, ..Mark::at(x, *value, tip) }
                },
            );
            return marks.collect();
        }
        let Some(found) = row.metrics.get(metric) else { return Vec::new() };
        let estimate = estimate_at(row, metric, self.level).filter(is_drawable);
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
        let tip = detail.tip(|| tip(series(), row, &words));
        vec![Mark { bar, hollow: row.is_marked() || found.at_least, ..Mark::at(x, y, tip) }]
    }

    fn panel(&self, facet: &Facet<'_>, values: &Axis) -> Panel {
        let title = facet.title.clone();
        match &self.across {
            Across::Levels(factor, levels) => {
                // A few trials side by side need a wider margin than one marker.
                let (margin, most) = if self.trials { (0.11, 44.0) } else { (0.07, 28.0) };
                let x = Axis::levels(levels, &factor.name, margin);
                let width = (Panel::room_aside(&x) * 0.7).min(most);
                let place = |row: &Row, _| row.factors.get(&factor.name).and_then(|level| level.as_f64());
                let mut layers = self.fits(facet, &x, values);
                layers.extend(self.layers(facet, &place, width, !self.trials, false));
                Panel::new(title, x, values.clone(), layers)
            }
            Across::Steps(factor, places) => {
                let room = Panel::slot_room(places.len());
                let (slots, place) = slots(factor, places);
                let layers = self.layers(facet, &place, (room * 0.7).min(28.0), true, false);
                Panel::new(title, slots, values.clone(), layers)
            }
            Across::Words(factor, places) => {
                let (slots, place) = slots(factor, places);
                // If the factor on the axis is also the series, each slot has one series, which needs no offset.
                let is_series = self.grid.series.is_some_and(|series| series.name == factor.name);
                let aside = if is_series && self.metrics.len() == 1 { 1 } else { self.labels.len() };
                let room = if self.trials { 20.0 } else { 10.0 } * aside as f64;
                let layers = self.layers(facet, &place, if aside == 1 { 0.0 } else { room }, false, true);
                let slot = room + 14.0;
                Panel { slot, ..Panel::new(title, values.clone(), slots, layers) }
            }
            Across::Series(used) => {
                let names: Vec<String> = used.iter().map(|series| self.labels[series].clone()).collect();
                let place = |_: &Row, series: usize| Some(used.iter().position(|known| *known == series)? as f64);
                let layers = self.layers(facet, &place, 0.0, false, true);
                let slot = if self.trials { 32.0 } else { 25.0 };
                Panel { slot, ..Panel::new(title, values.clone(), Axis::slots(&names, ""), layers) }
            }
        }
    }

    fn has_curves(&self, factor: &Factor) -> bool {
        let of_it = |found: &Scalability| found.factor == factor.name && !found.curve.is_empty();
        self.metrics == ["throughput"] && self.grid.findings.scalability.iter().any(of_it)
    }

    fn curves(&self, facet: &Facet<'_>) -> Vec<(usize, &Scalability)> {
        let Across::Levels(factor, _) = &self.across else { return Vec::new() };
        if !self.has_curves(factor) {
            return Vec::new();
        }
        let of_factor = self.grid.findings.scalability.iter().filter(|found| found.factor == factor.name);
        let with_series = |found: &'_ Scalability| {
            let of_it = |row: &&&Row| found.series.iter().all(|(name, level)| row.factors.get(name) == Some(level));
            facet.rows.iter().filter(of_it).find_map(|row| self.series_of(row, 0))
        };
        of_factor.filter_map(|found| Some((with_series(found)?, found))).collect()
    }

    fn fits(&self, facet: &Facet<'_>, x: &Axis, y: &Axis) -> Vec<Layer> {
        let within =
            |axis: &Axis, value: f64| axis.scale.place(value).is_some_and(|place| (0.0..=1.0).contains(&place));
        let (bottom, top) = y.ends();
        let layers = self.curves(facet).into_iter().flat_map(|(series, found)| {
            let points = || found.curve.iter().filter(|at| within(x, at.n));
            let line = points().filter(|at| within(y, at.rate_per_s)).map(|at| (at.n, at.rate_per_s)).collect();
            let clamped = |value: f64| value.max(bottom).min(top);
            let seen = |at: &&CurvePoint| at.high >= bottom && at.low <= top;
            let band = points().filter(seen).map(|at| (at.n, clamped(at.low), clamped(at.high))).collect();
            [Layer::Band { series, points: band }, Layer::Fit { series, points: line }]
        });
        layers.collect()
    }

    fn layers(&self, facet: &Facet<'_>, place: Place<'_>, width: f64, joined: bool, turned: bool) -> Vec<Layer> {
        let used = self.used(facet.rows.iter().copied());
        let widest = match (self.trials, turned) {
            (true, false) if used.len() == 1 => 34.0,
            (true, _) => 20.0,
            (false, true) => 10.0,
            (false, false) => 7.0,
        };
        let gap = if width > 0.0 { (width / used.len().max(1) as f64).min(widest) } else { 0.0 };
        let midpoint = (used.len() as f64 - 1.0) / 2.0;
        let mut layers = Vec::new();
        for (index, series) in used.iter().enumerate() {
            let of_series =
                |row: &'_ Row| (0..self.metrics.len()).find(|metric| self.series_of(row, *metric) == Some(*series));
            let mut rows: Vec<(f64, &Row, &str)> = facet
                .rows
                .iter()
                .filter_map(|row| Some((place(row, *series)?, *row, self.metrics[of_series(row)?].as_str())))
                .collect();
            rows.sort_by(|a, b| a.0.total_cmp(&b.0));
            let spread = if width > 0.0 { gap * 0.8 } else { 18.0 };
            let marks = rows.iter().flat_map(|(at, row, metric)| self.marks_of(row, metric, *at, spread));
            let turn = |mark: Mark| if turned { Mark { x: mark.y, y: mark.x, ..mark } } else { mark };
            let marks: Vec<Mark> = marks.map(turn).collect();
            let aside = (index as f64 - midpoint) * gap;
            if self.dust {
                layers.extend(Layer::dust(*series, &marks, aside));
            } else {
                layers.push(Layer::Marks { series: *series, marks, joined, aside });
            }
        }
        layers
    }
}
