//! A figure as an SVG file: title, panels, key and caption.

use super::{Drawing, Key};
use crate::panel::style::{self, Background};
use crate::panel::{FONT, Panel, TITLE, WIDTH, text_width_and_wrap};
use crate::svg::{Path, Svg, rounded};

const MARGIN: f64 = 12.0;
const GAP: f64 = 18.0;
const LINE: f64 = 17.0;

pub(crate) fn svg_file(drawing: &Drawing, background: Background) -> String {
    let columns = if drawing.flames.is_empty() { drawing.panels.len().clamp(1, 3) } else { 3 };
    let width = MARGIN * 2.0 + WIDTH * columns as f64 + GAP * (columns - 1) as f64;
    let inner = width - MARGIN * 2.0;
    // Titles are wrapped, not shortened, because a file has no page that repeats them.
    let title = text_width_and_wrap::wrap(&drawing.title, inner - 8.0, TITLE);
    let caption = text_width_and_wrap::wrap(&drawing.caption, inner, FONT);
    let notes: Vec<String> =
        drawing.notes.iter().flat_map(|note| text_width_and_wrap::wrap(note, inner, FONT)).collect();
    let (entries, legend_height) = legend(drawing, inner);
    let height = |row: &[Panel]| row.iter().map(Panel::height).fold(0.0, f64::max) + GAP;
    let rows = drawing.panels.chunks(columns).map(height).collect::<Vec<_>>();
    let flames = drawing.flames.iter().map(|flame| flame.height() + GAP).collect::<Vec<_>>();
    let lines = (title.len().saturating_sub(1) + caption.len() + notes.len()) as f64;
    let height = MARGIN * 2.0 + 24.0 + lines * LINE + legend_height + 8.0 + rows.iter().chain(&flames).sum::<f64>();

    let mut svg = Svg::default();
    svg.element("svg")
        .attr("xmlns", "http://www.w3.org/2000/svg")
        .attr("class", "q")
        .num("width", width)
        .num("height", height.ceil())
        .attr("viewBox", &format!("0 0 {width} {}", height.ceil()))
        .attr("role", "img")
        .open();
    svg.element("title").text(&drawing.title);
    svg.element("style").text(&style::css(Some(background)));
    svg.element("rect").attr("class", "bg").attr("width", "100%").attr("height", "100%").empty();
    let mut y = MARGIN + 12.0;
    svg.lines("tt", (MARGIN + 4.0, y), LINE, &title);
    y += LINE * title.len().saturating_sub(1) as f64 + 8.0;
    for Entry { x, y: below, series, face, lines } in &entries {
        let (x, y) = (MARGIN + 4.0 + x, y + below + LINE / 2.0);
        draw_key(&mut svg, *series, x, y, *face);
        svg.lines("", (x + 32.0, y + 4.0), LINE, lines);
    }
    y += legend_height + 8.0;
    for (row, height) in drawing.panels.chunks(columns).zip(&rows) {
        for (column, panel) in row.iter().enumerate() {
            let x = MARGIN + (WIDTH + GAP) * column as f64;
            svg.element("g").attr("transform", &place(x, y)).open();
            panel.draw(&mut svg);
            svg.close();
        }
        y += height;
    }
    for (flame, height) in drawing.flames.iter().zip(&flames) {
        svg.element("g").attr("transform", &place(MARGIN, y)).open();
        flame.draw(&mut svg);
        svg.close();
        y += height;
    }
    svg.lines("mu", (MARGIN + 4.0, y + LINE - 4.0), LINE, &[caption, notes].concat());
    svg.close();
    svg.finish()
}

fn place(x: f64, y: f64) -> String {
    format!("translate({} {})", rounded(x), rounded(y))
}

pub(crate) fn key_svg(series: usize, face: Face) -> String {
    let mut svg = Svg::default();
    svg.element("svg").attr("class", "q key").attr("viewBox", "0 0 26 12").attr("aria-hidden", "true").open();
    draw_key(&mut svg, series, 0.0, 6.0, face);
    svg.close();
    svg.finish()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Measured,
    Hollow,
    Simulated,
}

fn draw_key(svg: &mut Svg, series: usize, x: f64, y: f64, face: Face) {
    svg.group(&format!("c{}", style::colour_class(series)));
    let class = if face == Face::Simulated { style::simulated(series) } else { style::dashes(series) };
    svg.path(class, Path::default().to(x + 1.0, y).across(x + 25.0));
    if face != Face::Simulated {
        let mut marker = Path::default();
        style::marker(&mut marker, series, x + 13.0, y, 3.8);
        svg.group(if face == Face::Hollow { "h" } else { "f" });
        svg.path("k", &marker);
        svg.close();
    }
    svg.close();
}

struct Entry {
    x: f64,
    y: f64,
    series: usize,
    face: Face,
    lines: Vec<String>,
}

fn legend(drawing: &Drawing, width: f64) -> (Vec<Entry>, f64) {
    let first = drawing.keys.first().map_or(0, |key| key.series);
    let hollow = (!drawing.hollow.is_empty()).then(|| format!("hollow: {}", drawing.hollow));
    let hollow = hollow.map(|label| Key { series: first, label, face: Face::Hollow });
    let (mut x, mut y, mut next) = (0.0, 0.0, 0.0);
    let mut entries = Vec::new();
    for Key { series, label, face } in drawing.legend().iter().chain(&hollow) {
        let lines = text_width_and_wrap::wrap(label, width - 52.0, FONT);
        let widest = lines.iter().map(|line| text_width_and_wrap::width(line, FONT)).fold(0.0, f64::max);
        let needed = 26.0 + 6.0 + widest + 16.0;
        if x > 0.0 && x + needed > width {
            (x, y) = (0.0, next);
        }
        next = f64::max(next, y + lines.len().max(1) as f64 * LINE);
        entries.push(Entry { x, y, series: *series, face: *face, lines });
        x += needed;
    }
    (entries, next)
}
