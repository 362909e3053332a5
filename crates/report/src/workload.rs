//! What a workload's stream drew, beside its laws: a table, JSON, a figure. Nothing is judged by eye: each fit has its probability.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use askama::Template;
use schemars::JsonSchema;
use serde::Serialize;

use crate::chart::style::Background;
use crate::chart::{Axis, Layer, Panel};
use crate::figure::{self, Drawing, Key};
use crate::render::html::HtmlError;
use analysis::number::{self, percent};

/// The version of [`WorkloadDrawn`].
pub const WORKLOAD_VERSION: u32 = 1;

/// What `quintain workload show --json` prints. Scripts may rely on these keys; more may come.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorkloadDrawn {
    /// [`WORKLOAD_VERSION`].
    pub version: u32,
    /// The preset, or the study.
    pub name: String,
    /// Where its numbers come from; `null`: not a preset.
    pub about: Option<String>,
    /// Seed.
    pub seed: u64,
    /// Operations drawn.
    pub operations: u64,
    /// How often each kind was.
    pub kinds: BTreeMap<String, u64>,
    /// Keys that were asked for.
    pub distinct_keys: u64,
    /// Operations on a key that none had before them: their reads miss, however good the cache.
    pub first_touches: u64,
    /// Bytes of the keys and values of all keys that were asked for, each once: a cache of that size, and its own overhead, would hold all.
    pub footprint_bytes: u64,
    /// The share that the most popular keys had; `null` where keys are made on the way.
    pub head: Option<Head>,
    /// Hit ratio that the mix alone decides, without fill.
    pub hit_ratio_of_mix: Option<f64>,
    /// Lengths of keys and of values.
    pub lengths: Vec<Lengths>,
    /// Tests of fit.
    pub fits: Vec<FitFound>,
    /// Points of the figure, one curve pair each.
    #[serde(skip)]
    #[schemars(skip)]
    pub curves: Vec<Curves>,
}

/// The share of the most popular keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Head {
    /// How many of the most popular keys.
    pub keys: u64,
    /// Their share of the operations on the population, as drawn.
    pub drawn: f64,
    /// The same by the law.
    pub exact: f64,
}

/// Lengths as drawn and by their law, bytes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Lengths {
    /// `keys` or `values`.
    pub of: String,
    /// How many were drawn.
    pub count: u64,
    /// As drawn.
    pub drawn: Spread,
    /// By the law, rounded and within its bounds; its largest is the bound.
    pub exact: Spread,
}

/// Figures of lengths, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90 % are not above.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// A test of fit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FitFound {
    /// What was tested.
    pub of: String,
    /// Which test.
    pub test: String,
    /// Its statistic.
    pub statistic: f64,
    /// Degrees of freedom.
    pub degrees: u64,
    /// Probability that the law itself strays as far.
    pub p: f64,
    /// The finding in words.
    pub words: String,
}

/// A panel of the figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// Its title.
    pub title: String,
    /// What runs across.
    pub x: String,
    /// Unit of it: `bytes`, or `1`.
    pub unit: &'static str,
    /// What runs up.
    pub y: String,
    /// As drawn: x, share.
    pub drawn: Vec<(f64, f64)>,
    /// By the law.
    pub exact: Vec<(f64, f64)>,
}

/// Names of the kinds in the order of the table.
const KINDS: [&str; 4] = ["get", "set", "delete", "read-modify-write"];

