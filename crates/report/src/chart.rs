//! A panel: two axes and what stands between them. Narrow, so that several stand side by side on a wide page and one fills a
//! telephone, with text of one size on both.

pub(crate) mod axis;
pub(crate) mod scale;
pub(crate) mod style;
pub(crate) mod text;
pub(crate) mod ticks;
pub(crate) mod unit;

pub(crate) use axis::Axis;

use scale::Scale;

use crate::svg::{Path, Svg};

/// Width of every panel, in its own units.
pub(crate) const WIDTH: f64 = 380.0;

/// Size of labels.
pub(crate) const FONT: f64 = 11.5;

/// Size of titles as [`text::width`] is to take it: theirs is 12.5, and bold letters are a tenth wider.
pub(crate) const TITLE: f64 = 12.5 * 1.1;

const TOP: f64 = 42.0;
const PLOT_HEIGHT: f64 = 190.0;
const BOTTOM: f64 = 42.0;
const RADIUS: f64 = 3.1;
const CAP: f64 = 4.0;

/// Room for the names of slots at the left, at most.
const NAMES: f64 = 132.0;

/// Whether a value can be drawn: finite, and neither so large nor so small that the arithmetic of an axis would not be.
pub(crate) fn drawable(value: f64) -> bool {
    value == 0.0 || (1e-150..=1e150).contains(&value.abs())
}

/// One panel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) layers: Vec<Layer>,
    /// Height of a slot, where names run down.
    pub(crate) slot: f64,
}

/// What is drawn of one series, or behind all of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Layer {
    /// A dashed line across, at a value of y.
    Rule(f64),
    /// A line through points.
    Curve { series: usize, points: Vec<(f64, f64)> },
    /// A dotted line: not measured but fitted.
    Fit { series: usize, points: Vec<(f64, f64)> },
    /// A thin dashed line behind what was measured: what a replay made of the same.
    Simulated { series: usize, points: Vec<(f64, f64)> },
    /// The interval around a line that was fitted: x with its lower and upper end.
    Band { series: usize, points: Vec<(f64, f64, f64)> },
    /// Markers with bars, moved aside by so many units so that series do not hide each other.
    Marks { series: usize, marks: Vec<Mark>, joined: bool, aside: f64 },
    /// Many small dots, without a word each.
    Dust { series: usize, points: Vec<(f64, f64)>, hollow: bool, aside: f64 },
}

impl Layer {
    /// Marks as dots: those that are about the subject, and the hollow ones.
    pub(crate) fn dust(series: usize, marks: &[Mark], aside: f64) -> impl Iterator<Item = Layer> {
        let of = |hollow| {
            let points = marks.iter().filter(|mark| mark.hollow == hollow).map(|mark| (mark.x, mark.y));
            Layer::Dust { series, points: points.collect(), hollow, aside }
        };
        [of(false), of(true)]
            .into_iter()
            .filter(|layer| !matches!(layer, Layer::Dust { points, .. } if points.is_empty()))
    }
}

/// A marker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Moved aside by so many units, beyond what its layer is.
    pub(crate) aside: f64,
    /// Ends of the interval, along the axis of values.
    pub(crate) bar: Option<(f64, f64)>,
    /// Drawn without filling.
    pub(crate) hollow: bool,
    /// What a reader who points at it is told; empty: nothing.
    pub(crate) tip: String,
}

impl Panel {
    /// Whether values run across, names down.
    fn lying(&self) -> bool {
        matches!(self.y.scale, Scale::Slots { .. })
    }

    /// Height, in its own units; the width is [`WIDTH`].
    pub(crate) fn height(&self) -> f64 {
        self.frame().bottom + BOTTOM
    }

