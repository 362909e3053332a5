//! Panels: two axes and a plot between them, so narrow that several fit on a wide page and one fits on a phone.

pub(crate) mod axis_layout;
pub(crate) mod scale;
pub(crate) mod style;
pub(crate) mod text_width_and_wrap;
pub(crate) mod ticks;

pub(crate) use axis_layout::Axis;

use std::collections::{BTreeMap, BTreeSet};

use scale::Scale;

use crate::svg::{Path, Svg};

/// Width of every panel, in user units.
pub(crate) const WIDTH: f64 = 380.0;

pub(crate) const FONT: f64 = 11.5;

/// Effective font size of titles for [`text_width_and_wrap::width`]: 12.5, with bold letters a tenth wider.
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
    /// Names at the ends of lines, each with the number of its series.
    pub(crate) names: Vec<(usize, String)>,
    /// Panels below with a common x axis and value unit, from the top. The last one has the x label.
    pub(crate) below: Vec<Panel>,
}

/// A layer of a panel. `aside` shifts a series so that its markers do not hide others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Layer {
    Rule(f64), // a dashed horizontal line at a value of y
    Curve { series: usize, points: Vec<(f64, f64)> },
    Fit { series: usize, points: Vec<(f64, f64)> },       // dotted
    Simulated { series: usize, points: Vec<(f64, f64)> }, // the curve of a replay: thin, dashed, behind the data
    Band { series: usize, points: Vec<(f64, f64, f64)> }, // around a fit: x, lower end, upper end
    Marks { series: usize, marks: Vec<Mark>, joined: bool, aside: f64 },
    Dust { series: usize, points: Vec<(f64, f64)>, hollow: bool, aside: f64 }, // without tooltips
    Heat { series: usize, cells: Vec<Cell> },
    Plain { name: String, points: Vec<(f64, f64)>, dashed: bool }, // in the color of text, named at its end
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    /// Darkness of the cell, 1 to [`style::SHADES`].
    pub(crate) shade: usize,
}

impl Layer {
    pub(crate) fn series(&self) -> Option<usize> {
        match self {
            Layer::Rule(_) | Layer::Plain { .. } => None,
            Layer::Curve { series, .. } | Layer::Fit { series, .. } | Layer::Simulated { series, .. } => Some(*series),
            Layer::Band { series, .. } | Layer::Marks { series, .. } | Layer::Heat { series, .. } => Some(*series),
            Layer::Dust { series, .. } => Some(*series),
        }
    }

    pub(crate) fn dust(series: usize, marks: &[Mark], aside: f64) -> impl Iterator<Item = Layer> {
        [false, true].into_iter().filter_map(move |hollow| {
            let points = marks.iter().filter(|mark| mark.hollow == hollow).map(|mark| (mark.x, mark.y));
            let points = points.collect::<Vec<_>>();
            (!points.is_empty()).then_some(Layer::Dust { series, points, hollow, aside })
        })
    }

    pub(crate) fn deviations(all: impl Iterator<Item = (usize, Vec<Mark>)>, is_many: bool) -> Vec<Layer> {
        let layers = all.filter(|(_, marks)| !marks.is_empty()).flat_map(|(series, marks)| match is_many {
            true => Layer::dust(series, &marks, 0.0).collect(),
            false => vec![Layer::Marks { series, marks, joined: false, aside: 0.0 }],
        });
        std::iter::once(Layer::Rule(0.0)).chain(layers).collect()
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
}

impl Panel {
    pub(crate) fn new(title: String, x: Axis, y: Axis, layers: Vec<Layer>) -> Panel {
        Panel { title, x, y, layers, slot: 0.0, tall: PLOT_HEIGHT, names: Vec::new(), below: Vec::new() }
    }