/// The report for a terminal.
pub fn workload_terminal(drawn: &WorkloadDrawn) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{}, {} sampled with seed {}",
        drawn.name,
        number::count(drawn.operations, "operation"),
        drawn.seed
    );
    if let Some(about) = &drawn.about {
        let _ = writeln!(text, "{about}");
    }
    let all = drawn.operations.max(1) as f64;
    let kinds = KINDS.iter().filter_map(|kind| Some((kind, *drawn.kinds.get(*kind)?)));
    let kinds = kinds.map(|(kind, count)| format!("{kind} {}", percent(count as f64 / all))).collect::<Vec<_>>();
    let _ = writeln!(text, "\noperations     {}", kinds.join(", "));
    let _ = writeln!(
        text,
        "keys           {} requested, {} of operations are the first on their key",
        drawn.distinct_keys,
        percent(drawn.first_touches as f64 / all)
    );
    let _ =
        writeln!(text, "footprint      {} of keys and values", number::quantity(drawn.footprint_bytes as f64, "bytes"));
    if let Some(head) = drawn.head {
        let _ = writeln!(
            text,
            "hot keys       the {} most popular keys had {:.2} % (expected: {:.2} %)",
            head.keys,
            head.drawn * 100.0,
            head.exact * 100.0
        );
    }
    if let Some(ratio) = drawn.hit_ratio_of_mix {
        let _ = writeln!(text, "hit ratio      tends to {ratio:.3} from the mix alone: misses are not filled");
    }
    let mut rows = vec![["lengths, B", "mean", "p50", "p90", "p99", "max"].map(str::to_owned).to_vec()];
    for lengths in &drawn.lengths {
        for (which, spread) in [("sampled", lengths.drawn), ("distribution", lengths.exact)] {
            let Spread { mean, p50, p90, p99, max } = spread;
            let numbers = [p50, p90, p99].map(|value| value.to_string());
            let max = if which == "distribution" { format!("<= {max}") } else { max.to_string() };
            let row = [format!("{} {which}", lengths.of), format!("{mean:.2}")];
            rows.push(row.into_iter().chain(numbers).chain([max]).collect());
        }
    }
    let widths = (0..6).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let widths = widths.collect::<Vec<_>>();
    text.push('\n');
    for row in &rows {
        let _ = write!(text, "{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    text.push('\n');
    for fit in &drawn.fits {
        let _ = writeln!(
            text,
            "{}: {} (p = {}, {}, {} of freedom)",
            fit.of,
            fit.words,
            p_text(fit.p),
            fit.test,
            number::count(fit.degrees, "degree")
        );
    }
    text
}

fn p_text(p: f64) -> String {
    if p < 0.0005 { "<0.0005".to_owned() } else { format!("{p:.3}") }
}

/// The figure as an SVG file of its own.
pub fn workload_svg(drawn: &WorkloadDrawn) -> String {
    let panel = |curves: &Curves| {
        let xs = curves.drawn.iter().chain(&curves.exact).map(|point| point.0).filter(|x| *x > 0.0);
        let (low, high) = xs.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 10.0) };
        let layers = vec![
            Layer::Curve { series: 0, points: curves.drawn.clone() },
            Layer::Dust { series: 1, points: thinned(&curves.exact), hollow: true, aside: 0.0 },
        ];
        let (x, y) = (Axis::log(low, high, curves.unit, &curves.x, 5), Axis::linear(0.0, 1.0, "1", &curves.y));
        Panel::new(curves.title.clone(), x, y, layers)
    };
    let key = |(series, label): (usize, &str)| Key { series, label: label.to_owned(), simulated: false };
    let fits = drawn.fits.iter().map(|fit| format!("{}: {}, p = {}.", fit.of, fit.words, p_text(fit.p)));
    let drawing = Drawing {
        name: "workload".to_owned(),
        title: format!("{}: sampled and expected", drawn.name),
        caption: format!("Line: {} sampled. Rings: the distribution.", number::count(drawn.operations, "operation")),
        keys: ["sampled", "distribution (rings)"].into_iter().enumerate().map(key).collect(),
        panels: drawn.curves.iter().map(panel).collect(),
        notes: fits.collect(),
        ..Drawing::default()
    };
    figure::svg_file(&drawing, Background::Light)
}

/// Of many points, as many as can be told apart.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    points.iter().copied().step_by(points.len() / 40 + 1).chain(points.last().copied()).collect()
}

#[derive(Template)]
#[template(
    source = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>{{ title }}</title>\n<style>body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em}pre{white-space:pre-wrap}svg{max-width:100%;height:auto}</style>\n<h1>{{ title }}</h1>\n<pre>{{ text }}</pre>\n{{ svg|safe }}\n</html>\n",
    ext = "html"
)]
struct Page<'a> {
    title: &'a str,
    text: &'a str,
    svg: &'a str,
}

/// Table and figure as one page without a network.
///
/// # Errors
/// Where the template cannot be filled in.
pub fn workload_html(drawn: &WorkloadDrawn) -> Result<String, HtmlError> {
    let (text, svg) = (workload_terminal(drawn), workload_svg(drawn));
    let page = Page { title: &drawn.name, text: &text, svg: &svg };
    page.render().map_err(|source| HtmlError::Template { what: format!("workload {}", drawn.name), source })
}
