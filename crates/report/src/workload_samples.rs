//! Samples of a workload compared with its distributions, as a table, JSON and a figure. Every fit has a p-value.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::Columns;
use crate::figures::{self, Drawing, Key};
use crate::panel::style::Background;
use crate::panel::{Axis, Layer, Panel, Shape};
use crate::render::terminal::table;
use crate::svg::escaped;
use crate::terminal_style_and_wrap::Style;
use analysis::number::{self, percent};

/// Version of [`WorkloadDrawn`] that this build writes.
pub const WORKLOAD_VERSION: u32 = 1;

/// Output of `quintain workload show --json`. Scripts may rely on its keys; more may be added.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorkloadDrawn {
    /// Format version of the output, [`WORKLOAD_VERSION`].
    pub version: u32,
    /// Name of the preset or study.
    pub name: String,
    /// Source of the workload's numbers; `null` if it is not a preset.
    pub about: Option<String>,
    /// Seed with which the operations were drawn.
    pub seed: u64,
    /// Number of operations drawn.
    pub operations: u64,
    /// Number of operations of each kind.
    pub kinds: BTreeMap<String, u64>,
    /// Number of distinct keys requested.
    pub distinct_keys: u64,
    /// Number of operations that are the first on their key. Reads among them miss in any cache.
    pub first_touches: u64,
    /// Total size of all requested keys and their values in bytes, each counted once. A cache of this size plus its own
    /// overhead would hold them all.
    pub footprint_bytes: u64,
    /// Share of the most popular keys; `null` if keys are created during the workload.
    pub head: Option<Head>,
    /// Hit ratio, from 0 to 1, that the mix without fills implies; `null` if it implies none.
    pub hit_ratio_of_mix: Option<f64>,
    /// Lengths of keys and values, as drawn and by their distributions.
    pub lengths: Vec<Lengths>,
    /// Tests of how well the samples fit their distributions.
    pub fits: Vec<FitFound>,
    /// Curves of the figure, one pair per panel.
    #[serde(skip)]
    #[schemars(skip)]
    pub curves: Vec<Curves>,
}

/// Share of operations on the most popular keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Head {
    /// Number of keys that count as the most popular.
    pub keys: u64,
    /// Share of the operations on existing keys as drawn, from 0 to 1.
    pub drawn: f64,
    /// Exact share by the distribution, from 0 to 1.
    pub exact: f64,
}

/// Lengths in bytes, as drawn and by their distribution.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Lengths {
    /// Items that have these lengths: `keys` or `values`.
    pub of: String,
    /// Number of lengths drawn.
    pub count: u64,
    /// Statistics of the lengths as drawn.
    pub drawn: Spread,
    /// Statistics of the distribution, rounded and clamped to its bounds. The maximum is the upper bound.
    pub exact: Spread,
}

/// Statistics of lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// Mean length, bytes.
    pub mean: f64,
    /// Median length, bytes.
    pub p50: u64,
    /// 90th percentile of lengths, bytes.
    pub p90: u64,
    /// 99th percentile of lengths, bytes.
    pub p99: u64,
    /// Maximum length, bytes.
    pub max: u64,
}

/// Result of a goodness-of-fit test.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FitFound {
    /// Description of the tested values.
    pub of: String,
    /// Name of the goodness-of-fit test.
    pub test: String,
    /// Value of the test statistic, such as χ².
    pub statistic: f64,
    /// Degrees of freedom of the test.
    pub degrees: u64,
    /// Probability that a sample of the distribution deviates at least this much.
    pub p: f64,
    /// Conclusion of the test in words.
    pub words: String,
}

/// A panel of the figure, with the curve of the samples and the exact curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// Title of the panel.
    pub title: String,
    /// Label of the x axis.
    pub x: String,
    /// Unit of x: `bytes`, or `1` for numbers without a unit.
    pub unit: &'static str,
    /// Label of the y axis.
    pub y: String,
    /// Points of both curves, each with x, share as drawn, and exact share.
    pub points: Vec<(f64, f64, f64)>,
}

/// Names of the kinds of operations, in the order of `load::operation_stream::Kind`.
pub const KINDS: [&str; 4] = ["get", "set", "delete", "read-modify-write"];

