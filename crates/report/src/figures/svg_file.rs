//! A figure as an SVG file: title, panels, key and caption.

use super::{Drawing, Key};
use crate::panel::style::{self, Background};
use crate::panel::text_width_and_wrap::{width, wrap};
use crate::panel::{FONT, Panel, TITLE, WIDTH};
use crate::svg::{self, Path, escaped};

const MARGIN: f64 = 12.0;
const GAP: f64 = 18.0;
const LINE: f64 = 17.0;

pub(crate) fn svg_file(drawing: &Drawing, background: Background) -> String {
    let columns = if drawing.flames.is_empty() { drawing.panels.len().clamp(1, 3) } else { 3 };
    let inner = WIDTH * columns as f64 + GAP * (columns - 1) as f64;
    // Titles are wrapped, not shortened, because a file has no page that repeats them.
    let title = wrap(&drawing.title, inner - 8.0, TITLE);
    let mut drawn = svg::lines("tt", (MARGIN + 4.0, MARGIN + 12.0), LINE, &title);
    let mut y = MARGIN + 20.0 + LINE * title.len().saturating_sub(1) as f64;
    let (legend, height) = legend(drawing, inner, y);
    drawn += &legend;
    y += height + 8.0;
    for row in drawing.panels.chunks(columns) {
        for (column, panel) in row.iter().enumerate() {
            drawn += &svg::moved(MARGIN + (WIDTH + GAP) * column as f64, y, &panel.draw());
        }
        y += row.iter().map(Panel::height).fold(0.0, f64::max) + GAP;
    }
    for flame in &drawing.flames {
        drawn += &svg::moved(MARGIN, y, &flame.draw());
        y += flame.height() + GAP;
    }
    let texts = [&drawing.caption].into_iter().chain(&drawing.notes);
    let texts = texts.flat_map(|text| wrap(text, inner, FONT)).collect::<Vec<_>>();
    drawn += &svg::lines("mu", (MARGIN + 4.0, y + LINE - 4.0), LINE, &texts);
    let (width, height) = (inner + MARGIN * 2.0, (y + LINE * texts.len() as f64 + MARGIN + 4.0).ceil());
    let (title, css) = (svg::tip(&drawing.title), escaped(&style::css(Some(background))));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"q\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\
         {title}<style>{css}</style><rect class=\"bg\" width=\"100%\" height=\"100%\"/>{drawn}</svg>"
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Measured,
    Hollow,
    Simulated,
}

impl Key {
    pub(crate) fn svg(&self) -> String {
        let key = self.draw(0.0, 6.0);
        format!("<svg class=\"q key\" viewBox=\"0 0 26 12\" aria-hidden=\"true\">{key}</svg>")
    }

    fn draw(&self, x: f64, y: f64) -> String {
        let is_simulated = self.face == Face::Simulated;
        let class = if is_simulated { style::simulated(self.series) } else { style::dashes(self.series) };
        let mut drawn = svg::path(class, Path::default().to(x + 1.0, y).across(x + 25.0));
        if !is_simulated {
            let marker = svg::path("k", &style::marker(self.series, x + 13.0, y, 3.8));
            drawn += &svg::group(if self.face == Face::Hollow { "h" } else { "f" }, &marker);
        }
        svg::group(&format!("c{}", style::colour_class(self.series)), &drawn)
    }
}

/// Draws the legend below `top`, and returns its height.
fn legend(drawing: &Drawing, room: f64, top: f64) -> (String, f64) {
    let (mut x, mut y, mut next) = (0.0, 0.0, 0.0);
    let mut drawn = String::new();
    for key in drawing.legend().iter().chain(&drawing.hollow_key()) {
        let lines = wrap(&key.label, room - 52.0, FONT);
        let widest = lines.iter().map(|line| width(line, FONT)).fold(0.0, f64::max);
        let needed = 26.0 + 6.0 + widest + 16.0;
        if x > 0.0 && x + needed > room {
            (x, y) = (0.0, next);
        }
        next = f64::max(next, y + lines.len().max(1) as f64 * LINE);
        let (left, middle) = (MARGIN + 4.0 + x, top + y + LINE / 2.0);
        drawn += &key.draw(left, middle);
        drawn += &svg::lines("", (left + 32.0, middle + 4.0), LINE, &lines);
        x += needed;
    }
    (drawn, next)
}