    fn lying(&self) -> bool {
        matches!(self.y.scale, Scale::Slots { .. })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Panel> {
        std::iter::once(self).chain(&self.below)
    }

    /// Names the lines at their ends if all names fit. Returns whether they do. `names` has all series of the figure.
    pub(crate) fn name_lines(&mut self, names: &BTreeMap<usize, String>) -> bool {
        let lines = self.line_ends();
        let place = |x: f64| self.x.scale.place(x).unwrap_or(0.0);
        let farthest = lines.iter().map(|(_, (x, _))| place(*x)).fold(REACH, f64::max);
        let mut wanted = Vec::new();
        for (series, (x, _)) in &lines {
            let Some(name) = names.get(series) else { return false };
            if place(*x) < farthest - REACH_ASIDE || text_width_and_wrap::width(name, FONT) > END_ROOM {
                return false;
            }
            wanted.push((*series, name.clone()));
        }
        let only_lines = self.series().iter().all(|series| lines.iter().any(|(line, _)| line == series));
        if wanted.is_empty() || !only_lines || self.lying() || !self.below.is_empty() {
            return false;
        }
        self.names = wanted;
        let frame = &self.frames()[0];
        let ends = self.end_names(frame);
        let near = ends.iter().all(|end| (end.y - end.from.1).abs() <= END_ASIDE);
        if !near || !ends_fit(&ends, frame) {
            self.names.clear();
        }
        !self.names.is_empty()
    }

    pub(crate) fn has_slot(&self, name: &str) -> bool {
        self.lying() && self.y.major.iter().any(|(_, slot)| slot == name)
    }

    fn series(&self) -> BTreeSet<usize> {
        self.layers.iter().filter_map(Layer::series).collect()
    }

    fn line_ends(&self) -> Vec<(usize, (f64, f64))> {
        let mut ends: Vec<(usize, (f64, f64))> = Vec::new();
        for layer in &self.layers {
            let (series, end) = match layer {
                Layer::Curve { series, points } | Layer::Simulated { series, points } => {
                    (*series, points.last().copied())
                }
                Layer::Marks { series, marks, joined: true, .. } => {
                    (*series, marks.last().map(|mark| (mark.x, mark.y)))
                }
                _ => continue,
            };
            ends.extend(end.filter(|_| ends.iter().all(|(known, _)| *known != series)).map(|end| (series, end)));
        }
        ends
    }

    fn end_names(&self, frame: &Frame) -> Vec<EndName> {
        let lines = self.line_ends();
        let of_series = self.names.iter().filter_map(|(series, name)| {
            let (_, end) = lines.iter().find(|(line, _)| line == series)?;
            Some((Some(*series), name, *end))
        });
        let plain = self.layers.iter().filter_map(|layer| match layer {
            Layer::Plain { name, points, .. } if !name.is_empty() => Some((None, name, *points.last()?)),
            _ => None,
        });
        let ends = of_series.chain(plain).filter_map(|(series, name, (x, y))| {
            let from = self.place(frame, x, y, 0.0)?;
            Some(EndName { series, lines: text_width_and_wrap::wrap(name, END_ROOM, FONT), from, y: from.1 })
        });
        let mut ends = ends.collect::<Vec<_>>();
        ends.sort_by(|a, b| a.from.1.total_cmp(&b.from.1));
        spread(&mut ends, frame.top - LINE / 2.0, frame.bottom + LINE / 2.0);
        ends
    }

    pub(crate) fn height(&self) -> f64 {
        let frames = self.frames();
        let (Some(last), Some(frame)) = (self.all().last(), frames.last()) else { return BOTTOM };
        let marks = last.slot_lines(frame).saturating_sub(1) + last.x_label().len().saturating_sub(1);
        frame.bottom + BOTTOM + LINE * marks as f64
    }

    pub(crate) fn draw(&self, svg: &mut Svg) {
        svg.lines("tt", (4.0, 14.0), TITLE_LINE, &self.title_lines());
        for (index, (panel, frame)) in self.all().zip(&self.frames()).enumerate() {
            panel.draw_axes(svg, frame, index == self.below.len());
            for layer in &panel.layers {
                panel.draw_layer(svg, frame, layer);
            }
            for end in panel.end_names(frame) {
                end.draw(svg, frame);
            }
        }
    }

    fn title_lines(&self) -> Vec<String> {
        text_width_and_wrap::wrap(&self.title, WIDTH - 8.0, TITLE)
    }

    fn x_label(&self) -> Vec<String> {
        text_width_and_wrap::wrap(&self.x.label, WIDTH - 8.0, FONT)
    }

    fn y_label(&self) -> Vec<String> {
        if self.lying() { Vec::new() } else { text_width_and_wrap::wrap(&self.y.label, WIDTH - 8.0, FONT) }
    }

    fn slot_name(&self, frame: &Frame, label: &str) -> Vec<String> {
        match self.x.scale {
            Scale::Slots { count } => {
                text_width_and_wrap::wrap(label, (frame.right - frame.left) / count as f64 - 6.0, FONT)
            }
            _ => vec![label.to_owned()],
        }
    }

    fn slot_lines(&self, frame: &Frame) -> usize {
        self.x.major.iter().map(|(_, label)| self.slot_name(frame, label).len()).max().unwrap_or(1)
    }

    /// Frames of this panel's plot and the plots below, stacked with common left and right edges.
    fn frames(&self) -> Vec<Frame> {
        let widest =
            |lines: &[String]| lines.iter().map(|line| text_width_and_wrap::width(line, FONT)).fold(0.0, f64::max);
        let names = |panel: &Panel| -> Vec<Vec<String>> {
            panel.y.major.iter().map(|(_, label)| text_width_and_wrap::wrap(label, NAMES, FONT)).collect()
        };
        let left = self.all().flat_map(names).map(|lines| widest(&lines)).fold(0.0, f64::max);
        // The last x label is centered on its mark and must stay inside the panel.
        let last = self.x.major.last().map_or(0.0, |(_, label)| text_width_and_wrap::width(label, FONT) / 2.0);
        let of_plain = |layer: &Layer| match layer {
            Layer::Plain { name, .. } => widest(&text_width_and_wrap::wrap(name, END_ROOM, FONT)),
            _ => 0.0,
        };
        let ends = self.all().flat_map(|panel| {
            let of_series =
                panel.names.iter().map(|(_, name)| widest(&text_width_and_wrap::wrap(name, END_ROOM, FONT)));
            of_series.chain(panel.layers.iter().map(of_plain))
        });
        let ends = ends.fold(0.0, f64::max);
        let ends = if ends > 0.0 { ends + END_GAP + 2.0 } else { 0.0 };
        let (left, right) = (left + 10.0, WIDTH - last.clamp(8.0, 40.0).max(ends));
        let mut top = TITLE_LINE * self.title_lines().len() as f64;
        let mut frames: Vec<Frame> = Vec::new();
        for panel in self.all() {
            top += if frames.is_empty() { 0.0 } else { BETWEEN };
            let height = match panel.y.scale {
                Scale::Slots { count } => {
                    let lines = names(panel).iter().map(Vec::len).max().unwrap_or(1);
                    let slot = if lines > 1 { panel.slot.max(LINE * lines as f64 + 6.0) } else { panel.slot };
                    top += TOP - 18.0;
                    slot * count as f64 + 6.0
                }
                _ => {
                    top += TOP + LINE * panel.y_label().len().saturating_sub(1) as f64;
                    panel.tall
                }
            };
            frames.push(Frame { left, right, top, bottom: top + height });
            top += height;
        }
        frames
    }

    fn draw_axes(&self, svg: &mut Svg, frame: &Frame, named: bool) {
        let lying = self.lying();
        let (mut major, mut minor) = (Path::default(), Path::default());
        let values = if lying { &self.x } else { &self.y };
        let line = |path: &mut Path, value: f64| {
            if lying {
                if let Some(x) = frame.x(&values.scale, value) {
                    path.to(x, frame.top).down(frame.bottom);
                }
            } else if let Some(y) = frame.y(&values.scale, value) {
                path.to(frame.left, y).across(frame.right);
            }
        };
        values.major.iter().for_each(|(value, _)| line(&mut major, *value));
        values.minor.iter().for_each(|value| line(&mut minor, *value));
        for (class, path) in [("gm", minor), ("gr", major)].into_iter().filter(|(_, path)| !path.is_empty()) {
            svg.path(class, &path);
        }
        let mut base = Path::default();
        base.to(frame.left, frame.top).down(frame.bottom).across(frame.right);
        for (value, label) in &self.y.major {
            let Some(y) = frame.y(&self.y.scale, *value) else { continue };
            let lines = text_width_and_wrap::wrap(label, NAMES, FONT);
            let first = y + 4.0 - LINE * lines.len().saturating_sub(1) as f64 / 2.0;
            svg.lines("end", (frame.left - 6.0, first), LINE, &lines);
        }
        for x in self.x.minor.iter().filter_map(|value| frame.x(&self.x.scale, *value)) {
            base.to(x, frame.bottom).down(frame.bottom + 2.5);
        }
        for x in self.x.major.iter().filter_map(|(value, _)| frame.x(&self.x.scale, *value)) {
            base.to(x, frame.bottom).down(frame.bottom + 4.0);
        }
        if named {
            self.name_x(svg, frame);
        }
        svg.path("ax", &base);
        let label = self.y_label();
        svg.lines("mu", (4.0, frame.top - 11.0 - LINE * label.len().saturating_sub(1) as f64), LINE, &label);
    }

    fn name_x(&self, svg: &mut Svg, frame: &Frame) {
        // Overlapping labels are skipped, except for the last one, which shows the end of the axis.
        let slots = matches!(self.x.scale, Scale::Slots { .. });
        let mut taken = f64::NEG_INFINITY;
        let end = |(value, label): &(f64, String)| {
            Some(frame.x(&self.x.scale, *value)? - text_width_and_wrap::width(label, FONT) / 2.0)
        };
        let end = self.x.major.last().and_then(end).unwrap_or(f64::INFINITY);
        for (index, (value, label)) in self.x.major.iter().enumerate() {
            let Some(x) = frame.x(&self.x.scale, *value) else { continue };
            let half = text_width_and_wrap::width(label, FONT) / 2.0;
            if slots || (x - half >= taken && (x + half + 4.0 <= end || index + 1 == self.x.major.len())) {
                svg.lines("mid", (x, frame.bottom + 17.0), LINE, &self.slot_name(frame, label));
                taken = x + half + 4.0;
            }
        }
        let below = LINE * self.slot_lines(frame).saturating_sub(1) as f64;
        for (index, line) in self.x_label().iter().enumerate() {
            let half = text_width_and_wrap::width(line, FONT) / 2.0;
            let middle = ((frame.left + frame.right) / 2.0).min(WIDTH - half).max(half);
            let y = frame.bottom + 34.0 + below + LINE * index as f64;
            svg.element("text").attr("class", "mu mid").num("x", middle).num("y", y).text(line);
        }
    }

    fn draw_layer(&self, svg: &mut Svg, frame: &Frame, layer: &Layer) {
        let series = layer.series();
        if let Some(series) = series {
            let class = format!("c{}", style::colour_class(series));
            svg.element("g").attr("class", &class).attr("data-s", &series.to_string()).open();
        }
        let series = series.unwrap_or(0);
        match layer {
            Layer::Rule(value) => {
                if let Some(y) = frame.y(&self.y.scale, *value) {
                    svg.path("rf", Path::default().to(frame.left, y).across(frame.right));
                }
            }
            Layer::Plain { points, dashed, .. } => {
                self.draw_line(svg, frame, if *dashed { "l fg l2" } else { "l fg" }, points, 0.0);
            }
            Layer::Heat { cells, .. } => self.draw_cells(svg, frame, cells),
            Layer::Curve { points, .. } => self.draw_line(svg, frame, style::dashes(series), points, 0.0),
            Layer::Fit { points, .. } => self.draw_line(svg, frame, "l ft", points, 0.0),
            Layer::Simulated { series, points } => self.draw_line(svg, frame, style::simulated(*series), points, 0.0),
            Layer::Band { points, .. } => self.draw_band(svg, frame, points),
            Layer::Dust { points, hollow, aside, .. } => {
                let mut path = Path::default();
                for (x, y) in points {
                    if let Some((x, y)) = self.place(frame, *x, *y, *aside) {
                        // A zero-length line with round ends is the shortest way to draw a dot.
                        path.to(x, y).across(x);
                    }
                }
                svg.path("d", &path);
                if *hollow {
                    // A dot in the background color turns each larger dot into a ring.
                    svg.path("dh", &path);
                }
            }
            Layer::Marks { marks, joined, aside, .. } => {
                if *joined {
                    let points: Vec<(f64, f64)> = marks.iter().map(|mark| (mark.x, mark.y)).collect();
                    self.draw_line(svg, frame, style::dashes(series), &points, *aside);
                }
                for mark in marks {
                    self.draw_mark(svg, frame, series, mark, *aside);
                }
            }
        }
        if layer.series().is_some() {
            svg.close();
        }
    }

    fn draw_line(&self, svg: &mut Svg, frame: &Frame, class: &str, points: &[(f64, f64)], aside: f64) {
        let places = points.iter().filter_map(|(x, y)| self.place(frame, *x, *y, aside)).collect::<Vec<_>>();
        if places.len() > 1 {
            svg.path(class, &Path::through(places));
        }
    }

    /// Draws one path per shade and one stroke per cell, as thick as the cell is high. Adjacent cells share a stroke.
    fn draw_cells(&self, svg: &mut Svg, frame: &Frame, cells: &[Cell]) {
        for shade in 1..=style::SHADES {
            // Thickness is in tenths of a unit, because floats cannot be keys.
            let mut paths: BTreeMap<u64, (Path, (f64, f64))> = BTreeMap::new();
            for cell in cells.iter().filter(|cell| cell.shade == shade) {
                let corners =
                    self.place(frame, cell.x.0, cell.y.0, 0.0).zip(self.place(frame, cell.x.1, cell.y.1, 0.0));
                let Some(((left, low), (right, high))) = corners else { continue };
                let thick = ((low - high).abs() * 10.0).round() as u64;
                let y = (low + high) / 2.0;
                let (path, at) = paths.entry(thick).or_insert((Path::default(), (f64::NAN, f64::NAN)));
                if *at != (left, y) {
                    path.to(left, y);
                }
                path.across(right);
                *at = (right, y);
            }
            for (thick, (path, _)) in paths {
                svg.stroke(&format!("ht t{shade}"), thick as f64 / 10.0, &path);
            }
        }
    }

    fn draw_band(&self, svg: &mut Svg, frame: &Frame, points: &[(f64, f64, f64)]) {
        let place = |(x, low, high): &(f64, f64, f64)| {
            Some((self.place(frame, *x, *low, 0.0)?, self.place(frame, *x, *high, 0.0)?))
        };
        let places: Vec<_> = points.iter().filter_map(place).collect();
        if places.len() > 1 {
            let back = places.iter().rev().map(|(_, high)| *high);
            svg.path("bd", Path::through(places.iter().map(|(low, _)| *low).chain(back)).shut());
        }
    }

    fn draw_mark(&self, svg: &mut Svg, frame: &Frame, series: usize, mark: &Mark, aside: f64) {
        let Some((x, y)) = self.place(frame, mark.x, mark.y, aside + mark.aside) else { return };
        let mut shape = Path::default();
        style::marker(&mut shape, series, x, y, RADIUS);
        let Some(bar) = mark.bar.and_then(|bar| self.bar(frame, bar, x, y)) else {
            return svg.path_with_tip(if mark.hollow { "m k h" } else { "m k" }, &shape, &mark.tip);
        };
        svg.group(if mark.hollow { "m h" } else { "m" });
        svg.tip(&mark.tip);
        svg.path("e", &bar);
        svg.path("k", &shape);
        svg.close();
    }

    /// Draws the bar of an interval; `None` if the marker would hide everything except the caps.
    fn bar(&self, frame: &Frame, (low, high): (f64, f64), x: f64, y: f64) -> Option<Path> {
        let mut bar = Path::default();
        let length = if self.lying() {
            let (low, high) = (frame.x(&self.x.scale, low)?, frame.x(&self.x.scale, high)?);
            bar.to(low, y).across(high).to(low, y - CAP).down(y + CAP).to(high, y - CAP).down(y + CAP);
            high - low
        } else {
            let (low, high) = (frame.y(&self.y.scale, low)?, frame.y(&self.y.scale, high)?);
            bar.to(x, low).down(high).to(x - CAP, low).across(x + CAP).to(x - CAP, high).across(x + CAP);
            high - low
        };
        (length.abs() > RADIUS * 2.0 + 1.5).then_some(bar)
    }

    fn place(&self, frame: &Frame, x: f64, y: f64, aside: f64) -> Option<(f64, f64)> {
        let (dx, dy) = if self.lying() { (0.0, aside) } else { (aside, 0.0) };
        Some((frame.x(&self.x.scale, x)? + dx, frame.y(&self.y.scale, y)? + dy))
    }

    pub(crate) fn slot_room(count: usize) -> f64 {
        (WIDTH - NAMES) / count.max(1) as f64
    }

    /// Smallest distance between marks of the x axis, which is the space for markers side by side, in user units.
    pub(crate) fn room_aside(x: &Axis) -> f64 {
        let levels: Vec<f64> = x.major.iter().map(|(value, _)| *value).collect();
        scale::closest(&x.scale, &levels) * (WIDTH - 70.0)
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
    let mut piles = piles.into_iter().peekable();
    let mut y = top;
    for (index, end) in ends.iter_mut().enumerate() {
        if let Some((_, _, upper)) = piles.next_if(|(first, ..)| *first == index) {
            y = upper;
        }
        end.y = y + end.height() / 2.0;
        y += end.height();
    }
}

fn ends_fit(ends: &[EndName], frame: &Frame) -> bool {
    let apart = ends.windows(2).all(|two| two[1].y - two[0].y >= (two[0].height() + two[1].height()) / 2.0 - 0.1);
    let within = |end: &EndName| {
        end.y - end.height() / 2.0 >= frame.top - LINE && end.y + end.height() / 2.0 <= frame.bottom + LINE
    };
    apart && ends.iter().all(within)
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

    fn draw(&self, svg: &mut Svg, frame: &Frame) {
        let class = self.series.map_or("fg".to_owned(), |series| format!("c{}", style::colour_class(series)));
        svg.group(&class);
        svg.path("nm", &Path::through([self.from, (frame.right + END_GAP - 3.0, self.y)]));
        svg.close();
        let first = self.y + 4.0 - LINE * self.lines.len().saturating_sub(1) as f64 / 2.0;
        svg.lines("", (frame.right + END_GAP, first), LINE, &self.lines);
    }
}

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Positions of values in the frame. The ends of an axis are exactly on its edges, despite rounding.
impl Frame {
    fn x(&self, scale: &Scale, value: f64) -> Option<f64> {
        Some(self.left + scale.place(value)?.clamp(0.0, 1.0) * (self.right - self.left))
    }

    fn y(&self, scale: &Scale, value: f64) -> Option<f64> {
        let place = scale.place(value)?.clamp(0.0, 1.0);
        // Names run from the top, values from the bottom.
        let from_top = if matches!(scale, Scale::Slots { .. }) { place } else { 1.0 - place };
        Some(self.top + from_top * (self.bottom - self.top))
    }
}

pub(crate) fn panel_svg(panel: &Panel, label: &str) -> String {
    Svg::image((WIDTH, panel.height()), label, |svg| panel.draw(svg))
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
            let layer = |series: usize| Layer::Curve { series, points: vec![(0.0, 0.0), (far, series as f64 / 10.0)] };
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
            vec![Layer::Marks { series: 9, marks, joined: true, aside: 0.0 }],
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