/// Renders the operations, lengths and fits for a terminal.
pub fn workload_terminal(drawn: &WorkloadDrawn) -> String {
    let operations = number::count(drawn.operations, "operation");
    let mut text = format!("{}, {operations} sampled with seed {}\n", drawn.name, drawn.seed);
    text.extend(drawn.about.iter().map(|about| format!("{about}\n")));
    let all = drawn.operations.max(1) as f64;
    let kinds = KINDS.iter().filter_map(|kind| Some((kind, *drawn.kinds.get(*kind)?)));
    let kinds = kinds.map(|(kind, count)| format!("{kind} {}", percent(count as f64 / all))).collect::<Vec<_>>();
    let (keys, first) = (drawn.distinct_keys, percent(drawn.first_touches as f64 / all));
    let bytes = number::quantity(drawn.footprint_bytes as f64, "bytes");
    text += &format!("\noperations     {}\n", kinds.join(", "));
    text += &format!("keys           {keys} requested, {first} of operations are the first on their key\n");
    text += &format!("footprint      {bytes} of keys and values\n");
    if let Some(head) = drawn.head {
        let (keys, [drawn, exact]) = (head.keys, [head.drawn, head.exact].map(|share| share * 100.0));
        text += &format!("hot keys       the {keys} most popular keys had {drawn:.2} % (expected: {exact:.2} %)\n");
    }
    let ratio = |ratio| format!("hit ratio      tends to {ratio:.3} from the mix, as misses are not filled\n");
    text.extend(drawn.hit_ratio_of_mix.map(ratio));
    let samples = drawn.lengths.iter().flat_map(|lengths| {
        [("sampled", "", &lengths.drawn), ("distribution", "<= ", &lengths.exact)].map(|of| (lengths, of))
    });
    let lengths = Columns::of(samples)
        .text("lengths, B", |(lengths, (which, ..))| format!("{} {which}", lengths.of))
        .number("mean", |(_, (.., spread))| format!("{:.2}", spread.mean))
        .number("p50", |(_, (.., spread))| spread.p50.to_string())
        .number("p90", |(_, (.., spread))| spread.p90.to_string())
        .number("p99", |(_, (.., spread))| spread.p99.to_string())
        .number("max", |(_, (_, bound, spread))| format!("{bound}{}", spread.max));
    text += &format!("\n{}\n", table(&lengths.plain(""), &Style::PLAIN));
    for FitFound { of, words, p, test, degrees, .. } in &drawn.fits {
        let (p, degrees) = (p_text(*p), number::count(*degrees, "degree"));
        text += &format!("{of}: {words} (p = {p}, {test}, {degrees} of freedom)\n");
    }
    text
}

fn p_text(p: f64) -> String {
    if p < 0.0005 { "<0.0005".to_owned() } else { format!("{p:.3}") }
}

/// Renders the figure as one SVG file.
pub fn workload_svg(drawn: &WorkloadDrawn) -> String {
    let panel = |curves: &Curves| {
        let xs = curves.points.iter().map(|point| point.0).filter(|x| *x > 0.0);
        let (low, high) = xs.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 10.0) };
        let drawn = curves.points.iter().map(|(x, drawn, _)| (*x, *drawn)).collect();
        let mut exact = curves.points.iter().map(|(x, _, exact)| (*x, *exact));
        let rings = exact.clone().step_by(curves.points.len() / 40 + 1).chain(exact.next_back()).collect();
        let layers =
            vec![Layer::new(0, Shape::Curve(drawn)), Layer::new(1, Shape::Dust { points: rings, hollow: true })];
        let (x, y) = (Axis::log(low, high, curves.unit, &curves.x, 5), Axis::linear(0.0, 1.0, "1", &curves.y));
        Panel::new(curves.title.clone(), x, y, layers)
    };
    let fits = drawn.fits.iter().map(|fit| format!("{}: {}, p = {}.", fit.of, fit.words, p_text(fit.p)));
    let drawing = Drawing {
        caption: format!("Line: {} sampled. Rings: the distribution.", number::count(drawn.operations, "operation")),
        keys: vec![Key::measured(0, "sampled"), Key::measured(1, "distribution (rings)")],
        panels: drawn.curves.iter().map(panel).collect(),
        notes: fits.collect(),
        ..Drawing::new("workload", format!("{}: sampled and expected", drawn.name))
    };
    figures::svg_file(&drawing, Background::Light)
}

/// Renders the tables and figure as one self-contained page.
pub fn workload_html(drawn: &WorkloadDrawn) -> String {
    let (title, text) = (escaped(&drawn.name), escaped(&workload_terminal(drawn)));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>body{{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em}}pre{{white-space:pre-wrap}}svg{{max-width:100%;height:auto}}</style>\n<h1>{title}</h1>\n<pre>{text}</pre>\n{}\n</html>\n",
        workload_svg(drawn)
    )
}