    /// Draws it with its upper left corner at the origin.
    pub(crate) fn draw(&self, svg: &mut Svg) {
        let frame = self.frame();
        if !self.title.is_empty() {
            svg.element("text").attr("class", "tt").num("x", 4.0).num("y", 14.0).text(&text::fit(
                &self.title,
                WIDTH - 8.0,
                TITLE,
            ));
        }
        self.draw_axes(svg, &frame);
        for layer in &self.layers {
            self.draw_layer(svg, &frame, layer);
        }
    }

    fn frame(&self) -> Frame {
        let labels = self.y.major.iter().map(|(_, label)| text::width(label, FONT));
        let widest = labels.fold(0.0, f64::max).min(NAMES);
        // The last label of x is centred below its mark and must not leave the panel.
        let last = self.x.major.last().map_or(0.0, |(_, label)| text::width(label, FONT) / 2.0);
        let (top, height) = match self.y.scale {
            Scale::Slots { count } => (TOP - 18.0, self.slot * count as f64 + 6.0),
            _ => (TOP, PLOT_HEIGHT),
        };
        // Without a title its line is free.
        let top = if self.title.is_empty() { top - 16.0 } else { top };
        Frame { left: widest + 10.0, right: WIDTH - last.clamp(8.0, 40.0), top, bottom: top + height }
    }

    fn draw_axes(&self, svg: &mut Svg, frame: &Frame) {
        let lying = self.lying();
        // Grid lines across the axis of values alone: they are for reading values.
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
        for (class, path) in [("gm", minor), ("gr", major)] {
            if !path.as_str().is_empty() {
                svg.element("path").attr("class", class).attr("d", path.as_str()).empty();
            }
        }
        let mut base = Path::default();
        base.to(frame.left, frame.top).down(frame.bottom).across(frame.right);
        for (value, label) in &self.y.major {
            let Some(y) = frame.y(&self.y.scale, *value) else { continue };
            let label = text::fit(label, NAMES, FONT);
            svg.element("text").attr("class", "end").num("x", frame.left - 6.0).num("y", y + 4.0).text(&label);
        }
        // Labels that would lie on another are left out; the last one stays, because it says how far the axis goes.
        let mut taken = f64::NEG_INFINITY;
        let end = self
            .x
            .major
            .last()
            .and_then(|(value, label)| Some(frame.x(&self.x.scale, *value)? - text::width(label, FONT) / 2.0));
        let end = end.unwrap_or(f64::INFINITY);
        for x in self.x.minor.iter().filter_map(|value| frame.x(&self.x.scale, *value)) {
            base.to(x, frame.bottom).down(frame.bottom + 2.5);
        }
        for (index, (value, label)) in self.x.major.iter().enumerate() {
            let Some(x) = frame.x(&self.x.scale, *value) else { continue };
            base.to(x, frame.bottom).down(frame.bottom + 4.0);
            let half = text::width(label, FONT) / 2.0;
            if x - half >= taken && (x + half + 4.0 <= end || index + 1 == self.x.major.len()) {
                svg.element("text").attr("class", "mid").num("x", x).num("y", frame.bottom + 17.0).text(label);
                taken = x + half + 4.0;
            }
        }
        svg.element("path").attr("class", "ax").attr("d", base.as_str()).empty();
        if !lying {
            svg.element("text").attr("class", "mu").num("x", 4.0).num("y", frame.top - 11.0).text(&text::fit(
                &self.y.label,
                WIDTH - 8.0,
                FONT,
            ));
        }
        let label = text::fit(&self.x.label, WIDTH - 8.0, FONT);
        let half = text::width(&label, FONT) / 2.0;
        let middle = ((frame.left + frame.right) / 2.0).min(WIDTH - half).max(half);
        svg.element("text").attr("class", "mu mid").num("x", middle).num("y", frame.bottom + 34.0).text(&label);
    }

