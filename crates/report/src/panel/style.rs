//! Colors, shapes and CSS of figures.

use crate::svg::Path;

/// Okabe and Ito's palette (<https://jfly.uni-koeln.de/color/>), suitable for color-blind readers. Strong colors come
/// first, and yellow is darkened for white pages.
const ON_LIGHT: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8f8500"];

const ON_DARK: [&str; 8] = ["#4a9fe0", "#f0803c", "#1fc493", "#e09ac2", "#8ad3ff", "#f5b938", "#e8e8e8", "#f0e442"];

/// Number of marker shapes. It differs from the number of colors, so that a repeated color gets a different shape.
const SHAPES: usize = 5;

pub(crate) fn colour_class(series: usize) -> usize {
    series % ON_LIGHT.len()
}

/// Returns the class of a series' lines: solid in the first round of the palette, then with different dashes.
pub(crate) fn dashes(series: usize) -> &'static str {
    ["l", "l l2", "l l3", "l l4"][(series / ON_LIGHT.len()).min(3)]
}

/// Returns the series of the same color that comes `times` rounds of the palette later, with different dashes.
pub(crate) fn dashed(series: usize, times: usize) -> usize {
    series + ON_LIGHT.len() * times
}

pub(crate) const SHADES: usize = 6;

pub(crate) fn simulated(series: usize) -> &'static str {
    ["l s0", "l s1", "l s2", "l s3"][series % 4]
}

/// Returns the marker of a series around a center. All shapes have equal areas.
pub(crate) fn marker(series: usize, x: f64, y: f64, r: f64) -> Path {
    let shape: &[(f64, f64)] = match series % SHAPES {
        0 => return Path::circle(x, y, r),
        1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2 => &[(0.0, -1.25), (1.2, 0.85), (-1.2, 0.85)],
        3 => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        _ => &[(0.0, 1.25), (1.2, -0.85), (-1.2, -0.85)],
    };
    let mut path = Path::default();
    path.to(x + shape[0].0 * r, y + shape[0].1 * r);
    for pair in shape.windows(2) {
        path.command('l', &[(pair[1].0 - pair[0].0) * r, (pair[1].1 - pair[0].1) * r]);
    }
    path.shut();
    path
}

/// Background of a figure file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// White background, for paper.
    Light,
    /// Nearly black background, for slides and dark pages.
    Dark,
}

/// Returns the style sheet of a figure file or, for `None`, of a figure in a page, light or dark like the reader's
/// system. Files have no variables or media queries, which few renderers support.
pub(crate) fn css(background: Option<Background>) -> String {
    let css = include_str!("../../templates/figure.css").replace('\n', "");
    let light = theme("#1b1d21", "#5b626c", "#e3e6ea", "#9aa1ab", "#ffffff", &ON_LIGHT);
    let dark = theme("#e8eaed", "#a5adb8", "#31363e", "#7b838e", "#16181c", &ON_DARK);
    css + &match background {
        None => format!("{light}@media(prefers-color-scheme:dark){{{dark}}}"),
        Some(Background::Light) => light,
        Some(Background::Dark) => dark,
    }
}

fn theme(text: &str, muted: &str, grid: &str, axis: &str, ground: &str, colours: &[&str]) -> String {
    let series = colours.iter().enumerate().map(|(index, colour)| {
        format!("svg.q .c{index}{{stroke:{colour}}}svg.q .c{index} .k,svg.q .c{index} .bd{{fill:{colour}}}")
    });
    // The last rule follows the colors and overrides them, because hollow markers say nothing about the server.
    format!(
        "svg.q text{{fill:{text}}}svg.q .mu{{fill:{muted}}}svg.q .gr,svg.q .gm{{stroke:{grid}}}svg.q .ax,svg.q .rf{{stroke:{axis}}}svg.q .fg{{stroke:{text}}}\
         svg.q .bg{{fill:{ground}}}{}svg.q .h .k,svg.q .h.k{{fill:{ground}}}svg.q .dh{{stroke:{ground}}}",
        series.collect::<String>()
    )
}
