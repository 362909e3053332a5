//! Panels: two axes and a plot between them, so narrow that several fit on a wide page and one fits on a phone.

mod axis;
pub(crate) mod style;
pub(crate) mod text_width_and_wrap;

pub(crate) use axis::{Axis, Scale};

use std::collections::BTreeMap;

use text_width_and_wrap::{width, wrap};

use crate::svg::{self, Path};

/// Width of every panel, in user units.
pub(crate) const WIDTH: f64 = 380.0;

pub(crate) const FONT: f64 = 11.5;

/// Effective font size of titles for [`width`]: 12.5, with bold letters a tenth wider.
pub(crate) const TITLE: f64 = 12.5 * 1.1;

/// Space above a plot for its value label, in user units.
const TOP: f64 = 26.0;
const PLOT_HEIGHT: f64 = 190.0;
const BOTTOM: f64 = 42.0;
/// Gap between stacked plots in addition to the value label, in user units.
const BETWEEN: f64 = 8.0;
const LINE: f64 = 14.0;
const TITLE_LINE: f64 = 16.0;
const RADIUS: f64 = 3.1;
const CAP: f64 = 4.0;

/// Maximum space for slot names on the left, in user units.
const NAMES: f64 = 132.0;

/// Space for a name at the end of a line, in user units; `END_GAP` is the gap before it.
const END_ROOM: f64 = 96.0;
const END_GAP: f64 = 10.0;
/// Fraction of the x axis that a line must cover to get a name at its end.
const REACH: f64 = 0.7;
const REACH_ASIDE: f64 = 0.1;
/// Maximum vertical distance between a name and the end of its line, in user units.
const END_ASIDE: f64 = 26.0;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) layers: Vec<Layer>,
    /// Height of a slot in a panel with names on the left, in user units.
    pub(crate) slot: f64,
    /// Height of the plot in a panel with vertical values, in user units.
    pub(crate) tall: f64,
    /// Panels below with a common x axis and value unit, from the top. The last one has the x label.
    pub(crate) below: Vec<Panel>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    /// Number of the series, which selects color and marker; `None` for the color of text.
    pub(crate) series: Option<usize>,
    pub(crate) shape: Shape,
    /// Shift of a series, in user units, so that its markers do not hide others.
    pub(crate) aside: f64,
    /// Name at the end of a line; empty if there is none.
    pub(crate) name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Rule(f64), // a dashed horizontal line at a value of y
    Curve(Vec<(f64, f64)>),
    Fit(Vec<(f64, f64)>),       // dotted
    Simulated(Vec<(f64, f64)>), // the curve of a replay: thin, dashed, behind the data
    Band(Vec<(f64, f64, f64)>), // around a fit: x, lower end, upper end
    Marks { marks: Vec<Mark>, joined: bool },
    Dust { points: Vec<(f64, f64)>, hollow: bool }, // without tooltips
    Heat(Vec<Cell>),
    Plain { points: Vec<(f64, f64)>, dashed: bool }, // without a series
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    /// Darkness of the cell, 1 to [`style::SHADES`].
    pub(crate) shade: usize,
}

impl Layer {
    pub(crate) fn new(series: impl Into<Option<usize>>, shape: Shape) -> Layer {
        Layer { series: series.into(), shape, aside: 0.0, name: String::new() }
    }

    /// The end of a line, which may have a name.
    fn end(&self) -> Option<(f64, f64)> {
        match &self.shape {
            Shape::Curve(points) | Shape::Simulated(points) | Shape::Plain { points, .. } => points.last().copied(),
            Shape::Marks { marks, joined: true } => marks.last().map(|mark| (mark.x, mark.y)),
            _ => None,
        }
    }