    fn draw_layer(&self, svg: &mut Svg, frame: &Frame, layer: &Layer) {
        let series = match layer {
            Layer::Rule(value) => {
                if let Some(y) = frame.y(&self.y.scale, *value) {
                    let path = Path::default().to(frame.left, y).across(frame.right).clone();
                    svg.element("path").attr("class", "rf").attr("d", path.as_str()).empty();
                }
                return;
            }
            Layer::Curve { series, .. }
            | Layer::Fit { series, .. }
            | Layer::Simulated { series, .. }
            | Layer::Band { series, .. }
            | Layer::Marks { series, .. }
            | Layer::Dust { series, .. } => *series,
        };
        let class = format!("c{}", style::colour_class(series));
        svg.element("g").attr("class", &class).attr("data-s", &series.to_string()).open();
        match layer {
            Layer::Rule(_) => {}
            Layer::Curve { points, .. } => self.draw_line(svg, frame, line_class(series), points, 0.0),
            Layer::Fit { points, .. } => self.draw_line(svg, frame, "l ft", points, 0.0),
            Layer::Simulated { series, points } => self.draw_line(svg, frame, style::simulated(*series), points, 0.0),
            Layer::Band { points, .. } => self.draw_band(svg, frame, points),
            Layer::Dust { points, hollow, aside, .. } => {
                let mut path = Path::default();
                for (x, y) in points {
                    if let Some((x, y)) = self.place(frame, *x, *y, *aside) {
                        // A line of no length with round ends is a dot, and the shortest way to say so.
                        path.to(x, y).across(x);
                    }
                }
                svg.element("path").attr("class", "d").attr("d", path.as_str()).empty();
                if *hollow {
                    // A dot of the ground's colour inside each: a ring.
                    svg.element("path").attr("class", "dh").attr("d", path.as_str()).empty();
                }
            }
            Layer::Marks { marks, joined, aside, .. } => {
                if *joined {
                    let points: Vec<(f64, f64)> = marks.iter().map(|mark| (mark.x, mark.y)).collect();
                    self.draw_line(svg, frame, line_class(series), &points, *aside);
                }
                for mark in marks {
                    self.draw_mark(svg, frame, series, mark, *aside);
                }
            }
        }
        svg.close();
    }

    fn draw_line(&self, svg: &mut Svg, frame: &Frame, class: &str, points: &[(f64, f64)], aside: f64) {
        let places: Vec<(f64, f64)> = points.iter().filter_map(|(x, y)| self.place(frame, *x, *y, aside)).collect();
        if places.len() < 2 {
            return;
        }
        let mut path = Path::default();
        path.to(places[0].0, places[0].1);
        places[1..].iter().for_each(|(x, y)| {
            path.line(*x, *y);
        });
        svg.element("path").attr("class", class).attr("d", path.as_str()).empty();
    }

    fn draw_band(&self, svg: &mut Svg, frame: &Frame, points: &[(f64, f64, f64)]) {
        let place = |(x, low, high): &(f64, f64, f64)| {
            Some((self.place(frame, *x, *low, 0.0)?, self.place(frame, *x, *high, 0.0)?))
        };
        let places: Vec<_> = points.iter().filter_map(place).collect();
        if places.len() < 2 {
            return;
        }
        let mut path = Path::default();
        path.to(places[0].0.0, places[0].0.1);
        let there = places[1..].iter().map(|(low, _)| low);
        there.chain(places.iter().rev().map(|(_, high)| high)).for_each(|(x, y)| {
            path.line(*x, *y);
        });
        svg.element("path").attr("class", "bd").attr("d", path.shut().as_str()).empty();
    }

