//! A metric over a factor: estimates with their intervals, or a point for each trial.

use study::plan::Figure as Wanted;

use super::{Detail, Drawing, Facet, Grid, MARKS, estimate_at, metric_of, percent, tip};
use crate::chart::{Axis, Layer, Mark, Panel, drawable};
use crate::findings::{Factor, Findings, Row};
use crate::number;

/// Lines over a numeric factor with at least two levels measured; else the estimates one below the other, because a line needs
/// an axis and names need room.
pub(super) fn line(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    draw(findings, wanted, detail, false)
}

/// The same with every trial in place of the estimate.
pub(super) fn scatter(findings: &Findings, wanted: &Wanted, detail: Detail) -> Drawing {
    draw(findings, wanted, detail, true)
}

/// One metric over one factor.
struct Over<'a> {
    grid: Grid<'a>,
    metric: String,
    unit: String,
    level: f64,
    /// A point for each trial.
    trials: bool,
    /// Of so many that each is a dot.
    dust: bool,
    labels: Vec<String>,
    across: Across<'a>,
}

/// What the axis of the factor is.
enum Across<'a> {
    /// Numbers.
    Levels(&'a Factor, Vec<(f64, String)>),
    /// Words: a slot each.
    Words(&'a Factor, Vec<usize>),
    /// One level alone: a slot for each series.
    Series(Vec<usize>),
}

fn draw(findings: &Findings, wanted: &Wanted, detail: Detail, trials: bool) -> Drawing {
    let grid = Grid::new(findings, wanted, true, detail);
    let metric = wanted.y.clone().unwrap_or_else(|| findings.metric.clone());
    let (unit, text) = metric_of(findings, &metric);
    let (facets, left_out) = grid.facets();
    let labels = grid.series_labels();
    let across = across(&grid, &facets);
    let dust = trials && facets.iter().flat_map(|facet| &facet.rows).map(|row| row.n).sum::<usize>() > MARKS;
    let over = Over { grid, metric, unit, level: wanted.interval, trials, dust, labels, across };

    let values = facets.iter().flat_map(|facet| &facet.rows).flat_map(|row| over.marks_of(row, 0.0, 0.0));
    // One axis of values for all panels: they are there to be compared.
    let axis = Axis::of_values(
        values.flat_map(|mark| [mark.y].into_iter().chain(mark.bar.map(|b| [b.0, b.1]).into_iter().flatten())),
        &over.unit,
        &text,
    );
    let panels: Vec<Panel> = facets.iter().map(|facet| over.panel(facet, &axis)).collect();

    let (name, title, caption) = over.words(findings, wanted);
    let mut drawing = over.grid.drawing(name, title, caption, &facets, panels);
    if left_out > 0 {
        drawing.notes.insert(0, format!("{left_out} more panels are not drawn; the table has their numbers."));
    }
    let rows = || facets.iter().flat_map(|facet| facet.rows.iter());
    let bare =
        rows().filter(|row| row.metrics.get(&over.metric).is_some_and(|m| m.mean.is_some() && m.estimate.is_none()));
    let bare = bare.count();
    if bare > 0 && !trials {
        drawing
            .notes
            .insert(0, format!("Without a bar, because there is no interval: {bare} of {} points.", rows().count()));
    }
    let missing = rows().filter(|row| over.marks_of(row, 0.0, 0.0).is_empty()).count();
    if missing > 0 {
        drawing.notes.insert(0, format!("{missing} of {} points have no value of {}.", rows().count(), over.metric));
    }
    drawing
}

/// Numbers where two levels or more have data, else words.
fn across<'a>(grid: &Grid<'a>, facets: &[Facet<'a>]) -> Across<'a> {
    let rows = || facets.iter().flat_map(|facet| facet.rows.iter().copied());
    let Some(factor) = grid.x else { return Across::Series(used_series(grid, rows())) };
    let mut used: Vec<usize> = rows().filter_map(|row| super::place_of(factor, row)).collect();
    used.sort_unstable();
    used.dedup();
    if used.len() < 2 {
        return Across::Series(used_series(grid, rows()));
    }
    let level = |place: &usize| {
        let level = &factor.levels[*place];
        Some((level.as_f64().filter(|value| drawable(*value))?, level.to_string()))
    };
    let levels: Vec<(f64, String)> = used.iter().filter_map(level).collect();
    let spread = levels.len() == used.len() && levels.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if factor.numeric && spread { Across::Levels(factor, levels) } else { Across::Words(factor, used) }
}

fn used_series<'a>(grid: &Grid<'a>, rows: impl Iterator<Item = &'a Row>) -> Vec<usize> {
    let mut used: Vec<usize> = rows.filter_map(|row| grid.series_of(row)).collect();
    used.sort_unstable();
    used.dedup();
    used
}

impl Over<'_> {
    /// Name of the file, title, caption.
    fn words(&self, findings: &Findings, wanted: &Wanted) -> (String, String, String) {
        let kind = if self.trials { "scatter" } else { "line" };
        let name = format!("{kind}-{}", self.metric);
        let over = match &self.across {
            Across::Levels(factor, _) | Across::Words(factor, _) => format!(" over {}", factor.name),
            Across::Series(_) => String::new(),
        };
        let mut generated: Vec<char> = format!("{}{over}", self.metric.replace('_', " ")).chars().collect();
        if let Some(first) = generated.first_mut() {
            first.make_ascii_uppercase();
        }
        let each = if self.trials { ", every trial" } else { "" };
        let title = wanted.title.clone().unwrap_or_else(|| generated.into_iter().chain(each.chars()).collect());
        let fixed = match (&self.across, self.grid.x) {
            (Across::Series(_), Some(factor)) => {
                let rows = findings.rows.iter().find(|row| row.n > 0);
                rows.and_then(|row| row.factors.get(&factor.name)).map(|level| format!(" At {} {level}.", factor.name))
            }
            _ => None,
        };
        let what = if self.trials {
            "One marker a trial, each with a subject started fresh.".to_owned()
        } else if findings.quick {
            "Markers: means over trials. Bars: a quick look, which claims no level of confidence.".to_owned()
        } else {
            format!(
                "Markers: means over trials. Bars: {} % intervals; where none is seen, it is narrower than the marker.",
                percent(self.level)
            )
        };
        let fitted = matches!(&self.across, Across::Levels(factor, _) if self.metric == "throughput" && !self.trials
            && findings.scalability.iter().any(|found| found.fit.is_some() && found.factor == factor.name));
        let fitted = if fitted { " Dotted: the fitted Universal Scalability Law." } else { "" };
        (name, title, what + &fixed.unwrap_or_default() + fitted)
    }

    /// The marks of a row with its place on the axis of the factor, trials within `spread` units; `y` is always the value
    /// here, [`Over::panel`] turns it.
    fn marks_of(&self, row: &Row, x: f64, spread: f64) -> Vec<Mark> {
        let tips = self.grid.detail.tips;
        let series = || self.grid.series_of(row).map_or("", |series| self.labels[series].as_str());
        if self.trials {
            let values: Vec<(u32, f64)> =
                row.trials.iter().filter_map(|trial| Some((trial.order, *trial.values.get(&self.metric)?))).collect();
            let middle = (values.len() as f64 - 1.0) / 2.0;
            let marks =
                values.iter().enumerate().filter(|(_, (_, value))| drawable(*value)).map(|(index, (order, value))| {
                    Mark {
                        // Side by side in the order they ran, so that trials with one value do not hide each other.
                        aside: (index as f64 - middle) * spread / values.len() as f64,
                        x,
                        y: *value,
                        bar: None,
                        hollow: row.is_marked(),
                        tip: if tips {
                            tip(series(), row, &format!("{}, trial {order}", number::quantity(*value, &self.unit)))
                        } else {
                            String::new()
                        },
                    }
                });
            return marks.collect();
        }
        let Some(metric) = row.metrics.get(&self.metric) else { return Vec::new() };
        let sound = |e: &crate::findings::Estimate| {
            [e.point, e.low, e.high, e.half_width()].iter().all(|value| drawable(*value))
        };
        let estimate = estimate_at(row, &self.metric, self.level).filter(sound);
        let Some(y) = estimate.map(|e| e.point).or(metric.mean).filter(|value| drawable(*value)) else {
            return Vec::new();
        };
        let bar = estimate.map(|e| (e.low, e.high));
        let words = match estimate {
            Some(e) => format!(
                "{} ({}, {} %)",
                number::estimate(&e, &self.unit),
                number::count(e.n, "trial"),
                percent(e.level)
            ),
            None => {
                format!("{}, no interval ({})", number::quantity(y, &self.unit), number::count(row.n as u64, "trial"))
            }
        };
        vec![Mark {
            x,
            y,
            aside: 0.0,
            bar,
            hollow: row.is_marked(),
            tip: if tips { tip(series(), row, &words) } else { String::new() },
        }]
    }

    fn panel(&self, facet: &Facet<'_>, values: &Axis) -> Panel {
        let title = facet.title.clone();
        match &self.across {
            Across::Levels(factor, levels) => {
                // Few trials side by side need more room at the ends than one marker.
                let (margin, most) = if self.trials { (0.11, 44.0) } else { (0.07, 28.0) };
                let x = Axis::levels(levels, &factor.name, margin);
                let width = (Panel::room_aside(&x) * 0.7).min(most);
                let place = |row: &Row| row.factors.get(&factor.name).and_then(|level| level.as_f64());
                let mut layers = self.fits(facet, factor, &x, values);
                layers.extend(self.layers(facet, &place, width, !self.trials, false));
                Panel { title, x, y: values.clone(), layers, slot: 0.0 }
            }
            Across::Words(factor, places) => {
                let names: Vec<String> = places.iter().map(|place| factor.levels[*place].to_string()).collect();
                let place = |row: &Row| {
                    let level = super::place_of(factor, row)?;
                    Some(places.iter().position(|known| *known == level)? as f64)
                };
                let slot = if self.trials { 20.0 } else { 10.0 } * self.labels.len() as f64 + 14.0;
                let layers = self.layers(facet, &place, slot - 14.0, false, true);
                Panel { title, x: values.clone(), y: Axis::slots(&names, &factor.name), layers, slot }
            }
            Across::Series(used) => {
                let names: Vec<String> = used.iter().map(|series| self.labels[*series].clone()).collect();
                let place = |row: &Row| {
                    let series = self.grid.series_of(row)?;
                    Some(used.iter().position(|known| *known == series)? as f64)
                };
                let layers = self.layers(facet, &place, 0.0, false, true);
                let slot = if self.trials { 32.0 } else { 25.0 };
                Panel { title, x: values.clone(), y: Axis::slots(&names, ""), layers, slot }
            }
        }
    }

    /// The fitted laws of scalability of this panel, where they lie within its axes.
    fn fits(&self, facet: &Facet<'_>, factor: &Factor, x: &Axis, y: &Axis) -> Vec<Layer> {
        let mut layers = Vec::new();
        if self.metric != "throughput" || self.trials {
            return layers;
        }
        for found in self.grid.findings.scalability.iter().filter(|found| found.factor == factor.name) {
            let of_it = |row: &&&Row| found.series.iter().all(|(name, level)| row.factors.get(name) == Some(level));
            let rows = || facet.rows.iter().filter(of_it);
            let series = rows().find_map(|row| self.grid.series_of(row));
            let (Some(fit), Some(series)) = (&found.fit, series) else { continue };
            let at = rows().filter_map(|row| row.factors.get(&factor.name)?.as_f64()).filter(|n| *n > 0.0);
            let (low, high) = at.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), n| (low.min(n), high.max(n)));
            let within =
                |axis: &Axis, value: f64| axis.scale.place(value).is_some_and(|place| (0.0..=1.0).contains(&place));
            let point = |index: i32| {
                let n = low * (high / low).powf(f64::from(index) / 40.0);
                let lost = fit.contention.point * (n - 1.0) + fit.coherency.point * n * (n - 1.0);
                (n, fit.rate_per_s.point * n / (1.0 + lost))
            };
            let points = (0..=40).map(point).filter(|(n, rate)| within(x, *n) && within(y, *rate)).collect();
            layers.push(Layer::Fit { series, points });
        }
        layers
    }

    /// A layer for each series. `width` is the room, in the panel's units, in which all series stand side by side.
    fn layers(
        &self,
        facet: &Facet<'_>,
        place: &dyn Fn(&Row) -> Option<f64>,
        width: f64,
        joined: bool,
        turned: bool,
    ) -> Vec<Layer> {
        let used = used_series(&self.grid, facet.rows.iter().copied());
        let widest = match (self.trials, turned) {
            (true, _) => 20.0,
            (false, true) => 10.0,
            (false, false) => 7.0,
        };
        let gap = if width > 0.0 { (width / used.len().max(1) as f64).min(widest) } else { 0.0 };
        let middle = (used.len() as f64 - 1.0) / 2.0;
        let mut layers = Vec::new();
        for (index, series) in used.iter().enumerate() {
            let mut rows: Vec<(f64, &Row)> = facet
                .rows
                .iter()
                .filter(|row| self.grid.series_of(row) == Some(*series))
                .filter_map(|row| Some((place(row)?, *row)))
                .collect();
            rows.sort_by(|a, b| a.0.total_cmp(&b.0));
            let spread = if width > 0.0 { gap * 0.8 } else { 18.0 };
            let marks: Vec<Mark> = rows.iter().flat_map(|(at, row)| self.marks_of(row, *at, spread)).collect();
            let turn = |mark: Mark| if turned { Mark { x: mark.y, y: mark.x, ..mark } } else { mark };
            let marks: Vec<Mark> = marks.into_iter().map(turn).collect();
            let aside = (index as f64 - middle) * gap;
            if self.dust {
                layers.extend(Layer::dust(*series, &marks, aside));
            } else {
                layers.push(Layer::Marks { series: *series, marks, joined, aside });
            }
        }
        layers
    }
}