    pub(crate) fn dust(series: usize, marks: &[Mark], aside: f64) -> impl Iterator<Item = Layer> {
        [false, true].into_iter().filter_map(move |hollow| {
            let points = marks.iter().filter(|mark| mark.hollow == hollow).map(|mark| (mark.x, mark.y));
            let points = points.collect::<Vec<_>>();
            (!points.is_empty()).then(|| Layer { aside, ..Layer::new(series, Shape::Dust { points, hollow }) })
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Horizontal shift in addition to the layer's, in user units.
    pub(crate) aside: f64,
    /// Ends of the interval on the value axis; `None` without an interval.
    pub(crate) bar: Option<(f64, f64)>,
    pub(crate) hollow: bool,
    pub(crate) tip: String,
}

impl Mark {
    pub(crate) fn at(x: f64, y: f64, tip: String) -> Mark {
        Mark { x, y, aside: 0.0, bar: None, hollow: false, tip }
    }

    /// The value and the ends of the interval.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + use<> {
        [Some(self.y), self.bar.map(|bar| bar.0), self.bar.map(|bar| bar.1)].into_iter().flatten()
    }
}

impl Panel {
    pub(crate) fn new(title: String, x: Axis, y: Axis, layers: Vec<Layer>) -> Panel {
        Panel { title, x, y, layers, slot: 0.0, tall: PLOT_HEIGHT, below: Vec::new() }
    }

    fn lying(&self) -> bool {
        matches!(self.y.scale, Scale::Slots { .. })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Panel> {
        std::iter::once(self).chain(&self.below)
    }

    /// Names the lines at their ends if all names fit. Returns whether they do. `names` has all series of the figure.
    pub(crate) fn name_lines(&mut self, names: &BTreeMap<usize, String>) -> bool {
        let place = |(x, _)| self.x.scale.place(x).unwrap_or(0.0);
        let lines = self.layers.iter().filter_map(|layer| Some((layer.series?, place(layer.end()?))));
        let lines = lines.collect::<BTreeMap<_, _>>();
        let farthest = lines.values().copied().fold(REACH, f64::max);
        let is_short = |series| names.get(series).is_some_and(|name| width(name, FONT) <= END_ROOM);
        let fit = lines.iter().all(|(series, place)| is_short(series) && *place >= farthest - REACH_ASIDE);
        let only_lines = self.layers.iter().filter_map(|layer| layer.series).all(|series| lines.contains_key(&series));
        if lines.is_empty() || !fit || !only_lines || self.lying() || !self.below.is_empty() {
            return false;
        }
        for layer in self.layers.iter_mut().filter(|layer| layer.end().is_some()) {
            layer.name = layer.series.map_or(String::new(), |series| names[&series].clone());
        }
        let frame = &self.frames()[0];
        let ends = frame.end_names();
        ends.iter().all(|end| (end.y - end.from.1).abs() <= END_ASIDE) && frame.has_room_for(&ends)
    }

    pub(crate) fn has_slot(&self, name: &str) -> bool {
        self.lying() && self.y.major.iter().any(|(_, slot)| slot == name)
    }

    pub(crate) fn named_layers(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| !layer.name.is_empty())
    }

    pub(crate) fn height(&self) -> f64 {
        let frames = self.frames();
        let Some(frame) = frames.last() else { return BOTTOM };
        let lines = frame.slot_lines().saturating_sub(1) + frame.panel.x_label().len().saturating_sub(1);
        frame.bottom + BOTTOM + LINE * lines as f64
    }

    pub(crate) fn draw(&self) -> String {
        let mut drawn = svg::lines("tt", (4.0, 14.0), TITLE_LINE, &self.title_lines());
        for (index, frame) in self.frames().iter().enumerate() {
            drawn += &frame.axes(index == self.below.len());
            drawn.extend(frame.panel.layers.iter().map(|layer| frame.layer(layer)));
            drawn.extend(frame.end_names().iter().map(|end| frame.end_name(end)));
        }
        drawn
    }

    fn title_lines(&self) -> Vec<String> {
        wrap(&self.title, WIDTH - 8.0, TITLE)
    }

    fn x_label(&self) -> Vec<String> {
        wrap(&self.x.label, WIDTH - 8.0, FONT)
    }

    fn y_label(&self) -> Vec<String> {
        if self.lying() { Vec::new() } else { wrap(&self.y.label, WIDTH - 8.0, FONT) }
    }

    /// Frames of this panel's plot and the plots below, stacked with common left and right edges.
    fn frames(&self) -> Vec<Frame<'_>> {
        let widest =
            |text: &String, room: f64| wrap(text, room, FONT).iter().map(|line| width(line, FONT)).fold(0.0, f64::max);
        let labels = self.all().flat_map(|panel| &panel.y.major);
        let left = labels.map(|(_, label)| widest(label, NAMES)).fold(0.0, f64::max) + 10.0;
        // The last x label is centered on its mark and must stay inside the panel.
        let last = self.x.major.last().map_or(0.0, |(_, label)| width(label, FONT) / 2.0);
        let named = self.all().flat_map(Panel::named_layers);
        let ends = named.map(|layer| widest(&layer.name, END_ROOM) + END_GAP + 2.0).fold(0.0, f64::max);
        let right = WIDTH - last.clamp(8.0, 40.0).max(ends);
        let mut top = TITLE_LINE * self.title_lines().len() as f64 - BETWEEN;
        let mut frames = Vec::new();
        for panel in self.all() {
            let height = match panel.y.scale {
                Scale::Slots { count } => {
                    let names = panel.y.major.iter().map(|(_, label)| wrap(label, NAMES, FONT).len());
                    let lines = names.max().unwrap_or(1);
                    let slot = if lines > 1 { panel.slot.max(LINE * lines as f64 + 6.0) } else { panel.slot };
                    top += BETWEEN + TOP - 18.0;
                    slot * count as f64 + 6.0
                }
                _ => {
                    top += BETWEEN + TOP + LINE * panel.y_label().len().saturating_sub(1) as f64;
                    panel.tall
                }
            };
            frames.push(Frame { panel, left, right, top, bottom: top + height });
            top += height;
        }
        frames
    }

    pub(crate) fn slot_room(count: usize) -> f64 {
        (WIDTH - NAMES) / count.max(1) as f64
    }

    /// Smallest distance between marks of the x axis, which is the space for markers side by side, in user units.
    pub(crate) fn room_aside(x: &Axis) -> f64 {
        let levels: Vec<f64> = x.major.iter().map(|(value, _)| *value).collect();
        axis::closest(&x.scale, &levels) * (WIDTH - 70.0)
    }
}

/// Moves overlapping names apart into piles, centered on their lines' ends and between `top` and `bottom` if possible.
fn spread(ends: &mut [EndName], top: f64, bottom: f64) {
    // Each pile has the index of its first name, its height, and the average upper edge of its names.
    let mut piles: Vec<(usize, f64, f64)> = Vec::new();
    for (index, end) in ends.iter().enumerate() {
        let mut pile = (index, end.height(), end.from.1 - end.height() / 2.0);
        while let Some((first, height, upper)) = piles.pop_if(|(_, height, upper)| *upper + *height > pile.2) {
            let (here, all) = ((index + 1 - pile.0) as f64, (index + 1 - first) as f64);
            let upper = (upper * (all - here) + (pile.2 - height) * here) / all;
            pile = (first, height + pile.1, upper);
        }
        piles.push(pile);
    }
    let mut free = top;
    for (_, height, upper) in &mut piles {
        *upper = upper.max(free);
        free = *upper + *height;
    }
    let mut free = bottom;
    for (_, height, upper) in piles.iter_mut().rev() {
        *upper = upper.min(free - *height);
        free = *upper;
    }
    let mut y = top;
    for (index, end) in ends.iter_mut().enumerate() {
        y = piles.iter().find(|(first, ..)| *first == index).map_or(y, |(_, _, upper)| *upper);
        end.y = y + end.height() / 2.0;
        y += end.height();
    }
}

struct EndName {
    series: Option<usize>,
    lines: Vec<String>,
    from: (f64, f64),
    y: f64,
}

impl EndName {
    fn height(&self) -> f64 {
        LINE * self.lines.len() as f64
    }
}

/// The plot of a panel, which draws values at their positions.
struct Frame<'a> {
    panel: &'a Panel,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame<'_> {
    /// Position of a value. The ends of an axis are exactly on its edges, despite rounding.
    fn x(&self, value: f64) -> Option<f64> {
        Some(self.left + self.panel.x.scale.place(value)?.clamp(0.0, 1.0) * (self.right - self.left))
    }

    fn y(&self, value: f64) -> Option<f64> {
        let place = self.panel.y.scale.place(value)?.clamp(0.0, 1.0);
        // Names run from the top, values from the bottom.
        let from_top = if self.panel.lying() { place } else { 1.0 - place };
        Some(self.top + from_top * (self.bottom - self.top))
    }

    fn place(&self, (x, y): (f64, f64), aside: f64) -> Option<(f64, f64)> {
        let (dx, dy) = if self.panel.lying() { (0.0, aside) } else { (aside, 0.0) };
        Some((self.x(x)? + dx, self.y(y)? + dy))
    }

    fn slot_name(&self, label: &str) -> Vec<String> {
        match self.panel.x.scale {
            Scale::Slots { count } => wrap(label, (self.right - self.left) / count as f64 - 6.0, FONT),
            _ => vec![label.to_owned()],
        }
    }

    fn slot_lines(&self) -> usize {
        self.panel.x.major.iter().map(|(_, label)| self.slot_name(label).len()).max().unwrap_or(1)
    }

    fn end_names(&self) -> Vec<EndName> {
        let ends = self.panel.named_layers().filter_map(|layer| {
            let from = self.place(layer.end()?, 0.0)?;
            Some(EndName { series: layer.series, lines: wrap(&layer.name, END_ROOM, FONT), from, y: from.1 })
        });
        let mut ends = ends.collect::<Vec<_>>();
        ends.sort_by(|a, b| a.from.1.total_cmp(&b.from.1));
        spread(&mut ends, self.top - LINE / 2.0, self.bottom + LINE / 2.0);
        ends
    }

    fn has_room_for(&self, ends: &[EndName]) -> bool {
        let apart = ends.windows(2).all(|two| two[1].y - two[0].y >= (two[0].height() + two[1].height()) / 2.0 - 0.1);
        let within = |end: &EndName| {
            end.y - end.height() / 2.0 >= self.top - LINE && end.y + end.height() / 2.0 <= self.bottom + LINE
        };
        apart && ends.iter().all(within)
    }

    fn end_name(&self, end: &EndName) -> String {
        let class = end.series.map_or("fg".to_owned(), |series| format!("c{}", style::colour_class(series)));
        let line = Path::through([end.from, (self.right + END_GAP - 3.0, end.y)]);
        let names = svg::lines("", (self.right + END_GAP, first_line(end.y, &end.lines)), LINE, &end.lines);
        svg::group(&class, &svg::path("nm", &line)) + &names
    }

    fn axes(&self, named: bool) -> String {
        let Panel { x, y, .. } = self.panel;
        let grid = |values: &mut dyn Iterator<Item = f64>| {
            let mut path = Path::default();
            for value in values {
                match (self.panel.lying(), self.x(value), self.y(value)) {
                    (true, Some(x), _) => path.to(x, self.top).down(self.bottom),
                    (false, _, Some(y)) => path.to(self.left, y).across(self.right),
                    _ => &mut path,
                };
            }
            path
        };
        let values = if self.panel.lying() { x } else { y };
        let minor = ("gm", grid(&mut values.minor.iter().copied()));
        let major = ("gr", grid(&mut values.major.iter().map(|(value, _)| *value)));
        let lines = [minor, major].into_iter().filter(|(_, path)| !path.is_empty());
        let mut drawn = lines.map(|(class, path)| svg::path(class, &path)).collect::<String>();
        for (value, label) in &y.major {
            let Some(y) = self.y(*value) else { continue };
            let lines = wrap(label, NAMES, FONT);
            drawn += &svg::lines("end", (self.left - 6.0, first_line(y, &lines)), LINE, &lines);
        }
        drawn.extend(named.then(|| self.x_names()));
        let mut base = Path::default();
        base.to(self.left, self.top).down(self.bottom).across(self.right);
        let ticks = x.minor.iter().map(|value| (*value, 2.5)).chain(x.major.iter().map(|(value, _)| (*value, 4.0)));
        for (x, length) in ticks.filter_map(|(value, length)| Some((self.x(value)?, length))) {
            base.to(x, self.bottom).down(self.bottom + length);
        }
        let label = self.panel.y_label();
        let first = self.top - 11.0 - LINE * label.len().saturating_sub(1) as f64;
        drawn + &svg::path("ax", &base) + &svg::lines("mu", (4.0, first), LINE, &label)
    }

    fn x_names(&self) -> String {
        // Overlapping labels are skipped, except for the last one, which shows the end of the axis.
        let Axis { scale, major, .. } = &self.panel.x;
        let slots = matches!(scale, Scale::Slots { .. });
        let half = |text: &str| width(text, FONT) / 2.0;
        let mut taken = f64::NEG_INFINITY;
        let end = major.last().and_then(|(value, label)| Some(self.x(*value)? - half(label))).unwrap_or(f64::INFINITY);
        let mut drawn = String::new();
        for (index, (value, label)) in major.iter().enumerate() {
            let Some(x) = self.x(*value) else { continue };
            let (left, right) = (x - half(label), x + half(label) + 4.0);
            if slots || (left >= taken && (right <= end || index + 1 == major.len())) {
                drawn += &svg::lines("mid", (x, self.bottom + 17.0), LINE, &self.slot_name(label));
                taken = right;
            }
        }
        let below = LINE * self.slot_lines().saturating_sub(1) as f64;
        for (index, line) in self.panel.x_label().iter().enumerate() {
            let middle = ((self.left + self.right) / 2.0).min(WIDTH - half(line)).max(half(line));
            let y = self.bottom + 34.0 + below + LINE * index as f64;
            drawn += &svg::text("mu mid", middle, y, line);
        }
        drawn
    }

    fn layer(&self, layer: &Layer) -> String {
        let (series, aside) = (layer.series.unwrap_or(0), layer.aside);
        let drawn = match &layer.shape {
            Shape::Rule(value) => {
                let rule = |y| svg::path("rf", Path::default().to(self.left, y).across(self.right));
                self.y(*value).map(rule).unwrap_or_default()
            }
            Shape::Plain { points, dashed } => self.line(if *dashed { "l fg l2" } else { "l fg" }, points, aside),
            Shape::Heat(cells) => self.cells(cells),
            Shape::Curve(points) => self.line(style::dashes(series), points, aside),
            Shape::Fit(points) => self.line("l ft", points, aside),
            Shape::Simulated(points) => self.line(style::simulated(series), points, aside),
            Shape::Band(points) => self.band(points),
            Shape::Dust { points, hollow } => {
                let mut path = Path::default();
                for (x, y) in points.iter().filter_map(|point| self.place(*point, aside)) {
                    // A zero-length line with round ends is the shortest way to draw a dot.
                    path.to(x, y).across(x);
                }
                // A dot in the background color turns each larger dot into a ring.
                let ring = if *hollow { svg::path("dh", &path) } else { String::new() };
                svg::path("d", &path) + &ring
            }
            Shape::Marks { marks, joined } => {
                let points = marks.iter().map(|mark| (mark.x, mark.y)).collect::<Vec<_>>();
                let line = if *joined { self.line(style::dashes(series), &points, aside) } else { String::new() };
                line + &marks.iter().map(|mark| self.mark(series, mark, aside)).collect::<String>()
            }
        };
        match layer.series {
            Some(series) => format!("<g class=\"c{}\" data-s=\"{series}\">{drawn}</g>", style::colour_class(series)),
            None => drawn,
        }
    }

    fn line(&self, class: &str, points: &[(f64, f64)], aside: f64) -> String {
        let places = points.iter().filter_map(|point| self.place(*point, aside)).collect::<Vec<_>>();
        if places.len() > 1 { svg::path(class, &Path::through(places)) } else { String::new() }
    }

    /// Draws one path per shade and one stroke per cell, as thick as the cell is high. Adjacent cells share a stroke.
    fn cells(&self, cells: &[Cell]) -> String {
        // Thickness is in tenths of a unit, because floats cannot be keys.
        let mut paths: BTreeMap<(usize, u64), (Path, (f64, f64))> = BTreeMap::new();
        for cell in cells {
            let corners = self.place((cell.x.0, cell.y.0), 0.0).zip(self.place((cell.x.1, cell.y.1), 0.0));
            let Some(((left, low), (right, high))) = corners else { continue };
            let thick = ((low - high).abs() * 10.0).round() as u64;
            let y = (low + high) / 2.0;
            let (path, at) = paths.entry((cell.shade, thick)).or_insert((Path::default(), (f64::NAN, f64::NAN)));
            if *at != (left, y) {
                path.to(left, y);
            }
            path.across(right);
            *at = (right, y);
        }
        let stroke = |((shade, thick), (path, _)): (&(usize, u64), &(Path, _))| {
            svg::stroke(&format!("ht t{shade}"), *thick as f64 / 10.0, path)
        };
        paths.iter().map(stroke).collect()
    }

    fn band(&self, points: &[(f64, f64, f64)]) -> String {
        let place =
            |(x, low, high): &(f64, f64, f64)| Some((self.place((*x, *low), 0.0)?, self.place((*x, *high), 0.0)?));
        let (low, high): (Vec<_>, Vec<_>) = points.iter().filter_map(place).unzip();
        let edge = low.iter().chain(high.iter().rev()).copied();
        if low.len() > 1 { svg::path("bd", Path::through(edge).shut()) } else { String::new() }
    }

    fn mark(&self, series: usize, mark: &Mark, aside: f64) -> String {
        let Some((x, y)) = self.place((mark.x, mark.y), aside + mark.aside) else { return String::new() };
        let shape = style::marker(series, x, y, RADIUS);
        match mark.bar.and_then(|bar| self.bar(bar, x, y)) {
            None => svg::path_with_tip(if mark.hollow { "m k h" } else { "m k" }, &shape, &mark.tip),
            Some(bar) => {
                let drawn = svg::tip(&mark.tip) + &svg::path("e", &bar) + &svg::path("k", &shape);
                svg::group(if mark.hollow { "m h" } else { "m" }, &drawn)
            }
        }
    }

    /// Draws the bar of an interval; `None` if the marker would hide everything except the caps.
    fn bar(&self, (low, high): (f64, f64), x: f64, y: f64) -> Option<Path> {
        let mut bar = Path::default();
        let length = if self.panel.lying() {
            let (low, high) = (self.x(low)?, self.x(high)?);
            bar.to(low, y).across(high).to(low, y - CAP).down(y + CAP).to(high, y - CAP).down(y + CAP);
            high - low
        } else {
            let (low, high) = (self.y(low)?, self.y(high)?);
            bar.to(x, low).down(high).to(x - CAP, low).across(x + CAP).to(x - CAP, high).across(x + CAP);
            high - low
        };
        (length.abs() > RADIUS * 2.0 + 1.5).then_some(bar)
    }
}

/// Baseline of the first of several lines that are centered at `y`.
fn first_line(y: f64, lines: &[String]) -> f64 {
    y + 4.0 - LINE * lines.len().saturating_sub(1) as f64 / 2.0
}

pub(crate) fn panel_svg(panel: &Panel, label: &str) -> String {
    svg::image((WIDTH, panel.height()), label, &panel.draw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_names_near_line_ends_without_overlap() {
        let at = |ys: &[f64]| {
            let end = |y: &f64| EndName { series: None, lines: vec!["x".to_owned()], from: (0.0, *y), y: *y };
            let mut ends = ys.iter().map(end).collect::<Vec<_>>();
            spread(&mut ends, 0.0, 100.0);
            ends.iter().map(|end| end.y).collect::<Vec<_>>()
        };
        assert_eq!(at(&[20.0, 60.0]), [20.0, 60.0], "as they are");
        assert_eq!(at(&[50.0, 50.0, 50.0]), [36.0, 50.0, 64.0], "around their center");
        assert_eq!(at(&[0.0, 1.0]), [7.0, 21.0], "not above the plot");
        assert_eq!(at(&[90.0, 99.0, 100.0]), [65.0, 79.0, 93.0], "nor below it");
        assert_eq!(at(&[]), [0.0; 0]);
    }

    #[test]
    fn omits_names_if_lines_end_too_close() {
        let panel = |lines: usize, far: f64| {
            let points = |series: usize| vec![(0.0, 0.0), (far, series as f64 / 10.0)];
            let layer = |series: usize| Layer::new(series, Shape::Curve(points(series)));
            let (x, y) = (Axis::linear(0.0, 10.0, "", "x"), Axis::linear(0.0, 10.0, "", "y"));
            Panel::new(String::new(), x, y, (0..lines).map(layer).collect())
        };
        let named = |lines, far, name: &str| {
            let names = (0..lines).map(|series| (series, format!("{name} {series}"))).collect();
            panel(lines, far).name_lines(&names)
        };
        assert!(named(3, 10.0, "go"));
        assert!(!named(12, 10.0, "go"), "too many at one place");
        assert!(!named(3, 4.0, "go"), "too far from the side where names stand");
        assert!(!named(3, 10.0, "a name that is longer than all the room there is"));
        assert!(!panel(3, 10.0).name_lines(&BTreeMap::from([(0, "go".to_owned())])), "one has no name");
    }

    #[test]
    fn a_panel() {
        let mark = |x, y, hollow, bar| Mark { x, y, aside: 0.0, bar, hollow, tip: format!("<{x}>") };
        let marks = vec![mark(1.0, 30.0, false, Some((20.0, 40.0))), mark(2.0, 50.0, true, Some((49.9, 50.1)))];
        let panel = Panel::new(
            "clients 40 & more".to_owned(),
            Axis::levels(&[(1.0, "1".to_owned()), (2.0, "2".to_owned())], "cores", 0.1),
            Axis::linear(0.0, 60.0, "1", "errors"),
            vec![Layer::new(9, Shape::Marks { marks, joined: true })],
        );
        let svg = panel_svg(&panel, "all").replace("><", ">\n<");
        insta::assert_snapshot!(svg, @r##"
        <svg class="q" viewBox="0 0 380 274" role="img" aria-label="all">
        <text class="tt" x="4" y="14">clients 40 &amp; more</text>
        <path class="gr" d="M24.7 232H372M24.7 200.3H372M24.7 168.7H372M24.7 137H372M24.7 105.3H372M24.7 73.7H372M24.7 42H372"/>
        <text class="end" x="18.7" y="236">0</text>
        <text class="end" x="18.7" y="204.3">10</text>
        <text class="end" x="18.7" y="172.7">20</text>
        <text class="end" x="18.7" y="141">30</text>
        <text class="end" x="18.7" y="109.3">40</text>
        <text class="end" x="18.7" y="77.7">50</text>
        <text class="end" x="18.7" y="46">60</text>
        <text class="mid" x="53.7" y="249">1</text>
        <text class="mid" x="343.1" y="249">2</text>
        <text class="mu mid" x="198.4" y="266">cores</text>
        <path class="ax" d="M24.7 42V232H372M53.7 232V236M343.1 232V236"/>
        <text class="mu" x="4" y="31">errors</text>
        <g class="c1" data-s="9">
        <path class="l l2" d="M53.7 137L343.1 73.7"/>
        <g class="m">
        <title>&lt;1&gt;</title>
        <path class="e" d="M53.7 168.7V105.3M49.7 168.7H57.7M49.7 105.3H57.7"/>
        <path class="k" d="M53.7 140.9l3.7 -6.5l-7.4 0z"/>
        </g>
        <path class="m k h" d="M343.1 77.5l3.7 -6.5l-7.4 0z">
        <title>&lt;2&gt;</title>
        </path>
        </g>
        </svg>
        "##);
    }
}