    fn draw_mark(&self, svg: &mut Svg, frame: &Frame, series: usize, mark: &Mark, aside: f64) {
        let Some((x, y)) = self.place(frame, mark.x, mark.y, aside + mark.aside) else { return };
        let mut shape = Path::default();
        style::marker(&mut shape, series, x, y, RADIUS);
        let bar = mark.bar.and_then(|bar| self.bar(frame, bar, x, y));
        let Some(bar) = bar else {
            let element = svg.element("path").attr("class", if mark.hollow { "m k h" } else { "m k" });
            let element = element.attr("d", shape.as_str());
            if mark.tip.is_empty() {
                return element.empty();
            }
            element.open();
            svg.element("title").text(&mark.tip);
            return svg.close();
        };
        svg.element("g").attr("class", if mark.hollow { "m h" } else { "m" }).open();
        if !mark.tip.is_empty() {
            svg.element("title").text(&mark.tip);
        }
        svg.element("path").attr("class", "e").attr("d", bar.as_str()).empty();
        svg.element("path").attr("class", "k").attr("d", shape.as_str()).empty();
        svg.close();
    }

    /// The bar of an interval; `None` where the marker would hide all but its caps.
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

    /// Where a point is; `None` where an axis has no place for it.
    fn place(&self, frame: &Frame, x: f64, y: f64, aside: f64) -> Option<(f64, f64)> {
        let (dx, dy) = if self.lying() { (0.0, aside) } else { (aside, 0.0) };
        Some((frame.x(&self.x.scale, x)? + dx, frame.y(&self.y.scale, y)? + dy))
    }

    /// Room of each of so many slots that stand side by side, in the panel's units, at least.
    pub(crate) fn slot_room(count: usize) -> f64 {
        (WIDTH - NAMES) / count.max(1) as f64
    }

    /// How far apart the closest marks of x are, in the panel's units: the room for markers side by side.
    pub(crate) fn room_aside(x: &Axis) -> f64 {
        let levels: Vec<f64> = x.major.iter().map(|(value, _)| *value).collect();
        scale::closest(&x.scale, &levels) * (WIDTH - 70.0)
    }
}

fn line_class(series: usize) -> &'static str {
    if style::is_dashed(series) { "l l2" } else { "l" }
}

/// Where the plot lies in the panel.
#[derive(Debug)]
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn x(&self, scale: &Scale, value: f64) -> Option<f64> {
        Some(self.left + bounded(scale.place(value)?) * (self.right - self.left))
    }

    fn y(&self, scale: &Scale, value: f64) -> Option<f64> {
        let place = bounded(scale.place(value)?);
        // Names are read from the top, values from the bottom.
        let from_top = if matches!(scale, Scale::Slots { .. }) { place } else { 1.0 - place };
        Some(self.top + from_top * (self.bottom - self.top))
    }
}

/// Rounding may put the end of an axis a hair outside of it.
fn bounded(place: f64) -> f64 {
    place.clamp(0.0, 1.0)
}

/// A panel as an element of its own.
pub(crate) fn panel_svg(panel: &Panel, label: &str) -> String {
    let mut svg = Svg::default();
    let view = format!("0 0 {WIDTH} {}", panel.height().ceil());
    svg.element("svg").attr("class", "q").attr("viewBox", &view).attr("role", "img").attr("aria-label", label).open();
    panel.draw(&mut svg);
    svg.close();
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel() {
        let mark = |x, y, hollow, bar| Mark { x, y, aside: 0.0, bar, hollow, tip: format!("<{x}>") };
        let marks = vec![mark(1.0, 30.0, false, Some((20.0, 40.0))), mark(2.0, 50.0, true, Some((49.9, 50.1)))];
        let panel = Panel {
            title: "clients 40 & more".to_owned(),
            x: Axis::levels(&[(1.0, "1".to_owned()), (2.0, "2".to_owned())], "cores", 0.1),
            y: Axis::linear(0.0, 60.0, "1", "errors"),
            layers: vec![Layer::Marks { series: 9, marks, joined: true, aside: 0.0 }],
            slot: 0.0,
        };
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
        <path class="ax" d="M24.7 42V232H372M53.7 232V236M343.1 232V236"/>
        <text class="mu" x="4" y="31">errors</text>
        <text class="mu mid" x="198.4" y="266">cores</text>
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
